"""What other methods pay a suite, each number computed by hand, and how the pay is shared among its tests."""

from __future__ import annotations

from dataclasses import replace

import pytest
from double_question import DOUBLE, RIGHT, SQUARE
from hypothesis import given, settings, strategies as st

from codea1_env.arena.arena import Arena
from codea1_env.arena.match import Match, MatchScore
from codea1_env.errors import ConfigurationError
from codea1_env.mistake_book.book import MistakeBook
from codea1_env.problems.problem import Problem
from codea1_env.reading.spans import Span, test_spans
from codea1_env.reading.test_case import TestCase
from codea1_env.records.matches import write_score
from codea1_env.rewards.code_a1 import RewardConfig, suite_terms
from codea1_env.rewards.coder_rewards import best_solution, union_reward
from codea1_env.rewards.duel import Duel, JudgedReplay, JudgedTest, Status, Verdict
from codea1_env.rewards.interfaces import Group
from codea1_env.rewards.terms import SuiteTerms
from codea1_env.rewards.tester_rewards import per_test_rewards, suite_reward
from codea1_env.sandbox import LocalSandbox

KEPT, WRONG, WRONG_RELATION, VACUOUS, DUPLICATE, RAISES, FLAKY, REJECTED, SURPLUS = Status
P, F = Verdict.PASS, Verdict.FAIL
UTRL = RewardConfig(suite_size=4, tester_reward="utrl", utrl_tau=4)
CURE = RewardConfig(suite_size=4, tester_reward="cure")
SKILL = RewardConfig(suite_size=4, tester_reward="skill")


def duel(*tests: tuple[Status, Verdict | None], executes: bool | None = True, error: str = "") -> Duel:
    judged = tuple(JudgedTest("assert f(0) == 0", s, "", "f(0)", "0", "0", verdict) for s, verdict in tests)
    return Duel("p", "", executes, 0.0, judged, (), error)


def statuses(*found: Status) -> Duel:
    return duel(*[(status, None) for status in found])


def paid(found: Duel, config: RewardConfig, group: Group) -> SuiteTerms:
    terms = suite_reward(found, config, group)
    assert terms is not None
    return terms


def parts(found: Duel, config: RewardConfig, group: Group | None = None) -> list[float]:
    rewards = per_test_rewards(found, config, group)
    assert rewards is not None
    return [reward.reward for reward in rewards]


# utrl


def test_utrl_pays_the_share_of_solutions_that_fail_at_least_one_valid_test() -> None:
    # Solutions 0 and 1 fail a kept test, 2 fails only the corrected one, 3 none: D = 2/4. V = 2 / max(4, 3) = 1/2.
    suite = statuses(KEPT, KEPT, WRONG)
    group = Group(((F, F, P), (P, F, P), (P, P, F), (P, P, P)))
    terms = paid(suite, UTRL, group)
    assert (terms.adversarial, terms.validity) == (0.5, 0.5)
    assert terms.reward == pytest.approx((0.85 * 0.5 + 0.05 * 0.5) / 0.9)
    # Solution 0 is caught twice: each test has half of it; the second has all of solution 1. K = 4 makes it a mean.
    share, valid = 4 * 0.85 / 0.9 / 4, 4 * 0.05 / 0.9 / 4
    assert parts(suite, UTRL, group) == pytest.approx([share / 2 + valid, share * 3 / 2 + valid, 0])


@pytest.mark.parametrize(
    ("found", "tau", "validity"),
    [
        ([KEPT] * 3, 12, 3 / 12),  # few trivial tests are not worth more than many
        ([KEPT] * 3, 2, 3 / 3),
        ([KEPT, KEPT, DUPLICATE, REJECTED], 1, 2 / 3),  # a repeat is not one more test, a rejected one is
        ([KEPT] * 4 + [SURPLUS] * 9, 1, 4 / 4),
        ([], 12, 0.0),
    ],
)
def test_utrl_clips_the_denominator_of_validity_at_tau(found: list[Status], tau: int, validity: float) -> None:
    config = RewardConfig(suite_size=4, tester_reward="utrl", utrl_tau=tau)
    assert paid(statuses(*found), config, Group(((P,) * len(found),))).validity == validity


