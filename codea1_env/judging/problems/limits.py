"""Gives a problem the limits that it does not say itself: the run's memory, and a time in multiples of the reference's.

A time limit follows from the problem alone, before any candidate runs: its reference runs once on the calls of its
golden and hidden tests, and the slowest call counts. The seconds then take the place of the rule. Does not promise the
same time limit on another machine, or twice on one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

from codea1_env.errors import UnusableReference
from codea1_env.judging.judge import Judge
from codea1_env.judging.problems.own_tests import OwnTests
from codea1_env.problems.problem import Problem
from codea1_env.problems.time_limits import TimeLimit
from codea1_env.sandbox.protocol import MEMORY_MB, TIME_LIMIT_S


def rule_of(problem: Problem, usual: TimeLimit | None = None) -> TimeLimit | None:
    """The rule by which the problem's limit is found out: its own, or the run's, `usual`, where it says no limit.

    Raises UnusableReference where there is nothing to find it out by.
    """
    rule = problem.time_limit or (usual if problem.time_limit_s == TIME_LIMIT_S else None)
    if rule is not None and problem.reference_solution is None:
        raise _unusable(problem, "no reference_solution")
    if rule is not None and not problem.golden_tests and not problem.hidden_tests:
        raise _unusable(problem, "no golden or hidden test")
    return rule


def with_seconds(problem: Problem, seconds: float) -> Problem:
    """The problem with a plain limit in the rule's place."""
    return dataclasses.replace(problem, time_limit=None, time_limit_s=seconds)


def with_memory(problem: Problem, usual_mb: int | None) -> Problem:
    """The problem with the run's memory, in MiB, where it says none of its own."""
    says_none = problem.memory_mb == MEMORY_MB
    return dataclasses.replace(problem, memory_mb=usual_mb) if says_none and usual_mb else problem


class RunLimits:
    """Gives problems their limits, and remembers them. Not thread-safe."""

    def __init__(
        self, judge: Judge, own_tests: OwnTests, time_limit: TimeLimit | None = None, memory_mb: int | None = None
    ) -> None:
        """`time_limit`, `memory_mb`: the run's, for problems that say none."""
        self._judge = judge
        self._own_tests = own_tests
        self._usual = time_limit
        self._memory_mb = memory_mb
        self._known: dict[str, float] = {}

    def settled(self, problems: Sequence[Problem]) -> list[Problem]:
        """Every problem with its limits, the time in seconds; one that says them itself as it is.

        Raises UnusableReference where a rule has no reference or no test that can be read to go by, or the reference
        does not load or return, and SandboxError.
        """
        problems = [with_memory(problem, self._memory_mb) for problem in problems]
        ruled = [(problem, rule) for problem in problems if (rule := rule_of(problem, self._usual))]
        new = {problem.content_hash: (problem, rule) for problem, rule in ruled}
        new = {key: pair for key, pair in new.items() if key not in self._known}
        if new:
            reads = self._own_tests.readable([problem for problem, _ in new.values()])
            asked = [(read.problem, read.calls) for read in reads]
            for problem, calls in asked:
                if not calls:
                    raise _unusable(problem, "no golden or hidden test that can be read")
            for (key, (_, rule)), seconds in zip(new.items(), self._judge.reference_seconds(asked), strict=True):
                self._known[key] = rule.seconds(seconds)
        return [self.known(problem) for problem in problems]

    def found(self, problems: Iterable[Problem]) -> dict[str, float]:
        """What was found out about them, in seconds, for the `learn` of another process."""
        settled = (with_memory(problem, self._memory_mb) for problem in problems if self._has_rule(problem))
        hashes = [problem.content_hash for problem in settled]
        return {name: self._known[name] for name in hashes if name in self._known}

    def learn(self, found: Mapping[str, float]) -> None:
        """What another process found out; what is known already stays."""
        self._known = {**found, **self._known}

    def known(self, problem: Problem) -> Problem:
        """As `settled`, of a problem that was; another one as it is."""
        problem = with_memory(problem, self._memory_mb)
        seconds = self._known.get(problem.content_hash) if self._has_rule(problem) else None
        return problem if seconds is None else with_seconds(problem, seconds)

    def _has_rule(self, problem: Problem) -> bool:
        return problem.time_limit is not None or self._usual is not None


def _unusable(problem: Problem, got: str) -> UnusableReference:
    return UnusableReference(
        f"problem {problem.problem_id!r} must have a reference_solution and a golden or hidden test for a time_limit "
        f"in multiples of its reference's time, got {got}; give it a time_limit_s instead"
    )
