"""An LLM's text, however broken, reads to a program or a suite: no exception, no hang, nothing executed."""

from __future__ import annotations

import ast
import gzip
import json
import re
import subprocess
import sys
import threading
import warnings
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from codea1_env.errors import ConfigurationError
from codea1_env.reading.grammar import MAX_SOURCE
from codea1_env.reading.parsing import MAX_CHARACTERS, Unparsable, parse
from codea1_env.reading.responses import Suite, nonprintable_share, read_case, read_program, read_suite
from codea1_env.reading.test_case import TestCase

RECORDED = Path(__file__).resolve().parents[2] / "shared" / "data" / "recorded-humaneval-codegen16b.jsonl.gz"
DEFINITION = "def f(x):\n    return x\n"


def program(response: str) -> str:
    return read_program(response, "f").source


def calls(suite: Suite) -> list[str | None]:
    return [test.call for test in suite.tests]


def reasons(response: str) -> list[str]:
    return [test.reason for test in read_suite(response, "f").tests]


# --- programs


SCRIPT = "print(int(input()) * 2)\n"


@pytest.mark.parametrize(
    "response",
    [
        "```python\n{}```\nExample input:\n```\n5\n```\nExample output:\n```\n10\n```",
        "```python\n{}```\nRun it:\n```bash\npython sol.py < in.txt\n```",
        "```python\n{}```\n```text\nprint(10)\n```",
        "```\n5\n```\n```Python3\n{}```\n```\nx = 3\n```",
        "```\n{}```\n```\n'10'\n```\n```\n10 20\n```\n",
        "```py\nprint(1)\n```\nBetter:\n```py\n{}```\nShows:\n```python-repl\n>>> 10\n```",
    ],
)
def test_of_blocks_that_define_no_entry_point_a_script_is_read_and_no_output(response: str) -> None:
    assert program(response.format(SCRIPT)) == SCRIPT


@pytest.mark.parametrize(
    "response",
    [
        "```python\n{}```",
        "```\n{}```",
        "~~~py title='x'\n{}~~~",
        "````python\n{}````",
        "```python\n{}`````  \n",
        "<think>f is easy</think>\n<answer>```python\n{}```</answer>",
        "<answer>\n```python\n{}```</answer>",
        "```python\n{}```<|im_end|>",
        "Sure!\n\n  ```python\n{}  ```\nThat is `f`.",
        "prose\r\n```python\r\n{}```\r\n",
        "```python\n{}",
        "{}",
        "\ufeff{}",
        "Here is the code:\n{}\nI hope this (helps.\n",
        "It's simple: return x\n\n{}\nprint(f(1))\n",
    ],
)
def test_a_program_is_found_in_any_wrapping(response: str) -> None:
    found = program(response.replace("{}", DEFINITION))
    assert found.strip() == DEFINITION.strip()


def test_the_indentation_of_a_fence_is_no_indentation_of_its_program() -> None:
    indented = "".join(f"  {line}\n" for line in ["```", *DEFINITION.splitlines(), "```"])
    assert program(indented) == DEFINITION


def test_of_several_blocks_the_last_that_defines_the_entry_point_is_the_program() -> None:
    blocks = ["def f(x): return 1\n", "def f(x): return 2\n", "print(f(3))\n", "\n"]
    assert program("and\n".join(f"```python\n{block}```\n" for block in blocks)) == blocks[1]


@pytest.mark.parametrize(
    "definition",
    ["async def f(): ...\n", "class f: ...\n", "f = abs\n", "f: object = abs\n", "x = 1\ndef f(x):\n    return (\n"],
)
def test_every_way_to_define_the_entry_point_counts(definition: str) -> None:
    assert program(f"```\n{definition}```\n```\nprint(1)\n```") == definition


@pytest.mark.parametrize("other", ["def f2(): ...\n", "f == 1\n", "f(1)\n", "x.f = 1\n"])
def test_what_only_looks_like_a_definition_does_not_count(other: str) -> None:
    assert program(f"```\n{DEFINITION}```\n```\n{other}```") == DEFINITION
    assert program(f"```\n{other}```\n```\nlast()\n```") == "last()\n"


