"""Relations on the trusted side: what they say of values is what Python says; they always answer, in bounded work."""

from __future__ import annotations

import ast
import functools
import json
import math
import unittest
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from codea1_env.judging.equality import FAILURES
from codea1_env.judging.relations import tree_functions
from codea1_env.judging.relations.tree_functions import OPERATORS
from codea1_env.judging.relations.tree_values import order_of
from codea1_env.judging.relations.truth import MAX_WORK, fits, holds
from codea1_env.reading.literals import encode, literal_tree
from codea1_env.reading.pure_expressions import Reason
from codea1_env.reading.test_case import TestCase
from codea1_env.reading.wide.relation import MAX_TERMS, Relation
from codea1_env.reading.wide.relational_tests import read_condition, read_relational_case
from codea1_env.sandbox.inside import values


def read(source: str, entry_point: str = "f"):  # type: ignore[no-untyped-def]
    return read_condition(ast.parse(source, mode="eval").body, source, entry_point)


def wire(value: object) -> bytes:
    return values.encode(value)


def is_true(source: str, value: object, tolerance: float = 0.0) -> bool:
    test = read(source)
    assert test.relation is not None, test.reason
    assert test.value is not None
    return holds(test.relation, test.value, wire(value), tolerance)


CONDITIONS = [
    "f(1)",
    "not f(1)",
    "f(1) != 2",
    "f(1) > 2",
    "2 >= f(1)",
    "0 < f(1) <= 3",
    "f(1) in [1, 2, 'a']",
    "f(1) not in (1, 2)",
    "1 in f(1)",
    "'a' in f(1)",
    "b'ab' in f(1)",
    "b'a' not in f(1)",
    "97 in f(1)",
    "f(1) not in b'ab'",
    "f(1) is not None",
    "f(1) is not True",
    "len(f(1)) == 2",
    "sorted(f(1)) == [1, 2]",
    "sorted(f(1), reverse=True) == [2, 1]",
    "assertCountEqual(f(1), [2, 1])",
    "assertCountEqual(f(1), [{2}, {1}])",
    "assertCountEqual(f(1), (1, None))",
    "set(f(1)) == {1, 2}",
    "list(f(1)) == [1, 2]",
    "tuple(f(1)) == (1, 2)",
    "abs(f(1) - 2) < 1.5",
    "round(f(1), 1) == 2.5",
    "round(f(1)) == 2",
    "sum(f(1)) == 3",
    "sum(f(1)) == 1",
    "min(f(1)) == 1",
    "max(f(1)) == 2",
    "f(1)[0] == 1",
    "f(1)[-1] == 2",
    "f(1)[1:] == [2]",
    "f(1)[::-1] == [2, 1]",
    "f(1)['a'] == 1",
    "f(1) % 2 == 0",
    "f(1) // 2 == 1",
    "-f(1) == 2",
    "f(1) * 2 == 4",
    "f(1) / 2 == 1.0",
    "f(1) == 1 or f(1) == 2",
    "f(1) and f(1) > 1",
    "(f(1) or 5) == 5",
    "isinstance(f(1), (int, str))",
    "type(f(1)) == list",
    "str(f(1)) == '2'",
    "int(f(1)) == 2",
    "f(1).startswith('a')",
    "f(1).endswith(('b', 'B'))",
    "f(1).keys() == {'a'}",
    "f(1).items() == {('a', 1)}",
    "1 in f(1).values()",
    "len(f(1).items()) == 2",
    "list(reversed(f(1))) == [1, 2]",
    "sorted(f(1), reverse=True) == [2, 1]",
    "f(1).lower() == 'ab'",
    "f(1).count('a') == 1",
    "f(1).count(1) == 1",
    "f(1) < [2]",
    "f(1) <= {1, 2, 3}",
    "f(1) >= {1}",
    "f(1) < (1, 3)",
    "any(f(1))",
    "all(f(1))",
    "sorted(f(1).items()) == [('a', 1)]",
    "math.isclose(f(1), 2.0, abs_tol=0.6)",
    "set(f(1).keys()) == {'a'}",
    "frozenset(f(1)) == {1, 2}",
    "bool(f(1)) == True",
]
VALUES = [
    None,
    True,
    False,
    0,
    1,
    2,
    -2,
    3,
    10**30,
    2.5,
    2.0,
    0.0,
    math.inf,
    -0.0,
    "",
    "a",
    "ab",
    "AB",
    "2",
    b"",
    b"ab",
    [],
    [1],
    [1, 2],
    [2, 1],
    [1, 1],
    ["a"],
    [[1], [2]],
    [{1}, {2}],
    [1, "a"],
    [None, 1],
    [1e16, 1.0, -1e16],
    (),
    (1, 2),
    (1, 4),
    {},
    {"a": 1},
    {"a": 1, "b": 2},
    {1: 2},
    set(),
    {1, 2},
    {1},
    {1, 2, 3},
    frozenset({1, 2}),
    1 + 2j,
]


