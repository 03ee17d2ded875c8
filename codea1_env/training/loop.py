"""The parts of a recipe's loop: policies, rounds, questions, the arena, metrics, checkpoints.

Ctrl-C or SIGTERM within the rounds lets the round finish and saves all seats. Does not know any method: that is the
recipe's.
"""

from __future__ import annotations

import dataclasses
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from codea1_env.arena.arena import Arena
from codea1_env.class_paths import state_text
from codea1_env.configuration.memory_estimate import longest_prompt
from codea1_env.configuration.options import Options
from codea1_env.configuration.placement import SEATS, role_of
from codea1_env.errors import ConfigurationError, SandboxError
from codea1_env.mistake_book.parts import name_of
from codea1_env.problems.problem import Problem
from codea1_env.training.models.chat import Prompter, chat_of
from codea1_env.training.models.sampling import as_trained
from codea1_env.training.policies.backend import Backend
from codea1_env.training.policies.policy import TOKENS, Frozen, Policy
from codea1_env.training.round.past_opponents import PastOpponents, keep_snapshot
from codea1_env.training.round.questions import chooser_of, chosen
from codea1_env.training.round.resampling import silent_questions, with_groups
from codea1_env.training.round.rounds import (
    ReadProgram,
    Round,
    Score,
    Suites,
    grade_round,
    in_places,
    put_to_tester,
    read_programs,
)
from codea1_env.training.round.rules import RoundRules
from codea1_env.training.round.written_tests import WrittenSuite, write_suites
from codea1_env.training.run.checkpoints import forget_old, mark_complete
from codea1_env.training.run.gauge import Gauge
from codea1_env.training.run.held_out import MeasuredSeats
from codea1_env.training.run.journal import RunJournal
from codea1_env.training.run.run_dir import QUESTIONS, Run
from codea1_env.training.samples import Sample


