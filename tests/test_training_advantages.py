"""Advantages by hand: groups of any size, rows without a score, running means, tokens; and the bits of TRL's own."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from trl.trainer.utils import nanstd

from codea1_env.configuration.algorithm import Algorithm
from codea1_env.training.advantages import Estimator, advantages_of, described, estimator_of, without_signal
from codea1_env.training.samples import Row, RowLabel, Sample, Span, token_advantages


def labels(groups: Sequence[str], questions: Sequence[str] = "", seats: Sequence[str] = ()) -> list[RowLabel]:
    """`questions`: a letter a row; else that of the group."""
    each = zip(groups, questions or groups, seats or ["coder"] * len(groups), strict=True)
    return [RowLabel(*row) for row in each]


def advantages(estimator: Estimator, rewards: Sequence[float | None], rows: Sequence[RowLabel]) -> list[float]:
    known = torch.tensor([float("nan") if reward is None else reward for reward in rewards])
    found: list[float] = estimator.advantages(known, rows).nan_to_num(nan=0.0).tolist()
    return found


def grpo(rewards: Sequence[float | None], groups: Sequence[str], scale: str) -> list[float]:
    return advantages(estimator_of(Algorithm(scale=scale)), rewards, labels(groups))


def question(means: dict[str, float] | None = None, **options: Any) -> Estimator:
    estimator = estimator_of(Algorithm(advantage="question", **options))
    estimator.restore({"means": {f"coder {name}": mean for name, mean in (means or {}).items()}})
    return estimator


HALF, ROOT = 0.5 / 0.7072068, 1 / 1.7321508


@pytest.mark.parametrize(
    ("rewards", "groups", "scale", "expected"),
    [
        # a: 0, 1, mean 1/2, sample deviation sqrt(((1/2)^2 + (1/2)^2) / 1) = sqrt(1/2) = 0.7071068.
        # b: 1, 4, 1, mean 2, sample deviation sqrt((1 + 4 + 1) / 2) = sqrt(3) = 1.7320508.
        ([0.0, 1.0, 1.0, 4.0, 1.0], "ababb", "group", [-HALF, -ROOT, HALF, 2 * ROOT, -ROOT]),
        # RLOO but for a factor. Leave-one-out of 0, 2, 4: 0 - 3, 2 - 2, 4 - 1. Times (N - 1) / N = 2/3: -2, 0, 2.
        ([0.0, 2.0, 4.0, 5.0], "aaab", "none", [-2, 0, 2, 0]),
    ],
)
def test_a_group_is_normalised_by_mean_and_deviation(rewards: Any, groups: str, scale: str, expected: Any) -> None:
    assert grpo(rewards, groups, scale) == pytest.approx(expected)


@pytest.mark.parametrize("scale", ["group", "batch", "none"])
@pytest.mark.parametrize("size", [2, 3, 4, 8, 16])
def test_equal_groups_have_the_bits_of_trls_own_advantages(scale: str, size: int) -> None:
    torch.manual_seed(size)
    for groups in (1, 2, 7, 64):
        rewards = torch.rand(groups * size)
        rewards[torch.rand(groups * size) < 0.3] = 0.7  # equal ones, whose differences are rounding
        rewards[torch.rand(groups * size) < 0.1] = torch.nan
        spread = nanstd(rewards.view(-1, size), dim=1).repeat_interleave(size)
        expected = rewards - rewards.view(-1, size).nanmean(dim=1).repeat_interleave(size)
        if scale != "none":
            expected = expected / ((nanstd(rewards) if scale == "batch" else spread) + 1e-4)
        rows = labels([str(place // size) for place in range(groups * size)])
        found = estimator_of(Algorithm(scale=scale)).advantages(rewards, rows)
        assert torch.equal(found.nan_to_num(nan=0.0), expected.nan_to_num(nan=0.0))


@pytest.mark.parametrize("scale", ["group", "batch", "none"])
def test_a_row_without_a_score_does_not_count_and_groups_without_differences_have_no_signal(scale: str) -> None:
    """Three times 0.1 has a mean that differs from 0.1 in the last bit; that is no difference."""
    found = grpo([0.0, None, 1.0, None], "aaab", scale)
    assert [found[1], found[3]] == [0, 0]
    assert [found[0], found[2]] == pytest.approx(grpo([0.0, 1.0], "aa", scale))
    assert found[0] < 0
    same: list[list[float | None]] = [[], [None], [None, None], [0.3], [0.1, 0.1, 0.1], [0.7] * 6]
    for rewards in same:
        assert without_signal(torch.tensor(grpo(rewards, "a" * len(rewards), scale)), labels("a" * len(rewards))).all()
    silent = without_signal(torch.tensor(grpo([1.0, 0.5, 1.0, 0.0, None], "ababc", scale)), labels("ababc"))
    assert silent.tolist() == [True, False, True, False, True]
    alone = advantages_of(estimator_of(Algorithm(scale=scale)), batch(("a", 0.5), ("a", None)))
    assert alone.rows.tolist() == [0, 0], "and is not refused"


@pytest.mark.parametrize(
    ("means", "options", "rewards", "rows", "expected"),
    [
        # The book strikes: less than a mean of 0.3. Differences -0.2, 0, root mean square sqrt(0.04 / 2) = 0.1414214.
        ({"a": 0.3}, {"scale": "none"}, [0.1, 0.3], labels("aa"), [-0.2, 0.0]),
        ({"a": 0.3}, {"scale": "group"}, [0.1, 0.3], labels("aa"), [-0.2 / 0.1415214, 0.0]),
        # Equal rewards, 0.1 above: root mean square 0.1. Nothing explodes.
        ({"a": 0.4}, {"scale": "group"}, [0.5] * 4, labels("aaaa"), [0.1 / 0.1001] * 4),
        # One for all rows. Differences 0.3, -0.1 | 0, 0 (first visit): sqrt((0.09 + 0.01) / 4) = 0.1581139.
        ({"q": 0.2}, {"scale": "batch"}, [0.5, 0.1, 0.7, 0.7, None], labels("aabbb", questions="qqppp"),
         [0.3 / 0.1582139, -0.1 / 0.1582139, 0, 0, 0]),
    ],
)  # fmt: skip
def test_what_is_the_same_for_a_whole_group_counts_against_the_questions_mean(
    means: Any, options: Any, rewards: Any, rows: list[RowLabel], expected: list[float]
) -> None:
    assert advantages(question(means, **options), rewards, rows) == pytest.approx(expected, abs=1e-5)


def test_the_running_mean_moves_by_its_rate_ignores_rows_without_a_score_and_goes_on_from_its_state() -> None:
    """q: first mean 0.4, then a visit of 0.8 at rate 1/4: 0.4 + 1/4 (0.8 - 0.4) = 0.5. At rate 1/2: the first visit's
    mean is 0.5; the second's differences are -0.5 and 0, then the mean is 0.375."""
    estimator = question(rate=0.25)
    advantages(estimator, [0.2, 0.6, None], labels("qqq"))
    advantages(estimator, [0.8, None, None], labels("qqp"))
    assert estimator.state()["means"] == pytest.approx({"coder q": 0.5})
    one, other = question(scale="none"), question(scale="none")
    assert advantages(one, [0.0, 1.0], labels("qq")) == [-0.5, 0.5]
    other.restore(one.state())
    assert advantages(other, [0.0, 0.5], labels("qq")) == [-0.5, 0.0]
    assert (one.state(), other.state()) == ({"means": {"coder q": 0.5}}, {"means": {"coder q": 0.375}})
    other.restore(estimator_of(Algorithm()).state())  # a run may be given another estimator in its midst
    assert other.state() == {"means": {}}


