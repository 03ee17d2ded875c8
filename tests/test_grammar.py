"""The strict grammar: what is a test, what is none and why, and that what is accepted is pure data."""

from __future__ import annotations

import ast
import json
import unicodedata

import pytest
from hypothesis import example, given, settings, strategies as st

from codea1_env.reading.grammar import (
    MAX_DEPTH,
    MAX_SOURCE,
    RETURNED,
    WrittenTest,
    canonical_name,
    read_assert,
    read_case,
    read_released,
)
from codea1_env.reading.pure_expressions import BUILTINS, Reason
from codea1_env.reading.test_case import TestCase


def read(source: str, entry_point: str = "f") -> WrittenTest:
    (statement,) = ast.parse(source).body
    assert isinstance(statement, ast.Assert)
    return read_assert(statement.test, source, entry_point)


def released(source: str) -> WrittenTest:
    """As paper fidelity reads an assert with a call left of a comparison."""
    (statement,) = ast.parse(source).body
    assert isinstance(statement, ast.Assert)
    assert isinstance(statement.test, ast.Compare)
    assert isinstance(statement.test.left, ast.Call)
    return read_released(statement.test.left, statement.test.comparators[0], source, "f")


def data_of(test: WrittenTest) -> object:
    """The value of an accepted test's expression: safe here, for these tests are our own."""
    return eval(test.expression)


