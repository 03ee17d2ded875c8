"""From calls to verdicts: evaluates what tests state, asks the reference for the right values, tries programs on them.

Batched passes: `evaluate` (tests to data), `run` (candidates on their turns), `reference_values` (the oracle), `judged`
(what came back, compared as data). In a batch that is scored they follow in this order, so that nothing that was
computed from an expected value exists while a candidate runs. Computes no rewards, reads no responses and does not
decide what candidates are asked: see `schedule.py`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from codea1_env.errors import PackageMissing
from codea1_env.judging.bounded_cache import bytes_of
from codea1_env.judging.checking import Check, Checkers, compares
from codea1_env.judging.equality import as_right, as_seen, is_by_identity, is_opaque, same_output, same_value
from codea1_env.judging.execution import Execution
from codea1_env.judging.oracle import HASH_SEEDS, Oracle, ReferenceValue, comparable, is_data, is_plain
from codea1_env.judging.raised import raised_outcome
from codea1_env.judging.relations.truth import holds
from codea1_env.judging.returned import NOT_PLAIN, returned_text
from codea1_env.judging.schedule import Turn, turn
from codea1_env.problems.checkers import COMPARISONS
from codea1_env.problems.problem import Problem
from codea1_env.problems.tolerances import EXACT, Tolerances
from codea1_env.reading.grammar import RETURNED, WrittenTest
from codea1_env.reading.literals import encode, looked_at, tree_source
from codea1_env.reading.pure_expressions import Reason
from codea1_env.reading.wide.relation import Relation
from codea1_env.rewards.duel import Verdict
from codea1_env.sandbox.inside.scope import packages_in
from codea1_env.sandbox.protocol import ExpressionsJob, JobResult, Outcome, OutcomeKind, Sandbox
from codea1_env.sandbox.worlds import installed

EXECUTION_CACHE_MB = 64
"""MiB of outcomes of candidates' calls that a judge remembers unless told otherwise."""
REFERENCE_CACHE_MB = 64
"""MiB of references' values, likewise."""
NO_ENTRY_POINT = "NoEntryPoint"
"""What the sandbox calls it where a program loads and does not define a callable entry point."""
_MAX_ANSWER = 1 << 16
"""Bytes of a value that solutions may agree on: agreement takes comparing each with each."""
_SEEN = (b'{"v":', b'["DataFrame"', b'["namedtuple"', b'["keys"', b'["items"')
"""How values begin that have a source of their own where they are looked at."""
_TRUTHS = (b"true", b"false")
_FAILURES = {
    OutcomeKind.ERROR: Verdict.ERROR,
    OutcomeKind.MEMORY: Verdict.ERROR,
    OutcomeKind.TIMEOUT: Verdict.TIMEOUT,
    OutcomeKind.CRASH: Verdict.CRASH,
}


@dataclass(frozen=True, slots=True)
class Expectation:
    """One call and the trusted value it must return."""

    arguments: bytes
    value: bytes
    look: str = ""
    """How the returned value is looked at before it is compared (`WrittenTest.look`); empty: as it is."""
    or_value: bytes = b""
    """Another value that is as right: the stated one, where rounding alone tells it from `value`. Empty: none."""
    relation: Relation | None = None
    """What the returned value must be like, where it need not equal one value; `value` is then the tuple of the
    relation's constants."""
    also: tuple[Expectation, ...] = ()
    """What must hold as well, of the returned value or of an argument behind the call: what the suite claims of this
    call in tests that count for nothing by themselves, where it is true of the right value."""
    right: bytes = field(default=b"", compare=False)
    """Of a relation: the right value, where others that are not the same are as right (`Judge.as_right`)."""
    # Of a test as it was written, likewise (`WrittenTest`).
    or_look: str = field(default="", compare=False)
    calls: tuple[bytes, ...] = field(default=(), compare=False)
    beside: bytes = field(default=b"", compare=False)


@dataclass(frozen=True, slots=True)
class Trial:
    """One program on one suite (or on the replayed tests, or on golden tests)."""

    problem: Problem
    source: str
    expectations: tuple[Expectation, ...]


@dataclass(frozen=True, slots=True)
class TrialResult:
    executes: bool
    """The program loads within its limits and defines a callable entry point."""
    loads: bool
    """The program loads within its limits."""
    verdicts: tuple[Verdict, ...]
    """One per expectation."""
    returned: tuple[str, ...] = field(default=(), compare=False)
    """One per expectation, for display: what the call came to; empty for one that returns the expected value itself."""
    denied: tuple[str, ...] = field(default=(), compare=False)
    """For display: what the sandbox denied the program, as the program says (`JobResult.denied`)."""


