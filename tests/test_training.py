"""Both seats trained for real, in this process: tiny models, the real arena, two rounds or four."""

import dataclasses
import json
import re
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("trl", reason="the extra `train` is not installed")

from training_runs import (
    ROOT,
    SEATS,
    TINY,
    NoSandbox,
    assert_same_runs,
    metric_rows,
    play_duel,
    records,
    same_weights,
    without_seconds,
)
from transformers import AutoModelForCausalLM, AutoTokenizer

from codea1_env.arena.arena import Arena
from codea1_env.arena.diagnostics import Diagnostics
from codea1_env.errors import SandboxError
from codea1_env.mistake_book.book import MistakeBook
from codea1_env.training.config.arguments import read_configuration
from codea1_env.training.run.callbacks import LOGGED
from codea1_env.training.run.run_dir import BOOK


@pytest.fixture(scope="session")
def duel(base: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of four rounds that the tests below look at."""
    directory = tmp_path_factory.mktemp("runs") / "whole"
    assert not play_duel(directory, base, rounds=4)
    return directory


@pytest.mark.parametrize("seat", SEATS)
def test_rewards_move_the_weights_of_both_seats(duel: Path, base: Path, seat: str) -> None:
    logged = records(duel, "seat", seat)
    assert [record["round"] for record in logged] == [1, 2, 3, 4]
    assert any(record["reward_std"] > 0 for record in logged), "no group ever had two different rewards"
    assert TINY.grpo.of(seat)["weight_decay"] == 0, "only a gradient may move the weights here"
    assert not same_weights(duel / seat / "final", base)


@pytest.mark.parametrize("seat", SEATS)
def test_a_run_leaves_models_that_load_with_their_tokenizers(duel: Path, seat: str) -> None:
    model = AutoModelForCausalLM.from_pretrained(duel / seat / "final")
    tokenizer = AutoTokenizer.from_pretrained(duel / seat / "final")
    assert type(model).__name__ == "Qwen2ForCausalLM"
    text = "assert solve([3, -4]) == -1"
    tokens = tokenizer(text)["input_ids"]
    assert max(tokens) < model.config.vocab_size
    assert tokenizer.decode(tokens) == text


def test_a_run_leaves_its_configuration_and_its_book(duel: Path) -> None:
    preset, seed = read_configuration(duel / "config.yaml")
    assert preset == dataclasses.replace(TINY, rounds=4)
    assert seed == 0
    book = MistakeBook.load(duel / BOOK)
    assert len(book) == records(duel, "round")[-1]["book"]
    assert len(book) > 0, "no program failed a test: this run shows nothing"


def test_every_round_logs_scores_and_where_the_time_went(duel: Path) -> None:
    rounds = records(duel, "round")
    assert [record["round"] for record in rounds] == [1, 2, 3, 4]
    for record in rounds:
        assert 0 <= record["coder_reward"] <= 1
        parts = [record[f"seconds_{part}"] for part in ("parsing", "judging", "rewarding")]
        assert 0 < sum(parts) <= record["seconds_scoring"]
        assert record["unscored"] == 0
    for seat in SEATS:
        for record in records(duel, "seat", seat):
            assert record["seconds_generating"] > 0
            assert record["seconds_waiting"] > 0
            assert record["seconds_learning"] > 0
        assert [record["round"] for record in records(duel, "evaluation", seat)] == [1, 2, 3]


def test_every_logged_name_is_documented_for_its_kind_and_seat(duel: Path) -> None:
    lines = [json.loads(line) for line in (duel / "metrics.jsonl").read_text().splitlines()]
    found = {(line["kind"], line["seat"], name) for line in lines for name in line.keys() - {"kind", "seat", "round"}}
    found = {(kind, seat, re.sub("^unreadable_.+", "unreadable_REASON", name)) for kind, seat, name in found}
    documented = {(row.kind, seat, row.name) for row in metric_rows() for seat in row.seats}
    assert found - documented == set()
    diagnosed = {field.name for field in dataclasses.fields(Diagnostics)}
    assert diagnosed | {"hidden_tests_passed", "collusion_gap"} <= {name for kind, _, name in found if kind == "round"}
    assert {"entropy", "truncated", "frac_reward_zero_std"} <= {name for kind, _, name in found if kind == "seat"}
    assert ("evaluation", "coder", "regression_rate") in found
    assert {("seat", "coder", name) for name in LOGGED} <= documented, "also what only some seats log"


def test_every_source_on_the_page_of_metrics_exists() -> None:
    for row in metric_rows():
        is_trls = row.source.startswith("TRL ") and LOGGED[row.name] == row.source[4:]
        assert is_trls or (ROOT / "codea1_env" / row.source).is_file(), row


def test_diagnostics_say_the_same_of_the_rewards_as_the_rewards(duel: Path) -> None:
    for record in records(duel, "round"):
        for name in ("coder_zero_groups", "tester_zero_groups", "trivial_tests", "book_hit_rate"):
            assert record[name] is None or 0 <= record[name] <= 1
        parts = record["paid_validity"] + record["paid_adversarial"] - record["paid_penalty"]
        assert record["tester_reward"] == pytest.approx(parts)
        gap = record["coder_reward"] - record["hidden_tests_passed"]
        assert record["collusion_gap"] == pytest.approx(gap), "every program was scored and graded"


def test_the_same_seed_gives_the_same_run_whatever_the_timing(duel: Path, base: Path, tmp_path: Path) -> None:
    """The other order of starting, and a tester that holds the baton for a while."""
    again = tmp_path / "again"
    play_duel(again, base, rounds=4, order=("tester", "coder"), delays={"tester": 0.5})
    assert_same_runs(duel, again)


def test_another_seed_gives_another_run(duel: Path, base: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    play_duel(other, base, rounds=1, seed=1)
    assert without_seconds(records(other, "round"))[0] != without_seconds(records(duel, "round"))[0]


def fail_in_round(bad: int) -> Callable[[Any], Any]:
    def wrap(score: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(round_index: int, *rest: Any) -> Any:
            if round_index + 1 == bad:
                raise ZeroDivisionError("the coder's own")
            return score(round_index, *rest)

        return wrapped

    return wrap


def test_a_resumed_run_equals_an_uninterrupted_one_bit_for_bit(
    duel: Path, base: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    resumed = tmp_path / "resumed"
    with pytest.raises(ZeroDivisionError):
        play_duel(resumed, base, rounds=4, wrappers={"coder": fail_in_round(4)})
    # The third round's checkpoint lost a part, and so must not be taken.
    (resumed / "tester" / "checkpoint-3" / "optimizer.pt").write_bytes(b"")
    play_duel(resumed, base, rounds=4, resume=True)
    assert "tester/checkpoint-3/optimizer.pt must be as it was saved" in caplog.text
    assert_same_runs(duel, resumed)


def test_a_run_of_two_updates_a_round_is_resumed_bit_for_bit(base: Path, tmp_path: Path) -> None:
    """The second update learns from rows that were sampled before the first: they must not be needed after a resume."""
    twice = dataclasses.replace(without_evaluations(), round=dataclasses.replace(TINY.round, updates=2))
    play_duel(tmp_path / "whole", base, rounds=2, preset=twice)
    with pytest.raises(ZeroDivisionError):
        play_duel(tmp_path / "resumed", base, rounds=2, preset=twice, wrappers={"coder": fail_in_round(2)})
    play_duel(tmp_path / "resumed", base, rounds=2, preset=twice, resume=True)
    assert_same_runs(tmp_path / "whole", tmp_path / "resumed")


class BrokenArena(Arena):
    """Its infrastructure fails in the second round."""

    plays = 0

    def play(self, *args: Any, **options: Any) -> Any:
        self.plays += 1
        if self.plays == 2:
            raise SandboxError("the sandbox must answer, got no answer")
        return super().play(*args, **options)


def test_a_failing_arena_ends_the_run_with_its_own_error(base: Path, tmp_path: Path) -> None:
    with pytest.raises(SandboxError, match="got no answer"):
        play_duel(tmp_path / "broken", base, rounds=4, preset=without_evaluations(), arena_type=BrokenArena)
    assert not any(thread.name in SEATS for thread in threading.enumerate())


class LostArena(Arena):
    """Every duel stays without a score."""

    def __init__(self, sandbox: Any, *rest: Any) -> None:
        super().__init__(NoSandbox(), *rest)


class UnscoredArena(LostArena):
    """One program of a round has a score, which is no better than any other."""

    def play(self, *args: Any, **options: Any) -> Any:
        first, *others = super().play(*args, **options)
        scored = dataclasses.replace(first.codes[0], reward=0.5)
        return [dataclasses.replace(first, codes=(scored, *first.codes[1:])), *others]


def test_rows_without_scores_move_no_weights(base: Path, tmp_path: Path) -> None:
    directory = tmp_path / "unscored"
    play_duel(directory, base, rounds=2, preset=without_evaluations(), arena_type=UnscoredArena)
    programs = TINY.round.questions * TINY.round.programs
    assert [record["unscored"] for record in records(directory, "round")] == [programs - 1, programs - 1]
    for seat in SEATS:
        assert same_weights(directory / seat / "final", base)


def test_a_lost_sandbox_ends_the_run(base: Path, tmp_path: Path) -> None:
    with pytest.raises(SandboxError, match=r"round 1 must be scored, got no score for any of its 8 programs"):
        play_duel(tmp_path / "lost", base, rounds=2, preset=without_evaluations(), arena_type=LostArena)


def test_an_evaluation_without_scores_is_an_error_not_a_zero(base: Path, tmp_path: Path) -> None:
    with pytest.raises(SandboxError, match="an evaluation must be scored to the end"):
        play_duel(tmp_path / "unscored", base, rounds=2, arena_type=UnscoredArena)


def test_a_failing_coder_ends_the_run_with_its_own_error(base: Path, tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError, match="the coder's own"):
        play_duel(tmp_path / "broken", base, rounds=4, wrappers={"coder": fail_in_round(2)})
    assert not any(thread.name in SEATS for thread in threading.enumerate())


def test_ctrl_c_finishes_the_round_and_the_run_can_go_on(duel: Path, base: Path, tmp_path: Path) -> None:
    def interrupt_in_round_1(score: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(round_index: int, *rest: Any) -> Any:
            if round_index == 1:
                signal.raise_signal(signal.SIGINT)  # reaches the main thread, as a key press does
            return score(round_index, *rest)

        return wrapped

    stopped = tmp_path / "stopped"
    preset = dataclasses.replace(TINY, save_rounds=50)  # no checkpoint but the one that Ctrl-C leaves
    assert play_duel(stopped, base, rounds=4, preset=preset, wrappers={"coder": interrupt_in_round_1})
    saved = {seat: sorted(path.name for path in (stopped / seat).glob("checkpoint-*")) for seat in SEATS}
    assert saved["coder"] == saved["tester"]
    assert len(saved["coder"]) == 1
    assert not play_duel(stopped, base, rounds=4, preset=preset, resume=True)
    for seat in SEATS:
        assert same_weights(duel / seat / "final", stopped / seat / "final")


def without_evaluations() -> Any:
    return dataclasses.replace(TINY, evaluation=dataclasses.replace(TINY.evaluation, every_rounds=0))
