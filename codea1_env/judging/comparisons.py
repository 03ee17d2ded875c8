"""The comparisons that a problem names in the place of a checker (`problems/checkers.py`), decided on data.

    unordered   the same members in any order: of a list or tuple, or of a set; anything else as it is
    close       the same value, floats within a millionth or the tolerance, relative and absolute
    any-of      one of the reference's members; where the reference gives no list, tuple or set, its value

Equality is that of `equality.py`, so that every value equals itself, NaNs too, and nothing untrusted is run. Takes
O(n log n) time in the size of both values. With a tolerance, `unordered` pairs the members that have no equal one by
one; a value of which that would take more than MOST_STEPS is not right.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

from codea1_env.judging.equality import is_opaque, member_text, same_tree
from codea1_env.problems.checkers import COMPARISONS

CLOSE = 1e-6
"""Relative and absolute: what `close` takes for one number."""
MOST_STEPS = 1 << 23
"""Of pairing members that differ by the tolerance: their number times the characters of all, some 600 floats."""


def compares(checker: str, right: bytes, got: bytes, tolerance: float) -> bool:
    """Whether the untrusted `got` is right beside the trusted `right`, by one of COMPARISONS. Malformed bytes are
    not."""
    if is_opaque(right) or is_opaque(got):
        return False
    try:
        return _BY_NAME[checker](json.loads(right), json.loads(got), tolerance)
    except (ValueError, TypeError, LookupError, OverflowError, RecursionError):
        return False


def _unordered(right: Any, got: Any, tolerance: float) -> bool:
    ours, theirs = _members(right), _members(got)
    if ours is None or theirs is None:
        return same_tree(right, got, tolerance)
    if len(ours) != len(theirs):
        return False
    left, other = _without_equals(ours, theirs), _without_equals(theirs, ours)
    if not left or not tolerance or len(left) * sum(len(member_text(each)) for each in left) > MOST_STEPS:
        return not left
    for item in other:
        place = next((place for place, each in enumerate(left) if same_tree(each, item, tolerance)), None)
        if place is None:
            return False
        del left[place]
    return True


def _without_equals(members: list[Any], others: list[Any]) -> list[Any]:
    """The members, without those that have an equal one among the others, one for one."""
    unmatched = Counter(map(member_text, others))
    left = []
    for member in members:
        text = member_text(member)
        if unmatched[text]:
            unmatched[text] -= 1
        else:
            left.append(member)
    return left


def _close(right: Any, got: Any, tolerance: float) -> bool:
    return same_tree(right, got, max(tolerance, CLOSE))


def _any_of(right: Any, got: Any, tolerance: float) -> bool:
    answers = _members(right)
    return any(same_tree(each, got, tolerance) for each in ([right] if answers is None else answers))


def _members(tree: Any) -> list[Any] | None:
    """Of a list, tuple or set; None for anything else."""
    if type(tree) is dict:
        ((tag, body),) = tree.items()
        return body if tag in ("t", "s", "z") and type(body) is list else None
    return tree if type(tree) is list else None


_BY_NAME: dict[str, Callable[[Any, Any, float], bool]] = dict(
    zip(COMPARISONS, (_unordered, _close, _any_of), strict=True)
)
