"""One question's match on its way through the arena: what its programs are tried on, and how the results are scored.

Pure: what the programs are asked (`program_turns`) follows from texts; what they are tried on (`comparisons`) is known
when they have run. Running and comparing are left to the judge.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TypeVar

from codea1_env.arena.match import CodeScore, Match, MatchScore, SuiteScore
from codea1_env.judging.judge import Expectation, TrialResult, Tried
from codea1_env.judging.schedule import Turn, turn
from codea1_env.judging.validation import ValidatedTest
from codea1_env.reading.responses import nonprintable_share
from codea1_env.reading.test_case import TestCase
from codea1_env.rewards.code_a1 import RewardConfig
from codea1_env.rewards.coder_rewards import best_solution, own_reward, union_reward
from codea1_env.rewards.duel import Duel, JudgedReplay, JudgedTest, Verdict
from codea1_env.rewards.interfaces import Group
from codea1_env.rewards.tester_rewards import suite_reward
from codea1_env.sandbox.protocol import JobResult

Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class Replay:
    """A Mistake Book test as data."""

    case: TestCase
    expectation: Expectation


@dataclass(frozen=True, slots=True)
class Bout:
    """A match with all that is known when its programs have run and its suites are validated."""

    match: Match
    sources: Sequence[str]
    """The programs, as read from `match.codes`."""
    refused: Sequence[str]
    """The rule by which each may not run; empty where it may."""
    rows: Sequence[Sequence[Sequence[ValidatedTest]]]
    """The suites, as validated; `rows[i]` were written against program i."""
    replays: Sequence[Replay]
    ignored: Sequence[Sequence[tuple[tuple[str, int], ...]]]
    """What of each suite's response was not read (`Suite.unread`), by rows."""
    golden: tuple[Expectation, ...]
    """The question's golden tests, where the tester's reward asks which solutions are right."""


@dataclass(frozen=True, slots=True)
class ProgramTurns:
    """What one program is asked."""

    replays: Turn
    """Also where there are none: does it execute?"""
    suites: tuple[Turn, ...]
    """Its own suites, or all of the question's."""
    golden: Turn

    @property
    def all(self) -> tuple[Turn, ...]:
        return (self.replays, *self.suites, self.golden)


def asks_all(config: RewardConfig) -> bool:
    """Whether every program of a question is asked every suite of it."""
    return config.runs_union or config.oracle in ("majority", "dual")


def program_turns(
    match: Match,
    sources: Sequence[str],
    rows: Sequence[Sequence[Sequence[bytes]]],
    replays: Sequence[Replay],
    golden: Sequence[Expectation],
    config: RewardConfig,
) -> list[ProgramTurns]:
    """All that the programs of a match are asked. `rows[i][j]`: the calls of all tests of suite j against program i
    that can be read, valid or not: which of them count is not known yet, and must not be."""
    every = list(chain.from_iterable(rows))
    problem, room = match.problem, match.problem.suite_size_or(config.suite_size)
    is_asked_all = asks_all(config)
    return [
        ProgramTurns(
            turn(problem, source, [replay.expectation.arguments for replay in replays], room),
            tuple(turn(problem, source, calls, room) for calls in (every if is_asked_all else row)),
            turn(problem, source, [test.arguments for test in golden], room),
        )
        for source, row in zip(sources, rows, strict=True)
    ]


def comparisons(
    bout: Bout, turns: Sequence[ProgramTurns], ran: Mapping[Turn, JobResult], config: RewardConfig
) -> list[Tried]:
    """Everything that the programs are tried on, program by program, and what came of it: the replays, then suites: its
    own, or all of the question's, these as written, too, and golden tests."""
    suites = list(chain.from_iterable(bout.rows))
    starts = itertools.accumulate(map(len, bout.rows), initial=0)
    attempts: list[Tried] = []
    is_asked_all = asks_all(config)
    runs_union, runs_stated, runs_golden = config.runs_union, config.runs_stated, config.runs_golden
    for row, start, own in zip(bout.rows, starts, turns, strict=False):
        asked = own.suites if runs_union or not is_asked_all else own.suites[start : start + len(row)]
        tried = [(tuple(replay.expectation for replay in bout.replays), own.replays)]
        tried += zip(map(_counting, suites if runs_union else row), asked, strict=True)
        if runs_stated:
            tried += zip(map(_as_written, suites), own.suites, strict=True)
        if runs_golden:
            tried.append((bout.golden, own.golden))
        attempts += [(tests, one, ran[one]) for tests, one in tried]
    return attempts


def scored(bout: Bout, results: Iterator[TrialResult], config: RewardConfig) -> MatchScore:
    """The score of the match from the results of its `trials`, in their order."""
    config = config.with_suite_size(bout.match.problem.suite_size)
    tried = [_take(bout, row, results, config) for row in bout.rows]
    starts = itertools.accumulate(map(len, bout.rows), initial=0)
    judged: _Judged = {}
    runs_union = config.runs_union  # looked up in the configuration at every question
    duels = [
        _duels(bout, place, outcome, start if runs_union else 0, config, judged)
        for place, (outcome, start) in enumerate(zip(tried, starts, strict=False))
    ]
    groups = iter(_groups(bout, tried, config)) if runs_union else None
    rows = [[(duel, next(groups) if groups else None) for duel in row] for row in duels]
    rewards = _coder_rewards(rows, tried, config)
    if config.reward.asks_best:
        best = best_solution([outcome.executes for outcome in tried], rewards)
        rows = [[(duel, group and dataclasses.replace(group, best=best)) for duel, group in row] for row in rows]
    return MatchScore(
        bout.match.problem.problem_id,
        tuple(
            CodeScore(outcome.executes, reward, source, outcome.replays, rule, outcome.denied)
            for outcome, reward, source, rule in zip(tried, rewards, bout.sources, bout.refused, strict=True)
        ),
        tuple(tuple(_suite_score(duel, config, group) for duel, group in row) for row in rows),
    )


