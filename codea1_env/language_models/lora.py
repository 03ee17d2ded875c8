"""Low-rank adapters beside a frozen base, never merged into it; on disk in the format of PEFT.

The layers of a block that are computed as one (`base.PARTS`) have their adapters in one, too: the rows of A stand under
each other, and B is block diagonal. Off its blocks B and its gradient stay zero.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from codea1_env.errors import ConfigurationError
from codea1_env.extras import extra
from codea1_env.language_models.base import PARTS, Base, Sizes, gated
from codea1_env.language_models.directories import ADAPTER

with extra("train", "language models on CPUs need"):
    import torch
    import torch.nn.functional as F
    from safetensors import SafetensorError
    from safetensors.torch import load_file, save_file
    from torch import Tensor

WEIGHTS, CONFIG = "adapter_model.safetensors", ADAPTER
_NOT_PLAIN = (
    "use_rslora", "use_dora", "use_qalora", "use_bdlora", "alpha_pattern", "rank_pattern", "lora_bias",
    "layer_replication", "alora_invocation_tokens", "arrow_config", "kasa_config", "monteclora_config", "velora_config",
)  # fmt: skip
"""Entries of PEFT's configuration under which an adapter adds something else than alpha / r times B A."""
_BESIDE_THE_BASE = (None, True, False, "gaussian", "eva", "orthogonal", "mica")
"""What `init_lora_weights` may be: the others change the base, too, when the adapter is loaded."""
Pair = tuple[Tensor, Tensor]
"""A, (rank of all, inputs), and B, (outputs, rank of all)."""


class Adapter:
    """Of all linear layers, in float32. Scaled by alpha / rank. A new one changes nothing: its B is zero."""

    def __init__(
        self, shape: Sizes, rank: int, alpha: float, seed: int = 0, device: torch.device | str = "cpu"
    ) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.shape, self.rank, self.alpha = shape, rank, alpha
        self.pairs: list[dict[str, Pair]] = []
        """By layer and part: what is trained."""
        self.blocks = {part: _blocks(shape.widths(part), rank).to(device) for part in PARTS}
        """1 where B may be other than zero."""
        for _ in range(shape.layers):
            pairs = {}
            for part in PARTS:
                inputs, rows = shape.inputs(part), rank * len(PARTS[part])
                a = (torch.rand(rows, inputs, generator=generator) * 2 - 1) / inputs**0.5  # as PEFT's
                pairs[part] = a.to(device).requires_grad_(), torch.zeros_like(self.blocks[part]).requires_grad_()
            self.pairs.append(pairs)

    @property
    def scale(self) -> float:
        return self.alpha / self.rank

    @property
    def parameters(self) -> list[Tensor]:
        return [tensor for pairs in self.pairs for pair in pairs.values() for tensor in pair]

    @torch.no_grad()
    def ready(self, dtype: torch.dtype) -> list[dict[str, Pair]]:
        """To compute with, without a gradient: the scale is in B."""
        return [
            {part: (a.to(dtype), (b * self.scale).to(dtype)) for part, (a, b) in pairs.items()} for pairs in self.pairs
        ]

    def named(self) -> Iterator[tuple[str, Tensor]]:
        """The tensors under PEFT's names; views of what is trained."""
        for i, pairs in enumerate(self.pairs):
            for part, (a, b) in pairs.items():
                start = 0
                for k, (name, width) in enumerate(zip(PARTS[part], self.shape.widths(part), strict=True)):
                    rank, key = slice(k * self.rank, (k + 1) * self.rank), f"base_model.model.model.layers.{i}.{name}"
                    yield f"{key}.lora_A.weight", a[rank]
                    yield f"{key}.lora_B.weight", b[start : start + width, rank]
                    start += width

    @torch.no_grad()
    def save(self, directory: Path, base: str, dtype: torch.dtype = torch.float32) -> None:
        """`base`: name of the model that it lies beside, for whoever loads it."""
        directory.mkdir(parents=True, exist_ok=True)
        tensors = {name: tensor.to(dtype).contiguous().clone() for name, tensor in self.named()}
        save_file(tensors, directory / WEIGHTS, metadata={"format": "pt"})
        config = {
            "peft_type": "LORA", "task_type": "CAUSAL_LM", "base_model_name_or_path": base, "r": self.rank,
            "lora_alpha": self.alpha, "lora_dropout": 0.0, "bias": "none", "inference_mode": True,
            "target_modules": sorted(name.rpartition(".")[2] for names in PARTS.values() for name in names),
        }  # fmt: skip
        (directory / CONFIG).write_text(json.dumps(config, indent=1) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, directory: Path, shape: Sizes, device: torch.device | str = "cpu") -> Adapter:
        """Raises ConfigurationError for one that is not of all linear layers of such a model, or not plain LoRA."""
        try:
            config: dict[str, Any] = json.loads((directory / CONFIG).read_text(encoding="utf-8"))
            saved = load_file(directory / WEIGHTS)
            rank, alpha = int(config["r"]), float(config["lora_alpha"])
        except (OSError, ValueError, LookupError, TypeError, SafetensorError) as error:
            raise ConfigurationError(
                f"an adapter must hold {CONFIG}, with r and lora_alpha, and {WEIGHTS}, got {directory}: {error!r}"
            ) from None
        changed = [name for name in _NOT_PLAIN if config.get(name)]
        if config.get("init_lora_weights") not in _BESIDE_THE_BASE:
            changed.append(f"init_lora_weights {config['init_lora_weights']!r}")
        if changed or config.get("bias", "none") != "none":
            raise ConfigurationError(
                f"an adapter must be plain LoRA with one scale and no bias, got {', '.join(changed) or 'bias'} in "
                f"{directory / CONFIG}"
            )
        if rank < 1:
            raise ConfigurationError(f"an adapter must have an r of at least 1, got {rank} in {directory / CONFIG}")
        adapter = cls(shape, rank, alpha, device=device)
        adapter._take(saved, directory)
        return adapter

    @torch.no_grad()
    def _take(self, saved: Mapping[str, Tensor], directory: Path) -> None:
        named = dict(self.named())
        if {name: tuple(tensor.shape) for name, tensor in saved.items()} != {
            name: tuple(tensor.shape) for name, tensor in named.items()
        }:
            raise ConfigurationError(
                f"an adapter must have rank {self.rank} on all linear layers of its base and on nothing else, "
                f"got {len(saved)} tensors in {directory}"
            )
        for name, tensor in named.items():
            tensor.copy_(saved[name])


