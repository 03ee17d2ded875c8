"""Scores a stream of recorded matches on several processes: results in the order of the input, in flat memory.

With a Mistake Book, a line is scored after all earlier lines of its question, so updates follow the order of the input
whatever the number of workers. Does not read or write files: see `codea1_env.cli`.
"""

from __future__ import annotations

import ctypes
import dataclasses
import multiprocessing
import signal
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess

from codea1_env.arena.arena import Arena, record_changes
from codea1_env.arena.failures import apart
from codea1_env.arena.match import BookChanges, MatchScore, book_changes
from codea1_env.class_paths import as_own
from codea1_env.closing import interrupts_later
from codea1_env.errors import Codea1Error, ConfigurationError, FormatError, SandboxError, UnusableReference
from codea1_env.judging.judge import EXECUTION_CACHE_MB
from codea1_env.mistake_book.book import MistakeBook
from codea1_env.reading.test_case import TestCase
from codea1_env.records.matches import problem_id_of, read_match, write_detailed_score, write_error, write_score
from codea1_env.rewards.code_a1 import RewardConfig
from codea1_env.sandbox import open_sandbox
from codea1_env.sandbox.ray_cluster import joined

_AHEAD = 4
"""Lines in flight per worker: enough to keep all busy, few enough to keep memory flat."""


@dataclass(frozen=True, slots=True)
class ScoredLine:
    """What one input line came to."""

    number: int
    """From 1."""
    output: bytes
    """One line, newline included."""
    error: str = ""
    """Why it has no score, or why some rewards are null."""
    verdicts: int = 0
    """Tests that ran on programs; replays included."""
    suites: int = 0
    unreadable: tuple[tuple[str, ...], ...] = ()
    """For each of the suites that hold no test that can be read: the names of what they hold instead."""
    changes: BookChanges = field(default=BookChanges((), ()))
    programs: int = 0
    denied: tuple[tuple[str, ...], ...] = ()
    """For each of the programs that the sandbox denied something: what (`CodeScore.denied`)."""


@dataclass(frozen=True, slots=True)
class ScoringPlan:
    """How to score. Everything a worker process needs to begin."""

    config: RewardConfig = field(default_factory=RewardConfig)
    sandbox: str = "local"
    workers: int = 1
    address: str | None = None
    """Of the Ray cluster, for the sandbox "ray"; None: the one that RAY_ADDRESS names, else one of our own."""
    execution_cache_mb: int = EXECUTION_CACHE_MB
    """MiB of outcomes that each worker remembers across lines; 0: none."""
    rate_tests: bool = False
    """Report every valid test's quality to the book; `score_lines` asks the book whether it wants it."""
    details: bool = False
    """Write programs, and what they returned, beside the scores (`matches.py`)."""


def score_lines(lines: Iterable[bytes], plan: ScoringPlan, book: MistakeBook | None = None) -> Iterator[ScoredLine]:
    """`score_numbered` of every line that is not blank."""
    yield from score_numbered(numbered_lines(lines), plan, book)


