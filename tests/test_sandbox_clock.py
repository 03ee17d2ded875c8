"""Time is kept outside: what is charged to which call, by the kernel's account and by little that a program can say."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import NamedTuple

import pytest

from codea1_env.judging.schedule import calls_job
from codea1_env.problems.problem import Problem
from codea1_env.sandbox import CallsJob, Limits, LocalSandbox, OutcomeKind
from codea1_env.sandbox.local import _Running
from codea1_env.sandbox.protocol import Outcome
from codea1_env.sandbox.scheduling import Scheduling
from codea1_env.sandbox.tasks import Task, absorb
from codea1_env.sandbox.zygotes import CandidateRecord, Zygote, ZygoteKind

LIMITS = Limits(time_limit_s=0.3, budget_s=6)


class Look(NamedTuple):
    """What the trusted side finds when it looks at a candidate. Seconds."""

    now: float
    cpu: float
    queued: float | None = 0.0
    is_asleep: bool = False
    steps: int = 1
    began: float = 0.0


class SeenZygote:
    """Stands in for a zygote whose candidate is found as a list of looks says."""

    is_wide = False

    def __init__(self, looks: Iterable[Look]) -> None:
        self._looks = iter(looks)
        self.killed = False

    def progress(self, most: int) -> tuple[int, int]:
        self.look = next(self._looks)
        return min(self.look.steps, most), int(self.look.began * 1e9)

    def cpu_ns(self) -> int:
        return int(self.look.cpu * 1e9)

    def scheduling(self) -> Scheduling:
        queued = self.look.queued
        return Scheduling(self.look.is_asleep, None if queued is None else int(queued * 1e9))

    def kill(self) -> None:
        self.killed = True


def verdicts(*looks: Look) -> list[bool | None]:
    """What comes of every look at a job of many calls with a limit of a second for each and ten for all."""
    calls = (b"[[],[]]",) * 100
    zygote = SeenZygote(looks)
    task = Task(CallsJob("", "f", calls, Limits(1, 10)), calls, handed_over=len(calls))
    running = _Running({}, zygote, task, looked_at=0.0, check_at=1.0)  # type: ignore[arg-type]
    with LocalSandbox() as sandbox:
        found = [sandbox._check(running, look.now) for look in looks]
    assert zygote.killed == (True in found)
    return found


def test_computing_is_charged_to_the_item_that_runs() -> None:
    assert verdicts(Look(1, cpu=0.9), Look(1.2, cpu=1.1)) == [None, True]
    assert verdicts(Look(1, cpu=0.9), Look(1.2, cpu=1.1, began=0.95, steps=2)) == [None, None]


def test_waiting_for_a_core_is_charged_to_nobody() -> None:
    starved = [Look(second, cpu=second / 50, queued=second * 0.98) for second in range(1, 40)]
    assert verdicts(*starved) == [None] * len(starved)
    assert verdicts(*[look._replace(is_asleep=True) for look in starved]) == [None] * len(starved)
    # On a core when it was last accounted for, waiting for one ever since.
    pending = [Look(second, cpu=0.01, queued=0.0) for second in range(1, 40)]
    assert verdicts(*pending) == [None] * len(pending)


def test_sleeping_is_charged_to_the_item_that_sleeps() -> None:
    asleep = [Look(second, cpu=0.01, is_asleep=True) for second in (1, 2)]
    assert verdicts(*asleep) == [None, True]
    # Another item each time: none of them has slept for long, until all together have.
    others = [Look(second, cpu=0.01, is_asleep=True, steps=second) for second in range(1, 12)]
    assert verdicts(*others) == [None] * 10 + [True]


def test_a_sleeper_that_computes_a_little_is_a_sleeper_still() -> None:
    polling = [Look(second, cpu=second / 10, queued=0.01, is_asleep=True) for second in (1, 2, 3)]
    assert verdicts(*polling) == [None, None, True]
    # Awake whenever it was looked at but once.
    spinning = [Look(second, cpu=second / 10, is_asleep=second == 4) for second in (1, 2, 3, 4)]
    assert verdicts(*spinning) == [None, None, None, True]


def test_where_the_kernel_keeps_no_account_only_who_hardly_runs_has_slept() -> None:
    assert verdicts(*[Look(second, 0.01, None, True) for second in (1, 2)]) == [None, True]
    slow = [Look(second, second / 20, None, True) for second in range(1, 10)]
    assert verdicts(*slow) == [None] * len(slow)


def test_what_stops_the_trusted_side_too_is_no_sleep() -> None:
    """A suspended process group, a frozen container: one look comes an hour late."""
    stopped = [Look(1, cpu=0.5), Look(3600, cpu=0.9), Look(3600.2, cpu=0.95, is_asleep=True)]
    assert verdicts(*stopped) == [None] * 3


class DreamingZygote(SeenZygote):
    """Its candidate answers after it has done nothing but sleep, and says that it took no time."""

    def __init__(self) -> None:
        self.look = Look(0, cpu=0.0, is_asleep=True)

    def start(self, job: tuple[bytes, bytes], memory_mb: int, cpu_s: int, has: int) -> None:
        pass

    def progress(self, most: int) -> tuple[int, int]:
        return 1, 0

    def wait(self) -> tuple[int, int]:
        return 1_000_000, 0

    def records(self, most: int) -> list[CandidateRecord]:
        return [CandidateRecord("L", b"", 0), CandidateRecord("V", b"1", 0)]


@pytest.mark.parametrize("asleep_s", [0.15, 0.18, 0.39, 0.79, 0.95])
def test_at_least_half_of_a_sleep_is_charged_to_a_call_that_ends_in_time(asleep_s: float) -> None:
    job = CallsJob("", "f", (b"[[],[]]",), Limits(time_limit_s=1, budget_s=10))
    task = Task(job, job.calls)
    with LocalSandbox() as sandbox:
        running = sandbox._start({ZygoteKind(): DreamingZygote()}, task)  # type: ignore[dict-item]
        ends_at = running.looked_at + asleep_s
        while running.check_at < ends_at:
            assert sandbox._check(running, running.check_at) is None
        sandbox._finish(running, killed=False)
    (outcome,) = task.outcomes
    assert outcome.kind is OutcomeKind.VALUE
    assert asleep_s / 2 <= outcome.cpu_ns / 1e9 <= asleep_s
    assert task.asleep_s == pytest.approx(outcome.cpu_ns / 1e9)


class BusyZygote(SeenZygote):
    """Its candidate begins another short item between any two questions."""

    def __init__(self) -> None:
        self._ns = 6_000_000_000
        self.look = Look(0, 0)

    def _later(self) -> int:
        self._ns += 100_000
        return self._ns

    def progress(self, most: int) -> tuple[int, int]:
        return self._ns // 100_000, self._later()

    def cpu_ns(self) -> int:
        return self._later()

    def kill(self) -> None:
        raise AssertionError("killed")


def test_an_item_that_begins_while_the_clock_is_read_is_not_charged_for_the_others() -> None:
    job = CallsJob("", "f", (b"[[],[]]",), Limits(time_limit_s=1, budget_s=1000))
    running = _Running({}, BusyZygote(), Task(job, job.calls), 0.0, 0.0)  # type: ignore[arg-type]
    with LocalSandbox() as sandbox:
        assert [sandbox._check(running, now) for now in (1.0, 2.0, 3.0)] == [None] * 3


# The same against programs


FORGE = """
import struct, sys, time
def region_of():
    frame = sys._getframe()
    while "results" not in frame.f_locals:
        frame = frame.f_back
    return frame.f_locals["results"]._region
