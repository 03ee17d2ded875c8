"""What all commands share: their arguments, and the checks of paths and numbers that they take.

Exit codes are those of docs/command-line.md. Does not run anything.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import textwrap
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeAlias

from codea1_env.checks import json_object, require
from codea1_env.errors import ConfigurationError
from codea1_env.problems import Problem, read_problems
from codea1_env.records.journal import Journal
from codea1_env.sandbox import BACKENDS
from codea1_env.sandbox.protocol import MOST_WORKERS
from codea1_env.terminal import Parser
from codea1_env.whole_files import claimed

DONE, FAILED, MISUSED, FAULT = 0, 1, 2, 70
"""Done; a part of the work failed; wrong arguments or input; a fault of ours. Others are in `starting.py`."""
WIDTH = 100

Commands: TypeAlias = (
    "argparse._SubParsersAction[Parser]"  # the type of what `add_subparsers` returns has no other name
)


def add_command(commands: Commands, name: str, *, summary: str, description: str = "", examples: str = "") -> Parser:
    """A command with help of one form: `summary` in the list of commands, a description, arguments, then examples."""
    parser = commands.add_parser(
        name,
        help=summary,
        description=textwrap.fill(description or f"{summary[0].upper()}{summary[1:]}.", WIDTH),
        epilog=examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add_debug(parser)
    return parser


def add_debug(parser: argparse.ArgumentParser) -> None:
    # Suppressed: what was given before the command's name must not be undone by the command's default.
    parser.add_argument("--debug", action="store_true", default=argparse.SUPPRESS, help="show where an error came from")


def json_arguments(text: str) -> dict[str, Any]:
    """The type of an option that holds the arguments of a part of one's own."""
    try:
        return json_object(text, "arguments", ConfigurationError)
    except ConfigurationError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def json_value(text: str) -> object:
    """The type of an option that holds JSON of any kind; whoever uses it says what it must be."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def add_actions(parser: Parser) -> Commands:
    """The actions of a command that has several, such as `codea1 pools build`."""
    return parser.add_subparsers(dest="action", required=True, metavar="ACTION")


def add_sandbox(parser: argparse.ArgumentParser, runs: str = "programs", *, workers: bool = True) -> None:
    """The arguments `--sandbox` and, where several processes can be asked for, `--workers`."""
    parser.add_argument("--sandbox", choices=BACKENDS, default="local", help=f"where {runs} run (default: local)")
    if workers:
        parser.add_argument("--workers", metavar="W", type=int, default=1, help="processes of the sandbox, 1 to "
                            f"{MOST_WORKERS} (default: 1)")  # fmt: skip


def require_at_least_one(options: argparse.Namespace, *names: str, **flags: str) -> None:
    """Raise ConfigurationError unless each of these, where it is given, is 1 or more, and what any machine could make.
    `flags`: those that are called otherwise than their names."""
    for name, flag in (*((name, name.replace("_", "-")) for name in names), *flags.items()):
        value = getattr(options, name)
        require(value is None or value >= 1, f"--{flag}", "be at least 1", value)
        most = {"workers": MOST_WORKERS, "arenas": MOST_WORKERS, "samples": 100_000}.get(name)
        require(most is None or value is None or value <= most, f"--{flag}", f"be at most {most}", value)


def require_file(name: str, path: Path) -> None:
    """Raise ConfigurationError unless there is a file to read. `name`: of the argument."""
    if not path.is_file():
        raise ConfigurationError(f"{name} must be a file, got {path}{' (a directory)' if path.is_dir() else ''}")


def problems_in(name: str, path: Path) -> list[Problem]:
    """Those of a problem file, at least one. Raises ConfigurationError and what reading raises."""
    require_file(name, path)
    problems = read_problems(path)
    if not problems:
        raise ConfigurationError(f"{name} must hold a problem, got none in {path}")
    return problems


def require_place(name: str, path: Path, *others: Path | None) -> None:
    """Raise ConfigurationError unless a file can be written there that is none of `others`. `name`: of the argument."""
    if path == Path("-"):
        raise ConfigurationError(f"{name} must be a file, got -; give the path of a file")
    require(not path.is_dir() and path.absolute().parent.is_dir(), name, "be a file in an existing directory", path)
    if path.exists() and not path.is_file():
        raise ConfigurationError(f"{name} must be a file, which is replaced, or a new one, got {path} (a device?)")
    for other in others:
        if other is not None and _is_same(path, other):
            raise ConfigurationError(
                f"{name} must be another file than the input and the other outputs, got {path} for two of them"
            )


def require_page(path: Path, *others: Path | None) -> None:
    """Likewise for --output where it is a page. Its ending keeps it off a run's own files, such as metrics.jsonl."""
    require_place("--output", path, *others)
    require(path.suffix == ".html", "--output", "end with .html", path)


def _is_same(path: Path, other: Path) -> bool:
    """Whether both name one file, be it there or not."""
    is_link = path.exists() and other.exists() and path.samefile(other)
    return is_link or os.path.realpath(path) == os.path.realpath(other)


def claim(*places: tuple[str, Path | None]) -> ExitStack:
    """Until it is closed no other run writes to these, each with its argument's name. Raises ConfigurationError."""
    with ExitStack() as stack:
        for name, path in places:
            if path is not None:
                stack.enter_context(claimed(name, path))
        return stack.pop_all()


def say_going_on(journal: Journal) -> None:
    """Say so where an earlier start has done a part."""
    if journal.found:
        lines = "1 line" if journal.found == 1 else f"{journal.found} lines"
        say(f"going on with {journal.path}: {lines} of it were there")


def say(message: str) -> None:
    """A line about the work, on standard error."""
    print(message, file=sys.stderr, flush=True)
