"""The strict grammar of a test: one assert's syntax tree -> data and pure expressions, or a named reason against it.

A test is `call == value`, `value == call` or `call is None|True|False`; a message is ignored. `call` is one direct call
of the entry point, which appears nowhere else; arguments and value are *pure expressions*: literals, displays,
arithmetic, comparison, slices, comprehensions, and harmless builtins, called directly (`pure_expressions.BUILTINS`).

`fidelity="paper"` (`read_released`, arXiv 2603.15611) takes any call on the left of any comparison: beside `f(x)` also
`f(*x)`, and a pure expression around one call of the entry point, `len(f(x))`. That expression is the test's *look*:
the program is asked for `f(x)` alone, and the look is evaluated on what came back, as data, where no program runs. The
rule that a test is data and pure expressions is never relaxed. `fidelity="wide"` takes relations beside equalities
(`wide/relational_tests.py`).

Does not promise that an accepted test runs, or that it is right: nothing is evaluated here.
"""

from __future__ import annotations

import ast
import unicodedata
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from codea1_env.reading.literals import NotLiteral, Tree, encode, literal_tree, tree_source
from codea1_env.reading.parsing import Unparsable, copied, parse
from codea1_env.reading.pure_expressions import (
    MAX_CODE,
    NAMES,
    NO_NAMES,
    STATED_NAMES,
    Reason,
    Rejected,
    check_code_argument,
    check_pure,
    pure_source,
    written,
)
from codea1_env.reading.test_case import TestCase
from codea1_env.reading.wide.relation import Relation

Fidelity: TypeAlias = Literal["strict", "wide", "paper"]

MAX_DEPTH = 50
"""Levels of nesting in an argument or a value that a player wrote."""
MAX_SOURCE = 1 << 16
"""Characters of one assert."""
MAX_CASE = 1 << 20
"""Characters of a stored call, and of a stored value."""
MAX_SHOWN = 2000
"""Characters of an assert that are kept for display."""
RETURNED = "__returned__"
"""What a look calls the returned value; no comprehension may bind a name of this form."""
RAISED = "raised"
"""What a test calls the exception that comes out of a call: `raised(f(-1), "ValueError")`."""
CASE_DEPTH = 100
"""Levels of nesting in a stored test: as deep as a value on the wire, for references return what nobody would write."""


@dataclass(frozen=True, slots=True)
class WrittenTest:
    """One assert of a suite, as read: a call and a stated value, both data, and how the returned value is looked at."""

    source: str
    """Text of the assert as written, cut to 2000 characters; for display."""
    reason: str
    """Empty if accepted, else the name of the `Reason`."""
    call: str | None = None
    """Canonical source of the call, names inlined: equal texts make equal calls. None if rejected."""
    stated: str | None = None
    """Canonical source of the stated value. None if rejected, or where paper fidelity knows the call alone."""
    arguments: bytes | None = None
    """Wire encoding of `[[positional, ...], [[name, value], ...]]` where every argument is a literal, else None."""
    value: bytes | None = None
    """Wire encoding of the stated value where it is a literal, else None."""
    inner: str = ""
    """Source of the call of the entry point where `call` is more than that, else empty. Not in strict fidelity."""
    look: str = ""
    """The expression around `inner`, over the name RETURNED; empty: the value is taken as it is. Pure in paper
    fidelity; in the wide reading see `wide/looking.py`."""
    or_look: str = ""
    """The same claim as a look, for where the relation is not true of the right value: it knows less of Python."""
    calls: tuple[bytes, ...] = ()
    """Where the call is several calls in one question: each by itself, on the wire."""
    beside: bytes = b""
    """Where an argument is claimed to be as it was: the call that was given it, on the wire."""
    asks: str = ""
    """Where `inner` is a question (`wide/questions.py`): the name of the program's that is evaluated with it."""
    relation: Relation | None = None
    """What the test claims of the returned value, where that is no equality: then `call` is the whole condition,
    `inner` its call, and the stated value is the tuple of the relation's constants. Wide reading only."""

    @property
    def claim(self) -> str | None:
        """The stated value, for people: what the condition of a relational test should come to."""
        return self.stated if self.relation is None else "True"

    @property
    def expression(self) -> str:
        """One pure expression for `((positional, ...), {name: value, ...}, stated value)`, to evaluate in the sandbox.

        Raises ValueError for a rejected test.
        """
        if self.call is None:
            raise ValueError(f"the test must be an accepted one, got one rejected for {self.reason}")
        if self.asks:
            return f"((__code__([{self.asks!r}, {self.inner!r}]),), {{}}, {self.stated})"
        call = single_expression(self.inner or self.call)
        assert isinstance(call, ast.Call)
        positional = "".join([f"{_evaluable(argument)}, " for argument in call.args])
        named = ", ".join(
            [f"{'**' if item.arg is None else f'{item.arg!r}: '}{_evaluable(item.value)}" for item in call.keywords]
        )
        return f"(({positional}), {{{named}}}, {self.stated})"


