"""The one place that scores: batched duels of N programs against M suites per question, in one sandbox pass each step.

    read responses -> tests to data -> run programs -> ask the oracle -> verdicts -> rewards -> Mistake Book

In this order: what programs are asked follows from texts alone, and nothing that was computed from a right value exists
while one of them runs. The Mistake Book's replays are the one thing that older verdicts decide.
Does not know torch, Ray or gradients, and does not decide who plays: environments and trainers bring responses and take
scores. Not thread-safe: one arena serves one caller at a time.
"""

from __future__ import annotations

import dataclasses
import itertools
import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, TypeVar

from codea1_env.arena.bouts import Bout, ProgramTurns, Replay, comparisons, program_turns, scored
from codea1_env.arena.failures import apart
from codea1_env.arena.match import (
    BookChanges,
    CodeScore,
    Grade,
    Match,
    MatchScore,
    SuiteScore,
    are_texts,
    book_changes,
)
from codea1_env.bounded_cache import BoundedCache
from codea1_env.checks import require, require_choice
from codea1_env.closing import Closing
from codea1_env.errors import ConfigurationError, ProblemFormatError, SandboxError, SandboxUnsafe
from codea1_env.judging.expected_values import BatchOracle, Jury
from codea1_env.judging.judge import (
    EXECUTION_CACHE_MB,
    Expectation,
    Judge,
    Trial,
    TrialResult,
    plain_values,
)
from codea1_env.judging.own_tests import OwnTest, OwnTests, left_out, told
from codea1_env.judging.schedule import Turn
from codea1_env.judging.validation import Asked, read_suites, validate
from codea1_env.mistake_book.book import MistakeBook
from codea1_env.problems.check_functions import LeftOut
from codea1_env.problems.problem import Problem
from codea1_env.reading.responses import Suite, read_program, read_suite
from codea1_env.reading.test_case import TestCase
from codea1_env.rewards.code_a1 import RewardConfig
from codea1_env.rewards.duel import Duel
from codea1_env.sandbox.protocol import JobResult, Sandbox

__all__ = ["Arena", "BookChanges", "CodeScore", "Grade", "Match", "MatchScore", "SuiteScore", "book_changes"]

_log = logging.getLogger(__name__)
_READ_CACHE_MB = 64
_BYTES_PER_CHARACTER = 20
"""What a suite takes once it is read, about."""
_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
OnFailure = Literal["unscored", "apart", "raise"]


