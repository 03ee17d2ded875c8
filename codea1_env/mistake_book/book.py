"""The Mistake Book: per question, the tests that solutions failed, with how often; replayed on later solutions.

A `BookConfig` (`policies.py`) decides which tests enter, leave and are replayed; the default is the released code's
rule. A file names the policy that made its numbers. The size is not bounded unless the configuration asks for it, and
the book does not lock: it has one owner at a time. Nothing in it is evaluated here: a test is two texts, kept exactly
as they came.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from codea1_env.checks import is_number, require
from codea1_env.class_paths import is_class_path, is_imported
from codea1_env.mistake_book.files import bad_line, packed, read_lines, save_lines, unpacked
from codea1_env.mistake_book.policies import BOOK_POLICIES, BookConfig, RatedTest, Shelf, Visit
from codea1_env.reading.test_case import TestCase

_HEADER = {"schema": 1, "kind": "mistake_book"}
_POLICY = "policy"
"""In the header: the `module:Class` of a policy that is not one of `BOOK_POLICIES`, whose files are the same."""
_ARGUMENTS = "policy_args"
"""Beside it: the policy's arguments, where it has some."""
_RELEASED = BookConfig()


class MistakeBook:
    """Per question a multiset of tests, keyed by `problem_id` (released code of arXiv 2603.15611).

    Two books are equal when they replay alike, now and after equal visits: same rule, same tests, same frequencies and
    qualities, same order of insertion in each question.
    """

    __slots__ = ("_config", "_shelves")
    __hash__ = None  # type: ignore[assignment]  # changes

    def __init__(self, config: BookConfig = _RELEASED) -> None:
        require(isinstance(config, BookConfig), "config", "be a codea1_env.BookConfig", config)
        _ = config.rule  # one that cannot be loaded is an error here, and not rounds later
        self._config = config
        self._shelves: dict[str, Shelf] = {}

    @property
    def config(self) -> BookConfig:
        """The rule that the book follows."""
        return self._config

    def replay(self, problem_id: str, limit: int) -> tuple[TestCase, ...]:
        """The tests of a question to replay, at most `limit`; by default the most frequent ones, and of equally
        frequent ones those inserted first. Until the next visit every call gives the same tests."""
        shelf = self._shelves.get(problem_id)
        if shelf is None or limit <= 0:
            return ()
        chosen = self._config.rule.replayed(_copied(shelf), limit, problem_id)
        is_kept = isinstance(chosen, tuple | list) and all(map(_is_test, chosen))
        is_kept = is_kept and len(set(chosen)) == len(chosen) <= limit
        require(
            is_kept and all(case in shelf.frequencies for case in chosen),
            f"what the book's policy {self._config.policy!r} replays",
            f"be at most {limit} of the question's tests, each once",
            chosen,
        )
        return tuple(chosen)

    def record(
        self,
        problem_id: str,
        passes: Iterable[TestCase],
        failures: Iterable[TestCase],
        *,
        failed_replays: Iterable[TestCase] = (),
        rated: Iterable[RatedTest] = (),
    ) -> None:
        """One visit to a question. By default: first every pass of a replayed test decrements it, and a test at 0
        leaves the book; then every failure of a new test increments it.

        Multiplicity counts. The pass of a test that is not, or no longer, in the book is ignored. `failed_replays` and
        `rated` are for rules that ask for them (`BookConfig`). Raises ConfigurationError for a `problem_id` that is no
        string and where a policy of one's own keeps what no file could hold; the book is then as it was.
        """
        require(isinstance(problem_id, str), "problem_id", "be a string", problem_id)
        shelf = _copied(self._shelves.get(problem_id, Shelf()))
        self._config.rule.visited(shelf, Visit(tuple(passes), tuple(failures), tuple(failed_replays), tuple(rated)))
        name = f"what the book's policy {self._config.policy!r} keeps"
        for table in (shelf.frequencies, shelf.qualities):
            require(isinstance(table, dict), name, "be dicts of tests and numbers", table)
        shelf = _copied(shelf)  # what the policy still holds is its own
        for case in [case for case in shelf.qualities if case not in shelf.frequencies]:
            del shelf.qualities[case]
        tests, numbers = list(shelf.frequencies), [*shelf.frequencies.values(), *shelf.qualities.values()]
        require(all(map(_is_test, tests)), name, "be codea1_env.TestCase objects of two texts", tests)
        require(all(is_number(each) and each > 0 for each in numbers), name, "be finite numbers above 0", numbers)
        require(
            type(shelf.visits) is int and is_number(shelf.visits) and shelf.visits >= 0,
            name,
            "be visits of at least 0",
            shelf.visits,
        )
        if shelf.frequencies:
            self._shelves[problem_id] = shelf
        else:
            self._shelves.pop(problem_id, None)

    def frequencies(self, problem_id: str) -> dict[TestCase, float]:
        """How often each test of a question was failed, minus its passes; in order of insertion. It is a copy.

        Whole numbers of at least 1 unless the book ages.
        """
        return dict(self._shelves.get(problem_id, Shelf()).frequencies)

    def questions(self) -> tuple[str, ...]:
        """The problems that have a test in the book."""
        return tuple(self._shelves)

    def __len__(self) -> int:
        """Number of distinct tests, over all questions."""
        return sum(len(shelf.frequencies) for shelf in self._shelves.values())

    def __bool__(self) -> bool:
        """Always true: an empty book is a book."""
        return True

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MistakeBook):
            return NotImplemented
        mine, theirs = self._shelves, other._shelves
        return (
            self._config == other._config
            and mine.keys() == theirs.keys()
            and all(_same(shelf, theirs[problem_id]) for problem_id, shelf in mine.items())
        )

    def copy(self) -> MistakeBook:
        """An equal book that changes on its own."""
        book = MistakeBook(self._config)
        book._shelves = {problem_id: _copied(shelf) for problem_id, shelf in self._shelves.items()}
        return book

    __copy__ = copy

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the book: JSON lines, a header, then a line per question; whole or not at all. Raises OSError."""
        own: dict[str, object] = {} if self._config.policy in BOOK_POLICIES else {_POLICY: self._config.policy}
        own |= {_ARGUMENTS: dict(self._config.policy_args)} if self._config.policy_args else {}
        save_lines(path, _HEADER | own, (_line(name, shelf) for name, shelf in self._shelves.items()))

    @classmethod
    def load(cls, path: str | os.PathLike[str], config: BookConfig | None = None) -> MistakeBook:
        """Read what `save` wrote. Raises BookFormatError with the line's number, and OSError.

        `config` is the rule to follow from now on; the file itself only names the policy that made its numbers. A book
        of a rule that ages needs a rule that ages. A book of a policy of one's own needs that policy, and unless its
        module is already imported it must be named here, because a file never makes Python import a module.
        """
        saved = _read(path)
        if config is None:
            config = BookConfig(policy=saved.policy or _RELEASED.policy, policy_args=saved.arguments)
            if saved.policy and not is_imported(saved.policy):
                must = f"be followed by who names it: MistakeBook.load(path, BookConfig(policy={saved.policy!r}))"
                raise bad_line(1, _POLICY, must, saved.policy)
        if saved.policy and saved.policy != config.policy:
            raise bad_line(1, _POLICY, f"be that of the configuration, {config.policy!r}", saved.policy)
        _check(saved, config.rule.whole_frequencies, config.rule.most_quality)
        book = cls(config)
        book._shelves = saved.shelves
        return book


@dataclass(frozen=True, slots=True)
class SavedBook:
    """The content of a file of any rule."""

    policy: str
    """`module:Class` of a policy of one's own; empty for a built-in policy."""
    arguments: Mapping[str, Any]
    """Its arguments."""
    shelves: dict[str, Shelf]
    """The tests by question."""


