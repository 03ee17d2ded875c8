"""A GRPO trainer whose advantages are ours, and whose loss may be one's own.

Generation, optimizer, logging and checkpoints are TRL's, and so is the loss unless `algorithm.loss_type` names another
one. The estimator of `training/advantages.py` always runs, for every seat and configuration; TRL's own advantages are
computed and thrown away. Does not promise to work with any TRL but the pinned one: private methods of it are wrapped or
called here, and nowhere else.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from codea1_env.extras import extra
from codea1_env.players.templates import begun
from codea1_env.training.advantages import Estimator, estimator_of, numbers_of, state_text, without_signal
from codea1_env.training.config.algorithm import Algorithm
from codea1_env.training.config.placement import SEATS
from codea1_env.training.credit import token_advantages, token_offsets
from codea1_env.training.grpo.packed import PackedTrainer
from codea1_env.training.grpo.past_opponents import SnapshotCallback
from codea1_env.training.grpo.sampled import SampledResponse
from codea1_env.training.grpo.vllm_colocated import after_building, before_building
from codea1_env.training.losses import Loss, LossBatch, own_loss, require_finite, value_of
from codea1_env.training.models.chat import tokens_of
from codea1_env.training.row_labels import RowLabel
from codea1_env.training.run.callbacks import SeatCallback, SeatRun
from codea1_env.training.run.ranks import gathered
from codea1_env.training.run.resuming import as_configured

with extra("train", "training needs"):
    import torch
    from transformers import TrainerCallback
    from transformers.trainer_callback import PrinterCallback
    from trl import GRPOTrainer

STATE = "advantage.json"
"""What the estimator remembers, in every checkpoint."""

LabelOf = Callable[[Mapping[str, Any]], RowLabel]
"""The label of a row of the batch, from its columns."""


def open_trainer(
    run: SeatRun,
    seat: str,
    label_of: LabelOf,
    callback: SeatCallback,
    *,
    keep: Callable[[Path], None] | None = None,
    **trainer: Any,
) -> Any:
    """The trainer of a seat, with the callbacks that the run's options need. `trainer`: GRPOTrainer's arguments.

    `seat`: whose turns it takes where seats alternate. `callback` comes last: it marks checkpoints as complete. `keep`:
    leaves what else must be known of the seat in a checkpoint.
    """
    options, algorithm, updates = run.preset.options, run.preset.algorithm, run.preset.round.updates
    before_building(trainer["args"])
    estimator = estimator_of(algorithm)
    if run.resume_from is not None:
        estimator.restore(json.loads((run.resume_from / STATE).read_text(encoding="utf-8")))

    def learns(step: int) -> bool:
        return opened.teaches and (seat not in SEATS or options.learns(seat, step // updates))

    keeps = [lambda checkpoint: save_state(estimator, checkpoint), *([keep] if keep is not None else [])]
    callbacks: list[Any] = [TurnCallback(learns), KeepCallback(keeps)]
    if options.opponents != "latest":
        callbacks.append(SnapshotCallback(run))
    opened: Any
    if run.preset.trainer == "packed":
        opened = PackedTrainer(run, seat, estimator, label_of, [*callbacks, callback], **trainer)
        return opened
    opened = SeatTrainer(
        algorithm=algorithm,
        estimator=estimator,
        label_of=label_of,
        callbacks=[ConfiguredCallback(), *callbacks, FiniteCallback(seat, lambda: opened.norm), callback],
        **trainer,
    )
    opened.remove_callback(PrinterCallback)
    after_building(opened)
    return opened


class NormKept:
    """Beside a trainer of transformers: what `FiniteCallback` asks for."""

    norm: Any = 0.0
    """Of the latest gradient, on all ranks."""

    def _get_grad_norm(self, model: Any, grad_norm: Any = None) -> Any:
        self.norm = super()._get_grad_norm(model, grad_norm=grad_norm)  # type: ignore[misc]  # of the trainer beside it
        return self.norm


class SeatTrainer(NormKept, GRPOTrainer):  # type: ignore[misc]  # the base class has no types
    """TRL's trainer but for the advantages, the mask of rows that are left out of the loss, and a loss of one's own."""

    def __init__(
        self, *args: Any, algorithm: Algorithm, estimator: Estimator, label_of: LabelOf, **options: Any
    ) -> None:
        super().__init__(*args, **options)
        self.algorithm = algorithm
        self.estimator = estimator
        self.teaches = True
        """Whether any row of the latest round is in the loss."""
        self._loss: Loss | None = own_loss(algorithm)
        self._label_of = label_of
        self._gathered_rewards = torch.zeros(0)

    def _tokenize_prompts(self, prompts: list[Any]) -> Any:
        """TRL would close an answer that the prompt begins, and open another one."""
        if begun(prompts[0]).answer:
            return [tokens_of(self.processing_class, messages) for messages in prompts], None, {}
        return super()._tokenize_prompts(prompts)

    def sample(
        self, prompts: list[list[int]], group: int, begun: Sequence[str] = (), tests: int = 0
    ) -> list[SampledResponse]:
        """One response to each prompt by whatever engine TRL generates with. They come in groups of equal ones.

        `begun`, `tests`: as for `PackedTrainer`; TRL's engines go on.
        """
        tokens, logprobs = self._generate_single_turn(prompts, None, {}, group)
        return [SampledResponse(list(row), logprobs[i] if logprobs else None) for i, row in enumerate(tokens)]

    def _calculate_rewards(self, *args: Any, **options: Any) -> Any:
        rewards = super()._calculate_rewards(*args, **options)  # (rows of all ranks, 1)
        self._gathered_rewards = rewards[:, 0]
        return rewards

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        batch: dict[str, Any] = super()._generate_and_score_completions(inputs)
        own = [self._label_of(row) for row in inputs]
        rows: list[RowLabel] = gathered(own)
        advantages = numbers_of(self.estimator, self._gathered_rewards, rows)
        mine = slice(self.accelerator.process_index * len(own), (self.accelerator.process_index + 1) * len(own))
        batch["advantages"], loudest = advantages[mine], advantages.abs()
        if self.algorithm.credit == "test":
            tests = self._test_advantages(rows)
            batch["advantages"] = self._per_token(advantages[mine].tolist(), tests[mine], own, batch)
            # A suite with one good and one bad test teaches, though all suites of its group earn the same.
            loudest = torch.tensor(
                [max(map(abs, [row, *parts])) for row, parts in zip(advantages.tolist(), tests, strict=True)]
            )
        silent = without_signal(loudest, rows)
        self._metrics["train"]["frac_reward_zero_std"][-1] = float(silent.float().mean())  # TRL looked at its groups
        self._logs["advantages"].extend(advantages.tolist())
        left_out = self._gathered_rewards.isnan().cpu()  # no score: nor is the divergence learnt from
        if self.algorithm.zero_variance == "drop":
            left_out |= silent
            self.teaches = not bool(left_out.all())
        if left_out.any():  # of all ranks, which then take the same way
            self._mask(left_out[mine], batch)
        return batch

    def _test_advantages(self, rows: Sequence[RowLabel]) -> list[list[float]]:
        """Of every test of every row, among all tests of the row's group."""
        scored = [
            () if reward != reward else row.test_rewards
            for row, reward in zip(rows, self._gathered_rewards.tolist(), strict=True)
        ]
        earned = torch.tensor([reward for row in scored for reward in row])
        owners = [row for row, tests in zip(rows, scored, strict=True) for _ in tests]
        advantages = iter(numbers_of(self.estimator, earned, owners).tolist())
        return [
            [next(advantages) for _ in tests] or [0.0] * len(row.spans) for row, tests in zip(rows, scored, strict=True)
        ]

    def _per_token(
        self,
        whole: Sequence[float],
        tests: Sequence[Sequence[float]],
        labels: Sequence[RowLabel],
        batch: dict[str, Any],
    ) -> Any:
        tokens, mask = batch["completion_ids"], batch["completion_mask"]
        advantages = torch.zeros(tokens.shape, dtype=torch.float32)
        for row, label in enumerate(labels):
            length = int(mask[row].sum())
            written = tokens[row, :length].tolist()
            offsets = token_offsets(self.processing_class, written) if label.spans else [(0, 0)] * length
            values = token_advantages(offsets, label.spans, tests[row], whole[row])
            advantages[row, :length] = torch.tensor(values, dtype=torch.float32)
        return advantages.to(tokens.device)

    def _mask(self, silent: Any, batch: dict[str, Any]) -> None:
        """Take rows out of the loss and out of the number of tokens that it is a mean over."""
        mask = batch.get("tool_mask", torch.ones_like(batch["completion_mask"])).clone()
        mask[silent.to(mask.device)] = 0
        batch["tool_mask"] = mask
        batch["num_items_in_batch"] = self.accelerator.gather((mask * batch["completion_mask"]).sum()).sum()

    def _compute_loss(self, model: Any, inputs: dict[str, Any]) -> Any:
        if self._loss is None:
            return super()._compute_loss(model, inputs)
        responses, mask = inputs["completion_ids"], inputs["completion_mask"]
        logps, entropies, _ = self._get_per_token_logps_and_entropies(
            model,
            torch.cat([inputs["prompt_ids"], responses], dim=1),
            torch.cat([inputs["prompt_mask"], mask], dim=1),
            responses.size(1),
            compute_entropy=True,
        )
        mask = mask * inputs.get("tool_mask", torch.ones_like(mask))
        advantages = inputs["advantages"]
        batch = LossBatch(
            logps=logps,
            old_logps=inputs.get("old_per_token_logps", logps.detach()),
            ref_logps=inputs.get("ref_per_token_logps"),
            advantages=advantages if advantages.dim() == 2 else advantages.unsqueeze(1),
            mask=mask,
            sampling_ratio=inputs.get("importance_sampling_ratio"),
            tokens=inputs["num_items_in_batch"].clamp(min=1.0)
            / (self.accelerator.num_processes * self.args.steps_per_generation),
            arguments=self.args,
        )
        measured = {"entropy": entropies.detach()}
        if batch.ref_logps is not None:  # without the base's there is no divergence to tell of
            measured["kl"] = batch.kl.detach()
        for name, values in measured.items():
            self._metrics["train"][name].append(float((values * mask).sum() / mask.sum().clamp(min=1.0)))
        return value_of(self._loss, batch) / self.current_gradient_accumulation_steps