class Arena(Closing):
    """Scores matches and keeps the Mistake Book. Owns the sandbox it is given: `close` closes it."""

    def __init__(
        self,
        sandbox: Sandbox,
        config: RewardConfig | None = None,
        book: MistakeBook | None = None,
        *,
        tolerance: float = 0.0,
        execution_cache_mb: int = EXECUTION_CACHE_MB,
        on_score: Callable[[Sequence[Match], Sequence[MatchScore], RewardConfig], None] | None = None,
        on_failure: OnFailure = "unscored",
    ) -> None:
        """Raises ConfigurationError for an argument of another kind.

        `tolerance`: relative and absolute, for comparing floats; 0 is exact.

        `execution_cache_mb`: MiB of outcomes of programs' calls to remember across batches; 0 runs everything anew.
        `on_score`: is told of every batch and what it came to, e.g. `codea1_env.records.recording.Recorder.write`.
        `on_failure`: what becomes of a batch that the sandbox fails. `unscored`: it has no rewards and no grades.
        `apart`: as `arena.failures` says, SandboxError where every further batch would fail, else only what fails by
        itself has none. `raise`: SandboxError.
        """
        require(is_sandbox(sandbox), "sandbox", "be a sandbox, as codea1_env.open_sandbox makes it", sandbox)
        require(isinstance(config, RewardConfig | None), "config", "be None or a codea1_env.RewardConfig", config)
        require(isinstance(book, MistakeBook | None), "book", "be None or a codea1_env.MistakeBook", book)
        require(isinstance(tolerance, int | float) and 0 <= tolerance < 1, "tolerance", "be in [0, 1)", tolerance)
        require(on_score is None or callable(on_score), "on_score", "be None or callable", on_score)
        require_choice("on_failure", on_failure, ("unscored", "apart", "raise"))
        self._on_score = on_score
        self._on_failure = on_failure
        self.config = config or RewardConfig()
        _ = self.config.reward  # a reward of one's own that cannot be loaded is known before anything runs
        self.book = book if book is not None else MistakeBook()
        self._sandbox = sandbox
        self._is_closed = False
        self._judge = Judge(sandbox, tolerance, execution_cache_mb=execution_cache_mb)
        self._own_tests = OwnTests(self._judge)
        self._told: set[tuple[str, str]] = set()
        self._read: BoundedCache[tuple[str, str, str], Suite] = BoundedCache(_READ_CACHE_MB << 20)
        self.seconds: dict[str, float] = {}
        """Of the last batch that was scored, by part: `parsing`, `judging` (the sandbox is in it), `rewarding`."""

    def play(self, matches: Sequence[Match], *, update_book: bool = True) -> list[MatchScore]:
        """Score every match, in order. All replays are taken before the batch; the book is updated after it, in order.

        If the sandbox fails, `on_failure` says what happens; by default every reward of the batch is None and the book
        does not change. Raises UnusableReference
        if the oracle is a reference that is missing or does not work, SandboxUnsafe if the machine is not safe, and
        ConfigurationError if golden tests are asked for and a problem has none, for what is no match, and after
        `close`.
        """
        self._require_open()
        matches = _listed("matches", "be Match objects in a list", matches)
        for match in matches:
            require(isinstance(match, Match), "every match", "be a codea1_env.Match", match)
        config = self.config.by_reference if _are_measured(matches) else self.config
        self.seconds = {}
        results = self._attempted("matches have no score", lambda part: self._play(part, config), matches)
        scores = [
            _unscored(match, config, str(result)) if isinstance(result, SandboxError) else result
            for match, result in zip(matches, results, strict=True)
        ]
        if self._on_score is not None:  # before the book changes: where it raises, the batch may be played again
            self._on_score([self._as_judged(match) for match in matches], scores, config)
        if update_book:
            self.remember([result for result in results if not isinstance(result, SandboxError)])
        return scores

    def _attempted(
        self, lost: str, work: Callable[[Sequence[_Item]], list[_Result]], pieces: Sequence[_Item]
    ) -> list[_Result | SandboxError]:
        """The results of a batch; where the sandbox failed, its error, as `on_failure` says. `lost`: for the log."""
        results: list[_Result | SandboxError]
        if self._on_failure == "raise":
            return [*work(pieces)]
        try:
            results = [*work(pieces)] if self._on_failure == "unscored" else apart(self._sandbox, work, pieces)
        except SandboxError as error:
            if self._on_failure == "apart" or isinstance(error, SandboxUnsafe):
                raise
            results = [error] * len(pieces)
        errors = [result for result in results if isinstance(result, SandboxError)]
        if errors:
            _log.error("the sandbox failed, %d %s: %s", len(errors), lost, errors[0])
        return results

    def _as_judged(self, match: Match) -> Match:
        """With the tolerance that counted: a problem is recorded, and an arena is not."""
        tolerance = self._judge.tolerance(match.problem)
        if tolerance == match.problem.tolerance:
            return match
        return dataclasses.replace(match, problem=dataclasses.replace(match.problem, tolerance=tolerance))

    def remember(self, scores: Sequence[MatchScore]) -> None:
        """Update the book with matches that were played with `update_book=False`, in order."""
        for score in scores:
            changes = book_changes(score, rate=self.book.config.rates)
            record_changes(self.book, score.problem_id, changes)

    def _play(self, matches: Sequence[Match], config: RewardConfig) -> list[MatchScore]:
        started = time.perf_counter()
        programs = [_programs(match, config) for match in matches]
        suites = [(match.problem, self._suite(text, match, config)) for match in matches for text in _texts(match)]
        parsed = time.perf_counter()
        replays = self._replays([match.problem for match in matches])
        golden = [self._golden(match.problem, config) for match in matches]
        read = read_suites(self._judge, suites, config)
        asked = _like_suites(matches, [suite.asked for suite in read])
        turns = [
            program_turns(match, sources, [[one.calls for one in row] for row in rows], replayed, trusted, config)
            for match, sources, rows, replayed, trusted in zip(matches, programs, asked, replays, golden, strict=True)
        ]
        ran = self._run(turns)
        # From here on nothing runs on a candidate: what follows knows the right values.
        oracle = BatchOracle(
            self._judge,
            config.oracle,
            [
                Jury(match.problem, sum(map(len, match.suites)), _solutions(rows, mine, ran, config), trusted)
                for match, rows, mine, trusted in zip(matches, asked, turns, golden, strict=True)
            ],
        )
        tests = _like_suites(matches, validate(self._judge, read, config, oracle.answer))
        ignored = _like_suites(matches, [suite.unread for _, suite in suites])
        bouts = [
            Bout(
                match,
                tuple(sources),
                tuple(map(tuple, rows)),
                tuple(replayed),
                tuple(map(tuple, left_out)),
                trusted,
            )
            for match, sources, rows, replayed, left_out, trusted in zip(
                matches, programs, tests, replays, ignored, golden, strict=True
            )
        ]
        judged = time.perf_counter()
        scores = []
        for bout, mine in zip(bouts, turns, strict=True):
            results = self._judge.judged(comparisons(bout, mine, ran, config))
            scores.append(scored(bout, iter(results), config))
        match_scores = [
            dataclasses.replace(score, oracle_error=error) if error else score
            for score, error in zip(scores, oracle.errors, strict=True)
        ]
        parts = {"parsing": parsed - started, "judging": judged - parsed, "rewarding": time.perf_counter() - judged}
        self.seconds = parts
        return match_scores

    def _run(self, turns: Sequence[Sequence[ProgramTurns]]) -> dict[Turn, JobResult]:
        """What all turns of a batch came to, in one pass."""
        every = dict.fromkeys(
            turn for match in turns for program in match for turn in (program.replays, *program.suites, program.golden)
        )
        return dict(zip(every, self._judge.run(list(every)), strict=True))

    def _suite(self, text: str, match: Match, config: RewardConfig) -> Suite:
        """One response, read; the same one for the same text, so that what follows from it alone is done once."""
        key = (text, match.problem.entry_point, config.fidelity)
        suite = self._read.get(key)
        if suite is None:
            suite = read_suite(*key[:2], fidelity=config.fidelity)
            self._read.put(key, suite, len(text) * _BYTES_PER_CHARACTER)
        return suite

    def _golden(self, problem: Problem, config: RewardConfig) -> tuple[Expectation, ...]:
        """The golden tests, where the reward or the oracle asks for them. Raises ConfigurationError."""
        if not config.needs_golden:
            return ()
        if not problem.golden_tests:
            raise ConfigurationError(
                f"every problem must have golden tests where tester_reward is {config.tester_reward!r} and oracle is "
                f"{config.oracle!r}: they decide what is right; got none for {problem.problem_id!r}"
            )
        (tests,) = self._own_tests.read([(problem, problem.golden_tests)])
        return tuple(test.expectation for test in self._some(problem, tests) if test.expectation)

    def _some(self, problem: Problem, tests: Sequence[OwnTest]) -> Sequence[OwnTest]:
        """The tests, after it was said which are left out. Raises ProblemFormatError where all of them are."""
        unread = left_out(tests)
        if unread and len(unread) == len(tests):
            raise ProblemFormatError(
                f"a test of problem {problem.problem_id!r} must be a call of {problem.entry_point} with plain "
                f"arguments and a plain value, got {unread[0].source!r}: {told(unread)}"
            )
        if unread and (problem.problem_id, told(unread)) not in self._told:
            self._told.add((problem.problem_id, told(unread)))
            _log.warning("%s: %s and are left out, the first is %r", problem.problem_id, told(unread), unread[0].source)
        return tests

    def unread_tests(self, problem: Problem) -> tuple[LeftOut, ...]:
        """Which of a problem's golden and hidden tests cannot be read: `grade` and golden oracles leave them out.
        Raises SandboxError."""
        return self._own_tests.readable([problem])[0].left_out

    def require_golden_tests(self, problems: Iterable[Problem]) -> None:
        """Raise ConfigurationError or ProblemFormatError where `play` needs golden tests and a problem has none that
        can be read."""
        for problem in problems:
            self._golden(problem, self.config)

    def _replays(self, problems: Sequence[Problem]) -> list[list[Replay]]:
        """The Mistake Book tests of every question, as data."""
        limit = self.config.replay_limit
        asked = [limit] * len(problems)
        while True:
            cases = [self.book.replay(each.problem_id, most) for each, most in zip(problems, asked, strict=True)]
            booked = self._own_tests.read(list(zip(problems, cases, strict=True)), self.config.fidelity)
            replays = [
                [Replay(test.case, test.expectation) for test in row if test.expectation][:limit] for row in booked
            ]
            # What cannot be read never passes, so it would keep its place for ever, and those behind it out.
            short = [
                place for place, row in enumerate(booked) if len(replays[place]) < limit and len(row) == asked[place]
            ]
            if not short:
                break
            for place in short:
                asked[place] *= 2
        for problem, row in zip(problems, booked, strict=True):
            for unread in left_out(row):
                _log.warning(
                    "a booked test of %s cannot be read and is not replayed: %s", problem.problem_id, unread.source
                )
        return replays

    def grade(self, problem: Problem, responses: Sequence[str], tests: Sequence[TestCase]) -> list[Grade]:
        """Run `tests`, whose expected values are trusted, on every response's program. Those that cannot be read are
        left out: their verdicts are None.

        Programs are read strictly, whatever the rewards' fidelity: what is measured compares runs of all of them.
        """
        return self.grade_many([(problem, responses, tests)])[0]

    def grade_many(self, items: Sequence[tuple[Problem, Sequence[str], Sequence[TestCase]]]) -> list[list[Grade]]:
        """`grade` for many questions in one sandbox pass. If the sandbox fails, every verdict is None (`on_failure`).

        Raises ProblemFormatError where no test of a question is a call of its entry point with plain arguments, before
        anything runs, and ConfigurationError for items of another shape and after `close`.
        """
        self._require_open()
        items = [_item(given) for given in _listed("items", "be (problem, responses, tests) tuples in a list", items)]
        results = self._attempted("questions have no grades", self._graded, items)
        return [
            [Grade(None, (None,) * len(tests)) for _ in responses] if isinstance(result, SandboxError) else result
            for (_, responses, tests), result in zip(items, results, strict=True)
        ]

    def _graded(self, items: Sequence[tuple[Problem, Sequence[str], Sequence[TestCase]]]) -> list[list[Grade]]:
        rows = self._own_tests.read([(problem, tests) for problem, _, tests in items])
        rows = [list(self._some(problem, row)) for (problem, _, _), row in zip(items, rows, strict=True)]
        waiting = []
        for (problem, responses, _), row in zip(items, rows, strict=True):
            expected = tuple(test.expectation for test in row if test.expectation)
            waiting += [Trial(problem, read_program(text, problem.entry_point).source, expected) for text in responses]
        results = iter(self._judge.try_programs(waiting))
        return [
            [_grade(next(results), row) for _ in responses] for (_, responses, _), row in zip(items, rows, strict=True)
        ]

    def close(self) -> None:
        """Close the sandbox. May be called again."""
        self._is_closed = True
        self._sandbox.close()

    def _require_open(self) -> None:
        if self._is_closed:
            raise ConfigurationError("the arena must be open to play and to grade, got one that was closed")


