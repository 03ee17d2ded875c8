"""A Mistake Book on disk, as numbers: one file, or a directory of such files, its parts; and its shelves by question,
in one part or in many, by a stable hash of the question. Knows no policy.

A file has a header, which names the policy that made its numbers, then a line per question. A directory has an index:
one line, the same header with `parts` and `files`, which are [part, name, tests] of each part that is not empty. A
question is in the part of its hash (`part_of`).

A part is read when one of its questions is asked for, and written if it has changed: a save of ten million questions
writes those parts that a few rounds have touched. The files of a directory are named by their content, and its index is
replaced last, so a directory that is saved again holds the old book or the new one, whole. Does not drop from memory
what it has read.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from weakref import WeakSet

from codea1_env.checks import is_number
from codea1_env.class_paths import is_class_path
from codea1_env.errors import BookFormatError, about
from codea1_env.judging.version import VERSION
from codea1_env.mistake_book.files import JUDGE, bad_line, line, packed, read_lines, unpacked
from codea1_env.mistake_book.policies import Shelf
from codea1_env.reading.test_case import TestCase
from codea1_env.whole_files import write_whole

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


FILE, DIRECTORY = "book.jsonl", "book"
"""What a book is called in a folder: of one part, and of several."""
_FEW = 1 << 12
"""Questions of which one file is enough."""
_OF_A_PART = 1 << 7
"""Of more, how many are in a part at most, about: a round touches few parts."""
Read = Callable[[Path], dict[str, Shelf]]


def part_of(problem_id: str, parts: int) -> int:
    """From 0 to `parts` - 1: the same in every process and version, and as good as drawn at random."""
    digest = hashlib.sha256(problem_id.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") % parts


def parts_for(questions: int) -> int:
    """How many parts a book of so many questions is worth: one, which is a file, or a power of two."""
    if questions <= _FEW:
        return 1
    return min(1 << (-(-questions // _OF_A_PART) - 1).bit_length(), MOST_PARTS)


def name_of(parts: int) -> str:
    """What a book of so many parts is called in a folder."""
    return FILE if parts == 1 else DIRECTORY


def place_in(folder: str | os.PathLike[str]) -> Path:
    """Where the book of a folder is, or would be if it were one file."""
    directory = Path(folder, DIRECTORY)
    return directory if (directory / INDEX).exists() else Path(folder, FILE)


@dataclass(frozen=True, slots=True)
class _SavedPart:
    """A part as it is on disk."""

    path: Path
    tests: int


class Shelves:
    """By question. Not thread-safe."""

    def __init__(self, parts: int = 1) -> None:
        self.parts = parts
        self.tests = 0
        """Distinct ones, of all questions."""
        self._loaded: dict[int, dict[str, Shelf]] = {}
        self._saved: dict[int, _SavedPart] = {}
        """By part: the file that holds it, of those that are not empty and have not changed since."""
        self._read: Read | None = None
        self._copies: WeakSet[Shelves] = WeakSet([self])
        """Those that may have parts in the same files."""

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_copies"}  # weak references stay here

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__dict__.update(state)
        self._copies = WeakSet([self])

    @classmethod
    def of(cls, shelves: Mapping[str, Shelf], parts: int) -> Shelves:
        made = cls(parts)
        for problem_id, shelf in shelves.items():
            made.put(problem_id, shelf)
        return made

    @classmethod
    def lazily(cls, directory: Path, read: Read) -> Shelves:
        """Those of a directory. `read`: the shelves of a part's file. Raises BookFormatError, OSError."""
        index = read_index(directory / INDEX)
        made = cls(index.parts)
        made._saved = {part: _SavedPart(directory / name, tests) for part, name, tests in index.files}
        made.tests = sum(saved.tests for saved in made._saved.values())
        made._read = read
        return made

    def get(self, problem_id: str) -> Shelf | None:
        return self._part(part_of(problem_id, self.parts) if self.parts > 1 else 0).get(problem_id)

    def put(self, problem_id: str, shelf: Shelf) -> None:
        """An empty shelf goes."""
        part = part_of(problem_id, self.parts) if self.parts > 1 else 0
        shelves = self._part(part)
        before = shelves.get(problem_id)
        if before is None and not shelf.frequencies:
            return
        self.tests += len(shelf.frequencies) - (len(before.frequencies) if before is not None else 0)
        self._saved.pop(part, None)
        if shelf.frequencies:
            shelves[problem_id] = shelf
        else:
            del shelves[problem_id]

    def items(self) -> Iterator[tuple[str, Shelf]]:
        """All of them, part by part, in order of insertion."""
        for part in range(self.parts):
            if part in self._loaded or part in self._saved:
                yield from self._part(part).items()

    def copy(self) -> Shelves:
        made = Shelves(self.parts)
        made.tests, made._saved, made._read = self.tests, dict(self._saved), self._read
        made._loaded = {
            part: {name: shelf.copy() for name, shelf in shelves.items()} for part, shelves in self._loaded.items()
        }
        made._copies = self._copies
        made._copies.add(made)
        return made

    def save(self, directory: Path, header: Mapping[str, object]) -> None:
        """Write the parts that have changed, bring the others along, and replace the index. Raises OSError; the
        directory is then as it was."""
        directory.mkdir(exist_ok=True)
        header = {**header, JUDGE: VERSION}
        files = {}
        for part in range(self.parts):
            saved = self._saved.get(part)
            if saved is not None:
                files[part] = _SavedPart(directory / saved.path.name, saved.tests)
                _bring(saved.path, files[part].path)
            elif shelves := self._loaded.get(part):
                lines = [header, *(line_of(name, shelf) for name, shelf in shelves.items())]
                content = b"".join(map(line, lines))
                path = directory / f"{part:05}-{hashlib.sha256(content).hexdigest()[:16]}.jsonl"
                if not path.exists():
                    write_whole(path, content)
                files[part] = _SavedPart(path, sum(len(shelf.frequencies) for shelf in shelves.values()))
        listed = [[part, saved.path.name, saved.tests] for part, saved in files.items()]
        index: dict[str, object] = {**header, "parts": self.parts, "files": listed}
        write_whole(directory / INDEX, json.dumps(index) + "\n")
        self._saved = files
        kept = {saved.path.name for saved in files.values()}
        gone = {each.name for each in directory.iterdir() if PART_FILE.fullmatch(each.name)} - kept
        for each in self._copies:
            each._keep(gone)
        for name in gone:
            (directory / name).unlink()

    def _keep(self, gone: Collection[str]) -> None:
        """Read the parts whose files are about to go."""
        for part in [part for part, saved in self._saved.items() if saved.path.name in gone]:
            self._part(part)
            del self._saved[part]

    def _part(self, part: int) -> dict[str, Shelf]:
        if part not in self._loaded:
            saved = self._saved.get(part)
            self._loaded[part] = self._checked(part, saved) if saved is not None else {}
        return self._loaded[part]

    def _checked(self, part: int, saved: _SavedPart) -> dict[str, Shelf]:
        assert self._read is not None, "what is saved was read or written here"
        with about(str(saved.path)):
            shelves = self._read(saved.path)
            strays = [name for name in shelves if part_of(name, self.parts) != part]
            tests = sum(len(shelf.frequencies) for shelf in shelves.values())
            if strays or tests != saved.tests:
                got = f"{tests} of which {len(strays)} questions are of others"
                raise BookFormatError(f"must hold the {saved.tests} tests of part {part} of {self.parts}, got {got}")
        return shelves


def _bring(source: Path, target: Path) -> None:
    """The same file at another place: it is never written to again, so both may be one."""
    if target.exists():
        return
    try:
        os.link(source, target)
    except OSError:  # another file system, or one without links
        aside = target.with_name(f".{target.name}.part")
        shutil.copyfile(source, aside)
        os.replace(aside, target)
