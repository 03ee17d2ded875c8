"""The fine-print family: plain English questions for pretrained models, an operation and clauses on where it bends.

    Write a function score(xs) that returns the sum of the numbers in xs. Ignore negative numbers. Then treat any number
    above 50 as 50. If no numbers are left, return None.

Golden tests are the examples that people write: no clause is touched by them. Hidden tests go clause by clause, and
`clause_of_tests` says which test is whose, so that one sees which clause is not honoured. Mutants leave one clause out
or honour it almost. The split is by pairs of operation and clause: a held-out question has held-out pairs only, so
that each of its clauses was trained on with other operations. `fineprint` has numbers; `fineprint_words` has words and
is for measuring only.

Does not promise that golden tests find fine print: that they cannot is the point of the family. Hidden tests have no
input for which the order of the clauses matters. Running programs here, in this process, is safe: every one is made of
the tables in `fineprint_parts.py`. No model's output ever comes this way.
"""

from __future__ import annotations

import functools
import itertools
import random
from collections.abc import Sequence
from dataclasses import dataclass

from codea1_env.checks import require, require_choice
from codea1_env.errors import ConfigurationError
from codea1_env.problems.families.bands import Split, problem_of, problems_of
from codea1_env.problems.families.fineprint_parts import NUMBERS, WORDS, Clause, FineprintOperation, Material, Value
from codea1_env.problems.families.miniature import returned
from codea1_env.problems.problem import Problem
from codea1_env.reading.test_case import TestCase

ENTRY_POINTS = ("solve", "score", "result", "measure")
GOLDEN_TESTS = 3
TESTS_A_CLAUSE = 5
"""Hidden tests that touch a clause, for each; beside them are those of EMPTY and PLAIN."""
EMPTY = "empty"
"""The clause of every question: what is returned where nothing is left."""
PLAIN = "plain"
"""Hidden tests that touch no clause, as golden tests do."""
PLAIN_TESTS = 3
HELD_OUT_EVERY = 4
"""Every fourth pair of operation and clause is held out, along the diagonals of their table: a quarter of each
operation's clauses, and a quarter of each clause's operations."""
ONE_OR_TWO = (1, 1, 2)
"""Numbers of clauses, beside EMPTY, drawn alike."""
_TRIES = 200


