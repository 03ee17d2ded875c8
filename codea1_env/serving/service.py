"""Judges what clients ask, within limits: who may wait, for how long, and what they are told.

What is wrong with a request is the client's (`FormatError` and its kin), too many requests are `Busy`, and whatever
goes wrong on this side is `Unavailable`: never a verdict. Requests share nothing but the sandboxes.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from codea1_env.adapters.client_bodies import readable
from codea1_env.adapters.seat_rewards import SEATS, SeatRewards, paid, read_problem
from codea1_env.arena.arena import Arena
from codea1_env.arena.asynchronous import AsyncArena
from codea1_env.arena.match import Grade, Match, MatchScore, are_texts
from codea1_env.checks import is_number, require, require_whole
from codea1_env.errors import Codea1Error, FormatError, SandboxError
from codea1_env.problems.problem import Problem
from codea1_env.records.matches import read_match, write_score
from codea1_env.rewards.code_a1 import RewardConfig
from codea1_env.rewards.duel import Verdict
from codea1_env.sandbox.protocol import CallsJob, JobResult
from codea1_env.serving.requests import Verify, read_verify, require_within
from codea1_env.serving.sandbox_fusion import read_run, refused, told

_log = logging.getLogger(__name__)
_Result = TypeVar("_Result")
MOST_ITEMS = 256
"""Requests in one batch."""


_CACHE_MB = 2
"""Of each worker's caches: clients seldom send a program twice, and memory is flat once they are full."""


class Busy(Codea1Error):
    """As many requests wait as may."""


class Unavailable(Codea1Error):
    """Infrastructure failed: there is no verdict."""


@dataclass(frozen=True, slots=True)
class ServicePlan:
    """How requests are judged."""

    config: RewardConfig = field(default_factory=RewardConfig)
    problems: Mapping[str, Problem] = field(default_factory=dict)
    """By id: those whose tests a client may ask for by name."""
    workers: int = 1
    sandbox: str = "local"
    queue: int = 1024
    """Requests that may wait or be at work at a time, >= 1."""
    most_seconds: float = 30.0
    """The longest time limit of a call that a request may ask for."""

    def __post_init__(self) -> None:
        require_whole("workers", self.workers)
        require_whole("queue", self.queue)
        granted = is_number(self.most_seconds) and 0 < self.most_seconds <= 3600
        require(granted, "most_seconds", "be in (0, 3600]", self.most_seconds)


