"""The zygote: isolates itself once, then forks one candidate process per job.

Started as `python -P -s -S zygote.py CONTROL INPUT OUTPUT OPTIONS`. CONTROL is a SOCK_SEQPACKET socket to the parent,
INPUT and OUTPUT are memory files: the parent writes a job into INPUT, the candidate writes records into OUTPUT.

Every candidate is a copy of this process, so nothing of an earlier candidate may be left here. Neither the job nor what
is asked of it ever enters it, and how a candidate ended goes from the kernel to the parent through a buffer that is
cleared (`forking`). No candidate holds a file description that this process or another one holds: the memory files and
the control socket are closed, and /dev/null is opened anew.

Does not judge and does not keep time: the parent decides when a candidate is killed.
"""

import sys

_SHIFT = 5 if sys.flags.hash_randomization else 0
# A reference runs here and in a zygote without a hash seed: where its answer hangs on addresses, as on a NaN's place in
# a set, the two differ. Something of every size that is allocated side by side.
_shifted: "list[object]" = [
    made for place in range(_SHIFT) for made in (float(place), *(bytes(1 + size) for size in range(0, 464, 16)))
]
_SHIFT_BYTES = 0x19B0 if _SHIFT else 0  # in a candidate's own memory, too: changes every digit of an address
_NANS = tuple(float("nan") for _ in range(1000))  # before any import, which allocates more where it has to compile

import ctypes  # noqa: E402

# From here on memory is one piece, which ends up on large pages (`gather`): room in the heap, and the interpreter's
# arenas in it. To free more than what was mapped apart before makes the heap the place for anything smaller.
_libc, _python = ctypes.CDLL(None), ctypes.pythonapi
_libc.malloc.restype = _libc.sbrk.restype = ctypes.c_void_p
_ROOM, _LARGE_PAGE, _COLLAPSE = 12 << 20, 2 << 20, 25
_POOL_BYTES, _POOL_HEAD_BYTES = 16 << 10, 48
"""In which the interpreter keeps small objects, all of one size."""
for _size in (_ROOM, _ROOM - _POOL_BYTES):
    _piece: int = _libc.malloc(ctypes.c_size_t(_size))
    _libc.free(ctypes.c_void_p(_piece))
_mapped_arenas = (ctypes.c_void_p * 3)()  # a context, and what allocates and frees with it
_python.PyObject_GetArenaAllocator(_mapped_arenas)
_allocate = ctypes.cast(_libc.aligned_alloc, ctypes.c_void_p)
_python.PyObject_SetArenaAllocator((ctypes.c_void_p * 3)(_POOL_BYTES, _allocate.value, _mapped_arenas[2]))

import json  # noqa: E402
import marshal  # noqa: E402
import os  # noqa: E402
import signal  # noqa: E402
import struct  # noqa: E402

# What candidates import most, once, before isolation; rarer modules are for zygotes of their own: every
# mapped page makes every fork dearer. Their at-fork handlers (random, threading, logging) would run in every child and
# cost half a millisecond each; the children are single-threaded and are re-seeded here instead.
_register = os.register_at_fork
os.register_at_fork = lambda **handlers: None
import bisect  # noqa: E402, F401
import collections  # noqa: E402, F401
import contextlib  # noqa: E402
import copy  # noqa: E402, F401
import functools  # noqa: E402, F401
import gc  # noqa: E402
import heapq  # noqa: E402, F401
import itertools  # noqa: E402, F401
import math  # noqa: E402, F401
import operator  # noqa: E402, F401
import random  # noqa: E402
import re  # noqa: E402
import resource  # noqa: E402
import string  # noqa: E402, F401
import typing  # noqa: E402

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import candidate  # noqa: E402
import denials  # noqa: E402
import forking  # noqa: E402
import isolation  # noqa: E402
import marks  # noqa: E402
import packages  # noqa: E402
import state  # noqa: E402
import syscalls  # noqa: E402
import values  # noqa: E402
import widening  # noqa: E402

sys.path.pop(0)
values.NANS = _NANS

