"""How the evaluator that was released with the paper decides, for comparison: verdicts by the candidate's own process.

Written from what it does, not from its code: a test's value comes from the reference, in a namespace that also holds
its text as `spec`; any comparison counts as `==`; then program, call and value share one namespace, the program's
own objects answer `==`, and a pass is a mark on standard output. Never paid by the library: what it lets through is
what this is for. Runs in our sandbox, so that a cheat harms nothing but its own verdict.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from codea1_env import Problem, SandboxError
from codea1_env.judging.schedule import limits_of, with_imports
from codea1_env.problems.kinds import program_job
from codea1_env.rewards.duel import Status
from codea1_env.sandbox.protocol import Limits, OutcomeKind, Sandbox

MARK = "__PASS__"
_AT_A_TIME = 256

_REFERENCE = """
import ast, json, sys
given = json.loads(sys.stdin.read())
spec = given["reference"]
exec(spec)
found = []
for text in given["tests"]:
    try:
        tree = ast.parse(text).body[0].test
        call, stated = ast.unparse(tree.left), ast.unparse(tree.comparators[0])
        value = eval(call)
        found.append([call, repr(value), bool(value == eval(stated))])
    except Exception:
        found.append(None)
print(json.dumps(found))
"""
_CANDIDATE = f"""
import json, sys
given = json.loads(sys.stdin.read())
expected = eval(given["value"])
exec(given["program"])
if eval(given["call"]) == expected:
    print({MARK!r})
"""


@dataclass(frozen=True, slots=True)
class Released:
    """What it makes of one question's programs and tests."""

    statuses: Mapping[str, Status]
    """Of every test's text: kept, wrong_expected (its value is then corrected) or raises."""
    passes: Mapping[tuple[str, str], bool]
    """Of (program, test), for tests that do not raise: whether the mark was seen."""


def judge_as_released(problem: Problem, programs: Sequence[str], tests: Sequence[str], sandbox: Sandbox) -> Released:
    """Every program on every test, each pair in a process of its own.

    Raises SandboxError where infrastructure fails or the reference prints nothing that can be read.
    """
    limits = limits_of(problem)
    given = json.dumps({"reference": with_imports(problem, problem.reference_solution or ""), "tests": list(tests)})
    (result,) = sandbox.run([program_job(_REFERENCE, (given,), limits)])
    outcome = result.outcomes[0] if result.loaded else None
    if outcome is None or outcome.kind is not OutcomeKind.VALUE:
        raise SandboxError(f"{problem.problem_id}: the reference must run on its tests, got {result}")
    values = dict(zip(tests, json.loads(json.loads(outcome.value)), strict=True))
    pairs = [(program, test) for program in programs for test in tests if values[test] is not None]
    jobs = [
        program_job(_CANDIDATE, (json.dumps({"program": program, "call": call, "value": value}),), Limits())
        for program, (call, value, _) in ((with_imports(problem, one), values[test]) for one, test in pairs)
    ]
    results = [result for at in range(0, len(jobs), _AT_A_TIME) for result in sandbox.run(jobs[at : at + _AT_A_TIME])]
    passes = {
        pair: result.loaded and result.outcomes[0].kind is OutcomeKind.VALUE and MARK in str(result.outcomes[0].value)
        for pair, result in zip(pairs, results, strict=True)
    }
    return Released({test: _status(value) for test, value in values.items()}, passes)


def _status(value: list[object] | None) -> Status:
    if value is None:
        return Status.RAISES
    return Status.KEPT if value[2] else Status.WRONG_EXPECTED
