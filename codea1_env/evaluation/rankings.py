"""What a tester's suites say of programs: whether a suite ranks them as the question's own tests do (fidelity: UTRL,
arXiv 2508.21107), and which of a coder's n programs they choose.

A program's score is the share of tests that it passes, by the suite as it is written (nothing is corrected) and by the
golden and hidden tests. A suite's fidelity is Spearman's correlation between both rankings of the same programs. As in
UTRL's released code, a suite that ranks all alike, such as an empty one, has 0. Otherwise than there, a question whose
own tests rank all alike counts nowhere, and each different program counts once.

To choose is pairing at test time, by nothing that knows what is right. The tester writes a suite against every
different program of a question. The first K tests of each that can be read make the pool, with the values that they
state: nothing is corrected, and no reference is asked. Each program runs on the whole pool; its votes are the tests
that it passes, each as often as it was written. Chosen is the program with the most votes among those that load.
Majority is the choice without the stated values: the program whose returned values, on the calls of the pool, most
others return, too; those that return nothing on any of them are no majority. Where programs are equal, the first one is
taken. Does not promise that a choice is right: a pool without a test chooses the first program that loads.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from codea1_env.evaluation.metrics import Floats, Interval, mean_interval
from codea1_env.judging.judge import Expectation, Judge, Trial, plain_values
from codea1_env.judging.schedule import turn
from codea1_env.judging.validation import read_suites
from codea1_env.problems.problem import Problem
from codea1_env.reading.grammar import Fidelity
from codea1_env.reading.responses import read_program, read_suite
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
    return [[next(rows).usable for _ in texts] for _, texts in suites]


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


@dataclass(frozen=True, slots=True)
class Choice:
    """What became of one question's n programs."""

    chosen: int
    """Place of the program, from 0."""
    majority: int
    """Place of the one that is chosen by outputs alone."""
    votes: tuple[int, ...]
    """Of each program."""
    tests: int
    """Of the pool, repeats included."""


def different_programs(problem: Problem, texts: Sequence[str]) -> list[str]:
    """Those that a tester is asked about: read from the responses, each once, in order, without blank lines around."""
    return list(dict.fromkeys(read_program(text, problem.entry_point).source.strip() for text in texts))


def choose(
    judge: Judge,
    asked: Sequence[tuple[Problem, Sequence[str], Sequence[str]]],
    suite_size: int,
    fidelity: Fidelity = "strict",
) -> list[Choice]:
    """A choice for each (problem, responses of the coder, responses of the tester). Raises SandboxError."""
    suites = stated_tests(judge, [(problem, texts) for problem, _, texts in asked], suite_size, fidelity)
    pools = [Counter(test for tests in row for test in tests) for row in suites]
    trials = [
        (tuple(pool), turn(problem, read_program(text, problem.entry_point).source, [test.arguments for test in pool]))
        for (problem, texts, _), pool in zip(asked, pools, strict=True)
        for text in texts
    ]
    results = judge.run([one for _, one in trials])
    tried = [(tests, one, result) for (tests, one), result in zip(trials, results, strict=True)]
    rows = iter(list(zip(tried, judge.judged(tried), strict=True)))
    choices = []
    for (_, texts, _), pool in zip(asked, pools, strict=True):
        votes, returned = [], []
        for (_, one, result), judged in (next(rows) for _ in texts):
            weights = zip(pool.values(), judged.verdicts, strict=True)
            votes.append(sum(weight for weight, verdict in weights if verdict is Verdict.PASS))
            returned.append(plain_values(one, result, one.calls))
        choices.append(_choice(votes, returned, sum(pool.values())))
    return choices


def selection_measures(scores: Sequence[Mapping[str, Any]], seed: int) -> dict[str, Interval | None]:
    """pass@1 of each way to choose one of the n, and what the tester's choice is worth over the mean of the same n."""
    right = {
        way: [float(score["passed"][score[place]]) for score in scores]
        for way, place in (("chosen", "chosen"), ("majority", "majority"), ("random one", "random"))
    }
    gained = [
        chosen - sum(score["passed"]) / len(score["passed"])
        for chosen, score in zip(right["chosen"], scores, strict=True)
    ]
    best = [float(any(score["passed"])) for score in scores]
    rows = {**right, "best": best, "chosen - mean": gained}
    return {way: mean_interval(values, seed) for way, values in rows.items()}


def _choice(votes: Sequence[int], returned: Sequence[tuple[bytes | None, ...] | None], tests: int) -> Choice:
    loads = [values is not None for values in returned]
    # Who returns nothing on any call votes for nobody.
    same = Counter(values or () for values in returned if values and any(values))
    places = range(len(votes))
    return Choice(
        chosen=max(places, key=lambda place: (loads[place], votes[place], -place)),
        majority=max(places, key=lambda place: (loads[place], same[returned[place] or ()], -place)),
        votes=tuple(votes),
        tests=tests,
    )
