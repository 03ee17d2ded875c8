"""The arena: statuses, replays, the book's updates, grades, and what an infrastructure failure may not touch."""

from __future__ import annotations

import dataclasses
import json
import logging
from collections.abc import Sequence
from typing import Any

import double_question
import numpy as np
import pytest
from double_question import RIGHT, SQUARE, FailingSandbox
from hypothesis import example, given, settings, strategies as st

from codea1_env.arena.arena import Arena
from codea1_env.arena.match import Grade, Match, MatchScore
from codea1_env.errors import ConfigurationError, ProblemFormatError, SandboxError, SandboxUnsafe, UnusableReference
from codea1_env.judging.oracle import MOST_HANGS
from codea1_env.mistake_book.book import MistakeBook
from codea1_env.problems import bundled_problems
from codea1_env.problems.kinds import NODES
from codea1_env.problems.problem import Problem
from codea1_env.reading.literals import tree_source
from codea1_env.reading.test_case import TestCase
from codea1_env.records.matches import write_score
from codea1_env.rewards.code_a1 import RewardConfig
from codea1_env.rewards.duel import Status, Verdict
from codea1_env.sandbox import CallsJob, Job, JobResult, LocalSandbox
from codea1_env.sandbox.inside.values import encode

HIDDEN = (TestCase("double(0)", "0"), TestCase("double(3)", "6"))
DOUBLE = dataclasses.replace(double_question.DOUBLE, golden_tests=(), hidden_tests=HIDDEN, time_limit_s=0.3)
BROKEN = "def double(x):\n    return x +\n"
TOTAL = """class Solution:
    def total(self, root: TreeNode) -> int:
        return 0 if root is None else root.val + self.total(root.left) + self.total(root.right)
"""
LENGTHS = """class Solution:
    def total(self, heads: list[ListNode | None], by: int) -> int:
        return sum(head is not None for head in heads)
"""
P, F, E, T = Verdict.PASS, Verdict.FAIL, Verdict.ERROR, Verdict.TIMEOUT


class CountingSandbox:
    """The real sandbox, with a count of the jobs that are not the reference's."""

    version = "counting"

    def __init__(self, sandbox: LocalSandbox) -> None:
        self._sandbox = sandbox
        self.programs = 0

    def run(self, jobs: Sequence[Job]) -> list[JobResult]:
        self.programs += sum(isinstance(job, CallsJob) and job.source != DOUBLE.reference_solution for job in jobs)
        return self._sandbox.run(jobs)

    def close(self) -> None:
        """Not ours to close."""


def arena_of(
    sandbox: LocalSandbox, book: dict[TestCase, int] | None = None, config: RewardConfig | None = None
) -> Arena:
    """A new arena whose book holds these frequencies for DOUBLE."""
    filled = MistakeBook()
    for case, count in (book or {}).items():
        filled.record("double", [], [case] * count)
    return Arena(sandbox, config, filled)


def play(arena: Arena, code: str, *suites: str, problem: Problem = DOUBLE) -> MatchScore:
    (score,) = arena.play([Match(problem, (code,), (suites,))])
    return score


def case(x: int, expected: int | None = None) -> TestCase:
    return TestCase(f"double({x})", str(2 * x if expected is None else expected))


def asserts(*numbers: int) -> str:
    """A right suite on these numbers."""
    return "".join(f"assert double({x}) == {2 * x}\n" for x in numbers)


# Statuses


SUITE = """
assert double(1) == 2
assert double(2) == 5
assert double(1) == 3
assert double('a', 'b') == 1
assert double(4) > 3
assert double([1]) == [1, 1]
assert double(7) == 14
assert double(8) == 16
assert double(9) == 18
assert double(5 / 0) == 1
"""


def test_every_assert_has_its_status_and_the_first_k_count(sandbox: LocalSandbox) -> None:
    (suite,) = play(arena_of(sandbox), SQUARE, SUITE).suites[0]
    assert [(test.status.value, test.verdict) for test in suite.duel.tests] == [
        ("kept", F),
        ("wrong_expected", P),
        ("duplicate", None),
        ("raises", None),
        ("rejected", None),
        ("kept", E),
        ("kept", F),
        ("kept", F),
        ("surplus", None),
        ("surplus", None),
    ]
    assert [test.reason for test in suite.duel.tests] == ["", "", "", "TypeError", "operator", "", "", "", "", ""]
    second = suite.duel.tests[1]
    assert (second.call, second.stated, second.expected) == ("double(2)", "5", "4")
    # By hand: v = 5 of K = 8, 4 invalid: validity 4/8; 4 of 5 failed: f_new = 4/8; R_T = (4/8 + 4/8) / 2.
    assert suite.terms is not None
    assert (suite.terms.v, suite.terms.invalid, suite.terms.passed) == (5, 4, 1)
    assert suite.reward == 0.5