# Bytes of the job's head, which follows, and of its items; MiB of memory, CPU seconds, what it has (widening).
START = struct.Struct("<IIIII")
_HANDLES = (9, 10, 11)
_leave = os._exit  # a program may have given the name to something else
_GUARD = """
import os, select, signal, sys
zygote, child, parent, begun = map(int, sys.argv[2:])
poll = select.poll()
for handle in child, parent:
    poll.register(handle, select.POLLIN)
os.write(begun, b"G")
os.close(begun)
poll.poll()
os.kill(zygote, signal.SIGKILL)
os.waitpid(zygote, 0)
os._exit(0)
"""
_WARM_UP = """
import math
from typing import List
class A:
    x = 1
def f(a: List[int], b=2):
    s = {}
    for i in range(3):
        s[i] = [x for x in (1, 2) if x]
    try:
        1 / 0
    except Exception:
        pass
    return s, sorted([2, 1], key=lambda z: z), f"{a}"
"""


def main() -> None:
    control, input_fd, output_fd = take_handles(sys.argv[1:4])
    options = json.loads(sys.argv[4])
    sys.argv[:], sys.orig_argv[:] = ["solution"], []  # the paths in them are none of a candidate's business
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # ends a candidate from outside, and raises nothing in its program
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # ignored, as it may be inherited, it would leave nobody to wait for
    os.chdir("/")
    for name in options["modules"]:  # of the standard library, which a program names
        __import__(name)
    os.register_at_fork = _register
    places, versions, hash_seed = options["places"], options["versions"], options["hash_seed"]
    spared_mb, broken = packages.preload(options["packages"], places, versions, options["site"], hash_seed)
    parent = os.pidfd_open(os.getppid())
    null = os.open("/dev/null", os.O_RDWR)
    for standard in (0, 1):
        os.dup2(null, standard)
    os.environ.clear()
    os.environ.update(PATH="/usr/bin", LC_ALL="C.UTF-8")
    random.seed(options["hash_seed"])
    number = isolation.OwnNumber()
    layers, wide = isolate(options, control, parent, null)
    number.narrow()
    os.dup2(null, 2)  # until now the parent was told why nothing starts
    os.close(null)
    region = isolation.map_shared(output_fd, options["region_bytes"])
    os.close(output_fd)
    given = isolation.map_unread(input_fd, options["input_bytes"])
    filters = widening.filters(options["machine"], wide) if layers["seccomp"] is True else {}
    if "marks" not in options["without"]:
        marks.watch()
    warm_up(number, filters, region)
    # Those that were kept for reuse, also what has just been let go of.
    _shifted.extend([[], {}, (n,), (n, n), float(n)] for n in range(200))
    fill_pools()
    gather()
    spared_mb += options["input_bytes"] >> 20
    said = {"layers": layers, "broken": broken, "spared_mb": [spared_mb, spared_mb + widening.THREADS_MB]}
    os.write(control, b"R" + json.dumps(said).encode())
    handles = control, input_fd
    serve(handles, given, options["input_bytes"], region, number, filters, spared_mb, options["machine"], wide)


def take_handles(numbers: "list[str]") -> "tuple[int, ...]":
    """The inherited descriptors under the same numbers in every zygote, however many files its parent has open: objects
    have the same addresses then."""
    low = []
    for number in numbers:  # there are three others: the lowest free ones are below 9
        low.append(os.dup(int(number)))
        os.close(int(number))
    for place, handle in zip(_HANDLES, low, strict=True):
        os.dup2(handle, place, inheritable=False)
    os.closerange(3, _HANDLES[0])
    return _HANDLES


