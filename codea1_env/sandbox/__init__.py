"""Runs untrusted programs: calls go in, values come out. The sandbox never holds a right value."""

from __future__ import annotations

from typing import TYPE_CHECKING

from codea1_env.checks import is_choice
from codea1_env.errors import ConfigurationError, SandboxError, SandboxUnsafe
from codea1_env.sandbox.local import LocalSandbox
from codea1_env.sandbox.protocol import CallsJob, ExpressionsJob, Job, JobResult, Limits, Outcome, OutcomeKind, Sandbox
from codea1_env.sandbox.ray_cluster import RaySandbox

if TYPE_CHECKING:
    from codea1_env.sandbox.docker.backend import DockerSandbox

BACKENDS = ("local", "docker", "ray")


def open_sandbox(
    backend: str = "local", workers: int = 1, *, address: str | None = None
) -> LocalSandbox | DockerSandbox | RaySandbox:
    """The backend of that name. `address` is that of a Ray cluster, for "ray" only.

    "docker" needs a running engine and an image, which `codea1 sandbox build-image` makes. Raises ConfigurationError
    for a name that this version does not have, and ImportError if an extra is missing.
    """
    if not is_choice(backend, BACKENDS):
        raise ConfigurationError(f"the sandbox must be one of {', '.join(BACKENDS)} in this version, got {backend!r}")
    if backend == "ray":
        return RaySandbox(workers, address=address)
    if address is not None:
        raise ConfigurationError(f"address must be left out for the sandbox {backend!r}, got {address!r}")
    if backend == "docker":
        from codea1_env.sandbox.docker.backend import DockerSandbox

        return DockerSandbox(workers)
    return LocalSandbox(workers)


__all__ = [
    "BACKENDS",
    "CallsJob",
    "ExpressionsJob",
    "Job",
    "JobResult",
    "Limits",
    "LocalSandbox",
    "Outcome",
    "OutcomeKind",
    "RaySandbox",
    "Sandbox",
    "SandboxError",
    "SandboxUnsafe",
    "open_sandbox",
]
