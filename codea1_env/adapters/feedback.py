"""Feedback to a model about its program or suite, before it may submit another one.

Holds nothing of the reference, and no golden test. Does not decide what anything is worth.
"""

from __future__ import annotations

from codea1_env.arena.match import MatchScore
from codea1_env.envs.episode import failed_tests
from codea1_env.rewards.duel import JudgedTest, Verdict


def for_coder(score: MatchScore) -> str:
    """How many tests the program passed, and which ones it failed."""
    duel = score.suites[0][0].duel
    verdicts = [*(test.verdict for test in duel.tests), *(each.verdict for each in duel.replays)]
    ran = [verdict for verdict in verdicts if verdict is not None]
    head = f"{ran.count(Verdict.PASS)} of {len(ran)} tests passed."
    if score.codes[0].refused:
        head = "The program may not run."
    elif not duel.executes:
        head = "The program does not load, or does not define the function."
    return f"{head}\n{failed_tests(score)}".rstrip("\n")


def for_tester(score: MatchScore) -> str:
    """No value of the reference's: the tester is to find out itself what is right."""
    return "\n".join(f"{test.source}  # {_judgement(test)}" for test in score.suites[0][0].duel.tests) or "No test."


def _judgement(test: JudgedTest) -> str:
    said = f"{test.status} ({test.reason})" if test.reason else str(test.status)
    return said if test.verdict is None else f"{said}, the program: {test.verdict}"


def cut(text: str, most: int) -> str:
    """The text up to a line's end, at most that long, where it is longer."""
    if len(text) <= most:
        return text
    return text[:most].rpartition("\n")[0] + "\n..."
