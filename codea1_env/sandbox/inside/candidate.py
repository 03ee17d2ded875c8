"""The untrusted process: reads one job, loads one program, writes one record per item, exits.

Does not promise anything to the judge. The program may patch, forge or kill whatever is here: a record is only "a
returned value", and the process holds nothing that would tell which value is the right one.
"""

import gc
import io
import json
import os
import re
import struct
import sys
import time
import types
from collections.abc import Callable
from typing import Any

import values

_SPARED_STACK = 50
"""Levels that a call has less than the first one of its process; where it wants them, it begins anew in another. Code
that has run for a while calls builtins without a level of the stack, so it gets further down than fresh code."""

HEADER = struct.Struct("<IIQ")  # bytes of records, records, CPU nanoseconds when the running item began
RECORD = struct.Struct("<IBQ")  # bytes of the payload, kind, CPU nanoseconds that the item took
LOADED, LOAD_ERROR, VALUE, ERROR, MEMORY, FULL = b"L"[0], b"X"[0], b"V"[0], b"E"[0], b"M"[0], b"F"[0]

# What a pure expression may call: the strict grammar admits these names only.
PURE_BUILTINS = {
    function.__name__: function
    for function in (
        abs, bool, bytes, chr, complex, dict, enumerate, float, frozenset, int, len, list, max, min, ord, range,
        reversed, round, set, sorted, str, sum, tuple, zip,
    )
}  # fmt: skip

_KEPT_ALLOCATIONS = 500
"""Objects that may be left to the next item's collector: some microseconds of it. It runs by itself at 700."""
_allocations, _collect, _freeze = gc.get_count, gc.collect, gc.freeze
_forget_patterns = re.purge  # what `re` remembers of them, a later call could tell
_cpu_ns, _pack_record, _pack_header = time.process_time_ns, RECORD.pack_into, HEADER.pack_into


class Results:
    """Appends records to the shared region; the header moves last, so a killed writer leaves whole records."""

    def __init__(self, region: memoryview) -> None:
        self._region, self._room = region, len(region)
        self._used = HEADER.size
        self._count = 0
        self._began = _cpu_ns()

    def write(self, kind: int, payload: bytes = b"") -> None:
        now = _cpu_ns()
        end = self._used + RECORD.size + len(payload)
        if end + RECORD.size > self._room:  # always keeps room for the FULL record itself
            kind, payload, end = FULL, b"", self._used + RECORD.size
        _pack_record(self._region, self._used, len(payload), kind, now - self._began)
        self._region[end - len(payload) : end] = payload
        self._used = end
        self._count += 1
        self._began = now
        _pack_header(self._region, 0, end - HEADER.size, self._count, now)
        if kind == FULL:
            os._exit(0)


def run(payload: bytes, region: memoryview) -> None:
    """Do one job. The process must end after it, whatever it raises: the program may have changed anything."""
    job = json.loads(payload)
    KINDS[job["kind"]](job, Results(region))


def _name(error: BaseException) -> bytes:
    return str(type(error).__name__)[:64].encode("ascii", "replace")


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
    kind, payload, is_exhausted = _come_to(function, max_bytes)
    leave()
    if is_exhausted and not is_first:
        results.write(FULL)
    results.write(kind, payload)


def _come_to(function: Callable[[], object], max_bytes: int) -> tuple[int, bytes, bool]:
    """Kind and payload of the record, and whether memory or stack was exhausted. Keeps no exception."""
    try:
        return VALUE, values.encode(function(), max_bytes), False
    except MemoryError:
        return MEMORY, b"MemoryError", True
    except BaseException as error:
        return ERROR, _name(error), isinstance(error, RecursionError)


def _keep() -> None:
    """What a program has loaded is no garbage: no call is to pay for looking at it."""
    _collect()
    _freeze()


def _collect_garbage() -> None:
    """Unless there is so little that the collector of the next item would not feel it."""
    try:
        young, *older = _allocations()
        if young > _KEPT_ALLOCATIONS or any(older):
            _collect()
    except MemoryError:  # a process that keeps all of its memory has one item only
        pass


