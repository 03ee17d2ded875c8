"""Remembered names of a suite: `name = expression` is put in the place of `name` in later asserts.

Expressions are not judged here. Does not promise that a test is small: it promises that inlining makes no assert, and
no suite, larger than a fixed size, whatever the names double.
"""

from __future__ import annotations

import ast
import re
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

_WORD = re.compile(r"[^\W\d]\w*")
_SHADOWED = ast.Name("__shadowed__", ast.Load())

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

    __slots__ = ("_global", "_left", "_left_to_read", "_owner", "_remembered", "_was_used")

    def __init__(self, entry_point: str) -> None:
        """`entry_point`: a `canonical_name`."""
        owner, dot, _ = entry_point.partition("().")
        self._owner = owner if dot else ""
        self._remembered: dict[str, _Remembered] = {}
        self._global: dict[str, _Remembered] | None = None
        """What a function sees beside its parameters, while one is read."""
        self._was_used = False
        self._left = MAX_INLINED
        self._left_to_read = MAX_READ

    @property
    def are_a_functions(self) -> bool:
        """A function is being read."""
        return self._global is not None

    def bind(self, pairs: Iterable[tuple[str, ast.expr]], *, is_inlined: bool = False) -> None:
        """From now on each name stands for its expression, and for why it cannot be used if that is known here. All
        are evaluated before the first is bound, as in `a, b = b, a`.

        `is_inlined`: names that are left in the expressions stand for nothing known, whatever is bound under them now.
        """
        self._was_used = True
        known = {} if is_inlined else self._remembered
        self._remembered.update([(name, self._kept(expression, known)) for name, expression in pairs])

    def shadow(self, name: str) -> None:
        """What the suite itself defines under a name of Python's is not known."""
        self.bind([(name, _SHADOWED)], is_inlined=True)

    def _kept(self, expression: ast.expr, known: dict[str, _Remembered]) -> _Remembered:
        copy = _Copy(known, MAX_INLINED)
        try:
            return _Remembered(self._copied(copy, expression), copy.size, copy.levels)
        except Rejected as error:
            return _Remembered(expression, 0, 0, error.reason)

    @contextmanager
    def scope(self) -> Iterator[None]:
        """What is remembered inside is forgotten at its end, and what was forgotten is remembered again."""
        outside = dict(self._remembered)
        try:
            yield
        finally:
            self._remembered = outside

    @contextmanager
    def function(self, *, is_nested: bool) -> Iterator[None]:
        """Likewise. A function sees what is known in the module, and of functions around it one that `is_nested` in
        them: not what is known where it is called."""
        outside = self._global
        self._global = self._remembered if outside is None else outside
        with self.scope():
            if not is_nested:
                self._remembered = dict(self._global)
            try:
                yield
            finally:
                self._global = outside

    def forget(self, statement: ast.stmt) -> None:
        """Forget every name that a statement seems to give another value: binds, deletes, or changes in place. What
        another name of the same object or a function changes is not seen."""
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            self._remembered.pop(statement.name, None)
            return
        # A name is bound here as a text by `except ... as x`, `case [x]` and a definition inside.
        for node in ast.walk(statement) if self._remembered else ():
            self._left_to_read -= 1
            if self._left_to_read < 0:
                self._remembered = {}
                return
            if isinstance(node, ast.alias):
                self._remembered.pop((node.asname or node.name).split(".")[0], None)
            elif isinstance(node, ast.Attribute):  # x.append(1), x[0].append(1)
                if not self._is_new_object(node):
                    self._pop(node.value)
            elif isinstance(name := getattr(node, "name", None) or getattr(node, "rest", None), str):
                self._remembered.pop(name, None)
            elif not isinstance(getattr(node, "ctx", None), ast.Load):
                self._pop(node)  # x[0] = 1, x[0][0] = 1; x += 1

    def note_changes(self, expression: ast.expr) -> None:
        """Forget every name that gets another value while an expression is evaluated: by a method that changes it in
        place (`x.pop()`), or by `x := 1`."""
        for node in ast.walk(expression) if self._remembered else ():
            self._left_to_read -= 1
            called = node.func if isinstance(node, ast.Call) else None
            if isinstance(node, ast.NamedExpr):
                self._pop(node.target)
            elif isinstance(called, ast.Attribute) and called.attr in CHANGING and not self._is_new_object(called):
                self._pop(called.value)

    def occurs_in(self, text: str) -> bool:
        """Whether a text has any remembered name in it."""
        return bool(self._remembered) and any(word in self._remembered for word in _WORD.findall(text))

    def forget_in(self, text: str) -> None:
        """Forget every name that occurs in what cannot be read: it may have another value behind it."""
        for word in _WORD.findall(text) if self._remembered else ():
            self._remembered.pop(word, None)

    def _is_new_object(self, node: ast.Attribute) -> bool:
        """Whether a name stands for `Solution()`, where the entry point is a method of it: every call has an object of
        its own, and a method that is named `reverse` changes no list."""
        known = self._remembered.get(node.value.id) if self._owner and isinstance(node.value, ast.Name) else None
        made = known.node.func if known is not None and isinstance(known.node, ast.Call) else None
        return isinstance(node.ctx, ast.Load) and isinstance(made, ast.Name) and made.id == self._owner

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
