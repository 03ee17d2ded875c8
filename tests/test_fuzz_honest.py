"""Small honest functions over values made by chance: what one returns is stated, and the verdict on another is Python's
own `==`. The functions are chains of steps; they run in this process, which is plain Python, and in the sandbox.

`make fuzz` tries many more. Floats are sums of halves, so that nothing differs by rounding.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from codea1_env.arena.arena import Arena
from codea1_env.arena.match import Match
from codea1_env.problems.problem import Problem
from codea1_env.rewards.code_a1 import RewardConfig
from codea1_env.rewards.duel import Status, Verdict
from codea1_env.sandbox import LocalSandbox

IMPORTS = (
    "import re\nfrom collections import Counter, OrderedDict, defaultdict, deque\nfrom fractions import Fraction\n"
)
SMALL = st.integers(-9, 9)
TEXT = st.text("abAB 1é\n'\"\\", max_size=5)
FLAT = st.one_of(SMALL, st.integers(-(10**30), 10**30), SMALL.map(lambda n: n / 2), st.booleans(), st.none(), TEXT,
                 st.binary(max_size=3))  # fmt: skip
VALUES = st.recursive(
    FLAT,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.lists(inner, max_size=3).map(tuple), st.dictionaries(TEXT, inner, max_size=2)
    ),
    max_leaves=6,
)
ROWS = st.lists(SMALL, max_size=6)
"""What the functions are called with: a list of numbers."""

FROM_ROW = (
    "sorted(x)", "x[::-1]", "x[1:] + x[:1]", "[v * {k} for v in x]", "[v for v in x if v % 3 != {k} % 3]", "tuple(x)",
    "set(x)", "frozenset(x)", "dict(enumerate(x))", "{{v: x.count(v) for v in x}}", "sum(x)", "len(x)", "sum(x) / 2",
    "max(x, default=None)", "sum(x) > {k}", "[v / 2 for v in x]", "list(map(str, x))", "' '.join(map(str, x))",
    "bytes(v & 255 for v in x)", "[x, x]", "(x, {k})", "[[v] for v in x]", "list(zip(x, x[1:]))", "x and x[0]",
    "Counter(x)", "OrderedDict((v, {k}) for v in x)", "defaultdict(int, {{v: {k} for v in x}})", "sum(x) * 10 ** 20",
    "float(sum(x))", "complex(sum(x), {k})", "{{'n': len(x), 'rows': sorted(set(x))}}", "None", "{constant}",
    "{{str(v) for v in x}}", "re.findall(r'-?\\d', str(x))", "[True, False][len(x) % 2]", "[*x, {constant}]",
)  # fmt: skip
MORE = ("deque(x)", "Fraction(sum(x), 2)", "range(len(x))", "dict.fromkeys(x).keys()", "bytearray(v & 255 for v in x)")
"""Whose values need more than a literal to be stated."""


class Function(NamedTuple):
    """A function, and the names that it needs."""

    source: str
    is_literal: bool
    """Whether its values are written as literals."""

    def __call__(self, row: list[int]) -> Any:
        space: dict[str, Any] = {}
        exec(IMPORTS + self.source, space)
        return space["solve"](row)


@st.composite
def functions(draw: st.DrawFn) -> Function:
    steps = draw(st.lists(st.sampled_from([step for step in FROM_ROW if step.startswith(("x", "[v", "sorted"))]),
                          max_size=2))  # fmt: skip
    last = draw(st.sampled_from((*FROM_ROW, *MORE)))
    lines = [step for step in steps if not step.startswith(("x and", "[v /"))]  # rows stay rows of whole numbers
    numbers = [draw(SMALL) for _ in range(len(lines) + 1)]
    written = [step.format(k=k, constant=0) for step, k in zip(lines, numbers, strict=False)]
    answer = last.format(k=numbers[-1], constant=repr(draw(VALUES)))
    body = "".join(f"    x = {step}\n" for step in written)
    source = f"def solve(x):\n{body}    return {answer}\n"
    is_literal = last not in MORE and not last.startswith(("Counter", "OrderedDict", "defaultdict"))
    return Function(source, is_literal)


@pytest.fixture(scope="module")
def arena() -> Iterator[Arena]:
    with Arena(LocalSandbox(), RewardConfig(fidelity="wide"), on_failure="raise") as opened:
        yield opened


CASES = st.lists(st.tuples(functions(), functions(), ROWS), min_size=3, max_size=3)


@settings(
    deadline=None,
    max_examples=max(20, settings.default.max_examples // 5),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(CASES)
def test_a_verdict_is_pythons_own_equality(arena: Arena, cases: list[tuple[Function, Function, list[int]]]) -> None:
    matches, right = [], []
    for number, (one, other, row) in enumerate(cases):
        value = one(list(row))
        problem = Problem(f"p{number}", "?", "solve", imports=IMPORTS, reference_solution=one.source)
        matches.append(
            Match(problem, (one.source, other.source), ((f"{IMPORTS}assert solve({row}) == {value!r}",),) * 2)
        )
        right.append((True, other(list(row)) == value))
    for (one, _, _), score, equal in zip(cases, arena.play(matches, update_book=False), right, strict=True):
        for (suite,), expected in zip(score.suites, equal, strict=True):
            (test,) = suite.duel.tests
            if test.status is not Status.KEPT:
                assert not one.is_literal, test
                continue
            assert (test.verdict is Verdict.PASS) == expected, (test, suite.duel.program)
