"""A problem's own tests that cannot be read: every reader leaves out the same ones, says so, and ends in nothing."""

from __future__ import annotations

import dataclasses
import json
import logging
from pathlib import Path
from typing import Any

import pytest

from codea1_env import parallel_env
from codea1_env.arena.arena import Arena
from codea1_env.arena.match import Match
from codea1_env.cli import main
from codea1_env.configuration.arguments import parse_arguments
from codea1_env.configuration.presets import SMOKE
from codea1_env.configuration.problem_sets import load_problem_sets
from codea1_env.configuration.run_sections import ProblemFiles
from codea1_env.errors import ConfigurationError, ProblemFormatError
from codea1_env.evaluation.wrong_programs import examine
from codea1_env.judging.problems.importing import import_drafts
from codea1_env.judging.problems.usability import check_problems
from codea1_env.problems import Problem, TestCase, read_problems, write_problems
from codea1_env.problems.sources import Draft
from codea1_env.rewards.code_a1 import RewardConfig
from codea1_env.rewards.duel import Verdict
from codea1_env.sandbox import LocalSandbox
from codea1_env.training.run.held_out import evaluate_coder

REFERENCE = "def f(x):\n    return x + 1\n"
WRONG = "def f(x):\n    return x + 2\n"
GOOD = TestCase("f(2)", "3")
UNREADABLE = {
    "broken call": (TestCase("f(", "1"), "syntax"),
    "broken value": (TestCase("f(1)", "("), "syntax"),
    "no value": (TestCase("f(1)", ""), "syntax"),
    "two statements": (TestCase("f(1); f(2)", "3"), "syntax"),
    "null byte": (TestCase("f(1)", "\x00"), "syntax"),
    "lone surrogate": (TestCase("f(1)", "\ud800"), "syntax"),
    "object": (TestCase("f(1)", "object()"), "forbidden_call"),
    "name": (TestCase("f(1)", "inf"), "forbidden_name"),
    "attribute": (TestCase("f(1)", "math.infinity"), "attribute"),
    "digits": (TestCase("f(1)", "9" * 5000), "too_large"),
    "deep value": (TestCase("f(1)", "[" * 250 + "]" * 250), "too_deep"),
    "deep call": (TestCase(f"f({'[' * 110}{']' * 110})", "1"), "too_deep"),
    "long": (TestCase("f(1)", repr("a" * 1_200_000)), "too_long"),
    "another function": (TestCase("g(1)", "1"), "not_entry_point"),
    "itself": (TestCase("f(1)", "f(1)"), "entry_point_again"),
    "raises": (TestCase("f(1)", "1 / 0"), "evaluation_error"),
    "large": (TestCase("f(1)", "[0] * 10**9"), "evaluation_limit"),
}
CASES = pytest.mark.parametrize(("case", "reason"), UNREADABLE.values(), ids=UNREADABLE)


def problem(*golden: TestCase, **fields: Any) -> Problem:
    given: dict[str, Any] = {"problem_id": "p", "question": "Q", "entry_point": "f", "reference_solution": REFERENCE}
    return Problem(golden_tests=golden, **(given | fields))


@CASES
def test_every_reader_leaves_out_the_same_test_for_the_same_reason(
    case: TestCase, reason: str, sandbox: LocalSandbox, caplog: pytest.LogCaptureFixture
) -> None:
    one = problem(case, GOOD, hidden_tests=(case, GOOD))
    readable = dataclasses.replace(one, golden_tests=(GOOD,), hidden_tests=(GOOD,))
    (checked,) = check_problems([one], sandbox)
    assert (checked.problem, [left.reason for left in checked.left_out]) == (readable, [reason] * 2)
    assert checked.serves("golden")
    assert f"2 ({reason} 2) of its tests cannot be read" in str(checked)
    for reference in (REFERENCE, None):
        (imported,) = import_drafts([Draft(dataclasses.replace(one, reference_solution=reference))], sandbox)
        assert imported.problem == dataclasses.replace(readable, reference_solution=reference)
        assert json.loads(imported.to_json())["left_out"] == {reason: 2}
    arena = Arena(sandbox, RewardConfig(oracle="golden"))
    with caplog.at_level(logging.WARNING):
        (grade, wrong) = arena.grade(one, [REFERENCE, WRONG], (*one.golden_tests, *one.hidden_tests))
    assert grade.verdicts == (None, Verdict.PASS) * 2
    assert (grade.share, grade.all_passed, wrong.share, wrong.all_passed) == (1.0, True, 0.0, False)
    assert f"2 ({reason} 2) of its tests cannot be read and are left out" in caplog.text
    (score,) = arena.play([Match(one, (REFERENCE, WRONG), (("assert f(2) == 3",),) * 2)])
    assert [row[0].duel.tests[0].verdict for row in score.suites] == [Verdict.PASS, Verdict.FAIL]
    examined = examine(sandbox, one, [REFERENCE, WRONG])
    assert (examined.wrong, examined.right) == ((WRONG.strip(),), 1)


