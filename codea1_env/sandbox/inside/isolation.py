"""The layers between a candidate and the machine, each one function: namespaces, new root, Landlock, rlimits, seccomp.

Every function either does its whole job or raises OSError; the zygote records which held. Does not protect against
bugs in the kernel or against side channels. Called through ctypes because Python 3.11 has no `os.unshare` and the
published seccomp and Landlock bindings need libraries on the host or are unmaintained.
"""

import _thread
import ctypes
import errno
import functools
import os
import re
import resource
import struct
from collections.abc import Sequence

import syscalls

_NEW_NS, _NEW_UTS, _NEW_IPC, _NEW_USER, _NEW_PID, _NEW_NET = (
    0x20000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000,
)  # fmt: skip
_RDONLY, _NOSUID, _NODEV, _NOEXEC, _REMOUNT, _BIND, _REC, _PRIVATE = 1, 2, 4, 8, 32, 4096, 16384, 1 << 18
_DETACH = 2
_READ, _WRITE, _SHARED, _COPIED, _ANONYMOUS = 1, 2, 1, 2, 32
_SET_PDEATHSIG, _SET_DUMPABLE, _CAPBSET_DROP, _SET_NO_NEW_PRIVS = 1, 4, 24, 38
_SIGKILL = 9
_RESERVED_NUMBERS = 300
"""Which the kernel gives but once: where numbers begin anew, they begin here."""

SHARED_MEMORY = "/dev/shm"
"""Where libc keeps what several processes lock and share."""

_LANDLOCK = syscalls.landlock_abi()  # asked once: no child has to
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
        places = [start + at for start, size in areas for at in range(0, size, 4)]
        self._words = [memoryview(ctypes.c_int.from_address(place)).cast("B").cast("i") for place in places]
        self.narrow()

    def narrow(self) -> None:
        """Keep the words that hold the number which this process has now."""
        self._words = [word for word in self._words if word[0] == os.getpid()]

    def hide(self) -> None:
        """Make it another one, the same in every process."""
        for word in self._words:
            word[0] = 1


def map_shared(handle: int, size: int) -> memoryview:
    """The memory file, mapped. Unlike `mmap.mmap` it keeps no duplicate of `handle`, whose offset would be shared."""
    return memoryview((ctypes.c_char * size).from_address(_mapped(handle, size, _READ | _WRITE, _SHARED))).cast("B")


def map_unread(handle: int, size: int) -> int:
    """The address of the memory file, mapped for reading: no object of Python holds what is in it."""
    return _mapped(handle, size, _READ, _COPIED)


def map_own(size: int) -> int:
    """The address of memory of this process's own."""
    return _mapped(-1, size, _READ | _WRITE, _COPIED | _ANONYMOUS)


def _mapped(handle: int, size: int, access: int, kind: int) -> int:
    _libc.mmap.restype = ctypes.c_void_p
    address: int | None = _libc.mmap(None, ctypes.c_size_t(size), access, kind, handle, ctypes.c_long(0))
    if address in (None, ctypes.c_void_p(-1).value):
        raise OSError(ctypes.get_errno(), "mmap")
    assert address is not None
    return address


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


def bound_numbers(most: int) -> None:
    """Number at most so many processes and threads at a time, or some hundreds before the numbers begin anew, in the
    namespace in which this process is the first. Raises OSError."""
    release = re.match(r"(\d+)\.(\d+)", os.uname().release)
    if release is None or tuple(map(int, release.groups())) < (6, 14):
        raise OSError("the kernel must bound numbers by namespace (Linux 6.14)")  # an older one bounds the machine's
    _write("/proc/sys/kernel/pid_max", str(_RESERVED_NUMBERS + most))


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)


def mount(source: str | None, target: str, kind: str | None, flags: int, options: str | None = None) -> None:
    """Raises OSError."""
    words = [text.encode() if text is not None else None for text in (source, target, kind)]
    result = _libc.mount(*words, ctypes.c_ulong(flags), options.encode() if options else None)
    _checked(result, f"mount {target}")


def change_root(
    readable: Sequence[str], hidden: Sequence[str], added: Sequence[str], machine: str, chmods: bool = False
) -> None:
    """Leave for an empty read-only root with the directories `readable` (read-only) and three devices.

    The directories `hidden`, below the readable ones, are empty there, but for the directories `added`. `chmods`:
    whether candidates may change modes and times, so that not even those of the devices may be theirs.
    """
    base = _base([*readable, *added])
    mount(None, "/", None, _REC | _PRIVATE)
    mount("tmpfs", base, "tmpfs", _NOSUID | _NODEV, "size=1m,mode=755")
    try:
        _fill_root(base, readable, hidden, added, chmods)
        enter_root(base, machine)
    except OSError:  # what it covers is there again: without this root, directories to write in are there
        _libc.umount2(base.encode(), ctypes.c_int(_DETACH))
        raise


