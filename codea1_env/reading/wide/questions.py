"""Questions: what a test asks of a program where that is more than one call with plain arguments.

    f(f(x))                              a call with what another one returns
    adder(3)(4)                          a call of what a call returns
    Counter(5).up()                      a method of an object of the entry point, where that is a class
    (lambda it: [it.up(), it][-1])(Counter(5)).up()      likewise, on an object that was called before
    (lambda it: [sort(it), it][-1])([3, 1])              an argument, after the call
    asyncio.run(f(x))
    Vector(1, 2) + Vector(3, 4), abs(Vector(3, 4)), Matrix(rows)[0, 1], 3 in Bag([3])       operators of the class's own
    Library([Book("Emma")]), paint(Color.RED)            other names of the program, which begin with a capital
    decode(encode("ab"))                 another function of the program, where the text of the problem names it

A question goes to the program as a text, as an argument does that is code, and is evaluated there. So it may be only
what leaves the answer to the program: the value of a question is what the entry point, or an object of it, makes, and
nothing that the question itself puts around that. Nothing is evaluated here, and what a question's value must be is
no part of it.
"""

from __future__ import annotations

import ast
import builtins
import json
import re
from collections.abc import Collection, Sequence

from codea1_env.reading import grammar
from codea1_env.reading.literals import NotLiteral, Tree, encode, literal_tree
from codea1_env.reading.parsing import copied
from codea1_env.reading.pure_expressions import (
    Reason,
    Rejected,
    check_code,
    given_in,
    known_name,
    parameters_of,
    plain_arguments,
)
from codea1_env.reading.wide import trees
from codea1_env.reading.wide.displays import whole
from codea1_env.reading.wide.statements import unpacking
from codea1_env.sandbox.inside.scope import (
    CODE_BUILTINS,
    FILE,
    LEFT,
    LOOKED_METHODS,
    PRINTED,
    PURE,
    ROWS,
    SHORT,
    WRITTEN,
)

IT = "it"
"""What a question calls the object that it is about."""
OBJECT = "__object__"
"""The first item of what stands for an object that is stated."""
MAX_NODES = 400
"""Of one question."""
_WAITING = "asyncio.run"
_CONTAINERS = (ast.List, ast.Tuple, ast.Dict, ast.BinOp, ast.UnaryOp)
_OF_DATA = frozenset(
    name for kind in (str, bytes, list, tuple, dict, set, int, float, complex, range) for name in dir(kind)
) - {"start"}  # of a range, which nobody calls
"""Methods of plain data: what a question calls belongs to the program, and what data says of itself is a relation."""
_ASKING = frozenset("abs repr len round int float bool complex bytes hash".split())
"""Functions of Python's that ask an object's class; what `str` and an iteration give belongs to the object's data."""
_OF_MATCH = frozenset("end group groupdict groups span start".split())
"""What a look asks of matches of its own, and a question of one that came back, for that is no data."""
_CHANGING = frozenset(("__setattr__", "__setitem__", "__delitem__"))
"""What a statement asks of an object, among its calls."""
_OF_READING = frozenset(
    (IT, PRINTED, WRITTEN, LEFT, FILE, ROWS, grammar.RAISED, "approx", "isclose", "islice", "assertCountEqual")
)
"""Functions that questions and claims have of their own."""
_NEAR = 0.05
"""Numbers that are nearer to each other, relative to their size, may be equal within a problem's tolerance."""


def is_question(node: ast.expr, entry_point: str) -> bool:
    """Whether an expression that mentions the entry point has the form of a question that is no plain call."""
    if not isinstance(node, ast.Call):
        return False
    if steps_of(node) or _is_around(node, entry_point):
        return True
    if grammar.is_call(node, entry_point):
        return any(grammar.mentions(part, entry_point) or others_in(part, entry_point) for part in given_in(node))
    if is_of_class(entry_point) and _is_by_class(node, entry_point):
        return True
    if isinstance(node.func, ast.Attribute) and known_name(node.func) != _WAITING:
        is_own = is_of_class(entry_point) or _is_of_object(node.func.attr)
        return is_own and _is_rooted(node.func.value, entry_point)
    return _is_rooted(node, entry_point)


