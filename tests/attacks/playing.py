"""Plays the whole corpus on one sandbox, in one process, and tells what came of it as plain data.

Every hostile program runs right after one that holds the secret which it would have to return.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import psutil

from attacks.canaries import SECRET
from attacks.hostile_asserts import HOSTILE_ASSERTS
from attacks.programs import HOSTILE_PROGRAMS, ODD_PROGRAMS, Attack
from codea1_env.arena.arena import Arena
from codea1_env.arena.match import Match
from codea1_env.problems.problem import Problem
from codea1_env.reading.test_case import TestCase
from codea1_env.sandbox import LocalSandbox, RaySandbox

if TYPE_CHECKING:
    from codea1_env.sandbox.docker.backend import DockerSandbox

CARRIER = f"def solve(x):\n    return {SECRET!r}\n"
SECRET_PROBLEM = Problem(
    "secret",
    "Return the secret.",
    "solve",
    golden_tests=(),
    time_limit_s=0.1,
    memory_mb=256,
    reference_solution=CARRIER,
)
ODD_PROBLEM = Problem(
    "odd",
    "Add one to every number.",
    "solve",
    imports="import math\nfrom typing import *",
    reference_solution="def solve(xs):\n    return [x + 1 for x in xs]\n",
)
ODD_TESTS = (TestCase("solve([1, 5, 3])", "[2, 6, 4]"), TestCase("solve([])", "[]"), TestCase("solve([7])", "[8]"))
IDENTITY = Problem(
    "identity", "Return x.", "solve", reference_solution="def solve(x):\n    return x\n", time_limit_s=0.3
)
_SET_CHILD_SUBREAPER = 36


@dataclass(frozen=True, slots=True)
class Played:
    """Verdicts are their texts, or None."""

    layers: Mapping[str, bool | str]
    """The sandbox's guarantees."""
    hostile: Mapping[str, list[str | None]]
    """Verdicts of every hostile program, by its name."""
    carriers: list[list[str | None]]
    """Verdicts of the honest program before each attack, and of the one after the last."""
    odd: Mapping[str, list[str | None]]
    asserts: Mapping[str, list[tuple[str, str, str | None]]]
    """(status, reason, verdict) of every test in a suite of a hostile assert, by the assert's source."""
    processes_left: list[str]
    """Processes below this one that are no part of the sandbox, after the hostile programs."""


def play(
    sandbox: LocalSandbox | DockerSandbox | RaySandbox,
    words: Mapping[str, str],
    calls: int,
    programs: Sequence[Attack] = HOSTILE_PROGRAMS,
) -> Played:
    """The corpus with `words` in the place of its canaries; `calls` of each of its hostile programs, or of these."""

    def filled_in(source: str) -> str:
        for name, word in words.items():
            source = source.replace(f"@{name}@", word)
        return source.replace("HONEST", "'honest'")

    # What loses its parent becomes our child, and is seen.
    libc = ctypes.CDLL(None)
    libc.prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    before = set(psutil.Process().children(recursive=True))
    arena = Arena(sandbox)
    layers = dict(sandbox.guarantees)
    tests = [TestCase(f"solve({number})", repr(SECRET)) for number in range(calls)]
    sources = [text for attack in programs for text in (CARRIER, filled_in(attack.source))]
    grades = arena.grade(SECRET_PROBLEM, [*sources, CARRIER], tests)
    verdicts = [[_text(verdict) for verdict in grade.verdicts] for grade in grades]
    left = _left(before)
    odd = arena.grade(ODD_PROBLEM, list(ODD_PROGRAMS.values()), ODD_TESTS)
    suites = tuple(
        f"```python\n{hostile.source}\nassert solve('honest') == 'honest'\n```" for hostile in HOSTILE_ASSERTS
    )
    (score,) = arena.play([Match(IDENTITY, ("def solve(x):\n    return 5\n",), (suites,))])
    libc.prctl(_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
    return Played(
        layers=layers,
        hostile={attack.name: verdicts[2 * i + 1] for i, attack in enumerate(programs)},
        carriers=verdicts[::2],
        odd={
            name: [_text(verdict) for verdict in grade.verdicts] for name, grade in zip(ODD_PROGRAMS, odd, strict=True)
        },
        asserts={
            hostile.source: [(test.status.value, test.reason, _text(test.verdict)) for test in suite.duel.tests]
            for hostile, suite in zip(HOSTILE_ASSERTS, score.suites[0], strict=True)
        },
        processes_left=left,
    )


def _text(verdict: object) -> str | None:
    return None if verdict is None else str(verdict)


def _left(before: set[psutil.Process]) -> list[str]:
    """Of the processes of a local sandbox: a guard is our child, a zygote a guard's, and there is nothing below."""
    guards = [process for process in psutil.Process().children() if process not in before and is_zygote(process)]
    zygotes = [child for guard in guards for child in guard.children()[:1] if is_zygote(child)]
    known = before | {*guards, *zygotes}
    return [str(process) for process in psutil.Process().children(recursive=True) if process not in known]


def is_zygote(process: psutil.Process) -> bool:
    """A zygote, its guard, or a fork of one of them."""
    return any(word.endswith("/inside/zygote.py") for word in process.cmdline())
