"""Test programs of public problem sets as test cases: what a script states as plain data, read without running it.

Known are asserts (`assert f(1) == 2`, and of closeness: `near_equality.py`) and unittest's methods at the top level, in
`check(candidate)`, in `test_...()` functions and methods; and EvalPlus's loops over lists (`input_lists.py`). Where
such a loop asks a reference function for the values, they are still to be computed: `Extracted.unvalued`. Whatever else
asserts something is in `Extracted.left_out`, with the reason: nothing is dropped silently.

Does not promise that a test case is right, nor that it says all that its assert said: messages go, as does that an
assert may have seen what an earlier one did to a shared argument.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from codea1_env.problems.input_lists import (
    asserts_equality,
    default_tolerance,
    has_only_floats,
    program_of,
    read_loop,
)
from codea1_env.problems.near_equality import read_near_equality
from codea1_env.reading.grammar import WrittenTest, canonical_name, read_assert
from codea1_env.reading.inlining import Names
from codea1_env.reading.parsing import Unparsable, parse
from codea1_env.reading.pure_expressions import Rejected
from codea1_env.reading.test_case import TestCase
from codea1_env.reading.wide.assertion_methods import condition_of

MAX_SCRIPT = 1 << 24
"""Characters of a script that is read."""
_SHOWN = 200


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Something that a script asserts and that is no test case."""

    source: str
    """The beginning of it."""
    reason: str


@dataclass(slots=True)
class Extracted:
    """What was found in one script."""

    tests: list[TestCase] = field(default_factory=list)
    """Each once, in order."""
    tolerance: float = 0.0
    """The largest one that a test among `tests` grants, 0 where every comparison is exact."""
    unvalued: list[str] = field(default_factory=list)
    """Calls of the entry point, as source: each must equal what `reference` returns for the same arguments."""
    reference: str = ""
    """A program that defines `reference_name`."""
    reference_name: str = ""
    reference_tolerance: float = 0.0
    """What is granted where such a value is a float."""
    left_out: list[LeftOut] = field(default_factory=list)


def extract(script: str, entry_point: str) -> Extracted:
    """What `script` asserts about `entry_point`, under its own name or as the parameter of a `check` function."""
    found = Extracted()
    try:
        module = parse(script, MAX_SCRIPT)
    except Unparsable as error:
        found.left_out.append(LeftOut(script[:_SHOWN], f"the script does not parse: {error}"))
        return found
    name = canonical_name(entry_point)
    _Reader(module, name, found).read_block(module.body, name)
    found.tests = list(dict.fromkeys(found.tests))
    found.unvalued = list(dict.fromkeys(found.unvalued))
    return found


def reasons(left_out: Iterable[LeftOut]) -> dict[str, int]:
    """How often each reason occurs, most frequent first."""
    counts: dict[str, int] = {}
    for each in left_out:
        counts[each.reason] = counts.get(each.reason, 0) + 1
    return dict(sorted(counts.items(), key=lambda item: -item[1]))