def test_utrl_counts_a_solution_that_does_not_load_as_caught_where_a_test_is_valid() -> None:
    group = Group(((Verdict.ERROR,), (P,)))
    assert paid(statuses(KEPT), UTRL, group).adversarial == 0.5
    assert paid(statuses(REJECTED), UTRL, Group(((None,), (None,)))).adversarial == 0.0


# cure: as_written is [solution][test]


def test_cure_pays_a_right_test_by_the_wrong_solutions_that_fail_it_and_charges_a_wrong_one_by_those_that_pass() -> (
    None
):
    # Solutions 0 and 1 are right. Test 0: both pass, 1 of 2 wrong ones fails: +1/2. Test 1: both wrong ones fail: +1.
    # Test 2: a right one fails, both wrong ones pass: -1. Test 3: rejected: nobody passes: -0.
    passes = (
        (True, True, True, False),
        (True, True, False, False),
        (True, False, True, False),
        (False,) * 2 + (True, False),
    )
    group = Group(((None,) * 4,) * 4, passes, right=(True, True, False, False))
    suite = statuses(KEPT, KEPT, WRONG, REJECTED)
    assert parts(suite, CURE, group) == [0.5, 1.0, -1.0, 0.0]
    assert paid(suite, CURE, group).reward == (0.5 + 1 - 1) / 4


def test_cure_pays_one_where_no_solution_is_wrong_and_nothing_where_none_is_right() -> None:
    suite = statuses(KEPT, WRONG)
    passes = ((True, False), (True, False))
    assert parts(suite, CURE, Group(((None,) * 2,) * 2, passes, right=(True, True))) == [1.0, -1.0]
    assert parts(suite, CURE, Group(((None,) * 2,) * 2, passes, right=(False, False))) == [0.0, 0.0]


def test_cure_pays_a_repeated_call_once_and_nothing_beyond_the_first_k() -> None:
    passes = ((True,) * 6, (False,) * 6)
    group = Group(((None,) * 6,) * 2, passes, right=(True, False))
    config = RewardConfig(suite_size=4, tester_reward="cure", fidelity="paper")
    suite = statuses(KEPT, DUPLICATE, KEPT, KEPT, KEPT, KEPT)
    assert parts(suite, config, group) == [1.0, 0.0, 1.0, 1.0, 0.0, 0.0]
    assert paid(suite, config, group).reward == 3 / 4


# skill


def test_skill_pays_validity_and_difficulty_on_the_best_solution() -> None:
    # Best is solution 1. Kept and failed: 1; kept and passed: 0.6; wrong and failed: 0.4; rejected: -0.5.
    passes = ((True, False, True, True), (False, True, False, False))
    group = Group(((None,) * 4,) * 2, passes, best=1)
    suite = statuses(KEPT, KEPT, WRONG, REJECTED)
    assert parts(suite, SKILL, group) == [1.0, 0.6, 0.4, -0.5]
    terms = paid(suite, SKILL, group)
    assert terms.reward == pytest.approx(1.5 / 4)
    assert (terms.alpha, terms.validity, terms.adversarial) == (0.6, 2 / 4, 2 / 4)


def test_skill_charges_a_missing_and_a_repeated_test_like_an_invalid_one() -> None:
    # 1 - 0.5 (repeated) and two missing: (1 - 0.5 - 2 * 0.5) / 4
    group = Group(((None,) * 2,), ((False, False),), best=0)
    assert paid(statuses(KEPT, DUPLICATE), SKILL, group).reward == pytest.approx(-0.5 / 4)
    assert paid(statuses(), SKILL, Group(((),), ((),), best=0)).reward == -0.5


def test_skill_pays_nothing_where_no_solution_loads() -> None:
    group = Group(((None,),), ((False,),), best=None)
    assert parts(statuses(KEPT), SKILL, group) == [0.0]
    terms = paid(statuses(KEPT), SKILL, group)
    assert (terms.reward, SKILL.reward.parts(terms)) == (0.0, (0.0, 0.0))  # and no penalty beside them


def test_the_best_solution_is_the_first_of_those_that_load_with_the_highest_reward() -> None:
    assert best_solution([True, True, True, False], [0.2, 0.7, 0.7, 0.9]) == 1
    assert best_solution([False, False], [-1.0, -1.0]) is None


# The coder, by all suites of its question


def replays(*verdicts: Verdict) -> list[JudgedReplay]:
    return [JudgedReplay(TestCase("f(0)", "0"), verdict) for verdict in verdicts]


