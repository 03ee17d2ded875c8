"""The Ray engine's actors: the arena with the seats' meeting point, and one for every rank of every seat.

The arena's actor is threaded: a seat's call waits in it for the other seat. A seat's actor is one rank of that seat;
torch is imported there when its place in the seat is known, since that decides which devices it sees. Does not decide
anything about the run: that is the engine's.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codea1_env.arena.arena import Arena
from codea1_env.arena.match import Grade, Match, MatchScore
from codea1_env.class_paths import look_in
from codea1_env.errors import SeatFailed
from codea1_env.mistake_book.book import MistakeBook
from codea1_env.problems.problem import Problem
from codea1_env.reading.test_case import TestCase
from codea1_env.sandbox import Sandbox
from codea1_env.training.config.presets import Preset
from codea1_env.training.engine.ray_handles import ArenaHandle, Record, answer, failure
from codea1_env.training.round.exchange import Exchange
from codea1_env.training.round.rounds import Attack, PastPlay, Rewards, RoundScore
from codea1_env.training.round.rules import RoundRules
from codea1_env.training.run.duel_sample import DuelSample
from codea1_env.training.run.lock import RunLock

if TYPE_CHECKING:
    from codea1_env.training.run.callbacks import SeatHooks, SeatRun

import ray

WORLD = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
"""Environment of a rank. A seat of one rank must have none of it: its trainer would wait for others."""


class _OneAtATime(Arena):
    """An arena for callers in several threads."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments, on_failure="apart")
        self._turn = threading.Lock()

    def play(self, matches: Sequence[Match], *, update_book: bool = True) -> list[MatchScore]:
        with self._turn:
            return super().play(matches, update_book=update_book)

    def grade_many(self, items: Sequence[tuple[Problem, Sequence[str], Sequence[TestCase]]]) -> list[list[Grade]]:
        with self._turn:
            return super().grade_many(items)


class ArenaActor:
    """The arena, its sandbox and the seats' meeting point; and the box in which records wait to be written."""

    def __init__(
        self, preset: Preset, book: MistakeBook, make_sandbox: Callable[[], Sandbox], duels: DuelSample
    ) -> None:
        """On the machine of the run's directory, where `duels` writes."""
        look_in(preset.algorithm.path)
        self._arena = _OneAtATime(make_sandbox(), preset.reward, book)
        self._meeting = Exchange(self._arena, preset.round, self._log_round, patience_s=preset.patience_s, duels=duels)
        self._stop_asked = False
        self._cause: SeatFailed | None = None
        self._changed = threading.Condition()
        self._records: list[Record] = []
        self._written = 0

    def process(self) -> int:
        """Its process id; answered once it is there."""
        return os.getpid()

    def play(self, matches: Sequence[Match], update_book: bool) -> list[MatchScore]:
        return self._arena.play(matches, update_book=update_book)

    def grade_many(self, items: Sequence[tuple[Problem, Sequence[str], Sequence[TestCase]]]) -> list[list[Grade]]:
        return self._arena.grade_many(items)

    def book(self) -> MistakeBook:
        return self._arena.book

    def seconds(self) -> dict[str, float]:
        return self._arena.seconds

    def submit_codes(self, round_index: int, attacks: tuple[Attack, ...]) -> Rewards:
        return self._meeting.submit_codes(round_index, attacks)

    def take_attacks(self, round_index: int) -> tuple[Attack, ...]:
        return self._meeting.take_attacks(round_index)

    def submit_suites(
        self,
        round_index: int,
        suites: Sequence[Sequence[str | None]],
        rules: RoundRules | None = None,
        past: PastPlay | None = None,
    ) -> RoundScore:
        try:
            return self._meeting.submit_suites(round_index, suites, rules, past)
        except Exception as error:  # the seats hear of it by their own calls
            self.close(failure("the arena", error))
            raise

    def log(self, record: Record) -> None:
        """Returns when the record is on disk, so that no checkpoint is ahead of the metrics."""
        with self._changed:
            self._records.append(record)
            number = self._written + len(self._records)
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._written >= number or self._cause is not None)

    def records(self, written: int, timeout_s: float) -> list[Record]:
        """The next records, once there are any; `written`: how many of all are on disk by now."""
        with self._changed:
            del self._records[: written - self._written]
            self._written = written
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._records or self._cause is not None, timeout_s)
            return list(self._records)

    def ask_to_stop(self) -> None:
        """Let the round in progress be the last."""
        self._stop_asked = True
        self._meeting.ask_to_stop()

    def is_last(self, round_index: int, is_duel: bool) -> bool:
        """Whether a seat must stop after this round. In a duel the meeting decides, for both seats alike."""
        return self._meeting.is_last(round_index) if is_duel else self._stop_asked

    def close(self, cause: SeatFailed) -> None:
        """Wake whoever waits. The first cause stays."""
        with self._changed:
            self._cause = self._cause or cause
            self._changed.notify_all()
        self._meeting.close(cause)

    def cause(self) -> SeatFailed | None:
        return self._cause

    def _log_round(self, round_index: int, values: Mapping[str, float]) -> None:
        self.log(Record("round", round_index + 1, values))


