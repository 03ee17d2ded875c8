"""Scripts of test programs as test cases: what is read, under which tolerance, and that nothing is dropped silently."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import example, given, strategies as st

from codea1_env.arena.arena import Arena
from codea1_env.errors import ProblemFormatError
from codea1_env.problems import Problem, TestCase, check_functions
from codea1_env.problems.check_functions import Extracted, extract, reasons
from codea1_env.reading.grammar import read_case
from codea1_env.sandbox import LocalSandbox

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
RECORDED = DATA / "recorded-humaneval-codegen16b.jsonl.gz"

HELPER = """
import numpy as np

def floating(x):
    return isinstance(x, float)

def same(out, exp, atol):
    is_equal = out == exp
    if atol == 0 and floating(exp):
        atol = 1e-6
    if not is_equal and atol != 0:
        assert np.allclose(out, exp, rtol=1e-7, atol=atol)
    else:
        assert is_equal, f"{out}"
"""


def loop(inputs: str, results: str, given: str = "0", call: str = "candidate(*x)") -> str:
    return (
        f"def check(candidate):\n    xs = {inputs}\n    ys = {results}\n"
        f"    for i, (x, y) in enumerate(zip(xs, ys)):\n        same({call}, y, {given})\n"
    )


def pairs(found: Extracted) -> list[tuple[str, str]]:
    return [(case.call, case.expected) for case in found.tests]


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("assert candidate(1, [2]) == (3,)", [("f(1, [2])", "(3,)")]),
        ("assert 3 == candidate(1), 'message'", [("f(1)", "3")]),
        ("assert candidate(1) is None", [("f(1)", "None")]),
        ("assert candidate(1) == 2 and candidate(b=2) == 3", [("f(1)", "2"), ("f(b=2)", "3")]),
        ("x = [1, 2]\n    assert candidate(x) == x", [("f([1, 2])", "[1, 2]")]),
        ("assert candidate(1) == 2\n    assert candidate(1) == 2", [("f(1)", "2")]),
        ("assert candidate(1) == 2\n    return\n    assert candidate(2) == 3", [("f(1)", "2")]),
        ("assert True, 'asserts nothing'", []),
        ("self.assertEqual(candidate(1), 2)\n    self.assertIsNone(candidate(2))", [("f(1)", "2"), ("f(2)", "None")]),
        ("self.assertTrue(candidate(1) == 2 and candidate(2) == 3)", [("f(1)", "2"), ("f(2)", "3")]),
    ],
)
def test_an_assert_in_a_check_function_is_a_test_of_the_entry_point(
    statement: str, expected: list[tuple[str, str]]
) -> None:
    found = extract(f"METADATA = {{}}\n\ndef check(candidate):\n    {statement}\n\ncheck(f)\n", "f")
    assert pairs(found) == expected
    assert found.left_out == []
    assert found.tolerance == 0


@pytest.mark.parametrize(
    ("condition", "tolerance"),
    [
        ("abs(candidate(1) - 0.5) < 1e-6", 1e-6),
        ("abs(0.5 - candidate(1)) <= 10 ** -3", 1e-3),
        ("math.fabs(candidate(1) - 0.5) < 0.01", 0.01),
        ("candidate(1) == pytest.approx(0.5)", 1e-6),
        ("candidate(1) == approx(0.5, rel=1e-3, abs=1e-4)", 1e-3),
        ("candidate(1) == pytest.approx(0.5, 1e-2)", 1e-2),
        ("math.isclose(candidate(1), 0.5)", 1e-9),
        ("math.isclose(candidate(1), 0.5, abs_tol=1e-5)", 1e-5),
        ("abs(candidate(1) - 0.5) < 0.005 and abs(candidate(1) - 0.5) < 1e-3", 5e-3),
    ],
)
def test_an_assert_of_closeness_is_an_equality_with_its_tolerance(condition: str, tolerance: float) -> None:
    found = extract(f"def check(candidate):\n    assert {condition}", "f")
    assert pairs(found) == [("f(1)", "0.5")]
    assert found.tolerance == pytest.approx(tolerance)


def test_an_absolute_tolerance_is_the_share_of_a_large_value_that_it_is() -> None:
    """Else a problem's other tests would be met by values that are far off."""
    found = extract("assert abs(f(100) - 1000.0) < 0.5\nassert f(1) == approx(-20, abs=0.01)", "f")
    assert pairs(found) == [("f(100)", "1000.0"), ("f(1)", "-20")]
    assert found.tolerance == pytest.approx(5e-4)
    assert reasons(extract("assert abs(f(1) - 3.14) < 0.1", "f").left_out) == {"wrapped_call": 1}


