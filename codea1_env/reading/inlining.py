"""Remembered names of a suite: `name = expression` is put in the place of `name` in later asserts.

Expressions are not judged here. Does not promise that a test is small: it promises that inlining makes no assert, and
no suite, larger than a fixed size, whatever the names double.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import ChainMap
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from codea1_env.reading.grammar import MAX_DEPTH, MAX_SOURCE
from codea1_env.reading.pure_expressions import CODE, Reason, Rejected, given_in, known_name, parameters_of
from codea1_env.reading.steps import Steps, size_of, steps_of
from codea1_env.sandbox.inside.scope import CODE_BUILTINS, CODE_NAMES, LOOKED_NAMES, SHORT

MAX_INLINED = 1 << 19
"""Size of all that is inlined in one suite; an expression's size is near its length in characters."""

_BOUND = 8
"""Steps of a name that is bound, beside those of its value."""
CHANGING = frozenset(
    "add append appendleft clear difference_update discard extend extendleft insert intersection_update pop popitem "
    "popleft remove reverse rotate setdefault sort symmetric_difference_update update".split()
)
"""Methods that change their list, dict, set or deque."""
_VIEWS = frozenset(("items", "keys", "values"))
_LOOKING = CODE_BUILTINS - {"next"} | {"print"}
_LOOKING |= {name.rpartition(".")[2] for names in LOOKED_NAMES.values() for name in names}
"""Functions and methods that change nothing that they are given."""
_GIVEN = "()"
"""Stands for a method: the object is given to a function, or entered."""
_WORD = re.compile(r"[^\W\d]\w*")
_SHADOWED = ast.Name("__shadowed__", ast.Load())
_NO_SOLUTIONS = sys.stdlib_module_names | frozenset(
    "hypothesis matplotlib networkx numpy pandas pytest scipy sklearn statsmodels sympy tensorflow torch".split()
)
"""Modules that suites import and that hold no solution, whatever of theirs has its name: `math.gcd`."""

_CONVERTED: Mapping[int, Callable[[str], str]] = {-1: str, ord("s"): str, ord("r"): repr, ord("a"): ascii}
"""What an f-string makes of a text: `{x}`, `{x!s}`, `{x!r}`, `{x!a}`."""
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
# No expression holds more levels than brackets and operators may nest in what the grammar accepts, plus the comparison.
_MAX_LEVELS = MAX_DEPTH + 4


@dataclass(frozen=True, slots=True)
class _Remembered:
    node: ast.expr
    """All names in it inlined already. Shared, never changed."""
    size: int
    steps: int
    levels: int
    reason: Reason | None = None
    """Why it cannot be used, where that is known already."""
    attributes: Mapping[str, _Remembered] | None = None
    """Of a module or an object by whose attributes alone it is known."""


class _Rebinding(NamedTuple):
    """A name that gets another value."""

    name: str
    method: str = ""
    """Of the object itself, by which it changes (`_stays`); empty: by anything else."""


class _Scope(ChainMap[str, _Remembered | None]):
    """The names of a module or a function, over those around it. None: forgotten there."""

    def forget(self, name: str) -> None:
        self.pop(name, None)
        if self.parents.get(name) is not None:
            self[name] = None

    def leave(self, own: Collection[str]) -> None:
        """Forget around it what has changed in it, but for names of its own."""
        for name in self.maps[0].keys() - own:
            self.parents.forget(name)


