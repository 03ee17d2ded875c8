"""Which asserts of a suite are valid: every one gets a status, and the ones that count get the value that is used.

In two steps: `read_suites` makes data of the texts, before anything of a question runs; `validate` compares what the
tests state with the oracle's values, after all candidates have run. Nothing of the second decides what is run. The
oracle is given: the reference solution, or what takes its place (`expected_values.py`). Computes no reward.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import compress

from codea1_env.judging.checking import Check
from codea1_env.judging.equality import ROUNDING, is_opaque
from codea1_env.judging.judge import Expectation, Judge
from codea1_env.judging.oracle import OPAQUE, ReferenceValue, comparable
from codea1_env.judging.raised import raised_reference
from codea1_env.judging.relations.kinds import of_kind
from codea1_env.judging.relations.status import MutantValues, Place, mutant_values, related
from codea1_env.judging.relations.truth import fits, says
from codea1_env.judging.repeats import call_keys, names_of
from codea1_env.problems.problem import Problem
from codea1_env.problems.tolerances import EXACT, Tolerances
from codea1_env.reading.grammar import WrittenTest, canonical_name
from codea1_env.reading.literals import tree_source
from codea1_env.reading.pure_expressions import Reason
from codea1_env.reading.responses import Suite
from codea1_env.reading.wide.questions import idle, unnamed
from codea1_env.reading.wide.relation import LOOKED
from codea1_env.rewards import duel
from codea1_env.rewards.code_a1 import RewardConfig
from codea1_env.rewards.duel import JudgedTest, Status
from codea1_env.sandbox.inside.scope import packages_in
from codea1_env.sandbox.protocol import OutcomeKind

_PAPER_ROOM = 32
"""Tests of one suite that paper fidelity validates, in multiples of K. The released code validates all, at a time limit
for each; honest suites are far shorter (`docs/deviations.md`)."""


@dataclass(frozen=True, slots=True)
class ValidatedTest:
    """One assert with its status; its verdict on a solution is still open."""

    test: JudgedTest
    """With `verdict` None."""
    expectation: Expectation | None
    """What to run on a solution; None where the test does not count."""
    stated: Expectation | None = None
    """The test as written, for rewards that ask what it says by itself; None where the grammar rejects it or it repeats
    a call."""


@dataclass(frozen=True, slots=True)
class ReadSuite:
    """One suite with the data of its tests: all that is known of it before anything of the question has run."""

    problem: Problem
    suite: Suite
    stated: tuple[Expectation | Reason | None, ...]
    """One per test of the suite, or why it has no data; None for one that the grammar rejects or that is beyond the
    first K."""

    @property
    def usable(self) -> list[Expectation]:
        """The tests that can be asked, in order, as they are written."""
        return [test for test in self.stated if isinstance(test, Expectation)]

    @property
    def calls(self) -> tuple[bytes, ...]:
        """All that can be asked, whatever the tests state: in their order, repeated calls included."""
        return tuple([test.arguments for test in self.usable])


Answer = Callable[[Sequence[ReadSuite]], list[list[ReferenceValue]]]
"""The oracle: one value for every call of every suite."""


def read_suites(judge: Judge, suites: Sequence[tuple[Problem, Suite]], config: RewardConfig) -> list[ReadSuite]:
    """The data of every assert that the grammar accepts; one sandbox run for the whole batch. A suite that stands in it
    twice, as one object, is read once."""
    new = {(id(problem), id(suite)): (problem, suite) for problem, suite in suites}
    rooms = [_room(problem, config) for problem, _ in new.values()]
    asked = [
        [not test.reason and at < room for at, test in enumerate(suite.tests)]
        for (_, suite), room in zip(new.values(), rooms, strict=True)
    ]
    accepted = [list(compress(suite.tests, row)) for (_, suite), row in zip(new.values(), asked, strict=True)]
    read = {}
    for (key, (problem, suite)), row, items in zip(new.items(), asked, judge.evaluate(accepted), strict=True):
        tests = compress(suite.tests, row)
        stated = iter([_for_problem(problem, test, item) for test, item in zip(tests, items, strict=True)])
        read[key] = ReadSuite(problem, suite, tuple(next(stated) if yes else None for yes in row))
    return [read[id(problem), id(suite)] for problem, suite in suites]


def _for_problem(problem: Problem, test: WrittenTest, stated: Expectation | Reason) -> Expectation | Reason:
    """A question may have no function in it that a right program need not have. A checker is given the arguments as
    data, so that none may be code."""
    if unnamed(test.asks, f"{problem.question}\n{problem.starter_code}\n{problem.imports}"):
        return Reason.FORBIDDEN_CALL
    is_code = problem.has_checker and isinstance(stated, Expectation) and is_opaque(stated.arguments)
    if is_code or isinstance(stated, Reason):
        return Reason.WITH_CHECKER if is_code else stated
    return of_kind(problem.kind, problem.entry_point, test, stated)


def validate(
    judge: Judge, suites: Sequence[ReadSuite], config: RewardConfig, answer: Answer
) -> list[tuple[ValidatedTest, ...]]:
    """The status (`duel.Status`) of every assert of every suite. Raises what `answer` raises."""
    rows: dict[tuple[int, tuple[ReferenceValue, ...]], tuple[ValidatedTest, ...]] = {}
    validated = []
    answers = answer(suites)
    mutants = mutant_values(judge, _related_calls(suites, answers) if config.fidelity == "wide" else ())
    for read, values in zip(suites, answers, strict=True):
        key = (id(read), tuple(values))  # one suite may stand against many programs
        if key not in rows:
            rows[key] = _validated_suite(judge, read, values, mutants, config)
        validated.append(rows[key])
    return validated


def _related_calls(
    suites: Sequence[ReadSuite], answers: Sequence[Sequence[ReferenceValue]]
) -> list[tuple[Problem, list[bytes]]]:
    """The calls of relational tests, as far as there is a right value."""
    asked = []
    for each, values in zip(suites, answers, strict=True):
        pairs = zip(each.usable, values, strict=True)
        asked.append((each.problem, [test.arguments for test, value in pairs if test.relation and not value.failure]))
    return asked


def _validated_suite(
    judge: Judge, read: ReadSuite, values: Sequence[ReferenceValue], mutants: MutantValues, config: RewardConfig
) -> tuple[ValidatedTest, ...]:
    tolerances = (EXACT,) if config.fidelity == "paper" else (EXACT, judge.tolerances(read.problem), ROUNDING)
    looked = _looked(judge, read.usable, values)
    if read.problem.has_checker:  # all that the suite states at once; it is asked again one by one
        pairs = [pair for pair in zip(read.usable, looked, strict=True) if not pair[1].failure]
        judge.accepted([Check(read.problem, item.arguments, item.value, value.value) for item, value in pairs])
    names = names_of(read.problem, ask_reference=config.oracle == "reference")
    used, keys = iter(looked), iter(_keys(read, config, names))
    # Of several calls at once, a test counts only if it has a call that no other test which counts has, so that no more
    # tests count than there are calls.
    several = read.usable if any(test.calls for test in read.usable) else []
    every = list(dict.fromkeys([call for test in several for call in test.calls or (test.arguments,) if call]))
    every += [test.beside for test in read.usable if test.beside]
    key_of = dict(zip(every, call_keys(read.problem, every, names), strict=True)) | {b"": b""}
    known = {key_of[test.arguments] for test in several if not test.calls} | {b""}
    seen: set[bytes] = set()  # hashed by this process's own secret seed
    refused: defaultdict[bytes, set[Place]] = defaultdict(set)  # by call; likewise
    asked: list[tuple[int, bytes, Expectation, ReferenceValue]] = []  # by place in the row
    row: list[ValidatedTest] = []
    room = _room(read.problem, config)
    for test, item in zip(read.suite.tests, read.stated, strict=True):
        if item is None:
            status = Status.REJECTED if test.reason and len(row) < room else Status.SURPLUS
            row.append(_without_value(test, status, test.reason))
            continue
        if isinstance(item, Reason):
            row.append(_without_value(test, Status.REJECTED, item))
            continue
        value, key = next(used), next(keys)
        asked.append((len(row), key_of[item.beside] or key, item, value))
        if item.relation is not None:
            of_calls = {key_of[call] for call in item.calls}
            is_known = key in seen or (bool(of_calls) and of_calls <= known)
            row.append(_related(judge, read.problem, test, item, value, is_known, refused[key], mutants))
            if row[-1].expectation is not None:
                known |= of_calls
            continue
        near = None if value.failure else _nearest(judge, read.problem, item, value, tolerances)
        row.append(_validated(test, item, value, key in seen, config.correct_outputs, near))
        seen.add(key)
    return _with_claims(judge, read.problem, row, asked)


_NO_TEST = (Status.VACUOUS, Status.DUPLICATE)


def _with_claims(
    judge: Judge,
    problem: Problem,
    row: Sequence[ValidatedTest],
    asked: Sequence[tuple[int, bytes, Expectation, ReferenceValue]],
) -> tuple[ValidatedTest, ...]:
    """The row, where the first test of a call that counts asks as well what is true of the call and no test of its own.
    `asked`: place in the row, call, test and right value."""
    claimed: defaultdict[bytes, list[tuple[Expectation, ReferenceValue]]] = defaultdict(list)
    counted: dict[bytes, tuple[int, ReferenceValue]] = {}
    for place, key, item, value in asked:
        if row[place].test.status in _NO_TEST:
            claimed[key].append((replace(item, right=value.value) if item.beside else item, value))
        if _is_asked_plainly(row[place].expectation):
            counted.setdefault(key, (place, value))
    found = [*row]
    for key, (place, value) in counted.items():  # one call in other words may have another right value: `repeats.py`
        also = tuple(
            [item for item, own in claimed[key] if _is_true(judge, problem, item, own if item.beside else value)]
        )
        if (expected := row[place].expectation) is not None and also:
            found[place] = replace(row[place], expectation=replace(expected, also=also))
    return tuple(found)


def _is_asked_plainly(counted: Expectation | None) -> bool:
    """Whether it is of the returned value itself."""
    return counted is not None and not counted.look and not (counted.relation and counted.relation.raising)


def _is_true(judge: Judge, problem: Problem, claim: Expectation, reference: ReferenceValue) -> bool:
    """Whether a relation is one of the right value itself, and true."""
    relation = claim.relation
    if relation is None or relation.raising or claim.look or claim.calls or reference.failure:
        return False
    # What its libraries' numbers are instances of, their data do not tell.
    kinds = (False, True) if packages_in(problem.reference_solution or "") else (False,)
    return fits(relation, claim.value, reference.value) and all(
        says(relation, claim.value, value, judge.tolerances(problem), is_foreign=is_foreign) is True
        for value in (reference.value, *reference.others)
        for is_foreign in kinds
    )


def with_right_values(judge: Judge, rows: Sequence[tuple[Problem, Sequence[Expectation]]]) -> list[list[Expectation]]:
    """Stored tests, those that need the reference's value for their call with that. Raises UnusableReference."""
    asked = [
        (problem, [test.arguments for test in tests if judge.needs_right(problem, test)]) for problem, tests in rows
    ]
    values = judge.reference_values(asked, to_look_at=True)
    right = [dict(zip(calls, row, strict=True)) for (_, calls), row in zip(asked, values, strict=True)]
    return [
        [
            replace(test, right=known[test.arguments].value) if judge.needs_right(problem, test) else test
            for test in tests
        ]
        for (problem, tests), known in zip(rows, right, strict=True)
    ]


