"""Which models a recipe has, how many rows each samples and learns from, and how ranks and passes divide these.

Plain data and arithmetic, shared by the trainers and the plan. Does not check: `Preset` refuses what does not divide.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from codea1_env.configuration.placement import SEATS, role_of
from codea1_env.configuration.presets import Preset
from codea1_env.errors import ConfigurationError

CODE_A1 = "code_a1"
"""The recipe of agents/train_grpo.py; each baseline has a name of its own."""


@dataclass(frozen=True, slots=True)
class Roles:
    """The part that models have in a recipe's rounds."""

    plays: tuple[str, ...] = SEATS
    """Models that answer: coder, tester, or player, which is the one model of self-play."""
    learns: tuple[str, ...] = SEATS
    has_book: bool = True
    """Whether tests come back from a Mistake Book."""
    needs_golden: bool = False
    """Whether programs are paid by golden tests, which every training problem must have then."""
    told: str = "both seats learn"
    """What the plan says of it."""

    @property
    def seats(self) -> tuple[str, ...]:
        """Models that answer or learn in a round."""
        return tuple(dict.fromkeys((*self.plays, *self.learns)))

    @property
    def has_suites(self) -> bool:
        """Whether suites are written in every round."""
        return self.plays == ("player",) or len(self.plays) > 1


ROLES = {
    CODE_A1: Roles(),
    "frozen": Roles(learns=("coder",), told="the coder learns, the tester stays as it is"),
    "self-play": Roles(("player",), ("player",), told="one model in both seats learns"),
    "golden": Roles(("coder",), ("coder",), False, True, "the coder learns from golden tests"),
    "static": Roles(("coder",), ("coder",), has_book=False, told="the coder learns from tests written once, before"),
    "expert": Roles(("coder",), ("coder",), False, True, "the coder learns from its programs that pass"),
    "sft": Roles((), ("tester",), has_book=False, told="the tester learns from suites written once, before"),
    "base": Roles((), (), has_book=False, told="no seat learns, and both are measured"),
}


def roles_of(recipe: str) -> Roles:
    """Of a recipe, or of one's own that says whose roles it has: `NAME:LIKE`. Raises ConfigurationError."""
    own, _, like = recipe.partition(":")
    if (like or own) not in ROLES:
        raise ConfigurationError(
            f"a recipe must be one of {', '.join(ROLES)}, got {recipe!r}; for one of your own, say whose roles it has: "
            f"parse_arguments(__doc__, recipe={own!r}, like={CODE_A1!r})"
        )
    return ROLES[like or own]


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


def rows_of(preset: Preset, roles: Roles) -> dict[str, SeatRows]:
    """Of each model that answers or learns in a round, in that order."""
    rows = {}
    for seat in roles.seats:
        rows[seat] = seat_rows(preset, seat)
        if seat not in roles.plays:
            rows[seat] = dataclasses.replace(rows[seat], sampled=0)
        if seat not in roles.learns:
            rows[seat] = dataclasses.replace(rows[seat], learnt=0, accumulation=0)
    return rows


def seat_rows(preset: Preset, seat: str) -> SeatRows:
    """The rows of coder, tester, or player, which is self-play's one model and has groups of several sizes."""
    shape = preset.round
    programs = shape.questions * shape.programs
    suites = shape.questions * preset.options.put_to_tester(shape.programs, shape.attacked) * shape.suites
    attacked = shape.questions * shape.attacked * shape.suites
    if seat == "coder":
        return _divided(preset, seat, programs, programs, shape.programs)
    if role_of(seat) == "tester":
        return _divided(preset, seat, suites, attacked, shape.suites)
    return _divided(preset, seat, programs + suites, programs + attacked, programs + attacked)


def _divided(preset: Preset, seat: str, sampled: int, learnt: int, group: int) -> SeatRows:
    updates, ranks = preset.round.updates, preset.placement.of(seat).ranks
    step = learnt // updates // ranks
    per_device = preset.memory.rows_per_device(seat) or step
    return SeatRows(sampled, learnt, group, updates, ranks, per_device, step // per_device)
