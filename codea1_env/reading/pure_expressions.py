"""Which expressions are pure, and the named reasons for which an assert is no test.

Does not promise that a pure expression is cheap, or that it evaluates at all: the sandbox finds out, under its limits.
Nothing is evaluated here.
"""

from __future__ import annotations

import ast
import builtins
import re
from enum import StrEnum

from codea1_env.reading.parsing import parses
from codea1_env.sandbox.inside.scope import (
    CODE_BUILTINS,
    CODE_NAMES,
    CONSTANTS,
    GIVEN,
    LOOKED_METHODS,
    LOOKED_NAMES,
    PURE,
    SHORT,
    SINGLE,
    STATED,
    VALUE_NAMES,
)

BUILTINS = PURE
"""What a pure expression may call."""
NAMES = frozenset(f"{module}.{name}" for module, names in VALUE_NAMES.items() for name in names)
"""Dotted names of modules that it may use."""
_TYPES = "builtin types"
"""Stands among names where types, `...` and NotImplemented may stand as well: in what a test states."""
STATED_NAMES = NAMES | {_TYPES}
CODE = frozenset(f"{module}.{name}" for module, names in CODE_NAMES.items() for name in names)
"""And those that an argument which is code may."""
METHODS = frozenset(name for owner in ("str", "list", "dict", "set") for name in CODE_NAMES[owner]) - {"format"} | {
    *"date decode hex isoformat most_common quantize strftime time to_csv to_json".split()
}
"""What it may call of a value."""
LOOKED = frozenset(f"{module}.{name}" for module, names in LOOKED_NAMES.items() for name in names)
"""And those that a look at what came back may (`wide/looking.py`), with attributes and LOOKED_METHODS of values."""
MAX_CODE = 4096
"""Characters of an argument that is code: it may hold what a test writes into a file."""
_MAX_CHAIN = 400
"""Methods that are called one on another."""
NO_NAMES: frozenset[str] = frozenset()
"""Of the modules' names, in paper fidelity."""

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

    EVALUATION_ERROR = "evaluation_error"  # an argument or the value raises, or the claim of the right value
    EVALUATION_LIMIT = "evaluation_limit"  # an argument or the value takes too much time or memory
    NOT_PLAIN_DATA = "not_plain_data"  # an argument or the value is no plain data, or too large
    WITH_CHECKER = "with_checker"  # a relation, where a checker decides which values are right: it knows no relations
    UNSTABLE = "unstable"  # an argument or the value differs between two evaluations


NAMED: dict[type[ast.AST], Reason] = {
    ast.Attribute: Reason.ATTRIBUTE,
    ast.Lambda: Reason.LAMBDA,
    ast.GeneratorExp: Reason.GENERATOR,
    ast.NamedExpr: Reason.WALRUS,
    ast.JoinedStr: Reason.F_STRING,
    ast.Starred: Reason.STARRED,
}
"""Why a node of such a kind is not pure."""
_PLAIN = frozenset(
    (ast.List, ast.Tuple, ast.Set, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.IfExp, ast.Subscript, ast.Slice)
)


