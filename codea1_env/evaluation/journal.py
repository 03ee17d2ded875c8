"""The journal of an evaluation, read: answers, scores, suites and programs by set and problem.

Does not know what an answer or a score is worth.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from codea1_env.problems.problem import Problem
from codea1_env.records.journal import Journal, Record

_Table = dict[tuple[str, str], Record]


class EvaluationJournal(Journal):
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
        super().__init__(path, "codea1 eval", header)
        for key, score in list(self.scores.items()):
            known = [self.answers, *[self.suites] * ("chosen" in score), *[self.programs] * ("exposures" in score)]
            if "left_out" not in score and any(key not in table for table in known):
                del self.scores[key]  # a line that it comes from was damaged, and removed

    def note(self, kind: str, name: str, problem: Problem, **fields: Any) -> None:
        """Append what there is to say of a problem of the set `name`."""
        self.append({"kind": kind, "set": name, "problem_id": problem.problem_id, **fields})

    def _take(self, record: Record) -> None:
        counts = (record["truncated"], record.get("silent", 0)) if record["kind"] in ("answers", "suites") else ()
        if not all(0 <= count <= len(record["texts"]) for count in counts):
            raise ValueError("more cut off or silent than there are texts")
        self._tables[record["kind"]][record["set"], record["problem_id"]] = record

    def _is_paid(self, record: Record) -> bool:
        return bool(record["kind"] != "score")
