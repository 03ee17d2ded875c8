"""What an advantage estimator is told of a row beside its reward: who wrote it, and whom it is compared with.

Plain data: it travels with the suites between processes. Knows no tensor.
"""

from __future__ import annotations

from dataclasses import dataclass

Span = tuple[int, int]
"""First character and the one after the last."""


@dataclass(frozen=True, slots=True)
class RowLabel:
    """One row of a batch: one program or one suite."""

    group: str
    """Rows that answer the same prompt: the N programs of a question, the M suites of a program. No other group of the
    round has this name, on any rank."""
    question: str
    """The problem's id."""
    seat: str
    """coder or tester: who wrote the row. In self-play a batch holds both."""
    spans: tuple[Span, ...] = ()
    """Characters of the response that write each rewarded test, in order, for credit: test."""
    test_rewards: tuple[float, ...] = ()
    """One per span."""
