"""Where the two seats of a run meet, once a round: the coder brings programs, the tester suites, the arena scores.

Each seat calls in a thread of its own: of this process, or of an actor that serves seats elsewhere. A failure in either
seat closes the exchange, and the other seat's next call raises. Does not promise that a seat is interrupted while it
computes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import TypeVar

from codea1_env.arena.arena import Arena
from codea1_env.errors import Codea1Error
from codea1_env.training.config.presets import RoundPreset
from codea1_env.training.round.rounds import Attack, PastPlay, Rewards, RoundScore, scored_round
from codea1_env.training.round.rules import RoundRules
from codea1_env.training.run.duel_sample import DuelSample

Brought = TypeVar("Brought")


class ExchangeClosed(Codea1Error):
    """The other seat, or the arena, failed; the cause is chained."""


class Exchange:
    """Meeting point of one coder thread and one tester thread."""

    def __init__(
        self,
        arena: Arena,
        shape: RoundPreset,
        on_score: Callable[[int, Mapping[str, float]], None],
        *,
        patience_s: float | None = None,
        released: Callable[[], AbstractContextManager[None]] = nullcontext,
        duels: DuelSample | None = None,
    ) -> None:
        """`on_score`: told a round's metrics. `released`: entered while a seat waits, to let the other one work.
        `duels`: keeps some of the games; None: none.

        `patience_s`: after which a seat that waits takes the other one to hang, and raises ExchangeClosed; None:
        never.
        """
        self.arena = arena
        self._shape = shape
        self._on_score = on_score
        self._patience_s = patience_s
        self._released = released
        self._duels = duels
        self._changed = threading.Condition()
        self._attacks: tuple[int, tuple[Attack, ...]] | None = None
        self._scored: tuple[int, RoundScore] | None = None
        self._cause: BaseException | None = None
        self._stop_asked = False
        self._last_round: int | None = None

    def submit_codes(self, round_index: int, attacks: tuple[Attack, ...]) -> Rewards:
        """Coder: bring the round's programs, wait until they are attacked, take the rewards, one per program."""
        with self._changed:
            self._attacks = (round_index, attacks)
            self._changed.notify_all()
        return self._wait(lambda: self._scored, round_index).coder

    def take_attacks(self, round_index: int) -> tuple[Attack, ...]:
        """Tester: wait for the round's programs."""
        return self._wait(lambda: self._attacks, round_index)

    def submit_suites(
        self,
        round_index: int,
        suites: Sequence[Sequence[str | None]],
        rules: RoundRules | None = None,
        past: PastPlay | None = None,
    ) -> RoundScore:
        """Tester: bring the suites, `suites[i]` against program i; score the round and wake the coder."""
        attacks = self._wait(lambda: self._attacks, round_index)
        play = partial(self._duels.play, self.arena, round_index) if self._duels else None
        score = scored_round(
            self.arena, attacks, suites, self._shape, self._on_score,
            rules=rules, round_index=round_index, past=past, play=play,
        )  # fmt: skip
        with self._changed:
            self._scored = (round_index, score)
            if self._stop_asked:
                # Decided here, where neither seat has begun to learn from the round, so that both stop after it.
                self._last_round = round_index
            self._changed.notify_all()
        return score

    def ask_to_stop(self) -> None:
        """Let both seats finish the round in progress and stop."""
        self._stop_asked = True

    def is_last(self, round_index: int) -> bool:
        """Whether the seats must stop after this round because someone asked."""
        return self._last_round is not None and round_index >= self._last_round

    @property
    def stopped_early(self) -> bool:
        return self._last_round is not None

    def close(self, cause: BaseException) -> None:
        """Wake whoever waits, with the cause. The first cause stays."""
        with self._changed:
            self._cause = self._cause or cause
            self._changed.notify_all()

    def _wait(self, slot: Callable[[], tuple[int, Brought] | None], round_index: int) -> Brought:
        with self._released(), self._changed:
            came = self._changed.wait_for(
                lambda: self._cause is not None or _is_of(slot(), round_index), self._patience_s
            )
            if not came:
                raise ExchangeClosed(
                    f"the other seat must come to round {round_index + 1} within {self._patience_s:g} s, "
                    "got nothing: it hangs"
                )
        item = slot()
        if self._cause is not None or item is None:
            raise ExchangeClosed(f"the run ended in round {round_index}: {self._cause!r}") from self._cause
        return item[1]


def _is_of(item: tuple[int, object] | None, round_index: int) -> bool:
    return item is not None and item[0] == round_index