def test_a_block_that_is_indented_as_a_whole_counts_where_no_other_defines_the_entry_point() -> None:
    assert program(f"```\n{DEFINITION}```\n```\n  def f(): ...\n```") == DEFINITION
    assert program("```\n  def f(): ...\n```\n```\nlast\n```") == "def f(): ...\n"


def test_without_a_definition_the_last_block_that_is_not_empty_is_the_program() -> None:
    assert program("```\na\n```\n```\nb\n```\n```\n\n```") == "b\n"
    assert program("```\n```") == ""


def test_a_line_of_code_in_backticks_is_no_fence() -> None:
    response = f"```f(1) == 1``` is tested.\n{DEFINITION}"
    assert program(response) == DEFINITION


def test_a_fence_closes_with_its_own_kind_only() -> None:
    assert program("~~~\n```\n~~~~\n") == "```\n"
    assert program("````\n```\nx\n```\n````") == "```\nx\n```\n"


def test_definitions_are_picked_out_of_prose() -> None:
    response = (
        "Note: this is easy.\nimport math\nfrom os import (\n  path,\n)\nWe need a helper:\n"
        "def helper(y):\n    return y\n\nand a constant\nK = {\n    1: 2,\n}\n"
        "@decorated\n@twice(\n1)\ndef f(x):\n    if x:\n        return 1\n    else:\n        return helper(x)\n"
        "f(3)\nif __name__ == '__main__':\n    main()\nThat's all (I think.\n"
    )
    found = program(response)
    tree = ast.parse(found)
    assert [type(statement).__name__ for statement in tree.body] == [
        "Import",
        "ImportFrom",
        "FunctionDef",
        "Assign",
        "FunctionDef",
    ]
    assert "@decorated\n@twice(" in found


@pytest.mark.parametrize(
    "text", ["no code at all", "def g(x):\n    return x\nprose here\n", "def f(x):\n    return (", ""]
)
def test_without_a_definition_that_parses_the_program_is_the_response(text: str) -> None:
    assert program(text) == text


def test_a_whole_program_is_kept_whole() -> None:
    text = "import sys\nsys.setrecursionlimit(9)\nfor i in range(3):\n    pass\n\n" + DEFINITION
    assert program(text) == text


# --- suites


@pytest.mark.parametrize(
    "response",
    [
        "```python\n{}```",
        "{}",
        "Some tests:\n```python\n{}",
        "```\n{}```\n```\n```",
        "<tests> ```python\n{}``` </tests>",
        "  ```\n{}```",
        "~~~\r\n{}~~~",
        "\f\n{}",
    ],
)
def test_a_suite_is_found_in_any_wrapping(response: str) -> None:
    suite = read_suite(response.replace("{}", "assert f(1) == 2\nassert 3 == f(2), 'why'\n"), "f")
    assert calls(suite) == ["f(1)", "f(2)"]
    assert [test.stated for test in suite.tests] == ["2", "3"]
    assert [test.source for test in suite.tests] == ["assert f(1) == 2", "assert 3 == f(2), 'why'"]


def test_all_blocks_are_one_suite_in_order() -> None:
    suite = read_suite("```\na = 1\nassert f(a) == 1\n```\nassert f(0) == 0\n```\nassert f(a) == 2\n```", "f")
    assert [(test.call, test.stated) for test in suite.tests] == [("f(1)", "1"), ("f(1)", "2")]
    assert suite.ignored == 0


