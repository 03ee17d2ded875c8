"""How much the engine for small models takes at a time, by device. Loads nothing, so that plans can read it."""

from __future__ import annotations

SLOTS = {"cpu": 64, "cuda": 256}
"""Rows that are sampled at a time; on a CPU twice as many in bfloat16, which take as much memory."""
CACHED = 400_000
"""Tokens whose keys and values are kept at most: where prompts are very long, fewer rows grow at a time."""
TILE = {"cpu": 16, "cuda": 64}
"""Rows that a batch is filled up to a multiple of: what matrix units take at a time; on a GPU also so that few forms
of a step are recorded."""
SEEN = {"cpu": 1, "cuda": 128}
"""Positions that a step looks at are filled up to a multiple of it."""
ROOM = 64
"""Positions that the room for keys and values is filled up to a multiple of."""
PACK_TOKENS = {"cpu": 1024, "cuda": 2048}
"""Tokens of one pass of the learner: 1,024 take under 2 GB beside a model of half a thousand million weights. A longer
group takes several passes."""
CHUNK = {"cpu": 128, "cuda": 1024}
"""Tokens whose logits the learner holds at a time."""


def default_slots(device: str, itemsize: int) -> int:
    """Rows that are sampled at a time unless somebody says otherwise, in numbers of so many bytes."""
    return SLOTS[device] * (2 if device == "cpu" and itemsize < 4 else 1)


def slots_of(device: str, slots: int, rows: int, longest: int) -> int:
    """Rows that are sampled at a time, of so many and with `longest` tokens each at most."""
    return min(slots, rows, max(TILE[device], CACHED // max(longest, 1)))


def up(count: int, to: int) -> int:
    """The next multiple of `to`."""
    return -(-count // to) * to
