"""One round of the preset 0.5b-smoke on a real model: `make test-real MODEL=DIR`."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

from codea1_env.problems.bundled import bundled_problems
from codea1_env.problems.jsonl import write_problems

ROOT = Path(__file__).parent.parent
MODEL = os.environ.get("CODEA1_REAL_MODEL", "")


@pytest.mark.real
@pytest.mark.skipif(not MODEL, reason="no real model: make test-real MODEL=DIR")
def test_a_round_of_a_real_model_ends_with_two_adapters(tmp_path: Path) -> None:
    problems = tmp_path / "problems.jsonl"
    write_problems(problems, [problem for problem in bundled_problems() if problem.hidden_tests][:6])
    argv = [
        "agents/train_grpo.py", "--preset", "0.5b-smoke", "--model", MODEL, "--problems", str(problems),
        "--output", str(tmp_path / "run"),
    ]  # fmt: skip
    done = subprocess.run([sys.executable, *argv], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    for seat in ("coder", "tester"):
        (record,) = [line for line in lines if line["kind"] == "seat" and line["seat"] == seat]
        assert record["tokens"] > 0
        assert math.isfinite(record["loss"])
        assert record.get("sampling_gap", 0.0) < 0.02
        assert (tmp_path / "run" / seat / "final" / "adapter_model.safetensors").is_file()
