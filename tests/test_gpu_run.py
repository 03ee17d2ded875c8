"""One long run in many commands (`experiments/gpu_run.sh`): each goes on from nothing but what the last one left."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("trl", reason="the extra `train` is not installed")

import gpu_state
import torch
import yaml
from safetensors.torch import load_file
from training_runs import PACKED, ROOT, SEATS, last_checkpoint, play_duel, tiny

from codea1_env.errors import FormatError
from codea1_env.problems.families.miniature import miniature_problems
from codea1_env.problems.jsonl import write_problems
from codea1_env.training.run.checkpoints import mark_complete, rounds_of

SCRIPT = ROOT / "experiments" / "gpu_run.sh"


def metrics(run: Path, seats: dict[str, list[tuple[int, int]]]) -> None:
    """Of a run whose seats had so many tokens decoded and learnt in each round."""
    run.mkdir(parents=True, exist_ok=True)
    lines = [
        {"kind": "seat", "seat": seat, "round": place + 1, "tokens": decoded, "learnt_tokens": learnt}
        for seat, rounds in seats.items()
        for place, (decoded, learnt) in enumerate(rounds)
    ]
    (run / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def ended(work: Path, stage: str, file: str = "summary.json") -> None:
    (work / stage).mkdir(exist_ok=True)
    (work / stage / file).write_text("{}")


def test_golden_tests_play_until_their_tokens_cost_what_code_a1s_did(tmp_path: Path) -> None:
    """By hand, in seconds: Code-A1 has 2 rounds of 1 + 1 of the coder and 1 of the tester, 6; golden tests cost 1.5 a
    round, so that 4 make as much; then, as their answers shrink, 5."""
    assert gpu_state.next_stage(tmp_path, 2) == ("code-a1", 2)
    metrics(tmp_path / "code-a1", {"coder": [(19_900, 15_000)] * 2, "tester": [(19_900, 0)] * 2})
    assert gpu_state.next_stage(tmp_path, 2) == ("code-a1", 2), "it has not ended"
    ended(tmp_path, "code-a1")
    assert gpu_state.cost(tmp_path / "code-a1") == pytest.approx(6)
    golden = tmp_path / "golden"
    assert gpu_state.next_stage(tmp_path, 2) == ("golden", 2)
    metrics(golden, {"coder": [(19_900, 7_500)]})
    assert gpu_state.next_stage(tmp_path, 2) == ("golden", 2), "as many rounds as Code-A1 come first"
    metrics(golden, {"coder": [(19_900, 7_500)] * 2})
    ended(tmp_path, "golden")
    assert gpu_state.next_stage(tmp_path, 2) == ("golden", 4)
    metrics(golden, {"coder": [(19_900, 7_500)] * 2 + [(9_950, 7_500)] * 2})  # 5 in all
    assert gpu_state.next_stage(tmp_path, 2) == ("golden", 5)
    metrics(golden, {"coder": [(19_900, 7_500)] * 4})
    for stage in gpu_state.EVALUATIONS:
        assert gpu_state.next_stage(tmp_path, 2) == (stage, 0)
        ended(tmp_path, stage, "results.json")
    assert gpu_state.next_stage(tmp_path, 2) == ("done", 0)
    metrics(golden, {"coder": [(0, 0)] * 2})
    assert gpu_state.next_stage(tmp_path, 2) == ("golden", 2 * gpu_state.MOST), "there is an end to it"
    metrics(golden, {"coder": [(0, 0)] * 2 * gpu_state.MOST})
    assert gpu_state.next_stage(tmp_path, 2) == ("done", 0)


@pytest.mark.parametrize("stride", [1, 2, 4])
@pytest.mark.parametrize("length", [0, 1, 2, 3, 4, 7, 8, 1001])
def test_what_is_put_plane_by_plane_comes_back(length: int, stride: int) -> None:
    content = bytes(place * 7 % 256 for place in range(length))
    assert gpu_state.joined(gpu_state.planes(content, stride), stride) == content


def checkpoint(seat: Path, rounds: int, *, is_whole: bool = True) -> Path:
    """As the packed trainer writes one."""
    place = seat / f"checkpoint-{rounds}"
    place.mkdir(parents=True)
    exact = torch.tensor([1 + 2**-20, 3e-9])  # the first one is not a bfloat16
    moments = {"step": torch.tensor(float(rounds)), "exp_avg": exact, "exp_avg_sq": exact}
    torch.save({"optimizer": {"state": {0: moments}, "param_groups": []}, "schedule": {}}, place / "trainer.pt")
    for name in ("adapter_model.safetensors", "adapter_config.json", "base.json"):
        (place / name).write_bytes(bytes(range(40)))
    if is_whole:
        mark_complete(place, rounds, "adamw")
    return place


def contents(directory: Path) -> dict[str, bytes]:
    return {str(file.relative_to(directory)): file.read_bytes() for file in directory.rglob("*") if file.is_file()}


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A run of Code-A1 that was killed in its seventh round: the coder has saved it, and the tester has begun to."""
    work = tmp_path / "work"
    for seat in SEATS:
        for rounds in (4, 6):
            checkpoint(work / "code-a1" / seat, rounds)
        checkpoint(work / "code-a1" / seat, 7, is_whole=seat == "coder")
    metrics(work / "code-a1", {seat: [(1, 1)] * 7 for seat in SEATS})
    (work / "code-a1" / "lock").touch()
    (work / "model").symlink_to(tmp_path)
    return work


