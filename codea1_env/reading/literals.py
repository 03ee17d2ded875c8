"""Python literals <-> wire trees (the JSON form of `sandbox/inside/values.py`), without evaluating anything.

Does not promise to read every expression with a constant value: arithmetic, comprehensions, displays whose keys repeat
and calls such as `Fraction(1, 2)` are no literals here, and the sandbox evaluates them. Nothing of the text is ever
hashed or executed.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Callable
from typing import Any, TypeAlias

from codea1_env.reading.kinds.nodes import plain_form
from codea1_env.sandbox.inside import values
from codea1_env.sandbox.inside.scope import DECODED, SEEN

Tree: TypeAlias = bool | int | float | str | list[Any] | dict[str, Any] | None
"""A value on the wire, as JSON data: plain JSON values, and one-key objects for what JSON lacks."""

MAX_DEPTH = 100
"""Levels of containers, as deep as a value on the wire may be."""

_ANY_SIZE = 1 << 62
"""Bytes: how long a test may be its reader decides."""
_INT_MIN, _INT_MAX = -(1 << 63), (1 << 63) - 1
# Python refuses decimal texts longer than a limit that can be set as low as 640 digits, and they cost quadratic time.
_DECIMAL_BITS = 2048
_ENCODER = json.JSONEncoder(ensure_ascii=True, separators=(",", ":"), check_circular=False, allow_nan=False)
_NON_FINITE = {"nan": {"f": "nan"}, "inf": {"f": "inf"}, "-inf": {"f": "-inf"}}


class NotLiteral(ValueError):
    """The expression, or the tree, is not a plain literal."""


def encode(tree: Tree) -> bytes:
    """The tree as it goes on the wire: ASCII JSON, no spaces."""
    return _ENCODER.encode(tree).encode("ascii")


Other = Callable[[ast.expr], Tree]


def _no_other(node: ast.expr) -> Tree:
    raise NotLiteral(type(node).__name__)


def literal_tree(node: ast.expr, max_depth: int = MAX_DEPTH, other: Other = _no_other) -> Tree:
    """The wire tree of a literal: constants, signed numbers, displays, `set()`, `frozenset(...)`, `float('nan')` and
    its like, `complex(re, im)`, `re + im j`.

    Sets come in the order of their elements' source, so that equal sources have equal encodings. Raises NotLiteral for
    anything else, for repeated or unhashable keys, and beyond `max_depth` levels of containers; `other` may make a tree
    of what is no literal in lists, tuples and values of dicts.
    """
    # The cases in order of frequency: this is the inner loop of reading a suite.
    if type(node) is ast.Constant:
        return _constant_tree(node.value)
    if type(node) is ast.UnaryOp or type(node) is ast.BinOp:
        return _constant_tree(_number(node))
    if type(node) is ast.Call:
        try:
            return _spelling_tree(node, max_depth)
        except NotLiteral:
            return other(node)
    if max_depth <= 0:
        raise NotLiteral("too deep")
    if type(node) is ast.List:
        return [literal_tree(item, max_depth - 1, other) for item in node.elts]
    if type(node) is ast.Tuple:
        return {"t": [literal_tree(item, max_depth - 1, other) for item in node.elts]}
    if type(node) is ast.Dict:
        return _dict_tree(node, max_depth - 1, other)
    if type(node) is ast.Set:
        return {"s": _distinct([literal_tree(item, max_depth - 1) for item in node.elts])}
    return other(node)


def value_source(value: object) -> str:
    """The canonical source of plain Python data, as tests state it: `literal_tree` reads it back to an equal value.

    Raises NotLiteral, whose argument is the `Reason`, for what is no plain data and for more than MAX_DEPTH levels.
    """
    try:
        return tree_source(values.tree(value, [_ANY_SIZE], 0))
    except (values.TooLarge, RecursionError):
        raise NotLiteral("too_deep") from None
    except NotLiteral:
        raise NotLiteral("not_plain_data") from None


def tree_source(tree: Tree) -> str:
    """The tree's canonical Python source: pure, and read back by `literal_tree` to an equal tree, sets ordered; where a
    part is of a further kind, by the sandbox's evaluation.

    Raises NotLiteral for an opaque or malformed tree.
    """
    kind = type(tree)
    if kind is str or tree is None or kind is bool:
        return repr(tree)
    if type(tree) is float:
        if tree - tree != 0:
            raise NotLiteral("a float that is not finite must have the tag f")
        return repr(tree)
    if type(tree) is int:
        return _int_source(tree)
    if type(tree) is list:
        return f"[{', '.join([tree_source(item) for item in tree])}]"
    if type(tree) is not dict or len(tree) != 1:
        raise NotLiteral("a tree must be a JSON value or an object with one tag")
    ((tag, body),) = tree.items()
    try:
        return _tagged_source(tag, body)
    except NotLiteral:
        raise
    except (TypeError, ValueError, LookupError) as error:
        raise NotLiteral(f"malformed or opaque value under tag {tag!r}: {error}") from None


def _constant_tree(value: object) -> Tree:
    if value is None or type(value) is bool or type(value) is str:
        return value
    if type(value) is int:
        return value if _INT_MIN <= value <= _INT_MAX else {"i": hex(value)}
    if type(value) is float:
        return value if value - value == 0 else dict(_NON_FINITE[repr(value)])
    if type(value) is complex:
        return {"c": [_constant_tree(value.real), _constant_tree(value.imag)]}
    if type(value) is bytes:
        return {"b": value.hex()}
    raise NotLiteral(f"constant of type {type(value).__name__}")


def _number(node: ast.UnaryOp | ast.BinOp) -> object:
    """A number with one sign, or a real number plus or minus an imaginary one, as `repr` writes a complex."""
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, OverflowError):  # the last: an int beyond the range of float
        raise NotLiteral("not a number") from None


def _dict_tree(node: ast.Dict, max_depth: int, other: Other) -> Tree:
    keys = []
    for key in node.keys:
        if key is None:  # {**other}
            raise NotLiteral("unpacking")
        keys.append(literal_tree(key, max_depth))
    _require_distinct([equality_key(key) for key in keys])
    return {"d": [[key, literal_tree(item, max_depth, other)] for key, item in zip(keys, node.values, strict=True)]}


def _distinct(items: list[Tree]) -> list[Tree]:
    """The elements of a set in canonical order. Raises NotLiteral where two are equal or one is unhashable."""
    _require_distinct([equality_key(item) for item in items])
    return sorted(items, key=tree_source)


def _require_distinct(keys: list[str]) -> None:
    # Sorting, not hashing: chosen ints or floats make a hash table quadratic.
    keys.sort()
    for i in range(1, len(keys)):
        if keys[i] == keys[i - 1]:
            raise NotLiteral("repeated key")


def equality_key(tree: Tree) -> str:
    """A text that two hashable values share exactly when Python calls them equal (1 == True == 1.0); NaN equals NaN."""
    if type(tree) is str:
        return "s" + tree
    if type(tree) is float and tree.is_integer():
        tree = int(tree)
    if type(tree) is int or type(tree) is bool:
        return hex(tree)
    if tree is None or type(tree) is float:
        return repr(tree)
    if type(tree) is not dict:
        raise NotLiteral("unhashable key")
    ((tag, body),) = tree.items()
    if tag == "i":
        return str(body)
    if tag in "fb":
        return f"{tag}{body}"
    if tag == "c":
        real, imaginary = body
        return equality_key(real) if imaginary == 0 else f"c{equality_key(real)},{equality_key(imaginary)}"
    if tag in "tz":
        keys = list(map(equality_key, body))
        # Lengths in front: no text of an element can look like the border to the next.
        return tag + "".join([f"{len(key)}:{key}" for key in (keys if tag == "t" else sorted(keys))])
    raise NotLiteral("unhashable key")


def _spelling_tree(node: ast.Call, max_depth: int) -> Tree:
    """The values that have no literal of their own, by the calls that spell them."""
    if type(node.func) is not ast.Name or node.keywords:
        raise NotLiteral("call")
    name, arguments = node.func.id, node.args
    if name == "float" and len(arguments) == 1 and type(arguments[0]) is ast.Constant:
        text = arguments[0].value
        if type(text) is str and text in _NON_FINITE:
            return dict(_NON_FINITE[text])
    elif name == "complex" and len(arguments) == 2:
        return {"c": [_float_tree(argument) for argument in arguments]}
    elif max_depth <= 0:
        raise NotLiteral("too deep")
    elif name in ("set", "frozenset") and not arguments:
        return {"s" if name == "set" else "z": []}
    elif name == "frozenset" and len(arguments) == 1 and type(arguments[0]) is ast.Set:
        return {"z": _distinct([literal_tree(item, max_depth - 1) for item in arguments[0].elts])}
    raise NotLiteral("call")


def _float_tree(node: ast.expr) -> Tree:
    """The tree of a float, for the two parts of `complex(re, im)`."""
    tree = literal_tree(node, 1)
    if type(tree) is float or (type(tree) is dict and "f" in tree):
        return tree
    raise NotLiteral("not a float")


def _int_source(value: int) -> str:
    return str(value) if value.bit_length() <= _DECIMAL_BITS else hex(value)


def looked_at(tree: Tree) -> Tree:
    """A tree that has a source where this one has none, or one that equals it and is shown otherwise: with code for
    what can be looked at alone."""
    if type(tree) is list:
        return [looked_at(item) for item in tree]
    if type(tree) is not dict:
        return tree
    ((tag, body),) = tree.items()
    if tag == "k" and type(body) is list and body[:1] == ["DataFrame"]:
        text = encode(tree)
        if b'{"v":' not in text and b'{"e":' not in text:  # with the types of its columns, and each of equal names
            return {"e": f"pd.DataFrame({DECODED}({text.decode()!r}))"}
    parts: Any = looked_at(body) if type(body) is list else body
    match tag, parts:
        case "v", _:
            return {"e": _seen_source(parts)}
        case "k", ["namedtuple", name, fields, items]:
            return {"e": f"collections.namedtuple({name!r}, {fields!r}, rename=True)(*{tree_source(items)})"}
        case "k", ["keys", members]:
            return {"e": f"dict.fromkeys({tree_source(members)}).keys()"}
        case "k", ["items", pairs]:
            return {"e": f"dict({tree_source(pairs)}).items()"}
    return {tag: parts}


def _tagged_source(tag: str, body: Any) -> str:
    if tag == "t":
        items = [tree_source(item) for item in body]
        return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"
    if tag == "d":
        return f"{{{', '.join([f'{tree_source(key)}: {tree_source(item)}' for key, item in body])}}}"
    if tag == "s" or tag == "z":
        items = sorted([tree_source(item) for item in body])
        display = f"{{{', '.join(items)}}}" if items else ""
        if tag == "s":
            return display or "set()"
        return f"frozenset({display})"
    if tag == "i":
        return _int_source(int(body, 16))
    if tag == "f" and body in _NON_FINITE:
        return f"float('{body}')"
    if tag == "b":
        return repr(bytes.fromhex(body))
    if tag == "c":
        real, imaginary = body
        return f"complex({tree_source(real)}, {tree_source(imaginary)})"
    if tag == "k":
        return _kind_source(body)
    if tag == "e":
        return str(body if type(body) is str else body[-1])
    raise NotLiteral("unknown tag")


def _kind_source(node: list[Any]) -> str:
    """The source of what stands under the tag `k`. Raises ValueError, TypeError or LookupError where it has none."""
    kind, *parts = node
    match kind:
        case "Fraction" | "range" | "slice":
            return f"{kind}({', '.join(map(tree_source, parts))})"
        case "Decimal":
            return f"Decimal({parts[0]!r})"
        case "date" | "timedelta":
            return f"datetime.{kind}({', '.join(map(tree_source, parts))})"
        case "datetime" | "time":
            return _clock_source(kind, parts)
        case "deque":
            return f"deque({tree_source(parts[0])}{'' if parts[1] is None else f', {tree_source(parts[1])}'})"
        case "array":
            return f"array.array({tree_source(parts[0])}, {tree_source(parts[1])})"
        case "namedtuple" | "keys" | "items":
            return tree_source(plain_form({"k": node}))
        case "OrderedDict":
            return f"OrderedDict({tree_source([{'t': pair} for pair in parts[0]])})"
        case "Counter":
            return f"Counter({tree_source({'d': parts[0]})})"
        case "ndarray":
            dtype, shape, items = parts
            return f"np.array({_nested(shape, items)}, {tree_source(dtype)})"
        case "Series":
            dtype, name, index, items = parts
            return f"pd.Series({tree_source(items)}, {tree_source(index)}, {tree_source(dtype)}, {tree_source(name)})"
        case "Index":
            dtype, name, items = parts
            if type(name) is list:
                return f"pd.MultiIndex.from_tuples({tree_source(items)}, names={tree_source(name)})"
            return f"pd.Index({tree_source(items)}, {tree_source(dtype)}, name={tree_source(name)})"
        case "DataFrame":
            columns, index, values, _ = parts
            named = {"d": [[column, value] for column, value in zip(columns, values, strict=True)]}
            return f"pd.DataFrame({tree_source(named)}, {tree_source(index)})"
        case "NaT" | "NA":
            return f"pd.{kind}"
        case "builtin" if parts[0].isidentifier():
            return str(parts[0])
    raise ValueError("no kind that is known")


def _seen_source(node: list[Any]) -> str:
    """Likewise of what stands under the tag `v`, which can be looked at alone: an object is its attributes, an iterator
    of which not all items are known raises behind those."""
    match node:
        case ["values", items]:
            return f"dict(enumerate({tree_source(items)})).values()"
        case ["iterator", _, items, ""]:
            return f"iter({tree_source(items)})"
        case ["iterator", _, items, _]:
            return f"itertools.chain({tree_source(items)}, map(int, ['']))"
        case ["object", name, attributes, *_]:
            return f"{SEEN}({name!r}, {tree_source({'d': attributes})})"
    raise ValueError("no kind that is known")


def _clock_source(kind: str, parts: list[Any]) -> str:
    *fields, fold, offset = parts
    least = 5 if kind == "datetime" else 2
    while len(fields) > least and fields[-1] == 0:
        fields = fields[:-1]
    zone = []
    if offset == 0:
        zone = ["tzinfo=datetime.timezone.utc"]
    elif offset is not None:
        zone = [f"tzinfo=datetime.timezone(datetime.timedelta(0, 0, {tree_source(offset)}))"]
    return f"datetime.{kind}({', '.join([*map(tree_source, fields), *zone, *(['fold=1'] if fold else [])])})"


def _nested(shape: list[int], items: list[Any]) -> str:
    if not shape:
        return tree_source(items[0])
    size = len(items) // shape[0] if shape[0] else 0
    return f"[{', '.join(_nested(shape[1:], items[at * size : (at + 1) * size]) for at in range(shape[0]))}]"
