"""Which company a program's calls may have, decided from its text alone, before anything of it runs.

`company` reads the syntax tree against an allow-list: statements, names, attributes *per module*, methods. What the
list does not know makes a program run each of its calls in a process of its own. Three answers:

    SHARED    nothing outlives a call: one process, one loaded module for all calls
    RELOADED  what outlives a call lies in the module's own namespace: one process, the module executed anew for each
    call ALONE     everything else: a process for each call

Programs in the first two can hold no module, class, frame or context of the interpreter, store no attribute and read
none by a name that is made at run time; nor can they see an address (`id`, `hash`, the text of a function or of an
iterator, a set of types), how much memory or stack is left, a clock, a process number or chance. Errs towards ALONE,
which only costs time. Does not look at what a call should return: no module that compares values is imported here or
decides what runs.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Sequence

from codea1_env.judging.purity.expressions import Expressions, Role
from codea1_env.judging.purity.module_state import holds_state
from codea1_env.judging.purity.names import EXCEPTIONS, OF_WHOLE_NUMBERS
from codea1_env.judging.purity.scope import Alone, Scope, pairs
from codea1_env.reading.parsing import Unparsable, parse
from codea1_env.sandbox.protocol import Company

_MAX_CHARACTERS = 1 << 16
"""Longest program that is looked at."""
_EXHAUSTED = (
    "BaseException", "Exception", "MemoryError", "RuntimeError", "RecursionError", "GeneratorExit", "ImportError",
    "ModuleNotFoundError", "OSError", "EnvironmentError", "IOError", "SystemError",
)  # fmt: skip
"""What tells a program that memory or stack is exhausted: an import fails then, and a generator that is let go of
swallows what its code raises."""


def company(source: str) -> Company:
    """The most company that the calls of the program `source` may have."""
    return _decided(source)[0]


def makes_sets(source: str) -> bool:
    """Whether the program may make sets, or add to some. False for one that runs each call alone."""
    return _decided(source)[2]


def alone_because(source: str) -> str:
    """Why the program runs each call alone, in a few words; "" where it need not."""
    return _decided(source)[1]


@functools.lru_cache(maxsize=4096)
def _decided(source: str) -> tuple[Company, str, bool]:
    if len(source) > _MAX_CHARACTERS:
        return Company.ALONE, "too long to be read", False
    try:
        module = parse(source)
    except Unparsable:
        return Company.ALONE, "does not parse", False
    try:
        nodes = list(ast.walk(module))
        has_sets = _Reader(module, nodes).read()
    except Alone as reason:
        return Company.ALONE, str(reason), False
    except RecursionError:
        return Company.ALONE, "too deep to be read", False
    return (Company.RELOADED if holds_state(module, nodes) else Company.SHARED), "", has_sets


class _Reader:
    """Reads one module against the allow-list; `read` raises Alone at the first thing that is not on it."""

    def __init__(self, module: ast.Module, nodes: Sequence[ast.AST]) -> None:
        """`nodes`: all of the module's."""
        self._module, self._nodes = module, nodes
        self._scope = Scope(nodes)
        self._expressions = Expressions(self._scope)

    def read(self) -> bool:
        """Whether the program may make sets."""
        self._statements(self._module.body)
        has_sets = self._expressions.keeps_views or any(map(self._makes_set, self._nodes))
        if has_sets and any(map(self._makes_float, self._nodes)):
            raise Alone("may have a set with a NaN, whose hash is its address")
        return has_sets

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
            case ast.Name(id=name) if name in ("float", "complex", "pow") or name in self._scope.shadowed:
                return True
            case ast.Name() | ast.Attribute():
                module, name = self._scope.member(node)
                return (module in ("math", "cmath", "decimal", "statistics") and name not in OF_WHOLE_NUMBERS) or (
                    module == "operator" and name in ("pow", "truediv")
                )
        return False

    def _statements(self, body: list[ast.stmt]) -> None:
        for node in body:
            self._statement(node)

    def _statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Import() | ast.ImportFrom() | ast.Pass() | ast.Break() | ast.Continue():
                pass
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                for name in names:
                    self._scope.check_spelling(name)
            case ast.FunctionDef():
                self._function(node)
            case ast.Return(value=value) | ast.Expr(value=value):
                self._expressions.optional(value)
            case ast.Delete(targets=targets):
                for target in targets:
                    self._expressions.target(target)
            case ast.Assign(targets=targets, value=value):
                self._assign(targets, value)
            case ast.AugAssign(target=target, value=value):
                self._expressions.target(target)
                self._expressions.read(value)
            case ast.AnnAssign(target=target, annotation=annotation, value=value):
                self._expressions.target(target)
                self._expressions.annotation(annotation)
                self._expressions.optional(value)
            case ast.For(target=target, iter=iterated):
                self._expressions.target(target)
                self._expressions.read(iterated, Role.CONSUMED)
                self._statements([*node.body, *node.orelse])
            case ast.While(test=test) | ast.If(test=test):
                self._expressions.read(test, Role.TESTED)
                self._statements([*node.body, *node.orelse])
            case ast.Raise(exc=error, cause=cause):
                self._raised(error)
                self._raised(cause)
            case ast.Assert(test=test, msg=message):
                self._expressions.read(test, Role.TESTED)
                self._expressions.optional(message)
            case ast.Try():
                self._try(node)
            case _:
                raise Alone(f"has a statement {type(node).__name__}")

    def _raised(self, node: ast.expr | None) -> None:
        """An exception, made or caught."""
        match node:
            case ast.Name(id=name) | ast.Call(func=ast.Name(id=name)) if name in EXCEPTIONS | self._scope.caught:
                if isinstance(node, ast.Call):
                    for argument in [*node.args, *(keyword.value for keyword in node.keywords)]:
                        self._expressions.read(argument)
            case _:
                self._expressions.optional(node)

    def _try(self, node: ast.Try) -> None:
        """How much memory and how deep a stack there is depends on what ran before: nobody catches the end of it."""
        if node.finalbody:
            raise Alone("has a finally block")  # what is raised there takes the place of what ended it
        self._statements([*node.body, *node.orelse])
        for handler in node.handlers:
            types = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
            for kind in types:
                if not (isinstance(kind, ast.Name) and kind.id in EXCEPTIONS and kind.id not in _EXHAUSTED):
                    raise Alone("may catch that memory or stack is exhausted")
            self._statements(handler.body)

    def _function(self, node: ast.FunctionDef) -> None:
        if getattr(node, "type_params", ()):
            raise Alone("has type parameters")
        for decorator in node.decorator_list:
            if not self._is_cache(decorator):
                raise Alone("has a decorated function")
        self._expressions.arguments(node.args)
        if node.returns is not None:
            self._expressions.annotation(node.returns)
        self._statements(node.body)

    def _is_cache(self, decorator: ast.expr) -> bool:
        """functools' caches, whose state lies in the function that they return."""
        if isinstance(decorator, ast.Call):
            if decorator.args and not all(isinstance(argument, ast.Constant) for argument in decorator.args):
                return False
            if not all(isinstance(keyword.value, ast.Constant) for keyword in decorator.keywords):
                return False
            decorator = decorator.func
        return self._scope.member(decorator) in (("functools", "lru_cache"), ("functools", "cache"))

    def _assign(self, targets: list[ast.expr], value: ast.expr) -> None:
        for target in targets:
            self._expressions.target(target)
        if isinstance(value, ast.Lambda) and len(targets) == 1 and isinstance(targets[0], ast.Name):
            self._expressions.read(value, Role.CALLED)
        elif len(targets) == 1 and isinstance(targets[0], ast.Tuple | ast.List) and isinstance(value, ast.Tuple):
            renamed = pairs(ast.Assign(targets, value))
            for item in value.elts:
                is_renamed = isinstance(item, ast.Name) and item.id in self._scope.functions and bool(renamed)
                self._expressions.read(item, Role.CALLED if is_renamed else Role.VALUE)
        elif len(targets) == 1 and isinstance(targets[0], ast.Tuple | ast.List):
            self._expressions.read(value, Role.CONSUMED)
        elif len(targets) == 1 and isinstance(value, ast.Name) and isinstance(targets[0], ast.Name):
            self._expressions.read(value, Role.CALLED if value.id in self._scope.functions else Role.VALUE)
        else:
            self._expressions.read(value)
