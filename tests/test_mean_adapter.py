"""The mean of a run's checkpoints (`experiments/mean_adapter.py`)."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "experiments"))

import mean_adapter  # after the path


def test_every_entry_is_the_mean_over_the_checkpoints_and_the_rest_is_the_last_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for number, entries in ((2, [1.0, 2.0]), (10, [3.0, -2.0]), (4, [5.0, 6.0])):
        checkpoint = tmp_path / f"coder/checkpoint-{number}"
        checkpoint.mkdir(parents=True)
        save_file({"a": torch.tensor(entries)}, checkpoint / "adapter_model.safetensors")
        (checkpoint / "adapter_config.json").write_text("{}")
        (checkpoint / "base.json").write_text(f"[{number}]")
    monkeypatch.setattr(sys, "argv", ["mean_adapter.py", str(tmp_path / "coder"), "-o", str(tmp_path / "mean")])
    mean_adapter.main()
    assert load_file(tmp_path / "mean/adapter_model.safetensors")["a"].tolist() == [3, 2]
    assert (tmp_path / "mean/base.json").read_text() == "[10]"
    assert "the mean of 3 checkpoints, checkpoint-2 to checkpoint-10" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="File exists"):
        mean_adapter.main()


def test_a_directory_without_checkpoints_or_with_broken_ones_is_refused_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["mean_adapter.py", str(tmp_path), "-o", str(tmp_path / "mean")])
    with pytest.raises(SystemExit, match="must have checkpoints, got none; name RUN/coder or RUN/tester"):
        mean_adapter.main()
    (tmp_path / "checkpoint-2").mkdir()
    (tmp_path / "checkpoint-2/adapter_model.safetensors").write_bytes(b"no")
    with pytest.raises(SystemExit, match="error: "):
        mean_adapter.main()
    assert not (tmp_path / "mean").exists()
