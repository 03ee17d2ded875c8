"""Which value a call must return: asked of the reference, or, where there is none, of golden tests or of the solutions.

    reference  what the reference returns, if it repeats itself
    golden     what the question's golden tests say; other calls have no value
    majority   what more of the question's solutions return than anything else, two at least
    dual       what the consensus set of CodeT returns: solutions that pass the same tests, weighed by both numbers

A call without a value makes no valid test. Solutions are untrusted: one that cheats has one vote on values that others
must agree with. In the last three modes the reference says only how wrong the oracle was (`oracle_error`). Does not
promise that a majority is right.
"""

from __future__ import annotations

import itertools
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from codea1_env.errors import UnusableReference
from codea1_env.judging.equality import call_key, same_value
from codea1_env.judging.judge import Expectation, Judge
from codea1_env.judging.oracle import MOST_HANGS, ReferenceValue
from codea1_env.judging.relations.truth import holds
from codea1_env.judging.validation import ReadSuite
from codea1_env.problems.problem import Problem
from codea1_env.problems.tolerances import EXACT
from codea1_env.reading.wide.relation import Relation
from codea1_env.rewards.code_a1 import OracleMode

_log = logging.getLogger(__name__)
NO_VALUE = ReferenceValue(b"", "no_value")
Answers = Sequence[Sequence[bytes | None]]
"""`[solution][call]`, of the solutions that load: the plain value, None where the call came to none."""
_Claim = tuple[bytes, bytes, Relation | None]
"""A call, and what a test states about it."""


@dataclass(frozen=True, slots=True)
class OracleError:
    """How an oracle compares with the reference on the calls that it was asked."""

    asked: int
    """Calls, repeats included."""
    wrong: int
    """It has a value where the reference has another or none."""
    missing: int
    """It has none where the reference has one."""

    @property
    def share(self) -> float:
        """Wrong and missing values over all calls, in [0, 1]; 0 where nothing was asked."""
        return (self.wrong + self.missing) / self.asked if self.asked else 0.0


@dataclass(frozen=True, slots=True)
class Jury:
    """One question, as an oracle meets it."""

    problem: Problem
    suites: int
    """How many suites ask."""
    solutions: Sequence[Sequence[tuple[bytes | None, ...] | None]] = ()
    """`solutions[i][suite]`: what solution i returned for the calls of each suite, where the solutions are the oracle;
    None where it did not load."""
    golden: tuple[Expectation, ...] = ()
    """Its golden tests, where they are the oracle."""


class BatchOracle:
    """The oracle of one batch of questions, whose suites ask in the order of the questions."""

    def __init__(self, judge: Judge, mode: OracleMode, juries: Sequence[Jury]) -> None:
        self._judge = judge
        self._mode = mode
        self._juries = juries
        self.errors: list[OracleError | None] = [None] * len(juries)
        """Per question, once it was asked: None in the mode `reference` and where there is no working reference."""

    def answer(self, asked: Sequence[ReadSuite]) -> list[list[ReferenceValue]]:
        """The value of every call of every suite. Raises UnusableReference in the mode `reference`."""
        if self._mode == "reference":
            calls = [(suite.problem, suite.calls) for suite in asked]
            return self._judge.reference_values(calls, MOST_HANGS, to_look_at=True)
        remaining = iter(asked)
        groups = [list(itertools.islice(remaining, jury.suites)) for jury in self._juries]
        values = [self._values(*pair) for pair in zip(self._juries, groups, strict=True)]
        self._measure(groups, values)
        return list(itertools.chain.from_iterable(values))

    def _values(self, jury: Jury, group: Sequence[ReadSuite]) -> list[list[ReferenceValue]]:
        if self._mode == "golden":
            return [golden_values(suite.calls, jury.golden) for suite in group]
        # Who fails to load for one suite, by chance, votes for none.
        voters = [rows for rows in jury.solutions if None not in rows]
        answers = [[row for rows in voters if (row := rows[number]) is not None] for number in range(len(group))]
        if self._mode == "dual":
            return dual_values([suite.usable for suite in group], answers)
        return [majority_values(len(suite.calls), rows) for suite, rows in zip(group, answers, strict=True)]

    def _measure(
        self, groups: Sequence[Sequence[ReadSuite]], values: Sequence[Sequence[Sequence[ReferenceValue]]]
    ) -> None:
        measured = [i for i, jury in enumerate(self._juries) if jury.problem.reference_solution is not None]
        suites = [(suite.problem, suite.calls) for i in measured for suite in groups[i]]
        try:
            truths = iter(self._judge.reference_values(suites, MOST_HANGS))
        except UnusableReference as error:
            _log.warning("the error of the oracle %r is not known for this batch: %s", self._mode, error)
            return
        for i in measured:
            calls = [call for suite in groups[i] for call in suite.calls]
            truth = [value for _ in groups[i] for value in next(truths)]
            is_right = partial(self._is_right, self._juries[i].problem, calls)
            self.errors[i] = oracle_error(list(itertools.chain.from_iterable(values[i])), truth, is_right)

    def _is_right(self, problem: Problem, calls: Sequence[bytes], place: int, value: bytes, right: bytes) -> bool:
        tolerance = self._judge.tolerances(problem)
        return same_value(right, value) or self._judge.is_right(problem, calls[place], value, right, tolerance)


