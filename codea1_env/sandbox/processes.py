"""Processes that each hold one object and work off what they are given, wherever they are (`places.py`).

Every unit of work has a process that it goes to if it can, such as by a stable hash of its question: what that process
remembers of the question is used again. A free process without one of its own takes another's, so none waits for a busy
one; what a lost process had in hand goes to whoever is free, and another process takes its place, on another node where
its own is gone. So results must not depend on who worked. Does not know what the work is: see `chunks.py`,
`arena/sharded.py` and `records/score_stream.py`.
"""

from __future__ import annotations

import abc
import logging
import os
import time
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Protocol

from codea1_env.errors import SandboxError
from codea1_env.sandbox.protocol import Owned

START_TIMEOUT_S = 120.0
"""Seconds without any process at work after which they are given up."""
MAX_LOSSES = 3
"""Processes that a unit may lose before it is taken for the cause."""

_log = logging.getLogger(__name__)


class Served(Protocol):
    """What a process holds."""

    @property
    def version(self) -> str:
        """The same in all processes, or what they say would depend on who says it."""

    def answer(self, *arguments: Any) -> Any:
        """What a unit comes to. What it raises is the unit's result."""

    def close(self) -> None:
        """Before the process ends."""


@dataclass(slots=True, eq=False)
class Unit:
    """Something to do."""

    arguments: tuple[Any, ...]
    home: int
    """The process that it goes to if it can, from 0."""
    name: str
    """For errors: "scoring line 3"."""
    worker: int | None = None
    """Who was given it last."""
    is_given: bool = False
    is_done: bool = False
    result: Any = None
    """What came of it, or the exception that was raised there."""
    is_suspect: bool = False
    """It was under way in a process that was lost: from then on it has one to itself, so that blame is certain."""
    losses: int = 0
    """Processes that were lost while this was all they had."""


@dataclass(frozen=True, slots=True)
class Greeting:
    """What a process says of itself once it can work."""

    version: str
    where: str


class Lost(Exception):
    """The process has ended, or its node is gone."""


class Member(abc.ABC):
    """One process. It answers in the order in which it is asked; first of all it greets."""

    where = "this machine"

    def __init__(self) -> None:
        self.units: deque[Unit] = deque()
        """What it works on, and what it does next."""
        self.has_greeted = False

    @abc.abstractmethod
    def give(self, arguments: tuple[Any, ...]) -> None:
        """Ask it. It may have two questions at once; giving the second does not wait for the answer to the first."""

    @abc.abstractmethod
    def take(self) -> Any:
        """Its next answer, once there is one. Raises Lost."""

    @abc.abstractmethod
    def close(self) -> None:
        """Let it end, and wait for it."""

    @abc.abstractmethod
    def kill(self) -> None:
        """End it at once, and what it started with it."""


