"""Loaders of contests and of sets about functions, on rows with the fields of the real ones."""

import base64
import dataclasses
import json
import pickle
import zlib
from pathlib import Path
from typing import Any

import pytest
from imported_rows import draft, jsonl, problems_from, unreadable

from codea1_env.arena.arena import Arena
from codea1_env.cli import main
from codea1_env.judging.problems.importing import Imported, import_drafts
from codea1_env.problems import Problem, read_problems
from codea1_env.problems.contamination import Contamination
from codea1_env.problems.sources import Draft, Unreadable, find_source
from codea1_env.problems.sources.functions import generic_source
from codea1_env.sandbox import LocalSandbox

SUM = "n = int(input())\nprint(sum(map(int, input().split())) if n else 0)\n"
APPS_ROW = {
    "problem_id": 17,
    "question": "Read n and n numbers; print their sum.",
    "solutions": json.dumps(["print 1", SUM]),
    "input_output": json.dumps({"inputs": ["3\n1 2 3\n", "0\n\n"], "outputs": ["6 \n", "0\n"]}),
    "difficulty": "introductory",
    "url": "https://example.org/17",
    "starter_code": "",
}
APPS_CALL_ROW = APPS_ROW | {
    "problem_id": 18,
    "solutions": json.dumps(["class Solution:\n    def add(self, a: int, b: int) -> int:\n        return a + b\n"]),
    "input_output": json.dumps({"fn_name": "add", "inputs": [[1, 2], [-1, 1]], "outputs": [[3], [0]]}),
    "starter_code": "class Solution:\n    def add(self, a: int, b: int) -> int:\n        ",
}
CONTESTS_ROW = {
    "name": "1_A. Sum",
    "description": "Print the sum.",
    "difficulty": 7,
    "solutions": {"language": [2, 1, 3], "solution": ["int main() {}", "print 1", SUM]},
    "public_tests": {"input": ["1\n5\n"], "output": ["5\n"]},
    "private_tests": {"input": ["2\n5 6\n"], "output": ["11\n"]},
    "generated_tests": {
        "input": [f"1\n{i}\n" for i in range(100)],
        "output": [f"{i}\n" for i in range(100)],
    },
}


def packed(records: object) -> str:
    return base64.b64encode(zlib.compress(pickle.dumps(json.dumps(records)))).decode()


LIVE_ROW = {
    "question_title": "Sum",
    "question_content": "Print the sum.",
    "platform": "atcoder",
    "question_id": "abc1_a",
    "starter_code": "",
    "difficulty": "easy",
    "public_test_cases": json.dumps([{"input": "1\n5\n", "output": "5\n", "testtype": "stdin"}]),
    "private_test_cases": packed([{"input": "2\n5 6\n", "output": "11\n", "testtype": "stdin"}]),
    "metadata": "{}",
}
LIVE_CALL_ROW = LIVE_ROW | {
    "question_id": "3000",
    "starter_code": "class Solution:\n    def add(self, a: int, b: List[int]) -> int:\n        ",
    "public_test_cases": json.dumps([{"input": "1\n[2, 3]", "output": "6", "testtype": "functional"}]),
    "private_test_cases": json.dumps([{"input": "1\n[]", "output": "1", "testtype": "functional"}]),
    "metadata": json.dumps({"func_name": "add"}),
}
HUMANEVAL_ROW = {
    "task_id": "HumanEval/900",
    "prompt": "def twice(x):\n    '''Twice x.'''\n",
    "canonical_solution": "    return 2 * x\n",
    "entry_point": "twice",
    "test": "METADATA = {}\n\n\ndef check(candidate):\n    assert candidate(2) == 4\n    assert candidate(0) == 0\n",
}
MBPP_ROW = {
    "task_id": 601,
    "text": "Write a function to double a number.",
    "code": "def twice(x):\n    return 2 * x",
    "test_list": ["assert twice(1) == 2"],
    "test_setup_code": "",
    "challenge_test_list": ["assert twice(-1) == -2"],
}
UNLEAKED_ROW = {
    "func_name": "sign",
    "code": "def sign(x):\n    return (x > 0) - (x < 0)",
    "prompt": "The sign of x.",
    "task_id": "10",
    "test_list": ["assert sign(3) == 3", "assert sign(0) == 1"],  # both wrong: the function is the oracle
}
BIG_ROW = {
    "task_id": "BigCodeBench/900",
    "complete_prompt": "import math\n\ndef task_func(x):\n    '''The integer root.'''\n",
    "instruct_prompt": "The integer root.",
    "canonical_solution": "    return math.isqrt(x)\n",
    "code_prompt": "import math\ndef task_func(x):\n",
    "test": "import unittest\n\nclass TestCases(unittest.TestCase):\n    def test_one(self):\n"
    "        self.assertEqual(task_func(9), 3)\n        self.assertTrue(isinstance(task_func(9), int))\n"
    "    def test_two(self):\n        result = task_func(10)\n        self.assertEqual(result, 3, 'floor')\n"
    "        with self.assertRaises(ValueError):\n            task_func(-1)\n",
    "entry_point": "task_func",
    "libs": "['math']",
}


