"""A run with an address goes on from what is there to the same bits. What is copied: test_remote_copy.py."""

import shutil
from functools import partial
from pathlib import Path
from typing import Any

import fsspec
import pytest
from hdfs_server import serving
from test_remote_copy import Breaking, clean, there
from training_runs import assert_same_runs, fail, finished_run, in_round, play_duel, run_here, without_evaluations

from codea1_env.records.addresses import AddressFailed, fetched, working_directory

__all__ = ["clean"]

SHORT = without_evaluations()


whole = finished_run(rounds=2, preset=SHORT)


def test_a_run_goes_on_from_a_server_to_the_same_bits(base: Path, whole: Path, tmp_path: Path) -> None:
    """One round here, the rest on a machine that has nothing but the address."""
    (tmp_path / "served").mkdir()
    with serving(tmp_path / "served") as server:
        address = f"{server}/runs/one"
        directory = working_directory(address)
        with pytest.raises(ZeroDivisionError):
            play_duel(directory, base, rounds=2, preset=SHORT, address=address, on_score=in_round(2, fail))
        shutil.rmtree(directory)
        assert fetched(address) == directory
        play_duel(directory, base, rounds=2, preset=SHORT, resume=True, address=address)
        assert_same_runs(whole, directory)
        shutil.rmtree(directory)
        assert_same_runs(whole, fetched(address))


def test_a_server_that_goes_away_is_an_error_and_all_is_here(base: Path, whole: Path, tmp_path: Path, caplog) -> None:
    directory, leave = tmp_path / "run", in_round(2, lambda run, score: setattr(Breaking, "left", 5))
    with pytest.raises(AddressFailed, match=f"everything is in {directory}"):
        play_duel(directory, base, rounds=2, preset=SHORT, address="breaking://b/r", on_score=leave)
    assert caplog.text.count("not copied, to be tried again") >= 2
    assert_same_runs(whole, directory)


def test_the_command_line_takes_an_address(bases: Path, monkeypatch: Any, capsys: Any, tmp_path: Path) -> None:
    here = partial(run_here, "baselines/golden_tests.py", cache=bases, patch=monkeypatch, capsys=capsys)
    address = f"memory://bucket/{tmp_path.name}"
    printed = here("--preset", "smoke", "--rounds", "1", "--output", address)
    assert f"everything is in {address}" in printed
    assert {"summary.json", "book.jsonl", "coder/final/model.safetensors"} <= there(address)
    assert "in-use.json" not in there(address)
    here("--preset", "smoke", "--output", address, status=2)
    shutil.rmtree(working_directory(address))
    here("--resume", address)  # is finished
    here("--resume", address, "--rounds", "2")
    assert any(name.startswith("coder/checkpoint-2/") for name in there(address))
    system, root = fsspec.core.url_to_fs(address)
    system.rm_file(f"{root}/summary.json")  # as where the last copy failed
    here("--resume", address)
    assert "summary.json" in there(address)
    shutil.rmtree(working_directory(address))
