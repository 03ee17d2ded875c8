"""A local page that makes the report anew whenever it is asked: for a run that goes on.

It answers on 127.0.0.1 only, to requests that name that address, and only for the one page. Does not write anything.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

HOST = "127.0.0.1"


class ReportServer(ThreadingHTTPServer):
    """Serves what `make_page` returns at /. `url` says where."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, port: int, make_page: Callable[[], str]) -> None:
        """`port`: 0 takes a free one. Raises OSError where it is taken."""
        super().__init__((HOST, port), _Handler)
        self.make_page = make_page
        self.making = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.server_address[1]}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that goes away in the middle of an answer is no event."""


class _Handler(BaseHTTPRequestHandler):
    server: ReportServer
    server_version, sys_version = "codea1", ""
    timeout = 30

    def do_GET(self) -> None:
        # Another site's page may have its own name point here: it must not read the answer.
        port = self.server.server_address[1]
        if self.headers.get("Host") not in (f"{HOST}:{port}", f"localhost:{port}"):
            self._send(403, "text/plain", b"this page is for this machine only\n")
        elif self.path not in ("/", "/index.html"):
            self._send(404, "text/plain", b"there is one page here: /\n")
        else:
            with self.server.making:
                body = self.server.make_page().encode("utf-8", "backslashreplace")
            self._send(200, "text/html", body)

    do_HEAD = do_GET

    def _send(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        for name, value in {
            "Content-Type": f"{kind}; charset=utf-8",
            "Content-Length": str(len(body)),
            "Cache-Control": "no-store",
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
            "Content-Security-Policy": "frame-ancestors 'none'",
        }.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Who looks at the page is no news."""
