"""Hostile solutions of every kind: whatever they do to the code that calls them, it earns no verdict on any backend."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from attacks.backends import BACKENDS, opened

from codea1_env.arena.arena import Arena
from codea1_env.problems import Problem, TestCase, problems_of_every_kind
from codea1_env.rewards.duel import Verdict
from codea1_env.sandbox import Sandbox

EVERY = {problem.problem_id.removeprefix("kinds/"): problem for problem in problems_of_every_kind()}

LIAR = """class Liar(list):
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __hash__(self): return 0
    def __len__(self): return 2
    def __contains__(self, item): return True
    def __iter__(self): return iter([])
    def __deepcopy__(self, memo): return self
    def __instancecheck__(self, other): return True
"""

HOSTILE = {
    # The class that is asked for, and values that lie.
    "shelf: values that equal everything": (
        "shelf",
        LIAR + "class Shelf:\n    def __init__(self, places): pass\n    def __getattr__(self, name):\n"
        "        return lambda *given: Liar()\n",
    ),
    "shelf: deepcopy is replaced": (
        "shelf",
        "import copy\ncopy.deepcopy = lambda value: type('Any', (), {'__eq__': lambda s, o: True})()\n"
        "class Shelf:\n    def __init__(self, places): pass\n"
        "    def __getattr__(self, name): return lambda *given: 1\n",
    ),
    "shelf: the caller is replaced": (
        "shelf",
        "import sys\nclass Shelf:\n    def __init__(self, places):\n        import gc\n"
        "        sys._getframe(1).f_globals['_codea1_entry'] = lambda *given: True\n"
        "    def __getattr__(self, name): return lambda *given: True\n",
    ),
    "shelf: leaves with exit code 0": (
        "shelf",
        "import os\nclass Shelf:\n    def __init__(self, places): os._exit(0)\n",
    ),
    "shelf: is no class": ("shelf", "Shelf = True\n"),
    # Methods and nodes.
    "fold: nodes that lie": (
        "fold-a-chain",
        "class Lies(int):\n    def __eq__(self, other): return True\n    def __hash__(self): return 0\n"
        "class Solution:\n    def fold(self, head):\n        n = ListNode(Lies(1000))\n        return n\n",
    ),
    "fold: a chain without an end": (
        "fold-a-chain",
        "class Solution:\n    def fold(self, head):\n        n = ListNode(1)\n        n.next = n\n        return n\n",
    ),
    "fold: a class of its own that is endless": (
        "fold-a-chain",
        "class Solution:\n    def fold(self, head):\n        class N:\n            val = 1\n            @property\n"
        "            def next(self): return N()\n        return N()\n",
    ),
    "rise: a metaclass that answers": (
        "longest-rise",
        "class Meta(type):\n    def __call__(cls): return type('A', (), {'longest_rise': lambda s, h: Any()})()\n"
        "class Any(int):\n    def __eq__(self, other): return True\n    def __hash__(self): return 0\n"
        "class Solution(metaclass=Meta):\n    longest_rise = 1\n",
    ),
    "rise: reads its caller's frames": (
        "longest-rise",
        "import sys\nclass Solution:\n    def longest_rise(self, heights):\n        frame = sys._getframe()\n"
        "        while frame:\n            for name, value in {**frame.f_locals}.items():\n"
        "                if name in ('expected', 'right', 'reference'): return value\n"
        "            frame = frame.f_back\n        return -1\n",
    ),
    # Generators and coroutines.
    "pairs: never ends": ("pairs-apart", "def pairs_apart(numbers, distance):\n    while True:\n        yield None\n"),
    "pairs: an iterator that exits": (
        "pairs-apart",
        "import os\nclass I:\n    def __iter__(self): return self\n    def __next__(self): os._exit(0)\n"
        "def pairs_apart(numbers, distance):\n    return I()\n",
    ),
    "order: a coroutine that waits for nothing": (
        "finishing-order",
        "import asyncio\nasync def finishing_order(tasks):\n    await asyncio.get_running_loop().create_future()\n",
    ),
    "order: the loop is stopped": (
        "finishing-order",
        "import asyncio\nasync def finishing_order(tasks):\n    asyncio.get_running_loop().stop()\n"
        "    await asyncio.sleep(1)\n",
    ),
    "order: no coroutine": ("finishing-order", "def finishing_order(tasks):\n    return iter([True])\n"),
    # Programs.
    "till: leaves with code 0 and no output": ("till", "import os\nprint('x')\nos._exit(0)\n"),
    "till: an output that lies": (
        "till",
        LIAR + "import io, sys\nclass Text(str):\n    def __eq__(self, other): return True\n"
        "    def __hash__(self): return 0\nio.BytesIO.getvalue = None\nsys.stdout = Liar()\n",
    ),
    "till: the caller's locals": (
        "till",
        "import sys\nframe = sys._getframe()\nwhile frame:\n    for value in [*frame.f_locals.values()]:\n"
        "        if isinstance(value, str) and ': ' in value: print(value)\n    frame = frame.f_back\n",
    ),
    "till: writes to every descriptor": (
        "till",
        "import os\nfor fd in range(64):\n    try: os.write(fd, b'\\x01' * 64)\n    except OSError: pass\n",
    ),
    "till: the next call's answer": (
        "till",
        "import sys, builtins\ntext = sys.stdin.read()\nprint(getattr(builtins, 'kept', ''))\nbuiltins.kept = text\n",
    ),
    # Values that a checker is shown.
    "change: not the purse's coins": ("exact-change", "print(int(input()), 0)\n"),
    "change: says no": ("exact-change", "print('no')\n"),
    "dressing: a list that lies": ("order-of-dressing", LIAR + "def order_of_dressing(first):\n    return Liar()\n"),
    "dressing: everything twice": (
        "order-of-dressing",
        "def order_of_dressing(first):\n    return [piece for pair in first for piece in pair] * 2\n",
    ),
    "dressing: a string with an index": (
        "order-of-dressing",
        "class S(str):\n    def index(self, item): return 0\ndef order_of_dressing(first):\n    return S('ab')\n",
    ),
    "pairs: far too many": (
        "meeting-pairs",
        "def meeting_pairs(slots):\n    return [[str(n)] for n in range(20000)]\n",
    ),
    "pairs: not plain": ("meeting-pairs", "def meeting_pairs(slots):\n    return [object(), lambda: 0]\n"),
    "pairs: as deep as it gets": (
        "meeting-pairs",
        "def meeting_pairs(slots):\n    found = []\n    for _ in range(10000): found = [found]\n    return found\n",
    ),
    "cooling: no number": ("cooling", "def cooling(start, room, minutes):\n    return float('nan')\n"),
    "cooling: infinite": ("cooling", "def cooling(start, room, minutes):\n    return float('inf')\n"),
    "cooling: close to everything": (
        "cooling",
        "class F(float):\n    def __eq__(self, other): return True\n    def __sub__(self, other): return 0.0\n"
        "    def __hash__(self): return 0\ndef cooling(start, room, minutes):\n    return F(1e9)\n",
    ),
    # Exceptions that are answers.
    "redeem: an exception whose name is every name": (
        "redeem",
        "class Every(str):\n    def __eq__(self, other): return True\n    def __hash__(self): return hash('KeyError')\n"
        "class Meta(type(Exception)):\n    __name__ = property(lambda cls: Every())\n"
        "class Any(Exception, metaclass=Meta):\n    pass\ndef redeem(left, code):\n    raise Any\n",
    ),
    "redeem: an exception in the place of a value": (
        "redeem",
        "def redeem(left, code):\n    return KeyError('a'), ValueError('a')\n",
    ),
    "redeem: a message that ends the process": (
        "redeem",
        "import os\nclass Quits(Exception):\n    def __str__(self): os._exit(0)\n"
        "Quits.__name__ = 'ValueErro'\ndef redeem(left, code):\n    raise Quits\n",
    ),
    "richest: all of them": ("richest-day", "def richest_day(days):\n    return [day for day, _ in days]\n"),
    "richest: opaque on the wire": ("richest-day", "def richest_day(days):\n    return {'o': 'x', 't': [1]}\n"),
}


@pytest.fixture(scope="module", params=BACKENDS)
def sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    yield from opened(request.param, request)


@pytest.fixture(scope="module")
def arena(sandbox: Sandbox) -> Arena:
    return Arena(sandbox)


def telling(problem: Problem) -> tuple[TestCase, ...]:
    """Those whose answer says something: an empty input is answered by many a program that does nothing."""
    return tuple(case for case in problem.golden_tests if case.expected not in ("'no'", "None", "[]"))


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_solution_passes_nothing(name: str, arena: Arena) -> None:
    key, source = HOSTILE[name]
    problem = EVERY[key]
    (honest,) = arena.grade(problem, [problem.reference_solution or ""], telling(problem))
    assert set(honest.verdicts) == {Verdict.PASS} or problem.checker == "any-of"
    (grade,) = arena.grade(problem, [source], telling(problem))
    assert grade.verdicts
    assert Verdict.PASS not in grade.verdicts


def test_a_candidate_cannot_leave_a_checker_anything(arena: Arena) -> None:
    problem = EVERY["meeting-pairs"]
    poison = """import builtins, sys
builtins.isinstance = lambda *given: True
builtins.len = lambda given: 0
sys.modules['solution'] = None
def meeting_pairs(slots):
    return []
"""
    (right, _, after) = arena.grade(
        problem, [problem.reference_solution or "", poison, problem.mutants[1]], problem.golden_tests[:1]
    )
    assert (right.verdicts, after.verdicts[0] is Verdict.PASS) == ((Verdict.PASS,), True)
    (again,) = arena.grade(problem, [poison], problem.golden_tests[:1])
    assert again.verdicts[0] is not Verdict.PASS
