"""What a test puts around its calls: files that it writes for them, and the text that they print.

    p = tmp_path / "a.txt"                           f(scratch_file({"t0/a.txt": "1 2"}, "t0/a.txt"))
    p.write_text("1 2")
    assert f(p) == 3
    f(3); assert capsys.readouterr().out == "3"      printed(lambda: f(3)) == "3"

`scratch_file` makes the files in the scratch directory of the program's process and gives the path of one; `printed` is
a question, the text that its calls write to standard output. Directories are those of `tmp_path` and `tempfile`. A file
whose content is not plain to see is unknown, and so is every path of that test. Nothing is evaluated or written here.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from codea1_env.reading import grammar
from codea1_env.reading.parsing import copied, names_in
from codea1_env.reading.pure_expressions import given_in, known_name
from codea1_env.reading.wide import questions
from codea1_env.sandbox.inside.scope import FILE, PRINTED

_DIRECTORIES = frozenset(("tempfile.mkdtemp", "mkdtemp", "tempfile.TemporaryDirectory", "TemporaryDirectory"))
_OPENED = frozenset(("tempfile.NamedTemporaryFile", "NamedTemporaryFile", "tempfile.mkstemp", "mkstemp"))
_LISTENING = frozenset(("redirect_stdout", "contextlib.redirect_stdout", "patch", "mock.patch", "unittest.mock.patch"))
_WRITING = frozenset(("w", "wt", "wb", "x", "w+", "w+b", "wb+"))
_UNKNOWN = ast.Name("__unknown__", ast.Load())
_WHOLE = ("write_text", "write_bytes")
_MOST = 32
"""Pieces of one file, or files of one test; with more they are unknown."""


class Surroundings:
    """Of the test that is read now. Expressions that it is given have their names in place."""

    def __init__(self, entry_point: str) -> None:
        """`entry_point`: a `canonical_name`."""
        self._entry_point = entry_point
        self._files: dict[str, Sequence[ast.expr]] = {}
        """What was written to each place; None alone for a directory."""
        self._open: dict[str, str] = {}
        """The places of files that are open to be written, by their names in the suite."""
        self._printing: tuple[ast.expr, ...] | None = None
        """The calls since somebody began to listen; None where nobody does."""
        self.buffer = ""
        """The name of what is printed to since then, and keeps it all."""
        self._count = 0

    @contextmanager
    def scope(self) -> Iterator[None]:
        """What is written inside is there until its end."""
        outside = dict(self._files), dict(self._open), self._printing, self.buffer
        yield
        self._files, self._open, self._printing, self.buffer = outside

    def fixture(self, name: str) -> ast.expr | None:
        """What pytest's own fixture gives."""
        if name == "capsys":
            self._printing = ()
            return ast.Name(name, ast.Load())
        return self._directory("t0") if name == "tmp_path" else None

    def settled(self, node: ast.expr) -> ast.expr:
        """The expression with every path as that of a file among those that are there now."""
        if not self._files and self._printing is None:
            return node
        is_known = len(self._files) <= _MOST
        names: list[ast.expr | None] = [*map(ast.Constant, self._files)] if is_known else [_UNKNOWN]
        settled = _Settled(ast.Dict(names, [*map(_sum, self._files.values())] if is_known else [_UNKNOWN]))
        return settled.visit(copied(node))  # type: ignore[return-value]  # an expression stays one

    def made(self, value: ast.expr, name: str = "") -> ast.expr | None:
        """The path of a directory or file that an expression makes; None for another. `name`: of what is open then."""
        called = known_name(value.func) if isinstance(value, ast.Call) else ""
        self._count += called in _DIRECTORIES or called in _OPENED
        if called in _DIRECTORIES:
            return _text(self._directory(f"t{self._count}"))
        if called in _OPENED:
            suffixes = [each.value.value for each in value.keywords  # type: ignore[attr-defined]  # a Call
                        if each.arg == "suffix" and isinstance(each.value, ast.Constant)]  # fmt: skip
            self._open[name] = place = f"t{self._count}{''.join(map(str, suffixes))}"
            self._files[place] = ()
            return _text(_path(place))
        return None

    def opened(self, value: ast.expr, name: str) -> bool:
        """Whether an expression opens a file of this name, to be written anew."""
        match value:
            case ast.Call(func=ast.Name(id="open"), args=[path, ast.Constant(value=mode), *_]):
                pass
            case ast.Call(func=ast.Attribute(attr="fdopen"), args=[path, ast.Constant(value=mode), *_]):
                pass
            case ast.Call(func=ast.Attribute(value=path, attr="open"), args=[ast.Constant(value=mode), *_]):
                pass
            case _:
                return False
        place = _place(path)
        if place is None or mode not in _WRITING:
            return False
        self._files[place[0]], self._open[name] = (), place[0]
        return True

    def closed(self, name: str) -> None:
        """A file of this name is written no more."""
        self._open.pop(name, None)

    def is_written(self, name: str) -> bool:
        """Whether it is a file that is open."""
        return name in self._open

    def wrote(self, call: ast.Call, is_plain: bool = True) -> bool:
        """Take a statement that writes a file or makes a directory. False for any other one."""
        owner = call.func.value if isinstance(call.func, ast.Attribute) else None
        how, given = getattr(call.func, "attr", ""), given_in(call)
        named = [self._open[name] for name in names_in(call) if name in self._open]
        if named:
            if isinstance(owner, ast.Name) and how in ("close", "flush", "seek"):
                return True
            content: ast.expr = _UNKNOWN
            if isinstance(owner, ast.Name) and how == "write" and is_plain and len(given) == 1:
                content = given[0]
            elif known_name(call.func) == "json.dump" and is_plain and len(call.args) == 2:
                dumps = ast.Attribute(ast.Name("json", ast.Load()), "dumps", ast.Load())
                content = ast.Call(dumps, call.args[:1], call.keywords)
            for place in named:
                parts = (*self._files[place], content)
                self._files[place] = parts if len(parts) <= _MOST else (_UNKNOWN,)
            return True
        is_of_os = known_name(call.func) in ("os.mkdir", "os.makedirs")
        path = _place(call.args[0] if is_of_os and call.args else owner)
        if path is None or (how not in ("touch", "mkdir") and not is_of_os and not (how in _WHOLE and call.args)):
            return False
        self._files[path[0]] = () if how == "touch" else call.args[:1] if how in _WHOLE else (ast.Constant(None),)
        return True

    def spoilt(self, node: ast.AST) -> None:
        """Whoever has an open file in a statement that is not read may write anything to it."""
        for name in names_in(node) if self._open else ():
            if name in self._open:
                self._files[self._open[name]] = (_UNKNOWN,)

    def listen(self, buffer: str) -> None:
        """What is printed from now on goes to a buffer of this name."""
        self._printing, self.buffer = (), buffer

    def is_heard(self, node: ast.AST) -> bool:
        """`capsys.readouterr().out`, `buffer.getvalue()`."""
        match node:
            case ast.Attribute(value=ast.Call(func=ast.Attribute(attr="readouterr")), attr="out"):
                return True
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="getvalue"), args=[], keywords=[]):
                return name == self.buffer
        return False

    def listens(self, opened: ast.expr) -> bool:
        """Whether what is opened by `with` keeps what is printed from now on."""
        called = known_name(opened.func) if isinstance(opened, ast.Call) else ""
        is_stdout = called in _LISTENING and (
            called.endswith("redirect_stdout") or getattr(given_in(opened)[0], "value", "") == "sys.stdout"  # type: ignore[arg-type]
        )
        self._printing = () if is_stdout else self._printing
        return is_stdout

    def note(self, statement: ast.AST, known: Callable[[ast.expr], ast.expr | None], is_read: bool = True) -> bool:
        """Take what a statement may print. Whether somebody listens and it calls the program. `known`: puts names in
        place. `is_read`: it is known what it calls."""
        if self._printing is None:
            return False
        calls = [known(each) for each in ast.walk(statement) if isinstance(each, ast.Call)]
        asked = [each for each in calls if each is not None and grammar.is_call(each, self._entry_point)]
        is_plain = is_read and not questions.is_of_class(self._entry_point) and len(asked) <= 1
        self._printing += tuple(asked) if is_plain else (_UNKNOWN,)
        return bool(asked)

    def printed(self) -> ast.expr:
        """The text that was printed since then, or since this was asked if no buffer keeps it."""
        nothing = ast.arguments([], [], None, [], [], None, [])
        calls = self._printing or ()
        self._printing = calls if self.buffer else ()
        return ast.Call(ast.Name(PRINTED, ast.Load()), [ast.Lambda(nothing, call) for call in calls], [])

    def _directory(self, place: str) -> ast.expr:
        self._files[place] = (ast.Constant(None),)
        return _path(place)


