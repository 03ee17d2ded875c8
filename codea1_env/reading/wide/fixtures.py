"""pytest's fixtures: what a parameter of a test stands for, where a fixture gives a value that is plain to see.

    @pytest.fixture                                @pytest.fixture(params=[1, 2])
    def numbers(): return [3, 1, 2]                def size(request): return request.param

`yield` gives a value as `return` does. Who reads a suite evaluates nothing: the value is an expression of the fixture's
body, with its names in place, behind the statements before it. Does not know pytest's own fixtures, as `tmp_path`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice, product

from codea1_env.reading.inlining import SuiteNames
from codea1_env.reading.parsing import SourceText
from codea1_env.reading.pure_expressions import Reason, Rejected
from codea1_env.reading.wide.displays import table
from codea1_env.reading.wide.parametrized import MAX_ROWS_OF_ALL, Row, Rows, name_of, row
from codea1_env.reading.wide.statements import Statements

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
    _known: dict[str, _Fixture] = field(default_factory=dict, init=False)

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

    def rows(self, parameters: Sequence[str]) -> Rows:
        """For each way to give the fixtures among a test's parameters: what these stand for. Raises TooMuch."""
        columns = [(name, values) for name in parameters if (values := self._values(name)) is not None]
        if not columns:
            return Rows(({},), False)
        combined = list(islice(product(*(values for _, values in columns)), MAX_ROWS_OF_ALL + 1))
        self.statements.steps.take(len(combined) * (1 + len(columns)))
        rows: list[Row] = [{name: value for (name, _), value in zip(columns, each, strict=True)} for each in combined]
        return Rows(tuple(rows[:MAX_ROWS_OF_ALL]), len(rows) > MAX_ROWS_OF_ALL)

    def _values(self, name: str) -> list[ast.expr] | None:
        """What a fixture gives, one by one; None for what is no fixture, or one that is not plain to see."""
        fixture = self._known.get(name)
        if fixture is None or fixture.is_open:
            return None
        given = fixture.node.args
        needed = [each.arg for each in (*given.posonlyargs, *given.args) if each.arg not in ("self", "request")]
        fixture.is_open = True
        try:
            rows = self.rows(needed).rows
            is_known = all(set(needed) <= set(each) for each in rows)
            return [value for each in rows for value in self._given(fixture, each)] if is_known else None
        except Rejected:
            return None
        finally:
            fixture.is_open = False

    def _given(self, fixture: _Fixture, needed: Row) -> Iterator[ast.expr]:
        """Raises Rejected."""
        body = fixture.node.body
        for param in [None] if fixture.params is None else _params(self.inlined(fixture.params)):
            with self.names.function(is_nested=False):
                self.names.bind(needed.items(), is_inlined=True)
                if param is not None:
                    self.names.bind_attributes("request", {_PARAM: param})
                yield self.value_of(body, fixture.source)


def is_fixture(node: ast.FunctionDef) -> bool:
    """Whether one of its decorators is pytest's, bare or called."""
    called = [each.func if isinstance(each, ast.Call) else each for each in node.decorator_list]
    return any(name_of(each) == "fixture" for each in called)


def _params(table_of: ast.expr) -> list[ast.expr]:
    """What a fixture's parameters are, names in place. Raises Rejected."""
    known = table(table_of)
    rows = [] if known is None or known.is_cut else [row([_PARAM], each, is_alone=True) for each in known.rows]
    if not rows or None in rows:
        raise Rejected(Reason.NOT_PLAIN_DATA)
    return [each[_PARAM] for each in rows if each is not None]
