"""Every branch of every formula of the reward, against numbers computed by hand. K = 8 and alpha = 1/2 unless said."""

from __future__ import annotations

import dataclasses
import statistics

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from codea1_env.errors import ConfigurationError
from codea1_env.reading.test_case import TestCase
from codea1_env.rewards.code_a1 import RewardConfig, coder_reward, suite_terms
from codea1_env.rewards.duel import Duel, JudgedReplay, JudgedTest, Status, Verdict
from codea1_env.rewards.terms import SuiteTerms, effective_alpha

KEPT, WRONG, WRONG_RELATION, VACUOUS, DUPLICATE, RAISES, FLAKY, REJECTED, SURPLUS = Status
PASS, FAIL, ERROR, TIMEOUT, CRASH = Verdict
STRICT = RewardConfig()
PAPER = RewardConfig(fidelity="paper")


def judged_test(status: Status, verdict: Verdict | None = None) -> JudgedTest:
    return JudgedTest("assert f(0) == 0", status, "", "f(0)", "0", "0", verdict)


PASSED, FAILED = judged_test(KEPT, PASS), judged_test(KEPT, FAIL)


def duel(
    *tests: JudgedTest,
    replays: tuple[Verdict | None, ...] = (),
    executes: bool | None = True,
    nonprintable: float = 0.0,
    infrastructure_error: str = "",
) -> Duel:
    judged = tuple(JudgedReplay(TestCase(f"f({i})", "0"), verdict) for i, verdict in enumerate(replays))
    return Duel("p", "def f(x): ...", executes, nonprintable, tests, judged, infrastructure_error)


def terms(found: Duel, config: RewardConfig = STRICT) -> SuiteTerms:
    computed = suite_terms(found, config)
    assert computed is not None
    return computed


def holds(found: Duel, config: RewardConfig = STRICT, **expected: object) -> None:
    computed = terms(found, config)
    assert {name: getattr(computed, name) for name in expected} == expected


def test_a_suite_is_paid_for_valid_tests_and_for_those_that_the_solution_fails() -> None:
    # R_val = min(8/8, 1 - 0/8) = 1; f_new = 0/8; R_T = 1/2 * 1 + 1/2 * 0
    holds(duel(*[PASSED] * 8), v=8, invalid=0, passed=8, validity=1.0, f_new=0.0, adversarial=0.0, reward=0.5)
    holds(duel(*[PASSED] * 8), f_hist=None, p_new=1.0, p_hist=None)
    # R_val = 1; f_new = 8/8 = R_adv; R_T = 1/2 + 1/2
    holds(duel(*[FAILED] * 8), validity=1.0, f_new=1.0, reward=1.0, p_new=0.0)
    # v = 0: R_val = min(0, 1) = 0; f_new = 0
    holds(duel(), v=0, validity=0.0, reward=0.0, p_new=None, p_hist=None)
    # As without the surplus: v = 8, all passed, R_T = 1/2.
    holds(duel(*[PASSED] * 8, *[judged_test(SURPLUS)] * 22), v=8, invalid=0, f_new=0.0, reward=0.5)


@pytest.mark.parametrize("verdict", [FAIL, ERROR, TIMEOUT, CRASH])
def test_every_verdict_but_pass_is_a_failure(verdict: Verdict) -> None:
    # v = 4: R_val = min(4/8, 1) = 1/2; f_new = 1/8; R_T = 1/4 + 1/16 = 0.3125; p_new = 3/4
    holds(duel(judged_test(KEPT, verdict), *[PASSED] * 3), validity=0.5, f_new=0.125, reward=0.3125, p_new=0.75)


@pytest.mark.parametrize("status", [RAISES, FLAKY, REJECTED, DUPLICATE])
def test_an_invalid_assert_counts_against_validity_and_nowhere_else(status: Status) -> None:
    # v = 6, invalid = 2: R_val = min(6/8, 1 - 2/8) = 3/4; f_new = 2/8; R_T = 3/8 + 1/8; p_new = 4/6
    found = duel(*[PASSED] * 4, *[FAILED] * 2, *[judged_test(status)] * 2)
    holds(found, v=6, invalid=2, validity=0.75, f_new=0.25, reward=0.5, p_new=4 / 6)


