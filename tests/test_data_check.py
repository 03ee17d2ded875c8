"""What a problem can be used for, as `codea1 data check`, tournaments and trainers find it out; and imported rows."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from command_lines import ended
from imported_rows import jsonl, problems_from

from codea1_env import bundled_problems
from codea1_env.arena.arena import Arena
from codea1_env.cli import main
from codea1_env.configuration.presets import SMOKE
from codea1_env.configuration.problem_sets import book_note, load_problem_sets
from codea1_env.configuration.run_sections import ProblemFiles
from codea1_env.errors import ConfigurationError
from codea1_env.judging.problems.usability import MOST_HIDDEN, Usability, check_problems
from codea1_env.problems import Problem, TestCase, write_problems
from codea1_env.sandbox import LocalSandbox

SAME = "def f(x):\n    return x\n"
ONE = (TestCase("f(1)", "1"),)
AGREEMENT = ("majority", "dual")
OPAQUE = "def f(x):\n    return lambda: x\n"


def problem(reference: str | None = SAME, golden: tuple[TestCase, ...] = ONE, **fields: Any) -> Problem:
    given = {"problem_id": "p", "question": "Q", "entry_point": "f"} | fields
    return Problem(reference_solution=reference, golden_tests=golden, **given)


def checked(one: Problem, sandbox: LocalSandbox) -> Usability:
    (found,) = check_problems([one], sandbox)
    return found


def test_a_problem_whose_reference_passes_its_tests_serves_both_seats(sandbox: LocalSandbox) -> None:
    found = checked(problem(mutants=("def f(x):\n    return 1\n",)), sandbox)
    assert found.coder == ("reference", "golden", *AGREEMENT)
    assert found.tester == ("reference", *AGREEMENT)
    assert (found.tests, found.right, found.why_not, found.note) == (1, 1, "", "")
    assert str(found).startswith("p: coder (reference, golden, majority, dual), tester (reference, majority, dual)")
    assert str(found).endswith("1 of 1 tests are right, 1 mutants")


@pytest.mark.parametrize(
    ("reference", "why"),
    [
        ("def f(x) return x", "must load and define 'f', got SyntaxError"),
        ("def g(x):\n    return x\n", "must load and define 'f', got NoEntryPoint"),
        ("import yaml\ndef f(x):\n    return x\n", "got ModuleNotFoundError; the sandbox denied it: import yaml"),
        (OPAQUE, "returns plain data for no call of its tests: no plain data (1)"),
        ("def f(x):\n    raise KeyError\n", "returns plain data for no call of its tests: KeyError (1)"),
        ("def f(x):\n    return x + 1\n", "passes none of its tests"),
        ("import random\ndef f(x):\n    return random.random()\n", "for no call of its tests: flaky (1)"),
    ],
)
def test_a_reference_that_cannot_be_the_oracle_is_said_to_be_why(
    sandbox: LocalSandbox, reference: str, why: str
) -> None:
    found = checked(problem(reference), sandbox)
    assert not found.is_usable
    assert why in found.why_not
    assert "p: not usable" in str(found)


def test_golden_tests_are_no_oracle_where_the_reference_fails_one_or_none_can_be_read(sandbox: LocalSandbox) -> None:
    failed = checked(problem(golden=(*ONE, TestCase("f(2)", "3"))), sandbox)
    assert failed.coder == ("reference", *AGREEMENT)
    assert failed.why_not == "the reference fails 1 of its tests"
    unread = checked(problem(golden=(*ONE, TestCase("f(*a)", "3"))), sandbox)
    assert unread.coder == ("reference", "golden", *AGREEMENT), "it is left out"
    assert unread.why_not == "1 (starred 1) of its tests cannot be read"
    assert unread.problem.golden_tests == ONE
    none = checked(problem(golden=(TestCase("f(*a)", "3"),)), sandbox)
    assert none.coder == ("reference", *AGREEMENT)


def test_a_problem_without_a_reference_serves_by_golden_tests_and_agreement(sandbox: LocalSandbox) -> None:
    found = checked(problem(None), sandbox)
    assert found.coder == ("golden", *AGREEMENT)
    assert found.tester == AGREEMENT
    assert found.serves("golden")
    assert not found.serves("reference")
    assert checked(problem(None, ()), sandbox).coder == AGREEMENT


def test_what_a_problem_without_tests_returns_is_not_known_but_its_reference_must_load(sandbox: LocalSandbox) -> None:
    assert "nobody knows what its reference returns" in checked(problem(golden=()), sandbox).note
    assert not checked(problem("def f(x) return x", ()), sandbox).is_usable


def test_one_bad_reference_in_a_batch_is_its_own_fault_only(sandbox: LocalSandbox) -> None:
    row = [problem(problem_id="a"), problem("def", problem_id="b"), problem(problem_id="c")]
    assert [each.is_usable for each in check_problems(row, sandbox)] == [True, False, True]


def test_a_right_float_is_right_within_the_problems_tolerance(sandbox: LocalSandbox) -> None:
    near = (TestCase("f(0.3)", "0.30000001"),)
    assert not checked(problem(golden=near), sandbox).is_usable
    assert checked(problem(golden=near, tolerance=1e-6), sandbox).serves("golden")


def test_every_bundled_problem_serves_both_seats_by_its_reference_and_its_golden_tests(sandbox: LocalSandbox) -> None:
    found = list(check_problems(bundled_problems(), sandbox))
    assert [each.problem.problem_id for each in found if not each.serves("reference")] == []
    assert [each.problem.problem_id for each in found if not each.serves("golden") or each.why_not] == []
    assert all(each.tests == 3 + min(MOST_HIDDEN, len(each.problem.hidden_tests)) for each in found)


def test_the_command_says_so_of_each_and_ends_with_1_where_nothing_is_usable(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good, bad = problem(problem_id="good"), problem(OPAQUE, problem_id="bad")
    write_problems(tmp_path / "both.jsonl", [good, bad])
    write_problems(tmp_path / "bad.jsonl", [bad])
    assert main(["data", "check", str(tmp_path / "both.jsonl")]) == 0
    told = capsys.readouterr()
    assert [line.split(":")[0] for line in told.out.splitlines()] == ["good", "bad"]
    assert "1 of 2 problems are usable: 1 in the coder's seat, 1 in the tester's; 1 with the reference" in told.err
    assert main(["data", "check", str(tmp_path / "bad.jsonl")]) == 1
    assert main(["data", "check", str(tmp_path / "none.jsonl")]) == 2
    (tmp_path / "empty.jsonl").touch()
    assert main(["data", "check", str(tmp_path / "empty.jsonl")]) == 2
    write_problems(tmp_path / "odd.jsonl", [problem(problem_id="one\n\x1b[31mtwo")])
    capsys.readouterr()
    assert main(["data", "check", str(tmp_path / "odd.jsonl")]) == 0
    assert capsys.readouterr().out.startswith("one\\n\\x1b[31mtwo: ")


def test_a_tournament_refuses_problems_that_it_cannot_judge(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_problems(tmp_path / "bad.jsonl", [problem(OPAQUE, problem_id="bad")])
    arguments = ["--coder", "oracle", "--coder", "mutant", "--tester", "golden"]
    assert main(["tournament", *arguments, "--problems", str(tmp_path / "bad.jsonl")]) == 2
    assert "1 of 1 that it cannot (bad: the reference returns plain data for no call" in capsys.readouterr().err
    assert not list(tmp_path.glob("*.journal.jsonl*")), "of work that never began no journal stays"


def test_a_trainer_leaves_out_what_cannot_be_judged_and_refuses_too_few(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [problem(problem_id=f"p{number}", hidden_tests=ONE) for number in range(3)]
    bad = problem(OPAQUE, problem_id="bad", hidden_tests=ONE)
    write_problems(tmp_path / "train.jsonl", [*rows, bad])
    write_problems(tmp_path / "held_out.jsonl", [bad, rows[0]])
    files = ProblemFiles(str(tmp_path / "train.jsonl"), str(tmp_path / "held_out.jsonl"))
    sets = load_problem_sets(dataclasses.replace(SMOKE, problems=files), 0)
    assert [[one.problem_id for one in row] for row in (sets.train, sets.held_out)] == [["p0", "p1", "p2"], ["p0"]]
    assert "bad cannot be judged: the reference returns plain data for no call" in caplog.text
    assert "1 of 4 problems are left out: they cannot be judged" in caplog.text
    config = tmp_path / "own.yaml"
    config.write_text(f"extends: smoke\nproblems: {{file: {files.file}, held_out_file: {files.held_out_file}}}\n")
    shown = ended(capsys, "--config", str(config), "--dry-run", status=0)
    assert "3 problems can be trained on, 1 measured on" in shown
    assert "Mistake Book replays nothing" not in shown, "questions come back"
    few = dataclasses.replace(SMOKE, rounds=2, round=dataclasses.replace(SMOKE.round, questions=2))
    assert book_note(few, 4) == (
        "2 rounds ask 4 of 4 questions, each at most once, so the Mistake Book replays nothing; to repeat "
        "questions, lower problems.train"
    )
    assert book_note(dataclasses.replace(few, problems=files), 4).endswith("lower problems.limit")
    assert not book_note(few, 3)
    assert not book_note(dataclasses.replace(few, reward=dataclasses.replace(few.reward, replay_limit=0)), 4)
    write_problems(tmp_path / "train.jsonl", [bad])
    with pytest.raises(ConfigurationError, match=r"that can be judged, got 0 of 1 in .*; `codea1 data check` says"):
        load_problem_sets(dataclasses.replace(SMOKE, problems=files), 0)
    ended(capsys, "--config", str(config), "--dry-run")


def test_a_dry_run_says_that_no_question_comes_back(tmp_path: Path, capsys: Any) -> None:
    write_problems(tmp_path / "all.jsonl", [problem(problem_id=f"q{n}", hidden_tests=ONE) for n in range(5)])
    config = tmp_path / "own.yaml"

    def planned(problems: str, recipe: str = "code_a1") -> str:
        config.write_text(f"extends: smoke\nrounds: 2\nround: {{questions: 2}}\nproblems: {{{problems}}}\n")
        return ended(capsys, "--config", str(config), "--dry-run", status=0, recipe=recipe)

    given = f"file: {tmp_path / 'all.jsonl'}, "
    missing = tmp_path / "none.jsonl"
    assert "can be trained on" not in planned(f"{given} held_out_file: {missing}"), "a plan of files to come"
    note = "2 rounds ask 4 of 4 questions, each at most once, so the Mistake Book replays nothing"
    assert note in planned(f"{given} held_out_limit: 1")
    assert note not in planned(f"{given} held_out_limit: 1", "golden"), "no book there"


def test_a_testers_reward_that_runs_golden_tests_has_none_of_the_problems_without(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The run would end in the first round that asks such a problem."""
    rows = [problem(problem_id="with"), problem(golden=(), problem_id="without", hidden_tests=ONE)]
    write_problems(tmp_path / "train.jsonl", rows)
    write_problems(tmp_path / "held_out.jsonl", [problem(problem_id="h", hidden_tests=ONE)])
    files = ProblemFiles(str(tmp_path / "train.jsonl"), str(tmp_path / "held_out.jsonl"))
    one = dataclasses.replace(SMOKE, problems=files, round=dataclasses.replace(SMOKE.round, questions=1))
    assert len(load_problem_sets(one, 0).train) == 2
    cure = dataclasses.replace(one, reward=dataclasses.replace(one.reward, tester_reward="cure"))
    assert [each.problem_id for each in load_problem_sets(cure, 0).train] == ["with"]
    assert "1 of 2 problems are left out: without golden tests" in caplog.text


