"""Which objects an expression's value shares with the names in it, and which functions change what they are given.

Lists, dicts and sets are objects that several names may be or hold, so that a change by one of them is a change of all.
Read from texts, and as far as that says: a part may be shared where it says so, and is not where nothing does. Does not
know what names stand for, nor which of them is the program under test.
"""

from __future__ import annotations

import ast
from enum import Enum, auto

from codea1_env.reading.pure_expressions import BUILTINS

CHANGING = frozenset(
    "add append appendleft clear difference_update discard extend extendleft insert intersection_update pop popitem "
    "popleft remove reverse rotate setdefault sort symmetric_difference_update update".split()
)
"""Methods that change their list, dict, set or deque."""
UNCHANGING = BUILTINS | frozenset(
    "Counter Decimal Fraction OrderedDict approx deepcopy deque format hash id isclose isinstance iter print repr "
    "type".split()
)
"""Functions and types that change nothing that they are given."""
UNCHANGING_MODULES = frozenset(
    "cmath collections copy datetime decimal fractions functools itertools json math np numpy operator pytest re "
    "statistics".split()
)


class Part(Enum):
    """What becomes of the objects of a part of an expression."""

    SELF = auto()
    """The expression gives the part itself: `x or y`."""
    ANY = auto()
    """It gives the part or something in it: `x[0]`."""
    HELD = auto()
    """It holds the part: `[x]`."""
    CONTENT = auto()
    """It holds what the part holds: `list(x)`."""


def parts(node: ast.AST, part: Part) -> list[tuple[ast.AST | None, Part]]:
    """The expressions whose objects, and no copies of them, a node of this part may give or hold."""
    inside = part if part in (Part.ANY, Part.HELD) else Part.ANY if part is Part.SELF else Part.HELD
    copied = Part.CONTENT if part is Part.SELF else part
    kept = Part.ANY if part is Part.ANY else Part.HELD
    match node:
        case ast.IfExp(body=one, orelse=other):
            return [(one, part), (other, part)]
        case ast.BoolOp(values=values):
            return [(value, part) for value in values]
        case ast.NamedExpr(value=value):
            return [(value, part)]
        case ast.List(elts=values) | ast.Tuple(elts=values) | ast.Set(elts=values) | ast.Dict(values=values):
            return [(value, kept) for value in values]
        case ast.BinOp(left=one, right=other):
            return [(one, copied), (other, copied)]
        case ast.Subscript(value=value, slice=ast.Slice()) | ast.Call(func=ast.Attribute(value=value, attr="copy")):
            return [(value, copied)]
        case ast.Call(func=ast.Name(id=name), args=given, keywords=named) if name in BUILTINS:
            picks = inside if name in ("max", "min") else copied
            return [*[(value, picks) for value in given], *[(each.value, kept) for each in named]]
        case ast.Call(func=ast.Name(), args=given):  # next(x), own(x)
            return [(value, inside) for value in given]
        case ast.Subscript(value=value) | ast.Attribute(value=value) | ast.Starred(value=value):
            return [(value, inside)]
        case ast.Call(func=ast.Attribute(value=value)):  # d.get(1)
            return [(value, inside)]
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.comprehension():
            return [(each, Part.HELD) for each in ast.iter_child_nodes(node)]
    return []


def bindings(node: ast.AST) -> list[tuple[ast.expr, ast.expr]]:
    """Targets that a node gives the objects of an expression."""
    match node:
        case ast.Assign(targets=targets, value=value):
            return [(target, value) for target in targets]
        case ast.AnnAssign(target=target, value=ast.expr() as value) | ast.NamedExpr(target=target, value=value):
            return [(target, value)]
        case ast.For(target=target, iter=value) | ast.AsyncFor(target=target, iter=value):
            return [(target, value)]
        case ast.withitem(context_expr=value, optional_vars=ast.expr() as target):
            return [(target, value)]
    return []
