"""A GRPO trainer whose advantages are ours: for what TRL's reward interface cannot express.

The stock trainer runs wherever it can do what the options ask (`stock_suffices`). Generation, loss, optimizer, logging
and checkpoints are TRL's in both cases. Does not promise to work with any TRL but the pinned one: two private methods
are wrapped, here and nowhere else.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from codea1_env.extras import extra
from codea1_env.training.advantages import Span
from codea1_env.training.callbacks import SeatCallback, SeatRun
from codea1_env.training.generators import after_building, before_building
from codea1_env.training.learning_rule import LearningRule, RoundAdvantages, RowLabel
from codea1_env.training.options import TURNS, Options
from codea1_env.training.past import SnapshotCallback
from codea1_env.training.ranks import gathered

with extra("train", "training needs"):
    import torch
    from transformers import TrainerCallback
    from transformers.trainer_callback import PrinterCallback
    from trl import GRPOTrainer

STATE = "learning_rule.json"
UNFINISHED = "\N{REPLACEMENT CHARACTER}"

LabelOf = Callable[[Mapping[str, Any]], RowLabel]
"""The label of a row of the batch, from its columns."""


def stock_suffices(options: Options, seat: str) -> bool:
    """Whether TRL's own advantages are what the options ask for; its `scale_rewards` takes the scale."""
    is_by_row = options.credit == "suite" or seat == "coder"
    return is_by_row and (options.baseline, options.zero_variance) == ("group", "keep")


