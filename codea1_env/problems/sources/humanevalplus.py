"""HumanEval+ (EvalPlus): 164 questions with some 750 tests each, for evaluation. The tests become hidden tests.

A row's reference is a body only: the prompt goes before it, helper functions and imports included. Field names are
those of the hub's revision (`prompt`, `canonical_solution`) or of copies that call them `question`, `reference_body`.
"""

from __future__ import annotations

from codea1_env.problems.check_functions import extract
from codea1_env.problems.problem import Problem
from codea1_env.problems.sources.draft import (
    Draft,
    Row,
    RowError,
    Source,
    functions_of,
    imports_of,
    packages_of,
    text,
    tree_of,
)


def _read_row(row: Row, source: Source) -> Draft:
    prompt, body = text(row, "prompt", "question"), text(row, "canonical_solution", "reference_body")
    entry_point = text(row, "entry_point")
    reference = prompt + body
    module = tree_of(reference, "prompt and solution together")
    if entry_point not in functions_of(module):
        raise RowError(f"the prompt must define {entry_point}, got none of that name")
    found = extract(text(row, "test"), entry_point)
    problem = Problem(
        problem_id=text(row, "task_id"),
        question=prompt,
        entry_point=entry_point,
        reference_solution=reference,
        hidden_tests=tuple(found.tests),
        imports=imports_of(module),
        source=source.hub_id,
        license=source.license,
        tolerance=found.tolerance,
        packages=packages_of(module),
    )
    return Draft(problem, (found,) if found.unvalued else (), tuple(found.left_out))


HUMANEVALPLUS = Source(
    "humanevalplus", "evalplus/humanevalplus", "test", "Apache-2.0", _read_row, is_for_evaluation=True
)
