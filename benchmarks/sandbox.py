"""The sandbox against its peers, on recorded programs and tests: verdicts per CPU-second, interleaved in one run.

    python -m venv .peers && .peers/bin/pip install evalplus
    python benchmarks/sandbox.py IN.jsonl --peers .peers/bin/python

IN.jsonl: as `codea1 score` reads it; `convert_recorded.py` makes one. A unit is 8 distinct programs for one question
with 64 distinct calls each. Light work: programs that end all calls of their unit within --light-ms. In every round all
sides judge the same units, one after another, in an order that rotates; a figure is the median over rounds, a ratio the
median of the ratios in each round. CPU seconds are those of an executor's processes, all of them; starting interpreters
and sandboxes is apart.

The second table has the same programs with an unused attribute of `os`: each call has a process of its own. No peer
keeps calls apart.

Does not compare isolation: see `codea1 doctor`.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from sandbox_sides import SIDES, Measured, Unit

from codea1_env.judging.judge import Expectation, Judge, Trial
from codea1_env.problems import Problem
from codea1_env.reading.responses import read_program, read_suite
from codea1_env.sandbox import LocalSandbox
from codea1_env.sandbox.inside import values
from codea1_env.sandbox.inside.looks import alone_because
from codea1_env.terminal import Parser

PROGRAMS, CALLS, SPREAD = 8, 64, 17
OURS = "codea1"


class Side:
    """An executor in a process of its own, started before anything is measured."""

    def __init__(self, name: str, python: str) -> None:
        self.name = name
        command = [python, str(Path(__file__).with_name("sandbox_sides.py")), name]
        environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)

    def judge(self, units: Sequence[Unit]) -> Measured:
        assert self._process.stdin
        assert self._process.stdout
        pickle.dump(list(units), self._process.stdin)
        self._process.stdin.flush()
        answer: Measured = pickle.load(self._process.stdout)
        return answer

    def close(self) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait()


def units_of(record: dict[str, Any], judge: Judge, light_ms: float) -> Iterator[Unit]:
    """As many units as the stateless programs and the tests of one question give."""
    problem = Problem("unit", "", str(record["entry_point"]), str(record["reference_solution"]))
    tests = {
        test.arguments: test
        for row in record["suites"]
        for suite in row
        for test in read_suite(suite, problem.entry_point).tests
        if test.arguments and json.loads(test.arguments)[1] == []
    }
    (answers,) = judge.reference_values([(problem, list(tests))])
    valid = [(test, answer.value) for test, answer in zip(tests.values(), answers, strict=True) if not answer.failure]
    if len(valid) < CALLS:
        return
    chosen = valid[:CALLS]
    expectations = tuple(Expectation(test.arguments or b"", value) for test, value in chosen)
    expected = tuple(values.decode(json.loads(value)) for _, value in chosen)
    sources = dict.fromkeys(read_program(code, problem.entry_point).source for code in record["codes"])
    light = []
    for source in sources:
        began = time.monotonic()
        (result,) = judge.try_programs([Trial(problem, source, expectations)])
        if result.executes and not alone_because(source) and time.monotonic() - began < light_ms / 1000:
            light.append(source)
    for start in range(0, len(light) - PROGRAMS + 1, PROGRAMS):
        yield Unit(
            problem.entry_point,
            problem.reference_solution or "",
            tuple(light[start : start + PROGRAMS]),
            tuple([values.decode(node) for node in json.loads(e.arguments)[0]] for e in expectations),
            expected,
            tuple(e.arguments for e in expectations),
            tuple(e.value for e in expectations),
        )


def read_units(source: Path, light_ms: float) -> list[Unit]:
    with LocalSandbox() as sandbox, source.open() as lines:
        judge = Judge(sandbox)
        return [unit for line in lines for unit in units_of(json.loads(line), judge, light_ms)]


def that_run_alone(unit: Unit) -> Unit:
    """The same programs, each with a far word."""
    return replace(unit, programs=tuple(source + "\n\nimport os\n_sep = os.sep\n" for source in unit.programs))


def verdicts_in(unit: Unit) -> int:
    return len(unit.programs) * len(unit.inputs)


def compare(sides: Sequence[Side], units: Sequence[Unit], per_round: int) -> dict[str, list[Measured]]:
    """Every side's answers, round by round."""
    rounds = [units[start : start + per_round] for start in range(0, len(units), per_round)]
    answers: dict[str, list[Measured]] = {side.name: [] for side in sides}
    for number, chosen in enumerate(rounds):
        turn = number % len(sides)
        for side in [*sides[turn:], *sides[:turn]]:
            answers[side.name].append(side.judge(chosen))
        print(f"\rround {number + 1} of {len(rounds)}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return answers


def report(title: str, units: Sequence[Unit], per_round: int, answers: dict[str, list[Measured]]) -> None:
    """A table in Markdown."""
    counts = [sum(map(verdicts_in, units[start : start + per_round])) for start in range(0, len(units), per_round)]
    programs = sum(len(unit.programs) for unit in units)
    rates = {
        name: [count / measured.cpu_s for count, measured in zip(counts, rounds, strict=True)]
        for name, rounds in answers.items()
    }
    print(f"\n### {title}: {programs} programs, {sum(counts)} distinct verdicts a side, {len(counts)} rounds\n")
    print("| executor | verdicts per CPU-second | ms of CPU per program | codea1 is | same verdicts |")
    print("|---|---|---|---|---|")
    for name, rounds in answers.items():
        ratios = [ours / theirs for ours, theirs in zip(rates[OURS], rates[name], strict=True)]
        cost_ms = statistics.median(1000 * m.cpu_s * CALLS / count for m, count in zip(rounds, counts, strict=True))
        if name == "fork + exit":
            print(f"| {name} (no executor) | | {cost_ms:.2f} | | |")
            continue
        same, both = agreement(answers[OURS], rounds)
        print(
            f"| {name} | {statistics.median(rates[name]):,.0f} | {cost_ms:.2f} | {statistics.median(ratios):.2f}x "
            f"({min(ratios):.2f} to {max(ratios):.2f}) | {same:,} of {both:,} |"
        )


def agreement(ours: Sequence[Measured], theirs: Sequence[Measured]) -> tuple[int, int]:
    """(verdicts that are the same, all verdicts)."""
    pairs = [
        (one, other)
        for mine, their in zip(ours, theirs, strict=True)
        for my_unit, their_unit in zip(mine.verdicts, their.verdicts, strict=True)
        for my_row, their_row in zip(my_unit, their_unit, strict=True)
        for one, other in zip(my_row, their_row, strict=True)
    ]
    return sum(one == other for one, other in pairs), len(pairs)


TABLES = {
    "shared": ("Programs that keep nothing", lambda unit: unit),
    "alone": ("The same programs, whose calls run alone", that_run_alone),
}


def main() -> None:
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("input", type=Path)
    parser.add_argument("--peers", metavar="PYTHON", help="interpreter that has the peers (default: none are measured)")
    parser.add_argument("--sides", nargs="+", choices=SIDES, default=list(SIDES), help="default: all")
    parser.add_argument("--tables", nargs="+", choices=tuple(TABLES), default=tuple(TABLES))
    parser.add_argument("--light-ms", type=float, default=20.0, help="wall time of one light program (default: 20)")
    parser.add_argument("--units", type=int, default=0, help="use the first so many (default: all)")
    parser.add_argument("--per-round", type=int, default=8, help="units in a round (default: 8)")
    options = parser.parse_args()
    units = read_units(options.input, options.light_ms)[: options.units or None]
    # Units of one question are neighbours: spread them, so that a round has some of each kind.
    units = [unit for start in range(SPREAD) for unit in units[start::SPREAD]]
    here = (OURS, "fork + exit")
    names = [name for name in options.sides if name in here or options.peers]
    sides = [Side(name, sys.executable if name in here else options.peers) for name in names]
    try:
        for side in sides:
            side.judge(units[:1])  # warm
        for kind in options.tables:
            title, change = TABLES[kind]
            chosen = list(map(change, units))
            report(title, chosen, options.per_round, compare(sides, chosen, options.per_round))
    finally:
        for side in sides:
            side.close()


if __name__ == "__main__":
    main()
