"""The command `codea1 score`: recorded outputs of any LLMs to rewards, on any number of processes."""

from __future__ import annotations

import argparse
import dataclasses
import os
import shutil
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from codea1_env.checks import require
from codea1_env.cli.common import (
    add_sandbox,
    claim,
    json_arguments,
    json_value,
    require_at_least_one,
    require_place,
    say,
    say_going_on,
)
from codea1_env.errors import ConfigurationError, about
from codea1_env.judging.bounded_cache import bytes_of
from codea1_env.judging.judge import EXECUTION_CACHE_MB
from codea1_env.mistake_book.book import MistakeBook
from codea1_env.mistake_book.parts import INDEX
from codea1_env.records.journal import Journal
from codea1_env.records.score_stream import ScoringPlan, open_score_journal, outputs, score_onwards
from codea1_env.rewards.code_a1 import CODER_REWARDS, TESTER_REWARDS, RewardConfig
from codea1_env.terminal import Progress
from codea1_env.whole_files import whole_file

_PARTS = 256
"""Of a Mistake Book that begins in an empty directory."""
DESCRIPTION = "Score recorded outputs of any LLMs: every suite against its program, both seats' rewards."
EXAMPLES = """\
examples:
  codea1 score recorded.jsonl -o scored.jsonl
  codea1 score recorded.jsonl -o scored.jsonl --workers 2 --book book.jsonl

A line that cannot be scored is reported with its number, here and in the output as {"line": n, "error": "..."};
the others are scored and the exit code is 1. The journal, OUT.partial, has every scored line until the output is
complete. After an interruption the same command continues from it.
"""


