"""The two interfaces of PettingZoo over one episode: in turns (AEC), and with all agents stepping together (parallel).

A game brings its episode and its constructor; everything that PettingZoo asks of an environment is here, once for all
games. Does not know what an action, an observation or a reward is.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ParamSpec, Protocol

import gymnasium
import numpy as np
from gymnasium.utils import seeding
from pettingzoo import AECEnv, ParallelEnv
from pettingzoo.utils.wrappers import OrderEnforcingWrapper

from codea1_env.envs.rendering import Picture
from codea1_env.errors import ConfigurationError

Given = ParamSpec("Given")
Infos = dict[str, dict[str, Any]]
Begun = tuple[dict[str, Any], Infos]
"""Observations and infos, by agent."""
Stepped = tuple[dict[str, Any], dict[str, float], dict[str, bool], dict[str, bool], Infos]
"""Observations, rewards, terminations, truncations and infos, by agent."""


class PlayedEpisode(Protocol):
    """What a game must offer to its interfaces. All agents have the same spaces."""

    agents: tuple[str, ...]

    @property
    def turn(self) -> str | None:
        """The first agent whose action is awaited; None if the episode is over."""

    @property
    def due(self) -> tuple[str, ...]:
        """All agents whose actions are awaited: where they step together, they act at once."""

    def begin(
        self, generator: np.random.Generator, options: Mapping[str, Any] | None, *, is_seeded: bool = False
    ) -> None: ...
    @property
    def move(self) -> Callable[..., None]:
        """Takes the actions of one or more agents, the first of `due`."""

    def reward(self, agent: str) -> float: ...
    def observation(self, agent: str) -> Any: ...
    def info(self, agent: str) -> dict[str, Any]: ...
    def state(self) -> Any: ...
    def observation_space(self) -> Any: ...
    def action_space(self) -> Any: ...
    def state_space(self) -> Any: ...
    def render(self) -> str | Picture | None: ...
    def close(self) -> None: ...


class Rendered:
    """An episode that can be looked at and closed."""

    _played: PlayedEpisode
    render_mode: str | None

    def render(self) -> str | Picture | None:
        """The episode so far in the form of `render_mode`; "human" prints it and returns None."""
        return self._played.render()

    def close(self) -> None:
        """Release what the environment made. May be called again."""
        self._played.close()

    def _show(self) -> None:
        if self.render_mode == "human":
            self.render()


class Face(Rendered):
    """What both interfaces share: spaces, seeding, state."""

    def _open(self, episode: PlayedEpisode, render_mode: str | None) -> None:
        """To be called once, by the constructor of the game."""
        self._played = episode
        self._generator: np.random.Generator | None = None
        self._observation_spaces = {agent: episode.observation_space() for agent in episode.agents}
        self._action_spaces = {agent: episode.action_space() for agent in episode.agents}
        self.state_space = episode.state_space()
        self.render_mode = render_mode
        self.possible_agents = list(episode.agents)
        self.agents: list[str] = []

    def observation_space(self, agent: str) -> Any:
        """The agent's observation space, the same object at every call."""
        return self._observation_spaces[agent]

    def action_space(self, agent: str) -> Any:
        """The agent's action space, the same object at every call."""
        return self._action_spaces[agent]

    def state(self) -> Any:
        """Everything about the episode, for critics that see all agents: new data in `state_space`."""
        return self._played.state()

    def _begin(self, seed: int | None, options: dict[str, Any] | None) -> None:
        if seed is not None or self._generator is None:
            self._generator, _ = seeding.np_random(seed)
        self._played.begin(self._generator, options, is_seeded=seed is not None)
        self.agents = list(self.possible_agents)
        self._show()

    def _infos(self) -> dict[str, dict[str, Any]]:
        return {agent: self._played.info(agent) for agent in self.possible_agents}

    def _rewards(self) -> dict[str, float]:
        return {agent: self._played.reward(agent) for agent in self.possible_agents}