def in_python(source: str, value: object) -> bool:
    def count_equal(one: Any, other: Any) -> bool:
        unittest.TestCase().assertCountEqual(one, other)  # noqa: PT009  # which the claim is named after
        return True

    try:
        return bool(eval(source, {"f": lambda _: value, "math": math, "assertCountEqual": count_equal}))
    except Exception:
        return False


@pytest.mark.parametrize("source", CONDITIONS)
def test_a_relation_is_true_where_pythons_condition_is(source: str) -> None:
    for value in VALUES:
        assert is_true(source, value) == in_python(source, value), value


def test_the_conditions_tell_values_apart() -> None:
    """A language in which everything is false would agree with nothing above; this says the table is no such thing."""
    for source in CONDITIONS:
        found = {is_true(source, value) for value in VALUES}
        assert found == {True, False}, source


def test_an_order_of_a_sets_members_is_none() -> None:
    assert is_true("sorted(f(1)) == [1, 2]", {2, 1})
    assert not is_true("f(1)[0] == 1", {1})


def test_floats_that_rounding_alone_sets_apart_are_equal() -> None:
    assert is_true("sorted(f(1)) == [0.3]", [0.1 + 0.2])
    assert not is_true("sorted(f(1)) == [0.3]", [0.3001])
    assert is_true("sorted(f(1)) == [0.3]", [0.3001], tolerance=0.01)


@pytest.mark.parametrize(
    ("source", "near", "far"),
    [
        ("f(1) == pytest.approx(2.0)", 2.000001, 2.1),
        ("f(1) == pytest.approx(2.0, abs=0.2)", 2.1, 2.3),
        ("pytest.approx([1.0, 2.0], rel=0.1) == f(1)", [1.05, 2.0], [1.5, 2.0]),
        ("f(1) == pytest.approx([1.0, 2.0])", (1.0, 2.0), (1.0, 2.5)),
        ("f(1) == approx({'a': 1.0})", {"a": 1.0000001}, {"b": 1.0}),
        ("f(1) != pytest.approx(2.0)", 3, 2.0),
        ("math.isclose(2.0, f(1), rel_tol=0.1)", 2.1, 3.0),
    ],
)
def test_a_stated_tolerance_is_the_tests_own(source: str, near: object, far: object) -> None:
    assert is_true(source, near)
    assert not is_true(source, far)


@pytest.mark.parametrize(
    "encoded",
    [
        b'{"o":"Thing"}', b"[", b"", b"nonsense", b'{"t":1}', b'{"s":[1,1]}', b'{"s":[[]]}', b'{"x":1}', b'{"i":"zz"}',
        b'{"d":[[1,2],[1,3]]}', b'{"t":[1],"s":[1]}', b'{"c":[1]}', b"[" * 5000, b'{"f":"what"}', b'{"d":[1]}',
    ],
)  # fmt: skip
@pytest.mark.parametrize("source", ["not f(1)", "len(f(1)) != 7", "f(1) != 7", "f(1) or True", "f(1) not in [5]"])
def test_what_is_no_value_satisfies_nothing(encoded: bytes, source: str) -> None:
    """Whatever a program writes in the place of its result: also relations that are true of all values are false."""
    test = read(source)
    assert test.relation is not None
    assert test.value is not None
    assert not holds(test.relation, test.value, encoded, 0.0)


