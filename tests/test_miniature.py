"""The miniature family: a seeded procedure, a clean split, weak golden tests, strong hidden ones, natural mutants.

The family's programs are rendered from the project's own tables, so the tests may run them here.
"""

import ast
import itertools
import random
from typing import Any

import pytest

from codea1_env.errors import ConfigurationError
from codea1_env.problems.families.miniature import (
    GOLDEN_TESTS,
    HIDDEN_TESTS,
    RAISED,
    Composition,
    miniature_compositions,
    miniature_problems,
)
from codea1_env.problems.families.miniature_operations import AGGREGATES, FILTERS, MAPS
from codea1_env.problems.problem import Problem
from codea1_env.reading.test_case import TestCase

TRAIN = miniature_problems("train", 120, seed=3)
HELD_OUT = miniature_problems("held_out", 60, seed=3)


def returned(program: str, entry_point: str, case: TestCase) -> Any:
    """What the program returns for the case's call, or the name of what it raises."""
    namespace: dict[str, Any] = {}
    exec(program, namespace)
    try:
        return eval(case.call, namespace)
    except Exception as error:
        return type(error).__name__


def passes(program: str, problem: Problem, cases: tuple[TestCase, ...]) -> bool:
    return all(returned(program, problem.entry_point, case) == ast.literal_eval(case.expected) for case in cases)


def input_of(case: TestCase) -> list[int]:
    value = ast.literal_eval(case.call[case.call.index("(") + 1 : -1])
    assert isinstance(value, list)
    return value


def test_there_are_about_eleven_thousand_compositions() -> None:
    assert 10_000 <= len(FILTERS) * len(MAPS) * len(AGGREGATES) <= 12_000


def test_equal_arguments_give_equal_problems_and_other_seeds_give_others() -> None:
    assert miniature_problems("train", 20, seed=3) == TRAIN[:20]
    other = miniature_problems("train", 20, seed=4)
    assert {p.question for p in other} != {p.question for p in TRAIN[:20]}


def test_questions_and_identifiers_are_distinct() -> None:
    problems = TRAIN + HELD_OUT
    assert len({p.question for p in problems}) == len({p.problem_id for p in problems}) == len(problems)


@pytest.mark.parametrize(("seed", "other"), [(0, 0), (0, 1), (5, 2)])
def test_no_type_triple_is_in_both_splits_whatever_the_seeds(seed: int, other: int) -> None:
    train = {c.triple for c in miniature_compositions("train", 2_000, seed)}
    held_out = {c.triple for c in miniature_compositions("held_out", 500, other)}
    assert train
    assert held_out
    assert not train & held_out


@pytest.mark.parametrize("problem", TRAIN[:40] + HELD_OUT[:20], ids=lambda p: p.problem_id)
def test_reference_passes_its_golden_and_hidden_tests(problem: Problem) -> None:
    assert len(problem.golden_tests) == GOLDEN_TESTS
    assert len(problem.hidden_tests) == HIDDEN_TESTS + 1
    assert problem.hidden_tests[0].call == f"{problem.entry_point}([])"
    assert len({case.call for case in problem.hidden_tests}) == len(problem.hidden_tests)
    assert problem.reference_solution is not None
    assert passes(problem.reference_solution, problem, problem.golden_tests + problem.hidden_tests)


def test_every_mutant_passes_the_golden_tests_and_fails_a_hidden_one() -> None:
    mutants = [(problem, mutant) for problem in TRAIN + HELD_OUT for mutant in problem.mutants]
    assert len(mutants) > 2 * len(TRAIN + HELD_OUT), "about three a problem"
    for problem, mutant in mutants:
        assert passes(mutant, problem, problem.golden_tests)
        assert not passes(mutant, problem, problem.hidden_tests)


def test_hurried_golden_inputs_never_meet_zero_the_empty_list_or_a_number_of_the_question() -> None:
    compositions = miniature_compositions("train", len(TRAIN), seed=3)
    for composition, problem in zip(compositions, TRAIN, strict=True):
        named = {*composition.keep.constants, *composition.transform.constants, 0}
        for case in problem.golden_tests:
            xs = input_of(case)
            assert 3 <= len(xs) <= 5
            assert len(set(xs)) == len(xs)
            assert not named & set(xs)


