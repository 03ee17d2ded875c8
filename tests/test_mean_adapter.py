"""The mean of a run's checkpoints (`experiments/mean_adapter.py`)."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from codea1_env.training.run.checkpoints import mark_complete

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
        mark_complete(checkpoint, number)
    monkeypatch.setattr(sys, "argv", ["mean_adapter.py", str(tmp_path / "coder"), "-o", str(tmp_path / "mean")])
    mean_adapter.main()
    assert load_file(tmp_path / "mean/adapter_model.safetensors")["a"].tolist() == [3, 2]
    assert (tmp_path / "mean/base.json").read_text() == "[10]"
    assert "the mean of 3 checkpoints, checkpoint-2 to checkpoint-10" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="File exists"):
        mean_adapter.main()


def test_a_directory_without_checkpoints_or_with_a_half_written_one_is_refused_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["mean_adapter.py", str(tmp_path), "-o", str(tmp_path / "mean")])
    with pytest.raises(SystemExit, match="must have checkpoints, got none; name RUN/coder or RUN/tester"):
        mean_adapter.main()
    checkpoint = tmp_path / "checkpoint-2"
    checkpoint.mkdir()
    save_file({"a": torch.ones(1)}, checkpoint / "adapter_model.safetensors")
    with pytest.raises(SystemExit, match=r"error: .*checkpoint-2"):
        mean_adapter.main()
    mark_complete(checkpoint, 2)
    with pytest.raises(SystemExit, match=r"error: .*No such file.*adapter_config"):
        mean_adapter.main()
    other = tmp_path / "checkpoint-4"
    other.mkdir()
    save_file({"b": torch.ones(1)}, other / "adapter_model.safetensors")
    mark_complete(other, 4)
    with pytest.raises(SystemExit, match="error: all checkpoints must have the same tensors, got others in some"):
        mean_adapter.main()
    assert not (tmp_path / "mean").exists()
