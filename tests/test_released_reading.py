"""What paper fidelity reads in a response: the released code's rules, in examples of our own."""

from __future__ import annotations

import pytest

from codea1_env.reading.inlining import MAX_INLINED
from codea1_env.reading.pure_expressions import Reason
from codea1_env.reading.responses import Ignored, Suite, nonprintable_share, read_program, read_suite


def paper(response: str) -> Suite:
    return read_suite(response, "f", fidelity="paper")


def fenced(*lines: str) -> str:
    return "\n".join(("Some words.", "```python", *lines, "```", "assert f(0) == 0"))


def pairs(response: str) -> list[tuple[str | None, str | None]]:
    return [(test.call, test.stated) for test in paper(response).tests]


def test_in_blocks_asserts_count_at_any_indentation_and_the_rest_of_the_response_does_not() -> None:
    suite = fenced("def test_it():", "    assert f(1) == 2", "for i in [1]:", "        assert f(3) == 4, 'why'")
    assert pairs(suite) == [("f(1)", "2"), ("f(3)", "4")]


@pytest.mark.parametrize(
    "code", ["(\r1)\rassert f(1) == 1\r", "x = [1,\r\r2]; assert f('''\r\r''') == x", "\r", "assert f(\r1\r) == 1"]
)
def test_lines_may_end_as_python_lets_them(code: str) -> None:
    suite = read_suite(fenced(code), "f", fidelity="paper")
    assert all("f(" in test.source for test in suite.tests)


def test_in_blocks_what_is_no_call_left_of_a_comparison_is_dropped_and_counted() -> None:
    suite = paper(fenced("assert f(1)", "assert 2 == f(1)", "assert f(1) < 3 < 4", "assert f(", "assert f(2) == 5"))
    assert [(test.call, test.stated) for test in suite.tests] == [("f(1)", "3"), ("f(2)", "5")]
    assert suite.unread == ((Ignored.NO_EQUATION, 2),)


def test_in_blocks_names_stand_for_arguments_only_and_are_not_followed_further() -> None:
    suite = paper(fenced("a = [1]", "b = a", "assert f(a, k=a) == 1", "assert f(b) == 1", "assert f([a]) == 1"))
    assert suite.tests[0].call == "f([1], k=[1])"
    assert [test.reason for test in suite.tests[1:]] == ["forbidden_name"] * 2


def test_in_blocks_a_test_may_take_several_lines_and_an_assert_ends_open_brackets() -> None:
    assert pairs(fenced("assert f(", "  [1,", "", "   2]) == '('  # (", "assert f([", "assert f(1) == 2")) == [
        ("f([1, 2])", "'('"),
        ("f(1)", "2"),
    ]


def test_without_a_closed_python_block_every_line_counts_by_itself() -> None:
    for opening in ("", "```python\n", "```\n"):
        suite = paper(opening + "assert f(1) == 2; assert f(2) == 3\n  assert f(\n1) == 2\nassertion\nassert 2 == f(1)")
        assert [test.reason for test in suite.tests] == ["", "syntax", "call_not_left", "call_not_left"]


def test_a_program_is_the_first_closed_python_block_or_the_whole_response() -> None:
    def read(response: str) -> str:
        return read_program(response, "f", fidelity="paper").source

    assert read("words\n```python\n\nx = 1\n```\n```python\ndef f(): pass\n```") == "x = 1"
    assert read("```\ndef f(): pass\n```") == "```\ndef f(): pass\n```"
    assert read("\n```python\ndef f(): pass\n") == "```python\ndef f(): pass"


@pytest.mark.parametrize(
    ("text", "share"), [("", 0.0), ("a\n\r\t\v\f ~", 0.0), ("aé", 0.5), ("漢", 1.0), ("a\0bc", 0.25)]
)
def test_printable_is_ascii_and_white_space(text: str, share: float) -> None:
    assert nonprintable_share(text, "paper") == share


def test_names_bring_a_bounded_amount_into_a_suite() -> None:
    uses = 2 * MAX_INLINED // 30_000
    tests = paper(fenced(f"a = [{'1,' * 15_000}]", *["assert f(a) == 1"] * uses)).tests
    accepted = [test.call is not None for test in tests]
    assert len(tests) == uses
    assert accepted == sorted(accepted, reverse=True)
    assert 0 < sum(accepted) * 30_000 <= MAX_INLINED
    assert tests[-1].reason == Reason.TOO_LARGE


@pytest.mark.parametrize("hostile", ['"' + '\\"' * 60_000, "'" * 120_001, "[" * 120_000, "a=1;" * 30_000])
def test_hostile_lines_are_read_to_the_end(hostile: str) -> None:
    # Quadratic time would be hours.
    assert [test.call for test in paper(fenced(hostile, "assert f(1) == 2")).tests] in ([], ["f(1)"])
