"""Turns to outcomes: works off what a batch asks of its programs, with as few processes as their texts allow.

All turns of one program are one list of calls: the first call of every turn, then every second, and so on, by their
digests where they are equally early, so that no place tells which turn a call is from. What a call comes to depends
on program and call alone (`purity/`), so it is tried once, with its full limit, and counts in every turn that has
it. What ends a turn is a fixed rule: `Limits.strikes` time-outs and crashes among its own calls, in its own order, or
its budget; what is left of it is charged with the last one's kind. Once a program has come to MOST_HANGS of them in the
batch, one of its own ends a turn: nothing of it that is later in the order above is tried. These rules are the one
thing in which what runs depends on what ran, and on nothing of it but that a call never came back.

Which of a turn's calls count is known only when everything has run. Then `charged` says what those came to, and leaves
out what was not tried for the sake of calls that do not count.

Values and errors are remembered across batches, by program and call. Time-outs, crashes, what came after one in the
same process and what ran out of memory are not, nor anything of a run in which the sandbox failed. Does not compare
values, holds none that are expected, and imports nothing that does. Does not promise a program that answers by chance
another chance.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from codea1_env.bounded_cache import BoundedCache
from codea1_env.sandbox.protocol import MAX_BUDGET_S, CallsJob, JobResult, Limits, Outcome, OutcomeKind, Sandbox

MOST_HANGS = 10
"""Time-outs and crashes of one program in one batch, as many as a turn's budget has time for."""
_STRIKES = (OutcomeKind.TIMEOUT, OutcomeKind.CRASH)
_REMEMBERED = (OutcomeKind.VALUE, OutcomeKind.ERROR)
_GIVEN_UP = Outcome(OutcomeKind.TIMEOUT, tried=False)
_OUTCOME_BYTES = 200
"""What the objects around an outcome take."""

_Place = tuple[int, bytes]
"""How early a call is in the turn that has it first, and its digest."""
_Key = tuple[bytes, bytes]
"""A digest of a job without its calls, and a call; the call is empty for whether the program loads."""


@dataclass(slots=True)
class _Program:
    """One program, and all that was seen of it in this batch."""

    job: CallsJob
    """Without calls."""
    key: bytes
    turns: list[int] = field(default_factory=list)
    """Places in the batch."""
    load: JobResult | None = None
    """Without outcomes; None while it is not known whether the program loads."""
    seen: dict[bytes, Outcome] = field(default_factory=dict)
    """What calls came to that were tried."""
    charged: dict[bytes, Outcome] = field(default_factory=dict)
    """What the sandbox charged to calls of a run in which it tried none."""
    gone_through: dict[int, list[Outcome]] = field(default_factory=dict)
    """What its turns have come to, as they were last gone through."""
    places: dict[bytes, _Place] = field(default_factory=dict)
    """Of all its calls, in the order in which they are tried."""
    hangs: int = 0
    """Calls that came to a time-out or a crash."""
    end: _Place | None = None
    """Of the last of MOST_HANGS."""


class Execution:
    """Runs turns through a sandbox. Not thread-safe."""

    def __init__(self, sandbox: Sandbox, cache_bytes: int) -> None:
        """`cache_bytes` bounds what is remembered from one `run` to the next; 0: nothing is."""
        self._sandbox = sandbox
        self._remembered: BoundedCache[_Key, JobResult | Outcome] = BoundedCache(cache_bytes)
        self._remembers = cache_bytes > 0

    def run(self, turns: Sequence[CallsJob]) -> list[JobResult]:
        """The results in the order of `turns`; the calls of a turn must be distinct. Raises SandboxError."""
        programs: dict[CallsJob, _Program] = {}
        for place, turn in enumerate(turns):
            base = dataclasses.replace(turn, calls=())
            if base not in programs:
                programs[base] = _Program(base, self._key_of(base))
            programs[base].turns.append(place)
        for program in programs.values():
            _place(program, turns)
            self._recall(program)
        waiting = list(programs.values())
        while waiting:
            wanted = [(program, _wanted(program, turns)) for program in waiting]
            runs = [(program, calls) for program, calls in wanted if calls or program.load is None]
            answers = self._sandbox.run([_run(program, calls) for program, calls in runs]) if runs else []
            for (program, calls), result in zip(runs, answers, strict=True):
                _take_up(program, calls, result)
                self._remember(program, calls, result)
            waiting = [program for program, _ in runs]
        results: dict[int, JobResult] = {}
        for program in programs.values():
            assert program.load is not None
            for place in program.turns:
                loads = program.load.loaded
                results[place] = JobResult(True, None, tuple(program.gone_through[place])) if loads else program.load
        return [results[place] for place in range(len(turns))]

    def _key_of(self, job: CallsJob) -> bytes:
        """A digest of all that an outcome depends on but the call: the company of the calls is a part of it."""
        fields = [(field.name, getattr(job, field.name)) for field in dataclasses.fields(job) if field.name != "calls"]
        return hashlib.blake2b(repr((self._sandbox.version, fields)).encode("utf-8"), digest_size=32).digest()

    def _recall(self, program: _Program) -> None:
        """What is remembered of the program and of the calls that are asked for."""
        if not self._remembers:
            return
        load = self._remembered.get((program.key, b""))
        program.load = load if isinstance(load, JobResult) else None
        for call in program.places:
            outcome = self._remembered.get((program.key, call))
            if isinstance(outcome, Outcome):
                program.load = JobResult(True, None, ())
                program.seen[call] = outcome

    def _remember(self, program: _Program, calls: Sequence[bytes], result: JobResult) -> None:
        if not self._remembers or (result.load_failure is not None and result.load_failure.kind not in _REMEMBERED):
            return
        key, failure = program.key, result.load_failure
        self._remembered.put(
            (key, b""), JobResult(result.loaded, failure, ()), len(key) + (0 if failure is None else _size(failure))
        )
        for call, outcome in zip(calls, result.outcomes, strict=False):
            if outcome.kind in _STRIKES:
                break
            if outcome.kind in _REMEMBERED:
                self._remembered.put((key, call), outcome, len(key) + len(call) + _size(outcome))


