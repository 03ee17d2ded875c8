"""Metrics with numbers computed by hand."""

import math
from itertools import combinations

import numpy as np
import pytest

from codea1_env.errors import ConfigurationError
from codea1_env.evaluation.metrics import (
    MEASURES,
    SuiteResult,
    bootstrap_interval,
    mean_interval,
    pass_at_k,
    program_measures,
    suite_measures,
)


@pytest.mark.parametrize(
    ("samples", "correct", "k", "expected"),
    [
        (5, 2, 1, 2 / 5),
        (5, 2, 2, 1 - 3 / 10),  # C(3, 2) / C(5, 2)
        (5, 2, 4, 1.0),  # four of five hold one of the two
        (5, 0, 5, 0.0),
        (5, 5, 1, 1.0),
        (200, 10, 10, 1 - math.comb(190, 10) / math.comb(200, 10)),
    ],
)
def test_pass_at_k_by_hand(samples: int, correct: int, k: int, expected: float) -> None:
    assert pass_at_k(samples, correct, k) == pytest.approx(expected)


def test_pass_at_k_is_the_share_of_all_draws_of_k_that_hold_a_correct_one() -> None:
    for samples in range(1, 8):
        for correct in range(samples + 1):
            for k in range(1, samples + 1):
                draws = list(combinations([True] * correct + [False] * (samples - correct), k))
                assert pass_at_k(samples, correct, k) == pytest.approx(sum(map(any, draws)) / len(draws))


@pytest.mark.parametrize("arguments", [(5, 6, 1), (5, -1, 1), (5, 2, 0), (5, 2, 6), (0, 0, 1)])
def test_pass_at_k_refuses_what_makes_no_sense(arguments: tuple[int, int, int]) -> None:
    with pytest.raises(ConfigurationError, match="must be in"):
        pass_at_k(*arguments)


def test_avg_at_k_is_a_mean_over_samples_and_problems() -> None:
    # Problems: 2 of 4, 4 of 4. pass@2: 1 - C(2, 2) / C(4, 2) = 5 / 6, and 1.
    found = program_measures([[True, True, False, False], [True] * 4], 4, ks=(1, 2))
    assert {name: interval.mean for name, interval in found.items() if interval} == {
        "avg@4": 0.75,
        "pass@1": 0.75,
        "pass@2": pytest.approx((5 / 6 + 1) / 2),
    }
    assert program_measures([], 4, ks=(1,)) == {"avg@4": None, "pass@1": None}


def suite(tests: int, correct: int, killed: int = 0, mutants: int = 4) -> SuiteResult:
    return SuiteResult(5, tests, correct, mutants, killed, lines=10, lines_run=tests, branches=4, branches_taken=1)


def test_a_testers_measures_by_hand() -> None:
    """Two functions of two suites each, k = 5: valid with 3 of 4 mutants killed; invalid; valid with 1; nothing."""
    found = suite_measures([[suite(5, 5, 3), suite(5, 3)], [suite(2, 2, 1), suite(0, 0)]])
    assert tuple(found) == MEASURES
    means = {name: interval.mean for name, interval in found.items() if interval}
    assert means == {
        "pass@k": pytest.approx((5 + 3 + 2 + 0) / 20),
        "valid suites": 2 / 4,
        "mut@k": pytest.approx((3 / 4 + 1 / 4) / 2),  # over the two valid suites
        "mutation score": pytest.approx((3 / 4 + 0 + 1 / 4 + 0) / 4),
        "Mul": pytest.approx(0.5 * 0.5),
        "LCov@k": pytest.approx((5 + 5 + 2 + 0) / 40),
        "BCov@k": 1 / 4,
    }
    assert all(interval.low <= interval.mean <= interval.high for interval in found.values() if interval)


def test_code_a1s_mul_is_the_product_of_its_percentages_over_100() -> None:
    """Its table, alpha 0.5 (1.5B): pass@5 27.05, mut@5 26.41, Mul 7.14."""
    assert pytest.approx(7.14, abs=0.01) == 27.05 * 26.41 / 100
    found = suite_measures([[suite(5, 5, 2)], [suite(5, 0)]])
    means = {name: 100 * interval.mean for name, interval in found.items() if interval}
    assert means["Mul"] == pytest.approx(means["pass@k"] * means["mut@k"] / 100) == pytest.approx(25)


def test_writing_fewer_and_safer_suites_raises_mut_at_k_and_not_the_mutation_score() -> None:
    bold = suite_measures([[suite(5, 5, 4)], [suite(5, 5, 1)]])
    shy = suite_measures([[suite(5, 5, 4)], [suite(5, 4)]])
    assert bold["mut@k"].mean < shy["mut@k"].mean  # type: ignore[union-attr]
    assert bold["mutation score"].mean > shy["mutation score"].mean  # type: ignore[union-attr]


def test_what_no_suite_has_is_none_and_not_zero() -> None:
    assert set(suite_measures([]).values()) == {None}
    assert set(suite_measures([[]]).values()) == {None}
    found = suite_measures([[suite(5, 4)], []])
    assert found["mut@k"] is found["Mul"] is None, "no valid suite"
    assert found["mutation score"].mean == 0  # type: ignore[union-attr]
    no_mutants = suite_measures([[suite(5, 5, 0, mutants=0)]])
    assert no_mutants["mut@k"] is no_mutants["mutation score"] is None
    assert no_mutants["pass@k"].mean == 1  # type: ignore[union-attr]
    assert suite_measures([[SuiteResult(5, 5, 5, 1, 1)]])["BCov@k"] is None, "no branches"


@pytest.mark.parametrize(
    "numbers",
    [
        {"tests": 6},
        {"tests": -1},
        {"correct": 5},
        {"killed": 5, "mutants": 4},
        {"killed": 1},  # of a suite that is not valid
        {"lines_run": 1},
        {"branches_taken": 1},
        {"k": 0, "tests": 0, "correct": 0},
    ],
)
def test_numbers_that_contradict_each_other_are_refused(numbers: dict[str, int]) -> None:
    fields = {"k": 5, "tests": 4, "correct": 3, "mutants": 4, "killed": 0, **numbers}
    with pytest.raises(ConfigurationError, match="must be"):
        SuiteResult(**fields)


def test_an_interval_is_about_problems_and_repeats_for_a_seed() -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(0.5, 0.2, size=100)
    found = mean_interval(values)
    assert found == mean_interval(values)
    assert found != mean_interval(values, seed=1)
    assert found is not None
    assert found.mean == pytest.approx(values.mean())
    assert 0.06 < found.high - found.low < 0.10, "about four standard errors of 0.02"
    assert mean_interval([]) is None
    assert bootstrap_interval(lambda places: np.full(len(places), np.nan), 3) is None
