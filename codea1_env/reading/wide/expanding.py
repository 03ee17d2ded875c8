"""What a suite's own lambdas and comprehensions over tables say, written out: without evaluating anything.

    (lambda a, b: a == f(b))(1, 2)          1 == f(2)
    [f(n) for n in (1, 2)], map(f, (1, 2))  [f(1), f(2)]
    [n for n in (1, 2) if f(n)]             [n for (n, given_0) in [(1, f(1)), (2, f(2))] if given_0]

and the parts of a claim that hold one by one: of `all([...])`, `not any([...])`, `[f(1), f(2)] == [3, 4]`. Leaves alone
what calls the entry point nowhere, or with what is no row of a table; and what `questions.py` calls an object.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from codea1_env.reading import grammar
from codea1_env.reading.parsing import copied, dump_of, names_in
from codea1_env.reading.pure_expressions import known_name
from codea1_env.reading.steps import Steps
from codea1_env.reading.wide import questions, trees
from codea1_env.reading.wide.displays import table
from codea1_env.reading.wide.looking import MAX_CALLS

_Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
_SCOPES = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Lambda)
_GIVEN = "given_"
"""Begins the names of what calls come to in the rows of a comprehension."""


class Expanded(ast.NodeTransformer):
    """Writes out one condition, all names in it inlined. Every method may raise TooMuch."""

    def __init__(self, entry_point: str, steps: Steps) -> None:
        self._entry_point, self._steps = entry_point, steps

    def of(self, condition: ast.expr) -> ast.expr:
        """The condition itself where there is nothing to write out."""
        nodes = list(ast.walk(condition))
        self._steps.take(len(nodes))
        may_be = any(isinstance(node, _SCOPES) or _is_map(node) for node in nodes)
        if not may_be or not grammar.mentions(condition, self._entry_point):
            return condition
        return self.visit(copied(condition))  # type: ignore[no-any-return]  # an expression stays one

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if questions.is_question(node, self._entry_point):
            return node
        self.generic_visit(node)
        if isinstance(node.func, ast.Lambda) and (body := self._applied(node.func, node)) is not None:
            return self.visit(body)  # type: ignore[no-any-return]
        if _is_map(node) and grammar.mentions(node.args[0], self._entry_point):
            item = trees.name(f"{_GIVEN}item")
            made: ast.expr = ast.Call(node.args[0], [item], [])
            if isinstance(node.args[0], ast.Lambda):
                made = self.visit(made)
            conditions, made = ([], made) if node.func.id == "map" else ([made], item)  # type: ignore[attr-defined]
            clause = ast.comprehension(ast.Name(item.id, ast.Store()), node.args[1], conditions, 0)
            return self._written_out(ast.GeneratorExp(made, [clause]))
        if isinstance(node.func, ast.Name) and len(node.args) == 1 and not node.keywords:
            given = node.args[0]
            if node.func.id in ("list", "tuple") and isinstance(given, ast.List):
                return given if node.func.id == "list" else trees.tupled(*given.elts)
        return node

    def _comprehension(self, node: _Comprehension) -> ast.AST:
        self.generic_visit(node)
        return self._written_out(node)

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension

    def _written_out(self, node: _Comprehension) -> ast.expr:
        """A display of what a comprehension makes of each row; itself where its rows are not known or need no call."""
        clause = node.generators[0]
        made = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        inside = [*made, *clause.ifs]
        names = {*names_in(clause.target)}
        calls = [call for each in inside for call in self._calls(each) if names & {*names_in(call)}]
        if len(node.generators) > 1 or not calls or clause.is_async:
            return node
        rows = table(clause.iter, MAX_CALLS)
        bound = None if rows is None or rows.is_cut else [bound_in(clause.target, row) for row in rows.rows]
        if not bound or None in bound or any(_binds(each, {*(bound[0] or ())}) for each in inside):
            return node
        self._steps.take(len(bound) * sum(1 for each in inside for _ in ast.walk(each)))
        written = [{**each} for each in bound if each is not None]
        if clause.ifs:
            return self._filtered(node, written, calls)
        rows_made = [[put(part, each) for part in made] for each in written]
        if isinstance(node, ast.DictComp):
            return ast.Dict([key for key, _ in rows_made], [value for _, value in rows_made])
        items = [item for (item,) in rows_made]
        return ast.Set(items) if isinstance(node, ast.SetComp) else trees.listed(items)

    def _filtered(self, node: _Comprehension, rows: list[dict[str, ast.expr]], calls: list[ast.Call]) -> ast.expr:
        """The comprehension over rows that hold what its calls come to."""
        clause, names = node.generators[0], list(rows[0])
        given = [f"{_GIVEN}{number}" for number in range(len(calls))]
        values = [trees.tupled(*row.values(), *(put(call, row) for call in calls)) for row in rows]
        named = dict(zip(map(dump_of, calls), given, strict=True))
        instead = {id(call): trees.name(named[dump_of(call)]) for call in calls}
        clause.ifs = [copied(each, instead) for each in clause.ifs]
        for field in ("elt", "key", "value"):
            if hasattr(node, field):
                setattr(node, field, copied(getattr(node, field), instead))
        clause.target = ast.Tuple([ast.Name(name, ast.Store()) for name in (*names, *given)], ast.Store())
        clause.iter = trees.listed(values)
        return node

    def _calls(self, node: ast.expr) -> list[ast.Call]:
        """The calls of the entry point, and questions, that stand in it."""
        name = self._entry_point
        if isinstance(node, ast.Call) and (grammar.is_call(node, name) or questions.is_question(node, name)):
            return [node]
        return [call for child in ast.iter_child_nodes(node) for call in self._calls(child)]  # type: ignore[arg-type]

    def _applied(self, function: ast.Lambda, call: ast.Call) -> ast.expr | None:
        """What a lambda makes of its arguments; None where that is not plain to see."""
        given = function.args
        names = [each.arg for each in (*given.posonlyargs, *given.args)]
        more = (given.vararg, given.kwarg, *given.kwonlyargs, *given.defaults)
        if any(more) or call.keywords or len(names) != len(call.args) or any(map(is_starred, call.args)):
            return None
        if _binds(function.body, {*names, *names_in(*call.args)}):
            return None
        body = put(function.body, dict(zip(names, call.args, strict=True)))
        self._steps.take(sum(1 for _ in ast.walk(body)))
        return body


def parts(condition: ast.expr, entry_point: str) -> Iterator[ast.expr]:
    """What must hold one by one for the condition to hold: at least itself."""
    match condition:
        case ast.BoolOp(op=ast.And(), values=values):
            for value in values:
                yield from parts(value, entry_point)
            return
        case ast.Call(func=ast.Name(id="all"), args=[ast.List(elts=[_, *_] as items)], keywords=[]):
            for item in items:
                yield from parts(item, entry_point)
            return
        case ast.UnaryOp(
            op=ast.Not(), operand=ast.Call(func=ast.Name(id="any"), args=[ast.List(elts=[_, *_] as items)], keywords=[])
        ):
            for item in items:
                yield ast.UnaryOp(ast.Not(), item)
            return
        case ast.Compare(left=left, ops=[ast.Eq()], comparators=[right]):
            pairs = _paired(left, right, entry_point)
            if pairs is not None:
                yield from pairs
                return
        case ast.Compare(left=left, ops=[_, _, *_] as operators, comparators=more) if all(
            isinstance(operator, ast.Eq) for operator in operators
        ):  # `f(1) == f(2) == [9]`
            asked = {dump_of(side): side for side in (left, *more) if grammar.mentions(side, entry_point)}
            stated = [side for side in (left, *more) if not grammar.mentions(side, entry_point)]
            if len(stated) == 1 and len(asked) == len(more):
                yield from (ast.Compare(side, [ast.Eq()], stated) for side in asked.values())
                return
    yield condition


def _paired(left: ast.expr, right: ast.expr, entry_point: str) -> list[ast.expr] | None:
    """The equalities of two displays' items; None for other sides."""
    rows: list[tuple[ast.expr, ast.expr]] = []
    match left, right:
        case ast.List(elts=ones), ast.Call(func=approx, args=[ast.List(elts=others), *more], keywords=keywords) if (
            known_name(approx) in ("approx", "pytest.approx")
        ):
            near = [ast.Call(approx, [other, *more], keywords) for other in others]
            rows = list(zip(ones, near, strict=True)) if len(ones) == len(near) else []
        case (ast.List(elts=ones), ast.List(elts=others)) | (ast.Tuple(elts=ones), ast.Tuple(elts=others)):
            rows = list(zip(ones, others, strict=True)) if len(ones) == len(others) else []
        case ast.Dict(values=ones), ast.Dict(values=others):
            keys, other_keys = ([dump_of(key) if key else "" for key in each.keys] for each in (left, right))
            known = dict(zip(other_keys, others, strict=True))
            if len({*keys}) == len(keys) == len(other_keys) and {*keys} == {*known}:
                rows = [(one, known[key]) for key, one in zip(keys, ones, strict=True)]
    asked = [(one, other) for one, other in rows if dump_of(one) != dump_of(other)]
    if not asked or not all(
        grammar.mentions(one, entry_point) or grammar.mentions(other, entry_point) for one, other in asked
    ):
        return None
    return [ast.Compare(one, [ast.Eq()], [other]) for one, other in asked]


