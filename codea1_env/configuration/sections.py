"""Sections of a preset: frozen dataclasses whose fields carry kind and range, checked when one is made.

Does not know any preset, nor what a field means.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from codea1_env.checks import is_choice, require
from codea1_env.errors import ConfigurationError, about


def whole(default: int, low: int, high: int) -> Any:
    """A field that is a whole number in [low, high]."""
    return field(default=default, metadata={"kind": int, "low": low, "high": high})


def real(default: float, low: float, high: float) -> Any:
    """A field that is a number in [low, high]."""
    return field(default=default, metadata={"kind": float, "low": low, "high": high})


def switch() -> Any:
    """A field that is true or false, false without a word."""
    return field(default=False, metadata={"kind": bool})


def text(default: str | None = None, low: int = 0) -> Any:
    """A field that is text of at least `low` characters; without a default it must be given, and not empty."""
    if default is None:
        return field(metadata={"kind": str, "low": 1})
    return field(default=default, metadata={"kind": str, "low": low})


def choice(default: str, choices: Sequence[str]) -> Any:
    """A field that is one of some texts."""
    return field(default=default, metadata={"kind": str, "choices": tuple(choices)})


class Section:
    """Checks every field of a subclass against the kind and range in its metadata, if it has any."""

    __slots__ = ()

    def __post_init__(self) -> None:
        for each in dataclasses.fields(self):  # type: ignore[arg-type]  # every subclass is a dataclass
            value = getattr(self, each.name)
            must = requirement(value, **each.metadata) if each.metadata else ""
            require(not must, each.name, f"be {must}", value)


def requirement(value: object, kind: type, low: float = 0, high: float = 0, choices: Sequence[str] = ()) -> str:
    """What the value should have been; empty if the value is right."""
    if choices:
        return "" if is_choice(value, choices) else f"one of {', '.join(choices)}"
    if kind is bool:
        return "" if isinstance(value, bool) else "true or false"
    if kind is str:
        return "" if isinstance(value, str) and len(value) >= low else "text" if low == 0 else "text that is not empty"
    numeric = isinstance(value, int | float) and not isinstance(value, bool)
    if not numeric or (kind is int and not isinstance(value, int)) or not low <= value <= high:  # type: ignore[operator]  # a number here
        is_exponent = isinstance(value, str) and re.fullmatch(r"[-+]?\d+[eE][-+]?\d+", value) is not None
        hint = " (YAML reads 1e-6 as text: write 1.0e-6)" if is_exponent else ""
        return f"{'a whole number' if kind is int else 'a number'} in [{low}, {high}]{hint}"
    return ""


TRACKERS = ("tensorboard", "wandb", "trackio")
"""What `report_to` may name."""


def check_trackers(names: Sequence[str], where: str) -> None:
    """Raise ConfigurationError unless each name is one of TRACKERS and none occurs twice."""
    if not set(names) <= set(TRACKERS) or len(set(names)) < len(names):
        none = ", or none alone" if where.startswith("--") else ""
        raise ConfigurationError(
            f"{where} must be different names among {', '.join(TRACKERS)}{none}, got {list(names)}"
        )


def changed(current: Any, overrides: object, kinds: Sequence[type[Any]], where: str) -> Any:
    """The section `current` with the fields that `overrides` names replaced.

    `kinds` are the classes that the section may have. Overrides that name all fields that another kind requires (those
    that it is `TOLD_BY`, or else all of its fields, if it requires none) make a section of that kind. Raises
    ConfigurationError naming `where`, the key, must and got.
    """
    if not isinstance(overrides, Mapping):
        names = " or ".join(str(sorted(_names(kind))) for kind in kinds)
        raise ConfigurationError(f"{where} must be a mapping with keys among {names}, got {overrides!r}")
    values = {str(key): value for key, value in overrides.items()}
    kind: type[Any] = next(
        (kind for kind in kinds if kind is not type(current) and _required(kind) <= set(values)), type(current)
    )
    unknown = sorted(set(values) - _names(kind))
    if unknown:
        raise ConfigurationError(f"{where}: a key must be one of {sorted(_names(kind))}, got {unknown[0]!r}")
    for key in values.keys() & _names(type(current)) if kind is type(current) else ():
        part = getattr(current, key)
        if dataclasses.is_dataclass(part) and not hasattr(part, "of"):  # which reads other forms than mappings, too
            values[key] = changed(part, values[key], (type(part),), f"{where}: {key}")
    with about(where):
        return dataclasses.replace(current, **values) if kind is type(current) else kind(**values)


def _names(kind: type[Any]) -> set[str]:
    return {each.name for each in dataclasses.fields(kind)}


def _required(kind: type[Any]) -> set[str]:
    """Names of the fields that must be given; where none must, of those that tell the kind, or of all."""
    required = {
        each.name
        for each in dataclasses.fields(kind)
        if each.default is dataclasses.MISSING and each.default_factory is dataclasses.MISSING
    }
    return required or set(getattr(kind, "TOLD_BY", ())) or _names(kind)
