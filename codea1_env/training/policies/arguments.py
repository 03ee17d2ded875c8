"""The section `grpo` and what a run decides, as TRL's GRPOConfig: what both policies read their numbers from."""

from __future__ import annotations

from typing import Any

from codea1_env.class_paths import is_class_path
from codea1_env.configuration.batches import SeatRows
from codea1_env.configuration.placement import SEATS, trainer_arguments
from codea1_env.configuration.presets import Preset
from codea1_env.errors import ConfigurationError
from codea1_env.extras import extra
from codea1_env.training.samples import SeatRun

with extra("train", "training needs"):
    import torch
    from transformers import get_scheduler
    from trl import GRPOConfig


def grpo_arguments(run: SeatRun, rows: SeatRows) -> Any:
    """TRL's configuration of a seat. Raises ConfigurationError."""
    try:
        return GRPOConfig(**_told(run, rows))
    except (TypeError, ValueError) as error:
        raise ConfigurationError(f"grpo must be what TRL takes for the {run.seat}, got: {error}") from error


def _told(run: SeatRun, rows: SeatRows) -> dict[str, Any]:
    """Raises ConfigurationError where the section `grpo` and the run both say something."""
    preset, memory = run.preset, run.preset.memory
    placed = preset.placement.of(run.seat)
    told = trainer_arguments(placed)
    told["bf16"] |= memory.bfloat16
    if placed.vllm == "colocate":
        told["vllm_max_model_length"] = preset.model.context  # or vLLM keeps room for the longest that the model could
    told["gradient_checkpointing"] |= memory.gradient_checkpointing and placed.strategy != "fsdp2"  # it has its own
    # Frozen under adapters, weights may be rounded; trained ones may not: steps of 1e-6 would be lost.
    dtype = "bfloat16" if told["bf16"] and preset.lora.rank else "float32"
    told |= {
        "output_dir": str(run.output),
        "seed": run.seed,
        "max_steps": preset.rounds * preset.round.updates,
        "per_device_train_batch_size": rows.per_device,
        "gradient_accumulation_steps": rows.accumulation,
        "steps_per_generation": rows.updates * rows.accumulation,
        "num_generations": rows.group,
        "shuffle_dataset": False,
        "model_init_kwargs": {"dtype": dtype, "attn_implementation": "sdpa"},
        "report_to": [],
        "disable_tqdm": True,
    }
    if not is_class_path(preset.algorithm.loss_type):
        told["loss_type"] = preset.algorithm.loss_type
    given = preset.grpo.of(run.seat)
    both = sorted(given.keys() & told.keys())
    if both:
        raise ConfigurationError(f"grpo: {both[0]} must be left to the run, which sets it, got {given[both[0]]!r}")
    return given | told


def require_schedules(preset: Preset) -> None:
    """Raise ConfigurationError where a seat's `lr_scheduler_type` cannot be built with its `lr_scheduler_kwargs`."""
    for seat in SEATS:
        given = preset.grpo.of(seat)
        kind, rest = given["lr_scheduler_type"], given.get("lr_scheduler_kwargs")
        optimizer = torch.optim.SGD([torch.zeros(1)], lr=given["learning_rate"])
        try:
            get_scheduler(kind, optimizer, given["warmup_steps"], preset.rounds * preset.round.updates, rest)
        except (TypeError, ValueError) as error:
            raise ConfigurationError(
                f"grpo.lr_scheduler_kwargs must be what {kind} takes ({seat}), got {rest!r}: {error}"
            ) from None
