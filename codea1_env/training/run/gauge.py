"""Measures the seats of a run: on all held-out problems, or on some in between. Does not log or decide when."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codea1_env.arena.arena import Arena
from codea1_env.configuration.presets import Preset
from codea1_env.problems.problem import Problem
from codea1_env.training.models.chat import Prompter
from codea1_env.training.models.sampling import Sampler
from codea1_env.training.run.held_out import HiddenRecord, MeasuredSeats, evaluate_coder, evaluate_tester
from codea1_env.training.samples import Model, SamplerSettings


@dataclass(frozen=True, slots=True)
class Gauge:
    """What a seat is measured with."""

    arena: Arena
    preset: Preset
    held_out: tuple[Problem, ...]
    prompter: Prompter
    load: Callable[[str, Path], Any]
    """A saved model, from role and directory: a `Model`, which can be let go."""

    def measured(self, coder: Path, tester: Path | None) -> MeasuredSeats:
        """Saved models, on all held-out problems. `tester` None: the coder only."""
        return MeasuredSeats(self._let_go("coder", coder), None if tester is None else self._let_go("tester", tester))

    def _let_go(self, role: str, directory: Path) -> Any:
        """As `of`, of a model that nobody asks afterwards: its place is its seat's, which trains there."""
        model = self.load(role, directory)
        try:
            return self._measure(role, model, self.held_out)
        finally:
            model.let_go()

    def of(self, role: str, directory: Path) -> Any:
        """One saved model on all held-out problems: a CoderResult or a TesterResult."""
        return self._measure(role, self.load(role, directory), self.held_out)

    def summary(self, role: str, policy: Model, rounds_done: int, record: HiddenRecord) -> dict[str, float]:
        """A policy as it is, on the first of the held-out problems. `record`: the run's, of what the coder passed."""
        result = self._measure(role, policy, self.held_out[: self.preset.evaluation.problems])
        summary: dict[str, float] = result.summary()
        return summary | (record.note(rounds_done, result) if role == "coder" else {})

    def _measure(self, role: str, model: Model, problems: Sequence[Problem]) -> Any:
        """A CoderResult or a TesterResult."""
        shape = self.preset.evaluation
        how = SamplerSettings(shape.tokens or self.preset.grpo.tokens(role), shape.temperature, 0, shape.top_p)
        sampler = Sampler(model, self.prompter, how)
        if role == "coder":
            return evaluate_coder(self.arena, problems, sampler.coder, shape.samples)
        return evaluate_tester(self.arena, problems, sampler.tester, shape.samples, shape.mutants)
