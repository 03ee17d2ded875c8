"""What a seat is told of the run that it trains in. Plain data: it travels to the process of the seat."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from codea1_env.configuration.presets import Preset


@dataclass(frozen=True, slots=True)
class SeatRun:
    """What a seat needs to train in a run."""

    preset: Preset
    base: Path
    """The model to start from, in Hugging Face format."""
    output: Path
    """Where checkpoints go."""
    seed: int
    resume_from: Path | None = None
    """A checkpoint of this seat, or None to start from the base."""
    outputs: Mapping[str, Path] = field(default_factory=dict)
    """Of all seats of the run, this one's included: no checkpoint goes that another seat still needs."""

    @property
    def seat(self) -> str:
        return self.output.name

    def stream(self, place: int) -> int:
        """A seed for each `place`, a round or part of the run: no two runs share one, none has a million rounds."""
        return self.seed * 1_000_000 + place
