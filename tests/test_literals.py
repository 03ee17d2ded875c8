"""Literals and wire trees: exact, canonical, and free of evaluation."""

from __future__ import annotations

import ast
import functools
import json
import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from codea1_env.judging.equality import same_value
from codea1_env.reading.grammar import read_case
from codea1_env.reading.literals import MAX_DEPTH, NotLiteral, Tree, encode, literal_tree, tree_source, value_source
from codea1_env.reading.pure_expressions import Reason
from codea1_env.reading.test_case import TestCase
from codea1_env.sandbox.inside import values


def tree_of(source: str) -> Tree:
    return literal_tree(ast.parse(source, mode="eval").body)


@pytest.mark.parametrize(
    ("source", "wire"),
    [
        ("None", b"null"),
        ("True", b"true"),
        ("False", b"false"),
        ("-1", b"-1"),
        ("+1", b"1"),
        ("0x10", b"16"),
        ("9223372036854775807", b"9223372036854775807"),
        ("9223372036854775808", b'{"i":"0x8000000000000000"}'),
        ("-9223372036854775808", b"-9223372036854775808"),
        ("-9223372036854775809", b'{"i":"-0x8000000000000001"}'),
        ("1.5", b"1.5"),
        ("-0.0", b"-0.0"),
        ("1e16", b"1e+16"),
        ("1e999", b'{"f":"inf"}'),
        ("-1e999", b'{"f":"-inf"}'),
        ("float('nan')", b'{"f":"nan"}'),
        ("float('-inf')", b'{"f":"-inf"}'),
        ("2j", b'{"c":[0.0,2.0]}'),
        ("1-2j", b'{"c":[1.0,-2.0]}'),
        ("complex(-0.0, float('nan'))", b'{"c":[-0.0,{"f":"nan"}]}'),
        ("'a\"\\n\u00e9\\ud800'", b'"a\\"\\n\\u00e9\\ud800"'),
        ("'a' 'b'", b'"ab"'),
        ("b'\\x00\\xff'", b'{"b":"00ff"}'),
        ("[1, [2]]", b"[1,[2]]"),
        ("()", b'{"t":[]}'),
        ("(1,)", b'{"t":[1]}'),
        ("{}", b'{"d":[]}'),
        ("{'b': 1, 'a': [2]}", b'{"d":[["b",1],["a",[2]]]}'),
        ("{3, 1}", b'{"s":[1,3]}'),
        ("set()", b'{"s":[]}'),
        ("frozenset()", b'{"z":[]}'),
        ("frozenset({2, 1})", b'{"z":[1,2]}'),
        ("{(1, frozenset({2})): set()}", b'{"d":[[{"t":[1,{"z":[2]}]},{"s":[]}]]}'),
    ],
)
def test_a_literal_has_this_encoding(source: str, wire: bytes) -> None:
    assert encode(tree_of(source)) == wire


@pytest.mark.parametrize(
    "source",
    [
        "x",
        "...",
        "1 + 2",
        "2 ** 3",
        "--1",
        "-True",
        "~1",
        "not 1",
        "-'a'",
        "1 + 'a'",
        "1j + 1",
        "1j + 2j",
        "1 * 2j",
        "1 + 2j + 3j",
        "[*[1]]",
        "{**{}}",
        "{*[1]}",
        "[x for x in [1]]",
        "f'a'",
        "f(1)",
        "a.b",
        "float('1')",
        "float('NaN ')",
        "float(1)",
        "float('nan', x=1)",
        "set([1])",
        "set(x=1)",
        "frozenset([1])",
        "frozenset({1}, {2})",
        "complex(1, 2.0)",
        "complex('1')",
        "complex(1.0, set())",
        "float.fromhex('1')",
        "[1][0]",
        "lambda: 1",
        f"{10**400} + 2j",
    ],
)
def test_anything_but_a_literal_is_refused(source: str) -> None:
    with pytest.raises(NotLiteral):
        tree_of(source)