def enter_root(base: str, machine: str) -> None:
    """Make `base`, which has an empty directory `old`, the root, read-only; the root before is gone."""
    new, old = ctypes.c_char_p(base.encode()), ctypes.c_char_p((base + "/old").encode())
    _syscall("pivot_root", syscalls.CALLS[machine]["isolating"]["pivot_root"], new, old)
    os.chdir("/")
    _checked(_libc.umount2(b"/old", ctypes.c_int(_DETACH)), "umount /old")
    os.rmdir("/old")
    mount(None, "/", None, _REMOUNT | _BIND | _RDONLY | _NOSUID | _NODEV)


def _fill_root(
    base: str, readable: Sequence[str], hidden: Sequence[str], added: Sequence[str], chmods: bool = False
) -> None:
    """What is in the new root, which is at `base` until it is one."""
    for path in readable:
        if os.path.islink(path):
            os.makedirs(os.path.dirname(base + path), exist_ok=True)
            os.symlink(os.readlink(path), base + path)
        elif os.path.isdir(path):
            os.makedirs(base + path, exist_ok=True)
            _bind(path, base)
            for inner in hidden:
                if inner.startswith(path + "/"):
                    mount("tmpfs", base + inner, "tmpfs", _NOSUID | _NODEV, "size=4k,mode=755")
                    for point in added:
                        if point.startswith(inner + "/"):
                            _make_point(point, base)
                    mount(None, base + inner, None, _REMOUNT | _BIND | _RDONLY | _NOSUID | _NODEV)
    for path in added:
        _make_point(path, base)
        _bind(path, base)
    os.makedirs(base + "/dev")
    for name in ("null", "zero", "urandom"):
        _write(f"{base}/dev/{name}", "")
        mount(f"/dev/{name}", f"{base}/dev/{name}", None, _BIND)
        if chmods:
            mount(None, f"{base}/dev/{name}", None, _REMOUNT | _BIND | _RDONLY | _NOSUID | _NOEXEC)
    os.makedirs(base + SHARED_MEMORY)
    os.makedirs(base + scratch_point([*readable, *added]), exist_ok=True)
    os.makedirs(base + "/old")


def scratch_point(sources: Sequence[str]) -> str:
    """Where in the new root a candidate's own directory is mounted: /tmp, but where something is below it."""
    return "/scratch" if any(os.path.realpath(path).startswith("/tmp/") for path in sources) else "/tmp"


def mount_scratch(point: str, most_mb: int, most_files: int, executes: bool = False) -> None:
    """An empty file system in memory, of this mount namespace alone; `executes`: files in it can be started."""
    options = f"size={most_mb}m,nr_inodes={most_files},mode=1777"
    mount("tmpfs", point, "tmpfs", _NOSUID | _NODEV | (0 if executes else _NOEXEC), options)


def _base(sources: Sequence[str]) -> str:
    """A directory that exists and holds none of `sources`: it is covered, in this mount namespace only."""
    for base in ("/tmp", "/mnt", "/srv", "/run"):
        if os.path.isdir(base) and not any(os.path.realpath(path).startswith(base + "/") for path in sources):
            return base
    raise OSError(errno.EBUSY, "a new root needs a directory below which neither Python nor a package is")


def _make_point(path: str, base: str) -> None:
    """What `path`, a directory or a file, can be mounted on."""
    if os.path.isdir(path):
        os.makedirs(base + path, exist_ok=True)
    elif not os.path.exists(base + path):
        os.makedirs(os.path.dirname(base + path), exist_ok=True)
        _write(base + path, "")


def _bind(path: str, base: str) -> None:
    mount(path, base + path, None, _BIND | _REC)
    mount(None, base + path, None, _BIND | _REMOUNT | _RDONLY | _NOSUID | _NODEV | _REC)


def drop_capabilities(machine: str, but: int | None = None) -> None:
    """Empty the bounding, effective, permitted and inheritable sets; `but`: one that this process keeps."""
    for capability in range(64):
        try:
            _prctl("PR_CAPBSET_DROP", _CAPBSET_DROP, capability)
        except OSError as error:
            if error.errno == errno.EINVAL:  # past the last capability that this kernel knows
                break
            if error.errno != errno.EPERM:  # an ordinary user holds none and may not drop from the bounding set
                raise
    leave_capabilities(machine, but)


def leave_capabilities(machine: str, but: int | None = None) -> None:
    """The same but for the bounding set, of which a candidate has no more than its zygote."""
    version_3, kept = 0x20080522, 0 if but is None else 1 << but
    _syscall(
        "capset",
        syscalls.CALLS[machine]["isolating"]["capset"],
        struct.pack("Ii", version_3, 0),
        struct.pack("6I", kept, kept, *4 * [0]),
    )


