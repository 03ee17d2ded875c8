"""A Mistake Book on disk, as numbers: one file, or a directory of such files. Knows no policy.

A file has a header, which names the policy that made its numbers, then a line per question. A directory has an index:
one line, the same header with `parts` and `files`, which are [part, name, tests] of each part that is not empty. A
question is in the part of its hash (`parts.part_of`).
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from codea1_env.checks import is_number
from codea1_env.class_paths import is_class_path
from codea1_env.mistake_book.files import bad_line, packed, read_lines, unpacked
from codea1_env.mistake_book.policies import Shelf
from codea1_env.reading.test_case import TestCase

HEADER = {"schema": 1, "kind": "mistake_book"}
INDEX = "index.json"
PART_FILE = re.compile(r"\d{5}-[0-9a-f]{16}\.jsonl")
MOST_PARTS = 1 << 16
POLICY = "policy"
"""In the header: the `module:Class` of a policy that is not one of `BOOK_POLICIES`, whose files are the same."""
ARGUMENTS = "policy_args"
"""Beside it: the policy's arguments, where it has some."""


@dataclass(frozen=True, slots=True)
class SavedBook:
    """The content of a file of any rule."""

    policy: str
    """`module:Class` of a policy of one's own; empty for a built-in policy."""
    arguments: Mapping[str, Any]
    """Its arguments."""
    shelves: dict[str, Shelf]
    """The tests by question; of an index none."""
    parts: int = 1
    files: tuple[tuple[int, str, int], ...] = ()
    """Of an index: part, name and tests."""

    @property
    def header(self) -> dict[str, object]:
        """The first line of its files."""
        own = {POLICY: self.policy} if self.policy else {}
        return HEADER | own | ({ARGUMENTS: dict(self.arguments)} if self.arguments else {})


def read_book(path: str | os.PathLike[str]) -> SavedBook:
    """Read a book as numbers, without its policy. Raises BookFormatError with the line's number, and OSError."""
    index = read_index(Path(path, INDEX)) if Path(path).is_dir() else None
    saved = [read_file(Path(path, name)) for _, name, _ in index.files] if index else [read_file(path)]
    for each in saved:
        check_numbers(each, whole_frequencies=False, most_quality=math.inf)
    shelves = {name: shelf for each in saved for name, shelf in each.shelves.items()}
    return replace(index or saved[0], shelves=shelves)


def read_file(path: str | os.PathLike[str]) -> SavedBook:
    """Likewise one file, whatever stands for its numbers."""
    lines = read_lines(path, HEADER, (POLICY, ARGUMENTS))
    saved = _headed(next(lines)[1])
    for number, record in lines:
        if not isinstance(record, dict) or set(record) - {"visits"} != {"problem_id", "tests"}:
            raise bad_line(number, "a question", "be an object with exactly problem_id and tests", record)
        problem_id = unpacked(record["problem_id"], number, "problem_id")
        if problem_id in saved.shelves:
            raise bad_line(number, "problem_id", "occur once in the file", problem_id)
        saved.shelves[problem_id] = _shelf(record, number)
    return saved


def read_index(path: Path) -> SavedBook:
    """The index of a directory. Raises BookFormatError, and OSError."""
    ((_, index),) = read_lines(path, HEADER, (POLICY, ARGUMENTS, "parts", "files"))
    parts, files = index.get("parts"), index.get("files")
    if type(parts) is not int or not 1 < parts <= MOST_PARTS:
        raise bad_line(1, "parts", f"be a whole number from 2 to {MOST_PARTS}", parts)
    if not isinstance(files, list) or not all(_is_entry(each, parts) for each in files):
        raise bad_line(1, "files", "be a list of [part, the name of its file, its tests]", files)
    if len({each[0] for each in files}) != len(files):
        raise bad_line(1, "files", "have each part once", files)
    return replace(_headed(index), parts=parts, files=tuple((part, name, tests) for part, name, tests in files))


def _headed(header: Mapping[str, Any]) -> SavedBook:
    """What a header says, and no shelf yet."""
    policy, arguments = header.get(POLICY, ""), header.get(ARGUMENTS, {})
    if policy != "" and not is_class_path(policy):
        raise bad_line(1, POLICY, "be module:Class", policy)
    if not isinstance(arguments, dict) or (arguments and not policy):
        raise bad_line(1, ARGUMENTS, "be an object, beside a policy", arguments)
    return SavedBook(policy, arguments, {})


def _is_entry(entry: object, parts: int) -> bool:
    if not isinstance(entry, list) or len(entry) != 3:
        return False
    part, name, tests = entry
    is_part = type(part) is int and 0 <= part < parts and type(tests) is int and tests > 0
    return is_part and isinstance(name, str) and PART_FILE.fullmatch(name) is not None


def line_of(problem_id: str, shelf: Shelf) -> dict[str, object]:
    """The line of a question."""
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


def check_numbers(saved: SavedBook, whole_frequencies: bool, most_quality: float) -> None:
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
