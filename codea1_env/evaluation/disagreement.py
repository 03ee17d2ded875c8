"""Where a question's test script and the sealed judge differ on a program, and why by kind, for `--judge scripts`.

Does not say which of them is right: a script may test more than data can, and what passes it may be forged.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from codea1_env.arena.match import Grade
from codea1_env.judging.scripts import ScriptVerdict
from codea1_env.problems.problem import Problem
from codea1_env.rewards.duel import Verdict

_RAISED = re.compile(r"[A-Za-z_][\w.]{0,60}(?:Error|Exception|Warning|Exit)\b", re.ASCII)
_TOLD = 300
"""Characters of what is told of a program."""
_SEALED = {
    Verdict.FAIL: "another value",
    Verdict.ERROR: "raises, or returns what is no data",
    Verdict.TIMEOUT: "time",
    Verdict.CRASH: "crash",
}


def disagreement(problem: Problem, grade: Grade, verdict: ScriptVerdict) -> dict[str, str] | None:
    """Which judge the program passes, by what kind of reason it fails the other, and what that one tells. None where
    they agree."""
    if grade.all_passed is verdict.passed:
        return None
    if grade.all_passed:
        return {"passes": "sealed", "why": _why_of_script(verdict), "told": verdict.told[:_TOLD]}
    return {"passes": "scripts"} | _of_sealed(problem, grade)


def as_rows(disagree: Mapping[str, Sequence[Mapping[str, str] | str]]) -> list[list[object]]:
    """By judge and reason: what a program passes, why it fails the other, how many do, the first's question. Journals
    begun by earlier versions have texts."""
    kinds: dict[tuple[str, str], list[str]] = {}
    for problem_id, programs in disagree.items():
        for each in programs:
            if isinstance(each, str):
                kind = "sealed" if each.startswith("sealed") else "scripts", "an earlier version has not said"
            else:
                kind = each["passes"], each["why"]
            kinds.setdefault(kind, []).append(problem_id)
    rows = sorted(kinds.items(), key=lambda kind: (-len(kind[1]), kind[0]))
    return [[passes, why, len(found), found[0]] for (passes, why), found in rows]


def _of_sealed(problem: Problem, grade: Grade) -> dict[str, Any]:
    tests = (*problem.golden_tests, *problem.hidden_tests)
    failed = [(test, one) for test, one in zip(tests, grade.verdicts, strict=True) if one not in (Verdict.PASS, None)]
    first = f"{len(failed)} of {len(tests)} tests, first: {failed[0][0]}"[:_TOLD] if failed else ""
    if grade.denied:
        why = f"the sandbox denies it: {', '.join(sorted(grade.denied))}"
    elif not grade.executes or not failed:
        why = "does not load"
    else:
        why = _SEALED[failed[0][1]]
    return {"why": why, "told": first}


def _why_of_script(verdict: ScriptVerdict) -> str:
    bad = [test for test in verdict.tests if test.outcome not in ("passed", "skipped")]
    if verdict.failure and verdict.tests:
        return "tests without an outcome"
    if verdict.failure:
        return {"timeout": "time"}.get(verdict.failure, f"does not run: {verdict.failure}")
    if not bad:
        return "no test ran"
    if bad[0].outcome == "failed":
        raised = _RAISED.search(bad[0].why)
        return f"a test fails: {raised[0]}" if raised else "a test fails"
    return "time" if bad[0].outcome == "timeout" else "its class does not set up"
