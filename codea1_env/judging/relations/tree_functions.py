"""What the operators of a relation make of values, on wire trees: Python's own functions, as far as they are total.

As `tree_values.py`: each raises one of its FAILURES where Python would raise, and builds, hashes, evaluates and calls
nothing untrusted. No result is larger than the arguments together, but for an arithmetic's few bits.
"""

from __future__ import annotations

import functools
import json
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

from codea1_env.judging.equality import Number, member_text, number_in, same_tree, tagged
from codea1_env.judging.relations.tree_tables import (
    allclose,
    array_equal,
    attribute,
    cell_of_table,
    flattened,
    item_of_table,
    of_moment,
    same_table,
    to_list,
)
from codea1_env.judging.relations.tree_values import (
    TABLES,
    attributes_of,
    calculable,
    hashed_text,
    is_seen,
    is_set,
    items_of,
    length_of,
    listed,
    number_tree,
    order_of,
    real_number,
    truth,
)
from codea1_env.problems.tolerances import EXACT
from codea1_env.reading.kinds.nodes import exact_in, items_in, kind_of, moment_in, moment_node, parts_of, plain_form
from codea1_env.reading.literals import Tree, tree_source
from codea1_env.reading.wide.questions import OBJECT

MOST_TEXT = 400
"""Characters of a text that is read as a number; decimal places of `round`."""
_LONGEST_SEPARATOR = 3
"""Characters: what is joined takes no fewer on the wire."""
_ROWS = ("ndarray", "Series", "Index")
"""Kinds that `isclose` takes for lists."""
_PLAIN = frozenset((bool, int, float, str, type(None)))


def _arithmetic(operation: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Tree]:
    """On numbers; and on times, as Python calculates with them."""

    def calculated(left: Any, right: Any) -> Tree:
        moments = moment_in(left), moment_in(right)
        sides = [calculable(side) if of is None else of for side, of in zip((left, right), moments, strict=True)]
        made = operation(*sides)
        return number_tree(made) if isinstance(made, Number) else moment_node(made)

    return calculated


def _by_order(chosen: Callable[..., Any]) -> Callable[[Any], Any]:
    def found(tree: Any) -> Any:
        items = items_of(tree)
        # Python orders these as `order_of` does: it raises where two of them have no order.
        are_plain = all((type(item) in _PLAIN and item == item) for item in items)
        return chosen(items) if are_plain else chosen(items, key=functools.cmp_to_key(order_of))

    return found


def _counted(tree: Any) -> list[list[Any]]:
    """Pairs of an item and how often it is there, of all that are different."""
    counts: dict[str, list[Any]] = {}  # hashed by this process's own secret seed
    for item in items_of(tree):
        counts.setdefault(hashed_text(item), [item, 0])[1] += 1
    return list(counts.values())


def _round(tree: Any, digits: Any = None) -> Tree:
    number = real_number(tree)
    if digits is None:
        return number_tree(round(number))
    places = real_number(digits)
    if not isinstance(places, int) or abs(places) > MOST_TEXT:
        raise ValueError("no number of places")
    return number_tree(round(number, places))


def _number_of(kind: Callable[[Any], int | float]) -> Callable[[Any], Tree]:
    def made(tree: Any) -> Tree:
        if type(tree) is str and len(tree) > MOST_TEXT:
            raise ValueError("too long")
        return number_tree(kind(tree if type(tree) is str else real_number(tree)))

    return made


def _str(tree: Any) -> str:
    if type(tree) is str:
        return tree
    if is_seen(tree):
        shown = dict(attributes_of(tree))
        return str(shown["__str__" if "__str__" in shown else "__repr__"])
    if (made := exact_in(tree) or moment_in(tree)) is not None:
        return str(made)
    if isinstance(number := number_in(tree), int):
        return tree_source(tree) if type(tree) is bool else str(real_number(number))
    if "{" in json.dumps(tree):  # the order of sets, and how other values are written, is not ours to say
        raise ValueError("no text")
    return tree_source(tree)


def _index(tree: Any, at: Any) -> Any:
    kind = kind_of(tree)
    if kind in ("ndarray", *TABLES):
        return item_of_table(tree, at)
    tree = plain_form(tree)
    if type(tree) is dict and "d" in tree:
        wanted = hashed_text(at)
        values = [value for key, value in tree["d"] if member_text(key) == wanted]
        return 0 if kind == "Counter" and not values else values[0]
    if type(at) is not int and type(at) is not bool:
        raise ValueError("no index")
    if isinstance(moment := moment_in(tree), range):
        return number_tree(moment[at])
    if is_seen(tree) and tree["v"][:2] == ["object", "Match"]:
        told = dict(attributes_of(tree))
        start, end = told["regs"]["t"][at]["t"]
        return _slice(told["string"], start, end) if start >= 0 else None
    if is_set(tree) or is_seen(tree):
        raise ValueError("no index")
    return items_of(tree)[at]


