"""What Linux's /proc says of a running candidate: asleep, or waiting for a core that others have.

Does not trust it further than that: a candidate can sleep at will, and some kernels keep no account of waiting.
"""

from __future__ import annotations

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
    """How the candidate fares that is a child of the zygote, which is a child of the process `guard`.

    Asleep where the kernel does not tell: all its waiting counts as sleep then.
    """
    try:
        candidates = candidates_below(guard)
        is_asleep = bool(candidates) and all(_state(pid) in "ST" for pid in candidates)
    except (FileNotFoundError, ProcessLookupError):
        knows = not os.path.exists(f"/proc/{guard}/stat") or os.path.exists(f"/proc/{guard}/task/{guard}/children")
        return Scheduling(not knows, None)
    return Scheduling(is_asleep, _queued_ns(candidates[0]) if candidates else None)


def _children(pid: int) -> list[int]:
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(child) for child in file.read().split()]


def _state(pid: int) -> str:
    """The kernel's letter: R runs or would like to, S sleeps, T is stopped, Z has ended."""
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0]


def _queued_ns(pid: int) -> int | None:
    """How long a process has waited for a core; None where the kernel keeps no account."""
    try:
        with open(f"/proc/{pid}/schedstat") as file:
            ran, queued, _ = map(int, file.read().split())
    except (FileNotFoundError, ProcessLookupError):
        return None
    return queued if ran else None
