"""The untrusted process: reads one job, loads one program, writes one record per item, exits.

Does not promise anything to the judge. The program may patch, forge or kill whatever is here: a record is only "a
returned value", and the process holds nothing that would tell which value is the right one.
"""

import _thread
import builtins
import contextlib
import ctypes
import gc
import io
import json
import marshal
import os
import re
import struct
import sys
import time
import types
from collections.abc import Callable, Iterator
from typing import Any

import denials
import looks
import marks
import scope
import state
import value_kinds
import values
import widening

_MOST_TOLD = 1 << 12
"""Bytes of what is told of an exception; of one with a longer text, its name alone."""
_SPARED_STACK = 50
"""Levels that a call has less than the first one of its process; where it wants them, it begins anew in another. Code
that has run for a while calls builtins without a level of the stack, so it gets further down than fresh code."""

_MOST_EVALUATED = 200
"""Texts that a program evaluates while they are looked at: one takes about 30 us."""

HEADER = struct.Struct("<IIQ")  # bytes of records, records, CPU nanoseconds when the running item began
RECORD = struct.Struct("<IBQ")  # bytes of the payload, kind, CPU nanoseconds that the item took
LOADED, LOAD_ERROR, VALUE, ERROR, MEMORY, FULL, DENIED, ALONE, BEGUN = b"LXVEMFDAB"

PURE_BUILTINS = {name: getattr(builtins, name) for name in scope.STATED | scope.SINGLE}
CODE_BUILTINS = {
    name: getattr(builtins, name) for name in scope.CODE_BUILTINS | scope.GIVEN if hasattr(builtins, name)
} | {name: kind for name, kind in vars(builtins).items() if isinstance(kind, type) and issubclass(kind, Exception)}

_collect, _freeze = gc.collect, gc.freeze
_scanner: Any = json.JSONDecoder()
_read_json = _scanner.scan_once  # held by the process, so that no program puts another in its place
_forget_patterns = re.purge  # what `re` remembers of them, a later call could tell
_forget_lookups = sys._clear_type_cache  # likewise, names that a class was asked for: they would be kept once
_patterns: "dict[object, object]" = vars(re)["_cache"]
read = ctypes.pythonapi.PyBytes_FromStringAndSize  # raises no event that a program's hook could refuse
read.restype, read.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_ssize_t)
_escaped = denials.escaped
_cpu_ns, _pack_record, _pack_header = time.process_time_ns, RECORD.pack_into, HEADER.pack_into
_exit, _stat, _listdir, _open, _walk = os._exit, os.stat, os.listdir, open, os.walk
_MOST_LEFT = 1 << 18
"""Bytes of files that are told with their text."""
_KINDS = {"isfile": 0o100000, "isdir": 0o040000}
"""{what may be asked of a path: what its mode says then}."""


class Results:
    """Appends records to the shared region; the header moves last, so a killed writer leaves whole records."""

    def __init__(self, region: memoryview) -> None:
        self._region, self._room = region, len(region)
        self._used = HEADER.size
        self._count = 0
        self._began = _cpu_ns()
        self._writing = _thread.allocate_lock()

    def write(self, kind: int, payload: bytes = b"") -> None:
        with self._writing:
            now, end = _cpu_ns(), self._used + RECORD.size + len(payload)
            if end + RECORD.size > self._room:  # always keeps room for the FULL record itself
                kind, payload, end = FULL, b"", self._used + RECORD.size
            self._append(kind, payload, end, now - self._began)
            self._began = now
            _pack_header(self._region, 0, end - HEADER.size, self._count, now)
        if kind in (FULL, ALONE):
            _exit(0)

    def note(self, what: str) -> None:
        """What the process was denied: no item's, and on nobody's time. Left out where there is no room."""
        payload = what.encode("ascii", "replace")
        end = self._used + RECORD.size + len(payload)
        if end + RECORD.size <= self._room and self._writing.acquire(blocking=False):
            self._append(DENIED, payload, end, 0)
            _pack_header(self._region, 0, end - HEADER.size, self._count, self._began)
            self._writing.release()

    def _append(self, kind: int, payload: bytes, end: int, cpu_ns: int) -> None:
        _pack_record(self._region, self._used, len(payload), kind, cpu_ns)
        self._region[end - len(payload) : end] = payload
        self._used = end
        self._count += 1


