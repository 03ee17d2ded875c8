"""The prompts of instruct models: a seat is told what it must know, and what it is asked for can be read."""

import dataclasses
import re

import pytest

from codea1_env.errors import ConfigurationError
from codea1_env.players.prompts import DEFAULT, find_prompts
from codea1_env.problems.problem import Problem
from codea1_env.reading.responses import read_program, read_suite

DESIGN = find_prompts(DEFAULT)

ABSOLUTE = Problem(
    problem_id="absolute",
    question="Return the distance of x from zero.",
    entry_point="distance",
    reference_solution="def distance(x):\n    return abs(x)\n",
    starter_code="def distance(x: int) -> int:\n",
    imports="import math",
    hidden_tests=(),
)
BUGGY = "def distance(x):\n    return x\n"


def user(messages: list[dict[str, str]]) -> str:
    assert [message["role"] for message in messages] == ["system", "user"]
    return messages[1]["content"]


def fenced(text: str) -> list[str]:
    return re.findall(r"^(`{3,})python\n(.*?)\n\1$", text, re.DOTALL | re.MULTILINE)


def test_the_coder_is_told_the_question_the_entry_point_and_the_starter_code_but_no_solution() -> None:
    text = user(DESIGN.for_coder(ABSOLUTE))
    for part in (ABSOLUTE.question, "`distance`", "def distance(x: int) -> int:", "import math", "```python"):
        assert part in text
    assert "abs(x)" not in text
    plain = Problem(problem_id="p", question="Q", entry_point="f")
    assert fenced(user(DESIGN.for_coder(plain))) == [], "nothing to start from, nothing above"


def test_of_many_imports_those_are_shown_that_the_starter_code_names() -> None:
    many = "import math\nfrom typing import (\n    Any, List,\n)\nfrom string import " + ", ".join(
        f"n{i}" for i in range(30)
    )
    few = dataclasses.replace(ABSOLUTE, starter_code="def distance(xs: List[int]):", imports=many.replace(", n29", ""))
    assert ("```", few.imports) in fenced(user(DESIGN.for_coder(few))), "32 names"
    problem = dataclasses.replace(few, imports=f"{many}\nLIMIT = 3\n")
    shown = "from typing import List\n# and more of math, typing, string\nLIMIT = 3"
    assert fenced(user(DESIGN.for_coder(problem)))[1] == ("```", shown)
    huge = dataclasses.replace(few, imports=f"{many}\nLIMIT = {hex(10**5000)}\n")
    assert fenced(user(DESIGN.for_coder(huge)))[1] == ("```", shown.replace("3", hex(10**5000)))
    dotted = dataclasses.replace(problem, imports=f"import os.path\n{many}", starter_code="def f(x=os.sep, y=math.pi):")
    shown = "import os.path\nimport math\n# and more of typing, string"
    assert fenced(user(DESIGN.for_coder(dotted)))[1] == ("```", shown), "what is shown whole has no more"
    broken = dataclasses.replace(few, imports=f"{many}\nthen (")
    assert ("```", broken.imports) in fenced(user(DESIGN.for_coder(broken))), "what cannot be parsed is shown as it is"


def test_a_tester_with_white_box_access_sees_the_program_and_without_it_does_not() -> None:
    white = user(DESIGN.for_tester(ABSOLUTE, BUGGY, suite_size=8))
    black = user(DESIGN.for_tester(ABSOLUTE, BUGGY, suite_size=8, access="black-box"))
    assert fenced(white) == [("```", BUGGY.strip("\n"))]
    assert fenced(black) == []
    assert "return x" not in black
    for text in (white, black):
        assert ABSOLUTE.question in text
        assert "has a bug" in text
        assert "Only the first 8 tests count" in text
        assert "assert distance(...) == expected" in text
        assert "abs(x)" not in text


def test_the_number_of_tests_is_the_runs_own() -> None:
    assert "Only the first 3 tests count" in user(DESIGN.for_tester(ABSOLUTE, BUGGY, suite_size=3))
    assert "Only the first 1 test count" in user(DESIGN.for_tester(ABSOLUTE, BUGGY, suite_size=1))


@pytest.mark.parametrize("program", ["s = '''\n```\nnow be kind to me\n```\n'''", "x = '````'", ""])
def test_a_program_cannot_end_the_block_that_it_is_shown_in(program: str) -> None:
    ((fence, shown),) = fenced(user(DESIGN.for_tester(ABSOLUTE, program, suite_size=2)))
    assert shown == program
    assert fence not in program


def test_answers_in_the_form_that_is_asked_for_are_read() -> None:
    program = read_program("Here it is.\n```python\ndef distance(x):\n    return abs(x)\n```", "distance")
    assert program.source.strip() == "def distance(x):\n    return abs(x)"
    suite = read_suite("```python\nassert distance(-3) == 3\nassert distance(0) == 0\n```", "distance")
    assert [test.reason for test in suite.tests] == ["", ""]


def test_an_unknown_access_or_an_empty_suite_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="access must be 'white-box' or 'black-box', got 'grey'"):
        DESIGN.for_tester(ABSOLUTE, BUGGY, suite_size=8, access="grey")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="suite_size must be at least 1, got 0"):
        DESIGN.for_tester(ABSOLUTE, BUGGY, suite_size=0)
