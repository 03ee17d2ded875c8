"""A rollout engine: prompts in, samples with their log-probabilities out. You can replace it.

`continuous.ContinuousEngine` is the fast one; the tests hold it to `over_generate.GenerateEngine`, which asks
transformers. A sample depends on its prompt, its adapter, its key and its number, and not on its batch: each draws from
its own stream of uniforms. Only rounding of the model's numbers depends on the batch; it can change a draw that is
decided by the last digits.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Literal, cast, get_args

import numpy as np

from codea1_env.checks import is_choice, is_number, require, require_whole
from codea1_env.errors import ConfigurationError, PlayerError
from codea1_env.reading.answers import fenced_ranges
from codea1_env.reading.parsing import normalised
from codea1_env.reading.responses import asserts_in

Key = tuple[int | str, ...]
Finish = Literal["end", "stop", "length"]
"""end: the model ended its answer; stop: its fenced block was closed; length: it was cut off."""
ROUNDING = 1e-3
"""The largest log-probability that still counts as 0."""


@dataclass(frozen=True, slots=True)
class RolloutRequest:
    """One prompt and its number of answers."""

    prompt: tuple[int, ...]
    """Tokens, up to where the answer begins."""
    samples: int
    key: Key
    """Names the streams of the samples. Equal keys draw equal uniforms."""
    adapter: str = ""
    """Name of the adapter that answers; empty: the base alone."""
    begun: str = ""
    """The beginning of the answer, which ends the prompt. If it opens a fenced block, the answer ends where that block
    closes."""
    tests: int = 0
    """The answer also ends with the line that completes this many asserts at the top level of its fenced blocks, if
    these parse; 0: off."""

    def __post_init__(self) -> None:
        if not self.prompt or self.samples < 1:
            raise ConfigurationError(
                f"a request must have a token and a sample, got {len(self.prompt)} and {self.samples}"
            )


@dataclass(frozen=True, slots=True)
class RolloutSampling:
    """How answers are drawn."""

    temperature: float = 1.0
    """In [0, 100]; 0 is greedy."""
    top_p: float = 1.0
    """Probability mass that is kept, in (0, 1]."""
    max_tokens: int = 512
    """Length limit of an answer in the model's tokens, at least 1."""
    stop_at_fence: bool = False
    """Whether an answer ends where its first fenced block ends. An answer that was begun inside a block always ends
    there."""

    def __post_init__(self) -> None:
        is_temperature = is_number(self.temperature) and 0 <= self.temperature <= 100
        require(is_temperature, "temperature", "be in [0, 100]", self.temperature)
        require(is_number(self.top_p) and 0 < self.top_p <= 1, "top_p", "be in (0, 1]", self.top_p)
        require_whole("max_tokens", self.max_tokens)


@dataclass(frozen=True, slots=True)
class Completion:
    """One sample."""

    tokens: tuple[int, ...]
    """The one that ends the answer included."""
    log_probs: tuple[float, ...]
    """Of the tokens, under the distribution that they were drawn from: after temperature and top_p; for temperature 0
    under the model's own."""
    finish: Finish


class RolloutEngine(ABC):
    """Samples from a base with adapters. Subclass it and name the class in `algorithm.rollouts`. It is called with the
    `LanguageModel` and the adapters by name; `sample` uses their weights at the time of the call."""

    prompt_tokens = 0
    """Number of prompt tokens in the last call, each prompt once for each adapter."""

    @abstractmethod
    def sample(self, requests: Sequence[RolloutRequest], sampling: RolloutSampling) -> list[list[Completion]]:
        """`samples` completions of each request, in order. None is empty."""

    def release(self) -> None:  # noqa: B027  # there may be nothing to let go of
        """Free memory for the seats that learn next. Called by each seat, between sampling and learning."""


def require_room(requests: Sequence[RolloutRequest], sampling: RolloutSampling, positions: int, model: str) -> None:
    """Raise ConfigurationError for a prompt that leaves no room for an answer in the positions of the model."""
    for request in requests:
        if len(request.prompt) + sampling.max_tokens > positions:
            raise ConfigurationError(
                f"prompt and max_tokens must fit into the {positions} positions of {model}, got {len(request.prompt)} "
                f"+ {sampling.max_tokens}; lower max_tokens, or leave out what is so long"
            )


