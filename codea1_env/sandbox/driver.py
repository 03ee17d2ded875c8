"""Runs inside a container: jobs in on standard input, results out on standard output, a LocalSandbox in between.

Holds no expected value: jobs never have one. Lives without the rest of the package (standard library only) and needs
no file system but the interpreter's. Ends when its input does. Does not protect the trusted side from a container that
was taken over: that side checks every frame.
"""

from __future__ import annotations

import ctypes
import json
import os
import queue
import sys
import threading
import time

from codea1_env.errors import SandboxError, SandboxUnsafe
from codea1_env.sandbox.frames import ALIVE, FAILED, HEADER, HELLO, UNSAFE, pack, pack_result, read_job
from codea1_env.sandbox.local import LocalSandbox
from codea1_env.sandbox.protocol import Job

_SIGN_OF_LIFE_S = 5.0
_SET_DUMPABLE = 4


def _write(frame: bytes) -> None:
    """From whichever thread: a buffer takes one frame after the other, each as a whole."""
    sys.stdout.buffer.write(frame)
    sys.stdout.buffer.flush()


def _live() -> None:
    while True:
        time.sleep(_SIGN_OF_LIFE_S)
        _write(pack(ALIVE, None))


def _receive(jobs: queue.SimpleQueue[Job]) -> None:
    """Take jobs in as they come. The process ends with its input, whatever runs."""
    try:
        with open(0, "rb", closefd=False) as given:  # not `sys.stdin`, whose lock the end of the process would want
            while len(header := given.read(HEADER.size)) == HEADER.size:
                _, head, body = HEADER.unpack(header)
                jobs.put(read_job(given.read(head), given.read(body)))
    finally:
        os._exit(0)


def main() -> None:
    """Serve until the input ends. `sys.argv[1]` holds the sandbox's options as JSON."""
    options = json.loads(sys.argv[1])
    # The candidates have this process's user id and, in a container, its process namespace. Nothing here may be read.
    ctypes.CDLL(None).prctl(_SET_DUMPABLE, 0, 0, 0, 0)
    with LocalSandbox(1, waive=options["waive"]) as sandbox:
        try:
            layers = dict(sandbox.guarantees)
            _write(pack(HELLO, {"layers": layers}))
            jobs: queue.SimpleQueue[Job] = queue.SimpleQueue()
            threading.Thread(target=_receive, args=(jobs,), daemon=True).start()
            threading.Thread(target=_live, daemon=True).start()
            while True:
                (result,) = sandbox.run([jobs.get()])
                _write(pack_result(result))
        except SandboxUnsafe as error:
            _write(pack(UNSAFE, str(error)))
        except SandboxError as error:
            _write(pack(FAILED, str(error)))
