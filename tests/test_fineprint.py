"""The fine-print family: a clean split, golden tests that see no clause, hidden tests and mutants of each clause.

The family's programs are rendered from the project's own tables, so the tests may run them here.
"""

import functools
import itertools
from typing import Any

import pytest

from codea1_env.errors import ConfigurationError
from codea1_env.problems.families import FAMILIES
from codea1_env.problems.families.fineprint import (
    EMPTY,
    FAMILY_OF,
    PLAIN,
    PLAIN_TESTS,
    TESTS_A_CLAUSE,
    FinePrint,
    clause_of_mutant,
    clause_of_tests,
    fineprint_problems,
    fineprint_words_problems,
)
from codea1_env.problems.families.fineprint_parts import NUMBERS, WORDS, Material
from codea1_env.problems.problem import Problem
from codea1_env.reading.test_case import TestCase

MATERIALS = {"fineprint": NUMBERS, "fineprint_words": WORDS}


@functools.cache
def drawn(family: str, split: str) -> tuple[Problem, ...]:
    return tuple(FAMILIES[family].draw(split, 120, 3, 0.0))


def all_of_them() -> list[Problem]:
    return [problem for family in MATERIALS for split in ("train", "held_out") for problem in drawn(family, split)]


def passes(program: str, problem: Problem, case: TestCase) -> bool:
    """What Python itself says; a program that raises does not pass."""
    namespace: dict[str, Any] = {}
    exec(program, namespace)
    try:
        got = eval(case.call, namespace)
    except Exception:
        return False
    return repr(got) == case.expected


def parts_of(problem: Problem) -> tuple[str, tuple[str, ...]]:
    *_, operation, clauses = problem.problem_id.split("/")
    return operation, tuple(clauses.split("+"))


def question_without(problem: Problem, name: str) -> str:
    """The reference without the line of a clause."""
    family = problem.problem_id.split("/")[0]
    (line,) = [clause.line for clause in MATERIALS[family].clauses if clause.name == name]
    return problem.reference_solution.replace(f"    {line}\n", "", 1)  # type: ignore[union-attr]


def test_the_question_says_what_the_reference_does() -> None:
    operations = {each.name: each for each in NUMBERS.operations}
    clauses = {each.name: each for each in NUMBERS.clauses}
    question = FinePrint(NUMBERS, "score", operations["total"], (clauses["negative"], clauses["cap"]))
    assert question.question == (
        "Write a function score(xs) that returns the sum of the numbers in xs. Ignore negative numbers. Then treat any "
        "number above 50 as 50. If no numbers are left, return None."
    )
    assert question.reference == (
        "def score(xs):\n    xs = [x for x in xs if x >= 0]\n    xs = [min(x, 50) for x in xs]\n"
        "    if not xs:\n        return None\n    return sum(xs)\n"
    )
    assert question.case([3, -4, 60]) == TestCase("score([3, -4, 60])", "53")
    assert question.case([-4]) == TestCase("score([-4])", "None")


def test_references_pass_their_own_tests() -> None:
    for problem in all_of_them():
        for case in (*problem.golden_tests, *problem.hidden_tests):
            assert passes(problem.reference_solution or "", problem, case), (problem.problem_id, case)


def test_golden_tests_touch_no_clause_and_hidden_tests_touch_each() -> None:
    for problem in all_of_them():
        tested = clause_of_tests(problem)
        assert len(tested) == len(problem.hidden_tests)
        for name in parts_of(problem)[1]:
            careless = question_without(problem, name)
            assert all(passes(careless, problem, case) for case in problem.golden_tests), problem.problem_id
            touched = [c for c, part in zip(problem.hidden_tests, tested, strict=True) if part == name]
            assert len(touched) == TESTS_A_CLAUSE
            assert not any(passes(careless, problem, case) for case in touched), (problem.problem_id, name)


def test_hidden_tests_do_not_ask_for_an_order_of_clauses() -> None:
    several = [problem for problem in all_of_them() if len(parts_of(problem)[1]) == 2]
    assert len(several) > 50
    for problem in several:
        lines = (problem.reference_solution or "").splitlines()
        swapped = "\n".join([lines[0], lines[2], lines[1], *lines[3:]])
        assert all(passes(swapped, problem, case) for case in problem.hidden_tests), problem.problem_id


