"""Rows of public sets on their way into problems, as tests of sources read and import them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from codea1_env.cli import main
from codea1_env.problems import Problem, read_problems
from codea1_env.problems.sources import Draft, Unreadable, find_source


def draft(source: str, row: dict[str, Any]) -> Draft:
    (found,) = find_source(source).drafts([row])
    assert isinstance(found, Draft), found
    return found


def unreadable(source: str, row: dict[str, Any]) -> Unreadable:
    (found,) = find_source(source).drafts([row])
    assert isinstance(found, Unreadable), found
    return found


def jsonl(path: Path, *rows: object) -> Path:
    """The file, written with a line for each row."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def problems_from(path: Path, source: str, out: Path, *options: str) -> list[Problem]:
    """What the command makes of a local file or directory."""
    assert main(["data", "import", source, str(path), "-o", str(out), *options]) == 0
    return read_problems(out)
