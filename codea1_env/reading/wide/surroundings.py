"""What a test puts around its calls: files that it writes for them, and the text that they print.

    p = tmp_path / "a.txt"                           f(scratch_file({"t0/a.txt": "1 2"}, "t0/a.txt"))
    p.write_text("1 2")
    assert f(p) == 3
    with open("a.txt", "w") as out:                  f(scratch_file({"a.txt": "1 2"}, ".") and "a.txt")
        out.write("1 2")
    assert f("a.txt") == 3
    f(3); assert capsys.readouterr().out == "3"      printed(lambda: f(3)) == "3"

`scratch_file` makes the files in the scratch directory of the program's process and gives the path of one; `printed` is
a question, the text that its calls write to standard output. Directories are those of `tmp_path` and `tempfile`, and
the one that the program works in. A file whose content is not plain to see is unknown, and so is every path of that
test, but for relative ones. Nothing is evaluated or written here.
"""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from codea1_env.reading import grammar
from codea1_env.reading.parsing import copied, names_in
from codea1_env.reading.pure_expressions import given_in, known_name
from codea1_env.reading.wide import questions
from codea1_env.sandbox.inside.scope import FILE, PRINTED, PURE

_DIRECTORIES = frozenset(("tempfile.mkdtemp", "mkdtemp", "tempfile.TemporaryDirectory", "TemporaryDirectory"))
_OPENED = frozenset(("tempfile.NamedTemporaryFile", "NamedTemporaryFile", "tempfile.mkstemp", "mkstemp"))
_LISTENING = frozenset(("redirect_stdout", "contextlib.redirect_stdout", "patch", "mock.patch", "unittest.mock.patch"))
_WRITING = re.compile(r"[wax][bt+:a-z0-9]*")
"""Modes in which a file is opened to be written."""
_PATHS = frozenset(("os", "Path", "pathlib"))
_EVALUATED = PURE | {"json"}
"""Names in the contents of files that are known."""
_UNKNOWN = ast.Name("__unknown__", ast.Load())
_EXISTING = ("os.path.exists", "os.path.isdir", "os.path.isfile")
_REMOVING = frozenset(("os.remove", "os.unlink", "os.rmdir", "shutil.rmtree"))
_WHOLE = ("write_text", "write_bytes")
_UNNAMED = "__unnamed__"
"""An open file that gets no name: `open("a", "w").close()`."""
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
        if not self._files and self._printing is None and _PATHS.isdisjoint(names_in(node)):
            return node
        files = ast.Dict([*map(ast.Constant, self._files)], [*map(_sum, self._files.values())])
        is_known = len(self._files) <= _MOST and _are_evaluated(files)
        settled = _Settled(files if is_known else None).visit(copied(node))
        if is_known and self._files:
            settled = _WithFiles(self._entry_point, _path(".", files)).visit(settled)
        return settled  # type: ignore[return-value]  # an expression stays one

    def made(self, value: ast.expr, name: str = "") -> ast.expr | None:
        """The path of a directory or file that an expression makes, or what is below it; None for another expression.
        `name`: of what is open then."""
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
        inside = {
            id(each): self.made(each)
            for each in ast.walk(value)
            if isinstance(each, ast.Call) and known_name(each.func) in _DIRECTORIES
        }
        return copied(value, inside) if inside else None

    def opened(self, value: ast.expr, name: str) -> bool:
        """Whether an expression opens a file of this name, to be written."""
        match value:
            case ast.Call(func=ast.Name(id="open"), args=[path, ast.Constant(value=str(mode)), *_]):
                pass
            case ast.Call(func=ast.Attribute(attr="fdopen"), args=[path, ast.Constant(value=str(mode)), *_]):
                pass
            case ast.Call(func=ast.Attribute(value=path, attr="open"), args=[ast.Constant(value=str(mode)), *_]):
                pass
            case _:
                return False
        place = _place(path)
        if place is None or not _WRITING.fullmatch(mode):
            return False
        self._files[place.name] = self._files.get(place.name, ()) if mode[0] == "a" else ()
        self._open[name] = place.name
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
        if owner is not None and self.opened(owner, _UNNAMED):
            call, owner = ast.Call(ast.Attribute(ast.Name(_UNNAMED), how), given, []), ast.Name(_UNNAMED)
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
            text = _written(content)
            for name in named:
                parts = (*self._files[name], content if text is None else ast.Constant(text))
                self._files[name] = parts if len(parts) <= _MOST else (_UNKNOWN,)
            return True
        is_of_os = known_name(call.func) in ("os.mkdir", "os.makedirs")
        path = _place(call.args[0] if is_of_os and call.args else owner)
        if path is None or (how not in ("touch", "mkdir") and not is_of_os and not (how in _WHOLE and call.args)):
            return False
        self._files[path.name] = () if how == "touch" else call.args[:1] if how in _WHOLE else (ast.Constant(None),)
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


def where_nothing_is(statement: ast.stmt) -> Sequence[ast.stmt] | None:
    """What is done where there is no file yet, as at the beginning of each test: `if not os.path.exists(p): ...`, and
    nothing of `if os.path.exists(p): os.remove(p)`. None for another statement."""
    test = statement.test if isinstance(statement, ast.If) and not statement.orelse else None
    asked = test.operand if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) else test
    if not isinstance(asked, ast.Call) or known_name(asked.func) not in _EXISTING:
        return None
    body: list[ast.stmt] = statement.body  # type: ignore[attr-defined]  # an If
    if asked is not test:
        return body
    done = [
        known_name(each.value.func) for each in body if isinstance(each, ast.Expr) and isinstance(each.value, ast.Call)
    ]
    return [] if len(done) == len(body) and {*done} <= _REMOVING else None


