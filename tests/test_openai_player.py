"""A model behind a server: what is asked, what counts as an answer, and what happens when there is none."""

import dataclasses
import json
import pickle
import signal
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fake_openai import FakeServer, Json, Reply, completion, echo, serving, silence, wait_for

from codea1_env.errors import ConfigurationError, PlayerError, PlayerGarbled, PlayerRefused, PlayerUnavailable
from codea1_env.players import CoderRequest, OpenAIPlayer, Player, Request, Sampling, TesterRequest, Traffic
from codea1_env.players.chat import chat_messages
from codea1_env.players.http_json import _cut
from codea1_env.problems import bundled_problems

PROBLEMS = bundled_problems()
REQUESTS: list[Request] = [*(CoderRequest(problem) for problem in PROBLEMS[:3]), TesterRequest(PROBLEMS[0], "pass")]
ONE = REQUESTS[:1]
PATIENT = Traffic(timeout_s=30, retries=2)


@pytest.fixture(autouse=True)
def _no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


class Seat:
    """A player that keeps note of its waits instead of waiting."""

    def __init__(self, server: FakeServer, traffic: Traffic = PATIENT, **arguments: Any) -> None:
        self.waits: list[float] = []
        self.now = 0.0
        self.player: Player = OpenAIPlayer(
            server.url, "m", traffic=traffic, sleep=self._sleep, clock=lambda: self.now, **arguments
        )

    def _sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds


def in_turn(*replies: Reply) -> Callable[[Json, int], Reply]:
    """The replies one after another, then answers."""
    return lambda request, number: replies[number] if number < len(replies) else echo(request)


def test_a_request_carries_the_messages_and_the_sampling() -> None:
    sampling = Sampling(temperature=0.7, top_p=0.9, max_tokens=99)
    with serving(lambda request, _: echo(request)) as server:
        Seat(server, extra_fields={"top_k": 5}).player.respond(ONE, n=3, sampling=sampling)
        Seat(server, token_limit_field="max_completion_tokens").player.respond(ONE, sampling=sampling)
    first, second = server.asked
    assert server.paths == ["/v1/chat/completions"] * 2
    assert first["messages"] == chat_messages(ONE[0])
    assert [first[k] for k in ("model", "n", "temperature", "top_p", "max_tokens", "top_k")] == [
        "m",
        3,
        0.7,
        0.9,
        99,
        5,
    ]
    assert second["max_completion_tokens"] == 99
    assert "max_tokens" not in second
    assert "Authorization" not in server.headers[0]


def test_n_answers_to_each_request_come_in_its_order_whatever_the_concurrency() -> None:
    with serving(lambda request, _: echo(request)) as server:
        alone, together = (
            Seat(server, dataclasses.replace(PATIENT, concurrency=count)).player.respond(REQUESTS, n=2, seed=7)
            for count in (1, 4)
        )
        assert alone == together
        assert alone[::-1] == Seat(server).player.respond(REQUESTS[::-1], n=2, seed=7)
        assert alone != Seat(server).player.respond(REQUESTS, n=2, seed=8)
    assert [len(group) for group in alone] == [2] * len(REQUESTS)
    assert len({each.text for group in alone for each in group}) == 2 * len(REQUESTS)
    assert {(each.version, each.truncated) for group in alone for each in group} == {("fake-1", False)}


def test_a_server_that_gives_one_answer_at_a_time_is_asked_for_the_rest_with_other_seeds() -> None:
    with serving(lambda request, _: Reply(body=completion(str(request["seed"])))) as server:
        (answers,) = Seat(server).player.respond(ONE, n=3)
    assert [request["n"] for request in server.asked] == [3, 2, 1]
    assert len({answer.text for answer in answers}) == 3


