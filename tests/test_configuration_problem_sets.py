"""Where a run's problems come from: what cannot serve is left out and counted, and too few are refused."""

import dataclasses
import logging
from pathlib import Path

import pytest

from codea1_env import ConfigurationError, Problem, ProblemFormatError, TestCase, write_problems
from codea1_env.configuration.presets import MINI, SMOKE, Preset
from codea1_env.configuration.problem_sets import load_problem_sets, require_files
from codea1_env.configuration.run_sections import ProblemFiles
from codea1_env.problems.families.miniature import miniature_problems

CASE = (TestCase("f(1)", "1"),)


def problem(number: int, **fields: object) -> Problem:
    given = {"reference_solution": "def f(x):\n    return x\n", "golden_tests": CASE, "hidden_tests": CASE} | fields
    return Problem(problem_id=f"p{number}", question="Q", entry_point="f", **given)  # type: ignore[arg-type]


def from_files(tmp_path: Path, train: list[Problem], held_out: list[Problem], **limits: int) -> Preset:
    write_problems(tmp_path / "train.jsonl", train)
    write_problems(tmp_path / "held_out.jsonl", held_out)
    files = ProblemFiles(str(tmp_path / "train.jsonl"), str(tmp_path / "held_out.jsonl"), **limits)
    return dataclasses.replace(SMOKE, problems=files)


def test_the_miniature_family_is_drawn_by_the_seed_but_for_the_held_out_problems() -> None:
    one, other = load_problem_sets(SMOKE, 1), load_problem_sets(SMOKE, 2)
    assert list(one.train) == list(miniature_problems("train", 4, 1, 0.0)) != list(other.train)
    assert one.held_out == other.held_out
    assert len(one.held_out) == 3


def test_problems_that_cannot_serve_are_left_out_and_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    bare, untested = problem(2, reference_solution=None), problem(3, golden_tests=())
    preset = from_files(tmp_path, [problem(1), bare, untested, problem(4)], [problem(9, hidden_tests=()), problem(8)])
    with caplog.at_level(logging.WARNING):
        sets = load_problem_sets(preset, 0)
    assert [p.problem_id for p in sets.train] == ["p1", "p3", "p4"]
    assert [p.problem_id for p in sets.held_out] == ["p8"]
    assert "1 of 4 problems are left out: without a reference solution" in caplog.text
    assert "1 of 2 problems are left out: without hidden tests" in caplog.text
    golden = load_problem_sets(preset, 0, golden_tests=True)
    assert [p.problem_id for p in golden.train] == ["p1", "p2", "p4"], "the baseline needs no reference"


def test_what_a_problem_needs_depends_on_the_oracle_and_a_limit_counts_those_that_can_be_used(tmp_path: Path) -> None:
    unsolved, untested = problem(2, reference_solution=None), problem(3, golden_tests=())
    preset = from_files(tmp_path, [problem(1), unsolved, untested], [problem(8)])
    kept = {"reference": "p1 p3", "golden": "p1 p2", "majority": "p1 p2 p3", "dual": "p1 p2 p3"}
    for oracle, names in kept.items():
        judged = dataclasses.replace(preset, reward=dataclasses.replace(preset.reward, oracle=oracle))
        assert [p.problem_id for p in load_problem_sets(judged, 0).train] == names.split()
    train = [problem(1, reference_solution=None), *(problem(number) for number in (2, 3, 4))]
    preset = from_files(tmp_path, train, [problem(8), problem(9)], limit=2, held_out_limit=1)
    sets = load_problem_sets(preset, 0)
    assert [p.problem_id for p in sets.train] == ["p2", "p3"]
    assert [p.problem_id for p in sets.held_out] == ["p8"]


def test_too_few_problems_and_files_that_hold_none_are_refused(tmp_path: Path) -> None:
    one = from_files(tmp_path, [problem(1), problem(2, reference_solution=None)], [problem(8)])
    is_refused(r"problems.file must hold at least 2 problems with a reference .*, got 1 of 2 in .*train", one)
    preset = from_files(tmp_path, [problem(1), problem(2)], [problem(8, hidden_tests=())])
    is_refused(r"held_out_file must hold at least 1 problems with hidden tests that .*, got 0", preset)
    require_files(preset)
    require_files(MINI)
    (tmp_path / "held_out.jsonl").unlink()
    with pytest.raises(ConfigurationError, match=r"problems.held_out_file must be a problem file, got .*held_out.js"):
        require_files(preset)
    is_refused("problems.held_out_file must be a readable problem file, got", preset)
    (tmp_path / "train.jsonl").write_text("{}\n")
    is_refused("train.jsonl:1: the fields must include", preset, ProblemFormatError)


def is_refused(must: str, preset: Preset, error: type[Exception] = ConfigurationError) -> None:
    with pytest.raises(error, match=must):
        load_problem_sets(preset, 0)
