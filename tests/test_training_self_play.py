"""One model in both seats, trained for real: tiny, the real arena, groups of unequal size in one batch."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("trl", reason="the extra `train` is not installed")

from training_runs import TINY, assert_same_runs, play_alone, records, same_weights, without_seconds

from codea1_env.configuration.algorithm import Algorithm
from codea1_env.configuration.model_sections import LoraPreset
from codea1_env.configuration.options import Options
from codea1_env.training.policies.policy import STATE

# Groups of 4 programs and of 3 suites.
SHAPE = dataclasses.replace(TINY.round, programs=4, suites=3)
PACKED = {"trainer": "packed", "lora": LoraPreset(rank=4, alpha=8.0)}


def play(directory: Path, base: Path, *, rounds: int, resume: bool = False, **sections: Any) -> None:
    preset = dataclasses.replace(TINY, round=SHAPE, **sections)
    assert not play_alone(directory, base, rounds=rounds, preset=preset, resume=resume)


@pytest.fixture(scope="module")
def whole(base: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("runs") / "whole"
    play(directory, base, rounds=3)
    return directory


def test_both_roles_are_played_paid_and_measured_by_one_model(whole: Path, base: Path) -> None:
    assert not same_weights(whole / "player" / "final", base)
    assert {path.parent.name for path in whole.glob("*/final")} == {"player"}
    rounds = records(whole, "round")
    assert [record["round"] for record in rounds] == [1, 2, 3]
    assert all(record["unscored"] == 0 for record in rounds)
    assert any(record["coder_reward"] > 0 for record in rounds)
    zero_shares = [record["frac_reward_zero_std"] for record in records(whole, "seat", "player")]
    possible = {(4 * coding + 3 * testing) / 14 for coding in range(3) for testing in range(3)}
    assert {round(share, 6) for share in zero_shares} <= {round(share, 6) for share in possible}, "2 * 4 + 2 * 3 rows"
    assert any(record["tester_reward"] > 0 for record in rounds)
    assert rounds[-1]["book"] > 0, "no program failed a test: this run shows nothing"
    for role in ("coder", "tester"):
        assert [record["round"] for record in records(whole, "evaluation", role)] == [1, 2]


@pytest.mark.parametrize("trainer", [{}, PACKED], ids=["trl", "packed"])
def test_a_resumed_player_equals_an_uninterrupted_one(trainer: dict[str, Any], base: Path, tmp_path: Path) -> None:
    sections = {"evaluation": dataclasses.replace(TINY.evaluation, every_rounds=0), **trainer}
    play(tmp_path / "whole", base, rounds=3, **sections)
    play(tmp_path / "resumed", base, rounds=2, **sections)
    assert not same_weights(tmp_path / "resumed" / "player" / "final", tmp_path / "whole" / "player" / "final")
    play(tmp_path / "resumed", base, rounds=3, resume=True, **sections)
    assert_same_runs(tmp_path / "whole", tmp_path / "resumed")


def test_without_a_reference_the_programs_vote_and_the_oracles_error_is_logged(base: Path, tmp_path: Path) -> None:
    play(tmp_path / "voted", base, rounds=3, reward=dataclasses.replace(TINY.reward, oracle="majority"))
    rounds = records(tmp_path / "voted", "round")
    assert any("oracle_error" in record for record in rounds), "no round asked the oracle: this run shows nothing"
    assert not same_weights(tmp_path / "voted" / "player" / "final", base)


def test_options_of_self_play_take_effect(whole: Path, base: Path, tmp_path: Path) -> None:
    by_seat = Algorithm(advantage="rae", scale="none")
    options = Options(access="black-box", schedule="alternating")
    play(tmp_path / "other", base, rounds=2, algorithm=by_seat, options=options)
    first, other = (without_seconds(records(run, "round"))[0] for run in (whole, tmp_path / "other"))
    assert first != other
    state = json.loads((tmp_path / "other" / "player" / "checkpoint-2" / STATE).read_text())
    assert state["means"].keys() == {"coder", "tester"}
