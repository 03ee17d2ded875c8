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
import select
import sys
import threading

from codea1_env.errors import SandboxError, SandboxUnsafe
from codea1_env.sandbox.frames import ALIVE, FAILED, HEADER, HELLO, UNSAFE, pack, pack_result, read_job
from codea1_env.sandbox.local import LocalSandbox
from codea1_env.sandbox.protocol import Job

_SIGN_OF_LIFE_S = 5.0
_SET_DUMPABLE = 4


class _Output:
    """Whole frames on standard output, from either thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def write(self, frame: bytes) -> None:
        with self._lock:
            left = memoryview(frame)
            while left:
                left = left[os.write(1, left) :]


def _receive(jobs: queue.SimpleQueue[Job], output: _Output) -> None:
    """Take jobs in as they come; a sign of life while none does. The process ends with its input, whatever runs."""
    poll = select.poll()
    poll.register(0, select.POLLIN)
    unread = bytearray()
    while True:
        if not poll.poll(_SIGN_OF_LIFE_S * 1000):
            output.write(pack(ALIVE, None))
            continue
        part = os.read(0, 1 << 20)
        if not part:
            os._exit(0)
        unread += part
        while len(unread) >= HEADER.size:
            _, head, body = HEADER.unpack_from(unread)
            middle, end = HEADER.size + head, HEADER.size + head + body
            if len(unread) < end:
                break
            jobs.put(read_job(bytes(unread[HEADER.size : middle]), bytes(unread[middle:end])))
            del unread[:end]


def main() -> None:
    """Serve until the input ends. `sys.argv[1]` holds the sandbox's options as JSON."""
    options = json.loads(sys.argv[1])
    # The candidates have this process's user id and, in a container, its process namespace. Nothing here may be read.
    ctypes.CDLL(None).prctl(_SET_DUMPABLE, 0, 0, 0, 0)
    output = _Output()
    with LocalSandbox(1, waive=options["waive"]) as sandbox:
        try:
            layers = dict(sandbox.guarantees)
            output.write(pack(HELLO, {"layers": layers}))
            jobs: queue.SimpleQueue[Job] = queue.SimpleQueue()
            threading.Thread(target=_receive, args=(jobs, output), daemon=True).start()
            while True:
                (result,) = sandbox.run([jobs.get()])
                output.write(pack_result(result))
        except SandboxUnsafe as error:
            output.write(pack(UNSAFE, str(error)))
        except SandboxError as error:
            output.write(pack(FAILED, str(error)))
