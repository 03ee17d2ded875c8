"""Changes that a newcomer may want, each as a patch of at most two files: they apply, alone and together, and work.

docs/layout.md says where each change is made. `changes/checks.py` says what each shows.
"""

import contextlib
import importlib
import json
import os
import re
import runpy
import shutil
import subprocess
import sys
import traceback
import warnings
from pathlib import Path

import pytest

pytest.importorskip("trl", reason="the extra `train` is not installed")

ROOT = Path(__file__).parents[1]
PATCHES = sorted((ROOT / "tests" / "changes").glob("*.patch"))
CODE = ("codea1_env", "agents", "baselines")


def copied(folder: Path) -> Path:
    """The tree without its history: `git` must not look for another one above."""
    for name in CODE:
        shutil.copytree(ROOT / name, folder / name)  # with what is compiled, which knows its source by time and size
    return folder


def apply(patch: Path, tree: Path, *options: str) -> None:
    environment = os.environ | {"GIT_CEILING_DIRECTORIES": str(tree.parent)}
    command = ["git", "apply", *options, str(patch)]
    done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{patch.name} must be made anew: {done.stderr}"


def failures(tree: Path, folder: Path, bases: Path) -> dict[str, str]:
    """Of the checks, in a tree, by the name of the change. In a fork of this process, which has loaded torch and TRL,
    and forgets this package."""
    folder.mkdir()
    said = folder.with_suffix(".txt")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # newer Pythons warn of forks beside threads
        child = os.fork()
    if child == 0:
        try:
            for name in [name for name in sys.modules if name.partition(".")[0] in ("codea1_env", "training_runs")]:
                del sys.modules[name]
            warnings.simplefilter("ignore")
            os.environ |= {"PYTHONPATH": str(tree), "CODEA1_CACHE": str(bases)}
            os.chdir(tree)
            sys.path.insert(0, str(tree))
            sys.argv = ["checks.py", str(folder)]
            with said.open("w") as file, contextlib.redirect_stdout(file), contextlib.redirect_stderr(file):
                try:
                    package = importlib.import_module("codea1_env")
                    assert package.__file__ == str(tree / "codea1_env" / "__init__.py")
                    runpy.run_path(str(ROOT / "tests" / "changes" / "checks.py"), run_name="__main__")
                except BaseException:
                    traceback.print_exc()
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    text = said.read_text()
    assert text.rstrip().endswith("}"), text[-2000:]
    found: dict[str, str] = json.loads(text.splitlines()[-1])
    return found


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As it is."""
    return copied(tmp_path_factory.mktemp("tree"))


def test_there_are_ten_changes_and_none_touches_more_than_two_files() -> None:
    assert len(PATCHES) >= 10
    for patch in PATCHES:
        files = re.findall(r"^\+\+\+ b/(\S+)$", patch.read_text(encoding="utf-8"), re.MULTILINE)
        assert 1 <= len(files) <= 2, patch.name
        assert {file.split("/")[0] for file in files} <= set(CODE), patch.name


def test_the_page_that_says_where_each_change_is_made_names_the_patches_and_what_is_there() -> None:
    page = (ROOT / "docs" / "layout.md").read_text(encoding="utf-8")
    table = re.search(r"^## To change, look in\n(.*?)^## ", page, re.DOTALL | re.MULTILINE)
    assert table
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table[1].splitlines() if "`" in line]
    rows = [row for row in rows if len(row) == 3]
    assert len(rows) >= 20
    assert sorted(row[2].strip("`") for row in rows if row[2]) == [patch.stem for patch in PATCHES]
    named = [path for row in rows for path in re.findall(r"`((?:codea1_env|agents|baselines)/[\w./]*)`", row[1])]
    assert [path for path in named if not (ROOT / path).exists()] == []
    for row in rows:  # what a patch touches stands in its line
        if row[2]:
            patch = (ROOT / "tests" / "changes" / f"{row[2].strip('`')}.patch").read_text(encoding="utf-8")
            touched = re.findall(r"^\+\+\+ b/(\S+)$", patch, re.MULTILINE)
            places = tuple(re.findall(r"`([\w./]+/[\w./]*)`", row[1]))
            assert [file for file in touched if not file.startswith(places)] == [], row


@pytest.mark.parametrize("patch", PATCHES, ids=lambda patch: patch.stem)
def test_it_applies_to_the_tree_as_it_is(patch: Path, tree: Path) -> None:
    apply(patch, tree, "--check")


def test_without_them_nothing_does(
    tmp_path: Path, bases: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In this process, which has loaded what the checks need."""
    monkeypatch.setenv("CODEA1_CACHE", str(bases))
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr("sys.argv", ["checks.py", str(tmp_path)])
    runpy.run_path(str(ROOT / "tests" / "changes" / "checks.py"), run_name="__main__")
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert sorted(found) == [patch.stem for patch in PATCHES]
    assert (tmp_path / "duel" / "summary.json").is_file(), "what they look at was made"


def test_all_of_them_together_do_what_they_say(tmp_path: Path, bases: Path) -> None:
    changed = copied(tmp_path / "tree")
    for patch in PATCHES:
        apply(patch, changed)
    assert failures(changed, tmp_path / "runs", bases) == {}
