"""The discrete game for RLlib: a `MultiAgentEnv` in which only the seat whose turn it is sees and acts.

    PPOConfig().environment(DiscreteMultiAgentEnv, env_config={"pools": discrete.bundled_pools()[:8]})

`env_config` holds the arguments of `codea1_env.discrete.parallel_env`. Observations are dictionaries of `observations`
and `action_mask`, as RLlib's own `ActionMaskingTorchRLModule` reads them; with `"masks": "infos"`, arrays. An episode
is 1 + K steps: `coder_0` picks a program, `tester_0` K tests one after the other; with the last one both see the end
and are paid, the coder for what it picked at the beginning.

Not for the text game: RLlib's networks read arrays. Does not choose policies: map the seats to modules yourself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces

from codea1_env.discrete.environment import DEFAULT_REWARDS
from codea1_env.discrete.episode import RENDER_MODES, DiscreteEpisode
from codea1_env.envs.episode import AGENTS
from codea1_env.envs.faces import Begun, Stepped, move_from
from codea1_env.envs.rendering import Picture
from codea1_env.errors import ConfigurationError
from codea1_env.extras import extra

with extra("rllib", "the adapter for RLlib needs"):
    from ray.rllib.env.multi_agent_env import MultiAgentEnv

_OPTIONS = ("pools", "rewards", "simultaneous", "masks", "render_mode")


class DiscreteMultiAgentEnv(MultiAgentEnv):  # type: ignore[misc]  # Ray's types are not followed
    """The discrete game as RLlib plays it. The module's docstring says what is in `env_config`."""

    # Of its own: RLlib's vectors write into it.
    metadata: ClassVar[dict[str, Any]] = {"render_modes": list(RENDER_MODES), "render_fps": 1}

    def __init__(self, config: Mapping[str, Any] | None = None) -> None:
        """Raises ConfigurationError for an option that is none of the discrete game's, or outside its range."""
        if config is not None and not isinstance(config, Mapping):
            raise ConfigurationError(f"env_config must be a dictionary of options, got {type(config).__name__}")
        options = dict(config or {})
        unknown = sorted(map(str, options.keys() - set(_OPTIONS)))
        if unknown:
            raise ConfigurationError(
                f"env_config must hold options of the discrete game, {', '.join(_OPTIONS)}, got {', '.join(unknown)}; "
                f"RLlib needs arrays; docs/your-algorithm.md shows the text game"
            )
        self._masks = options.get("masks", "observations")
        self._episode = DiscreteEpisode(
            options.get("pools"),
            options.get("rewards", DEFAULT_REWARDS),
            options.get("simultaneous", False),
            self._masks,
            options.get("render_mode"),
        )
        self.render_mode = options.get("render_mode")
        self.possible_agents = list(AGENTS)
        self.agents = list(AGENTS)
        self.observation_spaces = {agent: self._space() for agent in AGENTS}
        self.action_spaces = {agent: self._episode.action_space() for agent in AGENTS}
        super().__init__()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Begun:
        """Begin an episode; observation and info of the coder. Option: `problem_id`."""
        super().reset(seed=seed, options=options)
        self._episode.begin(self.np_random, options)
        return self._observations(), self._infos()

    def step(self, action_dict: Mapping[str, Any]) -> Stepped:
        """The pick of the seat whose turn it is; observations and infos of the next one, at the end of both.

        Raises ConfigurationError where that pick is missing or is none.
        """
        moved = move_from(self._episode, action_dict)
        over = self._episode.turn is None
        paid = AGENTS if over else moved
        return (
            self._observations(),
            {agent: self._episode.reward(agent) for agent in paid},
            {"__all__": over},
            {"__all__": False},
            self._infos(),
        )

    def render(self) -> str | Picture | None:
        """The episode so far: text for "ansi"; "human" prints it and gives None."""
        return self._episode.render()

    def _ready(self) -> tuple[str, ...]:
        """Who sees something now."""
        return AGENTS if self._episode.turn is None else (self._episode.turn,)

    def _observations(self) -> dict[str, Any]:
        return {agent: self._observation(agent) for agent in self._ready()}

    def _infos(self) -> dict[str, dict[str, Any]]:
        return {agent: self._episode.info(agent) for agent in self._ready()}

    def _observation(self, agent: str) -> Any:
        seen = self._episode.observation(agent)
        if self._masks == "infos":
            return seen
        return {"observations": seen["observation"], "action_mask": seen["action_mask"].astype(np.float32)}

    def _space(self) -> spaces.Space[Any]:
        seen = self._episode.observation_space()
        if not isinstance(seen, spaces.Dict):
            return seen
        mask = spaces.Box(0.0, 1.0, (self._episode.actions,), np.float32)
        return spaces.Dict({"observations": seen["observation"], "action_mask": mask})