now = time.process_time_ns
"""


def kinds(sandbox: LocalSandbox, body: str, calls: int = 1, limits: Limits = LIMITS) -> list[OutcomeKind]:
    job = CallsJob(FORGE + body, "f", (b"[[],[]]",) * calls, limits, is_shared=True)
    (result,) = sandbox.run([job])
    return [outcome.kind for outcome in result.outcomes]


@pytest.mark.parametrize(
    "claim",
    ["struct.pack_into('<Q', region, 8, now())", "struct.pack_into('<IQ', region, 4, 1 + now() % 9, now())"],
    ids=["beginning", "beginning and count"],
)
def test_a_call_that_claims_to_have_just_begun_has_twice_its_time_limit_at_most(
    sandbox: LocalSandbox, claim: str
) -> None:
    """Of 20 time limits that the job's budget has."""
    body = f"def f():\n    region = region_of()\n    while now() < 3e9:\n        {claim}\n    return 1\n"
    assert kinds(sandbox, body) == [OutcomeKind.TIMEOUT]


def test_an_answer_that_was_read_cannot_be_taken_back() -> None:
    """Else a call could go on behind its forged answer for as long as there are other calls to answer for."""
    with LocalSandbox() as sandbox:
        assert sandbox.guarantees["seccomp"] is True
        zygote: Zygote = sandbox._workers[0][ZygoteKind()]
        sandbox.run([CallsJob("def f():\n    return 1", "f", (b"[[],[]]",) * 2, is_shared=True)])
        before = [record.payload for record in zygote.records(9)]
        assert before == [b"", b"", b"1", b"1"]
        region = os.pread(zygote._output, 1 << 10, 0)
        os.pwrite(zygote._output, region.replace(b"1", b"2"), 0)
        assert [record.payload for record in zygote.records(9)] == before


