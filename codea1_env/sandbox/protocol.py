"""What a sandbox is asked and what it answers. Only data crosses: no expected value, no reference, no test source.

Does not promise anything about *how* a backend isolates: see `codea1 doctor` and each backend's `guarantees`.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar, Protocol

from codea1_env.checks import is_number, require, require_whole
from codea1_env.closing import Closing
from codea1_env.errors import SandboxError
from codea1_env.sandbox.worlds import PLAIN, World

TIME_LIMIT_S, MEMORY_MB = 1.0, 1024
"""What a problem and a job have unless they say otherwise: CPU seconds of a call, MiB of address space."""
MOST_WORKERS = 1024
"""Far more than any machine has cores: a number with a digit too many must not start that many processes."""
MAX_BUDGET_S = 36_000.0
"""CPU seconds that one job may be given at most."""


MOST_TOLD = 1 << 12
"""Bytes that an exception's classes and its text may take."""
MOST_NOTES = 4
"""Different things that a job is said to have been denied, at most."""
NOTE = re.compile(r"thread|process|network|file|import \w{1,40}", re.ASCII)
"""What each is."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one untrusted process may use."""

    time_limit_s: float = TIME_LIMIT_S
    """CPU seconds for loading, and for each call; also how long each may sleep."""
    budget_s: float = 10.0
    """CPU seconds for the whole job, and seconds asleep; what is left when they are spent is a time-out."""
    memory_mb: int = MEMORY_MB
    """MiB of address space, beyond what the packages of a job take."""
    strikes: int = 3
    """Time-outs and crashes after which the rest of a job is not tried; the last one's kind is charged to it."""
    value_bytes: int = 1 << 20
    """Bytes of one encoded value; a larger one is opaque."""

    def __post_init__(self) -> None:
        for name, most in (("time_limit_s", 3600.0), ("budget_s", MAX_BUDGET_S)):
            value = getattr(self, name)
            require(is_number(value) and 0 < value <= most, name, f"be in (0, {most:g}]", value)
        require_whole("memory_mb", self.memory_mb, 64)
        require_whole("strikes", self.strikes)
        fits = type(self.value_bytes) is int and 64 <= self.value_bytes <= 1 << 22
        require(fits, "value_bytes", "be in [64, 4194304]", self.value_bytes)


@dataclass(frozen=True, slots=True)
class CallsJob:
    """Load `source`, then call `entry_point` once per element of `calls`, in order, in as many processes as it takes.

    Guarantee: unforgeable. Data goes in, data comes out; the right answer is nowhere near the process. There is none
    against a program that wants to cheat where a call is a test script (`judging/scripts.py`), which runs beside it.
    """

    source: str
    entry_point: str
    calls: tuple[bytes, ...]
    """Arguments, each the encoding (`sandbox/inside/values.py`) of `[[positional, ...], [[name, value], ...]]`."""
    limits: Limits = Limits()
    hash_seed: int = 0
    """PYTHONHASHSEED and the seed of `random` in the process. Two seeds expose order- and chance-dependence."""
    packages: tuple[str, ...] = ()
    """Of `worlds.PACKAGES`, what must be installed for the program."""
    is_shared: bool = False
    """Whether one process does all calls, whatever the program keeps: where it is trusted to keep nothing. Else they
    share one where it was seen to keep nothing (`sandbox/tasks.py`), and have one each where not."""
    epilogue: str = ""
    """Runs behind the source, in its names. Nobody's text but ours: it does not count as what the program names."""
    is_checker: bool = False
    """It compares what candidates returned with right values: no candidate is forked from the same zygote."""
    world: World = PLAIN
    """What else it may use, by its text (`worlds.world_of`)."""
    is_program: bool = False
    """Whether the entry point is made of a whole program, which has standard streams of its own."""

    @property
    def items(self) -> Sequence[bytes]:
        """What the job does one after another, each with an outcome of its own."""
        return self.calls


