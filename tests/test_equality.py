"""Equality of encoded values: Python's own on plain data, NaN equal to NaN, and deaf to whatever hostile bytes say."""

from __future__ import annotations

import copy
import json
import math
from typing import Any

import pytest
from edits import edited
from hypothesis import assume, example, given, strategies as st
from test_values import hashable, plain

from codea1_env.judging.equality import call_key, is_opaque, same_value
from codea1_env.sandbox.inside.values import decode, encode


def has_nan(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(has_nan, [*value, *value.values()]))
    if isinstance(value, list | tuple | set | frozenset):
        return any(map(has_nan, value))
    return isinstance(value, float | complex) and value != value


# Few values that are often equal across types.
twins = st.sampled_from(
    [
        0,
        1,
        True,
        False,
        0.0,
        -0.0,
        1.0,
        1 + 0j,
        0j,
        complex(-0.0, 2),
        complex(0.0, 2),
        None,
        "",
        "1",
        b"",
        b"1",
        2**63,
        float(2**63),
        2**53 + 1,
        float(2**53),
        10**300,
        1e300,
        math.inf,
        -math.inf,
    ]
)
twin_keys = st.recursive(
    twins, lambda inner: st.one_of(st.tuples(inner), st.frozensets(inner, max_size=3)), max_leaves=4
)
twin_values = st.recursive(
    twin_keys,
    lambda inner: st.one_of(
        st.lists(inner, max_size=2),
        st.tuples(inner),
        st.dictionaries(twin_keys, inner, max_size=3),
        st.sets(twin_keys, max_size=3),
    ),
    max_leaves=6,
)


@given(st.one_of(st.tuples(plain, plain), st.tuples(twin_values, twin_values)))
@example((frozenset({frozenset({frozenset({1}), b"\0"})}), frozenset({frozenset({frozenset({1, b"\0"})})})))
@example(({complex(-0.0, 1)}, {complex(0.0, 1)}))
@example(({1: "a", 2: "b"}, {2.0: "b", True: "a"}))
@example(({(1, (2,)): 0}, {(1, 2): 0}))
def test_it_is_pythons_equality_of_plain_data(pair: tuple[Any, Any]) -> None:
    left, right = pair
    assume(not has_nan(left) and not has_nan(right))
    assert same_value(encode(left), encode(right)) is (left == right)


@given(plain)
def test_every_plain_value_equals_its_copy_and_nan_equals_nan(value: Any) -> None:
    copied = copy.deepcopy(value)
    assert same_value(encode(value), encode(copied))
    spaced = json.dumps(json.loads(encode(copied)), indent=1).encode()
    assert same_value(encode(value), spaced), "compared as data, not as bytes"


@given(plain, plain)
def test_it_is_symmetric(left: Any, right: Any) -> None:
    assert same_value(encode(left), encode(right)) is same_value(encode(right), encode(left))


@pytest.mark.parametrize(
    ("left", "right", "is_same"),
    [
        (1, True, True),
        (1, 1.0, True),
        (0, False, True),
        (0.0, -0.0, True),
        (1 + 0j, 1, True),
        ([1], (1,), False),
        ({1}, frozenset({1}), True),
        ([1], {1}, False),
        ("1", 1, False),
        ("a", b"a", False),
        (None, False, False),
        (None, 0, False),
        ([], (), False),
        ({}, set(), False),
        (math.nan, math.nan, True),
        ([math.nan], [math.nan], True),
        ({math.nan}, {math.nan}, True),
        (complex(math.nan, 1), complex(math.nan, 1), True),
        (math.nan, 1.0, False),
        (math.inf, -math.inf, False),
        (10**400, math.inf, False),
        (2**53 + 1, float(2**53), False),
        ((1, 2), (2, 1), False),
        ({1: 2, 3: 4}, {3: 4, 1: 2}, True),
        ({1: 2}, {1: 3}, False),
        ({1: 2}, {2: 2}, False),
        ({1: 2}, {1: 2, 3: 4}, False),
        (0.1 + 0.2, 0.3, False),
        ("a", "a ", False),
        ("\ud83d", "\ude00", False),
    ],
)
def test_examples(left: Any, right: Any, is_same: bool) -> None:
    assert same_value(encode(left), encode(right)) is is_same


@pytest.mark.parametrize(
    ("left", "right", "tolerance", "is_same"),
    [
        (0.3, 0.1 + 0.2, 1e-9, True),
        (0.3, 0.1 + 0.2, 0.0, False),
        (1.0, 1.1, 1e-9, False),
        (1e9, 1e9 + 1, 1e-6, True),
        (0.0, 1e-7, 1e-6, True),
        (3, 3.0000001, 1e-6, True),
        (3, 4, 0.5, False),
        ([{"a": 0.5}], [{"a": 0.5000001}], 1e-6, True),
        (complex(1, 2), complex(1, 2.0000001), 1e-6, True),
        (math.nan, 1.0, 1e300, False),
        (math.inf, 1e308, 0.5, False),
        (10**400, 1.0, 0.5, False),
        ({0.5}, {0.5000001}, 1e-6, False),
        ({0.5: 1}, {0.5000001: 1}, 1e-6, False),
        (True, 1.0000001, 1e-6, True),
        ("0.5", "0.50", 1.0, False),
    ],
)
def test_a_tolerance_is_for_floats_and_not_for_members_and_keys(
    left: Any, right: Any, tolerance: float, is_same: bool
) -> None:
    assert same_value(encode(left), encode(right), tolerance) is is_same


