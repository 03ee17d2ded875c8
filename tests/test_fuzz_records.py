"""Whatever a candidate writes into its region: read without an exception, and worth no more than it spells."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from hypothesis import example, given, settings, strategies as st

from codea1_env.sandbox import CallsJob, Limits, Outcome, OutcomeKind
from codea1_env.sandbox.tasks import Task, absorb, payload
from codea1_env.sandbox.zygotes import REGION_BYTES, CandidateRecord, Zygote

HEADER, RECORD = struct.Struct("<IIQ"), struct.Struct("<IBQ")
LIMITS = Limits(time_limit_s=1, budget_s=10, strikes=3, value_bytes=64)
NS = st.one_of(st.integers(0, 2 * 10**9), st.sampled_from([0, 10**9, 10**10, 2**63, 2**64 - 1]))
KINDS = st.one_of(st.sampled_from(b"LXVEMFSA"), st.integers(0, 255))


class Written(NamedTuple):
    """One record as a candidate may write it."""

    kind: int
    payload: bytes
    cpu_ns: int
    claimed_size: int | None

    def encoded(self) -> bytes:
        size = len(self.payload) if self.claimed_size is None else self.claimed_size
        return RECORD.pack(size, self.kind, self.cpu_ns) + self.payload


WRITTEN = st.builds(
    Written, KINDS, st.binary(max_size=80), NS, st.none() | st.none() | st.none() | st.integers(0, 2**32 - 1)
)
REGIONS = st.one_of(
    st.binary(max_size=300),
    st.lists(WRITTEN, max_size=8).map(lambda records: b"".join(record.encoded() for record in records)),
)


@contextmanager
def zygote_with(region: bytes, used: int) -> Iterator[Zygote]:
    """The reading side of a zygote, over a memory file with these contents."""
    zygote = object.__new__(Zygote)
    zygote._output = os.memfd_create("region")
    zygote._records, zygote._read = [], 0
    try:
        write(zygote, region, used)
        yield zygote
    finally:
        os.close(zygote._output)


def write(zygote: Zygote, region: bytes, used: int) -> None:
    os.pwrite(zygote._output, HEADER.pack(used, 0, 0) + region, 0)


def as_written(records: list[CandidateRecord]) -> bytes:
    return b"".join(Written(ord(record.kind), record.payload, record.cpu_ns, None).encoded() for record in records)


@given(REGIONS, st.integers(0, 2**32 - 1) | st.none(), st.integers(0, 10))
@example(b"", 2**32 - 1, 3)
@example(RECORD.pack(2**32 - 1, 86, 0), None, 3)
def test_records_are_what_stands_there_up_to_the_first_nonsense(region: bytes, used: int | None, most: int) -> None:
    used = len(region) if used is None else used
    with zygote_with(region, used) as zygote:
        found = zygote.records(most)
        steps, _ = zygote.progress(most)
    assert steps <= len(found) <= most
    assert region[: min(used, REGION_BYTES)].startswith(as_written(found))
    assert {record.kind for record in found} <= set("LXVEMFSAPD")


@given(REGIONS, st.lists(st.integers(0, 400), max_size=5).map(sorted))
def test_looking_on_the_way_finds_the_same_records(region: bytes, looks: list[int]) -> None:
    with zygote_with(region, len(region)) as zygote:
        at_once = list(zygote.records(99))
    with zygote_with(region, 0) as zygote:
        for used in (min(look, len(region)) for look in looks):
            write(zygote, region, used)
            assert zygote.records(99) == at_once[: len(zygote.records(99))]
        write(zygote, region, len(region))
        assert zygote.records(99) == at_once


@given(REGIONS, REGIONS)
def test_what_was_read_stays_whatever_is_written_over_it(region: bytes, over: bytes) -> None:
    with zygote_with(region, len(region)) as zygote:
        before = list(zygote.records(99))
        write(zygote, over, len(over))
        assert zygote.records(99)[: len(before)] == before


FOUND = st.lists(st.builds(CandidateRecord, st.sampled_from("LXVEMFSA"), st.binary(max_size=80), NS), max_size=8)
HONEST_BEGINNING = st.just([CandidateRecord("L", b"", 0)])
ENDED = st.tuples(
    st.one_of(FOUND, st.builds(list.__add__, HONEST_BEGINNING, FOUND)),
    NS,
    st.sampled_from([OutcomeKind.TIMEOUT, OutcomeKind.CRASH]),
)


@settings(deadline=None)
@given(st.integers(0, 6), st.lists(ENDED, min_size=1, max_size=8))
def test_a_job_ends_whatever_its_processes_write_and_no_value_is_but_a_value_record(
    calls: int, processes: list[tuple[list[CandidateRecord], int, OutcomeKind]]
) -> None:
    job = CallsJob("", "f", (b"[[],[]]",) * calls, LIMITS)
    task = Task(job, job.calls)
    spelled = {record.payload for records, *_ in processes for record in records if record.kind == "V"}
    # Calls are asked together, then each alone: no process is for nothing.
    for turn in range(2 * calls + 2):
        if task.done:
            break
        records, cpu_ns, kind = processes[turn % len(processes)]
        payload(task)
        before, was_alone = list(task.outcomes), task.is_alone
        absorb(task, list(records), cpu_ns, Outcome(kind))
        is_parted = task.is_alone and not was_alone
        kept = 0 if is_parted else len(before)
        assert task.outcomes[:kept] == before[:kept]
        assert len(task.outcomes) > len(before) or task.done or is_parted, "it would go on for ever"
    assert task.done
    assert (task.load_failure is None) == task.loaded
    assert len(task.outcomes) == (calls if task.loaded else 0)
    for outcome in task.outcomes:
        if outcome.kind is OutcomeKind.VALUE:
            assert (outcome.value in spelled and len(outcome.value) <= 64) or outcome.value == b'{"o":"too large"}'
            assert outcome.error == ""
        else:
            assert outcome.value == b""
            assert len(outcome.error) <= 64
    first = processes[0][0]
    begins_anew = any(record.kind in "AP" for record in first)
    if calls and not begins_anew and (not first or first[0].kind != "L"):
        assert not task.loaded


@given(FOUND, NS)
def test_an_answer_that_claims_more_time_than_there_is_is_none(found: list[CandidateRecord], cpu_ns: int) -> None:
    job = CallsJob("", "f", (b"[[],[]]",) * 3, LIMITS)
    task = Task(job, job.calls)
    payload(task)
    absorb(task, [CandidateRecord("L", b"", 0), *found], cpu_ns, Outcome(OutcomeKind.CRASH))
    answers = [record for record in found if record.kind in "VEM"][:3]
    for answer, outcome in zip(answers, task.outcomes, strict=False):
        if answer.cpu_ns > 10**9:
            assert outcome.kind is OutcomeKind.TIMEOUT
