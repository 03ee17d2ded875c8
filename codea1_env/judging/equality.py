"""Are two encoded values equal? Python's equality of plain data, decided without ever building the untrusted one.

NaN equals NaN; floats may differ by a tolerance where one is asked for, but not members of sets and keys of dicts.
numpy's arrays and pandas' tables are equal as wholes: the same shape, equal items. An opaque value, an iterator and an
object equal nothing, not even themselves. Nothing untrusted is hashed, evaluated or called. Takes O(n log n) time in
the size of both, which the caller bounds.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection
from decimal import Decimal
from fractions import Fraction
from typing import Any

from codea1_env.problems.tolerances import EXACT, Tolerances, within
from codea1_env.reading.kinds.nodes import (
    exact_in,
    exact_text,
    items_in,
    kind_of,
    moment_in,
    moment_text,
    parts_of,
    plain_form,
    simplest,
)

Number = int | float | complex | Fraction | Decimal
ROUNDING = within(1e-12)
"""Relative and absolute: floats this near are one number, calculated in another order or written by hand."""
NON_FINITE = ("nan", "inf", "-inf")
"""What stands under the tag of a float."""
FAILURES = (ValueError, TypeError, LookupError, ArithmeticError, AttributeError, RecursionError)
"""What a malformed value makes the functions below raise."""
_TRUTHS = (b"true", b"false")
_PRINTED = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
"""A number as programs print it."""
_PARTS = 12
"""Commas and brackets of one value of a further kind that equals one without."""
LONGEST_NUMBER = 400
"""Characters of one: no float has more before its point."""
_BY_IDENTITY = b'{"v":'
_loads = json.JSONDecoder().decode  # `json.loads` would first guess how the bytes are encoded


def is_opaque(encoded: bytes) -> bool:
    """Whether the value is, or holds, something that is no data."""
    return b'{"o":' in encoded or b'{"e":' in encoded  # cannot occur inside a JSON string: its quotes are escaped


def is_by_identity(encoded: bytes) -> bool:
    """Whether the value is, or holds, an iterator or an object: it can be looked at, and equals nothing."""
    return _BY_IDENTITY in encoded


def as_seen(encoded: bytes) -> bytes:
    """With tuples in the place of iterators and objects: equal where all that can be seen of them is."""
    return encoded.replace(b'{"v":[', b'{"t":[')


def same_value(expected: bytes, got: bytes, tolerance: Tolerances | float = EXACT) -> bool:
    """Whether the untrusted `got` equals the trusted `expected`.

    `tolerance`: by types, or relative and absolute of floats; it applies where either side is one. Malformed bytes
    equal nothing.
    """
    if expected == got:
        return not is_opaque(expected) and not is_by_identity(expected)
    if (expected in _TRUTHS and got in _TRUTHS) or (expected.isdigit() and got.isdigit()):
        return False  # what JSON writes in one way only
    if not may_equal(expected, got):
        return False
    try:
        return same_tree(_loads(expected.decode()), _loads(got.decode()), Tolerances.of(tolerance))
    except FAILURES:
        return False


def may_equal(expected: bytes, got: bytes) -> bool:
    """Whether the untrusted `got` can equal the trusted `expected`, or a part of it: False where it has more bytes or
    items than that takes. Nothing is built.

    Texts are equal letter by letter, so their commas and brackets are the same. Beside them a value has at most one
    more number than commas, and each may be written as `{"c":[1.0,0.0]}`; a list of kinds has up to _PARTS for one.
    """
    # The longest equal pair is a long integer and its float: some 50 characters to one.
    if len(got) > 512 + 64 * len(expected):
        return False
    commas, lists = expected.count(b","), expected.count(b"[")
    if b'{"k":[' in got:
        most = _PARTS * (commas + lists + 1)
        return got.count(b",") <= most and got.count(b"[") <= most and got.count(b"{") <= most
    return (
        got.count(b",") <= 2 * commas + 1
        and got.count(b"[") <= lists + commas + 1
        and got.count(b"{") <= expected.count(b"{") + lists + commas + 1
    )


def same_output(expected: bytes, got: bytes, tolerance: Tolerances | float = EXACT) -> bool:
    """Whether two texts, as encoded, have the same lines; white space at their ends does not count. With a tolerance,
    lines are also the same whose words are, numbers with a point or an exponent within it."""
    try:
        texts = [_loads(encoded.decode()) for encoded in (expected, got)]
    except (ValueError, RecursionError):
        return False
    if not all(type(text) is str for text in texts):
        return False
    one, other = map(text_lines, texts)
    tolerance = Tolerances.of(tolerance)
    if one == other or not tolerance or len(one) != len(other):
        return one == other
    return all(same_words(*pair, tolerance) for pair in zip(one, other, strict=True))


def same_words(expected: str, got: str, tolerance: Tolerances) -> bool:
    """Whether two texts have the same words; numbers with a point or an exponent may differ by the tolerance."""
    left, right = expected.split(), got.split()
    return len(left) == len(right) and all(
        word == other or _same_printed(word, other, tolerance) for word, other in zip(left, right, strict=True)
    )


def _same_printed(expected: str, got: str, tolerance: Tolerances) -> bool:
    is_whole = not tolerance or not (expected + got).strip("+-0123456789")  # exact
    if is_whole or max(len(expected), len(got)) > LONGEST_NUMBER or not all(map(_PRINTED.fullmatch, (expected, got))):
        return False
    numbers = float(expected), float(got)
    return all(map(math.isfinite, numbers)) and is_near(*numbers, tolerance)


def as_right(right: bytes, got: bytes, tolerance: Tolerances) -> bytes:
    """The untrusted `got`, with each float that is within the tolerance of the number in its place in the trusted
    `right` as the float of that: a claim about its digits is none about the value."""
    if not tolerance or got == right or not may_equal(right, got):
        return got
    try:
        return dumps(_as_right(_loads(right.decode()), _loads(got.decode()), tolerance)).encode("ascii")
    except FAILURES:
        return got


def _as_right(right: Any, got: Any, tolerance: Tolerances) -> Any:
    if type(right) in (int, float) and type(got) is float:
        return float(right) if is_near(right, got, tolerance) else got
    if type(right) is list and type(got) is list and len(right) == len(got):
        return [_as_right(*pair, tolerance) for pair in zip(right, got, strict=True)]
    if type(right) is not dict or type(got) is not dict or [*right] != [*got]:
        return got
    tag, body = tagged(got)
    if tag == "d":
        values = {member_text(key): item for key, item in right[tag]}  # hashed by this process's own secret seed
        return {tag: [[key, _as_right(values.get(member_text(key)), item, tolerance)] for key, item in body]}
    return {tag: _as_right(right[tag], body, tolerance)} if tag in ("t", "v", "c") or kind_of(got) in _BY_PLACE else got


_BY_PLACE = frozenset("ndarray deque array namedtuple Series Index DataFrame".split())
"""Kinds whose items are compared within a tolerance, each with the one in its place."""


def text_lines(text: str) -> list[str]:
    """The lines, without white space at their ends and at the end of all."""
    return [line.rstrip() for line in text.rstrip().split("\n")]


def call_key(arguments: bytes) -> bytes:
    """Equal for calls with the same arguments: the encoding itself, with sets and named arguments in a fixed order."""
    if arguments.endswith(b",[]]") and b'{"s":' not in arguments and b'{"z":' not in arguments:
        return arguments
    positional, named = in_order(json.loads(arguments), ("s", "z"))
    return dumps([positional, sorted(named, key=dumps)]).encode("ascii")


dumps = json.JSONEncoder(ensure_ascii=True, separators=(",", ":")).encode


def in_order(node: Any, tags: Collection[str]) -> Any:
    """A tree with the members or items of what has one of these tags, or is of a kind among them, in a fixed order."""
    if isinstance(node, list):
        return [in_order(item, tags) for item in node]
    if isinstance(node, dict):
        ((tag, body),) = node.items()
        body = in_order(body, tags)
        if tag == "k" and body[0] in tags:
            return {tag: [body[0], sorted(body[1], key=dumps)]}
        return {tag: sorted(body, key=dumps) if tag in tags else body}
    return node


def same_tree(expected: Any, got: Any, tolerance: Tolerances) -> bool:
    """`same_value` of two trees. Raises one of FAILURES for a malformed one."""
    is_tagged = type(expected) is dict or type(got) is dict
    kinds = (kind_of(expected), kind_of(got)) if is_tagged else ("", "")
    if kinds != ("", ""):
        if "ndarray" in kinds:
            return _same_arrays(expected, got, tolerance)
        same = _same_kind(kinds[0], expected, got, tolerance) if kinds[0] == kinds[1] else None
        if same is not None:
            return same
        expected, got = plain_form(expected), plain_form(got)
    left, right = number_in(expected), number_in(got)
    if left is not None or right is not None:
        return left is not None and right is not None and same_number(left, right, tolerance)
    if type(expected) is not type(got):
        return False
    if isinstance(expected, list):
        return _same_items(expected, got, tolerance)
    if not isinstance(expected, dict):
        return bool(expected == got)  # str or None: plain data of our own JSON decoder
    tag, left_body = tagged(expected)
    other, right_body = tagged(got)
    if tag in ("s", "z"):
        return other in ("s", "z") and _texts(left_body) == _texts(right_body)
    if tag == other == "t":
        return _same_items(left_body, right_body, tolerance)
    if tag != other:
        return False
    if tag == "d":
        left_pairs, right_pairs = _by_key(left_body), _by_key(right_body)
        return len(left_pairs) == len(right_pairs) and all(
            key == other_key and same_tree(item, other_item, tolerance)
            for (key, item), (other_key, other_item) in zip(left_pairs, right_pairs, strict=True)
        )
    return tag == "b" and bool(left_body == right_body)


def _same_kind(kind: str, expected: Any, got: Any, tolerance: Tolerances) -> bool | None:
    """Of two values of one kind that is no array of numpy's; None where they are compared as numbers or plain trees."""
    one, other = moment_in(expected), moment_in(got)
    if one is not None and other is not None:
        return one == other
    left, right = parts_of(expected), parts_of(got)
    match kind:
        case "deque" | "array":
            return _same_items(items_in(expected), items_in(got), tolerance)
        case "OrderedDict":
            orders = [[member_text(key) for key, _ in side[0]] for side in (left, right)]
            return orders[0] == orders[1] and same_tree({"d": left[0]}, {"d": right[0]}, tolerance)
        case "Counter":
            counted = [[pair for pair in side[0] if number_in(pair[1]) != 0] for side in (left, right)]
            return same_tree({"d": counted[0]}, {"d": counted[1]}, tolerance)
        case "Series":  # name, index, items
            return same_tree(left[1], right[1], tolerance) and same_tree(left[2:], right[2:], tolerance)
        case "Index":
            return _same_items(left[2], right[2], tolerance)
        case "DataFrame":  # columns, index, values
            return same_tree(left[:3], right[:3], tolerance)
        case "NaT" | "NA":
            return True
        case "builtin":
            return bool(left == right)
        case "slice":
            return same_tree(left, right, tolerance)
    return None


