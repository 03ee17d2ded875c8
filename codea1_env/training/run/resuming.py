"""Whether a run's configuration goes with the checkpoints that the run would go on from: config.yaml may be edited in
between.

Looks at what would be another training or a traceback: steps, trainer, adapter, past opponents. Learning rates and the
like may change, and then those of the configuration count (`as_configured`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from codea1_env.configuration.presets import Preset
from codea1_env.errors import ConfigurationError
from codea1_env.language_models.directories import ADAPTER
from codea1_env.training.run.checkpoints import step_of

STATE = "trainer.pt"
"""The packed trainer's optimizer and schedule, in every checkpoint of it."""
OPPONENTS = "opponents.json"
"""How past opponents fared: in the checkpoints of the seat that plays them."""
ROUNDS = "rounds.json"
"""Of a tester that does not learn: how far it got. No trainer wrote its checkpoints."""


def require_fitting(preset: Preset, checkpoints: Mapping[str, Path], rounds: int) -> None:
    """Raise ConfigurationError where the seats' checkpoints of so many rounds are another configuration's."""
    for checkpoint in checkpoints.values():
        _require(checkpoint, "round.updates", step_of(checkpoint) / rounds, preset.round.updates)
        if (checkpoint / ROUNDS).exists():
            continue
        _require(checkpoint, "trainer", "packed" if (checkpoint / STATE).exists() else "trl", preset.trainer)
        if (checkpoint / ADAPTER).exists():
            saved = json.loads((checkpoint / ADAPTER).read_text(encoding="utf-8"))
            _require(checkpoint, "lora.rank", saved["r"], preset.lora.rank)
            _require(checkpoint, "lora.alpha", saved["lora_alpha"], preset.lora.alpha)
    options, duel = preset.options, len(checkpoints) > 1
    keeper = checkpoints.get("player") or (checkpoints.get("tester") if duel else None)
    if keeper and not (keeper / OPPONENTS).exists():
        _require(keeper, "options.opponents", "latest", options.opponents)
        _require(keeper, "options.tester_book", 0, options.tester_book)


def as_configured(optimizer: Any, schedule: Any, arguments: Any, *, is_own: bool = False) -> None:
    """Give what a checkpoint brought the learning rate, weight decay, betas and epsilon of the configuration, and the
    place on its schedule; where nothing was edited, nothing changes. `arguments`: a GRPOConfig. `is_own`: of an
    optimizer of one's own, the rate alone."""
    rate = arguments.learning_rate
    inner = getattr(schedule, "scheduler", schedule)  # accelerate wraps it
    # A schedule that falls to 0 has got there at the end of a run: one with more rounds goes on where it would be.
    shares = [share(inner.last_epoch) for share in getattr(inner, "lr_lambdas", ())]
    for place, group in enumerate(optimizer.param_groups):
        was = group.get("initial_lr", rate)
        if shares:
            group.update(initial_lr=rate, lr=rate * shares[place])
        elif was != rate:
            group.update(initial_lr=rate, lr=group["lr"] * (rate / was) if was else rate)
        if is_own:
            continue
        if place == 0:  # the others are norms and biases, which do not decay
            group["weight_decay"] = arguments.weight_decay
        group.update(betas=(arguments.adam_beta1, arguments.adam_beta2), eps=arguments.adam_epsilon)
    if hasattr(inner, "base_lrs"):
        inner.base_lrs = [rate] * len(inner.base_lrs)
        inner._last_lr = [group["lr"] for group in optimizer.param_groups]  # what is logged before the next step


def _require(checkpoint: Path, name: str, was: object, got: object) -> None:
    if got != was:
        shown = f"{was:g}" if isinstance(was, float) else was
        raise ConfigurationError(
            f"{name} of a resumed run must be {shown}, as in {checkpoint}, got {got}; put it back in config.yaml, or "
            "begin a new run with another --output"
        )
