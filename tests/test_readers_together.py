"""Where the readers of answers, suites, programs and own tests meet: marks inside of programs, thoughts, methods."""

from __future__ import annotations

import pytest

from codea1_env.problems.check_functions import extract
from codea1_env.reading.responses import asserts_in, read_program, read_suite
from codea1_env.reading.signatures import parameters

THINKS_IN_A_STRING = 'def f(s):\n    """Drop a thought that ends with\n    </think>\n    """\n    return s.strip()\n'
FENCE_IN_A_STRING = 'import re\nMD = """\n```python\n```\n"""\ndef f(s):\n    return s.strip()\n'


@pytest.mark.parametrize(
    "program",
    [
        THINKS_IN_A_STRING,
        FENCE_IN_A_STRING,
        "def f(s):\n    return s.strip()\n# </think>\n",
        'def f(x):\n    return x.split("<|channel|>final<|message|>")\n',
    ],
)
def test_a_program_that_holds_marks_in_strings_and_comments_is_read_as_it_is(program: str) -> None:
    assert read_program(program, "f").source == program


@pytest.mark.parametrize("closing", ["```", ""])
def test_the_end_of_a_thought_in_a_fenced_program_is_none(closing: str) -> None:
    assert read_program(f"```python\n{THINKS_IN_A_STRING}{closing}", "f").source.strip() == THINKS_IN_A_STRING.strip()
    real = "def f(s):\n    return s\n"
    thought = f"<think>\n```python\ndef f(s): return 0\n</think>\n```python\n{real}{closing}"
    assert read_program(thought, "f").source.strip() == real.strip()


def test_a_suite_that_holds_marks_in_strings_keeps_its_tests() -> None:
    for text in ('assert f("""\n</think>\n""") == 1', 'assert f("""\n```\nx\n```\n""") == 1\nassert f(2) == 3'):
        assert len(read_suite(text, "f").tests) == text.count("assert")


def test_asserts_of_a_thought_do_not_count_and_those_of_an_indented_block_do() -> None:
    assert asserts_in("<think>\nassert f(0)==0\nassert f(1)==1\n") == 0
    draft = "<think>\n```python\nassert f(0)==0\nassert f(1)==1\n```\n</think>\n"
    assert asserts_in(draft + "```python\nassert f(2)==2\n```") == 1
    assert asserts_in("```python\n    assert f(5)==6\n    assert f(3)==1\n") == 2


@pytest.mark.parametrize(
    "body", ["def __init__(self):\n        self.f = lambda s: s.strip()", "f = staticmethod(lambda s: s.strip())"]
)
@pytest.mark.parametrize("form", ["```python\n{}\n```\nUsage:\n```python\nprint(1)\n```", "Here is my answer\n\n{}"])
def test_the_block_of_a_solution_class_is_read_whatever_its_method_is(form: str, body: str) -> None:
    program = f"class Solution:\n    {body}"
    assert read_program(form.format(program), "f").source.strip() == program


def test_a_solution_classes_method_lends_its_parameters() -> None:
    source = "class Solution:\n    def f(self, x, y):\n        return x\n"
    assert parameters(source, "f") == ("x", "y")
    assert parameters("def f(a):\n    return a\n" + source, "f") == ()  # two definitions: unsure


def test_a_byte_order_mark_takes_no_test_along() -> None:
    found = extract("\ufeffassert f(1)==1\nassert f(2)==2", "f")
    assert [str(case) for case in found.tests] == ["assert f(1) == 1", "assert f(2) == 2"]