class _Where(NamedTuple):
    text: str
    """As it is written."""
    is_text: bool = False
    is_made: bool = True
    """Below a directory that the test has made; else it stands in the suite as a relative path."""

    @property
    def name(self) -> str:
        """Among the files."""
        return posixpath.normpath(self.text)

    def below(self, *names: str, is_text: bool) -> _Where:
        return self._replace(text=posixpath.join(self.text, *names), is_text=is_text)


def _path(place: str, files: ast.Dict | None = None) -> ast.Call:
    return ast.Call(ast.Name(FILE, ast.Load()), [files or ast.Dict([], []), ast.Constant(place)], [])


def _text(path: ast.expr) -> ast.Call:
    return ast.Call(ast.Name("str", ast.Load()), [path], [])


def _sum(parts: Sequence[ast.expr]) -> ast.expr:
    whole: ast.expr = parts[0] if parts else ast.Constant("")
    for part in parts[1:]:
        whole = ast.BinOp(whole, ast.Add(), part)
    return whole


def _place(node: ast.AST | None) -> _Where | None:
    """Where the file of a path is; None for what is no path, or goes elsewhere."""
    below: Sequence[ast.expr] = ()
    match node:
        case ast.Constant(value=str(text)):
            return _here(text)
        case ast.Call(func=ast.Name(id=name), args=[_, ast.Constant(value=str(place))]) if name == FILE:
            return _Where(place)
        case ast.Call(func=called, args=[]) if known_name(called) in ("os.getcwd", "Path.cwd", "pathlib.Path.cwd"):
            return _here(".")
        case ast.Attribute(value=owner, attr="name") if (held := _place(owner)) is not None and held.is_text:
            return held  # of a `TemporaryDirectory`
        case ast.Call(func=ast.Name(id="str" | "Path"), args=[owner]):
            is_text = node.func.id == "str"  # type: ignore[attr-defined]
        case ast.BinOp(left=owner, op=ast.Div(), right=right):
            is_text, below = False, [right]
        case ast.BinOp(op=ast.Add()) | ast.JoinedStr():
            return _joined(node)
        case ast.Call(func=ast.Attribute(value=owner, attr="joinpath"), args=[*below]):
            is_text = False
        case ast.Call(func=called, args=[owner, *below]) if known_name(called) in (
            "os.path.join",
            "Path",
            "pathlib.Path",
        ):
            is_text = known_name(called) == "os.path.join"
        case ast.Call(func=called, args=[owner]) if known_name(called) == "os.fspath":
            is_text = True
        case _:
            return None
    found, names = _place(owner), [*map(_written, below)]
    if found is None or any(not name or ".." in name or name[:1] == "/" for name in names):
        return None
    return found.below(*names, is_text=is_text)  # type: ignore[arg-type]  # none is None


def _here(text: str) -> _Where | None:
    """The place of a path that is relative, as written."""
    if not text or text[:1] in "/~" or ".." in text or "\0" in text or "\n" in text:
        return None
    return _Where(text, is_text=True, is_made=False)


def _joined(node: ast.BinOp | ast.JoinedStr) -> _Where | None:
    """Of texts one after another, of which the first may be a path."""
    if (text := _written(node)) is not None:
        return _here(text)
    first, *others = node.values if isinstance(node, ast.JoinedStr) else (node.left, node.right)
    owner = _place(first.value if isinstance(first, ast.FormattedValue) else first)
    end = _written(ast.JoinedStr(others)) or ""
    is_below = owner is not None and end[:1] == "/" and ".." not in end
    return owner.below(end[1:], is_text=True) if owner is not None and is_below else None


def _written(node: ast.AST) -> str | None:
    """A text that is plain to see."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.FormattedValue(value=ast.Constant(value=str() | int() as text), conversion=-1, format_spec=None):
            return str(text)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            parts = [_written(left), _written(right)]
        case ast.JoinedStr(values=values):
            parts = [*map(_written, values)]
        case _:
            return None
    return None if None in parts else "".join(parts)  # type: ignore[arg-type]  # none is None


def _are_evaluated(files: ast.Dict) -> bool:
    """Whether what is written to them can be said without the suite."""
    names = [node for node in ast.walk(files) if isinstance(node, ast.Name)]
    bound = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    return {node.id for node in names} - bound <= _EVALUATED


class _Settled(ast.NodeTransformer):
    """Changes the tree that it is given."""

    def __init__(self, files: ast.Dict | None) -> None:
        """`files`: all that are there; None where that is not known."""
        self._files = files

    def visit(self, node: ast.AST) -> ast.AST:
        if _written(node) is None and (found := _place(node)) is not None:
            if self._files is None and found.is_made:
                return _UNKNOWN
            return ast.Constant(found.text) if found.is_text else _path(found.name, self._files)
        match node:
            case ast.Call(func=ast.Lambda(args=ast.arguments(args=[], vararg=None), body=body), args=[], keywords=[]):
                return self.visit(body)  # `buffer.getvalue()`
        return self.generic_visit(node)


class _WithFiles(ast.NodeTransformer):
    """Has the files made before a call that is given none of them: `f(scratch_file(...) and x)`."""

    def __init__(self, entry_point: str, made: ast.expr) -> None:
        self._entry_point = entry_point
        self._made = made

    def visit_Call(self, node: ast.Call) -> ast.AST:
        given = [*node.args, *(each.value for each in node.keywords)]
        if not given or not grammar.is_call(node, self._entry_point) or FILE in names_in(node):
            return self.generic_visit(node)
        return copied(node, {id(given[0]): ast.BoolOp(ast.And(), [self._made, given[0]])})