def test_questions_that_are_learnt_from_and_measured_on_are_told(tmp_path: Path, capsys: Any) -> None:
    """By hand: the second file has one question of the first under another id, and one that is its own."""
    told = "Add three to the number that is given, and return what comes out of it, whatever its sign is."
    same = {"question": told, "entry_point": "add"}
    add = "def add(x):\n    return x + 3\n"
    case = (TestCase("add(1)", "4"),)
    write_problems(
        tmp_path / "train.jsonl",
        [problem(problem_id="p0", hidden_tests=ONE), problem(add, case, problem_id="p1", hidden_tests=case, **same)],
    )
    write_problems(tmp_path / "held_out.jsonl", [problem(add, case, problem_id="h0", hidden_tests=case, **same)])
    config = tmp_path / "own.yaml"
    files = f"{{file: {tmp_path / 'train.jsonl'}, held_out_file: {tmp_path / 'held_out.jsonl'}}}"
    config.write_text(f"extends: smoke\nround: {{questions: 1}}\nproblems: {files}\n")
    assert (
        "note       1 of the training problems are also among the held-out ones, or much like one of them: p1 shares a "
        "run of 13 words with the evaluation problem h0; remove them from one file"
    ) in ended(capsys, "--config", str(config), "--dry-run", status=0)