def test_wrong_values_are_not_run_where_outputs_are_not_corrected(sandbox: LocalSandbox) -> None:
    arena = arena_of(sandbox, config=RewardConfig(correct_outputs=False))
    (suite,) = play(arena, SQUARE, "assert double(2) == 5\nassert double(3) == 5\nassert double(4) == 8").suites[0]
    assert [(test.status, test.verdict) for test in suite.duel.tests] == [
        (Status.WRONG_EXPECTED, None),
        (Status.WRONG_EXPECTED, None),
        (Status.KEPT, F),
    ]
    assert arena.book.frequencies("double") == {case(4): 1}


def test_paper_fidelity_reads_every_operator_as_equality_and_has_no_surplus(sandbox: LocalSandbox) -> None:
    arena = arena_of(sandbox, config=RewardConfig(fidelity="paper", suite_size=2))
    (suite,) = play(arena, SQUARE, asserts(1, 2, 3) + "assert double(5) > 0").suites[0]
    assert [(test.status.value, test.verdict) for test in suite.duel.tests] == [
        ("kept", F),
        ("kept", P),
        ("kept", F),
        ("wrong_expected", F),
    ]
    assert suite.duel.tests[3].expected == "10"


@pytest.mark.parametrize(
    ("problem", "calls", "statuses"),
    [
        (
            Problem("p", "?", "f", reference_solution="def f(a, b):\n    return len(a) + b\n"),
            [
                *("f({1, 2}, 3)", "f({2, 1}, 1 + 2)", "f({1, 2}, 0x3)", "f(a={1, 2}, b=3)", "f({2, 1}, b=3)"),
                "f([1, 2], 3)",
            ],
            ["kept", *["duplicate"] * 4, "kept"],
        ),
        (  # the reference may be anything: the same values are the same call
            Problem("p", "?", "f", reference_solution="f = lambda a, b=1: a + b\n"),
            ["f(1)", "f(a=1)", "f(b=1, a=1)", "f(a=1, b=1)"],
            ["kept", "duplicate", "kept", "duplicate"],
        ),
        (
            Problem("d", "?", "f", reference_solution="def f(d):\n    return len(d)\n"),
            [
                "f({'a': 1, 'b': [{1: 2, 3: 4}]})",
                "f({'b': [{3: 4, 1: 2}], 'a': 1})",
                "f({'a': 1, 'b': [{1: 2, 3: 5}]})",
            ],
            ["kept", "duplicate", "kept"],
        ),
        (
            Problem("p", "?", "run", reference_solution="print(int(input()) * 2)\n", kind="program"),
            ["run('7')", "run('7 \\n')", "run('7\\n\\n')", "run('8')"],
            ["kept", "duplicate", "duplicate", "kept"],
        ),
        (
            Problem("t", "?", "Solution().total", reference_solution=TOTAL, kind="method", imports=NODES["TreeNode"]),
            [
                f"Solution().total({given})"
                for given in ("[7, 3]", "[7, 3, None]", "(7, 3)", "{7: 0, 3: 0}", "[7, None, 3]")
            ],
            ["kept", "duplicate", "raises", "raises", "kept"],
        ),
        (
            Problem("t", "?", "Solution().total", reference_solution=TOTAL, kind="method", imports=NODES["TreeNode"]),
            [
                f"Solution().total({given})"
                for given in ("[]", "None", "[None]", "[None, 1]", "[7]", "[7, None, None, 3]")
            ],
            ["kept", "duplicate", "duplicate", "raises", "kept", "raises"],
        ),
        (
            Problem("l", "?", "Solution().total", reference_solution=LENGTHS, kind="method", imports=NODES["ListNode"]),
            [f"Solution().total({given})" for given in ("[[], [7]], 1", "[None, [7]], 1", "[[], [7]], None")],
            ["kept", "duplicate", "kept"],
        ),
    ],
    ids=[
        "spelling",
        "no signature",
        "order of keys",
        "white space of a program's input",
        "trees",
        "trees without nodes",
        "lists of lists",
    ],
)
def test_one_call_in_another_order_or_spelling_is_paid_once(
    problem: Problem, calls: list[str], statuses: list[str], sandbox: LocalSandbox
) -> None:
    suite = "".join(f"assert {call} == 0\n" for call in calls)
    reference = problem.reference_solution or ""
    (score,) = play(arena_of(sandbox), reference, suite, problem=problem).suites[0]
    found = ["kept" if test.status is Status.WRONG_EXPECTED else test.status.value for test in score.duel.tests]
    assert found == statuses


HANGS = Problem(
    "h", "?", "h", reference_solution="def h(x):\n    while x > 99:\n        pass\n    return x\n", time_limit_s=0.05
)
HANGING = "".join(f"assert h({x}) == 1\n" for x in range(100, 105))
RIGHT_ONES = "assert h(1) == 1\nassert h(2) == 2\n"


