"""The trusted side of one zygote: start it, hand it a job, watch the clock, read what came back.

Does not decide what a job means or what happens after a failure: see `local.py`.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import glob
import json
import os
import platform
import resource
import select
import signal
import socket
import struct
import subprocess
import sys
import sysconfig
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from codea1_env.errors import SandboxError, SandboxUnsafe
from codea1_env.sandbox.scheduling import (
    Scheduling,
    candidates_below,
    scheduling_below,
    threads_of,
    waited_for_ns,
    with_descendants,
)
from codea1_env.sandbox.scratch import Scratch
from codea1_env.sandbox.worlds import package_places, version_of

REGION_BYTES = 8 << 20
"""Room for the records of one process; a job with more is split over several."""
STACK_MB = 64
"""MiB of stack that a candidate may have."""
INPUT_BYTES = 32 << 20
"""Of a job, as every process has it in its memory; a larger one is mapped anew."""
JOB_BYTES = 16 << 20
"""The largest job that is handed over in one piece."""
RARE_MODULES = (
    "abc", "array", "ast", "cmath", "contextlib", "dataclasses", "datetime", "decimal", "enum", "fractions", "hashlib",
    "io", "json", "numbers", "queue", "statistics", "textwrap", "traceback", "unicodedata", "_strptime",
)  # fmt: skip
"""Of the standard library: slow to import, and imported so seldom that most candidates need not be forked so large."""

_START = struct.Struct("<IIIII")
_NOTICE = struct.Struct("<Ii4q")  # see inside/forking.py
_HEADER = struct.Struct("<IIQ")
_RECORD = struct.Struct("<IBQ")
_NO_CHANGE, _ADDR_NO_RANDOMIZE = 0xFFFFFFFF, 0x0040000  # personality(2)
_ZYGOTE = Path(__file__).parent / "inside" / "zygote.py"
_STARTUP_TIMEOUT_S = 120.0
_REPLY_TIMEOUT_S = 30.0
_MOST_THREADS = 200
"""Of a program, in all its processes, before it is ended; an honest one is refused the 65th."""


class ZygoteDied(Exception):
    """The zygote is gone: replace it and run its job again."""


class CandidateRecord(NamedTuple):
    """One record that the untrusted process wrote. Untrusted, but for having been bounds-checked."""

    kind: str
    """B begun, isolated as it must be, L loaded, X failed to load, V value, E error, M out of memory, F region full, D
    denied something; of calls looked at, A each must be alone."""
    payload: bytes
    cpu_ns: int


@contextlib.contextmanager
def _addresses_as_ever() -> Iterator[None]:
    """What this thread starts has its memory at the same addresses each time, if the kernel grants it: None has its
    address for a hash, and with it a set has the same order in one process as in the next."""
    libc = ctypes.CDLL(None, use_errno=True)
    before = libc.personality(ctypes.c_ulong(_NO_CHANGE))
    if before >= 0:
        libc.personality(ctypes.c_ulong(before | _ADDR_NO_RANDOMIZE))
    try:
        yield
    finally:
        if before >= 0:
            libc.personality(ctypes.c_ulong(before))


@functools.cache
def _compile_once() -> None:
    """Before the first zygote: one that had to compile would have its objects at other addresses than the next."""
    import compileall

    compileall.compile_dir(str(_ZYGOTE.parent), quiet=2)


def python_directories() -> list[str]:
    """Directories of the interpreter's standard library and of the system's shared libraries."""
    roots = ["/usr/lib", "/usr/lib64", "/usr/local/lib", "/lib", "/lib64", "/usr/share/zoneinfo"]
    base = os.path.join(os.path.realpath(sys.base_prefix), "lib")
    return roots if base.startswith(("/usr/lib", "/usr/local/lib")) else [*roots, base]


def site_directories() -> list[str]:
    """Where this interpreter's installed packages are."""
    paths = dict.fromkeys(os.path.realpath(sysconfig.get_path(name)) for name in ("purelib", "platlib"))
    return [path for path in paths if os.path.isdir(path)]


def command_directories() -> list[str]:
    """Where the commands are that a program beside a test script may start."""
    own = os.path.dirname(os.path.realpath(sys.executable))
    paths = dict.fromkeys((own, "/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin"))
    return [path for path in paths if os.path.isdir(path)]


def _of_commands(site: Sequence[str], commands: Sequence[str]) -> dict[str, str]:
    """The environment in which they find each other, and this interpreter what is installed here."""
    libraries = sysconfig.get_config_var("LIBDIR") or ""
    return {"PATH": ":".join(commands), "PYTHONPATH": ":".join(site), "LD_LIBRARY_PATH": libraries}


