"""One model in both seats: a round's batch holds the programs that it wrote and the suites that it attacked them with.

The definition, since the method's released code has none (docs/self-play.md):

1. The model answers each question N times as coder and attacks each program with M suites as tester, with the same
   weights. Rewards are those of the duel: R_C for programs, R_T for suites, the Mistake Book included.
2. A batch holds all questions * N programs and the suites of the selected programs, questions * update_n * M. Its loss
   is one mean over the tokens of both roles.
3. Advantages are normalised in groups, the N programs of a question and the M suites of a program, each by its own mean
   and deviation. None crosses a role.

The learning rate is the coder's; the longest response is the longer of the roles' limits. Does not promise that the
roles weigh the same: the one that writes more tokens has more of the mean.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from codea1_env.errors import ConfigurationError
from codea1_env.problems.problem import Problem
from codea1_env.training.config.batches import SeatRows, seat_rows
from codea1_env.training.config.presets import Preset
from codea1_env.training.grpo.past_opponents import PastOpponents
from codea1_env.training.grpo.seats import (
    BatchRow,
    SampledSuite,
    arena_reward,
    batch_of,
    grpo_arguments,
    rules_of,
    sample_suites,
    sample_texts,
    suite_label,
    trainer_parts,
)
from codea1_env.training.grpo.trainer import open_trainer
from codea1_env.training.models.chat import chat_of
from codea1_env.training.round.rounds import RoundScore, attacks_of, in_places, put_to_tester, scored_round
from codea1_env.training.row_labels import RowLabel
from codea1_env.training.run.callbacks import RoundClock, SeatCallback, SeatHooks, SeatRun
from codea1_env.training.run.duel_sample import FOLDER, DuelSample
from codea1_env.training.run.ranks import from_first, gathered, own_share

PLAYER = "player"
"""Name of the one seat."""


class _SelfPlay:
    """Plays a round each time that the trainer asks for a batch."""

    def __init__(
        self,
        run: SeatRun,
        arena: Any,
        log: Callable[[int, Mapping[str, float]], None],
        asked: Sequence[Problem],
    ) -> None:
        """As `self_play_trainer`."""
        self._run, self._arena, self._log, self._asked = run, arena, log, asked
        self._rules = rules_of(run)
        self._chat = chat_of(run.preset)
        self._duels = DuelSample(run.output.parent / FOLDER, run.preset.keep_duels)
        self.clock = RoundClock()
        self.past = PastOpponents(run, coder=run.output, tester=run.output)

    def batch(self, prompts: Sequence[Any], trainer: Any) -> dict[str, list[Any]]:
        """TRL's rollout: this rank's share of the round's rows. The prompts are placeholders, one for each of them."""
        shape, options = self._run.preset.round, self._run.preset.options
        round_index = trainer.state.global_step // shape.updates
        self.clock.start()
        problems = self._asked[round_index * shape.questions : (round_index + 1) * shape.questions]
        asking = [self._chat.coder(problem) for problem in own_share(problems)]
        programs = gathered(sample_texts(trainer, asking, shape.programs))
        attacks = attacks_of(
            [problem for problem in problems for _ in range(shape.programs)],
            [program.text or "" for group in programs for program in group],
            self._run.preset.reward.fidelity,
        )
        old = self.past.attacks(round_index, problems)
        places = put_to_tester(attacks, shape.programs, shape.attacked, self._rules)
        attacked = own_share((*(attacks[place] for place in places), *old))
        rows = gathered(sample_suites(trainer, attacked, shape.suites, self._chat, shape.tester_prompt_tokens))
        suites = in_places(rows, places, len(attacks))
        texts = [[suite.text for suite in group] for group in suites]
        played = self.past.play(round_index, attacks, old, texts[len(attacks) :])
        self.clock.hand_over()
        play = partial(self._duels.play, self._arena, round_index)
        score = from_first(
            lambda: scored_round(
                self._arena, attacks, texts[: len(attacks)], shape, self._log,
                rules=self._rules, round_index=round_index, past=played, play=play,
            )
        )  # fmt: skip
        self.past.learn(round_index, score)
        self.clock.resume()
        learns = {role: options.learns(role, round_index) for role in ("coder", "tester")}
        learnt = own_share(_rows(problems, programs, suites, score, learns))
        assert len(learnt) == len(prompts), "the placeholder data set has one row per program and selected suite"
        return batch_of(learnt)


def self_play_trainer(
    run: SeatRun,
    hooks: SeatHooks,
    arena: Any,
    log: Callable[[int, Mapping[str, float]], None],
    asked: Sequence[Problem],
) -> Any:
    """The trainer of the one model.

    `arena`: the arena or a handle of it. `log`: takes a round's metrics. `asked`: the problems of all rounds in order,
    `questions` a round.
    """
    arguments = grpo_arguments(run, PLAYER, _divided_rows(run.preset))
    play = _SelfPlay(run, arena, log, asked)
    placeholders = {"prompt": ["(a question of this round)"] * run.preset.rounds}
    parts = trainer_parts(run, arguments, placeholders, arena_reward, rollout=play.batch)
    callback = SeatCallback(run, hooks, play.clock)
    return open_trainer(run, PLAYER, suite_label, callback, keep=play.past.save, **parts)


def _divided_rows(preset: Preset) -> SeatRows:
    """How the rows go to ranks and devices. Raises ConfigurationError where they do not come out even.

    TRL's groups are not looked at: ours are of two sizes.
    """
    rows = seat_rows(preset, PLAYER)
    step = rows.learnt // preset.round.updates
    for count, what in ((preset.round.questions, "questions"), (step, "rows of an optimizer step")):
        if count % rows.ranks:
            raise ConfigurationError(
                f"placement.coder.ranks must divide the {count} {what} of self-play, got {rows.ranks}"
            )
    if step // rows.ranks % rows.per_device:
        raise ConfigurationError(
            f"memory.coder_rows_per_device must divide the {step // rows.ranks} rows that a rank of self-play learns "
            f"from in an update, got {rows.per_device}"
        )
    return rows


def _rows(
    problems: Sequence[Problem],
    programs: Sequence[Sequence[SampledSuite]],
    suites: Sequence[Sequence[SampledSuite]],
    score: RoundScore,
    learns: Mapping[str, bool],
) -> list[BatchRow]:
    """The programs, question by question, then the selected suites, group by group."""
    rewards = iter(score.coder)
    rows = []
    for problem, group in zip(problems, programs, strict=True):
        label = RowLabel(f"coder {problem.problem_id}", problem.problem_id, "coder")  # no group of suites has this name
        rows += [BatchRow(program, next(rewards), label, learns["coder"]) for program in group]
    rows += [BatchRow(suites[row.attack][row.suite], row.reward, row.label, learns["tester"]) for row in score.tester]
    return rows
