"""Wire trees as values: their items, numbers and order, and how the comparisons of a relation compare them.

Each raises one of FAILURES where Python would raise, and where numbers are too large to calculate with. Sets
are listed in an order of our own: Python's says nothing. Nothing untrusted is built, hashed, evaluated or called; texts
of members alone are, as in `equality.py`, by this process's own secret seed. Does not know what a relation is.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any

from codea1_env.judging.equality import NON_FINITE, Number, member_text, number_in, same_tree, tagged
from codea1_env.problems.tolerances import EXACT, Tolerances
from codea1_env.reading.kinds.nodes import (
    MAX_EXPONENT,
    SEQUENCES,
    exact_in,
    items_in,
    kind_of,
    moment_in,
    nested_items,
    parts_of,
    plain_form,
)
from codea1_env.reading.literals import MAX_DEPTH, Tree

TABLES = ("Series", "Index", "DataFrame")
"""Kinds of pandas'."""
_MAX_BITS = 4096
"""Of an integer that arithmetic is done on."""
_MAX_ITEMS = 1 << 16
"""Of a range that is listed, and of two sets that are compared."""
_WITHOUT_ITEMS = ("builtin", "slice")
"""Kinds that have no items, and are true."""
_HASHED = ("NaT", "NA", "builtin")
"""Kinds beside numbers and moments that members of sets may be of."""


def truth(tree: Any) -> bool:
    """`bool(value)`."""
    for known in (number_in(tree), moment_in(tree)):
        if known is not None:
            return bool(known)
    kind = kind_of(tree)
    if kind == "ndarray":
        (only,) = parts_of(tree)[2]
        return truth(only)
    if kind in TABLES or (is_seen(tree) and {"__bool__", "__len__"} & dict(attributes_of(tree)).keys()):
        raise ValueError("pandas gives no truth, and an object has its own say")
    return tree is not None and (is_seen(tree) or kind in _WITHOUT_ITEMS or length_of(tree) > 0)


def length_of(tree: Any) -> int:
    if isinstance(moment := moment_in(tree), range):
        return len(moment)
    if kind_of(tree) == "DataFrame":
        return len(items_in(parts_of(tree)[1]))
    if is_seen(tree) and tree["v"][0] != "values":
        raise ValueError("no length")
    return len(items_of(tree))


def items_of(tree: Any) -> list[Any]:
    """What an iteration gives; a set in an order of our own, the keys and items of a dict in theirs."""
    if type(tree) in (list, str):
        return list(tree)
    if isinstance(moment := moment_in(tree), range):
        if len(moment) > _MAX_ITEMS:
            raise ValueError("too many")
        return [number_tree(number) for number in moment]
    tag, body = tagged(plain_form(tree))
    if tag == "k":
        return items_in(tree)
    if tag == "v":
        return listed(tree)
    if tag == "d":
        return [key for key, _ in body]
    if tag in ("s", "z"):
        return list(body) if kind_of(tree) else sorted(body, key=member_text)
    if tag not in ("t", "b"):
        raise ValueError("no iteration")
    return list(body) if tag == "t" else list(bytes.fromhex(body))


def listed(tree: Any, *, whole: bool = True) -> list[Any]:
    """What an iterator, the values of a dict or an object gives; with `whole` all of it, or none. Raises ValueError."""
    body = tree["v"]
    if body[0] == "values":
        return body[1]  # type: ignore[no-any-return]  # `require_sound` has seen to it
    items, end = body[-2:]
    if items is None or (whole and end):
        raise ValueError("it is not listed to its end")
    return items  # type: ignore[no-any-return]  # likewise


def is_seen(tree: Any) -> bool:
    """Whether it is an iterator, an object or the values of a dict."""
    return type(tree) is dict and "v" in tree


def attributes_of(tree: Any) -> list[Any]:
    """Pairs of names and values, of an object; an iterator has none."""
    return tree["v"][2] if tree["v"][0] == "object" else []  # likewise


