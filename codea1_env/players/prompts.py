"""What instruct models are asked in either seat, as chat messages: the words are ours, the content is the method's.

Does not know tokenizers or lengths, and does not read answers: `reading/responses.py` does. What a program says to the
tester in its comments is part of the game, and is passed on as it is.
"""

from __future__ import annotations

import re
from typing import Literal

from codea1_env.errors import ConfigurationError
from codea1_env.problems.kinds import MOST_LISTED, NODES, Kind
from codea1_env.problems.problem import Problem

Messages = list[dict[str, str]]
"""Each with `role` and `content`."""

Access = Literal["white-box", "black-box"]
"""Whether the tester sees the program that it attacks."""

_CODER = "You are an expert Python programmer. You answer with programs that are complete, correct and fast."
_TESTER = (
    "You are an expert at breaking programs. You answer with tests that a correct program passes and a wrong one fails."
)


_CALLED = " Neither call the function nor print anything in it."
_WANTED: dict[Kind, str] = {
    "function": "Define the function `{name}`",
    "generator": "Define the generator function `{name}`",
    "coroutine": "Define the function `{name}` with `async def`",
    "method": "Define the class `{owner}` with the method `{method}`",
    "class": "Define the class `{name}`",
    "program": "Write a whole program, a script",
}
_MUST: dict[Kind, str] = {
    "function": "return its result",
    "generator": "yield its values",
    "coroutine": "return its result",
    "method": "return its result",
    "class": "return what each of its methods is asked for",
    "program": "read its standard input, write its result to the standard output, nothing else,",
}
_ENDING: dict[Kind, str] = {
    "function": _CALLED,
    "generator": _CALLED,
    "coroutine": " Neither run the coroutine nor print anything in it.",
    "method": " Neither call the method nor print anything in it.",
    "class": " Neither make an object of the class nor print anything in it.",
    "program": "",
}
_FORMS: dict[Kind, str] = {
    "function": "",
    "method": "",
    "generator": " `expected` is the list of the values that it yields, of more than {most} the first {most}.",
    "coroutine": " The call is awaited; `expected` is what it returns.",
    "class": (
        ' Its arguments are the list of names `["{name}", "method", ...]` and the list of the arguments of each, '
        "`[[...], [...], ...]`; `expected` is the list of what each returns, None for the first."
    ),
    "program": (
        " Its one argument is the whole standard input as a string, `expected` the whole standard output; white space "
        "at the ends of lines and of the output does not count."
    ),
}


def test_form(problem: Problem) -> str:
    """What a test of the problem looks like, in a sentence or two."""
    form = f"A test is one line: `assert {problem.entry_point}(...) == expected`, one call with literal arguments."
    if problem.kind == "method" and any(name in f"{problem.starter_code}{problem.imports}" for name in NODES):
        form += (
            " A linked list is written as the list of its values, a tree as the list of its values level by level, "
            "with None for a child that is not there."
        )
    return form + _FORMS[problem.kind].format(name=problem.entry_point, most=MOST_LISTED)


def wanted(problem: Problem) -> str:
    """What the coder is asked to write, in a clause."""
    owner, _, method = problem.entry_point.partition("().")
    return _WANTED[problem.kind].format(name=problem.entry_point, owner=owner, method=method)


def for_coder(problem: Problem) -> Messages:
    """Asks for a program: the question, the entry point, the starter code if there is any, one fenced block."""
    parts = [problem.question.strip()]
    if problem.starter_code.strip():
        parts.append(f"Start from this code:\n\n{fenced(problem.starter_code)}")
    if problem.imports.strip():
        parts.append(f"These lines will stand above your program:\n\n{fenced(problem.imports)}")
    packages = " and ".join(["the standard library", *problem.packages])
    parts.append(
        f"{wanted(problem)}, and whatever helpers it needs, in Python with {packages}. "
        f"It must {_MUST[problem.kind]} and hold for every valid input, the unusual ones too. Put the whole program "
        f"into one fenced block that opens with ```python.{_ENDING[problem.kind]}"
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
        f"- {test_form(problem)}\n"
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
        f"- {test_form(problem)}\n"
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