def open_trainer(
    run: SeatRun,
    seat: str,
    label_of: LabelOf,
    callback: SeatCallback,
    *,
    own_groups: bool = False,
    keep: Callable[[Path], None] | None = None,
    **trainer: Any,
) -> Any:
    """The trainer that the run's options need, with the callbacks that they need. `trainer`: GRPOTrainer's arguments.

    `seat`: whose turns it takes where seats alternate. `callback` comes last: it marks checkpoints as complete. `keep`:
    leaves what else must be known of the seat in a checkpoint.
    """
    options, updates = run.preset.options, run.preset.round.updates
    before_building(trainer["args"])
    callbacks: list[Any] = []
    if options.schedule == "alternating" and seat in TURNS:
        callbacks.append(TurnCallback(lambda step: options.learns(seat, step // updates)))
    if options.opponents != "latest":
        callbacks.append(SnapshotCallback(run))
    if keep is not None:
        callbacks.append(KeepCallback(keep))
    if stock_suffices(options, seat) and not own_groups:
        opened: Any = GRPOTrainer(callbacks=[*callbacks, callback], **trainer)
    else:
        rule = LearningRule(options)
        if run.resume_from is not None:
            rule.restore(json.loads((run.resume_from / STATE).read_text(encoding="utf-8")))
        if options.zero_variance == "drop":
            callbacks.append(TurnCallback(lambda step: rule.teaches))
        callbacks += [KeepCallback(lambda checkpoint: save_rule(rule, checkpoint)), callback]
        opened = SeatTrainer(rule=rule, label_of=label_of, own_groups=own_groups, callbacks=callbacks, **trainer)
    opened.remove_callback(PrinterCallback)
    after_building(opened)
    return opened


class SeatTrainer(GRPOTrainer):  # type: ignore[misc]  # the base class has no types
    """The stock trainer but for the advantages, and the mask of rows that the rule leaves out of the loss."""

    def __init__(self, *args: Any, rule: LearningRule, label_of: LabelOf, own_groups: bool, **options: Any) -> None:
        """`own_groups`: groups are the labels', not TRL's runs of `num_generations` rows."""
        super().__init__(*args, **options)
        self.rule = rule
        self._label_of = label_of
        self._replaces = own_groups or (rule.options.baseline, rule.options.credit) != ("group", "suite")
        self._gathered_rewards: list[float | None] = []

    def _calculate_rewards(self, *args: Any, **options: Any) -> Any:
        rewards = super()._calculate_rewards(*args, **options)  # (rows of all ranks, 1)
        self._gathered_rewards = [None if value != value else value for value in rewards[:, 0].tolist()]
        return rewards

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        batch: dict[str, Any] = super()._generate_and_score_completions(inputs)
        own = [self._label_of(row) for row in inputs]
        labels: list[RowLabel] = gathered(own)
        found = self.rule.advantages(self._gathered_rewards, labels)
        first = self.accelerator.process_index * len(own)
        if self.rule.options.credit == "test":
            batch["advantages"] = self._per_token(found, first, own, batch)
        elif self._replaces:  # else TRL has computed the same, and its last bits stay
            rows = found.rows[first : first + len(own)]
            batch["advantages"] = torch.tensor(rows, dtype=torch.float32, device=batch["advantages"].device)
        if self._replaces:  # TRL looked at its own groups
            self._metrics["train"]["frac_reward_zero_std"][-1] = found.zero_share
        if any(found.silent):
            self._mask(found.silent[first : first + len(own)], batch)
        return batch

    def _per_token(self, found: RoundAdvantages, first: int, labels: Sequence[RowLabel], batch: dict[str, Any]) -> Any:
        tokens, mask = batch["completion_ids"], batch["completion_mask"]
        advantages = torch.zeros(tokens.shape, dtype=torch.float32)
        for row, label in enumerate(labels):
            length = int(mask[row].sum())
            written = tokens[row, :length].tolist()
            offsets = token_offsets(self.processing_class, written) if label.spans else [(0, 0)] * length
            values = found.of_tokens(first + row, offsets, label.spans)
            advantages[row, :length] = torch.tensor(values, dtype=torch.float32)
        return advantages.to(batch["advantages"].device)

    def _mask(self, silent: Sequence[bool], batch: dict[str, Any]) -> None:
        """Take rows out of the loss and out of the number of tokens that it is a mean over."""
        mask = batch.get("tool_mask", torch.ones_like(batch["completion_mask"])).clone()
        mask[torch.tensor(silent, device=mask.device)] = 0
        batch["tool_mask"] = mask
        batch["num_items_in_batch"] = self.accelerator.gather((mask * batch["completion_mask"]).sum()).sum()


def token_offsets(tokenizer: Any, tokens: Sequence[int]) -> list[Span]:
    """The characters that every token adds to the decoded text, special tokens none.

    A character of several tokens is the last one's. Time is linear: what is complete is not decoded again, but for the
    one piece before, since some tokenizers decode a first token differently.
    """
    offsets: list[Span] = []
    start = done = 0  # of the pieces before and after the last complete character
    known, position = "", 0
    for place in range(len(tokens)):
        text = tokenizer.decode(tokens[start : place + 1], skip_special_tokens=True, clean_up_tokenization_spaces=False)
        if text.endswith(UNFINISHED) and place - done < 8:
            offsets.append((position, position))
            continue
        grown = position + max(0, len(text) - len(known))
        offsets.append((position, grown))
        position = grown
        start, done = done, place + 1
        known = tokenizer.decode(tokens[start:done], skip_special_tokens=True, clean_up_tokenization_spaces=False)
    return offsets


def save_rule(rule: LearningRule, checkpoint: Path) -> None:
    (checkpoint / STATE).write_text(json.dumps(rule.state()), encoding="utf-8")


class KeepCallback(TrainerCallback):  # type: ignore[misc]  # the base class has no types
    """Adds to every checkpoint. Comes before the callback that marks the checkpoint complete."""

    def __init__(self, keep: Callable[[Path], None]) -> None:
        self._keep = keep

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if state.is_world_process_zero:
            self._keep(Path(args.output_dir) / f"checkpoint-{state.global_step}")


class TurnCallback(TrainerCallback):  # type: ignore[misc]  # the base class has no types
    """Lets a seat rest, in another's turn or where there is nothing to learn from.

    Without gradients AdamW touches neither weights (by decay) nor its moments.
    """

    def __init__(self, learns: Callable[[int], bool]) -> None:
        """`learns(step)`: whether the optimizer step that follows `step` steps counts."""
        self._learns = learns

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, model: Any = None, **kwargs: Any) -> None:
        if not self._learns(state.global_step):
            for parameter in model.parameters():
                parameter.grad = None
