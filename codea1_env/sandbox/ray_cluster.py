"""The Ray backend: jobs on the nodes of a Ray cluster, by processes that each hold the local backend.

Jobs travel in chunks of whole neighbourhoods: all jobs of one program stay together (`chunks.py`). Every node needs
this package, the same Python, and the local backend's guarantees. Does not authenticate: whoever reaches a Ray
cluster's ports can run code on it. Needs the extra `ray`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import partial
from typing import Any

from codea1_env.sandbox.chunks import ChunkedSandbox
from codea1_env.sandbox.frames import pack_result, unpacked_result
from codea1_env.sandbox.local import LocalSandbox
from codea1_env.sandbox.places import processes_on
from codea1_env.sandbox.protocol import Job, JobResult, require_arguments


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


class RaySandbox(ChunkedSandbox):
    """Runs jobs on up to `workers` processes of one CPU each, on whatever nodes."""

    def __init__(self, workers: int = 1, *, address: str | None = None, waive: Collection[str] = ()) -> None:
        """Joins or starts the cluster when the first job comes.

        `address` as for `ray.init`: of a running cluster, "local" for one of its own; without one the environment
        variable RAY_ADDRESS counts, then the cluster that `ray start` has left running on this machine, then "local". A
        process that has joined a cluster before stays with it. `waive`: as LocalSandbox, of every node. Raises
        ImportError without the extra `ray`.
        """
        require_arguments(workers, waive)
        self.version = LocalSandbox(waive=waive).version
        """Changes with whatever may change an outcome: every node's local sandbox has to be of this version."""
        make = partial(NodeSandbox, tuple(waive))
        super().__init__(processes_on("ray", workers, make, address, version=self.version), workers)

    def _results(self, answer: Any, jobs: Sequence[Job]) -> Iterable[JobResult]:
        return map(unpacked_result, answer, jobs)
