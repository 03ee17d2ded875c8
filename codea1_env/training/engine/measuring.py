"""Measures the seats of a run, in whatever process their models are: on all held-out problems, or on some in between.

Does not log and does not decide when.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codea1_env.problems.problem import Problem
from codea1_env.training.config.presets import Preset
from codea1_env.training.models.chat import chat_of
from codea1_env.training.models.sampling import LoadedModel, Sampler, load_model
from codea1_env.training.run.held_out import evaluate_coder, evaluate_tester
from codea1_env.training.run.hidden_tests import HiddenRecord


def roles_of(seat: str) -> tuple[str, ...]:
    """What a seat is measured as: the one player of self-play in both seats."""
    return ("coder", "tester") if seat == "player" else (seat,)


@dataclass(frozen=True, slots=True)
class Gauge:
    """What a seat is measured with."""

    arena: Any
    """The arena, or a handle of it."""
    preset: Preset
    held_out: tuple[Problem, ...]

    def saved(self, seat: str, directory: Path) -> Any:
        """A CoderResult or a TesterResult: the model in `directory`, on all held-out problems."""
        device = "cuda" if self.preset.placement.of(seat).gpus_per_node else "cpu"
        loaded = load_model(directory, self.preset, device)
        return self._measure(seat, loaded.sampler(self.preset, **self._sampling(seat)), self.held_out)

    def summary(
        self, seat: str, model: Any, tokenizer: Any, rounds_done: int, record: HiddenRecord
    ) -> dict[str, float]:
        """A model in training, on the first of the held-out problems. `record`: the run's, of what the coder passed."""
        sampler = LoadedModel(model, tokenizer).sampler(self.preset, **self._sampling(seat))
        result = self._measure(seat, sampler, self.held_out[: self.preset.evaluation.problems])
        summary: dict[str, float] = result.summary()
        return summary | (record.note(rounds_done, result) if seat == "coder" else {})

    def _measure(self, seat: str, sampler: Sampler, problems: Sequence[Problem]) -> Any:
        shape = self.preset.evaluation
        if seat == "coder":
            return evaluate_coder(self.arena, problems, sampler.coder, shape.samples)
        return evaluate_tester(self.arena, problems, sampler.tester, shape.samples, shape.mutants)

    def _sampling(self, seat: str) -> dict[str, Any]:
        measured = self.preset.evaluation
        tokens = measured.tokens or self.preset.grpo.tokens(seat)
        sampling = {"tokens": tokens, "temperature": measured.temperature, "top_p": measured.top_p, "seed": 0}
        return {"chat": chat_of(self.preset), **sampling}
