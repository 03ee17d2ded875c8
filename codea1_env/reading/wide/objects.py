"""Objects of a suite that its calls change: `c = Counter(5)`, `c.up()`; `numbers = [3, 1]`, `sort(numbers)`; and items
that it takes of an iterator, one by one: `g = f(1)`, `next(g)`, `[next(g) for _ in range(3)]`.

    next(g), the third time        list(islice(f(1), 3))[2]

A name of an object stands for it as it is after all its calls so far (`questions.after`): what is remembered of a name
is replaced behind each statement that calls a method of it. What became of an argument is kept beside the name, which
goes on to stand for what was written, for most functions change nothing. Nothing is evaluated: which calls were made
follows from the text, so an object is forgotten where they are not known. Does not see other names of the same object
or iterator.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from codea1_env.reading import grammar
from codea1_env.reading.inlining import SuiteNames
from codea1_env.reading.parsing import copied, dump_of
from codea1_env.reading.pure_expressions import Reason, Rejected, given_in, known_name
from codea1_env.reading.steps import Steps
from codea1_env.reading.wide import questions, trees
from codea1_env.reading.wide.displays import table, whole
from codea1_env.reading.wide.expanding import bound_in, put

_UNSURE = (ast.IfExp, ast.comprehension, ast.Lambda, ast.NamedExpr, ast.Or)
"""What may keep a call in it from being made once."""
_CHANGED = " afterwards"
"""Behind a name, which no name has in it: what an argument of that name became."""
_EXPECTED = " expected"
"""Likewise: the type of an exception of that name."""
_DISPLAYS = (ast.List, ast.Dict, ast.Set)


class Objects:
    """Of one suite. Every method may raise TooMuch."""

    __slots__ = ("_entry_point", "_is_class", "_names", "_steps")

    def __init__(self, entry_point: str, names: SuiteNames, steps: Steps) -> None:
        """`entry_point`: a `canonical_name`."""
        self._entry_point, self._names, self._steps = entry_point, names, steps
        self._is_class = questions.is_of_class(entry_point)

    def follow(self, expression: ast.expr) -> None:
        """Take the calls of an expression that was evaluated, in their order."""
        calls = [node for node in ast.walk(expression) if isinstance(node, ast.Call)]
        called = {_name_of(each.func) for each in calls}
        changed = {questions.asked_object(each) for each in calls}
        for name in dict.fromkeys(self._named(expression)) if calls else ():
            is_called = self._is_class or name in called or (name in changed and self._is_made(name))
            if is_called and self._is_object(name):
                self._called(name, expression)
        self._given(expression)

    def done(self, call: ast.expr) -> None:
        """Take a call that is a statement: it is made for what it does, also to an object given to another's method."""
        given = {each.id for each in given_in(call) if isinstance(each, ast.Name)} if isinstance(call, ast.Call) else ()
        names = Counter(self._named(call)) if self._is_class and given else {}
        became = {}
        first = questions.asked_object(call)  # a method of what a function returned, which is followed from here on
        asked = [name for name, times in names.items() if times == 1 and name in given]
        asked += [] if self._is_class or self._is_made(first) else [first]
        for name in filter(self._is_object, asked):
            with suppress(Rejected):
                became[name] = self._after(name, [call])
            became.setdefault(name, None)
            self._steps.take(questions.MAX_NODES)
        self.follow(call)
        self._names.bind([(name, after or trees.UNKNOWN) for name, after in became.items()])

    def written_out(self, expression: ast.expr) -> ast.expr:
        """The expression with the items of a comprehension over a table, each of which calls an object. Raises Rejected
        for one over anything else."""
        made = {}
        for node in ast.walk(expression):
            self._steps.take()
            if not isinstance(node, ast.ListComp) or _first_of(node) is not None:  # these are taken at once
                continue
            objects = [name for name in self._named(node.elt) if self._is_object(name)]
            items = self._items(node) if objects else None
            if items is not None:
                made[id(node)] = trees.listed(items)
            elif any(self._is_asked(node.elt, name) for name in objects):  # nobody knows how often
                raise Rejected(Reason.COMPREHENSION)
        return copied(expression, made) if made else expression

    def _is_asked(self, node: ast.expr, name: str) -> bool:
        """Whether an expression calls an object of this name."""
        return any(self._is_call(each, name) for part in self._outermost(node, name) for each in _spine(part))

    def _items(self, node: ast.ListComp) -> list[ast.expr] | None:
        clause = node.generators[0]
        rows = table(clause.iter)
        if len(node.generators) > 1 or clause.ifs or rows is None or rows.is_cut:
            return None
        bound = [bound_in(clause.target, row) for row in rows.rows]
        return [put(node.elt, each) for each in bound if each is not None] if None not in bound else None

    def _is_object(self, name: str) -> bool:
        made = self._known(name)
        return self._is_made(name) or (made is not None and grammar.is_call(made, self._entry_point))

    def _is_made(self, name: str) -> bool:
        made = self._known(name)
        return made is not None and questions.is_made(made, self._entry_point)

    def numbered(self, expression: ast.expr) -> ast.expr:
        """The expression with objects as they are where it calls them, if it calls one twice. Raises Rejected."""
        made = {}
        counts = Counter(self._named(expression))
        several = [name for name, count in counts.items() if count > 1 and self._is_object(name)]
        for name in several:
            parts = list(self._outermost(expression, name))
            called = [any(self._is_call(each, name) for each in _spine(part)) for part in parts]
            if not any(called) or len(parts) < 2:
                continue
            for place, part in enumerate(parts):
                before = [each for each, is_call in zip(parts[:place], called, strict=False) if is_call]
                made[id([*_spine(part)][-1])] = self._after(name, before) if before else None
        return copied(expression, made) if any(made.values()) else expression

    def _is_call(self, node: ast.expr, name: str) -> bool:
        """Whether it calls an object of this name: it itself or a method; of what a function returned, none of data."""
        is_own = isinstance(node, ast.Call) and name in (_name_of(node.func), questions.asked_object(node))
        return is_own or (isinstance(node, ast.Call) and self._is_class)

    def _after(self, name: str, calls: Sequence[ast.expr]) -> ast.expr | None:
        """What a name stands for after these calls, which name it. Raises Rejected."""
        made = self._known(name)
        with self._names.scope():
            self._names.bind([(name, trees.name(questions.IT))])
            calls = [call if self._is_class else _without_attributes(call) for call in calls]
            return questions.after(made, [self._names.inlined(call) for call in calls]) if made is not None else None

    def written(self, names: Sequence[str], value: ast.expr | None) -> None:
        """Names were given a value. Forget an object that has two names now, and what became of arguments so named."""
        made = self._known(value.id) if self._is_class and isinstance(value, ast.Name) else None
        if isinstance(value, ast.Name) and made is not None and questions.is_made(made, self._entry_point):
            self._names.bind([(name, trees.name("__shared__")) for name in (value.id, *names)])
        for name in names:
            for more in (_CHANGED, _EXPECTED):
                if self._known(name + more) is not None:
                    self._names.bind([(name + more, ast.Constant(None))])

    @contextmanager
    def kept(self, node: ast.AST) -> Iterator[None]:
        """What objects that a statement or an expression names stand for now is what they stand for afterwards, unless
        it calls a method of data of what a function returned."""
        names = dict.fromkeys(self._named(node))
        for each in ast.walk(node) if not self._is_class else ():
            if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute) and not questions.asked_object(each):
                names.pop(_name_of(each.func.value), None)
        known = [(name, made) for name in names if (made := self._known(name)) is not None]
        yield
        changed = [(name, made) for name, made in known if self._known(name) is not made]
        made_here = [(name, made) for name, made in changed if questions.is_made(made, self._entry_point)]
        self._names.bind(made_here)

    def with_changes(self, condition: ast.expr) -> ast.expr:
        """The condition about arguments as they became, names in place. Raises Rejected."""
        changes = []
        for name in dict.fromkeys(self._named(condition)):
            changed = self._known(name + _CHANGED)
            if changed is not None and _same(questions.made_of(changed), self._known(name)):
                changes.append((name, changed))
        if not changes:
            return condition
        with self._names.scope():
            self._names.bind(changes)
            return self._names.inlined(condition)

    def sent_to(self, statement: ast.stmt) -> None:
        """`g.send(1)` behind `next(g)`: from here on the generator is an object that is called."""
        for node in ast.walk(statement) if not hasattr(statement, "body") else ():
            match node:
                case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="send")):
                    made = self._known(name)
                    if isinstance(made, ast.Call) and is_drawn(made):
                        self._names.bind([(name, _advanced(made.args[0], made.args[1].value))])  # type: ignore[attr-defined]

    def as_set(self, body: Sequence[ast.stmt]) -> Sequence[ast.stmt]:
        """`c.size = -1` as the object behind that, which may raise; other statements themselves. Raises Rejected."""
        call = changing(body[0]) if len(body) == 1 else None
        name = _name_of(call.func.value) if call is not None else ""  # type: ignore[attr-defined]  # as it is made below
        after = self._after(name, [call]) if call is not None and self._is_class and self._is_object(name) else None
        return body if after is None else [ast.Expr(after)]

    def expect(self, name: str, kind: ast.expr) -> None:
        """From now on a claim about an exception of this name claims its type as well: its text alone says little."""
        self._names.bind([(name + _EXPECTED, kind)])

    def expected_by(self, condition: ast.expr) -> list[ast.expr]:
        """The types that a claim about exceptions claims as well."""
        kinds = [self._known(name + _EXPECTED) for name in dict.fromkeys(self._named(condition))]
        return [kind for kind in kinds if isinstance(kind, ast.Compare)]

    def _named(self, node: ast.AST) -> Iterator[str]:
        for each in ast.walk(node):
            self._steps.take()
            if isinstance(each, ast.Name):
                yield each.id

    def _known(self, name: str) -> ast.expr | None:
        known = self._names.known(trees.name(name))
        return None if isinstance(known, ast.Name) and known.id == name else known

    def _called(self, name: str, expression: ast.expr) -> None:
        parts = self._outermost(expression, name)
        calls = [node for node in parts if any(self._is_call(each, name) for each in _spine(node))]
        if not calls:
            return
        unsure = any(
            isinstance(node, _UNSURE) and not (isinstance(node, ast.Lambda) and name not in self._named(node))
            for node in ast.walk(expression)
        )
        try:
            after = None if unsure else self._after(name, calls)
        except Rejected:
            after = None
        self._steps.take(questions.MAX_NODES)
        self._names.bind([(name, after or trees.UNKNOWN)])

    def _outermost(self, node: ast.AST, name: str) -> Iterator[ast.expr]:
        """The largest expressions that begin with a name and go on with methods and attributes."""
        self._steps.take()
        if isinstance(node, ast.expr) and _name_of([*_spine(node)][-1]) == name:
            yield node
            return
        for child in ast.iter_child_nodes(node):
            yield from self._outermost(child, name)

    def _given(self, expression: ast.expr) -> None:
        """Take the arguments of a call of the entry point that is evaluated for sure, and no more of it."""
        call = expression
        while isinstance(call, ast.Compare | ast.UnaryOp):  # what is evaluated before anything can end it
            call = call.left if isinstance(call, ast.Compare) else call.operand
        function = self._names.known(call.func) if isinstance(call, ast.Call) else None
        if not isinstance(call, ast.Call) or not grammar.is_call(
            ast.Call(function or call.func, [], []), self._entry_point
        ):
            return
        for name, times in Counter(each.id for each in given_in(call) if isinstance(each, ast.Name)).items():
            if times == 1:
                self._change(name, call)

    def _change(self, name: str, call: ast.Call) -> None:
        written, before = self._known(name), self._known(name + _CHANGED)
        if not isinstance(written, _DISPLAYS) or not questions.is_small(written):
            return
        is_same = before is not None and _same(questions.made_of(before), written)
        with self._names.scope():
            self._names.bind([(name, trees.name(questions.IT))])
            asked = self._names.known(call)
        if asked is None:
            return
        changed = questions.after(before if is_same and before is not None else written, [asked])
        self._steps.take(questions.MAX_NODES)
        self._names.bind([(name + _CHANGED, changed or ast.Constant(None))])