def test_golden_edge_makes_golden_tests_stronger() -> None:
    def surviving(golden_edge: float) -> int:
        return sum(len(p.mutants) for p in miniature_problems("train", 120, 3, golden_edge))

    weak, mixed, strong = surviving(0.0), surviving(0.5), surviving(1.0)
    assert weak > mixed > strong > 0


def test_problems_survive_json() -> None:
    assert all(Problem.from_json(problem.to_json()) == problem for problem in HELD_OUT)


def test_all_correct_spellings_of_an_operation_agree() -> None:
    rng = random.Random(0)
    inputs = [[], *([rng.randint(-9, 9) for _ in range(rng.randint(1, 5))] for _ in range(200))]
    for operation in AGGREGATES:
        values = [[eval(text, {"ys": list(ys)}) for ys in inputs] for text in operation.correct]
        assert all(value == values[0] for value in values)


def test_every_bug_differs_from_the_right_expression_somewhere() -> None:
    numbers = [{"x": x} for x in range(-12, 13)]
    lists = [{"ys": list(ys)} for n in range(4) for ys in itertools.product((-2, -1, 0, 1, 2, 10), repeat=n)]
    for operations, scopes in ((FILTERS[1:] + MAPS, numbers), (AGGREGATES, lists)):
        for operation in operations:
            for bug in operation.bugs:
                assert any(differs(operation.correct[0], bug, scope) for scope in scopes), (operation.phrase, bug)


def differs(right: str, wrong: str, scope: dict[str, Any]) -> bool:
    try:
        return bool(eval(right, dict(scope)) != eval(wrong, dict(scope)))
    except (ValueError, IndexError):
        return True


def test_programs_without_bugs_are_right_and_with_bugs_mostly_wrong() -> None:
    compositions = miniature_compositions("train", len(TRAIN), seed=3)
    rng = random.Random(1)
    right = [passes(c.program(rng, 0.0), p, p.hidden_tests) for c, p in zip(compositions, TRAIN, strict=True)]
    wrong = [passes(c.program(rng, 1.0), p, p.hidden_tests) for c, p in zip(compositions, TRAIN, strict=True)]
    assert all(right)
    assert sum(wrong) < len(wrong) / 4


def test_edge_inputs_meet_what_typical_ones_avoid() -> None:
    composition = next(c for c in miniature_compositions("train", 50, 0) if c.keep.constants)
    rng = random.Random(2)
    edges = [composition.edge_input(rng) for _ in range(300)]
    typical = [composition.typical_input(rng) for _ in range(300)]
    assert any(not xs for xs in edges)
    assert any(composition.keep.constants[0] in xs for xs in edges)
    assert all(xs and composition.keep.constants[0] not in xs for xs in typical)


def test_a_program_that_raises_returns_the_marker() -> None:
    composition = Composition("f", FILTERS[0], MAPS[0], next(a for a in AGGREGATES if a.kind == "largest"))
    unguarded = composition.reference.replace("max(ys) if ys else 0", "max(ys)")
    assert composition.run(unguarded, []) is RAISED
    assert composition.run(unguarded, [3, 5]) == 5


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: miniature_problems("dev", 1, 0), "split must be 'train' or 'held_out', got 'dev'"),  # type: ignore[arg-type]
        (lambda: miniature_problems("train", -1, 0), r"count must be in \[0, "),
        (lambda: miniature_problems("held_out", 1_000_000, 0), r"count must be in \[0, .*got 1000000"),
        (lambda: miniature_problems("train", "3", 0), r"count must be in \[0, .*, got '3'"),  # type: ignore[arg-type]
        (lambda: miniature_problems("train", 1, 0, "1"), r"golden_edge must be in \[0, 1\], got '1'"),  # type: ignore[arg-type]
        (lambda: miniature_problems("train", 1, 0, 1.5), r"golden_edge must be in \[0, 1\], got 1.5"),
    ],
)
def test_arguments_outside_their_range_are_refused_with_must_and_got(call: Any, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        call()