def test_one_broken_assert_spoils_no_other() -> None:
    response = (
        "assert f(1) == 1\nassert f([1, 2 == 2\nassert f(3) == 3\nassert f('4) == 4\nassert f(\n    5,\n    6\n) == 5\n"
        'assert f("""7\n") == 7\nassert f(8) == 8 \\\n    , "m"\nassert f(9) =='
    )
    suite = read_suite(response, "f")
    read = [(test.call, test.reason) for test in suite.tests]
    assert [call for call, _ in read if call] == ["f(1)", "f(3)", "f(5, 6)", "f(8)"]
    assert [reason for _, reason in read if reason] == ["syntax"] * 4
    assert [test.source[:11] for test in suite.tests] == [f"assert f({c}" for c in ("1)", "[1", "3)", "'4")] + [
        "assert f(\n ",
        'assert f(""',
        "assert f(8)",
        "assert f(9)",
    ]


def test_an_assert_whose_condition_is_on_the_next_line_is_a_syntax_error() -> None:
    suite = read_suite("assert \n    f(1) == 1, 'a'\nassert \n    f(2) == 2\nassert f(3) == 3\n", "f")
    assert [test.reason for test in suite.tests] == ["syntax", "syntax", ""]
    assert suite.ignored == 0


def test_what_is_no_assert_is_ignored_and_counted() -> None:
    response = (
        "# a comment\nimport os\nfrom math import pi\nx = 1\n\nprint(f(1))\ndef test_a():\n    assert f(1) == 1\n"
        "class T:\n    assert f(1) == 1\nif True:\n    assert f(1) == 1\nassert f(2) == 2\n"
    )
    suite = read_suite(response, "f")
    assert (calls(suite), suite.ignored) == (["f(2)"], 4)
    broken = read_suite(response + "\nSome prose.\nMore (prose\ndef g(:\n    assert f(1) == 1\n", "f")
    assert (calls(broken), broken.ignored) == (["f(2)"], 7)


def test_prose_that_begins_with_assert_is_a_rejected_test() -> None:
    assert reasons("assert that all is well\nassertions follow\nassert f(1) == 1") == ["syntax", ""]


@pytest.mark.parametrize(
    "line",
    [
        "assert f(1) == 1; assert f(2) == 2",
        "x = 1; assert f(1) == 1",
        "assert f(1) == 1; x = 1",
        "print(); assert f(1) == 1",
        "assert f(1) == (\n1); x = 1",
        "x = [\n]; assert f(1) == 1",
    ],
)
def test_a_test_shares_its_line_with_no_statement(line: str) -> None:
    for response in (line, "é = 1\n" + line, line + "\nprose and prose"):
        found = reasons(response)
        assert found == ["several_statements"] * line.count("assert")
    assert reasons("assert f(1) == 1;") == [""]


def test_names_are_inlined_with_their_latest_value() -> None:
    response = (
        "a = [1, 2]\nb: int = 3\nassert f(a, k=b) == b\na = b = (a, 4)\nassert f(a) == [b]\nexpected = f(9)\n"
        "assert expected == 1\nassert f(1) == expected\n"
    )
    suite = read_suite(response, "f")
    assert [(test.call, test.stated, test.reason) for test in suite.tests] == [
        ("f([1, 2], k=3)", "3", ""),
        ("f(([1, 2], 4))", "[([1, 2], 4)]", ""),
        ("f(9)", "1", ""),
        (None, None, "self_comparison"),
    ]
    assert suite.ignored == 0
    assert suite.tests[0].arguments == b'[[[1,2]],[["k",3]]]'


def test_inlining_respects_the_scopes_of_comprehensions() -> None:
    response = "x = [5]\ny = 7\nassert f([x for x in x]) == [x, {y: x for x in [y] if x}, {y for z in x}]\n"
    (test,) = read_suite(response, "f").tests
    assert test.call == "f([x for x in [5]])"
    assert test.stated == "[[5], {7: x for x in [7] if x}, {7 for z in [5]}]"


def test_a_name_may_hide_a_builtin_and_keeps_what_it_was_before() -> None:
    response = "a = list((1, 2))\nlist = 3\nassert f(a) == list\nassert f(list(a)) == 1\n"
    first, second = read_suite(response, "f").tests
    assert (first.call, first.stated) == ("f(list((1, 2)))", "3")
    assert second.reason == "forbidden_call"


