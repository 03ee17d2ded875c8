"""The section `grpo` of a preset: arguments of TRL's GRPOConfig under TRL's own names, the same for both seats or not.

    grpo: {learning_rate: 1.0e-6, beta: 0.001, tester: {learning_rate: 2.0e-6}}

Every argument that the run does not set itself may stand here, so new arguments of TRL need no code. This includes
`num_generations`, which is kept as the round's sizes (`presets.py`): N programs, M suites. TRL's documentation says
what a name means; the packed trainer takes the names in `PACKED_TAKES`. Only values in `CHECKED` are checked here:
GRPOConfig checks the others when a seat is built.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from codea1_env.checks import is_number, require
from codea1_env.class_paths import is_class_path
from codea1_env.configuration.model_sections import PretrainedModel
from codea1_env.configuration.placement import SEATS, role_of
from codea1_env.configuration.sections import requirement
from codea1_env.errors import ConfigurationError
from codea1_env.extras import extra

CHECKED: Mapping[str, Mapping[str, Any]] = {
    "learning_rate": {"kind": float, "high": 1.0},
    "lr_scheduler_type": {
        "kind": str,
        "choices": (  # those of transformers that need no evaluation in the trainer
            "linear",
            "cosine",
            "cosine_with_restarts",
            "polynomial",
            "constant",
            "constant_with_warmup",
            "inverse_sqrt",
            "cosine_with_min_lr",
            "cosine_warmup_with_min_lr",
            "warmup_stable_decay",
        ),
    },
    "warmup_steps": {"kind": int, "high": 100_000},
    "weight_decay": {"kind": float, "high": 1.0},
    "max_grad_norm": {"kind": float, "low": 1e-6, "high": 1e6},
    "adam_beta1": {"kind": float, "high": 1.0 - 2**-53},
    "adam_beta2": {"kind": float, "high": 1.0 - 2**-53},
    "adam_epsilon": {"kind": float, "low": 1e-12, "high": 1.0},
    "beta": {"kind": float, "high": 10.0},
    "epsilon": {"kind": float, "high": 1.0},
    "epsilon_high": {"kind": float, "high": 10.0},
    "delta": {"kind": float, "low": 1.0, "high": 1e6},
    "temperature": {"kind": float, "low": 0.01, "high": 10.0},
    "max_completion_length": {"kind": int, "low": 4, "high": 65_536},
    "mask_truncated_completions": {"kind": bool},
    "use_bias_correction_kl": {"kind": bool},
    "vllm_importance_sampling_correction": {"kind": bool},
    "vllm_importance_sampling_mode": {
        "kind": str,
        "choices": ("token_truncate", "token_mask", "sequence_truncate", "sequence_mask"),
    },
    "vllm_importance_sampling_clip_min": {"kind": float, "high": 1e6},
    "vllm_importance_sampling_clip_max": {"kind": float, "high": 1e6},
}
"""Kind and range of what is checked before anything is loaded; beside it, `lr_scheduler_kwargs`."""
OPTIONAL = ("epsilon_high", "delta", "vllm_importance_sampling_clip_min", "vllm_importance_sampling_clip_max")
"""Those that may be null: no other limit above, no dual clip, no limit of the ratio."""
ELSEWHERE: Mapping[str, str] = {
    "num_generations": "round.programs (N, the coder's groups) and round.suites (M, the tester's)",
    "lr": "learning_rate",  # other trainers' names
    "kl_coef": "beta",
    "clip_range": "epsilon and epsilon_high",
    "clip_ratio": "epsilon and epsilon_high",
    "scale_rewards": "algorithm.scale",
    "loss_type": "algorithm.loss_type",
    "max_steps": "rounds and round.updates",
    "num_iterations": "round.updates",
    "seed": "--seed",
    "output_dir": "--output",
    "per_device_train_batch_size": "memory.coder_rows_per_device and memory.tester_rows_per_device",
    "bf16": "memory.bfloat16",
    "gradient_checkpointing": "memory.gradient_checkpointing",
    "save_steps": "save_rounds",
    "save_total_limit": "keep_checkpoints",
    "report_to": "report_to",
    "fsdp": "placement",
    "deepspeed": "placement",
    "use_vllm": "placement",
    "vllm_mode": "placement",
}
"""Arguments that have another place in a configuration."""
DEFAULTS: Mapping[str, Any] = {
    "learning_rate": 5e-4,  # paper: 1e-6, for models four thousand times larger
    "lr_scheduler_type": "cosine_with_min_lr",
    "lr_scheduler_kwargs": {"min_lr_rate": 1.0},  # constant; paper: 0
    "warmup_steps": 10,  # paper
    "weight_decay": 0.1,  # paper
    "max_grad_norm": 1.0,  # paper
    "beta": 0.001,  # paper: weight of the k3 estimate of the divergence from the base model
    "use_bias_correction_kl": False,  # paper
    "epsilon": 0.2,  # paper: the ratio is clipped below 1 - epsilon
    "epsilon_high": 0.28,  # paper: and above 1 + epsilon_high
    "delta": 10.0,  # paper: largest ratio where the advantage is negative
    "temperature": 1.0,  # paper
    "top_p": 1.0,
    "top_k": 0,
    "mask_truncated_completions": False,  # what is cut off is scored and learnt from as it is
    "vllm_importance_sampling_mode": "token_truncate",  # paper: vLLM's samples are taken as the trained model's own.
    "vllm_importance_sampling_clip_min": 1.0,  # Between 1 and 1 every ratio is 1: nothing is corrected, and
    "vllm_importance_sampling_clip_max": 1.000001,  # `sampling_gap` is measured. TRL: sequence_mask, null, 3.0.
    "coder": {"max_completion_length": 72},  # paper: 4096
    "tester": {"max_completion_length": 100},  # paper: 4096
}


@dataclass(frozen=True)
class GrpoPreset:
    """The arguments of both seats' trainers."""

    values: Mapping[str, Any] = field(default_factory=lambda: dict(DEFAULTS))
    """The arguments by TRL's name; `coder` and `tester` hold those that differ for one seat."""

    def of(self, seat: str) -> dict[str, Any]:
        """The arguments of one seat. `player` has the coder's, with room for the longer of both responses."""
        shared = {name: value for name, value in self.values.items() if name not in SEATS}
        if seat != "player":
            return shared | dict(self.values[role_of(seat)])
        own = shared | dict(self.values["coder"])
        own["max_completion_length"] = max(self.tokens(role) for role in SEATS)
        return own

    def tokens(self, seat: str) -> int:
        """Longest response of a seat."""
        return int(self.of(seat)["max_completion_length"])

    def changed(self, overrides: object, where: str = "grpo") -> GrpoPreset:
        """The section with the arguments that `overrides` names replaced; one for both seats replaces what a single
        seat had.

        Raises ConfigurationError naming `where`, the key, must and got.
        """
        if not isinstance(overrides, Mapping):
            raise ConfigurationError(f"{where} must be a mapping of GRPOConfig's arguments, got {overrides!r}")
        own = {}
        for seat in SEATS:
            given = overrides.get(seat, {})
            if not isinstance(given, Mapping):
                raise ConfigurationError(f"{where}: {seat} must be a mapping of arguments, got {given!r}")
            own[seat] = _checked(given, f"{where}: {seat}")
        shared = _checked({str(name): value for name, value in overrides.items() if name not in SEATS}, where)
        values = dict(self.values) | shared
        for seat in SEATS:
            values[seat] = {name: value for name, value in self.values[seat].items() if name not in shared} | own[seat]
        # One form for what means the same: what each seat has of its own is not said for both.
        return GrpoPreset({k: v for k, v in values.items() if not all(k in values[seat] for seat in SEATS)})


