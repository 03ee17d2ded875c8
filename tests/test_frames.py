"""Frames between a sandbox and the driver in a container: what goes in comes out, and nothing hostile gets through."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, strategies as st

from codea1_env.sandbox import (
    CallsJob,
    ExpressionsJob,
    Job,
    JobResult,
    Limits,
    Outcome,
    OutcomeKind,
)
from codea1_env.sandbox.frames import (
    HEADER,
    JOB,
    RESULT,
    Broken,
    largest_result,
    pack_job,
    pack_result,
    read_job,
    read_result,
)

TEXTS = st.text(st.characters(codec=None), max_size=20)  # lone surrogates too
LIMITS = st.builds(Limits, time_limit_s=st.floats(0.1, 9), memory_mb=st.integers(64, 999), strikes=st.integers(1, 5))
JOBS = st.one_of(
    st.builds(
        CallsJob, TEXTS, TEXTS, st.lists(st.binary(max_size=20), max_size=4).map(tuple), LIMITS, st.integers(0, 9)
    ),
    st.builds(ExpressionsJob, st.lists(TEXTS, max_size=4).map(tuple), LIMITS),
)
ERRORS = st.text(st.characters(max_codepoint=127) | st.just("\ufffd"), max_size=64)
TIMES = st.integers(0, (1 << 63) - 1)
OUTCOMES = st.one_of(
    st.builds(Outcome, st.just(OutcomeKind.VALUE), st.binary(max_size=64), st.just(""), st.booleans(), TIMES),
    st.builds(Outcome, st.just(OutcomeKind.ERROR), st.just(b""), ERRORS, st.booleans(), TIMES),
    st.sampled_from([Outcome(kind) for kind in (OutcomeKind.TIMEOUT, OutcomeKind.CRASH, OutcomeKind.MEMORY)]),
)
THREE_CALLS = CallsJob("", "f", (b"[[],[]]",) * 3)


def parted(frame: bytes, of: bytes) -> tuple[bytes, bytes]:
    kind, head, body = HEADER.unpack_from(frame)
    content = frame[HEADER.size :]
    assert (kind, len(content)) == (of, head + body)
    return content[:head], content[head:]


@given(JOBS)
def test_a_job_arrives_as_it_was_sent(job: Job) -> None:
    assert read_job(*parted(pack_job(job), JOB)) == job


@given(JOBS, st.data())
def test_a_result_arrives_as_it_was_sent_within_its_bounds(job: Job, data: st.DataObject) -> None:
    count = len(job.items)
    loaded = JobResult(tuple(data.draw(st.lists(OUTCOMES, min_size=count, max_size=count))))
    for result in (loaded, JobResult((), data.draw(OUTCOMES))):
        head, body = parted(pack_result(result), RESULT)
        most_head, most_body = largest_result(job)
        assert (len(head) <= most_head, len(body) <= most_body) == (True, True)
        arrived = read_result(head, body, job)
        assert arrived == result
        assert [outcome.cpu_ns for outcome in arrived.outcomes] == [outcome.cpu_ns for outcome in result.outcomes]


@given(st.binary(max_size=200), st.binary(max_size=50))
def test_noise_is_a_frame_error_and_nothing_else(head: bytes, body: bytes) -> None:
    with pytest.raises(Broken):
        read_result(head, body, THREE_CALLS)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["value", "error", "crash", ""]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=20,
)


@given(JSON, st.binary(max_size=9))
def test_any_json_is_a_sound_result_or_a_frame_error(head: object, body: bytes) -> None:
    try:
        result = read_result(json.dumps(head).encode(), body, THREE_CALLS)
    except Broken:
        return
    assert len(result.outcomes) == (3 if result.loaded else 0)
    assert (result.load_failure is None) == result.loaded


@pytest.mark.parametrize(
    ("head", "body"),
    [
        ('[true,[["value",1,"",true,0],["value",1,"",true,0]]]', b"12"),
        ('[true,[["value",1,"",true,0],["value",1,"",true,0],["value",2,"",true,0]]]', b"123"),
        ('[true,[["value",-1,"",true,0],["value",2,"",true,0],["value",1,"",true,0]]]', b"12"),
        ('[true,[["value",true,"",true,0],["value",1,"",true,0],["value",1,"",true,0]]]', b"123"),
        ('[true,[["value",1.0,"",true,0],["value",1,"",true,0],["value",1,"",true,0]]]', b"123"),
        ('[true,[["pass",1,"",true,0],["value",1,"",true,0],["value",1,"",true,0]]]', b"123"),
        ('[true,[["crash",1,"",true,0],["value",1,"",true,0],["value",1,"",true,0]]]', b"123"),
        ('[1,[["value",1,"",true,0],["value",1,"",true,0],["value",1,"",true,0]]]', b"123"),
        ('[false,[["value",1,"",true,0],["value",1,"",true,0],["value",1,"",true,0]]]', b"123"),
        ('[false,[["error",0,"' + "E" * 65 + '",true,0]]]', b""),
        ('[false,[["error",0,"\\u00e9",true,0]]]', b""),
        ('[false,[["value",2000000,"",true,0]]]', b"1" * 2_000_000),
        ('[false,[["crash",0,""]]]', b""),
        ('[false,[["crash",0,"",1,0]]]', b""),
        ('[false,[["crash",0,"",true,-1]]]', b""),
        ('[false,[["crash",0,"",true,1.5]]]', b""),
        ('[false,[["crash",0,"",true,9223372036854775808]]]', b""),
        ("[" * 100_000, b""),
        ("9" * 100_000, b""),
        ('[true,[["value",' + "9" * 5000 + ',"",true,0]]]', b""),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else len(value),
)
def test_a_result_that_does_not_add_up_is_refused(head: str, body: bytes) -> None:
    with pytest.raises(Broken):
        read_result(head.encode(), body, THREE_CALLS)