def test_one_suites_hanging_calls_cost_another_suite_nothing(sandbox: LocalSandbox) -> None:
    """Neither its validity now nor, by way of the cache, later."""
    arena = arena_of(sandbox)
    for _ in range(2):
        first, second = play(arena, "def h(x):\n    return 0\n", HANGING, RIGHT_ONES, problem=HANGS).suites[0]
        assert {(test.status, test.reason) for test in first.duel.tests} == {(Status.RAISES, "timeout")}
        assert [(test.status, test.verdict) for test in second.duel.tests] == [(Status.KEPT, F)] * 2


@pytest.mark.parametrize("reward", ["code-a1", "cure"])
def test_calls_that_hang_the_reference_cost_a_right_program_nothing(reward: str, sandbox: LocalSandbox) -> None:
    """Five before two valid tests; and two more suites of them, after which the program has hung ten times."""
    reference, arena = HANGS.reference_solution or "", arena_of(sandbox, config=RewardConfig(tester_reward=reward))
    problem = dataclasses.replace(HANGS, golden_tests=(TestCase("h(3)", "3"),))
    hostile = ["".join(f"assert h({1000 * k + x}) == 1\n" for x in range(6)) + RIGHT_ONES for k in (1, 2)]
    score = play(arena, reference, HANGING + RIGHT_ONES, *hostile, RIGHT_ONES, problem=problem)
    for suite in score.suites[0]:
        assert [(test.status, test.verdict) for test in suite.duel.tests][-2:] == [(Status.KEPT, P)] * 2
        assert suite.group is None or all(suite.group.as_written[0][-2:])
    assert score.codes[0].reward == 1.0
    assert len(arena.book) == 0


def test_a_program_gains_nothing_by_hanging_on_calls_that_it_takes_not_to_count(sandbox: LocalSandbox) -> None:
    """It hangs where the reference raises: ten times, and then before tests that it would fail."""
    problem = Problem(
        "r",
        "?",
        "r",
        reference_solution="def r(n):\n    if n < 0:\n        raise ValueError\n    return n * n * 7 % 1000\n",
        time_limit_s=0.1,
    )
    suites = [
        f"assert r(1) == 7\nassert r({-k}) == 1\n"
        + "".join(f"assert r({n}) == {n * n * 7 % 1000}\n" for n in range(2 + 6 * k, 8 + 6 * k))
        for k in range(1, 11)
    ]
    raises = "def r(n):\n    if n < 0:\n        raise ValueError\n    return 7 if n == 1 else -1\n"
    hangs = "def r(n):\n    while n < 0:\n        pass\n    return 7 if n == 1 else -1\n"
    honest, evil = (play(arena_of(sandbox), code, *suites, problem=problem) for code in (raises, hangs))
    assert evil.codes[0].reward == honest.codes[0].reward
    assert [suite.reward for suite in evil.suites[0]] == [suite.reward for suite in honest.suites[0]]


def test_a_program_gains_nothing_by_saying_that_others_took_its_time(sandbox: LocalSandbox) -> None:
    """It reports, at every call that it does not know, a load that took an hour: what it is asked is cut short."""
    skip = """
import sys
def skip():
    judge = sys.modules["candidate"]
    frame = sys._getframe()
    while "results" not in frame.f_locals:
        frame = frame.f_back
    judge._cpu_ns = lambda: 10**14
    frame.f_locals["results"].write(judge.LOADED)
"""
    code = skip + "def h(x):\n    if x == 1:\n        return 1\n    skip()\n"
    suite = "assert h(100) == 1\n" + "".join(f"assert h({x}) == {x}\n" for x in range(1, 8))
    score = play(arena_of(sandbox), code, suite, problem=dataclasses.replace(HANGS, time_limit_s=0.1))
    assert [test.verdict for test in score.suites[0][0].duel.tests[1:]] == [P] + [F] * 6


def test_a_long_suite_has_room_for_all_of_its_calls(sandbox: LocalSandbox) -> None:
    """Eleven of thirteen hang the program, and a turn has room for ten by itself."""
    problem = dataclasses.replace(HANGS, reference_solution="def h(x):\n    return x\n", time_limit_s=0.1)
    suite = "".join(f"assert h({x}) == {x}\n" for x in range(100, 111)) + RIGHT_ONES
    arena = arena_of(sandbox, config=RewardConfig(suite_size=13))
    tests = play(arena, HANGS.reference_solution or "", suite, problem=problem).suites[0][0].duel.tests
    assert [test.verdict for test in tests] == [T] * 11 + [P] * 2


