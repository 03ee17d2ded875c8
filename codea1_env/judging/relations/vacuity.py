"""Does a relation say anything? Which other values it refuses, of a set that follows from the right value and the call.

The other values are those near the right one (`neighbours.py`) and those that the problem's own mutants return for the
call.

A relation counts if one of its parts (`conjuncts`) refuses at least half of them (REFUSED) and every other part more
than a quarter (BESIDE): `len(f(x)) == 2` does, `len(f(x)) >= 0`, `f(x) == f(x)` and `f(x) != 3` do not, nor does a
claim that carries one of these along. An equality needs no such check: it refuses every other value.

The parts are what must all hold: `not (a or b)` says `not a` and `not b`. What is said of all items of a value is
parted likewise: `all(a and b for ...)`. A part may be a choice (`a or b`), which no `and` stands below. Lower and upper
bounds of one term are one part, since either alone says little: `0 < f(x) <= 3`. Without this, a claim that knows one
thing could carry another along that only names the wrong answer in front of the tester.

Does not promise that half is the right share for a task, nor that a relation that counts is strong: a property that
sets the value apart from its neighbours is enough.
"""

from __future__ import annotations

import itertools
import json
import math
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, chain
from typing import Any

from codea1_env.judging.equality import same_tree
from codea1_env.judging.relations.neighbours import comparable, others
from codea1_env.judging.relations.truth import fits, holds_of
from codea1_env.problems.tolerances import Tolerances
from codea1_env.reading.literals import Tree
from codea1_env.reading.wide.relation import RETURNED_VALUE, Relation

REFUSED = 0.5
"""Least share of the other values that the strongest part of a relation which counts must refuse."""
BESIDE = 0.25
"""And what every other part of it must refuse more than."""
MOST_MUTANTS = 16
"""Mutants of a problem that are asked for a relation's call."""
_MOST_BYTES = 1 << 17
"""Of what they return, as encoded, that is looked at: the first ones; every two of the values are compared."""
_MOST_SPARE = 256
"""Parts of a call's arguments that other values are made of."""


def refusals(
    relation: Relation,
    constants: bytes,
    arguments: bytes,
    value: bytes,
    mutants: Sequence[bytes],
    tolerance: Tolerances,
) -> list[bool]:
    """Of every other value whether the relation refuses it; nothing for a relation that does not count.

    `arguments`: the call's; `mutants`: encoded plain values. Deterministic. Raises one of FAILURES where what is given
    stands for no value.
    """
    trees: list[Tree] = json.loads(constants)["t"]
    mutants = _first(each for each in mutants if fits(relation, constants, each))
    values = all_others(json.loads(value), spare_parts(arguments), mutants, tolerance)

    def refused(part: Relation) -> list[bool]:
        return [not holds_of(part, trees, other, tolerance) for other in values]

    counts = [sum(refused(part)) for part in conjuncts(relation, trees)]
    if not values or max(counts) < REFUSED * len(values) or min(counts) <= BESIDE * len(values):
        return []
    return refused(relation)


def _first(values: Iterable[bytes]) -> list[bytes]:
    """As many as _MOST_BYTES have."""
    values = list(values)
    ends = accumulate(map(len, values))
    return [value for value, end in zip(values, ends, strict=True) if end <= _MOST_BYTES]


def all_others(right: Tree, spare: Sequence[Tree], mutants: Sequence[bytes], tolerance: Tolerances) -> list[Tree]:
    """Values that are not the right one, no two of them equal: `others`, then what mutants return."""
    returned = [json.loads(each) for each in mutants]
    near = others(right, spare, tolerance)
    if right is None and returned:
        # Else `f(x) != 3` would refuse all where mutants return nothing but 3.
        near = others(returned[0], spare, tolerance)
    values: list[Tree] = []
    known = [comparable(right)]
    for other in (*near, *returned):
        seen = comparable(other)
        if not any(same_tree(each, seen, tolerance) for each in known):
            values.append(other)
            known.append(seen)
    return values


