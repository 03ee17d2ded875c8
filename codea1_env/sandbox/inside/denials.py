"""What a program was denied, as it goes: a note beside its values, for people. It pays nothing and decides nothing.

Lives in the untrusted process: a program can forge notes, and can keep them from being written. Notes what the program
attempts by Python's own means; what it asks the kernel for behind Python's back is denied without a note, and so is a
process that a library tries to start and does without.
"""

import errno
import os
import re
import sys
from collections.abc import Callable
from typing import Any

MOST = 4
"""Different notes of one process."""
_PROCESS = frozenset((
    "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.system", "os.exec", "subprocess.Popen", "os.kill",
    "os.killpg", "pty.spawn",
))  # fmt: skip
_STARTERS = frozenset(("os", "subprocess", "pty", "asyncio", "concurrent", "multiprocessing", "threading"))
"""Modules by which processes are started."""
_NETWORK = frozenset((
    "socket.connect", "socket.bind", "socket.sendto", "socket.getaddrinfo", "socket.gethostbyname",
    "socket.getnameinfo", "socket.gethostbyaddr", "urllib.Request",
))  # fmt: skip
_LINKS = frozenset(("os.link", "os.symlink"))
_DEVICES = ("/dev/", "/proc/self/fd/")
_UNIX = 1
_FULL = frozenset((errno.EFBIG, errno.ENOSPC, errno.EROFS))
_NOBODY = ("Could not determine home", "getpwuid()", "No username set")
_SYSTEM = (OSError, PermissionError, FileNotFoundError)
_REFUSED = frozenset((errno.EPERM, errno.EACCES, errno.ENOSYS))
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_write: "Callable[[str], None] | None" = None
_noted: list[str] = []
_source = ""
_scratch = ""
readable: tuple[str, ...] = ()
"""Directories that programs may read, each with a slash at its end. Set by the zygote."""
has_processes = False
"""Whether this process may start others: that is nothing denied."""


def watch(write: Callable[[str], None], source: str, scratch: str) -> None:
    """From now on `write` is called with what this process is denied: "thread", "process", "network", "file" or
    "import NAME". `scratch`: where it may write, "" for nowhere."""
    global _write, _source, _scratch
    _write, _source, _scratch = write, source, scratch
    sys.meta_path.append(_Missing)
    sys.addaudithook(_heard)
    os.pipe = _piped


def note(what: str) -> None:
    """Say so, once."""
    if _write is not None and what not in _noted and len(_noted) < MOST:
        _noted.append(what)
        _write(what)


def escaped(error: BaseException) -> None:
    """Note what an error of Python's own that ends a call tells: of a file that is too large, or of what the kernel
    refused, a file that has a name or else something of processes. There are no homes and no users here. A program's
    own classes are not asked, for they could answer by code."""
    kind = type(error)
    said = error.args[0] if any(kind is known for known in (RuntimeError, KeyError, OSError)) and error.args else None
    if type(said) is str and said.startswith(_NOBODY):
        note("file")
    elif any(kind is known for known in _SYSTEM):
        number, name = error.errno, error.filename  # type: ignore[attr-defined]
        if type(number) is not int:
            return
        if number in _FULL or (number == errno.ENOENT and type(name) is str and name.startswith("~")):
            note("file")
        elif number in _REFUSED:
            note("process" if name is None or "process" in _noted else "file")  # a program's name is one, too


_pipe = os.pipe


def _piped() -> tuple[int, int]:
    """A pipe, which `subprocess` wants first. It is denied where there are no threads, and meant for a process then."""
    try:
        return _pipe()
    except PermissionError:
        if _asks_for_a_process():
            note("process")
        raise


def _asks_for_a_process() -> bool:
    """Whether the program does, and no library: whose code it is from which that of `_STARTERS` was called."""
    frame = sys._getframe(2)
    while str(frame.f_globals.get("__name__")).partition(".")[0] in _STARTERS:
        if frame.f_back is None:  # a thread of theirs
            return True
        frame = frame.f_back
    return not frame.f_code.co_filename.startswith(readable)


class _Missing:
    """Asked for a module when nobody else has it. The standard library tries some that no Python has any more."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> None:
        if path is None and re.search(rf"\b{re.escape(name)}\b", _source):
            note(f"import {name[:40]}")


def _heard(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open":
        if _is_outside(*arguments):
            note("file")
    elif event in _PROCESS:
        if not has_processes and _asks_for_a_process():
            note("process")
    elif event in _NETWORK or (event == "socket.__new__" and arguments[1] != _UNIX):
        note("network")
    elif event in _LINKS and not has_processes:
        note("file")


def _is_outside(path: object, mode: object, flags: object) -> bool:
    """Whether it would write outside the program's directory, or read a file that its own text names and that is
    neither there nor in the standard library."""
    if not isinstance(path, str | bytes) or not isinstance(flags, int):
        return False
    name = os.fsdecode(path)
    full = os.path.normpath(name if name.startswith("/") else f"{_scratch}/{name}")
    if full.startswith(_DEVICES) or "__pycache__" in full or (_scratch and f"{full}/".startswith(f"{_scratch}/")):
        return False
    if flags & _WRITES:
        return True
    return name.startswith("/") and not full.startswith(readable) and os.path.basename(full) in _source
