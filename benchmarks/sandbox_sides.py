"""The executors that `sandbox.py` compares, each behind one function: units of work in, verdicts and CPU seconds out.

    python benchmarks/sandbox_sides.py NAME        (started by `sandbox.py`, with the interpreter that has the peer)

Reads pickled lists of units on standard input and answers with pickled `Measured` on standard output. Every peer is
called by its own public function with its own settings, on programs, inputs and expected values prepared beforehand.
"""

from __future__ import annotations

import argparse
import os
import pickle
import resource
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any


@dataclass(frozen=True)
class Unit:
    """Distinct programs for one question, and the calls that all of them are judged on."""

    entry_point: str
    reference: str
    programs: tuple[str, ...]
    inputs: tuple[list[Any], ...]
    """Positional arguments of each call."""
    expected: tuple[Any, ...]
    encoded_calls: tuple[bytes, ...]
    """The same calls and values, encoded."""
    encoded_values: tuple[bytes, ...]


@dataclass(frozen=True)
class Measured:
    """What one side made of a list of units."""

    verdicts: list[list[list[bool]]]
    """[unit][program][call]: passed."""
    cpu_s: float
    wall_s: float


Run = Callable[[Unit], list[list[bool]]]


def own_cpu_s() -> float:
    """CPU seconds of this process and of its children that have ended."""
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def codea1(workers: int = 1) -> tuple[Run, Callable[[], float]]:
    """This project: `Judge.try_programs` on the local sandbox, every layer on."""
    from clocks import cpu_s

    from codea1_env.judging.judge import Expectation, Judge, Trial
    from codea1_env.problems import Problem
    from codea1_env.sandbox import LocalSandbox

    judge = Judge(LocalSandbox(workers))

    def run(unit: Unit) -> list[list[bool]]:
        problem = Problem("unit", "", unit.entry_point, unit.reference)
        expectations = tuple(map(Expectation, unit.encoded_calls, unit.encoded_values))
        results = judge.try_programs([Trial(problem, source, expectations) for source in unit.programs])
        return [[verdict == "pass" for verdict in result.verdicts] for result in results]

    return run, cpu_s


def evalplus() -> tuple[Run, Callable[[], float]]:
    from evalplus.eval import untrusted_check

    def run(unit: Unit) -> list[list[bool]]:
        rows: list[list[bool]] = []
        for source in unit.programs:
            times = [0.05] * len(unit.inputs)
            _, details = untrusted_check(
                "humaneval", source, list(unit.inputs), unit.entry_point, list(unit.expected), 0, times
            )
            rows.append([bool(detail) for detail in details] + [False] * (len(unit.inputs) - len(details)))
        return rows

    return run, own_cpu_s


def evalplus_whole() -> tuple[Run, Callable[[], float]]:
    """In a process that has imported all that its command line imports, as its users run it: forks cost more there."""
    import_module("evalplus.evaluate")

    return evalplus()


def floor() -> tuple[Run, Callable[[], float]]:
    """No executor: a process forked and ended for every program, from an interpreter that imports little."""

    def run(unit: Unit) -> list[list[bool]]:
        for _ in unit.programs:
            pid = os.fork()
            if pid == 0:
                os._exit(0)
            os.waitpid(pid, 0)
        return []

    return run, own_cpu_s


SIDES = {
    "codea1": codea1,
    "EvalPlus": evalplus,
    "EvalPlus, whole": evalplus_whole,
    "fork + exit": floor,
}


def serve(name: str) -> None:
    """Answer lists of units until standard input ends."""
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a peer prints is not an answer
    run, cpu_s = SIDES[name]()
    while True:
        try:
            units: Sequence[Unit] = pickle.load(requests)
        except EOFError:
            return
        cpu, wall = cpu_s(), time.monotonic()
        verdicts = [run(unit) for unit in units]
        pickle.dump(Measured(verdicts, cpu_s() - cpu, time.monotonic() - wall), answers)
        answers.flush()


if __name__ == "__main__":
    # Pickles name the module, not the script that it was started as.
    sys.modules["sandbox_sides"] = sys.modules[__name__]
    for kind in (Unit, Measured):
        kind.__module__ = "sandbox_sides"
    parser = argparse.ArgumentParser(description="One executor; sandbox.py starts it and hands it units of work.")
    parser.add_argument("name", choices=SIDES)
    serve(parser.parse_args().name)
