"""What clings to an answer's edges is no part of its code: both seats, fenced or not, closed or not, by one rule."""

from __future__ import annotations

import ast
import itertools
from typing import Literal

import pytest

from codea1_env.reading.answers import TrimmedAnswer, trimmed
from codea1_env.reading.responses import read_program, read_suite
from codea1_env.reading.spans import test_spans as spans_of

MARKS = [
    "<|im_end|>", "<|endoftext|>", "</s>", "<|eot_id|>", "<end_of_turn>", "<|end|>", "[/INST]", "<eos>", "<|eom_id|>",
    "<｜end▁of▁sentence｜>", "<|end▁of▁sentence|>", "<|return|>", "<|END_OF_TURN_TOKEN|>", "<|end_of_text|>", "<pad>",
    "<unk>", "<|fim_pad|>", "<|file_sep|>", "<|im_start|>", "<EOT>", "[/PYTHON]", "</answer>", "</code>",
    "<|end_of_solution|>",
    "<|im_end|>\n<|endoftext|>", "</s></s> </s>\n", "<|eot_id|><|eot_id|>", "<pad>" * 300, "\ufeff", "\u200b", "\xa0",
    "\u2028<|im_end|>\u200b\n", "\x0b",
]  # fmt: skip
BEFORE = [
    "<|im_start|>assistant\n", "<|start_header_id|>assistant<|end_header_id|>\n\n", "<start_of_turn>model\n", "<s>",
    "<s> ", "<|assistant|>\n", "<｜Assistant｜>", "<answer>", "<answer>\n", "<code>\n", "[PYTHON]\n", "[/INST] ",
    "\ufeff", "\u200b", "\xa0", "\n\xa0\n", " \ufeff", "\ufeff \ufeff\n",
    "python\n", "Python:\n", "\npython3\n", "assistant\n", "Answer:\n", "Answer: ", "**Solution:**\n\n",
    "Here is the code:\n", "Here's what you asked for:\n\n", "<think>It is\n```python\nx\n```\neasy.</think>\n\n",
    "<think>It is easy.</think>", "It is easy.\n</think>\n", "<thinking>\nwell\n</thinking>\n", "[THINK]so[/THINK]\n",
    "<|channel|>analysis<|message|>So.<|end|><|start|>assistant<|channel|>final<|message|>",
    "<think>\n\n</think>\n\nAnswer:\n",
]  # fmt: skip
WRAPPINGS = [
    "{}",
    "```python\n{}\n```",
    "```\n{}\n```",
    "```python\n{}",
    "~~~\n{}\n~~~",
    "<answer>\n```python\n{}\n```",
]
CODE = "def f(x):\n    if x:\n        return 1\n    return '<|im_end|></s>'"
SUITE = "assert f(1) == 1\nassert f('</s>') == (\n    '<|im_end|>'\n)"
READ = ["f(1)", "f('</s>')"]
Fidelity = Literal["strict", "wide"]


def program(response: str) -> str:
    return read_program(response, "f").source


def calls(response: str, fidelity: Fidelity = "strict") -> list[str | None]:
    return [test.call for test in read_suite(response, "f", fidelity=fidelity).tests]


def require_read(wrapped: str, indent: str = "") -> None:
    """Both seats' code is read from this answer, in every reading of the two that are ours."""

    def put(code: str) -> str:
        return wrapped.replace("{}", "".join(f"{indent}{line}" for line in code.splitlines(keepends=True)))

    assert ast.dump(ast.parse(program(put(CODE)))) == ast.dump(ast.parse(CODE)), wrapped
    for fidelity in ("strict", "wide"):
        assert calls(put(SUITE), fidelity) == READ, (fidelity, wrapped)


@pytest.mark.parametrize("wrapping", WRAPPINGS)
def test_a_mark_behind_the_code_is_no_part_of_it(wrapping: str) -> None:
    for mark, (gap, end) in itertools.product(MARKS, (("", "\n"), ("\n", ""), (" ", "  \n\n"), ("\n\n", "\n"))):
        require_read(f"{wrapping}{gap}{mark}{end}")
        require_read(wrapping.replace("{}", f"{{}}{gap}{mark}") + end)


@pytest.mark.parametrize("wrapping", WRAPPINGS)
def test_what_a_model_says_before_the_code_is_no_part_of_it(wrapping: str) -> None:
    for before, behind in itertools.product(BEFORE, ("", "\n", "<|im_end|>", "\n</s>\n")):
        require_read(f"{before}{wrapping}{behind}")
        require_read(f"{before}{wrapping}{behind}".replace("\n", "\r\n"))


@pytest.mark.parametrize("indent", [" ", "  ", "    ", "\t", " \t", "        "])
def test_code_that_is_indented_as_a_whole_is_read(indent: str) -> None:
    for wrapping, before, behind in itertools.product(
        WRAPPINGS, ("", "\n", "\n\n", "python\n", "Here it is:\n\n"), ("", "\n", "</s>")
    ):
        require_read(f"{before}{wrapping}{behind}", indent)


@pytest.mark.parametrize("blank", [" ", "  ", "   ", "\t", "\n ", " \n  ", "\f"])
def test_blanks_before_the_first_line_alone_are_left_out(blank: str) -> None:
    for wrapping in WRAPPINGS:
        require_read(wrapping.replace("{}", f"{blank}{{}}"))
        require_read(f"{blank}{wrapping}")


