"""What holds of a statement however often it is gone through, found once: its size, what it may leave, what it hides.

Plain facts of syntax trees. Does not know what a name stands for.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence

from codea1_env.reading.parsing import names_in
from codea1_env.reading.pure_expressions import given_in, known_name, parameters_of
from codea1_env.reading.steps import Steps, steps_of
from codea1_env.reading.wide import trees

LEAVES = ("", "continue", "break", "return")
"""How a statement may end the ones behind it: not at all, in this row of a loop, in all rows, or in the function."""
_VISIT = 16
"""Steps of a visit beside those of the nodes."""
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_SCOPES = (*DEFINITIONS, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_WITH_STATEMENTS = (ast.stmt, ast.excepthandler, ast.match_case)


class Statements:
    """Facts about the statements of one suite. Every method may raise TooMuch."""

    __slots__ = ("_asserting", "_leaves", "_own", "_sizes", "steps")

    def __init__(self, steps: Steps) -> None:
        self.steps = steps
        self._sizes: dict[ast.stmt, int] = {}
        self._leaves: dict[ast.stmt, str] = {}
        self._own: dict[ast.stmt, frozenset[str]] = {}
        self._asserting: dict[ast.stmt, tuple[ast.stmt, ...]] = {}

    def charge(self, statement: ast.stmt) -> None:
        """Take the steps of one visit: all that stands in the statement but inside of the statements in it."""
        if statement not in self._sizes:
            self._sizes[statement] = sum(self._sizes_in(statement))
        self.steps.take(_VISIT + self._sizes[statement])

    def _sizes_in(self, statement: ast.stmt) -> Iterator[int]:
        left: list[ast.AST] = [statement]
        while left:
            self.steps.take()
            node = left.pop()
            yield steps_of(node)
            if node is statement or not isinstance(node, ast.stmt):
                left += ast.iter_child_nodes(node)

    def own_names(self, function: ast.FunctionDef) -> frozenset[str]:
        """The names that are a function's own: parameters, and what it binds itself."""
        return self.bound_in(function) | {each.arg for each in parameters_of(function.args)}

    def bound_in(self, function: ast.FunctionDef) -> frozenset[str]:
        """The names that a function binds itself; not what is bound in a function or a comprehension inside, for that
        is another name there."""
        if function not in self._own:
            bound, others = set[str](), set[str]()
            left: list[ast.AST] = [*function.body]
            while left:
                self.steps.take()
                node = left.pop()
                if isinstance(node, ast.Global | ast.Nonlocal):
                    others.update(node.names)
                elif isinstance(node, ast.alias):
                    bound.add((node.asname or node.name).split(".")[0])
                elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
                    bound.add(node.id)
                elif isinstance(name := getattr(node, "name", None) or getattr(node, "rest", None), str):
                    bound.add(name)
                left += [] if isinstance(node, _SCOPES) else ast.iter_child_nodes(node)
            self._own[function] = frozenset(bound - others)
        return self._own[function]

    def leaves(self, statement: ast.stmt) -> str:
        """Which of LEAVES a statement that is not read may take. An error that it may raise is no way of passing."""
        if statement not in self._leaves:
            self._leaves[statement] = max(self._leaves_in(statement), key=LEAVES.index)
        return self._leaves[statement]

    def _leaves_in(self, statement: ast.stmt) -> Iterator[str]:
        yield ""
        left: list[tuple[ast.AST, bool]] = [(statement, False)]
        while left:
            self.steps.take()
            node, is_in_loop = left.pop()
            is_skip = isinstance(node, ast.Expr) and skips(node)
            if is_skip or isinstance(node, ast.Return) or (node is statement and isinstance(node, ast.Raise)):
                yield "return"
            elif isinstance(node, ast.Break | ast.Continue) and not is_in_loop:
                yield "break" if isinstance(node, ast.Break) else "continue"
            elif isinstance(node, _WITH_STATEMENTS) and not isinstance(node, DEFINITIONS):
                is_loop = isinstance(node, ast.For | ast.AsyncFor | ast.While)
                for name, value in ast.iter_fields(node):
                    # The `else` of a loop is no part of it: a `break` there leaves the loop around it.
                    is_inside = is_in_loop or (is_loop and name == "body")
                    left += [(child, is_inside) for child in value or ()] if isinstance(value, list) else []

    def asserting_behind(self, body: Sequence[ast.stmt], place: int) -> Sequence[ast.stmt]:
        """The statements behind this one that have an assert in them. They are charged each time."""
        statement = body[place]
        if statement not in self._asserting:
            self._asserting[statement] = tuple(filter(self._asserts, body[place + 1 :]))
        self.steps.take(len(self._asserting[statement]))
        return self._asserting[statement]

    def _asserts(self, statement: ast.stmt) -> bool:
        for node in ast.walk(statement):
            self.steps.take()
            if isinstance(node, ast.Assert):
                return True
        return False


def skips(statement: ast.Expr) -> bool:
    """Whether it ends the test as neither passed nor failed."""
    return isinstance(statement.value, ast.Call) and known_name(statement.value.func) in (
        "pytest.skip",
        "self.skipTest",
    )


def targets_of(statement: ast.Assign | ast.AnnAssign) -> list[ast.expr]:
    """What gets a value."""
    return statement.targets if isinstance(statement, ast.Assign) else [statement.target]


