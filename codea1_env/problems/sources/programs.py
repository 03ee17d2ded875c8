"""Tests and references of questions about whole programs, and methods of a `Solution` class as functions.

A whole program can come in as it is, a problem of the kind `program`, whose reference is the script. Or its question
becomes one about `solve(text)`, which takes everything that the program would read and returns everything that it would
write, without white space at the ends of lines or of the text: then the reference is wrapped to do that, and a
candidate is asked to be such a function. Does not run anything.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from codea1_env.problems.sources.draft import MAX_TEXT, RowError, shown, tree_of
from codea1_env.problems.sources.pairs import Written, test_of, written_pairs
from codea1_env.reading.literals import NotLiteral
from codea1_env.reading.parsing import source_of
from codea1_env.reading.test_case import TestCase

ENTRY_POINT = "solve"
STARTER_CODE = f"def {ENTRY_POINT}(text):"
PROGRAM = "program"
"""What tests call a script."""

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


def text_tests(entry_point: str, inputs: Sequence[object], outputs: Sequence[object]) -> Written:
    """Pairs of texts (or lists of lines) as tests with the text as the one argument. Raises RowError."""

    def written(given: object, expected: object) -> TestCase:
        text, value = _text(given), _text(expected)
        if max(len(text), len(value)) > MAX_TEXT:
            raise NotLiteral(f"an input or output of more than {MAX_TEXT} characters")
        lines = value.replace("\r\n", "\n").split("\n") if entry_point == PROGRAM else value.splitlines()
        return test_of(entry_point, [text], "\n".join(line.rstrip() for line in lines).rstrip())

    return written_pairs(written, inputs, outputs)


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
            return f"def {name}({source_of(node.args)}):"
    return ""


def _text(value: object) -> str:
    if isinstance(value, list) and all(isinstance(line, str) for line in value):
        return "\n".join(value)
    if isinstance(value, str):
        return value
    raise RowError(f"an input or output must be a text or a list of lines, got {shown(value)!r}")