def test_calls_that_sleep_do_not_sleep_for_each_other(sandbox: LocalSandbox) -> None:
    assert kinds(sandbox, "def f():\n    time.sleep(0.15)\n    return 1\n", calls=8) == [OutcomeKind.VALUE] * 8


def test_calls_that_sleep_beyond_the_budget_are_time_outs(sandbox: LocalSandbox) -> None:
    limits = Limits(time_limit_s=0.3, budget_s=0.9)
    found = kinds(sandbox, "def f():\n    time.sleep(0.2)\n    return 1\n", calls=12, limits=limits)
    passed = found.count(OutcomeKind.VALUE)
    assert passed >= 2
    assert found == [OutcomeKind.VALUE] * passed + [OutcomeKind.TIMEOUT] * (12 - passed)
    assert passed < 12


@pytest.mark.parametrize(
    "wait",
    ["time.sleep(0.001)", "ctypes.CDLL(None).syscall(324, 1, 0, 0)", "time.sleep(0.05); spin(0.003)"],
    ids=["polling", "waiting in the kernel", "spinning between naps"],
)
def test_a_loop_of_short_waits_is_a_time_out(sandbox: LocalSandbox, wait: str) -> None:
    spin = "def spin(s):\n    end = time.monotonic() + s\n    while time.monotonic() < end:\n        pass\n"
    body = f"import ctypes\n{spin}def f():\n    while True:\n        {wait}\n"
    assert kinds(sandbox, body) == [OutcomeKind.TIMEOUT]


def test_a_job_that_has_spent_its_budget_is_not_started_again(sandbox: LocalSandbox) -> None:
    """It says after every answer that its region is full, which is no strike, and goes on until it is killed."""
    body = """
def f():
    region = region_of()
    text = b"".join(struct.pack("<IBQ", len(p), k[0], 0) + p for k, p in [(b"L", b""), (b"V", b"1"), (b"F", b"")])
    region[16 : 16 + len(text)] = text
    struct.pack_into("<IIQ", region, 0, len(text), 3, 0)
    while True:
        pass
"""
    limits = Limits(time_limit_s=0.2, budget_s=0.5, strikes=1000)
    started = []
    with pytest.MonkeyPatch.context() as patch:
        start = Zygote.start
        patch.setattr(Zygote, "start", lambda *arguments: (started.append(1), start(*arguments)))
        found = kinds(sandbox, body, calls=100, limits=limits)
    assert found.count(OutcomeKind.VALUE) <= 3
    assert found[3:] == [OutcomeKind.TIMEOUT] * 97
    assert len(started) <= 4


LOADS_AGAIN = """
import sys, time
frame = sys._getframe()
while "results" not in frame.f_locals:
    frame = frame.f_back
results = frame.f_locals["results"]
began = [time.process_time()]
def solve(x):
    start = time.process_time()
    while time.process_time() < start + 3 * {limit}:
        if time.process_time() > began[0] + 0.8 * {limit}:
            began[0] = time.process_time()
            results.write(ord("L"))
    results._began = time.process_time_ns()
    return x
"""


def test_records_of_loading_give_no_call_more_time(sandbox: LocalSandbox) -> None:
    source = LOADS_AGAIN.format(limit=LIMITS.time_limit_s)
    calls = tuple(b"[[%d],[]]" % number for number in range(4))
    (result,) = sandbox.run([CallsJob(source, "solve", calls, LIMITS)])
    assert [outcome.kind for outcome in result.outcomes] == [OutcomeKind.TIMEOUT] * 4