def test_a_run_travels_with_the_checkpoint_that_it_goes_on_from_and_no_other(work: Path, tmp_path: Path) -> None:
    gpu_state.write_state(work, tmp_path / "out", 75, "float32")
    told = json.loads((tmp_path / "out" / "state.json").read_text())
    assert (told["next"], told["rounds"]) == ("code-a1", {"code-a1": 6, "golden": 0})
    gpu_state.read_state(tmp_path / "out", tmp_path / "back", tmp_path)
    before = contents(work)
    wanted = {name for name in before if "checkpoint-6" in name or name.endswith("metrics.jsonl")}
    assert contents(tmp_path / "back") == {name: before[name] for name in wanted}


def test_moments_are_rounded_and_nothing_else_is(work: Path, tmp_path: Path) -> None:
    gpu_state.write_state(work, tmp_path / "out", 75, "bfloat16")
    gpu_state.read_state(tmp_path / "out", tmp_path / "back", tmp_path)
    for seat in SEATS:
        before, after = (top / "code-a1" / seat / "checkpoint-6" for top in (work, tmp_path / "back"))
        assert rounds_of(after) == 6, "it can be gone on with"
        assert {name for name in contents(before) if contents(after)[name] != contents(before)[name]} == {
            "trainer.pt", "complete.json",
        }  # fmt: skip
        held = torch.load(after / "trainer.pt", weights_only=True)["optimizer"]["state"][0]
        assert held["step"].item() == 6
        for name in ("exp_avg", "exp_avg_sq"):
            assert held[name].dtype is torch.bfloat16
            assert held[name][0].item() == 1


def test_of_a_run_that_has_ended_the_adapters_travel_and_their_base_is_where_it_is_now(
    work: Path, tmp_path: Path
) -> None:
    for seat in SEATS:
        final = work / "code-a1" / seat / "final"
        final.mkdir()
        (final / "adapter_config.json").write_text('{"r": 8, "base_model_name_or_path": "/gone/model"}')
        (final / "base.json").write_text('{"base": "/gone/model", "digest": "abc"}')
        (final / "adapter_model.safetensors").write_bytes(b"weights")
        (final / "tokenizer.json").write_text("{}")
    ended(work, "code-a1")
    model = tmp_path / "model"
    model.mkdir()
    gpu_state.write_state(work, tmp_path / "out", 75, "bfloat16")
    gpu_state.read_state(tmp_path / "out", tmp_path / "back", model)
    back = contents(tmp_path / "back" / "code-a1")
    adapters = {f"{seat}/final/{name}" for seat in SEATS for name in ("adapter_config.json", "base.json",
                "adapter_model.safetensors")}  # fmt: skip
    assert back.keys() == adapters | {"metrics.jsonl", "summary.json"}
    assert json.loads(back["coder/final/adapter_config.json"]) == {"r": 8, "base_model_name_or_path": str(model)}
    assert json.loads(back["coder/final/base.json"]) == {"base": str(model), "digest": "abc"}
    assert back["coder/final/adapter_model.safetensors"] == b"weights"