def _same_arrays(expected: Any, got: Any, tolerance: Tolerances) -> bool:
    """numpy's: of the same shape, item by item; one that has one item equals the item, however it is wrapped, for that
    is what the truth of `==` comes to."""
    shapes, items = [], []
    for side in (expected, got):
        shape: Any = None
        if kind_of(side) == "ndarray":
            _, shape, side = parts_of(side)
            if math.prod(shape) != len(side):
                raise ValueError("malformed array")
        shapes.append(shape)
        items.append(side)
    if shapes[0] is not None and shapes[0] == shapes[1]:
        return _same_items(items[0], items[1], tolerance)
    one, other = map(_only_item, items)
    return one is not None and other is not None and same_tree(one[0], other[0], tolerance)


def _only_item(side: Any) -> list[Any] | None:
    """What lists and tuples of one item hold in the end; None where one has more, or none."""
    while True:
        side = side["t"] if type(side) is dict and [*side] == ["t"] else side
        if type(side) is not list:
            return [side]
        if len(side) != 1:
            return None
        side = side[0]


def tagged(node: Any) -> tuple[str, Any]:
    """The tag of a value that JSON has no form for, and what stands under it. Raises ValueError."""
    if type(node) is not dict or len(node) != 1:
        raise ValueError("a tagged value must have exactly one tag")
    ((tag, body),) = node.items()
    return tag, body


