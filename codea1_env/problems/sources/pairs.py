"""Pairs of a set as tests, each by itself: one that is no test leaves the others. What the graders of sets whose tests
are JSON take for right. And whole programs, and methods of a `Solution` class, as functions. Does not run anything.

A whole program can come in as it is, a problem of the kind `program`, whose reference is the script. Or its question
becomes one about `solve(text)`, which takes everything that the program would read and returns everything that it would
write, without white space at the ends of lines or of the text: then the reference is wrapped to do that, and a
candidate is asked to be such a function.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence

from codea1_env.problems.check_functions import Extracted, LeftOut
from codea1_env.problems.kinds import method_in
from codea1_env.problems.sources.draft import MAX_TEXT, ParsedProgram, RowError, json_value, shown
from codea1_env.reading.literals import NotLiteral, value_source
from codea1_env.reading.parsing import source_of
from codea1_env.reading.test_case import TestCase

# JSON has no tuples: each set's own grader takes one for the list that is expected (docs/deviations.md).
TUPLE_AS_LIST = """def check(arguments, returned, reference):
    return (list(returned) if isinstance(returned, tuple) else returned) == reference
"""
TUPLES_AS_LISTS = """def check(arguments, returned, reference):
    if isinstance(returned, tuple):
        returned = list(returned)
    if isinstance(returned, list) and returned and isinstance(returned[0], tuple):
        returned = [list(each) if isinstance(each, (list, tuple)) else each for each in returned]
    return returned == reference
"""


def test_of(entry_point: str, arguments: Sequence[object], value: object) -> TestCase:
    """One test of plain data. Raises NotLiteral for what is none."""
    return TestCase(f"{entry_point}({', '.join(map(value_source, arguments))})", value_source(value))


def written_pairs(
    written: Callable[[object, object], TestCase], inputs: Sequence[object], outputs: Sequence[object]
) -> Extracted:
    """Each pair by itself: one that is no test leaves the others. Raises RowError."""
    if len(inputs) != len(outputs):
        raise RowError(f"inputs and outputs must be equally many, got {len(inputs)} and {len(outputs)}")
    found = Extracted()
    for given, value in zip(inputs, outputs, strict=True):
        try:
            found.tests.append(written(given, value))
        except (RowError, NotLiteral) as error:
            found.left_out.append(LeftOut(shown(given), str(error)))
            found.malformed = found.malformed or (str(error) if isinstance(error, RowError) else "")
    found.tests = list(dict.fromkeys(found.tests))
    return found


def require_some(*written: Extracted) -> None:
    """Raise RowError where nothing is a test and something is malformed."""
    malformed = [each.malformed for each in written if each.malformed]
    if malformed and not any(each.tests for each in written):
        raise RowError(malformed[0])


def call_tests(entry_point: str, arguments: Sequence[object], values: Sequence[object]) -> Extracted:
    """Lists of plain arguments and their values as tests. Raises RowError."""

    def written(given: object, value: object) -> TestCase:
        if not isinstance(given, list):
            raise RowError(f"an input must be a list of arguments, got {shown(given)!r}")
        return test_of(entry_point, given, value)

    return written_pairs(written, arguments, values)


def functional_tests(name: str, inputs: Sequence[object], outputs: Sequence[object]) -> Extracted:
    """Arguments are JSON, one to a line."""

    def written(given: object, expected: object) -> TestCase:
        try:
            arguments = [json_value(line) for line in str(given).split("\n") if line.strip()]
            value = json_value(str(expected))
        except RecursionError:
            raise NotLiteral("too_deep") from None
        except ValueError as error:
            raise RowError(f"a functional test must be JSON, got: {error}") from None
        return test_of(name, arguments, value)

    return written_pairs(written, inputs, outputs)


def checker_for(tests: Iterable[TestCase], checker: str) -> str:
    """The checker, where a value is a list."""
    return checker if any(case.expected.startswith("[") for case in tests) else ""


def with_whole_keys(value: object) -> object:
    """A record whose names are all whole numbers has these as its keys, as in the graders of APPS and TACO: JSON has no
    keys but texts."""
    try:
        return {int(key): each for key, each in value.items()} if isinstance(value, dict) else value
    except (ValueError, TypeError, OverflowError):  # Python's spelling has keys of other types, too
        return value


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


def text_tests(entry_point: str, inputs: Sequence[object], outputs: Sequence[object]) -> Extracted:
    """Pairs of texts (or lists of lines) as tests with the text as the one argument. Raises RowError."""

    def written(given: object, expected: object) -> TestCase:
        text, value = _text(given), _text(expected)
        if max(len(text), len(value)) > MAX_TEXT:
            raise NotLiteral(f"an input or output of more than {MAX_TEXT} characters")
        if entry_point != PROGRAM:  # what a program would read, whose lines all end alike
            text = text.replace("\r\n", "\n").replace("\r", "\n")
        lines = value.replace("\r\n", "\n").split("\n") if entry_point == PROGRAM else value.splitlines()
        return test_of(entry_point, [text], "\n".join(line.rstrip() for line in lines).rstrip())

    return written_pairs(written, inputs, outputs)


def method_as_function(program: ParsedProgram, name: str) -> str:
    """The solution with a function `name` at the top level, where it is a method of a class there. Raises RowError."""
    if name in program.functions:
        return program.source
    for node in program.module.body:
        methods = [each for each in getattr(node, "body", []) if isinstance(each, ast.FunctionDef)]
        if isinstance(node, ast.ClassDef) and any(each.name == name for each in methods):
            return (
                f"{program.source.rstrip()}\n\n\ndef {name}(*arguments):\n    return {node.name}().{name}(*arguments)\n"
            )
    raise RowError(f"the solution must define {name}, got none of that name")


def starter_of_method(starter_code: str, name: str) -> str:
    """The first line of the method in a starter `class Solution`, as a function's; empty where there is none."""
    node = method_in(starter_code, name)
    if node is None:
        return ""
    node.args.args = [each for each in node.args.args if each.arg != "self"]
    return f"def {name}({source_of(node.args)}):"


def _text(value: object) -> str:
    if isinstance(value, list) and all(isinstance(line, str) for line in value):
        return "\n".join(value)
    if isinstance(value, str):
        return value
    raise RowError(f"an input or output must be a text or a list of lines, got {shown(value)!r}")
