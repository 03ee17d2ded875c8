"""Matrix games: Nash equilibria of two matrices, maximin mixes of one, and what could still be gained.

Rows and columns pick at the same time. `zero_sum` is a linear program; `nash` a mixed-integer one (Sandholm, Gilpin and
Conitzer 2005), made exact by linear programs on the supports it finds. Needs scipy (extra `solve`) when called.
Does not list all equilibria, and takes time exponential in the matrices' size at worst: a few dozen rows and columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from codea1_env.errors import ConfigurationError
from codea1_env.extras import extra

Matrix = npt.NDArray[np.float64]
_Flags = npt.NDArray[np.bool_]
GAIN_TOLERANCE = 1e-6
"""Nobody gains more than this in what is called an equilibrium here: the solvers' accuracy."""


@dataclass(frozen=True, slots=True)
class Mixes:
    """A mix of rows and a mix of columns, and what they earn."""

    rows: Matrix
    """Probabilities, (rows,)."""
    columns: Matrix
    """Probabilities, (columns,)."""
    row_value: float
    """Expected payoff of who picks rows."""
    column_value: float


def zero_sum(matrix: npt.ArrayLike) -> Mixes:
    """Maximin mixes of the zero-sum game in which rows get `matrix` and columns its negative. Needs scipy."""
    rows = _matrix(matrix)
    mixes = _maximin(rows), _maximin(-rows.T)
    value = float(mixes[0] @ rows @ mixes[1])
    return Mixes(mixes[0], mixes[1], value, -value)


def nash(rows: npt.ArrayLike, columns: npt.ArrayLike) -> Mixes:
    """A Nash equilibrium of a matrix game, with the largest sum of payoffs. Needs scipy.

    `rows[i, j]` and `columns[i, j]`: what each side gets.
    """
    ours, theirs = _matrix(rows), _matrix(columns)
    if ours.shape != theirs.shape:
        raise ConfigurationError(f"both matrices must have one shape, got {ours.shape} and {theirs.shape}")
    spreads = _spread(ours), _spread(theirs)
    # What is best does not depend on unit and zero of a payoff; the solvers' tolerances do.
    scaled_ours, scaled_theirs = (ours - ours.min()) / spreads[0], (theirs - theirs.min()) / spreads[1]
    may_row, may_column = _supports(scaled_ours, scaled_theirs, spreads)
    row_mix = _indifferent(scaled_theirs.T, may_column, may_row)
    column_mix = _indifferent(scaled_ours, may_row, may_column)
    return Mixes(row_mix, column_mix, float(row_mix @ ours @ column_mix), float(row_mix @ theirs @ column_mix))


def gains(rows: npt.ArrayLike, columns: npt.ArrayLike, mixes: Mixes) -> float:
    """What both sides of a matrix game together could still gain: 0 in equilibrium."""
    ours, theirs = _matrix(rows), _matrix(columns)
    best = (ours @ mixes.columns).max() + (mixes.rows @ theirs).max()
    return float(best - mixes.rows @ (ours + theirs) @ mixes.columns)


