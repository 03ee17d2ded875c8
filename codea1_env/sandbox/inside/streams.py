"""A whole program on its standard input: descriptors 0 to 2 are files of its own, and it ends as a program does.

What it printed is what its output file holds in the end, however it got there. Does not protect that file from the
program: what it prints is all that it can put there.
"""

import atexit
import builtins
import gc
import io
import os
import sys
import types
from collections.abc import Callable
from typing import Any

_INPUT = ("/dev/stdin", "/dev/fd/0", "/proc/self/fd/0")
_OUTPUT = ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")
_open, _exit, _fstat, _pread = open, os._exit, os.fstat, os.pread

answer: "Callable[[Callable[[], object]], None]" = lambda come_to: None  # noqa: E731
"""Writes what a function comes to: where the program leaves by `os._exit`, before it is gone. Set by the job."""


def run(program: "str | types.CodeType", text: str, reports: bool = False) -> object:
    """What the program prints for the input `text`. Raises what it raises, SystemExit where it says that it failed.

    `reports`: what it prints, what it complains of, and its exit status, in a list, also where it failed."""
    with _open(0, "wb", closefd=False) as given:
        given.write(text.encode("utf-8", "surrogateescape"))
    os.lseek(0, 0, os.SEEK_SET)
    printed, complained = os.dup(1), os.dup(2)  # the program may close its own

    def told(status: int) -> object:
        if reports:
            return [_text_of(printed), _text_of(complained), status]
        return sys.exit(status) if status else _text_of(printed)

    def leave(status: int) -> None:
        answer(lambda: told(status))
        _exit(status)

    os._exit = leave  # type: ignore[assignment]
    builtins.open = io.open = _opened
    sys.stdin = sys.__stdin__ = _open(0, encoding="utf-8", closefd=False)  # type: ignore[misc]
    sys.stdout = sys.__stdout__ = _open(  # type: ignore[misc]
        1, "w", encoding="utf-8", errors="surrogateescape", closefd=False
    )
    sys.stderr = sys.__stderr__ = _open(  # type: ignore[misc]
        2, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False
    )
    for stream, name in ((sys.stdin, "<stdin>"), (sys.stdout, "<stdout>"), (sys.stderr, "<stderr>")):
        stream.buffer.raw.name = name  # type: ignore[attr-defined]
    atexit._clear()
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    module.__dict__.update(exit=sys.exit, quit=sys.exit, __file__="program.py")
    status = 0
    try:
        code = compile(program, "<program>", "exec", dont_inherit=True) if isinstance(program, str) else program
        exec(code, module.__dict__)
    except SystemExit as stop:
        if stop.code not in (None, 0):
            if not reports:
                raise
            status = stop.code if isinstance(stop.code, int) else 1
            if status != stop.code:
                print(stop.code, file=sys.stderr)
    except BaseException as error:
        if not reports:
            raise
        status = 1
        shown = error.with_traceback(error.__traceback__ and error.__traceback__.tb_next)  # without this function
        sys.excepthook(type(shown), shown, shown.__traceback__)
    _end(module)
    return told(status)


def _opened(file: Any, mode: str = "r", *rest: Any, **named: Any) -> Any:
    """`open`, which finds the standard streams by the names that they have where there is a /proc."""
    name = os.fspath(file) if isinstance(file, os.PathLike) else file
    if name in _INPUT or name in _OUTPUT:
        file = os.dup(0 if name in _INPUT else 1)
    return _open(file, mode, *rest, **named)


def _end(module: types.ModuleType) -> None:
    """As at the end of a process: its threads, its handlers, its streams, and what else writes when it goes."""
    if "threading" in sys.modules:
        sys.modules["threading"]._shutdown()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.__stdout__, sys.stderr, sys.__stderr__):
        try:  # noqa: SIM105  (contextlib would be one more module in every zygote)
            stream.flush()  # type: ignore[union-attr]
        except Exception:  # nothing comes of it there
            pass
    sys.stdin, sys.stdout = sys.__stdin__, sys.__stdout__
    module.__dict__.clear()
    gc.collect()


def _text_of(printed: int) -> str:
    return _pread(printed, _fstat(printed).st_size, 0).decode("utf-8", "surrogateescape")
