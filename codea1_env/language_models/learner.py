"""Gradients of an adapter beside a frozen base, from one prompt and all its responses at a time.

The prompt is computed once; every response sees it and itself. Only the hidden states of the responses go through the
model's head, some tokens at a time, and no logits are kept: the way back computes them again where an objective needs
the whole pack. In float32 the gradients are those of transformers' and PEFT's own forward pass, up to rounding.

On processors a prompt and its responses are one sequence in which each response sees the prompt and itself. Some
queries at a time are compared with the keys that they see, in float32. The weights are not kept: the way back computes
them again. PyTorch's own kernel takes up to twice as long there (docs/lab-notes.md).

Does not hold an optimizer, and does not know what an advantage is: see `Objective`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from codea1_env.errors import ConfigurationError
from codea1_env.extras import extra
from codea1_env.language_models.at_once import CHUNK, PACK_TOKENS
from codea1_env.language_models.base import Base, Linear, gated, gated_back, give_back
from codea1_env.language_models.lora import Adapter, Beside

with extra("train", "language models on CPUs need"):
    import torch
    import torch.nn.functional as F
    from torch import Tensor
    from torch.nn.attention import SDPBackend, sdpa_kernel

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


class Objective(Protocol):
    """What is made small."""

    by_token: bool
    """Each token has a loss of its own, whatever the others are: saves a pass through the model's head."""

    def __call__(self, rows: Sequence[int], log_probs: Tensor, start: int) -> Tensor:
        """A scalar with a gradient. `rows`: the responses of the pack, in order, by their place in the group.
        `log_probs`: (tokens,), on the CPU, of the pack's tokens from `start` on."""


@dataclass(frozen=True, slots=True)
class Learnt:
    """What a group's pass found, response by response. On the CPU."""

    log_probs: tuple[Tensor, ...]
    entropies: tuple[Tensor, ...]


class Learner:
    """Adds gradients to an adapter's parameters."""

    def __init__(self, base: Base, adapter: Adapter, pack_tokens: int = 0) -> None:
        """`pack_tokens`: 0 is `PACK_TOKENS` of the base's device."""
        self._base, self._adapter = base, adapter
        self._pack_tokens = pack_tokens or PACK_TOKENS[base.device.type]

    def learn(
        self, prompt: Sequence[int], responses: Sequence[Sequence[int]], objective: Objective, temperature: float = 1.0
    ) -> Learnt:
        """Of the responses that are given: leave out those without an advantage."""
        parts = [
            self._pass(prompt, [responses[row] for row in rows], rows, objective, temperature)
            for rows in self.packs(len(prompt), responses)
        ]
        if self._base.device.type == "cpu":
            give_back()  # passes of other lengths would not fit where these were, and a round has many
        return _joined(parts)

    def log_probs(
        self,
        prompt: Sequence[int],
        responses: Sequence[Sequence[int]],
        temperature: float = 1.0,
        *,
        of_base: bool = False,
    ) -> Learnt:
        """Without gradients. `of_base`: of the base alone, as if there were no adapter."""
        parts = []
        for rows in self.packs(len(prompt), responses):
            pack = _Pack(prompt, [responses[row] for row in rows], self._base.device)
            with torch.no_grad():
                beside = Beside(self._base, [] if of_base else [self._adapter.ready(self._base.dtype)])
                beside.use([0])
                parts.append(_Head(self._base, self._hidden(pack, beside), pack, temperature).read())
        return _joined(parts)

    def packs(self, prompt: int, responses: Sequence[Sequence[int]]) -> list[list[int]]:
        """The places of the responses that are computed at once, pass by pass. `prompt`: its length."""
        packs: list[list[int]] = []
        room = 0
        for row, response in enumerate(responses):
            if not packs or len(response) > room:
                packs.append([])
                room = self._pack_tokens - prompt
            packs[-1].append(row)
            room -= len(response)
        return packs

    def _pass(
        self,
        prompt: Sequence[int],
        responses: Sequence[Sequence[int]],
        rows: Sequence[int],
        objective: Objective,
        temperature: float,
    ) -> Learnt:
        pack = _Pack(prompt, responses, self._base.device)
        hidden = self._hidden(pack, self._learning)
        head = _Head(self._base, hidden.detach(), pack, temperature)
        learnt = head.descend(objective, rows)
        torch.autograd.backward(hidden, head.gradient.to(hidden.dtype))
        return learnt

    def _hidden(self, pack: _Pack, project: Callable[[int, str, Tensor, Tensor | None], Tensor]) -> Tensor:
        base = self._base
        base.unpack()
        x = base.embedded(pack.tokens)
        return base.blocks(x, base.cos[pack.positions], base.sin[pack.positions], project, pack.attend)

    def _learning(self, layer: int, part: str, x: Tensor, add: Tensor | None) -> Tensor:
        """Projects with the adapter, and keeps what its gradient needs."""
        adapter = self._adapter
        a, b = adapter.pairs[layer][part]
        linear = self._base.layers[layer].parts[part]
        return beside_linear(x, a, b, add, linear, adapter.scale, adapter.blocks[part], part == "down")


