"""The Ray engine: the same bits as in one process, on one rank a seat and on two."""

import dataclasses
import hashlib
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("trl", reason="the extra `train` is not installed")
pytest.importorskip("ray", reason="the extra `ray` is not installed")

import training_runs
from ray_training import TWICE, cluster, die, meet_in_round, needs_cluster, whole
from training_runs import SEATS, assert_same_runs, play_duel, same_weights
from transformers import TrainerCallback

from codea1_env.errors import SeatFailed
from codea1_env.training.config.algorithm import Algorithm
from codea1_env.training.config.options import Options
from codea1_env.training.config.placement import Placement, SeatPlacement
from codea1_env.training.engine.ray_actors import RankPlace
from codea1_env.training.engine.ray_cluster import rank_environments
from codea1_env.training.run.run_dir import BOOK

__all__ = ["cluster", "whole"]

pytestmark = [
    pytest.mark.longest,
    pytest.mark.filterwarnings("default::ResourceWarning", "ignore::DeprecationWarning:ray"),
]


@needs_cluster
def test_both_engines_give_the_same_bits(whole: Path, base: Path, tmp_path: Path) -> None:
    assert not play_duel(tmp_path / "ray", base, rounds=3, preset=TWICE, engine="ray")
    assert_same_runs(whole, tmp_path / "ray")


class NoteWeights(TrainerCallback):
    """Leaves a digest of a rank's weights when its training ends."""

    def __init__(self, directory: Path, seat: str) -> None:
        self._directory, self._seat = directory, seat

    def on_train_end(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
        digest = hashlib.sha256()
        for _, weight in sorted(rest["model"].state_dict().items()):
            digest.update(weight.numpy().tobytes())
        (self._directory / f"{self._seat}-{args.process_index}").write_text(digest.hexdigest())


PLACED = {seat: SeatPlacement(ranks=2) for seat in SEATS}


@pytest.mark.slow
@needs_cluster
def test_two_ranks_a_seat_hold_the_same_weights_and_resume_to_the_same_bits(base: Path, tmp_path: Path) -> None:
    preset = dataclasses.replace(TWICE, placement=Placement(**PLACED))

    def note_weights(seat: str, trainer: Any) -> None:
        trainer.add_callback(NoteWeights(tmp_path, seat))

    assert not play_duel(tmp_path / "whole", base, rounds=3, preset=preset, engine="ray", on_built=note_weights)
    for seat in SEATS:
        first, second = ((tmp_path / f"{seat}-{rank}").read_text() for rank in range(2))
        assert first == second
        assert not same_weights(tmp_path / "whole" / seat / "final", base)
    cut = meet_in_round(3, die)
    with pytest.raises(SeatFailed, match="the tester is gone"):
        play_duel(tmp_path / "resumed", base, rounds=3, preset=preset, engine="ray", wrappers=cut)
    assert not play_duel(tmp_path / "resumed", base, rounds=3, preset=preset, engine="ray", resume=True)
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


@pytest.mark.slow
@needs_cluster
def test_self_play_with_the_past_gives_the_same_bits_under_both_engines(base: Path, tmp_path: Path) -> None:
    options = Options(opponents="prioritised", opponent_every=1, tester_book=1)
    preset = dataclasses.replace(training_runs.TINY, options=options, algorithm=Algorithm(credit="test"))
    for engine in ("local", "ray"):
        assert not training_runs.play_alone(tmp_path / engine, base, rounds=2, preset=preset, engine=engine)
    one, other = tmp_path / "local", tmp_path / "ray"
    assert training_runs.same_weights(one / "player" / "final", other / "player" / "final")
    assert (one / BOOK).read_bytes() == (other / BOOK).read_bytes()
    for kind, seat in (("round", ""), ("seat", "player"), ("evaluation", "coder"), ("evaluation", "tester")):
        mine, others = (training_runs.records(run, kind, seat) for run in (one, other))
        assert training_runs.without_seconds(mine) == training_runs.without_seconds(others)


@pytest.mark.slow
@needs_cluster
def test_self_play_on_two_ranks_resumes_to_the_same_bits(base: Path, tmp_path: Path) -> None:
    algorithm = Algorithm(credit="test", zero_variance="drop")
    placement = Placement(coder=SeatPlacement(ranks=2))
    preset = dataclasses.replace(training_runs.TINY, placement=placement, algorithm=algorithm)

    def play(run: str, rounds: int, resume: bool = False) -> Path:
        directory = tmp_path / run
        assert not training_runs.play_alone(directory, base, rounds=rounds, preset=preset, engine="ray", resume=resume)
        return directory / "player" / "final"

    whole = play("whole", 2)
    assert not same_weights(whole, base)
    play("resumed", 1)
    assert same_weights(play("resumed", 2, resume=True), whole)


@pytest.mark.slow
@needs_cluster
def test_a_duel_with_options_gives_the_same_bits_under_both_engines(base: Path, tmp_path: Path) -> None:
    options = Options(opponents="uniform", opponent_every=1, tester_book=1, selection="random")
    preset = dataclasses.replace(training_runs.TINY, options=options, algorithm=Algorithm(advantage="question"))
    for engine in ("local", "ray"):
        assert not play_duel(tmp_path / engine, base, rounds=2, preset=preset, engine=engine)
    assert_same_runs(tmp_path / "local", tmp_path / "ray")
