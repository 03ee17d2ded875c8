"""What the commands show people: errors of arguments, text of strangers, tables, and, on terminals only, colours and
progress.

Everything is decided from the stream and the environment that it is given. Off a terminal there are no colours and no
progress. Does not wrap what was coloured.
"""

from __future__ import annotations

import argparse
import difflib
import os
import re
import sys
import textwrap
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NoReturn, TextIO, TypeVar

from codea1_env.closing import Closing

Item = TypeVar("Item")

CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}
SHOW_AFTER_S = 2.0
"""What is done sooner needs no progress."""
EVERY_S = 0.2
WIDTH = 24


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A line for the head, the rule, and a line for every row; a cell that is empty takes no room."""
    return "\n".join([_table_line(head), "|" + "---|" * len(head), *map(_table_line, rows)])


def _table_line(cells: Sequence[object]) -> str:
    return "".join(f"| {cell} " if cell != "" else "| " for cell in cells) + "|"


def printable(text: str, *, is_line: bool = False) -> str:
    """The text without characters that could move the cursor, recolour the terminal or turn the writing around.

    `is_line`: it stays one line.
    """
    kept = "" if is_line else "\n\t"
    return "".join(c if c.isprintable() or c in kept else repr(c)[1:-1] for c in text)


def columns_of(stream: TextIO) -> int | None:
    """Width of the terminal behind the stream; None off a terminal, or where it does not say."""
    try:
        return os.get_terminal_size(stream.fileno()).columns or None if stream.isatty() else None
    except (OSError, ValueError):  # a closed stream, or one that only looks like a terminal
        return None


def wrapped(prose: str, columns: int | None) -> str:
    """Lines broken between words so that they fit the columns; an indented line's rest is indented as well."""
    if columns is None:
        return prose
    lines = []
    for line in prose.split("\n"):
        indent = line[: len(line) - len(line.lstrip())]
        if len(line) <= columns or len(indent) >= columns // 2:
            lines.append(line)
        else:
            lines += textwrap.wrap(
                line.strip(),
                columns,
                initial_indent=indent,
                subsequent_indent=indent,
                break_long_words=False,
                break_on_hyphens=False,
            )
    return "\n".join(lines)


class Painter:
    """Colours, where `stream` is a terminal that wants them (NO_COLOR is not set, TERM is not dumb)."""

    def __init__(self, stream: TextIO, environment: Mapping[str, str]) -> None:
        is_wanted = not environment.get("NO_COLOR") and environment.get("TERM") != "dumb"
        self.is_on = stream.isatty() and is_wanted

    def __call__(self, text: str, *styles: str) -> str:
        """The text in styles of CODES."""
        if not self.is_on or not styles:
            return text
        return f"\x1b[{';'.join(CODES[style] for style in styles)}m{text}\x1b[0m"


