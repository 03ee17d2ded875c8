"""Values of all kinds as data: they survive, and compare as in plain Python, which is asked here."""

from __future__ import annotations

import builtins
import copy
import datetime
import itertools
import json
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import assume, example, given, settings, strategies as st
from value_kinds import Point, keys, moments, numbers, values

from codea1_env.judging.checking import compares
from codea1_env.judging.equality import FAILURES, is_by_identity, is_opaque, member_text, same_value
from codea1_env.judging.oracle import is_data, is_plain
from codea1_env.judging.relations.neighbours import others
from codea1_env.judging.relations.tree_values import items_of, length_of, order_of, truth
from codea1_env.reading.literals import tree_source
from codea1_env.sandbox.inside import scope
from codea1_env.sandbox.inside.values import decode, encode

PURE_BUILTINS = {name: getattr(builtins, name) for name in scope.PURE}
EXTREME = ("1E-5000", "10E-5001")


def equal(left: Any, right: Any) -> bool:
    return bool(left == right)


@settings(max_examples=150, deadline=None)
@given(
    st.one_of(
        st.tuples(values, values), st.tuples(numbers, numbers), st.tuples(moments, moments), st.tuples(keys, keys)
    )
)
@example((Fraction(1, 10), Decimal("0.1")))
@example((Point(1, 2), (1, Fraction(2))))
@example(({1: 2}.items(), {(1, 2)}))
@example((datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC), datetime.datetime(2020, 1, 1)))
def test_two_values_compare_as_in_plain_python(pair: tuple[Any, Any]) -> None:
    left, right = pair
    assert same_value(encode(left), encode(right)) is equal(left, right)
    assert same_value(encode(right), encode(left)) is equal(left, right)


@settings(max_examples=80, deadline=None)
@given(values)
def test_a_value_equals_its_copy_and_is_plain(value: Any) -> None:
    encoded = encode(value)
    assert is_plain(encoded), encoded
    assert not is_opaque(encoded)
    spaced = json.dumps(json.loads(encoded), indent=1).encode()
    assert same_value(encoded, spaced), "as data, not as bytes"


@settings(max_examples=80, deadline=None)
@given(values)
def test_a_value_survives_the_round_trip(value: Any) -> None:
    tree = json.loads(encode(value))
    again = decode(tree)
    assert equal(again, value)
    assert equal(value, again)
    assert same_value(encode(again), encode(value))


@settings(max_examples=80, deadline=None)
@given(values)
def test_the_source_of_a_value_evaluates_to_an_equal_one(value: Any) -> None:
    text = tree_source(json.loads(encode(value)))
    again = eval(text, scope.namespace(text, PURE_BUILTINS, scope.VALUE_NAMES))
    is_view = type(value).__name__ in ("dict_keys", "dict_items")
    assert equal(again, set(value) if is_view and "dict" not in text else value), text


@settings(deadline=None)
@given(keys, keys)
def test_members_share_a_text_exactly_when_they_are_equal(left: Any, right: Any) -> None:
    assume(not any(text in repr((left, right)) for text in EXTREME))
    texts = [member_text(json.loads(encode(each))) for each in (left, right)]
    assert (texts[0] == texts[1]) is equal(left, right)
    assert same_value(encode({left}), encode({right})) is ({left} == {right})


@settings(deadline=None)
@given(st.lists(keys, max_size=4), st.randoms())
def test_any_order_is_the_same_where_order_says_nothing(items: list[Any], random: Any) -> None:
    shuffled = copy.copy(items)
    random.shuffle(shuffled)
    assert compares("unordered", encode(items), encode(shuffled), 0.0)
    assert not compares("unordered", encode(items), encode([*shuffled, "more"]), 0.0)


@settings(deadline=None)
@given(st.one_of(st.tuples(numbers, numbers), st.tuples(moments, moments), st.tuples(keys, keys)))
def test_two_values_are_ordered_as_in_plain_python(pair: tuple[Any, Any]) -> None:
    left, right = pair
    assume("frozenset" not in repr(pair))
    try:
        expected = (left > right) - (left < right)
    except TypeError:
        expected = None
    try:
        found = order_of(json.loads(encode(left)), json.loads(encode(right)))
    except FAILURES:
        found = None
    assert found == expected


