"""An LLM's text -> a program, or a suite of tests: fenced, unfenced, in several fences, truncated, garbage.

Does not promise that a program runs or that a test is right: nothing is executed or evaluated. Never raises for a text,
never prints, takes time linear in it; of a suite's code, what lies beyond `parsing.MAX_CHARACTERS` is not read.
"""

from __future__ import annotations

import ast
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from codea1_env.checks import require, require_choice
from codea1_env.reading import answers, grammar, parsing
from codea1_env.reading.grammar import MAX_SOURCE, Fidelity, WrittenTest, canonical_name, read_assert, rejected
from codea1_env.reading.inlining import SuiteNames
from codea1_env.reading.items import asserts_of_items, asserts_of_texts
from codea1_env.reading.programs.reach import joined, trimmed_program
from codea1_env.reading.pure_expressions import BUILTINS, Reason, Rejected
from codea1_env.reading.released_reading import released_nonprintable_share, released_program, released_suite
from codea1_env.reading.signatures import has_solution_class
from codea1_env.reading.steps import Steps, TooMuch
from codea1_env.reading.suites import Ignored, Suite, as_far_as_read, suite_of
from codea1_env.reading.test_case import TestCase
from codea1_env.reading.wide.reader import WideReader
from codea1_env.reading.wide.relational_tests import read_relational_case
from codea1_env.reading.wide.statements import is_main, targets_of

__all__ = [
    "Ignored",
    "Program",
    "Reason",
    "Suite",
    "WrittenTest",
    "nonprintable_share",
    "read_case",
    "read_program",
    "read_suite",
]

_ASSERT = re.compile(r"\s*assert\b")
_ASSERT_LINE = re.compile(r"^[ \t]*assert\b", re.MULTILINE)
_CLAIMS = re.compile(r"^[ \t]*(?:self\.)?assert", re.MULTILINE)
_CHANGES = re.compile(r":=|\.[^\W\d]")
"""What an assert changes names by, if it does."""
_OF_SCRIPTS = frozenset("\u061c\u200c\u200d\u200e\u200f\ufeff")
"""What joins, parts and directs letters, and a byte order mark: not printable to Python, and written by people."""
# Cheap guesses at what a piece of text is, before anything is parsed.
_SEEMS_ASSIGNMENT = re.compile(r"[^\W\d]\w*[ \t]*(?::[^=\n]*)?=")
_SEEMS_DEFINITION = re.compile(
    rf"(?:import|from|def|async|class|@|for|while|if|try|with)\b|{_SEEMS_ASSIGNMENT.pattern}"
)
_DEFINITIONS = (
    ast.Import,
    ast.ImportFrom,
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.ClassDef,
    ast.Assign,
    *(ast.For, ast.While, ast.If, ast.Try, ast.With),  # they may fill a table
)


@dataclass(frozen=True, slots=True)
class Program:
    """A solution, as read from a coder's response."""

    source: str
    """Python source as far as it can be told; may be anything, also empty."""


def read_program(response: str, entry_point: str, *, fidelity: Fidelity = "strict", trim: bool = False) -> Program:
    """The program in a coder's response. For `paper` fidelity see `released_reading.released_program`.

    With fenced blocks, the program is the last block that defines the entry point. A whole script defines none. Then it
    is the last block marked as Python, else the last block of code, else the last block that is not empty; a block
    that holds only a value, such as a printed result, is not code. Names that it uses and that only earlier blocks
    define are put before it.

    Without fences, the program is the whole response if that parses. Otherwise it is the response's imports,
    definitions, assignments and blocks, if one of them defines the entry point. Otherwise it is the response as it is.
    `answers.py` says which thoughts and edges are left out. `trim`: keep only the entry point and what it needs
    (`programs/reach.py`); not for whole scripts.
    """
    require(isinstance(response, str), "response", "be a text", response)
    source = released_program(response) if fidelity == "paper" else _strict_program(response, entry_point)
    return Program(trimmed_program(source, entry_point) if trim else source)


def _strict_program(response: str, entry_point: str) -> str:
    defines = _definition_of(entry_point.partition("()")[0])  # the class, where it is `Solution().f`
    answer = _answer(response, re.compile(rf"{defines.pattern}|^class[ \t]+Solution\b", re.MULTILINE))
    text = answer.text
    if answer.ranges:
        return _program_of(answer, defines, entry_point)
    try:
        parsing.parse(text)
    except parsing.Unparsable:
        is_defined = defines.search(text) or has_solution_class(text)
        kept = "".join(_definitions(text)) if len(text) <= parsing.MAX_CHARACTERS and is_defined else ""
        return kept if defines.search(kept) or has_solution_class(kept) else text
    return text


