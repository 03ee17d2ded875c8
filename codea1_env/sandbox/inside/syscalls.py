"""The system calls a candidate may make, by name, and the seccomp filter that allows just these.

Does not promise a filter for machines other than x86-64 and arm64: those are refused, never guessed.
"""

import ctypes
import struct

_BY_PURPOSE = {
    # What a single-threaded CPython needs to compute, import and read the time. Left out on purpose: everything that
    # starts, signals, traces or inspects a process, opens a socket, creates or changes a file, or alters limits; what
    # waits without the kernel calling it sleep (membarrier), for sleeping is charged; and what tells of others: process
    # numbers (how many ran before), getrusage (whether a file was in memory already) and sysinfo (how busy and how full
    # it is).
    "allowed": """
        read 0 63, write 1 64, open 2 -, close 3 57, stat 4 -, fstat 5 80, lstat 6 -, poll 7 -, lseek 8 62,
        mmap 9 222, mprotect 10 226, munmap 11 215, brk 12 214, rt_sigaction 13 134, rt_sigprocmask 14 135,
        rt_sigreturn 15 139, ioctl 16 29, pread64 17 67, readv 19 65, writev 20 66, access 21 -, select 23 -,
        sched_yield 24 124, mremap 25 216, madvise 28 233, dup 32 23, nanosleep 35 101, getitimer 36 102, alarm 37 -,
        setitimer 38 103, exit 60 93, uname 63 160, fcntl 72 25, getcwd 79 17, readlink 89 -, gettimeofday 96 169,
        getrlimit 97 -, times 100 153, getuid 102 174, getgid 104 176, geteuid 107 175, getegid 108 177,
        getppid 110 173, sigaltstack 131 132, time 201 -, futex 202 98, sched_getaffinity 204 123, getdents64 217 61,
        restart_syscall 219 128, clock_gettime 228 113, clock_getres 229 114, clock_nanosleep 230 115,
        exit_group 231 94, openat 257 56, newfstatat 262 79, readlinkat 267 78, faccessat 269 48, pselect6 270 72,
        ppoll 271 73, set_robust_list 273 99, prlimit64 302 261, getrandom 318 278, statx 332 291, rseq 334 293,
        faccessat2 439 439""",
    # What programs of wider worlds need besides. Threads: clone with the flags of a thread alone, and what an event
    # loop and a pool of threads talk to themselves by: pipes, pairs of sockets that have no name, epoll.
    "threads": """
        clone 56 220, pipe 22 -, pipe2 293 59, socketpair 53 199, sendto 44 206, recvfrom 45 207,
        epoll_create1 291 20, epoll_ctl 233 21, epoll_wait 232 -, epoll_pwait 281 22, shutdown 48 210""",
    # Files in the one directory where Landlock or the mounts let them be made. No links of either kind, no nodes; a
    # file is made longer or shorter by its descriptor alone, since old kernels do not guard truncate by name.
    "scratch": """
        mkdir 83 -, mkdirat 258 34, rmdir 84 -, unlink 87 -, unlinkat 263 35, rename 82 -, renameat 264 38,
        renameat2 316 276, ftruncate 77 46, pwrite64 18 68, pwritev 296 70, preadv 295 69, fsync 74 82,
        fdatasync 75 83, msync 26 227, chdir 80 49, fchdir 81 50, umask 95 166, dup2 33 -, dup3 292 24""",
    # Calls that copying a file makes besides: modes and times that are set, which neither Landlock guards nor anybody
    # needs here, and extended attributes. They are told that it is done, or that there are none; nothing is done. Nor
    # is a whole file locked: there is nobody to lock it against, and a library's would be locked for other processes.
    "done": "chmod 90 -, fchmod 91 52, fchmodat 268 53, utimensat 280 88, utime 132 -, utimes 235 -, flock 73 32",
    "none": "listxattr 194 11, llistxattr 195 12, flistxattr 196 13, getxattr 191 8, lgetxattr 192 9",
    # Processes, of test scripts alone, in a PID and a mount namespace of their own: programs are started, waited for
    # and signalled, files are linked and given modes and times. No namespaces, no tracing, no sockets with addresses.
    "processes": """
        fork 57 -, vfork 58 -, execve 59 221, wait4 61 260, waitid 247 95, kill 62 129, tkill 200 130, tgkill 234 131,
        pidfd_open 434 434, pidfd_send_signal 424 424, getpid 39 172, gettid 186 178, getpgrp 111 -, getpgid 121 155,
        setpgid 109 154, getsid 124 156, setsid 112 157, set_tid_address 218 96, arch_prctl 158 -, getgroups 115 158,
        getresuid 118 148, getresgid 120 150, rt_sigpending 127 136, rt_sigtimedwait 128 137, rt_sigsuspend 130 133,
        pause 34 -, getrusage 98 165, sysinfo 99 179, link 86 -, linkat 265 37, symlink 88 -, symlinkat 266 36,
        truncate 76 45, creat 85 -, fadvise64 221 223, sendfile 40 71, copy_file_range 326 285,
        statfs 137 43, fstatfs 138 44, close_range 436 436""",
    # What a zygote does before and after each candidate, and a candidate before its program: not the program.
    "starting": """
        clone 56 220, wait4 61 260, getpid 39 172, prctl 157 167, dup2 33 -, dup3 - 24, memfd_create 319 279,
        seccomp 317 277""",
    # What the zygote isolates itself by.
    "isolating": "pivot_root 155 41, capset 126 91",
}
"""Each call with its number on x86-64 and on arm64; "-" where it has none there."""
AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
"""The kernel's names for processor architectures."""


