"""The bands family: a clean split, golden tests that see little, hidden tests that see all, bugs of their kind.

The family's programs are rendered from the project's own tables, so the tests may run them here.
"""

import ast
import random
from typing import Any

import pytest

from codea1_env.errors import ConfigurationError
from codea1_env.problems.families.bands import (
    BUG_KINDS,
    CLEARANCE,
    DOMAIN,
    GOLDEN_TESTS,
    NARROWEST_BAND,
    PHRASES,
    BandQuestion,
    Rule,
    band_problems,
    band_questions,
    misread,
)
from codea1_env.reading.test_case import TestCase

TRAIN = band_questions("train", 300, seed=3)
HELD_OUT = band_questions("held_out", 150, seed=3)
PROBLEMS = band_problems("held_out", 60, seed=3)
BOTH = [*TRAIN, *HELD_OUT]


def outputs(program: str, entry_point: str) -> list[Any]:
    """What Python itself makes of the program, for every input."""
    namespace: dict[str, Any] = {}
    exec(program, namespace)
    return [namespace[entry_point](x) for x in range(DOMAIN)]


def input_of(case: TestCase) -> int:
    return int(case.call[case.call.index("(") + 1 : -1])


def test_the_question_says_what_the_reference_does() -> None:
    rules = (Rule("<=", 11, 50, "through"), Rule("<", 65, 16, "below"))
    question = BandQuestion("fee", rules, 3)
    assert question.question == "fee(x): through 11 gives 50; else below 65 gives 16; otherwise 3."
    expected = "def fee(x):\n    if x <= 11: return 50\n    if x < 65: return 16\n    return 3\n"
    assert question.reference == expected
    assert [question.table(rules)[x] for x in (0, 11, 12, 64, 65, 99)] == [50, 50, 16, 16, 3, 3]


def test_what_is_worked_out_is_what_python_returns() -> None:
    rng = random.Random(0)
    for question in BOTH[::10]:
        for rules in (question.rules, *question.mutants(rng).values()):
            assert outputs(question.program(rules), question.entry_point) == list(question.table(rules))


def test_equal_arguments_give_equal_problems_and_other_seeds_give_others() -> None:
    assert band_problems("held_out", 20, seed=3) == PROBLEMS[:20]
    assert {p.question for p in band_problems("held_out", 20, seed=4)} != {p.question for p in PROBLEMS[:20]}
    assert len({p.problem_id for p in PROBLEMS}) == len({p.question for p in PROBLEMS}) == len(PROBLEMS)


def phrases_of(question: BandQuestion) -> tuple[str, ...]:
    return tuple(rule.phrase for rule in question.rules)


def guards(program: str) -> list[tuple[str, int]]:
    compared = [node for node in ast.walk(ast.parse(program)) if isinstance(node, ast.Compare)]
    return [(type(node.ops[0]).__name__, ast.literal_eval(node.comparators[0])) for node in compared]


def bug_kind(reference: str, mutant: str) -> str:
    """Which kind of bug a mutant has, by its text."""
    compared, wanted = guards(mutant), guards(reference)
    if any(comparison == "Eq" for comparison, _ in compared):
        return "spur"
    return "thr" if [k for _, k in compared] != [k for _, k in wanted] else "cmp"


def test_no_sequence_of_phrases_is_in_both_splits_whatever_the_seed() -> None:
    trained = {phrases_of(question) for question in [*TRAIN, *band_questions("train", 300, seed=4)]}
    measured = {phrases_of(question) for question in [*HELD_OUT, *band_questions("held_out", 150, seed=5)]}
    assert not trained & measured
    assert {phrase for phrases in measured for phrase in phrases} == set(PHRASES)
    assert {phrase for phrases in trained for phrase in phrases} == set(PHRASES)


def test_every_rule_of_a_question_matters_and_its_numbers_all_differ() -> None:
    for question in BOTH:
        numbers = [*question.thresholds, *question.values]
        assert len(set(numbers)) == len(numbers)
        table = question.table(question.rules)
        assert min(table.count(value) for value in question.values) >= NARROWEST_BAND
        for threshold in question.thresholds:
            beside = {table[threshold - 1], table[threshold], table[threshold + 1]}
            assert len(beside) == 2, (question.question, threshold)


