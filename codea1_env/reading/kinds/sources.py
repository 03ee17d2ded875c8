"""The source of values of further kinds, as tests state them: `Fraction(1, 2)`, `datetime.date(2020, 1, 2)`.

Names are those that mean the same without an import (`sandbox/inside/scope.py`). Does not know plain values: the caller
writes those.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Write = Callable[[Any], str]


def kind_source(node: list[Any], write: Write) -> str:
    """The source of what stands under the tag `k`. Raises ValueError, TypeError or LookupError for a malformed one, and
    for what has no source."""
    kind, *parts = node
    match kind:
        case "Fraction" | "range" | "slice":
            return f"{kind}({_joined(parts, write)})"
        case "Decimal":
            return f"Decimal({parts[0]!r})"
        case "date" | "timedelta":
            return f"datetime.{kind}({_joined(parts, write)})"
        case "datetime" | "time":
            return _clock_source(kind, parts, write)
        case "deque":
            return f"deque({write(parts[0])}{'' if parts[1] is None else f', {write(parts[1])}'})"
        case "array":
            return f"array.array({write(parts[0])}, {write(parts[1])})"
        case "namedtuple":
            return write({"t": parts[2]})
        case "OrderedDict":
            return f"OrderedDict({write([{'t': pair} for pair in parts[0]])})"
        case "Counter":
            return f"Counter({write({'d': parts[0]})})"
        case "keys":
            return write({"s": parts[0]})
        case "items":
            return write({"s": [{"t": pair} for pair in parts[0]]})
        case "ndarray":
            dtype, shape, items = parts
            return f"np.array({_nested(shape, items, write)}, {write(dtype)})"
        case "Series":
            dtype, name, index, items = parts
            return f"pd.Series({write(items)}, {write(index)}, {write(dtype)}, {write(name)})"
        case "Index":
            dtype, name, items = parts
            return f"pd.Index({write(items)}, {write(dtype)}, name={write(name)})"
        case "DataFrame":
            columns, index, values, _ = parts
            named = {"d": [[column, value] for column, value in zip(columns, values, strict=True)]}
            return f"pd.DataFrame({write(named)}, {write(index)})"
        case "NaT" | "NA":
            return f"pd.{kind}"
        case "builtin" if parts[0].isidentifier():
            return str(parts[0])
    raise ValueError("no kind that is known")


def seen_source(node: list[Any], write: Write) -> str:
    """Likewise of what stands under the tag `v`, which can be looked at alone: an object is its attributes, an iterator
    of which not all items are known raises behind those."""
    match node:
        case ["values", items]:
            return f"dict(enumerate({write(items)})).values()"
        case ["iterator", _, items, ""]:
            return f"iter({write(items)})"
        case ["iterator", _, items, _]:
            return f"itertools.chain({write(items)}, map(int, ['']))"
        case ["object", _, attributes, *_]:
            named = {"d": [[name, value] for name, value in attributes if name.isidentifier()]}
            return f"types.SimpleNamespace(**{write(named)})"
    raise ValueError("no kind that is known")


def _joined(parts: list[Any], write: Write) -> str:
    return ", ".join(map(write, parts))


def _clock_source(kind: str, parts: list[Any], write: Write) -> str:
    *fields, fold, offset = parts
    least = 5 if kind == "datetime" else 2
    while len(fields) > least and fields[-1] == 0:
        fields = fields[:-1]
    zone = []
    if offset == 0:
        zone = ["tzinfo=datetime.timezone.utc"]
    elif offset is not None:
        zone = [f"tzinfo=datetime.timezone(datetime.timedelta(0, 0, {write(offset)}))"]
    return f"datetime.{kind}({', '.join([*map(write, fields), *zone, *(['fold=1'] if fold else [])])})"


def _nested(shape: list[int], items: list[Any], write: Write) -> str:
    if not shape:
        return write(items[0])
    size = len(items) // shape[0] if shape[0] else 0
    return f"[{', '.join(_nested(shape[1:], items[at * size : (at + 1) * size], write) for at in range(shape[0]))}]"