def is_main(statement: ast.If) -> bool:
    """Whether it is `if __name__ == "__main__":`."""
    test = statement.test
    if not isinstance(test, ast.Compare) or not isinstance(test.ops[0], ast.Eq) or statement.orelse:
        return False
    return "__name__" in names_in(test)


def grown_in(statement: ast.stmt) -> list[str]:
    """The names of lists that get items by `append` in a statement, and change in no other way there."""
    owners = [
        node.func.value
        for node in ast.walk(statement)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("append", "extend")
    ]
    appended = dict.fromkeys(owner.id for owner in owners if isinstance(owner, ast.Name))
    others = [node.id for node in ast.walk(statement) if isinstance(node, ast.Name) and node not in owners]
    return [name for name in appended if name not in others]


def unpacked(target: ast.expr, call: ast.expr) -> list[tuple[str, ast.expr]] | None:
    """Each name of `a, b = call` with what it stands for, as `(lambda a, b: a)(*call)`: as many items as there are
    names, and no more. None for other targets."""
    if not isinstance(target, ast.Tuple | ast.List) or not all(isinstance(part, ast.Name) for part in target.elts):
        return None
    names = [part.id for part in target.elts if isinstance(part, ast.Name)]
    own = [name.replace(".", "_") for name in names]  # `self.x` is a name of the suite, and none of a parameter
    if len({*own}) < len(own):  # `_, _, x = f(1)`
        own = [f"{name}_{place}" for place, name in enumerate(own)]
    if not names or len({*own}) < len(own):
        return None
    return [
        (name, ast.Call(trees.function(trees.name(each), *own), [ast.Starred(call, ast.Load())], []))
        for name, each in zip(names, own, strict=True)
    ]


def unpacking(node: ast.Call) -> tuple[ast.expr, int, int] | None:
    """What such an expression takes apart, the place of the item, and how many there must be; None for others."""
    match node:
        case ast.Call(
            func=ast.Lambda(
                args=ast.arguments(posonlyargs=[], args=given, vararg=None, kwonlyargs=[], kwarg=None, defaults=[]),
                body=ast.Name(id=name),
            ),
            args=[ast.Starred(value=value)],
            keywords=[],
        ) if name in (names := [each.arg for each in given]):
            return value, names.index(name), len(names)
    return None


def as_code(node: ast.FunctionDef, decorates: Callable[[ast.expr], bool] = lambda _: False) -> ast.expr | None:
    """A function that does nothing but return an expression, as an argument that is code, or what the program makes of
    that as its decorator; None for another one."""
    body = [each for each in node.body if not (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant))]
    if len(body) != 1 or not isinstance(body[0], ast.Return) or body[0].value is None:
        return None
    if not all(map(decorates, node.decorator_list)):
        return None
    for parameter in parameters_of(node.args):
        parameter.annotation = None
    made: ast.expr = ast.Lambda(node.args, body[0].value)
    for decorator in reversed(node.decorator_list):
        made = ast.Call(decorator, [made], [])
    return made


class _Waiting(ast.NodeTransformer):
    """Writes asynchronous functions as plain ones. `own`: the names of those of the suite."""

    def __init__(self, own: frozenset[str]) -> None:
        self._own = own

    def _is_own(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in self._own

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        decorators = [each for each in node.decorator_list if not _is_waited_for(each)]
        made = ast.FunctionDef(node.name, node.args, node.body, decorators, node.returns)
        return self.generic_visit(ast.copy_location(made, node))

    def visit_Await(self, node: ast.Await) -> ast.AST:
        return self.visit(self._run(node.value))  # type: ignore[no-any-return]  # an expression

    def visit_Call(self, node: ast.Call) -> ast.AST:
        is_run = len(node.args) == 1 and known_name(node.func) == "asyncio.run"
        node = node.args[0] if is_run and self._is_own(node.args[0]) else node  # type: ignore[assignment]  # a Call
        called, is_own = node.func, self._is_own(node)
        self.generic_visit(node)
        node.func = called if is_own else node.func
        return node

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """A function that is given to the program is no plain one: `f(fetch)` is not read."""
        return trees.name(_GIVEN) if node.id in self._own else node

    def _run(self, node: ast.expr) -> ast.expr:
        """`asyncio.run` of it; of each where they are gathered."""
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="asyncio"), attr="gather"), args=given, keywords=[]):
                match given:
                    case [ast.Starred(value=ast.ListComp() | ast.GeneratorExp() as made)]:
                        return ast.ListComp(self._run(made.elt), made.generators)
                return trees.listed(map(self._run, given))
        return node if self._is_own(node) else ast.copy_location(trees.call("asyncio.run", node), node)


_GIVEN = "_async_function"
"""A name that nothing has."""


def _is_waited_for(decorator: ast.expr) -> bool:
    """Whether it is a mark of pytest's plugins for asynchronous tests, without options."""
    is_called = isinstance(decorator, ast.Call) and not given_in(decorator)
    marked = decorator.func if is_called else decorator  # type: ignore[attr-defined]  # a Call
    return known_name(marked) in ("pytest.mark.asyncio", "pytest.mark.anyio")


def waiting(module: ast.Module) -> ast.Module:
    """With plain functions in the place of asynchronous ones: `await f(x)` is `asyncio.run(f(x))` there."""
    own = frozenset(each.name for each in ast.walk(module) if isinstance(each, ast.AsyncFunctionDef))
    return _Waiting(own).visit(module)  # type: ignore[no-any-return]  # a module stays one
