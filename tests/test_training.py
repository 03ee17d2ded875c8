"""Both seats trained for real, in this process: tiny models, the real arena, two rounds or four."""

import dataclasses
import json
import re
import signal
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import training_runs as runs

from codea1_env import Arena, MistakeBook, SandboxError
from codea1_env.arena.diagnostics import Diagnostics
from codea1_env.configuration.arguments import read_configuration
from codea1_env.configuration.presets import Preset
from codea1_env.mistake_book.parts import FILE as BOOK
from codea1_env.training.loop import Recipe
from codea1_env.training.policies.trl_policy import MEASURED
from codea1_env.training.round.rounds import Score
from codea1_env.training.run.checkpoints import mark_complete

QUIET = runs.without_evaluations()
ON_ONE_BASE = runs.without_evaluations(**runs.PACKED)
BOTH_TRAINERS = pytest.mark.parametrize("trainer", [QUIET, ON_ONE_BASE], ids=["trl", "packed"])


duel = runs.finished_run(rounds=4)


def test_a_run_leaves_its_configuration_its_book_and_the_scores_and_times_of_every_round(duel: Path) -> None:
    assert read_configuration(duel / "config.yaml") == (runs.tiny(rounds=4), 0)
    rounds = runs.records(duel, "round")
    assert len(MistakeBook.load(duel / BOOK)) == rounds[-1]["book"] > 0
    assert [record["round"] for record in rounds] == [1, 2, 3, 4]
    for record in rounds:
        assert 0 <= record["coder_reward"] <= 1
        assert sum(record[f"seconds_{part}"] for part in ("parsing", "judging", "rewarding")) > 0
        assert record["unscored"] == 0
        for name in ("coder_zero_groups", "tester_zero_groups", "trivial_tests", "book_hit_rate"):
            assert record[name] is None or 0 <= record[name] <= 1
        gap = record["coder_reward"] - record["hidden_tests_passed"]
        assert record["collusion_gap"] == pytest.approx(gap), "every program was scored and graded"
    for seat in runs.SEATS:
        for record in runs.records(duel, "seat", seat):
            assert all(record[f"seconds_{part}"] > 0 for part in ("generating", "waiting", "learning"))
        assert [record["round"] for record in runs.records(duel, "evaluation", seat)] == [1, 2, 3]


def metric_rows() -> Iterator[tuple[str, tuple[str, ...], str, str]]:
    """Kind, seats, name and source of every row of the page of metrics."""
    kind = ""
    for line in (runs.ROOT / "docs" / "metrics.md").read_text().splitlines():
        kind = line.removeprefix("## kind: ") if line.startswith("## kind: ") else kind
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if cells[0].startswith("`") and len(cells) > 1:
            seats = {"round": ("",), "seat": ("coder", "tester", "player"), "evaluation": (cells[1],)}[kind]
            yield kind, seats, cells[0].strip("`"), cells[-1].split(",")[0].replace("`", "")


def test_every_logged_name_is_documented_for_its_kind_and_seat_with_a_source_that_exists(duel: Path) -> None:
    logged = runs.logged_names(duel)
    found = {(kind, seat, re.sub("^unreadable_.+", "unreadable_REASON", name)) for kind, seat, name in logged}
    documented = {(kind, seat, name) for kind, seats, name, _ in metric_rows() for seat in seats}
    assert found - documented == set()
    diagnosed = {field.name for field in dataclasses.fields(Diagnostics)}
    assert diagnosed | {"hidden_tests_passed", "collusion_gap"} <= {name for kind, _, name in found if kind == "round"}
    assert {"entropy", "truncated", "frac_reward_zero_std"} <= {name for kind, _, name in found if kind == "seat"}
    assert ("evaluation", "coder", "regression_rate") in found
    assert {("seat", "coder", name) for name in MEASURED} <= documented, "also what only some seats log"
    for _, _, name, source in metric_rows():
        is_trls = source.startswith("TRL ") and MEASURED[name] == source[4:]
        assert is_trls or (runs.ROOT / "codea1_env" / source).is_file(), (name, source)


