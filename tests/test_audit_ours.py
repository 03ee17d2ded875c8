"""Our own grading is not fooled by the corpus of the audit, on any backend, and loses no honest program: minutes.

The local backend is asked as every grader is, program by program out of a cell, and what programs leave there is looked
for. The other backends are given the whole corpus at once: what a cell shows of them, it shows of the local one.
"""

import itertools
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from attacks.backends import BACKENDS, opened

from codea1_env.arena.arena import Arena
from codea1_env.audit.corpus import PARTS, TIME_LIMIT_S, Entry, attacks, controls, effects
from codea1_env.audit.grader import command_grader
from codea1_env.audit.page import as_text
from codea1_env.audit.run import audit
from codea1_env.problems.problem import Problem
from codea1_env.reading.responses import read_suite
from codea1_env.reading.test_case import TestCase
from codea1_env.sandbox import Sandbox

pytestmark = pytest.mark.slow
OURS = Path(__file__).parents[1] / "benchmarks" / "graders" / "ours.py"


def test_on_the_local_backend() -> None:
    words = [sys.executable, str(OURS), "local"]
    with command_grader(words, readable=[Path(sys.prefix)], wait_s=60) as grader:
        result = audit(grader)
    assert result.whole
    assert result.clean, as_text(result)
    assert not result.reached
    assert not result.without_answer("ended")
    assert not result.without_answer("silent")


@pytest.fixture(scope="module", params=BACKENDS[1:])
def sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    yield from opened(request.param, request)


def test_all_at_once_on_the_other_backends(sandbox: Sandbox) -> None:
    """An attack passes nothing, neither does an honest wrong program right behind it, and a right one then passes."""
    entries = [*controls(), *(entry for part in PARTS for entry in (*attacks(part), *effects(part)))]
    arena = Arena(sandbox)
    played, wrong = 0, []
    for (name, tests), some in itertools.groupby(sorted(entries, key=suite_of), key=suite_of):
        group = list(some)
        problem = Problem(name, "What the tests say.", name, time_limit_s=TIME_LIMIT_S)
        suite = read_suite("\n".join(tests), name)
        cases = [TestCase(test.call, test.stated) for test in suite.tests if not test.reason]
        assert cases
        # Each text once: what is known of a program is not asked again.
        sources = [
            f"{source}\n# {number} of {entry.key}\n"
            for number, entry in enumerate(group)
            for source in (entry.program, entry.exercise.wrong, entry.exercise.right)
        ]
        grades = arena.grade(problem, sources, cases)
        assert not any(verdict is None for grade in grades for verdict in grade.verdicts)
        passed = [grade.all_passed for grade in grades]
        for entry, (itself, then_wrong, then_right) in zip(group, zip(*[iter(passed)] * 3, strict=True), strict=True):
            played += 1
            # Whether a right program reached what it was after is seen in a cell only.
            deserved = itself if (entry.kind, entry.shows) == ("effect", "left") else entry.kind == "right"
            if (itself, then_wrong, then_right) != (deserved, False, True):
                wrong.append((entry.kind, entry.key, itself, then_wrong, then_right))
    assert played == len(entries)
    assert wrong == []


def suite_of(entry: Entry) -> tuple[str, tuple[str, ...]]:
    return entry.exercise.problem_id, entry.tests