def test_validity_is_bounded_by_valid_tests_and_by_invalid_asserts_and_clipped() -> None:
    # v = 1, invalid = 0: R_val = min(1/8, 1) = 1/8; f_new = 1/8; R_T = 1/16 + 1/16
    holds(duel(FAILED), validity=0.125, f_new=0.125, reward=0.125)
    # Corrected tests count in both: v = 8, invalid = 6: R_val = min(8/8, 1 - 6/8) = 1/4; all passed; R_T = 1/8
    corrected = duel(*[PASSED] * 2, *[judged_test(WRONG, PASS)] * 6)
    holds(corrected, v=8, invalid=6, validity=0.25, reward=0.125)
    # Paper mode counts all. v = 8 of ten asserts, invalid = 2: R_val = min(1, 1 - 2/8) = 6/8
    holds(duel(*[PASSED] * 8, *[judged_test(DUPLICATE)] * 2), PAPER, v=8, invalid=2, validity=0.75)
    # v = 2, invalid = 10: min(2/8, 1 - 10/8 = -1/4) -> 0; f_new = 2/8; R_T = 0 + 1/8
    many = duel(*[FAILED] * 2, *[judged_test(REJECTED)] * 10)
    holds(many, PAPER, v=2, invalid=10, validity=0.0, reward=0.125)
    # v = 20, invalid = 0: min(20/8, 1) = 1.
    holds(duel(*[PASSED] * 20), PAPER, validity=1.0)


def test_eight_wrong_answers_on_bug_exposing_inputs_earn_a_half_by_correction() -> None:
    # v = 8 and invalid = 8: R_val = min(1, 1 - 8/8) = 0; f_new = 8/8; R_T = 0 + 1/2. In both fidelities.
    for config in (STRICT, PAPER):
        wrong = duel(*[judged_test(WRONG, FAIL)] * 8)
        holds(wrong, config, v=8, invalid=8, validity=0.0, f_new=1.0, reward=0.5)


def test_without_correction_wrong_answers_earn_nothing() -> None:
    # v = 0, invalid = 8: R_val = min(0, 0) = 0, f_new = 0 even if verdicts were there.
    config = RewardConfig(correct_outputs=False)
    for verdict in (None, FAIL):
        wrong = duel(*[judged_test(WRONG, verdict)] * 8)
        holds(wrong, config, v=0, invalid=8, f_new=0.0, passed=0, reward=0.0, p_new=None)


def test_a_corrected_test_that_the_solution_passes_counts_for_the_coder() -> None:
    # v = 2, passed = 1: p_new = 1/2. invalid = 2: R_val = min(2/8, 6/8) = 1/4; f_new = 1/8; R_T = 1/8 + 1/16
    found = duel(judged_test(WRONG, PASS), judged_test(WRONG, FAIL))
    holds(found, passed=1, p_new=0.5, validity=0.25, reward=0.1875)


def test_thirty_valid_tests_cost_nothing_in_paper_mode_and_their_failures_count_among_the_first_k() -> None:
    # v = 30, invalid = 0: R_val = 1. Failures at places 1 to 4 and 9 to 30: f_new = 4/8. R_T = 1/2 + 1/4.
    # The coder's share counts all of them: passed = 4 of 30.
    found = duel(*[FAILED] * 4, *[PASSED] * 4, *[FAILED] * 22)
    holds(found, PAPER, v=30, validity=1.0, f_new=0.5, reward=0.75, p_new=4 / 30)


def test_the_first_k_asserts_include_those_that_are_not_valid() -> None:
    # Places 1 to 8 are rejected, the failing tests come after: f_new = 0. v = 2, invalid = 8: R_val = 0. R_T = 0.
    played = duel(*[judged_test(REJECTED)] * 8, *[FAILED] * 2)
    holds(played, STRICT, v=2, f_new=0.0, reward=0.0, p_new=0.0)
    # Paper: the first K valid tests, wherever they stand: f_new = 2/8, R_T = 1/8.
    holds(played, PAPER, v=2, f_new=0.25, reward=0.125, p_new=0.0)


def test_replayed_tests_that_the_solution_fails_lower_the_adversarial_part() -> None:
    # v = 8, 4 failed: f_new = 1/2; 3 of 4 replays failed: f_hist = 3/4; R_adv = (1/2 - 3/4 + 1) / 2 = 3/8
    # R_T = 1/2 * 1 + 1/2 * 3/8 = 11/16
    found = duel(*[PASSED] * 4, *[FAILED] * 4, replays=(PASS, FAIL, TIMEOUT, ERROR))
    holds(found, f_new=0.5, f_hist=0.75, adversarial=0.375, reward=0.6875, p_new=0.5, p_hist=0.25)
    # v = 8, none failed: f_new = 0, f_hist = 0: R_adv = (0 - 0 + 1) / 2 = 1/2; R_T = 1/2 + 1/4
    holds(duel(*[PASSED] * 8, replays=(PASS, PASS)), f_hist=0.0, adversarial=0.5, reward=0.75)
    # v = 0: R_adv = 0 and not (0 - 0 + 1) / 2; invalid = 2: R_val = min(0, 3/4) = 0
    none = duel(*[judged_test(REJECTED)] * 2, replays=(PASS, PASS))
    holds(none, adversarial=0.0, reward=0.0, p_new=None, p_hist=1.0)
    # A replay that was not run counts as failed: f_hist = 1/2: R_adv = (0 - 1/2 + 1) / 2 = 1/4; v = 8: R_T = 1/2 + 1/8
    holds(duel(*[PASSED] * 8, replays=(PASS, None)), f_hist=0.5, reward=0.625)