@pytest.mark.parametrize(
    "statement",
    [
        "a.append(1)",
        "a[0] = 1",
        "a[:] = []",
        "a[0][0] = 1",
        "a[0] += [1]",
        "a[0].append(1)",
        "del a[0][0]",
        "b = a.pop()",
        "a += 1",
        "del a",
        "a, b = 1, 2",
        "for a in [1]: pass",
        "with g() as a: pass",
        "import a",
        "import x as a",
        "from x import a",
        "def a(): pass",
        "class a: pass",
        "(a := 1)",
    ],
)
def test_a_name_that_a_statement_changes_is_forgotten(statement: str) -> None:
    for tail in ("", "some prose here\n"):
        response = f"a = [1]\nassert f(a) == 1\n{statement}\nassert f(a) == 1\n{tail}"
        assert reasons(response) == ["", "forbidden_name"]


def test_a_name_that_an_assert_changes_is_forgotten() -> None:
    assert reasons("a = [1]\nassert a.pop() == 1\nassert f(a) == 1")[1] == "forbidden_name"


@pytest.mark.parametrize(
    "statement",
    [
        "print(f(a))\ndef g(a):\n    a = 1",
        "f(a)",
        "b = f(a)",
        "b = sorted(a)\nb.append(1)",
        "b = list(a)\nb[0] = 1",
        "b = copy.deepcopy(a)",
        "b = a.count(1)",
        "b = a\nb = [2]\nb.append(3)",
        "c = []\nc.extend(a)",
        "print(json.dumps(a))",
        "'-'.join(a)",
    ],
)
def test_a_statement_that_only_reads_a_name_leaves_it(statement: str) -> None:
    assert reasons(f"a = [1]\n{statement}\nassert f(a) == 1") == [""]


def test_what_a_method_of_the_entry_point_is_given_stays_as_it_is() -> None:
    suite = "a = [1]\ns = Solution()\nr = s.f(a)\nassert r == 1\nassert Solution().f(a) == 1"
    assert [str(test.reason or "") for test in read_suite(suite, "Solution().f").tests] == ["", ""]


def test_the_entry_point_cannot_be_assigned() -> None:
    suite = read_suite("f = lambda x: 1\nassert f(1) == 1\n", "f")
    assert (calls(suite), suite.ignored) == (["f(1)"], 1)
    assert reasons("f = g = 1\nassert f(g) == 1\nassert f(f) == 1\n") == ["", "entry_point_again"]


def test_another_name_of_the_entry_point_is_the_entry_point() -> None:
    first, second = read_suite("g = f\nassert g(1) == 1\nassert f(g) == 1\n", "f").tests
    assert (first.call, second.reason) == ("f(1)", "entry_point_again")


def test_impure_values_are_rejected_where_they_are_used() -> None:
    assert reasons("a = open('x')\nb = lambda: open\nassert f(a) == 1\nassert f(b) == 1\nassert f(1) == 1") == [
        "forbidden_call",
        "forbidden_name",
        "",
    ]


DOUBLING = "a = [1, 1]\n" + "a = [a, a]\n" * 40
DEEPENING = "a = [1]\n" + "a = [a]\n" * 60


def test_inlining_bombs_are_rejected_by_name() -> None:
    assert reasons(DOUBLING + "assert f(a) == 1\nassert f(1) == 1\n") == ["too_large", ""]
    assert reasons(DEEPENING + "assert f(a) == 1\nassert f(1) == 1\n") == ["too_deep", ""]
    long = f"a = '{'x' * 60_000}'\n"
    assert reasons(long + "assert f(a, a) == 1\n") == ["too_large"]
    # One suite may inline so much in all; tests without names are not concerned.
    found = reasons(long + "assert f(a) == 1\n" * 100 + "assert f(1) == 1\n")
    assert found[:8] + found[-2:] == [""] * 8 + ["too_large", ""]


