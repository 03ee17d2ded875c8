"""Batches of jobs in chunks, for processes that each hold a sandbox: what the backends Docker and Ray have in common.

Results come back in order, and a chunk whose process is lost runs again elsewhere (`processes.py`).
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from codea1_env.closing import Closing
from codea1_env.sandbox.processes import Processes, Unit
from codea1_env.sandbox.protocol import CallsJob, ExpressionsJob, Job, JobResult
from codea1_env.sandbox.tasks import zygote_kind
from codea1_env.sandbox.zygotes import ZygoteKind

CHUNK_JOBS = 8
"""Jobs that a chunk has at least, where there are as many: below it the round trip shows."""
MAX_CHUNK_JOBS = 64
"""Jobs after which a chunk ends, whoever they belong to: no process is left with all the work of one program."""
MAX_CHUNK_BYTES = 4 << 20
"""Bytes of calls after which it ends as well: a process has two chunks in its memory."""
CHUNKS_PER_WORKER = 4
"""Chunks that a batch is cut into per worker, at least, so that no worker waits long for the last one."""


def chunks(jobs: Sequence[Job], workers: int) -> list[Sequence[Job]]:
    """Neighbouring jobs, cut between programs: CHUNK_JOBS to MAX_CHUNK_JOBS each, fewer where there are no more, or
    where they are large.

    The jobs of one duel have one program and stand side by side, so they stay together.
    """
    size = min(MAX_CHUNK_JOBS, max(CHUNK_JOBS, math.ceil(len(jobs) / (CHUNKS_PER_WORKER * workers))))
    pieces: list[Sequence[Job]] = []
    start = held = 0
    for at, job in enumerate(jobs, 1):
        held += sum(map(len, job.calls)) if isinstance(job, CallsJob) else 0
        length, is_full = at - start, held >= MAX_CHUNK_BYTES
        is_border = at == len(jobs) or _program(jobs[at]) != _program(job)
        if at == len(jobs) or length >= MAX_CHUNK_JOBS or is_full or (is_border and length >= size):
            pieces.append(jobs[start:at])
            start, held = at, 0
    if len(pieces) > 1 and len(pieces[-1]) < CHUNK_JOBS and len(pieces[-2]) + len(pieces[-1]) <= MAX_CHUNK_JOBS:
        last = pieces.pop()
        pieces[-1] = [*pieces[-1], *last]
    return pieces


def by_zygote(jobs: Sequence[Job]) -> list[int]:
    """Their places, those of one zygote side by side: a process has the packages of a few at a time."""
    groups: dict[ZygoteKind, list[int]] = {}
    for place, job in enumerate(jobs):
        groups.setdefault(zygote_kind(job), []).append(place)
    return [place for group in groups.values() for place in group]


def _program(job: Job) -> object:
    """What makes two jobs neighbours: one program, as one entry point. Expressions have none."""
    return (job.source, job.entry_point) if not isinstance(job, ExpressionsJob) else job


class ChunkedSandbox(Closing):
    """Runs jobs on up to `workers` processes that each hold a sandbox. A context manager; thread-safe (calls take
    turns)."""

    def __init__(self, processes: Processes, workers: int) -> None:
        self._processes, self._workers = processes, workers
        self._guarantees: Mapping[str, bool | str] = {}
        self._lock = threading.Lock()

    @property
    def guarantees(self) -> Mapping[str, bool | str]:
        """{layer: True, or why it does not hold}, of the process that answered last."""
        self.run([ExpressionsJob(("1",))])
        return self._guarantees

    def run(self, jobs: Sequence[Job]) -> list[JobResult]:
        """Run every job; results in order. Raises SandboxError when the processes, or their sandboxes, fail."""
        order = by_zygote(jobs)
        pieces = chunks([jobs[place] for place in order], self._workers)
        units: list[Unit] = []
        first = 0
        for home, piece in enumerate(pieces):
            of = order[first : first + len(piece)]
            units.append(Unit((piece,), home % self._workers, f"running jobs {min(of)} to {max(of)} of a batch"))
            first += len(piece)
        with self._lock:
            self._processes.require_usable()
            self._prepare(pieces)
            answers = self._processes.finish(units)
        results: list[JobResult] = []
        for (answer, self._guarantees), piece in zip(answers, pieces, strict=True):
            results += self._results(answer, piece)
        in_place = dict(zip(order, results, strict=True))
        return [in_place[place] for place in range(len(jobs))]

    def _prepare(self, pieces: Sequence[Sequence[Job]]) -> None:
        """Before any process is asked. Raises what stands in the way of these jobs."""

    def _results(self, answer: Any, jobs: Sequence[Job]) -> Iterable[JobResult]:
        """What a process answers for a chunk. Its result also has the guarantees that hold there."""
        return answer  # type: ignore[no-any-return]

    def close(self) -> None:
        """End every process. Idempotent."""
        with self._lock:
            self._processes.close()
