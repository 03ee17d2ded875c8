"""EvalPlus's test loops: a list of inputs, a list of results or a reference function, and a comparing function.

    for i, (inp, exp) in enumerate(zip(inputs, results)):
        assertion(candidate(*inp), exp, 0)

Only this very shape is known, and only where the comparing function asserts equality or closeness and nothing else:
what differs in any point is not taken for one. Nothing is executed.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class InputLoop:
    """One loop; the fields are names in its script."""

    helper: str
    """The comparing function."""
    inputs: str
    results: str
    """Empty where a reference function has the values."""
    reference: str
    """Empty where a list has the values."""
    tolerance: float
    """What the comparing function is given; 0 leaves it to its own default for floats."""


def read_loop(node: ast.For, subject: str) -> InputLoop | None:
    """The loop, if it is one that calls `subject`."""
    match node:
        case ast.For(
            target=ast.Tuple(elts=[ast.Name(), target]),
            iter=ast.Call(func=ast.Name("enumerate"), args=[iterated], keywords=[]),
            body=[ast.Expr(ast.Call(func=ast.Name(helper), args=[call, value, ast.Constant(given)], keywords=[]))],
            orelse=[],
        ) if _number(given) is not None:
            tolerance = _number(given) or 0.0
        case _:
            return None
    match target, iterated, value:
        case (
            ast.Tuple(elts=[ast.Name(one), ast.Name(other)]),
            ast.Call(func=ast.Name("zip"), args=[ast.Name(inputs), ast.Name(results)], keywords=[]),
            ast.Name(stated),
        ) if stated == other and one != other and _spreads(call, subject, one):
            return InputLoop(helper, inputs, results, "", tolerance)
        case (ast.Name(one), ast.Name(inputs), ast.Call(func=ast.Name(reference))) if (
            _spreads(call, subject, one) and _spreads(value, reference, one) and reference != subject
        ):
            return InputLoop(helper, inputs, "", reference, tolerance)
    return None


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0 else None


def _spreads(node: ast.expr, function: str, argument: str) -> bool:
    """Whether the node is `function(*argument)`."""
    match node:
        case ast.Call(func=ast.Name(name), args=[ast.Starred(value=ast.Name(spread))], keywords=[]):
            return name == function and spread == argument
    return False


def asserts_equality(helper: ast.FunctionDef) -> bool:
    """Whether a function asserts that its first two parameters are equal, or `allclose`, and nothing else.

    Whatever it does besides (another comparison, a return, a change of a parameter) makes the answer False.
    """
    names = [argument.arg for argument in helper.args.args]
    if len(names) != 3:
        return False
    compared = set(names[:2])
    equal: set[str] = set()  # names of what came out of comparing the two

    def is_equality(test: ast.expr) -> bool:
        match test:
            case ast.Compare(left=ast.Name(left), ops=[ast.Eq()], comparators=[ast.Name(right)]):
                return {left, right} == compared
            case ast.Name(name):
                return name in equal
            case ast.Call(func=ast.Attribute(attr="allclose"), args=[ast.Name(left), ast.Name(right)]):
                return {left, right} == compared
        return False

    asserted = 0
    for node in ast.walk(helper):
        match node:
            case ast.Assign(targets=[ast.Name(name)], value=value) if name not in compared:
                if is_equality(value):
                    equal.add(name)
                elif name in equal:
                    return False
            case ast.Assert(test=test):
                asserted += 1
                if not is_equality(test):
                    return False
            case ast.Assign() | ast.AugAssign() | ast.Return() | ast.Try() | ast.For() | ast.While() | ast.Raise():
                return False
    return asserted > 0


def default_tolerance(helper: ast.FunctionDef) -> float:
    """What the comparing function puts in the place of a tolerance of 0 for floats: its third parameter's constant."""
    third = helper.args.args[2].arg
    for node in ast.walk(helper):
        match node:
            case ast.Assign(targets=[ast.Name(name)], value=ast.Constant(value)) if name == third:
                return _number(value) or 0.0
    return 0.0


def has_only_floats(node: ast.expr) -> bool:
    """Whether the expression is a float, or a list or tuple of nothing but floats."""
    items = node.elts if isinstance(node, ast.List | ast.Tuple) else [node]
    numbers = [item.operand if isinstance(item, ast.UnaryOp) else item for item in items]
    return bool(numbers) and all(isinstance(each, ast.Constant) and type(each.value) is float for each in numbers)
