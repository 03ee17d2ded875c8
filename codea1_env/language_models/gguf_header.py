"""What a .gguf file says of its model before the weights begin: names and values, and which tensors there are.

Read without the package `gguf`. Of a list only its length is kept.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO

from codea1_env.errors import ConfigurationError

_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
"""How values are packed, by their kind."""
_TEXT, _LIST = 8, 9
MOST_DIMENSIONS = 4
"""Of a tensor, in this format."""


@dataclass(frozen=True, slots=True)
class GgufHeader:
    """Of one file."""

    values: Mapping[str, Any]
    tensors: frozenset[str]

    @property
    def family(self) -> Any:
        """The architecture; the names of its sizes begin with it."""
        return self.values.get("general.architecture")

    def size(self, name: str, default: int | None = None) -> int:
        """A number of the architecture. Raises KeyError where there is none."""
        value = self.values.get(f"{self.family}.{name}", default)
        if not isinstance(value, int):
            raise KeyError(f"{self.family}.{name}")
        return value


@lru_cache(maxsize=4)
def read_gguf_header(file: Path, what: str) -> GgufHeader:
    """`what`: how the user gave the file. Raises ConfigurationError, in one line."""
    try:
        with file.open("rb") as opened:
            if opened.read(4) != b"GGUF":
                is_named = file.suffix == ".gguf"
                why = "which does not begin like one; fetch it again" if is_named else "which is neither"
                raise ConfigurationError(f"{what} must be a directory or a .gguf file, got {file}, {why}")
            _, tensors, count = _unpacked(opened, "IQQ")
            values = {_text(opened): _value(opened, *_unpacked(opened, "I")) for _ in range(count)}
            return GgufHeader(values, frozenset(_tensor(opened) for _ in range(tensors)))
    except ConfigurationError:
        raise
    except (OSError, struct.error, ValueError, KeyError, OverflowError, MemoryError, RecursionError) as error:
        raise ConfigurationError(f"{what} must have a whole header, got {file}: {error!r:.200}") from None


def _unpacked(opened: BinaryIO, kinds: str) -> tuple[Any, ...]:
    layout = struct.Struct(f"<{kinds}")
    return layout.unpack(opened.read(layout.size))


def _text(opened: BinaryIO) -> str:
    (length,) = _unpacked(opened, "Q")
    words = opened.read(length)
    if len(words) < length:
        raise ValueError("it ends within a text")
    return words.decode("utf-8", "replace")


def _value(opened: BinaryIO, kind: int) -> Any:
    if kind == _TEXT:
        return _text(opened)
    if kind != _LIST:
        return _unpacked(opened, _NUMBERS[kind])[0]
    of, length = _unpacked(opened, "IQ")
    if of in _NUMBERS:
        opened.seek(length * struct.calcsize(_NUMBERS[of]), 1)
    else:
        for _ in range(length):
            _value(opened, of)
    return length


def _tensor(opened: BinaryIO) -> str:
    """The name; sizes, kind and place are passed over."""
    name = _text(opened)
    (dimensions,) = _unpacked(opened, "I")
    _unpacked(opened, "Q" * min(dimensions, MOST_DIMENSIONS) + "IQ")
    return name