class Recipe:
    """The parts that the loop of a recipe uses."""

    def __init__(
        self, run: Run, backend: Backend, arena: Arena, base: Path, tester: Path, problems: Sequence[Problem]
    ) -> None:
        """`tester`: the model of a tester that does not learn. `problems`: those that can be asked."""
        self.preset, self.directory, self.arena = run.preset, run.directory, arena
        self.shape = run.preset.round
        """Questions, programs (N) and suites (M) of a round."""
        self.base, self.tester, self.problems = base, tester, problems
        self.prompts = Prompter(chat_of(run.preset), backend.tokenizer, longest_prompt(run.preset, "tester"))
        self.outcome: list[str] = []
        """In lines; empty until the run has ended."""
        self.seconds: dict[str, float] = {}
        """By part of the run."""
        self.interrupted = False
        self.rounds_done = run.preset.rounds
        """Once the run has ended: fewer than planned where its tokens were spent before."""
        self._run, self._backend, self._journal = run, backend, RunJournal(run)
        self._policies: dict[str, Policy] = {}
        self._frozen: dict[str, Frozen] = {}
        self._chooser = chooser_of(run.preset.algorithm, problems, run.seed)
        self._past: PastOpponents | None = None
        self._old: tuple[ReadProgram, ...] = ()
        self._sampled = sum(int(record.get(TOKENS) or 0) for record in run.records())  # all that spend any log it
        self._began = 0.0
        self._saved = 0  # rounds done in the last checkpoint of this start
        self._callers: dict[int, Any] = {}  # handlers of Ctrl-C and SIGTERM
        run.restore_questions(self._chooser.restore)

    def __str__(self) -> str:
        return "\n".join(self.outcome)

    def policy(self, seat: str, **grpo: Any) -> Policy:
        """The policy that learns in a seat, from the base or from where it was. `grpo`: arguments of the section that
        the recipe decides."""
        place = self._run.seat(seat, self.base)
        if grpo:
            changed = self.preset.grpo.changed(grpo)
            place = dataclasses.replace(place, preset=dataclasses.replace(self.preset, grpo=changed))
        self._policies[seat] = self._backend.policy(place)
        return self._policies[seat]

    def testers(self) -> list[Policy]:
        """The policies of all seats that test: one, unless `seats` names more."""
        return [self.policy(seat) for seat in self._run.seats if seat != "coder"]

    def frozen(self, role: str, model: Path) -> Frozen:
        """A model that plays coder or tester, and does not learn."""
        self._frozen[role] = self._frozen_from(role, model, self._run.seat_of(role, self.base).stream)
        return self._frozen[role]

    def _frozen_from(self, role: str, model: Path, seed_of: Callable[[int], int]) -> Frozen:
        loaded = self._backend.model(role, model)
        return Frozen(loaded, self.prompts.tokenizer, role, as_trained(self.preset, role, 0), seed_of)

    def rounds(self) -> Iterator[int]:
        """The rounds that are left, counted from 0, within the tokens. Ctrl-C lets the present one be the last."""
        self._journal.doing("sampling")
        started = time.perf_counter()
        self._listen()
        try:
            for index in range(self._run.rounds_done, self.preset.rounds):
                if 0 < self.preset.budget_tokens <= self._sampled:
                    self._journal.say(f"round {index} was the last one: {self._sampled} tokens are sampled")
                    self.rounds_done = index
                    if index > max(self._saved, self._run.rounds_done):
                        self._save(index)
                    break
                for policy in self._players.values():
                    policy.begin(index)
                self._began = time.perf_counter()
                yield index
                if self.interrupted and self._saved == index + 1:  # it may have come behind this round's checkpoint
                    break
        finally:
            self._listen_no_more()
        for seat, policy in self._policies.items():
            policy.export(self.directory / seat / "final")
        self.arena.book.save(self.directory / name_of(self.arena.book.parts))
        self.seconds["training"] = time.perf_counter() - started

    def choose(self, index: int) -> list[Problem]:
        """The questions of a round."""
        return chosen(self._chooser, index, self.shape.questions)

    def all_chosen(self) -> list[Problem]:
        """The questions of all rounds, where they are chosen before the first: the same at every start."""
        chooser = chooser_of(self.preset.algorithm, self.problems, self._run.seed)
        count = self.shape.questions
        return [problem for index in range(self.preset.rounds) for problem in chosen(chooser, index, count)]

    def read(self, questions: Sequence[Problem], samples: Sequence[Sequence[Sample]]) -> list[ReadProgram]:
        """The programs that were sampled, question by question."""
        return read_programs(self.arena, questions, samples)

    def shown(self, index: int, programs: Sequence[ReadProgram]) -> list[tuple[Problem, str]]:
        """What suites are written against: the programs, or those that `options.selection` puts to the tester, and
        those of past opponents behind them."""
        places = put_to_tester(programs, self.shape, self._rules)
        questions = [program.problem for program in programs[:: self.shape.programs]]
        self._old = self._past_opponents().programs(index, questions)
        return [(each.problem, each.source) for each in (*(programs[place] for place in places), *self._old)]

    def play(self, index: int, programs: Sequence[ReadProgram], suites: Sequence[Suites]) -> Score:
        """Run every suite on its program, pay both sides, and update the Mistake Book. `suites`: of each tester, a row
        for each program that was shown."""
        places, count = put_to_tester(programs, self.shape, self._rules), len(programs)
        rows = [in_places(each, places, count) for each in suites]
        past = self._past_opponents().play(index, programs, self._old, [row for each in rows for row in each[count:]])
        own = [each[:count] for each in rows]
        whole = Round(index, self.shape, programs, own, self._rules, past, self._tester_seats)
        score = whole.score(self.arena, partial(self._run.duels.play, self.arena, index))
        self._past_opponents().learn(index, score)
        return self._told(index, score, self._sampled_again(score, programs, partial(self._play_again, index)))

    def grade(self, index: int, programs: Sequence[ReadProgram]) -> Score:
        """Run the golden tests of its question on every program, and pay it the share that it passes."""
        score = grade_round(self.arena, programs, self._rules, index)
        again = partial(
            grade_round, self.arena, rules=dataclasses.replace(self._rules, hidden_rounds=0), round_index=index
        )
        return self._told(index, score, self._sampled_again(score, programs, again))

    def end(self, index: int, metrics: Mapping[str, float] | None = None) -> None:
        """A round ends: metrics, evaluation, snapshots, checkpoint. `metrics`: of a round that was not scored."""
        done = index + 1
        if metrics is not None:
            self._journal.write("round", done, metrics)
        self._log_seats(done)
        every = self.preset.evaluation.every_rounds
        if every and done % every == 0 and done < self.preset.rounds:
            for seat, policy in self._policies.items():
                for role in SEATS if seat == "player" else (role_of(seat),):
                    values = self._gauge.summary(role, policy, done, self._run.hidden_record())
                    self._journal.write("evaluation", done, values, role if seat == "player" else seat)
        if self.preset.options.opponents != "latest":
            for policy in self._policies.values():
                keep_snapshot(policy, done)
        if self.interrupted or done == self.preset.rounds or done % self.preset.save_rounds == 0:
            self._save(done)

    def measure(self, coder: Path, tester: Path | None, rounds_done: int) -> MeasuredSeats:
        """Both roles on all held-out problems. `tester` None: the coder only."""
        self._journal.doing("evaluating")
        result = self._gauge.measured(coder, tester)
        self._journal.write_measured(result, rounds_done)
        return result

    def close(self) -> None:
        """Also after an error in the loop, which leaves its rounds half gone through."""
        self._listen_no_more()
        self._journal.close()

    def written(self, problems: Sequence[Problem]) -> list[WrittenSuite]:
        """What the tester that does not learn writes against programs of the base, validated by the arena."""
        stream = next(iter(self._policies.values())).run.stream
        coder, tester = (
            self._frozen_from(role, model, stream) for role, model in (("coder", self.base), ("tester", self.tester))
        )
        started = time.perf_counter()
        suites = write_suites(coder, tester, self.arena, self.prompts, problems, self.shape)
        scoring = time.perf_counter() - started - coder.seconds - tester.seconds
        if not self._run.rounds_done:  # a resumed run has its line
            self._sampled += coder.tokens + tester.tokens
            values = {TOKENS: float(coder.tokens + tester.tokens), "seconds_validating": scoring}
            self._journal.write("written", 0, values)
        return suites

    def _sampled_again(
        self, score: Score, programs: Sequence[ReadProgram], played: Callable[[Sequence[ReadProgram]], Score]
    ) -> Score:
        """With groups that teach nothing sampled again, up to `algorithm.resample` times. `played`: what became of
        programs of some questions, as of the whole round's."""
        problems = {each.problem.problem_id: each.problem for each in programs}
        for attempt in range(1, self.preset.algorithm.resample + 1):
            learnt = score.batches[:1] if self._frozen else score.batches  # beside a tester that does not learn
            silent = [problems[name] for name in silent_questions(learnt)]
            if not silent:
                break
            coder = self._playing("coder")[0]
            again = self.read(silent, coder.sample(self.prompts.coder(silent), self.shape.programs))
            try:
                score = with_groups(score, played(again), attempt)
            except SandboxError:  # of these few; a sandbox that is gone ends the next round
                break
        return score

    def _play_again(self, index: int, programs: Sequence[ReadProgram]) -> Score:
        """Programs of some questions against new suites. The past does not play, and no duel is kept."""
        rules = dataclasses.replace(self._rules, hidden_rounds=0)
        places = put_to_tester(programs, self.shape, rules)
        prompts = self.prompts.tester([(programs[place].problem, programs[place].source) for place in places])
        if not any(prompt.fits for prompt in prompts):
            raise SandboxError("no program fits into the tester's prompt")
        testers = self._playing("tester")
        rows = [in_places(tester.sample(prompts, self.shape.suites), places, len(programs)) for tester in testers]
        return Round(index, self.shape, programs, rows, rules, testers=self._tester_seats).score(self.arena)

    def _playing(self, role: str) -> list[Policy | Frozen]:
        """Who plays a role: the seats of that name, else the one model of self-play."""
        found = [policy for seat, policy in self._players.items() if role_of(seat) == role]
        return found or list(self._players.values())

    def _told(self, index: int, first: Score, score: Score) -> Score:
        """Write a round's score down, and let the chooser know of what was sampled first."""
        known = {name: [each for each in row if each is not None] for name, row in first.rewards.items()}
        self._chooser.learn({name: sum(row) / len(row) for name, row in known.items() if row})
        self._sampled += int(score.metrics.get(TOKENS, 0))  # past opponents'
        self._journal.write("round", index + 1, score.metrics)
        return score

    def _log_seats(self, done: int) -> None:
        """How each seat did; what it neither sampled nor learnt in, it waited."""
        found = {seat: policy.metrics() for seat, policy in self._players.items()}
        whole = time.perf_counter() - self._began
        for seat, values in found.items():
            spent = values["seconds_generating"] + values["seconds_learning"]
            self._sampled += int(values[TOKENS])
            self._journal.write("seat", done, {**values, "seconds_waiting": max(0.0, whole - spent)}, seat)

    def _save(self, done: int) -> None:
        """Checkpoints of all seats. One is complete once everything of it is on disk."""
        policies = list(self._policies.values())
        keeper = next((policy for policy in policies if not policy.seat.startswith("tester")), None)
        for policy in policies:
            checkpoint = policy.run.output / f"checkpoint-{done * self.shape.updates}"
            policy.save(checkpoint)
            if not checkpoint.is_dir():  # it is named by the steps that the policy took
                raise ConfigurationError(
                    f"{policy.seat} must take {self.shape.updates} steps in each of {done} rounds, got another number; "
                    f"to let a seat rest, set grpo.{policy.seat}.learning_rate to 0"
                )
            policy.save_estimator(checkpoint)
            if policy is keeper or keeper is None:
                self.arena.book.save(checkpoint / name_of(self.arena.book.parts))
                (checkpoint / QUESTIONS).write_text(state_text(self._chooser, "algorithm.questions"), encoding="utf-8")
            if self._past is not None and policy.seat == self._past.seat:
                self._past.save(checkpoint)
            mark_complete(checkpoint, done, self.preset.algorithm.optimizer)
            forget_old(policy.run.output, policy.run.outputs.values(), self.preset.keep_checkpoints)
        self._saved = done
        self._run.copy()

    def _listen(self) -> None:
        """From now on the first Ctrl-C or SIGTERM lets the round finish. A second Ctrl-C is a KeyboardInterrupt, a
        second SIGTERM nothing: a scheduler sends it to a process and to its group."""

        def stop(number: int, frame: object) -> None:
            if self.interrupted and number == signal.SIGTERM:
                return
            if self.interrupted:
                raise KeyboardInterrupt
            self.interrupted = True
            self._journal.say("stopping after this round (Ctrl-C again: at once, without a checkpoint)")

        if threading.current_thread() is threading.main_thread():
            self._callers = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}

    def _listen_no_more(self) -> None:
        for number, handler in self._callers.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)  # None: it was none of Python's
        self._callers = {}

    @property
    def _players(self) -> dict[str, Policy | Frozen]:
        return {**self._policies, **self._frozen}

    @property
    def _tester_seats(self) -> list[str]:
        """Their names, also where a tester does not learn."""
        return [seat for seat in self._run.seats if role_of(seat) == "tester"] or ["tester"]

    @property
    def _gauge(self) -> Gauge:
        return Gauge(self.arena, self.preset, self._run.held_out, self.prompts, self._backend.model)

    @property
    def _rules(self) -> RoundRules:
        preset, options = self.preset, self.preset.options
        if self._frozen:  # of a tester that does not learn, the selection alone
            options = Options(selection=options.selection)
        seed = self._run.seat_of("tester", self.base).seed
        return RoundRules(options, seed, preset.evaluation.hidden_rounds, preset.algorithm.credit)

    def _past_opponents(self) -> PastOpponents:
        if self._past is None:
            attacker = self._run.seat_of("tester", self.base)
            folders = {role: self._run.seat_of(role, self.base).output for role in ("coder", "tester")}
            self._past = PastOpponents(attacker, folders, self.arena, self.prompts, self._backend.model)
        return self._past
