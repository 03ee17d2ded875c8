"""The duels worth looking at among those that a run kept: where each seat earned most, and where both earned least.

What a run kept is read as `codea1 view RUN` reads it, and places are those on its page. Nothing is played again.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from codea1_env.errors import Codea1Error
from codea1_env.records.duel_sample import FOLDER
from codea1_env.viewer import read_games
from codea1_env.viewer.games import Json
from codea1_env.viewer.page import DEFAULT_LIMIT, left_out

EACH = 3
"""Duels listed of each kind."""


@dataclass(frozen=True, slots=True)
class KeptDuel:
    """One suite against one program."""

    origin: str
    """Where it was recorded: its round."""
    problem_id: str
    address: str
    """Game, program and suite, from 1: the part after # of the viewer's address."""
    coder_reward: float
    tester_reward: float


ORDERS: Mapping[str, Callable[[KeptDuel], tuple[float, ...]]] = {
    "the tester earned most": lambda duel: (-duel.tester_reward,),
    "the coder earned most": lambda duel: (-duel.coder_reward, duel.tester_reward),
    "both earned least": lambda duel: (duel.coder_reward + duel.tester_reward,),
}
"""Kinds of duels worth a look, and which of them come first."""


@dataclass(frozen=True, slots=True)
class KeptDuels:
    """What a run kept."""

    games: tuple[Json, ...] = ()
    """In the viewer's form and order."""
    note: str = ""
    """Why there are none, where something is there that cannot be read."""
    book: Json | None = None
    """The Mistake Book in the viewer's form."""
    left_out: str = ""
    """What of them is not among the games, for there are too many for a page; empty if all are."""

    @property
    def duels(self) -> list[KeptDuel]:
        """Those that have both rewards."""
        return [
            KeptDuel(game["from"], game["id"], f"{game['number']}.{p}.{s}", program["reward"], suite["reward"])
            for game in self.games
            for p, program in enumerate(game["programs"], 1)
            for s, suite in enumerate(program["suites"], 1)
            if program["reward"] is not None and suite["reward"] is not None
        ]

    def first(self, kind: str) -> list[KeptDuel]:
        """By one of ORDERS, at most EACH; the earlier duel first where they are equal."""
        return heapq.nsmallest(EACH, self.duels, key=ORDERS[kind])


def kept_duels(directory: Path) -> KeptDuels:
    """Of a run's directory; empty where the run kept none."""
    if not (directory / FOLDER).is_dir() or not any((directory / FOLDER).iterdir()):
        return KeptDuels()
    try:
        found = read_games(directory, DEFAULT_LIMIT)
        return KeptDuels(tuple(found.games), book=found.book, left_out=left_out(found))
    except (Codea1Error, OSError) as error:
        return KeptDuels(note=f"the duels that the run kept cannot be read: {error}")
