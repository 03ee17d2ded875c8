"""CPU seconds of a process and of all that it started: other work on the machine disturbs these least."""

from __future__ import annotations

import contextlib
import resource
import time

import psutil


def below_s() -> float:
    """So far, of all processes below this one, ended ones too."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    total = ended.ru_utime + ended.ru_stime
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            total += sum(process.cpu_times()[:4])
    return total


def cpu_s() -> float:
    """The same, with this process."""
    return time.process_time() + below_s()
