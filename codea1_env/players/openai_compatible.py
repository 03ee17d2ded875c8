"""A model behind an OpenAI-compatible server (`POST .../v1/chat/completions`) in either seat.

Uses Python's own HTTP client: one kind of request is needed, and the `openai` package would install a dozen others,
whose retries and time-outs could not be bounded as they are here.

Every answer is one that the server gave. A message without content is an empty one, and is counted (`completions.py`).
Temporary failures (no connection, time-outs, 408, 409, 425, 429, 5xx, answers that are no completion) are retried with
exponential back-off. If all attempts fail, the type of the error says whose fault it is.

An answer that the prompt begins is continued as vLLM's and SGLang's servers do it (`continue_final_message`), and ends
at its fence; other servers refuse the request or begin a new answer. Does not promise the same answers for a seed: the
seed is sent, and servers may ignore it. Does not stream, and does not follow redirects or use proxies.
"""

from __future__ import annotations

import http.client
import ipaddress
import json
import logging
import math
import os
import queue
import random
import ssl
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

from codea1_env.checks import is_number, require, require_whole
from codea1_env.errors import ConfigurationError, PlayerError, PlayerGarbled, PlayerRefused, PlayerUnavailable
from codea1_env.players.chat import Prompt, chat_messages
from codea1_env.players.completions import ServedAnswer, Silence, read_completions
from codea1_env.players.http_json import HttpResponse, Pace, Poster
from codea1_env.players.player import DEFAULT_SAMPLING, Request, Response, Sampling, generator_for
from codea1_env.players.templates import CLOSED, Begun, begun

KEY_VARIABLE = "OPENAI_API_KEY"
_PASSING = frozenset((408, 409, 425, 429))
_log = logging.getLogger(__name__)

Sleep = Callable[[float], None]


@dataclass(frozen=True, slots=True)
class Traffic:
    """Limits of the requests to a server. Raises ConfigurationError for a value outside its range."""

    timeout_s: float = 120.0
    """Seconds for one request in all, from connecting to the last byte, > 0."""
    retries: int = 5
    """Further attempts after the first, >= 0."""
    back_off_s: float = 1.0
    """Longest wait before the second attempt, doubled for each one after it, >= 0; the shortest is half of it."""
    max_wait_s: float = 120.0
    """Longest wait in seconds before an attempt, >= 0. If a server asks for a longer wait, the request fails."""
    requests_per_minute: float = math.inf
    """Requests in any 60 seconds, >= 1; failed attempts count."""
    tokens_per_minute: float = math.inf
    """Tokens in any 60 seconds, >= 1. Until the server has counted, the prompt's are estimated and each answer counts
    `max_tokens`."""
    concurrency: int = 8
    """Requests that may be under way at a time, >= 1."""

    def __post_init__(self) -> None:
        for name in ("timeout_s", "back_off_s", "max_wait_s"):
            value = getattr(self, name)
            if not is_number(value) or not 0 <= value < threading.TIMEOUT_MAX or (name == "timeout_s" and value == 0):
                least = "above 0" if name == "timeout_s" else "of at least 0"
                raise ConfigurationError(f"{name} must be a number of seconds {least}, got {value}")
        for name in ("requests_per_minute", "tokens_per_minute"):
            require(isinstance(rate := getattr(self, name), int | float) and rate >= 1, name, "be at least 1", rate)
        require_whole("retries", self.retries, 0)
        require_whole("concurrency", self.concurrency)


DEFAULT_TRAFFIC = Traffic()


