"""Kinds of problems: what a solution is, and how a call of the entry point reaches it.

    function    the entry point is a function of the solution, f([1, 2]); or, where it defines no such function, a
                method of its `class Solution`, on a new object for each call
    method      of the solution's class, on a new object for each call: Solution().f([1, 2])
    class       a sequence of calls on one object, names and arguments apart: C(["C", "put"], [[2], [1, 7]]), and the
                value is the list of what they return, None first
    generator   a function whose values are listed, the first MOST_LISTED of them
    coroutine   an `async def`, which is run to its end; what it sleeps takes no time
    program     a whole script; the call's one argument is its standard input, the value its standard output

Tests of every kind are a call with plain arguments and a plain value. What turns one into the other stands behind the
solution, in the candidate's own process (`adapted`): it is made of the problem's texts alone and knows no value.

Where a problem says so (`Problem.raises`), a raised exception is a value, too: {'raises': 'ValueError'}. Those that
derive from a named one count as it, as in `pytest.raises`; a name of Python's own means Python's own class. To return a
dict with that key is an error there.

A method's parameters and result that its signature says are `ListNode` or `TreeNode` are plain lists in tests: the
values from the head on, and the tree level by level with None for a child that is not there. Which classes they are,
the solution or the problem's `imports` say.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import json
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from codea1_env.reading.parsing import Unparsable, parse
from codea1_env.reading.signatures import has_solution_class
from codea1_env.sandbox.protocol import CallsJob, Limits
from codea1_env.sandbox.worlds import PLAIN, World

if TYPE_CHECKING:
    from codea1_env.problems.problem import Problem

Kind: TypeAlias = Literal["function", "method", "class", "generator", "coroutine", "program"]
KINDS: tuple[Kind, ...] = ("function", "method", "class", "generator", "coroutine", "program")
MOST_LISTED = 1000
"""Values of a generator, and nodes of a list or tree."""
PARAMETERS: dict[Kind, tuple[str, ...]] = {"class": ("names", "arguments"), "program": ("text",)}
"""What the kinds are called with that are called in one way, whatever the solution."""
METHOD = re.compile(r"(?P<owner>[^\W\d]\w*)\(\)\.(?P<name>[^\W\d]\w*)")
"""The entry point of a method."""
_ENTRY = "_codea1_entry"
"""What the sandbox calls where the entry point is not called as it is."""
_RAISING = "_codea1_raising"
"""Likewise, where exceptions are answers."""
RAISES = re.compile(r"(?P<name>[^\W\d]\w*)(?P<message>\(message\))?")
"""What `Problem.raises` is made of."""
_EXCEPTION = re.compile(r"\b[A-Z]\w*(?:Error|Exception|Warning|Interrupt|Iteration|Exit)\b")
"""How a question names one."""
NODES = {
    "ListNode": """class ListNode:
    def __init__(self, val=0, next=None):
        self.val = val
        self.next = next
""",
    "TreeNode": """class TreeNode:
    def __init__(self, val=0, left=None, right=None):
        self.val = val
        self.left = left
        self.right = right
""",
}
"""The customary classes, for a problem's `imports`."""

