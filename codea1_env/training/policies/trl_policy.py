"""The policy that TRL trains: its generation, loss, optimizer and sharding, driven from outside, without its own loop.

Three rounds give the bits of `trainer.train()` (tests/test_policy_trl.py). Names of TRL and transformers that are
private are called here and nowhere else; `PRIVATE` lists them, and a test says which one is gone. Does not promise to
work with any TRL but the pinned one, nor equal bits with another version of peft.

While a policy works, the process's global random streams (python, numpy, torch) are its own; afterwards they are the
caller's again: what a seat learns does not depend on when another plays. Those of a GPU are not exchanged: a policy on
a GPU has a process of its own. Adapters (LoRA) are trained in the place of all weights, and merged in the seat's final
model, so that it loads like any other.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from codea1_env.configuration.batches import seat_rows
from codea1_env.configuration.model_sections import LoraPreset
from codea1_env.extras import extra
from codea1_env.language_models.loading import load_tokenizer
from codea1_env.training.advantages import Advantages
from codea1_env.training.losses import Loss, LossBatch, own_loss, require_finite, value_of
from codea1_env.training.models.sampling import answers_of
from codea1_env.training.policies.arguments import grpo_arguments
from codea1_env.training.policies.optimizers import own_optimizer
from codea1_env.training.policies.policy import Policy
from codea1_env.training.policies.vllm_colocated import after_building, before_building
from codea1_env.training.run.checkpoints import as_configured
from codea1_env.training.samples import Batch, Prompt, SamplerSettings, SeatRun, Tokens, token_advantages, token_offsets

with extra("train", "training needs"):
    import torch
    from accelerate.utils import DistributedType
    from datasets import Dataset
    from trl import GRPOTrainer
    from trl.trainer.utils import shuffle_sequence_dict, split_tensor_dict

PRIVATE = (
    "_clip_grad_norm", "_compute_loss", "_generate_and_score_completions",
    "_generate_single_turn", "_get_grad_norm", "_get_learning_rate", "_get_per_token_logps_and_entropies",
    "_init_training_state", "_load_from_checkpoint", "_load_rng_state", "_prepare_for_training", "_prepare_inputs",
    "_save_checkpoint",
)  # fmt: skip
"""Methods of GRPOTrainer that are called or replaced here."""
MEASURED = {
    "entropy": "entropy",
    "kl": "kl",
    "length": "completions/mean_length",
    "truncated": "completions/clipped_ratio",
    "sampling_gap": "sampling/sampling_logp_difference/mean",
}
"""What a round's log has, by our name: the name that TRL notes it under."""
MicroBatch = dict[str, Any]


