"""The Ray engine: the same bits as in one process, on one rank a seat and on two."""

import dataclasses
import hashlib
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("trl", reason="the extra `train` is not installed")
pytest.importorskip("ray", reason="the extra `ray` is not installed")

import ray
import yaml
from ray_training import TWICE, cluster, in_round, killed, needs_cluster, whole
from test_training_baselines import PACKED as PACKED_PRESET
from training_runs import (
    SEATS,
    TINY,
    assert_same_runs,
    play_alone,
    play_duel,
    run_here,
    same_weights,
    without_evaluations,
)

from codea1_env.configuration.algorithm import Algorithm
from codea1_env.configuration.options import Options
from codea1_env.configuration.placement import Placement, SeatPlacement
from codea1_env.configuration.presets import Preset
from codea1_env.errors import SeatFailed
from codea1_env.training.policies.ray_seats import RankPlace
from codea1_env.training.policies.remote import rank_environments

__all__ = ["cluster", "whole"]

pytestmark = [
    pytest.mark.longest,
    pytest.mark.filterwarnings("default::ResourceWarning", "ignore::DeprecationWarning:ray"),
]
PACKED = {"trainer": "packed", "lora": PACKED_PRESET.lora, "grpo": PACKED_PRESET.grpo}
TESTERS = ("coder", "tester", "tester_1")
PAST = Options(opponents="uniform", opponent_every=1, tester_book=1, selection="random")
DUELS = {
    "options": {"options": PAST, "algorithm": Algorithm(advantage="question")},
    "packed": PACKED,
    "two testers": {"seats": TESTERS},
    "two testers, packed": {"seats": TESTERS, **PACKED},
}


@needs_cluster
def test_both_engines_give_the_same_bits(whole: Path, base: Path, tmp_path: Path) -> None:
    assert not play_duel(tmp_path / "ray", base, rounds=3, preset=TWICE, engine="ray")
    assert_same_runs(whole, tmp_path / "ray")


@pytest.mark.slow
@needs_cluster
@pytest.mark.parametrize("changes", DUELS.values(), ids=DUELS)
def test_a_duel_that_goes_on_under_ray_has_the_bits_of_a_local_one(
    changes: dict[str, Any], base: Path, tmp_path: Path
) -> None:
    preset = without_evaluations(**changes)
    assert not play_duel(tmp_path / "local", base, rounds=2, preset=preset)
    for rounds in (1, 2):
        assert not play_duel(tmp_path / "ray", base, rounds=rounds, preset=preset, engine="ray", resume=rounds > 1)
    assert_same_runs(tmp_path / "local", tmp_path / "ray")
    finals = [next((tmp_path / "ray" / seat / "final").glob("*.safetensors")).read_bytes() for seat in preset.seats]
    assert len(set(finals)) == len(preset.seats), "every seat has learnt something of its own"


@pytest.mark.slow
@needs_cluster
@pytest.mark.parametrize("changes", [{"algorithm": Algorithm(credit="test")}, PACKED], ids=["trl", "packed"])
def test_self_play_with_the_past_gives_the_same_bits_under_both_engines(
    changes: dict[str, Any], base: Path, tmp_path: Path
) -> None:
    options = Options(opponents="prioritised", opponent_every=1, tester_book=1)
    preset = dataclasses.replace(TINY, options=options, **changes)
    for engine in ("local", "ray"):
        assert not play_alone(tmp_path / engine, base, rounds=2, preset=preset, engine=engine)
    assert_same_runs(tmp_path / "local", tmp_path / "ray")


