"""The oracle: what a problem's reference solution returns for a call, asked under two hash seeds and remembered.

Does not promise that the reference is right, only that it repeats itself. No candidate ever runs here.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from codea1_env.bounded_cache import BoundedCache
from codea1_env.errors import UnusableReference
from codea1_env.judging.equality import is_opaque, same_value
from codea1_env.judging.purity.company import company
from codea1_env.judging.schedule import as_run, limits_of
from codea1_env.problems.kinds import called_name
from codea1_env.problems.problem import Problem
from codea1_env.reading.literals import tree_source
from codea1_env.sandbox.protocol import MAX_BUDGET_S, CallsJob, JobResult, Limits, Outcome, OutcomeKind, Sandbox

HASH_SEEDS = (0, 1)
"""What is evaluated for the judge is evaluated under both: order, identity and chance show as a difference."""


@dataclass(frozen=True, slots=True)
class ReferenceValue:
    """What the reference solution returns for one call."""

    value: bytes
    failure: str = ""
    """Why there is none: an exception's name, `timeout`, `crash`, `memory`, `opaque`, `flaky` or `no_value`."""


@dataclass(frozen=True, slots=True)
class _Question:
    """One call of one reference, with all that its value depends on."""

    source: str
    entry_point: str
    limits: Limits
    packages: tuple[str, ...]
    call: bytes


class Oracle:
    """Asks references through a sandbox and caches their values. Not thread-safe."""

    def __init__(self, sandbox: Sandbox, cache_bytes: int) -> None:
        """`cache_bytes` bounds the values that are remembered; 0: none are."""
        self._sandbox = sandbox
        self._remembered: BoundedCache[bytes, ReferenceValue] = BoundedCache(cache_bytes)

    def values(self, asked: Sequence[tuple[Problem, Sequence[bytes]]]) -> list[list[ReferenceValue]]:
        """The reference's value for every encoded call.

        Raises UnusableReference where a problem has no reference or its reference does not load.
        """
        questions = [[_question(problem, call) for call in calls] for problem, calls in asked]
        problems = {question: problem for (problem, _), row in zip(asked, questions, strict=True) for question in row}
        found = {question: self._remembered.get(_key(question)) for question in problems}
        known = {question: value for question, value in found.items() if value is not None}
        asked_now = self._ask({question: problem for question, problem in problems.items() if question not in known})
        for question, value in asked_now.items():
            self._remembered.put(_key(question), value, len(value.value) + len(value.failure))
        known |= asked_now
        return [[known[question] for question in row] for row in questions]

    def _ask(self, new: dict[_Question, Problem]) -> dict[_Question, ReferenceValue]:
        """One run under every hash seed, whatever the others come to."""
        groups: dict[_Question, list[_Question]] = {}
        for question in new:
            groups.setdefault(replace(question, call=b""), []).append(question)
        jobs = [_reference_job(group, members, seed) for seed in HASH_SEEDS for group, members in groups.items()]
        results = iter(self._sandbox.run(jobs) if jobs else [])
        runs: list[dict[_Question, Outcome]] = []
        for _ in HASH_SEEDS:
            outcomes: dict[_Question, Outcome] = {}
            for members in groups.values():
                result = next(results)
                if not result.loaded:
                    raise _unusable(new[members[0]], result)
                outcomes.update(zip(members, result.outcomes, strict=True))
            runs.append(outcomes)
        return {question: _agreed(*(outcomes[question] for outcomes in runs)) for question in new}


def _reference_job(group: _Question, members: Sequence[_Question], hash_seed: int) -> CallsJob:
    """Every call has its whole time limit, whatever the others take: one that hangs is one suite's fault, and other
    suites' tests are in the same job."""
    room = len(members) + 10
    limits = replace(group.limits, strikes=room, budget_s=min(2 * room * group.limits.time_limit_s, MAX_BUDGET_S))
    calls = tuple(question.call for question in members)
    may_share = company(group.source)
    return CallsJob(group.source, group.entry_point, calls, limits, hash_seed, group.packages, may_share)


def _question(problem: Problem, call: bytes) -> _Question:
    if problem.reference_solution is None:
        raise UnusableReference(
            f"problem {problem.problem_id!r} must have a reference_solution to validate tests, got none"
        )
    source = as_run(problem, problem.reference_solution)
    return _Question(source, called_name(problem), limits_of(problem), problem.packages, call)


def _key(question: _Question) -> bytes:
    """A digest: the cache holds no program's source once per call."""
    return hashlib.blake2b(repr(question).encode("utf-8"), digest_size=32).digest()


def _unusable(problem: Problem, result: JobResult) -> UnusableReference:
    why = result.load_failure
    return UnusableReference(
        f"the reference_solution of problem {problem.problem_id!r} must load and define {problem.entry_point!r}, "
        f"got {(why.error or why.kind) if why else 'nothing'}"
    )


def is_plain(encoded: bytes) -> bool:
    """Whether the bytes stand for plain data, as they do unless the program has written into its own results."""
    if is_opaque(encoded):
        return False
    try:
        tree_source(json.loads(encoded))
    except (ValueError, RecursionError):
        return False
    return True


def _agreed(one: Outcome, other: Outcome) -> ReferenceValue:
    """What two runs of the reference under different hash seeds say together."""
    if one.kind is not OutcomeKind.VALUE:
        return ReferenceValue(b"", one.error or str(one.kind))
    if not is_plain(one.value):
        return ReferenceValue(b"", "opaque")
    is_same = other.kind is OutcomeKind.VALUE and same_value(one.value, other.value)
    return ReferenceValue(one.value) if is_same else ReferenceValue(b"", "flaky")
