"""Suites as people and models write them: `fidelity="wide"`. Code -> tests and, by name, what was not read.

Beside top-level asserts it reads those

    inside `def test_...():`, methods `test_...` of classes, and functions that the suite itself calls, `check(f)` too
    under `if __name__ == "__main__":`, `with self.subTest(...):` and in blocks that are indented as a whole
    in loops over literal tables and under `pytest.mark.parametrize`, one test for each row
    with parameters that are fixtures of literals (`fixtures.py`)
    that are methods of unittest (`self.assertEqual(f(1), 2)`)

and names that are bound to literals, to rows or to a call. `assert a and b` is two tests. Each condition is an equality
or a relation (`relational_tests.py`); the former is exactly what strict reading makes of it. Nothing is executed: a
statement under `if`, `while` or `try` may never run, so it is not read. The work is bounded by MAX_TESTS and `Steps`,
whatever the tables multiply: a statement is charged with all that stands in it each time that it is gone through.
"""

from __future__ import annotations

import ast
import contextlib
import re
from collections import ChainMap, Counter
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from itertools import product

from codea1_env.reading.grammar import MAX_SOURCE, WrittenTest, is_call, mentions, rejected
from codea1_env.reading.inlining import SuiteNames
from codea1_env.reading.items import asserts_of_doctests, asserts_of_items
from codea1_env.reading.parsing import SourceText, Unparsable, copied, fragments, names_in, parse, unindented
from codea1_env.reading.pure_expressions import BUILTINS, Reason, Rejected, given_in, known_name
from codea1_env.reading.steps import Steps, TooMuch
from codea1_env.reading.suites import Ignored
from codea1_env.reading.wide import trees
from codea1_env.reading.wide.claims import RAISING, Said, TryStatement, condition_of, raising_condition, said_of, tried
from codea1_env.reading.wide.displays import Simplified, is_copy, is_simpler, table, truth, whole
from codea1_env.reading.wide.expanding import Expanded, bound_in, is_starred, parts
from codea1_env.reading.wide.fixtures import MAX_LEVELS, Fixtures, helpers_of, is_fixture, rows_of, with_setup
from codea1_env.reading.wide.objects import Objects, TakenItems, changing, is_drawn, is_next, next_of
from codea1_env.reading.wide.questions import is_made, is_of_class, others_in
from codea1_env.reading.wide.relation import FUNCTIONS
from codea1_env.reading.wide.relational_tests import ASSERTING, HOMES, IMPORTED, read_condition
from codea1_env.reading.wide.statements import (
    LEAVES,
    Statements,
    as_code,
    grown_in,
    is_main,
    skips,
    targets_of,
    unpacked,
    waiting,
)
from codea1_env.reading.wide.surroundings import Surroundings, where_nothing_is
from codea1_env.reading.wide.trees import last_name
from codea1_env.sandbox.inside.scope import SHORT

MAX_TESTS = 256
"""Tests that are read of one suite."""
CANDIDATE = "candidate"
"""What a check calls the program."""
_IS_CHECK = re.compile(rf"def\s+\w+\s*\(\s*{CANDIDATE}\s*\)")
# A cheap guess at what may matter: parsing prose costs time and only counts it.
_SEEMS_CODE = re.compile(r"(?:from|import|def|class|for|with|if)\b|@|[^\W\d]\w*[ \t]*(?:[(\[.,]|(?::[^=\n]*)?=)")
_EXITS = frozenset(("sys.exit", "os._exit", "exit", "quit"))
"""Calls behind which nothing runs; under a condition they may be a failure."""
_NOTHING: Mapping[str, str] = {}
_KNOWN = BUILTINS | FUNCTIONS | {"isinstance", "type", "isclose", "approx"}


class _Full(Exception):
    """The suite has more than MAX_TESTS tests."""


