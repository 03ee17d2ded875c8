"""A relational test against the right value: is it kept, wrong, vacuous, or nothing new? And a look
(`reading/wide/looking.py`), likewise.

    wrong_relation  not true of the right value; there is no right value to put in its place
    vacuous         true of it, and of too many of the values that it, or a part of it, is tried on (`vacuity.py`)
    duplicate       refuses no such value that an earlier test of the suite with the same call does not refuse
    kept            otherwise

All of it follows from texts, the oracle's values and the problem's mutants; it happens after all candidates of a batch
have ended, and no candidate's value comes here. What a look makes of the right value and of the others is evaluated in
the sandbox, where no program runs then. Of several calls in one claim the others are:

    single     one call's value is replaced by one near it (`neighbours.py`)
    constant   all calls return the same: the value of one of them

Such a claim counts if it refuses at least half of the first, some for each call, and all of the second: `f(1) == f(2)`
is vacuous, for a constant function satisfies it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from codea1_env.judging.equality import FAILURES, is_by_identity
from codea1_env.judging.judge import Expectation, Judge, plain_values
from codea1_env.judging.oracle import is_data
from codea1_env.judging.relations.truth import fits, holds
from codea1_env.judging.relations.vacuity import MOST_MUTANTS, REFUSED, all_others, refusals, spare_parts
from codea1_env.judging.schedule import turn
from codea1_env.problems.problem import Problem
from codea1_env.problems.tolerances import Tolerances
from codea1_env.reading.literals import Tree, encode
from codea1_env.reading.pure_expressions import Reason
from codea1_env.rewards.duel import Status

MutantValues = Mapping[tuple[int, bytes], Sequence[bytes]]
"""By a problem's `id` and a call: plain values that its mutants return, each once."""


def mutant_values(judge: Judge, asked: Sequence[tuple[Problem, Sequence[bytes]]]) -> MutantValues:
    """For the calls of relational tests; nothing runs where there are none. Raises SandboxError."""
    turns = [
        turn(problem, mutant, calls, room=len(calls))  # of its own for each suite: none costs another a value
        for problem, calls in asked
        if calls
        for mutant in problem.mutants[:MOST_MUTANTS]
    ]
    found: dict[tuple[int, bytes], list[bytes]] = {}
    for ran, result in zip(turns, judge.run(turns) if turns else [], strict=True):
        for call, value in zip(ran.calls, plain_values(ran, result, ran.calls, is_data) or (), strict=False):
            known = found.setdefault((id(ran.problem), call), [])
            if value is not None and value not in known:
                known.append(value)
    return found


def related(
    test: Expectation, right: bytes, mutants: Sequence[bytes], tolerance: Tolerances, earlier: set[int]
) -> tuple[Status, str]:
    """What became of a test whose call returns `right`, and why it is rejected. Adds to `earlier` what a kept one
    refuses: places in the list of other values."""
    assert test.relation is not None
    if not fits(test.relation, test.value, right):
        return Status.REJECTED, Reason.TOO_LARGE
    if not holds(test.relation, test.value, right, tolerance):
        return Status.WRONG_RELATION, ""
    try:
        refused = refusals(test.relation, test.value, test.arguments, right, mutants, tolerance)
    except FAILURES:  # what came back stands for no value, or there is no saying what the parts of the claim are
        refused = []
    if not refused:
        return Status.VACUOUS, ""
    return _unless_known({place for place, is_refused in enumerate(refused) if is_refused}, earlier)


def _unless_known(refused: set[int], earlier: set[int]) -> tuple[Status, str]:
    if refused <= earlier:
        return Status.DUPLICATE, ""
    earlier |= refused
    return Status.KEPT, ""


_MOST_BYTES = 1 << 18
"""Of a right value that is looked at; of the other values together 16 times as many."""
_MOST_SINGLE = 256
"""Values of single calls that a claim about several is tried on."""


def related_look(
    judge: Judge,
    test: Expectation,
    right: bytes,
    mutants: Sequence[bytes],
    tolerance: Tolerances,
    earlier: set[int],
) -> tuple[Status, str]:
    """What became of a look whose call, or the question of all its `calls`, returns `right`. Adds to `earlier` the
    places of what a kept one refuses."""
    calls = test.calls
    if not is_data(right) or (calls and is_by_identity(right)):
        return Status.REJECTED, Reason.NOT_PLAIN_DATA
    if len(right) > _MOST_BYTES:
        return Status.REJECTED, Reason.TOO_LARGE
    tree = json.loads(right)
    if judge.tried_on(test.look, [right]) != [True]:
        return Status.WRONG_RELATION, ""
    try:
        if calls:
            singles, constants = _of_several(tree["t"], calls, tolerance)
            others = [*singles, *constants]
        else:
            others = all_others(tree, spare_parts(test.arguments), mutants, tolerance)[: 16 * _MOST_BYTES // len(right)]
            singles, constants = others, []
    except FAILURES:
        return Status.VACUOUS, ""
    held = judge.tried_on(test.look, [*map(encode, others)])
    refused = [place for place, one in enumerate(held) if not one]
    count = sum(place < len(singles) for place in refused)
    if not count or count < REFUSED * len(singles) or any(held[len(singles) :]):
        return Status.VACUOUS, ""
    if calls and {_changed(tree, others[place]) for place in refused} < {*range(len(calls))}:
        return Status.VACUOUS, ""
    return _unless_known({*refused}, earlier)


def _of_several(values: list[Tree], calls: Sequence[bytes], tolerance: Tolerances) -> tuple[list[Tree], list[Tree]]:
    """Tuples that differ in one call's value, and those of constant functions."""
    room = max(4, _MOST_SINGLE // len(values))
    spare = [spare_parts(call) if call else [] for call in calls]
    near = [all_others(value, given, (), tolerance)[:room] for value, given in zip(values, spare, strict=True)]
    singles: list[Tree] = [
        {"t": [*values[:place], other, *values[place + 1 :]]} for place, row in enumerate(near) for other in row
    ]
    written = {encode(value): value for value in values}
    return singles, [{"t": [value] * len(values)} for value in written.values()]


def _changed(one: Any, other: Any) -> int:
    """The place of the first value that differs in two tuples."""
    pairs = zip(one["t"], other["t"], strict=True)
    return next((place for place, (value, changed) in enumerate(pairs) if value != changed), -1)