def _size(outcome: Outcome) -> int:
    """Bytes that are counted for it."""
    return _OUTCOME_BYTES + len(outcome.value) + len(outcome.error)


def _run(program: _Program, calls: tuple[bytes, ...]) -> CallsJob:
    """One sandbox job. It has no more strikes and no more time than a turn has, and never less than a call."""
    limits = program.job.limits
    budget_s = min(limits.budget_s + 2 * limits.time_limit_s, MAX_BUDGET_S)
    strikes = min(limits.strikes, max(1, MOST_HANGS - program.hangs))
    limits = dataclasses.replace(limits, budget_s=budget_s, strikes=strikes)
    return dataclasses.replace(program.job, calls=calls, limits=limits)


def _place(program: _Program, turns: Sequence[CallsJob]) -> None:
    for number in program.turns:
        for early, call in enumerate(turns[number].calls):
            if call not in program.places or early < program.places[call][0]:
                program.places[call] = (early, _digest(call))


@functools.lru_cache(maxsize=1 << 16)
def _digest(call: bytes) -> bytes:
    return hashlib.blake2b(call, digest_size=8).digest()


def _wanted(program: _Program, turns: Sequence[CallsJob]) -> tuple[bytes, ...]:
    """The calls that some turn needs and that were not tried, as far as is known now."""
    if program.load is not None and not program.load.loaded:
        return ()
    wanted: set[bytes] = set()
    for place in program.turns:
        turn = _gone_through(program, turns[place].calls)
        program.gone_through[place] = turn.outcomes
        wanted.update(turn.untried)
    return tuple(sorted(wanted, key=program.places.__getitem__))


@dataclass(slots=True)
class _GoneThrough:
    """One turn, as far as it is known."""

    outcomes: list[Outcome] = field(default_factory=list)
    """Of all its calls, where none is untried."""
    untried: list[bytes] = field(default_factory=list)
    """Calls that must be tried first."""


def _gone_through(program: _Program, calls: Sequence[bytes]) -> _GoneThrough:
    """The rule of strikes and budget, over the calls of a turn in their order. What is untried is passed over as though
    it would come to a value at once."""
    limits, turn = program.job.limits, _GoneThrough()
    if not program.seen and not program.charged and program.end is None:
        turn.untried += calls
        return turn
    strikes, spent_ns, budget_ns = 0, 0, limits.budget_s * 1e9
    for call in calls:
        outcome = program.seen.get(call) or program.charged.get(call)
        if strikes and program.end is not None and program.places[call] > program.end:
            outcome = _GIVEN_UP
        if outcome is None:
            turn.untried.append(call)
            continue
        spent_ns += outcome.cpu_ns
        is_spent = spent_ns > budget_ns
        strikes += is_spent or outcome.kind in _STRIKES
        cut_off = Outcome(OutcomeKind.TIMEOUT, tried=False, cpu_ns=outcome.cpu_ns)
        turn.outcomes.append(cut_off if is_spent else outcome)
        if is_spent or strikes >= limits.strikes:
            charged = Outcome(turn.outcomes[-1].kind, tried=False)
            turn.outcomes += [charged] * (len(calls) - len(turn.outcomes) - len(turn.untried))
            break
    return turn


def charged(
    calls: Sequence[bytes], outcomes: Sequence[Outcome], counting: Collection[bytes], limits: Limits
) -> dict[bytes, Outcome | None]:
    """What the calls of a turn that count came to.

    One that was not tried is charged where a call that counts has hung before it, or where those that count have spent
    the budget by themselves. Else it is None: calls that do not count have cost it its turn.
    """
    if len(counting) == len(calls) or not any(outcome.tried for outcome in outcomes):
        return dict(zip(calls, outcomes, strict=True))
    found: dict[bytes, Outcome | None] = {}
    has_hung, spent_ns = False, 0
    for call, outcome in zip(calls, outcomes, strict=True):
        if call in counting:
            spent_ns += outcome.cpu_ns
            is_owed = has_hung or spent_ns > limits.budget_s * 1e9
            found[call] = outcome if outcome.tried or is_owed else None
            has_hung |= outcome.tried and outcome.kind in _STRIKES
    return found


def _take_up(program: _Program, calls: Sequence[bytes], result: JobResult) -> None:
    """What a sandbox job has shown of its program."""
    if program.load is None:
        program.load = JobResult(result.loaded, result.load_failure, ())
    failure = result.load_failure
    outcomes = result.outcomes if failure is None else [dataclasses.replace(failure, tried=False)] * len(calls)
    answers = dict(zip(calls, outcomes, strict=True))
    if not any(outcome.tried for outcome in outcomes):  # asking again would not help
        program.charged |= answers
    for call, outcome in answers.items():
        if outcome.tried:
            program.seen[call] = outcome
            program.hangs += outcome.kind in _STRIKES
        if program.hangs == MOST_HANGS and program.end is None:
            program.end = program.places[call]
