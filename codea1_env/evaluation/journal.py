"""The journal of an evaluation: the plan, answers and scores, a line at a time, on the disk before it is relied on.

Does not know what an answer or a score is worth.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from codea1_env.errors import ConfigurationError, FormatError
from codea1_env.whole_files import no_room

SCHEMA = 1


class EvaluationJournal:
    """The file that an evaluation writes as it goes."""

    def __init__(self, path: Path, header: Mapping[str, Any]) -> None:
        """Open or begin it. Raises ConfigurationError where it is of another plan, FormatError where it is damaged
        before its last line: a last line that was cut off is taken away."""
        self.answers: dict[tuple[str, str], dict[str, Any]] = {}
        self.scores: dict[tuple[str, str], dict[str, Any]] = {}
        self.suites: dict[tuple[str, str], dict[str, Any]] = {}
        """Of the tester that chooses."""
        self.programs: dict[tuple[str, str], dict[str, Any]] = {}
        """That a tester is to break."""
        self._path = path
        self._file: io.FileIO = open(path, "a+b", buffering=0)  # noqa: SIM115  # closed by `close`
        try:
            self._read(path, json.loads(json.dumps({"kind": "plan", "schema": SCHEMA, **header})))
        except BaseException:
            self._file.close()
            raise

    def _read(self, path: Path, header: dict[str, Any]) -> None:
        self._file.seek(0)
        content = self._file.read()
        whole = content.rfind(b"\n") + 1
        lines = content[:whole].splitlines()
        if not lines and not _line(header).startswith(content):
            raise FormatError(f"{path} must be what codea1 eval wrote, got another file")
        for number, line in enumerate(lines, 1):
            try:
                record = json.loads(line)
                kind = record["kind"]
                if kind != "plan":
                    self._table(kind)[record["set"], record["problem_id"]] = record
                if kind in ("answers", "suites") and not 0 <= record["truncated"] <= len(record["texts"]):
                    raise ValueError("more cut off than there are texts")
            except (ValueError, KeyError, TypeError, RecursionError) as error:
                raise FormatError(f"{path}, line {number}, must be what codea1 eval wrote, got: {error!r}") from None
        first = json.loads(lines[0]) if lines else header
        if not (self.answers or self.suites or self.programs):  # a plan that nothing came of is nobody's
            self.scores.clear()
            self._file.truncate(0)
            self.append(header)
        elif first != header:
            different = sorted(name for name in {*first, *header} if first.get(name) != header.get(name))
            raise ConfigurationError(
                f"{path} must be of this evaluation to go on with it, got one with another {', '.join(different)}; "
                "choose another output"
            )
        elif whole < len(content):
            self._file.truncate(whole)

    def append(self, record: Mapping[str, Any]) -> None:
        """One line, on the disk when this returns. Raises OSError with the file's name."""
        left = memoryview(_line(record))
        try:
            while left:
                left = left[self._file.write(left) :]
            os.fsync(self._file.fileno())
        except OSError as error:
            raise no_room(self._path, error, "what was answered and scored so far is in it") from error
        if record["kind"] != "plan":
            self._table(record["kind"])[record["set"], record["problem_id"]] = dict(record)

    def _table(self, kind: str) -> dict[tuple[str, str], dict[str, Any]]:
        tables = {"answers": self.answers, "score": self.scores, "suites": self.suites, "programs": self.programs}
        return tables[kind]

    def close(self) -> None:
        self._file.close()


def _line(record: Mapping[str, Any]) -> bytes:
    return json.dumps(record, ensure_ascii=True, separators=(",", ":")).encode("ascii") + b"\n"