@pytest.mark.parametrize(
    ("response", "reason"),
    [
        ("assert f(" + "[" * 119 + "1" + "]" * 119 + ") == 1", "too_deep"),
        ("assert f(" + "[" * 5000 + "1" + "]" * 5000 + ") == 1", "too_deep"),
        ("assert f(" + "-" * 20_000 + "1) == 1", "too_deep"),
        ("assert f(" + "not " * 10_000 + "1) == 1", "too_deep"),
        ("assert f(" + "2 ** " * 10_000 + "1) == 1", "too_deep"),
        ("assert f(" + "1 + " * 10_000 + "1) == 1", "too_deep"),
        ("assert f(x" + ".x" * 20_000 + ") == 1", "too_deep"),
        ("assert f('" + "a" * MAX_SOURCE + "') == 1", "too_long"),
        ("assert f('" + "a" * MAX_SOURCE + "' == 1", "too_long"),
        ("assert f(" + "9" * 5000 + ") == 1", "too_large"),
        ("assert f('\ud800') == 1", "syntax"),
        ("assert f('\0') == 1", "syntax"),
        ("assert f(1) == 1\0", "syntax"),
    ],
)
def test_a_bomb_is_rejected_by_name_and_spoils_no_other_test(response: str, reason: str) -> None:
    found = reasons(f"assert f(0) == 0\n{response}\nassert f(1) == 1\n")
    assert found == ["", reason, ""]


def test_brackets_and_signs_in_strings_and_comments_are_no_nesting() -> None:
    response = f"# {'-' * 200}\nassert f('{'(' * 500}', '{'-' * 500}') == 1  # {'[' * 500}\n"
    assert reasons(response) == [""]
    many = "assert f([(1), {2}]) == [[]]\n" * 100
    assert reasons(many) == [""] * 100


EXPLOITS = [
    "assert True",
    "assert 'spec' in globals()",
    "assert len([1]) == 1",
    "assert f(1) == f(1)",
    "assert f(1) == 1 or True",
    "assert (lambda: 1)() == 1",
    "assert f(x := 1) == 1",
    "assert f(__import__('os')) == 1",
    "assert f(*[1]) == 1",
    "assert f(1).__class__ == 1",
    "assert f(random.random()) == 1",
    "assert f(10) == 1 == 1",
]


# What the released code takes for a test, and what is as good as one in the same place: a call with a value of its own.
RELEASED_AS_A_TEST = {"assert f(1) == f(1)", "assert f(*[1]) == 1", "assert f(10) == 1 == 1"}


@pytest.mark.parametrize("exploit", EXPLOITS)
def test_an_exploit_is_rejected_or_in_paper_fidelity_one_call_of_the_entry_point(exploit: str) -> None:
    assert [bool(test.reason) for test in read_suite(f"```\n{exploit}\nassert f(1) == 1\n```", "f").tests] == [1, 0]
    suite = read_suite(exploit + "\nassert f(1) == 1\n", "f", fidelity="paper")
    assert not suite.tests[-1].reason
    for test in suite.tests[:-1]:
        assert bool(test.reason) == (exploit not in RELEASED_AS_A_TEST)
        assert test.reason or (test.call or "").startswith("f(")


def test_an_unknown_fidelity_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="fidelity must be 'strict', 'wide' or 'paper', got 'released'"):
        read_suite("", "f", fidelity="released")  # type: ignore[arg-type]
    for read in (read_program, read_suite):
        with pytest.raises(ConfigurationError, match=r"response must be a text, got \[1\]"):
            read([1], "f")  # type: ignore[operator]


# --- any text


