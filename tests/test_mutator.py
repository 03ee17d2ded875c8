"""Mutants: one change each, all of them, in order, that parse and mostly matter."""

import ast
import random

import pytest

from codea1_env import Arena, LocalSandbox
from codea1_env.problems import Problem, bundled_problems
from codea1_env.reading.programs.mutants import drawn_mutant, mutants


def sources(source: str) -> set[str]:
    return {mutant.source for mutant in mutants(source)}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("x < y", {"x <= y", "x > y"}),
        ("x == y", {"x != y"}),
        ("x in y", {"x not in y"}),
        ("x is y", {"x is not y"}),
        ("x < y < z", {"x <= y < z", "x > y < z", "x < y <= z", "x < y > z"}),
        ("x + y", {"x - y"}),
        ("x // y", {"x % y", "x / y"}),
        ("x and y", {"x or y"}),
        ("-x", {"+x"}),
        ("x[0]", {"x[1]", "x[-1]"}),
        ("x[5]", {"x[4]", "x[6]"}),
        ("x if y else z", {"x if not y else z"}),
        ("[x for x in y if z]", {"[x for x in y if not z]"}),
        ("f(True)", {"f(False)"}),
        ("f('ab')", {"f('a')"}),
        ("f('')", {"f(' ')"}),
        ("f(1.0)", {"f(2.0)", "f(0.5)"}),
        ("min(x)", {"max(x)"}),
        ("x += y", {"x -= y"}),
        ("if x:\n    y", {"if not x:\n    y"}),
        ("assert x", {"assert not x"}),
        ("def f():\n    return x", {"def f():\n    return None"}),
        ("def f():\n    return", set()),
        ("def f():\n    return None", set()),
        ("for x in y:\n    break", {"for x in ():\n    break", "for x in y:\n    continue"}),
        ("for x in y:\n    continue", {"for x in ():\n    continue", "for x in y:\n    break"}),
        ("x[a:b]", {"x[a + 1:b]", "x[a - 1:b]", "x[a:b + 1]", "x[a:b - 1]"}),
        ("x[:]", {"x[1:]", "x[:-1]"}),
        ("x[::z]", set()),
        ("x[:2]", {"x[1:2]", "x[:1]", "x[:3]"}),
        ("x + [y]", set()),
        ("'%s' % x", {"'%' % x"}),
        ("None", set()),
        ("pass", set()),
    ],
)
def test_every_change_of_a_construct_comes_up_and_no_other(source: str, expected: set[str]) -> None:
    assert sources(source) == expected


@pytest.mark.parametrize(
    "source",
    [
        'def f(x: "int", y: list[1]) -> "a":\n    """Some text."""',
        "if __name__ == '__main__':\n    print(1 + 1)",
        "from a import b",
        "@d(1)\ndef f():\n    pass",
        "f'{x:>10}'",
    ],
)
def test_nothing_that_does_no_harm_is_changed(source: str) -> None:
    assert sources(source) == set()


def test_a_while_loop_is_not_turned_round_nor_made_to_run_backwards() -> None:
    loop = "while i < n:\n    i += 1\n    if x:\n        break"
    harmless = {
        "while False:\n    i += 1\n    if x:\n        break",
        "while i <= n:\n    i += 1\n    if x:\n        break",
        "while i < n:\n    i += 2\n    if x:\n        break",
        "while i < n:\n    i += 1\n    if not x:\n        break",
    }
    assert sources(loop) == harmless
    assert sources("while x:\n    break") == {"while False:\n    break"}


@pytest.mark.parametrize("source", ["def f(:", "x = '\ud800'", "\x00", "[" * 500, "", "x = " + hex(10**5000)])
def test_what_cannot_be_read_or_changed_has_no_mutant(source: str) -> None:
    assert mutants(source) == []
    assert drawn_mutant(source, random.Random(0)) is None


def test_mutants_are_named_by_operator_and_line_in_the_order_of_the_source() -> None:
    found = mutants("def f(x):\n    if x < 1 and x:\n        return 2\n    return x")
    assert [mutant.name for mutant in found] == [
        "negated-condition: c to not c (line 2, column 7)",
        "relational: < to <= (line 2, column 8)",
        "relational: < to > (line 2, column 8)",
        "constant: 1 to 2 (line 2, column 11)",
        "constant: 1 to 0 (line 2, column 11)",
        "logical: and to or (line 2, column 12)",
        "return-none: return x to return None (line 3, column 8)",
        "constant: 2 to 3 (line 3, column 15)",
        "constant: 2 to 1 (line 3, column 15)",
        "return-none: return x to return None (line 4, column 4)",
    ]


def test_mutants_of_every_bundled_reference_are_different_programs_with_different_names() -> None:
    for problem in bundled_problems():
        reference = problem.reference_solution or ""
        found = mutants(reference)
        assert found == mutants(reference), "the same again"
        assert len({mutant.name for mutant in found}) == len({mutant.source for mutant in found}) == len(found)
        assert ast.unparse(ast.parse(reference)) not in {mutant.source for mutant in found}
        assert all(mutant.line <= len(reference.splitlines()) for mutant in found)
        assert set(mutants(reference)) <= set(found)


def test_a_mutant_is_drawn_by_the_generator_alone() -> None:
    source = bundled_problems()[0].reference_solution or ""
    assert drawn_mutant(source, random.Random(3)) == drawn_mutant(source, random.Random(3))
    assert len({drawn_mutant(source, random.Random(seed)) for seed in range(50)}) > 5


def test_most_mutants_of_the_bundled_references_fail_a_test() -> None:
    def broken(problem: Problem) -> str:
        mutant = drawn_mutant(problem.reference_solution or "", random.Random(1))
        assert mutant is not None
        return mutant.source

    problems = bundled_problems()[:16]
    with Arena(LocalSandbox()) as arena:
        grades = arena.grade_many(
            [(each, [broken(each)], (*each.golden_tests, *each.hidden_tests)) for each in problems]
        )
    assert sum(not grade.all_passed for (grade,) in grades) >= 12
    assert all(grade.executes for (grade,) in grades)
