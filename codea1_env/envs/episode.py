"""One episode as a state machine: a question, then rounds of the coder's response, the tester's against it, the score.

From the second round on the coder sees which tests its program failed, and may repair it.

The PettingZoo and Gymnasium environments are faces over this class; every number comes from the arena.

If the sandbox fails there is no reward: SandboxError is raised instead. The episode reads no clock, so equal seeds and
actions give equal infos.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping
from enum import StrEnum
from functools import partial
from typing import Any, Self

import gymnasium
import numpy as np
from gymnasium import spaces

from codea1_env.arena.arena import Arena
from codea1_env.arena.match import Match, MatchScore
from codea1_env.envs.arguments import (
    GivenProblems,
    check_numbers,
    check_parts,
    check_render_mode,
    checked_options,
    checked_problems,
)
from codea1_env.envs.pictures import Picture
from codea1_env.envs.rendering import html_page, plain_text, rendered
from codea1_env.envs.spaces import FreeText
from codea1_env.errors import ConfigurationError, SandboxError
from codea1_env.mistake_book.book import MistakeBook
from codea1_env.problems import TestCase
from codea1_env.reading.responses import read_program
from codea1_env.records.recording import Recorder
from codea1_env.rewards.code_a1 import RewardConfig
from codea1_env.rewards.duel import Verdict
from codea1_env.sandbox import LocalSandbox
from codea1_env.sandbox.protocol import Sandbox

CODER = "coder_0"
TESTER = "tester_0"
AGENTS = (CODER, TESTER)
RENDER_MODES = ("human", "ansi", "html", "rgb_array")
MAX_TEXT_LENGTH = 100_000
"""Default for the longest response, in characters."""

_SCALARS = frozenset((str, int, float, bool, type(None)))
# Not `observation`: PettingZoo's api_test takes a key of that name for an array.
_TEXT_KEYS = ("question", "entry_point", "starter_code", "code", "feedback", "phase")


class Phase(StrEnum):
    """The agent whose response is awaited."""

    CODE = "code"
    TEST = "test"
    OVER = "over"


class Episode:
    """The current episode, the Mistake Book that lives on between episodes, and the arena that scores them."""

    def __init__(
        self,
        problems: GivenProblems,
        sandbox: Sandbox | None,
        rewards: RewardConfig,
        book: MistakeBook | None,
        render_mode: str | None,
        max_text_length: int,
        rounds: int = 1,
        recorder: Recorder | None = None,
    ) -> None:
        """The arguments of `codea1_env.envs.environment.parallel_env`. Raises ConfigurationError."""
        check_parts(sandbox, rewards, book, recorder)
        check_numbers(max_text_length, rounds)
        check_render_mode(render_mode, RENDER_MODES)
        problems = checked_problems(problems, max_text_length, rewards)
        self._problems = {problem.problem_id: problem for problem in problems}
        self._sandbox = sandbox
        self._rewards = rewards
        self._recorder = recorder
        self._given_book = MistakeBook() if book is None else book.copy()
        self._book = self._given_book.copy()
        self._arena: Arena | None = None
        self._are_tests_read = not rewards.needs_golden
        self.render_mode = render_mode
        self.max_text_length = max_text_length
        self.problem = problems[0]
        self.phase = Phase.OVER
        self.rounds = rounds
        self.round = 0
        self.program = ""
        self.feedback = ""
        self.score: MatchScore | None = None
        self._code = ""

    @property
    def book(self) -> MistakeBook:
        """A copy of the Mistake Book as it stands."""
        return self._book.copy()

    def require_golden_tests(self) -> None:
        """Raise ConfigurationError for a problem about which a scripted tester has nothing to write."""
        for problem in self._problems.values():
            if not problem.golden_tests:
                raise ConfigurationError(
                    "every problem must have golden_tests for a scripted tester, which writes what they say; got none "
                    f"for {problem.problem_id!r}: give another opponent"
                )

    def begin(
        self, generator: np.random.Generator, options: Mapping[str, Any] | None, *, is_seeded: bool = False
    ) -> None:
        """Start an episode on a question drawn by the generator.

        If `is_seeded`, the book that the environment was given is restored first. `options` may hold `book`, a
        MistakeBook that takes the place of the current one, and `problem_id`, which overrules the draw. Raises
        ConfigurationError.
        """
        options = checked_options(options, "book", "problem_id")
        drawn = list(self._problems)[int(generator.integers(len(self._problems)))]
        chosen = options.get("problem_id", drawn)
        if not isinstance(chosen, str) or chosen not in self._problems:
            raise ConfigurationError(f"options['problem_id'] must name a problem of this environment, got {chosen!r}")
        book = options.get("book", self._given_book if is_seeded else None)
        if book is not None and not isinstance(book, MistakeBook):
            raise ConfigurationError(f"options['book'] must be a MistakeBook, got {type(book).__name__}")
        if book is not None:
            self._book = book.copy()
        if not self._are_tests_read:  # of all questions, so that none ends a run in its middle
            self._open_arena().require_golden_tests(self._problems.values())
            self._are_tests_read = True
        self.problem = self._problems[chosen]
        self.phase = Phase.CODE
        self.program = self.feedback = self._code = ""
        self.round = 0
        self.score = None

    @property
    def turn(self) -> str | None:
        """The agent whose response is awaited; None if the episode is over."""
        return {Phase.CODE: CODER, Phase.TEST: TESTER}.get(self.phase)

    def move(self, response: str | None) -> None:
        """Make the move of the agent whose turn it is: its response, cut at `max_text_length` as generation would have
        been.

        A coder's response is read. A tester's response ends the round: both are scored and the book is updated. Raises
        ConfigurationError for anything but a string, and SandboxError if infrastructure failed: the episode is then
        unchanged, and the move may be made again.
        """
        if not isinstance(response, str):
            raise ConfigurationError(f"a response must be a string, got {type(response).__name__}")
        response = response[: self.max_text_length]
        if self.phase is Phase.CODE:
            self._code = response
            read = read_program(response, self.problem.entry_point, fidelity=self._rewards.fidelity)
            self.program = read.source[: self.max_text_length]
            self.phase = Phase.TEST
            self.score = None
        elif self.phase is Phase.TEST:
            self._end_round(response)
        else:
            raise gymnasium.error.ResetNeeded("an episode must be running, got a move after its end; call reset()")

    def _end_round(self, suite: str) -> None:
        match = Match(self.problem, (self._code,), ((suite,),))
        arena = self._open_arena()
        arena.book = self._book
        (score,) = arena.play([match])
        if score.codes[0].reward is None or score.suites[0][0].reward is None:
            reason = score.suites[0][0].duel.infrastructure_error or "the sandbox gave no verdict"
            raise SandboxError(f"this duel must be judged to be rewarded, got an infrastructure failure: {reason}")
        self.score = score
        self.phase = Phase.OVER if self.round + 1 == self.rounds else Phase.CODE
        if self.phase is Phase.CODE:
            self.round += 1
            self.feedback = failed_tests(score)[: self.max_text_length]

    def _open_arena(self) -> Arena:
        if self._arena is None:
            sandbox = LocalSandbox() if self._sandbox is None else self._sandbox
            self._arena = Arena(sandbox, self._rewards, on_score=self._recorder.write if self._recorder else None)
        return self._arena

    def reward(self, agent: str) -> float:
        """The agent's reward for the round that the last move ended; 0.0 if it did not end a round."""
        if self.score is None:
            return 0.0
        reward = self.score.codes[0].reward if agent == CODER else self.score.suites[0][0].reward
        assert reward is not None  # `_end_round` refuses such a score
        return reward

    def observation(self, agent: str) -> dict[str, Any]:
        """What the agent sees: the question, the latest program, what it failed a round ago, and whose turn it is."""
        return {
            "question": self.problem.question,
            "entry_point": self.problem.entry_point,
            "starter_code": self.problem.starter_code,
            "code": self.program,
            "feedback": self.feedback,
            "phase": str(self.phase),
            "active": int(self.turn == agent),
            "round": self.round,
        }

    def observation_space(self) -> spaces.Dict:
        """A new space of observations."""
        texts = {name: FreeText(self.max_text_length) for name in _TEXT_KEYS}
        return spaces.Dict({**texts, "active": spaces.Discrete(2), "round": spaces.Discrete(self.rounds)})

    def state(self) -> dict[str, Any]:
        """Everything that either agent sees, and whose turn it is: 0 the coder's, 1 the tester's, 2 nobody's."""
        seen = self.observation(CODER)
        del seen["active"]
        return {**seen, "turn": [CODER, TESTER, None].index(self.turn)}

    def state_space(self) -> spaces.Dict:
        """A new space of states."""
        seen = dict(self.observation_space().spaces)
        del seen["active"]
        return spaces.Dict({**seen, "turn": spaces.Discrete(3)})

    def action_space(self) -> FreeText:
        """A new space of responses."""
        return FreeText(self.max_text_length)

    def info(self, agent: str) -> dict[str, Any]:
        """New plain data at every call: the question's id and, if a round has just ended, its whole score.

        Both agents get the same.
        """
        info: dict[str, Any] = {"problem_id": self.problem.problem_id, "difficulty": self.problem.difficulty}
        if self.score is not None:
            info["score"] = plain_score(self.score)
        return info

    def render(self) -> str | Picture | None:
        """The episode as text (`ansi`), as an HTML page (`html`) or as a picture (`rgb_array`); `human` prints the text
        and returns None."""
        phase = str(self.phase) + (f", round {self.round + 1} of {self.rounds}" if self.rounds > 1 else "")
        if self.render_mode == "html":
            return html_page(self.problem, phase, self.program, self.score)
        shown = partial(plain_text, self.problem, phase, self.program, self.score)
        return rendered(self.render_mode, RENDER_MODES, shown)

    def __getstate__(self) -> dict[str, Any]:
        """Without the arena, which holds nothing that a score depends on: a copy makes one of its own."""
        return {**self.__dict__, "_arena": None}

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """An episode of its own where this one stands. The caller's sandbox and recorder stay the caller's: shared."""
        memo |= {id(part): part for part in (self._sandbox, self._recorder)}
        other = object.__new__(type(self))
        other.__dict__ |= copy.deepcopy(self.__getstate__(), memo)
        return other

    def close(self) -> None:
        """Stop the sandbox if the environment made it. May be called again."""
        if self._arena is not None and self._sandbox is None:
            self._arena.close()
        self._arena = None


def failed_tests(score: MatchScore) -> str:
    """The valid and the replayed tests that the program failed. Each line has an assert and how it failed."""
    duel = score.suites[0][0].duel
    new = [
        f"{TestCase(test.call, test.expected)}  # {test.verdict}\n"
        for test in duel.tests
        if test.verdict not in (None, Verdict.PASS) and test.call is not None and test.expected is not None
    ]
    replayed = [f"{each.case}  # {each.verdict}\n" for each in duel.replays if each.verdict is not Verdict.PASS]
    return "".join(dict.fromkeys([*new, *replayed]))


def plain_score(score: MatchScore) -> dict[str, Any]:
    """A score as plain data: dictionaries, lists, strings, numbers, None. Fit for JSON.

    Without `oracle_error` where there is none: infos of a vector cannot hold it of some problems and None of others.
    """
    plain = _plain(score)
    assert isinstance(plain, dict)
    if score.oracle_error is None:
        del plain["oracle_error"]
    return plain


def _plain(value: object) -> object:
    if type(value) in _SCALARS:  # most of a score; asking what kind of thing each is takes longer than the rest
        return value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, StrEnum) else value
