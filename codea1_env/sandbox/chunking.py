"""What travels from a driver to its remote workers: chunks of a batch's jobs.

Does not run, send or order anything.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from codea1_env.sandbox.protocol import ExpressionsJob, Job

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
