"""unittest's assertion methods as conditions: `self.assertEqual(f(1), 2)` -> `f(1) == 2`.

Plain syntax trees in and out. Does not know which method calls stand in a test, and does not judge the conditions.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence

_PLACES = 7
"""Decimal places of `assertAlmostEqual`, as in unittest."""


def _compare(operator: ast.cmpop) -> Callable[[Sequence[ast.expr]], ast.expr]:
    return lambda sides: ast.Compare(sides[0], [operator], [sides[1]])


def _negated(node: ast.expr) -> ast.expr:
    return ast.UnaryOp(ast.Not(), node)


def _call(name: str, *arguments: ast.expr) -> ast.expr:
    return ast.Call(ast.Name(name, ast.Load()), list(arguments), [])


_EQUAL = _compare(ast.Eq())
_TWO: Mapping[str, Callable[[Sequence[ast.expr]], ast.expr]] = {
    **dict.fromkeys(
        ("assertEqual", "assertEquals", "assertListEqual", "assertDictEqual", "assertSetEqual", "assertTupleEqual",
         "assertSequenceEqual", "assertMultiLineEqual"), _EQUAL,
    ),
    "assertNotEqual": _compare(ast.NotEq()),
    "assertIs": _compare(ast.Is()),
    "assertIsNot": _compare(ast.IsNot()),
    "assertIn": _compare(ast.In()),
    "assertNotIn": _compare(ast.NotIn()),
    "assertGreater": _compare(ast.Gt()),
    "assertGreaterEqual": _compare(ast.GtE()),
    "assertLess": _compare(ast.Lt()),
    "assertLessEqual": _compare(ast.LtE()),
    "assertCountEqual": lambda sides: _EQUAL([_call("sorted", side) for side in sides[:2]]),
    "assertIsInstance": lambda sides: _call("isinstance", *sides[:2]),
    "assertNotIsInstance": lambda sides: _negated(_call("isinstance", *sides[:2])),
}  # fmt: skip
_ONE: Mapping[str, Callable[[Sequence[ast.expr]], ast.expr]] = {
    "assertTrue": lambda sides: sides[0],
    "assertFalse": lambda sides: _negated(sides[0]),
    "assertIsNone": lambda sides: _compare(ast.Is())([sides[0], ast.Constant(None)]),
    "assertIsNotNone": lambda sides: _compare(ast.IsNot())([sides[0], ast.Constant(None)]),
}
_NAMES = ("first", "second", "expr")


def condition_of(call: ast.Call) -> ast.expr | None:
    """What an assertion method claims; None for a call of anything else, or with other arguments than it takes."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    named = {keyword.arg: keyword.value for keyword in call.keywords}
    sides = [*call.args, *(named[each] for each in _NAMES if each in named)]
    if name in ("assertAlmostEqual", "assertAlmostEquals", "assertNotAlmostEqual"):
        near = _almost(sides, named)
        return _negated(near) if near is not None and name == "assertNotAlmostEqual" else near
    for table, least in ((_ONE, 1), (_TWO, 2)):
        if name in table and least <= len(sides) <= least + 1 and set(named) <= {*_NAMES, "msg"}:  # one is the message
            return table[name](sides)
    return None


def _almost(sides: Sequence[ast.expr], named: Mapping[str | None, ast.expr]) -> ast.expr | None:
    if not 2 <= len(sides) <= 3 or set(named) - {*_NAMES, "places", "delta", "msg"}:
        return None
    difference = _call("abs", ast.BinOp(sides[0], ast.Sub(), sides[1]))
    if "delta" in named:
        return ast.Compare(difference, [ast.LtE()], [named["delta"]])
    places = sides[2] if len(sides) > 2 else named.get("places") or ast.Constant(_PLACES)
    return ast.Compare(_call("round", difference, places), [ast.Eq()], [ast.Constant(0)])