def save_state(estimator: Estimator, checkpoint: Path) -> None:
    (checkpoint / STATE).write_text(state_text(estimator), encoding="utf-8")


class KeepCallback(TrainerCallback):  # type: ignore[misc]  # the base class has no types
    """Adds to every checkpoint. Comes before the callback that marks the checkpoint complete."""

    def __init__(self, keeps: Sequence[Callable[[Path], None]]) -> None:
        self._keeps = keeps

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        for keep in self._keeps if state.is_world_process_zero else ():
            keep(Path(args.output_dir) / f"checkpoint-{state.global_step}")


class ConfiguredCallback(TrainerCallback):  # type: ignore[misc]  # the base class has no types
    """Lets the configuration's rates count in a resumed run, and not those of its checkpoint."""

    def on_train_begin(
        self, args: Any, state: Any, control: Any, optimizer: Any = None, lr_scheduler: Any = None, **kwargs: Any
    ) -> None:
        if state.global_step:
            as_configured(optimizer, lr_scheduler, args)


class FiniteCallback(TrainerCallback):  # type: ignore[misc]  # the base class has no types
    """Ends the run before a step that would make the weights useless, and a checkpoint keep them.

    Comes after the callback by which a seat rests: of a gradient that is not used, nothing is asked.
    """

    def __init__(self, seat: str, norm: Callable[[], Any]) -> None:
        """`norm()`: of the gradient of the step that follows."""
        self._seat, self._norm = seat, norm

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, model: Any = None, **kwargs: Any) -> None:
        if any(parameter.grad is not None for parameter in model.parameters()):
            require_finite(self._norm(), self._seat)


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