def test_a_blank_of_a_tokenizer_changes_no_string() -> None:
    code = "def f(x):\n    return '''a\n b'''\n"
    assert program(f" {code}") == code


def test_an_indented_answer_whose_first_blanks_were_stripped_is_read() -> None:
    assert program("import math\n    def f(x):\n        return x\n") == "import math\ndef f(x):\n    return x\n"
    assert calls("assert f(1) == 1\n    assert f(2) == 2\n    assert f(3) == 3") == ["f(1)", "f(2)", "f(3)"]


def test_a_string_whose_lines_stand_further_left_does_not_keep_a_program_indented() -> None:
    code = "def f(x):\n    s = '''\nhello\n'''\n    return s\n\ndef g():\n    pass\n"
    indented = "".join(
        f"    {line}" if line.strip() not in ("hello", "'''", "") else line for line in code.splitlines(True)
    )
    assert program(indented) == code


def test_a_whole_answer_in_a_deeper_fence_is_read() -> None:
    require_read("    ```python\n{}\n    ```", "    ")


@pytest.mark.parametrize("fence", ["```", "~~~", "````"])
def test_a_fence_that_a_prompt_has_opened_ends_the_code(fence: str) -> None:
    for behind in ("", "\n", "</s>", "\n<|im_end|>\n", "\nThis works because 1 is 1.\n", "\n\nIt's `f`, isn't it?"):
        require_read(f"{{}}\n{fence}{behind}")
        require_read(f"```python\n{{}}\n{fence if fence != '~~~' else '```'}\n```{behind[:1].strip()}")


@pytest.mark.parametrize(
    "response", ["```{}```", "```python\n{}```", "{}```", "{}`", "```{}\n```", "```python {}\n```"]
)
def test_backticks_and_fences_in_the_line_of_the_code_are_no_part_of_it(response: str) -> None:
    require_read(response)


def test_one_line_in_backticks_is_read() -> None:
    assert calls("`assert f(1) == 1`") == ["f(1)"]
    assert calls("```assert f(1) == 1```") == ["f(1)"]
    assert program("`f = abs`") == "f = abs"


INSIDE = [
    "def f(x):\n    return '<|im_end|>'\n",
    "def f(x):\n    return '''\n<|im_end|>\n</s>\n'''\n",
    "TAGS = '</think>', '<think>', '[/INST]'\ndef f(x):\n    return TAGS\n",
    "END = '</s>'  # not <|im_end|>\nf = END.join\n# and not </s>",
    "def f(x):\n    return x\n\n# ends with <|endoftext|>\n",
    "def f(x):\n    '''Say:\n    <end_of_turn>'''\n\xa0\n".replace("\xa0\n", ""),
    "s = '\xa0'\ndef f(x):\n    return s + '\u200b'\n",
    "x: int\ndef f(x):\n    return x\n",
    "T = {1:\n  2}\ndef f(x):\n    return T\n",
    "if True:\n    def f(x):\n        return x\n",
    "f = lambda x: x\n\n\n",
    "\n\n# f\n\ndef f(x):\n    return x\n  # done\n",
    "  # f\ndef f(x):\n    return x",
]


@pytest.mark.parametrize("code", INSIDE)
def test_a_program_that_parses_stays_as_it_is_marks_in_it_included(code: str) -> None:
    assert program(code) == code
    assert trimmed(code) == code
    assert program(f"```python\n{code}\n```") == f"{code}\n"
    assert ast.dump(ast.parse(program(f"{code}<|im_end|>"))) == ast.dump(ast.parse(code))


@pytest.mark.parametrize("wrapping", [*WRAPPINGS, "{}\n```\nThis works."])
def test_the_places_of_asserts_are_those_of_the_answer(wrapping: str) -> None:
    for before in ("", *BEFORE):
        said = f"{before}{wrapping}".replace("{}", "assert f(1) == 1\nassert f(2) == 2") + "<|im_end|>"
        spans = spans_of(said, [test.source for test in read_suite(said, "f").tests])
        found = [said[span.start : span.end] for span in spans if span]
        assert found == ["assert f(1) == 1", "assert f(2) == 2"], said


def test_an_assert_of_a_thought_is_not_taken_for_the_one_of_the_answer() -> None:
    said = "<think>\nassert f(1) == 1\n</think>\nassert f(1) == 1"
    (span,) = spans_of(said, ["assert f(1) == 1"])
    assert span is not None
    assert span.start == said.rindex("assert")


@pytest.mark.parametrize("text", ["", " ", "<|im_end|>", "</s>\n</s>", "python", "```", "```\n<|im_end|>", "\ufeff\n"])
def test_an_answer_of_edges_alone_holds_nothing(text: str) -> None:
    assert program(text).strip() == ""
    assert calls(text) == []


@pytest.mark.parametrize(
    "edge",
    ["<|a|>", "</s>", "`", "\xa0", " ", "\n", "</s>\n", "```\n", "python\n", " \t", "a:\n", "</think>\n", "[/A]"],
)
def test_edges_without_end_are_read(edge: str) -> None:
    many = edge * (20_000 // len(edge))
    for response in (many, f"{many}{SUITE}", f"{SUITE}{many}", f"```python\n{SUITE}{many}\n```"):
        read_suite(response, "f")
        program(response)
        assert len(TrimmedAnswer.of(response).text) <= len(response)