OPENED: list[LocalSandbox] = []


@pytest.fixture(scope="module", autouse=True)
def _opened(sandbox: LocalSandbox) -> None:
    """`imported` and `passes` have one sandbox."""
    OPENED[:] = [sandbox]


def imported(source: str, *rows: dict[str, Any]) -> list[Imported]:
    return list(import_drafts(find_source(source).drafts(rows), OPENED[0]))


def asserts(problem: Problem) -> list[str]:
    return [str(case) for case in (*problem.golden_tests, *problem.hidden_tests)]


@pytest.mark.parametrize(
    ("source", "row", "expected"),
    [
        ("apps", APPS_ROW, [r"assert solve('3\n1 2 3\n') == '6'", r"assert solve('0\n\n') == '0'"]),
        ("apps", APPS_CALL_ROW, ["assert add(1, 2) == 3", "assert add(-1, 1) == 0"]),
        ("taco", APPS_ROW | {"problem_id": None, "name": "sum"}, [r"assert solve('3\n1 2 3\n') == '6'",
                                                                  r"assert solve('0\n\n') == '0'"]),
        ("humaneval", HUMANEVAL_ROW, ["assert twice(2) == 4", "assert twice(0) == 0"]),
        ("mbpp", MBPP_ROW, ["assert twice(1) == 2", "assert twice(-1) == -2"]),
    ],
)  # fmt: skip
def test_a_row_becomes_a_problem_whose_reference_passes_its_tests(
    source: str, row: dict[str, Any], expected: list[str]
) -> None:
    (found,) = imported(source, row)
    assert found.problem is not None, found
    assert (found.status, asserts(found.problem)) == ("all", expected)
    assert (found.problem.source, found.problem.license) == (find_source(source).hub_id, find_source(source).license)


def test_a_whole_program_is_asked_for_as_a_function_of_text() -> None:
    problem = draft("apps", APPS_ROW).problem
    assert problem.entry_point == "solve"
    assert problem.starter_code == "def solve(text):"
    assert problem.question.startswith("Read n and n numbers; print their sum.\n\nWrite a function `solve(text)`.")


def test_a_program_may_read_bytes_and_lines_and_exit(tmp_path: Path) -> None:
    programs = [
        "import sys\nprint(sum(map(int, sys.stdin.buffer.read().split()[1:])))\nsys.exit(0)",
        "import sys\nnext(sys.stdin)\nn = sum(map(int, sys.stdin.readline().split()))\n"
        "sys.stdout.buffer.write(str(n).encode())",
        "import sys\nif __name__ == '__main__':\n    n, *rest = map(int, sys.stdin.read().split())\n"
        "    print(sum(rest), end='  \\n\\n')",
    ]
    rows = [APPS_ROW | {"problem_id": i, "solutions": json.dumps([program])} for i, program in enumerate(programs)]
    assert [found.status for found in imported("apps", *rows)] == ["all", "all", "all"]


def test_a_function_of_text_gets_the_lines_that_a_program_would_read() -> None:
    calls = {"inputs": ["ab c\r\nd\r\n", "\r"], "outputs": ["4\r\n", "0"]}
    row = APPS_ROW | {"solutions": json.dumps(["print(len(input()))\n"]), "input_output": json.dumps(calls)}
    (found,) = imported("apps", row)
    assert found.problem is not None
    assert asserts(found.problem) == [r"assert solve('ab c\nd\n') == '4'", r"assert solve('\n') == '0'"]
    assert passes(found.problem, "def solve(text):\n    return str(len(text.split('\\n')[0]))\n")


def test_a_method_may_use_the_names_that_its_signature_takes_for_granted() -> None:
    code = "class Solution:\n    def add(self, xs: List[int], k: Optional[int]) -> int:\n        return sum(xs) + k\n"
    calls = {"fn_name": "add", "inputs": [[[1, 2], 3], [[], 1]], "outputs": [6, 1]}
    row = APPS_CALL_ROW | {"solutions": json.dumps([code]), "input_output": json.dumps(calls), "starter_code": code}
    (found,) = imported("apps", row)
    assert (found.status, found.problem.starter_code) == ("all", "def add(xs: List[int], k: Optional[int]):")  # type: ignore[union-attr]


