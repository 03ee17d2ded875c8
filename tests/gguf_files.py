"""Headers of .gguf files. Not a test module."""

import struct
from collections.abc import Mapping, Sequence
from pathlib import Path


def write_header(file: Path, keys: Mapping[str, str | int | list[str]], tensors: Mapping[str, Sequence[int]]) -> Path:
    """The beginning of such a file: keys with texts, numbers of 4 bytes or lists of texts, and the tensors' sizes."""
    body = b"".join(_text(key) + _value(value) for key, value in keys.items())
    for name, sizes in tensors.items():
        body += _text(name) + struct.pack(f"<I{len(sizes)}QIQ", len(sizes), *sizes, 0, 0)
    file.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(keys)) + body)
    return file


def _value(value: str | int | list[str]) -> bytes:
    if isinstance(value, str):
        return struct.pack("<I", 8) + _text(value)
    if isinstance(value, int):
        return struct.pack("<II", 4, value)
    return struct.pack("<IIQ", 9, 8, len(value)) + b"".join(map(_text, value))


def _text(words: str) -> bytes:
    return struct.pack("<Q", len(words)) + words.encode()
