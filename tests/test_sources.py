"""Public problem sets as problems: the traps of each set's fields, and what import says of every row."""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from imported_rows import draft, jsonl, problems_from, unreadable

from codea1_env.cli import main
from codea1_env.errors import ConfigurationError, FormatError, SandboxError
from codea1_env.judging.problems.importing import Imported, import_drafts
from codea1_env.problems import Problem, TestCase
from codea1_env.problems.sources import SOURCES, Draft, Unreadable, find_source
from codea1_env.problems.sources.rows import hub_rows, local_rows
from codea1_env.sandbox import Job, JobResult, LocalSandbox

HUMANEVALPLUS = Path(__file__).resolve().parents[2] / "shared" / "data" / "humanevalplus.parquet"

HELPER = """
import numpy as np
def floating(x):
    return isinstance(x, float)
def assertion(out, exp, atol):
    if atol == 0 and floating(exp):
        atol = 1e-6
    if out != exp and atol != 0:
        assert np.allclose(out, exp, rtol=1e-07, atol=atol)
    else:
        assert out == exp, f"out: {out}, exp: {exp}"
"""
PAIRS = "    for i, (inp, exp) in enumerate(zip(inputs, results)):\n        assertion(candidate(*inp), exp, 0)\n"

HUMANEVAL_ROW = {
    "task_id": "HumanEval/900",
    "prompt": "import math\n\n\ndef root(x: float) -> float:\n    '''The square root.'''\n",
    "canonical_solution": "    return math.sqrt(x)\n",
    "entry_point": "root",
    "test": f"{HELPER}\ndef check(candidate):\n    inputs = [[4], [2.25]]\n    results = [2.0, 1.5]\n{PAIRS}",
}
MBPP_ROW = {
    "task_id": 7,
    "prompt": "Write a function to double every element.",
    "code": "import re\r\ndef helper(x):\r\n  return 2 * x\r\n"
    "def double_all(xs, by=2): \r\n  return [helper(x) for x in xs]",
    "source_file": "somewhere",
    "test_imports": ["import math"],
    "test_list": ["assert double_all([1])==[2]", "assert set(double_all([1])) == set([2])"],
    "test": f"{HELPER}\ninputs = [[[1, 2]], [[]]]\nresults = [[2, 4], []]\n"
    "for i, (inp, exp) in enumerate(zip(inputs, results)):\n    assertion(double_all(*inp), exp, 0)\n",
}
KODCODE_ROW = {
    "version": "v1.0",
    "style": "instruct",
    "subset": "Prefill",
    "question_id": "Prefill_1",
    "question": "How do I increment a number?",
    "solution": "def helper(x):\n    return x + 1\n\ndef increment(x):\n    return helper(x)\n",
    "test": "from solution import increment\nimport pytest\n\ndef test_one():\n    assert increment(1) == 2\n\n"
    "def test_more():\n    assert increment(-1) == 0\n    with pytest.raises(TypeError):\n        increment('a')\n",
    "test_info": [
        {
            "docstring": "",
            "function_declaration": "def increment(x):",
            "function_name": "increment",
            "parameter_list": "(x)",
        }
    ],
    "gpt_difficulty": "hard",
    "gpt_pass_percentage": 0.5,
}


CODE_A1_ROW = {
    "prompt": [{"role": "system", "content": "Help."}, {"role": "user", "content": "Increment a number."}],
    "data_source": "kodcode_light",
    "clean_description": "How do I increment a number?",
    "GT_code": KODCODE_ROW["solution"],
    "GT_test": ["assert increment(1) == 2", "x = -1\nassert increment(x) == 0", "assert increment(1) > 1"],
    "extra_info": {
        "question_id": "Prefill_1_I",
        "function_name": "increment",
        "function_declaration": "def increment(x)",
        "imports": "import math",
    },
}


def imported(drafts: Sequence[Draft | Unreadable]) -> list[Imported]:
    with LocalSandbox() as sandbox:
        return list(import_drafts(drafts, sandbox))


# Fields