def test_outputs_are_taken_out_of_their_lists_where_all_of_them_stand_in_one() -> None:
    code = "def twice(x):\n    return [x] * x\n"
    calls = {"fn_name": "twice", "inputs": [[1], [2]], "outputs": [[1], [2, 2]]}
    row = APPS_CALL_ROW | {"solutions": json.dumps([code]), "input_output": json.dumps(calls), "starter_code": ""}
    assert [found.status for found in imported("apps", row)] == ["all"]


def test_the_output_of_a_script_has_the_lines_that_it_is_compared_by() -> None:
    code, calls = "print('a\\x1cb')\n", {"inputs": ["\n"], "outputs": ["a\x1cb\n"]}
    row = APPS_ROW | {"solutions": json.dumps([code]), "input_output": json.dumps(calls)}
    source = dataclasses.replace(find_source("apps"), programs_as="program")
    with LocalSandbox() as sandbox:
        found = list(import_drafts(source.drafts([row]), sandbox))
    assert [each.status for each in found] == ["all"]


def test_a_program_that_ends_itself_is_a_reference_of_a_function_too() -> None:
    code = f"{SUM}exit()\n"
    assert [found.status for found in imported("apps", APPS_ROW | {"solutions": json.dumps([code])})] == ["all"]


def test_a_method_of_a_solution_class_becomes_a_function() -> None:
    problem = draft("apps", APPS_CALL_ROW).problem
    assert problem.starter_code == "def add(a: int, b: int):"
    assert str(problem.reference_solution).endswith("def add(*arguments):\n    return Solution().add(*arguments)\n")


def test_fields_in_pythons_spelling_are_read_and_nothing_is_evaluated(tmp_path: Path) -> None:
    spelt = APPS_ROW | {"input_output": str({"inputs": ["3\n1 2 3\n"], "outputs": ["6\n"]})}
    assert asserts(draft("apps", spelt).problem) == [r"assert solve('3\n1 2 3\n') == '6'"]
    canary = tmp_path / "canary"
    for field in ("input_output", "solutions"):
        hostile = APPS_ROW | {field: f"__import__('pathlib').Path({str(canary)!r}).touch()"}
        unreadable("apps", hostile)
    assert not canary.exists()
    calls = str({"fn_name": "add", "inputs": [[{(1, 2): 3}], [{"1": 3}]], "outputs": [{(1, 2): 3}, {"1": 3}]})
    row = APPS_CALL_ROW | {"input_output": calls}  # JSON has no such keys
    assert asserts(draft("apps", row).problem) == [
        "assert add({(1, 2): 3}) == {(1, 2): 3}",
        "assert add({1: 3}) == {1: 3}",
    ]


def test_code_contests_keeps_python_3_and_a_bounded_number_of_hidden_tests() -> None:
    (found,) = imported("code_contests", CONTESTS_ROW)
    assert found.problem is not None
    assert (found.problem.problem_id, found.problem.difficulty) == ("1_A. Sum", "7")
    assert asserts(found.problem)[:2] == [r"assert solve('1\n5\n') == '5'", r"assert solve('2\n5 6\n') == '11'"]
    assert len(found.problem.hidden_tests) == 64
    assert sum("more than 64" in each.reason for each in found.left_out) == 1 + 100 - 1 - 64


def test_live_code_bench_has_no_reference_and_is_kept_unchecked() -> None:
    text, call = imported("livecodebench", LIVE_ROW, LIVE_CALL_ROW)
    assert text.problem is not None
    assert call.problem is not None
    assert [text.status, call.status] == ["unchecked", "unchecked"]
    assert asserts(text.problem) == [r"assert solve('1\n5\n') == '5'", r"assert solve('2\n5 6\n') == '11'"]
    assert asserts(call.problem) == ["assert add(1, [2, 3]) == 6", "assert add(1, []) == 1"]
    assert call.problem.starter_code == "def add(a: int, b: List[int]):"


def test_a_pickle_is_read_and_never_run(tmp_path: Path) -> None:
    canary = tmp_path / "canary"

    class Bomb:
        def __reduce__(self) -> Any:
            return Path.touch, (canary,)

    hostile = base64.b64encode(zlib.compress(pickle.dumps(Bomb()))).decode()
    found = unreadable("livecodebench", LIVE_ROW | {"private_test_cases": hostile})
    assert "a pickle must hold one text, got the instruction" in found.reason
    assert not canary.exists()
    assert pickle.loads(pickle.dumps("é" * 300)) == "é" * 300
    long = packed([{"input": "é" * 300 + "\n", "output": "1\n"}])
    assert "é" * 300 in asserts(draft("livecodebench", LIVE_ROW | {"private_test_cases": long}).problem)[1]


def test_what_unpacks_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codea1_env.problems.sources.contests.MAX_UNPACKED", 1 << 16)
    found = unreadable("livecodebench", LIVE_ROW | {"private_test_cases": packed(["x" * (1 << 20)])})
    assert "must unpack to at most 65536 bytes, got more" in found.reason


