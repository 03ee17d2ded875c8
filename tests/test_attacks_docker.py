"""The corpus of `attacks/` in a container: the canaries are the host's. Skipped, saying why, without an engine."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from attacks.canaries import Canaries
from attacks.checks import CorpusChecks, kept
from attacks.playing import Played, play
from containers import candidates, containers_of

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
        return dataclasses.replace(played, processes_left=candidates(engine, first[0]))


class TestDocker(CorpusChecks):
    """All of it."""


def test_it_was_played_inside_both_walls(played: Played) -> None:
    for layer in ("seccomp", "landlock", "rlimits", "container_network", "container_read_only"):
        assert played.layers[layer] is True
