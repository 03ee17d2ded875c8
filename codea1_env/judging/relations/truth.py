"""Is a relation true of a returned value? Evaluates `reading/wide/relation.py` on wire trees, on the trusted side.

Total: whatever would raise in Python makes the relation false, as it makes an assert fail; who asks what is said of a
right value (`says`) is told that it is neither. Pure: nothing untrusted is built, hashed, evaluated or called. Bounded
without a clock: a relation has at most MAX_TERMS terms, no term makes a value larger than its parts
(`tree_functions.py`), and where terms times bytes exceed MAX_WORK nothing is evaluated (`fits`). Equality is the
judge's own, with its tolerance for floats, never less than ROUNDING; tolerances that a relation states itself come on
top. Does not decide whether a relation says anything (`status.py`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from codea1_env.judging.equality import FAILURES, ROUNDING, is_opaque
from codea1_env.judging.relations.tree_functions import OPERATORS
from codea1_env.judging.relations.tree_values import COMPARED, items_of, require_sound, truth
from codea1_env.problems.tolerances import Tolerances
from codea1_env.reading.literals import Tree
from codea1_env.reading.wide.relation import RETURNED_VALUE, Relation

MAX_WORK = 1 << 18
"""Terms of a relation times bytes of its constants and of the right value: a larger test is rejected. Sorting a value
that has others in it counts as many terms as each of them is compared with."""
_SLACK = 4
"""How much more a returned value may take: one that is equal to the right one may be written longer."""


def fits(relation: Relation, constants: bytes, returned: bytes) -> bool:
    """Whether the relation is small enough for this right value."""
    return _work(relation, constants, returned) <= MAX_WORK


def holds(relation: Relation, constants: bytes, returned: bytes, tolerance: Tolerances | float) -> bool:
    """Whether the relation is true. `constants`: an encoded tuple, of the test's own; `returned`: untrusted."""
    return says(relation, constants, returned, tolerance) is True


def says(
    relation: Relation, constants: bytes, returned: bytes, tolerance: Tolerances | float, *, is_foreign: bool = False
) -> bool | None:
    """Likewise; None where it is undefined, as where Python would raise or the data do not tell, where the value is not
    plain data, and where they are far too large (`fits`). `is_foreign`: if values are of libraries' types which come
    back as Python's, as numpy's numbers do."""
    if is_opaque(returned) or _work(relation, constants, returned) > _SLACK * MAX_WORK:
        return None
    try:
        trees, tree = json.loads(constants)["t"], json.loads(returned)
        return _truth_of(relation, trees, tree, Tolerances.of(tolerance), is_foreign)
    except FAILURES:
        return None


def _work(relation: Relation, constants: bytes, returned: bytes) -> int:
    # With more brackets than those of one list or tuple, what is sorted may be no plain items (`tree_functions.py`).
    is_nested = returned.count(b"[") + returned.count(b"{") > 1 + returned.startswith(b"{")
    rounds = len(returned).bit_length() if is_nested else 1
    terms = sum(rounds if term.operator in ("sorted", "same_items") else 1 for term in relation.walk())
    of_items = [part for term in relation.walk() if term.operator == "each" for part in term.parts[1:]]
    rounds = returned.count(b",") + 1 if of_items else 1
    again = len(returned) if any(RETURNED_VALUE in part.walk() for part in of_items) else 0
    return terms * (rounds * (len(constants) + again) + len(returned))


def holds_of(relation: Relation, constants: Sequence[Tree], returned: Tree, tolerance: Tolerances) -> bool:
    """`holds`, of trees whose size the caller bounds."""
    try:
        return _truth_of(relation, constants, returned, tolerance)
    except FAILURES:
        return False


def _truth_of(
    relation: Relation, constants: Sequence[Tree], returned: Tree, tolerance: Tolerances, is_foreign: bool = False
) -> bool:
    require_sound(returned)
    return truth(_Evaluation(constants, returned, tolerance, is_foreign).of(relation))


def part_of(term: Relation, constants: Sequence[Tree], right: Tree) -> Tree:
    """What a term comes to of a right value. Raises one of FAILURES."""
    return _Evaluation(constants, right, Tolerances.of(0)).of(term)  # type: ignore[no-any-return]  # a tree


def _comes_of_others(tree: Tree) -> bool:
    """Whether values of libraries' types come back as this: numpy's numbers, bytearrays, dicts of other classes."""
    return type(tree) in (bool, int, float) or (type(tree) is dict and not {"b", "d"}.isdisjoint(tree))


class _Evaluation:
    """One relation on one value."""

    def __init__(
        self, constants: Sequence[Tree], returned: Tree, tolerance: Tolerances, is_foreign: bool = False
    ) -> None:
        self._constants = constants
        self._returned = returned
        self._tolerance = tolerance.or_laxer(ROUNDING)
        self._element: Tree = None
        self._is_foreign = is_foreign

    def of(self, term: Relation) -> Any:
        """The term's value, a tree. Raises one of FAILURES."""
        name, parts = term.operator, term.parts
        if name == "returned":
            return self._returned
        if name == "constant":
            return self._constants[term.place]
        if name in ("and", "or"):  # as in Python: the part that decides
            for part in parts[:-1]:
                value = self.of(part)
                if truth(value) == (name == "or"):
                    return value
            return self.of(parts[-1])
        if name == "element":
            return self._element
        if name == "each":
            return list(self._each(*parts))
        values = [self.of(part) for part in parts]
        is_of_type = name in ("is", "isnot", "isinstance", "hastype") and not parts[0].is_truth
        if self._is_foreign and is_of_type and _comes_of_others(values[0]):
            return name == "isnot"
        if name in COMPARED:
            return COMPARED[name](self._tolerance, *values)
        return OPERATORS[name](*values)

    def _each(self, items: Relation, made: Relation, *wanted: Relation) -> Iterator[Tree]:
        for item in items_of(self.of(items)):
            self._element = item
            if all(truth(self.of(condition)) for condition in wanted):
                yield self.of(made)
