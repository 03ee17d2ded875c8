"""The frozen weights of a Qwen2 or Llama model, and the one forward pass that sampling and learning share.

    hidden = base.blocks(embedded, cos, sin, project, attend)

`project(layer, part, x, add)` applies a linear layer with whatever adapter lies beside it; `attend(layer, q, k, v)`
knows what each token may look at. Rows of `x` are tokens; there is no batch dimension.

On a CPU the weights are packed for oneDNN while samples are drawn, and are as they were while gradients are computed:
`Base.pack`, `Base.unpack`. In float32 the numbers are those of transformers' own model up to
rounding; on processors without bfloat16 arithmetic float32 is also the faster one, by two times and more. Does not
promise the same bits for other numbers of rows or threads, or on another device.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from codea1_env.extras import extra

with extra("train", "language models on CPUs need"):
    import torch
    import torch.nn.functional as F
    from torch import Tensor

PARTS: Mapping[str, tuple[str, ...]] = {
    "qkv": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
    "o": ("self_attn.o_proj",),
    "gate_up": ("mlp.gate_proj", "mlp.up_proj"),
    "down": ("mlp.down_proj",),
}
"""The linear layers of a block, as they are computed, and the names of what each of them consists of."""
os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "128")
# oneDNN keeps a kernel for every number of tokens that it has met, 1,024 of them unless it is told otherwise: nearly
# every pass has another number, and a learner's process grew by a gigabyte and more.
PACKED_FOR_ROWS = 64
"""Rows that weights are packed for; others are computed, too."""

Project = Callable[[int, str, Tensor, Tensor | None], Tensor]
"""(layer, part, (tokens, inputs), added (tokens, outputs) or None) to (tokens, outputs). What `down` is given is still
to be `gated`: who keeps it for the way back need not keep both."""
Attend = Callable[[int, Tensor, Tensor, Tensor], Tensor]
"""(layer, q, k, v), each (tokens, its heads, size of a head), to (tokens, heads * size of a head)."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """Sizes of a model."""

    layers: int
    hidden: int
    heads: int
    key_heads: int
    """Heads of keys and of values."""
    head: int
    """Size of a head."""
    feed_forward: int
    vocabulary: int
    epsilon: float
    """Of the norms."""

    def widths(self, part: str) -> tuple[int, ...]:
        """Outputs of what a part consists of."""
        attended, keys = self.heads * self.head, self.key_heads * self.head
        return {
            "qkv": (attended, keys, keys),
            "o": (self.hidden,),
            "gate_up": (self.feed_forward, self.feed_forward),
            "down": (self.hidden,),
        }[part]

    def inputs(self, part: str) -> int:
        return {"o": self.heads * self.head, "down": self.feed_forward}.get(part, self.hidden)


def has_bfloat16(device: torch.device) -> bool:
    """Whether this GPU or this processor computes in bfloat16. Others emulate it."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    return bool(torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported())


def give_back() -> None:
    """What was freed goes back to the system: glibc would keep it."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(0)


class Linear:
    """A frozen linear layer without a gradient of its own: `layer(x)` or `layer(x, add)`, and `layer.back(gradient)`.

    The weights are there once: packed for oneDNN on a processor, which is faster for few rows, or as they are, which
    the way back needs and which is as fast for many.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        """`weight`: (outputs, inputs)."""
        known = weight.device.type == "cpu" and weight.dtype in (torch.bfloat16, torch.float32)
        self._can_be_packed = torch._C._has_mkldnn and known
        self.is_packed = False
        self._weight = weight.detach()
        self._bias = None if bias is None else bias.detach().clone()

    def pack(self) -> bool:
        """Whether anything changed."""
        if self.is_packed or not self._can_be_packed:
            return False
        self._weight = torch.ops.mkldnn._reorder_linear_weight(self._weight.contiguous(), PACKED_FOR_ROWS)
        self.is_packed = True
        return True

    def unpack(self) -> bool:
        """Whether anything changed."""
        if not self.is_packed:
            return False
        self._weight, self.is_packed = self._weight.to_dense(), False
        return True

    def __call__(self, x: Tensor, add: Tensor | None = None) -> Tensor:
        if not self.is_packed:
            if add is None or self._bias is not None:
                plain = F.linear(x, self._weight, self._bias)
                return plain if add is None else plain.add_(add)
            return torch.addmm(add, x, self._weight.t())
        apply = torch.ops.mkldnn._linear_pointwise
        output: Tensor
        if add is None:
            output = apply(x, self._weight, self._bias, "none", [], "")
        else:
            output = apply.binary(x, add, self._weight, self._bias, "add")
        return output

    def back(self, gradient: Tensor, add: Tensor | None = None) -> Tensor:
        """(tokens, outputs) to (tokens, inputs), of a layer that is not packed: what takes gradients back."""
        assert not self.is_packed
        return gradient @ self._weight if add is None else torch.addmm(add, gradient, self._weight)


@dataclass(frozen=True, slots=True)
class Layer:
    """One block."""

    parts: Mapping[str, Linear]
    before_attention: Tensor
    """Weights of a norm."""
    before_feed_forward: Tensor


