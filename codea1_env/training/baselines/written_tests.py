"""What a tester that does not change writes once: suites against programs of the base coder, validated by the arena.

Supervised fine-tuning learns from them, static supervision takes them for golden tests. The samples depend on the run's
seed and the place of a question among those asked. Does not touch the Mistake Book, and learns nothing.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from codea1_env.arena.arena import Arena
from codea1_env.arena.match import Match
from codea1_env.errors import SandboxError
from codea1_env.players.player import CoderRequest, TesterRequest
from codea1_env.problems.jsonl import write_problems
from codea1_env.problems.problem import Problem
from codea1_env.reading.grammar import read_case
from codea1_env.reading.test_case import TestCase
from codea1_env.rewards.duel import ROUNDING, Duel
from codea1_env.training.models.sampling import load_model
from codea1_env.training.round.rounds import attacks_of
from codea1_env.training.run.callbacks import SeatRun

GOLDEN = "golden_tests.jsonl"
"""The problems with the tests that a tester wrote, in the seat's directory."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WrittenSuite:
    """One suite of the tester, and what the arena left of it."""

    problem: Problem
    program: str
    """What the tester was shown."""
    tests: tuple[TestCase, ...]
    """Those that count, in order, with the reference's values; may be none."""


def write_suites(run: SeatRun, arena: Arena, tester: Path, problems: Sequence[Problem]) -> list[WrittenSuite]:
    """`attacked` programs of the base for each of `problems`, and M suites of `tester` against each program that fits
    into its prompt.

    A test counts as it does in the reward: with `reward.correct_outputs` also where the stated value was wrong. Raises
    SandboxError where something could not be validated.
    """
    preset, shape = run.preset, run.preset.round
    coder, attacker = load_model(run.base, preset, run.device), load_model(tester, preset, run.device)
    written: list[WrittenSuite] = []
    for chunk, start in enumerate(range(0, len(problems), shape.questions)):
        asked, seed = problems[start : start + shape.questions], run.stream(chunk)
        sampler = coder.as_trained(preset, "coder", seed)
        programs = sampler.coder([CoderRequest(problem) for problem in asked], shape.attacked)
        repeated = [problem for problem in asked for _ in range(shape.attacked)]
        attacks = attacks_of(repeated, [response for group in programs for response in group], preset.reward.fidelity)
        sampler = attacker.as_trained(preset, "tester", seed)
        requests = [TesterRequest(attack.problem, attack.program) for attack in attacks]
        suites = sampler.suites(requests, shape.suites, shape.tester_prompt_tokens)
        matches = [
            Match(attack.problem, (attack.response,), (tuple(text for text in row if text is not None),),
                  by_reference=True)
            for attack, row in zip(attacks, suites, strict=True)
        ]  # fmt: skip
        for attack, score in zip(attacks, arena.play(matches, update_book=False), strict=True):
            if any(suite.terms is None for suite in score.suites[0]):
                raise SandboxError("suites must be validated to the end, got no statuses: the sandbox failed")
            written += [
                WrittenSuite(attack.problem, attack.program, counting_tests(suite.duel)) for suite in score.suites[0]
            ]
    return written


def counting_tests(duel: Duel) -> tuple[TestCase, ...]:
    """The tests of a scored suite that the reward counts, with the values that were used: what ran on the program."""
    return tuple(
        TestCase(test.call, test.expected)
        for test in duel.tests
        if test.verdict is not None and test.call is not None and test.expected is not None and test.reason != ROUNDING
    )


def written_golden_tests(run: SeatRun, arena: Arena, tester: Path, problems: Sequence[Problem]) -> list[Problem]:
    """The problems with golden tests by `tester`, which are left in the seat's directory too."""
    replaced = with_written_tests(problems, write_suites(run, arena, tester, problems))
    run.output.mkdir(parents=True, exist_ok=True)
    write_problems(run.output / GOLDEN, replaced)
    without = sum(not problem.golden_tests for problem in replaced)
    if without:
        _log.warning("%d of %d problems are left without a golden test: they pay nothing", without, len(replaced))
    return replaced


def with_written_tests(problems: Sequence[Problem], written: Sequence[WrittenSuite]) -> list[Problem]:
    """The problems with what their suites came to as golden tests: every test that counts once, in order, or none."""
    tests: dict[str, dict[TestCase, None]] = {problem.problem_id: {} for problem in problems}
    for suite in written:
        # In paper fidelity a test may be written in a way that only there is one.
        usable = [test for test in suite.tests if not read_case(test, suite.problem.entry_point).reason]
        tests[suite.problem.problem_id].update(dict.fromkeys(usable))
    return [dataclasses.replace(problem, golden_tests=tuple(tests[problem.problem_id])) for problem in problems]