Tried = tuple[Sequence[Expectation], Turn, JobResult]
"""What a program is to return; a turn that held these calls, and maybe others; and what it came to."""


class Judge:
    """Holds the sandbox and the oracle. One per arena; not thread-safe."""

    def __init__(
        self,
        sandbox: Sandbox,
        tolerance: Tolerances | float = EXACT,
        *,
        execution_cache_mb: int = EXECUTION_CACHE_MB,
        reference_cache_mb: int = REFERENCE_CACHE_MB,
    ) -> None:
        """`tolerance`: by types, or of floats; what the problem itself allows beyond it counts, too. The caches' bounds
        are in MiB, 0 for none: of what candidates' calls came to and of the references' values."""
        self._sandbox = sandbox
        self._tolerances = Tolerances.of(tolerance)
        self._oracle = Oracle(sandbox, bytes_of("reference_cache_mb", reference_cache_mb))
        self._execution = Execution(sandbox, bytes_of("execution_cache_mb", execution_cache_mb))
        self._checkers = Checkers(sandbox, bytes_of("reference_cache_mb", reference_cache_mb))

    def evaluate(self, suites: Sequence[Sequence[WrittenTest]]) -> list[list[Expectation | Reason]]:
        """Every accepted test as data, or why its expressions have none. Literals need no evaluation; the rest runs in
        two processes per suite."""
        waiting = [[test for test in suite if test.arguments is None or test.value is None] for suite in suites]
        texts = [tuple(map(_expression, tests)) for tests in waiting if tests]
        jobs = [ExpressionsJob(each, hash_seed=seed, packages=_packages(each)) for each in texts for seed in HASH_SEEDS]
        results = iter(self._evaluated(jobs))
        evaluated = []
        for suite, tests in zip(suites, waiting, strict=True):
            first, second = [next(results).each(len(tests)) if tests else () for _ in HASH_SEEDS]
            stated = map(_stated, first, second)
            evaluated.append([_as_data(test, stated) for test in suite])
        return evaluated

    def _evaluated(self, jobs: Sequence[ExpressionsJob]) -> list[JobResult]:
        """A suite may name a package that is not there: its tests have no value, and nothing else happens."""
        try:
            return self._sandbox.run(jobs) if jobs else []
        except PackageMissing:
            return self._sandbox.run([replace(job, packages=()) for job in jobs])

    def reference_values(
        self,
        asked: Sequence[tuple[Problem, Sequence[bytes]]],
        most_hangs: int | None = None,
        *,
        to_look_at: bool = False,
    ) -> list[list[ReferenceValue]]:
        """The reference's value for every call; `most_hangs` as in `Oracle.values`. `to_look_at`: iterators and objects
        are values, though they equal nothing. Raises UnusableReference."""
        rows = self._oracle.values(asked, most_hangs)
        return rows if to_look_at else [list(map(comparable, row)) for row in rows]

    def reference_seconds(self, asked: Sequence[tuple[Problem, Sequence[bytes]]]) -> list[float]:
        """What each problem's reference takes for the slowest of the calls: `Oracle.seconds`."""
        return self._oracle.seconds(asked)

    def run(self, turns: Sequence[Turn], games: Sequence[int] | None = None) -> list[JobResult]:
        """What candidates return, in the order of `turns`; nothing is compared. `games`: as in `Execution.run`. Raises
        SandboxError."""
        return self._execution.run([one.job() for one in turns], games)

    def tolerances(self, problem: Problem) -> Tolerances:
        """What values that the problem's programs return may be off by."""
        return self._tolerances.or_laxer(problem.tolerances)

    def looked_at(self, asked: Sequence[tuple[str, bytes]]) -> list[Outcome]:
        """What looks (`WrittenTest.look`) make of returned values: data in, data out, where no program runs. A value
        that has no source is as one that raises."""
        texts = [_looking(look, value) for look, value in asked]
        results = self._evaluated([ExpressionsJob((text,), packages=_packages([text])) for text in texts])
        return [result.each(1)[0] for result in results]

    def tried_on(self, look: str, values: Sequence[bytes]) -> list[bool | None]:
        """Whether a look is true of each of these values, none of which is a candidate's; None where it raises."""
        texts = tuple(_looking(look, value) for value in values)
        (result,) = self._evaluated([ExpressionsJob(texts, packages=_packages(texts))])
        return [json.loads(one.value) if one.value in _TRUTHS else None for one in result.each(len(texts))]

    def accepted(self, checks: Sequence[Check]) -> list[bool]:
        """Whether problems' checkers, which are programs, take values for right, in one sandbox run; remembered."""
        return self._checkers.accepted(checks)

    def is_right(self, problem: Problem, arguments: bytes, value: bytes, right: bytes, tolerance: Tolerances) -> bool:
        """Whether the untrusted `value` is as right as `right`, which is trusted: by the problem's checker, which alone
        decides, or within `tolerance` by the comparison that it names, by lines, or by equality."""
        if problem.checker in COMPARISONS:
            return compares(problem.checker, right, value, tolerance)
        if problem.checker:
            return self.accepted([Check(problem, arguments, value, right)])[0]
        if problem.kind == "program":
            return same_output(right, value, tolerance)
        return same_value(right, value, tolerance)

    def needs_right(self, problem: Problem, test: Expectation) -> bool:
        """Whether a test claims something of a value that need not be the same to be right."""
        is_claim = test.relation is not None and not test.relation.raising
        return is_claim and (problem.kind == "program" or bool(self.tolerances(problem)))

    def as_right(self, problem: Problem, right: bytes, value: bytes) -> bytes:
        """The untrusted `value` as claims are made of it: without what the problem does not ask for, digits beyond its
        tolerance and white space at the ends of lines."""
        if problem.kind == "program":
            return right if same_output(right, value, self.tolerances(problem)) else value
        return as_right(right, value, self.tolerances(problem))

    def judged(self, tried: Sequence[Tried]) -> list[TrialResult]:
        """The verdicts of all that was tried. All values that a checker must see are shown to it in one run."""
        seen = []
        for expectations, ran, result in tried:
            outcomes = _outcomes(ran, result)
            pairs = [(expected, outcomes[expected.arguments]) for expected in expectations]
            seen.append(self._looked(ran.problem, pairs))
        self.accepted(
            [
                Check(ran.problem, expected.arguments, outcome.value, expected.value)
                for (expectations, ran, _), row in zip(tried, seen, strict=True)
                if ran.problem.has_checker
                for expected, outcome in zip(expectations, row, strict=True)
                if outcome.kind is OutcomeKind.VALUE
            ]
        )
        return [self._judged(*one, row) for one, row in zip(tried, seen, strict=True)]

    def _judged(
        self, expectations: Sequence[Expectation], ran: Turn, result: JobResult, seen: Sequence[Outcome]
    ) -> TrialResult:
        tolerance = self.tolerances(ran.problem)
        outcomes = _outcomes(ran, result) if any(each.also for each in expectations) else {}
        pairs = zip(expectations, seen, strict=True)
        verdicts = [self._verdict(ran.problem, *pair, outcomes, tolerance) for pair in pairs]
        shown = tuple(map(_returned, expectations, verdicts, seen))
        loads = result.load_failure is None or result.load_failure.error == NO_ENTRY_POINT
        return TrialResult(result.loaded, loads, tuple(verdicts), shown, result.denied)

    def try_programs(self, trials: Sequence[Trial]) -> list[TrialResult]:
        """Verdicts of every trial, each as though it were the only one. All of them run before one is compared."""
        turns = [turn(one.problem, one.source, [e.arguments for e in one.expectations]) for one in trials]
        return self.judged(list(zip([one.expectations for one in trials], turns, self.run(turns), strict=True)))

    def _looked(self, problem: Problem, pairs: Sequence[tuple[Expectation, Outcome]]) -> list[Outcome]:
        """Apply each test's look to the returned value, or to the exception. A value that is no plain data becomes an
        error."""
        looked, seen = [], []
        for place, (expected, outcome) in enumerate(pairs):
            if expected.relation is not None and expected.relation.raising:
                outcome = raised_outcome(problem, outcome, expected.relation.raising)
            if expected.right and outcome.kind is OutcomeKind.VALUE:
                outcome = replace(outcome, value=self.as_right(problem, expected.right, outcome.value))
            if expected.look and outcome.kind is OutcomeKind.VALUE:
                if is_data(outcome.value):
                    seen.append((place, (expected.look, outcome.value)))
                else:
                    outcome = Outcome(OutcomeKind.ERROR, error=NOT_PLAIN)
            looked.append(outcome)
        for (place, _), outcome in zip(seen, self.looked_at([asked for _, asked in seen]), strict=True):
            looked[place] = outcome
        return looked

    def _verdict(
        self,
        problem: Problem,
        expectation: Expectation,
        outcome: Outcome,
        outcomes: Mapping[bytes, Outcome],
        tolerance: Tolerances,
    ) -> Verdict:
        """`outcomes`: of all calls, where something must hold as well."""
        if outcome.kind is not OutcomeKind.VALUE:
            return _FAILURES[outcome.kind]
        if expectation.relation is not None:
            is_right = holds(expectation.relation, expectation.value, outcome.value, tolerance)
        else:
            stated = [expectation.value, *([expectation.or_value] if expectation.or_value else [])]
            asked = (problem, expectation.arguments, outcome.value)
            is_right = any(self.is_right(*asked, each, tolerance) for each in stated)
        right = expectation.value if expectation.relation is None else outcome.value
        is_right = is_right and all(
            self._is_so(problem, each, outcomes[each.arguments], each.right, tolerance)
            if each.beside
            else self._is_so(problem, each, outcome, right, tolerance)
            for each in expectation.also
        )
        return Verdict.PASS if is_right else Verdict.FAIL

    def _is_so(
        self, problem: Problem, claim: Expectation, outcome: Outcome, right: bytes, tolerance: Tolerances
    ) -> bool:
        """Whether what a call came to is as a relation claims."""
        if outcome.kind is not OutcomeKind.VALUE or claim.relation is None:
            return False
        return holds(claim.relation, claim.value, self.as_right(problem, right, outcome.value), tolerance)


