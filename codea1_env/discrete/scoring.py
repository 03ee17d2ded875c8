"""One program against one suite of a pool -> the rewards of both seats, by the formulas of `codea1_env.rewards`.

The duel is put together from what the pool says each test came to alone; nothing is run and no formula is repeated
here. Does not know a Mistake Book: nothing is replayed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from codea1_env.discrete.pool import RUN_STATUSES, Pool
from codea1_env.errors import ConfigurationError
from codea1_env.rewards.code_a1 import PARTS, RewardConfig, coder_reward, suite_terms
from codea1_env.rewards.duel import Duel, JudgedTest, Status, Verdict
from codea1_env.rewards.terms import SuiteTerms

# By the strict grammar and against the reference pools are judged; a duel of one program and one suite is all there is.
_ONLY = {
    name: getattr(RewardConfig(), name) for name in ("fidelity", "trim", *PARTS, "compare", "coder_tests", "oracle")
}


@dataclass(frozen=True, slots=True)
class PairScore:
    """What a program and a suite earn against each other."""

    coder: float
    """R_C, in [0, 1]."""
    tester: float
    """R_T, in [0, 1]: texts of a pool are printable, so nothing is subtracted."""
    terms: SuiteTerms
    """Every number of the reward."""
    tests: tuple[JudgedTest, ...]
    """The suite's tests with their statuses in this suite and their verdicts, for display."""


class PoolScorer:
    """Pays choices from one pool."""

    def __init__(self, pool: Pool, config: RewardConfig) -> None:
        """Raises ConfigurationError for rewards that need more than the pool knows: each test's outcome, by reference.

        `alpha`, `suite_size` and `correct_outputs` are free; `replay_limit` has no meaning here.
        """
        for name, only in _ONLY.items():
            if getattr(config, name) != only:
                raise ConfigurationError(f"{name} must be {only!r} in the discrete game, got {getattr(config, name)!r}")
        self.pool, self.config = pool, config
        self._passed = [_judged(pool, place, Verdict.PASS, config) for place in range(len(pool.tests))]
        self._failed = [_judged(pool, place, Verdict.FAIL, config) for place in range(len(pool.tests))]
        self._repeated = [_shown(test, Status.DUPLICATE) for test in pool.tests]

    def score(self, program: int | None, suite: Sequence[int]) -> PairScore:
        """`program`: an index, or None for an empty answer. `suite`: indices of at most K tests, in order.

        Raises ConfigurationError for anything else.
        """
        pool = self.pool
        self._check(program, suite)
        executes = program is not None and pool.executes[program]
        fails = None if program is None else pool.fails[program]
        tests, seen = [], set()
        for place in suite:
            if pool.calls[place] in seen and pool.statuses[place] is not Status.REJECTED:
                tests.append(self._repeated[place])
                continue
            seen.add(pool.calls[place])
            tests.append(self._failed[place] if fails is None or fails[place] else self._passed[place])
        source = "" if program is None else pool.programs[program]
        terms = suite_terms(Duel(pool.problem_id, source, executes, 0.0, tuple(tests), ()), self.config)
        coder = coder_reward([terms])
        assert terms is not None  # nothing here can fail as infrastructure does
        assert coder is not None
        return PairScore(coder, terms.reward, terms, tuple(tests))

    def _check(self, program: int | None, suite: Sequence[int]) -> None:
        programs, tests, most = len(self.pool.programs), len(self.pool.tests), self.config.suite_size
        if program is not None and not 0 <= program < programs:
            raise ConfigurationError(f"a program must be None or an index in [0, {programs - 1}], got {program!r}")
        if len(suite) > most:
            raise ConfigurationError(f"a suite must hold at most {most} tests, got {len(suite)}")
        if suite and not 0 <= min(suite) <= max(suite) < tests:
            raise ConfigurationError(f"a suite must hold indices in [0, {tests - 1}], got {tuple(suite)!r}")


def _judged(pool: Pool, place: int, verdict: Verdict, config: RewardConfig) -> JudgedTest:
    status = pool.statuses[place]
    is_run = status is Status.KEPT or (config.correct_outputs and status in RUN_STATUSES)
    return _shown(pool.tests[place], status, verdict if is_run else None)


def _shown(source: str, status: Status, verdict: Verdict | None = None) -> JudgedTest:
    """Pools do not hold what the other fields would say."""
    return JudgedTest(source, status, "", None, None, None, verdict)