def _is_of_object(method: str) -> bool:
    """Whether a method is none of plain data, arrays and tables: what has it is an object that a function returned."""
    is_looked = method in LOOKED_METHODS and method not in _OF_MATCH
    return not is_looked and method not in _OF_DATA and not method.startswith("_")


def asked_object(call: ast.expr) -> str:
    """The name of what a function may have returned, where this calls a method that data has not; else empty."""
    match call:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=method)) if _is_of_object(method):
            return name
    return ""


def steps_of(node: ast.AST) -> list[ast.expr]:
    """The calls of which it is asked what they print or write, and the path of the latter; none for another
    expression."""
    match node:
        case ast.Call(func=ast.Name(id=name), args=given, keywords=[]) if name == PRINTED:
            pass
        case ast.Call(func=ast.Name(id=name), args=[ast.Constant(value=str()), *given], keywords=[]) if name == WRITTEN:
            pass
        case _:
            return []
    steps = [each.body for each in given if isinstance(each, ast.Lambda) and not parameters_of(each.args)]
    return steps if len(steps) == len(given) else []


def is_operation(node: ast.expr, entry_point: str) -> bool:
    """Whether it is an operator, a subscript or a function of Python's that asks the class of an object."""
    match node:
        case ast.Subscript(value=value) | ast.UnaryOp(op=ast.USub() | ast.UAdd() | ast.Invert(), operand=value):
            return is_object(value, entry_point)
        case ast.Attribute(value=ast.Name(id=name)):  # the class's own
            return is_of_class(entry_point) and name == entry_point
        case ast.BinOp(left=left, right=right):
            return is_object(left, entry_point) or is_object(right, entry_point)
        case ast.Compare(ops=[ast.In()], comparators=[right]):
            return is_of_class(entry_point) and is_made(right, entry_point)
        case ast.Compare(left=left, ops=[ast.Lt() | ast.LtE() | ast.Gt() | ast.GtE()], comparators=[right]):
            return is_of_class(entry_point) and is_object(left, entry_point) and is_object(right, entry_point)
        case ast.Call(func=ast.Name(id=name), args=[value], keywords=[]):
            return name in _ASKING and is_object(value, entry_point)
    return False


def is_object(node: ast.expr, entry_point: str) -> bool:
    """Whether it is an object of the class, or what an operator makes of one."""
    return is_made(node, entry_point) or (isinstance(node, ast.BinOp | ast.UnaryOp) and is_operation(node, entry_point))


def is_attribute(node: ast.expr, entry_point: str) -> bool:
    """Whether it is asked of an object; of what a function returned, one that is named as data's is an attribute of
    the object as data."""
    is_of_object = isinstance(node, ast.Attribute) and is_object(node.value, entry_point)
    return is_of_object and (is_of_class(entry_point) or _is_of_object(node.attr))  # type: ignore[attr-defined]


def others_in(node: ast.AST, entry_point: str) -> list[str]:
    """Names that must be the program's own beside the entry point: called, or with an attribute, and not known."""
    nodes = [*ast.walk(node)]
    bases = [each.value for each in nodes if isinstance(each, ast.Attribute)]
    names = {base.id for base in bases if isinstance(base, ast.Name) and _is_of_program(base.id)}
    names |= {each.func.id for each in nodes if _calls_program(each)}  # type: ignore[attr-defined]  # a Name
    bound = {each.arg for each in nodes if isinstance(each, ast.arg)}
    return sorted(names - bound - {entry_point.partition("()")[0]})


def unnamed(asks: str, text: str) -> bool:
    """Whether a question has a function in it, beside the entry point, that the text of its problem does not name.
    A word alone is no name: `count` in `count(numbers)`, in quotes, imported or after "functions" is one."""

    def is_named(name: str) -> bool:
        as_code = rf"\b{name}\(|[`'\"]{name}[`'\"]|\b(?:import|functions?)\b.*\b{name}\b"
        return re.search(rf"\b{name}\b" if "_" in name else as_code, text) is not None

    return not all(is_named(name) for name in asks.split()[1:] if name[:1].islower())


