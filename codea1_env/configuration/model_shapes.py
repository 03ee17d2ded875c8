"""The sizes of the models that a run can start from, and what follows from them: weights, adapters, cached tokens.

Counted by formula for the Qwen2 and Llama architectures, without loading anything. Does not know other architectures.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codea1_env.configuration.model_sections import LoraPreset, ModelPreset, PretrainedModel
from codea1_env.errors import ConfigurationError
from codea1_env.language_models.directories import read_gguf_header

ATTENTION = ("q_proj", "k_proj", "v_proj")
GGUF_NAMES = {"q_proj": "attn_q", "k_proj": "attn_k", "v_proj": "attn_v", "o_proj": "attn_output"}


@dataclass(frozen=True, slots=True)
class ModelShape:
    """A model of the Qwen2 or Llama architecture."""

    hidden: int
    layers: int
    heads: int
    key_value_heads: int
    feed_forward: int
    vocabulary: int
    tied: bool
    """Whether the output layer is the embedding."""
    head: int = 0
    """Size of a head; 0: the heads share the hidden size."""
    biases: tuple[str, ...] = ATTENTION
    """Layers with one."""

    @property
    def query_width(self) -> int:
        """Width of all queries of a token in a layer."""
        return self.heads * (self.head or self.hidden // self.heads)

    @property
    def key_value_width(self) -> int:
        """Width of all keys of a token in a layer, which is also the width of the values."""
        return self.key_value_heads * (self.head or self.hidden // self.heads)

    @property
    def matrices(self) -> dict[str, tuple[int, int]]:
        """The linear layers of a block, inputs and outputs."""
        width, inner, wide, narrow = self.hidden, self.feed_forward, self.query_width, self.key_value_width
        return {
            "q_proj": (width, wide),
            "k_proj": (width, narrow),
            "v_proj": (width, narrow),
            "o_proj": (wide, width),
            "gate_proj": (width, inner),
            "up_proj": (width, inner),
            "down_proj": (inner, width),
        }

    @property
    def block(self) -> int:
        """Weights of a block: its matrices, their biases, and two norms."""
        linear = sum(inputs * outputs for inputs, outputs in self.matrices.values())
        return linear + sum(self.matrices[name][1] for name in self.biases) + 2 * self.hidden

    @property
    def embedding(self) -> int:
        """Weights of the embedding and of the output layer."""
        return self.vocabulary * self.hidden * (1 if self.tied else 2)

    @property
    def parameters(self) -> int:
        """All weights."""
        return self.embedding + self.layers * self.block + self.hidden

    def adapter_parameters(self, lora: LoraPreset) -> int:
        """Weights of low-rank adapters of this rank on the targeted layers of every block."""
        names = {name.strip() for name in lora.target.split(",")}
        chosen = self.matrices if names == {"all-linear"} else {n: m for n, m in self.matrices.items() if n in names}
        if not chosen or (len(chosen) < len(names) and names != {"all-linear"}):
            unknown = sorted(names - set(self.matrices))
            raise ConfigurationError(
                f"lora.target must be all-linear or among {', '.join(self.matrices)}, got {unknown}"
            )
        return self.layers * sum(lora.rank * (inputs + outputs) for inputs, outputs in chosen.values())

    def cached_bytes(self, bytes_per_number: int) -> int:
        """Bytes of a token's keys and values in all layers."""
        return 2 * self.layers * self.key_value_width * bytes_per_number


# From the config.json of each model on the hub.
KNOWN = {
    "Qwen/Qwen2.5-Coder-0.5B-Instruct": ModelShape(896, 24, 14, 2, 4864, 151_936, tied=True),
    "Qwen/Qwen2.5-Coder-1.5B-Instruct": ModelShape(1536, 28, 12, 2, 8960, 151_936, tied=True),
    "Qwen/Qwen2.5-Coder-3B-Instruct": ModelShape(2048, 36, 16, 2, 11_008, 151_936, tied=True),
    "Qwen/Qwen2.5-Coder-7B-Instruct": ModelShape(3584, 28, 28, 4, 18_944, 152_064, tied=False),
}


def shape_of(model: ModelPreset | PretrainedModel) -> ModelShape:
    """The sizes of a preset's model. Raises ConfigurationError if they cannot be known without loading it."""
    if isinstance(model, ModelPreset):
        return ModelShape(
            model.hidden,
            model.layers,
            model.heads,
            model.key_value_heads,
            model.feed_forward,
            model.vocabulary,
            tied=True,
        )
    if model.pretrained in KNOWN:
        return KNOWN[model.pretrained]
    try:
        if model.pretrained.endswith(".gguf"):
            return _of_gguf(Path(model.pretrained))
        return _of_config(json.loads((Path(model.pretrained) / "config.json").read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError, ArithmeticError) as error:
        raise ConfigurationError(
            f"--model must be one of {', '.join(KNOWN)}, a directory with the config.json of a Qwen2 or Llama "
            f"model, or a .gguf file, or there is no plan, got {model.pretrained!r} ({type(error).__name__}: {error})"
        ) from None


def _of_config(record: Mapping[str, Any]) -> ModelShape:
    """What config.json leaves out is as transformers has it for these architectures."""
    hidden, heads = int(record["hidden_size"]), int(record["num_attention_heads"])
    shared = hidden // heads
    is_llama = record.get("model_type") == "llama"
    has_biases = bool(record.get("attention_bias", False)) or not is_llama
    return ModelShape(
        hidden,
        int(record["num_hidden_layers"]),
        heads,
        int(record.get("num_key_value_heads") or heads),
        int(record["intermediate_size"]),
        int(record["vocab_size"]),
        tied=bool(record.get("tie_word_embeddings", False)),
        head=0 if record.get("head_dim") in (None, shared) else int(record["head_dim"]),
        biases=((*ATTENTION, "o_proj") if is_llama else ATTENTION) if has_biases else (),
    )


def _of_gguf(file: Path) -> ModelShape:
    header = read_gguf_header(file, "--model")
    heads = header.size("attention.head_count")
    return ModelShape(
        header.size("embedding_length"),
        header.size("block_count"),
        heads,
        header.size("attention.head_count_kv", heads),
        header.size("feed_forward_length"),
        header.size("vocab_size", header.values.get("tokenizer.ggml.tokens")),
        tied="output.weight" not in header.tensors,
        head=header.size("attention.key_length", 0),
        biases=ATTENTION
        if header.family == "qwen2"
        else tuple(name for name, stem in GGUF_NAMES.items() if f"blk.0.{stem}.bias" in header.tensors),
    )
