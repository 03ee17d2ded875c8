"""How good each seat is: the coder on held-out problems, the tester on mutants of held-out problems; all of them, or
some in between. And hidden tests beside the rewards: the collusion gap of a round, regressions of a run.

Everything is scored by the arena; nothing here is ever a reward. Per-problem results are kept, so that two models can
be compared on the same problems. What the field calls pass@k and mut@k is defined in `codea1_env/evaluation/metrics.py`
and measured by `codea1 eval`. Does not log or decide when to measure, and does not promise to see more than sampling at
the training temperature shows.
"""

from __future__ import annotations

import ast
import dataclasses
import json
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from codea1_env.arena.arena import Arena
from codea1_env.arena.diagnostics import collusion_gap
from codea1_env.arena.match import Match, SuiteScore
from codea1_env.errors import ConfigurationError, FormatError, ProblemFormatError, SandboxError
from codea1_env.evaluation.metrics import Interval, mean_interval
from codea1_env.players.player import CoderRequest, TesterRequest
from codea1_env.problems.families.fineprint import clause_of_mutant, clause_of_tests
from codea1_env.problems.problem import Problem
from codea1_env.rewards.duel import JudgedTest, Status, Verdict
from codea1_env.whole_files import write_whole

CoderSample = Callable[[Sequence[CoderRequest], int], list[list[str]]]
"""(requests, samples per request) to responses, request by request."""
TesterSample = Callable[[Sequence[TesterRequest], int], list[list[str]]]


@dataclass(frozen=True, slots=True)
class CoderResult:
    """One entry per problem, each a mean over the problem's samples, in [0, 1]."""

    hidden: tuple[float, ...]
    """Share of programs that pass every hidden test."""
    golden: tuple[float, ...]
    """Share of programs that pass every golden test; problems without golden tests have no entry."""
    executes: tuple[float, ...]
    tests: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """By problem_id: the share of programs that pass each hidden test, in their order."""
    clauses: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """By clause of fine print, where problems have any: one entry per problem with it, the share of programs that pass
    all hidden tests of the clause."""

    def summary(self) -> dict[str, float]:
        golden = {"golden_pass_rate": float(np.mean(self.golden))} if self.golden else {}
        shares = [np.mean(passed) for passed in self.tests.values() if passed]
        tests = {"hidden_tests_passed": float(np.mean(shares))} if shares else {}
        return {
            "hidden_pass_rate": float(np.mean(self.hidden)),
            **tests,
            **golden,
            "executes": float(np.mean(self.executes)),
            **{f"clause_{name}": float(np.mean(shares)) for name, shares in sorted(self.clauses.items())},
        }


@dataclass(frozen=True, slots=True)
class TesterResult:
    """One entry per held-out problem that has a mutant, each a mean over its mutants and suites; it may be none."""

    valid: tuple[float, ...] = ()
    """Share of K tests that are valid as written and no duplicates."""
    kills: tuple[float, ...] = ()
    """Share of K tests that are valid as written and fail the mutant."""
    input_kills: tuple[float, ...] = ()
    """Share of K tests whose input separates mutant from reference, whatever value was stated."""
    all_valid: tuple[float, ...] = ()
    """Share of suites that hold K tests, all valid as written and different: stricter than `SuiteResult.is_valid`."""
    killed: tuple[float, ...] = ()
    """Share of suites with a valid test that the mutant fails, whatever else is in them."""
    killed_by_any: tuple[float, ...] = ()
    """Share of mutants that fail a valid test of any of the n suites."""
    empty_inputs: tuple[float, ...] = ()
    """Share of tests that call with an empty list: the cheap way to be valid."""
    input_length: tuple[float, ...] = ()
    """Mean length of the list that tests call with."""
    clauses: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """By clause of fine print that a mutant does not honour: one entry per such mutant, the share of K tests that are
    valid as written and fail it."""

    def summary(self) -> dict[str, float]:
        if not self.valid:
            return {}
        means = {_LOGGED_AS.get(name, name): float(np.mean(getattr(self, name))) for name in _TESTER_MEASURES}
        return means | {f"clause_{name}": float(np.mean(shares)) for name, shares in sorted(self.clauses.items())}


_TESTER_MEASURES = tuple(each.name for each in dataclasses.fields(TesterResult) if each.name != "clauses")
_LOGGED_AS = {"valid": "validity", "kills": "kill_rate", "input_kills": "input_kill_rate"}


@dataclass(frozen=True, slots=True)
class MeasuredSeats:
    """Both seats at one point of a run. A recipe that trains one seat only leaves the other out."""

    coder: CoderResult
    tester: TesterResult | None = None


