"""Builds pools: every program of a question on every test of it, in the sandbox, each as though they were alone.

What is left out is counted and named. A program that may keep state is left out, for its verdict on a test may depend
on the tests before it; so is one that hangs or crashes on so many tests that the rest of a suite would not be tried on
it, unless it fails them all; so is a text that would not be read back as it stands.

Equal arguments give equal pools. Infrastructure that fails is a SandboxError and never a verdict.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from codea1_env.arena.match import Match
from codea1_env.checks import require, require_whole
from codea1_env.discrete.pool import MAX_TEST, RUN_STATUSES, Pool
from codea1_env.errors import FormatError, UnusableReference
from codea1_env.judging.expected_values import BatchOracle
from codea1_env.judging.judge import Judge, Trial
from codea1_env.judging.problems.limits import RunLimits
from codea1_env.judging.problems.own_tests import OwnTests
from codea1_env.judging.repeats import call_keys, names_of
from codea1_env.judging.schedule import CALLS_WORTH, with_imports
from codea1_env.judging.validation import ValidatedTest, read_suites, validate
from codea1_env.players import RandomTester, TesterRequest
from codea1_env.problems.problem import Problem
from codea1_env.reading.parsing import parses
from codea1_env.reading.responses import Suite, read_program, read_suite
from codea1_env.records.matches import read_match
from codea1_env.rewards.code_a1 import RewardConfig
from codea1_env.rewards.duel import Status, Verdict
from codea1_env.sandbox.inside.looks import alone_because
from codea1_env.sandbox.protocol import Sandbox

_PERTURBED = 48
"""Perturbed golden tests that a bundled question's tests are chosen from."""
_WRONG, _RAISING = 3, 1
"""Tests with a wrong value, and on which the reference raises, in a pool that is built from problems."""


@dataclass(frozen=True, slots=True)
class Built:
    """What became of one question."""

    problem_id: str
    pool: Pool | None
    """None where no program or no test is left, or the reference is of no use or fails a golden test."""
    left_out: tuple[str, ...] = ()
    """Why programs and tests are not in the pool, a reason each; equal ones may repeat."""
    why_not: str = ""
    """Why there is no pool."""


@dataclass(slots=True)
class _Recorded:
    """What the lines of one question hold together; dictionaries for their order."""

    problem: Problem
    programs: dict[str, None] = field(default_factory=dict)
    tests: dict[str, None] = field(default_factory=dict)
    seen: tuple[set[str], set[str]] = field(default_factory=lambda: (set(), set()))
    """Programs that have been looked at, and tests: a text may be both."""
    left_out: list[str] = field(default_factory=list)


def pools_of_problems(problems: Iterable[Problem], sandbox: Sandbox, tests: int = 16, seed: int = 0) -> Iterator[Built]:
    """A pool for each problem: reference and mutants; golden tests, and perturbed ones with right and wrong values.

    `tests`: most tests in a pool, >= 1. Perturbed tests that tell programs apart as none before them come first.
    Hidden tests are not used. The order of programs and tests is drawn from `seed` and the problem's id.
    """
    require_whole("tests", tests)
    judge = Judge(sandbox)
    limits = RunLimits(judge, OwnTests(judge))
    for problem in problems:
        programs = dict.fromkeys((problem.reference_solution or "", *problem.mutants))
        golden = [str(case) for case in problem.golden_tests]
        try:
            (problem,) = limits.settled([problem])
            failed = _failed(judge, problem, golden)
            require(not failed, "the reference", "pass the golden tests", failed, UnusableReference)
            perturbed = _perturbed(judge, problem, seed)
        except UnusableReference as error:
            yield Built(problem.problem_id, None, (), str(error))
            continue
        built = build_pool(judge, problem, tuple(programs), tuple(dict.fromkeys([*golden, *perturbed])))
        if built.pool is not None:
            generator = random.Random(f"pool {seed} {problem.problem_id}")
            places = _chosen(built.pool, set(golden), tests, generator)
            order = generator.sample(range(len(built.pool.programs)), len(built.pool.programs))
            built = replace(built, pool=built.pool.select(order, places))
        yield built


