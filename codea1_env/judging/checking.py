"""Whether values are right where a problem has a checker or names a comparison in its place (`problems/checkers.py`).

A checker is asked in the sandbox as references are: after all candidates of a batch, in processes whose zygote forks no
candidate. One that raises, hangs or returns anything but True has not accepted the value. Does not promise that a
checker is right. A comparison is decided on data, and nothing untrusted is run:

    unordered   the same members in any order: of a list or tuple, or of a set; anything else as it is
    close       the same value, floats within a millionth or the tolerance, relative and absolute
    any-of      one of the reference's members; where the reference gives no list, tuple or set, its value
    tokens      of texts: the same words, whatever the lines; numbers with a point or an exponent within the tolerance
    decimals    of texts: the same lines, blanks at their ends apart; or lines of numbers that are exactly equal

Equality is that of `equality.py`, so that every value equals itself, NaNs too. Without a tolerance it takes O(n log n)
time in the size of both values. With one, floats in any order are paired as they are sorted; of other members each may
have to be compared with each, which is done where it takes at most MOST_STEPS: beyond that they must be equal.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from codea1_env.judging.bounded_cache import BoundedCache
from codea1_env.judging.equality import (
    FAILURES,
    LONGEST_NUMBER,
    is_by_identity,
    is_opaque,
    may_equal,
    member_text,
    number_in,
    same_number,
    same_tree,
    same_words,
    tagged,
)
from codea1_env.judging.oracle import is_plain
from codea1_env.judging.repeats import names_of
from codea1_env.judging.schedule import limits_of
from codea1_env.problems.checkers import CHECK, TOKENS
from codea1_env.problems.problem import Problem
from codea1_env.problems.tolerances import CLOSE, Tolerances
from codea1_env.reading.kinds.nodes import SEQUENCES, items_in, kind_of, plain_form
from codea1_env.reading.signatures import placed
from codea1_env.sandbox.protocol import CallsJob, OutcomeKind, Sandbox
from codea1_env.sandbox.worlds import world_of

_TRUE = b"true"


@dataclass(frozen=True, slots=True)
class Check:
    """One value that a checker is asked about."""

    problem: Problem
    """With a checker that is a program."""
    arguments: bytes
    value: bytes
    """What a candidate returned or a test states. Untrusted."""
    right: bytes
    """What the reference returned, or a golden test says."""


class Checkers:
    """Asks checkers through a sandbox. Not thread-safe."""

    def __init__(self, sandbox: Sandbox, cache_bytes: int) -> None:
        self._sandbox = sandbox
        self._remembered: BoundedCache[bytes, bool] = BoundedCache(cache_bytes)

    def accepted(self, checks: Sequence[Check]) -> list[bool]:
        """Whether each value is right, in one sandbox run. Raises SandboxError."""
        problems = {id(check.problem): check.problem for check in checks}
        named = {key: problem.content_hash.encode("ascii") for key, problem in problems.items()}
        keys = [_key(check, named[id(check.problem)]) for check in checks]
        known = {key: answer for key in keys if (answer := self._remembered.get(key)) is not None}
        new = {key: check for key, check in zip(keys, checks, strict=True) if key not in known}
        groups: dict[int, list[bytes]] = {}
        for key, check in new.items():
            if is_plain(check.value):
                groups.setdefault(id(check.problem), []).append(key)
            else:
                known[key] = False
        jobs = [_job(problems[place], [_call(new[key]) for key in members]) for place, members in groups.items()]
        for members, result in zip(groups.values(), self._sandbox.run(jobs) if jobs else [], strict=True):
            for key, outcome in zip(members, result.each(len(members)), strict=True):
                known[key] = outcome.kind is OutcomeKind.VALUE and outcome.value == _TRUE
                if outcome.kind is not OutcomeKind.CRASH:  # which may have been somebody else's doing
                    self._remembered.put(key, known[key], len(key))
        return [known[key] for key in keys]


def _job(problem: Problem, calls: Sequence[bytes]) -> CallsJob:
    """Every value has its whole time limit, whatever the others take."""
    return CallsJob(
        problem.checker,
        CHECK,
        tuple(calls),
        limits_of(problem, room=len(calls) + 10),
        packages=problem.packages,
        is_checker=True,
        world=world_of(problem.checker),
    )


def _call(check: Check) -> bytes:
    """The checker's arguments on the wire."""
    positional, named = json.loads(placed(check.arguments, names_of(check.problem)))
    given = [*positional, {"d": named}] if named else positional
    call = [[given, json.loads(check.value), json.loads(check.right)], []]
    return json.dumps(call, ensure_ascii=True, separators=(",", ":")).encode("ascii")


def _key(check: Check, problem: bytes) -> bytes:
    parts = (problem, check.arguments, check.value, check.right)
    return hashlib.blake2b(b"".join(len(part).to_bytes(8, "little") + part for part in parts), digest_size=32).digest()


