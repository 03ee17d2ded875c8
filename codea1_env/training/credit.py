"""Credit for single tests: which tokens of a suite write which test, and the advantage that each of them gets.

Does not know where a test stands in a response: `RowLabel.spans` says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from codea1_env.training.samples import Span

UNFINISHED = "\N{REPLACEMENT CHARACTER}"


def token_advantages(
    offsets: Sequence[Span], spans: Sequence[Span], values: Sequence[float], rest: float
) -> list[float]:
    """One advantage a token: that of the first span which it shares a character with, else `rest`.

    `offsets[i]`: the characters of token i; a token without characters (an end token) gets `rest`. The spans are in
    order and do not overlap.
    """
    advantages = [rest] * len(offsets)
    place = 0
    for token, (start, end) in enumerate(offsets):
        while place < len(spans) and spans[place][1] <= start:
            place += 1
        if start < end and place < len(spans) and spans[place][0] < end:
            advantages[token] = values[place]
    return advantages


def token_offsets(tokenizer: Any, tokens: Sequence[int]) -> list[Span]:
    """The characters that every token adds to the decoded text, special tokens none.

    A character of several tokens is the last one's. Time is linear: what is complete is not decoded again, but for the
    one piece before, since some tokenizers decode a first token differently.
    """
    offsets: list[Span] = []
    start = done = 0  # of the pieces before and after the last complete character
    known, position = "", 0
    for place in range(len(tokens)):
        text = tokenizer.decode(tokens[start : place + 1], skip_special_tokens=True, clean_up_tokenization_spaces=False)
        if text.endswith(UNFINISHED) and place - done < 8:
            offsets.append((position, position))
            continue
        grown = position + max(0, len(text) - len(known))
        offsets.append((position, grown))
        position = grown
        start, done = done, place + 1
        known = tokenizer.decode(tokens[start:done], skip_special_tokens=True, clean_up_tokenization_spaces=False)
    return offsets