def test_a_server_that_gives_too_many_answers_is_taken_at_its_first_ones_in_their_order() -> None:
    def behave(request: Json, number: int) -> Reply:
        record = json.loads(completion("a", "b", "c"))
        record["choices"].reverse()
        return Reply(body=json.dumps(record).encode())

    with serving(behave) as server:
        (answers,) = Seat(server).player.respond(ONE, n=2)
    assert [answer.text for answer in answers] == ["a", "b"]


def test_greedy_answers_are_asked_for_one_at_a_time() -> None:
    with serving(lambda request, _: echo(request)) as server:
        (answers,) = Seat(server).player.respond(ONE, n=2, sampling=Sampling(temperature=0))
    assert len(answers) == 2
    assert [request["n"] for request in server.asked] == [1, 1]


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 529])
def test_what_passes_is_tried_again_with_growing_waits(status: int) -> None:
    with serving(in_turn(Reply(status), Reply(status))) as server:
        seat = Seat(server)
        ((answer,),) = seat.player.respond(ONE)
    assert answer.text.endswith("/0")
    assert len(server.asked) == 3
    assert server.asked[0] == server.asked[2]
    first, second = seat.waits
    assert 0.5 <= first <= 1.0 <= second <= 2.0


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (Reply(503, b"busy"), PlayerUnavailable),
        (Reply(429), PlayerUnavailable),
        (Reply(429, headers={"Retry-After": f"Mon, 30 Nov {'9' * 20} 00:00:00 GMT"}), PlayerUnavailable),
        (Reply(body=b"", claims=1, headers={"Content-Length": "9" * 5000}), PlayerGarbled),
        (Reply(hang_up=True), PlayerUnavailable),
        (Reply(body=completion("a"), claims=10), PlayerUnavailable),
        (Reply(body=b"{'choices"), PlayerGarbled),
        (Reply(body=b"[" * 100_000), PlayerGarbled),
        (Reply(body=b"\xff"), PlayerGarbled),
        (Reply(body=b""), PlayerGarbled),
        (Reply(body=b"null"), PlayerGarbled),
        (Reply(body=b'{"choices": []}'), PlayerGarbled),
        (Reply(body=b'{"choices": [3]}'), PlayerGarbled),
        (Reply(body=b'{"choices": [{"message": "text"}]}'), PlayerGarbled),
        (Reply(body=b'{"choices": [{"message": {"content": null}, "finish_reason": "error"}]}'), PlayerGarbled),
        (Reply(body=b'{"choices": [{"message": {"content": null}}]}'), PlayerGarbled),
        (Reply(body=silence(finish_reason="abort")), PlayerGarbled),
        (Reply(body=b'{"choices": [{"message": {"content": ["text"]}}]}'), PlayerGarbled),
        (Reply(body=b'{"error": {"message": "out of memory"}}'), PlayerGarbled),
    ],
)
def test_what_does_not_pass_is_an_error_and_never_an_answer(reply: Reply, error: type[PlayerError]) -> None:
    with serving(lambda *_: reply) as server:
        with pytest.raises(error, match=r"chat/completions must answer.* \(attempts: 3\)"):
            Seat(server).player.respond(ONE)
        assert len(server.asked) == 3


@pytest.mark.parametrize(
    "reply",
    [
        *(Reply(status, b"no") for status in (400, 401, 403, 404, 413, 422)),
        Reply(302, headers={"Location": "http://127.0.0.1:1/"}),
        Reply(429, b'{"error": {"code": "insufficient_quota"}}'),
    ],
)
def test_what_will_not_pass_is_not_tried_again(reply: Reply) -> None:
    with serving(lambda *_: reply) as server:
        seat = Seat(server)
        with pytest.raises(PlayerRefused, match=f"must answer with status 200, got {reply.status}"):
            seat.player.respond(ONE)
    assert len(server.asked) == 1
    assert seat.waits == []