def test_mutants_pass_golden_tests_and_fail_hidden_ones_of_the_clause_that_they_get_wrong() -> None:
    kinds = set()
    for problem in all_of_them():
        assert problem.mutants
        tested = clause_of_tests(problem)
        for mutant in problem.mutants:
            assert all(passes(mutant, problem, case) for case in problem.golden_tests)
            cases = zip(problem.hidden_tests, tested, strict=True)
            failed = {part for case, part in cases if not passes(mutant, problem, case)}
            assert clause_of_mutant(problem, mutant) in failed
            kinds.add(clause_of_mutant(problem, mutant))
    assert kinds == {EMPTY, *(clause.name for material in MATERIALS.values() for clause in material.clauses)}


def test_other_problems_and_programs_have_no_clauses() -> None:
    problem, other = drawn("fineprint", "train")[0], FAMILIES["bands"].draw("train", 1, 0, 0.0)[0]
    assert clause_of_tests(other) == ()
    assert clause_of_mutant(other, other.mutants[0]) == ""
    assert clause_of_mutant(problem, problem.reference_solution or "") == ""
    assert clause_of_tests(problem)[-1 - PLAIN_TESTS :] == (EMPTY, *[PLAIN] * PLAIN_TESTS)


@pytest.mark.parametrize("family", MATERIALS)
def test_no_pair_of_operation_and_clause_is_in_both_splits(family: str) -> None:
    pairs = {
        split: {
            (operation, clause)
            for p in drawn(family, split)
            for operation, clauses in [parts_of(p)]
            for clause in clauses
        }
        for split in ("train", "held_out")
    }
    assert not pairs["train"] & pairs["held_out"]
    names = {clause.name for clause in MATERIALS[family].clauses}
    assert {clause for _, clause in pairs["held_out"]} == {clause for _, clause in pairs["train"]} == names


def test_equal_arguments_give_equal_problems_and_a_longer_list_begins_with_the_shorter() -> None:
    for family, split in itertools.product(MATERIALS, ("train", "held_out")):
        problems = drawn(family, split)
        again = FAMILIES[family].draw(split, 40, 3, 0.0)
        assert again == problems[:40]
        assert len({problem.question for problem in problems}) == len(problems)
        assert again != FAMILIES[family].draw(split, 40, 4, 0.0)


def test_golden_edge_makes_golden_tests_touch_clauses() -> None:
    for problem in fineprint_problems("train", 40, 0, golden_edge=1.0):
        careless = [question_without(problem, name) for name in parts_of(problem)[1]]
        assert all(any(not passes(each, problem, case) for each in careless) for case in problem.golden_tests)


@pytest.mark.parametrize("length", [1, 2, 3, 4])
def test_questions_have_as_many_clauses_as_are_asked_for(length: int) -> None:
    for problem in fineprint_problems("train", 20, 0, lengths=[length]):
        clauses = parts_of(problem)[1]
        assert len(set(clauses)) == len(clauses) == length
        assert len(problem.hidden_tests) == length * TESTS_A_CLAUSE + 1 + PLAIN_TESTS


@pytest.mark.parametrize("material", [NUMBERS, WORDS], ids=lambda material: material.name)
def test_every_clause_is_told_apart_from_its_almost_right_form(material: Material) -> None:
    """A bent line that no input tells from the right one would be no mutant at all."""
    seen = {
        clause
        for problem in fineprint_problems("train", 200, 1, material=material, lengths=[1])
        for mutant in problem.mutants
        if "if not" in mutant and (clause := clause_of_mutant(problem, mutant))
        if len(mutant.splitlines()) == len((problem.reference_solution or "").splitlines())
    }
    assert seen == {clause.name for clause in material.clauses}


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: fineprint_problems("test", 1, 0), "split must be 'train' or 'held_out', got 'test'"),  # type: ignore[arg-type]
        (lambda: fineprint_problems("train", -1, 0), "count must be a whole number and not negative, got -1"),
        (lambda: fineprint_problems("train", 1, 0, 1.5), r"golden_edge must be in \[0, 1\], got 1.5"),
        (lambda: fineprint_problems("train", 1, 0, lengths=[5]), r"lengths must be numbers from 1 to 4, got \[5\]"),
        (lambda: fineprint_problems("train", 1, 0, lengths=[]), r"lengths must be numbers from 1 to 4, got \[\]"),
        (lambda: fineprint_words_problems("held_out", 10_000, 0), "count must be at most about .* got 10000"),
    ],
)
def test_what_cannot_be_drawn_is_refused(draw: Any, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        draw()


def test_every_material_has_a_family() -> None:
    assert {material.name: family for family, material in MATERIALS.items()} == FAMILY_OF
