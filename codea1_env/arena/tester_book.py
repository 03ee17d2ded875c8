"""The tester's mistake book: per question, buggy programs that its suites let pass, to be attacked again.

The mirror of the coder's book (`mistake_book/book.py`), and ours, not the paper's: old opponents come back as targets
so that a tester does not forget bugs that the coder no longer writes. Does not decide when targets are attacked, and
does not lock: one owner at a time. No program in it is run here.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Any

from codea1_env.arena.match import MatchScore
from codea1_env.checks import require_whole
from codea1_env.mistake_book.files import bad_line, packed, read_lines, save_lines, unpacked
from codea1_env.reading.responses import read_program
from codea1_env.rewards.duel import Verdict

_HEADER = {"schema": 1, "kind": "tester_book"}
_MAX_PROGRAM = 1 << 16
"""Characters: a longer program is no target."""


@dataclass(frozen=True, slots=True)
class Target:
    """One program to attack again."""

    problem_id: str
    program: str
    """Its source."""
    misses: int
    """Suites that let it pass, minus those that did not, >= 1."""

    @property
    def response(self) -> str:
        """A coder's response that is read as this program: fit for `Match.codes`."""
        longest = max(map(len, re.findall("`+", self.program)), default=0)
        fence = "`" * max(3, longest + 1)
        fenced = f"{fence}python\n{self.program}"
        texts = (self.program, f"{fenced}\n{fence}", f"{fenced}{fence}", fenced)
        return next((text for text in texts if read_program(text, "").source == self.program), fenced)


class TesterBook:
    """Per question a multiset of programs, keyed by `problem_id`."""

    __test__ = False  # pytest: not a test class

    def __init__(self, capacity: int = 16) -> None:
        """`capacity`: most programs kept of one question, >= 1; of more, those that were missed least go, older ones
        first. Raises ConfigurationError."""
        require_whole("capacity", capacity, 1)
        self._capacity = capacity
        self._misses: dict[str, dict[str, int]] = {}

    def targets(self, problem_id: str, limit: int) -> tuple[Target, ...]:
        """The `limit` programs of a question that were missed most; of equally missed ones, those inserted first."""
        misses = self._misses.get(problem_id, {})
        chosen = sorted(misses, key=misses.__getitem__, reverse=True)[: max(limit, 0)]
        return tuple(Target(problem_id, program, misses[program]) for program in chosen)

    def record(self, problem_id: str, program: str, kills: int, misses: int, *, is_buggy: bool = False) -> None:
        """One attack on a program: `kills` suites found a bug, `misses` did not.

        Every kill of a known target decrements it, and at 0 it leaves the book; then every miss increments. A program
        that is in the book already, was killed at all, or `is_buggy` for another reason, is known to have a bug; no
        other enters: what nobody has seen fail may be right.
        """
        targets = self._misses.setdefault(problem_id, {})
        is_buggy = is_buggy or kills > 0 or program in targets
        if program in targets:
            targets[program] -= kills
            if targets[program] <= 0:
                del targets[program]
        if is_buggy and misses > 0 and len(program) <= _MAX_PROGRAM:
            targets[program] = targets.get(program, 0) + misses
            while len(targets) > self._capacity:
                del targets[min(targets, key=targets.__getitem__)]
        if not targets:
            del self._misses[problem_id]

    def record_match(self, score: MatchScore) -> None:
        """All attacks of one match. Programs that do not execute, were not attacked or have no score are passed over.

        A suite kills where a test that counts fails; a failing replay shows that a program is buggy.
        """
        for code, row in zip(score.codes, score.suites, strict=True):
            if code.executes is not True or not row or any(suite.reward is None for suite in row):
                continue
            failed = [[test.verdict not in (None, Verdict.PASS) for test in suite.duel.tests] for suite in row]
            kills = sum(map(any, failed))
            is_buggy = any(replay.verdict is not Verdict.PASS for replay in code.replays)
            self.record(score.problem_id, code.program, kills, len(row) - kills, is_buggy=is_buggy)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the book: JSON lines, a header, then a line per question; whole or not at all. Raises OSError."""
        save_lines(
            path,
            _HEADER,
            (
                {
                    "problem_id": packed(name),
                    "programs": [[packed(program), count] for program, count in targets.items()],
                }
                for name, targets in self._misses.items()
            ),
        )

    @classmethod
    def load(cls, path: str | os.PathLike[str], capacity: int = 16) -> TesterBook:
        """Read what `save` wrote. Raises BookFormatError with the line's number, and OSError.

        A smaller `capacity` than the book was saved with takes effect at each question's next attack.
        """
        book = cls(capacity)
        lines = read_lines(path, _HEADER)
        next(lines)
        for number, record in lines:
            if not isinstance(record, dict) or set(record) != {"problem_id", "programs"}:
                raise bad_line(number, "a question", "be an object with exactly problem_id and programs", record)
            problem_id = unpacked(record["problem_id"], number, "problem_id")
            if problem_id in book._misses:
                raise bad_line(number, "problem_id", "occur once in the file", problem_id)
            book._misses[problem_id] = _programs(record["programs"], number)
        return book


def _programs(listed: Any, number: int) -> dict[str, int]:
    if not isinstance(listed, list) or not listed:
        raise bad_line(number, "programs", "be a non-empty list", listed)
    targets: dict[str, int] = {}
    for index, item in enumerate(listed):
        where = f"programs[{index}]"
        if not isinstance(item, list) or len(item) != 2:
            raise bad_line(number, where, "be [program, misses]", item)
        program = unpacked(item[0], number, f"{where}[0]")
        if type(item[1]) is not int or item[1] < 1:
            raise bad_line(number, f"{where}[1]", "be an integer of at least 1", item[1])
        if program in targets:
            raise bad_line(number, where, "occur once in its question", item)
        targets[program] = item[1]
    return targets
