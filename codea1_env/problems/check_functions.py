"""Test programs of public problem sets as test cases: what a script states as plain data, read without running it.

A script is gone through as a suite is in the wide reading (`reading/wide/reader.py`): functions, methods, checks,
tables, unittest's methods; one that does not parse, piece by piece. But every condition must be an equality, or
closeness, and EvalPlus's loops over lists are known (`input_lists.py`). Where such a loop asks a reference function for
the values, they are still to be computed: `Extracted.unvalued`. Whatever else asserts something is in
`Extracted.left_out`, with the reason: nothing is dropped silently.

    abs(f(1) - 2) < 1e-6     f(1) == pytest.approx(2)     math.isclose(f(1), 2, abs_tol=1e-6)

Closeness is read as an equality and a tolerance. The judge's is relative and absolute at once: one that was absolute
becomes the share of the value that it is, where the value is a number over 1. Others of a problem may become laxer by
it, never stricter: what is more than LARGEST is left out.

Does not promise that a test case is right, nor that it says all that its assert said: messages go, as does that an
assert may have seen what an earlier one did to a shared argument.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from codea1_env.problems.input_lists import asserts_equality, default_tolerance, has_only_floats, read_loop
from codea1_env.reading.grammar import WrittenTest, canonical_name, read_assert
from codea1_env.reading.parsing import SourceText, Unparsable, normalised, parse, source_of, unindented
from codea1_env.reading.programs.reach import needed_by, pieces_of
from codea1_env.reading.pure_expressions import Reason, Rejected
from codea1_env.reading.steps import TooMuch
from codea1_env.reading.suites import Ignored
from codea1_env.reading.test_case import TestCase
from codea1_env.reading.wide.claims import condition_of
from codea1_env.reading.wide.reader import CANDIDATE, WideReader
from codea1_env.reading.wide.relational_tests import APPROX, ISCLOSE, called_name, tolerances
from codea1_env.reading.wide.statements import is_main

MAX_SCRIPT = 1 << 24
"""Characters of a script that is read."""
_MOST_STEPS = 1 << 22
"""Of reading one script, which may be larger than a suite."""
_SHOWN = 200


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Something that a script asserts and that is no test case."""

    source: str
    """The beginning of it."""
    reason: str


@dataclass(slots=True)
class Extracted:
    """What was found in one script, or in a set's pairs of call and value (`sources/pairs.py`)."""

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
    are_golden: bool = False
    """Whether such calls become golden tests; else hidden ones."""
    left_out: list[LeftOut] = field(default_factory=list)
    malformed: str = ""
    """Of pairs: what the first one must be that is none."""


def extract(script: str, entry_point: str, rewriter: ast.NodeTransformer | None = None) -> Extracted:
    """What `script` asserts about `entry_point`, under its own name or as the `candidate` of a check. `rewriter`: what
    becomes of a set's own spelling before it is read."""
    extracted = Extracted()
    _Reader(canonical_name(entry_point), extracted, rewriter).read(unindented(normalised(script)))
    extracted.tests = list(dict.fromkeys(extracted.tests))
    extracted.unvalued = list(dict.fromkeys(extracted.unvalued))
    return extracted


def reasons(left_out: Iterable[LeftOut]) -> dict[str, int]:
    """How often each reason occurs, most frequent first."""
    return dict(Counter(each.reason for each in left_out).most_common())