def test_each_seat_has_a_moving_mean_of_its_own() -> None:
    """Rate 1/4. The coder earned 0.8 and 0.4, the tester 0.1 and 0.3: means 0.6 and 0.2; questions do not matter.

    Then 1, 0.2 | 0.2, 0.6: differences 0.4, -0.4 | 0, 0.4; the means move to 0.6 and 0.2 + 1/4 (0.4 - 0.2) = 0.25.
    """
    estimator = estimator_of(Algorithm(advantage="rae", scale="none", rate=0.25))
    seats = ["coder", "coder", "tester", "tester"]
    first = advantages(estimator, [0.8, 0.4, 0.1, 0.3], labels("aabb", "pppp", seats))
    assert first == pytest.approx([0.2, -0.2, -0.1, 0.1])
    second = advantages(estimator, [1.0, 0.2, 0.2, 0.6], labels("cddd", "qqqq", seats))
    assert second == pytest.approx([0.4, -0.4, 0, 0.4], abs=1e-6)
    assert estimator.state()["means"] == pytest.approx({"coder": 0.6, "tester": 0.25})


def test_tokens_get_the_advantage_of_the_test_that_they_write() -> None:
    """Characters 0-3 a fence, 4-9 one test, 9-10 a line break, 10-15 another. A token over a border is the first's."""
    offsets = [(0, 4), (4, 7), (7, 10), (10, 12), (12, 15), (15, 15)]
    assert token_advantages(offsets, [(4, 9), (10, 15)], [1.0, -1.0], 0.25) == [0.25, 1, 1, -1, -1, 0.25]
    assert token_advantages([(0, 2), (2, 3)], [], [], -0.5) == [-0.5, -0.5], "that of the suite"
    assert token_advantages([(0, 9)], [(2, 4), (5, 9)], [1.0, 2.0], 0.0) == [1.0], "over two tests: the first's"


