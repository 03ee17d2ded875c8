"""One HTTP request with a JSON body. Its total time and its bytes are bounded, and another thread can end it. And rate
limits: all threads together send no more requests and tokens in any 60 seconds than allowed.

Plain `http.client`. Follows no redirect (a POST would become a GET, and the key would go to whoever is named there) and
uses no proxy. Does not retry, and does not read what comes: status, headers and bytes are the caller's.

The limits are exact over a sliding window of the times at which requests began; tokens are estimated until their real
number is known. Does not know of other programs that share a key: the server's own 429 answers deal with those
(`hold`).
"""

from __future__ import annotations

import http.client
import json
import math
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from codea1_env.errors import ConfigurationError

MAX_ANSWER_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """What a server sent back."""

    status: int
    headers: Mapping[str, str]
    """The headers, with names in lower case."""
    body: bytes


class Poster:
    """Sends requests to one address, from any number of threads."""

    def __init__(self, url: str) -> None:
        """`url`: where to POST. Raises ConfigurationError where it is no plain http or https address."""
        try:
            parts = urlsplit(url)
            port = parts.port
            (parts.hostname or "").encode("idna")
        except ValueError:  # UnicodeError is one
            raise ConfigurationError(f"the URL must be an http or https address, got {url!r}") from None
        if parts.scheme not in ("http", "https") or not parts.hostname or not url.isascii() or not url.isprintable():
            raise ConfigurationError(f"the URL must be an http or https address, got {url!r}")
        if parts.username is not None or parts.query or parts.fragment or " " in url:
            raise ConfigurationError("the URL must hold no user, password, query, fragment or space, got one that does")
        self._connection = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        self._host, self._port, self._path = parts.hostname, port, parts.path or "/"
        self._open: set[socket.socket] = set()
        self._is_ended = False
        self._lock = threading.Lock()

    def post(self, body: object, headers: Mapping[str, str], timeout_s: float) -> HttpResponse:
        """The server's answer. Raises TimeoutError after `timeout_s` in all, OSError and http.client.HTTPException."""
        end = time.monotonic() + timeout_s
        connection = self._connection(self._host, self._port, timeout=timeout_s)
        wire: socket.socket | None = None
        watch: threading.Timer | None = None
        try:
            connection.connect()
            wire = connection.sock
            self._take(wire)
            # A socket's own time-out starts anew with every byte, however slowly they drip.
            watch = threading.Timer(max(end - time.monotonic(), 0), _cut, [wire])
            watch.daemon = True
            watch.start()
            connection.request(
                "POST", self._path, json.dumps(body).encode(), {"Content-Type": "application/json", **headers}
            )
            response = connection.getresponse()
            content = response.read(MAX_ANSWER_BYTES + 1)
            if len(content) > MAX_ANSWER_BYTES:
                raise http.client.HTTPException(f"an answer must be at most {MAX_ANSWER_BYTES} bytes, got more")
            if response.length:  # bytes that were announced and have not come: read(amount) does not mind
                raise http.client.IncompleteRead(content, response.length)
            if time.monotonic() >= end:
                raise TimeoutError(f"no whole answer within {timeout_s:g} s")
            return HttpResponse(response.status, {name.lower(): text for name, text in response.getheaders()}, content)
        except (OSError, http.client.HTTPException) as error:
            if time.monotonic() >= end:
                raise TimeoutError(f"no whole answer within {timeout_s:g} s") from error
            raise
        finally:
            if watch is not None:
                watch.cancel()
            with self._lock:
                if wire is not None:
                    self._open.discard(wire)
            connection.close()

    def end(self) -> None:
        """Cut all requests that are under way, which then raise at once. Afterwards no request can be sent."""
        with self._lock:
            self._is_ended = True
            for wire in self._open:
                _cut(wire)

    def _take(self, wire: socket.socket) -> None:
        with self._lock:
            if self._is_ended:
                raise ConnectionAbortedError("requests were ended")
            self._open.add(wire)


def _cut(wire: socket.socket) -> None:
    with suppress(OSError):  # it has ended by itself
        socket.socket.shutdown(wire, socket.SHUT_RDWR)  # the one of TLS would have who reads or writes go on without it


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