def read_book(path: str | os.PathLike[str]) -> SavedBook:
    """Read a book as numbers, without its policy. Raises BookFormatError with the line's number, and OSError."""
    saved = _read(path)
    _check(saved, whole_frequencies=False, most_quality=math.inf)
    return saved


def _read(path: str | os.PathLike[str]) -> SavedBook:
    """Likewise, whatever stands for its numbers."""
    lines = read_lines(path, _HEADER, (_POLICY, _ARGUMENTS))
    _, header = next(lines)
    policy, arguments = header.get(_POLICY, ""), header.get(_ARGUMENTS, {})
    if policy != "" and not is_class_path(policy):
        raise bad_line(1, _POLICY, "be module:Class", policy)
    if not isinstance(arguments, dict) or (arguments and not policy):
        raise bad_line(1, _ARGUMENTS, "be an object, beside a policy", arguments)
    shelves: dict[str, Shelf] = {}
    for number, record in lines:
        if not isinstance(record, dict) or set(record) - {"visits"} != {"problem_id", "tests"}:
            raise bad_line(number, "a question", "be an object with exactly problem_id and tests", record)
        problem_id = unpacked(record["problem_id"], number, "problem_id")
        if problem_id in shelves:
            raise bad_line(number, "problem_id", "occur once in the file", problem_id)
        shelves[problem_id] = _shelf(record, number)
    return SavedBook(policy, arguments, shelves)


