"""Every module says what it is, docs/layout.md every folder; folders are small."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
LAYOUT = (ROOT / "docs" / "layout.md").read_text(encoding="utf-8")
FOLDERS = ("codea1_env", "agents", "baselines", "experiments", "benchmarks", "examples")


def modules() -> list[Path]:
    found = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")]
    return [path for path in found if "__pycache__" not in path.parts]


def test_every_folder_has_its_line_and_every_line_its_folder() -> None:
    listed = re.findall(r"^\| `([\w./]+)/` \| (.{10,130}) \|$", LAYOUT, re.MULTILINE)
    assert len(listed) == len(dict(listed)) > 40
    there = {str(path.parent.relative_to(ROOT)) for path in modules()}
    assert sorted(there - set(dict(listed))) == []
    assert [folder for folder in dict(listed) if not (ROOT / folder).is_dir()] == []


def test_every_module_says_what_it_is() -> None:
    told = {path: ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "" for path in modules()}
    assert [str(path) for path, text in told.items() if not 10 < len(text.split("\n\n")[0]) <= 400] == []


def test_no_folder_holds_more_modules_than_a_reader_takes_in() -> None:
    counts: dict[Path, int] = {}
    for path in (ROOT / "codea1_env").rglob("*.py"):
        counts[path.parent] = counts.get(path.parent, 0) + 1
    most = max(counts, key=lambda folder: counts[folder])
    assert counts[most] <= 16, most
    assert counts[ROOT / "codea1_env"] <= 12