class _Reader:
    """Reads one script into `found`."""

    def __init__(self, module: ast.Module, entry_point: str, found: Extracted) -> None:
        self._module, self._entry_point, self._found = module, entry_point, found
        self._functions = {node.name: node for node in module.body if isinstance(node, ast.FunctionDef)}

    def read_block(self, body: Sequence[ast.stmt], subject: str) -> None:
        """The statements of a module or of a test function. `subject`: the name of what is called there."""
        names = Names()
        lists: dict[str, ast.expr] = {}
        for node in body:
            match node:
                case ast.Assert():
                    self._read_condition(node.test, names, subject)
                case ast.Expr(value=ast.Call() as call) if condition := condition_of(call):
                    self._read_condition(condition, names, subject)
                case ast.Assign(targets=targets, value=value) if all(isinstance(each, ast.Name) for each in targets):
                    bound = [target.id for target in targets if isinstance(target, ast.Name)]
                    names.remember(bound, value)
                    lists.update(dict.fromkeys(bound, value))
                case ast.For() if read_loop(node, subject):
                    self._read_loop(node, lists, subject)
                case ast.FunctionDef():
                    names.forget(node)
                    self._read_function(node, node.args.args, subject)
                case ast.ClassDef() if not node.decorator_list and all(map(_is_test_case, node.bases)):
                    self._read_class(node, subject)
                case ast.Return():
                    return  # what follows never runs
                case ast.Expr(value=ast.Constant()) | ast.Import() | ast.ImportFrom() | ast.Pass():
                    names.forget(node)
                case _:
                    names.forget(node)
                    for inner in ast.walk(node):
                        if isinstance(inner, ast.Name):
                            lists.pop(inner.id, None)  # it may be another list from here on
                    self._leave_statement(node)

    def _read_function(self, node: ast.FunctionDef, parameters: Sequence[ast.arg], subject: str) -> None:
        """A check or test function; another one is a helper, and who calls it is looked at."""
        has_more = node.args.posonlyargs or node.args.kwonlyargs or node.args.vararg or node.args.kwarg
        if node.name == "check" and len(parameters) == 1 and not has_more:
            self.read_block(node.body, parameters[0].arg)
        elif node.name.startswith(("test", "check")):
            if node.decorator_list or has_more or parameters:
                self._leave(node, "a test function with parameters or decorators")
            else:
                self.read_block(node.body, subject)

    def _read_class(self, node: ast.ClassDef, subject: str) -> None:
        """A class of test methods, none of which prepares another one."""
        methods = [each for each in node.body if isinstance(each, ast.FunctionDef)]
        if any(not each.name.startswith("test") for each in methods):
            self._leave(node, "a class of tests with methods of its own")
            return
        for method in methods:
            self._read_function(method, method.args.args[1:], subject)

    def _read_condition(self, condition: ast.expr, names: Names, subject: str) -> None:
        """Of an assert, or what a method of unittest asserts."""
        for test in _conjuncts(condition):
            if isinstance(test, ast.Constant) and test.value:
                continue  # `assert True, "..."` asserts nothing
            near = read_near_equality(test)
            try:
                written = self._read(names.inlined(near.equality if near else test), subject)
            except Rejected as error:
                self._leave(test, error.reason.value)
                continue
            if self._take(written, test) and near:
                self._found.tolerance = max(self._found.tolerance, near.tolerance)

    def _read(self, test: ast.expr, subject: str) -> WrittenTest:
        return read_assert(_renamed(test, subject, self._entry_point), "", self._entry_point)

    def _take(self, written: WrittenTest, node: ast.expr) -> bool:
        """Take a test case up, or leave it out."""
        if written.call is None or written.stated is None:
            self._leave(node, written.reason)
            return False
        self._found.tests.append(TestCase(written.call, written.stated))
        return True

    def _read_loop(self, node: ast.For, lists: dict[str, ast.expr], subject: str) -> None:
        """One of EvalPlus's loops, or one that only looks like it."""
        loop = read_loop(node, subject)
        assert loop is not None
        inputs, results = lists.get(loop.inputs), lists.get(loop.results)
        helper = self._functions.get(loop.helper)
        if not isinstance(inputs, ast.List):
            self._leave(node, "a loop whose inputs are not listed")
        elif helper is None or not asserts_equality(helper):
            self._leave(node, f"{loop.helper} compares otherwise than by equality")
        elif loop.reference:
            self._found.reference = program_of(self._module, loop.reference)
            self._found.reference_name = loop.reference
            self._found.reference_tolerance = loop.tolerance or default_tolerance(helper)
            for arguments in inputs.elts:
                self._read_unvalued(arguments)
        elif not isinstance(results, ast.List) or len(results.elts) != len(inputs.elts):
            self._leave(node, "a loop whose results are not listed, one for each input")
        else:
            default = default_tolerance(helper)
            for arguments, value in zip(inputs.elts, results.elts, strict=True):
                granted = loop.tolerance or (default if has_only_floats(value) else 0.0)
                if self._take(self._read(_equality(self._entry_point, arguments, value), self._entry_point), arguments):
                    self._found.tolerance = max(self._found.tolerance, granted)

    def _read_unvalued(self, arguments: ast.expr) -> None:
        written = self._read(_equality(self._entry_point, arguments, ast.Constant(None)), self._entry_point)
        if written.call is None:
            self._leave(arguments, written.reason)
        else:
            self._found.unvalued.append(written.call)

    def _leave_statement(self, node: ast.stmt) -> None:
        """A statement that is no assert: left out where it may assert something, silently or in what it calls."""
        match node:
            case ast.Expr(value=ast.Call(func=ast.Name("check"), args=[ast.Name(name)])) if name == self._entry_point:
                return  # runs the function that was read
            case ast.If(test=ast.Compare(left=ast.Name("__name__"))):
                return  # starts the tests
        if any(isinstance(inner, ast.Assert | ast.Call | ast.Raise) for inner in ast.walk(node)):
            is_compound = hasattr(node, "body")
            self._leave(node, f"in a compound statement: {type(node).__name__}" if is_compound else "no assert")

    def _leave(self, node: ast.AST, reason: str) -> None:
        """Leave every assert in `node` out, or `node` itself where it has none."""
        asserts = [each for each in ast.walk(node) if isinstance(each, ast.Assert) or _is_unittests(each)]
        self._found.left_out += [LeftOut(_shown(each), reason) for each in asserts or [node]]


def _is_unittests(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and condition_of(node) is not None


def _is_test_case(base: ast.expr) -> bool:
    return ast.unparse(base).endswith("TestCase")


def _conjuncts(test: ast.expr) -> Iterable[ast.expr]:
    """`a and b` asserts both."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return [part for value in test.values for part in _conjuncts(value)]
    return [test]


def _equality(function: str, arguments: ast.expr, value: ast.expr) -> ast.expr:
    """`function(*arguments) == value`; arguments that are no display stay spread, which the grammar refuses."""
    spread = arguments.elts if isinstance(arguments, ast.List | ast.Tuple) else [ast.Starred(arguments)]
    return ast.Compare(ast.Call(ast.Name(function, ast.Load()), list(spread), []), [ast.Eq()], [value])


def _renamed(node: ast.expr, old: str, new: str) -> ast.expr:
    """The expression with the subject under the entry point's name."""
    if old != new:
        for inner in ast.walk(node):
            if isinstance(inner, ast.Name) and inner.id == old:
                inner.id = new
    return node


def _shown(node: ast.AST) -> str:
    return " ".join(ast.unparse(node).split())[:_SHOWN]
