"""Mutants for problems that come without: programs one change away from the reference that some input tells from it.

Of mutants that the same inputs kill one is taken, and those first that few inputs kill. A reference that wraps a whole
program as a function gets none: they would be changes of the wrapper. Does not promise that a person would have written
them.
"""

from __future__ import annotations

import dataclasses

from codea1_env.errors import UnusableReference
from codea1_env.evaluation.kill_matrix import KillMatrices, KillMatrix
from codea1_env.judging.judge import Judge
from codea1_env.problems.problem import Problem
from codea1_env.problems.sources.programs import wrapped_program
from codea1_env.reading.parsing import parse, parses
from codea1_env.sandbox.protocol import Sandbox


class NaturalMutants:
    """Gives problems mutants. Not thread-safe."""

    def __init__(self, sandbox: Sandbox, count: int) -> None:
        """`count`: mutants of a problem at most; 0 gives none."""
        self._matrices = KillMatrices(Judge(sandbox), cache_mb=0)
        self._count = count

    def added(self, problem: Problem) -> Problem:
        """The problem with mutants, where it had none and its reference has some. Raises SandboxError."""
        if not self._count or problem.mutants or problem.reference_solution is None:
            return problem
        reference = problem.reference_solution
        if parses(reference) and wrapped_program(parse(reference)) is not None:
            return problem
        try:
            (matrix,) = self._matrices.of([problem])
        except UnusableReference:
            return problem
        return dataclasses.replace(problem, mutants=_chosen(matrix, self._count))


def _chosen(matrix: KillMatrix, count: int) -> tuple[str, ...]:
    different: dict[bytes, tuple[int, str]] = {}
    for mutant, row in zip(matrix.mutants, matrix.kills, strict=True):
        different.setdefault(row.tobytes(), (int(row.sum()), mutant.source))
    return tuple(source for _, source in sorted(different.values())[:count])
