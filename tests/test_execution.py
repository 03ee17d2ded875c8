"""Turns that share runs and a memory: nobody can tell them from turns that are run alone, without a memory."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pytest
from hypothesis import example, given, settings, strategies as st

from codea1_env.errors import SandboxError
from codea1_env.judging.execution import Execution
from codea1_env.sandbox import CallsJob, Job, JobResult, Limits, LocalSandbox, Outcome, OutcomeKind

STATELESS = "def f(x):\n    return x\n"
STATEFUL = "n = []\ndef f(x):\n    n.append(x)\n    return x\n"
LIMITS = Limits(time_limit_s=1.0, budget_s=10.0)
WIDE = Limits(time_limit_s=1.0, budget_s=20.0, strikes=10)
"""A turn has room for every call of a suite."""
ROOM = 1 << 20
VALUE, ERROR, MEMORY, TIMEOUT, CRASH = (
    OutcomeKind.VALUE, OutcomeKind.ERROR, OutcomeKind.MEMORY, OutcomeKind.TIMEOUT, OutcomeKind.CRASH,
)  # fmt: skip


@dataclass(frozen=True)
class Call:
    """What a call does: how it ends, and the CPU seconds to its end."""

    number: int
    kind: OutcomeKind = VALUE
    cpu_s: float = 0.01

    @property
    def encoded(self) -> bytes:
        return json.dumps([self.number, self.kind, self.cpu_s]).encode()


class ClockworkSandbox:
    """A sandbox on a clock of its own: a call says itself what it does. Counts what it has spent."""

    version = "clockwork"

    def __init__(self, load_s: float = 0.0) -> None:
        self.load_s = load_s
        self.spent_s = 0.0
        self.jobs: list[CallsJob] = []

    def run(self, jobs: Sequence[Job]) -> list[JobResult]:
        return [self._run(job) for job in jobs if isinstance(job, CallsJob)]

    def _run(self, job: CallsJob) -> JobResult:
        self.jobs.append(job)
        limits = job.limits
        if self.load_s > limits.time_limit_s:
            self.spent_s += limits.time_limit_s
            return JobResult((), Outcome(TIMEOUT))
        spent_s, strikes, outcomes = self.load_s, 0, []
        for at, call in enumerate(job.calls):
            number, kind, cpu_s = json.loads(call)
            left_s = limits.budget_s - spent_s
            used_s = min(cpu_s, limits.time_limit_s, left_s)
            spent_s += used_s
            used_ns = round(used_s * 1e9)
            if cpu_s <= min(limits.time_limit_s, left_s):
                value, error = (b"%d" % number, "") if kind == VALUE else (b"", "E" if kind == ERROR else "")
                outcomes.append(Outcome(OutcomeKind(kind), value, error, cpu_ns=used_ns))
            else:
                outcomes.append(Outcome(TIMEOUT, tried=left_s >= limits.time_limit_s, cpu_ns=used_ns))
            if outcomes[-1].kind in (TIMEOUT, CRASH):
                strikes += 1
                spent_s += self.load_s
                is_spent = spent_s >= limits.budget_s
                if strikes >= limits.strikes or is_spent:
                    kind = outcomes[-1].kind if strikes >= limits.strikes else TIMEOUT
                    outcomes += [Outcome(kind, tried=False)] * (len(job.calls) - at - 1)
                    break
        self.spent_s += spent_s
        return JobResult(tuple(outcomes))

    def close(self) -> None:
        """Nothing to close."""


class FailingSandbox(ClockworkSandbox):
    """Fails from the run `fails_at` on, counted from 0."""

    def __init__(self, fails_at: int) -> None:
        super().__init__()
        self.left = fails_at

    def run(self, jobs: Sequence[Job]) -> list[JobResult]:
        self.left -= 1
        if self.left < 0:
            raise SandboxError("the machine must be up, got a power cut")
        return super().run(jobs)


def job(*calls: Call, source: str = STATELESS, limits: Limits = LIMITS) -> CallsJob:
    return CallsJob(source, "f", tuple(dict.fromkeys(call.encoded for call in calls)), limits)


def kinds(result: JobResult) -> list[OutcomeKind]:
    return [outcome.kind for outcome in result.outcomes]


def comes_to(result: JobResult) -> object:
    """All that a verdict is made of."""
    return result.loaded, result.load_failure, [(o.kind, o.value, o.error) for o in result.outcomes]


def hang(number: int) -> Call:
    return Call(number, VALUE, 1e9)


QUICK = [Call(n, kind) for n, kind in enumerate([VALUE] * 6 + [ERROR, MEMORY, CRASH, CRASH])]
HANGS = [hang(n) for n in range(10, 17)]
SLOW = [Call(n, VALUE, cpu_s) for n, cpu_s in enumerate((0.15, 0.5, 0.7, 0.9, 0.95), 20)]


def suites(calls: Sequence[Call], most: int = 6) -> st.SearchStrategy[list[list[Call]]]:
    return st.lists(st.lists(st.sampled_from(calls), max_size=8, unique=True), min_size=1, max_size=most)


# In company as alone


@settings(max_examples=150, deadline=None)
@given(suites(QUICK + HANGS), st.sampled_from([STATELESS, STATEFUL]))
@example([HANGS[:3], QUICK[:3]], STATELESS)
@example([[*HANGS[:2], QUICK[0]], [HANGS[2], QUICK[1], *HANGS[:3], QUICK[2]]], STATELESS)
def test_a_job_comes_to_the_same_in_company_as_alone(rows: list[list[Call]], source: str) -> None:
    jobs = [job(*row, source=source) for row in rows]
    together = Execution(ClockworkSandbox(), ROOM).run(jobs)
    for one, result in zip(jobs, together, strict=True):
        (alone,) = Execution(ClockworkSandbox(), 0).run([one])
        assert comes_to(result) == comes_to(alone)


@settings(max_examples=80, deadline=None)
@given(suites(QUICK[:8] + SLOW + HANGS[:2]))
def test_slow_calls_of_other_jobs_take_nothing_from_a_job_either(rows: list[list[Call]]) -> None:
    """Two hangs at most, and calls that take most of their time: only the budget ends a process."""
    jobs = [job(*row, limits=Limits(time_limit_s=1.0, budget_s=3.0)) for row in rows]
    for one, result in zip(jobs, Execution(ClockworkSandbox(), ROOM).run(jobs), strict=True):
        (alone,) = Execution(ClockworkSandbox(), 0).run([one])
        assert comes_to(result) == comes_to(alone)


@settings(deadline=None)
@given(suites(QUICK + HANGS, most=1))
def test_a_job_alone_comes_to_what_the_sandbox_says(rows: list[list[Call]]) -> None:
    (result,) = Execution(ClockworkSandbox(), ROOM).run([job(*rows[0])])
    (plain,) = ClockworkSandbox().run([job(*rows[0])])
    assert comes_to(result) == comes_to(plain)


def test_three_hangs_of_one_job_cost_another_nothing() -> None:
    first, second = Execution(ClockworkSandbox(), 0).run([job(*HANGS[:4]), job(*QUICK[:3], HANGS[0], QUICK[3])])
    assert kinds(first) == [TIMEOUT] * 4
    assert kinds(second) == [VALUE] * 3 + [TIMEOUT, VALUE]


def test_a_hang_that_was_seen_is_a_strike_of_every_job_that_has_it_and_is_not_run_again() -> None:
    sandbox = ClockworkSandbox()
    results = Execution(sandbox, 0).run([job(*HANGS[:3], QUICK[n]) for n in range(8)])
    assert [kinds(result) for result in results] == [[TIMEOUT] * 4] * 8
    assert len(sandbox.jobs) == 1
    assert sandbox.spent_s == 3.0


def test_every_call_is_tried_once_with_its_full_limit_and_no_more_than_the_strikes_of_its_turns_ask() -> None:
    """Three turns, all of whose calls differ and hang: three of each are tried, for a second."""
    sandbox = ClockworkSandbox()
    Execution(sandbox, 0).run([job(*(hang(10 * n + k) for k in range(8))) for n in range(3)])
    tried = [call for one in sandbox.jobs for call in one.calls[:3]]
    assert len(set(tried)) == len(tried) == 9
    assert {one.limits.time_limit_s for one in sandbox.jobs} == {1.0}
    assert sandbox.spent_s == pytest.approx(9 * 1.0)


def test_a_program_that_has_hung_ten_times_is_asked_on_with_a_quarter_of_the_time() -> None:
    """Eight turns hang on every call. Of the other two, what answers at once counts, and what is slow does not."""
    sandbox = ClockworkSandbox()
    hanging = [job(*(hang(10 * n + k) for k in range(8)), limits=WIDE) for n in range(8)]
    late, slow = job(*QUICK[:5], hang(99), QUICK[5], limits=WIDE), job(*QUICK[:3], *SLOW[:2], limits=WIDE)
    results = Execution(sandbox, 0).run([late, slow, *hanging])
    assert kinds(results[0]) == [VALUE] * 5 + [TIMEOUT, VALUE]
    assert kinds(results[1]) == [VALUE] * 4 + [TIMEOUT]
    assert [kinds(result) for result in results[2:]] == [[TIMEOUT] * 8] * 8
    assert sandbox.spent_s == pytest.approx(10 * 1.0 + 55 * 0.25 + 0.25, abs=1.0)


def test_what_was_slow_before_is_slow_behind_ten_hangs_whether_it_is_remembered_or_not() -> None:
    batch = [job(*(hang(k) for k in range(30, 42)), SLOW[2], limits=dataclasses.replace(WIDE, strikes=20))]
    execution = Execution(ClockworkSandbox(), ROOM)
    execution.run([job(SLOW[2], limits=dataclasses.replace(WIDE, strikes=20))])
    plain = Execution(ClockworkSandbox(), 0).run(batch)
    assert [*map(comes_to, execution.run(batch))] == [*map(comes_to, plain)]
    assert kinds(plain[0]) == [TIMEOUT] * 13


def test_a_call_that_is_slow_keeps_its_time_whatever_its_program_has_hung_on() -> None:
    def last(hangs: int) -> OutcomeKind:
        return kinds(Execution(ClockworkSandbox(), 0).run([job(*HANGS[:hangs]), job(SLOW[1])])[1])[0]

    assert [last(hangs) for hangs in (0, 2, 3, 7)] == [VALUE] * 4


def test_no_place_in_a_run_tells_which_turn_a_call_is_from() -> None:
    """The first calls of all turns, then the second; by their digests, whatever the order of the turns."""
    replays, suite = job(*QUICK[:3]), job(*QUICK[3:7])
    asked = []
    for turns in ([replays, suite], [suite, replays]):
        sandbox = ClockworkSandbox()
        Execution(sandbox, 0).run(turns)
        asked.append([json.loads(call)[0] for call in sandbox.jobs[0].calls])
    assert asked[0] == asked[1]
    assert [number % 3 for number in sorted(asked[0][:2])] == [0, 0]


def test_a_job_without_calls_says_whether_the_program_loads() -> None:
    assert Execution(ClockworkSandbox(), 0).run([job(), job()]) == [JobResult()] * 2
    assert Execution(ClockworkSandbox(load_s=2), 0).run([job()]) == [JobResult((), Outcome(TIMEOUT))]
    assert Execution(ClockworkSandbox(), 0).run([]) == []


class StubbornSandbox(ClockworkSandbox):
    """Loads every program and tries no call."""

    def _run(self, job: CallsJob) -> JobResult:
        self.jobs.append(job)
        return JobResult((Outcome(CRASH, tried=False),) * len(job.calls))


def test_where_the_sandbox_will_not_try_a_call_its_word_stands() -> None:
    sandbox = StubbornSandbox()
    assert kinds(Execution(sandbox, ROOM).run([job(*QUICK[:2])])[0]) == [CRASH] * 2
    assert len(sandbox.jobs) == 1


class LyingSandbox(ClockworkSandbox):
    """Runs a program that makes believe, at every call but `honest` ones, that others have used up the time."""

    def __init__(self, honest: int) -> None:
        super().__init__()
        self.honest = honest

    def _run(self, job: CallsJob) -> JobResult:
        self.jobs.append(job)
        answered = [Outcome(VALUE, b"1", cpu_ns=1)] * min(self.honest, len(job.calls))
        return JobResult((*answered, *[Outcome(TIMEOUT, tried=False)] * (len(job.calls) - len(answered))))


@pytest.mark.parametrize(("honest", "runs", "answered"), [(1, 1, 1), (3, 1, 3), (6, 6, 32)])
def test_a_program_is_not_asked_on_because_it_says_that_others_took_its_time(
    honest: int, runs: int, answered: int
) -> None:
    sandbox = LyingSandbox(honest)
    (result,) = Execution(sandbox, 0).run([job(*(Call(n) for n in range(32)))])
    assert len(sandbox.jobs) == runs
    assert kinds(result) == [VALUE] * answered + [TIMEOUT] * (32 - answered)


# Remembered


BATCHES = st.lists(suites(QUICK + HANGS[:4] + SLOW, most=4), min_size=2, max_size=4)


@settings(max_examples=120, deadline=None)
@given(BATCHES, st.sampled_from([STATELESS, STATEFUL]), st.sampled_from([0.0, 0.3]), st.sampled_from([2000, ROOM]))
def test_no_result_tells_whether_anything_is_remembered(
    batches: list[list[list[Call]]], source: str, load_s: float, room: int
) -> None:
    remembering = Execution(ClockworkSandbox(load_s), room)
    for rows in batches:
        jobs = [job(*row, source=source, limits=Limits(time_limit_s=1.0, budget_s=4.0)) for row in rows]
        plain = Execution(ClockworkSandbox(load_s), 0).run(jobs)
        assert [*map(comes_to, remembering.run(jobs))] == [*map(comes_to, plain)]


def again(first: CallsJob, second: CallsJob, room: int = ROOM) -> list[tuple[bytes, ...]]:
    """The calls that the sandbox is given for `second` after `first`."""
    sandbox = ClockworkSandbox()
    execution = Execution(sandbox, room)
    execution.run([first])
    sandbox.jobs.clear()
    execution.run([second])
    return [one.calls for one in sandbox.jobs]


def test_values_and_errors_of_a_stateless_program_are_remembered_call_by_call() -> None:
    value, error, other = QUICK[0], QUICK[6], QUICK[1]
    assert again(job(value, error), job(error, value)) == []
    assert again(job(value, error), job(other, error)) == [(other.encoded,)]
    assert again(job(value), job()) == []
    assert again(job(value, error), job(error, value), room=0) == [(error.encoded, value.encoded)]


@pytest.mark.parametrize("bad", [hang(10), QUICK[7], QUICK[8]], ids=["timeout", "memory", "crash"])
def test_what_is_not_the_calls_own_is_not_remembered(bad: Call) -> None:
    before, after = QUICK[0], QUICK[1]
    asked = again(job(before, bad, after), job(before, bad, after))
    assert asked == [(bad.encoded,) if bad.kind is MEMORY else (bad.encoded, after.encoded)]


@pytest.mark.parametrize(
    "changed",
    [
        {"source": STATELESS + "#"},
        {"entry_point": "g"},
        {"hash_seed": 1},
        {"limits": dataclasses.replace(LIMITS, memory_mb=2048)},
        {"limits": dataclasses.replace(LIMITS, time_limit_s=2.0)},
        {"is_shared": True},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_whatever_may_change_an_outcome_is_part_of_the_key(changed: dict[str, object]) -> None:
    one = job(QUICK[0])
    other = dataclasses.replace(one, **changed)  # type: ignore[arg-type]
    assert again(one, other) == [one.calls]


def test_another_sandbox_version_remembers_nothing_of_the_old_one() -> None:
    sandbox = ClockworkSandbox()
    execution = Execution(sandbox, ROOM)
    execution.run([job(QUICK[0])])
    sandbox.version = "another"
    execution.run([job(QUICK[0])])
    assert len(sandbox.jobs) == 2


@pytest.mark.parametrize("rounds", [0, 1])
def test_nothing_is_remembered_of_a_run_in_which_the_sandbox_failed(rounds: int) -> None:
    """The second run is for what the first left untried."""
    sandbox = FailingSandbox(rounds)
    execution = Execution(sandbox, ROOM)
    jobs = [job(QUICK[0], *HANGS[:3]), job(*QUICK[1:6])]
    with pytest.raises(SandboxError):
        execution.run(jobs)
    sandbox.left = 99
    sandbox.jobs.clear()
    execution.run(jobs)
    assert QUICK[5].encoded in sandbox.jobs[0].calls
    assert (QUICK[0].encoded in sandbox.jobs[0].calls) == (rounds == 0)


# The real sandbox


@pytest.fixture(scope="module")
def local() -> Iterator[LocalSandbox]:
    with LocalSandbox() as shared:
        yield shared


_PROGRAM = """
def f(x):
    while x % 7 == 6:
        pass
    if x % 7 == 5:
        raise KeyError
    if x % 7 == 4:
        return [0] * 10**10
    return [x, {x, "a"}]
