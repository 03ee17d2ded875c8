"""The layers between a candidate and the machine, each one function: namespaces, new root, Landlock, rlimits, seccomp.

Every function either does its whole job or raises OSError; the zygote records which held. Does not protect against
bugs in the kernel or against side channels. Called through ctypes because Python 3.11 has no `os.unshare` and the
published seccomp and Landlock bindings need libraries on the host or are unmaintained.
"""

import _thread
import ctypes
import errno
import os
import resource
import struct
from collections.abc import Sequence

import syscalls

_NEW_NS, _NEW_UTS, _NEW_IPC, _NEW_USER, _NEW_PID, _NEW_NET = (
    0x20000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000,
)  # fmt: skip
_RDONLY, _NOSUID, _NODEV, _REMOUNT, _BIND, _REC, _PRIVATE = 1, 2, 4, 32, 4096, 16384, 1 << 18
_DETACH = 2
_READ, _WRITE, _SHARED = 1, 2, 1
_SET_PDEATHSIG, _SET_DUMPABLE, _CAPBSET_DROP, _SET_NO_NEW_PRIVS = 1, 4, 24, 38
_SIGKILL = 9

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


def _checked(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def _syscall(what: str, number: int, *arguments: object) -> int:
    words = [ctypes.c_long(word) if isinstance(word, int) else word for word in arguments]
    return _checked(_libc.syscall(ctypes.c_long(number), *words), what)


def _prctl(what: str, option: int, value: int) -> None:
    zero = ctypes.c_ulong(0)
    _checked(_libc.prctl(ctypes.c_int(option), ctypes.c_ulong(value), zero, zero, zero), what)


def die_with_parent() -> None:
    """SIGKILL for this process when the thread that started it ends."""
    _prctl("PR_SET_PDEATHSIG", _SET_PDEATHSIG, _SIGKILL)


def hide_memory() -> None:
    """No core dump, no ptrace, no /proc/PID/mem for processes of the same user."""
    _prctl("PR_SET_DUMPABLE", _SET_DUMPABLE, 0)


def forbid_new_privileges() -> None:
    """execve gains nothing from set-uid files; also the condition for Landlock and seccomp without privileges."""
    _prctl("PR_SET_NO_NEW_PRIVS", _SET_NO_NEW_PRIVS, 1)


class OwnNumber:
    """The words in which libc and the interpreter keep the number of this process, which tells how many ran before it.

    Made before the zygote is forked, narrowed after that: what is its number both times is its number.
    """

    def __init__(self) -> None:
        ctypes.pythonapi.PyThreadState_Get.restype = ctypes.c_void_p
        areas = ((_thread.get_ident(), 1024), (ctypes.pythonapi.PyThreadState_Get(), 256))
        self._words = [ctypes.c_int.from_address(start + at) for start, size in areas for at in range(0, size, 4)]
        self.narrow()

    def narrow(self) -> None:
        """Keep the words that hold the number which this process has now."""
        self._words = [word for word in self._words if word.value == os.getpid()]

    def hide(self) -> None:
        """Make it another one, the same in every process."""
        for word in self._words:
            word.value = 1


def map_shared(handle: int, size: int) -> memoryview:
    """The memory file, mapped. Unlike `mmap.mmap` it keeps no duplicate of `handle`, whose offset would be shared."""
    _libc.mmap.restype = ctypes.c_void_p
    address = _libc.mmap(None, ctypes.c_size_t(size), _READ | _WRITE, _SHARED, handle, ctypes.c_long(0))
    if address in (None, ctypes.c_void_p(-1).value):
        raise OSError(ctypes.get_errno(), "mmap of the records")
    return memoryview((ctypes.c_char * size).from_address(address)).cast("B")


def enter_namespaces() -> None:
    """New user, mount, IPC, UTS, network and (for children) PID namespaces; this user becomes 65534 inside.

    The machine's name is another one inside.
    """
    uid, gid = os.getuid(), os.getgid()
    flags = _NEW_USER | _NEW_NS | _NEW_IPC | _NEW_UTS | _NEW_NET | _NEW_PID
    _checked(_libc.unshare(ctypes.c_int(flags)), "unshare")
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"65534 {uid} 1")
    _write("/proc/self/gid_map", f"65534 {gid} 1")
    _checked(_libc.sethostname(b"sandbox", ctypes.c_size_t(7)), "sethostname")


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)