class Rejected(Exception):
    """The assert is no test; `reason` says why."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason)
        self.reason = reason


def written(node: ast.expr) -> str:
    """The source of an expression. Raises Rejected for what Python does not write: an int of thousands of digits, and
    before 3.12 an f-string with a backslash, or quotes of every kind, in its braces."""
    has_f_string = any(isinstance(part, ast.JoinedStr) for part in ast.walk(node))
    try:
        text = ast.unparse(node)
    except ValueError:
        raise Rejected(Reason.F_STRING if has_f_string else Reason.TOO_LARGE) from None
    if has_f_string and not parses(text):
        raise Rejected(Reason.F_STRING)
    return text


def pure_source(node: ast.expr) -> str:
    """Source that keeps its meaning as an argument and on either side of `==`. Raises Rejected."""
    text = written(node)
    binds_weakly = type(node) in (ast.Compare, ast.BoolOp, ast.IfExp)
    return f"({text})" if binds_weakly or (type(node) is ast.UnaryOp and type(node.op) is ast.Not) else text


Bound = tuple[frozenset[str], ...]


def known_name(node: ast.AST) -> str:
    """The dotted name that an expression is, as its module has it: `np.array` is `numpy.array`; empty for no name."""
    if type(node) is ast.Name:
        return SHORT.get(node.id, node.id)
    if type(node) is ast.Attribute and (owner := known_name(node.value)):
        dotted = f"{owner}.{node.attr}"
        return f"datetime.{dotted}" if owner == "datetime" and f"datetime.{dotted}" in NAMES else dotted
    return ""


def check_pure(
    node: ast.AST, entry_point: str, bound: Bound, room: int, names: frozenset[str] = NAMES, *, is_code: bool = False
) -> None:
    """Raises Rejected unless the expression is pure and at most `room` levels deep. `bound`: the names of every
    comprehension around it; `names`: of modules, that it may use. `is_code`: it is code, which may name builtins, and
    hold lambdas whose parameters are plain."""
    if room < 0:
        raise Rejected(Reason.TOO_DEEP)
    kind, is_looking = type(node), is_code and names is LOOKED
    inner = [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]
    if type(node) is ast.Constant:
        if node.value is Ellipsis and _TYPES not in names:
            raise Rejected(Reason.OTHER_EXPRESSION)
        if type(node.value) is int and node.value.bit_length() > _MAX_INT_BITS:
            raise Rejected(Reason.TOO_LARGE)
    elif type(node) is ast.Name:
        _check_name(node, entry_point, bound, names, is_code)
    elif type(node) is ast.Attribute and _is_value(known_name(node), names, is_code):
        return
    elif is_looking and isinstance(node, ast.Attribute | ast.Starred):
        if type(node) is ast.Attribute and node.attr.startswith("_"):
            raise Rejected(Reason.ATTRIBUTE)
    elif is_code and type(node) is ast.Lambda:
        own = frozenset(parameter.arg for parameter in parameters_of(node.args))
        if any(name.startswith("__") or name == entry_point for name in own):
            raise Rejected(Reason.FORBIDDEN_NAME)
        for default in (*node.args.defaults, *filter(None, node.args.kw_defaults)):
            check_pure(default, entry_point, bound, room - 1, names, is_code=True)
        bound = (*bound, own)
    elif isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp) or (is_code and type(node) is ast.GeneratorExp):
        bound = (*bound, _targets(node.generators, entry_point, 3 if is_looking else 1))
        inner = [*(part for clause in node.generators for part in (clause.iter, *clause.ifs)), *inner]
    elif type(node) is ast.Call:
        inner = _call_arguments(node, entry_point, bound, names, is_code)
        if names:  # what is called takes its items, as it takes those of a list
            inner = [ast.ListComp(each.elt, each.generators) if type(each) is ast.GeneratorExp else each
                     for each in inner]  # fmt: skip
    elif type(node) is ast.Dict or type(node) is ast.Compare:
        if type(node) is ast.Dict and None in node.keys:
            raise Rejected(Reason.STARRED)
        if type(node) is ast.Compare and not _compares_values(node, is_code):
            raise Rejected(Reason.OPERATOR)
    elif names and (kind is ast.JoinedStr or kind is ast.FormattedValue):
        is_code = False
    elif kind not in _PLAIN:
        raise Rejected(NAMED.get(kind, Reason.OTHER_EXPRESSION))
    for part in inner:
        check_pure(part, entry_point, bound, room - 1, names, is_code=is_code)


def parameters_of(given: ast.arguments) -> list[ast.arg]:
    """All that a function names, in order."""
    return [*given.posonlyargs, *given.args, *given.kwonlyargs, *filter(None, (given.vararg, given.kwarg))]


def _check_name(node: ast.Name, entry_point: str, bound: Bound, names: frozenset[str], is_code: bool) -> None:
    if _is_bound(node.id, bound):
        return
    if node.id == entry_point:
        raise Rejected(Reason.ENTRY_POINT_AGAIN)
    kind = getattr(builtins, node.id, None) if is_code else None
    is_exception = isinstance(kind, type) and issubclass(kind, Exception)
    is_of_code = is_code and (node.id in CODE_BUILTINS or known_name(node) in names or is_exception)
    if not is_of_code and not (not is_code and _TYPES in names and node.id in SINGLE):
        raise Rejected(Reason.FORBIDDEN_NAME)


def _is_bound(name: str, bound: Bound) -> bool:
    return any(name in names for names in bound)


def _call_arguments(
    node: ast.Call, entry_point: str, bound: Bound, known: frozenset[str], is_code: bool
) -> list[ast.expr]:
    """The arguments of a call of a harmless builtin or of one of the `known` names. Raises Rejected for any other."""
    dotted = known_name(node.func)
    root = dotted.partition(".")[0]
    is_method = type(node.func) is ast.Attribute and (
        node.func.attr in (LOOKED_METHODS if known is LOOKED else METHODS if is_code else _RESHAPING)
        or _is_of_text(node.func)
    )
    if type(node.func) is ast.Name and node.func.id == entry_point:
        raise Rejected(Reason.ENTRY_POINT_AGAIN)
    if (dotted in known or dotted == "datetime") and known and not _is_bound(root, bound) and root != entry_point:
        pass
    elif is_method and known:
        owner = node.func.value  # type: ignore[attr-defined]  # of an Attribute
        check_pure(owner, entry_point, bound, _MAX_CHAIN, known, is_code=is_code)
    elif type(node.func) is not ast.Name:
        raise Rejected(NAMED.get(type(node.func), Reason.FORBIDDEN_CALL))
    elif node.func.id not in (CODE_BUILTINS if is_code else STATED if known else BUILTINS) or _is_bound(
        node.func.id, bound
    ):
        raise Rejected(Reason.FORBIDDEN_CALL)
    if dotted == "collections.defaultdict" and node.args and known_name(node.args[0]) in PURE:
        return given_in(node)[1:]
    arguments = plain_arguments(node)
    if dotted.startswith(("numpy.", "pandas.")) or (is_method and node.func.attr == "astype"):  # type: ignore[attr-defined]
        return [each for each in arguments if _is_bound(name := known_name(each), bound) or name not in _OF_ITEMS]
    return arguments


def given_in(call: ast.Call) -> list[ast.expr]:
    """What a call is given, by place and then by name."""
    return [*call.args, *(keyword.value for keyword in call.keywords)]


def plain_arguments(call: ast.Call) -> list[ast.expr]:
    """Likewise. Raises Rejected for `**x` and for a name that comes twice."""
    names = [keyword.arg for keyword in call.keywords]
    if None in names:
        raise Rejected(Reason.STARRED)
    if len(set(names)) < len(names):
        raise Rejected(Reason.REPEATED_KEYWORD)
    return given_in(call)


def _targets(generators: list[ast.comprehension], entry_point: str, levels: int = 1) -> frozenset[str]:
    """The names that a comprehension binds: plain ones, or tuples of such on so many levels, that hide nothing."""
    names = set()
    left = [(clause.target, levels) for clause in generators]
    if any(clause.is_async for clause in generators):
        raise Rejected(Reason.COMPREHENSION)
    for target, room in left:
        if type(target) is ast.Tuple and room:
            left += [(each, room - 1) for each in target.elts]
        elif type(target) is not ast.Name:
            raise Rejected(Reason.COMPREHENSION)
        elif target.id in BUILTINS or target.id == entry_point or target.id.startswith("__"):
            raise Rejected(Reason.FORBIDDEN_NAME)
        else:
            names.add(target.id)
    return frozenset(names)


def _is_of_text(method: ast.Attribute) -> bool:
    """A method of a text that stands there; what `format` puts in is whole arguments."""
    text = method.value.value if type(method.value) is ast.Constant else None
    if type(text) is not str or method.attr not in _OF_TEXT:
        return False
    return method.attr != "format" or not re.search(r"\{[^{}:]*[.\[]", text)


_OF_TEXT = CODE_NAMES["str"]
_OF_ITEMS = frozenset("bool complex float int object str".split())
"""Types of Python that an array's items may have by name."""
_RESHAPING = frozenset(("reshape", "astype"))
"""Methods of numpy's arrays in a pure expression."""


