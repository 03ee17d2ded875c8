"""Short texts for people: what a program's call came to, as the value's source or the exception's name.

For display alone: nothing is paid by it. Does not evaluate or compare what it shows.
"""

from __future__ import annotations

import functools
import json
from typing import Any

from codea1_env.judging.equality import FAILURES, is_opaque
from codea1_env.reading.literals import tree_source
from codea1_env.sandbox.protocol import Outcome, OutcomeKind

MOST_BYTES = 2048
"""Of an encoded value that is shown: what is longer costs more to write down than it tells."""
NOT_PLAIN = "<no plain data>"


def cut(text: Any, most: int) -> Any:
    """A text with what is beyond `most` characters left out, and said; anything else as it is."""
    if not isinstance(text, str) or len(text) <= most:
        return text
    return f"{text[:most]} … [{len(text) - most} more characters]"


def returned_text(outcome: Outcome) -> str:
    """A value as canonical Python source, an error by its name; else in angle brackets why there is neither."""
    if outcome.kind is OutcomeKind.ERROR:
        return outcome.error
    if not outcome.tried:
        return "<not tried>"
    if outcome.kind is not OutcomeKind.VALUE:
        return f"<{outcome.kind}>"
    if len(outcome.value) > MOST_BYTES:
        return f"<a value of {len(outcome.value)} bytes>"
    return _source(outcome.value)


@functools.lru_cache(maxsize=2048)  # programs that fail mostly return the same few values
def _source(value: bytes) -> str:
    if is_opaque(value):
        return NOT_PLAIN
    try:
        tree = json.loads(value)
        return _seen(tree["v"]) if type(tree) is dict and "v" in tree else tree_source(tree)
    except FAILURES:  # a program may have written it itself
        return NOT_PLAIN


def _seen(body: list[Any]) -> str:
    """An iterator or an object, in angle brackets: `<map ['1', '2']>`, `<Point x=1, y=2>`."""
    if body[0] == "values":
        return f"<dict_values {tree_source(body[1])}>"
    if body[0] == "iterator":
        return f"<{body[1]} {tree_source(body[2])}{', ...' if body[3] else ''}>"
    named = [f"{name}={tree_source(value)}" for name, value in body[2] if not name.startswith("__")]
    return f"<{body[1]} {', '.join(named)}>"
