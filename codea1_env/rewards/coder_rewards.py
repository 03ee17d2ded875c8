"""Rewards of a program by several methods, and the best program of a question. Pure.

    code-a1   the mean, over its suites, of the share of tests that it passes: `terms.py`
    skill     a public, simpler write-up of Code-A1: the share of all tests that it passes, and -1 if it does not load

Does not promise that rewards of two methods can be compared.
"""

from __future__ import annotations

from collections.abc import Sequence

from codea1_env.checks import is_number, plain_number, require
from codea1_env.rewards.code_a1 import RewardConfig, is_valid
from codea1_env.rewards.duel import Duel, JudgedReplay, Verdict
from codea1_env.rewards.interfaces import CoderReward, Group, ProgramResult
from codea1_env.rewards.terms import mean_share, share_failed, share_passed


class CodeA1(CoderReward):
    """R_C of the paper (`rewards.coder_reward`)."""

    def program(self, result: ProgramResult) -> float:
        f_hist = share_failed(result.replays)
        p_hist = None if f_hist is None else 1 - f_hist
        return mean_share(
            share_passed(p_hist, sum(verdict is Verdict.PASS for verdict in suite) / len(suite) if suite else None)
            for suite in result.suites
        )


class Skill(CoderReward):
    """The write-up "code-a1-adversarial-rl-code": -1 for a program that does not load, else the share of all valid and
    replayed tests that it passes."""

    judges_by_union = True
    _INVALID = -1.0

    def program(self, result: ProgramResult) -> float:
        if not result.executes:
            return self._INVALID
        verdicts = [replay.verdict for replay in result.replays] + [each for suite in result.suites for each in suite]
        return sum(verdict is Verdict.PASS for verdict in verdicts) / max(len(verdicts), 1)


def union_reward(
    solution: int,
    executes: bool,
    replays: Sequence[JudgedReplay],
    suites: Sequence[tuple[Duel, Group]],
    config: RewardConfig,
) -> float:
    """R_C of one solution by all suites of its question (`RewardConfig.judges_by_union`). Raises ConfigurationError if
    a reward of one's own is no number."""
    verdicts = [_on_valid(duel, group.verdicts[solution], config) for duel, group in suites]
    return _paid(ProgramResult(executes, replays, verdicts), config)


def own_reward(executes: bool, replays: Sequence[JudgedReplay], suites: Sequence[Duel], config: RewardConfig) -> float:
    """Likewise by the suites written against it."""
    verdicts = [_on_valid(duel, [test.verdict for test in duel.tests], config) for duel in suites]
    return _paid(ProgramResult(executes, replays, verdicts), config)


def best_solution(executes: Sequence[bool], rewards: Sequence[float]) -> int | None:
    """The first of the solutions that load and have the highest reward; None if no solution loads."""
    loading = [index for index, loads in enumerate(executes) if loads]
    return max(loading, key=rewards.__getitem__) if loading else None


def _on_valid(duel: Duel, verdicts: Sequence[Verdict | None], config: RewardConfig) -> list[Verdict | None]:
    return [verdict for test, verdict in zip(duel.tests, verdicts, strict=True) if is_valid(test, config)]


def _paid(result: ProgramResult, config: RewardConfig) -> float:
    earned: float = plain_number(config.program_reward.program(result))
    name = f"what coder_reward {config.coder_reward!r} pays a program"
    require(is_number(earned), name, "be a finite number", earned)
    return earned
