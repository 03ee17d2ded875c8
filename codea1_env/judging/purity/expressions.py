"""Expressions against the allow-list of `company.py`: what they may be made of, and where each may stand.

Raises Alone for what the list does not know. Does not know statements.
"""

from __future__ import annotations

import ast
import string
from enum import Enum, auto

from codea1_env.judging.purity.names import (
    BUILTINS,
    CALLBACKS,
    CODECS,
    CONSTANTS,
    CONSUMERS,
    CONSUMERS_OF_ALL,
    CONSUMERS_OF_SECOND,
    CONSUMING_METHODS,
    EXCEPTIONS,
    ITERATOR_MAKERS,
    KEYED,
    METHODS,
    METHODS_WITH_ADDRESSES,
    ONLY_CALLED,
    TYPES,
    TYPING,
)
from codea1_env.judging.purity.scope import KNOWN_BUILTINS, Alone, Scope


class Role(Enum):
    """Where an expression stands."""

    VALUE = auto()
    CALLED = auto()
    """It is called by this name."""
    CALLBACK = auto()
    """It is handed to a builtin that calls it and forgets it; what it returns may be kept."""
    KEY = auto()
    """Likewise, and what it returns is compared and forgotten."""
    CONSUMED = auto()
    """It is iterated over on the spot."""
    COMPARED = auto()
    """It is one side of a comparison, or an item of what stands there."""
    TESTED = auto()
    """It is a condition, or the object whose method is called."""


