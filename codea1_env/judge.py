"""From calls to verdicts: evaluates what tests state, asks the reference for the right values, tries programs on them.

Batched passes, each one sandbox run: `evaluate` (tests to data), `reference_values` (the oracle), `try_programs`, and
`answers` where solutions must serve as the oracle.
Expected values and references stay here; a candidate's process sees calls only, and what it sends back is compared as
data. Does not compute rewards and does not read responses.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from codea1_env.bounded_cache import bytes_of
from codea1_env.duel import Verdict
from codea1_env.equality import is_opaque, same_value
from codea1_env.execution import Execution
from codea1_env.grammar import RETURNED, WrittenTest
from codea1_env.literals import tree_source
from codea1_env.oracle import HASH_SEEDS, Oracle, ReferenceValue, is_plain, limits_of, with_imports
from codea1_env.problems.problem import Problem
from codea1_env.pure_expressions import Reason
from codea1_env.returned import returned_text
from codea1_env.sandbox.protocol import (
    CallsJob,
    ExpressionsJob,
    JobResult,
    Outcome,
    OutcomeKind,
    Sandbox,
)
from codea1_env.statefulness import keeps_state

EXECUTION_CACHE_MB = 64
"""MiB of outcomes of candidates' calls that a judge remembers unless told otherwise."""
REFERENCE_CACHE_MB = 64
"""MiB of references' values, likewise."""
NO_ENTRY_POINT = "NoEntryPoint"
"""What the sandbox calls it where a program loads and does not define a callable entry point."""
_MAX_ANSWER = 1 << 16
"""Bytes of a value that solutions may agree on: agreement takes comparing each with each."""
_FAILURES = {
    OutcomeKind.ERROR: Verdict.ERROR,
    OutcomeKind.MEMORY: Verdict.ERROR,
    OutcomeKind.TIMEOUT: Verdict.TIMEOUT,
    OutcomeKind.CRASH: Verdict.CRASH,
}


@dataclass(frozen=True, slots=True)
class StatedTest:
    """A test as data: the encoded arguments of its call and the encoded value that it states."""

    arguments: bytes
    value: bytes
    failure: str = ""
    """The `Reason` why the test's expressions have no such data; then the other fields are empty."""
    look: str = ""
    """`WrittenTest.look`."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """One call and the trusted value it must return."""

    arguments: bytes
    value: bytes
    look: str = ""
    """How the returned value is looked at before it is compared (`WrittenTest.look`); empty: as it is."""
    or_value: bytes = b""
    """Another value that is as right: the stated one, where rounding alone tells it from `value`. Empty: none."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One program on one suite (or on the replayed tests, or on golden tests)."""

    problem: Problem
    source: str
    expectations: tuple[Expectation, ...]


@dataclass(frozen=True, slots=True)
class Questioned:
    """One program and what it is asked, where nobody knows the right values yet."""

    problem: Problem
    source: str
    calls: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class TrialResult:
    executes: bool
    """The program loads within its limits and defines a callable entry point."""
    loads: bool
    """The program loads within its limits."""
    verdicts: tuple[Verdict, ...]
    """One per expectation."""
    returned: tuple[str, ...] = field(default=(), compare=False)
    """One per expectation, for display: what a failing call came to; empty for one that passes."""