def test_a_suite_against_a_solution_that_does_not_execute_earns_nothing() -> None:
    # R_val = 1 and f_new = 1 stay visible; R_T = 0 * (...) - 0. The solution passes nothing: p_new = 0/8, p_hist = 0.
    found = duel(*[judged_test(KEPT, None)] * 8, replays=(None,), executes=False)
    holds(found, validity=1.0, f_new=1.0, reward=0.0, p_new=0.0, p_hist=0.0)
    assert coder_reward([terms(found)]) == 0.0


def test_nonprintable_characters_are_a_penalty_even_where_nothing_executes() -> None:
    # 1/2 - 1/4 and 0 - 1/4
    holds(duel(*[PASSED] * 8, nonprintable=0.25), reward=0.25)
    holds(duel(*[PASSED] * 8, nonprintable=0.25, executes=False), reward=-0.25)


@pytest.mark.parametrize(("alpha", "reward"), [(0.0, 0.25), (0.25, 0.375), (0.5, 0.5), (0.75, 0.625), (1.0, 0.75)])
def test_alpha_weighs_validity_against_the_adversarial_part(alpha: float, reward: float) -> None:
    # v = 6, invalid = 2: R_val = 3/4; f_new = 2/8 = 1/4; R_T = alpha * 3/4 + (1 - alpha) * 1/4
    found = duel(*[PASSED] * 4, *[FAILED] * 2, *[judged_test(REJECTED)] * 2)
    holds(found, RewardConfig(alpha=alpha), reward=reward)


def test_k_is_the_denominator() -> None:
    # K = 4, v = 2, invalid = 1: R_val = min(2/4, 3/4) = 1/2; f_new = 1/4; R_T = 1/4 + 1/8
    found, config = duel(PASSED, FAILED, judged_test(REJECTED)), RewardConfig(suite_size=4)
    holds(found, config, suite_size=4, validity=0.5, f_new=0.25, reward=0.375)


def test_infrastructure_failure_has_no_terms_and_no_reward_for_either_seat() -> None:
    assert suite_terms(duel(PASSED, infrastructure_error="lost a worker"), STRICT) is None
    assert suite_terms(duel(PASSED, executes=None), STRICT) is None
    assert coder_reward([terms(duel(PASSED)), None]) is None


def test_the_coders_reward_averages_the_halves_that_exist_and_does_not_pool_them() -> None:
    # New: 4 of 4 pass; replayed: 1 of 2: (1 + 1/2) / 2 = 3/4. Pooled, as in the paper's figure, it would be 5 of 6.
    assert coder_reward([terms(duel(*[PASSED] * 4, replays=(PASS, FAIL)))]) == 0.75
    # Only new: 3 of 4. Only replayed: 1 of 4. Neither: 0.
    assert coder_reward([terms(duel(*[PASSED] * 3, FAILED))]) == 0.75
    assert coder_reward([terms(duel(judged_test(REJECTED), replays=(PASS, FAIL, FAIL, FAIL)))]) == 0.25
    assert coder_reward([terms(duel(judged_test(REJECTED)))]) == 0.0


def test_the_coders_reward_is_the_mean_over_suites() -> None:
    # (1 + 0 + 1/2) / 3 = 1/2; the suite with neither half counts as 0.
    suites = [duel(PASSED), duel(judged_test(REJECTED)), duel(PASSED, FAILED)]
    assert coder_reward([*map(terms, suites)]) == 0.5
    assert coder_reward([]) == 0.0


def test_the_effective_alpha_is_two_thirds_at_a_half_with_replay() -> None:
    # alpha / (alpha + (1 - alpha) / 2) = 1/2 / (1/2 + 1/4) = 2/3; at 1/4: 1/4 / (1/4 + 3/8) = 2/5
    assert effective_alpha(0.5, True) == 2 / 3
    assert effective_alpha(0.25, True) == 0.4
    assert (effective_alpha(0.0, True), effective_alpha(1.0, True)) == (0.0, 1.0)
    assert effective_alpha(0.5, False) == 0.5


