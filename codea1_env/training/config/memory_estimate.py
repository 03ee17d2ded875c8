"""An estimate of the bytes that one GPU of a seat holds at most, by part, while it samples and while it learns.

The estimate adds what must be there (weights, optimizer, caches) and what usually is (activations). Allocators fragment
and libraries reserve memory: leave some per cent free. Loads nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from codea1_env.training.config.batches import seat_rows
from codea1_env.training.config.model_shapes import Shape, shape_of
from codea1_env.training.config.presets import Preset

LIBRARIES = 1 << 30
"""Bytes that CUDA and its libraries take on each GPU before anything is loaded, about."""
GATHERED_BLOCKS = 2
"""Blocks of a sharded model that are whole at a time: the one at work and the next."""


@dataclass(frozen=True, slots=True)
class SeatMemory:
    """Bytes on one GPU of a seat (of one process, where it has none)."""

    kept: dict[str, int]
    """Parts that are always there."""
    learning: dict[str, int]
    """Further parts while it learns."""
    sampling: dict[str, int]
    """Further parts while it samples."""
    room: int
    """Bytes that sampling leaves for keys and values, if vLLM decides; 0: as many as the rows need."""
    checkpoint: int
    """Bytes of one checkpoint on disk, of all ranks."""
    final: int
    """Bytes of the trained model on disk."""

    @property
    def learning_total(self) -> int:
        return sum(self.kept.values()) + sum(self.learning.values())

    @property
    def sampling_total(self) -> int:
        return sum(self.kept.values()) + sum(self.sampling.values())

    @property
    def peak(self) -> int:
        return max(self.learning_total, self.sampling_total)


def longest_prompt(preset: Preset, seat: str) -> int:
    """The longest prompt in tokens; if the preset has no limit, as many as the model's context leaves."""
    shape = preset.round
    limit = shape.coder_prompt_tokens if seat == "coder" else shape.tester_prompt_tokens
    return int(limit or preset.model.context - preset.grpo.tokens(seat))


def seat_memory(preset: Preset, seat: str) -> SeatMemory:
    """The memory of a seat, coder or tester. Raises ConfigurationError for a model whose sizes are not known."""
    shape, placed = shape_of(preset.model), preset.placement.of(seat)
    sharing = placed.ranks if placed.strategy != "ddp" else 1
    total = shape.parameters
    # Bytes of a number that is computed with; on GPUs always in bfloat16.
    narrow = 2 if preset.memory.bfloat16 or placed.gpus_per_node else 4
    if preset.lora.rank:
        trained, frozen = shape.adapter_parameters(preset.lora), total * narrow
        reference = 0  # the base with its adapters off
    else:
        trained, frozen = total, 0
        reference = 4 * total if preset.grpo.of(seat)["beta"] else 0
    kept = {
        "weights": (4 * trained + frozen) // sharing,
        "optimizer": 8 * trained // sharing,
        "reference": reference // sharing,
        "libraries": LIBRARIES if placed.gpus_per_node else 0,
    }
    gathered = _gathered(shape, sharing, narrow, preset.lora.rank > 0)
    learning = {
        "gradients": 4 * trained // sharing,
        "gathered weights": gathered,
        **_activations(preset, seat, shape, narrow),
    }
    sampling, room = _sampling(preset, seat, shape, narrow, gathered)
    final = total * (narrow if preset.lora.rank else 4)
    return SeatMemory(kept, learning, sampling, room, checkpoint=(4 + 8) * trained, final=final)


def _gathered(shape: Shape, sharing: int, narrow: int, is_frozen: bool) -> int:
    """Copies of weights to compute with: of some blocks where the model is sharded, of all where it is not."""
    if sharing > 1:
        return narrow * (shape.embedding + GATHERED_BLOCKS * shape.block)
    return narrow * shape.parameters if narrow == 2 and not is_frozen else 0


def _activations(preset: Preset, seat: str, shape: Shape, narrow: int) -> dict[str, int]:
    """Of one pass over the rows that a device takes at once, at their longest."""
    rows = seat_rows(preset, seat).per_device
    response = preset.grpo.tokens(seat)
    tokens = rows * (longest_prompt(preset, seat) + response)
    # Kept for the backward pass of a block: inputs of norms and matrices, queries, keys, values, and three of the
    # feed-forward's width. Attention itself keeps no scores.
    in_block = tokens * narrow * (6 * shape.hidden + 2 * shape.key_value_width + 3 * shape.feed_forward)
    if preset.memory.gradient_checkpointing or preset.placement.of(seat).gpus_per_node:
        blocks = shape.layers * tokens * shape.hidden * narrow + in_block
    else:
        blocks = shape.layers * in_block
    # The logits of the responses, as computed and in float32, with a gradient and a softmax of that size.
    logits = rows * response * shape.vocabulary * (narrow + 12)
    return {"activations": blocks, "logits": logits}


def _sampling(preset: Preset, seat: str, shape: Shape, narrow: int, gathered: int) -> tuple[dict[str, int], int]:
    """What sampling holds, and how much of it vLLM has for keys and values."""
    placed, rows = preset.placement.of(seat), seat_rows(preset, seat)
    if placed.vllm == "server":
        return {"gathered weights": gathered}, 0
    if placed.vllm == "colocate":
        own = 2 * shape.parameters // placed.tensor_parallel
        budget = int(placed.vllm_memory * preset.memory.gpu_gib * (1 << 30))
        return {"vLLM weights": own, "vLLM cache": max(budget - own, 0)}, max(budget - own, 0)
    tokens = rows.sampled // rows.ranks * (longest_prompt(preset, seat) + preset.grpo.tokens(seat))
    return {"gathered weights": gathered, "cache": tokens * shape.cached_bytes(narrow)}, 0
