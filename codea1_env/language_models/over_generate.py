"""A rollout engine over transformers' `generate`: slow and plain, for any model that has it, and the one to copy.

    algorithm: {rollouts: generate}

It holds a second copy of the base, with the seat's adapter as PEFT's. It draws by the uniforms of the requests' keys,
so that it samples what `continuous.ContinuousEngine` samples; an engine with a generator of its own, such as vLLM, has
other samples of the same distribution.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from itertools import groupby
from pathlib import Path
from typing import Any

from codea1_env.extras import extra
from codea1_env.language_models.drawing import draw
from codea1_env.language_models.loading import LanguageModel, load_weights, without_defaults
from codea1_env.language_models.lora import Adapter
from codea1_env.language_models.rollouts import (
    AnswerEnd,
    Completion,
    Finish,
    RolloutEngine,
    RolloutRequest,
    RolloutSampling,
    Uniforms,
)

with extra("train", "language models on CPUs need"):
    import torch
    from torch import Tensor
    from transformers import LogitsProcessor, StoppingCriteria

ROWS_AT_ONCE = 64
Asked = tuple[RolloutRequest, int]
"""A request, and which of its samples."""


class GenerateEngine(RolloutEngine):
    """Samples from a model of transformers, on the base's device."""

    def __init__(self, model: LanguageModel, adapters: Mapping[str, Adapter]) -> None:
        self._ends, self._tokenizer, self._adapters = model.ends, model.tokenizer, adapters
        base = load_weights(model.source, "the model", model.tokenizer, dtype=model.base.dtype)
        self._source, self._model = model.source, base.to(model.base.device).eval()
        with extra("lora", "rollouts: generate needs"):  # here, since training by the other engine does without it
            import peft
        self._peft: Any = peft
        self._is_adapted = False

    def sample(self, requests: Sequence[RolloutRequest], sampling: RolloutSampling) -> list[list[Completion]]:
        """The requests of one adapter that stand beside each other are sampled together."""
        found: list[Completion] = []
        for name, asked in groupby(requests, key=lambda request: request.adapter):
            rows = [(request, k) for request in asked for k in range(request.samples)]
            with self._beside(name):
                for start in range(0, len(rows), ROWS_AT_ONCE):
                    found += self._generate(rows[start : start + ROWS_AT_ONCE], sampling)
        self.prompt_tokens = sum(len(prompt) for prompt, _ in {(one.prompt, one.adapter) for one in requests})
        answers = iter(found)
        return [[next(answers) for _ in range(request.samples)] for request in requests]

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

    @torch.no_grad()
    def _generate(self, rows: Sequence[Asked], sampling: RolloutSampling) -> list[Completion]:
        longest = max(len(request.prompt) for request, _ in rows)
        gaps = [longest - len(request.prompt) for request, _ in rows]
        device = self._model.device
        # Any token will do where the mask is 0.
        ids = torch.tensor([[0] * gap + [*row.prompt] for gap, (row, _) in zip(gaps, rows, strict=True)], device=device)
        mask = torch.tensor([[0] * gap + [1] * (longest - gap) for gap in gaps], device=device)
        growing = _Growing(rows, sampling, self._ends, self._tokenizer)
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
        return growing.completions()


class _Growing(LogitsProcessor):  # type: ignore[misc]  # the base class has no types
    """Draws, writes down what was drawn, and leaves it as the only choice."""

    def __init__(self, rows: Sequence[Asked], sampling: RolloutSampling, ends: frozenset[int], tokenizer: Any) -> None:
        self._uniforms = [Uniforms(request.key, k) for request, k in rows]
        self._endings = [AnswerEnd.of(request, sampling) for request, _ in rows]
        self._sampling, self._ends, self._tokenizer = sampling, ends, tokenizer
        self._tokens: list[list[int]] = [[] for _ in rows]
        self._log_probs: list[list[float]] = [[] for _ in rows]
        self.finished: list[Finish | None] = [None for _ in rows]

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        uniforms = torch.tensor([stream.next() for stream in self._uniforms], dtype=torch.float64)
        drawn = draw(scores.cpu(), uniforms, self._sampling.temperature, self._sampling.top_p)
        for row, (token, log_prob) in enumerate(zip(drawn.tokens.tolist(), drawn.log_probs.tolist(), strict=True)):
            if self.finished[row] is None:
                self._append(row, token, log_prob)
        only = torch.full_like(scores, float("-inf"))
        return only.scatter_(1, drawn.tokens[:, None].to(scores.device), 0.0)

    def _append(self, row: int, token: int, log_prob: float) -> None:
        self._tokens[row].append(token)
        self._log_probs[row].append(log_prob)
        said = self._tokenizer.decode(self._tokens[row], skip_special_tokens=True)
        if token in self._ends:
            self.finished[row] = "end"
        elif self._endings[row].is_reached(said):
            self.finished[row] = "stop"
        elif len(self._tokens[row]) == self._sampling.max_tokens:
            self.finished[row] = "length"

    def completions(self) -> list[Completion]:
        return [
            Completion(tuple(tokens), tuple(log_probs), finish or "length")
            for tokens, log_probs, finish in zip(self._tokens, self._log_probs, self.finished, strict=True)
        ]


class _Finished(StoppingCriteria):  # type: ignore[misc]  # the base class has no types
    """Rows that are finished."""

    def __init__(self, growing: _Growing) -> None:
        self._growing = growing

    def __call__(self, input_ids: Tensor, scores: Any, **_: Any) -> Tensor:
        return torch.tensor([finish is not None for finish in self._growing.finished], device=input_ids.device)
