"""Remembered names of a suite: `name = expression` is put in the place of `name` in later asserts.

Expressions are not judged here. Does not promise that a test is small: it promises that inlining makes no assert, and
no suite, larger than a fixed size, whatever the names double.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from codea1_env.reading.grammar import MAX_DEPTH, MAX_SOURCE
from codea1_env.reading.pure_expressions import Reason, Rejected

MAX_INLINED = 1 << 19
"""Size of all that is inlined in one suite; an expression's size is near its length in characters."""
MAX_READ = 1 << 20
"""Nodes of one suite that are gone through for its names, those of a loop once for each row: more than a suite
of common Python has that repeats nothing."""

CHANGING = frozenset(
    "add append appendleft clear difference_update discard extend extendleft insert intersection_update pop popitem "
    "popleft remove reverse rotate setdefault sort symmetric_difference_update update".split()
)
"""Methods that change their list, dict, set or deque."""

_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp)
# Rejected whatever they hold, and with scopes of their own.
_LEFT_ALONE = (ast.Lambda, ast.GeneratorExp)
# No expression holds more levels than brackets and operators may nest in what the grammar accepts, plus the comparison.
_MAX_LEVELS = MAX_DEPTH + 4


@dataclass(frozen=True, slots=True)
class _Remembered:
    node: ast.expr
    """All names in it inlined already. Shared, never changed."""
    size: int
    levels: int
    reason: Reason | None = None
    """Why it cannot be used, where that is known already."""


class Names:
    """What the names of one suite stand for at the current statement."""

    __slots__ = ("_left", "_left_to_read", "_remembered", "_was_used")

    def __init__(self) -> None:
        self._remembered: dict[str, _Remembered] = {}
        self._was_used = False
        self._left = MAX_INLINED
        self._left_to_read = MAX_READ

    def __bool__(self) -> bool:
        return bool(self._remembered)

    def remember(self, names: Iterable[str], expression: ast.expr) -> None:
        """From now on each of `names` stands for `expression`, and for why it cannot be used if that is known here."""
        self._was_used = True
        copy = _Copy(self._remembered, MAX_INLINED)
        try:
            node = self._copied(copy, expression)
            remembered = _Remembered(node, copy.size, copy.levels)
        except Rejected as error:
            remembered = _Remembered(expression, 0, 0, error.reason)
        for name in names:
            self._remembered[name] = remembered

    @contextmanager
    def scope(self) -> Iterator[None]:
        """What is remembered inside is forgotten at its end, and what was forgotten is remembered again."""
        outside = dict(self._remembered)
        try:
            yield
        finally:
            self._remembered = outside

    def forget(self, statement: ast.stmt) -> None:
        """Forget every name that a statement seems to give another value: binds, deletes, or changes in place. What
        another name of the same object or a function changes is not seen."""
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            self._remembered.pop(statement.name, None)
            return
        for node in ast.walk(statement) if self._remembered else ():
            self._left_to_read -= 1
            if self._left_to_read < 0:
                self._remembered = {}
                return
            if isinstance(node, ast.alias):
                self._remembered.pop((node.asname or node.name).split(".")[0], None)
            elif isinstance(node, ast.Attribute):  # x.append(1), x[0].append(1)
                self._pop(node.value)
            elif not isinstance(getattr(node, "ctx", None), ast.Load):
                self._pop(node)  # x[0] = 1, x[0][0] = 1; x += 1

    def note_changes(self, expression: ast.expr) -> None:
        """Forget every name whose value a method changes in place while an expression is evaluated: `x.pop()`."""
        for node in ast.walk(expression) if self._remembered else ():
            self._left_to_read -= 1
            called = node.func if isinstance(node, ast.Call) else None
            if isinstance(called, ast.Attribute) and called.attr in CHANGING:
                self._pop(called.value)

    def _pop(self, node: ast.AST) -> None:
        """Forget the name of which this is a part."""
        while isinstance(node, ast.Subscript | ast.Attribute):
            self._left_to_read -= 1
            node = node.value
        if isinstance(node, ast.Name):
            self._remembered.pop(node.id, None)

    def inlined(self, expression: ast.expr) -> ast.expr:
        """The expression with all names inlined. Raises Rejected where that makes it too large or too deep."""
        if not self._was_used:  # a loop, whose body is read again and again, uses them
            return expression
        copy = _Copy(self._remembered, self._left)
        node = self._copied(copy, expression)
        self._left -= copy.inlined
        return node

    def _copied(self, copy: _Copy, expression: ast.expr) -> ast.expr:
        if self._left_to_read < 0:
            raise Rejected(Reason.TOO_LARGE)
        try:
            return copy.of(expression, 0, frozenset())
        finally:
            self._left_to_read -= copy.size - copy.inlined