def test_a_long_suite_is_not_asked_on_after_many_hangs_and_costs_another_nothing(sandbox: LocalSandbox) -> None:
    """However the suites stand to each other, and whatever is remembered; the second is as long as it may be."""
    problem = dataclasses.replace(HANGS, time_limit_s=0.1)
    hostile = "".join(f"assert h({x}) == {x}\n" for x in (1, *range(100, 100 + MOST_HANGS), 2, 999, 3))
    honest = "".join(f"assert h({x}) == {x}\n" for x in (*range(1, -32, -1), 2))
    arena = arena_of(sandbox, config=RewardConfig(suite_size=1, fidelity="paper"))
    for order in ((hostile, honest), (honest, hostile), (hostile,)):
        suites = play(arena, "def h(x):\n    return x\n", *order, problem=problem).suites[0]
        found = dict(
            zip(order, ([(test.status, test.reason) for test in one.duel.tests] for one in suites), strict=True)
        )
        assert found[hostile] == [(Status.KEPT, "")] + [(Status.RAISES, "timeout")] * (MOST_HANGS + 3)
        assert found.get(honest) in (None, [(Status.KEPT, "")] * 32 + [(Status.SURPLUS, "")] * 2)


# Scores


def test_scores_come_in_the_shape_and_order_of_the_matches(sandbox: LocalSandbox) -> None:
    other = Problem("other", "?", "other", reference_solution="def other(x):\n    return x\n")
    matches = [
        Match(DOUBLE, (RIGHT, SQUARE, BROKEN), ((asserts(1), asserts(2)), (asserts(1),), (asserts(3), asserts(1), ""))),
        Match(other, ("def other(x):\n    return x\n",), ((),)),
        Match(DOUBLE, (), ()),
    ]
    scores = arena_of(sandbox).play(matches)
    assert [score.problem_id for score in scores] == ["double", "other", "double"]
    assert [[len(row) for row in score.suites] for score in scores] == [[2, 1, 3], [0], []]
    assert [code.executes for code in scores[0].codes] == [True, True, False]
    assert [code.program for code in scores[0].codes] == [RIGHT, SQUARE, BROKEN]
    assert [code.reward for code in scores[0].codes] == [1.0, 0.0, 0.0]
    assert (scores[1].codes[0].executes, scores[1].codes[0].reward) == (True, 0.0)
    assert [suite.reward for suite in scores[0].suites[2]] == [0.0, 0.0, 0.0]


def test_an_empty_batch_is_no_scores(sandbox: LocalSandbox) -> None:
    arena = arena_of(sandbox)
    assert arena.play([]) == []
    assert arena.grade_many([]) == []
    assert arena.grade(DOUBLE, [], DOUBLE.hidden_tests) == []


def test_scores_do_not_depend_on_the_number_of_workers_or_on_the_batch(sandbox: LocalSandbox) -> None:
    counting = "n = 0\ndef double(x):\n    global n\n    n += 1\n    return 2 * x if n < 3 else None\n"
    matches = [Match(DOUBLE, (code,), ((SUITE, asserts(1, 2, 3, 4)),)) for code in (RIGHT, SQUARE, BROKEN, counting)]
    with Arena(LocalSandbox(workers=3)) as several:
        together = several.play(matches, update_book=False)
    one = arena_of(sandbox)
    assert repr(together) == repr([one.play([match], update_book=False)[0] for match in matches])
    assert repr(together) == repr(arena_of(sandbox).play(matches[::-1], update_book=False)[::-1])


def test_a_program_with_state_is_judged_call_by_call(sandbox: LocalSandbox) -> None:
    once = "n = 0\ndef double(x):\n    global n\n    n += 1\n    return 2 * x if n == 1 else None\n"
    (suite,) = play(arena_of(sandbox), once, asserts(1, 2, 3) + "assert double([1]) == [1, 1]").suites[0]
    assert [test.verdict for test in suite.duel.tests] == [P] * 4


def test_the_problems_imports_serve_reference_and_solution_alike(sandbox: LocalSandbox) -> None:
    problem = Problem("m", "?", "m", imports="import math", reference_solution="def m(x):\n    return math.floor(x)\n")
    code = '"""Mine."""\nfrom __future__ import annotations\ndef m(x: Number) -> int:\n    return math.floor(x)\n'
    (suite,) = play(arena_of(sandbox), code, "assert m(1.5) == 1", problem=problem).suites[0]
    assert [(test.status, test.verdict) for test in suite.duel.tests] == [(Status.KEPT, P)]


# Replays and the Mistake Book


def test_the_most_frequent_booked_tests_are_replayed_on_every_solution(sandbox: LocalSandbox) -> None:
    book = {case(1): 1, case(2): 3, case(3): 2, case(4): 3}
    arena = arena_of(sandbox, book, RewardConfig(replay_limit=3))
    (score,) = arena.play([Match(DOUBLE, (SQUARE, RIGHT), (("",), ("",)))], update_book=False)
    for row, verdicts in zip(score.suites, ([P, F, F], [P, P, P]), strict=True):
        replays = row[0].duel.replays
        assert [replay.case for replay in replays] == [case(2), case(4), case(3)]
        assert [replay.verdict for replay in replays] == verdicts
    assert arena.book.frequencies("double") == book


