"""Remembered names of a suite: `name = expression` is put in the place of `name` in later asserts.

Expressions are not judged here. Does not promise that a test is small: it promises that inlining makes no assert, and
no suite, larger than a fixed size, whatever the names double.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from codea1_env.reading.grammar import MAX_DEPTH, MAX_SOURCE
from codea1_env.reading.pure_expressions import Reason, Rejected
from codea1_env.reading.sharing import CHANGING, UNCHANGING, UNCHANGING_MODULES, Part, bindings, parts

MAX_INLINED = 1 << 19
"""Size of all that is inlined in one suite; an expression's size is near its length in characters."""
MAX_READ = 1 << 20
"""Nodes of one suite that are gone through for its names, those of a loop once for each row: more than a suite
of common Python has that repeats nothing."""

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
    itself: frozenset[int] = frozenset()
    """Objects that it may be."""
    content: frozenset[int] = frozenset()
    """Those that it may hold: what changes one of either in place changes it."""

    @property
    def objects(self) -> frozenset[int]:
        return self.itself | self.content


class Names:
    """What the names of one suite stand for at the current statement. `entry_point`: a `canonical_name`; what it is
    given stays as it is, since every call gets arguments of its own."""

    __slots__ = ("_entry_point", "_left", "_left_to_read", "_objects", "_remembered", "_was_used")

    def __init__(self, entry_point: str) -> None:
        self._entry_point = entry_point.rpartition(".")[2]
        self._remembered: dict[str, _Remembered] = {}
        self._objects = 0
        self._was_used = False
        self._left = MAX_INLINED
        self._left_to_read = MAX_READ

    def __bool__(self) -> bool:
        return bool(self._remembered)

    def __contains__(self, name: str) -> bool:
        """Whether something may stand in the name's place."""
        return name in self._remembered and self._remembered[name].reason is not Reason.FORBIDDEN_NAME

    def remember(self, names: Iterable[str], expression: ast.expr) -> None:
        """From now on each of `names` stands for `expression`, and for why it cannot be used if that is known here.
        What the expression seems to change in place is forgotten."""
        self._was_used = True
        copy = _Copy(self._remembered, MAX_INLINED)
        itself, content = self._objects_of(expression)
        self._objects += 2  # a display is an object, and what it holds are others
        itself, content = itself | {self._objects}, content | {self._objects - 1}
        try:
            node = self._copied(copy, expression)
            remembered = _Remembered(node, copy.size, copy.levels, None, itself, content)
        except Rejected as error:
            remembered = _Remembered(expression, 0, 0, error.reason, itself, content)
        self.note_changes(expression)
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
        """Forget every name that a statement seems to give another value: binds, deletes, or changes in place."""
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            self._remembered.pop(statement.name, None)
            return
        bound: set[ast.AST] = set()
        for node in self._read(statement):
            for target, value in bindings(node):
                bound |= self._bind(target, value)
            if isinstance(node, ast.alias):
                self._remembered.pop((node.asname or node.name).split(".")[0], None)
            elif isinstance(node, ast.Attribute):  # x.append(1), x[0].append(1)
                self.change(node.value)
            elif isinstance(node, ast.AugAssign):
                self.change(node.target)
                bound.add(node.target)
            elif isinstance(node, ast.Call):
                self._hand_over(node)
            elif isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):  # x[0] = 1
                self.change(node.value)
            elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load) and node not in bound:
                self._remembered.pop(node.id, None)

    def _bind(self, target: ast.expr, value: ast.expr) -> set[ast.AST]:
        """The names in a target, of whose values no more is known than which objects they may be."""
        names = {node for node in ast.walk(target) if isinstance(node, ast.Name)}
        objects = self.objects_of(value)
        for name in names if objects else ():
            self._remembered[name.id] = _Remembered(name, 0, 0, Reason.FORBIDDEN_NAME, objects, objects)
        return set(names) if objects else set()

    def share(self, target: ast.expr, objects: frozenset[int]) -> None:
        """The names in a target may be or hold these objects, too."""
        for node in ast.walk(target) if objects else ():
            if isinstance(node, ast.Name) and (known := self._remembered.get(node.id)):
                self._remembered[node.id] = replace(
                    known, itself=known.itself | objects, content=known.content | objects
                )

    def note_changes(self, expression: ast.expr) -> None:
        """Forget every name whose value an expression seems to change in place: `x.pop()`, `heappop(x)`."""
        for node in self._read(expression):
            if isinstance(node, ast.Call):
                if isinstance(node.func, ast.Attribute) and node.func.attr in CHANGING:
                    self.change(node.func.value)
                self._hand_over(node)

    def change(self, expression: ast.expr) -> None:
        """Forget the names whose values may be, or hold, the object that an expression gives."""
        self._forget_holders(self._objects_of(expression)[0])

    def _forget_holders(self, changed: frozenset[int]) -> None:
        if changed:
            self._left_to_read -= len(self._remembered)
            self._remembered = {
                name: known if changed.isdisjoint(known.objects) else replace(known, reason=Reason.FORBIDDEN_NAME)
                for name, known in self._remembered.items()
            }

    def _hand_over(self, call: ast.Call) -> None:
        """A function that is not known may change what it is given."""
        if not self._is_unchanging(call.func):
            for given in [*call.args, *[keyword.value for keyword in call.keywords]]:
                self._forget_holders(self.objects_of(given))

    def _is_unchanging(self, called: ast.expr) -> bool:
        """Whether a function changes nothing that it is given, as far as that is known. Methods of what is remembered
        are those of Python's containers."""
        if isinstance(called, ast.Attribute):
            if called.attr == self._entry_point or isinstance(called.value, ast.Constant):
                return True
            base = called.value
            while isinstance(base, ast.Attribute | ast.Subscript):
                base = base.value
            return isinstance(base, ast.Name) and (base.id in UNCHANGING_MODULES or base.id in self._remembered)
        name = called.id if isinstance(called, ast.Name) else ""
        return name in UNCHANGING or self._is_entry_point(name)

    def _is_call(self, node: ast.AST) -> bool:
        """Whether it calls the program under test, which gives what it makes."""
        return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and self._is_entry_point(node.func.id)

    def _is_entry_point(self, name: str) -> bool:
        known = self._remembered.get(name)
        stands_for = known.node.id if known is not None and isinstance(known.node, ast.Name) else name
        return self._entry_point in (name, stands_for)

    def objects_of(self, expression: ast.expr) -> frozenset[int]:
        """Objects of remembered names that an expression may give or hold."""
        itself, content = self._objects_of(expression)
        return itself | content

    def _objects_of(self, expression: ast.expr) -> tuple[frozenset[int], frozenset[int]]:
        """Those that it may give, and those that it may hold."""
        itself: set[int] = set()
        content: set[int] = set()
        left: list[tuple[ast.AST | None, Part]] = [(expression, Part.SELF)]
        while left and self._remembered:
            node, part = left.pop()
            self._left_to_read -= 1
            if isinstance(node, ast.Name):
                if known := self._remembered.get(node.id):
                    content |= known.content if part in (Part.SELF, Part.CONTENT) else known.objects
                    if part in (Part.SELF, Part.ANY):
                        itself |= known.itself if part is Part.SELF else known.objects
                    self._left_to_read -= len(known.objects)
            elif node is not None and not self._is_call(node):
                left += parts(node, part)
        return frozenset(itself), frozenset(content)

    def _read(self, tree: ast.AST) -> Iterator[ast.AST]:
        """All nodes, as long as there are names to forget and work is left; then all names are forgotten."""
        for node in ast.walk(tree) if self._remembered else ():
            self._left_to_read -= 1
            if self._left_to_read < 0:
                self._remembered = {}
                return
            yield node

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
