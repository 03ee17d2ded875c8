"""Past opponents and old targets: who is drawn, and exact resume with real tiny models. What they add to a round is in
test_training_rounds.py."""

import dataclasses
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("trl", reason="the extra `train` is not installed")

from training_runs import TINY, assert_same_runs, play_alone, play_duel, records, same_weights, without_evaluations

from codea1_env.configuration.model_sections import LoraPreset
from codea1_env.configuration.options import Options
from codea1_env.configuration.placement import Placement, SeatPlacement
from codea1_env.configuration.presets import Preset
from codea1_env.errors import ConfigurationError
from codea1_env.training.models.shared_base import shared_base
from codea1_env.training.round.past_opponents import BOOK, RECORDS, SNAPSHOTS, PastOpponents, snapshot
from codea1_env.training.round.rounds import Score
from codea1_env.training.seat_run import SeatRun


def opponents(tmp_path: Path, **options: Any) -> PastOpponents:
    preset = dataclasses.replace(TINY, options=Options(**options))
    return opponents_of(preset, tmp_path)


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
    shape = dataclasses.replace(TINY.round, questions=2)
    preset = dataclasses.replace(
        TINY, round=shape, placement=Placement(tester=SeatPlacement(ranks=2)), options=Options(tester_book=1)
    )
    with pytest.raises(ConfigurationError, match=r"placement.tester.ranks must be 1 .* got 2"):
        opponents_of(preset, tmp_path)


ADAPTERS = {"trainer": "packed", "lora": LoraPreset(rank=4, alpha=8.0)}


@pytest.mark.parametrize(
    ("play", "trainer"),
    [(play_duel, {}), (play_duel, ADAPTERS), pytest.param(play_alone, {}, marks=pytest.mark.slow)],
    ids=["duel trl", "duel packed", "alone trl"],
)
def test_a_resumed_run_with_past_opponents_and_a_testers_book_equals_an_uninterrupted_one(
    play: Any, trainer: dict[str, Any], base: Path, tmp_path: Path
) -> None:
    preset = without_evaluations(
        problems=dataclasses.replace(TINY.problems, train=2),  # every question comes back in every round
        options=Options(opponents="prioritised", opponent_every=1, tester_book=2),
        **trainer,
    )
    whole = tmp_path / "whole"
    play(whole, base, rounds=4, preset=preset)
    play(tmp_path / "resumed", base, rounds=2, preset=preset)
    play(tmp_path / "resumed", base, rounds=4, preset=preset, resume=True)
    assert_same_runs(whole, tmp_path / "resumed")
    (fared,) = whole.glob(f"*/checkpoint-4/{RECORDS}")
    assert (fared.parent / BOOK).is_file()
    assert set(json.loads(fared.read_text())["coder"]) - {"0"}, "only the base was drawn: this run shows nothing"
    assert all("past_coder_reward" in record for record in records(whole, "round"))
    for final in whole.glob("*/final"):
        assert same_weights(snapshot(final.parent, 2), final.parent / "checkpoint-2")
    if trainer:
        assert not [name for name in shared_base(base, preset).adapters if SNAPSHOTS in name], "each was let go"