@pytest.mark.parametrize(
    ("source", "call", "stated"),
    [
        ("assert f(1) == 2", "f(1)", "2"),
        ("assert 2 == f(1)", "f(1)", "2"),
        ("assert (f(1)) == (2)", "f(1)", "2"),
        ("assert f() == ()", "f()", "()"),
        ("assert f(1) is None", "f(1)", "None"),
        ("assert f(1) is True", "f(1)", "True"),
        ("assert f(1) is False", "f(1)", "False"),
        ("assert f(1) == 2, 'a message'", "f(1)", "2"),
        ("assert f(1) == 2, exit(f(1))", "f(1)", "2"),
        ("assert f( 1,b = [ 2 ] )==[ 'x' ]", "f(1, b=[2])", "['x']"),
        ('assert f("a") == "it\'s"', "f('a')", '"it\'s"'),
        ("assert f(0x10, {2, 1}) == float('nan')", "f(16, {1, 2})", "float('nan')"),
        ("assert f(-1, +2) == -0.0", "f(-1, 2)", "-0.0"),
        ("assert f([1] * 3) == 2 ** 10", "f([1] * 3)", "2 ** 10"),
        ("assert f('abc'[::-1], [1, 2][0]) == [1, 2][:1]", "f('abc'[::-1], [1, 2][0])", "[1, 2][:1]"),
        ("assert f(list(range(3))) == sum([1, 2])", "f(list(range(3)))", "sum([1, 2])"),
        ("assert f(sorted([2, 1], reverse=True)) == 1", "f(sorted([2, 1], reverse=True))", "1"),
        ("assert f([x for x in range(9) if x % 2]) == 1", "f([x for x in range(9) if x % 2])", "1"),
        ("assert f({k: v for k, v in zip([1], [2])}) == 1", "f({k: v for k, v in zip([1], [2])})", "1"),
        ("assert f({x for y in [[1]] for x in y}) == 1", "f({x for y in [[1]] for x in y})", "1"),
        ("assert f(1 if 2 > 1 else 0) == (1 < 2)", "f((1 if 2 > 1 else 0))", "(1 < 2)"),
        ("assert f(1) == (not 1)", "f(1)", "(not 1)"),
        ("assert f(1) == (1 and 2)", "f(1)", "(1 and 2)"),
    ],
)
def test_a_pure_equation_of_one_direct_call_is_a_test(source: str, call: str, stated: str) -> None:
    test = read(source)
    assert (test.reason, test.call, test.stated, test.source) == ("", call, stated, source)


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("assert True", Reason.NOT_A_COMPARISON),
        ("assert f(1) == 1 or True", Reason.NOT_A_COMPARISON),
        ("assert (f(1) == 1, 'always true')", Reason.NOT_A_COMPARISON),
        ("assert (x := f(1) == 1)", Reason.NOT_A_COMPARISON),
        ("assert all([f(1) == 1])", Reason.NOT_A_COMPARISON),
        ("assert f(1) == 1 == 1", Reason.CHAINED_COMPARISON),
        ("assert 1 == f(1) == 1", Reason.CHAINED_COMPARISON),
        ("assert 'spec' in globals()", Reason.NOT_ENTRY_POINT),
        ("assert g(1) == 1", Reason.NOT_ENTRY_POINT),
        ("assert (lambda: 1)() == 1", Reason.NOT_ENTRY_POINT),
        ("assert x.f(1) == 1", Reason.NOT_ENTRY_POINT),
        ("assert len(f(1)) == 1", Reason.WRAPPED_CALL),
        ("assert f(1)[0] == 1", Reason.WRAPPED_CALL),
        ("assert f(1)(2) == 1", Reason.WRAPPED_CALL),
        ("assert f(1) + 1 == 2", Reason.WRAPPED_CALL),
        ("assert [f(1)] == [1]", Reason.WRAPPED_CALL),
        ("assert (f)(1) == f.x(1)", Reason.ATTRIBUTE),
        ("assert f(1) == f(1)", Reason.SELF_COMPARISON),
        ("assert f(1) == f(2)", Reason.SELF_COMPARISON),
        ("assert f(f(1)) == 1", Reason.ENTRY_POINT_AGAIN),
        ("assert f(1) == [f(1)]", Reason.ENTRY_POINT_AGAIN),
        ("assert f(f) == 1", Reason.ENTRY_POINT_AGAIN),
        ("assert f(sorted([1], key=f)) == 1", Reason.ENTRY_POINT_AGAIN),
        ("assert f([f for x in [1]]) == 1", Reason.ENTRY_POINT_AGAIN),
        ("assert f([f(1) for f in [1]]) == 1", Reason.FORBIDDEN_NAME),
        ("assert f(a=1, a=2) == 1", Reason.REPEATED_KEYWORD),
        ("assert f(dict(a=1, a=2)) == 1", Reason.REPEATED_KEYWORD),
        ("assert f(*[1]) == 1", Reason.STARRED),
        ("assert f(**{'a': 1}) == 1", Reason.STARRED),
        ("assert f([*[1]]) == 1", Reason.STARRED),
        ("assert f({**{}}) == 1", Reason.STARRED),
        ("assert f(max(*[1, 2])) == 1", Reason.STARRED),
        ("assert f(dict(**{})) == 1", Reason.STARRED),
        ("assert f(x) == 1", Reason.FORBIDDEN_NAME),
        ("assert f(__builtins__) == 1", Reason.FORBIDDEN_NAME),
        ("assert f(1) == print", Reason.FORBIDDEN_NAME),
        ("assert f(1) == sorted([1], key=len)", Reason.FORBIDDEN_NAME),
        ("assert f([x for x in [1]] + [x]) == 1", Reason.FORBIDDEN_NAME),
        ("assert f([len for len in [1]]) == 1", Reason.FORBIDDEN_NAME),
        ("assert f([1 for __debug__ in [1]]) == 1", Reason.FORBIDDEN_NAME),
        ("assert f(__import__('os')) == 1", Reason.FORBIDDEN_CALL),
        ("assert f(open('/etc/passwd')) == 1", Reason.FORBIDDEN_CALL),
        ("assert f(id(1)) == 1", Reason.FORBIDDEN_CALL),
        ("assert f(1) == hash('a')", Reason.FORBIDDEN_CALL),
        ("assert f((lambda: 1)()) == 1", Reason.LAMBDA),
        ("assert f([1]()) == 1", Reason.FORBIDDEN_CALL),
        ("assert f(1) == [].copy()", Reason.ATTRIBUTE),
        ("assert f('a'.upper) == 1", Reason.ATTRIBUTE),
        ("assert f(().__class__) == 1", Reason.ATTRIBUTE),
        ("assert f(1) == (lambda: 1)", Reason.LAMBDA),
        ("assert f(1) == (x for x in [1])", Reason.GENERATOR),
        ("assert f(1) == sum(x for x in y)", Reason.FORBIDDEN_NAME),
        ("assert f(x := 1) == 1", Reason.WALRUS),
        ("assert f(f'{f(1)}') == 1", Reason.ENTRY_POINT_AGAIN),
        ("assert f(f'{x}') == 1", Reason.FORBIDDEN_NAME),
        ("assert f([1 for [x] in [[1]]]) == 1", Reason.COMPREHENSION),
        ("assert f([1 for x[0] in [[1]]]) == 1", Reason.COMPREHENSION),
        ("assert f([1 for (x, *y) in [[1]]]) == 1", Reason.COMPREHENSION),
        ("assert f([1 for (x, (y, z)) in [[1]]]) == 1", Reason.COMPREHENSION),
        ("assert f([x async for x in [1]]) == 1", Reason.COMPREHENSION),
        ("assert f(...) == 1", Reason.OTHER_EXPRESSION),
        ("assert f((yield)) == 1", Reason.OTHER_EXPRESSION),
        ("assert f(await x) == 1", Reason.OTHER_EXPRESSION),
        ("assert f([1][...]) == 1", Reason.OTHER_EXPRESSION),
        ("assert f([1] is [1]) == 1", Reason.OPERATOR),
        ("assert f(0x" + "f" * 4000 + " + 1) == 1", Reason.TOO_LARGE),
    ],
)
def test_what_is_no_test_is_rejected_by_name(source: str, reason: Reason) -> None:
    test = read(source)
    assert test.reason == reason.value
    assert (test.call, test.stated, test.arguments, test.value) == (None, None, None, None)
    with pytest.raises(ValueError, match=reason.value):
        _ = test.expression


