"""Both seats as reward functions of TRL's trainers (GRPOTrainer and others), one seat at a time.

A reward function gets completions and the data set's columns, and gives one float for each completion, or None where
infrastructure failed: TRL then leaves the completion out. The other seat is a player that does not learn. To train both
seats against each other, see `agents/train_grpo.py`.

Does not import TRL. Not for several processes at once: each needs a function, and a sandbox, of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, TypeVar

from codea1_env.arena.arena import Arena
from codea1_env.arena.match import Match, MatchScore
from codea1_env.checks import require, require_whole
from codea1_env.envs.arguments import checked_items
from codea1_env.errors import ConfigurationError
from codea1_env.players import Player, TesterRequest
from codea1_env.players.player import responses_of
from codea1_env.problems.problem import Problem
from codea1_env.reading.messages import answer_texts

Completion = str | Sequence[Mapping[str, Any]]
"""A text, or the messages of a conversation's end; all that `reading/messages.py` reads."""
_Value = TypeVar("_Value")


class CoderRewardFunction:
    """R_C for every completion, under attack by a tester that does not learn.

    The data set needs the column `problem_id`. Completions of one question in one call are a group: they share the
    Mistake Book as it stood before.
    """

    __name__ = "coder_reward"

    def __init__(
        self, arena: Arena, problems: Sequence[Problem], tester: Player, suites: int = 1, seed: int = 0
    ) -> None:
        """`suites`: how many the tester writes against each program. `seed`: of the tester's first call."""
        require_whole("suites", suites)
        self._arena = arena
        self._problems = by_id(arena, problems)
        self._tester = tester
        self._suites = suites
        self._seed = seed

    def __call__(
        self,
        prompts: Sequence[object],
        completions: Sequence[Completion],
        problem_id: Sequence[str] | None = None,
        log_metric: Callable[[str, float], None] | None = None,
        **_: object,
    ) -> list[float | None]:
        """One reward for each completion, in order. Raises ConfigurationError for an unknown or missing problem, and
        for an answer of a form that is not known."""
        problems = [_known(self._problems, each) for each in _column("problem_id", problem_id, completions)]
        texts = answer_texts(completions, "completions")
        read = [self._arena.program(problem, text) for problem, text in zip(problems, texts, strict=True)]
        requests = [TesterRequest(problem, program.source) for problem, program in zip(problems, read, strict=True)]
        written = responses_of(self._tester, requests, self._suites, seed=self._seed)
        self._seed += 1
        suites = [tuple(response.text for response in row) for row in written]
        codes = [score.codes[place] for score, place in _play(self._arena, problems, texts, suites)]
        rewards = [code.reward for code in codes]
        if log_metric is not None:
            executes = [code.executes for code in codes]
            log_metric("executes", sum(map(bool, executes)) / max(len(executes), 1))
            log_metric("mistake_book", float(len(self._arena.book)))
        return rewards


class TesterRewardFunction:
    """R_T for every completion, a suite against the program in its row.

    The data set needs the columns `problem_id` and `program` (a coder's response or a program's source). Rows of one
    call with the same program are suites against one program, which meets them all before the Mistake Book changes.
    """

    __test__ = False  # pytest: not a test class
    __name__ = "tester_reward"

    def __init__(self, arena: Arena, problems: Sequence[Problem]) -> None:
        self._arena = arena
        self._problems = by_id(arena, problems)

    def __call__(
        self,
        prompts: Sequence[object],
        completions: Sequence[Completion],
        problem_id: Sequence[str] | None = None,
        program: Sequence[Completion] | None = None,
        log_metric: Callable[[str, float], None] | None = None,
        **_: object,
    ) -> list[float | None]:
        """One reward for each completion, in order. Raises ConfigurationError for an unknown or missing problem, and
        for an answer of a form that is not known."""
        ids = _column("problem_id", problem_id, completions)
        programs = answer_texts(_column("program", program, completions), "program")
        problems = [_known(self._problems, each) for each in ids]
        texts = answer_texts(completions, "completions")
        rows = _rows_by(list(zip(ids, programs, strict=True)))
        scores = _play(
            self._arena,
            [problems[first] for first, *_ in rows],
            [programs[first] for first, *_ in rows],
            [tuple(texts[row] for row in each) for each in rows],
        )
        of_row = {
            row: suite
            for each, (score, place) in zip(rows, scores, strict=True)
            for row, suite in zip(each, score.suites[place], strict=True)
        }
        scored = [of_row[row] for row in range(len(texts))]
        if log_metric is not None:
            terms = [suite.terms for suite in scored if suite.terms is not None]
            log_metric("validity", sum(term.validity for term in terms) / max(len(terms), 1))
            log_metric("kills", sum(term.f_new for term in terms) / max(len(terms), 1))
        return [suite.reward for suite in scored]


def by_id(arena: Arena, problems: Sequence[Problem]) -> dict[str, Problem]:
    """Raises ConfigurationError where two have one id: the answers to one would be paid by the other; and where the
    rewards need golden tests and a problem has none that can be read, also ProblemFormatError."""
    known = {problem.problem_id: problem for problem in checked_items("problem", problems, Problem)}
    arena.require_golden_tests(known.values())
    return known


def _play(
    arena: Arena, problems: Sequence[Problem], codes: Sequence[str], suites: Sequence[tuple[str, ...]]
) -> list[tuple[MatchScore, int]]:
    """For each row, the score of its question's match and its place there."""
    groups = _rows_by([problem.problem_id for problem in problems])
    matches = [
        Match(problems[rows[0]], tuple(codes[row] for row in rows), tuple(suites[row] for row in rows))
        for rows in groups
    ]
    scores: dict[int, tuple[MatchScore, int]] = {}
    for score, rows in zip(arena.play(matches), groups, strict=True):
        scores |= {row: (score, place) for place, row in enumerate(rows)}
    return [scores[row] for row in range(len(problems))]


def _rows_by(keys: Sequence[Hashable]) -> list[list[int]]:
    """The places of every different key, in the order of their first."""
    rows: dict[Hashable, list[int]] = {}
    for row, key in enumerate(keys):
        rows.setdefault(key, []).append(row)
    return list(rows.values())


def _column(name: str, values: Sequence[_Value] | None, completions: Sequence[object]) -> Sequence[_Value]:
    if values is None or len(values) != len(completions):
        got = "none" if values is None else str(len(values))
        raise ConfigurationError(f"the data set must have a column {name}, one for each completion, got {got}")
    return values


def _known(problems: Mapping[str, Problem], problem_id: str) -> Problem:
    require(problem_id in problems, "problem_id", "be one of the reward function's problems", problem_id)
    return problems[problem_id]
