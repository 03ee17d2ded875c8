"""What a value must be, checked and said one way: `NAME must BE, got VALUE`.

Does not know what a value is for: the caller names it, and the error that is raised.
"""

from __future__ import annotations

import json
import math
import numbers
import os
from collections.abc import Iterable, Sequence
from typing import Any, TypeGuard

from codea1_env.errors import Codea1Error, ConfigurationError

_SHOWN = 200
"""Characters of a wrong value that an error shows."""


def require(condition: bool, name: str, must: str, got: object, error: type[Codea1Error] = ConfigurationError) -> None:
    """Raise `error` unless the condition holds. `must`: what comes after the word, e.g. `be in [0, 1]`."""
    if not condition:
        shown = str(got) if isinstance(got, os.PathLike) else repr(got)
        raise error(f"{name} must {must}, got {shown if len(shown) < _SHOWN else shown[:_SHOWN] + '...'}")


def is_choice(value: object, choices: Sequence[str]) -> bool:
    """Whether the value is one of these texts. Of an array, `in` alone would ask each element."""
    return isinstance(value, str) and value in choices


def require_choice(name: str, value: object, choices: Sequence[str]) -> None:
    """Raise ConfigurationError unless the value is one of these texts, two at least."""
    listed = f"{', '.join(map(repr, choices[:-1]))} or {choices[-1]!r}"
    require(is_choice(value, choices), name, f"be {listed}", value)


def require_whole(name: str, value: object, least: int = 1) -> None:
    """Raise ConfigurationError unless the value is an int (no bool) of at least `least`."""
    kind = "" if type(value) is int else "an int of "
    require(type(value) is int and value >= least, name, f"be {kind}at least {least}", value)


def require_bool(name: str, value: object) -> None:
    """Raise ConfigurationError unless the value is True or False."""
    require(type(value) is bool, name, "be True or False", value)


def json_object(text: str | bytes, name: str, error: type[Codea1Error]) -> dict[str, Any]:
    """The JSON object that the text is. Raises `error` if it is none."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as fault:
        raise error(f"{name} must be a JSON object, got unreadable JSON: {fault}") from None
    require(isinstance(value, dict), name, "be a JSON object", value, error)
    return dict(value)


def is_several(value: object) -> TypeGuard[Iterable[Any]]:
    """Whether the value can be gone through: no text, and no array without a dimension, which only seems iterable."""
    return isinstance(value, Iterable) and not isinstance(value, str | bytes) and getattr(value, "ndim", 1) != 0


def plain_number(value: object) -> Any:
    """A finite real number of another kind (numpy's, a Fraction) as a float; any other value as it is."""
    try:
        is_other = isinstance(value, numbers.Real) and not isinstance(value, int | float)
        return float(value) if is_other else value  # type: ignore[arg-type]  # a Real, then
    except OverflowError:
        return value


def is_number(value: object) -> bool:
    """Whether the value is a finite float, or an int that a float can hold, and no bool."""
    try:
        return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:
        return False