OTHER_OPERATORS = ["!=", "<", "<=", ">", ">=", "is", "is not", "in", "not in"]


@pytest.mark.parametrize("operator", OTHER_OPERATORS)
def test_another_operator_is_rejected_in_strict_and_read_as_equality_in_paper(operator: str) -> None:
    assert read(f"assert f(1) {operator} [0]").reason == "operator"
    assert read(f"assert [0] {operator} f(1)").reason == "operator"
    relaxed = released(f"assert f(1) {operator} [0]")
    assert (relaxed.reason, relaxed.call, relaxed.stated, relaxed.look) == ("", "f(1)", "[0]", "")


@pytest.mark.parametrize("source", ["assert f(1) is 1", "assert f(1) is not None", "assert None is f(1)"])
def test_identity_is_for_singletons_on_the_right(source: str) -> None:
    assert read(source).reason == "operator"


@pytest.mark.parametrize(
    ("source", "inner", "look"),
    [
        ("assert len(f([1])) == 2", "f([1])", f"len({RETURNED})"),
        ("assert sorted(f(a=1))[0] == 2", None, None),
        ("assert round(abs(f(1) - 0.5), 2) < 1", "f(1)", f"round(abs({RETURNED} - 0.5), 2)"),
        ("assert sum([x * f(3) for x in [1]]) == 3", "f(3)", f"sum([x * {RETURNED} for x in [1]])"),
    ],
)
def test_paper_fidelity_asks_for_the_call_and_looks_at_the_value(
    source: str, inner: str | None, look: str | None
) -> None:
    assert read(source).reason == "wrapped_call"
    if inner is None:  # `sorted(...)[0]` is no call: the released code does not take it either
        assert not isinstance(ast.parse(source).body[0].test.left, ast.Call)  # type: ignore[attr-defined]
        return
    test = released(source)
    assert (test.reason, test.inner, test.look) == ("", inner, look)
    again = read_case(TestCase(test.call or "", "0"), "f", "paper")
    assert (again.inner, again.look, again.arguments) == (inner, look, test.arguments)
    assert read_case(TestCase(test.call or "", "0"), "f").reason == "wrapped_call"


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("assert f(f(1)) == 1", "entry_point_again"),
        ("assert max(f(1), f(2)) == 1", "entry_point_again"),
        ("assert len([1]) == 1", "not_entry_point"),
        ("assert print(f(1)) == None", "forbidden_call"),
        ("assert f(1).strip() == ''", "attribute"),
        ("assert len(f(x)) == 1", "forbidden_name"),
        ("assert sum([f(x) for x in [1]]) == 1", "forbidden_name"),
        (f"assert max(f(1), {RETURNED}) == 1", "forbidden_name"),
        ("assert f(a=1, **{'a': 2}) == 1", "starred"),
        ("assert (lambda: f(1))() == 1", "lambda"),
        ("assert f(lambda: 1) == 1", "lambda"),
    ],
)
def test_what_paper_fidelity_cannot_ask_for_as_data_is_rejected_there_too(source: str, reason: str) -> None:
    assert released(source).reason == reason


def test_paper_fidelity_takes_starred_arguments() -> None:
    test = released("assert f(0, *[1, 2], **{'k': 3}) == 4")
    assert (test.reason, data_of(test)) == ("", ((0, 1, 2), {"k": 3}, 4))


def test_in_paper_fidelity_a_stated_value_that_is_not_pure_leaves_the_call() -> None:
    test = released("assert f(1) == missing")
    assert (test.reason, test.call, test.stated, test.value) == ("", "f(1)", None, b"")