def test_a_pass_decrements_once_per_solution_and_a_failing_replay_changes_nothing(sandbox: LocalSandbox) -> None:
    arena = arena_of(sandbox, {case(2): 5, case(3): 5})
    # Two suites each: a replay is run once per solution, not once per suite.
    arena.play([Match(DOUBLE, (SQUARE, RIGHT), (("", ""), ("", "")))])
    assert arena.book.frequencies("double") == {case(2): 3, case(3): 4}


def test_replays_count_for_programs_without_suites_of_their_own(sandbox: LocalSandbox) -> None:
    arena = arena_of(sandbox, {case(2): 5, case(3): 5})
    (score,) = arena.play([Match(DOUBLE, (SQUARE, RIGHT, "nonsense("), ((asserts(5),), (), ()))])
    assert [[replay.verdict for replay in code.replays] for code in score.codes[:2]] == [[P, F], [P, P]]
    assert arena.book.frequencies("double") == {case(2): 3, case(3): 4, case(5): 1}


def test_new_failures_enter_once_per_suite_with_the_references_value(sandbox: LocalSandbox) -> None:
    arena = arena_of(sandbox)
    play(arena, SQUARE, "assert double(3) == 6\nassert double(2) == 4", "assert double(3) == 7\nassert double(5) == 10")
    assert arena.book.frequencies("double") == {case(3): 2, case(5): 1}


def test_decrements_come_before_increments(sandbox: LocalSandbox) -> None:
    """The right solution forgives the last failure, then the wrong one's failure enters anew, behind the others."""
    arena = arena_of(sandbox, {case(3): 1, case(5): 2})
    arena.play([Match(DOUBLE, (SQUARE, RIGHT), ((asserts(3),), ("",)))])
    assert list(arena.book.frequencies("double").items()) == [(case(5), 1), (case(3), 1)]


def test_all_replays_of_a_batch_are_taken_before_its_first_update(sandbox: LocalSandbox) -> None:
    arena = arena_of(sandbox)
    match = Match(DOUBLE, (SQUARE,), ((asserts(3),),))
    first, second = arena.play([match, match])
    assert first.suites[0][0].duel.replays == second.suites[0][0].duel.replays == ()
    (third,) = arena.play([match])
    assert [replay.case for replay in third.suites[0][0].duel.replays] == [case(3)]
    assert arena.book.frequencies("double") == {case(3): 3}


def test_surplus_and_invalid_asserts_never_enter_the_book(sandbox: LocalSandbox) -> None:
    arena = arena_of(sandbox, config=RewardConfig(suite_size=3))
    play(arena, SQUARE, "assert double(1, 2) == 1\nassert double(3) > 1\nassert double(4) == 8\nassert double(5) == 10")
    assert arena.book.frequencies("double") == {case(4): 1}


def test_a_booked_test_that_cannot_be_read_is_left_out_with_a_warning(
    sandbox: LocalSandbox, caplog: pytest.LogCaptureFixture
) -> None:
    arena = arena_of(sandbox, {TestCase("double(", "1"): 9, TestCase("double(2)", "<object>"): 8, case(3): 1})
    with caplog.at_level(logging.WARNING):
        (suite,) = play(arena, SQUARE, asserts(4)).suites[0]
    assert [(replay.case, replay.verdict) for replay in suite.duel.replays] == [(case(3), F)]
    assert len([record for record in caplog.records if "cannot be read" in record.getMessage()]) == 2


# Infrastructure


def test_an_infrastructure_failure_gives_no_score_and_leaves_the_book_alone(sandbox: LocalSandbox) -> None:
    failing = FailingSandbox(sandbox)
    book = MistakeBook()
    book.record("double", [], [case(3)])
    arena = Arena(failing, book=book)
    match = Match(DOUBLE, (SQUARE, f"```python\n{RIGHT}```"), ((asserts(3), asserts(5)), (asserts(1),)))
    before = arena.book.copy()
    (score,) = arena.play([match])
    assert arena.book == before
    assert [(code.executes, code.reward) for code in score.codes] == [(None, None)] * 2
    assert [code.program for code in score.codes] == [SQUARE, RIGHT]
    assert [[(suite.reward, suite.terms) for suite in row] for row in score.suites] == [
        [(None, None)] * 2,
        [(None, None)],
    ]
    assert all("on fire" in suite.duel.infrastructure_error for row in score.suites for suite in row)
    assert arena.grade(DOUBLE, [RIGHT, SQUARE], DOUBLE.hidden_tests) == [Grade(None, (None, None))] * 2
    failing.fails = False
    (score,) = arena.play([match])
    assert [code.reward is None for code in score.codes] == [False, False]
    assert arena.book != before


