"""What happened when one suite met one program: enough to recompute and to show every reward. Plain data.

Does not decide anything: `judging/judge.py` fills it in, and `code_a1.py` reads it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from codea1_env.reading.test_case import TestCase


class Status(StrEnum):
    """The status of one assert of a suite, which decides what it counts for (`rewards.suite_terms`)."""

    KEPT = "kept"
    """Valid as written."""
    WRONG_EXPECTED = "wrong_expected"
    """Runs on the reference, which returns another value than the stated one."""
    WRONG_RELATION = "wrong_relation"
    """Runs on the reference, but its claim is not true of the reference's value; there is no right value to put in its
    place."""
    VACUOUS = "vacuous"
    """The claim is true of the reference, and of too many other values to say anything
    (`judging/relations/status.py`)."""
    DUPLICATE = "duplicate"
    """The same call as an earlier test of the suite. A relation is a duplicate if it refuses nothing new about its
    call."""
    RAISES = "raises"
    """The reference raises, or the oracle has no value for the call."""
    FLAKY = "flaky"
    """The reference does not repeat itself."""
    REJECTED = "rejected"
    """Outside the grammar; `JudgedTest.reason` says how."""
    SURPLUS = "surplus"
    """Beyond the first K asserts (strict fidelity only)."""


ROUNDING = "rounding"
"""The reason of a kept test whose stated value differs from the reference's by rounding alone."""


class Verdict(StrEnum):
    """The result of one test that ran on the solution. Everything but PASS is a failure."""

    PASS = "pass"
    FAIL = "fail"
    ERROR = "error"
    TIMEOUT = "timeout"
    CRASH = "crash"


@dataclass(frozen=True, slots=True)
class JudgedTest:
    """One assert of the suite, validated on the reference and, if it counts, run on the solution."""

    source: str
    """The assert as written, for display."""
    status: Status
    reason: str
    """Name of the reason if `status` is REJECTED; ROUNDING if it is KEPT and the stated value is not exactly the
    reference's; else empty."""
    call: str | None
    """Canonical source of the call or, for a relational test, of its condition; None if the grammar rejected the
    test."""
    stated: str | None
    """Canonical source of the value that the test states; `True` for a condition."""
    expected: str | None
    """Canonical source of the value that was used: the reference's, or `True` for a condition; None if there is
    none."""
    verdict: Verdict | None
    """None if the test was not run on the solution."""
    returned: str = field(default="", compare=False)
    """For display: what the solution returned or raised if it failed (`judging/returned.py`), else empty."""


@dataclass(frozen=True, slots=True)
class JudgedReplay:
    """One Mistake Book test, run on the solution."""

    case: TestCase
    verdict: Verdict | None
    """None if it was not run because the solution did not load or infrastructure failed."""


@dataclass(frozen=True, slots=True)
class Duel:
    """One suite against one program."""

    problem_id: str
    program: str
    """Source of the solution."""
    executes: bool | None
    """Whether the solution loads within its limits and defines a callable entry point; None if that is not known."""
    nonprintable: float
    """Share of non-printable characters in the tester's response, in [0, 1]."""
    tests: tuple[JudgedTest, ...]
    """In order of appearance: the first K are those that count in strict fidelity."""
    replays: tuple[JudgedReplay, ...]
    infrastructure_error: str = ""
    """If it is not empty, the sandbox failed and nothing here may be scored."""
    ignored: tuple[tuple[str, int], ...] = ()
    """The parts of the tester's response that were not read: the reason's name (`suites.Ignored`) and how often it
    occurred."""

    @property
    def unreadable(self) -> tuple[str, ...]:
        """The reasons why no test of the suite could be read, each once; empty if a test could be read."""
        if any(test.call is not None for test in self.tests):
            return ()
        if self.infrastructure_error:
            return ("infrastructure failed",)
        reasons = {test.reason for test in self.tests} | {str(reason) for reason, _ in self.ignored}
        return tuple(sorted(reasons)) or ("empty",)
