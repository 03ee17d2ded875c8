"""Are two encoded values equal? Python's equality of plain data, decided without ever building the untrusted one.

1, True and 1.0 are equal; a set equals a frozenset; a list never equals a tuple; NaN equals NaN; floats may differ by a
tolerance where one is asked for, but not the members of sets and the keys of dicts. An opaque value equals nothing, not
even itself. Nothing untrusted is hashed, evaluated or called. Takes O(n log n) time in the size of both; does not
promise to finish fast on values over the sandbox's size cap: the caller bounds them.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection
from typing import Any

from codea1_env.problems.tolerances import EXACT, Tolerances, within

Number = int | float | complex
ROUNDING = within(1e-12)
"""Relative and absolute: floats this near are one number, calculated in another order or written by hand."""
NON_FINITE = ("nan", "inf", "-inf")
"""What stands under the tag of a float."""
_TRUTHS = (b"true", b"false")
_PRINTED = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
"""A number as programs print it."""
_LONGEST = 400
"""Characters of one: no float has more before its point."""
_OPAQUE = b'{"o":'  # cannot occur inside a JSON string: its quotes would be escaped
_loads = json.JSONDecoder().decode  # `json.loads` would first guess how the bytes are encoded


def is_opaque(encoded: bytes) -> bool:
    """Whether the value is, or holds, something that is no plain data."""
    return _OPAQUE in encoded


def same_value(expected: bytes, got: bytes, tolerance: Tolerances | float = EXACT) -> bool:
    """Whether the untrusted `got` equals the trusted `expected`.

    `tolerance`: by types, or relative and absolute of floats; it applies where either side is one. Malformed bytes
    equal nothing.
    """
    if expected == got:
        return not is_opaque(expected)
    if (expected in _TRUTHS and got in _TRUTHS) or (expected.isdigit() and got.isdigit()):
        return False  # what JSON writes in one way only
    if not may_equal(expected, got):
        return False
    try:
        return same_tree(_loads(expected.decode()), _loads(got.decode()), Tolerances.of(tolerance))
    except (ValueError, TypeError, LookupError, OverflowError, RecursionError):
        return False


def may_equal(expected: bytes, got: bytes) -> bool:
    """Whether the untrusted `got` can equal the trusted `expected`, or a part of it: False where it has more bytes or
    items than that takes. Nothing is built.

    Texts are equal letter by letter, so their commas and brackets are the same. Beside them a value has at most one
    more number than commas, and each may be written as `{"c":[1.0,0.0]}`.
    """
    # The longest equal pair is a long integer and its float: some 50 characters to one.
    if len(got) > 512 + 64 * len(expected):
        return False
    commas, lists = expected.count(b","), expected.count(b"[")
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
    return all(_same_words(*pair, tolerance) for pair in zip(one, other, strict=True))


def _same_words(expected: str, got: str, tolerance: Tolerances) -> bool:
    left, right = expected.split(), got.split()
    return len(left) == len(right) and all(
        word == other or _same_printed(word, other, tolerance) for word, other in zip(left, right, strict=True)
    )


def _same_printed(expected: str, got: str, tolerance: Tolerances) -> bool:
    is_whole = not (expected + got).strip("+-0123456789")  # exact
    if is_whole or max(len(expected), len(got)) > _LONGEST or not all(map(_PRINTED.fullmatch, (expected, got))):
        return False
    numbers = float(expected), float(got)
    return all(map(math.isfinite, numbers)) and is_near(*numbers, tolerance)


def text_lines(text: str) -> list[str]:
    """The lines, without white space at their ends and at the end of all."""
    return [line.rstrip() for line in text.rstrip().split("\n")]


def call_key(arguments: bytes) -> bytes:
    """Equal for calls with the same arguments: the encoding itself, with sets and named arguments in a fixed order."""
    if arguments.endswith(b",[]]") and b'{"s":' not in arguments and b'{"z":' not in arguments:
        return arguments
    positional, named = in_order(json.loads(arguments), ("s", "z"))
    return _dumps([positional, sorted(named, key=_dumps)]).encode("ascii")


_dumps = json.JSONEncoder(ensure_ascii=True, separators=(",", ":")).encode


def in_order(node: Any, tags: Collection[str]) -> Any:
    """A tree with the members or items of what has one of these tags in a fixed order."""
    if isinstance(node, list):
        return [in_order(item, tags) for item in node]
    if isinstance(node, dict):
        ((tag, body),) = node.items()
        body = in_order(body, tags)
        return {tag: sorted(body, key=_dumps) if tag in tags else body}
    return node


def same_tree(expected: Any, got: Any, tolerance: Tolerances) -> bool:
    """`same_value` of two trees. Raises what a malformed tree makes it raise."""
    left, right = number_in(expected), number_in(got)
    if left is not None and right is not None:
        return _same_number(left, right, tolerance)
    if left is not None or right is not None or type(expected) is not type(got):
        return False
    if isinstance(expected, list):
        return _same_items(expected, got, tolerance)
    if not isinstance(expected, dict):
        return bool(expected == got)  # str or None: plain data of our own JSON decoder
    tag, left_body = _tagged(expected)
    other, right_body = _tagged(got)
    if tag in ("s", "z"):
        return other in ("s", "z") and _texts(left_body) == _texts(right_body)
    if tag != other or tag == "o":
        return False
    if tag == "t":
        return _same_items(left_body, right_body, tolerance)
    if tag == "d":
        left_pairs, right_pairs = _by_key(left_body), _by_key(right_body)
        return len(left_pairs) == len(right_pairs) and all(
            key == other_key and same_tree(item, other_item, tolerance)
            for (key, item), (other_key, other_item) in zip(left_pairs, right_pairs, strict=True)
        )
    return tag == "b" and bool(left_body == right_body)


def _tagged(node: dict[str, Any]) -> tuple[str, Any]:
    if len(node) != 1:
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
    tag, body = _tagged(node)
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


def _same_number(left: Number, right: Number, tolerance: Tolerances) -> bool:
    if isinstance(left, complex) or isinstance(right, complex):
        parts = zip(_parts(left), _parts(right), strict=True)
        return all(_same_number(one, other, tolerance) for one, other in parts)
    if left == right or (left != left and right != right):
        return True
    if tolerance and (isinstance(left, float) or isinstance(right, float)):
        return is_near(left, right, tolerance)
    return False


def is_near(left: float, right: float, tolerance: Tolerances) -> bool:
    """Whether two real numbers are within the tolerance; a whole number that no float holds is near none."""
    try:
        return math.isclose(left, right, rel_tol=tolerance.float.relative, abs_tol=tolerance.float.absolute)
    except OverflowError:
        return False


def _parts(number: Number) -> tuple[int | float, int | float]:
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
        if isinstance(number, complex):
            number = number.real if number.imag == 0 else number + 0  # adding 0 makes -0.0 to 0.0, which it equals
        if isinstance(number, float) and number.is_integer():
            number = int(number)
        return f"n{int(number):x}" if isinstance(number, int) else f"n{number!r}"
    if isinstance(node, dict):
        tag, body = _tagged(node)
        if tag in ("s", "z"):
            return f"z({','.join(_texts(body))})"
        if tag == "t":
            return f"t({','.join(map(member_text, body))})"
        if tag == "d":
            return f"d({','.join(f'{key}:{member_text(item)}' for key, item in _by_key(body))})"
    if isinstance(node, list):
        return f"l({','.join(map(member_text, node))})"
    return _dumps(node)