def _is_around(node: ast.expr, entry_point: str) -> bool:
    """Whether another function of the program is given what the entry point returns: `decode(encode("ab"))`."""
    is_other = isinstance(node, ast.Call) and _calls_program(node) and node.func.id[:1].islower()  # type: ignore[attr-defined]
    return is_other and not grammar.is_call(node, entry_point) and grammar.mentions(node, entry_point)


def _calls_program(node: ast.AST) -> bool:
    """Whether it calls a class, or a function, that must be the program's own."""
    match node:
        case ast.Call(func=ast.Name(id=name)):
            is_function = name[:1].islower() and name not in SHORT and not hasattr(builtins, name)
            return _is_of_program(name) or (is_function and name not in _OF_READING)
    return False


def _is_of_program(name: str) -> bool:
    return name[:1].isupper() and name not in SHORT and not hasattr(builtins, name)


def member(node: ast.AST) -> str:
    """Of what may be a member of an Enum of the program, `Color.RED`, its name; else empty."""
    match node:
        case ast.Attribute(value=ast.Name(id=owner), attr=name) if _is_of_program(owner) and not name.startswith("_"):
            return name
    return ""


def members(node: ast.AST) -> list[str]:
    """Likewise of up to four members of a Flag, `Mode.R | Mode.W`; no names of anything else."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        sides = members(node.left), members(node.right)
        return [*sides[0], *sides[1]] if all(sides) and len({*sides[0], *sides[1]}) <= 4 else []
    return [member(node)] if member(node) else []


def stated(node: ast.expr) -> ast.expr:
    """What is stated, with data in the place of every object of a class of the program, `Point(1, y=2)`, `Color.RED`:
    (OBJECT, its class, what it is made from by place, and by name). Itself where it has none."""
    match node:
        case ast.List(elts=parts) | ast.Tuple(elts=parts):
            made = [stated(part) for part in parts]
            return type(node)(made, ast.Load()) if made != parts else node
        case ast.Dict(values=parts):
            made = [stated(part) for part in parts]
            return ast.Dict(node.keys, made) if made != parts else node
        case ast.Call(func=ast.Name(id=name), args=args, keywords=keywords) if _is_of_program(name):
            names: list[ast.expr | None] = [ast.Constant(keyword.arg) for keyword in keywords]
            by_name = ast.Dict(names, [stated(keyword.value) for keyword in keywords])
            by_place = [stated(part) for part in args]
        case ast.Attribute(value=ast.Name(id=name)) if member(node):
            by_place, by_name = [ast.Constant(member(node))], ast.Dict([], [])
        case _:
            return node
    return trees.tupled(ast.Constant(OBJECT), ast.Constant(name), trees.tupled(*by_place), by_name)


def is_of_member(node: ast.expr, entry_point: str) -> bool:
    """Whether it may be the name or the value of a member of an Enum: one that is a text, too, has no other data."""
    match node:
        case ast.Attribute(value=ast.Call() | ast.Attribute() as value, attr="name" | "value"):
            return _is_rooted(value, entry_point)
    return False


def is_set(node: ast.Attribute) -> bool:
    """Whether an attribute is asked for that the test has set itself, which any program would keep."""
    while isinstance(node.value, ast.Attribute):
        node = node.value
    calls = [each for each in _calls_of(node.value) if isinstance(each, ast.Call)]
    named = [call.args[0] for call in calls if getattr(call.func, "attr", "") == "__setattr__"]
    return any(isinstance(name, ast.Constant) and name.value == node.attr for name in named)


def roots(node: ast.expr, entry_point: str) -> str:
    """The names of the program that a question has in it, with blanks between them."""
    return " ".join([entry_point.partition("()")[0], *others_in(node, entry_point)])


def arguments_of(node: ast.expr, entry_point: str, max_depth: int) -> grammar.Pure:
    """A question as the one argument that goes to the program. Raises Rejected for one that nests too deep."""
    text = grammar.shallow_source(node, max_depth)
    return grammar.Pure(text, [[{"e": [roots(node, entry_point), text]}], []], True)


def idle(arguments: bytes, entry_point: str) -> bytes:
    """The question of what is printed or written if the program did nothing and gave an empty text; empty for another
    one. `entry_point`: a `canonical_name`."""
    match json.loads(arguments) if b"lambda: " in arguments else ():
        case [[{"e": [names, text]}], []]:
            node = grammar.single_expression(text)
            if any(map(steps_of, ast.walk(node))):
                return encode([[{"e": [names, ast.unparse(_Idle(entry_point).visit(node))]}], []])
    return b""


class _Idle(ast.NodeTransformer):
    """Puts `str([x, y])[:0]` in the places of `f(x, y)` and its items: files that the arguments make are made."""

    def __init__(self, entry_point: str) -> None:
        self._entry_point = entry_point

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if not grammar.is_call(node, self._entry_point):
            return self.generic_visit(node)
        given = trees.call("str", trees.listed(given_in(node)))
        return ast.Subscript(given, ast.Slice(None, ast.Constant(0)), ast.Load())

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        value: ast.expr = node
        while isinstance(value, ast.Subscript):
            value = value.value
        return self.visit_Call(value) if grammar.is_call(value, self._entry_point) else self.generic_visit(node)  # type: ignore[arg-type]


def is_of_class(entry_point: str) -> bool:
    """Whether an entry point is named as classes are: the sandbox asks for methods of no other."""
    return entry_point.isidentifier() and entry_point[:1].isupper()


def is_made(node: ast.expr, entry_point: str) -> bool:
    """Whether an expression is an object of the class, new or after calls; or what a function returned, after calls."""
    if is_of_class(entry_point):
        made = made_of(node)
        return grammar.is_call(made, entry_point) or _is_by_class(made, entry_point)
    return _is_history(node) and grammar.is_call(made_of(node), entry_point)


def _is_by_class(node: ast.expr, entry_point: str) -> bool:
    """Whether it is made by a method of the class itself: `C.of(5)`."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=method)):
            return name == entry_point and method not in _OF_DATA and not method.startswith("_")
    return False


