"""A grader under audit: a command that reads and writes lines, or a Python callable. Both are kept in a cell.

A line in is an object with `problem_id`, `entry_point`, `program`, `tests` (asserts), `cases` (the same as `arguments`
and `expected`) and `time_limit_s`; a line out is `{"passed": true}`, false, or null for what the grader does not grade.
Does not judge answers.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from numbers import Real
from pathlib import Path
from typing import Any

from codea1_env.audit.cell import CellEnded, CellSilent, GraderCell
from codea1_env.checks import require
from codea1_env.closing import Closing
from codea1_env.errors import ConfigurationError

_MOST_WAIT_S = 86_400
Reward = Callable[[str, list[str]], object]
"""From a program and its tests, asserts, to whether they pass, or to a number."""


class Graded(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"
    """The grader does not grade such: null."""
    ENDED = "ended"
    """Its process ended."""
    SILENT = "silent"
    """No answer in time."""
    GARBLED = "garbled"
    """Something else than an answer."""


@dataclass(frozen=True, slots=True)
class Answered:
    answer: Graded
    said: str = ""
    """What stands in the place of an answer, or the grader's last words; text of a stranger."""


class Grader(Closing):
    """Starts a cell when it is first asked, and another one after `restart`. A context manager."""

    def __init__(self, name: str, begin: Callable[[], None], readable: Sequence[str], path: str, wait_s: float) -> None:
        if not 0 < wait_s <= _MOST_WAIT_S:
            raise ConfigurationError(
                f"the time to wait for an answer must be above 0 s and at most {_MOST_WAIT_S} s, got {wait_s}"
            )
        self.name = name
        self._begin, self._readable, self._path, self._wait_s = begin, tuple(readable), path, wait_s
        self._cell: GraderCell | None = None

    def ask(self, request: Mapping[str, Any]) -> Answered:
        """Whether the grader counts it as right. What did not answer is to be restarted."""
        if self._cell is None:
            self._cell = GraderCell(self._begin, self._readable, self._path)
        elif self._cell.waiting():
            return Answered(Graded.GARBLED, "more than one line for a request")
        try:
            line = self._cell.ask(json.dumps(request), self._wait_s)
        except CellEnded:
            return Answered(Graded.ENDED, self._cell.last_words())
        except CellSilent:
            return Answered(Graded.SILENT, self._cell.last_words())
        return read_answer(line)

    def look(self) -> Mapping[str, bool]:
        """What programs left in the cell since the last look, by the names of effects."""
        try:
            return self._cell.look() if self._cell is not None else {}
        except CellEnded:
            return {}

    def restart(self) -> None:
        """The next request finds a new process in a new cell."""
        if self._cell is not None:
            self._cell.close()
            self._cell = None

    close = restart


def read_answer(line: bytes) -> Answered:
    """A line of a grader's, which may be anything."""
    shown = line[:200].decode("utf-8", "replace")
    try:
        answer = json.loads(line)
    except (ValueError, RecursionError):
        return Answered(Graded.GARBLED, shown)
    if not isinstance(answer, dict) or "passed" not in answer:
        said = answer.get("error") if isinstance(answer, dict) else None
        return Answered(Graded.GARBLED, str(said)[:200] if said else shown)
    match answer["passed"]:
        case None:
            return Answered(Graded.SKIPPED)
        case bool(passed):
            return Answered(Graded.PASSED if passed else Graded.FAILED)
    return Answered(Graded.GARBLED, shown)


