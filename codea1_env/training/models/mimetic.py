"""Initial weights under which attention copies from the first step on, as it does in trained models.

A tiny model trained from nothing otherwise spends its warm start on finding out that a number can be copied. In the
first layer the heads that share the first keys look one, two, ... tokens back (through the biases and the rotary
positions) and write what stands there into a subspace of their own. In later layers the first keys are that subspace,
and the heads that share them look for a place where the token before was what is the present one (induction); the other
heads look for the present token itself. Mimetic initialisation: Trockman and Kolter 2023 (arXiv 2305.09828); that of
induction is ours.

For models of the Qwen2 architecture alone, whose queries and keys have biases. Does not promise that a head stays so.
"""

from __future__ import annotations

from typing import Any

from codea1_env.extras import extra

with extra("train", "training needs"):
    import torch

POSITION_SIZE, POSITION_BIAS = 6, 6.0
"""Rotary frequencies, the highest ones, that place a head's look; and the bias on each of them."""
CONTENT_SCALE = 1.6
"""Of queries and keys that match by content."""
WRITE_SCALE = 0.1
"""Of what heads write into the residual stream, whose initial spread is about as large."""
KEPT_SHARE = 0.1
"""Of random weights that would drown what is set here: of queries and keys of heads that look by position, and of what
feed-forward layers and the first layer's other heads write."""


def start_mimetic(model: Any) -> None:
    """Overwrite the attention weights of a Qwen2ForCausalLM in place, from torch's global generator."""
    shape = model.config
    size = shape.hidden_size // shape.num_attention_heads
    sharing = shape.num_attention_heads // shape.num_key_value_heads
    present = _directions(shape.hidden_size, size)
    before = [_directions(shape.hidden_size, size) for _ in range(sharing)]
    with torch.no_grad():
        first, *later = (layer.self_attn for layer in model.model.layers)
        first.o_proj.weight[:, sharing * size :] *= KEPT_SHARE
        for layer in model.model.layers:
            layer.mlp.down_proj.weight *= KEPT_SHARE
        _look_back(first, size, model.model.rotary_emb.inv_freq[:POSITION_SIZE], present, before)
        for attention in later:
            for place in range(shape.num_key_value_heads):
                sought = present if place == 0 else _directions(shape.hidden_size, size)
                keys = before[0] if place == 0 else sought
                heads = range(place * sharing, (place + 1) * sharing)
                _look_for(attention, size, place, heads, sought, keys, _directions(shape.hidden_size, size))


def _directions(hidden: int, size: int) -> torch.Tensor:
    """Orthonormal rows, (size, hidden)."""
    columns: torch.Tensor = torch.linalg.qr(torch.randn(hidden, size))[0]  # (hidden, size)
    return columns.T


def _look_back(
    attention: Any, size: int, angles: torch.Tensor, present: torch.Tensor, before: list[torch.Tensor]
) -> None:
    """Head h of those that share the first keys looks h + 1 tokens back, and writes what `present` reads there.

    `angles`: by which one position turns each of the first dimensions, in radians.
    """
    half = size // 2  # rotary positions turn dimension i against i + half
    attention.k_proj.weight[:size] *= KEPT_SHARE
    attention.k_proj.bias[:size] = 0.0
    attention.k_proj.bias[:POSITION_SIZE] = POSITION_BIAS
    attention.v_proj.weight[:size] = present
    for head, directions in enumerate(before):
        rows = slice(head * size, (head + 1) * size)
        turn = -(head + 1) * angles
        bias = torch.zeros(size)
        bias[:POSITION_SIZE] = POSITION_BIAS * turn.cos()
        bias[half : half + POSITION_SIZE] = POSITION_BIAS * turn.sin()
        attention.q_proj.weight[rows] *= KEPT_SHARE
        attention.q_proj.bias[rows] = bias
        attention.o_proj.weight[:, rows] = WRITE_SCALE * directions.T


def _look_for(
    attention: Any,
    size: int,
    place: int,
    heads: range,
    sought: torch.Tensor,
    keys: torch.Tensor,
    written: torch.Tensor,
) -> None:
    """`heads`, which share the keys at `place`, look for tokens whose `keys` are what `sought` reads in the present
    one, and write these tokens as they are, so that the output layer names them."""
    shared = slice(place * size, (place + 1) * size)
    attention.k_proj.weight[shared] = CONTENT_SCALE * keys
    attention.v_proj.weight[shared] = written
    for head in heads:
        rows = slice(head * size, (head + 1) * size)
        attention.q_proj.weight[rows] = CONTENT_SCALE * sought
        attention.o_proj.weight[:, rows] = WRITE_SCALE * written.T