def _slice(tree: Any, *bounds: Any) -> Any:
    if any(bound is not None and type(bound) is not int for bound in bounds):
        raise ValueError("no bound")
    part = slice(*bounds)
    if isinstance(moment := moment_in(tree), range):
        return moment_node(moment[part])
    if kind_of(tree) == "ndarray":
        dtype, shape, _ = parts_of(tree)
        rows = items_in(tree)[part]
        flat = [item for row in rows for item in (flattened(row) if kind_of(row) == "ndarray" else [row])]
        return {"k": ["ndarray", dtype, [len(rows), *shape[1:]], flat]}
    tree = plain_form(tree)
    if type(tree) is str or type(tree) is list:
        return tree[part]
    tag, body = tagged(tree)
    if tag not in ("t", "b"):
        raise ValueError("no slice")
    return {"t": body[part]} if tag == "t" else {"b": bytes.fromhex(body)[part].hex()}


def _type_name(tree: Any) -> str:
    if tree is None:
        return "NoneType"
    if type(tree) in (bool, int, float, str, list):
        return type(tree).__name__
    if kind := kind_of(tree):
        if kind == "builtin":
            return {"Ellipsis": "ellipsis", "NotImplemented": "NotImplementedType"}.get(parts_of(tree)[0], "type")
        return {"namedtuple": "tuple", "keys": "dict_keys", "items": "dict_items"}.get(kind, kind)
    if is_seen(tree):
        return str(tree["v"][1]) if tree["v"][0] != "values" else "dict_values"
    names = {"i": "int", "f": "float", "c": "complex", "t": "tuple", "d": "dict", "s": "set", "z": "frozenset"}
    return names.get(tagged(tree)[0], "bytes")


_BASES = {"bool": "int", "datetime": "date", "Counter": "dict", "OrderedDict": "dict"}


def _isinstance(tree: Any, names: Any) -> bool:
    return (name := _type_name(tree)) in names or _BASES.get(name) in names


def _isclose(value: Any, expected: Any, relative: Any, absolute: Any) -> bool:
    """`math.isclose`, element by element where both are lists or tuples, or dicts with the same keys."""
    value, expected = (to_list(side) if kind_of(side) in _ROWS else side for side in (value, expected))
    if number_in(value) is not None and number_in(expected) is not None:
        left, right = real_number(value), real_number(expected)
        return left == right or math.isclose(left, right, rel_tol=real_number(relative), abs_tol=real_number(absolute))
    kinds = {_type_name(value), _type_name(expected)}
    if len(kinds) > 1 and kinds != {"list", "tuple"}:  # `pytest.approx` takes either for the other
        return False
    if kinds == {"dict"}:
        pairs = [sorted(_pairs(side), key=lambda pair: member_text(pair[0])) for side in (value, expected)]
        value, expected = ([part for key, item in side for part in ([key], item)] for side in pairs)
    elif not kinds <= {"list", "tuple"}:
        return same_tree(expected, value, EXACT)
    items, others = items_of(value), items_of(expected)
    return len(items) == len(others) and all(
        _isclose(item, other, relative, absolute) for item, other in zip(items, others, strict=True)
    )


def _text_method(name: str) -> Callable[..., Any]:
    """One that takes texts, or a tuple of these where Python's does."""

    def called(tree: Any, *arguments: Any) -> Any:
        given = [tuple(each["t"]) if isinstance(each, dict) and "t" in each else each for each in arguments]
        if any(type(text) is not str for each in (tree, *given) for text in (each if type(each) is tuple else [each])):
            raise ValueError("no text")
        return getattr(tree, name)(*given)

    return called


def _count(tree: Any, item: Any) -> int:
    if type(tree) is str:
        if type(item) is str:
            return tree.count(item)
    elif type(tree) is list or tagged(plain_form(tree))[0] in ("t", "k"):
        return sum(same_tree(each, item, EXACT) for each in items_of(tree))
    raise ValueError("another kind of value")


def _fail() -> Any:
    raise ValueError("another kind of value")


def _pairs(tree: Any) -> list[list[Any]]:
    """Of a dict, or of what equals one."""
    plain = plain_form(tree)
    return plain["d"] if type(plain) is dict and "d" in plain else _fail()  # type: ignore[no-any-return]  # sound


def _is_iterator(tree: Any) -> bool:
    return is_seen(tree) and (tree["v"][0] == "iterator" or "__next__" in dict(attributes_of(tree)))


