"""The value codec: plain data goes through unchanged, and nothing else looks like plain data."""

from __future__ import annotations

import collections
import contextlib
import enum
import json
import math
from typing import Any

import pytest
from hypothesis import example, given, strategies as st

from codea1_env.sandbox.inside import values

# Lone surrogates too, but not two that JSON would join to one character.
texts = st.text(st.characters(exclude_categories=())).filter(lambda text: json.loads(json.dumps(text)) == text)
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-(1 << 70), 1 << 70),
    st.floats(),
    st.complex_numbers(),
    texts,
    st.binary(),
)
hashable = st.recursive(
    scalars, lambda inner: st.one_of(st.tuples(inner, inner), st.frozensets(inner, max_size=4)), max_leaves=6
)
plain = st.recursive(
    st.one_of(scalars, hashable),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(hashable, inner, max_size=4),
        st.sets(hashable, max_size=4),
        st.frozensets(hashable, max_size=4),
    ),
    max_leaves=20,
)


def canonical(value: Any) -> Any:
    """Exact type and content, floats by repr (NaN equals NaN, -0.0 is not 0.0), sets and dicts in any order."""
    if isinstance(value, list | tuple):
        return type(value), [canonical(item) for item in value]
    if isinstance(value, set | frozenset):
        return type(value), sorted(map(repr, map(canonical, value)))
    if isinstance(value, dict):
        return dict, sorted((repr(canonical(key)), repr(canonical(item))) for key, item in value.items())
    return type(value), repr(value)


@given(plain)
@example({-0.0: [(), set(), frozenset(), {}, b"", ""]})
@example([1 << 63, -(1 << 63), (1 << 63) - 1, -(1 << 63) - 1, 10**4000])
@example(["\U0001f600", "\ude00\ud83d", "\ud83d", "\ude00", "\0", '{"o":"x"}'])
@example([math.nan, math.inf, -math.inf, complex(-0.0, math.nan), True, 1, 1.0])
def test_plain_data_survives_the_round_trip_exactly(value: Any) -> None:
    encoded = values.encode(value)
    assert canonical(values.decode(json.loads(encoded))) == canonical(value)


@given(plain)
def test_the_encoding_is_compact_ascii_json_without_bare_nan(value: Any) -> None:
    def refuse(name: str) -> None:
        raise AssertionError(name)

    text = values.encode(value).decode("ascii")
    tree = json.loads(text, parse_constant=refuse)
    assert text == json.dumps(tree, ensure_ascii=True, separators=(",", ":"))


class Colour(enum.IntEnum):
    RED = 3


class Name(str, enum.Enum):  # noqa: UP042  # the old spelling is the subclass that programs use
    ANN = "ann"


class LyingInt(int):
    def __index__(self) -> int:
        return 99

    __int__ = __index__

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = int.__hash__


class LyingList(list):  # type: ignore[type-arg]
    def __iter__(self) -> Any:
        return iter(())

    def __len__(self) -> int:
        return 0


class LyingStr(str):
    def __str__(self) -> str:
        return "lie"

    __class__ = property(lambda self: int)  # type: ignore[assignment]


class LyingFloat(float):
    def __float__(self) -> float:
        return math.nan


class LyingDict(dict):  # type: ignore[type-arg]
    def items(self) -> Any:
        return [("lie", 1)]


@pytest.mark.parametrize(
    ("value", "base"),
    [
        (Colour.RED, 3),
        (Name.ANN, "ann"),
        (LyingInt(5), 5),
        (LyingStr("truth"), "truth"),
        (LyingFloat(0.5), 0.5),
        (LyingList([1, 2]), [1, 2]),
        (LyingDict(a=2), {"a": 2}),
        (collections.OrderedDict(a=1), {"a": 1}),
        (collections.Counter("aab"), {"a": 2, "b": 1}),
        (collections.defaultdict(list, {1: [2]}), {1: [2]}),
        (collections.namedtuple("Point", "x y")(1, 2), (1, 2)),
        (bytearray(b"ab"), b"ab"),
    ],
)
def test_an_instance_of_a_subclass_is_its_base_value_whatever_it_says(value: Any, base: Any) -> None:
    decoded = values.decode(json.loads(values.encode([value])))
    assert canonical(decoded) == canonical([base])


@pytest.mark.parametrize(
    "value",
    [object(), LyingInt, len, lambda: 1, json, memoryview(b"abcd").cast("i")],
)
def test_anything_else_is_opaque(value: Any) -> None:
    tree = json.loads(values.encode((value,)))
    assert list(tree["t"][0]) == ["o"]
    with pytest.raises(ValueError, match="tag"):
        values.decode(tree)


def test_cycles_depth_size_and_shared_references_are_bounded() -> None:
    cycle: list[Any] = []
    cycle.append(cycle)
    deep: list[Any] = []
    for _ in range(values.MAX_DEPTH + 1):
        deep = [deep]
    shared: list[Any] = [1]
    for _ in range(64):
        shared = [shared, shared]
    for value in (
        cycle,
        deep,
        shared,
        "a" * 2000,
        b"a" * 1000,
        [0] * 2000,
        1 << 10_000,
        "é" * 300,
        {i: i for i in range(600)},
    ):
        assert values.encode(value, 1000) == b'{"o":"too large"}'
    for value in ("a" * 900, b"a" * 400, [0] * 400, 1 << 3000):
        assert 700 < len(values.encode(value, 1000)) <= 1000


@given(
    st.recursive(
        st.one_of(st.none(), st.integers(), st.text(max_size=3)),
        lambda inner: st.one_of(
            st.lists(inner, max_size=3),
            st.dictionaries(st.sampled_from(["t", "d", "s", "z", "i", "f", "b", "c", "o", "x"]), inner, max_size=2),
        ),
    )
)
def test_a_malformed_tree_raises_nothing_but_value_type_and_lookup_errors(tree: Any) -> None:
    with contextlib.suppress(ValueError, TypeError, LookupError):
        values.decode(tree)