def test_a_name_that_an_assert_changes_is_not_taken_for_what_it_was() -> None:
    found = extract("x = [3, 1, 2]\nassert x.pop() == 2\nassert f(x) == 4\nassert f([1]) == 1", "f")
    assert pairs(found) == [("f([1])", "1")]


def test_a_script_that_is_indented_as_a_whole_is_read() -> None:
    assert pairs(extract("    assert f(1) == 1\n    assert f(2) == 2\n", "f")) == [("f(1)", "1"), ("f(2)", "2")]


@pytest.mark.parametrize(
    ("script", "reason", "count"),
    [
        ("def check(candidate):\n    assert candidate(1)", "not_a_comparison", 1),
        ("def check(candidate):\n    assert not candidate(1)", "not_a_comparison", 1),
        ("def check(candidate):\n    assert len(candidate(1)) == 2", "wrapped_call", 1),
        ("def check(candidate):\n    assert candidate(candidate(1)) == 2", "entry_point_again", 1),
        ("def check(candidate):\n    assert candidate(encode('a')) == 'a'", "forbidden_call", 1),
        ("def check(candidate):\n    assert candidate(1) > 2", "operator", 1),
        ("def check(candidate):\n    assert abs(candidate(1) - 2) < 5", "wrapped_call", 1),
        ("def check(candidate):\n    assert abs(candidate(1) - 2) < EPSILON", "wrapped_call", 1),
        ("def check(candidate):\n    for i in limits():\n        assert candidate(i) == i", "block", 1),
        ("if x:\n    assert f(1) == 1\n    assert f(2) == 2", "block", 2),
        ("def check(candidate):\n    verify(candidate, 1)", "statement", 1),
        ("def test_f():\n    with pytest.raises(ValueError):\n        f(1)", "expects_exception", 1),
        ("@pytest.mark.flaky\ndef test_f(x):\n    assert f(x) == 1", "decorated", 1),
        ("def test_f(monkeypatch):\n    assert f(1) == 1", "function", 1),
        ("class TestF:\n    def setUp(self):\n        self.x = 1\n    def test_f(self):\n        assert f(self.y) == 1",
         "attribute", 1),
        ("class Helper:\n    def f(self):\n        assert f(1) == 1", "class", 1),
        ("def check(candidate:", "the script does not parse: syntax", 1),
    ],
)  # fmt: skip
def test_what_is_no_test_case_is_left_out_with_its_reason(script: str, reason: str, count: int) -> None:
    found = extract(script, "f")
    assert found.tests == []
    assert reasons(found.left_out) == {reason: count}
    assert all(each.source for each in found.left_out)


def test_pytest_functions_and_methods_are_read_and_their_helpers_are_not() -> None:
    script = (
        "from solution import f\nimport pytest\n\n"
        "def helper():\n    assert f(0) == 0\n\n"
        "def test_a():\n    assert f(1) == 2\n    n = 3\n    assert f(n) == 4\n\n"
        "class TestF:\n    def test_b(self):\n        assert f(5) == 6\n\n"
        "if __name__ == '__main__':\n    pytest.main()\n"
    )
    found = extract(script, "f")
    assert pairs(found) == [("f(1)", "2"), ("f(3)", "4"), ("f(5)", "6")]
    assert found.left_out == []


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        (
            "def check(candidate):\n    for i in range(2):\n        assert candidate(i) == i",
            [("f(0)", "0"), ("f(1)", "1")],
        ),
        ("@pytest.mark.parametrize('x', [1, 2])\ndef test_f(x):\n    assert f(x) == 3", [("f(1)", "3"), ("f(2)", "3")]),
        ("class TestF(TestCase):\n    def test_f(self):\n        self.assertEqual(f(1), 2)", [("f(1)", "2")]),
        ("def helper(x):\n    assert f(x) == x\nhelper(3)", [("f(3)", "3")]),
    ],
)
def test_tables_and_helpers_are_read_as_in_suites(script: str, expected: list[tuple[str, str]]) -> None:
    found = extract(script, "f")
    assert pairs(found) == expected
    assert found.left_out == []


def test_the_work_is_bounded_and_what_is_not_gone_through_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_functions, "_MOST_STEPS", 1 << 14)
    rows = str(list(range(100)))
    script = f"for a in {rows}:\n for b in {rows}:\n  for c in {rows}:\n   assert f(1) == 2"
    found = extract(script, "f")
    assert pairs(found) == [("f(1)", "2")]
    assert reasons(found.left_out)["too_much"] == 1