def pools_of_records(
    lines: Iterable[bytes], sandbox: Sandbox, programs: int = 32, tests: int = 64
) -> Iterator[Built | str]:
    """A pool for each question of recorded outputs (the input of `codea1 score`), after all lines have been read.

    The first `programs` distinct programs and `tests` distinct tests of every question that fit into a pool, whatever
    suites and lines they stand in. A line that cannot be read, or that names a question with other fields than before,
    gives a message.
    """
    require_whole("programs", programs)
    require_whole("tests", tests)
    questions: dict[str, _Recorded] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            match = read_match(line)
        except FormatError as error:
            yield f"line {number}: {error}"
            continue
        question = questions.setdefault(match.problem.problem_id, _Recorded(match.problem))
        if question.problem != match.problem:
            yield f"line {number}: the problem must be that of the first line about {match.problem.problem_id!r}"
            continue
        _take(question, match, programs, tests)
    judge = Judge(sandbox)
    limits = RunLimits(judge, OwnTests(judge))
    for question in questions.values():
        try:
            (problem,) = limits.settled([question.problem])
        except UnusableReference as error:
            yield Built(question.problem.problem_id, None, tuple(question.left_out), str(error))
            continue
        built = build_pool(judge, problem, tuple(question.programs), tuple(question.tests))
        yield replace(built, left_out=(*question.left_out, *built.left_out))


def _take(question: _Recorded, match: Match, programs: int, tests: int) -> None:
    """Add what a line has to a question that has not enough yet."""
    seen_programs, seen_tests = question.seen
    for code in match.codes:
        source = read_program(code, match.problem.entry_point).source
        if len(question.programs) < programs and source not in seen_programs:
            seen_programs.add(source)
            if _is_fit(source, match.problem, question.left_out):
                question.programs[source] = None
    for response in (response for row in match.suites for response in row):
        if len(question.tests) >= tests:
            return
        for text in _texts(response, match.problem):
            if len(question.tests) < tests and text not in seen_tests:
                seen_tests.add(text)
                if _is_readable(text, match.problem, question.left_out):
                    question.tests[text] = None


def build_pool(judge: Judge, problem: Problem, programs: Sequence[str], tests: Sequence[str]) -> Built:
    """One question's pool of these distinct programs and tests, in their order, without what has to be left out."""
    if problem.suite_size is not None:
        why = f"suite_size must be left out (pools have the game's, RewardConfig.suite_size), got {problem.suite_size}"
        return Built(problem.problem_id, None, (), why)
    left_out: list[str] = []
    sources = [source for source in programs if _is_fit(source, problem, left_out)]
    texts = [text for text in tests if _is_readable(text, problem, left_out)]
    try:
        validated = _alone(judge, problem, texts)
    except UnusableReference as error:
        return Built(problem.problem_id, None, tuple(left_out), str(error))
    run = [test.expectation for test in validated if test.expectation is not None]
    trials = [Trial(problem, source, ()) for source in sources]
    trials += [Trial(problem, source, (expectation,)) for source in sources for expectation in run]
    results = judge.try_programs(trials)
    executes = [result.executes for result in results[: len(sources)]]
    verdicts = iter([result.verdicts[0] for result in results[len(sources) :]])
    table = [[next(verdicts) for _ in run] for _ in sources]
    kept = [place for place, row in enumerate(table) if _is_independent(row, left_out)]
    if not kept or not texts:
        what = "program" if not kept else "test"
        return Built(problem.problem_id, None, tuple(left_out), f"at least one {what} must be usable, got none")
    calls, fails = _calls(problem, validated), [_failures(validated, table[place]) for place in kept]
    # A program with other names of parameters fails f(x=1), and may pass f(1).
    alike = [test for test in range(len(texts)) if all(row[test] == row[calls[test]] for row in fails)]
    left_out += ["a test of an earlier one's call, on which a program does otherwise"] * (len(texts) - len(alike))
    pool = Pool(
        problem.problem_id,
        problem.question,
        problem.entry_point,
        tuple(sources[place] for place in kept),
        tuple(texts[test] for test in alike),
        tuple(validated[test].test.status for test in alike),
        tuple(calls[test] for test in alike),
        tuple(executes[place] for place in kept),
        tuple(tuple(row[test] for test in alike) for row in fails),
        problem.source,
        problem.license,
    )
    return Built(problem.problem_id, pool, tuple(left_out))


def _alone(judge: Judge, problem: Problem, texts: Sequence[str]) -> list[ValidatedTest]:
    """Every test as the only one of its suite."""
    suites = [(problem, read_suite(text, problem.entry_point)) for text in texts]
    answer = BatchOracle(judge, "reference", ()).answer
    config = RewardConfig()
    return [row[0] for row in validate(judge, read_suites(judge, suites, config), config, answer)]


def _failed(judge: Judge, problem: Problem, golden: Sequence[str]) -> list[str]:
    """The golden tests that the reference fails; those that cannot be read are left out later."""
    texts = [text for text in golden if _is_readable(text, problem, [])]
    return [
        text
        for text, test in zip(texts, _alone(judge, problem, texts), strict=True)
        # A checker's golden test may state something else than a value that is returned, and is run as it stands.
        if test.test.status is not Status.KEPT and (test.expectation is None or test.expectation != test.stated)
    ]


