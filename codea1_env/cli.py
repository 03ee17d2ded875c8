"""The command `codea1`.

Exit codes: 0 done, 1 a line could not be scored or the sandbox is not safe, 2 wrong arguments, 130 interrupted.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from codea1_env import __version__, cli_eval, cli_play, cli_replay, cli_report, cli_tournament
from codea1_env.bounded_cache import bytes_of
from codea1_env.cli_data import add_data
from codea1_env.cli_pools import add_pools
from codea1_env.doctor import KNOWN_BACKENDS, as_json, as_text, examine
from codea1_env.errors import Codea1Error, ConfigurationError
from codea1_env.judge import EXECUTION_CACHE_MB
from codea1_env.mistake_book import MistakeBook
from codea1_env.rewards import RewardConfig
from codea1_env.sandbox import BACKENDS
from codea1_env.sandbox.image import DEFAULT_IMAGE, build_image
from codea1_env.sandbox.protocol import PACKAGES
from codea1_env.scoring import ScoringPlan, score_lines

_SCORE_EXAMPLES = """\
examples:
  codea1 score recorded.jsonl -o scored.jsonl
  codea1 score recorded.jsonl -o scored.jsonl --workers 2 --book book.jsonl

A line that cannot be scored is reported with its number, here and in the output as {"line": n, "error": "..."};
the others are scored and the exit code is 1. The output stands under OUT.partial until it is complete.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit code."""
    parser = argparse.ArgumentParser(prog="codea1", description="The game of code against tests.")
    parser.add_argument("--version", action="version", version=f"codea1 {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_score(commands.add_parser(
        "score",
        help="score recorded outputs of any LLMs",
        description="Score recorded outputs of any LLMs: every suite against its program, both seats' rewards.",
        epilog=_SCORE_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    ))  # fmt: skip
    _add_doctor(commands.add_parser(
        "doctor",
        help="say which guarantees of the sandbox hold on this machine",
        description="For each sandbox backend: every guarantee, active or not and why, and ten attacks of our own with "
        "what they came to. Exit code 1 when the default backend is not safe: a required layer is missing, or an "
        "attack succeeded.",
    ))  # fmt: skip
    _add_sandbox(commands.add_parser("sandbox", help="prepare the sandboxes", description="Prepare the sandboxes."))
    add_data(commands.add_parser("data", help="problem files of public problem sets", description="Problem files."))
    add_pools(
        commands.add_parser("pools", help="pools of the discrete game", description="Pools of the discrete game.")
    )
    cli_replay.add_replay(commands.add_parser(
        "replay",
        help="play recorded games again and compare the rewards",
        description=cli_replay.DESCRIPTION,
        epilog=cli_replay.EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    ))  # fmt: skip
    cli_tournament.add_tournament(commands.add_parser(
        "tournament",
        help="coders against testers, with ratings",
        description=cli_tournament.DESCRIPTION,
        epilog=cli_tournament.EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    ))  # fmt: skip
    cli_play.add_play(commands.add_parser(
        "play",
        help="play a game yourself against a scripted tester or coder",
        description=cli_play.DESCRIPTION,
        epilog=cli_play.EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    ))  # fmt: skip
    cli_report.add_report(commands.add_parser(
        "report",
        help="a page of training runs, side by side",
        description=cli_report.DESCRIPTION,
        epilog=cli_report.EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    ))  # fmt: skip
    cli_eval.add_eval(commands.add_parser(
        "eval",
        help="one player measured on problem sets, as the paper's tables are",
        description=cli_eval.DESCRIPTION,
        epilog=cli_eval.EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    ))  # fmt: skip
    options = parser.parse_args(arguments)
    try:
        return int(options.run(options))
    except KeyboardInterrupt:
        print("codea1: interrupted", file=sys.stderr)
        return 130
    except ConfigurationError as error:
        print(f"codea1: {error}", file=sys.stderr)
        return 2
    except (Codea1Error, OSError, ImportError) as error:
        print(f"codea1: {error}", file=sys.stderr)
        return 1


def _add_sandbox(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    build = actions.add_parser(
        "build-image",
        help="make the image of the Docker sandbox",
        description="Make the image of the Docker sandbox: on this machine alone, as root, with debootstrap (about a "
        "minute the first time, seconds afterwards), or from a registry's Python image.",
    )
    build.add_argument("--tag", default=DEFAULT_IMAGE, help=f"the image's name (default: {DEFAULT_IMAGE})")
    build.add_argument("--from-dockerfile", action="store_true", help="take the base that the Dockerfile names from "
                       "its registry instead of making one here")  # fmt: skip
    build.add_argument("--with", dest="packages", nargs="+", choices=PACKAGES, default=[], metavar="PACKAGE",
                       help=f"packages for programs that may import them ({', '.join(PACKAGES)}), copied from this "
                       "machine's Python, which must be of the image's version")  # fmt: skip
    build.set_defaults(run=_build_image)


def _build_image(options: argparse.Namespace) -> int:
    packages = tuple(dict.fromkeys(options.packages))
    image_id = build_image(options.tag, from_dockerfile=options.from_dockerfile, packages=packages, say=_say)
    _say(f"made {options.tag} ({image_id})")
    return 0


def _say(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


def _add_score(parser: argparse.ArgumentParser) -> None:
    default = RewardConfig()
    parser.set_defaults(run=_score)
    parser.add_argument("input", metavar="IN.jsonl", type=Path, help="recorded matches, one JSON object a line")
    parser.add_argument("-o", "--output", metavar="OUT.jsonl", type=Path, required=True, help="where the scores go")
    parser.add_argument("--sandbox", choices=BACKENDS, default="local", help="where programs run (default: local)")
    parser.add_argument("--workers", metavar="W", type=int, default=1, help="processes that score, >= 1 (default: 1)")
    parser.add_argument(
        "--fidelity", choices=("strict", "paper"), default=default.fidelity, help="how suites are read and counted: "
        "strict takes the first K asserts and == only, paper follows the released code (default: strict)",
    )  # fmt: skip
    parser.add_argument("--alpha", type=float, default=default.alpha, help="weight of validity in the tester's reward, "
                        f"in [0, 1] (paper and default: {default.alpha})")  # fmt: skip
    parser.add_argument("--suite-size", metavar="K", type=int, default=default.suite_size,
                        help=f"asserts that a suite should hold (paper and default: {default.suite_size})")  # fmt: skip
    parser.add_argument("--tester-reward", choices=("code-a1", "utrl", "cure", "skill"), default=default.tester_reward,
                        help="what a suite is paid, see docs/options.md (default: code-a1)")  # fmt: skip
    parser.add_argument("--coder-tests", choices=("own", "union"), default=default.coder_tests, help="judge a program "
                        "by its own suites, or by all of its question (paper and default: own)")  # fmt: skip
    parser.add_argument("--oracle", choices=("reference", "golden", "majority", "dual"), default=default.oracle,
                        help="what decides the value of a call: the reference, the line's golden_tests, most of its "
                        "programs, or their consensus with the tests (paper and default: reference)")  # fmt: skip
    parser.add_argument("--reverse-order", action="store_true", help="run what a program that may keep state has "
                        "passed again in reverse order: passes owed to earlier calls are found out")  # fmt: skip
    parser.add_argument("--execution-cache-mb", metavar="MB", type=int, default=EXECUTION_CACHE_MB, help="MiB of "
                        "outcomes that each process remembers: what a program was asked before is not run again; no "
                        f"score depends on it; 0 turns it off (default: {EXECUTION_CACHE_MB})")  # fmt: skip
    parser.add_argument("--book", metavar="PATH", type=Path, help="Mistake Book to replay from; updated in the order "
                        "of the input and written back at the end; made where it does not exist")  # fmt: skip


def _add_doctor(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=_doctor)
    parser.add_argument("--json", action="store_true", help="one JSON object instead of tables")
    parser.add_argument("--backend", choices=KNOWN_BACKENDS, action="append", dest="backends", help="look at this one "
                        "only; may be given several times (default: all)")  # fmt: skip


def _doctor(options: argparse.Namespace) -> int:
    backends = dict.fromkeys(options.backends or KNOWN_BACKENDS)
    report = examine(tuple(backends))
    print(as_json(report) if options.json else as_text(report))
    return 0 if report.safe else 1


def _score(options: argparse.Namespace) -> int:
    if options.workers < 1:
        raise ConfigurationError(f"--workers must be at least 1, got {options.workers}")
    bytes_of("--execution-cache-mb", options.execution_cache_mb)
    if options.input.is_dir():
        raise ConfigurationError(f"{options.input} must be a file, got a directory")
    for path in (options.output, options.book):  # they are replaced: a device or a pipe must not be
        if path is not None and path.exists() and not path.is_file():
            raise ConfigurationError(f"{path} must be a regular file or not exist, got something else")
    if not options.input.exists():
        raise ConfigurationError(f"the input must exist, got {options.input}")
    if not options.output.resolve().parent.is_dir():
        raise ConfigurationError(f"--output must be a file in an existing directory, got {options.output}")
    if options.output.exists() and options.output.samefile(options.input):
        raise ConfigurationError(f"--output must be another file than the input, got {options.output}")
    config = RewardConfig(
        alpha=options.alpha,
        suite_size=options.suite_size,
        fidelity=options.fidelity,
        tester_reward=options.tester_reward,
        coder_tests=options.coder_tests,
        oracle=options.oracle,
    )
    plan = ScoringPlan(
        config,
        options.sandbox,
        options.workers,
        reverse_order=options.reverse_order,
        execution_cache_mb=options.execution_cache_mb,
    )
    book = None
    if options.book is not None:
        book = MistakeBook.load(options.book) if options.book.exists() else MistakeBook()
    partial = options.output.with_name(options.output.name + ".partial")
    failed = 0
    with open(options.input, "rb") as source, open(partial, "wb", buffering=0) as target:
        progress = _Progress(os.fstat(source.fileno()).st_size)
        for scored in score_lines(progress.reading(source), plan, book):
            _append(target, scored.output)
            if scored.error:
                failed += 1
                progress.say(f"line {scored.number}: {scored.error}")
            progress.advance(scored.verdicts)
        os.fsync(target.fileno())
    partial.replace(options.output)
    if book is not None:
        try:
            book.save(options.book)
        except OSError as error:
            raise OSError(f"{options.book} must be writable, got: {error}; it is as it was") from error
    progress.finish(f"wrote {options.output}" + (f", {failed} lines could not be scored" if failed else ""))
    return 1 if failed else 0


def _append(target: io.FileIO, line: bytes) -> None:
    """The whole line or nothing of it: where the disk is full, what was written before stays of use."""
    start = target.tell()
    left = memoryview(line)
    try:
        while left:
            left = left[target.write(left) :]
    except OSError as error:
        target.truncate(start)
        raise OSError(
            f"{target.name} must be writable, got: {error.strerror}; the lines scored so far are in it"
        ) from error


class _Progress:
    """A bar on a terminal, a plain line every ten seconds elsewhere; on stderr."""

    def __init__(self, size: int) -> None:
        self._size, self._read, self._lines, self._verdicts = size, 0, 0, 0
        self._is_terminal = sys.stderr.isatty()
        self._began = self._shown = time.monotonic()

    def reading(self, source: BinaryIO) -> Iterator[bytes]:
        """The lines of `source`, counting bytes."""
        for line in source:
            self._read += len(line)
            yield line

    def advance(self, verdicts: int) -> None:
        self._lines += 1
        self._verdicts += verdicts
        now = time.monotonic()
        if now - self._shown >= (0.2 if self._is_terminal else 10.0):
            self._shown = now
            self._show(now)

    def _show(self, now: float) -> None:
        elapsed = max(now - self._began, 1e-9)
        share = self._read / self._size if self._size else 1.0
        left = elapsed * (1 - share) / share if share else 0.0
        text = (
            f"{100 * share:3.0f} %  {self._lines} lines  {self._verdicts} verdicts  "
            f"{self._verdicts / elapsed:.0f} verdicts/s  {left:.0f} s left"
        )
        if self._is_terminal:
            filled = int(24 * share)
            print(f"\r\x1b[K[{'#' * filled}{'.' * (24 - filled)}] {text}", end="", file=sys.stderr, flush=True)
        else:
            print(text, file=sys.stderr, flush=True)

    def say(self, message: str) -> None:
        """One line of its own."""
        print(("\r\x1b[K" if self._is_terminal else "") + message, file=sys.stderr, flush=True)

    def finish(self, message: str) -> None:
        elapsed = time.monotonic() - self._began
        self.say(f"{self._lines} lines, {self._verdicts} verdicts in {elapsed:.1f} s; {message}")


if __name__ == "__main__":
    sys.exit(main())
