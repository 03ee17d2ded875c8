"""Where the code stands in an LLM's answer: behind a thought, between fences, and without what clings to its edges.

The edges are trimmed by one rule for programs and suites, for the whole answer and for every fenced block. What parses
as it stands stays as it is. Left out, before the code and behind it:

- marks of chat templates and of turns, in any number: `<|im_end|>`, `</s>`, `<end_of_turn>`, `[/INST]`, `<answer>`;
- characters that are no blanks to Python: a byte order mark, no-break and zero-width spaces;
- backticks in the line of the code, and a closing fence that nothing opened;
- before the code: the word `python`, and a line of prose that ends with a colon;
- the indentation of the code as a whole, or of its first line alone; no-break spaces count as indentation.

Does not look for marks between two lines of code, where they may stand in a string, and does not mend what stands
there: a no-break space behind the first letter of a line stays. Prose without a colon is left to who reads the code.
"""

from __future__ import annotations

import ast
import bisect
import keyword
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from codea1_env.reading.parsing import Unparsable, normalised, parse, parses, unindented, without_prefix

# CommonMark: three or more, indented by up to three; a line of backticks with another backtick in it opens nothing.
# Beyond it, tags of an answer may stand on the fences' lines: `<answer>` before the first, `</answer>` behind the last.
_FENCE_LINE = re.compile(r"^( {0,3}|<[^\n<>`]*>[ \t]*)(`{3,}|~{3,})([^\n]*)$", re.MULTILINE)
# In an item of a list, of an item of a list: deeper, or behind the mark of the item.
_ITEM = r"(?:[-*+]|\d{1,4}[.)])[ \t]+"
_FENCE_LINE_OF_LIST = re.compile(rf"^([ \t]*+(?:{_ITEM})?)(`{{3,}}|~{{3,}})([^\n]*)$", re.MULTILINE)
_FENCE_OF_LIST = re.compile(rf"^(?: *+(?:(?<= {{4}})|\t)[ \t]*+|[ \t]*+{_ITEM})(?:`{{3}}|~{{3}})", re.MULTILINE)
_HAS_BODY = re.compile(r"[ \t]|(?:async|def|class|if|elif|else|for|while|try|except|finally|with|match)\b.*:\s*(?:#|$)")
"""A line of code behind which code is indented, or that is indented itself."""
_STATEMENT = r"(?:async[ \t]+def|def|class|import|from|assert)[ \t]+(?=\S)"
_CODE_BEHIND_FENCE = re.compile(rf"[ \t]*(?:(?:python|py)3?[ \t]+)?(?={_STATEMENT})", re.IGNORECASE)
_PYTHON = re.compile(r"[ \t]*(?:python|py)3?(?![\w-])", re.IGNORECASE)
_NOT_WHITE = re.compile(r"\S")

_THINKING = r"(?:think|thinking|thoughts?|reasoning|analysis|seed:think)"
_THINKS = re.compile(rf"\s*(?:<{_THINKING}>|\[THINK\])")
_THOUGHT = re.compile(rf"(?:</{_THINKING}>|\[/THINK\]|<\|end_of_thought\|>)")
_THOUGHT_ALONE = re.compile(rf"{_THOUGHT.pattern}[ \t]*(?:\n|$|(?=`{{3}}|~{{3}}))|<\|channel\|>final<\|message\|>")
"""As it ends outside of a program's strings."""

