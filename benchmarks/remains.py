"""What a tree of processes leaves behind when it is gone: processes, temporary files, shared memory. For `torture.py`.

Looks only at what was started from here, so that a busy machine does not matter. Does not see files that are written
anywhere but in the directory for temporary files.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import time
from pathlib import Path

from codea1_env.extras import for_script

with for_script("dev"):
    import psutil

SETTLE_S = 20.0
"""How long what was killed may take until nothing of it is left."""
_SET_CHILD_SUBREAPER = 36
_NEW_MOUNTS, _RECURSIVE, _PRIVATE = 0x20000, 0x4000, 0x40000


class Remains:
    """What the processes that are started here leave behind; nothing else on the machine counts.

    This process adopts every orphan below it, and its children get a directory of their own for temporary files. Where
    it may (as root), it takes a shared memory of its own as well; elsewhere what others leave there counts, too.
    """

    def __init__(self, temporary: Path) -> None:
        ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        _own_shared_memory()
        self.temporary = temporary
        self._shared = set(os.listdir("/dev/shm"))

    def found(self) -> list[str]:
        """Waits SETTLE_S at most until nothing is left; what is left then. Kills and removes it."""
        deadline = time.monotonic() + SETTLE_S
        while (left := self._found()) and time.monotonic() < deadline:
            time.sleep(0.05)
        for process in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        return left

    def _found(self) -> list[str]:
        with contextlib.suppress(ChildProcessError):  # orphans that have ended; our own children were waited for
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        processes = [f"process {process}" for process in psutil.Process().children(recursive=True)]
        files = [f"file {path}" for path in self.temporary.iterdir() if path.name != "ray"]  # Ray's own logs
        new = set(os.listdir("/dev/shm")) - self._shared
        mapped = _mapped() if new else ""
        return processes + files + [f"/dev/shm/{name}" for name in new if f"/dev/shm/{name}" not in mapped]


def _own_shared_memory() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_NEW_MOUNTS) == 0 and libc.mount(b"none", b"/", None, _RECURSIVE | _PRIVATE, None) == 0:
        libc.mount(b"tmpfs", b"/dev/shm", b"tmpfs", 0, None)


def _mapped() -> str:
    """Every file that any process has mapped: what others have in use in /dev/shm is not ours."""
    texts = []
    for maps in Path("/proc").glob("[0-9]*/maps"):
        with contextlib.suppress(OSError):
            texts.append(maps.read_text())
    return "\n".join(texts)