def made_of(node: ast.expr) -> ast.expr:
    """What an object was before its calls."""
    return node.args[0] if _is_history(node) else node  # type: ignore[attr-defined]  # a Call


def after(node: ast.expr, calls: list[ast.expr]) -> ast.Call | None:
    """The object after more calls, in which it is called IT; None where that is too much to ask."""
    listed = trees.listed((*_calls_of(node), *calls, trees.name(IT)))
    last = ast.Subscript(listed, ast.UnaryOp(ast.USub(), ast.Constant(1)), ast.Load())
    asked = ast.Call(trees.function(last, IT), [made_of(node)], [])
    return asked if is_small(asked) else None


def check_question(node: ast.expr, entry_point: str) -> None:
    """Raises Rejected unless an expression of the right form is a question all through."""
    if not is_small(node):
        raise Rejected(Reason.TOO_LARGE)
    if any(
        known_name(each.func) == WRITTEN for each in ast.walk(node) if isinstance(each, ast.Call) and each is not node
    ):
        raise Rejected(Reason.WRAPPED_CALL)  # what is asked of files stands alone
    _check(node, entry_point, False)


def iterated(node: ast.expr, raising: Collection[str]) -> ast.expr | None:
    """The call whose items are asked for, `list(f(x))`, where that raises one of these by the program alone."""
    match node:
        case ast.Call(func=ast.Name(id="list" | "tuple" | "next"), args=[ast.Call() as called], keywords=[]):
            return called if {"TypeError", "Exception", "BaseException"}.isdisjoint(raising) else None
    return None


def raises_itself(node: ast.AST, entry_point: str) -> bool:
    """Whether a question in a claim about an exception calculates something, which may raise without the program."""
    match node:
        case ast.Call(func=ast.Name(id=grammar.RAISED), args=[asked, *_]):
            asked = iterated(asked, classes_raised(node)) or asked
        case ast.Subscript(value=asked, slice=ast.Constant(value="raises" | "message")) if not classes_raised(asked):
            while isinstance(asked, ast.Subscript) and _is_of_data(asked, entry_point):
                asked = asked.value
        case _:
            return any(raises_itself(each, entry_point) for each in ast.iter_child_nodes(node))
    is_plain = grammar.is_call(asked, entry_point) and not is_question(asked, entry_point)
    return not is_plain and _calculates(asked, entry_point)


