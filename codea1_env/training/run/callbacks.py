"""What a seat's trainer tells the run: rounds counted from optimizer steps, metrics, evaluations, checkpoints, the end.

The same for every seat and engine. Does not decide anything: when to stop and what to save is the engine's.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from codea1_env.extras import extra
from codea1_env.training.config.presets import Preset
from codea1_env.training.run.checkpoints import forget_old, mark_complete
from codea1_env.training.run.ranks import wait_for_all

with extra("train", "training needs"):
    from transformers import TrainerCallback

LOGGED = {
    "loss": "loss",
    "grad_norm": "grad_norm",
    "entropy": "entropy",
    "learning_rate": "learning_rate",
    "reward": "reward",
    "reward_std": "reward_std",
    "kl": "kl",
    "frac_reward_zero_std": "frac_reward_zero_std",
    "length": "completions/mean_length",
    "truncated": "completions/clipped_ratio",
    "accuracy": "mean_token_accuracy",
    "sampling_gap": "sampling/sampling_logp_difference/mean",
    "tokens": "tokens",
    "prompt_tokens": "prompt_tokens",
    "learnt_tokens": "learnt_tokens",
    "tokens_per_second": "tokens_per_second",
}
"""What is logged of a seat's round, by its name with us: the name that TRL logs it under. `sampling_gap`: how far the
log-probabilities of samples by vLLM or the trainer packed are from the trained model's; with stale weights it is large.
The last four are the trainer packed's."""


@dataclass(frozen=True, slots=True)
class SeatRun:
    """What a seat needs to train, beside its reward."""

    preset: Preset
    base: Path
    """The model to start from, in Hugging Face format."""
    output: Path
    """Where checkpoints go."""
    seed: int
    resume_from: Path | None = None
    """A checkpoint of this seat, or None to start from the base."""
    outputs: Mapping[str, Path] = field(default_factory=dict)
    """Of all seats of the run, this one's included: no checkpoint goes that another seat still needs."""

    @property
    def device(self) -> str:
        """Where the seat's models are sampled from outside of its trainer."""
        return "cuda" if self.preset.placement.of(self.output.name).gpus_per_node else "cpu"

    def stream(self, place: int) -> int:
        """A seed for each `place`, a round or part of the run: no two runs share one, none has a million rounds."""
        return self.seed * 1_000_000 + place


@dataclass(frozen=True, slots=True)
class SeatHooks:
    """What a seat tells the run."""

    log: Callable[[int, Mapping[str, float]], None]
    """(round, values) after each round."""
    evaluate: Callable[[int, Any, Any], None]
    """(rounds done, model, tokenizer) every `evaluation.every_rounds` rounds."""
    save: Callable[[int, Path], None]
    """(rounds done, checkpoint directory) when a checkpoint is written, before it is marked complete."""
    is_last: Callable[[int], bool]
    """Whether to stop after this round, though more were planned."""


class RoundClock:
    """Splits a seat's time in a round, in seconds: it generates, learns, or waits for the other seat and the arena.

    A round begins and ends with the seat's optimizer steps: evaluations and checkpoints between rounds are not in it.
    """

    def __init__(self, now: Callable[[], float] = time.perf_counter) -> None:
        self._now = now

    def begin(self) -> None:
        """The round begins. A seat that neither generates nor hands over learns from here on."""
        self._begun = self._started = self._handed_over = self._resumed = self._now()

    def start(self) -> None:
        """Generation begins later than the round: what came before was waiting."""
        self._started = self._now()

    def hand_over(self) -> None:
        """Generation has ended; the seat waits for its rewards."""
        self._handed_over = self._now()

    def resume(self) -> None:
        """The rewards are there; the seat learns."""
        self._resumed = self._now()

    def seconds(self) -> dict[str, float]:
        """At the end of the round."""
        return {
            "seconds_generating": self._handed_over - self._started,
            "seconds_waiting": self._started - self._begun + self._resumed - self._handed_over,
            "seconds_learning": self._now() - self._resumed,
        }


class SeatCallback(TrainerCallback):  # type: ignore[misc]  # the base class has no types
    """Counts rounds from optimizer steps, logs, evaluates, marks checkpoints, and stops when asked."""

    def __init__(self, run: SeatRun, hooks: SeatHooks, clock: RoundClock) -> None:
        self._run = run
        self._hooks = hooks
        self._clock = clock
        self._logged: dict[str, float] = {}

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if state.global_step % self._run.preset.round.updates == 0:
            self._clock.begin()

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> Any:
        if state.global_step % self._run.preset.round.updates == 0:
            self._logged |= self._clock.seconds()
            if self._hooks.is_last(state.global_step // self._run.preset.round.updates - 1):
                control.should_training_stop = control.should_save = True
        return control

    def on_log(self, args: Any, state: Any, control: Any, logs: Mapping[str, Any] | None = None, **kwargs: Any) -> None:
        done, rest = divmod(state.global_step, self._run.preset.round.updates)
        if rest or not logs or "loss" not in logs or not state.is_world_process_zero:
            return
        values = {name: float(logs[key]) for name, key in LOGGED.items() if logs.get(key) is not None}
        self._hooks.log(done - 1, values | self._logged)
        self._logged = {}
        every = self._run.preset.evaluation.every_rounds
        if every and done % every == 0 and done < self._run.preset.rounds:
            self._hooks.evaluate(done, kwargs["model"], kwargs["processing_class"])

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        wait_for_all()  # each rank has written its own part
        if not state.is_world_process_zero:
            return
        finish_checkpoint(self._run, self._hooks, state.global_step)


def finish_checkpoint(run: SeatRun, hooks: SeatHooks, step: int) -> None:
    """Mark the checkpoint of an optimizer step as complete, once all of it is there, and let old ones go."""
    checkpoint, done = run.output / f"checkpoint-{step}", step // run.preset.round.updates
    hooks.save(done, checkpoint)
    mark_complete(checkpoint, done)
    outputs = run.outputs or {"": run.output}
    forget_old(run.output, outputs.values(), run.preset.keep_checkpoints)
