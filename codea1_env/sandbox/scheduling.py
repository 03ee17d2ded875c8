"""What Linux's /proc says of a running candidate and its processes: asleep, or waiting for a core that others have.

Does not trust it further than that: a candidate can sleep at will, and some kernels keep no account of waiting.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Scheduling:
    """What the kernel says of a running candidate."""

    is_asleep: bool
    """It sleeps or is stopped at this moment, rather than wants a core."""
    queued_ns: int | None
    """How long it wanted a core and got none, since it began, but for a wait that has not ended yet; None: unknown."""


def candidates_below(guard: int) -> list[int]:
    """The candidate that is a child of the zygote, which is a child of the process `guard`, if one runs.

    Raises FileNotFoundError or ProcessLookupError where the guard has ended or the kernel does not tell.
    """
    return [pid for zygote in _children(guard) for pid in _children(zygote)]


def scheduling_below(guard: int) -> Scheduling:
    """How the candidate fares that is a child of the zygote, which is a child of the process `guard`, with all that it
    started.

    Asleep where the kernel does not tell: all its waiting counts as sleep then.
    """
    try:
        processes = [pid for candidate in candidates_below(guard) for pid in with_descendants(candidate)]
        states = [stat_of(f"{pid}/task/{task}")[0] for pid in processes for task in _tasks(pid)]
        is_asleep = bool(states) and all(state in "STZX" for state in states)
    except (FileNotFoundError, ProcessLookupError):
        knows = not os.path.exists(f"/proc/{guard}/stat") or os.path.exists(f"/proc/{guard}/task/{guard}/children")
        return Scheduling(not knows, None)
    queued_ns = [_queued_ns(pid) for pid in processes]
    known_ns = [each for each in queued_ns if each is not None]
    return Scheduling(is_asleep, sum(known_ns) if known_ns and len(known_ns) == len(queued_ns) else None)


def with_descendants(pid: int) -> list[int]:
    """A process and all that it started and that they started, as far as they have not ended."""
    found = [pid]
    for each in found:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            found += [child for task in _tasks(each) for child in _children(each, task)]
    return found


def waited_for_ns(pid: int) -> int:
    """CPU time of those that a process started and that have ended, in steps of a hundredth of a second; 0 where it has
    ended itself."""
    try:
        ticks = sum(map(int, stat_of(str(pid))[13:15]))
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return ticks * 1_000_000_000 // os.sysconf("SC_CLK_TCK")


def _children(pid: int, task: object = None) -> list[int]:
    with open(f"/proc/{pid}/task/{task or pid}/children") as file:
        return [int(child) for child in file.read().split()]


def threads_of(pid: int) -> int:
    """How many it has; 0 where it has ended or nothing tells."""
    try:
        return len(_tasks(pid))
    except (FileNotFoundError, ProcessLookupError):
        return 0


def _tasks(pid: int) -> list[str]:
    """The numbers of its threads."""
    return os.listdir(f"/proc/{pid}/task")


def stat_of(process: str) -> list[str]:
    """What the kernel says of a process, or of a thread (`PID/task/TID`), behind its name. First a letter: R runs or
    would like to, S sleeps, T is stopped, Z has ended."""
    with open(f"/proc/{process}/stat") as file:
        return file.read().rpartition(")")[2].split()


def _queued_ns(pid: int) -> int | None:
    """How long the threads of a process have waited for a core, but for those that have ended; None where the kernel
    keeps no account."""
    total = 0
    try:
        for task in _tasks(pid):
            with open(f"/proc/{pid}/task/{task}/schedstat") as file:
                ran, queued, _ = map(int, file.read().split())
            if not ran:
                return None
            total += queued
    except (FileNotFoundError, ProcessLookupError):
        return None
    return total
