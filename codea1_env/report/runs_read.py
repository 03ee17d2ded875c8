"""A run's directory, as a report needs it: what is there is read, what is missing or damaged is noted.

Does not promise that two numbers are of the same moment: a run may be writing meanwhile.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codea1_env.checks import is_number
from codea1_env.errors import BookFormatError, ConfigurationError
from codea1_env.judging.version import ANY, FIRST, require_comparable
from codea1_env.mistake_book.parts import place_in, read_book
from codea1_env.records.addresses import CONFIG_FILE, SUMMARY
from codea1_env.records.metrics_file import METRICS
from codea1_env.training.run.results import ResultRow
from codea1_env.yaml_files import read_yaml

FAILURE = "failure.txt"
KINDS = ("round", "seat", "evaluation")
MAX_FAILURE = 4000
"""Characters of a failure that are shown."""


@dataclass(frozen=True, slots=True)
class MetricsLine:
    """One line of the metrics."""

    kind: str
    """round, seat or evaluation."""
    seat: str
    """Empty where no seat is meant."""
    rounds_done: int
    values: Mapping[str, float]
    """Finite numbers only: what could not be said of the round is left out."""


@dataclass(frozen=True, slots=True)
class RunRead:
    """What a directory holds of a run."""

    name: str
    """As it was given, shortened where that stays unique."""
    directory: Path
    given: str
    """Its directory or address, as the user named it."""
    config: Mapping[str, Any]
    """Of config.yaml; empty where there is none."""
    records: tuple[MetricsLine, ...]
    """In the order of rounds."""
    final: tuple[ResultRow, ...]
    seconds: Mapping[str, float]
    """What the parts of the run took, of summary.json."""
    book: tuple[tuple[str, int, float], ...]
    """Of the end of the run, fullest first: question, tests, sum of their frequencies."""
    failure: str
    notes: tuple[str, ...]
    """What is missing or damaged, one sentence each."""

    @property
    def rounds_done(self) -> int:
        return max((record.rounds_done for record in self.records), default=0)

    @property
    def preset(self) -> Mapping[str, Any]:
        """Of the configuration; empty where it has none."""
        return _section(self.config, "preset")

    @property
    def is_unsealed(self) -> bool:
        """Whether a program could forge what it was paid (`RewardConfig.allow_unsealed`)."""
        return _section(self.preset, "reward").get("allow_unsealed") is True

    @property
    def shown(self) -> str:
        """Its name in tables and legends, which says where its rewards are unsealed."""
        return f"{self.name} (unsealed)" if self.is_unsealed else self.name

    @property
    def family(self) -> str:
        """Of the problems, for `judging/version.py`."""
        family = _section(self.preset, "problems").get("family", ANY)
        return family if isinstance(family, str) else ANY

    @property
    def judges(self) -> list[int]:
        """The version of each start."""
        starts = self.config.get("starts")
        known = [each for each in starts if isinstance(each, Mapping)] if isinstance(starts, list) else []
        return [judge for each in known if type(judge := each.get("judge", FIRST)) is int]

    @property
    def rounds_planned(self) -> int | None:
        planned = self.preset.get("rounds")
        return planned if isinstance(planned, int) else None

    @property
    def status(self) -> str:
        """In words."""
        return "failed" if self.failure else "finished" if self.final else "not finished: it goes on, or was stopped"

    def points(self, kind: str, seat: str, name: str) -> list[tuple[int, float]]:
        """(rounds done, value) of a metric, in the order of rounds."""
        return [
            (record.rounds_done, record.values[name])
            for record in self.records
            if (record.kind, record.seat) == (kind, seat) and name in record.values
        ]

    def seats(self) -> list[str]:
        return sorted({record.seat for record in self.records if record.kind == "seat"})


def read_runs(directories: Sequence[Path], given: Sequence[str] = ()) -> list[RunRead]:
    """Every run, with names that tell them apart. `given`: what the user calls the directories; empty: their paths.
    Raises ConfigurationError for what is no run's directory, and for runs of judges that do not compare."""
    given = given or [str(directory) for directory in directories]
    plain = [Path(each).resolve().name or each for each in given]
    names = plain if len(set(plain)) == len(plain) else given
    runs = [read_run(*each) for each in zip(directories, names, given, strict=True)]
    families = {run.family for run in runs}
    subject = families.pop() if len(families) == 1 else ANY
    require_comparable((judge for run in runs for judge in run.judges), subject, "runs on one page")
    return runs


