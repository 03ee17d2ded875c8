"""A condition about one call -> a relational test: the call's arguments, constants and a `Relation`, or a reason.

    call         one call of the entry point, with literal or pure arguments as everywhere; it may stand several times
    constant     whatever does not hold the call: a pure expression, evaluated in the sandbox as stated values are
    relation     how the returned value and the constants are compared

The text of the test, as stored and shown, is the condition itself with the value True, so that a stored test is read
back by the same rules (`read_relational_case`). Calls whose arguments would depend on what another call returned are
refused: what runs is decided from texts. Nothing is evaluated here.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from codea1_env.reading import grammar
from codea1_env.reading.grammar import WrittenTest, canonical_name, read_assert, rejected
from codea1_env.reading.literals import encode
from codea1_env.reading.parsing import Unparsable
from codea1_env.reading.pure_expressions import Reason, Rejected, pure_source
from codea1_env.reading.test_case import TestCase
from codea1_env.reading.wide.relation import (
    FUNCTIONS,
    MAX_TERMS,
    METHODS,
    RETURNED_VALUE,
    TYPES,
    Relation,
)

CLAIMED = "True"
"""What a relational test states about its condition."""

_COMPARE: Mapping[type[ast.cmpop], str] = {
    ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.In: "in",
    ast.NotIn: "notin", ast.Is: "is", ast.IsNot: "isnot",
}  # fmt: skip
_BINARY: Mapping[type[ast.operator], str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.FloorDiv: "floordiv", ast.Mod: "mod",
}  # fmt: skip
APPROX = {"rel": "1e-06", "abs": "1e-12"}
"""pytest's defaults, and math's."""
ISCLOSE = {"rel_tol": "1e-09", "abs_tol": "0.0"}
_ITERATING = frozenset("sorted list tuple set frozenset sum min max any all".split())
"""Functions that go through whatever they are given."""
_OUTSIDE: Mapping[type[ast.AST], Reason] = {
    ast.Attribute: Reason.ATTRIBUTE,
    ast.Lambda: Reason.LAMBDA,
    ast.GeneratorExp: Reason.GENERATOR,
    ast.ListComp: Reason.COMPREHENSION,
    ast.SetComp: Reason.COMPREHENSION,
    ast.DictComp: Reason.COMPREHENSION,
    ast.NamedExpr: Reason.WALRUS,
    ast.JoinedStr: Reason.F_STRING,
    ast.Starred: Reason.STARRED,
    ast.IfExp: Reason.NOT_A_COMPARISON,
    ast.Tuple: Reason.NOT_A_COMPARISON,  # `assert (f(1) == 1, "message")` is always true
    ast.BinOp: Reason.OPERATOR,
    ast.UnaryOp: Reason.OPERATOR,
}


def read_condition(condition: ast.expr, source: str, entry_point: str) -> WrittenTest:
    """Judge the condition of one assert: an equality by the strict grammar, else a relation. Remembered names are
    inlined, and `entry_point` is a `canonical_name`."""
    test = read_assert(condition, source, entry_point)
    if not test.reason:
        return test
    try:
        return _relational(condition, source, entry_point, grammar.MAX_DEPTH)
    except Rejected as error:
        return rejected(source, error.reason)


def read_relational_case(case: TestCase, entry_point: str) -> WrittenTest:
    """A stored test, relational or an equality, with room for whatever a reference returns."""
    test = grammar.read_case(case, entry_point)
    if not test.reason or case.expected != CLAIMED:
        return test
    try:
        condition = grammar.single_expression(case.call)
        return _relational(condition, str(case), canonical_name(entry_point), grammar.CASE_DEPTH)
    except Unparsable as error:
        return rejected(str(case), Reason(error.args[0]))
    except Rejected as error:
        return rejected(str(case), error.reason)


def _relational(condition: ast.expr, source: str, entry_point: str, max_depth: int) -> WrittenTest:
    """The accepted test. Raises Rejected."""
    if not grammar.mentions(condition, entry_point):
        raise Rejected(Reason.NOT_ENTRY_POINT)
    text = grammar.shallow_source(condition, 2 * max_depth)
    reader = _Terms(condition, entry_point, max_depth)
    relation = reader.of(condition, max_depth)
    if reader.call is None or not all(map(_takes_its_parts, relation.walk())):
        raise Rejected(Reason.WRAPPED_CALL)
    if not relation.is_truth:
        relation, text = Relation("bool", (relation,)), f"bool({text})"
    else:
        text = pure_source(condition)  # in brackets where it binds weaker than the `==` of a stored test
    return WrittenTest(
        source=source[: grammar.MAX_SHOWN],
        reason="",
        call=text,
        stated=f"({''.join(f'{constant.source}, ' for constant in reader.constants)})",
        arguments=reader.call.encoded,
        value=encode({"t": [constant.tree for constant in reader.constants]})
        if all(constant.is_literal for constant in reader.constants)
        else None,
        inner=f"{entry_point}({reader.call.source})",
        relation=relation,
    )


class _Terms:
    """Makes the terms of one relation, and keeps its call and its constants."""

    def __init__(self, condition: ast.expr, entry_point: str, max_depth: int) -> None:
        self._entry_point = entry_point
        self._mentioning = grammar.mentioning(condition, entry_point)
        self._max_depth = max_depth
        self._left = MAX_TERMS
        self.call: grammar.Arguments | None = None
        self.constants: list[grammar.Pure] = []

    def of(self, node: ast.expr, room: int) -> Relation:
        """The term of an expression. Raises Rejected."""
        self._left -= 1
        if self._left < 0:
            raise Rejected(Reason.TOO_LARGE)
        if room <= 0:
            raise Rejected(Reason.TOO_DEEP)
        if node not in self._mentioning:
            return self._constant(node)
        if type(node) is ast.Call:
            return self._called(node, room - 1)
        if type(node) is ast.Compare:
            return self._compared(node, room - 1)
        if type(node) is ast.BoolOp:
            name = "and" if type(node.op) is ast.And else "or"
            return Relation(name, tuple(self.of(value, room - 1) for value in node.values))
        if type(node) is ast.UnaryOp and type(node.op) is ast.Not:
            return Relation("not", (self.of(node.operand, room - 1),))
        if type(node) is ast.UnaryOp and type(node.op) is ast.USub:
            return Relation("neg", (self.of(node.operand, room - 1),))
        if type(node) is ast.BinOp and type(node.op) in _BINARY:
            return Relation(_BINARY[type(node.op)], (self.of(node.left, room - 1), self.of(node.right, room - 1)))
        if type(node) is ast.Subscript:
            return self._subscript(node, room - 1)
        raise Rejected(_OUTSIDE.get(type(node), Reason.WRAPPED_CALL))

    def _constant(self, node: ast.expr) -> Relation:
        pure = grammar.pure_expression(node, self._entry_point, self._max_depth)
        if pure not in self.constants:
            self.constants.append(pure)
        return Relation("constant", place=self.constants.index(pure))

    def _text(self, text: str) -> Relation:
        return self._constant(grammar.single_expression(text))

    def _called(self, node: ast.Call, room: int) -> Relation:
        function, names = node.func, [keyword.arg for keyword in node.keywords]
        if grammar.is_call(node, self._entry_point):
            arguments = grammar.arguments_of(node, self._entry_point, self._max_depth, stars=False)
            if self.call is not None and self.call.source != arguments.source:
                raise Rejected(Reason.SEVERAL_CALLS)
            self.call = arguments
            return RETURNED_VALUE
        name = called_name(function)
        if name == "isclose" and len(node.args) == 2:
            given = tolerances(node.keywords, [], ISCLOSE)
            first, second = (self.of(argument, room) for argument in node.args)
            return Relation("isclose", (first, second, *(self.of(value, room) for value in given)))
        if isinstance(function, ast.Attribute):
            if METHODS.get(function.attr) != len(node.args) or node.keywords:
                raise Rejected(Reason.ATTRIBUTE)
            return Relation(function.attr, tuple(self.of(part, room) for part in (function.value, *node.args)))
        if name == "isinstance" and len(node.args) == 2 and not node.keywords:
            return Relation("isinstance", (self.of(node.args[0], room), self._types(node.args[1])))
        if name == "sorted" and names == ["reverse"] and len(node.args) == 1:
            value = node.keywords[0].value
            if type(value) is not ast.Constant or type(value.value) is not bool:
                raise Rejected(Reason.FORBIDDEN_CALL)
            inner = Relation("sorted", (self.of(node.args[0], room),))
            return Relation("list", (Relation("reversed", (inner,)),)) if value.value else inner
        digits = name == "round" and len(node.args) == 2
        if name not in FUNCTIONS or node.keywords or (len(node.args) != 1 and not digits):
            raise Rejected(Reason.FORBIDDEN_CALL if isinstance(function, ast.Name) else Reason.WRAPPED_CALL)
        return Relation(name, tuple(self.of(argument, room) for argument in node.args))

    def _compared(self, node: ast.Compare, room: int) -> Relation:
        sides = [node.left, *node.comparators]
        pairs = [
            self._pair(_COMPARE[type(operator)], sides[place], sides[place + 1], room)
            for place, operator in enumerate(node.ops)
        ]
        return pairs[0] if len(pairs) == 1 else Relation("and", tuple(pairs))

    def _pair(self, name: str, left: ast.expr, right: ast.expr, room: int) -> Relation:
        asks_type = isinstance(left, ast.Call) and called_name(left.func) == "type" and len(left.args) == 1
        if asks_type and name in ("eq", "is"):
            return Relation("hastype", (self.of(left.args[0], room), self._types(right)))  # type: ignore[attr-defined]
        for one, other in ((left, right), (right, left)):
            if isinstance(other, ast.Call) and called_name(other.func) == "approx" and name in ("eq", "ne"):
                near = self._approximately(one, other, room)
                return near if name == "eq" else Relation("not", (near,))
        if name in ("is", "isnot") and type(getattr(right, "value", 0)) not in (bool, type(None)):
            raise Rejected(Reason.OPERATOR)  # identity is no property of data
        sides = [self.of(left, room), self.of(right, room)]
        if name not in ("in", "notin"):
            sides = [Relation("set", (side,)) if side.operator in ("keys", "items") else side for side in sides]
        return Relation(name, tuple(sides))

    def _approximately(self, value: ast.expr, approx: ast.Call, room: int) -> Relation:
        """`value == pytest.approx(expected, rel, abs)`: numbers, or containers of them, element by element."""
        if not approx.args:
            raise Rejected(Reason.FORBIDDEN_CALL)
        given = tolerances(approx.keywords, approx.args[1:], APPROX)
        return Relation("isclose", tuple(self.of(part, room) for part in (value, approx.args[0], *given)))

    def _subscript(self, node: ast.Subscript, room: int) -> Relation:
        value = self.of(node.value, room)
        if isinstance(node.slice, ast.Slice):
            parts = (node.slice.lower, node.slice.upper, node.slice.step)
            bounds = [self._text("None") if part is None else self.of(part, room) for part in parts]
            return Relation("slice", (value, *bounds))
        return Relation("item", (value, self.of(node.slice, room)))

    def _types(self, node: ast.expr) -> Relation:
        """The constant for one type or a tuple of types: the list of their names. Raises Rejected."""
        named = node.elts if isinstance(node, ast.Tuple) else [node]
        names = []
        for each in named:
            is_none = isinstance(each, ast.Call) and ast.unparse(each) == "type(None)"
            name = "NoneType" if is_none else each.id if isinstance(each, ast.Name) else ""
            if name not in TYPES:
                raise Rejected(Reason.FORBIDDEN_NAME)
            names.append(name)
        return self._text(repr(names))


def _takes_its_parts(term: Relation) -> bool:
    """Whether Python takes the views of dicts and the iterators among a term's parts as we do, as lists. Elsewhere they
    have no items to be asked for and equal nothing, or each other as sets do."""
    for place, part in enumerate(term.parts):
        is_view, is_iterator = part.operator in ("keys", "values", "items"), part.operator == "reversed"
        is_asked = term.operator in ("in", "notin") and place == 1
        if (is_view or is_iterator) and not (term.operator in _ITERATING or is_asked):
            return is_view and term.operator in ("len", "bool", "not")
    return True


def called_name(function: ast.expr) -> str:
    """The name that is called: of `abs`, or of one of math's, pytest's or numpy's functions; else empty."""
    if isinstance(function, ast.Name):
        return function.id
    if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
        is_module = (function.value.id, function.attr) in (("math", "isclose"), ("pytest", "approx"))
        return function.attr if is_module else ""
    return ""


def tolerances(
    keywords: Sequence[ast.keyword], positional: Sequence[ast.expr], defaults: Mapping[str, str]
) -> list[ast.expr]:
    """The relative and the absolute tolerance. Raises Rejected for an argument that is neither."""
    arguments = dict(zip(defaults, positional, strict=False)) | {str(each.arg): each.value for each in keywords}
    if len(positional) > len(defaults) or set(arguments) - set(defaults):
        raise Rejected(Reason.FORBIDDEN_CALL)
    if "abs" in arguments:  # in pytest, an absolute tolerance alone leaves no relative one
        defaults = {**defaults, "rel": "0.0"}
    return [arguments.get(name) or grammar.single_expression(text) for name, text in defaults.items()]
