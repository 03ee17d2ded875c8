"""How much of one suite is read: one budget, in steps. Counts no time, so that a text is read alike on every machine.

A step is one node of a syntax tree that is gone through, or 16 characters of a constant in it: 1 to 4 microseconds.
"""

from __future__ import annotations

import ast

MAX_STEPS = 1 << 18
"""Of one suite. What a loop or a call repeats is counted each time."""


class TooMuch(Exception):
    """The suite has more to read than MAX_STEPS: reading ends here."""


class Steps:
    """What is left of the budget of one suite."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = MAX_STEPS

    def take(self, count: int = 1) -> None:
        """Spend some. Raises TooMuch, also each time after that."""
        self.left -= count
        if self.left < 0:
            raise TooMuch


def size_of(constant: object) -> int:
    """The characters that a long constant is written in, more or less."""
    if isinstance(constant, str | bytes):
        return len(constant)
    return constant.bit_length() >> 2 if isinstance(constant, int) else 0


def steps_of(node: ast.AST) -> int:
    """The steps of a node by itself."""
    return 1 + (size_of(node.value) >> 4 if isinstance(node, ast.Constant) else 0)
