"""Both seats as environments of TRL's GRPOTrainer (`environment_factory`): a model plays through a tool, turn by turn.

The model reads the question, submits a program or a suite by calling the tool, reads the result and may submit another.
The last one is paid. The other seat is a player, or a column of the data set, and does not learn. TRL makes the
environments, one for each rollout under way, so pass something that it can call without arguments:

    GRPOTrainer(..., environment_factory=lambda: CoderSeat(arena, problems, GoldenTester(), attempts=2))

All of them play in one arena and share its Mistake Book, in the order of their calls: unlike in a round of the duel, a
rollout may meet tests that another one of its group has failed. For groups that meet the same tests, give the arena's
rewards `replay_limit=0`.

Where infrastructure fails there is no reward: None, and TRL leaves the rollout out. What is broken rather than failing
(a sandbox without a guarantee, a reference that does not run, an opponent that cannot answer) TRL would tell the model
as the tool's answer; it is raised again when TRL asks for the reward, and so ends the run.

Does not import TRL, whose interface is experimental (1.16). Not for several processes or threads at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from codea1_env.adapters.seat_rewards import for_coder, for_tester
from codea1_env.adapters.trl_rewards import Completion, by_id
from codea1_env.arena.arena import Arena
from codea1_env.arena.match import Match, MatchScore
from codea1_env.checks import require_whole
from codea1_env.errors import ConfigurationError
from codea1_env.players import Player, TesterRequest
from codea1_env.players.player import responses_of
from codea1_env.players.templates import fenced
from codea1_env.problems.kind_words import test_form, wanted
from codea1_env.problems.problem import Problem
from codea1_env.reading.messages import answer_text


class CoderSeat:
    """The coder's seat. Each row of the data set needs `problem_id`; what `reset` gives is put after its prompt."""

    def __init__(
        self,
        arena: Arena,
        problems: Sequence[Problem],
        tester: Player,
        *,
        attempts: int = 1,
        seed: int = 0,
    ) -> None:
        """`tester`: attacks every program that is handed in, `seed` being its seed. `attempts`: programs a rollout."""
        self._table = _SharedProblem(arena, problems, attempts)
        self._tester = tester
        self._seed = seed

    def reset(self, problem_id: str | None = None, **_: object) -> str:
        """The question. Raises ConfigurationError for a row without a problem that is known."""
        problem = self._table.begin(problem_id)
        starter = f"\n\nStart from this code:\n\n{fenced(problem.starter_code)}" if problem.starter_code.strip() else ""
        return (
            f"{problem.question.strip()}{starter}\n\n{wanted(problem)} in Python and hand the program in by "
            "calling submit_program."
        )

    def submit_program(self, program: str) -> str:
        """Hands in a Python program, which is then tested.

        Args:
            program: The source of the whole program, with all that it imports.

        Returns:
            How many tests it passed, and which ones it failed.
        """
        return self._table.hand_in(program, lambda problem: self._play(problem, program), 0)

    def get_reward(self) -> float | None:
        """R_C of the last program, 0.0 without one; None where infrastructure failed."""
        return self._table.reward()

    def _play(self, problem: Problem, program: str) -> MatchScore:
        request = TesterRequest(problem, self._table.read(problem, program))
        suite = responses_of(self._tester, [request], seed=self._seed)[0][0].text
        return self._table.play(problem, program, suite)


class TesterSeat:
    """The tester's seat. Each row needs `problem_id` and `program`, a coder's response or a program's source."""

    __test__ = False  # pytest: not a test class

    def __init__(
        self,
        arena: Arena,
        problems: Sequence[Problem],
        *,
        attempts: int = 1,
    ) -> None:
        """`attempts`: suites a rollout."""
        self._table = _SharedProblem(arena, problems, attempts)
        self._program = ""

    def reset(self, problem_id: str | None = None, program: Completion | None = None, **_: object) -> str:
        """The question and the program. Raises ConfigurationError for a row that lacks either."""
        problem = self._table.begin(problem_id)
        self._program = answer_text(program, "the column program of the data set")
        source = self._table.read(problem, self._program)
        return (
            f"A programmer was given this task:\n\n{problem.question.strip()}\n\nThis is the program that came back:"
            f"\n\n{fenced(source)}\n\nWrite tests that expose its bug, and hand them in by calling submit_tests. "
            f"{test_form(problem)}"
        )

    def submit_tests(self, tests: str) -> str:
        """Hands in a suite of tests, which is then run against the program.

        Args:
            tests: The asserts, one on each line.

        Returns:
            Which tests are valid, and which of them the program failed.
        """
        return self._table.hand_in(tests, lambda problem: self._table.play(problem, self._program, tests), 1)

    def get_reward(self) -> float | None:
        """R_T of the last suite, 0.0 without one; None where infrastructure failed."""
        return self._table.reward()


class _SharedProblem:
    """What both seats share: the problem that is played, the attempts that are left, and what the last one is worth."""

    def __init__(self, arena: Arena, problems: Sequence[Problem], attempts: int) -> None:
        require_whole("attempts", attempts)
        self._arena = arena
        self._problems = by_id(arena, problems)
        self._attempts = attempts
        self._problem: Problem | None = None
        self._left = 0
        self._reward: float | None = 0.0
        self._error: Exception | None = None

    def begin(self, problem_id: object) -> Problem:
        if not isinstance(problem_id, str) or problem_id not in self._problems:
            raise ConfigurationError(
                f"the data set must have a column problem_id that names known problems, got {problem_id!r}"
            )
        self._problem = self._problems[problem_id]
        self._left, self._reward, self._error = self._attempts, 0.0, None
        return self._problem

    def read(self, problem: Problem, response: str) -> str:
        """The program, as the arena reads it."""
        return self._arena.program(problem, response).source

    def play(self, problem: Problem, code: str, suite: str) -> MatchScore:
        (score,) = self._arena.play([Match(problem, (code,), ((suite,),))])
        return score

    def hand_in(self, text: object, play: Callable[[Problem], MatchScore], seat: Literal[0, 1]) -> str:
        """What the model is told about `text`. Its reward replaces the one before. `seat`: 1 is a tester's."""
        if self._problem is None:
            raise ConfigurationError("reset must be called before a tool, got a call before it")
        if not isinstance(text, str):  # the model writes the arguments: anything that JSON can hold
            return f"What is handed in must be a string, got {type(text).__name__}."
        if self._left == 0:
            return "No attempt is left: what was handed in last counts."
        self._left -= 1
        self._reward = None  # until it is known
        try:
            score = play(self._problem)
        except Exception as error:
            self._error = error
            raise
        self._reward = score.suites[0][0].reward if seat else score.codes[0].reward
        if self._reward is None:
            return "It could not be judged. That is not your fault."
        again = f"You may hand in another one ({self._left} left)." if self._left else "No attempt is left."
        return f"{for_tester(score) if seat else for_coder(score)}\n{again}"

    def reward(self) -> float | None:
        if self._error is not None:
            raise self._error
        return self._reward
