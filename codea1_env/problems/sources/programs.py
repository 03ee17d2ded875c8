"""Tests and references of questions about whole programs, and methods of a `Solution` class as functions.

A whole program can come in as it is, a problem of the kind `program`, whose reference is the script. Or its question
becomes one about `solve(text)`, which takes everything that the program would read and returns everything that it would
write, without white space at the ends of lines or of the text: then the reference is wrapped to do that, and a
candidate is asked to be such a function. Does not run anything.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from codea1_env.problems.check_functions import LeftOut
from codea1_env.problems.sources.draft import RowError, tree_of
from codea1_env.reading.test_case import TestCase

ENTRY_POINT = "solve"
STARTER_CODE = f"def {ENTRY_POINT}(text):"
PROGRAM = "program"
"""What tests call a script."""
MAX_TEXT = 1 << 16
"""Characters of an input or an output; longer ones are left out."""

INSTRUCTION = (
    f"Write a function `{ENTRY_POINT}(text)`. It takes the whole standard input as one string and returns the whole "
    "standard output as one string, without white space at the end of any line or of the text."
)
_WRAPPER = f"""import io
import sys

_PROGRAM = {{program!r}}


{STARTER_CODE}
    standard = sys.stdin, sys.stdout
    sys.stdin = io.TextIOWrapper(io.BytesIO(text.encode()), encoding="utf-8")
    sys.stdout = written = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="\\n")
    try:
        names = {{{{"__name__": "__main__", "__file__": "program.py", "exit": sys.exit, "quit": sys.exit}}}}
        exec(compile(_PROGRAM, "program", "exec"), names)
    except SystemExit:
        pass
    finally:
        sys.stdin, sys.stdout = standard
    written.flush()
    return "\\n".join(line.rstrip() for line in written.buffer.getvalue().decode().splitlines()).rstrip()
"""


def question_about_text(question: str) -> str:
    """The question with what is asked for instead of a program."""
    return f"{question.rstrip()}\n\n{INSTRUCTION}\n"


def program_as_function(program: str) -> str:
    """A reference that runs the program once per call, with the text as its standard input."""
    return _WRAPPER.format(program=program)


def wrapped_program(module: ast.Module) -> str | None:
    """The program in what `program_as_function` has made; None for any other module."""
    for node in module.body:
        match node:
            case ast.Assign([ast.Name("_PROGRAM")], ast.Constant(str(program))):
                return program
    return None


def text_tests(
    entry_point: str, inputs: Sequence[object], outputs: Sequence[object]
) -> tuple[list[TestCase], list[LeftOut]]:
    """Pairs of texts (or lists of lines) as tests with the text as the one argument, each once. Raises RowError."""
    if len(inputs) != len(outputs):
        raise RowError(f"inputs and outputs must be equally many, got {len(inputs)} and {len(outputs)}")
    tests: dict[TestCase, None] = {}
    left_out = []
    for given, expected in zip(inputs, outputs, strict=True):
        text, value = _text(given), _text(expected)
        if max(len(text), len(value)) > MAX_TEXT:
            left_out.append(LeftOut(text[:100], f"an input or output of more than {MAX_TEXT} characters"))
            continue
        lines = value.replace("\r\n", "\n").split("\n") if entry_point == PROGRAM else value.splitlines()
        value = "\n".join(line.rstrip() for line in lines).rstrip()
        tests[TestCase(f"{entry_point}({text!r})", repr(value))] = None
    return list(tests), left_out


def call_tests(
    entry_point: str, arguments: Sequence[object], values: Sequence[object], *, are_wrapped: bool
) -> list[TestCase]:
    """Lists of plain arguments and their values as tests. Raises RowError.

    `are_wrapped`: every value stands in a list of its own, as some sets have it for some questions.
    """
    if len(arguments) != len(values):
        raise RowError(f"inputs and outputs must be equally many, got {len(arguments)} and {len(values)}")
    tests: dict[TestCase, None] = {}
    are_wrapped = are_wrapped and all(isinstance(value, list) and len(value) == 1 for value in values)
    for given, value in zip(arguments, values, strict=True):
        if not isinstance(given, list):
            raise RowError(f"an input must be a list of arguments, got {str(given)[:100]!r}")
        if are_wrapped:
            (value,) = value  # type: ignore[misc]  # a list
        tests[TestCase(f"{entry_point}({', '.join(map(repr, given))})", repr(value))] = None
    return list(tests)


def method_as_function(source: str, name: str) -> str:
    """The solution with a function `name` at the top level, where it is a method of a class there. Raises RowError."""
    module = tree_of(source, "the solution")
    if any(isinstance(node, ast.FunctionDef) and node.name == name for node in module.body):
        return source
    for node in module.body:
        methods = [each for each in getattr(node, "body", []) if isinstance(each, ast.FunctionDef)]
        if isinstance(node, ast.ClassDef) and any(each.name == name for each in methods):
            return f"{source.rstrip()}\n\n\ndef {name}(*arguments):\n    return {node.name}().{name}(*arguments)\n"
    raise RowError(f"the solution must define {name}, got none of that name")


def starter_of_method(starter_code: str, name: str) -> str:
    """The first line of the method in a starter `class Solution`, as a function's; empty where there is none."""
    try:
        module = ast.parse(starter_code.rstrip() + "\n        pass\n")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef) and node.name == name:
            node.args.args = [each for each in node.args.args if each.arg != "self"]
            return f"def {name}({ast.unparse(node.args)}):"
    return ""


def _text(value: object) -> str:
    if isinstance(value, list) and all(isinstance(line, str) for line in value):
        return "\n".join(value)
    if isinstance(value, str):
        return value
    raise RowError(f"an input or output must be a text or a list of lines, got {str(value)[:100]!r}")
