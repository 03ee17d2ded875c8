"""Handles with which seats of the Ray engine reach the arena: plain data, so that they travel in a recipe's lambdas.

A call blocks until it is answered; what fails over there is raised here. Does not keep an arena alive.
"""

from __future__ import annotations

import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from codea1_env.arena.match import Grade, Match, MatchScore
from codea1_env.errors import SeatFailed
from codea1_env.extras import extra
from codea1_env.mistake_book.book import MistakeBook
from codea1_env.problems.problem import Problem
from codea1_env.reading.test_case import TestCase
from codea1_env.rewards.code_a1 import RewardConfig
from codea1_env.training.round.rounds import Attack, PastPlay, Rewards, RoundScore
from codea1_env.training.round.rules import RoundRules

with extra("ray", "--engine ray needs"):
    import ray


@dataclass(frozen=True, slots=True)
class Record:
    """One line of the metrics, on its way to the process that writes them."""

    kind: str
    rounds_done: int
    values: Mapping[str, float]
    seat: str = ""


def failure(who: str, error: BaseException) -> SeatFailed:
    """One line of what went wrong; the traceback is its note."""
    failed = SeatFailed(f"{who} failed: {type(error).__name__}: {' '.join(str(error).split())[:1000]}")
    failed.add_note("".join(traceback.format_exception(error)))
    return failed


def answer(reference: Any) -> Any:
    """What a call of an actor returns; what it raised is raised here as it was there."""
    try:
        return ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        raise error.cause from None


@dataclass(frozen=True, slots=True)
class ArenaHandle:
    """The arena, seen from another process: what evaluations and single-seat recipes need of it."""

    actor: Any
    config: RewardConfig

    def play(self, matches: Sequence[Match], *, update_book: bool = True) -> list[MatchScore]:
        scores: list[MatchScore] = answer(self.actor.play.remote(matches, update_book))
        return scores

    def grade_many(self, items: Sequence[tuple[Problem, Sequence[str], Sequence[TestCase]]]) -> list[list[Grade]]:
        grades: list[list[Grade]] = answer(self.actor.grade_many.remote(items))
        return grades

    @property
    def book(self) -> MistakeBook:
        """A copy of the Mistake Book as it is now."""
        book: MistakeBook = answer(self.actor.book.remote())
        return book

    @property
    def seconds(self) -> dict[str, float]:
        """What the parts of the last batch took."""
        seconds: dict[str, float] = answer(self.actor.seconds.remote())
        return seconds


@dataclass(frozen=True, slots=True)
class MeetingHandle:
    """The exchange, seen from a seat; its methods are those of `Exchange`."""

    actor: Any

    def submit_codes(self, round_index: int, attacks: tuple[Attack, ...]) -> Rewards:
        rewards: Rewards = answer(self.actor.submit_codes.remote(round_index, attacks))
        return rewards

    def take_attacks(self, round_index: int) -> tuple[Attack, ...]:
        attacks: tuple[Attack, ...] = answer(self.actor.take_attacks.remote(round_index))
        return attacks

    def submit_suites(
        self,
        round_index: int,
        suites: Sequence[Sequence[str | None]],
        rules: RoundRules | None = None,
        past: PastPlay | None = None,
    ) -> RoundScore:
        score: RoundScore = answer(self.actor.submit_suites.remote(round_index, suites, rules, past))
        return score


@dataclass(frozen=True, slots=True)
class LogHandle:
    """Takes a round's metrics, from any process."""

    actor: Any

    def __call__(self, round_index: int, values: Mapping[str, float]) -> None:
        answer(self.actor.log.remote(Record("round", round_index + 1, values)))
