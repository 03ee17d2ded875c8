"""The policy for small models on CPUs or one GPU: a frozen base for all seats, an adapter for each.

Samples with `language_models/continuous.py` and learns with `language_models/learner.py`; losses, schedule and
arguments have the meaning and the names that they have under TRL. A group in which no row has an advantage is not
computed where `grpo.beta` is 0: its gradient is zero. What is sampled depends on the run's seed, the seat, the round
and the row, so that a resumed run goes on to the same bits on the same processor and number of threads; on a GPU that
is not promised.

What it cannot do is refused by `require_packed` in `configuration/grpo_section.py`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean

from codea1_env.configuration.batches import seat_rows
from codea1_env.extras import extra
from codea1_env.language_models.learner import Learner
from codea1_env.language_models.loading import require_digest
from codea1_env.language_models.lora import Adapter
from codea1_env.language_models.rollouts import RolloutRequest, RolloutSampling
from codea1_env.training.advantages import Advantages
from codea1_env.training.losses import Loss, divergence, own_loss, require_finite
from codea1_env.training.models.sampling import answers_of
from codea1_env.training.models.shared_base import SeatModel, shared_base
from codea1_env.training.policies.arguments import grpo_arguments
from codea1_env.training.policies.optimizers import own_optimizer
from codea1_env.training.policies.packed_loss import Clipped, Own, PackedRow, StepShape
from codea1_env.training.policies.policy import Policy
from codea1_env.training.run.checkpoints import STATE, as_configured
from codea1_env.training.samples import Batch, Prompt, SamplerSettings, SeatRun, Tokens

with extra("train", "training needs"):
    import torch
    from torch import Tensor
    from transformers import get_scheduler

Group = tuple[tuple[int, ...], list[PackedRow]]
"""A prompt with the responses that are learnt from."""
TRAINER = "trainer_state.json"


@dataclass(frozen=True, slots=True)
class PackedUpdate:
    """The groups of one optimizer step."""

    groups: list[Group]
    step: StepShape
    is_first: bool
    """Of the round: how far learner and sampler are apart shows only there."""
    rests: bool


class PackedPolicy(Policy):
    """One adapter beside the base of the process."""

    def __init__(self, run: SeatRun) -> None:
        shared = shared_base(run.base, run.preset)
        super().__init__(run, shared.model.tokenizer)
        preset, lora = run.preset, run.preset.lora
        self.arguments = grpo_arguments(run, seat_rows(preset, self.seat))
        adapter = Adapter(shared.model.base.shape, lora.rank, lora.alpha, run.seed, shared.model.base.device)
        shared.adapters[str(run.output)] = adapter
        self.model = SeatModel(shared, str(run.output))
        self._own_loss = own_loss(preset.algorithm)
        self._learner = Learner(shared.model.base, adapter)
        told, given = self.arguments, adapter.parameters
        self.optimizer = own_optimizer(preset.algorithm, given, told.learning_rate) or torch.optim.AdamW(
            given, told.learning_rate, (told.adam_beta1, told.adam_beta2), told.adam_epsilon, told.weight_decay
        )
        self._schedule = get_scheduler(
            told.lr_scheduler_type, self.optimizer, told.get_warmup_steps(told.max_steps), told.max_steps,
            told.lr_scheduler_kwargs,
        )  # fmt: skip
        self.steps = 0
        self._asked = 0  # calls of `draw` in this round
        self._logs: dict[str, float] = {}
        self._of_tokens: dict[str, list[Tensor]] = {}  # whose mean is logged
        self._update: PackedUpdate | None = None
        self._loss = 0.0
        self._losses: list[float] = []  # of the round's steps that were learnt from
        if run.resume_from is not None:
            self._load(run.resume_from)

    def begin(self, round_index: int) -> None:
        super().begin(round_index)
        self._asked, self._logs, self._of_tokens, self._losses = 0, {}, {}, []

    def draw(self, prompts: Sequence[Prompt], n: int) -> list[list[Tokens]]:
        stream = (self.run.seed, self.seat, self.steps, self._asked)
        self._asked += 1
        requests = [
            RolloutRequest(prompt.tokens, n, (*stream, place), self.model.adapter, prompt.begun.answer, prompt.tests)
            for place, prompt in enumerate(prompts)
            if prompt.fits
        ]
        told, shared, started = self.arguments, self.model.shared, time.perf_counter()
        sampling = RolloutSampling(told.temperature, 1.0, told.max_completion_length, self.run.preset.stop_at_fence)
        drawn = shared.sample(requests, sampling)
        self._count(tokens=sum(len(one.tokens) for group in drawn for one in group))
        self._count(prompt_tokens=shared.engine.prompt_tokens, sampling_seconds=time.perf_counter() - started)
        each = iter(drawn)
        return [
            [Tokens(tuple(one.tokens), tuple(one.log_probs), one.finish) for one in next(each)] if prompt.fits
            else [Tokens(())] * n
            for prompt in prompts
        ]  # fmt: skip

    def updates(self, batch: Batch, advantages: Advantages) -> Sequence[PackedUpdate]:
        with self._timed("learning"):
            cut_off = torch.tensor([row.sample.finish == "length" for row in batch])
            counts = advantages.learnt & ~(cut_off & bool(self.arguments.mask_truncated_completions))
            drops = self.run.preset.algorithm.zero_variance == "drop"
            rests = advantages.rests or (drops and not bool(counts.any()))
            # A loss of one's own and the divergence from the base have a gradient where there is no advantage.
            is_everywhere = self._own_loss is not None or self.arguments.beta > 0
            taken = counts if is_everywhere else counts & ~advantages.silent & (advantages.rows != 0)
            groups: dict[str, Group] = {}
            for row, advantage, is_in in zip(batch, advantages.rows.tolist(), taken.tolist(), strict=True):
                if is_in and not rests:
                    _, members = groups.setdefault(row.label.group, (row.sample.prompt, []))
                    members.append(PackedRow(row.sample.tokens, row.sample.logprobs or (), advantage))
            if self.arguments.beta:
                groups = {name: (prompt, self._beside_base(prompt, group)) for name, (prompt, group) in groups.items()}
            updates = self.run.preset.round.updates
            tokens = sum(len(row.sample.tokens) for row, is_in in zip(batch, counts.tolist(), strict=True) if is_in)
            step = StepShape(len(batch) // updates, max(tokens, 1) / updates, self.arguments.max_completion_length)
            lengths = [len(row.sample.tokens) for row in batch]
            self._logs |= {"length": sum(lengths) / len(lengths), "truncated": float(cut_off.float().mean())}
            self.model.shared.engine.release()
            parts = list(groups.values())
            return [PackedUpdate(parts[place::updates], step, not place, rests) for place in range(updates)]

    def backward(self, update: PackedUpdate, loss: Loss | None = None) -> None:
        with self._timed("learning"):
            own = loss or self._own_loss
            packs = [self._learner.packs(len(prompt), [row.tokens for row in group]) for prompt, group in update.groups]
            step = replace(update.step, passes=max(1, sum(map(len, packs))))
            self._update, self._loss = update, 0.0
            for prompt, group in update.groups:
                objective: Clipped | Own = (
                    Own(group, own, step, self.arguments) if own
                    else Clipped(group, self.run.preset.algorithm.loss_type, step, self.arguments)
                )  # fmt: skip
                learnt = self._learner.learn(
                    prompt, [row.tokens for row in group], objective, self.arguments.temperature
                )
                self._loss += objective.total
                self._note("entropy", learnt.entropies)
                both = list(zip(learnt.log_probs, group, strict=True))
                self._note("kl", [divergence(now, torch.tensor(row.base)) for now, row in both if row.base])
                if update.is_first:
                    gaps = [(now - torch.tensor(row.old)).abs() for now, row in both if row.old]
                    self._note("sampling_gap", gaps)
                self._count(learnt_tokens=sum(len(row.tokens) for row in group))

    def step(self) -> None:
        with self._timed("learning"):
            update, parameters = self._update, list(self.model.parameters())
            assert update is not None, "backward comes before step"
            for parameter in parameters:  # what is not learnt from has a gradient of zero, and not none
                parameter.grad = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
            norm = torch.nn.utils.clip_grad_norm_(parameters, self.arguments.max_grad_norm)
            require_finite(norm, self.seat)
            if update.rests:  # without gradients, the optimizer touches neither weights nor its moments
                self.optimizer.zero_grad(set_to_none=True)
            self._logs["learning_rate"] = self._schedule.get_last_lr()[0]  # of this step, and not of the next one
            self.optimizer.step()
            self.optimizer.zero_grad(set_to_none=True)
            self._schedule.step()
            self.steps += 1
            # A step that was learnt from is not hidden by one that was not; a seat that rests has none.
            if not update.rests and (update.groups or not self._losses):
                self._logs["grad_norm"] = float(norm)
                self._losses.append(self._loss)

    def measured(self) -> dict[str, float]:
        logs = dict(self._logs) | ({"loss": fmean(self._losses)} if self._losses else {})
        for name, values in self._of_tokens.items():
            if values:
                logs[name] = float(torch.cat(values).mean())
        if seconds := logs.pop("sampling_seconds", 0.0):
            logs["tokens_per_second"] = logs["tokens"] / seconds
        return logs

    def answer(self, prompts: Sequence[Prompt], n: int, how: SamplerSettings) -> list[list[Tokens]]:
        return answers_of(self.model, self.run.preset, prompts, n, how)

    def save(self, checkpoint: Path) -> None:
        self.model.save_pretrained(checkpoint)
        held = {"optimizer": self.optimizer.state_dict(), "schedule": self._schedule.state_dict()}
        torch.save(held, checkpoint / STATE)
        (checkpoint / TRAINER).write_text(json.dumps({"global_step": self.steps}) + "\n", encoding="utf-8")

    def export(self, directory: Path, goes_on: bool = False) -> None:
        self.model.save_pretrained(directory)
        self.tokenizer.save_pretrained(directory)

    def _load(self, checkpoint: Path) -> None:
        shared = self.model.shared
        require_digest(shared.model, checkpoint)
        saved = Adapter.load(checkpoint, shared.model.base.shape)
        with torch.no_grad():
            for own, other in zip(self.model.parameters(), saved.parameters, strict=True):
                own.copy_(other)
        held = torch.load(checkpoint / STATE, map_location="cpu", weights_only=True)
        self.optimizer.load_state_dict(held["optimizer"])
        self._schedule.load_state_dict(held["schedule"])
        is_own = self.run.preset.algorithm.optimizer != "adamw"
        as_configured(self.optimizer, self._schedule, self.arguments, is_own=is_own)
        self.steps = int(json.loads((checkpoint / TRAINER).read_text(encoding="utf-8"))["global_step"])

    def _beside_base(self, prompt: Sequence[int], group: Sequence[PackedRow]) -> list[PackedRow]:
        """With the base's log-probabilities."""
        told = self._learner.log_probs(prompt, [row.tokens for row in group], self.arguments.temperature, of_base=True)
        return [replace(row, base=values.tolist()) for row, values in zip(group, told.log_probs, strict=True)]

    def _note(self, name: str, values: Sequence[Tensor]) -> None:
        """Numbers of tokens, of which the round's mean is logged."""
        self._of_tokens.setdefault(name, []).extend(values)

    def _count(self, **values: float) -> None:
        for name, value in values.items():
            self._logs[name] = self._logs.get(name, 0.0) + value
