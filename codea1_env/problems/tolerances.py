"""What values may be off by and be right, for each type: one object, which travels with a problem to every comparison.

    tolerance: 1e-6                                            relative and absolute, of floats
    compare: {float: {relative: 1e-9, absolute: 1e-6}}         each by itself; what is left out is 0

Does not compare anything: see `judging/equality.py`.
"""

from __future__ import annotations

import builtins
import functools
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from codea1_env.checks import is_number, require
from codea1_env.errors import Codea1Error, ConfigurationError


@dataclass(frozen=True, slots=True)
class Tolerance:
    """Of one type. Two numbers are near where they differ by no more than one of the two allows."""

    relative: float = 0.0
    """Share of the larger of two numbers, in [0, 1)."""
    absolute: float = 0.0
    """In [0, 1)."""

    def __post_init__(self) -> None:
        for name, value in (("relative", self.relative), ("absolute", self.absolute)):
            require(is_number(value) and 0 <= value < 1, name, "be in [0, 1)", value)

    @property
    def largest(self) -> float:
        return max(self.relative, self.absolute)

    def or_laxer(self, other: Tolerance) -> Tolerance:
        """What either of them allows."""
        return Tolerance(max(self.relative, other.relative), max(self.absolute, other.absolute))

    @classmethod
    def of(cls, given: object, name: str, error: type[Codea1Error]) -> Tolerance:
        """From a number, which is both, or a mapping. Raises `error`."""
        if isinstance(given, cls):
            return given
        names = [each.name for each in fields(cls)]
        if not isinstance(given, Mapping):
            is_share = is_number(given) and 0 <= given < 1  # type: ignore[operator]  # a number here
            require(is_share, name, f"be in [0, 1), or a mapping of {' and '.join(names)}", given, error)
            return cls(given, given)  # type: ignore[arg-type]  # likewise
        require(set(given) <= set(names), name, f"be a mapping of {' and '.join(names)}", given, error)
        try:
            return cls(**given)
        except ConfigurationError as fault:
            raise error(f"{name}.{fault}") from None


@dataclass(frozen=True, slots=True, repr=False)
class Tolerances:
    """By the names of types. One that is not here is compared exactly."""

    float: Tolerance = Tolerance()
    """Of a float with a float or an int, of the parts of a complex number, and of printed numbers with a point or an
    exponent; not of members of sets and keys of dicts."""

    def __bool__(self) -> bool:
        """Whether anything may be off at all."""
        return self != EXACT

    def __repr__(self) -> str:
        return f"Tolerances({self.plain!r})"

    @property
    def plain(self) -> builtins.float | dict[str, Any]:
        """As files have it: one number where that says it all."""
        both = self.float.relative
        return both if self == within(both) else asdict(self)

    def or_laxer(self, other: Tolerances) -> Tolerances:
        """What either of them allows."""
        return self if other is self else Tolerances(self.float.or_laxer(other.float))

    @classmethod
    def of(cls, given: object, name: str = "tolerance", error: type[Codea1Error] = ConfigurationError) -> Tolerances:
        """From what `plain` gives, with names left out where they are 0. Raises `error` (must, got) naming `name`."""
        if isinstance(given, cls):
            return given
        if isinstance(given, Mapping):
            kinds = [each.name for each in fields(cls)]
            require(set(given) <= set(kinds), name, f"be a mapping of types among {kinds}", given, error)
            return cls(**{kind: Tolerance.of(value, f"{name}.{kind}", error) for kind, value in given.items()})
        is_share = is_number(given) and 0 <= given < 1  # type: ignore[operator]  # a number here
        must = "be in [0, 1), or {float: {relative: ..., absolute: ...}}"
        require(is_share, name, must, given, error)
        return within(given)


@functools.lru_cache(maxsize=256, typed=True)  # for a whole data set, one object
def within(number: float) -> Tolerances:
    """Of floats, relative and absolute."""
    return Tolerances(Tolerance(number, number))


EXACT = within(0.0)
CLOSE = within(1e-6)
"""Relative and absolute: what `close` takes for one number, and `tokens` where nothing else is said."""
