"""Keeps a server up: where a signal ends its process, another one takes its place.

The socket is this process's, so that clients who connect meanwhile wait and are not refused. Ctrl-C, SIGTERM and
whatever else ends this process let the server finish what it judges. Does not answer requests itself, and does not
start a server that cannot begin twice.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import socket
import threading
import time
from multiprocessing import resource_tracker
from multiprocessing.process import BaseProcess
from typing import Any

from codea1_env.errors import ConfigurationError
from codea1_env.extras import extra
from codea1_env.serving.app import make_app
from codea1_env.serving.service import ServicePlan

with extra("serve", "the server needs"):
    import uvicorn

_log = logging.getLogger(__name__)
_PAUSE_S = 0.5
"""Before another server takes the place of one that was killed."""
_KEEP_ALIVE_S = 600
"""How long an idle connection stays: longer than clients keep one, for a request on one that is closing is lost."""


def bound(host: str, port: int) -> socket.socket:
    """A socket that listens there. Raises ConfigurationError."""
    try:
        return socket.create_server(
            (host, port), backlog=2048, family=socket.AF_INET6 if ":" in host else socket.AF_INET
        )
    except (OSError, OverflowError) as error:
        raise ConfigurationError(f"--host and --port must be free to listen on, got {host}:{port}: {error}") from None


def supervise(plan: ServicePlan, listening: socket.socket, token: str, most_bytes: int) -> int:
    """Serve until a signal ends it: 0, or 1 where the server could not begin."""
    context = multiprocessing.get_context("spawn")
    is_ending = False
    process: BaseProcess | None = None

    def end(number: int, frame: Any) -> None:
        nonlocal is_ending
        is_ending = True
        if process is not None and process.pid is not None:  # else it is about to start
            process.terminate()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
    while True:
        process = context.Process(target=_serve, args=(plan, listening, token, most_bytes))
        resource_tracker.ensure_running()  # whose start would unblock what is blocked here
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # which it inherits, until it ignores it
        process.start()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        if is_ending:  # the signal came between
            process.terminate()
        process.join()
        if is_ending:
            return 0
        if (process.exitcode or 0) >= 0:  # it ended by itself: it could not begin
            _log.error("the server must stay up, it ended with status %s", process.exitcode)
            return 1
        _log.error("the server was ended by signal %s; another one takes its place", -(process.exitcode or 0))
        time.sleep(_PAUSE_S)


def _serve(plan: ServicePlan, listening: socket.socket, token: str, most_bytes: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of the whole process group: the parent says when to end
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    threading.Thread(target=_end_with_parent, daemon=True).start()
    app = make_app(plan, token=token, most_bytes=most_bytes)
    config = uvicorn.Config(
        app,
        http="h11",  # whatever else is installed: it has a limit on headers
        ws="none",
        log_level="warning",
        lifespan="on",
        timeout_graceful_shutdown=60,
        timeout_keep_alive=_KEEP_ALIVE_S,
    )
    uvicorn.Server(config).run(sockets=[listening])


def _end_with_parent() -> None:
    """Else a server whose parent was killed would keep the port, and nobody would keep it up."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)
