"""An estimate of the bytes that one GPU of a seat holds at most, by part, while it samples and while it learns.

With `trainer: packed` it is one process with both seats beside one base, on a CPU or on a GPU: `packed_memory`. The
sums for a CPU were held against the largest memory of real runs, which was up to a fifth more, since allocators
fragment (docs/your-model.md); those for a GPU were not.

The estimate adds what must be there (weights, optimizer, caches) and what usually is (activations). Allocators fragment
and libraries reserve memory: leave some per cent free. Loads nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from codea1_env.configuration.batches import Roles, seat_rows
from codea1_env.configuration.model_sections import ModelShape, shape_of
from codea1_env.configuration.placement import role_of
from codea1_env.configuration.presets import Preset
from codea1_env.language_models.at_once import CHUNK, PACK_TOKENS, ROOM, SEEN, SLOTS, TILE, slots_of, up

LIBRARIES = 1 << 30
"""Bytes that CUDA and its libraries take on each GPU before anything is loaded, about."""
GATHERED_BLOCKS = 2
"""Blocks of a sharded model that are whole at a time: the one at work and the next."""
PROCESS = 700 << 20
"""Bytes of Python with PyTorch, transformers and TRL, before a model is there, about."""
FREE = 0.2
"""Share of a device's memory that is to stay free of what is counted here."""
STORED = 2
"""Bytes of a weight in a model's files; the embedding is kept in them."""


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes on one device: on one GPU of a seat, or in one process, where it has none."""

    kept: dict[str, int]
    """Parts that are always there."""
    learning: dict[str, int]
    """Further parts while it learns."""
    sampling: dict[str, int]
    """Further parts while it samples."""
    loading: dict[str, int] = field(default_factory=dict)
    """Further parts while a packed run's base is loaded; its adapters come later."""
    checkpoint: int = 0
    """Bytes of one checkpoint on disk, of all ranks of a seat."""
    final: int = 0
    """Bytes of its trained model on disk."""

    def total(self, phase: str) -> int:
        """With the further parts of a phase: loading, sampling or learning."""
        further: dict[str, int] = getattr(self, phase)
        return sum(self.kept.values()) + sum(further.values())

    @property
    def peak(self) -> int:
        return max(map(self.total, ("loading", "sampling", "learning")))

    @property
    def need(self) -> int:
        """Bytes that the device must have for it, with a part left free."""
        return round(self.peak / (1 - FREE))


def longest_prompt(preset: Preset, seat: str) -> int:
    """The longest prompt in tokens; if the preset has no limit, as many as the model's context leaves."""
    shape = preset.round
    limits = {"coder": shape.coder_prompt_tokens, "tester": shape.tester_prompt_tokens}
    asked = limits.values() if seat == "player" else (limits[role_of(seat)],)
    return int(max(asked) if all(asked) else preset.model.context - preset.grpo.tokens(seat))


def seat_memory(preset: Preset, seat: str) -> Memory:
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
    sampling = _sampling(preset, seat, shape, narrow, gathered)
    final = total * (narrow if preset.lora.rank else 4)
    return Memory(kept, learning, sampling, checkpoint=(4 + 8) * trained, final=final)


def _gathered(shape: ModelShape, sharing: int, narrow: int, is_frozen: bool) -> int:
    """Copies of weights to compute with: of some blocks where the model is sharded, of all where it is not."""
    if sharing > 1:
        return narrow * (shape.embedding + GATHERED_BLOCKS * shape.block)
    return narrow * shape.parameters if narrow == 2 and not is_frozen else 0


def _activations(preset: Preset, seat: str, shape: ModelShape, narrow: int) -> dict[str, int]:
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


