"""From drafts to problems: values that are still to be computed are, and every reference runs against its own tests.

A test that the reference fails leaves its problem; a problem whose reference does not load, or passes none of its
tests, is not usable, unless the function is the oracle and not the tests (UnLeakedTestBench): then tests that state
another value get the function's. The report says all of it. Does not read files: see `problems/sources`.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from codea1_env.errors import UnusableReference
from codea1_env.judging.judge import Expectation, Judge, Trial, TrialResult
from codea1_env.judging.oracle import ReferenceValue
from codea1_env.judging.problems.own_tests import OwnTests
from codea1_env.judging.scripts import ScriptVerdict, judge_scripts
from codea1_env.problems.check_functions import Extracted, LeftOut, reasons
from codea1_env.problems.problem import Problem
from codea1_env.problems.sources.draft import Draft, Unreadable, packages_of
from codea1_env.reading.grammar import MAX_CASE, read_case
from codea1_env.reading.literals import tree_source
from codea1_env.reading.parsing import Unparsable, parse
from codea1_env.reading.test_case import TestCase
from codea1_env.rewards.duel import Verdict
from codea1_env.sandbox.protocol import Sandbox

BATCH_PROBLEMS = 8
"""Problems that share a sandbox run."""


@dataclass(frozen=True, slots=True)
class Imported:
    """What became of one row."""

    problem_id: str
    problem: Problem | None
    """With the tests that its reference passes; None where it is not usable."""
    why_not: str = ""
    """Why it is not usable."""
    left_out: tuple[LeftOut, ...] = ()
    """What the set's tests assert and no test case can say."""
    failed: tuple[tuple[TestCase, Verdict], ...] = ()
    """The tests that the problem's own reference does not pass, and its verdicts."""
    script: ScriptVerdict | None = None
    """What the reference came to under the set's test script, where the problem was to keep that."""

    @property
    def status(self) -> str:
        """all (of the set's tests), some, none (the reference loads), unchecked (no reference), or unusable."""
        if self.problem is None:
            return "unusable"
        if self.problem.test_script:
            return "all"
        if self.problem.reference_solution is None:
            return "unchecked"
        has_tests = bool(self.problem.golden_tests or self.problem.hidden_tests)
        return ("some" if self.left_out or self.failed else "all") if has_tests else "none"

    def to_json(self) -> str:
        """One line of the report."""
        record: dict[str, Any] = {"problem_id": self.problem_id, "status": self.status}
        if self.problem is None:
            record["why_not"] = self.why_not
        else:
            record |= {kind: len(getattr(self.problem, kind)) for kind in ("golden_tests", "hidden_tests")}
            record["tolerance"] = self.problem.tolerances.plain
        if self.script is not None:
            record["script"] = self.script.told
        record["failed"] = [[str(case)[:500], verdict.value] for case, verdict in self.failed]
        record["left_out"] = reasons(self.left_out)
        record["left_out_examples"] = [each.source for each in self.left_out[:3]]
        return json.dumps(record, ensure_ascii=True)


def import_drafts(drafts: Iterable[Draft | Unreadable], sandbox: Sandbox) -> Iterator[Imported]:
    """One for each draft, in order; ids that repeat are not usable. A test script is kept where the reference passes
    it. Raises SandboxError."""
    judge = Judge(sandbox)
    seen: set[str] = set()
    waiting = iter(drafts)
    while batch := list(islice(waiting, BATCH_PROBLEMS)):
        ready = [_valued(draft, judge) if isinstance(draft, Draft) else draft for draft in batch]
        drawn = [draft for draft in ready if isinstance(draft, Draft)]
        checked = iter(_with_scripts(drawn, _checked(drawn, judge), sandbox))
        for draft in ready:
            if isinstance(draft, Unreadable):
                imported = Imported(draft.problem_id, None, draft.reason)
            else:
                imported = next(checked)
            if imported.problem_id in seen:
                imported = Imported(imported.problem_id, None, "the problem_id repeats that of an earlier row")
            seen.add(imported.problem_id)
            yield imported


def _with_scripts(drafts: Sequence[Draft], found: Sequence[Imported], sandbox: Sandbox) -> list[Imported]:
    """Those whose reference passes its whole script can be judged by that, whatever the sealed tests are worth."""
    known = [draft.problem for draft in drafts if draft.problem.test_script and draft.problem.reference_solution]
    verdicts = judge_scripts(sandbox, [(problem, problem.reference_solution or "") for problem in known])
    by_id = dict(zip(map(id, known), verdicts, strict=True))
    rows = []
    for draft, imported in zip(drafts, found, strict=True):
        verdict = by_id.get(id(draft.problem))
        if verdict is not None and verdict.passed:
            alone = replace(draft.problem, golden_tests=(), hidden_tests=())
            imported = replace(imported, problem=imported.problem or alone, script=verdict)
        elif verdict is not None:
            has_tests = imported.problem and (imported.problem.golden_tests or imported.problem.hidden_tests)
            problem = replace(imported.problem, test_script="") if imported.problem and has_tests else None
            why = imported.why_not or "no test that can be read"
            why = "" if problem else f"{why}; its test script: {verdict.told}"
            imported = replace(imported, problem=problem, why_not=why, script=verdict)
        rows.append(imported)
    return rows


