"""The model of a run's seats: a tiny one built from nothing, or a pretrained one; and what is trained of it.

Under each field: its unit, then where its value comes from, as in `run_sections.py`. Does not load a model, and does
not promise that there is one of that name.
"""

from __future__ import annotations

from dataclasses import dataclass

from codea1_env.configuration.sections import Section, real, switch, text, whole
from codea1_env.errors import ConfigurationError


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
        if self.heads % self.key_value_heads:
            raise ConfigurationError(f"key_value_heads must divide heads ({self.heads}), got {self.key_value_heads}")
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
        if not self.pretrained.strip():
            raise ConfigurationError(f"pretrained must be a directory or a name on the hub, got {self.pretrained!r}")


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
        if not all(name.strip() for name in self.target.split(",")):
            raise ConfigurationError(f"target must be all-linear or names divided by commas, got {self.target!r}")


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
    """Share of a suite's expected values that come from a buggy program. Family bands: that are drawn from all that the
    question names."""
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