def test_group_normalised_advantages_are_those_of_the_effective_alpha_without_replay() -> None:
    # One solution, so one f_hist = 3/4 for its group. Suites: (v, failed) = (8, 4), (4, 4), (6, 0).
    # R_T = 1/2 v/8 + 1/2 (failed/8 + 1/4) / 2: 11/16, 7/16, 7/16.
    # With 2/3 and no replay: 2/3 v/8 + 1/3 failed/8: 5/6, 1/2, 1/2. Both normalise to sqrt(2), -sqrt(1/2), -sqrt(1/2).
    suites = [[FAILED] * failed + [PASSED] * (v - failed) for v, failed in ((8, 4), (4, 4), (6, 0))]
    replays = (PASS, FAIL, FAIL, FAIL)
    replayed = [terms(duel(*suite, replays=replays)).reward for suite in suites]
    config = RewardConfig(alpha=effective_alpha(0.5, True))
    dropped = [terms(duel(*suite), config).reward for suite in suites]
    assert replayed == pytest.approx([11 / 16, 7 / 16, 7 / 16])
    assert dropped == pytest.approx([5 / 6, 1 / 2, 1 / 2])
    expected = [2**0.5, -(0.5**0.5), -(0.5**0.5)]
    assert advantages(replayed) == pytest.approx(expected)
    assert advantages(dropped) == pytest.approx(expected)


def advantages(rewards: list[float]) -> list[float]:
    mean, deviation = statistics.fmean(rewards), statistics.pstdev(rewards)
    return [(reward - mean) / deviation for reward in rewards]


@pytest.mark.parametrize("alpha", [-0.1, 1.3, float("nan"), True, "0.5", np.array([0.5, 0.5])])
def test_alpha_outside_its_range_is_refused_by_name(alpha: object) -> None:
    with pytest.raises(ConfigurationError, match=r"alpha must be in \[0, 1\], got"):
        RewardConfig(alpha=alpha)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match=r"alpha must be in \[0, 1\], got"):
        RewardConfig().with_alpha(alpha)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="alpha must be"):
        effective_alpha(alpha, True)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("suite_size", 0),
        ("suite_size", 8.0),
        ("suite_size", True),
        ("replay_limit", -1),
        ("fidelity", "released"),
        ("correct_outputs", 1),
    ],
)
def test_every_other_field_is_validated_by_name(name: str, value: object) -> None:
    with pytest.raises(ConfigurationError, match=f"{name} must be"):
        dataclasses.replace(STRICT, **{name: value})


any_test = st.builds(judged_test, st.sampled_from(Status), st.sampled_from([*Verdict, None]))
any_duel = st.builds(
    lambda tests, replays, executes, share: duel(*tests, replays=tuple(replays), executes=executes, nonprintable=share),
    st.lists(any_test, max_size=20),
    st.lists(st.sampled_from([*Verdict, None]), max_size=9),
    st.booleans(),
    st.floats(0, 1),
)
any_config = st.builds(
    RewardConfig,
    alpha=st.floats(0, 1),
    suite_size=st.integers(1, 10),
    fidelity=st.sampled_from(["strict", "wide", "paper"]),
    correct_outputs=st.booleans(),
)


@settings(deadline=None)
@given(any_duel, any_config)
def test_every_number_stays_in_its_range(found: Duel, config: RewardConfig) -> None:
    computed = terms(found, config)
    assert 0 <= computed.validity <= 1
    assert 0 <= computed.f_new <= 1
    assert 0 <= computed.adversarial <= 1
    assert -1 <= computed.reward <= 1
    assert 0 <= computed.passed <= computed.v <= len(found.tests)
    assert computed.v + computed.invalid <= 2 * len(found.tests)
    share = coder_reward([computed])
    assert share is not None
    assert 0 <= share <= 1


@settings(deadline=None)
@given(any_duel, any_config)
def test_a_failing_test_never_earns_the_tester_less_than_a_passing_one(found: Duel, config: RewardConfig) -> None:
    failing = dataclasses.replace(found, tests=tuple(dataclasses.replace(t, verdict=FAIL) for t in found.tests))
    passing = dataclasses.replace(found, tests=tuple(dataclasses.replace(t, verdict=PASS) for t in found.tests))
    assert terms(failing, config).reward >= terms(passing, config).reward
    coder_failing, coder_passing = coder_reward([terms(failing, config)]), coder_reward([terms(passing, config)])
    assert coder_failing is not None
    assert coder_passing is not None
    assert coder_failing <= coder_passing
