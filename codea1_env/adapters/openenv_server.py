"""Serves the game to OpenEnv clients: `python -m codea1_env.adapters.openenv_server --port 8000`, or any ASGI server.

What a client sends is bounded here, before OpenEnv reads it. Does not authenticate anybody and does not encrypt.
"""

from __future__ import annotations

import argparse
import functools
import json
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from codea1_env.adapters.client_bodies import BodyTooLong, read_body, readable
from codea1_env.checks import require, require_whole
from codea1_env.errors import Codea1Error, told
from codea1_env.extras import for_script
from codea1_env.problems import read_problems

with for_script("openenv") if __name__ == "__main__" else nullcontext():
    from codea1_env.adapters.openenv import SEATS, GameEnvironment, Position, ResponseAction, TableRules

    # After the adapter, which says what to install where these are missing.
    import uvicorn  # isort: skip
    from fastapi import FastAPI, Request  # isort: skip
    from fastapi.responses import JSONResponse  # isort: skip
    from starlette.requests import ClientDisconnect  # isort: skip
    from openenv.core.env_server.http_server import HTTPEnvServer  # isort: skip
    from openenv.core.env_server.types import ConcurrencyConfig  # isort: skip

MOST_BYTES = 1 << 20
"""Longest message or body of a client."""


def make_app(table: TableRules | None = None, *, sessions: int = 16, idle_s: float = 600.0) -> FastAPI:
    """The server as an ASGI application.

    `sessions`: how many may be under way at a time, at least 1; `idle_s`: seconds after which a silent one is ended.
    Raises ConfigurationError for a table that cannot be played.
    """
    require_whole("sessions", sessions)
    require(idle_s > 0, "idle_s", "be greater than 0", idle_s)
    limits = ConcurrencyConfig(max_concurrent_envs=sessions, session_timeout=idle_s)
    game = functools.partial(GameEnvironment, table or TableRules())
    server = HTTPEnvServer(game, ResponseAction, Position, concurrency_config=limits, env_name="codea1")
    app = FastAPI(title="codea1")
    server.register_routes(app)
    # The game has no tools, and a session that is opened by way of them outlives its connection.
    app.router.routes[:] = [route for route in app.router.routes if getattr(route, "path", "") != "/mcp"]
    app.add_exception_handler(Codea1Error, _told)
    app.add_middleware(_Bounded, most_bytes=MOST_BYTES)
    app.state.openenv = server
    return app


def __getattr__(name: str) -> FastAPI:
    """`app`: the server with all defaults, for those who name it as `codea1_env.adapters.openenv_server:app`."""
    if name == "app":
        return make_app()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def serve(table: TableRules | None = None, *, host: str = "127.0.0.1", port: int = 8000, sessions: int = 16) -> None:
    """Serves until it is interrupted."""
    uvicorn.run(make_app(table, sessions=sessions), host=host, port=port, ws_max_size=MOST_BYTES)


async def _told(request: Request, error: Exception) -> JSONResponse:
    """For requests without a session, which a step by POST always is."""
    session = "; POST keeps no session: play over the WebSocket /ws, as OpenEnv's client does"
    detail = readable(str(error)) + (session if request.url.path == "/step" else "")
    return JSONResponse({"detail": detail}, status_code=400)


Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class _Bounded:
    """Keeps from the server what is too long, and what it could not answer."""

    def __init__(self, app: Callable[[Message, Receive, Send], Awaitable[None]], most_bytes: int) -> None:
        self._app = app
        self._most_bytes = most_bytes

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            # A query may name a session to join.
            await self._app({**scope, "query_string": b""}, functools.partial(self._message, receive, send), send)
        elif scope["type"] == "http":
            await self._request(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _request(self, scope: Message, receive: Receive, send: Send) -> None:
        try:
            body = await read_body(Request(scope, receive).stream(), self._most_bytes)
        except ClientDisconnect:
            return
        except BodyTooLong as error:
            told = JSONResponse({"detail": str(error)}, status_code=413, headers={"connection": "close"})
            await told(scope, receive, send)
            return
        if reason := _unanswerable(body):
            await JSONResponse({"detail": reason}, status_code=422)(scope, receive, send)
            return
        waiting: list[Message] = [{"type": "http.request", "body": body}]

        async def replay() -> Message:
            return waiting.pop() if waiting else await receive()

        await self._app(scope, replay, send)

    async def _message(self, receive: Receive, send: Send) -> Message:
        message = await receive()
        if message["type"] != "websocket.receive":
            return message
        text = message.get("text")
        if text is None:
            text = bytes(message.get("bytes") or b"").decode("utf-8", "replace")
        if len(text) > self._most_bytes:
            await send({"type": "websocket.close", "code": 1009, "reason": "the message is too long"})
            return {"type": "websocket.disconnect", "code": 1009}
        return {"type": "websocket.receive", "text": _answerable(text)}


def _unanswerable(body: bytes) -> str:
    """Why a body cannot be answered, for an error quotes what it is about; empty for one that can be, if only so."""
    try:
        json.dumps(json.loads(body), ensure_ascii=False, allow_nan=False).encode()
    except (json.JSONDecodeError, UnicodeDecodeError):
        return ""  # the server says so itself
    except UnicodeEncodeError:
        return "a text must be Unicode without lone surrogates, got one with some"
    except (ValueError, RecursionError):
        return "a number must be finite and of at most 4300 digits, and nesting shallow, got a body that breaks a rule"
    return ""


def _answerable(text: str) -> str:
    """A message that the server answers, if only with an error: others would end the session, or open further ones."""
    try:
        message = json.loads(text)
    except json.JSONDecodeError:
        return text  # it says so itself
    except (ValueError, RecursionError):  # a number of too many digits; too deep
        message = None
    if not isinstance(message, dict) or message.get("type") == "mcp":
        return json.dumps({"type": "no object of a type that is served"})
    # Lone surrogates can be read, but not be sent back.
    return json.dumps(message, ensure_ascii=False).encode("utf-8", "replace").decode()


def main(arguments: list[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="Serves the game to OpenEnv clients.")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: this machine only)")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--problems", type=Path, help="a file of problems (default: the bundled ones)")
    parser.add_argument("--rounds", type=int, default=1, help="how often both seats respond in an episode")
    parser.add_argument("--seats", nargs="+", choices=SEATS, default=SEATS, help="the seats that clients may take")
    parser.add_argument("--sessions", type=int, default=16, help="how many may be under way at a time")
    given = parser.parse_args(arguments)
    try:
        problems = tuple(read_problems(given.problems)) if given.problems else None
        table = TableRules(problems, tuple(given.seats), given.rounds)
        serve(table, host=given.host, port=given.port, sessions=given.sessions)
    except (Codea1Error, OSError, OverflowError, UnicodeError) as error:  # the last two of a port or host that is none
        parser.error(told(error))


if __name__ == "__main__":
    main()
