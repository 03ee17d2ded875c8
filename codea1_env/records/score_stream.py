"""Scores a stream of recorded matches on several arenas: results in the order of the input, in flat memory; and goes on
where it was, by a journal.

Arenas are separate processes, on this machine or on the nodes of a Ray cluster, and share nothing; a line goes to the
one of its question, or to one that is free. With a Mistake Book, a line is scored after all earlier lines of its
question, so updates follow the order of the input whatever the number of arenas. Every scored line goes into the
journal, with what it did to the book; one that is there is not scored again, but held against the input, which must be
the one that it was. Does not print, and does not decide where the output goes: see `codea1_env.cli.score`.
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from codea1_env.arena.arena import Arena, record_changes
from codea1_env.arena.failures import apart
from codea1_env.arena.match import MatchScore, book_changes
from codea1_env.closing import Closing
from codea1_env.errors import ConfigurationError, FormatError, SandboxError, UnusableReference
from codea1_env.judging.judge import EXECUTION_CACHE_MB
from codea1_env.mistake_book.book import MistakeBook
from codea1_env.mistake_book.files import packed, unpacked
from codea1_env.mistake_book.parts import INDEX, part_of
from codea1_env.mistake_book.policies import RatedTest, Visit
from codea1_env.reading.test_case import TestCase
from codea1_env.records.journal import Journal
from codea1_env.records.matches import problem_id_of, read_match, write_detailed_score, write_error, write_score
from codea1_env.rewards.code_a1 import RewardConfig
from codea1_env.sandbox import open_sandbox
from codea1_env.sandbox.places import processes_on
from codea1_env.sandbox.processes import Unit

_AHEAD = 4
"""Lines in flight per arena: enough to keep all busy, few enough to keep memory flat."""


@dataclass(frozen=True, slots=True)
class ScoredLine:
    """The result of one input line."""

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
    changes: Visit = field(default=Visit((), ()))
    programs: int = 0
    denied: tuple[tuple[str, ...], ...] = ()
    """For each of the programs that the sandbox denied something: what (`CodeScore.denied`)."""


@dataclass(frozen=True, slots=True)
class ScoringPlan:
    """How to score. Everything a worker process needs to begin."""

    config: RewardConfig = field(default_factory=RewardConfig)
    sandbox: str = "local"
    workers: int = 1
    """Processes of all sandboxes together."""
    arenas: int | None = None
    """Processes that read, run, compare and pay lines, each with a sandbox of its own; None: as many as `workers`. With
    the sandbox "ray" they are on the nodes of the cluster."""
    address: str | None = None
    """Of the Ray cluster, for the sandbox "ray", as for `RaySandbox`."""
    execution_cache_mb: int = EXECUTION_CACHE_MB
    """MiB of outcomes that each worker remembers across lines; 0: none."""
    rate_tests: bool = False
    """Report every valid test's quality to the book; `score_numbered` asks the book whether it wants it."""
    details: bool = False
    """Write programs, and what they returned, beside the scores (`matches.py`)."""

    @property
    def processes(self) -> int:
        return self.arenas or self.workers

    @property
    def workers_each(self) -> int:
        """Of each arena's sandbox."""
        return max(1, self.workers // self.processes)


def numbered_lines(lines: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """Those that are not blank, with their numbers from 1."""
    return ((number, line) for number, line in enumerate(lines, 1) if line.strip())


def score_numbered(
    numbered: Iterable[tuple[int, bytes]], plan: ScoringPlan, book: MistakeBook | None
) -> Iterator[ScoredLine]:
    """Score these lines. `book` is read from and written to as the results come out.

    Raises SandboxUnsafe where a machine cannot isolate, and SandboxError where nothing runs in the sandbox any more and
    where processes keep dying.
    """
    plan = dataclasses.replace(plan, rate_tests=book is not None and book.config.rates)
    if plan.processes > 1 or plan.sandbox == "ray":
        yield from _score_in_processes(numbered, plan, book)
        return
    with _LineScorer(plan) as worker:
        for number, line in numbered:
            problem_id = problem_id_of(line) if book is not None else None
            yield take_up(worker.answer(number, line, _replays(book, problem_id, plan)), line, book)


@dataclass(slots=True)
class _Line:
    """One line on its way through the arenas."""

    line: bytes
    problem_id: str | None
    unit: Unit


def _score_in_processes(
    numbered: Iterable[tuple[int, bytes]], plan: ScoringPlan, book: MistakeBook | None
) -> Iterator[ScoredLine]:
    nearby = dataclasses.replace(plan, sandbox="local") if plan.sandbox == "ray" else plan
    lines: deque[_Line] = deque()
    identified = ((number, line, problem_id_of(line)) for number, line in numbered)
    upcoming = next(identified, None)
    processes = processes_on(
        plan.sandbox, plan.processes, partial(_LineScorer, nearby), plan.address, plan.workers_each
    )
    try:
        processes.start()
        while lines or upcoming is not None:
            while upcoming is not None and len(lines) < _AHEAD * plan.processes:
                number, line, problem_id = upcoming
                if book is not None and problem_id is not None and any(each.problem_id == problem_id for each in lines):
                    break  # its replays are not known before the earlier line of this question is done
                home = part_of(problem_id or "", plan.processes)
                unit = Unit((number, line, _replays(book, problem_id, plan)), home, f"scoring line {number}")
                lines.append(_Line(line, problem_id, unit))
                upcoming = next(identified, None)
            if not lines[0].unit.is_done:
                processes.work(each.unit for each in lines)
            while lines and lines[0].unit.is_done:
                done = lines.popleft()
                if isinstance(done.unit.result, BaseException):
                    raise done.unit.result
                yield take_up(done.unit.result, done.line, book)
    except BaseException:  # an interrupt above all: nobody waits for lines that are still being scored
        processes.reset()
        raise
    finally:
        processes.close()


def _replays(book: MistakeBook | None, problem_id: str | None, plan: ScoringPlan) -> tuple[TestCase, ...]:
    return book.replay(problem_id, plan.config.replay_limit) if book is not None and problem_id is not None else ()


def take_up(scored: ScoredLine, line: bytes, book: MistakeBook | None) -> ScoredLine:
    """Write a result's changes into the book. A line that nothing came of is no visit of its question."""
    is_played = not scored.error or scored.changes != Visit((), ())
    problem_id = problem_id_of(line) if book is not None and is_played else None
    if book is not None and problem_id is not None:
        record_changes(book, problem_id, scored.changes)
    return scored


class _LineScorer(Closing):
    """Scores one line at a time, in this process or in one of its own."""

    def __init__(self, plan: ScoringPlan) -> None:
        self._sandbox = open_sandbox(plan.sandbox, plan.workers_each)
        self._rate, self._details = plan.rate_tests, plan.details
        cache_mb = plan.execution_cache_mb
        self._arena = Arena(self._sandbox, plan.config, execution_cache_mb=cache_mb, on_failure="raise")

    @property
    def version(self) -> str:
        return self._sandbox.version

    def answer(self, number: int, line: bytes, replays: tuple[TestCase, ...]) -> ScoredLine:
        """Raises SandboxError where every further line would fail."""
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

    def close(self) -> None:
        self._arena.close()


def _failure(score: MatchScore) -> str:
    errors = {suite.duel.infrastructure_error for row in score.suites for suite in row} - {""}
    if any(code.executes is None for code in score.codes):
        errors.add("infrastructure failed")
    return "; ".join(sorted(errors))


def _verdicts(score: MatchScore) -> int:
    new = sum(test.verdict is not None for row in score.suites for suite in row for test in suite.duel.tests)
    return new + sum(len(code.replays) for code in score.codes)


_CASES = ("passes", "failures", "failed_replays")


def open_score_journal(path: Path, plan: ScoringPlan, book: Path | None) -> Journal:
    """The journal of scoring by `plan`. `book`: what the Mistake Book is read from. Raises what `Journal`
    raises."""
    file = book / INDEX if book and book.is_dir() else book  # an index names its files by their content
    begun_with = hashlib.sha256(file.read_bytes()).hexdigest() if file and file.exists() else ""
    header = {"command": "codea1 score", "config": dataclasses.asdict(plan.config), "details": plan.details}
    # Not synced: a line can be scored again, and a disk takes longer than that.
    return Journal(path, "codea1 score", header | {"book": begun_with}, is_synced=False)


def score_onwards(
    lines: Iterable[bytes], plan: ScoringPlan, journal: Journal, book: MistakeBook | None
) -> Iterator[ScoredLine]:
    """Every line that is not blank: those of the journal as they were scored, then the others, which go into it.

    Raises what `score_numbered` raises, OSError, FormatError for a damaged journal, and ConfigurationError where it is
    of another input.
    """
    numbered = numbered_lines(lines)
    for at, record in journal.numbered():
        known = _read(journal, at, record)
        number, line = next(numbered, (0, b""))
        if 0 < number < known.number:  # a line of the journal was removed, and the book takes them in order
            numbered = itertools.chain([(number, line)], numbered)
            journal.cut(at)
            break
        if number != known.number or _digest(line) != record.get("input"):
            raise ConfigurationError(
                f"the input must be the one of {journal.path}, got another line {known.number}; give that input, or "
                f"remove {journal.path} to begin anew"
            )
        yield take_up(known, line, book)
    digests: dict[int, str] = {}

    def watched() -> Iterator[tuple[int, bytes]]:
        for number, line in numbered:
            digests[number] = _digest(line)
            yield number, line

    for scored in score_numbered(watched(), plan, book):
        journal.append(_plain(scored, digests.pop(scored.number)))
        yield scored


def outputs(journal: Journal) -> Iterator[bytes]:
    """The output lines, in order."""
    for _, record in journal.numbered():
        yield str(record["output"]).encode("ascii")


def _digest(line: bytes) -> str:
    return hashlib.sha256(line.strip()).hexdigest()[:16]


def _plain(scored: ScoredLine, digest: str) -> dict[str, Any]:
    changes = scored.changes
    record: dict[str, Any] = {"kind": "line", "line": scored.number, "input": digest}
    record["output"] = scored.output.decode("ascii")
    record |= {"error": scored.error, "verdicts": scored.verdicts, "suites": scored.suites}
    record |= {"unreadable": scored.unreadable, "programs": scored.programs, "denied": scored.denied}
    if changes != Visit((), ()):
        record["changes"] = {name: [_packed(case) for case in getattr(changes, name)] for name in _CASES} | {
            "rated": [[*_packed(each.case), each.quality] for each in changes.rated]
        }
    return record


def _packed(case: TestCase) -> list[str | dict[str, str]]:
    return [packed(case.call), packed(case.expected)]


def _read(journal: Journal, at: int, record: dict[str, Any]) -> ScoredLine:
    """Raises FormatError."""

    def case(texts: list[Any]) -> TestCase:
        return TestCase(unpacked(texts[0], at, "changes"), unpacked(texts[1], at, "changes"))

    try:
        changes = record.get("changes", {})
        return ScoredLine(
            int(record["line"]),
            str(record["output"]).encode("ascii"),
            str(record["error"]),
            int(record["verdicts"]),
            int(record["suites"]),
            tuple(map(tuple, record["unreadable"])),
            Visit(
                rated=tuple(RatedTest(case(each), float(each[2])) for each in changes.get("rated", ())),
                **{name: tuple(map(case, changes.get(name, ()))) for name in _CASES},
            ),
            int(record.get("programs", 0)),  # journals of earlier versions have none
            tuple(map(tuple, record.get("denied", ()))),
        )
    except (LookupError, AttributeError, TypeError, ValueError, FormatError) as error:
        raise journal.damaged(at, error) from None
