"""`codea1 doctor`: the guarantees of each sandbox backend on this machine, active or not and why, and a self-test.

Asks the sandbox itself what it has put in force and then attacks it. Does not prove safety: a layer that is active has
no known hole that this program checks for, and nothing here looks at bugs of the kernel or at side channels.
"""

from __future__ import annotations

import dataclasses
import json
import os
import platform
import textwrap
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from codea1_env.errors import ConfigurationError, SandboxError
from codea1_env.sandbox import BACKENDS, LocalSandbox, open_sandbox
from codea1_env.sandbox.inside.syscalls import landlock_abi
from codea1_env.sandbox.self_test import AttackResult, run_attacks
from codea1_env.sandbox.worlds import PACKAGES, version_of

DEFAULT_BACKEND = "local"
_SCHEMA = 1
_COLUMNS = 118
"""Where nobody says how wide a terminal is."""
_TOLD_FROM = 34
_NARROW = 80

_Required = Literal["yes", "no", "this or landlock", "this or root"]
_GIVES: dict[str, tuple[_Required, str]] = {
    "namespaces": (
        "no",
        "own user, PID, mount, network, IPC and UTS namespaces: processes outside cannot be named, there is no "
        "network, and all processes inside end with the sandbox",
    ),
    "root": (
        "this or landlock",
        "an empty read-only root: only the standard library, the system's shared libraries and three devices exist; "
        "directories of installed packages are empty",
    ),
    "capabilities": ("no", "no capability is left, so root inside has no privilege"),
    "no_new_privileges": ("yes", "a set-uid program gains nothing; Landlock and seccomp need this"),
    "landlock": ("this or root", ""),
    "rlimits": (
        "yes",
        "files do not grow, except to 16 MiB in a program's own directory and on its output; no core dump, no locked "
        "memory, no message queue, 64 descriptors, 64 MiB of stack; each job has limits of memory and CPU seconds as "
        "well",
    ),
    "hidden_memory": ("no", "processes of the same user, except root, cannot trace the sandbox or read its memory"),
    "seccomp": (
        "yes",
        "an allow-list of system calls, enough to compute, read files and tell the time: no new process, no signal, "
        "no socket, no change of a file, no tracing. Programs whose text uses threads or files may use their own",
    ),
    "scratch": (
        "no",
        "programs whose text uses files have their own directory of 16 MiB, also for tempfile: empty when a process "
        "starts, gone when it ends",
    ),
    "processes": (
        "no",
        "programs with test scripts (unsealed) may start 128 processes, which end with the program; before Linux 6.14 "
        "the kernel does not count those of root",
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Guarantee:
    """One layer of one backend."""

    name: str
    active: bool
    why: str
    """Why it is not active; "" where it is."""
    required: _Required
    """Whether the backend refuses to run without it."""
    gives: str
    """What it gives where it is active."""


@dataclass(frozen=True, slots=True)
class BackendReport:
    """What is known of one backend here."""

    name: str
    unavailable: str
    """Why it cannot be used here; "" where it can."""
    refusal: str
    """Why it refuses to run programs; "" where it does not."""
    guarantees: tuple[Guarantee, ...]
    attacks: tuple[AttackResult, ...]
    """Empty where it refuses or is not available."""

    @property
    def safe(self) -> bool:
        """It is available, does not refuse, and no attack succeeded."""
        return bool(self.attacks) and not self.refusal and not any(attack.succeeded for attack in self.attacks)


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that `codea1 doctor` prints."""

    python: str
    machine: str
    kernel: str
    uid: int
    landlock_abi: int
    """The kernel's, 0 where it has none."""
    packages: Mapping[str, str]
    """Versions of the packages that programs may import here: "none" for one that is not installed."""
    backends: tuple[BackendReport, ...]

    @property
    def deciding(self) -> tuple[BackendReport, ...]:
        """The default backend; if it was not looked at, all that were."""
        return tuple(each for each in self.backends if each.name == DEFAULT_BACKEND) or self.backends

    @property
    def safe(self) -> bool:
        """The deciding backends are."""
        return bool(self.backends) and all(backend.safe for backend in self.deciding)


def examine(backends: Iterable[str] = BACKENDS, without: Collection[str] = ()) -> Report:
    """Look at `backends`. `without` names layers of the local one to switch off: what would be said without them."""
    abi = landlock_abi()
    reports = [_examine(name, abi, without) for name in backends]
    system = platform.uname()
    packages = {name: version_of(name) for name in PACKAGES}
    return Report(platform.python_version(), system.machine, system.release, os.getuid(), abi, packages, tuple(reports))


def landlock_gives(abi: int) -> str:
    """What Landlock restricts at this version of its interface."""
    read = "only the standard library, the shared libraries and three devices can be read; "
    rights = ((0, "file is made, written, moved or removed"), (3, "truncate(2)"), (4, "TCP bind and connect"),
              (5, "ioctl on devices"), (6, "abstract Unix sockets and signals to processes outside"))  # fmt: skip
    gives = "; ".join(f"no {what}" for since, what in rights if abi >= since)
    missing = ", ".join(what for since, what in rights if abi < since)
    return f"ABI {abi}: {read}{gives}" + (f" (not restricted before a later ABI: {missing})" if missing else "")


def _examine(name: str, abi: int, without: Collection[str]) -> BackendReport:
    """`without`: of the local one, of which is told what it has also where it refuses to run."""
    is_local = name == "local"
    guarantees: tuple[Guarantee, ...] = ()
    try:
        if is_local:
            with LocalSandbox(waive=("seccomp", "filesystem"), without=without) as probe:
                guarantees = _guarantees(probe.guarantees, abi)
        sandbox = LocalSandbox(without=without) if is_local else open_sandbox(name)
    except (ImportError, ConfigurationError, SandboxError) as error:
        return BackendReport(name, str(error), "", (), ())
    try:
        found = guarantees or _guarantees(sandbox.guarantees, abi)
        return BackendReport(name, "", "", found, tuple(run_attacks(sandbox)))
    except SandboxError as error:
        return BackendReport(name, "", str(error), guarantees, ())
    finally:
        sandbox.close()


def _guarantees(layers: Mapping[str, bool | str], abi: int) -> tuple[Guarantee, ...]:
    found = []
    for name, (required, gives) in _GIVES.items():
        is_active = layers.get(name) is True
        why = "" if is_active else str(layers.get(name, "not reported by this backend"))
        found.append(Guarantee(name, is_active, why, required, gives or landlock_gives(abi)))
    return tuple(found)


def as_json(report: Report) -> str:
    backends = [dataclasses.asdict(backend) | {"safe": backend.safe} for backend in report.backends]
    head = {"schema": _SCHEMA, "kind": "doctor", "default": DEFAULT_BACKEND, "safe": report.safe}
    return json.dumps(head | dataclasses.asdict(report) | {"backends": backends}, indent=2)


def as_text(report: Report, columns: int | None = None) -> str:
    """The report as tables that fit `columns`; in fewer than 80 each explanation stands below its name."""
    columns = _COLUMNS if columns is None else columns
    there = ", ".join(f"{name} {version}" for name, version in report.packages.items() if version != "none")
    missing = ", ".join(name for name, version in report.packages.items() if version == "none")
    usable = "the standard library, threads, files in its own directory, and the packages"
    head = (
        f"Python {report.python}, {report.machine}, Linux {report.kernel}, user {report.uid}",
        f"a program may use {usable} {there or 'none'}",
        f"not installed: {missing} (the extra `worlds` installs them)" if missing else "",
    )
    lines = [line for told in head for line in _wrapped(told, columns)]
    for backend in report.backends:
        lines += ["", *(line for row in _backend_rows(backend) for line in _row(*row, columns))]
    names = " and ".join(backend.name for backend in report.deciding)
    named = f"the default backend ({names})" if names == DEFAULT_BACKEND else f"the backend {names}"
    last = f"{named} is {'safe' if report.safe else 'NOT SAFE'} on this machine"
    return "\n".join([*lines, "", *_wrapped(last, columns)])


def _backend_rows(backend: BackendReport) -> list[tuple[str, str, str]]:
    """(name, answer, explanation)."""
    if backend.unavailable:
        return [(f"{backend.name}: not available", "", backend.unavailable)]
    rows = [(f"{backend.name}: {'safe' if backend.safe else 'NOT SAFE'}", "", "")]
    if backend.refusal:
        rows.append(("  refuses to run", "", backend.refusal))
    rows.append(("  guarantee", "active", "what it gives, or why it is missing"))
    for guarantee in backend.guarantees:
        told = guarantee.gives if guarantee.active else f"{guarantee.why} (required: {guarantee.required})"
        rows.append((f"  {guarantee.name}", "yes" if guarantee.active else "NO", told))
    rows.append(("  attack", "held", "what it tried: what happened"))
    if not backend.attacks:
        rows.append(("  none", "", "not tried: the backend does not run"))
    for attack in backend.attacks:
        rows.append((f"  {attack.name}", "NO" if attack.succeeded else "yes", f"{attack.tries}: {attack.detail}"))
    return rows


def _row(name: str, answer: str, told: str, columns: int) -> list[str]:
    """A table's row; what does not fit goes on below in the third column, or indented if there is no room for one."""
    head = f"{name:25} {answer:7}"
    if columns < _NARROW:
        return [head.rstrip(), *_wrapped(told, columns, " " * 6)]
    first, *others = _wrapped(told, columns - _TOLD_FROM) or [""]
    return [f"{head} {first}".rstrip(), *(" " * _TOLD_FROM + other for other in others)]


def _wrapped(told: str, columns: int, indent: str = "") -> list[str]:
    return textwrap.wrap(
        told, max(columns, 20), initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False
    )