def command_grader(
    command: Sequence[str], *, name: str | None = None, readable: Sequence[Path] = (), wait_s: float = 30.0
) -> Grader:
    """A command as words. Its program, its files, the working directory and `readable` can be read in the cell."""
    if not command:
        raise ConfigurationError("the grader must be a command, got an empty one")
    program = shutil.which(command[0])
    if program is None:
        raise ConfigurationError(f"the grader must be a program that can be run, got {command[0]}")
    words = [
        os.path.abspath(program),
        *(os.path.abspath(word) if os.path.exists(word) else word for word in command[1:]),
    ]
    files = [word for word in words if word.startswith("/") and os.path.isfile(word)]
    programs = [each for word in files if os.access(word, os.X_OK) for each in (word, _interpreter(word))]
    places = [os.getcwd(), *(place for each in programs for place in _python_places(each))]
    places += [place for word in files for place in (os.path.dirname(word), word)]
    for path in readable:
        require(path.exists(), "a readable place", "exist", path)
        if not _without_root([str(path)]):
            raise ConfigurationError(
                f"a readable place must be less than all of the machine, of /home, /tmp or a home, got {path}; name "
                "what the grader reads there"
            )
        places.append(os.path.abspath(path))
    here = os.getcwd()

    def begin() -> None:
        os.environ["PYTHONPATH"] = here
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
        os.execv(words[0], words)

    return Grader(name or " ".join(command), begin, _without_root(places), os.environ.get("PATH", os.defpath), wait_s)


def callable_grader(reward: Reward, *, passes_at: float = 1.0, wait_s: float = 30.0) -> Grader:
    """A callable of this process, which is forked: it finds all that is loaded here, and may import the rest."""
    require(callable(reward), "the reward", "be a callable of a program and its tests", reward)
    places = [os.getcwd(), *_python_places(sys.executable), *(path for path in sys.path if path)]

    def begin() -> None:
        _serve(reward, passes_at)

    name = getattr(reward, "__qualname__", type(reward).__qualname__)
    return Grader(name, begin, _without_root(places), os.environ.get("PATH", os.defpath), wait_s)


def _interpreter(script: str) -> str:
    """What its first line names; empty where it names nothing."""
    with open(script, "rb") as file:
        line = file.readline(4096)
    words = line[2:].decode("utf-8", "replace").split() if line.startswith(b"#!") else []
    return words[0] if words else ""


def _python_places(program: str) -> list[str]:
    """What belongs to a program that lies in a `bin`: its own prefix, and of a virtual environment the Python below
    it."""
    places = []
    for path in (program, os.path.realpath(program)):
        if os.path.basename(os.path.dirname(path)) != "bin":
            continue
        prefix = os.path.dirname(os.path.dirname(path))
        places.append(prefix)
        settings = os.path.join(prefix, "pyvenv.cfg")
        if os.path.exists(settings):
            for line in Path(settings).read_text(encoding="utf-8").splitlines():
                name, _, value = line.partition("=")
                if name.strip() == "home":
                    places.append(os.path.dirname(os.path.realpath(value.strip())))
    return places


def _without_root(places: Sequence[str]) -> list[str]:
    """Each once; never all of the machine, nor of /home, /tmp or somebody's home."""
    paths = dict.fromkeys(each for place in places for each in (os.path.abspath(place), os.path.realpath(place)))
    refused = {"/", "/home", "/root", "/tmp", os.path.expanduser("~"), os.path.realpath(os.path.expanduser("~"))}
    return [place for place in paths if place not in refused and os.path.exists(place)]


def _serve(reward: Reward, passes_at: float) -> None:
    """In the cell. Answers go where a program that prints does not."""
    answers = os.dup2(1, 250)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 1)
    started = os.getpid()
    with os.fdopen(os.dup2(0, 251), "rb") as questions:
        os.dup2(null, 0)
        for line in questions:
            request = json.loads(line)
            try:
                answer = {"passed": _passed(reward(request["program"], request["tests"]), passes_at)}
            except Exception as error:
                answer = {"error": f"{type(error).__name__}: {error}"[:200]}  # type: ignore[dict-item]
            if os.getpid() != started:  # a program's fork has come back here: it does not answer for the reward
                os._exit(0)
            os.write(answers, json.dumps(answer).encode() + b"\n")


def _passed(value: object, passes_at: float) -> bool | None:
    if value is None or isinstance(value, bool):
        return value
    if not isinstance(value, Real):
        raise TypeError(f"a reward must be a bool, a number or None, got {type(value).__name__}")
    return float(value) >= passes_at
