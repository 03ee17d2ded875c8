"""Where the metrics go beside metrics.jsonl: real TensorBoard files, and trackers offline where they are installed."""

import contextlib
import dataclasses
import os
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from training_runs import logged_names

from codea1_env.configuration.arguments import RecipeArguments, found_in
from codea1_env.configuration.presets import SMOKE
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
    with Run(RecipeArguments(preset, directory, 0, False), seats=("coder", "tester")) as run:
        run.log("round", 1, ROUND)
        run.log("seat", 2, {"loss": 0.25}, "coder")
        run.log("evaluation", 2, {"hidden_pass_rate": 0.75}, "coder")


def test_tensorboard_has_the_names_and_numbers_of_the_metrics_which_are_on_disk_without_it(tmp_path: Path) -> None:
    log_a_run(tmp_path / "without", ())
    assert not (tmp_path / "without" / "tensorboard").exists()
    log_a_run(tmp_path / "with", ("tensorboard",))
    found = scalars(tmp_path / "with" / "tensorboard")
    later = {"seat/coder/loss": [(2, 0.25)], "evaluation/coder/hidden_pass_rate": [(2, 0.75)]}
    assert found.items() >= ({"round/coder_reward": [(1, 0.5)]} | later).items()
    for run in ("with", "without"):
        assert {"/".join(filter(None, name)) for name in logged_names(tmp_path / run)} == set(found)


def test_a_board_without_room_is_an_error_of_the_run_and_no_traceback_of_a_thread(tmp_path: Path) -> None:
    """pytest fails a test in which a thread's own hook is told of an exception."""
    before, trackers = threading.excepthook, Trackers(("tensorboard",), tmp_path, {}, 0)

    def full(_: bytes) -> None:
        raise OSError(27, "File too large")

    trackers._board._get_file_writer().event_writer._async_writer._writer.write = full
    with contextlib.suppress(OSError):  # where the thread has ended already
        trackers.log("round", 1, {"coder_reward": 0.5})
    with pytest.raises(OSError, match="File too large"):
        trackers.close()
    assert threading.excepthook is before


@pytest.mark.filterwarnings("ignore:.*TENSORBOARD_LOGGING_DIR.*:FutureWarning")
def test_transformers_callbacks_are_told_of_numbers_and_one_that_fails_is_left_out(
    tmp_path: Path, monkeypatch: Any, caplog: Any
) -> None:
    """Of all that `report_to` may name, TensorBoard's callback is one that is always installed."""
    monkeypatch.setenv("TENSORBOARD_LOGGING_DIR", str(tmp_path / "driven"))
    trackers, driven = Trackers(("tensorboard",), tmp_path, {}, 0), DrivenTracker("tensorboard", tmp_path, {"seed": 7})
    trackers._driven, told = [driven], list[dict[str, float]]()
    trackers.log("round", 3, ROUND)
    driven.close()
    driven.close()
    (directory,) = {file.parent for file in (tmp_path / "driven").rglob("events*")}
    assert scalars(directory)["train/round/coder_reward"] == [(3, 0.5)]

    def on_log(*_: Any, logs: dict[str, float], **__: Any) -> None:
        told.append(logs)
        raise OSError("the line is cut")

    driven._is_up, driven._callback = True, SimpleNamespace(on_log=on_log)
    for rounds in (4, 5):
        trackers.log("round", rounds, ROUND)
    assert told == [{"round/coder_reward": 0.5}], "none after the failure"
    assert "failed, and the run continues without it: OSError('the line is cut')" in caplog.text
    trackers.close()


def test_a_run_that_a_tracker_refuses_leaves_no_run_behind(tmp_path: Path, monkeypatch: Any) -> None:
    """As wandb does without a login. The same command goes on once the tracker is ready."""
    kinds = "codea1_env.training.run.trackers.get_reporting_integration_callbacks"
    monkeypatch.setattr(kinds, lambda _: [SimpleNamespace])  # which has no `on_train_begin`
    with pytest.raises(ConfigurationError, match="wandb must be ready to take a run, got AttributeError"):
        log_a_run(tmp_path, ("tensorboard", "wandb"))
    assert found_in(tmp_path) == []
    log_a_run(tmp_path, ("tensorboard",))


TESTS, OFFLINE = Path(__file__).parent, "from pathlib import Path; from test_training_trackers import log_a_run; "


@pytest.mark.slow
@pytest.mark.parametrize("name", ["wandb", "trackio"])
def test_a_tracker_takes_a_run_offline(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, name, raising=False)  # of conftest.py
    pytest.importorskip(name)
    (tmp_path / name).mkdir()
    told = {"WANDB_MODE": "offline", "WANDB_DIR": str(tmp_path), "WANDB_PROJECT": "codea1", "HF_HUB_OFFLINE": "1"}
    told |= {"TRACKIO_DIR": str(tmp_path / "trackio"), "PYTHONPATH": os.pathsep.join([*sys.path, str(TESTS)])}
    code = f"{OFFLINE}log_a_run(Path({str(tmp_path / 'run')!r}), ({name!r},))"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=os.environ | told, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "failed, and the run continues" not in done.stderr
    written = b"".join(file.read_bytes() for file in (tmp_path / name).rglob("*") if file.is_file())
    for metric in ("train/round/coder_reward", "train/seat/coder/loss", "train/evaluation/coder/hidden_pass_rate"):
        assert metric.encode() in written