def digest_of(directory: Path) -> str:
    """Of all that decides what a saved adapter adds: its tensors and its scale. In hexadecimal."""
    config = json.loads((directory / CONFIG).read_text(encoding="utf-8"))
    digest = hashlib.blake2b((directory / WEIGHTS).read_bytes(), digest_size=8)
    digest.update(f"{config['r']} {config['lora_alpha']}".encode())
    return digest.hexdigest()


class Beside:
    """Projects with adapters beside a base, without gradients: row i with adapter `rows[i]`, -1 for none."""

    def __init__(self, base: Base, adapters: Sequence[list[dict[str, Pair]]]) -> None:
        """`adapters`: those that are `ready`."""
        self._base = base
        self._ranks = [adapter[0]["o"][0].shape[0] for adapter in adapters]
        self._pairs = [
            {part: _joined([adapter[i][part] for adapter in adapters]) for part in PARTS} if adapters else {}
            for i in range(base.shape.layers)
        ]
        self._masks: dict[str, Tensor] = {}

    @property
    def is_mixed(self) -> bool:
        """Whether the rows to come have different adapters."""
        return bool(self._masks)

    def use(self, rows: Sequence[int]) -> None:
        """Which adapter each of the rows to come has."""
        self._masks = {}
        if set(rows) == {0} and len(self._ranks) == 1:
            return  # all of them the only one
        device = self._base.device
        chosen = torch.tensor(rows, device=device)
        for part in PARTS if self._ranks else ():
            owners = [k for k, rank in enumerate(self._ranks) for _ in range(rank * len(PARTS[part]))]
            self._masks[part] = (chosen[:, None] == torch.tensor(owners, device=device)).to(self._base.dtype)

    def __call__(self, layer: int, part: str, x: Tensor, add: Tensor | None) -> Tensor:
        linear = self._base.layers[layer].parts[part]
        if part == "down":
            x = gated(x)
        if not self._ranks:
            return linear(x, add)
        a, b = self._pairs[layer][part]
        low = F.linear(x, a)  # (rows, rank of all)
        if part in self._masks:
            low = low * self._masks[part]
        return linear(x, F.linear(low, b) if add is None else torch.addmm(add, low, b.t()))


def _blocks(widths: Sequence[int], rank: int) -> Tensor:
    blocks = torch.zeros(sum(widths), rank * len(widths))
    for k, rows in enumerate(blocks.split_with_sizes(list(widths))):
        rows[:, k * rank : (k + 1) * rank] = 1.0
    return blocks


def _joined(pairs: Sequence[Pair]) -> Pair:
    if len(pairs) == 1:
        return pairs[0]
    return torch.cat([a for a, _ in pairs]), torch.cat([b for _, b in pairs], dim=1)
