"""What goes in and out of a policy: prompts as tokens, samples as tokens and text, rows that say what they earned; and
what a seat is told of the run that it trains in.

Plain data: it travels between processes. Knows no tensor.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from codea1_env.configuration.presets import Preset
from codea1_env.language_models.rollouts import Finish
from codea1_env.players.chat import said_text
from codea1_env.players.templates import Begun

Span = tuple[int, int]
"""First character and the one after the last."""
Rewards = list[float | None]
"""One per row; None: infrastructure failed, there is no score."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a model is asked."""

    tokens: tuple[int, ...]
    """Up to where the answer goes on."""
    begun: Begun
    """The conversation, with the beginning of the answer."""
    tests: int = 0
    """The answer ends with so many tests, where the policy knows how; 0: it goes on."""
    fits: bool = True
    """Whether it is within the run's limit. One that is not is never asked: its samples have no text."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """One response as a policy drew it."""

    tokens: tuple[int, ...]
    logprobs: tuple[float, ...] | None = None
    """Of the tokens, by what drew them: vLLM and the packed policy tell; `generate` does not: None."""
    finish: Finish | None = None
    """Why it ended; None where it is not known."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One response to a prompt, with the tokens that are learnt from."""

    prompt: tuple[int, ...]
    tokens: tuple[int, ...]
    text: str | None
    """The whole answer, with its beginning. None: the prompt was too long, the sample only keeps its place."""
    logprobs: tuple[float, ...] | None = None
    finish: Finish | None = None
    """Both as in `Tokens`."""


@dataclass(frozen=True, slots=True)
class SamplerSettings:
    """How a model is sampled outside of its own training: to measure it, or because it does not learn."""

    tokens: int
    """Longest response."""
    temperature: float
    """0 is greedy."""
    seed: int
    top_p: float = 1.0


class Model(Protocol):
    """Whatever answers: a saved model, or a policy as it is."""

    def answer(self, prompts: Sequence[Prompt], n: int, how: SamplerSettings) -> list[list[Tokens]]:
        """`n` responses to each prompt, from `how.seed`; the streams of training are as they were."""


@dataclass(frozen=True, slots=True)
class RowLabel:
    """What an estimator knows about a row besides its reward: its writer and its group."""

    group: str
    """Rows that answer the same prompt: the N programs of a question, the M suites of a program. Unique in the
    round."""
    question: str
    """The problem's id."""
    seat: str
    """coder or tester: who wrote the row. In self-play a batch holds both."""
    spans: tuple[Span, ...] = ()
    """Characters of the response that write each rewarded test, in order, for credit: test."""
    test_rewards: tuple[float, ...] = ()
    """One per span."""


@dataclass(frozen=True, slots=True)
class Row:
    """A sample, and what it earned."""

    sample: Sample
    reward: float | None
    """None: no score; it is not learnt from."""
    label: RowLabel
    learns: bool = True
    """Whether it is in the loss."""


Batch = Sequence[Row]
"""What a policy learns from in a round."""


def texts_of(samples: Sequence[Sequence[Sample]]) -> list[list[str | None]]:
    """What the samples say."""
    return [[sample.text for sample in group] for group in samples]


def answers(
    model: Model, tokenizer: Any, prompts: Sequence[Prompt], n: int, how: SamplerSettings
) -> list[list[Sample]]:
    """What a model says. A prompt that does not fit is not asked."""
    drawn = iter(model.answer([prompt for prompt in prompts if prompt.fits], n, how))
    nothing = [Tokens(())] * n
    return [
        [sample_of(tokenizer, prompt, each) for each in (next(drawn) if prompt.fits else nothing)] for prompt in prompts
    ]


def sample_of(tokenizer: Any, prompt: Prompt, drawn: Tokens) -> Sample:
    """With what the tokens say."""
    text = prompt.begun.whole(said_text(tokenizer, drawn.tokens, prompt.begun)) if prompt.fits else None
    return Sample(prompt.tokens, drawn.tokens, text, drawn.logprobs, drawn.finish)


UNFINISHED = "\N{REPLACEMENT CHARACTER}"


def token_advantages(
    offsets: Sequence[Span], spans: Sequence[Span], values: Sequence[float], rest: float
) -> list[float]:
    """One advantage a token: that of the first span which it shares a character with, else `rest`.

    `offsets[i]`: the characters of token i; a token without characters (an end token) gets `rest`. The spans are in
    order and do not overlap.
    """
    advantages = [rest] * len(offsets)
    place = 0
    for token, (start, end) in enumerate(offsets):
        while place < len(spans) and spans[place][1] <= start:
            place += 1
        if start < end and place < len(spans) and spans[place][0] < end:
            advantages[token] = values[place]
    return advantages


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


@dataclass(frozen=True, slots=True)
class SeatRun:
    """What a seat needs to train in a run."""

    preset: Preset
    base: Path
    """The model to start from, in Hugging Face format."""
    output: Path
    """Where checkpoints go."""
    seed: int
    resume_from: Path | None = None
    """A checkpoint of this seat, or None to start from the base."""
    outputs: Mapping[str, Path] = field(default_factory=dict)
    """Of all seats of the run, this one's included: no checkpoint goes that another seat still needs."""

    @property
    def seat(self) -> str:
        return self.output.name

    def stream(self, place: int) -> int:
        """A seed for each `place`, a round or part of the run: no two runs share one, none has a million rounds."""
        return self.seed * 1_000_000 + place