def test_functions_for_testers_are_usable_though_their_tests_are_wrong_and_get_the_right_values() -> None:
    (found,) = imported("unleakedtestbench", UNLEAKED_ROW)
    assert found.problem is not None
    assert (found.status, found.problem.entry_point, len(found.failed)) == ("some", "sign", 2)
    assert asserts(found.problem) == ["assert sign(3) == 1", "assert sign(0) == 0"]


def test_functions_for_testers_have_what_their_own_harness_imports() -> None:
    code = "def sign(x: List[int]):\n    return bool(re.match('[0-9]+', str(x))) + math.floor(np.sign(0))"
    found = draft("unleakedtestbench", {**UNLEAKED_ROW, "code": code}).problem
    assert found.imports.splitlines() == ["import re", "import math", "import numpy as np", "from typing import List"]
    assert found.packages == ("numpy",)
    assert draft("unleakedtestbench", UNLEAKED_ROW).problem.imports == ""


def test_unittest_asserts_are_read_and_what_is_no_call_is_left_out() -> None:
    (found,) = imported("bigcodebench", BIG_ROW)
    assert found.problem is not None
    assert asserts(found.problem) == ["assert task_func(9) == 3", "assert task_func(10) == 3"]
    assert found.status == "all", "by its script"
    assert found.problem.test_script == BIG_ROW["test"]
    assert len(found.left_out) == 2


@pytest.mark.parametrize(
    ("source", "changes", "reason"),
    [
        ("apps", {"solutions": "[]"}, "one of the solutions must be Python 3, got 0"),
        ("apps", {"solutions": json.dumps(["print 1"])}, "one of the solutions must be Python 3, got 1"),
        ("apps", {"input_output": ""}, "input_output must hold JSON, got an empty text"),
        ("apps", {"input_output": json.dumps({"inputs": ["1"], "outputs": []})}, "must be equally many, got 1 and 0"),
        ("apps", {"input_output": json.dumps({"inputs": [1], "outputs": ["1"]})}, "must be a text or a list of lines"),
        ("apps", {"input_output": json.dumps({"fn_name": "g", "inputs": [], "outputs": []})}, "must define g"),
        ("code_contests", {}, "solutions must be a record of language and solution"),
        ("livecodebench", {}, "tests must be a list of records, got 'None'"),
        ("bigcodebench", {}, "a row must have the text entry_point"),
        ("bigcodebench", BIG_ROW | {"entry_point": "other"}, "must define other, got task_func"),
        ("unleakedtestbench", {}, "a row must have the text code"),
        ("mbpp", {}, "a row must have the text code"),
    ],
)
def test_a_row_that_is_no_problem_says_why(source: str, changes: dict[str, Any], reason: str) -> None:
    assert reason in unreadable(source, APPS_ROW | changes).reason


def test_any_rows_become_problems_by_naming_their_fields(tmp_path: Path) -> None:
    rows = [{"id": 5, "ask": "Double x.", "answer": "def f(x):\n    return 2 * x", "checks": ["assert f(2) == 4"]}]
    source, output = tmp_path / "in.json", tmp_path / "out.jsonl"
    source.write_text(json.dumps(rows))
    fields = "question=ask,reference_solution=answer,tests=checks,problem_id=id"
    arguments = ["data", "import", "rows", str(source), "-o", str(output)]
    assert main([*arguments, "--fields", fields, "--license", "MIT"]) == 0
    (problem,) = read_problems(output)
    assert (problem.problem_id, problem.entry_point, problem.license) == ("5", "f", "MIT")
    assert main([*arguments, "--fields", "asks=ask"]) == 2
    assert main(["data", "import", "rows", "-o", str(output)]) == 2
    assert main(["data", "import", "mbpp", str(source), "-o", str(output), "--fields", fields]) == 2


def test_a_row_may_be_of_any_kind_and_a_pair_means_what_it_does_in_a_problem_file(tmp_path: Path) -> None:
    rows = [
        {"question": "Twice.", "reference_solution": "class Solution:\n    def f(self, x):\n        return 2 * x\n",
         "entry_point": "Solution().f", "kind": "method", "golden_tests": [["Solution().f(2)", "4"]]},
        {"question": "Pair.", "reference_solution": "def g(x):\n    return x, 2\n", "golden_tests": [["g(1)", "1, 2"]]},
        {"question": "One.", "reference_solution": "def h(x):\n    return x\n", "golden_tests": [["h(1)", "1, 2"]]},
    ]  # fmt: skip
    source = jsonl(tmp_path / "in.jsonl", *rows)
    method, pair = problems_from(source, "rows", tmp_path / "out.jsonl", "--fields", "kind=kind")
    assert (method.kind, asserts(method)) == ("method", ["assert Solution().f(2) == 4"])
    assert asserts(pair) == ["assert g(1) == (1, 2)"]
    report = [json.loads(line) for line in (tmp_path / "out.jsonl.report.jsonl").read_text().splitlines()]
    assert [row["status"] for row in report] == ["all", "all", "unusable"], "1 is not (1, 2)"


