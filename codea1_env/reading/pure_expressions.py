"""Which expressions are pure, and the named reasons for which an assert is no test.

Does not promise that a pure expression is cheap, or that it evaluates at all: the sandbox finds out, under its limits.
Nothing is evaluated here.
"""

from __future__ import annotations

import ast
from enum import StrEnum

_BUILTIN_NAMES = """
    sorted range list tuple set frozenset dict str int float bool bytes complex abs min max sum len round ord chr zip
    enumerate reversed
"""
BUILTINS = frozenset(_BUILTIN_NAMES.split())
"""What a pure expression may call."""

# Beyond it Python may refuse to write an int in decimal, as `ast.unparse` does.
_MAX_INT_BITS = 2048


class Reason(StrEnum):
    """Why an assert is no test. The first group is given here, the second by who evaluates pure expressions."""

    SYNTAX = "syntax"  # does not parse
    TOO_LONG = "too_long"  # more than MAX_SOURCE characters
    TOO_DEEP = "too_deep"  # nests deeper than MAX_DEPTH, or than the parser goes
    TOO_LARGE = "too_large"  # remembered names make it too large, or an int in an expression is huge
    SEVERAL_STATEMENTS = "several_statements"  # shares its line with another statement
    NOT_A_COMPARISON = "not_a_comparison"  # `assert True`, `assert f(1)`, `... or True`, `not ...`
    CHAINED_COMPARISON = "chained_comparison"  # `f(1) == 1 == 1`
    OPERATOR = "operator"  # a comparison by another operator than `==`, or `is` with no None, True or False
    NOT_ENTRY_POINT = "not_entry_point"  # calls something else, or nothing
    WRAPPED_CALL = "wrapped_call"  # `len(f(1)) == 2`, `f(1)[0] == 2`
    SELF_COMPARISON = "self_comparison"  # `f(1) == f(1)`
    CALL_NOT_LEFT = "call_not_left"  # paper fidelity: no call stands left of a comparison, as in `2 == f(1)`
    ENTRY_POINT_AGAIN = "entry_point_again"  # `f(f(1)) == 1`
    SEVERAL_CALLS = "several_calls"  # wide reading: `f(1) == f(2)`, two different calls in one relation
    EXPECTS_EXCEPTION = "expects_exception"  # wide reading: `pytest.raises(ValueError)`, `assertRaises`
    REPEATED_KEYWORD = "repeated_keyword"  # `f(a=1, a=2) == 1`
    STARRED = "starred"  # `f(*x)`, `f(**x)`, `[*x]`, `{**x}`
    FORBIDDEN_NAME = "forbidden_name"  # a name that is no remembered one, no comprehension's, no called builtin
    FORBIDDEN_CALL = "forbidden_call"  # calls what is not among BUILTINS
    ATTRIBUTE = "attribute"  # `x.y`
    LAMBDA = "lambda"
    GENERATOR = "generator"  # `(x for x in y)`
    COMPREHENSION = "comprehension"  # an asynchronous one, or one whose targets are no plain names
    WALRUS = "walrus"  # `x := y`
    F_STRING = "f_string"
    OTHER_EXPRESSION = "other_expression"  # `...`, await, yield

    EVALUATION_ERROR = "evaluation_error"  # an argument or the value raises
    EVALUATION_LIMIT = "evaluation_limit"  # an argument or the value takes too much time or memory
    NOT_PLAIN_DATA = "not_plain_data"  # an argument or the value is no plain data, or too large
    WITH_CHECKER = "with_checker"  # a relation, where a checker decides which values are right: it knows no relations
    UNSTABLE = "unstable"  # an argument or the value differs between two evaluations


_NAMED: dict[type[ast.AST], Reason] = {
    ast.Attribute: Reason.ATTRIBUTE,
    ast.Lambda: Reason.LAMBDA,
    ast.GeneratorExp: Reason.GENERATOR,
    ast.NamedExpr: Reason.WALRUS,
    ast.JoinedStr: Reason.F_STRING,
    ast.Starred: Reason.STARRED,
}
_PLAIN = frozenset(
    (ast.List, ast.Tuple, ast.Set, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.IfExp, ast.Subscript, ast.Slice)
)


