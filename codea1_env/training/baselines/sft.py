"""The tester's seat by supervised learning on what the arena left of the base's suites: with a stock `trl.SFTTrainer`,
or with `trainer: packed` by the same loss.

They are written and validated once, before the first step, by the seat itself. A resumed run writes the same ones
again. Where they are fewer than the run's rows, they are gone over again. Does not learn from kills: only validity
decides what is kept.
"""

from __future__ import annotations

import dataclasses
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from codea1_env.arena.arena import Arena
from codea1_env.errors import ConfigurationError
from codea1_env.extras import extra
from codea1_env.language_models.loading import load_tokenizer
from codea1_env.players.templates import begun, fenced
from codea1_env.problems.problem import Problem
from codea1_env.training.advantages import Grpo
from codea1_env.training.baselines.written_tests import WrittenSuite, write_suites
from codea1_env.training.config.batches import seat_rows
from codea1_env.training.grpo.packed import Group, PackedTrainer
from codea1_env.training.grpo.packed_loss import Own, PackedRow, StepShape
from codea1_env.training.grpo.seats import arena_reward, grpo_arguments, suite_label, told_arguments, trainer_parts
from codea1_env.training.grpo.trainer import ConfiguredCallback, FiniteCallback, NormKept
from codea1_env.training.models.chat import Chat, chat_of, tokens_of
from codea1_env.training.models.lora import adapter_config
from codea1_env.training.models.sampling import load_model
from codea1_env.training.run.callbacks import RoundClock, SeatCallback, SeatHooks, SeatRun

with extra("train", "training needs"):
    from datasets import Dataset
    from transformers import TrainingArguments
    from transformers.trainer_callback import PrinterCallback
    from trl import SFTConfig, SFTTrainer

SUITES = "suites.jsonl"
"""What the tester learns from, in the seat's directory; one suite a line, the empty ones left out."""
IGNORED = -100
"""The label of a token that is not learnt."""

_log = logging.getLogger(__name__)


def supervised_tester(
    run: SeatRun,
    hooks: SeatHooks,
    arena: Arena,
    asked: Sequence[Problem],
    log_round: Callable[[int, Mapping[str, float]], None],
) -> Any:
    """The tester's trainer. `asked`: the problems of all rounds in order, `questions` a round.

    A round is as many suites as the tester of the duel learns from. Where the base writes no test that counts there is
    nothing to learn, and the tester stays as it was, with a warning.
    """
    tokenizer = load_tokenizer(run.base)
    if tokenizer.eos_token_id is None:
        raise ConfigurationError(
            f"a tester that learns from suites must learn where they end: its tokenizer must have an eos_token, got "
            f"none in {run.base}"
        )
    written = write_suites(run, arena, run.base, asked)
    kept = [suite for suite in written if suite.tests]
    run.output.mkdir(parents=True, exist_ok=True)
    (run.output / SUITES).write_text("".join(map(_line, kept)), encoding="utf-8")
    if not kept:
        _log.warning("none of the base tester's %d suites has a test that counts: it learns nothing", len(written))
        base = load_model(run.base, run.preset)
        return Untrained(base.model, base.tokenizer)
    rows = [_tokens(suite, tokenizer, chat_of(run.preset)) for suite in kept]

    def log(round_index: int, values: Mapping[str, float]) -> None:
        hooks.log(round_index, values)
        log_round(round_index, {"loss": values["loss"], "kept_suites": len(kept) / len(written)})

    callback = SeatCallback(run, dataclasses.replace(hooks, log=log), RoundClock())
    if run.preset.trainer == "packed":
        return PackedSupervised(run, rows, callback)
    trainer = FiniteSFTTrainer(
        model=str(run.base),
        args=_arguments(run),
        train_dataset=Dataset.from_list(rows),
        processing_class=tokenizer,
        callbacks=[ConfiguredCallback(), FiniteCallback("tester", lambda: trainer.norm), callback],
        peft_config=adapter_config(run.preset.lora),
    )
    trainer.remove_callback(PrinterCallback)
    return trainer


