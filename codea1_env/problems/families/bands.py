"""The bands family: functions of one whole number in 0..99 that return a constant per band, with bugs that hide.

A question is a list of rules, first match wins: `fee(x): through 11 gives 50; else up to 65 gives 16; otherwise 3.` Its
golden tests lie in the middle of bands; its hidden tests are all 100 inputs. A bug of this family shows on one input or
a few, and the program names it: a comparison that is off at its threshold (`cmp`), a threshold that is misread (`thr`),
a special case that nobody asked for (`spur`). So a tester is paid for aim, and for reading the program it attacks.
Problems are split by the sequence of their rules' phrases: no held-out sequence is ever in the training split.

Does not promise anything about inputs beyond 0..99, which a tester may use: the reference answers them, too. Nothing is
executed here; what a program of the family returns is worked out from its rules.
"""

from __future__ import annotations

import functools
import itertools
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from codea1_env.checks import is_number, require, require_choice
from codea1_env.problems.problem import Problem
from codea1_env.reading.test_case import TestCase

Split = Literal["train", "held_out"]
BugKind = Literal["cmp", "thr", "spur"]

DOMAIN = 100
"""Inputs, thresholds and values are 0 to DOMAIN - 1."""
ENTRY_POINTS = ("f", "fee", "rate", "rank")
PHRASES = {
    "below": "<",
    "under": "<",
    "less than": "<",
    "up to": "<=",
    "at most": "<=",
    "through": "<=",
    "over": ">",
    "above": ">",
    "past": ">",
    "from": ">=",
    "at least": ">=",
    "starting at": ">=",
}
"""How a question words a comparison, and what it means."""
OFF_BY_ONE = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
BUG_KINDS: tuple[BugKind, ...] = ("cmp", "thr", "spur")
GOLDEN_TESTS = 3
CLEARANCE = 2
"""Golden inputs and other thresholds are further than this from every threshold."""
NARROWEST_BAND = 6
"""Inputs that every value of a reference has at least."""
HELD_OUT_SHARE = 0.15
"""Share of the sequences of phrases that belong to the held-out split."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One line of a program: a comparison of the input, and what is returned where it holds."""

    comparison: str
    """One of <, <=, >, >= and, only where a bug put it, ==."""
    threshold: int
    """0 to 99."""
    value: int
    """0 to 99."""
    phrase: str = ""
    """The question's words for the comparison; empty for a rule that the question does not have."""

    @property
    def inputs(self) -> range:
        """Those of the 100 for which it holds."""
        first = self.threshold + (self.comparison == ">")
        last = self.threshold - (self.comparison == "<")
        return range(0 if self.comparison[0] == "<" else first, DOMAIN if self.comparison[0] == ">" else last + 1)


Rules = tuple[Rule, ...]


