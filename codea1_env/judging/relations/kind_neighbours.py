"""Values near one of a further kind, of the same kind, for `vacuity.py`, which knows those of plain ones.

Fraction, Decimal      v+1 v-1 v+2 v-2 v+10 v-10 2v v/2 -v 0
date, datetime, time   a second (of a date: a day), minute, hour, day, week, month and year later and earlier
timedelta              likewise longer and shorter, and 2v -v 0
range                  start, stop and step moved, empty
deque, array, views, iterators, one-dimensional arrays, Series, Index    as lists
OrderedDict, Counter   as dicts
namedtuple, slice, object    one field or attribute replaced; and, as often, all of them
builtin                other types
other arrays           the first, the last or all items replaced, reversed, a row less or twice
DataFrame              values of a column replaced, a row or a column less, reversed, empty, a column renamed
"""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

from codea1_env.judging.relations.tree_values import number_tree
from codea1_env.reading.kinds.nodes import Exact, kind_of, moment_in, moment_node, parts_of

_SPANS = [datetime.timedelta(0, 1), datetime.timedelta(0, 60), datetime.timedelta(0, 3600)] + [
    datetime.timedelta(days) for days in (1, 7, 30, 365)
]
_LONG = [number * datetime.timedelta(397, 3661) for number in (1, 2, 3, 4, 5)]
"""They change every part of a time."""
_BUILTINS = ("int", "str", "float", "list", "dict", "tuple", "set", "bool", "object", "bytes", "complex", "Ellipsis",
             "ValueError", "TypeError", "KeyError", "type")  # fmt: skip
_MOST_FIELDS = 8
"""Fields or attributes of which each is replaced by itself."""


class Plain(NamedTuple):
    """How `vacuity.py` makes others of plain values."""

    sequences: Callable[[list[Any]], list[list[Any]]]
    dicts: Callable[[list[Any]], list[list[Any]]]
    sets: Callable[[list[Any]], list[list[Any]]]
    others: Callable[[Any], list[Any]]
    near: Callable[[Any], Any]


def exact_others(number: Exact) -> list[Any]:
    """Of a Fraction or a Decimal that is finite."""
    if isinstance(number, Fraction):
        above, below = number.numerator, number.denominator
        near = [Fraction(above, below + 1), Fraction(above + 1, below + 2), number / 3, number / 2, number * 2]
        return [number_tree(each) for each in (*near, number + 1, number - 1, number + 2, -number, number - number)]
    one, two, ten = map(Decimal, (1, 2, 10))
    steps = [number + one, number - one, number + two, number - two, number + ten, number - ten]
    return [number_tree(each) for each in (*steps, number * two, number / two, -number, one - one)]


def kind_others(tree: Any, plain: Plain) -> list[Any]:
    """Other values of the kind of a sound tree under the tag `k` or `v`; some may be equal to it or to each other."""
    if "v" in tree:
        return _seen(tree["v"], plain)
    moment = moment_in(tree)
    if moment is not None:
        return [moment_node(each) for each in _moments(moment)]
    kind, parts = kind_of(tree), parts_of(tree)
    match kind, parts:
        case "deque", [items, most]:
            return [{"k": [kind, part, most]} for part in plain.sequences(items)]
        case "array", [code, items]:
            return [{"k": [kind, code, part]} for part in plain.sequences(items)]
        case "OrderedDict" | "Counter" | "items", [pairs]:
            return [{"k": [kind, part]} for part in plain.dicts(pairs)]
        case "keys", [members]:
            return [{"k": [kind, part]} for part in plain.sets(members)]
        case "slice", _:
            return [{"k": [kind, *part]} for part in _replaced(parts, plain)]
        case "builtin", [name]:
            return [{"k": [kind, other]} for other in _BUILTINS if other != name]
        case "namedtuple", [name, fields, items]:
            return [{"k": [kind, name, fields, part]} for part in _replaced(items, plain)]
        case "ndarray", [dtype, [_], items]:
            return [{"k": [kind, dtype, [len(part)], part]} for part in plain.sequences(items)]
        case "ndarray", [dtype, shape, items]:
            return [{"k": [kind, dtype, *part]} for part in _arrays(shape, items, plain)]
        case "Index", [dtype, name, items]:
            return [{"k": [kind, dtype, name, part]} for part in plain.sequences(items)]
        case "Series", [dtype, name, index, items]:
            return [{"k": [kind, dtype, name, _labels(index, len(part)), part]} for part in plain.sequences(items)]
        case "DataFrame", [columns, index, values, dtypes]:
            return [{"k": [kind, *part]} for part in _frames(columns, index, values, dtypes, plain)]
    return []


