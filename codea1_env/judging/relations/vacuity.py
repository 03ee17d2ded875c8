"""Does a relation say anything? Which other values it refuses, of a fixed set that follows from the right value.

    others(value)    values of the same type near it and far from it:
      bool           the other one
      int            v-1 v+1 v-2 v+2 v-10 v+10 -v 2v+1 0
      float          0.9v 1.1v v/2 2v -v v-1 v+1 v-10 v+10, and near 0 also v-0.01 v+0.01
      complex        v+1 v-1 v+1j 2v 0
      str, bytes     empty, less the last or the first, the last one twice, one more, first or last replaced, reversed
      list, tuple    the same, with the first other value of an element in its place
      dict           empty, less the last or first key, one more key, first or last value replaced, first key replaced
      set            empty, less the least or greatest, one more, one replaced
      None           nothing: a relation about None counts by what mutants return, or not at all

and the values that the problem's own mutants return for the call. A relation counts if it refuses at least half of
them (REFUSED): `len(f(x)) == 2` does, `len(f(x)) >= 0`, `f(x) == f(x)` and `f(x) != 3` do not. So what a tester is paid
for is near what knowing the value itself takes, and a relation that names one wrong answer of the program in front of
it earns nothing. An equality needs no such check: it refuses every other value.

Does not promise that half is the right share for a task, nor that a relation that counts is strong.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from codea1_env.judging.equality import number_in, same_tree
from codea1_env.judging.relations.truth import fits, holds_of
from codea1_env.reading.literals import NotLiteral, Tree, encode, tree_source
from codea1_env.reading.relation import Relation

REFUSED = 0.5
"""Least share of the other values that a relation which counts must refuse."""
MOST_MUTANTS = 16
"""Mutants of a problem that are asked for a relation's call."""
_FRESH = ("x", "0", " ", "é")


def refusals(
    relation: Relation, constants: bytes, value: bytes, mutants: Sequence[bytes], tolerance: float
) -> list[bool]:
    """Of every other value whether the relation refuses it. `mutants`: encoded plain values. Deterministic."""
    trees: list[Tree] = json.loads(constants)["t"]
    right = json.loads(value)
    mutants = [each for each in mutants if fits(relation, constants, each)]
    return [not holds_of(relation, trees, other, tolerance) for other in all_others(right, mutants, tolerance)]


def all_others(right: Tree, mutants: Sequence[bytes], tolerance: float) -> list[Tree]:
    """Values that are not the right one, no two of them equal: `others`, then what mutants return."""
    values: list[Tree] = []
    for other in (*others(right), *map(json.loads, mutants)):
        if not any(same_tree(known, other, tolerance) for known in (right, *values)):
            values.append(other)
    return values


def others(tree: Any) -> list[Tree]:
    """Other values of the same type as a sound tree; some may be equal to it or to each other."""
    if tree is None:
        return []
    if type(tree) is bool:
        return [not tree]
    number = number_in(tree)
    if number is not None:
        return _numbers(number)
    if type(tree) is str:
        return ["".join(part) for part in _sequences(list(tree), _other_character)]
    if type(tree) is list:
        return [list(part) for part in _sequences(tree, _other_item)]
    ((tag, body),) = tree.items()
    if tag == "t":
        return [{"t": part} for part in _sequences(body, _other_item)]
    if tag == "b":
        return [{"b": bytes(part).hex()} for part in _sequences(list(bytes.fromhex(body)), lambda byte: byte ^ 1)]
    if tag in ("s", "z"):
        return [{tag: part} for part in _sets(body)]
    return [{"d": part} for part in _dicts(body)]


def _numbers(number: int | float | complex) -> list[Tree]:
    if isinstance(number, complex):
        values: list[Any] = [number + 1, number - 1, number + 1j, 2 * number, 0j]
        return [{"c": [_float(value.real), _float(value.imag)]} for value in values]
    if isinstance(number, int):
        ints = [number - 1, number + 1, number - 2, number + 2, number - 10, number + 10, -number, 2 * number + 1, 0]
        return [each if -(1 << 63) <= each < 1 << 63 else {"i": hex(each)} for each in ints]
    factors = [0.9 * number, 1.1 * number, number / 2, 2 * number, -number]
    near = [number - 0.01, number + 0.01] if abs(number) < 1 else []
    return [_float(each) for each in (*factors, *near, number - 1, number + 1, number - 10, number + 10, 0.0)]


def _float(number: float) -> Tree:
    if number - number == 0:
        return number
    return {"f": "nan" if number != number else "inf" if number > 0 else "-inf"}


def _sequences(items: list[Any], other: Any) -> list[list[Any]]:
    """Other sequences: shorter, longer, with one element replaced, in the other order."""
    if not items:
        fresh = [other(None)] if other is _other_item else [other(" ")] if other is _other_character else [0]
        return [fresh, fresh * 2, fresh * 3]
    first, last = other(items[0]), other(items[-1])
    return [
        [], items[:-1], items[1:], [*items, items[-1]], [*items, first], [first, *items[1:]], [*items[:-1], last],
        items[::-1],
    ]  # fmt: skip


def _other_character(character: str) -> str:
    return next(fresh for fresh in _FRESH if fresh != character)


def _other_item(item: Any) -> Tree:
    """Another value in an element's place: of containers an empty one, so that nothing is gone through below it."""
    if item is None:
        return 0
    if type(item) is bool:
        return not item
    number = number_in(item)
    if number is not None:
        return _numbers(number)[0]
    if type(item) is str:
        return "" if item else "x"
    if type(item) is list:
        return [] if item else [0]
    ((tag, body),) = item.items()
    if tag == "b":
        return {"b": "" if body else "00"}
    return {tag: [] if body else [[0, 0]] if tag == "d" else [0]}


def _sets(members: list[Any]) -> list[list[Any]]:
    if not members:
        return [[0], ["x"], [0, 1]]
    ordered = sorted(members, key=_written)
    known = {_written(member) for member in members}
    fresh = next(each for each in _fresh_members(ordered[0]) if _written(each) not in known)
    return [[], ordered[1:], ordered[:-1], [*ordered, fresh], [*ordered[1:], fresh]]


def _fresh_members(member: Any) -> list[Tree]:
    """Values that can stand in a set beside one; more than a set of any size can hold would be no help."""
    near = [other for other in others(member) if type(other) in (str, int, float)]
    return [*near, *(f"x{place}" for place in range(1 << 12)), {"t": []}]


def _dicts(pairs: list[list[Any]]) -> list[list[Any]]:
    if not pairs:
        return [[[0, 0]], [["x", 0]], [[0, 0], [1, 1]]]
    known = {_written(key) for key, _ in pairs}
    fresh = next(each for each in _fresh_members(pairs[0][0]) if _written(each) not in known)
    (first, value), (last, last_value) = pairs[0], pairs[-1]
    return [
        [], pairs[1:], pairs[:-1], [*pairs, [fresh, value]], [[first, _other_item(value)], *pairs[1:]],
        [*pairs[:-1], [last, _other_item(last_value)]], [[fresh, value], *pairs[1:]],
    ]  # fmt: skip


def _written(tree: Any) -> str:
    try:
        return tree_source(tree)
    except NotLiteral:
        return encode(tree).decode()
