"""Programs that a benchmark starts refuse wrong words in a line, as the benchmarks themselves do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def test_no_benchmark_reads_its_words_without_a_parser() -> None:
    readers = [path for path in (ROOT / "benchmarks").rglob("*.py") if "sys.argv[1" in path.read_text()]
    assert readers == []


@pytest.mark.parametrize(
    "words",
    [
        "sandbox_sides.py", "sandbox_sides.py nobody", "torture_load.py", "torture_load.py zygote many 1 0",
        "torture_load.py nothing 1 1 0", "torture_load.py zygote 1 1 2",
        "graders/ours.py nowhere", "graders/semantics.py nothing", "graders/bigcodebench_scripts.py soon",
        "evalplus_agreement.py recorded rows --journal verdicts",
    ],
)  # fmt: skip
def test_wrong_words_are_refused_without_a_traceback(words: str) -> None:
    script, *told = words.split()
    command = [sys.executable, str(ROOT / "benchmarks" / script), *told]
    done = subprocess.run(command, input="", capture_output=True, text=True, timeout=120)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert Path(script).name in done.stderr
