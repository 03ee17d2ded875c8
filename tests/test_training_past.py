"""Past opponents and old targets: what they add to a round, who is drawn, and exact resume with real tiny models."""

import dataclasses
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("trl", reason="the extra `train` is not installed")

from training_runs import SEATS, TINY, assert_same_runs, play_duel, records, same_weights

from codea1_env.arena.arena import Arena
from codea1_env.errors import ConfigurationError
from codea1_env.problems.problem import Problem
from codea1_env.rewards.code_a1 import RewardConfig
from codea1_env.sandbox import open_sandbox
from codea1_env.training.config.options import Options
from codea1_env.training.config.placement import Placement, SeatPlacement
from codea1_env.training.config.presets import Preset
from codea1_env.training.grpo.past_opponents import BOOK, RECORDS, PastOpponents, snapshot
from codea1_env.training.round.rounds import PastPlay, RoundScore, attacks_of, score_round
from codea1_env.training.round.rules import RoundRules
from codea1_env.training.run.callbacks import SeatRun

DOUBLE = Problem(
    "double", "double(x): return twice x.", "double", reference_solution="def double(x):\n    return 2 * x\n"
)
RIGHT = "def double(x):\n    return 2 * x"
SQUARE = "def double(x):\n    return x * x"
EDGE = "assert double(3) == 6"
"""Valid; SQUARE fails it."""
BLIND = "assert double(2) == 4"
"""Valid; SQUARE passes it."""


@pytest.fixture
def arena() -> Iterator[Arena]:
    with open_sandbox() as sandbox:
        yield Arena(sandbox, RewardConfig(suite_size=1))


def test_an_old_program_can_train_the_tester_and_leaves_no_trace_in_the_book(arena: Arena) -> None:
    """K = 1, alpha 1/2. Present: RIGHT twice, all suites earn 1/2. Old: SQUARE, EDGE earns 1, BLIND 1/2: it spreads."""
    past = PastPlay(attacks=attacks_of([DOUBLE], [SQUARE]), old_coders=1, against=((EDGE, BLIND),))
    score = score_round(
        arena, attacks_of([DOUBLE] * 2, [RIGHT] * 2), [[EDGE, BLIND]] * 2, programs=2, attacked=1, past=past
    )
    assert [(row.attack, row.suite, row.reward) for row in score.tester] == [(2, 0, 1.0), (2, 1, 0.5)]
    assert {row.label.group for row in score.tester} == {"2"}
    assert score.coder == [1.0, 1.0]
    assert score.past_coder == pytest.approx(0.5), "SQUARE passes one suite of two"
    assert len(arena.book) == 0


def test_an_old_testers_suites_judge_the_present_programs_and_train_nobody(arena: Arena) -> None:
    """SQUARE passes BLIND and fails the old tester's EDGE: R_C 1/2. The present tester's one suite is its only row."""
    past = PastPlay(suites=((EDGE,), (EDGE,)))
    score = score_round(
        arena, attacks_of([DOUBLE] * 2, [SQUARE, RIGHT]), [[BLIND]] * 2, programs=2, attacked=1, past=past
    )
    assert score.coder == [0.5, 1.0]
    assert [(row.attack, row.suite, row.reward) for row in score.tester] == [(0, 0, 0.5)]
    assert score.past_tester == pytest.approx(0.5), "it caught one of the two programs"
    assert len(arena.book) == 1, "what the present program fails is remembered, whoever wrote it"


def test_only_the_present_testers_suites_enter_its_mistake_book(arena: Arena) -> None:
    past = PastPlay(suites=((EDGE, EDGE),), attacks=attacks_of([DOUBLE], [SQUARE]), against=((BLIND,),))
    rules = RoundRules(Options(tester_book=2))
    score = score_round(
        arena, attacks_of([DOUBLE], [SQUARE]), [[BLIND]], programs=1, attacked=1, rules=rules, past=past
    )
    assert [[len(row) for row in match.suites] for match in score.played] == [[1], [1]]
    assert score.past_coder is None, "a target of the book is no old coder"


def opponents(tmp_path: Path, **options: Any) -> PastOpponents:
    preset = dataclasses.replace(TINY, options=Options(**options))
    return PastOpponents(SeatRun(preset, tmp_path, tmp_path / "tester", 1), tmp_path / "coder", tmp_path / "tester")