def _checked(given: Mapping[str, Any], where: str) -> dict[str, Any]:
    """With no arguments of the schedule where it is named without any: what was there is another schedule's."""
    for name, value in given.items():
        if name in ELSEWHERE:
            raise ConfigurationError(f"{where}: {name} must be given as {ELSEWHERE[name]}, got it here")
        is_off = value is None and name in OPTIONAL
        must = requirement(value, **CHECKED[name]) if name in CHECKED and not is_off else ""
        if name == "lr_scheduler_kwargs" and not _is_schedule(value):
            must = "a mapping of the schedule's arguments to finite numbers"
        require(not must, f"{where}: {name}", f"be {must}", value)
    unknown = given.keys() - CHECKED.keys() - DEFAULTS.keys()
    if unknown and not unknown <= (known := _names_of_trl()):
        name = sorted(unknown - known)[0]
        near = difflib.get_close_matches(name, sorted(known), 3, 0.7)  # all of them are 3,500 characters
        meant = f"did you mean {' or '.join(near)}?" if near else "TRL's documentation lists them"
        raise ConfigurationError(
            f"{where}: a key must be coder, tester or an argument of TRL's GRPOConfig, got {name!r}; {meant}"
        )
    return ({"lr_scheduler_kwargs": {}} if "lr_scheduler_type" in given else {}) | dict(given)


