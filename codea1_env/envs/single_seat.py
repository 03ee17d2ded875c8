"""One seat of the game as a Gymnasium environment, the others held by frozen players.

| | |
|---|---|
| Action space | `FreeText(max_text_length)`: any string |
| Observation space | as of `environment.py` |
| Opponents by name | of the coder: `golden`, `random` (default), `fuzz`; of the tester: `oracle`, `mutant` (default) |
| Reward | of the seat that is played: the coder's in [0, 1], the tester's in [-1, 1] |

In `codea1_env/Coder-v0` the agent answers a question and the opponent attacks the answer. In `codea1_env/Tester-v0` the
agent reads a question and the opponent's program and attacks it. With several opponents more testers attack it: all
of them in the coder's view, all but the first in the tester's. An episode is one step; with `rounds=R` it is R steps,
and the coder repairs its program.

Observations, infos, the Mistake Book and failures of infrastructure are those of `environment.py`. Does not train the
opponent. Vectors of these environments need `shared_memory=False` (texts) and `AutoresetMode.SAME_STEP` (one-step
episodes).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Self

import gymnasium

from codea1_env.envs.arguments import GivenProblems, own_constructor
from codea1_env.envs.environment import DEFAULT_REWARDS
from codea1_env.envs.episode import CODER, MAX_TEXT_LENGTH, RENDER_MODES, TESTER, Episode
from codea1_env.envs.faces import Rendered
from codea1_env.errors import ConfigurationError
from codea1_env.mistake_book.book import MistakeBook
from codea1_env.players import Player
from codea1_env.players.scripted import CODERS, TESTERS
from codea1_env.records.recording import Recorder
from codea1_env.rewards.code_a1 import RewardConfig
from codea1_env.sandbox.protocol import Sandbox

Observation = dict[str, Any]


class _TextSeat(Rendered, gymnasium.Env[Observation, str]):
    """What the two views share. Each says which seat is played and when the opponent moves."""

    metadata: dict[str, Any] = {"render_modes": list(RENDER_MODES), "render_fps": 1}  # noqa: RUF012  # as Gymnasium declares it
    seat: ClassVar[str]
    """The agent whose actions are given and whose rewards are returned."""
    opponents: ClassVar[Mapping[str, Callable[[], Player]]]
    """The scripted players of the first other seat, by name."""
    default_opponent: ClassVar[str]

    def __init__(
        self,
        problems: GivenProblems = None,
        *,
        opponent: Player | str | Sequence[Player | str] | None = None,
        sandbox: Sandbox | None = None,
        rewards: RewardConfig = DEFAULT_REWARDS,
        book: MistakeBook | None = None,
        render_mode: str | None = None,
        max_text_length: int = MAX_TEXT_LENGTH,
        rounds: int = 1,
        recorder: Recorder | None = None,
    ) -> None:
        """`opponent`: the player of the other seat, or the name of a scripted one, of which the class has a list
        (`opponents`); None: its default. A list has the players of several other seats: testers in the coder's view; a
        coder and then testers in the tester's, in which the agent is `tester_0`. The rest: see
        `codea1_env.envs.environment`."""
        one: Any = self.default_opponent if opponent is None else opponent
        given = list(one) if isinstance(one, list | tuple) and one else [one]
        self._episode = Episode(
            problems, sandbox, rewards, book, render_mode, max_text_length, rounds, recorder, len(given)
        )
        self._played = self._episode
        names = (self.opponents, *[TESTERS] * (len(given) - 1))
        self._opponents = [self._player(*pair) for pair in zip(given, names, strict=True)]
        self.observation_space = self._episode.observation_space()
        self.action_space = self._episode.action_space()
        self.render_mode = render_mode

    @property
    def book(self) -> MistakeBook:
        """A copy of the Mistake Book as it stands."""
        return self._episode.book

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin an episode. Options: `book`, `problem_id`."""
        super().reset(seed=seed)
        self._episode.begin(self.np_random, options, is_seeded=seed is not None)
        self._let_opponent_code()
        self._show()
        return self._episode.observation(self.seat), self._episode.info(self.seat)

    def step(self, action: str) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """The response of this seat; the round ends with it, and with the last round the episode.

        Raises SandboxError where infrastructure fails, and whatever the opponent raises; call `reset` then, because the
        opponent may answer anew what it has answered.
        """
        if self._episode.turn != self.seat:  # also where a step failed after one of the two had moved
            raise gymnasium.error.ResetNeeded(
                f"an episode must be running in which {self.seat} is to act, got none; call reset()"
            )
        actions = [action]
        if self.seat == CODER:
            self._episode.move(action)
            actions = []
        testers = self._opponents if self.seat == CODER else self._opponents[1:]
        self._episode.move(*actions, *(self._episode.answer_of(tester, self.np_random) for tester in testers))
        reward, info = self._episode.reward(self.seat), self._episode.info(self.seat)
        self._show()
        self._let_opponent_code()
        return self._episode.observation(self.seat), reward, self._episode.turn is None, False, info

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """A view of its own where this one stands. Opponents stay the caller's: shared, as sandbox and recorder are."""
        # Wherever they stand: the specification that `gymnasium.make` keeps has them, too.
        memo |= {id(each): each for each in (*self._opponents, *self._episode.lent)}
        other = object.__new__(type(self))
        memo[id(self)] = other
        other.__dict__ |= copy.deepcopy(self.__dict__, memo)
        return other

    def _let_opponent_code(self) -> None:
        """Where it is its turn."""
        if self.seat == TESTER and self._episode.turn == CODER:
            self._episode.move(self._episode.answer_of(self._opponents[0], self.np_random))

    def _player(self, opponent: Player | str, named: Mapping[str, Callable[[], Player]]) -> Player:
        if isinstance(opponent, str) and opponent in named:
            if named is TESTERS:
                self._episode.require_golden_tests()
            return named[opponent]()
        if isinstance(opponent, type | str) or not callable(getattr(opponent, "respond", None)):
            names = ", ".join(named)
            raise ConfigurationError(
                f"opponent must be None, one of {names}, or a player (codea1_env.players), got {opponent!r}"
            )
        return opponent


@own_constructor
class CoderEnv(_TextSeat):
    """`codea1_env/Coder-v0`. The opponent is a tester: "golden", "random" (the default), "fuzz" or a player."""

    seat = CODER
    opponents = TESTERS
    default_opponent = "random"


@own_constructor
class TesterEnv(_TextSeat):
    """`codea1_env/Tester-v0`. The opponent is a coder: "oracle", "mutant" (the default) or a player."""

    __test__ = False  # pytest: not a test class
    seat = TESTER
    opponents = CODERS
    default_opponent = "mutant"
