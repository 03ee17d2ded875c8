"""What the tests of the Ray engine share: a cluster, an undisturbed run, a seat that dies. Not a test module."""

from __future__ import annotations

import dataclasses
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import ray
import training_runs
from ray_clusters import start_cluster
from training_runs import TINY, play_duel

TWICE = dataclasses.replace(TINY, round=dataclasses.replace(TINY.round, updates=2))
needs_cluster = pytest.mark.usefixtures("cluster")


@pytest.fixture(scope="module")
def cluster(request: pytest.FixtureRequest) -> Iterator[None]:
    """One for all: the engine stays with the cluster that its process has joined."""
    for module in (training_runs, sys.modules[__name__], request.module):
        ray.cloudpickle.register_pickle_by_value(module)  # the actors cannot import tests
    start_cluster(num_cpus=4)
    yield
    ray.shutdown()


@pytest.fixture(scope="module")
def whole(base: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An uninterrupted run in one process: what every run here must come to."""
    directory = tmp_path_factory.mktemp("runs") / "local"
    assert not play_duel(directory, base, rounds=3, preset=TWICE)
    return directory


class InRound:
    """A seat's meeting that does `what(meeting)` before it takes the programs of a round, counted from 1."""

    def __init__(self, meeting: Any, number: int, what: Callable[[Any], None]) -> None:
        self._meeting, self._number, self._what = meeting, number, what

    def take_attacks(self, round_index: int) -> Any:
        if round_index + 1 == self._number:
            self._what(self._meeting)
        return self._meeting.take_attacks(round_index)

    def submit_suites(self, *arguments: Any) -> Any:
        return self._meeting.submit_suites(*arguments)


def meet_in_round(number: int, what: Callable[[Any], None]) -> dict[str, Any]:
    return {"tester": lambda meeting: InRound(meeting, number, what)}


def die(_: Any = None) -> None:
    os.kill(os.getpid(), signal.SIGKILL)