def _outcomes(ran: Turn, result: JobResult) -> dict[bytes, Outcome]:
    return dict(zip(ran.calls, result.each(len(ran.calls)), strict=True))


def _looking(look: str, value: bytes) -> str:
    """The expression of a look at a value; one that raises, for what has no source."""
    try:
        tree = json.loads(value)
        source = tree_source(looked_at(tree) if any(tag in value for tag in _SEEN) else tree)
    except (ValueError, TypeError, LookupError, RecursionError):
        source = "[][0]"
    return f"(lambda {RETURNED}: {look})({source})"


def _packages(expressions: Iterable[str]) -> tuple[str, ...]:
    """What pure expressions name of the packages that are installed; without one the evaluation fails."""
    return installed(packages_in(" ".join(expressions)))


def _expression(test: WrittenTest) -> str:
    """What there is to evaluate: not the value of a literal, which may take as much room as the arguments."""
    return (test if test.value is None else replace(test, stated="None")).expression


def _as_data(test: WrittenTest, evaluated: Iterator[Expectation | Reason]) -> Expectation | Reason:
    """`evaluated`: what the expressions of tests come to that are no literals, one after another."""
    is_literal = test.arguments is not None and test.value is not None
    stated = Expectation(test.arguments or b"", test.value or b"") if is_literal else next(evaluated)
    if isinstance(stated, Reason):
        return stated
    value = b"" if test.stated is None else stated.value if test.value is None else test.value
    found = replace(stated, value=value, look=test.look, relation=test.relation, calls=test.calls, or_look=test.or_look)
    return replace(found, beside=test.beside)


