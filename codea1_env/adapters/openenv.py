"""The game as an OpenEnv environment: one session of it. `openenv_server.py` serves many, each by a WebSocket.

A session plays the coder's seat, the tester's, or both in turn; the other seat is held by a player of the server's. It
has an environment, a sandbox process, a thread and a Mistake Book of its own, so that a program that hangs keeps nobody
else waiting; they end with the connection, or when it has been silent for too long.

Clients are not trusted. What they send is bounded and checked. What they see is the question, their own texts, the
verdicts, and, in the tester's seat, the program that they attack; not a reference solution, a value that one returned,
a golden or hidden test, or anything of another session. Where infrastructure fails there is an error, and no reward.

Does not authenticate anybody and does not encrypt: that is a proxy's work. Does not promise that a program cannot find
out, bit by bit, with which arguments it was called: a verdict is such a bit. A session's caches may take 200 MiB.
"""

from __future__ import annotations

import functools
import logging
import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from codea1_env.adapters.client_bodies import readable
from codea1_env.arena.match import MatchScore
from codea1_env.checks import require
from codea1_env.envs.environment import DEFAULT_REWARDS
from codea1_env.envs.episode import CODER, MAX_TEXT_LENGTH, TESTER, Episode
from codea1_env.errors import Codea1Error, ConfigurationError
from codea1_env.extras import extra
from codea1_env.players import MutantCoder, Player, RandomTester
from codea1_env.problems import Problem, bundled_problems
from codea1_env.reading.messages import answer_text
from codea1_env.rewards.code_a1 import RewardConfig

with extra("openenv", "the adapter for OpenEnv needs"):
    from openenv.core.env_server.interfaces import Environment
    from openenv.core.env_server.types import Action, EnvironmentMetadata, Observation, State
    from pydantic import BaseModel, BeforeValidator, Field
    from pydantic_core import PydanticCustomError

_log = logging.getLogger(__name__)

SEATS = ("coder", "tester", "both")
_NAMES = {CODER: "coder", TESTER: "tester", None: ""}


class Unjudged(Codea1Error):
    """Infrastructure failed: there is no reward."""


def _text(given: object) -> str:
    try:
        return answer_text(given, "response")
    except ConfigurationError as error:  # in a form that OpenEnv can send
        raise PydanticCustomError("response", "{said}", {"said": str(error)}) from None


class ResponseAction(Action):  # type: ignore[misc]  # OpenEnv's types are not followed here
    """A raw response of a language model, as a text or as chat messages: a program, or a suite of asserts."""

    response: Annotated[str, BeforeValidator(_text)] = Field(max_length=MAX_TEXT_LENGTH)


class JudgedLine(BaseModel):  # type: ignore[misc]
    """One test that the program met."""

    test: str = Field(description="The test as its author, the client, wrote it; empty for a test of the server's")
    status: str = Field(description="What became of the test: kept, wrong_expected, rejected, replayed, ...")
    verdict: str = Field(description="pass, fail, error, timeout, crash; empty where it was not run")


class Position(Observation):  # type: ignore[misc]
    """What the seat whose turn it is sees. `reward` is None until a round has ended."""

    problem_id: str = ""
    question: str = ""
    entry_point: str = ""
    starter_code: str = ""
    turn: str = Field(default="", description="coder or tester: whose response is awaited; empty once it is over")
    program: str = Field(default="", description="the latest program")
    round: int = 0
    tests: list[JudgedLine] = Field(default_factory=list, description="what the last round's tests came to")
    rewards: dict[str, float] = Field(default_factory=dict, description="of the last round, for each seat played")


@dataclass(frozen=True, slots=True)
class TableRules:
    """What all sessions play."""

    problems: tuple[Problem, ...] | None = None
    """What is asked, each with a reference solution; None: the bundled problems."""
    seats: tuple[str, ...] = SEATS
    """The seats that a client may take, the first one unless it says otherwise."""
    rounds: int = 1
    """How often both seats respond in an episode, in [1, 1000]."""
    rewards: RewardConfig = DEFAULT_REWARDS
    tester: Player | None = None
    """Attacks the coders among the clients; None: `RandomTester`. Answers in the threads of all sessions."""
    coder: Player | None = None
    """Writes what the testers attack, and they read it; None: one of the problem's mutants."""

    def __post_init__(self) -> None:
        unknown = [seat for seat in self.seats if seat not in SEATS]
        require(not unknown and bool(self.seats), "seats", f"be some of {SEATS}", self.seats)
        bare = [each.problem_id for each in self.asked if not each.mutants]
        if "tester" in self.seats and self.coder is None and bare:
            raise ConfigurationError(
                f"every problem must have mutants for testers to attack, got none for {bare[:3]}; give a coder, or "
                "leave 'tester' out of seats"
            )
        Episode(self.asked, None, self.rewards, None, None, MAX_TEXT_LENGTH, self.rounds)  # refuses what it cannot play

    @property
    def asked(self) -> tuple[Problem, ...]:
        return bundled_problems() if self.problems is None else self.problems


