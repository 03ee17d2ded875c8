"""Programs that answer without computing are told by their text, and shown while a run learns."""

from __future__ import annotations

import math

import pytest

from codea1_env.arena.diagnostics import hollow_metrics, is_constant, is_hard_coded
from codea1_env.problems.problem import Problem
from codea1_env.reading.test_case import TestCase

SHIFT = Problem(
    "shift",
    "?",
    "shift",
    reference_solution="def shift(text, by):\n    return text[by:] + text[:by]\n",
    golden_tests=(TestCase("shift('abcd', 1)", "'bcda'"), TestCase("shift(text='xyz', by=2)", "'zxy'")),
)
METHOD = Problem("m", "?", "Solution().total", reference_solution="", kind="method")
PROGRAM = Problem("p", "?", "run", reference_solution="print(input())\n", kind="program")


@pytest.mark.parametrize(
    ("problem", "source", "expected"),
    [
        (SHIFT, "def shift(text, by):\n    return 'bcda'\n", True),
        (SHIFT, "def shift(*text):\n    return helper()\ndef helper():\n    return 1\n", True),
        (SHIFT, "def shift(text, by):\n    return text\n", False),
        (SHIFT, "def shift(text, by):\n    return locals()['by']\n", True),
        (SHIFT, "def shift():\n    return 1\n", False),
        (SHIFT, "def other(text):\n    return 1\n", False),
        (SHIFT, "def shift(text:\n", False),
        (METHOD, "class Solution:\n    def total(self, n):\n        return 3\n", True),
        (METHOD, "class Solution:\n    def total(self, n):\n        return self.n + n\n", False),
        (PROGRAM, "print(7)\n", True),
        (PROGRAM, "import sys\nprint(sys.stdin.read())\n", False),
    ],
)
def test_a_constant_program_never_names_what_it_is_given(problem: Problem, source: str, expected: bool) -> None:
    assert is_constant(problem, source) is expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("def shift(t, n):\n    return {('abcd', 1): 'bcda', ('xyz', 2): 'zxy'}[t, n]\n", True),
        ("def shift(t, n):\n    if t == 'abcd' and n == 1:\n        return 'bcda'\n    return t\n", False),
        ("def shift(t, n):\n    '''shift('abcd', 1) 'bcda' 'xyz' 2 'zxy' '''\n    return t[n:] + t[:n]\n", False),
        ("def shift(t, n):\n    return t\nassert shift('abcd', 1) == 'bcda'\nassert shift('xyz', 2) == 'zxy'\n", False),
        ("def shift(t, n:\n", False),
    ],
    ids=["table", "one alone", "docstring", "asserts", "no program"],
)
def test_a_hard_coded_program_holds_the_answers_of_two_golden_tests(source: str, expected: bool) -> None:
    assert is_hard_coded(SHIFT, source) is expected


def test_single_digits_are_in_every_program_and_tell_nothing() -> None:
    tests = (TestCase("f(1)", "2"), TestCase("f(2)", "3"))
    problem = Problem("f", "?", "f", reference_solution="def f(n):\n    return n + 1\n", golden_tests=tests)
    assert not is_hard_coded(problem, "def f(n):\n    return {1: 2, 2: 3}[n]\n")


def test_a_number_that_python_does_not_write_is_no_literal_that_a_program_holds() -> None:
    huge, tests = hex(10**5000), (("f(20)", "11"), ("f(30)", "12"))
    cases = (TestCase("f(40)", huge), TestCase(f"f({huge})", "7"), *(TestCase(*test) for test in tests))
    problem = Problem("f", "?", "f", reference_solution="def f(n):\n    return n\n", golden_tests=cases)
    assert is_hard_coded(problem, f"def f(n):\n    return {{20: 11, 30: 12, 40: {huge}}}[n]\n")
    assert not is_hard_coded(problem, f"def f(n):\n    return {{20: 11, 40: {huge}}}[n]\n")


def test_the_shares_of_a_round() -> None:
    programs = ["def shift(t, n):\n    return 0\n", "def shift(t, n):\n    return t\n"]
    assert hollow_metrics([(SHIFT, source) for source in programs]) == {
        "constant_programs": 0.5,
        "hard_coded_programs": 0.0,
    }
    assert all(math.isnan(value) for value in hollow_metrics([]).values())
