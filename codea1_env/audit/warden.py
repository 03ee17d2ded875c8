"""Process 1 of a cell: makes the new root, starts the grader, looks at what its programs leave.

Runs in a fork of the audit's process, before it only namespaces. What it hands out is read-only but for tmpfs;
nothing of the machine's environment goes in. Does not decide anything: see `run.py`.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import resource
import select
import signal
import socket
import struct
import time
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import NoReturn

HOME = "/home/grader"
CANARY = f"{HOME}/canary.txt"
SECRET = "CODEA1_AUDIT_SECRET"
"""Of the grader's environment."""
PORT, OTHER_PORT = 47001, 47002
"""Where the warden listens; where a program of the corpus does."""
MARK, LEFT = "audit-mark-", "audit-left"
"""What files that programs leave are called, and processes."""
_CANARY_TEXT = "canary of codea1's audit\n"
_SYSTEM = (
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32",
    "/etc/alternatives", "/etc/group", "/etc/host.conf", "/etc/hosts", "/etc/ld.so.cache", "/etc/ld.so.conf",
    "/etc/ld.so.conf.d", "/etc/localtime", "/etc/mime.types", "/etc/nsswitch.conf", "/etc/passwd", "/etc/protocols",
    "/etc/services", "/etc/ssl",
)  # fmt: skip
_DEVICES = ("null", "zero", "full", "random", "urandom")
_NOSUID, _NODEV, _NOEXEC, _BIND, _REC, _PRIVATE = 2, 4, 8, 4096, 16384, 1 << 18
_MOUNT_SETATTR = 442
_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000
_ATTR_READ_ONLY, _ATTR_NOSUID, _ATTR_NODEV = 1, 2, 4
_ROOMS_MB = {"/tmp": 256, HOME: 64, "/dev/shm": 256}
_FILE_MB = 256
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _UP = 0x8913, 0x8914, 1
_MOST_FILES = 20_000

_libc = ctypes.CDLL(None, use_errno=True)


def keep(
    isolation: ModuleType,
    begin: Callable[[], None],
    readable: Sequence[str],
    path: str,
    streams: tuple[int, int, int],
    control: socket.socket,
) -> NoReturn:
    """Make the root, start the grader, answer the audit until it is gone."""
    machine = os.uname().machine
    _loopback_up()
    _new_root(isolation, readable, machine)
    listener = socket.create_server(("127.0.0.1", PORT))
    listener.setblocking(False)
    with open(CANARY, "w") as file:
        file.write(_CANARY_TEXT)
    isolation.drop_capabilities(machine)
    isolation.forbid_new_privileges()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (_FILE_MB << 20, _FILE_MB << 20))
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    grader = os.fork()
    if not grader:
        _become_grader(begin, path, streams, (control, listener))
    isolation.hide_memory()  # after the fork: it is the warden's own
    for handle in streams:
        os.close(handle)
    control.sendall(b"ready\n")
    _serve(control, listener, grader)
    os._exit(0)


def _loopback_up() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as handle:
        request = struct.pack("16sh14x", b"lo", 0)
        (flags,) = struct.unpack_from("h", fcntl.ioctl(handle, _SIOCGIFFLAGS, request), 16)
        fcntl.ioctl(handle, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags | _UP))


def _read_only(target: str) -> None:
    """With every mount below it."""
    attributes = struct.pack("QQQQ", _ATTR_READ_ONLY | _ATTR_NOSUID | _ATTR_NODEV, 0, 0, 0)
    words = (ctypes.c_int(_AT_FDCWD), target.encode(), ctypes.c_int(_AT_RECURSIVE), attributes, ctypes.c_size_t(32))
    if _libc.syscall(ctypes.c_long(_MOUNT_SETATTR), *words) < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"mount_setattr {target}: {os.strerror(number)}")


def _new_root(isolation: ModuleType, readable: Sequence[str], machine: str) -> None:
    shown = [path for path in _SYSTEM if os.path.lexists(path)]
    for path in sorted(readable, key=len):
        shown += [] if _is_below(path, shown) else [path]
    base = _place([*shown, *(os.path.realpath(path) for path in shown)])
    isolation.mount(None, "/", None, _REC | _PRIVATE)
    isolation.mount("tmpfs", base, "tmpfs", _NOSUID | _NODEV, "size=4m,mode=755")
    for room, size_mb in _ROOMS_MB.items():
        os.makedirs(base + room)
        isolation.mount("tmpfs", base + room, "tmpfs", _NOSUID | _NODEV, f"size={size_mb}m,mode=1777")
    for path in shown:
        _show(isolation, path, base)
    for name in _DEVICES:
        _show(isolation, f"/dev/{name}", base, writable=True)
    for name, target in (("fd", ""), ("stdin", "/0"), ("stdout", "/1"), ("stderr", "/2")):
        os.symlink(f"/proc/self/fd{target}", f"{base}/dev/{name}")
    os.makedirs(base + "/proc")
    isolation.mount("proc", base + "/proc", "proc", _NOSUID | _NODEV | _NOEXEC)
    os.makedirs(base + "/old")
    isolation.enter_root(base, machine)


