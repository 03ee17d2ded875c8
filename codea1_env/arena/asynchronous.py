"""Scoring while others sample: an arena for asyncio.

    async with AsyncArena(workers=2) as arena:
        scores = await asyncio.gather(*(arena.score(match) for match in matches))

Each worker is a thread with an arena and a sandbox of its own, and takes whatever waits, a few matches in a pass. So a
group is judged as soon as it is sampled, and a program that hangs keeps one worker busy and no other. Verdicts are
those of one batch: no score depends on which matches share a pass.

Does not keep a Mistake Book: give `score` one, and `book_changes` of the score says what it would write. Does not stop
a running match: a cancelled caller returns at once, and its programs end within their own limits.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self, TypeVar

from codea1_env.arena.arena import Arena
from codea1_env.arena.match import Grade, Match, MatchScore
from codea1_env.checks import require, require_whole
from codea1_env.errors import ConfigurationError, SandboxError
from codea1_env.mistake_book.book import MistakeBook
from codea1_env.problems.problem import Problem
from codea1_env.reading.test_case import TestCase
from codea1_env.rewards.code_a1 import RewardConfig
from codea1_env.sandbox import open_sandbox
from codea1_env.sandbox.protocol import require_arguments

TOGETHER = 16
"""Matches that share a pass, at most."""
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class _WaitingCall:
    """One call that waits: a match, or something to be done with an arena alone. The future belongs to `loop`."""

    match: Match | None
    book: MistakeBook
    alone: Callable[[Arena], Any] | None
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Any]

    def goes_with(self, other: _WaitingCall) -> bool:
        """Whether both may share a pass: measured matches and paid ones are scored by different rewards."""
        if self.match is None or other.match is None:
            return False
        return self.match.by_reference == other.match.by_reference

    def answer(self, result: object) -> None:
        """From any thread. Nobody may be waiting any more: the call was cancelled, or its loop is closed."""
        if isinstance(result, StopIteration):  # before Python 3.12 no future takes it: its caller would wait for ever
            result = RuntimeError(f"work with an arena must not raise StopIteration, got {result!r}")

        def set_result() -> None:
            if not self.future.done():
                if isinstance(result, BaseException):
                    self.future.set_exception(result)
                else:
                    self.future.set_result(result)

        with contextlib.suppress(RuntimeError):
            self.loop.call_soon_threadsafe(set_result)


class AsyncArena:
    """Scores matches for callers in asyncio. May be used from several event loops."""

    def __init__(
        self,
        config: RewardConfig | None = None,
        *,
        workers: int = 1,
        sandbox: str = "local",
        waiting: int = 1024,
        execution_cache_mb: int = 64,
        read_cache_mb: int = 64,
    ) -> None:
        """`workers`: arenas at work at a time, 1 to 1024. `sandbox`: what each of them opens, as `open_sandbox` names
        it. `waiting`: calls that may wait, >= 1; further calls block their callers. `execution_cache_mb`,
        `read_cache_mb`: what each worker remembers, as `Arena` says.

        Raises ConfigurationError, SandboxError.
        """
        require_arguments(workers, ())
        require_whole("waiting", waiting)
        self.config = RewardConfig() if config is None else config
        self._waiting = waiting
        self._asked: deque[_WaitingCall] = deque()
        self._change = threading.Condition()
        self._room: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = (
            weakref.WeakKeyDictionary()
        )
        self._closed = False
        self._arenas: list[Arena] = []
        try:
            for _ in range(workers):
                box = open_sandbox(sandbox, 1)
                arena = Arena(
                    box,
                    self.config,
                    execution_cache_mb=execution_cache_mb,
                    read_cache_mb=read_cache_mb,
                    on_failure="apart",
                )
                self._arenas.append(arena)
        except BaseException:
            for arena in self._arenas:
                arena.close()
            raise
        self._threads = [threading.Thread(target=self._work, args=(each,), daemon=True) for each in self._arenas]
        for thread in self._threads:
            thread.start()

    async def score(self, match: Match, *, book: MistakeBook | None = None) -> MatchScore:
        """Score one match. `book`: its tests are replayed, and it does not change.

        Raises UnusableReference and ConfigurationError as `Arena.play`, and SandboxError where infrastructure failed.
        """
        require(isinstance(match, Match), "match", "be a codea1_env.Match", match)
        booked = (book or MistakeBook()).only(match.problem.problem_id)
        score: MatchScore = await self._ask(match, booked, None)
        if any(code.executes is None for code in score.codes):
            raise SandboxError("this match must be judged to be scored, got an infrastructure failure")
        return score

    async def grade(self, problem: Problem, responses: Sequence[str], tests: Sequence[TestCase]) -> list[Grade]:
        """As `Arena.grade`. Raises SandboxError where infrastructure failed."""
        grades: list[Grade] = await self.run(lambda arena: arena.grade(problem, responses, tests))
        if any(grade.executes is None for grade in grades):
            raise SandboxError("these programs must be run to be graded, got an infrastructure failure")
        return grades

    async def run(self, work: Callable[[Arena], _Result]) -> _Result:
        """Call `work` with one of the arenas, in its thread, while nothing else uses it."""
        done: _Result = await self._ask(None, MistakeBook(), work)
        return done

    async def _ask(self, match: Match | None, book: MistakeBook, alone: Callable[[Arena], Any] | None) -> Any:
        loop = asyncio.get_running_loop()
        async with self._room.setdefault(loop, asyncio.Semaphore(self._waiting)):
            asked = _WaitingCall(match, book, alone, loop, loop.create_future())
            with self._change:
                if self._closed:
                    raise ConfigurationError("the arena must be open, got one that was closed")
                self._asked.append(asked)
                self._change.notify()
            return await asked.future

    def _work(self, arena: Arena) -> None:
        while taken := self._take():
            try:
                if taken[0].alone is not None:
                    taken[0].answer(taken[0].alone(arena))
                else:
                    self._play(arena, taken)
            except BaseException as error:
                for each in taken:
                    each.answer(error)

    def _play(self, arena: Arena, taken: Sequence[_WaitingCall]) -> None:
        matches = [each.match for each in taken if each.match is not None]
        try:
            scores = arena.play(matches, update_book=False, books=[each.book for each in taken])
        except Exception:
            if len(taken) == 1:
                raise
            for each in taken:  # an error is of one of them: each alone says whose
                try:
                    self._play(arena, [each])
                except Exception as error:
                    each.answer(error)
            return
        for each, score in zip(taken, scores, strict=True):
            each.answer(score)

    def _take(self) -> list[_WaitingCall]:
        """What is next for one worker; nothing when the arena is closed."""
        taken: list[_WaitingCall] = []
        with self._change:
            while not taken and not self._closed:
                while self._asked and len(taken) < TOGETHER and (not taken or taken[0].goes_with(self._asked[0])):
                    each = self._asked.popleft()
                    if not each.future.cancelled():  # which may happen at any moment, in another thread
                        taken.append(each)
                if not taken and not self._closed:
                    self._change.wait()
        return taken

    async def close(self) -> None:
        """End every process. Calls that still wait raise ConfigurationError."""
        await asyncio.to_thread(self.close_now)

    def close_now(self) -> None:
        """`close` for callers that are not in asyncio."""
        with self._change:
            self._closed = True
            waiting, self._asked = list(self._asked), deque()
            self._change.notify_all()
        for each in waiting:
            each.answer(ConfigurationError("the arena must stay open until it has answered, got closed before"))
        for thread in self._threads:
            thread.join()
        for arena in self._arenas:
            arena.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