def spare_parts(arguments: bytes) -> list[Tree]:
    """What a call is given, and the parts of that: elements, keys, words and letters. The first ones."""
    positional, named = json.loads(arguments)
    waiting: deque[Any] = deque([*positional, *(value for _, value in named)])
    parts: list[Tree] = []
    while waiting and len(parts) < _MOST_SPARE:
        part = waiting.popleft()
        parts.append(part)
        if type(part) is str:
            parts += [*part[:_MOST_SPARE].split(), *part[:_MOST_SPARE]]
        elif type(part) is list:
            waiting.extend(part[:_MOST_SPARE])
        elif type(part) is dict:
            ((tag, body),) = part.items()
            if tag in ("t", "s", "z", "d"):
                waiting.extend(chain(*body[:_MOST_SPARE]) if tag == "d" else body[:_MOST_SPARE])
    return parts


MOST_CHOICES = 8
"""Parts that one `or` of `and`s may be multiplied out to."""
_BOUNDS = ("lt", "le", "gt", "ge")
_Clause = tuple[Relation, ...]


def conjuncts(relation: Relation, constants: Sequence[Tree]) -> list[Relation]:
    """At least one. Raises ValueError where a truth is calculated with, or there are too many choices."""
    bounds: dict[Relation, list[Relation]] = {}
    parts = []
    for clause in _clauses(relation, True, constants):
        term = _bounded(clause[0]) if len(clause) == 1 else None
        if term is None:
            parts.append(_joined("or", clause))
        else:
            bounds.setdefault(term, []).append(clause[0])
    return parts + [_joined("and", each) for each in bounds.values()]


def _clauses(term: Relation, wanted: bool, constants: Sequence[Tree]) -> list[_Clause]:
    """What must all hold for the term to be as `wanted`: choices, of which one must hold each."""
    name, parts = term.operator, term.parts
    if name in ("not", "bool"):
        return _clauses(parts[0], wanted == (name == "bool"), constants)
    if name in ("and", "or"):
        rows = [_clauses(part, wanted, constants) for part in parts]
        if (name == "and") == wanted:
            return [clause for row in rows for clause in row]
        if math.prod(map(len, rows)) > MOST_CHOICES:
            raise ValueError("too many choices")
        return [tuple(itertools.chain(*choice)) for choice in itertools.product(*rows)]
    if name in ("eq", "ne", "is", "isnot"):
        for claim, said in (parts, parts[::-1]):
            truth = constants[said.place] if said.operator == "constant" else None
            if _is_truth(claim) and type(truth) is bool:
                return _clauses(claim, wanted == (truth == (name in ("eq", "is"))), constants)
    if name == ("all" if wanted else "any") and parts[0].operator == "each":
        items, made, *conditions = parts[0].parts  # of every item, each part of the claim
        return [(Relation("all", (Relation("each", (items, _joined("or", clause), *conditions)),)),)
                for clause in _clauses(made, wanted, constants)]  # fmt: skip
    if any(_is_truth(inner) for part in parts for inner in _walk(part)):
        raise ValueError("a truth is calculated with")  # `(f(x) != 3) > (f(x) < 0)` would be an `and` in disguise
    return [(term if wanted else Relation("not", (term,)),)]


def _walk(term: Relation) -> Iterator[Relation]:
    """The term and what is below it, but for what is said of single items alone."""
    yield term
    is_of_items = term.operator == "each" and RETURNED_VALUE not in {
        inner for part in term.parts[1:] for inner in part.walk()
    }
    for part in term.parts[:1] if is_of_items else term.parts:
        yield from _walk(part)


def _is_truth(term: Relation) -> bool:
    """It decides something, so that a calculation with it can stand for `and` and `or`."""
    decides = term.operator in ("and", "or", "startswith", "endswith", "isdigit")
    counts_in_constant = term.operator == "count" and term.parts[0].operator == "constant"
    return term.is_truth or decides or counts_in_constant


def _bounded(term: Relation) -> Relation | None:
    """What a comparison with a constant bounds."""
    term = term.parts[0] if term.operator == "not" else term
    if term.operator in _BOUNDS:
        for bounded, bound in (term.parts, term.parts[::-1]):
            if bound.operator == "constant":
                return bounded
    return None


def _joined(name: str, parts: Sequence[Relation]) -> Relation:
    return parts[0] if len(parts) == 1 else Relation(name, tuple(parts))
