"""Which lines and branches of a function a call runs: the function with a probe before each statement, in the sandbox.

A copy of the reference notes what it passes; a call of the copy returns the notes as plain data. The function is the
problem's own and trusted; what comes from a model is only the data that it is called with. So there is nothing to
forge: a tester can raise its coverage in one way, with inputs that run more of the function.

    lines      those on which a statement inside a function begins, docstrings apart. The module's own statements, `def`
               lines at its top included, run when it is loaded, whatever a suite does: they are not counted
    branches   two outcomes of each `if`, `elif`, `while` and `for`, and one of each `case` and of a match's end, where
               no case matches everything; conditions that are constants have none. A `while` or `for` is left by its
               condition only, not by `break`

Does not promise the figures of coverage.py, which counts `def` lines, leaves `case` to their arcs and has exceptions
besides. What a call ran before it raised counts; a call that is stopped (time, memory, a crash) counts for nothing, and
neither do bodies of generators, which nobody iterates. A reference that may keep state is asked in a new process for
every call.
"""

from __future__ import annotations

import ast
import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass

from codea1_env.errors import UnusableReference
from codea1_env.judging.schedule import limits_of, with_imports
from codea1_env.problems.kinds import adapted, called_name
from codea1_env.problems.problem import Problem
from codea1_env.reading.parsing import Unparsable, parse, source_of
from codea1_env.sandbox.protocol import MAX_BUDGET_S, CallsJob, JobResult, OutcomeKind, Sandbox
from codea1_env.sandbox.worlds import with_calls, world_of

_NOTES, _ENTRY = "_codea1_notes", "_codea1_measured"
_PROLOGUE = f"{_NOTES} = __import__('builtins').__dict__.setdefault({_NOTES!r}, set())"
"""One set for a script, which is a module of its own, and for what calls it."""
_EPILOGUE = """
def {entry}(*_positional, _codea1_called={function}, **_named):
    {notes}.clear()
    try:
        _codea1_called(*_positional, **_named)
    except Exception:
        pass
    return sorted({notes})
"""


@dataclass(frozen=True, slots=True)
class Probed:
    """A program that notes what it passes."""

    source: str
    is_line: tuple[bool, ...]
    """Of every probe, by number: whether it stands for a line, or for the outcome of a branch."""


@dataclass(frozen=True, slots=True)
class Covered:
    """What calls of one function ran."""

    program: Probed
    notes: tuple[frozenset[int], ...]
    """Of every call the probes that it passed; none where it was stopped."""

    def passed(self, calls: Sequence[int]) -> tuple[int, int]:
        """Lines that any of the calls at these places run, and branches' outcomes that they take."""
        passed = frozenset().union(*(self.notes[place] for place in calls))
        lines = sum(self.program.is_line[probe] for probe in passed)
        return lines, len(passed) - lines


def covered(sandbox: Sandbox, asked: Sequence[tuple[Problem, Sequence[bytes]]]) -> list[Covered]:
    """What every encoded call of each problem's reference runs, in one sandbox run.

    Raises UnusableReference where a reference is missing, does not parse or does not load, SandboxError where the
    sandbox fails.
    """
    programs = [probed(problem) for problem, _ in asked]
    jobs: list[CallsJob] = []
    for (problem, calls), program in zip(asked, programs, strict=True):
        room = len(calls) + 1
        limits = limits_of(problem)
        budget_s = min(room * limits.time_limit_s, MAX_BUDGET_S)
        limits = dataclasses.replace(limits, strikes=room, budget_s=budget_s)
        if calls:
            asking = CallsJob(
                program.source,
                _ENTRY,
                tuple(calls),
                limits,
                packages=problem.packages,
                world=with_calls(world_of(with_imports(problem, problem.reference_solution or "")), calls),
                is_program=problem.kind == "program",
            )
            jobs.append(asking)
    results = iter(sandbox.run(jobs) if jobs else [])
    coverage = []
    for (problem, calls), program in zip(asked, programs, strict=True):
        result = next(results) if calls else JobResult()
        if not result.loaded:
            raise UnusableReference(
                f"the reference_solution of problem {problem.problem_id!r} must load, got one that does not"
            )
        values = [each.value if each.kind is OutcomeKind.VALUE else b"[]" for each in result.outcomes]
        coverage.append(Covered(program, tuple(frozenset(json.loads(value)) for value in values)))
    return coverage