# No Python begins or ends with one of these, but in a comment. DeepSeek's marks have bars of full width.
_MARK = (
    r"<[|\uff5c][^<>|\uff5c\n]{1,60}[|\uff5c]>|</?[A-Za-z_][\w:.-]{0,60}>|\[/[A-Z_]{2,60}\]"
    r"|(?:[^\S \t\f\n]|[\u200b-\u200f\u2060\ufeff])++"
)
_SEARCHED = 256
"""Characters before an end in which its marks are looked for at a time."""
_MARK_BEFORE = re.compile(
    rf"(?:{_MARK})(?:(?:assistant|model)(?=[ \t]*(?:\n|<|$)))?|`{{1,2}}(?!`)|\[(?:PYTHON|ANSWER|TESTS)\](?=\s)"
)
_MARKS_BEHIND = re.compile(rf"(?:(?:{_MARK})(?:{_MARK}|[ \t\f\n])*|(?<=[^\s`~])`+)$")
_LABEL = re.compile(
    r"(?:python3?|py|assistant):?[ \t]*(?:\n|$)"
    rf"|(?!(?-i:{'|'.join([*keyword.kwlist, 'match', 'case'])})\b)"
    rf"[^\n`=(){{}}\[\]\"#@:\\]{{1,120}}:\**[ \t]*(?:\n|$|(?=`{{3}}|~{{3}}|@|{_STATEMENT}))",
    re.IGNORECASE,
)
_BLANKS = "\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000"
_OTHER_INDENT = re.compile(rf"^[ \t]*+[{_BLANKS}][ \t{_BLANKS}]*+", re.MULTILINE)
"""Indentation with blanks that are none to Python."""
_GOES_ON = re.compile(r"[:(\[{,\\]$|\"{3}|'{3}")
"""A first line that one with more indentation may follow."""

Range = tuple[int, int, re.Match[str]]
"""What stands between two fences: from, to, and the line that opens it."""


@dataclass(frozen=True, slots=True)
class TrimmedAnswer:
    """An answer without thoughts and edges."""

    text: str
    offset: int
    """Where it begins in the normalised response."""
    length: int
    """Its characters there, of which indentation may be left out here."""
    ranges: list[Range]
    """Its fenced blocks, as places in `text`; the last one may be unclosed."""

    @classmethod
    def of(cls, response: str) -> TrimmedAnswer:
        """Read one, in time linear in it."""
        whole = _with_plain_indents(normalised(response))
        start = _thought_end(whole)
        has_marks = start or "```" in whole or "~~~" in whole
        if has_marks and is_script(whole):  # what looks like them stands in strings and comments
            return cls(whole, 0, len(whole), [])
        begin, end = _edges(whole, start, len(whole))
        cut = _unopened_fence(whole[begin:end])
        if cut is not None:
            begin, end = _edges(whole, begin, begin + cut)
        text = _flush(whole[begin:end])
        return cls(text, begin, end - begin, fenced_ranges(text))

    @classmethod
    def of_lists(cls, response: str) -> TrimmedAnswer | None:
        """Likewise with the fenced blocks of lists, and with its edges, which may be items; None where no fence seems
        to stand in a list."""
        whole = normalised(response)
        text = behind_thought(whole)
        if not _FENCE_OF_LIST.search(text):
            return None
        return cls(text, len(whole) - len(text), len(text), fenced_ranges(text, _FENCE_LINE_OF_LIST))

    @classmethod
    def of_indented(cls, response: str, wanted: re.Pattern[str]) -> TrimmedAnswer | None:
        """Likewise of what Markdown takes for code without fences: lines that are indented by four or a tab, behind
        prose and a blank line. None where there are none, or where something wanted stands outside of them."""
        whole = normalised(response)
        text = behind_thought(whole)
        code: list[str] = []
        outside: list[str] = []
        before, is_code, is_apart = "", False, True
        for line in text.split("\n"):
            is_blank, is_indented = not line.strip(), line.startswith((" " * 4, "\t"))
            if not is_blank:
                is_code = is_indented and (is_code or (is_apart and not _HAS_BODY.match(before)))
                before = line
            is_apart = is_blank
            code.append(line if is_code else "")
            outside.append("" if is_code else line)
        if not any(code) or wanted.search("\n".join(outside)):
            return None
        return cls(unindented("\n".join(code)), len(whole) - len(text), len(text), [])

    def blocks(self) -> list[str]:
        """What stands between the fences, as it is written."""
        return blocks_of(self.text, self.ranges)

    def outside(self) -> str:
        """What stands outside of them."""
        ends, starts = (
            [0, *(end for _, end, _ in self.ranges)],
            [*(start for start, _, _ in self.ranges), len(self.text)],
        )
        return "\n".join(self.text[end:start] for end, start in zip(ends, starts, strict=True))

    def is_python(self, place: int) -> bool:
        """Whether the fence of the block at this place says so."""
        return _PYTHON.match(self.ranges[place][2][3]) is not None

    def suite_ranges(self) -> list[Range]:
        """The fenced blocks that a suite is read from; none where they hold no assert, but a program."""
        return self.ranges if any("assert" in self.text[start:end] for start, end, _ in self.ranges) else []

    def regions(self) -> list[tuple[int, int]]:
        """Where the code of a suite may stand in the normalised response."""
        ranges = self.suite_ranges()
        if not ranges or len(self.text) != self.length:
            return [(self.offset, self.offset + self.length)]
        return [(self.offset + start, self.offset + end) for start, end, _ in ranges]