def _listed(name: str, must: str, given: Iterable[_Item]) -> list[_Item]:
    """What was given, once and for all: a generator can be read only once."""
    require(isinstance(given, Iterable), name, must, given)
    return list(given)


def _item(
    given: tuple[Problem, Sequence[str], Sequence[TestCase]],
) -> tuple[Problem, Sequence[str], Sequence[TestCase]]:
    """One question to grade. Raises ConfigurationError for another shape."""
    require(isinstance(given, tuple | list) and len(given) == 3, "an item", "be (problem, responses, tests)", given)
    problem, responses, tests = given
    require(isinstance(problem, Problem), "problem", "be a codea1_env.Problem", problem)
    require(are_texts(responses), "responses", "be a list of texts", responses)
    are_tests = isinstance(tests, tuple | list) and all(isinstance(test, TestCase) for test in tests)
    require(are_tests, "tests", "be a list of codea1_env.TestCase", tests)
    return problem, responses, tests


def _like_suites(matches: Sequence[Match], items: Iterable[_Item]) -> list[list[list[_Item]]]:
    """One item for every suite, `[match][program][suite]`."""
    following = iter(items)
    return [[[next(following) for _ in row] for row in match.suites] for match in matches]


def _solutions(
    rows: Sequence[Sequence[Asked]], turns: Sequence[ProgramTurns], ran: Mapping[Turn, JobResult], config: RewardConfig
) -> list[list[tuple[bytes | None, ...] | None]]:
    """What every solution returned for every suite, where the solutions are the oracle."""
    if config.oracle not in ("majority", "dual"):
        return []
    suites = list(itertools.chain.from_iterable(rows))
    return [
        [plain_values(turn, ran[turn], suite.calls) for turn, suite in zip(program.suites, suites, strict=True)]
        for program in turns
    ]