def add_score(parser: argparse.ArgumentParser) -> None:
    default = RewardConfig()
    parser.set_defaults(run=_score)
    parser.add_argument("input", metavar="IN.jsonl", type=Path, help="recorded matches, one JSON object a line")
    parser.add_argument("-o", "--output", metavar="OUT.jsonl", type=Path, required=True, help="the file to write")
    add_sandbox(parser)
    parser.add_argument("--arenas", metavar="N", type=int, help="independent processes that score lines of different "
                        "questions, each with a sandbox of W/N processes; with --sandbox ray they run on "
                        "the cluster's nodes. The output does not depend on it (default: W)")  # fmt: skip
    parser.add_argument(
        "--fidelity", choices=("strict", "wide", "paper"), default=default.fidelity, help="how suites are read and "
        "counted: strict takes the first K asserts and == only, wide reads functions, loops and relations as well, "
        "paper follows the released code (default: strict)",
    )  # fmt: skip
    parser.add_argument("--trim", action="store_true", help="before a program runs, reduce it to its entry point "
                        "and what that needs, as EvalPlus does (default: it runs as it was written)")  # fmt: skip
    parser.add_argument("--alpha", type=float, default=default.alpha, help="weight of validity in the tester's reward, "
                        f"in [0, 1] (paper and default: {default.alpha})")  # fmt: skip
    parser.add_argument("--suite-size", metavar="K", type=int, default=default.suite_size,
                        help=f"asserts that a suite should hold (paper and default: {default.suite_size})")  # fmt: skip
    parser.add_argument("--tester-reward", metavar="NAME", default=default.tester_reward, help="reward of a suite: "
                        f"{', '.join(TESTER_REWARDS)}, or MODULE:CLASS of your own, see docs/training.md (default: "
                        f"{default.tester_reward})")  # fmt: skip
    parser.add_argument("--tester-reward-args", metavar="JSON", type=json_arguments, default={}, help="arguments of "
                        "your own tester reward, a JSON object")  # fmt: skip
    parser.add_argument("--coder-reward", metavar="NAME", default=default.coder_reward, help="reward of a program: "
                        f"{', '.join(CODER_REWARDS)}, or MODULE:CLASS of your own (default: what goes with the tester "
                        "reward)")  # fmt: skip
    parser.add_argument("--coder-reward-args", metavar="JSON", type=json_arguments, default={}, help="arguments of "
                        "your own coder reward, a JSON object")  # fmt: skip
    parser.add_argument("--accept", metavar="MODULE:CLASS", help="your class that decides by a program's text whether "
                        "it may run (default: every program may)")  # fmt: skip
    parser.add_argument(
        "--accept-args", metavar="JSON", type=json_arguments, default={}, help="arguments of --accept, a JSON object"
    )
    parser.add_argument("--compare", metavar="JSON", type=json_value, default=0.0, help="allowed error of values: a "
                        "number for floats, both relative and absolute, or a mapping by type, see "
                        "docs/your-problems.md (default: 0)")  # fmt: skip
    parser.add_argument("--time-limit", metavar="JSON", type=json_value, help="time limit of a call for lines that "
                        'state none (default: 1 s). {"times_reference": 5, "at_least": 1} allows five times the '
                        "reference's slowest test of the line, and 1 s at least")  # fmt: skip
    parser.add_argument(
        "--memory-mb",
        metavar="MIB",
        type=int,
        help="memory limit of a program for lines that state none (default: 1024)",
    )
    parser.add_argument("--coder-tests", choices=("own", "union"), default=default.coder_tests, help="judge a "
                        "program by its own suites, or by all of its question's (paper and default: own)")  # fmt: skip
    parser.add_argument("--oracle", choices=("reference", "golden", "majority", "dual"), default=default.oracle,
                        help="what decides the right value of a call: the reference, the line's golden_tests, most of "
                            "its "
                        "programs, or their consensus with the tests (paper and default: reference)")  # fmt: skip
    parser.add_argument("--execution-cache-mb", metavar="MIB", type=int, default=EXECUTION_CACHE_MB, help="MiB of "
                        "results that each process remembers, so that no call of a program runs twice. No score "
                        f"depends on it; 0 turns it off (default: {EXECUTION_CACHE_MB})")  # fmt: skip
    parser.add_argument("--details", action="store_true", help="also write the question, the programs, what they "
                        "returned and what each test earned, for `codea1 view`")  # fmt: skip
    parser.add_argument("--book", metavar="PATH", type=Path, help="the Mistake Book, made if it does not exist: "
                        "its tests are replayed. The command updates it in the order of the input and saves it at the "
                        "end. A large book is a directory; only the needed parts of it are read and "
                        "written")  # fmt: skip


def _score(options: argparse.Namespace) -> int:
    require_at_least_one(options, "workers", "arenas")
    bytes_of("--execution-cache-mb", options.execution_cache_mb)
    if options.input.is_dir():
        raise ConfigurationError(f"{options.input} must be a file, got a directory")
    require(options.input.exists(), "the input", "exist", options.input)
    require_place("--output", options.output, options.input)
    if options.output.is_symlink():  # the link stays, what it names is written
        options.output = Path(os.path.realpath(options.output))
    partial = options.output.with_name(options.output.name + ".partial")
    require_place("OUT.partial", partial, options.input)
    if options.book is not None and options.book.is_dir():
        is_book = (options.book / INDEX).is_file() or not any(options.book.iterdir())
        require(is_book, "--book", "be a file, the directory of a book or an empty one", str(options.book))
    elif options.book is not None:
        require_place("--book", options.book, options.input, options.output, partial)
    fields = {each.name for each in dataclasses.fields(RewardConfig)}
    config = RewardConfig(**{name: value for name, value in vars(options).items() if name in fields})
    config.require_parts()  # one that cannot be loaded is an error of the command's, not of each line
    usual = RewardConfig()
    weighs = options.tester_reward not in TESTER_REWARDS or options.tester_reward == usual.tester_reward
    if options.alpha != usual.alpha and not weighs:
        raise ConfigurationError(
            f"--alpha must come with --tester-reward code-a1 or one of your own, got {options.tester_reward}, which "
            "has no such weight"
        )
    plan = ScoringPlan(
        config,
        options.sandbox,
        options.workers,
        options.arenas,
        execution_cache_mb=options.execution_cache_mb,
        details=options.details,
    )
    with claim(("--output", options.output), ("--book", options.book)):
        return _score_all(options, plan, partial)


