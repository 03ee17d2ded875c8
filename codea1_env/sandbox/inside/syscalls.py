"""The system calls a candidate may make, by name, and the seccomp filter that allows just these.

Does not promise a filter for machines other than x86-64 and arm64: those are refused, never guessed.
"""

import ctypes
import struct
from typing import TypedDict

# Names that a single-threaded CPython needs to compute, import and read the time. Left out on purpose: everything that
# starts, signals, traces or inspects a process, opens a socket, creates or changes a file, or alters limits; what waits
# without the kernel calling it sleep (membarrier), for sleeping is charged; and what tells of others: process numbers
# (how many ran before), getrusage (whether a file was in memory already) and sysinfo (how busy and how full it is).
_X86_64 = {
    "read": 0, "write": 1, "open": 2, "close": 3, "stat": 4, "fstat": 5, "lstat": 6, "poll": 7, "lseek": 8, "mmap": 9,
    "mprotect": 10, "munmap": 11, "brk": 12, "rt_sigaction": 13, "rt_sigprocmask": 14, "rt_sigreturn": 15,
    "ioctl": 16, "pread64": 17, "readv": 19, "writev": 20, "access": 21, "select": 23, "sched_yield": 24, "mremap": 25,
    "madvise": 28, "dup": 32, "nanosleep": 35, "getitimer": 36, "alarm": 37, "setitimer": 38, "exit": 60,
    "uname": 63, "fcntl": 72, "getcwd": 79, "readlink": 89, "gettimeofday": 96, "getrlimit": 97,
    "times": 100, "getuid": 102, "getgid": 104, "geteuid": 107, "getegid": 108, "getppid": 110,
    "sigaltstack": 131, "time": 201, "futex": 202, "sched_getaffinity": 204,
    "getdents64": 217, "restart_syscall": 219, "clock_gettime": 228, "clock_getres": 229,
    "clock_nanosleep": 230, "exit_group": 231, "openat": 257, "newfstatat": 262, "readlinkat": 267, "faccessat": 269,
    "pselect6": 270, "ppoll": 271, "set_robust_list": 273, "prlimit64": 302, "getrandom": 318, "statx": 332,
    "rseq": 334, "faccessat2": 439,
}  # fmt: skip
_ARM64 = {
    "getcwd": 17, "dup": 23, "fcntl": 25, "ioctl": 29, "faccessat": 48, "openat": 56, "close": 57, "getdents64": 61,
    "lseek": 62, "read": 63, "write": 64, "readv": 65, "writev": 66, "pread64": 67, "pselect6": 72, "ppoll": 73,
    "readlinkat": 78, "newfstatat": 79, "fstat": 80, "exit": 93, "exit_group": 94, "futex": 98,
    "set_robust_list": 99, "nanosleep": 101, "getitimer": 102, "setitimer": 103, "clock_gettime": 113,
    "clock_getres": 114, "clock_nanosleep": 115, "sched_getaffinity": 123, "sched_yield": 124, "restart_syscall": 128,
    "sigaltstack": 132, "rt_sigaction": 134, "rt_sigprocmask": 135, "rt_sigreturn": 139, "times": 153, "uname": 160,
    "gettimeofday": 169, "getppid": 173, "getuid": 174, "geteuid": 175, "getgid": 176,
    "getegid": 177, "brk": 214, "munmap": 215, "mremap": 216, "mmap": 222,
    "mprotect": 226, "madvise": 233, "prlimit64": 261, "getrandom": 278, "statx": 291, "rseq": 293,
    "faccessat2": 439,
}  # fmt: skip


