"""A rollout engine over transformers' own `generate`, for any model that has it: slow, to hold others against.

Draws by the same uniforms as `continuous.ContinuousEngine`: where both models' numbers are equal, so are the samples.
Adapters are those of PEFT on the model; the names are PEFT's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from codea1_env.errors import ConfigurationError
from codea1_env.extras import extra
from codea1_env.language_models.drawing import draw
from codea1_env.language_models.rollouts import (
    Completion,
    Ending,
    Finish,
    RolloutRequest,
    RolloutSampling,
    Uniforms,
)

with extra("train", "language models on CPUs need"):
    import torch
    from torch import Tensor
    from transformers import LogitsProcessor, StoppingCriteria

ROWS_AT_ONCE = 64


class GenerateEngine:
    """Samples from a model of transformers, on whatever device it is."""

    def __init__(self, model: Any, tokenizer: Any, rows_at_once: int = ROWS_AT_ONCE) -> None:
        ends = model.generation_config.eos_token_id
        self._ends = {tokenizer.eos_token_id, *(ends if isinstance(ends, list) else [ends])} - {None}
        self._model, self._tokenizer, self._rows_at_once = model, tokenizer, rows_at_once

    def sample(self, requests: Sequence[RolloutRequest], sampling: RolloutSampling) -> list[list[Completion]]:
        """As `RolloutEngine`."""
        if any(request.adapter for request in requests):
            raise ConfigurationError("requests must name no adapter here: set the model's own, got one that does")
        rows = [(request, k) for request in requests for k in range(request.samples)]
        found: list[Completion] = []
        was_training = self._model.training
        self._model.eval()
        try:
            for start in range(0, len(rows), self._rows_at_once):
                found += self._generate(rows[start : start + self._rows_at_once], sampling)
        finally:
            self._model.train(was_training)
        answers = iter(found)
        return [[next(answers) for _ in range(request.samples)] for request in requests]

    @torch.no_grad()
    def _generate(self, rows: Sequence[tuple[RolloutRequest, int]], sampling: RolloutSampling) -> list[Completion]:
        longest = max(len(request.prompt) for request, _ in rows)
        gaps = [longest - len(request.prompt) for request, _ in rows]
        device = self._model.device
        # Any token will do where the mask is 0.
        ids = torch.tensor([[0] * gap + [*row.prompt] for gap, (row, _) in zip(gaps, rows, strict=True)], device=device)
        mask = torch.tensor([[0] * gap + [1] * (longest - gap) for gap in gaps], device=device)
        growing = _Growing(rows, sampling, self._ends, self._tokenizer)
        self._model.generate(
            input_ids=ids,
            attention_mask=mask,
            max_new_tokens=sampling.max_tokens,
            do_sample=False,  # the processor has drawn already
            temperature=None,
            top_p=None,
            top_k=None,
            repetition_penalty=1.0,
            logits_processor=[growing],
            stopping_criteria=[_Finished(growing)],
            pad_token_id=0,
        )
        return growing.completions()


class _Growing(LogitsProcessor):  # type: ignore[misc]  # the base class has no types
    """Draws, writes down what was drawn, and leaves it as the only choice."""

    def __init__(
        self,
        rows: Sequence[tuple[RolloutRequest, int]],
        sampling: RolloutSampling,
        ends: set[int],
        tokenizer: Any,
    ) -> None:
        self._uniforms = [Uniforms(request.key, k) for request, k in rows]
        self._endings = [Ending.of(request, sampling) for request, _ in rows]
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