def _answer(response: str, wanted: re.Pattern[str]) -> answers.TrimmedAnswer:
    """The answer, with the blocks of its lists, or its indented ones, where only among these something parses that is
    wanted, and nothing that seems to be wanted stands outside of them."""

    def has_it(read: answers.TrimmedAnswer) -> bool:
        pieces = map(answers.trimmed, read.blocks()) if read.ranges else [read.text]
        return any(wanted.search(piece) and parsing.parses(piece) for piece in pieces)

    answer, of_lists = answers.TrimmedAnswer.of(response), answers.TrimmedAnswer.of_lists(response)
    if of_lists is None and not answer.ranges and not has_it(answer):
        indented = answers.TrimmedAnswer.of_indented(response, wanted)
        return indented if indented is not None and has_it(indented) else answer
    if of_lists is None or wanted.search(of_lists.outside()) or has_it(answer) or not has_it(of_lists):
        return answer
    return of_lists


def read_suite(response: str, entry_point: str, *, fidelity: Fidelity = "strict") -> Suite:
    """The tests in a tester's response.

    `strict`: the asserts of all fenced blocks, in order. If no block holds one, the asserts of the whole response.
    `wide`: also asserts in functions, methods and loops, and relations (`wide/reader.py`). `paper`: as
    `released_reading.released_suite` says. If the code does not parse as a whole, its statements are read one by one,
    also those in items of lists (`items.py`).
    """
    require(isinstance(response, str), "response", "be a text", response)
    require_choice("fidelity", fidelity, ("strict", "wide", "paper"))
    if fidelity == "paper":
        return released_suite(response, entry_point)
    answer = _answer(response, _CLAIMS)
    ranges = answer.suite_ranges()
    code = asserts_of_texts("\n".join(map(answers.trimmed, answer.blocks())) if ranges else answer.text)
    reader = (WideReader if fidelity == "wide" else _SuiteReader)(canonical_name(entry_point))
    reader.read(as_far_as_read(code, reader.unread))
    reader.unread[Ignored.OUTSIDE_FENCES] = len(_ASSERT_LINE.findall(answer.outside())) if ranges else 0
    return suite_of(reader.tests, reader.unread)


def asserts_in(response: str) -> int:
    """Asserts at the top level of what `read_suite` reads. Of fenced blocks, where they parse together, else 0: as long
    as they go on to parse, nothing that follows changes the first of them. Of a bare response, those that parse."""
    text = answers.behind_thought(response)
    blocks = answers.blocks_of(text, answers.fenced_ranges(text))
    code = "\n".join(map(parsing.unindented, blocks)) if blocks else text
    if "assert" not in code or answers.thinks_still(response):
        return 0
    try:
        statements = parsing.parse(code).body
    except parsing.Unparsable:
        pieces = [] if blocks else parsing.fragments(code, lambda piece: "assert" in piece)
        statements = [statement for piece in pieces if piece.module is not None for statement in piece.module.body]
    return sum(isinstance(statement, ast.Assert) for statement in statements)


def read_case(case: TestCase, entry_point: str, fidelity: Fidelity = "strict") -> WrittenTest:
    """A stored test (Mistake Book, golden, hidden), by the rules that read it in a response."""
    return (
        read_relational_case(case, entry_point)
        if fidelity == "wide"
        else grammar.read_case(case, entry_point, fidelity)
    )


def nonprintable_share(response: str, fidelity: Fidelity = "strict") -> float:
    """The share of characters that are not printable, in [0, 1]; line breaks, tabs, spaces of every width and what
    joins and directs letters are, and "" has none. In paper fidelity, what is not ASCII is not printable."""
    if fidelity == "paper":
        return released_nonprintable_share(response)
    text = response.replace("\n", "").replace("\r", "").replace("\t", "")
    if not response or text.isprintable():
        return 0.0
    unprintable = [character for character in text if not character.isprintable() and character not in _OF_SCRIPTS]
    return sum(unicodedata.category(character) != "Zs" for character in unprintable) / len(response)


def _program_of(answer: answers.TrimmedAnswer, defines: re.Pattern[str], entry_point: str) -> str:
    """The block of an answer that is its program, with what it needs of those before it."""
    written = answer.blocks()
    places = [place for place, block in enumerate(written) if block.strip()]
    blocks = {place: answers.trimmed(written[place]) for place in places}
    fitting = [place for place in places if defines.search(written[place])]
    fitting = fitting or [place for place in places if defines.search(blocks[place])]
    fitting = fitting or [place for place in places if _has_method(blocks[place], entry_point)]
    fitting = fitting or [place for place in places if has_solution_class(blocks[place])]  # may be an attribute
    if not fitting and len(places) > 1:
        fitting = [place for place in places if answer.is_python(place)]
        fitting = fitting or [place for place in places if answers.is_script(blocks[place])]
    chosen = (fitting or places or [-1])[-1]
    before = [blocks[place] for place in places if place < chosen]
    return joined(before, blocks[chosen]) if before else blocks.get(chosen, "")


def _definition_of(entry_point: str) -> re.Pattern[str]:
    """Matches where a line at column 0 defines the name; no parse, so that truncated programs count."""
    name = re.escape(entry_point)
    return re.compile(
        rf"^(?:(?:async[ \t]+)?def[ \t]+{name}\b|class[ \t]+{name}\b|{name}[ \t]*(?::[^=\n]*)?=(?!=))", re.M
    )


