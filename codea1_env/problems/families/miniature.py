"""The miniature family: about 11,000 small problems on `xs: list[int]`, made by a seeded procedure.

A problem filters a list, maps what is left and aggregates it. Its golden tests are the few that a hurried person
writes (no edge, unless `golden_edge` asks for some); its hidden tests aim at the edges. Problems are split by the
triple of their operations' types: no composition of a held-out triple is ever in the training split.

Does not promise that golden tests find bugs: that they mostly do not is the point of the family, and the gap between
golden-test training and adversarial training is thereby built in. `golden_edge` turns it down.

Running programs here, in this process, is safe: every one is rendered from the tables of `miniature_operations.py`,
loops only over the list it is given and touches nothing else. No model's output ever comes this way.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from codea1_env.checks import require, require_choice
from codea1_env.problems.families.bands import Split, problem_of, problems_of
from codea1_env.problems.families.miniature_operations import AGGREGATES, FILTERS, MAPS, ListOperation
from codea1_env.problems.problem import Problem
from codea1_env.reading.test_case import TestCase

ENTRY_POINTS = ("solve", "calc", "run", "f")
HELD_OUT_SHARE = 0.15
"""Share of the triples of types that belong to the held-out split."""
GOLDEN_TESTS = 3
HIDDEN_TESTS = 24
"""Hidden tests beside the one on the empty list, which every problem has."""
HIDDEN_EDGE_SHARE = 0.7


RAISED = object()
"""What a program that raises is said to return; equal to nothing but itself."""


@dataclass(frozen=True, slots=True)
class Composition:
    """One question of the family: an entry point's name and three operations."""

    entry_point: str
    keep: ListOperation
    transform: ListOperation
    aggregate: ListOperation

    @property
    def triple(self) -> tuple[str, str, str]:
        """The operations' types, by which the split is made."""
        return (self.keep.kind, self.transform.kind, self.aggregate.kind)

    @property
    def question(self) -> str:
        described = f"{self.transform.phrase} in xs {self.keep.phrase}".strip()
        return f"{self.entry_point}(xs): return {self.aggregate.phrase.format(described)}."

    @property
    def reference(self) -> str:
        return self._render(self.keep.correct[0], self.transform.correct[0], self.aggregate.correct[0], loop=False)

    def program(self, rng: random.Random, bug_rate: float) -> str:
        """A program as an imperfect programmer writes it: a bug at each operation with probability `bug_rate`
        (half of it where bugs are gross), three quarters of the bugs on the most natural one."""
        chosen = [_imperfect(operation, rng, bug_rate) for operation in (self.keep, self.transform, self.aggregate)]
        return self._render(*chosen, loop=rng.random() < 0.4)

    def mutants(self, rng: random.Random) -> tuple[str, ...]:
        """Every program with exactly one bug, each as a comprehension or a loop by chance."""
        operations = (self.keep, self.transform, self.aggregate)
        right = [operation.correct[0] for operation in operations]
        mutants = []
        for place, operation in enumerate(operations):
            for bug in operation.bugs:
                chosen = [bug if i == place else text for i, text in enumerate(right)]
                mutants.append(self._render(*chosen, loop=rng.random() < 0.4))
        return tuple(mutants)

    def typical_input(self, rng: random.Random) -> list[int]:
        """What a hurried person tries: 3 to 5 distinct numbers, no zero, none that the question names."""
        avoided = {*self.keep.constants, *self.transform.constants}
        pool = [x for x in range(1, 10) if x not in avoided]
        xs = rng.sample(pool, rng.choice((3, 3, 4, 4, 5)))
        return [x if rng.random() < 0.5 else -x for x in xs] if self.keep.signed else xs

    def edge_input(self, rng: random.Random) -> list[int]:
        """What a careful adversary tries: the empty list, short ones, zeros, repeats, the numbers of the question."""
        if rng.random() < 0.12:
            return []
        constants = [*self.keep.constants, *self.transform.constants]
        pool = [*range(-9, 10), *[0] * 3, *constants * 6, *[-k for k in constants] * 2]
        xs = [rng.choice(pool) for _ in range(rng.choice((1, 1, 2, 2, 3, 4, 5)))]
        if len(xs) > 1 and rng.random() < 0.5:
            xs[-1] = xs[0]
        return xs

    def case(self, xs: Sequence[int], value: object) -> TestCase:
        """`value` stated as the result of a call on `xs`; right or not."""
        return TestCase(f"{self.entry_point}({list(xs)!r})", repr(value))

    def run(self, program: str, xs: Sequence[int]) -> Any:
        """What a program of this family returns for `xs`, or RAISED. For programs rendered here only."""
        return returned(program, self.entry_point, xs)

    def problem(self, problem_id: str, rng: random.Random, golden_edge: float) -> Problem:
        golden = [self._golden_input(rng, golden_edge) for _ in range(GOLDEN_TESTS)]
        hidden = self._hidden_inputs(rng)
        survivors = [
            mutant
            for mutant in self.mutants(rng)
            if all(self._agree(mutant, xs) for xs in golden) and not all(self._agree(mutant, xs) for xs in hidden)
        ]
        stated, held_out = (
            [self.case(xs, self.run(self.reference, xs)) for xs in inputs] for inputs in (golden, hidden)
        )
        return problem_of("miniature", problem_id, self, stated, held_out, survivors)

    def _agree(self, program: str, xs: Sequence[int]) -> bool:
        return bool(self.run(program, xs) == self.run(self.reference, xs))

    def _golden_input(self, rng: random.Random, golden_edge: float) -> list[int]:
        if rng.random() < golden_edge:
            return self.edge_input(rng)
        at_edge = self._render(self.keep.correct[0], self.transform.correct[0], self.aggregate.edge, loop=False)
        for _ in range(40):
            xs = self.typical_input(rng)
            if not self.run(at_edge, xs):
                break
        return xs

    def _hidden_inputs(self, rng: random.Random) -> list[list[int]]:
        inputs: dict[tuple[int, ...], None] = {(): None}
        while len(inputs) < HIDDEN_TESTS + 1:
            xs = self.edge_input(rng) if rng.random() < HIDDEN_EDGE_SHARE else self.typical_input(rng)
            inputs[tuple(xs)] = None
        return [list(xs) for xs in inputs]

    def _render(self, condition: str, expression: str, result: str, *, loop: bool) -> str:
        if not loop:
            guard = f" if {condition}" if condition else ""
            body = f"    ys = [{expression} for x in xs{guard}]\n"
        elif condition:
            body = f"    ys = []\n    for x in xs:\n        if {condition}:\n            ys.append({expression})\n"
        else:
            body = f"    ys = []\n    for x in xs:\n        ys.append({expression})\n"
        return f"def {self.entry_point}(xs):\n{body}    return {result}\n"


