"""The cache that is bounded by bytes: what it holds, what goes first, and that its account is honest."""

from __future__ import annotations

import tracemalloc
from collections import OrderedDict
from collections.abc import Sequence

import pytest
from hypothesis import given, strategies as st

from codea1_env.errors import ConfigurationError
from codea1_env.judging.bounded_cache import ENTRY_BYTES, BoundedCache, bytes_of
from codea1_env.judging.execution import Execution
from codea1_env.sandbox import CallsJob, Job, JobResult, Outcome, OutcomeKind
from codea1_env.sandbox.worlds import world_of

ROOM = 5 * ENTRY_BYTES
STEPS = st.lists(st.tuples(st.booleans(), st.integers(0, 9), st.integers(0, ROOM)), max_size=60)


@given(STEPS)
def test_it_holds_what_was_used_last_within_its_bytes(steps: list[tuple[bool, int, int]]) -> None:
    cache: BoundedCache[int, int] = BoundedCache(ROOM)
    model: OrderedDict[int, int] = OrderedDict()  # key to size
    for number, (is_put, key, size) in enumerate(steps):
        if is_put:
            cache.put(key, number, size)
            model.pop(key, None)
            if size + ENTRY_BYTES <= ROOM:
                model[key] = size
            while sum(model.values()) + len(model) * ENTRY_BYTES > ROOM:
                model.popitem(last=False)
        else:
            assert (cache.get(key) is not None) == (key in model)
            if key in model:
                model.move_to_end(key)
        assert cache.held_bytes == sum(model.values()) + len(model) * ENTRY_BYTES <= ROOM
        assert len(cache) == len(model)


def test_the_newest_value_of_a_key_counts_also_where_it_is_too_large_to_hold() -> None:
    cache: BoundedCache[str, int] = BoundedCache(ROOM)
    cache.put("a", 1, 0)
    cache.put("a", 2, 0)
    assert cache.get("a") == 2
    cache.put("a", 3, ROOM)
    assert cache.get("a") is None
    assert cache.held_bytes == 0


def test_without_room_it_holds_nothing() -> None:
    cache: BoundedCache[str, int] = BoundedCache(0)
    cache.put("a", 1, 0)
    assert (cache.get("a"), len(cache)) == (None, 0)


@pytest.mark.parametrize("value_bytes", [0, 100, 10_000])
def test_entries_take_no_more_memory_than_they_are_counted_with(value_bytes: int) -> None:
    cache: BoundedCache[bytes, JobResult] = BoundedCache(1 << 30)
    tracemalloc.start()
    try:
        for number in range(3000):
            key = number.to_bytes(32, "big")
            outcome = Outcome(OutcomeKind.VALUE, bytes(value_bytes), cpu_ns=10**6 + number)
            cache.put(key, JobResult((outcome,)), len(key) + value_bytes)
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert used <= cache.held_bytes


@pytest.mark.parametrize("megabytes", [-1, 1.5, "64", True, None])
def test_a_size_that_is_none_is_refused(megabytes: object) -> None:
    with pytest.raises(ConfigurationError, match=r"cache_mb must be a whole number of MiB, 0 for no cache, got"):
        bytes_of("cache_mb", megabytes)  # type: ignore[arg-type]


def test_sizes_are_in_mebibytes() -> None:
    assert (bytes_of("cache_mb", 0), bytes_of("cache_mb", 3)) == (0, 3 * 1024 * 1024)


def test_long_programs_and_calls_are_not_kept_beside_it() -> None:
    """What is remembered of texts is bounded in bytes, not by their number alone."""

    class Failing:
        version = "failing"

        def run(self, jobs: Sequence[Job]) -> list[JobResult]:
            return [JobResult((), Outcome(OutcomeKind.ERROR)) for _ in jobs]

    execution = Execution(Failing(), 0)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for number in range(64):
            world_of(f"# {number}{' ' * (1 << 18)}")
            call = f"[[{number},'{'a' * (1 << 18)}'],[]]".encode()
            execution.run([CallsJob("", "f", (call,))])
        assert tracemalloc.get_traced_memory()[0] - before < 4 << 20
    finally:
        tracemalloc.stop()