# What follows a solution stands in its module, where it may have given Python's own names to other things.
_WHERE_CALLABLE = """
import builtins as _codea1_builtins
if _codea1_builtins.callable(_codea1_builtins.globals().get({name!r})):
"""
_CLASS = """    def {entry}(names, arguments):
        import copy
        from builtins import ValueError, all, any, getattr, isinstance, len, list, tuple, zip
        if not names or names[0] != {owner!r} or len(names) != len(arguments):
            raise ValueError("a sequence must begin with the class and have arguments for each name")
        if not all(isinstance(each, (list, tuple)) for each in (names, arguments, *arguments)):
            raise ValueError("names, arguments and those of each name must be lists or tuples")
        if any(name.startswith("_") for name in names):
            raise ValueError("a sequence must be of public methods")
        made = {owner}(*arguments[0])
        values = [None]
        for name, given in zip(names[1:], arguments[1:]):
            values.append(copy.deepcopy(getattr(made, name)(*given)))
        return values
"""
_SOLUTION = """
import builtins as _codea1_builtins
if _codea1_builtins.getattr(_codea1_builtins.globals().get({name!r}), "__module__", "") != __name__ and (
    _codea1_has_method()
):
    def {name}(*arguments, **named):
        return _codea1_method()(*arguments, **named)
"""
# A method may be an attribute of the object or come from `__getattr__`. An object that is asked for it at the beginning
# is the first call's, so that a program makes as many objects as it has calls.
_OWNED = """
_codea1_first = []

def _codea1_has_method():
    from builtins import BaseException, getattr, globals, hasattr
    owner = globals().get({owner!r})
    try:
        if not hasattr(owner, {name!r}):
            _codea1_first.append(getattr(owner(), {name!r}))
    except BaseException:
        return False
    return True

def _codea1_method():
    return _codea1_first.pop() if _codea1_first else {owner}().{name}
"""
_METHOD = """
if _codea1_has_method():
    def {entry}(*arguments, **named):
        return _codea1_method()(*arguments, **named)
"""
_GENERATOR = """    def {entry}(*arguments, **named):
        import itertools
        from builtins import list
        return list(itertools.islice({name}(*arguments, **named), {most}))
"""
_COROUTINE = """    def {entry}(*arguments, **named):
        import sys
        from builtins import StopIteration
        running = {name}(*arguments, **named)
        if "asyncio" in sys.modules:
            return _codea1_loop(sys.modules["asyncio"]).run_until_complete(running)
        try:
            while True:
                running.send(None)
        except StopIteration as end:
            return end.value

def _codea1_loop(asyncio):
    import math, threading
    from builtins import RuntimeError, max, super

    class Loop(asyncio.BaseEventLoop):
        now, working, woken = 0.0, 0, threading.Event()

        def time(self):
            return self.now

        def select(self, timeout):
            is_awaited = self.working or (timeout is None and threading.active_count() > 1)
            if timeout is None and not is_awaited:
                raise RuntimeError("the coroutine waits for what never comes")
            if is_awaited and self.woken.wait(timeout):  # what threads do takes its time, and no time of the loop's
                self.woken.clear()
            else:
                self.now += timeout
                self._clock_resolution = max(self._clock_resolution, math.ulp(self.now))  # or it never comes to an end
            return []

        def run_in_executor(self, executor, func, *args):
            future = super().run_in_executor(executor, func, *args)
            self.working += 1
            future.add_done_callback(self._done)
            return future

        def _done(self, future):
            self.working -= 1

        def _process_events(self, events):
            pass

        def _write_to_self(self):
            self.woken.set()

    loop = Loop()
    loop._selector = loop
    return loop
"""
# What runs it is the sandbox's own (`sandbox/inside/streams.py`), which knows real descriptors.
_PROGRAM = """
import sys
_codea1_text = {source!r}
_codea1_code = compile(_codea1_text, "program.py", "exec", dont_inherit=True)

def {entry}(text):
    return sys.modules["widening"].run_program(_codea1_text, text, code=_codea1_code)
"""
_PROGRAM_BY_ITSELF = """
import sys
def {entry}(text):
    return sys.modules["widening"].run_program({source!r}, text, {reports})
"""
_ANSWERS = """    def {raising}(*arguments, _codea1_called={name}, **named):
        import builtins
        try:
            value = _codea1_called(*arguments, **named)
        except builtins.BaseException as error:
            for kind in builtins.type(error).__mro__:
                name = kind.__name__
                if name in {names!r} and kind is builtins.getattr(builtins, name, kind):
                    return {{"raises": name, "message": builtins.str(error)}} if {names!r}[name] else {{"raises": name}}
            raise
        names = builtins.dict.keys(value) if builtins.isinstance(value, builtins.dict) else ()
        if "raises" in [builtins.str.__str__(name) for name in names if builtins.isinstance(name, builtins.str)]:
            raise builtins.TypeError("what stands for an exception must be raised")
        return value
"""
_NODES = """
def _codea1_node(kind, value):
    from builtins import TypeError
    try:
        node = kind()
    except TypeError:  # a class of the program's own that must be given a value
        node = kind(value)
    node.val = value
    return node

def _codea1_made(value, shape):
    from builtins import TypeError, ValueError, enumerate, isinstance, list, type, zip
    if shape is not None and value is not None and type(value) is not list:
        raise TypeError("nodes must be given as a list")
    if isinstance(shape, list):
        return [_codea1_made(item, shape[0]) for item in value]
    if shape is None or not value:
        return value if shape is None else None
    if shape == "ListNode":
        nodes = [_codea1_node(ListNode, item) for item in value]
        for node, following in zip(nodes, nodes[1:] + [None]):
            node.next = following
        return nodes[0]
    nodes = [None if item is None else _codea1_node(TreeNode, item) for item in value]
    given = 1
    for place, node in enumerate(nodes):
        if node is not None:
            if place >= given:
                raise ValueError("a node of a tree must have a parent")
            node.left, node.right = (nodes[given : given + 2] + [None, None])[:2]
            given += 2
    return nodes[0]

def _codea1_plain(value, shape):
    from builtins import ValueError, any, isinstance, len, list
    if isinstance(shape, list):
        return [_codea1_plain(item, shape[0]) for item in value]
    if shape is None:
        return value
    found = []
    if shape == "ListNode":
        while value is not None:
            found.append(value.val)
            value = value.next
            if len(found) > {most}:
                raise ValueError("a list must end")
        return found
    level = [value]
    while any(node is not None for node in level):
        found += [None if node is None else node.val for node in level]
        level = [child for node in level if node is not None for child in (node.left, node.right)]
        if len(found) > {most}:
            raise ValueError("a tree must end")
    while found and found[-1] is None:
        found.pop()
    return found

if _codea1_has_method():
    def {entry}(*arguments, **named):
        from builtins import list, zip
        shapes, result = {shapes!r}, {result!r}
        arguments = [_codea1_made(value, shape) for value, shape in zip(arguments, list(shapes.values()) + [None] * 99)]
        named = {{name: _codea1_made(value, shapes.get(name)) for name, value in named.items()}}
        return _codea1_plain(_codea1_method()(*arguments, **named), result)
"""


