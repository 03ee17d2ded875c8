"""The parts of a claim that must all hold: `not (a or b)` says `not a` and `not b`, and each is judged by itself.

    conjuncts(relation, constants)       relations; together they are true where the relation is

What is said of all items of a value is parted likewise: `all(a and b for ...)`. A part may be a choice (`a or b`),
which no `and` stands below. Lower and upper bounds of one term are one part, since either alone says little: `0 < f(x)
<= 3`. Without this, a claim that knows one thing could carry another along that only names the wrong answer in front of
the tester.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

from codea1_env.judging.relations.tree_values import Undefined
from codea1_env.reading.literals import Tree
from codea1_env.reading.wide.relation import RETURNED_VALUE, Relation

MOST_CHOICES = 8
"""Parts that one `or` of `and`s may be multiplied out to."""
_BOUNDS = ("lt", "le", "gt", "ge")
_Clause = tuple[Relation, ...]


def conjuncts(relation: Relation, constants: Sequence[Tree]) -> list[Relation]:
    """At least one. Raises Undefined where a truth is calculated with, or there are too many choices."""
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
            raise Undefined("too many choices")
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
        raise Undefined("a truth is calculated with")  # `(f(x) != 3) > (f(x) < 0)` would be an `and` in disguise
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
