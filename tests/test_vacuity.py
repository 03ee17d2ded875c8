"""Claims that say nothing: built from the judge's own other values by someone who knows the code, and none counts."""

from __future__ import annotations

import ast
import math
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from codea1_env.judging.judge import Expectation
from codea1_env.judging.relations import neighbours
from codea1_env.judging.relations.neighbours import others
from codea1_env.judging.relations.status import related
from codea1_env.problems import bundled_problems
from codea1_env.problems.tolerances import EXACT, within
from codea1_env.reading.literals import literal_tree, tree_source
from codea1_env.reading.wide.relational_tests import read_condition
from codea1_env.rewards.duel import Status
from codea1_env.sandbox.inside import values

NO_JUDGE: Any = None
"""It is asked about looks alone."""


def status(claim: str, right: bytes, *mutants: object, entry_point: str = "f", tolerance: float = 0.0) -> Status:
    test = read_condition(ast.parse(claim, mode="eval").body, claim, entry_point)
    assert test.relation is not None, test.reason
    assert test.arguments is not None
    assert test.value is not None
    stated = Expectation(test.arguments, test.value, relation=test.relation)
    return related(NO_JUDGE, stated, right, [values.encode(mutant) for mutant in mutants], within(tolerance), set())[0]


def bundled() -> Iterator[tuple[str, str, Any]]:
    """Entry points, calls and right values of the bundled problems."""
    for problem in bundled_problems():
        for case in problem.golden_tests[:2]:
            try:
                yield problem.entry_point, case.call, ast.literal_eval(case.expected)
            except ValueError:  # `set()` and the like
                continue


def other_values(value: object) -> list[Any]:
    """The values that are put beside one, but for the empty set."""
    sources = map(tree_source, others(literal_tree(ast.parse(repr(value), mode="eval").body)))
    return [ast.literal_eval(source) for source in sources if source != "set()"]


def attacks(call: str, wrong: Any) -> Iterator[str]:
    """Claims that exclude a wrong answer and what the module puts into the values beside it, and nothing else."""
    beside = [part for other in other_values(wrong) if type(other) is type(wrong) for part in other]
    fresh = list({repr(part): part for part in beside if part not in wrong})[:3]
    for parts in (["'x'"] if isinstance(wrong, str) else ["'x'", "''", "[]", "0"], fresh):
        junk = " or ".join([f"not {call}", *(f"{part} in list({call})" for part in parts)])
        yield f"not ({junk})"
        yield f"not ({call} == {wrong!r} or {junk})"
        yield f"({call} != {wrong!r}) > ({junk})"
        yield f"not ((({call} == {wrong!r}) or {junk}) and (({call} == {wrong!r}) or {junk}))"


@pytest.mark.parametrize("kind", [str, list, tuple, dict, set])
def test_no_claim_made_of_the_other_values_counts(kind: type) -> None:
    tried = 0
    for entry_point, call, right in bundled():
        if type(right) is not kind or not right:
            continue
        for wrong in [other for other in other_values(right) if other and other != right][:2]:
            for claim in attacks(call, wrong):
                found = status(claim, values.encode(right), entry_point=entry_point)
                assert found in (Status.VACUOUS, Status.WRONG_RELATION), (claim, right)
                tried += found is Status.VACUOUS
    assert tried >= 4


@pytest.mark.parametrize(
    ("right", "claim", "tolerance", "counts"),
    [
        (math.inf, "f(1) > 0", 0.0, False),
        (math.inf, "f(1) != 0", 0.0, False),
        (math.inf, "f(1) >= 0", 0.0, False),
        (math.inf, "f(1) > 1000000000", 0.0, True),
        (-math.inf, "f(1) < 0", 0.0, False),
        (math.nan, "f(1) != 0", 0.0, False),
        (math.nan, "f(1) != f(1)", 0.0, False),
        ([math.inf], "f(1)[0] != 0", 0.0, False),
        (100.0, "f(1) > 0", 0.2, False),
        (100.0, "f(1) != 0", 0.6, False),
        (2.0, "f(1) > 0", 0.5, False),
        (100.0, "20 < f(1) < 500", 0.6, True),
    ],
)
def test_numbers_without_neighbours_of_their_own_have_others(
    right: object, claim: str, tolerance: float, counts: bool
) -> None:
    found = status(claim, values.encode(right), tolerance=tolerance)
    assert (found is Status.KEPT) == counts, found


def test_no_number_counts_for_its_sign_or_for_all_others_in_sight() -> None:
    for right in range(30):
        for wrong in (right - 2, right + 1, right + 7):
            for claim in (
                f"(f(1) + 0.5) * (f(1) - {wrong}) * (f(1) - {wrong}) > 0",
                f"f(1) in {[number for number in range(60) if number != wrong]}",
            ):
                assert status(claim, values.encode(right)) is Status.VACUOUS, (claim, right)


