"""A suite's names beside a plain interpreter: what a read test calls the program with is what Python would."""

from __future__ import annotations

import contextlib
import copy
import heapq
import random
from collections.abc import Iterator
from typing import Any

import pytest

from codea1_env.reading.grammar import Fidelity
from codea1_env.reading.responses import read_suite

NAMES = "abc"
DISPLAYS = ("[1]", "[[1], [2]]", "[3, 1]", "{{1: [2]}}", "[[]]", "5")
MADE = (
    "{x}", "{x}[0]", "[{x}, {y}]", "sorted({x})", "list({x})", "({x} or {y})", "{{1: {x}}}", "copy.deepcopy({x})",
    "{x}.copy()", "[{x}] * 2", "{x}[:]", "{x} + {x}", "{x} if {x} else [0]", "[each for each in {x}]", "tuple({x})",
    "max({x}, {y})", "min({x}, key=len)", "dict(k={x})['k']", "next(iter({x}))", "sum([{x}], [])", "{{**{x}}}",
    "[*{x}]", "{x}.pop()", "{x}.setdefault(1, [])", "f({x})",
)  # fmt: skip
CHANGES = (
    "{x}.append(9)", "{x}[0] = 7", "{x}[0].append(8)", "{x} += [4]", "{x}[0] += [4]", "del {x}[0]", "{x}.sort()",
    "heapq.heappush({x}, 5)", "grow({x})", "grow([{x}])", "{x}, q = {y}, 1", "for {x} in {y}: pass",
    "for each in {x}: each.append(6)", "{x}.get(1, []).append(3)", "if {x}: {x}.append(2)", "{x}.extend({y})",
    "({x} and {x}[0]).append(2)", "{x}.__setitem__(0, 1)", "f({x})", "print({x})",
)  # fmt: skip


def grow(value: Any) -> None:
    (value[0] if value and isinstance(value[0], list) else value).append(99)


def written(chance: random.Random) -> tuple[list[str], list[str]]:
    """A suite that runs, and what each of its asserts calls the program with."""
    space: dict[str, Any] = {"f": lambda _: 1, "grow": grow, "copy": copy, "heapq": heapq, "print": lambda _: None}
    lines, called = [], []
    for _ in range(chance.randint(3, 9)):
        known = [name for name in NAMES if name in space]
        form = chance.choice(DISPLAYS if not known or chance.random() < 0.2 else (*MADE, *CHANGES))
        line = form.format(x=chance.choice(known or [""]), y=chance.choice(known or [""]))
        if form in DISPLAYS or form in MADE:
            line = f"{chance.choice(NAMES)} = {line}"
        try:
            exec(line, space)
        except Exception:  # it may have changed something before: the suite ends here
            break
        lines.append(line)
        asked = chance.choice([name for name in NAMES if name in space])
        if chance.random() < 0.6:
            lines.append(f"assert f({asked}) == 1")
            called.append(repr(space[asked]))
    return lines, called


def readings(lines: list[str], called: list[str], fidelity: Fidelity) -> Iterator[tuple[str, str]]:
    """For each test that is read: what it calls the program with, and what Python did."""
    tests = read_suite("\n".join(lines), "f", fidelity=fidelity).tests
    assert len(tests) == len(called)
    for test, given in zip(tests, called, strict=True):
        with contextlib.suppress(TypeError, IndexError, KeyError, AttributeError):
            if not test.reason:
                yield repr(eval(str(test.call), {"f": lambda value: value})), given


@pytest.mark.parametrize("fidelity", ["strict", "wide"])
def test_a_test_has_the_arguments_that_python_would_give(fidelity: Fidelity) -> None:
    found = 0
    for seed in range(3000):
        lines, called = written(random.Random(seed))
        for read, given in readings(lines, called, fidelity):
            found += 1
            assert read == given, (seed, lines)
    assert found > 3000, "most are read, and not refused"
