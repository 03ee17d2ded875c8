"""Ratings: the maximum of the likelihood, the same whatever the order, and intervals that mean something."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as arrays

from codea1_env.errors import ConfigurationError
from codea1_env.evaluation.ratings import Rating, rate, strengths


def likelihood(x: np.ndarray, won: np.ndarray, lost: np.ndarray) -> float:
    """The logarithm, written down plainly; each player has one draw with strength 0."""
    coders = won.shape[0]
    total = 0.0
    for c in range(coders):
        for t in range(won.shape[1]):
            difference = x[c] - x[coders + t]
            total -= won[c, t] * math.log1p(math.exp(-difference)) + lost[c, t] * math.log1p(math.exp(difference))
    return total - sum(0.5 * math.log1p(math.exp(-each)) + 0.5 * math.log1p(math.exp(each)) for each in x)


COUNTS = arrays.arrays(float, (3, 2), elements=st.integers(0, 30))


@given(COUNTS, COUNTS, st.integers(0, 99))
def test_no_other_strengths_are_likelier(won: np.ndarray, lost: np.ndarray, seed: int) -> None:
    x = strengths(won, lost)
    best = likelihood(x, won, lost)
    for size in (1e-3, 0.1, 1.0):
        other = x + np.random.default_rng(seed).normal(size=5) * size
        assert likelihood(other, won, lost) <= best + 1e-9


def test_one_pair_is_solved_by_hand() -> None:
    # By symmetry the tester's strength is -x; at the maximum 3 - 4 s(2x) + 1/2 - s(x) = 0. x = ln 2: s(2x) = 0.8,
    # s(x) = 2/3: 3 - 3.2 + 0.5 - 0.667 < 0. Without the virtual draw it were s(2x) = 3/4.
    (coder, tester) = strengths(np.array([[3.0]]), np.array([[1.0]]))
    assert coder == pytest.approx(-tester)
    s = [1 / (1 + math.exp(-each)) for each in (coder, 2 * coder)]
    assert 3 - 4 * s[1] + 0.5 - s[0] == pytest.approx(0)
    assert 0 < coder < math.log(3) / 2
    many = strengths(np.array([[3e6]]), np.array([[1e6]]))
    assert many[0] - many[1] == pytest.approx(math.log(3), abs=1e-5)


def test_who_wins_everything_is_strong_and_not_infinitely_so() -> None:
    few, many = (strengths(np.full((2, 2), count), np.zeros((2, 2))) for count in (5.0, 500.0))
    assert 0 < few[0] < many[0] < 20
    assert few[0] == pytest.approx(few[1])
    assert many[0] == pytest.approx(-many[2])


def test_who_played_nothing_stands_in_the_middle_with_no_interval_of_one_question() -> None:
    assert rate(np.zeros((1, 1, 1)), np.zeros((1, 1, 1)))[0] == Rating(1500.0, None, None)


def test_400_points_are_odds_of_ten_to_one() -> None:
    coder, tester = rate(np.full((1, 1, 1), 1e7), np.full((1, 1, 1), 1e6))
    assert coder.points - tester.points == pytest.approx(400, abs=0.1)


def test_neither_the_order_of_players_nor_of_questions_matters() -> None:
    won = np.random.default_rng(0).integers(0, 2, (40, 3, 2)).astype(float)
    found = rate(won, 1 - won)
    turned = rate(won[::-1, ::-1], 1 - won[::-1, ::-1])
    assert [each.points for each in turned[2::-1]] == pytest.approx([each.points for each in found[:3]])


def test_intervals_hold_the_rating_shrink_with_questions_and_repeat_for_a_seed() -> None:
    generator = np.random.default_rng(0)
    widths = []
    for questions in (20, 500):
        won = (generator.random((questions, 2, 2)) < [[0.8, 0.6], [0.5, 0.3]]).astype(float)
        found = rate(won, 1 - won, seed=3)
        assert found == rate(won, 1 - won, seed=3)
        for each in found:
            assert each.low is not None
            assert each.high is not None
            assert each.low < each.points < each.high
        widths.append((found[0].high or 0) - (found[0].low or 0))
    assert widths[1] < widths[0] / 2


def test_95_of_100_intervals_hold_the_true_difference() -> None:
    # Two coders whose strengths differ by ln 9 - ln 1.5 against one tester: 9 : 1 and 3 : 2.
    generator, held = np.random.default_rng(1), 0
    for _ in range(100):
        won = (generator.random((200, 2, 1)) < [[0.9], [0.6]]).astype(float)
        drawn = generator.multinomial(200, np.full(200, 1 / 200), size=200)
        x = strengths(np.tensordot(drawn, won, axes=1), np.tensordot(drawn, 1 - won, axes=1))
        low, high = np.percentile(x[:, 0] - x[:, 1], (2.5, 97.5))
        held += low < math.log(9 / 1.5) < high
    assert 88 <= held <= 100


def test_tables_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"must be \(questions, C, T\) alike, got \(0, 1, 1\)"):
        rate(np.zeros((0, 1, 1)), np.zeros((0, 1, 1)))
    with pytest.raises(ConfigurationError, match="alike"):
        rate(np.zeros((1, 1, 1)), np.zeros((1, 1, 2)))


@pytest.mark.parametrize("questions", [6, 16, 100])
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_games_that_all_end_alike_leave_room_for_doubt(questions: int, share: float) -> None:
    won = np.full((questions, 1, 1), share)
    coder, tester = rate(won, 1 - won)
    for each in (coder, tester):
        assert each.low is not None
        assert each.high is not None
        assert each.low < each.points < each.high
    assert (coder.high or 0) - (coder.low or 0) > 50


@pytest.mark.parametrize(("questions", "has"), [(1, False), (3, False), (5, False), (6, True)])
def test_too_few_games_have_no_interval(questions: int, has: bool) -> None:
    won = np.ones((questions, 1, 1))
    coder, _ = rate(won, 1 - won)
    assert (coder.low is not None, coder.high is not None) == (has, has)
