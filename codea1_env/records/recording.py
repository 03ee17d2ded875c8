"""Games on disk: what both seats answered and earned, as JSON lines; replayed to the same rewards, bit for bit.

    {"codea1_recording": 1, "codea1": VERSION, "judge": N}  the header; the first number is the schema's
    {"problem": {...}}                                    a problem, once, before its first match
    {"match": {problem, config, codes, suites, replays, rewards, score}}

`replays` are the Mistake Book's tests as they stood when the match was played, so that a match is replayed by itself,
in any order. `score` says how the rewards came about, test by test (`matches.detailed_score`, long texts cut); it is
for readers, and may be left out. A recording of another version of codea1 is read as long as the schema is known, and
played again where no verdict has moved since its judge (`judging/version.py`). Does not record observations or who the
players were.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import codea1_env
from codea1_env.arena.arena import Arena
from codea1_env.arena.match import Match, MatchScore
from codea1_env.checks import is_number, json_object
from codea1_env.class_paths import is_imported
from codea1_env.closing import Closing
from codea1_env.errors import Codea1Error, ConfigurationError, FormatError
from codea1_env.judging.problems.limits import rule_of, with_memory, with_seconds
from codea1_env.judging.returned import cut
from codea1_env.judging.version import ANY, FIRST, VERSION, require_current
from codea1_env.mistake_book.book import MistakeBook
from codea1_env.mistake_book.files import packed, unpacked
from codea1_env.problems.problem import Problem
from codea1_env.reading.test_case import TestCase
from codea1_env.records.journal import json_line
from codea1_env.records.matches import detailed_score
from codea1_env.rewards.code_a1 import RewardConfig
from codea1_env.sandbox.protocol import Sandbox
from codea1_env.whole_files import append_whole, claimed

SCHEMA = 1
_HEADER = "codea1_recording"
_JUDGE = "judge"
_LONGEST_HEADER = 200
"""Bytes."""
_OWN_HEADER = {_HEADER: SCHEMA, "codea1": codea1_env.__version__, _JUDGE: VERSION}
_MATCH_FIELDS = frozenset(("problem", "config", "codes", "suites", "replays", "rewards"))
_SCORE = "score"
_MOST_TEXT = 1 << 12
"""Characters of each text of a score."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Rewards:
    """The rewards of a match; None if infrastructure failed."""

    codes: tuple[float | None, ...]
    suites: tuple[tuple[float | None, ...], ...]

    @classmethod
    def of(cls, score: MatchScore) -> Rewards:
        return cls(
            tuple(code.reward for code in score.codes),
            tuple(tuple(suite.reward for suite in row) for row in score.suites),
        )

    @property
    def is_whole(self) -> bool:
        return None not in self.codes and all(None not in row for row in self.suites)


@dataclass(frozen=True, slots=True)
class RecordedMatch:
    """One match of a recording."""

    number: int
    """Its line, from 1."""
    match: Match
    config: RewardConfig
    replays: tuple[TestCase, ...]
    """Mistake Book tests that every program of the match was tried on."""
    rewards: Rewards
    score: Mapping[str, Any] | None = None
    """Of `matches.detailed_score`, unchecked; None where it was left out."""
    judge: int = FIRST
    """The version of the judge that scored it."""


@dataclass(frozen=True, slots=True)
class ReplayedMatch:
    """A recorded match and its rewards now."""

    recorded: RecordedMatch
    rewards: Rewards

    @property
    def is_same(self) -> bool:
        return self.rewards == self.recorded.rewards


class Recorder(Closing):
    """Appends matches to a file; give `write` to `Arena(on_score=...)`. A context manager that closes the file."""

    def __init__(self, path: str | os.PathLike[str], *, scores: bool = True, is_claimed: bool = False) -> None:
        """A new file, or one that a recorder began: half a line at its end, of a process that was killed, is removed.

        `scores`: write down how each reward came about, for `codea1 view`; the file is about five times as large.
        `is_claimed`: the caller keeps other runs away from the file.
        Raises ConfigurationError for another file and for one that another recorder has open, and OSError.
        """
        self._path = Path(path)
        self._scores = scores
        self._known: set[str] = set()
        with ExitStack() as stack:
            if not is_claimed:
                stack.enter_context(claimed("the recording", path))
            if self._path.exists() and self._path.stat().st_size:
                self._continue()
            self._file: io.FileIO = stack.enter_context(open(self._path, "ab", buffering=0))
            if not self._path.stat().st_size:
                self._append(_OWN_HEADER)
            self._open = stack.pop_all()

    def write(self, matches: Sequence[Match], scores: Sequence[MatchScore], config: RewardConfig) -> None:
        """Record what was just scored. Matches without rewards are recorded as such. Raises ConfigurationError after
        `close`."""
        if self._file.closed:
            raise ConfigurationError(f"the recorder must be open to write to {self._path}, got one that was closed")
        for match, score in zip(matches, scores, strict=True):
            name = match.problem.content_hash
            if name not in self._known:
                self._append({"problem": json.loads(match.problem.to_json())})
                self._known.add(name)
            self._append({"match": _plain(match, score, config, with_score=self._scores)})

    def close(self) -> None:
        """Idempotent."""
        self._open.close()

    def _continue(self) -> None:
        content = self._path.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        if not whole and _is_begun_header(content):  # whoever began it was killed at once
            os.truncate(self._path, 0)
            return
        try:
            lines = list(_records(whole.splitlines()))
        except FormatError as error:
            raise ConfigurationError(f"{self._path} must be new, empty or a recording, got: {error}") from None
        require_current(lines[0][1][_JUDGE], ANY, f"what is added to {self._path}")
        self._known = {Problem.from_dict(line["problem"]).content_hash for _, line in lines if "problem" in line}
        if len(whole) < len(content):
            os.truncate(self._path, len(whole))

    def _append(self, record: Mapping[str, object]) -> None:
        append_whole(self._file, json_line(record), "the matches so far are in it")


