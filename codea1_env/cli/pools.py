"""`codea1 pools`: the discrete game's pools, from problems with mutants or from recorded outputs."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

from codea1_env.checks import require_whole
from codea1_env.cli import common
from codea1_env.errors import ConfigurationError
from codea1_env.problems import bundled_problems
from codea1_env.problems.jsonl import iter_problems
from codea1_env.sandbox import open_sandbox
from codea1_env.terminal import Parser, Progress

_EPILOG = """\
examples:
  codea1 pools build -o pools.jsonl
  codea1 pools from-recorded recorded.jsonl -o pools.jsonl
  python -c "from codea1_env import discrete; discrete.parallel_env(discrete.read_pools('pools.jsonl'))"

Whatever is left out is reported on stderr with the reason. If a question or a line gives no pool, the exit code is 1.
If there is no pool at all, nothing is written.
"""


def add_pools(parser: Parser) -> None:
    actions = common.add_actions(parser)
    build = common.add_command(
        actions,
        "build",
        summary="from problems: references and mutants, golden and perturbed tests",
        description="Make a pool of every problem's reference and mutants, and of its golden tests and perturbed ones.",
        examples=_EPILOG,
    )
    build.add_argument("input", metavar="PROBLEMS.jsonl", nargs="?", type=Path, help="default: the bundled problems")
    build.add_argument("--tests", metavar="N", type=int, default=16, help="most tests in a pool, >= 1 (default: 16)")
    build.add_argument("--seed", type=int, default=0, help="seed of the perturbations and of the order (default: 0)")
    build.set_defaults(run=_build)
    recorded = common.add_command(
        actions,
        "from-recorded",
        summary="from recorded outputs, the input of `codea1 score`",
        description="Make a pool of every question's recorded programs and tests. Each program runs on each test: the "
        "scores of `codea1 score` say only how a program did on the suites that were written against it.",
        examples=_EPILOG,
    )
    recorded.add_argument("input", metavar="IN.jsonl", type=Path, help="recorded matches, one JSON object a line")
    recorded.add_argument("--programs", metavar="N", type=int, default=32, help="take the first N distinct programs of "
                          "a question, >= 1 (default: 32)")  # fmt: skip
    recorded.add_argument("--tests", metavar="N", type=int, default=64, help="take the first N distinct tests of a "
                          "question, >= 1 (default: 64)")  # fmt: skip
    recorded.set_defaults(run=_from_recorded)
    for action in (build, recorded):
        action.add_argument("-o", "--output", metavar="OUT.jsonl", type=Path, required=True, help="the file to write")
        common.add_sandbox(action)


def _build(options: argparse.Namespace) -> int:
    from codea1_env.discrete.build import pools_of_problems

    _check(options)
    require_whole("--seed", options.seed, 0)
    problems = bundled_problems() if options.input is None else iter_problems(options.input)
    with common.claim(("--output", options.output)), open_sandbox(options.sandbox, options.workers) as sandbox:
        return _write(options.output, pools_of_problems(problems, sandbox, options.tests, options.seed))


def _from_recorded(options: argparse.Namespace) -> int:
    from codea1_env.discrete.build import pools_of_records

    _check(options)
    with (
        common.claim(("--output", options.output)),
        open_sandbox(options.sandbox, options.workers) as sandbox,
        options.input.open("rb") as lines,
    ):
        return _write(options.output, pools_of_records(lines, sandbox, options.programs, options.tests))


def _write(path: Path, results: Iterable[object]) -> int:
    from codea1_env.discrete.build import Built
    from codea1_env.discrete.pool import Pool, write_pools

    began = time.monotonic()
    counts = {"pools": 0, "programs": 0, "tests": 0, "left out": 0, "failed": 0}
    progress = Progress(sys.stderr, "questions")

    def pools() -> Iterator[Pool]:
        for built in progress.over(results):
            if not isinstance(built, Built):
                counts["failed"] += 1
                progress.say(str(built))
                continue
            for reason, count in Counter(built.left_out).items():
                progress.say(f"{built.problem_id}: left out, {count} times: {reason}")
            counts["left out"] += len(built.left_out)
            if built.pool is None:
                counts["failed"] += 1
                progress.say(f"{built.problem_id}: no pool: {built.why_not}")
                continue
            counts["pools"] += 1
            counts["programs"] += len(built.pool.programs)
            counts["tests"] += len(built.pool.tests)
            yield built.pool

    with progress:
        made = pools()
        first = next(made, None)
        if first is not None:  # else a file of an earlier run stays
            write_pools(path, chain([first], made))
    if first is None and not counts["failed"]:
        raise ConfigurationError("the input must have a question to make a pool of, got none")
    shown = ", ".join(f"{count} {name}" for name, count in counts.items())
    written = f"wrote {path}" if first is not None else f"wrote nothing to {path}"
    common.say(f"{written}: {shown}; {time.monotonic() - began:.1f} s")
    return 1 if counts["failed"] else 0


def _check(options: argparse.Namespace) -> None:
    common.require_at_least_one(options, "workers")
    if options.input is not None:
        common.require_file("the input", options.input)
    common.require_place("--output", options.output, options.input)
