"""A policy's random streams: it draws as if it were alone, and the caller's are as they were."""

import random

import numpy as np
import pytest

pytest.importorskip("trl", reason="the extra `train` is not installed")

import torch

from codea1_env.training.policies.streams import OwnStreams


def draw() -> tuple[float, float, float]:
    return random.random(), float(np.random.random()), float(torch.rand(()))


def seed(number: int) -> None:
    random.seed(number)
    np.random.seed(number)
    torch.manual_seed(number)


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
    seed(5)
    expected = [draw(), draw()]
    seed(5)
    streams = OwnStreams(11)
    found = [draw()]
    first: tuple[float, float, float] | None = None
    try:
        with streams.active():
            first = draw()
            if fails:
                raise LookupError
    except LookupError:
        pass
    assert [*found, draw()] == expected
    assert [first, *draws(streams, 1)] == draws(OwnStreams(11), 2)