@CASES
def test_where_no_test_is_left_the_problem_is_refused_before_anything_runs(
    case: TestCase, reason: str, sandbox: LocalSandbox
) -> None:
    one = problem(case, hidden_tests=(case,))
    arena = Arena(sandbox, RewardConfig(oracle="golden"))
    told = rf"\({reason} \d\) of its tests cannot be read"
    with pytest.raises(ProblemFormatError, match=told):
        arena.grade(one, [REFERENCE], one.golden_tests)
    with pytest.raises(ProblemFormatError, match=told):
        arena.play([Match(one, (REFERENCE,), (("assert f(2) == 3",),))])
    env = parallel_env([problem(GOOD, problem_id="good"), one], rewards=RewardConfig(oracle="golden"), sandbox=sandbox)
    with pytest.raises(ProblemFormatError, match=told):
        env.reset(seed=0, options={"problem_id": "good"})
    (checked,) = check_problems([one], sandbox)
    assert not checked.serves("golden")
    assert checked.serves("reference")


def test_an_evaluation_measures_what_is_left_and_names_the_rest(tmp_path: Path) -> None:
    rows = [problem(GOOD, problem_id="good"), problem(UNREADABLE["object"][0], problem_id="none")]
    rows += [problem(case, GOOD, problem_id=name) for name, (case, _) in UNREADABLE.items()]
    file = tmp_path / "all.jsonl"
    write_problems(file, rows)
    out = tmp_path / "out"
    arguments = ["eval", "--player", "oracle", "--problems", str(file), "--n", "2", "--batch", "1", "-o", str(out)]
    assert main(arguments) == 0
    record = json.loads((out / "results.json").read_text())["sets"]["all"]
    assert record["problems"] == len(rows) - 1
    assert record["left_out"] == {"none": "1 (forbidden_call 1) of its tests cannot be read"}
    assert record["tests_left_out"] == {name: {reason: 1} for name, (_, reason) in UNREADABLE.items()}
    assert record["measures"]["avg@2"]["mean"] == 1.0
    for seat in ("golden", "random", "fuzz"):
        tester = ["eval", "--seat", "tester", "--player", seat, "--problems", str(file), "--n", "1", "--limit", "8"]
        assert main([*tester, "-o", str(tmp_path / seat)]) == 0


@pytest.mark.parametrize("is_json", [False, True])
def test_an_evaluation_that_measured_nothing_ends_with_1_and_says_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], is_json: bool
) -> None:
    file = tmp_path / "none.jsonl"
    write_problems(file, [problem(problem_id="bare"), problem(UNREADABLE["name"][0], problem_id="unread")])
    arguments = ["eval", "--player", "oracle", "--problems", str(file), "--n", "2", "-o", str(tmp_path / "out")]
    for _ in range(2):  # and when it goes on
        assert main([*arguments, *["--json"] * is_json]) == 1
        told = capsys.readouterr()
        assert (
            "nothing was measured, every problem is left out: bare: it has no tests; unread: 1 (forbidden_name 1) of "
            "its tests cannot be read" in told.err
        )
        assert bool(told.out) == is_json, "no table of dashes"
    tester = ["eval", "--seat", "tester", "--player", "fuzz", "--problems", str(file), "--n", "1"]
    lost = tmp_path / "lost.jsonl"
    write_problems(lost, [problem(GOOD, reference_solution=None)])
    assert main([*tester, "-o", str(tmp_path / "tester")]) == 0, "a tester needs no tests"
    tester[tester.index(str(file))] = str(lost)
    assert main([*tester, "-o", str(tmp_path / "lost")]) == 1