@dataclass(slots=True)
class _Function:
    node: ast.FunctionDef
    source: SourceText
    is_nested: bool = False
    """It knows the names around its calls: it was defined while another function was read, or is a method."""
    is_read: bool = False
    is_open: bool = False
    """It is being read: a call of itself in it is not followed."""

    @property
    def parameters(self) -> list[str]:
        return [argument.arg for argument in (*self.node.args.posonlyargs, *self.node.args.args)]

    @property
    def defaults(self) -> dict[str, ast.expr]:
        """What parameters stand for that are not given."""
        by_name = zip((each.arg for each in self.node.args.kwonlyargs), self.node.args.kw_defaults, strict=True)
        by_place = zip(reversed(self.parameters), reversed(self.node.args.defaults), strict=False)
        return {name: value for name, value in (*by_name, *by_place) if value is not None}

    def given_by(self, call: ast.Call) -> dict[str, ast.expr]:
        """What its parameters stand for in a call, `*args` and `**options` as displays. Raises Rejected."""
        known = self.node.args
        own = len(known.posonlyargs) + len(known.args)
        if own - len(known.defaults) > len(call.args) + len(call.keywords):
            raise Rejected(Reason.FORBIDDEN_CALL)
        named = {keyword.arg: keyword.value for keyword in call.keywords}
        given = dict(zip(self.parameters, call.args, strict=False))
        for name in (*self.parameters, *(each.arg for each in known.kwonlyargs)):
            if name in named and name not in given:
                given[name] = named.pop(name)
        is_more = (len(call.args) > own and not known.vararg) or (named and not known.kwarg)
        if is_more or None in named or self.node.decorator_list or any(map(is_starred, call.args)):
            raise Rejected(Reason.FORBIDDEN_CALL)
        if known.vararg:
            given[known.vararg.arg] = trees.tupled(*call.args[own:])
        if known.kwarg:
            given[known.kwarg.arg] = ast.Dict([*map(ast.Constant, named)], [*named.values()])
        return given


