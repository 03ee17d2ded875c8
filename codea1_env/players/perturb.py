"""Small changes of literals within their type, which make the inputs of a tester that fuzzes.

Works on source trees, so that what comes out is source again and nothing is evaluated.

Does not promise that the new value differs, nor that it lies in a problem's domain.
"""

from __future__ import annotations

import ast
import random
from collections.abc import Callable
from typing import Any

from codea1_env.reading.literals import value_source
from codea1_env.reading.parsing import Unparsable, parse

Change = Callable[[ast.expr, random.Random], ast.expr]
"""What becomes of one argument: `perturbed` or `boundary.boundary`."""


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
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return node
    changed: Any = value
    if isinstance(value, bool):
        changed = not value
    elif isinstance(value, int):
        changed = _integer(value, generator)
    elif isinstance(value, float):
        changed = generator.choice((0.0, -value, value + 1.0, value - 1.0, value / 2))
    elif isinstance(value, str | bytes):
        changed = _string(value, generator)
    else:
        return node
    return ast.parse(value_source(changed), mode="eval").body


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