class Processes(Owned, abc.ABC):
    """`count` processes with an object each. Not thread-safe: one caller at a time."""

    def __init__(self, count: int, version: str) -> None:
        """`version`: what each greets with; empty: what the first one does."""
        super().__init__()
        self.count = count
        self._members: list[Any] = []
        self._version = version
        self._stillborn = 0  # in a row, before they greeted
        self._lonely_since = 0.0

    def start(self) -> None:
        """Begin to start the processes that are not there, or no longer fit. Raises SandboxError."""
        self.require_usable()
        for member in [each for each in self._members if each.has_greeted and not each.units and not self._fits(each)]:
            self._members.remove(member)
            member.close()
        if len(self._members) < self.count:
            self._lonely_since = time.monotonic()
            with self._starting():
                while len(self._members) < self.count:
                    self._members.append(self._started(len(self._members)))

    def ready(self) -> None:
        """Wait until every process can work. Raises what stands in its way."""
        self.start()
        while any(not member.has_greeted for member in self._members):
            self._advance()

    def work(self, units: Iterable[Unit]) -> None:
        """Give free processes what waits, and return when something has come of it: a unit done, a process lost.

        Raises SandboxError where processes keep dying or do not start, and what `make` raises there. After an error,
        and after an interrupt, what was under way is lost: the next work begins with new processes.
        """
        try:
            self.start()
            waiting = [unit for unit in units if not unit.is_given]
            has_news = False
            while not has_news:
                self._hand_out(waiting)
                has_news = self._advance()
        except BaseException:
            self.reset()
            raise

    def finish(self, units: Sequence[Unit]) -> list[Any]:
        """What comes of each. Raises as `work` does, and the first exception that a unit came to."""
        while not all(unit.is_done for unit in units):
            self.work(units)
        for unit in units:
            if isinstance(unit.result, BaseException):
                raise unit.result
        return [unit.result for unit in units]

    def reset(self) -> None:
        """End every process at once. The next work starts others."""
        for member in self._members:
            member.kill()
        self._members = []

    def close(self) -> None:
        """Let every process end. Idempotent."""
        if self._is_closed or os.getpid() != self._owner:
            return
        self._is_closed = True
        for member in self._members:
            member.close()
        self._members = []

    def _hand_out(self, waiting: list[Unit]) -> None:
        """One to whoever has none. A second one, which it begins without waiting for this process, only while enough
        wait, the last ones are for whoever is free first, and beside no suspect."""
        for has, at_least in ((0, 1), (1, 1 + len(self._members))):
            for place, member in enumerate(self._members):
                if member.has_greeted and len(member.units) == has and len(waiting) >= at_least:
                    unit = next((unit for unit in waiting if unit.home == place), waiting[0])
                    if has and (unit.is_suspect or member.units[0].is_suspect or not self._fits(member)):
                        continue
                    waiting.remove(unit)
                    unit.is_given, unit.worker = True, place
                    member.units.append(unit)
                    member.give(unit.arguments)

    def _advance(self) -> bool:
        """Take what has come within a second; whether anything has."""
        has_news = False
        awaited = [member for member in self._members if member.units or not member.has_greeted]
        for member in self._answering(awaited):
            has_news = True
            try:
                answer = member.take()
            except Lost as lost:
                self._lose(member, str(lost))
                continue
            if member.has_greeted:
                unit = member.units.popleft()
                unit.result, unit.is_done = answer, True
            else:
                self._welcome(member, answer)
        if any(member.has_greeted for member in self._members):
            self._lonely_since = time.monotonic()
        elif time.monotonic() - self._lonely_since > START_TIMEOUT_S:
            raise SandboxError(
                f"a process must be able to start within {START_TIMEOUT_S:g} s, got {self._why_lonely()}"
            )
        return has_news

    def _welcome(self, member: Any, greeting: Any) -> None:
        if isinstance(greeting, BaseException):
            raise greeting
        self._version = self._version or greeting.version
        if greeting.version != self._version:
            raise SandboxError(
                f"every process must be of {self._version}, as the others, got {greeting.version} on "
                f"{greeting.where}: install the same on every machine"
            )
        self._stillborn = 0
        member.has_greeted, member.where = True, greeting.where

    def _lose(self, member: Any, why: str) -> None:
        """Another process takes its place; what it had in hand waits again. Of two units either may have lost it: an
        answer that was on its way is lost with it."""
        units = list(member.units)
        for each in units:
            each.is_given, each.is_suspect = False, True
        again = "".join(f", {each.name} begins again" for each in units)
        _log.warning("a process on %s is lost%s: %s", member.where, again, why)
        member.kill()
        if not member.has_greeted:
            self._stillborn += 1
            if self._stillborn > MAX_LOSSES * self.count:
                raise SandboxError(f"processes must start, {self._stillborn} in a row did not: {why}")
        if len(units) == 1:
            units[0].losses += 1
            if units[0].losses > MAX_LOSSES:
                died = f"{units[0].losses} died {units[0].name}"
                raise SandboxError(f"worker processes must stay alive, {died}: {why}")
        with self._starting():
            place = self._members.index(member)
            self._members[place] = self._started(place)

    def _fits(self, member: Any) -> bool:
        """Whether it may be given more; another one takes its place where it has nothing to do and may not."""
        return True

    def _starting(self) -> Any:
        """Around the start of processes."""
        return ExitStack()

    def _why_lonely(self) -> str:
        return "none that did"

    @abc.abstractmethod
    def _started(self, place: int) -> Member:
        """The process that is to be at this place of `_members`."""

    @abc.abstractmethod
    def _answering(self, members: Sequence[Any]) -> Sequence[Any]:
        """Those of them that have an answer, or are lost; waits for the first of them, a second at most."""
