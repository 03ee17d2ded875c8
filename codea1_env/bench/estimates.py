"""Interval estimates for a handful of runs: what a few seeds can say about a method, and what they cannot.

The unit is a run (a seed); runs of two methods are paired where they have the same seed. Numpy, and Student's t from
scipy. Does not correct for many comparisons, and does not know what a problem is: the spread over problems within a run
is another matter.

Why not rliable, whose definitions these are (Agarwal et al. 2021, arXiv 2108.13264): it is archived since October 2025,
and its intervals are percentile bootstraps, which are too narrow for so few runs: of five normal numbers their 95 %
interval covers the mean 84 times of 100, of three 75 times; Student's t covers it 95 times. So t decides here.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from codea1_env.extras import extra

with extra("solve", "interval estimates need"):
    from scipy.special import stdtrit  # that of scipy.stats, which takes a second to load

Scores = Sequence[float]
"""Of one method: one number per run."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number and its 95 % interval; the ends are nan where there are too few runs for one."""

    value: float
    low: float
    high: float
    runs: int
    """That it is from."""


def shown(estimate: Estimate, sign: str = "") -> str:
    """The number, its interval and how many runs it is from. `sign`: "+" for differences."""
    value, low, high = (round(number, 3) + 0.0 for number in (estimate.value, estimate.low, estimate.high))  # no -0.000
    ends = "" if math.isnan(low) else f" [{low:{sign}.3f}, {high:{sign}.3f}]"
    return f"{value:{sign}.3f}{ends} ({estimate.runs})"


def of_share(estimate: Estimate) -> Estimate:
    """With an interval that ends where shares do: Student's does not know that none is below 0."""
    if math.isnan(estimate.low):
        return estimate
    return dataclasses.replace(estimate, low=max(estimate.low, 0.0), high=min(estimate.high, 1.0))


def by_base(values: Mapping[tuple[int, int], float]) -> list[list[float]]:
    """The runs of every base, of runs by base and seed."""
    bases: dict[int, list[float]] = {}
    for (base, _), value in values.items():
        bases.setdefault(base, []).append(value)
    return list(bases.values())


def mean_with_t(scores: Scores) -> Estimate:
    """The mean with Student's interval, of n - 1 degrees of freedom; from two runs on."""
    values = np.asarray(_some(scores), dtype=float)
    value, n = float(values.mean()), len(values)
    if n < 2:
        return Estimate(value, float("nan"), float("nan"), n)
    margin = float(stdtrit(n - 1, 0.975)) * float(values.std(ddof=1)) / n**0.5
    return Estimate(value, value - margin, value + margin, n)


def mean_by_base(bases: Sequence[Scores]) -> Estimate:
    """The mean of methods whose runs begin with different base models: `bases[i]` has the runs of base i.

    From two bases on, a base is the unit: the mean of their means with Student's interval, of n - 1 degrees of freedom.
    It covers how bases differ, and how seeds do as far as each base has seeds of its own: what a seed does to all bases
    alike is not covered. With one base a run is the unit, and how bases differ is not covered.
    """
    if len(bases) == 1:
        return mean_with_t(bases[0])
    estimate = mean_with_t([float(np.mean(_some(scores))) for scores in bases])
    return dataclasses.replace(estimate, runs=sum(len(scores) for scores in bases))


def new_run(bases: Sequence[Scores]) -> Estimate:
    """Where one more run, of a base of its own, lies in 95 of 100 cases: wider than the interval of the mean.

    The variance of a new run: that of the bases' means, the part of the runs' within a base that these do not hold, and
    that of the mean itself. With one base it is a run of that base.
    """
    center = mean_by_base(bases)
    units = bases if len(bases) > 1 else [[score] for score in bases[0]]
    if len(units) < 2:
        return center
    between = float(np.var([np.mean(scores) for scores in units], ddof=1))
    repeated = [scores for scores in units if len(scores) > 1]
    within = float(np.mean([np.var(scores, ddof=1) for scores in repeated])) if repeated else 0.0
    size = float(np.mean([len(scores) for scores in units]))
    spread = (between * (1 + 1 / len(units)) + within * (1 - 1 / size)) ** 0.5
    margin = float(stdtrit(len(units) - 1, 0.975)) * spread
    return dataclasses.replace(center, low=center.value - margin, high=center.value + margin)


def _some(scores: Scores) -> Scores:
    if len(scores) == 0 or not np.isfinite(scores).all():
        raise ValueError(f"scores must be one finite number per run, at least one, got {list(scores)!r}")
    return scores