def read_run(directory: Path, name: str, given: str = "") -> RunRead:
    """One run. `given`: what the user calls the directory; empty: its path. Raises ConfigurationError for a directory
    in which no run was begun, OSError for one that cannot be read."""
    given = given or str(directory)
    if not directory.is_dir():
        raise ConfigurationError(f"RUN_DIR must be the directory of a run, got {given}, which is none")
    if not (directory / CONFIG_FILE).is_file() and not (directory / METRICS).is_file():
        raise ConfigurationError(
            f"RUN_DIR must be the directory of a run, with {CONFIG_FILE} or {METRICS} in it, got {given}"
        )
    notes: list[str] = []
    config = _config(directory / CONFIG_FILE, notes)
    records = tuple(sorted(_records(directory / METRICS, notes), key=lambda record: record.rounds_done))
    if not records and not notes:
        notes.append("no round has been logged yet")
    summary = _json_object(directory / SUMMARY, notes)
    ended = summary.get("rounds")
    goes_on = type(ended) is int and any(record.rounds_done > ended for record in records)
    if goes_on:
        notes.append(f"the run goes on behind the {ended} rounds after which it had ended")
        summary = {}
    return RunRead(
        name,
        directory,
        given,
        config,
        records,
        tuple(_final_rows(summary.get("rows"), notes)),
        _numbers(_section(_section(summary, "cost"), "seconds")),
        () if goes_on else _book(place_in(directory), notes),
        _text(directory / FAILURE)[:MAX_FAILURE],
        tuple(notes),
    )


def _section(config: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    section = config.get(name)
    return section if isinstance(section, Mapping) else {}


def _text(file: Path) -> str:
    """Empty where there is no such file; bytes that are no text are replaced."""
    try:
        return file.read_bytes().decode("utf-8", "replace")
    except FileNotFoundError:
        return ""


def _config(file: Path, notes: list[str]) -> Mapping[str, Any]:
    if not file.exists():
        notes.append(f"{file.name} is missing: nothing is known of the configuration")
        return {}
    return _mapping(file, lambda: read_yaml(file, "a run's configuration"), "a mapping", notes)


def _records(file: Path, notes: list[str]) -> Iterator[MetricsLine]:
    """Every record that can be read. A line that is being written is left out without a word."""
    *lines, _unfinished = _text(file).split("\n")
    bad = []
    for number, line in enumerate(lines, 1):
        record = _record(line)
        if record is None:
            bad.append(number)
        else:
            yield record
    if bad:
        shown = ", ".join(map(str, bad[:5])) + (", ..." if len(bad) > 5 else "")
        notes.append(f"{file.name}: {len(bad)} lines are no records and are left out ({shown})")


_TOO_LARGE = 1e300
"""For sums and scales of a page."""
_MOST_ROUNDS = 1 << 53
"""From here on floats skip whole numbers."""


def _record(line: str) -> MetricsLine | None:
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(fields, dict):
        return None
    kind, seat, rounds_done = fields.get("kind"), fields.get("seat", ""), fields.get("round")
    if kind not in KINDS or not isinstance(seat, str) or type(rounds_done) is not int:
        return None
    if not 0 <= rounds_done < _MOST_ROUNDS:
        return None
    return MetricsLine(kind, seat, rounds_done, _numbers(fields, without=("kind", "seat", "round")))


def _numbers(fields: Mapping[str, Any], without: Sequence[str] = ()) -> dict[str, float]:
    return {
        str(name): float(value)
        for name, value in fields.items()
        if name not in without and is_number(value) and abs(value) < _TOO_LARGE
    }


def _json_object(file: Path, notes: list[str]) -> Mapping[str, Any]:
    text = _text(file)
    return _mapping(file, lambda: json.loads(text), "an object", notes) if text else {}


def _mapping(file: Path, read: Callable[[], object], must: str, notes: list[str]) -> Mapping[str, Any]:
    try:
        content = read()
    except (ConfigurationError, ValueError, RecursionError) as error:
        notes.append(f"{file.name} cannot be read: {error}")
        return {}
    if not isinstance(content, Mapping):
        notes.append(f"{file.name} must be {must}, got {type(content).__name__}")
        return {}
    return content


def _final_rows(rows: Any, notes: list[str]) -> Iterator[ResultRow]:
    fields = ("base", "trained", "low", "high")
    for row in rows if isinstance(rows, list) else ():
        numbers = _numbers(row) if isinstance(row, dict) else {}
        if isinstance(row, dict) and isinstance(row.get("name"), str) and set(fields) <= set(numbers):
            base, trained, low, high = (numbers[field] for field in fields)
            yield ResultRow(row["name"], base, trained, low, high)
        else:
            notes.append(f"{SUMMARY}: a row must have a name, {', '.join(fields)}; one is left out")


def _book(file: Path, notes: list[str]) -> tuple[tuple[str, int, float], ...]:
    if not file.exists():
        return ()
    try:
        saved = read_book(file)
    except (BookFormatError, OSError) as error:
        notes.append(f"{file.name} cannot be read: {error}")
        return ()
    failures = {problem_id: shelf.frequencies.values() for problem_id, shelf in saved.shelves.items()}
    shelves = [(problem_id, len(each), sum(each)) for problem_id, each in failures.items()]
    return tuple(sorted(shelves, key=lambda shelf: (-shelf[1], -shelf[2])))