def _is_map(node: ast.AST) -> bool:
    is_named = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("map", "filter")
    return is_named and len(node.args) == 2  # type: ignore[attr-defined]  # a Call


def is_starred(node: ast.expr) -> bool:
    """Whether it is `*x`."""
    return isinstance(node, ast.Starred)


def bound_in(target: ast.expr, row: ast.expr) -> dict[str, ast.expr] | None:
    """What the names of a target stand for in a row; None where that is not plain to see."""
    if isinstance(target, ast.Name):
        return {target.id: row}
    if not isinstance(target, ast.Tuple | ast.List) or not isinstance(row, ast.Tuple | ast.List):
        return None
    if not target.elts or len(target.elts) != len(row.elts) or any(map(is_starred, (*target.elts, *row.elts))):
        return None
    found = [bound_in(*pair) for pair in zip(target.elts, row.elts, strict=True)]
    return None if None in found else {name: value for each in found for name, value in (each or {}).items()}


def _binds(node: ast.AST, names: set[str]) -> bool:
    """Whether something in it binds one of these names."""
    return any(
        each.arg in names if isinstance(each, ast.arg) else each.id in names
        for each in ast.walk(node)
        if isinstance(each, ast.arg) or (isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store))
    )


def put(node: ast.expr, known: Mapping[str, ast.expr]) -> ast.expr:
    """A copy with these names in place."""
    names = [each for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load)]
    return copied(node, {id(each): known.get(each.id) for each in names})
