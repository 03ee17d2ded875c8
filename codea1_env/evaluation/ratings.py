"""Ratings of coders and testers from the games that they played: Bradley-Terry by maximum likelihood, with intervals.

A coder of strength c beats a tester of strength t with probability 1 / (1 + exp(t - c)); a draw counts half for each.
In the table, strengths are points: 1500 + 400 log10(e) x strength, so that 400 points are odds of ten to one.

Fitted all at once, so that the order of games does not matter (as it does in Elo, Glicko and their like). Everyone also
has one draw with a virtual opponent of strength 0: without it, who wins every game would be infinitely strong. It pulls
all ratings a little towards 1500, less the more games there are.

Does not promise that strength is one number: of who beats whom and why, the table of pairs says more.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from codea1_env.errors import ConfigurationError

Floats = NDArray[np.float64]

BASE = 1500.0
POINTS = 400 / np.log(10)
"""Points of one unit of strength."""
_STEPS = 200


@dataclass(frozen=True, slots=True)
class Rating:
    """In points, to one decimal."""

    points: float
    low: float | None
    """The interval's ends, from the 2.5th to the 97.5th percentile; None for fewer than two questions."""
    high: float | None


@dataclass(frozen=True, slots=True)
class Ratings:
    """In the order of the axes."""

    coders: tuple[Rating, ...]
    testers: tuple[Rating, ...]


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
        weight = games * likely * (1 - likely)
        curve = np.zeros((*x.shape, coders + testers))
        curve[..., :coders, coders:] = -weight
        curve[..., coders:, :coders] = -np.swapaxes(weight, -1, -2)
        places = np.arange(coders + testers)
        curve[..., places, places] = np.concatenate([weight.sum(-1), weight.sum(-2)], axis=-1) + virtual * (1 - virtual)
        step = np.linalg.solve(curve, slope[..., None])[..., 0]
        longest = np.abs(step).max(axis=-1, keepdims=True)
        x += step / np.maximum(longest, 1.0)  # far from the maximum, a full step would overshoot
        if longest.max() < 1e-10:
            break
    return x


def rate(won: Floats, lost: Floats, *, seed: int = 0, resamplings: int = 1000) -> Ratings:
    """`won`, `lost`: by the coders, for each question: (questions, C, T), draws half and half.

    Intervals come from drawing questions anew with replacement: they say how much the choice of questions matters, and
    nothing of other samples of the same players.
    """
    if won.shape != lost.shape or won.ndim != 3 or 0 in won.shape:
        raise ConfigurationError(f"won and lost must be (questions, C, T) alike, got {won.shape} and {lost.shape}")
    questions, coders, _ = won.shape
    middle = _points(strengths(won.sum(0), lost.sum(0)))
    low: list[float | None] = [None] * len(middle)
    high = low
    if questions > 1 and resamplings > 0:
        drawn = np.random.default_rng(seed).multinomial(questions, np.full(questions, 1 / questions), size=resamplings)
        both = [np.tensordot(drawn, each, axes=1) for each in (won, lost)]  # (resamplings, C, T)
        ends = np.percentile(strengths(both[0], both[1]), (2.5, 97.5), axis=0)
        low, high = [*_points(ends[0])], [*_points(ends[1])]
    ratings = tuple(Rating(*each) for each in zip(middle, low, high, strict=True))
    return Ratings(ratings[:coders], ratings[coders:])


def _points(strength: Floats) -> list[float]:
    return [round(float(BASE + POINTS * each), 1) for each in strength]


def _logistic(x: Floats) -> Floats:
    return 0.5 * (1 + np.tanh(0.5 * x))  # exp(-x) would overflow
