"""Low-rank adapters (LoRA) of a seat: TRL trains them in the place of all weights, and the seat's final model has them
merged, so that it loads like any other.

Does not promise bit-equal results with any other version of peft.
"""

from __future__ import annotations

from typing import Any

from codea1_env.configuration.model_sections import LoraPreset
from codea1_env.extras import extra


def adapter_config(lora: LoraPreset) -> Any:
    """What TRL takes as `peft_config`; None where all weights are trained."""
    if not lora.rank:
        return None
    with extra("lora", "adapters (lora.rank above 0) need"):
        from peft import LoraConfig
    names = [name.strip() for name in lora.target.split(",")]
    return LoraConfig(
        r=lora.rank,
        lora_alpha=lora.alpha,
        lora_dropout=lora.dropout,
        target_modules="all-linear" if names == ["all-linear"] else names,
        task_type="CAUSAL_LM",
    )


def merged(model: Any) -> Any:
    """The model with its adapters, if it has any, added into its weights."""
    return model.merge_and_unload() if hasattr(model, "merge_and_unload") else model