def is_sandbox(given: object) -> bool:
    return not isinstance(given, type) and callable(getattr(given, "run", None)) and hasattr(given, "version")


def _are_measured(matches: Sequence[Match]) -> bool:
    """Whether the batch is for measuring. Raises ConfigurationError for a batch that is both."""
    kinds = {match.by_reference for match in matches}
    if len(kinds) > 1:
        raise ConfigurationError("by_reference must be the same for all matches of a batch, got both: play them apart")
    return True in kinds


def record_changes(book: MistakeBook, problem_id: str, changes: BookChanges) -> None:
    """Write one match's changes into the book."""
    book.record(
        problem_id,
        changes.passes,
        changes.failures,
        failed_replays=changes.failed_replays,
        rated=changes.rated,
    )


def _texts(match: Match) -> Iterable[str]:
    return itertools.chain.from_iterable(match.suites)


def _programs(match: Match, config: RewardConfig) -> list[str]:
    name = match.problem.entry_point
    return [read_program(code, name, fidelity=config.fidelity).source for code in match.codes]


def _grade(result: TrialResult, tests: Sequence[OwnTest]) -> Grade:
    verdicts = iter(result.verdicts)
    return Grade(result.executes, tuple(next(verdicts) if test.expectation else None for test in tests))


def _unscored(match: Match, config: RewardConfig, why: str) -> MatchScore:
    """A match that infrastructure kept from being scored."""
    programs = _programs(match, config)
    return MatchScore(
        match.problem.problem_id,
        tuple(CodeScore(None, None, source) for source in programs),
        tuple(
            tuple(SuiteScore(None, None, Duel(match.problem.problem_id, source, None, 0.0, (), (), why)) for _ in row)
            for source, row in zip(programs, match.suites, strict=True)
        ),
    )