def test_an_unsafe_machine_is_an_error_and_no_score(sandbox: LocalSandbox) -> None:
    arena = Arena(FailingSandbox(sandbox, SandboxUnsafe("the sandbox must have seccomp, got none")))
    with pytest.raises(SandboxUnsafe):
        play(arena, RIGHT, asserts(1))
    with pytest.raises(SandboxUnsafe):
        arena.grade(DOUBLE, [RIGHT], DOUBLE.hidden_tests)


@pytest.mark.parametrize("reference", [None, "def other(x): pass", "def double(x) return", "import os\nos._exit(0)"])
def test_a_problem_without_a_usable_reference_is_an_error(sandbox: LocalSandbox, reference: str | None) -> None:
    problem = Problem("bad", "?", "double", reference_solution=reference, time_limit_s=0.3)
    with pytest.raises(UnusableReference, match="'bad' must"):
        play(arena_of(sandbox), RIGHT, asserts(1), problem=problem)


# Grades


def test_a_grade_has_a_verdict_per_test_and_trusts_the_expected_value(sandbox: LocalSandbox) -> None:
    tests = (
        case(0),
        case(2),
        case(3),
        case(3, expected=9),
        TestCase("double(x=1)", "2"),
        TestCase("double(1 + 1)", "4"),
    )
    right, square, broken, empty = arena_of(sandbox).grade(
        DOUBLE, [RIGHT, f"Here:\n```py\n{SQUARE}```", BROKEN, ""], tests
    )
    assert right == Grade(True, (P, P, P, F, P, P))
    assert square == Grade(True, (P, P, F, P, F, P))
    assert broken == empty == Grade(False, (E,) * 6)
    assert (right.share, square.share, broken.share) == (5 / 6, 4 / 6, 0.0)
    assert not right.all_passed


def test_all_passed_wants_a_program_that_executes() -> None:
    assert Grade(True, ()).all_passed
    assert Grade(True, ()).share == 0.0
    assert not Grade(False, ()).all_passed
    assert not Grade(None, ()).all_passed
    assert Grade(True, (P, P)).all_passed


def test_grades_of_many_questions_are_those_of_each(sandbox: LocalSandbox) -> None:
    other = Problem("other", "?", "other", time_limit_s=0.3)
    items = [
        (DOUBLE, [RIGHT, SQUARE], DOUBLE.hidden_tests),
        (other, ["def other(): return 1"], (TestCase("other()", "1"),)),
    ]
    arena = arena_of(sandbox)
    assert arena.grade_many(items) == [arena.grade(*item) for item in items]
    assert arena.grade_many(items)[1] == [Grade(True, (P,))]


@pytest.mark.parametrize(
    "test", [TestCase("other(1)", "1"), TestCase("double(open('x'))", "1"), TestCase("double(1)", "1 / 0")]
)
def test_a_trusted_test_outside_the_grammar_is_an_error(sandbox: LocalSandbox, test: TestCase) -> None:
    with pytest.raises(ProblemFormatError, match="'double' must be a call of double"):
        arena_of(sandbox).grade(DOUBLE, [RIGHT], [test])


# Lone surrogates too, but not two that JSON would join to one character.
texts = st.text(st.characters(exclude_categories=())).filter(lambda text: json.loads(json.dumps(text)) == text)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.one_of(texts, st.floats(), st.integers(), st.binary(), st.complex_numbers()), max_size=3))
@example(['it\'s "both"', "line\nbreak\r\t\0", "\ud83d", "\\", "'''", float("nan"), 10**400, b"'\"\n"])
def test_any_failing_test_is_replayed_later_as_it_was(sandbox: LocalSandbox, values: list[object]) -> None:
    """Whatever is in it, the book gives back a test that runs: a wrong solution fails it, a right one passes."""
    problem = Problem("same", "?", "same", reference_solution="def same(x):\n    return [x, {'k': x}]\n")
    arena = arena_of(sandbox)
    argument = tree_source(json.loads(encode(values)))
    play(arena, "def same(x):\n    return 0\n", f"assert same({argument}) == 0\n", problem=problem)
    assert len(arena.book) == 1
    (score,) = arena.play(
        [Match(problem, ("def same(x):\n    return 0\n", "def same(x):\n    return [x, dict(k=x)]\n"), (("",), ("",)))]
    )
    assert [[replay.verdict for replay in row[0].duel.replays] for row in score.suites] == [[F], [P]]


def test_a_failing_test_whose_arguments_and_value_are_large_is_replayed(sandbox: LocalSandbox) -> None:
    """Each has room by itself; the value of the suite is wrong and small."""
    problem = Problem("same", "?", "same", reference_solution="def same(x):\n    return x\n")
    arena = arena_of(sandbox)
    suite = "assert same('ab' * 30000) == None\nassert same([0] * 20000) == None\n"
    play(arena, "def same(x):\n    return 0\n", suite, problem=problem)
    score = play(arena, "def same(x):\n    return x\n", "", problem=problem)
    assert [replay.verdict for replay in score.codes[0].replays] == [P, P]


