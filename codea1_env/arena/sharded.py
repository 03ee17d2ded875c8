"""An arena of several processes, on this machine or on the nodes of a Ray cluster.

    with ShardedArena(8, config, sandbox="ray") as arena:
        scores = arena.play(matches)

Questions are independent. So a batch is split by question (`mistake_book.parts.part_of`); each part is read, run,
compared and paid in a process of its own, with a sandbox of its own, and the results are put in the order of the
matches. These processes share nothing and keep nothing but caches. So the scores are those of one `Arena`, to the byte,
whatever their number and whichever are lost. The Mistake Book stays with the caller, who sends each question's tests
along and records what came of them in order: that takes milliseconds a round, and a lost process takes no memory with
it. A large book is divided by the same hash, on disk and in what is read of it (`MistakeBook`).

Does not make one question faster, and does not divide the book's memory between machines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from codea1_env.arena.arena import Arena, Game, OnFailure
from codea1_env.arena.failures import apart
from codea1_env.arena.match import Grade, Match, MatchScore
from codea1_env.checks import require, require_choice, require_whole
from codea1_env.errors import SandboxError
from codea1_env.judging.judge import EXECUTION_CACHE_MB
from codea1_env.mistake_book.book import MistakeBook
from codea1_env.mistake_book.parts import part_of
from codea1_env.problems.problem import Problem
from codea1_env.problems.tolerances import EXACT, Tolerances
from codea1_env.reading.test_case import TestCase
from codea1_env.rewards.code_a1 import RewardConfig
from codea1_env.sandbox import BACKENDS, open_sandbox
from codea1_env.sandbox.places import processes_on
from codea1_env.sandbox.processes import Unit
from codea1_env.sandbox.protocol import require_arguments

MOST_ARENAS = 1024
_SHARE = 12
"""A unit is this part of what an arena has left to give: large ones first, which cost less, and single questions last,
so that all are done at about the same time."""
_Item = TypeVar("_Item")
Graded = tuple[Problem, Sequence[str], Sequence[TestCase]]


class ShardedArena(Arena):
    """Scores as `Arena` does, in `arenas` processes. Owns them: `close` ends them."""

    def __init__(
        self,
        arenas: int = 1,
        config: RewardConfig | None = None,
        book: MistakeBook | None = None,
        *,
        sandbox: str = "local",
        workers: int = 1,
        address: str | None = None,
        tolerance: Tolerances | float = EXACT,
        execution_cache_mb: int = EXECUTION_CACHE_MB,
        on_score: Callable[[Sequence[Match], Sequence[MatchScore], RewardConfig], None] | None = None,
        on_failure: OnFailure = "unscored",
    ) -> None:
        """`arenas`: how many, 1 to 1024. `sandbox`: of each, as `open_sandbox` names it; with "ray" the arenas
        themselves are on the nodes of a cluster, and each runs its programs where it is. `workers`: of each sandbox,
        1 to 1024. `address`: as for `RaySandbox`. The others as for `Arena`; `execution_cache_mb` is each arena's.

        A lost process is replaced, and its part begins again. After three losses in a row the sandbox has failed.
        Raises ConfigurationError, and ImportError without the extra that the sandbox needs.
        """
        require_whole("arenas", arenas)
        require(arenas <= MOST_ARENAS, "arenas", f"be at most {MOST_ARENAS}", arenas)
        require_arguments(workers, ())
        require_choice("sandbox", sandbox, BACKENDS)
        nearby = "local" if sandbox == "ray" else sandbox
        shard = partial(_Shard, config, nearby, workers, tolerance, execution_cache_mb, on_failure)
        self._processes = processes_on(sandbox, arenas, shard, address, workers)
        super().__init__(
            open_sandbox(nearby),  # for what is asked about single problems; started when it is
            config,
            book,
            tolerance=tolerance,
            execution_cache_mb=execution_cache_mb,
            on_score=on_score,
            on_failure=on_failure,
        )

    @property
    def arenas(self) -> int:
        """How many processes score."""
        return self._processes.count

    def start(self) -> None:
        """Wait until every arena can score, where its start is not to be part of the first batch. Raises what `play`
        raises."""
        self._processes.ready()

    def close(self) -> None:
        super().close()
        self._processes.close()

    def _play(self, games: Sequence[Game], config: RewardConfig) -> list[MatchScore]:
        return self._split("play", config, games, [game.match.problem for game in games], _packed)

    def _graded(self, items: Sequence[Graded], config: RewardConfig) -> list[list[Grade]]:
        return self._split("grade", config, items, [problem for problem, _, _ in items], list)

    def _split(
        self,
        method: str,
        config: RewardConfig,
        items: Sequence[_Item],
        problems: Sequence[Problem],
        pack: Callable[[Sequence[_Item]], Sequence[_Item]],
    ) -> list[Any]:
        """What the arenas make of the items, in order. Raises the first error of any."""
        units, order = [], []
        for home, places in _parts([problem.problem_id for problem in problems], self.arenas):
            found = self._limits.found([problems[place] for place in places])
            packed = pack([items[place] for place in places])
            name = f"scoring {len(places)} questions, the first is {problems[places[0]].problem_id!r}"
            units.append(Unit((method, config, packed, found), home, name))
            order += places
        results: list[Any] = []
        spent: dict[int | None, dict[str, float]] = {}
        answers: list[_Answer] = self._processes.finish(units)
        for unit, answer in zip(units, answers, strict=True):
            results += answer.results
            self._limits.learn(answer.found)
            of_arena = spent.setdefault(unit.worker, {})
            for part, seconds in answer.seconds.items():
                of_arena[part] = of_arena.get(part, 0.0) + seconds
        if parts := dict.fromkeys(part for each in spent.values() for part in each):  # grading has none
            self.seconds = {part: max(each.get(part, 0.0) for each in spent.values()) for part in parts}
        return [result for _, result in sorted(zip(order, results, strict=True), key=lambda pair: pair[0])]


@dataclass(frozen=True, slots=True)
class _Answer:
    """What an arena makes of a unit."""

    results: Sequence[Any]
    seconds: Mapping[str, float]
    found: Mapping[str, float]
    """Time limits that were found out (`RunLimits.found`)."""


class _Shard:
    """One arena, in its process."""

    def __init__(
        self,
        config: RewardConfig | None,
        sandbox: str,
        workers: int,
        tolerance: Tolerances | float,
        execution_cache_mb: int,
        on_failure: OnFailure,
    ) -> None:
        self._arena = Arena(
            open_sandbox(sandbox, workers), config, tolerance=tolerance, execution_cache_mb=execution_cache_mb
        )
        self._is_apart = on_failure == "apart"

    @property
    def version(self) -> str:
        return str(self._arena.sandbox.version)

    def answer(self, method: str, config: RewardConfig, items: Sequence[Any], found: Mapping[str, float]) -> _Answer:
        """`method`: play or grade. Raises what `Arena._play` and `Arena._graded` raise."""
        arena = self._arena
        arena._limits.learn(found)
        work: Callable[[Sequence[Any]], list[Any]] = partial(
            arena._play if method == "play" else arena._graded, config=config
        )
        results: Sequence[Any | SandboxError] = apart(arena.sandbox, work, items) if self._is_apart else work(items)
        problems = [item.match.problem if method == "play" else item[0] for item in items]
        return _Answer(results, arena.seconds if method == "play" else {}, arena._limits.found(problems))

    def close(self) -> None:
        self._arena.close()


def _packed(games: Sequence[Game]) -> list[Game]:
    """With what the book has of their questions alone, once for all games of one."""
    books: dict[tuple[int, str], MistakeBook] = {}
    packed = []
    for game in games:
        key = id(game.book), game.match.problem.problem_id
        if key not in books:
            books[key] = game.book.only(key[1])
        packed.append(replace(game, book=books[key]))
    return packed


def _parts(questions: Sequence[str], arenas: int) -> Iterable[tuple[int, list[int]]]:
    """By units: the arena that each goes to, and its places of the batch. A question is in one unit."""
    places_of: dict[str, list[int]] = {}
    for place, question in enumerate(questions):
        places_of.setdefault(question, []).append(place)
    of_arena: dict[int, list[list[int]]] = {}
    for question, places in places_of.items():
        of_arena.setdefault(part_of(question, arenas), []).append(places)
    for home, rows in of_arena.items():
        start = 0
        while start < len(rows):
            size = -(-(len(rows) - start) // _SHARE)
            yield home, [place for row in rows[start : start + size] for place in row]
            start += size
