"""What a call costs, counted from outside: the same on every machine, whatever the code says of itself.

A step is a line of Python that is run, in whatever file, or one thing that C code goes through for it: an item of a
list of a syntax tree that is searched, copied, joined or iterated, a character of the response, or of a text that was
made of it, that is searched or copied. So a budget that forgets to charge a walk, or a walk inside of one C call
(`node in body`, `text[start:end]`), is seen. Not seen: the scans of regular expressions, and copies of dicts and sets.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import pytest

_counted = 0


def _count(steps: int) -> None:
    global _counted
    _counted += steps


class _Items(list[Any]):
    """A list of a syntax tree."""

    def __iter__(self) -> Iterator[Any]:
        _count(len(self))
        return super().__iter__()

    def __contains__(self, item: object) -> bool:
        _count(len(self))
        return super().__contains__(item)

    def __getitem__(self, at: Any) -> Any:
        found = super().__getitem__(at)
        if isinstance(at, slice):
            _count(len(found))
            return _Items(found)
        return found

    def __add__(self, other: Any) -> Any:
        _count(len(self) + len(other))
        return _Items(super().__add__(other))

    def index(self, *arguments: Any) -> int:
        _count(len(self))
        return super().index(*arguments)


class CountedText(str):
    """A response."""

    def __getitem__(self, at: Any) -> Any:
        return _made(super().__getitem__(at))


def _made(found: Any) -> Any:
    """What a method of a text gives, counted with what is copied for it."""
    if isinstance(found, str):
        _count(len(found))
        return CountedText(found)
    if isinstance(found, list | tuple):
        return type(found)(map(_made, found))
    return found


def _copying(name: str) -> Callable[..., Any]:
    plain = getattr(str, name)
    return lambda self, *arguments: _made(plain(self, *arguments))


def _searching(name: str) -> Callable[..., Any]:
    plain = getattr(str, name)

    def searched(self: str, *arguments: Any) -> Any:
        _count(len(self))
        return plain(self, *arguments)

    return searched


for _name in ("replace", "strip", "lstrip", "rstrip", "removeprefix", "split", "partition", "lower", "splitlines"):
    setattr(CountedText, _name, _copying(_name))
for _name in ("count", "encode", "isprintable"):
    setattr(CountedText, _name, _searching(_name))

_plain_parse = ast.parse


def _parse(text: str) -> ast.Module:
    trace = sys.gettrace()
    sys.settrace(None)
    try:
        module = _plain_parse(str(text))
        for node in ast.walk(module):
            for name, value in ast.iter_fields(node):
                if isinstance(value, list):
                    setattr(node, name, _Items(value))
    finally:
        sys.settrace(trace)
    return module


def steps_of(call: Callable[[], object]) -> int:
    """The steps of a call. What it does once in a process, such as compiling a pattern, is not counted."""
    global _counted

    def traced(frame: FrameType, event: str, argument: object) -> Any:
        if frame.f_code.co_filename == __file__:
            return None
        if event == "line":
            _count(1)
        return traced

    call()
    outside = sys.gettrace()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(ast, "parse", _parse)
        _counted = 0
        sys.settrace(traced)
        try:
            call()
        finally:
            sys.settrace(outside)
    return _counted
