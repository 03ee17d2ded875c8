"""A cache that is bounded by the bytes of what it holds; what was used longest ago goes first.

Does not measure: whoever puts something in says how large it is. Not thread-safe.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Generic, TypeVar

from codea1_env.errors import ConfigurationError

Key = TypeVar("Key")
Value = TypeVar("Value")

ENTRY_BYTES = 512
"""What an entry takes beside the bytes it is said to have: two slots of a dict, the objects around key and value."""


class BoundedCache(Generic[Key, Value]):
    """Values by key, as many as fit."""

    def __init__(self, max_bytes: int) -> None:
        """`max_bytes`: of all entries together; 0 holds nothing."""
        self._max_bytes = max_bytes
        self._entries: OrderedDict[Key, tuple[Value, int]] = OrderedDict()
        self.held_bytes = 0
        """Of all entries together."""

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: Key) -> Value | None:
        """The value, which then counts as just used; None where there is none."""
        if key not in self._entries:
            return None
        self._entries.move_to_end(key)
        return self._entries[key][0]

    def put(self, key: Key, value: Value, size: int) -> None:
        """Hold `value`, whose data and whose key's have `size` bytes; not at all where that alone is too much."""
        size += ENTRY_BYTES
        self.held_bytes -= self._entries.pop(key, (value, 0))[1]
        if size > self._max_bytes:
            return
        self._entries[key] = value, size
        self.held_bytes += size
        while self.held_bytes > self._max_bytes:
            _, (_, freed) = self._entries.popitem(last=False)
            self.held_bytes -= freed


def bytes_of(name: str, megabytes: int) -> int:
    """`megabytes` MiB. Raises ConfigurationError where the option `name` is no size."""
    if type(megabytes) is not int or megabytes < 0:
        raise ConfigurationError(f"{name} must be a whole number of MiB, 0 for no cache, got {megabytes!r}")
    return megabytes << 20