class Pure(NamedTuple):
    """A pure expression, or the arguments of a call of the entry point, `[[positional, ...], [[name, value], ...]]`."""

    source: str
    tree: Tree
    is_literal: bool

    @property
    def encoded(self) -> bytes | None:
        """On the wire, where it is a literal."""
        return encode(self.tree) if self.is_literal else None


def rejected(source: str, reason: Reason) -> WrittenTest:
    """The assert with this text, rejected."""
    return WrittenTest(source[:MAX_SHOWN], reason.value)


def canonical_name(entry_point: str) -> str:
    """The name as the parser writes it: look-alike characters are one name (NFKC)."""
    return entry_point if entry_point.isascii() else unicodedata.normalize("NFKC", entry_point)


def read_assert(test: ast.expr, source: str, entry_point: str) -> WrittenTest:
    """Judge the condition of one assert, remembered names inlined. `entry_point` is a `canonical_name`."""
    try:
        return _read(*_sides(test, entry_point), source, entry_point, MAX_DEPTH)
    except Rejected as error:
        return rejected(source, error.reason)


def read_released(left: ast.Call, stated: ast.expr, source: str, entry_point: str) -> WrittenTest:
    """Judge what paper fidelity takes for `left == stated`. A stated value that is not pure leaves `stated` None: the
    call counts for itself, and nothing that it returns is what was stated."""
    try:
        value = pure_expression(stated, entry_point, MAX_DEPTH, NO_NAMES)
    except Rejected:
        value = None
    try:
        return _around(left, value, source, entry_point, MAX_DEPTH)
    except Rejected as error:
        return rejected(source, error.reason)


def read_case(case: TestCase, entry_point: str, fidelity: Fidelity = "strict") -> WrittenTest:
    """A stored test (Mistake Book, golden, hidden) by the same grammar, with room for whatever a reference returns."""
    name, source = canonical_name(entry_point), str(case)
    try:
        call, expected = single_expression(case.call), single_expression(case.expected)
        if fidelity == "paper" and type(call) is ast.Call:
            return _around(call, pure_expression(expected, name, CASE_DEPTH, NO_NAMES), source, name, CASE_DEPTH)
        if not is_call(call, name):
            raise Rejected(Reason.WRAPPED_CALL if mentions(call, name) else Reason.NOT_ENTRY_POINT)
        assert isinstance(call, ast.Call)
        return _read(call, expected, source, name, CASE_DEPTH)
    except Rejected as error:
        return rejected(source, error.reason)


def single_expression(text: str) -> ast.expr:
    """The syntax tree of a text that is one expression. Raises Rejected."""
    try:
        body = parse(text, MAX_CASE).body
    except Unparsable as error:
        raise Rejected(Reason(error.args[0])) from None
    if len(body) != 1 or not isinstance(body[0], ast.Expr):
        raise Rejected(Reason.SYNTAX)
    return body[0].value


