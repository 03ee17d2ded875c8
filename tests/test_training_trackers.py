"""Where the metrics go beside metrics.jsonl: real TensorBoard files, and trackers offline where they are installed."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("trl", reason="the extra `train` is not installed")

from command_lines import ended
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from codea1_env.configuration.arguments import Arguments, parse_arguments
from codea1_env.configuration.presets import SMOKE, preset_from_dict
from codea1_env.errors import ConfigurationError
from codea1_env.training.run.run_dir import Run
from codea1_env.training.run.trackers import DrivenTracker, Trackers

ROUND = {"coder_reward": 0.5, "effective_alpha": float("nan")}


def scalars(directory: Path) -> dict[str, list[tuple[int, float]]]:
    read = EventAccumulator(str(directory))
    read.Reload()
    return {name: [(each.step, each.value) for each in read.Scalars(name)] for name in read.Tags()["scalars"]}


def log_a_run(directory: Path, names: tuple[str, ...]) -> None:
    preset = dataclasses.replace(SMOKE, report_to=names)
    with Run(Arguments(preset, directory, 0, False), seats=("coder", "tester")) as run:
        run.log("round", 1, ROUND)
        run.log("seat", 2, {"loss": 0.25}, "coder")
        run.log("evaluation", 2, {"hidden_pass_rate": 0.75}, "coder")


def test_tensorboard_has_the_names_and_numbers_of_the_metrics(tmp_path: Path) -> None:
    log_a_run(tmp_path, ("tensorboard",))
    found = scalars(tmp_path / "tensorboard")
    assert found["round/coder_reward"] == [(1, 0.5)]
    assert found["seat/coder/loss"] == [(2, 0.25)]
    assert found["evaluation/coder/hidden_pass_rate"] == [(2, 0.75)]
    names = set()
    for line in (tmp_path / "metrics.jsonl").read_text().splitlines():
        record = json.loads(line)
        prefix = "/".join(filter(None, (record["kind"], record["seat"])))
        names |= {f"{prefix}/{name}" for name in record.keys() - {"kind", "seat", "round"}}
    assert set(found) == names


def test_without_a_tracker_the_metrics_are_on_disk_all_the_same(tmp_path: Path) -> None:
    log_a_run(tmp_path, ())
    assert not (tmp_path / "tensorboard").exists()
    assert len((tmp_path / "metrics.jsonl").read_text().splitlines()) == 3


@pytest.mark.filterwarnings("ignore:.*TENSORBOARD_LOGGING_DIR.*:FutureWarning")
def test_transformers_callbacks_are_told_of_the_run(tmp_path: Path, monkeypatch: Any) -> None:
    """Of all that `report_to` may name, TensorBoard's callback is one that is always installed."""
    monkeypatch.setenv("TENSORBOARD_LOGGING_DIR", str(tmp_path / "driven"))
    tracker = DrivenTracker("tensorboard", tmp_path, {"seed": 7})
    tracker.log(3, {"round/coder_reward": 0.5})
    tracker.close()
    tracker.close()
    (directory,) = {file.parent for file in (tmp_path / "driven").rglob("events*")}
    assert scalars(directory)["train/round/coder_reward"] == [(3, 0.5)]


def test_what_is_not_a_number_goes_to_no_tracker_and_a_tracker_that_fails_is_left_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Callback:
        def __init__(self) -> None:
            self.logs: list[dict[str, float]] = []

        def on_log(self, *_: Any, logs: dict[str, float], **__: Any) -> None:
            self.logs.append(logs)
            if len(self.logs) == 2:
                raise OSError("the line is cut")

    trackers = Trackers(("tensorboard",), tmp_path, {}, 0)
    driven = DrivenTracker("tensorboard", tmp_path, {})
    driven.close()
    driven._is_up, driven._callback = True, Callback()
    trackers._driven = [driven]
    for rounds in range(1, 4):
        trackers.log("round", rounds, ROUND)
    assert driven._callback.logs == [{"round/coder_reward": 0.5}] * 2, "none after the failure"
    assert "takes no more records, the run goes on without it: OSError('the line is cut')" in caplog.text
    trackers.close()


@pytest.mark.parametrize(
    ("given", "must"),
    [
        (["tensorbord"], "report_to must be different names among tensorboard, wandb, trackio, got ['tensorbord']"),
        (["wandb", "wandb"], "report_to must be different names"),
        ("wandb", "report_to must be a list of texts, got 'wandb'"),
    ],
)
def test_what_is_no_tracker_is_refused(given: Any, must: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        preset_from_dict({"report_to": given}, SMOKE)
    assert must in str(refused.value)


def test_the_argument_and_the_configuration_reach_it_and_none_is_none(tmp_path: Path, capsys: Any) -> None:
    config = tmp_path / "mine.yaml"
    config.write_text("report_to: []\n")
    output = ["--output", str(tmp_path / "run"), "--preset", "smoke"]
    assert parse_arguments("", output).preset.report_to == ("tensorboard",)
    assert parse_arguments("", [*output, "--config", str(config)]).preset.report_to == ()
    assert parse_arguments("", [*output, "--report-to", "none"]).preset.report_to == ()
    assert parse_arguments("", [*output, "--report-to", "tensorboard"]).preset.report_to == ("tensorboard",)
    assert preset_from_dict(SMOKE.to_dict(), SMOKE) == SMOKE
    for given in (["nowhere"], ["none", "wandb"], ["tensorboard", "tensorboard"]):
        said = ended(capsys, *output, *(word for name in given for word in ("--report-to", name)))
        assert "--report-to must be different names" in said


OFFLINE = """
import sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from test_training_trackers import log_a_run
log_a_run(Path({directory!r}), ({name!r},))
"""


def run_offline(name: str, directory: Path, **environment: str) -> None:
    """A run that reports to a tracker, in a process of its own."""
    code = OFFLINE.format(tests=str(Path(__file__).parent), directory=str(directory), name=name)
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | environment, capture_output=True, text=True, cwd=directory.parent
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "takes no more records" not in done.stderr


@pytest.mark.slow
def test_wandb_takes_a_run_offline(tmp_path: Path) -> None:
    pytest.importorskip("wandb")
    run_offline("wandb", tmp_path / "run", WANDB_MODE="offline", WANDB_DIR=str(tmp_path), WANDB_PROJECT="codea1")
    (file,) = (tmp_path / "wandb").glob("offline-run-*/*.wandb")
    written = file.read_bytes()
    for name in ("train/round/coder_reward", "train/seat/coder/loss", "train/evaluation/coder/hidden_pass_rate"):
        assert name.encode() in written


@pytest.mark.slow
def test_trackio_takes_a_run_offline(tmp_path: Path) -> None:
    pytest.importorskip("trackio")
    run_offline("trackio", tmp_path / "run", TRACKIO_DIR=str(tmp_path / "trackio"), HF_HUB_OFFLINE="1")
    written = b"".join(file.read_bytes() for file in (tmp_path / "trackio").rglob("*") if file.is_file())
    for name in ("train/round/coder_reward", "train/seat/coder/loss", "train/evaluation/coder/hidden_pass_rate"):
        assert name.encode() in written