@BOTH_TRAINERS
def test_the_parts_of_the_testers_reward_add_up(trainer: Preset, base: Path, tmp_path: Path) -> None:
    """They are of the present tester's suites, at the weights of the round; 1 in the first, where aiming pays nothing.
    What spreads within a group is told alike by both trainers."""
    deviations: list[float] = []

    def watched(run: Recipe, index: int, score: Score) -> None:
        groups: dict[str, list[Any]] = {}
        for row in score.batches[1]:
            groups.setdefault(row.label.group, []).append(row.reward)
        deviations.append(statistics.mean(map(statistics.stdev, groups.values())))

    options = {"validity_first_rounds": 3, "opponents": "uniform", "opponent_every": 1, "tester_book": 1}
    preset = runs.tiny(trainer, options=options, report_to=[])
    runs.play_duel(tmp_path, base, rounds=3, preset=preset, on_score=watched)
    rounds = runs.records(tmp_path, "round")
    for record in rounds:
        parts = record["paid_validity"] + record["paid_adversarial"] - record["paid_penalty"]
        assert record["tester_reward"] == pytest.approx(parts), record["round"]
    assert [record["paid_adversarial"] > 0 for record in rounds] == [False, True, True]
    assert any(record["past_tester_reward"] > 0 for record in rounds), "no old tester caught anybody: nothing is shown"
    told = [record["reward_std"] for record in runs.records(tmp_path, "seat", "tester")]
    assert told == pytest.approx(deviations, abs=1e-6)


def test_a_run_that_is_stopped_and_resumed_equals_an_uninterrupted_one_bit_for_bit(
    duel: Path, base: Path, tmp_path: Path, caplog: Any, monkeypatch: Any
) -> None:
    resumed = tmp_path / "resumed"
    rarely = runs.tiny(save_rounds=50)  # no checkpoint but the one that Ctrl-C leaves
    with monkeypatch.context() as patch:
        pressed(patch, 1)
        assert runs.play_duel(resumed, base, rounds=4, preset=rarely), "Ctrl-C finishes the round"
    for seat in runs.SEATS:
        assert [path.name for path in (resumed / seat).glob("checkpoint-*")] == ["checkpoint-2"]
    with pytest.raises(ZeroDivisionError, match="the round's own"):
        runs.play_duel(resumed, base, rounds=4, resume=True, on_score=runs.in_round(4, runs.fail))
    # The third round's checkpoint lost a part, and so must not be taken.
    (resumed / "tester" / "checkpoint-3" / "optimizer.pt").write_bytes(b"")
    assert not runs.play_duel(resumed, base, rounds=4, resume=True)
    assert "tester/checkpoint-3/optimizer.pt must be as it was saved" in caplog.text
    runs.assert_same_runs(duel, resumed)


OLD = {
    "trl": "advantage.json chat_template.jinja complete.json config.json generation_config.json model.safetensors "
    "optimizer.pt rng_state.pth scheduler.pt tokenizer.json tokenizer_config.json trainer_state.json training_args.bin",
    "packed": "adapter_config.json adapter_model.safetensors advantage.json base.json complete.json trainer.pt "
    "trainer_state.json",
}
"""What releases before the loop was the recipe's left in a seat's checkpoint, by trainer; in the keeper's, the book."""


@pytest.mark.parametrize(("seats", "preset"), [(runs.SEATS, QUIET), (("player",), ON_ONE_BASE)], ids=["trl", "packed"])
def test_a_run_of_an_older_release_goes_on_to_the_same_bits(seats: Any, preset, base: Path, tmp_path: Path) -> None:
    whole, old = tmp_path / "whole", tmp_path / "old"
    runs.play_duel(whole, base, rounds=2, preset=preset, seats=seats)
    runs.lose_the_last_round(whole, old)
    for checkpoint in old.glob("*/checkpoint-1"):
        known = {*OLD[preset.trainer].split(), *({BOOK} if checkpoint.parent.name != "tester" else ())}
        found = {path.name for path in checkpoint.iterdir()}
        assert known <= found
        for name in {*(found - known), "complete.json"}:
            (checkpoint / name).unlink()
        state = json.loads((checkpoint / "trainer_state.json").read_text())
        (checkpoint / "trainer_state.json").write_text(json.dumps({**state, "log_history": [{"loss": 0.0, "step": 1}]}))
        mark_complete(checkpoint, 1, "adamw")
    runs.play_duel(old, base, rounds=2, preset=preset, seats=seats, resume=True)
    for final in whole.glob("*/final"):
        assert runs.same_weights(final, old / final.parent.name / "final")
    assert (old / BOOK).read_bytes() == (whole / BOOK).read_bytes()


