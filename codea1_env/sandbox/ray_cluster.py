"""The Ray backend: jobs on the nodes of a Ray cluster, by actors that each hold the local backend.

Jobs travel in chunks of whole neighbourhoods (all jobs of one program stay together), results come back in order, and a
chunk whose actor or node is lost runs again elsewhere. Every node needs this package, the same Python, and the local
backend's guarantees. Does not authenticate: whoever reaches a Ray cluster's ports can run code on it. Needs the extra
`ray`.
"""

from __future__ import annotations

import logging
import math
import os
import socket
import threading
import time
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from codea1_env.closing import Closing, interrupts_later
from codea1_env.errors import SandboxError
from codea1_env.extras import extra
from codea1_env.sandbox.frames import pack_result, unpacked_result
from codea1_env.sandbox.local import LocalSandbox
from codea1_env.sandbox.protocol import ExpressionsJob, Job, JobResult, require_arguments, require_usable

CHUNK_JOBS = 8
"""Jobs that a call carries at least, where there are as many: below it the round trip shows."""
MAX_CHUNK_JOBS = 64
"""Jobs after which a chunk ends, whoever they belong to: no actor is left with all the work of one program."""
CHUNKS_PER_WORKER = 4
"""Chunks that a batch is cut into per worker, at least, so that no worker waits long for the last one."""


@dataclass(slots=True)
class Chunk:
    """Neighbouring jobs on their way; `jobs[0]` is job `start` of the batch."""

    start: int
    jobs: Sequence[Job]
    is_suspect: bool = False
    """It was under way on a worker that was lost: from then on it has a worker to itself, so that blame is certain."""
    losses: int = 0
    """Workers that were lost while this was all they had."""


def chunks(jobs: Sequence[Job], workers: int) -> list[Chunk]:
    """Neighbouring jobs, cut between programs: CHUNK_JOBS to MAX_CHUNK_JOBS each, fewer where there are no more.

    The jobs of one duel have one program and stand side by side, so they stay together.
    """
    size = min(MAX_CHUNK_JOBS, max(CHUNK_JOBS, math.ceil(len(jobs) / (CHUNKS_PER_WORKER * workers))))
    pieces: list[Chunk] = []
    start = 0
    for at in range(1, len(jobs) + 1):
        length = at - start
        is_border = at == len(jobs) or _program(jobs[at]) != _program(jobs[at - 1])
        if at == len(jobs) or length >= MAX_CHUNK_JOBS or (is_border and length >= size):
            pieces.append(Chunk(start, jobs[start:at]))
            start = at
    if len(pieces) > 1 and len(pieces[-1].jobs) < CHUNK_JOBS and len(jobs) - pieces[-2].start <= MAX_CHUNK_JOBS:
        pieces.pop()
        pieces[-1] = Chunk(pieces[-1].start, jobs[pieces[-1].start :])
    return pieces


def _program(job: Job) -> object:
    """What makes two jobs neighbours: one program, as one entry point. Expressions have none."""
    return (job.source, getattr(job, "entry_point", "")) if not isinstance(job, ExpressionsJob) else job


IN_FLIGHT = 2
"""Calls under way per actor: one runs and one waits there, so that the actor never idles for a round trip."""
MAX_LOSSES = 3
"""Actors that a chunk may lose before it is taken for the cause."""
START_TIMEOUT_S = 120.0
"""Seconds without any actor alive after which the cluster is given up."""

_log = logging.getLogger(__name__)


def load_ray() -> Any:
    """The library. Raises ImportError, which names the extra."""
    with extra("ray", "the Ray sandbox needs"):
        import ray
    return ray


@contextmanager
def joined(address: str | None, workers: int) -> Iterator[str]:
    """The address of a cluster, joined or started here; left, or ended, at the end unless this process had joined it.

    `address` as for `RaySandbox`.
    """
    ray = load_ray()
    is_ours = not ray.is_initialized()
    try:
        if is_ours:
            _join(ray, address, workers)
        yield str(ray.get_runtime_context().gcs_address)
    finally:
        if is_ours:
            _leave(ray)


def _leave(ray: Any) -> None:
    with interrupts_later():  # interrupted while it starts or stops, Ray crashes or leaves its processes
        ray.shutdown()


def running() -> str | None:
    """The address of the cluster that this user's `ray start` has left running on this machine, if there is one."""
    folder = os.environ.get("RAY_TMPDIR") or os.environ.get("TMPDIR") or "/tmp"  # as Ray chooses it
    note = Path(folder, "ray", "ray_current_cluster")
    with suppress(OSError, ValueError):
        if note.stat().st_uid != os.getuid():
            return None
        address = note.read_text().strip()
        host, _, port = address.rpartition(":")
        socket.create_connection((host.strip("[]"), int(port)), timeout=2).close()  # the note outlives a killed cluster
        return address
    return None


