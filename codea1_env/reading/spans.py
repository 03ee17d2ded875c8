"""Where the asserts of a suite stand in the response that it was read from, for credit token by token.

Does not read the response anew: it looks for the texts of asserts, where statements begin, in their order. Takes time
linear in the response for every assert.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from codea1_env.reading.answers import Answer
from codea1_env.reading.parsing import normalised

_MAX_LOST = 64
"""Asserts that are looked for in vain before the rest is given up: each costs a pass over the response."""


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of a response, in characters of the response as it came."""

    start: int
    end: int
    """Exclusive."""


def test_spans(response: str, sources: Sequence[str]) -> list[Span | None]:
    """Where the asserts of a suite stand in the response that it was read from: `sources`, as read, in order.

    None for one that is not found again as it is written: over several lines of an indented fence, for example. Of an
    assert that is shown cut, the part that is shown.
    """
    text = normalised(response)
    # In characters of `text`: the places in `response` only differ where line breaks do, or after a byte order mark.
    places = None if len(text) == len(response) else _places(response)
    regions = Answer.of(response).regions()
    cursor = lost = 0
    spans: list[Span | None] = []
    for source in sources:
        place = _statement_at(text, source, regions, cursor) if source and lost < _MAX_LOST else None
        if place is None:
            lost += 1
            spans.append(None)
        else:
            cursor = place + len(source)
            spans.append(Span(places[place], places[cursor - 1] + 1) if places else Span(place, cursor))
    return spans


test_spans.__test__ = False  # type: ignore[attr-defined]  # pytest: not a test


def _statement_at(text: str, source: str, regions: Sequence[tuple[int, int]], cursor: int) -> int | None:
    """Where a statement with this text begins, in one of the regions and not before the cursor."""
    pattern = re.compile(rf"(?:^|;)[^\S\n]*({re.escape(source)})", re.MULTILINE)
    for start, end in regions:
        # Cut out, since the code of an answer may begin within a line.
        match = pattern.search(text[start:end], max(cursor - start, 0)) if end > cursor else None
        if match is not None:
            return start + match.start(1)
    return None


def _places(response: str) -> list[int]:
    """The place in the response of every character of its normalised form."""
    start = int(response.startswith("\ufeff"))
    return [
        i for i, character in enumerate(response) if i >= start and (character != "\n" or response[i - 1 : i] != "\r")
    ]
