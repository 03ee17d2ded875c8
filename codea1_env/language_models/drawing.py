"""Logits and one uniform a row -> a token a row, by the inverse of the distribution function.

Without top_p the tokens are in the vocabulary's order; with it, from the likeliest down, and equally likely ones in
that order. Sums are in float64, so that a uniform finds its token whatever the vocabulary's size.
"""

from __future__ import annotations

from dataclasses import dataclass

from codea1_env.extras import extra

with extra("train", "language models on CPUs need"):
    import torch
    from torch import Tensor

ROWS_AT_ONCE = {"cpu": 8, "cuda": 128}
"""By device. On a processor: whose probabilities stay in the cache."""
BLOCK = 128
"""Tokens that are summed together before the one is looked for."""
LIKELIEST = (64, 1024)
"""How many tokens are sorted first, in the hope that top_p lies among them."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """A token for each row."""

    tokens: Tensor
    log_probs: Tensor
    """Float32, of the distribution that was drawn from."""


def draw(logits: Tensor, uniforms: Tensor, temperature: float, top_p: float) -> Drawn:
    """`logits`: (rows, vocabulary), on whatever device. `uniforms`: (rows,) in float64, [0, 1); temperature 0 takes no
    notice of them."""
    draws = []
    at_once, uniforms = ROWS_AT_ONCE[logits.device.type], uniforms.to(logits.device)
    for start in range(0, len(logits), at_once):
        scores, chosen = logits[start : start + at_once].float(), uniforms[start : start + at_once]
        if not temperature:
            draws.append(_greedy(scores))
        elif top_p < 1:
            draws.append(_from_likeliest(scores, chosen, temperature, top_p))
        else:
            draws.append(_from_all(scores, chosen, temperature))
    return Drawn(torch.cat([one.tokens for one in draws]), torch.cat([one.log_probs for one in draws]))


def _greedy(scores: Tensor) -> Drawn:
    tokens = scores.argmax(dim=1)
    return Drawn(tokens, scores.gather(1, tokens[:, None])[:, 0] - scores.logsumexp(dim=1))


def _weights(scores: Tensor, temperature: float) -> Tensor:
    """Of the tokens, the likeliest 1. From the largest down: a tiny temperature then gives zeros, and no NaN."""
    scores = scores - scores.amax(dim=1, keepdim=True)
    return (scores / temperature if temperature != 1 else scores).exp_()


def _from_all(scores: Tensor, uniforms: Tensor, temperature: float) -> Drawn:
    vocabulary = scores.shape[1]
    weights = torch.nn.functional.pad(_weights(scores, temperature), (0, -vocabulary % BLOCK))
    blocks = weights.view(len(weights), -1, BLOCK)
    ends = blocks.sum(dim=2).double().cumsum_(dim=1)  # (rows, blocks)
    total = ends[:, -1:]
    target = uniforms[:, None] * total
    block = torch.searchsorted(ends, target, right=True).clamp_max_(ends.shape[1] - 1)
    before = torch.where(block > 0, ends.gather(1, (block - 1).clamp_min(0)), 0.0)
    inside = blocks[torch.arange(len(blocks), device=blocks.device), block[:, 0]].double()  # (rows, BLOCK)
    place = _place(inside, target - before)
    tokens = (block * BLOCK + place)[:, 0]
    return Drawn(tokens, (inside.gather(1, place) / total).log()[:, 0].float())


def _from_likeliest(scores: Tensor, uniforms: Tensor, temperature: float, top_p: float) -> Drawn:
    weights = _weights(scores, temperature)
    limit = top_p * weights.sum(dim=1, dtype=torch.float64)
    largest, order = _likeliest(weights, limit)
    before = largest.cumsum(dim=1) - largest
    before[:, 0] = -1.0  # the likeliest is always kept
    largest = largest.masked_fill(before >= limit[:, None], 0.0)
    total = largest.sum(dim=1, keepdim=True)
    place = _place(largest, uniforms[:, None] * total)
    return Drawn(order.gather(1, place)[:, 0], (largest.gather(1, place) / total).log()[:, 0].float())


def _likeliest(weights: Tensor, limit: Tensor) -> tuple[Tensor, Tensor]:
    """Weights, in float64, that make up each row's limit, from the largest down, and their tokens. Equal ones, of which
    bfloat16 has many, are in the vocabulary's order, so that a row does not depend on how far its neighbours look."""
    for count in LIKELIEST:
        if count < weights.shape[1]:
            largest, order = weights.topk(count, dim=1)
            whole = largest > largest[:, -1:]  # of equal ones at the end topk may have left some out
            if bool((torch.where(whole, largest, 0.0).sum(dim=1, dtype=torch.float64) >= limit).all()):
                order, by_token = order.sort(dim=1)
                largest, by_weight = largest.gather(1, by_token).sort(dim=1, descending=True, stable=True)
                return largest.double(), order.gather(1, by_weight)
    largest, order = weights.sort(dim=1, descending=True, stable=True)
    return largest.double(), order


def _place(weights: Tensor, target: Tensor) -> Tensor:
    """(rows, n) and (rows, 1) to the place in each row, (rows, 1), at which the sum passes the target."""
    last = (weights > 0).long().cumsum(dim=1).argmax(dim=1, keepdim=True)  # rounding may not go beyond it
    return torch.minimum(torch.searchsorted(weights.cumsum(dim=1), target, right=True), last)