class Progress(Closing):
    """One line of how far a command is: share, count, rate, time left. A context manager that wipes it at the end.

    Shown on a terminal, and only of what takes longer than SHOW_AFTER_S.
    """

    def __init__(
        self, stream: TextIO, what: str, total: float | None = None, *, now: Callable[[], float] = time.monotonic
    ) -> None:
        """`what`: the plural of what is counted. `total`: how many there will be, or None where nobody knows."""
        self._stream, self._what, self._total, self._now = stream, what, total, now
        self._is_on = stream.isatty()
        self._began = self._shown = now()
        self._done = 0.0
        self._is_visible = False
        self.note = ""
        """What else there is to say."""

    def advance(self, count: float = 1) -> None:
        """`count` more are done."""
        self._done += count
        now = self._now()
        if self._is_on and now - self._began >= SHOW_AFTER_S and now - self._shown >= EVERY_S:
            self._shown, self._is_visible = now, True
            self._stream.write(f"\r\x1b[K{self._line(now - self._began)}{'  ' + self.note if self.note else ''}")
            self._stream.flush()

    def over(self, items: Iterable[Item]) -> Iterator[Item]:
        """The items; each counts when the next one is asked for."""
        for item in items:
            yield item
            self.advance()

    def read(self, lines: Iterable[bytes]) -> Iterator[bytes]:
        """The lines; each counts, by its kB, when the next one is asked for."""
        for line in lines:
            yield line
            self.advance(len(line) / 1e3)

    def say(self, message: str) -> None:
        """A line of its own, which stays."""
        self.close()
        self._stream.write(message + "\n")
        self._stream.flush()

    def close(self) -> None:
        """Wipe the line, where one is shown."""
        if self._is_visible:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
            self._is_visible = False

    def _line(self, elapsed_s: float) -> str:
        rate = self._done / elapsed_s
        if not self._total:
            return f"{self._done:.0f} {self._what}  {_rate(rate)}/s  {_time(elapsed_s)} so far"
        share = min(self._done / self._total, 1.0)
        filled = int(WIDTH * share)
        left = f"{_time(elapsed_s * (1 - share) / share)} left" if share else "no end in sight"
        bar = f"[{'#' * filled}{'.' * (WIDTH - filled)}] {100 * share:3.0f} %"
        return f"{bar}  {self._done:.0f} of {self._total:.0f} {self._what}  {_rate(rate)}/s  {left}"


def _rate(rate: float) -> str:
    return f"{rate:.0f}" if rate >= 10 else f"{rate:.1f}"


def _time(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02} min"


_MESSAGES = (
    (r"argument (.+?): expected (?:one|at least one) arguments?$", r"\1 must come with a value, got none"),
    (r"argument (.+?): expected (\d+) arguments$", r"\1 must come with \2 values, got another number of them"),
    (r"argument (.+?): invalid choice: (.+?) \(choose from (.+)\)$", r"\1 must be one of \3, got \2"),
    (r"argument (.+?): invalid int value: (.+)$", r"\1 must be a whole number, got \2"),
    (r"argument (.+?): invalid float value: (.+)$", r"\1 must be a number, got \2"),
    (r"the following arguments are required: (.+)$", r"\1 must be given, got none"),
    (r"unrecognized arguments: (.+)$", r"an argument must be one of those in --help, got \1"),
    (r"argument (.+?): ignored explicit argument (.+)$", r"\1 must come without a value, got \2"),
    (r"argument (.+?): not allowed with argument (.+)$", r"\1 must come without \2, got both"),
)


class Parser(argparse.ArgumentParser):
    """argparse's, whose errors are one line that says must, got, and where help is."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """A command says itself what it does not know: the parser above it has other arguments."""
        self._given = sys.argv[1:] if args is None else list(args)
        options, unknown = super().parse_known_args(args, namespace)
        if unknown and " " in self.prog:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return options, unknown

    def error(self, message: str) -> NoReturn:
        meant = self._meant(message)
        for pattern, told in _MESSAGES:
            message = re.sub(f"^{pattern}", told, message, flags=re.DOTALL)
        self.exit(2, f"{self.prog.split()[0]}: {message}{meant}; see {self.prog} --help\n")

    def _meant(self, message: str) -> str:
        """What the unknown word of an error comes close to, or which unknown word to what is required, if anything."""
        choice = re.search(r"invalid choice: '([^']*)' \(choose from (.+)\)$", message)
        flag = re.match(r"unrecognized arguments: (--[\w-]+)", message)
        options = list(self._option_string_actions)
        if required := re.match("the following arguments are required: (.+)$", message):
            names = re.split("[/, ]+", required[1])
            unknown = [word for word in self._given if word.startswith("--") and word.partition("=")[0] not in options]
            near = [word for word in unknown if difflib.get_close_matches(word, names, 1, 0.7)]
            return f"; {near[0]} is not known" if near else ""
        known = re.findall(r"[^\s,']+", choice[2]) if choice else options
        found = choice or flag
        near = difflib.get_close_matches(found[1], known, 1, 0.7) if found else []
        return f"; did you mean {near[0]}?" if near else ""
