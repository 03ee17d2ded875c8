"""Players that follow a script: baselines, opponents for single-seat training, and real fakes for tests.

Coders: `OracleCoder` is right, unless the checker is `any-of`, `MutantCoder` is mostly wrong. Testers: `GoldenTester`
repeats the problem's golden tests, `RandomTester` perturbs them, `FuzzTester` puts boundary values of the same types
into them.

Does not read what the other seat wrote: no scripted tester looks at the program it attacks.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence

from codea1_env.checks import require_whole
from codea1_env.errors import ConfigurationError
from codea1_env.players.perturb import boundary, changed_call, perturbed
from codea1_env.players.player import (
    DEFAULT_SAMPLING,
    CoderRequest,
    Player,
    Request,
    Response,
    Sampling,
    TesterRequest,
    generator_for,
    require_requests,
)
from codea1_env.players.templates import fenced
from codea1_env.problems.problem import Problem
from codea1_env.reading.programs.mutants import drawn_mutant
from codea1_env.reading.test_case import TestCase


class Scripted:
    """What scripted players share: one text per request and sample, with its own source of randomness."""

    name: str
    version = "2"
    _seat: type[Request]

    def respond(
        self, requests: Sequence[Request], n: int = 1, sampling: Sampling = DEFAULT_SAMPLING, seed: int = 0
    ) -> list[list[Response]]:
        """`n` responses to each request; `sampling` has no meaning here.

        Raises ConfigurationError for a request of the other seat, for n < 1, and for a problem that lacks what the
        script needs.
        """
        require_requests(requests, self._seat, n)
        return [
            [
                Response(self._answer(request, generator_for(seed, request, k)), False, self.name, self.version)
                for k in range(n)
            ]
            for request in requests
        ]

    def _answer(self, request: Request, generator: random.Random) -> str:
        return self._write(request.problem, generator)

    def _write(self, problem: Problem, generator: random.Random) -> str:
        raise NotImplementedError


class OracleCoder(Scripted):
    """Answers with the reference solution, which a real player must not know. With the checker `any-of` that is no
    answer: it returns the list of all answers."""

    name = "oracle-coder"
    _seat = CoderRequest

    def lacks(self, problem: Problem) -> str:
        """What the problem must have here and has not; empty: nothing."""
        return "" if problem.reference_solution is not None else "it has no reference_solution, which is the answer"

    def _write(self, problem: Problem, generator: random.Random) -> str:
        return fenced(_reference(problem))


class MutantCoder(Scripted):
    """Answers with one of the problem's mutants or, if there are none, with the reference and one bug put into it.

    A problem's own mutants are wrong; a bug put in by `reading/programs/mutants.py` may change no value. If nothing in
    a reference can be changed, the program returns None.
    """

    name = "mutant-coder"
    version = "4"
    _seat = CoderRequest

    def lacks(self, problem: Problem) -> str:
        """What the problem must have here and has not; empty: nothing."""
        is_enough = bool(problem.mutants) or problem.reference_solution is not None
        return "" if is_enough else "it has no mutants and no reference_solution, of which one is the answer"

    def _write(self, problem: Problem, generator: random.Random) -> str:
        if problem.mutants:
            return fenced(generator.choice(problem.mutants))
        reference = _reference(problem)
        mutant = drawn_mutant(reference, generator)
        if mutant is None and problem.kind != "function":
            return fenced("")
        if mutant is None:
            return fenced(f"{reference}\n\ndef {problem.entry_point}(*args, **kwargs):\n    return None\n")
        return fenced(mutant.source)


class GoldenTester(Scripted):
    """Answers with the problem's golden tests."""

    name = "golden-tester"
    _seat = TesterRequest

    def _write(self, problem: Problem, generator: random.Random) -> str:
        return _suite(problem.golden_tests)


class _ChangedGoldenTests(Scripted):
    """Golden tests whose calls are changed, and whose stated values are left."""

    _seat = TesterRequest

    def __init__(self, tests: int = 8) -> None:
        """`tests`: asserts in a suite, at least 1, where the problem does not say."""
        require_whole("tests", tests)
        self._tests = tests


class RandomTester(_ChangedGoldenTests):
    """Takes golden tests and changes the literals in their calls a little, each within its type.

    It cannot know the right value of a changed call and states that of the golden test, which is mostly wrong. Such a
    test is worth something only if the reference corrects it. If there are no golden tests, its suites are empty.
    """

    name = "random-tester"

    def _write(self, problem: Problem, generator: random.Random) -> str:
        golden = problem.golden_tests
        drawn = [generator.choice(golden) for _ in range(problem.suite_size_or(self._tests) if golden else 0)]
        return _suite([TestCase(changed_call(case.call, perturbed, generator), case.expected) for case in drawn])


class FuzzTester(_ChangedGoldenTests):
    """Takes golden tests and puts boundary values of the same types into their calls; no call twice in a suite.

    Like `RandomTester` it cannot know the right values and states those of the golden tests. It does not ask other
    programs either, so its values are worth something only if the reference corrects them. A suite is shorter than
    asked for if the types allow fewer calls, and empty if there are no golden tests.
    """

    name = "fuzz-tester"
    _TRIES = 20  # a test: more find hardly another call

    def _write(self, problem: Problem, generator: random.Random) -> str:
        golden = problem.golden_tests
        cases: dict[str, TestCase] = {}
        tests = problem.suite_size_or(self._tests)
        for _ in range(self._TRIES * tests if golden else 0):
            case = generator.choice(golden)
            call = changed_call(case.call, boundary, generator)
            cases.setdefault(call, TestCase(call, case.expected))
            if len(cases) == tests:
                break
        return _suite(list(cases.values()))


CODERS: Mapping[str, Callable[[], Player]] = {"oracle": OracleCoder, "mutant": MutantCoder}
"""The scripted coders by the names that commands and environments know them by."""
TESTERS: Mapping[str, Callable[[], Player]] = {"golden": GoldenTester, "random": RandomTester, "fuzz": FuzzTester}
"""The scripted testers likewise."""


def _reference(problem: Problem) -> str:
    if problem.reference_solution is None:
        raise ConfigurationError(f"problem {problem.problem_id!r} must have a reference_solution here, got none")
    return problem.reference_solution


def _suite(cases: Sequence[TestCase]) -> str:
    return fenced("".join(f"{case}\n" for case in cases))