"""
_KEEPS = "seen = []\n" + _PROGRAM.replace("return [x", "seen.append(x)\n    return [len(seen), x")
_BROKEN = "def f(x:\n"
_TRIALS = st.tuples(st.sampled_from([_PROGRAM, _KEEPS, _BROKEN]), st.lists(st.integers(0, 13), max_size=4))
_REAL = st.lists(st.lists(_TRIALS, max_size=4), min_size=2, max_size=3)


@settings(max_examples=12, deadline=None)
@given(_REAL)
def test_no_result_of_real_programs_tells_whether_anything_is_remembered(
    local: LocalSandbox, batches: list[list[tuple[str, list[int]]]]
) -> None:
    remembering = Execution(local, ROOM)
    for batch in batches:
        jobs = [
            CallsJob(
                source,
                "f",
                tuple(b"[[%d],[]]" % x for x in dict.fromkeys(numbers)),
                Limits(0.1, 1.0, 256),
            )
            for source, numbers in batch
        ]
        assert [*map(comes_to, remembering.run(jobs))] == [*map(comes_to, Execution(local, 0).run(jobs))]


def test_a_turn_has_no_more_than_its_budget_of_a_program_that_hides_its_clock(local: LocalSandbox) -> None:
    """Eight calls of 0.1 s, of which the budget has time for five."""
    hide = "import candidate, time\nstart = candidate._cpu_ns()\ncandidate._cpu_ns = lambda: start\n"
    burn = "def f(x):\n    while time.process_time() < 0.1:\n        pass\n    return x\n"
    calls = tuple(b"[[%d],[]]" % x for x in range(8))
    (result,) = Execution(local, 0).run([CallsJob(hide + burn, "f", calls, Limits(0.2, 0.5))])
    passed = kinds(result).count(VALUE)
    assert 1 <= passed <= 5
    assert kinds(result) == [VALUE] * passed + [TIMEOUT] * (8 - passed)