GARBAGE = {
    "empty": "",
    "prose": "lorem ipsum dolor (sit amet\n" * 625,
    "asserts": "assert\n" * 2_343,
    "good asserts": "assert f(1) == 1\n" * 937,
    "one line": "assert f(1) == 1;" * 937,
    "one line beyond ASCII": "assert f('é') == 1;" * 781,
    "quotes": '"' * 15_625,
    "escaped triple quotes": '"""a\\' * 3_125,
    "triple quotes and asserts": '"""\nassert f(1) == 1\n' * 625,
    "brackets": "(" * 15_625,
    "signs": "- " * 7_812,
    "fences": "```\n" * 3_906,
    "unequal fences": "".join("`" * (3 + i % 50) + "\n" for i in range(2_000)),
    "backslashes": "\\\n" * 7_812,
    "lone surrogates": "\ud800\n" * 4_687,
    "null bytes": "\0" * 15_625,
    "line breaks": "\n\r\f\v\x1c\u2028" * 2_656,
    "decorators": "@a\n" * 4_687,
    "assignments": "a = 1\n" * 2_500,
    "growing names": "a = 1\n" + "a = (a, a)\n" * 1_406 + "assert f(a) == 1\n",
    "f-strings": "f'{" * 4_687,
    "elif": "if 1: pass\n" + "elif 1: pass\n" * 1_093,
    "names and prose": "a = 1\n" + "b.c\n" * 3_125 + "(",
}


@pytest.mark.parametrize("kind", GARBAGE)
def test_long_garbage_reads(kind: str) -> None:
    text = GARBAGE[kind]
    suite = read_suite(text, "f")
    assert all(test.reason or test.call == "f(1)" or test.call == "f('é')" for test in suite.tests)
    assert isinstance(program(text), str)
    assert 0 <= nonprintable_share(text) <= 1


def test_what_lies_beyond_the_longest_text_is_not_read() -> None:
    line = "assert f(1) == 1\n"
    suite = read_suite(line * 20_000, "f")
    assert len(suite.tests) == MAX_CHARACTERS // len(line)
    assert suite.ignored == 1


def test_nothing_is_printed_and_no_warning_escapes() -> None:
    # `\d` and `1if` are warned about by the parser; in a process of its own, where warnings are errors from the start.
    code = (
        "from codea1_env.reading.responses import read_program, read_suite\n"
        r"""text = 'assert f("\\d", 1if 1else 2) == "\\ "\n'"""
        "\nassert [test.reason for test in read_suite(text, 'f').tests] == ['']\n"
        "assert read_program(text + 'def f(): pass', 'f').source\n"
        "assert [test.reason for test in read_suite(text + '(', 'f').tests] == ['']\n"
    )
    root = Path(__file__).resolve().parent.parent
    found = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], cwd=root, capture_output=True, text=True, timeout=60
    )
    assert (found.returncode, found.stdout, found.stderr) == (0, "", "")