@pytest.mark.parametrize(
    "keys",
    [
        "1, 1",
        "1, True",
        "0, False, 2",
        "1, 1.0",
        "1, 1 + 0j",
        "0.0, -0.0",
        "'a', 'b', 'a'",
        "(1, 'a'), (1.0, 'a')",
        "9223372036854775808, 9223372036854775808.0",
        "frozenset({1, 2}), frozenset({2.0, True})",
        "float('nan'), float('nan')",
        "None, None",
        "b'a', b'a'",
    ],
)
def test_repeated_keys_are_left_to_evaluation(keys: str) -> None:
    for source in (f"{{{keys}}}", f"frozenset({{{keys}}})", "{" + ", ".join(f"{k}: 0" for k in split(keys)) + "}"):
        with pytest.raises(NotLiteral):
            tree_of(source)


def split(keys: str) -> list[str]:
    elements = ast.parse(f"[{keys}]", mode="eval").body
    assert isinstance(elements, ast.List)
    return [ast.unparse(element) for element in elements.elts]


@pytest.mark.parametrize("keys", ["'1', 1, b'1'", "('1:a',), ('1', 'a')", "1, '0x1'", "None, 'None'", "1, 1 + 1j, 1j"])
def test_distinct_keys_are_no_repeated_ones(keys: str) -> None:
    tree = tree_of(f"{{{keys}}}")
    assert isinstance(tree, dict)
    assert len(tree["s"]) == len(split(keys))


@pytest.mark.parametrize("source", ["{[1]}", "{{1}}", "{{1: 2}}", "{[1]: 2}", "{({},)}", "frozenset({[]})"])
def test_unhashable_keys_are_left_to_evaluation(source: str) -> None:
    with pytest.raises(NotLiteral):
        tree_of(source)


def test_colliding_keys_are_told_apart_without_a_hash_table() -> None:
    # Multiples of 2**61 - 1 share one hash: a Python set of so many of them would take minutes, and this test too.
    node = ast.Set([ast.Constant((2**61 - 1) * i) for i in range(60_000)])
    tree = literal_tree(node)
    assert isinstance(tree, dict)
    assert len(tree["s"]) == 60_000


@pytest.mark.parametrize(
    "around",
    [
        lambda node: ast.List([node], ast.Load()),
        lambda node: ast.Tuple([node], ast.Load()),
        lambda node: ast.Dict([ast.Constant(1)], [node]),
    ],
    ids=["list", "tuple", "dict"],
)
def test_depth_is_bounded(around: Callable[[ast.expr], ast.expr]) -> None:
    def nested(levels: int) -> ast.expr:
        return functools.reduce(lambda node, _: around(node), range(levels), ast.Constant(0))

    assert tree_of(tree_source(literal_tree(nested(30)))) == literal_tree(nested(30))
    literal_tree(nested(MAX_DEPTH))
    for levels in (MAX_DEPTH + 1, 20_000):
        with pytest.raises(NotLiteral):
            literal_tree(nested(levels))


def _hashable(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(inner, max_size=3).map(tuple) | st.frozensets(inner, max_size=3)


# NaN is no key: two of them are one to the reader.
scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.integers(-(10**700), 10**700), st.floats(allow_nan=False),
    st.complex_numbers(allow_nan=False), st.text(st.characters(exclude_categories=())), st.binary(),
    st.text("'\"\\\n\r\0{}\ud800\u2028", max_size=6),
)  # fmt: skip
keys = st.recursive(scalars, _hashable, max_leaves=4)
plain_values = st.recursive(
    scalars | keys | st.sets(keys, max_size=3) | st.just(math.nan),
    lambda inner: (
        st.lists(inner, max_size=3) | st.lists(inner, max_size=3).map(tuple) | st.dictionaries(keys, inner, max_size=3)
    ),
    max_leaves=12,
)


def wire_tree(value: object) -> Tree:
    tree: Tree = json.loads(values.encode(value))
    return tree


def in_set_order(tree: Tree) -> Tree:
    """The tree with the elements of its sets in one order."""
    if isinstance(tree, list):
        return [in_set_order(item) for item in tree]
    if isinstance(tree, dict):
        ((tag, body),) = tree.items()
        inner = in_set_order(body)
        return {tag: sorted(inner, key=tree_source) if tag in "sz" and isinstance(inner, list) else inner}
    return tree


