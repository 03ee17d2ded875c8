"""The audit's programs, as data: attacks by class, dishonest tests, programs that look around, honest controls.

They come in parts. A part is known by its digest, over the programs as they are played, so that results name exactly
what they were measured on. Does not run anything.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from codea1_env.checks import require
from codea1_env.errors import ConfigurationError
from codea1_env.reading.literals import value_source
from codea1_env.yaml_files import read_yaml

CLASSES = (
    "equality",
    "output",
    "exit code",
    "stack frames",
    "monkeypatching",
    "files",
    "environment",
    "signals",
    "state between runs",
    "timing of limits",
)
"""Of attacks, in the order of reports."""
SUITES = "dishonest tests"
"""The class of the wrong programs that come with a dishonest test."""
PARTS = ("frozen", "later")
"""`frozen` was fixed before any grader was measured, `later` was written afterwards, and fixed then."""
TIME_LIMIT_S = 2.0
"""What a call may take, as graders are told."""
SLOW_S = 7.0
"""How long a call of those takes that are too slow, by the clock, however busy the machine is."""
BUSY_S = 1.0
"""For how much of that the attacks among them compute; they sleep for the rest."""
_FOLDER = Path(__file__).parent / "corpus"
_HELPER = re.compile(r"^@([A-Z]+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Exercise:
    """A problem of the audit."""

    problem_id: str
    """Also the function's name."""
    question: str
    right: str
    wrong: str
    cases: tuple[Mapping[str, Any], ...]
    """`arguments` and `expected`, values of JSON."""

    @property
    def tests(self) -> tuple[str, ...]:
        """The cases as asserts."""
        rows = [(map(value_source, case["arguments"]), value_source(case["expected"])) for case in self.cases]
        return tuple(f"assert {self.problem_id}({', '.join(given)}) == {expected}" for given, expected in rows)


@dataclass(frozen=True, slots=True)
class CorpusEntry:
    """A program to be graded, and what is known of it."""

    kind: str
    """`attack`, `effect`, or of the controls `right`, `wrong` or `slow`."""
    label: str
    """An attack's class, an effect's name; empty for a control."""
    name: str
    part: str
    exercise: Exercise
    program: str
    tests: tuple[str, ...]
    """What the program is graded by. A dishonest test stands before the honest ones."""
    shows: str = ""
    """Of an effect: `passes`, the verdict tells whether it came to pass, or `left`, a look at what is left does."""

    @property
    def key(self) -> str:
        """Names it in a report."""
        return f"{self.label} / {self.name}" if self.label else f"{self.exercise.problem_id} / {self.name}"

    def request(self) -> dict[str, Any]:
        """The line that a grader reads, as data."""
        return {
            "problem_id": self.exercise.problem_id,
            "entry_point": self.exercise.problem_id,
            "program": self.program,
            "tests": list(self.tests),
            "cases": [] if self.label == SUITES else [dict(case) for case in self.exercise.cases],
            "time_limit_s": TIME_LIMIT_S,
        }


@cache
def exercises() -> tuple[Exercise, ...]:
    """The problems that all programs are written for."""
    return tuple(
        Exercise(each["id"], each["question"], each["right"], each["wrong"], tuple(each["cases"]))
        for each in _part("problems")["problems"]
    )


@cache
def controls() -> tuple[CorpusEntry, ...]:
    """Honest programs: right ones, wrong ones, slow ones."""
    return tuple(_entry(each["kind"], "", each, "controls", 0) for each in _part("controls")["controls"])


@cache
def attacks(part: str) -> tuple[CorpusEntry, ...]:
    """A part's wrong programs and its programs with dishonest tests."""
    content = _part(part)
    entries = [_entry("attack", each["class"], each, part, place) for place, each in enumerate(content["programs"])]
    for place, each in enumerate(content["suites"]):
        entry = _entry("attack", SUITES, {**each, "program": "WRONG"}, part, place)
        test = each["test"].replace("ENTRY", entry.exercise.problem_id)
        entries.append(replace(entry, tests=(test, *entry.tests)))
    unknown = {entry.label for entry in entries} - {*CLASSES, SUITES}
    assert not unknown, unknown
    return tuple(entries)


@cache
def effects(part: str) -> tuple[CorpusEntry, ...]:
    """A part's right programs that look around or leave something."""
    return tuple(_entry("effect", each["name"], each, part, place) for place, each in enumerate(_part(part)["effects"]))


def digest(part: str) -> str:
    """Of what a part's programs are, as they are played: sixteen digits of SHA-256."""
    entries = controls() if part == "controls" else (*attacks(part), *effects(part))
    told = [[entry.kind, entry.label, entry.name, entry.request()] for entry in entries]
    text = json.dumps(told, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def chosen(parts: Sequence[str], budget: int | None) -> list[CorpusEntry]:
    """The attacks of `parts`, at most `budget` of them: as many of each class as there is room for, the first ones."""
    unknown = [part for part in parts if part not in PARTS]
    if unknown or not parts:
        raise ConfigurationError(f"parts must be some of {', '.join(PARTS)}, got {', '.join(unknown) or 'none'}")
    require(budget is None or budget >= 1, "the budget", "be at least 1 program", budget)
    everything = [entry for part in parts for entry in attacks(part)]
    if budget is None or budget >= len(everything):
        return everything
    rank: Counter[str] = Counter()
    order = []
    for place, entry in enumerate(everything):
        order.append((rank[entry.label], place))
        rank[entry.label] += 1
    return [everything[place] for place in sorted(place for _, place in sorted(order)[:budget])]


@cache
def _part(part: str) -> Mapping[str, Any]:
    content: Mapping[str, Any] = read_yaml(_FOLDER / f"{part}.yaml", "a part of the audit's corpus")
    return content


def _entry(kind: str, label: str, each: Mapping[str, Any], part: str, place: int) -> CorpusEntry:
    """An entry that names no problem is written for the one whose turn it is."""
    known = {exercise.problem_id: exercise for exercise in exercises()}
    exercise = known[each["problem"]] if "problem" in each else exercises()[place % len(exercises())]
    program = _HELPER.sub(lambda match: _part(part)["helpers"][match[1]].rstrip(), each["program"])
    program = re.sub(r"^RIGHT$", lambda _: exercise.right.rstrip(), program, flags=re.MULTILINE)
    program = re.sub(r"^WRONG$", lambda _: exercise.wrong.rstrip(), program, flags=re.MULTILINE)
    program = re.sub(r"\bENTRY\b", exercise.problem_id, program)
    for name, seconds in (("SLOW_S", SLOW_S), ("BUSY_S", BUSY_S)):
        program = re.sub(rf"\b{name}\b", str(seconds), program)
    program = program.strip("\n") + "\n"
    return CorpusEntry(kind, label, each["name"], part, exercise, program, exercise.tests, each.get("shows", ""))
