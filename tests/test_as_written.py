"""Suites and answers as models write them: lists, inline code, imported solutions, fixtures, helpers of blocks."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
from hypothesis import given, strategies as st

from codea1_env.reading.grammar import Fidelity
from codea1_env.reading.responses import read_program, read_suite
from codea1_env.reading.spans import test_spans as spans_of
from codea1_env.reading.suites import Ignored

BOTH: tuple[Fidelity, ...] = ("strict", "wide")
TWO = ["f(1) == 1", "f(2) == 2"]
LISTS = {
    "numbers": "1. assert f(1) == 1\n2. assert f(2) == 2",
    "numbers without a blank": "1.assert f(1) == 1\n2.assert f(2) == 2",
    "brackets": "1) assert f(1) == 1\n2) assert f(2) == 2",
    "brackets around": "(a) assert f(1) == 1\n(b) assert f(2) == 2",
    "dashes": "- assert f(1) == 1\n- assert f(2) == 2",
    "stars and inline code": "* `assert f(1) == 1`\n* `assert f(2) == 2`",
    "dots": "\u2022 assert f(1) == 1\n\u2022 assert f(2) == 2",
    "tasks": "- [ ] assert f(1) == 1\n- [x] assert f(2) == 2",
    "quotes": "> assert f(1) == 1\n> assert f(2) == 2",
    "labels": "Test 1: assert f(1) == 1\nTest 2: assert f(2) == 2",
    "labels with a word behind": "Test 1 (one): assert f(1) == 1\nTest case #2 - assert f(2) == 2",
    "bold labels": "**Test 1:** assert f(1) == 1\n\n**Test 2:** `assert f(2) == 2`",
    "numbers and labels": "1. **Base case**: `assert f(1) == 1`\n2. **Another**: `assert f(2) == 2`",
    "inline code alone": "`assert f(1) == 1`\n`assert f(2) == 2`",
    "text behind inline code": "1. `assert f(1) == 1` - the base\n2. `assert f(2) == 2`: that's it (I think",
    "text between": "Tests:\n\n1. assert f(1) == 1\n   This is one.\n\nNow:\n2. assert f(2) == 2\n\nDone.",
    "below items": "1. Base case:\n   assert f(1) == 1\n\n2. Another:\n   `assert f(2) == 2`",
    "lists in lists": "1. First\n   - `assert f(1) == 1`\n2. Second\n   - `assert f(2) == 2`",
    "in a fence": "```python\n1. assert f(1) == 1\n2. assert f(2) == 2\n```",
    "over lines": "1. assert f(\n     1) == 1\n2. assert f(\n     2) == 2",
    "fences below items": "Two.\n\n10. Base:\n    ```python\n    assert f(1) == 1\n    ```\n"
    "11. Another:\n    ```\n    assert f(2) == 2\n    ```",
    "behind a program": "```python\ndef f(x):\n    return x\n```\nTests:\n1. assert f(1) == 1\n2. `assert f(2) == 2`",
    "texts": '["assert f(1) == 1", "assert f(2) == 2"]',
    "texts over lines": "[\n    'assert f(1) == 1',\n    'assert f(2) == 2',\n]\n",
    "texts with a name, in a fence": "Here:\n```python\ntest_list = ['assert f(1) == 1', 'assert f(2) == 2']\n```",
    "a list and plain lines": "assert f(1) == 1\n2. assert f(2) == 2",
}  # fmt: skip

MARKS = ("- ", "* ", "+ ", "3. ", "12) ", "(4) ", "Test 7: ", "a) ", "- [ ] ", "1. - ")


def claims(response: str, fidelity: Fidelity, entry_point: str = "f") -> list[str]:
    return [
        test.reason or f"{test.call} == {test.claim}"
        for test in read_suite(response, entry_point, fidelity=fidelity).tests
    ]


@pytest.mark.parametrize("fidelity", BOTH)
@pytest.mark.parametrize("response", LISTS.values(), ids=LISTS)
def test_asserts_of_a_list_are_tests_and_stand_where_they_were_written(response: str, fidelity: Fidelity) -> None:
    suite = read_suite(response, "f", fidelity=fidelity)
    assert [f"{test.call} == {test.stated}" for test in suite.tests] == TWO
    spans = spans_of(response, [test.source for test in suite.tests])
    for number, span in enumerate(spans, start=1):
        assert span is not None
        written = "".join(response[span.start : span.end].split())
        assert written == f"assertf({number})=={number}"


@pytest.mark.parametrize("fidelity", BOTH)
@given(
    marks=st.lists(st.sampled_from(MARKS), min_size=1, max_size=6),
    between=st.sampled_from(["\n", "\n\n", "\nThe next one is for you.\n", "\n   and so on\n"]),
    is_inline=st.booleans(),
)  # fmt: skip
def test_every_mark_of_a_list_may_stand_before_every_other(
    fidelity: Fidelity, marks: Sequence[str], between: str, is_inline: bool
) -> None:
    tick = "`" if is_inline else ""
    items = [f"{mark}{tick}assert f({place}) == {place}{tick}" for place, mark in enumerate(marks)]
    assert claims("My tests.\n\n" + between.join(items), fidelity) == [f"f({n}) == {n}" for n in range(len(marks))]


@pytest.mark.parametrize(
    "line",
    [
        "if x: assert f(1) == 1",
        "else: assert f(1) == 1",
        "for x in [1]: assert f(1) == 1",
        "while g(x): assert f(1) == 1",
        "# Test 1: assert f(1) == 1",
        "x = 'Test: assert f(1) == 1'",
        "print('a: assert f(1) == 1')",
        "I think that assert f(1) == 1 holds.",
        "if x:\n    assert f(1) == 1",
        "def g():\n    assert f(1) == 1",
        "`assert f(1) == 1",
    ],
)
def test_what_may_not_run_or_is_said_of_an_assert_is_no_item(line: str) -> None:
    assert claims(f"This is broken (\n{line}\nassert f(2) == 2\n", "strict") == ["f(2) == 2"]


@pytest.mark.parametrize("fidelity", BOTH)
@pytest.mark.parametrize(
    "code",
    [
        "x = 1\ny = ['assert f(1) == 1']",
        "['assert f(1) == 1', 2]",
        "['assert f(1) == 1'][0]",
        "g(['assert f(1) == 1'])",
        "[f'assert f({1}) == 1']",
    ],
)
def test_texts_that_are_not_the_whole_answer_are_no_tests(code: str, fidelity: Fidelity) -> None:
    assert claims(code, fidelity) == []


def test_paper_fidelity_reads_no_list() -> None:
    assert claims("1. assert f(1) == 1\n2. assert f(2) == 2", "paper") == []


IMPORTED = {
    "module": "import solution\nassert solution.f(1) == 1\nassert solution.f(2) == 2",
    "module by another name": "import solution as s\nassert s.f(1) == 1\nassert s.f(2) == 2",
    "module of a package": "import p.solution\nassert p.solution.f(1) == 1\nassert p.solution.f(2) == 2",
    "module from a package": "from package import solution\nassert solution.f(1) == 1\nassert solution.f(2) == 2",
    "module from here": "from . import solution\nassert solution.f(1) == 1\nassert solution.f(2) == 2",
    "function": "from solution import f\nassert f(1) == 1\nassert f(2) == 2",
    "function by another name": "from solution import f as g\nassert g(1) == 1\nassert g(2) == 2",
    "everything": "from your_module import *\nassert f(1) == 1\nassert f(2) == 2",
    "name of an attribute": "import solution\ng = solution.f\nassert g(1) == 1\nassert g(2) == 2",
    "prose about it": "import solution\nThe solution is tested (\nassert solution.f(1) == 1\nassert solution.f(2) == 2",
}


@pytest.mark.parametrize("fidelity", BOTH)
@pytest.mark.parametrize("suite", IMPORTED.values(), ids=IMPORTED)
def test_the_function_of_an_imported_solution_is_the_entry_point(suite: str, fidelity: Fidelity) -> None:
    assert claims(suite, fidelity) == TWO


@pytest.mark.parametrize("fidelity", BOTH)
@pytest.mark.parametrize(
    ("suite", "entry_point"),
    [
        ("import solution\nassert solution.Solution().f(1) == 1", "Solution().f"),
        ("from solution import Solution as S\nassert S().f(1) == 1", "Solution().f"),
        ("import solution\ns = solution.Solution()\nassert s.f(1) == 1", "Solution().f"),
        ("import solution\nassert solution.reverse([1]) == [1]\nassert solution.reverse([1]) == [1]", "reverse"),
    ],
)
def test_so_is_a_class_and_a_function_with_the_name_of_a_lists_method(
    suite: str, entry_point: str, fidelity: Fidelity
) -> None:
    assert all(claim.startswith(entry_point) for claim in claims(suite, fidelity, entry_point))


@pytest.mark.parametrize("fidelity", BOTH)
@pytest.mark.parametrize(
    "suite",
    [
        "import math\nassert math.f(1) == 1",
        "import numpy as np\nassert np.f(1) == 1",
        "assert solution.f(1) == 1",
        "import solution\nassert solution.g(1) == 1",
        "import package.solution\nassert package.f(1) == 1",
        "import solution\nsolution = 3\nassert solution.f(1) == 1",
        "from solution import g as h\nassert h(1) == 1",
    ],
)
def test_what_an_import_does_not_give_is_no_entry_point(suite: str, fidelity: Fidelity) -> None:
    (claim,) = claims(suite, fidelity)
    assert "==" not in claim


def test_an_imported_solution_is_known_in_methods_too() -> None:
    suite = "import solution\nclass T(unittest.TestCase):\n def test(self):\n  self.assertEqual(solution.f(1), 1)"
    assert claims(suite, "wide") == ["f(1) == 1"]


FIXTURES = {
    "return": "@pytest.fixture\ndef data():\n    return [1, 2]\n\ndef test(data):\n    assert f(data) == 3",
    "call": "@pytest.fixture()\ndef data():\n    return [1, 2]\n\ndef test(data):\n    assert f(data) == 3",
    "imported": "@fixture(scope='module')\ndef data():\n    'Two.'\n    return [1, 2]\n\n"
    "def test(data):\n    assert f(data) == 3",
    "yield": "@pytest.fixture\ndef data():\n    x = [1, 2]\n    yield x\n    print(x)\n\n"
    "def test(data):\n    assert f(data) == 3",
    "behind": "def test(data):\n    assert f(data) == 3\n\n@pytest.fixture\ndef data():\n    return [1, 2]",
    "name": "@pytest.fixture(name='data')\ndef made():\n    return [1, 2]\n\ndef test(data):\n    assert f(data) == 3",
    "two": "@pytest.fixture\ndef one():\n    return 1\n\n@pytest.fixture\ndef data(one):\n    return [one, 2]\n\n"
    "@pytest.mark.parametrize('want', [3])\ndef test(data, want):\n    assert f(data) == want",
    "method": "class TestF:\n    @pytest.fixture\n    def data(self):\n        return [1, 2]\n\n"
    "    def test(self, data):\n        assert f(data) == 3",
    "params": "@pytest.fixture(params=[([1, 2], 3)])\ndef case(request):\n    return request.param\n\n"
    "def test(case):\n    data, want = case\n    assert f(data) == want",
    "the function": "@pytest.fixture\ndef function():\n    return f\n\n"
    "def test(function):\n    assert function([1, 2]) == 3",
    "changed": "@pytest.fixture\ndef data():\n    x = [1]\n    x.append(2)\n    return x\n\n"
    "def test(data):\n    assert f(data) == 3",
    "a constant": "LIST = [1, 2]\n\n@pytest.fixture\ndef data():\n    return LIST\n\n"
    "def test(data):\n    assert f(data) == 3",
}  # fmt: skip


@pytest.mark.parametrize("suite", FIXTURES.values(), ids=FIXTURES)
def test_a_parameter_stands_for_what_its_fixture_gives(suite: str) -> None:
    read = read_suite(f"import pytest\nfrom solution import f\n\n{suite}\n", "f", fidelity="wide")
    assert [f"{test.call} == {test.stated}" for test in read.tests] == ["f([1, 2]) == 3"]
    assert not read.unread


def test_a_fixture_may_give_a_function() -> None:
    suite = "@pytest.fixture\ndef one():\n    def g():\n        return 1\n    return g\n\n"
    suite += "def test(one):\n    assert f(one) == 1"
    assert claims(suite, "wide") == ["f((lambda: 1)) == 1"]


def test_fixtures_with_parameters_make_a_test_for_each_pair() -> None:
    suite = """@pytest.fixture(params=[1, pytest.param(2, id="two")])