def _is_fit(source: str, problem: Problem, left_out: list[str]) -> bool:
    """Whether a program means the same in every company, and is read from a response as it stands."""
    why = ""
    if read_program(source, problem.entry_point).source != source:
        why = "a program that is not read back as it stands"
    elif any("\ud800" <= character <= "\udfff" for character in source):
        why = "a program that UTF-8 cannot hold"
    elif parses(source) and alone_because(with_imports(problem, source)):  # what does not parse does not load either
        why = "a program whose calls must each run alone"
    if why:
        left_out.append(why)
    return not why


def _is_readable(text: str, problem: Problem, left_out: list[str]) -> bool:
    """Whether a line is one assert, alone and in any company."""
    is_line = text.isprintable() and text.startswith("assert") and len(text) <= MAX_TEST
    suite = read_suite(text, problem.entry_point) if is_line and parses(text) else Suite(())
    if len(suite.tests) == 1 and not suite.ignored:
        return True
    left_out.append(f"a test that is not one printable line of one assert, at most {MAX_TEST} characters long")
    return False


def _is_independent(row: Sequence[Verdict], left_out: list[str]) -> bool:
    """Whether no suite of these tests has some that are not tried because of others, or it makes no difference."""
    strikes = sum(verdict in (Verdict.TIMEOUT, Verdict.CRASH) for verdict in row)
    if strikes < CALLS_WORTH or Verdict.PASS not in row:
        return True
    left_out.append(f"a program that passes some tests and hangs or crashes on {CALLS_WORTH} or more")
    return False


def _calls(problem: Problem, validated: Sequence[ValidatedTest]) -> tuple[int, ...]:
    """For every test the place of the first that makes the same call; its own where programs are not run on it."""
    asked = [test.expectation.arguments for test in validated if test.expectation is not None]
    keys = iter(call_keys(problem, asked, names_of(problem)))
    first: dict[bytes, int] = {}
    return tuple(
        place if test.expectation is None else first.setdefault(next(keys), place)
        for place, test in enumerate(validated)
    )


def _failures(validated: Sequence[ValidatedTest], row: Sequence[Verdict]) -> tuple[bool, ...]:
    verdicts = iter(row)
    return tuple(test.expectation is not None and next(verdicts) is not Verdict.PASS for test in validated)


def _perturbed(judge: Judge, problem: Problem, seed: int) -> list[str]:
    """Perturbed golden tests as they were written, each followed by the one that states the reference's value."""
    response = RandomTester(_PERTURBED).respond([TesterRequest(problem, "")], seed=seed)[0][0].text
    written = list(dict.fromkeys(_texts(response, problem)))
    texts = []
    for text, test in zip(written, _alone(judge, problem, written), strict=True):
        texts.append(text)
        if test.test.status in RUN_STATUSES:
            texts.append(f"assert {test.test.call} == {test.test.expected}")
    return [text for text in texts if len(text) <= MAX_TEST]


def _texts(response: str, problem: Problem) -> list[str]:
    """A suite's tests as lines that stand for themselves: what the grammar accepts in its canonical form."""
    tests = read_suite(response, problem.entry_point).tests
    return [test.source if test.reason else f"assert {test.call} == {test.stated}" for test in tests]


def _chosen(pool: Pool, golden: set[str], count: int, generator: random.Random) -> list[int]:
    """At most `count` of the pool's tests, in an order by chance."""
    places = range(len(pool.tests))
    columns = [tuple(row[place] for row in pool.fails) for place in places]
    right = [place for place in places if pool.statuses[place] is Status.KEPT and pool.tests[place] not in golden]
    # A call has one right test; what golden tests ask already is no news.
    asked = {pool.calls[place] for place in places if pool.tests[place] in golden}
    right = [place for place in right if pool.calls[place] not in asked]
    seen = {columns[place] for place in places if pool.tests[place] in golden}
    news = [place for place in right if columns[place] not in seen and not seen.add(columns[place])]  # type: ignore[func-returns-value]
    wrong = [place for place in places if pool.statuses[place] is Status.WRONG_EXPECTED][:_WRONG]
    raising = [place for place in places if pool.statuses[place] is Status.RAISES][:_RAISING]
    first = [place for place in places if pool.tests[place] in golden]
    ranked = dict.fromkeys([*first, *news, *(place for place in right if place not in news)])
    room = max(count - len(wrong) - len(raising), 1)
    chosen = list(dict.fromkeys([*list(ranked)[:room], *wrong, *raising]))[:count]
    return generator.sample(chosen, len(chosen))