def test_what_else_a_problem_may_say_is_read_where_it_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    row = {"question": "Half of x.", "reference_solution": "def f(x):\n    return x / 2", "checker": "close",
           "tests": ["assert f(3) == 1.5"], "raises": ["KeyError"], "kind": "arithmetic"}  # fmt: skip
    source, output = tmp_path / "in.json", tmp_path / "out.jsonl"
    source.write_text(json.dumps([row]))
    arguments = ["data", "import", "rows", str(source), "-o", str(output)]
    assert main(arguments) == 0
    assert "not read; --fields kind=kind,checker=checker,raises=raises reads them" in capsys.readouterr().err
    assert [(each.checker, each.raises, each.kind) for each in read_problems(output)] == [("", (), "function")]
    assert main([*arguments, "--fields", "checker=checker,raises=raises"]) == 0
    assert [(each.checker, each.raises) for each in read_problems(output)] == [("close", ("KeyError",))]
    assert main([*arguments, "--fields", "kind=kind"]) == 1
    assert "kind must be one of function" in output.with_name("out.jsonl.report.jsonl").read_text()


LONG = "Given a list of whole numbers return how many of them are larger than the mean of all of the numbers."
LONG_CODE = "def f(xs):\n    mean = sum(xs) / len(xs) if xs else 0\n    return sum(x > mean and x == x for x in xs)"


@pytest.mark.parametrize(
    ("question", "code", "shared"),
    [
        (f"Please answer: {LONG.upper()} Thanks!", "def f(x): return 1", "a run of 13 words"),
        ("Another one.", LONG_CODE.replace("f(", "g(", 1) + "  # same", "its reference"),
        ("Another one.", LONG_CODE.replace("x > mean", "x < mean"), ""),
        (LONG[:40], "def f(x): return 1", ""),
    ],
)
def test_what_an_evaluation_set_holds_is_found_out(question: str, code: str, shared: str) -> None:
    evaluation = Contamination([Problem("eval/1", LONG, "f", reference_solution=LONG_CODE)])
    entry_point = "g" if "def g(" in code else "f"
    why = evaluation.of(Problem("train/1", question, entry_point, reference_solution=code))
    assert why == (f"shares {shared} with the evaluation problem eval/1" if shared else "")


def test_a_reference_with_a_number_that_python_does_not_write_is_compared_too() -> None:
    code = LONG_CODE.replace("0\n", f"{hex(10**5000)}\n")
    evaluation = Contamination([Problem("eval/1", LONG, "f", reference_solution=code)])
    same, other = (Problem("train/1", "?", "f", reference_solution=each) for each in (f"{code}  # 1", LONG_CODE))
    assert evaluation.of(same) == "shares its reference with the evaluation problem eval/1"
    assert not evaluation.of(other)


@pytest.mark.parametrize(
    ("kind", "entry_point", "form"),
    [
        ("method", "Solution().f", "class Solution:\n    {}"),
        ("class", "F", "class F:\n    {}"),
        ("coroutine", "f", "async {}"),
    ],
)
def test_references_of_other_kinds_are_compared_too(kind: Any, entry_point: str, form: str) -> None:
    code = form.format(LONG_CODE.replace("\n", "\n    "))
    one, other = (
        Problem(f"p/{n}", f"Question {n}.", entry_point, reference_solution=code, kind=kind) for n in range(2)
    )
    assert Contamination([one]).of(other) == "shares its reference with the evaluation problem p/0"


def test_contaminated_rows_are_left_out_and_reported(tmp_path: Path) -> None:
    evaluation = tmp_path / "evaluation.jsonl"
    evaluation.write_text(draft("mbpp", MBPP_ROW).problem.to_json() + "\n")
    source = jsonl(tmp_path / "in.jsonl", MBPP_ROW, MBPP_ROW | {"task_id": 609, "text": "Write another function."})
    (problem,) = problems_from(source, "mbpp", tmp_path / "out.jsonl", "--against", str(evaluation))
    assert problem.problem_id == "Mbpp/609"
    report = (tmp_path / "out.jsonl.report.jsonl").read_text()
    assert "shares a run of 13 words with the evaluation problem Mbpp/601" in report


# What the sets' own graders take for right