class _Reader(WideReader):
    """Reads one script into `found`."""

    def __init__(self, entry_point: str, found: Extracted, rewriter: ast.NodeTransformer | None) -> None:
        super().__init__(entry_point)
        self._steps.left = _MOST_STEPS
        self._code = ""
        """Of a script that parses as a whole."""
        self._found, self._rewriter = found, rewriter
        self._lists: dict[str, ast.expr] = {}

    def read(self, code: str) -> None:
        """Take everything that can be read of the script. Helpers are not looked at: who calls them is."""
        try:
            try:
                module = parse(code, MAX_SCRIPT)
            except Unparsable as error:
                if len(code) > MAX_SCRIPT:
                    self._lost(code, str(error))
                else:
                    self._recover(code, 0)
            else:
                self._code = code
                self._module(module, code)
        except TooMuch:
            self._found.left_out.append(LeftOut("", Ignored.TOO_MUCH.value))

    def _module(self, module: ast.Module, code: str) -> None:
        if self._rewriter is not None:
            ast.fix_missing_locations(self._rewriter.visit(module))
        super()._module(module, code)

    def _lost(self, text: str, failure: str) -> None:
        self._found.left_out.append(LeftOut(text[:_SHOWN], f"the script does not parse: {failure or 'syntax'}"))

    def _statement(self, statement: ast.stmt, source: SourceText) -> str:
        if isinstance(statement, ast.If) and is_main(statement):
            return ""  # starts the tests
        return super()._statement(statement, source)

    def _assign(self, statement: ast.Assign | ast.AnnAssign) -> None:
        super()._assign(statement)
        for target in statement.targets if isinstance(statement, ast.Assign) else []:
            if isinstance(target, ast.Name):
                self._lists[target.id] = statement.value  # type: ignore[assignment]  # of an Assign

    def _condition(self, condition: ast.expr, source: str, is_one: bool = False) -> None:
        for test in _conjuncts(condition):
            if isinstance(test, ast.Constant) and test.value:
                continue  # `assert True, "..."` asserts nothing
            equality, tolerance = read_near_equality(test) or (test, 0.0)
            try:
                written = read_assert(self._inlined(equality), "", self.entry_point)
            except Rejected as error:
                self._leave(test, error.reason.value)
                continue
            finally:
                self._names.note_changes(test)
            if self._take(written, test):
                self._found.tolerance = max(self._found.tolerance, tolerance)

    def _exception(self, expects: ast.expr | None, body: Sequence[ast.stmt] | None, source: str) -> None:
        self._found.left_out.append(LeftOut(source[:_SHOWN], Reason.EXPECTS_EXCEPTION.value))

    def _take(self, written: WrittenTest, node: ast.expr) -> bool:
        """Take a test case up, or leave it out."""
        if written.call is None or written.stated is None:
            self._leave(node, written.reason)
            return False
        self._found.tests.append(TestCase(written.call, written.stated))
        return True

    def _loop(self, statement: ast.For, source: SourceText) -> str:
        """One of EvalPlus's loops, one that only looks like it, or any other."""
        loop = read_loop(statement, CANDIDATE) or read_loop(statement, self.entry_point)
        if loop is None:
            return super()._loop(statement, source)
        inputs, results = self._lists.get(loop.inputs), self._lists.get(loop.results)
        known = self._functions.get(loop.helper)
        helper = known.node if known else None
        if not isinstance(inputs, ast.List):
            self._leave(statement, "a loop whose inputs are not listed")
        elif helper is None or not asserts_equality(helper):
            self._leave(statement, f"{loop.helper} compares otherwise than by equality")
        elif loop.reference:
            needed = needed_by(pieces_of(self._code, MAX_SCRIPT), [loop.reference])
            self._found.reference = "\n".join(piece.text for piece in needed)
            self._found.reference_name = loop.reference
            self._found.reference_tolerance = loop.tolerance or default_tolerance(helper)
            for arguments in inputs.elts:
                written = self._equality(arguments, ast.Constant(None))
                if written.call is None:
                    self._leave(arguments, written.reason)
                else:
                    self._found.unvalued.append(written.call)
        elif not isinstance(results, ast.List) or len(results.elts) != len(inputs.elts):
            self._leave(statement, "a loop whose results are not listed, one for each input")
        else:
            default = default_tolerance(helper)
            for arguments, value in zip(inputs.elts, results.elts, strict=True):
                granted = loop.tolerance or (default if has_only_floats(value) else 0.0)
                if self._take(self._equality(arguments, value), arguments):
                    self._found.tolerance = max(self._found.tolerance, granted)
        return ""

    def _equality(self, arguments: ast.expr, value: ast.expr) -> WrittenTest:
        """Of the entry point with these arguments; those that are no display stay spread, which the grammar refuses."""
        spread = arguments.elts if isinstance(arguments, ast.List | ast.Tuple) else [ast.Starred(arguments)]
        call = ast.Call(ast.Name(self.entry_point, ast.Load()), list(spread), [])
        return read_assert(ast.Compare(call, [ast.Eq()], [value]), "", self.entry_point)

    def _skip(self, what: Ignored, node: ast.AST) -> None:
        """Left out where it may assert something, if only in what it calls; its lists may be others from here on."""
        inside = list(ast.walk(node))
        for inner in inside:
            self._lists.pop(getattr(inner, "id", ""), None)
        if any(isinstance(inner, ast.Assert | ast.Call | ast.Raise) for inner in inside):
            self._leave(node, what.value)

    def _leave(self, node: ast.AST, reason: str) -> None:
        """Leave every assert in `node` out, or `node` itself where it has none."""
        calls = [each for each in ast.walk(node) if isinstance(each, ast.Assert | ast.Call)]
        asserts: list[ast.AST] = [
            each for each in calls if isinstance(each, ast.Assert) or condition_of(each) is not None
        ]
        self._found.left_out += [LeftOut(_shown(each), reason) for each in asserts or [node]]