@dataclass(frozen=True, slots=True)
class ExpressionsJob:
    """Evaluate pure expressions (already checked against the strict grammar) to plain data, with small limits."""

    expressions: tuple[str, ...]
    limits: Limits = Limits(time_limit_s=0.5, memory_mb=512, value_bytes=1 << 16)
    hash_seed: int = 0
    packages: tuple[str, ...] = ()
    """Of PACKAGES, what the expressions name."""
    source: ClassVar[str] = ""
    is_shared: ClassVar[bool] = True
    is_checker: ClassVar[bool] = False
    is_program: ClassVar[bool] = False
    world: ClassVar[World] = PLAIN

    @property
    def items(self) -> Sequence[bytes]:
        return [json.dumps(text).encode() for text in self.expressions]


Job = CallsJob | ExpressionsJob


class OutcomeKind(StrEnum):
    VALUE = "value"
    ERROR = "error"
    TIMEOUT = "timeout"
    CRASH = "crash"
    MEMORY = "memory"

    @property
    def is_strike(self) -> bool:
        """Whether it counts against `Limits.strikes`."""
        return self in (OutcomeKind.TIMEOUT, OutcomeKind.CRASH)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one call or expression."""

    kind: OutcomeKind
    value: bytes = b""
    """The encoded value (`sandbox/inside/values.py`) where `kind` is VALUE. Where it is ERROR, of ([names of the
    exception's classes], its text), or empty. Untrusted bytes: compare, never evaluate."""
    error: str = ""
    """The exception's type name where `kind` is ERROR. Untrusted text, at most 64 ASCII characters."""
    tried: bool = True
    """False where it is charged with what ended the job: it was not run, or cut short by what others had used up."""
    cpu_ns: int = field(default=0, compare=False)
    """CPU nanoseconds that it took, or for which it was seen asleep where these are more. All that a job's process used
    is somebody's, but for starting and loading."""


@dataclass(frozen=True, slots=True)
class JobResult:
    """The result of one job."""

    outcomes: tuple[Outcome, ...] = ()
    """One per call or expression, in order; empty where it did not load."""
    load_failure: Outcome | None = None
    """Why it did not load."""
    denied: tuple[str, ...] = field(default=(), compare=False)
    """What its processes say that they were denied, the first few: "thread", "process", "network", "file" or "import
    NAME". Untrusted: a note for people, on which nothing hangs."""

    @property
    def loaded(self) -> bool:
        """The source ran to its end within its limits and defined a callable entry point."""
        return self.load_failure is None

    def each(self, count: int) -> Sequence[Outcome]:
        """The outcomes of so many calls; what kept the program from loading stands for every one."""
        return self.outcomes if self.load_failure is None else [self.load_failure] * count


class Sandbox(Protocol):
    """Runs untrusted programs. Backends: `LocalSandbox`; Docker and Ray speak the same protocol."""

    @property
    def version(self) -> str:
        """Changes whenever the same job could come to another outcome; part of cache keys."""
        ...

    def run(self, jobs: Sequence[Job]) -> list[JobResult]:
        """Results in the order of `jobs`. Raises SandboxError for infrastructure failures only."""
        ...

    def close(self) -> None:
        """Stop every process. Idempotent."""
        ...


def require_arguments(workers: int, waive: Collection[str]) -> None:
    """Raise ConfigurationError for arguments that no backend takes."""
    is_number = type(workers) is int and 1 <= workers <= MOST_WORKERS
    require(is_number, "workers", f"be a whole number in [1, {MOST_WORKERS}]", workers)
    unknown = set(waive) - {"seccomp", "filesystem"}
    require(not unknown, "waive", "name seccomp or filesystem", sorted(unknown))


class Owned(Closing):
    """What is used by the process that made it alone, until it is closed."""

    def __init__(self) -> None:
        self._owner = os.getpid()
        self._is_closed = False

    def require_usable(self) -> None:
        """Raise SandboxError where it was closed, and in another process."""
        if self._is_closed:
            raise SandboxError("the sandbox must be open, got one that was closed")
        if os.getpid() != self._owner:
            raise SandboxError("the sandbox must be used by the process that made it, got a fork; make one there")
