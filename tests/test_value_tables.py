"""numpy's arrays and scalars and pandas' tables as data: they compare as numpy and pandas compare them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy
import pytest
from hypothesis import given, settings, strategies as st

from codea1_env.judging.equality import FAILURES, same_value
from codea1_env.judging.oracle import is_data, is_plain
from codea1_env.judging.relations.neighbours import others
from codea1_env.judging.relations.tree_functions import OPERATORS
from codea1_env.reading.literals import tree_source
from codea1_env.sandbox.inside import values
from codea1_env.sandbox.inside.values import decode, encode

DTYPES = ["int64", "int8", "float64", "float32", "bool", "complex128", "<U2", "object"]
scalars = st.sampled_from([0, 1, 2, 0.5, 1.0, True])


@st.composite
def arrays(draw: Any) -> Any:
    shape = draw(st.sampled_from([(), (0,), (1,), (2,), (1, 1), (2, 1), (1, 2), (2, 2), (2, 0), (0, 2), (2, 1, 2)]))
    size = int(numpy.prod(shape))
    items = draw(st.lists(scalars, min_size=size, max_size=size))
    return numpy.array(items, draw(st.sampled_from(DTYPES))).reshape(shape)


plain = st.one_of(
    scalars, st.lists(scalars, max_size=2), st.lists(st.lists(scalars, min_size=1, max_size=1), max_size=1)
)
both = st.one_of(arrays(), plain)


def tree(value: Any) -> Any:
    return json.loads(encode(value))


@settings(max_examples=120)
@given(arrays(), both)
def test_an_array_equals_what_the_truth_of_numpys_comparison_says(left: Any, right: Any) -> None:
    """Where numpy gives one truth. Of several, arrays of one shape are equal where all are, and others never."""
    found = same_value(encode(left), encode(right))
    assert found is same_value(encode(right), encode(left))
    try:
        result = numpy.asarray(left == right)
    except ValueError:  # shapes that do not fit
        assert not found
        return
    if result.size == 1 and numpy.asarray(left).size == numpy.asarray(right).size == 1:
        assert found is bool(result.item())
    else:
        is_one_shape = isinstance(right, numpy.ndarray) and left.shape == right.shape
        assert found is (is_one_shape and bool(result.all()))


@settings(max_examples=120)
@given(both, both)
def test_array_equal_and_allclose_are_numpys(left: Any, right: Any) -> None:
    for name, function, more in (("array_equal", numpy.array_equal, ()), ("allclose", numpy.allclose, (1e-5, 1e-8))):
        try:
            expected = bool(function(left, right))
        except (TypeError, ValueError):
            continue
        try:
            found = OPERATORS[name](tree(left), tree(right), *more)
        except (ValueError, TypeError):
            found = False  # a claim that has no value is false
        shapes = {numpy.shape(left), numpy.shape(right)}
        if name == "array_equal" or len(shapes) == 1 or () in shapes:  # beyond these, no broadcasting
            assert found is expected, name


@given(arrays())
def test_an_array_survives_and_is_looked_at_as_numpy_shows_it(array: Any) -> None:
    again = decode(tree(array))
    assert (again.dtype, again.shape) == (array.dtype, array.shape)
    assert numpy.array_equal(again, array)
    assert is_plain(encode(array))
    assert OPERATORS["attribute"](tree(array), "shape") == {"t": [*array.shape]}
    assert OPERATORS["attribute"](tree(array), "dtype") == str(array.dtype)
    assert OPERATORS["tolist"](tree(array)) == tree(array.tolist())
    if array.ndim:
        assert OPERATORS["len"](tree(array)) == len(array)
        rows = [OPERATORS["item"](tree(array), place) for place in range(len(array))]
        assert all(same_value(encode(row), json.dumps(mine).encode()) for row, mine in zip(array, rows, strict=True))
        assert numpy.array_equal(decode(OPERATORS["slice"](tree(array), 1, None, None)), array[1:])
    if array.dtype != "object":
        assert numpy.array_equal(eval(tree_source(tree(array)), {"np": numpy}).reshape(array.shape), array)
    assert all(is_data(json.dumps(other).encode()) for other in others(tree(array)))


@pytest.mark.parametrize(
    ("scalar", "value"),
    [
        (numpy.float64(1.0), 1.0), (numpy.float32(0.5), 0.5), (numpy.int8(-3), -3), (numpy.uint64(2**63), 2**63),
        (numpy.bool_(True), True), (numpy.complex64(1j), 1j), (numpy.str_("a"), "a"), (numpy.bytes_(b"a"), b"a"),
    ],
)  # fmt: skip
def test_a_scalar_is_pythons_value(scalar: Any, value: Any) -> None:
    assert encode([scalar]) == encode([value])


@pytest.mark.parametrize(
    "value", [numpy.longdouble(1), numpy.ma.array([1, 2], mask=[0, 1]), numpy.array([(1, 2)], "i,i")]
)
def test_what_is_no_plain_array_is_opaque(value: Any) -> None:
    assert b'{"o":' in encode(value)


def test_times_are_pythons() -> None:
    days = numpy.array(["2020-01-02", "NaT"], "M8[D]")
    assert tree(days)["k"][3] == [{"k": ["date", 2020, 1, 2]}, {"k": ["NaT"]}]
    assert tree(numpy.timedelta64(90, "s")) == {"k": ["timedelta", 0, 90, 0]}
    assert b'{"o":' in encode(numpy.datetime64("2020-01-02T00:00:00.000000001"))


class Lying(numpy.ndarray):  # type: ignore[type-arg]
    shape = property(lambda self: (9,))  # type: ignore[assignment]
    __eq__ = lambda self, other: True  # type: ignore[assignment]  # noqa: E731
    tolist = lambda self: ["lie"]  # noqa: E731


def test_a_subclass_is_the_array_below_it() -> None:
    assert encode(numpy.array([1, 2]).view(Lying)) == encode(numpy.array([1, 2]))


pandas = pytest.importorskip("pandas", reason="pandas is not installed")


@pytest.mark.parametrize(
    "columns",
    [
        {"a": [1, 2], "b": [3, 4]},
        {"a": [1, 2], "b": [0.5, 4.0]},
        {"a": [1, 2], "b": ["x", "y"]},
        {"b": ["x"]},
        {"a": [True]},
        {"a": []},
    ],
)
def test_the_values_of_a_table_are_an_array(columns: Any) -> None:
    table = pandas.DataFrame(columns)
    assert numpy.array_equal(decode(OPERATORS["attribute"](tree(table), "values")), table.values)
    assert OPERATORS["attribute"](OPERATORS["attribute"](tree(table), "values"), "dtype") == str(table.values.dtype)


def frames() -> list[Any]:
    made = pandas.DataFrame({"a": [1, 2], "b": ["x", "y"]})
    return [
        made,
        made.rename(columns={"a": "c"}),
        made.set_index("b"),
        made.astype({"a": "float64"}),
        made[::-1],
        made.iloc[:1],
        pandas.DataFrame({"a": [1.0, float("nan")]}),
        pandas.DataFrame(),
        made["a"],
        made["a"].rename("z"),
        made["a"].astype("float64"),
        pandas.Series([1, 2], index=["p", "q"]),
        pandas.Series([], dtype="int64"),
        pandas.Index([1, 2]),
        pandas.to_datetime(["2020-01-01", None]),
    ]


def same(left: Any, right: Any, check_type: bool) -> bool:
    """pandas' own word."""
    if type(left) is not type(right) and not (isinstance(left, pandas.Index) and isinstance(right, pandas.Index)):
        return False
    kind = "frame" if isinstance(left, pandas.DataFrame) else "series" if isinstance(left, pandas.Series) else "index"
    more = {"exact": check_type} if kind == "index" else {"check_dtype": check_type, "check_index_type": False}
    if kind == "frame":
        more["check_column_type"] = False
    try:
        getattr(pandas.testing, f"assert_{kind}_equal")(left, right, **more)
    except AssertionError:
        return False
    return True


