"""A time limit in multiples of what a problem's reference takes: max(at_least, times_reference * its slowest call).

    time_limit: {times_reference: 5, at_least: 1}

The rule is that of EvalPlus (its docs/execution.md: a factor of 4, and 4 s at least). Does not run anything: see
`judging/problems/limits.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from codea1_env.checks import is_number, require
from codea1_env.errors import Codea1Error, ConfigurationError
from codea1_env.sandbox.protocol import TIME_LIMIT_S

LONGEST_S = 3600.0
"""CPU seconds of a call: no time limit is longer."""


@dataclass(frozen=True, slots=True)
class TimeLimit:
    """How a time limit follows from the reference's time."""

    times_reference: float
    """How many times as long as the reference in its slowest call, in [1, 1000]."""
    at_least: float = TIME_LIMIT_S
    """CPU seconds that a call, and loading, have in any case, in (0, 3600]."""

    def __post_init__(self) -> None:
        times, least = self.times_reference, self.at_least
        require(is_number(times) and 1 <= times <= 1000, "times_reference", "be in [1, 1000]", times)
        require(is_number(least) and 0 < least <= LONGEST_S, "at_least", f"be in (0, {LONGEST_S:g}] s", least)

    @property
    def plain(self) -> dict[str, Any]:
        """As files have it."""
        return asdict(self)

    def seconds(self, reference_s: float) -> float:
        """The limit, where the reference's slowest call takes `reference_s` CPU seconds."""
        return min(max(self.at_least, self.times_reference * reference_s), LONGEST_S)

    @classmethod
    def of(cls, given: object, name: str = "time_limit", error: type[Codea1Error] = ConfigurationError) -> TimeLimit:
        """From what `plain` gives; `at_least` may be left out. Raises `error` (must, got) naming `name`."""
        if isinstance(given, cls):
            return given
        is_named = isinstance(given, Mapping) and {"times_reference"} <= set(given) <= set(cls.__slots__)
        require(is_named, name, "be {times_reference: ..., at_least: ...}", given, error)
        try:
            return cls(**given)  # type: ignore[arg-type]  # a mapping here
        except ConfigurationError as fault:
            raise error(f"{name}.{fault}") from None
