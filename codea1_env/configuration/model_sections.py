"""The model of a run's seats: a tiny one built from nothing, or a pretrained one; what is trained of it; its sizes, and
what follows from them: weights, adapters, cached tokens.

Under each field: its unit, then where its value comes from, as in `run_sections.py`. Sizes are counted by formula for
the Qwen2 and Llama architectures, without loading anything. Does not promise that there is a model of that name, and
does not know other architectures.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codea1_env.checks import require
from codea1_env.configuration.sections import Section, real, switch, text, whole
from codea1_env.errors import ConfigurationError
from codea1_env.language_models.directories import read_gguf_header


@dataclass(frozen=True, slots=True)
class ModelPreset(Section):
    """Size of a model of the Qwen2 architecture, trained from nothing. Paper: 1.5, 3 and 7 billion weights."""

    hidden: int = whole(96, 32, 65_536)
    """Width of the residual stream; heads * head size."""
    layers: int = whole(3, 1, 256)
    """Blocks."""
    heads: int = whole(3, 1, 256)
    """Attention heads. hidden / heads must be at least 32, or some inference engines cannot load the model."""
    key_value_heads: int = whole(1, 1, 256)
    """Heads of keys and values; divides `heads`."""
    feed_forward: int = whole(256, 32, 1 << 20)
    """Width of the feed-forward layer."""
    vocabulary: int = whole(512, 128, 1 << 18)
    """Most entries of the tokenizer; it has fewer if the corpus does not need as many."""
    context: int = whole(512, 32, 1 << 20)
    """Longest sequence, in tokens."""
    initial_spread: float = real(0.05, 1e-4, 1.0)
    """Standard deviation of the initial weights."""
    mimetic: bool = switch()
    """Attention starts as trained models' looks (codea1_env/training/models/mimetic.py), so that copying a number is
    learnt in seconds. Needs 2 layers and 2 heads of keys and values."""

    def __post_init__(self) -> None:
        Section.__post_init__(self)
        if self.hidden % self.heads or self.hidden // self.heads < 32:
            raise ConfigurationError(
                f"hidden / heads must be a whole number of at least 32, got {self.hidden} / {self.heads}"
            )
        divides = self.heads % self.key_value_heads == 0
        require(divides, "key_value_heads", f"divide heads ({self.heads})", self.key_value_heads)
        if self.mimetic and (self.layers < 2 or self.key_value_heads < 2):
            raise ConfigurationError(
                f"layers and key_value_heads must be at least 2 with mimetic, got {self.layers} and "
                f"{self.key_value_heads}"
            )


@dataclass(frozen=True, slots=True)
class PretrainedModel(Section):
    """An instruct model that both seats start from, as it is: there is no warm start."""

    pretrained: str = text()
    """A directory in Hugging Face format, or a name on the hub. Paper: Qwen2.5-Coder-{1.5B, 3B, 7B}-Instruct."""
    revision: str = text("")
    """Commit, branch or tag of a model on the hub; empty: the latest."""
    context: int = whole(32_768, 32, 1 << 20)
    """Longest sequence, prompt and response, in tokens. Qwen2.5-Coder: 32,768."""

    def __post_init__(self) -> None:
        Section.__post_init__(self)
        require(bool(self.pretrained.strip()), "pretrained", "be a directory or a name on the hub", self.pretrained)


@dataclass(frozen=True, slots=True)
class LoraPreset(Section):
    """Low-rank adapters: both seats train these instead of all weights (`trainer: trl`: extra `lora`). Paper: all.

    The divergence is then measured from the base with its adapters off, so that no second copy of it is held.
    """

    rank: int = whole(0, 0, 1024)
    """Rank of each adapter; 0: no adapters, all weights are trained."""
    alpha: float = real(32.0, 1e-3, 1e6)
    """Adapters are scaled by alpha / rank."""
    dropout: float = real(0.0, 0.0, 0.99)
    """Dropped share of an adapter's input. Above 0, a policy differs from itself between sampling and learning."""
    target: str = text("all-linear")
    """Layers with adapters: `all-linear`, or names divided by commas, e.g. `q_proj,v_proj`."""

    def __post_init__(self) -> None:
        Section.__post_init__(self)
        are_names = all(name.strip() for name in self.target.split(","))
        require(are_names, "target", "be all-linear or names divided by commas", self.target)


@dataclass(frozen=True, slots=True)
class WarmStartPreset(Section):
    """Supervised training of the one base model that both seats start from."""

    steps: int = whole(1_200, 0, 1_000_000)
    """Optimizer steps; 0 leaves the model random."""
    examples_per_step: int = whole(32, 1, 65_536)
    """Examples a step."""
    rate: float = real(3e-3, 0.0, 1.0)
    """Peak learning rate; cosine, 50 steps of warm-up."""
    problems: int = whole(1_500, 1, 10_000)
    """Questions of the training split that examples are drawn from."""
    code_share: float = real(0.4, 0.0, 1.0)
    """Share of examples that are programs; the rest are suites."""
    bug_rate: float = real(0.6, 0.0, 1.0)
    """Probability of a bug at each operation of a program, so that there is something left to learn. Family bands: a
    factor on the rates in training/models/corpora.py."""
    edge_share: float = real(0.15, 0.0, 1.0)
    """Share of a suite's inputs that are edge inputs. Family bands: share of suites whose inputs all are."""
    wrong_share: float = real(0.1, 0.0, 1.0)
    """Share of a suite's expected values that a buggy program gives. Family bands: drawn from all in the question."""
    blind_share: float = real(0.0, 0.0, 1.0)
    """Share of suites whose prompt lacks the program, so that one base serves testers of either `options.access`.
    0: all suites are as the run's access says, and each access has a base of its own."""
    copy_steps: int = whole(0, 0, 1_000_000)
    """Optimizer steps before the others in which random tokens are repeated: an exercise in copying."""
    practice_share: float = real(0.0, 0.0, 1.0)
    """Share of the steps, the first ones, that practise: with the two rates below instead of those above, which then
    only make the habits that are to be unlearnt. 0: no practice."""
    practice_bug_rate: float = real(0.0, 0.0, 1.0)
    """bug_rate of what the coder writes in practice. Family bands: what a tester is shown has the habits' bugs."""
    practice_edge_share: float = real(0.5, 0.0, 1.0)
    """edge_share in practice."""
    seed: int = whole(0, 0, 2**31)
    """Seed of the corpus, the initial weights and the order. Not the run's seed: one base serves all runs."""


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