SILENT = [
    silence(),
    silence(reasoning="It is 3."),
    silence(reasoning_content="```python\ndef f(x): return 3\n```"),
    silence(reasoning_content="It is 3.", content=""),
    silence(reasoning="It is 3.", content="\n"),
    silence(content=[{"type": "thinking", "thinking": "It is 3."}]),
    silence(finish_reason="eos_token"),
    silence(tool_calls=[{"id": "1"}], finish_reason="tool_calls"),
    silence(finish_reason="content_filter"),
    b'{"choices": [{"message": {"role": "assistant", "reasoning": "3"}, "finish_reason": "stop"}]}',
]
"""Messages without content."""


@pytest.mark.parametrize(
    ("body", "text", "truncated", "is_silent"),
    [
        *((body, "", False, True) for body in SILENT),
        (silence(refusal="I will not."), "I will not.", False, True),
        (completion("def f(x): return 3"), "def f(x): return 3", False, False),
        (completion(""), "", False, False),
        (completion("a b", finish_reason="length"), "a b", True, False),
        (silence(content="x", reasoning_content="hm"), "x", False, False),
        (silence(finish_reason="length", reasoning="hm"), "", True, False),
        (b'{"choices": [{"message": {"content": null}, "finish_reason": "length"}]}', "", True, False),
    ],
)
def test_an_answer_has_its_text_and_says_whether_it_was_cut_off_or_had_no_content(
    body: bytes, text: str, truncated: bool, is_silent: bool
) -> None:
    with serving(lambda *_: Reply(body=body)) as server:
        seat = Seat(server)
        ((answer,),) = seat.player.respond(ONE)
    assert (answer.text.strip(), answer.truncated, answer.is_silent) == (text, truncated, is_silent)
    assert seat.waits == []


def test_a_server_that_is_mostly_silent_is_an_error_that_says_so_and_one_that_is_rarely_so_goes_on() -> None:
    with serving(lambda *_: Reply(body=silence())) as server:
        with pytest.raises(PlayerRefused, match=r"must answer with content, got none in 8 of 8 answers .*; turn"):
            Seat(server, Traffic(concurrency=1)).player.respond(ONE * 20)
        assert len(server.asked) == 8
        assert len(Seat(server).player.respond(ONE * 7)) == 7
        player = Seat(server).player
        for _ in range(7):
            player.respond(ONE)
        with pytest.raises(PlayerRefused, match="got none in 8 of 8 answers"):
            player.respond(ONE)
    with serving(lambda _, number: Reply(body=silence() if number % 2 else completion("x"))) as server:
        answers = Seat(server, Traffic(concurrency=1)).player.respond(ONE * 60)
    assert sum(answer.is_silent for (answer,) in answers) == 30


@pytest.mark.parametrize(
    ("headers", "least_s"),
    [
        ({"Retry-After": "17"}, 17),
        ({"Retry-After": "0.25", "Retry-After-Ms": "9000"}, 9),
        ({"Retry-After": "Fri, 06 Nov 2026 10:00:30 GMT", "Date": "Fri, 06 Nov 2026 10:00:00 GMT"}, 30),
        ({"Retry-After": "soon"}, 0.5),
        ({"Retry-After": "nan"}, 0.5),
        ({"Retry-After": "-5"}, 0.5),
    ],
)
def test_a_wait_that_the_server_asks_for_is_kept(headers: dict[str, str], least_s: float) -> None:
    with serving(in_turn(Reply(429, headers=headers))) as server:
        seat = Seat(server)
        seat.player.respond(ONE)
    assert least_s <= sum(seat.waits) <= max(least_s, 1.0)


@pytest.mark.parametrize("asked", ["3600", "inf", "1e400"])
def test_a_wait_longer_than_allowed_is_an_error_at_once(asked: str) -> None:
    with serving(in_turn(Reply(429, headers={"Retry-After": asked}))) as server:
        seat = Seat(server)
        with pytest.raises(PlayerUnavailable, match="longer than max_wait_s"):
            seat.player.respond(ONE)
    assert seat.waits == []


