"""Best responses in the discrete game, exact and without going through all suites.

A suite's reward depends on a few counts alone: its valid tests, those that state a wrong value, and their kills. So for
every number of right and of wrong tests the best suite takes those that kill most, and the numbers can be tried out.
Does not need scipy; equilibria are in `solve.py`.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np

from codea1_env.discrete.pool import Pool, Suite
from codea1_env.discrete.scoring import PoolScorer
from codea1_env.errors import ConfigurationError
from codea1_env.rewards.code_a1 import RewardConfig
from codea1_env.rewards.duel import Status
from codea1_env.rewards.terms import adversarial_share, share_valid, weighed

TOLERANCE = 1e-9
"""Rewards closer than this are equal: they are sums of a few fractions."""
_SUM_TOLERANCE = 1e-6


def best_suite(pool: Pool, coder: Sequence[float], config: RewardConfig) -> Suite:
    """A suite of at most K tests with the highest expected R_T against programs drawn with these probabilities.

    Among several of them one with the lowest expected R_C. Raises ConfigurationError for what is no distribution.
    """
    weights = distribution(coder, len(pool.programs), "coder") * np.array(pool.executes)
    weight, size, alpha = float(weights.sum()), config.suite_size, config.alpha
    kills = (weights @ pool.kills).tolist()  # the probability that a test kills a program that executes
    right, wrong = _ranked(pool, kills, config)
    right_kills = [0.0, *itertools.accumulate(kills[place] for place in right)]
    wrong_kills = [0.0, *itertools.accumulate(kills[place] for place in wrong)]
    best, chosen = (0.0, 0.0), (0, 0)
    for wrong_count in range(min(size, len(wrong)) + 1):
        for right_count in range(min(size - wrong_count, len(right)) + 1):
            v, killed = right_count + wrong_count, right_kills[right_count] + wrong_kills[wrong_count]
            # Both shares are expected ones: only a program that executes pays, and is killed.
            validity = weight * share_valid(v, wrong_count, size)
            tester = weighed(alpha, validity, adversarial_share(killed / size, None, v)).total
            coder_reward = weight - killed / v if v else 0.0
            is_tie = abs(tester - best[0]) <= TOLERANCE
            if tester > best[0] + TOLERANCE or (is_tie and coder_reward < best[1] - TOLERANCE):
                best, chosen = (max(tester, best[0]), coder_reward), (right_count, wrong_count)
    return (*right[: chosen[0]], *wrong[: chosen[1]])


def best_programs(pool: Pool, tester: Mapping[Suite, float], config: RewardConfig) -> tuple[int, ...]:
    """The programs with the highest expected R_C against suites drawn with these probabilities, all of them."""
    rewards = coder_rewards(pool, tester, config)
    return tuple(int(place) for place in np.flatnonzero(rewards > rewards.max() - TOLERANCE))


def coder_rewards(pool: Pool, tester: Mapping[Suite, float], config: RewardConfig) -> np.ndarray:
    """The expected R_C of every program, (programs,)."""
    distribution(list(tester.values()), len(tester), "tester")
    scorer = PoolScorer(pool, config)
    pairs = [
        [share * scorer.score(program, suite).coder for suite, share in tester.items()]
        for program in range(len(pool.programs))
    ]
    return np.asarray(np.array(pairs).sum(axis=1))


def distribution(shares: Sequence[float], count: int, whose: str) -> np.ndarray:
    """The probabilities as an array. Raises ConfigurationError for what is none."""
    array = np.asarray(shares, dtype=float)
    fits = array.shape == (count,) and bool(np.isfinite(array).all()) and bool((array >= -TOLERANCE).all())
    if not fits or abs(array.sum() - 1) > _SUM_TOLERANCE:
        raise ConfigurationError(f"the {whose}'s mix must be {count} probabilities that sum to 1, got {shares!r}")
    return np.asarray(array)


def _ranked(pool: Pool, kills: Sequence[float], config: RewardConfig) -> tuple[list[int], list[int]]:
    """One test for every call that may count, those that kill most first: with the right value, with a wrong one.

    Where a call is there with both, the right one: it is paid at least as much.
    """
    right: dict[int, int] = {}
    wrong: dict[int, int] = {}
    for place, (status, call) in enumerate(zip(pool.statuses, pool.calls, strict=True)):
        if status is Status.KEPT:
            right.setdefault(call, place)
        elif status is Status.WRONG_EXPECTED and config.correct_outputs:
            wrong.setdefault(call, place)
    corrected = [place for call, place in wrong.items() if call not in right]
    return sorted(right.values(), key=lambda place: -kills[place]), sorted(corrected, key=lambda place: -kills[place])
