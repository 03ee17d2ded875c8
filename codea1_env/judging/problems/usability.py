"""What a problem can be used for: its reference runs on its own tests, and what came of that says who can play it.

    reference   the oracle of both seats: the reference loads and returns plain data that repeats itself
    golden      the oracle of the coder alone: golden tests, each of which the reference passes
    majority    and `dual`, of both seats: what solutions agree on, which takes no more than that values are plain data

Of the tests that can be read it runs all golden ones and the first MOST_HIDDEN hidden ones. A problem without tests was
only loaded: `Usability.note` says so. Does not promise that a reference is right, nor that the question asks for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from codea1_env.errors import ConfigurationError, UnusableReference
from codea1_env.judging.equality import same_value
from codea1_env.judging.judge import Judge, Trial
from codea1_env.judging.oracle import ReferenceValue
from codea1_env.judging.problems.limits import RunLimits, with_memory, with_seconds
from codea1_env.judging.problems.own_tests import OwnTest, OwnTests, Readable, told
from codea1_env.problems.check_functions import LeftOut
from codea1_env.problems.problem import Problem
from codea1_env.problems.time_limits import TimeLimit
from codea1_env.rewards.code_a1 import OracleMode
from codea1_env.sandbox.protocol import Sandbox

MOST_HIDDEN = 16
"""Hidden tests of a problem that are run."""
BATCH_PROBLEMS = 32
"""Problems that share a sandbox run."""
_AGREEMENT: tuple[OracleMode, ...] = ("majority", "dual")


@dataclass(frozen=True, slots=True)
class Usability:
    """What one problem can be used for."""

    problem: Problem
    """Without the tests that cannot be read."""
    coder: tuple[OracleMode, ...]
    """Oracles that can decide whether a program is right."""
    tester: tuple[OracleMode, ...]
    """Oracles that can decide whether an assert of the tester's own is right."""
    tests: int
    """Those that were run, and those that cannot be read."""
    right: int
    """Those that the reference passes; without a reference, those that can be read."""
    why_not: str = ""
    """What keeps it from all uses, or from some."""
    note: str = ""
    """What is not known."""
    left_out: tuple[LeftOut, ...] = ()
    """Tests that cannot be read: nobody runs them."""

    @property
    def is_usable(self) -> bool:
        return bool(self.coder or self.tester)

    def serves(self, oracle: OracleMode) -> bool:
        """Whether both seats can be judged by `oracle`; golden tests judge no tester's own calls, so the coder's."""
        return oracle in self.coder and (oracle == "golden" or oracle in self.tester)

    def __str__(self) -> str:
        """One line for people: which judge each seat gets, sealed by its oracles or a script's."""
        seats = {"coder": self.coder, "tester": self.tester}
        seats = {"coder and tester": self.coder} if self.coder == self.tester else seats
        parts = [f"{seat} ({', '.join(oracles)})" for seat, oracles in seats.items() if oracles]
        parts += ["coder (by its test script, unsealed: --judge scripts)"] if self.problem.test_script else []
        parts.append(f"{self.right} of {self.tests} tests are right" if self.tests else "no tests")
        if self.tester:
            mutants = len(self.problem.mutants)
            parts.append(f"{mutants} mutants" if mutants else "no mutants to measure testers by")
        is_judged = self.is_usable or bool(self.problem.test_script)
        told = ", ".join(parts if is_judged else ["not usable", *parts])
        return "; ".join(filter(None, [f"{self.problem.problem_id}: {told}", self.why_not, self.note]))


def check_problems(
    problems: Iterable[Problem], sandbox: Sandbox, time_limit: TimeLimit | None = None, memory_mb: int | None = None
) -> Iterator[Usability]:
    """One for each problem, in order; `time_limit` and `memory_mb`: those of the run. Raises SandboxError."""
    judge = Judge(sandbox)
    own_tests = OwnTests(judge)
    limits = RunLimits(judge, own_tests, time_limit, memory_mb)
    waiting = iter(problems)
    while batch := list(islice(waiting, BATCH_PROBLEMS)):
        yield from _checked(judge, own_tests, limits, batch)


def _run_of(one: Readable) -> tuple[OwnTest, ...]:
    return one.tests[: len(one.problem.golden_tests) + MOST_HIDDEN]


def _calls(one: Readable) -> list[bytes]:
    return one.calls[: len(_run_of(one))]


def _checked(judge: Judge, own_tests: OwnTests, limits: RunLimits, problems: Sequence[Problem]) -> list[Usability]:
    reads = own_tests.readable(problems)
    timed = [_timed(limits, *pair) for pair in zip(problems, reads, strict=True)]
    answers = iter(_answers(judge, [each for each in timed if isinstance(each, Readable)]))
    found = [
        _usability(judge, each, next(answers)) if isinstance(each, Readable) else _found(read, (), (), 0, each)
        for read, each in zip(reads, timed, strict=True)
    ]
    return [replace(one, problem=read.problem) for one, read in zip(found, reads, strict=True)]