def isolate(
    options: dict[str, typing.Any], control: int, parent: int, null: int
) -> "tuple[dict[str, bool | str], widening.Widening | None]":
    """Apply every layer that this machine permits: {layer: True, or why not}, and what is left to each candidate."""
    layers: dict[str, bool | str] = {}
    readable, hidden, machine = options["readable"], options["hidden"], options["machine"]
    commands = options["commands"]
    added = [path for paths in options["places"].values() for path in paths]

    def attempt(name: str, function: typing.Callable[..., None], *arguments: object) -> None:
        if name in options["without"]:
            layers[name] = "switched off"
            return
        try:
            function(*arguments)
            layers[name] = True
        except OSError as error:
            layers[name] = str(error)

    attempt("namespaces", isolation.enter_namespaces)
    waits, begun = os.pipe()
    zygote = os.fork()  # the first one of the new namespace
    if zygote:
        os.close(control)
        guard(zygote, parent, begun, null, is_large=bool(options["packages"] or options["site"]))
    os.close(parent)
    os.close(begun)
    if not os.read(waits, 1):  # the guard must be there, and needs no file from now on
        os._exit(1)
    os.close(waits)
    isolation.die_with_parent()
    if layers["namespaces"] is True:
        if commands:
            with contextlib.suppress(OSError):  # an ordinary user's processes are counted in any case
                isolation.bound_numbers(widening.MOST_PROCESSES)
        attempt("root", isolation.change_root, [*readable, *commands], hidden, added, machine, bool(commands))
    else:
        layers["root"] = "needs namespaces"
    keeps = widening.SYS_ADMIN if options["is_wide"] and layers["root"] is True else None
    attempt("capabilities", isolation.drop_capabilities, machine, keeps)
    attempt("no_new_privileges", isolation.forbid_new_privileges)
    restrict = isolation.apply_landlock, isolation.landlock_rules([*readable, *added], hidden)
    attempt("landlock", *((in_a_child, *restrict) if options["is_wide"] else restrict))
    attempt("rlimits", isolation.limit_resources, options["stack_mb"], widening.SCRATCH_MB)
    attempt("hidden_memory", isolation.hide_memory)
    seccomp = isolation.SeccompFilter(machine, syscalls.build_filter(machine))
    attempt("seccomp", in_a_child, seccomp.call, seccomp.INSTALL)
    denials.readable = tuple(f"{path}/" for path in [*readable, *added])
    widening.count_threads()
    wide = None
    if options["is_wide"]:
        wide = widening.Widening(options, layers, [*readable, *commands, *added], hidden)
        widening.import_modules(wide.has_processes)
    if wide is None or not wide.has_processes:
        widening.stand_in_for_the_kernel()
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115
    sys.path[:] = [path for path in sys.path if any(path.startswith(root) for root in readable)]
    return layers, wide


def guard(zygote: int, parent: int, begun: int, null: int, is_large: bool) -> None:
    """What stays outside: it ends with its parent process, which PDEATHSIG (tied to the parent's *thread*) cannot tell,
    and takes the zygote with it.

    It holds all that was imported, of which the zygote soon has its own. Started anew it takes 7 MiB.
    """
    handles = os.pidfd_open(zygote), parent, begun
    own = ["-I", "-S", "-c", _GUARD, os.path.abspath(__file__), *map(str, (zygote, *handles))]  # listed by this name
    os.dup2(null, 2)  # of which the parent awaits the end
    # This user may have no right any more to what is another one's.
    if is_large and os.access(sys.executable, os.X_OK) and os.access(os.__file__, os.R_OK):
        for handle in handles:
            os.set_inheritable(handle, True)
        with contextlib.suppress(OSError):
            os.execve(sys.executable, [sys.executable, *own], {})
    sys.argv = own[3:]
    exec(_GUARD, {})