MOST_STEPS = 1 << 20
"""The number of members times the bytes of both values: well under a second of comparing each with each."""


def compares(checker: str, right: bytes, got: bytes, tolerance: Tolerances | float) -> bool:
    """Whether the untrusted `got` is right beside the trusted `right`, by one of COMPARISONS. Malformed bytes are
    not."""
    if is_opaque(right) or is_opaque(got) or is_by_identity(got) or not may_equal(right, got):
        return False
    try:
        return _compared(checker, json.loads(right), json.loads(got), Tolerances.of(tolerance), len(right) + len(got))
    except FAILURES:
        return False


def _compared(checker: str, right: Any, got: Any, tolerance: Tolerances, size: int) -> bool:
    if checker == "unordered":
        return _unordered(right, got, tolerance, size)
    if checker == "any-of":
        return _any_of(right, got, tolerance, size)
    if checker == "close":
        return same_tree(right, got, tolerance.or_laxer(CLOSE))
    if type(right) is not str or type(got) is not str:
        return same_tree(right, got, tolerance)
    return same_words(right, got, tolerance) if checker == TOKENS else _decimals(right, got)


def _unordered(right: Any, got: Any, tolerance: Tolerances, size: int) -> bool:
    ours, theirs = _members(right), _members(got)
    if ours is None or theirs is None:
        return same_tree(right, got, tolerance)
    if len(ours) != len(theirs):
        return False
    if Counter(map(member_text, ours)) == Counter(map(member_text, theirs)):
        return True
    if not tolerance:
        return False
    one, other = _sorted_numbers(ours), _sorted_numbers(theirs)
    if one is not None and other is not None:
        if all(same_number(left, right, tolerance) for left, right in zip(one, other, strict=True)):
            return True
        if all(type(each) is float for each in (*one, *other)):
            return False  # of others whole numbers are near none but floats: the order is no pairing
    if len(ours) * size > MOST_STEPS:
        return False
    return _are_paired(
        [sum(1 << column for column, each in enumerate(ours) if same_tree(each, item, tolerance)) for item in theirs]
    )


def _sorted_numbers(members: Sequence[Any]) -> list[Any] | None:
    """None where they are not all real numbers, or one is NaN, which no order holds."""
    numbers = [number_in(member) for member in members]
    real = [each for each in numbers if each is not None and not isinstance(each, complex) and each == each]
    return sorted(real) if len(real) == len(members) else None


def _are_paired(fits: Sequence[int]) -> bool:
    """Whether each row can have a column of its own that fits it, by augmenting paths (Kuhn 1955): one bit of a row for
    each column. SciPy has it, which the environment does not require."""
    row_of: dict[int, int] = {}
    for start in range(len(fits)):
        reached: dict[int, tuple[int, int | None]] = {}
        """The row from which a column was reached, and the column that this row has."""
        waiting: list[tuple[int, int | None]] = [(start, None)]
        free, unseen = None, -1
        while waiting and free is None:
            row, own = waiting.pop()
            fresh = fits[row] & unseen
            unseen &= ~fresh
            while fresh and free is None:
                column = (fresh & -fresh).bit_length() - 1
                fresh &= fresh - 1
                reached[column] = row, own
                if column in row_of:
                    waiting.append((row_of[column], column))
                else:
                    free = column
        if free is None:
            return False
        while free is not None:  # along the path back, every row takes the column that it was reached by
            row_of[free], free = reached[free]
    return True


def _any_of(right: Any, got: Any, tolerance: Tolerances, size: int) -> bool:
    answers = _members(right)
    if answers is None:
        return same_tree(right, got, tolerance)
    text = member_text(got)
    if any(member_text(answer) == text for answer in answers):
        return True
    can_compare = bool(tolerance) and len(answers) * size <= MOST_STEPS
    return can_compare and any(same_tree(answer, got, tolerance) for answer in answers)


def _decimals(right: str, got: str) -> bool:
    ours, theirs = ([line.strip() for line in text.strip().split("\n")] for text in (right, got))
    return len(ours) == len(theirs) and all(
        one == other or _same_decimals(one.split(), other.split()) for one, other in zip(ours, theirs, strict=True)
    )


def _same_decimals(right: Sequence[str], got: Sequence[str]) -> bool:
    """Whether all words are numbers, however written, and the same."""
    if len(right) != len(got) or max(map(len, (*right, *got)), default=0) > LONGEST_NUMBER:
        return False
    try:
        return list(map(Decimal, right)) == list(map(Decimal, got))
    except (ArithmeticError, ValueError):  # a word, or a signalling NaN
        return False


def _members(tree: Any) -> list[Any] | None:
    """Of a list, tuple, set or deque; None for anything else."""
    if kind_of(tree) in SEQUENCES:
        return items_in(tree)
    tag, body = tagged(plain_form(tree)) if type(tree) is dict else ("t", tree)
    return body if tag in ("t", "s", "z") and type(body) is list else None