def _is_begun_header(content: bytes) -> bool:
    """Of this version of codea1, or of another one."""
    start = json_line({_HEADER: SCHEMA})[:-2]
    return start.startswith(content) or (content.startswith(start) and len(content) < _LONGEST_HEADER)


def read_recording(
    lines: Iterator[bytes] | Sequence[bytes], on_cut: Callable[[str], None] = _log.warning
) -> Iterator[RecordedMatch]:
    """The matches of a recording, in order. Raises FormatError with the line's number (must, got). `on_cut`: is told
    where the recording ends in the middle of a line, or before the match of its last problem."""
    problems: dict[str, Problem] = {}
    is_waiting = False
    for number, record in _records(lines, on_cut):
        is_waiting = "problem" in record
        try:
            if number == 1:
                judge = record[_JUDGE]
            elif is_waiting:
                problem = Problem.from_dict(record["problem"])
                problems[problem.content_hash] = problem
            else:
                yield dataclasses.replace(_match(number, record["match"], problems), judge=judge)
        except FormatError as error:
            raise FormatError(f"line {number}: {error}") from None
        except (KeyError, TypeError, ValueError, Codea1Error) as error:
            raise FormatError(
                f"line {number} must be a problem or a match of schema {SCHEMA}, got one with {error!r}"
            ) from None
    if is_waiting:
        on_cut("the recording ends before the match of its last problem")


def keep_leading(path: str | os.PathLike[str], matches: Iterable[Match], config: RewardConfig) -> int:
    """Cut a recording down to those of its matches that are these under `config`, from the first on; how many there
    are. Without any the file is empty afterwards, be it a recording or not."""
    kept, end = 0, 0
    if os.path.exists(path) and os.path.getsize(path):
        with open(path, "rb") as file, contextlib.suppress(FormatError):
            ends: list[int] = []
            lines = _with_ends(file, ends)
            # Whoever goes on with a recording knows that it may end anywhere.
            for recorded, match in zip(read_recording(lines, lambda why: None), matches, strict=False):
                is_same = recorded.config == config and recorded.rewards.is_whole
                problem = with_memory(match.problem, config.memory_mb)
                if rule_of(problem, config.time_limit):
                    problem = with_seconds(problem, recorded.match.problem.time_limit_s)
                match = dataclasses.replace(match, problem=problem)
                if not is_same or dataclasses.replace(recorded.match, by_reference=match.by_reference) != match:
                    break
                kept, end = kept + 1, ends[recorded.number - 1]
        os.truncate(path, end)
    return kept


def _with_ends(file: Iterable[bytes], ends: list[int]) -> Iterator[bytes]:
    """The lines; `ends` gets where each one ends."""
    for line in file:
        ends.append(len(line) + (ends[-1] if ends else 0))
        yield line


def replay(matches: Iterator[RecordedMatch] | Sequence[RecordedMatch], sandbox: Sandbox) -> Iterator[ReplayedMatch]:
    """Play every match again, by itself. Raises as `score_again`, and ConfigurationError where verdicts have moved
    since it was scored."""
    for recorded in matches:
        require_current(recorded.judge, ANY, "a match and its replay")
        yield ReplayedMatch(recorded, Rewards.of(score_again(recorded, sandbox)))


