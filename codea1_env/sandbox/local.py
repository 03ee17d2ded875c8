"""The local backend: jobs on this machine, each in a process forked from an isolated zygote.

Time is measured here by the kernel's clock of the candidate's CPU time, never inside the candidate. Starvation by other
processes is not charged; sleeping is. Does not compare values and holds no expected ones.
"""

from __future__ import annotations

import math
import os
import select
import signal
import sys
import threading
import time
import weakref
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from codea1_env.errors import SandboxError, SandboxUnsafe
from codea1_env.sandbox.protocol import Job, JobResult, Outcome, OutcomeKind, Owned, require_arguments
from codea1_env.sandbox.scheduling import Scheduling
from codea1_env.sandbox.tasks import (
    Task,
    WaitingTasks,
    absorb,
    give_up,
    has,
    most_records,
    payload,
    refused,
    zygote_kind,
)  # fmt: skip
from codea1_env.sandbox.worlds import package_versions
from codea1_env.sandbox.zygotes import Zygote, ZygoteDied, ZygoteKind

MOST_ZYGOTES = 8
"""Of a worker: by hash seed, packages, and what else `ZygoteKind` has. The one that was used least recently ends."""
_MIN_CHECK_S = 0.1
"""Between two looks at a candidate, at least, and before the first one: who ends earlier is never seen asleep."""
_IDLE_SHARE = 0.02
"""Where the kernel does not tell waiting for a core from sleep: a candidate that used less than this share, slept."""
WALL_PER_BUDGET = 30.0
"""Wall seconds per CPU second of budget before a candidate is given up: beyond any plausible starvation."""
_MOST_KILLS = 2
"""Times that one of _OUTSIDE is taken for somebody else's (the kernel's, short of memory): the candidate runs again."""
_OUTSIDE = frozenset(
    (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
)
"""Signals that others send: a candidate may send none to itself."""
_MOST_LOSSES = 5
"""Sandbox processes that may be lost while they run one job before it is a crash, never a loop: fewer can be chance."""


_Zygotes = dict[ZygoteKind, Zygote]
"""Of one worker; the one that was used last is the last one."""


@dataclass(slots=True)
class _Running:
    """The candidate that runs for a worker now."""

    zygotes: _Zygotes
    zygote: Zygote
    task: Task
    looked_at: float
    check_at: float
    watched_s: float = 0.0
    """Wall time since it began, minus what this side was late: what stops both of them is not held against it."""
    steps: int = 0
    """`Zygote.progress` at the last look."""
    floor_cpu_s: float = 0.0
    """CPU time when that many were first seen: the item that runs now had begun by then, whatever it claims."""
    floor_asleep_s: float = 0.0
    asleep_s: float = 0.0
    """How long it had slept when it was last seen asleep."""


class LocalSandbox(Owned):
    """Runs jobs in up to `workers` processes at a time. A context manager; thread-safe (calls take turns)."""

    def __init__(self, workers: int = 1, *, waive: Collection[str] = (), without: Collection[str] = ()) -> None:
        """Nothing is started before the first job.

        `waive` names guarantees that this machine need not give: "seccomp" (system calls), "filesystem" (neither
        namespaces nor Landlock). Without them a missing one raises SandboxUnsafe. `without` switches layers off.
        """
        super().__init__()
        require_arguments(workers, waive)
        self._workers: list[_Zygotes] = [{} for _ in range(workers)]
        self._waive, self._without = frozenset(waive), frozenset(without)
        self._lock = threading.Lock()
        # One that nobody closes leaves nothing behind either, whether it is let go of or there when all ends.
        weakref.finalize(self, _stop_idle, self._workers, self._lock, self._owner)

    @property
    def version(self) -> str:
        """A version that changes with whatever may change an outcome."""
        python = f"{sys.version_info.major}.{sys.version_info.minor}.{sys.version_info.micro}"
        return f"local-8-python-{python}-{package_versions()}"

    @property
    def guarantees(self) -> Mapping[str, bool | str]:
        """For each layer True, or the reason why it does not hold here. Starts a sandbox process if none runs yet."""
        with self._lock:
            self.require_usable()
            plain, wide = (self._zygote(self._workers[0], ZygoteKind(is_wide=is_wide)) for is_wide in (False, True))
            return {**plain.layers, **{name: wide.layers[name] for name in ("scratch", "processes")}}

    def run(self, jobs: Sequence[Job]) -> list[JobResult]:
        """Run every job and return the outcomes in order. Raises SandboxError if the sandbox itself fails."""
        with self._lock:
            self.require_usable()
            tasks = [Task(job, job.items) for job in jobs]
            try:
                self._run(WaitingTasks(task for task in tasks if not refused(task)))
            except BaseException as error:
                _stop(self._workers)  # a candidate may still be running: no zygote is in a known state
                if isinstance(error, OSError):  # too many open files, no room for a memory file
                    raise SandboxError(f"the sandbox must be granted what it needs, got: {error}") from error
                raise
            return [JobResult(tuple(task.outcomes), task.load_failure, tuple(task.denied)) for task in tasks]

    def _run(self, waiting: WaitingTasks) -> None:
        """Work off what waits, with all workers."""
        running: dict[int, _Running] = {}
        poll = select.poll()
        free = list(self._workers)

        def finish(one: _Running, killed: bool = False) -> None:
            handle = one.zygote.fileno()
            del running[handle]
            poll.unregister(handle)
            task, before = one.task, one.task.losses + one.task.kills
            self._finish(one, killed)
            free.append(one.zygotes)
            if not task.done:  # a lost one waits longest: what befalls processes in a row is not to befall one job
                waiting.put(task, is_next=task.losses + task.kills == before)

        while waiting or running:
            while free and waiting:
                zygotes = free.pop()
                one = self._start(zygotes, waiting.take(zygotes, self._workers))
                running[one.zygote.fileno()] = one
                poll.register(one.zygote.fileno(), select.POLLIN)
            wait_s = min(one.check_at for one in running.values()) - time.monotonic()
            for handle, _ in poll.poll(max(0.0, wait_s) * 1000 + 1):
                finish(running[handle])
            now = time.monotonic()
            for one in [one for one in running.values() if one.check_at <= now]:
                verdict = self._check(one, now)
                if verdict is not None:
                    finish(one, killed=verdict)

    def _start(self, zygotes: _Zygotes, task: Task) -> _Running:
        limits = task.job.limits
        job = payload(task)
        for attempt in (1, 2):
            zygote = self._zygote(zygotes, zygote_kind(task.job))
            for name in task.job.packages:
                if name in zygote.broken:
                    raise SandboxError(f"{name} must be importable for this program, got {zygote.broken[name]}")
            try:
                # The same for every process of a job: no later one learns from it what the earlier ones used.
                zygote.start(job, limits.memory_mb, math.ceil(limits.budget_s + limits.time_limit_s) + 1, has(task.job))
                break
            except ZygoteDied:  # it had died while idle: no job's fault
                _discard(zygotes, zygote)
                if attempt == 2:
                    raise SandboxError("a sandbox process must stay alive while idle, two died in a row") from None
        now = time.monotonic()
        return _Running(zygotes, zygote, task, looked_at=now, check_at=now + _MIN_CHECK_S)

    def _check(self, one: _Running, now: float) -> bool | None:
        """Look at a candidate that takes long. True: killed for time; False: it has just ended; None: it may go on.

        It may claim that its running item has just begun, so the least that is charged to an item is the time between
        looks at which it had written no further answer. Answers seen are final.
        """
        task, limits = one.task, one.task.job.limits
        try:
            # In this order: an item that begins after the first look began before the second.
            steps, began_cpu_ns = one.zygote.progress(most_records(task))
            cpu_ns = one.zygote.cpu_ns()
            if cpu_ns is None:
                return False
            scheduling = one.zygote.scheduling()
            cpu_s = cpu_ns / 1e9
            one.watched_s += min(now, one.check_at + _MIN_CHECK_S) - one.looked_at
            one.looked_at = now
            asleep_s = _asleep_s(one.watched_s, cpu_s, scheduling)
            if steps > one.steps:
                one.steps, one.floor_cpu_s, one.floor_asleep_s = steps, cpu_s, asleep_s
            item_s = cpu_s - min(began_cpu_ns / 1e9, one.floor_cpu_s)
            spent = item_s >= limits.time_limit_s or task.spent_ns / 1e9 + cpu_s >= limits.budget_s
            if scheduling.is_asleep:
                one.asleep_s = asleep_s
                overslept = asleep_s - one.floor_asleep_s >= limits.time_limit_s
                spent = spent or overslept or task.asleep_s + asleep_s >= limits.budget_s
            given_up = one.watched_s > WALL_PER_BUDGET * limits.budget_s
            if spent or given_up or (one.zygote.is_wide and one.zygote.is_beyond_bounds()):
                one.zygote.kill()
                return True
        except ZygoteDied:
            return False  # `_finish` meets it again and replaces the zygote
        left_s = min(limits.time_limit_s - item_s, limits.budget_s - task.spent_ns / 1e9 - cpu_s)
        # Soon enough that at least half of a sleep is seen: what a candidate slept is not known once it has ended.
        soon_s = min(left_s, one.watched_s) if not one.zygote.is_wide else 0.0
        one.check_at = now + max(_MIN_CHECK_S, soon_s)
        return None

    def _finish(self, one: _Running, killed: bool) -> None:
        """The candidate has ended: read its records, charge what went wrong to the item that was running."""
        task = one.task
        task.asleep_s += one.asleep_s
        try:
            cpu_ns, ended_by = one.zygote.wait()
            records = one.zygote.records(most_records(task))
        except ZygoteDied:
            if killed:  # with its zygote, where nothing told which process it was
                records = one.zygote.records(most_records(task))
                absorb(task, records, 0, Outcome(OutcomeKind.TIMEOUT), one.asleep_s)
            _discard(one.zygotes, one.zygote)
            _make_room(one.zygotes)
            _lose(task)
            return
        if not (records or killed or ended_by):  # it could not be isolated, or pretends so
            task.spent_ns += cpu_ns
            _lose(task)
            return
        failure = Outcome(OutcomeKind.TIMEOUT if killed else OutcomeKind.CRASH)
        if ended_by in _OUTSIDE and not killed:
            if task.spent_ns + cpu_ns >= task.job.limits.budget_s * 1e9:  # by its own limit: this side was late
                failure = Outcome(OutcomeKind.TIMEOUT)
            elif task.kills < _MOST_KILLS:
                task.kills += 1
                task.spent_ns += cpu_ns  # whoever ended it, it has used that
                _make_room(one.zygotes, one.zygote)
                return
        absorb(task, records, cpu_ns, failure, one.asleep_s)

    def _zygote(self, zygotes: _Zygotes, kind: ZygoteKind) -> Zygote:
        if kind not in zygotes:
            try:
                zygote = Zygote(kind, self._without)
            except SandboxUnsafe:
                raise
            except SandboxError:  # once more: something may have killed it while it started
                zygote = Zygote(kind, self._without)
            try:
                _refuse_unsafe(zygote.layers, self._waive)
            except SandboxUnsafe:
                zygote.close()
                raise
            while len(zygotes) >= MOST_ZYGOTES:  # the one that waits longest ends
                zygotes.pop(next(iter(zygotes))).close()
        else:
            zygote = zygotes.pop(kind)
        zygotes[kind] = zygote
        return zygote

    def close(self) -> None:
        """End every process. May be called again."""
        with self._lock:
            self._is_closed = True
            if os.getpid() == self._owner:
                _stop(self._workers)


def _stop(workers: Sequence[_Zygotes]) -> None:
    """End every process."""
    for zygotes in workers:
        for zygote in zygotes.values():
            zygote.close()
        zygotes.clear()


def _stop_idle(workers: Sequence[_Zygotes], lock: threading.Lock, owner: int) -> None:
    """Likewise, where nobody is at work with them."""
    if os.getpid() == owner and lock.acquire(blocking=False):
        _stop(workers)
        lock.release()


def _discard(zygotes: _Zygotes, zygote: Zygote) -> None:
    for kind in [kind for kind, each in zygotes.items() if each is zygote]:
        del zygotes[kind]
    zygote.close()


def _lose(task: Task) -> None:
    """What befell its process is no doing of the job's, but not time and again."""
    task.losses += 1
    if task.losses >= _MOST_LOSSES and not task.done:
        give_up(task, Outcome(OutcomeKind.CRASH))


def _make_room(zygotes: _Zygotes, but: Zygote | None = None) -> None:
    """End those that wait: memory may be short, of the machine or of a container, and a job is not to fail for it."""
    for zygote in [each for each in zygotes.values() if each is not but]:
        _discard(zygotes, zygote)


def _asleep_s(watched_s: float, cpu_s: float, scheduling: Scheduling) -> float:
    """How long a candidate neither ran nor waited for a core: exactly where it is asleep now, else at most."""
    if scheduling.queued_ns is not None:
        return max(0.0, watched_s - cpu_s - scheduling.queued_ns / 1e9)
    return watched_s - cpu_s if cpu_s < _IDLE_SHARE * watched_s else 0.0


def _refuse_unsafe(layers: Mapping[str, bool | str], waive: Collection[str]) -> None:
    """Fail closed: what is missing and was not waived by name."""
    for layer in ("no_new_privileges", "rlimits", "seccomp"):
        if layers[layer] is not True and layer not in waive:
            fix = ' (waive=("seccomp",) runs without it, for trusted programs only)' if layer == "seccomp" else ""
            raise SandboxUnsafe(f"the sandbox must have {layer}, got: {layers[layer]}{fix}")
    if layers["root"] is not True and layers["landlock"] is not True and "filesystem" not in waive:
        raise SandboxUnsafe(
            "the sandbox must hide the file system by namespaces or by Landlock, got: "
            f'{layers["namespaces"]}; {layers["landlock"]} (waive=("filesystem",) runs without)'
        )
