"""Coverage: lines and outcomes of branches counted by hand, and no more than the calls have run."""

import dataclasses

import pytest

from codea1_env.errors import UnusableReference
from codea1_env.evaluation.coverage import covered, probed
from codea1_env.problems import Problem, bundled_problems
from codea1_env.sandbox import LocalSandbox

SIGN = Problem(
    "sign",
    "q",
    "f",
    reference_solution=(
        '"""A module."""\n'
        "from __future__ import annotations\n"
        "LIMIT = 10\n"
        "def f(x):\n"
        '    """Not counted."""\n'
        "    for y in x:\n"  # line 1; two outcomes
        "        if y < 0:\n"  # 2; two
        "            return -1\n"  # 3
        "        elif y > LIMIT:\n"  # 4; two
        "            raise ValueError\n"  # 5
        "    a = 1; b = 2\n"  # 6, one line
        "    return a + b\n"  # 7
    ),
)


def call(*arguments: str) -> bytes:
    return f"[[{', '.join(arguments)}],[]]".encode()


@pytest.mark.parametrize(
    ("calls", "lines", "branches"),
    [
        ([], 0, 0),
        ([call("[]")], 3, 1),  # the loop's end, 6 and 7
        ([call("[-1]")], 3, 2),  # into the loop, y < 0
        ([call("[11]")], 4, 3),  # into the loop, y >= 0, y > 10: what it raises does not matter
        ([call("[5]")], 5, 4),  # into the loop and out, y >= 0, y <= 10
        ([call("[-1]"), call("[5, 11]")], 5, 5),  # the loop comes to no end
        ([call("[-1]"), call("[5, 11]"), call("[]")], 7, 6),
        ([call('{"e":["f","f([f([]),11])"]}')], 6, 5),  # a question, whose calls are two
        ([call("3")], 1, 0),  # no iterable: line 1 raises
        ([call()], 0, 0),
    ],
)
def test_lines_and_branches_are_those_that_the_calls_run(
    sandbox: LocalSandbox, calls: list[bytes], lines: int, branches: int
) -> None:
    (found,) = covered(sandbox, [(SIGN, calls)])
    assert sorted(found.program.is_line) == [False] * 6 + [True] * 7
    assert found.passed(range(len(calls))) == (lines, branches)


@pytest.mark.parametrize(
    ("body", "lines", "branches"),
    [
        ("    return [y for y in x if y]", 1, 0),
        ("    while True:\n        break", 2, 0),
        ("    while x:\n        x = 0\n    else:\n        return 1", 3, 2),
        ("    try:\n        x()\n    except TypeError:\n        x = 1\n    finally:\n        x = 2", 4, 0),
        ("    with x:\n        pass", 2, 0),
        ("    match x:\n        case 1:\n            return 1\n        case [a, b]:\n            return 2", 3, 3),
        ("    match x:\n        case 1:\n            return 1\n        case _:\n            return 2", 3, 2),
        ("    match x:\n        case 1 | _:\n            return 1", 2, 1),
        ("    match x:\n        case 1:\n            return 1\n        case (2 | _) as y:\n            return y", 3, 2),
        ("    match x:\n        case 1 | 2:\n            return 1", 2, 2),
        ("    def g():\n        return 1\n    return g()", 3, 0),
        ("    class C:\n        a = 1\n    return C.a", 3, 0),
        ("    async def g():\n        if x:\n            return 1\n    return 2", 4, 2),
        ("    global Z\n    Z = lambda: 1", 2, 0),
        (f"    return x + {hex(10**5000)}", 1, 0),
    ],
)
def test_every_statement_can_be_probed(sandbox: LocalSandbox, body: str, lines: int, branches: int) -> None:
    program = probed(dataclasses.replace(SIGN, reference_solution=f"def f(x):\n{body}"))
    assert sorted(program.is_line) == [False] * branches + [True] * lines
    problem = dataclasses.replace(SIGN, reference_solution=f"def f(x):\n{body}")
    (found,) = covered(sandbox, [(problem, [call("1"), call("[1, 2]")])])
    assert found.passed([0, 1])[0] >= 1


def test_a_call_that_is_stopped_has_run_nothing_and_the_others_have(sandbox: LocalSandbox) -> None:
    source = "def f(x):\n    while x:\n        pass\n    return x"
    problem = dataclasses.replace(SIGN, reference_solution=source, time_limit_s=0.2)
    (found,) = covered(sandbox, [(problem, [call("1"), call("0")])])
    assert found.notes[0] == frozenset()
    assert found.passed([1])[0] == 2


def test_what_an_earlier_call_left_behind_hides_no_line_from_a_later_one(sandbox: LocalSandbox) -> None:
    source = "KNOWN = {}\ndef f(x):\n    if x not in KNOWN:\n        KNOWN[x] = 1\n    return KNOWN[x]"
    (found,) = covered(sandbox, [(dataclasses.replace(SIGN, reference_solution=source), [call("1")] * 2)])
    assert found.passed([0])[0] == found.passed([1])[0] == 3


@pytest.mark.parametrize("reference", [None, "def f(:", "1/0"])
def test_a_reference_that_cannot_run_is_refused(sandbox: LocalSandbox, reference: str | None) -> None:
    with pytest.raises(UnusableReference, match="'sign'"):
        covered(sandbox, [(dataclasses.replace(SIGN, reference_solution=reference), [call("1")])])


def test_probes_change_no_answer_of_a_bundled_reference(sandbox: LocalSandbox) -> None:
    """The copy's own function, asked directly, is still right."""
    from codea1_env import Arena

    with Arena(LocalSandbox()) as arena:
        for problem in bundled_problems()[::4]:
            (grade,) = arena.grade(problem, [probed(problem).source], problem.golden_tests + problem.hidden_tests)
            assert grade.all_passed, problem.problem_id
