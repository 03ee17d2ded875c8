"""What a test is given beside its own text: pytest's fixtures and rows of parameters, and what a class of tests keeps
for its methods. Plain syntax trees in and out, and nothing is evaluated.

    @pytest.fixture                                @pytest.fixture(params=[1, 2])
    def numbers(): return [3, 1, 2]                def size(request): return request.param

    self.items = [1, 2]      in `setUp`: in every method `self.items` stands for it, made anew for each
    books = ["Emma"]         in the class: likewise `self.books`

A fixture's `yield` gives a value as `return` does: the value is an expression of its body, with its names in place,
behind the statements before it. An attribute that a class keeps becomes a name of its own, `self.items`, which no other
name is like; what keeps it stands before the method's body. Does not know what a class inherits.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice, product, takewhile

from codea1_env.reading.inlining import SuiteNames
from codea1_env.reading.parsing import SourceText
from codea1_env.reading.pure_expressions import Reason, Rejected, known_name
from codea1_env.reading.steps import Steps
from codea1_env.reading.wide.displays import Rows, table
from codea1_env.reading.wide.statements import Statements, targets_of
from codea1_env.reading.wide.trees import last_name

MAX_LEVELS = 12
"""Of functions or fixtures that ask for each other, and blocks inside blocks."""
_VISIT = 8
"""Steps of a parameter that may be a fixture."""
_PARAM = "param"
"""What a fixture calls the parameter of its `request`."""
_OPTIONS = frozenset(("autouse", "ids", "name", "params", "scope"))


@dataclass(slots=True)
class _Fixture:
    node: ast.FunctionDef
    source: SourceText
    params: ast.expr | None
    """The table of what `request.param` is, one by one, where there is one."""
    is_open: bool = False
    """It is being read: one that needs itself is not followed."""


@dataclass(slots=True)
class Fixtures:
    """The fixtures of one suite that tests can name where it is read now."""

    names: SuiteNames
    statements: Statements
    value_of: Callable[[Sequence[ast.stmt], SourceText], ast.expr]
    """What a body gives at its end; raises Rejected."""
    inlined: Callable[[ast.expr], ast.expr]
    """Puts names in place; raises Rejected."""
    own: Callable[[str], ast.expr | None]
    """What one of pytest's own gives; None for another name."""
    _known: dict[str, _Fixture] = field(default_factory=dict, init=False)
    _level: int = field(default=0, init=False)
    _varied: set[str] = field(default_factory=set, init=False)
    """Fixtures with parameters that the test asks for, itself or by others."""

    def add(self, node: ast.FunctionDef, source: SourceText) -> None:
        """Know a function as a fixture, if it is one that says no more than is known here."""
        decorators = node.decorator_list
        if not is_fixture(node) or len(decorators) != 1:
            return
        named = {keyword.arg: keyword.value for keyword in getattr(decorators[0], "keywords", [])}
        name = named.get("name", ast.Constant(node.name))
        if set(named) <= _OPTIONS and isinstance(name, ast.Constant) and isinstance(name.value, str):
            self._known[name.value] = _Fixture(node, source, named.get("params"))

    @contextmanager
    def scope(self) -> Iterator[None]:
        """What is added inside, as in a class, is known until its end."""
        outside = dict(self._known)
        try:
            yield
        finally:
            self._known = outside

    def rows(self, parameters: Sequence[str]) -> Rows[Row]:
        """For each way to give the fixtures among a test's parameters: what these stand for. Raises TooMuch."""
        if not self._level:
            self._varied.clear()
        given = ((name, self._values(name)) for name in parameters)
        columns = [[{name: value} for value in values] for name, values in given if values is not None]
        return _combined(columns, self.statements.steps)

    def _values(self, name: str) -> list[ast.expr] | None:
        """What a fixture gives, one by one; None for what is no fixture, or one that is not plain to see."""
        self.statements.steps.take(_VISIT)
        fixture = self._known.get(name)
        if fixture is None and (own := self.own(name)) is not None:
            return [own]
        if fixture is None or fixture.is_open or self._level >= MAX_LEVELS or name in self._varied:
            return None  # the last: asked for twice, it has one value in each test
        if fixture.params is not None:
            self._varied.add(name)
        given = fixture.node.args
        needed = [each.arg for each in (*given.posonlyargs, *given.args) if each.arg not in ("self", "request")]
        fixture.is_open = True
        self._level += 1
        try:
            rows = self.rows(needed).rows
            is_known = all(set(needed) <= set(each) for each in rows)
            return [value for each in rows for value in self._given(fixture, each)] if is_known else None
        except Rejected:
            return None
        finally:
            fixture.is_open = False
            self._level -= 1

    def _given(self, fixture: _Fixture, needed: Row) -> Iterator[ast.expr]:
        """Raises Rejected."""
        body = fixture.node.body
        for param in [None] if fixture.params is None else _params(self.inlined(fixture.params)):
            with self.names.function(self.statements.own_names(fixture.node), is_nested=False):
                self.names.bind(needed.items())
                if param is not None:
                    self.names.bind_attributes("request", {_PARAM: param})
                yield self.value_of(body, fixture.source)