def test_parts_are_small_and_a_state_that_is_too_large_is_said_to_be(
    work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(gpu_state, "PART", 100)
    monkeypatch.setattr(gpu_state, "ROOM", 150)
    out = tmp_path / "out"
    gpu_state.write_state(work, out, 75, "float32")
    sizes = [file.stat().st_size for file in sorted(out.glob("state.[0-9]*"))]
    assert len(sizes) > 2
    assert set(sizes[:-1]) == {100}
    assert "must fit" in capsys.readouterr().err
    gpu_state.read_state(out, tmp_path / "back", tmp_path)
    assert contents(tmp_path / "back")


def without_a_part(out: Path) -> None:
    (out / "state.00").unlink()


def with_another_byte(out: Path) -> None:
    content = bytearray((out / "state.00").read_bytes())
    content[len(content) // 2] ^= 1
    (out / "state.00").write_bytes(content)


def cut_short(out: Path) -> None:
    (out / "state.00").write_bytes((out / "state.00").read_bytes()[:-1])


def without_a_manifest(out: Path) -> None:
    (out / "state.json").unlink()


def naming_a_place_outside(out: Path) -> None:
    manifest = json.loads((out / "state.json").read_text())
    manifest["files"][0]["name"] = "../outside"
    (out / "state.json").write_text(json.dumps(manifest))


@pytest.mark.parametrize(
    "damage", [without_a_part, with_another_byte, cut_short, without_a_manifest, naming_a_place_outside]
)
def test_a_state_that_is_not_whole_is_refused_before_anything_is_written(
    damage: Callable[[Path], None], work: Path, tmp_path: Path
) -> None:
    gpu_state.write_state(work, tmp_path / "out", 75, "bfloat16")
    damage(tmp_path / "out")
    with pytest.raises(FormatError, match="must"):
        gpu_state.read_state(tmp_path / "out", tmp_path / "back", tmp_path)
    assert not (tmp_path / "back").exists()
    assert not (tmp_path / "outside").exists()


@pytest.mark.parametrize(
    ("script", "seconds", "status"),
    [
        ("exit 0", 60, 0),
        ("exit 3", 60, 3),
        ("trap 'exit 130' INT; while :; do sleep 0.1; done", 2, 130),
        ("trap 'exit 0' INT; while :; do sleep 0.1; done", 2, 130),
        ("trap 'exit 3' INT; while :; do sleep 0.1; done", 2, 3),
        ("trap '' INT; while :; do sleep 0.1; done", 2, 130),
    ],
)
def test_a_command_is_stopped_in_time_and_its_failure_is_not_hidden(
    script: str, seconds: int, status: int, tmp_path: Path
) -> None:
    before = signal.getsignal(signal.SIGINT)
    try:
        assert gpu_state.run_for(["bash", "-c", script], tmp_path / "log.txt", seconds, 2) == status
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({0: "nowhere"}, "MODEL must be a directory, got nowhere"),
        ({1: "nowhere"}, "PROBLEMS and HELD_OUT must be files"),
        ({4: "full"}, "OUT must be new or empty, got full"),
        ({5: "90"}, "SECONDS must be a whole number above RESERVE and LEAST together (90), got 90"),
        ({5: "soon"}, "got soon"),
    ],
)
def test_what_the_script_cannot_use_is_refused_in_one_line(changed: dict[int, str], said: str, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    for name in ("problems", "held_out", "full/file"):
        (tmp_path / name).touch()
    given = [".", "problems", "held_out", "state", "out", "300"]
    arguments = [changed.get(place, value) for place, value in enumerate(given)]
    done = subprocess.run([SCRIPT, *arguments], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_run_goes_on_from_rounded_moments_near_where_it_would_be_and_not_to_the_bit(
    base: Path, tmp_path: Path
) -> None:
    whole, parted = tmp_path / "whole", tmp_path / "work" / "code-a1"
    play_duel(whole, base, rounds=3, preset=tiny(**PACKED))
    play_duel(parted, base, rounds=2, preset=tiny(**PACKED))
    gpu_state.write_state(tmp_path / "work", tmp_path / "out", 3, "bfloat16")
    gpu_state.read_state(tmp_path / "out", tmp_path / "back", base)
    play_duel(tmp_path / "back" / "code-a1", base, rounds=3, preset=tiny(**PACKED), resume=True)
    distances = []
    for seat in SEATS:
        one, other = (
            load_file(run / seat / "final" / "adapter_model.safetensors") for run in (whole, tmp_path / "back/code-a1")
        )
        distances += [float((one[name] - other[name]).abs().max()) for name in one]
        saved = torch.load(last_checkpoint(tmp_path / "back" / "code-a1" / seat) / "trainer.pt", weights_only=True)
        assert {values.dtype for state in saved["optimizer"]["state"].values() for values in state.values()} == {
            torch.float32
        }
    assert 0 < max(distances) < 1e-3, "a step has at most 1e-2"


@dataclasses.dataclass(frozen=True)
class Rehearsal:
    """A tiny model, few questions, and the settings of a run on them."""

    folder: Path
    base: Path

    def command(self, model: Path, state_in: str, out: str, seconds: int, **changed: str) -> subprocess.Popen[str]:
        arguments = [model, "problems.jsonl", "held_out.jsonl", state_in, out, str(seconds)]
        return subprocess.Popen(
            [SCRIPT, *arguments], cwd=self.folder, env=self.settings | changed, start_new_session=True, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip

    @property
    def settings(self) -> dict[str, str]:
        told = {"ROUNDS": 3, "SAMPLES": 2, "TOKENS": 48, "BATCH": 1, "WORKERS": 1, "RESERVE": 60, "LEAST": 1}
        places = {
            "PYTHON": sys.executable,
            "CONFIG": self.folder / "tiny.yaml",
            "PROMPTS": self.folder / "prompts.yaml",
        }
        return os.environ | {name: str(value) for name, value in (told | places).items()} | {"MOMENTS": "float32"}


@pytest.fixture
def rehearsal(base: Path, tmp_path: Path) -> Rehearsal:
    write_problems(tmp_path / "problems.jsonl", miniature_problems("train", 8, 0))
    write_problems(tmp_path / "held_out.jsonl", miniature_problems("held_out", 3, 0))
    seat = {"system": "code", "user": ["{question}"]}
    tester = {"system": "test", "user": ["{question}", "{program}"]}
    (tmp_path / "prompts.yaml").write_text(yaml.safe_dump({"coder": seat, "tester": tester}))
    shutil.copy(ROOT / "experiments" / "real_models.yaml", tmp_path)
    shutil.copy(ROOT / "experiments" / "real_gpu.yaml", tmp_path)
    tiny = {
        "extends": "real_gpu.yaml", "threads": 1, "save_rounds": 1, "stop_at_fence": False, "prompts": "prompts.yaml",
        "model": {"context": 512}, "lora": {"rank": 4, "alpha": 8}, "memory": {"bfloat16": False},
        "round": {"questions": 2, "programs": 4, "attacked": 1, "coder_prompt_tokens": 200,
                  "tester_prompt_tokens": 300},
        "grpo": {"coder": {"learning_rate": 1e-2, "max_completion_length": 48},
                 "tester": {"learning_rate": 1e-2, "max_completion_length": 64}},
    }  # fmt: skip
    (tmp_path / "tiny.yaml").write_text(yaml.safe_dump(tiny))
    return Rehearsal(tmp_path, base)


def told(out: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((out / "state.json").read_text())
    return found


@pytest.mark.slow
def test_commands_that_begin_with_what_the_last_one_left_come_to_the_bits_of_one_run(rehearsal: Rehearsal) -> None:
    """The first is stopped by Ctrl-C, the second by its time, wherever it is then; the third goes to the end."""
    folder, moved = rehearsal.folder, rehearsal.folder / "moved"
    shutil.copytree(rehearsal.base, moved)
    first = rehearsal.command(rehearsal.base, "none", "out1", 3600, WORK=str(folder / "work1"))
    metrics_of_first = folder / "work1" / "code-a1" / "metrics.jsonl"
    while first.poll() is None and not (metrics_of_first.exists() and '"round"' in metrics_of_first.read_text()):
        time.sleep(0.2)
    os.killpg(first.pid, signal.SIGINT)
    said, _ = first.communicate()
    assert first.returncode == 0, said
    assert told(folder / "out1")["next"] == "code-a1"
    assert 1 <= told(folder / "out1")["rounds"]["code-a1"] < 3
    shutil.rmtree(folder / "work1")

    second = rehearsal.command(moved, "out1", "out2", 80)
    said, _ = second.communicate()
    assert second.returncode == 0, said
    assert told(folder / "out2")["rounds"]["code-a1"] >= told(folder / "out1")["rounds"]["code-a1"]
    shutil.rmtree(folder / "out1")

    third = rehearsal.command(rehearsal.base, "out2", "out3", 3600)
    said, _ = third.communicate()
    assert third.returncode == 0, said
    assert said.strip().endswith("next: done")
    table = (folder / "out3" / "table.md").read_text()
    assert all(f"| {coder} | 3 |" in table for coder in ("base", "code-a1", "golden"))
    assert all(file.name.replace(".", "").isalnum() for file in (folder / "out3").iterdir())

    gpu_state.read_state(folder / "out3", folder / "back", rehearsal.base)
    rounds = told(folder / "out3")["rounds"]
    assert rounds["code-a1"] == 3
    assert rounds["golden"] >= 3
    for run, recipe in (("code-a1", "agents/train_grpo.py"), ("golden", "baselines/golden_tests.py")):
        subprocess.run(
            [sys.executable, ROOT / recipe, "--config", "tiny.yaml", "--model", rehearsal.base, "--problems",
             "problems.jsonl", "--rounds", str(rounds[run]), "--output", f"whole-{run}", "--report-to", "none"],
            cwd=folder, check=True, capture_output=True,
        )  # fmt: skip
        for seat in gpu_state.RUNS[run]:
            one, other = (
                load_file(top / seat / "final" / "adapter_model.safetensors")
                for top in (folder / "back" / run, folder / f"whole-{run}")
            )
            assert all(torch.equal(one[name], other[name]) for name in one), (run, seat)
            assert any(float(one[name].abs().max()) > 0 for name in one if "lora_B" in name), (run, seat)


@pytest.mark.slow
def test_a_stage_that_fails_is_no_end_and_what_was_saved_stays(rehearsal: Rehearsal) -> None:
    (rehearsal.folder / "state").mkdir()
    broken = rehearsal.command(rehearsal.base, "state", "out", 3600, CONFIG=str(rehearsal.folder / "prompts.yaml"))
    said, _ = broken.communicate()
    assert broken.returncode == 2
    assert "code-a1 must end with 0, or 130 at Ctrl-C, got 2; what was saved before is in" in said
    assert told(rehearsal.folder / "out")["next"] == "code-a1"