def require_sound(tree: Any, levels: int = MAX_DEPTH) -> None:
    """Raise where the tree stands for no value: a malformed one, more than `levels` levels of containers, or a set or
    dict with a member that is unhashable or stands twice."""
    if tree is None or type(tree) in (bool, int, str) or _is_float(tree):
        return
    tag, body = ("t", tree) if type(tree) is list else tagged(tree)
    match tag, body:
        case "i", str():
            int(body, 16)
        case "b", str() if bytes.fromhex(body).hex() == body:
            pass
        case "c", [real, imaginary] if _is_float(real) and _is_float(imaginary):
            pass
        case "t", list() if levels > 0:
            for item in body:
                require_sound(item, levels - 1)
        case "k", list() if levels > 0:
            _require_kind(tree, levels - 1)
        case "v", ["values", list() as items] | ["iterator", str(), list() as items, str()] if levels > 0:
            require_sound(items, levels - 1)
        case "v", ["object", str(), list() as attributes, (list() | None) as items, str()] if levels > 0:
            require_sound(items, levels - 1)
            for name, value in attributes:
                require_sound(value, levels - 1)
                if type(name) is not str:
                    raise ValueError("no name")
        case "s" | "z", list() if levels > 0:
            _distinct_texts(body, levels - 1)
        case "d", list() if levels > 0 and all(type(pair) is list and len(pair) == 2 for pair in body):
            _distinct_texts([key for key, _ in body], levels - 1)
            for _, item in body:
                require_sound(item, levels - 1)
        case _:
            raise ValueError("no value")


def _require_kind(tree: Any, levels: int) -> None:
    if exact_in(tree) is not None or moment_in(tree) is not None:
        return
    kind, parts = kind_of(tree), parts_of(tree)
    if kind == "ndarray":
        nested_items(tree)
    form = plain_form(tree) if kind != "items" else tree
    for part in parts if form is tree else [form]:
        require_sound(part, levels)


def _is_float(tree: Any) -> bool:
    if type(tree) is float:
        return tree - tree == 0  # others have the tag
    return type(tree) is dict and len(tree) == 1 and tree.get("f") in NON_FINITE


def hashed_text(tree: Any, levels: int = MAX_DEPTH) -> str:
    """A text that two members of sets share exactly when they are equal. Raises ValueError for what is no member."""
    tag = tagged(tree)[0] if type(tree) is dict else ""
    if tag == "k" and kind_of(tree) == "namedtuple":
        tree, tag = plain_form(tree), "t"
    if tag == "k" and exact_in(tree) is None and moment_in(tree) is None and kind_of(tree) not in _HASHED:
        raise ValueError("unhashable")
    if type(tree) is list or tag in ("s", "d", "v"):
        raise ValueError("unhashable")
    if tag not in ("t", "z"):
        require_sound(tree, levels)
        return member_text(tree)
    if type(tree[tag]) is not list or levels <= 0:
        raise ValueError("no value")
    if tag == "z":
        return f"z({','.join(_distinct_texts(tree[tag], levels - 1))})"
    return f"t({','.join([hashed_text(item, levels - 1) for item in tree[tag]])})"


def _distinct_texts(members: list[Any], levels: int) -> list[str]:
    """Of the members of a set, in order. The texts of nested sets are made once, not once a level."""
    texts = sorted([hashed_text(member, levels) for member in members])
    if any(one == other for one, other in pairwise(texts)):
        raise ValueError("a member stands twice")
    return texts


def real_number(tree: Any) -> Any:
    """A number that can be compared and counted with: not complex, and not huge."""
    number = number_in(tree)
    if number is None or isinstance(number, complex) or _is_huge(number):
        raise ValueError("no number of a size to calculate with")
    return number


def _is_huge(number: Number) -> bool:
    if isinstance(number, Decimal):
        return number.is_finite() and (
            abs(number.adjusted()) > MAX_EXPONENT or len(number.as_tuple().digits) > _MAX_BITS
        )
    parts = (number.numerator, number.denominator) if isinstance(number, Fraction) else (number,)
    return any(isinstance(part, int) and part.bit_length() > _MAX_BITS for part in parts)


def calculable(tree: Any) -> Any:
    number = number_in(tree)
    return number if isinstance(number, complex) else real_number(tree)


def number_tree(number: Number) -> Tree:
    if isinstance(number, Fraction):
        return {"k": ["Fraction", number_tree(number.numerator), number_tree(number.denominator)]}
    if isinstance(number, Decimal):
        return {"k": ["Decimal", str(number)]}
    if isinstance(number, complex):
        return {"c": [number_tree(number.real), number_tree(number.imag)]}
    if isinstance(number, float) and number - number != 0:
        return {"f": "nan" if number != number else "inf" if number > 0 else "-inf"}
    if isinstance(number, int) and not -(1 << 63) <= number < 1 << 63:
        if number.bit_length() > 2 * _MAX_BITS:
            raise ValueError("too large")
        return {"i": hex(number)}
    return number