def _next(tree: Any, *default: Any) -> Any:
    if not _is_iterator(tree):
        raise ValueError("no iterator")
    if default and not listed(tree, whole=False):
        return items_of(tree) or default[0]  # it has to be known that there are none
    return listed(tree, whole=False)[0]


def _join(separator: Any, tree: Any) -> str:
    items = [tree] if type(tree) is str else items_of(tree)
    if any(type(text) is not str for text in (separator, *items)) or len(separator) > _LONGEST_SEPARATOR:
        raise ValueError("no texts")
    return str(separator.join(tree if type(tree) is str else items))


def _bytes(tree: Any) -> Tree:
    if type(tree) is dict and "b" in tree:
        return tree
    return {"b": bytes(items_of(tree) if type(tree) is not str else _fail()).hex()}


def _fields(tree: Any) -> dict[str, Any]:
    """Of a namedtuple."""
    _, fields, items = parts_of(tree) if kind_of(tree) == "namedtuple" else _fail()
    return dict(zip(fields, items, strict=True))


def _as_stated(tree: Any, stated: Any) -> Any:
    """The value with objects in it as those that are stated in their places, where their class has that name."""
    return _alike(tree, stated) if OBJECT not in json.dumps(tree) else _fail()  # what stands for one is a value's own


def _alike(tree: Any, stated: Any) -> Any:
    """`_as_stated` of one part: lists, tuples and dicts are gone through as far as both sides have them."""
    kind, parts = tagged(stated) if type(stated) is dict else ("", stated)
    if kind == "t" and parts[:1] == [OBJECT]:
        return _object_alike(tree, *parts[1:])
    plain = plain_form(tree)
    items = plain.get(kind) if type(plain) is dict else plain if not kind else None
    if kind not in ("", "t", "d") or type(items) is not list or type(parts) is not list:
        return tree
    if kind == "d":
        asked = {member_text(key): value for key, value in parts}
        return {"d": [[key, _alike(value, asked.get(member_text(key)))] for key, value in items]}
    found = [_alike(item, part) for item, part in zip(items, parts, strict=False)] + items[len(parts) :]
    return {"t": found} if kind else found


def _object_alike(tree: Any, name: str, by_place: Any, by_name: Any) -> Any:
    """What is not stated must be what the class gives by itself. What equals nothing that is stated is empty."""
    made_from = _made_from(tree, name)
    if made_from is None:
        return {"t": []}
    found, usual = made_from
    given = dict(zip(found, by_place["t"], strict=False)) | dict(by_name["d"])
    count = len(by_place["t"])
    are_fields = {*given} <= {*found} and len(given) == count + len(by_name["d"])
    is_usual = [
        field in usual and same_tree(found[field], usual[field], EXACT) for field in found if field not in given
    ]
    if not (are_fields and all(is_usual)):
        return {"t": []}
    made = [[field, _alike(_in_form(found[field], part), part)] for field, part in given.items()]
    return {"t": [OBJECT, name, {"t": [part for _, part in made[:count]]}, {"d": made[count:]}]}


def _in_form(tree: Any, stated: Any) -> Any:
    """Lists and tuples as they are stated: a class may keep either of what it is made from."""
    items, others = (side["t"] if type(side) is dict and [*side] == ["t"] else side for side in (tree, stated))
    if type(items) is not list or type(others) is not list or others[:1] == [OBJECT]:
        return tree
    found = [_in_form(item, other) for item, other in zip(items, others, strict=False)] + items[len(others) :]
    return found if type(stated) is list else {"t": found}


def _made_from(tree: Any, name: str) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """What an object of the class is made from, or a namedtuple, and what of it the class gives by itself."""
    if kind_of(tree) == "namedtuple" and parts_of(tree)[0] == name:
        return _fields(tree), {}
    if type(tree) is not dict or tree.get("v", [])[:1] != ["object"]:
        return None
    attributes = dict(attributes_of(tree))
    if "__match_args__" not in attributes:
        raise ValueError("made otherwise, of what is not told")
    if tree["v"][1] != name:
        return None
    made_from: list[tuple[str, Any]] = []
    for field in attributes["__match_args__"]["t"]:
        if field[:1] == "*":
            made_from += [(f"*{at}", item) for at, item in enumerate(items_of(attributes[field[1:]]))]
        else:
            made_from.append((field, attributes[field]))
    usual = attributes.get("__defaults__", {"d": []})["d"]
    found, by_itself = ({name.removeprefix("_"): value for name, value in pairs} for pairs in (made_from, usual))
    return found, by_itself


