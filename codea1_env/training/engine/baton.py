"""One process, two training threads, one baton: only the thread that holds it touches torch.

Passing the baton swaps the global random streams (python, numpy, torch), so that each thread draws from its own as if
it were alone: what a seat learns does not depend on when the other one ran. Accelerate's gradient-accumulation state,
which is global too, is made thread-local.

Does not promise speed: the threads alternate. Single process, single rank, CPU or one device.
"""

from __future__ import annotations

import math
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from codea1_env.extras import extra

with extra("train", "training needs"):
    import torch
    from accelerate.state import GradientState, ThreadLocalSharedDict


LAST_WORDS_S = 20.0
"""Seconds for a seat to end after the other one failed."""


@dataclass(frozen=True, slots=True)
class RandomStreams:
    """A snapshot of the process's global random streams."""

    python: Any
    numpy: Any
    torch: Any

    @classmethod
    def take(cls) -> RandomStreams:
        return cls(random.getstate(), np.random.get_state(), torch.get_rng_state())

    def put(self) -> None:
        random.setstate(self.python)
        np.random.set_state(self.numpy)
        torch.set_rng_state(self.torch)


def seed_streams(seed: int) -> None:
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


class Baton:
    """A lock whose holder owns the global random streams. Whenever nobody holds it, they are the caller's own."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._callers: RandomStreams | None = None

    @contextmanager
    def held(self, seed: int) -> Iterator[None]:
        """Hold the baton; the thread's streams start from `seed`. What was there before comes back at the end."""
        self._acquire()
        try:
            seed_streams(seed)
            yield
        finally:
            self._release()

    @contextmanager
    def released(self) -> Iterator[None]:
        """Let others have the baton while this thread waits; it comes back with this thread's own streams."""
        own = RandomStreams.take()
        self._release()
        try:
            yield
        finally:
            self._acquire()
            own.put()

    def _acquire(self) -> None:
        self._lock.acquire()
        self._callers = RandomStreams.take()

    def _release(self) -> None:
        assert self._callers is not None
        self._callers.put()
        self._lock.release()


def isolate_gradient_state() -> None:
    """Give each thread its own accumulation state. Must come before the first Accelerator; harmless to repeat."""
    if not isinstance(vars(GradientState)["_shared_state"], ThreadLocalSharedDict):
        GradientState._shared_state = ThreadLocalSharedDict()


def run_threads(
    seats: Mapping[str, Callable[[], None]],
    on_failure: Callable[[BaseException], None],
    on_interrupt: Callable[[], None],
    torch_threads: int = 1,
) -> BaseException | None:
    """Run each seat in a thread of its own; return when all have ended, with the first failure, if any.

    `on_failure(error)` is called in the failing thread and must wake the others. `on_interrupt` is called on the
    first Ctrl-C and must bring the seats to an end; a second Ctrl-C raises KeyboardInterrupt at once. A seat that hangs
    after another one failed is left behind after LAST_WORDS_S.
    """
    failures: list[BaseException] = []
    given_up_at = math.inf
    ended = {seat: threading.Event() for seat in seats}

    def run(seat: str, work: Callable[[], None]) -> None:
        try:
            torch.set_num_threads(torch_threads)
            work()
        except BaseException as error:  # carried to the caller, which raises it
            failures.append(error)
            on_failure(error)
        finally:
            ended[seat].set()

    threads = [threading.Thread(target=run, args=item, name=item[0], daemon=True) for item in seats.items()]
    for thread in threads:
        thread.start()
    interrupted = False
    while not all(event.is_set() for event in ended.values()):
        try:
            # Not Thread.join: interrupted by Ctrl-C, it takes a running thread for ended (bpo-45274's remedy, 3.11).
            for event in ended.values():
                event.wait(0.2)
            if failures and time.monotonic() > (given_up_at := min(given_up_at, time.monotonic() + LAST_WORDS_S)):
                return failures[0]
        except KeyboardInterrupt:
            if interrupted:
                raise
            interrupted = True
            on_interrupt()
    for thread in threads:
        thread.join()
    return failures[0] if failures else None