# What is remembered


def test_scores_do_not_tell_whether_outcomes_are_remembered(sandbox: LocalSandbox) -> None:
    """Two epochs of bundled problems, the suites of the second in another order, with the book in between."""
    arenas = [Arena(sandbox, execution_cache_mb=megabytes) for megabytes in (0, 1, 64)]
    for epoch in range(2):
        matches = [
            Match(
                problem,
                (problem.reference_solution or "", *problem.mutants[:2], "import random\n" + problem.mutants[0]),
                (tuple("\n".join(map(str, problem.golden_tests[k::2][:: 1 - 2 * epoch])) for k in range(2)),) * 4,
            )
            for problem in bundled_problems()[:12]
        ]
        plain, *remembering = (arena.play(matches) for arena in arenas)
        for scores in remembering:
            assert [*map(write_score, scores)] == [*map(write_score, plain)]
            assert scores == plain
    assert arenas[0].book == arenas[1].book == arenas[2].book


def test_a_program_is_not_run_again_on_what_it_was_asked_before(sandbox: LocalSandbox) -> None:
    counted = CountingSandbox(sandbox)
    for size, runs in ((64, [1, 0]), (0, [1, 1])):
        arena = Arena(counted, execution_cache_mb=size)
        for expected in runs:
            before = counted.programs
            play(arena, SQUARE, asserts(0, 3), problem=dataclasses.replace(DOUBLE, problem_id=f"{size}"))
            arena.book = MistakeBook()
            assert counted.programs - before == expected


@pytest.mark.parametrize("megabytes", [-1, 0.5, "1"])
def test_a_cache_of_no_size_is_refused(sandbox: LocalSandbox, megabytes: object) -> None:
    with pytest.raises(ConfigurationError, match="execution_cache_mb must be a whole number of MiB"):
        Arena(sandbox, execution_cache_mb=megabytes)  # type: ignore[arg-type]


TENTH = Problem("tenth", "?", "tenth", reference_solution="def tenth(x):\n    return 0.1 * x\n", time_limit_s=0.3)


def test_a_stated_value_that_rounding_alone_sets_apart_is_right_and_kills_no_right_program(
    sandbox: LocalSandbox,
) -> None:
    # 0.1 * 3 is 0.30000000000000004, 3 / 10 is 0.3: both programs are right, and so is the test.
    suite = "assert tenth(3) == 0.3\nassert tenth(6) == 0.61\nassert tenth(7) == 0.7000001\n"
    programs = [
        "def tenth(x):\n    return x / 10\n",
        "def tenth(x):\n    return x * 0.1\n",
        "def tenth(x):\n    return 1\n",
    ]
    arena = arena_of(sandbox)
    (score,) = arena.play([Match(TENTH, tuple(programs), ((suite,),) * 3)])
    tests = [row[0].duel.tests for row in score.suites]
    assert [(test.status.value, test.reason, test.verdict) for test in tests[0]][:1] == [("kept", "rounding", P)]
    assert [test.status.value for test in tests[0]] == ["kept", "wrong_expected", "wrong_expected"]
    assert [row[0].verdict for row in tests] == [P, P, F]
    assert TestCase("tenth(3)", "0.30000000000000004") not in arena.book.frequencies("tenth"), "a replay has one value"
    (paper,) = arena_of(sandbox, config=RewardConfig(fidelity="paper")).play([Match(TENTH, programs[:1], ((suite,),))])
    assert paper.suites[0][0].duel.tests[0].status is Status.WRONG_EXPECTED


def test_a_stated_value_within_the_problems_tolerance_is_right(sandbox: LocalSandbox) -> None:
    near = dataclasses.replace(TENTH, tolerance=1e-3)
    suite = "assert tenth(3) == 0.3001\nassert tenth(4) == 0.41\n"
    (score,) = arena_of(sandbox).play([Match(near, ("def tenth(x):\n    return x / 10\n",), ((suite,),))])
    assert [test.status.value for test in score.suites[0][0].duel.tests] == ["kept", "wrong_expected"]


@pytest.mark.parametrize("fidelity", ["strict", "paper"])
def test_the_book_takes_nothing_from_a_program_that_does_not_execute(sandbox: LocalSandbox, fidelity: str) -> None:
    arena = arena_of(sandbox, config=RewardConfig(fidelity=fidelity))  # type: ignore[arg-type]
    (suite,) = play(arena, BROKEN, asserts(1)).suites[0]
    assert [test.verdict for test in suite.duel.tests] == [E]
    assert len(arena.book) == 0
    play(arena, SQUARE, asserts(1))
    assert len(arena.book) == 1


