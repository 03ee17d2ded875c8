"""What was read of a tester's response: its tests, and by name what was not read. Plain data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from codea1_env.reading.grammar import WrittenTest
from codea1_env.reading.parsing import MAX_CHARACTERS


class Ignored(StrEnum):
    """Why a piece of a response is neither a test nor a rejected one."""

    TEXT = "text"  # no Python, as far as anybody looked: prose
    ASSERT_IN_TEXT = "assert_in_text"  # no Python, with an assert in it: `so assert f(1) == 2`
    FUNCTION = "function"  # pytest's and unittest's functions, `check(candidate)`: asserts in them are not read
    CLASS = "class"
    MAIN_BLOCK = "main_block"  # `if __name__ == "__main__":`
    BLOCK = "block"  # another statement with statements in it: `for`, `if`, `try`, `with`
    ASSIGNMENT = "assignment"  # one that remembers no name: `a, b = 1, 2`, or the entry point's
    STATEMENT = "statement"  # any other statement: `print(f(1))`
    TOO_LONG = "too_long"  # what stands beyond `parsing.MAX_CHARACTERS`
    OUTSIDE_FENCES = "assert_outside_fences"  # a line that begins with an assert, where fenced blocks are read
    DECORATED = "decorated"  # wide reading: a test under another decorator than `pytest.mark.parametrize`
    ROWS = "rows"  # wide reading: the rest of a table that is too long, or of a suite with too many tests
    TOO_MUCH = "too_much"  # the rest of a suite that has more to read than `steps.MAX_STEPS`
    NO_EQUATION = "no_equation"  # paper fidelity, in fences: an assert that is no `call == value`


@dataclass(frozen=True, slots=True)
class Suite:
    """The tests of a tester's response."""

    tests: tuple[WrittenTest, ...]
    """Every assert that was read, in order, rejected ones included; in strict fidelity the top-level ones."""
    unread: tuple[tuple[Ignored, int], ...] = ()
    """What was not read: the reason and how often, the first met first."""

    @property
    def ignored(self) -> int:
        """Statements and unparsable fragments that are no asserts, imports and remembered names apart."""
        return sum(count for reason, count in self.unread if reason is not Ignored.OUTSIDE_FENCES)


def as_far_as_read(code: str, unread: Counter[Ignored]) -> str:
    """The lines of a suite's code that are read."""
    if len(code) <= MAX_CHARACTERS:
        return code
    unread[Ignored.TOO_LONG] += 1
    return code[: code.rfind("\n", 0, MAX_CHARACTERS) + 1 or MAX_CHARACTERS]


def suite_of(tests: Iterable[WrittenTest], unread: Mapping[Ignored, int]) -> Suite:
    """The suite with these tests; `unread` counts the pieces by reason."""
    return Suite(tuple(tests), tuple((reason, count) for reason, count in unread.items() if count))