@pytest.mark.parametrize("cpu_s", [0.5, 0.7])
def test_what_the_kernel_counted_is_late_whatever_is_claimed(cpu_s: float) -> None:
    """A process loads and answers: it may take its limit of 0.3 s twice."""
    calls = (b"[[],[]]",)
    task = Task(CallsJob("", "f", calls, LIMITS), calls, handed_over=1)
    absorb(
        task,
        [CandidateRecord("L", b"", 0), CandidateRecord("V", b"1", 0)],
        round(cpu_s * 1e9),
        Outcome(OutcomeKind.CRASH),
    )
    assert (task.outcomes[0].kind is OutcomeKind.TIMEOUT) == (cpu_s > 2 * LIMITS.time_limit_s)


LEAVES_A_CIRCLE = """
import weakref
class Node:
    pass
left = []
def solve(x):
    if left:
        return left[0]() is None
    circles = [[] for _ in range(2000)]
    for circle in circles:
        circle.append(circle)
    node = Node()
    node.me = node
    left.append(weakref.ref(node))
"""


def test_what_a_call_leaves_is_collected_in_its_own_time(sandbox: LocalSandbox) -> None:
    """The second call makes nothing that the collector would run for by itself."""
    (result,) = sandbox.run([CallsJob(LEAVES_A_CIRCLE, "solve", (b"[[0],[]]", b"[[1],[]]"), is_shared=True)])
    assert [outcome.value for outcome in result.outcomes] == [b"null", b"true"]


@pytest.mark.parametrize("is_shared", [False, True])
def test_a_nan_has_one_place_in_a_set_whatever_was_before(sandbox: LocalSandbox, is_shared: bool) -> None:
    """As long as it is not asked with another hash seed, where some of its places are others."""
    source = "{}def solve(xs):\n    return list(set(xs))\n"
    calls = [b'[[[{"f":"nan"},%s]],[]]' % b",".join(b"%d" % n for n in range(0, most, 3)) for most in range(9, 90)]
    other = b'[[[0.5,{"f":"nan"}]],[]]'

    def places(text: str, asked: list[bytes], seed: int = 0) -> list[bytes]:
        job = CallsJob(source.format(text), "solve", tuple(asked), hash_seed=seed, is_shared=is_shared)
        return [outcome.value for outcome in sandbox.run([job])[0].outcomes]

    found = places("", calls)
    assert places("", [other, *calls])[1:] == found
    assert places("import statistics\nx = [[]] * 99\n", calls[::-1])[::-1] == found
    assert places("", calls, seed=1) != found


@pytest.mark.parametrize(
    ("body", "call"),
    [("xs = {*range(0, 99, 3)} | {xs[0] - xs[0]}", b'[[[{"f":"inf"}%s]],[]]'),
     ("xs.add(max(xs) - max(xs))", b'[[{"s":[{"f":"inf"}%s]}],[]]'),
     ("pass", b'[[{"s":[{"c":[{"f":"nan"},0]}%s]}],[]]')],
)  # fmt: skip
def test_a_nan_that_is_made_has_the_place_that_it_has_alone(sandbox: LocalSandbox, body: str, call: bytes) -> None:
    source = f"def solve(xs):\n    {body}\n    return [n == n for n in xs].index(False)\n"
    lengths = (*range(0, 84, 7), *range(3, 9))
    calls = tuple(call % b"".join(b",%d" % (number * 2) for number in range(length)) for length in lengths)
    problem = Problem("p", "q", "solve")
    together = sandbox.run([calls_job(problem, source, calls)])[0]
    alone = [sandbox.run([calls_job(problem, source, (call,))])[0].outcomes[0].value for call in calls]
    assert b"" not in alone
    assert [outcome.value for outcome in together.outcomes] == alone


def test_as_many_nans_as_are_given_are_different_ones(sandbox: LocalSandbox) -> None:
    call = b"[[[%s]],[]]" % b",".join([b'{"f":"nan"}'] * 1500)
    (result,) = sandbox.run([CallsJob("def solve(xs):\n    return len(set(xs))\n", "solve", (call,))])
    assert result.outcomes[0].value == b"1500"


def test_a_program_that_runs_alone_keeps_its_collector(sandbox: LocalSandbox) -> None:
    source = """
import gc, weakref
class Node: pass
def made():
    node = Node()
    node.me = node
    return weakref.ref(node)
left = made()
def solve(x):
    gc.collect()
    return left() is None
"""
    (result,) = sandbox.run([CallsJob(source, "solve", (b"[[1],[]]",))])
    assert result.outcomes[0].value == b"true"
