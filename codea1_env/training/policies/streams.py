"""A policy's own random streams in a process that has others: what a seat learns does not depend on when another plays.

While a policy works, the global streams (python, numpy, torch) are its own; afterwards they are the caller's again.
Those of a GPU are not exchanged: a policy on a GPU has a process of its own.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from codea1_env.extras import extra

with extra("train", "training needs"):
    import torch


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


class OwnStreams:
    """The streams of one policy, from a seed on."""

    def __init__(self, seed: int) -> None:
        callers = RandomStreams.take()
        random.seed(seed)
        np.random.seed(seed)
        torch.manual_seed(seed)
        self._own = RandomStreams.take()
        callers.put()

    @contextmanager
    def active(self) -> Iterator[None]:
        """Work with them, and go on from there the next time."""
        callers = RandomStreams.take()
        self._own.put()
        try:
            yield
        finally:
            self._own = RandomStreams.take()
            callers.put()
