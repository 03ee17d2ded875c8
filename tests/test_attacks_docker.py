"""The corpus of `attacks/` in a container: the canaries are the host's. Skipped, saying why, without an engine."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from attacks.canaries import Canaries
from attacks.checks import CorpusChecks, kept
from attacks.playing import Played, play

from codea1_env.sandbox.docker.backend import DockerSandbox

__all__ = ["kept"]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def played(engine: Any, kept: Canaries) -> Played:
    with DockerSandbox() as sandbox:
        assert sandbox.guarantees
        first = containers_of(sandbox)
        played = play(sandbox, kept.words, calls=1)
        assert containers_of(sandbox) == first, "an attack cost its container"
        return dataclasses.replace(played, processes_left=processes_left(engine, first[0]))


def containers_of(sandbox: DockerSandbox) -> list[str]:
    return [slot.container.container_id for slot in sandbox._slots if slot.container is not None]


def processes_left(engine: Any, container: str) -> list[str]:
    """Processes of the container that are neither init, driver, guard nor zygote."""
    rows = engine.top(container, ps_args="-eo pid,ppid,args")["Processes"]
    children: dict[str, list[str]] = {}
    for pid, parent, _ in rows:
        children.setdefault(parent, []).append(pid)
    (init,) = [pid for pid, parent, _ in rows if parent not in {pid for pid, *_ in rows}]
    (driver,) = children[init]
    guards = children[driver]
    zygotes = [pid for guard in guards for pid in children[guard][:1]]
    known = {init, driver, *guards, *zygotes}
    return [arguments for pid, _, arguments in rows if pid not in known]


class TestDocker(CorpusChecks):
    """All of it."""


def test_it_was_played_inside_both_walls(played: Played) -> None:
    for layer in ("seccomp", "landlock", "rlimits", "container_network", "container_read_only"):
        assert played.layers[layer] is True