class TrlPolicy(Policy):
    """One rank of a seat under TRL. Every rank is asked the same at the same time, each with its share."""

    def __init__(self, run: SeatRun) -> None:
        tokenizer = load_tokenizer(run.base)
        super().__init__(run, tokenizer)
        self._streams = OwnStreams(run.seed)
        arguments = grpo_arguments(run, seat_rows(run.preset, self.seat))
        before_building(arguments, run.preset.lora.rank)
        with self._streams.active():
            self._trainer = SeatTrainer(run, arguments, tokenizer)
            after_building(self._trainer)
            self._trainer.prepare(run.resume_from)
        self._logs: dict[str, float] = {}
        self._losses: list[Any] = []
        self._rests = False

    def begin(self, round_index: int) -> None:
        super().begin(round_index)
        self._logs, self._losses = {}, []
        self._trainer.notes.clear()

    def draw(self, prompts: Sequence[Prompt], n: int) -> list[list[Tokens]]:
        rows = self.draw_rows([list(prompt.tokens) for prompt in prompts for _ in range(n)], n)
        return [rows[start : start + n] for start in range(0, len(rows), n)]

    def draw_rows(self, prompts: list[list[int]], n: int) -> list[Tokens]:
        """One response to each prompt, of which `n` in a row are equal; on a rank, maybe a part of them."""
        with self._streams.active():
            tokens, logprobs = self._trainer._generate_single_turn(prompts, None, {}, n)
        return [Tokens(tuple(row), tuple(logprobs[i]) if logprobs else None) for i, row in enumerate(tokens)]

    def updates(self, batch: Batch, advantages: Advantages) -> Sequence[list[MicroBatch]]:
        """Each as the passes of this rank."""
        with self._timed("learning"), self._streams.active():
            self._rests = advantages.rests
            parts = self._trainer.micro_batches(batch, advantages)
            passes = self._trainer.args.gradient_accumulation_steps
            return [parts[start : start + passes] for start in range(0, len(parts), passes)]

    def backward(self, update: list[MicroBatch], loss: Loss | None = None) -> None:
        trainer = self._trainer
        with self._timed("learning"), self._streams.active():
            trainer.loss_in_use = loss or trainer.own_loss
            trainer.current_gradient_accumulation_steps = len(update)
            total = 0.0
            for place, part in enumerate(update):
                is_last = place == len(update) - 1
                trainer.accelerator.gradient_state._set_sync_gradients(is_last)
                waits = not is_last and trainer.accelerator.distributed_type != DistributedType.DEEPSPEED
                with trainer.accelerator.no_sync(model=trainer.wrapped) if waits else nullcontext():
                    total = total + trainer.training_step(trainer.wrapped, part, None)
            self._losses.append(total)

    def step(self) -> None:
        trainer = self._trainer
        with self._timed("learning"), self._streams.active():
            norm = trainer._get_grad_norm(trainer.wrapped, grad_norm=trainer._clip_grad_norm(trainer.wrapped))
            if self._rests:  # without gradients, AdamW touches neither weights (by decay) nor its moments
                for parameter in trainer.wrapped.parameters():
                    parameter.grad = None
            else:
                if norm is not None:  # DeepSpeed looks at it by itself
                    require_finite(norm, self.seat)
                    self._logs["grad_norm"] = float(norm)
            trainer.optimizer.step()
            self._logs["learning_rate"] = trainer._get_learning_rate()
            if not trainer.accelerator.optimizer_step_was_skipped:
                trainer.lr_scheduler.step()
            trainer.wrapped.zero_grad()
            trainer.state.global_step += 1

    def measured(self) -> dict[str, float]:
        if self._losses:
            losses = self._trainer.accelerator.gather(torch.stack([torch.as_tensor(loss) for loss in self._losses]))
            self._logs["loss"] = float(losses.mean())
        notes = self._trainer.notes
        known = {name: [value for value in notes.get(told, ()) if value == value] for name, told in MEASURED.items()}
        return self._logs | {name: fmean(values) for name, values in known.items() if values}

    def answer(self, prompts: Sequence[Prompt], n: int, how: SamplerSettings) -> list[list[Tokens]]:
        return answers_of(self._trainer.model, self.run.preset, prompts, n, how, self.tokenizer)

    def save(self, checkpoint: Path) -> None:
        with self._streams.active():
            self._trainer._save_checkpoint(self._trainer.model, None)

    def export(self, directory: Path, goes_on: bool = False) -> None:
        trainer = self._trainer
        if not self.run.preset.lora.rank:
            trainer.save_model(str(directory))  # with its tokenizer, and by rank 0 where there are several
        elif trainer.is_world_process_zero():
            model = trainer.model if goes_on else merged(trainer.model)  # which cannot learn any more
            model.save_pretrained(directory)
            self.tokenizer.save_pretrained(directory)