class Service:
    """One judge for all clients."""

    def __init__(self, plan: ServicePlan) -> None:
        self.plan = plan
        self.arena = AsyncArena(
            plan.config,
            workers=plan.workers,
            sandbox=plan.sandbox,
            waiting=2 * plan.queue,
            execution_cache_mb=_CACHE_MB,
            read_cache_mb=_CACHE_MB,
        )
        self._rewards = SeatRewards(self.arena, reads=self._problem)
        self._most_items = min(MOST_ITEMS, plan.queue)  # more would find no room, however long they waited
        self.under_way = 0
        self.verdicts: dict[str, int] = dict.fromkeys(map(str, Verdict), 0)
        self.failures = 0
        """How often infrastructure failed."""

    async def score_all(self, lines: Sequence[bytes]) -> list[bytes]:
        """A line of `codea1 score` out for each line in; none is judged where one is wrong.

        Raises FormatError, Busy, Unavailable."""
        matches = await asyncio.to_thread(self._read_matches, lines)
        scores: list[MatchScore] = []
        for begin in range(0, len(matches), self._most_items):
            some = matches[begin : begin + self._most_items]
            self._require_room(len(some))
            scores += await asyncio.gather(*(self._judged(self.arena.score(match)) for match in some))
        return [write_score(score) for score in scores]

    def _read_matches(self, lines: Sequence[bytes]) -> list[Match]:
        matches = []
        for number, line in enumerate(lines, 1):
            try:
                matches.append(read_match(line))
                require_within(matches[-1].problem, self.plan.most_seconds)
            except Codea1Error as error:
                raise FormatError(f"line {number}: {error}" if len(lines) > 1 else str(error)) from None
        return matches

    async def verify(self, given: object) -> dict[str, Any]:
        """The share of tests that a program passes; `given`: see `requests.py`.

        Raises FormatError, Busy, Unavailable."""
        asked = await asyncio.to_thread(read_verify, given, self.plan.problems, self.plan.most_seconds)  # may be long
        (grade,) = await self._judged(self.arena.grade(asked.problem, [asked.response], asked.tests))
        return self._told(asked, grade)

    async def verify_all(self, items: object) -> list[dict[str, Any]]:
        """Each item's answer, or `{"error": ...}` where it is wrong itself. Raises FormatError, Busy, Unavailable."""
        is_batch = isinstance(items, list) and 0 < len(items) <= self._most_items
        got = len(items) if isinstance(items, list) else items
        require(is_batch, "items", f"be a list of 1 to {self._most_items} requests", got)
        assert isinstance(items, list)
        self._require_room(len(items))

        async def one(item: object) -> dict[str, Any]:
            try:
                return await self.verify(item)
            except (Busy, Unavailable):
                raise
            except Codea1Error as error:
                return {"error": readable(str(error))}

        return list(await asyncio.gather(*map(one, items)))

    async def run_code(self, given: object) -> dict[str, Any]:
        """SandboxFusion's answer to SandboxFusion's request (`sandbox_fusion.py`). Raises Busy, Unavailable."""
        try:
            asked = read_run(given, self.plan.most_seconds)
        except FormatError as error:
            return refused(str(error))
        (result,) = await self._judged(self._begun_within(asked.patience_s, asked.job))
        return told(result)

    async def openrlhf(self, seat: str, given: object) -> dict[str, Any]:
        """OpenRLHF's answer to OpenRLHF's request. Raises FormatError, Busy, Unavailable."""
        require(seat in SEATS, "the address", f"end in one of {', '.join(SEATS)}", seat, FormatError)
        asked = given if isinstance(given, Mapping) else {}
        columns = [asked.get(name) for name in ("query", "prompts", "labels")]
        known = [each for each in columns if are_texts(each)]
        are_even = len(known) == 3 and len({len(each) for each in known}) == 1 and len(known[0]) <= self._most_items
        must = f"be equally many texts, at most {self._most_items}"
        require(are_even, "query, prompts and labels", must, given, FormatError)
        self._require_room(len(known[0]))
        return await self._judged(paid(self._rewards, seat, *known))

    def _problem(self, given: object) -> Problem:
        problem = read_problem(given)
        require_within(problem, self.plan.most_seconds)
        return problem

    async def _begun_within(self, seconds: float, job: CallsJob) -> list[JobResult]:
        """The job's result. Raises Busy where it waits for so long that nobody will wait for its result."""
        begun = threading.Event()

        def run(arena: Arena) -> list[JobResult]:
            begun.set()
            return arena.sandbox.run([job])

        running = asyncio.ensure_future(self.arena.run(run))
        try:
            await asyncio.wait({running}, timeout=seconds)
            if not begun.is_set():
                raise Busy(f"a program must begin within {seconds:g} s, got more to do before it; try again")
            return await running
        finally:
            running.cancel()

    def _require_room(self, more: int) -> None:
        if self.under_way + more > self.plan.queue:
            raise Busy(f"at most {self.plan.queue} requests may wait, got more; try again later")

    async def _judged(self, work: Coroutine[Any, Any, _Result]) -> _Result:
        try:
            self._require_room(1)
        except Busy:
            work.close()
            raise
        self.under_way += 1
        try:
            return await work
        except (SandboxError, OSError) as error:
            self.failures += 1
            _log.error("infrastructure failed: %s", error)
            raise Unavailable("this request could not be judged, for infrastructure failed; try again") from error
        finally:
            self.under_way -= 1

    def _told(self, asked: Verify, grade: Grade) -> dict[str, Any]:
        verdicts = [None if verdict is None else str(verdict) for verdict in grade.verdicts]
        for verdict in filter(None, verdicts):
            self.verdicts[verdict] += 1
        unread = verdicts.count(None)
        left_out = dict(asked.left_out) | ({"a test that cannot be read": unread} if unread else {})
        return {
            "share": grade.share,
            "passed": grade.all_passed,
            "executes": grade.executes,
            "verdicts": verdicts,
            "left_out": left_out,
            "judge": "sealed",
        }

    async def close(self) -> None:
        """End every process, after what is at work."""
        await self.arena.close()
