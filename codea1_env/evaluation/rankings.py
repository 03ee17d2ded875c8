"""Whether a suite ranks programs as the question's own tests do: a tester's fidelity (UTRL, arXiv 2508.21107).

A program's score is the share of tests that it passes, by the suite as it is written (nothing is corrected) and by the
golden and hidden tests. A suite's fidelity is Spearman's correlation between both rankings of the same programs. As in
UTRL's released code, a suite that ranks all alike, such as an empty one, has 0. Otherwise than there, a question whose
own tests rank all alike counts nowhere, and each different program counts once.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from codea1_env.evaluation.metrics import Floats
from codea1_env.judging.judge import Expectation, Judge, Trial
from codea1_env.judging.validation import read_suites
from codea1_env.problems.problem import Problem
from codea1_env.reading.grammar import Fidelity
from codea1_env.reading.responses import read_suite
from codea1_env.rewards.code_a1 import RewardConfig
from codea1_env.rewards.duel import Verdict


def spearman(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Pearson's correlation of the ranks; equal values share the mean of their places. None where either has no two
    different values. Raises ValueError for different lengths."""
    if len(first) != len(second):
        raise ValueError(f"both must have one length, got {len(first)} and {len(second)}")
    if len(set(first)) < 2 or len(set(second)) < 2:
        return None
    one, other = (ranks - ranks.mean() for ranks in map(_ranks, (first, second)))
    return float(one @ other / np.sqrt((one @ one) * (other @ other)))


def _ranks(values: Sequence[float]) -> Floats:
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray((last - (counts - 1) / 2)[places], dtype=np.float64)


def stated_tests(
    judge: Judge, suites: Sequence[tuple[Problem, Sequence[str]]], suite_size: int, fidelity: Fidelity
) -> list[list[list[Expectation]]]:
    """Of each question's responses: the first tests that can be read, as they are written, repeats included."""
    read = [
        (problem, read_suite(text, problem.entry_point, fidelity=fidelity))
        for problem, texts in suites
        for text in texts
    ]
    rows = iter(read_suites(judge, read, RewardConfig(suite_size=suite_size, fidelity=fidelity)))
    return [
        [
            [
                Expectation(test.arguments, test.value, test.look, relation=test.relation)
                for test in next(rows).usable
            ]
            for _ in texts
        ]
        for _, texts in suites
    ]  # fmt: skip


def fidelities(
    judge: Judge,
    asked: Sequence[tuple[Problem, Sequence[str], Sequence[tuple[str, float]]]],
    suite_size: int,
    fidelity: Fidelity = "strict",
) -> list[list[float]]:
    """For each question the fidelity of each suite, in [-1, 1]; nothing where its own tests rank all programs alike.

    `asked`: a question, a tester's responses to it, and programs with the share of the question's tests that each
    passes. Raises SandboxError.
    """
    told = [each for each in asked if _tells_apart(each[2])]
    suites = stated_tests(judge, [(problem, texts) for problem, texts, _ in told], suite_size, fidelity)
    pools = [tuple(dict.fromkeys(test for tests in row for test in tests)) for row in suites]
    results = iter(
        judge.try_programs(
            [
                Trial(problem, source, pool)
                for (problem, _, programs), pool in zip(told, pools, strict=True)
                for source, _ in programs
            ]
        )
    )
    found = []
    for (_, _, programs), row, pool in zip(told, suites, pools, strict=True):
        verdicts = [dict(zip(pool, next(results).verdicts, strict=True)) for _ in programs]
        passed = [[sum(known[test] is Verdict.PASS for test in tests) for known in verdicts] for tests in row]
        shares = [share for _, share in programs]
        found.append([spearman(counts, shares) or 0.0 for counts in passed])
    rows = iter(found)
    return [next(rows) if _tells_apart(programs) else [] for _, _, programs in asked]


def _tells_apart(programs: Sequence[tuple[str, float]]) -> bool:
    return len({share for _, share in programs}) > 1