@pytest.mark.parametrize("old", [False, True], ids=["hub", "copy"])
def test_a_humanevalplus_reference_is_the_prompt_with_the_body(old: bool) -> None:
    row = dict(HUMANEVAL_ROW)
    if old:
        row["question"], row["reference_body"] = row.pop("prompt"), row.pop("canonical_solution")
    problem = draft("humanevalplus", row).problem
    assert problem == Problem(
        problem_id="HumanEval/900",
        question=HUMANEVAL_ROW["prompt"],
        entry_point="root",
        reference_solution=HUMANEVAL_ROW["prompt"] + HUMANEVAL_ROW["canonical_solution"],
        hidden_tests=(TestCase("root(4)", "2.0"), TestCase("root(2.25)", "1.5")),
        imports="import math",
        source="evalplus/humanevalplus",
        license="Apache-2.0",
        tolerance=1e-6,
    )


def test_an_mbppplus_entry_point_is_the_function_that_the_asserts_call() -> None:
    found = draft("mbppplus", MBPP_ROW)
    problem = found.problem
    assert (problem.problem_id, problem.entry_point) == ("Mbpp/7", "double_all")
    assert problem.starter_code == "def double_all(xs, by=2):"
    assert problem.imports == "import math\nimport re"
    assert problem.golden_tests == (TestCase("double_all([1])", "[2]"),)
    assert problem.hidden_tests == (TestCase("double_all([1, 2])", "[2, 4]"), TestCase("double_all([])", "[]"))
    assert [each.reason for each in found.left_out] == ["wrapped_call"]


@pytest.mark.parametrize(
    ("name", "expected"), [(2, "Mbpp/2"), ("2", "Mbpp/2"), ("Mbpp/2", "Mbpp/2")], ids=["int", "digits", "full"]
)
def test_an_mbppplus_id_is_the_same_in_every_revision(name: object, expected: str) -> None:
    assert draft("mbppplus", {**MBPP_ROW, "task_id": name}).problem.problem_id == expected


@pytest.mark.parametrize(
    "test",
    [
        "from solution import increment as plus\n\ndef test():\n    assert plus(1) == 2\n",
        "import solution\n\ndef test():\n    assert solution.increment(1) == 2\n",
        "from solution import *\n\ndef test():\n    assert helper(1) == 2\n    assert increment(1) == 2\n"
        "    assert increment(2) == 3\n",
    ],
)
def test_kodcodes_function_is_the_one_that_the_tests_import_or_call_most(test: str) -> None:
    row = {name: value for name, value in KODCODE_ROW.items() if name != "test_info"} | {"test": test}
    assert draft("kodcode-v1", row).problem.entry_point == "increment"


_INFO = KODCODE_ROW["test_info"]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"test": None, "test_code": KODCODE_ROW["test"]},
        {"test_info": None, "test_entry_point": "increment"},
        {"test_info": json.dumps(_INFO)},
        {"test_info": {"function_name": ["increment"], "parameter_list": ["(x)"]}},
        {"test_info": []},
        {"test_info": [{"function_name": "not_there"}]},
        {"question_id": None, "conversation_id": "Prefill_1"},
    ],
)
def test_every_revision_of_kodcode_gives_the_same_problem(changes: dict[str, Any]) -> None:
    row = {name: value for name, value in {**KODCODE_ROW, **changes}.items() if value is not None}
    found = draft("kodcode-v1", row)
    assert found.problem == draft("kodcode-v1", KODCODE_ROW).problem
    assert found.problem.entry_point == "increment"
    assert found.problem.golden_tests == (TestCase("increment(1)", "2"), TestCase("increment(-1)", "0"))
    assert (found.problem.difficulty, found.problem.license) == ("hard", "CC-BY-NC-4.0")
    assert [each.reason for each in found.left_out] == ["expects_exception"]


def test_a_reference_that_imports_numpy_makes_a_problem_that_asks_for_it() -> None:
    row = {**KODCODE_ROW, "solution": "import numpy as np\n\ndef increment(x):\n    return np.add(x, 1)\n"}
    found = draft("kodcode-v1", row)
    assert found.problem.packages == ("numpy",)
    assert imported([found])[0].status == "some"  # one of its asserts is no test case


