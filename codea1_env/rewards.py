"""Duels -> rewards of both seats: the formulas of Code-A1 (arXiv 2603.15611), every number of them visible. Pure.

Does not promise a reward where infrastructure failed: such a duel has none, and neither has the program it was about.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from codea1_env.duel import Duel, JudgedTest, Status, Verdict
from codea1_env.errors import ConfigurationError
from codea1_env.grammar import Fidelity

TesterReward: TypeAlias = Literal["code-a1", "utrl", "cure", "skill"]
CoderTests: TypeAlias = Literal["own", "union"]
OracleMode: TypeAlias = Literal["reference", "golden", "majority", "dual"]

_INVALID = frozenset((Status.WRONG_EXPECTED, Status.DUPLICATE, Status.RAISES, Status.FLAKY, Status.REJECTED))


@dataclass(frozen=True, slots=True)
class RewardConfig:
    """The choices in the reward. Raises ConfigurationError for a value outside its range."""

    alpha: float = 0.5
    """Weight of validity against the adversarial part of the tester's reward, in [0, 1] (paper: 0.5)."""
    suite_size: int = 8
    """K, the asserts that a suite should hold, >= 1 (paper: 8)."""
    replay_limit: int = 8
    """Most Mistake Book tests replayed on a solution, >= 0; 0 turns the book's replay off (released code: 8)."""
    fidelity: Fidelity = "strict"
    """`strict`: the first K asserts count, `==` only. `paper`: programs and suites are read and asserts are counted as
    in the released code (`docs/deviations.md`)."""
    correct_outputs: bool = True
    """Run a test that states a wrong value with the reference's value instead, as the released code does."""
    tester_reward: TesterReward = "code-a1"
    """What a suite is paid: see `tester_rewards.py`. All but `code-a1` run every suite on all N solutions; `skill`
    changes the coder's reward, too."""
    coder_tests: CoderTests = "own"
    """`own`: a solution is judged by the suites written against it (paper). `union`: by all suites of its question."""
    utrl_tau: int = 12
    """Least denominator of the validity of `utrl`, >= 1 (released code of UTRL: 12)."""
    oracle: OracleMode = "reference"
    """What decides which value a call must return: see `oracles.py`. Without the reference (paper), `golden`: the
    question's golden tests; `majority`: most of its solutions; `dual`: the consensus of solutions and tests."""

    def __post_init__(self) -> None:
        _require(_is_number(self.alpha) and 0 <= self.alpha <= 1, "alpha", "be in [0, 1]", self.alpha)
        for name, least in (("suite_size", 1), ("replay_limit", 0), ("utrl_tau", 1)):
            value = getattr(self, name)
            _require(type(value) is int and value >= least, name, f"be an int of at least {least}", value)
        for name, choices in (
            ("fidelity", ("strict", "paper")),
            ("tester_reward", ("code-a1", "utrl", "cure", "skill")),
            ("coder_tests", ("own", "union")),
            ("oracle", ("reference", "golden", "majority", "dual")),
        ):
            value = getattr(self, name)
            is_choice = isinstance(value, str) and value in choices
            _require(is_choice, name, f"be {', '.join(map(repr, choices[:-1]))} or {choices[-1]!r}", value)
        _require(type(self.correct_outputs) is bool, "correct_outputs", "be True or False", self.correct_outputs)

    @property
    def runs_union(self) -> bool:
        """Every suite of a question runs on all its solutions."""
        return self.coder_tests == "union" or self.tester_reward != "code-a1"

    @property
    def by_reference(self) -> RewardConfig:
        """The same numbers where seats are measured: the reference decides, each suite on its own program."""
        return dataclasses.replace(self, oracle="reference", tester_reward="code-a1", coder_tests="own")

    @property
    def runs_stated(self) -> bool:
        """Tests run as written, too, also where they state a wrong value."""
        return self.tester_reward in ("cure", "skill")


@dataclass(frozen=True, slots=True)
class SuiteTerms:
    """Every number of one duel's reward, by the names of Code-A1; what others put in: `tester_rewards.py`."""

    executes: bool
    """The solution loads within its limits and defines a callable entry point; in paper fidelity, it loads."""
    v: int
    """Tests that count as valid: kept, and corrected ones where outputs are corrected."""
    invalid: int
    """Asserts that state a wrong value, repeat a call, raise or are flaky on the reference, or break the grammar."""
    suite_size: int
    """K."""
    alpha: float
    """Weight of validity, as configured; `effective_alpha` says what group normalisation makes of it."""
    passed: int
    """Of the v tests, those that the solution passes."""
    validity: float
    """R_val, in [0, 1]."""
    f_new: float
    """Valid tests among the first K asserts that the solution fails, over K, in [0, 1]; in paper fidelity the first K
    valid tests, whatever stands between them."""
    f_hist: float | None
    """Share of the replayed tests that the solution fails; None where nothing was replayed."""
    adversarial: float
    """R_adv, in [0, 1]."""
    nonprintable: float
    """Share of non-printable characters in the tester's response, in [0, 1]: the penalty."""
    p_new: float | None
    """passed / v; None where v = 0."""
    p_hist: float | None
    """1 - f_hist; None where nothing was replayed."""
    reward: float
    """R_T, in [-1, 1]."""