def _conjuncts(test: ast.expr) -> Iterable[ast.expr]:
    """`a and b` asserts both."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return [part for value in test.values for part in _conjuncts(value)]
    return [test]


def _shown(node: ast.AST) -> str:
    try:
        return " ".join(source_of(node).split())[:_SHOWN]
    except Unparsable:
        return "(a deep expression)"


LARGEST = 1e-2
"""Tolerances above it are no matter of rounding."""


def read_near_equality(test: ast.expr) -> tuple[ast.expr, float] | None:
    """What the condition of an assert states, if it is one of the three forms with constant tolerances: the equality,
    whichever side the call is on, and the tolerance."""
    match test:
        case ast.Compare(
            left=ast.Call(
                func=ast.Name("abs") | ast.Attribute(value=ast.Name("math"), attr="fabs" | "abs"),
                args=[ast.BinOp(left=left, op=ast.Sub(), right=right)],
                keywords=[],
            ),
            ops=[ast.Lt() | ast.LtE()],
            comparators=[bound],
        ):
            return _near(left, right, 0.0, _constant(bound))
        case ast.Compare(
            left=left, ops=[ast.Eq()], comparators=[ast.Call(func=function, args=[right, *more]) as near]
        ) if called_name(function) == "approx":
            return _near(left, right, *_granted(near, more, APPROX))
        case ast.Call(func=function, args=[left, right]) if called_name(function) == "isclose":
            return _near(left, right, *_granted(test, [], ISCLOSE))
    return None


def _near(
    left: ast.expr, right: ast.expr, relative: float | None, absolute: float | None
) -> tuple[ast.expr, float] | None:
    if relative is None or absolute is None:
        return None
    values = [value for side in (left, right) if (value := _constant(side)) is not None]
    tolerance = max(relative, absolute / max([1.0, *map(abs, values)]))
    if not 0 < tolerance <= LARGEST:
        return None
    return ast.Compare(left, [ast.Eq()], [right]), tolerance


def _granted(
    call: ast.Call, positional: Sequence[ast.expr], defaults: Mapping[str, str]
) -> tuple[float | None, float | None]:
    """The relative and the absolute tolerance; None for one that is not a constant."""
    try:
        relative, absolute = (_constant(value) for value in tolerances(call.keywords, positional, defaults))
    except Rejected:
        return None, None
    return relative, absolute


def _constant(node: ast.expr) -> float | None:
    """A number, as `1e-6`, `0.5` or `10 ** -6`."""
    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            return float(value) if abs(value) < 1e300 else None
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            negated = _constant(operand)
            return None if negated is None else -negated
        case ast.BinOp(
            left=ast.Constant(10), op=ast.Pow(), right=ast.UnaryOp(op=ast.USub(), operand=ast.Constant(int(power)))
        ) if 0 < power < 100:
            return 10.0**-power
    return None
