"""Values near one, of the same type, which a relation is tried on (`status.py`).

Of plain types: as the table of `docs/suites.md` says. Of others:

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

What is put in comes from the call's arguments (parts of the same type, words and letters of texts) or else is next to a
part of the value; the last one of a sequence is replaced by another of its own. So no fresh part can be told without
knowing the value.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import math
import operator
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import chain, count, islice
from typing import Any

from codea1_env.judging.equality import Number, as_seen, is_by_identity, member_text, number_in, same_tree
from codea1_env.judging.relations.tree_values import number_tree
from codea1_env.problems.tolerances import EXACT, Tolerances
from codea1_env.reading.kinds.nodes import FIELDS, kind_of, moment_in, moment_node, parts_of
from codea1_env.reading.literals import Tree, encode

_SPANS = [datetime.timedelta(0, 1), datetime.timedelta(0, 60), datetime.timedelta(0, 3600)] + [
    datetime.timedelta(days) for days in (1, 7, 30, 365)
]
_LONG = [number * datetime.timedelta(397, 3661) for number in (1, 2, 3, 4, 5)]
"""They change every part of a time."""
_BUILTINS = ("int", "str", "float", "list", "dict", "tuple", "set", "bool", "object", "bytes", "complex", "Ellipsis",
             "ValueError", "TypeError", "KeyError", "type")  # fmt: skip
_MOST_SPARE = 256
"""Parts of a call's arguments that other values are made of."""
_MOST_FIELDS = 8
"""Fields or attributes of which each is replaced by itself."""


def comparable(tree: Tree) -> Tree:
    """With tuples in the place of iterators and objects, which equal nothing."""
    if type(tree) is not dict and type(tree) is not list:
        return tree
    encoded = encode(tree)
    return json.loads(as_seen(encoded)) if is_by_identity(encoded) else tree


def _text(part: Tree) -> str:
    """A text that equal parts share."""
    return member_text(comparable(part))


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
        return [*_kind_others(tree, spare)]
    if tag == "b":
        given = list(bytes.fromhex(body))
        return [{"b": bytes(part).hex()} for part in _sequences(given, (), b"ak1-e ", lambda byte: byte ^ 1)]
    made: dict[str, Callable[..., Iterable[Any]]] = {"t": _sequences, "d": _dicts, "s": _sets, "z": _sets}
    return [{tag: part} for part in made[tag](body, spare)]


def documents(text: str, spare: Sequence[Tree]) -> list[Tree]:
    """Texts near one that says more than its letters: of the list or object of JSON that it is, or of its lines."""
    lines = text.splitlines(keepends=True)
    try:
        value = json.loads(text) if text[:1] in ("[", "{") else None
    except ValueError:
        value = None
    if value:
        found = [json.dumps(_loaded(other)) for other in others(_tree(value), spare)]
    else:
        found = ["".join(part) for part in _sequences(lines, spare)] if len(lines) > 1 else []
    return [other for other in dict.fromkeys(found) if other != text]


def _tree(value: Any) -> Tree:
    """Of a value of JSON."""
    if type(value) is dict:
        return {"d": [[key, _tree(each)] for key, each in value.items()]}
    if type(value) is list:
        return [_tree(each) for each in value]
    return number_tree(value) if type(value) is float else value


def _loaded(tree: Any) -> Any:
    if type(tree) is list:
        return [_loaded(each) for each in tree]
    if type(tree) is dict and "d" in tree:
        return {str(_loaded(key)): _loaded(each) for key, each in tree["d"]}
    number = number_in(tree)
    return tree if number is None else number


def all_others(right: Tree, spare: Sequence[Tree], mutants: Sequence[bytes], tolerance: Tolerances) -> list[Tree]:
    """Values that are not the right one, no two of them equal: `others`, then what mutants return."""
    returned = [json.loads(each) for each in mutants]
    # Of None those of a mutant's value: else `f(x) != 3` would refuse all where mutants return nothing but 3.
    near = others(returned[0] if right is None and returned else right, spare, tolerance)
    values: list[Tree] = []
    known = [comparable(right)]
    for other in (*near, *returned):
        seen = comparable(other)
        if not any(same_tree(each, seen, tolerance) for each in known):
            values.append(other)
            known.append(seen)
    return values


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


