"""One of a coder's n programs, chosen by a tester's suites: pairing at test time, by nothing that knows what is right.

The tester writes a suite against every different program of a question. The first K tests of each that can be read make
the pool, with the values that they state: nothing is corrected, and no reference is asked. Each program runs on the
whole pool; its votes are the tests that it passes, each as often as it was written. Chosen is the program with the
most votes among those that load. Majority is the choice without the stated values: the program whose returned values,
on the calls of the pool, most others return, too; those that return nothing on any of them are no majority. Where
programs are equal, the first one is taken.

Does not promise that a choice is right: a pool without a test chooses the first program that loads.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from codea1_env.evaluation.metrics import Interval, mean_interval
from codea1_env.evaluation.rankings import stated_tests
from codea1_env.judging.judge import Judge, Trial, TriedTrial, plain_values
from codea1_env.judging.schedule import turn
from codea1_env.problems.problem import Problem
from codea1_env.reading.grammar import Fidelity
from codea1_env.reading.responses import read_program
from codea1_env.rewards.duel import Verdict


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
        Trial(problem, read_program(text, problem.entry_point).source, tuple(pool))
        for (problem, texts, _), pool in zip(asked, pools, strict=True)
        for text in texts
    ]
    turns = [turn(one.problem, one.source, [test.arguments for test in one.expectations]) for one in trials]
    tried = [TriedTrial(*row) for row in zip(trials, turns, judge.run(turns), strict=True)]
    rows = iter(list(zip(tried, judge.judged(tried), strict=True)))
    choices = []
    for (_, texts, _), pool in zip(asked, pools, strict=True):
        votes, returned = [], []
        for one, judged in (next(rows) for _ in texts):
            weights = zip(pool.values(), judged.verdicts, strict=True)
            votes.append(sum(weight for weight, verdict in weights if verdict is Verdict.PASS))
            returned.append(plain_values(one.turn, one.result, one.turn.calls))
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
