"""What is reported about a coder and a tester: definitions with their sources, means and intervals. Pure arithmetic.

A coder: pass@k and avg@k. A tester: what suites come to on the function that they were written for and on its mutants
(`SuiteResult`), by the definitions of UnLeakedTestBench (Huang et al. 2025, arXiv 2508.00408), of Code-A1 (Wang et al.
2026, arXiv 2603.15611), and one of ours in which nothing is left out:

    pass@k           share of correct tests among N functions times k tests (UnLeakedTestBench, README and paper)
    valid suites     share of suites whose tests are all correct: what its released code lets into mutation testing
    mut@k            mean share of mutants killed, over *valid* suites only (its released code)
    mutation score   the same over *all* suites: one that is not valid kills nothing (ours)
    Mul              pass@k times mut@k (Code-A1)
    LCov@k, BCov@k   share of lines, of outcomes of branches, that the first k tests run (UnLeakedTestBench)

A suite is its first k tests; tests that were not written are not correct. All are shares in [0, 1], the papers' are
percent: their `Mul = pass@k * mut@k / 100` is the product of the shares, in percent.

UnLeakedTestBench's formula for mut@k divides by all functions, its code by those with a valid suite: a tester that
writes fewer, safer suites gains by the second. Code-A1's figures need the second: with alpha = 0 its mut@5 (35.79) is
larger than its pass@5 (11.01), which no score that counts invalid suites as 0 could be. Bugs of the released code
(at its commit d992b2d) that are not followed here: the k tests go into one file under one name, `test_<function>`, so
that only the last of them runs (a renaming is applied to the function's file instead); a task whose report is missing
or unfinished counts as one without surviving mutants; a mutant that does not load counts as killed; the coverage total
counts the test file itself, and lines and branches in one figure; one of its two summaries divides by another number
of tasks than it has summed over.

Does not run anything: see `suite_quality.py` and `kill_matrix.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from codea1_env.checks import require, require_whole

RESAMPLES = 2_000
"""Draws of the problems that an interval comes from."""
Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean, or a difference of means, and its 95 % bootstrap interval over problems."""

    low: float
    mean: float
    high: float

    def __format__(self, form: str) -> str:
        """`mean [low, high]`, each number in this form."""
        return f"{self.mean:{form}} [{self.low:{form}}, {self.high:{form}}]"

    @property
    def percent(self) -> Interval:
        return Interval(100 * self.low, 100 * self.mean, 100 * self.high)


@dataclass(frozen=True, slots=True)
class SuiteResult:
    """What the first k tests of one suite came to."""

    k: int
    """Tests that were asked for, >= 1."""
    tests: int
    """Tests that were written, of the first k, in [0, k]."""
    correct: int
    """Of these, the ones that the function passes as they are written, in [0, tests]."""
    mutants: int
    """Mutants of the function that some input kills."""
    killed: int
    """Of these, the ones that fail a test. Only counted for a valid suite; 0 otherwise."""
    lines: int = 0
    """Of the function: those that a statement begins on, the module's own apart."""
    lines_run: int = 0
    """Of these, the ones that a test ran, whether it was correct or not."""
    branches: int = 0
    """Outcomes of branches: two of each `if`, loop and `case`."""
    branches_taken: int = 0

    def __post_init__(self) -> None:
        for part, whole in (
            ("tests", self.k),
            ("correct", self.tests),
            ("killed", self.mutants),
            ("lines_run", self.lines),
            ("branches_taken", self.branches),
        ):
            require(0 <= getattr(self, part) <= whole, part, f"be in [0, {whole}]", getattr(self, part))
        require_whole("k", self.k)
        require(not self.killed or self.is_valid, "killed", "be 0 for a suite that is not valid", self.killed)

    @property
    def is_valid(self) -> bool:
        """There is a test, and all are correct."""
        return 0 < self.tests == self.correct


