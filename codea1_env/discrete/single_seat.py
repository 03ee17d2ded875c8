"""One seat of the discrete game as a Gymnasium environment, the other held by a fixed policy.

`codea1_env/DiscreteCoder-v0`: pick a program; the opponent picks the whole suite; an episode is one step.
`codea1_env/DiscreteTester-v0`: the opponent has picked a program; an episode is K steps, a test each.

Spaces, masks and rewards are those of `environment.py`; `action_masks()` is what sb3-contrib's MaskablePPO asks for.
Does not train the opponent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import gymnasium
import numpy as np
import numpy.typing as npt

from codea1_env.checks import require
from codea1_env.discrete.environment import DEFAULT_REWARDS
from codea1_env.discrete.episode import RENDER_MODES, DiscreteEpisode, Masks
from codea1_env.discrete.policies import Policy, uniform
from codea1_env.discrete.pool import Pool
from codea1_env.envs.arguments import own_constructor
from codea1_env.envs.episode import CODER, TESTER
from codea1_env.envs.faces import Rendered
from codea1_env.rewards.code_a1 import RewardConfig


class _PoolSeat(Rendered, gymnasium.Env[Any, Any]):
    """What the two views share."""

    metadata: dict[str, Any] = {"render_modes": list(RENDER_MODES), "render_fps": 1}  # noqa: RUF012  # as Gymnasium declares it
    seat: ClassVar[str]
    """The agent whose actions are given and whose rewards are returned."""

    def __init__(
        self,
        pools: Sequence[Pool] | None = None,
        *,
        opponent: Policy = uniform,
        rewards: RewardConfig = DEFAULT_REWARDS,
        simultaneous: bool = False,
        masks: Masks = "infos",
        render_mode: str | None = None,
    ) -> None:
        """`opponent`: the policy of the other seat. The rest: see `codea1_env.discrete.environment`."""
        self._played = self._episode = DiscreteEpisode(pools, rewards, simultaneous, masks, render_mode)
        require(callable(opponent), "opponent", "be a policy (codea1_env.discrete.uniform)", opponent)
        self._opponent = opponent
        self.observation_space = self._episode.observation_space()
        self.action_space = self._episode.action_space()
        self.render_mode = render_mode

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode. Option: `problem_id`."""
        super().reset(seed=seed)
        self._episode.begin(self.np_random, options)
        self._answer()
        self._show()
        return self._episode.observation(self.seat), self._episode.info(self.seat)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """The pick of this seat. Raises ConfigurationError for what is no action."""
        self._episode.move(action)
        self._answer()
        self._show()
        over = self._episode.turn is None
        reward = self._episode.reward(self.seat)
        return self._episode.observation(self.seat), reward, over, False, self._episode.info(self.seat)

    def action_masks(self) -> npt.NDArray[np.bool_]:
        """The mask of the observation last given, as booleans. A new array, (actions,)."""
        return self._episode.mask(self.seat).astype(bool)

    def _answer(self) -> None:
        """The opponent's picks where it is its turn."""
        if self._episode.turn not in (None, self.seat):
            self._episode.move_by(self._opponent, self.np_random)


@own_constructor
class DiscreteCoderEnv(_PoolSeat):
    """`codea1_env/DiscreteCoder-v0`. The opponent is a tester, by default one that picks at random."""

    seat = CODER


@own_constructor
class DiscreteTesterEnv(_PoolSeat):
    """`codea1_env/DiscreteTester-v0`. The opponent is a coder, by default one that picks at random."""

    seat = TESTER