def golden_values(calls: Sequence[bytes], golden: Sequence[Expectation]) -> list[ReferenceValue]:
    """The value that golden tests state for each call; none where no test makes it, or where two contradict."""
    known: dict[bytes, ReferenceValue] = {}
    for test in golden:
        value = known.setdefault(call_key(test.arguments), ReferenceValue(test.value))
        if not same_value(value.value, test.value):
            known[call_key(test.arguments)] = NO_VALUE
    return [known.get(call_key(call), NO_VALUE) for call in calls]


def majority_values(calls: int, answers: Answers) -> list[ReferenceValue]:
    """Per call the value that more solutions return than any other, two at least; a tie has none. What came to no
    plain value (an exception, a time-out, an object) votes together, for there being no value."""
    return [_elected([row[call] for row in answers], least=2) for call in range(calls)]


def dual_values(suites: Sequence[Sequence[Expectation]], answers: Sequence[Answers]) -> list[list[ReferenceValue]]:
    """CodeT's dual execution agreement (arXiv 2207.10397) over all suites of one question; `answers[suite]`.

    Solutions that pass exactly the same tests, as written, form a set; its score is the number of its solutions times
    that of the different tests they pass. The values are those that more members of the best set return than any other;
    none where two sets share the best score, or nobody passes a test.
    """
    members = len(answers[0]) if answers else 0
    passed: list[set[_Claim]] = [set() for _ in range(members)]
    for suite, rows in zip(suites, answers, strict=True):
        for tests, row in zip(passed, rows, strict=True):
            tests.update(
                (call_key(test.arguments), test.value, test.relation)
                for test, value in zip(suite, row, strict=True)
                if value is not None and _passes(test, value)
            )
    sets: dict[frozenset[_Claim], list[int]] = {}  # hashed by this process's own secret seed
    for solution, tests in enumerate(passed):
        sets.setdefault(frozenset(tests), []).append(solution)
    scores = {tests: len(tests) * len(solutions) for tests, solutions in sets.items()}
    best = max(scores.values(), default=0)
    winners = [tests for tests, score in scores.items() if score == best]
    if best == 0 or len(winners) > 1:
        return [[NO_VALUE] * len(suite) for suite in suites]
    consensus = sets[winners[0]]
    return [
        [_elected([rows[solution][call] for solution in consensus], least=1) for call in range(len(suite))]
        for suite, rows in zip(suites, answers, strict=True)
    ]


def _passes(test: Expectation, value: bytes) -> bool:
    if test.relation is None:
        return same_value(test.value, value)
    return not test.relation.raising and holds(test.relation, test.value, value, EXACT)


def oracle_error(
    values: Sequence[ReferenceValue],
    truth: Sequence[ReferenceValue],
    is_right: Callable[[int, bytes, bytes], bool] = lambda _, value, right: same_value(right, value),
) -> OracleError:
    """Compare an oracle's values with the reference's for the same calls. A value where the reference has none, because
    it raises or does not repeat itself, is wrong. `is_right`: of the call's place, a value and the reference's."""
    wrong = missing = 0
    for place, (value, right) in enumerate(zip(values, truth, strict=True)):
        if value.failure:
            missing += not right.failure
        else:
            wrong += bool(right.failure) or not is_right(place, value.value, right.value)
    return OracleError(len(values), wrong, missing)


def _elected(votes: Iterable[bytes | None], least: int) -> ReferenceValue:
    """The value with the most votes, as the first who gave it wrote it. Votes hold plain data only."""
    counts: Counter[bytes | None] = Counter()  # hashed by this process's own secret seed
    for vote in votes:
        same = (value for value in counts if vote is not None and value is not None and same_value(value, vote))
        counts[vote if vote in counts else next(same, vote)] += 1
    (winner, most), *others = [*counts.most_common(2), (None, 0)]
    if winner is None or most < least or most == others[0][1]:
        return NO_VALUE
    return ReferenceValue(winner)
