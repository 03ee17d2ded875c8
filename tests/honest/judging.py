"""The corpus in plain Python and in the arena, and where the two differ.

A right program is judged as `codea1 score --fidelity wide` judges it, with itself as the reference; a script on its
inputs as golden tests. A wrong one meets the same tests, with the right one as the reference.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from codea1_env.arena.arena import Arena
from codea1_env.arena.match import Grade, Match, SuiteScore
from codea1_env.errors import FormatError, UnusableReference
from codea1_env.problems.checkers import COMPARISONS
from codea1_env.problems.problem import Problem
from codea1_env.reading.test_case import TestCase
from codea1_env.rewards.code_a1 import RewardConfig
from codea1_env.rewards.duel import Status, Verdict
from codea1_env.sandbox import Sandbox
from honest.corpus import PLACE, Honest, read_differing

_UNREAD = ("function", "class", "block", "assert_in_text", "assert_outside_fences", "decorated", "rows", "too_much")
"""What is ignored of a suite where an assert may be in it."""
UNJUDGED = "not judged: "
_OF_CONTESTS = "tokens" if "tokens" in COMPARISONS else ""
"""How the sources of contests compare what a script prints."""
_DEFINED = re.compile(r"^(?:async )?def (\w+)", re.MULTILINE)
CONFIG = RewardConfig(fidelity="wide", suite_size=64)


@dataclass(frozen=True, slots=True)
class Judged:
    """One program, right or wrong, with what became of it."""

    honest: Honest
    wrong: int | None
    """Which of its wrong programs; None: the right one."""
    plain: str
    """`pass`, or what went wrong in plain Python."""
    here: str
    """Likewise here."""

    @property
    def agrees(self) -> bool:
        """What is not judged, because no test or no reference could be read, agrees with nothing."""
        return not self.here.startswith(UNJUDGED) and (self.plain == "pass") == (self.here == "pass")

    @property
    def name(self) -> str:
        return self.honest.name if self.wrong is None else f"{self.honest.name}, wrong {self.wrong + 1}"


def in_plain_python(programs: Sequence[Honest], python: str = sys.executable) -> list[list[str]]:
    """What plain Python says of each program and its wrong ones, in order."""
    jobs = [_job(honest, text) for honest in programs for text in (honest.program, *honest.wrong)]
    done = subprocess.run([python, PLACE / "plain.py"], input=json.dumps(jobs), capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"plain Python must run the corpus, got: {done.stderr[-2000:]}")
    outcomes = iter(json.loads(done.stdout))
    return [[next(outcomes) for _ in (honest.program, *honest.wrong)] for honest in programs]


def _job(honest: Honest, text: str) -> dict[str, Any]:
    return {
        "program": text,
        "imports": honest.imports,
        "tests": honest.tests,
        "entry_point": honest.entry_point,
        "kind": honest.options.get("kind", "function"),
        "nodes": honest.options.get("nodes", ""),
        "runs": honest.runs,
        "packages": honest.packages,
    }


def here(sandbox: Sandbox, programs: Sequence[Honest]) -> list[list[str]]:
    """What the arena says of each program and its wrong ones, in order."""
    arena = Arena(sandbox, CONFIG, on_failure="raise")
    scripts = [honest for honest in programs if honest.runs]
    known = read_differing()  # apart, so that the rest is played at once
    parts: tuple[list[Honest], list[Honest]] = ([], [])
    for honest in programs:
        if not honest.runs:
            parts[(honest.kind, honest.name) in known].append(honest)
    graded = arena.grade_many([_golden(honest) for honest in scripts])
    found = {id(honest): [_of_grade(grade) for grade in row] for honest, row in zip(scripts, graded, strict=True)}
    for part in parts:
        found |= {id(honest): row for honest, row in zip(part, _played(arena, part), strict=True)}
    return [found[id(honest)] for honest in programs]


def judged(
    sandbox: Sandbox, programs: Sequence[Honest], plain: Sequence[Sequence[str]] | None = None
) -> Iterator[Judged]:
    """Every program, right and wrong, by both. `plain`: as `in_plain_python` gave it."""
    rows = zip(programs, plain or in_plain_python(programs), here(sandbox, programs), strict=True)
    for honest, theirs, ours in rows:
        if ours[0] != "pass":  # then what becomes of the wrong ones says nothing
            ours = [ours[0], *(ours[0] if ours[0].startswith(UNJUDGED) else UNJUDGED + ours[0] for _ in ours[1:])]
        for place, (one, other) in enumerate(zip(theirs, ours, strict=True)):
            yield Judged(honest, place - 1 if place else None, one, other)


def _problem(honest: Honest) -> Problem:
    options = honest.options
    return Problem(
        f"{honest.kind}/{honest.name}",
        f"Write the functions {' '.join([honest.entry_point, *_DEFINED.findall(honest.program)])}.",
        honest.entry_point,
        reference_solution=honest.program,
        imports=honest.imports,
        kind="program" if honest.runs else options.get("kind", "function"),  # type: ignore[arg-type]
        raises=tuple(options["raises"].split(",")) if "raises" in options else (),
        time_limit_s=float(options.get("time", 1.0)),
        checker=_OF_CONTESTS if honest.runs else "",
        tolerance=float(options.get("tolerance", 0.0)),
    )


def _golden(honest: Honest) -> tuple[Problem, list[str], list[TestCase]]:
    tests = [TestCase(f"{honest.entry_point}({given!r})", repr(printed)) for given, printed in honest.runs]
    return _problem(honest), [honest.answer, *honest.wrong], tests


def _of_grade(grade: Grade) -> str:
    if grade.executes is not True:
        return "does not load"
    if None in grade.verdicts:
        return f"{UNJUDGED}a test is not read"
    return next((str(verdict) for verdict in grade.verdicts if verdict is not Verdict.PASS), "pass")


def _played(arena: Arena, programs: Sequence[Honest]) -> list[list[str]]:
    """Played together; where a reference does not work, apart."""
    if not programs:
        return []
    matches = [
        Match(_problem(honest), (honest.answer, *honest.wrong), ((honest.suite,),) * (1 + len(honest.wrong)))
        for honest in programs
    ]
    try:
        scores = arena.play(matches, update_book=False)
    except (UnusableReference, FormatError) as error:
        if len(programs) == 1:
            return [[f"{UNJUDGED}{error}"] * len(matches[0].codes)]
        middle = len(programs) // 2
        return _played(arena, programs[:middle]) + _played(arena, programs[middle:])
    return [[_of_suite(suite) for (suite,) in score.suites] for score in scores]


def _of_suite(suite: SuiteScore) -> str:
    duel = suite.duel
    if duel.executes is not True:
        return "does not load"
    lost = [str(reason) for reason, _ in duel.ignored if reason in _UNREAD]
    if lost:
        return f"{UNJUDGED}{lost[0]}"
    # A claim that is said twice or says too little is no test of the program; what is left must be.
    counted = [test for test in duel.tests if test.status not in (Status.DUPLICATE, Status.VACUOUS)]
    for test in counted:
        if test.status is not Status.KEPT:
            return f"{UNJUDGED}{test.status} {test.reason}: {test.source[:80]}"
    for test in counted:
        if test.verdict is not Verdict.PASS:
            return f"{test.verdict} {test.returned[:60]}: {test.source[:80]}"
    return "pass" if counted else f"{UNJUDGED}no test is read"


def differing(every: Iterable[Judged]) -> dict[tuple[str, str], str]:
    """{(kind, name): what happens here} of the programs that are not judged as plain Python judges them."""
    found: dict[tuple[str, str], str] = {}
    for one in every:
        if not one.agrees:
            what = one.here.removeprefix(UNJUDGED).replace("\n", " ")
            found.setdefault((one.honest.kind, one.honest.name), what.partition(": ")[0] or what)
    return found


def table(every: Iterable[Judged]) -> list[tuple[str, int, int, int, int]]:
    """(kind, right programs, of them judged alike, wrong programs, of them judged alike), and the sums."""
    counts: dict[str, list[int]] = {}
    for one in every:
        row = counts.setdefault(one.honest.kind, [0, 0, 0, 0])
        place = 0 if one.wrong is None else 2
        row[place] += 1
        row[place + 1] += one.agrees
    rows = [(kind, *row) for kind, row in sorted(counts.items())]
    return [*rows, ("all", *(sum(column) for column in zip(*counts.values(), strict=True)))]  # type: ignore[list-item]
