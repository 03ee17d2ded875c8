"""How books are kept on disk: JSON lines under a header that names the kind, written whole or not at all.

Any text comes back exactly, lone surrogates included. Does not know what a line means: see the books.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from codea1_env.errors import BookFormatError
from codea1_env.judging.version import FIRST, VERSION
from codea1_env.whole_files import whole_file

Header = Mapping[str, object]
JUDGE = "judge"
"""The version of the judge whose verdicts a book holds; what says none is of the first."""


def save_lines(path: str | os.PathLike[str], header: Header, records: Iterable[Mapping[str, object]]) -> None:
    """Write a header and a line per record.

    Atomic: after a crash, a full disk or an error the file at `path` is the old one or the new one, whole. Raises
    OSError, and then leaves no temporary file.
    """
    with whole_file(path) as file:
        for record in ({**header, JUDGE: VERSION}, *records):
            file.write(line(record))


def line(record: Mapping[str, object]) -> bytes:
    """A record as it is in the file."""
    return json.dumps(record).encode("ascii") + b"\n"


def read_lines(
    path: str | os.PathLike[str], header: Header, optional: Collection[str] = ()
) -> Iterator[tuple[int, Any]]:
    """The header, then the records under it, each with its line's number. Raises BookFormatError, and OSError.

    `optional`: what the header may say beside `header`.
    """
    with Path(path).open("rb") as file:
        for number, text in enumerate(file, 1):
            record = _record(text, number)
            if number == 1:
                known = record
                if isinstance(record, dict):
                    known = {key: value for key, value in record.items() if key not in (*optional, JUDGE)}
                if json.dumps(known, sort_keys=True) != json.dumps(header, sort_keys=True):
                    raise bad_line(1, "the header", f"be {json.dumps(header)}", record)
                judge = record.get(JUDGE, FIRST)
                if type(judge) is not int or not FIRST <= judge <= VERSION:
                    raise bad_line(1, JUDGE, f"be a version from {FIRST} to {VERSION}; a later codea1 reads it", judge)
            yield number, record
        if file.tell() == 0:
            raise bad_line(1, "the header", f"be {json.dumps(header)}", "an empty file")


def packed(text: str) -> str | dict[str, str]:
    """A text as JSON. JSON would join two lone surrogates that stand together: a text with any goes as bytes."""
    if any("\ud800" <= character <= "\udfff" for character in text):
        return {"utf8": text.encode("utf-8", "surrogatepass").hex()}
    return text


def unpacked(value: Any, number: int, field: str) -> str:
    """What `packed` was given. Raises BookFormatError naming the line and the field."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict) and set(value) == {"utf8"} and isinstance(value["utf8"], str):
        with contextlib.suppress(ValueError):
            return bytes.fromhex(value["utf8"]).decode("utf-8", "surrogatepass")
    raise bad_line(number, field, 'be a string or {"utf8": hexadecimal bytes}', value)


def bad_line(number: int, field: str, must: str, got: object) -> BookFormatError:
    """The error about one line of a book's file."""
    shown = repr(got)
    return BookFormatError(f"line {number}: {field} must {must}, got {shown[:200] + '...' * (len(shown) > 200)}")


def _record(text: bytes, number: int) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        shown = text[:80].decode("ascii", "backslashreplace")
        raise BookFormatError(f"line {number} must be JSON, got {shown!r} ({type(error).__name__})") from None
