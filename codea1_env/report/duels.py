"""The duels worth looking at among those that a run kept: where each seat earned most and least.

Reads `duels/round-N.jsonl` of a run, recordings of games (`recording.py`), in the order in which `codea1 view RUN`
shows them. Nothing is played again. Does not look at what was said in a duel.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from codea1_env.errors import FormatError
from codea1_env.recording import read_recording

FOLDER = "duels"
_ROUND_FILE = re.compile(r"round-(\d+)\.jsonl")
EACH = 3
"""Duels listed at either end."""


@dataclass(frozen=True, slots=True)
class KeptDuel:
    """One suite against one program."""

    round_number: int
    problem_id: str
    address: str
    """Game, program and suite, from 1, in the order of the files: the part after # of the viewer's address."""
    coder_reward: float
    tester_reward: float


@dataclass(frozen=True, slots=True)
class KeptDuels:
    """What a run's recordings come to."""

    count: int
    best_for_tester: tuple[KeptDuel, ...]
    """The highest R_T, at most EACH; the earlier duel first where they are equal."""
    best_for_coder: tuple[KeptDuel, ...]
    """The highest R_C with the lowest R_T beside it."""
    worst: tuple[KeptDuel, ...]
    """The lowest sum of both rewards: nobody did well."""
    notes: tuple[str, ...]
    """Files that could not be read to their end."""


def kept_duels(directory: Path) -> KeptDuels:
    """Of a run's directory; none where the run kept none."""
    notes: list[str] = []
    found = list(_duels(directory / FOLDER, notes))
    return KeptDuels(
        len(found),
        tuple(heapq.nsmallest(EACH, found, key=lambda duel: -duel.tester_reward)),
        tuple(heapq.nsmallest(EACH, found, key=lambda duel: (-duel.coder_reward, duel.tester_reward))),
        tuple(heapq.nsmallest(EACH, found, key=lambda duel: duel.coder_reward + duel.tester_reward)),
        tuple(notes),
    )


def _duels(folder: Path, notes: list[str]) -> Iterator[KeptDuel]:
    names = [(_ROUND_FILE.fullmatch(file.name), file) for file in (folder.iterdir() if folder.is_dir() else ())]
    game = 0
    for number, file in sorted((int(name[1]), file) for name, file in names if name):
        try:
            with file.open("rb") as lines:
                for recorded in read_recording(lines):
                    game += 1
                    for program, (coder, row) in enumerate(
                        zip(recorded.rewards.codes, recorded.rewards.suites, strict=True), 1
                    ):
                        for suite, tester in enumerate(row, 1):
                            if coder is not None and tester is not None:
                                problem_id = recorded.match.problem.problem_id
                                yield KeptDuel(number, problem_id, f"{game}.{program}.{suite}", coder, tester)
        except (FormatError, ValueError, OSError) as error:
            notes.append(f"{FOLDER}/{file.name} cannot be read to its end: {error}")
