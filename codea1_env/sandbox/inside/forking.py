"""The loop that forks candidates, without an instruction of Python: every candidate is a copy of the same memory.

Whatever a job changed in this process, the next candidate could find in its copy: counters in bytecode, versions of
dictionaries, the order of freed memory, how an earlier candidate ended. So the loop is a chain of C functions with
fixed arguments, called one after another by iterators of C, and leaves every byte as it was; `tests/test_sandbox.py`
compares them. Does not keep time and ends nobody: the parent does both.
"""

import collections
import ctypes
import os
import signal
from collections.abc import Callable, Iterator
from functools import partial
from operator import getitem
from typing import Any

import isolation
import syscalls

NOTICE_BYTES = 40
"""Number of the process (0: none could be started), exit status, user and system time (s, us each) of an ended one."""
_BUFFER_BYTES = 8 + 144 + 8  # the number, the status, struct rusage, the byte that asks for a candidate
_ASKED = 8 + 144
_PARENT_SETTID, _WIPE_ON_FORK = 0x00100000, 18

_c = ctypes.PyDLL(None)  # keeps the interpreter's lock: there is no other thread to have it
_Step = Iterator[object]


class Forking:
    """Forks a candidate for every byte that comes in on `control`, and says there how each ended."""

    def __init__(self, control: int, machine: str, after_each: "Callable[[], None] | None", spaces: int = 0) -> None:
        """`after_each`: what is done when a candidate has ended; in Python, so not where anything is promised.
        `spaces`: clone's flags for the namespaces that each candidate has to itself."""
        size = os.sysconf("SC_PAGESIZE")
        page = isolation.map_own(size)
        if _c.madvise(ctypes.c_void_p(page), ctypes.c_size_t(size), _WIPE_ON_FORK):
            raise OSError("the kernel must know MADV_WIPEONFORK (Linux 4.14)")
        self._flag = (ctypes.c_char * 1).from_address(page)
        self._flag[0] = b"\1"
        self._buffer = ctypes.create_string_buffer(_BUFFER_BYTES)
        asked = (ctypes.c_char * 1).from_buffer(self._buffer, _ASKED)
        clone, flags = syscalls.CALLS[machine]["starting"]["clone"], signal.SIGCHLD | _PARENT_SETTID | spaces
        number, status, usage, byte = (ctypes.byref(self._buffer, at) for at in (0, 4, 8, _ASKED))
        is_child = partial(getitem, self._flag, 0)
        steps: list[_Step] = [
            *_always("read", control, byte, 1),
            iter(partial(getitem, asked, 0), b"\0"),  # the other end was closed
            *_always("syscall", clone, flags, None, number, None, None),
            iter(is_child, b"\0"),
            *_always("wait4", -1, status, 0, usage),
            *([] if after_each is None else [iter(after_each, self)]),
            *_always("write", control, number, NOTICE_BYTES),
            *_always("memset", number, 0, _BUFFER_BYTES),
        ]
        self._loop = partial(collections.deque[object](maxlen=0).extend, zip(*steps, strict=False))
        self._kept = steps, is_child  # no candidate is to let go of them: each is on a page that would be copied

    def run(self) -> None:
        """Returns in every candidate. The zygote ends here, when the other end of `control` is closed."""
        self._loop()
        if self._flag[0] != b"\0":
            os._exit(0)


def _always(name: str, *arguments: Any) -> list[_Step]:
    """Calls a function of libc, forgets what it returns and is followed by the next step.

    The arguments are small numbers, None and what `byref` makes: for others ctypes would make objects at every call.
    The few that it makes in any case it gives back in another order, which turns the list of free memory round; so the
    same is done once more, with a function that does nothing, which turns it back.
    """
    steps: list[_Step] = []
    for function in (_c[name], _c["abs"]):
        function.restype = None
        steps.append(iter(partial(function, *arguments), object()))
    return steps