@dataclass(frozen=True, slots=True)
class FinePrint:
    """One question of the family."""

    material: Material
    entry_point: str
    operation: FineprintOperation
    clauses: tuple[Clause, ...]
    wordings: tuple[int, ...] = (0, 0, 0, 0, 0)
    """Which wording: of the operation, then of each clause."""

    @property
    def question(self) -> str:
        name = self.material.parameter
        asked = self.operation.wordings[self.wordings[0] % len(self.operation.wordings)]
        sentences = [f"Write a function {self.entry_point}({name}) that {asked}."]
        for clause, wording in zip(self.clauses, self.wordings[1:], strict=False):
            sentence = clause.wordings[wording % len(clause.wordings)]
            sentences.append(sentence if len(sentences) == 1 else f"Then {sentence[0].lower()}{sentence[1:]}")
        return " ".join([*sentences, f"If no {self.material.name} are left, return None."])

    @property
    def reference(self) -> str:
        return self.program([clause.line for clause in self.clauses])

    def program(self, lines: Sequence[str], guarded: bool = True) -> str:
        """Python source with these lines for the clauses, and the one for EMPTY where it is `guarded`."""
        name = self.material.parameter
        guard = [f"if not {name}:", "    return None"] if guarded else []
        body = [*lines, *guard, f"return {self.operation.expression}"]
        return f"def {self.entry_point}({name}):\n" + "".join(f"    {line}\n" for line in body)

    def without(self, place: int) -> str:
        """The program that leaves one clause out."""
        return self.program([clause.line for i, clause in enumerate(self.clauses) if i != place])

    def mutants(self) -> tuple[str, ...]:
        """For each clause the program that leaves it out and the one that bends it; then the one without EMPTY."""
        lines = [clause.line for clause in self.clauses]
        bent = [self.program([*lines[:i], c.bent, *lines[i + 1 :]]) for i, c in enumerate(self.clauses)]
        left_out = [self.without(i) for i in range(len(self.clauses))]
        return (*itertools.chain(*zip(left_out, bent, strict=True)), self.program(lines, guarded=False))

    def case(self, xs: Sequence[Value]) -> TestCase:
        """What is right for the input."""
        return TestCase(f"{self.entry_point}({list(xs)!r})", repr(returned(self.reference, self.entry_point, xs)))

    def plain(self, rng: random.Random, count: int) -> list[Value]:
        """Different values that no clause is about."""
        return rng.sample(_plain_values(self.material, self.clauses), count)

    def touching(self, place: int, rng: random.Random) -> list[Value] | None:
        """An input that shows whether that clause is honoured and not whether their order is; None: not found."""
        clause = self.clauses[place]
        left_out, swapped = self.without(place), self.program([c.line for c in reversed(self.clauses)])
        for _ in range(_TRIES):
            xs = clause.touch(rng, functools.partial(self.plain, rng))
            if self._differs(left_out, xs) and not self._differs(swapped, xs):
                return xs
        return None

    def problem(self, problem_id: str, rng: random.Random, golden_edge: float) -> Problem:
        golden = [self._golden_input(rng, golden_edge) for _ in range(GOLDEN_TESTS)]
        hidden: list[list[Value]] = []
        for place in range(len(self.clauses)):
            hidden += [self._touching(place, rng) for _ in range(TESTS_A_CLAUSE)]
        hidden += [[], *([*self.plain(rng, rng.randint(2, 4))] for _ in range(PLAIN_TESTS))]
        survivors = [
            mutant
            for mutant in self.mutants()
            if not any(self._differs(mutant, xs) for xs in golden) and any(self._differs(mutant, xs) for xs in hidden)
        ]
        rng.shuffle(survivors)  # so that the first of them are of no kind in particular
        named = "+".join(clause.name for clause in self.clauses)
        source, problem_id = f"fineprint {self.material.name}", f"{problem_id}/{self.operation.name}/{named}"
        return problem_of(source, problem_id, self, [*map(self.case, golden)], [*map(self.case, hidden)], survivors)

    def _golden_input(self, rng: random.Random, golden_edge: float) -> list[Value]:
        if rng.random() < golden_edge:
            return self._touching(rng.randrange(len(self.clauses)), rng)
        return self.plain(rng, rng.randint(2, 4))

    def _touching(self, place: int, rng: random.Random) -> list[Value]:
        xs = self.touching(place, rng)
        assert xs is not None, "questions are drawn so that there is one"
        return xs

    def _differs(self, program: str, xs: Sequence[Value]) -> bool:
        ours, theirs = (returned(source, self.entry_point, xs) for source in (self.reference, program))
        return type(ours) is not type(theirs) or bool(ours != theirs)


def clause_of_tests(problem: Problem) -> tuple[str, ...]:
    """For each hidden test of a problem of this family the name of the clause that it touches, EMPTY or PLAIN; () for
    any other problem. The problem's id says its clauses, so that this holds for a file of such problems, too."""
    if not problem.problem_id.startswith(("fineprint/", "fineprint_words/")):
        return ()
    names = problem.problem_id.rpartition("/")[2].split("+")
    parts = [name for name in names for _ in range(TESTS_A_CLAUSE)] + [EMPTY] + [PLAIN] * PLAIN_TESTS
    return tuple(parts) if len(parts) == len(problem.hidden_tests) else ()


def clause_of_mutant(problem: Problem, mutant: str) -> str:
    """The clause that a mutant of a problem of this family does not honour; empty for any other problem or program."""
    if not clause_of_tests(problem):
        return ""
    family, *_, named = problem.problem_id.split("/")
    material = next(each for each in (NUMBERS, WORDS) if FAMILY_OF[each.name] == family)
    clauses = [clause for clause in material.clauses if clause.name in named.split("+")]
    sources = (problem.reference_solution or "", mutant)
    right, written = ({line.strip() for line in source.splitlines()} for source in sources)
    if right == written or not written <= right | {clause.bent for clause in clauses}:
        return ""
    missing = [clause.name for clause in clauses if clause.line not in written]
    return missing[0] if missing else EMPTY