class Judge:
    """Holds the sandbox and the oracle. One per arena; not thread-safe."""

    def __init__(
        self,
        sandbox: Sandbox,
        tolerance: float = 0.0,
        *,
        reverse_order: bool = False,
        execution_cache_mb: int = EXECUTION_CACHE_MB,
        reference_cache_mb: int = REFERENCE_CACHE_MB,
    ) -> None:
        """`tolerance`: relative and absolute, for floats; 0 is exact, where the problem has no larger one of its own.

        `reverse_order`: doubt passes as well as failures of programs that may keep state, by a second run of the calls
        that passed, in reverse order.

        The caches' bounds are in MiB, 0 for none: of what candidates' calls came to and of the references' values.
        """
        self._sandbox = sandbox
        self._tolerance = tolerance
        self._reverse_order = reverse_order
        self._oracle = Oracle(sandbox, bytes_of("reference_cache_mb", reference_cache_mb))
        self._execution = Execution(sandbox, bytes_of("execution_cache_mb", execution_cache_mb))

    def evaluate(self, suites: Sequence[Sequence[WrittenTest]]) -> list[list[StatedTest]]:
        """The data of every accepted test. Literals need no evaluation; the rest runs in two processes per suite."""
        waiting = [[test for test in suite if test.arguments is None or test.value is None] for suite in suites]
        jobs = [
            ExpressionsJob(tuple(test.expression for test in tests), hash_seed=seed)
            for tests in waiting
            for seed in HASH_SEEDS
            if tests
        ]
        results = iter(self._sandbox.run(jobs) if jobs else [])
        evaluated = []
        for suite, tests in zip(suites, waiting, strict=True):
            first, second = [_outcomes(next(results), len(tests)) if tests else () for _ in HASH_SEEDS]
            stated = map(_stated, first, second)
            evaluated.append(
                [
                    _with_look(test, next(stated))
                    if test.arguments is None or test.value is None
                    else StatedTest(test.arguments, test.value, look=test.look)
                    for test in suite
                ]
            )
        return evaluated

    def reference_values(self, asked: Sequence[tuple[Problem, Sequence[bytes]]]) -> list[list[ReferenceValue]]:
        """The reference's value for every call. Raises UnusableReference."""
        return self._oracle.values(asked)

    def tolerance(self, problem: Problem) -> float:
        """Relative and absolute, for floats that the problem's programs return."""
        return max(self._tolerance, problem.tolerance)

    def looked_at(self, asked: Sequence[tuple[str, bytes]]) -> list[Outcome]:
        """What looks (`WrittenTest.look`) make of returned values: data in, data out, where no program runs.

        Raises ValueError for a value that is no plain data.
        """
        texts = [f"(lambda {RETURNED}: {look})({tree_source(json.loads(value))})" for look, value in asked]
        results = self._sandbox.run([ExpressionsJob((text,)) for text in texts]) if texts else []
        return [_outcomes(result, 1)[0] for result in results]

    def answers(self, asked: Sequence[Questioned]) -> list[tuple[bytes | None, ...] | None]:
        """What programs return: the plain value of every call, None where it came to none; None for a program that does
        not load. Each list of calls is as though it were the only one."""
        jobs = [_job(Trial(one.problem, one.source, ()), tuple(dict.fromkeys(one.calls))) for one in asked]
        answered: list[tuple[bytes | None, ...] | None] = []
        for one, job, result in zip(asked, jobs, self._execution.run(jobs), strict=True):
            if result.loaded:
                found = dict(zip(job.calls, map(_plain_value, result.outcomes), strict=True))
                answered.append(tuple(found[call] for call in one.calls))
            else:
                answered.append(None)
        return answered

    def try_programs(self, trials: Sequence[Trial]) -> list[TrialResult]:
        """Verdicts of every trial, each as though it were the only one."""
        if not trials:
            return []
        jobs = [_job(trial, tuple(dict.fromkeys(e.arguments for e in trial.expectations))) for trial in trials]
        results = self._execution.run(jobs)
        judged = []
        seen = []
        for trial, job, result in zip(trials, jobs, results, strict=True):
            found = dict(zip(job.calls, _outcomes(result, len(job.calls)), strict=True))
            seen.append(self._looked(trial.expectations, [found[each.arguments] for each in trial.expectations]))
            judged.append([self._verdict(trial, *pair) for pair in zip(trial.expectations, seen[-1], strict=True)])
        self._confirm(trials, results, judged, seen)
        return [
            TrialResult(result.loaded, _loads(result), tuple(verdicts), tuple(map(_returned, verdicts, outcomes)))
            for result, verdicts, outcomes in zip(results, judged, seen, strict=True)
        ]

    def _confirm(
        self,
        trials: Sequence[Trial],
        results: Sequence[JobResult],
        judged: list[list[Verdict]],
        seen: list[list[Outcome]],
    ) -> None:
        """Run every failing call of a program that may keep state alone, so that no earlier call can be to blame.

        Where that turns a failure into a pass, or the other order of calls a pass into a failure, the program's answers
        depend on their company: then its other calls are run alone too, and what was turned once more, since it may
        have been chance. So one kind of run decides all its verdicts, and no program has two guesses at a test.
        """
        doubtful = [
            index
            for index, trial in enumerate(trials)
            if results[index].loaded and len(trial.expectations) > 1 and _may_keep_state(trial)
        ]
        unconfirmed = (Verdict.FAIL, Verdict.ERROR, Verdict.CRASH)
        failing = [(i, at) for i in doubtful for at, verdict in enumerate(judged[i]) if verdict in unconfirmed]
        self._judge_alone(trials, failing, judged, seen)
        confirmed = set(failing)
        dependent = dict.fromkeys(i for i, at in failing if judged[i][at] is Verdict.PASS)
        if self._reverse_order:
            settled = [i for i in doubtful if i not in dependent]
            dependent |= dict.fromkeys(self._unrepeated(trials, settled, judged))
        others = [
            (i, at)
            for i in dependent
            for at, verdict in enumerate(judged[i])
            if (i, at) not in confirmed or verdict is Verdict.PASS
        ]
        self._judge_alone(trials, others, judged, seen)

    def _unrepeated(self, trials: Sequence[Trial], chosen: Sequence[int], judged: list[list[Verdict]]) -> list[int]:
        """Those of `chosen` whose passing calls do not all pass in a fresh process that has them in reverse order."""
        passed = {
            i: [e for e, verdict in zip(trials[i].expectations, judged[i], strict=True) if verdict is Verdict.PASS]
            for i in chosen
        }
        passed = {i: expectations for i, expectations in passed.items() if expectations}
        jobs = [
            _job(trials[i], tuple(dict.fromkeys(e.arguments for e in reversed(expectations))))
            for i, expectations in passed.items()
        ]
        unrepeated = []
        for (i, expectations), job, result in zip(passed.items(), jobs, self._execution.run(jobs), strict=True):
            found = dict(zip(job.calls, _outcomes(result, len(job.calls)), strict=True))
            if any(self._verdict(trials[i], e, found[e.arguments]) is not Verdict.PASS for e in expectations):
                unrepeated.append(i)
        return unrepeated

    def _judge_alone(
        self,
        trials: Sequence[Trial],
        chosen: Sequence[tuple[int, int]],
        judged: list[list[Verdict]],
        seen: list[list[Outcome]],
    ) -> None:
        """Replace the verdict on each (trial, expectation) of `chosen` by that of a process of its own, a new one."""
        jobs = [_job(trials[i], (trials[i].expectations[at].arguments,)) for i, at in chosen]
        for (i, at), result in zip(chosen, self._sandbox.run(jobs) if jobs else [], strict=True):
            (seen[i][at],) = self._looked([trials[i].expectations[at]], _outcomes(result, 1))
            judged[i][at] = self._verdict(trials[i], trials[i].expectations[at], seen[i][at])

    def _looked(self, expectations: Sequence[Expectation], outcomes: Sequence[Outcome]) -> list[Outcome]:
        """The outcomes, those with a look replaced by what it makes of them."""
        places = [
            place
            for place, (expected, outcome) in enumerate(zip(expectations, outcomes, strict=True))
            if expected.look and outcome.kind is OutcomeKind.VALUE and is_plain(outcome.value)
        ]
        looked = list(outcomes)
        found = self.looked_at([(expectations[place].look, outcomes[place].value) for place in places])
        for place, outcome in zip(places, found, strict=True):
            looked[place] = outcome
        return looked

    def _verdict(self, trial: Trial, expectation: Expectation, outcome: Outcome) -> Verdict:
        if outcome.kind is not OutcomeKind.VALUE:
            return _FAILURES[outcome.kind]
        tolerance = self.tolerance(trial.problem)
        values = [expectation.value, expectation.or_value] if expectation.or_value else [expectation.value]
        is_right = any(same_value(value, outcome.value, tolerance) for value in values)
        return Verdict.PASS if is_right else Verdict.FAIL