def _has_method(code: str, entry_point: str) -> bool:
    """Whether a `class Solution` seems to have the method, which stands for the function (`problems/kinds.py`)."""
    method = rf"^[ \t]+(?:async[ \t]+)?def[ \t]+{re.escape(entry_point)}\b"
    return has_solution_class(code) and re.search(method, code, re.M) is not None


def _definitions(text: str) -> Iterator[str]:
    """The top-level imports, definitions, assignments and blocks of a text with prose in it."""
    for fragment in parsing.fragments(text, lambda piece: _SEEMS_DEFINITION.match(piece) is not None):
        if fragment.module is not None and all(_is_definition(statement) for statement in fragment.module.body):
            yield fragment.text


def _is_definition(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.AnnAssign):
        return statement.value is not None  # `Note: this` is an annotation to the parser
    return isinstance(statement, _DEFINITIONS) and not (isinstance(statement, ast.If) and is_main(statement))


class _SuiteReader:
    """Collects the tests of one suite, statement by statement."""

    def __init__(self, entry_point: str) -> None:
        self._entry_point = entry_point
        self._names = SuiteNames(entry_point, Steps())
        self.tests: list[WrittenTest] = []
        self.unread: Counter[Ignored] = Counter()

    def read(self, code: str) -> None:
        """Take every statement, or what parses, as far as the budget goes."""
        try:
            try:
                module = parsing.parse(code)
            except parsing.Unparsable:
                self._recover(code)
            else:
                self._take(module, code)
        except TooMuch:
            self.unread[Ignored.TOO_MUCH] += 1

    def _take(self, module: ast.Module, code: str) -> None:
        """Take every statement of code that parses."""
        source = parsing.SourceText(code)
        previous_end = 0  # line numbers begin with 1
        body = module.body
        for index, statement in enumerate(body):
            end = parsing.end_line(statement)
            if isinstance(statement, ast.Assert):
                shares_line = statement.lineno == previous_end or (
                    index + 1 < len(body) and body[index + 1].lineno == end
                )
                self.tests.append(self._test(statement, source.of(statement), shares_line))
            else:
                self._other(statement)
            previous_end = end

    def _recover(self, code: str) -> None:
        """Take what parses of code that does not parse as a whole."""

        def is_wanted(piece: str) -> bool:
            may_matter = "assert" in piece or _SEEMS_ASSIGNMENT.match(piece) or piece.startswith(("import ", "from "))
            return bool(may_matter) or self._names.occurs_in(piece)  # parsing prose costs time and only counts it

        for fragment in parsing.fragments(asserts_of_items(code), is_wanted):
            if fragment.module is not None:
                self._take(fragment.module, fragment.text)
                continue
            if not _ASSERT.match(fragment.text) or _CHANGES.search(fragment.text):
                self._names.forget_in(fragment.text)
            if fragment.failure and _ASSERT.match(fragment.text):
                is_long = len(fragment.text) > MAX_SOURCE
                reason = Reason.TOO_LONG if is_long else Reason(fragment.failure)
                self.tests.append(rejected(fragment.text.strip(), reason))
            else:
                self.unread[Ignored.ASSERT_IN_TEXT if "assert" in fragment.text else Ignored.TEXT] += 1

    def _test(self, statement: ast.Assert, source: str, shares_line: bool) -> WrittenTest:
        if shares_line:
            return rejected(source, Reason.SEVERAL_STATEMENTS)
        if len(source) > MAX_SOURCE:
            return rejected(source, Reason.TOO_LONG)
        try:
            condition = self._names.inlined(statement.test)
        except Rejected as error:
            return rejected(source, error.reason)
        finally:
            self._names.note_changes(statement.test)
        return read_assert(condition, source, self._entry_point)

    def _other(self, statement: ast.stmt) -> None:
        """Remember what an assignment names, the entry point excepted; of anything else, forget what it changes."""
        assigned = statement if isinstance(statement, ast.Assign | ast.AnnAssign) else None
        targets = targets_of(assigned) if assigned else []
        value = assigned.value if assigned else None
        names = [target.id for target in targets if isinstance(target, ast.Name)]
        if value is not None and len(names) == len(targets):
            self._names.bind(((name, value) for name in names if name != self._entry_point), is_written=True)
            self._names.note_changes(value)
            if self._entry_point in names:
                self.unread[Ignored.ASSIGNMENT] += 1
            return
        if isinstance(statement, ast.Import | ast.ImportFrom):
            self._names.bind_imports(statement)
            return
        self._names.forget(statement)
        if isinstance(statement, ast.FunctionDef | ast.ClassDef) and statement.name in BUILTINS:
            self._names.shadow(statement.name)
        self.unread[_kind(statement)] += 1


def _kind(statement: ast.stmt) -> Ignored:
    """What a statement that is no assert is."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
        return Ignored.FUNCTION
    if isinstance(statement, ast.ClassDef):
        return Ignored.CLASS
    if isinstance(statement, ast.If) and "__name__" in parsing.names_in(statement.test):
        return Ignored.MAIN_BLOCK
    if hasattr(statement, "body") or hasattr(statement, "cases"):
        return Ignored.BLOCK
    is_assignment = isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign)
    return Ignored.ASSIGNMENT if is_assignment else Ignored.STATEMENT