def changing(statement: ast.stmt) -> ast.Call | None:
    """`c.size = 3`, `m[0] = 3`, `del m[0]` as the call of a method; None for another statement."""
    target: ast.AST | None = None
    given: list[ast.expr] = []
    match statement:
        case ast.Assign(targets=[target], value=value) | ast.AnnAssign(target=target, value=ast.expr() as value):
            given = [value]
        case ast.Delete(targets=[ast.Subscript() as target]):
            pass
    match target:
        case ast.Attribute(value=ast.Name() as owner, attr=name) if given:
            return trees.method(owner, "__setattr__", ast.Constant(name), *given)
        case ast.Subscript(value=ast.Name() as owner, slice=at) if not isinstance(at, ast.Slice):
            return trees.method(owner, "__setitem__" if given else "__delitem__", at, *given)
    return None


def _without_attributes(node: ast.expr) -> ast.expr:
    """The call of which attributes are read, which change nothing."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node


def _same(one: ast.expr, other: ast.expr | None) -> bool:
    return other is not None and questions.is_small(other) and dump_of(one) == dump_of(other)


def _name_of(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else ""


def _spine(node: ast.expr) -> Iterator[ast.expr]:
    """An expression, what its method or attribute is of, and so on."""
    while True:
        yield node
        if isinstance(node, ast.Call) and known_name(node.func) == "asyncio.run" and len(node.args) == 1:
            node = node.args[0]
        elif isinstance(node, ast.Call):
            node = node.func
        elif isinstance(node, ast.Attribute):
            node = node.value
        else:
            return


_MOST = 1 << 10
"""Items that are taken of one iterator."""


def is_next(node: ast.AST) -> bool:
    """Whether it is `next` of a name."""
    match node:
        case ast.Call(func=ast.Name(id="next"), args=[ast.Name()], keywords=[]):
            return True
    return False


def _first_of(node: ast.ListComp) -> int | None:
    """How many items `[next(g) for _ in range(3)]` takes; None for another expression."""
    match node.generators:
        case [ast.comprehension(iter=ast.Call(func=ast.Name(id="range"), args=[n]), ifs=[])] if is_next(node.elt):
            count = whole(n)
            return count if count is not None and 0 <= count <= _MOST else None
    return None


def is_drawn(node: ast.AST) -> bool:
    """Whether it stands for an iterator of which items were taken."""
    match node:
        case ast.Call(func=ast.Name(id="islice"), args=[_, ast.Constant(value=int(count)), ast.Constant(value=None)]):
            return 0 <= count <= _MOST
    return False


def _advanced(made: ast.expr, count: int) -> ast.expr:
    """What an iterator is after so many items were taken of it."""
    taken = trees.call("next", trees.name(questions.IT))
    after = questions.after(made, [taken] * count) if count <= questions.MAX_NODES else None
    return after or trees.UNKNOWN


def next_of(condition: ast.expr, name: str, made: ast.expr) -> ast.expr:
    """What an object that was called before is after a condition that takes one item of it, and asks nothing else.
    Raises Rejected for another one."""
    nodes = [*ast.walk(condition)]
    named = sum(isinstance(node, ast.Name) and node.id == name for node in nodes)
    if named > 1 or any(isinstance(node, _UNSURE) for node in nodes):
        raise Rejected(Reason.SEVERAL_CALLS)
    return _advanced(made, 1)


class TakenItems(ast.NodeTransformer):
    """Puts items in the place of `next(name)`, in the order of the text. Changes the tree that it is given."""

    def __init__(self, name: str, known: ast.Call) -> None:
        """`known`: what the name stands for, a call or what is left of one."""
        self._name = name
        self._made: ast.expr = known.args[0] if is_drawn(known) else known
        self._count: int = known.args[1].value if is_drawn(known) else 0  # type: ignore[attr-defined]

    def rest(self, is_object: bool = False) -> ast.expr:
        """What the name stands for then. `is_object`: it is one of a class that is asked."""
        if self._count > _MOST:
            return trees.UNKNOWN
        if is_object:
            return _advanced(self._made, self._count)
        return trees.call("islice", self._made, ast.Constant(self._count), ast.Constant(None))

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if is_next(node) and node.args[0].id == self._name:  # type: ignore[attr-defined]
            self._count += 1
            return trees.item(self._first(self._count), self._count - 1)
        return self.generic_visit(node)

    def visit_ListComp(self, node: ast.ListComp) -> ast.AST:
        count, start = _first_of(node), self._count
        if count is None:
            return node
        self._count += count
        return ast.Subscript(self._first(self._count), ast.Slice(ast.Constant(start)), ast.Load())

    def _first(self, count: int) -> ast.expr:
        return trees.call("list", trees.call("islice", self._made, ast.Constant(count)))
