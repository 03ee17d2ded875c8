"""The Ray backend: jobs on the nodes of a Ray cluster, by processes that each hold the local backend.

Jobs travel in chunks of whole neighbourhoods (all jobs of one program stay together), results come back in order, and a
chunk whose process or node is lost runs again elsewhere (`processes.py`). Every node needs this package, the same
Python, and the local backend's guarantees. Does not authenticate: whoever reaches a Ray cluster's ports can run code on
it. Needs the extra `ray`.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from itertools import accumulate

from codea1_env.closing import Closing
from codea1_env.errors import SandboxError
from codea1_env.sandbox.frames import pack_result, unpacked_result
from codea1_env.sandbox.local import LocalSandbox
from codea1_env.sandbox.places import load_ray, processes_on
from codea1_env.sandbox.processes import Unit
from codea1_env.sandbox.protocol import ExpressionsJob, Job, JobResult, require_arguments

CHUNK_JOBS = 8
"""Jobs that a call carries at least, where there are as many: below it the round trip shows."""
MAX_CHUNK_JOBS = 64
"""Jobs after which a chunk ends, whoever they belong to: no process is left with all the work of one program."""
CHUNKS_PER_WORKER = 4
"""Chunks that a batch is cut into per worker, at least, so that no worker waits long for the last one."""


def chunks(jobs: Sequence[Job], workers: int) -> list[Sequence[Job]]:
    """Neighbouring jobs, cut between programs: CHUNK_JOBS to MAX_CHUNK_JOBS each, fewer where there are no more.

    The jobs of one duel have one program and stand side by side, so they stay together.
    """
    size = min(MAX_CHUNK_JOBS, max(CHUNK_JOBS, math.ceil(len(jobs) / (CHUNKS_PER_WORKER * workers))))
    pieces: list[Sequence[Job]] = []
    start = 0
    for at in range(1, len(jobs) + 1):
        length = at - start
        is_border = at == len(jobs) or _program(jobs[at]) != _program(jobs[at - 1])
        if at == len(jobs) or length >= MAX_CHUNK_JOBS or (is_border and length >= size):
            pieces.append(jobs[start:at])
            start = at
    if len(pieces) > 1 and len(pieces[-1]) < CHUNK_JOBS and len(pieces[-2]) + len(pieces[-1]) <= MAX_CHUNK_JOBS:
        last = pieces.pop()
        pieces[-1] = [*pieces[-1], *last]
    return pieces


def _program(job: Job) -> object:
    """What makes two jobs neighbours: one program, as one entry point. Expressions have none."""
    return (job.source, job.entry_point) if not isinstance(job, ExpressionsJob) else job


class NodeSandbox:
    """What a process on a node holds: a local sandbox."""

    def __init__(self, waive: Collection[str] = ()) -> None:
        """Starts it: a node that is not safe says so before it is given a job. Raises SandboxError."""
        self._sandbox = LocalSandbox(waive=waive)
        self.version, self._guarantees = self._sandbox.version, dict(self._sandbox.guarantees)

    def answer(self, jobs: Sequence[Job]) -> tuple[list[bytes], dict[str, bool | str]]:
        """The results of one chunk, and what holds there. Packed: thousands of small objects cost as much to pickle as
        many a light job."""
        return list(map(pack_result, self._sandbox.run(jobs))), self._guarantees

    def close(self) -> None:
        self._sandbox.close()


class RaySandbox(Closing):
    """Runs jobs on up to `workers` processes of one CPU each. A context manager; thread-safe (calls take turns)."""

    def __init__(self, workers: int = 1, *, address: str | None = None, waive: Collection[str] = ()) -> None:
        """Joins or starts the cluster when the first job comes.

        `address` as for `ray.init`: of a running cluster, "local" for one of its own; without one the environment
        variable RAY_ADDRESS counts, then the cluster that `ray start` has left running on this machine, then "local". A
        process that has joined a cluster before stays with it. `waive`: as LocalSandbox, of every node. Raises
        ImportError without the extra `ray`.
        """
        require_arguments(workers, waive)
        self._ray = load_ray()
        self._workers = workers
        self.version = LocalSandbox(waive=waive).version
        """Changes with whatever may change an outcome: every node's local sandbox has to be of this version."""
        make = partial(NodeSandbox, tuple(waive))
        self._processes = processes_on("ray", workers, make, address, version=self.version)
        self._guarantees: dict[str, bool | str] = {}
        self._lock = threading.Lock()

    @property
    def guarantees(self) -> Mapping[str, bool | str]:
        """{layer: True, or why it does not hold}, of the node that answered first."""
        self.run([ExpressionsJob(("1",))])
        return self._guarantees

    def run(self, jobs: Sequence[Job]) -> list[JobResult]:
        """Run every job; results in order. Raises SandboxError when a node's sandbox or the cluster fails."""
        pieces = chunks(jobs, self._workers)
        ends = accumulate(map(len, pieces))
        units = [
            Unit((piece,), place % self._workers, f"running jobs {end - len(piece)} to {end - 1} of a batch")
            for place, (piece, end) in enumerate(zip(pieces, ends, strict=True))
        ]
        with self._lock:
            self._processes.require_usable()
            try:
                while not all(unit.is_done for unit in units):
                    self._processes.work(units)
            except self._ray.exceptions.RayError as error:
                raise SandboxError(f"the Ray cluster must run jobs, got {type(error).__name__}: {error}") from error
        results: list[JobResult] = []
        for unit, piece in zip(units, pieces, strict=True):
            if isinstance(unit.result, BaseException):
                raise unit.result
            packed, guarantees = unit.result
            self._guarantees = self._guarantees or guarantees
            results += map(unpacked_result, packed, piece)
        return results

    def close(self) -> None:
        """End the processes, and leave the cluster where this sandbox joined it. Idempotent."""
        with self._lock:
            self._processes.close()
