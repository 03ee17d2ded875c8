"""Problem files: JSON lines, one problem a line, UTF-8, as `Problem.to_json` writes them.

Lines of white space are skipped. Ids are unique within a file. Any text round-trips, lone surrogates included.

Does not promise that a problem can be played: whether its reference solution runs is found out by running it.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator

from codea1_env.errors import ProblemFormatError
from codea1_env.problems.problem import Problem
from codea1_env.whole_files import whole_file


def read_problems(path: str | os.PathLike[str]) -> list[Problem]:
    """All problems of a file, in order.

    Raises ProblemFormatError with the path, the line number, the field, what it must be and what it was.
    """
    return list(iter_problems(path))


def iter_problems(path: str | os.PathLike[str]) -> Iterator[Problem]:
    """The problems of a file one by one, in order; memory holds one problem and the ids. Raises as `read_problems`."""
    with open(path, "rb") as lines:
        yield from parse_problems(lines, os.fspath(path))


def parse_problems(lines: Iterable[bytes], name: str) -> Iterator[Problem]:
    """The problems of `lines`, each a line of a problem file; errors call the source `name`."""
    first_seen: dict[str, int] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            problem = Problem.from_json(line.decode("utf-8-sig" if number == 1 else "utf-8"))
        except UnicodeDecodeError as error:
            raise ProblemFormatError(f"{name}:{number}: the line must be UTF-8 text, got {error}") from None
        except ProblemFormatError as error:
            raise ProblemFormatError(f"{name}:{number}: {error}") from None
        _require_new(problem.problem_id, first_seen, number, name)
        yield problem


def write_problems(path: str | os.PathLike[str], problems: Iterable[Problem]) -> None:
    """Write a problem file atomically: at every moment `path` holds either its old content or all of the new one.

    Raises ProblemFormatError for a repeated id, and then leaves `path` as it was.
    """
    first_seen: dict[str, int] = {}
    with whole_file(path) as file:
        for number, problem in enumerate(problems, start=1):
            _require_new(problem.problem_id, first_seen, number, str(path))
            file.write(problem.to_json().encode("ascii") + b"\n")


def _require_new(problem_id: str, first_seen: dict[str, int], number: int, name: str) -> None:
    if problem_id in first_seen:
        raise ProblemFormatError(
            f"{name}:{number}: problem_id must be unique in its file, got {problem_id!r}, which line "
            f"{first_seen[problem_id]} has already; rename one of the two"
        )
    first_seen[problem_id] = number


def problems_hash(problems: Iterable[Problem]) -> str:
    """SHA-256 over the problems as a problem file would hold them, in order."""
    digest = hashlib.sha256()
    for problem in problems:
        digest.update(problem.to_json().encode() + b"\n")
    return digest.hexdigest()
