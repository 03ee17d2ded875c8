"""Testers on real bugs: programs that somebody wrote for a question and that are wrong; which of them a tester exposes.

A program is wrong if it loads, defines the entry point and fails one of the question's golden and hidden tests by more
than a time-out. Programs that only run out of time are counted apart, as are right ones and ones that do not load.
A white-box tester sees the program, a black-box tester the question only, so that one suite is for all its programs.

Of a suite's first K asserts, those are looked at that the reference can answer and that repeat no call. A program is
exposed by the first k tests whose stated values are right if it fails one of these k; by inputs alone if it fails one
of the first k calls, whatever the tests state. A test attacks it if its value is right and the program fails it (ATGen,
arXiv 2510.14635). Shares are of a question's programs and suites, and intervals are over questions.

A test that the program only runs out of time on exposes nothing, for that may be the machine's doing; such tests are
counted. Does not ask players: see `evaluate.py`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codea1_env.arena.arena import Arena
from codea1_env.arena.match import Grade
from codea1_env.errors import FormatError
from codea1_env.evaluation.metrics import Interval, mean_interval
from codea1_env.judging.expected_values import BatchOracle
from codea1_env.judging.judge import Judge, Trial
from codea1_env.judging.validation import ValidatedTest, read_suites, validate
from codea1_env.problems.problem import Problem
from codea1_env.reading.grammar import Fidelity
from codea1_env.reading.messages import answer_texts
from codea1_env.reading.responses import read_program, read_suite
from codea1_env.rewards.code_a1 import RewardConfig
from codea1_env.rewards.duel import Status, Verdict
from codea1_env.sandbox.protocol import Sandbox


@dataclass(frozen=True, slots=True)
class Examined:
    """The different programs of one question, by what its own tests say of them."""

    wrong: tuple[str, ...]
    """Sources."""
    right: int = 0
    timeouts: int = 0
    """Run out of time and do nothing else that is wrong."""
    unloadable: int = 0
    """Do not load, or do not define the entry point."""
    ranked: tuple[tuple[str, float], ...] = ()
    """Every source, with the share of the question's tests that it passes."""


def read_programs(path: Path) -> dict[str, list[str]]:
    """Responses of a coder by question: lines with `problem_id` and `codes`, as `codea1 score` reads them; the journal
    of `codea1 eval --seat coder`, whose last line may be incomplete, since a killed run leaves such a one; or a problem
    file, whose mutants they are. Raises FormatError (must, got)."""
    responses: dict[str, list[str]] = {}
    lines = path.read_bytes().splitlines(keepends=True)
    if lines and lines[0].startswith(b'{"kind":"plan"') and not lines[-1].endswith(b"\n"):
        lines.pop()
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
            codes = _codes(record)
            is_readable = codes is None or (isinstance(record["problem_id"], str) and isinstance(codes, list))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            is_readable = False
        if not is_readable:
            raise FormatError(
                f"{path}, line {number}, must be a JSON object with a problem_id and codes, a list of answers; got "
                f"{line.decode(errors='backslashreplace').strip()!r:.100}"
            )
        if codes is not None:
            texts = answer_texts(codes, f"{path}, line {number}: codes", FormatError)
            responses.setdefault(record["problem_id"], []).extend(texts)
        elif record.get("seat", "coder") != "coder":
            raise FormatError(f"{path} must be the journal of a coder, got the one of a {record['seat']}")
    return responses


def _codes(record: Mapping[str, Any]) -> Any:
    """None in what else a journal has."""
    if record.get("kind") in ("plan", "score", "suites", "programs"):
        return None
    if record.get("kind") == "answers":
        return record["texts"]
    is_problem = "question" in record and "codes" not in record
    return record.get("mutants", []) if is_problem else record["codes"]


