"""The discrete game as PettingZoo plays it: `parallel_env` (both agents step together), `raw_env` and `env` (in turns).

An episode is one question: `coder_0` picks a program, then `tester_0` picks K tests, one a step
(`RewardConfig.suite_size`); both are rewarded at its end. Both agents have the same `Discrete` actions and the same
array observations, whatever the question: pools are padded. `episode.py` says what an action means.

An observation is float32 in [0, 1]: which question (one-hot), which program (one-hot), which tests have been picked,
whether it is the tester's turn, the share of its picks made, and whether it is the observer's turn. Masks are in
`infos[agent]["action_mask"]`; with `masks="observations"` observations are PettingZoo's dictionaries of `observation`
and `action_mask`.

Does not run anything: what is not in the pools cannot be played. There is no Mistake Book: no reward depends on earlier
episodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.utils import seeding
from pettingzoo import AECEnv, ParallelEnv
from pettingzoo.utils.wrappers import OrderEnforcingWrapper

from codea1_env.discrete.episode import AGENTS, RENDER_MODES, DiscreteEpisode, Masks
from codea1_env.discrete.pool import Pool
from codea1_env.envs.arguments import own_constructor
from codea1_env.envs.episode import CODER
from codea1_env.rewards.code_a1 import RewardConfig

DEFAULT_REWARDS = RewardConfig()
_METADATA = {"name": "codea1_discrete_v0", "render_modes": list(RENDER_MODES), "render_fps": 1}


class _Face:
    """What the two faces share: construction, spaces, seeding, rendering, closing."""

    def __init__(
        self,
        pools: Sequence[Pool] | None = None,
        *,
        rewards: RewardConfig = DEFAULT_REWARDS,
        simultaneous: bool = False,
        masks: Masks = "infos",
        render_mode: str | None = None,
    ) -> None:
        """Raises ConfigurationError for an argument outside its range.

        pools: the questions; None: the bundled pools.
        rewards: the reward's parameters, as `scoring.PoolScorer` takes them.
        simultaneous: the tester does not see the program: the matrix game that `solve.nash` is about.
        masks: where action masks go, "infos" or "observations".
        render_mode: None, "human" (prints at every reset and step) or "ansi" (text).
        """
        self._episode = DiscreteEpisode(pools, rewards, simultaneous, masks, render_mode)
        self._generator: np.random.Generator | None = None
        self._observation_spaces = {agent: self._episode.observation_space() for agent in AGENTS}
        self._action_spaces = {agent: self._episode.action_space() for agent in AGENTS}
        self.state_space = self._episode.state_space()
        self.render_mode = render_mode
        self.possible_agents = list(AGENTS)
        self.agents: list[str] = []

    def observation_space(self, agent: str) -> spaces.Box | spaces.Dict:
        """The agent's observation space, the same object at every call."""
        return self._observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Discrete:
        """The agent's action space, the same object at every call."""
        return self._action_spaces[agent]

    def state(self) -> Any:
        """The whole of the episode, for critics that see everything: a new array in `state_space`."""
        return self._episode.state()

    def render(self) -> str | None:
        """The episode so far: text for "ansi"; "human" prints it and gives None."""
        return self._episode.render()

    def close(self) -> None:
        """Nothing to release."""

    def _begin(self, seed: int | None, options: dict[str, Any] | None) -> None:
        if seed is not None or self._generator is None:
            self._generator, _ = seeding.np_random(seed)
        self._episode.begin(self._generator, options)
        self.agents = list(AGENTS)
        self._show()

    def _show(self) -> None:
        if self.render_mode == "human":
            self.render()

    def _infos(self) -> dict[str, dict[str, Any]]:
        return {agent: self._episode.info(agent) for agent in AGENTS}


@own_constructor
class raw_env(_Face, AECEnv):  # type: ignore[misc]  # PettingZoo ships no types
    """The game in turns (PettingZoo's AEC interface), without wrappers. Arguments: `help(raw_env.__init__)`."""

    # The tester has K turns in a row: PettingZoo's aec_to_parallel must not pair them with turns of the coder.
    metadata: ClassVar[dict[str, Any]] = {**_METADATA, "is_parallelizable": False}

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Begin an episode. Option: `problem_id`."""
        self._begin(seed, options)
        self.rewards = dict.fromkeys(AGENTS, 0.0)
        self._cumulative_rewards = dict.fromkeys(AGENTS, 0.0)
        self.terminations = dict.fromkeys(AGENTS, False)
        self.truncations = dict.fromkeys(AGENTS, False)
        self.infos = self._infos()
        self.agent_selection = CODER
        # PettingZoo's own record of whose turn it was before the dead were removed, stale after an episode cut short.
        self._skip_agent_selection = None

    def observe(self, agent: str) -> Any:
        """A new observation in the agent's space."""
        return self._episode.observation(agent)

    def step(self, action: Any) -> None:
        """The selected agent's pick; None once it is terminated."""
        if not self.agents:
            raise gymnasium.error.ResetNeeded("an episode must be running, got a step outside of one; call reset()")
        agent = self.agent_selection
        if self.terminations[agent]:
            self._was_dead_step(action)
            return
        self._episode.move(action)
        turn = self._episode.turn
        self.agent_selection = agent if turn is None else turn
        self.terminations = dict.fromkeys(AGENTS, turn is None)
        self._cumulative_rewards[agent] = 0.0
        self.rewards = {name: self._episode.reward(name) for name in AGENTS}
        self.infos = self._infos()
        self._accumulate_rewards()
        self._deads_step_first()
        self._show()


@own_constructor
class parallel_env(_Face, ParallelEnv):  # type: ignore[misc]  # PettingZoo ships no types
    """The game in 1 + K steps of both agents: the first uses the coder's action, the others the tester's.

    Both agents live to the end; the action of the one whose turn it is not is ignored and may be absent.
    Arguments: `help(parallel_env.__init__)`.
    """

    metadata: ClassVar[dict[str, Any]] = {**_METADATA, "is_parallelizable": True}

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
        """Begin an episode; observations and infos by agent. Option: `problem_id`."""
        self._begin(seed, options)
        return self._observations(), self._infos()

    def step(
        self, actions: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]]:
        """Observations, rewards, terminations, truncations and infos by agent.

        Raises ConfigurationError where the action that is due is missing or is none.
        """
        self._episode.move_from(actions)
        over = self._episode.turn is None
        if over:
            self.agents = []
        self._show()
        rewards = {agent: self._episode.reward(agent) for agent in AGENTS}
        return (
            self._observations(),
            rewards,
            dict.fromkeys(AGENTS, over),
            dict.fromkeys(AGENTS, False),
            self._infos(),
        )

    def _observations(self) -> dict[str, Any]:
        return {agent: self._episode.observation(agent) for agent in AGENTS}


def env(
    pools: Sequence[Pool] | None = None,
    *,
    rewards: RewardConfig = DEFAULT_REWARDS,
    simultaneous: bool = False,
    masks: Masks = "infos",
    render_mode: str | None = None,
) -> OrderEnforcingWrapper:
    """`raw_env` with PettingZoo's check that calls come in the right order. Arguments: `help(raw_env.__init__)`."""
    return OrderEnforcingWrapper(
        raw_env(pools, rewards=rewards, simultaneous=simultaneous, masks=masks, render_mode=render_mode)
    )