@dataclass(frozen=True, slots=True)
class BandQuestion:
    """One question of the family: a name, 2 or 3 rules, and the value where none of them holds."""

    entry_point: str
    rules: Rules
    otherwise: int
    """0 to 99."""

    @property
    def question(self) -> str:
        worded = "; else ".join(f"{rule.phrase} {rule.threshold} gives {rule.value}" for rule in self.rules)
        return f"{self.entry_point}(x): {worded}; otherwise {self.otherwise}."

    @property
    def reference(self) -> str:
        return self.program(self.rules)

    @property
    def thresholds(self) -> tuple[int, ...]:
        """The numbers of the question at which something changes."""
        return tuple(rule.threshold for rule in self.rules)

    @property
    def values(self) -> tuple[int, ...]:
        """What a right program can return."""
        return (*(rule.value for rule in self.rules), self.otherwise)

    def program(self, rules: Rules) -> str:
        """Python source of a function with these rules and the question's name and last value."""
        lines = "".join(f"    if x {rule.comparison} {rule.threshold}: return {rule.value}\n" for rule in rules)
        return f"def {self.entry_point}(x):\n{lines}    return {self.otherwise}\n"

    def table(self, rules: Rules) -> tuple[int, ...]:
        """What a program with these rules returns for each of the 100 inputs."""
        values = [self.otherwise] * DOMAIN
        for rule in reversed(rules):  # the first rule that holds decides
            values[rule.inputs.start : rule.inputs.stop] = [rule.value] * len(rule.inputs)
        return tuple(values)

    def with_bug(self, kind: BugKind, rng: random.Random, rules: Rules | None = None) -> Rules:
        """The rules (the question's, unless others are given) with one more bug of that kind."""
        rules = self.rules if rules is None else rules
        if kind == "spur":
            return (self._invented(rng), *rules)
        place = rng.choice([place for place, rule in enumerate(rules) if rule.phrase])
        rule = rules[place]
        wrong = off_by_one(rule) if kind == "cmp" else replace(rule, threshold=misread(rule.threshold, rng))
        return (*rules[:place], wrong, *rules[place + 1 :])

    def mutants(self, rng: random.Random) -> dict[BugKind, Rules]:
        """One program with a single bug of each kind; each differs from the reference on some of the 100 inputs."""
        return {kind: self.with_bug(kind, rng) for kind in BUG_KINDS}

    def case(self, x: int, value: int) -> TestCase:
        """`value` stated as the result for `x`; right or not."""
        return TestCase(f"{self.entry_point}({x})", str(value))

    def golden_inputs(self, rng: random.Random, golden_edge: float) -> tuple[int, ...]:
        """What a hurried person tries: different inputs well within bands, of as many bands as there are tests for.

        Each is a threshold instead with probability `golden_edge`.
        """
        table = self.table(self.rules)
        quiet = [x for x in range(DOMAIN) if all(abs(x - k) > CLEARANCE for k in self.thresholds)]
        inputs: list[int] = []
        while len(inputs) < GOLDEN_TESTS:
            seen = {table[x] for x in inputs}
            fresh = [x for x in quiet if x not in inputs]
            at_edge = [x for x in self.thresholds if x not in inputs]
            unseen = [x for x in fresh if table[x] not in seen]
            # golden_edge 0 must draw nothing more, so that its problems stay as they are.
            is_edge = bool(golden_edge) and bool(at_edge) and rng.random() < golden_edge
            inputs.append(rng.choice(at_edge if is_edge else unseen or fresh))
        return tuple(inputs)

    def problem(self, problem_id: str, rng: random.Random, golden_edge: float) -> Problem:
        table = self.table(self.rules)
        golden = self.golden_inputs(rng, golden_edge)
        wrong = [(rules, self.table(rules)) for rules in self.mutants(rng).values()]
        survivors = [self.program(rules) for rules, found in wrong if all(found[x] == table[x] for x in golden)]
        rng.shuffle(survivors)  # so that the first of them are of no kind in particular
        tests = [self.case(x, value) for x, value in enumerate(table)]
        return problem_of("bands", problem_id, self, [tests[x] for x in golden], tests, survivors)

    def _invented(self, rng: random.Random) -> Rule:
        """A special case with an input and a value that the question does not name."""
        named = {*self.thresholds, *self.values}
        place, value = rng.sample([x for x in range(DOMAIN) if x not in named], 2)
        return Rule("==", place, value)


def off_by_one(rule: Rule) -> Rule:
    """The rule with the comparison that differs at its threshold alone."""
    return replace(rule, comparison=OFF_BY_ONE[rule.comparison])


def misread(threshold: int, rng: random.Random) -> int:
    """Another number in 0..99: the digits swapped, one more or less, or ten more or less."""
    tens, ones = divmod(threshold, 10)
    if rng.random() < 0.25 and tens and tens != ones:
        return ones * 10 + tens
    step = rng.choice((-1, 1)) if rng.random() < 0.5 else rng.choice((-10, 10))
    return threshold + step if 0 <= threshold + step < DOMAIN else threshold - step


def band_questions(split: Split, count: int, seed: int, lengths: Sequence[int] = (2, 2, 3)) -> tuple[BandQuestion, ...]:
    """`count` distinct questions of one split. The first ones do not depend on `count`.

    `lengths`: numbers of rules, 2 or 3, that are drawn alike.
    """
    require_choice("split", split, ("train", "held_out"))
    is_count = type(count) is int and 0 <= count <= MOST_QUESTIONS
    require(is_count, "count", f"be in [0, {MOST_QUESTIONS}], a whole number", count)
    rng = random.Random(f"bands {split} {seed}")
    sequences = sorted(set(_sequences()) - _held_out() if split == "train" else _held_out())
    by_length = {length: [each for each in sequences if len(each) == length] for length in (2, 3)}
    questions: dict[str, BandQuestion] = {}
    while len(questions) < count:
        drawn = _drawn(rng, rng.choice(by_length[rng.choice(lengths)]))
        if drawn is not None:
            questions.setdefault(drawn.question, drawn)
    return tuple(questions.values())