def _join(ray: Any, address: str | None, workers: int) -> None:
    chosen = address or os.environ.get("RAY_ADDRESS") or running()
    began = time.monotonic()
    # A cluster of our own has a slot per worker whatever the number of cores, as the local backend has.
    own = {"num_cpus": max(workers, os.cpu_count() or 1), "include_dashboard": False}
    with interrupts_later():
        ray.init(
            address=chosen or "local",
            log_to_driver=False,
            logging_level=logging.ERROR,
            **({} if chosen and chosen != "local" else own),
        )
    took = time.monotonic() - began
    if chosen and chosen != "local":
        _log.warning("joined the Ray cluster at %s in %.1f s", chosen, took)
    else:
        _log.warning(
            "starting a Ray cluster took %.1f s; a command joins a running one (`ray start --head`) instead",
            took,
        )


@dataclass(frozen=True, slots=True)
class Hello:
    """What an actor says of itself once it can run jobs."""

    version: str
    """Of its local sandbox."""
    guarantees: dict[str, bool | str]


class SandboxActor:
    """The actor: one local sandbox. Infrastructure faults of the sandbox travel as values, not as Ray's own errors."""

    def __init__(self, waive: Collection[str] = ()) -> None:
        self._sandbox = LocalSandbox(waive=waive)

    def hello(self) -> Hello | SandboxError:
        """Start the sandbox: a node that is not safe says so before it is given a job."""
        try:
            return Hello(self._sandbox.version, dict(self._sandbox.guarantees))
        except SandboxError as error:
            return error

    def run(self, jobs: Sequence[Job]) -> list[bytes] | SandboxError:
        """One chunk. Its results are packed: thousands of small objects cost as much to pickle as many a light job."""
        try:
            return list(map(pack_result, self._sandbox.run(jobs)))
        except SandboxError as error:
            return error


@dataclass(slots=True)
class _Actor:
    """One actor and the calls it was given, oldest first: it works them off in this order."""

    handle: Any
    greeting: Any
    """The reference that is answered when it is ready; None from then on."""
    calls: deque[tuple[Any, Chunk]] = field(default_factory=deque)


