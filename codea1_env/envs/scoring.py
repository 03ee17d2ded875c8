"""The arena of an environment, opened when it is first needed; the episodes of a vector share one.

Does not score: see `codea1_env.arena`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Self

from codea1_env.arena.arena import Arena
from codea1_env.arena.match import Match, MatchScore
from codea1_env.errors import SandboxError
from codea1_env.mistake_book.book import MistakeBook
from codea1_env.problems import Problem
from codea1_env.records.recording import Recorder, Rewards
from codea1_env.rewards.code_a1 import RewardConfig
from codea1_env.sandbox import LocalSandbox
from codea1_env.sandbox.protocol import Sandbox


class Scoring:
    """Who scores episodes. The caller's sandbox and recorder stay the caller's, also in a copy."""

    def __init__(self, sandbox: Sandbox | None, rewards: RewardConfig, recorder: Recorder | None) -> None:
        """`sandbox`: None for a LocalSandbox of its own, which `close` stops."""
        self.rewards = rewards
        self._sandbox = sandbox
        self._recorder = recorder
        self._arena: Arena | None = None
        self._are_tests_read = not rewards.needs_golden

    def read_golden_tests(self, problems: Iterable[Problem]) -> None:
        """Once for all questions, so that none ends a run in its middle. Raises as `Arena.require_golden_tests`."""
        if not self._are_tests_read:
            self._open().require_golden_tests(problems)
            self._are_tests_read = True

    def program(self, problem: Problem, response: str) -> str:
        """The program in a coder's response, as it will be scored."""
        return self._open().program(problem, response).source

    def score(self, games: Sequence[tuple[Match, MistakeBook]]) -> list[MatchScore]:
        """The score of every match, each as though it were played alone; their books are updated.

        Raises SandboxError if infrastructure failed: nothing has changed then.
        """
        matches, books = zip(*games, strict=True)
        scores = self._open().play(matches, books=books)
        for score in scores:
            if not Rewards.of(score).is_whole:
                reason = score.suites[0][0].duel.infrastructure_error or "the sandbox gave no verdict"
                raise SandboxError(f"this duel must be judged to be rewarded, got an infrastructure failure: {reason}")
        return scores

    def _open(self) -> Arena:
        if self._arena is None:
            sandbox = LocalSandbox() if self._sandbox is None else self._sandbox
            self._arena = Arena(sandbox, self.rewards, on_score=self._recorder.write if self._recorder else None)
        return self._arena

    def close(self) -> None:
        """Stop the sandbox if it is not the caller's. May be called again."""
        if self._arena is not None and self._sandbox is None:
            self._arena.close()
        self._arena = None

    def __getstate__(self) -> dict[str, Any]:
        """Without the arena, which holds nothing that a score depends on: a copy makes one of its own."""
        return {**self.__dict__, "_arena": None}

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        other = object.__new__(type(self))
        other.__dict__ |= self.__getstate__()
        return other