def _same_items(expected: list[Any], got: Any, tolerance: Tolerances) -> bool:
    if type(got) is not list or len(expected) != len(got):
        return False
    return all(same_tree(left, right, tolerance) for left, right in zip(expected, got, strict=True))


def number_in(node: Any) -> Number | None:
    """The number that a node stands for, None where it stands for none."""
    if isinstance(node, bool | int | float):
        return node
    if not isinstance(node, dict):
        return None
    tag, body = tagged(node)
    if tag == "k":
        return exact_in(node)
    if tag == "i":
        return int(body, 16)
    if tag == "f":
        if body not in NON_FINITE:
            raise ValueError("a float that is finite must have no tag")
        return float(body)
    if tag == "c":
        real, imaginary = (number_in(part) for part in body)
        if isinstance(real, complex) or isinstance(imaginary, complex) or real is None or imaginary is None:
            raise ValueError("a complex number must have two real parts")
        return complex(real, imaginary)
    return None


def same_number(left: Number, right: Number, tolerance: Tolerances) -> bool:
    """Whether two numbers are equal, or one is a float and they are within the tolerance. NaN equals NaN."""
    if isinstance(left, complex) or isinstance(right, complex):
        parts = zip(_parts(left), _parts(right), strict=True)
        return all(same_number(one, other, tolerance) for one, other in parts)
    if left == right or (left != left and right != right):
        return True
    kinds = {type(left), type(right)}
    return bool(tolerance) and float in kinds and kinds <= {float, int, bool} and is_near(left, right, tolerance)