@pytest.mark.parametrize(
    "about",
    [{}, {"function_name": None}, {"function_name": ""}, {"index": 7, "split": "train"}],
    ids=["whole", "null", "empty", "more"],
)
def test_code_a1s_released_questions_are_read_from_its_file(about: dict[str, Any], tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    row = {**CODE_A1_ROW, "extra_info": {**CODE_A1_ROW["extra_info"], **about}}
    table = pytest.importorskip("pyarrow").Table.from_pylist([row, {**row, "GT_code": "def other(x): return x"}])
    parquet.write_table(table, tmp_path / "training.parquet")
    (problem,) = problems_from(tmp_path / "training.parquet", "codea1", tmp_path / "kodcode.jsonl")
    assert (problem.problem_id, problem.entry_point) == ("Prefill_1_I", "increment")
    assert problem.question == CODE_A1_ROW["clean_description"]
    assert problem.golden_tests == (TestCase("increment(1)", "2"), TestCase("increment(-1)", "0"))
    assert (problem.starter_code, problem.imports) == ("def increment(x):", "import math")
    assert (problem.difficulty, problem.license) == ("hard", "CC-BY-NC-4.0")
    report = [json.loads(line) for line in (tmp_path / "kodcode.jsonl.report.jsonl").read_text().splitlines()]
    assert [each["status"] for each in report] == ["some", "unusable"], "the order is no test case"


def test_a_set_that_is_not_on_the_hub_asks_for_its_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, form in (("codea1", "file"), ("condefects", "directory")):
        assert main(["data", "import", name, "-o", str(tmp_path / "out.jsonl")]) == 2
        assert f"{name} must come with a local {form} as PATH, got none" in capsys.readouterr().err
        assert main(["eval", "--player", "oracle", "--problems", name, "-o", str(tmp_path / "eval")]) == 2
        assert f"{name} must come with a local {form} as PATH, got none" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("source", "row", "named", "reason"),
    [
        ("humanevalplus", {"task_id": "HumanEval/1"}, "HumanEval/1", "must have the text prompt or question"),
        ("humanevalplus", {**HUMANEVAL_ROW, "canonical_solution": "    return ("}, "HumanEval/900", "does not parse"),
        ("humanevalplus", {**HUMANEVAL_ROW, "entry_point": "other"}, "HumanEval/900", "must define other"),
        ("humanevalplus", {**HUMANEVAL_ROW, "test": None}, "HumanEval/900", "must have the text test"),
        ("mbppplus", {**MBPP_ROW, "code": "x = 1"}, "7", "the solution, which has none"),
        ("mbppplus", {**MBPP_ROW, "test_list": "assert"}, "7", "test_list must be a list of texts"),
        ("mbppplus", {**MBPP_ROW, "test_list": None}, "7", "must have asserts that call a function of"),
        ("mbppplus", {**MBPP_ROW, "code": 123}, "7", "the text code or canonical_solution, got 123 in code"),
        ("mbppplus", {**MBPP_ROW, "task_id": None}, "row 1", "must have the text task_id"),
        ("kodcode-v1", {**KODCODE_ROW, "solution": "class A: pass"}, "Prefill_1", "must call a top-level function"),
        ("kodcode-v1", {}, "row 1", "must have the text solution"),
        ("codea1", {**CODE_A1_ROW, "data_source": "mbppplus"}, "row 1", "must be kodcode_light, got 'mbppplus'"),
        ("codea1", {**CODE_A1_ROW, "extra_info": None}, "row 1", "extra_info must be a record with question_id"),
        ("codea1", {**CODE_A1_ROW, "GT_code": "x = 1"}, "row 1", "must define increment, got no function"),
        ("codea1", {**CODE_A1_ROW, "GT_test": 3}, "row 1", "GT_test must be a list of texts"),
        ("codea1", KODCODE_ROW, "Prefill_1", "extra_info must be a record with question_id"),
        ("codea1", {**CODE_A1_ROW, "extra_info": "{(1, 2): 'x'}"}, "row 1", "the text question_id, got the fields (1,"),
        # Python writes no number of so many digits.
        ("mbppplus", {**MBPP_ROW, "task_id": 10**5000}, "a int", "integer string conversion"),
        ("humanevalplus", {**HUMANEVAL_ROW, "task_id": 10**5000}, "a int", "must have the text task_id, got a int"),
    ],
)
def test_a_row_that_is_no_problem_says_why(source: str, row: dict[str, Any], named: str, reason: str) -> None:
    found = unreadable(source, row)
    assert found.problem_id == named
    assert reason in found.reason


