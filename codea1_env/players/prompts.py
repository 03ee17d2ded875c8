"""What instruct models are asked in either seat, as chat messages: the words are ours, the content is the method's.

Does not know tokenizers or lengths, and does not read answers: `reading/responses.py` does. What a program says to the
tester in its comments is part of the game, and is passed on as it is.
"""

from __future__ import annotations

import re
from typing import Literal

from codea1_env.errors import ConfigurationError
from codea1_env.problems.problem import Problem

Messages = list[dict[str, str]]
"""Each with `role` and `content`."""

Access = Literal["white-box", "black-box"]
"""Whether the tester sees the program that it attacks."""

_CODER = "You are an expert Python programmer. You answer with programs that are complete, correct and fast."
_TESTER = (
    "You are an expert at breaking programs. You answer with tests that a correct program passes and a wrong one fails."
)


def for_coder(problem: Problem) -> Messages:
    """Asks for a program: the question, the entry point, the starter code if there is any, one fenced block."""
    parts = [problem.question.strip()]
    if problem.starter_code.strip():
        parts.append(f"Start from this code:\n\n{fenced(problem.starter_code)}")
    if problem.imports.strip():
        parts.append(f"These lines will stand above your program:\n\n{fenced(problem.imports)}")
    packages = " and ".join(["the standard library", *problem.packages])
    parts.append(
        f"Define the function `{problem.entry_point}`, and whatever helpers it needs, in Python with {packages}. "
        "It must return its result and hold for every valid input, the unusual ones too. Put the whole program "
        "into one fenced block that opens with ```python. Neither call the function nor print anything in it."
    )
    return _conversation(_CODER, parts)


def for_tester(problem: Problem, program: str, *, suite_size: int, access: Access = "white-box") -> Messages:
    """Asks for a suite of K = `suite_size` asserts that break the program. Black-box: the program is not shown."""
    if access not in ("white-box", "black-box"):
        raise ConfigurationError(f"access must be 'white-box' or 'black-box', got {access!r}")
    if suite_size < 1:
        raise ConfigurationError(f"suite_size must be at least 1, got {suite_size}")
    parts = [f"A programmer was given this task:\n\n{problem.question.strip()}"]
    if access == "white-box":
        parts.append(f"This is the program that came back. It has a bug:\n\n{fenced(program)}")
        aim = (
            "Work out where its logic departs from the task: a case that it forgets, a bound that is off by one, a "
            "rule that it misreads. Aim each test at such a gap."
        )
    else:
        parts.append("The program that came back has a bug. You cannot see the program.")
        aim = (
            "Work out where programs for this task go wrong: cases that are forgotten, bounds that are off by one, "
            "rules that are misread. Aim each test at such a gap."
        )
    tests = "1 test" if suite_size == 1 else f"{suite_size} tests"
    parts.append(
        f"Write {tests} of `{problem.entry_point}` that expose the bug. {aim}\n\n"
        f"- A test is one line: `assert {problem.entry_point}(...) == expected`, one call with literal arguments.\n"
        "- `expected` is a literal: what the task demands, not what the program returns. A test that a correct program "
        "fails counts against you.\n"
        "- Prefer involved inputs, in which several rules of the task meet, to simple ones.\n"
        "- No two tests may make the same call or probe the same thing.\n"
        f"- Only the first {tests} count.\n\n"
        "Put the asserts, and nothing else, into one fenced block that opens with ```python."
    )
    return _conversation(_TESTER, parts)


def for_unit_tests(problem: Problem, program: str, *, suite_size: int) -> Messages:
    """Asks for K = `suite_size` unit tests of a function that is right: how test generation is measured."""
    if suite_size < 1:
        raise ConfigurationError(f"suite_size must be at least 1, got {suite_size}")
    tests = "1 test" if suite_size == 1 else f"{suite_size} tests"
    name = problem.entry_point
    parts = [
        f"This is what a function does:\n\n{problem.question.strip()}",
        f"This is the function. It is correct:\n\n{fenced(program)}",
        f"Write {tests} of `{name}` that would show a mistake, wherever somebody made one in this function. Let each "
        "run other statements and branches than the ones before it.\n\n"
        f"- A test is one line: `assert {name}(...) == expected`, one call with literal arguments.\n"
        "- `expected` is a literal: what the function returns. One test with another value spoils them all.\n"
        "- No two tests may make the same call.\n"
        f"- Only the first {tests} count.\n\n"
        "Put the asserts, and nothing else, into one fenced block that opens with ```python.",
    ]
    return _conversation(_TESTER, parts)


def _conversation(system: str, parts: list[str]) -> Messages:
    return [{"role": "system", "content": system}, {"role": "user", "content": "\n\n".join(parts)}]


def fenced(source: str) -> str:
    """A Markdown block whose fence is longer than any run of backticks within, so that the source cannot end it."""
    longest = max((len(run) for run in re.findall(r"`+", source)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}python\n{source.strip(chr(10))}\n{fence}"