class WideReader:
    """Collects the tests of one suite."""

    def __init__(self, entry_point: str) -> None:
        """`entry_point`: a `canonical_name`."""
        self.entry_point = entry_point
        self.tests: list[WrittenTest] = []
        self.unread: Counter[Ignored] = Counter()
        self._steps = Steps()
        self._names = SuiteNames(entry_point, self._steps)
        self._statements = Statements(self._steps)
        self._objects = Objects(entry_point, self._names, self._steps)
        self._expanded = Expanded(entry_point, self._steps)
        self._surroundings = Surroundings(entry_point, self._steps, self._known)
        self._fixtures = Fixtures(
            self._names, self._statements, self._value_of, self._inlined, self._surroundings.fixture
        )
        self._functions: MutableMapping[str, _Function] = {}
        """What a call of each name is a call of."""
        self._helpers: list[_Function] = []
        """Functions that are no tests: they are read where the suite calls them."""
        self._around: list[tuple[ast.expr, ast.expr]] = []
        """Targets and items of the loops over what a call returns that are being read."""
        self._left: dict[str, ast.expr] = {}
        """What is left of iterators of which a condition takes items."""
        self._level = 0

    def read(self, code: str) -> None:
        """Take everything that can be read of the code."""
        code = asserts_of_doctests(unindented(code))
        self._surroundings.begin(code)
        try:
            try:
                module = parse(code)
            except Unparsable:
                self._recover(asserts_of_items(code), 0)
            else:
                self._module(module, code)
        except _Full:
            self.unread[Ignored.ROWS] += 1
        except (TooMuch, RecursionError):
            self.unread[Ignored.TOO_MUCH] += 1
        self.unread[Ignored.FUNCTION] += sum(not helper.is_read and _asserts(helper.node) for helper in self._helpers)

    def _skip(self, what: Ignored, node: ast.AST) -> None:
        """Note that something is not read; who keeps its source overrides this."""
        self.unread[what] += 1

    def _keep(self, test: WrittenTest) -> None:
        """Raises _Full."""
        if len(self.tests) == MAX_TESTS:
            raise _Full
        self.tests.append(test)

    def _module(self, module: ast.Module, code: str) -> None:
        source = SourceText(code)
        module = waiting(module) if "async def" in code else module
        for statement in module.body:
            if isinstance(statement, ast.FunctionDef):
                self._functions.setdefault(statement.name, _Function(statement, source))
                self._fixtures.add(statement, source)
        self._body(module.body, source)

    def _recover(self, code: str, level: int) -> None:
        """Take what parses of code that does not: of a function that breaks off, the lines that it has."""

        def is_wanted(piece: str) -> bool:
            return "assert" in piece or _SEEMS_CODE.match(piece) is not None or self._names.occurs_in(piece)

        for fragment in fragments(code, is_wanted):
            if fragment.module is not None:
                self._module(fragment.module, fragment.text)
                continue
            text = fragment.text.strip()
            lines = fragment.text.lstrip("\n").split("\n", 1)
            if level < 2 and len(lines) == 2 and re.match(r"(?:def|class|async)\b", text):
                with self._names.function(is_nested=False):
                    self._names.forget_in(lines[0])  # its parameters
                    if _IS_CHECK.match(lines[0]):
                        self._names.bind([(CANDIDATE, trees.name(self.entry_point))])
                    self._recover(unindented(lines[1]), level + 1)
                continue
            if not text.startswith(("assert", "self.assert")):
                self._names.forget_in(text)
            self._lost(text, fragment.failure)

    def _lost(self, text: str, failure: str) -> None:
        """Note that a piece does not parse. `failure`: why; empty where it seems to be prose."""
        if re.match(r"assert\b|self\.assert", text):
            self._keep(rejected(text, Reason.TOO_LONG if len(text) > MAX_SOURCE else Reason(failure)))
        else:
            self.unread[Ignored.ASSERT_IN_TEXT if "assert" in text else Ignored.TEXT] += 1

    def _body(self, body: Sequence[ast.stmt], source: SourceText) -> str:
        """The statements of a module, a function or a block, as long as it is known that they run. One of LEAVES."""
        if self._level >= MAX_LEVELS:
            self.unread[Ignored.BLOCK] += 1
            return ""
        self._level += 1
        left = ""
        for place, statement in enumerate(body):
            self._statements.charge(statement)
            if left := self._statement(statement, source):
                if hasattr(statement, "body"):  # what follows may run, and is not read for that reason
                    for each in self._statements.asserting_behind(body, place):
                        self._skip(Ignored.BLOCK, each)
                    self._steps.take(len(body) - place)
                    for each in body[place + 1 :]:
                        self._names.forget(each)
                        left = max(left, self._statements.leaves(each), key=LEAVES.index)
                break
        self._level -= 1
        return left

    def _statement(self, statement: ast.stmt, source: SourceText) -> str:
        """One of LEAVES."""
        self._objects.sent_to(statement)
        if isinstance(statement, ast.Return | ast.Raise | ast.Break | ast.Continue):
            return self._statements.leaves(statement)
        if isinstance(statement, ast.For):
            return self._loop(statement, source)
        if isinstance(statement, ast.With):
            return self._with(statement, source)
        if isinstance(statement, ast.If) and is_main(statement):
            self._body(statement.body, source)
            return ""  # what stands behind it may be another file
        if (fresh := where_nothing_is(statement)) is not None:
            return self._body(fresh, source)
        if isinstance(statement, ast.If) and (known := self._known(statement.test)) is not None:
            held = truth(known)
            if held is not None:
                return self._body(statement.body if held else statement.orelse, source)
        if (caught := tried(statement)) is not None:
            return self._tried(caught, statement, source)
        if isinstance(statement, ast.Assert):
            self._condition(statement.test, source.of(statement))
        elif isinstance(statement, ast.Expr):
            called = known_name(statement.value.func) if isinstance(statement.value, ast.Call) else ""
            if skips(statement) or called in _EXITS:
                return "return"
            self._expression(statement, source)
        elif self._redirected(statement):
            return ""
        elif (item := self._item_set(statement)) is not None:
            self._names.bind([item])
        elif (asked := changing(statement)) is not None:
            self._objects.follow(asked)
            with self._objects.kept(asked.func):
                self._names.forget(statement)
        elif isinstance(statement, ast.Assign | ast.AnnAssign):
            self._assign(statement)
        elif isinstance(statement, ast.FunctionDef):
            self._definition(statement, source)
        elif isinstance(statement, ast.ClassDef):
            self._class(statement, source)
        elif isinstance(statement, ast.Import | ast.ImportFrom):
            self._import(statement)
        elif not isinstance(statement, ast.Pass | ast.Global | ast.Nonlocal):
            return self._passed_over(statement)
        return ""

    def _passed_over(self, statement: ast.stmt) -> str:
        """Note that a statement is not read. One of LEAVES."""
        self._surroundings.note(statement, is_read=False)
        self._surroundings.spoilt(statement)
        self._names.forget(statement)
        self._skip(Ignored.BLOCK if hasattr(statement, "body") else Ignored.STATEMENT, statement)
        return self._statements.leaves(statement)

    def _condition(self, condition: ast.expr, source: str, is_raised: bool = False) -> None:
        """The tests of one assert: one, or one for each part of an `and`. `is_raised`: of an exception, one in all."""
        if len(source) > MAX_SOURCE:
            self._keep(rejected(source, Reason.TOO_LONG))
            return
        is_one, written = is_raised, condition
        try:
            condition = self._heard(self._objects.written_out(self._with_made(condition)))
            known = self._expanded.of(self._inlined(self._drawn(self._objects.numbered(condition))))
            if not self._around and not mentions(known, self.entry_point):
                known = self._objects.with_changes(condition)
            if mentions(known, self.entry_point) and not self._functions.keys().isdisjoint(
                others_in(known, self.entry_point)
            ):
                raise Rejected(Reason.FORBIDDEN_CALL)
            for target, items in reversed(self._around):  # of every item
                clause = ast.comprehension(target, items, [], 0)
                known = trees.call("all", ast.GeneratorExp(known, [clause]))
            if expected := self._objects.expected_by(condition):
                known, is_one = ast.BoolOp(ast.And(), [*expected, known]), True
        except Rejected as error:
            self._keep(rejected(source, error.reason))
            return
        finally:
            self._surroundings.note(written)
            if not is_raised:
                self._objects.follow(condition)
            self._note_changes(condition)
        for part in [known] if is_one else parts(known, self.entry_point):
            self._keep(read_condition(part, source, self.entry_point))

    def _with_made(self, condition: ast.expr) -> ast.expr:
        """The condition with what functions of the suite give in the place of their calls."""
        calls = [each for each in ast.walk(condition) if isinstance(each, ast.Call)]
        made = {id(each): self._made_by(each) for each in calls if last_name(each.func) in self._functions}
        return copied(condition, made) if made else condition

    def _drawn(self, condition: ast.expr) -> ast.expr:
        """The condition with the items of what the entry point returned, `g = f(1)`, in the places of `next(g)`."""
        names = {node.args[0].id for node in ast.walk(condition) if is_next(node)}  # type: ignore[attr-defined]
        for name in sorted(names):
            known = self._names.inlined(trees.name(name))
            if isinstance(known, ast.Call) and (is_call(known, self.entry_point) or is_drawn(known)):
                drawn = TakenItems(name, known)
                condition = drawn.visit(copied(condition))
                self._left[name] = drawn.rest(is_of_class(self.entry_point))
                if name in names_in(condition):  # as it is then
                    raise Rejected(Reason.SEVERAL_CALLS)
            elif is_of_class(self.entry_point) and is_made(known, self.entry_point):
                self._left[name] = trees.UNKNOWN
                self._left[name] = next_of(condition, name, known)
        return condition

    def _heard(self, expression: ast.expr) -> ast.expr:
        """The expression with what was printed in the place of `capsys.readouterr().out` and its like, and with what
        was written in the place of `open("a.txt").read()`."""
        asked = [each for each in ast.walk(expression) if self._surroundings.is_heard(each)]
        heard = copied(expression, {id(asked[0]): self._surroundings.printed()}) if asked else expression
        return self._surroundings.asked(heard)

    def _inlined(self, expression: ast.expr) -> ast.expr:
        """The expression with names in place and elements taken out of displays. Raises Rejected."""
        known = self._surroundings.settled(self._names.inlined(expression))
        if not any(is_simpler(node) for node in ast.walk(known)):
            return known
        try:
            return Simplified().visit(known)  # type: ignore[no-any-return]  # an expression stays one
        except RecursionError:
            raise Rejected(Reason.TOO_DEEP) from None

    def _known(self, expression: ast.expr) -> ast.expr | None:
        """Likewise; None where it is not known."""
        with contextlib.suppress(Rejected):
            return self._inlined(expression)
        return None

    def _expression(self, statement: ast.Expr, source: SourceText) -> None:
        call = statement.value
        if isinstance(call, ast.Constant):  # a docstring
            return
        if isinstance(call, ast.Call):
            if last_name(call.func) in RAISING:
                self._exception(call, None, source.of(statement))
                return
            condition = condition_of(call)
            if "assert" in last_name(call.func) and condition is None:
                called = self._names.known(call.func)
                condition = call if called is not None and known_name(called) in ASSERTING else None
            if condition is not None:
                self._condition(condition, source.of(statement))
                return
            if isinstance(call.func, ast.Name) and call.func.id in self._functions:
                self._called(self._functions[call.func.id], call)
                return
        if is_next(call):  # an item that nobody looks at
            with contextlib.suppress(Rejected):
                self._drawn(call)
                self._note_changes(call)
                return
        if (grown := self._grown(call)) is not None:
            self._names.bind([grown])
            return
        if last_name(getattr(call, "func", call)) == "readouterr":
            self._surroundings.printed()
            return
        known = self._with_files(call)
        if isinstance(known, ast.Call) and self._surroundings.wrote(known, not self._around):
            return
        is_heard = self._surroundings.note(call)
        self._objects.done(call)
        with self._objects.kept(statement):
            self._names.forget(statement)
        if not is_heard:
            self._surroundings.spoilt(statement)
            self._skip(Ignored.STATEMENT, statement)

    def _with_files(self, call: ast.expr) -> ast.expr | None:
        """The call with names in place but those of open files; None where they are not known."""
        if not isinstance(call, ast.Call) or not any(map(self._surroundings.is_written, names_in(call))):
            return self._known(call)
        return ast.Call(call.func, [self._known(each) or each for each in call.args], call.keywords)

    def _grown(self, call: ast.expr) -> tuple[str, ast.expr] | None:
        """The name of a list that gets one item more, with what it stands for then."""
        match call:
            case ast.Call(func=ast.Attribute(ast.Name(id=name), "append" | "extend" as how), args=[item], keywords=[]):
                known, more = self._known(trees.name(name)), self._known(item)
                if isinstance(known, ast.List) and more is not None and not self._around:
                    more = ast.Starred(more, ast.Load()) if how == "extend" else more
                    return name, trees.listed((*known.elts, more))
        return None

    def _item_set(self, statement: ast.stmt) -> tuple[str, ast.expr] | None:
        """The name of a list or dict that gets an item, `x[0] = 1`, with what it stands for then."""
        match statement:
            case ast.Assign(targets=[ast.Subscript(value=ast.Name(id=name), slice=at)], value=value):
                known, key, item = self._known(trees.name(name)), self._known(at), self._known(value)
            case _:
                return None
        place = whole(key) if key is not None else None
        if item is None or self._around or mentions(item, self.entry_point):
            return None
        if isinstance(known, ast.List) and place is not None and -len(known.elts) <= place < len(known.elts):
            items = [*known.elts]
            items[place] = item
            return None if any(isinstance(each, ast.Starred) for each in items) else (name, trees.listed(items))
        if isinstance(known, ast.Dict) and isinstance(key, ast.Constant) and None not in known.keys:
            return name, ast.Dict([*known.keys, key], [*known.values, item])  # the last value is the key's
        return None

    def _assign(self, statement: ast.Assign | ast.AnnAssign) -> None:
        targets = targets_of(statement)
        if statement.value is not None and self._of_surroundings(targets[0], statement.value):
            return
        self._surroundings.spoilt(statement)
        value = written = made = self._made_by(statement.value)
        is_known = value is not statement.value
        if value is not None and not is_known:
            made = value = written = self._with_made(value)
            try:
                made = value = written = self._objects.written_out(written)
            except Rejected:
                value = trees.UNKNOWN
            else:
                with contextlib.suppress(Rejected):
                    made = value = self._objects.numbered(written)
        if isinstance(targets[0], ast.Tuple | ast.List) and isinstance(value, ast.Name | ast.Subscript):
            row = self._known(value)
            value = row if isinstance(row, ast.Tuple | ast.List) else value  # `given, right = case`
        elif value is not None and is_copy(value):
            value = self._known(value)
        is_asked = value is not None and self._is_asked(value)
        read = unpacked if is_asked and isinstance(targets[0], ast.Tuple | ast.List) else self._pairs
        pairs = [None if value is None else read(target, value) for target in targets]
        if None in pairs:
            self._names.forget(statement)
            self._skip(Ignored.ASSIGNMENT, statement)
        bound = [pair for each in pairs for pair in each or ()]
        self._names.bind(bound, is_written=not is_known and value is made)
        self._objects.written([name for name, _ in bound], value if isinstance(targets[0], ast.Name) else None)
        if written is not None:
            self._surroundings.note(written)
            self._objects.follow(written)
            self._note_changes(written)

    def _of_surroundings(self, target: ast.expr, value: ast.expr) -> bool:
        """Whether the names of a target are bound to a path that is made, to an open file, or to what was printed."""
        first = target.elts[0] if isinstance(target, ast.Tuple) and len(target.elts) == 2 else target
        if not isinstance(first, ast.Name):
            return False
        if self._surroundings.opens(value, first.id) or self._surroundings.writes_rows(value, first.id):
            return True
        said = self._heard(value) if first is target else value
        if last_name(getattr(value, "func", value)) == "readouterr":
            said = self._surroundings.printed()
            if first is target:
                self._names.bind_attributes(first.id, {"out": said})
                return True
        if said is not value:
            self._names.forget(ast.Assign([target], ast.Constant(None)))
            self._names.bind([(first.id, self._known(said) or said)])
            return True
        made = self._surroundings.made(value, first.id)
        if made is None:
            known = self._known(value)
            return known is not None and self._surroundings.opened(known, first.id)
        if self._surroundings.is_written(first.id) and first is target:
            self._names.bind_attributes(first.id, {"name": made})
            return True
        bound = [each.id for each in ast.walk(target) if isinstance(each, ast.Name)]
        self._names.bind([(name, self._known(made) or made) for name in bound])
        return True

    def _is_asked(self, value: ast.expr) -> bool:
        """Whether it is, or is a part of, what a call of the entry point returns."""
        if isinstance(value, ast.Call):
            function = self._names.known(value.func)
            return is_call(ast.Call(function or value.func, value.args, []), self.entry_point)
        if not isinstance(value, ast.Name | ast.Subscript | ast.Attribute):
            return False
        known = self._known(value)
        return known is not None and mentions(known, self.entry_point)

    def _note_changes(self, expression: ast.expr) -> None:
        """Behind the objects that are followed, of which all calls are known."""
        with self._objects.kept(expression):
            self._names.note_changes(expression)
        self._names.bind(self._left.items())
        self._left.clear()

    def _pairs(self, target: ast.expr, value: ast.expr) -> list[tuple[str, ast.expr]] | None:
        """The names of a target with what each stands for; None where that is not known of all."""
        bound = bound_in(target, value)
        return None if bound is None or self.entry_point in bound else [*bound.items()]

    def _definition(self, node: ast.FunctionDef, source: SourceText) -> None:
        """A test function is read where it stands; any other where it is called."""
        self._forget(node)
        if is_fixture(node):
            return
        known = self._functions.get(node.name)
        if known is None or known.node is not node:
            known = self._functions[node.name] = _Function(node, source, self._names.are_a_functions)
        is_check = known.parameters == [CANDIDATE]
        if not node.name.startswith("test") and not is_check:
            self._helpers.append(known)
            code = None if node.name in _KNOWN or node.name in SHORT else as_code(node, self._decorates)
            if code is not None:
                known.is_read = True
                self._names.bind([(node.name, code)])
            return
        parameters = [name for name in known.parameters if name != "self"]
        with self._surroundings.scope():
            heard = parameters[:1] if any(map(self._surroundings.listens, node.decorator_list)) else []
        others = [
            each for each in node.decorator_list if not (heard and last_name(getattr(each, "func", each)) == "patch")
        ]
        known_rows = rows_of(others, self._inlined, self._steps)
        if known_rows is None or len(node.decorator_list) - len(others) > 1:
            self._skip(Ignored.DECORATED, node)
            return
        in_rows = {name for row in known_rows.rows[:1] for name in row}
        with self._surroundings.scope():
            fixtures = self._fixtures.rows([name for name in parameters if name not in in_rows])
            if known_rows.is_cut or fixtures.is_cut:
                self._skip(Ignored.ROWS, node)
            for row, values in product(known_rows.rows, fixtures.rows):
                given = {**row, **values, **{name: trees.name(name) for name in heard}}
                if is_check:
                    given[CANDIDATE] = trees.name(self.entry_point)
                with self._surroundings.scope():
                    for buffer in heard:
                        self._surroundings.listen(buffer)
                    self._function(known, parameters, given)

    def _decorates(self, decorator: ast.expr) -> bool:
        """Whether it is the program's: `@f`, `@f(3)`."""
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        return is_call(ast.Call(self._names.known(called) or called, [], []), self.entry_point)

    def _forget(self, node: ast.FunctionDef | ast.ClassDef) -> None:
        """Its name stands for something else now; what the suite calls `len` is not Python's."""
        self._names.forget(node)
        if node.name in _KNOWN:
            self._names.shadow(node.name)

    def _function(
        self,
        known: _Function,
        parameters: Sequence[str],
        given: dict[str, ast.expr],
        called: Mapping[str, str] = _NOTHING,
    ) -> None:
        """Read a function's body with its parameters bound; not where it needs others, or is being read. `called`: what
        the arguments are called around it, of which it may change the objects."""
        self._steps.take(len(parameters))
        defaults = known.defaults
        if known.is_open or not set(parameters) <= {*given, *defaults} or self.entry_point in given:
            self._surroundings.spoilt(known.node)
            self._skip(Ignored.FUNCTION, known.node)
            return
        known.is_read = known.is_open = True
        with self._names.function(self._statements.own_names(known.node), is_nested=known.is_nested):
            usual = [(name, value) for name, value in defaults.items() if name not in given]
            self._names.bind(usual, is_written=True)
            self._names.bind(given.items())
            objects = [name for name in called if name not in self._statements.bound_in(known.node)]
            before = [self._names.known(trees.name(name)) for name in objects]
            self._body(known.node.body, known.source)
            after = [self._names.known(trees.name(name)) for name in objects]
        became = zip(objects, before, after, strict=True)
        self._names.bind([(called[name], new or trees.UNKNOWN) for name, old, new in became if new is not old])
        known.is_open = False

    def _value_of(self, body: Sequence[ast.stmt], source: SourceText) -> ast.expr:
        """What a function gives at its end, names in place; the asserts in it are read where it is called for them.
        Raises Rejected where it may end elsewhere."""
        if self._level >= MAX_LEVELS:
            raise Rejected(Reason.TOO_DEEP)
        unread, level = self.unread.copy(), self._level
        self._level += 1
        try:
            for statement in body:
                self._statements.charge(statement)
                value = statement.value if isinstance(statement, ast.Return | ast.Expr) else None
                if isinstance(value, ast.Yield):
                    value = value.value
                elif not isinstance(statement, ast.Return):
                    if isinstance(statement, ast.Assert) or self._statement(statement, source):
                        break
                    continue
                if value is None:
                    break
                known = self._inlined(value)
                changed = value if mentions(known, self.entry_point) else self._objects.with_changes(value)
                return known if changed is value else changed
        finally:
            self.unread, self._level = unread, level
        raise Rejected(Reason.NOT_PLAIN_DATA)

    def _made_by(self, value: ast.expr | None) -> ast.expr | None:
        """What a call of a function of the suite's gives, names in place; another expression itself."""
        match value:
            case ast.Call(func=ast.Name(id=name)) if name in self._functions and name != self.entry_point:
                known = self._functions[name]
            case _:
                return value
        if known.is_open:
            return value
        kept = len(self.tests)
        known.is_open = True
        try:
            row = {each: self._inlined(argument) for each, argument in known.given_by(value).items()}
            if not set(known.parameters) <= {*row, *known.defaults}:
                return value
            with self._names.function(self._statements.own_names(known.node), is_nested=known.is_nested):
                usual = [(each, default) for each, default in known.defaults.items() if each not in row]
                self._names.bind(usual, is_written=True)
                self._names.bind(row.items())
                made = self._value_of(known.node.body, known.source)
        except Rejected:
            return value
        finally:
            known.is_open = False
            del self.tests[kept:]
        known.is_read = True
        return made

    def _called(self, known: _Function, call: ast.Call) -> None:
        """A call of a function of the suite's: read with these arguments, but a test function no second time."""
        is_same = known.parameters in ([], [CANDIDATE]) and not known.node.args.vararg
        if known.is_read and is_same and _asserts(known.node):
            return
        try:
            arguments = known.given_by(call)
            given = {name: self._inlined(argument) for name, argument in arguments.items()}
        except Rejected:
            self._skip(Ignored.STATEMENT, call)
        else:
            called = {name: each.id for name, each in arguments.items() if isinstance(each, ast.Name)}
            self._function(known, known.parameters, given, called)

    def _class(self, node: ast.ClassDef, source: SourceText) -> None:
        """The test methods of a class, each behind what the class and its `setUp` keep."""
        self._forget(node)
        if node.decorator_list:
            self._skip(Ignored.DECORATED, node)
            return
        methods = [each for each in node.body if isinstance(each, ast.FunctionDef) and each.name.startswith("test")]
        if not methods:
            self._skip(Ignored.CLASS, node)
        outside = self._functions
        with self._names.scope(), self._fixtures.scope():
            for each in node.body:
                if isinstance(each, ast.FunctionDef):
                    self._fixtures.add(each, source)
            helpers = helpers_of(node)
            own = {f"self.{name}": _Function(each, source, is_nested=True) for name, each in helpers.items()}
            self._helpers += own.values() if methods else ()
            for method in with_setup(node, methods, helpers):
                self._statements.charge(method)
                self._functions = ChainMap({method.name: _Function(method, source)}, own, outside)
                self._definition(method, source)
        self._functions = outside

    def _loop(self, statement: ast.For, source: SourceText) -> str:
        items: ast.expr = ast.Constant(None)
        with contextlib.suppress(Rejected):
            items = self._expanded.of(self._inlined(self._heard(statement.iter)))
        known = table(items)
        if known is None and mentions(items, self.entry_point) and not statement.orelse:
            return self._of_items(statement, items, source)
        if known is None or statement.orelse:
            return self._passed_over(statement)
        left = ""
        for row in known.rows:
            if (pairs := self._pairs(statement.target, row)) is None:
                self._skip(Ignored.BLOCK, statement)
                break
            self._names.bind(pairs)
            left = self._body(statement.body, source)
            if left in ("break", "return"):
                break
        else:
            if known.is_cut:
                self._surroundings.spoilt(statement)
                self._skip(Ignored.ROWS, statement)
        whole = not left and not known.is_cut
        made = [(name, self._known(trees.name(name))) for name in grown_in(statement) if whole]
        with self._objects.kept(statement):
            self._names.forget(statement)
        self._names.bind([(name, each) for name, each in made if isinstance(each, ast.List)])
        return "return" if left == "return" else ""

    def _of_items(self, statement: ast.For, items: ast.expr, source: SourceText) -> str:
        """A loop over what a call returns: each assert in it claims something of every item. One of LEAVES."""
        self._names.forget(statement)
        self._around.append((statement.target, items))
        left = self._body(statement.body, source)
        self._around.pop()
        self._names.forget(statement)
        return left if left == "return" else ""

    def _with(self, statement: ast.With, source: SourceText) -> str:
        (item, *more), body = statement.items, statement.body
        if more:  # as one `with` in another
            body = [ast.copy_location(ast.With(more, body), statement)]
        opened, called = item.context_expr, item.optional_vars
        name = last_name(opened.func) if isinstance(opened, ast.Call) else ""
        if name == "subTest":
            return self._body(body, source)
        if name not in RAISING:
            return self._within(statement, body, source)
        caught = called.id if isinstance(called, ast.Name) else ""
        itself = self._raised(opened, caught, statement, body, source)
        if itself is not None:
            self._names.bind_attributes(caught, dict.fromkeys(("value", "exception"), itself))
        return ""

    def _within(self, statement: ast.With, body: Sequence[ast.stmt], source: SourceText) -> str:
        """A `with` that opens a file to be written, makes a directory, or keeps what is printed. One of LEAVES."""
        called, name = statement.items[0].context_expr, statement.items[0].optional_vars
        target = name if isinstance(name, ast.Name) else ast.Name("", ast.Store())
        heard = ""
        if self._surroundings.listens(called):
            given = [each.id for each in given_in(called) if isinstance(each, ast.Name)]  # type: ignore[arg-type]
            heard = "".join([target.id] if target.id else given[-1:])
            self._surroundings.listen(heard)
        elif not self._of_surroundings(target, called):
            return self._passed_over(statement)
        left = self._body(body, source)
        self._surroundings.closed(target.id)
        if heard:
            self._heard_out()
        return left

    def _heard_out(self) -> None:
        """Nothing more is printed to the buffer, which keeps what it has."""
        said = trees.function(self._surroundings.printed())
        self._names.bind_attributes(self._surroundings.buffer, {"getvalue": said})
        self._surroundings.listen("")

    def _redirected(self, statement: ast.stmt) -> bool:
        """Take `sys.stdout = buffer`, also with `buffer = io.StringIO()` in one, and what ends it."""
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        if not any(known_name(target) == "sys.stdout" for target in targets):
            return False
        if self._surroundings.buffer:
            self._heard_out()
        names = [each.id for each in (*targets, statement.value) if isinstance(each, ast.Name)]  # type: ignore[attr-defined]
        made = self._known(statement.value)  # type: ignore[attr-defined]
        if len(names) == 1 and isinstance(made, ast.Call) and last_name(made.func) == "StringIO":
            self._surroundings.listen(names[0])
        return True

    def _tried(self, caught: TryStatement, statement: ast.stmt, source: SourceText) -> str:
        """A `try` whose `except` must be reached, and what is claimed there. One of LEAVES."""
        itself = self._raised(caught.expects, caught.name, statement, caught.body, source)
        if itself is not None:
            self._names.bind([(caught.name, itself)])
        left = self._body(caught.then, source)
        if caught.name:
            self._names.forget(ast.Assign([ast.Name(caught.name, ast.Store())], ast.Constant(None)))
        return left

    def _raised(
        self, expects: ast.expr | None, name: str, statement: ast.stmt, body: Sequence[ast.stmt], source: SourceText
    ) -> ast.expr | None:
        """Take a statement that expects an exception. What stands for that one, where it is known and has a name."""
        said = self._exception(expects, body, source.of(statement))
        with self._objects.kept(statement):
            self._names.forget(statement)
        if said is None or not name:
            return None
        self._objects.expect(name, said.kind)
        return said.itself

    def _exception(self, expects: ast.expr | None, body: Sequence[ast.stmt] | None, source: str) -> Said | None:
        """Take a test that expects an exception. Returns what is known of that one, names in place."""
        try:
            if not isinstance(expects, ast.Call):
                raise Rejected(Reason.EXPECTS_EXCEPTION)
            expected = [self._inlined(each) for each in expects.args[:2]]  # the type, and what its text is like
            named = [ast.keyword(each.arg, self._inlined(each.value)) for each in expects.keywords]
            expects = ast.Call(expects.func, [*expected, *expects.args[2:]], named)
            body = None if body is None else self._objects.as_set(body)
            condition = raising_condition(expects, last_name(expects.func), body)
        except Rejected as error:
            self._keep(rejected(source, error.reason))
        else:
            self._condition(condition, source, is_raised=True)
            with contextlib.suppress(Rejected):
                return said_of(self._inlined(condition))
        return None

    def _import(self, statement: ast.Import | ast.ImportFrom) -> None:
        """`from solution import f as g`: `g` stands for the entry point."""
        self._names.bind_imports(statement, IMPORTED)
        for alias in statement.names:
            name = alias.asname or alias.name
            is_other = alias.name != self.entry_point and getattr(statement, "module", None) != HOMES.get(name, "")
            if name in _KNOWN and is_other:
                self._names.shadow(name)


def _asserts(node: ast.FunctionDef) -> bool:
    """Whether a function may hold a test."""
    return any(
        isinstance(each, ast.Assert) or (isinstance(each, ast.Call) and "assert" in last_name(each.func))
        for each in ast.walk(node)
    )
