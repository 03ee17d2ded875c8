"""What a test asks of files after its calls: whether they are there, and what is in them.

    f(3); assert os.path.exists("a.txt")           written("exists", lambda: f(3), lambda: "a.txt")
    with open(f(3)) as file:                       written("text", lambda: f(3)).splitlines(True) == ["3\\n"]
        assert file.readlines() == ["3\\n"]

`written` is a question: its steps are done in their order, the last of which gives a path. Nothing is evaluated here.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from typing import cast

from codea1_env.reading.parsing import copied, dump_of
from codea1_env.reading.pure_expressions import known_name
from codea1_env.reading.wide import trees
from codea1_env.sandbox.inside.scope import WRITTEN

_ASKED = {
    **{f"os.path.{name}": name for name in ("exists", "isfile", "isdir")},
    "os.path.getsize": "size",
    "os.listdir": "names",
    "exists": "exists",
    "is_file": "isfile",
    "is_dir": "isdir",
    "read_text": "text",
}
"""{a function, or a method of a path: what is asked}."""
_ASKING = re.compile(r"\b(?:exists|is_?file|is_?dir|getsize|listdir|read_text|open)\(")
Question = Callable[[str, ast.expr], ast.expr | None]
"""(what is asked, a path as it is written) -> the question; None for what is no path, or asked of no call."""


def asks(code: str) -> bool:
    """Whether a suite may ask for what was written."""
    return _ASKING.search(code) is not None


def question(asked: str, calls: Sequence[ast.expr], path: ast.expr) -> ast.expr | None:
    """What is at a path after these calls. A path that has a call in it comes of the last one; else None."""
    before = calls
    if inside := {dump_of(each) for each in ast.walk(path) if isinstance(each, ast.Call)}:
        if not calls or dump_of(calls[-1]) not in inside:
            return None
        before = calls[:-1]
    return trees.call(WRITTEN, ast.Constant(asked), *map(trees.function, (*before, path)))


def path_read(value: ast.expr) -> ast.expr | None:
    """The path that `open(path)` or `path.open()` reads as text; None for another expression."""
    match value:
        case ast.Call(func=ast.Name(id="open"), args=[path, *modes], keywords=named):
            pass
        case ast.Call(func=ast.Attribute(value=path, attr="open"), args=[*modes], keywords=named):
            pass
        case _:
            return None
    plain = {"mode": ("r", "rt"), "encoding": ("utf-8", "utf8", "UTF-8", "ascii"), "newline": ("", "\n")}
    given = [("mode", mode) for mode in modes] + [(str(each.arg), each.value) for each in named]
    is_plain = len(modes) < 2 and all(
        isinstance(each, ast.Constant) and each.value in plain.get(name, ()) for name, each in given
    )
    return path if is_plain else None


class Read(ast.NodeTransformer):
    """Puts questions where a condition asks for files."""

    def __init__(self, asked: Question, texts: Mapping[str, ast.expr]) -> None:
        """`texts`: what is in the files that are open to be read, by their names in the suite."""
        self._asked, self._texts = asked, texts
        self.is_any = False

    def of(self, expression: ast.expr) -> ast.expr:
        """The expression with questions in place; itself where it has none."""
        made = self.visit(copied(expression))
        return cast(ast.expr, made) if self.is_any else expression

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if (found := self._found(node)) is not None:
            self.is_any = True
            return found
        return self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id not in self._texts:
            return node
        self.is_any = True  # its lines, one by one
        return _lines(self._texts[node.id])

    def _found(self, node: ast.Call) -> ast.expr | None:
        match node:
            case ast.Call(func=called, args=[path], keywords=[]) if known_name(called) in _ASKED:
                return self._asked(_ASKED[known_name(called)], path)
            case ast.Call(func=ast.Attribute(value=opened, attr="read" | "readlines" as how), args=[], keywords=[]):
                text = self._text(opened)
                return text if text is None or how == "read" else _lines(text)
            case ast.Call(func=ast.Attribute(value=path, attr=how), args=[]) if how in _ASKED:
                return self._asked(_ASKED[how], path)
            case ast.Call(func=called, args=[opened], keywords=[]) if known_name(called) == "json.load":
                text = self._text(opened)
                return None if text is None else trees.call("json.loads", text)
        text = self._text(node)
        return None if text is None else _lines(text)

    def _text(self, opened: ast.expr) -> ast.expr | None:
        """What is in a file that is open to be read."""
        if isinstance(opened, ast.Name):
            return self._texts.get(opened.id)
        path = path_read(opened)
        return None if path is None else self._asked("text", path)


def _lines(text: ast.expr) -> ast.expr:
    return trees.method(text, "splitlines", ast.Constant(True))