def _is_of_data(node: ast.Subscript, entry_point: str) -> bool:
    """Whether it is a stated part of the data that came back, `f(x)[0]`: the program is not asked for it."""
    is_stated = not grammar.mentions(node.slice, entry_point) and not _calculates(node.slice, entry_point)
    return is_stated and not is_operation(node, entry_point)


def _calculates(node: ast.AST, entry_point: str) -> bool:
    inner = list(ast.iter_child_nodes(node))
    if isinstance(node, ast.Lambda):
        return False
    if isinstance(node, ast.expr) and is_operation(node, entry_point):
        inner = [*node.args] if isinstance(node, ast.Call) else inner
    elif isinstance(node, ast.Call):
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if (name in CODE_BUILTINS or name in SHORT) and name != entry_point:
            return True
        inner += _calls_of(node)
    elif isinstance(node, ast.BinOp | ast.Subscript | ast.Compare | ast.JoinedStr | ast.comprehension):
        return True
    return any(_calculates(each, entry_point) for each in inner)


def classes_raised(node: ast.AST) -> list[str]:
    """Of what asks which exception comes out of a call, `raised(f(-1), "ValueError")`, the classes; else none."""
    match node:
        case ast.Call(func=ast.Name(id=grammar.RAISED), args=[_, *kinds], keywords=[]):
            names = [kind.value for kind in kinds if isinstance(kind, ast.Constant) and isinstance(kind.value, str)]
            return names if len(names) == len(kinds) and all(map(str.isidentifier, names)) else []
    return []


def is_small(node: ast.expr) -> bool:
    """Whether it is no larger than a question may be."""
    left: list[ast.AST] = [node]
    for _ in range(MAX_NODES):  # a node that stands in many places is gone through in each
        if not left:
            return True
        left += ast.iter_child_nodes(left.pop())
    return not left


def is_changed(node: ast.expr, entry_point: str) -> bool:
    """Whether a question asks what became of an argument."""
    return _is_history(node) and not is_made(node, entry_point)


def first_call(node: ast.expr) -> ast.Call:
    """Of what became of an argument: the first call, with the argument as it was."""
    call = _calls_of(node)[0]
    return copied(call, {id(each): made_of(node) for each in ast.walk(call) if _is_it(each)})  # type: ignore[return-value]


def may_equal(node: ast.expr, stated: Tree, path: Sequence[Sequence[Tree]]) -> bool:
    """Whether what became of an argument, or of a part of it, may be as stated before the call, as if a program did
    nothing. `path`: the index, or the bounds of the slice, of each part in turn."""
    try:
        tree = literal_tree(made_of(node))
        for at in path:
            if not isinstance(tree, list):
                return True
            tree = tree[at[0]] if len(at) == 1 else tree[slice(*at)]  # type: ignore[index,arg-type]  # a TypeError
        return _may_equal(tree, stated)
    except (NotLiteral, TypeError, LookupError, ValueError):
        return True


def _is_history(node: ast.expr) -> bool:
    """Whether it is `(lambda it: [..., it][-1])(...)`."""
    match node:
        case ast.Call(
            func=ast.Lambda(
                args=ast.arguments(posonlyargs=[], args=[ast.arg(arg=name)], kwonlyargs=[], defaults=[]) as given,
                body=ast.Subscript(value=ast.List(elts=[_, *_, ast.Name(id=listed)]), slice=last),
            ),
            args=[_],
            keywords=[],
        ):
            return name == listed == IT and not (given.vararg or given.kwarg) and whole(last) == -1
    return False


def _calls_of(node: ast.expr) -> list[ast.expr]:
    """What was called of such an object before; nothing of another expression."""
    return node.func.body.value.elts[:-1] if _is_history(node) else []  # type: ignore[attr-defined]


