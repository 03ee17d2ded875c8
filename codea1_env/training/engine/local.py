"""The local engine: all seats of a run in this process, one thread each, alternating by the baton.

Knows how to measure models, how to build what a seat needs, and how to end: a failure in one seat ends the run with its
cause; Ctrl-C lets the round finish, so that both seats leave a checkpoint of the same round. Does not know what seats
there are or what they are paid for: that is the recipe's.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from codea1_env.arena.arena import Arena
from codea1_env.errors import ConfigurationError
from codea1_env.extras import extra
from codea1_env.problems.problem import Problem
from codea1_env.training.engine.baton import Baton, isolate_gradient_state, run_threads
from codea1_env.training.engine.measuring import Gauge, roles_of
from codea1_env.training.grpo.seats import train
from codea1_env.training.round.exchange import Exchange
from codea1_env.training.run.callbacks import SeatHooks, SeatRun
from codea1_env.training.run.journal import Journal
from codea1_env.training.run.results import Measured
from codea1_env.training.run.run_dir import BOOK, Run

with extra("train", "training needs"):
    import torch
    import transformers

THIRD_PARTY_SILENCE = {"TRL_EXPERIMENTAL_SILENCE": "1"}
"""TRL's own switch for its warning that rollout functions may change; the version is pinned."""

Build = Callable[[SeatRun, SeatHooks], Any]
"""Makes a seat's trainer; called in the seat's own thread, which holds the baton."""


def prepare_process(threads: int = 1) -> None:
    """Global settings of a training process, for recipes: torch's threads, and no bars or notices but ours."""
    torch.set_num_threads(threads)  # the seats alternate; for tiny models more threads only wait for each other
    os.environ.update(THIRD_PARTY_SILENCE)
    transformers.utils.logging.disable_progress_bar()


class LocalEngine:
    """Trains the seats of one run."""

    def __init__(self, run: Run, arena: Arena, base: Path, held_out: Sequence[Problem]) -> None:
        self._run = run
        self.arena = arena
        self._base = base
        self._gauge = Gauge(arena, run.preset, tuple(held_out))
        self._baton = Baton()
        self._exchange: Exchange | None = None
        self._stop = threading.Event()
        self._journal = Journal(run)
        isolate_gradient_state()

    def exchange(self) -> Exchange:
        """The meeting point of a run with two seats."""
        shape = self._run.preset.round
        self._exchange = Exchange(
            self.arena, shape, self.log_round, released=self._baton.released, duels=self._run.duels
        )
        return self._exchange

    def log_round(self, round_index: int, values: Mapping[str, float]) -> None:
        """Write a round's metrics and move the progress bar."""
        self._journal.write("round", round_index + 1, values)

    def measure(self, coder: Path, tester: Path | None, rounds_done: int) -> Measured:
        """Both seats on all held-out problems. `tester` None: the coder only."""
        self._journal.doing("evaluating")
        result = Measured(self._gauge.saved("coder", coder), self._gauge.saved("tester", tester) if tester else None)
        self._journal.write_measured(result, rounds_done)
        return result

    def train(self, seats: Mapping[str, Build]) -> bool:
        """Run all rounds. True if they were cut short by Ctrl-C. Raises what went wrong in a seat, from its cause."""
        meeting = self._exchange
        if len(seats) > 1 and meeting is None:
            raise ConfigurationError("two seats must meet: call exchange() before train(), got no exchange")
        self._journal.doing("sampling")
        failure = run_threads(
            {seat: self._seat_work(seat, build) for seat, build in seats.items()},
            on_failure=lambda error: meeting.close(error) if meeting else None,
            on_interrupt=self._ask_to_stop,
            torch_threads=self._run.preset.threads,
        )
        self._journal.close()
        if failure:
            raise failure
        return meeting.stopped_early if meeting else self._stop.is_set()

    def _ask_to_stop(self) -> None:
        self._journal.say("stopping after this round (Ctrl-C again: at once, without a checkpoint)")
        self._stop.set()
        if self._exchange:
            self._exchange.ask_to_stop()

    def _seat_work(self, seat: str, build: Build) -> Callable[[], None]:
        seat_run = self._run.seat(seat, self._base)
        is_last = self._exchange.is_last if self._exchange else lambda _: self._stop.is_set()
        hooks = SeatHooks(
            log=lambda index, values: self._journal.write("seat", index + 1, values, seat),
            evaluate=lambda rounds, model, tokenizer: self._evaluate(seat, rounds, model, tokenizer),
            save=lambda rounds, directory: self._save(seat, directory),
            is_last=is_last,
        )

        def work() -> None:
            with self._baton.held(seat_run.seed):
                train(build(seat_run, hooks), seat_run)

        return work

    def _save(self, seat: str, directory: Path) -> None:
        # The arena cannot move on until this seat brings the next programs: here the book is that of this round.
        if seat != "tester":
            self.arena.book.save(directory / BOOK)

    def _evaluate(self, seat: str, rounds_done: int, model: Any, tokenizer: Any) -> None:
        for role in roles_of(seat):
            values = self._gauge.summary(role, model, tokenizer, rounds_done, self._run.hidden_record())
            self._journal.write("evaluation", rounds_done, values, role)