def _is_value(dotted: str, names: frozenset[str], is_code: bool) -> bool:
    """Whether a name stands for a value, or for a type of numpy's items; in code, any may."""
    is_type = dotted.startswith("numpy.") and dotted[-1].isdigit()
    return dotted in names and (dotted in CONSTANTS or is_type or is_code or names is CODE)


def check_code_argument(node: ast.AST, entry_point: str, room: int) -> None:
    """Raises Rejected unless an argument is code: a function or a type by name, a lambda, a generator, a call, or
    what decides between these."""
    if type(node) not in (ast.Call, ast.Lambda, ast.Name, ast.Attribute, ast.GeneratorExp, ast.BoolOp):
        raise Rejected(NAMED.get(type(node), Reason.FORBIDDEN_CALL))
    if type(node) is not ast.Name or node.id not in GIVEN or node.id == entry_point:
        check_code(node, entry_point, (), room)


def check_code(node: ast.AST, entry_point: str, bound: Bound, room: int, names: frozenset[str] = CODE) -> None:
    """Likewise, of what stands in code."""
    check_pure(node, entry_point, bound, room, names, is_code=True)


def _compares_values(node: ast.Compare, is_code: bool) -> bool:
    """Identity is no property of data; in code it is asked of None, True and False."""
    return all(
        type(operator) not in (ast.Is, ast.IsNot) or (is_code and type(getattr(side, "value", 0)) in (bool, type(None)))
        for operator, side in zip(node.ops, node.comparators, strict=True)
    )