# What programs of wider worlds need besides. Threads: clone with the flags of a thread alone, and what an event loop
# and a pool of threads talk to themselves by: pipes, pairs of sockets that have no name, epoll.
_THREADS_X86_64 = {
    "clone": 56, "pipe": 22, "pipe2": 293, "socketpair": 53, "sendto": 44, "recvfrom": 45, "epoll_create1": 291,
    "epoll_ctl": 233, "epoll_wait": 232, "epoll_pwait": 281, "shutdown": 48,
}  # fmt: skip
_THREADS_ARM64 = {
    "clone": 220, "pipe2": 59, "socketpair": 199, "sendto": 206, "recvfrom": 207, "epoll_create1": 20, "epoll_ctl": 21,
    "epoll_pwait": 22, "shutdown": 210,
}  # fmt: skip
# Scratch: files in the one directory where Landlock or the mounts let them be made. No links of either kind, no nodes;
# a file is made longer or shorter by its descriptor alone, since old kernels do not guard truncate by name.
_SCRATCH_X86_64 = {
    "mkdir": 83, "mkdirat": 258, "rmdir": 84, "unlink": 87, "unlinkat": 263, "rename": 82, "renameat": 264,
    "renameat2": 316, "ftruncate": 77, "pwrite64": 18, "pwritev": 296, "preadv": 295, "fsync": 74, "fdatasync": 75,
    "msync": 26, "chdir": 80, "fchdir": 81, "umask": 95, "dup2": 33, "dup3": 292,
}  # fmt: skip
_SCRATCH_ARM64 = {
    "mkdirat": 34, "unlinkat": 35, "renameat": 38, "renameat2": 276, "ftruncate": 46, "pwrite64": 68, "pwritev": 70,
    "preadv": 69, "fsync": 82, "fdatasync": 83,
    "msync": 227, "chdir": 49, "fchdir": 50, "umask": 166, "dup3": 24,
}  # fmt: skip
# Calls that copying a file makes besides: modes and times that are set, which neither Landlock guards nor anybody needs
# here, and extended attributes. They are told that it is done, or that there are none; nothing is done.
_DONE_X86_64 = {"chmod": 90, "fchmod": 91, "fchmodat": 268, "utimensat": 280, "utime": 132, "utimes": 235}
_DONE_ARM64 = {"fchmod": 52, "fchmodat": 53, "utimensat": 88}
_NONE_X86_64 = {"listxattr": 194, "llistxattr": 195, "flistxattr": 196, "getxattr": 191, "lgetxattr": 192}
_NONE_ARM64 = {"listxattr": 11, "llistxattr": 12, "flistxattr": 13, "getxattr": 8, "lgetxattr": 9}
# Processes, of test scripts alone, in a PID and a mount namespace of their own: programs are started, waited for and
# signalled, files are linked and given modes and times. No namespaces, no tracing, no sockets with addresses.
_PROCESSES_X86_64 = {
    "fork": 57, "vfork": 58, "execve": 59, "wait4": 61, "waitid": 247, "kill": 62, "tkill": 200, "tgkill": 234,
    "pidfd_open": 434, "pidfd_send_signal": 424, "getpid": 39, "gettid": 186, "getpgrp": 111, "getpgid": 121,
    "setpgid": 109, "getsid": 124, "setsid": 112, "set_tid_address": 218, "arch_prctl": 158, "getgroups": 115,
    "getresuid": 118, "getresgid": 120, "rt_sigpending": 127, "rt_sigtimedwait": 128, "rt_sigsuspend": 130, "pause": 34,
    "getrusage": 98, "sysinfo": 99, "link": 86, "linkat": 265, "symlink": 88, "symlinkat": 266, "truncate": 76,
    "creat": 85, "flock": 73, "fadvise64": 221, "sendfile": 40, "copy_file_range": 326, "statfs": 137, "fstatfs": 138,
}  # fmt: skip
_PROCESSES_ARM64 = {
    "execve": 221, "wait4": 260, "waitid": 95, "kill": 129, "tkill": 130, "tgkill": 131, "pidfd_open": 434,
    "pidfd_send_signal": 424, "getpid": 172, "gettid": 178, "getpgid": 155, "setpgid": 154, "getsid": 156,
    "setsid": 157, "set_tid_address": 96, "getgroups": 158, "getresuid": 148, "getresgid": 150, "rt_sigpending": 136,
    "rt_sigtimedwait": 137, "rt_sigsuspend": 133, "getrusage": 165, "sysinfo": 179, "linkat": 37, "symlinkat": 36,
    "truncate": 45, "flock": 32, "fadvise64": 223, "sendfile": 71, "copy_file_range": 285, "statfs": 43, "fstatfs": 44,
}  # fmt: skip