def evaluate_coder(arena: Arena, problems: Sequence[Problem], sample: CoderSample, samples: int) -> CoderResult:
    """Grade `samples` programs of each problem on golden and hidden tests. Raises SandboxError if one has no grade."""
    responses = sample([CoderRequest(problem) for problem in problems], samples)
    graded = arena.grade_many(
        [
            (problem, texts, problem.golden_tests + problem.hidden_tests)
            for problem, texts in zip(problems, responses, strict=True)
        ]
    )
    hidden, golden, executes = [], [], []
    tests: dict[str, tuple[float, ...]] = {}
    clauses: dict[str, list[float]] = {}
    for problem, grades in zip(problems, graded, strict=True):
        _require_scores(grade.executes is not None for grade in grades)
        split = len(problem.golden_tests)
        ours = [_known(grade.verdicts[:split]) for grade in grades]
        theirs = [_known(grade.verdicts[split:]) for grade in grades]
        if any(ours):
            golden.append(float(np.mean([_all_pass(verdicts) for verdicts in ours])))
        hidden.append(float(np.mean([_all_pass(verdicts) for verdicts in theirs])))
        passed = [[verdict is Verdict.PASS for verdict in verdicts] for verdicts in theirs]
        tests[problem.problem_id] = tuple(np.mean(passed, axis=0).tolist())  # (samples, tests) -> (tests,)
        parts = np.array(clause_of_tests(problem))
        for name in dict.fromkeys(parts.tolist()):
            whole = np.array(passed)[:, parts == name].all(axis=1)  # (samples,)
            clauses.setdefault(name, []).append(float(whole.mean()))
        executes.append(float(np.mean([bool(grade.executes) for grade in grades])))
    by_clause = {name: tuple(shares) for name, shares in clauses.items()}
    return CoderResult(tuple(hidden), tuple(golden), tuple(executes), tests, by_clause)


def evaluate_tester(
    arena: Arena, problems: Sequence[Problem], sample: TesterSample, samples: int, mutants: int
) -> TesterResult:
    """Let the tester attack the first `mutants` mutants of each problem with `samples` suites each.

    Problems without a mutant are left out. The Mistake Book is neither replayed into the measures nor changed.
    """
    targets = [(problem, mutant) for problem in problems for mutant in problem.mutants[:mutants]]
    responses = sample([TesterRequest(problem, mutant) for problem, mutant in targets], samples)
    matches = [
        Match(problem, (mutant,), (tuple(suites),), by_reference=True)
        for (problem, mutant), suites in zip(targets, responses, strict=True)
    ]
    per_problem: dict[str, list[dict[str, float]]] = {}
    clauses: dict[str, list[float]] = {}
    for (problem, mutant), score in zip(targets, arena.play(matches, update_book=False), strict=True):
        _require_scores(suite.terms is not None for suite in score.suites[0])
        size = problem.suite_size_or(arena.config.suite_size)
        measures = [_suite_measures(suite, size) for suite in score.suites[0]]
        means = {name: float(np.mean([measure[name] for measure in measures])) for name in measures[0]}
        means["killed_by_any"] = max(measure["killed"] for measure in measures)
        per_problem.setdefault(score.problem_id, []).append(means)
        if name := clause_of_mutant(problem, mutant):
            clauses.setdefault(name, []).append(means["kills"])
    found = {
        name: tuple(float(np.mean([means[name] for means in rows])) for rows in per_problem.values())
        for name in _TESTER_MEASURES
    }
    return TesterResult(**found, clauses={name: tuple(shares) for name, shares in clauses.items()})


def _suite_measures(suite: SuiteScore, suite_size: int) -> dict[str, float]:
    """Those of a `TesterResult`, but for `killed_by_any`."""
    tests = [test for test in suite.duel.tests if test.status is not Status.SURPLUS]
    valid = sum(test.status is Status.KEPT for test in tests)
    separating = [test for test in tests if test.verdict not in (None, Verdict.PASS)]
    kills = sum(test.status is Status.KEPT for test in separating)
    lengths = [length for test in tests if (length := _input_length(test)) is not None]
    return {
        "valid": valid / suite_size,
        "kills": kills / suite_size,
        "input_kills": len(separating) / suite_size,
        "all_valid": float(valid == suite_size),
        "killed": float(kills > 0),
        "empty_inputs": sum(length == 0 for length in lengths) / suite_size,
        "input_length": float(np.mean(lengths)) if lengths else 0.0,
    }


def _input_length(test: JudgedTest) -> int | None:
    """Length of the list that a test calls with; None where there is no such list."""
    if test.call is None:
        return None
    call = ast.parse(test.call, mode="eval").body
    is_list = isinstance(call, ast.Call) and call.args and isinstance(call.args[0], ast.List)
    return len(call.args[0].elts) if is_list else None  # type: ignore[attr-defined]  # narrowed above


def paired_interval(before: Sequence[float], after: Sequence[float]) -> Interval:
    """95 % bootstrap interval of mean(after - before), resampling problems. Raises ConfigurationError without any."""
    interval = mean_interval(np.asarray(after, dtype=float) - np.asarray(before, dtype=float))
    if interval is None:
        raise ConfigurationError("an interval must have at least one problem, got none")
    return interval


def _require_scores(scored: Iterable[bool]) -> None:
    if not all(scored):
        raise SandboxError("an evaluation must be scored to the end, got no verdicts: the sandbox failed, see the log")


def _known(verdicts: Sequence[Verdict | None]) -> list[Verdict]:
    """Without tests that cannot be read."""
    return [verdict for verdict in verdicts if verdict is not None]


def _all_pass(verdicts: Sequence[Verdict | None]) -> bool:
    return all(verdict is Verdict.PASS for verdict in verdicts)


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

        Raises what `read` raises, and OSError.
        """
        passed = {name: _as_bits(shares) for name, shares in result.tests.items()}
        rounds = self.read()
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

    def read(self) -> dict[int, dict[str, int]]:
        """By rounds done, each problem's hidden tests as the bits of a number, the first one lowest. Raises FormatError
        for a file that is no such record."""
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