def _is_below(path: str, others: Sequence[str]) -> bool:
    return any(path == other or path.startswith(other + "/") for other in others)


def _place(sources: Sequence[str]) -> str:
    """A directory that may be covered: none of the sources is below it."""
    for base in ("/mnt", "/srv", "/media", "/opt", "/run", "/tmp"):
        if os.path.isdir(base) and not any(_is_below(source, [base]) for source in sources):
            return base
    raise OSError("a new root needs a directory below which nothing is that the grader reads")


def _show(isolation: ModuleType, path: str, base: str, writable: bool = False) -> None:
    if os.path.islink(path):
        os.makedirs(os.path.dirname(base + path), exist_ok=True)
        os.symlink(os.readlink(path), base + path)
        return
    if os.path.isdir(path):
        os.makedirs(base + path, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(base + path), exist_ok=True)
        with open(base + path, "w"):
            pass
    isolation.mount(path, base + path, None, _BIND | _REC)
    if not writable:
        _read_only(base + path)


def _become_grader(
    begin: Callable[[], None], path: str, streams: tuple[int, int, int], sockets: Sequence[socket.socket]
) -> NoReturn:
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.setsid()
    for place, handle in enumerate(streams):
        os.dup2(handle, place)
    for each in sockets:
        each.detach()
    os.closerange(3, 1 << 16)
    os.environ.clear()
    os.environ.update({"PATH": path, "HOME": HOME, "LANG": "C.UTF-8", SECRET: "canary"})
    os.makedirs(f"{HOME}/work")
    os.chdir(f"{HOME}/work")
    try:
        begin()
    except Exception as error:
        os.write(2, f"{type(error).__name__}: {error}\n".encode())
    finally:  # whatever a program has made of the names of exceptions, nothing goes on from here
        os._exit(1)


def _serve(control: socket.socket, listener: socket.socket, grader: int) -> None:
    calls: set[bytes] = set()
    poll = select.poll()
    poll.register(control, select.POLLIN)
    told = False
    while True:
        ready = poll.poll(50)
        ended = _reap(grader)
        if ended and not told:
            told = True
            control.sendall(b"ended\n")
        if ready:
            if not read_line(control):
                return
            time.sleep(0.1)  # what was to be left needs a moment
            effects = _look(_calls(listener, calls))
            calls.clear()
            control.sendall(json.dumps(effects).encode() + b"\n")


def _reap(grader: int) -> bool:
    """Of every ended process; whether the grader is one of them."""
    ended = False
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if not pid:
            return ended
        ended = ended or pid == grader


def _calls(listener: socket.socket, calls: set[bytes]) -> set[bytes]:
    while True:
        try:
            call, _ = listener.accept()
        except BlockingIOError:
            return calls
        with call:
            call.settimeout(0.2)
            try:
                calls.add(call.recv(16))
            except OSError:
                calls.add(b"")


def _look(calls: set[bytes]) -> dict[str, bool]:
    """And clear it away."""
    with open(CANARY, "r+") if os.path.exists(CANARY) else open(CANARY, "w+") as file:
        changed = file.read() != _CANARY_TEXT
        file.seek(0)
        file.truncate()
        file.write(_CANARY_TEXT)
    return {
        "file of the user changed": changed,
        "file left": _marks(),
        "process left": _processes(),
        "port opened": b"port" in calls,
        "network used": b"call" in calls,
    }


def _marks() -> bool:
    found, seen = False, 0
    for room in (HOME, "/tmp", "/dev/shm"):
        for folder, _, names in os.walk(room):
            seen += len(names)
            for name in names:
                if name.startswith(MARK):
                    found = True
                    os.unlink(os.path.join(folder, name))
            if seen > _MOST_FILES:
                return found
    return found


def _processes() -> bool:
    found = False
    for pid in (name for name in os.listdir("/proc") if name.isdigit()):
        try:
            with open(f"/proc/{pid}/comm") as file:
                if file.read().strip() == LEFT:
                    found = True
                    os.kill(int(pid), signal.SIGKILL)
        except (OSError, ValueError):  # it has just ended
            continue
    return found


def read_line(control: socket.socket) -> bytes:
    """One line, without its end; empty where the other side is gone."""
    line = b""
    while not line.endswith(b"\n"):
        byte = control.recv(1)
        if not byte:
            return b""
        line += byte
    return line[:-1]
