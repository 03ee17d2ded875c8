"""A chat completions server on this machine that misbehaves as told: real sockets, real HTTP."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Json = dict[str, Any]


@dataclass
class Reply:
    """What the server does with one request."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    drip_s: float = 0.0
    """Seconds between the bytes of the body."""
    hang_up: bool = False
    """Close the connection without an answer."""
    claims: int = 0
    """Bytes of Content-Length beyond those that are sent."""


@dataclass
class FakeServer:
    """A running server and what it was asked."""

    url: str
    asked: list[Json] = field(default_factory=list)
    headers: list[Mapping[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    at_once: int = 0
    """Most requests under way at a time."""


def completion(*texts: str, **fields: Any) -> bytes:
    """A well-formed answer; `fields` go into every choice."""
    choices = [
        {"index": k, "message": {"role": "assistant", "content": text}, "finish_reason": "stop", **fields}
        for k, text in enumerate(texts)
    ]
    usage = {"prompt_tokens": 5, "completion_tokens": 5, "total_tokens": 10}
    told = {"id": "chat-1", "object": "chat.completion", "created": 0, "model": "fake-1"}
    return json.dumps({**told, "choices": choices, "usage": usage}).encode()


def silence(finish_reason: str = "stop", **message: Any) -> bytes:
    """An answer whose message has no content, unless it is given one."""
    said = {"role": "assistant", "content": None, **message}
    return completion("", finish_reason=finish_reason, message=said)


def echo(request: Json) -> Reply:
    """As many answers as wanted; each names its seed and its number, so that they are told apart."""
    return Reply(body=completion(*(f"{request['seed']}/{k}" for k in range(request["n"]))))


@contextmanager
def serving(behave: Callable[[Json, int], Reply]) -> Iterator[FakeServer]:
    """`behave` is given each request and how many came before it."""
    stop = threading.Event()
    lock = threading.Lock()
    under_way = 0

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            nonlocal under_way
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with lock:
                number = len(fake.asked)
                fake.asked.append(request)
                fake.headers.append(dict(self.headers))
                fake.paths.append(self.path)
                under_way += 1
                fake.at_once = max(fake.at_once, under_way)
            try:
                self._reply(behave(request, number))
            except OSError:  # the client has gone
                self.close_connection = True
            finally:
                with lock:
                    under_way -= 1

        def _reply(self, reply: Reply) -> None:
            if reply.hang_up:
                self.close_connection = True
                return
            self.send_response(reply.status)
            for name, text in {"Content-Length": str(len(reply.body) + reply.claims), **reply.headers}.items():
                self.send_header(name, text)
            self.end_headers()
            for k in range(len(reply.body)) if reply.drip_s else ():
                self.wfile.write(reply.body[k : k + 1])
                if stop.wait(reply.drip_s):
                    return
            if not reply.drip_s:
                self.wfile.write(reply.body)
            self.close_connection = reply.claims > 0

        def log_message(self, format: str, *arguments: Any) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    fake = FakeServer(f"http://127.0.0.1:{server.server_port}/v1")
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield fake
    finally:
        stop.set()
        server.shutdown()
        thread.join()
        server.server_close()


def wait_for(condition: Callable[[], bool], most_s: float = 5.0) -> bool:
    """Whether it came true in time."""
    end = time.monotonic() + most_s
    while not condition() and time.monotonic() < end:
        time.sleep(0.002)
    return condition()