def _supports(ours: Matrix, theirs: Matrix, weights: tuple[float, float]) -> tuple[_Flags, _Flags]:
    """Which rows and columns an equilibrium may play, by a mixed-integer program. Payoffs are in [0, 1].

    `weights`: what the two sides' payoffs count for in the choice between equilibria.

    Variables: x (rows), y (columns), the values u and w, and for every pure strategy a binary that is 1 where it is
    banned. A strategy that is not banned must be a best response; a banned one must have probability 0.
    """
    optimize = _scipy()
    m, n = ours.shape
    size = 2 * (m + n) + 2
    x, y, u, w, ban_x, ban_y = 0, m, m + n, m + n + 1, m + n + 2, 2 * m + n + 2
    cost = np.zeros(size)
    cost[[u, w]] = -np.array(weights) / max(weights)
    kinds = np.zeros(size)
    kinds[ban_x:] = 1
    rules: list[Matrix] = []
    low: list[float] = []
    high: list[float] = []

    def rule(terms: Mapping[int, float], least: float, most: float) -> None:
        row = np.zeros(size)
        for place, factor in terms.items():
            row[place] = factor
        rules.append(row)
        low.append(least)
        high.append(most)

    for payoff, own, other, value, ban in ((ours, x, y, u, ban_x), (theirs.T, y, x, w, ban_y)):
        for place, row in enumerate(payoff):
            regret = {value: 1.0, **{other + i: -float(got) for i, got in enumerate(row)}}
            rule({**regret, ban + place: -1.0}, -np.inf, 0.0)
            rule(regret, 0.0, np.inf)
            rule({own + place: 1.0, ban + place: 1.0}, -np.inf, 1.0)
    rule(dict.fromkeys(range(x, x + m), 1.0), 1.0, 1.0)
    rule(dict.fromkeys(range(y, y + n), 1.0), 1.0, 1.0)
    bounds = optimize.Bounds(
        np.where(np.isin(np.arange(size), (u, w)), -np.inf, 0.0), np.where(np.isin(np.arange(size), (u, w)), np.inf, 1)
    )
    constraints = optimize.LinearConstraint(np.array(rules), low, high)
    solution = optimize.milp(cost, constraints=constraints, integrality=kinds, bounds=bounds)
    assert solution.x is not None, solution.message  # every matrix game has an equilibrium
    return solution.x[ban_x:ban_y] < 0.5, solution.x[ban_y:] < 0.5


def _indifferent(payoff: Matrix, best: _Flags, allowed: _Flags) -> Matrix:
    """A mix of the allowed columns against which the marked rows of `payoff` are best, and get the most."""
    count = payoff.shape[1]
    bounds = [(0.0, 1.0 if may else 0.0) for may in allowed] + [(None, None)]
    regrets = np.hstack([payoff, -np.ones((len(payoff), 1))])  # what a row gets minus the value: 0 or below
    total = np.append(np.ones(count), 0.0)[np.newaxis]
    equal = np.vstack([regrets[best], total])
    solution = _linprog(
        np.append(np.zeros(count), -1.0),
        A_ub=regrets,
        b_ub=np.zeros(len(payoff)),
        A_eq=equal,
        b_eq=np.append(np.zeros(int(best.sum())), 1.0),
        bounds=bounds,
    )
    return _normalised(solution[:count])


def _maximin(payoff: Matrix) -> Matrix:
    """The mix of rows whose worst column is best."""
    m, n = payoff.shape
    solution = _linprog(
        np.append(np.zeros(m), -1.0),
        A_ub=np.hstack([-payoff.T, np.ones((n, 1))]),
        b_ub=np.zeros(n),
        A_eq=np.append(np.ones(m), 0.0)[np.newaxis],
        b_eq=np.ones(1),
        bounds=[(0.0, 1.0)] * m + [(None, None)],
    )
    return _normalised(solution[:m])


def _linprog(cost: Matrix, **problem: Any) -> Matrix:
    solution = _scipy().linprog(cost, method="highs", **problem)
    assert solution.x is not None, solution.message  # these programs have solutions
    return np.asarray(solution.x)


def _normalised(mix: Matrix) -> Matrix:
    kept = np.where(mix > GAIN_TOLERANCE, mix, 0.0)
    return np.asarray(kept / kept.sum())


def _spread(payoff: Matrix) -> float:
    """The distance from the least payoff to the largest; 1 where all are equal."""
    return float(payoff.max() - payoff.min()) or 1.0


def _matrix(values: npt.ArrayLike) -> Matrix:
    matrix = np.asarray(values, dtype=float)
    if matrix.ndim != 2 or not matrix.size or not np.isfinite(matrix).all():
        raise ConfigurationError(f"a matrix must be of finite numbers, (rows, columns), got the shape {matrix.shape}")
    return matrix


def _scipy() -> Any:
    with extra("solve", "solving games needs"):
        from scipy import optimize
    return optimize
