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
the one that the program works in, below which those of `/tmp` are. A file whose content is not plain to see is unknown,
and so is every path of that test but for relative ones that lead elsewhere. Nothing is evaluated or written here.
"""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import NamedTuple, cast

from codea1_env.reading import grammar
from codea1_env.reading.parsing import copied, dump_of, names_in
from codea1_env.reading.pure_expressions import given_in, known_name
from codea1_env.reading.steps import Steps, steps_of
from codea1_env.reading.wide import files_left, questions, trees
from codea1_env.reading.wide.trees import last_name
from codea1_env.sandbox.inside.scope import FILE, PACKAGES, PRINTED, PURE, ROWS, WRITTEN

_DIRECTORIES = frozenset(("tempfile.mkdtemp", "mkdtemp", "tempfile.TemporaryDirectory", "TemporaryDirectory"))
_OPENED = frozenset(("tempfile.NamedTemporaryFile", "NamedTemporaryFile", "tempfile.mkstemp", "mkstemp"))
_LISTENING = frozenset(("redirect_stdout", "contextlib.redirect_stdout", "patch", "mock.patch", "unittest.mock.patch"))
_WRITING = re.compile(r"[wax][bt+:a-z0-9]*")
"""Modes in which a file is opened to be written."""
_PATHS = frozenset(("os", "Path", "pathlib"))
_EVALUATED = PURE | {ROWS, "json", *PACKAGES, "np", "pd"}
"""Names in the contents of files that are known."""
_EXISTING = ("os.path.exists", "os.path.isdir", "os.path.isfile")
_REMOVING = frozenset(("os.remove", "os.unlink", "os.rmdir", "shutil.rmtree"))
_WHOLE = ("write_text", "write_bytes")
_OF_TABLES = ("to_csv", "to_json")
_WRITERS = re.compile(
    "connect|copy.*|create.*|dump|extract.*|generate.*|imsave|imwrite|link.*|make.*|mkdir|mknod|move|open|prepare.*|rename|"
    "save.*|symlink.*|to_(?:csv|excel|feather|file|hdf|html|json|parquet|pickle|sql|xml)|tofile|touch|truncate|unpack.*|"
    "utime|write.*|ZipFile"
)
"""Functions that may write to a path that they are given."""
_IN_TMP = re.compile(r"""["']/tmp[/"']|\bgettempdir\(""")
_TMP = "tmp"
_SEEMS_PATH = re.compile(r"[\w./ -]*(?:/[\w. -]*|\.\w{1,8})")
_Known = Callable[[ast.expr], ast.expr | None]
"""Puts names in place; None where that is not known."""
_UNNAMED = "__unnamed__"
"""An open file that gets no name: `open("a", "w").close()`."""
_MOST = 32
"""Pieces of one file, files of one test, or calls before what is asked of files; with more they are unknown."""
_MOST_BITS = 64
"""Of a number in a file's name or text."""


class Surroundings:
    """Of the test that is read now. Expressions that it is given have their names in place."""

    def __init__(self, entry_point: str, steps: Steps, known: _Known) -> None:
        """`entry_point`: a `canonical_name`; `known`: for what has names in it."""
        self._entry_point, self._steps, self._known = entry_point, steps, known
        self._files: dict[str, Sequence[ast.expr]] = {}
        """What was written to each place; None alone for a directory."""
        self._open: dict[str, str] = {}
        """The places of files that are open to be written, by their names in the suite."""
        self._rows: dict[str, _RowWriter] = {}
        """What `csv.writer(out)` is called in the suite."""
        self.is_asked_for_files = False
        """Whether the suite may ask for what its calls have written."""
        self._calls: tuple[ast.expr, ...] = ()
        """Of the test so far; all of them where somebody listens or asks for files."""
        self._heard: int | None = None
        """How many of them were made before somebody began to listen; None where nobody does."""
        self.texts: dict[str, ast.expr] = {}
        """What is in the files that are open to be read, by their names in the suite."""
        self.buffer = ""
        """The name of what is printed to since then, and keeps it all."""
        self._count = 0
        self._is_lost = False
        """Whether files may be anywhere."""

    def begin(self, code: str) -> None:
        """See what a suite may ask of files, and whether it has them in `/tmp`: that is a directory below the one that
        the program works in."""
        self.is_asked_for_files = files_left.asks(code)
        if self.is_asked_for_files and _IN_TMP.search(code):
            self._files[_TMP] = (ast.Constant(None),)

    @contextmanager
    def scope(self) -> Iterator[None]:
        """What is written inside is there until its end."""
        outside = dict(self._files), dict(self._open), self._calls, self._heard, self.buffer, dict(self.texts)
        is_lost = self._is_lost
        yield
        self._files, self._open, self._calls, self._heard, self.buffer, self.texts = outside
        self._is_lost = is_lost

    def fixture(self, name: str) -> ast.expr | None:
        """What pytest's own fixture gives."""
        if name == "capsys":
            self.listen("")
            return trees.name(name)
        return self._directory("t0") if name == "tmp_path" else None

    def settled(self, node: ast.expr) -> ast.expr:
        """The expression with every path as that of a file among those that are there now."""
        if not self._files and not self._is_lost and self._heard is None and _PATHS.isdisjoint(names_in(node)):
            return node
        self._steps.take(len(self._files))
        self._is_lost |= len(self._files) > _MOST
        for part in () if self._is_lost else chain.from_iterable(self._files.values()):
            for each in ast.walk(part):
                self._steps.take(steps_of(each))
        is_in_tmp = _TMP in self._files
        if self._is_lost:
            return cast(ast.expr, _Settled(None, None, is_in_tmp).visit(copied(node)))
        files = ast.Dict([*map(ast.Constant, self._files)], [*map(_sum, self._files.values())])
        unknown = {place for place, parts in self._files.items() if not all(map(_is_evaluated, parts))}
        settled = _Settled(None if unknown else files, unknown, is_in_tmp).visit(copied(node))
        if self._files and not unknown:
            settled = _WithFiles(self._entry_point, _path(".", files)).visit(settled)
        return cast(ast.expr, settled)

    def made(self, value: ast.expr, name: str = "") -> ast.expr | None:
        """The path of a directory or file that an expression makes, or what is below it; None for another expression.
        `name`: of what is open then."""
        called = known_name(value.func) if isinstance(value, ast.Call) else ""
        self._count += called in _DIRECTORIES or called in _OPENED
        if called in _DIRECTORIES:
            return trees.call("str", self._directory(f"t{self._count}"))
        if called in _OPENED:
            suffixes = [_written(each.value) or "" for each in value.keywords if each.arg == "suffix"]  # type: ignore[attr-defined]
            self._open[name] = place = f"t{self._count}{''.join(suffixes)}"
            self._files[place] = ()
            return trees.call("str", _path(place))
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
        """A file of this name is open no more."""
        self._open.pop(name, None)
        self.texts.pop(name, None)

    def is_written(self, name: str) -> bool:
        """Whether it is a file that is open."""
        return name in self._open or name in self._rows

    def writes_rows(self, value: ast.expr, name: str) -> bool:
        """Whether an expression is `csv.writer(out)`, or `csv.DictWriter(out, names)`, of this name from now on."""
        match value:
            case ast.Call(func=called, args=[ast.Name(id=file), *given], keywords=options) if file in self._open:
                kind = known_name(called)
            case _:
                return False
        names = [each.value for each in options if each.arg == "fieldnames"] or given
        fields = self._known(names[0]) if names and kind == "csv.DictWriter" else None
        if kind not in ("csv.writer", "csv.DictWriter") or (fields is None) != (kind == "csv.writer") or len(given) > 1:
            return False
        self._rows[name] = _RowWriter(self._open[file], fields, [each for each in options if each.arg != "fieldnames"])
        return True

    def wrote(self, call: ast.Call, is_plain: bool = True) -> bool:
        """Take a statement that writes a file or makes a directory. False for any other one."""
        owner = call.func.value if isinstance(call.func, ast.Attribute) else None
        how, given = getattr(call.func, "attr", ""), given_in(call)
        if owner is not None and self.opened(owner, _UNNAMED):
            call, owner = ast.Call(ast.Attribute(ast.Name(_UNNAMED), how), given, []), ast.Name(_UNNAMED)
        if owner is not None and self.writes_rows(owner, _UNNAMED):
            owner = ast.Name(_UNNAMED)
        if isinstance(owner, ast.Name) and owner.id in self._rows:
            rows = self._rows[owner.id]
            self._add(rows.place, rows.written(how, given) if is_plain else trees.UNKNOWN)
            return True
        named = [self._open[name] for name in names_in(call) if name in self._open]
        if named:
            if isinstance(owner, ast.Name) and how in ("close", "flush", "seek"):
                return True
            content: ast.expr = trees.UNKNOWN
            is_own = isinstance(owner, ast.Name) and owner.id in self._open and is_plain and len(given) == 1
            if is_own and how == "write":
                content = given[0]
            elif is_own and how == "writelines":
                content = trees.method(ast.Constant(""), "join", *given)
            elif known_name(call.func) == "json.dump" and is_plain and len(call.args) == 2:
                content = trees.call("json.dumps", call.args[0], options=call.keywords)
            for place in named:
                self._add(place, content)
            return True
        is_of_os = known_name(call.func) in ("os.mkdir", "os.makedirs")
        if self._removed(call, owner):
            return True
        is_table = how in _OF_TABLES and call.args
        path = _place(call.args[0] if (is_of_os or is_table) and call.args else owner)
        if is_table and path is not None:
            text = ast.Call(call.func, call.args[1:], call.keywords)
            self._files[path.name] = (text,) if is_plain else (trees.UNKNOWN,)
            return True
        if path is None or (how not in ("touch", "mkdir") and not is_of_os and not (how in _WHOLE and call.args)):
            return False
        self._files[path.name] = () if how == "touch" else call.args[:1] if how in _WHOLE else (ast.Constant(None),)
        return True

    def _add(self, place: str, content: ast.expr) -> None:
        text = _written(content)
        parts = (*self._files[place], content if text is None else ast.Constant(text))
        self._files[place] = parts if len(parts) <= _MOST else (trees.UNKNOWN,)

    def _removed(self, call: ast.Call, owner: ast.expr | None) -> bool:
        """Take the removal of a file or a directory. False for any other call."""
        by_name = known_name(call.func) in _REMOVING
        place = _place(call.args[0] if by_name and call.args else owner)
        if place is None or not (by_name or last_name(call.func) in ("unlink", "rmdir")):
            return False
        for each in [each for each in self._files if f"{each}/".startswith(f"{place.name}/")]:
            del self._files[each]
        return True

    def spoilt(self, statement: ast.AST) -> None:
        """Whoever has a file in a statement that is not read may write anything to it."""
        for name in names_in(statement) if self._open or self._rows else ():
            place = self._open.get(name) or (self._rows[name].place if name in self._rows else "")
            if place:
                self._files[place] = (trees.UNKNOWN,)
        for call in ast.walk(statement):
            self._steps.take()
            if not isinstance(call, ast.Call) or not _WRITERS.fullmatch(last_name(call.func)) or _only_reads(call):
                continue
            owner = call.func.value if isinstance(call.func, ast.Attribute) else call.func
            places = [*filter(None, map(_place, map(self._known, (owner, *given_in(call)))))]
            paths = [place.name for place in places if place.is_made or _SEEMS_PATH.fullmatch(place.text)]
            self._files |= dict.fromkeys(paths, (trees.UNKNOWN,))
            self._is_lost |= not paths and last_name(call.func) in ("open", "write_text", "write_bytes", "touch")

    def listen(self, buffer: str) -> None:
        """What is printed from now on goes to a buffer of this name."""
        self._heard, self.buffer = len(self._calls), buffer

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
        given = given_in(opened)[:1] if called in _LISTENING else []  # type: ignore[arg-type]  # a Call
        is_stdout = called in _LISTENING and (
            called.endswith("redirect_stdout") or any(getattr(each, "value", "") == "sys.stdout" for each in given)
        )
        self._heard = len(self._calls) if is_stdout else self._heard
        return is_stdout

    def note(self, statement: ast.AST, is_read: bool = True) -> bool:
        """Take what a statement may print or write. Whether somebody wants that and it calls the program. `is_read`: it
        is known what it calls."""
        if self._heard is None and not self.is_asked_for_files:
            return False
        calls = [self._known(each) for each in ast.walk(statement) if isinstance(each, ast.Call)]
        asked = [each for each in calls if each is not None and grammar.is_call(each, self._entry_point)]
        is_plain = is_read and not questions.is_of_class(self._entry_point) and len(asked) <= 1
        self._calls += tuple(asked) if is_plain else (trees.UNKNOWN,)
        return bool(asked)

    def asked(self, expression: ast.expr) -> ast.expr:
        """The expression with questions in the places of what it asks of files."""
        if not self.is_asked_for_files or not self._calls:
            return expression
        return files_left.Read(self._left, self.texts).of(expression)

    def _left(self, asked: str, written: ast.expr) -> ast.expr | None:
        """What is at a path now. None for what is no path, and where a call is made for another, or would be twice."""
        path = self._known(written)
        place = _place(path)
        calls = [call for call in self._calls if isinstance(call, ast.Call)]
        if (
            self._is_lost
            or len(self._calls) > _MOST
            or any(grammar.mentions(given, self._entry_point) for call in calls for given in given_in(call))
        ):
            return None
        if place is not None:
            path = ast.Constant(place.name)
        elif path is None or not grammar.mentions(path, self._entry_point):
            return None
        return files_left.question(asked, _in_turn(self._calls), path)

    def opens(self, value: ast.expr, name: str) -> bool:
        """Whether an expression opens a file that the program may have written, to be read under this name."""
        path = files_left.path_read(value) if self.is_asked_for_files and self._calls else None
        text = None if path is None else self._left("text", path)
        if text is not None:
            self.texts[name] = text
        return text is not None

    def printed(self) -> ast.expr:
        """The text that was printed since then, or since this was asked if no buffer keeps it."""
        calls = _in_turn(self._calls[self._heard or 0 :])
        self._heard = self._heard if self.buffer else len(self._calls)
        return trees.call(PRINTED, *map(trees.function, calls))

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


class _RowWriter(NamedTuple):
    """A writer of rows to a file."""

    place: str
    fields: ast.expr | None
    """The names of the columns, where rows are dicts."""
    options: list[ast.keyword]

    def written(self, how: str, given: Sequence[ast.expr]) -> ast.expr:
        """The text that a method writes."""
        rows: ast.expr = trees.UNKNOWN
        if how in ("writerow", "writerows") and len(given) == 1:
            rows = given[0] if how == "writerows" else trees.listed(given)
        elif how == "writeheader" and not given and self.fields is not None:
            rows = trees.listed([trees.call("dict", trees.call("zip", self.fields, self.fields))])
        return trees.call(ROWS, rows, self.fields or ast.Constant(None), options=self.options)


def _in_turn(calls: Sequence[ast.expr]) -> Sequence[ast.expr]:
    """The calls, one after another: what the first of them may change is not made anew for another."""
    made: set[str] = set()
    return [_MadeOnce(made).visit(copied(call)) for call in calls] if len(calls) > 1 else calls


def _only_reads(call: ast.Call) -> bool:
    """Whether it opens a file to be read."""
    named = [each.value for each in call.keywords if each.arg == "mode"]
    is_method = isinstance(call.func, ast.Attribute) and known_name(call.func.value) not in ("io", "gzip", "codecs")
    mode = [*named, *call.args[0 if is_method else 1 :]][:1]
    text = getattr(mode[0], "value", None) if mode else "r"
    return last_name(call.func) == "open" and isinstance(text, str) and text[:1] == "r" and "+" not in text


def _path(place: str, files: ast.Dict | None = None) -> ast.Call:
    return trees.call(FILE, files or ast.Dict([], []), ast.Constant(place))


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
        case ast.Call(func=called, args=[]) if known_name(called) == "tempfile.gettempdir":
            return _here("/tmp")
        case ast.Attribute(value=owner, attr="parent") | ast.Call(func=ast.Attribute(attr="dirname"), args=[owner]):
            held = _place(owner)
            is_call = isinstance(node, ast.Call)
            return held and held._replace(text=posixpath.dirname(held.text) or ".", is_text=is_call)
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
    """The place of a path that is relative, as written, or in `/tmp`."""
    text = text[1:] if f"{text}/".startswith("/tmp/") else text
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
            return None if isinstance(text, int) and text.bit_length() > _MOST_BITS else str(text)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            parts = [_written(left), _written(right)]
        case ast.JoinedStr(values=values):
            parts = [*map(_written, values)]
        case _:
            return None
    return None if None in parts else "".join(parts)  # type: ignore[arg-type]  # none is None


def _is_evaluated(content: ast.expr) -> bool:
    """Whether what is written can be said without the suite."""
    names = [node for node in ast.walk(content) if isinstance(node, ast.Name)]
    bound = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    return {node.id for node in names} - bound <= _EVALUATED


class _Settled(ast.NodeTransformer):
    """Changes the tree that it is given."""

    def __init__(self, files: ast.Dict | None, unknown: Collection[str] | None, is_in_tmp: bool) -> None:
        """`files`: all that are there; None where that is not known. `unknown`: those of which it is not; None if it
        may be any. `is_in_tmp`: some are in `/tmp`."""
        self._files, self._unknown, self._is_in_tmp = files, unknown, is_in_tmp

    def visit(self, node: ast.AST) -> ast.AST:
        found, text = _place(node), _written(node)
        if text is not None and text[:1] == "/" and not self._is_in_tmp:
            return node
        if found is not None and self._is_unknown(found):
            return trees.UNKNOWN
        if found is not None and text != found.text:
            return ast.Constant(found.text) if found.is_text else _path(found.name, self._files)
        match node:
            case ast.Call(func=ast.Name(id=name)) if name in (PRINTED, WRITTEN):
                return node  # with the files that were there then
            case ast.Call(func=ast.Lambda(args=ast.arguments(args=[], vararg=None), body=body), args=[], keywords=[]):
                return self.visit(body)  # `buffer.getvalue()`
        return self.generic_visit(node)

    def _is_unknown(self, found: _Where) -> bool:
        """Whether it is not known what is there, where all is not known."""
        if self._files is not None or found.is_made:
            return self._files is None
        if self._unknown is None:
            return _SEEMS_PATH.fullmatch(found.text) is not None
        return any(f"{place}/".startswith(f"{found.name}/") for place in self._unknown)


class _MadeOnce(ast.NodeTransformer):
    """Leaves out of the files that are made for a call those that were made for an earlier one."""

    def __init__(self, made: set[str]) -> None:
        """`made`: the files that were, with their contents. Files of this call are added."""
        self._made = made
        self._before = set(made)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if known_name(node.func) != FILE:
            return self.generic_visit(node)
        files = cast(ast.Dict, node.args[0])
        told = {
            dump_of(ast.Tuple([key, value])): (key, value)
            for key, value in zip(files.keys, files.values, strict=True)
            if key
        }
        self._made.update(told)
        new = [pair for text, pair in told.items() if text not in self._before]
        return ast.Call(node.func, [ast.Dict([key for key, _ in new], [value for _, value in new]), *node.args[1:]], [])


class _WithFiles(ast.NodeTransformer):
    """Has the files made before a call that is given none of them: `f(scratch_file(...) and x)`."""

    def __init__(self, entry_point: str, made: ast.expr) -> None:
        self._entry_point = entry_point
        self._made = made

    def visit_Call(self, node: ast.Call) -> ast.AST:
        given = given_in(node)
        if known_name(node.func) in (PRINTED, WRITTEN):
            return node
        if not given or not grammar.is_call(node, self._entry_point) or FILE in names_in(node):
            return self.generic_visit(node)
        return copied(node, {id(given[0]): ast.BoolOp(ast.And(), [self._made, given[0]])})
