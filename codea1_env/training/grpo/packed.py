"""A seat's trainer for small models on two cores or one GPU, in the place of TRL's: a frozen base for all seats, an
adapter for each.

Samples with `language_models/continuous.py` and learns with `language_models/learner.py`; advantages, losses, schedule,
callbacks and checkpoints have the meaning and the names that they have under TRL. A group in which no row has an
advantage is not computed where `grpo.beta` is 0: its gradient is zero. What is sampled depends on the run's seed, the
seat, the round and the row, so that a resumed run goes on to the same bits on the same processor and number of threads;
on a GPU that is not promised.

What it cannot do is refused by `require_packed` in `config/grpo_section.py`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from codea1_env.extras import extra
from codea1_env.language_models.learner import Learner
from codea1_env.language_models.loading import require_digest
from codea1_env.language_models.lora import Adapter
from codea1_env.language_models.rollouts import RolloutRequest, RolloutSampling
from codea1_env.players.chat import said_text
from codea1_env.players.templates import begun
from codea1_env.training.advantages import Estimator, groups_of, numbers_of, sample_deviation, without_signal
from codea1_env.training.config.batches import seat_rows
from codea1_env.training.grpo.packed_loss import Clipped, Own, PackedRow, StepShape
from codea1_env.training.grpo.sampled import SampledResponse
from codea1_env.training.losses import divergence, own_loss, require_finite
from codea1_env.training.models.chat import tokens_of
from codea1_env.training.models.shared_base import SeatModel, shared_base
from codea1_env.training.row_labels import RowLabel
from codea1_env.training.run.callbacks import SeatRun
from codea1_env.training.run.resuming import STATE, as_configured

with extra("train", "training needs"):
    import torch
    from torch import Tensor
    from transformers import TrainerControl, TrainerState, get_scheduler

Group = tuple[tuple[int, ...], list[PackedRow]]
"""A prompt with the responses that are learnt from."""
GAP = "sampling/sampling_logp_difference/mean"
"""TRL's name of how far the sampler's log-probabilities are from the learner's."""


@dataclass(frozen=True, slots=True)
class _Row:
    """One response of the round with all that is known of it."""

    prompt: tuple[int, ...]
    tokens: tuple[int, ...]
    old: tuple[float, ...]
    is_cut_off: bool
    label: RowLabel
    reward: float
    """Not a number: no score."""
    counts: bool
    """In the loss."""


