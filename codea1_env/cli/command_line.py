"""The command `codea1`: which commands there are, and how all of them end.

Every error is one line that says must, got and, where it helps, fix; --debug shows where it came from. Exit codes, and
what goes to which stream, are in docs/command-line.md.
"""

from __future__ import annotations

import importlib
import sys
import traceback
from collections.abc import Sequence
from typing import TYPE_CHECKING

from codea1_env.starting import CLOSED, INTERRUPTED, interrupts_as_usual, lost_output

if TYPE_CHECKING:
    from codea1_env.terminal import Parser


COMMANDS = (
    ("play", "play", "play a game yourself against a scripted player"),
    ("score", "score", "score recorded outputs of any LLMs"),
    ("replay", "replay", "play recorded games again and compare the rewards"),
    ("tournament", "tournament", "play coders against testers and rate them"),
    ("bench", "bench", "enter the benchmark: run, check and compare entries"),
    ("eval", "evaluate", "measure one player on problem sets, as the paper does"),
    ("view", "view", "show duels on one page, and explain every reward"),
    ("report", "report", "make one page of training runs, side by side"),
    ("data", "data", "check problem files, import public sets, choose questions"),
    ("pools", "pools", "make pools of the discrete game"),
    ("serve", "serve", "judge programs over HTTP, for trainers elsewhere"),
    ("sandbox", "sandbox", "prepare the sandboxes"),
    ("doctor", "sandbox", "say which guarantees of the sandbox hold on this machine"),
    ("audit", "sandbox", "find out whether a grader can be fooled"),
)
"""Names, modules here, and summaries."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit code. Raises SystemExit for --help, --version and arguments that cannot be read."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    try:
        parser = _parser(given)
        interrupts_as_usual()
        options = parser.parse_args(given)
        status = int(options.run(options))
        if lost := lost_output():  # here, where it is known how to say it
            raise lost
        return status
    except SystemExit:  # --help, --version
        if lost := lost_output():
            return _ended(lost, given)
        raise
    except KeyboardInterrupt as error:
        return _ended(error, given)
    except OSError as error:
        return _ended(lost_output() or error, given)
    except Exception as error:
        return _ended(error, given)


def _ended(error: BaseException, given: Sequence[str]) -> int:
    """Say why, in one line; the exit code."""
    from codea1_env.class_paths import as_own
    from codea1_env.cli.common import FAILED, FAULT, MISUSED
    from codea1_env.errors import Codea1Error, ConfigurationError, OwnCodeFailed, told

    if isinstance(error, Exception) and isinstance(own := as_own(error), OwnCodeFailed):
        print(own.args[1], end="", file=sys.stderr)  # whoever wrote that code needs it
        error = own
    elif "--debug" in given:
        traceback.print_exception(error)
    message = told(error)
    if isinstance(error, KeyboardInterrupt):
        status, message = INTERRUPTED, "; ".join(["interrupted", *getattr(error, "__notes__", ())])
    elif isinstance(error, BrokenPipeError):
        status, message = CLOSED, ""
    elif isinstance(error, ConfigurationError):
        status = MISUSED
    elif isinstance(error, Codea1Error | OSError | ImportError):
        status = FAILED
    else:
        status = FAULT
        message = f"a fault of codea1, not yours: {type(error).__name__}: {message}; --debug shows where"
    if message:
        print(f"codea1: {message}", file=sys.stderr)
    return status


def _parser(given: Sequence[str]) -> Parser:
    """Of the command that is given, whose module alone is imported; of the others, the names and summaries."""
    from codea1_env import __version__
    from codea1_env.cli.common import add_command, add_debug
    from codea1_env.judging.version import VERSION
    from codea1_env.terminal import Parser

    parser = Parser(
        prog="codea1",
        description="The game of code against tests. Each command has --help with examples.",
        epilog="Exit codes: 0 success, 1 part of the work failed, 2 wrong arguments, 130 Ctrl-C or SIGTERM.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"codea1 {__version__}, judge {VERSION}")
    add_debug(parser)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    asked = next((word for word in given if not word.startswith("-")), None)
    for name, module_name, summary in COMMANDS:
        if name != asked:
            add_command(commands, name, summary=summary)
            continue
        module = importlib.import_module(f"codea1_env.cli.{module_name}")
        told = {}
        for text in ("description", "examples"):  # the command's own, where a module has several
            own = f"{name}_{text}".upper()
            told[text] = getattr(module, own, getattr(module, text.upper(), ""))
        getattr(module, f"add_{name}")(add_command(commands, name, summary=summary, **told))
    return parser