def _path(place: str) -> ast.Call:
    return ast.Call(ast.Name(FILE, ast.Load()), [ast.Dict([], []), ast.Constant(place)], [])


def _text(path: ast.expr) -> ast.Call:
    return ast.Call(ast.Name("str", ast.Load()), [path], [])


def _sum(parts: Sequence[ast.expr]) -> ast.expr:
    whole: ast.expr = parts[0] if parts else ast.Constant("")
    for part in parts[1:]:
        whole = ast.BinOp(whole, ast.Add(), part)
    return whole


def _place(node: ast.AST | None) -> tuple[str, bool] | None:
    """Where the file of a path is, and whether the path is a text; None for what is no path."""
    below: Sequence[ast.expr] = ()
    match node:
        case ast.Call(func=ast.Name(id=name), args=[_, ast.Constant(value=str(place))]) if name == FILE:
            return place, False
        case ast.Call(func=ast.Name(id="str" | "Path"), args=[owner]):
            is_text = node.func.id == "str"  # type: ignore[attr-defined]
        case ast.BinOp(left=owner, op=ast.Div(), right=right):
            is_text, below = False, [right]
        case ast.Call(func=ast.Attribute(value=owner, attr="joinpath"), args=[*below]):
            is_text = False
        case ast.Call(func=called, args=[owner, *below]) if known_name(called) in ("os.path.join", "pathlib.Path"):
            is_text = known_name(called) == "os.path.join"
        case ast.Call(func=called, args=[owner]) if known_name(called) == "os.fspath":
            is_text = True
        case ast.JoinedStr(values=[ast.FormattedValue(value=owner), ast.Constant(value=str(end))]) if end[:1] == "/":
            is_text, below = True, [ast.Constant(end[1:])]
        case _:
            return None
    found = _place(owner)
    names = [each.value for each in below if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    if found is None or len(names) < len(below) or any(".." in name or name[:1] == "/" for name in names):
        return None
    return "/".join((found[0], *names)), is_text


class _Settled(ast.NodeTransformer):
    """Changes the tree that it is given."""

    def __init__(self, files: ast.Dict) -> None:
        self._files = files

    def visit(self, node: ast.AST) -> ast.AST:
        if (found := _place(node)) is not None:
            path = ast.Call(ast.Name(FILE, ast.Load()), [self._files, ast.Constant(found[0])], [])
            return _text(path) if found[1] else path
        match node:
            case ast.Call(func=ast.Lambda(args=ast.arguments(args=[], vararg=None), body=body), args=[], keywords=[]):
                return self.visit(body)  # `buffer.getvalue()`
        return self.generic_visit(node)
