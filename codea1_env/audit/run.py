"""Plays the corpus on a grader: controls, attacks, each followed by two honest programs, and what programs leave.

A grader that ends, hangs or answers something else is started anew in a new cell and the audit goes on; one that does
not answer honest programs at all is refused.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Sequence

from codea1_env.audit.corpus import PARTS, CorpusEntry, Exercise, chosen, controls, digest, effects
from codea1_env.audit.grader import Answered, Graded, Grader
from codea1_env.audit.result import Played, Result
from codea1_env.errors import ConfigurationError

Watch = Callable[[Iterable[CorpusEntry]], Iterable[CorpusEntry]]
NEXT = "next"
"""What the honest programs are called that follow an attack."""
_MOST_UNANSWERED = 3
"""Honest programs in a row, each asked of a new process."""
_BROKEN = (Graded.ENDED, Graded.SILENT, Graded.GARBLED)


def audit(
    grader: Grader, *, parts: Sequence[str] = PARTS, budget: int | None = None, watch: Watch = lambda entries: entries
) -> Result:
    """Everything that is to be known of a grader, in one pass.

    `budget`: attacks at most, chosen from all classes in turns, the same ones every time; controls and effects are
    always played. `watch` is handed the programs and may count them. Raises ConfigurationError where the grader does
    not answer, SandboxUnsafe where it cannot be kept in a cell.
    """
    entries = [*controls(), *chosen(parts, budget), *(entry for part in parts for entry in effects(part))]
    began = time.monotonic()
    asking = _GraderSession(grader)
    try:
        played = tuple(asking.play(entry) for entry in watch(entries))
    finally:
        grader.close()
    return Result(
        grader.name,
        {part: digest(part) for part in ("controls", *parts)},
        budget is None or len(chosen(parts, None)) <= budget,
        played,
        time.monotonic() - began,
        statistics.median(asking.times_s),
    )


class _GraderSession:
    def __init__(self, grader: Grader) -> None:
        self._grader = grader
        self._unanswered = 0
        self.times_s: list[float] = []

    def play(self, entry: CorpusEntry) -> Played:
        answer = self._ask(entry)
        reached = then_passed = then_lost = False
        if entry.kind == "effect":
            left = {} if answer in _BROKEN else self._grader.look()
            reached = answer is Graded.PASSED if entry.shows == "passes" else left.get(entry.label, False)
        elif entry.kind == "attack" and answer not in _BROKEN:
            after = self._ask(_honest("wrong", entry.exercise))
            then_passed = after is Graded.PASSED
            if answer is Graded.FAILED and after is Graded.ENDED:
                answer = after  # whoever ends it ends it now or in a moment: which of both is chance
            then_lost = self._ask(_honest("right", entry.exercise)) is not Graded.PASSED
        if then_passed or then_lost or answer in _BROKEN:
            self._grader.restart()
        return Played(entry.key, entry.kind, entry.label, entry.part, answer.value, reached, then_passed, then_lost)

    def _ask(self, entry: CorpusEntry) -> Graded:
        is_honest = entry.kind in ("right", "wrong")
        began = time.monotonic()
        answered = self._grader.ask(entry.request())
        if answered.answer in _BROKEN:
            self._grader.restart()
        if is_honest:
            self._unanswered = self._unanswered + 1 if answered.answer in _BROKEN else 0
            if self._unanswered >= _MOST_UNANSWERED or (self._unanswered and not self.times_s):
                raise ConfigurationError(_refusal(answered))
            if entry.name != NEXT:  # a grader may remember what it was asked before
                self.times_s.append(time.monotonic() - began)
        return answered.answer


def _refusal(answered: Answered) -> str:
    got = {
        Graded.ENDED: "a process that ended",
        Graded.SILENT: "no answer in time",
        Graded.GARBLED: "something else",
    }[answered.answer]
    said = f" ({answered.said!r})" if answered.said else ""
    return (
        f'the grader must answer an honest program with a line {{"passed": true}} or false, got {got}{said}; '
        "docs/sandbox.md says what it reads and answers, and which files it can read"
    )


def _honest(kind: str, exercise: Exercise) -> CorpusEntry:
    program = exercise.right if kind == "right" else exercise.wrong
    return CorpusEntry(kind, "", NEXT, "controls", exercise, program, exercise.tests)
