"""The Docker backend: the local backend inside a warm pool of long-lived containers, one per worker.

A container adds its own walls (no network, nothing to write on, no capabilities, limits on memory and processes) around
the ones that `sandbox/local.py` puts around each candidate; jobs go in and results come out over its attached streams.
Needs the extra `docker`, a running engine and an image (`codea1 sandbox build-image`). A container that broke is
replaced and its jobs run again.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Collection, Mapping, Sequence
from multiprocessing.connection import wait
from typing import Any

from codea1_env.errors import PackageMissing, SandboxError
from codea1_env.sandbox.chunks import ChunkedSandbox
from codea1_env.sandbox.docker.engine import (
    PACKAGES_LABEL,
    SOURCES_LABEL,
    Container,
    connect,
    remove_abandoned,
    require_docker,
)
from codea1_env.sandbox.docker.image import DEFAULT_IMAGE, sources_digest
from codea1_env.sandbox.processes import Processes
from codea1_env.sandbox.protocol import Job, require_arguments

_MOST_JOBS = 20_000
"""After so many a container is replaced by a new one."""
_SMALLEST_MB = 1536
_OWN_MB = 512
"""MiB of a container beyond what one candidate may use: driver, zygotes and the job's memory files."""


class DockerSandbox(ChunkedSandbox):
    """Runs jobs in up to `workers` containers."""

    def __init__(
        self,
        workers: int = 1,
        *,
        image: str = DEFAULT_IMAGE,
        runtime: str | None = None,
        waive: Collection[str] = (),
    ) -> None:
        """Nothing is started before the first job. Raises ImportError without the extra `docker`.

        `runtime` is the engine's ("runsc" for gVisor, which has no Landlock: the sandbox then refuses, naming it,
        unless `waive` has "filesystem"). `waive`: as LocalSandbox.
        """
        require_docker()
        require_arguments(workers, waive)
        self._containers = _Containers(image, runtime, {"waive": sorted(waive)})
        super().__init__(self._containers, workers)
        self._at_exit = weakref.finalize(self, self._containers.close)

    @property
    def version(self) -> str:
        """Changes with whatever may change an outcome: the image holds the interpreter and the code inside."""
        with self._lock:
            self._containers.connect()
            image, runtime = self._containers.image_id.removeprefix("sha256:"), self._containers.runtime
            return f"docker-2-{image[:16]}-{runtime or 'default'}"

    def _prepare(self, pieces: Sequence[Sequence[Job]]) -> None:
        jobs = [job for piece in pieces for job in piece]
        self._containers.refuse_missing({name for job in jobs for name in job.packages})
        self._containers.memory_mb = max((job.limits.memory_mb for job in jobs), default=0)
        self._containers.count = min(self._workers, len(pieces))  # no more than have work


class _Containers(Processes):
    """Of one image."""

    def __init__(self, image: str, runtime: str | None, options: Mapping[str, object]) -> None:
        super().__init__(1, version="")
        self.runtime, self.image_id, self.memory_mb = runtime, "", 0
        self._image, self._options = image, options
        self._packages: frozenset[str] = frozenset()
        self._client: Any = None

    def connect(self) -> Any:
        """The engine's client. The first time, what killed processes left there is removed and the image is checked."""
        if self._client is not None:
            return self._client
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
        self.image_id = details["Id"]
        self._packages = frozenset(labels.get(PACKAGES_LABEL, "").split(","))
        self._client = client
        return client

    def refuse_missing(self, packages: Collection[str]) -> None:
        """Before any container is asked: there it would look like the container's failure."""
        if packages:
            self.connect()
        missing = sorted(set(packages) - self._packages)
        if missing:
            raise PackageMissing(
                f"the image {self._image} must have {', '.join(missing)} for these programs, got one without; make it "
                f"again: codea1 sandbox build-image --tag {self._image} --with {' '.join(missing)}"
            )

    def _fits(self, member: Container) -> bool:
        large_enough = member.memory_mb >= self.memory_mb + _OWN_MB
        return member.jobs < _MOST_JOBS and large_enough and not member.has_news()

    def _started(self, place: int) -> Container:
        client = self.connect()
        memory_mb = max(_SMALLEST_MB, self.memory_mb + _OWN_MB)
        return Container(client, self.image_id, self._options, memory_mb, self.runtime)

    def _answering(self, members: Sequence[Container]) -> Sequence[Container]:
        if not any(member.has_news() for member in members):
            wait([member.socket for member in members], timeout=1.0)
        return [member for member in members if member.has_news()]

    def close(self) -> None:
        super().close()
        if self._client is not None and os.getpid() == self._owner:
            self._client.close()