def _mount(source: str | None, target: str, kind: str | None, flags: int, options: str | None = None) -> None:
    words = [text.encode() if text is not None else None for text in (source, target, kind)]
    result = _libc.mount(*words, ctypes.c_ulong(flags), options.encode() if options else None)
    _checked(result, f"mount {target}")


def change_root(readable: Sequence[str], hidden: Sequence[str], added: Sequence[str], machine: str) -> None:
    """Leave for an empty read-only root with the directories `readable` (read-only) and three devices.

    The directories `hidden`, below the readable ones, are empty there, but for the directories `added`.
    """
    base = _base([*readable, *added])
    _mount(None, "/", None, _REC | _PRIVATE)
    _mount("tmpfs", base, "tmpfs", _NOSUID | _NODEV, "size=1m,mode=755")
    for path in readable:
        if os.path.islink(path):
            os.makedirs(os.path.dirname(base + path), exist_ok=True)
            os.symlink(os.readlink(path), base + path)
        elif os.path.isdir(path):
            os.makedirs(base + path, exist_ok=True)
            _bind(path, base)
            for inner in hidden:
                if inner.startswith(path + "/"):
                    _mount("tmpfs", base + inner, "tmpfs", _NOSUID | _NODEV, "size=4k,mode=755")
                    for point in added:
                        if point.startswith(inner + "/"):
                            os.makedirs(base + point)
                    _mount(None, base + inner, None, _REMOUNT | _BIND | _RDONLY | _NOSUID | _NODEV)
    for path in added:
        os.makedirs(base + path, exist_ok=True)
        _bind(path, base)
    os.makedirs(base + "/dev")
    for name in ("null", "zero", "urandom"):
        _write(f"{base}/dev/{name}", "")
        _mount(f"/dev/{name}", f"{base}/dev/{name}", None, _BIND)
    os.makedirs(base + "/old")
    new, old = ctypes.c_char_p(base.encode()), ctypes.c_char_p((base + "/old").encode())
    _syscall("pivot_root", syscalls.MACHINES[machine]["pivot_root"], new, old)
    os.chdir("/")
    _checked(_libc.umount2(b"/old", ctypes.c_int(_DETACH)), "umount /old")
    os.rmdir("/old")
    _mount(None, "/", None, _REMOUNT | _BIND | _RDONLY | _NOSUID | _NODEV)


def _base(sources: Sequence[str]) -> str:
    """A directory that exists and holds none of `sources`: it is covered, in this mount namespace only."""
    for base in ("/tmp", "/mnt", "/srv", "/run"):
        if os.path.isdir(base) and not any(os.path.realpath(path).startswith(base + "/") for path in sources):
            return base
    raise OSError(errno.EBUSY, "a new root needs a directory below which neither Python nor a package is")


def _bind(path: str, base: str) -> None:
    _mount(path, base + path, None, _BIND | _REC)
    _mount(None, base + path, None, _BIND | _REMOUNT | _RDONLY | _NOSUID | _NODEV | _REC)


def drop_capabilities(machine: str) -> None:
    """Empty the bounding, effective, permitted and inheritable sets."""
    for capability in range(64):
        try:
            _prctl("PR_CAPBSET_DROP", _CAPBSET_DROP, capability)
        except OSError as error:
            if error.errno == errno.EINVAL:  # past the last capability that this kernel knows
                break
            if error.errno != errno.EPERM:  # an ordinary user holds none and may not drop from the bounding set
                raise
    version_3 = 0x20080522
    _syscall("capset", syscalls.MACHINES[machine]["capset"], struct.pack("Ii", version_3, 0), bytes(24))


def landlock_abi() -> int:
    """The kernel's Landlock version, 0 where there is none."""
    abi: int = _libc.syscall(ctypes.c_long(syscalls.LANDLOCK_CREATE_RULESET), None, ctypes.c_size_t(0), 1)
    return max(0, abi)