def run(head: bytes, items: int, region: memoryview) -> None:
    """Do one job. The process must end after it, whatever it raises: the program may have changed anything."""
    job, results = marshal.loads(head), Results(region)
    results.write(BEGUN)
    value_kinds.listing_s = job.get("listing_s", value_kinds.listing_s)
    if job.get("is_watched"):
        denials.watch(results.note, job["source"], os.getcwd() if job["scratch"] else "")
    if job.get("prints"):
        widening.answer = lambda come_to: _attempt(results, come_to, job["value_bytes"])
    if job.get("is_script"):
        os.environ["HOME"] = os.getcwd()
    if "setrlimit" in job.get("source", ""):
        _permit_limits()
    KINDS[job["kind"]](job, _items(items, job["sizes"]), results)


def _permit_limits() -> None:
    """What a program asks for beyond a limit is that limit, as it would be where there is none: contest programs ask
    for an endless stack."""
    import resource

    lower, most = resource.setrlimit, resource.getrlimit

    def setrlimit(kind: int, limits: tuple[int, int]) -> None:
        hard = most(kind)[1]
        soft, wanted = (hard if each < 0 or 0 <= hard < each else each for each in limits)  # below 0 is endless
        lower(kind, (soft, wanted))

    resource.setrlimit = setrlimit


def _items(address: int, sizes: list[int]) -> Iterator[bytes]:
    """One at a time: no object of Python holds one that has not been handed over, and nothing but a far word reads
    memory that is none."""
    for size in sizes:
        yield read(address, size)
        address += size


def _name(error: BaseException) -> bytes:
    name: str = value_kinds.name_of(type(error))
    return name[:64].replace("\n", "?").encode("ascii", "replace")


def _told(error: BaseException) -> bytes:
    """The name of an exception, and on a line of its own its classes and its text, where that is short and none raises:
    of every one, whoever asks. One of Python's own names is told for Python's own class alone."""
    named = [(value_kinds.name_of(kind), kind) for kind in value_kinds.classes_of(type(error))[:-1]]
    kinds = [name[:64] for name, kind in named if vars(builtins).get(name, kind) is kind]
    try:
        said: bytes = values.encode((kinds, str(error)), _MOST_TOLD)
    except BaseException:
        said = b""
    return _name(error) + b"\n" + (said if said.startswith(b'{"t"') else values.encode((kinds, None), _MOST_TOLD))


def _nothing() -> None:
    pass


def _attempt(
    results: Results,
    function: Callable[[], object],
    max_bytes: int,
    is_first: bool = True,
    leave: Callable[[], object] = _nothing,
) -> None:
    """Write what `function()` comes to, after `leave()`, in which what it left behind is let go of in its own time.
    Where memory or stack was exhausted after other items, it begins anew in the next process: they may have left less
    of it."""
    marks.begin()
    kind, payload = _come_to(function, max_bytes)
    leave()
    if not is_first and marks.has(marks.EXHAUSTED):
        results.write(FULL)
    results.write(kind, payload)


def _come_to(function: Callable[[], object], max_bytes: int) -> tuple[int, bytes]:
    """Kind and payload of the record. Keeps no exception."""
    has_value = False
    try:
        value = function()
        has_value = True
        return VALUE, values.encode(value, max_bytes)
    except MemoryError:
        return MEMORY, b"MemoryError"
    except BaseException as error:
        _escaped(error)
        return ERROR, _name(error) if has_value else _told(error)  # what a look at a value raises, the call does not


def _collect_garbage() -> None:
    """Whatever a call leaves, no other is to meet: its memory, its buffers, texts that are kept once."""
    with contextlib.suppress(MemoryError):  # a process that keeps all of its memory has one item only
        _collect()


def _executed(code: types.CodeType, source: str) -> dict[str, Any]:
    """The namespace of a new module after its body has run. Raises what the body raises."""
    namespace: dict[str, Any] = vars(widening.new_module("solution", code.co_filename, source))
    exec(code, namespace)
    return namespace


