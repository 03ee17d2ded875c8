"""EvalPlus' own files of HumanEval+ and MBPP+, on rows of our own in their form; and BigCodeBench's older fields."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from codea1_env.arena.arena import Arena
from codea1_env.cli import main
from codea1_env.judging.problems.importing import Imported, import_drafts
from codea1_env.problems import read_problems
from codea1_env.problems.sources import Unreadable, find_source
from codea1_env.problems.sources.rows import local_rows
from codea1_env.sandbox import LocalSandbox

HUMANEVAL = {
    "task_id": "HumanEval/900",
    "prompt": "import math\n\n\ndef third(x: float) -> float:\n    \"\"\"A third of x.\"\"\"\n",
    "contract": "    assert isinstance(x, float)\n",
    "canonical_solution": "    return math.fabs(x) / 3 * (1 if x >= 0 else -1)\n",
    "entry_point": "third",
    "base_input": [[3], [4.0]],
    "plus_input": [[-1], [0], [3], [1e300], [-1]],
    "atol": 0,
}  # fmt: skip
MBPP = {
    "task_id": "Mbpp/9000",
    "prompt": '"""\nWrite a function to add two numbers.\nassert add(1, 2) == 3\n"""\n',
    "entry_point": "add",
    "canonical_solution": "\ndef add(a, b):\n    return a + b\n",
    "contract": "\n    assert a is not None\n",
    "assertion": "\nassert add(1, 2) == 3\n",
    "base_input": [[1, 2], [3, 4]],
    "plus_input": [[-1, 1], ["a", "b"], [1, 2]],
    "atol": 0,
}


OPENED: list[LocalSandbox] = []


@pytest.fixture(scope="module", autouse=True)
def _opened(sandbox: LocalSandbox) -> None:
    """`imported` and `passes` have one sandbox."""
    OPENED[:] = [sandbox]


def imported(source: str, *rows: dict[str, Any]) -> list[Imported]:
    return list(import_drafts(find_source(source).drafts(rows), OPENED[0]))


def one(source: str, row: dict[str, Any]) -> Any:
    (found,) = imported(source, row)
    assert found.problem is not None, found
    return found.problem


def passes(problem: Any, code: str) -> bool:
    (grade,) = Arena(OPENED[0]).grade(problem, [code], (*problem.golden_tests, *problem.hidden_tests))
    return grade.all_passed


def test_base_inputs_become_golden_tests_and_the_others_hidden_ones_with_the_references_values() -> None:
    problem = one("humanevalplus", HUMANEVAL)
    assert [str(case) for case in problem.golden_tests] == [
        "assert third(3) == 1.0",
        "assert third(4.0) == 1.3333333333333333",
    ]
    assert [case.call for case in problem.hidden_tests] == ["third(-1)", "third(0)", "third(1e+300)"]
    assert problem.question == HUMANEVAL["prompt"]
    assert passes(problem, "def third(x):\n    return x / 3\n")
    assert passes(problem, "def third(x):\n    return x / 3 + 1e-8\n")  # a millionth
    assert not passes(problem, "def third(x):\n    return round(x / 3, 3)\n")


def test_a_question_of_mbpp_is_its_prompts_text_and_asks_for_the_references_signature() -> None:
    problem = one("mbppplus", MBPP)
    assert problem.question == "Write a function to add two numbers.\nassert add(1, 2) == 3\n"
    assert problem.starter_code == "def add(a, b):"
    assert [str(case) for case in problem.golden_tests] == ["assert add(1, 2) == 3", "assert add(3, 4) == 7"]
    assert [str(case) for case in problem.hidden_tests] == ["assert add(-1, 1) == 0", "assert add('a', 'b') == 'ab'"]
    assert passes(problem, "def add(a, b):\n    return a + b\n")


SHOWN = "def f(*given):\n    return repr(given)\n"
RESTORED = [
    (2, [[1, 2], [3]], "((1, 2), (3,))"),
    (63, [[[1, 2], [3, 4]]], "([(1, 2), (3, 4)],)"),
    (75, [[[1, 2], [3, 4]], 5], "([(1, 2), (3, 4)], 5)"),
    (106, [[1], [2, 3]], "([1], (2, 3))"),
    (115, [[[1], []]], "([{1}, {}],)"),
    (124, ["0", "1j"], "(0.0, 1j)"),
    (250, [[1, 2], 3], "((1, 2), 3)"),
    (252, ["3+4j"], "((3+4j),)"),
    (259, [[[1, 2], [3]], [[4]]], "(((1, 2), (3,)), ((4,),))"),
    (278, [[1, [2, 3], 4]], "((1, (2, 3), 4),)"),
    (307, [[1, [2]], 3, 4], "((1, [2]), 3, 4)"),
    (580, [[1, [2, [3]]]], "((1, (2, (3,))),)"),
    (722, [{"a": [1, 2]}, 3], "({'a': (1, 2)}, 3)"),
    (3, [[1], [2]], "([1], [2])"),
]


@pytest.mark.parametrize(("number", "given", "shown"), RESTORED, ids=[str(row[0]) for row in RESTORED])
def test_arguments_that_json_cannot_spell_are_what_they_were(number: int, given: list[Any], shown: str) -> None:
    row = {**MBPP, "entry_point": "f", "canonical_solution": SHOWN, "task_id": f"Mbpp/{number}"}
    problem = one("mbppplus", {**row, "base_input": [given], "plus_input": []})
    (case,) = problem.golden_tests
    assert case.expected == repr(shown)
    elsewhere = one("humanevalplus", {**row, "base_input": [given], "plus_input": []})
    if not isinstance(given[0], str):
        assert elsewhere.golden_tests[0].expected == repr(repr(tuple(given)))


@pytest.mark.parametrize(
    ("entry_point", "reference", "inputs", "also_right", "wrong"),
    [
        ("Diff", "return list(set(a) - set(b))", [[[1, 2, 3], [2]]], "return [3, 1, 1]", "return [1]"),
        ("sum_div", "return a + b", [[1, 2]], "return 0", "return 1"),
        ("are_equivalent", "return a == b", [[1, 2]], "return True", "raise ValueError"),
        ("surface_Area", "return 2 * a * b + a * a", [[3, 4]], "return 35", "return 36"),
        ("digit_distance_nums", "return 1", [[1, 23]], "return 4", "return 5"),
    ],
)
def test_what_evalplus_takes_for_right_beside_equality_a_checker_does(
    entry_point: str, reference: str, inputs: list[Any], also_right: str, wrong: str
) -> None:
    code = f"def {entry_point}(a, b):\n    {{}}\n"
    row = {**MBPP, "entry_point": entry_point, "canonical_solution": code.format(reference)}
    problem = one("mbppplus", {**row, "base_input": inputs, "plus_input": []})
    assert passes(problem, code.format(reference))
    assert passes(problem, code.format(also_right))
    assert not passes(problem, code.format(wrong))


def test_the_tolerance_of_a_row_counts_where_a_value_is_a_float() -> None:
    assert one("humanevalplus", {**HUMANEVAL, "atol": 1e-4}).tolerance == 1e-4
    assert one("mbppplus", {**MBPP, "atol": 1e-4}).tolerance == 0.0
    solution = "def add(a, b):\n    return a / 3 + b\n"
    assert one("mbppplus", {**MBPP, "canonical_solution": solution, "plus_input": []}).tolerance == 1e-6


def test_values_that_are_no_data_and_inputs_that_are_no_arguments_are_left_out_and_counted() -> None:
    solution = "import re\n\n\ndef add(a, b):\n    return re.search(a, b) if a else 1 / 0 if b else 7\n"
    row = {**MBPP, "canonical_solution": solution, "base_input": [["a", "ab"], ["", ""], ["", "x"]], "plus_input": {}}
    (found,) = imported("mbppplus", row)
    assert found.problem is not None
    assert [str(case) for case in found.problem.golden_tests] == ["assert add('', '') == 7"]
    assert found.status == "some"
    assert len(found.left_out) == 2
    (found,) = imported("mbppplus", {**MBPP, "task_id": "Mbpp/124", "base_input": [[10**400, 1], [1, 2]]})
    assert found.left_out[0].reason == "base_input: int too large to convert to float"


def test_a_value_that_is_larger_than_a_test_may_be_is_left_out() -> None:
    solution = "def add(a, b):\n    return [0] * a\n"  # 1,000,000 characters on the wire, 1,500,000 in a test
    row = {**MBPP, "canonical_solution": solution, "base_input": [[500_000, 0], [2, 0]], "plus_input": []}
    (found,) = imported("mbppplus", row)
    assert found.problem is not None
    assert [str(case) for case in found.problem.golden_tests] == ["assert add(2, 0) == [0, 0]"]
    assert [each.reason for each in found.left_out] == ["too_long"]


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"canonical_solution": "def other(a):\n    return a\n"}, "must define add, got other"),
        ({"atol": "much"}, "atol must be in"),
        ({"base_input": "none"}, "base_input must be a list of lists"),
        ({"plus_input": [1]}, "plus_input must be a list of lists"),
        ({"entry_point": None}, "entry_point"),
        ({"canonical_solution": "def add(:"}, "must be Python"),
    ],
)
def test_a_row_that_is_no_problem_says_why(changes: dict[str, Any], why: str) -> None:
    (found,) = find_source("mbppplus").drafts([{**MBPP, **changes}])
    assert isinstance(found, Unreadable)
    assert why in found.reason


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.gz"])
def test_the_file_is_imported_and_checked_by_name(
    suffix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / f"MbppPlus{suffix}"
    content = json.dumps(MBPP).encode() + b"\n"
    source.write_bytes(gzip.compress(content) if suffix.endswith(".gz") else content)
    assert [row["task_id"] for row in local_rows(source)] == ["Mbpp/9000"]
    assert main(["data", "check", str(source)]) == 2
    assert "codea1 data import mbppplus" in capsys.readouterr().err
    problems = tmp_path / "problems.jsonl"
    assert main(["data", "import", "mbppplus", str(source), "-o", str(problems)]) == 0
    assert [problem.problem_id for problem in read_problems(problems)] == ["Mbpp/9000"]
    assert main(["data", "check", str(problems)]) == 0


def test_a_row_of_inputs_says_that_it_has_no_script() -> None:
    for source, row in (("mbppplus", MBPP), ("humanevalplus", HUMANEVAL)):
        (found,) = find_source(source).drafts([row], with_scripts=True)
        assert isinstance(found, Unreadable)
        assert found.reason.startswith("a row must have a script to be judged by one, got inputs alone")


TASK = {
    "task_id": "BigCodeBench/9000",
    "entry_point": "task_func",
    "canonical_solution": "    return sorted(numbers)\n",
    "test": "import unittest\n\nclass TestCases(unittest.TestCase):\n    def test_case_1(self):\n"
    "        self.assertEqual(task_func([2, 1]), [1, 2])\n",
}
COMPLETE = 'def task_func(numbers):\n    """Sort numbers."""\n'


@pytest.mark.parametrize(
    "named",
    [
        {"complete_prompt": COMPLETE, "instruct_prompt": "Sort.", "code_prompt": "def task_func(numbers):\n"},
        {"prompt": COMPLETE, "instruction": "Sort."},
    ],
)
def test_bigcodebench_is_read_under_its_older_names_too(named: dict[str, str]) -> None:
    problem = one("bigcodebench", {**TASK, **named})
    assert problem.question == COMPLETE
    assert [str(case) for case in problem.hidden_tests] == ["assert task_func([2, 1]) == [1, 2]"]