def call_row(source: str, values: list[Any], code: str) -> dict[str, Any]:
    """A row about f(n) for n = 1, 2, ..., in the form of a set whose tests are JSON."""
    if source == "livecodebench":
        records = [{"input": str(n), "output": json.dumps(value)} for n, value in enumerate(values, 1)]
        tests = {"public_test_cases": json.dumps(records[:1]), "private_test_cases": json.dumps(records[1:])}
        return LIVE_CALL_ROW | tests | {"metadata": json.dumps({"func_name": "f"}), "starter_code": ""}
    calls = {"fn_name": "f", "inputs": [[n] for n in range(1, len(values) + 1)], "outputs": values}
    return APPS_CALL_ROW | {"solutions": json.dumps([code]), "input_output": json.dumps(calls), "starter_code": ""}


def passes(problem: Problem, program: str) -> bool:
    (grade,) = Arena(OPENED[0]).grade(problem, [program], (*problem.golden_tests, *problem.hidden_tests))
    assert grade.executes
    return grade.all_passed


@pytest.mark.parametrize(
    ("source", "values", "right", "wrong"),
    [
        ("livecodebench", [[1, 1], [2, 1]], "(n, 1)", "(1, n)"),
        ("livecodebench", [[1, [1]], [2, [1]]], "(n, [1])", "[n, (1,)]"),  # the outermost alone
        ("livecodebench", [[], [1]], "tuple(range(1, n))", "set()"),
        ("livecodebench", [5, 5], "5", "(5,)"),
        ("livecodebench", [[5], 5], "(5,) if n == 1 else 5", "5"),
        ("apps", [[1, 1], [2, 1]], "(n, 1)", "(1, n)"),
        ("apps", [[[1, 1]], [[2, 1]]], "(n, 1)", "[n, 2]"),
        ("apps", [[[[1, 1], [2]]], [[[2, 1], [2]]]], "[(n, 1), (2,)]", "[(n, 1), {2}]"),  # each in a list of its own
        ("taco", [[[[1, 1], [2]]], [[[2, 1], [2]]]], "((n, 1), (2,))", "[(n, 1, 2)]"),
        ("taco", [[[[[1]]]], [[[[2]]]]], "[([n],)]", "[[(n,)]]"),
    ],
)
def test_a_tuple_is_the_list_that_is_expected_as_far_as_the_sets_own_grader_takes_it(
    source: str, values: list[Any], right: str, wrong: str
) -> None:
    code = "def f(n):\n    return {}\n"
    (found,) = imported(source, call_row(source, values, code.format(right)))
    assert found.problem is not None, found
    assert found.status == ("unchecked" if source == "livecodebench" else "all")
    assert passes(found.problem, code.format(right))
    assert not passes(found.problem, code.format(wrong))


def test_only_a_set_that_expects_a_list_has_a_checker() -> None:
    assert draft("livecodebench", call_row("livecodebench", [1, "[1]"], "")).problem.checker == ""
    assert draft("apps", call_row("apps", [[1], [2]], "def f(n):\n    return n")).problem.checker == ""


THIRD = "n = int(input())\nprint(n / 3)\n"
ROWS_OF_PROGRAMS = {
    "apps": APPS_ROW
    | {"solutions": json.dumps([THIRD]), "input_output": json.dumps({"inputs": ["4"], "outputs": [f"{4 / 3}\n"]})},
    "code_contests": CONTESTS_ROW
    | {
        "solutions": {"language": [3], "solution": [THIRD]},
        "public_tests": {"input": ["4\n"], "output": [f"{4 / 3}\n"]},
        "private_tests": None,
        "generated_tests": None,
    },
    "livecodebench": LIVE_ROW
    | {
        "public_test_cases": json.dumps([{"input": "4\n", "output": f"{4 / 3}\n", "testtype": "stdin"}]),
        "private_test_cases": "[]",
    },
}
ROWS_OF_PROGRAMS["taco"] = ROWS_OF_PROGRAMS["apps"]


@pytest.mark.parametrize("as_programs", [False, True])
@pytest.mark.parametrize(
    ("source", "right", "wrong"),
    [
        ("apps", "%.5f", "%.4f"),
        ("taco", "%.5f", "%.4f"),
        ("code_contests", "%.5f", "%.4f"),
        ("livecodebench", "%.16f000", "%.15f"),
    ],
)
def test_what_whole_programs_print_is_compared_as_each_sets_own_grader_does(
    source: str, right: str, wrong: str, as_programs: bool
) -> None:
    found = find_source(source)
    if as_programs:
        found = dataclasses.replace(found, programs_as="program")
    (one,) = found.drafts([ROWS_OF_PROGRAMS[source]])
    assert isinstance(one, Draft)
    for printed, is_right in ((right, True), (wrong, False), ("%r\r\n\n", True), ("x%r", False)):
        code = f"print({printed!r} % (int(input()) / 3))\n"
        if not as_programs:
            code = f"def solve(text):\n    return {printed!r} % (int(text) / 3)\n"
        assert passes(one.problem, code) == is_right, code