def trimmed(code: str) -> str:
    """The code of a block without what clings to its edges; as it is, if it parses so."""
    if not code.strip():
        return code
    code = _with_plain_indents(code)
    start, end = _edges(code, 0, len(code))
    return _flush(code[start:end])


def is_script(code: str) -> bool:
    """Whether it is code that does something: it parses, and is more than values and names."""
    try:
        statements = parse(code).body
    except Unparsable:
        return False
    return any(not isinstance(each, ast.Expr) or isinstance(each.value, ast.Call) for each in statements)


def _with_plain_indents(code: str) -> str:
    """The code with spaces as indentation where it has other blanks there and does not parse so; of the same length."""
    if not _OTHER_INDENT.search(code) or parses(code):
        return code
    return _OTHER_INDENT.sub(lambda blanks: " " * len(blanks[0]), code)


def fenced_ranges(text: str, line: re.Pattern[str] = _FENCE_LINE) -> list[Range]:
    """What stands between Markdown fences, as places in the normalised text. `line`: what a fence's line looks like."""
    ranges = []
    opening: re.Match[str] | None = None
    begins = 0
    """Where the first character inside of the open fence stands that is not white."""
    for match in line.finditer(text):
        fence, rest = match[2], match[3]
        if opening is None:
            opens = fence[0] == "~" or "`" not in rest
        elif _closes(match, opening):
            ranges.append((_begin(opening), match.start(), opening))
            opening, opens = None, False
        else:  # a model may open once more what its prompt has opened
            opens = bool(rest.strip()) and begins >= match.start()
        if opens:
            opening = match
            inside = _NOT_WHITE.search(text, match.end())
            begins = inside.start() if inside else len(text)
    if opening is not None:
        ranges.append((_begin(opening), len(text), opening))
    return ranges


def blocks_of(text: str, ranges: Sequence[Range]) -> list[str]:
    """What stands in the ranges, without the indentation of its fence."""
    return [_block(text[start:end], line) for start, end, line in ranges]


def _begin(opening: re.Match[str]) -> int:
    """Code may begin on the line of its fence."""
    code = _CODE_BEHIND_FENCE.match(opening[3])
    return opening.end() + 1 if code is None else opening.start(3) + code.end()


def _closes(line: re.Match[str], opening: re.Match[str]) -> bool:
    fence, rest = line[2], line[3].strip()
    is_as_long = fence[0] == opening[2][0] and len(fence) >= len(opening[2])
    is_within = len(line[1]) > len(opening[1]) + 3  # in a docstring
    return is_as_long and not is_within and not line[1].strip() and (not rest or re.match(_MARK, rest) is not None)


def _block(content: str, opening: re.Match[str]) -> str:
    """The content without its common indentation, as far as its opening fence has it too."""
    indent = "" if opening[1].strip() else opening[1]
    depths = [len(line) - len(line.lstrip(" ")) for line in content.split("\n") if line.strip()] if indent else []
    shared = min([len(indent), *depths])
    return re.sub(rf"^ {{1,{shared}}}", "", content, flags=re.MULTILINE) if shared else content