@pytest.mark.parametrize("check_type", [True, False])
def test_tables_are_the_same_where_pandas_says_so(check_type: bool) -> None:
    for left in frames():
        for right in frames():
            try:
                found = OPERATORS["same_table"](tree(left), tree(right), check_type, True, 1e-5, 1e-8)
            except ValueError:
                found = False
            assert found is same(left, right, check_type), (left, right)
            assert same_value(encode(left), encode(right)) is same(left, right, False), (left, right)


def test_tables_survive_and_are_looked_at_as_pandas_shows_them() -> None:
    for table in frames():
        assert same(decode(tree(table)), table, True), table
        assert OPERATORS["attribute"](tree(table), "shape") == {"t": [*table.shape]}
        assert OPERATORS["len"](tree(table)) == len(table)
        assert all(is_data(json.dumps(other).encode()) for other in others(tree(table)))
    made = frames()[0]
    assert OPERATORS["tolist"](OPERATORS["item"](tree(made), "a")) == [1, 2]
    assert OPERATORS["tolist"](OPERATORS["attribute"](tree(made), "columns")) == ["a", "b"]
    assert tree(pandas.Timestamp("2020-01-02")) == {"k": ["datetime", 2020, 1, 2, 0, 0, 0, 0, 0, None]}


def test_nothing_imports_a_module_that_the_program_did_not() -> None:
    program = (
        f"import sys; sys.path.insert(0, {str(Path(values.__file__).parent)!r}); import values\n"
        "values.encode([object(), range(3), map(len, [])])\n"
        "assert not {'numpy', 'pandas', 'decimal', 'fractions', 'datetime'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


CELLS = [
    ("iloc", (0, 0)), ("iloc", (-1, 1)), ("iloc", 0), ("iloc", 7), ("loc", (0, "a")), ("loc", (1, "b")), ("loc", 1),
    ("loc", "x"), ("loc", ("x", "a")), ("loc", "p"), ("loc", "q"), ("iloc", (0, 9)), ("loc", (0, "none")),
]  # fmt: skip


@pytest.mark.parametrize("table", frames(), ids=range(len(frames())))
def test_a_cell_or_row_is_the_one_of_pandas(table: Any) -> None:
    for name, at in CELLS:
        try:
            expected = encode(getattr(table, name)[at])
        except (AttributeError, LookupError, TypeError, ValueError, pandas.errors.IndexingError):
            expected = None
        try:
            found = json.dumps(OPERATORS["cell"](tree(table), tree(at), name == "loc")).encode()
        except FAILURES:
            found = None
        assert found == expected or same_value(expected, found), (name, at)
