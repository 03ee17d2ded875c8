"""Runs killed at random moments and resumed come to the same end as runs that nobody disturbed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("trl", reason="the extra `train` is not installed")

ROOT = Path(__file__).parent.parent


@pytest.mark.slow
@pytest.mark.parametrize(("engine", "kills", "rounds"), [("local", "2", "6"), ("ray", "1", "3")])
def test_a_run_killed_at_random_moments_ends_as_an_undisturbed_one(
    bases: Path, tmp_path: Path, engine: str, kills: str, rounds: str
) -> None:
    pytest.importorskip("ray", reason="the extra `ray` is not installed")
    told = f"--engine {engine} --updates 2 --kills {kills} --rounds {rounds} --output {tmp_path / 'runs'}"
    command = [sys.executable, "benchmarks/resume_torture.py", *told.split()]
    environment = os.environ | {"CODEA1_CACHE": str(bases)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "the same, bit for bit" in done.stdout
