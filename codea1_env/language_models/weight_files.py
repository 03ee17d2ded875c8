"""Whether the files of weights in a directory are whole, told from how they begin: nothing is loaded.

Knows safetensors; of other formats only that they are there. Does not know which weights a model needs.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from codea1_env.errors import ConfigurationError

WHOLE, INDEX = "model.safetensors", "model.safetensors.index.json"
"""The one file of a model, or what names its files."""
OTHERS = ("pytorch_model.bin", "pytorch_model.bin.index.json")
LONGEST_HEADER = 100 << 20
"""Bytes; safetensors reads no longer one."""


def has_weights(source: Path) -> bool:
    """Whether a directory has a configuration and weights of a whole model, as it seems from the files' names."""
    return (source / "config.json").is_file() and any((source / name).is_file() for name in (WHOLE, INDEX, *OTHERS))


def require_weights(source: Path, config: Mapping[str, Any], what: str, *, is_plan: bool = False) -> None:
    """Raise ConfigurationError, in one line, where they are not there or broken. `config`: the model's config.json.
    `what`: how the user gave the model. `is_plan`: they may come later."""
    named = config.get("transformers_weights") or WHOLE
    if (source / str(named)).is_file():
        files = [source / str(named)]
    elif (source / INDEX).is_file():
        files = _indexed(source / INDEX, what)
    elif is_plan or any((source / name).is_file() for name in OTHERS):
        return
    else:
        raise ConfigurationError(f"{what} must hold its weights, {named} or {INDEX}, got neither in {source}")
    for file in files:
        if file.suffix == ".safetensors":
            _require_whole(file, what)


def _indexed(index: Path, what: str) -> list[Path]:
    try:
        names = sorted(set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()))
        return [index.parent / name for name in names]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigurationError(f"{what} must have an index of its weights, got {index}: {error!r:.200}") from None


def _require_whole(file: Path, what: str) -> None:
    """A length of 8 bytes, a header of that length in JSON, and as many bytes of numbers as it says."""
    try:
        size = file.stat().st_size
        with file.open("rb") as opened:
            (length,) = struct.unpack("<Q", opened.read(8))
            header: Any = json.loads(opened.read(min(length, size, LONGEST_HEADER)))
        end = max((tensor["data_offsets"][1] for name, tensor in header.items() if name != "__metadata__"), default=0)
    except (OSError, struct.error, ValueError, LookupError, TypeError, AttributeError) as error:
        why = getattr(error, "strerror", None) or "its header cannot be read"
        raise ConfigurationError(f"{what} must have whole files of weights, got {file}: {why}") from None
    if size != 8 + length + end:
        raise ConfigurationError(
            f"{what} must have whole files of weights, got {file} of {size} bytes, whose header says {8 + length + end}"
        )
