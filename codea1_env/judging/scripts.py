"""Judges programs by a test script that runs beside them in one process: unsealed, for evaluation.

A test that mocks, draws or reads a file is no data, so program and script share a process, and the script's outcome is
taken. A program may forge it, as in every grader of this kind; whatever stands on it says `unsealed`, and rewards do
only with `allow_unsealed` (`RewardConfig`). Some forgeries are seen: a script's tests are counted from its text, and
where one is missing the program has not passed.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from codea1_env.judging.schedule import with_imports
from codea1_env.problems.problem import Problem
from codea1_env.reading.parsing import Unparsable, parse
from codea1_env.sandbox.protocol import CallsJob, Limits, Outcome, OutcomeKind, Sandbox
from codea1_env.sandbox.worlds import SCRIPTS

UNSEALED = "unsealed: programs and test scripts shared a process, and a program can forge its outcome"
"""What every result says that stands on a script."""
UNSEALED_REWARDS = "rewards by test scripts are unsealed: a program can forge what it is paid"
"""What a run says whose rewards may (`RewardConfig.allow_unsealed`)."""
CALLS = 20
"""Time limits of a problem, each of one call, that a whole script has, as all of a problem's tests have together."""
_MOST_S = 60.0
"""CPU seconds that a script has at most, unless one call may take longer."""
_SOFT = 0.9
"""Of its time a script is stopped from within, so that what its tests came to until then is told."""
_SCRIPT = """
def _codea1_script(script):
    import builtins, sys
    return sys.modules["script_tests"].run_script(builtins.globals(), "solution", script, {seconds})
"""
_OUTCOMES = ("passed", "failed", "skipped", "timeout", "not run")


@dataclass(frozen=True, slots=True)
class ScriptTest:
    """What one test of a script came to."""

    name: str
    """`Class.method`, a function's name, or `script` of a script without tests."""
    outcome: str
    """passed, failed, skipped, timeout, or `not run`: time was over before, or its class did not set up."""
    why: str = ""
    """What the test said, at most 200 characters. Untrusted text."""


@dataclass(frozen=True, slots=True)
class ScriptVerdict:
    """What a program came to under a script."""

    tests: tuple[ScriptTest, ...] = ()
    failure: str = ""
    """Why there are no outcomes: the program did not load, the process crashed, time or memory was over."""

    @property
    def passed(self) -> bool:
        """Whether no test failed and one passed: a skipped test is no failure, as in unittest."""
        outcomes = {test.outcome for test in self.tests}
        return not self.failure and "passed" in outcomes and outcomes <= {"passed", "skipped"}

    @property
    def told(self) -> str:
        """In a few words."""
        bad = [test for test in self.tests if test.outcome not in ("passed", "skipped")]
        first = f", {bad[0].name} first: {bad[0].outcome} {bad[0].why}".rstrip() if bad else ""
        counted = f"{sum(test.outcome == 'passed' for test in self.tests)} of {len(self.tests)} tests passed{first}"
        return self.failure or counted


def judge_scripts(sandbox: Sandbox, items: Sequence[tuple[Problem, str]]) -> list[ScriptVerdict]:
    """What each program comes to; `items`: problems with a `test_script`, and a program. Raises SandboxError."""
    results = sandbox.run([_job(problem, source) for problem, source in items])
    return [
        _verdict(result.each(1)[0], expected_tests(problem.test_script))
        for (problem, _), result in zip(items, results, strict=True)
    ]


def _job(problem: Problem, source: str) -> CallsJob:
    limit_s = max(problem.time_limit_s, min(CALLS * problem.time_limit_s, _MOST_S))
    limits = Limits(limit_s, limit_s, problem.memory_mb, strikes=1)
    return script_job(with_imports(problem, source), problem.test_script, limits, problem.packages)


def script_job(source: str, script: str, limits: Limits, packages: tuple[str, ...] = ()) -> CallsJob:
    """A test script in the candidate's own process: the value is a list of `[test, outcome, why]`."""
    epilogue, call = _SCRIPT.format(seconds=_SOFT * limits.time_limit_s), json.dumps([[script], []]).encode()
    return CallsJob(source, "_codea1_script", (call,), limits, packages=packages, epilogue=epilogue, world=SCRIPTS)


def expected_tests(script: str) -> frozenset[str]:
    """Names of the tests that the script's text defines, as `ScriptTest.name` has them, without their parameters; not
    what is made when it runs: a generated method, a class that a function returns."""
    try:
        body = parse(script).body
    except Unparsable:
        return frozenset()
    classes = {node.name: node for node in body if isinstance(node, ast.ClassDef)}
    lines = {name: [*_line(name, classes)] for name in classes}
    grouped = [
        name for name in classes if any(node is None and each.endswith("TestCase") for each, node in lines[name])
    ]
    functions = _tests([] if grouped else body)
    grouped = grouped or [name for name in classes if name.startswith("Test")]
    methods = {f"{name}.{test}" for name in grouped for _, node in lines[name] if node for test in _tests(node.body)}
    return frozenset(functions | methods)


def _tests(body: Sequence[ast.stmt]) -> set[str]:
    kinds = ast.FunctionDef | ast.AsyncFunctionDef
    return {node.name for node in body if isinstance(node, kinds) and node.name.startswith("test")}


def _line(
    name: str, classes: dict[str, ast.ClassDef], below: frozenset[str] = frozenset()
) -> Iterator[tuple[str, ast.ClassDef | None]]:
    """A class and all that it derives from, with what the script defines of it; None: it is from elsewhere."""
    node = None if name in below else classes.get(name)
    yield name, node
    for base in node.bases if node else ():
        named = base.id if isinstance(base, ast.Name) else base.attr if isinstance(base, ast.Attribute) else ""
        yield from _line(named, classes, below | {name})


def _verdict(outcome: Outcome, expected: frozenset[str]) -> ScriptVerdict:
    if outcome.kind is not OutcomeKind.VALUE:
        return ScriptVerdict(failure=outcome.error if outcome.kind is OutcomeKind.ERROR else str(outcome.kind))
    try:
        rows = json.loads(outcome.value)
        tests = tuple(ScriptTest(str(name), str(came_to), str(why)) for name, came_to, why in rows)
    except (ValueError, TypeError, RecursionError):  # a program may have written it itself
        return ScriptVerdict(failure="the process wrote no outcomes")
    if any(test.outcome not in _OUTCOMES for test in tests):
        return ScriptVerdict(failure="the process wrote no outcomes")
    if missing := sorted(expected - {test.name.partition("[")[0] for test in tests}):
        why = next((f": {test.why}" for test in tests if test.outcome == "failed"), "")
        return ScriptVerdict(tests, f"{len(missing)} tests of the script have no outcome, {missing[0]} first{why}")
    return ScriptVerdict(tests)
