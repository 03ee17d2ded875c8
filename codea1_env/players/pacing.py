"""Rate limits: all threads together send no more requests and tokens in any 60 seconds than allowed.

The limits are exact over a sliding window of the times at which requests began; tokens are estimated until their real
number is known. Does not know of other programs that share a key: the server's own 429 answers deal with those
(`hold`).
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from codea1_env.errors import ConfigurationError

WINDOW_S = 60.0


@dataclass(slots=True)
class Passage:
    """One request that was let through."""

    began_s: float
    tokens: int
    """Tokens of the request, at first estimated; set the real number when it is known."""


class Pace:
    """Lets requests through. A copy that goes to another process counts what passes there, from none."""

    def __init__(
        self,
        requests_per_minute: float = math.inf,
        tokens_per_minute: float = math.inf,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Limits are at least 1; infinite: none."""
        for name, limit in (("requests", requests_per_minute), ("tokens", tokens_per_minute)):
            if not limit >= 1:
                raise ConfigurationError(f"{name}_per_minute must be at least 1, got {limit}")
        self._requests, self._tokens = requests_per_minute, tokens_per_minute
        self._clock = clock
        self._passed: deque[Passage] = deque()
        self._held_until_s = -math.inf
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(Pace, clock=self._clock), (self._requests, self._tokens)

    def enter(self, tokens: int, sleep: Callable[[float], None] = time.sleep) -> Passage:
        """Wait until a request of so many tokens may begin. `sleep` may raise, to give up waiting.

        Raises ConfigurationError if the request has more tokens than a minute allows, since it could never begin.
        """
        if tokens > self._tokens:
            raise ConfigurationError(
                f"tokens_per_minute must allow a request, got {self._tokens:g} for one of {tokens} tokens; lower "
                "max_tokens"
            )
        while True:
            with self._lock:
                now = self._clock()
                wait_s = self._wait_s(now, tokens)
                if wait_s <= 0:
                    passage = Passage(now, tokens)
                    self._passed.append(passage)
                    return passage
            sleep(wait_s)

    def hold(self, seconds: float) -> None:
        """Let no request through for so many seconds, because the server has asked for it."""
        with self._lock:
            self._held_until_s = max(self._held_until_s, self._clock() + seconds)

    def _wait_s(self, now: float, tokens: int) -> float:
        """How long the next request has to wait at least; 0: not at all."""
        while self._passed and self._passed[0].began_s + WINDOW_S <= now:
            self._passed.popleft()
        wait_s = max(self._held_until_s - now, 0.0)
        count, total = len(self._passed) + 1, sum(passage.tokens for passage in self._passed) + tokens
        for passage in self._passed:
            if count <= self._requests and total <= self._tokens:
                break
            wait_s = max(wait_s, passage.began_s + WINDOW_S - now)
            count, total = count - 1, total - passage.tokens
        return wait_s
