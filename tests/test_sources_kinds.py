"""Sources of other kinds of problems: methods with nodes, generators, mxeval's form, programs that people got wrong.

And the check against evaluation sets that every import makes.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from imported_rows import draft, jsonl, problems_from

from codea1_env.cli import main
from codea1_env.judging.problems.importing import import_drafts
from codea1_env.problems import Problem, TestCase
from codea1_env.problems.contamination import _KINDS, Contamination, _marks
from codea1_env.problems.sources import Draft, Unreadable, find_source
from codea1_env.problems.sources.rows import local_rows
from codea1_env.sandbox import LocalSandbox

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"

MXEVAL = {
    "task_id": "MBPP/1",
    "prompt": '\n\ndef half (n):\n    """\n    Half of n.\n    >>> half(4)\n    2\n    """\n',
    "canonical_solution": "    return n // 2",
    "entry_point": "half",
    "test": "\n\nMETADATA = {}\n\n\ndef check(candidate):\n    assert candidate(4) == 2\n"
    "    assert candidate(7) == 3\n",
}
LEETCODE = {
    "task_id": "drop-first",
    "prompt": "from typing import *\nfrom functools import *\n",
    "completion": "class Solution:\n    def drop(self, head: Optional[ListNode], k: int) -> Optional[ListNode]:\n"
    "        while head and k:\n            head, k = head.next, k - 1\n        return head\n",
    "entry_point": "Solution().drop",
    "query": "Drop the first k nodes.\n\nPlease complete the following python code precisely:\n```python\n"
    "class Solution:\n    def drop(self, head: Optional[ListNode], k: int) -> Optional[ListNode]:\n```",
    "test": "def check(candidate):\n"
    "    assert is_same_list(candidate(head = list_node([1,2,3]), k = 1), list_node([2,3]))\n"
    "    assert candidate(head = list_node([1]), k = 2) == list_node([])\n",
    "meta": {"difficulty": "Easy"},
}


def usable(source: str, row: dict[str, Any]) -> Problem:
    with LocalSandbox() as sandbox:
        (found,) = import_drafts([draft(source, row)], sandbox)
    assert found.problem is not None, found.why_not
    assert found.status == "all"
    return found.problem


def test_mxevals_form_of_mbpp_is_a_signature_a_body_and_a_check() -> None:
    problem = usable("mbpp", MXEVAL)
    assert problem.problem_id == "Mbpp/1"
    assert problem.golden_tests == (TestCase("half(4)", "2"), TestCase("half(7)", "3"))
    assert problem.hidden_tests == ()


def test_a_leetcode_row_is_a_method_whose_nodes_are_lists_in_tests() -> None:
    problem = usable("leetcode", LEETCODE)
    assert (problem.kind, problem.entry_point, problem.difficulty) == ("method", "Solution().drop", "easy")
    assert problem.question == "Drop the first k nodes."
    assert problem.starter_code.startswith("class Solution:\n    def drop(self, head")
    assert problem.golden_tests == (
        TestCase("Solution().drop(head=[1, 2, 3], k=1)", "[2, 3]"),
        TestCase("Solution().drop(head=[1], k=2)", "[]"),
    )


@pytest.mark.parametrize(
    "said",
    [
        "You may return the answer", "You can return the result", "Return the answer", "return them",
        "return all root-to-leaf paths", "the combinations may be returned",
        "Return all values with the highest frequency", "You may return the valid IP addresses",
    ],
)  # fmt: skip
def test_a_leetcode_answer_that_may_be_in_any_order_has_a_checker(said: str) -> None:
    assert draft("leetcode", LEETCODE).problem.checker == ""
    row = {**LEETCODE, "query": LEETCODE["query"].replace("nodes.", f"nodes. {said} in any order.")}
    assert draft("leetcode", row).problem.checker == "unordered"
    assert draft("leetcode", {**row, "task_id": "find-the-difference-of-two-arrays"}).problem.checker == ""
    row = {**LEETCODE, "query": LEETCODE["query"].replace("nodes.", "nodes. Swap them in any order.")}
    assert draft("leetcode", row).problem.checker == ""


def test_nodes_that_only_the_starter_code_names_are_there() -> None:
    reference = LEETCODE["completion"].replace(": Optional[ListNode]", "").replace("-> Optional[ListNode]", "")
    assert "ListNode" not in reference
    assert "class ListNode" in draft("leetcode", {**LEETCODE, "completion": reference}).problem.imports


def test_a_function_that_yields_becomes_a_generator_and_its_listed_values_tests(tmp_path: Path) -> None:
    row = {
        "question": "Q",
        "reference_solution": "def up(n):\n    for k in range(n):\n        yield k\n",
        "tests": ["assert list(up(3)) == [0, 1, 2]", "assert list(up(n=0)) == []"],
    }
    (problem,) = problems_from(jsonl(tmp_path / "rows.jsonl", row), "rows", tmp_path / "out.jsonl")
    assert problem.kind == "generator"
    assert problem.golden_tests == (TestCase("up(3)", "[0, 1, 2]"), TestCase("up(n=0)", "[]"))
    inner = "def f(n):\n    def g():\n        yield n\n    return list(g())\n"
    nested = draft("unleakedtestbench", {"func_name": "f", "code": inner, "test_list": ["assert list(f(1)) == [1]"]})
    assert nested.problem.kind == "function"


def written(root: Path, files: dict[str, str]) -> None:
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)


def test_condefects_is_a_directory_of_programs_whose_faulty_versions_are_mutants(tmp_path: Path) -> None:
    right, wrong = "print(int(input()) * 2)\n", "print(int(input()) + 2)\n"
    code = "set/Code/abc300_a/Python"
    programs = {f"{code}/{n}/correctVersion.py": right for n in (7, 8)}
    programs |= {f"{code}/{n}/faultyVersion.py": wrong for n in (7, 8)}
    programs |= {f"{code}/9/faultyVersion.py": "print(", f"{code}/9/correctVersion.py": right}
    tests = {f"set/Test/abc300/A/in/{n}.txt": f"{n}\n" for n in range(20)}
    tests |= {f"set/Test/abc300/A/out/{n}.txt": f"{2 * n}\n" for n in range(20)}
    written(tmp_path, programs | tests | {"set/Code/abc300_b/Java/1/faultyVersion.java": ""})
    (problem,) = problems_from(tmp_path / "set", "condefects", tmp_path / "out.jsonl")
    assert (problem.problem_id, problem.kind, problem.mutants) == ("ConDefects/abc300_a", "program", (wrong,))
    assert (len(problem.golden_tests), len(problem.hidden_tests)) == (3, 13)
    report = json.loads((tmp_path / "out.jsonl.report.jsonl").read_text())
    assert report["left_out"] == {"more than 16 tests": 4}


def test_refactory_is_a_directory_of_questions_with_students_programs(tmp_path: Path) -> None:
    question = "data/question_1"
    written(
        tmp_path,
        {
            f"{question}/ans/input_001.txt": "print(top([3, 1], 1))",
            f"{question}/ans/output_001.txt": "[3]\n",
            f"{question}/ans/input_002.txt": "top([], 0)",
            f"{question}/ans/output_002.txt": "[]",
            f"{question}/ans/input_0015.txt": "top([1, 2], 1)",  # without its output
            f"{question}/code/reference/reference.py": "def top(xs, k):\n    return sorted(xs)[::-1][:k]\n",
            f"{question}/code/wrong/wrong_1.py": "def top(xs, k):\n    return sorted(xs)[:k]\n",
            f"{question}/code/wrong/wrong_2.py": "def top(xs, k)\n    return xs\n",
            f"{question}/code/global.py": "import math\n",
        },
    )
    (problem,) = problems_from(tmp_path / "data", "refactory", tmp_path / "out.jsonl")
    assert problem.problem_id == "Refactory/question_1"
    assert problem.golden_tests == (TestCase("top([3, 1], 1)", "[3]"), TestCase("top([], 0)", "[]"))
    assert problem.mutants == ("def top(xs, k):\n    return sorted(xs)[:k]\n",)
    assert problem.imports == "import math\n"


def test_what_a_set_printed_is_written_as_tests_are_read(tmp_path: Path) -> None:
    """`inf` and `nan` are how Python prints them; a string stays what it is."""
    question, large = "data/question_1", "0x" + "f" * 4000
    cases = {
        "f([1])": "[inf, -inf, nan, 1]",
        "print(f([2]))": "['inf', inf, nan, 2]",
        f"f([{large}])": "[1]",
        "f([3])": "<object>",
        "f([4])": "[inf, inf, nan, 4]",
    }
    files = {f"{question}/code/reference/reference.py":
             "def f(x):\n    inf = float('inf')\n    first = {1: -inf, 2: 'inf'}.get(x[0], inf)\n"
             "    return [inf, first, inf - inf, x[0]] if x[0] == 1 else [first, inf, inf - inf, x[0]]\n"}  # fmt: skip
    for number, (given, printed) in enumerate(cases.items()):
        files |= {f"{question}/ans/input_{number}.txt": given, f"{question}/ans/output_{number}.txt": f"{printed}\n"}
    written(tmp_path, files)
    (problem,) = problems_from(tmp_path / "data", "refactory", tmp_path / "out.jsonl")
    tests = [*problem.golden_tests, *problem.hidden_tests]
    assert tests[0].expected == "[float('inf'), -float('inf'), float('nan'), 1]"
    assert [test.call for test in tests] == ["f([1])", "f([2])", "f([4])"]
    report = json.loads((tmp_path / "out.jsonl.report.jsonl").read_text())
    assert report["left_out"] == {"syntax": 1}
    assert len(report["failed"]) == 1


@pytest.mark.parametrize("name", ["condefects", "refactory"])
def test_sets_that_are_directories_must_be_there(name: str, tmp_path: Path) -> None:
    out = str(tmp_path / "out.jsonl")
    assert main(["data", "import", name, "-o", out]) == 2
    (tmp_path / "empty").mkdir()
    assert main(["data", "import", name, str(tmp_path / "empty"), "-o", out]) == 2


# Evaluation sets


def test_an_import_leaves_out_what_evaluation_sets_have_unless_it_is_told_not_to(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept_back = dict(MXEVAL, task_id="MBPP/2")
    rows = jsonl(tmp_path / "rows.jsonl", MXEVAL, kept_back)
    out = tmp_path / "out.jsonl"
    assert [one.problem_id for one in problems_from(rows, "mbpp", out)] == ["Mbpp/1"]
    assert "Mbpp/2: unusable: is in the evaluation set MBPP+" in capsys.readouterr().err
    every = problems_from(rows, "mbpp", out, "--allow-contaminated")
    assert [one.problem_id for one in every] == ["Mbpp/1", "Mbpp/2"]


def test_a_set_that_is_for_evaluation_is_not_compared_with_itself() -> None:
    assert {name for name in ("humaneval", "humanevalplus", "mbppplus") if find_source(name).is_for_evaluation} == {
        "humaneval",
        "humanevalplus",
        "mbppplus",
    }
    assert not any(find_source(name).is_for_evaluation for name in ("mbpp", "leetcode", "kodcode-v1", "apps"))


def known_set(name: str, problems: Iterable[Problem]) -> dict[str, str]:
    """The line of `evaluation_marks.jsonl` for a set: every reference, and a quarter of the runs of words."""
    packed: dict[str, set[str]] = {kind: set() for kind in _KINDS}
    for problem in problems:
        marks = list(_marks(problem))
        runs = [mark for mark in marks if mark.startswith("words")]
        packed["words"].update(mark for mark in runs if len(runs) < 4 or int(mark.removeprefix("words")[0], 16) < 4)
        packed["reference"].update(mark for mark in marks if mark not in runs)
    digests = {kind: sorted(mark.removeprefix(kind) for mark in of_kind) for kind, of_kind in packed.items()}
    return {"name": name} | {
        kind: base64.b64encode(bytes.fromhex("".join(of_kind))).decode() for kind, of_kind in digests.items()
    }


def test_digests_of_a_quarter_of_the_runs_find_a_copied_passage() -> None:
    words = " ".join(f"word{n}" for n in range(80))
    record = known_set("S", [Problem("s", words, "f")])
    copied = Problem("t", f"Something before. {words} And after.", "g")
    fresh = Problem("u", " ".join(f"other{n}" for n in range(80)), "h")
    digests = {record["words"][start : start + 8] for start in range(0, len(record["words"]), 8)}
    assert 1 <= len(digests) < 68 / 2
    assert not Contamination([], known_sets=True).of(copied)
    assert Contamination([Problem("s", words, "f")]).of(copied)
    assert not Contamination([Problem("s", words, "f")]).of(fresh)


@pytest.fixture(scope="module")
def humanevalplus() -> list[Draft | Unreadable]:
    """The real set as drafts. Reading it is a minute's work, so it is read once."""
    if not DATA.exists():
        pytest.skip("the sets are not here")
    pytest.importorskip("pyarrow")
    return list(find_source("humanevalplus").drafts(local_rows(DATA / "humanevalplus.parquet")))


