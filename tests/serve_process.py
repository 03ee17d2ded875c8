"""A judge over HTTP of one's own: `codea1 serve` as a process."""

from __future__ import annotations

import contextlib
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator


@contextlib.contextmanager
def serve(*arguments: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Its address, and its process, which must end well in the end."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "codea1_env.cli", "serve", "--port", str(port), *arguments]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    url = f"http://127.0.0.1:{port}"
    try:
        for _ in range(600):
            with contextlib.suppress(urllib.error.URLError, ConnectionError):
                urllib.request.urlopen(f"{url}/health", timeout=120).close()
                break
            assert process.poll() is None, process.stderr.read() if process.stderr else ""
            time.sleep(0.1)
        yield url, process
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(120) == 0
        if process.stderr:
            process.stderr.close()
