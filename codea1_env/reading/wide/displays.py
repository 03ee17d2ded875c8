"""Rows of literal tables, without evaluating anything: what a loop or a parametrised test goes through.

A table is a display (a list, a tuple, a set), `zip`, `enumerate` or `range` of such, or the items of a dict display.
Takes no more than MAX_ROWS rows of a table; does not know what stands in them.
"""

from __future__ import annotations

import ast
import contextlib
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Generic, TypeVar

from codea1_env.reading.literals import NotLiteral, equality_key, literal_tree
from codea1_env.reading.parsing import dump_of
from codea1_env.reading.pure_expressions import given_in, known_name
from codea1_env.reading.wide import trees

MAX_ROWS = 64
"""Rows that are read of one table: a suite has K tests, and what comes after them counts for nothing."""
_KINDS = {kind.__name__: kind for kind in (bool, int, float, str, bytes, list, tuple, dict, set)}
_COMPARED: Mapping[type[ast.cmpop], Callable[[Any, Any], object]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge, ast.Is: operator.is_, ast.IsNot: operator.is_not, ast.In: lambda one, many: one in many,
    ast.NotIn: lambda one, many: one not in many,
}  # fmt: skip

_Row = TypeVar("_Row")


@dataclass(frozen=True, slots=True)
class Rows(Generic[_Row]):
    """The rows of a table, or of a test."""

    rows: tuple[_Row, ...]
    is_cut: bool
    """It has more."""


def table(node: ast.expr, most: int = MAX_ROWS) -> Rows[ast.expr] | None:
    """The rows of an expression, all names in it inlined; None where it is no literal table. No more than `most`."""
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        if any(isinstance(item, ast.Starred) for item in node.elts):
            return None
        return Rows(tuple(node.elts[:most]), len(node.elts) > most)
    if isinstance(node, ast.Dict):
        return _of_dict(node, "keys", most)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        ones, others = table(node.left, most), table(node.right, most)
        if not isinstance(node.left, ast.List | ast.BinOp) or ones is None or others is None:
            return None
        rows = (*ones.rows, *others.rows)
        return Rows(rows[:most], ones.is_cut or others.is_cut or len(rows) > most)
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        letters: list[ast.expr] = [ast.Constant(letter) for letter in node.value[: most + 1]]
        return Rows(tuple(letters[:most]), len(letters) > most)
    if not isinstance(node, ast.Call) or any(keyword.arg != "start" for keyword in node.keywords):
        return None
    if isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Dict) and not node.args:
        return _of_dict(node.func.value, node.func.attr, most)
    return _of_call(node.func.id, given_in(node), most) if isinstance(node.func, ast.Name) else None


def _of_dict(node: ast.Dict, method: str, most: int) -> Rows[ast.expr] | None:
    if method not in ("items", "keys", "values") or None in node.keys:
        return None
    pairs: dict[str, tuple[ast.expr, ast.expr]] = {}
    for key, value in zip(node.keys, node.values, strict=True):
        assert key is not None
        same = _key_text(key)
        pairs[same] = (pairs[same][0] if same in pairs else key, value)  # the first key, and the last value
    shown: list[ast.expr] = [
        key if method == "keys" else value if method == "values" else trees.tupled(key, value)
        for key, value in islice(pairs.values(), most)
    ]
    return Rows(tuple(shown), len(pairs) > most)


def _key_text(node: ast.expr) -> str:
    """A text that keys share where Python calls them equal, as far as that is plain to see."""
    try:
        return equality_key(literal_tree(node))
    except NotLiteral:
        return dump_of(node)


