"""What each kind of problem asks for, in words: what a program must define and do, and what a test of it looks like.

Prompts and the human player say these words; the designs of prompts name them as placeholders (`templates.py`).
"""

from __future__ import annotations

from codea1_env.problems.kinds import MOST_LISTED, NODES, Kind
from codea1_env.problems.problem import Problem

_CALLED = " Neither call the function nor print anything in it."
_WANTED: dict[Kind, str] = {
    "function": "Define the function `{name}`",
    "generator": "Define the generator function `{name}`",
    "coroutine": "Define the function `{name}` with `async def`",
    "method": "Define the class `{owner}` with the method `{method}`",
    "class": "Define the class `{name}`",
    "program": "Write a whole program, a script",
}
DUTIES: dict[Kind, str] = {
    "function": "return its result",
    "generator": "yield its values",
    "coroutine": "return its result",
    "method": "return its result",
    "class": "return what each of its methods is asked for",
    "program": "read its standard input, write its result to the standard output, nothing else,",
}
"""What the program must do, behind the word *must*."""
ENDINGS: dict[Kind, str] = {
    "function": _CALLED,
    "generator": _CALLED,
    "coroutine": " Neither run the coroutine nor print anything in it.",
    "method": " Neither call the method nor print anything in it.",
    "class": " Neither make an object of the class nor print anything in it.",
    "program": "",
}
"""What the program must not do besides, as a sentence behind another one; empty where there is nothing to say."""
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
            "with None for a child that is not there; it does not end with None. An empty one is `[]`."
        )
    form += _FORMS[problem.kind].format(name=problem.entry_point, most=MOST_LISTED)
    for name in problem.raises:
        said = {"raises": name.removesuffix("(message)")} | ({"message": "..."} if name.endswith(")") else {})
        form += f" Where the call raises {said['raises']}, `expected` is `{said}`."
    return form


def wanted(problem: Problem) -> str:
    """What the coder is asked to write, in a clause."""
    owner, _, method = problem.entry_point.partition("().")
    return _WANTED[problem.kind].format(name=problem.entry_point, owner=owner, method=method)
