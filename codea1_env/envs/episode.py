"""One episode as a state machine: a question, then rounds of the coder's response, the tester's against it, the score.

From the second round on the coder sees which tests its program failed, and may repair it.

With several testers, all of them answer the same program, none sees another's suite, and the round ends with the last.

The PettingZoo and Gymnasium environments are faces over this class; every number comes from the arena, which is opened
when it is first needed, and which the episodes of a vector share.

If the sandbox fails there is no reward: SandboxError is raised instead. The episode reads no clock, so equal seeds and
actions give equal infos.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterable, Mapping, Sequence
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
from codea1_env.envs.rendering import Picture, html_page, plain_text, rendered
from codea1_env.envs.spaces import FreeText
from codea1_env.errors import ConfigurationError, SandboxError
from codea1_env.mistake_book.book import MistakeBook
from codea1_env.players.player import CoderRequest, Player, TesterRequest, responses_of
from codea1_env.problems import Problem, TestCase
from codea1_env.records.recording import Recorder, Rewards
from codea1_env.rewards.code_a1 import RewardConfig
from codea1_env.rewards.duel import Verdict
from codea1_env.sandbox import LocalSandbox
from codea1_env.sandbox.protocol import Sandbox


class Scoring:
    """Who scores episodes. The caller's sandbox and recorder stay the caller's, also in a copy."""

    def __init__(self, sandbox: Sandbox | None, rewards: RewardConfig, recorder: Recorder | None) -> None:
        """`sandbox`: None for a LocalSandbox of its own, which `close` stops."""
        self.rewards = rewards
        self._sandbox = sandbox
        self._recorder = recorder
        self._arena: Arena | None = None
        self._are_tests_read = not rewards.needs_golden

    @property
    def lent(self) -> tuple[object, ...]:
        """What stays the caller's."""
        return (self._sandbox, self._recorder)

    def read_golden_tests(self, problems: Iterable[Problem]) -> None:
        """Once for all questions, so that none ends a run in its middle. Raises as `Arena.require_golden_tests`."""
        if not self._are_tests_read:
            self._open().require_golden_tests(problems)
            self._are_tests_read = True

    def program(self, problem: Problem, response: str) -> str:
        """The program in a coder's response, as it will be scored."""
        return self._open().program(problem, response).source

    def score(self, games: Sequence[tuple[Match, MistakeBook]]) -> list[MatchScore]:
        """The score of every match, each as though it were played alone; their books are updated.

        Raises SandboxError if infrastructure failed: nothing has changed then.
        """
        matches, books = zip(*games, strict=True)
        scores = self._open().play(matches, books=books)
        for score in scores:
            if not Rewards.of(score).is_whole:
                reason = score.suites[0][0].duel.infrastructure_error or "the sandbox gave no verdict"
                raise SandboxError(f"this duel must be judged to be rewarded, got an infrastructure failure: {reason}")
        return scores

    def _open(self) -> Arena:
        if self._arena is None:
            sandbox = LocalSandbox() if self._sandbox is None else self._sandbox
            self._arena = Arena(sandbox, self.rewards, on_score=self._recorder.write if self._recorder else None)
        return self._arena

    def close(self) -> None:
        """Stop the sandbox if it is not the caller's. May be called again."""
        if self._arena is not None and self._sandbox is None:
            self._arena.close()
        self._arena = None

    def __getstate__(self) -> dict[str, Any]:
        """Without the arena, which holds nothing that a score depends on: a copy makes one of its own."""
        return {**self.__dict__, "_arena": None}

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        other = object.__new__(type(self))
        other.__dict__ |= self.__getstate__()
        return other


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
        testers: int = 1,
    ) -> None:
        """The arguments of `codea1_env.envs.environment.parallel_env`. Raises ConfigurationError."""
        check_parts(sandbox, rewards, book, recorder)
        check_numbers(max_text_length, rounds, testers)
        check_render_mode(render_mode, RENDER_MODES)
        problems = checked_problems(problems, max_text_length, rewards)
        self._problems = {problem.problem_id: problem for problem in problems}
        self._scoring = Scoring(sandbox, rewards, recorder)
        self._given_book = MistakeBook() if book is None else book.copy()
        self._book = self._given_book.copy()
        self.agents = (CODER, *(f"tester_{number}" for number in range(testers)))
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
        self._suites: tuple[str, ...] = ()

    @property
    def lent(self) -> tuple[object, ...]:
        """What is the caller's, and no copy's own: sandbox and recorder."""
        return self._scoring.lent

    def another(self) -> Self:
        """An episode of the same game before its first question: a book of its own, the same arena."""
        other = copy.copy(self)
        other._book = self._given_book.copy()
        return other

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
        drawn = list(self._problems)[int(generator.integers(len(self._problems)))]
        options = self.checked(options)
        book = options.get("book") or (self._given_book if is_seeded else None)
        if book is not None:
            self._book = book.copy()
        self._scoring.read_golden_tests(self._problems.values())
        self.problem = self._problems[options.get("problem_id", drawn)]
        self.phase = Phase.CODE
        self.program = self.feedback = self._code = ""
        self._suites = ()
        self.round = 0
        self.score = None

    def checked(self, options: Mapping[str, Any] | None) -> Mapping[str, Any]:
        """The options of `begin`. Raises ConfigurationError."""
        options = checked_options(options, "book", "problem_id")
        chosen, book = options.get("problem_id", self.problem.problem_id), options.get("book")
        if not isinstance(chosen, str) or chosen not in self._problems:
            raise ConfigurationError(f"options['problem_id'] must name a problem of this environment, got {chosen!r}")
        if book is not None and not isinstance(book, MistakeBook):
            raise ConfigurationError(f"options['book'] must be a MistakeBook, got {type(book).__name__}")
        return options

    @property
    def due(self) -> tuple[str, ...]:
        """The agents whose responses are awaited, in order: of a program all testers'. Nobody's if the episode is
        over."""
        asked = {Phase.CODE: self.agents[:1], Phase.TEST: self.agents[1 + len(self._suites) :]}
        return asked.get(self.phase, ())

    @property
    def turn(self) -> str | None:
        """The first agent whose response is awaited; None if the episode is over."""
        return next(iter(self.due), None)

    def move(self, *responses: object) -> None:
        """The moves of one or more agents, the first of `due`: see `move_all`."""
        move_all([self], [responses])

    def answer_of(self, player: Player, generator: np.random.Generator) -> str:
        """What a player says whose turn it is. Raises what it raises, and PlayerError where that is no answer."""
        coding = CoderRequest(self.problem, self.program, self.feedback)
        asked = coding if self.phase is Phase.CODE else TesterRequest(self.problem, self.program)
        return responses_of(player, [asked], seed=int(generator.integers(1 << 31)))[0][0].text

    def _match(self, responses: Sequence[str]) -> Match | None:
        """What the arena must play if these responses end the round."""
        is_last = self.phase is Phase.TEST and len(responses) == len(self.due)
        return Match(self.problem, (self._code,), ((*self._suites, *responses),)) if is_last else None

    def _take(self, responses: Sequence[str]) -> None:
        """Responses that do not end the round."""
        if self.phase is Phase.TEST:
            self._suites += tuple(responses)
            return
        (self._code,) = responses
        self.program = self._scoring.program(self.problem, self._code)[: self.max_text_length]
        self.phase = Phase.TEST
        self.score = None

    def _end_round(self, score: MatchScore) -> None:
        self.score = score
        self._suites = ()
        self.phase = Phase.OVER if self.round + 1 == self.rounds else Phase.CODE
        if self.phase is Phase.CODE:
            self.round += 1
            self.feedback = failed_tests(score)[: self.max_text_length]

    def reward(self, agent: str) -> float:
        """The agent's reward for the round that the last move ended; 0.0 if it did not end a round."""
        if self.score is None:
            return 0.0
        place = self.agents.index(agent)
        reward = self.score.suites[0][place - 1].reward if place else self.score.codes[0].reward
        assert reward is not None  # `Scoring.score` refuses such a score
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
            "active": int(agent in self.due),
            "round": self.round,
        }

    def observation_space(self) -> spaces.Dict:
        """A new space of observations."""
        texts = {name: FreeText(self.max_text_length) for name in _TEXT_KEYS}
        return spaces.Dict({**texts, "active": spaces.Discrete(2), "round": spaces.Discrete(self.rounds)})

    def state(self) -> dict[str, Any]:
        """Everything that an agent sees, and whose turn it is: its place in `agents`, and behind them nobody's."""
        seen = self.observation(CODER)
        del seen["active"]
        return {**seen, "turn": [*self.agents, None].index(self.turn)}

    def state_space(self) -> spaces.Dict:
        """A new space of states."""
        seen = dict(self.observation_space().spaces)
        del seen["active"]
        return spaces.Dict({**seen, "turn": spaces.Discrete(len(self.agents) + 1)})

    def action_space(self) -> FreeText:
        """A new space of responses."""
        return FreeText(self.max_text_length)

    def info(self, agent: str) -> dict[str, Any]:
        """New plain data at every call: the question's id and, if a round has just ended, its whole score.

        All agents get the same.
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

    def close(self) -> None:
        """Stop the sandbox if the environment made it. May be called again."""
        self._scoring.close()


def move_all(episodes: Sequence[Episode], responses: Sequence[Sequence[object]]) -> None:
    """The next moves of episodes that share an arena: `responses[i]` are of the first agents that are due in episode i,
    cut at `max_text_length` as generation would have been.

    A coder's response is read. The last tester's ends the round: all are scored, those of all episodes in one pass, and
    the books are updated. Raises ConfigurationError for anything but strings, and SandboxError if infrastructure
    failed: no episode has changed then, and the moves may be made again.
    """
    moves = []
    for episode, row in zip(episodes, responses, strict=True):
        if len(row) > len(episode.due):
            raise gymnasium.error.ResetNeeded("an episode must be running, got a move after its end; call reset()")
        moves.append([_cut(response, episode.max_text_length) for response in row])
    matches = [episode._match(row) for episode, row in zip(episodes, moves, strict=True)]
    games = [(match, episode._book) for episode, match in zip(episodes, matches, strict=True) if match is not None]
    scores = iter(episodes[0]._scoring.score(games) if games else ())
    for episode, match, row in zip(episodes, matches, moves, strict=True):
        if match is None:
            episode._take(row)
        else:
            episode._end_round(next(scores))


def _cut(response: object, most: int) -> str:
    if not isinstance(response, str):
        raise ConfigurationError(f"a response must be a string, got {type(response).__name__}")
    return response[:most]


def failed_tests(score: MatchScore) -> str:
    """The valid and the replayed tests that the program failed. Each line has an assert and how it failed; before them,
    by which rule it was not allowed to run, if it was not."""
    duels = [suite.duel for suite in score.suites[0]]
    new = [
        f"{TestCase(test.call, test.expected)}  # {test.verdict}\n"
        for duel in duels
        for test in duel.tests
        if test.verdict not in (None, Verdict.PASS) and test.call is not None and test.expected is not None
    ]
    replayed = [f"{each.case}  # {each.verdict}\n" for each in duels[0].replays if each.verdict is not Verdict.PASS]
    refused = score.codes[0].refused
    return "".join(dict.fromkeys([f"# may not run: {refused}\n"] * bool(refused) + [*new, *replayed]))


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
