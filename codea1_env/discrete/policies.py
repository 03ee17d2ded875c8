"""Fixed players of the discrete game: functions from what stands on the table to the picks of a whole turn.

Does not learn. Write your own as a function of the same two arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from codea1_env.discrete.best_responses import best_suite
from codea1_env.discrete.pool import Pool
from codea1_env.envs.episode import CODER
from codea1_env.rewards.code_a1 import RewardConfig


@dataclass(frozen=True, slots=True)
class Situation:
    """All that a policy may look at when it is its turn; a fair one looks at what its seat observes."""

    pool: Pool
    config: RewardConfig
    seat: str
    """Whose turn it is: `coder_0` or `tester_0`."""
    program: int | None
    """The coder's pick. None where it has not picked, has picked nothing, or is not seen by who is asked."""


Policy = Callable[[Situation, np.random.Generator], Sequence[int]]
"""The coder's one program, or the tester's tests, at most K; the rest is nothing. Equal generators, equal picks."""


def uniform(situation: Situation, generator: np.random.Generator) -> Sequence[int]:
    """Any program; any K different tests."""
    pool = situation.pool
    if situation.seat == CODER:
        return (int(generator.integers(len(pool.programs))),)
    picks: list[int] = generator.permutation(len(pool.tests))[: situation.config.suite_size].tolist()
    return picks


def attacking(situation: Situation, generator: np.random.Generator) -> Sequence[int]:
    """A tester's best response to the program: it knows the pool. A coder's part it plays as `uniform`.

    Where it sees no program it takes all of them for equally likely.
    """
    if situation.seat == CODER:
        return uniform(situation, generator)
    places = range(len(situation.pool.programs))
    if situation.program is None:
        mix = [1 / len(places)] * len(places)
    else:
        mix = [float(place == situation.program) for place in places]
    return best_suite(situation.pool, mix, situation.config)