def pass_at_k(samples: int, correct: int, k: int) -> float:
    """Chance that one of k different samples is correct, of `samples` of which `correct` are: 1 - C(n-c, k) / C(n, k).

    Unbiased where the n samples were drawn independently (Chen et al. 2021, arXiv 2107.03374, equation 1). Raises
    ConfigurationError unless 0 <= correct <= samples and 1 <= k <= samples.
    """
    require(0 <= correct <= samples, "correct", f"be in [0, {samples}]", correct)
    require(1 <= k <= samples, "k", f"be in [1, {samples}], the number of samples", k)
    return 1.0 - math.comb(samples - correct, k) / math.comb(samples, k)


def bootstrap_interval(statistic: Callable[[Places], Floats], problems: int, seed: int = 0) -> Interval | None:
    """95 % percentile interval of a statistic over problems that are drawn anew, RESAMPLES times.

    `statistic` takes places of problems (draws, problems) to one number for each draw; NaN where a draw has none. None
    where it has none on the problems themselves, or there are none.
    """
    if problems < 1:
        return None
    mean = float(statistic(np.arange(problems)[None, :])[0])
    if math.isnan(mean):
        return None
    drawn = np.random.default_rng(seed).integers(0, problems, size=(RESAMPLES, problems))
    low, high = np.nanquantile(statistic(drawn), [0.025, 0.975])
    return Interval(float(low), mean, float(high))


def mean_interval(values: Sequence[float], seed: int = 0) -> Interval | None:
    """Of the mean of one value for each problem; None without problems."""
    table = np.asarray(values, dtype=float)
    return bootstrap_interval(lambda places: table[places].mean(axis=1), len(table), seed)


def _share(part: int, whole: int) -> float:
    return part / whole if whole else math.nan


RATIOS: dict[str, Callable[[SuiteResult], float]] = {
    "pass@k": lambda suite: suite.correct / suite.k,
    "valid suites": lambda suite: float(suite.is_valid),
    "mut@k": lambda suite: _share(suite.killed, suite.mutants if suite.is_valid else 0),
    "mutation score": lambda suite: _share(suite.killed, suite.mutants),
    "LCov@k": lambda suite: _share(suite.lines_run, suite.lines),
    "BCov@k": lambda suite: _share(suite.branches_taken, suite.branches),
}
"""Each measure is the mean over the suites that have a share: a function without mutants or branches has NaN."""
MUL = "Mul"
MEASURES = (*list(RATIOS)[:4], MUL, *list(RATIOS)[4:])


def suite_measures(problems: Sequence[Sequence[SuiteResult]], seed: int = 0) -> dict[str, Interval | None]:
    """Every measure of MEASURES over all suites; None where no suite has a share. `problems`: each one's suites."""
    known = [suites for suites in problems if suites]
    means = {name: _mean_of([list(map(ratio, suites)) for suites in known]) for name, ratio in RATIOS.items()}
    means[MUL] = lambda places: means["pass@k"](places) * means["mut@k"](places)
    return {name: bootstrap_interval(means[name], len(known), seed) for name in MEASURES}


def program_measures(
    problems: Sequence[Sequence[bool]], samples: int, ks: Sequence[int], seed: int = 0
) -> dict[str, Interval | None]:
    """avg@n, the share of correct samples (Code-A1's avg@32), and pass@k for each k of `ks`, means over problems; None
    without problems. `problems`: which of each one's n = `samples` programs are correct.

    Raises ConfigurationError where a problem has fewer samples than a k.
    """
    measures = {f"avg@{samples}": mean_interval([sum(passed) / len(passed) for passed in problems], seed)}
    for k in ks:
        measures[f"pass@{k}"] = mean_interval([pass_at_k(len(passed), sum(passed), k) for passed in problems], seed)
    return measures


def _mean_of(problems: Sequence[Sequence[float]]) -> Callable[[Places], Floats]:
    """Over all suites of drawn problems. `problems`: each one's shares, NaN for a suite without one."""
    table = np.array([[np.nansum(shares), np.isfinite(shares).sum()] for shares in problems])

    def mean(places: Places) -> Floats:
        shares, counts = table[places].sum(axis=1).T  # each (draws,)
        with np.errstate(invalid="ignore"):
            return np.asarray(shares / counts)

    return mean
