"""One assertion about a problem's function, as source text. Plain data: nothing is checked or run here."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TestCase:
    """One assertion about the entry point, as canonical Python source text.

    `call` is one direct call of the entry point with pure arguments, `expected` the value it must equal. Under wide and
    paper fidelity a Mistake Book also holds a condition or an expression around one call as `call`.
    """

    __test__ = False  # pytest: not a test class

    call: str
    expected: str

    def __str__(self) -> str:
        return f"assert {self.call} == {self.expected}"
