"""Problems: the record, its files, and the bundled set, whose programs run in the sandbox like any other."""

import dataclasses
import json
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from codea1_env.arena.arena import Arena
from codea1_env.arena.match import Grade
from codea1_env.errors import ConfigurationError, ProblemFormatError
from codea1_env.problems import Problem, TestCase, bundled_problems, iter_problems, read_problems, write_problems
from codea1_env.problems.kinds import KINDS
from codea1_env.reading.responses import read_case
from codea1_env.rewards.duel import Verdict
from codea1_env.sandbox import LocalSandbox

# Lone surrogates, quotes of both kinds, newlines of every kind: all of these have broken a line format somewhere.
TEXTS = st.text(st.characters(), max_size=30) | st.sampled_from(["'\"", "\ud800", "\u2028", "\r\n", "\x85", "\x00"])
CASES = st.lists(st.builds(TestCase, TEXTS, TEXTS), max_size=3).map(tuple)
CHECKER = "def check(a, b, c): ..."
ON_DATA = [kind for kind in KINDS if kind not in ("method", "program")]
"""Kinds that may have any checker; a method has an entry point of its own form."""
PROBLEMS = st.builds(
    lambda kind_and_checker, **fields: Problem(
        **fields, **dict(zip(("kind", "checker"), kind_and_checker, strict=True))
    ),
    problem_id=TEXTS.filter(bool),
    question=TEXTS,
    entry_point=st.sampled_from(["f", "solve", "größe", "_"]),
    reference_solution=st.none() | TEXTS,
    golden_tests=CASES,
    hidden_tests=CASES,
    mutants=st.lists(TEXTS, max_size=2).map(tuple),
    starter_code=TEXTS,
    imports=TEXTS,
    source=TEXTS,
    difficulty=TEXTS,
    license=TEXTS,
    time_limit_s=st.floats(0, 3600, exclude_min=True) | st.integers(1, 3600),
    memory_mb=st.integers(64, 1 << 20),
    suite_size=st.none() | st.integers(1, 100),
    tolerance=st.sampled_from([0.0, 0, 1e-6]),
    packages=st.sampled_from([(), ("numpy",)]),
    kind_and_checker=st.tuples(st.sampled_from([*ON_DATA, "program"]), st.sampled_from(["", CHECKER]))
    | st.tuples(st.sampled_from(ON_DATA), st.just("unordered")),
)
FIELDS = [field.name for field in dataclasses.fields(Problem) if field.name != "language"]  # there is only one language
GOOD: dict[str, Any] = {"problem_id": "p", "question": "q", "entry_point": "f"}


@pytest.fixture(scope="module")
def graded() -> dict[str, list[Grade]]:
    """Of every bundled problem: the reference and the mutants, on the golden tests and then the hidden ones."""
    items = [
        (problem, [problem.reference_solution or "", *problem.mutants], problem.golden_tests + problem.hidden_tests)
        for problem in bundled_problems()
    ]
    with Arena(LocalSandbox()) as arena:
        return {item[0].problem_id: grades for item, grades in zip(items, arena.grade_many(items), strict=True)}


@given(PROBLEMS)
def test_a_problem_survives_json_exactly(problem: Problem) -> None:
    line = problem.to_json()
    assert line.isascii()
    assert "\n" not in line
    assert Problem.from_json(line) == problem
    assert Problem.from_json(line).content_hash == problem.content_hash


@pytest.mark.parametrize("field", FIELDS)
def test_the_content_hash_covers_every_field(field: str) -> None:
    other = {"entry_point": "g", "time_limit_s": 2.0, "memory_mb": 64, "mutants": ("m",)}
    other |= {"compare": {"float": {"absolute": 0.5}}, "suite_size": 2, "time_limit": {"times_reference": 5}}
    other |= {"tolerance": 0.5, "packages": ("numpy",), "kind": "class", "checker": "close", "raises": ("E",)}
    other |= dict.fromkeys(("golden_tests", "hidden_tests"), (TestCase("f(1)", "2"),))
    problem = Problem("p", "q", "f")
    assert dataclasses.replace(problem, **{field: other.get(field, "other")}).content_hash != problem.content_hash