def test_a_run_is_measured_by_what_is_left_and_refuses_what_has_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str], sandbox: LocalSandbox
) -> None:
    bad = UNREADABLE["object"][0]
    write_problems(tmp_path / "train.jsonl", [problem(GOOD, problem_id=f"t{n}") for n in range(3)])
    write_problems(
        tmp_path / "held.jsonl",
        [
            problem(bad, problem_id="some", hidden_tests=(bad, GOOD)),
            problem(GOOD, problem_id="none", hidden_tests=(bad,)),
        ],
    )
    files = ProblemFiles(str(tmp_path / "train.jsonl"), str(tmp_path / "held.jsonl"))
    sets = load_problem_sets(dataclasses.replace(SMOKE, problems=files), 0)
    (held,) = sets.held_out
    assert (held.problem_id, held.golden_tests, held.hidden_tests) == ("some", (), (GOOD,))
    assert "some: 2 (forbidden_call 2) of its tests cannot be read and are left out" in caplog.text
    assert "none cannot be judged: 1 (forbidden_call 1) of its tests cannot be read" in caplog.text
    config = tmp_path / "own.yaml"
    config.write_text(f"extends: smoke\nproblems: {{file: {files.file}, held_out_file: {files.held_out_file}}}\n")
    with pytest.raises(SystemExit) as ended:
        parse_arguments("", ["--config", str(config), "--dry-run"])
    assert ended.value.code == 0
    assert "3 problems can be trained on, 1 measured on" in capsys.readouterr().out
    one = problem(bad, GOOD, hidden_tests=(bad, GOOD))
    for given in (held, one):
        result = evaluate_coder(Arena(sandbox), [given], lambda asked, n: [[REFERENCE, WRONG]] * len(asked), 2)
        assert (result.hidden, result.tests) == ((0.5,), {given.problem_id: (0.5,)})
    assert result.golden == (0.5,)


def test_training_by_golden_tests_needs_one_that_can_be_read(tmp_path: Path) -> None:
    bad = UNREADABLE["broken call"][0]
    rows = [problem(bad, GOOD, problem_id="some"), problem(bad, problem_id="none")]
    write_problems(tmp_path / "train.jsonl", rows)
    write_problems(tmp_path / "held.jsonl", [problem(GOOD, problem_id="h", hidden_tests=(GOOD,))])
    files = ProblemFiles(str(tmp_path / "train.jsonl"), str(tmp_path / "held.jsonl"))
    preset = dataclasses.replace(SMOKE, problems=files, round=dataclasses.replace(SMOKE.round, questions=1))
    assert [one.problem_id for one in load_problem_sets(preset, 0, golden_tests=True).train] == ["some"]
    assert len(load_problem_sets(preset, 0).train) == 2, "the reference is the oracle"
    write_problems(tmp_path / "train.jsonl", rows[1:])
    with pytest.raises(ConfigurationError, match="at least 1 problems with golden tests that can be judged, got 0"):
        load_problem_sets(preset, 0, golden_tests=True)


def test_recorded_lines_are_scored_by_the_golden_tests_that_can_be_read(tmp_path: Path) -> None:
    lines = []
    for name, golden in (("some", [["f(1)", "object()"], ["f(2)", "3"]]), ("none", [["f(", "1"]])):
        one = {"problem_id": name, "question": "Q", "entry_point": "f", "golden_tests": golden}
        lines.append(json.dumps(one | {"codes": [REFERENCE], "suites": [["assert f(2) == 3"]]}))
    (tmp_path / "in.jsonl").write_text("\n".join(lines))
    out = tmp_path / "out.jsonl"
    assert main(["score", str(tmp_path / "in.jsonl"), "-o", str(out), "--oracle", "golden"]) == 1
    some, none = map(json.loads, out.read_text().splitlines())
    assert some["suites"][0][0]["tests"][0]["verdict"] == "pass"
    assert none["line"] == 2
    assert "1 (syntax 1) of its tests cannot be read" in none["error"]


def test_a_file_that_an_import_wrote_holds_no_test_that_is_left_out(tmp_path: Path, sandbox: LocalSandbox) -> None:
    records = [
        {"input": "1", "output": "2", "testtype": "functional"},
        {"input": json.dumps("a" * 1_200_000), "output": "1", "testtype": "functional"},
        {"input": "[" * 250 + "]" * 250, "output": "1", "testtype": "functional"},
        {"input": "5", "output": "Infinity", "testtype": "functional"},
        {"input": "6", "output": "no JSON", "testtype": "functional"},
    ]
    row = {
        "question_content": "Q", "question_id": "1", "starter_code": "", "difficulty": "easy",
        "public_test_cases": json.dumps(records[:1]), "private_test_cases": json.dumps(records),
        "metadata": json.dumps({"func_name": "f"}),
    }  # fmt: skip
    source, out = tmp_path / "rows.jsonl", tmp_path / "out.jsonl"
    source.write_text(json.dumps(row))
    assert main(["data", "import", "livecodebench", str(source), "-o", str(out)]) == 0
    (one,) = read_problems(out)
    assert one.golden_tests == (TestCase("f(1)", "2"),)
    assert one.hidden_tests == (TestCase("f(5)", "float('inf')"),)
    left_out = json.loads((tmp_path / "out.jsonl.report.jsonl").read_text())["left_out"]
    assert {name.split(",")[0]: count for name, count in left_out.items()} == {
        "too_long": 1, "too_deep": 1, "a functional test must be JSON": 1
    }  # fmt: skip
    (checked,) = check_problems([one], sandbox)
    assert checked.left_out == ()