def _is_it(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id == IT


def _is_of_it(node: ast.expr) -> bool:
    """IT, or what is called of it."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        node = node.func.value
    return _is_it(node)


def _is_rooted(node: ast.expr, entry_point: str) -> bool:
    """Whether calls and attributes lead from the entry point to it."""
    while not grammar.is_call(node, entry_point) and not _is_history(node):
        if _is_by_class(node, entry_point) or (is_of_class(entry_point) and is_operation(node, entry_point)):
            return is_of_class(entry_point)
        if isinstance(node, ast.Call) and known_name(node.func) == _WAITING and len(node.args) == 1:
            node = node.args[0]
        elif isinstance(node, ast.Call) and (part := unpacking(node)) is not None:
            node = part[0]
        elif isinstance(node, ast.Call):
            node = node.func
        elif isinstance(node, ast.Attribute) or _is_item(node):
            node = node.value  # type: ignore[attr-defined]
        else:
            return False
    return True


def _is_item(node: ast.expr) -> bool:
    """`f(x)[0]`, which is called: `f(x)[0](1)`."""
    return isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant)


def _check(node: ast.expr, entry_point: str, is_inside: bool) -> None:
    """`is_inside`: of the calls of an object. Raises Rejected."""
    if steps := steps_of(node):
        for step in steps:
            is_path = isinstance(step, ast.Constant)
            if is_path and re.match(r"/|(?:.*/)?\.\.(?:/|$)", str(step.value)):  # type: ignore[attr-defined]
                raise Rejected(Reason.FORBIDDEN_NAME)  # no directory of the program's
            while _is_item(step):  # `f(x)[0]`, a path
                step = step.value  # type: ignore[attr-defined]
            _check_part(step, entry_point, is_inside) if is_path else _check(step, entry_point, is_inside)
        return
    if is_inside and isinstance(node, ast.Call) and ast.unparse(node) == f"next({IT})":
        return
    if isinstance(node, ast.Call) and (apart := unpacking(node)) is not None:
        _check(apart[0], entry_point, is_inside)
        return
    if grammar.is_call(node, entry_point) or _is_around(node, entry_point):
        _check_arguments(node, entry_point, is_inside)  # type: ignore[arg-type]  # a Call
    elif _is_history(node):
        _check_history(node, entry_point, is_inside)  # type: ignore[arg-type]
    elif is_operation(node, entry_point) and not isinstance(node, ast.Attribute):
        for part in node.args if isinstance(node, ast.Call) else ast.iter_child_nodes(node):
            if isinstance(part, ast.expr):
                check = _check if is_object(part, entry_point) else _check_part
                check(part, entry_point, is_inside)
    elif is_of_member(node, entry_point) and not is_of_class(entry_point):
        owner = node.value  # type: ignore[attr-defined]  # an Attribute
        while isinstance(owner, ast.Attribute) and not owner.attr.startswith("_"):  # `f(x).level.name`
            owner = owner.value
        _check(owner, entry_point, is_inside)
    elif isinstance(node, ast.Attribute):
        is_own = is_inside and _is_it(node.value) and node.attr in _CHANGING
        if (node.attr.startswith(("_", "format")) and not is_own) or not (
            is_of_class(entry_point) or _is_of_object(node.attr)
        ):
            raise Rejected(Reason.ATTRIBUTE)
        if is_changed(node.value, entry_point) or is_set(node):
            raise Rejected(Reason.ATTRIBUTE)
        if not (isinstance(node.value, ast.Name) and node.value.id == entry_point):  # a method of the class
            _check(node.value, entry_point, is_inside)
    elif isinstance(node, ast.Call) and known_name(node.func) == _WAITING and len(node.args) == 1:
        _check(node.args[0], entry_point, is_inside)
    elif isinstance(node, ast.Call):
        owner = node.func.value if isinstance(node.func, ast.Attribute) else None
        is_own = owner is None or is_made(owner, entry_point) or (is_inside and _is_it(owner))
        is_own = is_own or _is_by_class(node, entry_point) or (is_inside and isinstance(owner, ast.Call))
        is_own = is_own or (member(owner) != "" and owner.value.id == entry_point)  # type: ignore[union-attr,arg-type]
        if not is_own and (isinstance(owner, ast.Attribute) or node.func.attr in _OF_DATA):  # type: ignore[attr-defined]
            raise Rejected(Reason.ATTRIBUTE)
        called = node.func
        while _is_item(called):
            called = called.value  # type: ignore[attr-defined]
        _check(called, entry_point, is_inside)
        _check_arguments(node, entry_point, is_inside)
    elif _is_item(node) and not is_of_class(entry_point):  # `f(x)[0].area()`
        _check(node.value, entry_point, is_inside)  # type: ignore[attr-defined]  # a Subscript
    elif not (is_inside and _is_it(node)):
        raise Rejected(Reason.WRAPPED_CALL)


def _check_history(node: ast.Call, entry_point: str, is_inside: bool) -> None:
    made, calls = node.args[0], _calls_of(node)
    if is_made(node, entry_point):
        _check(made, entry_point, is_inside)
    else:
        if not isinstance(made, ast.List | ast.Dict | ast.Set) or grammar.mentions(made, entry_point):
            raise Rejected(Reason.WRAPPED_CALL)
        check_code(made, entry_point, (), grammar.MAX_DEPTH)
        if not all(
            isinstance(call, ast.Call) and grammar.is_call(call, entry_point) and any(map(_is_it, given_in(call)))
            for call in calls
        ):
            raise Rejected(Reason.WRAPPED_CALL)
    for call in calls:
        _check(call, entry_point, True)


def _check_arguments(call: ast.Call, entry_point: str, is_inside: bool) -> None:
    if any(isinstance(argument, ast.Starred) for argument in call.args):
        raise Rejected(Reason.STARRED)
    for part in plain_arguments(call):
        _check_part(part, entry_point, is_inside)


def _check_part(node: ast.expr, entry_point: str, is_inside: bool) -> None:
    """An argument: code, an answer of the entry point, or something made of such."""
    if (is_inside and _is_of_it(node)) or is_question(node, entry_point) or grammar.is_call(node, entry_point):
        _check(node, entry_point, is_inside)
        return
    is_whole = not grammar.mentions(node, entry_point) and not (is_inside and grammar.mentions(node, IT))
    if is_whole and not others_in(node, entry_point):
        check_code(node, entry_point, (), grammar.MAX_DEPTH)
        return
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and _is_of_program(node.value.id):
        if node.attr.startswith("_"):
            raise Rejected(Reason.ATTRIBUTE)
        return  # `Color.RED`
    is_builtin = (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and (node.func.id in PURE or _calls_program(node))
    )
    if not is_builtin and not isinstance(node, _CONTAINERS):
        raise Rejected(Reason.ENTRY_POINT_AGAIN)
    inner = given_in(node) if isinstance(node, ast.Call) else ast.iter_child_nodes(node)
    for part in inner:
        if isinstance(part, ast.expr):
            _check_part(part, entry_point, is_inside)


def _may_equal(one: Tree, other: Tree) -> bool:
    """Whether two trees of literals are equal, or nearly so: rather yes than no."""
    if isinstance(one, bool | int | float) and isinstance(other, bool | int | float):
        if isinstance(one, float) or isinstance(other, float):
            return abs(one - other) <= _NEAR * max(1.0, abs(one), abs(other))
        return one == other
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_may_equal, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        (tag, body), (other_tag, other_body) = *one.items(), *other.items()
        if tag == other_tag == "t":
            return _may_equal(body, other_body)
        if tag == other_tag and tag in ("s", "z"):
            return len(body) == len(other_body)  # in whatever order
        if tag == other_tag == "d":
            return _may_equal_dicts(body, other_body)
        return tag in ("f", "i", "c", "k") or other_tag in ("f", "i", "c", "k") or one == other
    return (type(one) is type(other) and one == other) or isinstance(one, dict) or isinstance(other, dict)


def _may_equal_dicts(one: list[list[Tree]], other: list[list[Tree]]) -> bool:
    if len(one) != len(other) or not all(type(key) is str for key, _ in (*one, *other)):
        return len(one) == len(other)
    values = {str(key): value for key, value in other}
    return all(str(key) in values and _may_equal(value, values[str(key)]) for key, value in one)