MOST_QUESTIONS = 100_000
"""Far fewer than there are, so that drawing distinct ones stays quick."""


def band_problems(split: Split, count: int, seed: int, golden_edge: float = 0.0) -> tuple[Problem, ...]:
    """`count` distinct problems of one split; equal arguments give equal problems.

    `golden_edge` in [0, 1] is the probability that a golden test's input is a threshold, not well within a band.
    """
    return problems_of("bands", split, seed, band_questions(split, count, seed), golden_edge)


def problems_of(
    family: str, split: Split, seed: int, questions: Sequence[Any], golden_edge: float
) -> tuple[Problem, ...]:
    """The problems of a family's questions."""
    require(is_number(golden_edge) and 0 <= golden_edge <= 1, "golden_edge", "be in [0, 1]", golden_edge)
    return tuple(
        question.problem(
            f"{family}/{split}/{seed}/{index:05d}", random.Random(f"{family} {split} {seed} {index}"), golden_edge
        )
        for index, question in enumerate(questions)
    )


def problem_of(
    source: str,
    problem_id: str,
    question: Any,
    golden: Sequence[TestCase],
    hidden: Sequence[TestCase],
    mutants: Sequence[str],
) -> Problem:
    """Of one of a family's questions."""
    return Problem(
        problem_id=problem_id,
        question=question.question,
        entry_point=question.entry_point,
        reference_solution=question.reference,
        golden_tests=tuple(golden),
        hidden_tests=tuple(hidden),
        mutants=tuple(mutants),
        source=f"codea1 {source}",
        license="Apache-2.0",
    )


def _drawn(rng: random.Random, phrases: Sequence[str]) -> BandQuestion | None:
    """A question with these phrases, or None where its numbers came out so that a rule would not matter."""
    # Any two numbers of a question differ, so that a number in a program says where it comes from.
    numbers = rng.sample(range(DOMAIN), 2 * len(phrases) + 1)
    thresholds, values = numbers[: len(phrases)], numbers[len(phrases) :]
    rules = tuple(
        Rule(PHRASES[phrase], threshold, value, phrase)
        for phrase, threshold, value in zip(phrases, thresholds, values, strict=False)
    )
    question = BandQuestion(rng.choice(ENTRY_POINTS), rules, values[-1])
    return question if _every_rule_matters(question) else None


def _every_rule_matters(question: BandQuestion) -> bool:
    """Bands are wide, thresholds apart, and every comparison decides what its threshold gives."""
    ks = sorted(question.thresholds)
    apart = all(b - a > 2 * CLEARANCE for a, b in itertools.pairwise(ks))
    if not apart or ks[0] <= CLEARANCE or ks[-1] >= DOMAIN - 1 - CLEARANCE:
        return False
    table = question.table(question.rules)
    if any(table.count(value) < NARROWEST_BAND for value in question.values):
        return False
    rules = question.rules
    slips = ((*rules[:place], off_by_one(rule), *rules[place + 1 :]) for place, rule in enumerate(rules))
    return all(question.table(each) != table for each in slips)


def _sequences() -> list[tuple[str, ...]]:
    pairs = [(a, b) for a in PHRASES for b in PHRASES]
    return [*pairs, *((*pair, c) for pair in pairs for c in PHRASES)]


@functools.cache
def _held_out() -> frozenset[tuple[str, ...]]:
    """The same for every seed, so that no run trains on what another is measured on."""
    held_out: set[tuple[str, ...]] = set()
    rng = random.Random("bands split")
    for length in (2, 3):
        sequences = [each for each in _sequences() if len(each) == length]
        rng.shuffle(sequences)
        held_out.update(sequences[: int(HELD_OUT_SHARE * len(sequences))])
    return frozenset(held_out)
