"""Changes of literals within their type, which make the inputs of a tester that fuzzes: small ones, and boundary
values: empty, zero, negative, huge, other alphabets, all equal, long, nested.

Works on source trees, so that what comes out is source again and nothing is evaluated. Does not promise that the new
value differs, nor that it lies in a problem's domain.
"""

from __future__ import annotations

import ast
import random
from collections.abc import Callable
from typing import Any

from codea1_env.reading.literals import value_source
from codea1_env.reading.parsing import Unparsable, parse

Change = Callable[[ast.expr, random.Random], ast.expr]
"""What becomes of one argument: `perturbed` or `boundary`."""


def changed_call(source: str, change: Change, generator: random.Random) -> str:
    """The call with one or more of its arguments changed; unchanged if it has none, or if it is no call that parses."""
    try:
        (statement,) = parse(source).body
        call = getattr(statement, "value", None)
        if not isinstance(call, ast.Call):
            return source
        places = range(len(call.args) + len(call.keywords))
        for place in generator.sample(places, generator.randint(1, len(places))) if places else ():
            if place < len(call.args):
                call.args[place] = change(call.args[place], generator)
            else:
                keyword = call.keywords[place - len(call.args)]
                keyword.value = change(keyword.value, generator)
        return ast.unparse(call)
    except (Unparsable, ValueError, RecursionError):  # ValueError: several statements, or an int too long to write
        return source


def perturbed(node: ast.expr, generator: random.Random) -> ast.expr:
    """A changed copy of a literal, of the same type; any other expression is returned unchanged."""
    if isinstance(node, ast.List | ast.Set):
        return type(node)(_elements(node.elts, generator, node)) if node.elts else node
    if isinstance(node, ast.Tuple):
        return ast.Tuple(_one_changed(node.elts, generator))  # tuples are records: their length has a meaning
    if isinstance(node, ast.Dict) and None not in node.keys:
        return _dict(node, generator)
    changed: Any
    match _value(node):
        case bool(value):
            changed = not value
        case int(value):
            changed = _integer(value, generator)
        case float(value):
            changed = generator.choice((0.0, -value, value + 1.0, value - 1.0, value / 2))
        case str(value) | bytes(value):
            changed = _string(value, generator)
        case _:
            return node
    return _expression(value_source(changed))


def _value(node: ast.expr) -> object:
    """Of a literal; None of any other expression."""
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None


def _integer(value: int, generator: random.Random) -> int:
    # Nothing much larger than the value: a wild number mostly costs a time-out of the reference solution.
    nearby = generator.randint(-10, 10)
    return generator.choice((0, 1, -1, -value, value - 1, value + 1, 2 * value, value + nearby))


def _string(value: Any, generator: random.Random) -> Any:
    place = generator.randrange(len(value) + 1)
    return generator.choice(
        (
            value[:0],
            value[:1],
            value[::-1],
            value.swapcase(),
            value + value,
            value[:place] + value[place + 1 :],
            value[:place] + value[:1] + value[place:],
            value[place:] + value[:place],
        )
    )


def _elements(elements: list[ast.expr], generator: random.Random, container: ast.expr) -> list[ast.expr]:
    place = generator.randrange(len(elements))
    options = [
        elements[:1],
        elements[::-1],
        elements + elements[:1],
        elements[:place] + elements[place + 1 :],
        _one_changed(elements, generator),
        _one_changed(elements, generator),
    ]
    if isinstance(container, ast.List):
        options.append([])  # a set display cannot be empty
    return generator.choice([option for option in options if option or isinstance(container, ast.List)])


def _one_changed(elements: list[ast.expr], generator: random.Random) -> list[ast.expr]:
    if not elements:
        return []
    place = generator.randrange(len(elements))
    return [*elements[:place], perturbed(elements[place], generator), *elements[place + 1 :]]


def _dict(node: ast.Dict, generator: random.Random) -> ast.Dict:
    if not node.keys:
        return node
    place = generator.randrange(len(node.keys))
    if generator.random() < 0.5:
        return ast.Dict(node.keys[:place] + node.keys[place + 1 :], node.values[:place] + node.values[place + 1 :])
    return ast.Dict(list(node.keys), _one_changed(node.values, generator))


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
        elements = _boundary_elements(node.elts, generator)
        if isinstance(node, ast.Set):
            return ast.Set(elements) if elements else _expression("set()")
        return ast.List(elements)
    if isinstance(node, ast.Tuple):
        return ast.Tuple([boundary(element, generator) for element in node.elts])
    if isinstance(node, ast.Dict) and None not in node.keys:
        return _boundary_dict(node, generator)
    match _value(node):
        case bool():
            return ast.Constant(generator.random() < 0.5)
        case int():
            return _expression(repr(generator.choice(_INTEGERS)))
        case float():
            return _expression(generator.choice(_FLOATS))
        case str():
            return ast.Constant(generator.choice(_STRINGS))
        case bytes():
            return ast.Constant(generator.choice(_BYTES))
    return node


def _boundary_elements(elements: list[ast.expr], generator: random.Random) -> list[ast.expr]:
    """None, one, two that are equal, boundary values of each, many; of nothing nothing is known."""
    if not elements:
        return []
    one = boundary(generator.choice(elements), generator)
    many = [elements[index % len(elements)] for index in range(_LONG)]
    options: tuple[list[ast.expr], ...] = ([], [one], [one, one], [*elements, one], many, [one] * _LONG)
    kind = generator.randrange(7)
    return options[kind] if kind < 6 else [boundary(element, generator) for element in elements]


def _boundary_dict(node: ast.Dict, generator: random.Random) -> ast.expr:
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
