"""Past opponents: old snapshots that play along in a round, and old buggy programs that the tester attacks again.

A seat leaves a snapshot every `options.opponent_every` rounds; the base model is the first. In each round one old coder
answers every question besides the present one, and one old tester attacks every program besides. Who is drawn depends
on the run's seed, the round, and, for `prioritised`, on how snapshots fared, which is kept in the tester's checkpoints;
so is the tester's mistake book. Lives in the process that attacks; past models sample with transformers' `generate`,
and those of the packed trainer, which are adapters beside its base, with its engine.

Does not train anybody and deletes no snapshot. One rank only.
"""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from codea1_env.arena.tester_book import TesterBook
from codea1_env.errors import ConfigurationError
from codea1_env.extras import extra
from codea1_env.players.player import CoderRequest, TesterRequest
from codea1_env.problems.problem import Problem
from codea1_env.training.models.sampling import Sampler, load_model
from codea1_env.training.round.rounds import Attack, PastPlay, RoundScore, attacks_of
from codea1_env.training.run.callbacks import SeatRun
from codea1_env.training.run.resuming import OPPONENTS

with extra("train", "training needs"):
    from transformers import TrainerCallback

RECORDS, BOOK = OPPONENTS, "tester_book.jsonl"
SNAPSHOTS = "snapshots"
ROUNDS = 1_000_000
"""More than any run has: the seeds of two runs' rounds never meet."""
UNKNOWN = 1.0
"""Weight of a snapshot that has not played: it is drawn soon."""
LEAST = 0.05
"""Added to every weight, so that no snapshot is forgotten for good."""
MEMORY = 0.5
"""Weight of what was known of a snapshot against what it did in this round."""


class PastOpponents:
    """Draws and plays past opponents for one run's tester, and remembers what came of it."""

    def __init__(self, run: SeatRun, coder: Path, tester: Path) -> None:
        """`coder`, `tester`: directories of the seats whose snapshots play; in self-play, one and the same."""
        self._run = run
        self._options = run.preset.options
        if self.is_on and run.preset.placement.of(run.output.name).ranks > 1:
            raise ConfigurationError(
                "placement.tester.ranks must be 1 with past opponents or a tester's book, "
                f"got {run.preset.placement.of(run.output.name).ranks}"
            )
        self._seats = {"coder": coder, "tester": tester}
        self._fared: dict[str, dict[str, float]] = {"coder": {}, "tester": {}}
        self._capacity = max(16, self._options.tester_book)
        self._book = TesterBook(self._capacity)
        if run.resume_from is not None and self.is_on:
            self._fared = json.loads((run.resume_from / RECORDS).read_text(encoding="utf-8"))
            self._book = TesterBook.load(run.resume_from / BOOK, self._capacity)

    @property
    def is_on(self) -> bool:
        """Whether any option asks for the past."""
        return self._options.opponents != "latest" or self._options.tester_book > 0

    def attacks(self, round_index: int, problems: Sequence[Problem]) -> tuple[Attack, ...]:
        """What the tester attacks beside the present programs: an old coder's answers, then targets of its book."""
        count = self._options.past(self._run.preset.round.programs)
        attacks: list[Attack] = []
        if count:
            with self._sampler("coder", round_index) as sampler:
                answers = sampler.coder([CoderRequest(problem) for problem in problems], count)
            asked = [problem for problem in problems for _ in range(count)]
            fidelity = self._run.preset.reward.fidelity
            attacks += attacks_of(asked, [text for texts in answers for text in texts], fidelity)
        for problem in problems:
            for target in self._book.targets(problem.problem_id, self._options.tester_book):
                attacks.append(Attack(problem, target.response, target.program))
        return tuple(attacks)

    def play(
        self,
        round_index: int,
        present: Sequence[Attack],
        old: Sequence[Attack],
        against: Sequence[Sequence[str | None]],
    ) -> PastPlay | None:
        """The past's part of the round: `old` attacks with the present tester's suites, and an old tester's suites."""
        if not self.is_on:
            return None
        questions = self._run.preset.round.questions
        return PastPlay(
            suites=self._suites(round_index, present),
            attacks=tuple(old),
            old_coders=questions * self._options.past(self._run.preset.round.programs),
            against=tuple(map(tuple, against)),
        )

    def _suites(self, round_index: int, attacks: Sequence[Attack]) -> tuple[tuple[str, ...], ...]:
        count = self._options.past(self._run.preset.round.suites)
        if not count:
            return ()
        with self._sampler("tester", round_index) as sampler:
            requests = [TesterRequest(attack.problem, attack.program) for attack in attacks]
            written = sampler.suites(requests, count, self._run.preset.round.tester_prompt_tokens)
        return tuple(tuple(text for text in row if text is not None) for row in written)

    def learn(self, round_index: int, score: RoundScore) -> None:
        """Remember how the round's past opponents fared, and what the tester let pass."""
        if self._options.opponents != "latest":
            for seat, reward in (("coder", score.past_coder), ("tester", score.past_tester)):
                if reward is not None:
                    name = str(self.drawn(seat, round_index))
                    before = self._fared[seat].get(name, reward)
                    self._fared[seat][name] = MEMORY * before + (1 - MEMORY) * reward
        for match in score.played:
            self._book.record_match(match)

    def drawn(self, seat: str, round_index: int) -> int:
        """The snapshot that plays in this round, by the rounds that it had learnt."""
        pool = list(range(0, round_index, self._options.opponent_every)) or [0]
        rng = random.Random(f"past {seat} {self._run.seed} {round_index}")
        if self._options.opponents == "uniform":
            return rng.choice(pool)
        weights = [LEAST + self._fared[seat].get(str(rounds), UNKNOWN) for rounds in pool]
        return rng.choices(pool, weights)[0]

    def save(self, checkpoint: Path) -> None:
        """Leave what is remembered in the tester's checkpoint."""
        if self.is_on:
            (checkpoint / RECORDS).write_text(json.dumps(self._fared), encoding="utf-8")
            self._book.save(checkpoint / BOOK)

    @contextmanager
    def _sampler(self, seat: str, round_index: int) -> Iterator[Sampler]:
        rounds = self.drawn(seat, round_index)
        directory = snapshot(self._seats[seat], rounds) if rounds else self._run.base
        seed = (2 * self._run.seed + (seat == "tester")) * ROUNDS + round_index
        loaded = load_model(directory, self._run.preset, self._run.device)
        try:
            yield loaded.as_trained(self._run.preset, seat, seed)
        finally:
            loaded.let_go()  # a long run has many snapshots


def snapshot(seat: Path, rounds: int) -> Path:
    """Where a seat's model after so many rounds is kept."""
    return seat / SNAPSHOTS / f"round-{rounds}"


class SnapshotCallback(TrainerCallback):  # type: ignore[misc]  # the base class has no types
    """Leaves a seat's snapshots. A round that is played again leaves the same one again."""

    def __init__(self, run: SeatRun) -> None:
        self._run = run

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        done, rest = divmod(state.global_step, self._run.preset.round.updates)
        if rest or done % self._run.preset.options.opponent_every or not state.is_world_process_zero:
            return
        target = snapshot(self._run.output, done)
        aside = target.with_name(target.name + ".part")
        shutil.rmtree(aside, ignore_errors=True)
        kwargs["model"].save_pretrained(aside)
        kwargs["processing_class"].save_pretrained(aside)
        shutil.rmtree(target, ignore_errors=True)
        os.replace(aside, target)