def _of_call(name: str, arguments: Sequence[ast.expr], most: int) -> Rows[ast.expr] | None:
    if name == "range":
        bounds = [whole(argument) for argument in arguments]
        known = [bound for bound in bounds if bound is not None]
        if not 1 <= len(known) == len(bounds) <= 3 or (len(known) == 3 and known[2] == 0):
            return None
        numbers = list(islice(range(*known), most + 1))
        return Rows(tuple(_number(number) for number in numbers[:most]), len(numbers) > most)
    if name in ("zip", "enumerate") and any(isinstance(argument, ast.Set) for argument in arguments):
        return None  # what stands first in a set is not what is written first
    first: int | None = 0
    if name == "enumerate" and len(arguments) == 2:
        first, arguments = whole(arguments[1]), arguments[:1]
    tables = [each for argument in arguments if (each := table(argument, most)) is not None]
    if not tables or len(tables) < len(arguments):
        return None
    is_cut = all(each.is_cut for each in tables)
    if name == "zip":
        rows = zip(*(each.rows for each in tables), strict=False)
        return Rows(tuple(trees.tupled(*row) for row in rows), is_cut)
    if name == "enumerate" and len(tables) == 1 and first is not None:
        pairs = enumerate(tables[0].rows, first)
        return Rows(tuple(trees.tupled(_number(place), row) for place, row in pairs), is_cut)
    if name in ("list", "tuple") and len(tables) == 1:
        return tables[0]
    return None