def test_the_union_pays_a_solution_by_every_suite_of_its_question() -> None:
    # Solution 1 passes 1 of 2 tests of the first suite, 3 of 3 of the second: (1/2 + 1) / 2; the third has no test.
    config = RewardConfig(coder_tests="union")
    suites = [
        (statuses(KEPT, WRONG), Group(((P, P), (P, F)))),
        (statuses(KEPT, KEPT, KEPT), Group(((F, F, F), (P, P, P)))),
    ]
    assert union_reward(1, True, [], suites, config) == 0.75
    empty = (statuses(REJECTED), Group(((None,), (None,))))
    assert union_reward(1, True, [], [*suites, empty], config) == 0.5
    # With replays, 1 of 4 passed: ((1/2 + 1/4) / 2 + (1 + 1/4) / 2) / 2
    assert union_reward(1, True, replays(P, F, F, F), suites, config) == (0.375 + 0.625) / 2
    # Without correction the wrong test does not count: 1 of 1 and 3 of 3.
    plain = RewardConfig(coder_tests="union", correct_outputs=False)
    assert union_reward(1, True, [], suites, plain) == 1.0
    assert union_reward(0, True, [], [], config) == 0.0


def test_skill_pays_a_solution_the_share_of_all_tests_and_charges_one_that_does_not_load() -> None:
    # 4 of 5 tests, and 1 of 4 replays: 5/9
    suites = [(statuses(KEPT, WRONG), Group(((P, F),))), (statuses(KEPT, KEPT, KEPT), Group(((P, P, P),)))]
    assert union_reward(0, True, replays(P, F, F, F), suites, SKILL) == 5 / 9
    assert union_reward(0, False, [], suites, SKILL) == -1.0
    assert union_reward(0, True, [], [], SKILL) == 0.0


# Per test


any_verdict = st.sampled_from([*Verdict, None])
any_status = st.sampled_from([status for status in Status if status is not SURPLUS])
rows_of_four = st.tuples(*[any_verdict] * 4)


@st.composite
def any_case(draw: st.DrawFn) -> tuple[Duel, Group]:
    size = draw(st.integers(1, 4))
    judged = draw(st.lists(st.tuples(any_status, any_verdict), min_size=4, max_size=4))
    found = duel(*judged, executes=draw(st.booleans()))
    group = Group(
        tuple(draw(st.lists(rows_of_four, min_size=size, max_size=size))),
        tuple(draw(st.lists(st.tuples(*[st.booleans()] * 4), min_size=size, max_size=size))),
        tuple(draw(st.lists(st.booleans(), min_size=size, max_size=size))),
        draw(st.integers(0, size - 1) | st.none()),
    )
    return found, group


@settings(deadline=None)
@given(
    any_case(),
    st.sampled_from(["code-a1", "utrl", "cure", "skill"]),
    st.floats(0, 1),
    st.lists(st.sampled_from(Verdict), max_size=3),
    st.floats(0, 1),
)
def test_a_suite_of_k_asserts_earns_the_mean_of_its_tests(
    case: tuple[Duel, Group], reward: str, alpha: float, replayed: list[Verdict], nonprintable: float
) -> None:
    found, group = case
    found = Duel("p", "", found.executes, nonprintable, found.tests, tuple(replays(*replayed)))
    config = RewardConfig(suite_size=4, alpha=alpha, tester_reward=reward, utrl_tau=3)  # type: ignore[arg-type]
    terms = paid(found, config, group)
    assert sum(parts(found, config, group)) / 4 == pytest.approx(terms.reward)
    assert -1 <= terms.reward <= 1
    assert 0 <= terms.validity <= 1


def test_per_test_rewards_of_the_method_itself() -> None:
    # alpha 1/2: kept and failed 1, kept and passed 1/2, corrected and failed 1/2, rejected 0: mean = R_T = 1/2.
    suite = duel((KEPT, F), (KEPT, P), (WRONG, F), (REJECTED, None))
    config = RewardConfig(suite_size=4)
    assert parts(suite, config) == [1.0, 0.5, 0.5, 0.0]
    terms = suite_terms(suite, config)
    assert terms is not None
    assert terms.reward == 0.5
    dead = duel((KEPT, Verdict.ERROR), executes=False)
    assert parts(dead, config) == [0.0]