def hidden_directories(readable: Sequence[str], package: str, shown: Collection[str] = ()) -> list[str]:
    """Installed packages below the `readable` directories, and `package`; but for the directories `shown`.

    This one may be among them, with its problems and their reference solutions; so may a user's own.
    """
    directories = [path for root in readable for path in glob.glob(f"{glob.escape(root)}/python*/*-packages")]
    real = {os.path.realpath(path) for path in [*directories, package]} - set(shown)
    return sorted(path for path in real if not any(path.startswith(outer + "/") for outer in real))


def _cpu_ns(pid: int) -> int:
    return time.clock_gettime_ns((~pid << 3) | 2)


def _others_ns(pid: int) -> int:
    """CPU time of all that a process started."""
    used_ns = 0
    for each in with_descendants(pid):
        with contextlib.suppress(OSError):
            used_ns += waited_for_ns(each) + (_cpu_ns(each) if each != pid else 0)
    return used_ns


class ZygoteKind(NamedTuple):
    """What jobs must have in common to be forked from one zygote."""

    hash_seed: int = 0
    packages: tuple[str, ...] = ()
    """Third-party packages that its candidates may import."""
    has_rare_modules: bool = False
    """Whether RARE_MODULES are imported already. Only a matter of time: every candidate can import them."""
    forks_checkers: bool = False
    """Checkers only, which know right values; else candidates and references."""
    is_wide: bool = False
    """Whether its candidates may have threads or a directory to write in (`worlds.World`)."""
    has_everything: bool = False
    """Whether its candidates may import all that is installed; `packages` are those that are imported already."""