@given(st.lists(PROBLEMS, max_size=4, unique_by=lambda problem: problem.problem_id))
def test_a_problem_file_survives_writing_and_reading(problems: list[Problem]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "problems.jsonl"
        write_problems(path, problems)
        assert read_problems(path) == problems
        assert list(iter_problems(str(path))) == problems


def test_fields_with_defaults_may_be_absent() -> None:
    assert Problem.from_json(json.dumps(GOOD)) == Problem("p", "q", "f")


@pytest.mark.parametrize(
    ("change", "field", "got"),
    [
        ({"problem_id": ""}, "problem_id must be a non-empty string", "''"),
        ({"problem_id": 7}, "problem_id must be a string", "7"),
        ({"question": None}, "question must be a string", "None"),
        ({"entry_point": "class"}, "entry_point must be a Python function name", "'class'"),
        ({"entry_point": "f()"}, "entry_point must be a Python function name", "'f()'"),
        ({"entry_point": ["f"]}, "entry_point must be a string", "['f']"),
        ({"entry_point": "\ufb01nd"}, "entry_point must be as Python reads it (NFKC), 'find'", "'\ufb01nd'"),
        ({"entry_point": "d\uff45f"}, "entry_point must be as Python reads it (NFKC), 'def'", "'d\uff45f'"),
        ({"reference_solution": 3}, "reference_solution must be a string or null", "3"),
        ({"golden_tests": {"f(1)": "2"}}, "golden_tests must be a list", "{'f(1)': '2'}"),
        ({"golden_tests": [["f(1)", "2"], ["f(2)"]]}, "golden_tests[1] must be a pair of strings", "['f(2)']"),
        ({"hidden_tests": [["f(1)", 2]]}, "hidden_tests[0] must be a pair of strings", "['f(1)', 2]"),
        ({"hidden_tests": ["f(1) == 2"]}, "hidden_tests[0] must be a pair of strings", "'f(1) == 2'"),
        ({"mutants": "def f(): ..."}, "mutants must be a list", "'def f(): ...'"),
        ({"mutants": [1]}, "mutants must be a tuple of strings", "(1,)"),
        ({"license": 1}, "license must be a string", "1"),
        ({"language": "c"}, "language must be one of ('python',)", "'c'"),
        ({"time_limit_s": 0}, "time_limit_s must be in (0, 3600] s", "0"),
        ({"time_limit_s": float("nan")}, "time_limit_s must be in (0, 3600] s", "nan"),
        ({"time_limit_s": True}, "time_limit_s must be in (0, 3600] s", "True"),
        ({"memory_mb": 63}, "memory_mb must be in [64, 1048576] MiB", "63"),
        ({"memory_mb": 64.0}, "memory_mb must be in [64, 1048576] MiB", "64.0"),
        ({"tests": []}, "the fields must be among", "['tests']"),
    ],
)
def test_a_bad_field_is_reported_with_path_line_field_must_and_got(
    tmp_path: Path, change: dict[str, Any], field: str, got: str
) -> None:
    path = tmp_path / "bad.jsonl"
    good = json.dumps(GOOD)
    bad = json.dumps({**GOOD, "problem_id": "other", **change})
    path.write_text(f"{good}\n\n{bad}\n")  # the blank line counts as a line, and as nothing else
    with pytest.raises(ProblemFormatError) as raised:
        read_problems(path)
    message = str(raised.value)
    assert message.startswith(f"{path}:3: {field}")
    assert message.endswith(f"got {got}")


def test_a_number_is_no_path_and_closes_nothing(tmp_path: Path) -> None:
    with (tmp_path / "file").open("wb") as file:
        with pytest.raises(TypeError):
            read_problems(file.fileno())  # type: ignore[arg-type]
        file.write(b"x")


@pytest.mark.parametrize("name", ["kind", "language"])
def test_an_array_is_no_name_and_is_refused_as_any_other_value(name: str) -> None:
    with pytest.raises(ProblemFormatError, match=f"{name} must be one of .*, got array"):
        Problem(**{"problem_id": "p", "question": "q", "entry_point": "f", name: np.array(["python", "function"])})


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"{", "a problem must be a JSON object, got unreadable JSON"),
        (b"[" * 100_000, "a problem must be a JSON object, got unreadable JSON"),
        (b"[]", "a problem must be a JSON object, got []"),
        (
            b'{"question": "q", "entry_point": "f"}',
            "the fields must include ['problem_id', 'question', 'entry_point'], got ['entry_point', 'question']",
        ),
        (b'{"problem_id": "\xff"}', "the line must be UTF-8 text, got"),
    ],
)
def test_an_unreadable_line_is_reported_with_its_number(tmp_path: Path, line: bytes, message: str) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_bytes(json.dumps(GOOD).encode() + b"\n" + line + b"\n")
    with pytest.raises(ProblemFormatError) as raised:
        read_problems(path)
    assert str(raised.value).startswith(f"{path}:2: {message}")


def test_a_long_wrong_value_is_cut_in_the_message() -> None:
    with pytest.raises(ProblemFormatError) as raised:
        Problem.from_dict({**GOOD, "entry_point": "x y" * 10_000})
    assert len(str(raised.value)) < 300