def miniature_compositions(split: Split, count: int, seed: int) -> tuple[Composition, ...]:
    """`count` distinct questions of one split. The first ones do not depend on `count`."""
    require_choice("split", split, ("train", "held_out"))
    triples = [(f.kind, m.kind, a.kind) for f in FILTERS for m in MAPS for a in AGGREGATES]
    is_held_out = split == "held_out"
    most = sum((triple in _held_out_triples()) == is_held_out for triple in triples) * len(ENTRY_POINTS) // 2
    require(type(count) is int and 0 <= count <= most, "count", f"be in [0, {most}] for split {split!r}", count)
    rng = random.Random(f"miniature {split} {seed}")
    compositions: dict[str, Composition] = {}
    while len(compositions) < count:
        drawn = Composition(rng.choice(ENTRY_POINTS), rng.choice(FILTERS), rng.choice(MAPS), rng.choice(AGGREGATES))
        if (drawn.triple in _held_out_triples()) == is_held_out:
            compositions.setdefault(drawn.question, drawn)
    return tuple(compositions.values())


def miniature_problems(split: Split, count: int, seed: int, golden_edge: float = 0.0) -> tuple[Problem, ...]:
    """`count` distinct problems of one split; equal arguments give equal problems.

    `golden_edge` in [0, 1] is the probability that a golden test's input is an edge input, not a typical one.
    """
    return problems_of("miniature", split, seed, miniature_compositions(split, count, seed), golden_edge)


@functools.cache
def _held_out_triples() -> frozenset[tuple[str, str, str]]:
    """The same for every seed, so that no run trains on what another is measured on."""
    triples = sorted({(f.kind, m.kind, a.kind) for f in FILTERS for m in MAPS for a in AGGREGATES})
    random.Random("miniature split").shuffle(triples)
    return frozenset(triples[: int(HELD_OUT_SHARE * len(triples))])


def _imperfect(operation: ListOperation, rng: random.Random, bug_rate: float) -> str:
    rate = bug_rate / 2 if operation.gross else bug_rate
    if not operation.bugs or rng.random() >= rate:
        return rng.choice(operation.correct)
    natural, *others = operation.bugs
    return natural if not others or rng.random() < 0.75 else rng.choice(others)


@functools.lru_cache(maxsize=1 << 14)
def _loaded(program: str, entry_point: str) -> Callable[[list[Any]], Any]:
    namespace: dict[str, Any] = {}
    exec(program, namespace)  # Rendered from our own tables: see the modules' docstrings.
    function: Callable[[list[Any]], Any] = namespace[entry_point]
    return function


def returned(program: str, entry_point: str, xs: Sequence[Any]) -> Any:
    """What a program returns for `xs`, or RAISED. For programs that were rendered from a family's own tables only."""
    try:
        return _loaded(program, entry_point)(list(xs))
    except (ValueError, IndexError, TypeError):
        return RAISED