def _sides(test: ast.expr, entry_point: str) -> tuple[ast.Call, ast.expr]:
    """The side of the comparison that is the call, and the other one, the value. Raises Rejected."""
    if type(test) is not ast.Compare:
        raise Rejected(Reason.NOT_A_COMPARISON)
    if len(test.ops) != 1:
        raise Rejected(Reason.CHAINED_COMPARISON)
    left, operator, right = test.left, type(test.ops[0]), test.comparators[0]
    left_is_call, right_is_call = is_call(left, entry_point), is_call(right, entry_point)
    if left_is_call and right_is_call:
        raise Rejected(Reason.SELF_COMPARISON)
    if not left_is_call and not right_is_call:
        raise Rejected(Reason.WRAPPED_CALL if mentions(test, entry_point) else Reason.NOT_ENTRY_POINT)
    if operator is not ast.Eq:
        is_singleton = type(right) is ast.Constant and (right.value is None or type(right.value) is bool)
        if operator is not ast.Is or not is_singleton:
            raise Rejected(Reason.OPERATOR)
    call, stated = (left, right) if left_is_call else (right, left)
    assert isinstance(call, ast.Call)
    return call, stated


def is_call(node: ast.AST, entry_point: str) -> bool:
    """Whether it is a call of the entry point, also as a method of `Solution`."""
    if type(node) is not ast.Call:
        return False
    function = node.func
    if type(function) is ast.Attribute:  # of a new object of a class: `Solution().f(...)`
        made = function.value
        is_made = type(made) is ast.Call and type(made.func) is ast.Name and not (made.args or made.keywords)
        return is_made and ast.unparse(function) in (entry_point, f"Solution().{entry_point}")
    return type(function) is ast.Name and function.id == entry_point


def mentions(node: ast.AST, name: str) -> bool:
    """Whether a function's name stands in it, or a call of that entry point."""
    return any(_names_it(inner, name) for inner in ast.walk(node))


def mentioning(node: ast.AST, name: str) -> set[ast.AST]:
    """The nodes below a node, and itself, that mention a function's name."""
    nodes = list(ast.walk(node))
    found: set[ast.AST] = set()
    for inner in reversed(nodes):  # what stands in a node is walked behind it
        if _names_it(inner, name) or any(child in found for child in ast.iter_child_nodes(inner)):
            found.add(inner)
    return found


def _names_it(node: ast.AST, name: str) -> bool:
    return (type(node) is ast.Name and node.id == name) or is_call(node, name)


def _read(call: ast.Call, value: ast.expr, source: str, entry_point: str, max_depth: int) -> WrittenTest:
    """The accepted test. Raises Rejected."""
    arguments = arguments_of(call, entry_point, max_depth, stars=False)
    stated = pure_expression(value, entry_point, max_depth, STATED_NAMES)
    return WrittenTest(
        source=source[:MAX_SHOWN],
        reason="",
        call=f"{entry_point}({arguments.source})",
        stated=stated.source,
        arguments=arguments.encoded,
        value=stated.encoded,
    )


def _around(left: ast.Call, value: Pure | None, source: str, entry_point: str, max_depth: int) -> WrittenTest:
    """The accepted test of paper fidelity: `left` is, or holds, one call of the entry point. Raises Rejected."""
    text = shallow_source(left, max_depth)
    inner, look = left, ""
    if not is_call(left, entry_point):
        tree = single_expression(text)  # a copy: nodes of remembered names are shared
        inner = _only_call(tree, entry_point)
        around = copied(tree, {id(inner): ast.Name(RETURNED, ast.Load())})
        check_pure(around, entry_point, (frozenset((RETURNED,)),), max_depth, NO_NAMES)
        look = ast.unparse(around)
    arguments = arguments_of(inner, entry_point, max_depth, stars=True)
    return WrittenTest(
        source=source[:MAX_SHOWN],
        reason="",
        call=text,
        stated=value.source if value is not None else None,
        arguments=arguments.encoded,
        value=value.encoded if value is not None else b"",  # which stands for no value: nothing equals it
        inner=ast.unparse(inner) if look else "",
        look=look,
    )


def shallow_source(node: ast.expr, max_depth: int) -> str:
    """The source of an expression that does not nest deeper; each level may take two nodes. Raises Rejected."""
    level: list[ast.AST] = [node]
    for _ in range(2 * max_depth):
        level = [child for parent in level for child in ast.iter_child_nodes(parent)]
    if level:
        raise Rejected(Reason.TOO_DEEP)
    return written(node)


