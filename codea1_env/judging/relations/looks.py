"""A look (`reading/wide/looking.py`) against the right value, as `status.py` has it of relations.

What a look makes of the right value and of the others is evaluated in the sandbox, where no program runs, after all
candidates of a batch have ended. Of several calls in one claim the others are:

    single     one call's value is replaced by one near it (`vacuity.py`)
    constant   all calls return the same: the value of one of them

The claim counts if it refuses at least half of the first, some for each call, and all of the second: `f(1) == f(2)` is
vacuous, for a constant function satisfies it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from codea1_env.judging.equality import FAILURES, is_by_identity
from codea1_env.judging.judge import Expectation, Judge
from codea1_env.judging.oracle import is_data
from codea1_env.judging.relations.status import Related
from codea1_env.judging.relations.vacuity import REFUSED, all_others, spare_parts
from codea1_env.problems.tolerances import Tolerances
from codea1_env.reading.literals import Tree, encode
from codea1_env.reading.pure_expressions import Reason
from codea1_env.rewards.duel import Status

_MOST_BYTES = 1 << 18
"""Of a right value that is looked at; of the other values together 16 times as many."""
_MOST_SINGLE = 256
"""Values of single calls that a claim about several is tried on."""


def related_look(
    judge: Judge,
    test: Expectation,
    calls: Sequence[bytes],
    right: bytes,
    mutants: Sequence[bytes],
    tolerance: Tolerances,
    earlier: set[int],
) -> Related:
    """What became of a look whose call, or the question of all its `calls`, returns `right`. Adds to `earlier` the
    places of what a kept one refuses."""
    if not is_data(right) or (calls and is_by_identity(right)):
        return Related(Status.REJECTED, Reason.NOT_PLAIN_DATA)
    if len(right) > _MOST_BYTES:
        return Related(Status.REJECTED, Reason.TOO_LARGE)
    tree = json.loads(right)
    if judge.tried_on(test.look, [right]) != [True]:
        return Related(Status.WRONG_RELATION)
    try:
        if calls:
            singles, constants = _of_several(tree["t"], calls, tolerance)
            others = [*singles, *constants]
        else:
            others = all_others(tree, spare_parts(test.arguments), mutants, tolerance)[: 16 * _MOST_BYTES // len(right)]
            singles, constants = others, []
    except FAILURES:
        return Related(Status.VACUOUS)
    held = judge.tried_on(test.look, [*map(encode, others)])
    refused = [place for place, one in enumerate(held) if not one]
    count = sum(place < len(singles) for place in refused)
    if not count or count < REFUSED * len(singles) or any(held[len(singles) :]):
        return Related(Status.VACUOUS)
    if calls and {_changed(tree, others[place]) for place in refused} < {*range(len(calls))}:
        return Related(Status.VACUOUS)
    if earlier >= {*refused}:
        return Related(Status.DUPLICATE)
    earlier.update(refused)
    return Related(Status.KEPT)


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
