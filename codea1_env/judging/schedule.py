"""What candidates are asked: turns, from the texts of programs and tests alone.

A turn is one program on the calls of one suite (or of the replayed tests, or of golden tests). What it holds is decided
before the first candidate of a batch starts. Nothing that was computed from a value, or that a test states about one,
comes in here or into `execution.py`, which works turns off: `tests/test_boundaries.py` holds both to that.
"""

from __future__ import annotations

import ast
import functools
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from codea1_env.checks import require
from codea1_env.problems.kinds import adapted, called_name
from codea1_env.problems.problem import Problem
from codea1_env.reading.parsing import Unparsable, parse
from codea1_env.sandbox.protocol import MAX_BUDGET_S, CallsJob, Limits
from codea1_env.sandbox.worlds import with_calls, world_of


@dataclass(frozen=True, slots=True, eq=False)
class Turn:
    """One program and what it is asked at a time. Its strikes and its budget are its own."""

    problem: Problem
    source: str
    """The program, without the problem's imports."""
    calls: tuple[bytes, ...]
    """Distinct encoded arguments."""
    room: int = 0
    """Calls that may take all of their time, at least; CALLS_WORTH if that is more."""

    def job(self) -> CallsJob:
        """As the sandbox gets it."""
        return calls_job(self.problem, self.source, self.calls, self.room)


def turn(problem: Problem, source: str, calls: Iterable[bytes], room: int = 0) -> Turn:
    """A turn with every call once, in the order of their first appearance."""
    return Turn(problem, source, tuple(dict.fromkeys(calls)), room)


def calls_job(problem: Problem, source: str, calls: tuple[bytes, ...], room: int = 0) -> CallsJob:
    """The calls of a program of `problem`."""
    source = with_imports(problem, source)
    world = with_calls(world_of(source), calls)  # decided by its own text and the problem's imports
    source, epilogue = adapted(problem, source)
    return CallsJob(
        source,
        called_name(problem),
        calls,
        limits_of(problem, room),
        packages=problem.packages,
        epilogue=epilogue,
        world=world,
        is_program=problem.kind == "program",
    )


def job_digest(job: CallsJob, version: str = "") -> bytes:
    """Of a job without calls: all that an outcome depends on but the call. `version`: of the sandbox."""
    assert not job.calls
    return hashlib.blake2b(repr((version, job)).encode("utf-8"), digest_size=32).digest()


CALLS_WORTH = 10
"""As many calls may take all of their time in a turn, or crash, at least: never fewer than a suite has asserts that
count, since those that turn out not to count would leave others untried."""


def limits_of(problem: Problem, room: int = 0) -> Limits:
    """The limits of a turn: so many calls may hang, or CALLS_WORTH, and each may load the program anew before. Raises
    ConfigurationError for a time limit that is not found out yet."""
    if problem.time_limit is not None:
        must = "be found out from the reference before anything runs (judging/problems/limits.py)"
        require(False, f"the time_limit of problem {problem.problem_id!r}", must, problem.time_limit)
    return _limits(problem.time_limit_s, problem.memory_mb, max(room, CALLS_WORTH))


@functools.lru_cache(maxsize=256, typed=True)
def _limits(time_limit_s: float, memory_mb: int, worth: int) -> Limits:
    budget_s = min(2 * worth * time_limit_s, MAX_BUDGET_S)
    return Limits(time_limit_s, budget_s, memory_mb, strikes=worth)


def with_imports(problem: Problem, source: str) -> str:
    """The program after the problem's own imports, without the mark that some editors put before a text."""
    source = source.removeprefix("\ufeff")
    if not problem.imports:
        return source
    lines = source.split("\n")
    first = _lines_of_future_imports(source) if "__future__" in source else 0  # these must come first
    return "\n".join([*lines[:first], problem.imports, *lines[first:]])


def _lines_of_future_imports(source: str) -> int:
    """How many lines the program has up to the end of its last `from __future__ import`."""
    try:
        body = parse(source).body
    except Unparsable:
        return 0
    lines = [node.lineno for node in body if isinstance(node, ast.ImportFrom) and node.module == "__future__"]
    return max((node.end_lineno or 0 for node in body if node.lineno <= max(lines, default=0)), default=0)