def _room(problem: Problem, config: RewardConfig) -> int:
    return problem.suite_size_or(config.suite_size) * (_PAPER_ROOM if config.fidelity == "paper" else 1)


def _keys(read: ReadSuite, config: RewardConfig, names: tuple[str, ...]) -> list[bytes]:
    """One per usable test, equal for those that repeat a call: in paper fidelity by its text, as in the released
    code."""
    if config.fidelity == "paper":
        pairs = zip(read.suite.tests, read.stated, strict=True)
        usable = [test for test, item in pairs if isinstance(item, Expectation)]
        return [str(test.call).encode("utf-8", "surrogatepass") for test in usable]
    return call_keys(read.problem, read.calls, names)


def _looked(judge: Judge, asked: Sequence[Expectation], values: Sequence[ReferenceValue]) -> list[ReferenceValue]:
    """The oracle's values as the tests look at them; but for relations, which are tried on other values as well."""
    looked = [
        value if item.relation is not None else comparable(value) for item, value in zip(asked, values, strict=True)
    ]
    places = [
        place for place, item in enumerate(asked) if item.look and not item.relation and not looked[place].failure
    ]
    outcomes = judge.looked_at([(asked[place].look, values[place].value) for place in places])
    for place, outcome in zip(places, outcomes, strict=True):
        if outcome.kind is not OutcomeKind.VALUE:
            looked[place] = ReferenceValue(b"", outcome.error or str(outcome.kind))
        else:
            looked[place] = ReferenceValue(b"", OPAQUE) if is_opaque(outcome.value) else ReferenceValue(outcome.value)
    return looked