def _sampling(preset: Preset, seat: str, shape: ModelShape, narrow: int, gathered: int) -> dict[str, int]:
    """What sampling holds: `vLLM cache` where vLLM decides how much there is for keys and values."""
    placed, rows = preset.placement.of(seat), seat_rows(preset, seat)
    if placed.vllm == "server":
        return {"gathered weights": gathered}
    if placed.vllm == "colocate":
        own = 2 * shape.parameters // placed.tensor_parallel
        budget = int(placed.vllm_memory * preset.memory.gpu_gib * (1 << 30))
        return {"vLLM weights": own, "vLLM cache": max(budget - own, 0)}
    tokens = rows.sampled // rows.ranks * (longest_prompt(preset, seat) + preset.grpo.tokens(seat))
    return {"gathered weights": gathered, "cache": tokens * shape.cached_bytes(narrow)}


def packed_memory(preset: Preset, device: str, roles: Roles) -> Memory:
    """Of a run with `trainer: packed`. `device`: cpu, which computes in float32 here, or cuda, in what the preset says.
    Raises ConfigurationError for a model whose sizes are not known."""
    seats = roles.seats
    shape, trained = shape_of(preset.model), shape_of(preset.model).adapter_parameters(preset.lora)
    narrow = 2 if device == "cuda" and preset.memory.bfloat16 else 4
    cache = max(cached_rows(preset, seat, device) * cached_positions(preset, seat, device) for seat in seats)
    keys = {"keys and values": cache * shape.cached_bytes(narrow)}
    kept = {
        "base": base_bytes(shape, device, narrow),
        "adapters": len(seats) * 4 * trained,
        "optimizer": len(roles.learns) * 8 * trained,
        "libraries": LIBRARIES if device == "cuda" else PROCESS,
        **(keys if device == "cuda" else {}),
    }
    rows = max(cached_rows(preset, seat, device) for seat in seats)
    tokens = max(pack_tokens(preset, seat, device) for seat in roles.learns)
    # On a GPU the weights are copied over from the process, whose memory this is not.
    loading = {"files": STORED * shape.parameters if device == "cpu" else 0}
    sampling = {
        **(keys if device == "cpu" else {}),
        "adapters' copy": narrow * trained,
        "logits": rows * shape.vocabulary * narrow,
    }
    learning = {
        "gradients": 4 * trained,
        "activations": shape.layers * tokens * narrow * kept_numbers(shape, device)
        + (shape.layers * shape.heads * tokens**2 * 4 if device == "cuda" else 0),
        "logits": CHUNK[device] * shape.vocabulary * (12 if narrow == 4 else 16),
    }
    return Memory(kept, learning, sampling, loading)


def base_bytes(shape: ModelShape, device: str, narrow: int) -> int:
    """The frozen weights: the head is apart from the embedding on a CPU, and where a model has two."""
    table = shape.vocabulary * shape.hidden
    others = shape.parameters - shape.embedding
    is_shared = device == "cuda" and shape.tied and narrow == STORED
    return narrow * (others + (0 if is_shared else table)) + min(narrow, STORED) * table


def kept_numbers(shape: ModelShape, device: str) -> int:
    """Of a token in a layer for the way back: five of the model's width around its norms, queries, keys and values, and
    both halves of the feed-forward layer. A GPU keeps what goes into attention for every head, and what comes out."""
    attention = 4 * shape.hidden if device == "cuda" else 0
    return 6 * shape.hidden + 2 * shape.key_value_width + 2 * shape.feed_forward + attention


def cached_rows(preset: Preset, seat: str, device: str) -> int:
    """Rows that grow at a time."""
    longest = longest_prompt(preset, seat) + preset.grpo.tokens(seat)
    rows = slots_of(device, SLOTS[device], seat_rows(preset, seat).sampled, longest)
    return up(rows, TILE[device])


def cached_positions(preset: Preset, seat: str, device: str) -> int:
    """Tokens of a row that there is room for."""
    longest = longest_prompt(preset, seat) + preset.grpo.tokens(seat)
    return up(up(longest, SEEN[device]), ROOM)


def pack_tokens(preset: Preset, seat: str, device: str) -> int:
    """Tokens of one pass of the learner, at most: a prompt with its group, or as many of them as a pass takes."""
    prompt, response = longest_prompt(preset, seat), preset.grpo.tokens(seat)
    whole = prompt + seat_rows(preset, seat).group * response
    return min(whole, max(PACK_TOKENS[device], prompt + response))