def score_again(recorded: RecordedMatch, sandbox: Sandbox) -> MatchScore:
    """Play a match by itself, with the book's tests of its time; no rewards where infrastructure fails on it now.
    Raises SandboxError where it would fail on every other one, too.

    A recording makes no module be imported: raises ConfigurationError where a part of the reward that it names is one
    of somebody's own and its module is not imported yet.
    """
    for part, named in recorded.config.own.items():
        if not is_imported(named):
            raise ConfigurationError(
                f"line {recorded.number}: a {part} of your own must be imported before its matches are played again, "
                f"got {named!r}; codea1 replay --{part.replace('_', '-')} {named} does so, if you trust it"
            )
    book = MistakeBook()
    book.record(recorded.match.problem.problem_id, (), recorded.replays)
    config = dataclasses.replace(recorded.config, time_limit=None)  # the problem has the limit that counted
    (score,) = Arena(sandbox, config, book, on_failure="apart").play([recorded.match], update_book=False)
    return score


def _plain(match: Match, score: MatchScore, config: RewardConfig, *, with_score: bool) -> dict[str, object]:
    replays = score.codes[0].replays if score.codes else ()
    record: dict[str, object] = {
        "problem": match.problem.content_hash,
        "config": dataclasses.asdict(config),
        "codes": [packed(text) for text in match.codes],
        "suites": [[packed(text) for text in row] for row in match.suites],
        "replays": [[packed(each.case.call), packed(each.case.expected)] for each in replays],
        "rewards": dataclasses.asdict(Rewards.of(score)),
    }
    return record | {_SCORE: _cut(detailed_score(score, match.problem, config))} if with_score else record


def _cut(score: dict[str, Any]) -> dict[str, Any]:
    """The score with what a reader would not read to its end cut short: a value may have a MiB."""
    for suite in (suite for row in score["suites"] for suite in row):
        for texts in (*suite["tests"], *suite["replays"]):
            texts.update({name: cut(text, _MOST_TEXT) for name, text in texts.items()})
    return score


def _records(
    lines: Iterator[bytes] | Sequence[bytes], on_cut: Callable[[str], None] = _log.warning
) -> Iterator[tuple[int, dict[str, Any]]]:
    """The header, which says its judge, and the records after it, with the numbers of their lines."""
    number, are_ended = 0, False  # a list of lines may hold them without their ends
    for number, line in enumerate(lines, 1):
        try:
            record = json_object(line, f"line {number}", FormatError)
        except FormatError:
            if not are_ended or line.endswith(b"\n"):
                raise
            on_cut(f"line {number} of the recording is incomplete and was left out")
            return
        are_ended = line.endswith(b"\n")
        if number == 1:
            if record.get(_HEADER) != SCHEMA:
                shown = line[:80].decode("utf-8", "replace").rstrip()
                known = _HEADER in record
                why = "; a later schema needs a later version of codea1" if known else ", which is no recording"
                raise FormatError(f"line 1 must be the header of a recording of schema {SCHEMA}, got {shown}{why}")
            judge = record.setdefault(_JUDGE, FIRST)
            if type(judge) is not int or judge < FIRST:
                raise FormatError(f"line 1: {_JUDGE} must be a version of the judge, got {judge!r:.80}")
        yield number, record
    if number == 0:
        raise FormatError(f"a recording must begin with a header of schema {SCHEMA}, got an empty file")


def _match(number: int, record: Any, problems: Mapping[str, Problem]) -> RecordedMatch:
    if not isinstance(record, dict) or set(record) - {_SCORE} != _MATCH_FIELDS:
        raise FormatError(
            f"a match must have exactly the fields {sorted(_MATCH_FIELDS)}, and may have {_SCORE}, got {record!r:.200}"
        )
    if not isinstance(record.get(_SCORE), dict | None):
        raise FormatError(f"score must be an object, got {record[_SCORE]!r:.200}")
    if record["problem"] not in problems:
        raise FormatError(f"a match must come after its problem, got none with hash {record['problem']!r}")

    def read(value: Any, field: str) -> str:
        return unpacked(value, number, field)

    codes, suites = record["codes"], record["suites"]
    if not isinstance(codes, list) or not isinstance(suites, list) or len(codes) != len(suites):
        raise FormatError("codes and suites must be lists of equal length, got others")
    rewards = Rewards(tuple(record["rewards"]["codes"]), tuple(map(tuple, record["rewards"]["suites"])))
    sizes = (len(codes), *map(len, suites))
    are_paid = all(earned is None or is_number(earned) for row in (rewards.codes, *rewards.suites) for earned in row)
    if (len(rewards.codes), *map(len, rewards.suites)) != sizes or not are_paid:
        raise FormatError(f"rewards must be a number or null for each code and suite, got {record['rewards']!r:.200}")
    return RecordedMatch(
        number,
        Match(
            problems[record["problem"]],
            tuple(read(text, "codes") for text in codes),
            tuple(tuple(read(text, "suites") for text in row) for row in suites),
        ),
        RewardConfig(**record["config"]),
        tuple(TestCase(read(call, "replays"), read(expected, "replays")) for call, expected in record["replays"]),
        rewards,
        record.get(_SCORE),
    )
