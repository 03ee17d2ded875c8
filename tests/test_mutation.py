"""Kill matrices: which mutants some input tells from the reference, by hand and against plain execution."""

import dataclasses

import numpy as np
import pytest

from codea1_env.errors import ConfigurationError, UnusableReference
from codea1_env.evaluation import kill_matrix
from codea1_env.evaluation.kill_matrix import POOL_SIZE, KillMatrices, KillMatrix, input_pools
from codea1_env.judging.judge import Judge
from codea1_env.problems import Problem, TestCase, bundled_problems
from codea1_env.reading.programs.mutants import mutants
from codea1_env.sandbox import LocalSandbox
from codea1_env.sandbox.protocol import Job, JobResult

ABSOLUTE = Problem(
    "absolute",
    "f(x): the absolute value.",
    "f",
    reference_solution="def f(x):\n    if x < 0:\n        return -x\n    return x",
    golden_tests=(TestCase("f(3)", "3"), TestCase("f(-2)", "2"), TestCase("f(0)", "0"), TestCase("f(0.5)", "0.5")),
)


class Counting:
    """A sandbox that counts its jobs."""

    def __init__(self, sandbox: LocalSandbox) -> None:
        self._sandbox = sandbox
        self.version = sandbox.version
        self.jobs = 0

    def run(self, jobs: list[Job]) -> list[JobResult]:
        self.jobs += len(jobs)
        return self._sandbox.run(jobs)


@pytest.fixture
def judge(sandbox: LocalSandbox) -> Judge:
    return Judge(sandbox)


def plainly_kills(problem: Problem, matrix: KillMatrix) -> np.ndarray:
    """The matrix again, by executing programs in this process: only for programs of our own."""

    def value(source: str, call: str) -> object:
        namespace: dict[str, object] = {}
        exec(source, namespace)
        try:
            return eval(call, namespace)
        except Exception as error:
            return type(error)

    reference = problem.reference_solution or ""
    right = [value(reference, each.call) for each in matrix.inputs]
    return np.array([
        [value(mutant.source, each.call) != known for each, known in zip(matrix.inputs, right, strict=True)]
        for mutant in matrix.mutants
    ])  # fmt: skip


def test_kills_are_those_of_plain_execution_and_what_no_input_kills_is_dropped(judge: Judge) -> None:
    (matrix,) = KillMatrices(judge).of([ABSOLUTE])
    assert matrix.kills.shape == (len(matrix.mutants), len(matrix.inputs))
    assert np.array_equal(matrix.kills, plainly_kills(ABSOLUTE, matrix))
    assert matrix.kills.any(axis=1).all(), "each is killed"
    # x < 0 and x <= 0 differ at 0 only, and -0 is 0; x < 1 differs at 0.5, x < -1 at -1 or -0.5.
    assert [mutant.change for mutant in matrix.equivalent] == ["< to <="]
    assert matrix.made == len(mutants(ABSOLUTE.reference_solution or ""))
    assert {each.call for each in matrix.inputs} >= {"f(3)", "f(-2)", "f(0)"}


def test_a_mutant_that_does_not_load_is_dropped_and_counted(judge: Judge) -> None:
    source = "TABLE = [1, 2][1]\nBOUND = 1 // TABLE\ndef f(x):\n    return x + TABLE"
    (matrix,) = KillMatrices(judge).of([dataclasses.replace(ABSOLUTE, reference_solution=source)])
    assert [mutant.change for mutant in matrix.unloadable] == ["1 to 2"], "an index out of range"
    assert matrix.made == len(mutants(source))


def test_a_mutant_that_hangs_is_killed(judge: Judge) -> None:
    source = "def f(x):\n    n = 0\n    while n < 2:\n        n = n + 1\n    return n"
    (matrix,) = KillMatrices(judge).of([dataclasses.replace(ABSOLUTE, reference_solution=source)])
    hanging = [mutant.change for mutant in matrix.mutants if "n - 1" in mutant.source]
    assert hanging == ["+ to -"]