def test_threads_that_read_leave_the_warning_filters_as_they_were() -> None:
    before = list(warnings.filters)
    found: list[int] = []

    def read_many() -> None:
        found.extend(len(read_suite('assert f("\\d") == 1\n', "f").tests) for _ in range(300))

    threads = [threading.Thread(target=read_many) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [1] * 1200
    assert list(warnings.filters) == before


LINES = r"""assert f(1) == 1
assert f(a, 'é') == a
assert f(x) == 1
assert len(f(1)) == x
self.assertEqual(f(1), 2)
def f(x):
def test_a():
class T:
for x in [1, 2]:
with pytest.raises(E):
if __name__ == '__main__':
@pytest.mark.parametrize('x', [1])
test_a()
x = f(1)
x[0] = 1
x, y = 1, 2
f = 1
import len
return
else:
lambda: f(1)
f'{
prose"""
NO_LINES = (
    "a = [1, a]\n",
    "def f(x):\n    return x\n",
    "    ",
    "\n",
    "\n\n",
    "\\\n",
    "```",
    "```python\n",
    "~~~",
    '"""',
)
fragments = st.sampled_from([*LINES.splitlines(), *NO_LINES, *"'([{)]}\\#;:=@\0\ud800\r\t\f"])
any_response = st.lists(fragments | st.text(st.characters(), max_size=5), max_size=25).map("".join)
any_lines = st.lists(fragments, max_size=25).map("\n".join)


@settings(deadline=None)
@given(any_response | any_lines, st.sampled_from(["strict", "wide", "paper"]))
def test_any_text_reads_and_what_is_accepted_reads_back(response: str, fidelity: Any) -> None:
    suite = read_suite(response, "f", fidelity=fidelity)
    assert fidelity == "wide" or len(suite.tests) <= response.count("assert")
    for test in suite.tests:
        assert fidelity == "wide" or test.source.startswith("assert")
        check_accepted(test, "f", fidelity)
    found = program(response)
    assert len(found) <= len(response)
    assert 0 <= nonprintable_share(response) <= 1


@settings(deadline=None)
@given(st.lists(st.integers(), min_size=1, max_size=6), any_response)
def test_a_good_block_reads_whole_whatever_prose_is_before_it(numbers: list[int], prose: str) -> None:
    prose = re.sub(r"[`~]", "", prose)
    block = "".join(f"assert f({number}) == {number}\n" for number in numbers)
    suite = read_suite(f"{prose}\n```python\n{block}```\n{prose}", "f")
    assert calls(suite) == [f"f({number})" for number in numbers]
    assert program(f"{prose}\n```python\n{DEFINITION}```\n{prose}") == DEFINITION


def check_accepted(test: Any, entry_point: str, fidelity: Any = "strict") -> None:
    """An accepted test reads back to itself, and its expression parses; a rejected one holds nothing."""
    if test.reason:
        assert (test.call, test.stated, test.arguments, test.value) == (None, None, None, None)
        return
    assert fidelity == "paper" or test.stated is not None
    again = read_case(TestCase(test.call, test.claim or "None"), entry_point, fidelity)
    assert (again.reason, again.call, again.inner, again.look) == ("", test.call, test.inner, test.look)
    assert (again.arguments, again.relation) == (test.arguments, test.relation)
    if test.stated is not None:
        assert (again.stated, again.value) == (test.stated, test.value)
    ast.parse(test.expression, mode="eval")


# --- non-printable characters


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("", 0.0),
        ("abc é 漢", 0.0),
        ("a\n\r\tb", 0.0),
        ("a\0", 0.5),
        ("\x1b[0m", 0.25),
        ("\ud800", 1.0),
        ("\u200b\na\n", 0.25),
        ("\ufeff# 測試\u3000一\xa0\N{MAN}\u200d\N{WOMAN} \u200fא", 0.0),
    ],
)
def test_the_share_of_characters_that_are_not_printable(text: str, share: float) -> None:
    assert nonprintable_share(text) == share


# --- what a real LLM wrote


def recorded(stride: int) -> list[dict[str, Any]]:
    if not RECORDED.exists():
        pytest.skip(f"the recorded outputs are not at {RECORDED}")
    with gzip.open(RECORDED, "rt") as file:
        return [json.loads(line) for number, line in enumerate(file) if number % stride == 0]


def joined(suite: str) -> str:
    """The recorded suites break the line after `assert`: joined again, as the data's own readers do."""
    return re.sub(r"assert[ \t]*\n\s*", "assert ", suite)


def test_recorded_suites_read_and_their_accepted_tests_read_back() -> None:
    accepted = plain_lines = found_lines = 0
    for problem in recorded(stride=8):
        name = problem["entry_point"]
        # A plain assert alone on its line, of numbers and simple strings: whatever else is broken, the reader finds it.
        plain = re.compile(rf"^assert ({re.escape(name)}\([\w ,.']*\)) == (\d+|True|False|'\w*')$", re.MULTILINE)
        for text in map(joined, problem["suites"]):
            suite = read_suite(text, name)
            assert len(suite.tests) <= text.count("assert")
            sources = {test.source for test in suite.tests if not test.reason}
            for test in suite.tests:
                check_accepted(test, name)
                accepted += not test.reason
            for match in plain.finditer(text):
                if not is_plain_call(match[1]) or '"""' in text or "'''" in text:
                    continue
                plain_lines += 1
                found_lines += match[0] in sources
    assert accepted > 500
    assert plain_lines > 50
    assert found_lines == plain_lines