def _timed(limits: RunLimits, problem: Problem, read: Readable) -> Readable | str:
    """With its limits, the time in seconds; why there are none."""
    try:
        (settled,) = limits.settled([problem])
        timed = with_seconds(read.problem, settled.time_limit_s)
        return replace(read, problem=with_memory(timed, settled.memory_mb))
    except UnusableReference as error:
        return str(error)


_Answer = list[ReferenceValue] | str | None
"""What a reference returns for the calls of a problem's tests; why it does not load; None: there is none."""


def _answers(judge: Judge, reads: Sequence[Readable]) -> list[_Answer]:
    """Of all references in one run; of each by itself where one of them does not load."""
    having = [read for read in reads if read.problem.reference_solution is not None]
    try:
        rows = judge.reference_values([(read.problem, _calls(read)) for read in having])
    except UnusableReference as error:
        return [str(error)] if len(reads) == 1 else [answer for read in reads for answer in _answers(judge, [read])]
    silent = [read.problem for read in having if not _calls(read)]
    trials = judge.try_programs([Trial(problem, problem.reference_solution or "", ()) for problem in silent])
    refused = {
        id(problem): f"the reference_solution of problem {problem.problem_id!r} must load and define "
        f"{problem.entry_point!r}"
        for problem, trial in zip(silent, trials, strict=True)
        if not trial.executes
    }
    answers = {id(read): refused.get(id(read.problem), row) for read, row in zip(having, rows, strict=True)}
    return [answers.get(id(read)) for read in reads]


def _usability(judge: Judge, read: Readable, answer: _Answer) -> Usability:
    golden = len(read.problem.golden_tests)
    if isinstance(answer, str):
        return _found(read, (), (), 0, answer)
    why_not = told(read.left_out)
    if answer is None:
        oracles: tuple[OracleMode, ...] = ("golden",) if golden else ()
        why_not = why_not or "no reference_solution, so that nobody has checked its tests"
        return _found(read, (*oracles, *_AGREEMENT), _AGREEMENT, len(_run_of(read)), why_not)
    failures = [value.failure for value in answer if value.failure]
    if answer and len(failures) == len(answer):
        return _found(read, (), (), 0, f"the reference returns plain data for no call of its tests: {_told(failures)}")
    passed = _passed(judge, read, answer)
    if answer and not any(passed):
        return _found(read, (), (), 0, "the reference passes none of its tests")
    if not all(passed):
        why_not = "; ".join(filter(None, [f"the reference fails {passed.count(False)} of its tests", why_not]))
    oracles = ("reference", "golden") if golden and all(passed[:golden]) else ("reference",)
    note = "" if answer else "it has no test that can be read, so that nobody knows what its reference returns"
    return _found(read, (*oracles, *_AGREEMENT), ("reference", *_AGREEMENT), sum(passed), why_not, note)


def _passed(judge: Judge, read: Readable, answer: Sequence[ReferenceValue]) -> list[bool]:
    """Whether the reference passes each test that is run."""
    problem, tolerance = read.problem, judge.tolerances(read.problem)
    return [
        not value.failure
        and (
            same_value(test.expectation.value, value.value, tolerance)
            or judge.is_right(problem, test.expectation.arguments, value.value, test.expectation.value, tolerance)
        )
        for test, value in zip(_run_of(read), answer, strict=True)
        if test.expectation  # one that cannot be read is not run
    ]


def _found(
    read: Readable,
    coder: tuple[OracleMode, ...],
    tester: tuple[OracleMode, ...],
    right: int,
    why_not: str,
    note: str = "",
) -> Usability:
    tests = len(_run_of(read)) + len(read.left_out)
    return Usability(read.problem, coder, tester, tests, right, why_not, note, read.left_out)


def _told(failures: Sequence[str]) -> str:
    counts = Counter("no plain data" if failure == "opaque" else failure for failure in failures)
    return ", ".join(f"{name} ({count})" for name, count in counts.most_common(3))


def require_judgeable(problems: Iterable[Problem], sandbox: Sandbox, oracle: OracleMode, where: str) -> None:
    """Raise ConfigurationError where a problem cannot be judged by `oracle` in both seats. `where`: of the problems."""
    found = list(check_problems(problems, sandbox))
    refused = [each for each in found if not each.serves(oracle)]
    if refused:
        first = "; ".join(f"{each.problem.problem_id}: {each.why_not or 'nothing to judge by'}" for each in refused[:3])
        raise ConfigurationError(
            f"{where} must hold problems that the oracle {oracle!r} can judge, got {len(refused)} of {len(found)} that "
            f"it cannot ({first}{'; ...' if len(refused) > 3 else ''}); `codea1 data check` lists them"
        )
