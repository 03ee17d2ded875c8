"""Whether a run's configuration goes with the checkpoints that the run would go on from: config.yaml may be edited in
between.

Looks at what would be another training or a traceback: steps, trainer, adapter, past opponents. Learning rates and the
like may change.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from codea1_env.errors import ConfigurationError
from codea1_env.language_models.directories import ADAPTER
from codea1_env.training.config.presets import Preset
from codea1_env.training.run.checkpoints import step_of

STATE = "trainer.pt"
"""The packed trainer's optimizer and schedule, in every checkpoint of it."""
OPPONENTS = "opponents.json"
"""How past opponents fared: in the checkpoints of the seat that plays them."""


def require_fitting(preset: Preset, checkpoints: Mapping[str, Path], rounds: int) -> None:
    """Raise ConfigurationError where the seats' checkpoints of so many rounds are another configuration's."""
    for checkpoint in checkpoints.values():
        _require(checkpoint, "round.updates", step_of(checkpoint) / rounds, preset.round.updates)
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


def _require(checkpoint: Path, name: str, was: object, got: object) -> None:
    if got != was:
        shown = f"{was:g}" if isinstance(was, float) else was
        raise ConfigurationError(
            f"{name} of a resumed run must be {shown}, as in {checkpoint}, got {got}; put it back in config.yaml, or "
            "begin a new run with another --output"
        )
