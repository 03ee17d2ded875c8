"""Ctrl-C while a command starts: the exit code is 130 and there is no traceback, whatever is being imported."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# Python imports sitecustomize before anything else. This one sends Ctrl-C when a certain module is about to come.
INTERRUPTER = """
import os, signal, sys

class Interrupter:
    def find_spec(self, name, path=None, target=None):
        if name == os.environ["INTERRUPTED_AT"]:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)

sys.modules.pop(os.environ["INTERRUPTED_AT"], None)
sys.meta_path.insert(0, Interrupter())
"""
CONSOLE_SCRIPT = "import sys\nfrom codea1_env.cli import main\nif __name__ == '__main__':\n    sys.exit(main())\n"


def interrupted(command: list[str], module: str, directory: Path) -> tuple[int, str, str]:
    (directory / "sitecustomize.py").write_text(INTERRUPTER)
    environment = os.environ | {"PYTHONPATH": f"{directory}{os.pathsep}{ROOT}", "INTERRUPTED_AT": module}
    done = subprocess.run(
        [sys.executable, *command], cwd=directory, env=environment, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    "module",
    [
        "__future__",
        "codea1_env.registration",
        "numpy.random",
        "pettingzoo",
        "argparse",
        "codea1_env.cli.sandbox",
        "codea1_env.sandbox",
    ],
)
def test_ctrl_c_while_codea1_starts_is_one_line_and_130(module: str, tmp_path: Path) -> None:
    assert interrupted(["-m", "codea1_env.cli", "doctor"], module, tmp_path) == (130, "", "codea1: interrupted\n")


def test_ctrl_c_while_the_installed_command_starts_is_one_line_and_130(tmp_path: Path) -> None:
    (tmp_path / "codea1").write_text(CONSOLE_SCRIPT)
    command = [str(tmp_path / "codea1"), "doctor"]
    for module in ("codea1_env.registration", "codea1_env.cli.sandbox"):
        assert interrupted(command, module, tmp_path) == (130, "", "codea1: interrupted\n")


RECIPES = ["agents/train_grpo.py", *sorted(f"baselines/{path.name}" for path in (ROOT / "baselines").glob("*.py"))]


@pytest.mark.parametrize(
    ("recipe", "module"),
    [(RECIPES[0], "gymnasium"), *((recipe, "codea1_env.configuration.presets") for recipe in RECIPES)],
)
def test_ctrl_c_while_a_recipe_starts_is_one_line_and_130(recipe: str, module: str, tmp_path: Path) -> None:
    command = [str(ROOT / recipe), "--preset", "smoke", "--dry-run"]
    assert interrupted(command, module, tmp_path) == (130, "", "codea1: interrupted\n")


def test_ctrl_c_in_a_program_that_imports_the_package_stays_its_own(tmp_path: Path) -> None:
    interrupt = "try:\n    signal.raise_signal(signal.SIGINT)\nexcept KeyboardInterrupt:\n    print('own')\n"
    own = f"import signal, codea1_env\n{interrupt}"
    (tmp_path / "mine.py").write_text(own)
    assert interrupted(["mine.py"], "none", tmp_path) == (0, "own\n", "")
    code, _, said = interrupted(["mine.py"], "gymnasium", tmp_path)
    assert (code, "KeyboardInterrupt" in said) == (-2, True)


def test_sigterm_ends_a_command_as_ctrl_c_does_and_a_fork_of_it_as_usual(tmp_path: Path) -> None:
    """A process that is forked answers to its parent, and one whose Ctrl-C is ignored may still be asked to end."""
    script = """
import os, signal, sys
from codea1_env import starting

starting.interrupts_as_usual()
if not (child := os.fork()):
    signal.raise_signal(signal.SIGTERM)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
try:
    signal.raise_signal(signal.SIGTERM)
except KeyboardInterrupt:
    signal.raise_signal(signal.SIGTERM)
    print("ended once")
"""
    (tmp_path / "codea1").write_text(script)
    for preamble in ("", "trap '' INT; "):
        command = ["sh", "-c", f'{preamble}exec "$0" "$1"', sys.executable, str(tmp_path / "codea1")]
        environment = os.environ | {"PYTHONPATH": str(ROOT)}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, "-15\nended once\n", "")