@settings(deadline=None)
@given(st.dictionaries(keys, st.integers(), max_size=4))
def test_a_view_iterates_in_the_order_of_its_dict(made: dict[Any, int]) -> None:
    for view in (made.keys(), made.items(), made.values()):
        found = [json.dumps(item).encode() for item in items_of(json.loads(encode(view)))]
        assert len(found) == len(made)
        assert all(map(same_value, map(encode, view), found))


@settings(deadline=None)
@given(values)
def test_truth_is_that_of_plain_python(value: Any) -> None:
    assert truth(json.loads(encode(value))) is bool(value)


@settings(max_examples=80, deadline=None)
@given(values)
def test_other_values_are_sound_and_most_are_not_the_value(value: Any) -> None:
    tree = json.loads(encode(value))
    near = others(tree)
    for other in near:
        encoded = json.dumps(other, separators=(",", ":")).encode()
        assert is_data(encoded), encoded
    if near and "Counter" not in repr(value):  # zero counts are none, in every place
        assert any(not same_value(encode(value), json.dumps(other).encode()) for other in near)


ITERATORS = [
    lambda: map(str, [1, 2]),
    lambda: filter(None, [0, 1]),
    lambda: zip([1], "a", strict=True),
    lambda: reversed([1, 2]),
    lambda: enumerate("ab"),
    lambda: (number for number in range(3)),
    lambda: iter([1]),
    lambda: iter({1}),
    lambda: iter({1: 2}),
    lambda: iter({1: 2}.items()),
    lambda: iter("ab"),
    lambda: iter(b"ab"),
    lambda: iter(range(3)),
    lambda: iter(range(1 << 70, (1 << 70) + 2)),
    lambda: iter(lambda: 1, 1),
    lambda: itertools.chain([1], [2]),
    lambda: itertools.combinations([1, 2, 3], 2),
    lambda: itertools.islice(itertools.count(), 3),
]


@pytest.mark.parametrize("made", ITERATORS)
def test_an_iterator_is_listed_and_equals_nothing(made: Any) -> None:
    encoded = encode(made())
    ((tag, body),) = json.loads(encoded).items()
    assert (tag, body[0], body[3]) == ("v", "iterator", "")
    assert [decode(item) for item in body[2]] == list(made())
    assert is_by_identity(encoded)
    assert is_data(encoded)
    assert not is_plain(encoded)
    for other in (encoded, encode(list(made())), encode(tuple(made()))):
        assert not same_value(encoded, other)
        assert not same_value(other, encoded)
    assert list(decode(json.loads(encoded))) == list(made()), "it can be an argument"


def raising() -> Any:
    yield 1
    raise KeyError


@pytest.mark.parametrize(
    ("value", "end"), [(itertools.count(), "more"), (itertools.repeat("a" * 10_000), "more"), (raising(), "KeyError")]
)
def test_an_iterator_that_does_not_end_well_says_so_and_has_its_first_items(value: Any, end: str) -> None:
    tree = json.loads(encode([value, 5]))
    assert tree[0]["v"][3] == end
    assert tree[0]["v"][2]
    assert tree[1] == 5, "what stands beside it has its room"
    with pytest.raises(ValueError, match="tag"):
        decode(tree)


def test_what_an_iterator_gives_is_as_it_is_in_the_end() -> None:
    def growing() -> Any:
        row: list[int] = []
        for number in range(3):
            row.append(number)
            yield row

    assert json.loads(encode(growing()))["v"][2] == list(growing())


class Hooked:
    __len__ = lambda self: 2  # noqa: E731
    __bool__ = lambda self: True  # noqa: E731
    __eq__ = lambda self, other: True  # noqa: E731
    __hash__ = None  # type: ignore[assignment]
    kind = "a"

    def method(self) -> int:
        return 1


def test_what_an_objects_hooks_say_is_not_told_but_its_attributes_are() -> None:
    tree = json.loads(encode(Hooked()))
    assert ["kind", "a"] in tree["v"][2]
    for function in (truth, length_of, items_of):
        with pytest.raises(FAILURES):
            function(tree)
    assert not same_value(encode(Hooked()), encode(Hooked()))
