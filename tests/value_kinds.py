"""Values of all kinds that programs return, for the tests of what they are as data and how they compare."""

from __future__ import annotations

import array
import collections
import datetime
import types
from decimal import Decimal
from fractions import Fraction
from typing import Any

from hypothesis import strategies as st

Point = collections.namedtuple("Point", "x y")
Pair = collections.namedtuple("Pair", "first second")


class Half(Fraction):
    pass


class Queue(collections.deque):  # type: ignore[type-arg]
    pass


offsets = st.sampled_from([None, 0, 60, -330])


def zone(minutes: int | None) -> datetime.timezone | None:
    return None if minutes is None else datetime.timezone(datetime.timedelta(minutes=minutes))


# Few of each, so that two are often equal, also across types.
numbers = st.sampled_from(
    [
        0,
        1,
        True,
        2,
        0.5,
        1.0,
        -0.0,
        0.1,
        1 + 0j,
        0.5 + 0j,
        10**30,
        1e30,
        2**53 + 1,
        Fraction(1, 2),
        Fraction(2),
        Fraction(1, 10),
        Fraction(10**30),
        Fraction(1, 3),
        Half(1, 2),
        Decimal("0.5"),
        Decimal("0.50"),
        Decimal("0.1"),
        Decimal.from_float(0.1),
        Decimal("1E+30"),
        Decimal("-0"),
        Decimal(2),
        Decimal("1E-5000"),
        Decimal("10E-5001"),
        Decimal("Infinity"),
        float("inf"),
        10**1000,
        Decimal("1E+1000"),
    ]
)
moments = st.one_of(
    st.sampled_from([datetime.date(2020, 1, 2), datetime.date(2020, 1, 3)]),
    st.builds(
        lambda hour, minutes, fold: datetime.datetime(2020, 1, 2, hour, 30, tzinfo=zone(minutes), fold=fold),
        st.integers(0, 2),
        offsets,
        st.integers(0, 1),
    ),
    st.just(datetime.datetime(2020, 1, 2)),
    st.builds(lambda hour, minutes: datetime.time(hour, 30, tzinfo=zone(minutes)), st.integers(0, 2), offsets),
    st.sampled_from([datetime.timedelta(1), datetime.timedelta(0, 86400), datetime.timedelta(-1, 5)]),
    st.builds(range, st.integers(-2, 2), st.integers(-3, 5), st.sampled_from([-2, -1, 1, 2])),
)
texts = st.sampled_from(["", "a", "1", b"", b"a", None])
keys = st.recursive(
    st.one_of(numbers, moments, texts),
    lambda inner: st.one_of(
        st.tuples(inner), st.tuples(inner, inner), st.builds(Point, inner, inner), st.frozensets(inner, max_size=2)
    ),
    max_leaves=3,
)
pairs = st.lists(st.tuples(keys, st.one_of(numbers, texts)), max_size=3)
counts = st.lists(st.tuples(keys, st.sampled_from([0, 1, 2, 1.0])), max_size=3)
dicts = st.one_of(
    pairs.map(dict),
    pairs.map(collections.OrderedDict),
    counts.map(dict),
    counts.map(dict).map(collections.Counter),
    pairs.map(lambda given: collections.defaultdict(list, given)),
    pairs.map(dict).map(types.MappingProxyType),
    pairs.map(lambda given: collections.UserDict(dict(given))),
    pairs.map(lambda given: collections.ChainMap(dict(given[:1]), dict(given[1:]))),
)
views = st.one_of(pairs.map(lambda given: dict(given).keys()), pairs.map(lambda given: dict(given).items()))
arrays = st.one_of(
    st.lists(st.integers(0, 2), max_size=3).map(lambda items: array.array("i", items)),
    st.lists(st.integers(0, 2), max_size=3).map(lambda items: array.array("d", items)),
)


def containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    items = st.lists(inner, max_size=2)
    return st.one_of(
        items,
        items.map(tuple),
        items.map(collections.deque),
        items.map(Queue),
        st.builds(lambda given: collections.deque(given, 5), items),
        items.map(collections.UserList),
        st.builds(Point, inner, inner),
        st.builds(Pair, inner, inner),
        st.dictionaries(keys, inner, max_size=2),
        st.dictionaries(keys, inner, max_size=2).map(collections.OrderedDict),
        st.sets(keys, max_size=2),
    )


values = st.recursive(st.one_of(keys, dicts, views, arrays), containers, max_leaves=5)