def in_a_child(function: typing.Callable[..., None], *arguments: object) -> None:
    """Do it in a child that then exits, so that what the kernel refuses is known before any candidate runs."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            function(*arguments)
            code = 0
        finally:
            os._exit(code)
    if os.waitpid(pid, 0)[1] != 0:
        raise OSError("the kernel refuses it")


def become_candidate(
    inherited: tuple[int, int],
    number: "isolation.OwnNumber",
    filters: "dict[int, isolation.SeccompFilter]",
    operation: int,
    head: bytes,
    items: int,
    region: memoryview,
    wide: "widening.Widening | None" = None,
    has: int = 0,
) -> None:
    """What a child does from its first to its last instruction. `warm_up` does it in the zygote, with no effect."""
    for handle in inherited:
        os.close(handle)
    null = os.open("/dev/null", os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(null, standard)
    os.close(null)
    if has & widening.STREAMS:
        widening.open_streams()
    if wide is not None:
        wide.apply(has)
    number.hide()
    if filters:
        filters[has & widening.KERNEL].call(operation)
    candidate.run(head, items, region)


def warm_up(number: "isolation.OwnNumber", filters: "dict[int, isolation.SeccompFilter]", region: memoryview) -> None:
    """Be a candidate here, with a program of our own, so that children find bytecode and caches as they need them.

    Every page that a child is the first to write to is copied for it, at more than a microsecond each: what has been
    specialised, interned or cached beforehand is only read.
    """
    arguments = [[["a"], []], [[[1, {"t": [2.5, None]}]], [["b", {"d": [["k", True]]}]]], [[], []]] * 4
    job = {
        "kind": "calls",
        "source": _WARM_UP,
        "epilogue": "",
        "sets": False,
        "entry_point": "f",
        "looks": marks.is_watching,
        "value_bytes": 1 << 20,
    }
    items = [json.dumps(item).encode() for item in arguments]
    job["sizes"] = [*map(len, items)]
    head, body = marshal.dumps(job), ctypes.create_string_buffer(b"".join(items))
    state.learn()
    own = sys.modules["__main__"]
    for _ in range(20):
        inherited, probe = (os.dup(0), os.dup(0)), isolation.SeccompFilter.PROBE
        become_candidate(inherited, number, filters, probe, head, ctypes.addressof(body), region)
        del sys.modules["solution"]
        sys.modules["__main__"] = own
    re.purge()
    gc.collect()
    gc.unfreeze()
    state.learn()
    gc.freeze()


def gather() -> None:
    """Move the memory onto large pages, where the kernel has them: a fork copies one entry for each, not 512."""
    _python.PyObject_SetArenaAllocator(_mapped_arenas)
    for start in range(_piece & -_LARGE_PAGE, _libc.sbrk(0), _LARGE_PAGE):
        _libc.madvise(ctypes.c_void_p(start), ctypes.c_size_t(_LARGE_PAGE), _COLLAPSE)


def fill_pools() -> None:
    """Take what is free in the memory of small objects, here and there. A child's first object of a size then begins a
    pool of its own: one new page, and no copy of two."""
    take: typing.Any = _python.PyObject_Malloc
    take.restype, take.argtypes = ctypes.c_void_p, (ctypes.c_size_t,)
    for size in range(16, 513, 16):
        in_order = last = 0
        for _ in range(1 << 14):  # more than there are, where an interpreter's pools are others
            address = take(size)
            is_first = address % _POOL_BYTES == _POOL_HEAD_BYTES
            in_order = 1 if is_first else in_order + 1 if in_order and address == last + size else 0
            last = address
            if in_order == 3:  # as only the blocks of a new pool are
                break
        for _ in range(_SHIFT_BYTES // size):
            take(size)


def serve(
    handles: tuple[int, int],
    given: int,
    given_bytes: int,
    region: memoryview,
    number: "isolation.OwnNumber",
    filters: "dict[int, isolation.SeccompFilter]",
    spared_mb: int,
    machine: str,
    wide: "widening.Widening | None",
) -> None:
    """Fork a candidate per job. `handles`: of the control socket and of the job's file, whose first `given_bytes` are
    mapped at `given`. `spared_mb`: of a candidate's address space, what is not its own doing."""
    own_pid = os.getpid()
    # A candidate behind the filter leaves no process; one without it may.
    spaces = widening.NEW_SPACES if wide is not None and wide.has_spaces else 0
    loop = forking.Forking(handles[0], machine, end_everything if own_pid == 1 and not filters else None, spaces)
    if widening.OF_ZYGOTE in filters:
        filters[widening.OF_ZYGOTE].call(isolation.SeccompFilter.INSTALL)
    loop.run()
    try:
        if own_pid != 1:  # the end of PID 1 ends all processes of its namespace
            isolation.die_with_parent()
            if os.getppid() != own_pid:  # it ended before that was in force
                os._exit(1)
        head_bytes, item_bytes, memory_mb, cpu_s, has = START.unpack(candidate.read(given, START.size))
        if START.size + head_bytes + item_bytes > given_bytes:
            given = isolation.map_unread(handles[1], START.size + head_bytes + item_bytes)
        if wide is None or not wide.has_processes:
            has &= ~widening.PROCESSES
        stacks_mb = widening.THREADS_MB if has & widening.THREADS else 0
        memory_bytes, file_bytes = memory_mb + spared_mb + stacks_mb << 20, widening.file_bytes(has)
        isolation.limit(resource.RLIMIT_AS, memory_bytes)
        isolation.limit(resource.RLIMIT_CPU, cpu_s)  # a backstop of the parent's own clock
        isolation.limit(resource.RLIMIT_FSIZE, file_bytes)
        head, install = candidate.read(given + START.size, head_bytes), isolation.SeccompFilter.INSTALL
        items = given + START.size + head_bytes
        become_candidate(handles, number, filters, install, head, items, region, wide, has)
    finally:
        _leave(0)


def end_everything() -> None:
    """As PID 1: nothing that a candidate left behind outlives it. Orphans are this process's children."""
    try:
        while True:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                os.kill(-1, signal.SIGKILL)
                os.waitpid(-1, 0)
    except ChildProcessError:
        pass


if __name__ == "__main__":
    main()