class SeatTrainer(GRPOTrainer):  # type: ignore[misc]  # the base class has no types
    """TRL's trainer for samples, advantages and rows that others made, and for a loss or an optimizer of one's own."""

    def __init__(self, run: SeatRun, arguments: Any, tokenizer: Any) -> None:
        self._given: dict[str, list[Any]] = {}
        self.own_loss = own_loss(run.preset.algorithm)
        self.loss_in_use = self.own_loss
        self.wrapped: Any = None
        self._algorithm = run.preset.algorithm
        super().__init__(
            model=str(run.base),
            args=arguments,
            train_dataset=Dataset.from_dict({"prompt": [""]}),  # nobody reads it
            processing_class=tokenizer,
            reward_funcs=_as_given,
            rollout_func=lambda prompts, trainer: dict(trainer._given),
            peft_config=adapter_config(run.preset.lora),
        )
        self._corrects: bool = self.vllm_importance_sampling_correction
        for adapter in getattr(self.model, "peft_config", {}).values():
            if not isinstance(adapter.target_modules, str):  # a set is saved in the order of its process's hashes
                adapter.target_modules = sorted(adapter.target_modules)

    @property
    def notes(self) -> dict[str, list[float]]:
        """What TRL noted since it was cleared."""
        notes: dict[str, list[float]] = self._metrics["train"]
        return notes

    def prepare(self, checkpoint: Path | None) -> None:
        """What `train()` does before its loop: the model wrapped, optimizer and schedule made, a checkpoint loaded."""
        source = str(checkpoint) if checkpoint else None
        self._init_training_state(self.args.max_steps, self.args.max_steps, 1, source, None)
        if source and not (self.is_deepspeed_enabled or self.is_fsdp_enabled):
            if getattr(self.model.config, "tie_word_embeddings", False):
                # Weights that are others' are not in a checkpoint: transformers ties them, without a warning.
                self.model._keys_to_ignore_on_save = list(self.model._tied_weights_keys or ())
            self._load_from_checkpoint(source)
        self.wrapped, _ = self._prepare_for_training(self.args.max_steps, None, source)
        self.wrapped.train()
        self.wrapped.zero_grad()
        torch.empty((), dtype=torch.int64).random_()  # as the loader of `train()` draws its seed: the bits are the same
        if source:
            as_configured(self.optimizer, self.lr_scheduler, self.args, is_own=self._algorithm.optimizer != "adamw")
            self._load_rng_state(source)

    def create_optimizer(self, model: Any = None) -> Any:
        """One's own, where the configuration names one."""
        trained = [each for each in (model or self.model).parameters() if each.requires_grad]
        own = own_optimizer(self._algorithm, trained, self.args.learning_rate) if self.optimizer is None else None
        if own is not None:
            self.optimizer: Any = own
        return self.optimizer if self.optimizer is not None else super().create_optimizer(model)

    def micro_batches(self, batch: Batch, advantages: Advantages) -> list[MicroBatch]:
        """This rank's rows with old and base log-probabilities, shuffled and split as TRL does."""
        samples = [row.sample for row in batch]
        logprobs = [sample.logprobs for sample in samples if sample.logprobs is not None]
        self._given = {
            "prompt_ids": [list(sample.prompt) for sample in samples],
            "completion_ids": [list(sample.tokens) for sample in samples],
            "logprobs": [list(each) for each in logprobs] or None,  # type: ignore[dict-item]  # of all, or of none
        }
        # What nobody sampled has no probability to be corrected by.
        self.vllm_importance_sampling_correction = self._corrects and bool(logprobs)
        rows = [{"prompt": "", "earned": row.reward} for row in batch]
        whole: MicroBatch = self._generate_and_score_completions(rows)
        device = whole["completion_ids"].device
        whole["advantages"] = self._per_token(batch, advantages, whole).to(device)
        everybody = self.accelerator.gather(advantages.learnt.to(device))
        if not bool(everybody.all()):  # of all ranks, which then take the same way
            self._mask(~advantages.learnt, whole)
        return list(split_tensor_dict(shuffle_sequence_dict(whole), self.args.steps_per_generation))

    def create_model_card(self, *_: object, **__: object) -> None:
        """TRL's would tell of a base and of data that it does not know: the run writes its own."""

    def _prepare_inputs(self, inputs: MicroBatch) -> MicroBatch:
        """They are ready: TRL would sample here."""
        return inputs

    def _per_token(self, batch: Batch, advantages: Advantages, whole: MicroBatch) -> Any:
        """(rows,); (rows, tokens) under credit: test."""
        if not advantages.tests:
            return advantages.rows
        found = torch.zeros(whole["completion_ids"].shape, dtype=torch.float32)
        for place, (row, own) in enumerate(zip(batch, advantages.tests, strict=True)):
            tokens, spans = row.sample.tokens, row.label.spans
            offsets = token_offsets(self.processing_class, tokens) if spans else [(0, 0)] * len(tokens)
            values = token_advantages(offsets, spans, own, float(advantages.rows[place]))
            found[place, : len(tokens)] = torch.tensor(values, dtype=torch.float32)
        return found

    def _mask(self, left_out: Any, whole: MicroBatch) -> None:
        """Take rows out of the loss and out of the number of tokens that it is a mean over."""
        mask = torch.ones_like(whole["completion_mask"])
        mask[left_out.to(mask.device)] = 0
        whole["tool_mask"] = mask
        whole["num_items_in_batch"] = self.accelerator.gather((mask * whole["completion_mask"]).sum()).sum()

    def _compute_loss(self, model: Any, inputs: MicroBatch) -> Any:
        if self.loss_in_use is None:
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
        return value_of(self.loss_in_use, batch) / self.current_gradient_accumulation_steps


def _as_given(completions: Any, earned: Sequence[float | None], **_: Any) -> Sequence[float | None]:
    """TRL's reward function where rows bring what they earned along."""
    return earned


def adapter_config(lora: LoraPreset) -> Any:
    """What TRL takes as `peft_config`; None where all weights are trained."""
    if not lora.rank:
        return None
    with extra("lora", "adapters (lora.rank above 0) need"):
        from peft import LoraConfig
    names = [name.strip() for name in lora.target.split(",")]
    return LoraConfig(
        r=lora.rank,
        lora_alpha=lora.alpha,
        lora_dropout=lora.dropout,
        target_modules="all-linear" if names == ["all-linear"] else names,
        task_type="CAUSAL_LM",
    )


def merged(model: Any) -> Any:
    """The model with its adapters, if it has any, added into its weights."""
    return model.merge_and_unload() if hasattr(model, "merge_and_unload") else model


def _streams() -> tuple[Any, Any, Any]:
    """A snapshot of the process's global random streams."""
    return random.getstate(), np.random.get_state(), torch.get_rng_state()


def _put(python: Any, numpy: Any, of_torch: Any) -> None:
    random.setstate(python)
    np.random.set_state(numpy)
    torch.set_rng_state(of_torch)


class OwnStreams:
    """The streams of one policy, from a seed on."""

    def __init__(self, seed: int) -> None:
        callers = _streams()
        random.seed(seed)
        np.random.seed(seed)
        torch.manual_seed(seed)
        self._own = _streams()
        _put(*callers)

    @contextmanager
    def active(self) -> Iterator[None]:
        """Work with them, and go on from there the next time."""
        callers = _streams()
        _put(*self._own)
        try:
            yield
        finally:
            self._own = _streams()
            _put(*callers)