# References on their own tests


def test_a_test_that_the_reference_fails_leaves_the_problem_and_is_listed() -> None:
    test = "from solution import increment\ndef test_a():\n    assert increment(1) == 2\n    assert increment(2) == 9\n"
    (found,) = imported([draft("kodcode-v1", {**KODCODE_ROW, "test": test})])
    assert found.problem is not None
    assert found.problem.golden_tests == (TestCase("increment(1)", "2"),)
    assert found.failed == ((TestCase("increment(2)", "9"), "fail"),)
    assert found.status == "some"
    assert json.loads(found.to_json())["failed"] == [["assert increment(2) == 9", "fail"]]


@pytest.mark.parametrize(
    ("solution", "why"),
    [
        ("raise ValueError\ndef increment(x): return x + 1", "does not load"),
        ("import pandas_is_not_here\ndef increment(x): return x + 1", "does not load"),
        ("def increment(x): return x", "passes none of its tests"),
        ("def increment(x):\n    while True: pass", "passes none of its tests"),
    ],
)
def test_a_problem_without_a_working_reference_is_unusable_and_said_to_be(solution: str, why: str) -> None:
    broken = draft("kodcode-v1", {**KODCODE_ROW, "solution": solution})
    found, other = imported([broken, draft("mbppplus", MBPP_ROW)])
    assert found.problem is None
    assert why in found.why_not
    assert other.status == "some"


