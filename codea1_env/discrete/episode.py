"""One episode of the discrete game as a state machine: a question, the coder's pick, the tester's K picks, the rewards.

The coder picks a program, then the tester picks one test at a time: K picks of one index each, not one pick of K, for
every library plays `Discrete` actions with a mask, few play `MultiDiscrete`, and vectors of several agents need one
action space for both. Action `i` picks the pool's program or test `i`; an index beyond the pool, and the last action,
whose name is *nothing*, picks the empty answer: no program, no test. A test picked twice is the duplicate that it
would be in a text. The mask leaves out what lies beyond the pool, repeats, and the coder's *nothing*; it is advice:
what it leaves out has its meaning all the same.

Holds no clock and asks nobody: equal seeds and actions give equal episodes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from operator import index
from typing import Any, Literal

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from codea1_env.checks import require, require_bool, require_choice
from codea1_env.discrete.policies import Policy, Situation
from codea1_env.discrete.pool import Pool, bundled_pools
from codea1_env.discrete.scoring import PairScore, PoolScorer
from codea1_env.envs.arguments import check_render_mode, checked_items, checked_options
from codea1_env.envs.episode import AGENTS, CODER, TESTER
from codea1_env.envs.rendering import Picture, rendered
from codea1_env.errors import ConfigurationError
from codea1_env.rewards.code_a1 import RewardConfig
from codea1_env.rewards.terms import SuiteTerms
from codea1_env.terminal import printable

RENDER_MODES = ("human", "ansi", "rgb_array")
Masks = Literal["infos", "observations"]
Array = npt.NDArray[np.float32]
_TERMS = tuple(term.name for term in dataclasses.fields(SuiteTerms))


class DiscreteEpisode:
    """The current episode, and the spaces that all questions of the game share."""

    def __init__(
        self,
        pools: Sequence[Pool] | None,
        rewards: RewardConfig,
        simultaneous: bool,
        masks: Masks,
        render_mode: str | None,
    ) -> None:
        """The arguments of `codea1_env.discrete.environment.parallel_env`. Raises ConfigurationError."""
        pools = bundled_pools() if pools is None else checked_items("pool", pools, Pool)
        require(isinstance(rewards, RewardConfig), "rewards", "be a codea1_env.RewardConfig", rewards)
        require_bool("simultaneous", simultaneous)
        require_choice("masks", masks, ("infos", "observations"))
        check_render_mode(render_mode, RENDER_MODES)
        self._scorers = [PoolScorer(pool, rewards) for pool in pools]
        self._places = {pool.problem_id: place for place, pool in enumerate(pools)}
        self._config, self._simultaneous, self._masks = rewards, simultaneous, masks
        self.render_mode = render_mode
        self.programs = max(len(pool.programs) for pool in pools)
        self.tests = max(len(pool.tests) for pool in pools)
        self.actions = max(self.programs, self.tests) + 1
        self._first_program = len(pools)
        self._first_test = self._first_program + self.programs
        self._first_phase = self._first_test + self.tests
        # question, program, tests, is the tester's turn, share of the picks made | is the observer's turn
        self._table = np.zeros(self._first_phase + 2, np.float32)
        self._scorer = self._scorers[0]
        self.agents: tuple[str, ...] = AGENTS
        self.turn: str | None = None
        """The agent whose pick is awaited; None where the episode is over."""
        self._program: int | None = None
        self._picks: list[int | None] = []
        self._score: PairScore | None = None

    @property
    def pool(self) -> Pool:
        """The current question's."""
        return self._scorer.pool

    def begin(
        self, generator: np.random.Generator, options: Mapping[str, Any] | None, *, is_seeded: bool = False
    ) -> None:
        """Start an episode on a question drawn by the generator, or named by `options["problem_id"]`.

        `is_seeded` changes nothing: no episode depends on an earlier one. Raises ConfigurationError.
        """
        options = checked_options(options, "problem_id")
        place = int(generator.integers(len(self._scorers)))
        if "problem_id" in options:
            chosen = options["problem_id"]
            if not isinstance(chosen, str) or chosen not in self._places:
                raise ConfigurationError(f"options['problem_id'] must name a pool of this game, got {chosen!r}")
            place = self._places[chosen]
        self._scorer = self._scorers[place]
        self.turn = CODER
        self._program, self._picks, self._score = None, [], None
        self._table[:] = 0.0
        self._table[place] = 1.0

    @property
    def due(self) -> tuple[str, ...]:
        """`turn`, alone: no two agents pick at once."""
        return () if self.turn is None else (self.turn,)

    def move(self, action: Any) -> None:
        """The pick of the agent whose turn it is. Raises ConfigurationError for what is no action."""
        if self.turn is None:
            raise gymnasium.error.ResetNeeded("an episode must be running, got a move after its end; call reset()")
        try:
            pick = index(action)
        except TypeError:
            raise ConfigurationError(f"an action must be an integer, got {action!r}") from None
        if not 0 <= pick < self.actions:
            raise ConfigurationError(f"an action must be in [0, {self.actions - 1}], got {pick}")
        if self.turn == CODER:
            if pick < len(self.pool.programs):
                self._program = pick
                self._table[self._first_program + pick] = 1.0
            self._table[self._first_phase] = 1.0
            self.turn = TESTER
            return
        is_test = pick < len(self.pool.tests)
        self._picks.append(pick if is_test else None)
        if is_test:
            self._table[self._first_test + pick] = 1.0
        self._table[self._first_phase + 1] = len(self._picks) / self._config.suite_size
        if len(self._picks) == self._config.suite_size:
            self._score = self._scorer.score(self._program, self._suite())
            self.turn = None

    def reward(self, agent: str) -> float:
        """The agent's reward for the episode: 0.0 until it is over."""
        if self._score is None:
            return 0.0
        return self._score.coder if agent == CODER else self._score.tester

    def observation(self, agent: str) -> Any:
        """What the agent sees: a new array, or a new dictionary with it and the mask."""
        seen = self._seen(agent)
        return {"observation": seen, "action_mask": self.mask(agent)} if self._masks == "observations" else seen

    def mask(self, agent: str) -> npt.NDArray[np.int8]:
        """1 where an action makes sense, (actions,). Who is not asked may only pick nothing."""
        mask = np.zeros(self.actions, np.int8)
        if agent != self.turn:
            mask[-1] = 1
        elif agent == CODER:
            mask[: len(self.pool.programs)] = 1
        else:
            mask[: len(self.pool.tests)] = 1
            mask[-1] = 1
            mask[[pick for pick in self._picks if pick is not None]] = 0
        return mask

    def state(self) -> Array:
        """All there is to see, for critics: a new array in `state_space`."""
        return self._table.copy()

    def info(self, agent: str) -> dict[str, Any]:
        """New plain data at every call: the question's id, the mask and, once the episode is over, the score."""
        info: dict[str, Any] = {"problem_id": self.pool.problem_id, "action_mask": self.mask(agent)}
        if self._score is not None:
            picks = [-1 if pick is None else pick for pick in self._picks]
            info["score"] = {
                "coder": self._score.coder,
                "tester": self._score.tester,
                "program": -1 if self._program is None else self._program,
                "suite": np.array(picks, np.int64),  # (K,); -1 for nothing
                "terms": {name: getattr(self._score.terms, name) for name in _TERMS},
            }
        return info

    def move_by(self, policy: Policy, generator: np.random.Generator) -> None:
        """A policy's whole turn; what it leaves open is *nothing*. Raises ConfigurationError for too many picks."""
        seat = self.turn
        assert seat is not None
        seen = None if self._simultaneous else self._program
        picks = policy(Situation(self.pool, self._config, seat, seen), generator)
        most = 1 if seat == CODER else self._config.suite_size - len(self._picks)
        require(hasattr(picks, "__len__"), "what a policy picks", "be a list of actions", picks)
        if len(picks) > most:
            raise ConfigurationError(f"a policy must make at most {most} picks for {seat}, got {len(picks)}")
        for pick in (*picks, *[self.actions - 1] * (most - len(picks))):
            self.move(pick)

    def observation_space(self) -> spaces.Box | spaces.Dict:
        """A new space of observations, the same for both agents."""
        seen = spaces.Box(0.0, 1.0, (len(self._table) + 1,), np.float32)
        if self._masks == "infos":
            return seen
        return spaces.Dict({"observation": seen, "action_mask": spaces.Box(0, 1, (self.actions,), np.int8)})

    def state_space(self) -> spaces.Box:
        """A new space of states."""
        return spaces.Box(0.0, 1.0, self._table.shape, np.float32)

    def action_space(self) -> spaces.Discrete:
        """A new space of actions, the same for both agents."""
        return spaces.Discrete(self.actions)

    def render(self) -> str | Picture | None:
        """The episode as text (`ansi`) or as a picture (`rgb_array`); `human` prints the text and returns None."""
        return rendered(self.render_mode, RENDER_MODES, self._text)

    def close(self) -> None:
        """Nothing to release."""

    def _suite(self) -> tuple[int, ...]:
        return tuple(pick for pick in self._picks if pick is not None)

    def _seen(self, agent: str) -> Array:
        seen = np.empty(len(self._table) + 1, np.float32)
        seen[:-1] = self._table
        seen[-1] = agent == self.turn
        if self._simultaneous and agent == TESTER and self.turn is not None:
            seen[self._first_program : self._first_test] = 0.0
        return seen

    def _text(self) -> str:
        pool = self.pool
        lines = [f"{pool.problem_id} (turn: {self.turn or 'nobody'})", "", pool.question.rstrip()]
        if self.turn != CODER:
            source = "(nothing)" if self._program is None else pool.programs[self._program].rstrip()
            lines += ["", f"PROGRAM {'' if self._program is None else self._program}".rstrip(), source, "", "TESTS"]
        if self._score is None:
            lines += [pool.tests[place] for place in self._suite()]
        else:
            lines += [f"{test.status:<14}  {test.verdict or '-':<4}  {test.source}" for test in self._score.tests]
            lines += ["", f"coder's reward {self._score.coder:.3f}, tester's reward {self._score.tester:.3f}"]
        return printable("\n".join(lines))
