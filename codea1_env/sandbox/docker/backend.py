"""The Docker backend: the local backend inside a warm pool of long-lived containers, one per worker.

A container adds its own walls (no network, nothing to write on, no capabilities, limits on memory and processes) around
the ones that `sandbox/local.py` puts around each candidate; jobs go in and results come out over its attached streams.
Needs the extra `docker`, a running engine and an image (`codea1 sandbox build-image`). Does not trust a container: a
broken or silent one is replaced and its jobs run again.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from codea1_env.checks import require_least
from codea1_env.errors import PackageMissing, SandboxError
from codea1_env.sandbox.docker.engine import (
    PACKAGES_LABEL,
    SOURCES_LABEL,
    Container,
    connect,
    remove_abandoned,
    require_docker,
)
from codea1_env.sandbox.docker.image import DEFAULT_IMAGE, sources_digest
from codea1_env.sandbox.frames import ALIVE, MAX_NOTICE_BYTES, RESULT, Broken, largest_result, pack_job, read_result
from codea1_env.sandbox.local import WALL_PER_BUDGET
from codea1_env.sandbox.protocol import Job, JobResult, Owned, require_arguments

_START_ATTEMPTS = 3
_SMALLEST_MB = 1536
_OWN_MB = 512
"""MiB of a container beyond what one candidate may use: driver, zygotes and the job's memory files."""