class SuiteNames:
    """What the names of one suite stand for at the current statement. Every method may raise TooMuch."""

    __slots__ = (
        "_changes", "_defined", "_entry_point", "_global", "_left", "_owner", "_remembered", "_steps", "_was_used",
    )  # fmt: skip

    def __init__(self, entry_point: str, steps: Steps) -> None:
        """`entry_point`: a `canonical_name`."""
        self._entry_point = entry_point
        owner, dot, _ = entry_point.partition("().")
        self._owner = owner if dot else ""
        self._defined = self._owner or entry_point
        """What a solution's module defines."""
        self._remembered = _Scope()
        self._global: _Scope | None = None
        """What a function sees beside its parameters, while one is read."""
        self._was_used = False
        self._left = MAX_INLINED
        self._steps = steps
        self._changes: dict[tuple[ast.AST, str], frozenset[_Rebinding]] = {}

    @property
    def are_a_functions(self) -> bool:
        """A function is being read."""
        return self._global is not None

    def bind(self, pairs: Iterable[tuple[str, ast.expr]], *, is_written: bool = False) -> None:
        """From now on each name stands for its expression, and for why it cannot be used if that is known here. All
        are evaluated before the first is bound, as in `a, b = b, a`.

        `is_written`: names in the expressions stand for what they do in the suite here; else for nothing that is known.
        """
        self._was_used = True
        known = self._remembered if is_written else _Scope()
        kept: dict[ast.expr, _Remembered] = {}  # `a = b = c = [...]` is one expression
        bound: list[tuple[str, _Remembered]] = []
        for name, expression in pairs:
            self._steps.take(_BOUND)
            if expression not in kept:
                kept[expression] = self._kept(expression, known)
            bound.append((name, kept[expression]))
        self._remembered.update(bound)

    def bind_attributes(self, name: str, attributes: Mapping[str, ast.expr], inner: Sequence[str] = ()) -> None:
        """From now on attributes of the name, or of modules `inner` in it, stand for expressions of known names."""
        self._was_used = True
        known = {each: self._kept(expression, _Scope()) for each, expression in attributes.items()}
        for module in reversed(inner):
            known = {module: _of_attributes(known)}
        self._remembered.update([(name, _of_attributes(known))])

    def shadow(self, name: str) -> None:
        """What the suite itself defines under a name of Python's is not known."""
        self.bind([(name, _SHADOWED)])

    def _kept(self, expression: ast.expr, known: _Scope) -> _Remembered:
        copy = _Copy(known, MAX_INLINED)
        try:
            return _Remembered(self._copied(copy, expression), copy.size, copy.steps, copy.levels)
        except Rejected as error:
            return _Remembered(expression, 0, 0, 0, error.reason)

    @contextmanager
    def scope(self) -> Iterator[None]:
        """What is remembered inside is forgotten at its end, and what was forgotten is remembered again."""
        outside = self._remembered
        self._remembered = outside.new_child()
        try:
            yield
        finally:
            self._remembered = outside

    @contextmanager
    def function(self, own: Collection[str] | None = None, *, is_nested: bool) -> Iterator[None]:
        """Likewise. A function sees what is known in the module, and of functions around it one that `is_nested` in
        them: not what is known where it is called. `own`: its own names; others that it changes are forgotten."""
        outside = self._global
        self._global = self._remembered if outside is None else outside
        with self.scope():
            if not is_nested:
                self._remembered = self._global.new_child()
            inside = self._remembered
            try:
                yield
            finally:
                self._global = outside
        if own is not None:
            inside.leave(own)

    def bind_imports(self, statement: ast.Import | ast.ImportFrom, more: frozenset[str] = frozenset()) -> None:
        """`import numpy as n`: `n` stands for numpy. `more`: dotted names that are known beside CODE. A name that means
        a module's wherever it stands (`SHORT`) and is imported from elsewhere is not known. `import solution as s`:
        `s.f` stands for the entry point `f`, as does `g` after `from solution import f as g`."""
        self.forget(statement)
        module = getattr(statement, "module", None)
        for alias in statement.names:
            name = alias.asname or alias.name
            dotted = f"{module}.{alias.name}" if isinstance(statement, ast.ImportFrom) else alias.name
            is_known = dotted in CODE or dotted in more or (module is None and dotted in CODE_NAMES)
            if is_known and name != self._entry_point and known_name(ast.Name(name)) != dotted:
                self.bind([(name, ast.parse(dotted, mode="eval").body)])
            elif not is_known and name in SHORT:
                self.shadow(name)
            elif not is_known and (module or alias.name).split(".")[0] not in _NO_SOLUTIONS:
                self._bind_solution(alias, name, is_module=module is None)

    def _bind_solution(self, alias: ast.alias, name: str, *, is_module: bool) -> None:
        entry_point = ast.Name(self._defined, ast.Load())
        if not is_module and alias.name == self._defined:
            self.bind([(name, entry_point)] if name != self._defined else [], is_written=True)
        elif is_module or name.islower():
            first, *inner = name.split(".")
            self.bind_attributes(first, {self._defined: entry_point}, inner)

    def forget(self, statement: ast.stmt) -> None:
        """Forget every name that a statement seems to give another value: binds, deletes, or changes in place, itself
        or by a function that is given it. What another name of the same object changes is not seen."""
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            for decorator in statement.decorator_list:
                self._forget_all(getattr(decorator, "func", decorator), self._bound_in)
            self._remembered.forget(statement.name)
            if statement.name in SHORT:
                self.shadow(statement.name)
        else:
            self._forget_all(statement, self._bound_in)

    def note_changes(self, expression: ast.expr) -> None:
        """Forget every name that gets another value while an expression is evaluated: by a method that changes it in
        place (`x.pop()`), or by `x := 1`."""
        self._forget_all(expression, self._changed_in)

    def _forget_all(self, node: ast.AST, found_in: Callable[[ast.AST], Iterator[_Rebinding]]) -> None:
        """Forget what is found in a node. It is searched once, however often it is gone through."""
        if not self._remembered:
            return
        key = (node, found_in.__name__)
        if key not in self._changes:
            self._changes[key] = frozenset(found_in(node))
        self._steps.take(1 + len(self._changes[key]))
        for change in self._changes[key]:
            if not (change.method and self._stays(change.name, change.method)):
                self._remembered.forget(change.name)

    def _bound_in(self, statement: ast.AST) -> Iterator[_Rebinding]:
        followed: set[ast.AST] = set()
        # A name is bound here as a text by `except ... as x`, `case [x]` and a definition inside.
        for node in ast.walk(statement):
            self._steps.take()
            if isinstance(node, ast.alias):
                yield _Rebinding((node.asname or node.name).split(".")[0])
            elif isinstance(node, ast.Call | ast.withitem):  # shuffle(x), with x
                yield from self._given_in(node)
            elif isinstance(node, ast.Attribute):  # x.append(1), x[0].append(1)
                yield from _of_object(node.value, followed, node.attr if isinstance(node.ctx, ast.Load) else "")
            elif isinstance(name := getattr(node, "name", None) or getattr(node, "rest", None), str):
                yield _Rebinding(name)
            elif not isinstance(getattr(node, "ctx", None), ast.Load):
                yield from _of_object(node, followed)  # x[0] = 1, x[0][0] = 1; x += 1

    def _given_in(self, node: ast.Call | ast.withitem) -> Iterator[_Rebinding]:
        if isinstance(node, ast.withitem):
            given = [node.context_expr]
        else:
            called = getattr(node.func, "attr", getattr(node.func, "id", ""))
            is_looking = (
                called in _LOOKING or called == self._entry_point.rpartition(".")[2] or called.startswith("assert")
            )
            given = [] if is_looking else given_in(node)
        return (_Rebinding(each.id, _GIVEN) for each in given if isinstance(each, ast.Name))

    def _changed_in(self, expression: ast.AST) -> Iterator[_Rebinding]:
        followed: set[ast.AST] = set()
        for node in ast.walk(expression):
            self._steps.take()
            called = node.func if isinstance(node, ast.Call) else None
            if isinstance(called, ast.Name) and called.id == "next":
                yield from (_Rebinding(each.id) for each in node.args[:1] if isinstance(each, ast.Name))  # type: ignore[attr-defined]
            if isinstance(node, ast.NamedExpr):
                yield from _of_object(node.target, followed)
            elif isinstance(called, ast.Attribute) and called.attr in CHANGING:
                yield from _of_object(called.value, followed, called.attr)

    def occurs_in(self, text: str) -> bool:
        """Whether a text has any remembered name in it."""
        return bool(self._remembered) and any(map(self._is_value, _WORD.findall(text)))

    def forget_in(self, text: str) -> None:
        """Forget every name that occurs in what cannot be read: it may have another value behind it. What was imported
        stays, for prose speaks of a `solution`."""
        for word in filter(self._is_value, _WORD.findall(text) if self._remembered else ()):
            self._remembered.forget(word)

    def _is_value(self, name: str) -> bool:
        known = self._remembered.get(name)
        return known is not None and known.attributes is None

    def _stays(self, name: str, method: str) -> bool:
        """Whether what a name stands for is no other after a method of it. It is where it stands for `Solution()` and
        the entry point is a method of that: every call has an object of its own, and a method that is named `reverse`
        changes no list. And where it is a dict of constants, which cannot be changed through a view."""
        known = self._remembered.get(name)
        if known is None or known.attributes is not None:
            return known is not None  # a module's function is named so
        if method == _GIVEN:
            return isinstance(known.node, ast.Constant | ast.Lambda | ast.Name | ast.Attribute)
        if isinstance(known.node, ast.Dict) and method in _VIEWS:
            return all(isinstance(value, ast.Constant) for value in known.node.values)
        made = known.node.func if self._owner and isinstance(known.node, ast.Call) else None
        return isinstance(made, ast.Name) and made.id == self._owner

    def inlined(self, expression: ast.expr) -> ast.expr:
        """The expression with all names inlined. Raises Rejected where that makes it too large or too deep."""
        if not self._was_used:  # a loop, whose body is read again and again, uses them
            return expression
        copy = _Copy(self._remembered, self._left)
        node = self._copied(copy, expression)
        self._left -= copy.inlined
        self._steps.take(copy.steps_inlined)  # whoever reads it goes through that, too
        return node

    def known(self, expression: ast.expr) -> ast.expr | None:
        """Likewise; None where it cannot be used."""
        try:
            return self.inlined(expression)
        except Rejected:
            return None

    def _copied(self, copy: _Copy, expression: ast.expr) -> ast.expr:
        try:
            return copy.of(expression, 0, frozenset())
        finally:
            self._steps.take(copy.steps - copy.steps_inlined)


