"""Whatever comes out of a container: layers and results, or an error that replaces it. Never another, never a wait."""

from __future__ import annotations

import json
import socket
import struct
from contextlib import suppress
from typing import Any

import pytest
from edits import edited
from hypothesis import example, given, settings, strategies as st

from codea1_env.errors import SandboxUnsafe
from codea1_env.sandbox import CallsJob, JobResult, Outcome, OutcomeKind
from codea1_env.sandbox.docker.engine import Container
from codea1_env.sandbox.frames import (
    ALIVE,
    FAILED,
    HELLO,
    RESULT,
    UNSAFE,
    Broken,
    pack,
    pack_result,
    read_result,
)
from codea1_env.sandbox.processes import Greeting, Lost

pytest.importorskip("docker")

JOB = CallsJob("", "f", (b"[[],[]]",) * 2)
HOST_CONFIG = {
    "NetworkMode": "none",
    "ReadonlyRootfs": True,
    "CapDrop": ["ALL"],
    "SecurityOpt": ["no-new-privileges"],
    "Runtime": "runc",
}


class FakeEngine:
    """An engine whose container says what it is given, and ends if it is to."""

    def __init__(self, said: bytes, ends: bool = True) -> None:
        self._said, self._ends = said, ends
        self._ours, self._theirs = socket.socketpair()
        self.removed = False

    def create_host_config(self, **options: object) -> dict[str, object]:
        return options

    def create_container(self, image: str, **options: object) -> dict[str, str]:
        return {"Id": "container"}

    def attach_socket(self, container: str, params: object) -> socket.socket:
        return self._ours

    def start(self, container: str) -> None:
        self._theirs.sendall(self._said)
        if self._ends:
            self._theirs.close()

    def inspect_container(self, container: str) -> dict[str, Any]:
        return {"HostConfig": HOST_CONFIG}

    def info(self) -> dict[str, bool]:
        return {}

    def remove_container(self, container: str, **options: object) -> None:
        self.removed = True


def multiplexed(stream: int, content: bytes) -> bytes:
    return struct.pack(">BxxxI", stream, len(content)) + content


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3) | st.just("layers"), inner),
    max_leaves=8,
)
GOOD_HELLO = pack(HELLO, {"layers": {"seccomp": True}})
GOOD_RESULT = pack_result(JobResult((Outcome(OutcomeKind.VALUE, b"1"), Outcome(OutcomeKind.CRASH))))
FRAMES = st.one_of(
    st.just(GOOD_HELLO),
    st.just(GOOD_RESULT),
    st.builds(pack, st.sampled_from([HELLO, ALIVE, RESULT, FAILED, UNSAFE, b"?"]), JSON, st.binary(max_size=20)),
    st.binary(max_size=20),
)
SAID = edited(st.lists(FRAMES, max_size=3).map(b"".join), st.binary(max_size=9))
STREAMS = st.one_of(
    st.lists(st.builds(multiplexed, st.sampled_from([1, 1, 1, 2, 0, 255]), SAID), max_size=3).map(b"".join),
    st.builds(multiplexed, st.just(1), st.builds(bytes.__add__, st.just(GOOD_HELLO), SAID)),
    edited(st.just(multiplexed(1, GOOD_HELLO + GOOD_RESULT)), st.binary(max_size=9)),
)


@settings(deadline=None)
@given(STREAMS)
@example(multiplexed(1, pack(HELLO, [])))
@example(multiplexed(1, pack(HELLO, {"layers": {"seccomp": [1]}})))
@example(multiplexed(1, pack(UNSAFE, {})))
@example(multiplexed(1, struct.pack("<cII", HELLO, 2**32 - 1, 2**32 - 1)))
@example(multiplexed(1, struct.pack("<cII", HELLO, 60_000, 0) + b"[" * 60_000))
@example(multiplexed(1, struct.pack("<cII", HELLO, 4, 0) + b"\xff\xfe\x00\x80"))
@example(struct.pack(">BxxxI", 1, 2**32 - 1) + GOOD_HELLO)
def test_a_container_says_something_sound_or_is_broken(said: bytes) -> None:
    engine = FakeEngine(said)
    container = Container(engine, "image", {}, 512, None)
    container.give(([JOB],))
    answers: list[Any] = []
    with suppress(Lost, SandboxUnsafe):
        while True:
            while not container.has_news():
                pass
            answers.append(container.take())
    container.close()
    assert engine.removed
    assert len(answers) <= 2
    assert [type(answer) for answer in answers[:1]] in ([], [Greeting])
    for (result,), layers in answers[1:]:
        assert all(isinstance(value, bool | str) for value in layers.values())
        assert all(layers[f"container_{name}"] is True for name in ("network", "read_only", "capabilities"))
        assert len(result.outcomes) == (2 if result.loaded else 0)


def test_a_container_that_takes_no_input_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codea1_env.sandbox.docker.engine._SEND_TIMEOUT_S", 0.01)
    engine = FakeEngine(b"", ends=False)
    container = Container(engine, "image", {}, 512, None)
    container.give(([CallsJob("", "f", (b" " * (1 << 22),))],))
    assert container.has_news()
    with pytest.raises(Lost, match="took no input"):
        container.take()
    container.close()
    engine._theirs.close()


@given(edited(st.just(GOOD_RESULT[9:]), st.binary(max_size=9)), st.integers(0, 80))
def test_an_edited_result_is_sound_or_a_frame_error(content: bytes, head: int) -> None:
    with suppress(Broken):
        result = read_result(content[:head], content[head:], JOB)
        json.dumps([outcome.error for outcome in result.outcomes])
        assert len(result.outcomes) == (2 if result.loaded else 0)
        assert all(outcome.value in content for outcome in result.outcomes)
