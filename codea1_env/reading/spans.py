"""Where the asserts of a suite stand in the response that it was read from, for credit token by token.

Does not read the response anew: it looks for the texts of asserts, where statements begin, in their order. Takes time
linear in the response for every assert.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from codea1_env.reading.answers import TrimmedAnswer
from codea1_env.reading.items import leads_to_assert
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

    None for one that is not found again. Of an assert that is shown cut, the part that is shown; of one over several
    lines, the indentation in between, which reading may have taken away.
    """
    text = normalised(response)
    # In characters of `text`: the places in `response` only differ where line breaks do, or after a byte order mark.
    places = None if len(text) == len(response) else _places(response)
    regions = deque(TrimmedAnswer.of(response).regions())
    cursor = lost = 0
    spans: list[Span | None] = []
    for source in sources:
        while len(regions) > 1 and regions[0][1] <= cursor:
            regions.popleft()
        found = _statement_at(text, source, regions, cursor) if source.strip() and lost < _MAX_LOST else None
        if found is None:
            lost += 1
            spans.append(None)
        else:
            cursor = found.end
            spans.append(Span(places[found.start], places[cursor - 1] + 1) if places else found)
    return spans


test_spans.__test__ = False  # type: ignore[attr-defined]  # pytest: not a test


def _statement_at(text: str, source: str, regions: Iterable[tuple[int, int]], cursor: int) -> Span | None:
    """Where a statement with this text stands, in one of the regions and not before the cursor: at the beginning of a
    line, as an item of a list (`items.py`), behind a semicolon or as a text."""
    lines = r"\n[^\S\n]*+".join(re.escape(line.lstrip(" \t")) for line in source.split("\n"))
    for start, end in regions:
        begin = max(start, cursor)
        for found in re.compile(lines).finditer(text, begin, end):
            place = found.start()
            before = _last_not_blank(text, begin, place)
            # The code of an answer may begin within a line.
            if before in (";", "\n", '"', "'") or (not before and (begin == start or _is_line_start(text, begin))):
                return Span(place, found.end())
            line_start = text.rfind("\n", begin, place) + 1 or begin
            if _is_line_start(text, line_start) and leads_to_assert(text, line_start, place):
                return Span(place, found.end())
    return None


def _last_not_blank(text: str, begin: int, place: int) -> str:
    """The character before the white space that ends at a place, or a line break in it; "" where there is none."""
    while place > begin and text[place - 1] != "\n" and text[place - 1].isspace():
        place -= 1
    return text[place - 1] if place > begin else ""


def _is_line_start(text: str, place: int) -> bool:
    return place == 0 or text[place - 1] == "\n"


def _places(response: str) -> list[int]:
    """The place in the response of every character of its normalised form."""
    start = int(response.startswith("\ufeff"))
    return [
        i for i, character in enumerate(response) if i >= start and (character != "\n" or response[i - 1 : i] != "\r")
    ]