class Base:
    """The weights of one model, shared by everyone who samples or learns."""

    def __init__(self, model: Any, dtype: torch.dtype, context: int, device: torch.device) -> None:
        """From a model of transformers. `context`: longest text, in tokens."""
        config = model.config
        head = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        self.shape = Sizes(
            config.num_hidden_layers, config.hidden_size, config.num_attention_heads, config.num_key_value_heads,
            head, config.intermediate_size, config.vocab_size, config.rms_norm_eps,
        )  # fmt: skip
        self.dtype, self.context, self.device = dtype, context, device
        to = {"device": device, "dtype": dtype}
        inner = model.model
        # Everything is copied: one view would keep the whole file in memory.
        stored = inner.embed_tokens.weight.detach().to(device, copy=True)
        self._embedding = stored if stored.dtype.itemsize <= dtype.itemsize else stored.to(dtype)
        is_tied = model.lm_head.weight is inner.embed_tokens.weight
        self.head = Linear(self._embedding.to(**to) if is_tied else model.lm_head.weight.to(**to, copy=True))
        self.norm = inner.norm.weight.detach().to(**to, copy=True)
        self.layers = [self._layer(block, to) for block in inner.layers]
        self._linear = [[self.head], *(list(layer.parts.values()) for layer in self.layers)]
        with torch.no_grad():
            places = torch.arange(context, device=model.device)[None]
            angles = inner.rotary_emb(torch.zeros(1, 1, dtype=torch.float32, device=model.device), places)
        cos, sin = (table[0].to(**to)[:, None] for table in angles)  # (positions, 1, head)
        half = head // 2
        self.cos, self.sin = cos, torch.cat([-sin[..., :half], sin[..., half:]], dim=-1)

    @staticmethod
    def _layer(block: Any, to: Mapping[str, Any]) -> Layer:
        def fused(names: tuple[str, ...]) -> Linear:
            layers = [block.get_submodule(name) for name in names]
            bias = None if layers[0].bias is None else torch.cat([layer.bias for layer in layers]).to(**to)
            return Linear(torch.cat([layer.weight for layer in layers]).to(**to), bias)

        return Layer(
            {part: fused(names) for part, names in PARTS.items()},
            block.input_layernorm.weight.detach().to(**to, copy=True),
            block.post_attention_layernorm.weight.detach().to(**to, copy=True),
        )

    def pack(self) -> None:
        """To sample: a step of few rows is up to twice as fast."""
        for linear in self._linear:
            changed = [one.pack() for one in linear]
            if any(changed):
                give_back()

    def unpack(self) -> None:
        """To learn. One layer at a time is there twice, and then no longer."""
        for linear in self._linear:
            changed = [one.unpack() for one in linear]
            if any(changed):
                give_back()

    def embedded(self, tokens: Tensor) -> Tensor:
        """(tokens, hidden). The table is kept in the numbers that it is stored in, where they are the narrower ones."""
        return F.embedding(tokens, self._embedding).to(self.dtype)

    def blocks(self, x: Tensor, cos: Tensor, sin: Tensor, project: Project, attend: Attend) -> Tensor:
        """(tokens, hidden) from the embedding to the last norm. `cos`, `sin`: of each token's position."""
        shape = self.shape
        turned = (shape.heads + shape.key_heads) * shape.head
        for i, layer in enumerate(self.layers):
            qkv = turn(project(i, "qkv", self._normed(x, layer.before_attention), None), cos, sin, turned)
            q, k, v = (
                part.view(len(part), -1, shape.head) for part in torch.split_with_sizes(qkv, shape.widths("qkv"), dim=1)
            )  # (tokens, heads, head)
            x = project(i, "o", attend(i, q, k, v), x)
            x = project(i, "down", project(i, "gate_up", self._normed(x, layer.before_feed_forward), None), x)
        return self._normed(x, self.norm)

    def _normed(self, x: Tensor, weight: Tensor) -> Tensor:
        return F.rms_norm(x, (self.shape.hidden,), weight, self.shape.epsilon)


class Rotary(torch.autograd.Function):
    """Rotary positions of the first `turned` columns, queries and keys. The signs of a half turn are in `sin`."""

    @staticmethod
    def forward(ctx: Any, qkv: Tensor, cos: Tensor, sin: Tensor, turned: int) -> Tensor:
        ctx.save_for_backward(cos, sin)
        ctx.turned = turned
        return _turned(qkv, cos, sin, turned)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None]:
        cos, sin = ctx.saved_tensors
        return _turned(gradient.contiguous(), cos, -sin, ctx.turned), None, None, None


def _turned(qkv: Tensor, cos: Tensor, sin: Tensor, turned: int) -> Tensor:
    heads = qkv[:, :turned].view(len(qkv), -1, cos.shape[-1])
    rotated = torch.addcmul(heads * cos, heads.roll(cos.shape[-1] // 2, -1), sin)
    return torch.cat([rotated.view(len(qkv), turned), qkv[:, turned:]], dim=1)


def gated(gate_up: Tensor) -> Tensor:
    """silu(gate) * up, of both in one tensor."""
    gate, up = gate_up.chunk(2, dim=1)
    return F.silu(gate).mul_(up)


def gated_back(gate_up: Tensor, gradient: Tensor) -> Tensor:
    """The gradient by `gate_up`, of that by what `gated` gives."""
    gate, up = gate_up.chunk(2, dim=1)
    by_gate_up = torch.empty_like(gate_up)
    torch.mul(gradient, F.silu(gate), out=by_gate_up[:, gate.shape[1] :])
    by_gate_up[:, : gate.shape[1]] = torch.ops.aten.silu_backward(gradient * up, gate)
    return by_gate_up


turn: Callable[..., Tensor] = Rotary.apply
