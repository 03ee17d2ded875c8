"""How the command line of a recipe ends that is not run. Not a test module."""

from __future__ import annotations

import pytest

from codea1_env.configuration.arguments import parse_arguments


def ended(capsys: pytest.CaptureFixture[str], *argv: str, status: int = 2, recipe: str = "code_a1") -> str:
    """What it says at its end with that status: on standard error what it refuses."""
    with pytest.raises(SystemExit) as stopped:
        parse_arguments("What it does.", list(argv), recipe)
    shown = capsys.readouterr()
    assert stopped.value.code == status, shown.err
    return shown.err if status else shown.out
