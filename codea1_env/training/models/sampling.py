"""Sampling responses from a model, reproducibly and without touching the global streams: for evaluation and play.

With transformers' `generate`; from a base with an adapter, with the engine that its trainer samples with. Does not
promise equal samples for other batch sizes or other versions of torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codea1_env.extras import extra
from codea1_env.language_models.loading import load_tokenizer, load_weights, without_defaults
from codea1_env.language_models.rollouts import RolloutRequest, RolloutSampling
from codea1_env.players.chat import prompt_text, said_text
from codea1_env.players.player import CoderRequest, TesterRequest
from codea1_env.players.templates import Messages, begun
from codea1_env.training.config.presets import Preset
from codea1_env.training.models.chat import Chat, chat_of, tokens_of
from codea1_env.training.models.shared_base import SeatModel, seat_model

with extra("train", "training needs"):
    import torch

ROWS_AT_ONCE = 400


class Sampler:
    """A model and its tokenizer as a source of responses; `coder` and `tester` have the form that evaluation wants."""

    def __init__(
        self, model: Any, tokenizer: Any, chat: Chat, *, tokens: int, temperature: float, seed: int, top_p: float = 1.0
    ) -> None:
        """`chat`: what the model understands. `tokens`: longest response. `temperature`: 0 is greedy. Every call starts
        from `seed`."""
        self._model = model
        self._tokenizer = tokenizer
        self._chat = chat
        self._top_p = top_p
        self._tokens = tokens
        self._temperature = temperature
        self._seed = seed

    def coder(self, requests: Sequence[CoderRequest], samples: int) -> list[list[str]]:
        """Programs."""
        return self.responses([self._chat.coder(request.problem) for request in requests], samples)

    def tester(self, requests: Sequence[TesterRequest], samples: int) -> list[list[str]]:
        """Suites, from question and program, or from the question alone where the chat is black-box."""
        asking = [self._chat.tester(request.problem, request.program) for request in requests]
        return self.responses(asking, samples, self._chat.stop_at_tests)

    def suites(self, requests: Sequence[TesterRequest], samples: int, longest: int) -> list[list[str | None]]:
        """As `tester`, and None for every suite of a prompt with more than `longest` tokens, which is not asked (0: no
        limit)."""
        fits = [not longest or self._prompt_length(request) <= longest for request in requests]
        written = iter(self.tester([request for request, fit in zip(requests, fits, strict=True) if fit], samples))
        return [[*next(written)] if fit else [None] * samples for fit in fits]

    def _prompt_length(self, request: TesterRequest) -> int:
        return len(tokens_of(self._tokenizer, self._chat.tester(request.problem, request.program)))

    def responses(self, conversations: Sequence[Messages], samples: int, tests: int = 0) -> list[list[str]]:
        """`samples` responses to each conversation. `tests`: that each ends with, where its engine knows (0: none)."""
        at_once = max(1, ROWS_AT_ONCE // samples)
        was_training = self._model.training
        self._model.eval()
        responses: list[list[str]] = []
        try:
            device = self._model.device
            streams = torch.random.fork_rng(devices=[device] if device.type == "cuda" else [])
            with streams, torch.no_grad(), without_defaults(self._model):
                torch.manual_seed(self._seed)
                for start in range(0, len(conversations), at_once):
                    responses += self._generate(conversations[start : start + at_once], samples)
        finally:
            self._model.train(was_training)
        return responses

    def _generate(self, conversations: Sequence[Messages], samples: int) -> list[list[str]]:
        texts = [prompt_text(self._tokenizer, messages) for messages in conversations]
        encoded = self._tokenizer(
            texts, return_tensors="pt", padding=True, padding_side="left", add_special_tokens=False
        ).to(self._model.device)
        sampling = {"do_sample": True, "temperature": self._temperature, "top_k": 0, "top_p": self._top_p}
        tokens = self._model.generate(
            input_ids=encoded["input_ids"].to(self._model.device),
            attention_mask=encoded["attention_mask"].to(self._model.device),
            max_new_tokens=self._tokens,
            num_return_sequences=samples if self._temperature else 1,
            **(sampling if self._temperature else {"do_sample": False}),
        )
        answers = tokens[:, encoded["input_ids"].shape[1] :].tolist()
        if not self._temperature:  # all samples are the same
            answers = [answer for answer in answers for _ in range(samples)]
        return [
            [
                asked.whole(said_text(self._tokenizer, answer, asked))
                for answer in answers[place * samples : (place + 1) * samples]
            ]
            for place, asked in enumerate(map(begun, conversations))
        ]


class PackedSampler(Sampler):
    """A base with an adapter as a source of responses. They do not depend on what else is asked."""

    def __init__(self, model: SeatModel, tokenizer: Any, chat: Chat, *, stop_at_fence: bool, **sampling: Any) -> None:
        """`sampling`: as `Sampler`."""
        super().__init__(model, tokenizer, chat, **sampling)
        self._stop_at_fence = stop_at_fence

    def responses(self, conversations: Sequence[Messages], samples: int, tests: int = 0) -> list[list[str]]:
        sampling = RolloutSampling(self._temperature, self._top_p, self._tokens, self._stop_at_fence)
        begins = [begun(messages) for messages in conversations]
        requests = [
            RolloutRequest(
                tuple(tokens_of(self._tokenizer, messages)),
                samples,
                (self._seed, place),
                self._model.adapter,
                begin.answer,
                tests,
            )
            for place, (messages, begin) in enumerate(zip(conversations, begins, strict=True))
        ]
        completions = self._model.shared.sample(requests, sampling)
        return [
            [begin.whole(said_text(self._tokenizer, one.tokens, begin)) for one in answers]
            for begin, answers in zip(begins, completions, strict=True)
        ]


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A seat's model as the preset's trainer leaves it, to be sampled with one seed after another."""

    model: Any
    """A model of transformers, or a `SeatModel`."""
    tokenizer: Any

    def sampler(self, preset: Preset, **sampling: Any) -> Sampler:
        """`sampling`: `chat`, `tokens`, `temperature`, `top_p` and `seed`."""
        if isinstance(self.model, SeatModel):
            return PackedSampler(self.model, self.tokenizer, stop_at_fence=preset.stop_at_fence, **sampling)
        return Sampler(self.model, self.tokenizer, **sampling)

    def as_trained(self, preset: Preset, seat: str, seed: int) -> Sampler:
        """As the seat samples in training: its messages, its longest response, its temperature."""
        tokens, temperature = preset.grpo.tokens(seat), preset.grpo.of(seat)["temperature"]
        return self.sampler(preset, chat=chat_of(preset), tokens=tokens, temperature=temperature, seed=seed)

    def let_go(self) -> None:
        """Of the adapter, if it is one beside a base: it is sampled from no more."""
        if isinstance(self.model, SeatModel):
            self.model.shared.adapters.pop(self.model.adapter, None)


def load_model(directory: Path, preset: Preset, device: str = "cpu", what: str = "the model") -> LoadedModel:
    """A base, or what a seat's trainer left. `what`: how the user gave it, for errors. Raises ConfigurationError."""
    if preset.trainer == "packed":
        model = seat_model(directory, preset)
        return LoadedModel(model, model.shared.model.tokenizer)
    tokenizer = load_tokenizer(directory, what)
    return LoadedModel(load_weights(directory, what, tokenizer).to(device), tokenizer)