def test_only_snapshots_of_the_past_are_drawn_and_the_base_model_first(tmp_path: Path) -> None:
    uniform = opponents(tmp_path, opponents="uniform", opponent_every=2)
    assert [uniform.drawn("coder", index) for index in range(3)] == [0, 0, 0]
    for index in range(3, 200):
        assert uniform.drawn("coder", index) in range(0, index, 2)
    few = opponents(tmp_path, opponents="uniform", opponent_every=50)
    drawn = {seat: [few.drawn(seat, index) for index in range(101, 151)] for seat in ("coder", "tester")}
    assert set(drawn["coder"]) == {0, 50, 100}, "every snapshot has its chance"
    assert drawn["coder"] != drawn["tester"], "the seats are drawn apart"


def test_who_did_better_is_drawn_more_often_and_nobody_never(tmp_path: Path) -> None:
    """Snapshots 0, which did well, and 50, which lost always: weights 0.95 and 0.05."""
    past = opponents(tmp_path, opponents="prioritised", opponent_every=50)
    for index, reward in ((10, 0.9), (51, 0.0)):
        while past.drawn("coder", index) != (50 if index > 50 else 0):
            index += 1
        past.learn(index, RoundScore([], (), {}, past_coder=reward))
    drawn = Counter(past.drawn("coder", 51 + index % 50) for index in range(50))
    uniform = Counter(
        opponents(tmp_path, opponents="uniform", opponent_every=50).drawn("coder", i) for i in range(51, 101)
    )
    assert drawn[0] > 40 > uniform[0]
    assert drawn[0] + drawn[50] == 50


def test_how_a_snapshot_fared_is_a_running_mean(tmp_path: Path) -> None:
    """0.8 first, then 0.4: half of each, 0.6. A round without a score changes nothing."""
    past = opponents(tmp_path, opponents="prioritised")
    for reward in (0.8, 0.4, None):
        past.learn(0, RoundScore([], (), {}, past_coder=reward))
    past.save(tmp_path)
    assert json.loads((tmp_path / RECORDS).read_text()) == {"coder": {"0": pytest.approx(0.6)}, "tester": {}}


def test_several_ranks_are_refused_where_the_past_plays(tmp_path: Path) -> None:
    shape = dataclasses.replace(TINY.round, questions=2)
    preset = dataclasses.replace(
        TINY, round=shape, placement=Placement(tester=SeatPlacement(ranks=2)), options=Options(tester_book=1)
    )
    with pytest.raises(ConfigurationError, match=r"placement.tester.ranks must be 1 .* got 2"):
        PastOpponents(SeatRun(preset, tmp_path, tmp_path / "tester", 1), tmp_path, tmp_path)


def test_a_resumed_run_with_past_opponents_and_a_testers_book_equals_an_uninterrupted_one(
    base: Path, tmp_path: Path
) -> None:
    preset = with_past(opponents="prioritised", opponent_every=1, tester_book=2)
    play_duel(tmp_path / "whole", base, rounds=4, preset=preset)
    play_duel(tmp_path / "resumed", base, rounds=2, preset=preset)
    play_duel(tmp_path / "resumed", base, rounds=4, preset=preset, resume=True)
    assert_same_runs(tmp_path / "whole", tmp_path / "resumed")
    for name in (RECORDS, BOOK):
        one, other = (tmp_path / run / "tester" / "checkpoint-4" / name for run in ("whole", "resumed"))
        assert one.read_bytes() == other.read_bytes()
    fared = json.loads((tmp_path / "whole" / "tester" / "checkpoint-4" / RECORDS).read_text())
    assert fared["coder"], "no old coder was scored: this run shows nothing"
    assert all("past_coder_reward" in record for record in records(tmp_path / "whole", "round"))
    for seat in SEATS:
        assert same_weights(snapshot(tmp_path / "whole" / seat, 2), tmp_path / "whole" / seat / "checkpoint-2")


def with_past(**options: Any) -> Preset:
    return dataclasses.replace(
        TINY,
        problems=dataclasses.replace(TINY.problems, train=2),  # every question comes back in every round
        evaluation=dataclasses.replace(TINY.evaluation, every_rounds=0),
        options=Options(**options),
    )
