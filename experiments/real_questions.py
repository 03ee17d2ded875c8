"""The questions that real models learn from: which are set aside, which are asked, and more golden tests for them.

    python experiments/real_questions.py split mbpp-train.jsonl leetcode-easy.jsonl -o questions
    codea1 data choose questions/pool.jsonl --player hf:DIRECTORY ... -o chosen.jsonl
    python experiments/real_questions.py take questions/pool.jsonl --ids experiments/real_questions.txt -o chosen.jsonl
    python experiments/real_questions.py derive chosen.jsonl -o derived.jsonl

`split` draws 60 questions of the first file for choices of settings (aside.jsonl, with their golden tests as hidden
ones) and writes those of all files that are left (pool.jsonl). There each keeps its first three golden tests, as many
as MBPP has; its others become hidden ones. What `choose` draws differs between processors: `take` takes the
questions whose ids a file names, one a line, so that a run can be repeated on questions that were drawn elsewhere.
`derive` gives each question all golden tests that its reference can state for us: its own, its hidden ones, and the
reference's values for changed inputs, at most 64 of them (`evaluation/kill_matrix.py`).
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import random
from collections.abc import Sequence
from pathlib import Path

from codea1_env import LocalSandbox
from codea1_env.errors import Codea1Error
from codea1_env.evaluation.kill_matrix import input_pools
from codea1_env.judging.judge import Judge
from codea1_env.problems import Problem, TestCase, read_problems, write_problems
from codea1_env.reading.literals import tree_source
from codea1_env.terminal import Parser

WEAK = 3
"""Golden tests that a question keeps."""
FEWEST = 2
"""Golden tests with which a question is used."""


def main() -> None:
    options = arguments()
    try:
        options.action(options)
    except (Codea1Error, OSError) as error:
        raise SystemExit(f"error: {error}") from None


def arguments() -> argparse.Namespace:
    parser = Parser(description=(__doc__ or "").split("\n")[0])
    actions = parser.add_subparsers(required=True)
    split = actions.add_parser("split", help="set questions aside, and pool the others")
    split.add_argument("problems", type=Path, nargs="+", help="problem files; questions are set aside from the first")
    split.add_argument("--aside", type=int, default=60, help="questions that are set aside (default: 60)")
    split.add_argument("--seed", type=int, default=0, help="draws them (default: 0)")
    split.add_argument("-o", "--output", type=Path, required=True, help="a directory")
    split.set_defaults(action=write_split)
    take = actions.add_parser("take", help="take the questions that a file names")
    take.add_argument("problems", type=Path, help="a problem file")
    take.add_argument("--ids", type=Path, required=True, help="ids of questions, one a line; # begins a comment")
    take.add_argument("-o", "--output", type=Path, required=True, help="a problem file, in the order of the ids")
    take.set_defaults(action=write_taken)
    derive = actions.add_parser("derive", help="give questions more golden tests")
    derive.add_argument("problems", type=Path, help="a problem file")
    derive.add_argument("-o", "--output", type=Path, required=True, help="a problem file")
    derive.set_defaults(action=write_derived)
    return parser.parse_args()


def write_split(options: argparse.Namespace) -> None:
    files = [[problem for problem in read_problems(file) if has_tests(problem)] for file in options.problems]
    if not 0 < options.aside < len(files[0]):
        raise SystemExit(
            f"error: --aside must be at least 1, and less than the {len(files[0])} questions of {options.problems[0]} "
            f"that have at least {FEWEST} tests; got {options.aside}"
        )
    if len({problem.problem_id for problems in files for problem in problems}) < sum(map(len, files)):
        raise SystemExit("error: each question must be in one file only, got an id twice")
    drawn = set(random.Random(options.seed).sample(range(len(files[0])), options.aside))
    aside = [as_hidden(problem, 0) for place, problem in enumerate(files[0]) if place in drawn]
    files[0] = [problem for place, problem in enumerate(files[0]) if place not in drawn]
    pool = [as_hidden(problem, WEAK) for problems in files for problem in problems]
    options.output.mkdir(parents=True, exist_ok=True)
    write_problems(options.output / "aside.jsonl", aside)
    write_problems(options.output / "pool.jsonl", pool)
    print(f"{len(aside)} set aside, {len(pool)} in the pool: {', '.join(str(len(problems)) for problems in files)}")


def has_tests(problem: Problem) -> bool:
    return len(problem.golden_tests) + len(problem.hidden_tests) >= FEWEST


def as_hidden(problem: Problem, kept: int) -> Problem:
    """With its first `kept` golden tests; the others become hidden ones."""
    golden = problem.golden_tests
    return dataclasses.replace(
        problem, golden_tests=golden[:kept], hidden_tests=(*golden[kept:], *problem.hidden_tests)
    )


def write_taken(options: argparse.Namespace) -> None:
    problems = {problem.problem_id: problem for problem in read_problems(options.problems)}
    lines = [line.partition("#")[0].strip() for line in options.ids.read_text(encoding="utf-8").splitlines()]
    ids = list(dict.fromkeys(line for line in lines if line))
    missing = [name for name in ids if name not in problems]
    if missing or not ids:
        raise SystemExit(
            f"error: every id of {options.ids} must be in {options.problems}, and there must be one; "
            f"got {len(ids)}, of which {len(missing)} are not there{f', the first is {missing[0]}' if missing else ''}"
        )
    check_output(options.output)
    write_problems(options.output, [problems[name] for name in ids])
    print(f"{len(ids)} questions")


def check_output(output: Path) -> None:
    if output.is_dir() or not output.parent.is_dir():
        raise SystemExit(f"error: --output must be a file in a directory that is there, got {output}")


def write_derived(options: argparse.Namespace) -> None:
    before = read_problems(options.problems)
    if not before:
        raise SystemExit(f"error: {options.problems} must hold a problem, got none")
    check_output(options.output)
    with LocalSandbox(workers=2) as sandbox:
        problems = derived(Judge(sandbox), before)
    write_problems(options.output, problems)
    counts = sorted(len(problem.golden_tests) for problem in problems)
    same = sum(len(one.golden_tests) == len(other.golden_tests) for one, other in zip(before, problems, strict=True))
    print(
        f"{len(problems)} questions with {counts[0]} to {counts[-1]} golden tests, median {counts[len(counts) // 2]}; "
        f"{same} of them have none more than before"
    )


def derived(judge: Judge, problems: Sequence[Problem]) -> list[Problem]:
    """With the reference's values for a pool of inputs, which begins with the tests' own, as golden tests."""
    pools = input_pools(judge, problems)
    return [
        dataclasses.replace(
            problem,
            golden_tests=unique(
                [
                    *problem.golden_tests,
                    *(TestCase(each.call, tree_source(json.loads(each.expectation.value))) for each in pool),
                ]
            ),
        )
        for problem, (pool, _) in zip(problems, pools, strict=True)
    ]


def unique(tests: Sequence[TestCase]) -> tuple[TestCase, ...]:
    """Each call once, the first statement of it."""
    return tuple({test.call: test for test in reversed(tests)}.values())[::-1]


if __name__ == "__main__":
    main()
