"""One model in both seats, trained for real: tiny, the real arena, groups of unequal size in one batch."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("trl", reason="the extra `train` is not installed")

import torch
from training_runs import TINY, play_alone, same_weights
from transformers import AutoTokenizer

from codea1_env.problems.families.miniature import miniature_problems
from codea1_env.problems.problem import Problem
from codea1_env.training.advantages import estimator_of
from codea1_env.training.config.algorithm import Algorithm
from codea1_env.training.config.options import Options
from codea1_env.training.grpo.sampled import SampledResponse
from codea1_env.training.grpo.seats import SampledSuite, batch_of, sample_suites
from codea1_env.training.grpo.self_play import _rows
from codea1_env.training.grpo.trainer import STATE
from codea1_env.training.models.chat import chat_of
from codea1_env.training.round.rounds import Attack, RoundScore, SelectedSuite
from codea1_env.training.row_labels import RowLabel
from codea1_env.training.run.run_dir import BOOK

# Groups of 4 programs and of 3 suites.
SHAPE = dataclasses.replace(TINY.round, programs=4, suites=3)
ALGORITHM = Algorithm()


def play(
    directory: Path,
    base: Path,
    *,
    rounds: int,
    resume: bool = False,
    oracle: Any = "reference",
    algorithm: Algorithm = ALGORITHM,
    **options: Any,
) -> None:
    reward = dataclasses.replace(TINY.reward, oracle=oracle)
    preset = dataclasses.replace(TINY, round=SHAPE, reward=reward, options=Options(**options), algorithm=algorithm)
    assert not play_alone(directory, base, rounds=rounds, preset=preset, resume=resume)


def records(directory: Path, kind: str) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in (directory / "metrics.jsonl").read_text().splitlines()]
    return [
        {name: value for name, value in record.items() if not name.startswith("seconds")}
        for record in found
        if record["kind"] == kind
    ]


@pytest.fixture(scope="module")
def whole(base: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("runs") / "whole"
    play(directory, base, rounds=3)
    return directory


def test_both_roles_are_played_paid_and_measured_by_one_model(whole: Path, base: Path) -> None:
    assert not same_weights(whole / "player" / "final", base)
    assert not (whole / "coder").exists()
    assert not (whole / "tester").exists()
    rounds = records(whole, "round")
    assert [record["round"] for record in rounds] == [1, 2, 3]
    assert all(record["unscored"] == 0 for record in rounds)
    assert any(record["coder_reward"] > 0 for record in rounds)
    zero_shares = [record["frac_reward_zero_std"] for record in records(whole, "seat")]
    possible = {(4 * coding + 3 * testing) / 14 for coding in range(3) for testing in range(3)}
    assert {round(share, 6) for share in zero_shares} <= {round(share, 6) for share in possible}, "2 * 4 + 2 * 3 rows"
    assert any(record["tester_reward"] > 0 for record in rounds)
    assert rounds[-1]["book"] > 0, "no program failed a test: this run shows nothing"
    assert [(record["seat"], record["round"]) for record in records(whole, "evaluation")] == [
        (role, done) for done in (1, 2) for role in ("coder", "tester")
    ]


def test_a_resumed_player_equals_an_uninterrupted_one(whole: Path, base: Path, tmp_path: Path) -> None:
    play(tmp_path / "resumed", base, rounds=2)
    assert not same_weights(tmp_path / "resumed" / "player" / "final", whole / "player" / "final")
    play(tmp_path / "resumed", base, rounds=3, resume=True)
    assert same_weights(tmp_path / "resumed" / "player" / "final", whole / "player" / "final")
    assert (tmp_path / "resumed" / BOOK).read_bytes() == (whole / BOOK).read_bytes()
    for kind in ("round", "seat"):
        assert records(tmp_path / "resumed", kind) == records(whole, kind)


def test_a_batch_holds_every_program_and_the_selected_suites_each_in_its_own_group() -> None:
    """Two questions, 2 programs each, 3 suites against one of them: 4 rows of coding, 6 of testing."""
    problems = miniature_problems("train", 2, 0)
    programs = [[SampledSuite([1], [10 * q + n], "") for n in range(2)] for q in range(2)]
    suites = [[SampledSuite([2], [100 + 10 * attack + m, 0], "") for m in range(3)] for attack in range(4)]
    tested = [
        SelectedSuite(attack, m, 0.5 * m, RowLabel(str(attack), problems[attack // 2].problem_id, "tester"))
        for attack in (1, 2)
        for m in range(3)
    ]
    score = RoundScore([0.0, 1.0, None, 1.0], tuple(tested), {})
    rows = _rows(problems, programs, suites, score, {"coder": True, "tester": True})
    assert [row.sampled.response[0] for row in rows] == [0, 1, 10, 11, 110, 111, 112, 120, 121, 122]
    batch = batch_of(rows)
    assert batch["env_mask"] == [[1], [1], [0], [1], *[[1, 1]] * 6]
    assert batch["arena_reward"] == [0.0, 1.0, None, 1.0, 0.0, 0.5, 1.0, 0.0, 0.5, 1.0]
    rewards = torch.tensor([torch.nan if reward is None else reward for reward in batch["arena_reward"]])
    found = estimator_of(Algorithm(scale="none")).advantages(rewards, batch["label"])
    assert found.nan_to_num(nan=0.0).tolist() == [-0.5, 0.5, 0, 0, -0.5, 0, 0.5, -0.5, 0, 0.5]
    assert [label.seat for label in batch["label"]] == ["coder"] * 4 + ["tester"] * 6


def test_where_roles_take_turns_the_one_that_rests_is_masked() -> None:
    problems = miniature_problems("train", 1, 0)
    score = RoundScore([0.0, 1.0], (SelectedSuite(0, 0, 1.0, RowLabel("0", "q", "tester")),), {})
    programs, suites = [[SampledSuite([1], [5], "")] * 2], [[SampledSuite([1], [6, 7], "")]] * 2
    batch = batch_of(_rows(problems, programs, suites, score, {"coder": False, "tester": True}))
    assert batch["env_mask"] == [[0], [0], [1, 1]]


class Recording:
    """A trainer that remembers what it is asked, and answers with one token."""

    def __init__(self, base: Path) -> None:
        self.processing_class = AutoTokenizer.from_pretrained(base)
        self.asked: list[list[int]] = []

    def sample(self, prompts: list[list[int]], *_: Any) -> list[SampledResponse]:
        self.asked += prompts
        return [SampledResponse([5], None) for _ in prompts]


@pytest.mark.parametrize("is_white_box", [True, False])
def test_a_black_box_tester_sees_the_question_only(base: Path, is_white_box: bool) -> None:
    problem = Problem("sum", "solve(xs): return the sum.", "solve")
    attacks = [Attack(problem, "", f"def solve(xs):\n    return {number}") for number in (3, 4)]
    trainer = Recording(base)
    access = Options(access="white-box" if is_white_box else "black-box")
    sample_suites(trainer, attacks, 2, chat_of(dataclasses.replace(TINY, options=access)))
    one, _, other, _ = (trainer.processing_class.decode(prompt) for prompt in trainer.asked)
    assert ("return 3" in one, "return 4" in other) == (is_white_box, is_white_box)
    assert (one == other) is not is_white_box
    assert "return the sum" in one


def test_without_a_reference_the_programs_vote_and_the_oracles_error_is_logged(base: Path, tmp_path: Path) -> None:
    play(tmp_path / "voted", base, rounds=3, oracle="majority")
    rounds = records(tmp_path / "voted", "round")
    assert any("oracle_error" in record for record in rounds), "no round asked the oracle: this run shows nothing"
    assert not same_weights(tmp_path / "voted" / "player" / "final", base)


@pytest.mark.slow
def test_the_past_plays_along_in_self_play_and_resumes_exactly(base: Path, tmp_path: Path) -> None:
    options = {"opponents": "uniform", "opponent_every": 1, "tester_book": 1}
    play(tmp_path / "whole", base, rounds=3, **options)
    play(tmp_path / "resumed", base, rounds=2, **options)
    play(tmp_path / "resumed", base, rounds=3, resume=True, **options)
    assert same_weights(tmp_path / "resumed" / "player" / "final", tmp_path / "whole" / "player" / "final")
    assert (tmp_path / "whole" / "player" / "snapshots" / "round-2" / "model.safetensors").is_file()
    assert all("past_coder_reward" in record for record in records(tmp_path / "whole", "round"))


def test_options_of_self_play_take_effect(whole: Path, base: Path, tmp_path: Path) -> None:
    by_seat = Algorithm(advantage="rae", scale="none")
    play(tmp_path / "other", base, rounds=2, access="black-box", algorithm=by_seat, schedule="alternating")
    assert records(tmp_path / "other", "round")[0] != records(whole, "round")[0]
    state = json.loads((tmp_path / "other" / "player" / "checkpoint-2" / STATE).read_text())
    assert state["means"].keys() == {"coder", "tester"}