def test_what_is_opaque_equals_nothing_not_even_itself() -> None:
    for value in (object(), [object()], {"a": {1: object()}}):
        encoded = encode(value)
        assert is_opaque(encoded)
        assert not same_value(encoded, encoded)
        assert not same_value(encode("right"), encoded)
    assert not is_opaque(encode('{"o":"x"}'))
    assert same_value(encode('{"o":"x"}'), encode('{"o":"x"}'))


@pytest.mark.parametrize("body", ["3", '"3"', '"NaN"', '"Infinity"', '"1e400"', "true", '["nan"]'])
def test_only_floats_that_are_not_finite_have_a_tag(body: str) -> None:
    got = f'{{"f":{body}}}'.encode()
    assert not any(same_value(encode(expected), got, 0.5) for expected in (1, 3, True, math.nan, math.inf))


json_like = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(),
        st.text(max_size=4),
        st.sampled_from(["0x10", "nan", "ff"]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["t", "d", "s", "z", "i", "f", "b", "c", "o", "x", ""]), inner, max_size=2),
    ),
)
EXPECTED = (None, 1, 1.5, 2 + 3j, "a", b"a", [1], (1,), {1: 2}, {1, 2}, frozenset({1}), [{1: ({2},)}], 1 << 70)


@given(json_like.map(lambda tree: json.dumps(tree).encode()) | st.binary(max_size=40), st.sampled_from([0.0, 1e-6]))
@example(b'{"d":[[]]}', 0.0)
@example(b'{"d":[{"a":1}]}', 0.0)
@example(b'{"d":["",1]}', 0.0)
@example(b'{"s":{"a":1}}', 0.0)
@example(b'{"c":[{"c":[1,1]},1]}', 0.0)
def test_hostile_bytes_never_raise(got: bytes, tolerance: float) -> None:
    for expected in EXPECTED:
        assert same_value(encode(expected), got, tolerance) in (True, False)


_INSERTED = r"""[ ] { } , : " 1 - . e9 true null NaN \ud800 {"t":[1]} {"s":[1]} {"d":[[1,2]]} {"f":"nan"} {"i":"0x1"}
    {"c":[1,2]} {"b":"00"} "t":"""
INSERTED = st.sampled_from([b" ", b"\xff", *_INSERTED.encode().split()])


@given(plain | twin_values, st.data())
def test_edited_bytes_pass_only_where_they_spell_the_value(value: Any, data: st.DataObject) -> None:
    assume(not has_nan(value))
    got = data.draw(edited(st.just(encode(value)), INSERTED))
    if same_value(encode(value), got):
        assert decode(json.loads(got)) == value


@pytest.mark.parametrize(
    "got",
    [
        b"",
        b" ",
        b"[",
        b"{}",
        b"{",
        b"nul",
        b"\xff\xfe\x00",
        b"[" * 500_000,
        b'{"t":[' * 100_000,
        b'{"s":[' * 900 + b"1" + b"]}" * 900,
        b'{"i":"0x' + b"f" * 500_000 + b'"}',
        b"9" * 500_000,
        b"1e999999999",
        b"-" * 1000,
        b'{"d":[[[1],2]]}',
        b'{"z":["a"],"z":["b"]}',
        b'{"t":[1],"s":[1]}',
        b'{"f":"1e400"}',
        b'{"c":["x","y"]}',
        b'{"b":"zz"}',
        b'{"o":"int"}',
        b'"' + b"\\u0000" * 100_000 + b'"',
        b"[" + b"1," * 300_000 + b"1]",
    ],
    ids=lambda got: got[:12].decode("latin-1"),
)
def test_hostile_bytes_equal_nothing(got: bytes) -> None:
    large = [1] * 20_000  # so that long answers are read at all
    for expected in (*EXPECTED, large):
        assert not same_value(encode(expected), got)
        assert not same_value(encode(expected), got, 1e-6)


def test_deeply_nested_sets_are_read_once_not_once_per_level() -> None:
    """Members in another order, 60,000 of them below 90 sets: the work would be 90 times as much. It must just end."""

    def nested(members: list[int]) -> bytes:
        return b'{"z":[' * 90 + json.dumps(members).encode()[1:-1] + b"]}" * 90

    members = list(range(60_000))
    assert same_value(nested(members), nested(members[::-1]))
    assert not same_value(nested(members), nested([-1, *members[1:]]))


@given(st.lists(hashable, max_size=3), st.dictionaries(st.sampled_from("abc"), hashable, max_size=3), st.randoms())
def test_the_key_of_a_call_forgets_the_order_of_sets_and_of_named_arguments(
    positional: list[Any], named: dict[str, Any], random: Any
) -> None:
    def shuffled(node: Any) -> Any:
        if isinstance(node, list):
            return [shuffled(item) for item in node]
        if isinstance(node, dict):
            ((tag, body),) = node.items()
            body = shuffled(body)
            return {tag: random.sample(body, len(body)) if tag in "sz" else body}
        return node

    first = [json.loads(encode(positional)), [[name, json.loads(encode(value))] for name, value in named.items()]]
    second = [shuffled(first[0]), random.sample(shuffled(first[1]), len(named))]
    texts = [json.dumps(tree, separators=(",", ":")).encode() for tree in (first, second)]
    assert call_key(texts[0]) == call_key(texts[1])


def test_different_calls_have_different_keys() -> None:
    calls = [
        b"[[1],[]]",
        b"[[true],[]]",
        b"[[1.0],[]]",
        b"[[[1,2]],[]]",
        b"[[[2,1]],[]]",
        b'[[],[["a",1]]]',
        b'[[],[["b",1]]]',
        b'[[{"s":[1]}],[]]',
        b'[[{"z":[1]}],[]]',
        b'[["{\\"s\\":[2,1]}"],[]]',
        b'[["{\\"s\\":[1,2]}"],[]]',
    ]
    assert len({call_key(call) for call in calls}) == len(calls)
