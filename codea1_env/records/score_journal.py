"""Scoring that goes on where it was: every scored line goes into a journal, with what it did to the Mistake Book.

A line that is in the journal is not scored again, but held against the input, which must be the one that it was. Does
not print, and does not decide where the output goes: see `codea1_env.cli.score`.
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from codea1_env.errors import ConfigurationError, FormatError
from codea1_env.mistake_book.book import MistakeBook
from codea1_env.mistake_book.files import packed, unpacked
from codea1_env.mistake_book.policies import RatedTest, Visit
from codea1_env.mistake_book.saved import INDEX
from codea1_env.reading.test_case import TestCase
from codea1_env.records.journal import Journal
from codea1_env.records.score_stream import ScoredLine, ScoringPlan, numbered_lines, score_numbered, take_up

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
        if number != known.number or _digest(line) != record["input"]:
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
    for record in journal.records():
        yield str(record["output"]).encode("ascii")


def _digest(line: bytes) -> str:
    return hashlib.sha256(line.strip()).hexdigest()[:16]


def _plain(scored: ScoredLine, digest: str) -> dict[str, Any]:
    changes = scored.changes
    record: dict[str, Any] = {"kind": "line", "line": scored.number, "input": digest}
    record["output"] = scored.output.decode("ascii")
    record |= {"error": scored.error, "verdicts": scored.verdicts, "suites": scored.suites}
    record["unreadable"] = scored.unreadable
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
        )
    except (KeyError, TypeError, ValueError, IndexError, FormatError) as error:
        raise journal.damaged(at, repr(error)) from None
