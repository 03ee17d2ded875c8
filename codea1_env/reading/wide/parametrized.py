"""`pytest.mark.parametrize`: for every row of a parametrised test what its names stand for. Nothing is evaluated."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, product

from codea1_env.reading.pure_expressions import Rejected
from codea1_env.reading.steps import Steps
from codea1_env.reading.wide.displays import table

MAX_ROWS_OF_ALL = 256
"""Rows that several decorators make together: as many as a suite has tests that are read."""
Row = dict[str, ast.expr]


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of one test function; one empty row where it has no decorator."""

    rows: tuple[Row, ...]
    is_cut: bool
    """There are more."""


def rows_of(decorators: Sequence[ast.expr], inlined: Callable[[ast.expr], ast.expr], steps: Steps) -> Rows | None:
    """None where a decorator says something else. `inlined` puts names in place; raises Rejected. Raises TooMuch."""
    tables = [_rows(decorator, inlined) for decorator in reversed(decorators)]  # the nearest one varies slowest
    if None in tables:
        return None
    combined: Iterator[tuple[Row, ...]] = product(*(each.rows for each in tables if each))
    merged: list[Row] = []
    for rows in islice(combined, MAX_ROWS_OF_ALL + 1):
        steps.take(len(rows) + sum(map(len, rows)))
        merged.append({name: value for each in reversed(rows) for name, value in each.items()})
    is_cut = len(merged) > MAX_ROWS_OF_ALL or any(each.is_cut for each in tables if each)
    return Rows(tuple(merged[:MAX_ROWS_OF_ALL]), is_cut)


def _rows(decorator: ast.expr, inlined: Callable[[ast.expr], ast.expr]) -> Rows | None:
    if not isinstance(decorator, ast.Call) or name_of(decorator.func) != "parametrize" or len(decorator.args) < 2:
        return None
    if any(keyword.arg not in ("ids", "scope") for keyword in decorator.keywords):  # `indirect` asks a fixture
        return None
    try:
        listed, values = (inlined(argument) for argument in decorator.args[:2])
    except Rejected:
        return None
    texts = listed.elts if isinstance(listed, ast.Tuple | ast.List) else [listed]
    written = [text.value for text in texts if isinstance(text, ast.Constant) and isinstance(text.value, str)]
    names = [part.strip() for text in written for part in text.split(",") if part.strip()]
    known = table(values)
    if known is None or not names:
        return None
    # `["x"]` takes rows of one value, `"x"` the value itself.
    is_alone = len(names) == 1 and isinstance(listed, ast.Constant)
    rows = [row(names, value, is_alone) for value in known.rows]
    readable = [each for each in rows if each is not None]
    return Rows(tuple(readable), known.is_cut) if len(readable) == len(rows) else None


def row(names: Sequence[str], value: ast.expr, is_alone: bool) -> Row | None:
    """What the names of one row stand for. None for a row that is marked, to be skipped perhaps."""
    if isinstance(value, ast.Call) and name_of(value.func) == "param":
        if any(keyword.arg != "id" for keyword in value.keywords):
            return None
        items: Sequence[ast.expr] = value.args
    elif is_alone:
        items = [value]
    else:
        items = value.elts if isinstance(value, ast.Tuple | ast.List) else []
    return dict(zip(names, items, strict=True)) if len(items) == len(names) else None


def name_of(function: ast.expr) -> str:
    """The last name of what is called: `raises` of `pytest.raises`."""
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""
