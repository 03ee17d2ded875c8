"""The arena for asyncio: the verdicts of one batch, back-pressure, cancellation, and no process left."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np
import psutil
import pytest

from codea1_env import Arena, LocalSandbox, Match, MistakeBook, Problem, RewardConfig, TestCase, bundled_problems
from codea1_env.arena.asynchronous import AsyncArena, _WaitingCall
from codea1_env.errors import ConfigurationError, UnusableReference
from codea1_env.players import CoderRequest, GoldenTester, MutantCoder, TesterRequest

HANGS = "def f(x):\n    while True:\n        pass\n"
ADD = Problem("add", "f(x): x + 1", "f", "def f(x):\n    return x + 1\n", time_limit_s=0.5)


def matches() -> list[Match]:
    found = []
    for seed, problem in enumerate(bundled_problems()[:12]):
        codes = tuple(MutantCoder().respond([CoderRequest(problem)], seed=seed + place)[0][0].text for place in (0, 9))
        suite = GoldenTester().respond([TesterRequest(problem, codes[0])], seed=seed)[0][0].text
        found.append(Match(problem, codes, ((suite,), (suite, "assert True"))))
    return [*found, Match(ADD, (HANGS,), (("assert f(1) == 2",),))]


def used(work: Callable[[AsyncArena], Awaitable[Any]], **options: Any) -> Any:
    async def run() -> Any:
        async with AsyncArena(**options) as arena:
            return await work(arena)

    return asyncio.run(run())


def test_scores_are_those_of_one_batch_with_books_and_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codea1_env.arena.asynchronous.TOGETHER", 3)
    games = matches()
    book = MistakeBook()
    with LocalSandbox() as sandbox:
        batch = Arena(sandbox)
        batch.play(games)
        book = batch.book.copy()
        expected = batch.play(games, update_book=False)
        alone = Arena(sandbox).play(games, update_book=False)

    async def all_of(arena: AsyncArena) -> list[Any]:
        plain = await asyncio.gather(*(arena.score(match) for match in games))
        booked = await asyncio.gather(*(arena.score(match, book=book) for match in reversed(games)))
        return [plain, booked[::-1]]

    plain, booked = used(all_of, workers=2)
    assert plain == alone
    assert booked == expected
    assert plain != booked


def test_an_error_is_only_its_own_matches() -> None:
    right = Match(ADD, (ADD.reference_solution or "",), (("assert f(1) == 2",),))
    broken = dataclasses.replace(right, problem=dataclasses.replace(ADD, problem_id="b", reference_solution="1 / 0"))

    async def three(arena: AsyncArena) -> list[Any]:
        blocker = asyncio.create_task(arena.run(lambda _: __import__("time").sleep(0.2)))
        await asyncio.sleep(0.05)  # the three wait together
        found = await asyncio.gather(*map(arena.score, (right, broken, right)), return_exceptions=True)
        await blocker
        return found

    first, error, last = used(three)
    assert first == last
    assert first.codes[0].reward == 1.0
    assert isinstance(error, UnusableReference)
    with pytest.raises(RuntimeError, match="StopIteration"):  # which no future takes
        used(lambda arena: asyncio.wait_for(arena.run(lambda _: next(iter(()))), 60))
    with pytest.raises(ConfigurationError, match=r"match must be a codea1_env\.Match, got 5"):
        used(lambda arena: arena.score(5))


def test_a_slow_group_keeps_one_worker_and_no_other_waiting() -> None:
    slow = Match(dataclasses.replace(ADD, time_limit_s=1.0), (HANGS,), (("assert f(1) == 2",),))
    quick = Match(ADD, (ADD.reference_solution or "",), (("assert f(1) == 2",),))

    async def both(arena: AsyncArena) -> list[str]:
        order: list[str] = []

        async def told(name: str, match: Match) -> None:
            await arena.score(match)
            order.append(name)

        waiting = asyncio.create_task(told("slow", slow))
        await asyncio.sleep(0.1)
        await told("quick", quick)
        await waiting
        return order

    assert used(both, workers=2) == ["quick", "slow"]


def test_callers_beyond_the_room_wait_outside_and_all_are_answered() -> None:
    quick = Match(ADD, (ADD.reference_solution or "",), (("assert f(1) == 2",),))

    async def many(arena: AsyncArena) -> tuple[int, int]:
        most = 0

        async def one() -> None:
            nonlocal most
            score = asyncio.ensure_future(arena.score(quick))
            await asyncio.sleep(0)
            most = max(most, len(arena._asked))
            assert (await score).codes[0].reward == 1.0

        await asyncio.gather(*(one() for _ in range(30)))
        return most, len(arena._asked)

    most, left = used(many, waiting=4)
    assert most <= 4
    assert left == 0


def test_a_cancelled_call_goes_at_once_and_no_process_is_left() -> None:
    slow = Match(dataclasses.replace(ADD, time_limit_s=1.0), (HANGS,), (("assert f(1) == 2",),))
    quick = Match(ADD, (ADD.reference_solution or "",), (("assert f(1) == 2",),))
    before = {process.pid for process in psutil.Process().children(recursive=True)}

    async def cancelled(arena: AsyncArena) -> float:
        begun = asyncio.create_task(arena.score(slow))
        behind = asyncio.create_task(arena.score(quick))
        await asyncio.sleep(0.1)
        begun.cancel()
        behind.cancel()
        found = await asyncio.gather(begun, behind, return_exceptions=True)
        assert [type(each) for each in found] == [asyncio.CancelledError] * 2
        return float((await arena.score(quick)).codes[0].reward or 0)

    assert used(cancelled) == 1.0
    assert not {process.pid for process in psutil.Process().children(recursive=True)} - before


def test_a_call_that_is_cancelled_while_it_is_taken_ends_no_worker() -> None:
    quick = Match(ADD, (ADD.reference_solution or "",), (("assert f(1) == 2",),))

    class Cancelled(asyncio.Future[Any]):
        """Cancelled at the very moment when a worker looks a second time."""

        looks = 0

        def cancelled(self) -> bool:
            self.looks += 1
            return self.looks > 1

    async def taken(arena: AsyncArena) -> float:
        loop = asyncio.get_running_loop()
        for looks in (0, 1):
            gone = Cancelled(loop=loop)
            gone.looks = looks
            with arena._change:
                arena._asked.append(_WaitingCall(quick, MistakeBook(), None, loop, gone))
                arena._change.notify()
            await asyncio.sleep(0.1)
        return float((await asyncio.wait_for(arena.score(quick), 30)).codes[0].reward or 0)

    assert used(taken) == 1.0


def test_a_closed_arena_says_so_and_grades_are_as_the_arenas() -> None:
    tests = [TestCase("f(1)", "2"), TestCase("f(2)", "4")]

    async def graded(arena: AsyncArena) -> Any:
        grades = await arena.grade(ADD, [ADD.reference_solution or "", "def f(x): return 2 * x"], tests)
        await arena.close()
        with pytest.raises(ConfigurationError, match="the arena must be open"):
            await arena.grade(ADD, [], tests)
        return [grade.share for grade in grades]

    assert used(graded, config=RewardConfig(alpha=0.5)) == [0.5, 1.0]
    for wrong in (0, 1.5, 10**400):
        with pytest.raises(ConfigurationError, match=r"workers must be a whole number in \[1, 1024\], got"):
            AsyncArena(workers=wrong)
    with pytest.raises(ConfigurationError, match=r"config must be None or a codea1_env.RewardConfig, got array"):
        AsyncArena(np.array([1, 2]))
