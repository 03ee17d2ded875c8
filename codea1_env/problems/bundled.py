"""The bundled problems: some sixty small Python tasks, written for this project, with tests and known wrong solutions.

`bundled.jsonl` beside this file is their one canonical place, a line for each problem as `Problem.to_json` writes it.
Every problem has a reference solution, three golden tests of the kind that a person writes in a hurry, hidden tests
that cover the edges of the stated domain, and mutants: plausible wrong solutions, each of which fails a hidden test.

`every_kind.jsonl` has a problem of every kind (`kinds.py`) and with every checker by name, in the same form.

Does not promise difficulty: a good language model solves most of them. They serve examples, trials and tests of the
machinery, not the ranking of models.
"""

from __future__ import annotations

import functools
from importlib import resources

from codea1_env.problems.jsonl import parse_problems
from codea1_env.problems.problem import Problem


@functools.cache
def bundled_problems() -> tuple[Problem, ...]:
    """All bundled problems, in the order of the file. The same tuple at every call."""
    return _read("bundled.jsonl")


@functools.cache
def problems_of_every_kind() -> tuple[Problem, ...]:
    """The dozen of `every_kind.jsonl`, in its order: methods, nodes, a class, a generator and so on."""
    return _read("every_kind.jsonl")


def _read(name: str) -> tuple[Problem, ...]:
    with resources.files("codea1_env.problems").joinpath(name).open("rb") as lines:
        return tuple(parse_problems(lines, name))