def _thought_end(text: str) -> int:
    """The place behind what a model thought aloud before its answer."""
    ends = [match.end() for match in _THOUGHT_ALONE.finditer(text)]
    if ends:  # one in a program's string is none
        blocks = [(begin, end) for begin, end, _ in fenced_ranges(text)]
        blocks = [(begin, end) for begin, end in blocks if _holds_any(ends, begin, end) and parses(text[begin:end])]
        ends = [place for place in ends if not any(begin < place <= end for begin, end in blocks)]
    begins = _THINKS.match(text)
    first = _THOUGHT.search(text, begins.end()) if begins else None
    return max([0, *ends[-1:], *([first.end()] if first else [])])


def thinks_still(text: str) -> bool:
    """Whether an answer that is being written has begun a thought and not ended it."""
    begins = _THINKS.match(text)
    return begins is not None and _THOUGHT.search(text, begins.end()) is None


def behind_thought(text: str) -> str:
    """An answer without what its model thought aloud."""
    return text[_thought_end(text) :]


def _holds_any(places: Sequence[int], begin: int, end: int) -> bool:
    """Whether one of the places, in order, is in a part of the text."""
    first = bisect.bisect_right(places, begin)
    return first < len(places) and places[first] <= end


def _unopened_fence(text: str) -> int | None:
    """Where a fence stands that ends the answer and that nothing opened, since a prompt did or a model closed twice."""
    ranges = fenced_ranges(text)
    if not ranges or ranges[-1][1] < len(text) or ranges[-1][2][3].strip():
        return None
    start, _, line = ranges[-1]
    if not text[start:].strip():
        return line.start()
    is_end = len(ranges) == 1 and is_script(_flush(text[: line.start()])) and not parses(text[start:])
    return line.start() if is_end else None


def _edges(text: str, start: int, end: int) -> tuple[int, int]:
    """The places between which no mark or label stands at an edge."""
    begin = _code_start(text, start, end)
    stop = end
    place = _before_blanks(text, end)
    while place > begin and (marks := _MARKS_BEHIND.search(text, max(begin, place - _SEARCHED), place)):
        stop = marks.start()
        place = _before_blanks(text, stop)
    if stop < end and parses(text[begin:end]):
        stop = end  # they stand in a comment
    return begin, max(begin, stop)


def _code_start(text: str, start: int, end: int) -> int:
    place, begin = _behind_blanks(text, start, end), start
    while mark := _MARK_BEFORE.match(text, place, end):
        begin = mark.end()
        place = _behind_blanks(text, begin, end)
    label = _LABEL.match(text, place, end)
    return label.end() if label else begin


def _behind_blanks(text: str, start: int, end: int) -> int:
    while start < end and text[start] in " \t\f\n":
        start += 1
    return start


def _before_blanks(text: str, end: int) -> int:
    while end and text[end - 1] in " \t\f\n":
        end -= 1
    return end


def _flush(code: str) -> str:
    """The code without indentation as a whole, or of its first line alone: the first of these readings that parses."""
    if not code.strip():
        return code
    lines = code.lstrip("\f\n").split("\n")
    first, rest = lines[0], "\n".join(lines[1:])
    if first[:1] not in (" ", "\t"):
        is_cut = bool(re.match(r"\n*[ \t]", rest)) and not _GOES_ON.search(first.rstrip())
        other = f"{first}\n{unindented(rest)}"
        return other if is_cut and not parses(code) and parses(other) and is_script(unindented(rest)) else code
    if parses(code):  # blanks before a comment
        return code
    readings = list(_dedented(code))
    return next(filter(parses, readings), readings[-1])


def _dedented(code: str) -> Iterator[str]:
    bare = code.lstrip(" \t\f\n")
    blank = code[: len(code) - len(bare)].rpartition("\n")[2]
    following = re.search(r"\n( *)[^\s]", bare)
    if blank == " " and not (following and len(following[1]) % 2):  # of a tokenizer, before a first word
        yield bare
    yield unindented(code)
    yield bare
    yield without_prefix(code.lstrip("\f\n"), blank)  # a string's lines may have less
    yield unindented(code).lstrip(" \t\f\n")