def exceptions_of(problem: Problem) -> Mapping[str, bool]:
    """The exceptions that a test may expect, by name, and whether it may claim something of their text: those of
    `raises`, or else those that the question names or a `raise` of the reference."""
    if problem.raises:
        return _names_of(problem.raises)
    return dict.fromkeys((*_EXCEPTION.findall(problem.question), *_raised_by(problem.reference_solution or "")), True)


@functools.lru_cache(maxsize=4096)
def _raised_by(source: str) -> tuple[str, ...]:
    """The names of the exceptions that a program's `raise` statements name, dotted ones by their last name."""
    try:
        every = [node.exc for node in ast.walk(parse(source)) if isinstance(node, ast.Raise)]
    except Unparsable:
        return ()
    kinds = [each.func if isinstance(each, ast.Call) else each for each in every]
    return tuple({getattr(kind, "attr", getattr(kind, "id", "")): None for kind in kinds if kind is not None})


def _names_of(raises: tuple[str, ...]) -> dict[str, bool]:
    """{name: whether its message counts}."""
    return {match["name"]: bool(match["message"]) for match in map(RAISES.fullmatch, raises) if match}


def called_name(problem: Problem) -> str:
    """What the sandbox calls in an adapted solution."""
    return _RAISING if problem.raises else _kinds_name(problem)


class Adapted(NamedTuple):
    """A solution as it is run."""

    source: str
    epilogue: str
    """What makes `called_name` of it: our own text, which runs behind it in its names."""

    @property
    def whole(self) -> str:
        """Both in one text."""
        return f"{self.source}\n{self.epilogue}" if self.epilogue else self.source


def adapted(problem: Problem, source: str) -> Adapted:
    """The solution with what makes `called_name` of it. Decided by the problem's texts alone."""
    source, epilogue = _of_kind(problem, source)
    if problem.raises:
        names = _names_of(problem.raises)
        epilogue += (_WHERE_CALLABLE + _ANSWERS).format(name=_kinds_name(problem), raising=_RAISING, names=names)
    return Adapted(source, epilogue)


def _kinds_name(problem: Problem) -> str:
    return problem.entry_point if problem.kind == "function" else _ENTRY