@pytest.mark.slow
def test_of_the_real_humanevalplus_all_164_problems_become_test_cases(humanevalplus: list[Draft | Unreadable]) -> None:
    drafts = [each for each in humanevalplus if isinstance(each, Draft)]
    assert len(drafts) == len(humanevalplus) == 164
    assert sum(len(each.problem.hidden_tests) for each in drafts) == 122_478
    assert [each.problem.problem_id for each in drafts if each.unvalued] == [
        f"HumanEval/{number}" for number in (14, 15, 83, 100, 130, 139)
    ]
    assert [each.problem.problem_id for each in drafts if each.left_out] == []
    assert [each.problem.problem_id for each in drafts if each.problem.checker] == ["HumanEval/32"]
    assert sum(each.problem.tolerance > 0 for each in drafts) == 16


@pytest.mark.slow
def test_the_marks_that_come_with_the_package_are_those_of_the_sets(
    humanevalplus: list[Draft | Unreadable],
) -> None:
    lines = (Path(__file__).parents[1] / "codea1_env" / "problems" / "evaluation_marks.jsonl").read_text().splitlines()
    ult = find_source("unleakedtestbench").drafts(local_rows(DATA / "ult-lite.jsonl.gz"))
    for line, found in zip(lines, (humanevalplus, ult), strict=False):
        problems = [each.problem for each in found if isinstance(each, Draft)]
        assert json.loads(line) == known_set(json.loads(line)["name"], problems)
        marked = Contamination([], known_sets=True)
        assert all(marked.of(problem) for problem in problems)
    with gzip.open(DATA / "mbpp-train.jsonl.gz", "rt") as rows:
        numbers = {int(json.loads(row)["task_id"].removeprefix("MBPP/")) for row in rows}
    ids = set(json.loads(lines[2])["ids"])
    assert ids == {f"Mbpp/{number}" for number in range(1, 975) if number not in numbers}


