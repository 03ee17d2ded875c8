"""Rewards of queries that are a prompt and a response, decoded together with special tokens.

`paid` is what OpenRLHF and the server pay. What ends a turn is recognized by its form.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from codea1_env.adapters.seat_rewards import Earned, SeatRewards
from codea1_env.checks import json_object
from codea1_env.errors import FormatError

Texts = Sequence[str]
SEATS = ("coder", "tester")
_LEAST_OVERLAP = 16
"""Characters of a prompt whose beginning was cut off that a query must begin with."""
_LONGEST_MARK = 42
"""Characters of a mark such as `<|im_end|>`."""


async def paid(rewards: SeatRewards, seat: str, queries: Texts, prompts: Texts, labels: Texts) -> dict[str, Any]:
    """Lists as OpenRLHF reads them: `rewards`, `scores`, `extra_logs` by name. Raises FormatError, SandboxError."""

    async def one(query: str, prompt: str, label: str) -> Earned:
        row = {"problem": label} if seat == "coder" else json_object(label, "a tester's label", FormatError)
        response = await asyncio.to_thread(response_of, query, prompt)
        return await rewards.of_row(row.get("problem"), response, row.get("program"), seat)

    earned = await asyncio.gather(*(one(*row) for row in zip(queries, prompts, labels, strict=True)))
    amounts = [each.reward for each in earned]
    logs = {name: [each.measures[name] for each in earned] for name in earned[0].measures} if earned else {}
    return {"rewards": amounts, "scores": amounts, "extra_logs": logs}


def response_of(query: str, prompt: str) -> str:
    """What the model wrote: the query without its prompt, whose beginning may have been cut off, and without the marks
    at its end. Raises FormatError where the query does not begin with its prompt."""
    overlap = len(prompt) if query.startswith(prompt) else _overlap(prompt, query[: len(prompt)])
    if overlap < min(len(prompt), _LEAST_OVERLAP):
        raise FormatError(f"a query must begin with its prompt, got {query[:100]!r}")
    return _without_marks(query[overlap:])


def _overlap(text: str, beginning: str) -> int:
    """Characters of the longest end of the text that the beginning begins with; in time linear in both, for they are
    strangers' (the prefix function of Knuth, Morris and Pratt)."""
    signs = [*beginning, None, *text]
    lengths = [0] * len(signs)
    for place in range(1, len(signs)):
        length = lengths[place - 1]
        while length and signs[place] != signs[length]:
            length = lengths[length - 1]
        lengths[place] = length + (signs[place] == signs[length])
    return lengths[-1]


def _without_marks(response: str) -> str:
    """No Python ends in such a mark, unless it is in a comment."""
    response = response.rstrip()
    while response.endswith(">"):
        mark = response.rfind("<", max(0, len(response) - _LONGEST_MARK))
        if mark < 0 or any(map(str.isspace, response[mark:])):
            break
        response = response[:mark].rstrip()
    return response
