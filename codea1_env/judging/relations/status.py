"""A relational test against the right value: is it kept, wrong, vacuous, or nothing new?

    wrong_relation  not true of the right value; there is no right value to put in its place
    vacuous         true of it, and of too many of the values that it, or a part of it, is tried on (`vacuity.py`)
    duplicate       refuses no such value that an earlier test of the suite with the same call does not refuse
    kept            otherwise

All of it follows from texts, the oracle's values and the problem's mutants; it happens after all candidates of a batch
have ended, and no candidate's value comes here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from codea1_env.judging.equality import FAILURES
from codea1_env.judging.judge import Expectation, Judge, plain_values
from codea1_env.judging.oracle import is_data
from codea1_env.judging.relations.truth import fits, holds
from codea1_env.judging.relations.vacuity import MOST_MUTANTS, refusals
from codea1_env.judging.schedule import turn
from codea1_env.problems.problem import Problem
from codea1_env.problems.tolerances import Tolerances
from codea1_env.reading.pure_expressions import Reason
from codea1_env.rewards.duel import Status


class Related(NamedTuple):
    """What became of a relational test."""

    status: Status
    reason: str = ""


class CallClaims:
    """Per call of one suite, what its kept relational tests refuse: places in the list of other values."""

    def __init__(self) -> None:
        self._refused: dict[bytes, set[int]] = {}  # hashed by this process's own secret seed

    def of(self, call: bytes) -> set[int]:
        """The places; `related` adds to them."""
        return self._refused.setdefault(call, set())


class MutantValues:
    """What the mutants of problems return for the calls of relational tests; nothing runs where there are none."""

    def __init__(self, judge: Judge, asked: Sequence[tuple[Problem, Sequence[bytes]]]) -> None:
        """Raises SandboxError."""
        self._values: dict[tuple[int, bytes], list[bytes]] = {}
        turns = [
            turn(problem, mutant, calls, room=len(calls))  # of its own for each suite: none costs another a value
            for problem, calls in asked
            if calls
            for mutant in problem.mutants[:MOST_MUTANTS]
        ]
        for ran, result in zip(turns, judge.run(turns) if turns else [], strict=True):
            values = plain_values(ran, result, ran.calls, is_data) or [None] * len(ran.calls)
            for call, value in zip(ran.calls, values, strict=True):
                known = self._values.setdefault((id(ran.problem), call), [])
                if value is not None and value not in known:
                    known.append(value)

    def of(self, problem: Problem, call: bytes) -> Sequence[bytes]:
        """Plain values, each once."""
        return self._values.get((id(problem), call), ())


def related(
    test: Expectation, right: bytes, mutants: Sequence[bytes], tolerance: Tolerances, earlier: set[int]
) -> Related:
    """What became of a test whose call returns `right`. Adds to `earlier` what a kept one refuses."""
    assert test.relation is not None
    if not fits(test.relation, test.value, right):
        return Related(Status.REJECTED, Reason.TOO_LARGE)
    if not holds(test.relation, test.value, right, tolerance):
        return Related(Status.WRONG_RELATION)
    try:
        refused = refusals(test.relation, test.value, test.arguments, right, mutants, tolerance)
    except FAILURES:  # what came back stands for no value, or there is no saying what the parts of the claim are
        refused = []
    if not refused:
        return Related(Status.VACUOUS)
    places = {place for place, is_refused in enumerate(refused) if is_refused}
    if places <= earlier:
        return Related(Status.DUPLICATE)
    earlier |= places
    return Related(Status.KEPT)
