"""The discrete game as game theory has it, for one question: payoffs, exploitability, equilibria.

Two games over the same pool, both general-sum, for R_C and R_T do not add up to a constant:

- **Sequential**, the game that is played: the tester sees the program. Solved by going backwards
  (`sequential_equilibrium`): the tester's best suite against every program, then the coder's best program.
  The concept is subgame-perfect equilibrium; among its best suites the tester takes one that is worst for the coder.
- **Simultaneous** (`simultaneous=True`): the tester does not. `simultaneous_equilibrium` gives a Nash equilibrium of
  the whole game, all suites of at most K tests included: best responses are added to a matrix game until neither side
  gains by any other choice. Of the last matrix game's equilibria it takes one with the largest sum of both rewards.

An equilibrium of a matrix game comes of a mixed-integer program (Sandholm, Gilpin and Conitzer 2005), made exact by
linear programs on the supports that it finds. That takes time exponential in the matrices' size at worst: a few dozen
rows and columns.

Does not promise that an equilibrium is the only one. The simultaneous one needs scipy (extra `solve`); nothing else
does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from codea1_env.discrete.best_responses import best_programs, best_suite, coder_rewards, distribution
from codea1_env.discrete.pool import Pool, Suite
from codea1_env.discrete.scoring import PoolScorer
from codea1_env.errors import ConfigurationError
from codea1_env.extras import extra
from codea1_env.rewards.code_a1 import RewardConfig

Matrix = npt.NDArray[np.float64]
_Flags = npt.NDArray[np.bool_]
GAIN_TOLERANCE = 1e-6
"""Nobody gains more than this in what is called an equilibrium here: the solvers' accuracy."""


@dataclass(frozen=True, slots=True)
class Payoffs:
    """Both rewards of every program against every suite of a list."""

    coder: Matrix
    """R_C, (programs, suites)."""
    tester: Matrix
    """R_T, (programs, suites)."""


@dataclass(frozen=True, slots=True)
class Equilibrium:
    """Nash equilibrium of the simultaneous game."""

    coder: tuple[float, ...]
    """A probability for every program."""
    tester: dict[Suite, float]
    """Probabilities of the suites that are played."""
    coder_reward: float
    """Expected R_C."""
    tester_reward: float
    """Expected R_T."""


@dataclass(frozen=True, slots=True)
class SequentialEquilibrium:
    """Subgame-perfect equilibrium of the game that is played."""

    program: int
    """The coder's pick, the first of equally good ones."""
    replies: tuple[Suite, ...]
    """The tester's suite against every program."""
    coder_rewards: tuple[float, ...]
    """R_C of every program against the reply to it."""
    tester_rewards: tuple[float, ...]
    """R_T of every reply."""


def payoffs(pool: Pool, suites: Sequence[Suite], config: RewardConfig) -> Payoffs:
    """Both payoff matrices over all programs and the suites given."""
    scorer = PoolScorer(pool, config)
    table = [[scorer.score(program, suite) for suite in suites] for program in range(len(pool.programs))]
    coder = np.array([[score.coder for score in row] for row in table]).reshape(len(table), len(suites))
    tester = np.array([[score.tester for score in row] for row in table]).reshape(len(table), len(suites))
    return Payoffs(coder, tester)


def exploitability(
    pool: Pool,
    coder: Sequence[float],
    tester: Mapping[Suite, float] | Sequence[Mapping[Suite, float]],
    config: RewardConfig,
) -> float:
    """What both sides together could still gain by best responses, over all programs and suites; 0 in equilibrium.

    `coder`: a probability for every program. `tester`: probabilities of suites in the simultaneous game; in the
    sequential one such a mix for every program. Raises ConfigurationError for what is no distribution.
    """
    if isinstance(tester, Mapping):
        return _simultaneous_gains(pool, coder, tester, config)
    mix = distribution(coder, len(pool.programs), "coder")
    if len(tester) != len(pool.programs):
        raise ConfigurationError(f"the tester must have {len(pool.programs)} mixes, one per program, got {len(tester)}")
    scorer = PoolScorer(pool, config)
    rewards = np.zeros(len(mix))
    gain = 0.0
    for program, suites in enumerate(tester):
        distribution(list(suites.values()), len(suites), "tester")
        scores = [(share, scorer.score(program, suite)) for suite, share in suites.items()]
        rewards[program] = sum(share * score.coder for share, score in scores)
        best = scorer.score(program, best_suite(pool, _only(pool, program), config)).tester
        gain += mix[program] * (best - sum(share * score.tester for share, score in scores))
    return float(gain + rewards.max() - mix @ rewards)


def sequential_equilibrium(pool: Pool, config: RewardConfig) -> SequentialEquilibrium:
    """The solution of the game that is played, where the tester sees the program."""
    scorer = PoolScorer(pool, config)
    replies = tuple(best_suite(pool, _only(pool, program), config) for program in range(len(pool.programs)))
    scores = [scorer.score(program, suite) for program, suite in enumerate(replies)]
    program = max(range(len(scores)), key=lambda place: scores[place].coder)
    return SequentialEquilibrium(
        program, replies, tuple(score.coder for score in scores), tuple(score.tester for score in scores)
    )


def simultaneous_equilibrium(pool: Pool, config: RewardConfig) -> Equilibrium:
    """A Nash equilibrium of the game in which the tester does not see the program. Needs scipy."""
    suites = {best_suite(pool, [1 / len(pool.programs)] * len(pool.programs), config): None}
    while True:
        matrices = payoffs(pool, tuple(suites), config)
        mixes = nash(matrices.coder, matrices.tester)
        reply = best_suite(pool, list(mixes.rows), config)
        payoff = float(mixes.rows @ payoffs(pool, (reply,), config).tester[:, 0])
        if reply in suites or payoff <= mixes.column_value + GAIN_TOLERANCE:
            played = {suite: float(p) for suite, p in zip(suites, mixes.columns, strict=True) if p > 0}
            return Equilibrium(tuple(map(float, mixes.rows)), played, mixes.row_value, mixes.column_value)
        suites[reply] = None


def _simultaneous_gains(
    pool: Pool, coder: Sequence[float], tester: Mapping[Suite, float], config: RewardConfig
) -> float:
    mix = distribution(coder, len(pool.programs), "coder")
    rewards = coder_rewards(pool, tester, config)
    shares = np.array(list(tester.values()))
    earned = mix @ payoffs(pool, tuple(tester), config).tester @ shares
    best = mix @ payoffs(pool, (best_suite(pool, coder, config),), config).tester[:, 0]
    return float(rewards[best_programs(pool, tester, config)[0]] - mix @ rewards + best - earned)


def _only(pool: Pool, program: int) -> list[float]:
    return [float(place == program) for place in range(len(pool.programs))]


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
    solution = _scipy().linprog(
        np.append(np.zeros(count), -1.0),
        A_ub=regrets,
        b_ub=np.zeros(len(payoff)),
        A_eq=equal,
        b_eq=np.append(np.zeros(int(best.sum())), 1.0),
        bounds=bounds,
        method="highs",
    )
    assert solution.x is not None, solution.message  # these programs have solutions
    mix = np.asarray(solution.x[:count])
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
