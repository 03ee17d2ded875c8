"""Doctests as asserts: `>>> f(1)` above `2` is `assert f(1) == 2`. Text -> text, nothing is evaluated.

Where the text below is a literal that Python would write so, the assert compares with it; where it is another text, the
assert compares with `repr`; a `Traceback` is `pytest.raises`. What is below nothing, or prints, stays a statement.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

_PROMPT = re.compile(r"(?P<indent>[ \t]*)>>> ?(?P<code>.*)")
_RAISED = re.compile(r"(?P<name>\w+)(?:: (?P<text>.*))?$")


def asserts_of_doctests(text: str) -> str:
    """The text with its doctests as asserts; itself where it has none."""
    if ">>>" not in text:
        return text
    return "\n".join(_lines(text.split("\n")))


def _lines(lines: list[str]) -> Iterator[str]:
    place = 0
    while place < len(lines):
        prompt = _PROMPT.match(lines[place])
        place += 1
        if prompt is None:
            yield lines[place - 1]
            continue
        indent, code = prompt["indent"], [prompt["code"]]
        while place < len(lines) and lines[place].startswith(f"{indent}..."):
            code.append(lines[place][len(indent) + 3 :].removeprefix(" "))
            place += 1
        shown = []
        while place < len(lines) and lines[place].strip() and not _PROMPT.match(lines[place]):
            if lines[place].strip().startswith(("```", '"""', "'''")):
                break
            shown.append(lines[place].strip())
            place += 1
        yield from _test("\n".join(code), shown)


def _test(code: str, shown: list[str]) -> Iterator[str]:
    text = "\n".join(shown)
    try:
        ast.parse(code, mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        yield code
        return
    if not shown:
        yield code
    elif shown[0].startswith("Traceback"):
        raised = _RAISED.match(shown[-1])
        if raised is not None:
            match = f", match={re.escape(raised['text'])!r}" if raised["text"] else ""
            yield f"with pytest.raises({raised['name']}{match}):\n    {code}"
    elif not re.match(r"print\s*\(", code):
        yield f"assert {_written(code)} == {text}" if _is_literal(text) else f"assert repr({code}) == {text!r}"


def _written(code: str) -> str:
    return f"({code})" if "\n" in code else code


def _is_literal(text: str) -> bool:
    """Whether Python writes a value as this text."""
    try:
        return repr(ast.literal_eval(text)) == text
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        return False
