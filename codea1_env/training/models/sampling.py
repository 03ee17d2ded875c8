"""Sampling a model outside of its own training: to measure it, or because it plays and does not learn.

With transformers' `generate`; from a base with an adapter, with the engine that its policy samples with. Reproducible,
and the global streams are as they were. Does not promise equal samples for other versions of torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codea1_env.configuration.presets import Preset
from codea1_env.language_models.loading import ends_of, load_tokenizer, load_weights
from codea1_env.language_models.over_generate import TransformersEngine
from codea1_env.language_models.rollouts import RolloutRequest, RolloutSampling
from codea1_env.players.player import CoderRequest, TesterRequest
from codea1_env.training.models.chat import Prompter, chat_of
from codea1_env.training.models.shared_base import SeatModel, seat_model
from codea1_env.training.samples import Model, Prompt, SamplerSettings, Tokens, answers

ROWS_AT_ONCE = 400


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A base, or what a policy left."""

    model: Any
    """A model of transformers, or a `SeatModel`."""
    tokenizer: Any
    preset: Preset

    def answer(self, prompts: Sequence[Prompt], n: int, how: SamplerSettings) -> list[list[Tokens]]:
        """`n` responses to each prompt, from `how.seed`."""
        return answers_of(self.model, self.preset, prompts, n, how, self.tokenizer)

    def sampler(self, how: SamplerSettings) -> Sampler:
        """With the messages of its preset, and no limit of a prompt."""
        return Sampler(self, Prompter(chat_of(self.preset), self.tokenizer), how)

    def let_go(self) -> None:
        """Of the adapter, if it is one beside a base: it is sampled from no more."""
        if isinstance(self.model, SeatModel):
            self.model.shared.adapters.pop(self.model.adapter, None)


def load_model(directory: Path, preset: Preset, device: str = "cpu", what: str = "the model") -> LoadedModel:
    """A base, or what a seat's policy left. `what`: how the user gave it, for errors. Raises ConfigurationError."""
    if preset.trainer == "packed":
        model = seat_model(directory, preset)
        return LoadedModel(model, model.shared.model.tokenizer, preset)
    tokenizer = load_tokenizer(directory, what)
    return LoadedModel(load_weights(directory, what, tokenizer).to(device), tokenizer, preset)


def as_trained(preset: Preset, seat: str, seed: int) -> SamplerSettings:
    """As the seat samples in training: its longest response, its temperature."""
    return SamplerSettings(preset.grpo.tokens(seat), preset.grpo.of(seat)["temperature"], seed)


class Sampler:
    """A model as a source of texts; `coder` and `tester` have the form that evaluation wants."""

    def __init__(self, model: Model, prompter: Prompter, how: SamplerSettings) -> None:
        self._model, self._prompter, self._how = model, prompter, how

    def coder(self, requests: Sequence[CoderRequest], samples: int) -> list[list[str]]:
        """Programs."""
        return self._texts(self._prompter.coder([request.problem for request in requests]), samples)

    def tester(self, requests: Sequence[TesterRequest], samples: int) -> list[list[str]]:
        """Suites, from question and program, or from the question alone where the chat is black-box."""
        asking = [(request.problem, request.program) for request in requests]
        return self._texts(self._prompter.tester(asking, longest=0), samples)

    def _texts(self, prompts: Sequence[Prompt], samples: int) -> list[list[str]]:
        drawn = answers(self._model, self._prompter.tokenizer, prompts, samples, self._how)
        return [[sample.text or "" for sample in group] for group in drawn]


def answers_of(
    model: Any, preset: Preset, prompts: Sequence[Prompt], n: int, how: SamplerSettings, tokenizer: Any = None
) -> list[list[Tokens]]:
    """What a model of transformers or a `SeatModel` says. An answer does not depend on what else is asked."""
    sampling = RolloutSampling(how.temperature, how.top_p, how.tokens, preset.stop_at_fence)
    is_seat = isinstance(model, SeatModel)
    engine = model.shared if is_seat else TransformersEngine(model, tokenizer, ends_of(model, tokenizer), ROWS_AT_ONCE)
    adapter = model.adapter if is_seat else ""
    requests = [
        RolloutRequest(prompt.tokens, n, (how.seed, place), adapter, prompt.begun.answer, prompt.tests)
        for place, prompt in enumerate(prompts)
    ]
    return [
        [Tokens(tuple(one.tokens), tuple(one.log_probs), one.finish) for one in group]
        for group in engine.sample(requests, sampling)
    ]
