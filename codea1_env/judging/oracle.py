"""The oracle: what a problem's reference solution returns for a call, asked under two hash seeds and remembered.

Does not promise that the reference is right, only that it repeats itself. No candidate ever runs here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from codea1_env.errors import UnusableReference
from codea1_env.judging.bounded_cache import BoundedCache
from codea1_env.judging.equality import FAILURES, as_seen, dumps, is_by_identity, is_opaque, same_value
from codea1_env.judging.relations.tree_values import require_sound
from codea1_env.judging.schedule import calls_job, job_digest
from codea1_env.problems.problem import Problem
from codea1_env.sandbox.protocol import MAX_BUDGET_S, CallsJob, JobResult, Outcome, OutcomeKind, Sandbox
from codea1_env.sandbox.worlds import with_calls

HASH_SEEDS = (0, 1)
"""What is evaluated for the judge is evaluated under both: order, identity and chance show as a difference."""
MOST_HANGS = 8
"""Calls of one suite on which a reference may hang or crash; later ones of that suite have no value. Each costs a whole
time limit, and a suite may be long. No suite of the default length has later ones."""
MOST_S = 60.0
"""CPU seconds of a call in which a reference whose time is measured must return."""
_HANGS = [kind for kind in OutcomeKind if kind.is_strike]
OPAQUE = "opaque"
"""The failure of a value that is no data, or equals nothing."""


@dataclass(frozen=True, slots=True)
class ReferenceValue:
    """What the reference solution returns for one call."""

    value: bytes
    """It may be, or hold, an iterator or an object, which equals nothing: see `comparable`."""
    failure: str = ""
    """Why there is none: an exception's name, `timeout`, `crash`, `memory`, `opaque`, `flaky` or `no_value`."""
    raised: bytes = b""
    """`Outcome.value` of that exception, where it repeats itself."""
    others: tuple[bytes, ...] = ()
    """The same value with its dicts in other orders, where these hang on the hash seed."""


_NOT_ASKED = ReferenceValue(b"", str(OutcomeKind.TIMEOUT))
_Batch = tuple[CallsJob, tuple[bytes, ...], int | None]
"""A reference, as a job without calls; calls; and the hangs after which the rest is not tried; None: all are."""
_Known = dict[CallsJob, dict[bytes, ReferenceValue]]


class Oracle:
    """Asks references through a sandbox and caches their values. Not thread-safe."""

    def __init__(self, sandbox: Sandbox, cache_bytes: int) -> None:
        self._sandbox = sandbox
        self._remembered: BoundedCache[tuple[bytes, bytes], ReferenceValue] = BoundedCache(cache_bytes)

    def values(
        self, asked: Sequence[tuple[Problem, Sequence[bytes]]], most_hangs: int | None = None
    ) -> list[list[ReferenceValue]]:
        """The reference's value for every encoded call. After `most_hangs` hangs and crashes in one row, the rest of
        that row is taken for such, too, whatever other rows ask; None: never. Raises UnusableReference where a problem
        has no reference or its reference does not load."""
        rows = [(_reference(problem), problem, calls) for problem, calls in asked if calls]
        problems = {reference: problem for reference, problem, _ in rows}
        digests = {reference: job_digest(reference) for reference in problems}
        known: _Known = {reference: {} for reference in problems}
        new: dict[CallsJob, dict[bytes, None]] = {}
        for reference, _, calls in rows:
            for call in calls:
                value = self._remembered.get((digests[reference], call))
                if value is None:
                    new.setdefault(reference, {})[call] = None
                else:
                    known[reference][call] = value
        self._ask([(reference, tuple(calls), most_hangs) for reference, calls in new.items()], problems, known)
        if most_hangs is not None:  # some rows' hangs may have kept others' calls from being tried
            left = [_left(reference, calls, known[reference], most_hangs) for reference, _, calls in rows]
            self._ask([*dict.fromkeys(batch for batch in left if batch is not None)], problems, known)
        for reference, call in [(reference, call) for reference, asking in new.items() for call in asking]:
            value = known[reference].get(call)
            if value is not None and value.failure != OutcomeKind.CRASH:  # which may have been somebody else's doing
                parts = (call, value.value, value.failure, value.raised, *value.others)
                size = sum(map(len, parts))
                self._remembered.put((digests[reference], call), value, size)
        answers = iter([_row(calls, known[reference], most_hangs) for reference, _, calls in rows])
        return [next(answers) if calls else [] for _, calls in asked]

    def seconds(self, asked: Sequence[tuple[Problem, Sequence[bytes]]]) -> list[float]:
        """CPU seconds of the slowest call of each row; every reference runs once, and nothing of it is remembered.

        Raises UnusableReference where a reference is missing, does not load or does not return within MOST_S.
        """
        rows = [(replace(problem, time_limit=None, time_limit_s=MOST_S), calls) for problem, calls in asked]
        jobs = [_reference_job(_reference(problem), tuple(dict.fromkeys(calls)), 1, HASH_SEEDS[0])
                for problem, calls in rows]  # fmt: skip
        slowest = []
        for (problem, _), result in zip(rows, self._sandbox.run(jobs) if jobs else [], strict=True):
            if not result.loaded:
                raise _unusable(problem, result)
            for outcome in result.outcomes:
                if outcome.kind.is_strike:
                    raise UnusableReference(
                        f"the reference_solution of problem {problem.problem_id!r} must return within {MOST_S:g} s on "
                        f"each of its tests for a time_limit in multiples of its time, got a {outcome.kind}; give the "
                        "problem a time_limit_s instead"
                    )
            slowest.append(max(outcome.cpu_ns for outcome in result.outcomes) / 1e9)
        return slowest

    def _ask(self, batches: Sequence[_Batch], problems: Mapping[CallsJob, Problem], known: _Known) -> None:
        """Add to `known` what was tried: under both hash seeds, but for what hangs under the first, which is a hang."""
        first, second = HASH_SEEDS
        tried = self._tried(batches, problems, first)
        again = [
            (reference, tuple(call for call in calls if call in row and not row[call].kind.is_strike), most_hangs)
            for (reference, calls, most_hangs), row in zip(batches, tried, strict=True)
        ]
        for (reference, _, _), row, other in zip(batches, tried, self._tried(again, problems, second), strict=True):
            hung = {call: _agreed(outcome, outcome) for call, outcome in row.items() if outcome.kind.is_strike}
            agreed = {call: _agreed(row[call], outcome) for call, outcome in other.items()}
            known[reference] |= hung | agreed

    def _tried(
        self, batches: Sequence[_Batch], problems: Mapping[CallsJob, Problem], seed: int
    ) -> list[dict[bytes, Outcome]]:
        """By call, of every batch, under one hash seed."""
        results = self._sandbox.run([_reference_job(*batch, seed) for batch in batches]) if batches else []
        rows = []
        for result, (reference, calls, _) in zip(results, batches, strict=True):
            if not result.loaded:
                raise _unusable(problems[reference], result)
            rows.append({call: each for call, each in zip(calls, result.outcomes, strict=True) if each.tried})
        return rows