class GameEnvironment(Environment[ResponseAction, Position, State]):  # type: ignore[misc]
    """One session's game. `reset` takes `seat`, `problem_id` and `seed`; a seed gives back an empty Mistake Book."""

    SUPPORTS_CONCURRENT_SESSIONS: ClassVar[bool] = True

    def __init__(self, table: TableRules | None = None) -> None:
        super().__init__()
        self._table = table or TableRules()
        self._episode = Episode(
            self._table.asked, None, self._table.rewards, None, None, MAX_TEXT_LENGTH, self._table.rounds
        )
        self._generator = np.random.default_rng()
        self._seat = ""
        """Empty: no episode is under way."""
        self._score: MatchScore | None = None
        """Of the round that the last step ended, if it did."""
        self._episode_id = ""
        self._steps = 0
        self._closed = False
        self._lock = threading.Lock()
        """A session that has been silent for too long is closed by another thread than that of its steps."""

    def reset(
        self,
        seed: int | None = None,
        episode_id: str | None = None,
        seat: str | None = None,
        problem_id: str | None = None,
        **_: Any,
    ) -> Position:
        """Begins an episode. Raises ConfigurationError for an argument outside its range."""
        with self._lock:
            self._require_open()
            return self._reset(seed, episode_id, self._table.seats[0] if seat is None else seat, problem_id)

    def step(self, action: ResponseAction, timeout_s: float | None = None, **_: Any) -> Position:
        """The client's response. Raises ConfigurationError where none is due, Unjudged where infrastructure fails: the
        episode has then ended without a reward."""
        with self._lock:
            self._require_open()
            return self._step(action.response)

    def _reset(self, seed: int | None, episode_id: str | None, seat: str, problem_id: str | None) -> Position:
        if not isinstance(seat, str) or seat not in self._table.seats:
            raise ConfigurationError(f"seat must be one of {', '.join(self._table.seats)}, got {_shown(seat)}")
        if seed is not None and (type(seed) is not int or not 0 <= seed < 1 << 63):
            raise ConfigurationError(f"seed must be a whole number in [0, 2**63), got {_shown(seed)}")
        for name, text in (("problem_id", problem_id), ("episode_id", episode_id)):
            if text is not None and not (isinstance(text, str) and len(text) < 256):
                raise ConfigurationError(f"{name} must be a string of less than 256 characters, got {_shown(text)}")
        if problem_id is not None and problem_id not in {problem.problem_id for problem in self._table.asked}:
            raise ConfigurationError(f"problem_id must name a problem of this server, got {_shown(problem_id)}")
        if seed is not None:
            self._generator = np.random.default_rng(seed)
        self._seat, self._score = "", None
        options = {} if problem_id is None else {"problem_id": problem_id}
        self._episode.begin(self._generator, options, is_seeded=seed is not None)
        self._episode_id = episode_id or str(uuid.uuid4())
        self._steps = 0
        if seat == "tester":
            self._judged(self._let_server_code)
        self._seat = seat
        return self._position()

    def _step(self, response: str) -> Position:
        if not self._seat or self._episode.turn is None:
            raise ConfigurationError("an episode must be under way, got a step before reset or after the end; reset")
        seat, self._seat = self._seat, ""
        mover = self._episode.turn
        self._judged(functools.partial(self._play, seat, response))
        self._seat = seat
        self._steps += 1
        return self._position(mover)

    @property
    def state(self) -> State:
        """Which episode is under way, and how far it is."""
        seat = self._seat
        return State(episode_id=self._episode_id or None, step_count=self._steps, seat=seat, round=self._episode.round)

    def get_metadata(self) -> EnvironmentMetadata:
        """What the server tells about itself."""
        from codea1_env import __version__

        about = "A coder against a tester: programs are paid for tests passed, tests for programs broken."
        return EnvironmentMetadata(name="codea1", description=about, version=__version__)

    def close(self) -> None:
        """Ends the sandbox, after the step that is under way. Idempotent."""
        with self._lock:
            self._closed = True
            self._episode.close()

    def _play(self, seat: str, response: str) -> None:
        episode = self._episode
        episode.move(response)
        if seat == "coder":
            episode.move(episode.answer_of(self._table.tester or RandomTester(), self._generator))
        self._score = episode.score
        if seat == "tester" and episode.turn is not None:
            self._let_server_code()

    def _let_server_code(self) -> None:
        self._episode.move(self._episode.answer_of(self._table.coder or MutantCoder(), self._generator))

    def _judged(self, play: Callable[[], None]) -> None:
        """Plays; an error's own words stay here, for they may speak of the reference or the machine."""
        try:
            play()
        except Exception:
            _log.exception("a session's game on %s failed", self._episode.problem.problem_id)
            raise Unjudged("a game must be judged, got a failure on this side; reset and play again") from None

    def _require_open(self) -> None:
        if self._closed:
            raise ConfigurationError("a session must be open, got one that was idle for too long; connect again")

    def _position(self, mover: str | None = None) -> Position:
        """`mover`: the seat that has just responded."""
        episode = self._episode
        score = self._score
        paid = {"coder": score.codes[0].reward, "tester": score.suites[0][0].reward} if score else {}
        rewards = {seat: reward for seat, reward in paid.items() if self._seat in ("both", seat)}
        return Position(
            done=episode.turn is None,
            reward=rewards.get(_NAMES[mover]),
            problem_id=readable(episode.problem.problem_id),
            question=readable(episode.problem.question),
            entry_point=episode.problem.entry_point,
            starter_code=readable(episode.problem.starter_code),
            turn=_NAMES[episode.turn],
            program=readable(episode.program),
            round=episode.round,
            tests=self._lines(),
            rewards=rewards,
        )

    def _lines(self) -> list[JudgedLine]:
        """The last round's tests; in words only those that the client wrote itself."""
        if self._score is None:
            return []
        duel = self._score.suites[0][0].duel
        is_author = self._seat != "coder"
        new = [
            JudgedLine(
                test=readable(test.source) if is_author else "",
                status=str(test.status),
                verdict=str(test.verdict or ""),
            )
            for test in duel.tests
        ]
        return new + [JudgedLine(test="", status="replayed", verdict=str(each.verdict or "")) for each in duel.replays]


def _shown(value: object) -> str:
    return readable(repr(value)[:100])
