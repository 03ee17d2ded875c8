"""What the tests of the Ray engine share: a cluster, a seat that dies or learns something else. Not a test module."""

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
from training_runs import SEATS, TINY, play_duel

TWICE = dataclasses.replace(TINY, round=dataclasses.replace(TINY.round, updates=2))
needs_cluster = pytest.mark.usefixtures("cluster")
What = Callable[[Any, Any], None]
"""What a test does once a round is scored: `what(run, score)`."""


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


def in_round(number: int, *what: What) -> dict[str, Any]:
    """For `play_duel`: what happens in a round, counted from 1, before it is learnt from."""

    def on_score(run: Any, index: int, score: Any) -> None:
        for each in what if index + 1 == number else ():
            each(run, score)

    return {"on_score": on_score}


def killed(seat: str, rank: int = -1) -> What:
    """A process of a seat is gone."""
    return lambda run, score: run._policies[seat]._ranks.actors[rank].__ray_call__.remote(die)


def die(_: Any = None) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def learns_by(seat: str, loss: Callable[[Any], Any]) -> What:
    """A seat takes a gradient of another loss."""

    def what(run: Any, score: Any) -> None:
        policy, batch = run._policies[seat], score.batches[SEATS.index(seat)]
        policy.backward(policy.updates(batch, policy.advantages(batch))[0], loss)

    return what