def test_a_repeated_id_is_refused_in_reading_and_names_both_lines(tmp_path: Path) -> None:
    path = tmp_path / "twice.jsonl"
    path.write_text(json.dumps(GOOD) + "\n" + json.dumps({**GOOD, "question": "another"}) + "\n")
    with pytest.raises(ProblemFormatError, match=r":2: problem_id must be unique in its file, got 'p', which line 1"):
        read_problems(path)


@pytest.mark.parametrize("given", [None, "text", np.array(1), [Problem("p", "q", "f"), {}]])
def test_what_is_no_problem_is_not_written(given: Any, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"problems(\[1\])? must be (several|a) Problem, got "):
        write_problems(tmp_path / "p.jsonl", given)
    assert not [*tmp_path.iterdir()]


def test_a_repeated_id_is_refused_in_writing_and_the_old_file_stays(tmp_path: Path) -> None:
    path = tmp_path / "problems.jsonl"
    write_problems(path, [Problem("old", "q", "f")])
    with pytest.raises(ProblemFormatError, match="problem_id must be unique"):
        write_problems(path, [Problem("p", "q", "f"), Problem("p", "r", "g")])
    assert [problem.problem_id for problem in read_problems(path)] == ["old"]
    assert os.listdir(tmp_path) == ["problems.jsonl"]


def test_a_file_of_another_editor_is_read(tmp_path: Path) -> None:
    path = tmp_path / "edited.jsonl"
    path.write_bytes(
        b"\xef\xbb\xbf" + json.dumps({**GOOD, "question": "größer"}, ensure_ascii=False).encode() + b"\r\n"
    )
    assert read_problems(path) == [Problem("p", "größer", "f")]


def test_reading_is_lazy_up_to_the_first_bad_line(tmp_path: Path) -> None:
    path = tmp_path / "half.jsonl"
    path.write_text(json.dumps(GOOD) + "\nnonsense\n")
    problems = iter_problems(path)
    assert next(problems) == Problem("p", "q", "f")
    with pytest.raises(ProblemFormatError):
        next(problems)


def test_the_bundled_set_is_large_cached_and_in_canonical_form() -> None:
    problems = bundled_problems()
    assert problems is bundled_problems()
    assert len(problems) >= 48
    file = Path(__file__).parents[1] / "codea1_env/problems/bundled.jsonl"
    assert file.read_text("ascii") == "".join(problem.to_json() + "\n" for problem in problems)


@pytest.mark.parametrize("problem", bundled_problems(), ids=lambda problem: problem.problem_id)
class TestEveryBundledProblem:
    def test_is_complete(self, problem: Problem) -> None:
        assert problem.problem_id.startswith("bundled/")
        assert problem.entry_point in problem.question
        assert problem.starter_code.startswith(f"def {problem.entry_point}(")
        assert (problem.source, problem.license) == ("codea1-bundled", "Apache-2.0")
        assert problem.difficulty in ("easy", "medium")
        assert len(problem.golden_tests) == 3
        assert len(problem.hidden_tests) >= 8
        assert 2 <= len(problem.mutants) <= 4
        sources = [problem.reference_solution, *problem.mutants]
        assert len(set(sources)) == len(sources)

    def test_has_distinct_tests_of_literals_in_canonical_form(self, problem: Problem) -> None:
        cases = problem.golden_tests + problem.hidden_tests
        assert len({case.call for case in cases}) == len(cases)
        for case in cases:
            read = read_case(case, problem.entry_point)
            assert (read.reason, read.call, read.stated) == ("", case.call, case.expected)
            assert read.arguments is not None
            assert read.value is not None

    def test_has_a_reference_that_passes_every_test(self, problem: Problem, graded: dict[str, list[Grade]]) -> None:
        assert graded[problem.problem_id][0].all_passed

    def test_has_mutants_that_each_fail_a_hidden_test_but_not_all(
        self, problem: Problem, graded: dict[str, list[Grade]]
    ) -> None:
        for mutant, grade in zip(problem.mutants, graded[problem.problem_id][1:], strict=True):
            passed = [verdict is Verdict.PASS for verdict in grade.verdicts[3:]]
            assert not all(passed), f"not a mutant:\n{mutant}"
            assert any(passed), f"a plausible program passes something:\n{mutant}"


def test_most_mutants_of_the_bundled_set_pass_its_golden_tests(graded: dict[str, list[Grade]]) -> None:
    mutants = [grade for grades in graded.values() for grade in grades[1:]]
    survivors = [all(verdict is Verdict.PASS for verdict in grade.verdicts[:3]) for grade in mutants]
    assert sum(survivors) / len(survivors) > 0.8