@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize("source", ["apps", "taco"])
def test_names_of_a_record_that_are_whole_numbers_are_its_keys(source: str, wrapped: bool) -> None:
    values: list[Any] = [{"1": 2, "-3": 4}, {"2": 2, "-3": 4}]
    row = call_row(source, [[value] for value in values] if wrapped else values, "def f(n):\n    return {n: 2, -3: 4}")
    (found,) = imported(source, row)
    assert found.status == "all"
    calls = {"fn_name": "f", "inputs": [[{"1": 5}], [{"a": 5}]], "outputs": [5, 5]}
    row |= {"input_output": json.dumps(calls), "solutions": json.dumps(["def f(x):\n    return x.get(1, x.get('a'))"])}
    (found,) = imported(source, row)
    assert found.problem is not None
    assert [case.call for case in found.problem.golden_tests] == ["f({1: 5})", "f({'a': 5})"]


# Both forms of an answer about a function

FORMS = {
    "a function": "def f(n):\n    return n + 1\n",
    "a class": "class Solution:\n    def f(self, n: int) -> int:\n        return n + 1\n",
    "a static method": "class Solution:\n    @staticmethod\n    def f(n):\n        return n + 1\n",
    "methods that call each other": "class Solution:\n    def g(self, n):\n        return n + 1\n\n"
    "    def f(self, n):\n        return self.g(n)\n",
    "an inherited one": "class Base:\n    def f(self, n):\n        return n + 1\n\n\nclass Solution(Base):\n    pass\n",
    "a state of its own": "class Solution:\n    def __init__(self):\n        self.seen = 0\n\n    def f(self, n):\n"
    "        self.seen += 1\n        return n + self.seen\n",
    "both": "class Solution:\n    def f(self, n):\n        return 0\n\n\ndef f(n):\n    return n + 1\n",
    "a name for it": "class Solution:\n    def g(self, n):\n        return n + 1\n\n\nf = Solution().g\n",
    "a fence": "Here:\n\n```python\nclass Solution:\n    def f(self, n):\n        return n + 1\n```\n\nTry it:\n\n"
    "```python\nprint(Solution().f(1))\n```\n",
    "prose around it": "The answer:\n\nclass Solution:\n    def f(self, n):\n        return n + 1\n\n"
    "That is it, isn't it?\n",
}


@pytest.mark.parametrize("answer", FORMS.values(), ids=FORMS)
def test_a_question_about_a_function_takes_a_function_and_a_solution_class(answer: str) -> None:
    problem = draft("livecodebench", call_row("livecodebench", [2, 3, 4], "")).problem
    assert (problem.kind, problem.entry_point) == ("function", "f")
    assert passes(problem, answer)


@pytest.mark.parametrize(
    "answer",
    [
        "class Solution:\n    def g(self, n):\n        return n + 1\n",
        "class Answer:\n    def f(self, n):\n        return n + 1\n",
        "Solution = 3\n",
        "class Solution:\n    pass\n",
    ],
)
def test_a_class_without_the_method_defines_no_function(answer: str) -> None:
    problem = draft("livecodebench", call_row("livecodebench", [2, 3], "")).problem
    with LocalSandbox() as sandbox:
        (grade,) = Arena(sandbox).grade(problem, [answer], problem.golden_tests)
    assert grade.executes is False


def test_a_name_of_the_library_stands_for_no_function_of_a_solution() -> None:
    """What programs of such sets take for granted has a `gcd`, and so may the program."""
    method = "class Solution:\n    def gcd(self, a, b):\n        return a if not b else self.gcd(b, a % b)\n"
    calls = {"fn_name": "gcd", "inputs": [[4, 6], [9, 12]], "outputs": [2, 3]}
    row = APPS_CALL_ROW | {"input_output": json.dumps(calls), "solutions": json.dumps([method]), "starter_code": method}
    (found,) = imported("apps", row)
    assert found.problem is not None
    assert found.status == "all"
    assert "gcd" not in found.problem.imports
    assert "factorial" in found.problem.imports
    mine = "def gcd(a, b):\n    while b:\n        a, b = b, a % b\n    return a\n"
    wrong = method.replace("return a if", "return -a if")
    answers = {
        mine: True,
        method: True,
        f"from math import gcd\n{method}": True,
        f"from math import gcd\n{wrong}": False,
    }
    for answer, is_right in answers.items():
        assert passes(found.problem, answer) is is_right, answer
    (grade,) = Arena(OPENED[0]).grade(found.problem, ["x = 1\n"], found.problem.golden_tests)
    assert grade.executes is False


# One bad piece