@settings(deadline=None)
@given(plain_values)
def test_source_of_any_plain_value_reads_back_to_its_tree(value: object) -> None:
    tree = wire_tree(value)
    source = tree_source(tree)
    assert "\n" not in source
    source.encode()  # no lone surrogate is left bare
    assert encode(tree) == json.dumps(tree, ensure_ascii=True, separators=(",", ":")).encode("ascii")
    again = tree_of(source)
    assert json.dumps(again) == json.dumps(in_set_order(tree))  # as text: -0.0 and True are not 0 and 1
    assert tree_source(again) == source


@settings(deadline=None)
@given(plain_values)
def test_a_literal_has_the_tree_of_its_value(value: object) -> None:
    # `repr` is Python's own spelling, so that sets and complex numbers come in other words than `tree_source` uses.
    source = repr(value)
    try:
        tree = tree_of(source)
    except NotLiteral:
        assert "nan" in source or "inf" in source
        return
    evaluated = (
        ast.literal_eval(source)
        if "(" not in source
        else eval(source, {"__builtins__": {"set": set, "frozenset": frozenset}})
    )
    assert json.dumps(in_set_order(tree)) == json.dumps(in_set_order(wire_tree(evaluated)))


def test_huge_integers_have_a_source_that_python_reads() -> None:
    for value in (10**600, -(10**5000), 1 << 100_000):
        source = tree_source(wire_tree(value))
        assert ast.literal_eval(source) == value
        assert tree_of(source) == wire_tree(value)


@pytest.mark.parametrize(
    "tree",
    [
        {"o": "Evil"},
        {"x": 1},
        {},
        {"t": [], "s": []},
        {"t": 1},
        {"d": [[1]]},
        {"d": [1]},
        {"i": "zz"},
        {"i": 5},
        {"f": "1"},
        {"f": []},
        float("nan"),
        [float("-inf")],
        {"b": "0"},
        {"b": 1},
        {"c": [1.0]},
        {"c": None},
        [{"o": "Evil"}],
        {"s": [{"o": "Evil"}]},
    ],
)
def test_an_opaque_or_malformed_tree_has_no_source(tree: Any) -> None:
    with pytest.raises(NotLiteral):
        tree_source(tree)


def test_equal_sets_have_equal_encodings_whatever_their_order() -> None:
    assert encode(tree_of("[{8, 0}, {'b', 'a', 'c'}]")) == encode(tree_of("[{0, 8}, {'c', 'a', 'b'}]"))


@given(plain_values)
@settings(deadline=None)
def test_what_is_written_for_a_value_is_a_test_that_demands_this_value(value: Any) -> None:
    source = value_source(value)
    for case in (TestCase(f"f({source})", source), TestCase(f"f(x={source})", source)):
        read = read_case(case, "f")
        assert (read.reason, read.stated) == ("", source)
        assert read.value is not None, "it is a literal: nothing has to be evaluated"
        assert read.arguments is not None
        assert same_value(encode(values.tree(value, [1 << 30], 0)), read.value)
    assert same_value(values.encode(value), encode(tree_of(source)))


@pytest.mark.parametrize(
    ("value", "source"),
    [
        (json.loads("1e400"), "float('inf')"),
        (json.loads("[-Infinity, NaN]"), "[float('-inf'), float('nan')]"),
        ({"a": (1,), 2: set()}, "{'a': (1,), 2: set()}"),
        (-0.0, "-0.0"),
        (10**700, hex(10**700)),
        ("\ud800", r"'\ud800'"),
    ],
)
def test_values_that_repr_does_not_write_for_the_reader(value: Any, source: str) -> None:
    assert value_source(value) == source


def test_what_is_no_plain_data_and_what_is_too_deep_is_not_written() -> None:
    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep]
    for value, reason in ((object(), "not_plain_data"), ([{1: len}], "not_plain_data"), (deep, "too_deep")):
        with pytest.raises(NotLiteral) as refused:
            value_source(value)
        assert str(refused.value) == Reason(reason)