def _executed(code: types.CodeType, module_name: str) -> dict[str, Any]:
    """The namespace of a new module after its body has run. Raises what the body raises."""
    _forget_patterns()
    module = types.ModuleType(module_name)
    module.__file__ = f"{module_name}.py"
    sys.modules[module_name] = module
    exec(code, module.__dict__)
    return module.__dict__


def _load(job: dict[str, Any], results: Results) -> tuple[types.CodeType, dict[str, Any]] | None:
    """The program and its namespace after its body has run; None after writing why it has none."""
    sys.argv = ["solution"]
    try:
        code = compile(job["source"], "<program>", "exec", dont_inherit=True)
        return code, _executed(code, "solution")
    except MemoryError:
        results.write(LOAD_ERROR, b"MemoryError")
    except BaseException as error:
        results.write(LOAD_ERROR, _name(error))
    return None


def _calls(job: dict[str, Any], results: Results) -> None:
    loaded = _load(job, results)
    if loaded is None:
        return
    code, namespace = loaded
    function: Any = namespace.get(job["entry_point"])
    if not callable(function):
        results.write(LOAD_ERROR, b"NoEntryPoint")
        return
    decode, max_bytes, reload, alone = values.decode, job["value_bytes"], job["reload"], job["alone"]
    if not alone:
        _keep()
    results.write(LOADED)
    positional: list[Any]
    named: list[list[Any]]

    def call() -> object:
        values.begin()
        return function(*[decode(node) for node in positional], **{name: decode(node) for name, node in named})

    def leave() -> None:
        if reload:
            namespace.clear()
        if not alone:
            _collect_garbage()

    levels = sys.getrecursionlimit()
    for number, (positional, named) in enumerate(job["items"]):  # noqa: B007
        if reload and number:
            try:
                namespace = _executed(code, "solution")
                function = namespace[job["entry_point"]]
            except (MemoryError, RecursionError):
                results.write(FULL)
            except BaseException as error:
                results.write(ERROR, _name(error))
                continue
            _keep()
            results.write(LOADED)
        _forget_patterns()
        _attempt(results, call, max_bytes, is_first=not number, leave=leave)
        if not number:
            sys.setrecursionlimit(levels - _SPARED_STACK)
    sys.setrecursionlimit(levels)


def _expressions(job: dict[str, Any], results: Results) -> None:
    results.write(LOADED)
    for text in job["items"]:
        _attempt(results, lambda: eval(text, {"__builtins__": dict(PURE_BUILTINS)}), job["value_bytes"])  # noqa: B023


def _stdio(job: dict[str, Any], results: Results) -> None:
    """A whole program on one standard input. Its output is captured at Python's level: `os.write(1)` is not seen."""
    (text,) = job["items"]
    output = io.BytesIO()
    sys.stdin = io.TextIOWrapper(io.BytesIO(text.encode("utf-8", "surrogateescape")), encoding="utf-8")
    sys.stdout = io.TextIOWrapper(output, encoding="utf-8", errors="surrogateescape", write_through=True)
    results.write(LOADED)

    def main() -> str:
        module = types.ModuleType("__main__")
        module.__file__ = "program.py"
        sys.modules["__main__"] = module
        try:
            exec(compile(job["source"], "<program>", "exec", dont_inherit=True), module.__dict__)
        except SystemExit as stop:
            if stop.code not in (None, 0):
                raise
        return output.getvalue().decode("utf-8", "surrogateescape")

    _attempt(results, main, job["value_bytes"])


def _script(job: dict[str, Any], results: Results) -> None:
    """The test program shares the candidate's process: forgeable by nature, for evaluation only."""
    loaded = _load(job, results)
    if loaded is None:
        return
    results.write(LOADED)

    def main() -> bool:
        exec(compile(job["items"][0], "<script>", "exec", dont_inherit=True), loaded[1])
        return True

    _attempt(results, main, job["value_bytes"])


KINDS = {"calls": _calls, "expressions": _expressions, "stdio": _stdio, "script": _script}