def _of_attributes(attributes: Mapping[str, _Remembered]) -> _Remembered:
    return _Remembered(_SHADOWED, 0, 0, 0, attributes=attributes)


def _of_object(node: ast.AST, followed: set[ast.AST], method: str = "") -> Iterator[_Rebinding]:
    """The name of which this is a part. `followed`: the parts whose names are found already."""
    is_whole = isinstance(node, ast.Name)
    while isinstance(node, ast.Subscript | ast.Attribute) and node not in followed:
        followed.add(node)
        node = node.value
    if isinstance(node, ast.Name):
        yield _Rebinding(node.id, method if is_whole else "")


class _Copy:
    """One expression, copied as far as names are inlined in it."""

    def __init__(self, remembered: _Scope, may_inline: int) -> None:
        self._remembered = remembered
        self._may_inline = may_inline
        self.size = 0
        """Of the copy so far: nodes, and characters in constants."""
        self.inlined = 0
        """The part of `size` that came from names."""
        self.steps = 0
        self.steps_inlined = 0
        self.levels = 0
        """Of nesting, in the copy so far."""

    def of(self, node: ast.expr, level: int, hidden: frozenset[str]) -> ast.expr:
        """The copy. `hidden`: names that the comprehensions around bind. Raises Rejected."""
        if type(node) is ast.Constant:
            self._count(1 + size_of(node.value), level, steps_of(node))
            return node
        self._count(1, level)
        if type(node) is ast.Name:
            is_hidden = node.id in hidden or type(node.ctx) is not ast.Load  # `x` of `x := 1` is no value
            known = None if is_hidden else self._remembered.get(node.id)
            return node if known is None or known.attributes is not None else self._known(known, level)
        if type(node) is ast.Attribute and (known := self._attribute(node, hidden)) is not None:
            return self._known(known, level)
        if type(node) in _COMPREHENSIONS:
            return self._comprehension(node, level, hidden)
        if type(node) is ast.Lambda:
            names = {each.arg for each in parameters_of(node.args)}
            self._count(len(names) + len(hidden), level)
            return ast.Lambda(node.args, self.of(node.body, level + 1, hidden | names))
        changed: dict[str, object] = {}
        for field, value in ast.iter_fields(node):
            copy: object = value
            if isinstance(value, list):
                copy = [self._item(item, level + 1, hidden) for item in value]
            elif isinstance(value, ast.expr):
                copy = self.of(value, level + 1, hidden)
            changed[field] = copy
        match changed:
            case {"value": ast.Constant(value=str(text)), "conversion": int(how), "format_spec": None}:
                return ast.Constant(_CONVERTED[how](text))  # in an f-string, of which it is a part like any other
        return type(node)(**changed)  # type: ignore[arg-type]  # what it had, copied

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
        return type(node)(**parts, generators=copies)  # type: ignore[call-arg,arg-type]  # likewise

    def _attribute(self, node: ast.Attribute, hidden: frozenset[str]) -> _Remembered | None:
        """What an attribute of a remembered name stands for, where that is known."""
        path: list[str] = []
        base: ast.expr = node
        while isinstance(base, ast.Attribute) and len(path) < _MAX_LEVELS:
            path.append(base.attr)
            base = base.value
        is_hidden = not isinstance(base, ast.Name) or base.id in hidden
        known = None if is_hidden else self._remembered.get(base.id)  # type: ignore[attr-defined]  # a Name
        while path and known is not None:
            known = (known.attributes or {}).get(path.pop())
        return known if known is not None and known.attributes is None else None

    def _known(self, known: _Remembered, level: int) -> ast.expr:
        if known.reason is not None:
            raise Rejected(known.reason)
        if self.inlined + known.size > self._may_inline:
            raise Rejected(Reason.TOO_LARGE)
        self._count(known.size, level + known.levels, known.steps)
        self.inlined += known.size
        self.steps_inlined += known.steps
        return known.node

    def _count(self, size: int, level: int, steps: int = 1) -> None:
        if self.size + size > MAX_SOURCE:
            raise Rejected(Reason.TOO_LARGE)
        self.size += size
        self.steps += steps
        self.levels = max(self.levels, level)
        if level > _MAX_LEVELS:
            raise Rejected(Reason.TOO_DEEP)