def _moments(moment: Any) -> Iterator[Any]:
    if isinstance(moment, range):
        start, stop, step = moment.start, moment.stop, moment.step
        for parts in (
            (start, stop + step), (start, stop - step), (start + step, stop), (start - 1, stop),
            (start, stop, 2 * step), (start, start), (start + 1, stop + 1), (start, stop + 2 * step),
            *((start + by, stop + 3 * by, step * (by + 1)) for by in (1, 2, 3, 4, 5, 6, 7)),
        ):  # fmt: skip
            yield range(*parts) if len(parts) == 3 else range(parts[0], parts[1], step)
        return
    if isinstance(moment, datetime.time):
        for seconds in (1, 60, 3600, 7200, 43200):
            for sign in (1, -1):
                since = moment.second + 60 * moment.minute + 3600 * moment.hour + sign * seconds
                minute, second = divmod(since % 86400, 60)
                yield moment.replace(hour=minute // 60, minute=minute % 60, second=second)
        return
    for span in (*(_SPANS if type(moment) is not datetime.date else _SPANS[3:]), *_LONG):
        with contextlib.suppress(OverflowError):
            yield moment + span
        with contextlib.suppress(OverflowError):
            yield moment - span
    if isinstance(moment, datetime.timedelta):
        with contextlib.suppress(OverflowError):
            yield 2 * moment
        yield -moment
        yield moment - moment


def _replaced(items: list[Any], plain: Plain) -> list[list[Any]]:
    """One item replaced, and as often all of them."""
    alone = [[*items[:at], plain.near(item), *items[at + 1 :]] for at, item in enumerate(items[:_MOST_FIELDS])]
    rows = [plain.others(item) or [plain.near(item)] for item in items]
    return alone + [[row[turn % len(row)] for row in rows] for turn in range(max(4, len(alone)))]


def _seen(body: list[Any], plain: Plain) -> list[Any]:
    if body[0] == "values":
        return [{"v": ["values", part]} for part in plain.sequences(body[1])]
    if body[0] == "iterator":
        return [{"v": ["iterator", body[1], part, ""]} for part in plain.sequences(body[2])]
    _, name, attributes, items, end = body
    hooks = [pair for pair in attributes if pair[0].startswith("__") and pair[0] != "__str__"]
    told = [pair for pair in attributes if pair not in hooks]
    names = [attribute for attribute, _ in told]
    rows = _replaced([value for _, value in told], plain) if told else [[]]
    listed = plain.sequences(items) if items is not None else [None]
    turns = max(len(rows), len(listed))
    paired = [(rows[turn % len(rows)], listed[turn % len(listed)]) for turn in range(turns)]
    return [{"v": ["object", name, [*hooks, *(list(pair) for pair in zip(names, row, strict=True))], part, end]}
            for row, part in paired]  # fmt: skip


def _arrays(shape: list[int], items: list[Any], plain: Plain) -> list[list[Any]]:
    """Shape and items of other arrays with another number of dimensions than one."""
    if not items:
        return [[[1] * max(1, len(shape)), [0]], [[2], [0, 0]]]
    first, last = plain.near(items[0]), plain.near(items[-1])
    found = [
        [first, *items[1:]],
        [*items[:-1], last],
        list(map(plain.near, items)),
        items[::-1],
        [items[0]] * len(items),
    ]
    others = [plain.others(item) or [plain.near(item)] for item in items]
    found += [[row[turn % len(row)] for row in others] for turn in (1, 2)]
    same = [[shape, each] for each in found]
    if not shape:
        return [*same, [[1, 1], [first]], [[2], [first, first]]]
    row = len(items) // shape[0]
    return [
        *same, [[shape[0] - 1, *shape[1:]], items[:-row]], [[shape[0] + 1, *shape[1:]], items + items[-row:]],
        [shape[::-1], items], [[len(items)], items], [[2 * shape[0], *shape[1:]], items + items],
        [[*shape, 1], items], [[1, *shape], items],
    ]  # fmt: skip


def _labels(index: Any, count: int) -> Any:
    """An index with so many labels: those that are there, and numbers."""
    dtype, name, labels = parts_of(index)
    return {"k": ["Index", dtype, name, [*labels, *range(len(labels), count)][:count]]}


def _frames(
    columns: list[Any], index: Any, values: list[list[Any]], dtypes: list[str], plain: Plain
) -> Iterator[list[Any]]:
    count = len(parts_of(index)[2])
    yield [columns, _labels(index, 0), [[] for _ in values], dtypes]
    if not columns:
        return
    yield [columns[:-1], index, values[:-1], dtypes[:-1]]
    yield [[plain.near(columns[0]), *columns[1:]], index, values, dtypes]
    yield [columns, index, [column[::-1] for column in values], dtypes]
    yield [columns, _labels(index, count + 1), [[*column, *column[-1:]] for column in values], dtypes]
    if not count:
        return
    yield [columns, _labels(index, count - 1), [column[:-1] for column in values], dtypes]
    yield [columns, _labels(index, count - 1), [column[1:] for column in values], dtypes]
    for place in range(min(len(columns), _MOST_FIELDS)):
        changed = [list(column) for column in values]
        changed[place][-1] = plain.near(changed[place][-1])
        yield [columns, index, changed, dtypes]
    for _ in range(min(len(columns), _MOST_FIELDS)):
        values = [list(map(plain.near, column)) for column in values]
        yield [columns, index, values, dtypes]