@pytest.mark.slow
@needs_cluster
@pytest.mark.parametrize("recipe", ["golden_tests", "frozen_tester", "static_tests", "sft", "expert_iteration"])
@pytest.mark.parametrize("changes", [{}, PACKED], ids=["trl", "packed"])
def test_every_baseline_gives_the_same_bits_under_both_engines(
    recipe: str, changes: dict[str, Any], bases: Path, tmp_path: Path, monkeypatch: Any, capsys: Any
) -> None:
    preset: Preset = dataclasses.replace(TINY, rounds=2, **changes)
    (tmp_path / "tiny.yaml").write_text(yaml.safe_dump(preset.to_dict()))
    for engine in ("local", "ray"):
        argv = ["--config", str(tmp_path / "tiny.yaml"), "--output", str(tmp_path / engine), "--engine", engine]
        run_here(f"baselines/{recipe}.py", *argv, cache=bases, patch=monkeypatch, capsys=capsys)
    assert_same_runs(tmp_path / "local", tmp_path / "ray")


def weights_digest(actor: Any) -> str:
    digest = hashlib.sha256()
    for _, weight in sorted(actor._policy._trainer.model.state_dict().items()):
        digest.update(weight.numpy().tobytes())
    return digest.hexdigest()


@pytest.mark.slow
@needs_cluster
def test_two_ranks_a_seat_hold_the_same_weights_and_resume_to_the_same_bits(base: Path, tmp_path: Path) -> None:
    two_ranks = Placement(*(SeatPlacement(ranks=2) for _ in SEATS))
    preset, noted = dataclasses.replace(TWICE, placement=two_ranks), dict[str, list[str]]()

    def note_weights(run: Any, score: Any) -> None:
        for seat in SEATS:
            actors = run._policies[seat]._ranks.actors
            noted[seat] = ray.get([actor.__ray_call__.remote(weights_digest) for actor in actors])

    how: dict[str, Any] = {"rounds": 3, "preset": preset, "engine": "ray"}
    assert not play_duel(tmp_path / "whole", base, **how, **in_round(3, note_weights))
    for seat in SEATS:
        first, second = noted[seat]
        assert first == second
        assert not same_weights(tmp_path / "whole" / seat / "final", base)
    with pytest.raises(SeatFailed, match="the tester is gone"):
        play_duel(tmp_path / "resumed", base, **how, **in_round(3, killed("tester")))
    assert not play_duel(tmp_path / "resumed", base, **how, resume=True)
    assert_same_runs(tmp_path / "whole", tmp_path / "resumed")


@pytest.mark.slow
@needs_cluster
def test_self_play_on_two_ranks_resumes_to_the_same_bits(base: Path, tmp_path: Path) -> None:
    algorithm = Algorithm(credit="test", zero_variance="drop")
    preset = without_evaluations(placement=Placement(coder=SeatPlacement(ranks=2)), algorithm=algorithm)
    for run, rounds, resume in (("whole", 2, False), ("resumed", 1, False), ("resumed", 2, True)):
        assert not play_alone(tmp_path / run, base, rounds=rounds, preset=preset, engine="ray", resume=resume)
    assert not same_weights(tmp_path / "whole" / "player" / "final", base)
    assert_same_runs(tmp_path / "whole", tmp_path / "resumed")


def test_ranks_are_told_their_place_and_see_the_gpus_of_their_seat_on_their_machine() -> None:
    places = [
        RankPlace("first", 1, "10.0.0.1", 4001, ("2",)),
        RankPlace("first", 2, "10.0.0.1", 4002, ("3",)),
        RankPlace("second", 3, "10.0.0.2", 4003, ("0",)),
        RankPlace("second", 4, "10.0.0.2", 4004, ("1",)),
    ]
    found = rank_environments(places)
    assert [each["RANK"] for each in found] == ["0", "1", "2", "3"]
    assert [each["LOCAL_RANK"] for each in found] == ["0", "1", "0", "1"]
    assert {(each["WORLD_SIZE"], each["LOCAL_WORLD_SIZE"]) for each in found} == {("4", "2")}
    assert {(each["MASTER_ADDR"], each["MASTER_PORT"]) for each in found} == {("10.0.0.1", "4001")}
    assert [each["CUDA_VISIBLE_DEVICES"] for each in found] == ["2,3", "2,3", "0,1", "0,1"]
    assert rank_environments(places[:1]) == [{}]