def test_inputs_and_results_are_paired_and_floats_get_the_helpers_tolerance() -> None:
    exact = extract(HELPER + loop("[[1, 'a'], [[2], None]]", "[{'k': (1,)}, [3]]"), "f")
    assert pairs(exact) == [("f(1, 'a')", "{'k': (1,)}"), ("f([2], None)", "[3]")]
    assert exact.tolerance == 0
    assert exact.left_out == []
    assert extract(HELPER + loop("[[1], [2]]", "[1, -0.5]"), "f").tolerance == 1e-6
    assert extract(HELPER + loop("[[1]]", "[[0.5, 1.5]]"), "f").tolerance == 1e-6
    assert extract(HELPER + loop("[[1]]", "[[0.5, 1]]"), "f").tolerance == 0  # as the helper has it
    assert extract(HELPER + loop("[[1]]", "[1]", "1e-3"), "f").tolerance == 1e-3


def test_a_loop_at_the_top_level_that_names_the_entry_point_is_read_too() -> None:
    script = HELPER + "xs = [[1]]\nys = [2]\nfor i, (x, y) in enumerate(zip(xs, ys)):\n    same(f(*x), y, 0)\n"
    assert pairs(extract(script, "f")) == [("f(1)", "2")]


def test_a_reference_function_leaves_calls_without_values_and_the_program_that_has_them() -> None:
    script = HELPER + (
        "import math\nSCALE = 2\ndef scaled(x):\n    return SCALE * x\ndef unused():\n    return np\n"
        "def ref(x):\n    return math.floor(scaled(x))\n"
        "def check(candidate):\n    xs = [[1], [2.5]]\n    for i, x in enumerate(xs):\n"
        "        same(candidate(*x), ref(*x), 0)\n"
    )
    found = extract(script, "f")
    assert found.unvalued == ["f(1)", "f(2.5)"]
    assert found.tests == []
    assert (found.reference_name, found.reference_tolerance) == ("ref", 1e-6)
    assert [line for line in found.reference.splitlines() if not line.startswith(" ")] == [
        "import math", "SCALE = 2", "def scaled(x):", "def ref(x):",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (HELPER + loop("[[1]]", "[2]", call="candidate(x)"), "block"),
        (HELPER + loop("[[1]]", "[2]", call="set(candidate(*x))"), "block"),
        (HELPER + loop("[[1]]", "[2]", call="other(*x)"), "block"),
        (HELPER + loop("[[1]]", "[2, 3]"), "a loop whose results are not listed, one for each input"),
        (HELPER + loop("make()", "[2]"), "a loop whose inputs are not listed"),
        (HELPER.replace("is_equal = out == exp", "is_equal = exp == (out is not None)") + loop("[[1]]", "[True]"),
         "same compares otherwise than by equality"),
        (HELPER.replace("is_equal = out == exp", "is_equal = set(out) == set(exp)") + loop("[[1]]", "[[1]]"),
         "same compares otherwise than by equality"),
        (HELPER.replace("is_equal = out", "out = sorted(out)\n    is_equal = out") + loop("[[1]]", "[[1]]"),
         "same compares otherwise than by equality"),
        (HELPER.replace("    is_equal = out", "    return\n    is_equal = out") + loop("[[1]]", "[1]"),
         "same compares otherwise than by equality"),
        (loop("[[1]]", "[2]"), "same compares otherwise than by equality"),
    ],
)  # fmt: skip
def test_a_loop_that_differs_in_any_point_is_left_out(script: str, reason: str) -> None:
    found = extract(script, "f")
    assert found.tests == []
    # Of the helper that is left then, each of its own lines counts.
    assert reasons(found.left_out) == {reason: 3 if reason == "block" else 1}


def test_lists_that_are_changed_before_the_loop_are_not_taken_for_what_they_were() -> None:
    script = HELPER + loop("[[1]]", "[2]").replace("    for i", "    ys.insert(0, 3)\n    for i")
    found = extract(script, "f")
    assert found.tests == []
    assert "a loop whose results are not listed, one for each input" in reasons(found.left_out)


def test_one_bad_input_leaves_the_others() -> None:
    found = extract(HELPER + loop("[[1], [open('x')], 7]", "[1, 2, 3]"), "f")
    assert pairs(found) == [("f(1)", "1")]
    assert reasons(found.left_out) == {"forbidden_call": 1, "starred": 1}


