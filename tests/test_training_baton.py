"""The baton: each thread draws as if it were alone, whatever the other does; the first failure ends both."""

import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("trl", reason="the extra `train` is not installed")

import torch

from codea1_env.training.engine import baton
from codea1_env.training.engine.baton import Baton, RandomStreams, run_threads

SEEDS = {"one": 11, "other": 22}


def draw() -> tuple[float, float, float]:
    return random.random(), float(np.random.random()), float(torch.rand(()))


def draws(delays: dict[str, float]) -> dict[str, list[tuple[float, float, float]]]:
    """Six draws of each of two threads that pass the baton between every two."""
    baton = Baton()
    drawn: dict[str, list[tuple[float, float, float]]] = {}

    def seat(name: str) -> Callable[[], None]:
        def work() -> None:
            with baton.held(SEEDS[name]):
                drawn[name] = []
                for _ in range(6):
                    drawn[name].append(draw())
                    with baton.released():
                        time.sleep(delays[name])

        return work

    assert run_threads({name: seat(name) for name in SEEDS}, lambda error: None, lambda: None) is None
    return drawn


def test_a_thread_draws_the_same_whatever_the_other_ones_timing() -> None:
    even = draws({"one": 0.002, "other": 0.002})
    assert even == draws({"one": 0.02, "other": 0.0}) == draws({"one": 0.0, "other": 0.02})
    assert even["one"] != even["other"]
    assert len(set(even["one"])) == 6


@pytest.mark.parametrize("delays", [(0.0, 0.0), (0.02, 0.0), (0.0, 0.02)], ids=["even", "one last", "other last"])
def test_the_callers_own_streams_come_back_whoever_ends_last(delays: tuple[float, float]) -> None:
    before = RandomStreams.take()
    expected = draw()
    before.put()
    draws(dict(zip(SEEDS, delays, strict=True)))
    assert draw() == expected


def test_only_one_thread_works_at_a_time() -> None:
    baton, inside, most = Baton(), [0], [0]

    def work() -> None:
        with baton.held(0):
            for _ in range(20):
                inside[0] += 1
                most[0] = max(most[0], inside[0])
                time.sleep(0.0005)
                inside[0] -= 1
                with baton.released():
                    pass

    run_threads({"one": work, "other": work}, lambda error: None, lambda: None)
    assert most == [1]


def test_the_first_failure_is_the_one_reported_and_wakes_the_other() -> None:
    woken = threading.Event()

    def fail() -> None:
        raise KeyError("mine")

    def wait_then_fail() -> None:
        assert woken.wait(30)
        raise RuntimeError("only because of the other")

    failure = run_threads({"waits": wait_then_fail, "fails": fail}, lambda error: woken.set(), lambda: None)
    assert isinstance(failure, KeyError)


def test_a_seat_that_hangs_is_left_behind_when_the_other_one_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(baton, "LAST_WORDS_S", 0.1)
    release = threading.Event()

    def fail() -> None:
        raise KeyError("mine")

    def hang() -> None:
        release.wait()

    failure = run_threads({"hangs": hang, "fails": fail}, lambda error: None, lambda: None)
    release.set()
    assert isinstance(failure, KeyError)


INTERRUPTED_TWICE = """
import os, signal, threading, time, torch
from codea1_env.training.config.arguments import exit_status
from codea1_env.training.engine.baton import run_threads

def seat():
    weights = torch.ones(64, 64, requires_grad=True)
    while True:
        (weights @ weights).sum().backward()

def press():
    for _ in range(2):
        time.sleep(0.3)
        os.kill(os.getpid(), signal.SIGINT)

def main():
    threading.Thread(target=press, daemon=True).start()
    {end}

raise SystemExit(exit_status(main))
"""
AT_ONCE = 'run_threads({"coder": seat}, on_failure=print, on_interrupt=lambda: None)'
FAULT = 'threading.Thread(target=seat, name="tester", daemon=True).start(); raise LookupError("unforeseen")'


@pytest.mark.parametrize(("end", "status", "says"), [(AT_ONCE, 130, "interrupted"), (FAULT, 1, "LookupError: unfor")])
def test_a_seat_that_is_left_in_torch_does_not_change_how_a_recipe_ends(end: str, status: int, says: str) -> None:
    command = [sys.executable, "-c", INTERRUPTED_TWICE.replace("{end}", end)]
    done = subprocess.run(command, cwd=Path(__file__).parents[1], capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stderr
    assert says in done.stderr
    assert "terminate called" not in done.stderr