def batch(*rows: tuple[str, float | None], tests: Sequence[tuple[float, ...]] = (), resting: str = "") -> list[Row]:
    """Of group and reward. `tests`: what those of each suite earn. `resting`: a group that is not learnt from."""
    spans: tuple[Span, ...] = ((0, 2), (3, 5))
    earned = [(spans[: len(each)], each) for each in tests] or [((), ())] * len(rows)
    return [
        Row(Sample((0,), (0,), ""), reward, RowLabel(group, group, "tester", *own), group != resting)
        for (group, reward), own in zip(rows, earned, strict=True)
    ]


@pytest.mark.parametrize("scale", ["group", "batch", "none"])
def test_small_rewards_that_differ_teach_and_equal_ones_do_not(scale: str) -> None:
    rewards = [("a", 0.0), ("a", 1e-3), *[("b", 0.3)] * 6, *[("c", 0.7)] * 6, *[("d", 1 / 3)] * 6]
    silent = advantages_of(estimator_of(Algorithm(scale=scale)), batch(*rewards)).silent.tolist()
    assert silent == [False] * 2 + [True] * 18


def test_each_test_of_a_suite_has_its_own_advantage() -> None:
    """Three suites of one group: tests 1, 0 | 1, no score | none. Mean 1/2 over the scored tests, without a scale."""
    estimator = estimator_of(Algorithm(scale="none", credit="test"))
    rows = batch(("g", 0.5), ("g", None), ("g", 0.5), tests=((1.0, 0.0), (1.0, 1.0), ()))
    found = advantages_of(estimator, rows)
    assert found.tests == ((0.5, -0.5), (0.0, 0.0), ())
    assert found.rows.tolist() == [0, 0, 0]
    assert not found.silent.any(), "a good and a bad test teach, though their suites earn the same"


@pytest.mark.parametrize(("drops", "learnt"), [("keep", [1, 1, 0, 0, 0, 1, 1]), ("drop", [1, 1, 0, 0, 0, 0, 0])])
def test_what_is_learnt_from_is_scored_plays_and_may_have_to_teach(drops: str, learnt: list[int]) -> None:
    rows = batch(("a", 0.0), ("a", 1.0), ("a", None), ("b", 0.0), ("b", 1.0), ("c", 1.0), ("c", 1.0), resting="b")
    parts = (rows, rows[3:5], rows[5:])  # the second is another's turn
    found, *others = (advantages_of(estimator_of(Algorithm(zero_variance=drops)), part) for part in parts)
    assert found.learnt.int().tolist() == learnt
    assert [found.rests, *(each.rests for each in others)] == [False, True, drops == "drop"]


def test_a_batch_is_described_by_its_groups() -> None:
    """a: 0, 1, sample deviation 0.7071068. b: 0. c: one score alone has none."""
    rows = batch(("a", 0.0), ("a", 1.0), ("b", 0.5), ("b", 0.5), ("c", 1.0), ("c", None))
    told = described(rows, advantages_of(estimator_of(Algorithm()), rows))
    assert told == pytest.approx({"reward": 3 / 5, "reward_std": 0.7071068 / 2, "frac_reward_zero_std": 4 / 6})


def released_advantages(rewards: Sequence[float]) -> list[float]:
    """The rule of Code-A1's released code: one bfloat16 a response, the mean and sample deviation in that type, too."""
    scores = torch.tensor(rewards, dtype=torch.bfloat16)
    found: list[float] = ((scores - scores.mean()) / (scores.std() + 1e-6)).tolist()
    return found


def test_the_page_says_what_bfloat16_does_to_a_group_of_eight() -> None:
    page = (Path(__file__).resolve().parents[1] / "docs" / "deviations.md").read_text()
    table = page.partition("<!-- bfloat16 -->")[2].partition("<!-- /bfloat16 -->")[0]
    told = [float(number) for number in re.findall(r"-?\d*\.\d+", table)]
    most, one, low, high, first, second, last = told[:7]
    close, spread = [most] * 7 + [one], [first + (second - first) * place for place in range(8)]
    assert spread[-1] == pytest.approx(last)
    assert released_advantages(close) == [0.0] * 8
    assert grpo(close, "a" * 8, "group")[::7] == pytest.approx([low, high], abs=0.6), "1e-4 beside a deviation of 4e-4"
    exact = torch.tensor([close, spread], dtype=torch.float64)
    exact = (exact - exact.mean(1, keepdim=True)) / (exact.std(1, keepdim=True) + 1e-6)
    assert exact[0, ::7].tolist() == pytest.approx([low, high], abs=0.005)
    assert released_advantages(spread) == pytest.approx(told[7:15], abs=0.005)
    assert exact[1].tolist() == pytest.approx(told[15:23], abs=0.005)
    assert len(told) == 23
