"""Does a relation say anything? Which other values it refuses, of a set that follows from the right value and the call.

    others(value)    values of the same type near it:
      bool           the other one
      int            v-1 v+1 v-2 v+2 v-3 v+3 v-4 v+4 v-6 v+6 v-10 v+10 2v 0; of the other sign the first alone
      float          0.9v 1.1v v/2 2v -v v-1 v+1 v-10 v+10, and near 0 also v-0.01 v+0.01; likewise; with a tolerance
                     above 0.05 also v/3 3v v/9 9v v/27 27v 81v 243v
      inf, nan       0 1 2 10 1e6 1e300 and -1, or all of the other sign
      complex        v+1 v-1 v+1j 2v 0
      str, bytes     empty, less the last or first, last one twice, one more, first or last replaced (twice), reversed
      list, tuple    the same
      dict           empty, less the last or first key, one more key, first or last value replaced, first key replaced
      set            empty, less the least or greatest, one more, one replaced
      other kinds    see `kind_neighbours.py`
      None           nothing: what mutants return, and values near the first of those, or not at all

and the values that the problem's own mutants return for the call. What is put in comes from the call's arguments (parts
of the same type, words and letters of texts) or else is next to a part of the value; the last one of a sequence is
replaced by another of its own. So no fresh part can be told without knowing the value.

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
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import accumulate, chain
from typing import Any

from codea1_env.judging.equality import Number, as_seen, is_by_identity, member_text, number_in, same_tree
from codea1_env.judging.relations.kind_neighbours import Plain, exact_others, kind_others
from codea1_env.judging.relations.tree_values import Undefined, number_tree
from codea1_env.judging.relations.truth import fits, holds_of
from codea1_env.problems.tolerances import EXACT, Tolerances
from codea1_env.reading.kinds.nodes import kind_of
from codea1_env.reading.literals import Tree, encode
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
    known = [_comparable(right)]
    for other in (*near, *returned):
        seen = _comparable(other)
        if not any(same_tree(each, seen, tolerance) for each in known):
            values.append(other)
            known.append(seen)
    return values


def _comparable(tree: Tree) -> Tree:
    """With tuples in the place of iterators and objects, which equal nothing."""
    if type(tree) is not dict and type(tree) is not list:
        return tree
    encoded = encode(tree)
    return json.loads(as_seen(encoded)) if is_by_identity(encoded) else tree


def _text(part: Tree) -> str:
    """A text that equal parts share."""
    return member_text(_comparable(part))


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


def others(tree: Any, spare: Sequence[Tree] = (), tolerance: Tolerances = EXACT) -> list[Tree]:
    """Other values of the same type as a sound tree; some may be equal to it or to each other. With a large `tolerance`
    there are more of a number, since near ones are equal to it."""
    if tree is None:
        return []
    if type(tree) is bool:
        return [not tree]
    number = number_in(tree)
    if number is not None:
        return _numbers(number, tolerance)
    if type(tree) is str:
        letters = [part for part in spare if type(part) is str and len(part) == 1]
        return ["".join(part) for part in _sequences(list(tree), letters, "ak1-e ")]
    if type(tree) is list:
        return [list(part) for part in _sequences(tree, spare)]
    ((tag, body),) = tree.items()
    if tag in ("k", "v"):
        plain = Plain(lambda items: _sequences(items, spare), lambda pairs: _dicts(pairs, spare),
                      lambda members: _sets(members, spare), lambda part: others(part, spare), _near)  # fmt: skip
        return kind_others(tree, plain)
    if tag == "t":
        return [{"t": part} for part in _sequences(body, spare)]
    if tag == "b":
        given = list(bytes.fromhex(body))
        return [{"b": bytes(part).hex()} for part in _sequences(given, (), b"ak1-e ", lambda byte: byte ^ 1)]
    if tag in ("s", "z"):
        return [{tag: part} for part in _sets(body, spare)]
    return [{"d": part} for part in _dicts(body, spare)]


def _numbers(number: Number, tolerance: Tolerances) -> list[Tree]:
    if isinstance(number, Fraction | Decimal):
        return exact_others(number) if isinstance(number, Fraction) or number.is_finite() else [0, 1, 2, 10, -1]
    if isinstance(number, complex):
        values: list[Any] = [number + 1, number - 1, number + 1j, 2 * number, 0j]
        return [number_tree(value) for value in values]
    if isinstance(number, int):
        return _mostly_of_sign(number, [*(number + sign * step for step in _STEPS for sign in (-1, 1)), 2 * number, 0])
    if not math.isfinite(number):
        sign = -1.0 if number < 0 else 1.0
        return [number_tree(sign * value) for value in _FINITE]
    factors = [0.9 * number, 1.1 * number, number / 2, 2 * number, -number]
    near = [number - 0.01, number + 0.01] if abs(number) < 1 else []
    near += [number * 3.0**power for power in (-3, -2, -1, 1, 2, 3, 4, 5)] if tolerance.float.largest > _LARGE else []
    return _mostly_of_sign(number, [*factors, *near, number - 1, number + 1, number - 10, number + 10, 0.0])


_STEPS = (1, 2, 3, 4, 6, 10)
_FINITE = (0.0, 1.0, 2.0, 10.0, 1e6, 1e300, -1.0)
"""What stands for the numbers around an infinite one: steps from it lead nowhere."""
_LARGE = 0.05
"""A tolerance within which some of a float's usual neighbours are equal to it."""


