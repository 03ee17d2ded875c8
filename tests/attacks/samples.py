"""A part of a corpus for the quick suite; `make test-attacks` takes all of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar


class _OfAKind(Protocol):
    @property
    def kind(self) -> str: ...


Each = TypeVar("Each", bound=_OfAKind)


def some_of_each_kind(corpus: Sequence[Each], step: int = 4) -> list[Each]:
    """The first of each kind, and of the others one in `step`."""
    kinds: dict[str, list[Each]] = {}
    for each in corpus:
        kinds.setdefault(each.kind, []).append(each)
    return [each for of_one_kind in kinds.values() for each in of_one_kind[::step]]
