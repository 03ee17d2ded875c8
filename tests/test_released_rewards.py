"""Paper fidelity pays what the paper's released code paid, figure by figure, on suites that a model really wrote.

The figures are the released functions' own, their quoting of booked tests and their colliding markers mended. Left out
are programs that its ten seconds cut off.
"""

from __future__ import annotations

import dataclasses
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from codea1_env.arena.arena import Arena
from codea1_env.arena.match import MatchScore
from codea1_env.mistake_book.book import MistakeBook
from codea1_env.records.matches import read_match
from codea1_env.rewards.code_a1 import RewardConfig
from codea1_env.rewards.duel import Duel, Status
from codea1_env.rewards.terms import SuiteTerms
from codea1_env.sandbox import LocalSandbox

RELEASED = Path(__file__).resolve().parents[2] / "shared" / "data" / "released-rewards.jsonl.gz"
# This program's last lines import what is not installed. There, all imports are hoisted above the reference: nothing of
# its suites is validated. No reward depends on it: a program that does not execute pays nothing.
LOST_WITH_THEIR_PROGRAM = ("HumanEval/83", 0)


def questions() -> list[dict[str, Any]]:
    if not RELEASED.exists():
        return []
    with gzip.open(RELEASED, "rt") as lines:
        return [json.loads(line) for line in lines]


@pytest.mark.skipif(not RELEASED.exists(), reason=f"the released code's rewards are not at {RELEASED}")
@pytest.mark.parametrize("question", questions(), ids=lambda question: question["match"]["problem_id"])
def test_paper_fidelity_pays_what_the_released_code_pays(question: dict[str, Any], sandbox: LocalSandbox) -> None:
    match = read_match(json.dumps(question["match"]).encode())
    problem = dataclasses.replace(match.problem, time_limit_s=0.3)  # some programs hang on every call
    match = dataclasses.replace(match, problem=problem)
    arena = Arena(sandbox, RewardConfig(fidelity="paper"), MistakeBook())
    for released in question["released"]:
        (score,) = arena.play([match])
        compared = [i for i, timed_out in enumerate(released["timed_out"]) if not timed_out]
        assert compared
        for program in compared:
            assert score.codes[program].executes == released["executes"][program]
            assert score.codes[program].reward == pytest.approx(released["coder"][program], abs=1e-12)
            rewards = [suite.reward for suite in score.suites[program]]
            assert rewards == pytest.approx(released["tester"][program], abs=1e-12)
            assert _counts(score, program) == released["valid_invalid_total_passed"][program]


def _counts(score: MatchScore, program: int) -> list[list[int]]:
    is_lost = (score.problem_id, program) == LOST_WITH_THEIR_PROGRAM
    assert not (is_lost and score.codes[program].executes)
    return [_of_suite(suite.terms, suite.duel, is_lost) for suite in score.suites[program] if suite.terms]


def _of_suite(terms: SuiteTerms, duel: Duel, is_lost: bool) -> list[int]:
    total = len(duel.tests)
    if is_lost:
        return [0, sum(test.status is Status.REJECTED for test in duel.tests), total, 0]
    return [terms.v, terms.invalid, total, terms.passed]
