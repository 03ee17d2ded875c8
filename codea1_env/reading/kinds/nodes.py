"""What stands under the tag `k`: which objects of our own the numbers and times are, and which plain tree the others
are compared as.

    exact_in(node)      Fraction or Decimal
    moment_in(node)     date, datetime, time, timedelta, range
    plain_form(node)    the list, tuple, set or dict that a container of another kind equals

An object is made of whole numbers and short texts that are checked first, never of a program's objects; Python's own
`==` and `<` of these types are then the rule. Every function raises ValueError, TypeError or ArithmeticError for a
malformed node. Does not compare anything (`equality.py`).
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

from codea1_env.sandbox.inside import value_kinds

Exact = Fraction | Decimal
Moment = datetime.date | datetime.time | datetime.timedelta | range
MAX_EXPONENT = 1100
"""Powers of ten beyond those of floats: a Decimal outside them equals Decimals alone as a member or key."""
MAX_BITS = 1 << 14
"""Of the two numbers of a Fraction."""
MAX_EMPTY = 1 << 12
"""Places that an array without items may have along its dimensions."""
SEQUENCES = ("deque", "array")
"""Kinds that equal their own kind alone, item by item; their items stand in these places."""
FIELDS: Mapping[str, tuple[str, ...]] = {
    "Fraction": ("whole", "whole"),
    "Decimal": ("text",),
    "date": ("int",) * 3,
    "datetime": ("int",) * 8 + ("maybe",),
    "time": ("int",) * 5 + ("maybe",),
    "timedelta": ("int",) * 3,
    "range": ("whole",) * 3,
    "deque": ("items", "maybe"),
    "array": ("text", "items"),
    "namedtuple": ("text", "texts", "items"),
    "OrderedDict": ("pairs",),
    "Counter": ("pairs",),
    "keys": ("members",),
    "items": ("pairs",),
    "ndarray": ("text", "lengths", "items"),
    "Series": ("text", "tree", "index", "items"),
    "Index": ("text", "tree", "items"),
    "DataFrame": ("items", "index", "rows", "texts"),
    "NaT": (),
    "NA": (),
    "slice": ("tree",) * 3,
    "builtin": ("text",),
}
"""{kind: what stands behind its name}. `whole`: an integer of any size; `maybe`: a small one or None; `index`:
a node of the kind Index. A builtin is a type of that name, Ellipsis or NotImplemented."""
_EXACT, _MOMENTS = ("Fraction", "Decimal"), ("date", "datetime", "time", "timedelta", "range")
_DECIMAL = re.compile(r"-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,9})?|-?Infinity|NaN")


def kind_of(node: Any) -> str:
    """The name of a node's kind; empty where it has no tag `k`."""
    if type(node) is dict and "k" in node and len(node) == 1:
        body = node["k"]
        if type(body) is list and body and type(body[0]) is str:
            return body[0]
        raise ValueError("a kind must have a name")
    return ""


def parts_of(node: Any) -> list[Any]:
    """What stands behind the name. Raises ValueError unless it is as FIELDS says, its items unseen."""
    parts: list[Any]
    kind, *parts = node["k"]
    fields = FIELDS.get(kind)
    if fields is None or len(fields) != len(parts) or not all(map(_fits, fields, parts)):
        raise ValueError("malformed kind")
    if kind == "ndarray" and math.prod(max(1, length) for length in parts[1]) > max(len(parts[2]), MAX_EMPTY):
        raise ValueError("too many dimensions, or too few items")
    return parts


def _fits(field: str, part: Any) -> bool:
    if field == "tree":
        return True
    if field == "text":
        return type(part) is str
    if field == "index":
        return kind_of(part) == "Index" and bool(parts_of(part))
    if field in ("int", "maybe"):
        return (type(part) is int and abs(part) < 1 << 62) or (field == "maybe" and part is None)
    if field == "whole":
        return type(part) is int or (type(part) is dict and [*part] == ["i"] and type(part["i"]) is str)
    if type(part) is not list:
        return False
    if field == "pairs":
        return all(type(pair) is list and len(pair) == 2 for pair in part)
    if field == "rows":
        return all(type(row) is list for row in part)
    if field == "texts":
        return all(type(each) is str for each in part)
    return field != "lengths" or (len(part) <= 32 and all(type(each) is int and each >= 0 for each in part))


def exact_in(node: Any) -> Exact | None:
    """The exact number that a node stands for."""
    if kind_of(node) not in _EXACT:
        return None
    parts = parts_of(node)
    if len(parts) == 2:
        above, below = map(_whole, parts)
        if max(above.bit_length(), below.bit_length()) > MAX_BITS:
            raise ValueError("too large to reduce")
        return Fraction(above, below)
    if not _DECIMAL.fullmatch(parts[0]):
        raise ValueError("no Decimal")
    return Decimal(parts[0])


def moment_in(node: Any) -> Moment | None:
    """The date, time, span or range that a node stands for."""
    kind = kind_of(node)
    if kind not in _MOMENTS:
        return None
    parts = parts_of(node)
    if kind == "range":
        return range(*map(_whole, parts))
    return value_kinds.moment(kind, parts)  # type: ignore[no-any-return]  # one of the others


