"""A Test LLM's suites as the field measures them, on a function small enough to count everything by hand."""

import dataclasses

import pytest

from codea1_env.errors import ConfigurationError, SandboxError, UnusableReference
from codea1_env.evaluation.metrics import SuiteResult
from codea1_env.evaluation.suite_quality import SuiteMeter
from codea1_env.problems import Problem, TestCase, bundled_problems
from codea1_env.sandbox import LocalSandbox

# Its mutants: `not x < 0`, `x <= 0` (equivalent), `x > 0`, `x < 1` and `x < -1`, `return None` twice, `+x`.
ABSOLUTE = Problem(
    "absolute",
    "f(x): the absolute value.",
    "f",
    reference_solution="def f(x):\n    if x < 0:\n        return -x\n    return x",
    golden_tests=(TestCase("f(3)", "3"), TestCase("f(-1)", "1"), TestCase("f(1.0)", "1.0"), TestCase("f(0.5)", "0.5")),
)


def measured(sandbox: LocalSandbox, *suites: str, k: int = 3) -> list[SuiteResult]:
    ((found, _),) = SuiteMeter(sandbox, suite_size=k).measure([(ABSOLUTE, suites)])
    return found


@pytest.mark.parametrize(
    ("suite", "tests", "correct", "killed", "lines", "branches"),
    [
        # f(3): killed are `not x < 0` and `x > 0`, which return -3, and the second return None.
        ("assert f(3) == 3", 1, 1, 3, 2, 1),
        # f(-1): `not x < 0`, `x > 0` and `x < -1` return -1, as +x does; the first return None.
        ("assert f(-1) == 1", 1, 1, 5, 2, 1),
        ("assert f(-1) == 1\nassert f(0.5) == 0.5", 2, 2, 7, 3, 2),
        ("assert f(3) == 3\nassert f(3) == 3", 2, 2, 3, 2, 1),  # a test that repeats another is one
        ("assert f(3) == 3\nassert f(-1) == -1", 2, 1, 0, 3, 2),  # one wrong value: not valid
        ("assert f(3) == 3\nassert f() == 3", 2, 1, 0, 2, 1),  # a call that raises
        ("assert f(3) == 3\nassert f(3) > 2", 2, 1, 0, 2, 1),  # outside the grammar
        ("assert f(3) == 3\nassert f(3) == 3\nassert f(3) == 3\nassert f(-1) == 5", 3, 3, 3, 2, 1),  # the first k
        ("no test at all", 0, 0, 0, 0, 0),
        ("", 0, 0, 0, 0, 0),
    ],
)
def test_a_suite_is_worth_what_can_be_counted_by_hand(
    sandbox: LocalSandbox, suite: str, tests: int, correct: int, killed: int, lines: int, branches: int
) -> None:
    (found,) = measured(sandbox, suite)
    assert found == SuiteResult(3, tests, correct, 7, killed, lines=3, lines_run=lines, branches=2,
                                branches_taken=branches)  # fmt: skip


@pytest.mark.parametrize(
    ("suite", "tests", "correct", "killed"),
    [
        ("def test_f():\n    assert abs(f(-1) - 1) < 0.1", 1, 1, 5),
        ("class T:\n    def test_f(self):\n        self.assertGreater(f(-7), 6); self.assertEqual(f(3), 3)", 2, 2, 5),
        ("assert f(3) == 3\nassert f(3) >= -100", 2, 1, 0),  # vacuous
        ("assert f(3) == 3\nassert f(-1) > 0", 2, 1, 0),  # that a number is positive says too little
        ("assert f(3) == 3\nassert f(3) > 3", 2, 1, 0),
    ],
)
def test_a_suite_that_is_read_wide_is_worth_what_can_be_counted_by_hand(
    sandbox: LocalSandbox, suite: str, tests: int, correct: int, killed: int
) -> None:
    meter = SuiteMeter(sandbox, suite_size=3, fidelity="wide")
    (([found], _),) = meter.measure([(ABSOLUTE, [suite])])
    assert (found.tests, found.correct, found.killed) == (tests, correct, killed)


def test_suites_and_problems_do_not_disturb_each_other(sandbox: LocalSandbox) -> None:
    suites = ("assert f(3) == 3", "assert f(3) == 4", "assert f(-1) == 1")
    together = measured(sandbox, *suites)
    assert together == [measured(sandbox, suite)[0] for suite in suites]
    other = bundled_problems()[0]
    golden = "\n".join(str(case) for case in other.golden_tests)
    meter = SuiteMeter(sandbox, suite_size=3)
    both = meter.measure([(other, (golden,)), (ABSOLUTE, suites), (ABSOLUTE, ())])
    assert [found for found, _ in both[1:]] == [together, []]
    ([first], _) = both[0]
    assert first.is_valid
    assert first.killed > 0


def test_what_cannot_be_measured_is_an_error_and_no_measure(sandbox: LocalSandbox) -> None:
    with pytest.raises(UnusableReference, match="'absolute'"):
        SuiteMeter(sandbox).measure([(dataclasses.replace(ABSOLUTE, reference_solution=None), ("assert f(1) == 1",))])
    with pytest.raises(ConfigurationError, match="suite_size must be at least 1, got 0"):
        SuiteMeter(sandbox, suite_size=0)
    closed = LocalSandbox()
    closed.close()
    with pytest.raises(SandboxError):
        SuiteMeter(closed).measure([(ABSOLUTE, ("assert f(1) == 1",))])


def test_a_test_that_takes_long_kills_no_mutant_by_that(sandbox: LocalSandbox) -> None:
    """f(6000000) takes the reference longer than a mutant has otherwise."""
    source = "def f(x):\n    for y in range(x):\n        pass\n    unused = 1\n    return 0"
    problem = Problem("slow", "q", "f", reference_solution=source, golden_tests=(TestCase("f(1)", "0"),))
    suites = ("assert f(6000000) == 0", "assert f(1) == 0")
    (([slow, quick], matrix),) = SuiteMeter(sandbox, suite_size=1).measure([(problem, suites)])
    assert slow.is_valid
    assert slow.killed == quick.killed == len(matrix.mutants)
    equivalent = {mutant.change for mutant in matrix.equivalent}
    assert {"1 to 2", "1 to 0", "for to for in ()"} <= equivalent
