"""What relations ask of arrays, tables, times and objects, on wire trees: attributes, items, closeness.

The promises are those of `tree_functions.py`, the rules those of numpy and pandas: `array_equal` and `allclose` take
lists for arrays, `assert_frame_equal` compares the types of columns unless it is told not to.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Mapping
from itertools import chain
from typing import Any

from codea1_env.judging.equality import member_text, number_in, same_tree
from codea1_env.judging.relations.tree_values import TABLES, attributes_of, is_seen, number_tree, real_number, truth
from codea1_env.problems.tolerances import EXACT
from codea1_env.reading.kinds.nodes import items_in, kind_of, moment_in, moment_node, nested_items, parts_of

_OF_NUMBERS = ("numerator", "denominator", "real", "imag")
_OF_MOMENTS: Mapping[type, str] = {
    datetime.date: "year month day",
    datetime.datetime: "year month day hour minute second microsecond",
    datetime.time: "hour minute second microsecond",
    datetime.timedelta: "days seconds microseconds",
    range: "start stop step",
}


def attribute(tree: Any, name: str) -> Any:
    """`value.name`, of what has the attribute as data."""
    number = number_in(tree)
    if number is not None and name in _OF_NUMBERS:
        return number_tree(getattr(number, name))
    moment = moment_in(tree)
    if moment is not None and name in _OF_MOMENTS[type(moment)].split():
        return getattr(moment, name)
    if is_seen(tree):
        return dict(attributes_of(tree))[name]
    kind, parts = kind_of(tree), parts_of(tree)
    if kind == "namedtuple":
        _, fields, items = parts
        return items[fields.index(name)]
    stored, measured = (names.split() for names in _OF_TABLES[kind])
    if kind == "Index" and type(parts[1]) is list and name in ("name", "names"):
        return parts[1] if name == "names" else None
    if name in stored:
        return parts[stored.index(name)]
    if name not in measured:
        raise LookupError("no such attribute")
    if name == "columns":
        return _names_of_columns(parts[0])
    shape = [len(items_in(parts[1])), len(parts[0])] if kind == "DataFrame" else [len(parts[-1])]
    if name == "values" and kind == "DataFrame":
        _, _, columns, types = parts
        dtype = "float64" if _NUMBERS.issuperset(types) else "object"
        dtype = types[0] if len({*types}) == 1 and types[0] != "str" else dtype
        return {"k": ["ndarray", dtype, shape, [*chain.from_iterable(zip(*columns, strict=True))]]}
    if name == "values":
        return {"k": ["ndarray", parts[0], shape, parts[3]]}
    shape = parts[1] if kind == "ndarray" else shape
    return {"shape": {"t": shape}, "ndim": len(shape), "size": math.prod(shape), "empty": 0 in shape}[name]


_OF_TABLES: Mapping[str, tuple[str, str]] = {
    "slice": ("start stop step", ""),
    "deque": ("- maxlen", ""),
    "array": ("typecode", ""),
    "ndarray": ("dtype", "shape ndim size"),
    "Index": ("dtype name", "shape size empty"),
    "Series": ("dtype name index", "shape ndim size empty values"),
    "DataFrame": ("- index", "shape ndim size empty columns values"),
}
"""{kind: names of its first parts as attributes, and of what follows from the parts}."""
_NUMBERS = frozenset(("int64", "float64"))
"""Types of columns whose values are one array of floats."""


def _names_of_columns(columns: list[Any]) -> Any:
    return {"k": ["Index", "object", None, columns]}


def item_of_table(tree: Any, at: Any) -> Any:
    """`value[at]`, of an array, a Series, a DataFrame or an Index."""
    kind, parts = kind_of(tree), parts_of(tree)
    if kind in ("Series", "DataFrame"):
        labels = items_in(parts[2]) if kind == "Series" else parts[0]
        place = list(map(member_text, labels)).index(member_text(at))
        if kind == "Series":
            return parts[3][place]
        return {"k": ["Series", parts[3][place], at, parts[1], parts[2][place]]}
    places = at["t"] if type(at) is dict and [*at] == ["t"] else [at]
    for place in places:
        if type(place) is not int:
            raise ValueError("no index")
        tree = items_in(tree)[place]
    return tree


def cell_of_table(tree: Any, at: Any, by_label: Any) -> Any:
    """`value.loc[at]` and `value.iloc[at]`, of a Series or a DataFrame: an item, or a row as a Series."""
    kind, parts = kind_of(tree), parts_of(tree)
    if kind not in ("Series", "DataFrame"):
        raise ValueError("no table")
    index = items_in(parts[2] if kind == "Series" else parts[1])
    if kind == "Series":
        return parts[3][_place(index, at, by_label)]
    columns, _, values, _ = parts
    if type(at) is dict and [*at] == ["t"] and len(at["t"]) == 2 and not (by_label and at in index):
        row, column = at["t"]
        return values[_place(columns, column, by_label)][_place(index, row, by_label)]
    row = _place(index, at, by_label)
    cells = [column[row] for column in values]
    return {"k": ["Series", "object", index[row], _names_of_columns(columns), cells]}


def _place(labels: list[Any], at: Any, by_label: bool) -> int:
    if by_label:
        texts = list(map(member_text, labels))
        if texts.count(member_text(at)) != 1:
            raise ValueError("no label, or several")
        return texts.index(member_text(at))
    if type(at) is not int or not -len(labels) <= at < len(labels):
        raise ValueError("no place")
    return at


def to_list(tree: Any) -> Any:
    """`value.tolist()`."""
    kind = kind_of(tree)
    if kind == "ndarray":
        return nested_items(tree)
    if kind in ("Series", "Index", "array"):
        return items_in(tree)
    raise ValueError("no tolist")


def flattened(tree: Any) -> list[Any]:
    """The items of an array or a Series, in a row."""
    if kind_of(tree) == "ndarray":
        nested_items(tree)
        return parts_of(tree)[2]  # type: ignore[no-any-return]  # a list: `parts_of` has seen to it
    if kind_of(tree) in ("Series", "Index"):
        return items_in(tree)
    raise ValueError("no array")


def _array_of(tree: Any) -> tuple[list[int], list[Any]]:
    """Shape and items of what numpy makes an array of."""
    if kind_of(tree) == "ndarray":
        return parts_of(tree)[1], flattened(tree)
    if kind_of(tree) in ("Series", "Index", "deque", "array"):
        items = items_in(tree)
        return [len(items)], items
    row = tree["t"] if type(tree) is dict and [*tree] == ["t"] else tree
    if type(row) is not list:
        return [], [tree]
    inner = [_array_of(item) for item in row]
    if any(shape != inner[0][0] for shape, _ in inner):
        raise ValueError("no array")
    return [len(row), *(inner[0][0] if inner else [])], [item for _, items in inner for item in items]


def _paired(left: Any, right: Any, broadcast: bool) -> list[tuple[Any, Any]]:
    """The items side by side. Raises ValueError where shapes differ; with `broadcast`, one item stands beside all."""
    (shape, items), (other_shape, others) = _array_of(left), _array_of(right)
    if broadcast and len(others) == 1 and not other_shape:
        others = others * len(items)
    elif broadcast and len(items) == 1 and not shape:
        items = items * len(others)
    elif shape != other_shape:
        raise ValueError("other shapes")
    return list(zip(items, others, strict=True))


def array_equal(left: Any, right: Any, *, broadcast: bool = False, equal_nan: bool = False) -> bool:
    """`numpy.array_equal`, `(a == b).all()`, `numpy.testing.assert_array_equal`."""
    pairs = _paired(left, right, broadcast)
    return all(same_tree(other, one, EXACT) and (equal_nan or number_in(one) == number_in(one)) for one, other in pairs)


def allclose(left: Any, right: Any, relative: Any, absolute: Any, equal_nan: Any = False) -> bool:
    """`numpy.allclose`: within `absolute + relative * abs(right)`."""
    most, least = real_number(relative), real_number(absolute)
    return all(
        _is_within(number_in(one), number_in(other), most, least, bool(equal_nan))
        for one, other in _paired(left, right, broadcast=True)
    )


def _is_within(one: Any, other: Any, relative: float, absolute: float, equal_nan: bool) -> bool:
    if one is None or other is None:
        raise ValueError("no number")
    if one != one or other != other:
        return equal_nan and one != one and other != other
    if one == other:
        return True
    finite = all(math.isfinite(abs(each)) for each in (one, other))
    return finite and bool(abs(one - other) <= absolute + relative * abs(other))


def same_table(left: Any, right: Any, check_type: Any, check_names: Any, relative: Any, absolute: Any) -> bool:
    """`pandas.testing.assert_frame_equal` and its like."""
    if kind_of(left) != kind_of(right) or kind_of(left) not in TABLES:
        raise ValueError("no tables of one kind")
    sides = [_table_parts(side, truth(check_names)) for side in (left, right)]
    (fixed, values, types), (fixed_too, values_too, types_too) = sides
    if (truth(check_type) and types != types_too) or not same_tree(fixed_too, fixed, EXACT):
        return False
    return list(map(len, values)) == list(map(len, values_too)) and all(
        _is_same_cell(*cells, relative, absolute)
        for cells in zip(chain.from_iterable(values), chain.from_iterable(values_too), strict=True)
    )


def _table_parts(table: Any, has_names: bool) -> tuple[list[Any], list[list[Any]], list[str]]:
    """What must be equal, the columns of values, and their types."""
    parts = parts_of(table)
    if kind_of(table) == "DataFrame":
        columns, index, values, types = parts
        return [columns, index, parts_of(index)[1] if has_names else None], values, types
    dtype, name, *index, items = parts
    names = [name, *(parts_of(each)[1] for each in index)] if has_names else []
    return [index, names], [items], [dtype]


def _is_same_cell(one: Any, other: Any, relative: Any, absolute: Any) -> bool:
    if same_tree(other, one, EXACT):
        return True
    numbers = number_in(one), number_in(other)
    if not all(isinstance(number, float) for number in numbers):
        return False
    return _is_within(*numbers, real_number(relative), real_number(absolute), True)


def of_moment(name: str) -> Callable[[Any], Any]:
    """A method of a date or a span that takes nothing."""

    def called(tree: Any) -> Any:
        moment = moment_in(tree)
        if moment is None or isinstance(moment, range):
            raise ValueError("no time")
        made = getattr(moment, name)()
        return moment_node(made) if isinstance(made, datetime.date | datetime.time) else made

    return called