class Zygote:
    """One zygote process with its control socket and its two memory files."""

    def __init__(self, kind: ZygoteKind, without: Collection[str] = ()) -> None:
        """Start it. `without` names layers to switch off, for tests and benchmarks.

        Raises SandboxError, ConfigurationError for a package that is none of `worlds.PACKAGES`.
        """
        machine = platform.machine()
        if machine not in ("x86_64", "aarch64"):
            raise SandboxUnsafe(f"the machine must be x86_64 or aarch64 (a known syscall table), got {machine}")
        added = {} if kind.has_everything else package_places(kind.packages)
        self.is_wide, self._has_processes = kind.is_wide, kind.has_everything
        self._scratch: Scratch | None = None
        self._is_busy = False
        limits = (resource.RLIMIT_AS, resource.RLIMIT_DATA, resource.RLIMIT_CPU, resource.RLIMIT_STACK)
        self._most = [resource.getrlimit(limit)[1] for limit in limits]
        self._held = contextlib.ExitStack()
        try:
            self._start_process(kind, added, without)
            self.layers = self._read_layers()
        except BaseException as error:
            self.close()
            if isinstance(error, OSError):
                of = "see ulimit -n for files, -u for processes, -f for sizes"
                raise SandboxError(f"a sandbox process must start, got: {error} ({of})") from error
            raise

    def _start_process(self, kind: ZygoteKind, added: Mapping[str, Sequence[str]], without: Collection[str]) -> None:
        """Raises OSError."""
        _compile_once()
        if kind.is_wide:
            self._scratch = Scratch()
            self._held.callback(self._scratch.close)
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        for end in (self._control, theirs):
            self._held.enter_context(end)
        self._input = os.memfd_create("codea1-job", os.MFD_CLOEXEC)
        self._held.callback(os.close, self._input)
        self._output = os.memfd_create("codea1-records", os.MFD_CLOEXEC)
        self._held.callback(os.close, self._output)
        os.ftruncate(self._output, REGION_BYTES)
        site, commands = (site_directories(), command_directories()) if kind.has_everything else ([], [])
        readable = [*python_directories(), *site]
        options = {
            "hash_seed": kind.hash_seed,
            "machine": platform.machine(),
            "readable": readable,
            "hidden": hidden_directories(readable, str(_ZYGOTE.parents[2]), site),
            "site": site,
            "commands": commands,
            "environment": _of_commands(site, commands) if commands else {},
            "packages": kind.packages,
            "places": added,
            "versions": {name: version_of(name) for name in added},
            "is_wide": kind.is_wide,
            "scratch": "" if self._scratch is None else self._scratch.path,
            "modules": RARE_MODULES if kind.has_rare_modules else (),
            "region_bytes": REGION_BYTES,
            "input_bytes": INPUT_BYTES,
            "stack_mb": STACK_MB,
            "without": sorted(without),
        }
        # The interpreter itself, not a virtual environment's link to it: no site-packages inside. Not -I, which would
        # ignore PYTHONHASHSEED too: the environment below is all there is, so there is nothing else to ignore.
        # Of one length whatever the numbers: what is allocated first decides where all that follows is.
        numbers = [f"{handle:08}" for handle in (theirs.fileno(), self._input, self._output)]
        arguments = [*numbers, json.dumps(options)]
        # Not under a reference's second hash seed: what hangs on addresses is to differ there.
        with theirs, contextlib.nullcontext() if kind.hash_seed else _addresses_as_ever():
            self._process = subprocess.Popen(
                [os.path.realpath(sys.executable), "-P", "-s", "-S", "-X", "no_debug_ranges", str(_ZYGOTE), *arguments],
                pass_fds=[theirs.fileno(), self._input, self._output],
                # Symbols are bound now, once, rather than in every child that is the first to use one.
                env={
                    "PYTHONHASHSEED": str(kind.hash_seed),
                    "PATH": "/usr/bin:/bin",
                    "LC_ALL": "C.UTF-8",
                    "LD_BIND_NOW": "1",
                    "MALLOC_ARENA_MAX": "1",  # else each thread reserves 64 MiB of addresses
                    # What is imported before isolation may keep a cache there.
                    **({"HOME": os.path.expanduser("~")} if kind.has_everything else {}),
                },
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                start_new_session=True,  # Ctrl-C and the like are for this process: no candidate is to meet them
            )
        self._held.callback(self._end_process)

    def _read_layers(self) -> Mapping[str, bool | str]:
        """{layer: True, or why it does not hold}, as the zygote reports them when it is ready."""
        self._control.settimeout(_STARTUP_TIMEOUT_S)
        message, why = b"", "ended"
        try:
            message = self._control.recv(1 << 16)
        except TimeoutError:
            why = f"was silent for {_STARTUP_TIMEOUT_S:g} s"
        except OSError:
            pass
        stderr = self._process.stderr
        if not message.startswith(b"R"):
            self._process.kill()
            said = stderr.read().decode("utf-8", "replace")[-2000:] if stderr else ""
            raise SandboxError(f"the sandbox process must start, it {why}: {said!r}")
        if stderr:
            stderr.close()
        self._control.settimeout(_REPLY_TIMEOUT_S)
        said = json.loads(message[1:])
        layers: Mapping[str, bool | str] = said["layers"]
        self.broken: Mapping[str, str] = said["broken"]
        self._spared_mb: Sequence[int] = said["spared_mb"]  # of a job without threads, and of one with
        if self._scratch is not None and layers["root"] is True:  # each has a file system of its own
            self._scratch.close()
            self._scratch = None
        return layers

    def fileno(self) -> int:
        """Of the control socket, readable when the job has ended."""
        return self._control.fileno()

    def start(self, job: tuple[bytes, bytes], memory_mb: int, cpu_s: int, has: int = 0) -> None:
        """Fork a candidate for a job: its head and its items. It has what the bits of `has` say (`inside/widening.py`).
        The memory files are emptied first: nothing of an earlier job is left in them.

        Raises SandboxError where this process may not grant so much: a verdict must not depend on that.
        """
        of_memory, of_data, of_cpu, of_stack = self._most
        spared_mb = self._spared_mb[has % 2]
        for name, granted, most, spared, letter in (
            ("memory_mb", memory_mb, of_memory >> 20, spared_mb, "v"),
            ("memory_mb", memory_mb, of_data >> 20, spared_mb, "d"),
            ("CPU seconds", cpu_s, of_cpu, 0, "t"),
            ("MiB of stack", STACK_MB, of_stack >> 20, 0, "s"),
        ):
            if 0 <= most < granted + spared:
                raise SandboxError(
                    f"{name} must be at most {most - spared} under this process's ulimit -{letter}, got {granted}"
                )
        os.ftruncate(self._input, 0)
        os.ftruncate(self._output, 0)
        os.ftruncate(self._output, REGION_BYTES)
        self._records: list[CandidateRecord] = []
        self._read = 0  # bytes of the region
        head, items = job
        handed_over, written = _START.pack(len(head), len(items), memory_mb, cpu_s, has) + head + items, 0
        while written < len(handed_over):
            written += os.pwrite(self._input, handed_over[written:], written)
        if self._scratch is not None:
            self._scratch.renew()
        try:
            self._control.send(b"J")
        except OSError:
            raise ZygoteDied from None
        self._is_busy = True

    def progress(self, most: int) -> tuple[int, int]:
        """Steps of the running candidate, and the process's CPU nanoseconds when the running item began. Untrusted: it
        writes all of it. `most`: as of `records`.

        A step is an answer that it has written, and that it has loaded for the next one, once each. They are kept as
        they were read: it cannot take an answer back, and records of other kinds are no step.
        """
        records = self.records(most)
        answers = sum(record.kind in "VEM" for record in records)
        loads = min(answers + 1, sum(record.kind == "L" for record in records))
        return answers + loads, self._header()[2]

    def cpu_ns(self) -> int | None:
        """CPU time of the running candidate and of the processes that it started, as the kernel counts it, 0 where
        nothing tells; None when it has ended."""
        for pid in self._candidates():
            with contextlib.suppress(OSError):
                used_ns = _cpu_ns(pid) + (_others_ns(pid) if self._has_processes else 0)
                if pid in self._candidates():  # as below
                    return used_ns
        return None if self._has_ended() else 0

    def scheduling(self) -> Scheduling:
        return scheduling_below(self._process.pid)

    def kill(self) -> None:
        """Kill the running candidate; `wait` then returns at once."""
        for pid in self._candidates():
            with contextlib.suppress(ProcessLookupError), contextlib.ExitStack() as undo:
                handle = os.pidfd_open(pid)
                undo.callback(os.close, handle)
                if pid in self._candidates():  # else the number may be another's by now
                    signal.pidfd_send_signal(handle, signal.SIGKILL)
                return
        if not self._has_ended():  # nothing tells which process it is
            self._process.kill()

    def _candidates(self) -> list[int]:
        try:
            return candidates_below(self._process.pid)
        except (FileNotFoundError, ProcessLookupError):
            return []

    def _has_ended(self) -> bool:
        poll = select.poll()
        poll.register(self._control, select.POLLIN)
        return bool(poll.poll(0))

    def wait(self) -> tuple[int, int]:
        """Until the candidate has ended: its CPU nanoseconds, and the signal that ended it, 0 where it left by itself,
        as the kernel tells them. Raises ZygoteDied."""
        try:
            reply = self._control.recv(_NOTICE.size)
        except OSError:
            raise ZygoteDied from None
        if not reply:
            raise ZygoteDied
        self._is_busy = False
        number, status, user_s, user_us, system_s, system_us = _NOTICE.unpack(reply)
        if self._scratch is not None:
            self._scratch.clear()
        if not number:
            raise SandboxError("a candidate's process must start, the kernel refused it (see ulimit -u)")
        cpu_ns = (user_s + system_s) * 1_000_000_000 + (user_us + system_us) * 1000
        return cpu_ns, os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0

    def records(self, most: int) -> list[CandidateRecord]:
        """What the candidate has written, up to the first record that makes no sense; at most `most` records.

        What was read once is not read again: whatever the candidate does to it later changes nothing.
        """
        used = min(self._header()[0], REGION_BYTES - _HEADER.size)
        region = os.pread(self._output, max(0, used - self._read), _HEADER.size + self._read)
        at = 0
        while at + _RECORD.size <= len(region) and len(self._records) < most:
            size, kind, cpu_ns = _RECORD.unpack_from(region, at)
            end = at + _RECORD.size + size
            if kind not in b"LXVEMFDAB" or end > len(region):
                break
            self._records.append(CandidateRecord(chr(kind), region[at + _RECORD.size : end], cpu_ns))
            at = end
        self._read += at
        return self._records

    def _header(self) -> tuple[int, ...]:
        return _HEADER.unpack(os.pread(self._output, _HEADER.size, 0))

    def is_beyond_bounds(self) -> bool:
        """Whether the running candidate has more threads, processes or files than it may have, which only a hostile one
        has."""
        threads = sum(threads_of(each) for pid in self._candidates() for each in with_descendants(pid))
        return threads > _MOST_THREADS or (self._scratch is not None and self._scratch.is_overfull())

    def close(self) -> None:
        """End it and everything below it. Idempotent."""
        self._held.close()

    def _end_process(self) -> None:
        if self._is_busy:  # it would wait for its candidate
            try:
                self.kill()
            except OSError:
                self._process.kill()
        self._control.close()  # which tells it to end
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stderr:
            self._process.stderr.close()
