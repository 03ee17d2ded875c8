"""Which company a program's calls may have, decided from its text alone, before anything of it runs.

`company` reads the syntax tree against an allow-list: statements, names, attributes *per module*, methods. What the
list does not know makes a program run each of its calls in a process of its own. Three answers:

    SHARED    nothing outlives a call: one process, one loaded module for all calls
    RELOADED  what outlives a call lies in the module's own namespace: one process, the module executed anew for each
    call ALONE     everything else: a process for each call

Programs in the first two can hold no module, class, frame or context of the interpreter, store no attribute and read
none by a name that is made at run time; nor can they see an address (`id`, `hash`, the text of a function or of an
iterator), a clock, a process number or chance. Errs towards ALONE, which only costs time. Does not look at what a call
should return: no module that compares values is imported here or decides what runs.
"""

from __future__ import annotations

import ast
import builtins
import functools
import importlib
import string
from collections.abc import Sequence
from enum import Enum, auto

from codea1_env.judging.module_state import holds_state
from codea1_env.judging.purity_names import (
    BUILTINS,
    CALLBACKS,
    CONSUMERS,
    CONSUMERS_OF_ALL,
    CONSUMERS_OF_SECOND,
    CONSUMING_METHODS,
    EXCEPTIONS,
    ITERATOR_MAKERS,
    KEYED,
    METHODS,
    METHODS_WITH_ADDRESSES,
    MODULES,
    OF_WHOLE_NUMBERS,
    ONLY_CALLED,
    TYPING,
    UNUSED_MODULES,
)
from codea1_env.reading.parsing import Unparsable, parse
from codea1_env.sandbox.protocol import Company

_MAX_CHARACTERS = 1 << 16
"""Longest program that is looked at."""
_KNOWN_BUILTINS = frozenset(dir(builtins))
_EXHAUSTED = ("BaseException", "Exception", "MemoryError", "RuntimeError", "RecursionError")
_LEAVES = (ast.Return, ast.Break, ast.Continue)


class _Alone(Exception):
    """The program must run each call alone; the text says why."""


class _Role(Enum):
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
    """It is one side of a comparison."""
    TESTED = auto()
    """It is a condition, or the object whose method is called."""


def company(source: str) -> Company:
    """The most company that the calls of the program `source` may have."""
    return _decided(source)[0]


def alone_because(source: str) -> str:
    """Why the program runs each call alone, in a few words; "" where it need not."""
    return _decided(source)[1]


@functools.lru_cache(maxsize=4096)
def _decided(source: str) -> tuple[Company, str]:
    if len(source) > _MAX_CHARACTERS:
        return Company.ALONE, "too long to be read"
    try:
        module = parse(source)
    except Unparsable:
        return Company.ALONE, "does not parse"
    try:
        nodes = list(ast.walk(module))
        _Reader(module, nodes).read()
    except _Alone as reason:
        return Company.ALONE, str(reason)
    except RecursionError:
        return Company.ALONE, "too deep to be read"
    return (Company.RELOADED if holds_state(module, nodes) else Company.SHARED), ""


