"""Ratings of coders and testers from the games that they played: Bradley-Terry by maximum likelihood, with intervals.

A coder of strength c beats a tester of strength t with probability 1 / (1 + exp(t - c)); a draw counts half for each.
In the table, strengths are points: 1500 + 400 log10(e) x strength, so that 400 points are odds of ten to one.

Fitted all at once, so that the order of games does not matter (as it does in Elo, Glicko and their like). Everyone also
has one draw with a virtual opponent of strength 0: without it, who wins every game would be infinitely strong. It pulls
all ratings a little towards 1500, less the more games there are.

An interval is the wider of two. Drawing the questions anew sees how they differ; the curvature of the likelihood knows
that few games, or games that all ended alike, say little. Fewer than FEWEST games have no interval.

Does not promise that strength is one number: of who beats whom and why, the table of pairs says more.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from codea1_env.errors import ConfigurationError
from codea1_env.evaluation.metrics import Floats

BASE = 1500.0
POINTS = 400 / np.log(10)
"""Points of one unit of strength."""
_NORMAL, _LEVEL = 1.96, 1e6
FEWEST = 6
"""Games with a result from which there is an interval: six that end alike are what a coin does less than once in 20."""
_STEPS, _RESAMPLINGS = 200, 1000


@dataclass(frozen=True, slots=True)
class Rating:
    """In points, to one decimal."""

    points: float
    low: float | None
    """The ends of the 95 % interval; None for fewer than two questions or FEWEST games."""
    high: float | None


def strengths(won: Floats, lost: Floats) -> Floats:
    """Of coders, then testers: (..., C + T), for games that the coders won and lost: (..., C, T), draws half and half.

    The maximum of a strictly concave function, by Newton's method.
    """
    coders, testers = won.shape[-2:]
    games = won + lost
    x = np.zeros((*won.shape[:-2], coders + testers))
    for _ in range(_STEPS):
        difference = x[..., :coders, None] - x[..., None, coders:]
        likely = _logistic(difference)  # (..., coders, testers)
        surplus = won - games * likely
        virtual = _logistic(x)
        slope = np.concatenate([surplus.sum(-1), -surplus.sum(-2)], axis=-1) + 0.5 - virtual
        step = np.linalg.solve(_curve(games, x), slope[..., None])[..., 0]
        longest = np.abs(step).max(axis=-1, keepdims=True)
        x += step / np.maximum(longest, 1.0)  # far from the maximum, a full step would overshoot
        if longest.max() < 1e-10:
            break
    return x


def rate(won: Floats, lost: Floats, *, seed: int = 0) -> list[Rating]:
    """Of coders, then testers. `won`, `lost`: by the coders, for each question: (questions, C, T), draws half and half.

    Intervals say how much the choice of questions and the number of games matter, and nothing of other samples of the
    same players.
    """
    if won.shape != lost.shape or won.ndim != 3 or 0 in won.shape:
        raise ConfigurationError(f"won and lost must be (questions, C, T) alike, got {won.shape} and {lost.shape}")
    questions = len(won)
    middle = strengths(won.sum(0), lost.sum(0))
    games = (won + lost).sum(0)  # (C, T)
    played = np.concatenate([games.sum(1), games.sum(0)])
    low = high = np.full(len(middle), np.nan)
    if questions > 1:
        drawn = np.random.default_rng(seed).multinomial(questions, np.full(questions, 1 / questions), size=_RESAMPLINGS)
        both = [np.tensordot(drawn, each, axes=1) for each in (won, lost)]  # (_RESAMPLINGS, C, T)
        ends = np.percentile(strengths(both[0], both[1]), (2.5, 97.5), axis=0)
        # The level of all ratings is a convention: games say nothing of it, so it is held fast.
        margin = _NORMAL * np.sqrt(np.diag(np.linalg.inv(_curve(games, middle) + _LEVEL)))
        low, high = np.minimum(ends[0], middle - margin), np.maximum(ends[1], middle + margin)
    points = (BASE + POINTS * np.array([middle, low, high])).round(1)  # (3, C + T)
    has_ends = (played >= FEWEST) & ~np.isnan(low)
    rows = zip(*points.tolist(), has_ends, strict=True)
    return [Rating(*row) if has else Rating(row[0], None, None) for *row, has in rows]


def _curve(games: Floats, x: Floats) -> Floats:
    """Minus the second derivatives of the log-likelihood at strengths x: (..., C + T, C + T). `games`: (..., C, T)."""
    coders = games.shape[-2]
    likely = _logistic(x[..., :coders, None] - x[..., None, coders:])  # (..., C, T)
    weight, virtual = games * likely * (1 - likely), _logistic(x)
    curve = np.zeros((*x.shape, x.shape[-1]))
    curve[..., :coders, coders:] = -weight
    curve[..., coders:, :coders] = -np.swapaxes(weight, -1, -2)
    places = np.arange(x.shape[-1])
    curve[..., places, places] = np.concatenate([weight.sum(-1), weight.sum(-2)], axis=-1) + virtual * (1 - virtual)
    return curve


def _logistic(x: Floats) -> Floats:
    return 0.5 * (1 + np.tanh(0.5 * x))  # exp(-x) would overflow
