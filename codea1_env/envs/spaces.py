"""The space of texts that language models read and write: any string up to a length.

Gymnasium's own `Text` holds non-empty strings over a fixed alphabet and would refuse most programs.

Texts do not fit shared memory, which stores characters by their place in an alphabet: vectors of these environments
need `shared_memory=False` and are refused without it.
"""

from __future__ import annotations

import string
from typing import Any, NoReturn

from gymnasium import spaces
from gymnasium.error import CustomSpaceError
from gymnasium.spaces.utils import flatten_space
from gymnasium.vector.utils import create_shared_memory

_SAMPLE_LENGTH = 64


class FreeText(spaces.Text):
    """Strings of 0 to `max_length` arbitrary characters. Samples are short and printable."""

    def __init__(self, max_length: int, seed: int | None = None) -> None:
        super().__init__(max_length, min_length=0, charset=string.printable, seed=seed)

    def contains(self, x: Any) -> bool:
        return isinstance(x, str) and len(x) <= self.max_length

    def sample(self, mask: None = None, probability: None = None) -> str:  # type: ignore[override]  # no masks here
        """Up to 64 printable ASCII characters."""
        if mask is not None or probability is not None:
            raise ValueError("mask and probability must be None, because FreeText has no alphabet; got one of them")
        length = int(self.np_random.integers(min(self.max_length, _SAMPLE_LENGTH) + 1))
        return "".join(self.np_random.choice(list(string.printable), size=length))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FreeText) and other.max_length == self.max_length

    def __hash__(self) -> int:
        return hash((FreeText, self.max_length))

    def __repr__(self) -> str:
        return f"FreeText({self.max_length})"


@flatten_space.register(FreeText)
def _refuse_flat(space: FreeText) -> NoReturn:
    """A flat text is a code of known characters, and these are arbitrary."""
    raise CustomSpaceError(f"texts must be read as they are, got a flat space asked for of {space}")


@create_shared_memory.register(FreeText)
def _refuse_shared_memory(space: FreeText, n: int = 1, ctx: object = None) -> NoReturn:
    """Gymnasium's own way for texts would hand out other texts than the environments gave, without a word."""
    raise CustomSpaceError(f"vectors of texts must have shared_memory=False, got shared memory asked for {space}")