# Rows


ROW = {
    "question": "double(x): twice x.",
    "reference_solution": "def double(x):\n    if x < 0:\n        return -2 * -x\n    return 2 * x\n",
    "golden_tests": [["double(3)", "6"], ["double(-1)", "-2"]],
}


def test_rows_without_an_id_get_one_that_does_not_depend_on_their_place(tmp_path: Path) -> None:
    other = dict(ROW, question="double(x): x twice.")
    out = tmp_path / "out.jsonl"
    both = problems_from(jsonl(tmp_path / "a.jsonl", ROW, other), "rows", out)
    first, second = (one.problem_id for one in both)
    assert first.startswith("double-")
    assert first != second
    (alone,) = problems_from(jsonl(tmp_path / "b.jsonl", other), "rows", out)
    assert alone.problem_id == second


def test_golden_tests_of_a_row_are_read_and_run(tmp_path: Path) -> None:
    wrong = dict(ROW, golden_tests=[*ROW["golden_tests"], ["double(2)", "5"]])
    (problem,) = problems_from(jsonl(tmp_path / "a.jsonl", wrong), "rows", tmp_path / "out.jsonl")
    assert problem.golden_tests == (TestCase("double(3)", "6"), TestCase("double(-1)", "-2"))


def test_an_import_that_leaves_nothing_usable_ends_with_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out.jsonl"
    out.write_text("of an earlier run")
    for broken in ({"question": "Q"}, dict(ROW, golden_tests="double(1)"), dict(ROW, reference_solution="def")):
        assert main(["data", "import", "rows", str(jsonl(tmp_path / "a.jsonl", broken)), "-o", str(out)]) == 1
    told = capsys.readouterr().err
    assert "golden_tests must be a list of pairs of texts [call, value], got 'double(1)'" in told
    assert f"wrote {out}.report.jsonl only, for no row is usable" in told
    assert out.read_text() == "of an earlier run"
    assert main(["data", "import", "rows", str(tmp_path / "a.jsonl"), "-o", str(out), "--against", "nosuch"]) == 2
    assert "--against must be a file, got nosuch" in capsys.readouterr().err
    report = (tmp_path / "out.jsonl.report.jsonl").read_bytes()
    assert main(["data", "import", "rows", str(jsonl(tmp_path / "none.jsonl")), "-o", str(out)]) == 2
    assert f"the input must hold a row, got none in {tmp_path / 'none.jsonl'}" in capsys.readouterr().err
    assert (out.read_text(), Path(f"{out}.report.jsonl").read_bytes()) == ("of an earlier run", report)


def test_natural_mutants_are_wrong_differ_from_each_other_and_let_testers_be_measured(
    tmp_path: Path, sandbox: LocalSandbox
) -> None:
    out = tmp_path / "out.jsonl"
    own = dict(ROW, question="Q", mutants=["def double(x):\n    return x\n"])
    path = jsonl(tmp_path / "a.jsonl", ROW, own)
    made, given = problems_from(path, "rows", out, "--mutants", "3")
    assert len(set(made.mutants)) == 3
    assert list(given.mutants) == own["mutants"], "what a person wrote stays as it is"
    arena = Arena(sandbox)
    tests = [TestCase(f"double({x})", str(2 * x)) for x in (-3, -2, -1, 0, 1, 2, 3, 4)]
    grades = arena.grade(made, made.mutants, tests)
    assert all(grade.executes and any(verdict != "pass" for verdict in grade.verdicts) for grade in grades)
    assert main(["data", "import", "rows", str(path), "-o", str(out), "--mutants", "-1"]) == 2