_EXECUTE, _READ_FILE, _READ_DIR, _WRITE_FILE = 1 << 0, 1 << 2, 1 << 3, 1 << 1
# Files and directories are made, read, written, moved and removed: no links, sockets, pipes, devices, no execution.
_SCRATCH = _WRITE_FILE | _READ_FILE | _READ_DIR | 1 << 4 | 1 << 5 | 1 << 7 | 1 << 8 | 1 << 13 | 1 << 14
Rules = dict[str, int]
"""Paths, and what may be done below each."""
_TABLES = ("/etc/mime.types", "/etc/httpd/mime.types", "/etc/apache2/mime.types", "/usr/local/etc/mime.types")
"""What `mimetypes` reads where it is there: without namespaces it is, and the module takes a refusal for an error."""


def landlock_rules(readable: Sequence[str], hidden: Sequence[str]) -> Rules:
    """Read below `readable` but not below `hidden`, use three devices. The names (not the contents) of hidden files can
    still be listed."""
    roots = sorted({os.path.realpath(path) for path in [*readable, *_TABLES] if os.path.exists(path)})
    rules = {root: _READ_DIR for root in roots if os.path.isdir(root)}
    for path in [part for root in roots for part in _parts_without(root, hidden)]:
        rules[path] = _READ_FILE | _READ_DIR if os.path.isdir(path) else _READ_FILE
    return rules | {"/dev/null": _READ_FILE | _WRITE_FILE, "/dev/zero": _READ_FILE, "/dev/urandom": _READ_FILE}


def apply_landlock(rules: Rules, scratch: str = "", executes: bool = False) -> None:
    """Files: what `rules` say, anything but links and the like below the directory `scratch`, and nothing else.

    `executes`: what can be read can be started, and in `scratch` and shared memory everything can be done.

    No TCP, no abstract sockets, no signals out.
    """
    if _LANDLOCK < 1:
        raise OSError(errno.ENOSYS, "the kernel has no Landlock")
    files = (1 << 13) - 1
    for since, right in ((2, 1 << 13), (3, 1 << 14), (5, 1 << 15)):
        files |= right if since <= _LANDLOCK else 0
    # struct landlock_ruleset_attr grew with the ABI: filesystem rights, then TCP bind/connect, then scopes
    words = [files] + ([3] if _LANDLOCK >= 4 else []) + ([3] if _LANDLOCK >= 6 else [])
    attributes = struct.pack(f"{len(words)}Q", *words)
    ruleset = _syscall(
        "landlock_create_ruleset", syscalls.LANDLOCK_CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), 0
    )
    if executes:
        rules = {path: access | _EXECUTE for path, access in rules.items()} | {SHARED_MEMORY: files}
    if scratch:
        rules = rules | {scratch: files if executes else _SCRATCH & files}
    for path, access in rules.items():
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


def limit_resources(stack_mb: int, file_mb: int) -> None:
    """No core, no large files, no locked memory, no message queues, few descriptors; the rest per candidate."""
    fixed = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_FSIZE: file_mb << 20,
        resource.RLIMIT_NOFILE: 64,
        resource.RLIMIT_MEMLOCK: 0,
        resource.RLIMIT_MSGQUEUE: 0,
        resource.RLIMIT_STACK: stack_mb << 20,
    }
    for name, value in fixed.items():
        limit(name, value)
    most = resource.getrlimit(resource.RLIMIT_DATA)[1]  # that of the address space is the one that counts
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def limit(name: int, value: int) -> None:
    """Soft and hard limit become `value`, or what this process may have at most."""
    hard = resource.getrlimit(name)[1]
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(name, (value, value))


class SeccompFilter:
    """A filter, built once in the zygote and installed there or in every child."""

    INSTALL, PROBE = 1, 2
    """Operations of the system call: SECCOMP_SET_MODE_FILTER; SECCOMP_GET_ACTION_AVAIL, which changes nothing."""

    def __init__(self, machine: str, program: bytes) -> None:
        self._buffer = ctypes.create_string_buffer(program, len(program))
        # struct sock_fprog: count, padding, pointer
        self._header = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(self._buffer))
        number = ctypes.c_long(syscalls.CALLS[machine]["starting"]["seccomp"])
        self._seccomp = functools.partial(_libc.syscall, number)

    def call(self, operation: int) -> None:
        """INSTALL: from now on this process may only compute. Cannot be undone."""
        if self._seccomp(operation, 0, self._header) < 0 and operation == self.INSTALL:
            _checked(-1, "seccomp")
