"""A terminal with a program in it: what is typed goes in; the screen is what a person would see, colours included."""

from __future__ import annotations

import fcntl
import html
import os
import pty
import select
import struct
import sys
import termios
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

import pyte

COLOURS = {
    "light": {"page": "#fbfaf7", "default": "#24262b", "red": "#a3271d", "green": "#1f6b45", "brown": "#7a5200",
              "cyan": "#0b6170", "dim": "#6b6f76"},
    "dark": {"page": "#17191d", "default": "#e4e6ea", "red": "#ff8a7d", "green": "#7fd3a1", "brown": "#e8bd6a",
             "cyan": "#74d0e0", "dim": "#969ba4"},
}  # fmt: skip


class Terminal:
    """`codea1` with these arguments, in a terminal of `columns` x `lines`. A context manager that ends it."""

    def __init__(self, arguments: Sequence[str], columns: int, lines: int) -> None:
        self.screen = pyte.Screen(columns, lines)
        self._stream = pyte.ByteStream(self.screen)
        self.status: int | None = None
        """Exit code, once it has ended."""
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self._pid = os.fork()
        if self._pid == 0:
            os.login_tty(theirs)
            environment = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
            os.execve(
                sys.executable,
                [sys.executable, "-m", "codea1_env.cli", *arguments],
                environment | {"TERM": "xterm-256color", "COLUMNS": str(columns)},
            )
        os.close(theirs)
        self._ours = ours

    def type(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def wait_for(self, text: str, seconds: float = 60.0) -> None:
        """Until the screen has the text. Fails with what it has instead."""
        deadline = time.monotonic() + seconds
        while text not in self.text() and time.monotonic() < deadline:
            if not self._read():
                break
        assert text in self.text(), self.text()

    def wait_for_end(self, seconds: float = 60.0) -> None:
        """Until the program has ended and everything that it wrote is on the screen."""
        deadline = time.monotonic() + seconds
        while self._read() and time.monotonic() < deadline:
            pass
        self.status = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])

    def text(self) -> str:
        return "\n".join(line.rstrip() for line in self.screen.display)

    def colour_of(self, text: str) -> str:
        """The colour in which a line of the screen has the text."""
        for row, line in enumerate(self.screen.display):
            if text in line:
                return str(self.screen.buffer[row][line.index(text)].fg)
        raise AssertionError(f"{text!r} is not in:\n{self.text()}")

    def page(self, theme: str) -> str:
        """The screen as a page, to take a picture of."""
        colours, rows = COLOURS[theme], []
        last = max((row for row, line in enumerate(self.screen.display) if line.strip()), default=0)
        for row in range(last + 1):
            cells = [self._cell(self.screen.buffer[row][place], colours) for place in range(self.screen.columns)]
            rows.append("".join(cells))
        return (
            f"<!doctype html><meta charset=utf-8><title>codea1</title><body style='margin:12px;background:"
            f"{colours['page']};color:{colours['default']}'><pre style='font:14px/1.4 \"DejaVu Sans Mono\",monospace;"
            f"margin:0'>{chr(10).join(rows)}</pre>"
        )

    @staticmethod
    def _cell(cell: Any, colours: dict[str, str]) -> str:
        weight = ";font-weight:700" if cell.bold else ""
        colour = colours.get(cell.fg, colours["default"])
        return f"<span style='color:{colour}{weight}'>{html.escape(cell.data)}</span>"

    def _read(self) -> bool:
        """Takes what has been written, waiting for it for a while; whether there may be more."""
        if not select.select([self._ours], [], [], 0.2)[0]:
            return True
        try:
            data = os.read(self._ours, 1 << 16)
        except OSError:  # how Linux says that nobody is at the other end any more
            return False
        self._stream.feed(data)
        return bool(data)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._ours)
        if self.status is None:
            os.kill(self._pid, 9)
            os.waitpid(self._pid, 0)
