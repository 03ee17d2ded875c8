"""Where a run's problems come from: what cannot serve is left out and counted, and too few are refused."""

import dataclasses
import logging
from pathlib import Path

import pytest

from codea1_env import ConfigurationError, Problem, ProblemFormatError, TestCase, write_problems
from codea1_env.configuration.batches import roles_of
from codea1_env.configuration.presets import MINI, SMOKE, Preset
from codea1_env.configuration.problem_sets import checked_files, load_problem_sets, require_files
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


def test_problems_that_cannot_serve_are_left_out_and_counted_and_what_one_needs_depends_on_the_oracle(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def names(preset: Preset, **how: bool) -> tuple[list[str], list[str]]:
        sets = load_problem_sets(preset, 0, **how)
        return [p.problem_id for p in sets.train], [p.problem_id for p in sets.held_out]

    train = [problem(2, reference_solution=None), problem(3, golden_tests=()), *map(problem, (1, 4, 5))]
    held_out = [problem(9, hidden_tests=()), problem(8), problem(7)]
    preset = from_files(tmp_path, train, held_out)
    with caplog.at_level(logging.WARNING):
        assert names(preset) == (["p3", "p1", "p4", "p5"], ["p8", "p7"])
    assert "1 of 5 problems are left out: without a reference solution" in caplog.text
    assert "1 of 3 problems are left out: without hidden tests" in caplog.text
    assert names(preset, golden_tests=True)[0] == ["p2", "p1", "p4", "p5"], "the baseline needs no reference"
    for oracle, first in {"reference": "p3", "golden": "p2", "majority": "p2 p3", "dual": "p2 p3"}.items():
        judged = dataclasses.replace(preset, reward=dataclasses.replace(preset.reward, oracle=oracle))
        assert names(judged)[0] == [*first.split(), "p1", "p4", "p5"]
    limits = {"limit": 2, "held_out_limit": 1}  # of those that can be used
    assert names(from_files(tmp_path, train, held_out, **limits)) == (["p3", "p1"], ["p8"])


@pytest.mark.parametrize(("recipe", "count"), [("golden", 2), ("expert", 2), ("mine:golden", 2), ("code_a1", 3)])
def test_a_plan_counts_the_problems_that_the_recipe_can_train_on(recipe: str, count: int, tmp_path: Path) -> None:
    preset = from_files(tmp_path, [problem(1), problem(2), problem(3, golden_tests=())], [problem(8)])
    assert f"{count} problems can be trained on" in checked_files(preset, recipe)
    assert len(load_problem_sets(preset, 0, golden_tests=roles_of(recipe).needs_golden).train) == count


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