def _numbers(number: Number, tolerance: Tolerances) -> list[Tree]:
    values: list[Any]
    if isinstance(number, Fraction):
        above, below = number.numerator, number.denominator
        values = [Fraction(above, below + 1), Fraction(above + 1, below + 2), number / 3, number / 2, number * 2]
        values += [number + 1, number - 1, number + 2, -number, number - number]
        return list(map(number_tree, values))
    if isinstance(number, Decimal):
        values = [number + sign * step for step in map(Decimal, (1, 2, 10)) for sign in (1, -1)]
        values += [number * 2, number / 2, -number, Decimal(0)]
        return list(map(number_tree, values)) if number.is_finite() else [0, 1, 2, 10, -1]
    if isinstance(number, complex):
        return list(map(number_tree, [number + 1, number - 1, number + 1j, 2 * number, 0j]))
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
        number = 0 if isinstance(number, float | Decimal) and not math.isfinite(number) else number
        return number_tree(number - 1 if not isinstance(number, complex) and number < 0 else number + 1)
    if type(tree) is str:
        letter = tree[-1:] if tree[-1:].isascii() and tree[-1:].isalnum() else "z"
        return tree[:-1] + ({"z": "a", "Z": "A", "9": "0"}.get(letter) or chr(ord(letter) + 1))
    if type(tree) is list:
        return [*tree[:-1], _near(tree[-1])] if tree else [0]
    ((tag, body),) = tree.items()
    if tag in ("k", "v"):
        return next(_kind_others(tree, ()), 0)  # the first one alone: what is deep has many at each depth
    if tag == "b":
        return {"b": f"{body[:-2]}{int(body[-2:] or '0', 16) ^ 1:02x}"}
    if not body:
        return {tag: [[0, 0]] if tag == "d" else [0]}
    if tag == "d":
        key, value = body[-1]
        return {"d": [*body[:-1], [key, _near(value)]]}
    return {tag: body[:-1] if tag in ("s", "z") and len(body) > 1 else [*body[:-1], _near(body[-1])]}


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
) -> Iterator[list[Any]]:
    """Other sequences: shorter, longer, with one element replaced, in the other order."""
    if not items:
        yield from _of_nothing(spare, first_ones or _MEMBERS)
        return
    first, last = items[0], items[-1]
    yield from ([], items[:-1], items[1:], [*items, last])
    known = {_text(item) for item in items}
    fresh = _fresh(first, known, spare, near)
    other = _fresh(first, known | {_text(fresh)}, (), near)
    middle = len(items) // 2
    own = (each for each in (*items[middle:], *items[:middle]) if _text(each) != _text(last))
    yield from ([*items, fresh], [fresh, *items[1:]], [other, *items[1:]])
    yield from ([*items[:-1], next(own, near(last))], [*items[:-1], _fresh(last, known, (), near)], items[::-1])


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


def _kind_others(tree: Any, spare: Sequence[Tree]) -> Iterator[Any]:
    """Other values of the kind of a sound tree under the tag `k` or `v`; some may be equal to it or to each other."""
    if "v" in tree:
        yield from _seen(tree["v"], spare)
        return
    moment = moment_in(tree)
    if moment is not None:
        yield from map(moment_node, _moments(moment))
        return
    kind, parts = kind_of(tree), parts_of(tree)
    for other in _other_parts(kind, parts, spare):
        yield {"k": [kind, *other]}


def _other_parts(kind: str, parts: list[Any], spare: Sequence[Tree]) -> Iterator[Sequence[Any]]:
    match kind, parts:
        case "slice", _:
            yield from _replaced(parts, spare)
        case "builtin", [name]:
            yield from ([other] for other in _BUILTINS if other != name)
        case "namedtuple", [name, fields, items]:
            yield from ([name, fields, part] for part in _replaced(items, spare))
        case "ndarray", [dtype, [_], items]:
            yield from ([dtype, [len(part)], part] for part in _sequences(items, spare))
        case "ndarray", [dtype, shape, items]:
            yield from ([dtype, *part] for part in _arrays(shape, items, spare))
        case "Series", [dtype, name, index, items]:
            yield from ([dtype, name, _labels(index, len(part)), part] for part in _sequences(items, spare))
        case "DataFrame", [columns, index, values, dtypes]:
            yield from _frames(columns, index, values, dtypes)
        case _:
            for field, made in _MADE_OF.items():
                if field in FIELDS[kind]:
                    place = FIELDS[kind].index(field)
                    yield from ([*parts[:place], part, *parts[place + 1 :]] for part in made(parts[place], spare))
                    return