def _score_all(options: argparse.Namespace, plan: ScoringPlan, partial: Path) -> int:
    book = None if options.book is None else _book(options.book)
    lines = verdicts = failed = suites = programs = 0
    unreadable: list[tuple[str, ...]] = []
    denied: list[tuple[str, ...]] = []
    began = time.monotonic()
    with open(options.input, "rb") as source, open_score_journal(partial, plan, options.book) as journal:
        say_going_on(journal)
        kilobytes = os.fstat(source.fileno()).st_size / 1e3
        with Progress(sys.stderr, "kB", kilobytes) as progress:
            for scored in score_onwards(progress.read(source), plan, journal, book):
                lines, verdicts, failed = lines + 1, verdicts + scored.verdicts, failed + bool(scored.error)
                suites += scored.suites
                unreadable += scored.unreadable
                programs += scored.programs
                denied += scored.denied
                if scored.error:
                    progress.say(f"line {scored.number}: {scored.error}")
                progress.note = f"{lines} lines, {verdicts} verdicts"
        if not lines:
            journal.remove()
            raise ConfigurationError(f"the input must have a line to score, got none in {options.input}")
        if failed == lines and not verdicts and options.output.exists():
            journal.remove()
            say(f"{_lines(lines)}, none could be scored; {options.output} was not changed")
            return 1
        _finish(options, journal, book)
    lost = f"; {_lines(failed)} could not be scored" if failed else ""
    say(f"{_lines(lines)}, {verdicts} verdicts in {time.monotonic() - began:.1f} s; wrote {options.output}{lost}")
    if 2 * len(unreadable) > suites:
        wider = " `--fidelity wide` reads functions, classes and other claims than equality." * (
            options.fidelity == "strict"
        )
        say(
            f"{len(unreadable)} of {suites} suites hold no readable test; they hold {_commonest(unreadable)}. The "
            f"output lists them in `reason` and `ignored`; docs/command-line.md says what a test is.{wider}"
        )
    if denied:
        say(
            f"{len(denied)} of {programs} programs were denied something by the sandbox: {_commonest(denied)}. The "
            "output lists them in `denied`; docs/sandbox.md says what a program may use"
        )
    return 1 if failed else 0


def _book(path: Path) -> MistakeBook:
    with about(f"--book {path}"):
        if path.is_dir() and not (path / INDEX).exists():
            return MistakeBook(parts=_PARTS)
        return MistakeBook.load(path) if path.exists() else MistakeBook()


def _lines(count: int) -> str:
    return f"{count} line{'' if count == 1 else 's'}"


def _commonest(notes: Sequence[tuple[str, ...]]) -> str:
    counts = Counter(note for each in notes for note in each).most_common(5)
    return ", ".join(f"{note} ({count})" for note, count in counts)


def _finish(options: argparse.Namespace, journal: Journal, book: MistakeBook | None) -> None:
    """The output and the book, each whole; then the journal goes, before the book takes its place: a start after that
    scores everything again, and one before it goes on."""
    with whole_file(options.output) as target:
        for line in outputs(journal):
            target.write(line)
    if book is None:
        journal.remove()
        return
    place = Path(os.path.realpath(options.book))
    aside = place.with_name(f".{place.name}.scored")
    try:
        book.save(aside)
        journal.remove()
        if book.parts == 1:
            aside.replace(place)
            return
        book.save(place)  # links to what was just written, and the index
        shutil.rmtree(aside)
    except OSError as error:
        if book.parts > 1:
            shutil.rmtree(aside, ignore_errors=True)
        else:
            aside.unlink(missing_ok=True)
        raise OSError(f"{options.book} must be writable, got: {error}; it is as it was") from error