def test_back_off_never_exceeds_the_longest_wait() -> None:
    with serving(lambda *_: Reply(500)) as server:
        seat = Seat(server, Traffic(retries=12, back_off_s=1, max_wait_s=10))
        with pytest.raises(PlayerUnavailable, match="attempts: 13"):
            seat.player.respond(ONE)
    assert len(seat.waits) == 12
    assert max(seat.waits) <= 10


def test_a_server_that_drips_is_cut_off_when_the_time_is_over() -> None:
    with (
        serving(lambda *_: Reply(body=completion("x" * 10_000), drip_s=0.01)) as server,
        pytest.raises(PlayerUnavailable, match=r"no whole answer within 0\.3 s"),
    ):
        Seat(server, Traffic(timeout_s=0.3, retries=0)).player.respond(ONE)


def test_a_server_that_is_silent_is_cut_off_and_another_attempt_may_work() -> None:
    release = threading.Event()

    def behave(request: Json, number: int) -> Reply:
        if number == 0:
            release.wait(10)
        return echo(request)

    with serving(behave) as server:
        ((answer,),) = Seat(server, Traffic(timeout_s=0.5, retries=3)).player.respond(ONE)
        release.set()
    assert answer.text.endswith("/0")


def test_nobody_at_the_address_is_an_error_that_says_so() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
        player = OpenAIPlayer(url, "m", traffic=Traffic(retries=0))
        with pytest.raises(PlayerUnavailable, match="refused"):
            player.respond(ONE)


def test_no_more_requests_are_under_way_than_allowed_and_so_many_are() -> None:
    def behave(request: Json, number: int) -> Reply:
        wait_for(lambda: server.at_once >= 3)
        return echo(request)

    with serving(behave) as server:
        requests = [CoderRequest(problem) for problem in PROBLEMS[:9]]
        Seat(server, dataclasses.replace(PATIENT, concurrency=3)).player.respond(requests)
    assert server.at_once == 3


def test_rate_limits_hold_over_requests_and_over_failed_attempts() -> None:
    with serving(in_turn(Reply(500))) as server:
        seat = Seat(server, Traffic(retries=1, requests_per_minute=2, concurrency=1))
        seat.player.respond(REQUESTS)  # 5 requests
        assert 119 <= seat.now <= 121
        seat = Seat(server, Traffic(tokens_per_minute=2000, concurrency=1))
        seat.player.respond(REQUESTS, sampling=Sampling(max_tokens=1500))
        assert seat.now == 0  # the server counts 10 tokens for each
        with pytest.raises(ConfigurationError, match="tokens_per_minute must allow a request, got 2000 for one of"):
            seat.player.respond(ONE, sampling=Sampling(max_tokens=2000))


def test_one_refusal_ends_the_call_and_cuts_what_is_under_way() -> None:
    gone = threading.Event()

    def behave(request: Json, number: int) -> Reply:
        if number == 3:
            return Reply(401, b"bad key")
        gone.wait(10)
        return echo(request)

    with serving(behave) as server:
        with pytest.raises(PlayerRefused):
            Seat(server, dataclasses.replace(PATIENT, concurrency=4)).player.respond(REQUESTS)
        working = [each for each in threading.enumerate() if each.name.endswith("(work)")]
        assert wait_for(lambda: not any(each.is_alive() for each in working))
        gone.set()
    assert len(server.asked) == 4


def test_a_connection_that_is_cut_is_encrypted_to_its_end() -> None:
    (one, other), tls = socket.socketpair(), ssl.create_default_context()
    with other, tls.wrap_socket(one, server_hostname="x", do_handshake_on_connect=False) as wire:
        _cut(wire)
        assert wire.read(1) == b""
        with pytest.raises(ssl.SSLError):
            wire.send(b"key")


