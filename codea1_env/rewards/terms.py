"""The formulas of Code-A1 (arXiv 2603.15611), one function for each term: counts -> shares -> rewards. Pure numbers.

All code that pays, reweighs or shows a reward, or solves for best responses, calls these functions. They do not know
what was counted: see `rewards.suite_terms`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from codea1_env.checks import is_number, require
from codea1_env.reading.grammar import Fidelity
from codea1_env.rewards.duel import JudgedReplay, JudgedTest, Status, Verdict

MAY_LACK = frozenset(("f_hist", "p_new", "p_hist"))
"""The terms that are None where nothing was replayed, or no test is valid."""
_INVALID = frozenset(Status) - {Status.KEPT, Status.SURPLUS}


class AssertCounts(NamedTuple):
    """How many asserts of a suite count for what."""

    v: int
    """Valid tests."""
    invalid: int
    """Asserts that state a wrong value, make a wrong or vacuous claim, repeat a call, raise or are flaky on the
    reference, or break the grammar."""
    broken: int
    """Valid tests that the solution fails, of those that f_new counts over (`attacking`)."""
    passed: int
    """Valid tests that the solution passes."""


@dataclass(frozen=True, slots=True)
class SuiteTerms:
    """Every number of one duel's reward, by the names of Code-A1; `tester_rewards.py` says what other rewards put
    in."""

    executes: bool
    """Whether the solution loads within its limits and defines a callable entry point; in paper fidelity, whether it
    loads."""
    v: int
    """Tests that count as valid: kept tests, and corrected ones if outputs are corrected."""
    invalid: int
    """Asserts that state a wrong value, repeat a call, raise or are flaky on the reference, or break the grammar."""
    suite_size: int
    """K."""
    alpha: float
    """Weight of validity, as configured; `effective_alpha` says what group normalisation makes of it."""
    passed: int
    """Number of the v tests that the solution passes."""
    validity: float
    """R_val, in [0, 1]."""
    f_new: float
    """Valid tests among the first K asserts that the solution fails, over K, in [0, 1]; in paper fidelity the first K
    valid tests, whatever stands between them."""
    f_hist: float | None
    """Share of the replayed tests that the solution fails; None if nothing was replayed."""
    adversarial: float
    """R_adv, in [0, 1]."""
    nonprintable: float
    """Share of non-printable characters in the tester's response, in [0, 1]: the penalty."""
    p_new: float | None
    """passed / v; None if v = 0."""
    p_hist: float | None
    """1 - f_hist; None if nothing was replayed."""
    reward: float
    """R_T, in [-1, 1]."""


def attacking(valid: Sequence[bool], size: int, fidelity: Fidelity) -> frozenset[int]:
    """The places of the tests that f_new counts over: the valid tests among the first K asserts; in paper fidelity the
    first K valid tests, as in the released code."""
    asserts = valid if fidelity == "paper" else valid[:size]
    return frozenset([place for place, is_valid in enumerate(asserts) if is_valid][:size])


def count(
    tests: Sequence[JudgedTest], valid: Sequence[bool], attacking: Collection[int], without: int | None = None
) -> AssertCounts:
    """`valid`: which tests count in v. `attacking`: the places of those that f_new counts over. `without`: the place of
    an assert that is taken to count for nothing."""
    v = invalid = broken = passed = 0
    for place, (test, is_valid) in enumerate(zip(tests, valid, strict=True)):
        if place == without:
            continue
        invalid += test.status in _INVALID
        if is_valid:
            passes = test.verdict is Verdict.PASS
            v, passed, broken = v + 1, passed + passes, broken + (not passes and place in attacking)
    return AssertCounts(v, invalid, broken, passed)


def terms_of(
    counts: AssertCounts, *, executes: bool, size: int, alpha: float, f_hist: float | None, nonprintable: float
) -> SuiteTerms:
    """The tester's reward, and its parts, from what the asserts count for."""
    validity, f_new = share_valid(counts.v, counts.invalid, size), counts.broken / size
    adversarial = adversarial_share(f_new, f_hist, counts.v)
    return SuiteTerms(
        executes=executes,
        v=counts.v,
        invalid=counts.invalid,
        suite_size=size,
        alpha=alpha,
        passed=counts.passed,
        validity=validity,
        f_new=f_new,
        f_hist=f_hist,
        adversarial=adversarial,
        nonprintable=nonprintable,
        p_new=counts.passed / counts.v if counts.v else None,
        p_hist=None if f_hist is None else 1 - f_hist,
        reward=paid(executes, weighed(alpha, validity, adversarial).total, nonprintable),
    )


def share_valid(v: int, invalid: int, size: int) -> float:
    """R_val (paper, equation of R_T^val): clip(min(v / K, 1 - invalid / K), 0, 1)."""
    return min(max(min(v / size, 1 - invalid / size), 0.0), 1.0)


def share_failed(replays: Sequence[JudgedReplay]) -> float | None:
    """f_hist: the share of the replayed tests that the solution fails; None if nothing was replayed."""
    return sum(each.verdict is not Verdict.PASS for each in replays) / len(replays) if replays else None


def adversarial_share(f_new: float, f_hist: float | None, v: int) -> float:
    """R_adv (paper, equation of R_T^adv): how much more the solution fails on new tests than on replayed ones."""
    if f_hist is None:
        return f_new
    return (f_new - f_hist + 1) / 2 if v else 0.0


class RewardParts(NamedTuple):
    """The part of a reward that is paid for validity, and the part beside it."""

    validity: float
    adversarial: float

    @property
    def total(self) -> float:
        return self.validity + self.adversarial


def weighed(alpha: float, validity: float, adversarial: float) -> RewardParts:
    """alpha R_val + (1 - alpha) R_adv (paper, equation of R_T), as two parts."""
    return RewardParts(alpha * validity, (1 - alpha) * adversarial)


def paid(executes: bool, earned: float, nonprintable: float) -> float:
    """R_T: the reward that is earned if the solution executes, minus the share of non-printable characters."""
    return (earned if executes else 0.0) - nonprintable


def share_passed(p_hist: float | None, p_new: float | None) -> float:
    """What one suite pays a solution: the mean of the two shares, the one share that exists, or 0 with neither."""
    parts = [part for part in (p_hist, p_new) if part is not None]
    return sum(parts) / len(parts) if parts else 0.0


def mean_share(shares: Iterable[float]) -> float:
    """R_C: the mean of what the suites pay a solution; 0 without any."""
    values = list(shares)
    return sum(values) / len(values) if values else 0.0


def effective_alpha(alpha: float, replayed: bool) -> float:
    """The weight of validity that is left after the normalisation of advantages in groups.

    With replay, R_adv = (f_new - f_hist + 1) / 2, and f_hist and 1 are the same for every suite of a group with v > 0:
    normalisation cancels them. What is left, alpha R_val + (1 - alpha) / 2 f_new, weighs validity by
    alpha / (alpha + (1 - alpha) / 2): 2/3 at alpha = 0.5. Raises ConfigurationError for alpha outside [0, 1].
    """
    require(is_number(alpha) and 0 <= alpha <= 1, "alpha", "be in [0, 1]", alpha)
    return 2 * alpha / (1 + alpha) if replayed else alpha
