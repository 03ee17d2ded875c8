"""What the released code of Code-A1 (arXiv 2603.15611) reads in a response: `fidelity="paper"`.

A suite: every block between ```` ```python ```` and ```` ``` ````, read by groups of lines whose brackets close, at any
indentation; an assert counts where a call stands left of any comparison, by the first comparator, and others are
dropped. Without such a block: every line that begins with "assert", parsed alone, and each is a test or an invalid one.

The reading alone is the released one: what is read becomes data and pure expressions (`grammar.read_released`), and is
never evaluated next to a program. Does not promise the released errors' consequences: `docs/deviations.md` names them.
"""

from __future__ import annotations

import ast
import re
import string
from collections import Counter
from collections.abc import Iterator

from codea1_env.reading.grammar import MAX_SOURCE, WrittenTest, canonical_name, read_released, rejected
from codea1_env.reading.inlining import MAX_INLINED
from codea1_env.reading.parsing import SourceText, Unparsable, parse
from codea1_env.reading.pure_expressions import Reason, given_in
from codea1_env.reading.suites import Ignored, Suite, as_far_as_read, suite_of

_PYTHON_BLOCK = re.compile(r"```python(.*?)```", re.DOTALL)
_UNPRINTABLE = re.compile(f"[^{re.escape(string.printable)}]")
_MARK = re.compile(r"""[#"'()\[\]{}]""")
_STRING_ENDS = {'"': re.compile(r'(?:[^"\\]|\\.)*+"'), "'": re.compile(r"(?:[^'\\]|\\.)*+'")}


def released_program(response: str) -> str:
    """The program: the first block of Python where it is closed, else the whole response."""
    parts = response.split("```python")
    block, closing, _ = parts[1].partition("```") if len(parts) > 1 else ("", "", "")
    return (block if closing else response).strip("\n")


def released_suite(response: str, entry_point: str) -> Suite:
    """The tests, and what was not read."""
    name = canonical_name(entry_point)
    blocks = _PYTHON_BLOCK.findall(response)
    code = "\n".join(blocks) if blocks else response.strip()
    unread: Counter[Ignored] = Counter()
    code = as_far_as_read(code, unread)
    read = _in_blocks(code, name) if blocks else _by_lines(code, name)
    items = list(read)
    unread.update(item for item in items if isinstance(item, Ignored))
    return suite_of([item for item in items if isinstance(item, WrittenTest)], unread)


def released_nonprintable_share(response: str) -> float:
    """The share of characters that are no printable ASCII or white space, in [0, 1]; "" has none."""
    return len(_UNPRINTABLE.findall(response)) / len(response) if response else 0.0


def _by_lines(code: str, entry_point: str) -> Iterator[WrittenTest | Ignored]:
    """Every line that begins with "assert" by itself; of several statements on it, the first."""
    for line in map(str.strip, code.split("\n")):
        if not line.startswith("assert"):
            if line:
                yield Ignored.ASSERT_IN_TEXT if "assert" in line else Ignored.TEXT
            continue
        try:
            statement = parse(line, MAX_SOURCE).body[0]
        except Unparsable as error:
            yield rejected(line, Reason(error.args[0]))
            continue
        yield _test(statement, line, entry_point, _BoundedNames()) or rejected(line, Reason.CALL_NOT_LEFT)


def _in_blocks(code: str, entry_point: str) -> Iterator[WrittenTest | Ignored]:
    """The asserts of every group of lines that parses; `name = value` stands for `name` as an argument from then on."""
    names = _BoundedNames()
    for text in map(str.strip, _groups(code)):
        try:
            body = parse(text).body
        except Unparsable:
            yield Ignored.ASSERT_IN_TEXT if text.startswith("assert") else Ignored.TEXT
            continue
        source = SourceText(text)
        for statement in body:
            if isinstance(statement, ast.Assert):
                yield _test(statement, source.of(statement), entry_point, names) or Ignored.NO_EQUATION
            elif isinstance(statement, ast.Assign) and len(statement.targets) == 1:
                target = statement.targets[0]
                if isinstance(target, ast.Name):
                    names[target.id] = statement.value, len(text)


class _BoundedNames(dict[str, tuple[ast.expr, int]]):
    """What each name of a suite stands for, as it was written, and the size of that."""

    left = MAX_INLINED
    """How much they may still bring into its asserts."""


def _groups(code: str) -> Iterator[str]:
    """Lines that belong together, blank ones left out: up to where as many brackets are closed as were opened."""
    lines: list[str] = []
    depth = 0
    for line in code.split("\n"):
        text = line.strip()
        if not text:
            continue
        if depth < 0 or (depth > 0 and text.startswith("assert ")):
            lines, depth = [], 0
        lines.append(line)
        depth += _depth(text)
        if depth == 0 and not text.endswith("\\"):
            yield "\n".join(lines)
            lines = []


def _depth(line: str) -> int:
    """Brackets opened minus brackets closed, except for those in comments and in strings that end on the line."""
    depth = at = 0
    unclosed = ""  # where a quote has no end, neither has a later one of its kind
    while mark := _MARK.search(line, at):
        at = mark.end()
        if mark[0] == "#":
            break
        if mark[0] not in _STRING_ENDS:
            depth += 1 if mark[0] in "([{" else -1
        elif mark[0] not in unclosed:
            end = _STRING_ENDS[mark[0]].match(line, at)
            at = end.end() if end else at
            unclosed += "" if end else mark[0]
    return depth


def _test(statement: ast.stmt, source: str, entry_point: str, names: _BoundedNames) -> WrittenTest | None:
    """The test that an assert is taken for, accepted or rejected; None where no call stands left of a comparison."""
    if not isinstance(statement, ast.Assert) or not isinstance(statement.test, ast.Compare):
        return None
    left = statement.test.left
    if not isinstance(left, ast.Call):
        return None
    used = [names[value.id] for value in given_in(left) if isinstance(value, ast.Name) and value.id in names]
    size = sum(each for _, each in used)
    if len(source) + size > MAX_SOURCE or size > names.left:
        return rejected(source, Reason.TOO_LARGE if used else Reason.TOO_LONG)
    names.left -= size

    def known(value: ast.expr) -> ast.expr:
        return names[value.id][0] if isinstance(value, ast.Name) and value.id in names else value

    keywords = [ast.keyword(keyword.arg, known(keyword.value)) for keyword in left.keywords]
    call = ast.Call(left.func, [known(value) for value in left.args], keywords)
    return read_released(call, statement.test.comparators[0], source, entry_point)
