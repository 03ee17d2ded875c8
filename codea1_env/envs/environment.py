"""The game as PettingZoo plays it: `parallel_env` (all agents step together), `raw_env` and `env` (in turns, AEC).

| | |
|---|---|
| Agents | `coder_0`, `tester_0`, and more testers with `testers=T` |
| Action space | `FreeText(max_text_length)`: any string, the raw response of a language model |
| Observation space | `Dict`: `question`, `entry_point`, `starter_code`, `code`, `feedback`, `phase` (`FreeText`), |
| | `active` (`Discrete(2)`: whether it is the agent's turn), `round` (`Discrete(rounds)`) |
| State space | `Dict`: the same texts and `round`, and `turn` (`Discrete(2 + testers)`: coder, testers, nobody) |
| Rewards | of the coder in [0, 1], of a tester in [-1, 1]; all come with the last tester's action |
| Episode | an action of each agent, `rounds` times; it terminates and is never truncated |
| Infos | `problem_id`, `difficulty` and, after a round, `score` |
| Render modes | `human`, `ansi`, `html`, `rgb_array` |

One episode is one question. `coder_0` answers it with a program; `tester_0` reads question and program and answers with
a suite of asserts; then both are rewarded (`codea1_env/rewards/code_a1.py`) and the episode ends. With `rounds=R`
(beyond the paper) the coder then reads which tests failed and answers again, R times in all; each round has rewards of
its own, and what failed comes back from the Mistake Book in the next. With `testers=T` (beyond the paper, too) T
testers attack the same program, and none sees another's suite: each is paid for its own, the coder by the tests of all;
in parallel they act in one step. Actions are raw responses of language models: any string. Observations are
dictionaries of texts; `infos` hold the score of the round that a step ended.

The environment owns a Mistake Book. `reset(seed=...)` restores the book that the environment was given, so that a
seeded episode repeats exactly; an unseeded reset carries it on; `reset(options={"book": book})` puts another in its
place; the attribute `book` is a copy of it as it stands. `reset(options={"problem_id": ...})` chooses the question.

If infrastructure fails, `step` raises SandboxError and invents no reward; the step may be repeated. If a problem's
reference solution does not run, `step` raises UnusableReference. The environment does not score anything itself and
does not share its book with other environments: to share a book, use one `codea1_env.arena.Arena`.
"""

from __future__ import annotations

from typing import Any, ClassVar

from codea1_env.envs.arguments import GivenProblems, own_constructor
from codea1_env.envs.episode import MAX_TEXT_LENGTH, RENDER_MODES, Episode
from codea1_env.envs.faces import Face, InTurns, Together, in_order
from codea1_env.mistake_book.book import MistakeBook
from codea1_env.records.recording import Recorder
from codea1_env.rewards.code_a1 import RewardConfig
from codea1_env.sandbox.protocol import Sandbox

DEFAULT_REWARDS = RewardConfig()
_METADATA = {"name": "codea1_v0", "render_modes": list(RENDER_MODES), "render_fps": 1}


class _TextGame(Face):
    """What the two faces of the game share beyond `faces.Face`: its constructor and its Mistake Book."""

    def __init__(
        self,
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
        """Raises ConfigurationError for an argument outside its range.

        problems: the questions, each with a reference solution, or the path of a problem file; None: the bundled
            problems.
        sandbox: where programs run; it stays the caller's to close. None: a LocalSandbox, started when it is first
            needed and stopped by `close()`.
        rewards: the reward's parameters.
        book: the Mistake Book to begin with; it is copied. None: an empty one.
        render_mode: None, "human" (prints at every reset and step), "ansi" (text), "html" (a page) or "rgb_array" (a
            picture of fixed size, for videos; needs the extra `video`).
        max_text_length: characters; longer responses are cut there.
        rounds: how often both respond in an episode, 1 to 1000; from the second on the coder repairs.
        testers: how many attack each program, 1 to 100: `tester_0`, `tester_1`, ...
        recorder: writes every round that is played; it stays the caller's to close.
        """
        self._episode = Episode(
            problems, sandbox, rewards, book, render_mode, max_text_length, rounds, recorder, testers
        )
        self._open(self._episode, render_mode)

    @property
    def book(self) -> MistakeBook:
        """A copy of the Mistake Book as it stands."""
        return self._episode.book


@own_constructor
class raw_env(_TextGame, InTurns):
    """The game in turns (PettingZoo's AEC interface), without wrappers. Arguments: `help(raw_env.__init__)`."""

    # PettingZoo's aec_to_parallel would have both agents act on what they saw before the cycle: refuse it.
    metadata: ClassVar[dict[str, Any]] = {**_METADATA, "is_parallelizable": False}


@own_constructor
class parallel_env(_TextGame, Together):
    """The game as parallel steps, two a round: the first uses the coder's action, the second the testers'.

    All agents live until the end. The action of an agent whose turn it is not is ignored and may be absent.
    Arguments: `help(parallel_env.__init__)`.
    """

    metadata: ClassVar[dict[str, Any]] = {**_METADATA, "is_parallelizable": True}


env = in_order(raw_env)