def a(request):
    return request.param

@pytest.fixture(params=[3, 4])
def b(request):
    return request.param

def test(a, b):
    assert f(a, b) == 1
"""
    assert claims(suite, "wide") == [f"f({a}, {b}) == 1" for a in (1, 2) for b in (3, 4)]


@pytest.mark.parametrize(
    "fixture",
    [
        "def data(monkeypatch):\n    return [1]",
        "def data(data):\n    return data",
        "def data():\n    if x:\n        return 1\n    return 2",
        "def data():\n    return",
    ],
)
def test_a_fixture_that_is_not_plain_to_see_leaves_its_tests_unread_by_name(fixture: str) -> None:
    read = read_suite(f"@pytest.fixture\n{fixture}\n\ndef test(data):\n    assert f(data) == 1\n", "f", fidelity="wide")
    assert (read.tests, dict(read.unread)) == ((), {Ignored.FUNCTION: 1})


def test_a_fixture_with_parameters_has_one_value_in_each_test() -> None:
    fixtures = """
@pytest.fixture(params=[1, 2])
def a(request):
    return request.param

@pytest.fixture
def b(a):
    return [a]
"""
    assert claims(f"{fixtures}\ndef test(b):\n    assert f(b) == 1\n", "wide") == ["f([1]) == 1", "f([2]) == 1"]
    assert claims(f"{fixtures}\ndef test(b, a):\n    assert f(b) == a\n", "wide") == []


HELPER = "import math\n\n\ndef half(x):\n    return math.floor(x / 2)\n"


def fenced(*blocks: str) -> str:
    return "\n".join(f"Then:\n```python\n{block}\n```" for block in blocks)


@pytest.mark.parametrize(
    "blocks",
    [
        (HELPER, "def f(x):\n    return half(x)\n"),
        (HELPER, "def f(x):\n    return half(x)\n", "print(f(4))\n"),
        (HELPER + "print(half(3))\nassert half(3) == 2\n", "def f(x):\n    return half(x)\n"),
        (HELPER + "raise SystemExit\n", "def f(x):\n    return half(x)\n"),
        ("def half(x):\n    return 0\n", HELPER, "def f(x):\n    return half(x)\n"),
        ("import math\n", HELPER.partition("\n")[2], "def f(x):\n    return half(x)\n"),
        (HELPER, "from __future__ import annotations\n\n\ndef f(x):\n    return half(x)\n"),
        ("LIMITS = {}\nLIMITS['low'] = 2\n", "def f(x):\n    return x // LIMITS['low']\n"),
        (HELPER, "class Solution:\n    def f(self, x):\n        return half(x)\n\n\nf = Solution().f\n"),
    ],
)
def test_a_helper_of_an_earlier_block_is_part_of_the_program(blocks: Sequence[str]) -> None:
    names: dict[str, object] = {}
    exec(read_program(fenced(*blocks), "f").source, names)
    assert names["f"](5) == 2  # type: ignore[operator]


@pytest.mark.parametrize(
    "blocks",
    [
        ("def f(x):\n    return 1\n", "def f(x):\n    return 2\n"),
        ("def half(x):\n    return 1\n", "def half(x):\n    return 2\n\n\ndef f(x):\n    return half(x)\n"),
        ("def len(x):\n    return 1\n", "def f(x):\n    return len(x)\n"),
        ("def half(x):\n    return 1\n", "def f(x):\n    half = x\n    return half\n"),
        ("half(3) -> 2 (as text", "def f(x):\n    return half(x)\n"),
        ("print(half)\n", "def f(x):\n    return half(x)\n"),
    ],
)
def test_a_block_that_has_all_it_uses_stays_as_it_is(blocks: Sequence[str]) -> None:
    assert read_program(fenced(*blocks), "f").source == blocks[-1] + "\n"


def test_a_script_takes_the_function_of_an_earlier_block() -> None:
    source = read_program(fenced("def read():\n    return 3\n", "print(read())\n"), "program").source
    assert source.startswith("def read():\n    return 3\n")
    assert source.endswith("print(read())\n\n")


IN_LISTS = {
    "under an item": "1. Code:\n\n    ```python\nCODE    ```\n\n2. Done.\n",
    "behind text": "Steps:\n\n1. Code.\n\n    ~~~\nCODE    ~~~\n\n2. Done.\n",
    "under an item of a list in a list": "- Plan:\n    - Code:\n\n        ```python\nCODE        ```\n\nDone.\n",
    "behind another block": "```\nls\n```\n\n1. Code:\n\n    ```python\nCODE    ```\n\nDone.\n",
    "behind another of a list": "1. Run:\n\n    ```\n    ls\n    ```\n\n2. Code:\n\n    ```py\nCODE    ```\n\nDone.\n",
    "behind the mark of an item": "Steps:\n\n1. ```python\nCODE   ```\n\n2. Done.\n",
    "after a tab": "1. Code:\n\n\t```python\nCODE\t```\n\n2. Done.\n",
}


def in_list(form: str, code: str) -> str:
    before = form.split("CODE")[0].rpartition("\n")[0].rpartition("\n")[2]
    indent = re.sub(r"[^ \t]", " ", before.partition("`" if "`" in before else "~")[0])
    return form.replace("CODE", "".join(indent + line for line in code.splitlines(keepends=True)))


@pytest.mark.parametrize("form", IN_LISTS.values(), ids=IN_LISTS)
def test_blocks_of_lists_are_read_at_any_depth(form: str) -> None:
    program = 'def f(x):\n    """\n    ```\n    f(1)\n    ```\n    """\n    return x\n'
    method = "class Solution:\n    def f(self, x):\n        return x\n"
    for code in (program, method):
        assert read_program(in_list(form, code), "f").source.strip() == code.strip()
    response = in_list(form, "assert f(1) == 1\nassert f(2) == 2\n")
    for fidelity in BOTH:
        tests = read_suite(response, "f", fidelity=fidelity).tests
        assert [test.source for test in tests] == ["assert f(1) == 1", "assert f(2) == 2"]
    spans = spans_of(response, [test.source for test in tests])
    assert [span and response[span.start : span.end] for span in spans] == [test.source for test in tests]


@pytest.mark.parametrize("beside", ["def f(x):\n    return x", "f = abs"])
def test_a_block_of_a_docstring_takes_no_programs_place(beside: str) -> None:
    example = 'def g(x):\n    """\n    ```\n    def f(x):\n        return 1\n    ```\n    """\n    return x\n'
    for form in ("Here it is.\n\n{}\nIt works.\n", "```python\n{}```\n"):
        assert beside in read_program(form.format(f"{example}{beside}\n"), "f").source


@pytest.mark.parametrize("blank", ["\u00a0", "\u2003", "\u00a0 ", " \u00a0", "\u3000"])
@pytest.mark.parametrize("wrapping", ["{}", "```python\n{}\n```", "Tests:\n\n{}\n"])
def test_no_break_spaces_are_indentation_as_a_whole(blank: str, wrapping: str) -> None:
    response = wrapping.format(f"{blank * 2}assert f(1) == 1\n{blank * 2}assert f(2) == 2")
    for fidelity in BOTH:
        assert claims(response, fidelity) == TWO


@pytest.mark.parametrize("wrapping", ["{}", "   ```python\n{}\n   ```", "Tests:\n{}\n"])
def test_an_assert_over_lines_is_found_where_an_indented_answer_has_it(wrapping: str) -> None:
    response = wrapping.format("    assert f([1,\n              2]) == 1\n    assert f(2) == 2")
    spans = spans_of(response, [test.source for test in read_suite(response, "f").tests])
    shown = [span and response[span.start : span.end] for span in spans]
    assert shown == ["assert f([1,\n              2]) == 1", "assert f(2) == 2"]