def _returned(expected: Expectation, verdict: Verdict, outcome: Outcome) -> str:
    is_expected = expected.relation is not None or outcome.value == expected.value
    return "" if verdict is Verdict.PASS and is_expected else returned_text(outcome)


def plain_values(
    ran: Turn, result: JobResult, calls: Sequence[bytes], fits: Callable[[bytes], bool] = is_plain
) -> tuple[bytes | None, ...] | None:
    """What a program returned: the plain value of every call, None where it came to none; None for a program that does
    not load. `fits`: `is_data` for iterators and objects, too."""
    if not result.loaded:
        return None
    outcomes = dict(zip(ran.calls, result.outcomes, strict=True))
    return tuple(
        each.value if each.kind is OutcomeKind.VALUE and len(each.value) <= _MAX_ANSWER and fits(each.value) else None
        for each in map(outcomes.__getitem__, calls)
    )


def _stated(outcome: Outcome, other: Outcome) -> Expectation | Reason:
    """The data of one expression `((positional, ...), {name: value}, stated value)`, evaluated under two hash seeds."""
    if outcome.kind is OutcomeKind.ERROR:
        return Reason.EVALUATION_ERROR
    if outcome.kind is not OutcomeKind.VALUE:
        return Reason.EVALUATION_LIMIT
    # An argument that is code is as good as its text.
    one_text, other_text = (each.value.replace(b'{"e":', b'{"t":') for each in (outcome, other))
    if is_opaque(one_text):
        return Reason.NOT_PLAIN_DATA
    if other.kind is not OutcomeKind.VALUE or not same_value(as_seen(one_text), as_seen(other_text)):
        return Reason.UNSTABLE
    # The expression passed the strict grammar, so this is our own evaluator's output; it is still parsed as data only.
    positional, named, value = json.loads(outcome.value)["t"]
    stated = Expectation(encode([positional["t"], named["d"]]), encode(value))
    return Reason.NOT_PLAIN_DATA if is_by_identity(stated.value) else stated
