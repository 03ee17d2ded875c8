"""HumanEval+ (EvalPlus): 164 questions with some 750 tests each, for evaluation. The tests become hidden tests.

One question, HumanEval/32, has many right answers: a checker puts them into its polynomial, as the set's own test does.

A row's reference is a body only: the prompt goes before it, helper functions and imports included. Field names are
those of the hub's revision (`prompt`, `canonical_solution`) or of copies that call them `question`, `reference_body`;
or a row is of EvalPlus' own file (`evalplus_files.py`).
"""

from __future__ import annotations

import ast

from codea1_env.problems.check_functions import Extracted, extract
from codea1_env.problems.sources.draft import Draft, Row, Source, require_function, text, tree_of
from codea1_env.problems.sources.evalplus_files import is_file_row, read_file_row, require_script
from codea1_env.reading.parsing import source_of
from codea1_env.reading.test_case import TestCase

_CHECKERS = {
    "find_zero": """def check(arguments, returned, reference):
    (coefficients,) = arguments
    if isinstance(returned, bool) or not isinstance(returned, (int, float)):
        return False
    return abs(sum(factor * returned**power for power, factor in enumerate(coefficients))) <= 1e-4
"""
}


def _listed(script: str, entry_point: str) -> Extracted:
    """The inputs and results that a check lists, whatever it does with them."""
    extracted = Extracted()
    lists = {
        node.targets[0].id: node.value.elts
        for node in ast.walk(tree_of(script, "the tests"))
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and isinstance(node.value, ast.List)
    }
    for given, value in zip(lists.get("inputs", []), lists.get("results", []), strict=False):
        if isinstance(given, ast.List):
            arguments = ", ".join(map(source_of, given.elts))
            extracted.tests.append(TestCase(f"{entry_point}({arguments})", source_of(value)))
    extracted.tests = list(dict.fromkeys(extracted.tests))
    return extracted


def _read_row(row: Row, source: Source) -> Draft:
    if is_file_row(row):
        return read_file_row(row, source, _CHECKERS)
    prompt, body = text(row, "prompt", "question"), text(row, "canonical_solution", "reference_body")
    entry_point = text(row, "entry_point")
    reference = prompt + body
    module = tree_of(reference, "prompt and solution together")
    require_function(module, entry_point, "the prompt")
    checker = _CHECKERS.get(entry_point, "")
    extracted = _listed(text(row, "test"), entry_point) if checker else extract(text(row, "test"), entry_point)
    return source.draft(
        module,
        hidden=extracted,
        problem_id=text(row, "task_id"),
        question=prompt,
        entry_point=entry_point,
        reference_solution=reference,
        checker=checker,
    )


def script_of(row: Row) -> str:
    """The row's check, called. Raises RowError."""
    require_script(row)
    return f"{text(row, 'test')}\n\ncheck({text(row, 'entry_point')})\n"


HUMANEVALPLUS = Source(
    "humanevalplus",
    "evalplus/humanevalplus",
    "test",
    "Apache-2.0",
    _read_row,
    is_for_evaluation=True,
    script_of=script_of,
)
