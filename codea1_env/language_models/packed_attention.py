"""Attention of a prompt and its responses in one sequence, for processors: each response sees the prompt and itself.

Some queries at a time are compared with the keys that they see, in float32. The weights are not kept: the way back
computes them again. PyTorch's own kernel takes up to twice as long there (docs/lab-notes.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from codea1_env.extras import extra

with extra("train", "language models on CPUs need"):
    import torch
    from torch import Tensor

QUERIES = 256
"""Tokens whose weights are there at a time: 1 MB a head where 1,000 tokens are seen."""


@dataclass(frozen=True, slots=True)
class _Block:
    """Some tokens in a row, and what they see: the prompt, if it is not their own, and their own part up to them."""

    queries: slice
    prompt: int
    """Tokens of the prompt, where the block is a response's; else 0."""
    start: int
    """Where their own part begins."""

    def seen(self, tokens: Tensor) -> Tensor:
        """Of (heads of keys, tokens, head), what the block sees."""
        own = tokens[:, self.start : self.queries.stop]
        return torch.cat([tokens[:, : self.prompt], own], dim=1) if self.prompt else own

    def add(self, total: Tensor, gradient: Tensor) -> None:
        """What `seen` gave back to where it came from."""
        total[:, : self.prompt] += gradient[:, : self.prompt]
        total[:, self.start : self.queries.stop] += gradient[:, self.prompt :]


def _blocks(sizes: Sequence[int]) -> Iterator[_Block]:
    start = 0
    for place, size in enumerate(sizes):
        for first in range(start, start + size, QUERIES):
            last = min(first + QUERIES, start + size)
            yield _Block(slice(first, last), sizes[0] if place else 0, start)
        start += size


def _weights(queries: Tensor, keys: Tensor, count: int) -> Tensor:
    """(heads of keys, heads that share them * count, head) and (heads of keys, seen, head) to the weights of what is
    seen; the last `count` of it are the queries' own places."""
    scores = torch.bmm(queries, keys.mT)
    own = scores.view(len(keys), -1, count, keys.shape[1])[..., -count:]
    own += torch.full((count, count), float("-inf")).triu_(1)
    return scores.softmax(dim=-1)


class _Attended(torch.autograd.Function):
    """(tokens, heads, head), and twice (tokens, heads of keys, head), to (tokens, heads * head)."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, sizes: Sequence[int]) -> Tensor:
        queries, keys, values = _by_key_head(q, k), _heads_first(k), _heads_first(v)
        queries *= q.shape[2] ** -0.5
        found = torch.empty_like(queries)
        for block in _blocks(sizes):
            own = queries[:, :, block.queries]
            count = own.shape[2]
            weights = _weights(own.flatten(1, 2), block.seen(keys), count)
            found[:, :, block.queries] = torch.bmm(weights, block.seen(values)).view_as(own)
        attended = found.permute(2, 0, 1, 3).reshape(len(q), -1).to(q.dtype)
        ctx.save_for_backward(q, k, v, attended)
        ctx.sizes = sizes
        return attended

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        q, k, v, attended = ctx.saved_tensors
        scale = q.shape[2] ** -0.5
        queries, keys, values = _by_key_head(q, k), _heads_first(k), _heads_first(v)
        queries *= scale
        of_found = _by_key_head(gradient.view_as(q), k)
        sums = (of_found * _by_key_head(attended.view_as(q), k)).sum(dim=3, keepdim=True)
        of_queries, of_keys, of_values = torch.empty_like(queries), torch.zeros_like(keys), torch.zeros_like(values)
        for block in _blocks(ctx.sizes):
            own = queries[:, :, block.queries]
            flat, back = own.flatten(1, 2), of_found[:, :, block.queries].flatten(1, 2)
            seen = block.seen(keys)
            weights = _weights(flat, seen, own.shape[2])
            block.add(of_values, torch.bmm(weights.mT, back))
            of_scores = torch.bmm(back, block.seen(values).mT)
            of_scores.sub_(sums[:, :, block.queries].flatten(1, 2)).mul_(weights)
            of_queries[:, :, block.queries] = torch.bmm(of_scores, seen).view_as(own)
            block.add(of_keys, torch.bmm(of_scores.mT, flat))
        of_q = of_queries.mul_(scale).permute(2, 0, 1, 3).reshape_as(q).to(q.dtype)
        return of_q, _tokens_first(of_keys, k), _tokens_first(of_values, v), None


def _by_key_head(q: Tensor, k: Tensor) -> Tensor:
    """(tokens, heads, head) to (heads of keys, heads that share them, tokens, head) in float32, a copy."""
    tokens, _, size = q.shape
    grouped = q.view(tokens, k.shape[1], -1, size).permute(1, 2, 0, 3)
    return grouped.to(torch.float32, memory_format=torch.contiguous_format, copy=True)


def _heads_first(k: Tensor) -> Tensor:
    """(tokens, heads of keys, head) to (heads of keys, tokens, head) in float32."""
    return k.transpose(0, 1).to(torch.float32, memory_format=torch.contiguous_format, copy=True)


def _tokens_first(gradient: Tensor, like: Tensor) -> Tensor:
    return gradient.transpose(0, 1).to(like.dtype)


attended_by_response: Callable[[Tensor, Tensor, Tensor, Sequence[int]], Tensor] = _Attended.apply
