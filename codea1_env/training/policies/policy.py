"""A policy plays in a seat and learns. The loop of a recipe calls it; it calls nothing of the loop.

    samples = policy.sample(prompts, n)
    advantages = policy.advantages(batch)          # the estimator of `algorithm.advantage`
    for update in policy.updates(batch, advantages):
        policy.backward(update)                    # the loss, its gradient
        policy.step()                              # clipping, optimizer, schedule

There are three: `packed.py` for small models, `trl_policy.py` for everything that TRL trains, and `remote.py` for one
in other processes. Does not know the reasons of a reward.
"""

from __future__ import annotations

import dataclasses
import json
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from codea1_env.class_paths import state_text
from codea1_env.training.advantages import Advantages, advantages_of, described, estimator_of
from codea1_env.training.losses import Loss
from codea1_env.training.samples import (
    Batch,
    Model,
    Prompt,
    Sample,
    SamplerSettings,
    SeatRun,
    Tokens,
    answers,
    sample_of,
)

STATE = "advantage.json"
"""What the estimator remembers, in every checkpoint."""
TOKENS = "tokens"
"""Of a round's metrics of a seat: tokens of its responses, those included that nobody learns from."""


class Policy(ABC):
    """Plays in a seat and learns. Seeds, checkpoints and bits are the seat's own, whatever other seats do."""

    def __init__(self, run: SeatRun, tokenizer: Any) -> None:
        self.run, self.seat, self.tokenizer = run, run.seat, tokenizer
        self.estimator = estimator_of(run.preset.algorithm)
        if run.resume_from is not None and (run.resume_from / STATE).exists():
            self.estimator.restore(json.loads((run.resume_from / STATE).read_text(encoding="utf-8")))
        self._seconds = {"generating": 0.0, "learning": 0.0}
        self._sampled = 0
        self._described: dict[str, float] = {}

    def begin(self, round_index: int) -> None:
        """Called at the beginning of every round, in order."""
        self._seconds = {"generating": 0.0, "learning": 0.0}
        self._sampled = 0
        self._described = {}

    def sample(self, prompts: Sequence[Prompt], n: int) -> list[list[Sample]]:
        """`n` samples of each prompt, at the temperature of training. Samples of a prompt that does not fit have no
        text."""
        with self._timed("generating"):
            drawn = self.draw(prompts, n)
            self._sampled += sum(len(each.tokens) for group in drawn for each in group)
            return [[sample_of(self.tokenizer, prompt, each) for each in group]
                    for prompt, group in zip(prompts, drawn, strict=True)]  # fmt: skip

    def advantages(self, batch: Batch) -> Advantages:
        """What the estimator makes of the rewards of a batch."""
        found = advantages_of(self.estimator, batch)
        self._described = described(batch, found)
        return found

    @abstractmethod
    def draw(self, prompts: Sequence[Prompt], n: int) -> list[list[Tokens]]:
        """`n` responses to each prompt."""

    @abstractmethod
    def updates(self, batch: Batch, advantages: Advantages) -> Sequence[Any]:
        """The batch as `round.updates` parts, one for each optimizer step."""

    @abstractmethod
    def backward(self, update: Any, loss: Loss | None = None) -> None:
        """The loss of an update and its gradient. `loss`: None is the one that the configuration names."""

    @abstractmethod
    def step(self) -> None:
        """Clip the gradient, step the optimizer and the schedule. Raises PlayerError for a gradient that is not finite;
        nothing changes then."""

    @abstractmethod
    def measured(self) -> dict[str, float]:
        """Measurements of the round's updates, by the names of `docs/metrics.md`."""

    def metrics(self) -> dict[str, float]:
        """Of the round so far."""
        measured = self.measured()  # first: one in other processes tells the seconds, too
        seconds = {f"seconds_{part}": value for part, value in self._seconds.items()}
        return {**self._described, **measured, **seconds, TOKENS: float(self._sampled)}

    @abstractmethod
    def answer(self, prompts: Sequence[Prompt], n: int, how: SamplerSettings) -> list[list[Tokens]]:
        """As a `Model`."""

    @abstractmethod
    def save(self, checkpoint: Path) -> None:
        """Everything that a resumed run needs, into a directory of the name checkpoint-STEP."""

    def save_estimator(self, checkpoint: Path) -> None:
        """What the estimator remembers."""
        (checkpoint / STATE).write_text(state_text(self.estimator, "algorithm.advantage"), encoding="utf-8")

    @abstractmethod
    def export(self, directory: Path, goes_on: bool = False) -> None:
        """The model and its tokenizer, in Hugging Face format; an adapter beside a base that stays where it is.
        `goes_on`: the policy learns afterwards."""

    @contextmanager
    def _timed(self, part: str) -> Iterator[None]:
        start = time.perf_counter()
        try:
            yield
        finally:
            self._seconds[part] += time.perf_counter() - start


class Frozen:
    """A model in a seat that does not learn. What it samples depends on the run's seed and the round alone."""

    def __init__(
        self, model: Model, tokenizer: Any, seat: str, how: SamplerSettings, seed_of: Callable[[int], int]
    ) -> None:
        """`seed_of`: the seed of each round."""
        self._model, self._tokenizer, self.seat, self._how, self._seed_of = model, tokenizer, seat, how, seed_of
        self._round, self._before = 0, (0, 0.0)
        self.tokens, self.seconds = 0, 0.0
        """Of all responses so far."""

    def begin(self, round_index: int) -> None:
        self._round, self._before = round_index, (self.tokens, self.seconds)

    def sample(self, prompts: Sequence[Prompt], n: int) -> list[list[Sample]]:
        """As `Policy.sample`."""
        start = time.perf_counter()
        how = dataclasses.replace(self._how, seed=self._seed_of(self._round))
        samples = answers(self._model, self._tokenizer, prompts, n, how)
        self.tokens += sum(len(sample.tokens) for group in samples for sample in group)
        self.seconds += time.perf_counter() - start
        return samples

    def metrics(self) -> dict[str, float]:
        tokens, seconds = self._before
        spent = {TOKENS: float(self.tokens - tokens), "seconds_generating": self.seconds - seconds}
        return {**spent, "seconds_learning": 0.0}
