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
import atexit
import builtins
import functools
import gc
import importlib
import io
import os
import resource
import signal
import sys
import time
import types
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
_INPUT = ("/dev/stdin", "/dev/fd/0", "/proc/self/fd/0")
_OUTPUT = ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")
_MOST_RESIDENT_KIB = 16 << 10
"""What a program is told that it has taken of memory: how much it was, others had a part in."""
_open, _exit, _fstat, _pread, _process_time = open, os._exit, os.fstat, os.pread, time.process_time

answer: "Callable[[Callable[[], object]], None]" = lambda come_to: None  # noqa: E731
"""Writes what a function comes to: where the program leaves by `os._exit`, before it is gone. Set by the job."""


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


def stand_in_for_the_kernel() -> None:
    """In a zygote: what the kernel does not do here, as far as it concerns the process alone. Of its use there is its
    own time; a signal that it sends itself comes as one from outside would."""
    raise_signal = signal.raise_signal

    def getrusage(who: int) -> resource.struct_rusage:
        if who not in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN, resource.RUSAGE_THREAD):
            raise ValueError("invalid who parameter")
        own_s = _process_time() if who != resource.RUSAGE_CHILDREN else 0.0
        return resource.struct_rusage((own_s, 0.0, _MOST_RESIDENT_KIB, *[0] * 13))

    def raised(number: int, /) -> None:
        if callable(signal.getsignal(number)):
            _thread.interrupt_main(number)  # type: ignore[arg-type]
        else:
            raise_signal(number)

    resource.getrusage, signal.raise_signal = getrusage, functools.wraps(raise_signal)(raised)


def import_modules(has_processes: bool) -> None:
    """In a zygote of a wider world: those that programs with threads use. What stands in for the rest is set there."""
    import multiprocessing.context

    os.chmod, os.utime = _of_a_file(os.chmod), _of_a_file(os.utime)
    if has_processes:
        cores = min(os.cpu_count() or 1, _MOST_CORES)
        os.cpu_count = lambda: cores
        return
    os.truncate = _truncate
    # Threads of one process need no lock in shared memory, and a pool of processes ends where it starts one.
    threads, context = importlib.import_module("multiprocessing.dummy"), multiprocessing.context
    for name in ("Lock", "RLock", "Semaphore", "BoundedSemaphore", "Condition", "Event", "Barrier", "JoinableQueue"):
        setattr(context.BaseContext, name, staticmethod(getattr(threads, name)))
        setattr(multiprocessing, name, getattr(threads, name))


def _truncate(path: Any, length: int) -> None:
    """By a descriptor, as the kernel permits it."""
    with _open(path, "r+b", 0, closefd=not isinstance(path, int)) as file:
        file.truncate(length)


def _of_a_file(change: Callable[..., None]) -> Callable[..., None]:
    """`change`, which the kernel's filter says is done without a look at the file: a missing one is an error, by which
    `Path.touch` finds out that it has to make it."""
    stat = os.stat

    def changed(path: Any, *arguments: Any, **named: Any) -> None:
        stat(path, **{name: named[name] for name in ("dir_fd", "follow_symlinks") if name in named})
        change(path, *arguments, **named)

    return functools.wraps(change)(changed)


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


class _Text:
    """The loader of a program's module: who shows lines of it, as `inspect` and tracebacks do, asks for its text."""

    @staticmethod
    def get_source(name: str) -> str:
        return _source


_source = ""


def new_module(name: str, file: str, source: str) -> types.ModuleType:
    """For a program's names. Where it says `__main__` it means this one, and no other is there under that name."""
    global _source
    _source = source
    module = types.ModuleType(name)
    module.__file__, module.__loader__ = file, _Text  # type: ignore[assignment]
    sys.modules[name] = sys.modules["__main__"] = module
    return module


def run_program(program: str, text: str, reports: bool = False, code: types.CodeType | None = None) -> object:
    """What a whole program prints for the input `text`, which is what its output file holds in the end, however it got
    there. Raises what the program raises, SystemExit where it says that it failed.

    `reports`: what it prints, what it complains of, and its exit status, in a list, also where it failed. `code`: the
    program's, where it is compiled already."""
    with _open(0, "wb", closefd=False) as given:
        given.write(text.encode("utf-8", "surrogateescape"))
    os.lseek(0, 0, os.SEEK_SET)
    printed, complained = os.dup(1), os.dup(2)  # the program may close its own

    def told(status: int) -> object:
        if reports:
            return [_text_of(printed), _text_of(complained), status]
        return sys.exit(status) if status else _text_of(printed)

    def leave(status: int) -> None:
        answer(lambda: told(status))
        _exit(status)

    os._exit = leave  # type: ignore[assignment]
    builtins.open = io.open = _opened
    sys.stdin = sys.__stdin__ = _open(0, encoding="utf-8", closefd=False)  # type: ignore[misc]
    sys.stdout = sys.__stdout__ = _open(  # type: ignore[misc]
        1, "w", encoding="utf-8", errors="surrogateescape", closefd=False
    )
    sys.stderr = sys.__stderr__ = _open(  # type: ignore[misc]
        2, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False
    )
    for stream, name in ((sys.stdin, "<stdin>"), (sys.stdout, "<stdout>"), (sys.stderr, "<stderr>")):
        stream.buffer.raw.name = name  # type: ignore[attr-defined]
    atexit._clear()
    module = new_module("__main__", "program.py", program)
    module.__dict__.update(exit=sys.exit, quit=sys.exit)
    status = 0
    try:
        exec(code or compile(program, "program.py", "exec", dont_inherit=True), module.__dict__)
    except SystemExit as stop:
        if stop.code not in (None, 0):
            if not reports:
                raise
            status = stop.code if isinstance(stop.code, int) else 1
            if status != stop.code:
                print(stop.code, file=sys.stderr)
    except BaseException as error:
        if not reports:
            raise
        status = 1
        shown = error.with_traceback(error.__traceback__ and error.__traceback__.tb_next)  # without this function
        sys.excepthook(type(shown), shown, shown.__traceback__)
    _end(module)
    return told(status)


def _opened(file: Any, mode: str = "r", *rest: Any, **named: Any) -> Any:
    """`open`, which finds the standard streams by the names that they have where there is a /proc."""
    name = os.fspath(file) if isinstance(file, os.PathLike) else file
    if name in _INPUT or name in _OUTPUT:
        file = os.dup(0 if name in _INPUT else 1)
    return _open(file, mode, *rest, **named)


def _end(module: types.ModuleType) -> None:
    """As at the end of a process: its threads, its handlers, its streams, and what else writes when it goes."""
    if "threading" in sys.modules:
        sys.modules["threading"]._shutdown()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.__stdout__, sys.stderr, sys.__stderr__):
        try:  # noqa: SIM105  (contextlib would be one more module in every zygote)
            stream.flush()  # type: ignore[union-attr]
        except Exception:  # nothing comes of it there
            pass
    sys.stdin, sys.stdout = sys.__stdin__, sys.__stdout__
    module.__dict__.clear()
    gc.collect()


def _text_of(printed: int) -> str:
    return _pread(printed, _fstat(printed).st_size, 0).decode("utf-8", "surrogateescape")
