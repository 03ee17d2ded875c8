"""A response inside a query, which is a prompt and what a model wrote after it, decoded together with special tokens.

Does not know the tokenizer: what ends a turn is recognized by its form.
"""

from __future__ import annotations

from codea1_env.errors import FormatError

_LEAST_OVERLAP = 16
"""Characters of a prompt whose beginning was cut off that a query must begin with."""
_LONGEST_MARK = 42
"""Characters of a mark such as `<|im_end|>`."""


def response_of(query: str, prompt: str) -> str:
    """What the model wrote: the query without its prompt, whose beginning may have been cut off, and without the marks
    at its end. Raises FormatError where the query does not begin with its prompt."""
    least = min(len(prompt), _LEAST_OVERLAP)
    starts = (start for start in range(len(prompt) - least + 1) if query.startswith(prompt[start : start + least]))
    start = next((start for start in starts if query.startswith(prompt[start:])), None)
    if start is None:
        raise FormatError(f"a query must begin with its prompt, got {query[:100]!r}")
    return _without_marks(query[len(prompt) - start :])


def _without_marks(response: str) -> str:
    """No Python ends in such a mark, unless it is in a comment."""
    response = response.rstrip()
    while response.endswith(">"):
        mark = response.rfind("<", max(0, len(response) - _LONGEST_MARK))
        if mark < 0 or any(map(str.isspace, response[mark:])):
            break
        response = response[:mark].rstrip()
    return response
