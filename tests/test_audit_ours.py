"""Our own grading is not fooled by the corpus of the audit, on any backend, and loses no honest program: minutes.

The local backend is asked as every grader is, program by program out of a cell, and what programs leave there is looked
for. The other backends are given the whole corpus at once: what a cell shows of them, it shows of the local one. That
honest programs keep their verdicts between all attacks is for `attacks/` to ask, on every backend.
"""

import itertools
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from attacks.backends import BACKENDS, opened

from codea1_env.arena.arena import Arena
from codea1_env.audit.corpus import PARTS, TIME_LIMIT_S, CorpusEntry, attacks, controls, effects
from codea1_env.audit.grader import command_grader
from codea1_env.audit.page import as_text
from codea1_env.audit.run import audit
from codea1_env.problems.problem import Problem
from codea1_env.reading.responses import read_suite
from codea1_env.reading.test_case import TestCase
from codea1_env.sandbox import Sandbox

pytestmark = [pytest.mark.slow, pytest.mark.longest]
OURS = Path(__file__).parents[1] / "benchmarks" / "graders" / "ours.py"


STATE = "state between runs"
NAPS = "timing of limits / many_naps"


def excused() -> set[str]:
    """A program is not charged for waiting for a processor: on an overloaded machine, this one does little else."""
    return {NAPS} if os.getloadavg()[0] > 2 * (os.cpu_count() or 1) else set()


def test_on_the_local_backend() -> None:
    words = [sys.executable, str(OURS), "local"]
    with command_grader(words, readable=[Path(sys.prefix)], wait_s=60) as grader:
        result = audit(grader)
    assert result.whole
    assert set(result.forged) <= excused(), as_text(result)
    assert not result.lost, as_text(result)
    assert not result.accepted, as_text(result)
    assert not result.reached
    assert not result.without_answer("ended")
    assert not result.without_answer("silent")


@pytest.fixture(scope="module", params=BACKENDS[1:])
def sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    yield from opened(request.param, request)


def test_all_at_once_on_the_other_backends(sandbox: Sandbox) -> None:
    """Right programs pass, attacks and other wrong ones do not, and what an attack leaves helps nobody after it."""
    entries = [*controls(), *(entry for part in PARTS for entry in (*attacks(part), *effects(part)))]
    arena = Arena(sandbox)
    played, wrong = 0, set()
    for (name, tests), some in itertools.groupby(sorted(entries, key=suite_of), key=suite_of):
        suite = read_suite("\n".join(tests), name)
        cases = [TestCase(test.call, test.stated) for test in suite.tests if not test.reason]
        assert cases
        programs = [(f"{entry.kind}: {entry.key}{tail}", *rest) for entry in some for tail, *rest in in_turn(entry)]
        # Each text once: what is known of a program is not asked again.
        sources = [f"{source}\n# {place}\n" for place, (_, source, _) in enumerate(programs)]
        grades = arena.grade(Problem(name, "What the tests say.", name, time_limit_s=TIME_LIMIT_S), sources, cases)
        assert not any(verdict is None for grade in grades for verdict in grade.verdicts)
        for (label, _, deserved), grade in zip(programs, grades, strict=True):
            played += 1
            if deserved not in (None, grade.all_passed):
                wrong.add(label)
    assert played == len(entries) + 2 * sum(entry.label == STATE for entry in entries)
    assert wrong <= {f"attack: {each}" for each in excused()}


def in_turn(entry: CorpusEntry) -> Iterator[tuple[str, str, bool | None]]:
    """(what of it, program, whether it must pass); an attack that leaves something is followed by honest programs."""
    # Whether a right program reached what it was after is told by a cell only, unless its verdict does.
    yield "", entry.program, None if entry.shows == "left" else entry.kind == "right"
    if entry.label == STATE:
        yield ", then a wrong one", entry.exercise.wrong, False
        yield ", then a right one", entry.exercise.right, True


def suite_of(entry: CorpusEntry) -> tuple[str, tuple[str, ...]]:
    return entry.exercise.problem_id, entry.tests
