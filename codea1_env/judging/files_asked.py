"""What a test asks of files is kept from the program: it is asked of the whole directory that came back.

    written("text", lambda: f(1), lambda: "a.txt")      the question
    left_behind(lambda: f(1))                           what the program is asked
    {"a.txt": [2, "1\\n"], "d": None}                    what comes back: sizes and texts of files, and directories
    "1\\n"                                               the answer

Every such question is alike to a program, so that it cannot make what is asked for. One of a path that the program
itself gives is not changed.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import json
import posixpath
from collections.abc import Sequence
from typing import Any

from codea1_env.reading.grammar import single_expression
from codea1_env.reading.literals import encode
from codea1_env.reading.parsing import source_of
from codea1_env.sandbox.inside.scope import LEFT, WRITTEN
from codea1_env.sandbox.protocol import CallsJob, JobResult, Outcome, OutcomeKind, Sandbox

_MARK = f'"{WRITTEN}('.encode()
_FAILURES = (ValueError, TypeError, LookupError, AttributeError, RecursionError)
"""What a malformed directory raises: a program may have written it itself."""
_Asked = tuple[bytes, str, str]
"""The call that is sent, what is asked, and of which path; the latter are empty for any other call."""


def run(sandbox: Sandbox, jobs: Sequence[CallsJob]) -> list[JobResult]:
    """The results of the jobs. Raises SandboxError."""
    rows = [[_asked(call) if _MARK in call else (call, "", "") for call in job.calls] for job in jobs]
    sent = [
        dataclasses.replace(job, calls=tuple(dict.fromkeys([call for call, _, _ in row]))) if any(
            asked for _, asked, _ in row
        ) else job
        for job, row in zip(jobs, rows, strict=True)
    ]  # fmt: skip
    results = sandbox.run(sent)
    return [_answered(*each) for each in zip(jobs, sent, rows, results, strict=True)]


def _answered(job: CallsJob, sent: CallsJob, row: Sequence[_Asked], result: JobResult) -> JobResult:
    if sent is job or not result.outcomes:
        return result
    came_to = dict(zip(sent.calls, result.outcomes, strict=True))
    outcomes = [_picked(came_to[call], asked, path) if asked else came_to[call] for call, asked, path in row]
    return dataclasses.replace(result, outcomes=tuple(outcomes))


@functools.lru_cache(maxsize=1 << 10)
def _asked(call: bytes) -> _Asked:
    match json.loads(call):
        case [[{"e": [names, text]}], []]:
            match single_expression(text):
                case ast.Call(
                    func=ast.Name(id=name),
                    args=[ast.Constant(value=str(asked)), *steps, ast.Lambda(body=ast.Constant(value=str(path)))],
                ) if name == WRITTEN:
                    left = source_of(ast.Call(ast.Name(LEFT, ast.Load()), steps, []))
                    return encode([[{"e": [names, left]}], []]), asked, path
    return call, "", ""


def _picked(outcome: Outcome, asked: str, path: str) -> Outcome:
    if outcome.kind is not OutcomeKind.VALUE:
        return outcome
    try:
        value, error = _answer(dict(json.loads(outcome.value)["d"]), asked, posixpath.normpath(path))
    except _FAILURES:  # what came back is no directory
        value, error = None, "ValueError"
    if error:
        return dataclasses.replace(outcome, kind=OutcomeKind.ERROR, value=b"", error=error)
    return dataclasses.replace(outcome, value=encode(value))


def _answer(left: dict[str, Any], asked: str, path: str) -> tuple[Any, str]:
    """Of a directory, or the exception's name."""
    is_directory = path == "." or (path in left and left[path] is None)
    is_there = is_directory or path in left
    if asked in ("exists", "isfile", "isdir"):
        return {"exists": is_there, "isfile": is_there and not is_directory, "isdir": is_directory}[asked], ""
    if not is_there or is_directory != (asked == "names"):
        return (
            None,
            "FileNotFoundError" if not is_there else "IsADirectoryError" if is_directory else "NotADirectoryError",
        )
    if asked == "names":
        above = "" if path == "." else f"{path}/"
        below = [name.removeprefix(above) for name in left if name.startswith(above)]
        return sorted(name for name in below if "/" not in name), ""
    size, text = left[path]
    if type(size) is not int or type(text) not in (str, type(None)):
        raise ValueError("a file has a size and a text")
    return (size, "") if asked == "size" else (text, "" if text is not None else "UnicodeDecodeError")