@dataclass(frozen=True, slots=True)
class RankPlace:
    """Where an actor runs."""

    node: str
    """Ray's id of its machine."""
    process: int
    host: str
    free_port: int
    gpus: tuple[str, ...]
    """Ids of its GPUs on that machine."""


@dataclass(frozen=True, slots=True)
class SeatWork:
    """What a seat's rank has to do in a run."""

    build: Callable[[SeatRun, SeatHooks], Any]
    """Makes the seat's trainer; comes from the recipe."""
    run: SeatRun
    arena: ArenaHandle
    held_out: tuple[Problem, ...]
    is_duel: bool


class SeatActor:
    """One rank of one seat."""

    def __init__(self, seat: str) -> None:
        self._seat = seat

    def place(self) -> RankPlace:
        with socket.socket() as free:
            free.bind(("", 0))
            port = free.getsockname()[1]
        context = ray.get_runtime_context()
        gpus = tuple(map(str, context.get_accelerator_ids().get("GPU", ())))
        return RankPlace(context.get_node_id(), os.getpid(), ray.util.get_node_ip_address(), port, gpus)

    def join(self, environment: Mapping[str, str]) -> None:
        """Take the place in the seat that `environment` says; only then load what trains."""
        for name in WORLD:
            os.environ.pop(name, None)
        os.environ.update(environment)
        from codea1_env.training.engine.local import prepare_process

        prepare_process()

    def measure(
        self, role: str, arena: ArenaHandle, preset: Preset, held_out: tuple[Problem, ...], directory: Path
    ) -> Any:
        """The evaluation of the model in `directory` as coder or tester, or SeatFailed."""
        from codea1_env.training.engine.measuring import Gauge

        try:
            return Gauge(arena, preset, held_out).saved(role, directory)
        except Exception as error:
            return failure(f"the evaluation of the {role}", error)

    def train(self, work: SeatWork) -> SeatFailed | None:
        """All rounds; what went wrong, if anything did."""
        try:
            self._train(work)
        except BaseException as error:  # carried to the engine, which raises it
            failed = failure(f"the {self._seat}", error)
            with suppress(ray.exceptions.RayError):
                ray.get(work.arena.actor.close.remote(failed))
            return failed
        return None

    def _train(self, work: SeatWork) -> None:
        from codea1_env.training.engine.baton import seed_streams
        from codea1_env.training.grpo.seats import train
        from codea1_env.training.run.ranks import accept_numbered_cpus

        accept_numbered_cpus()
        look_in(work.run.preset.algorithm.path)
        # Held to the end: should the first process be killed, nobody goes on with the run before this one has ended.
        lock = RunLock(work.run.output.parent, alone=False)
        try:
            seed_streams(work.run.seed)
            train(work.build(work.run, self._hooks(work)), work.run)
        finally:
            lock.release()

    def _hooks(self, work: SeatWork) -> SeatHooks:
        from codea1_env.training.engine.measuring import Gauge, roles_of
        from codea1_env.training.run.callbacks import SeatHooks
        from codea1_env.training.run.hidden_tests import HIDDEN, HiddenRecord
        from codea1_env.training.run.ranks import from_first
        from codea1_env.training.run.run_dir import BOOK

        actor, gauge = work.arena.actor, Gauge(work.arena, work.run.preset, work.held_out)
        record = HiddenRecord(work.run.output.parent / HIDDEN)

        def log(kind: str, rounds_done: int, values: Mapping[str, float], seat: str = self._seat) -> None:
            answer(actor.log.remote(Record(kind, rounds_done, values, seat)))

        def evaluate(rounds: int, model: Any, tokenizer: Any) -> None:
            for role in roles_of(self._seat):
                log("evaluation", rounds, gauge.summary(role, model, tokenizer, rounds, record), role)

        def save(rounds: int, directory: Path) -> None:
            # The arena cannot move on until this seat brings the next programs: here the book is that of this round.
            if self._seat != "tester":
                work.arena.book.save(directory / BOOK)

        return SeatHooks(
            log=lambda index, values: log("seat", index + 1, values),
            evaluate=evaluate,
            save=save,
            is_last=lambda index: from_first(lambda: bool(answer(actor.is_last.remote(index, work.is_duel)))),
        )