def _load(job: dict[str, Any], results: Results) -> tuple[looks.Looks | None, dict[str, Any]] | None:
    """What its text names and its namespace after its body has run; None after writing why it has none."""
    marks.begin()  # what is constant is made as it is compiled
    try:
        code = compile(job["source"], "solution.py", "exec", dont_inherit=True)
        seen = _looked_at(job, code, results) if len(job["sizes"]) > 1 else None
        if seen and job.get("looks") and (not marks.is_watching or seen.alone_because()):
            results.write(ALONE)
        if seen and job.get("looks") and seen.evaluates:
            _look_at_evaluated(seen, results)
        namespace = _executed(code, job["source"])
        if job.get("epilogue"):
            exec(compile(job["epilogue"], "<program>", "exec", dont_inherit=True), namespace)
        if seen and job.get("looks") and _is_told_apart(seen.makes_sets, seen.loads_sets):
            results.write(ALONE)
        return seen, namespace
    except MemoryError:
        results.write(LOAD_ERROR, b"MemoryError")
    except BaseException as error:
        results.write(LOAD_ERROR, _name(error))
    return None


def _is_told_apart(has_sets: bool, has_sets_of_classes: bool) -> bool:
    """Whether an object's address was shown, or may have ordered a set."""
    is_ordered = has_sets and marks.has(marks.HASHED)
    return marks.has(marks.SHOWN) or is_ordered or (has_sets_of_classes and marks.has(marks.CLASSED))


def _looked_at(job: dict[str, Any], code: types.CodeType, results: Results) -> looks.Looks:
    """What its text names. Where that cannot be found out, each call is alone: no program is wrong for it."""
    try:
        return looks.Looks(code, job["sets"])
    except Exception:
        results.write(ALONE)
        raise


