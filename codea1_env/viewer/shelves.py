"""The Mistake Book as the page has it: by question, its tests, and how they fared where the shown games replayed them.

    book   source, note, questions: [[problem_id, tests]]
    test   [call, expected, failures or null, {verdict: programs}, [[game's number, place among its replays]]]

`failures`: how often programs failed the test, minus how often they passed it when it was replayed; null where only
games tell of it. A test is known by its texts as the page cuts them. Does not execute anything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from codea1_env.errors import BookFormatError
from codea1_env.judging.returned import cut
from codea1_env.mistake_book.parts import place_in
from codea1_env.mistake_book.policies import Shelf
from codea1_env.mistake_book.saved import read_book
from codea1_env.records.addresses import COMPLETE
from codea1_env.training.run.checkpoints import step_of
from codea1_env.viewer.games import MOST_ID, MOST_TEST, Json

MOST_TESTS = 4096
"""Of a book on the page."""
MOST_GAMES = 8
"""That a test names."""
_Shelf = dict[tuple[str, str], list[Any]]
"""By call and expected value, what else the page has of a test."""


@dataclass(frozen=True, slots=True)
class RunBook:
    """The latest book of a run."""

    source: str = ""
    """Its file, in the run's directory; empty where there is none."""
    shelves: Mapping[str, Shelf] = field(default_factory=dict)
    """The tests by question."""
    trouble: str = ""
    """Why it cannot be read."""


def run_book(run: Path) -> RunBook:
    """A run saves its book in each checkpoint, and in its directory once it ends."""
    checkpoints = [file.parent for file in run.glob(f"*/checkpoint-*/{COMPLETE}")]
    for folder in [*sorted(checkpoints, key=step_of, reverse=True), run]:
        place = place_in(folder)
        source = str(place.relative_to(run))
        try:
            return RunBook(source, read_book(place).shelves)
        except (FileNotFoundError, NotADirectoryError):  # of the tester's, or deleted just now
            continue
        except (BookFormatError, OSError) as error:
            return RunBook(source, trouble=str(error))
    return RunBook()


def book_on_page(found: RunBook, games: Sequence[Json], most: int = MOST_TESTS) -> Json | None:
    """What the page shows of a book and of replays; None where there is neither. Of more than `most` tests the ones
    that the shown games replayed come first, then those that failed most often."""
    questions: dict[str, _Shelf] = {}
    for problem_id, shelf in found.shelves.items():
        tests = questions.setdefault(str(cut(problem_id, MOST_ID)), {})
        for case, failures in shelf.frequencies.items():
            tests[str(cut(case.call, MOST_TEST)), str(cut(case.expected, MOST_TEST))] = [failures, {}, []]
    for game in games:
        _add_replays(questions, game)
    rows = [[name, *texts, *test] for name, shown in questions.items() for texts, test in shown.items()]
    if not rows and not found.source:
        return None
    rows.sort(key=lambda row: (not row[5], -(row[3] or 0)))  # as they stand among equals
    kept: dict[str, list[Any]] = {}
    for name, *test in rows[:most]:
        kept.setdefault(name, []).append(test)
    note = cut(f"The book cannot be read: {found.trouble}", MOST_TEST) if found.trouble else ""
    if len(rows) > most:
        note = (
            f"Shown are {most:,} of {len(rows):,} tests, of {len(kept):,} of {len(questions):,} questions: those that "
            "the shown games replayed, then those that failed most often."
        )
    return {"source": found.source, "note": note, "questions": [[name, tests] for name, tests in kept.items()]}


def _add_replays(questions: dict[str, _Shelf], game: Json) -> None:
    """How the programs of a game fared in what was replayed to them; each met it once, whatever its suites."""
    for place, (call, expected) in enumerate(game["replays"]):
        test = questions.setdefault(game["id"], {}).setdefault((call, expected), [None, {}, []])
        _, verdicts, shown = test
        for program in game["programs"]:
            met = program["suites"][0]["replays"] if program["suites"] else ()
            if place < len(met) and met[place] is not None:
                verdicts[met[place]] = verdicts.get(met[place], 0) + 1
        if len(shown) < MOST_GAMES:
            shown.append([game["number"], place])
