"""Boundary values of a literal's type: empty, zero, negative, huge, other alphabets, all equal, long, nested.

Works on source trees, so that what comes out is source again and nothing is evaluated.

Does not promise that a value differs from the one it stands for, nor that it lies in a problem's domain.
"""

from __future__ import annotations

import ast
import random

_INTEGERS = (0, 1, -1, 2, -2, 10, -10, 100, 255, 256, 1000, -1000, 2**31 - 1, -(2**31), 2**63)
_FLOATS = ("0.0", "-0.0", "1.0", "-1.0", "0.1", "-0.5", "1e-09", "1e+16", "1e+308", "float('inf')", "float('-inf')")
_STRINGS = (
    "", " ", "a", "A", "z", "0", "-1", "()", "aa", "ab", "aba", "AbC", "  a  ", "a b", "a\nb", "\t", "\\", "'\"",
    "\x00", "é", "ß", "İ", "日本", "🙂", "e\u0301", "x" * 100, "ab" * 50,
)  # fmt: skip
_BYTES = (b"", b"\x00", b"a", b"\xff", b"ab" * 50)
_LONG = 50
"""Elements of a long container: enough to show a wrong bound, few enough for a slow reference."""


def boundary(node: ast.expr, generator: random.Random) -> ast.expr:
    """A boundary value of the same type as a literal; any other expression is returned unchanged.

    Elements of a container keep their type, a tuple its length and a dict its keys' type.
    """
    if isinstance(node, ast.List | ast.Set):
        elements = _elements(node.elts, generator)
        if isinstance(node, ast.Set):
            return ast.Set(elements) if elements else _expression("set()")
        return ast.List(elements)
    if isinstance(node, ast.Tuple):
        return ast.Tuple([boundary(element, generator) for element in node.elts])
    if isinstance(node, ast.Dict) and None not in node.keys:
        return _dict(node, generator)
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return node
    if isinstance(value, bool):
        return ast.Constant(generator.random() < 0.5)
    if isinstance(value, int):
        return _expression(repr(generator.choice(_INTEGERS)))
    if isinstance(value, float):
        return _expression(generator.choice(_FLOATS))
    if isinstance(value, str):
        return ast.Constant(generator.choice(_STRINGS))
    if isinstance(value, bytes):
        return ast.Constant(generator.choice(_BYTES))
    return node


def _elements(elements: list[ast.expr], generator: random.Random) -> list[ast.expr]:
    """None, one, two that are equal, boundary values of each, many; of nothing nothing is known."""
    if not elements:
        return []
    one = boundary(generator.choice(elements), generator)
    kind = generator.randrange(7)
    if kind == 0:
        return []
    if kind == 1:
        return [one]
    if kind == 2:
        return [one, one]
    if kind == 3:
        return [*elements, one]
    if kind == 4:
        return [elements[index % len(elements)] for index in range(_LONG)]
    if kind == 5:
        return [one] * _LONG
    return [boundary(element, generator) for element in elements]


def _dict(node: ast.Dict, generator: random.Random) -> ast.expr:
    if not node.keys or generator.random() < 0.25:
        return ast.Dict([], [])
    place = generator.randrange(len(node.keys))
    key, value = node.keys[place], boundary(node.values[place], generator)
    assert key is not None  # who calls has seen to it
    kind = generator.randrange(3)
    if kind == 0:
        return ast.Dict([key], [value])
    if kind == 1:
        return ast.Dict([boundary(key, generator)], [value])
    return ast.Dict(list(node.keys), [*node.values[:place], value, *node.values[place + 1 :]])


def _expression(source: str) -> ast.expr:
    return ast.parse(source, mode="eval").body
