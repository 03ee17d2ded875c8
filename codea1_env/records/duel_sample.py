"""Some of every round's games, kept in the run's directory for people to look at: `codea1 view RUN`.

A file a round, `duels/round-N.jsonl`, each a recording by itself: `codea1 replay` plays it again. Which questions are
kept goes round with the rounds and depends on nothing else. Does not end a run that cannot write them, and does not
keep a game that is larger than a bound.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from codea1_env.arena.arena import Arena
from codea1_env.arena.match import Match, MatchScore
from codea1_env.records.recording import Recorder
from codea1_env.rewards.code_a1 import RewardConfig

_log = logging.getLogger(__name__)
_ROUND_FILE = re.compile(r"round-(\d+)\.jsonl(\.partial)?")
FOLDER = "duels"
MOST_CHARACTERS = 1 << 20
"""Of the responses of a game that is kept: what the paper's largest game comes to, at 4096 tokens a response."""


@dataclass(frozen=True, slots=True)
class DuelSample:
    """Where and how many."""

    folder: Path
    games: int
    """Questions a round, with all their programs and suites; 0: none."""

    def play(self, arena: Arena, round_index: int, matches: Sequence[Match], alpha: float) -> list[MatchScore]:
        """Play a round's games in the arena and keep some of them. `alpha`: as `Arena.play` has it."""
        scores = arena.play(matches, alpha=alpha)
        self.keep(round_index, matches, scores, arena.config.with_alpha(alpha))
        return scores

    def keep(
        self, round_index: int, matches: Sequence[Match], scores: Sequence[MatchScore], config: RewardConfig
    ) -> None:
        """Write the round's file anew. `round_index` counts from 0, the file from 1."""
        count = min(self.games, len(matches))
        places = sorted((round_index * count + place) % len(matches) for place in range(count))
        chosen = [place for place in places if _characters(matches[place]) <= MOST_CHARACTERS]
        if not chosen:
            return
        target = self.folder / f"round-{round_index + 1}.jsonl"
        partial = target.with_name(target.name + ".partial")
        try:
            self.folder.mkdir(exist_ok=True)
            partial.unlink(missing_ok=True)  # a recorder would go on with it
            with Recorder(partial) as recorder:
                recorder.write([matches[place] for place in chosen], [scores[place] for place in chosen], config)
            os.replace(partial, target)
        except OSError as error:
            _log.warning("the duels of round %d are not kept: %s", round_index + 1, error)

    def forget_after(self, rounds: int) -> None:
        """Remove what was kept of later rounds: they are played again."""
        for file in self.folder.iterdir() if self.folder.is_dir() else ():
            name = _ROUND_FILE.fullmatch(file.name)
            if name and (int(name[1]) > rounds or name[2]):
                file.unlink()


def _characters(match: Match) -> int:
    return sum(map(len, match.codes)) + sum(len(text) for row in match.suites for text in row)