def _copied(shelf: Shelf) -> Shelf:
    return Shelf(dict(shelf.frequencies), dict(shelf.qualities), shelf.visits)


def _is_test(given: object) -> bool:
    return isinstance(given, TestCase) and isinstance(given.call, str) and isinstance(given.expected, str)


def _same(one: Shelf, other: Shelf) -> bool:
    frequencies = list(one.frequencies.items()) == list(other.frequencies.items())
    return frequencies and one.qualities == other.qualities and one.visits == other.visits


def _line(problem_id: str, shelf: Shelf) -> dict[str, object]:
    tests = []
    for case, frequency in shelf.frequencies.items():
        test = [packed(case.call), packed(case.expected), frequency]
        tests.append([*test, shelf.qualities[case]] if case in shelf.qualities else test)
    record: dict[str, object] = {"problem_id": packed(problem_id), "tests": tests}
    return record | {"visits": shelf.visits} if shelf.visits else record


def _shelf(record: dict[str, Any], number: int) -> Shelf:
    """One question's line. Raises BookFormatError."""
    tests, visits = record["tests"], record.get("visits", 0)
    if not isinstance(tests, list) or not tests:
        raise bad_line(number, "tests", "be a non-empty list", tests)
    if type(visits) is not int or visits < 0:
        raise bad_line(number, "visits", "be an integer of at least 0", visits)
    shelf = Shelf(visits=visits)
    for index, test in enumerate(tests):
        where = f"tests[{index}]"
        if not isinstance(test, list) or len(test) not in (3, 4):
            raise bad_line(number, where, "be [call, expected, frequency]", test)
        case = TestCase(unpacked(test[0], number, f"{where}[0]"), unpacked(test[1], number, f"{where}[1]"))
        if case in shelf.frequencies:
            raise bad_line(number, where, "occur once in its question", test)
        shelf.frequencies[case] = test[2]
        if len(test) == 4:
            shelf.qualities[case] = test[3]
    return shelf


def _check(saved: SavedBook, whole_frequencies: bool, most_quality: float) -> None:
    """Whether the numbers are such as a policy keeps. Raises BookFormatError."""
    for number, shelf in enumerate(saved.shelves.values(), 2):  # a line each, under the header
        for index, (case, frequency) in enumerate(shelf.frequencies.items()):
            where = f"tests[{index}]"
            if whole_frequencies and (type(frequency) is not int or frequency < 1):
                must = "be an integer of at least 1 (of a book that ages, load with a decay below 1)"
                raise bad_line(number, f"{where}[2]", must, frequency)
            if not is_number(frequency) or frequency <= 0:
                raise bad_line(number, f"{where}[2]", "be a number above 0", frequency)
            quality = shelf.qualities.get(case, 1)
            if not is_number(quality) or not 0 < quality <= most_quality:
                raise bad_line(number, f"{where}[3]", f"be a number in (0, {most_quality:g}]", quality)
