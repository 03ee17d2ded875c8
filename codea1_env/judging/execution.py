"""Turns to outcomes: works off what a batch asks of its programs, with as few processes as their texts allow.

All turns of one program are one list of calls: the first call of every turn, then every second, and so on. Equally
early calls are ordered by digest, so that no place tells which turn a call is from. The result of a call depends on
program and call alone, so each call is tried once and counts in every turn that has it.

A turn ends after `Limits.strikes` time-outs and crashes among its own calls, or when its budget is spent; its other
calls are charged with the kind of the last one. Both limits have room for every call of a suite: which calls count is
known only when everything has run, and those that do not count must not cost the others their try. After MOST_HANGS
time-outs and crashes of a program in a batch, its later calls have less time: SHORTER of the limit. Only these rules
let an earlier run affect a later one, and only through a call that timed out or crashed.

Values and errors are remembered across batches, by program and call; time-outs, crashes, whatever came after one in the
same process, and calls that ran out of memory are not. Does not compare values, holds none that are expected, and
imports nothing that does. Does not try again a program that answers by chance.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from codea1_env.judging import files_asked
from codea1_env.judging.bounded_cache import BoundedCache
from codea1_env.judging.schedule import job_digest
from codea1_env.sandbox.protocol import MAX_BUDGET_S, MOST_NOTES, CallsJob, JobResult, Outcome, OutcomeKind, Sandbox

MOST_HANGS = 10
"""Time-outs and crashes of one program in one batch that may take all of their time."""
SHORTER = 0.25
"""Of the time limit, for what the program is asked behind them."""
_LEAST_TRIED = 4
"""Calls that a run has time for before its budget is spent, however slowly a program loads and answers."""
_TIMEOUT = Outcome(OutcomeKind.TIMEOUT)
_REMEMBERED = (OutcomeKind.VALUE, OutcomeKind.ERROR)
_OUTCOME_BYTES = 200
"""What the objects around an outcome take."""

_Place = tuple[int, bytes]
"""How early a call is in the turn that has it first, and its digest."""
_Key = tuple[bytes, bytes]
"""A digest of a job without its calls, and a call; the call is empty for whether the program loads."""


@dataclass(slots=True)
class _CachedProgram:
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
    denied: dict[str, None] = field(default_factory=dict)
    """What it says that it was denied. Untrusted, and only handed on."""
    charged: dict[bytes, Outcome] = field(default_factory=dict)
    """What the sandbox charged to calls that it will not be asked for again."""
    gone_through: dict[int, list[Outcome]] = field(default_factory=dict)
    """What its turns have come to, as they were last gone through."""
    places: dict[bytes, _Place] = field(default_factory=dict)
    """Of all its calls, in the order in which they are tried."""
    hangs: int = 0
    """Calls that came to a time-out or a crash."""
    end: _Place | None = None
    """Of the last of MOST_HANGS."""

    def outcome(self, call: bytes) -> Outcome | None:
        """As far as it is known. What was slow is a time-out behind the end, also where it is known from before."""
        outcome = self.seen.get(call) or self.charged.get(call)
        if outcome is None or self.end is None or self.places[call] <= self.end:
            return outcome
        is_late = outcome.cpu_ns > SHORTER * self.job.limits.time_limit_s * 1e9
        return dataclasses.replace(_TIMEOUT, cpu_ns=outcome.cpu_ns) if is_late else outcome


class Execution:
    """Runs turns through a sandbox. Not thread-safe."""

    def __init__(self, sandbox: Sandbox, cache_bytes: int) -> None:
        """`cache_bytes` bounds what is remembered from one `run` to the next; 0: nothing is."""
        self._sandbox = sandbox
        self._remembered: BoundedCache[_Key, JobResult | Outcome] = BoundedCache(cache_bytes)

    def run(self, turns: Sequence[CallsJob], games: Sequence[int] | None = None) -> list[JobResult]:
        """The results in the order of `turns`; the calls of a turn must be distinct. Raises SandboxError. `games`: one
        number per turn, None for one game. A program comes to in one game what it would come to without the others:
        where several games have it, they have their turns one after the other."""
        programs: dict[tuple[CallsJob, int], _CachedProgram] = {}
        waves: dict[int, list[_CachedProgram]] = {}
        known: Counter[CallsJob] = Counter()
        for place, (turn, game) in enumerate(zip(turns, games or [0] * len(turns), strict=True)):
            base = dataclasses.replace(turn, calls=())
            program = programs.get((base, game))  # a job's hash takes its time: once for a turn
            if program is None:
                program = programs[base, game] = _CachedProgram(base, job_digest(base, self._sandbox.version))
                waves.setdefault(known[base], []).append(program)
                known[base] += 1
            program.turns.append(place)
        for wave in waves.values():
            self._run_together(wave, turns)
        results: dict[int, JobResult] = {}
        for program in programs.values():
            assert program.load is not None
            for place in program.turns:
                outcomes = tuple(program.gone_through[place]) if program.load.loaded else ()
                results[place] = JobResult(outcomes, program.load.load_failure, tuple(program.denied))
        return [results[place] for place in range(len(turns))]

    def _run_together(self, programs: Sequence[_CachedProgram], turns: Sequence[CallsJob]) -> None:
        for program in programs:
            _place(program, turns)
            self._recall(program)
        waiting = list(programs)
        while waiting:
            wanted = [(program, _wanted(program, turns)) for program in waiting]
            runs = [(program, calls) for program, calls in wanted if calls or program.load is None]
            jobs = [_run(program, calls) for program, calls in runs]
            answers = files_asked.run(self._sandbox, jobs) if jobs else []
            for (program, calls), job, result in zip(runs, jobs, answers, strict=True):
                _take_up(program, job, result)
                self._remember(program, calls, result)
            waiting = [program for program, _ in runs]

    def _recall(self, program: _CachedProgram) -> None:
        """What is remembered of the program and of the calls that are asked for."""
        load = self._remembered.get((program.key, b""))
        if isinstance(load, JobResult):
            program.load = load
            program.denied |= dict.fromkeys(load.denied)
        for call in program.places:
            outcome = self._remembered.get((program.key, call))
            if isinstance(outcome, Outcome):
                program.load = JobResult()
                program.seen[call] = outcome

    def _remember(self, program: _CachedProgram, calls: Sequence[bytes], result: JobResult) -> None:
        if result.load_failure is not None and result.load_failure.kind not in _REMEMBERED:
            return
        key, failure = program.key, result.load_failure
        load = JobResult((), failure, tuple(program.denied))
        self._remembered.put((key, b""), load, len(key) + (0 if failure is None else _size(failure)))
        for call, outcome in zip(calls, result.outcomes, strict=False):
            if outcome.kind.is_strike:
                break
            if outcome.kind in _REMEMBERED:
                self._remembered.put((key, call), outcome, len(key) + len(call) + _size(outcome))


def _size(outcome: Outcome) -> int:
    return _OUTCOME_BYTES + len(outcome.value) + len(outcome.error)


def _run(program: _CachedProgram, calls: tuple[bytes, ...]) -> CallsJob:
    """One sandbox job. It has no more strikes and no more time than a turn has, and never less than a call."""
    limits = program.job.limits
    budget_s = min(limits.budget_s + 2 * limits.time_limit_s, MAX_BUDGET_S)
    if program.end is None:
        limits = dataclasses.replace(limits, strikes=min(limits.strikes, MOST_HANGS - program.hangs))
    else:
        limits = dataclasses.replace(limits, time_limit_s=SHORTER * limits.time_limit_s)
    return dataclasses.replace(program.job, calls=calls, limits=dataclasses.replace(limits, budget_s=budget_s))


def _place(program: _CachedProgram, turns: Sequence[CallsJob]) -> None:
    for number in program.turns:
        for early, call in enumerate(turns[number].calls):
            if call not in program.places or early < program.places[call][0]:
                program.places[call] = (early, hashlib.blake2b(call, digest_size=8).digest())


def _wanted(program: _CachedProgram, turns: Sequence[CallsJob]) -> tuple[bytes, ...]:
    """The calls that some turn needs and that were not tried, as far as is known now."""
    if program.load is not None and not program.load.loaded:
        return ()
    wanted: set[bytes] = set()
    for place in program.turns:
        program.gone_through[place], untried = _gone_through(program, turns[place].calls)
        wanted.update(untried)
    return tuple(sorted(wanted, key=program.places.__getitem__))


def _gone_through(program: _CachedProgram, calls: Sequence[bytes]) -> tuple[list[Outcome], list[bytes]]:
    """The rule of strikes and budget, over the calls of a turn in their order: the outcomes of all of them, where none
    is untried, and those that must be tried first. What is untried is passed over as though it would come to a value at
    once."""
    limits = program.job.limits
    outcomes: list[Outcome] = []
    untried: list[bytes] = []
    if not program.seen and not program.charged:
        return outcomes, [*calls]
    strikes, spent_ns, budget_ns = 0, 0, limits.budget_s * 1e9
    for call in calls:
        outcome = program.outcome(call)
        if outcome is None:
            untried.append(call)
            continue
        spent_ns += outcome.cpu_ns
        is_spent = spent_ns > budget_ns
        strikes += is_spent or outcome.kind.is_strike
        outcomes.append(Outcome(OutcomeKind.TIMEOUT, tried=False) if is_spent else outcome)
        if is_spent or strikes >= limits.strikes:
            charged = Outcome(outcomes[-1].kind, tried=False)
            outcomes += [charged] * (len(calls) - len(outcomes) - len(untried))
            break
    return outcomes, untried


def _take_up(program: _CachedProgram, job: CallsJob, result: JobResult) -> None:
    """What a sandbox job has shown of its program. What it did not try is asked for again only where the job came to
    its strikes, or tried as much as its budget has time for: a program can make believe that others have used up a
    call's time, but not that so many were answered."""
    program.denied |= dict.fromkeys(result.denied[: MOST_NOTES - len(program.denied)])
    if program.load is None:
        program.load = JobResult((), result.load_failure)
    failure = result.load_failure
    outcomes = result.outcomes if failure is None else [dataclasses.replace(failure, tried=False)] * len(job.calls)
    answers = dict(zip(job.calls, outcomes, strict=True))
    tried = {call: outcome for call, outcome in answers.items() if outcome.tried}
    strikes = sum(outcome.kind.is_strike for outcome in tried.values())
    if len(tried) < _LEAST_TRIED and strikes < job.limits.strikes:
        program.charged |= {call: outcome for call, outcome in answers.items() if call not in tried}
    for call, outcome in tried.items():
        program.seen[call] = outcome
        program.hangs += outcome.kind.is_strike
        if program.hangs == MOST_HANGS and program.end is None:
            program.end = program.places[call]
