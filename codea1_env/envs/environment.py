"""The game as PettingZoo plays it: `parallel_env` (both agents step together), `raw_env` and `env` (in turns, AEC).

One episode is one question. `coder_0` answers it with a program; `tester_0` reads question and program and answers with
a suite of asserts; then both are rewarded (`codea1_env/rewards/code_a1.py`) and the episode ends. With `rounds=R`
(beyond the paper) the coder then reads which tests failed and answers again, R times in all; each round has rewards of
its own, and what failed comes back from the Mistake Book in the next. Actions are raw responses of language models: any
string. Observations are dictionaries of texts; `infos` hold the score of the round that a step ended.

The environment owns a Mistake Book. `reset(seed=...)` restores the book that the environment was given, so that a
seeded episode repeats exactly; an unseeded reset carries it on; `reset(options={"book": book})` puts another in its
place; the attribute `book` is a copy of it as it stands. `reset(options={"problem_id": ...})` chooses the question.

Where infrastructure fails, `step` raises SandboxError and invents no reward; the step may be made again. Where a
problem's reference solution turns out not to run, it raises UnusableReference. Does not score anything itself, and does
not share a book between environments: for that, use one `codea1_env.arena.Arena`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.utils import seeding
from pettingzoo import AECEnv, ParallelEnv
from pettingzoo.utils.wrappers import OrderEnforcingWrapper

from codea1_env.envs.arguments import own_constructor
from codea1_env.envs.episode import AGENTS, CODER, MAX_TEXT_LENGTH, RENDER_MODES, Episode
from codea1_env.errors import ConfigurationError
from codea1_env.mistake_book.book import MistakeBook
from codea1_env.problems import Problem
from codea1_env.records.recording import Recorder
from codea1_env.rewards.code_a1 import RewardConfig
from codea1_env.sandbox.protocol import Sandbox

DEFAULT_REWARDS = RewardConfig()
_METADATA = {"name": "codea1_v0", "render_modes": list(RENDER_MODES), "render_fps": 1}


class _Face:
    """What the two PettingZoo faces share: construction, spaces, seeding, the book, rendering, closing."""

    def __init__(
        self,
        problems: Sequence[Problem] | None = None,
        *,
        sandbox: Sandbox | None = None,
        rewards: RewardConfig = DEFAULT_REWARDS,
        book: MistakeBook | None = None,
        render_mode: str | None = None,
        max_text_length: int = MAX_TEXT_LENGTH,
        rounds: int = 1,
        recorder: Recorder | None = None,
    ) -> None:
        """Raises ConfigurationError for an argument outside its range.

        problems: what is asked, each with a reference solution; None: the bundled problems.
        sandbox: where programs run; it stays the caller's to close. None: a LocalSandbox, started when it is first
            needed and stopped by `close()`.
        rewards: the reward's parameters.
        book: the Mistake Book to begin with; it is copied. None: an empty one.
        render_mode: None, "human" (prints at every reset and step), "ansi" (text) or "html" (a page).
        max_text_length: characters; longer responses are cut there.
        rounds: how often both respond in an episode, 1 to 1000; from the second on the coder repairs.
        recorder: writes every round that is played; it stays the caller's to close.
        """
        self._episode = Episode(problems, sandbox, rewards, book, render_mode, max_text_length, rounds, recorder)
        self._generator: np.random.Generator | None = None
        self._observation_spaces = {agent: self._episode.observation_space() for agent in AGENTS}
        self._action_spaces = {agent: self._episode.action_space() for agent in AGENTS}
        self.render_mode = render_mode
        self.state_space = self._episode.state_space()
        self.possible_agents = list(AGENTS)
        self.agents: list[str] = []

    @property
    def book(self) -> MistakeBook:
        """A copy of the Mistake Book as it stands."""
        return self._episode.book

    def observation_space(self, agent: str) -> spaces.Dict:
        """The agent's observation space, the same object at every call."""
        return self._observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Text:
        """The agent's action space, the same object at every call."""
        return self._action_spaces[agent]

    def state(self) -> dict[str, Any]:
        """The whole of the episode, for critics that see everything: a new dictionary in `state_space`."""
        return self._episode.state()

    def render(self) -> str | None:
        """The episode so far: text for "ansi", a page for "html"; "human" prints it and gives None."""
        return self._episode.render()

    def close(self) -> None:
        """Stop the sandbox if it is the environment's own. May be called twice."""
        self._episode.close()

    def _begin(self, seed: int | None, options: dict[str, Any] | None) -> None:
        if seed is not None or self._generator is None:
            self._generator, _ = seeding.np_random(seed)
        self._episode.begin(self._generator, restore_book=seed is not None, options=options)
        self.agents = list(AGENTS)
        self._show()

    def _show(self) -> None:
        if self.render_mode == "human":
            self.render()


