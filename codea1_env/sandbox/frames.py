"""Jobs and results as length-prefixed frames between a sandbox and the driver inside its container.

A frame is a header (kind, two lengths), a JSON head and a body of raw bytes; what the head leaves out (encoded calls,
encoded values) lies in the body, one after another, with its sizes in the head. Data only: nothing is ever unpickled.
Does not trust what comes out of a container: every length is bounded before it is read, and every field is checked.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from dataclasses import asdict, fields
from itertools import accumulate, pairwise
from typing import Any

from codea1_env.sandbox.protocol import (
    MOST_NOTES,
    MOST_TOLD,
    NOTE,
    CallsJob,
    ExpressionsJob,
    Job,
    JobResult,
    Limits,
    Outcome,
    OutcomeKind,
)
from codea1_env.sandbox.worlds import World

JOB, HELLO, ALIVE, RESULT, FAILED, UNSAFE = b"J", b"H", b"A", b"R", b"F", b"U"
"""To the driver: a job. From it: its layers once ready; a sign of life; a result; why it cannot go on."""

HEADER = struct.Struct("<cII")
MAX_NOTICE_BYTES = 1 << 16
"""Bytes of any frame from a driver that is no result."""
_MAX_OUTCOME_HEAD_BYTES = 512
"""Bytes that one outcome takes in a result's head, at most: a kind, two numbers, 64 characters of an error, escaped."""

_KINDS = {kind.value: kind for kind in OutcomeKind}


class Broken(Exception):
    """The other side has died, says nothing or sends what no honest one would: replace it and run its jobs again."""


def pack(kind: bytes, head: object, body: bytes = b"") -> bytes:
    """One frame; `head` becomes JSON, dataclasses in it objects."""
    text = json.dumps(head, separators=(",", ":"), default=asdict).encode("ascii")
    return HEADER.pack(kind, len(text), len(body)) + text + body


def largest_result(job: Job) -> tuple[int, int]:
    """Bytes of the head and of the body that the result of `job` may have at most."""
    items = len(job.items) + 1
    return 64 + 64 * MOST_NOTES + _MAX_OUTCOME_HEAD_BYTES * items, job.limits.value_bytes * items


def pack_job(job: Job) -> bytes:
    """The frame that hands `job` to a driver."""
    plain = {field.name: getattr(job, field.name) for field in fields(job)}
    calls = plain.pop("calls", ())
    head = {"job": type(job).__name__, "fields": plain, "sizes": [*map(len, calls)]}
    return pack(JOB, head, b"".join(calls))


def read_job(head: bytes, body: bytes) -> Job:
    """In the driver: the job of a frame. The frame comes from the trusted side."""
    content = json.loads(head)
    plain: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in content["fields"].items()
    }
    plain["limits"] = Limits(**plain["limits"])
    if content["job"] == ExpressionsJob.__name__:
        return ExpressionsJob(**plain)
    world = plain["world"]
    plain["world"] = World(tuple(world.pop("packages")), **world)
    return CallsJob(**plain, calls=_split(body, content["sizes"]))


def pack_result(result: JobResult) -> bytes:
    """In a driver or a worker: the frame that answers a job."""
    outcomes = result.each(1)
    rows = [[one.kind.value, len(one.value), one.error, one.tried, one.cpu_ns] for one in outcomes]
    return pack(RESULT, [result.loaded, rows, result.denied], b"".join(outcome.value for outcome in outcomes))


def read_result(text: bytes, body: bytes, job: Job) -> JobResult:
    """The result of `job` as a container tells it. Raises Broken for anything that no driver would have written."""
    head = read_head(text)
    if type(head) is not list or [type(part) for part in head] != [bool, list, list]:
        raise Broken("a result's head must be [loaded, outcomes, denied]")
    loaded, rows, denied = head
    if len(denied) > MOST_NOTES or not all(type(note) is str and NOTE.fullmatch(note) for note in denied):
        raise Broken("what a job was denied must be a few notes of the protocol's")
    if len(rows) != (len(job.items) if loaded else 1):
        raise Broken(f"a result must have one outcome per item, got {len(rows)}")
    for row in rows:
        _check_outcome(row, job.limits.value_bytes)
    if sum(row[1] for row in rows) != len(body):
        raise Broken("a result's sizes must add up to its body")
    outcomes = tuple(
        Outcome(_KINDS[kind], value, error, tried, cpu_ns)
        for (kind, _, error, tried, cpu_ns), value in zip(rows, _split(body, [row[1] for row in rows]), strict=True)
    )
    notes = tuple(denied)
    return JobResult(outcomes, None, notes) if loaded else JobResult((), outcomes[0], notes)


def unpacked_result(packed: bytes, job: Job) -> JobResult:
    """The result of `job` that `pack_result` was given."""
    end = HEADER.size + HEADER.unpack_from(packed)[1]
    return read_result(packed[HEADER.size : end], packed[end:], job)


def read_head(text: bytes) -> Any:
    """The JSON of a frame's head. Raises Broken."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Broken(f"a frame's head must be JSON: {type(error).__name__}") from None


def _check_outcome(row: Any, value_bytes: int) -> None:
    if type(row) is not list or len(row) != 5:
        raise Broken("an outcome must be [kind, size, error, tried, cpu_ns]")
    kind, size, error, tried, cpu_ns = row
    if type(kind) is not str or kind not in _KINDS:
        raise Broken("an outcome's kind must be one of the protocol's")
    if type(size) is not int or not 0 <= size <= {"value": value_bytes, "error": MOST_TOLD}.get(kind, 0):
        raise Broken("an outcome's size must be within the job's limit")
    # What is not ASCII in an error's name has become U+FFFD on its way out of the candidate.
    if type(error) is not str or len(error) > (64 if kind == "error" else 0):
        raise Broken("an outcome's error must be short and belong to an error")
    if not all(character <= "\x7f" or character == "\ufffd" for character in error):
        raise Broken("an outcome's error must be ASCII")
    if type(tried) is not bool or type(cpu_ns) is not int or not 0 <= cpu_ns < 1 << 63:
        raise Broken("an outcome must say whether it was tried and a time that a clock can show")


def _split(body: bytes, sizes: Sequence[int]) -> tuple[bytes, ...]:
    return tuple(body[start:end] for start, end in pairwise(accumulate(sizes, initial=0)))
