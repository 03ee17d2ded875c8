"""What every framework's reward is held to: answers of each kind in both seats, and what the arena pays for them."""

from __future__ import annotations

import functools
import json

from codea1_env import Arena, LocalSandbox
from codea1_env.arena.match import Match
from codea1_env.problems import Problem, TestCase

PROBLEM = Problem(
    "halve",
    "Write `halve(x)`: half of an even number, and the number itself otherwise.",
    "halve",
    reference_solution="def halve(x):\n    return x // 2 if x % 2 == 0 else x\n",
    golden_tests=tuple(TestCase(f"halve({x})", str(x // 2 if x % 2 == 0 else x)) for x in range(8)),
    time_limit_s=0.5,
)
LINE = PROBLEM.to_json()
WRONG = "def halve(x):\n    return x // 2\n"
"""Wrong on odd numbers: half of the golden tests."""


def fenced(source: str) -> str:
    return f"Here it is:\n```python\n{source}```"


PROGRAMS = {
    "right": fenced(str(PROBLEM.reference_solution)),
    "right without a fence": str(PROBLEM.reference_solution),
    "wrong": fenced(WRONG),
    "equal to everything": fenced("class A:\n    def __eq__(s, o): return True\ndef halve(x): return A()\n"),
    "leaves at once": fenced("import os\nos._exit(0)\n"),
    "prints its verdict": fenced("def halve(x):\n    print('PASS', 1.0)\n    raise SystemExit(0)\n"),
    "empty": "",
    "prose": "I would rather not.",
    "late": fenced("def halve(x):\n    while x == 3: pass\n    return x // 2 if x % 2 == 0 else x\n"),
}
SUITES = {
    "right": "assert halve(3) == 3\nassert halve(4) == 2\nassert halve(7) == 7",
    "blind": "assert halve(4) == 2\nassert halve(8) == 4",
    "wrong": "assert halve(3) == 1\nassert halve(5) == 2",
    "hostile": "import os; os._exit(0)\nassert exit(0) == None\nassert halve(open('/etc/passwd')) == 1",
    "empty": "",
    "prose": "I would rather not.",
    "late": "assert halve(10 ** 10 ** 10) == 1",
}
"""Against WRONG."""
TESTER_LABEL = json.dumps({"problem": json.loads(LINE), "program": WRONG})


@functools.cache
def golden_by_the_arena() -> dict[str, float]:
    with Arena(LocalSandbox()) as arena:
        grades = arena.grade(PROBLEM, list(PROGRAMS.values()), PROBLEM.golden_tests)
    paid = {name: grade.share for name, grade in zip(PROGRAMS, grades, strict=True)}
    assert paid["right"] == paid["right without a fence"] == 1.0
    assert paid["wrong"] == 4 / 8  # the even ones
    assert paid["late"] == 7 / 8  # all but 3
    return paid


@functools.cache
def kills_by_the_arena() -> dict[str, float]:
    with Arena(LocalSandbox()) as arena:
        (score,) = arena.play([Match(PROBLEM, (WRONG,), (tuple(SUITES.values()),))], update_book=False)
    paid = {name: suite.reward for name, suite in zip(SUITES, score.suites[0], strict=True)}
    assert paid["right"] == (3 / 8 + 2 / 8) / 2  # 3 of 8 tests are valid, and 2 of them kill
    return {name: reward for name, reward in paid.items() if reward is not None}
