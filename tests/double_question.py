"""The question that tests of arenas and environments ask, answers to it, and a sandbox that fails when told to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from codea1_env.closing import Closing
from codea1_env.errors import SandboxError
from codea1_env.problems import Problem, TestCase
from codea1_env.sandbox import Job, JobResult, LocalSandbox

DOUBLE = Problem(
    problem_id="double",
    question="Write `double(x)`, which returns twice the integer x.",
    entry_point="double",
    reference_solution="def double(x):\n    return 2 * x\n",
    golden_tests=(TestCase("double(2)", "4"),),
)
RIGHT = "def double(x):\n    return x + x\n"
SQUARE = "def double(x):\n    return x * x\n"  # right on 0 and 2 only


def on_fire(*_: object, **__: object) -> NoReturn:
    """In the place of a sandbox's `run`."""
    raise SandboxError("the machine is on fire")


class FailingSandbox(Closing):
    """Somebody's sandbox; while `fails`, infrastructure does."""

    def __init__(self, sandbox: LocalSandbox, error: SandboxError | None = None) -> None:
        self._sandbox, self._error = sandbox, error or SandboxError("the machine is on fire")
        self.version = sandbox.version
        self.fails = True

    def run(self, jobs: Sequence[Job]) -> list[JobResult]:
        if self.fails:
            raise self._error
        return self._sandbox.run(jobs)

    def close(self) -> None:
        """Not ours to close."""