def test_nothing_of_a_script_is_executed(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    extract(
        f"open({str(mark)!r}, 'w')\ndef check(candidate):\n    assert candidate(open({str(mark)!r}, 'w')) == 1", "f"
    )
    assert not mark.exists()


@given(st.text(max_size=200))
@example("\r")
@example("\r1\r2")
def test_any_text_is_read_without_an_error(text: str) -> None:
    for script in (text, f"def check(candidate):\n    assert candidate({text}) == 1", f"{HELPER}\n{text}"):
        found = extract(script, "f")
        assert all(not read_case(case, "f").reason for case in found.tests)


@pytest.mark.parametrize(("tolerance", "share"), [(0.0, 0.0), (1e-6, 1.0)])
def test_a_problems_tolerance_decides_whether_a_near_float_is_right(tolerance: float, share: float) -> None:
    problem = Problem("p", "q", "f", tolerance=tolerance)
    with Arena(LocalSandbox()) as arena:
        (grade,) = arena.grade(problem, ["def f(x): return [x + 1e-8]"], [TestCase("f(0.5)", "[0.5]")])
    assert grade.share == share


@pytest.mark.parametrize("tolerance", [-1e-6, 1, True, "0", float("nan"), None])
def test_a_tolerance_is_a_share_of_one(tolerance: object) -> None:
    with pytest.raises(ProblemFormatError, match=r"tolerance must be in \[0, 1\)"):
        Problem("p", "q", "f", tolerance=tolerance)  # type: ignore[arg-type]


@pytest.mark.skipif(not RECORDED.exists(), reason="the recorded HumanEval problems are not here")
def test_of_humanevals_own_check_functions_all_but_four_become_test_cases_fully() -> None:
    left = {}
    with gzip.open(RECORDED, "rt") as lines:
        for line in lines:
            record = json.loads(line)
            found = extract(record["check"], record["entry_point"])
            if found.left_out or not found.tests:
                left[record["task_id"]] = len(found.tests)
    assert left == {f"HumanEval/{number}": tests for number, tests in ((32, 0), (38, 0), (50, 0), (52, 0))}


DIGITS = "9" * 5000
BROKEN_ASSERTS = {
    "digits": (f"assert f({DIGITS}) == 2", "too_large"),
    "value": (f"assert f(2) == {DIGITS}", "too_large"),
    "deep": (f"assert f({'[' * 250}{']' * 250}) == 2", "too_deep"),
    "sum": (f"assert f({'+'.join('1' * 20_000)}) == 2", "too_deep"),
    "syntax": ("assert f(2 == 4", "syntax"),
    "string": ("assert f('''2) == 4", "syntax"),
    "null byte": ("assert f('\x00') == 4", "syntax"),
    "prose": ("assert that f of two is four", "syntax"),
}
SCRIPTS = {
    "script": ("{}\n", ""),
    "check": ("def check(candidate):\n{}\n", "    "),
    "pytest": ("import pytest\n\ndef test_f():\n{}\n", "    "),
    "unittest": ("import unittest\n\nclass TestF(unittest.TestCase):\n    def test_f(self):\n{}\n", "        "),
}


@pytest.mark.parametrize(("form", "indent"), SCRIPTS.values(), ids=SCRIPTS)
@pytest.mark.parametrize(("broken", "why"), BROKEN_ASSERTS.values(), ids=BROKEN_ASSERTS)
@pytest.mark.parametrize("place", range(3))
def test_an_assert_that_does_not_parse_is_lost_alone(form: str, indent: str, broken: str, why: str, place: int) -> None:
    asserts = ["assert f(1) == 2", "assert f(3) == 6"]
    asserts.insert(place, broken)
    found = extract(form.format("\n".join(indent + each for each in asserts)), "f")
    assert pairs(found) == [("f(1)", "2"), ("f(3)", "6")]
    assert reasons(found.left_out) == {f"the script does not parse: {why}": 1}
    assert found.left_out[0].source[:12] == broken[:12]


def test_what_a_lost_statement_names_is_not_known_behind_it() -> None:
    found = extract(f"x = 1\nassert f(x) == 1\nx = {DIGITS}\nassert f(x) == 2\nassert f(3) == 3", "f")
    assert pairs(found) == [("f(1)", "1"), ("f(3)", "3")]
    assert reasons(found.left_out) == {"the script does not parse: too_large": 1, "forbidden_name": 1}


def test_the_candidate_of_a_check_that_breaks_off_is_the_entry_point() -> None:
    found = extract(f"def check(candidate):\n    assert candidate(1) == 2\n    assert candidate({DIGITS}) == 1\n", "f")
    assert pairs(found) == [("f(1)", "2")]
    found = extract(f"def helper(function):\n    assert function(1) == 2\n    assert function({DIGITS}) == 1\n", "f")
    assert pairs(found) == []


def test_a_whole_number_that_python_writes_in_no_decimal_takes_nothing_along() -> None:
    large = "0x" + "f" * 4000
    found = extract(f"assert f({large}) == 1\nassert g({large}) == 1\nassert f(2) == 2", "f")
    assert pairs(found) == [(f"f({large})", "1"), ("f(2)", "2")]
    assert reasons(found.left_out) == {"not_entry_point": 1}
