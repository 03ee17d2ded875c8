"""A player answers requests with text. There are two kinds of request, one for each seat.

Does not promise anything about the text: it may be empty, cut off or no Python at all. Players neither take nor return
tensors.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from codea1_env.checks import require, require_whole
from codea1_env.errors import ConfigurationError, PlayerError
from codea1_env.language_models.rollouts import RolloutSampling
from codea1_env.problems.problem import Problem


@dataclass(frozen=True, slots=True)
class CoderRequest:
    """Asks for a program that answers the question."""

    problem: Problem
    program: str = ""
    """Source of the program to repair; empty in the first round."""
    feedback: str = ""
    """The tests that it failed, an assert on each line."""


@dataclass(frozen=True, slots=True)
class TesterRequest:
    """Asks for a suite of tests that breaks the program."""

    __test__ = False  # pytest: not a test class

    problem: Problem
    program: str
    """Source of the program under attack."""


Request = CoderRequest | TesterRequest


@dataclass(frozen=True, slots=True)
class Sampling(RolloutSampling):
    """How a language model samples. Scripted and recorded players ignore it."""

    stop_at_tests: int = 0
    """A tester's answer ends after this many tests, or after the problem's `suite_size`, at the top level of a fenced
    block; 0: off."""

    def __post_init__(self) -> None:
        RolloutSampling.__post_init__(self)  # `super()` without arguments does not know a class with slots
        require_whole("stop_at_tests", self.stop_at_tests, 0)


DEFAULT_SAMPLING = Sampling()


@dataclass(frozen=True, slots=True)
class Response:
    """One answer of a player."""

    text: str
    """The raw text with prose and fences."""
    truncated: bool = False
    """Whether the answer hit a length limit."""
    player: str = ""
    """Name of the player."""
    version: str = ""
    """The player's version: it changes whenever the player could answer the same request differently."""
    token_ids: tuple[int, ...] | None = None
    """The answer in the model's tokens, if there are any."""
    log_probs: tuple[float, ...] | None = None
    """Natural logarithm of each token's probability when it was sampled, if known."""
    is_silent: bool = False
    """Whether a server's message had no content, though the length limit left room: an empty answer, or a refusal."""


class Player(Protocol):
    """Answers for a seat. The same requests, n, sampling and seed give the same responses."""

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str: ...

    def respond(
        self, requests: Sequence[Request], n: int = 1, sampling: Sampling = DEFAULT_SAMPLING, seed: int = 0
    ) -> list[list[Response]]:
        """`n` responses to each request, in the order of `requests`.

        Raises ConfigurationError for a request that is not for this player's seat, or for n < 1.
        """
        ...


def require_requests(requests: Sequence[Request], kind: type[Request], n: int) -> None:
    """Raise ConfigurationError unless every request is of the given kind and n is at least 1."""
    require_whole("n", n)
    for request in requests:
        if not isinstance(request, kind):
            raise ConfigurationError(f"this player must get a {kind.__name__}, got a {type(request).__name__}")


def require_players(named: Mapping[str, object]) -> None:
    """Raise ConfigurationError unless each of these, by the name of the argument, is a player."""
    for name, given in named.items():
        says_who_it_is = all(isinstance(getattr(given, part, None), str) for part in ("name", "version"))
        is_player = says_who_it_is and callable(getattr(given, "respond", None)) and not isinstance(given, type)
        require(is_player, name, "be a player: texts `name` and `version`, and a method `respond`", given)


def responses_of(
    player: Player, requests: Sequence[Request], n: int = 1, sampling: Sampling = DEFAULT_SAMPLING, seed: int = 0
) -> list[list[Response]]:
    """What the player answers. Raises PlayerError unless these are `n` responses to each request."""
    answered = player.respond(requests, n, sampling, seed) if requests else []
    require_responses(player, answered, len(requests), n)
    return answered


def require_responses(player: Player, answered: object, requests: int, n: int) -> None:
    """Raise PlayerError unless these are `n` responses to each of so many requests."""
    what = f"what the player {getattr(player, 'name', player)!r} answers"
    is_whole = isinstance(answered, list | tuple) and len(answered) == requests
    require(is_whole, what, f"be {requests} lists, one for each request", answered, PlayerError)
    for group in answered if isinstance(answered, list | tuple) else ():
        is_group = isinstance(group, list | tuple) and len(group) == n
        is_right = is_group and all(isinstance(each, Response) and isinstance(each.text, str) for each in group)
        require(is_right, what, f"be {n} Response objects with a text for each request", group, PlayerError)


def generator_for(seed: int, request: Request, sample: int) -> random.Random:
    """The source of randomness for one response.

    It depends on the request and not on its place in a batch, so that answers do not change with the batch.
    """
    parts = (str(seed), str(sample), request.problem.problem_id, request.program)
    digest = hashlib.sha256()
    for part in parts:
        encoded = part.encode("utf-8", "surrogatepass")
        digest.update(len(encoded).to_bytes(8, "big") + encoded)
    return random.Random(digest.digest())