def _left(
    reference: CallsJob, calls: Sequence[bytes], known: Mapping[bytes, ReferenceValue], most_hangs: int
) -> _Batch | None:
    """What is still to ask for one row, and how often it may still hang; None where that is nothing."""
    waiting = tuple(dict.fromkeys(call for call in calls if call not in known))
    before = calls[: calls.index(waiting[0])] if waiting else ()
    hangs = sum(known[call].failure in _HANGS for call in before)
    return (reference, waiting, most_hangs - hangs) if waiting and hangs < most_hangs else None


def _row(calls: Sequence[bytes], known: Mapping[bytes, ReferenceValue], most_hangs: int | None) -> list[ReferenceValue]:
    """The values of one row, up to the last hang that it may have."""
    row: list[ReferenceValue] = []
    hangs = 0
    for call in calls:
        is_over = most_hangs is not None and hangs >= most_hangs
        row.append(_NOT_ASKED if is_over else known.get(call, _NOT_ASKED))
        hangs += row[-1].failure in _HANGS
    return row


def _reference_job(reference: CallsJob, calls: tuple[bytes, ...], most_hangs: int | None, hash_seed: int) -> CallsJob:
    """Every call has its whole time limit, whatever the others take: one that hangs is one suite's fault, and other
    suites' tests are in the same job."""
    room = len(calls) + 10
    budget_s = min(2 * room * reference.limits.time_limit_s, MAX_BUDGET_S)
    limits = replace(reference.limits, strikes=most_hangs or room, budget_s=budget_s)
    world = with_calls(reference.world, calls)
    return replace(reference, calls=calls, limits=limits, hash_seed=hash_seed, world=world)


def _reference(problem: Problem) -> CallsJob:
    if problem.reference_solution is None:
        raise UnusableReference(
            f"problem {problem.problem_id!r} must have a reference_solution to validate tests, got none"
        )
    return calls_job(problem, problem.reference_solution, ())


def _unusable(problem: Problem, result: JobResult) -> UnusableReference:
    why = result.each(1)[0]
    denied = f"; the sandbox denied it: {', '.join(result.denied)}" if result.denied else ""
    return UnusableReference(
        f"the reference_solution of problem {problem.problem_id!r} must load and define {problem.entry_point!r}, "
        f"got {why.error or why.kind}{denied}"
    )


def comparable(value: ReferenceValue) -> ReferenceValue:
    """The value for who wants to compare it: none where it equals nothing."""
    return ReferenceValue(b"", OPAQUE) if is_by_identity(value.value) else value


def is_data(encoded: bytes) -> bool:
    """Whether the bytes stand for data that can be looked at, as they do unless the program has written into its own
    results: `is_plain`, and iterators and objects."""
    if is_opaque(encoded):
        return False
    try:
        require_sound(json.loads(encoded.decode()))
    except FAILURES:
        return False
    return True


def is_plain(encoded: bytes) -> bool:
    """Whether they stand for data that equals itself."""
    return not is_by_identity(encoded) and is_data(encoded)


def _agreed(one: Outcome, other: Outcome) -> ReferenceValue:
    """What two runs under different hash seeds say together. A hang under either is one: it counts."""
    if other.kind.is_strike:
        one = other
    if one.kind is not OutcomeKind.VALUE:
        return ReferenceValue(b"", one.error or str(one.kind), one.value if one.value == other.value else b"")
    if not is_data(one.value):
        return ReferenceValue(b"", OPAQUE)
    is_same = other.kind is OutcomeKind.VALUE and same_value(as_seen(one.value), as_seen(other.value))
    if not is_same:
        return ReferenceValue(b"", "flaky")
    if one.value == other.value or (b'{"d":' not in one.value and b'{"k":' not in one.value):  # sets have no order
        return ReferenceValue(one.value)
    return ReferenceValue(one.value, others=(other.value, dumps(_backwards(json.loads(one.value))).encode("ascii")))


def _backwards(tree: Any) -> Any:
    """With all dicts, and what has their order, from the last key to the first."""
    match tree:
        case list():
            return [*map(_backwards, tree)]
        case {"d": body}:
            return {"d": _backwards(body[::-1])}
        case {"k": ["Counter" | "keys" | "items" as kind, body]}:
            return {"k": [kind, _backwards(body[::-1])]}
        case dict():
            return {tag: _backwards(body) for tag, body in tree.items()}
    return tree
