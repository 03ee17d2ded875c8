"""The journal of a long command: its plan, then a line for everything that is done, so that the same command goes on.

A line is in the file before it is relied on. Whatever ends the command, whole lines stay, and half a line at the end is
taken away by the next start. Another plan is refused; so is a line that no command wrote, by its number. Does not know
what a record means, nor that one writer is alone: that is for whoever opens it (`whole_files.claimed`).
"""

from __future__ import annotations

import io
import itertools
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from codea1_env.closing import Closing
from codea1_env.errors import ConfigurationError, FormatError
from codea1_env.judging.version import FIRST, VERSION
from codea1_env.whole_files import append_whole, no_room

SCHEMA = 1
Record = dict[str, Any]
_STATE = "what was done so far is in it"
_PLAN = b'{"kind":"plan",'


class Journal(Closing):
    """The file of one command's work; a subclass keeps what its records say. A context manager that closes it."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        command: str,
        plan: Mapping[str, Any],
        *,
        is_synced: bool = True,
    ) -> None:
        """Open or begin it. `command`: who writes it, e.g. `codea1 eval`. `is_synced`: whether a line is on the disk
        when `append` returns, or may still be lost if the machine fails.

        Raises OSError, ConfigurationError for the journal of another plan, and FormatError for another file.
        """
        self.path = Path(path)
        self._command, self._is_synced = command, is_synced
        self.found = 0
        """Records of earlier starts."""
        self._file: io.FileIO = open(path, "a+b", buffering=0)  # noqa: SIM115  # closed by `close`
        try:
            self._begin(json.loads(json.dumps({"kind": "plan", "schema": SCHEMA, "judge": VERSION, **plan})))
        except BaseException:
            self._file.close()
            raise

    def _take(self, record: Record) -> None:
        """Gets every record of this plan, those that are there and those that are appended; what it raises (ValueError,
        KeyError, TypeError) makes a line damaged."""

    def _is_paid(self, record: Record) -> bool:
        """Whether a record cost anything; a journal without such records gives way to another plan."""
        return True

    def _begin(self, plan: Record) -> None:
        whole = self._whole_bytes()
        if not whole and not _PLAN.startswith(os.pread(self._file.fileno(), len(_PLAN), 0)):
            raise FormatError(
                f"{self.path} must be what {self._command} wrote, got another file; choose another output"
            )
        first = self._first(whole)
        if first == plan:
            for number, record in self.numbered():
                try:
                    self._take(record)
                except (ValueError, KeyError, TypeError) as error:
                    raise self.damaged(number, error) from None
                self.found += 1
            self._file.truncate(whole)
        elif first is not None and any(self._is_paid(record) for _, record in self.numbered()):
            different = sorted(name for name in {*first, *plan} if first.get(name) != plan.get(name))
            raise ConfigurationError(
                f"{self.path} must belong to this {_noun(self._command)} to continue it, got one with another "
                f"{', '.join(different)}; choose another output"
            )
        else:
            self._file.truncate(0)
            self._write([plan])

    def _whole_bytes(self) -> int:
        """Up to the end of the last line that has one."""
        at = os.fstat(self._file.fileno()).st_size
        while at:
            start = max(0, at - (1 << 20))
            found = os.pread(self._file.fileno(), at - start, start).rfind(b"\n")
            if found >= 0:
                return start + found + 1
            at = start
        return 0

    def _first(self, whole: int) -> Record | None:
        if not whole:
            return None
        with self.path.open("rb") as lines:
            first = self._record(1, lines.readline())
        if first["kind"] != "plan":
            raise self.damaged(1, "no plan")
        return {"judge": FIRST, **first}

    def numbered(self) -> Iterator[tuple[int, Record]]:
        """The records after the plan, from the file, with their lines' numbers. Raises FormatError with that number."""
        with self.path.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                if number > 1 and line.endswith(b"\n"):
                    yield number, self._record(number, line)

    def _record(self, number: int, line: bytes) -> Record:
        try:
            record = json.loads(line)
            if not isinstance(record.get("kind"), str):
                raise TypeError("a record of no kind")
        except (ValueError, AttributeError, TypeError, RecursionError) as error:
            raise self.damaged(number, error) from None
        return dict(record)

    def damaged(self, number: int, why: str | Exception) -> FormatError:
        """The error of a line that this command did not write."""
        if isinstance(why, Exception):  # not its repr: that of a UnicodeDecodeError is as long as the line
            why = f"{type(why).__name__}: {why}"
        fix = "choose another output" if number == 1 else "remove that line, and what it said is done again"
        return FormatError(f"{self.path}, line {number}, must be what {self._command} wrote, got: {why}; {fix}")

    def append(self, *records: Record) -> None:
        """Whole lines or nothing of them. Raises OSError with the file's name."""
        self._write(records)
        for record in records:
            self._take(record)

    def _write(self, records: Iterable[Record]) -> None:
        append_whole(self._file, b"".join(map(json_line, records)), _STATE)
        if self._is_synced:
            try:
                os.fsync(self._file.fileno())
            except OSError as error:
                raise no_room(self.path, error, _STATE) from error

    def cut(self, number: int) -> None:
        """Take away the line of this number, and those after it."""
        with self.path.open("rb") as lines:
            self._file.truncate(sum(len(line) for line in itertools.islice(lines, number - 1)))

    @property
    def is_bare(self) -> bool:
        """Whether nothing stands behind the plan."""
        return next(self.numbered(), None) is None

    def remove(self) -> None:
        """What it is about has come to its end."""
        self.close()
        self.path.unlink(missing_ok=True)

    def close(self) -> None:
        self._file.close()

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, KeyboardInterrupt):
            error.add_note("the same command goes on")
        elif error is not None and not self._file.closed and self.is_bare:  # what went wrong was the beginning
            self.remove()
        super().__exit__(kind, error, trace)


def json_line(record: Mapping[str, object]) -> bytes:
    return json.dumps(record, ensure_ascii=True, separators=(",", ":")).encode("ascii") + b"\n"


def _noun(command: str) -> str:
    return {"codea1 eval": "evaluation", "codea1 score": "scoring"}.get(command, command.split()[-1])