def _loads(result: JobResult) -> bool:
    return result.loaded or (result.load_failure is not None and result.load_failure.error == NO_ENTRY_POINT)


def _with_look(test: WrittenTest, stated: StatedTest) -> StatedTest:
    if stated.failure:
        return stated
    return replace(stated, value=b"" if test.stated is None else stated.value, look=test.look)


def _returned(verdict: Verdict, outcome: Outcome) -> str:
    return "" if verdict is Verdict.PASS else returned_text(outcome)


def _may_keep_state(trial: Trial) -> bool:
    return keeps_state(with_imports(trial.problem, trial.source))


def _job(trial: Trial, calls: tuple[bytes, ...]) -> CallsJob:
    problem = trial.problem
    source = with_imports(problem, trial.source)
    return CallsJob(source, problem.entry_point, calls, limits_of(problem), packages=problem.packages)


def _outcomes(result: JobResult, count: int) -> Sequence[Outcome]:
    """A result's outcomes; what kept the program from loading stands for every call."""
    if result.loaded:
        return result.outcomes
    return [result.load_failure or Outcome(OutcomeKind.CRASH)] * count


def _plain_value(outcome: Outcome) -> bytes | None:
    is_value = outcome.kind is OutcomeKind.VALUE and len(outcome.value) <= _MAX_ANSWER and is_plain(outcome.value)
    return outcome.value if is_value else None


def _stated(outcome: Outcome, other: Outcome) -> StatedTest:
    """The data of one expression `((positional, ...), {name: value}, stated value)`, evaluated under two hash seeds."""
    if outcome.kind is OutcomeKind.ERROR:
        return StatedTest(b"", b"", Reason.EVALUATION_ERROR)
    if outcome.kind is not OutcomeKind.VALUE:
        return StatedTest(b"", b"", Reason.EVALUATION_LIMIT)
    if is_opaque(outcome.value):
        return StatedTest(b"", b"", Reason.NOT_PLAIN_DATA)
    if other.kind is not OutcomeKind.VALUE or not same_value(outcome.value, other.value):
        return StatedTest(b"", b"", Reason.UNSTABLE)
    # The expression passed the strict grammar, so this is our own evaluator's output; it is still parsed as data only.
    positional, named, value = json.loads(outcome.value)["t"]
    return StatedTest(_dump([positional["t"], named["d"]]), _dump(value))


def _dump(tree: object) -> bytes:
    return json.dumps(tree, ensure_ascii=True, separators=(",", ":")).encode("ascii")