class _Reader:
    """Reads one module against the allow-list; `read` raises _Alone at the first thing that is not on it."""

    def __init__(self, module: ast.Module, nodes: Sequence[ast.AST]) -> None:
        """`nodes`: all of the module's."""
        self._module, self._nodes = module, nodes
        self._yields = any(isinstance(node, ast.Yield | ast.YieldFrom) for node in nodes)
        self._modules: dict[str, str] = {}
        """Names that stand for modules."""
        self._members: dict[str, tuple[str, str]] = {}
        """Names that stand for members of modules."""
        self._functions: set[str] = set()
        """Names of functions and lambdas of the program's own."""
        self._generators: set[str] = set()
        """Those that make iterators."""
        self._bound: set[str] = set()
        """All other names that the program gives to something."""
        self._caught: set[str] = set()
        """Names of exceptions that were caught. Their hashes are addresses, so all that is done to them is to read
        their text and to raise them again."""
        self._keeps_views = False
        """Of dictionaries, which become sets."""
        self._starred: set[str] = set()
        """Names that a star import brings and that are not on the list."""

    def read(self) -> None:
        self._collect()
        self._refuse_shadows()
        for name in self._bound | self._functions:
            self._check_spelling(name)
        self._statements(self._module.body)
        makes_sets = self._keeps_views or any(map(self._makes_set, self._nodes))
        if makes_sets and any(map(self._makes_float, self._nodes)):
            raise _Alone("may have a set with a NaN, whose hash is its address")

    def _makes_set(self, node: ast.AST) -> bool:
        """Or adds to one."""
        match node:
            case ast.Set() | ast.SetComp() | ast.Name(id="set" | "frozenset"):
                return True
            case ast.Attribute(attr=method):
                return method in ("add", "update", "union", "symmetric_difference", "symmetric_difference_update")
        return False

    def _makes_float(self, node: ast.AST) -> bool:
        """Or a complex number or a Decimal, out of what is none: only these can be NaN."""
        match node:
            case ast.Constant(value=float() | complex()) | ast.Div() | ast.Pow():
                return True
            case ast.Name(id=name) if name in ("float", "complex", "pow"):
                return True
            case ast.Name() | ast.Attribute():
                module, name = self._member(node)
                return (module in ("math", "cmath", "decimal", "statistics") and name not in OF_WHOLE_NUMBERS) or (
                    module == "operator" and name in ("pow", "truediv")
                )
        return False

    def _collect(self) -> None:
        """What every name may stand for, in whatever scope. One that may stand for two things must do as both."""
        for node in self._nodes:
            match node:
                case ast.Import(names=names):
                    for alias in names:
                        self._import(alias)
                case ast.ImportFrom(module=module, names=names, level=level):
                    for alias in names:
                        self._import_member(module or "", alias, level)
                case ast.FunctionDef(name=name):
                    self._functions.add(name)
                    if self._yields and any(isinstance(inner, ast.Yield | ast.YieldFrom) for inner in ast.walk(node)):
                        self._generators.add(name)
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.Lambda()):
                    self._functions.add(name)
                case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name):
                    self._bound.add(name)
                case ast.ExceptHandler(name=str(name)):
                    self._caught.add(name)
        renamed = [pair for node in self._nodes if isinstance(node, ast.Assign) for pair in _pairs(node)]
        for _ in renamed:  # a name of a name of a function takes a second round
            self._functions |= {name for name, known in renamed if known in self._functions}
            self._generators |= {name for name, known in renamed if known in self._generators}

    def _refuse_shadows(self) -> None:
        """A name that is imported stands for nothing else, but for those of numbers and of functions of numbers."""
        own = self._bound | self._functions | self._caught
        for name in own & (self._modules.keys() | self._members.keys()):
            if name in self._modules or self._members[name][0] not in ("math", "cmath"):
                raise _Alone(f"gives the imported name {name} to something else")
            del self._members[name]
        for name in self._modules.keys() & self._members.keys():
            raise _Alone(f"the name {name} is imported twice")
        if self._caught & (self._bound | self._functions):
            raise _Alone("has an exception under the name of something else")

    def _import(self, alias: ast.alias) -> None:
        name = alias.asname or alias.name.split(".")[0]
        self._check_spelling(name)
        if alias.name not in MODULES and alias.name not in UNUSED_MODULES:
            raise _Alone(f"imports {alias.name}")
        if self._modules.setdefault(name, alias.name) != alias.name:
            raise _Alone(f"the name {name} is imported twice")

    def _import_member(self, module: str, alias: ast.alias, level: int) -> None:
        known = MODULES.get(module, frozenset())
        if module == "__future__" and not level:
            return
        if level or not known or (alias.name != "*" and alias.name not in known):
            raise _Alone(f"imports {alias.name} from {module}")
        if alias.name == "*":
            brought = importlib.import_module(module)
            self._starred |= set(getattr(brought, "__all__", dir(brought))) - known
        for name in known if alias.name == "*" else (alias.name,):
            bound = name if alias.name == "*" else alias.asname or name
            self._check_spelling(bound)
            if module == "typing" and bound in self._members:
                continue  # typing's Counter and deque make the ones of collections
            if self._members.get(bound, (module, name)) not in ((module, name), ("typing", name)):
                raise _Alone(f"the name {bound} is imported twice")
            self._members[bound] = (module, name)

    def _check_spelling(self, name: str) -> None:
        """No name of the program's hides what a reader of the text would take it for."""
        if (
            name in self._starred
            or name.startswith("__")
            or (name in _KNOWN_BUILTINS and name not in BUILTINS | EXCEPTIONS)
        ):
            raise _Alone(f"uses the name {name}")

    # Statements

    def _statements(self, body: list[ast.stmt]) -> None:
        for node in body:
            self._statement(node)

    def _statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Import() | ast.ImportFrom() | ast.Pass() | ast.Break() | ast.Continue():
                pass
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                for name in names:
                    self._check_spelling(name)
            case ast.FunctionDef():
                self._function(node)
            case ast.Return(value=value) | ast.Expr(value=value):
                self._optional(value)
            case ast.Delete(targets=targets):
                for target in targets:
                    self._target(target)
            case ast.Assign(targets=targets, value=value):
                self._assign(targets, value)
            case ast.AugAssign(target=target, value=value):
                self._target(target)
                self._expression(value)
            case ast.AnnAssign(target=target, annotation=annotation, value=value):
                self._target(target)
                self._annotation(annotation)
                self._optional(value)
            case ast.For(target=target, iter=iterated):
                self._target(target)
                self._expression(iterated, _Role.CONSUMED)
                self._statements([*node.body, *node.orelse])
            case ast.While(test=test) | ast.If(test=test):
                self._expression(test, _Role.TESTED)
                self._statements([*node.body, *node.orelse])
            case ast.Raise(exc=error, cause=cause):
                self._raised(error)
                self._raised(cause)
            case ast.Assert(test=test, msg=message):
                self._expression(test, _Role.TESTED)
                self._optional(message)
            case ast.Try():
                self._try(node)
            case _:
                raise _Alone(f"has a statement {type(node).__name__}")

    def _raised(self, node: ast.expr | None) -> None:
        """An exception, made or caught."""
        match node:
            case ast.Name(id=name) | ast.Call(func=ast.Name(id=name)) if name in EXCEPTIONS | self._caught:
                if isinstance(node, ast.Call):
                    for argument in [*node.args, *(keyword.value for keyword in node.keywords)]:
                        self._expression(argument)
            case _:
                self._optional(node)

    def _try(self, node: ast.Try) -> None:
        """How much memory and how deep a stack there is depends on what ran before: nobody catches the end of it."""
        self._statements([*node.body, *node.orelse, *node.finalbody])
        if any(isinstance(inner, _LEAVES) for body in node.finalbody for inner in ast.walk(body)):
            raise _Alone("leaves a finally block")
        for handler in node.handlers:
            types = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
            for kind in types:
                if not (isinstance(kind, ast.Name) and kind.id in EXCEPTIONS and kind.id not in _EXHAUSTED):
                    raise _Alone("may catch that memory or stack is exhausted")
            self._statements(handler.body)

    def _function(self, node: ast.FunctionDef) -> None:
        if getattr(node, "type_params", ()):
            raise _Alone("has type parameters")
        for decorator in node.decorator_list:
            if not self._is_cache(decorator):
                raise _Alone("has a decorated function")
        self._arguments(node.args)
        if node.returns is not None:
            self._annotation(node.returns)
        self._statements(node.body)

    def _is_cache(self, decorator: ast.expr) -> bool:
        """functools' caches, whose state lies in the function that they return."""
        if isinstance(decorator, ast.Call):
            if decorator.args and not all(isinstance(argument, ast.Constant) for argument in decorator.args):
                return False
            if not all(isinstance(keyword.value, ast.Constant) for keyword in decorator.keywords):
                return False
            decorator = decorator.func
        return self._member(decorator) in (("functools", "lru_cache"), ("functools", "cache"))

    def _arguments(self, arguments: ast.arguments) -> None:
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        for argument in [*every, *filter(None, (arguments.vararg, arguments.kwarg))]:
            if argument.annotation is not None:
                self._annotation(argument.annotation)
        for default in [*arguments.defaults, *arguments.kw_defaults]:
            self._optional(default)

    def _assign(self, targets: list[ast.expr], value: ast.expr) -> None:
        for target in targets:
            self._target(target)
        if isinstance(value, ast.Lambda) and len(targets) == 1 and isinstance(targets[0], ast.Name):
            self._expression(value, _Role.CALLED)
        elif len(targets) == 1 and isinstance(targets[0], ast.Tuple | ast.List) and isinstance(value, ast.Tuple):
            renamed = _pairs(ast.Assign(targets, value))
            for item in value.elts:
                is_renamed = isinstance(item, ast.Name) and item.id in self._functions and bool(renamed)
                self._expression(item, _Role.CALLED if is_renamed else _Role.VALUE)
        elif len(targets) == 1 and isinstance(targets[0], ast.Tuple | ast.List):
            self._expression(value, _Role.CONSUMED)
        elif len(targets) == 1 and isinstance(value, ast.Name) and isinstance(targets[0], ast.Name):
            self._expression(value, _Role.CALLED if value.id in self._functions else _Role.VALUE)
        else:
            self._expression(value)

    def _target(self, target: ast.expr) -> None:
        match target:
            case ast.Name():
                pass
            case ast.Tuple(elts=items) | ast.List(elts=items):
                for item in items:
                    self._target(item)
            case ast.Starred(value=value):
                self._target(value)
            case ast.Subscript(value=value, slice=place):
                self._expression(value)
                self._expression(place)
            case _:
                raise _Alone("stores an attribute")

    def _annotation(self, node: ast.expr) -> None:
        """A type, as a reader of the text sees it; nothing that it evaluates to is ever read again."""
        match node:
            case ast.Constant():
                pass
            case ast.Name(id=name) if name in BUILTINS | EXCEPTIONS or self._members.get(name, ("", ""))[1] in TYPING:
                pass
            case ast.Name(id=name) if name not in _KNOWN_BUILTINS and name not in self._functions:
                if name in self._modules:
                    raise _Alone(f"has the module {name} for an annotation")
            case ast.Attribute(value=ast.Name(id=name), attr=attribute) if (
                self._modules.get(name) in ("typing", "collections") and attribute in TYPING
            ):
                pass
            case ast.Subscript(value=value, slice=place):
                self._annotation(value)
                self._annotation(place)
            case ast.Tuple(elts=items) | ast.List(elts=items):
                for item in items:
                    self._annotation(item)
            case ast.BinOp(left=left, op=ast.BitOr(), right=right):
                self._annotation(left)
                self._annotation(right)
            case _:
                raise _Alone("has an annotation that is no type")

    # Expressions

    def _optional(self, node: ast.expr | None) -> None:
        if node is not None:
            self._expression(node)

    def _expression(self, node: ast.expr, role: _Role = _Role.VALUE) -> None:
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
                if role not in (_Role.CALLED, _Role.CALLBACK, _Role.KEY):
                    raise _Alone("has a lambda for a value")
                if self._yields and any(isinstance(inner, ast.Yield | ast.YieldFrom) for inner in ast.walk(body)):
                    raise _Alone("has a lambda that makes iterators")
                self._arguments(arguments)
                self._expression(body)
            case ast.GeneratorExp(elt=item, generators=generators):
                if role is not _Role.CONSUMED:
                    raise _Alone("has an iterator for a value")
                self._comprehension([item], generators)
            case ast.ListComp(elt=item, generators=generators) | ast.SetComp(elt=item, generators=generators):
                self._comprehension([item], generators)
            case ast.DictComp(key=key, value=value, generators=generators):
                self._comprehension([key, value], generators)
            case ast.Starred(value=value):
                self._expression(value, _Role.CONSUMED)
            case ast.NamedExpr(value=value):
                self._expression(value)
            case ast.YieldFrom(value=value):
                self._expression(value, _Role.CONSUMED)
            case ast.Compare(left=left, ops=ops, comparators=comparators):
                self._expression(left, _Role.COMPARED)
                for op, value in zip(ops, comparators, strict=True):
                    self._expression(value, _Role.CONSUMED if isinstance(op, ast.In | ast.NotIn) else _Role.COMPARED)
            case ast.BoolOp(values=values) if role is _Role.TESTED:
                for value in values:
                    self._expression(value, role)
            case ast.UnaryOp(op=ast.Not(), operand=value):
                self._expression(value, _Role.TESTED)
            case ast.IfExp(test=test, body=body, orelse=other):
                self._expression(test, _Role.TESTED)
                self._expression(body)
                self._expression(other)
            case ast.FormattedValue(value=ast.Name(id=name), format_spec=None) if name in self._caught:
                pass
            case (
                ast.BoolOp() | ast.BinOp() | ast.UnaryOp() | ast.Dict() | ast.Set() | ast.List()
                | ast.Tuple() | ast.Subscript() | ast.Slice() | ast.JoinedStr() | ast.FormattedValue() | ast.Yield()
            ):  # fmt: skip
                for child in ast.iter_child_nodes(node):
                    if isinstance(child, ast.expr):
                        self._expression(child)
            case _:
                raise _Alone(f"has an expression {type(node).__name__}")

    def _comprehension(self, results: list[ast.expr], generators: list[ast.comprehension]) -> None:
        for generator in generators:
            if generator.is_async:
                raise _Alone("has an asynchronous comprehension")
            self._target(generator.target)
            self._expression(generator.iter, _Role.CONSUMED)
            for test in generator.ifs:
                self._expression(test, _Role.TESTED)
        for result in results:
            self._expression(result)

    def _name(self, node: ast.Name, role: _Role) -> None:
        name = node.id
        if name in self._modules:
            raise _Alone(f"has the module {name} for a value")
        if name in self._functions and role not in (_Role.CALLED, _Role.CALLBACK, _Role.KEY):
            raise _Alone("has a function for a value")
        if role is not _Role.CALLED and (name in self._generators or name in ITERATOR_MAKERS or name == "type"):
            raise _Alone("has a maker of iterators or of types for a value")
        if name in EXCEPTIONS or name in self._caught:
            raise _Alone("has an exception for a value")
        self._listed(self._member(node), role)
        if name != "__name__":
            self._check_spelling(name)

    def _listed(self, member: tuple[str, str], role: _Role) -> None:
        """A member of a module that is not called by its name."""
        if member[0] == "typing":
            raise _Alone(f"has the type {member[1]} for a value")
        if role is not _Role.CALLED and (member[0] == "itertools" or member in ONLY_CALLED):
            raise _Alone(f"has {'.'.join(member)} for a value")

    def _attribute(self, node: ast.Attribute, role: _Role) -> None:
        """Read, not called: of modules what is listed, of numbers their parts, of types their methods."""
        member = self._member(node)
        if member != ("", ""):
            self._listed(member, role)
            return
        if isinstance(node.value, ast.Name) and node.value.id in self._modules:
            raise _Alone(f"uses {self._modules[node.value.id]}.{node.attr}")
        is_type = isinstance(node.value, ast.Name) and node.value.id in BUILTINS and node.value.id not in self._bound
        is_method = is_type and node.attr in METHODS - METHODS_WITH_ADDRESSES
        if not is_method and node.attr not in ("real", "imag", "numerator", "denominator"):
            raise _Alone(f"reads an attribute {node.attr}")
        self._expression(node.value)

    def _member(self, node: ast.expr) -> tuple[str, str]:
        """(module, member) that the expression stands for, ("", "") where it stands for none."""
        match node:
            case ast.Name(id=name):
                return self._members.get(name, ("", ""))
            case ast.Attribute(value=ast.Name(id=name), attr=attribute) if name in self._modules:
                module = self._modules[name]
                return (module, attribute) if attribute in MODULES.get(module, ()) else ("", "")
            case ast.Attribute(value=inner, attr="from_iterable") if self._member(inner) == ("itertools", "chain"):
                return ("itertools", "chain")
        return ("", "")

    def _call(self, node: ast.Call, role: _Role) -> None:
        called = node.func
        member = self._member(called)
        name = member[1] or (called.id if isinstance(called, ast.Name) else "")
        if isinstance(called, ast.Name) or member == ("", ""):
            self._callee(called)
        self._made(node, member, name, role)
        is_known = member != ("", "") or (name in BUILTINS and name not in self._bound | self._functions)
        is_method = member == ("", "") and isinstance(called, ast.Attribute)
        for place, argument in enumerate(node.args):
            if is_known and name in ("str", "repr", "print") and _is_one_of(argument, self._caught):
                continue
            self._expression(argument, self._role_of(node, name if is_known else "", place))
        for keyword in node.keywords:
            is_key = keyword.arg == "key" and (
                (is_known and name in KEYED)
                or (is_method and isinstance(called, ast.Attribute) and called.attr == "sort")
            )
            self._expression(keyword.value, _Role.KEY if is_key else _Role.VALUE)

    def _made(self, node: ast.Call, member: tuple[str, str], name: str, role: _Role) -> None:
        """What the call returns: what shows an address, or has one for its hash, goes no further."""
        makes_iterator = member[0] == "itertools" or name in ITERATOR_MAKERS or name in self._generators
        if makes_iterator and role is not _Role.CONSUMED:
            raise _Alone("has an iterator for a value")
        if member in (("functools", "lru_cache"), ("functools", "cache")):
            raise _Alone("has a function for a value")
        if member == ("functools", "cmp_to_key") and role is not _Role.KEY:
            raise _Alone("has a function for a value")
        if member == ("operator", "itemgetter") and role not in (_Role.KEY, _Role.CALLBACK):
            raise _Alone("has a function for a value")
        if member[0] == "re" and member in ONLY_CALLED and role not in (_Role.COMPARED, _Role.TESTED):
            raise _Alone("has a match for a value")
        if member == ("copy", "deepcopy") and (
            len(node.args) != 1 or node.keywords or isinstance(node.args[0], ast.Starred)
        ):
            raise _Alone("copies with a table of addresses")
        method = node.func.attr if member == ("", "") and isinstance(node.func, ast.Attribute) else ""
        if method in ("items", "keys", "values") and role not in (_Role.CONSUMED, _Role.COMPARED):
            if method == "values":
                raise _Alone("has a view of values for a value")
            self._keeps_views = True
        if member == ("", "") and name == "type" and not (role is _Role.COMPARED and len(node.args) == 1):
            raise _Alone("uses type() for more than a comparison")

    def _role_of(self, node: ast.Call, name: str, place: int) -> _Role:
        """Of an argument; `name` is what is called, where it is known."""
        if isinstance(node.func, ast.Attribute) and not name:
            return _Role.CONSUMED if node.func.attr in CONSUMING_METHODS else _Role.VALUE
        if name == "bool":
            return _Role.TESTED
        if place == 0 and name in CALLBACKS:
            return _Role.CALLBACK
        if name in CONSUMERS_OF_ALL:
            return _Role.CONSUMED
        if any(isinstance(argument, ast.Starred) for argument in node.args[:place]):
            return _Role.VALUE
        if name in ("min", "max") and len(node.args) > 1:  # it returns one of them
            return _Role.VALUE
        places = 1 if name in CONSUMERS_OF_SECOND else 0 if name in CONSUMERS else None
        return _Role.CONSUMED if place == places else _Role.VALUE

    def _callee(self, called: ast.expr) -> None:
        """What is called, unless it is written `module.member`."""
        match called:
            case ast.Name():
                self._name(called, _Role.CALLED)
            case ast.Attribute(value=value, attr="format"):
                if not (isinstance(value, ast.Constant) and isinstance(value.value, str) and _is_plain(value.value)):
                    raise _Alone("formats a text that is made at run time")
            case ast.Attribute(value=ast.Name(id=name)) if name in self._modules:
                raise _Alone(f"uses {self._modules[name]}.{called.attr}")
            case ast.Attribute(value=value, attr=method):
                if method not in METHODS:
                    raise _Alone(f"calls a method {method}")
                self._expression(value, _Role.TESTED)
            case _:
                raise _Alone("calls what is no name")


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


def _pairs(node: ast.Assign) -> list[tuple[str, str]]:
    """(name, other name) of an assignment that gives what one name stands for to another, one by one."""
    match node:
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Name(id=known)):
            return [(name, known)]
        case ast.Assign(targets=[ast.Tuple(elts=names) | ast.List(elts=names)], value=ast.Tuple(elts=values)):
            if len(names) == len(values) and all(isinstance(name, ast.Name) for name in names):
                couples = zip(names, values, strict=True)
                return [(a.id, b.id) for a, b in couples if isinstance(a, ast.Name) and isinstance(b, ast.Name)]
    return []