def fineprint_problems(
    split: Split,
    count: int,
    seed: int,
    golden_edge: float = 0.0,
    *,
    material: Material = NUMBERS,
    lengths: Sequence[int] = ONE_OR_TWO,
) -> tuple[Problem, ...]:
    """`count` distinct problems of one split; equal arguments give equal problems, and the first ones do not depend on
    `count`.

    `golden_edge` in [0, 1]: the probability that a golden test touches a clause. `lengths`: numbers of clauses beside
    EMPTY, 1 to 4, that are drawn alike. Raises ConfigurationError where there are not so many questions.
    """
    require_choice("split", split, ("train", "held_out"))
    if not lengths or not all(type(length) is int and 1 <= length <= 4 for length in lengths):
        raise ConfigurationError(f"lengths must be numbers from 1 to 4, got {lengths!r}")
    family = FAMILY_OF[material.name]
    return problems_of(family, split, seed, _questions(split, count, seed, material, lengths), golden_edge)


fineprint_words_problems = functools.partial(fineprint_problems, material=WORDS)
"""The same on words."""


FAMILY_OF = {"numbers": "fineprint", "words": "fineprint_words"}
"""The family's name by that of what its questions are about."""


def _questions(
    split: Split, count: int, seed: int, material: Material, lengths: Sequence[int]
) -> tuple[FinePrint, ...]:
    require(type(count) is int and count >= 0, "count", "be a whole number and not negative", count)
    rng = random.Random(f"fineprint {material.name} {split} {seed}")
    drawn: dict[str, FinePrint] = {}
    missed = 0
    while len(drawn) < count:
        operation = rng.choice(material.operations)
        allowed = _clauses_of(material, operation, split)
        length = rng.choice(lengths)
        clauses = tuple(rng.sample(allowed, length)) if length <= len(allowed) else ()
        wordings = tuple(rng.randrange(2) for _ in range(length + 1))
        question = FinePrint(material, rng.choice(ENTRY_POINTS), operation, clauses, wordings)
        if clauses and question.question not in drawn and _shows_every_clause(material, operation, clauses):
            drawn[question.question] = question
            missed = 0
        elif (missed := missed + 1) > 2000:
            raise ConfigurationError(
                f"count must be at most about {len(drawn)} for split {split!r} of {FAMILY_OF[material.name]} with "
                f"{sorted(set(lengths))} clauses, got {count}"
            )
    return tuple(drawn.values())


@functools.cache
def _plain_values(material: Material, clauses: tuple[Clause, ...]) -> tuple[Value, ...]:
    """The values that no clause changes where they stand alone."""
    lines = [clause.line for clause in clauses]
    name = material.parameter
    untouched = [f"def alone({name}):\n    {line}\n    return {name}\n" for line in lines]
    return tuple(x for x in material.values if all(returned(source, "alone", [x]) == [x] for source in untouched))


@functools.cache
def _clauses_of(material: Material, operation: FineprintOperation, split: Split) -> tuple[Clause, ...]:
    """Those that may stand beside the operation in that split: the same for every seed, so that no run trains on what
    another is measured on. Clauses that its result cannot show are in neither."""
    row = material.operations.index(operation)
    return tuple(
        clause
        for column, clause in enumerate(material.clauses)
        if ((row + column) % HELD_OUT_EVERY == 0) == (split == "held_out")
        and _shows_every_clause(material, operation, (clause,))
    )


@functools.cache
def _shows_every_clause(material: Material, operation: FineprintOperation, clauses: tuple[Clause, ...]) -> bool:
    """Whether there are plain inputs, and inputs on which each clause can be seen whatever their order."""
    question = FinePrint(material, ENTRY_POINTS[0], operation, clauses)
    if len(_plain_values(material, clauses)) < 9:
        return False
    rng = random.Random("fineprint able")
    return all(question.touching(place, rng) is not None for place in range(len(clauses)))
