"""The questions of real models: set aside, pooled, and given more golden tests (`experiments/real_questions.py`)."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

import pytest
import real_questions

from codea1_env.problems import Problem, TestCase, bundled_problems, read_problems, write_problems


def run(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> None:
    monkeypatch.setattr(sys, "argv", ["real_questions.py", *map(str, arguments)])
    real_questions.main()


def squares(number: int, tests: int) -> Problem:
    return Problem(
        problem_id=f"squares/{number}",
        question=f"Return the square of x, for the {number}th time.",
        entry_point="square",
        reference_solution="def square(x):\n    return x * x\n",
        golden_tests=tuple(TestCase(f"square({x})", str(x * x)) for x in range(tests)),
    )


def test_what_is_set_aside_is_not_in_the_pool_and_weak_tests_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_problems(tmp_path / "first.jsonl", [squares(number, 5) for number in range(8)] + [squares(8, 1)])
    write_problems(tmp_path / "second.jsonl", bundled_problems()[:3])
    run(monkeypatch, "split", tmp_path / "first.jsonl", tmp_path / "second.jsonl", "--aside", 3, "-o", tmp_path / "out")
    aside, pool = (read_problems(tmp_path / "out" / name) for name in ("aside.jsonl", "pool.jsonl"))
    names = [problem.problem_id for problem in (*aside, *pool)]
    assert len(aside) == 3
    assert sorted(names) == sorted(
        [f"squares/{number}" for number in range(8)] + [problem.problem_id for problem in bundled_problems()[:3]]
    )
    assert all(not problem.golden_tests and len(problem.hidden_tests) == 5 for problem in aside)
    assert all(len(problem.golden_tests) <= 3 for problem in pool)
    assert {(len(problem.golden_tests), len(problem.hidden_tests)) for problem in pool[:5]} == {(3, 2)}


def test_questions_that_a_file_names_are_taken_in_its_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_problems(tmp_path / "pool.jsonl", [squares(number, 3) for number in range(8)])
    (tmp_path / "ids.txt").write_text("# drawn elsewhere\nsquares/5\n\nsquares/2  # twice\nsquares/5\n")
    run(monkeypatch, "take", tmp_path / "pool.jsonl", "--ids", tmp_path / "ids.txt", "-o", tmp_path / "out.jsonl")
    assert read_problems(tmp_path / "out.jsonl") == [squares(5, 3), squares(2, 3)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("split", "none.jsonl", "-o", "out"), "No such file or directory: 'none.jsonl'"),
        (
            ("split", "first.jsonl", "--aside", "3", "-o", "out"),
            "less than the 3 questions of first.jsonl that have at",
        ),
        (
            ("split", "first.jsonl", "first.jsonl", "--aside", "1", "-o", "out"),
            "each question must be in one file only",
        ),
        (("split", "first.jsonl", "--aside", "1", "-o", "first.jsonl"), "File exists: 'first.jsonl'"),
        (("take", "first.jsonl", "--ids", "none.txt", "-o", "out.jsonl"), "No such file or directory: 'none.txt'"),
        (("take", "first.jsonl", "--ids", "empty.jsonl", "-o", "out.jsonl"), "and there must be one; got 0"),
        (("take", "first.jsonl", "--ids", "ids.txt", "-o", "out.jsonl"), "1 are not there, the first is squares/9"),
        (("derive", "empty.jsonl", "-o", "out.jsonl"), "empty.jsonl must hold a problem, got none"),
        (
            ("derive", "first.jsonl", "-o", "no/out.jsonl"),
            "--output must be a file in a directory that is there, got no",
        ),
        (("derive", "bare.jsonl", "-o", "out.jsonl"), "must be there, load and define 'square', got one that does not"),
    ],
)
def test_wrong_arguments_end_in_one_line(
    arguments: tuple[str, ...], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_problems(tmp_path / "first.jsonl", [squares(number, 3) for number in range(3)])
    write_problems(tmp_path / "bare.jsonl", [dataclasses.replace(squares(0, 3), reference_solution=None)])
    (tmp_path / "empty.jsonl").write_text("")
    (tmp_path / "ids.txt").write_text("squares/1\nsquares/9\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit, match=message):
        run(monkeypatch, *arguments)


def test_derived_tests_state_what_the_reference_returns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = dataclasses.replace(squares(0, 2), golden_tests=(TestCase("square(2)", "4"), TestCase("square(3)", "9")))
    write_problems(tmp_path / "few.jsonl", [told])
    run(monkeypatch, "derive", tmp_path / "few.jsonl", "-o", tmp_path / "many.jsonl")
    (problem,) = read_problems(tmp_path / "many.jsonl")
    assert problem.golden_tests[:2] == told.golden_tests
    assert len(problem.golden_tests) > 8
    assert len({test.call for test in problem.golden_tests}) == len(problem.golden_tests)
    assert dataclasses.replace(problem, golden_tests=()) == dataclasses.replace(told, golden_tests=())
    square = {}
    exec(told.reference_solution or "", square)
    assert all(eval(test.call, square) == eval(test.expected) for test in problem.golden_tests)