def _nearest(
    judge: Judge, problem: Problem, stated: Expectation, reference: ReferenceValue, tolerances: tuple[Tolerances, ...]
) -> int | None:
    """The first of `tolerances`, what a stated value may be off by and be right, that lets it pass."""
    if problem.checker:
        tolerances = tolerances[:2]  # what rounding alone sets apart would be one more right value: of `any-of`, a list
    for place, tolerance in enumerate(tolerances):
        if judge.is_right(problem, stated.arguments, stated.value, reference.value, tolerance):
            return place
    return None


def _validated(
    test: WrittenTest,
    stated: Expectation,
    reference: ReferenceValue,
    is_duplicate: bool,
    correct_outputs: bool,
    near: int | None,
) -> ValidatedTest:
    """A test that states a value. `near`: which tolerance lets the stated value pass, None for none; a value that
    only the last one lets pass is right beside the reference's."""
    if is_duplicate:
        return _without_value(test, Status.DUPLICATE)
    if reference.failure:
        return _without_right(test, stated, reference)
    is_right, is_rounded = near is not None, near == 2
    judged = JudgedTest(
        source=test.source,
        status=Status.KEPT if is_right else Status.WRONG_EXPECTED,
        reason=duel.ROUNDING if is_rounded else "",
        call=test.call,
        stated=test.stated,
        expected=tree_source(json.loads(reference.value)),
        verdict=None,
    )
    counts = is_right or correct_outputs
    right = Expectation(stated.arguments, reference.value, stated.look, stated.value if is_rounded else b"")
    return ValidatedTest(judged, right if counts else None, stated)


