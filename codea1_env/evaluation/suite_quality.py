"""What suites are worth as tests of a correct function: which tests are right, which mutants they kill, what they run.

This is how the field measures a Test LLM (`metrics.py`), not how the game pays one: a test counts as written, its
stated value is never corrected, and a suite with one wrong test is not valid. A test that repeats a call is a test like
any other. Every test is judged by the function itself, the problem's reference, under two hash seeds. A mutant has a
tenth of a call's time, five times what the reference was seen to need at most; where that needs more, all of it.

Does not promise anything about tests outside the grammar of the reading (`fidelity`, strict or wide): they count as not
correct. Nor does a relation that says nothing (`judging/relations/status.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from codea1_env.checks import require_whole
from codea1_env.evaluation.coverage import covered
from codea1_env.evaluation.kill_matrix import KillMatrices, KillMatrix
from codea1_env.evaluation.metrics import SuiteResult
from codea1_env.judging.expected_values import BatchOracle
from codea1_env.judging.judge import Expectation, Judge, Trial
from codea1_env.judging.validation import ValidatedTest, read_suites, validate
from codea1_env.problems.problem import Problem
from codea1_env.reading.grammar import Fidelity
from codea1_env.reading.responses import Suite, read_suite
from codea1_env.rewards.code_a1 import RewardConfig
from codea1_env.rewards.duel import Status, Verdict
from codea1_env.sandbox.protocol import Sandbox

SUITE_SIZE = 5
"""k of pass@k and mut@k (paper: pass@5, mut@5)."""
_REFERENCE_SHARE, _MUTANT_SHARE = 0.02, 0.1
"""Of a call's time limit: what the reference must do with for its mutants to have the second."""


@dataclass(frozen=True, slots=True)
class _ReadTests:
    """The first k tests of one suite."""

    tests: int
    """Asserts, the rejected ones included."""
    correct: tuple[Expectation, ...]
    """Tests that state what the function returns."""
    calls: tuple[bytes, ...]
    """Calls of all tests that the grammar accepts, whatever they state: what the suite runs."""

    @property
    def is_valid(self) -> bool:
        return 0 < self.tests == len(self.correct)


class SuiteMeter:
    """Measures suites in one sandbox. Remembers kill matrices. Not thread-safe."""

    def __init__(
        self, sandbox: Sandbox, *, suite_size: int = SUITE_SIZE, fidelity: Fidelity = "strict", seed: int = 0
    ) -> None:
        """`suite_size`: k, tests of a suite that count, >= 1. `fidelity`: `strict` or `wide`. `seed`: draws
        the inputs of mutants."""
        require_whole("suite_size", suite_size)
        self._sandbox = sandbox
        self._judge = Judge(sandbox, execution_cache_mb=0)  # a program is met once
        self._matrices = KillMatrices(self._judge, seed=seed)
        self._suite_size = suite_size
        self._fidelity = fidelity

    def measure(self, answers: Sequence[tuple[Problem, Sequence[str]]]) -> list[tuple[list[SuiteResult], KillMatrix]]:
        """What each problem's suites, a tester's raw responses, came to, in order, and the mutants that they were tried
        on.

        Raises UnusableReference for a problem whose reference is missing or does not load, SandboxError where the
        sandbox fails: never a measure then.
        """
        problems = [problem for problem, _ in answers]
        read = self._read(answers)
        matrices = self._matrices.of(problems)
        trials = [
            Trial(tried, mutant.source, suite.correct)
            for tried, suites, matrix in zip(self._hurried(problems, read), read, matrices, strict=True)
            for suite in suites
            if suite.is_valid
            for mutant in matrix.mutants
        ]
        results = iter(self._judge.try_programs(trials))
        calls = [tuple(dict.fromkeys(call for suite in suites for call in suite.calls)) for suites in read]
        runs = covered(self._sandbox, list(zip(problems, calls, strict=True)))
        measured = []
        for suites, matrix, known, run in zip(read, matrices, calls, runs, strict=True):
            place = {call: number for number, call in enumerate(known)}
            lines, branches = (run.program.is_line.count(each) for each in (True, False))
            rows = []
            for suite in suites:
                verdicts = [next(results).verdicts for _ in matrix.mutants] if suite.is_valid else []
                killed = sum(any(verdict is not Verdict.PASS for verdict in row) for row in verdicts)
                correct, mutants = len(suite.correct), len(matrix.mutants)
                ran, taken = run.passed([place[call] for call in suite.calls])
                counts = (suite.tests, correct, mutants, killed, lines, ran, branches, taken)
                rows.append(SuiteResult(self._suite_size, *counts))
            measured.append((rows, matrix))
        return measured

    def _hurried(self, problems: Sequence[Problem], read: Sequence[Sequence[_ReadTests]]) -> list[Problem]:
        """The problems with less time for a call, so that a mutant that hangs costs little; not the ones whose
        reference itself needs much of it on one of these tests."""
        correct = [tuple(dict.fromkeys(each for suite in suites for each in suite.correct)) for suites in read]
        fast = [replace(problem, time_limit_s=_REFERENCE_SHARE * problem.time_limit_s) for problem in problems]
        results = self._judge.try_programs(
            [Trial(one, one.reference_solution or "", tests) for one, tests in zip(fast, correct, strict=True)]
        )
        return [
            replace(problem, time_limit_s=_MUTANT_SHARE * problem.time_limit_s)
            if result.executes and all(verdict is Verdict.PASS for verdict in result.verdicts)
            else problem
            for problem, result in zip(problems, results, strict=True)
        ]

    def _read(self, answers: Sequence[tuple[Problem, Sequence[str]]]) -> list[list[_ReadTests]]:
        """Every suite's first k tests, each judged as though it were alone."""
        suites = [
            [read_suite(text, problem.entry_point, fidelity=self._fidelity).tests[: self._suite_size] for text in texts]
            for problem, texts in answers
        ]
        alone = [
            (problem, Suite((test,)))
            for (problem, _), row in zip(answers, suites, strict=True)
            for tests in row
            for test in tests
        ]
        config = RewardConfig(suite_size=1, correct_outputs=False, fidelity=self._fidelity)
        asked = read_suites(self._judge, alone, config)
        judged = iter(validate(self._judge, asked, config, BatchOracle(self._judge, "reference", ()).answer))
        return [[_first_tests([next(judged)[0] for _ in tests]) for tests in row] for row in suites]


def _first_tests(validated: Sequence[ValidatedTest]) -> _ReadTests:
    right = [one.expectation for one in validated if one.test.status is Status.KEPT]
    calls = dict.fromkeys(one.stated.arguments for one in validated if one.stated is not None)
    return _ReadTests(len(validated), tuple(each for each in right if each is not None), tuple(calls))