@pytest.mark.slow
@pytest.mark.skipif(not DATA.exists(), reason="the sets are not here")
@pytest.mark.parametrize(
    ("source", "file", "least"), [("mbpp", "mbpp-train.jsonl.gz", 0.97), ("leetcode", "leetcode-train.jsonl.gz", 0.85)]
)
def test_nearly_all_of_the_training_sets_is_usable(source: str, file: str, least: float) -> None:
    rows = list(local_rows(DATA / file))
    found: list[Draft | Unreadable] = list(find_source(source).drafts(rows))
    with LocalSandbox(2) as sandbox:
        imported = list(import_drafts(found, sandbox))
    assert sum(each.status in ("all", "some") for each in imported) >= least * len(rows)


def test_one_assert_that_does_not_parse_leaves_the_others_of_its_row(tmp_path: Path) -> None:
    row = {"question": "Twice.", "entry_point": "f", "reference_solution": "def f(x):\n    return 2 * x",
           "tests": ["assert f(1) == 2", "assert f(2) == 4", "assert f(3 == 6"]}  # fmt: skip
    (problem,) = problems_from(jsonl(tmp_path / "rows.jsonl", row), "rows", tmp_path / "out.jsonl")
    assert [test.call for test in problem.golden_tests] == ["f(1)", "f(2)"]
    (report,) = [json.loads(line) for line in (tmp_path / "out.jsonl.report.jsonl").read_text().splitlines()]
    assert "the script does not parse" in json.dumps(report["left_out"])
