"""What the operators of a relation make of values, on wire trees: Python's own functions, as far as they are total.

Each raises one of FAILURES where Python would raise, and where numbers are too large to calculate with (MAX_BITS). No
result is larger than the arguments together, but for an arithmetic's few bits. Sets are listed in an order of our own:
Python's says nothing. Nothing untrusted is built, hashed, evaluated or called; texts of members alone are, as in
`equality.py`, by this process's own secret seed. Does not know what a relation is.
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any, TypeAlias

from codea1_env.judging.equality import member_text, number_in, same_tree
from codea1_env.reading.literals import Tree, tree_source

MAX_BITS = 4096
"""Of an integer that arithmetic is done on."""
MOST_TEXT = 400
"""Characters of a text that is read as a number; decimal places of `round`."""
FAILURES = (ValueError, TypeError, LookupError, ArithmeticError, AttributeError, RecursionError)
"""What a function raises where it has no value."""

Number: TypeAlias = int | float | complex


class Undefined(ValueError):
    """There is no value: Python would raise, or the numbers are too large."""


def truth(tree: Any) -> bool:
    """`bool(value)`."""
    number = number_in(tree)
    if number is not None:
        return bool(number)
    return tree is not None and _length(tree) > 0


def _length(tree: Any) -> int:
    if type(tree) is str or type(tree) is list:
        return len(tree)
    tag, body = _tagged(tree)
    if tag in ("t", "d", "s", "z"):
        return len(body)
    if tag == "b":
        return len(body) // 2
    raise Undefined("no length")


def _tagged(tree: Any) -> tuple[str, Any]:
    """The tag of a value that JSON has no form for, and what stands under it."""
    if type(tree) is not dict or len(tree) != 1:
        raise Undefined("another kind of value")
    ((tag, body),) = tree.items()
    return tag, body


def _items(tree: Any) -> list[Any]:
    """What an iteration gives; a set in an order of our own."""
    if type(tree) is list:
        return tree
    if type(tree) is str:
        return list(tree)
    tag, body = _tagged(tree)
    if tag == "t":
        return list(body)
    if tag == "d":
        return [key for key, _ in body]
    if tag in ("s", "z"):
        return sorted(body, key=member_text)
    if tag == "b":
        return list(bytes.fromhex(body))
    raise Undefined("no iteration")


def require_sound(tree: Any) -> None:
    """Raise where the tree stands for no value: one with an unknown tag, or a set that has a member twice."""
    if type(tree) is list:
        for item in tree:
            require_sound(item)
    elif type(tree) is dict:
        tag, body = _tagged(tree)
        if tag in ("i", "f", "c"):
            number_in(tree)
        elif tag == "b":
            bytes.fromhex(body)
        elif tag not in ("t", "d", "s", "z"):
            raise Undefined("no value")
        if tag in ("s", "z", "d"):
            texts = sorted(_hashed(key) for key in (body if tag != "d" else [key for key, _ in body]))
            if any(one == other for one, other in pairwise(texts)):
                raise Undefined("a member stands twice")
        for item in body if tag == "t" else [value for _, value in body] if tag == "d" else ():
            require_sound(item)


def _hashed(tree: Any) -> str:
    """A text that two members of sets share exactly when they are equal. Raises Undefined for what is no member."""
    _require_hashable(tree)
    return member_text(tree)


def _require_hashable(tree: Any) -> None:
    if type(tree) is list or (type(tree) is dict and _tagged(tree)[0] in ("s", "d")):
        raise Undefined("unhashable")
    if type(tree) is dict and _tagged(tree)[0] == "t":
        for item in _tagged(tree)[1]:
            _require_hashable(item)


def _real(tree: Any) -> int | float:
    """A number that can be compared and counted with: not complex, and not huge."""
    number = number_in(tree)
    if number is None or isinstance(number, complex) or (isinstance(number, int) and number.bit_length() > MAX_BITS):
        raise Undefined("no number of a size to calculate with")
    return number


def _calculable(tree: Any) -> Number:
    number = number_in(tree)
    return number if isinstance(number, complex) else _real(tree)


def _tree(number: Number) -> Tree:
    """The wire tree of a number."""
    if isinstance(number, complex):
        return {"c": [_tree(number.real), _tree(number.imag)]}
    if isinstance(number, float) and number - number != 0:
        return {"f": "nan" if number != number else "inf" if number > 0 else "-inf"}
    if isinstance(number, int) and not -(1 << 63) <= number < 1 << 63:
        if number.bit_length() > 2 * MAX_BITS:
            raise Undefined("too large")
        return {"i": hex(number)}
    return number


def _order(left: Any, right: Any) -> int:
    """-1, 0 or 1 as Python orders two values. Raises Undefined for those that it does not order, and for NaN."""
    one, other = number_in(left), number_in(right)
    if one is not None and other is not None:
        if isinstance(one, complex) or isinstance(other, complex) or one != one or other != other:
            raise Undefined("no order")
        return _sign(one, other)
    if type(left) is str and type(right) is str:
        return _sign(left, right)
    pair = (left, right)
    if type(left) is dict and type(right) is dict:
        (tag, body), (other_tag, other_body) = _tagged(left), _tagged(right)
        if tag == other_tag == "b":
            return _sign(body, other_body)
        pair = (body, other_body) if tag == other_tag == "t" else (None, None)
    if type(pair[0]) is list and type(pair[1]) is list:
        for first, second in zip(*pair, strict=False):
            if first == second or (_is_opaque_to_order(first) and same_tree(first, second, 0.0)):
                continue
            sign = _order(first, second)
            if sign:
                return sign
        return _sign(len(pair[0]), len(pair[1]))
    raise Undefined("no order")


def _sign(left: Any, right: Any) -> int:
    return int(left > right) - int(left < right)


def _is_opaque_to_order(tree: Any) -> bool:
    """It can equal another value, and not be less."""
    return tree is None or (type(tree) is dict and _tagged(tree)[0] in ("s", "z", "d", "c"))


def _ordered(test: Callable[[int], bool]) -> Callable[[float, Any, Any], bool]:
    def compared(_: float, left: Any, right: Any) -> bool:
        if _is_set(left) and _is_set(right):
            one, other = ([member_text(item) for item in _items(side)] for side in (left, right))
            joined = {*one, *other} if len(one) + len(other) < 1 << 16 else None  # our own texts, our own hash seed
            if joined is None:
                raise Undefined("too large")
            below, above = len(joined) == len(other), len(joined) == len(one)
            return test(0) if below and above else (test(-1) and below) or (test(1) and above)
        numbers = (number_in(left), number_in(right))
        if any(isinstance(each, float) and each != each for each in numbers) and None not in numbers:
            return False
        return test(_order(left, right))

    return compared


def _is_set(tree: Any) -> bool:
    return type(tree) is dict and _tagged(tree)[0] in ("s", "z")


def _member(tolerance: float, item: Any, container: Any) -> bool:
    if type(container) is str:
        if type(item) is not str:
            raise Undefined("no text")
        return item in container
    if type(container) is dict and _tagged(container)[0] in ("s", "z", "d"):
        wanted = _hashed(item)
        return any(member_text(each) == wanted for each in _items(container))
    return any(same_tree(each, item, tolerance) for each in _items(container))


def _is(_: float, left: Any, right: Any) -> bool:
    return type(left) is type(right) and left is right if left is None or type(left) is bool else False


COMPARED: Mapping[str, Callable[..., bool]] = {
    "eq": lambda tolerance, left, right: same_tree(right, left, tolerance),
    "ne": lambda tolerance, left, right: not same_tree(right, left, tolerance),
    "lt": _ordered(lambda sign: sign < 0),
    "le": _ordered(lambda sign: sign <= 0),
    "gt": _ordered(lambda sign: sign > 0),
    "ge": _ordered(lambda sign: sign >= 0),
    "in": _member,
    "notin": lambda tolerance, item, container: not _member(tolerance, item, container),
    "is": _is,
    "isnot": lambda tolerance, left, right: not _is(tolerance, left, right),
}
"""By the names of `relation.COMPARISONS`, of a tolerance for floats and two values."""


def _arithmetic(operation: Callable[[Any, Any], Number]) -> Callable[[Any, Any], Tree]:
    return lambda left, right: _tree(operation(_calculable(left), _calculable(right)))


def _sorted(tree: Any) -> list[Any]:
    return sorted(_items(tree), key=functools.cmp_to_key(_order))


def _distinct(tag: str) -> Callable[[Any], Tree]:
    def made(tree: Any) -> Tree:
        found: dict[str, Any] = {}
        for item in _items(tree):
            found.setdefault(_hashed(item), item)  # hashed by this process's own secret seed
        return {tag: list(found.values())}

    return made


def _extreme(sign: int) -> Callable[[Any], Any]:
    def found(tree: Any) -> Any:
        items = _items(tree)
        best = items[0]
        for item in items[1:]:
            best = item if _order(item, best) == sign else best
        return best

    return found


def _sum(tree: Any) -> Tree:
    total: Number = 0
    for item in _items(tree):
        total += _calculable(item)
    return _tree(total)


def _round(tree: Any, digits: Any = None) -> Tree:
    number = _real(tree)
    if digits is None:
        return _tree(round(number))
    places = _real(digits)
    if not isinstance(places, int) or abs(places) > MOST_TEXT:
        raise Undefined("no number of places")
    return _tree(round(number, places))


def _number_of(kind: Callable[[Any], int | float]) -> Callable[[Any], Tree]:
    def made(tree: Any) -> Tree:
        if type(tree) is str:
            if len(tree) > MOST_TEXT:
                raise Undefined("too long")
            return _tree(kind(tree))
        return _tree(kind(_real(tree)))

    return made


def _str(tree: Any) -> str:
    if type(tree) is str:
        return tree
    if isinstance(number := number_in(tree), int):
        return tree_source(tree) if type(tree) is bool else str(_real(number))
    if "{" in json.dumps(tree):  # the order of sets, and how other values are written, is not ours to say
        raise Undefined("no text")
    return tree_source(tree)


def _index(tree: Any, at: Any) -> Any:
    if type(tree) is dict and _tagged(tree)[0] == "d":
        wanted = _hashed(at)
        found = [value for key, value in _tagged(tree)[1] if member_text(key) == wanted]
        return found[0]
    if type(at) is not int and type(at) is not bool:
        raise Undefined("no index")
    if _is_set(tree):
        raise Undefined("no index")
    return _items(tree)[at]


def _slice(tree: Any, *bounds: Any) -> Any:
    if any(bound is not None and type(bound) is not int for bound in bounds):
        raise Undefined("no bound")
    part = slice(*bounds)
    if type(tree) is str or type(tree) is list:
        return tree[part]
    tag, body = _tagged(tree)
    if tag not in ("t", "b"):
        raise Undefined("no slice")
    return {"t": body[part]} if tag == "t" else {"b": bytes.fromhex(body)[part].hex()}


def _type_name(tree: Any) -> str:
    if tree is None:
        return "NoneType"
    if type(tree) in (bool, int, float, str, list):
        return type(tree).__name__
    names = {"i": "int", "f": "float", "c": "complex", "t": "tuple", "d": "dict", "s": "set", "z": "frozenset"}
    return names.get(_tagged(tree)[0], "bytes")


def _isinstance(tree: Any, names: Any) -> bool:
    name = _type_name(tree)
    return name in names or (name == "bool" and "int" in names)


def _isclose(value: Any, expected: Any, relative: Any, absolute: Any) -> bool:
    """`math.isclose`, element by element where both are lists, tuples or dicts with the same keys."""
    if number_in(value) is not None and number_in(expected) is not None:
        left, right = _real(value), _real(expected)
        return left == right or math.isclose(left, right, rel_tol=_real(relative), abs_tol=_real(absolute))
    if _type_name(value) != _type_name(expected):
        return False
    if _type_name(value) == "dict":
        pairs = [sorted(_tagged(side)[1], key=lambda pair: member_text(pair[0])) for side in (value, expected)]
        value, expected = ([part for key, item in side for part in ((key,), item)] for side in pairs)
        value, expected = ([list(part) if type(part) is tuple else part for part in side] for side in (value, expected))
    elif _type_name(value) not in ("list", "tuple"):
        return same_tree(expected, value, 0.0)
    items, others = _items(value), _items(expected)
    return len(items) == len(others) and all(
        _isclose(item, other, relative, absolute) for item, other in zip(items, others, strict=True)
    )


def _text_method(name: str) -> Callable[..., Any]:
    def called(tree: Any, *arguments: Any) -> Any:
        if type(tree) is not str or any(type(argument) is not str for argument in arguments):
            raise Undefined("no text")
        return getattr(tree, name)(*arguments)

    return called


def _count(tree: Any, item: Any) -> int:
    if type(tree) is str:
        if type(item) is str:
            return tree.count(item)
    elif type(tree) is list or _tagged(tree)[0] == "t":
        return sum(same_tree(each, item, 0.0) for each in _items(tree))
    raise Undefined("another kind of value")


def _fail() -> Any:
    raise Undefined("another kind of value")


def _of_dict(place: slice) -> Callable[[Any], Any]:
    def listed(tree: Any) -> Any:
        tag, body = _tagged(tree)
        if tag != "d":
            raise Undefined("no dict")
        return [pair[place][0] if len(pair[place]) == 1 else {"t": pair} for pair in body]

    return listed


OPERATORS: Mapping[str, Callable[..., Any]] = {
    "not": lambda tree: not truth(tree),
    "bool": truth,
    "neg": lambda tree: _tree(-_calculable(tree)),
    "add": _arithmetic(lambda left, right: left + right),
    "sub": _arithmetic(lambda left, right: left - right),
    "mul": _arithmetic(lambda left, right: left * right),
    "div": _arithmetic(lambda left, right: left / right),
    "floordiv": lambda left, right: _tree(_real(left) // _real(right)),
    "mod": lambda left, right: _tree(_real(left) % _real(right)),
    "item": _index,
    "slice": _slice,
    "len": _length,
    "sorted": _sorted,
    "reversed": lambda tree: _items(tree)[::-1] if not _is_set(tree) else _fail(),
    "list": _items,
    "tuple": lambda tree: {"t": _items(tree)},
    "set": _distinct("s"),
    "frozenset": _distinct("z"),
    "abs": lambda tree: _tree(abs(_calculable(tree))),
    "round": _round,
    "sum": _sum,
    "min": _extreme(-1),
    "max": _extreme(1),
    "any": lambda tree: any(map(truth, _items(tree))),
    "all": lambda tree: all(map(truth, _items(tree))),
    "int": _number_of(int),
    "float": _number_of(float),
    "str": _str,
    "isinstance": _isinstance,
    "hastype": lambda tree, names: _type_name(tree) in names,
    "isclose": _isclose,
    "lower": _text_method("lower"),
    "upper": _text_method("upper"),
    "strip": _text_method("strip"),
    "split": _text_method("split"),
    "isdigit": _text_method("isdigit"),
    "startswith": _text_method("startswith"),
    "endswith": _text_method("endswith"),
    "count": _count,
    "keys": _of_dict(slice(0, 1)),
    "values": _of_dict(slice(1, 2)),
    "items": _of_dict(slice(0, 2)),
}
"""By the names of all other operators."""
