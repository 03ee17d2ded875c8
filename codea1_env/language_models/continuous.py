"""A rollout engine for small models: every prompt is read once, and as many answers grow at a time as there are slots.

Answers to the same prompt start from copies of its keys and values, and a prompt that begins like the one before it is
read from where they part. An answer that ends gives its slot to the next one, so that the batch stays full; when none
is left, the last row moves into the gap and the batch shrinks.

A step takes as long for 64 rows as for 20, on a GPU for 256: ask for much at a time.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from codea1_env.errors import ConfigurationError
from codea1_env.extras import extra
from codea1_env.language_models.at_once import ROOM, SEEN, TILE, default_slots, slots_of, up
from codea1_env.language_models.base import give_back
from codea1_env.language_models.drawing import draw
from codea1_env.language_models.loading import LanguageModel
from codea1_env.language_models.lora import Adapter, Beside
from codea1_env.language_models.rollouts import (
    Completion,
    GrowingAnswer,
    RolloutEngine,
    RolloutRequest,
    RolloutSampling,
    require_room,
)

with extra("train", "language models on CPUs need"):
    import torch
    import torch.nn.functional as F
    from torch import Tensor

SHARED_AT_LEAST = 16
"""Tokens that a prompt must share with the one before, to be read from there."""
SHORTEST = 1024
"""Tokens up to which all rows grow in one batch; the next ones have at most twice as many each."""


@dataclass(frozen=True, slots=True)
class _ReadPrompt:
    """A prompt that was read."""

    prompt: tuple[int, ...]
    adapter: str
    cache: Tensor
    """(layers, 2, heads of keys, tokens, head)."""
    logits: Tensor
    """(vocabulary,), of what follows."""


class ContinuousEngine(RolloutEngine):
    """Samples from a base and adapters beside it."""

    def __init__(self, model: LanguageModel, adapters: Mapping[str, Adapter] | None = None, slots: int = 0) -> None:
        """`adapters`: by name; what they are when `sample` is called counts. `slots`: 0 is `default_slots` the base."""
        self.model = model
        self.prompt_tokens = self.read_tokens = 0
        """Tokens of the prompts of the last call, each prompt once, and those that had to be read."""
        self.slots = slots or default_slots(model.base.device.type, model.base.dtype.itemsize)
        self._adapters = {} if adapters is None else adapters
        self._cache: Tensor | None = None  # flat: batches of other shapes use it, too
        self._pieces: dict[int, str] = {}

    def sample(self, requests: Sequence[RolloutRequest], sampling: RolloutSampling) -> list[list[Completion]]:
        """As `RolloutEngine`. Raises ConfigurationError for a prompt that leaves no room, PlayerError for a model whose
        numbers are no numbers."""
        self._require_room(requests, sampling)
        rows = [[GrowingAnswer.of(one, sample, sampling) for sample in range(one.samples)] for one in requests]
        self.model.base.pack()
        names = sorted({request.adapter for request in requests} - {""})
        dtype = self.model.base.dtype
        beside = Beside(self.model.base, [self._adapters[name].ready(dtype) for name in names])
        places = {name: place for place, name in enumerate(names)} | {"": -1}
        self.prompt_tokens = self.read_tokens = 0
        with torch.no_grad():
            for waiting in _by_length(rows, sampling.max_tokens):
                _RowsInSlots(self, beside, places, sampling, waiting).run()
        return [[row.completion() for row in group] for group in rows]

    def _require_room(self, requests: Sequence[RolloutRequest], sampling: RolloutSampling) -> None:
        for request in requests:
            if request.adapter and request.adapter not in self._adapters:
                raise ConfigurationError(f"an adapter must be one of {sorted(self._adapters)}, got {request.adapter!r}")
        require_room(requests, sampling, self.model.base.context, str(self.model.source))

    def cache(self, slots: int, positions: int) -> Tensor:
        """Room for keys and values, (layers, 2, slots, heads of keys, positions, head), used again from call to call
        until it is released. What stands in it are numbers, if old ones."""
        shape = self.model.base.shape
        size = (shape.layers, 2, slots, shape.key_heads, up(positions, ROOM), shape.head)
        if self._cache is None or len(self._cache) < math.prod(size):
            self._cache = None  # before the new one is made
            self._cache = torch.zeros(math.prod(size), dtype=self.model.base.dtype, device=self.model.base.device)
        return self._cache[: math.prod(size)].view(size)

    def release(self) -> None:
        """Lets go of the room for keys and values, for who learns next. On a GPU it stays: what is put in its place
        would break up the memory, and the next one would not fit there."""
        if self.model.base.device.type == "cpu":
            self._cache = None
            give_back()

    def said(self, tokens: Sequence[int]) -> str:
        """What tokens say; of one alone it is remembered."""
        if len(tokens) > 1:
            return str(self.model.tokenizer.decode(tokens, skip_special_tokens=True))
        (token,) = tokens
        if token not in self._pieces:
            self._pieces[token] = self.model.tokenizer.decode([token])
        return self._pieces[token]


class _RowsInSlots:
    """The rows of one call on their way through the slots."""

    def __init__(
        self,
        engine: ContinuousEngine,
        beside: Beside,
        places: Mapping[str, int],
        sampling: RolloutSampling,
        waiting: deque[GrowingAnswer],
    ) -> None:
        """`places`: of the adapters in `beside`, by name."""
        self._engine, self._base, self._beside = engine, engine.model.base, beside
        self._ends = engine.model.ends
        self._places, self._sampling, self._waiting = places, sampling, waiting
        longest = max((len(row.request.prompt) for row in waiting), default=0) + sampling.max_tokens
        kind = self._base.device.type
        self._tile, self._seen = TILE[kind], SEEN[kind]
        self._slots = slots_of(kind, engine.slots, len(waiting), longest)
        self._cache = engine.cache(up(self._slots, self._tile), up(longest, self._seen))
        self._replayed = ReplayedGraph(self._decode) if kind == "cuda" else None
        self._rows: list[GrowingAnswer] = []
        self._last: _ReadPrompt | None = None

    def run(self) -> None:
        while self._waiting or self._rows:
            self._fill()
            if self._rows:
                self._step()
        self._replayed = None  # it knows us: the cache would stay until somebody looks for such circles

    def _fill(self) -> None:
        """Give free slots to rows that wait. The first token of an answer comes from its prompt's logits."""
        while self._waiting and len(self._rows) < self._slots:
            row = self._waiting.popleft()
            read = self._read(row.request)
            uniform = torch.tensor([row.uniforms.next()], dtype=torch.float64)
            drawn = draw(read.logits[None], uniform, self._sampling.temperature, self._sampling.top_p)
            row.append(int(drawn.tokens[0]), float(drawn.log_probs[0]), self._ends, self._engine.said)
            if row.finish is None:
                self._cache[:, :, len(self._rows), :, : len(read.prompt)] = read.cache
                self._rows.append(row)

    def _read(self, request: RolloutRequest) -> _ReadPrompt:
        """Rows of a prompt come one after the other: the last one read is all that must be kept."""
        last = self._last
        if last is not None and last.adapter == request.adapter and last.prompt == request.prompt:
            return last
        shared = 0
        if last is not None and last.adapter == request.adapter:
            shared = _shared(last.prompt, request.prompt)
        past = last.cache[:, :, :, :shared] if last is not None and shared else None
        hidden, cache = self._extend(request.prompt[shared:], past, self._places[request.adapter])
        self._engine.prompt_tokens += len(request.prompt)
        self._engine.read_tokens += len(request.prompt) - shared
        self._last = _ReadPrompt(request.prompt, request.adapter, cache, self._base.head(hidden[None])[0])
        return self._last

    def _extend(self, tokens: Sequence[int], past: Tensor | None, place: int) -> tuple[Tensor, Tensor]:
        """The last hidden state and the whole cache, after `tokens` that follow `past`."""
        shape, base = self._base.shape, self._base
        known, count = 0 if past is None else past.shape[3], len(tokens)
        size = (shape.layers, 2, shape.key_heads, known + count, shape.head)
        cache = torch.empty(size, dtype=base.dtype, device=base.device)
        if past is not None:
            cache[:, :, :, :known] = past
        mask = None
        if known:
            mask = torch.ones(count, known + count, dtype=torch.bool, device=base.device).tril_(known)

        def attend(layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            cache[layer, 0, :, known:] = k.transpose(0, 1)
            cache[layer, 1, :, known:] = v.transpose(0, 1)
            keys, values = (_repeated(part, shape.heads) for part in cache[layer])
            attended = F.scaled_dot_product_attention(
                q.transpose(0, 1)[None], keys, values, attn_mask=mask, is_causal=mask is None
            )
            return attended[0].transpose(0, 1).reshape(count, -1)

        self._beside.use([place] * count)
        x = base.embedded(torch.tensor(tokens, device=base.device))
        cos, sin = base.cos[known : known + count], base.sin[known : known + count]
        return base.blocks(x, cos, sin, self._beside, attend)[-1], cache

    def _step(self) -> None:
        """One token more for every row."""
        rows, count = self._rows, len(self._rows)
        filled = up(count, self._tile)
        spare = [0] * (filled - count)
        tokens = [row.tokens[-1] for row in rows] + spare
        positions = [row.length - 1 for row in rows] + spare
        self._beside.use(
            [self._places[row.request.adapter] for row in rows] + [self._places[rows[0].request.adapter]] * len(spare)
        )
        step = self._decode if self._beside.is_mixed or self._replayed is None else self._replayed
        logits = step(*self._read_next(tokens, positions))[:count]
        uniforms = torch.tensor([row.uniforms.next() for row in rows], dtype=torch.float64)
        drawn = draw(logits, uniforms, self._sampling.temperature, self._sampling.top_p)
        for row, token, log_prob in zip(rows, drawn.tokens.tolist(), drawn.log_probs.tolist(), strict=True):
            row.append(token, log_prob, self._ends, self._engine.said)
        for slot in reversed(range(count)):
            if rows[slot].finish is not None:
                self._leave(slot)

    def _read_next(self, last: Sequence[int], places: Sequence[int]) -> tuple[Tensor, Tensor, Tensor]:
        """Tokens to be read, their positions, and what is added to the attention's scores: (rows, positions seen).
        `last`: of each row the token; `places`: its position."""
        base, seen = self._base, up(max(places) + 1, self._seen)
        tokens, positions = torch.tensor([last, places], device=base.device)
        bias = torch.zeros(len(last), seen, dtype=base.dtype, device=base.device)
        bias.masked_fill_(torch.arange(seen, device=base.device) > positions[:, None], float("-inf"))
        return tokens, positions, bias

    def _decode(self, tokens: Tensor, positions: Tensor, bias: Tensor) -> Tensor:
        """The logits of what follows, (rows, vocabulary)."""
        shape, base = self._base.shape, self._base
        (rows, seen), group = bias.shape, shape.heads // shape.key_heads
        every = torch.arange(rows, device=base.device)
        bias = bias[:, None, None].expand(rows, 1, group, seen)

        def attend(layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            keys, values = self._cache[layer, 0, :rows], self._cache[layer, 1, :rows]
            keys[every, :, positions] = k
            values[every, :, positions] = v
            # The heads that share keys stand in the place of a sequence.
            attended = F.scaled_dot_product_attention(
                q.reshape(rows, shape.key_heads, group, shape.head),
                keys[:, :, :seen],
                values[:, :, :seen],
                attn_mask=bias,
            )
            return attended.reshape(rows, -1)

        x = base.embedded(tokens)
        return base.head(base.blocks(x, base.cos[positions], base.sin[positions], self._beside, attend))

    def _leave(self, slot: int) -> None:
        """The last row takes the slot; the next `_fill` appends behind it."""
        moved = self._rows.pop()
        if slot < len(self._rows):
            known = moved.length - 1
            self._cache[:, :, slot, :, :known] = self._cache[:, :, len(self._rows), :, :known]
            self._rows[slot] = moved


def _by_length(rows: Sequence[Sequence[GrowingAnswer]], tokens: int) -> Iterator[deque[GrowingAnswer]]:
    """The rows of each request in batches of about the same length, the short ones first: one long prompt would take
    its room in the cache for every row. Within a batch equal beginnings come one after the other."""
    batches: dict[int, list[Sequence[GrowingAnswer]]] = {}
    for group in rows:
        length = len(group[0].request.prompt) + tokens
        batches.setdefault(max(SHORTEST, 1 << (length - 1).bit_length()), []).append(group)
    for _, groups in sorted(batches.items()):
        ordered = sorted(groups, key=lambda group: (group[0].request.adapter, group[0].request.prompt))
        yield deque(row for group in ordered for row in group)


def _repeated(keys: Tensor, heads: int) -> Tensor:
    """(heads of keys, tokens, head) to (1, heads, tokens, head), not copied where it need not be."""
    shared = heads // keys.shape[0]
    return keys[:, None].expand(-1, shared, -1, -1).reshape(1, heads, *keys.shape[1:])


def _shared(one: Sequence[int], other: Sequence[int]) -> int:
    """Tokens that both begin with; one of the other stays to be read. 0 where they are too few to pay."""
    pairs: Iterable[tuple[int, int]] = zip(one, other[:-1], strict=False)
    count = next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other) - 1))
    return count if count >= SHARED_AT_LEAST else 0


@dataclass(frozen=True, slots=True)
class _Recording:
    graph: Any
    arguments: tuple[Tensor, ...]
    """Where the next call's are copied to."""
    result: Tensor


class ReplayedGraph:
    """`function`, called with tensors of a GPU. Its result holds until the next call."""

    def __init__(self, function: Callable[..., Tensor]) -> None:
        self._function = function
        self._recordings: dict[tuple[torch.Size, ...], _Recording] = {}
        self._pool = torch.cuda.graph_pool_handle()

    def __call__(self, *arguments: Tensor) -> Tensor:
        form = tuple(argument.shape for argument in arguments)
        if form not in self._recordings:
            self._recordings[form] = self._record(arguments)
        recording = self._recordings[form]
        for place, argument in zip(recording.arguments, arguments, strict=True):
            place.copy_(argument)
        recording.graph.replay()
        return recording.result

    def _record(self, arguments: tuple[Tensor, ...]) -> _Recording:
        places = tuple(argument.clone() for argument in arguments)
        aside = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):  # libraries set themselves up in a first call, which cannot be recorded
            self._function(*places)
        torch.cuda.current_stream().wait_stream(aside)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self._pool):
            result = self._function(*places)
        return _Recording(graph, places, result)