def test_infrastructure_failure_has_no_reward_per_test_either() -> None:
    for broken in (duel((KEPT, P), executes=None), duel((KEPT, P), error="lost")):
        for config in (RewardConfig(), UTRL):
            assert per_test_rewards(broken, config) is None
            assert suite_reward(broken, config) is None


@pytest.mark.parametrize("config", [UTRL, CURE, SKILL])
def test_a_reward_that_looks_at_all_solutions_refuses_to_guess_them(config: RewardConfig) -> None:
    for compute in (suite_reward, per_test_rewards):
        with pytest.raises(
            ConfigurationError, match=r"must get the results of the suite on every solution of 'p' .*, got None"
        ):
            compute(duel((KEPT, P)), config)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("tester_reward", "grpo"),
        ("tester_reward", ["cure"]),
        ("coder_tests", "all"),
        ("utrl_tau", 0),
        ("utrl_tau", 2.0),
    ],
)
def test_the_options_are_validated_by_name(name: str, value: object) -> None:
    with pytest.raises(ConfigurationError, match=f"{name} must be"):
        RewardConfig(**{name: value})  # type: ignore[arg-type]


# Spans


def found_spans(response: str, *sources: str) -> list[str | None]:
    return [span and response[span.start : span.end] for span in test_spans(response, sources)]


def test_spans_are_those_of_the_fenced_asserts_and_not_of_the_same_text_elsewhere() -> None:
    first, second = "assert f(1) == 2", "assert f(2) == 4"
    response = f"I shall write {first}.\n{first}\n```python\n# {first}\n{first}; {second}\n  {second}\n```\n{second}"
    spans = test_spans(response, [first, second, second, second])
    start = response.index("# ") + len(f"# {first}\n")
    assert spans[0] == Span(start, start + len(first))
    assert spans[1] == Span(start + len(first) + 2, start + len(first) + 2 + len(second))
    assert spans[2] is not None
    assert spans[2].start > spans[1].end  # type: ignore[union-attr]
    assert spans[3] is None


def test_spans_count_the_characters_of_the_response_as_it_came() -> None:
    response = "\ufeffassert f(\r\n  1) == 2\r\nassert f('é') == 3\r"
    assert found_spans(response, "assert f(\n  1) == 2", "assert f('é') == 3") == [
        "assert f(\r\n  1) == 2",
        "assert f('é') == 3",
    ]
    assert found_spans("assert f(1) == 2\rassert f(2) == 4", "assert f(1) == 2", "assert f(2) == 4") == [
        "assert f(1) == 2",
        "assert f(2) == 4",
    ]


def test_what_is_not_found_has_no_span_and_costs_the_others_nothing() -> None:
    assert found_spans("assert f(1) == 2", "assert f(9) == 9", "", "assert f(1) == 2") == [
        None,
        None,
        "assert f(1) == 2",
    ]
    assert test_spans("", ["assert f(1) == 2"]) == [None]
    assert len(test_spans("x" * 1000, ["assert f(1) == 2"] * 10_000)) == 10_000


@settings(deadline=None)
@given(st.text(st.sampled_from("a=;\n\r `'#assert f()1"), max_size=60), st.lists(st.text(max_size=9), max_size=4))
def test_no_text_breaks_spans(response: str, sources: list[str]) -> None:
    for span, source in zip(test_spans(response, sources), sources, strict=True):
        if span is not None:
            piece = response[span.start : span.end].replace("\r\n", "\n").replace("\r", "\n")
            assert [line.strip() for line in piece.strip().split("\n")] == [
                line.strip() for line in source.strip().split("\n")
            ]


# Through the arena


PROBLEM = replace(DOUBLE, golden_tests=(TestCase("double(1)", "2"), TestCase("double(5)", "10")), time_limit_s=0.5)
THREE = "def double(x):\n    return 6\n"  # right on 3 only
BROKEN = "def double(x):\n    return x +\n"


def play(sandbox: LocalSandbox, config: RewardConfig, book: MistakeBook | None = None) -> MatchScore:
    """Two suites against the first solution, one each against the second and third, none against the last."""
    twos = "assert double(2) == 4\nassert double(3) == 6\n"
    suites = (
        (twos, "assert double(3) == 9\n"),
        ("assert double(1) == 2\nassert double(0) == 0\n",),
        ("assert double('a', 'b') == 6\n",),
        (),
    )
    arena = Arena(sandbox, config, book)
    return arena.play([Match(PROBLEM, (SQUARE, RIGHT, THREE, BROKEN), suites)])[0]