@pytest.mark.parametrize(
    ("claim", "right"),
    [
        ("len(f(1)) == 3", "abc"), ("f(1)[0] == 'a'", "abc"), ("f(1)[-1] == 'c'", "abc"), ("f(1)[1:] == 'bc'", "abc"),
        ("f(1).startswith('ab')", "abc"), ("sorted(f(1)) == [1, 2, 3]", [3, 1, 2]), ("set(f(1)) == {1, 2}", [2, 1]),
        ("f(1)['a'] == 1", {"a": 1, "b": 2}), ("set(f(1).keys()) == {'a', 'b'}", {"a": 1, "b": 2}),
        ("f(1) >= {1, 2}", {1, 2}), ("f(1) >= 20", 20), ("f(1) <= 20", 20), ("4 < f(1) < 6", 5),
        ("not (f(1) < 4 or f(1) > 6)", 5), ("abs(f(1) - 0.5) < 1e-6", 0.5), ("1 < len(f(1)) < 3", [1, 2]),
        ("not f(1)", []), ("not f(1)", False), ("(len(f(1)) == 2) is True", [1, 2]),
        ("f(1)['raises'] == 'E' and 'low' in f(1)['message']", {"raises": "E", "message": "too low"}),
    ],
)  # fmt: skip
def test_what_knows_something_of_the_value_counts(claim: str, right: object) -> None:
    assert status(claim, values.encode(right)) is Status.KEPT


@pytest.mark.parametrize(
    ("claim", "part", "expected"),
    [
        ("f(1)['b'] == 2", 2, Status.KEPT), ("f(1)['b'] == pytest.approx(2.5)", 2.5, Status.KEPT),
        ("f(1)['b'][1] == 5", [4, 5, 6], Status.KEPT), ("len(f(1)['b']) == 2", "ab", Status.KEPT),
        ("f(1)['b'] != 3", 2, Status.VACUOUS), ("f(1)['b'] > 0", 20, Status.VACUOUS),
        ("f(1)['b'] != 0", None, Status.VACUOUS), ("f(1)['b'] != ''", None, Status.VACUOUS),
        ("f(1)['b'] != f(1)['c']", 2, Status.VACUOUS), ("len(f(1)['b']) > 0", "ab", Status.VACUOUS),
        ("not (f(1)['b'] != 2 or f(1)['b'] == 7)", 2, Status.VACUOUS), ("f(1)['b'] == f(1)['b']", 2, Status.VACUOUS),
    ],
)  # fmt: skip
def test_a_claim_about_a_part_is_held_against_what_is_near_that(claim: str, part: object, expected: Status) -> None:
    value = {"a": 1, "b": part, "c": 3, "d": 4}
    assert status(claim, values.encode(value)) is expected


@pytest.mark.parametrize("claim", ["f(1) != 'abd'", "len(f(1)) > 0", "'c' in f(1)"])
def test_what_counts_carries_nothing_along(claim: str) -> None:
    assert status("len(f(1)) == 3", values.encode("abc")) is Status.KEPT
    for both in (f"not (not len(f(1)) == 3 or not {claim})", f"bool(len(f(1)) == 3 and {claim})"):
        assert (status(both, values.encode("abc")) is Status.KEPT) == (claim == "'c' in f(1)")


def test_no_more_of_what_mutants_return_is_looked_at_than_there_is_time_for() -> None:
    """The first ones: every two of them are compared."""
    test = read_condition(ast.parse("len(f(1)) == 3", mode="eval").body, "len(f(1)) == 3", "f")
    stated = Expectation(test.arguments or b"", test.value or b"", relation=test.relation)

    def looked_at(mutants: list[bytes]) -> int:
        refused: set[int] = set()
        assert related(NO_JUDGE, stated, values.encode([1, 2, 3]), mutants, EXACT, refused)[0] is Status.KEPT
        return len(refused)

    large = [values.encode([n] * 10_000) for n in range(9)]
    assert [looked_at(large[:n]) - looked_at([]) for n in (1, 6, 7, 9)] == [1, 6, 6, 6]


def test_of_none_the_one_answer_of_the_mutants_is_not_all_that_there_is() -> None:
    assert status("not f(1)", b"null", 5) is Status.KEPT
    assert status("f(1) != 5", b"null", 5) is Status.VACUOUS


@pytest.mark.parametrize(
    "encoded",
    [b'{"t":{"d":[]}}', b'{"s":{"d":[]}}', b'{"d":{"ab":1}}', b'{"d":["ab"]}', b"[" * 300 + b"]" * 300,
     b'{"s":[{"t":{"d":[]}}]}', b'{"t":[{"b":5}]}', b'{"f":"x"}', b'{"z":5}'],
)  # fmt: skip
def test_what_stands_for_no_value_is_refused_and_raises_nothing(encoded: bytes) -> None:
    for claim in ("len(f(1)) == len(f(1))", "f(1) != 3", "not f(1)", "bool(f(1))"):
        assert status(claim, encoded) in (Status.VACUOUS, Status.REJECTED)
        assert status(claim, values.encode([1])) in (Status.VACUOUS, Status.WRONG_RELATION)


def test_what_is_deep_has_no_more_neighbours_than_what_is_flat(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: Counter[int] = Counter()
    near = neighbours._near

    def counted(tree: Any) -> Any:
        asked[depth] += 1
        return near(tree)

    monkeypatch.setattr(neighbours, "_near", counted)
    for depth in (4, 8):
        tree: Any = 1
        for _ in range(depth):
            tree = {"v": ["object", "Node", [["value", 1], ["next", tree]], None, ""]}
        assert len(others(tree)) == len(others({"v": ["object", "Node", [["value", 1], ["next", 1]], None, ""]}))
    assert asked[8] < 8 * asked[4]
