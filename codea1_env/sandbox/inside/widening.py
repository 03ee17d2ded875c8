"""What a candidate of a wider world has: threads, a directory to write in, real standard streams, processes.

Every candidate of a zygote for wider worlds begins in a mount and a PID namespace of its own, where there are
namespaces: its directory is a file system that nobody else has ever seen and that ends with it, and the numbers of its
threads begin anew. So the zygote keeps the one capability that this takes (CAP_SYS_ADMIN in its own user namespace),
and each candidate applies Landlock itself, drops the capability, and only then is let loose. Without namespaces the
directory is one that the parent makes before the process starts and removes when it has ended.

Programs beside test scripts may start processes, which end with the first one of their PID namespace: it is the
candidate. Without namespaces there are none.

Does not promise that a hostile program has no more than MOST_THREADS, nor, where the user is root and Linux older than
6.14, MOST_PROCESSES: what counts them lies in its process. The parent ends a program that has many more.
"""

import _thread
import os
import resource
import sys
from collections.abc import Callable, Sequence
from typing import Any

import denials
import isolation
import syscalls

THREADS, SCRATCH, STREAMS, PROCESSES = 1, 2, 4, 8
"""What a job's process is to have: bits of one number."""
KERNEL = THREADS | SCRATCH | PROCESSES
"""What the kernel's filter knows of."""
OF_ZYGOTE = -1
MOST_THREADS = 64
"""Threads of a process beside its first one."""
MOST_PROCESSES = 128
"""Processes and threads of all of a program's processes together, as the kernel counts them for a user but root."""
_MOST_CORES = 8
"""That programs with processes are told of at most: a pool of processes has as many."""
SCRATCH_MB = 16
"""MiB of a directory, of a file and of what a program prints."""
THREADS_MB = 256
"""MiB of address space for the stacks of threads, beyond what a job says."""
NEW_SPACES = 0x20000000 | 0x00020000
"""CLONE_NEWPID and CLONE_NEWNS."""
SYS_ADMIN = 21
"""The capability that mounting takes."""
_MOST_FILES = 4096


class Widening:
    """What candidates of one zygote can be given."""

    def __init__(
        self, options: dict[str, Any], layers: "dict[str, bool | str]", readable: Sequence[str], hidden: Sequence[str]
    ) -> None:
        """`layers` are changed: `scratch` and `processes` are added."""
        self._machine: str = options["machine"]
        self.has_spaces = layers["root"] is True
        self._landlock: isolation.Rules | None = None
        if layers["landlock"] is True:
            # Where the root holds nothing else, no part of the hidden directories is there.
            self._landlock = isolation.landlock_rules(readable, () if self.has_spaces else hidden)
        self._directory: str = isolation.scratch_point(readable) if self.has_spaces else options["scratch"]
        layers["scratch"] = True
        if not self.has_spaces and self._landlock is None:
            self._directory = ""
            layers["scratch"] = "needs namespaces or Landlock: else a program could write elsewhere, too"
        os.environ["TMPDIR"] = self._directory
        if "tempfile" in sys.modules:
            vars(sys.modules["tempfile"])["tempdir"] = None
        self._environment: dict[str, str] = options["environment"]
        self.has_processes = self.has_spaces and bool(self._environment)
        layers["processes"] = self.has_spaces or "needs namespaces: else they could outlive their program"

    def apply(self, has: int) -> None:
        """In the candidate, before the filter of system calls."""
        executes = bool(has & PROCESSES)
        if executes:
            isolation.mount_scratch(isolation.SHARED_MEMORY, SCRATCH_MB, _MOST_FILES)
            isolation.limit(resource.RLIMIT_NPROC, MOST_PROCESSES)
            os.environ.update(self._environment)
            denials.has_processes = True
        if has & SCRATCH and self._directory:
            if self.has_spaces:
                isolation.mount_scratch(self._directory, SCRATCH_MB, _MOST_FILES, executes)
            os.chdir(self._directory)
        if self._landlock is not None:
            isolation.apply_landlock(self._landlock, self._directory if has & SCRATCH else "", executes)
        isolation.leave_capabilities(self._machine)


def file_bytes(has: int) -> int:
    """How large a file may get: none grows but those of a scratch directory and the standard streams."""
    return SCRATCH_MB << 20 if has & (SCRATCH | STREAMS) else 0


def open_streams() -> None:
    """Make the standard streams three empty files in memory, which no other process has."""
    for standard in (0, 1, 2):
        handle = os.memfd_create("standard", os.MFD_CLOEXEC)
        os.dup2(handle, standard)
        os.close(handle)


def filters(machine: str, wide: "Widening | None") -> "dict[int, isolation.SeccompFilter]":
    """Of candidates, by what they have of KERNEL, and OF_ZYGOTE, which all of its candidates have as well: in a wider
    world they begin with more than a filter takes away, so the zygote has none."""
    if wide is None:
        programs = {OF_ZYGOTE: syscalls.build_filter(machine, starting=True), 0: syscalls.build_rest(machine)}
    else:
        programs = {
            has: syscalls.build_filter(machine, bool(has & THREADS), bool(has & SCRATCH), bool(has & PROCESSES))
            for has in [*range(4), *[KERNEL] * wide.has_processes]
        }
    return {has: isolation.SeccompFilter(machine, program) for has, program in programs.items()}


def count_threads() -> None:
    """In a zygote: it is noted when a program wants a thread and has none, or one too many."""
    threading = vars(sys.modules.get("threading", _thread))  # keeps them under names of its own
    for name in ("start_new_thread", "start_new", "start_joinable_thread"):
        start = getattr(_thread, name, None)
        if start is not None:
            setattr(_thread, name, counted := _counted(start))
            if f"_{name}" in threading:
                threading[f"_{name}"] = counted


def import_modules(has_processes: bool) -> None:
    """In a zygote of a wider world: those that programs with threads use."""
    import multiprocessing.context
    import threading

    if has_processes:
        cores = min(os.cpu_count() or 1, _MOST_CORES)
        os.cpu_count = lambda: cores
        return
    # Threads of one process need no lock in shared memory, and a pool of processes ends where it starts one.
    context: Any = multiprocessing.context.BaseContext
    context.Lock = lambda self: threading.Lock()
    context.RLock = lambda self: threading.RLock()
    context.Semaphore = lambda self, value=1: threading.Semaphore(value)
    context.BoundedSemaphore = lambda self, value=1: threading.BoundedSemaphore(value)


def _counted(start: Callable[..., Any]) -> Callable[..., Any]:
    def start_new_thread(*arguments: Any, **named: Any) -> Any:
        if _thread._count() >= MOST_THREADS:
            denials.note("thread")
            raise RuntimeError("can't start new thread")
        try:
            return start(*arguments, **named)
        except RuntimeError:
            denials.note("thread")
            raise

    return start_new_thread
