"""Choices in training that the paper does not make, or makes in one way: a section of the preset. Every default is the
paper's. docs/training.md has them in a table.

Plain data, checked before anything heavy is imported. Does not promise that a combination trains well.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from codea1_env.checks import require
from codea1_env.configuration.placement import SEATS
from codea1_env.configuration.sections import Section, choice, real, whole
from codea1_env.errors import ConfigurationError
from codea1_env.rewards.code_a1 import RewardConfig
from codea1_env.rewards.tester_rewards import CodeA1

SELECTIONS = ("spread", "random", "all", "hardest", "first", "ahead")
ACCESSES = ("white-box", "black-box")
SCHEDULES = ("simultaneous", "alternating")
OPPONENTS = ("latest", "uniform", "prioritised")


@dataclass(frozen=True, slots=True)
class Options(Section):
    """The default of every field is the paper's method."""

    selection: str = choice("spread", SELECTIONS)
    """Which `round.attacked` programs of a question train the tester. spread: whose suites' rewards spread most
    (paper). random: drawn anew each round. all: every program; needs round.attacked = round.programs. hardest: the
    programs with the highest reward, which the tester found hardest to break. first: the first ones that load (the
    public write-up). ahead: the first different ones that can be parsed, chosen before any suite is written; none
    are written against the others, which are paid by those of their question: needs reward.coder_tests: union."""
    access: str = choice("white-box", ACCESSES)
    """white-box: the tester sees the program that it attacks (paper). black-box: it sees the question only."""
    schedule: str = choice("simultaneous", SCHEDULES)
    """simultaneous: both seats learn in every round (paper). alternating: the coder learns for `turn_rounds` rounds,
    then the tester for as many, and so on; both play all rounds. A resting seat stays as it is."""
    turn_rounds: int = whole(1, 1, 1_000_000)
    """Rounds of a turn, 1 to 1000000, for schedule: alternating."""
    validity_first_rounds: int = whole(0, 0, 1_000_000)
    """Rounds over which alpha falls from 1 to reward.alpha in equal steps, 0 to 1000000; 0: it is constant (paper)."""
    opponents: str = choice("latest", OPPONENTS)
    """The opponents that a seat meets. latest: the other seat as it is (paper). uniform: also past snapshots of the
    other seat, all equally likely. prioritised: also past snapshots, and those which did better against the present
    seat are drawn more often."""
    opponent_share: float = real(0.25, 1e-6, 1.0)
    """How much past snapshots add to a round, for opponents: this share of N programs to every question, and of M
    suites to every program, each rounded up, above 0 to 1."""
    opponent_every: int = whole(10, 1, 1_000_000)
    """Rounds between snapshots, 1 to 1000000, for opponents. All are kept; each has the size of a `final` model."""
    tester_book: int = whole(0, 0, 64)
    """Old buggy programs of a question that the tester attacks again on every visit, 0 to 64; 0: none (paper)."""

    def __post_init__(self) -> None:
        Section.__post_init__(self)
        if self.selection in ("all", "ahead") and (self.opponents != "latest" or self.tester_book):
            raise ConfigurationError(
                f"selection: {self.selection} must come with opponents: latest and tester_book: 0, since no programs "
                f"but the present ones can be trained on, got {self.opponents!r} and {self.tester_book}"
            )

    def put_to_tester(self, programs: int, attacked: int) -> int:
        """How many of N `programs` of a question suites are written against."""
        return attacked if self.selection == "ahead" else programs

    def check(self, programs: int, attacked: int, reward: RewardConfig, strategies: Mapping[str, str]) -> None:
        """Check that the options fit the rest of a preset. `strategies` are those of each seat's placement."""
        votes = reward.oracle in ("majority", "dual") and (self.opponents != "latest" or self.tester_book > 0)
        must = "be reference or golden with past opponents or a tester's book, which are too few to vote on values"
        require(not votes, "reward.oracle", must, reward.oracle)
        must = f"be programs ({programs}) with options.selection: all"
        require(self.selection != "all" or attacked == programs, "attacked", must, attacked)
        must = "be union with options.selection: ahead, or programs without suites of their own would not be paid"
        require(self.selection != "ahead" or reward.judges_by_union, "reward.coder_tests", must, reward.coder_tests)
        reward.require_parts()  # before any model is loaded
        if self.validity_first_rounds and type(reward.reward) is not CodeA1:
            raise ConfigurationError(
                "options.validity_first_rounds must be 0 unless reward.tester_reward is code-a1, whose weight it "
                f"changes, got {self.validity_first_rounds} with {reward.tester_reward!r}"
            )
        for seat, strategy in strategies.items():
            if self.schedule == "alternating" and strategy == "deepspeed":
                raise ConfigurationError(
                    "options.schedule: alternating must come with a strategy whose optimizer reads the parameters' "
                    f"gradients (ddp, fsdp2), got deepspeed for the {seat}"
                )
            if self.opponents != "latest" and strategy != "ddp":
                raise ConfigurationError(
                    "options.opponents must be latest where a seat is sharded (snapshots are written by one rank), "
                    f"got {self.opponents!r} and {strategy} for the {seat}"
                )

    def learns(self, seat: str, round_index: int) -> bool:
        """Whether a seat takes its step in this round, counted from 0."""
        return self.schedule == "simultaneous" or seat == SEATS[round_index // self.turn_rounds % 2]

    def alpha(self, final: float, round_index: int) -> float:
        """The weight of validity in this round: 1 in the first, `final` after `validity_first_rounds`."""
        left = max(0.0, 1 - round_index / self.validity_first_rounds) if self.validity_first_rounds else 0.0
        return final + (1 - final) * left

    def past(self, answers: int) -> int:
        """How many answers of past snapshots are added to `answers` present ones."""
        return 0 if self.opponents == "latest" else math.ceil(self.opponent_share * answers)