class OpenAIPlayer:
    """Answers both seats' requests through a server, `traffic.concurrency` requests at a time."""

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        api_key: str | None = None,
        traffic: Traffic = DEFAULT_TRAFFIC,
        name: str = "",
        prompt: Prompt = chat_messages,
        token_limit_field: str = "max_tokens",
        extra_fields: Mapping[str, Any] | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Sleep | None = None,
    ) -> None:
        """`base_url`: e.g. `http://localhost:8000/v1`; without a path, `/v1` is meant. `model`: as the server calls it.

        `api_key`: None takes the environment's OPENAI_API_KEY; "" sends none. `prompt`: turns a request into messages.
        `token_limit_field`: what the server calls `max_tokens`. `extra_fields`: put into every request. `clock` and
        `sleep` are for waiting between attempts.
        """
        self._url = _completions_url(base_url)
        Poster(self._url)  # is it an address at all?
        self._key = _checked_key(os.environ.get(KEY_VARIABLE, "") if api_key is None else api_key)
        if self._key and not _is_private(self._url):
            _log.warning("the API key goes to %s in clear text: use https", self._url)
        self.name = name or f"openai:{base_url}#{model}"
        self.version = model
        self._model = model
        self._traffic = traffic
        self._pace = Pace(traffic.requests_per_minute, traffic.tokens_per_minute, clock=clock)
        self._prompt = prompt
        self._token_limit_field = token_limit_field
        self._extra_fields = dict(extra_fields or {})
        self._silence = Silence(self._url)
        self._sleep = sleep

    def respond(
        self, requests: Sequence[Request], n: int = 1, sampling: Sampling = DEFAULT_SAMPLING, seed: int = 0
    ) -> list[list[Response]]:
        """`n` responses to each request.

        Raises ConfigurationError for n < 1, and the PlayerError of the first request that got no answer; the other
        requests are then cut off.
        """
        require_whole("n", n)
        call = _Call(Poster(self._url), self._sleep)
        waiting = iter(range(len(requests)))
        taking = threading.Lock()
        done: queue.SimpleQueue[tuple[int, list[Response] | BaseException]] = queue.SimpleQueue()

        def work() -> None:
            while True:
                with taking:
                    place = next(waiting, None)
                if place is None:
                    return
                try:
                    done.put((place, self._answers(call, requests[place], n, sampling, seed)))
                except BaseException as error:  # raised again by who waits for it
                    done.put((place, error))
                    return

        responses: dict[int, list[Response]] = {}
        try:
            for _ in range(min(self._traffic.concurrency, len(requests))):
                threading.Thread(target=work, daemon=True).start()
            while len(responses) < len(requests):
                place, answers = done.get()
                if isinstance(answers, BaseException):
                    raise answers
                responses[place] = answers
        finally:
            call.end()
        return [responses[place] for place in range(len(requests))]

    def _answers(self, call: _Call, request: Request, n: int, sampling: Sampling, seed: int) -> list[Response]:
        messages = self._prompt(request)
        begin = begun(messages)
        answers: list[Response] = []
        while len(answers) < n:
            # Servers refuse several greedy answers at once; some give one whatever is asked for.
            count = n - len(answers) if sampling.temperature else 1
            body = {
                "model": self._model,
                "messages": messages,
                "n": count,
                "temperature": sampling.temperature,
                "top_p": sampling.top_p,
                self._token_limit_field: sampling.max_tokens,
                "seed": generator_for(seed, request, len(answers)).getrandbits(31),
                **({"continue_final_message": True, "add_generation_prompt": False} if begin.answer else {}),
                **({"stop": [CLOSED]} if begin.is_in_fence else {}),
                **self._extra_fields,
            }
            prompt_tokens = len(json.dumps(messages, ensure_ascii=False)) // 3  # rather too many
            tokens = prompt_tokens + count * sampling.max_tokens
            found = self._complete(call, body, tokens)[:count]
            self._silence.note(found)
            answers += [self._response(each, begin) for each in found]
        return answers

    def _response(self, completion: ServedAnswer, begin: Begun) -> Response:
        text, version = begin.whole(completion.text), completion.version or self.version
        return Response(text, completion.truncated, self.name, version, is_silent=completion.is_silent)

    def _complete(self, call: _Call, body: Mapping[str, object], tokens: int) -> list[ServedAnswer]:
        """What the server answers, in the first attempt that works."""
        headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        failure: PlayerError | None = None
        wait_s = 0.0
        for attempt in range(1 + self._traffic.retries):
            if failure is not None:
                _log.warning("%s; attempt %d follows in %.1f s", failure, attempt + 1, wait_s)
                call.sleep(wait_s)
            passage = self._pace.enter(tokens, call.sleep)
            asked_s = None
            try:
                answer = call.poster.post(body, headers, self._traffic.timeout_s)
                if answer.status == 200:
                    completions = read_completions(answer.body)
                    passage.tokens = completions.tokens or passage.tokens
                    return completions.found
                failure, asked_s = self._rejection(answer)
            except ssl.SSLCertVerificationError as error:
                raise PlayerRefused(f"{self._url} must have a valid certificate, got: {error}") from error
            except (OSError, http.client.HTTPException) as error:
                failure = PlayerUnavailable(self._told(f"must answer, got: {error or type(error).__name__}"))
            except PlayerGarbled as error:
                failure = PlayerGarbled(self._told(str(error)))
            if asked_s is not None:
                if asked_s > self._traffic.max_wait_s:
                    raise PlayerUnavailable(f"{failure}; it asks to wait for {asked_s:g} s, longer than max_wait_s")
                self._pace.hold(asked_s)
            wait_s = self._back_off(attempt, asked_s or 0.0)
        assert failure is not None
        raise type(failure)(f"{failure} (attempts: {1 + self._traffic.retries})")

    def _back_off(self, attempt: int, asked_s: float) -> float:
        longest = min(self._traffic.back_off_s * 2.0 ** min(attempt, 60), self._traffic.max_wait_s)
        # At random, so that many who failed together do not come back together; never before the server wants it.
        return max(longest * random.uniform(0.5, 1.0), asked_s)

    def _rejection(self, answer: HttpResponse) -> tuple[PlayerError, float | None]:
        """An invalid answer, as an error, and how long the server wants not to be asked. Raises PlayerRefused."""
        text = answer.body[:2000].decode("utf-8", "replace")
        told = self._told(f"must answer with status 200, got {answer.status}: {text}")
        is_spent = answer.status == 429 and "insufficient_quota" in text
        if is_spent or not (answer.status in _PASSING or answer.status >= 500):
            raise PlayerRefused(told)
        return PlayerUnavailable(told), _asked_wait_s(answer.headers)

    def _told(self, text: str) -> str:
        """What the server said, fit to be printed: short, without commands to terminals, without the key."""
        text = " ".join((text.replace(self._key, "***") if self._key else text).split())
        return self._url + " " + "".join(c if c.isprintable() else "?" for c in text)[:400]