def test_a_mutant_differs_where_its_kind_says() -> None:
    rng = random.Random(1)
    for question in BOTH[::6]:
        right = question.table(question.rules)
        mutants = question.mutants(rng)
        assert tuple(mutants) == BUG_KINDS
        wrong = {
            kind: [x for x in range(DOMAIN) if question.table(rules)[x] != right[x]] for kind, rules in mutants.items()
        }
        assert len(wrong["cmp"]) == 1
        assert set(wrong["cmp"]) <= set(question.thresholds)
        assert wrong["thr"]
        assert len(wrong["spur"]) == 1
        assert not set(wrong["spur"]) & {*question.thresholds, *question.values}, "the question does not let one guess"
        for kind, rules in mutants.items():
            program = question.program(rules)
            assert bug_kind(question.reference, program) == kind
        assert set(wrong["spur"]) <= {constant for _, constant in guards(question.program(mutants["spur"]))}


def test_golden_tests_keep_clear_of_thresholds_and_see_different_bands() -> None:
    for problem, question in zip(PROBLEMS, band_questions("held_out", 60, seed=3), strict=True):
        inputs = [input_of(case) for case in problem.golden_tests]
        assert len(set(inputs)) == GOLDEN_TESTS
        assert all(abs(x - k) > CLEARANCE for x in inputs for k in question.thresholds)
        assert len({case.expected for case in problem.golden_tests}) == GOLDEN_TESTS


def test_golden_edge_puts_golden_inputs_on_thresholds() -> None:
    questions = band_questions("train", 50, seed=0)
    for problem, question in zip(band_problems("train", 50, seed=0, golden_edge=1.0), questions, strict=True):
        on_threshold = [input_of(case) in question.thresholds for case in problem.golden_tests]
        assert sum(on_threshold) == min(GOLDEN_TESTS, len(question.thresholds))


def test_hidden_tests_are_all_inputs_with_the_references_values() -> None:
    for problem in PROBLEMS[:20]:
        right = outputs(problem.reference_solution or "", problem.entry_point)
        assert [input_of(case) for case in problem.hidden_tests] == list(range(DOMAIN))
        assert [ast.literal_eval(case.expected) for case in problem.hidden_tests] == right


def test_mutants_pass_the_golden_tests_fail_a_hidden_one_and_are_of_every_kind() -> None:
    kinds: set[str] = set()
    for problem in PROBLEMS:
        right = outputs(problem.reference_solution or "", problem.entry_point)
        for mutant in problem.mutants:
            wrong = outputs(mutant, problem.entry_point)
            assert all(wrong[input_of(case)] == right[input_of(case)] for case in problem.golden_tests)
            assert wrong != right
            kinds.add(bug_kind(problem.reference_solution or "", mutant))
    assert kinds == set(BUG_KINDS)
    firsts = {bug_kind(p.reference_solution or "", p.mutants[0]) for p in PROBLEMS if p.mutants}
    assert firsts == set(BUG_KINDS), "the first mutants are of no kind in particular"


@pytest.mark.parametrize("threshold", range(2, DOMAIN - 2))
def test_a_misread_threshold_is_another_number_of_the_domain(threshold: int) -> None:
    rng = random.Random(threshold)
    found = {misread(threshold, rng) for _ in range(100)}
    assert threshold not in found
    assert found <= set(range(DOMAIN))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: band_problems("dev", 1, 0), "split must be 'train' or 'held_out', got 'dev'"),  # type: ignore[arg-type]
        (lambda: band_problems("train", -1, 0), r"count must be in \[0, "),
        (lambda: band_problems("train", 1.5, 0), r"count must be in \[0, .*, a whole number, got 1.5"),  # type: ignore[arg-type]
        (lambda: band_problems("train", "3", 0), r"count must be in \[0, .*, a whole number, got '3'"),  # type: ignore[arg-type]
        (lambda: band_problems("held_out", 1_000_000, 0), r"count must be in \[0, .*got 1000000"),
        (lambda: band_problems("train", 1, 0, 1.5), r"golden_edge must be in \[0, 1\], got 1.5"),
    ],
)
def test_arguments_outside_their_range_are_refused_with_must_and_got(call: Any, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        call()