class _Copy:
    """One expression, copied as far as names are inlined in it."""

    def __init__(self, remembered: dict[str, _Remembered], may_inline: int) -> None:
        self._remembered = remembered
        self._may_inline = may_inline
        self.size = 0
        """Of the copy so far: nodes, and characters in constants."""
        self.inlined = 0
        """The part of `size` that came from names."""
        self.levels = 0
        """Of nesting, in the copy so far."""

    def of(self, node: ast.expr, level: int, hidden: frozenset[str]) -> ast.expr:
        """The copy. `hidden`: names that the comprehensions around bind. Raises Rejected."""
        if type(node) is ast.Constant:
            self._count(1 + _size(node.value), level)
            return node
        self._count(1, level)
        if type(node) is ast.Name:
            known = None if node.id in hidden else self._remembered.get(node.id)
            return node if known is None else self._known(known, level)
        if type(node) in _COMPREHENSIONS:
            return self._comprehension(node, level, hidden)
        if type(node) in _LEFT_ALONE:
            return node
        changed: dict[str, object] = {}
        for field, value in ast.iter_fields(node):
            copy: object = value
            if isinstance(value, list):
                copy = [self._item(item, level + 1, hidden) for item in value]
            elif isinstance(value, ast.expr):
                copy = self.of(value, level + 1, hidden)
            changed[field] = copy
        return _like(node, changed)

    def _item(self, item: object, level: int, hidden: frozenset[str]) -> object:
        """One element of a node's list: an expression, a keyword argument, an operator, or None in `{**x}`."""
        if isinstance(item, ast.keyword):
            return ast.keyword(item.arg, self.of(item.value, level, hidden))
        return self.of(item, level, hidden) if isinstance(item, ast.expr) else item

    def _comprehension(self, node: ast.expr, level: int, hidden: frozenset[str]) -> ast.expr:
        clauses: list[ast.comprehension] = node.generators  # type: ignore[attr-defined]  # one of _COMPREHENSIONS
        targets = [inner for clause in clauses for inner in ast.walk(clause.target)]
        self._count(len(targets) + len(hidden), level)
        within = hidden | {target.id for target in targets if isinstance(target, ast.Name)}
        copies = [
            ast.comprehension(
                clause.target,
                # The first iterable alone is evaluated outside, where the targets hide nothing.
                self.of(clause.iter, level + 1, within if index else hidden),
                [self.of(condition, level + 1, within) for condition in clause.ifs],
                clause.is_async,
            )
            for index, clause in enumerate(clauses)
        ]
        parts: dict[str, object] = {
            field: self.of(value, level + 1, within)
            for field, value in ast.iter_fields(node)
            if isinstance(value, ast.expr)
        }
        return _like(node, {**parts, "generators": copies})

    def _known(self, known: _Remembered, level: int) -> ast.expr:
        if known.reason is not None:
            raise Rejected(known.reason)
        self.inlined += known.size
        if self.inlined > self._may_inline:
            raise Rejected(Reason.TOO_LARGE)
        self._count(known.size, level + known.levels)
        return known.node

    def _count(self, size: int, level: int) -> None:
        self.size += size
        self.levels = max(self.levels, level)
        if self.size > MAX_SOURCE:
            raise Rejected(Reason.TOO_LARGE)
        if level > _MAX_LEVELS:
            raise Rejected(Reason.TOO_DEEP)


def _like(node: ast.expr, fields: dict[str, object]) -> ast.expr:
    """A node of the same kind with these fields."""
    kind: Any = type(node)
    copy: ast.expr = kind(**fields)
    return copy


def _size(constant: object) -> int:
    if isinstance(constant, str | bytes):
        return len(constant)
    return constant.bit_length() >> 2 if isinstance(constant, int) else 0