def is_plain_call(text: str) -> bool:
    try:
        body = parse(text).body
    except Unparsable:
        return False
    (statement,) = body
    assert isinstance(statement, ast.Expr)
    assert isinstance(statement.value, ast.Call)
    arguments = [*statement.value.args, *[keyword.value for keyword in statement.value.keywords]]
    return all(isinstance(argument, ast.Constant) for argument in arguments)


def test_recorded_programs_read_to_what_defines_the_entry_point() -> None:
    whole = 0
    for problem in recorded(stride=8):
        name = problem["entry_point"]
        for code in problem["codes"]:
            code = code.replace("\r\n", "\n").replace("\r", "\n")
            found = read_program(code, name).source
            try:
                parse(code)
            except Unparsable:
                assert found == code or re.search(rf"^def {name}\b", found, re.MULTILINE)
                continue
            whole += 1
            assert found == code
            assert read_program(f"Sure:\n```python\n{code}\n```\nDone.", name).source == code + "\n"
    assert whole > 500


@pytest.mark.parametrize(
    "response",
    [
        "```python\n```python\n{}```",
        "```python\n    def f(x):\n        return x\n```",
        "<think>Perhaps\n```python\ndef f(x): pass\n</think>\n```python\n{}```",
    ],
)
def test_what_a_model_puts_around_a_program_is_no_part_of_it(response: str) -> None:
    assert program(response.replace("{}", DEFINITION)) == DEFINITION


def test_of_an_answer_without_fences_blocks_that_fill_a_table_are_kept() -> None:
    code = "T = {}\nfor k in range(9):\n    T[k] = k\ndef f(x):\n    return T[x]\n"
    assert program(f"Here is a program that works.\n\n{code}\nI hope it helps you.\n").rstrip() == code.rstrip()


def test_tests_that_a_model_thought_of_are_none() -> None:
    thought = "<think>Perhaps\n```python\nassert f(0) == 0\n```\n</think>\n```python\nassert f(1) == 1\n```"
    assert calls(read_suite(thought, "f")) == ["f(1)"]


def test_what_a_decorator_uses_is_taken_from_an_earlier_block() -> None:
    blocks = ["table = []\n", "def kept(g):\n    table.append(g)\n    return g\n@kept\ndef f(x): return len(table)\n"]
    assert program("and\n".join(f"```python\n{block}```\n" for block in blocks)).startswith(blocks[0])


@pytest.mark.parametrize("before", ["Here is `f`:\n\n", "1. First, `f`.\n\n", ""])
@pytest.mark.parametrize("behind", ["\nIt runs in O(n):\nno more.\n", "\n"])
def test_what_markdown_indents_is_code_without_fences(before: str, behind: str) -> None:
    def indented(code: str) -> str:
        return before + "".join(f"    {line}\n" for line in code.splitlines()) + behind

    long = "import math\n\ndef f(x):\n    y = x\n\n    return math.sqrt(y)\n"
    assert program(indented(long)).strip() == long.strip()
    tests = ["assert f(1) == 2", "assert f(2) == 3"]
    assert [test.source for test in read_suite(indented("\n\n".join(tests)), "f").tests] == tests
    whole = read_suite(indented("def test_a():\n    assert f(1) == 2\n"), "f", fidelity="wide")
    assert [test.reason for test in whole.tests] == [""]


def test_the_body_of_code_that_is_not_indented_is_no_code_of_its_own() -> None:
    suite = "The tests:\n\ndef test_a():\n\n    assert f(1) == 2\n\nThey are two,\nall in all.\n"
    assert not read_suite(suite, "f").tests
    response = "So:\n\ndef g(x):\n\n    f = x\n    return f\n\nThat is it.\n"
    assert "def g" in program(response)