class _Call:
    """One call of `respond`: what its threads share, and what ends them."""

    def __init__(self, poster: Poster, sleep: Sleep | None) -> None:
        self.poster = poster
        self._ended = threading.Event()
        self._wait = sleep or self._ended.wait

    def sleep(self, seconds: float) -> None:
        self._wait(seconds)
        if self._ended.is_set():
            raise PlayerUnavailable("the call was ended")

    def end(self) -> None:
        self._ended.set()
        self.poster.end()


def _completions_url(base_url: str) -> str:
    url = base_url.rstrip("/").removesuffix("/chat/completions")
    try:
        path = urlsplit(url).path
    except ValueError:
        raise ConfigurationError(f"base_url must be an http or https address, got {base_url!r}") from None
    return f"{url}{'' if path else '/v1'}/chat/completions"


def _checked_key(key: str) -> str:
    key = key.strip()
    if not (key.isascii() and key.isprintable()) or " " in key:  # it would not fit into a header; do not show it
        raise ConfigurationError("the API key must be printable ASCII without spaces, got something else")
    return key


def _is_private(url: str) -> bool:
    """A key that is sent there crosses no network in clear text."""
    parts = urlsplit(url)
    try:
        return parts.scheme == "https" or ipaddress.ip_address(parts.hostname or "").is_loopback
    except ValueError:
        return parts.hostname == "localhost"


def _asked_wait_s(headers: Mapping[str, str]) -> float | None:
    """Seconds that the server wants not to be asked; None where it does not say."""
    for name, unit_s in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        try:
            seconds = float(headers.get(name, "")) * unit_s
        except ValueError:
            continue
        if seconds >= 0:  # nan is not
            return seconds
    try:
        until, now = (parsedate_to_datetime(headers.get(name, "")) for name in ("retry-after", "date"))
        return max((until - now).total_seconds(), 0.0)
    except (ValueError, TypeError, OverflowError):  # no dates, or one without a time zone
        return None