_MADE_OF: dict[str, Callable[..., Iterable[Any]]] = {"items": _sequences, "pairs": _dicts, "members": _sets}


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
        someday = datetime.datetime.combine(datetime.date(2000, 1, 2), moment)
        for late in (1, -1, 60, -60, 3600, -3600, 7200, -7200, 43200, -43200):
            yield (someday + datetime.timedelta(0, late)).timetz().replace(fold=moment.fold)
        return
    for span in (*(_SPANS if type(moment) is not datetime.date else _SPANS[3:]), *_LONG):
        for moved in (operator.add, operator.sub):
            with contextlib.suppress(OverflowError):
                yield moved(moment, span)
    if isinstance(moment, datetime.timedelta):
        with contextlib.suppress(OverflowError):
            yield 2 * moment
        yield -moment
        yield moment - moment


def _unequal(item: Any, spare: Sequence[Tree]) -> list[Tree]:
    """Its `others`, but for what equals it: a tenth less than nothing is nothing."""
    return [other for other in others(item, spare) if _text(other) != _text(item)] or [_near(item)]


def _replaced(items: list[Any], spare: Sequence[Tree]) -> Iterator[list[Any]]:
    """One item replaced, and as often all of them."""
    alone = min(len(items), _MOST_FIELDS)
    yield from ([*items[:at], _near(items[at]), *items[at + 1 :]] for at in range(alone))
    rows = [_unequal(item, spare) for item in items]
    yield from ([row[turn % len(row)] for row in rows] for turn in range(max(4, alone)))


def _seen(body: list[Any], spare: Sequence[Tree]) -> Iterator[Any]:
    if body[0] == "values":
        yield from ({"v": ["values", part]} for part in _sequences(body[1], spare))
        return
    if body[0] == "iterator":
        yield from ({"v": ["iterator", body[1], part, ""]} for part in _sequences(body[2], spare))
        return
    _, name, attributes, items, end = body
    hooks = [pair for pair in attributes if pair[0].startswith("__") and pair[0] not in ("__str__", "__repr__")]
    told = [pair for pair in attributes if pair not in hooks]
    names = [attribute for attribute, _ in told]
    rows: Iterator[list[Any]] = _replaced([value for _, value in told], spare) if told else iter([[]])
    listed: Iterator[Any] = _sequences(items, spare) if items is not None else iter([None])
    found = ({"v": ["object", name, [*hooks, *(list(pair) for pair in zip(names, row, strict=True))], part, end]}
             for row, part in _side_by_side(rows, listed))  # fmt: skip
    if name == "Match" and "regs" in names:  # a match is there, or none
        yield None
        yield from deque(found, maxlen=1)
    else:
        yield from found


def _side_by_side(some: Iterator[Any], others: Iterator[Any]) -> Iterator[list[Any]]:
    """Pairs until both have ended; what ends first begins anew."""
    columns: tuple[list[Any], list[Any]] = ([], [])
    for turn in count():
        for column, more in zip(columns, (some, others), strict=True):
            column += islice(more, 1)
        if turn == max(map(len, columns)):
            return
        yield [column[turn % len(column)] for column in columns]


def _arrays(shape: list[int], items: list[Any], spare: Sequence[Tree]) -> list[list[Any]]:
    """Shape and items of other arrays with another number of dimensions than one."""
    if not items:
        return [[[1] * max(1, len(shape)), [0]], [[2], [0, 0]]]
    near = list(map(_near, items))
    rows = [_unequal(item, spare) for item in items]
    first = near[0]
    found = [[first, *items[1:]], [*items[:-1], near[-1]], near, items[::-1], [items[0]] * len(items)]
    found += [[row[turn % len(row)] for row in rows] for turn in (1, 2)]
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


def _frames(columns: list[Any], index: Any, values: list[list[Any]], dtypes: list[str]) -> Iterator[list[Any]]:
    count = len(parts_of(index)[2])
    yield [columns, _labels(index, 0), [[] for _ in values], dtypes]
    if not columns:
        return
    yield [columns[:-1], index, values[:-1], dtypes[:-1]]
    yield [[_near(columns[0]), *columns[1:]], index, values, dtypes]
    yield [columns, index, [column[::-1] for column in values], dtypes]
    yield [columns, _labels(index, count + 1), [[*column, *column[-1:]] for column in values], dtypes]
    if not count:
        return
    yield [columns, _labels(index, count - 1), [column[:-1] for column in values], dtypes]
    yield [columns, _labels(index, count - 1), [column[1:] for column in values], dtypes]
    for place in range(min(len(columns), _MOST_FIELDS)):
        changed = [list(column) for column in values]
        changed[place][-1] = _near(changed[place][-1])
        yield [columns, index, changed, dtypes]
    for _ in range(min(len(columns), _MOST_FIELDS)):
        values = [list(map(_near, column)) for column in values]
        yield [columns, index, values, dtypes]
