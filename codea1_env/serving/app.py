"""The judge as an ASGI application.

    POST /v1/score     a line of `codea1 score`, or several: the same lines out
    POST /v1/verify    a program and tests (`requests.py`), or {"items": [...]}: the share that passes
    POST /run_code     SandboxFusion's interface (`sandbox_fusion.py`)
    POST /v1/openrlhf/coder, /v1/openrlhf/tester    OpenRLHF's remote reward (`adapters/seat_rewards.py`)
    GET  /health       whether programs are judged here
    GET  /metrics      in Prometheus' form

A wrong request is 422, or 413 for too long a body; a missing or wrong token 401; a full queue 429 with `Retry-After`;
infrastructure that fails 503; a fault of ours 500. Every error is `{"error": "... must ..., got ..."}`. A request
whose client has left is not judged. Does not encrypt, nor end connections that send too slowly: that is the work of a
proxy.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import time
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from codea1_env import __version__
from codea1_env.adapters.client_bodies import BodyTooLong, read_body, readable
from codea1_env.errors import Codea1Error
from codea1_env.extras import extra
from codea1_env.serving.service import Busy, Service, ServicePlan, Unavailable

with extra("serve", "the server needs"):
    from fastapi import FastAPI, Request, Response
    from fastapi.responses import JSONResponse, PlainTextResponse
    from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
    from starlette.exceptions import HTTPException
    from starlette.requests import ClientDisconnect
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_log = logging.getLogger(__name__)
_Result = TypeVar("_Result")
MOST_BYTES = 8 << 20
"""Of a body."""
_RETRY_S = "1"
_OPEN = ("/health",)
"""What needs no token."""


def make_app(plan: ServicePlan | None = None, *, token: str = "", most_bytes: int = MOST_BYTES) -> FastAPI:
    """`token`: what clients must send as `Authorization: Bearer TOKEN`; empty: nothing. `most_bytes`: of a body."""
    measures, handlers = _Measures(), _Handlers(most_bytes)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        handlers.service = service = Service(plan or ServicePlan())
        measures.watch(service)
        try:
            yield
        finally:
            await service.close()

    async def metrics() -> Response:
        return PlainTextResponse(measures.text(), media_type="text/plain; version=0.0.4")

    app = FastAPI(title="codea1", version=__version__, lifespan=lifespan)
    app.add_middleware(_Guard, token=token, measures=measures)
    for path, handler, method in (
        ("/v1/score", handlers.score, "POST"),
        ("/v1/verify", handlers.verify, "POST"),
        ("/run_code", handlers.run_code, "POST"),
        ("/v1/openrlhf/{seat}", handlers.openrlhf, "POST"),
        ("/health", handlers.health, "GET"),
        ("/metrics", metrics, "GET"),
    ):
        app.add_api_route(path, handler, methods=[method])
    app.add_exception_handler(HTTPException, _no_route)
    return app


class _Handlers:
    """One method for each route that asks the service, which is there from the start of the application to its end."""

    service: Service

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes

    async def score(self, request: Request) -> Response:
        body = await read_body(request.stream(), self._most_bytes)
        lines = [line for line in body.splitlines() if line.strip()] or [body]
        scored = await _unless_gone(request, self.service.score_all(lines))
        return Response(b"".join(scored), media_type="application/jsonl" if len(lines) > 1 else "application/json")

    async def verify(self, request: Request) -> Response:
        given = await self._given(request)
        if isinstance(given, dict) and "items" in given:
            return JSONResponse({"items": await _unless_gone(request, self.service.verify_all(given["items"]))})
        return JSONResponse(await _unless_gone(request, self.service.verify(given)))

    async def run_code(self, request: Request) -> Response:
        given = await self._given(request)
        try:
            return JSONResponse(await _unless_gone(request, self.service.run_code(given)))
        except (Busy, Unavailable) as error:
            return JSONResponse({"error": str(error)}, status_code=504)  # its clients try again at no other status

    async def openrlhf(self, request: Request) -> Response:
        given = await self._given(request)
        return JSONResponse(await _unless_gone(request, self.service.openrlhf(request.path_params["seat"], given)))

    async def health(self) -> Response:
        told = await self.service.verify({"program": "def f(x):\n    return x\n", "tests": [["f(1)", "1"]]})
        body = {"status": "ok" if told["passed"] else "failing", "version": __version__}
        return JSONResponse(body, status_code=200 if told["passed"] else 503)

    async def _given(self, request: Request) -> Any:
        body = await read_body(request.stream(), self._most_bytes)
        try:
            return json.loads(body)
        except (ValueError, RecursionError) as error:
            raise Codea1Error(f"the body must be JSON, got {body[:100]!r}: {error}"[:400]) from None


class _Guard:
    """Refuses who has no token, answers faults, and counts. Not a middleware of "http": with one, an answer is over
    after the client has it."""

    def __init__(self, app: ASGIApp, token: str, measures: _Measures) -> None:
        self._app = app
        self._token = token
        self._measures = measures

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        began = time.perf_counter()

        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                route = scope["path"] if scope["path"] in _ROUTES else "other"
                self._measures.count(route, message["status"], time.perf_counter() - began)
            await send(message)

        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            await (_refused(Request(scope), self._token) or self._app)(scope, receive, counted)
        except Exception as error:
            await _told(error)(scope, receive, counted)


_ROUTES = ("/v1/score", "/v1/verify", "/v1/openrlhf/coder", "/v1/openrlhf/tester", "/health", "/metrics", "/run_code")


def _refused(request: Request, token: str) -> Response | None:
    if not token or request.scope["path"] in _OPEN:  # of a URL the client says a part, in the header Host
        return None
    given = request.headers.get("authorization", "")
    if hmac.compare_digest(given.encode(), f"Bearer {token}".encode()):
        return None
    return JSONResponse({"error": "the header Authorization must be Bearer and this server's token"}, status_code=401)


async def _unless_gone(request: Request, work: Coroutine[Any, Any, _Result]) -> _Result:
    """What the work gives. Ends it and raises ClientDisconnect where the client leaves before. The request's body has
    been read, so that nothing else can come from the client."""
    working, leaving = asyncio.ensure_future(work), asyncio.ensure_future(request.receive())
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientDisconnect
        return working.result()
    finally:
        working.cancel()
        leaving.cancel()


_STATUSES: tuple[tuple[type[Exception], int, dict[str, str]], ...] = (
    (Busy, 429, {"Retry-After": _RETRY_S}),
    (Unavailable, 503, {"Retry-After": _RETRY_S}),
    (BodyTooLong, 413, {"Connection": "close"}),
    (ClientDisconnect, 499, {}),  # for the metrics: nobody reads it
    (Codea1Error, 422, {}),
)


def _told(error: Exception) -> JSONResponse:
    for kind, status, headers in _STATUSES:
        if isinstance(error, kind):
            return JSONResponse({"error": readable(str(error))}, status_code=status, headers=headers)
    _log.error("a request must be answered, got a fault of codea1", exc_info=error)
    told = "this request could not be judged, for the server has a fault; its log says which"
    return JSONResponse({"error": told}, status_code=500)


async def _no_route(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    got = f"{request.method} {request.url.path}"[:200]
    told = f"a request must be a POST or GET of what is here ({', '.join(_ROUTES)}), got {got!r}"
    return JSONResponse({"error": readable(told)}, status_code=error.status_code, headers=error.headers)


class _Measures:
    """What `/metrics` shows."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter("codea1_requests", "Requests", ["route", "status"], registry=self._registry)
        self._seconds = Histogram("codea1_seconds", "Seconds to an answer", ["route"], registry=self._registry)
        self._waiting = Gauge("codea1_under_way", "Requests that wait or are judged", registry=self._registry)
        self._failures = Gauge(
            "codea1_infrastructure_failures", "Requests that could not be judged", registry=self._registry
        )
        self._verdicts = Gauge("codea1_verdicts", "Verdicts on tests", ["verdict"], registry=self._registry)

    def watch(self, service: Service) -> None:
        self._waiting.set_function(lambda: service.under_way)
        self._failures.set_function(lambda: service.failures)
        for verdict in service.verdicts:
            self._verdicts.labels(verdict).set_function(lambda verdict=verdict: service.verdicts[verdict])

    def count(self, route: str, status: int, seconds: float) -> None:
        self._requests.labels(route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def text(self) -> bytes:
        return bytes(generate_latest(self._registry))