def order_of(left: Any, right: Any) -> int:
    """-1, 0 or 1 as Python orders two values. Raises ValueError for those that it does not order, and for NaN."""
    one, other = number_in(left), number_in(right)
    if one is not None and other is not None:
        if isinstance(one, complex) or isinstance(other, complex) or one != one or other != other:
            raise ValueError("no order")
        return _sign(one, other)
    if type(left) is str and type(right) is str:
        return _sign(left, right)
    moments: Any = moment_in(left), moment_in(right)
    if None not in moments:
        return _sign(*moments)
    if kind_of(left) in SEQUENCES and kind_of(left) == kind_of(right):
        left, right = items_in(left), items_in(right)
    left, right = plain_form(left), plain_form(right)
    pair = (left, right)
    if type(left) is dict and type(right) is dict:
        (tag, body), (other_tag, other_body) = tagged(left), tagged(right)
        if tag == other_tag == "b":
            return _sign(body, other_body)
        pair = (body, other_body) if tag == other_tag == "t" else (None, None)
    if type(pair[0]) is list and type(pair[1]) is list:
        for first, second in zip(*pair, strict=False):
            if first == second or (_is_opaque_to_order(first) and same_tree(first, second, EXACT)):
                continue
            sign = order_of(first, second)
            if sign:
                return sign
        return _sign(len(pair[0]), len(pair[1]))
    raise ValueError("no order")


def _sign(left: Any, right: Any) -> int:
    return int(left > right) - int(left < right)


def _is_opaque_to_order(tree: Any) -> bool:
    """It can equal another value, and not be less."""
    return tree is None or (type(tree) is dict and tagged(plain_form(tree))[0] in ("s", "z", "d", "c", "k"))


def _ordered(test: Callable[[int, int], bool]) -> Callable[[Tolerances, Any, Any], bool]:
    def compared(_: Tolerances, left: Any, right: Any) -> bool:
        if is_set(left) and is_set(right):
            if length_of(left) + length_of(right) >= _MAX_ITEMS:
                raise ValueError("too large")
            one, other = ([*map(member_text, items_of(side))] for side in (left, right))
            joined = {*one, *other}  # our own texts, our own hash seed
            below, above = len(joined) == len(other), len(joined) == len(one)
            return test(0, 0) if below and above else (test(-1, 0) and below) or (test(1, 0) and above)
        numbers = (number_in(left), number_in(right))
        if any(isinstance(each, float) and each != each for each in numbers) and None not in numbers:
            return False
        return test(order_of(left, right), 0)

    return compared


def is_set(tree: Any) -> bool:
    return type(tree) is dict and tagged(plain_form(tree))[0] in ("s", "z")


def _member(tolerance: Tolerances, item: Any, container: Any) -> bool:
    if type(container) is str:
        if type(item) is not str:
            raise ValueError("no text")
        return item in container
    if type(container) is dict and "b" in container:  # a part of it, or a byte
        return (bytes.fromhex(item["b"]) if type(item) is dict else item) in bytes.fromhex(container["b"])
    is_of_items = type(container) is dict and kind_of(container) == "items"  # of a dict, whose values may be lists
    container = container if is_of_items else plain_form(container)
    if not is_of_items and type(container) is dict and {*container} & {"s", "z", "d"}:
        wanted = hashed_text(item)
        return any(member_text(each) == wanted for each in items_of(container))
    return any(same_tree(each, item, tolerance) for each in items_of(container))


def _is(_: Tolerances, left: Any, right: Any) -> bool:
    if left is None or type(left) is bool:
        return left is right
    return kind_of(left) == "builtin" and same_tree(left, right, EXACT)


def _same_items(tolerance: Tolerances, left: Any, right: Any) -> bool:
    """In any order; of floats that differ within the tolerance, in the order of all."""
    ones, others = items_of(left), items_of(right)
    if sorted(map(member_text, ones)) == sorted(map(member_text, others)):
        return True
    by_order = functools.cmp_to_key(order_of)
    return same_tree(sorted(others, key=by_order), sorted(ones, key=by_order), tolerance)


COMPARED: Mapping[str, Callable[..., bool]] = {
    "eq": lambda tolerance, left, right: same_tree(right, left, tolerance),
    "ne": lambda tolerance, left, right: not same_tree(right, left, tolerance),
    **{name: _ordered(getattr(operator, name)) for name in ("lt", "le", "gt", "ge")},
    "in": _member,
    "notin": lambda tolerance, item, container: not _member(tolerance, item, container),
    "is": _is,
    "isnot": lambda tolerance, left, right: not _is(tolerance, left, right),
    "same_items": _same_items,
}
"""By the names of operators that compare, of a tolerance for floats and two values."""