@own_constructor
class raw_env(_Face, AECEnv):  # type: ignore[misc]  # PettingZoo ships no types
    """The game in turns (PettingZoo's AEC interface), without wrappers. Arguments: `help(raw_env.__init__)`."""

    # PettingZoo's aec_to_parallel would have both agents act on what they saw before the cycle: refuse it.
    metadata: ClassVar[dict[str, Any]] = {**_METADATA, "is_parallelizable": False}

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Begin an episode. Options: `book`, `problem_id`."""
        self._begin(seed, options)
        self.rewards = dict.fromkeys(AGENTS, 0.0)
        self._cumulative_rewards = dict.fromkeys(AGENTS, 0.0)
        self.terminations = dict.fromkeys(AGENTS, False)
        self.truncations = dict.fromkeys(AGENTS, False)
        self.infos = {agent: self._episode.info() for agent in AGENTS}
        self.agent_selection = CODER
        # PettingZoo's own record of whose turn it was before the dead were removed, stale after an episode cut short.
        self._skip_agent_selection = None

    def observe(self, agent: str) -> dict[str, Any]:
        """A new dictionary in the agent's observation space."""
        return self._episode.observation(agent)

    def step(self, action: str | None) -> None:
        """The selected agent's response; None once it is terminated. Raises SandboxError where infrastructure fails."""
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
        self.infos = {name: self._episode.info() for name in AGENTS}
        self._accumulate_rewards()
        self._deads_step_first()
        self._show()


@own_constructor
class parallel_env(_Face, ParallelEnv):  # type: ignore[misc]  # PettingZoo ships no types
    """The game in two steps of both agents a round: the first uses the coder's action, the second the tester's.

    Both agents live to the end; the action of the one whose turn it is not is ignored and may be absent.
    Arguments: `help(parallel_env.__init__)`.
    """

    metadata: ClassVar[dict[str, Any]] = {**_METADATA, "is_parallelizable": True}

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, Any]]]:
        """Begin an episode; observations and infos by agent. Options: `book`, `problem_id`."""
        self._begin(seed, options)
        return self._observations(), self._infos()

    def step(
        self, actions: dict[str, str | None]
    ) -> tuple[
        dict[str, dict[str, Any]],
        dict[str, float],
        dict[str, bool],
        dict[str, bool],
        dict[str, dict[str, Any]],
    ]:
        """Observations, rewards, terminations, truncations and infos by agent.

        Raises SandboxError where infrastructure fails, and ConfigurationError where the action that is due is missing.
        """
        due = self._episode.turn
        if due is None:
            raise gymnasium.error.ResetNeeded("an episode must be running, got a step after its end; call reset()")
        if not isinstance(actions, Mapping) or due not in actions:
            got = sorted(map(str, actions)) if isinstance(actions, Mapping) else type(actions).__name__
            raise ConfigurationError(f"actions must hold a response of {due} now, got {got}")
        self._episode.move(actions[due])
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

    def _observations(self) -> dict[str, dict[str, Any]]:
        return {agent: self._episode.observation(agent) for agent in AGENTS}

    def _infos(self) -> dict[str, dict[str, Any]]:
        return {agent: self._episode.info() for agent in AGENTS}


def env(
    problems: Sequence[Problem] | None = None,
    *,
    sandbox: Sandbox | None = None,
    rewards: RewardConfig = DEFAULT_REWARDS,
    book: MistakeBook | None = None,
    render_mode: str | None = None,
    max_text_length: int = MAX_TEXT_LENGTH,
    rounds: int = 1,
    recorder: Recorder | None = None,
) -> OrderEnforcingWrapper:
    """`raw_env` with PettingZoo's check that calls come in the right order. Arguments: `help(raw_env.__init__)`."""
    return OrderEnforcingWrapper(
        raw_env(
            problems,
            sandbox=sandbox,
            rewards=rewards,
            book=book,
            render_mode=render_mode,
            max_text_length=max_text_length,
            rounds=rounds,
            recorder=recorder,
        )
    )
