"""What runs in the containers of a Docker sandbox, seen from outside."""

from __future__ import annotations

from typing import Any

from codea1_env.sandbox.docker.backend import DockerSandbox


def containers_of(sandbox: DockerSandbox) -> list[str]:
    """Those of an idle sandbox, which has one at least."""
    assert sandbox.guarantees
    return started(sandbox)


def started(sandbox: DockerSandbox) -> list[str]:
    """Those that have started and been tried, whatever they do now."""
    return [container.container_id for container in sandbox._processes._members]


def candidates(engine: Any, container: str) -> list[str]:
    """Processes of the container that are neither init, driver, guard nor zygote. ValueError before these are there."""
    rows = engine.top(container, ps_args="-eo pid,ppid,args")["Processes"]
    children: dict[str, list[str]] = {}
    for pid, parent, _ in rows:
        children.setdefault(parent, []).append(pid)
    (init,) = [pid for pid, parent, _ in rows if parent not in {pid for pid, *_ in rows}]
    (driver,) = children.get(init, [])
    guards = children.get(driver, [])
    zygotes = [pid for guard in guards for pid in children.get(guard, [])[:1]]
    known = {init, driver, *guards, *zygotes}
    return [arguments for pid, _, arguments in rows if pid not in known]