def test_paper_fidelity_looks_at_what_came_back_and_replays_it_so(sandbox: LocalSandbox) -> None:
    problem = Problem("twice", "?", "twice", reference_solution="def twice(x):\n    return [x, x]\n", time_limit_s=0.3)
    suite = "assert len(twice(1)) == 2\nassert sum(twice(2)) == 4\nassert len(twice(*[1])) == 1\nassert len(3) == 1\n"
    programs = (
        "def twice(x):\n    return (x, x)\n",
        "def twice(x):\n    return [x]\n",
        "def twice(x):\n    return 1\n",
    )
    arena = arena_of(sandbox, config=RewardConfig(fidelity="paper"))
    (score,) = arena.play([Match(problem, programs, ((suite,),) * 3)])
    statuses = [test.status.value for test in score.suites[0][0].duel.tests]
    assert statuses == ["kept", "kept", "wrong_expected", "rejected"]
    verdicts = [[test.verdict for test in row[0].duel.tests[:3]] for row in score.suites]
    assert verdicts == [[P, P, P], [F, F, F], [E, E, E]]
    assert arena.book.frequencies("twice")[TestCase("len(twice(1))", "2")] == 2
    (again,) = arena.play([Match(problem, programs[:1], ((suite,),))])
    assert [replay.verdict for replay in again.suites[0][0].duel.replays] == [P, P, P]


def test_booked_tests_that_cannot_be_read_leave_their_place_to_those_behind_them(sandbox: LocalSandbox) -> None:
    unreadable = {TestCase(f"(len(double({k})) == 1)", "True"): 9 for k in range(8)}  # of a run that reads widely
    arena = arena_of(sandbox, unreadable | {case(k): 5 - k for k in range(1, 5)}, RewardConfig(replay_limit=3))
    (score,) = arena.play([Match(DOUBLE, (RIGHT,), (("",),))])
    assert [replay.case for replay in score.codes[0].replays] == [case(1), case(2), case(3)]


def test_a_batch_whose_listener_fails_may_be_played_again(sandbox: LocalSandbox) -> None:
    def full(*_: Any) -> None:
        raise OSError("the disk is full")

    book = MistakeBook()
    with pytest.raises(OSError, match="the disk is full"):
        Arena(sandbox, book=book, on_score=full).play([Match(DOUBLE, (SQUARE,), (("assert double(3) == 6",),))])
    assert book == MistakeBook()


# What the caller got wrong


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ((DOUBLE, (RIGHT,), (SUITE,)), "Match.suites must be a tuple of tuples of texts, one for each program, got"),
        ((DOUBLE, "ab", ((SUITE,), (SUITE,))), "Match.codes must be a tuple of texts, got 'ab'"),
        ((DOUBLE, (RIGHT, None), ((SUITE,), ())), "Match.codes must be a tuple of texts, got"),
        ((DOUBLE, (RIGHT, SQUARE), ((SUITE,),)), "a row for each program, got '1 for 2'"),
        (({"problem_id": "double"}, (RIGHT,), ((SUITE,),)), "Match.problem must be a codea1_env.Problem, got"),
    ],
)
def test_a_match_of_another_shape_is_refused(parts: tuple[Any, Any, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        Match(*parts)


def test_what_is_no_match_and_nothing_to_grade_is_refused(sandbox: LocalSandbox) -> None:
    arena: Any = arena_of(sandbox)
    match = Match(DOUBLE, (RIGHT,), ((SUITE,),))
    for wrong in (match, None, [None], "match", np.array(match)):
        with pytest.raises(ConfigurationError, match=r"match(es)? must be"):
            arena.play(wrong)
    tests = DOUBLE.hidden_tests
    for items, message in (
        ([(DOUBLE, RIGHT, tests)], "responses must be a list of texts"),
        ([(DOUBLE, [RIGHT], tests[0])], "tests must be a list of codea1_env.TestCase"),
        ([(DOUBLE, [RIGHT], [str(tests[0])])], "tests must be a list of codea1_env.TestCase"),
        ([("double", [RIGHT], tests)], "problem must be a codea1_env.Problem"),
        ((DOUBLE, [RIGHT], tests), r"an item must be \(problem, responses, tests\)"),
        (None, "items must be"),
    ):
        with pytest.raises(ConfigurationError, match=message):
            arena.grade_many(items)
    assert arena.play(each for each in [match]) == arena_of(sandbox).play([match])


def test_a_closed_arena_says_so_and_has_closed_its_sandbox() -> None:
    with Arena(LocalSandbox()) as arena:
        play(arena, RIGHT, asserts(1))
    with pytest.raises(SandboxError, match="must be open"):
        arena.sandbox.run([])
    with pytest.raises(ConfigurationError, match="the arena must be open to play and to grade"):
        arena.play([])
    with pytest.raises(ConfigurationError, match="the arena must be open"):
        arena.grade(DOUBLE, [RIGHT], DOUBLE.hidden_tests)