def _valued(draft: Draft, judge: Judge) -> Draft:
    """The draft with the values that its scripts' own reference functions return."""
    problem, left_out = draft.problem, list(draft.left_out)
    for script in draft.unvalued:
        values = _reference_values(script, problem, judge)
        tests = [TestCase(call, value) for call, value in values.items() if isinstance(value, str)]
        left_out += [value for value in values.values() if isinstance(value, LeftOut)]
        granted = script.reference_tolerance if any(map(_holds_float, tests)) else 0.0
        kept = "golden_tests" if script.are_golden else "hidden_tests"
        valued: dict[str, Any] = {kept: (*getattr(problem, kept), *tests)}
        problem = replace(problem, tolerance=max(problem.tolerance, granted), **valued)
    return replace(draft, problem=problem, unvalued=(), left_out=tuple(left_out))


def _reference_values(script: Extracted, problem: Problem, judge: Judge) -> dict[str, str | LeftOut]:
    """{call: source of its value, or why it has none}, by running the script's reference in the sandbox."""
    asked = replace(
        problem,
        entry_point=script.reference_name,
        reference_solution=script.reference,
        imports="",
        packages=packages_of(parse(script.reference)),
    )
    tests = [read_case(TestCase(call, "None"), problem.entry_point) for call in script.unvalued]
    (stated,) = judge.evaluate([tests])
    calls = [each.arguments for each in stated if isinstance(each, Expectation)]
    try:
        answers = iter(judge.reference_values([(asked, calls)])[0])
    except UnusableReference as error:
        return {call: LeftOut(call[:200], f"the script's reference: {error}") for call in script.unvalued}
    values: dict[str, str | LeftOut] = {}
    for call, each in zip(script.unvalued, stated, strict=True):
        answer = next(answers) if isinstance(each, Expectation) else ReferenceValue(b"", each)
        if answer.failure:
            shown = "no plain data, or too much of it" if answer.failure == "opaque" else answer.failure
            values[call] = LeftOut(call[:200], f"the script's reference: {shown}")
        else:
            values[call] = tree_source(json.loads(answer.value))
    return values


def _holds_float(case: TestCase) -> bool:
    try:
        module = parse(case.expected, MAX_CASE)
    except Unparsable:  # too large a test, which is left out like any other that cannot be read
        return False
    return any(isinstance(node, ast.Constant) and isinstance(node.value, float) for node in ast.walk(module))


def _checked(drafts: Sequence[Draft], judge: Judge) -> list[Imported]:
    """Every draft's reference on those of the draft's tests that can be read."""
    found = OwnTests(judge).readable([draft.problem for draft in drafts])
    drafts = [
        replace(draft, problem=each.problem, left_out=(*draft.left_out, *each.left_out))
        for draft, each in zip(drafts, found, strict=True)
    ]
    usable = [{test.case: test.expectation for test in each.tests if test.expectation} for each in found]
    trials = [
        Trial(draft.problem, draft.problem.reference_solution or "", tuple(expectations.values()))
        for draft, expectations in zip(drafts, usable, strict=True)
    ]
    results = judge.try_programs(trials)
    return [
        _imported(draft, [*expectations], result, _corrected(draft, expectations, result, judge))
        for draft, expectations, result in zip(drafts, usable, results, strict=True)
    ]


def _corrected(
    draft: Draft, expectations: dict[TestCase, Expectation], result: TrialResult, judge: Judge
) -> dict[TestCase, TestCase]:
    """Where the function is the oracle: the tests that state another value than it returns, with its value."""
    if draft.are_tests_trusted or not result.executes:
        return {}
    wrong = [case for case, verdict in zip(expectations, result.verdicts, strict=True) if verdict is Verdict.FAIL]
    (values,) = judge.reference_values([(draft.problem, [expectations[case].arguments for case in wrong])])
    return {
        case: TestCase(case.call, tree_source(json.loads(value.value)))
        for case, value in zip(wrong, values, strict=True)
        if not value.failure
    }


def _imported(
    draft: Draft, cases: Sequence[TestCase], result: TrialResult, corrected: dict[TestCase, TestCase]
) -> Imported:
    """A draft whose reference has run on `cases`. `corrected`: what takes the place of some that it failed."""
    problem = draft.problem
    failed = tuple(pair for pair in zip(cases, result.verdicts, strict=True) if pair[1] is not Verdict.PASS)
    if problem.reference_solution is None:
        return Imported(problem.problem_id, problem, "", draft.left_out)
    if not result.executes:
        why_not = "the reference does not load or does not define the entry point"
        return Imported(problem.problem_id, None, why_not, draft.left_out, failed)
    if cases and len(failed) == len(cases) and draft.are_tests_trusted:
        return Imported(problem.problem_id, None, "the reference passes none of its tests", draft.left_out, failed)
    passed = set(cases) - {case for case, _ in failed}
    golden = [corrected.get(case, case) for case in problem.golden_tests if case in passed or case in corrected]
    hidden = tuple(case for case in problem.hidden_tests if case in passed)
    problem = replace(problem, golden_tests=tuple(dict.fromkeys(golden)), hidden_tests=hidden)
    return Imported(problem.problem_id, problem, "", draft.left_out, failed)