def test_the_key_is_sent_and_never_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def behave(request: Json, number: int) -> Reply:
        return Reply(401, b'{"error": "wrong key: sk-secret\\u001b[2J \x1b[2J"}')

    with serving(behave) as server:
        for arguments in ({"api_key": "sk-secret"}, {}):
            seat = Seat(server, **arguments)
            monkeypatch.setenv("OPENAI_API_KEY", " sk-secret\n")
            with pytest.raises(PlayerRefused) as caught:
                seat.player.respond(ONE)
            assert "sk-secret" not in str(caught.value) + repr(seat.player)
            assert "\x1b" not in str(caught.value)
        with pytest.raises(PlayerRefused):
            Seat(server, api_key="").player.respond(ONE)
    assert [headers.get("Authorization") for headers in server.headers] == ["Bearer sk-secret"] * 2 + [None]
    with pytest.raises(ConfigurationError) as refused:
        Seat(server, api_key="sk-one\nsk-two")
    assert "sk-" not in str(refused.value)


@pytest.mark.parametrize(
    ("base_url", "path"),
    [("", "/v1"), ("/", "/v1"), ("/v1/", "/v1"), ("/api/v3", "/api/v3"), ("/v1/chat/completions", "/v1")],
)
def test_the_address_is_completed(base_url: str, path: str) -> None:
    with serving(lambda request, _: echo(request)) as server:
        OpenAIPlayer(server.url.removesuffix("/v1") + base_url, "m").respond(ONE)
    assert server.paths == [f"{path}/chat/completions"]


@pytest.mark.parametrize(
    "url",
    ["", "localhost:8000", "ftp://x/v1", "http://", "http://me:pass@x/v1", "http://x/v1?k=1", "http://x/v1#m",
     "http://x:port/v1", "http://x/a b", "http://x/\n", "http://[::1/v1", "http://x..y/v1",
     f"http://{'x' * 64}/v1"],
)  # fmt: skip
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(ConfigurationError, match=r"URL must|base_url must"):
        OpenAIPlayer(url, "m")


@pytest.mark.parametrize(
    ("field", "value"),
    [("timeout_s", 0), ("timeout_s", float("inf")), ("timeout_s", float("nan")), ("back_off_s", -1), ("retries", -1),
     ("max_wait_s", -1), ("concurrency", 0)],
)  # fmt: skip
def test_traffic_out_of_range_is_refused(field: str, value: float) -> None:
    with pytest.raises(ConfigurationError, match=f"{field} must be .*, got {value}"):
        Traffic(**{field: value})


def test_a_player_goes_to_another_process_and_asks_from_there() -> None:
    with serving(lambda request, _: echo(request)) as server:
        player = OpenAIPlayer(server.url, "m", api_key="key", traffic=dataclasses.replace(PATIENT, retries=0))
        there = pickle.loads(pickle.dumps(player))
        assert there.respond(REQUESTS, seed=3) == player.respond(REQUESTS, seed=3)
    assert {headers["Authorization"] for headers in server.headers} == {"Bearer key"}


def test_wrong_counts_are_refused_and_no_requests_have_no_answers() -> None:
    with serving(lambda request, _: echo(request)) as server:
        with pytest.raises(ConfigurationError, match="n must be at least 1, got 0"):
            Seat(server).player.respond(ONE, n=0)
        assert Seat(server).player.respond([]) == []
    assert server.asked == []


def test_ctrl_c_ends_a_wait_for_a_server_at_once(tmp_path: Path) -> None:
    release = threading.Event()

    def behave(request: Json, number: int) -> Reply:
        release.wait(30)
        return echo(request)

    with serving(behave) as server:
        script = (
            "from codea1_env.players import *; from codea1_env.problems import bundled_problems as b;"
            f"OpenAIPlayer({server.url!r}, 'm').respond([CoderRequest(p) for p in b()[:4]])"
        )
        process = subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.DEVNULL)
        assert wait_for(lambda: len(server.asked) == 4, 30)
        process.send_signal(signal.SIGINT)
        assert process.wait(10) in (-signal.SIGINT, 130)
        release.set()
