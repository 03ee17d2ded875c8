"""Untrusted text -> syntax tree or `Unparsable`, and the splitting of broken text into top-level pieces.

Never raises anything else, never prints, in time linear in the text. Does not promise to isolate the filters of
`warnings` from threads that change them meanwhile without this module.
"""

from __future__ import annotations

import ast
import copy
import itertools
import os
import re
import symtable
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

MAX_CHARACTERS = 1 << 18
"""Longest text that is parsed: a syntax tree takes some hundred times its text's memory."""
MAX_BRACKETS = 120
"""Levels of brackets, more than a value on the wire may have and well within the C stack of any thread."""
MAX_SIGNS = 60
"""Unary operators in a row."""
_DECIMAL_BITS = 2048
"""Of a whole number that is written in decimal: Python's own limit can be set as low as 640 digits."""

_SIGNS_PATTERN = rf"(?:(?:[-+~]|\bnot\b)[ \t\f\n\\]*+){{{MAX_SIGNS + 1}}}"
_SIGNS = re.compile(_SIGNS_PATTERN)
# A string that does not close ends with its line (with the text, if triple-quoted): so that every attempt matches, each
# character is looked at once, and no text makes the scan quadratic.
_TOKEN = re.compile(
    r"""
    (?P<prefix> [rbfuRBFU]{1,2} )?+
    (?: \"{3} (?: [^"\\] | \\. | "(?!"") )*+ (?: \"{3} )?
      | '{3}  (?: [^'\\] | \\. | '(?!'') )*+ (?: '{3} )?
      | "     (?: [^"\\\n] | \\. )*+ "?
      | '     (?: [^'\\\n] | \\. )*+ '? )
    | \#[^\n]*+
    | \\\n
    | [()\[\]{}\n]
    | (?P<signs>
    """
    + _SIGNS_PATTERN
    + ")",
    re.VERBOSE | re.DOTALL,
)
# A line that begins so cannot be inside brackets: an earlier bracket was never closed.
_NEVER_INSIDE = re.compile(r"(?:assert|def|class|import|try|while|with|raise|del|return)\b")
# A line that begins so belongs to the statement before it.
_CONTINUES = re.compile(r"(?:else|elif|except|finally)\b|[)\]}]")
_CODE = re.compile(r"^[^\S\n]*[^\s#]", re.MULTILINE)
_COLUMN_0 = re.compile(r"^[^\s#]", re.MULTILINE)
_parsing = threading.Lock()


class Unparsable(Exception):
    """The text is no Python, or longer or deeper than is worth parsing, or has a whole number with more digits than
    Python reads. The argument: syntax, too_long, too_deep or too_large."""

    line: int = 0
    """Where the parser gave up, from 1; 0: not known."""


@dataclass(frozen=True, slots=True)
class Fragment:
    """Whole lines of a broken text: a statement, as far as can be told, or something that looks like one."""

    text: str
    module: ast.Module | None = None
    """Its syntax tree, if it was wanted and parses."""
    failure: str = ""
    """Why it does not parse, if it was wanted."""


def normalised(text: str) -> str:
    """The text with Python's own reading of line breaks (CRLF and CR are LF) and without a byte order mark."""
    return text.replace("\r\n", "\n").replace("\r", "\n").removeprefix("\ufeff")


def parse(text: str, max_characters: int = MAX_CHARACTERS) -> ast.Module:
    """The syntax tree of a text. Raises Unparsable."""
    if len(text) > max_characters:
        raise Unparsable("too_long")
    if _is_too_deep(text):
        raise Unparsable("too_deep")
    with _quietly():
        return ast.parse(text)


def parses(text: str) -> bool:
    """Whether `parse` takes the text."""
    try:
        parse(text)
    except Unparsable:
        return False
    return True


def scopes_of(text: str) -> symtable.SymbolTable:
    """Which names the scopes of a text bind and use, as Python's compiler finds them. Raises Unparsable."""
    with _quietly():
        return symtable.symtable(text, "program", "exec")


@contextmanager
def _quietly() -> Iterator[None]:
    """Raises Unparsable for what Python's compiler raises."""
    try:
        # Warnings about the text (invalid escapes) concern nobody, and where warnings are errors they would hide it.
        with _parsing, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except (RecursionError, MemoryError):  # the parser's own limits on nesting
        raise Unparsable("too_deep") from None
    except (SyntaxError, ValueError) as error:  # ValueError: null bytes and lone surrogates
        failure = Unparsable("too_large" if "integer string conversion" in str(error) else "syntax")
        failure.line = getattr(error, "lineno", None) or 0
        raise failure from None


def source_of(node: ast.AST) -> str:
    """The source of a tree. Python writes no whole number of thousands of digits: here it is hexadecimal. Raises
    Unparsable for a tree that is too deep."""
    try:
        try:
            return ast.unparse(node)
        except ValueError:
            return ast.unparse(_Hexadecimal().visit(copy.deepcopy(node)))
    except RecursionError:
        raise Unparsable("too_deep") from None


def dump_of(node: ast.AST) -> str:
    """A text that trees share exactly where they are the same, whatever whole numbers are in them."""
    try:
        return ast.dump(node)
    except ValueError:
        return ast.dump(_Hexadecimal().visit(copy.deepcopy(node)))


class _Hex(int):
    def __repr__(self) -> str:
        return hex(self)