class Expressions:
    """Reads the expressions of one module."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self.keeps_views = False
        """Whether it has seen views of dictionaries that become sets."""

    def optional(self, node: ast.expr | None) -> None:
        if node is not None:
            self.read(node)

    def read(self, node: ast.expr, role: Role = Role.VALUE) -> None:
        match node:
            case ast.Constant():
                pass
            case ast.Name():
                self._name(node, role)
            case ast.Attribute():
                self._attribute(node, role)
            case ast.Call():
                self._call(node, role)
            case ast.Lambda(args=arguments, body=body):
                if role not in (Role.CALLED, Role.CALLBACK, Role.KEY):
                    raise Alone("has a lambda for a value")
                if body in self._scope.yielding:
                    raise Alone("has a lambda that makes iterators")
                self.arguments(arguments)
                self.read(body)
            case ast.GeneratorExp(elt=item, generators=generators):
                if role is not Role.CONSUMED:
                    raise Alone("has an iterator for a value")
                self._comprehension([item], generators)
            case ast.ListComp(elt=item, generators=generators) | ast.SetComp(elt=item, generators=generators):
                self._comprehension([item], generators)
            case ast.DictComp(key=key, value=value, generators=generators):
                self._comprehension([key, value], generators)
            case ast.Starred(value=value):
                self.read(value, Role.CONSUMED)
            case ast.NamedExpr(value=value):
                self.read(value)
            case ast.YieldFrom(value=value):
                self.read(value, Role.CONSUMED)
            case ast.Compare(left=left, ops=ops, comparators=comparators):
                self.read(left, Role.COMPARED)
                for op, value in zip(ops, comparators, strict=True):
                    is_listed = isinstance(value, ast.Tuple | ast.List)
                    is_consumed = isinstance(op, ast.In | ast.NotIn) and not is_listed
                    self.read(value, Role.CONSUMED if is_consumed else Role.COMPARED)
            case ast.Tuple(elts=items) | ast.List(elts=items) if role is Role.COMPARED:
                for item in items:
                    self.read(item, role)
            case ast.BoolOp(values=values) if role is Role.TESTED:
                for value in values:
                    self.read(value, role)
            case ast.UnaryOp(op=ast.Not(), operand=value):
                self.read(value, Role.TESTED)
            case ast.IfExp(test=test, body=body, orelse=other):
                self.read(test, Role.TESTED)
                self.read(body)
                self.read(other)
            case ast.FormattedValue(value=ast.Name(id=name), format_spec=None) if name in self._scope.caught:
                pass
            case (
                ast.BoolOp() | ast.BinOp() | ast.UnaryOp() | ast.Dict() | ast.Set() | ast.List()
                | ast.Tuple() | ast.Subscript() | ast.Slice() | ast.JoinedStr() | ast.FormattedValue() | ast.Yield()
            ):  # fmt: skip
                for child in ast.iter_child_nodes(node):
                    if isinstance(child, ast.expr):
                        self.read(child)
            case _:
                raise Alone(f"has an expression {type(node).__name__}")

    def _comprehension(self, results: list[ast.expr], generators: list[ast.comprehension]) -> None:
        for generator in generators:
            if generator.is_async:
                raise Alone("has an asynchronous comprehension")
            self.target(generator.target)
            self.read(generator.iter, Role.CONSUMED)
            for test in generator.ifs:
                self.read(test, Role.TESTED)
        for result in results:
            self.read(result)

    def _name(self, node: ast.Name, role: Role) -> None:
        name = node.id
        if name in self._scope.modules:
            raise Alone(f"has the module {name} for a value")
        if name in self._scope.functions and role not in (Role.CALLED, Role.CALLBACK, Role.KEY):
            raise Alone("has a function for a value")
        if role is not Role.CALLED and (name in self._scope.generators or name in ITERATOR_MAKERS or name == "type"):
            raise Alone("has a maker of iterators or of types for a value")
        if role in (Role.VALUE, Role.CONSUMED, Role.TESTED) and name in BUILTINS and not self._scope.is_own(name):
            raise Alone(f"has {name} for a value")
        if name in EXCEPTIONS or name in self._scope.caught:
            raise Alone("has an exception for a value")
        self._listed(self._scope.member(node), role)
        if name != "__name__":
            self._scope.check_spelling(name)

    def _listed(self, member: tuple[str, str], role: Role) -> None:
        """A member of a module that is not called by its name."""
        if member[0] == "typing":
            raise Alone(f"has the type {member[1]} for a value")
        is_shown = role in (Role.VALUE, Role.CONSUMED, Role.TESTED) and member != ("", "") and member not in CONSTANTS
        if is_shown or (role is not Role.CALLED and (member[0] == "itertools" or member in ONLY_CALLED)):
            raise Alone(f"has {'.'.join(member)} for a value")

    def _attribute(self, node: ast.Attribute, role: Role) -> None:
        """Read, not called: of modules what is listed, of numbers their parts, of types their methods."""
        member = self._scope.member(node)
        if member != ("", ""):
            self._listed(member, role)
            return
        if isinstance(node.value, ast.Name) and node.value.id in self._scope.modules:
            raise Alone(f"uses {self._scope.modules[node.value.id]}.{node.attr}")
        is_type = (
            isinstance(node.value, ast.Name) and node.value.id in BUILTINS and node.value.id not in self._scope.bound
        )
        is_method = is_type and node.attr in METHODS - METHODS_WITH_ADDRESSES
        if is_method and role not in (Role.CALLED, Role.CALLBACK, Role.KEY):
            raise Alone(f"has the method {node.attr} for a value")
        if is_method:
            return
        if node.attr not in ("real", "imag", "numerator", "denominator"):
            raise Alone(f"reads an attribute {node.attr}")
        self.read(node.value)

    def _call(self, node: ast.Call, role: Role) -> None:
        called = node.func
        member = self._scope.member(called)
        name = member[1] or (called.id if isinstance(called, ast.Name) else "")
        if isinstance(called, ast.Name) or member == ("", ""):
            self._callee(called)
        self._made(node, member, name, role)
        is_known = member != ("", "") or (name in BUILTINS and not self._scope.is_own(name))
        is_method = member == ("", "") and isinstance(called, ast.Attribute)
        if isinstance(called, ast.Attribute) and is_method:
            self._codec(node, 1 if self._is_type(called.value) else 0)
        elif name in ("str", "bytes", "bytearray"):
            self._codec(node, 1)
        elif is_known and name in CALLBACKS and node.args:
            self._codec_of_callback(node, name)
        stars = (place for place, argument in enumerate(node.args) if isinstance(argument, ast.Starred))
        starred = next(stars, len(node.args))
        for place, argument in enumerate(node.args):
            if is_known and name in ("str", "repr", "print") and _is_one_of(argument, self._scope.caught):
                continue
            self.read(argument, self._role_of(node, name if is_known else "", place, starred))
        for keyword in node.keywords:
            is_key = keyword.arg == "key" and (
                (is_known and name in KEYED)
                or (is_method and isinstance(called, ast.Attribute) and called.attr == "sort")
            )
            self.read(keyword.value, Role.KEY if is_key else Role.VALUE)

    def _codec(self, node: ast.Call, place: int) -> None:
        """Of texts and bytes: one that is there from the start. Others are imported, and an import that failed for lack
        of memory is remembered."""
        if isinstance(node.func, ast.Attribute) and node.func.attr not in ("encode", "decode"):
            return
        if any(isinstance(argument, ast.Starred) for argument in node.args):
            raise Alone("names a codec that may have to be imported")
        named = [keyword.value for keyword in node.keywords if keyword.arg in ("encoding", None)]
        for given in [*node.args[place : place + 1], *named]:
            if not (isinstance(given, ast.Constant) and given.value in CODECS):
                raise Alone("names a codec that may have to be imported")
        named = [keyword.value for keyword in node.keywords if keyword.arg == "errors"]
        for given in [*node.args[place + 1 : place + 2], *named]:
            if not (isinstance(given, ast.Constant) and given.value in ("strict", "ignore", "replace")):
                raise Alone("names a handler of errors that may have to be imported")

    def _codec_of_callback(self, node: ast.Call, name: str) -> None:
        """A type of texts that is handed over gets one argument, and no codec beside it."""
        match node.args[0]:
            case ast.Name(id="str" | "bytes" | "bytearray") | ast.Attribute(attr="encode" | "decode"):
                is_plain = not any(isinstance(argument, ast.Starred) for argument in node.args)
                if name not in ("map", "filter") or len(node.args) != 2 or not is_plain:
                    raise Alone("may hand over a codec that has to be imported")

    def _is_type(self, node: ast.expr) -> bool:
        """Whether it is a builtin type by its name."""
        return isinstance(node, ast.Name) and node.id in TYPES and not self._scope.is_own(node.id)

    def _made(self, node: ast.Call, member: tuple[str, str], name: str, role: Role) -> None:
        """What the call returns: what shows an address, or has one for its hash, goes no further."""
        makes_iterator = member[0] == "itertools" or name in ITERATOR_MAKERS or name in self._scope.generators
        if makes_iterator and role is not Role.CONSUMED:
            raise Alone("has an iterator for a value")
        if member in (("functools", "lru_cache"), ("functools", "cache")):
            raise Alone("has a function for a value")
        if member == ("functools", "cmp_to_key") and role is not Role.KEY:
            raise Alone("has a function for a value")
        if member == ("operator", "itemgetter") and role not in (Role.KEY, Role.CALLBACK):
            raise Alone("has a function for a value")
        if member[0] == "re" and member in ONLY_CALLED and role not in (Role.COMPARED, Role.TESTED):
            raise Alone("has a match for a value")
        if member == ("copy", "deepcopy") and (
            len(node.args) != 1 or node.keywords or isinstance(node.args[0], ast.Starred)
        ):
            raise Alone("copies with a table of addresses")
        method = node.func.attr if member == ("", "") and isinstance(node.func, ast.Attribute) else ""
        if method in ("items", "keys", "values") and role not in (Role.CONSUMED, Role.COMPARED):
            if method == "values":
                raise Alone("has a view of values for a value")
            self.keeps_views = True
        if member == ("", "") and name == "type" and not (role is Role.COMPARED and len(node.args) == 1):
            raise Alone("uses type() for more than a comparison")

    def _role_of(self, node: ast.Call, name: str, place: int, starred: int) -> Role:
        """Of an argument; `name` is what is called, where it is known; `starred` is the first place with a star."""
        if isinstance(node.func, ast.Attribute) and not name:
            return Role.CONSUMED if node.func.attr in CONSUMING_METHODS else Role.VALUE
        if name == "bool":
            return Role.TESTED
        if (name, place) == ("isinstance", 1):
            return Role.COMPARED
        if (name, place) == ("defaultdict", 0) and self._is_type(node.args[0]):
            return Role.CALLED
        if place == 0 and name in CALLBACKS:
            return Role.CALLBACK
        if name in CONSUMERS_OF_ALL:
            return Role.CONSUMED
        if place > starred:
            return Role.VALUE
        if name in ("min", "max") and len(node.args) > 1:  # it returns one of them
            return Role.VALUE
        places = 1 if name in CONSUMERS_OF_SECOND else 0 if name in CONSUMERS else None
        return Role.CONSUMED if place == places else Role.VALUE

    def _callee(self, called: ast.expr) -> None:
        """What is called, unless it is written `module.member`."""
        match called:
            case ast.Name():
                self._name(called, Role.CALLED)
            case ast.Attribute(value=value, attr="format"):
                if not (isinstance(value, ast.Constant) and isinstance(value.value, str) and _is_plain(value.value)):
                    raise Alone("formats a text that is made at run time")
            case ast.Attribute(value=ast.Name(id=name)) if name in self._scope.modules:
                raise Alone(f"uses {self._scope.modules[name]}.{called.attr}")
            case ast.Attribute(value=value, attr=method):
                if method not in METHODS:
                    raise Alone(f"calls a method {method}")
                self.read(value, Role.CALLED if self._is_type(value) else Role.TESTED)
            case _:
                raise Alone("calls what is no name")

    # Parts of statements

    def arguments(self, arguments: ast.arguments) -> None:
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        for argument in [*every, *filter(None, (arguments.vararg, arguments.kwarg))]:
            if argument.annotation is not None:
                self.annotation(argument.annotation)
        for default in [*arguments.defaults, *arguments.kw_defaults]:
            self.optional(default)

    def target(self, target: ast.expr) -> None:
        match target:
            case ast.Name():
                pass
            case ast.Tuple(elts=items) | ast.List(elts=items):
                for item in items:
                    self.target(item)
            case ast.Starred(value=value):
                self.target(value)
            case ast.Subscript(value=value, slice=place):
                self.read(value)
                self.read(place)
            case _:
                raise Alone("stores an attribute")

    def annotation(self, node: ast.expr) -> None:
        """A type, as a reader of the text sees it; nothing that it evaluates to is ever read again."""
        match node:
            case ast.Constant():
                pass
            case ast.Name(id=name) if (
                name in BUILTINS | EXCEPTIONS or self._scope.members.get(name, ("", ""))[1] in TYPING
            ):
                pass
            case ast.Name(id=name) if name not in KNOWN_BUILTINS and name not in self._scope.functions:
                if name in self._scope.modules:
                    raise Alone(f"has the module {name} for an annotation")
            case ast.Attribute(value=ast.Name(id=name), attr=attribute) if (
                self._scope.modules.get(name) in ("typing", "collections") and attribute in TYPING
            ):
                pass
            case ast.Subscript(value=value, slice=place):
                self.annotation(value)
                self.annotation(place)
            case ast.Tuple(elts=items) | ast.List(elts=items):
                for item in items:
                    self.annotation(item)
            case ast.BinOp(left=left, op=ast.BitOr(), right=right):
                self.annotation(left)
                self.annotation(right)
            case _:
                raise Alone("has an annotation that is no type")


def _is_one_of(node: ast.expr, names: set[str]) -> bool:
    return isinstance(node, ast.Name) and node.id in names


def _is_plain(text: str) -> bool:
    """Whether the fields of a format text are places and names only, without attributes and items."""
    try:
        fields = list(string.Formatter().parse(text))
    except ValueError:
        return True  # then formatting raises
    return all(
        "." not in (field or "") and "[" not in (field or "") and "{" not in (spec or "")
        for _, field, spec, _ in fields
    )
