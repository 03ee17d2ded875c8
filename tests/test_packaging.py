"""What is declared is what is needed. What installs, and works where nothing else is: `make release-check`."""

import ast
import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PACKAGE = ROOT / "codea1_env"
OF_EXTRAS = ("training", "adapters", "players/hugging_face.py", "sandbox/inside")


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
    assert set().union(*map(imported_at_once, modules)) == names(PROJECT["dependencies"])