def test_values_of_a_reference_function_are_computed_in_the_sandbox(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    test = (
        f"{HELPER}\ndef ref_func(x):\n    if x == 3:\n        raise ValueError\n    return x / 2\n"
        f"def spoil():\n    open({str(mark)!r}, 'w')\n"
        "def check(candidate):\n    inputs = [[1], [3], [4]]\n"
        "    for i, inp in enumerate(inputs):\n        assertion(candidate(*inp), ref_func(*inp), 0)\n"
    )
    row = {**HUMANEVAL_ROW, "canonical_solution": "    return x / 2 + 1e-9\n", "test": test}
    (found,) = imported([draft("humanevalplus", row)])
    assert found.problem is not None
    assert found.problem.hidden_tests == (TestCase("root(1)", "0.5"), TestCase("root(4)", "2.0"))
    assert found.problem.tolerance == 1e-6
    assert [(each.source, each.reason) for each in found.left_out] == [
        ("root(3)", "the script's reference: ValueError")
    ]
    assert not mark.exists()


def test_ids_that_repeat_are_unusable_from_the_second_on() -> None:
    first, second = imported([draft("mbppplus", MBPP_ROW), draft("mbppplus", MBPP_ROW)])
    assert first.problem is not None
    assert second.problem is None
    assert "repeats" in second.why_not


class _BrokenSandbox:
    version = "broken"

    def run(self, jobs: Sequence[Job]) -> list[JobResult]:
        raise SandboxError("the sandbox must work, got this one")

    def close(self) -> None:
        pass


def test_a_failing_sandbox_is_no_verdict_on_a_reference() -> None:
    with pytest.raises(SandboxError):
        list(import_drafts([draft("mbppplus", MBPP_ROW)], _BrokenSandbox()))


# Files


def test_rows_are_the_same_from_parquet_json_lines_gzip_and_a_directory(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    rows = [MBPP_ROW, {**MBPP_ROW, "task_id": 8}]
    plain = jsonl(tmp_path / "rows.jsonl", *rows)
    packed = tmp_path / "rows.jsonl.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "rows.parquet")
    for path in (plain, packed, tmp_path / "rows.parquet"):
        assert list(local_rows(path)) == rows
    assert list(local_rows(tmp_path)) == rows * 3
    folder = tmp_path / "as-spark-writes.parquet"
    folder.mkdir()
    (tmp_path / "rows.parquet").rename(folder / "part-0.parquet")
    assert list(local_rows(tmp_path)) == rows * 3, "a folder is no file, whatever its name"


def test_the_hub_loader_reads_what_the_hubs_own_library_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """That library takes a directory of the same name for the data set: real loading code, no network."""
    pytest.importorskip("datasets")
    (tmp_path / "evalplus" / "mbppplus").mkdir(parents=True)
    jsonl(tmp_path / "evalplus" / "mbppplus" / "test.jsonl", MBPP_ROW)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    source = find_source("mbppplus")
    (found,) = source.drafts(hub_rows(source.hub_id, source.split))
    assert found == draft("mbppplus", MBPP_ROW)
    with pytest.raises(FormatError, match="must be within reach"):
        hub_rows(source.hub_id, "no_such_split")


@pytest.mark.parametrize(
    ("name", "content", "error", "message"),
    [
        ("a.csv", b"", ConfigurationError, "must be a directory or a file that ends in"),
        ("a.jsonl", b"{", FormatError, r"a\.jsonl:1: the line must be one JSON object"),
        ("a.jsonl", b"{}\n[1]\n", FormatError, r"a\.jsonl:2: the line must be a JSON object"),
        ("a.jsonl", b"\xff", FormatError, "in UTF-8"),
        ("a.jsonl.gz", b"{}", FormatError, "must be a gzip file"),
        ("a.jsonl.gz", gzip.compress(b"{}", mtime=0)[:10] + b"\xff" * 20, FormatError, "must be a gzip file"),
        ("a.parquet", b"{}", FormatError, "must be a Parquet file"),
    ],
)
def test_a_file_that_is_not_what_its_name_says_is_refused(
    tmp_path: Path, name: str, content: bytes, error: type[Exception], message: str
) -> None:
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    (tmp_path / name).write_bytes(content)
    with pytest.raises(error, match=message):
        list(local_rows(tmp_path / name))


def test_a_parquet_file_that_is_damaged_behind_its_head_is_refused_by_name(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    file = tmp_path / "a.parquet"
    parquet.write_table(pyarrow.Table.from_pylist([MBPP_ROW]), file)
    content = file.read_bytes()
    file.write_bytes(content[:30] + b"\xff" * 40 + content[70:])
    with pytest.raises(FormatError, match=r"a\.parquet must be a Parquet file"):
        list(local_rows(file))


def test_missing_libraries_name_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (tmp_path / "a.parquet").write_bytes(b"")
    with pytest.raises(ImportError, match=r"'\.\[data\]'"):
        hub_rows("evalplus/humanevalplus", "test")
    with pytest.raises(ImportError, match=r"'\.\[data\]'"):
        list(local_rows(tmp_path / "a.parquet"))


# The command


def test_the_command_writes_problems_and_a_report_of_every_row(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [
        KODCODE_ROW,
        {**KODCODE_ROW, "question_id": "b", "solution": "def increment(x): return x"},
        {"question_id": "c"},
    ]
    (problem,) = problems_from(jsonl(tmp_path / "in.jsonl", *rows), "kodcode-v1", tmp_path / "out.jsonl")
    assert (problem.problem_id, problem.license) == ("Prefill_1", "CC-BY-NC-4.0")
    report = [json.loads(line) for line in (tmp_path / "out.jsonl.report.jsonl").read_text().splitlines()]
    assert [(line["problem_id"], line["status"]) for line in report] == [
        ("Prefill_1", "some"), ("b", "unusable"), ("c", "unusable"),
    ]  # fmt: skip
    shown = capsys.readouterr().err
    assert "b: unusable: the reference passes none of its tests" in shown
    assert "3 rows (0 all, 1 some, 0 none, 2 unusable)" in shown
    assert {path.name for path in tmp_path.iterdir()} == {"in.jsonl", "out.jsonl", "out.jsonl.report.jsonl"}


def test_difficulty_and_limit_choose_rows(tmp_path: Path) -> None:
    rows = [{**KODCODE_ROW, "question_id": str(i), "gpt_difficulty": "hard" if i % 2 else "easy"} for i in range(6)]
    source, chosen = jsonl(tmp_path / "in.jsonl", *rows), ("--difficulty", "Hard", "--limit", "2")
    found = problems_from(source, "kodcode-v1", tmp_path / "out.jsonl", *chosen)
    assert [problem.problem_id for problem in found] == ["1", "3"]


def test_a_difficulty_that_no_row_has_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{**KODCODE_ROW, "question_id": str(i), "gpt_difficulty": "hard" if i % 2 else "easy"} for i in range(6)]
    source, output = jsonl(tmp_path / "in.jsonl", *rows), tmp_path / "out.jsonl"
    assert main(["data", "import", "kodcode-v1", str(source), "-o", str(output), "--difficulty", "trivial"]) == 2
    assert "--difficulty must be one that the rows have: easy, hard; got 'trivial'" in capsys.readouterr().err
    assert not output.exists()


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["{in}", "-o", "{in}"], 2, "must not be in the input"),
        (["{dir}", "-o", "{dir}/rows/out.jsonl"], 2, "must not be in the input"),
        (["{in}", "-o", "{dir}"], 2, "--output must be a file"),
        (["{in}", "-o", "{dir}/no/out.jsonl"], 2, "in an existing directory"),
        (["{in}", "-o", "{out}", "--limit", "0"], 2, "--limit must be at least 1, got 0"),
        (["{in}", "-o", "{out}", "--revision", "main"], 2, "must be left out with a local PATH"),
        (["{dir}/missing.jsonl", "-o", "{out}"], 2, "no such file"),
        (["{bad}", "-o", "{out}"], 1, "must be one JSON object"),
    ],
)
def test_a_command_that_cannot_run_leaves_an_earlier_output_as_it_was(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, message: str
) -> None:
    jsonl(tmp_path / "in.jsonl", KODCODE_ROW)
    (tmp_path / "bad.jsonl").write_text(json.dumps(KODCODE_ROW) + "\n{")
    (tmp_path / "out.jsonl").write_text("earlier")
    (tmp_path / "rows").mkdir()
    places = {
        "in": tmp_path / "in.jsonl",
        "bad": tmp_path / "bad.jsonl",
        "out": tmp_path / "out.jsonl",
        "dir": tmp_path,
    }
    assert main(["data", "import", "kodcode-v1", *(each.format(**places) for each in arguments)]) == code
    assert message in capsys.readouterr().err
    assert (tmp_path / "out.jsonl").read_text() == "earlier"
    assert {path.name for path in tmp_path.iterdir()} == {"in.jsonl", "bad.jsonl", "out.jsonl", "rows"}


