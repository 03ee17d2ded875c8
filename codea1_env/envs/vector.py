"""Many episodes of the game at once: `vector_env(n)` scores all that end in a step in one pass of the arena.

PettingZoo has no vectors, and Gymnasium's have one agent. So the agents are PettingZoo's, by name, as in
`parallel_env`, and what each of them gets is batched as Gymnasium's `VectorEnv` batches it:

| | |
|---|---|
| Actions | `{agent: n texts}`, of the agents that are due; those of others are ignored and may be absent |
| Observations | `{agent: {key: n values}}` in `observation_space(agent)`: texts in a tuple, numbers in an array (n,) |
| Rewards | `{agent: array (n,)}`, float64 |
| Terminations, truncations | `{agent: array (n,)}`, bool |
| Infos | `{agent: n dictionaries}`, each as `parallel_env` gives it; the agents' hold the same score |
| Seeds | `reset(seed=s)` gives episode i the seed s + i; a list gives each its own |
| Autoreset | `AutoresetMode.DISABLED` in `metadata` |

Infos stay a dictionary for each episode, since Gymnasium's form, an array and a mask for each key, tears scores of
different length apart. Nothing begins anew by itself: all episodes have the same number of steps, so they end together,
`agents` is empty then, as in PettingZoo, and one `reset` begins them all.

Each episode has its own Mistake Book and equals a `parallel_env` by itself: with equal seeds and actions it has the
same observations, rewards, infos and book. A recorder writes the same lines as for n environments that step in order.
What is shared is the arena: one pass of the sandbox for all programs, one for all references, and what it remembers of
both. Does not decide who plays, and is no `gymnasium.vector.VectorEnv`, whose wrappers know one agent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from codea1_env.checks import is_several, require
from codea1_env.envs.arguments import MAX_EPISODES, GivenProblems
from codea1_env.envs.environment import DEFAULT_REWARDS
from codea1_env.envs.episode import MAX_TEXT_LENGTH, RENDER_MODES, Episode, move_all
from codea1_env.envs.faces import due_actions
from codea1_env.envs.rendering import Picture
from codea1_env.mistake_book.book import MistakeBook
from codea1_env.records.recording import Recorder
from codea1_env.rewards.code_a1 import RewardConfig
from codea1_env.sandbox.protocol import Sandbox

Observations = dict[str, dict[str, Any]]
"""By agent, then by key: n texts in a tuple, or n numbers in an array."""
Infos = dict[str, list[dict[str, Any]]]
Flags = dict[str, npt.NDArray[np.bool_]]


class vector_env:
    """n episodes of the game, in steps of all agents as `parallel_env` has them."""

    metadata: ClassVar[dict[str, Any]] = {
        "name": "codea1_vector_v0",
        "render_modes": list(RENDER_MODES),
        "render_fps": 1,
        "autoreset_mode": AutoresetMode.DISABLED,
    }

    def __init__(
        self,
        num_envs: int,
        problems: GivenProblems = None,
        *,
        sandbox: Sandbox | None = None,
        rewards: RewardConfig = DEFAULT_REWARDS,
        book: MistakeBook | None = None,
        render_mode: str | None = None,
        max_text_length: int = MAX_TEXT_LENGTH,
        rounds: int = 1,
        testers: int = 1,
        recorder: Recorder | None = None,
    ) -> None:
        """`num_envs`: the number of episodes, n. The rest: see `codea1_env.envs.environment`; every episode begins with
        a copy of `book`. Raises ConfigurationError."""
        is_number = type(num_envs) is int and 1 <= num_envs <= MAX_EPISODES
        require(is_number, "num_envs", f"be a whole number in [1, {MAX_EPISODES}]", num_envs)
        first = Episode(problems, sandbox, rewards, book, render_mode, max_text_length, rounds, recorder, testers)
        self._episodes = [first, *(first.another() for _ in range(num_envs - 1))]
        self._generators: list[np.random.Generator | None] = [None] * num_envs
        self.num_envs = num_envs
        self.render_mode = render_mode
        self.possible_agents = list(first.agents)
        self.agents: list[str] = []
        """Empty when the episodes are over."""
        self.single_observation_spaces = {agent: first.observation_space() for agent in first.agents}
        self.single_action_spaces = {agent: first.action_space() for agent in first.agents}
        self.observation_spaces = {
            agent: batch_space(space, num_envs) for agent, space in self.single_observation_spaces.items()
        }
        self.action_spaces = {agent: batch_space(space, num_envs) for agent, space in self.single_action_spaces.items()}
        self.state_space = batch_space(first.state_space(), num_envs)

    def observation_space(self, agent: str) -> gymnasium.Space[Any]:
        """The space of the agent's n observations, the same object at every call."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> gymnasium.Space[Any]:
        """The space of the agent's n actions, the same object at every call."""
        return self.action_spaces[agent]

    @property
    def books(self) -> tuple[MistakeBook, ...]:
        """A copy of every episode's Mistake Book as it stands."""
        return tuple(episode.book for episode in self._episodes)

    def reset(
        self, seed: int | Sequence[int | None] | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[Observations, Infos]:
        """Begin n episodes. `seed`: s, for s + i in episode i; or one for each, None where it goes on unseeded.

        The options are those of `parallel_env`, for all episodes; `problem_id` may be a list of n, one for each. Raises
        ConfigurationError before any episode has begun.
        """
        seeds = self._seeds(seed)
        rows = [episode.checked(one) for episode, one in zip(self._episodes, self._options(options), strict=True)]
        for place, (episode, one, own) in enumerate(zip(self._episodes, seeds, rows, strict=True)):
            generator = self._generators[place]
            if one is not None or generator is None:
                generator, _ = seeding.np_random(one)
                self._generators[place] = generator
            episode.begin(generator, own, is_seeded=one is not None)
        self.agents = list(self.possible_agents)
        self._show()
        return self._observations(), self._infos()

    def step(
        self, actions: Mapping[str, Sequence[str]]
    ) -> tuple[Observations, dict[str, npt.NDArray[np.float64]], Flags, Flags, Infos]:
        """Take the actions of the agents that are due, `actions[agent][i]` in episode i, and return observations,
        rewards, terminations, truncations and infos by agent.

        Raises ConfigurationError for anything but n texts for each, and SandboxError if infrastructure fails: no
        episode has changed then, and the step may be made again.
        """
        due = self._episodes[0].due
        given = due_actions(due, actions, self.possible_agents)
        batches = [self._batch(agent, batch) for agent, batch in zip(due, given, strict=True)]
        move_all(self._episodes, list(zip(*batches, strict=True)))
        over = self._episodes[0].turn is None
        if over:
            self.agents = []
        self._show()
        return (
            self._observations(),
            {agent: np.array([each.reward(agent) for each in self._episodes]) for agent in self.possible_agents},
            {agent: np.full(self.num_envs, over) for agent in self.possible_agents},
            {agent: np.full(self.num_envs, False) for agent in self.possible_agents},
            self._infos(),
        )

    def state(self) -> dict[str, Any]:
        """Everything about the episodes, for critics that see all agents: new data in `state_space`."""
        return _batched([episode.state() for episode in self._episodes])

    def render(self) -> tuple[str | Picture | None, ...]:
        """What `parallel_env` renders, of every episode."""
        return tuple(episode.render() for episode in self._episodes)

    def close(self) -> None:
        """Stop the sandbox if the environment made it. May be called again."""
        self._episodes[0].close()

    def _show(self) -> None:
        if self.render_mode == "human":
            self.render()

    def _seeds(self, seed: object) -> list[int | None]:
        must = f"be None, a whole number of at least 0, or {self.num_envs} of these in a list"
        seeds: Any = [None] * self.num_envs if seed is None else seed
        if isinstance(seed, int) and not isinstance(seed, bool):
            seeds = range(seed, seed + self.num_envs)
        require(_is_batch(seeds, self.num_envs, _is_seed), "seed", must, seed)
        return [None if one is None else int(one) for one in seeds]

    def _options(self, options: Mapping[str, Any] | None) -> list[Mapping[str, Any] | None]:
        """Every episode's own."""
        chosen = options.get("problem_id") if isinstance(options, Mapping) else None
        if options is None or chosen is None or isinstance(chosen, str):
            return [options] * self.num_envs
        must = f"be a problem's id, or {self.num_envs} in a list"
        require(_is_batch(chosen, self.num_envs, _is_text), "options['problem_id']", must, chosen)
        return [{**options, "problem_id": one} for one in chosen]

    def _batch(self, agent: str, given: Any) -> Sequence[str]:
        must = f"be {self.num_envs} strings in a list, one for each episode"
        require(_is_batch(given, self.num_envs, _is_text), f"actions[{agent!r}]", must, given)
        return list(given)

    def _observations(self) -> Observations:
        return {
            agent: _batched([episode.observation(agent) for episode in self._episodes])
            for agent in self.possible_agents
        }

    def _infos(self) -> Infos:
        first, *others = self.possible_agents
        infos = [episode.info(first) for episode in self._episodes]
        return {first: infos} | {agent: [dict(info) for info in infos] for agent in others}


def _batched(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Values by key, as Gymnasium batches them."""
    batches = {key: tuple(row[key] for row in rows) for key in rows[0]}
    return {key: batch if isinstance(batch[0], str) else np.array(batch, np.int64) for key, batch in batches.items()}


def _is_batch(given: object, length: int, is_one: Callable[[object], bool]) -> bool:
    if not is_several(given) or not isinstance(given, Sequence | np.ndarray):
        return False
    return len(given) == length and all(is_one(one) for one in given)


def _is_text(given: object) -> bool:
    return isinstance(given, str)


def _is_seed(given: object) -> bool:
    return given is None or (isinstance(given, int | np.integer) and not isinstance(given, bool) and int(given) >= 0)