class Rejected(Exception):
    """The assert is no test; `reason` says why."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason)
        self.reason = reason


def pure_source(node: ast.expr) -> str:
    """Source that keeps its meaning as an argument and on either side of `==`."""
    text = ast.unparse(node)
    binds_weakly = type(node) in (ast.Compare, ast.BoolOp, ast.IfExp)
    return f"({text})" if binds_weakly or (type(node) is ast.UnaryOp and type(node.op) is ast.Not) else text


Bound = tuple[frozenset[str], ...]


def check_pure(node: ast.AST, entry_point: str, bound: Bound, room: int) -> None:
    """Raises Rejected unless the expression is pure and at most `room` levels deep. `bound`: the names of every
    comprehension around it."""
    kind = type(node)
    if room < 0:
        raise Rejected(Reason.TOO_DEEP)
    if type(node) is ast.Constant:
        if node.value is Ellipsis:
            raise Rejected(Reason.OTHER_EXPRESSION)
        if type(node.value) is int and node.value.bit_length() > _MAX_INT_BITS:
            raise Rejected(Reason.TOO_LARGE)
        return
    if type(node) is ast.Name:
        if not _is_bound(node.id, bound):
            raise Rejected(Reason.ENTRY_POINT_AGAIN if node.id == entry_point else Reason.FORBIDDEN_NAME)
        return
    if type(node) is ast.Call:
        inner = _call_arguments(node, entry_point, bound)
    elif type(node) is ast.ListComp or type(node) is ast.SetComp or type(node) is ast.DictComp:
        bound = (*bound, _targets(node.generators, entry_point))
        inner = [part for clause in node.generators for part in (clause.iter, *clause.ifs)]
        inner += [node.key, node.value] if type(node) is ast.DictComp else [node.elt]  # type: ignore[union-attr]
    elif type(node) is ast.Dict:
        if None in node.keys:
            raise Rejected(Reason.STARRED)
        inner = [*node.keys, *node.values]  # type: ignore[list-item]  # no None: just checked
    elif type(node) is ast.Compare:
        if any(type(operator) is ast.Is or type(operator) is ast.IsNot for operator in node.ops):
            raise Rejected(Reason.OPERATOR)  # identity is no property of data
        inner = [node.left, *node.comparators]
    elif kind in _PLAIN:
        inner = [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]
    else:
        raise Rejected(_NAMED.get(kind, Reason.OTHER_EXPRESSION))
    for part in inner:
        check_pure(part, entry_point, bound, room - 1)


def _is_bound(name: str, bound: Bound) -> bool:
    return any(name in names for names in bound)


def _call_arguments(node: ast.Call, entry_point: str, bound: Bound) -> list[ast.expr]:
    """The arguments of a call of a harmless builtin. Raises Rejected for any other call."""
    if type(node.func) is not ast.Name:
        raise Rejected(_NAMED.get(type(node.func), Reason.FORBIDDEN_CALL))
    name = node.func.id
    if name == entry_point:
        raise Rejected(Reason.ENTRY_POINT_AGAIN)
    if name not in BUILTINS or _is_bound(name, bound):
        raise Rejected(Reason.FORBIDDEN_CALL)
    names = [keyword.arg for keyword in node.keywords]
    if None in names:
        raise Rejected(Reason.STARRED)
    if len(set(names)) < len(names):
        raise Rejected(Reason.REPEATED_KEYWORD)
    return [*node.args, *[keyword.value for keyword in node.keywords]]


def _targets(generators: list[ast.comprehension], entry_point: str) -> frozenset[str]:
    """The names that a comprehension binds: plain ones, or tuples of plain ones, that hide nothing."""
    names = set()
    for clause in generators:
        targets = clause.target.elts if type(clause.target) is ast.Tuple else [clause.target]
        for target in targets:
            if clause.is_async or type(target) is not ast.Name:
                raise Rejected(Reason.COMPREHENSION)
            if target.id in BUILTINS or target.id == entry_point or target.id.startswith("__"):
                raise Rejected(Reason.FORBIDDEN_NAME)
            names.add(target.id)
    return frozenset(names)