class _Hexadecimal(ast.NodeTransformer):
    """Makes `ast` write large whole numbers in hexadecimal."""

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if type(node.value) is int and node.value.bit_length() > _DECIMAL_BITS:
            return ast.copy_location(ast.Constant(_Hex(node.value)), node)
        return node


_Node = TypeVar("_Node")
_NOTHING: Mapping[int, ast.AST | None] = {}


def copied(node: _Node, instead: Mapping[int, ast.AST | None] = _NOTHING) -> _Node:
    """A copy of a tree, for nodes of remembered names are shared, and never changed. `instead`: what stands in it in
    the place of others, by the identities of these."""
    if not isinstance(node, ast.AST):
        return node
    if (other := instead.get(id(node))) is not None:
        return other  # type: ignore[return-value]  # an expression
    fields = {
        name: [copied(each, instead) for each in value] if isinstance(value, list) else copied(value, instead)
        for name, value in ast.iter_fields(node)
    }
    return type(node)(**fields)


def names_in(*nodes: ast.AST) -> list[str]:
    """The names that stand in trees, each as often as it does."""
    return [each.id for node in nodes for each in ast.walk(node) if isinstance(each, ast.Name)]


def _is_too_deep(text: str) -> bool:
    """Brackets or signs nest deeper than is worth parsing; those in comments and plain strings do not count."""
    openers = text.count("(") + text.count("[") + text.count("{")
    if openers <= MAX_BRACKETS and not _SIGNS.search(text):
        return False
    depth = deepest = 0
    for match in _TOKEN.finditer(text):
        first = text[match.start()]
        if first in "([{":
            depth += 1
            deepest = max(deepest, depth)
        elif first in ")]}":
            depth = max(depth - 1, 0)
        elif match["signs"]:
            return True
        elif (prefix := match["prefix"]) and "f" in prefix.lower():
            # The parser opens f-strings: count their brackets as if all stayed open.
            inside = match.group()
            deepest = max(deepest, depth + inside.count("{") + inside.count("(") + inside.count("["))
    return deepest > MAX_BRACKETS


class SourceText:
    """The text of statements. Positions in a syntax tree are lines and UTF-8 bytes."""

    def __init__(self, code: str) -> None:
        # What parses has no lone surrogates, and a CR ends a line of it, too.
        self._lines = code.replace("\r\n", "\n").replace("\r", "\n").encode().split(b"\n")

    def of(self, statement: ast.stmt) -> str:
        """The text from the statement's first character to its last."""
        first, last = statement.lineno - 1, end_line(statement) - 1
        start, end = statement.col_offset, statement.end_col_offset
        if first == last:
            return self._lines[first][start:end].decode()
        lines = [self._lines[first][start:], *self._lines[first + 1 : last], self._lines[last][:end]]
        return b"\n".join(lines).decode()


def end_line(statement: ast.stmt) -> int:
    """The number of the statement's last line."""
    assert statement.end_lineno is not None
    return statement.end_lineno


def unindented(text: str) -> str:
    """Without the indentation that all lines have in common. Blank lines stay: they may stand in a string."""
    starts = [line[: len(line) - len(line.lstrip(" \t"))] for line in text.split("\n") if line.strip()]
    shared = os.path.commonprefix(starts)  # noqa: RUF071  # texts and no paths
    return without_prefix(text, shared) if shared else text


def without_prefix(text: str, prefix: str) -> str:
    """Without these characters at the beginning of every line that has them."""
    return "\n".join(line.removeprefix(prefix) for line in text.split("\n"))


def fragments(text: str, is_wanted: Callable[[str], bool]) -> Iterator[Fragment]:
    """The top-level statements of a text that does not parse as a whole, each parsed if it is wanted.

    What is wanted and does not parse is cut once more, at every line that is not indented. No text is parsed more than
    twice here.
    """
    for piece in _pieces(text):
        whole = _fragment(piece, is_wanted)
        starts = [match.start() for match in _COLUMN_0.finditer(piece) if match.start()] if whole.failure else []
        if starts:  # whatever strings or brackets are open there
            bounds = itertools.pairwise((0, *starts, len(piece)))
            yield from (_fragment(piece[begin:end], is_wanted) for begin, end in bounds)
        elif _CODE.search(piece):
            yield whole


def _fragment(text: str, is_wanted: Callable[[str], bool]) -> Fragment:
    if not is_wanted(text):
        return Fragment(text)
    try:
        return Fragment(text, parse(text))
    except Unparsable as error:
        return Fragment(text, failure=str(error))


def _pieces(text: str) -> Iterator[str]:
    """The text cut before every line that seems to begin a top-level statement; joined, the pieces are the text.

    Comments and blank lines stay with what stands before them, decorators with what they decorate.
    """
    start = 0
    decorated = False
    for position in _statement_starts(text):
        continues = decorated or position == start or _CONTINUES.match(text, position)
        decorated = text[position] == "@"
        if not continues:
            yield text[start:position]
            start = position
    if start < len(text):
        yield text[start:]


def _statement_starts(text: str) -> Iterator[int]:
    """Where a line begins at column 0 outside of strings, and outside of brackets or with a statement's keyword."""
    if _COLUMN_0.match(text):
        yield 0
    depth = 0
    for match in _TOKEN.finditer(text):
        first = text[match.start()]
        if first in "([{":
            depth += 1
        elif first in ")]}":
            depth = max(depth - 1, 0)
        elif first == "\n" and _COLUMN_0.match(text, match.end()):
            if depth and not _NEVER_INSIDE.match(text, match.end()):
                continue
            depth = 0
            yield match.end()