# What a zygote does before and after each candidate, and a candidate before its program: not the program.
_STARTING_X86_64 = {
    "clone": 56, "wait4": 61, "getpid": 39, "prctl": 157, "dup2": 33, "memfd_create": 319, "seccomp": 317,
}  # fmt: skip
_STARTING_ARM64 = {
    "clone": 220, "wait4": 260, "getpid": 172, "prctl": 167, "dup3": 24, "memfd_create": 279, "seccomp": 277,
}  # fmt: skip


class Machine(TypedDict):
    """What differs between processor architectures."""

    audit: int
    allowed: dict[str, int]
    threads: dict[str, int]
    scratch: dict[str, int]
    processes: dict[str, int]
    done: dict[str, int]
    none: dict[str, int]
    starting: dict[str, int]
    seccomp: int
    clone: int
    pivot_root: int
    capset: int


# Numbers that the zygote itself needs: seccomp, clone, pivot_root, capset; Landlock's are the same everywhere.
MACHINES: dict[str, Machine] = {
    "x86_64": {
        "audit": 0xC000003E,
        "allowed": _X86_64,
        "threads": _THREADS_X86_64,
        "scratch": _SCRATCH_X86_64,
        "processes": _PROCESSES_X86_64,
        "done": _DONE_X86_64,
        "none": _NONE_X86_64,
        "starting": _STARTING_X86_64,
        "seccomp": 317,
        "clone": 56,
        "pivot_root": 155,
        "capset": 126,
    },
    "aarch64": {
        "audit": 0xC00000B7,
        "allowed": _ARM64,
        "threads": _THREADS_ARM64,
        "scratch": _SCRATCH_ARM64,
        "processes": _PROCESSES_ARM64,
        "done": _DONE_ARM64,
        "none": _NONE_ARM64,
        "starting": _STARTING_ARM64,
        "seccomp": 277,
        "clone": 220,
        "pivot_root": 41,
        "capset": 91,
    },
}
CLONE3 = 435
LANDLOCK_CREATE_RULESET, LANDLOCK_ADD_RULE, LANDLOCK_RESTRICT_SELF = 444, 445, 446


def landlock_abi() -> int:
    """The kernel's Landlock version, 0 where there is none or a filter around this process hides it."""
    libc = ctypes.CDLL(None)
    libc.syscall.restype = ctypes.c_long
    abi: int = libc.syscall(ctypes.c_long(LANDLOCK_CREATE_RULESET), None, ctypes.c_size_t(0), ctypes.c_uint32(1))
    return max(0, abi)


