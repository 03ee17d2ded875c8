"""Responses near what is accepted: the corpus of asserts and programs, edited. What is accepted is pure data still."""

from __future__ import annotations

import ast
import re

from attacks.hostile_asserts import HOSTILE_ASSERTS
from attacks.programs import HOSTILE_PROGRAMS, ODD_PROGRAMS
from edits import edited
from hypothesis import given, settings, strategies as st

from codea1_env.judging.schedule import with_imports
from codea1_env.problems.problem import Problem
from codea1_env.reading.grammar import RETURNED
from codea1_env.reading.pure_expressions import BUILTINS, LOOKED, SINGLE, Reason
from codea1_env.reading.responses import read_program, read_suite
from codea1_env.sandbox.inside.looks import alone_because
from codea1_env.sandbox.inside.scope import ATTRIBUTE, CODE_BUILTINS, CODE_NAMES

_SHORT = 500
_WORDS = (
    '( ) [ ] { } , = == : ; \' " """ \\ # ` * ** - . x solve solve(1) for if else in lambda := f\'{ assert await yield '
    "async"
)
PIECES = st.sampled_from(
    [*"\n \0\ud800\ufeff\r\f\t\u2028é", "```\n", "1" * 30, " for a in ", "𝐬olve", "__import__('os')", *_WORDS.split()]
)
GOOD = [
    "assert solve(1) == 1",
    "assert solve([1, (2, {3: 'a'})], x=-1.5) == {4}",
    "x = [i for i in range(3)]\nassert solve(x) == sorted(x)",
    "assert solve('a' * 3) is None",
    "assert {'k': 1} == solve(b'\\x00', 1j)",
]
ASSERTS = st.sampled_from([*GOOD, *(each.source for each in HOSTILE_ASSERTS if len(each.source) < _SHORT)])
SUITES = edited(st.lists(ASSERTS, min_size=1, max_size=4).map("\n".join), PIECES)
PROGRAMS = [*ODD_PROGRAMS.values(), *(each.source for each in HOSTILE_PROGRAMS if len(each.source) < _SHORT)]
REJECTING = {reason.value for reason in Reason}
PROBLEM = Problem("p", "?", "solve", imports="import math", reference_solution="def solve(x): return x")


@settings(deadline=None)
@given(SUITES, st.sampled_from(["strict", "wide", "paper"]), st.booleans())
def test_an_accepted_test_is_one_call_of_the_entry_point_and_pure_expressions(
    response: str, fidelity: str, is_fenced: bool
) -> None:
    suite = read_suite(f"```python\n{response}\n```" if is_fenced else response, "solve", fidelity=fidelity)  # type: ignore[arg-type]
    for test in suite.tests:
        if test.reason:
            assert test.reason in REJECTING
            assert test.call is None
        else:
            assert re.match(r"solve\(", test.inner or test.call or "")
            assert_pure(test.expression, stars=fidelity == "paper")
            if test.look and fidelity == "paper":
                assert_pure(f"[{test.look} for {RETURNED} in []]")
            elif test.look:
                assert fidelity == "wide"
                assert_looking(test.look)


def assert_pure(expression: str, *, stars: bool = False) -> None:
    """Another check than the grammar's own: nothing but data, operators and calls of harmless builtins by name."""
    tree = ast.parse(expression, mode="eval")
    if stars:
        assert isinstance(tree.body, ast.Tuple)
        assert isinstance(tree.body.elts[0], ast.Tuple)
        elements = tree.body.elts[0].elts
        elements[:] = [item.value if isinstance(item, ast.Starred) else item for item in elements]
    bound = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    is_whole = not stars and isinstance(tree.body, ast.Tuple)
    stated = {id(node) for node in ast.walk(tree.body.elts[-1])} if is_whole else set()  # type: ignore[attr-defined]
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        assert not isinstance(
            node,
            ast.Attribute | ast.Lambda | ast.GeneratorExp | ast.NamedExpr | ast.JoinedStr | ast.Starred | ast.Await
            | ast.Yield | ast.YieldFrom,
        )  # fmt: skip
        if isinstance(node, ast.Call):
            assert isinstance(node.func, ast.Name)
            if node.func.id == "__code__":  # of an argument that is code, its text
                (given,) = node.args
                name, text = (
                    given.elts if isinstance(given, ast.List) else (None, given)
                )  # or a question's names and text
                assert name is None or (
                    isinstance(name, ast.Constant) and all(map(str.isidentifier, name.value.split()))
                )
                assert isinstance(text, ast.Constant)
                assert "__" not in ast.unparse(ast.parse(text.value, mode="eval"))
                continue
            assert node.func.id in BUILTINS
        elif isinstance(node, ast.Name) and id(node) not in called:
            assert node.id in bound or (node.id in SINGLE and id(node) in stated)


def assert_looking(look: str) -> None:
    """Likewise: an expression that binds no name outside itself and meets no name but data's, builtins' and packages'.
    A sandbox where no program runs evaluates it."""
    nodes = list(ast.walk(ast.parse(look, mode="eval")))
    bound = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    bound |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    packages = {name.partition(".")[0] for name in LOOKED}
    for node in nodes:
        assert not isinstance(node, ast.NamedExpr | ast.Await | ast.Yield | ast.YieldFrom)
        if isinstance(node, ast.Attribute):
            assert not node.attr.startswith("_")
        elif isinstance(node, ast.Name):
            assert node.id in {*bound, *packages, *CODE_BUILTINS, *CODE_NAMES, RETURNED, ATTRIBUTE}


@settings(deadline=None)
@given(edited(st.sampled_from(PROGRAMS), PIECES), st.booleans())
def test_any_program_is_read_looked_at_and_given_its_imports(response: str, is_fenced: bool) -> None:
    source = read_program(f"```python\n{response}\n```" if is_fenced else response, "solve").source
    assert isinstance(alone_because(source), str)
    whole = with_imports(PROBLEM, source)
    assert whole.replace("import math\n", "", 1) == source or whole == source + "\nimport math"