def _most_common(tree: Any, count: Any) -> Any:
    counted = _pairs(tree) if kind_of(tree) == "Counter" and type(count) is int else _fail()
    pairs = sorted(counted, key=lambda pair: -real_number(pair[1]))
    return [{"t": pair} for pair in pairs[: max(count, 0)]]


def _islice(tree: Any, count: Any) -> Any:
    if type(count) is not int or count < 0:
        raise ValueError("no number of items")
    items = listed(tree, whole=False) if is_seen(tree) else items_of(tree)
    if len(items) < count:  # it has to be known that there are no more
        items = items_of(tree)
    return {"v": ["iterator", "islice", items[:count], ""]}


def _dict(tree: Any) -> Tree:
    if type(tree) is dict and "d" in plain_form(tree):
        return {"d": _pairs(tree)}
    made: dict[str, list[Any]] = {}
    for item in items_of(tree):
        key, value = items_of(item)
        made.setdefault(hashed_text(key), [key, value])[1] = value
    return {"d": list(made.values())}


OPERATORS: Mapping[str, Callable[..., Any]] = {
    "not": lambda tree: not truth(tree),
    "looked": lambda tree: tree is True,
    "bool": truth,
    "neg": lambda tree: number_tree(-calculable(tree)),
    **{name: _arithmetic(getattr(operator, name)) for name in ("add", "sub", "mul")},
    "div": _arithmetic(operator.truediv),
    "floordiv": lambda left, right: number_tree(real_number(left) // real_number(right)),
    "mod": lambda left, right: number_tree(real_number(left) % real_number(right)),
    "item": _index,
    "cell": cell_of_table,
    "slice": _slice,
    "len": length_of,
    **{chosen.__name__: _by_order(chosen) for chosen in (sorted, min, max)},
    "reversed": lambda tree: items_of(tree)[::-1] if not is_set(tree) else _fail(),
    "list": items_of,
    "tuple": lambda tree: {"t": items_of(tree)},
    "set": lambda tree: {"s": [item for item, _ in _counted(tree)]},
    "frozenset": lambda tree: {"z": [item for item, _ in _counted(tree)]},
    "abs": lambda tree: number_tree(abs(calculable(tree))),
    "round": _round,
    "sum": lambda tree: number_tree(sum(map(calculable, items_of(tree)))),
    "any": lambda tree: any(map(truth, items_of(tree))),
    "all": lambda tree: all(map(truth, items_of(tree))),
    "int": _number_of(int),
    "float": _number_of(float),
    "str": _str,
    "repr": lambda tree: dict(attributes_of(tree))["__repr__"],
    "isinstance": _isinstance,
    "hastype": lambda tree, names: _type_name(tree) in names,
    "isclose": _isclose,
    "attribute": attribute,
    "next": _next,
    "iter": lambda tree: tree if _is_iterator(tree) else {"v": ["iterator", "iterator", items_of(tree), ""]},
    "generated": lambda tree: {"v": ["iterator", "generator", items_of(tree), ""]},
    "islice": _islice,
    "join": _join,
    "zip": lambda left, right: [{"t": [*pair]} for pair in zip(items_of(left), items_of(right), strict=False)],
    "enumerate": lambda tree: [{"t": [*pair]} for pair in enumerate(items_of(tree))],
    "unpacked": lambda tree, at, count: items[at] if len(items := items_of(tree)) == count else _fail(),
    "bytes": _bytes,
    "most_common": _most_common,
    "_asdict": lambda tree: {"d": [[*pair] for pair in _fields(tree).items()]},
    "as_stated": _as_stated,
    "agreed": lambda pair: pair[0] if type(pair) is list and len(pair) == 2 and pair[1] is True else _fail(),
    "isnan": lambda tree: math.isnan(real_number(tree)),
    "isinf": lambda tree: math.isinf(real_number(tree)),
    "isfinite": lambda tree: math.isfinite(real_number(tree)),
    "dict": _dict,
    "Counter": lambda tree: {"k": ["Counter", _counted(tree)]},
    "tolist": to_list,
    "flatten": flattened,
    "array_equal": array_equal,
    "equal_everywhere": functools.partial(array_equal, broadcast=True),
    "equal_arrays": functools.partial(array_equal, broadcast=True, equal_nan=True),
    "allclose": allclose,
    "same_table": same_table,
    **{name: of_moment(name) for name in ("isoformat", "weekday", "isoweekday", "total_seconds", "date")},
    **{name: _text_method(name) for name in ("lower", "upper", "strip", "split", "isdigit", "startswith", "endswith")},
    "count": _count,
    "keys": lambda tree: [key for key, _ in _pairs(tree)],
    "values": lambda tree: [value for _, value in _pairs(tree)],
    "items": lambda tree: [{"t": pair} for pair in _pairs(tree)],
}
"""By the names of all other operators."""
