"""Random models of the Qwen2 and Llama families, a few thousand weights each, in float32 unless told otherwise."""

from __future__ import annotations

from typing import Any

import tiny_chat_model
import torch
from transformers import LlamaConfig, LlamaForCausalLM, Qwen2Config, Qwen2ForCausalLM

SIZES = {
    "vocab_size": len(tiny_chat_model.SPECIAL) + 256,
    "num_hidden_layers": 2,
    "max_position_embeddings": 512,
    "initializer_range": 0.3,
    "pad_token_id": 0,
    "eos_token_id": 1,
    "bos_token_id": None,
    "dtype": "float32",
}
SHAPES = {
    "qwen2": {"hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 96},
    "qwen2 tied": {"hidden_size": 32, "num_attention_heads": 2, "num_key_value_heads": 1, "intermediate_size": 64,
                   "tie_word_embeddings": True},
    "llama": {"hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 4, "intermediate_size": 96},
    "llama grouped tied": {"hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 32,
                           "intermediate_size": 64, "tie_word_embeddings": True, "attention_bias": True,
                           "rope_parameters": {"rope_type": "llama3", "rope_theta": 10_000.0, "factor": 4.0,
                                               "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                                               "original_max_position_embeddings": 128}},
}  # fmt: skip


def random_model(shape: str, seed: int = 0, **changes: Any) -> Any:
    """Biases are random, too: transformers makes them zero. `changes`: of the configuration."""
    is_qwen = shape.startswith("qwen2")
    config = (Qwen2Config if is_qwen else LlamaConfig)(**{**SIZES, **SHAPES[shape], **changes})
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = (Qwen2ForCausalLM if is_qwen else LlamaForCausalLM)(config)
        with torch.no_grad():
            for name, weights in model.named_parameters():
                if name.endswith("bias"):
                    weights.normal_(std=0.3)
                if "norm" in name:
                    weights.uniform_(0.5, 1.5)
    return model.eval()
