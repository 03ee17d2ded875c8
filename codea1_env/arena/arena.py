"""The one place that scores: batched duels of N programs against M suites per question, in one sandbox pass each step.

    read responses -> tests to data -> run programs -> ask the oracle -> verdicts -> rewards -> Mistake Book

The calls of programs depend only on texts, and no value derived from a right one exists while a program runs. Only the
Mistake Book's replays depend on older verdicts. Does not know torch, Ray or gradients, and does not decide who plays:
environments and trainers bring responses and take scores. Not thread-safe: one arena serves one caller at a time.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from codea1_env.arena.bouts import Bout, ProgramTurns, Replay, comparisons, program_turns, scored
from codea1_env.arena.failures import apart
from codea1_env.arena.match import CodeScore, Grade, Match, MatchScore, SuiteScore, are_texts, book_changes
from codea1_env.checks import is_several, require, require_choice
from codea1_env.class_paths import own_exits
from codea1_env.closing import Closing
from codea1_env.errors import ConfigurationError, ProblemFormatError, SandboxError, SandboxUnsafe
from codea1_env.judging.bounded_cache import BoundedCache, bytes_of
from codea1_env.judging.expected_values import BatchOracle, Jury
from codea1_env.judging.judge import EXECUTION_CACHE_MB, Expectation, Judge, Trial, TrialResult, plain_values
from codea1_env.judging.problems.limits import RunLimits
from codea1_env.judging.problems.own_tests import OwnTest, OwnTests, left_out, told
from codea1_env.judging.schedule import Turn
from codea1_env.judging.scripts import ScriptVerdict, judge_scripts
from codea1_env.judging.validation import read_suites, validate, with_right_values
from codea1_env.mistake_book.book import MistakeBook
from codea1_env.mistake_book.policies import Visit
from codea1_env.problems.check_functions import LeftOut
from codea1_env.problems.problem import Problem
from codea1_env.problems.tolerances import EXACT, Tolerances
from codea1_env.reading.responses import Program, Suite, read_suite
from codea1_env.reading.test_case import TestCase
from codea1_env.rewards.admission import refused_by
from codea1_env.rewards.code_a1 import RewardConfig
from codea1_env.rewards.duel import Duel, Verdict
from codea1_env.sandbox.protocol import JobResult, Outcome, OutcomeKind, Sandbox

_log = logging.getLogger(__name__)
READ_CACHE_MB = 64
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
        tolerance: Tolerances | float = EXACT,
        execution_cache_mb: int = EXECUTION_CACHE_MB,
        read_cache_mb: int = READ_CACHE_MB,
        on_score: Callable[[Sequence[Match], Sequence[MatchScore], RewardConfig], None] | None = None,
        on_failure: OnFailure = "unscored",
    ) -> None:
        """Raises ConfigurationError for an argument of another kind.

        `tolerance`: allowed error of values, a number for floats or a mapping by type; 0 is exact. `config.compare` and
        the problem's own tolerance apply as well.

        `execution_cache_mb`: MiB of call outcomes to remember across batches; 0 remembers none.
        `read_cache_mb`: MiB of what is read to remember, each for programs, suites, tests of problems and references.
        `on_score`: is called with every batch and its scores, e.g. `codea1_env.records.recording.Recorder.write`.
        `on_failure`: what becomes of a batch that the sandbox fails. `unscored`: it has no rewards and no grades.
        `apart`: as `arena.failures` says, SandboxError where every further batch would fail, else only what fails by
        itself has none. `raise`: SandboxError.
        """
        require(is_sandbox(sandbox), "sandbox", "be a sandbox, as codea1_env.open_sandbox makes it", sandbox)
        require(isinstance(config, RewardConfig | None), "config", "be None or a codea1_env.RewardConfig", config)
        require(isinstance(book, MistakeBook | None), "book", "be None or a codea1_env.MistakeBook", book)
        require(on_score is None or callable(on_score), "on_score", "be None or callable", on_score)
        require_choice("on_failure", on_failure, ("unscored", "apart", "raise"))
        self._on_score = on_score
        self._on_failure = on_failure
        self.config = config or RewardConfig()
        self.config.require_parts()
        self.book = book if book is not None else MistakeBook()
        self._sandbox = sandbox
        self._is_closed = False
        allowed = Tolerances.of(tolerance).or_laxer(self.config.compare)
        read_bytes = bytes_of("read_cache_mb", read_cache_mb)
        self._judge = Judge(sandbox, allowed, execution_cache_mb=execution_cache_mb, reference_cache_mb=read_cache_mb)
        self._own_tests = OwnTests(self._judge, read_bytes)
        self._limits = RunLimits(self._judge, self._own_tests, self.config.time_limit, self.config.memory_mb)
        self._told: set[tuple[str, str]] = set()
        self._read: BoundedCache[tuple[str, str, str], Suite] = BoundedCache(read_bytes)
        self._read_programs: BoundedCache[tuple[str, str, str], Program] = BoundedCache(read_bytes)
        self.seconds: dict[str, float] = {}
        """Of the last batch that was scored, by part: `parsing`, `judging` (the sandbox is in it), `rewarding`."""

    @property
    def sandbox(self) -> Sandbox:
        """Where its programs run. Do not close it by itself."""
        return self._sandbox

    @own_exits()
    def play(
        self,
        matches: Sequence[Match],
        *,
        update_book: bool = True,
        books: Sequence[MistakeBook] | None = None,
        alpha: float | None = None,
    ) -> list[MatchScore]:
        """Score every match, in order. All replays are taken before the batch; the book is updated after it, in order.

        `books`: a Mistake Book for each match, instead of the arena's. Each match then scores as it would alone in an
        arena with that book; only the passes of the sandbox are shared.
        `alpha`: replaces the configuration's in this batch. If the sandbox fails, `on_failure` says what happens; by
        default every reward of the batch is None and the book does not change. Raises UnusableReference if the oracle
        is a reference that is missing or does not work, SandboxUnsafe if the machine is not safe, and
        ConfigurationError if golden tests are asked for and a problem has none, for anything but matches, and after
        `close`.
        """
        self._require_open()
        matches = _listed("matches", "be Match objects in a list", matches)
        for match in matches:
            require(isinstance(match, Match), "every match", "be a codea1_env.Match", match)
        games = _games(matches, self.book, books)
        config = self.config.by_reference if _are_measured(matches) else self.config.with_alpha(alpha)
        self.seconds = {}
        results = self._attempted("matches have no score", functools.partial(self._play, config=config), games)
        scores = [
            _unscored(match, config, str(result)) if isinstance(result, SandboxError) else result
            for match, result in zip(matches, results, strict=True)
        ]
        if self._on_score is not None:  # before the book changes: where it raises, the batch may be played again
            self._on_score([self._as_judged(match) for match in matches], scores, config)
        if update_book:
            for game, result in zip(games, results, strict=True):
                if not isinstance(result, SandboxError):
                    _remember(game.book, result)
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
        """With the tolerance and the limits that counted: a problem is recorded, and an arena is not."""
        problem = self._limits.known(match.problem)
        allowed = self._judge.tolerances(problem)
        if allowed != problem.tolerances:
            problem = dataclasses.replace(problem, tolerance=0.0, compare=allowed)
        return match if problem is match.problem else dataclasses.replace(match, problem=problem)

    def _timed(self, games: Sequence[Game]) -> list[Game]:
        """With their limits, the time in seconds."""
        problems = self._limits.settled([game.match.problem for game in games])
        return [
            dataclasses.replace(game, match=dataclasses.replace(game.match, problem=problem))
            for game, problem in zip(games, problems, strict=True)
        ]

    def remember(self, scores: Sequence[MatchScore]) -> None:
        """Update the book with matches that were played with `update_book=False`, in order."""
        for score in scores:
            _remember(self.book, score)

    def _play(self, games: Sequence[Game], config: RewardConfig) -> list[MatchScore]:
        games = self._timed(games)  # before anything else runs: a limit follows from the problem alone
        started = time.perf_counter()
        matches = [game.match for game in games]
        programs = [[self._program(match.problem, code, config).source for code in match.codes] for match in matches]
        refused = [refused_by(sources, config) for sources in programs]
        every = [(match, text) for match in matches for row in match.suites for text in row]
        suites = [(match.problem, self._suite(text, match, config)) for match, text in every]
        parsed = time.perf_counter()
        replays = self._replays(games)
        golden = [self._golden(match.problem, config) for match in matches]
        read = read_suites(self._judge, suites, config)
        asked = _like_suites(matches, [suite.calls for suite in read])
        turns = [
            program_turns(match, sources, rows, replayed, trusted, config)
            for match, sources, rows, replayed, trusted in zip(matches, programs, asked, replays, golden, strict=True)
        ]
        ran = self._run(turns, refused, [game.number for game in games])
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
        replays = self._with_right(matches, replays) if config.oracle == "reference" else replays
        ignored = _like_suites(matches, [suite.unread for _, suite in suites])
        known = zip(matches, programs, refused, tests, replays, ignored, golden, strict=True)
        bouts = [Bout(*parts) for parts in known]
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

    def _run(
        self, turns: Sequence[Sequence[ProgramTurns]], refused: Sequence[Sequence[str]], numbers: Sequence[int]
    ) -> dict[Turn, JobResult]:
        """What all turns of a batch came to, in one pass. A program that may not run is one that does not load.
        `numbers`: of each match, `Game.number`."""
        every: dict[Turn, str] = {}
        games: list[int] = []
        for match, rules, number in zip(turns, refused, numbers, strict=True):
            for program, rule in zip(match, rules, strict=True):
                every.update(dict.fromkeys(program.all, rule))
                games += [] if rule else [number] * len(program.all)
        results = iter(self._judge.run([turn for turn, rule in every.items() if not rule], games))
        return {
            turn: JobResult((), Outcome(OutcomeKind.ERROR, error=f"<refused: {rule}>")) if rule else next(results)
            for turn, rule in every.items()
        }

    def program(self, problem: Problem, response: str) -> Program:
        """A response as `play` reads it; read once, however often it is asked for."""
        return self._program(problem, response, self.config)

    def _program(self, problem: Problem, text: str, config: RewardConfig) -> Program:
        require(isinstance(text, str), "response", "be a text", text)
        key = (text, f"{problem.kind} {problem.entry_point}", f"{config.fidelity} {config.trim}")
        program = self._read_programs.get(key)
        if program is None:
            program = config.program(problem, text)
            self._read_programs.put(key, program, len(text) * _BYTES_PER_CHARACTER)
        return program

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
        """Raise ConfigurationError or ProblemFormatError if `play` needs golden tests and a problem has no readable
        one."""
        for problem in problems:
            self._golden(problem, self.config)

    def _replays(self, games: Sequence[Game]) -> list[list[Replay]]:
        """The Mistake Book tests of every question, as data."""
        limit = self.config.replay_limit
        problems = [game.match.problem for game in games]
        asked = [limit] * len(games)
        while True:
            cases = [
                game.book.replay(game.match.problem.problem_id, most) for game, most in zip(games, asked, strict=True)
            ]
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

    def _with_right(self, matches: Sequence[Match], replays: Sequence[list[Replay]]) -> list[list[Replay]]:
        """What the book claims, with the values that it is claimed of."""
        claims = [
            (match.problem, [each.expectation for each in row]) for match, row in zip(matches, replays, strict=True)
        ]
        return [
            [Replay(each.case, test) for each, test in zip(*pair, strict=True)]
            for pair in zip(replays, with_right_values(self._judge, claims), strict=True)
        ]

    def grade(self, problem: Problem, responses: Sequence[str], tests: Sequence[TestCase]) -> list[Grade]:
        """Run `tests`, whose expected values are trusted, on every response's program. Those that cannot be read are
        left out: their verdicts are None.

        Programs are read strictly whatever the rewards' fidelity, so that measurements of all runs can be compared.
        """
        return self.grade_many([(problem, responses, tests)])[0]

    def grade_scripts(self, items: Sequence[tuple[Problem, Sequence[str]]]) -> list[list[Grade]]:
        """Every response's program under its question's test script: unsealed, so `allow_unsealed` must be set. A
        verdict for each test that ran; if the sandbox fails, none (`on_failure`).

        Raises ConfigurationError.
        """
        self._require_open()
        require(self.config.allow_unsealed, "allow_unsealed", "be True to grade by test scripts", False)
        items = _listed("items", "be (problem, responses) tuples in a list", items)
        for problem, _ in items:
            require(bool(problem.test_script), "test_script", f"be there for {problem.problem_id!r}", "none")
        results = self._attempted("questions have no grades", self._scripted, items)
        return [
            [Grade(None, ()) for _ in responses] if isinstance(result, SandboxError) else result
            for (_, responses), result in zip(items, results, strict=True)
        ]

    def _scripted(self, items: Sequence[tuple[Problem, Sequence[str]]]) -> list[list[Grade]]:
        problems = self._limits.settled([problem for problem, _ in items])
        waiting = [
            (problem, self._program(problem, text, self.config).source)
            for problem, (_, texts) in zip(problems, items, strict=True)
            for text in texts
        ]
        verdicts = iter(judge_scripts(self._sandbox, waiting))
        return [[_unsealed(next(verdicts)) for _ in texts] for _, texts in items]

    def grade_many(
        self, items: Sequence[tuple[Problem, Sequence[str], Sequence[TestCase]]], *, trim: bool | None = None
    ) -> list[list[Grade]]:
        """`grade` for many questions in one sandbox pass. If the sandbox fails, every verdict is None (`on_failure`).
        `trim`: whether programs are trimmed; None: as the configuration says.

        Raises ProblemFormatError where no test of a question is a call of its entry point with plain arguments, before
        anything runs, and ConfigurationError for items of another shape and after `close`.
        """
        self._require_open()
        items = [_item(given) for given in _listed("items", "be (problem, responses, tests) tuples in a list", items)]
        config = dataclasses.replace(self.config, fidelity="strict", trim=self.config.trim if trim is None else trim)
        results = self._attempted("questions have no grades", functools.partial(self._graded, config=config), items)
        return [
            [Grade(None, (None,) * len(tests)) for _ in responses] if isinstance(result, SandboxError) else result
            for (_, responses, tests), result in zip(items, results, strict=True)
        ]

    def _graded(
        self, items: Sequence[tuple[Problem, Sequence[str], Sequence[TestCase]]], config: RewardConfig
    ) -> list[list[Grade]]:
        problems = self._limits.settled([problem for problem, _, _ in items])
        items = [(problem, texts, tests) for problem, (_, texts, tests) in zip(problems, items, strict=True)]
        rows = self._own_tests.read([(problem, tests) for problem, _, tests in items])
        rows = [list(self._some(problem, row)) for (problem, _, _), row in zip(items, rows, strict=True)]
        waiting = []
        for (problem, responses, _), row in zip(items, rows, strict=True):
            expected = tuple(test.expectation for test in row if test.expectation)
            sources = [self._program(problem, text, config).source for text in responses]
            waiting += [Trial(problem, source, expected) for source in sources]
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
    require(is_several(given), name, must, given)
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
    rows: Sequence[Sequence[Sequence[bytes]]],
    turns: Sequence[ProgramTurns],
    ran: Mapping[Turn, JobResult],
    config: RewardConfig,
) -> list[list[tuple[bytes | None, ...] | None]]:
    """What every solution returned for every suite, where the solutions are the oracle."""
    if config.oracle not in ("majority", "dual"):
        return []
    suites = list(itertools.chain.from_iterable(rows))
    return [
        [plain_values(turn, ran[turn], calls) for turn, calls in zip(program.suites, suites, strict=True)]
        for program in turns
    ]


def is_sandbox(given: object) -> bool:
    return not isinstance(given, type) and callable(getattr(given, "run", None)) and hasattr(given, "version")


@dataclass(frozen=True, slots=True)
class Game:
    """A match, the Mistake Book that it is played with, and which of the batch's matches it may share programs with:
    those of its number."""

    match: Match
    book: MistakeBook
    number: int = 0


def _games(matches: Sequence[Match], book: MistakeBook, books: Sequence[MistakeBook] | None) -> list[Game]:
    """Raises ConfigurationError for books that are not one for each match."""
    if books is None:
        return [Game(match, book) for match in matches]
    books = _listed("books", "be None or MistakeBook objects in a list", books)
    are_books = len(books) == len(matches) and all(isinstance(each, MistakeBook) for each in books)
    must = f"be None or {len(matches)} codea1_env.MistakeBook objects, one for each match"
    require(are_books, "books", must, books)
    require(len({id(each) for each in books}) == len(books), "books", "be different objects", books)
    return [Game(*game, number) for number, game in enumerate(zip(matches, books, strict=True))]


def _are_measured(matches: Sequence[Match]) -> bool:
    """Whether the batch is for measuring. Raises ConfigurationError for a batch that is both."""
    kinds = {match.by_reference for match in matches}
    if len(kinds) > 1:
        raise ConfigurationError("by_reference must be the same for all matches of a batch, got both: play them apart")
    return True in kinds


def _remember(book: MistakeBook, score: MatchScore) -> None:
    record_changes(book, score.problem_id, book_changes(score, rate=book.config.rates))


def record_changes(book: MistakeBook, problem_id: str, changes: Visit) -> None:
    """Write one match's changes into the book."""
    book.record(
        problem_id,
        changes.passes,
        changes.failures,
        failed_replays=changes.failed_replays,
        rated=changes.rated,
    )


def _grade(result: TrialResult, tests: Sequence[OwnTest]) -> Grade:
    verdicts = iter(result.verdicts)
    return Grade(result.executes, tuple(next(verdicts) if test.expectation else None for test in tests), result.denied)


def _unsealed(verdict: ScriptVerdict) -> Grade:
    """A program that fails as a whole passes none, whatever its tests say; so does one whose tests are all skipped."""
    told = [test.outcome == "passed" for test in verdict.tests if test.outcome != "skipped"]
    if verdict.failure or not told:
        return Grade(bool(verdict.tests), (Verdict.FAIL,))
    return Grade(True, tuple(Verdict.PASS if passed else Verdict.FAIL for passed in told))


def _unscored(match: Match, config: RewardConfig, why: str) -> MatchScore:
    """A match that infrastructure kept from being scored."""
    programs = [config.program(match.problem, code).source for code in match.codes]
    return MatchScore(
        match.problem.problem_id,
        tuple(CodeScore(None, None, source) for source in programs),
        tuple(
            tuple(SuiteScore(None, None, Duel(match.problem.problem_id, source, None, 0.0, (), (), why)) for _ in row)
            for source, row in zip(programs, match.suites, strict=True)
        ),
    )
