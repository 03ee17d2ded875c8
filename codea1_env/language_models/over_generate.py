"""Rollout engines over transformers' `generate`: slow and plain, for any model that has it, and the ones to copy.

    algorithm: {rollouts: generate}

`GenerateEngine` holds a second copy of the base, with the seat's adapter as PEFT's. Both draw by the uniforms of the
requests' keys, so that they sample what `continuous.ContinuousEngine` samples; an engine with a generator of its own,
such as vLLM, has other samples of the same distribution.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Collection, Mapping, Sequence
from contextlib import nullcontext
from itertools import groupby
from pathlib import Path
from typing import Any

from codea1_env.extras import extra
from codea1_env.language_models.drawing import draw
from codea1_env.language_models.loading import LanguageModel, load_weights, without_defaults
from codea1_env.language_models.lora import Adapter
from codea1_env.language_models.rollouts import (
    Completion,
    GrowingAnswer,
    RolloutEngine,
    RolloutRequest,
    RolloutSampling,
    require_room,
)

with extra("train", "language models on CPUs need"):
    import torch
    from torch import Tensor
    from transformers import LogitsProcessor, StoppingCriteria

ROWS_AT_ONCE = 64
Asked = tuple[RolloutRequest, int]
"""A request, and which of its samples."""


class TransformersEngine(RolloutEngine):
    """Samples from a model of transformers as it is, where it is."""

    def __init__(self, model: Any, tokenizer: Any, ends: Collection[int], rows_at_once: int = ROWS_AT_ONCE) -> None:
        """`ends`: tokens that end an answer. `rows_at_once`: answers that grow together."""
        self._model, self._tokenizer, self._ends, self._rows_at_once = model, tokenizer, ends, rows_at_once

    def sample(self, requests: Sequence[RolloutRequest], sampling: RolloutSampling) -> list[list[Completion]]:
        """The requests of one adapter that stand beside each other are sampled together."""
        positions = getattr(self._model.config.get_text_config(), "max_position_embeddings", None)
        require_room(requests, sampling, positions or sys.maxsize, "the model")
        found: list[Completion] = []
        for name, asked in groupby(requests, key=lambda request: request.adapter):
            rows = [(request, k) for request in asked for k in range(request.samples)]
            with self._beside(name):
                for start in range(0, len(rows), self._rows_at_once):
                    found += self._generate(rows[start : start + self._rows_at_once], sampling)
        self.prompt_tokens = sum(len(prompt) for prompt, _ in {(one.prompt, one.adapter) for one in requests})
        answers = iter(found)
        return [[next(answers) for _ in range(request.samples)] for request in requests]

    def _beside(self, name: str) -> Any:
        """While the adapter of that name is beside the model."""
        return nullcontext()

    @torch.no_grad()
    def _generate(self, rows: Sequence[Asked], sampling: RolloutSampling) -> list[Completion]:
        longest = max(len(request.prompt) for request, _ in rows)
        gaps = [longest - len(request.prompt) for request, _ in rows]
        device = self._model.device
        # Any token will do where the mask is 0.
        ids = torch.tensor([[0] * gap + [*row.prompt] for gap, (row, _) in zip(gaps, rows, strict=True)], device=device)
        mask = torch.tensor([[0] * gap + [1] * (longest - gap) for gap in gaps], device=device)
        growing = _Growing(rows, sampling, self._ends, self._tokenizer)
        was_training = self._model.training
        self._model.eval()
        try:
            with without_defaults(self._model):
                self._model.generate(
                    input_ids=ids,
                    attention_mask=mask,
                    max_new_tokens=sampling.max_tokens,
                    do_sample=False,  # the processor has drawn already
                    logits_processor=[growing],
                    stopping_criteria=[_Finished(growing)],
                    pad_token_id=0,
                )
        finally:
            self._model.train(was_training)
        return [answer.completion() for answer in growing.answers]


class GenerateEngine(TransformersEngine):
    """Samples from a copy of the base on its device, with adapters beside it."""

    def __init__(self, model: LanguageModel, adapters: Mapping[str, Adapter]) -> None:
        base = load_weights(model.source, "the model", model.tokenizer, dtype=model.base.dtype)
        super().__init__(base.to(model.base.device).eval(), model.tokenizer, model.ends)
        self._adapters, self._source = adapters, model.source
        with extra("lora", "rollouts: generate needs"):  # here, since training by the other engine does without it
            import peft
        self._peft: Any = peft
        self._is_adapted = False

    def _beside(self, name: str) -> Any:
        """The model with the adapter as it is now; without a name, the base alone."""
        if not name:
            return self._model.disable_adapter() if self._is_adapted else nullcontext()
        adapter = self._adapters[name]
        if not self._is_adapted:
            with tempfile.TemporaryDirectory() as directory:
                adapter.save(Path(directory), self._source)
                self._model = self._peft.PeftModel.from_pretrained(self._model, directory).eval()
            self._is_adapted = True
        self._peft.set_peft_model_state_dict(self._model, {key: tensor.detach() for key, tensor in adapter.named()})
        return nullcontext()


class _Growing(LogitsProcessor):  # type: ignore[misc]  # the base class has no types
    """Draws, writes down what was drawn, and leaves it as the only choice."""

    def __init__(self, rows: Sequence[Asked], sampling: RolloutSampling, ends: Collection[int], tokenizer: Any) -> None:
        self.answers = [GrowingAnswer.of(request, sample, sampling) for request, sample in rows]
        self._sampling, self._ends, self._tokenizer = sampling, ends, tokenizer

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        uniforms = torch.tensor([answer.uniforms.next() for answer in self.answers], dtype=torch.float64)
        drawn = draw(scores, uniforms, self._sampling.temperature, self._sampling.top_p)
        tokens, log_probs = drawn.tokens.tolist(), drawn.log_probs.tolist()
        for answer, token, log_prob in zip(self.answers, tokens, log_probs, strict=True):
            if answer.finish is None:
                answer.append(token, log_prob, self._ends, self._said)
        only = torch.full_like(scores, float("-inf"))
        return only.scatter_(1, drawn.tokens[:, None], 0.0)

    def _said(self, tokens: Sequence[int]) -> str:
        said: str = self._tokenizer.decode(tokens, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return said


class _Finished(StoppingCriteria):  # type: ignore[misc]  # the base class has no types
    """Rows that are finished."""

    def __init__(self, growing: _Growing) -> None:
        self._growing = growing

    def __call__(self, input_ids: Tensor, scores: Any, **_: Any) -> Tensor:
        return torch.tensor([answer.finish is not None for answer in self._growing.answers], device=input_ids.device)
