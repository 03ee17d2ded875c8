"""Problems: what is asked, what decides, and the files that hold them.

Does not execute anything and does not speak to models: see `codea1_env.sandbox` and `codea1_env.players.prompts`.
"""

from codea1_env.problems.jsonl import (
    bundled_problems,
    iter_problems,
    problems_of_every_kind,
    read_problems,
    write_problems,
)
from codea1_env.problems.problem import Problem
from codea1_env.reading.test_case import TestCase

__all__ = [
    "Problem",
    "TestCase",
    "bundled_problems",
    "iter_problems",
    "problems_of_every_kind",
    "read_problems",
    "write_problems",
]
