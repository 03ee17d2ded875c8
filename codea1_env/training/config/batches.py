"""How many rows a seat samples and learns from, and how an optimizer step of them is divided over ranks and passes.

Plain arithmetic, shared by the trainers and the plan. Does not check: `Preset` refuses what does not divide.
"""

from __future__ import annotations

from dataclasses import dataclass

from codea1_env.training.config.presets import Preset


@dataclass(frozen=True, slots=True)
class SeatRows:
    """Rows of one seat; a row is a prompt with one response."""

    sampled: int
    """Responses sampled in a round, by all ranks."""
    learnt: int
    """The rows of a round that are learnt from, by all ranks."""
    group: int
    """Number of rows whose advantages are normalised together."""
    updates: int
    """Optimizer steps a round."""
    ranks: int
    per_device: int
    """Rows of one forward and backward pass on one rank."""
    accumulation: int
    """Passes of a rank in an optimizer step."""


def seat_rows(preset: Preset, seat: str) -> SeatRows:
    """The rows of a seat: coder, tester, or player, which is the one model of self-play and has groups of several
    sizes."""
    shape = preset.round
    programs = shape.questions * shape.programs
    suites = shape.questions * preset.options.put_to_tester(shape.programs, shape.attacked) * shape.suites
    attacked = shape.questions * shape.attacked * shape.suites
    if seat == "coder":
        return _divided(preset, seat, programs, programs, shape.programs)
    if seat == "tester":
        return _divided(preset, seat, suites, attacked, shape.suites)
    return _divided(preset, seat, programs + suites, programs + attacked, programs + attacked)


def _divided(preset: Preset, seat: str, sampled: int, learnt: int, group: int) -> SeatRows:
    updates, ranks = preset.round.updates, preset.placement.of(seat).ranks
    step = learnt // updates // ranks
    per_device = preset.memory.rows_per_device(seat) or step
    return SeatRows(sampled, learnt, group, updates, ranks, per_device, step // per_device)