def test_every_source_states_its_licence_and_where_it_is() -> None:
    assert all(source.license and "/" in source.hub_id for source in SOURCES.values())
    with pytest.raises(ConfigurationError, match="must be one of humanevalplus, mbppplus, kodcode-v1"):
        find_source("humaneval-x")


# The real file


@pytest.mark.slow
@pytest.mark.longest
@pytest.mark.skipif(not HUMANEVALPLUS.exists(), reason="the HumanEval+ file is not here")
def test_every_reference_of_the_real_humanevalplus_passes_every_test_that_was_extracted(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    problems_from(HUMANEVALPLUS, "humanevalplus", tmp_path / "out.jsonl")
    report = [json.loads(line) for line in (tmp_path / "out.jsonl.report.jsonl").read_text().splitlines()]
    failed = {(line["problem_id"], why) for line in report for _, why in line["failed"]}
    assert failed <= {("HumanEval/139", "timeout")}  # it multiplies for nearly a second: too slow on a busy machine
    short = {line["problem_id"]: (line["status"], line["left_out"]) for line in report if line["status"] != "all"}
    # Texts and lists of more than 1 MiB. On a busy machine the time limit ends some of them, and a few others, first.
    by_time = {"the script's reference: timeout", "the script's reference: flaky"}
    reasons = {"the script's reference: no plain data, or too much of it", *by_time}
    assert all(left_out.keys() <= reasons for _, left_out in short.values())
    counts = {name: sum(left_out.values()) for name, (_, left_out) in short.items()}
    assert [counts.pop(f"HumanEval/{number}") for number in (15, 100, 130)] == [21, 1, 10]
    assert all(short[name][1].keys() <= by_time for name in counts)
    assert sum(counts.values()) <= 5
    lost = sum(len(line["failed"]) for line in report)
    assert sum(line["hidden_tests"] for line in report) == 123_949 - lost - sum(counts.values())
