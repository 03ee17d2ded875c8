"""The shelves of a Mistake Book by question, in one part or in many, by a stable hash of the question.

A part is read when one of its questions is asked for, and written if it has changed: a save of ten million questions
writes those parts that a few rounds have touched. The files of a directory are named by their content, and its index is
replaced last, so a directory that is saved again holds the old book or the new one, whole. Does not drop from memory
what it has read.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from codea1_env.errors import BookFormatError
from codea1_env.judging.version import VERSION
from codea1_env.mistake_book.files import JUDGE, line
from codea1_env.mistake_book.policies import Shelf
from codea1_env.mistake_book.saved import INDEX, MOST_PARTS, PART_FILE, line_of, read_index
from codea1_env.whole_files import write_whole

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
        for other in directory.iterdir():
            if PART_FILE.fullmatch(other.name) and other.name not in kept:
                other.unlink()

    def _part(self, part: int) -> dict[str, Shelf]:
        if part not in self._loaded:
            saved = self._saved.get(part)
            self._loaded[part] = self._checked(part, saved) if saved is not None else {}
        return self._loaded[part]

    def _checked(self, part: int, saved: _SavedPart) -> dict[str, Shelf]:
        assert self._read is not None, "what is saved was read or written here"
        try:
            shelves = self._read(saved.path)
            strays = [name for name in shelves if part_of(name, self.parts) != part]
            tests = sum(len(shelf.frequencies) for shelf in shelves.values())
            if strays or tests != saved.tests:
                got = f"{tests} of which {len(strays)} questions are of others"
                raise BookFormatError(f"must hold the {saved.tests} tests of part {part} of {self.parts}, got {got}")
        except BookFormatError as error:
            raise BookFormatError(f"{saved.path}: {error}") from None
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
