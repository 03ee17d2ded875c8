"""The arena's input and output: matches, their scores, grades, and the changes that a score makes to the book.

Plain data. Does not run or pay anything: see `arena.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeGuard

from codea1_env.checks import require
from codea1_env.judging.expected_values import OracleError
from codea1_env.mistake_book.policies import RatedTest, Visit
from codea1_env.problems.problem import Problem
from codea1_env.reading.test_case import TestCase
from codea1_env.rewards.duel import ROUNDING, Duel, JudgedReplay, Verdict
from codea1_env.rewards.interfaces import Group
from codea1_env.rewards.terms import SuiteTerms
from codea1_env.rewards.tester_rewards import booked_quality

_MAX_BOOKED = 1 << 16
"""Characters of a call and of a value in the Mistake Book: a longer test is run and paid, but not remembered."""


@dataclass(frozen=True, slots=True)
class Match:
    """One question's round: the raw answers of both players. Raises ConfigurationError for another shape."""

    problem: Problem
    codes: tuple[str, ...]
    """The coder's N responses."""
    suites: tuple[tuple[str, ...], ...]
    """`suites[i]`: the tester's M responses to `codes[i]`; a row may be empty."""
    by_reference: bool = False
    """Whether to score it by `RewardConfig.by_reference`, for measuring, instead of by the training's rewards."""

    def __post_init__(self) -> None:
        require(isinstance(self.problem, Problem), "Match.problem", "be a codea1_env.Problem", self.problem)
        require(are_texts(self.codes), "Match.codes", "be a tuple of texts", self.codes)
        are_rows = _is_row(self.suites) and all(map(are_texts, self.suites))
        require(are_rows, "Match.suites", "be a tuple of tuples of texts, one for each program", self.suites)
        given = (len(self.codes), len(self.suites))
        must = "be as many as Match.codes, a row for each program"
        require(given[0] == given[1], "Match.suites", must, f"{given[1]} for {given[0]}")


@dataclass(frozen=True, slots=True)
class CodeScore:
    """The score of one program."""

    executes: bool | None
    """Whether the program loads and defines the entry point; None if infrastructure failed."""
    reward: float | None
    """R_C, in [0, 1], or [-1, 1] under `skill`, or what a reward of one's own pays; None if infrastructure failed."""
    program: str
    """The program, as read from the response."""
    replays: tuple[JudgedReplay, ...] = ()
    """The Mistake Book's tests, run on the program; those of its duels, if it has any."""
    refused: str = ""
    """The rule by which the program was not allowed to run (`RewardConfig.accept`); then it does not execute."""
    denied: tuple[str, ...] = field(default=(), compare=False)
    """What the sandbox denied the program, as the program says: "thread", "process", "network", "file", "import NAME".
    For people: it pays nothing."""


@dataclass(frozen=True, slots=True)
class SuiteScore:
    """The score of one suite against one program."""

    reward: float | None
    """R_T, in [-1, 1], or what a reward of one's own pays; None if infrastructure failed."""
    terms: SuiteTerms | None
    """Every number of the reward."""
    duel: Duel
    """What happened."""
    group: Group | None = None
    """What happened on the other solutions of the question, if the rewards ask for it."""


@dataclass(frozen=True, slots=True)
class MatchScore:
    """The scores of all programs and suites of one match."""

    problem_id: str
    codes: tuple[CodeScore, ...]
    suites: tuple[tuple[SuiteScore, ...], ...]
    oracle_error: OracleError | None = None
    """The error of the oracle, if it is not the reference and the problem has one."""


@dataclass(frozen=True, slots=True)
class Grade:
    """The verdicts on one program of a fixed list of tests (golden, hidden), for baselines and evaluation."""

    executes: bool | None
    """None if infrastructure failed."""
    verdicts: tuple[Verdict | None, ...]
    """One per test; None for one that cannot be read, and for all if infrastructure failed."""
    denied: tuple[str, ...] = field(default=(), compare=False)
    """As `CodeScore.denied`."""

    @property
    def share(self) -> float:
        """The share of tests that passed, of those that can be read; 0 without any."""
        known = [verdict is Verdict.PASS for verdict in self.verdicts if verdict is not None]
        return sum(known) / len(known) if known else 0.0

    @property
    def all_passed(self) -> bool:
        """Whether the program executes and passes every test that can be read."""
        return self.executes is True and all(verdict in (Verdict.PASS, None) for verdict in self.verdicts)


def are_texts(given: object) -> TypeGuard[Sequence[str]]:
    """Whether the value holds several texts. A text itself does not: each of its letters would be played."""
    return _is_row(given) and all(isinstance(text, str) for text in given)


def _is_row(given: object) -> TypeGuard[Sequence[object]]:
    return isinstance(given, tuple | list)


def book_changes(score: MatchScore, *, rate: bool = False) -> Visit:
    """What a scored match reports to the Mistake Book, in order. With `rate`, every valid test comes with its quality.

    A program that does not execute says nothing about any test, as in the released code.
    """
    passes: list[TestCase] = []
    failed_replays: list[TestCase] = []
    failures: list[TestCase] = []
    rated: list[RatedTest] = []
    for code, row in zip(score.codes, score.suites, strict=True):
        if not code.executes:
            continue
        for replay in code.replays:
            if replay.verdict is not None:
                (passes if replay.verdict is Verdict.PASS else failed_replays).append(replay.case)
        for suite in row:
            for place, test in enumerate(suite.duel.tests):
                if test.verdict is None or test.call is None or test.expected is None:
                    continue
                if test.reason == ROUNDING:  # a replay has one value, and would kill who returns the other one
                    continue
                if max(len(test.call), len(test.expected)) > _MAX_BOOKED:
                    continue
                case = TestCase(test.call, test.expected)
                if test.verdict is not Verdict.PASS:
                    failures.append(case)
                if rate:
                    rated.append(RatedTest(case, booked_quality(suite.duel, suite.group, place)))
    return Visit(tuple(passes), tuple(failures), tuple(failed_replays), tuple(rated))
