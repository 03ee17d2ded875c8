"""What the containers of a sandbox are working on: jobs go to a container a few at a time and come back in order.

A container that breaks loses what it had: those jobs wait again. Promises nothing of two threads on one slot: each
worker has its own.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from codea1_env.errors import SandboxError
from codea1_env.sandbox.docker.engine import Container, ContainerBroken
from codea1_env.sandbox.frames import ALIVE, MAX_NOTICE_BYTES, RESULT, FrameError, largest_result, pack_job, read_result
from codea1_env.sandbox.protocol import Job, JobResult

_AHEAD = 8
"""Jobs that a container has at a time, so that it never waits; half of them are handed over together, in one write."""
_AHEAD_BYTES = 4 << 20
_SILENCE_S = 60.0
"""The driver gives a sign of life every 5 s: a container that says nothing for so long is frozen or lost."""
_WALL_PER_BUDGET = 30.0
"""Wall seconds per CPU second of budget that the local backend waits for one process of a job, at most."""
_MOST_LOSSES = 5
"""Containers that may break while they run one job. No candidate can break its own: the sandbox fails then."""


@dataclass(slots=True)
class JobsOfRun:
    """The jobs of one `run`, and how far they have come. Shared by the workers' threads."""

    jobs: Sequence[Job]
    waiting: deque[int]
    """Indices of jobs that no container has."""
    results: dict[int, JobResult] = field(default_factory=dict)
    lost: dict[int, int] = field(default_factory=dict)
    """How many containers broke while they ran this job."""
    stopped: bool = False


@dataclass(slots=True)
class ContainerSlot:
    """One worker: its container, and what that is working on, in order."""

    container: Container | None = None
    given: deque[int] = field(default_factory=deque)
    given_bytes: dict[int, int] = field(default_factory=dict)
    due_at: float = 0.0
    """When the first of `given` must have come to an end, whatever its container says meanwhile."""


def give(slot: ContainerSlot, container: Container, batch: JobsOfRun, recycle_after: int) -> None:
    """Hand over jobs, as many as the container may have at a time, once it has worked off half of them."""
    if len(slot.given) > _AHEAD // 2:
        return
    frames = []
    while len(slot.given) < _AHEAD and container.jobs < recycle_after:
        if slot.given and sum(slot.given_bytes.values()) > _AHEAD_BYTES:
            break
        try:
            index = batch.waiting.popleft()
        except IndexError:
            break
        frames.append(pack_job(batch.jobs[index]))
        if not slot.given:
            slot.due_at = _due_at(batch.jobs[index])
        slot.given.append(index)
        slot.given_bytes[index] = len(frames[-1])
        container.jobs += 1
    if frames:
        container.send(b"".join(frames))


def take(slot: ContainerSlot, container: Container, batch: JobsOfRun) -> None:
    """The result of the job that was handed over first. The driver answers in order."""
    if not slot.given:
        return
    job = batch.jobs[slot.given[0]]
    head, body = largest_result(job)
    while True:
        frame = container.receive(max(head, MAX_NOTICE_BYTES), body, _SILENCE_S)
        if frame.kind == RESULT:
            break
        if frame.kind != ALIVE:
            raise FrameError("a driver must answer a job with a result")
        if time.monotonic() > slot.due_at:
            raise ContainerBroken("the container must finish a job in time")
    batch.results[slot.given[0]] = read_result(frame, job)
    del slot.given_bytes[slot.given.popleft()]
    if slot.given:
        slot.due_at = _due_at(batch.jobs[slot.given[0]])


def _due_at(job: Job) -> float:
    return time.monotonic() + (job.limits.strikes + 1) * _WALL_PER_BUDGET * job.limits.budget_s + _SILENCE_S


def lose(slot: ContainerSlot, batch: JobsOfRun, error: Exception) -> None:
    """The container broke: its jobs wait again. Raises SandboxError where one was running when too many broke.

    The one that was running waits longest: whatever befalls containers in a row is not to befall the same job.
    """
    if slot.given:
        running = slot.given.popleft()
        batch.lost[running] = batch.lost.get(running, 0) + 1
        if batch.lost[running] >= _MOST_LOSSES:
            raise SandboxError(f"containers must stay alive, {_MOST_LOSSES} broke running one job, at last: {error}")
        batch.waiting.append(running)
    batch.waiting.extendleft(reversed(slot.given))
    slot.given.clear()
    slot.given_bytes.clear()


def discard(slot: ContainerSlot) -> None:
    """End and remove its container; what that was given stays noted."""
    container, slot.container = slot.container, None
    if container is not None:
        container.close()
