"""Past opponents and old targets: who is drawn. What they add to a round is in test_training_rounds.py, that a run goes
on with them to the same bits in test_training_resume.py."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("trl", reason="the extra `train` is not installed")

from training_runs import tiny

from codea1_env.configuration.presets import Preset
from codea1_env.errors import ConfigurationError
from codea1_env.training.round.past_opponents import RECORDS, PastOpponents
from codea1_env.training.round.rounds import Score
from codea1_env.training.seat_run import SeatRun


def opponents(tmp_path: Path, **options: Any) -> PastOpponents:
    return opponents_of(tiny(options=options), tmp_path)


def opponents_of(preset: Preset, tmp_path: Path) -> PastOpponents:
    nothing: Any = None  # neither arena nor model: nobody plays
    return PastOpponents(SeatRun(preset, tmp_path, tmp_path / "tester", 1), {}, nothing, nothing, nothing)


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
        past.learn(index, Score((), {}, past_coder=reward))
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
        past.learn(0, Score((), {}, past_coder=reward))
    past.save(tmp_path)
    assert json.loads((tmp_path / RECORDS).read_text()) == {"coder": {"0": pytest.approx(0.6)}, "tester": {}}


def test_several_ranks_are_refused_where_the_past_plays(tmp_path: Path) -> None:
    preset = tiny(round={"questions": 2}, placement={"tester": {"ranks": 2}}, options={"tester_book": 1})
    with pytest.raises(ConfigurationError, match=r"placement.tester.ranks must be 1 .* got 2"):
        opponents_of(preset, tmp_path)
