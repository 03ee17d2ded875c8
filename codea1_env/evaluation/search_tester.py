"""A tester without a language model: inputs that tell a program's mutants from it, as tests that state what it returns.

The program that it is shown is changed in one place at a time (`reading/programs/mutants.py`), and each mutant runs on
a pool of inputs that begins with the golden tests' calls (`kill_matrix.py`). The suite is the inputs that together kill
the most mutants, the strongest first; the rest is drawn. Where the golden calls give no type, arguments are guessed.

It knows no right values: it states what the program returns. So such a test is right only where the program is, and
never exposes it; what the inputs are worth shows where an oracle corrects values, or in measures of inputs alone.
Hidden tests are not read.
"""

from __future__ import annotations

import dataclasses
import json
import random

from codea1_env.checks import require_whole
from codea1_env.errors import UnusableReference
from codea1_env.evaluation.kill_matrix import KillMatrices, KillMatrix
from codea1_env.judging.judge import Judge
from codea1_env.players.player import Request, TesterRequest
from codea1_env.players.scripted import Scripted
from codea1_env.reading.literals import tree_source
from codea1_env.sandbox.protocol import Sandbox


class SearchTester(Scripted):
    """Searches by mutants of the program under attack. Needs a sandbox to run them.

    Each answer is over a pool of its own. A program that does not load has an empty suite. Raises SandboxError.
    """

    name = "search-tester"
    _seat = TesterRequest

    def __init__(self, sandbox: Sandbox, tests: int = 8) -> None:
        """`tests`: asserts in a suite, at least 1, where the problem does not say."""
        require_whole("tests", tests)
        self._judge = Judge(sandbox, execution_cache_mb=0)
        self._tests = tests

    def _answer(self, request: Request, generator: random.Random) -> str:
        shown = dataclasses.replace(
            request.problem, reference_solution=request.program, hidden_tests=(), mutants=(), time_limit=None
        )
        matrices = KillMatrices(self._judge, seed=generator.getrandbits(31), cache_mb=0)
        try:
            (matrix,) = matrices.of([shown])
        except UnusableReference:
            return ""
        tests = request.problem.suite_size_or(self._tests)
        chosen = [matrix.inputs[place] for place in _strongest(matrix, tests, generator)]
        lines = [f"assert {each.call} == {tree_source(json.loads(each.expectation.value))}" for each in chosen]
        return "\n".join(["```python", *lines, "```"])


def _strongest(matrix: KillMatrix, most: int, generator: random.Random) -> list[int]:
    """Places of inputs: the one that kills the most mutants, then the most of those left; drawn ones where none are."""
    waiting = list(range(len(matrix.inputs)))
    generator.shuffle(waiting)
    alive = [True] * len(matrix.mutants)
    places: list[int] = []
    while waiting and len(places) < most:
        best = max(waiting, key=lambda place: int(matrix.kills[alive, place].sum()))
        waiting.remove(best)
        places.append(best)
        alive = [lives and not kills for lives, kills in zip(alive, matrix.kills[:, best], strict=True)]
    return places
