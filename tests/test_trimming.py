"""A trimmed program is its entry point and what that needs; it is right wherever the whole one is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from codea1_env.arena.arena import Arena
from codea1_env.arena.match import Match
from codea1_env.cli import main
from codea1_env.configuration.presets import SMOKE, preset_from_dict
from codea1_env.errors import ConfigurationError
from codea1_env.problems import Problem
from codea1_env.reading.programs.reach import trimmed_program
from codea1_env.reading.responses import read_program
from codea1_env.rewards.code_a1 import RewardConfig
from codea1_env.sandbox import LocalSandbox

F = "def f(x):\n    return x + 1\n"
AROUND = {
    "an example": "print(f(int(input())))\n",
    "an assert of its own": "assert f(1) == 3\n",
    "a main block": "if __name__ == '__main__':\n    raise SystemExit\n",
    "a loop of examples": "for x in [1, 2]:\n    print(f(x), g(x))\n",
    "an unused definition": "def g(x):\n    return missing\n\n\ng = g(1)\n",
    "an unused import": "import there_is_no_such_module\n",
    "a test class": "class TestF(unittest.TestCase):\n    def test(self):\n        pass\n\n\nunittest.main()\n",
    "a result": "result = f('1')\n",
    "a cut-off line": "print(f(\n",
    "a cut-off function": "def test():\n    assert f(1) ==",
    "a sentence": "This adds one, doesn't it?\n",
}  # fmt: skip


def value(source: str) -> object:
    names: dict[str, object] = {}
    exec(source, names)
    return names["f"](1)  # type: ignore[operator]


@pytest.mark.parametrize("around", AROUND.values(), ids=AROUND)
def test_what_stands_behind_the_function_goes(around: str) -> None:
    assert trimmed_program(F + "\n\n" + around, "f") == F
    assert read_program(f"```python\n{F}\n\n{around}\n```", "f", trim=True).source == F


NEEDED = {
    "helper and import": "import math\n\n\ndef g(x):\n    return math.floor(x)\n\n\ndef f(x):\n    return g(x) + 1\n",
    "helper behind": "def f(x):\n    return g(x)\n\n\ndef g(x):\n    return x + 1\n",
    "constant": "ONE = 1\n\n\ndef f(x):\n    return x + ONE\n",
    "filled table": "T = {}\nfor i in range(3):\n    T[i] = i + 1\n\n\ndef f(x):\n    return T[x]\n",
    "table by a method": "T = {}\nT.update({1: 2})\n\n\ndef f(x):\n    return T[x]\n",
    "table by an append": "T = []\nT.append(2)\n\n\ndef f(x):\n    return T[0]\n",
    "table by a decorator": "T = {}\n\n\ndef d(g):\n    T[1] = g\n\n\n@d\ndef g(x):\n    return x + 1\n\n\n"
    "def f(x):\n    return T[x](x)\n",
    "table by a base": "class A:\n    def __init_subclass__(cls):\n        A.all = cls\n\n\nclass B(A):\n    v = 2\n\n"
    "\ndef f(x):\n    return A.all.v\n",
    "counter": "count = 0\ncount += 1\n\n\ndef f(x):\n    global count\n    count += x\n    return count\n",
    "decorator": "def d(g):\n    return lambda x: g(x) + 1\n\n\n@d\ndef f(x):\n    return x\n",
    "default": "ONE = 1\n\n\ndef f(x, y=ONE):\n    return x + y\n",
    "class": "class N:\n    def __init__(self, x):\n        self.x = x\n\n\ndef f(x):\n    return N(x).x + 1\n",
    "base class": "class A:\n    one = 1\n\n\nclass B(A):\n    pass\n\n\ndef f(x):\n    return x + B.one\n",
    "fallback": "try:\n    from missing import one\nexcept ImportError:\n    one = 1\n\n\n"
    "def f(x):\n    return x + one\n",
    "condition": "if 1 > 0:\n    one = 1\nelse:\n    one = 2\n\n\ndef f(x):\n    return x + one\n",
    "star import": "from math import *\n\n\ndef f(x):\n    return floor(x + 1)\n",
    "setting": "import sys\n\nsys.setrecursionlimit(3000)\n\n\ndef f(x):\n    return sys.getrecursionlimit() - 2998\n",
    "future": "from __future__ import annotations\n\n\ndef f(x: Missing):\n    return x + 1\n",
    "lambda": "g = lambda x: x + 1\nf = lambda x: g(x)\n",
    "one line": "one = 1; two = 2\nf = lambda x: x + one; print(two)\n",
    "two names": "a, b = 1, 2\n\n\ndef f(x):\n    return x + a\n",
    "inner function": "ONE = 1\n\n\ndef f(x):\n    def g():\n        return ONE\n\n    return x + g()\n",
    "comprehension": "ONES = [1]\n\n\ndef f(x):\n    return x + sum(i for i in ONES)\n",
    "annotated": "ONE: int = 1\n\n\ndef f(x: int) -> int:\n    return x + ONE\n",
    "redefined": "def f(x):\n    return 0\n\n\ndef f(x):\n    return x + 1\n",
    "attribute": "class C:\n    pass\n\n\nC.one = 1\n\n\ndef f(x):\n    return x + C.one\n",
    "walrus": "if (one := 1):\n    pass\n\n\ndef f(x):\n    return x + one\n",
}  # fmt: skip


@pytest.mark.parametrize("program", NEEDED.values(), ids=NEEDED)
def test_what_the_function_needs_stays(program: str) -> None:
    assert value(program) == 2
    assert value(trimmed_program(program, "f")) == 2
    assert value(trimmed_program(f"{program}\n{AROUND['an assert of its own']}{AROUND['an unused import']}", "f")) == 2


@pytest.mark.parametrize("program", [F, NEEDED["helper and import"], NEEDED["one line"].replace("print(two)", "pass")])
def test_a_program_without_anything_else_stays_letter_by_letter(program: str) -> None:
    assert trimmed_program(program.replace("; pass", "").replace("; two = 2", ""), "f") == program.replace(
        "; pass", ""
    ).replace("; two = 2", "")


@pytest.mark.parametrize("source", ["", "print(1)\n", "no Python", "def g(x):\n    return 1\n", "def f(x:\n    'x"])
def test_where_no_entry_point_is_defined_nothing_is_trimmed(source: str) -> None:
    assert trimmed_program(source, "f") == source


def test_a_function_that_breaks_off_keeps_the_lines_that_it_has() -> None:
    broken = "def f(x):\n    if x > 0:\n        return x + 1\n    return g("
    assert trimmed_program(broken, "f") == "def f(x):\n    if x > 0:\n        return x + 1\n"


def test_a_class_of_solutions_is_the_entry_point_of_its_method() -> None:
    source = "class Solution:\n    def f(self, x):\n        return x + 1\n"
    for entry_point in ("f", "Solution().f"):
        assert trimmed_program(f"{source}\n\nprint(Solution().f(int(input())))\n", entry_point) == source


@given(st.permutations([*AROUND.values()][:8]), st.integers(0, 8), st.sampled_from([*NEEDED.values()]))
def test_whatever_stands_around_a_program_its_value_stays(around: list[str], place: int, program: str) -> None:
    if "__future__" in program:
        place = 0
    parts = [*around[:place], program, *around[place:]] if place else [program, *around]
    without_clash = [part for part in parts if part == program or "def g" not in part]
    assert value(trimmed_program("\n".join(without_clash), "f")) == 2


@given(st.text(alphabet="defx(): \n=1g;#'\"", max_size=60))
def test_any_text_is_trimmed_without_an_error_and_no_further(text: str) -> None:
    once = trimmed_program(text, "f")
    assert trimmed_program(once, "f") == once


ONE_MORE = Problem("one", "f(x) = x + 1", "f", reference_solution=F)
ANSWER = f"{F}\nassert f(1) == 3\n"


@pytest.mark.parametrize("trim", [False, True])
def test_a_trimmed_program_is_what_is_scored_and_shown(trim: bool) -> None:
    config = RewardConfig(suite_size=1, trim=trim)
    with LocalSandbox() as sandbox, Arena(sandbox, config) as arena:
        (score,) = arena.play([Match(ONE_MORE, (ANSWER,), (("assert f(1) == 2",),))])
        assert score.codes[0].executes is trim
        assert score.codes[0].reward == (1.0 if trim else 0.0)  # one suite of one test, and no replays
        assert arena.program(ONE_MORE, ANSWER).source == (F if trim else ANSWER)


def test_scores_of_the_command_are_of_trimmed_programs_if_it_says_so(tmp_path: Path) -> None:
    source, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    record = {"problem_id": "one", "question": "Q", "entry_point": "f", "reference_solution": F, "codes": [ANSWER]}
    source.write_text(json.dumps({**record, "suites": [["assert f(1) == 2"]]}) + "\n")
    for flags, executes in (((), False), (("--trim",), True)):
        assert main(["score", str(source), "-o", str(out), "--details", *flags]) == 0
        (line,) = map(json.loads, out.read_text().splitlines())
        assert line["codes"][0]["executes"] is executes


def test_a_script_is_not_trimmed() -> None:
    script = Problem("p", "Q", "run", kind="program", reference_solution="print(1)\n")
    text = "def run():\n    print(1)\n\n\nrun()\n"
    assert RewardConfig(trim=True).program(script, text).source == text


def test_a_runs_file_says_it_under_reading() -> None:
    preset = preset_from_dict({"reading": {"trim": True}}, SMOKE)
    assert preset.reward == RewardConfig(suite_size=4, trim=True)
    assert preset_from_dict(preset.to_dict(), SMOKE) == preset
    assert not preset_from_dict({"reading": {"trim": False}}, preset).reward.trim


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"reading": True}, "reading must be a mapping of trim"),
        ({"reading": {"cut": True}}, "reading must be a mapping of trim"),
        ({"reading": {"trim": "yes"}}, "trim must be True or False"),
        ({"reading": {"trim": True}, "reward": {"trim": False}}, "reading.trim must be reward.trim"),
        ({"reading": {"trim": True}, "reward": {"fidelity": "paper"}}, "trim must be False with fidelity='paper'"),
    ],
)
def test_what_a_run_cannot_mean_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        preset_from_dict(given, SMOKE)