class InTurns(Face, AECEnv):  # type: ignore[misc]  # PettingZoo ships no types
    """The game in turns (PettingZoo's AEC interface), without wrappers."""

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Begin an episode. The module of the game documents its options."""
        self._begin(seed, options)
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos = self._infos()
        self.agent_selection = self.agents[0]
        # PettingZoo's own record of whose turn it was before the dead were removed, stale after an episode cut short.
        self._skip_agent_selection = None

    def observe(self, agent: str) -> Any:
        """A new observation in the agent's space."""
        return self._played.observation(agent)

    def step(self, action: Any) -> None:
        """Take the selected agent's action, which is None once it is terminated. Raises SandboxError if infrastructure
        fails."""
        if not self.agents:
            raise gymnasium.error.ResetNeeded("an episode must be running, got a step outside of one; call reset()")
        agent = self.agent_selection
        if self.terminations[agent]:
            self._was_dead_step(action)
            return
        self._played.move(action)
        turn = self._played.turn
        self.agent_selection = agent if turn is None else turn
        self.terminations = dict.fromkeys(self.agents, turn is None)
        self._cumulative_rewards[agent] = 0.0
        self.rewards = self._rewards()
        self.infos = self._infos()
        self._accumulate_rewards()
        self._deads_step_first()
        self._show()


class Together(Face, ParallelEnv):  # type: ignore[misc]  # PettingZoo ships no types
    """The game in steps of all agents; the action of one whose turn it is not is ignored and may be absent."""

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> Begun:
        """Begin an episode and return observations and infos by agent. The module of the game documents its options."""
        self._begin(seed, options)
        return self._observations(), self._infos()

    def step(self, actions: dict[str, Any]) -> Stepped:
        """Take the agents' actions and return observations, rewards, terminations, truncations and infos by agent.

        Raises SandboxError if infrastructure fails, and ConfigurationError if the action that is due is missing.
        """
        move_from(self._played, actions)
        over = self._played.turn is None
        if over:
            self.agents = []
        self._show()
        return (
            self._observations(),
            self._rewards(),
            dict.fromkeys(self.possible_agents, over),
            dict.fromkeys(self.possible_agents, False),
            self._infos(),
        )

    def _observations(self) -> dict[str, Any]:
        return {agent: self._played.observation(agent) for agent in self.possible_agents}


def in_order(raw: Callable[Given, InTurns]) -> Callable[Given, OrderEnforcingWrapper]:
    """The function `env` of a game: `raw` with PettingZoo's check that calls come in the right order, and with the same
    arguments."""

    @functools.wraps(raw, updated=())
    def env(*arguments: Given.args, **named: Given.kwargs) -> OrderEnforcingWrapper:
        return OrderEnforcingWrapper(raw(*arguments, **named))

    env.__name__ = env.__qualname__ = "env"
    env.__doc__ = (
        "`raw_env` with PettingZoo's check that calls come in the right order. Arguments: `help(raw_env.__init__)`."
    )
    return env


def move_from(episode: PlayedEpisode, actions: object) -> tuple[str, ...]:
    """Make the moves that are due from a dictionary of actions, and return whose moves they were. Raises
    ConfigurationError."""
    due = episode.due
    episode.move(*due_actions(due, actions, episode.agents))
    return due


def due_actions(due: Sequence[str], actions: object, agents: Sequence[str]) -> list[Any]:
    """The actions of the agents that are due. Raises ConfigurationError where one is missing, and for a name that no
    agent has. `agents`: the names of all."""
    if not due:
        raise gymnasium.error.ResetNeeded("an episode must be running, got a step outside of one; call reset()")
    if not isinstance(actions, Mapping) or not set(due) <= actions.keys():
        got = sorted(map(str, actions)) if isinstance(actions, Mapping) else type(actions).__name__
        raise ConfigurationError(f"actions must hold the action of {' and '.join(due)} now, got {got}")
    if unknown := sorted(map(str, actions.keys() - set(agents))):
        raise ConfigurationError(f"actions must be of {', '.join(agents)}, got one of {', '.join(unknown)}")
    return [actions[agent] for agent in due]