class RaySandbox(Closing):
    """Runs jobs on up to `workers` actors of one CPU each. A context manager; thread-safe (calls take turns)."""

    def __init__(self, workers: int = 1, *, address: str | None = None, waive: Collection[str] = ()) -> None:
        """Joins or starts the cluster when the first job comes.

        `address` as for `ray.init`: of a running cluster, "local" for one of its own; without one the environment
        variable RAY_ADDRESS counts, then the cluster that `ray start` has left running on this machine, then "local". A
        process that has joined a cluster before stays with it. `waive`: as LocalSandbox, of every node. Raises
        ImportError without the extra `ray`.
        """
        require_arguments(workers, waive)
        self._ray = load_ray()
        self._workers, self._address = workers, address
        self._version = LocalSandbox(waive=waive).version
        self._waive = tuple(waive)
        self._actors: list[_Actor] = []
        self._guarantees: dict[str, bool | str] = {}
        self._lock = threading.Lock()
        self._owner = os.getpid()
        self._stillborn = 0  # actors in a row that were lost before they were ready
        self._has_joined = self._closed = False

    @property
    def version(self) -> str:
        """Changes with whatever may change an outcome: every node's local sandbox has to be of this version."""
        return self._version

    @property
    def guarantees(self) -> Mapping[str, bool | str]:
        """{layer: True, or why it does not hold}, of the node that was ready first."""
        self.run([ExpressionsJob(("1",))])
        return self._guarantees

    def run(self, jobs: Sequence[Job]) -> list[JobResult]:
        """Run every job; results in order. Raises SandboxError when a node's sandbox or the cluster fails."""
        with self._lock:
            require_usable(self._closed, self._owner)
            results: list[JobResult | None] = [None] * len(jobs)
            try:
                if jobs:
                    self._open()
                    self._run(deque(chunks(jobs, self._workers)), results)
            except self._ray.exceptions.RayError as error:
                self._stop_all()
                raise SandboxError(f"the Ray cluster must run jobs, got {type(error).__name__}: {error}") from error
            except BaseException:
                self._stop_all()  # calls may still be under way: no actor is in a known state
                raise
            assert all(result is not None for result in results)
            return [result for result in results if result is not None]

    def _open(self) -> None:
        if not self._ray.is_initialized():
            self._has_joined = True  # before: an interrupt comes as soon as it has
            try:
                _join(self._ray, self._address, self._workers)
            except (ConnectionError, ValueError, RuntimeError) as error:
                self._has_joined = False
                raise SandboxError(f"the Ray cluster must be reachable, got: {error}") from error
        while len(self._actors) < self._workers:
            self._actors.append(self._new_actor())

    def _new_actor(self) -> _Actor:
        # Not restarted by Ray: a lost actor's place is taken by a new one, which is told apart from it.
        handle = self._ray.remote(num_cpus=1, max_restarts=0)(SandboxActor).remote(self._waive)
        return _Actor(handle, handle.hello.remote())

    def _run(self, pending: deque[Chunk], results: list[JobResult | None]) -> None:
        """Work off `pending` on all actors that are ready."""
        lonely_since = time.monotonic()
        while pending or any(actor.calls for actor in self._actors):
            self._hand_out(pending)
            # Of an actor's calls the oldest is the one that ends next.
            waiting = {actor.greeting or actor.calls[0][0]: actor for actor in self._actors if _is_awaited(actor)}
            ready, _ = self._ray.wait(list(waiting), num_returns=1, timeout=1.0)
            for reference in ready:
                self._receive(waiting[reference], reference, pending, results)
            if any(actor.greeting is None for actor in self._actors):
                lonely_since = time.monotonic()
            elif time.monotonic() - lonely_since > START_TIMEOUT_S:
                raise SandboxError(
                    f"the Ray cluster must have a CPU free for a worker within {START_TIMEOUT_S:g} s, got "
                    f"{self._ray.available_resources().get('CPU', 0):g} of {self._workers}"
                )

    def _hand_out(self, pending: deque[Chunk]) -> None:
        """To the least busy first, up to IN_FLIGHT each; what is left waits here and can still go anywhere."""
        able = [actor for actor in self._actors if actor.greeting is None and not _has_suspect(actor)]
        while pending and able:
            actor = min(able, key=lambda actor: len(actor.calls))
            chunk = pending[0]
            if len(actor.calls) >= (1 if chunk.is_suspect else IN_FLIGHT):
                break
            pending.popleft()
            actor.calls.append((actor.handle.run.remote(chunk.jobs), chunk))
            if chunk.is_suspect:
                able.remove(actor)

    def _receive(self, actor: _Actor, reference: Any, pending: deque[Chunk], results: list[JobResult | None]) -> None:
        """Take one answer, or note that the actor is lost."""
        errors = self._ray.exceptions
        try:
            answer = self._ray.get(reference)
        except (
            errors.RayActorError,
            errors.ObjectLostError,
            errors.WorkerCrashedError,
            errors.OutOfMemoryError,
        ) as lost:
            self._lose(actor, pending, lost)
            return
        if isinstance(answer, SandboxError):
            raise answer
        if isinstance(answer, Hello):
            self._welcome(actor, answer)
            return
        _, chunk = actor.calls.popleft()
        results[chunk.start : chunk.start + len(chunk.jobs)] = map(unpacked_result, answer, chunk.jobs)

    def _welcome(self, actor: _Actor, hello: Hello) -> None:
        if hello.version != self._version:
            raise SandboxError(f"every node must run the sandbox {self._version}, got one with {hello.version}")
        self._guarantees = self._guarantees or hello.guarantees
        self._stillborn = 0
        actor.greeting = None

    def _lose(self, actor: _Actor, pending: deque[Chunk], error: Exception) -> None:
        """Give its chunks to others, first of all.

        A chunk that had the actor to itself has lost it. Of several any may have: an answer that was on its way is lost
        with the actor, so the oldest need not be the one that was running.
        """
        _log.warning("a Ray worker is lost, %d calls run again elsewhere: %s", len(actor.calls), type(error).__name__)
        self._ray.kill(actor.handle)  # a node that is only unreachable may still be running it
        lost = [chunk for _, chunk in actor.calls]
        pending.extendleft(reversed(lost))
        for chunk in lost:
            chunk.is_suspect = True
        if len(lost) == 1:
            lost[0].losses += 1
            if lost[0].losses >= MAX_LOSSES:
                last = lost[0].start + len(lost[0].jobs) - 1
                raise SandboxError(
                    f"Ray workers must stay alive, {MAX_LOSSES} were lost on jobs {lost[0].start} to {last} of a batch"
                ) from error
        if actor.greeting is not None:
            self._stillborn += 1
            if self._stillborn > MAX_LOSSES * self._workers:
                raise SandboxError(f"Ray workers must start, {self._stillborn} in a row did not: {error}") from error
        self._actors[self._actors.index(actor)] = self._new_actor()

    def _stop_all(self) -> None:
        for actor in self._actors:
            if self._ray.is_initialized():
                self._ray.kill(actor.handle)
        self._actors = []

    def close(self) -> None:
        """End the actors, and leave the cluster where this sandbox joined it. Idempotent."""
        with self._lock:
            if self._closed or os.getpid() != self._owner:
                return
            self._closed = True
            self._stop_all()
            if self._has_joined:
                _leave(self._ray)


def _has_suspect(actor: _Actor) -> bool:
    return any(chunk.is_suspect for _, chunk in actor.calls)


def _is_awaited(actor: _Actor) -> bool:
    return actor.greeting is not None or bool(actor.calls)