@dataclass(frozen=True, slots=True)
class _TriedProgram:
    """What one program came to."""

    executes: bool
    replays: tuple[JudgedReplay, ...]
    suites: tuple[tuple[Verdict, ...], ...]
    """Its own suites, or all of the question's; verdicts on the tests that count."""
    returned: tuple[tuple[str, ...], ...]
    """What it returned there, for display."""
    as_written: tuple[tuple[Verdict, ...], ...]
    is_right: bool
    denied: tuple[str, ...]


def _take(
    bout: Bout, row: Sequence[Sequence[ValidatedTest]], results: Iterator[TrialResult], config: RewardConfig
) -> _TriedProgram:
    everything = sum(map(len, bout.rows))
    first = next(results)
    replays = zip(bout.replays, first.verdicts, strict=True)
    suites = [next(results) for _ in range(everything if config.runs_union else len(row))]
    as_written = tuple(next(results).verdicts for _ in range(everything if config.runs_stated else 0))
    golden = next(results).verdicts if config.runs_golden else ()
    return _TriedProgram(
        first.loads if config.fidelity == "paper" else first.executes,
        tuple(JudgedReplay(replay.case, verdict) for replay, verdict in replays),
        tuple(suite.verdicts for suite in suites),
        tuple(suite.returned for suite in suites),
        as_written,
        bool(golden) and all(verdict is Verdict.PASS for verdict in golden),
        tuple(dict.fromkeys(note for result in (first, *suites) for note in result.denied)),
    )


_Judged = dict[tuple[int, Verdict | None, str], JudgedTest]
"""Tests with what came of them, by the test's `id`: programs that meet one suite mostly come to the same."""


def _duels(
    bout: Bout, place: int, tried: _TriedProgram, start: int, config: RewardConfig, judged: _Judged
) -> list[Duel]:
    """One program against the M suites that were written against it; its verdicts on them begin at `start`."""
    row = bout.rows[place]
    duels = []
    own = slice(start, start + len(row))
    for suite, response, ignored, verdicts, returned in zip(
        row, bout.match.suites[place], bout.ignored[place], tried.suites[own], tried.returned[own], strict=True
    ):
        tests = tuple(
            _judged(test.test, verdict, text or "", judged)
            for test, verdict, text in zip(suite, _placed(suite, verdicts), _placed(suite, returned), strict=True)
        )
        share = nonprintable_share(response, config.fidelity)
        problem_id = bout.match.problem.problem_id
        duels.append(
            Duel(problem_id, bout.sources[place], tried.executes, share, tests, tried.replays, ignored=ignored)
        )
    return duels


def _judged(test: JudgedTest, verdict: Verdict | None, returned: str, known: _Judged) -> JudgedTest:
    key = id(test), verdict, returned
    if key not in known:
        known[key] = dataclasses.replace(test, verdict=verdict, returned=returned)
    return known[key]


def _groups(bout: Bout, tried: Sequence[_TriedProgram], config: RewardConfig) -> list[Group]:
    """What every suite came to on every solution."""
    right = tuple(outcome.is_right for outcome in tried) if config.runs_golden else ()
    return [
        Group(
            tuple(_placed(suite, outcome.suites[index]) for outcome in tried),
            tuple(_passes(suite, outcome.as_written[index]) for outcome in tried) if config.runs_stated else (),
            right,
        )
        for index, suite in enumerate(chain.from_iterable(bout.rows))
    ]


def _coder_rewards(
    rows: Sequence[Sequence[tuple[Duel, Group | None]]], tried: Sequence[_TriedProgram], config: RewardConfig
) -> list[float]:
    if not config.judges_by_union:
        return [
            own_reward(outcome.executes, outcome.replays, [duel for duel, _ in row], config)
            for row, outcome in zip(rows, tried, strict=True)
        ]
    suites = [(duel, group) for row in rows for duel, group in row if group is not None]
    return [union_reward(j, outcome.executes, outcome.replays, suites, config) for j, outcome in enumerate(tried)]


def _suite_score(duel: Duel, config: RewardConfig, group: Group | None) -> SuiteScore:
    terms = suite_reward(duel, config, group)
    return SuiteScore(terms.reward if terms else None, terms, duel, group)


def _counting(suite: Sequence[ValidatedTest]) -> tuple[Expectation, ...]:
    return tuple(test.expectation for test in suite if test.expectation is not None)


def _as_written(suite: Sequence[ValidatedTest]) -> tuple[Expectation, ...]:
    return tuple(test.stated for test in suite if test.stated is not None)


def _placed(suite: Sequence[ValidatedTest], findings: Sequence[Found]) -> tuple[Found | None, ...]:
    """What was found for each test of the suite, None where the test does not count."""
    remaining = iter(findings)
    return tuple(next(remaining) if test.expectation is not None else None for test in suite)


def _passes(suite: Sequence[ValidatedTest], verdicts: Sequence[Verdict]) -> tuple[bool, ...]:
    """Whether each test of the suite passes as written."""
    remaining = iter(verdicts)
    return tuple(test.stated is not None and next(remaining) is Verdict.PASS for test in suite)