class DockerSandbox(Owned):
    """Runs jobs in `workers` containers. A context manager; thread-safe (calls take turns)."""

    def __init__(
        self,
        workers: int = 1,
        *,
        image: str = DEFAULT_IMAGE,
        runtime: str | None = None,
        recycle_after: int = 20_000,
        waive: Collection[str] = (),
    ) -> None:
        """Nothing is started before the first job. Raises ImportError without the extra `docker`.

        `runtime` is the engine's ("runsc" for gVisor, which has no Landlock: the sandbox then refuses, naming it,
        unless `waive` has "filesystem"). A container is replaced after `recycle_after` jobs. `waive`: as LocalSandbox.
        """
        super().__init__()
        require_docker()
        require_arguments(workers, waive)
        require_least("recycle_after", recycle_after)
        self._image, self._runtime, self._recycle_after = image, runtime, recycle_after
        self._options = {"waive": sorted(waive)}
        self._slots = [ContainerSlot() for _ in range(workers)]
        self._connected: Any = None
        self._image_id = ""
        self._image_packages: frozenset[str] = frozenset()
        self._lock = threading.Lock()
        self._at_exit = weakref.finalize(self, _stop, self._slots, self._owner)

    @property
    def version(self) -> str:
        """Changes with whatever may change an outcome: the image holds the interpreter and the code inside."""
        with self._lock:
            self._client()
            return f"docker-2-{self._image_id.removeprefix('sha256:')[:16]}-{self._runtime or 'default'}"

    @property
    def guarantees(self) -> Mapping[str, bool | str]:
        """{layer: True, or why it does not hold}: those inside the container, and `container_*`, its own."""
        with self._lock:
            self.require_usable()
            slot = self._slots[0]
            if slot.container is not None and not slot.container.is_alive():
                discard(slot)
            return (slot.container or self._start(slot, 0)).layers

    def run(self, jobs: Sequence[Job]) -> list[JobResult]:
        """Run every job; results in order. Raises SandboxError when containers cannot be had."""
        with self._lock:
            self.require_usable()
            self._refuse_missing({name for job in jobs for name in job.packages})
            batch = JobsOfRun(jobs, deque(range(len(jobs))))
            try:
                self._run(batch)
            except BaseException:
                _stop(self._slots, self._owner)  # containers may still be at it: none is in a known state
                raise
            return [batch.results[index] for index in range(len(jobs))]

    def _refuse_missing(self, packages: Collection[str]) -> None:
        """Before any container is asked: there it would look like the container's failure."""
        if not packages:
            return
        self._client()
        missing = sorted(set(packages) - self._image_packages)
        if missing:
            raise PackageMissing(
                f"the image {self._image} must have {', '.join(missing)} for these programs, got one without; make it "
                f"again: codea1 sandbox build-image --tag {self._image} --with {' '.join(missing)}"
            )

    def _client(self) -> Any:
        """The engine's client. The first time, what killed processes left there is removed and the image is checked."""
        if self._connected is None:
            client = connect()
            try:
                remove_abandoned(client)
                details = client.inspect_image(self._image)
            except require_docker().errors.ImageNotFound:
                raise SandboxError(
                    f"the image {self._image} must exist, got none of that name; make it: "
                    f"codea1 sandbox build-image --tag {self._image}"
                ) from None
            except (require_docker().errors.DockerException, OSError) as error:
                raise SandboxError(f"the Docker engine must do as asked, got: {error}") from error
            labels = details["Config"].get("Labels") or {}
            digest = labels.get(SOURCES_LABEL)
            if digest != sources_digest():
                raise SandboxError(
                    f"the image {self._image} must hold this version of codea1_env ({sources_digest()}), got {digest}; "
                    f"make it again: codea1 sandbox build-image --tag {self._image}"
                )
            self._image_id = details["Id"]
            self._image_packages = frozenset(labels.get(PACKAGES_LABEL, "").split(","))
            self._connected = client
        return self._connected

    def _run(self, batch: JobsOfRun) -> None:
        """Work off the batch on as many containers as it keeps busy."""
        slots = self._slots[: max(1, -(-len(batch.jobs) // 2))]
        if len(slots) == 1:
            self._work(slots[0], batch)
            return
        self._client()
        with ThreadPoolExecutor(len(slots)) as pool:
            futures = [pool.submit(self._work, slot, batch) for slot in slots]
            try:
                wait(futures, return_when=FIRST_EXCEPTION)
                for future in futures:
                    if future.done():
                        future.result()
            except BaseException:
                batch.stopped = True
                for slot in slots:
                    if slot.container is not None:
                        slot.container.sever()  # its thread stops waiting
                raise

    def _work(self, slot: ContainerSlot, batch: JobsOfRun) -> None:
        """One worker, until no job is left for it."""
        memory_mb = max((job.limits.memory_mb for job in batch.jobs), default=0)
        while not batch.stopped and (slot.given or batch.waiting):
            container = slot.container
            if container is None or (not slot.given and not self._is_fit(container, memory_mb)):
                discard(slot)
                container = self._start(slot, memory_mb)
            try:
                give(slot, container, batch, self._recycle_after)
                take(slot, container, batch)
            except Broken as error:
                discard(slot)
                lose(slot, batch, error)

    def _is_fit(self, container: Container, memory_mb: int) -> bool:
        """Whether an idle container may have the next job."""
        large_enough = container.memory_mb >= memory_mb + _OWN_MB
        return container.jobs < self._recycle_after and large_enough and container.is_alive()

    def _start(self, slot: ContainerSlot, memory_mb: int) -> Container:
        client = self._client()
        room_mb = max(_SMALLEST_MB, memory_mb + _OWN_MB)
        for attempt in range(1, _START_ATTEMPTS + 1):
            try:
                slot.container = Container(client, self._image_id, self._options, room_mb, self._runtime)
                return slot.container
            except (require_docker().errors.DockerException, OSError, Broken) as error:
                if attempt == _START_ATTEMPTS:
                    raise SandboxError(f"a container must start, got, {attempt} times in a row: {error}") from error
        raise AssertionError

    def close(self) -> None:
        """End and remove every container. Idempotent."""
        with self._lock:
            self._is_closed = True
            self._at_exit.detach()
            _stop(self._slots, self._owner)
            if self._connected is not None and os.getpid() == self._owner:
                self._connected.close()


def _stop(slots: Sequence[ContainerSlot], owner: int) -> None:
    """Remove the containers of a sandbox; in a fork of its owner they are not ours to remove."""
    if os.getpid() != owner:
        return
    for slot in slots:
        slot.given.clear()
        with suppress(SandboxError, OSError):  # an engine that is gone; the next start removes what is left
            discard(slot)


_AHEAD = 8
"""Jobs that a container has at a time, so that it never waits; half of them are handed over together, in one write."""
_AHEAD_BYTES = 4 << 20
_SILENCE_S = 60.0
"""The driver gives a sign of life every 5 s: a container that says nothing for so long is frozen or lost."""
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
    given: dict[int, int] = field(default_factory=dict)
    """Indices of jobs, in the order in which they were handed over, and the bytes of each."""
    due_at: float = 0.0
    """When the first of `given` must have come to an end, whatever its container says meanwhile."""


def give(slot: ContainerSlot, container: Container, batch: JobsOfRun, recycle_after: int) -> None:
    """Hand over jobs, as many as the container may have at a time, once it has worked off half of them."""
    if len(slot.given) > _AHEAD // 2:
        return
    frames = []
    while len(slot.given) < _AHEAD and container.jobs < recycle_after:
        if slot.given and sum(slot.given.values()) > _AHEAD_BYTES:
            break
        try:
            index = batch.waiting.popleft()
        except IndexError:
            break
        frames.append(pack_job(batch.jobs[index]))
        if not slot.given:
            slot.due_at = _due_at(batch.jobs[index])
        slot.given[index] = len(frames[-1])
        container.jobs += 1
    if frames:
        container.send(b"".join(frames))


def take(slot: ContainerSlot, container: Container, batch: JobsOfRun) -> None:
    """The result of the job that was handed over first. The driver answers in order."""
    if not slot.given:
        return
    index = next(iter(slot.given))
    job = batch.jobs[index]
    head, body = largest_result(job)
    while True:
        frame = container.receive(max(head, MAX_NOTICE_BYTES), body, _SILENCE_S)
        if frame.kind == RESULT:
            break
        if frame.kind != ALIVE:
            raise Broken("a driver must answer a job with a result")
        if time.monotonic() > slot.due_at:
            raise Broken("the container must finish a job in time")
    batch.results[index] = read_result(frame, job)
    del slot.given[index]
    if slot.given:
        slot.due_at = _due_at(batch.jobs[next(iter(slot.given))])


def _due_at(job: Job) -> float:
    return time.monotonic() + (job.limits.strikes + 1) * WALL_PER_BUDGET * job.limits.budget_s + _SILENCE_S


def lose(slot: ContainerSlot, batch: JobsOfRun, error: Exception) -> None:
    """The container broke: its jobs wait again. Raises SandboxError where one was running when too many broke.

    The one that was running waits longest: whatever befalls containers in a row is not to befall the same job.
    """
    running, *others = slot.given or (None,)
    if running is not None:
        batch.lost[running] = batch.lost.get(running, 0) + 1
        if batch.lost[running] >= _MOST_LOSSES:
            raise SandboxError(f"containers must stay alive, {_MOST_LOSSES} broke running one job, at last: {error}")
        batch.waiting.append(running)
    batch.waiting.extendleft(reversed(others))
    slot.given.clear()


def discard(slot: ContainerSlot) -> None:
    """End and remove its container; what that was given stays noted."""
    container, slot.container = slot.container, None
    if container is not None:
        container.close()
