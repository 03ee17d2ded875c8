"""The Mistake Book: per question, the tests that solutions failed, with how often; replayed on later solutions.

A `BookConfig` (`policies.py`) decides which tests enter, leave and are replayed; the default is the released code's
rule. A file names the policy that made its numbers. The size is not bounded unless the configuration asks for it, and
the book does not lock: it has one owner at a time. Nothing in it is evaluated here: a test is two texts, kept exactly
as they came.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TypeVar

from codea1_env.checks import is_number, require
from codea1_env.class_paths import is_imported
from codea1_env.mistake_book.files import bad_line, save_lines
from codea1_env.mistake_book.parts import (
    INDEX,
    MOST_PARTS,
    POLICY,
    SavedBook,
    Shelves,
    check_numbers,
    line_of,
    read_file,
    read_index,
)
from codea1_env.mistake_book.policies import BOOK_POLICIES, BookConfig, RatedTest, Shelf, Visit
from codea1_env.reading.test_case import TestCase

T = TypeVar("T")
_RELEASED = BookConfig()


class MistakeBook:
    """Per question a multiset of tests, keyed by `problem_id` (released code of arXiv 2603.15611).

    Two books are equal when they replay alike, now and after equal visits: same rule, same tests, same frequencies and
    qualities, same order of insertion in each question.
    """

    __slots__ = ("_config", "_shelves")
    __hash__ = None  # type: ignore[assignment]  # changes

    def __init__(self, config: BookConfig = _RELEASED, *, parts: int = 1) -> None:
        """`parts`: 1 to 65536. With more than one, the book is a directory on disk, for millions of questions. A part
        is read when one of its questions is asked, and written if it has changed. The tests and their numbers do not
        depend on it."""
        require(isinstance(config, BookConfig), "config", "be a codea1_env.BookConfig", config)
        is_number_of_parts = type(parts) is int and 1 <= parts <= MOST_PARTS
        require(is_number_of_parts, "parts", f"be a whole number from 1 to {MOST_PARTS}", parts)
        _ = config.rule  # one that cannot be loaded is an error here, and not rounds later
        self._config = config
        self._shelves = Shelves(parts)

    @property
    def config(self) -> BookConfig:
        """The rule that the book follows."""
        return self._config

    @property
    def parts(self) -> int:
        """1: it is saved as a file; more: as a directory."""
        return self._shelves.parts

    def replay(self, problem_id: str, limit: int) -> tuple[TestCase, ...]:
        """The tests of a question to replay, at most `limit`; by default the most frequent ones, and of equally
        frequent ones those inserted first. Until the next visit every call gives the same tests."""
        shelf = self._shelves.get(problem_id)
        if shelf is None or limit <= 0:
            return ()
        chosen = self._config.rule.replayed(shelf.copy(), limit, problem_id)
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
        `rated` are for rules that ask for them (`BookConfig`). Raises ConfigurationError for values of another
        type, and if a user's policy keeps something that no file can hold. The book does not change then.
        """
        require(isinstance(problem_id, str), "problem_id", "be a string", problem_id)
        visit = Visit(
            _all("passes", passes, TestCase),
            _all("failures", failures, TestCase),
            _all("failed_replays", failed_replays, TestCase),
            _all("rated", rated, RatedTest),
        )
        shelf = (self._shelves.get(problem_id) or Shelf()).copy()
        self._config.rule.visited(shelf, visit)
        name = f"what the book's policy {self._config.policy!r} keeps"
        for table in (shelf.frequencies, shelf.qualities):
            require(isinstance(table, dict), name, "be dicts of tests and numbers", table)
        shelf = shelf.copy()  # what the policy still holds is its own
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
        self._shelves.put(problem_id, shelf)

    def frequencies(self, problem_id: str) -> dict[TestCase, float]:
        """How often each test of a question was failed, minus its passes; in order of insertion. It is a copy.

        Whole numbers of at least 1 unless the book ages.
        """
        return dict((self._shelves.get(problem_id) or Shelf()).frequencies)

    def questions(self) -> tuple[str, ...]:
        """The problems that have a test in the book. Reads all of it."""
        return tuple(problem_id for problem_id, _ in self._shelves.items())

    def __len__(self) -> int:
        """Number of distinct tests, over all questions."""
        return self._shelves.tests

    def __bool__(self) -> bool:
        """Always true: an empty book is a book."""
        return True

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MistakeBook):
            return NotImplemented
        mine, theirs = dict(self._shelves.items()), dict(other._shelves.items())
        return (
            self._config == other._config
            and mine.keys() == theirs.keys()
            and all(_same(shelf, theirs[problem_id]) for problem_id, shelf in mine.items())
        )

    def copy(self) -> MistakeBook:
        """An equal book that changes on its own."""
        book = MistakeBook(self._config)
        book._shelves = self._shelves.copy()
        return book

    __copy__ = copy

    def only(self, problem_id: str) -> MistakeBook:
        """A book that holds this one's tests of one question."""
        book, shelf = MistakeBook(self._config), self._shelves.get(problem_id)
        if shelf is not None:
            book._shelves.put(problem_id, shelf.copy())
        return book

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the book, whole or not at all: JSON lines, a header, then a line per question; in a directory one such
        file for each part that has changed since this book was read or saved last, links to the others, and an index.
        Raises OSError."""
        own_policy = "" if self._config.policy in BOOK_POLICIES else self._config.policy
        header = SavedBook(own_policy, self._config.policy_args, {}).header
        if self.parts > 1:
            self._shelves.save(Path(path), header)
        else:
            save_lines(path, header, (line_of(name, shelf) for name, shelf in self._shelves.items()))

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], config: BookConfig | None = None, *, parts: int | None = None
    ) -> MistakeBook:
        """Read what `save` wrote. Raises BookFormatError with the line's number, and OSError; of a directory, a part
        may do so when it is first needed.

        `config` is the rule to follow from now on; the file itself only names the policy that made its numbers. A book
        of a rule that ages needs such a rule. A book of a user's policy needs that policy. Name it here unless its
        module is already imported, because a file never makes Python import a module. `parts`: the number of parts from
        now on; None: unchanged.
        """
        path = Path(path)
        saved = read_index(path / INDEX) if path.is_dir() else read_file(path)
        if config is None:
            config = BookConfig(policy=saved.policy or _RELEASED.policy, policy_args=saved.arguments)
            if saved.policy and not is_imported(saved.policy):
                must = f"be followed by who names it: MistakeBook.load(path, BookConfig(policy={saved.policy!r}))"
                raise bad_line(1, POLICY, must, saved.policy)
        book = cls(config, parts=saved.parts if parts is None else parts)
        if saved.policy and saved.policy != config.policy:
            raise bad_line(1, POLICY, f"be that of the configuration, {config.policy!r}", saved.policy)
        rule = config.rule

        def checked(read: SavedBook) -> dict[str, Shelf]:
            check_numbers(read, rule.whole_frequencies, rule.most_quality)
            return read.shelves

        if saved.parts > 1:
            book._shelves = Shelves.lazily(path, lambda file: checked(read_file(file)))
        else:
            book._shelves = Shelves.of(checked(saved), 1)
        if parts not in (None, saved.parts):
            book._shelves = Shelves.of(dict(book._shelves.items()), parts)
        return book


def _all(name: str, given: Iterable[T], kind: type[T]) -> tuple[T, ...]:
    must = f"be a list of {kind.__name__} objects"
    require(isinstance(given, Iterable) and not isinstance(given, str), name, must, given)
    all_of_it = tuple(given)
    require(all(isinstance(each, kind) for each in all_of_it), name, must, all_of_it)
    return all_of_it


def _is_test(given: object) -> bool:
    return isinstance(given, TestCase) and isinstance(given.call, str) and isinstance(given.expected, str)


def _same(one: Shelf, other: Shelf) -> bool:
    frequencies = list(one.frequencies.items()) == list(other.frequencies.items())
    return frequencies and one.qualities == other.qualities and one.visits == other.visits