class LostArena(Arena):
    """Every duel stays without a score."""

    def __init__(self, sandbox: Any, *rest: Any, **options: Any) -> None:
        super().__init__(runs.NoSandbox(), *rest)


class UnscoredArena(LostArena):
    """One program of a round has a score, which is no better than any other."""

    def play(self, *args: Any, **options: Any) -> Any:
        first, *others = super().play(*args, **options)
        scored = dataclasses.replace(first.codes[0], reward=0.5)
        return [dataclasses.replace(first, codes=(scored, *first.codes[1:])), *others]


@pytest.mark.parametrize(
    ("part", "fake", "preset", "cause"),
    [
        ("open_sandbox", lambda **_: runs.NoSandbox(), QUIET, "^the sandbox must answer, got no answer$"),
        ("Arena", LostArena, QUIET, "round 1 must be scored, got no score for any of its 8 programs"),
        ("Arena", UnscoredArena, runs.TINY, "an evaluation must be scored to the end"),
    ],
)
def test_a_sandbox_that_fails_ends_the_run_with_its_cause_and_is_no_zero(
    part: str, fake: Any, preset: Preset, cause: str, base: Path, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setattr(f"codea1_env.training.recipe.{part}", fake)
    handler, loop, held = signal.getsignal(signal.SIGINT), Recipe.rounds, []
    monkeypatch.setattr(Recipe, "rounds", lambda run: held.append(loop(run)) or held[-1])  # as a progress bar does
    with pytest.raises(SandboxError, match=cause):
        runs.play_duel(tmp_path / "broken", base, rounds=4, preset=preset)
    assert signal.getsignal(signal.SIGINT) is handler, "Ctrl-C is the caller's again"


@BOTH_TRAINERS
def test_rows_without_scores_move_no_weights(trainer: Preset, base: Path, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("codea1_env.training.recipe.Arena", UnscoredArena)
    runs.play_duel(tmp_path, base, rounds=1, preset=trainer)
    assert [record["unscored"] for record in runs.records(tmp_path, "round")] == [runs.TINY.round.questions * 4 - 1]
    for final in (tmp_path / seat / "final" for seat in runs.SEATS):
        added = [tensor for name, tensor in runs.weights(final).items() if "lora_B" in name]
        assert not any(tensor.any() for tensor in added) if added else runs.same_weights(final, base)


def pressed(patch: pytest.MonkeyPatch, times: int, method: str = "play", number: int = signal.SIGINT) -> None:
    """Ctrl-C in the second round, so often, behind that method; it reaches the main thread, as a key press does."""
    call = getattr(Recipe, method)

    def press(run: Recipe, index: int, *rest: Any) -> Any:
        found = call(run, index, *rest)
        for _ in range(times if index == 1 else 0):
            signal.raise_signal(number)
        return found

    patch.setattr(Recipe, method, press)


def test_ctrl_c_behind_a_rounds_checkpoint_lets_the_next_round_be_the_last(base, tmp_path: Path, monkeypatch) -> None:
    """Or a round would be lost that nobody has saved."""
    pressed(monkeypatch, 1, "end")
    assert runs.play_duel(tmp_path, base, rounds=4, preset=runs.tiny(save_rounds=10), seats=("coder",))
    assert [record["round"] for record in runs.records(tmp_path, "round")] == [1, 2, 3]
    assert runs.last_checkpoint(tmp_path / "coder").name == "checkpoint-3"


@pytest.mark.parametrize(
    ("number", "times", "last"), [(signal.SIGINT, 1, 2), (signal.SIGINT, 2, 1), (signal.SIGTERM, 2, 2)]
)
def test_ctrl_c_and_sigterm_end_a_recipe_with_130_and_a_second_ctrl_c_at_once_without_a_checkpoint(
    number: int, times: int, last: int, bases: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    pressed(monkeypatch, times, number=number)
    handler, output = signal.getsignal(number), tmp_path / "run"
    argv = ("--preset", "smoke", "--rounds", "3", "--output", str(output))
    runs.run_here("agents/train_grpo.py", *argv, cache=bases, patch=monkeypatch, capsys=capsys, status=130)
    assert {runs.last_checkpoint(output / seat).name for seat in runs.SEATS} == {f"checkpoint-{last}"}
    assert signal.getsignal(number) is handler