def _only_call(left: ast.expr, entry_point: str) -> ast.Call:
    """The one call of the entry point in an expression. Raises Rejected."""
    if mentions(left, RETURNED):
        raise Rejected(Reason.FORBIDDEN_NAME)
    calls = [node for node in ast.walk(left) if isinstance(node, ast.Call) and is_call(node, entry_point)]
    if not calls:
        raise Rejected(Reason.WRAPPED_CALL if mentions(left, entry_point) else Reason.NOT_ENTRY_POINT)
    if len(calls) > 1:
        raise Rejected(Reason.ENTRY_POINT_AGAIN)
    return calls[0]


def arguments_of(call: ast.Call, entry_point: str, max_depth: int, *, stars: bool) -> Pure:
    """The arguments of a call; `stars`: starred ones too. Raises Rejected."""
    read = _released_argument if stars else _argument
    positional = [read(argument, entry_point, max_depth) for argument in call.args]
    named: dict[str | None, Pure] = {}
    for keyword in call.keywords:
        if keyword.arg is None and (not stars or len(call.keywords) > 1):  # only the values tell if a name repeats
            raise Rejected(Reason.STARRED)
        if keyword.arg in named:
            raise Rejected(Reason.REPEATED_KEYWORD)
        named[keyword.arg] = read(keyword.value, entry_point, max_depth)
    written = [f"{name}={pure.source}" if name else f"**{pure.source}" for name, pure in named.items()]
    source = ", ".join([*(pure.source for pure in positional), *written])
    if None in named or not all(pure.is_literal for pure in (*positional, *named.values())):
        return Pure(source, None, False)
    trees: Tree = [[pure.tree for pure in positional], [[name, pure.tree] for name, pure in named.items()]]
    return Pure(source, trees, True)


def _released_argument(node: ast.expr, entry_point: str, max_depth: int) -> Pure:
    """An argument in paper fidelity, which may be starred. Raises Rejected."""
    if type(node) is not ast.Starred:
        return pure_expression(node, entry_point, max_depth, NO_NAMES)
    return Pure(f"*{pure_expression(node.value, entry_point, max_depth, NO_NAMES).source}", None, False)


def _argument(node: ast.expr, entry_point: str, max_depth: int) -> Pure:
    """An argument: a pure expression, code, or a display of literals with code in it. Raises Rejected."""
    try:
        return pure_expression(node, entry_point, max_depth)
    except Rejected as error:
        try:
            tree = literal_tree(node, max_depth, lambda part: {"e": _code_source(part, entry_point, max_depth)})
        except NotLiteral:
            raise error from None
        except Rejected as reason:
            raise (reason if type(node) is ast.Lambda else error) from None
        return Pure(tree_source(tree), tree, True)


def _code_source(node: ast.expr, entry_point: str, max_depth: int) -> str:
    """The normalised text of an argument that is code. Raises Rejected."""
    check_code_argument(node, entry_point, max_depth)
    text = shallow_source(node, max_depth)
    if len(text) > MAX_CODE:
        raise Rejected(Reason.TOO_LARGE)
    return f"({text})" if type(node) is ast.Lambda else text


def _evaluable(node: ast.expr) -> str:
    """The source of an argument that evaluates to data, where code stands for its text."""
    if type(node) is ast.Starred:
        return f"*{_evaluable(node.value)}"
    try:
        return pure_expression(node, "", CASE_DEPTH).source
    except Rejected:
        quoted = literal_tree(node, CASE_DEPTH, lambda part: {"e": f"__code__({_code_source(part, '', CASE_DEPTH)!r})"})
        return tree_source(quoted)


def pure_expression(node: ast.expr, entry_point: str, max_depth: int, names: frozenset[str] = NAMES) -> Pure:
    """A pure expression's canonical source, and its wire tree where it is a literal. Raises Rejected."""
    try:
        tree = literal_tree(node, max_depth)
        return Pure(tree_source(tree), tree, True)
    except NotLiteral:
        check_pure(node, entry_point, (), max_depth, names)
        return Pure(pure_source(node), None, False)
