"""A real model at the gate, and one round of the preset 0.5b-smoke on it: `make test-real MODEL=DIR`.

The gate asks the first questions of HumanEval+ only, so that the test takes minutes (docs/results.md has all 164).
"""

import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from codea1_env.problems.jsonl import bundled_problems, write_problems

ROOT = Path(__file__).parent.parent
MODEL = os.environ.get("CODEA1_REAL_MODEL", "")
HUMANEVALPLUS = Path(
    os.environ.get("CODEA1_HUMANEVALPLUS") or ROOT.parent / "shared" / "data" / "humanevalplus.parquet"
)
QUESTIONS = 16
"""Asked at the gate."""
LEAST = QUESTIONS // 4
"""Right answers. A model that codes has more, and one whose prompt or chat template is wrong has next to none."""


def ran(*argv: object) -> str:
    done = subprocess.run([sys.executable, *map(str, argv)], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.mark.real
@pytest.mark.skipif(not MODEL, reason="no real model: make test-real MODEL=DIR")
@pytest.mark.skipif(not HUMANEVALPLUS.is_file(), reason="no HumanEval+: make test-real MODEL=DIR HUMANEVALPLUS=FILE")
def test_a_real_model_passes_the_gate(tmp_path: Path) -> None:
    ran(
        "-c", "import sys; from codea1_env.cli import main; sys.exit(main())", "eval", "--player", f"hf:{MODEL}",
        "--problems", f"humanevalplus={HUMANEVALPLUS}", "--prompts", "evalplus", "--limit", QUESTIONS, "--n", 1,
        "--temperature", 0, "--max-tokens", 512, "--batch", QUESTIONS, "-o", tmp_path / "gate",
    )  # fmt: skip
    table = ran("experiments/gate.py", tmp_path / "gate")
    print(table)
    right, trimmed = (
        int(re.search(rf"\| HumanEval\+, {QUESTIONS} questions{kind} \| (\d+) \|", table)[1])
        for kind in ("", ", trimmed")
    )
    assert right <= trimmed
    assert trimmed >= LEAST


@pytest.mark.real
@pytest.mark.skipif(not MODEL, reason="no real model: make test-real MODEL=DIR")
def test_a_round_of_a_real_model_ends_with_two_adapters(tmp_path: Path) -> None:
    problems = tmp_path / "problems.jsonl"
    write_problems(problems, [problem for problem in bundled_problems() if problem.hidden_tests][:6])
    ran(
        "agents/train_grpo.py", "--preset", "0.5b-smoke", "--model", MODEL, "--problems", problems,
        "--output", tmp_path / "run",
    )  # fmt: skip
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    for seat in ("coder", "tester"):
        (record,) = [line for line in lines if line["kind"] == "seat" and line["seat"] == seat]
        assert record["tokens"] > 0
        assert math.isfinite(record["loss"])
        assert record.get("sampling_gap", 0.0) < 0.02
        assert (tmp_path / "run" / seat / "final" / "adapter_model.safetensors").is_file()
