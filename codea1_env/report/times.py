"""Where a round's time goes, by seat and by part. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from codea1_env.report.runs_read import RunRead

PARTS = ("generating", "learning", "waiting", "parsing", "judging", "rewarding", "other")
"""A seat has the first three, the arena the next three; `other`: of the arena's time, what they leave."""


@dataclass(frozen=True, slots=True)
class TimeSplit:
    """One bar."""

    who: str
    seconds: Mapping[str, float]
    """Median over rounds, by part."""

    @property
    def total(self) -> float:
        return sum(self.seconds.values())


def time_splits(run: RunRead) -> Iterator[TimeSplit]:
    """A split of each seat that logged one, and the arena's."""
    for seat in run.seats():
        seconds = _medians(run, "seat", seat, PARTS[:3])
        if seconds:
            yield TimeSplit(seat, seconds)
    arena = _medians(run, "round", "", PARTS[3:6])
    scoring = _medians(run, "round", "", ("scoring",)).get("scoring")
    if scoring is not None:
        left = scoring - sum(arena.values())
        yield TimeSplit("arena", arena | ({"other": left} if left > 0 else {}))
    elif arena:
        yield TimeSplit("arena", arena)


def _medians(run: RunRead, kind: str, seat: str, parts: tuple[str, ...]) -> dict[str, float]:
    seconds = {part: [value for _, value in run.points(kind, seat, f"seconds_{part}")] for part in parts}
    return {part: max(0.0, statistics.median(values)) for part, values in seconds.items() if values}
