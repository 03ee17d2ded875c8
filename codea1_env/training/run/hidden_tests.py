"""Hidden tests, which nobody is paid for, beside the rewards: the collusion gap of a round, regressions of a run.

The first looks at the programs of a round, the second at held-out problems over all evaluations. Both only report.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from codea1_env.arena.diagnostics import collusion_gap
from codea1_env.errors import FormatError, ProblemFormatError
from codea1_env.problems.problem import Problem
from codea1_env.training.run.held_out import CoderResult
from codea1_env.whole_files import write_whole

_log = logging.getLogger(__name__)

HIDDEN = "hidden_tests.json"
"""In a run's directory: which hidden tests the coder passed, evaluation by evaluation."""


def hidden_metrics(
    arena: Any, problems: Sequence[Problem], responses: Sequence[str], rewards: Sequence[float | None]
) -> dict[str, float]:
    """How the programs of a round do on hidden tests, and how much more they earned. One entry a row; the rows of a
    question are neighbours.

    Empty where no question has hidden tests, or one cannot be run: that is no reason to end a run.
    """
    items, paid = [], []
    rows = zip(problems, responses, rewards, strict=True)
    for _, group in groupby(rows, key=lambda row: row[0].problem_id):
        members = list(group)
        problem = members[0][0]
        if problem.hidden_tests:
            items.append((problem, tuple(response for _, response, _ in members), problem.hidden_tests))
            paid += [reward for _, _, reward in members]
    if not items:
        return {}
    try:
        graded = arena.grade_many(items)
    except ProblemFormatError as error:
        _log.warning("the collusion gap of a round is not measured: %s", error)
        return {}
    shares = [None if grade.executes is None else grade.share for grades in graded for grade in grades]
    known = [share for share in shares if share is not None]
    if not known:
        return {}
    return {"hidden_tests_passed": sum(known) / len(known), "collusion_gap": collusion_gap(paid, shares)}


class HiddenRecord:
    """Which hidden tests of the held-out problems the coder passed, by rounds done; a file, so that a run can go on.

    An evaluation is compared with those of earlier rounds alone: what a run did after the checkpoint that it is resumed
    from has no say.
    """

    def __init__(self, file: Path) -> None:
        self._file = file

    def note(self, rounds_done: int, result: CoderResult) -> dict[str, float]:
        """Write an evaluation down. `regression_rate`: of the hidden tests once passed, the share that fail now, in
        [0, 1]; left out where there is none. A test is passed where at least half of the samples pass it.

        Raises FormatError for a file that is no such record, and OSError.
        """
        passed = {name: _as_bits(shares) for name, shares in result.tests.items()}
        rounds = self._read()
        earlier = [bits for done, bits in rounds.items() if done < rounds_done]
        rounds = {done: bits for done, bits in rounds.items() if done != rounds_done} | {rounds_done: passed}
        shown = {str(done): {name: f"{bits:x}" for name, bits in rounds[done].items()} for done in sorted(rounds)}
        write_whole(self._file, json.dumps(shown) + "\n")
        once = lost = 0
        for name, now in passed.items():
            before = 0
            for known in earlier:
                before |= known.get(name, 0)
            once += before.bit_count()
            lost += (before & ~now).bit_count()
        return {"regression_rate": lost / once} if once else {}

    def _read(self) -> dict[int, dict[str, int]]:
        """By rounds done, each problem's hidden tests as the bits of a number, the first one lowest."""
        if not self._file.exists():
            return {}
        try:
            record = json.loads(self._file.read_text(encoding="utf-8"))
            return {
                int(done): {name: int(bits, 16) for name, bits in problems.items()} for done, problems in record.items()
            }
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            raise FormatError(
                f"{self._file} must be the record of hidden tests that this run wrote, got another text ({error}); "
                "without the file, regressions are counted anew"
            ) from None


def _as_bits(shares: Sequence[float]) -> int:
    return sum(1 << place for place, share in enumerate(shares) if share >= 0.5)