def checked(
    found: object, requests: Sequence[RolloutRequest], sampling: RolloutSampling, vocabulary: int, name: str
) -> list[list[Completion]]:
    """What an engine returned for the requests. Raises ConfigurationError where it is not what `sample` must return.
    `name`: of the engine."""
    is_whole = isinstance(found, Sequence) and len(found) == len(requests)
    require(is_whole, name, f"return a list for each of {len(requests)} requests", found)
    groups = cast(list[list[Completion]], found)
    for answers, request in zip(groups, requests, strict=True):
        is_whole = isinstance(answers, Sequence) and len(answers) == request.samples
        is_whole = is_whole and all(isinstance(one, Completion) for one in answers)
        require(is_whole, name, f"return {request.samples} Completions for a request of as many samples", answers)
        for one in answers:
            _require_whole(one, sampling.max_tokens, vocabulary, name)
    return groups


def _require_whole(one: Completion, longest: int, vocabulary: int, name: str) -> None:
    is_whole = isinstance(one.tokens, Sequence) and 1 <= len(one.tokens) <= longest
    is_whole = is_whole and all(type(token) is int and 0 <= token < vocabulary for token in one.tokens)
    require(is_whole, name, f"return 1 to {longest} tokens an answer, ints in [0, {vocabulary})", one.tokens)
    is_whole = isinstance(one.log_probs, Sequence) and len(one.log_probs) == len(one.tokens)
    is_whole = is_whole and all(is_number(value) and value <= ROUNDING for value in one.log_probs)
    must = f"return a log-probability for each of an answer's {len(one.tokens)} tokens, finite and at most 0"
    require(is_whole, name, must, one.log_probs)
    finishes = get_args(Finish)
    require(is_choice(one.finish, finishes), name, f"say of an answer one of {', '.join(finishes)}", one.finish)


class Uniforms:
    """One stream of uniforms in [0, 1), in order of the answer's positions."""

    def __init__(self, key: Key, sample: int) -> None:
        digest = hashlib.blake2b(repr((*key, sample)).encode(), digest_size=16).digest()
        self._stream = np.random.Generator(np.random.Philox(key=int.from_bytes(digest, "little")))

    def next(self) -> float:
        return float(self._stream.random())


class AnswerEnd:
    """Where an answer ends before its model ends it: a pure function of what was said."""

    def __init__(self, begun: str = "", *, at_fence: bool = True, tests: int = 0) -> None:
        """`begun`, `tests`: as in a `RolloutRequest`. `at_fence`: the answer ends where a block closes, also where
        `begun` opens none."""
        self.marks = "`~\n" if tests else "`~"
        """It can only be reached with a token in which one of these stands."""
        self._begun, self._tests = begun, tests
        self._closed = _closed(begun)
        self._at_fence = at_fence or len(fenced_ranges(begun)) > self._closed

    def is_reached(self, said: str) -> bool:
        """Whether the answer ends here. `said`: behind `begun`."""
        text = normalised(self._begun + said)
        if self._at_fence and _closed(text) > self._closed:
            return True
        return bool(self._tests) and asserts_in(text[: text.rfind("\n") + 1]) >= self._tests


@dataclass(slots=True)
class GrowingAnswer:
    """One answer of a request while it grows."""

    request: RolloutRequest
    uniforms: Uniforms
    ending: AnswerEnd
    most: int
    """Tokens."""
    tokens: list[int] = field(default_factory=list)
    log_probs: list[float] = field(default_factory=list)
    finish: Finish | None = None

    @classmethod
    def of(cls, request: RolloutRequest, sample: int, sampling: RolloutSampling) -> GrowingAnswer:
        """Before its first token. `sample`: which of the request's."""
        ending = AnswerEnd(request.begun, at_fence=sampling.stop_at_fence, tests=request.tests)
        return cls(request, Uniforms(request.key, sample), ending, sampling.max_tokens)

    @property
    def length(self) -> int:
        """Tokens of the prompt and the answer."""
        return len(self.request.prompt) + len(self.tokens)

    def append(self, token: int, log_prob: float, ends: Collection[int], said: Callable[[Sequence[int]], str]) -> None:
        """`ends`: the tokens that end an answer. `said`: tokens as a text. Raises PlayerError for NaN."""
        if log_prob != log_prob:
            raise PlayerError("the model must give numbers, got NaN")
        self.tokens.append(token)
        self.log_probs.append(log_prob)
        last = said([token])
        if token in ends:
            self.finish = "end"
        elif any(mark in last for mark in self.ending.marks) and self.ending.is_reached(said(self.tokens)):
            self.finish = "stop"
        elif len(self.tokens) == self.most:
            self.finish = "length"

    def completion(self) -> Completion:
        assert self.finish is not None
        return Completion(tuple(self.tokens), tuple(self.log_probs), self.finish)


def _closed(text: str) -> int:
    """Blocks that are closed."""
    return sum(end < len(text) for _, end, _ in fenced_ranges(text))
