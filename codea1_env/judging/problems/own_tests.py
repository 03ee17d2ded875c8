"""A problem's own tests, golden and hidden, as data; and the one rule for those that cannot be read: they are left out.

Whoever runs own tests reads them here, so that all leave out the same ones. Each test is read by itself, whoever asks
for which others. Where no test is left that is needed, the problem is refused before anybody is asked for an answer.
Does not promise that a test is right: the reference, or nobody, says so.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from codea1_env.judging.bounded_cache import BoundedCache
from codea1_env.judging.judge import Expectation, Judge
from codea1_env.judging.relations.kinds import of_kind
from codea1_env.problems.check_functions import LeftOut, reasons
from codea1_env.problems.kinds import Kind
from codea1_env.problems.problem import Problem
from codea1_env.reading.grammar import Fidelity
from codea1_env.reading.responses import read_case
from codea1_env.reading.test_case import TestCase

_CACHE_MB = 64
_SHOWN = 200


@dataclass(frozen=True, slots=True)
class OwnTest:
    """One test of a problem's, or of its Mistake Book's."""

    case: TestCase
    expectation: Expectation | None
    """What it demands; None where it cannot be read."""
    reason: str = ""
    """Why it cannot be read, by the name of the `Reason`."""


@dataclass(frozen=True, slots=True)
class Readable:
    """A problem with the tests that can be read, and the others."""

    problem: Problem
    tests: tuple[OwnTest, ...]
    """Its golden and hidden ones, in order."""
    left_out: tuple[LeftOut, ...] = ()

    @property
    def calls(self) -> list[bytes]:
        return [test.expectation.arguments for test in self.tests if test.expectation]


class OwnTests:
    """Reads tests, and remembers them. Not thread-safe."""

    def __init__(self, judge: Judge, cache_bytes: int = _CACHE_MB << 20) -> None:
        self._judge = judge
        self._known: BoundedCache[tuple[Kind, str, TestCase, Fidelity], OwnTest] = BoundedCache(cache_bytes)

    def read(
        self, rows: Sequence[tuple[Problem, Sequence[TestCase]]], fidelity: Fidelity = "strict"
    ) -> list[list[OwnTest]]:
        """Every row's tests, in order. Raises SandboxError."""
        keys = [[(problem.kind, problem.entry_point, case, fidelity) for case in cases] for problem, cases in rows]
        every = dict.fromkeys(key for row in keys for key in row)
        known = {key: test for key in every if (test := self._known.get(key)) is not None}
        new = [key for key in every if key not in known]
        written = [read_case(case, entry_point, fidelity) for _, entry_point, case, _ in new]
        evaluated = self._judge.evaluate([[] if test.reason else [test] for test in written])
        for key, assertion, stated in zip(new, written, evaluated, strict=True):
            read = stated[0] if stated else assertion.reason
            if isinstance(read, Expectation):
                known[key] = OwnTest(key[2], of_kind(key[0], key[1], assertion, read))
            else:
                known[key] = OwnTest(key[2], None, read)
            self._known.put(key, known[key], _size(known[key]))
        return [[known[key] for key in row] for row in keys]

    def readable(self, problems: Sequence[Problem]) -> list[Readable]:
        """Every problem without the tests that cannot be read. Raises SandboxError."""
        rows = self.read([(problem, (*problem.golden_tests, *problem.hidden_tests)) for problem in problems])
        return [_readable(problem, row) for problem, row in zip(problems, rows, strict=True)]


def left_out(tests: Iterable[OwnTest]) -> tuple[LeftOut, ...]:
    """Those that cannot be read."""
    return tuple(LeftOut(str(test.case)[:_SHOWN], test.reason) for test in tests if test.expectation is None)


def told(unread: Sequence[LeftOut]) -> str:
    """How many tests are left out and why, as it is said everywhere; empty for none."""
    counts = ", ".join(f"{name} {count}" for name, count in reasons(unread).items())
    return f"{len(unread)} ({counts}) of its tests cannot be read" if unread else ""


def _size(test: OwnTest) -> int:
    texts = [test.case.call, test.case.expected, test.reason]
    known = test.expectation
    return sum(map(sys.getsizeof, texts)) + (len(known.arguments) + len(known.value) if known else 0)


def _readable(problem: Problem, tests: Sequence[OwnTest]) -> Readable:
    unread = left_out(tests)
    if not unread:
        return Readable(problem, tuple(tests))
    golden = len(problem.golden_tests)
    cases = [tuple(test.case for test in part if test.expectation) for part in (tests[:golden], tests[golden:])]
    problem = dataclasses.replace(problem, golden_tests=cases[0], hidden_tests=cases[1])
    return Readable(problem, tuple(test for test in tests if test.expectation), unread)