def test_a_pool_begins_with_the_problems_calls_and_holds_none_twice(judge: Judge) -> None:
    problem = dataclasses.replace(ABSOLUTE, hidden_tests=tuple(TestCase(f"f({n})", str(n)) for n in range(100)))
    ((pool, _),) = input_pools(judge, [problem])
    calls = [each.call for each in pool]
    assert calls[:3] == ["f(3)", "f(-2)", "f(0)"]
    assert len(calls) == len({each.expectation.arguments for each in pool}) == POOL_SIZE
    assert input_pools(judge, [problem]) == [(pool, False)], "the same again"
    assert input_pools(judge, [problem], seed=1) != [(pool, False)]


def test_calls_that_the_reference_does_not_answer_are_not_in_the_pool(judge: Judge) -> None:
    source = (
        "import random\ndef f(x):\n    if x > 2:\n        raise ValueError\n    return random.random() if x == 2 else x"
    )
    tests = tuple(TestCase(f"f({n})", "0") for n in range(5))
    problem = dataclasses.replace(ABSOLUTE, reference_solution=source, golden_tests=tests)
    ((pool, _),) = input_pools(judge, [problem])
    assert all(each.call not in ("f(2)", "f(3)", "f(4)") for each in pool)
    assert {"f(0)", "f(1)"} <= {each.call for each in pool}


def test_without_tests_arguments_are_guessed(judge: Judge) -> None:
    problem = Problem("no tests", "q", "f", reference_solution="def f(a, b):\n    return a[0] + b if a else b")
    (matrix,) = KillMatrices(judge).of([problem])
    assert len(matrix.inputs) > 10
    assert {mutant.operator for mutant in matrix.mutants} == {
        "negated-condition",
        "arithmetic",
        "constant",
        "return-none",
    }


def test_a_reference_that_is_slow_has_its_time_and_so_have_its_mutants(
    judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kill_matrix, "POOL_SIZE", 3)
    source = "def f(x):\n    total = 0\n    for n in range(600000):\n        total += 1\n    return abs(x)"
    problem = dataclasses.replace(ABSOLUTE, reference_solution=source)
    ((_, is_slow),) = input_pools(judge, [problem])
    assert is_slow
    (matrix,) = KillMatrices(judge).of([problem])
    assert "+ to -" in {mutant.change for mutant in matrix.equivalent}, "the total is not returned"


def test_a_matrix_is_remembered_by_all_that_the_problem_says(sandbox: LocalSandbox) -> None:
    counting = Counting(sandbox)
    matrices = KillMatrices(Judge(counting))  # type: ignore[arg-type]
    (first,) = matrices.of([ABSOLUTE])
    jobs = counting.jobs
    assert matrices.of([ABSOLUTE, ABSOLUTE]) == [first, first]
    assert counting.jobs == jobs
    matrices.of([dataclasses.replace(ABSOLUTE, golden_tests=ABSOLUTE.golden_tests[:2])])
    assert counting.jobs > jobs


@pytest.mark.parametrize("reference", [None, "def f(:", "def g(): pass", "1/0"])
def test_a_reference_that_cannot_answer_is_refused(judge: Judge, reference: str | None) -> None:
    with pytest.raises(UnusableReference, match="'absolute'"):
        KillMatrices(judge).of([dataclasses.replace(ABSOLUTE, reference_solution=reference)])


def test_a_size_out_of_range_is_refused(judge: Judge) -> None:
    with pytest.raises(ConfigurationError, match="cache_mb"):
        KillMatrices(judge, cache_mb=-1)


def test_bundled_references_have_mutants_and_few_that_nothing_kills(judge: Judge) -> None:
    matrices = KillMatrices(judge).of(bundled_problems()[::8])
    made, equivalent = sum(each.made for each in matrices), sum(len(each.equivalent) for each in matrices)
    assert made > 100
    assert equivalent < 0.15 * made


def test_the_references_own_constants_are_among_the_inputs(judge: Judge) -> None:
    """Nothing that is near 3 is near 77123, or 'magic'."""
    source = "def f(x, y):\n    return 1 if x == 77123 else 2 if y == 'magic' else 3"
    tests = tuple(TestCase(f"f({n}, 'a')", "3") for n in range(8))
    problem = dataclasses.replace(ABSOLUTE, reference_solution=source, golden_tests=tests)
    (matrix,) = KillMatrices(judge).of([problem])
    assert matrix.equivalent == ()