def test_one_pair_that_is_no_test_leaves_the_others_of_its_row() -> None:
    texts = {"inputs": ["3\n1 2 3\n", 7, "0\n\n"], "outputs": ["6", "7", "0"]}
    (found,) = imported("apps", APPS_ROW | {"input_output": json.dumps(texts)})
    assert found.problem is not None
    assert len(found.problem.golden_tests) == 2
    assert [left.reason[:32] for left in found.left_out] == ["an input or output must be a tex"]
    calls = {"fn_name": "add", "inputs": [[1, 2], 3, [4, 5]], "outputs": [3, 3, 9]}
    (found,) = imported("apps", APPS_CALL_ROW | {"input_output": json.dumps(calls)})
    assert [left.reason[:30] for left in found.left_out] == ["an input must be a list of arg"]
    assert found.status == "some"


@pytest.mark.parametrize(("value", "reason"), [("9" * 70_000, "not_plain_data"), ("[" * 250 + "]" * 250, "too_deep")])
def test_a_value_that_is_no_test_of_its_row_is_left_out_alone(value: str, reason: str) -> None:
    calls = f'{{"fn_name": "add", "inputs": [[1, 2], [0, {value}]], "outputs": [3, 4]}}'
    (found,) = imported("apps", APPS_CALL_ROW | {"input_output": calls})
    assert found.problem is not None
    assert asserts(found.problem) == ["assert add(1, 2) == 3"]
    assert [left.reason for left in found.left_out] == [reason]


def test_a_whole_number_of_thousands_of_digits_is_a_value_like_others(tmp_path: Path) -> None:
    large = "1" + "0" * 4999
    calls = f'{{"fn_name": "add", "inputs": [[{large}, 1], [1, 2]], "outputs": [{large[:-1]}1, 3]}}'
    (found,) = imported("apps", APPS_CALL_ROW | {"input_output": calls})
    assert found.status == "all"
    source, out = tmp_path / "rows.jsonl", tmp_path / "out.jsonl"
    source.write_text(
        '{"question": "Q", "reference_solution": "def f(x):\\n    return x", "tests": ["assert f(1) == 1"], "more": '
        f"{large}}}\n"
    )
    problems_from(source, "rows", out)


TEXTS = ["assert f(1) == 2", "assert f(2) == 4"]
ROW = {"question": "Twice.", "reference_solution": "def f(x):\n    return 2 * x"}


@pytest.mark.parametrize(
    "tests",
    [
        TEXTS,
        "\n".join(TEXTS),
        json.dumps(TEXTS),
        json.dumps(TEXTS, indent=2),
        f"  {TEXTS!r}\n",
        [*TEXTS, f"assert f({'9' * 5000}) == 1"],
        "\n".join([TEXTS[0], f"assert f({'9' * 5000}) == 1", TEXTS[1]]),
        [f"    {each}" for each in TEXTS],
    ],
)
def test_tests_are_read_as_a_script_a_list_or_a_list_in_a_text(tests: object) -> None:
    (found,) = generic_source({}, "").drafts([ROW | {"tests": tests}])
    assert isinstance(found, Draft), found
    assert asserts(found.problem) == TEXTS
    (found,) = find_source("mbpp").drafts([MBPP_ROW | {"code": ROW["reference_solution"], "test_list": tests}])
    assert isinstance(found, Unreadable if isinstance(tests, str) and tests.startswith("assert") else Draft), found


@pytest.mark.parametrize("pairs", [[["f(1)", "2"]], '[["f(1)", "2"]]', [["f(1)", "2"], ["f(2)", 4], "f(3)"]])
def test_pairs_are_read_as_a_list_or_a_list_in_a_text(pairs: object) -> None:
    (found,) = generic_source({}, "").drafts([ROW | {"golden_tests": pairs}])
    assert isinstance(found, Draft), found
    assert asserts(found.problem) == ["assert f(1) == 2"]
    assert len(found.left_out) == (2 if len(pairs) == 3 else 0)  # type: ignore[arg-type]  # all are sized


@pytest.mark.parametrize(
    ("tests", "reason"),
    [
        (json.dumps({"inputs": [[1]], "outputs": [2]}), "tests must be a script or a list of asserts, got"),
        (json.dumps([{"input": 1, "output": 2}]), "tests must be a script or a list of asserts, got"),
        ([["f(1)", "2"]], "tests must be a script or a list of asserts, got"),
        (7, "tests must be a list of texts, got '7'"),
        ("assert g(1) == 2", "got calls of g"),
    ],
)
def test_tests_of_another_form_are_said_to_be_so(tests: object, reason: str) -> None:
    (found,) = generic_source({}, "").drafts([ROW | {"tests": tests}])
    assert isinstance(found, Unreadable)
    assert reason in found.reason
