"""Expressions as syntax trees, as they are put here in the place of what a suite says.

They hold the nodes that they are made of, and are never changed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

UNKNOWN = ast.Name("__unknown__", ast.Load())
"""What is not known: a name that nothing has."""


def name(text: str) -> ast.Name:
    """A name of the suite's, which may have a dot in it: `self.items`."""
    return ast.Name(text, ast.Load())


def call(dotted: str, *given: ast.expr, options: Sequence[ast.keyword] = ()) -> ast.Call:
    """A call of Python's or of ours: `len`, `json.dumps`."""
    first, *more = dotted.split(".")
    function: ast.expr = name(first)
    for each in more:
        function = ast.Attribute(function, each, ast.Load())
    return ast.Call(function, [*given], [*options])


def method(owner: ast.expr, attribute: str, *given: ast.expr) -> ast.Call:
    """A call of an object's method."""
    return ast.Call(ast.Attribute(owner, attribute, ast.Load()), [*given], [])


def listed(items: Iterable[ast.expr]) -> ast.List:
    """`[a, b]`."""
    return ast.List([*items], ast.Load())


def tupled(*items: ast.expr) -> ast.Tuple:
    """`(a, b)`."""
    return ast.Tuple([*items], ast.Load())


def item(owner: ast.expr, at: str | int) -> ast.Subscript:
    """`owner[at]`."""
    return ast.Subscript(owner, ast.Constant(at), ast.Load())


def function(body: ast.expr, *parameters: str) -> ast.Lambda:
    """`lambda a, b: body`."""
    return ast.Lambda(ast.arguments([], [*map(ast.arg, parameters)], None, [], [], None, []), body)


def last_name(function: ast.AST) -> str:
    """The last name of what is called: `raises` of `pytest.raises`."""
    return str(getattr(function, "attr", "") or getattr(function, "id", ""))