class PackedTrainer:
    """Has what recipes, seats and callbacks use of a trainer of TRL."""

    def __init__(
        self,
        run: SeatRun,
        seat: str,
        estimator: Estimator,
        label_of: Callable[[Mapping[str, Any]], RowLabel],
        callbacks: Sequence[Any],
        *,
        args: Any,
        train_dataset: Any,
        processing_class: Any,
        reward_funcs: Callable[..., Sequence[float | None]],
        rollout_func: Callable[[Sequence[Any], Any], dict[str, list[Any]]] | None,
        **_: Any,
    ) -> None:
        """The last ones are GRPOTrainer's arguments."""
        shared = shared_base(run.base, run.preset)
        lora = run.preset.lora
        adapter = Adapter(shared.model.base.shape, lora.rank, lora.alpha, run.seed, shared.model.base.device)
        shared.adapters[str(run.output)] = adapter
        self.model, self.processing_class, self.args = SeatModel(shared, str(run.output)), processing_class, args
        self.state, self.teaches = TrainerState(), True
        self._run, self._seat, self._estimator, self._label_of = run, seat, estimator, label_of
        self._callbacks, self._dataset = callbacks, train_dataset
        self._rewards, self._rollout = reward_funcs, rollout_func
        self._own_loss = own_loss(run.preset.algorithm)
        self._learner = Learner(shared.model.base, adapter)
        self._optimizer = torch.optim.AdamW(
            adapter.parameters, args.learning_rate, (args.adam_beta1, args.adam_beta2), args.adam_epsilon,
            args.weight_decay,
        )  # fmt: skip
        self._schedule = get_scheduler(
            args.lr_scheduler_type, self._optimizer, args.get_warmup_steps(args.max_steps), args.max_steps,
            args.lr_scheduler_kwargs,
        )  # fmt: skip
        self._asked = 0  # calls of `sample` in this round
        self._logs: dict[str, float] = {}
        self._measured: dict[str, list[Tensor]] = {}  # of this round's tokens, whose mean is logged

    def sample(
        self, prompts: Sequence[Sequence[int]], group: int, begun: Sequence[str] = (), tests: int = 0
    ) -> list[SampledResponse]:
        """One response to each prompt; they come in groups of `group` equal ones. `begun`: how each prompt begins its
        answer; empty: none does. `tests`: as in a `RolloutRequest`."""
        stream = (self._run.seed, self._seat, self.state.global_step, self._asked)
        self._asked += 1
        beginnings = begun or [""] * len(prompts)
        requests = [
            RolloutRequest(tuple(prompt), group, (*stream, place), self.model.adapter, beginning, tests)
            for place, (prompt, beginning) in enumerate(zip(prompts[::group], beginnings[::group], strict=True))
        ]
        sampling = RolloutSampling(
            self.args.temperature, 1.0, self.args.max_completion_length, self._run.preset.stop_at_fence
        )
        shared, started = self.model.shared, time.perf_counter()
        completions = [completion for answers in shared.sample(requests, sampling) for completion in answers]
        self._count(tokens=sum(len(one.tokens) for one in completions), prompt_tokens=shared.engine.prompt_tokens)
        self._count(sampling_seconds=time.perf_counter() - started)
        return [SampledResponse(list(one.tokens), list(one.log_probs), one.finish) for one in completions]

    def train(self, resume_from_checkpoint: str | None = None) -> None:
        """All rounds, or those after the checkpoint."""
        if resume_from_checkpoint:
            self._resume(Path(resume_from_checkpoint))
        control, updates = TrainerControl(), self._run.preset.round.updates
        while self.state.global_step < self.args.max_steps and not control.should_training_stop:
            self._tell("on_step_begin", control)
            self._logs, self._measured, self._asked = {}, {}, 0
            groups, step = self.lesson()
            self.model.shared.engine.release()
            for update in range(updates):
                if update:
                    self._tell("on_step_begin", control)
                self._update(groups[update::updates], step, control, is_first=not update)
                self.state.global_step += 1
                self._tell("on_step_end", control)
            self._log(control)
            due = self.state.global_step % self.args.save_steps == 0 or self.state.global_step == self.args.max_steps
            if due or control.should_save:
                self._save()
                self._tell("on_save", control)
                control.should_save = False

    def lesson(self) -> tuple[list[Group], StepShape]:
        """What a round teaches: by reinforcement, its responses with their advantages."""
        return self._advantages(self._round())

    def objective(self, group: Sequence[PackedRow], step: StepShape) -> Clipped | Own:
        """What is made small of one group."""
        if self._own_loss is None:
            return Clipped(group, self._run.preset.algorithm.loss_type, step, self.args)
        return Own(group, self._own_loss, step, self.args)

    def _round(self) -> list[_Row]:
        round_index = self.state.global_step // self._run.preset.round.updates
        if self._rollout is None:
            return self._answers(round_index)
        learnt = seat_rows(self._run.preset, self._seat).learnt
        batch = self._rollout([""] * learnt, self)
        masks = batch.get("env_mask") or [[1]] * learnt
        columns = {key: batch[key] for key in ("arena_reward", "label")}
        rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
        rewards = self._rewards(completions=None, arena_reward=columns["arena_reward"])
        return [
            _Row(
                tuple(prompt), tuple(tokens), tuple(old), finish == "length", self._label_of(row), _number(reward),
                bool(mask[0]),
            )
            for prompt, tokens, old, finish, row, reward, mask in zip(
                batch["prompt_ids"], batch["completion_ids"], batch["logprobs"], batch["finish"], rows, rewards, masks,
                strict=True,
            )
        ]  # fmt: skip

    def _answers(self, round_index: int) -> list[_Row]:
        """N responses to each question of the round, and what they are paid."""
        questions, group = self._run.preset.round.questions, self.args.num_generations
        rows = self._dataset[round_index * questions : (round_index + 1) * questions]
        prompts = [tokens_of(self.processing_class, messages) for messages in rows["prompt"]]
        repeated = [prompt for prompt in prompts for _ in range(group)]
        begins = [begun(messages) for messages in rows["prompt"] for _ in range(group)]
        sampled = self.sample(repeated, group, [begin.answer for begin in begins])
        texts = [
            said_text(self.processing_class, *each) for each in zip([a.tokens for a in sampled], begins, strict=True)
        ]
        columns = {key: [value for value in values for _ in range(group)] for key, values in rows.items()}
        told = {key: values for key, values in columns.items() if key != "prompt"}
        rewards = self._rewards(
            completions=[[{"role": "assistant", "content": text}] for text in texts], trainer_state=self.state, **told
        )
        labels = [self._label_of({key: values[i] for key, values in told.items()}) for i in range(len(texts))]
        return [
            _Row(
                tuple(prompt), tuple(one.tokens), tuple(one.logprobs or ()), one.finish == "length", label,
                _number(reward), counts=True,
            )
            for prompt, one, label, reward in zip(repeated, sampled, labels, rewards, strict=True)
        ]  # fmt: skip

    def _advantages(self, rows: Sequence[_Row]) -> tuple[list[Group], StepShape]:
        """The groups that are learnt from, with their prompts, and what losses are divided by."""
        algorithm = self._run.preset.algorithm
        labels, rewards = [row.label for row in rows], torch.tensor([row.reward for row in rows])
        advantages = numbers_of(self._estimator, rewards, labels)
        silent = without_signal(advantages.abs(), labels)
        masks_cut_off = bool(self.args.mask_truncated_completions)
        counts = torch.tensor([row.counts and not (masks_cut_off and row.is_cut_off) for row in rows])
        counts &= ~rewards.isnan()  # no score: nor is the divergence learnt from
        if algorithm.zero_variance == "drop":
            counts &= ~silent
            self.teaches = bool(counts.any())
        groups: dict[str, Group] = {}
        # A loss of one's own and the divergence from the base have a gradient where there is no advantage.
        is_everywhere = self._own_loss is not None or self.args.beta > 0
        is_learnt = counts & (torch.ones_like(silent) if is_everywhere else ~silent & (advantages != 0))
        for row, advantage, is_in in zip(rows, advantages.tolist(), is_learnt.tolist(), strict=True):
            if is_in:
                _, members = groups.setdefault(row.label.group, (row.prompt, []))
                members.append(PackedRow(row.tokens, row.old, advantage))
        if self.args.beta:
            groups = {name: (prompt, self._beside_base(prompt, group)) for name, (prompt, group) in groups.items()}
        self._describe(rows, rewards, silent)
        tokens = sum(len(row.tokens) for row, is_in in zip(rows, counts.tolist(), strict=True) if is_in)
        updates = self._run.preset.round.updates
        step = StepShape(
            rows=len(rows) // updates,
            tokens=max(tokens, 1) / updates,
            longest=self.args.max_completion_length,
        )
        return list(groups.values()), step

    def _beside_base(self, prompt: Sequence[int], group: Sequence[PackedRow]) -> list[PackedRow]:
        """With the base's log-probabilities."""
        told = self._learner.log_probs(prompt, [row.tokens for row in group], self.args.temperature, of_base=True)
        return [replace(row, base=values.tolist()) for row, values in zip(group, told.log_probs, strict=True)]

    def _describe(self, rows: Sequence[_Row], rewards: Any, silent: Any) -> None:
        lengths = [len(row.tokens) for row in rows]
        deviations = [sample_deviation(rewards[members]) for members in groups_of([row.label.group for row in rows])]
        self._logs |= {
            "reward": float(rewards.nanmean()),
            "reward_std": float(torch.cat(deviations).nanmean()),
            "frac_reward_zero_std": float(silent.float().mean()),
            "completions/mean_length": sum(lengths) / len(lengths),
            "completions/clipped_ratio": sum(row.is_cut_off for row in rows) / len(rows),
        }

    def _update(self, groups: Sequence[Group], step: StepShape, control: Any, *, is_first: bool) -> None:
        """One optimizer step. `is_first`: of the round; how far learner and sampler are apart shows only there."""
        packs = (self._learner.packs(len(prompt), [row.tokens for row in group]) for prompt, group in groups)
        step = replace(step, passes=max(1, sum(map(len, packs))))
        loss = 0.0
        for prompt, group in groups:
            objective = self.objective(group, step)
            learnt = self._learner.learn(prompt, [row.tokens for row in group], objective, self.args.temperature)
            loss += objective.total
            self._measure("entropy", learnt.entropies)
            both = list(zip(learnt.log_probs, group, strict=True))
            self._measure("kl", [divergence(now, torch.tensor(row.base)) for now, row in both if row.base])
            if is_first:
                self._measure(GAP, [(now - torch.tensor(row.old)).abs() for now, row in both if row.old])
            self._count(learnt_tokens=sum(len(row.tokens) for row in group))
        parameters = list(self.model.parameters())
        for parameter in parameters:  # what is not learnt from has a gradient of zero, and not none
            parameter.grad = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        norm = torch.nn.utils.clip_grad_norm_(parameters, self.args.max_grad_norm)
        require_finite(norm, self._seat)
        self._tell("on_pre_optimizer_step", control)
        self._logs["learning_rate"] = self._schedule.get_last_lr()[0]  # of this step, and not of the next one
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)
        self._schedule.step()
        if groups or "loss" not in self._logs:  # a step that was learnt from is not hidden by one that was not
            self._logs |= {"loss": loss, "grad_norm": float(norm)}

    def _measure(self, name: str, values: Sequence[Tensor]) -> None:
        """Numbers of tokens, of which the round's mean is logged."""
        self._measured.setdefault(name, []).extend(values)

    def _count(self, **values: float) -> None:
        for name, value in values.items():
            self._logs[name] = self._logs.get(name, 0.0) + value

    def _log(self, control: Any) -> None:
        self._logs |= {name: float(torch.cat(values).mean()) for name, values in self._measured.items() if values}
        seconds = self._logs.pop("sampling_seconds", 0.0)
        if seconds:
            self._logs["tokens_per_second"] = self._logs["tokens"] / seconds
        self._tell("on_log", control, logs=self._logs)

    def _tell(self, event: str, control: Any, **values: Any) -> None:
        for callback in self._callbacks:
            tell = getattr(callback, event)
            tell(self.args, self.state, control, model=self.model, processing_class=self.processing_class, **values)

    def _save(self) -> None:
        checkpoint = Path(self.args.output_dir) / f"checkpoint-{self.state.global_step}"
        self.model.save_pretrained(checkpoint)
        held = {"optimizer": self._optimizer.state_dict(), "schedule": self._schedule.state_dict()}
        torch.save(held, checkpoint / STATE)
        self.state.save_to_json(str(checkpoint / "trainer_state.json"))

    def _resume(self, checkpoint: Path) -> None:
        shared = self.model.shared
        require_digest(shared.model, checkpoint)
        saved = Adapter.load(checkpoint, shared.model.base.shape)
        with torch.no_grad():
            for own, other in zip(self.model.parameters(), saved.parameters, strict=True):
                own.copy_(other)
        held = torch.load(checkpoint / STATE, map_location="cpu", weights_only=True)
        self._optimizer.load_state_dict(held["optimizer"])
        self._schedule.load_state_dict(held["schedule"])
        as_configured(self._optimizer, self._schedule, self.args)
        record = json.loads((checkpoint / "trainer_state.json").read_text(encoding="utf-8"))
        self.state.global_step = int(record["global_step"])


def _number(reward: float | None) -> float:
    return float("nan") if reward is None else float(reward)
