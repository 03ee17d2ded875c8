"""Diagnostics of a round, against numbers computed by hand; K = 2 and alpha = 1/2 unless said."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from codea1_env.arena.diagnostics import collusion_gap, diagnose, zero_groups
from codea1_env.arena.match import CodeScore, Grade, MatchScore, SuiteScore
from codea1_env.errors import FormatError
from codea1_env.problems.problem import Problem
from codea1_env.reading.test_case import TestCase
from codea1_env.rewards.code_a1 import RewardConfig, suite_terms
from codea1_env.rewards.duel import Duel, JudgedReplay, JudgedTest, Status, Verdict
from codea1_env.rewards.interfaces import Group
from codea1_env.rewards.terms import SuiteTerms
from codea1_env.training.run.held_out import CoderResult, HiddenRecord, hidden_metrics

KEPT, WRONG, WRONG_RELATION, VACUOUS, DUPLICATE, RAISES, FLAKY, REJECTED, SURPLUS = Status
PASS, FAIL, ERROR, TIMEOUT, CRASH = Verdict
TWO = RewardConfig(suite_size=2)


def asserted(call: str, verdict: Verdict | None = PASS, status: Status = KEPT, reason: str = "") -> JudgedTest:
    is_read = status is not REJECTED
    return JudgedTest(f"assert {call} == 0", status, reason, call if is_read else None, "0", "0", verdict)


def vacuous(reason: str = "not_a_comparison") -> JudgedTest:
    return asserted("True", None, REJECTED, reason)


def suite(
    *tests: JudgedTest,
    replays: Sequence[Verdict] = (),
    executes: bool | None = True,
    config: RewardConfig = TWO,
    group: Group | None = None,
) -> SuiteScore:
    judged = tuple(JudgedReplay(TestCase(f"f({place})", "0"), verdict) for place, verdict in enumerate(replays))
    why = "" if executes is not None else "the machine is gone"
    duel = Duel("p", "def f(x): ...", executes, 0.0, tests, judged, why)
    terms = suite_terms(duel, config)
    return SuiteScore(terms.reward if terms else None, terms, duel, group)


def match(*rows: Sequence[SuiteScore], rewards: Sequence[float | None] | None = None) -> MatchScore:
    paid = rewards or [0.5] * len(rows)
    loads = [row[0].duel.executes if row else True for row in rows]
    codes = tuple(CodeScore(executes, reward, "") for executes, reward in zip(loads, paid, strict=True))
    return MatchScore("p", codes, tuple(map(tuple, rows)))


def test_effective_alpha_is_alpha_without_replays_and_two_thirds_with_them() -> None:
    """2 * 1/2 / (1 + 1/2) = 2/3. One group of each that teaches: (1/2 + 2/3) / 2; those that do not have no say."""
    plain = [suite(asserted("f(1)"), asserted("f(2)")), suite(vacuous())]
    replayed = [suite(asserted("f(1)"), replays=[PASS]), suite(asserted("f(1)", FAIL), replays=[PASS])]
    flat = [suite(asserted("f(1)"), replays=[FAIL])] * 2
    assert diagnose([match(plain)], TWO).effective_alpha == 1 / 2
    assert diagnose([match(replayed)], TWO).effective_alpha == pytest.approx(2 / 3)
    assert diagnose([match(plain, replayed, flat)], TWO).effective_alpha == pytest.approx((1 / 2 + 2 / 3) / 2)
    assert math.isnan(diagnose([match(flat)], TWO).effective_alpha)


@given(
    st.floats(0.05, 0.95),
    st.lists(st.tuples(st.integers(1, 4), st.integers(0, 4)), min_size=2, max_size=8),
    st.floats(0, 1),
)
def test_effective_alpha_is_the_weight_that_gives_the_same_advantages(
    alpha: float, written: list[tuple[int, int]], failed: float
) -> None:
    """R_T with replays, and alpha' R_val + (1 - alpha') f_new without: normalised in the group, they are one thing."""
    config = RewardConfig(suite_size=4, alpha=alpha)
    replays = [FAIL] * round(4 * failed) + [PASS] * (4 - round(4 * failed))
    row = [
        suite(
            *[asserted(f"f({place})", FAIL if place < kills else PASS) for place in range(valid)],
            replays=replays,
            config=config,
        )
        for valid, kills in written
    ]
    found = diagnose([match(row)], config).effective_alpha
    if math.isnan(found):
        return
    terms = [score.terms for score in row if score.terms]
    rewards = np.array([term.reward for term in terms])
    weighed = np.array([found * term.validity + (1 - found) * term.f_new for term in terms])
    np.testing.assert_allclose(_normalised(rewards), _normalised(weighed), atol=1e-6)


def _normalised(values: np.ndarray) -> np.ndarray:
    centred = values - values.mean()
    return centred / max(float(np.sqrt((centred**2).mean())), 1e-12)


def test_the_signal_is_validitys_where_nothing_is_killed_and_half_of_it_where_both_move_alike() -> None:
    """No kill: R = V / 2 alone. Two valid killing tests against none: R 1 and 0, half of the difference is validity's.
    One valid test against one that kills, V equal: none of it is."""
    nothing_killed = [suite(asserted("f(1)"), asserted("f(2)")), suite(vacuous())]
    both = [suite(asserted("f(1)", FAIL), asserted("f(2)", FAIL)), suite(vacuous())]
    aim = [suite(asserted("f(1)", PASS)), suite(asserted("f(1)", FAIL))]
    shares = [diagnose([match(row)], TWO).validity_signal for row in (nothing_killed, both, aim)]
    assert shares == pytest.approx([1, 1 / 2, 0])
    assert diagnose([match(nothing_killed, both, aim)], TWO).validity_signal == pytest.approx(1 / 2)


def test_other_rewards_have_their_own_weight_of_validity_and_cure_has_none() -> None:
    def paid(terms: SuiteTerms | None, alpha: float, validity: float, reward: float) -> SuiteScore:
        assert terms is not None
        changed = dataclasses.replace(terms, alpha=alpha, validity=validity, reward=reward)
        return dataclasses.replace(suite(asserted("f(1)"), replays=[PASS]), reward=reward, terms=changed)

    terms = suite(asserted("f(1)"), replays=[PASS]).terms
    row = [paid(terms, 0.6, 1.0, 0.6), paid(terms, 0.6, 0.0, 0.0)]
    assert diagnose([match(row)], RewardConfig(tester_reward="skill")).effective_alpha == pytest.approx(0.6)
    cure = diagnose([match(row)], RewardConfig(tester_reward="cure"))
    assert math.isnan(cure.effective_alpha)
    assert math.isnan(cure.validity_signal)


def test_the_parts_of_the_reward_add_up_to_it() -> None:
    """Valid and killing 1 of 2: R_val 1/2, f_new 1/2. Against a program that does not load: nothing but the penalty,
    1/4 of the characters. Sum 1/4 + 1/4 - 1/4 over two suites."""
    good = suite(asserted("f(1)", FAIL))
    duel = dataclasses.replace(suite(asserted("f(1)", ERROR), executes=False).duel, nonprintable=0.25)
    terms = suite_terms(duel, TWO)
    assert terms is not None
    bad = SuiteScore(terms.reward, terms, duel)
    found = diagnose([match([good], [bad])], TWO)
    parts = (found.paid_validity, found.paid_adversarial, found.paid_penalty)
    assert parts == pytest.approx((1 / 8, 1 / 8, 1 / 8))
    assert good.reward is not None
    assert bad.reward is not None
    assert parts[0] + parts[1] - parts[2] == pytest.approx((good.reward + bad.reward) / 2)
    cure = diagnose([match([good], [bad])], RewardConfig(tester_reward="cure"))
    assert (cure.paid_validity, cure.paid_adversarial) == (0, pytest.approx((good.reward + bad.reward) / 2))


def test_the_effective_alpha_follows_the_one_that_a_round_paid_by() -> None:
    """Validity alone in the first round of validity_first_rounds: 2, then alpha 3/4, then 1/2."""
    rows = []
    for alpha in (1, 3 / 4, 1 / 2):
        config = TWO.with_alpha(alpha)
        right = suite(asserted("f(1)"), asserted("f(2)"), config=config)
        rows.append((config, [right, suite(asserted("f(1)"), asserted("f(2)", FAIL), config=config)]))
    assert [row[1].reward for _, row in rows] == pytest.approx([1, 7 / 8, 3 / 4])
    found = [diagnose([match(row)], config) for config, row in rows]
    assert math.isnan(found[0].effective_alpha), "both suites are valid: nothing teaches"
    assert [each.effective_alpha for each in found[1:]] == pytest.approx([3 / 4, 1 / 2])


def test_groups_whose_rewards_are_equal_teach_nothing() -> None:
    """Rows without a score have no say, groups of nothing else are left out: 2 of 3."""
    assert zero_groups([[0.5, 0.5], [0.5, None], [0.5, 0.6], [None, None], []]) == pytest.approx(2 / 3)
    assert zero_groups([[0.1 + 0.2, 0.3]]) == 1, "rounding is no difference"
    assert math.isnan(zero_groups([[None]]))
    row, other = [suite(asserted("f(1)"))] * 2, [suite(asserted("f(1)")), suite(asserted("f(1)", FAIL))]
    found = diagnose([match(row, other, rewards=[1.0, 0.5]), match(row, row, rewards=[1.0, 1.0])], TWO)
    assert (found.coder_zero_groups, found.tester_zero_groups) == (1 / 2, 3 / 4)


def test_a_test_is_trivial_where_no_program_that_met_its_call_fails_it() -> None:
    """f(1) is failed once, f(2) passed twice, f(3) passed once, one is vacuous, one rejected for another reason.
    7 asserts: f(1), f(2), f(1), f(2), f(3), vacuous, rejected; trivial are f(2) twice, f(3), the vacuous one."""
    other = asserted("f(x)", None, REJECTED, "forbidden_name")
    played = match(
        [suite(asserted("f(1)"), asserted("f(2)"))],
        [suite(asserted("f(1)", FAIL), asserted("f(2)")), suite(asserted("f(3)"), vacuous(), other)],
    )
    found = diagnose([played], TWO)
    assert found.trivial_tests == pytest.approx(4 / 7)
    assert found.vacuous_tests == pytest.approx(1 / 7)


def test_a_program_that_does_not_load_shows_no_test_to_be_telling() -> None:
    broken = [suite(asserted("f(1)", ERROR), executes=False)]
    found = diagnose([match([suite(asserted("f(1)"))], broken)], TWO)
    assert found.trivial_tests == 1
    assert math.isnan(diagnose([match(broken)], TWO).trivial_tests)


def test_where_all_suites_meet_all_programs_a_failure_elsewhere_makes_a_test_telling() -> None:
    """f(1) passes on its own program and fails on the other; f(2) passes on both."""
    group = Group(verdicts=((PASS, PASS), (FAIL, PASS)))
    played = match([suite(asserted("f(1)"), asserted("f(2)"), group=group)], [suite(vacuous(), group=Group(((), ())))])
    played = dataclasses.replace(played, suites=(played.suites[0], ()))
    assert diagnose([played], RewardConfig(suite_size=2, coder_tests="union")).trivial_tests == 1 / 2


def test_duplicates_diversity_and_book_hits() -> None:
    """7 asserts of which one repeats its own suite's call; f(1) comes three times, f(2) and f(3) once: 3 distinct of 5
    with a call. The other question has one call: (3/5 + 1) / 2. Surplus asserts are nowhere counted. One question of
    two had something to replay."""
    first = [
        suite(asserted("f(1)"), asserted("f(1)", None, DUPLICATE), asserted("f(9)", None, SURPLUS)),
        suite(asserted("f(1)"), vacuous()),
        suite(asserted("f(2)"), asserted("f(3)", FAIL)),
    ]
    found = diagnose([match(first), match([suite(asserted("f(7)"), replays=[PASS])])], TWO)
    assert found.duplicate_tests == pytest.approx(1 / 7)
    assert found.test_diversity == pytest.approx((3 / 5 + 1) / 2)
    assert found.book_hit_rate == 1 / 2


def test_what_infrastructure_kept_from_being_scored_is_left_out_and_an_empty_round_has_no_numbers() -> None:
    lost = [suite(asserted("f(1)", None), executes=None)] * 2
    whole = [suite(asserted("f(1)")), suite(vacuous())]
    assert diagnose([match(lost, rewards=[None]), match(whole)], TWO) == diagnose([match(whole)], TWO)
    for nothing in ([], [match()], [match(lost, rewards=[None])], [match([])]):
        numbers = diagnose(nothing, TWO).as_metrics()
        numbers.pop("coder_zero_groups")  # a program that nobody attacked may have a reward
        assert all(math.isnan(value) for value in numbers.values()), numbers


def test_the_collusion_gap_is_the_reward_less_the_hidden_tests_passed() -> None:
    """(1 - 1/4 + 1/2 - 1) / 2 = 1/8; rows that lack either have no say."""
    assert collusion_gap([1.0, 0.5, None, 0.9], [0.25, 1.0, 0.5, None]) == pytest.approx(1 / 8)
    assert math.isnan(collusion_gap([None], [0.5]))


class Grades:
    """An arena that knows what each response passes: a string of + and -, or nothing where its machine is gone."""

    def grade_many(self, items):  # type: ignore[no-untyped-def]
        found = []
        for _, responses, tests in items:
            verdicts = [tuple(PASS if sign == "+" else FAIL for sign in text) for text in responses]
            assert all(not text or len(text) == len(tests) for text in responses)
            found.append([Grade(True if row else None, row or (None,) * len(tests)) for row in verdicts])
        return found


def problem(name: str, hidden: int) -> Problem:
    cases = tuple(TestCase(f"f({place})", "0") for place in range(hidden))
    return Problem(name, "Zero.", "f", reference_solution="def f(x):\n    return 0", hidden_tests=cases)


def test_hidden_tests_are_reported_beside_what_was_paid_where_there_are_any() -> None:
    """Questions of 2 and of 4 hidden tests; the third has none, and a machine was gone: 1, 1/2, 1/4."""
    two, four, none = problem("two", 2), problem("four", 4), problem("none", 0)
    problems = [two, two, four, four, none]
    found = hidden_metrics(Grades(), problems, ["++", "+-", "+---", "", "?"], [0.5, 0.5, 1.0, 1.0, 1.0])
    assert found["hidden_tests_passed"] == pytest.approx((1 + 1 / 2 + 1 / 4) / 3)
    assert found["collusion_gap"] == pytest.approx((-1 / 2 + 0 + 3 / 4) / 3)
    assert hidden_metrics(Grades(), [none], ["?"], [1.0]) == {}
    assert hidden_metrics(Grades(), [two], [""], [1.0]) == {}


def measured(**shares: tuple[float, ...]) -> CoderResult:
    return CoderResult((0.0,), (), (1.0,), shares)


def test_a_regression_is_a_hidden_test_that_was_once_passed_and_now_is_not(tmp_path: Path) -> None:
    """Passed before: a1 (twice), a2, b1 = 3, at half of the samples; now a2 fails, and b2, which never passed."""
    record = HiddenRecord(tmp_path / "hidden_tests.json")
    assert record.note(0, measured(a=(0.5, 1.0), b=(0.0, 0.0))) == {}
    assert record.note(25, measured(a=(1.0, 0.6), b=(1.0, 0.0))) == {"regression_rate": 0.0}
    assert record.note(50, measured(a=(0.9, 0.4), b=(1.0, 0.25))) == {"regression_rate": pytest.approx(1 / 3)}
    # What a resumed run measures again is compared with what came before it, and nothing else.
    assert record.note(25, measured(a=(0.0, 1.0), b=(0.0, 0.0))) == {"regression_rate": pytest.approx(1 / 2)}
    # The evaluation at the end has more problems.
    assert record.note(50, measured(a=(0.9, 0.4), b=(1.0, 0.0), c=(1.0,))) == {"regression_rate": pytest.approx(1 / 2)}


@pytest.mark.parametrize("text", ["[1]", "{", '{"x": {}}', '{"1": {"a": "zz"}}', '{"1": {"a": 3}}'])
def test_a_record_of_another_kind_is_refused_with_what_to_do(tmp_path: Path, text: str) -> None:
    file = tmp_path / "hidden_tests.json"
    file.write_text(text)
    with pytest.raises(FormatError, match=r"must be the record of hidden tests .* regressions are counted anew"):
        HiddenRecord(file).note(1, measured(a=(1.0,)))