def _mostly_of_sign(number: int | float, values: Sequence[int | float]) -> list[Tree]:
    """Those of the number's sign and the first one that is not: that a number is not negative says little."""
    near = [value for value in values if (value >= 0) == (number >= 0)]
    far = [value for value in values if (value >= 0) != (number >= 0)]
    return [number_tree(value) for value in (*near, *far[:1])]


def _near(tree: Any) -> Tree:
    """Another value of the same type and shape, next to it."""
    if tree is None:
        return 0
    if type(tree) is bool:
        return not tree
    number = number_in(tree)
    if number is not None:
        if isinstance(number, float | Decimal) and not math.isfinite(number):
            number = 0
        return number_tree(number - 1 if not isinstance(number, complex) and number < 0 else number + 1)
    if type(tree) is str:
        return tree[:-1] + _next_letter(tree[-1:])
    if type(tree) is list:
        return [*tree[:-1], _near(tree[-1])] if tree else [0]
    ((tag, body),) = tree.items()
    if tag in ("k", "v"):
        return next(iter(others(tree)), 0)
    if tag == "b":
        return {"b": f"{body[:-2]}{int(body[-2:] or '0', 16) ^ 1:02x}"}
    if not body:
        return {tag: [[0, 0]] if tag == "d" else [0]}
    if tag == "d":
        key, value = body[-1]
        return {"d": [*body[:-1], [key, _near(value)]]}
    return {tag: body[:-1] if tag in ("s", "z") and len(body) > 1 else [*body[:-1], _near(body[-1])]}


def _next_letter(letter: str) -> str:
    if not (letter.isascii() and letter.isalnum()):
        return "a"
    return {"z": "a", "Z": "A", "9": "0"}.get(letter) or chr(ord(letter) + 1)


def _candidates(part: Any, spare: Sequence[Tree], count: int, near: Callable[[Any], Any] = _near) -> Iterator[Any]:
    """What may stand in a part's place: of the same type, from the arguments; then the part's neighbours."""
    yield from (each for each in spare if _kind(each) == _kind(part))
    for _ in range(count + 1):
        part = near(part)
        yield part


def _kind(tree: Any) -> tuple[Any, ...]:
    if type(tree) is dict:
        return (dict, *tree, kind_of(tree))
    return (type(tree), *([len(tree) == 1] if type(tree) is str else []))


def _sequences(
    items: list[Any], spare: Sequence[Tree], first_ones: Sequence[Any] = (), near: Callable[[Any], Any] = _near
) -> list[list[Any]]:
    """Other sequences: shorter, longer, with one element replaced, in the other order."""
    if not items:
        return _of_nothing(spare, first_ones or _MEMBERS)
    first, last = items[0], items[-1]
    known = {_text(item) for item in items}
    fresh = _fresh(first, known, spare, near)
    other = _fresh(first, known | {_text(fresh)}, (), near)
    middle = len(items) // 2
    own = (each for each in (*items[middle:], *items[:middle]) if _text(each) != _text(last))
    return [
        [], items[:-1], items[1:], [*items, last], [*items, fresh], [fresh, *items[1:]], [other, *items[1:]],
        [*items[:-1], next(own, near(last))], [*items[:-1], _fresh(last, known, (), near)], items[::-1],
    ]  # fmt: skip


def _fresh(part: Any, known: set[str], spare: Sequence[Tree], near: Callable[[Any], Any]) -> Any:
    """A value in an element's place that is not `known`, or a neighbour where all of them are."""
    candidates = _candidates(part, spare, len(known), near)
    return next((each for each in candidates if _text(each) not in known), near(part))


_MEMBERS = (0, "a", 1, "b", 2, "c")


def _of_nothing(spare: Sequence[Tree], first_ones: Sequence[Any]) -> list[list[Any]]:
    """Three sequences that are not empty: no two share an element or a length."""
    plain = [each for each in spare if type(each) in (str, int, float)]
    one, *more = {_text(each): each for each in (*plain, *first_ones)}.values()
    return [[one], more[:2], more[2:5]]


def _sets(members: list[Any], spare: Sequence[Tree]) -> list[list[Any]]:
    if not members:
        return _of_nothing(spare, _MEMBERS)
    ordered = sorted(members, key=_text)
    fresh, other = _fresh_members(ordered, spare)
    return [[], ordered[1:], ordered[:-1], [*ordered, fresh], [*ordered[1:], other]]


def _fresh_members(members: Sequence[Any], spare: Sequence[Tree]) -> tuple[Tree, Tree]:
    """Two values that can stand in a set beside its members: from the arguments if they have one, and a neighbour."""
    known = {_text(member) for member in members}
    last = [f"x{place}" for place in range(len(known) + 1)]  # where every neighbour is a member
    fresh, other = (
        next(each for each in (*_candidates(members[0], given, len(known)), *last) if _text(each) not in known)
        for given in (spare, ())
    )
    return fresh, other


def _dicts(pairs: list[list[Any]], spare: Sequence[Tree]) -> list[list[Any]]:
    if not pairs:
        return [[[key, key] for key in keys] for keys in _of_nothing(spare, _MEMBERS)]
    fresh, other = _fresh_members([key for key, _ in pairs], spare)
    (first, value), (last, last_value) = pairs[0], pairs[-1]
    return [
        [], pairs[1:], pairs[:-1], [*pairs, [fresh, value]], [[first, _near(value)], *pairs[1:]],
        [*pairs[:-1], [last, _near(last_value)]], [[other, value], *pairs[1:]],
    ]  # fmt: skip


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