def test_the_encoded_data_is_there_exactly_where_no_evaluation_is_needed() -> None:
    both = read("assert f(1, k=(2,)) == {3}")
    assert (both.arguments, both.value) == (b'[[1],[["k",{"t":[2]}]]]', b'{"s":[3]}')
    no_value = read("assert f(1) == 1 + 1")
    assert (no_value.arguments, no_value.value) == (b"[[1],[]]", None)
    no_arguments = read("assert f(1, 1 + 1) is None")
    assert (no_arguments.arguments, no_arguments.value) == (None, b"null")
    no_named_arguments = read("assert f(1, k=1 + 1) is None")
    assert no_named_arguments.arguments is None


def test_the_expression_gives_arguments_and_value() -> None:
    assert data_of(read("assert f() == 1 + 1")) == ((), {}, 2)
    assert data_of(read("assert f([1] * 2) == 0")) == (([1, 1],), {}, 0)
    assert data_of(read("assert f(1 < 2, (1, 2), k=3 if 0 else 4) == (1 == 2)")) == ((True, (1, 2)), {"k": 4}, False)
    assert data_of(read("assert f([a for a in 'ab'], **{}, )== 0".replace(", **{}, ", ""))) == ((["a", "b"],), {}, 0)
    huge = read("assert f(0x" + "f" * 5000 + ", 1 + 1) == 0")
    assert data_of(huge) == ((16**5000 - 1, 2), {}, 0)


def test_repeated_keys_are_evaluated_and_not_encoded() -> None:
    test = read("assert f({1: 'a', True: 'b'}) == {1, 1.0}")
    assert (test.reason, test.arguments, test.value) == ("", None, None)
    assert data_of(test) == (({1: "b"},), {}, {1})


@pytest.mark.parametrize("name", ["ｆ", "𝐟", "𝑓"])
def test_look_alike_letters_are_one_name(name: str) -> None:
    assert unicodedata.normalize("NFKC", name) == "f"
    assert read(f"assert {name}(1) == 2").call == "f(1)"
    assert read(f"assert {name}({name}(1)) == 2").reason == "entry_point_again"
    assert canonical_name(name) == "f"
    assert read_case(TestCase("f(1)", "2"), name).call == "f(1)"


def test_every_listed_builtin_may_be_called() -> None:
    assert len(BUILTINS) == 24
    for name in BUILTINS:
        assert read(f"assert f({name}([1])) == 0").reason == "", name


def test_nesting_is_bounded_for_literals_and_for_expressions() -> None:
    deep = "[" * (MAX_DEPTH - 1) + "0" + "]" * (MAX_DEPTH - 1)
    too_deep = "[" * (MAX_DEPTH + 1) + "0" + "]" * (MAX_DEPTH + 1)
    assert read(f"assert f({deep}) == {deep}").reason == ""
    assert read(f"assert f({too_deep}) == 0").reason == "too_deep"
    assert read(f"assert f(0) == {too_deep}").reason == "too_deep"
    assert read("assert f(" + "1 + " * (MAX_DEPTH - 1) + "1) == 0").reason == ""
    assert read("assert f(" + "1 + " * (MAX_DEPTH + 1) + "1) == 0").reason == "too_deep"


def test_a_shown_source_is_cut() -> None:
    test = read(f"assert f('{'a' * 5000}') == 0")
    assert len(test.source) == 2000
    assert test.call is not None
    assert len(test.call) == 5005
    assert MAX_SOURCE == 65536


@pytest.mark.parametrize(
    ("call", "expected", "reason"),
    [
        ("f(1)", "2", ""),
        ("f([1] * 2)", "sorted([2, 1])", ""),
        (" f(1)", "2", "syntax"),
        ("f(1", "2", "syntax"),
        ("f(1)) == (2", "2", "syntax"),
        ("f(1); f(2)", "2", "syntax"),
        ("", "2", "syntax"),
        ("f(1)", "", "syntax"),
        ("f(1)", "x = 2", "syntax"),
        ("f(1)", "'\ud800'", "syntax"),
        ("f(1)", "\0", "syntax"),
        ("f(1)", "<object at 0x7f>", "syntax"),
        ("f(1)", "defaultdict(g)", "forbidden_name"),
        ("f(1)", "f(1)", "entry_point_again"),
        ("f(1)[0]", "1", "wrapped_call"),
        ("g(1)", "1", "not_entry_point"),
        ("f", "1", "wrapped_call"),
        ("f(1)", "[" * 500 + "]" * 500, "too_deep"),
        ("f(1)", "-" * 500 + "1", "too_deep"),
        ("f(1)", "'" + "a" * (1 << 20) + "'", "too_long"),
    ],
)
def test_a_stored_case_is_read_by_the_same_grammar(call: str, expected: str, reason: str) -> None:
    assert read_case(TestCase(call, expected), "f").reason == reason