def numbered_lines(lines: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """Those that are not blank, with their numbers from 1."""
    return ((number, line) for number, line in enumerate(lines, 1) if line.strip())


def score_numbered(
    numbered: Iterable[tuple[int, bytes]], plan: ScoringPlan, book: MistakeBook | None = None
) -> Iterator[ScoredLine]:
    """Score these lines. `book` is read from and written to as the results come out.

    Raises SandboxUnsafe where this machine cannot isolate, SandboxError where nothing runs in the sandbox any more, and
    Codea1Error where worker processes keep dying.
    """
    plan = dataclasses.replace(plan, rate_tests=book is not None and book.config.rates)
    if plan.sandbox == "ray":
        with joined(plan.address, plan.workers) as address:  # one cluster for all worker processes, an actor each
            yield from _score(numbered, dataclasses.replace(plan, address=address), book)
    else:
        yield from _score(numbered, plan, book)


def _score(numbered: Iterable[tuple[int, bytes]], plan: ScoringPlan, book: MistakeBook | None) -> Iterator[ScoredLine]:
    if plan.workers == 1:
        with _LineScorer(plan) as worker:
            for number, line in numbered:
                replays = _replays(book, line, plan)
                yield take_up(worker.score(number, line, replays), line, book)
        return
    yield from _score_in_pool(numbered, plan, book)


@dataclass(slots=True)
class _Ticket:
    """One line on its way through the worker processes."""

    number: int
    line: bytes
    problem_id: str | None
    is_given: bool = False
    scored: ScoredLine | None = None
    losses: int = 0


class _Process:
    """One worker process: it scores one line at a time.

    A pipe each, not an executor's queues: those need named semaphores, which outlive a process group that is killed.
    """

    def __init__(self, plan: ScoringPlan) -> None:
        context = multiprocessing.get_context("spawn")  # nothing of this process's threads and locks is inherited
        self.connection, theirs = context.Pipe()
        self.ticket: _Ticket | None = None
        self._process: SpawnProcess = context.Process(target=_serve, args=(theirs, plan), daemon=True)
        self._process.start()
        theirs.close()

    def give(self, ticket: _Ticket, replays: tuple[TestCase, ...]) -> None:
        self.ticket, ticket.is_given = ticket, True
        try:
            self.connection.send((ticket.number, ticket.line, replays))
        except OSError:  # it has died: `take` meets that
            return

    def take(self) -> bool:
        """Receive the answer; False where the process died instead. Raises what the worker raised."""
        assert self.ticket is not None
        ticket, self.ticket = self.ticket, None
        try:
            answer = self.connection.recv()
        except (EOFError, OSError):
            ticket.is_given = False
            ticket.losses += 1
            if ticket.losses > 3:
                raise Codea1Error(
                    f"worker processes must stay alive, {ticket.losses} died scoring line {ticket.number}"
                ) from None
            return False
        if isinstance(answer, BaseException):
            raise answer
        ticket.scored = answer
        return True

    def close(self) -> None:
        """Let it end, its sandbox closed."""
        self.connection.close()
        self._process.join()

    def kill(self) -> None:
        """End it at once; its sandbox ends with it."""
        self.connection.close()
        self._process.kill()
        self._process.join()


@contextmanager
def _processes_start() -> Iterator[None]:
    """Around the start of worker processes: Ctrl-C is this process's to handle, and they inherit that it is blocked."""
    with interrupts_later():
        resource_tracker.ensure_running()  # else the first start of a process does it, and unblocks interrupts there
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            yield
        except OSError as error:
            raise Codea1Error(
                f"worker processes must start, got: {error} (fewer --workers, or see ulimit -n and -u)"
            ) from error
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _score_in_pool(
    numbered: Iterable[tuple[int, bytes]], plan: ScoringPlan, book: MistakeBook | None
) -> Iterator[ScoredLine]:
    processes: list[_Process] = []
    tickets: deque[_Ticket] = deque()
    source = iter(numbered)
    waiting: _Ticket | None = None
    exhausted = False
    try:
        with _processes_start():
            for _ in range(plan.workers):
                processes.append(_Process(plan))
        while tickets or not exhausted:
            while not exhausted and len(tickets) < _AHEAD * plan.workers:
                if waiting is None:
                    upcoming = next(source, None)
                    if upcoming is None:
                        exhausted = True
                        break
                    number, line = upcoming
                    waiting = _Ticket(number, line, problem_id_of(line) if book is not None else None)
                if waiting.problem_id is not None and any(t.problem_id == waiting.problem_id for t in tickets):
                    break  # its replays are not known before the earlier line of this question is done
                tickets.append(waiting)
                waiting = None
            _hand_out(tickets, processes, plan, book)
            if tickets and tickets[0].scored is None:
                _take(processes, plan)
            while tickets and (scored := tickets[0].scored) is not None:
                yield take_up(scored, tickets.popleft().line, book)
        for process in processes:
            process.close()
    except BaseException:  # an interrupt above all: nobody waits for lines that are still being scored
        for process in processes:
            process.kill()
        raise


def _hand_out(
    tickets: Iterable[_Ticket], processes: Sequence[_Process], plan: ScoringPlan, book: MistakeBook | None
) -> None:
    """A line to every process that has none, the earliest first."""
    waiting = (ticket for ticket in tickets if not ticket.is_given)
    for process in processes:
        if process.ticket is None and (ticket := next(waiting, None)) is not None:
            process.give(ticket, _replays(book, ticket.line, plan))


def _take(processes: list[_Process], plan: ScoringPlan) -> None:
    """Wait for one answer at least. A process that died is replaced, its line starts again."""
    busy = {process.connection: process for process in processes if process.ticket is not None}
    for connection in wait(list(busy)):
        assert isinstance(connection, Connection)
        process = busy[connection]
        if not process.take():
            process.kill()
            with _processes_start():
                processes[processes.index(process)] = _Process(plan)


def _replays(book: MistakeBook | None, line: bytes, plan: ScoringPlan) -> tuple[TestCase, ...]:
    problem_id = problem_id_of(line) if book is not None else None
    return book.replay(problem_id, plan.config.replay_limit) if book is not None and problem_id is not None else ()


def take_up(scored: ScoredLine, line: bytes, book: MistakeBook | None) -> ScoredLine:
    """Write a result's changes into the book. A line that nothing came of is no visit of its question."""
    is_played = not scored.error or scored.changes != BookChanges((), ())
    problem_id = problem_id_of(line) if book is not None and is_played else None
    if book is not None and problem_id is not None:
        record_changes(book, problem_id, scored.changes)
    return scored


class _LineScorer:
    """Scores one line at a time in this process."""

    def __init__(self, plan: ScoringPlan) -> None:
        self._sandbox = open_sandbox(plan.sandbox, address=plan.address)
        self._rate, self._details = plan.rate_tests, plan.details
        cache_mb = plan.execution_cache_mb
        self._arena = Arena(self._sandbox, plan.config, execution_cache_mb=cache_mb, on_failure="raise")

    def score(self, number: int, line: bytes, replays: tuple[TestCase, ...]) -> ScoredLine:
        try:
            match = read_match(line)
            self._arena.book = MistakeBook()
            self._arena.book.record(match.problem.problem_id, (), replays)
            (score,) = apart(self._sandbox, partial(self._arena.play, update_book=False), [match])
        except (ConfigurationError, FormatError, UnusableReference) as error:
            return ScoredLine(number, write_error(number, str(error)), str(error))
        if isinstance(score, SandboxError):
            return ScoredLine(number, write_error(number, str(score)), str(score))
        changes = book_changes(score, rate=self._rate)
        output = write_detailed_score(score, match.problem, self._arena.config) if self._details else write_score(score)
        suites = [suite.duel for row in score.suites for suite in row]
        unreadable = tuple(duel.unreadable for duel in suites if duel.unreadable)
        denied = tuple(code.denied for code in score.codes if code.denied)
        return ScoredLine(
            number,
            output,
            _failure(score),
            _verdicts(score),
            len(suites),
            unreadable,
            changes,
            len(score.codes),
            denied,
        )

    def __enter__(self) -> _LineScorer:
        return self

    def __exit__(self, *error: object) -> None:
        self._arena.close()


def _failure(score: MatchScore) -> str:
    errors = {suite.duel.infrastructure_error for row in score.suites for suite in row} - {""}
    if any(code.executes is None for code in score.codes):
        errors.add("infrastructure failed")
    return "; ".join(sorted(errors))


def _verdicts(score: MatchScore) -> int:
    new = sum(test.verdict is not None for row in score.suites for suite in row for test in suite.duel.tests)
    return new + sum(len(code.replays) for code in score.codes)


def _serve(connection: Connection, plan: ScoringPlan) -> None:
    """In a worker process: score what comes until nothing comes any more.

    Ctrl-C is the parent's to handle, and the parent's death is this process's, busy or not.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG, of the thread that started this process
    try:
        with _LineScorer(plan) as worker:
            while True:
                connection.send(worker.score(*connection.recv()))
    except (EOFError, BrokenPipeError):  # the parent wants no more
        return
    except Exception as error:
        connection.send(as_own(error))  # a traceback does not go through a pipe


__all__ = ["ScoredLine", "ScoringPlan", "numbered_lines", "score_lines", "score_numbered", "take_up"]
