"""Which suites a program should meet: what rewards say of programs (`experiments/shared_tests.py`)."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

import pytest

from codea1_env import Arena, Match, Problem, RewardConfig, TestCase, open_sandbox, write_problems
from codea1_env.records.recording import Recorder

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "experiments"))

import shared_tests  # after the path

DOUBLE = Problem(
    "double",
    "double(x): return twice x.",
    "double",
    reference_solution="def double(x):\n    return 2 * x\n",
    golden_tests=(TestCase("double(2)", "4"),),
)
TRUTH = Problem(
    "double",
    DOUBLE.question,
    "double",
    golden_tests=tuple(TestCase(f"double({x})", str(2 * x)) for x in range(4)),
)
RIGHT, SQUARE, BROKEN = "def double(x):\n    return 2 * x", "def double(x):\n    return x * x", "def double(x:"


def test_rewards_are_held_against_what_programs_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """By hand, K = 1: the programs pass 0, 4 and 2 of the four tests. The suites against SQUARE cannot tell it from
    RIGHT and the one against RIGHT can: own rewards are 0, 1, 1, those by all three suites 0, 1, 2/3, those by the two
    that are not against BROKEN 0, 1, 1/2, and the golden test's 0, 1, 1. With (0, 1, 1/2), (0, 1, 1) correlates by
    sqrt(3) / 2, and (0, 1, 2/3) by 9 / sqrt(84)."""
    match = Match(
        DOUBLE,
        (BROKEN, RIGHT, SQUARE),
        (("assert double(0) == 0",), ("assert double(3) == 6",), ("assert double(2) == 4",)),
    )
    right = Match(DOUBLE, (RIGHT, RIGHT), (("assert double(3) == 6",),) * 2)
    with open_sandbox() as sandbox, Recorder(tmp_path / "games.jsonl") as recorder:
        Arena(sandbox, RewardConfig(suite_size=1), on_score=recorder.write).play([match, match, right])
    write_problems(tmp_path / "truth.jsonl", [TRUTH])
    arguments = ["shared_tests.py", tmp_path / "games.jsonl", "--truth", tmp_path / "truth.jsonl"]
    monkeypatch.setattr(sys, "argv", list(map(str, arguments)))
    shared_tests.main()
    shown = capsys.readouterr().out
    assert "2 questions, 2.7 suites each" in shown, "all programs of the third pass as many"
    assert "| suites against it | 0.866 ± 0.000 | 0.000 ± 0.000 |" in shown
    assert "| all suites of the question | 0.982 ± 0.000 | 0.116 ± 0.000 |" in shown
    assert "| suites against 2 of the programs | 1.000 ± 0.000 | 0.134 ± 0.000 |" in shown
    assert "| golden tests | 0.866 ± 0.000 |" in shown
    monkeypatch.setattr(sys, "argv", [*map(str, arguments[:3]), str(tmp_path / "missing.jsonl")])
    with pytest.raises(SystemExit, match=r"error: .*missing\.jsonl"):
        shared_tests.main()
    write_problems(tmp_path / "other.jsonl", [dataclasses.replace(TRUTH, problem_id="other")])
    monkeypatch.setattr(sys, "argv", [*map(str, arguments[:3]), str(tmp_path / "other.jsonl")])
    with pytest.raises(SystemExit, match=r"--truth must have every question that was played, got none for double"):
        shared_tests.main()