def _numbers(column: int) -> dict[str, dict[str, int]]:
    rows = {purpose: [entry.split() for entry in text.split(",")] for purpose, text in _BY_PURPOSE.items()}
    return {
        purpose: {row[0]: int(row[column]) for row in table if row[column] != "-"} for purpose, table in rows.items()
    }


CALLS = {machine: _numbers(column) for column, machine in enumerate(AUDIT, 1)}
"""Of each machine the numbers of the calls, by their purpose and name; Landlock's are the same everywhere."""
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
_SHARED_LOCKS = ("futex",)
"""Restricted to one process, but where there are several: their locks are in memory that they share."""
_FIONBIO = 0x5421
_LOCKS = (6, 7, 37, 38)
"""F_SETLK, F_SETLKW and those of open files: there is nobody to lock a file against, and on a library's file they would
meet another process. Nothing is locked."""
_SEEN_LOCKS = (5, 36)
"""F_GETLK and that of open files: the kernel says that there is no lock."""
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
    numbers = CALLS[machine]
    program = [
        _op(_LOAD, 4),
        _op(_EQUAL, AUDIT[machine], 1, 0),
        _op(_RETURN, _KILL),
        _op(_LOAD, 0),
        _op(_AT_LEAST, 0x40000000, 0, 1),
        _op(_RETURN, _KILL),
        _op(_EQUAL, CLONE3, 0, 1),
        _op(_RETURN, _ENOSYS),
    ]
    wanted = {"threads": threads, "scratch": scratch, "processes": processes, "done": processes, "starting": starting}
    purposes = ["allowed", *(purpose for purpose, is_wanted in wanted.items() if is_wanted)]
    allowed = {name: number for purpose in purposes for name, number in numbers[purpose].items()}
    free = (_SHARED_LOCKS if processes else ()) + (_STARTING_FREELY if starting else ())
    rules = _RESTRICTED | (_WITH_PROCESSES if processes else {})
    restricted = {name: how for name, how in rules.items() if name in allowed and name not in free}
    if scratch:
        program += _ruled(allowed["fcntl"], (((2, _LOCKS),),), _DONE, None)
        program += _ruled(allowed["fcntl"], (((2, _SEEN_LOCKS),),), _ALLOW, None)
        for answer, calls in ((_DONE, {} if processes else numbers["done"]), (_EOPNOTSUPP, numbers["none"])):
            for number in calls.values():
                program += [_op(_EQUAL, number, 0, 1), _op(_RETURN, answer)]
    if threads and not processes:
        program += _ruled(allowed["futex"], (((2, _SHARED_WAITS),),), _EAGAIN, None)
    if threads:
        program += _ruled(allowed["ioctl"], (((2, (_FIONBIO,)),),), _ALLOW, None)
    for name, alternatives in restricted.items():
        program += _ruled(allowed[name], alternatives)
    plain = sorted(number for name, number in allowed.items() if name not in restricted)
    steps = _steps(plain)
    program += _search(steps, 0, len(steps))
    return b"".join(program)


def build_rest(machine: str) -> bytes:
    """What makes of the filter for `starting` the one without, where both are in force: a fifth as long, and
    each process that is given it pays for its length."""
    numbers = CALLS[machine]
    denied = [op for number in numbers["starting"].values() for op in (_op(_EQUAL, number, 0, 1), _op(_RETURN, _EPERM))]
    limits = _ruled(numbers["allowed"]["prlimit64"], _RESTRICTED["prlimit64"])
    return b"".join([_op(_LOAD, 0), *denied, *limits, _op(_RETURN, _ALLOW)])


def _op(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("HBBI", code, if_true, if_false, value)


def _ruled(
    number: int, alternatives: tuple[_Conditions, ...], verdict: int = _ALLOW, otherwise: int | None = _EPERM
) -> list[bytes]:
    """If the call is `number`: `verdict` where all words of one alternative have one of their values, else `otherwise`,
    or what follows where that is None."""
    body = [_op(_LOAD, 0) if otherwise is None else _op(_RETURN, otherwise)]
    for conditions in reversed(alternatives):
        found = [_op(_RETURN, verdict)]
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