def apply_landlock(readable: Sequence[str], hidden: Sequence[str]) -> None:
    """Files: read below `readable` but not below `hidden`, use three devices, nothing else.

    No TCP, no abstract sockets, no signals out. The names (not the contents) of hidden files can still be listed.
    """
    abi = landlock_abi()
    if abi < 1:
        raise OSError(errno.ENOSYS, "the kernel has no Landlock")
    read_file, read_dir, write_file = 1 << 2, 1 << 3, 1 << 1
    files = (1 << 13) - 1
    for since, right in ((2, 1 << 13), (3, 1 << 14), (5, 1 << 15)):
        files |= right if abi >= since else 0
    # struct landlock_ruleset_attr grew with the ABI: filesystem rights, then TCP bind/connect, then scopes
    words = [files] + ([3] if abi >= 4 else []) + ([3] if abi >= 6 else [])
    attributes = struct.pack(f"{len(words)}Q", *words)
    ruleset = _syscall(
        "landlock_create_ruleset", syscalls.LANDLOCK_CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), 0
    )
    roots = sorted({os.path.realpath(path) for path in readable if os.path.isdir(path)})
    rules = [(root, read_dir) for root in roots]
    for path in [part for root in roots for part in _parts_without(root, hidden)]:
        rules.append((path, read_file | read_dir if os.path.isdir(path) else read_file))
    rules += [("/dev/null", read_file | write_file), ("/dev/zero", read_file), ("/dev/urandom", read_file)]
    for path, access in rules:
        handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
        beneath = struct.pack("=Qi", access, handle)
        _syscall("landlock_add_rule", syscalls.LANDLOCK_ADD_RULE, ruleset, 1, beneath, 0)
        os.close(handle)
    _syscall("landlock_restrict_self", syscalls.LANDLOCK_RESTRICT_SELF, ruleset, 0)
    os.close(ruleset)


def _parts_without(path: str, hidden: Sequence[str]) -> list[str]:
    """The largest files and directories of the tree `path` that are not and do not hold a hidden one; no links."""
    if path in hidden:
        return []
    if not any(inner.startswith(path + "/") for inner in hidden):
        return [path]
    inside = sorted(entry.path for entry in os.scandir(path) if not entry.is_symlink())
    return [part for entry in inside for part in _parts_without(entry, hidden)]


def limit_resources(stack_mb: int) -> None:
    """No core, no file growth, no locked memory, no message queues, few descriptors; the rest per candidate."""
    fixed = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_FSIZE: 0,
        resource.RLIMIT_NOFILE: 64,
        resource.RLIMIT_MEMLOCK: 0,
        resource.RLIMIT_MSGQUEUE: 0,
        resource.RLIMIT_STACK: stack_mb << 20,
    }
    for limit, value in fixed.items():
        resource.setrlimit(limit, ceiling(limit, value))
    most = resource.getrlimit(resource.RLIMIT_DATA)[1]  # that of the address space is the one that counts
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def ceiling(limit: int, value: int) -> tuple[int, int]:
    """Soft and hard limit: `value`, or what this process may have at most."""
    hard = resource.getrlimit(limit)[1]
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    return value, value


class SeccompFilter:
    """The filter, built once in the zygote and installed in every child."""

    INSTALL, PROBE = 1, 2
    """Operations of the system call: SECCOMP_SET_MODE_FILTER; SECCOMP_GET_ACTION_AVAIL, which changes nothing."""

    def __init__(self, machine: str) -> None:
        program = syscalls.build_filter(machine)
        self._buffer = ctypes.create_string_buffer(program, len(program))
        # struct sock_fprog: count, padding, pointer
        self._header = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(self._buffer))
        self._number = ctypes.c_long(syscalls.MACHINES[machine]["seccomp"])

    def call(self, operation: int) -> None:
        """INSTALL: from now on this process may only compute. Cannot be undone."""
        result = _libc.syscall(self._number, operation, 0, self._header)
        if operation == self.INSTALL:
            _checked(result, "seccomp")