def test_work_is_bounded_before_anything_is_evaluated() -> None:
    test = read("len(f(1)) > 1")
    assert test.relation is not None
    assert test.value is not None
    small, large = wire([0] * 1000), wire([0] * MAX_WORK)
    assert fits(test.relation, test.value, small)
    assert holds(test.relation, test.value, small, 0.0)
    assert not fits(test.relation, test.value, large)
    assert not holds(test.relation, test.value, large, 0.0)


@pytest.mark.parametrize(("claim", "fitting"), [("f(1).count(a) == 1", 60), ("a in f(1)", 60), ("a > 1", 3000)])
def test_what_is_asked_of_the_whole_value_for_each_item_counts_as_often(claim: str, fitting: int) -> None:
    test = read(f"all({claim} for a in f(1))")
    assert test.relation is not None
    assert test.value is not None
    assert fits(test.relation, test.value, wire([0] * fitting))
    assert not fits(test.relation, test.value, wire([0] * 10 * fitting))


def test_sorting_counts_as_what_it_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plain items are ordered without a comparison of ours; of nested ones each comparison counts."""
    compared = []
    monkeypatch.setattr(tree_functions, "order_of", lambda one, other: compared.append(one) or order_of(one, other))
    digits, words, pairs = [5, True, 2.5] * 4000, ("b", "", "a") * 4000, [[2, 1], [1, 2]] * 3000
    for name in ("sorted", "min", "max"):
        test, nested = read(f"{name}(f(1)) != 1"), read(f"{name}(f(1)) == [1, 2]")
        for value in (digits, words):
            assert fits(test.relation, test.value, wire(value))
            holds(test.relation, test.value, wire(value), 0.0)
            assert not compared
        assert fits(nested.relation, nested.value, wire(pairs)) == (name != "sorted")
        assert fits(nested.relation, nested.value, wire(pairs[:1000]))
        assert fits(nested.relation, nested.value, wire([*digits, 1 << 70])) == (name != "sorted")


SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=2)


@given(st.lists(SCALARS, max_size=5) | st.lists(st.integers(-2, 2) | st.floats(-2, 2)) | st.lists(st.text(max_size=2)))
def test_plain_items_are_ordered_as_all_others_are(items: list[object]) -> None:
    def answer(function: Callable[[object], object]) -> str:
        try:
            return repr(function(items))  # which of 1, 1.0 and True it is shows, too
        except FAILURES:
            return "undefined"

    compared = functools.cmp_to_key(order_of)
    for name, function in (("sorted", sorted), ("min", min), ("max", max)):
        assert answer(OPERATORS[name]) == answer(lambda each, of=function: of(each, key=compared))


def test_a_right_value_that_is_written_longer_than_the_references_is_no_less_right() -> None:
    test = read("sum(f(1)) > 1")
    assert test.relation is not None
    assert test.value is not None
    value, longer = wire([1] * 26_000), wire([1.0] * 26_000)
    assert fits(test.relation, test.value, value)
    assert not fits(test.relation, test.value, longer)
    assert holds(test.relation, test.value, longer, 0.0)


def test_a_relation_has_a_bounded_number_of_terms() -> None:
    alternatives = [f"f(1) > {place}" for place in range(MAX_TERMS // 3 + 1)]
    assert read(" or ".join(alternatives)).reason == Reason.TOO_LARGE
    assert read(" or ".join(alternatives[:-1])).reason == ""


@pytest.mark.parametrize("source", ["f(1) * f(1) * f(1) == 0", "f(1) % 7 == 0", "f(1) + 1 > 0", "abs(f(1)) > 0"])
def test_huge_integers_are_not_calculated_with(source: str) -> None:
    assert not is_true(source, 1 << 50_000)


def test_digits_are_counted_before_a_text_becomes_a_number() -> None:
    assert is_true("int(f(1)) == 12", "12")
    assert not is_true("int(f(1)) > 1", "1" * 5000)
    assert not is_true("float(f(1)) > 1", "1" * 5000)


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("f(1) == f(open)", Reason.FORBIDDEN_NAME),
        ("f(f) == 1", Reason.ENTRY_POINT_AGAIN),
        ("f(1).__class__ == 1", Reason.ATTRIBUTE),
        ("all(x > 1 for x in [f(1)])", Reason.WRAPPED_CALL),  # an `and` in disguise
        ("eval(f(1)) == 1", Reason.FORBIDDEN_CALL),
        ("(f(1) ** 2 == 4) > (f(1) > 3)", Reason.OPERATOR),
        ("(f(1) ** 2 == 4) and f(1) > 3", Reason.OPERATOR),
        ("f(1) is 2", Reason.OPERATOR),
        ("(f(1) == 1, 'message')", Reason.NOT_A_COMPARISON),
        ("f(1) == g(1)", Reason.FORBIDDEN_CALL),
        ("f(1) != x", Reason.FORBIDDEN_NAME),
        ("1 == 1", Reason.NOT_ENTRY_POINT),
        ("sorted(f(1), key=open) == []", Reason.FORBIDDEN_NAME),
        ("isinstance(f(1), Thing)", Reason.FORBIDDEN_NAME),
        ("f(*[1]) > 1", Reason.STARRED),
        ("len(f)", Reason.WRAPPED_CALL),
        ("f'{f(1)}'", Reason.NOT_A_COMPARISON),
        ("'{0.x}'.format(f(1)) == '1'", Reason.ATTRIBUTE),
        ("f(1)._to_csv('x') == '1'", Reason.ATTRIBUTE),
        ("f(1)._x == 1 ** 1", Reason.ATTRIBUTE),
    ],
)
def test_what_is_no_relation_has_a_named_reason(source: str, reason: Reason) -> None:
    assert read(source).reason == reason


@pytest.mark.parametrize("source", [*CONDITIONS, "f(1) == pytest.approx(2.5)", "round(f([1, {'a': (2,)}]), 2) != 0.5"])
def test_a_relational_test_is_stored_as_text_and_read_back_the_same(source: str) -> None:
    test = read(source)
    assert test.call is not None
    assert test.claim == "True"
    case = TestCase(test.call, test.claim)
    again = read_relational_case(case, "f")
    assert (again.relation, again.value, again.arguments) == (test.relation, test.value, test.arguments)
    ast.parse(str(case))


def test_a_stored_condition_that_should_be_false_is_none() -> None:
    """What is stored is what held of the reference: nothing else is read as a condition."""
    assert read_relational_case(TestCase("(len(f(1)) == 2)", "False"), "f").reason == Reason.WRAPPED_CALL
    assert read_relational_case(TestCase("f(1)", "2"), "f").relation is None


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@settings(deadline=None, max_examples=80)
@given(value=plain, source=st.sampled_from(CONDITIONS))
def test_any_plain_value_is_judged_as_python_would(value: object, source: str) -> None:
    if any(isinstance(each, float) for each in _leaves(value)):
        assert is_true(source, value) in (True, False)  # where rounding may matter, that it answers
    else:
        assert is_true(source, value) == in_python(source, value)


def _leaves(value: object) -> list[object]:
    if isinstance(value, dict):
        return [leaf for item in value.values() for leaf in _leaves(item)]
    return [leaf for item in value for leaf in _leaves(item)] if isinstance(value, list) else [value]


@settings(deadline=None, max_examples=50)
@given(value=plain.filter(lambda value: "inf" not in repr(value)))
def test_an_equality_in_other_words_is_the_equality(value: object) -> None:
    tree = json.loads(wire(value))
    literal = encode(literal_tree(ast.parse(repr(value), mode="eval").body))
    equal = Relation("eq", (Relation("returned"), Relation("constant")))
    assert holds(equal, b'{"t":[%b]}' % literal, wire(value), 0.0)
    assert json.loads(literal) == tree