# Calls that are allowed with some arguments only: alternatives, each of which is a list of conditions (32-bit word of
# the arguments, two to each; allowed values), all of which must hold.
_Conditions = tuple[tuple[int, tuple[int, ...]], ...]
_OWN_CLOCKS = tuple(range(12))  # the others are those of any process of the machine, by its number
_RESTRICTED: dict[str, tuple[_Conditions, ...]] = {
    # F_DUPFD, F_GETFD, F_SETFD, F_GETFL, F_DUPFD_CLOEXEC; F_SETOWN would let the kernel signal others on our behalf.
    "fcntl": (((2, (0, 1, 2, 3, 1030)),),),
    # TCGETS (isatty), FIOCLEX, FIONCLEX.
    "ioctl": (((2, (0x5401, 0x5451, 0x5450)),),),
    # One's own limits: reading them (no pointer to new ones), and lowering all but CPU time: a process that did would
    # end by that, as though something from outside had ended it.
    "prlimit64": (((0, (0,)), (4, (0,)), (5, (0,))), ((0, (0,)), (2, tuple(range(1, 16))))),
    # Of oneself: of others it says which processes there are, and so one's own number.
    "sched_getaffinity": (((0, (0,)),),),
    "clock_gettime": (((0, _OWN_CLOCKS),),),
    "clock_getres": (((0, _OWN_CLOCKS),),),
    "clock_nanosleep": (((0, _OWN_CLOCKS),),),
    # DONTNEED, FREE, HUGEPAGE, NOHUGEPAGE: others throw files out of the page cache, which all processes share.
    "madvise": (((4, (4, 8, 14, 15)),),),
    # The operations of locks within one process: on a page of a file, the others would meet other processes.
    "futex": (((2, (128, 129, 131, 132, 133, 137, 138, 393)),),),
    # VM, FS, FILES, SIGHAND, THREAD, SYSVSEM, SETTLS, PARENT_SETTID and CHILD_CLEARTID, as libc starts a thread, one of
    # them with DETACHED, which means nothing.
    "clone": (((0, (0x3D0F00, 0x7D0F00)),),),
    # AF_UNIX, SOCK_STREAM, with or without NONBLOCK and CLOEXEC.
    "socketpair": (((0, (1,)), (2, (1, 0x801, 0x80001, 0x80801))),),
    # To and from the other end alone: no address.
    "sendto": (((8, (0,)), (9, (0,))),),
    "recvfrom": (((8, (0,)), (9, (0,))),),
}
_WITH_PROCESSES: dict[str, tuple[_Conditions, ...]] = {
    # As libc starts a thread, a fork (CHILD_CLEARTID, CHILD_SETTID, SIGCHLD) and a spawn (VM, VFORK, SIGCHLD).
    "clone": (((0, (0x3D0F00, 0x7D0F00, 0x1200011, 0x4111, 0x11)),),),
    "arch_prctl": (((0, (0x1002,)),),),  # ARCH_SET_FS, with which every program begins
}
_STARTING_FREELY = ("clone", "prlimit64")
"""Restricted to a program alone."""
_SHARED_LOCKS = "futex"
"""Restricted to one process, but where there are several: their locks are in memory that they share."""
_FIONBIO = 0x5421
_LOCKS = (6, 7, 37, 38)
"""F_SETLK, F_SETLKW and those of open files: there is nobody to lock a file against, and on a library's file they would
meet another process. Nothing is locked."""
_SHARED_WAITS = (9, 265)
"""Futex operations by which libc waits for the end of a thread, as though another process could end it. They are told
to look again, and do so until the thread has ended."""

_LOAD, _EQUAL, _AT_LEAST, _RETURN, _JUMP = 0x20, 0x15, 0x35, 0x06, 0x05
_ALLOW, _KILL = 0x7FFF0000, 0x80000000
_EPERM, _ENOSYS, _EAGAIN, _EOPNOTSUPP, _DONE = (0x00050000 | number for number in (1, 38, 11, 95, 0))


