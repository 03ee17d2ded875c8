"""Past opponents: old snapshots that play along in a round, and old buggy programs that the tester attacks again.

A seat leaves a snapshot every `options.opponent_every` rounds; the base model is the first. In each round one old coder
answers every question besides the present one, and one old tester attacks every program besides. Who is drawn depends
on the run's seed, the round, and, for `prioritised`, on how snapshots fared, which is kept in the tester's checkpoints;
so is the tester's mistake book. Does not train anybody and deletes no snapshot.
"""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from codea1_env.arena.arena import Arena
from codea1_env.arena.tester_book import TesterBook
from codea1_env.errors import ConfigurationError
from codea1_env.problems.problem import Problem
from codea1_env.training.models.chat import Prompter
from codea1_env.training.models.sampling import as_trained
from codea1_env.training.policies.policy import Policy
from codea1_env.training.round.rounds import PastPlay, ReadProgram, Score, Suites, read_programs
from codea1_env.training.run.checkpoints import OPPONENTS
from codea1_env.training.samples import Prompt, Sample, SeatRun, answers, texts_of

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

    def __init__(
        self, run: SeatRun, folders: Mapping[str, Path], arena: Arena, prompter: Prompter, load: Callable[..., Any]
    ) -> None:
        """`run`: of the seat that attacks. `folders`: by role, the directory of the seat whose snapshots play; in
        self-play, one and the same. `load`: (role, directory) to a model, which can be let go."""
        self._run, self._folders, self._arena, self._prompter, self._load = run, folders, arena, prompter, load
        self._options = run.preset.options
        if self.is_on and run.preset.placement.of(run.seat).ranks > 1:
            raise ConfigurationError(
                "placement.tester.ranks must be 1 with past opponents or a tester's book, "
                f"got {run.preset.placement.of(run.seat).ranks}"
            )
        self._fared: dict[str, dict[str, float]] = {"coder": {}, "tester": {}}
        self._capacity = max(16, self._options.tester_book)
        self._book = TesterBook(self._capacity)
        self._tokens = 0  # that were sampled in this round
        if run.resume_from is not None and self.is_on:
            self._fared = json.loads((run.resume_from / RECORDS).read_text(encoding="utf-8"))
            self._book = TesterBook.load(run.resume_from / BOOK, self._capacity)

    @property
    def seat(self) -> str:
        """The one that attacks: what is remembered is in its checkpoints."""
        return self._run.seat

    @property
    def is_on(self) -> bool:
        """Whether any option asks for the past."""
        return self._options.opponents != "latest" or self._options.tester_book > 0

    def programs(self, round_index: int, problems: Sequence[Problem]) -> tuple[ReadProgram, ...]:
        """What the tester attacks beside the present programs: an old coder's answers, then those of its book."""
        count = self._options.past(self._run.preset.round.programs)
        self._tokens = 0
        found: list[ReadProgram] = []
        if count:
            answered = self._answers("coder", round_index, self._prompter.coder(problems), count)
            found += read_programs(self._arena, problems, answered)
        for problem in problems:
            for target in self._book.targets(problem.problem_id, self._options.tester_book):
                found.append(ReadProgram(problem, target.response, target.program))
        return tuple(found)

    def play(
        self, round_index: int, present: Sequence[ReadProgram], old: Sequence[ReadProgram], against: Suites
    ) -> PastPlay:
        """The past's part of the round: `old` programs with the present tester's suites, and an old tester's
        suites."""
        if not self.is_on:
            return PastPlay()
        questions = self._run.preset.round.questions
        return PastPlay(
            suites=self._suites(round_index, present),
            programs=tuple(old),
            old_coders=questions * self._options.past(self._run.preset.round.programs),
            against=against,
            tokens=self._tokens,
        )

    def _suites(self, round_index: int, programs: Sequence[ReadProgram]) -> tuple[tuple[str, ...], ...]:
        count = self._options.past(self._run.preset.round.suites)
        if not count:
            return ()
        prompts = self._prompter.tester([(program.problem, program.source) for program in programs])
        written = texts_of(self._answers("tester", round_index, prompts, count))
        return tuple(tuple(text for text in row if text is not None) for row in written)

    def learn(self, round_index: int, score: Score) -> None:
        """Remember how the round's past opponents fared, and what the tester let pass."""
        if self._options.opponents != "latest":
            for role, reward in (("coder", score.past_coder), ("tester", score.past_tester)):
                if reward is not None:
                    name = str(self.drawn(role, round_index))
                    before = self._fared[role].get(name, reward)
                    self._fared[role][name] = MEMORY * before + (1 - MEMORY) * reward
        for match in score.played:
            self._book.record_match(match)

    def drawn(self, role: str, round_index: int) -> int:
        """The snapshot that plays in this round, by the rounds that it had learnt."""
        pool = list(range(0, round_index, self._options.opponent_every)) or [0]
        rng = random.Random(f"past {role} {self._run.seed} {round_index}")
        if self._options.opponents == "uniform":
            return rng.choice(pool)
        weights = [LEAST + self._fared[role].get(str(rounds), UNKNOWN) for rounds in pool]
        return rng.choices(pool, weights)[0]

    def save(self, checkpoint: Path) -> None:
        """Leave what is remembered in the tester's checkpoint."""
        if self.is_on:
            (checkpoint / RECORDS).write_text(json.dumps(self._fared), encoding="utf-8")
            self._book.save(checkpoint / BOOK)

    def _answers(self, role: str, round_index: int, prompts: Sequence[Prompt], count: int) -> list[list[Sample]]:
        """Of the snapshot that plays the role in this round."""
        rounds = self.drawn(role, round_index)
        directory = snapshot(self._folders[role], rounds) if rounds else self._run.base
        seed = (2 * self._run.seed + (role == "tester")) * ROUNDS + round_index
        model = self._load(role, directory)
        try:
            how = as_trained(self._run.preset, role, seed)
            found = answers(model, self._prompter.tokenizer, prompts, count, how)
        finally:
            model.let_go()  # a long run has many snapshots
        self._tokens += sum(len(sample.tokens) for group in found for sample in group)
        return found


def snapshot(seat: Path, rounds: int) -> Path:
    """Where a seat's model after so many rounds is kept."""
    return seat / SNAPSHOTS / f"round-{rounds}"


def keep_snapshot(policy: Policy, rounds_done: int) -> None:
    """Leave a seat's model for later rounds. A round that is played again leaves the same one again."""
    if rounds_done % policy.run.preset.options.opponent_every:
        return
    target = snapshot(policy.run.output, rounds_done)
    aside = target.with_name(target.name + ".part")
    shutil.rmtree(aside, ignore_errors=True)
    policy.export(aside, goes_on=True)
    shutil.rmtree(target, ignore_errors=True)
    os.replace(aside, target)