def _look_at_evaluated(seen: looks.Looks, results: Results) -> None:
    """From now on each text that is evaluated is looked at; the calls of a program with many are alone."""
    left = iter(range(_MOST_EVALUATED))

    def look(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "exec" and arguments[0].co_filename == "<string>":  # neither a module nor what is ours
            try:
                is_covered = next(left, None) is not None and seen.covers(arguments[0])
            except BaseException:
                is_covered = False
            if not is_covered:
                results.write(ALONE)

    sys.addaudithook(look)


def _calls(job: dict[str, Any], items: Iterator[bytes], results: Results) -> None:
    """The calls one after another. With `looks`, ends before an answer is written where the program does not keep what
    it kept when it was loaded, or may be told by an address."""
    loaded = _load(job, results)
    if loaded is None:
        return
    seen, namespace = loaded
    function: Any = namespace.get(job["entry_point"])
    if not callable(function):
        results.write(LOAD_ERROR, b"NoEntryPoint")
        return
    if job.get("is_checker"):
        values.scope = None
    # What the making of the first call's own object has changed would not be seen.
    has_first = bool(namespace.get(f"{looks.OURS}_first"))
    kept = state.noted(namespace, seen) if seen and job["looks"] and not has_first else None
    if seen and job["looks"] and kept is None:
        results.write(ALONE)
    if seen:  # what is there now is no garbage: no call is to pay for looking at it
        _collect()
        _freeze()
    patterns = dict(_patterns)
    results.write(LOADED)
    read_json, decode, max_bytes, levels = _read_json, values.decode, job["value_bytes"], sys.getrecursionlimit()
    text: bytes

    def call() -> object:
        (positional, named), _ = read_json(text.decode("ascii"), 0)
        if len(positional) == 1 and type(positional[0]) is dict and type(positional[0].get("e")) is list:
            return _asked(namespace, function, *positional[0]["e"])
        given, by_name = [decode(node) for node in positional], {name: decode(node) for name, node in named}
        return function(*given, **by_name)

    def leave() -> None:
        if seen:
            _collect_garbage()
        if seen and seen.interns:
            _forget_lookups()
        if seen and kept and (_is_told_apart(seen.makes_sets, seen.makes_sets) or not kept.is_as_loaded()):
            results.write(ALONE)

    for number, text in enumerate(items):  # noqa: B007
        if number:
            _forget_patterns()
            _patterns.update(patterns)
            values.begin()
        _attempt(results, call, max_bytes, is_first=not number, leave=leave)
        if not number and len(job["sizes"]) > 1:
            sys.setrecursionlimit(levels - _SPARED_STACK)
    sys.setrecursionlimit(levels)


def _asked(namespace: dict[str, Any], function: Any, name: str, text: str) -> object:
    """The answer to a question: a text that has names of the program's, the first of which is the entry point's,
    evaluated where an exception is an answer if `function` makes it one. Methods are asked of a class alone: what is
    none has no answer, and no exception that a test may expect."""
    roots = {each: namespace[each] for each in name.split() if each in namespace}
    asked = name.split()[0]
    if values.scope is None or (asked[:1].isupper() and not isinstance(roots.get(asked), type)):
        return object()
    names = {**values.scope(text), **roots}

    def answer() -> object:
        return eval(text, names)

    answers = getattr(function, "__kwdefaults__", None) or {}
    return function(_codea1_called=answer) if "_codea1_called" in answers else answer()


def _expressions(job: dict[str, Any], items: Iterator[bytes], results: Results) -> None:
    results.write(LOADED)
    for item in items:
        text = json.loads(item)
        _attempt(results, lambda: _evaluated(text), job["value_bytes"])  # noqa: B023


def _evaluated(text: str) -> object:
    """The value of a pure expression. `__code__('...')` stands for an argument that is code."""
    own = {"__code__": values.Code, scope.ATTRIBUTE: scope.attribute_of, scope.SEEN: scope.Seen}
    own[scope.DECODED] = lambda tree: values.decode(json.loads(tree))
    names = {**PURE_BUILTINS, **CODE_BUILTINS, **own, scope.FILE: _path, "isinstance": scope.is_instance}
    return eval(text, scope.namespace(text, names, scope.LOOKED_NAMES))


def _scratch_file(contents: "dict[str, str | bytes | None]", name: str) -> object:
    """The path of one of a test's files, which are written anew; a directory where there is no content."""
    import pathlib

    for each, content in contents.items():
        place = pathlib.Path(each)
        (place if content is None else place.parent).mkdir(parents=True, exist_ok=True)
        if content is not None:
            place.write_bytes(content.encode() if isinstance(content, str) else content)
    return pathlib.Path(name)


def _csv_rows(rows: "list[Any]", fields: "list[str] | None", **options: Any) -> str:
    """The text of rows as the csv module writes them."""
    import csv

    out = io.StringIO()
    (csv.writer(out, **options) if fields is None else csv.DictWriter(out, fields, **options)).writerows(rows)
    return out.getvalue()


def _path(contents: object, name: str) -> object:
    """Likewise, of what is stated: nothing is written for it."""
    import pathlib

    return pathlib.PurePosixPath(name)


def _printed(*calls: Callable[[], object]) -> str:
    """What these write to standard output."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        for call in calls:
            call()
    return out.getvalue()


def _left_behind(*steps: Callable[[], Any]) -> "dict[str, list[Any] | None]":
    """What is in the directory that the program works in, after these: of each file its size and its text, if that is
    one and short; of directories nothing."""
    for step in steps:
        step()
    found: dict[str, list[Any] | None] = {}
    room = _MOST_LEFT
    for folder, folders, files in _walk("."):
        above = f"{folder[2:]}/" if folder != "." else ""
        found.update(dict.fromkeys([above + name for name in folders]))
        for name in files:
            text, size = None, _stat(above + name).st_size
            with contextlib.suppress(OSError, ValueError):
                if size <= room:
                    with _open(above + name, encoding="utf-8") as file:
                        text = file.read()
                    room -= size
            found[above + name] = [size, text]
    return found


def _written(asked: str, *steps: Callable[[], Any]) -> object:
    """What is at the path that the last of these gives, after the others: its text, names, size, or whether it is."""
    path = [step() for step in steps][-1]
    if isinstance(path, int):  # the kernel has files by number, too
        raise TypeError("a number is no path")
    if asked == "text":
        with _open(path, encoding="utf-8") as file:
            return file.read()
    if asked == "names":
        return sorted(_listdir(path))
    if asked == "size":
        return _stat(path).st_size
    try:
        mode = _stat(path).st_mode & 0o170000
    except (OSError, ValueError):
        return False
    return mode == _KINDS.get(asked, mode)


_OF_TESTS = {
    **CODE_BUILTINS,
    scope.FILE: _scratch_file,
    scope.ROWS: _csv_rows,
    scope.PRINTED: _printed,
    scope.WRITTEN: _written,
    scope.LEFT: _left_behind,
}
values.scope = lambda text: scope.namespace(text, _OF_TESTS, scope.CODE_NAMES)


KINDS = {"calls": _calls, "expressions": _expressions}