def build_filter(
    machine: str, threads: bool = False, scratch: bool = False, processes: bool = False, starting: bool = False
) -> bytes:
    """The BPF program for `machine`: allow the list, answer EPERM to the rest, ENOSYS to clone3 so that libc copes.

    `threads` and `scratch` as in `worlds.World`; `processes` with both of them; `starting`: with what `build_rest`
    takes away again. Foreign architectures and x32 numbers kill the process. Raises KeyError for an unknown machine.
    """
    numbers = MACHINES[machine]
    program = [
        _op(_LOAD, 4),
        _op(_EQUAL, numbers["audit"], 1, 0),
        _op(_RETURN, _KILL),
        _op(_LOAD, 0),
        _op(_AT_LEAST, 0x40000000, 0, 1),
        _op(_RETURN, _KILL),
        _op(_EQUAL, CLONE3, 0, 1),
        _op(_RETURN, _ENOSYS),
    ]
    allowed = numbers["allowed"] | (numbers["threads"] if threads else {}) | (numbers["scratch"] if scratch else {})
    restricted = _RESTRICTED
    if processes:
        allowed |= numbers["processes"] | numbers["done"]
        restricted = {name: how for name, how in (_RESTRICTED | _WITH_PROCESSES).items() if name != _SHARED_LOCKS}
    if starting:
        allowed |= numbers["starting"]
        restricted = {name: how for name, how in _RESTRICTED.items() if name not in _STARTING_FREELY}
    if scratch:
        program += _answered(allowed["fcntl"], 2, _LOCKS, _DONE)
        for answer, calls in ((_DONE, {} if processes else numbers["done"]), (_EOPNOTSUPP, numbers["none"])):
            for number in calls.values():
                program += [_op(_EQUAL, number, 0, 1), _op(_RETURN, answer)]
    if threads and not processes:
        program += _answered(allowed["futex"], 2, _SHARED_WAITS, _EAGAIN)
    if threads:
        program += _answered(allowed["ioctl"], 2, (_FIONBIO,), _ALLOW)
    for name, alternatives in restricted.items():
        if name in allowed:
            program += _restricted(allowed[name], alternatives)
    plain = sorted(number for name, number in allowed.items() if name not in restricted)
    steps = _steps(plain)
    program += _search(steps, 0, len(steps))
    return b"".join(program)


def build_rest(machine: str) -> bytes:
    """What makes of the filter for `starting` the one without, where both are in force: a fifth as long, and
    each process that is given it pays for its length."""
    numbers = MACHINES[machine]
    denied = [op for number in numbers["starting"].values() for op in (_op(_EQUAL, number, 0, 1), _op(_RETURN, _EPERM))]
    limits = _restricted(numbers["allowed"]["prlimit64"], _RESTRICTED["prlimit64"])
    return b"".join([_op(_LOAD, 0), *denied, *limits, _op(_RETURN, _ALLOW)])


def _op(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("HBBI", code, if_true, if_false, value)


def _answered(number: int, word: int, values: tuple[int, ...], answer: int) -> list[bytes]:
    """If the call is `number` and that word of its arguments has one of the values: `answer`; else it goes on."""
    checks = [
        _op(_EQUAL, value, len(values) - i - 1, 0 if i < len(values) - 1 else 1) for i, value in enumerate(values)
    ]
    body = [_op(_LOAD, 16 + 4 * word), *checks, _op(_RETURN, answer), _op(_LOAD, 0)]
    return [_op(_EQUAL, number, 0, len(body)), *body]


def _restricted(number: int, alternatives: tuple[_Conditions, ...]) -> list[bytes]:
    """If the call is `number`: allow it where all words of one alternative have one of their values, else EPERM."""
    body = [_op(_RETURN, _EPERM)]
    for conditions in reversed(alternatives):
        found = [_op(_RETURN, _ALLOW)]
        for word, values in reversed(conditions):
            checks = [_op(_EQUAL, value, len(values) - i, 0) for i, value in enumerate(values)]
            found = [_op(_LOAD, 16 + 4 * word), *checks, _op(_JUMP, len(found)), *found]
        body = found + body
    return [_op(_EQUAL, number, 0, len(body)), *body]


def _steps(numbers: list[int]) -> list[tuple[int, int]]:
    """Call numbers as [(first number, verdict)], each holding up to the next."""
    steps: list[tuple[int, int]] = []
    following = 0
    for number in numbers:
        if number > following:
            steps.append((following, _EPERM))
        if number != following or not steps or steps[-1][1] != _ALLOW:
            steps.append((number, _ALLOW))
        following = number + 1
    return [*steps, (following, _EPERM)]


def _search(steps: list[tuple[int, int]], low: int, high: int) -> list[bytes]:
    """A binary search over `steps[low:high]`."""
    if high - low == 1:
        return [_op(_RETURN, steps[low][1])]
    middle = (low + high) // 2
    left, right = _search(steps, low, middle), _search(steps, middle, high)
    return [_op(_AT_LEAST, steps[middle][0], len(left), 0), *left, *right]