def test_a_stored_case_may_be_as_deep_and_as_long_as_a_returned_value() -> None:
    deep = "[" * 100 + "]" * 100
    assert read_case(TestCase("f(1)", deep), "f").reason == ""
    assert read_case(TestCase("f(1)", str(list(range(100_000)))), "f").reason == ""


constants = st.one_of(
    st.integers(),
    st.floats(),
    st.text(st.characters(), max_size=4),
    st.text("'\"\\\n", max_size=4),
    st.binary(max_size=3),
    st.sampled_from([None, True, False, 1 << 80]),
)
atoms = constants.map(lambda value: repr(value) if value == value and abs_is_finite(value) else "float('nan')")


def abs_is_finite(value: object) -> bool:
    return not isinstance(value, float) or abs(value) != float("inf")


expressions = st.recursive(
    atoms,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda parts: f"[{', '.join(parts)}]"),
        st.lists(inner, max_size=3).map(lambda parts: f"({''.join(part + ', ' for part in parts)})"),
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: f"{{{', '.join(parts)}}}"),
        st.lists(st.tuples(inner, inner), max_size=2).map(lambda kv: "{" + ", ".join(f"{k}: {v}" for k, v in kv) + "}"),
        st.tuples(inner, st.sampled_from(["+", "-", "**", "%", "&", "<", "==", "in", "and", "or"]), inner).map(
            "({0[0]}) {0[1]} ({0[2]})".format
        ),
        st.tuples(st.sampled_from(["-", "+", "~", "not "]), inner).map("({0[0]}({0[1]}))".format),
        inner.map("({})".format),
        st.tuples(inner, inner, inner).map(lambda parts: "({} if {} else {})".format(*parts)),
        st.tuples(inner, inner).map(lambda parts: "({})[{}:]".format(*parts)),
        inner.map("[x for x in {} if x]".format),
        inner.map("{{k: v for k, v in {}}}".format),
        inner.map("sorted({}, reverse=True)".format),
    ),
    max_leaves=6,
)


@settings(deadline=None)
@given(st.lists(expressions, max_size=2), st.lists(expressions, max_size=2), expressions)
@example(["-1 ** 2"], ["(1, 2)"], "not 1")
def test_what_is_accepted_reads_back_to_itself(positional: list[str], named: list[str], stated: str) -> None:
    arguments = [*positional, *[f"k{i}={part}" for i, part in enumerate(named)]]
    test = read(f"assert f({', '.join(arguments)}) == ({stated})")
    assert test.reason == ""
    assert test.call is not None
    assert test.stated is not None
    for again in (
        read(f"assert {test.call} == {test.stated}"),
        read(f"assert {test.stated} == {test.call}"),
        read_case(TestCase(test.call, test.stated), "f"),
    ):
        assert (again.reason, again.call, again.stated) == ("", test.call, test.stated)
        assert (again.arguments, again.value) == (test.arguments, test.value)
    for encoded in (test.arguments, test.value):
        assert encoded is None or json.dumps(json.loads(encoded), separators=(",", ":")).encode() == encoded
    ast.parse(test.expression, mode="eval")


FORBIDDEN = [
    "f",
    "f(1)",
    "x",
    "a.b",
    "open('x')",
    "lambda: x",
    "(y := 1)",
    "[*[1]]",
    "(i for i in x)",
    "f'{x}'",
    "...",
]


@settings(deadline=None)
@given(expressions, st.sampled_from(FORBIDDEN))
def test_one_impurity_anywhere_rejects_the_test(expression: str, impurity: str) -> None:
    for hidden in (f"[{impurity}, {expression}]", f"({expression}, {impurity})", f"{{1: {impurity}}}[{expression}]"):
        assert read(f"assert f({hidden}) == 1").reason
        assert released(f"assert f({hidden}) == 1").reason
        assert released(f"assert len([f(1), {hidden}]) == 1").reason
        assert released(f"assert f({expression}) == [{hidden}]").stated is None
