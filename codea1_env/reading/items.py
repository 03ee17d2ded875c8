"""Asserts as items of a list, as inline code or as doctests -> asserts at the beginning of lines.

    1. assert f(1) == 2        - `assert f(1) == 2`: the base case        Test 1: assert f(1) == 2

and a list of texts, `["assert f(1) == 2", "assert f(2) == 3"]`, as MBPP keeps tests; and doctests as asserts:
`>>> f(1)` above `2` is `assert f(1) == 2`, a `Traceback` is `pytest.raises`. Where the text below is none that Python
writes a literal as, it is compared with `repr`; what is below nothing stays a statement.

For text that is no Python as a whole. A line that is changed is none either: before an assert, Python has nothing on
its line but blanks, a semicolon, or a block's first words and their colon. What stands under an item, indented, loses
that indentation. Does not judge the asserts, and does not look for one within a sentence. Takes linear time.
"""

from __future__ import annotations

import ast
import keyword
import re
from collections.abc import Iterator, Sequence

from codea1_env.reading.parsing import Unparsable, parse, unindented

_MARK = (
    r"(?:[-*+\u2022\u2023\u00b7\u2013\u2014\u25e6][ \t]+|>{1,3}[ \t]*|\[[ xX]\][ \t]+"
    r"|\*{0,2}(?:\(?\d{1,4}[.):]\)?|\([A-Za-z\d]{1,4}\)|[A-Za-z][.)](?=[ \t]))\*{0,2}[ \t]*)"
)
# No quote, no equals sign and no `#` but of a number: no string, assignment or comment is taken for one.
_LABEL = r"(?:[^\n`=#\"'@\\]|#(?=\d)){1,120}?(?::\*{0,2}|\d\*{0,2}[ \t]*[-\u2013\u2014.)])[ \t]*(?=`{0,2}assert\b)"
_NO_BLOCK = rf"(?!(?:{'|'.join((*keyword.kwlist, 'match', 'case'))})\b)"
_LEAD = re.compile(
    rf"(?P<indent>[ \t]*+)(?:{_MARK}{{1,3}}(?:{_LABEL})?|{_NO_BLOCK}{_LABEL})?(?P<ticks>`{{0,2}})(?=assert\b)"
)
"""All that stands before an assert in its line."""
_ITEM = re.compile(rf"(?P<indent>[ \t]*+){_MARK}")
_PROMPT = re.compile(r"(?P<indent>[ \t]*)>>> ?(?P<code>.*)")
_RAISED = re.compile(r"(?P<name>\w+)(?:: (?P<text>.*))?$")
_MAX_LEVELS = 4
"""Of lists in items of lists."""


def asserts_of_items(text: str, level: int = 0) -> str:
    """The text with its items' asserts at the beginning of lines. Every other line stays as it is, but for the
    indentation of what stands under an item that holds an assert."""
    lines = text.split("\n")
    read: list[str] = []
    place = 0
    while place < len(lines):
        line = lines[place]
        read.append(_assert_of(line, is_first=not place, is_last=place == len(lines) - 1))
        place += 1
        item = _ITEM.match(line) or _LEAD.match(line)
        if level < _MAX_LEVELS and item and item.group().strip():
            place = _read_below(lines, place, len(item["indent"]), level, read)
    return "\n".join(read)


def _read_below(lines: Sequence[str], start: int, indent: int, level: int, read: list[str]) -> int:
    """Read what stands under an item, into `read`. Returns where that ends."""
    end = start
    while end < len(lines) and (not lines[end].strip() or len(lines[end]) - len(lines[end].lstrip(" \t")) > indent):
        end += 1
    below = "\n".join(lines[start:end])
    if end > start:
        has_assert = "assert" in below or _LEAD.match(lines[start - 1])
        read.append(asserts_of_items(unindented(below), level + 1) if has_assert else below)
    return end


def asserts_of_texts(code: str) -> str:
    """The texts of a list, where the code is that and nothing else; else the code itself."""
    if "assert" not in code or not code.rstrip().endswith("]"):
        return code
    try:
        body = parse(code).body
    except Unparsable:
        return code
    match body:
        case [ast.Expr(value=ast.List(elts=[_, *_] as parts)) | ast.Assign(value=ast.List(elts=[_, *_] as parts))]:
            texts = [part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)]
            return "\n".join(texts) if len(texts) == len(parts) else code
    return code


def leads_to_assert(text: str, start: int, place: int) -> bool:
    """Whether all that stands in a line, which begins at `start`, before an assert at `place` is left out here."""
    lead = _LEAD.match(text, start)
    return lead is not None and lead.end() == place


def _assert_of(line: str, *, is_first: bool, is_last: bool) -> str:
    lead = _LEAD.match(line)
    if lead is None or not lead.group().strip():
        # The first one's backtick is gone with the edges of the answer, and so may the last one's be.
        return line[: line.rindex("`")] if lead and is_first and line.count("`") == 1 else line
    code, closing, _ = line[lead.end() :].partition(lead["ticks"] or "\n")
    return code if closing or is_last or not lead["ticks"] else line


def asserts_of_doctests(text: str) -> str:
    """The text with its doctests as asserts; itself where it has none."""
    if ">>>" not in text:
        return text
    return "\n".join(_lines_of_doctests(text.split("\n")))


def _lines_of_doctests(lines: list[str]) -> Iterator[str]:
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
        call = f"({code})" if "\n" in code else code
        yield f"assert {call} == {text}" if _is_literal(text) else f"assert repr({code}) == {text!r}"


def _is_literal(text: str) -> bool:
    """Whether Python writes a value as this text."""
    try:
        return repr(ast.literal_eval(text)) == text
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        return False