def is_fixture(node: ast.FunctionDef) -> bool:
    """Whether one of its decorators is pytest's, bare or called."""
    called = [each.func if isinstance(each, ast.Call) else each for each in node.decorator_list]
    return any(last_name(each) == "fixture" for each in called)


def _params(table_of: ast.expr) -> list[ast.expr]:
    """What a fixture's parameters are, names in place. Raises Rejected."""
    known = table(table_of)
    rows = [] if known is None or known.is_cut else [row([_PARAM], each, is_alone=True) for each in known.rows]
    if not rows or None in rows:
        raise Rejected(Reason.NOT_PLAIN_DATA)
    return [each[_PARAM] for each in rows if each is not None]


MAX_ROWS_OF_ALL = 256
"""Rows that several decorators make together: as many as a suite has tests that are read."""
Row = dict[str, ast.expr]


def rows_of(decorators: Sequence[ast.expr], inlined: Callable[[ast.expr], ast.expr], steps: Steps) -> Rows[Row] | None:
    """The rows of one test function; one empty row where it has no decorator. None where a decorator says something
    else. `inlined` puts names in place; raises Rejected. Raises TooMuch."""
    tables = [_rows(decorator, inlined) for decorator in reversed(decorators)]  # the nearest one varies slowest
    if None in tables:
        return None
    combined = _combined([each.rows for each in tables if each], steps)
    return Rows(combined.rows, combined.is_cut or any(each.is_cut for each in tables if each))


def _combined(columns: Sequence[Sequence[Row]], steps: Steps) -> Rows[Row]:
    """Every way to take a row of each, as one row. Raises TooMuch."""
    merged: list[Row] = []
    for rows in islice(product(*columns), MAX_ROWS_OF_ALL + 1):
        steps.take(len(rows) + sum(map(len, rows)))
        merged.append({name: value for each in reversed(rows) for name, value in each.items()})
    return Rows(tuple(merged[:MAX_ROWS_OF_ALL]), len(merged) > MAX_ROWS_OF_ALL)


def _rows(decorator: ast.expr, inlined: Callable[[ast.expr], ast.expr]) -> Rows[Row] | None:
    if not isinstance(decorator, ast.Call) or last_name(decorator.func) != "parametrize" or len(decorator.args) < 2:
        return None
    if any(keyword.arg not in ("ids", "scope") for keyword in decorator.keywords):  # `indirect` asks a fixture
        return None
    try:
        listed, values = (inlined(argument) for argument in decorator.args[:2])
    except Rejected:
        return None
    texts = listed.elts if isinstance(listed, ast.Tuple | ast.List) else [listed]
    written = [text.value for text in texts if isinstance(text, ast.Constant) and isinstance(text.value, str)]
    names = [part.strip() for text in written for part in text.split(",") if part.strip()]
    known = table(values)
    if known is None or not names:
        return None
    # `["x"]` takes rows of one value, `"x"` the value itself.
    is_alone = len(names) == 1 and isinstance(listed, ast.Constant)
    rows = [row(names, value, is_alone) for value in known.rows]
    readable = [each for each in rows if each is not None]
    return Rows(tuple(readable), known.is_cut) if len(readable) == len(rows) else None


