"""What tests claim that are no plain asserts, as conditions: unittest's assertion methods, and expected exceptions.

    self.assertEqual(f(1), 2)                             f(1) == 2
    with pytest.raises(ValueError, match="low"): f(-1)    raised(f(-1), "ValueError")["raises"] == "ValueError" and
                                                              "low" in raised(f(-1), "ValueError")["message"]
    self.assertRaises(KeyError, f, {})                    raised(f({}), "KeyError")["raises"] == "KeyError"
    try: f(0)                                             raised(f(0), "ValueError")["raises"] == "ValueError"
    except ValueError: pass
    else: assert False

A type and a text in its message are one test. `raised` has a value only where an exception of one of these classes, or
of one derived from it, comes out of the call: the name of the first that it belongs to, and its text. Rejected by name
are patterns that are more than their text, several statements under one `with`, and types that are no names, dotted or
not.

Plain syntax trees in and out. Does not know which calls stand in a test, and does not judge the conditions.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from codea1_env.reading.grammar import RAISED
from codea1_env.reading.parsing import names_in
from codea1_env.reading.pure_expressions import Reason, Rejected, known_name
from codea1_env.reading.wide import trees
from codea1_env.reading.wide.displays import ITSELF

COUNT_EQUAL = "assertCountEqual"
"""The same items in any order, whether they can be sorted or not: a claim of its own, for Python has no word for it."""
_PLACES = 7
"""Decimal places of `assertAlmostEqual`, as in unittest."""


def _compare(operator: ast.cmpop) -> Callable[[Sequence[ast.expr]], ast.expr]:
    return lambda sides: ast.Compare(sides[0], [operator], [sides[1]])


def _negated(node: ast.expr) -> ast.expr:
    return ast.UnaryOp(ast.Not(), node)


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
    COUNT_EQUAL: lambda sides: trees.call(COUNT_EQUAL, *sides[:2]),
    "assertIsInstance": lambda sides: trees.call("isinstance", *sides[:2]),
    "assertNotIsInstance": lambda sides: _negated(trees.call("isinstance", *sides[:2])),
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
    difference = trees.call("abs", ast.BinOp(sides[0], ast.Sub(), sides[1]))
    if "delta" in named:
        return ast.Compare(difference, [ast.LtE()], [named["delta"]])
    places = sides[2] if len(sides) > 2 else named.get("places") or ast.Constant(_PLACES)
    return ast.Compare(trees.call("round", difference, places), [ast.Eq()], [ast.Constant(0)])


RAISING = frozenset(("assertRaises", "assertRaisesRegex", "raises"))
"""Functions, of unittest and of pytest, that say which exception must be raised."""
_CATCHING_FAILURES = {"AssertionError", "Exception", "BaseException"}
_SPECIAL = re.compile(r"[.^$*+?{}\[\]|()]|\\[a-zA-Z0-9]")
_ESCAPED = re.compile(r"\\(.)")


def raising_condition(expects: ast.Call, name: str, body: Sequence[ast.stmt] | None) -> ast.expr:
    """What such a test claims. `name`: of RAISING; `body`: what stands under the `with`, if any. Raises Rejected."""
    given = list(expects.args)
    named = {keyword.arg: keyword.value for keyword in expects.keywords}
    types = given.pop(0) if given else named.pop("expected_exception", None)
    pattern = given.pop(0) if name == "assertRaisesRegex" and given else None
    if types is None:
        raise Rejected(Reason.EXPECTS_EXCEPTION)
    if body is None:
        called = _called(given, expects.keywords)
    else:
        pattern = pattern or named.pop("match", None)
        if len(body) != 1 or not isinstance(body[0], ast.Expr | ast.Assign) or given or set(named) - {"msg"}:
            raise Rejected(Reason.EXPECTS_EXCEPTION)
        called = body[0].value
    # What an exception says of its class: `JSONDecodeError`, of `json.JSONDecodeError` too.
    kinds = types.elts if isinstance(types, ast.Tuple) else [types]
    names = list(dict.fromkeys(known_name(kind).rpartition(".")[2] for kind in kinds))
    if "" in names:
        raise Rejected(Reason.EXPECTS_EXCEPTION)
    call = trees.call(RAISED, called, *map(ast.Constant, names))
    right: ast.expr = ast.Constant(names[0]) if len(names) == 1 else trees.listed(map(ast.Constant, names))
    is_type = ast.Compare(trees.item(call, "raises"), [ast.Eq() if len(names) == 1 else ast.In()], [right])
    if pattern is None:
        return is_type
    try:
        text = _text(pattern)
    except Rejected:
        if not isinstance(pattern, ast.Constant) or not isinstance(pattern.value, str):
            raise
        found = trees.call("bool", trees.call("re.search", pattern, trees.item(call, "message")))
        said = trees.tupled(trees.item(call, "raises"), found)
        rights = [trees.tupled(ast.Constant(each), ast.Constant(True)) for each in names]
        return ast.Compare(said, [ast.In()], [trees.listed(rights)])
    says = ast.Compare(ast.Constant(text), [ast.In()], [trees.item(call, "message")])
    return ast.BoolOp(ast.And(), [is_type, says])


class TryStatement(NamedTuple):
    """A `try` that fails where nothing is raised."""

    expects: ast.Call
    """As `pytest.raises` would say it."""
    body: list[ast.stmt]
    """The call that must raise."""
    name: str
    """What the exception is called behind that; empty for nothing."""
    then: list[ast.stmt]
    """What is claimed of it."""


def tried(statement: ast.stmt) -> TryStatement | None:
    """None for any other statement, also a `try` that passes where nothing is raised."""
    if not isinstance(statement, ast.Try) or len(statement.handlers) != 1 or statement.finalbody:
        return None
    handler, body = statement.handlers[0], statement.body
    if handler.type is None or len(body) + len(statement.orelse) != 2:
        return None
    caught = {*names_in(handler.type)}
    fails_inside = len(body) == 2
    if not _fails(body[1] if fails_inside else statement.orelse[0]) or (fails_inside and caught & _CATCHING_FAILURES):
        return None
    then = [each for each in handler.body if not isinstance(each, ast.Pass) and not _is_true(each)]
    return TryStatement(trees.call("raises", handler.type), body[:1], handler.name or "", then)


def _fails(statement: ast.stmt) -> bool:
    """`assert False`, `raise AssertionError(...)`, `pytest.fail(...)`, `self.fail(...)`."""
    if isinstance(statement, ast.Assert):
        return isinstance(statement.test, ast.Constant) and not statement.test.value
    raised = statement.exc if isinstance(statement, ast.Raise) else None
    made = raised.func if isinstance(raised, ast.Call) else raised
    if isinstance(made, ast.Name):
        return made.id == "AssertionError"
    called = statement.value.func if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call) else None
    return known_name(called) in ("pytest.fail", "self.fail") if called is not None else False


def _is_true(statement: ast.stmt) -> bool:
    """`assert True`."""
    return isinstance(statement, ast.Assert) and isinstance(statement.test, ast.Constant) and bool(statement.test.value)


class Said(NamedTuple):
    """What is known of an exception that was expected."""

    kind: ast.expr
    """The condition that it is of its type."""
    itself: ast.expr
    """What stands for it, of which nothing is known but what `str` makes of it (`displays.Simplified`)."""


def said_of(condition: ast.expr) -> Said:
    """Of a condition of this module, names in place or not."""
    kind = condition.values[0] if isinstance(condition, ast.BoolOp) else condition
    match kind:
        case ast.Compare(left=ast.Tuple(elts=[is_of, _]), comparators=[ast.List(elts=rows)]):  # with a pattern
            types = [row.elts[0] for row in rows if isinstance(row, ast.Tuple)]
            kind = ast.Compare(is_of, [ast.In()], [trees.listed(types)])
    return Said(kind, ast.Attribute(kind.left.value, ITSELF, ast.Load()))  # type: ignore[attr-defined]  # as it is made here


def _called(given: Sequence[ast.expr], keywords: list[ast.keyword]) -> ast.expr:
    """The call of `assertRaises(E, f, 1)` or of `assertRaises(E, lambda: f(1))`."""
    if not given:
        raise Rejected(Reason.EXPECTS_EXCEPTION)
    function, *arguments = given
    if isinstance(function, ast.Lambda) and not arguments and not keywords:
        return function.body
    return ast.Call(function, arguments, keywords)


def _text(pattern: ast.expr) -> str:
    """What a regular expression finds that is a plain text, its escapes taken away."""
    match pattern:
        case ast.Call(func=called, args=[ast.Constant(value=str(plain))]) if known_name(called) == "re.escape":
            return plain
    text = pattern.value if isinstance(pattern, ast.Constant) else None
    if not isinstance(text, str) or _SPECIAL.search(re.sub(r"\\[^a-zA-Z0-9]", "", text)) or text.endswith("\\"):
        raise Rejected(Reason.EXPECTS_EXCEPTION)
    return _ESCAPED.sub(r"\1", text)
