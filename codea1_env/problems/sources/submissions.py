"""ConDefects and Refactory: wrong programs that people wrote, beside right ones, as the mutants of a problem.

Both are directories, as their archives unpack:

    condefects   Code/TASK/Python/ID/{correctVersion,faultyVersion}.py; Test/CONTEST/LETTER/{in,out}/NAME
    refactory    question_N/ans/{input,output}_NAME.txt; question_N/code/{reference/reference.py,wrong/*.py,global.py}

Neither has its questions' statements. `description.txt` beside a task's programs is taken for one; without it a problem
says what it is called and serves the tester, who sees the program. Does not check that a wrong program fails a test.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from codea1_env.errors import ConfigurationError
from codea1_env.problems.check_functions import Extracted, LeftOut
from codea1_env.problems.sources.draft import MAX_TEXT, Draft, ParsedProgram, Row, RowError, RowFields, Source
from codea1_env.problems.sources.pairs import PROGRAM, test_of
from codea1_env.reading.parsing import Unparsable, parse, parses, source_of
from codea1_env.reading.test_case import TestCase

MOST_TESTS = 16
"""Of a ConDefects task, the shortest ones: there are up to hundreds."""
MOST_MUTANTS = 64
"""Different wrong programs of a task: students of Refactory handed in some 350 to a question."""
_GOLDEN = 3
_NON_FINITE = re.compile(r"\b(?:inf|nan)\b")


def condefects_rows(path: Path) -> Iterator[Row]:
    """One for each task with Python programs. Raises ConfigurationError."""
    tasks = sorted(each.parent for each in (path / "Code").glob("*/Python") if each.is_dir())
    if not tasks:
        raise ConfigurationError(f"{path} must be ConDefects' directory, with Code/TASK/Python in it, got none there")
    for task in tasks:
        contest, _, letter = task.name.partition("_")
        tests = path / "Test" / contest / letter.upper()
        names = sorted(each.name for each in (tests / "in").glob("*") if (tests / "out" / each.name).is_file())
        yield {
            "name": task.name,
            "question": _description(task),
            "right": _texts(sorted(task.glob("Python/*/correctVersion.py"))),
            "wrong": _texts(sorted(task.glob("Python/*/faultyVersion.py"))),
            "inputs": _texts([tests / "in" / name for name in names]),
            "outputs": _texts([tests / "out" / name for name in names]),
        }


def refactory_rows(path: Path) -> Iterator[Row]:
    """One for each question. Raises ConfigurationError."""
    questions = sorted(each.parents[2] for each in path.glob("**/code/reference/reference.py"))
    if not questions:
        raise ConfigurationError(f"{path} must hold Refactory's questions, each with code/reference/reference.py")
    for question in questions:
        inputs = sorted((question / "ans").glob("input_*.txt"))
        outputs = [each.with_name(each.name.replace("input", "output", 1)) for each in inputs]
        pairs = [pair for pair in zip(inputs, outputs, strict=True) if pair[1].is_file()]
        code = question / "code"
        yield {
            "name": question.name,
            "question": _description(question),
            "imports": "".join(_texts([code / "global.py"])),
            "right": _texts([code / "reference" / "reference.py"]),
            "wrong": _texts(sorted(code.glob("wrong/*.py"))),
            "inputs": _texts([given for given, _ in pairs]),
            "outputs": _texts([expected for _, expected in pairs]),
        }


def _description(folder: Path) -> str:
    return "".join(_texts([folder / "description.txt"]))


def _texts(paths: list[Path]) -> list[str]:
    return [path.read_text("utf-8", "surrogateescape") for path in paths if path.is_file()]


def _read_condefects(row: RowFields, source: Source) -> Draft:
    name = row.text("name")
    left_out: list[LeftOut] = []
    cases: list[TestCase] = []
    for given, expected in sorted(zip(row["inputs"], row["outputs"], strict=False), key=lambda pair: len(pair[0])):
        if max(len(given), len(expected)) > MAX_TEXT:
            left_out.append(LeftOut(given[:100], f"an input or output of more than {MAX_TEXT} characters"))
        elif len(cases) < MOST_TESTS:
            cases.append(test_of(PROGRAM, [given], expected))
        else:
            left_out.append(LeftOut(given[:100], f"more than {MOST_TESTS} tests"))
    if not row["right"]:
        raise RowError(f"a task must have a correctVersion.py, got none in {name}")
    return source.draft(
        ParsedProgram(row["right"][0], "the right program"),
        golden=Extracted(cases[:_GOLDEN], left_out=left_out),
        hidden=Extracted(cases[_GOLDEN:]),
        imports="",
        problem_id=f"ConDefects/{name}",
        question=row["question"] or f"Write a program for the task {name} of AtCoder.",
        entry_point=PROGRAM,
        kind="program",
        mutants=_mutants(row),
        time_limit_s=4.0,
    )


def _read_refactory(row: RowFields, source: Source) -> Draft:
    program = ParsedProgram(row["right"][0], "the reference")
    left_out: list[LeftOut] = []
    cases, called = [], []
    for given, expected in zip(row["inputs"], row["outputs"], strict=True):
        call = _call(given)
        if call is None:
            left_out.append(LeftOut(given[:100], "an input that is no call"))
            continue
        called.append(call.func)
        cases.append(TestCase(source_of(call), _printed(expected.strip())))
    names = [node.id for node in called if isinstance(node, ast.Name) and node.id in program.functions]
    if not names:
        raise RowError(f"the inputs must call a function of the reference, got {', '.join(program.functions)}")
    entry_point = max(dict.fromkeys(names), key=names.count)
    return source.draft(
        program,
        golden=Extracted(cases[:_GOLDEN], left_out=left_out),
        hidden=Extracted(cases[_GOLDEN:]),
        problem_id=f"Refactory/{row.text('name')}",
        question=row["question"] or f"Write {entry_point}({program.arguments(entry_point)}).",
        entry_point=entry_point,
        mutants=_mutants(row),
        starter_code=program.starter(entry_point),
        imports=row["imports"],
    )


def _call(given: str) -> ast.Call | None:
    """The call that an input is, in a `print` or by itself."""
    try:
        body = parse(given.strip()).body
    except Unparsable:
        return None
    match body:
        case [ast.Expr(ast.Call(ast.Name("print"), [ast.Call() as call], []))]:
            return call
        case [ast.Expr(ast.Call() as call)]:
            return call
    return None


class _NonFinite(ast.NodeTransformer):
    """`inf` and `nan`, as Python prints them, as they are written in source."""

    def visit_Name(self, node: ast.Name) -> ast.AST:
        spelling = ast.Call(ast.Name("float", ast.Load()), [ast.Constant(node.id)], [])
        return spelling if node.id in ("inf", "nan") else node


def _printed(value: str) -> str:
    """The source of a printed value."""
    try:
        module = parse(value)
    except Unparsable:
        return value
    return source_of(_NonFinite().visit(module)) if _NON_FINITE.search(value) else value


def _mutants(row: RowFields) -> tuple[str, ...]:
    """Different wrong programs that parse, spread evenly over all of them where there are too many."""
    programs = [program for program in dict.fromkeys(row["wrong"]) if parses(program)]
    step = max(1, -(-len(programs) // MOST_MUTANTS))
    return tuple(programs[::step])


CONDEFECTS = Source(
    "condefects", "appmlk/ConDefects", "", "CC-BY-SA-4.0", _read_condefects, rows_of_directory=condefects_rows
)
REFACTORY = Source(
    "refactory", "githubhuyang/refactory", "", "(see the repository)", _read_refactory, rows_of_directory=refactory_rows
)