def test_the_arena_runs_every_suite_on_every_solution_where_asked(sandbox: LocalSandbox) -> None:
    own = play(sandbox, RewardConfig(suite_size=2))
    union = play(sandbox, RewardConfig(suite_size=2, coder_tests="union"))
    # Tests: [2, 3], [3 corrected], [1, 0], none. SQUARE passes 1/2, 0, 1/2; RIGHT all; THREE 1/2, 1, 0; BROKEN none.
    assert [code.reward for code in own.codes] == [(1 / 2 + 0) / 2, 1.0, 0.0, 0.0]
    assert [code.reward for code in union.codes] == [1 / 4, 3 / 4, 1.5 / 4, 0.0]
    assert [[suite.duel for suite in row] for row in union.suites] == [
        [suite.duel for suite in row] for row in own.suites
    ]
    assert [[suite.terms for suite in row] for row in union.suites] == [[s.terms for s in row] for row in own.suites]
    group = union.suites[0][0].group
    assert group is not None
    assert group.verdicts == ((P, F), (P, P), (F, P), (Verdict.ERROR, Verdict.ERROR))
    assert own.suites[0][0].group is None


def test_the_arena_pays_utrl(sandbox: LocalSandbox) -> None:
    score = play(sandbox, RewardConfig(suite_size=2, tester_reward="utrl", utrl_tau=2))
    # Caught: [2, 3]: SQUARE, THREE, BROKEN; [3 corrected]: none, it is not valid; [1, 0]: SQUARE, THREE, BROKEN; none.
    rewards = [suite.reward for row in score.suites for suite in row]
    whole = (0.85 * 3 / 4 + 0.05) / 0.9
    assert rewards == pytest.approx([whole, 0.0, whole, 0.0])
    assert [code.reward for code in score.codes] == [1 / 4, 1.0, 0.0, 0.0]  # the coder is paid by its own suites


def test_the_arena_pays_cure_as_written(sandbox: LocalSandbox) -> None:
    score = play(sandbox, RewardConfig(suite_size=2, tester_reward="cure"))
    # RIGHT alone passes the golden tests. double(2) == 4: THREE and BROKEN of 3 fail: 2/3; double(3) == 6: SQUARE and
    # BROKEN: 2/3. double(3) == 9, wrong, passed by SQUARE: -1/3. double(1) == 2: 1; double(0) == 0: 2/3. The last
    # raises everywhere: nobody passes it: -0.
    rewards = [suite.reward for row in score.suites for suite in row]
    assert rewards == pytest.approx([2 / 3, -1 / 6, 5 / 6, 0.0])
    group = score.suites[0][1].group
    assert group is not None
    assert group.as_written == ((True,), (False,), (False,), (False,))
    assert group.right == (False, True, False, False)


def test_cure_needs_golden_tests(sandbox: LocalSandbox) -> None:
    bare = Problem("bare", "q", "f", reference_solution="def f(x):\n    return x")
    with pytest.raises(ConfigurationError, match=r"must have golden tests .* got none for 'bare'"):
        Arena(sandbox, CURE).play([Match(bare, ("def f(x): return x",), (("assert f(1) == 1",),))])


def test_the_arena_pays_skill_to_both_seats(sandbox: LocalSandbox) -> None:
    book = MistakeBook()
    book.record("double", [], [TestCase("double(2)", "4")])
    score = play(sandbox, RewardConfig(suite_size=2, tester_reward="skill"), book)
    # Five valid tests (the corrected one, too) and one replay: SQUARE passes 2 and 1, RIGHT all, THREE 2 and 0.
    assert [code.reward for code in score.codes] == pytest.approx([3 / 6, 1.0, 2 / 6, -1.0])
    # On RIGHT, the best: two kept and passed; wrong and failed, one missing; two kept; one that raises, one missing.
    rewards = [suite.reward for row in score.suites for suite in row]
    assert rewards == pytest.approx([0.6, (0.4 - 0.5) / 2, 0.6, (0.4 - 0.5) / 2])


def test_the_format_of_recorded_scores_is_the_same_under_any_method(sandbox: LocalSandbox) -> None:
    line = write_score(play(sandbox, RewardConfig(suite_size=2, tester_reward="utrl")))
    assert b'"group"' not in line
