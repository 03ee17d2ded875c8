"""A folder as WebHDFS serves it: a real client of fsspec on a real connection. Not a test module."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit


class Handler(BaseHTTPRequestHandler):
    root: Path

    def handle_any(self) -> None:
        parts = urlsplit(self.path)
        asked = {name.lower(): values[-1] for name, values in parse_qs(parts.query).items()}
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path = self.root / unquote(parts.path).removeprefix("/webhdfs/v1").lstrip("/")
        getattr(self, asked["op"].lower())(path, asked, body)

    do_GET = do_PUT = do_POST = do_DELETE = handle_any

    def getfilestatus(self, path: Path, asked: Any, body: bytes) -> None:
        self.answer_of(path, lambda: {"FileStatus": status(path)})

    def liststatus(self, path: Path, asked: Any, body: bytes) -> None:
        self.answer_of(path, lambda: {"FileStatuses": {"FileStatus": [status(each) for each in path.iterdir()]}})

    def mkdirs(self, path: Path, asked: Any, body: bytes) -> None:
        path.mkdir(parents=True, exist_ok=True)
        self.answer(200, b'{"boolean": true}')

    def create(self, path: Path, asked: Any, body: bytes) -> None:
        if "here" not in asked:
            self.redirect()
        else:
            path.write_bytes(body)
            self.answer(201, b"")

    def append(self, path: Path, asked: Any, body: bytes) -> None:
        if "here" not in asked:
            self.redirect()
        else:
            with path.open("ab") as file:
                file.write(body)
            self.answer(200, b"")

    def open(self, path: Path, asked: Any, body: bytes) -> None:
        start = int(asked.get("offset", 0))
        self.answer(200, path.read_bytes()[start : start + int(asked["length"])])

    def delete(self, path: Path, asked: Any, body: bytes) -> None:
        if path.is_dir() and asked["recursive"] == "true":
            shutil.rmtree(path)
        else:
            path.unlink()
        self.answer(200, b'{"boolean": true}')

    def answer_of(self, path: Path, content: Any) -> None:
        if path.exists():
            self.answer(200, json.dumps(content()).encode())
        else:
            error = {"exception": "FileNotFoundException", "message": str(path)}
            self.answer(404, json.dumps({"RemoteException": error}).encode())

    def redirect(self) -> None:
        self.send_response(307)
        self.send_header("Location", f"http://{self.headers['Host']}{self.path}&here=1")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def answer(self, code: int, content: bytes) -> None:
        self.send_response(code)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        pass


def status(path: Path) -> dict[str, Any]:
    kind = "DIRECTORY" if path.is_dir() else "FILE"
    return {"pathSuffix": path.name, "type": kind, "length": path.stat().st_size if path.is_file() else 0}


@contextmanager
def serving(root: Path) -> Iterator[str]:
    """The address of a folder."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Served", (Handler,), {"root": root}))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"webhdfs://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
