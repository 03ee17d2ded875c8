"""The journal of an evaluation, read: answers, scores, suites and programs by set and problem.

Does not know what an answer or a score is worth.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from codea1_env.closing import Closing
from codea1_env.records.journal import Journal

_Table = dict[tuple[str, str], dict[str, Any]]


class EvaluationJournal(Closing):
    """What an evaluation has done, and the file that it goes into."""

    def __init__(self, path: str | os.PathLike[str], header: Mapping[str, Any]) -> None:
        """Open or begin it, see `Journal`."""
        self.answers: _Table = {}
        self.scores: _Table = {}
        self.suites: _Table = {}
        """Of the tester that chooses."""
        self.programs: _Table = {}
        """That a tester is to break."""
        self._tables = {"answers": self.answers, "score": self.scores, "suites": self.suites, "programs": self.programs}
        self.file = Journal(
            path, "codea1 eval", header, take=self._take, is_paid=lambda record: record["kind"] != "score"
        )
        for key, score in list(self.scores.items()):
            if not self.file.found or ("left_out" not in score and key not in self.answers):
                del self.scores[key]  # of another plan; or the line with the answers was damaged, and removed

    def _take(self, record: Mapping[str, Any]) -> None:
        counts = (record["truncated"], record.get("silent", 0)) if record["kind"] in ("answers", "suites") else ()
        if not all(0 <= count <= len(record["texts"]) for count in counts):
            raise ValueError("more cut off or silent than there are texts")
        self._tables[record["kind"]][record["set"], record["problem_id"]] = dict(record)

    def append(self, record: Mapping[str, Any]) -> None:
        """On the disk when this returns. Raises OSError with the file's name."""
        self.file.append(dict(record))

    def close(self) -> None:
        self.file.close()
