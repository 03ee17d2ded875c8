"""MBPP+ (EvalPlus): 378 questions. The three asserts of MBPP become golden tests, EvalPlus's many hidden ones.

A row names no entry point: it is the function of the reference that the asserts call. The question names it neither,
so its signature becomes the starter code. A row of EvalPlus' own file names it (`evalplus_files.py`).
"""

from __future__ import annotations

import ast

from codea1_env.problems.check_functions import extract
from codea1_env.problems.sources.draft import (
    Draft,
    Row,
    RowError,
    Source,
    called_names,
    functions_of,
    imports_of,
    starter_of,
    text,
    texts_of,
    tree_of,
)
from codea1_env.problems.sources.evalplus_files import MBPP_CHECKERS, is_file_row, read_file_row, require_script


def _read_row(row: Row, source: Source) -> Draft:
    if is_file_row(row):
        return read_file_row(row, source, MBPP_CHECKERS)
    code = text(row, "code", "canonical_solution")
    module = tree_of(code, "the solution")
    asserts = texts_of(row, "test_list")
    entry_point = entry_point_of(module, asserts)
    imports = dict.fromkeys([*texts_of(row, "test_imports"), *imports_of(module).splitlines()])
    return source.draft(
        module,
        golden=extract("\n".join(asserts), entry_point),
        hidden=extract(text(row, "test"), entry_point),
        problem_id=problem_id_of(row),
        question=text(row, "prompt", "text"),
        entry_point=entry_point,
        reference_solution=code,
        starter_code=starter_of(module, entry_point),
        imports="\n".join(line for line in imports if line),
    )


def entry_point_of(module: ast.Module, asserts: list[str]) -> str:
    """The top-level function that most asserts call, the last of them where it is a draw."""
    functions = list(functions_of(module))
    called = called_names(asserts)
    if not any(name in called for name in functions):
        of = f"the solution, which has {', '.join(functions)}" if functions else "the solution, which has none"
        raise RowError(f"the tests must have asserts that call a function of {of}, got {_told(called)}")
    return max(reversed(functions), key=called.count)


def _told(called: list[str]) -> str:
    return f"calls of {', '.join(dict.fromkeys(called))}"[:200] if called else "no assert with a call"


def problem_id_of(row: Row) -> str:
    name = row.get("task_id")
    if isinstance(name, int) and not isinstance(name, bool):
        return f"Mbpp/{name}"
    name = text(row, "task_id")
    return f"Mbpp/{name}" if name.isdecimal() else name


def _script_of(row: Row) -> str:
    require_script(row)
    return "\n".join([*texts_of(row, "test_imports"), *texts_of(row, "test_list"), text(row, "test")])


MBPPPLUS = Source(
    "mbppplus", "evalplus/mbppplus", "test", "Apache-2.0", _read_row, is_for_evaluation=True, script_of=_script_of
)