def row(names: Sequence[str], value: ast.expr, is_alone: bool) -> Row | None:
    """What the names of one row stand for. None for a row that is marked, to be skipped perhaps."""
    if isinstance(value, ast.Call) and last_name(value.func) == "param":
        if any(keyword.arg != "id" for keyword in value.keywords):
            return None
        items: Sequence[ast.expr] = value.args
    elif is_alone:
        items = [value]
    else:
        items = value.elts if isinstance(value, ast.Tuple | ast.List) else []
    return dict(zip(names, items, strict=True)) if len(items) == len(names) else None


_BEFORE_ALL = ("setUpClass", "setup_class")
_BEFORE_EACH = ("setUp", "setup_method", "setup")
_OWNERS = ("self", "cls")


def helpers_of(node: ast.ClassDef) -> dict[str, ast.FunctionDef]:
    """Methods that are no tests, as functions without `self`, by their names. Changes the class's tree."""
    others = [each for each in node.body if isinstance(each, ast.FunctionDef) and not is_fixture(each)
              and not each.name.startswith("test") and each.name not in (*_BEFORE_ALL, *_BEFORE_EACH)]  # fmt: skip
    for each in others:
        if [known_name(decorator) for decorator in each.decorator_list] == ["staticmethod"]:
            each.decorator_list = []
        else:
            each.args.args = each.args.args[1:]
    return {each.name: each for each in others}


def with_setup(
    node: ast.ClassDef, methods: Sequence[ast.FunctionDef], helpers: Mapping[str, ast.FunctionDef]
) -> list[ast.FunctionDef]:
    """The methods with what is done before them. Changes the class's tree."""
    setups = [
        each for names in (_BEFORE_ALL, _BEFORE_EACH) for each in node.body
        if isinstance(each, ast.FunctionDef) and (each.name in names or (names is _BEFORE_EACH and _is_for_all(each)))
    ]  # fmt: skip
    own = [each for each in node.body if isinstance(each, ast.Assign | ast.AnnAssign) and each.value is not None]
    kept = {target.id for each in own for target in targets_of(each) if isinstance(target, ast.Name)}
    as_names = _Attributes(node.name, kept | {*helpers} | {name for setup in setups for name in _kept_by(setup)})
    if not as_names.kept and not setups:
        return list(methods)
    before: list[ast.stmt] = [as_names.of_class(each) for each in own]
    before += [as_names.visit(statement) for setup in setups for statement in takewhile(_is_before, setup.body)]
    for helper in helpers.values():
        as_names.visit(helper)
    for method in map(as_names.visit, methods):
        method.body = [*before, *method.body]
    return list(methods)


def _is_for_all(node: ast.FunctionDef) -> bool:
    """Whether it is a fixture that every test has, and that needs no other one: `@pytest.fixture(autouse=True)`."""
    match node.decorator_list, node.args.args:
        case [ast.Call(args=[], keywords=[ast.keyword(arg="autouse", value=ast.Constant(value=True))])], [_]:
            return is_fixture(node)
    return False


def _is_before(statement: ast.stmt) -> bool:
    return not isinstance(getattr(statement, "value", None), ast.Yield)


def _kept_by(setup: ast.FunctionDef) -> set[str]:
    """The attributes of its object that it gives a value."""
    stored = [node for node in ast.walk(setup) if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)]
    return {node.attr for node in stored if isinstance(node.value, ast.Name) and node.value.id in _OWNERS}


class _Attributes(ast.NodeTransformer):
    """Puts names in the place of what a class keeps."""

    def __init__(self, owner: str, kept: set[str]) -> None:
        self._owners = (*_OWNERS, owner)
        self.kept = kept

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if isinstance(node.value, ast.Name) and node.value.id in self._owners and node.attr in self.kept:
            return ast.copy_location(ast.Name(_name(node.attr), node.ctx), node)
        return self.generic_visit(node)

    def of_class(self, statement: ast.Assign | ast.AnnAssign) -> ast.stmt:
        """A statement of the class's own body, behind which its names are attributes."""
        pairs = [ast.Name(_name(each.id), each.ctx) if isinstance(each, ast.Name) else each
                 for each in targets_of(statement)]  # fmt: skip
        assert statement.value is not None
        return ast.copy_location(ast.Assign(pairs, statement.value), statement)


def _name(attribute: str) -> str:
    return f"self.{attribute}"