class _Pack:
    """A prompt and responses as one sequence: the last token of a response has nothing to predict and is left out."""

    def __init__(self, prompt: Sequence[int], responses: Sequence[Sequence[int]], device: torch.device) -> None:
        self.lengths = [len(response) for response in responses]
        self.sizes = [len(prompt), *(length - 1 for length in self.lengths)]
        read = [*prompt, *(token for response in responses for token in response[:-1])]
        self.tokens = torch.tensor(read, device=device)
        self.positions = torch.cat(
            [torch.arange(len(prompt)), *(len(prompt) + torch.arange(length - 1) for length in self.lengths)]
        ).to(device)
        self.targets = torch.tensor([token for response in responses for token in response], device=device)
        places, start = [], len(prompt)
        for length in self.lengths:
            places += [len(prompt) - 1, *range(start, start + length - 1)]
            start += length - 1
        self.places = torch.tensor(places, device=device)
        """Where each response token is predicted."""
        self._mask = None if device.type == "cpu" else self._who_sees_whom(device)

    def _who_sees_whom(self, device: torch.device) -> Tensor:
        """(tokens, tokens): the prompt and one's own response, up to oneself."""
        owner = torch.repeat_interleave(torch.arange(len(self.sizes)), torch.tensor(self.sizes)).to(device)
        return ((owner == owner[:, None]) | (owner == 0)).tril_()

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Some tokens of a response at a time, which computes nothing that is masked; on a GPU at once, which launches
        less."""
        if self._mask is None:
            return attended_by_response(q, k, v, self.sizes)
        shared = q.shape[1] // k.shape[1]
        k, v = k.repeat_interleave(shared, dim=1), v.repeat_interleave(shared, dim=1)
        q, k, v = (part.transpose(0, 1)[None] for part in (q, k, v))  # (1, heads, tokens, head)
        with sdpa_kernel(SDPBackend.MATH):  # what PyTorch 2.11 chooses itself gave NaN (docs/cluster.md)
            attended = F.scaled_dot_product_attention(q, k, v, attn_mask=self._mask)
        return attended[0].transpose(0, 1).reshape(attended.shape[2], -1)

    def by_response(self, values: Tensor) -> tuple[Tensor, ...]:
        return values.cpu().split_with_sizes(self.lengths)


class _Head:
    """Hidden states to log-probabilities of the responses' tokens, and the gradient back to the hidden states."""

    def __init__(self, base: Base, hidden: Tensor, pack: _Pack, temperature: float) -> None:
        self._head: Linear = base.head
        self._hidden, self._pack, self._temperature = hidden, pack, temperature
        self._at_once = CHUNK[hidden.device.type]
        self._room: Tensor | None = None  # for every chunk: new memory takes as long as what is done in it
        self.gradient = torch.zeros(0)
        """Of the loss by the hidden states, in float32."""

    def read(self) -> Learnt:
        chunks = [self._chunk(start) for start in range(0, len(self._pack.targets), self._at_once)]
        log_probs, entropies = (torch.cat(values) for values in zip(*(chunk[:2] for chunk in chunks), strict=True))
        return Learnt(self._pack.by_response(log_probs), self._pack.by_response(entropies))

    def descend(self, objective: Objective, rows: Sequence[int]) -> Learnt:
        """Fill in `gradient`."""
        self.gradient = torch.zeros_like(self._hidden, dtype=torch.float32)
        slopes = None
        if not objective.by_token:
            slopes = _slope(objective, rows, torch.cat(self.read().log_probs), 0).to(self._hidden.device)
        chunks = []
        with torch.no_grad():
            for start in range(0, len(self._pack.targets), self._at_once):
                log_probs, entropies, weights, sums = self._chunk(start)
                chunk = slice(start, start + self._at_once)
                own = _slope(objective, rows, log_probs, start) if slopes is None else slopes[chunk]
                # d log p(t) / d logits = onehot(t) - p, over the temperature
                own = own[:, None] / self._temperature
                logits = weights.mul_(-own / sums).scatter_add_(1, self._pack.targets[chunk, None], own)
                back = self._head.back(logits.to(self._hidden.dtype)).float()
                self.gradient.index_add_(0, self._pack.places[chunk], back)
                chunks.append((log_probs, entropies))
        self._room = None
        log_probs, entropies = (torch.cat(values) for values in zip(*chunks, strict=True))
        return Learnt(self._pack.by_response(log_probs), self._pack.by_response(entropies))

    @torch.no_grad()
    def _chunk(self, start: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Log-probabilities and entropies, (tokens,); what is in proportion to the probabilities, (tokens, vocabulary),
        until the next chunk is asked for, and its sums, (tokens, 1)."""
        chunk = slice(start, start + self._at_once)
        logits = self._head(self._hidden[self._pack.places[chunk]])
        if self._room is None:
            self._room = logits.new_empty((2, *logits.shape), dtype=torch.float32)
        scores, weights = self._room[:, : len(logits)]
        scores.copy_(logits)
        if self._temperature != 1:
            scores /= self._temperature
        scores -= scores.amax(dim=1, keepdim=True)
        torch.exp(scores, out=weights)
        sums = weights.sum(dim=1, keepdim=True)
        log_probs = scores.gather(1, self._pack.targets[chunk, None]) - sums.log()
        entropies = sums.log() - torch.bmm(weights[:, None], scores[:, :, None])[:, 0] / sums
        return log_probs[:, 0], entropies[:, 0], weights, sums


def _slope(objective: Objective, rows: Sequence[int], log_probs: Tensor, start: int) -> Tensor:
    """Of the objective by the log-probabilities."""
    with torch.enable_grad():
        leaf = log_probs.detach().cpu().requires_grad_()
        (slope,) = torch.autograd.grad(objective(rows, leaf, start), leaf, allow_unused=True)
    if slope is None:
        raise ConfigurationError(
            "algorithm.loss_type must return a tensor of one number, (), with a gradient to batch.logps, got one "
            "that does not depend on them"
        )
    return slope.to(log_probs.device)


class BesideLinear(torch.autograd.Function):
    """A frozen linear layer with an adapter beside it, and optionally a sum: x W' + b + s (x A') B' + add. Where x is
    to be gated first, what comes of it is computed again on the way back: it is a fifth of all that would be kept."""

    @staticmethod
    def forward(
        ctx: Any, given: Tensor, a: Tensor, b: Tensor, add: Tensor | None, linear: Linear, scale: float,
        blocks: Tensor, is_gated: bool,
    ) -> Tensor:  # fmt: skip
        a, b = a.to(given.dtype), (b * scale).to(given.dtype)
        x = gated(given) if is_gated else given
        low = F.linear(x, a)
        ctx.save_for_backward(given, low, a, b)
        ctx.rest = linear, scale, blocks, is_gated, add is not None
        return linear(x, add).addmm_(low, b.t())

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        given, low, a, b = ctx.saved_tensors
        linear, scale, blocks, is_gated, adds = ctx.rest
        gradient = gradient.contiguous()
        back = gradient @ b
        of_a = (back.t() @ (gated(given) if is_gated else given)).float()
        of_b = (gradient.t() @ low).float().mul_(blocks).mul_(scale)
        of_given = None
        if ctx.needs_input_grad[0]:
            of_x = linear.back(gradient, back @ a)
            of_given = gated_back(given, of_x) if is_gated else of_x
        return of_given, of_a, of_b, gradient if adds else None, None, None, None, None


beside_linear: Callable[..., Tensor] = BesideLinear.apply


def _joined(parts: Sequence[Learnt]) -> Learnt:
    return Learnt(
        tuple(one for each in parts for one in each.log_probs), tuple(one for each in parts for one in each.entropies)
    )