def probed(problem: Problem) -> Probed:
    """The reference with probes. Raises UnusableReference where it is missing or does not parse."""
    reference = problem.reference_solution
    try:
        module = parse(with_imports(problem, reference or ""))
    except Unparsable:
        reference = None
    if reference is None:
        raise UnusableReference(
            f"problem {problem.problem_id!r} must have a reference_solution that parses, got none that does"
        )
    probes = _Probes()
    module = probes.visit(module)
    body = module.body
    head = 0
    while head < len(body) and _stays_first(body[head]):
        head += 1
    body.insert(head, parse(_PROLOGUE).body[0])
    epilogue = _EPILOGUE.format(entry=_ENTRY, notes=_NOTES, function=called_name(problem))
    source = adapted(problem, source_of(ast.fix_missing_locations(module))).whole
    if problem.kind == "program":
        source = f"{_PROLOGUE}\n{source}"
    source = f"{source}\n{epilogue}"
    return Probed(source, tuple(probes.is_line))


def _stays_first(node: ast.stmt) -> bool:
    """A docstring, or an import from __future__."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    return isinstance(node, ast.ImportFrom) and node.module == "__future__"


class _Probes(ast.NodeTransformer):
    """Puts a probe before each statement of a function, and into each outcome of a branch."""

    def __init__(self) -> None:
        self.is_line: list[bool] = []
        self._lines: dict[int, int] = {}  # several statements of one line share its probe
        self._depth = 0

    def _probe(self, line: int | None = None) -> ast.stmt:
        """For a line, or for an outcome of a branch."""
        number = len(self.is_line)
        if line is None:
            self.is_line.append(False)
        else:
            number = self._lines.setdefault(line, number)
            if number == len(self.is_line):
                self.is_line.append(True)
        return parse(f"{_NOTES}.add({number})").body[0]

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
        self._depth += 1
        node.body = self._block(node.body)
        self._depth -= 1
        return node

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        return node

    def generic_visit(self, node: ast.AST) -> ast.AST:
        """Statements with blocks: every block's statements; at module level only what holds functions."""
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
                setattr(node, name, self._block(block))
        for name in ("handlers", "cases"):
            for child in getattr(node, name, ()):
                self.generic_visit(child)
        if self._depth:
            self._branches(node)
        return node

    def _block(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        body: list[ast.stmt] = []
        for statement in statements:
            is_text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
            if self._depth and not is_text:
                body.append(self._probe(statement.lineno))
            body.append(self.visit(statement))
        return body

    def _branches(self, node: ast.AST) -> None:
        match node:
            case ast.If() | ast.While() if not isinstance(node.test, ast.Constant):
                node.body.insert(0, self._probe())
                node.orelse.insert(0, self._probe())
            case ast.For() | ast.AsyncFor():
                node.body.insert(0, self._probe())
                node.orelse.insert(0, self._probe())
            case ast.Match():
                for each in node.cases:
                    each.body.insert(0, self._probe())
                if not any(each.guard is None and _matches_all(each.pattern) for each in node.cases):
                    node.cases.append(ast.match_case(ast.MatchAs(), None, [self._probe()]))


def _matches_all(pattern: ast.pattern) -> bool:
    match pattern:
        case ast.MatchAs(pattern=inner):
            return inner is None or _matches_all(inner)
        case ast.MatchOr(patterns=patterns):
            return _matches_all(patterns[-1])
    return False
