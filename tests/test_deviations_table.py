"""The table in docs/deviations.md of what strict and paper fidelity pay on the same suites is what they do pay.

`python tests/test_deviations_table.py` writes the table anew.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from codea1_env.arena.arena import Arena
from codea1_env.arena.match import Match
from codea1_env.configuration.presets import load_preset
from codea1_env.problems.problem import Problem
from codea1_env.reading.grammar import Fidelity
from codea1_env.rewards.code_a1 import RewardConfig
from codea1_env.rewards.duel import Status
from codea1_env.sandbox import LocalSandbox

PAGE = Path(__file__).resolve().parents[1] / "docs" / "deviations.md"
BEGIN, END = "<!-- table: suites -->\n", "<!-- end of table -->\n"
HEAD = "| the suite | strict: v, invalid, R_T | paper: v, invalid, R_T |\n|---|---|---|\n"
PROBLEM = Problem(
    "thirds",
    "A third of every number of a list, in order.",
    "thirds",
    reference_solution="def thirds(numbers):\n    return [0.1 * n / 0.3 for n in numbers]\n",
    time_limit_s=0.5,
)
PROGRAM = "def thirds(numbers):\n    return [n // 3 for n in numbers]\n"  # right on multiples of three alone
NAMELESS = "def third(number):\n    return number / 3\n"


def asserts(*numbers: int, stated: str = "[]") -> str:
    return "\n".join(f"assert thirds([{number}]) == {stated}" for number in numbers)


def fenced(*lines: str) -> str:
    return "\n".join(("```python", *lines, "```"))


# What the page calls a suite -> its text. K is 8.
SUITES = {
    "eight wrong values, on inputs that the program fails": asserts(*range(1, 9)),
    "sixteen of them": asserts(*range(1, 17)),
    "an unreadable line, then eight of them": "assert thirds(\n" + asserts(*range(1, 9)),
    "a repeated test, then eight others": asserts(1, *range(1, 9)),
    "`thirds([1]) > []`": "assert thirds([1]) > []",
    "`[] == thirds([1])`": "assert [] == thirds([1])",
    "`thirds([]) == [] == ()`": "assert thirds([]) == [] == ()",
    "`len(thirds([1])) == 1`": "assert len(thirds([1])) == 1",
    "`thirds(*[[1]]) == []`": "assert thirds(*[[1]]) == []",
    "`thirds(thirds([9])) == [1.0]`": "assert thirds(thirds([9])) == [1.0]",
    "`len([1]) == 1`": "assert len([1]) == 1",
    "`thirds([]) == missing`": "assert thirds([]) == missing",
    "`thirds([1])` and `thirds(numbers=[1])`": "assert thirds([1]) == []\nassert thirds(numbers=[1]) == []",
    "a test over two lines, unfenced": "assert thirds(\n    [1]) == []",
    "a test over two lines, fenced": fenced("assert thirds(", "    [1]) == []"),
    "`x = [1]` and `thirds(x) == []`, fenced": fenced("x = [1]", "assert thirds(x) == []"),
    "the same two lines, unfenced": "x = [1]\nassert thirds(x) == []",
    "`assert thirds([1])`, fenced": fenced("assert thirds([1])"),
    "the same line, unfenced": "assert thirds([1])",
    "a test inside a function, fenced": fenced("def test_it():", "    assert thirds([1]) == []"),
    "a test under `__main__`, fenced": fenced("if __name__ == '__main__':", "    assert thirds([1]) == []"),
    "a test in a fence without `python`": "```\nassert thirds([1]) == []\n```",
    "a test in a fence that is not closed, after prose": "Here:\n```python\nassert thirds([1]) == []",
    "a value that rounding alone sets apart": "assert thirds([6]) == [2.0]",
    "a right test and a message with an é": "assert thirds([]) == [], 'é'",
}


def table() -> str:
    """What both fidelities pay, a row for every suite; the last row is about a program."""
    rows = []
    with LocalSandbox() as sandbox:
        strict, paper = (Arena(sandbox, RewardConfig(fidelity=fidelity)) for fidelity in ("strict", "paper"))
        for name, text in SUITES.items():
            rows.append(f"| {name} | {_paid(strict, PROGRAM, text)} | {_paid(paper, PROGRAM, text)} |")
        text = asserts(*range(1, 9))
        rows.append(
            "| the first suite, against a program that does not define `thirds` "
            f"| {_paid(strict, NAMELESS, text)} | {_paid(paper, NAMELESS, text)} |"
        )
    return HEAD + "\n".join(rows) + "\n"


def _paid(arena: Arena, program: str, suite: str) -> str:
    (score,) = arena.play([Match(PROBLEM, (program,), ((suite,),))], update_book=False)
    terms = score.suites[0][0].terms
    assert terms is not None
    return f"{terms.v}, {terms.invalid}, {terms.reward:.3f}"


def test_the_table_of_suites_is_what_both_fidelities_pay() -> None:
    _, _, rest = PAGE.read_text().partition(BEGIN)
    assert rest.partition(END)[0] == table()


ALONE_IN_A_BLOCK = {
    "try": "try:\n    import numpy\nexcept ImportError:\n    numpy = None\n",
    "except": "try:\n    import nothing_of_this_name as fast\nexcept ImportError:\n    import math as fast\n",
    "if": "if True:\n    from math import floor\n",
    "with": "import contextlib\nwith contextlib.suppress(ImportError):\n    import numpy\n",
    "class": "class Used:\n    import math\n",
    "loop": "for _ in range(1):\n    import math\n",
    "function": "async def load():\n    import math\n",
}
RIGHT = "def thirds(numbers):\n    return [0.1 * n / 0.3 for n in numbers]\n"


class WithoutImports(ast.NodeTransformer):
    """What the released code makes of a program before it runs: imports are taken out, wherever they stand."""

    def visit_Import(self, node: ast.Import) -> None:
        return None

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        return None


@pytest.mark.parametrize("fidelity", ["strict", "paper"])
@pytest.mark.parametrize("block", ALONE_IN_A_BLOCK)
def test_an_import_that_stands_alone_in_a_block_breaks_no_program_here(
    block: str, fidelity: Fidelity, sandbox: LocalSandbox
) -> None:
    program = ALONE_IN_A_BLOCK[block] + RIGHT
    with pytest.raises(SyntaxError):
        ast.parse(ast.unparse(WithoutImports().visit(ast.parse(program))))
    arena = Arena(sandbox, RewardConfig(fidelity=fidelity))
    (score,) = arena.play([Match(PROBLEM, (program,), ((fenced("assert thirds([3]) == [1.0]"),),))], update_book=False)
    assert (score.codes[0].executes, score.codes[0].reward) == (True, 1.0)


@pytest.mark.parametrize("program", ["", "x = 1\n", "def other():\n    return 1\n"])
def test_the_references_class_is_no_programs_class(program: str, sandbox: LocalSandbox) -> None:
    """The released code deletes the reference's functions and leaves its classes for the program's turn."""
    counter = Problem(
        "counter", "Count.", "Counter", kind="class",
        reference_solution="class Counter:\n    def __init__(self):\n        self.n = 0\n"
        "    def up(self):\n        self.n += 1\n        return self.n\n",
    )  # fmt: skip
    suite = fenced('assert Counter(["Counter", "up"], [[], []]) == [None, 1]')
    arena = Arena(sandbox, RewardConfig(fidelity="paper"))
    (score,) = arena.play([Match(counter, (program, counter.reference_solution or ""), ((suite,), (suite,)))])
    assert [code.reward for code in score.codes] == [0.0, 1.0]
    assert score.suites[0][0].duel.tests[0].status is Status.KEPT


RELEASED = {
    "training questions": (
        "9,688",
        "kodcode_hard_dual_model_training_data_mix.parquet",
        "codea1 data import codea1 FILE",
    ),
    "system messages, prompts": ("system message of one sentence", "`sft`", "shorter prompt"),
    "precision of rewards and advantages": ("bfloat16, before and after normalisation",),
    "an import that is a block's only statement": ("zero in training, failed in evaluation",),
    "a class of the reference": ("only its functions are deleted", "passes a question about a class"),
    "prompt too long": ("tester 8192", "such a program ends the run"),
    "when": ("every 10 steps", "checkpoints every 50", "not said which one is reported"),
    "time": ("10 s for a program and all its tests, 20 s at the last step", "alarm inside the program's process"),
    "shares of unrelated text and of spaces, length": ("computed and logged, not paid",),
    "golden tests": ("a reward manager, `acg_gt`, that no configuration names",),
}
"""What a second reading of the released code found: the first words of its row, and what the row says."""


@pytest.mark.parametrize("what", RELEASED)
def test_the_page_has_a_row_for_what_the_released_code_does(what: str) -> None:
    (row,) = (line for line in PAGE.read_text().splitlines() if line.startswith(f"| {what}"))
    assert [words for words in RELEASED[what] if words not in row] == []


def test_the_presets_of_the_paper_have_the_figures_of_these_rows_and_name_the_released_questions() -> None:
    text = (PAGE.parents[1] / "codea1_env" / "configuration" / "1.5b.yaml").read_text()
    (file,) = (words for words in RELEASED["training questions"] if words.endswith(".parquet"))
    assert f"codea1 data import codea1 {file} -o" in text
    assert re.search(r"save_rounds: .*released code: 50\n", text)
    assert re.search(r"every_rounds: .*released code: 10\n", text)
    for name in ("1.5b", "3b", "7b"):
        preset = load_preset(name)
        assert preset.round.tester_prompt_tokens == 8192
        assert preset.problems == load_preset("1.5b").problems


if __name__ == "__main__":
    before, _, rest = PAGE.read_text().partition(BEGIN)
    PAGE.write_text(before + BEGIN + table() + END + rest.partition(END)[2])
