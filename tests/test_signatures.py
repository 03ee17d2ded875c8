"""Calls that differ only in how they spell their arguments, by place or by name."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, strategies as st

from codea1_env.reading.signatures import parameters, placed


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("def f(a, b=1, *c, d, **e):\n    return a\n", ("a", "b")),
        ("def f(a, /, b):\n    return a\n", ("", "b")),
        ("import math\ndef g(f):\n    return f\ndef f(a):\n    return f(a)\n", ("a",)),
        ("def f():\n    return 1\n", ()),
        ("async def f(a, b=1): pass\n", ("a", "b")),
    ],
)
def test_a_plain_functions_parameters_are_known(source: str, names: tuple[str, ...]) -> None:
    assert parameters(source, "f") == names


@pytest.mark.parametrize(
    "source",
    [
        "def f(a): pass\ndef f(b): pass\n",
        "@g\ndef f(a): pass\n",
        "class f:\n    def __init__(self, a): pass\n",
        "f = lambda a: a\n",
        "def f(a): pass\nf = g(f)\n",
        "def f(a): pass\ndel f\n",
        "def f(a): pass\nfrom m import g as f\n",
        "def f(a): pass\nfrom m import *\n",
        "import f.g\ndef f(a): pass\n",
        "def f(a): pass\nfor f in g: pass\n",
        "def f(a): pass\nif x:\n    def f(b): pass\n",
        "def f(a): pass\ndef g():\n    global f\n    f = 1\n",
        "def f(a): pass\ntry:\n    pass\nexcept E as f:\n    pass\n",
        "def f(a): pass\nmatch x:\n    case {**f}:\n        pass\n",
        "def f(a): pass\nmatch x:\n    case [*f]:\n        pass\n",
        "def f(a",
        "",
    ],
)
def test_what_may_be_another_function_when_it_is_called_is_left_alone(source: str) -> None:
    assert parameters(source, "f") == ()


NAMES = st.sampled_from("abcde")


@given(
    st.lists(st.integers(0, 3), max_size=4),
    st.dictionaries(NAMES, st.integers(0, 3), max_size=4),
    st.lists(NAMES, max_size=4, unique=True),
    st.booleans(),
)
def test_a_call_reaches_its_function_as_it_did_before(
    positional: list[int], named: dict[str, int], names: list[str], has_rest: bool
) -> None:
    """By Python's own rule of binding."""
    rest = "*args, " if has_rest else ""
    namespace: dict[str, object] = {}
    source = f"def f({''.join(f'{name}=None, ' for name in names)}{rest}**others):\n    return locals()\n"
    exec(source, namespace)
    moved = json.loads(placed(json.dumps([positional, [*named.items()]]).encode(), parameters(source, "f")))

    def bound(arguments: object) -> object:
        try:
            return namespace["f"](*arguments[0], **dict(arguments[1]))  # type: ignore[operator,index]
        except TypeError:
            return TypeError

    assert bound(moved) == bound([positional, named.items()])


@pytest.mark.parametrize(
    ("call", "names", "same"),
    [
        (b'[[],[["a",1],["b",2]]]', ("a", "b"), b"[[1,2],[]]"),
        (b'[[],[["b",2],["a",1]]]', ("a", "b"), b"[[1,2],[]]"),
        (b'[[1],[["b",2]]]', ("a", "b"), b"[[1,2],[]]"),
        (b'[[],[["b",2]]]', ("a", "b"), b'[[],[["b",2]]]'),
        (b'[[1],[["a",2]]]', ("a", "b"), b'[[1],[["a",2]]]'),
        (b'[[],[["a",1],["z",2]]]', ("a", "b"), b'[[1],[["z",2]]]'),
        (b'[[1],[["b",2]]]', (), b'[[1],[["b",2]]]'),
        (b'[[],[["b",2]]]', ("", "b"), b'[[],[["b",2]]]'),
    ],
)
def test_named_arguments_take_their_places_as_far_as_none_is_empty(
    call: bytes, names: tuple[str, ...], same: bytes
) -> None:
    assert placed(call, names) == same
