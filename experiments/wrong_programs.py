"""Wrong programs that models or people really wrote, drawn for `codea1 eval --seat tester --against`. Runs no models.

    python experiments/wrong_programs.py PROGRAMS... --problems FILE -o DIRECTORY

PROGRAMS are lines with `problem_id` and `codes`, or journals of `codea1 eval --seat coder`. The questions' own tests
say which programs are wrong (`evaluation/wrong_programs.py`), at most 100 tests of a question, evenly taken. DIRECTORY
gets `programs.jsonl`, at most `--each` different wrong programs of each question, drawn by the seed, and
`questions.jsonl`. There the first three tests of a question without golden tests become golden: scripted testers begin
with their calls. docs/evaluation.md says what came out.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from codea1_env import LocalSandbox, Problem
from codea1_env.evaluation.wrong_programs import Examined, examine, read_programs
from codea1_env.problems import read_problems
from codea1_env.problems.jsonl import write_problems
from codea1_env.terminal import Parser

GOLDEN, TESTS = 3, 100


def main() -> int:
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", type=Path, nargs="+")
    parser.add_argument("--problems", type=Path, required=True, help="a problem file with the tests that decide")
    parser.add_argument("--each", type=int, default=10, help="programs of a question at most (default: 10)")
    parser.add_argument("--questions", type=int, default=10_000, help="questions at most, drawn (default: all)")
    parser.add_argument("--seed", type=int, default=0, help="of both draws (default: 0)")
    parser.add_argument("-o", "--output", type=Path, required=True)
    options = parser.parse_args()
    for name in ("each", "questions"):
        if getattr(options, name) < 1:
            parser.error(f"--{name} must be at least 1, got {getattr(options, name)}")
    for file in (*options.programs, options.problems):
        if not file.is_file():
            parser.error(f"{file} must be a file, got none")
    written: dict[str, list[str]] = {}
    for file in options.programs:
        for problem_id, texts in read_programs(file).items():
            written.setdefault(problem_id, []).extend(texts)
    problems = [thinned(each) for each in read_problems(options.problems) if each.problem_id in written]
    random.Random(f"questions {options.seed}").shuffle(problems)
    found: list[tuple[Problem, Examined]] = []
    with LocalSandbox() as sandbox:
        for problem in problems:
            found.append((problem, examine(sandbox, problem, written[problem.problem_id])))
            if sum(bool(each.wrong) for _, each in found) == options.questions:
                break
    options.output.mkdir(parents=True, exist_ok=True)
    save(options.output, found, options.each, options.seed)
    counts = {part: sum(getattr(each, part) for _, each in found) for part in ("right", "timeouts", "unloadable")}
    print(json.dumps({"questions": len(found), "wrong": sum(len(each.wrong) for _, each in found), **counts}))
    return 0


def save(directory: Path, found: Sequence[tuple[Problem, Examined]], each: int, seed: int) -> None:
    """The questions that have wrong programs, and those that were drawn of each."""
    kept = [(problem, examined.wrong) for problem, examined in found if examined.wrong]
    with open(directory / "programs.jsonl", "w", encoding="ascii") as file:
        for problem, wrong in kept:
            drawn = random.Random(f"{seed} {problem.problem_id}").sample(wrong, min(each, len(wrong)))
            file.write(json.dumps({"problem_id": problem.problem_id, "codes": drawn}) + "\n")
    write_problems(directory / "questions.jsonl", [problem for problem, _ in kept])


def thinned(problem: Problem) -> Problem:
    """With some of its tests, of which the first ones are golden where none were."""
    hidden = problem.hidden_tests
    golden = problem.golden_tests or hidden[:GOLDEN]
    hidden = hidden if problem.golden_tests else hidden[len(golden) :]
    room = min(TESTS, len(hidden))
    return replace(
        problem, golden_tests=golden, hidden_tests=tuple(hidden[place * len(hidden) // room] for place in range(room))
    )


if __name__ == "__main__":
    raise SystemExit(main())
