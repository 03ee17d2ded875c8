"""The shift family: questions of the bands family with three rules, and one bug that gives way to the next.

The only bug is a slip: a comparison that is off by one, which shows on one input, the rule's threshold. A program is
written from its first rule to its last, and `strength` says how far one slip keeps the later rules right. At 1 a
program has one slip at most: the second rule's slips are rare until the first rule's are gone, and the third's until
both are. At 0 rules slip independently. A program is right with the same probability at every strength.

So at strength 1 there is one place to test at a time, and it moves as the coder learns, by what programs are and not by
a schedule. Does not promise that a model keeps these habits while it learns: `docs/results.md` has what was seen.
"""

from __future__ import annotations

import dataclasses
import random

from codea1_env.problems.families.bands import BandQuestion, Rules, Split, band_questions, off_by_one, problems_of
from codea1_env.problems.problem import Problem

RULES = 3
"""Of every question; as many kinds of bugs as there are places for a slip."""


def shift_questions(split: Split, count: int, seed: int) -> tuple[BandQuestion, ...]:
    """`count` distinct questions of three rules; the split is that of the bands family."""
    return band_questions(split, count, seed, lengths=(RULES,))


def slipped(question: BandQuestion, places: tuple[int, ...]) -> Rules:
    """The question's rules with slips at these places, counted from 0."""
    return tuple(off_by_one(rule) if place in places else rule for place, rule in enumerate(question.rules))


def written(question: BandQuestion, rng: random.Random, rate: float, strength: float) -> Rules:
    """As a hurried programmer writes it: a rule slips with probability `rate`, and with (1 - strength) of that after a
    slip. Both are in [0, 1]."""
    places: tuple[int, ...] = ()
    for place in range(RULES):
        if rng.random() < (rate * (1 - strength) if places else rate):
            places += (place,)
    return slipped(question, places)


def shift_problems(split: Split, count: int, seed: int, golden_edge: float = 0.0) -> tuple[Problem, ...]:
    """`count` distinct problems; their mutants have one slip each, the first rule's first."""
    questions = shift_questions(split, count, seed)
    problems = []
    for question, problem in zip(questions, problems_of("shift", split, seed, questions, golden_edge), strict=True):
        mutants = tuple(question.program(slipped(question, (place,))) for place in range(RULES))
        problems.append(dataclasses.replace(problem, mutants=mutants, source="codea1 shift"))
    return tuple(problems)