def _is_schedule(value: object) -> bool:
    """Null is none; the forms of `warmup_stable_decay`, `warmup_type` and `decay_type`, have names."""
    return value is None or (
        isinstance(value, Mapping)
        and all(isinstance(one, str) if str(name).endswith("_type") else is_number(one) for name, one in value.items())
    )


def _names_of_trl() -> set[str]:
    """What GRPOConfig has. Slow the first time, and asked only about names that are not known here."""
    with extra("train", "training needs"):
        from trl import GRPOConfig
    return {name for name, each in GRPOConfig.__dataclass_fields__.items() if each.init}


PACKED_LOSSES = ("dapo", "bnpo", "grpo", "dr_grpo")
PACKED_FIXED = {"top_p": 1.0, "top_k": 0}
"""Arguments of the section `grpo` that must have a value."""
PACKED_TAKES = CHECKED.keys() | PACKED_FIXED.keys() | {"lr_scheduler_kwargs"}
"""Those that it takes. What is said of vLLM means nothing on a CPU, to TRL neither."""


def require_packed(preset: Any) -> None:
    """Raise ConfigurationError if a preset with `trainer: packed` asks for something that this trainer cannot do."""
    for seat in SEATS:
        _require_packed_arguments(preset.grpo.of(seat), seat)
        if not preset.placement.of(seat).is_one_process_on_cpu:
            _refuse(f"placement.{seat}", "one rank on the CPU without vLLM", preset.placement.of(seat))
    lora, algorithm, shape, memory = preset.lora, preset.algorithm, preset.round, preset.memory
    for name, idle in (("coder_rows_per_device", 0), ("tester_rows_per_device", 0), ("gradient_checkpointing", False)):
        if getattr(memory, name) != idle:  # a pass of it takes as many rows as its tokens allow, and computes again
            _refuse(f"memory.{name}", str(idle).lower(), str(getattr(memory, name)).lower())
    if isinstance(preset.model, PretrainedModel) and not (shape.coder_prompt_tokens and shape.tester_prompt_tokens):
        got = f"{shape.coder_prompt_tokens} and {shape.tester_prompt_tokens}"  # a longer prompt would end the run
        _refuse("round.coder_prompt_tokens and tester_prompt_tokens", "at least 1", got)
    if shape.updates > shape.questions:  # groups are not divided: a step would have no rows
        _refuse("round.updates", f"at most round.questions ({shape.questions})", shape.updates)
    if not lora.rank:
        _refuse("lora.rank", "at least 1 (adapters only)", lora.rank)
    if lora.dropout or lora.target != "all-linear":
        _refuse("lora", "without dropout and target all-linear", f"{lora.dropout} and {lora.target}")
    if algorithm.loss_type not in PACKED_LOSSES and not is_class_path(algorithm.loss_type):
        _refuse("algorithm.loss_type", f"one of {', '.join(PACKED_LOSSES)} or module:Name", algorithm.loss_type)
    if algorithm.credit != "suite":
        _refuse("algorithm.credit", "suite", algorithm.credit)


def _require_packed_arguments(given: Mapping[str, Any], seat: str) -> None:
    unknown = [name for name in given if name not in PACKED_TAKES and not name.startswith("vllm_")]
    for name in sorted(unknown):
        _refuse(f"grpo.{name}", f"left out ({seat})", given[name])
    for name, value in PACKED_FIXED.items():
        if given.get(name, value) != value:
            _refuse(f"grpo.{name}", f"{value:g} ({seat})", given[name])


def _refuse(name: str, must: str, got: object) -> None:
    raise ConfigurationError(f"{name} must be {must} with trainer: packed, got {got}; or set trainer: trl")