def is_near(left: Any, right: Any, tolerance: Tolerances) -> bool:
    """Whether two real numbers are within the tolerance; a whole number that no float holds is near none."""
    try:
        return math.isclose(left, right, rel_tol=tolerance.float.relative, abs_tol=tolerance.float.absolute)
    except OverflowError:
        return False


def _parts(number: Number) -> tuple[Number, Number]:
    return (number.real, number.imag) if isinstance(number, complex) else (number, 0)


def _texts(body: Any) -> list[str]:
    """The members of a set, as texts in a fixed order."""
    if type(body) is not list:
        raise ValueError("a set must be a list of members")
    return sorted(map(member_text, body))


def _by_key(body: Any) -> list[tuple[str, Any]]:
    """The items of a dict, in a fixed order of their keys' texts."""
    return sorted([(member_text(key), item) for key, item in body], key=lambda pair: pair[0])


def member_text(node: Any) -> str:
    """A text that two values, such as members of sets or keys of dicts, share exactly when they are equal."""
    number = number_in(node)
    if number is not None:
        number = simplest(number) if isinstance(number, Fraction | Decimal) else number
        if isinstance(number, Fraction | Decimal):
            return f"n{exact_text(number)}"
        if isinstance(number, complex):
            number = number.real if number.imag == 0 else number + 0  # adding 0 makes -0.0 to 0.0, which it equals
        if isinstance(number, float) and number.is_integer():
            number = int(number)
        return f"n{int(number):x}" if isinstance(number, int) else f"n{number!r}"
    if isinstance(node, dict):
        tag, body = tagged(node)
        if tag == "k":
            return _kind_text(node)
        if tag in ("o", "v", "e"):
            raise ValueError("what equals nothing has no text")
        if tag in ("s", "z"):
            return f"z({','.join(_texts(body))})"
        if tag == "t":
            return f"t({','.join(map(member_text, body))})"
        if tag == "d":
            return f"d({','.join(f'{key}:{member_text(item)}' for key, item in _by_key(body))})"
    if isinstance(node, list):
        return f"l({','.join(map(member_text, node))})"
    return dumps(node)


def _kind_text(node: Any) -> str:
    """Likewise, of what is no number: dicts of all kinds are one here, in whatever order."""
    moment = moment_in(node)
    if moment is not None:
        return moment_text(moment)
    form = plain_form(node)
    if form is not node:
        return member_text(form)
    kind, parts = kind_of(node), parts_of(node)
    if kind in ("deque", "array"):
        return f"{kind}({','.join(map(member_text, items_in(node)))})"
    if kind == "ndarray":
        return f"ndarray({parts[1]},{','.join(map(member_text, parts[2]))})"
    return f"{kind}({','.join(map(member_text, parts[int(kind in ('Series', 'Index')) :][:3]))})"
