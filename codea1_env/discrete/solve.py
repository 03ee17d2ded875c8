"""The discrete game as game theory has it, for one question: payoffs, exploitability, equilibria.

Two games over the same pool, both general-sum, for R_C and R_T do not add up to a constant:

- **Sequential**, the game that is played: the tester sees the program. Solved by going backwards
  (`sequential_equilibrium`): the tester's best suite against every program, then the coder's best program.
  The concept is subgame-perfect equilibrium; among its best suites the tester takes one that is worst for the coder.
- **Simultaneous** (`simultaneous=True`): the tester does not. `simultaneous_equilibrium` gives a Nash equilibrium of
  the whole game, all suites of at most K tests included: best responses are added to a matrix game until neither side
  gains by any other choice. Of the last matrix game's equilibria it takes one with the largest sum of both rewards.

`zero_sum` of `matrix_games.py` fits the *kill game* of one program against one test, whose matrix is `-pool.kills` to
the coder. Not -R_C: an empty suite pays the coder 0, so that game has one dull solution.

Does not promise that an equilibrium is the only one. What ends in `_equilibrium`, the sequential one excepted, needs
scipy (extra `solve`); nothing else does.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from codea1_env.discrete.best_responses import best_programs, best_suite, coder_rewards, distribution
from codea1_env.discrete.matrix_games import GAIN_TOLERANCE, Matrix, nash
from codea1_env.discrete.pool import Pool, Suite
from codea1_env.discrete.scoring import PoolScorer
from codea1_env.errors import ConfigurationError
from codea1_env.rewards.code_a1 import RewardConfig

_MOST_SUITES = 100_000


@dataclass(frozen=True, slots=True)
class Payoffs:
    """Both rewards of every program against every suite of a list."""

    coder: Matrix
    """R_C, (programs, suites)."""
    tester: Matrix
    """R_T, (programs, suites)."""
    suites: tuple[Suite, ...]


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


def all_suites(pool: Pool, size: int) -> tuple[Suite, ...]:
    """Every set of exactly `size` of the pool's tests. Raises ConfigurationError where there are more than 100,000."""
    count = math.comb(len(pool.tests), size)
    if count > _MOST_SUITES:
        raise ConfigurationError(
            f"there must be at most {_MOST_SUITES} suites to list, got {count}; take a smaller size or pool.select()"
        )
    return tuple(itertools.combinations(range(len(pool.tests)), size))


def payoffs(pool: Pool, suites: Sequence[Suite], config: RewardConfig) -> Payoffs:
    """Both payoff matrices over all programs and the suites given."""
    scorer = PoolScorer(pool, config)
    table = [[scorer.score(program, suite) for suite in suites] for program in range(len(pool.programs))]
    coder = np.array([[score.coder for score in row] for row in table]).reshape(len(table), len(suites))
    tester = np.array([[score.tester for score in row] for row in table]).reshape(len(table), len(suites))
    return Payoffs(coder, tester, tuple(suites))


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
