"""docs/layout.md has a line for every file, and none for what is not there; no folder is a place to get lost in."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
LAYOUT = (ROOT / "docs" / "layout.md").read_text(encoding="utf-8")
FOLDERS = ("codea1_env", "agents", "baselines", "experiments", "benchmarks", "examples")
KINDS = {".py", ".sh", ".js", ".css", ".html", ".jsonl", ".yaml", ".txt", ".ipynb", ".typed", ""}
"""Suffixes of what a reader may look for; the empty one is the Dockerfile's."""


def listed() -> dict[str, str]:
    """Path -> what its line says."""
    lines = {}
    for folder, body in re.findall(r"^## `([\w./]+)/`\n(.*?)(?=^## |\Z)", LAYOUT, re.DOTALL | re.MULTILINE):
        for name, clause in re.findall(r"^\| `([\w.-]+)` \| (.*) \|$", body, re.MULTILINE):
            assert f"{folder}/{name}" not in lines, f"{folder}/{name} has two lines"
            lines[f"{folder}/{name}"] = clause
    return lines


def there() -> set[str]:
    paths = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*")]
    kept = [path for path in paths if path.is_file() and path.suffix in KINDS and "__pycache__" not in path.parts]
    return {str(path.relative_to(ROOT)) for path in kept}


def test_every_file_has_its_line() -> None:
    assert len(there()) > 250
    assert sorted(there() - set(listed())) == []


def test_every_line_has_its_file() -> None:
    assert sorted(set(listed()) - there()) == []


def test_a_line_is_a_clause() -> None:
    said = listed()
    assert [path for path, clause in said.items() if not 10 < len(clause) <= 130 or clause.endswith(".")] == []


def test_no_folder_holds_more_modules_than_a_reader_takes_in() -> None:
    counts: dict[Path, int] = {}
    for path in (ROOT / "codea1_env").rglob("*.py"):
        counts[path.parent] = counts.get(path.parent, 0) + 1
    most = max(counts, key=lambda folder: counts[folder])
    assert counts[most] <= 16, most
    assert counts[ROOT / "codea1_env"] <= 12
