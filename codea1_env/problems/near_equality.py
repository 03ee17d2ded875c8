"""Asserts of closeness, read as an equality and a tolerance.

    abs(f(1) - 2) < 1e-6     f(1) == pytest.approx(2)     math.isclose(f(1), 2, abs_tol=1e-6)

The judge's tolerance is relative and absolute at once. One that was absolute becomes the share of the value that it is,
where the value is a number over 1. Others of a problem may become laxer by it, never stricter: what is more than
LARGEST is left out.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from codea1_env.reading.pure_expressions import Rejected
from codea1_env.reading.wide.relational_tests import APPROX, ISCLOSE, called_name, tolerances

LARGEST = 1e-2
"""Tolerances above it are no matter of rounding."""


@dataclass(frozen=True, slots=True)
class NearEquality:
    equality: ast.expr
    """`call == value`, whichever side the call is on."""
    tolerance: float


def read_near_equality(test: ast.expr) -> NearEquality | None:
    """What the condition of an assert states, if it is one of the three forms with constant tolerances."""
    match test:
        case ast.Compare(
            left=ast.Call(
                func=ast.Name("abs") | ast.Attribute(value=ast.Name("math"), attr="fabs" | "abs"),
                args=[ast.BinOp(left=left, op=ast.Sub(), right=right)],
                keywords=[],
            ),
            ops=[ast.Lt() | ast.LtE()],
            comparators=[bound],
        ):
            return _near(left, right, 0.0, _constant(bound))
        case ast.Compare(
            left=left, ops=[ast.Eq()], comparators=[ast.Call(func=function, args=[right, *more]) as near]
        ) if called_name(function) == "approx":
            return _near(left, right, *_granted(near, more, APPROX))
        case ast.Call(func=function, args=[left, right]) if called_name(function) == "isclose":
            return _near(left, right, *_granted(test, [], ISCLOSE))
    return None


def _near(left: ast.expr, right: ast.expr, relative: float | None, absolute: float | None) -> NearEquality | None:
    if relative is None or absolute is None:
        return None
    values = [value for side in (left, right) if (value := _constant(side)) is not None]
    tolerance = max(relative, absolute / max([1.0, *map(abs, values)]))
    if not 0 < tolerance <= LARGEST:
        return None
    return NearEquality(ast.Compare(left, [ast.Eq()], [right]), tolerance)


def _granted(
    call: ast.Call, positional: Sequence[ast.expr], defaults: Mapping[str, str]
) -> tuple[float | None, float | None]:
    """The relative and the absolute tolerance; None for one that is not a constant."""
    try:
        relative, absolute = (_constant(value) for value in tolerances(call.keywords, positional, defaults))
    except Rejected:
        return None, None
    return relative, absolute


def _constant(node: ast.expr) -> float | None:
    """A number, as `1e-6`, `0.5` or `10 ** -6`."""
    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            return float(value) if abs(value) < 1e300 else None
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            negated = _constant(operand)
            return None if negated is None else -negated
        case ast.BinOp(
            left=ast.Constant(10), op=ast.Pow(), right=ast.UnaryOp(op=ast.USub(), operand=ast.Constant(int(power)))
        ) if 0 < power < 100:
            return 10.0**-power
    return None