def moment_node(moment: Moment) -> Any:
    """The node of one. Of a range with small numbers."""
    kind = type(moment).__name__
    if isinstance(moment, range):
        return {"k": [kind, moment.start, moment.stop, moment.step]}
    if isinstance(moment, datetime.timedelta):
        return {"k": [kind, moment.days, moment.seconds, moment.microseconds]}
    names = [*value_kinds.DATE] if isinstance(moment, datetime.date) else []
    if type(moment) is datetime.date:
        return {"k": [kind, *(getattr(moment, name) for name in names)]}
    offset = moment.utcoffset()  # type: ignore[union-attr]  # no date
    since = None if offset is None else offset // datetime.timedelta.resolution
    return {"k": [kind, *(getattr(moment, name) for name in (*names, *value_kinds.TIME)), since]}


def _whole(part: Any) -> int:
    return part if type(part) is int else int(part["i"], 16)


def plain_form(node: Any) -> Any:
    """The plain tree that a container is compared as with others than its own kind; the node where there is none."""
    match kind_of(node):
        case "namedtuple":
            return {"t": parts_of(node)[2]}
        case "OrderedDict" | "Counter":
            return {"d": parts_of(node)[0]}
        case "keys":
            return {"s": parts_of(node)[0]}
        case "items":
            return {"s": [{"t": pair} for pair in parts_of(node)[0]]}
    return node


def items_in(node: Any) -> list[Any]:
    """The items of a deque, an array, numpy's array, a Series or an Index; the columns' names of a DataFrame."""
    kind, parts = kind_of(node), parts_of(node)
    if kind == "namedtuple" or "items" not in FIELDS[kind]:
        raise TypeError("no items")
    if kind != "ndarray":
        return parts[FIELDS[kind].index("items")]  # type: ignore[no-any-return]  # `parts_of` has seen to it
    nested = nested_items(node)
    if type(nested) is not list:
        raise TypeError("no iteration over an array without dimensions")
    return [each if type(each) is not list else _array_node(each, parts[0], parts[1][1:]) for each in nested]


def _array_node(nested: Any, dtype: str, shape: list[int]) -> Any:
    """The node of a numpy array with these nested items."""
    flat = [nested]
    for _ in shape:
        flat = [item for each in flat for item in each]
    return {"k": ["ndarray", dtype, shape, flat]}


def nested_items(node: Any) -> Any:
    """A numpy array's items as nested lists; without dimensions, its one item."""
    _, shape, flat = parts_of(node)
    if math.prod(shape) != len(flat):
        raise ValueError("malformed array")
    nested = flat
    for length in reversed(shape[1:]):
        nested = [nested[at : at + length] for at in range(0, len(nested), length)] if length else []
    if 0 in shape[1:]:
        nested = [[] for _ in range(shape[0])]
    return nested if shape else flat[0]


def simplest(number: Exact) -> int | float | Exact:
    """An equal number, the same for equal ones: an int or a float where one is equal."""
    if isinstance(number, Decimal):
        if not number.is_finite():
            return float(number)
        if not number:
            return 0
        if abs(number.adjusted()) > MAX_EXPONENT or len(number.as_tuple().digits) > MAX_EXPONENT:
            return number
        number = Fraction(number)
    if number.denominator == 1:
        return number.numerator
    try:
        rounded = float(number)
    except OverflowError:
        return number
    return rounded if rounded == number else number


def exact_text(number: Exact) -> str:
    """A text that equal ones of what `simplest` leaves share."""
    if isinstance(number, Fraction):
        return f"{number.numerator:x}/{number.denominator:x}"
    sign, digits, exponent = number.as_tuple()
    text = "".join(map(str, digits)).lstrip("0")
    stripped = text.rstrip("0")
    assert isinstance(exponent, int)  # it is finite
    return f"{sign}d{stripped}e{exponent + len(text) - len(stripped)}"


def moment_text(moment: Moment) -> str:
    """A text that two share exactly when they are equal."""
    if isinstance(moment, range):
        span = moment.stop - moment.start
        length = max(0, -(-span // moment.step))  # `len` takes small ranges alone
        return f"range:{length}:{moment.start if length else 0:x}:{moment.step if length > 1 else 0:x}"
    if isinstance(moment, datetime.timedelta):
        return f"timedelta:{moment.days}:{moment.seconds}:{moment.microseconds}"
    if not isinstance(moment, datetime.datetime | datetime.time):
        return f"date:{moment}"
    offset = moment.utcoffset()
    if offset is None:
        return f"{type(moment).__name__}:{moment.replace(fold=0)}"
    if isinstance(moment, datetime.datetime):
        return (
            f"aware:{(moment.replace(tzinfo=None) - datetime.datetime.min - offset) // datetime.timedelta.resolution}"
        )
    since = datetime.timedelta(0, moment.second + 60 * moment.minute + 3600 * moment.hour, moment.microsecond)
    return f"time:{(since - offset) // datetime.timedelta.resolution}"