def whole(node: ast.expr) -> int | None:
    """A small whole number, as written."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        positive = whole(node.operand)
        return None if positive is None else -positive
    is_number = isinstance(node, ast.Constant) and type(node.value) is int and abs(node.value) < 1 << 62
    return node.value if is_number else None  # type: ignore[attr-defined]  # a Constant


def _number(value: int) -> ast.expr:
    return ast.UnaryOp(ast.USub(), ast.Constant(-value)) if value < 0 else ast.Constant(value)


ITSELF = "__itself__"
"""An attribute that stands for the exception which a call raises."""


def is_simpler(node: ast.AST) -> bool:
    """Whether `Simplified` may change what this is a part of."""
    if isinstance(node, ast.Attribute):
        return node.attr == ITSELF
    is_named = isinstance(node, ast.keyword) and node.arg is None
    return isinstance(node, ast.Subscript | ast.Starred) or is_named or is_copy(node) or bool(_subtracted(node))


def is_copy(node: ast.AST) -> bool:
    """`copy.deepcopy(x)`, `x.copy()`."""
    match node:
        case ast.Call(func=ast.Attribute(attr="copy"), args=[], keywords=[]):
            return True
        case ast.Call(func=called, args=[_], keywords=[]):
            return known_name(called) in ("copy.copy", "copy.deepcopy", "deepcopy")
    return False


def _subtracted(node: ast.AST) -> list[ast.expr]:
    """The sides of `round(abs(a - [1]), 7) == 0`, one of which is no finite number: unittest asks first whether they
    are equal, and nothing else can make such a test pass."""
    match node:
        case ast.Compare(
            left=ast.Call(
                func=ast.Name(id="round"),
                args=[ast.Call(func=ast.Name(id="abs"), args=[ast.BinOp(left=one, op=ast.Sub(), right=other)]), _],
            ),
            ops=[ast.Eq()],
        ):
            sides = [one, other]
            return sides if any(map(_is_no_finite_number, sides)) else []
    return []


def _is_no_finite_number(node: ast.expr) -> bool:
    node = node.operand if isinstance(node, ast.UnaryOp) else node
    match node:
        case ast.Call(func=ast.Name(id="float"), args=[ast.Constant(value=str(text))], keywords=[]):
            return text.lower().lstrip("+-") in ("inf", "infinity")
    return isinstance(node, ast.List | ast.Tuple | ast.Dict) or known_name(node) in ("math.inf", "numpy.inf")


class Simplified(ast.NodeTransformer):
    """Takes elements out of displays (`[1, 2][0]`, `{"a": 1}["a"]`) and displays for their copies, unpacks those with
    one or two stars among arguments, and takes its message for the `str` of an exception.

    Changes the tree it is given.
    """

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        sides = _subtracted(node)
        return ast.Compare(sides[0], [ast.Eq()], sides[1:]) if sides else node

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.generic_visit(node)
        value, index = node.value, whole(node.slice)
        if any(isinstance(item, ast.Starred) for item in getattr(value, "elts", ())):
            return node
        if isinstance(value, ast.List | ast.Tuple) and index is not None and -len(value.elts) <= index:
            return value.elts[index] if index < len(value.elts) else node
        if isinstance(value, ast.Dict) and isinstance(node.slice, ast.Constant) and type(node.slice.value) is str:
            names = [key.value if isinstance(key, ast.Constant) else None for key in value.keys]
            items = [item for name, item in zip(names, value.values, strict=True) if name == node.slice.value]
            return items[0] if len(items) == 1 and None not in names else node
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        match node:
            case ast.Call(func=ast.Name(id="str"), args=[ast.Attribute(value=raised, attr=attribute)]) if (
                attribute == ITSELF
            ):
                return ast.Call(node.func, [trees.item(raised, "message")], [])
        if is_copy(node):
            shown = node.args[0] if node.args else node.func.value  # type: ignore[attr-defined]  # an Attribute
            return shown if isinstance(shown, ast.List | ast.Dict | ast.Set | ast.Tuple | ast.Constant) else node
        if not any(map(is_simpler, (*node.args, *node.keywords))):
            return node
        arguments: list[ast.expr] = []
        for argument in node.args:
            shown = argument.value if isinstance(argument, ast.Starred) else None
            is_range = isinstance(shown, ast.Call) and isinstance(shown.func, ast.Name) and shown.func.id == "range"
            rows = table(shown) if shown is not None and is_range else None
            if isinstance(shown, ast.List | ast.Tuple):
                arguments += shown.elts
            else:
                arguments += rows.rows if rows is not None and not rows.is_cut else [argument]
        keywords = [each for keyword in node.keywords for each in _named(keyword)]
        return ast.Call(node.func, arguments, keywords)


def _named(keyword: ast.keyword) -> list[ast.keyword]:
    """What `**{"a": 1}` gives; any other keyword itself."""
    shown = keyword.value
    if keyword.arg is not None or not isinstance(shown, ast.Dict):
        return [keyword]
    names = [key.value if isinstance(key, ast.Constant) else None for key in shown.keys]
    if not all(isinstance(name, str) and name.isidentifier() for name in names):
        return [keyword]
    return [ast.keyword(str(name), value) for name, value in zip(names, shown.values, strict=True)]


def truth(condition: ast.expr) -> bool | None:
    """Whether a condition, names in place, holds; None where that takes more than literals."""
    match condition:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            held = truth(operand)
            return None if held is None else not held
        case ast.BoolOp(op=joined, values=values):
            ends = isinstance(joined, ast.Or)  # what decides by itself
            return next((each for each in map(truth, values) if each in (None, ends)), not ends)
        case ast.Call(func=ast.Name(id="isinstance"), args=[value, ast.Name(id=kind)], keywords=[]) if kind in _KINDS:
            return None if (known := _literal(value)) is None else isinstance(known[0], _KINDS[kind])
        case ast.Compare(left=left, ops=[asked], comparators=[right]) if type(asked) in _COMPARED:
            sides = _literal(left), _literal(right)
            with contextlib.suppress(TypeError):
                return None if None in sides else bool(_COMPARED[type(asked)](sides[0][0], sides[1][0]))  # type: ignore[index]
            return None
    known = _literal(condition)
    return None if known is None else bool(known[0])


def _literal(node: ast.expr) -> tuple[Any] | None:
    """What a literal stands for, in a tuple."""
    if not isinstance(node, ast.Constant | ast.List | ast.Tuple | ast.Dict | ast.Set | ast.UnaryOp):
        return None
    try:
        return (ast.literal_eval(node),)
    except (ValueError, TypeError, RecursionError, MemoryError):
        return None