def suite_terms(duel: Duel, config: RewardConfig) -> SuiteTerms | None:
    """The tester's reward for one suite, and its parts. None where infrastructure failed.

    Paper, equations of R_T^val, R_T^adv and R_T = alpha R_T^val + (1 - alpha) R_T^adv; where the paper and its code
    differ, the code, as `RewardConfig.fidelity` says:

        R_val = clip(min(v / K, 1 - invalid / K), 0, 1)
        f_new = (valid tests among the first K asserts that the solution fails) / K     (paper: first K valid tests)
        R_T   = [solution executes] (alpha R_val + (1 - alpha) R_adv) - (share of non-printable characters)
    """
    if duel.infrastructure_error or duel.executes is None:
        return None
    size = config.suite_size
    valid = [test for test in duel.tests if is_valid(test, config)]
    v, invalid = len(valid), sum(test.status in _INVALID for test in duel.tests)
    passed = sum(test.verdict is Verdict.PASS for test in valid)
    validity = min(max(min(v / size, 1 - invalid / size), 0.0), 1.0)
    f_new = sum(duel.tests[place].verdict is not Verdict.PASS for place in attacking(duel, config)) / size
    failed_replays = sum(replay.verdict is not Verdict.PASS for replay in duel.replays)
    f_hist = failed_replays / len(duel.replays) if duel.replays else None
    adversarial = _adversarial(f_new, f_hist, v)
    earned = config.alpha * validity + (1 - config.alpha) * adversarial if duel.executes else 0.0
    return SuiteTerms(
        executes=duel.executes,
        v=v,
        invalid=invalid,
        suite_size=size,
        alpha=config.alpha,
        passed=passed,
        validity=validity,
        f_new=f_new,
        f_hist=f_hist,
        adversarial=adversarial,
        nonprintable=duel.nonprintable,
        p_new=passed / v if v else None,
        p_hist=None if f_hist is None else 1 - f_hist,
        reward=earned - duel.nonprintable,
    )


def coder_reward(terms: Sequence[SuiteTerms | None]) -> float | None:
    """R_C: the mean, over the suites written against one solution, of the share of tests that it passes.

    A suite's share is the mean of `p_new` and `p_hist` where both exist, the one that exists otherwise, and 0 with
    neither (released code; the paper's figure pools the tests instead). None where a suite has no terms; 0 without any.
    """
    shares: list[float] = []
    for suite in terms:
        if suite is None:
            return None
        shares.append(share_passed(suite.p_hist, suite.p_new))
    return sum(shares) / len(shares) if shares else 0.0


def share_passed(p_hist: float | None, p_new: float | None) -> float:
    """What one suite pays a solution: the mean of the two shares, the one that exists otherwise, 0 with neither."""
    parts = [part for part in (p_hist, p_new) if part is not None]
    return sum(parts) / len(parts) if parts else 0.0


def effective_alpha(alpha: float, replayed: bool) -> float:
    """The weight of validity that is left after the normalisation of advantages in groups.

    With replay, R_adv = (f_new - f_hist + 1) / 2, and f_hist and 1 are the same for every suite of a group with v > 0:
    normalisation cancels them. What is left, alpha R_val + (1 - alpha) / 2 f_new, weighs validity by
    alpha / (alpha + (1 - alpha) / 2): 2/3 at alpha = 0.5. Raises ConfigurationError for alpha outside [0, 1].
    """
    _require(_is_number(alpha) and 0 <= alpha <= 1, "alpha", "be in [0, 1]", alpha)
    return 2 * alpha / (1 + alpha) if replayed else alpha


def is_valid(test: JudgedTest, config: RewardConfig) -> bool:
    """Whether the test counts in v and is run on the solution."""
    return test.status is Status.KEPT or (config.correct_outputs and test.status is Status.WRONG_EXPECTED)


def attacking(duel: Duel, config: RewardConfig) -> list[int]:
    """The places of the tests that f_new counts over: the valid ones among the first K asserts; in paper fidelity the
    first K of the valid ones, as in the released code."""
    size = config.suite_size
    asserts = duel.tests if config.fidelity == "paper" else duel.tests[:size]
    return [place for place, test in enumerate(asserts) if is_valid(test, config)][:size]


def _adversarial(f_new: float, f_hist: float | None, v: int) -> float:
    """R_adv (paper, equation of R_T^adv): how much more the solution fails on new tests than on replayed ones."""
    if f_hist is None:
        return f_new
    return (f_new - f_hist + 1) / 2 if v else 0.0


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _require(condition: bool, name: str, must: str, got: object) -> None:
    if not condition:
        raise ConfigurationError(f"{name} must {must}, got {got!r}")