class FiniteSFTTrainer(NormKept, SFTTrainer):  # type: ignore[misc]  # the base class has no types
    """TRL's trainer, which ends before a step that would make the weights useless."""


class PackedSupervised(PackedTrainer):
    """The packed trainer on suites that are given: as in TRL, the mean over the tokens of a step."""

    def __init__(self, run: SeatRun, rows: Sequence[Mapping[str, list[int]]], callback: SeatCallback) -> None:
        """`rows`: as `_tokens` makes them."""
        self._demonstrations = [_demonstration(row) for row in rows]
        arguments = grpo_arguments(run, "tester", seat_rows(run.preset, "tester"))
        parts = trainer_parts(run, arguments, {"prompt": []}, arena_reward, rollout=None)
        super().__init__(run, "tester", Grpo(run.preset.algorithm), suite_label, [callback], **parts)

    def lesson(self) -> tuple[list[Group], StepShape]:
        """The next suites, those of one prompt together, as often over all of them as it takes."""
        shape = self._run.preset.round
        count = shape.questions * shape.attacked * shape.suites
        first = self.state.global_step // shape.updates * count
        groups: dict[tuple[int, ...], list[PackedRow]] = {}
        for place in range(first, first + count):
            prompt, row = self._demonstrations[place % len(self._demonstrations)]
            groups.setdefault(prompt, []).append(row)
        lengths = [len(row.tokens) for rows in groups.values() for row in rows]
        updates = shape.updates
        step = StepShape(count // updates, sum(lengths) / updates, max(lengths))
        return list(groups.items()), step

    def objective(self, group: Sequence[PackedRow], step: StepShape) -> Own:
        """The negative log-likelihood."""
        return Own(group, lambda batch: -(batch.logps * batch.mask).sum() / batch.tokens, step, self.args)


def _demonstration(row: Mapping[str, list[int]]) -> tuple[tuple[int, ...], PackedRow]:
    """The prompt and the answer of a row."""
    start = row["labels"].count(IGNORED)
    return tuple(row["input_ids"][:start]), PackedRow(row["input_ids"][start:], (), 1.0)


@dataclasses.dataclass(frozen=True, slots=True)
class Untrained:
    """A model that has nothing to learn from; has what `seats.train` asks of a trainer."""

    model: Any
    processing_class: Any

    def train(self, resume_from_checkpoint: str | None = None) -> None:
        """Nothing."""


def _tokens(suite: WrittenSuite, tokenizer: Any, chat: Chat) -> dict[str, list[int]]:
    """One row: the prompt as the tester of the duel sees it, and the suite, whose tokens alone are learnt."""
    messages = chat.tester(suite.problem, suite.program)
    begin, text = begun(messages), _text(suite)
    whole = fenced(text) if begin.is_in_fence else text
    is_continued = whole.startswith(begin.answer)  # else the answer is learnt from its own beginning
    prompt = tokens_of(tokenizer, messages if is_continued else begin.messages)
    said = whole.removeprefix(begin.answer) if is_continued else whole
    answer = tokenizer(said, add_special_tokens=False)["input_ids"] + [tokenizer.eos_token_id]
    return {"input_ids": prompt + answer, "labels": [IGNORED] * len(prompt) + answer}


def _text(suite: WrittenSuite) -> str:
    return "\n".join(map(str, suite.tests))


def _line(suite: WrittenSuite) -> str:
    return json.dumps({"problem_id": suite.problem.problem_id, "program": suite.program, "suite": _text(suite)}) + "\n"


def _arguments(run: SeatRun) -> Any:
    """TRL's configuration: what the tester of the duel has, as far as supervised learning has it too."""
    shared = {field.name for field in dataclasses.fields(TrainingArguments)} | {"model_init_kwargs"}
    told = told_arguments(run, "tester", seat_rows(run.preset, "tester"))
    return SFTConfig(
        **{name: value for name, value in told.items() if name in shared},
        train_sampling_strategy="sequential",  # the schedule of questions is in random order already
        max_length=None,
    )
