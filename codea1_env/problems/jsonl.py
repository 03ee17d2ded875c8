"""Problem files: JSON lines, one problem a line, UTF-8, as `Problem.to_json` writes them. And the bundled ones.

Lines of white space are skipped. Ids are unique within a file. Any text round-trips, lone surrogates included. Does not
promise that a problem can be played: whether its reference solution runs is found out by running it.

`bundled.jsonl` beside this file is the one canonical place of some sixty small Python tasks, written for this project.
Each has a reference solution, three golden tests of the kind that a person writes in a hurry, hidden tests that cover
the edges of the stated domain, and mutants: plausible wrong solutions, each of which fails a hidden test.
`every_kind.jsonl` has a problem of every kind (`kinds.py`) and with every checker by name. A good language model solves
most of them: they serve examples, trials and tests of the machinery, not the ranking of models.
"""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Iterable, Iterator
from importlib import resources

from codea1_env.checks import is_several, require
from codea1_env.errors import ProblemFormatError, about
from codea1_env.problems.problem import Problem
from codea1_env.whole_files import whole_file


def read_problems(path: str | os.PathLike[str]) -> list[Problem]:
    """All problems of a file, in order.

    Raises ProblemFormatError with the path, the line number, the field, what it must be and what it was.
    """
    return list(iter_problems(path))


def iter_problems(path: str | os.PathLike[str]) -> Iterator[Problem]:
    """The problems of a file one by one, in order; memory holds one problem and the ids. Raises as `read_problems`."""
    with open(os.fspath(path), "rb") as lines:  # an int would be a descriptor, and closed in the end
        yield from parse_problems(lines, os.fspath(path))


def parse_problems(lines: Iterable[bytes], name: str) -> Iterator[Problem]:
    """The problems of `lines`, each a line of a problem file; errors call the source `name`."""
    first_seen: dict[str, int] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise ProblemFormatError(f"{name}:{number}: the line must be UTF-8 text, got {error}") from None
        with about(f"{name}:{number}"):
            problem = Problem.from_json(text)
        _require_new(problem.problem_id, first_seen, number, name)
        yield problem


def write_problems(path: str | os.PathLike[str], problems: Iterable[Problem]) -> None:
    """Write a problem file atomically: at every moment `path` holds either its old content or all of the new one.

    Raises ProblemFormatError for a repeated id, ConfigurationError for what is no problem; `path` is as it was then.
    """
    first_seen: dict[str, int] = {}
    require(is_several(problems), "problems", "be several Problem", problems)
    with whole_file(path) as file:
        for number, problem in enumerate(problems, start=1):
            require(isinstance(problem, Problem), f"problems[{number - 1}]", "be a Problem", problem)
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


@functools.cache
def bundled_problems() -> tuple[Problem, ...]:
    """All bundled problems, in the order of the file. The same tuple at every call."""
    return _read("bundled.jsonl")


@functools.cache
def problems_of_every_kind() -> tuple[Problem, ...]:
    """The dozen of `every_kind.jsonl`, in its order: methods, nodes, a class, a generator and so on."""
    return _read("every_kind.jsonl")


def _read(name: str) -> tuple[Problem, ...]:
    with resources.files("codea1_env.problems").joinpath(name).open("rb") as lines:
        return tuple(parse_problems(lines, name))
