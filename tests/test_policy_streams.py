"""A policy's random streams: it draws as if it were alone, and the caller's are as they were."""

import contextlib
import random
from typing import Any

import numpy as np
import pytest

pytest.importorskip("trl", reason="the extra `train` is not installed")

import torch

from codea1_env.training.policies.streams import OwnStreams


def draw() -> tuple[float, float, float]:
    return random.random(), float(np.random.random()), float(torch.rand(()))


def draws(streams: OwnStreams, count: int) -> list[tuple[float, float, float]]:
    with streams.active():
        return [draw() for _ in range(count)]


def test_a_policy_draws_the_same_whenever_others_draw() -> None:
    alone = draws(OwnStreams(11), 6)
    one, other = OwnStreams(11), OwnStreams(22)
    mixed, others = [], []
    for count in (1, 3, 2):
        mixed += draws(one, count)
        others += draws(other, 2)
        draw()  # the caller's own
    assert mixed == alone
    assert others == draws(OwnStreams(22), 6) != alone
    assert len({*alone, *others}) == 12


@pytest.mark.parametrize("fails", [False, True])
def test_the_callers_streams_come_back_and_a_policy_goes_on_whatever_happened(fails: bool) -> None:
    found, streams = dict[str, list[Any]](), OwnStreams(11)
    for name in ("alone", "beside"):
        for seed in (random.seed, np.random.seed, torch.manual_seed):
            seed(5)
        found[name] = [draw()]
        if name == "beside":
            with contextlib.suppress(LookupError), streams.active():
                first = draw()
                if fails:
                    raise LookupError
        found[name].append(draw())
    assert found["beside"] == found["alone"]
    assert [first, *draws(streams, 1)] == draws(OwnStreams(11), 2)
