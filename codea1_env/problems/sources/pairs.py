"""Pairs of a set as tests, each by itself: one that is no test leaves the others. And what the graders of sets whose
tests are JSON take for right. Does not run anything.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from codea1_env.problems.check_functions import LeftOut
from codea1_env.problems.sources.draft import RowError, shown, whole_number
from codea1_env.reading.literals import NotLiteral, value_source
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


class Written(NamedTuple):
    """Pairs of a set as tests, each once, in order."""

    tests: list[TestCase]
    left_out: list[LeftOut]
    malformed: str = ""
    """What the first pair must be that is none."""


def test_of(entry_point: str, arguments: Sequence[object], value: object) -> TestCase:
    """One test of plain data. Raises NotLiteral for what is none."""
    return TestCase(f"{entry_point}({', '.join(map(value_source, arguments))})", value_source(value))


def written_pairs(
    written: Callable[[object, object], TestCase], inputs: Sequence[object], outputs: Sequence[object]
) -> Written:
    """Each pair by itself: one that is no test leaves the others. Raises RowError."""
    if len(inputs) != len(outputs):
        raise RowError(f"inputs and outputs must be equally many, got {len(inputs)} and {len(outputs)}")
    tests: dict[TestCase, None] = {}
    left_out, malformed = [], ""
    for given, value in zip(inputs, outputs, strict=True):
        try:
            tests[written(given, value)] = None
        except (RowError, NotLiteral) as error:
            left_out.append(LeftOut(shown(given), str(error)))
            malformed = malformed or (str(error) if isinstance(error, RowError) else "")
    return Written(list(tests), left_out, malformed)


def require_some(*written: Written) -> None:
    """Raise RowError where nothing is a test and something is malformed."""
    malformed = [each.malformed for each in written if each.malformed]
    if malformed and not any(each.tests for each in written):
        raise RowError(malformed[0])


def call_tests(entry_point: str, arguments: Sequence[object], values: Sequence[object]) -> Written:
    """Lists of plain arguments and their values as tests. Raises RowError."""

    def written(given: object, value: object) -> TestCase:
        if not isinstance(given, list):
            raise RowError(f"an input must be a list of arguments, got {shown(given)!r}")
        return test_of(entry_point, given, value)

    return written_pairs(written, arguments, values)


def functional_tests(name: str, inputs: Sequence[object], outputs: Sequence[object]) -> Written:
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


def json_value(given: str) -> Any:
    """Of a text. Raises ValueError, RecursionError."""
    return json.loads(given, parse_int=whole_number)


def checker_for(tests: Iterable[TestCase], checker: str) -> str:
    """The checker, where a value is a list."""
    return checker if any(case.expected.startswith("[") for case in tests) else ""


def with_whole_keys(value: object) -> object:
    """A record whose names are all whole numbers has these as its keys, as in the graders of APPS and TACO: JSON has no
    keys but texts."""
    try:
        return {int(key): each for key, each in value.items()} if isinstance(value, dict) else value
    except ValueError:
        return value
