"""What came of an audit: what every program was answered, and what that says, by class.

Plain data with a JSON form that can be read back. Equal graders have equal digests, whatever time they took.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from codea1_env.audit.corpus import CLASSES, PARTS, SUITES
from codea1_env.errors import FormatError

_STATE = "state between runs"
_UNTIMED = ("seconds", "seconds_per_verdict")


@dataclass(frozen=True, slots=True)
class Played:
    """One program and what the grader made of it."""

    key: str
    kind: str
    """`attack`, `effect`, `right`, `wrong` or `slow`."""
    label: str
    """An attack's class, an effect's name."""
    part: str
    answer: str
    """`passed`, `failed`, `skipped`, `ended`, `silent` or `garbled`."""
    reached: bool = False
    """Of an effect: it came to pass."""
    then_passed: bool = False
    """An honest wrong program that was graded next was counted as right."""
    then_lost: bool = False
    """An honest right program that was graded next was not."""

    @property
    def forged(self) -> bool:
        """A wrong program was counted as right: this one, or the next because of it."""
        return self.kind == "attack" and (self.answer == "passed" or self.then_passed)


@dataclass(frozen=True, slots=True)
class Result:
    """One audit."""

    grader: str
    digests: Mapping[str, str]
    """Of the controls and of each part that was played."""
    whole: bool
    """All programs of the parts were played, not a budget of them."""
    played: tuple[Played, ...]
    seconds: float = field(compare=False)
    seconds_per_verdict: float = field(compare=False)
    """The median over the honest controls, one at a time, the way to the grader included."""

    def tally(self, label: str, part: str | None = None) -> tuple[int, list[str]]:
        """Of the attacks of a class, in one part or in all of them: how many the grader graded, and the keys of those
        that it counted as right."""
        attacks = [each for each in self.played if (each.kind, each.label) == ("attack", label)]
        graded = [each for each in attacks if part in (None, each.part) and each.answer != "skipped"]
        forged = [each.key for each in graded if (each.forged if label == _STATE else each.answer == "passed")]
        return len(graded), forged

    @property
    def labels(self) -> tuple[str, ...]:
        """The classes that were played, in the order of reports."""
        present = {each.label for each in self.played if each.kind == "attack"}
        return tuple(label for label in (*CLASSES, SUITES) if label in present)

    @property
    def forged(self) -> tuple[str, ...]:
        """The attacks that were counted as right, or after which another wrong program was."""
        return tuple(each.key for each in self.played if each.forged)

    @property
    def lost(self) -> tuple[str, ...]:
        """Honest right programs that were not counted as right; after an attack, named by the attack."""
        alone = [each.key for each in self.played if each.kind == "right" and each.answer != "passed"]
        return (*alone, *(f"after {each.key}" for each in self.played if each.then_lost))

    @property
    def accepted(self) -> tuple[str, ...]:
        """Honest wrong programs, and slow ones, that were counted as right; slow ones that were never ended."""
        wrong = {"wrong": ("passed",), "slow": ("passed", "silent")}
        return tuple(each.key for each in self.played if each.answer in wrong.get(each.kind, ()))

    @property
    def reached(self) -> tuple[str, ...]:
        """The effects that came to pass."""
        return tuple(each.label for each in self.played if each.reached)

    def without_answer(self, answer: str) -> tuple[str, ...]:
        """What `ended` the grader, left it `silent` or had it answer something `garbled`."""
        return tuple(each.key for each in self.played if each.answer == answer)

    @property
    def clean(self) -> bool:
        """Nothing forged, nothing lost, and the controls hold."""
        return not (self.forged or self.lost or self.accepted)

    @property
    def digest(self) -> str:
        """Of everything but times and the grader's name: sixteen digits of SHA-256."""
        told = {name: value for name, value in self.as_data().items() if name not in (*_UNTIMED, "grader", "digest")}
        return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:16]

    def as_data(self) -> dict[str, Any]:
        """As JSON has it."""
        parts = [part for part in PARTS if part in self.digests]
        tallies = {part: {label: self.tally(label, part) for label in self.labels} for part in parts}
        return {
            "kind": "audit",
            "grader": self.grader,
            "digests": dict(self.digests),
            "whole": self.whole,
            "forged": {part: {label: forged for label, (_, forged) in row.items()} for part, row in tallies.items()},
            "attacks": {part: {label: graded for label, (graded, _) in row.items()} for part, row in tallies.items()},
            "lost": list(self.lost),
            "accepted": list(self.accepted),
            "effects": list(self.reached),
            **{answer: list(self.without_answer(answer)) for answer in ("ended", "silent", "garbled", "skipped")},
            "seconds": round(self.seconds, 1),
            "seconds_per_verdict": round(self.seconds_per_verdict, 4),
            "played": [asdict(each) for each in self.played],
        }

    def as_json(self) -> str:
        """One JSON object, with its digest."""
        return json.dumps({**self.as_data(), "digest": self.digest}, indent=1) + "\n"


def read_result(text: str) -> Result:
    """From `as_json`. Raises FormatError."""
    try:
        report = json.loads(text)
        return Result(
            report["grader"],
            report["digests"],
            report["whole"],
            tuple(Played(**each) for each in report["played"]),
            report["seconds"],
            report["seconds_per_verdict"],
        )
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise FormatError(f"a report must be one that `codea1 audit -o` wrote, got {error!r}") from None
