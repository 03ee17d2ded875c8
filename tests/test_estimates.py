"""Interval estimates for few runs: numbers worked out by hand, and how often an interval covers the truth."""

import math

import numpy as np
import pytest

pytest.importorskip("scipy", reason="the extra `solve` is not installed")

from codea1_env.bench.estimates import (
    mean_by_base,
    mean_with_t,
    new_run,
)


def test_students_interval_is_the_textbooks() -> None:
    found = mean_with_t([1.0, 2.0, 3.0])  # deviation 1, t of 2 degrees of freedom 4.302653
    assert (found.value, found.runs) == (2.0, 3)
    assert found.high - found.value == pytest.approx(4.302653 / 3**0.5, abs=1e-5)
    assert found.value - found.low == pytest.approx(4.302653 / 3**0.5, abs=1e-5)


def test_students_interval_covers_the_mean_of_few_runs_as_often_as_it_says() -> None:
    rng = np.random.default_rng(0)
    for runs in (3, 5):
        found = [mean_with_t(list(row)) for row in rng.normal(size=(1_000, runs))]
        assert 0.93 <= np.mean([each.low <= 0 <= each.high for each in found]) <= 0.97


def test_one_run_has_no_interval_and_none_is_refused() -> None:
    assert math.isnan(mean_with_t([0.5]).low)
    for scores in ([], [float("nan")], [float("inf"), 1.0]):
        with pytest.raises(ValueError, match="one finite number per run"):
            mean_with_t(scores)


def test_with_several_bases_a_base_is_the_unit() -> None:
    """Means 0.3 and 0.7. The mean: 12.706 * sqrt(0.08 / 2) = 2.541. A new run: 12.706 * sqrt(0.08 * 3/2 + 0.02 / 2)."""
    bases = [[0.2, 0.4], [0.6, 0.8]]
    mean = mean_by_base(bases)
    assert (mean.value, mean.low, mean.high, mean.runs) == pytest.approx((0.5, -2.0412, 3.0412, 4), abs=1e-4)
    new = new_run(bases)
    assert (new.value, new.low, new.high, new.runs) == pytest.approx((0.5, -4.0813, 5.0813, 4), abs=1e-3)


def test_with_one_base_a_run_is_the_unit() -> None:
    """12.706 * 0.1414 * sqrt(3/2) = 2.2008."""
    assert mean_by_base([[0.2, 0.4]]) == mean_with_t([0.2, 0.4])
    new = new_run([[0.2, 0.4]])
    assert (new.low, new.high) == pytest.approx((0.3 - 2.2008, 0.3 + 2.2008), abs=1e-3)
    assert math.isnan(new_run([[0.2]]).low)


def test_the_interval_of_a_new_run_covers_new_runs() -> None:
    """Four bases of three seeds, spread 1 between bases and 1 within: 93 to 99 of 100 new runs lie in it."""
    rng = np.random.default_rng(0)
    covered = 0
    for _ in range(2_000):
        effects = rng.normal(size=5)
        found = new_run([list(effect + rng.normal(size=3)) for effect in effects[:4]])
        covered += found.low <= effects[4] + rng.normal() <= found.high
    assert 0.93 <= covered / 2_000 <= 0.99