def examine(sandbox: Sandbox, problem: Problem, texts: Sequence[str]) -> Examined:
    """What a question's golden and hidden tests say of a coder's responses, each different program once. Raises
    SandboxError."""
    arena = Arena(sandbox, execution_cache_mb=0, on_failure="raise")
    different = {read_program(text, problem.entry_point).source.strip(): text for text in texts}
    tests = (*problem.golden_tests, *problem.hidden_tests)
    (grades,) = arena.grade_many([(problem, list(different.values()), tests)])
    loaded = [(source, grade) for source, grade in zip(different, grades, strict=True) if grade.executes]
    wrong = [source for source, grade in loaded if set(grade.verdicts) - {Verdict.PASS, Verdict.TIMEOUT, None}]
    right = sum(grade.all_passed for _, grade in loaded)
    timeouts, unloadable = len(loaded) - right - len(wrong), len(different) - len(loaded)
    ranked = zip(different, map(_passed, grades), strict=True)
    return Examined(tuple(wrong), right, timeouts, unloadable, tuple(ranked))


def _passed(grade: Grade) -> float:
    return sum(verdict is Verdict.PASS for verdict in grade.verdicts) / len(grade.verdicts) if grade.executes else 0.0


def exposures(
    judge: Judge,
    asked: Sequence[tuple[Problem, Sequence[Sequence[str]]]],
    programs: Sequence[Sequence[str]],
    suite_size: int,
    fidelity: Fidelity = "strict",
) -> list[list[dict[str, int]]]:
    """For each question a record for each of its programs' suites; `asked` has the suites of each program.

    `answered`: asserts among the first K that the reference can answer, whatever they state; `right`: of these, with a
    right value; `attacks`: of these, those that the program fails; `by_inputs`, `by_values`: place, from 1, of the
    first of either that it fails, 0 where it fails none; `timeouts`: those that it has no time for. Raises
    UnusableReference, SandboxError.
    """
    config = RewardConfig(suite_size=suite_size, fidelity=fidelity)
    read = {(problem.problem_id, text): read_suite(text, problem.entry_point, fidelity=fidelity)
            for problem, rows in asked for row in rows for text in row}  # fmt: skip
    against = [
        (problem, source, read[problem.problem_id, text])
        for (problem, rows), sources in zip(asked, programs, strict=True)
        for row, source in zip(rows, sources, strict=True)
        for text in row
    ]
    known = read_suites(judge, [(problem, suite) for problem, _, suite in against], config)
    answer = BatchOracle(judge, "reference", ()).answer
    counted = [
        [test for test in tests if test.expectation is not None] for tests in validate(judge, known, config, answer)
    ]
    trials = [
        Trial(problem, source, tuple(test.expectation for test in tests if test.expectation is not None))
        for (problem, source, _), tests in zip(against, counted, strict=True)
    ]
    records = iter(
        [_exposure(tests, result.verdicts) for tests, result in zip(counted, judge.try_programs(trials), strict=True)]
    )
    return [[next(records) for row in rows for _ in row] for _, rows in asked]


def exposure_measures(
    problems: Sequence[Sequence[Mapping[str, Any]]], suite_size: int, seed: int
) -> dict[str, Interval | None]:
    """Shares of programs and suites that are exposed by the first 1 and K tests with right values, and by inputs alone;
    the share of K tests that state a right value; and of those that the program fails, too."""
    measures: dict[str, Interval | None] = {}
    for name, field in (("exposed", "by_values"), ("inputs", "by_inputs")):
        for k, title in ((1, "1"), (suite_size, "k")):
            measures[f"{name}@{title}"] = mean_interval(
                [sum(0 < row[field] <= k for row in rows) / len(rows) for rows in problems], seed
            )
    for name, field in (("right tests@k", "right"), ("attack rate", "attacks")):
        shares = [sum(row[field] for row in rows) / len(rows) / suite_size for rows in problems]
        measures[name] = mean_interval(shares, seed)
    return measures


def _exposure(tests: Sequence[ValidatedTest], verdicts: Sequence[Verdict]) -> dict[str, int]:
    fails = [verdict not in (Verdict.PASS, Verdict.TIMEOUT) for verdict in verdicts]
    by_values = [fail for each, fail in zip(tests, fails, strict=True) if each.test.status is Status.KEPT]
    return {
        "answered": len(fails),
        "right": len(by_values),
        "attacks": sum(by_values),
        "by_values": by_values.index(True) + 1 if True in by_values else 0,
        "by_inputs": fails.index(True) + 1 if True in fails else 0,
        "timeouts": sum(verdict is Verdict.TIMEOUT for verdict in verdicts),
    }