def _of_kind(problem: Problem, source: str) -> Adapted:
    if problem.kind == "function":
        if not has_solution_class(source):
            return Adapted(source, "")
        return Adapted(source, (_OWNED + _SOLUTION).format(owner="Solution", name=problem.entry_point))
    if problem.kind == "program":
        return Adapted(_PROGRAM.format(entry=_ENTRY, source=source), "")
    if problem.kind == "coroutine" and "asyncio" in source:
        source += "\nimport asyncio as _codea1_asyncio"  # the solution may import it no sooner than it runs
    return Adapted(source, _epilogue(problem.kind, problem.entry_point, _signatures(problem)))


def program_job(
    source: str, stdins: Iterable[str], limits: Limits, world: World = PLAIN, reports: bool = False
) -> CallsJob:
    """A whole program by itself, in a process for each standard input: the value is what it printed. `reports`: a list
    of that, of what it wrote to standard error and of its exit status, also where it failed."""
    text = _PROGRAM_BY_ITSELF.format(entry=_ENTRY, source=source, reports=reports)
    calls = tuple(json.dumps([[stdin], []]).encode() for stdin in stdins)
    return CallsJob(text, _ENTRY, calls, limits, world=world, is_program=True)


def argument_shapes(problem: Problem) -> Mapping[str, Any]:
    """`node_shapes` of a method's parameters; empty where none of its arguments is made of nodes."""
    shapes = _shapes(problem.entry_point, _signatures(problem)) if problem.kind == "method" else {}
    return {name: shape for name, shape in shapes.items() if name != "return"}


def _signatures(problem: Problem) -> tuple[str, ...]:
    """Where a method's stands; the first that names nodes counts."""
    return (problem.starter_code, problem.reference_solution or "") if problem.kind == "method" else ()


@functools.lru_cache(maxsize=4096)
def _shapes(entry_point: str, signatures: tuple[str, ...]) -> Mapping[str, Any]:
    name = entry_point.rpartition(".")[2]
    return next(filter(None, (node_shapes(source, name) for source in signatures)), {})


@functools.lru_cache(maxsize=4096)
def _epilogue(kind: Kind, entry_point: str, signatures: tuple[str, ...]) -> str:
    known = {"entry": _ENTRY, "name": entry_point, "owner": entry_point, "most": MOST_LISTED}
    if kind == "method":
        known["owner"], _, known["name"] = entry_point.partition("().")
        if shapes := dict(_shapes(entry_point, signatures)):
            result = shapes.pop("return", None)
            return (_OWNED + _NODES).format(**known, shapes=shapes, result=result)
        return (_OWNED + _METHOD).format(**known)
    return (_WHERE_CALLABLE + {"class": _CLASS, "generator": _GENERATOR, "coroutine": _COROUTINE}[kind]).format(**known)


def node_shapes(source: str, method: str) -> dict[str, Any]:
    """{parameter: ListNode or TreeNode, a list of one of them, or None}, in order, and `return`; empty if none is."""
    node = method_in(source, method)
    if node is None:
        return {}
    given = [each for each in (*node.args.posonlyargs, *node.args.args) if each.arg != "self"]
    shapes = {each.arg: _shape(each.annotation) for each in given} | {"return": _shape(node.returns)}
    return shapes if any(shapes.values()) else {}


def method_in(source: str, name: str) -> ast.FunctionDef | None:
    """The first function of this name, on whatever level. A starter without a body is read as though it had one."""
    for text in (f"{source.rstrip()}\n        pass\n", source):
        with contextlib.suppress(Unparsable):
            functions = [node for node in ast.walk(parse(text)) if isinstance(node, ast.FunctionDef)]
            return next((node for node in functions if node.name == name), None)
    return None


def _shape(annotation: ast.expr | None) -> Any:
    match annotation:
        case ast.Name(name) if name in NODES:
            return name
        case ast.Constant(str(quoted)):
            try:
                (node,) = parse(quoted).body
            except (Unparsable, ValueError):
                return None
            return _shape(node.value) if isinstance(node, ast.Expr) else None
        case ast.Subscript(ast.Name("List" | "list"), inner):
            shape = _shape(inner)
            return None if shape is None else [shape]
        case ast.Subscript(ast.Name("Optional"), inner):
            return _shape(inner)
        case ast.BinOp(left, ast.BitOr(), right):
            return _shape(left) or _shape(right)
    return None