_LOOKED_AT = (Reason.TOO_LARGE, Reason.EVALUATION_ERROR)
"""Why a relation is rejected that a look may decide."""


def _related(
    judge: Judge,
    problem: Problem,
    test: WrittenTest,
    stated: Expectation,
    reference: ReferenceValue,
    is_known: bool,
    earlier: set[Place],
    mutants: MutantValues,
) -> ValidatedTest:
    """A relational test. `is_known`: an earlier test states the call's value; `earlier`: what the kept ones of the call
    refuse, see `related`."""
    raising = stated.relation.raising if stated.relation is not None else ()
    if raising:
        reference = raised_reference(problem, reference, raising)
    if problem.checker:  # what is true of the reference's value need not be true of every right one
        return _without_value(test, Status.REJECTED, Reason.WITH_CHECKER)
    if is_known:
        return _without_value(test, Status.DUPLICATE)
    if reference.failure:
        return _without_right(test, stated, reference)
    others, tolerance = mutants.get((id(problem), stated.arguments), ()), judge.tolerances(problem)
    left = mutants.get((id(problem), idle(stated.arguments, canonical_name(problem.entry_point))), ())
    left = (reference.value,) if stated.beside else left
    given = reference.value, others, tolerance, earlier, left, reference.others
    status, reason = related(judge, stated, *given)
    if stated.or_look and not stated.look and (status is Status.WRONG_RELATION or reason in _LOOKED_AT):
        as_looked = replace(stated, look=stated.or_look, relation=replace(LOOKED, raising=raising), calls=())
        looked = related(judge, as_looked, *given)
        if looked[0] not in (status, Status.REJECTED) or looked[1] == Reason.NOT_PLAIN_DATA:
            (status, reason), stated = looked, as_looked
    if status is not Status.KEPT:
        return _without_value(test, status, reason, stated if status is Status.WRONG_RELATION else None)
    judged = JudgedTest(test.source, Status.KEPT, "", test.call, test.claim, test.claim, None)
    asked = replace(stated, right=reference.value) if judge.needs_right(problem, stated) else stated
    return ValidatedTest(judged, asked, stated)


def _without_right(test: WrittenTest, stated: Expectation, reference: ReferenceValue) -> ValidatedTest:
    status = Status.FLAKY if reference.failure == "flaky" else Status.RAISES
    return _without_value(test, status, reference.failure, stated)


def _without_value(
    test: WrittenTest, status: Status, reason: str = "", as_written: Expectation | None = None
) -> ValidatedTest:
    return ValidatedTest(JudgedTest(test.source, status, reason, test.call, test.claim, None, None), None, as_written)
