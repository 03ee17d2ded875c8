"""What `codea1 view` reads: a run's directory with its Mistake Book, the output of `codea1 score`, or a recording of
games.

Keeps at most so many duels, spread evenly over what there is. The book is there by question: its tests, and how they
fared where the shown games replayed them.

    book   source, note, questions: [[problem_id, tests]]
    test   [call, expected, failures or null, {verdict: programs}, [[game's number, place among its replays]]]

`failures`: how often programs failed the test, minus how often they passed it when it was replayed; null where only
games tell of it. A test is known by its texts as the page cuts them. Does not execute anything unless it is given a
sandbox.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

from codea1_env.checks import json_object, require
from codea1_env.errors import BookFormatError, ConfigurationError, FormatError, about
from codea1_env.judging.returned import cut
from codea1_env.mistake_book.parts import place_in, read_book
from codea1_env.mistake_book.policies import Shelf
from codea1_env.records.addresses import COMPLETE
from codea1_env.records.duel_sample import FOLDER
from codea1_env.records.matches import detailed_score
from codea1_env.records.recording import RecordedMatch, read_recording, score_again
from codea1_env.sandbox.protocol import Sandbox
from codea1_env.training.run.checkpoints import step_of
from codea1_env.viewer.games import MOST_ID, MOST_TEST, Json, recorded_game, require_score, scored_game

Watched = Callable[[Iterable[bytes]], Iterator[bytes]]
_ROUND_FILE = re.compile(r"round-(\d+)\.jsonl")


@dataclass(slots=True)
class Found:
    """The games that go onto the page."""

    games: list[Json] = field(default_factory=list)
    duels: int = 0
    """On the page."""
    seen: int = 0
    """Duels there were."""
    unjudged: int = 0
    """Games on the page whose verdicts are not in the file."""
    failed: int = 0
    """Lines that say that they could not be scored."""
    stride: int = 1
    """Of the games that there were, every so many-th is on the page."""
    book: Json | None = None
    """The Mistake Book, of `book_on_page`; None where there is nothing of one."""
    _games_seen: int = 0

    def add(self, game: Json, most: int) -> None:
        """Take a game, or not: where there are more duels than `most`, every second one of those kept is let go."""
        count = duels_in(game)
        self.seen += count
        self._games_seen += 1
        if (self._games_seen - 1) % self.stride:
            return
        self.games.append(game | {"number": self._games_seen})
        self.duels += count
        while self.duels > most and len(self.games) > 1:
            self.games = self.games[::2]
            self.stride *= 2
            self.duels = sum(map(duels_in, self.games))


def duels_in(game: Json) -> int:
    """Pairs of a program and a suite; a program without suites counts as one."""
    return sum(max(len(program["suites"]), 1) for program in game["programs"])


def read_games(path: Path, most: int, sandbox: Sandbox | None = None, watched: Watched = iter) -> Found:
    """The games of a file or of a run, at most about `most` duels. `sandbox`: play them again there, instead of
    believing what the file says. `watched`: sees every line go by.

    Raises FormatError with the line's number, and ConfigurationError for what holds no duels.
    """
    sample = Found()
    book = run_book(path) if path.is_dir() else RunBook()
    for file, round_number in _files(path, may_lack=bool(book.shelves)):
        origin = "" if round_number is None else f"round {round_number}"
        try:
            with file.open("rb") as lines:
                for game in _games(file, watched(lines), origin, sandbox, sample):
                    sample.add(game, most)
        except FormatError as error:
            raise FormatError(f"{file}: {error}") from None
    sample.book = book_on_page(book, sample.games)
    sample.unjudged = sum(_is_unjudged(game) for game in sample.games)
    return sample


def _files(path: Path, *, may_lack: bool) -> list[tuple[Path, int | None]]:
    """The files to read, with the rounds that they are of. `may_lack`: a run without any can be viewed."""
    if path.is_file():
        return [(path, None)]
    require(path.is_dir(), "the input", "be a file or a run's directory", path)
    folder = path / FOLDER
    names = [(file, _ROUND_FILE.fullmatch(file.name)) for file in (folder.iterdir() if folder.is_dir() else ())]
    rounds = sorted((int(name[1]), file) for file, name in names if name)
    if not rounds and not may_lack:
        raise ConfigurationError(
            f"a run's directory must have {FOLDER}/round-N.jsonl to be viewed, got none in {path}; runs write them "
            "unless told --keep-duels 0"
        )
    return [(file, number) for number, file in rounds]


def _games(file: Path, lines: Iterator[bytes], origin: str, sandbox: Sandbox | None, sample: Found) -> Iterator[Json]:
    first = next(lines, b"")
    if b'"codea1_recording"' in first[:200]:
        for recorded in read_recording(chain([first], lines)):
            yield _recorded(recorded, origin, sandbox)
    elif sandbox is not None:
        raise ConfigurationError(
            f"--execute must be given a recording or a run, got {file}, which has no programs to run: score again with "
            "codea1 score --details"
        )
    else:
        yield from _scored(chain([first], lines), sample)


def _recorded(recorded: RecordedMatch, origin: str, sandbox: Sandbox | None) -> Json:
    score = recorded.score
    if sandbox is not None:
        played = score_again(recorded, sandbox)
        score = json.loads(json.dumps(detailed_score(played, recorded.match.problem, recorded.config)))
    elif score is not None:
        with about(f"line {recorded.number}"):
            require_score(score, len(recorded.match.codes))
    return recorded_game(recorded, origin, score)


def _scored(lines: Iterator[bytes], sample: Found) -> Iterator[Json]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        record = json_object(line, f"line {number}", FormatError)
        if "error" in record and "line" in record:
            sample.failed += 1
            continue
        codes = record.get("codes")
        if isinstance(codes, list) and any(isinstance(code, str) for code in codes):
            raise FormatError(
                f"line {number} must be of codea1 score, got a match without scores; run codea1 score --details first"
            )
        with about(f"line {number}"):
            game = scored_game(record)
        yield game


def _is_unjudged(game: Json) -> bool:
    return any(
        test[1] == "unknown" for program in game["programs"] for suite in program["suites"] for test in suite["tests"]
    )


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


def book_on_page(found: RunBook, games: Sequence[Json]) -> Json | None:
    """What the page shows of a book and of replays; None where there is neither. Of more than MOST_TESTS tests the ones
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
    for name, *test in rows[:MOST_TESTS]:
        kept.setdefault(name, []).append(test)
    note = cut(f"The book cannot be read: {found.trouble}", MOST_TEST) if found.trouble else ""
    if len(rows) > MOST_TESTS:
        note = (
            f"Shown are {MOST_TESTS:,} of {len(rows):,} tests, of {len(kept):,} of {len(questions):,} questions: "
            "those that the shown games replayed, then those that failed most often."
        )
    return {"source": found.source, "note": note, "questions": [[name, tests] for name, tests in kept.items()]}


def _add_replays(questions: dict[str, _Shelf], game: Json) -> None:
    """How the programs of a game fared in what was replayed to them; each met it once, whatever its suites."""
    for place, (call, expected) in enumerate(game["replays"]):
        test = questions.setdefault(game["id"], {}).setdefault((call, expected), [None, {}, []])
        _, verdicts, shown = test
        for program in game["programs"]:
            met = program["suites"][0]["replays"] if program["suites"] else program.get("replays", ())
            if place < len(met) and met[place] is not None:
                verdicts[met[place]] = verdicts.get(met[place], 0) + 1
        if len(shown) < MOST_GAMES:
            shown.append([game["number"], place])
