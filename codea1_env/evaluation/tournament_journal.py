"""The journal of a tournament, read: who answered what, and how games ended.

Games without a result are not in it: the next start plays them. Does not know the rules: see `tournament.py`.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from codea1_env.closing import Closing
from codea1_env.players.player import Player, Request, Sampling
from codea1_env.players.prompts import text_digest
from codea1_env.players.templates import Prompts
from codea1_env.problems.problem import Problem
from codea1_env.records.journal import Journal
from codea1_env.rewards.code_a1 import RewardConfig

Key = tuple[str, str, str, int]
"""Of a game: coder, tester, problem, and which of the coder's programs."""


class Winner(StrEnum):
    """Who won a game."""

    CODER = "coder"
    TESTER = "tester"
    DRAW = "draw"
    NONE = "none"
    """Infrastructure failed."""


@dataclass(frozen=True, slots=True)
class PlayedGame:
    """One program against one suite."""

    coder: str
    tester: str
    problem_id: str
    outcome: Winner
    coder_reward: float | None
    """R_C for this suite alone, in [0, 1]; None where infrastructure failed."""
    tester_reward: float | None
    """R_T, in [-1, 1]; None where infrastructure failed."""


def tournament_plan(
    coders: Mapping[str, Player],
    testers: Mapping[str, Player],
    problems: Sequence[Problem],
    config: RewardConfig,
    *,
    samples: int,
    sampling: Sampling,
    seed: int,
    prompts: Prompts,
) -> dict[str, Any]:
    """What must be the same for a tournament to go on."""
    asked = "".join(problem.content_hash for problem in problems)
    return {
        "command": "codea1 tournament",
        "coders": {name: [player.name, player.version] for name, player in coders.items()},
        "testers": {name: [player.name, player.version] for name, player in testers.items()},
        "problems": hashlib.sha256(asked.encode()).hexdigest(),
        "rewards": dataclasses.asdict(config),
        "samples": samples,
        "sampling": dataclasses.asdict(sampling),
        "seed": seed,
        "prompts": text_digest(prompts),
    }


def plan_digest(plan: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(plan, sort_keys=True).encode()).hexdigest()[:8]


class TournamentJournal(Closing):
    """What a tournament has done, and the file that it goes into."""

    def __init__(self, path: str | os.PathLike[str], plan: Mapping[str, Any]) -> None:
        """Open or begin it, see `Journal`. `plan`: of `tournament_plan`."""
        self._answers: dict[tuple[str, str, str, str], list[str]] = {}
        self.games: dict[Key, PlayedGame] = {}
        self.file = Journal(path, "codea1 tournament", plan, take=self._take)

    def answers(self, seat: str, name: str, request: Request) -> list[str] | None:
        """What the player that stands under `name` answered to this request; None where it was not asked."""
        return self._answers.get(_place(seat, name, request))

    def append_answers(self, seat: str, name: str, requests: Sequence[Request], texts: Sequence[Sequence[str]]) -> None:
        records = []
        for request, group in zip(requests, texts, strict=True):
            place = dict(zip(("seat", "player", "problem_id", "program"), _place(seat, name, request), strict=True))
            records.append({"kind": "answers", **place, "texts": list(group)})
        self.file.append(*records)

    def append_games(self, games: Mapping[Key, PlayedGame]) -> None:
        """Those with a result."""
        ended = {key: game for key, game in games.items() if game.outcome is not Winner.NONE}
        self.file.append(
            *({"kind": "game", "sample": key[3], **dataclasses.asdict(game)} for key, game in ended.items())
        )

    def _take(self, record: Mapping[str, Any]) -> None:
        if record["kind"] == "answers":
            place = (record["seat"], record["player"], record["problem_id"], record["program"])
            if not all(isinstance(text, str) for text in (*place, *record["texts"])):
                raise TypeError("answers that are no texts")
            self._answers[place] = list(record["texts"])
        elif record["kind"] == "game":
            fields = {field.name: record[field.name] for field in dataclasses.fields(PlayedGame)}
            game = PlayedGame(**{**fields, "outcome": Winner(fields["outcome"])})
            self.games[game.coder, game.tester, game.problem_id, int(record["sample"])] = game
        else:
            raise ValueError(f"a record of the kind {record['kind']}")

    def close(self) -> None:
        self.file.close()


def _place(seat: str, name: str, request: Request) -> tuple[str, str, str, str]:
    program = request.program.encode("utf-8", "surrogatepass")
    digest = hashlib.sha256(program).hexdigest()[:16] if program else ""
    return seat, name, request.problem.problem_id, digest
