"""Checkers: where several values are right, a program of the problem decides, and no candidate ever meets it."""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from attacks.backends import BACKENDS, opened
from hypothesis import given, strategies as st

from codea1_env.arena.arena import Arena
from codea1_env.arena.match import Match, MatchScore
from codea1_env.errors import ProblemFormatError
from codea1_env.judging import checking
from codea1_env.judging.checking import compares
from codea1_env.judging.equality import same_output, same_value
from codea1_env.judging.judge import Judge
from codea1_env.judging.problems.usability import check_problems
from codea1_env.problems import Problem, TestCase
from codea1_env.rewards.code_a1 import RewardConfig
from codea1_env.rewards.duel import Status, Verdict
from codea1_env.sandbox import CallsJob, Job, JobResult, Sandbox
from codea1_env.sandbox.protocol import Outcome, OutcomeKind
from codea1_env.sandbox.tasks import zygote_kind

ANY_PAIR = """def check(arguments, returned, reference):
    (n,) = arguments
    return isinstance(returned, list) and len(returned) == 2 and returned[0] * returned[1] == n
"""


@pytest.fixture(scope="module", params=BACKENDS)
def sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    yield from opened(request.param, request)


def problem(checker: str, reference: str, **fields: Any) -> Problem:
    return Problem("p", "Q", "f", reference, checker=checker, **fields)


PAIR = problem(ANY_PAIR, "def f(n):\n    return [1, n]\n", golden_tests=(TestCase("f(6)", "[1, 6]"),))


def played(one: Problem, code: str, suite: str, sandbox: Sandbox) -> MatchScore:
    (score,) = Arena(sandbox).play([Match(one, (code,), ((suite,),))], update_book=False)
    return score


def statuses(score: MatchScore) -> list[Status]:
    return [test.status for test in score.suites[0][0].duel.tests]


def verdicts(score: MatchScore) -> list[Verdict | None]:
    return [test.verdict for test in score.suites[0][0].duel.tests]


def test_a_stated_value_is_valid_exactly_if_the_checker_accepts_it(sandbox: Sandbox) -> None:
    suite = "assert f(6) == [2, 3]\nassert f(8) == [2, 3]\nassert f(10) == [1, 10]\nassert f(5) == 'no'"
    score = played(PAIR, "def f(n):\n    return [n, 1]\n", suite, sandbox)
    assert statuses(score) == [Status.KEPT, Status.WRONG_EXPECTED, Status.KEPT, Status.WRONG_EXPECTED]


def test_a_program_is_right_whose_values_the_checker_accepts_whatever_the_reference_returns(
    sandbox: Sandbox,
) -> None:
    suite = "assert f(6) == [2, 3]\nassert f(8) == [2, 4]"
    assert verdicts(played(PAIR, "def f(n):\n    return [n, 1]\n", suite, sandbox)) == [Verdict.PASS] * 2
    assert verdicts(played(PAIR, "def f(n):\n    return [2, 3]\n", suite, sandbox)) == [Verdict.PASS, Verdict.FAIL]
    assert verdicts(played(PAIR, "def f(n):\n    return (n, 1)\n", suite, sandbox)) == [Verdict.FAIL] * 2
    assert verdicts(played(PAIR, "def f(n):\n    return lambda: n\n", suite, sandbox)) == [Verdict.FAIL] * 2


@pytest.mark.parametrize(
    ("checker", "right", "accepted", "refused"),
    [
        ("unordered", "[3, 1, [2], 1]", ["[1, 1, 3, [2]]", "(1, 3, [2], 1)"], ["[1, 3, [2]]", "[1, 3, 3, [2]]", "3"]),
        ("unordered", "{1, 2}", ["{2, 1}", "[2, 1]"], ["{1}", "[1, 2, 2]"]),
        ("unordered", "5", ["5"], ["6", "[5]"]),
        (
            "close",
            "[1.0, {'a': 2.0}]",
            ["[1.0000001, {'a': 2}]"],
            ["[1.001, {'a': 2.0}]", "(1.0, {'a': 2.0})", "[1.0]"],
        ),
        ("close", "'a'", ["'a'"], ["'b'"]),
        ("close", "1 + 2j", ["1.0000001 + 2j"], ["1.1 + 2j"]),
        ("close", "[float('nan'), float('inf')]", ["[float('nan'), float('inf')]"], ["[float('nan'), 1e300]"]),
        ("unordered", "[[1], float('nan')]", ["[float('nan'), [1.0]]"], ["[float('nan'), float('nan')]"]),
        ("unordered", "[{'a': 1}, {'b': [2]}]", ["[{'b': [2.0]}, {'a': True}]"], ["[{'b': [2]}, {'a': 2}]"]),
        ("any-of", "[[1, 2], [2, 1]]", ["[1, 2]", "[2, 1]"], ["[[1, 2], [2, 1]]", "(1, 2)", "[3]"]),
    ],
)
def test_checkers_by_name(
    checker: str, right: str, accepted: Sequence[str], refused: Sequence[str], sandbox: Sandbox
) -> None:
    one = problem(checker, f"def f(x):\n    return {right}\n")
    suite = "\n".join(f"assert f({n}) == {value}" for n, value in enumerate([*accepted, *refused]))
    expected = [Status.KEPT] * len(accepted) + [Status.WRONG_EXPECTED] * len(refused)
    assert statuses(played(one, "def f(x):\n    return 0\n", suite, sandbox)) == expected


def test_a_large_value_is_compared_in_any_order_at_once(sandbox: Sandbox) -> None:
    reference = "def f(n):\n    return [[i, n - i] for i in range(n)]\n"
    one = problem("unordered", reference, time_limit_s=2.0)
    code = reference + "g = f\ndef f(n):\n    return g(n)[::-1]\n"
    assert verdicts(played(one, code, "assert f(20000) == 1", sandbox)) == [Verdict.PASS]
    wrong = code.replace("[::-1]", "[:-1] + [[0, 0]]")
    assert verdicts(played(one, wrong, "assert f(20000) == 1", sandbox)) == [Verdict.FAIL]


@pytest.mark.parametrize("checker", ["unordered", "any-of", "close"])
def test_a_comparison_allows_for_the_problems_tolerance(checker: str, sandbox: Sandbox) -> None:
    one = problem(checker, "def f(x):\n    return [x, [x, 2.5]]\n", tolerance=1e-3)
    near, far = ({"any-of": "x + {}", "unordered": "[[x + {}, 2.5], x + {}]"}.get(checker, "[x, [x + {}, 2.5]]"),) * 2
    for body, verdict in ((near.replace("{}", "1e-4"), Verdict.PASS), (far.replace("{}", "1e-2"), Verdict.FAIL)):
        score = played(one, f"def f(x):\n    return {body}\n", "assert f(0.5) == 9", sandbox)
        assert verdicts(score) == [verdict]


def encoded(value: object) -> bytes:
    return json.dumps(value).encode()


def test_members_that_differ_by_the_tolerance_are_paired_whatever_their_order() -> None:
    numbers = [n / 7 for n in range(9999)]
    near = [number + 1e-7 for number in reversed(numbers)]
    assert compares("unordered", encoded(numbers), encoded(near), 1e-6)
    assert not compares("unordered", encoded(numbers), encoded(near), 1e-9)
    assert compares("unordered", b"[1.0,1.0000015]", b"[1.0000008,0.9999999]", 1e-6)
    assert compares("unordered", b"[1.0,1.1]", b"[1.1,1.2]", 0.11)
    assert compares("any-of", encoded([{"i": f"{10**400:x}"}, 2.5]), b"2.5", 1e-6)


def test_whole_numbers_in_any_order_are_exact_and_near_floats_only() -> None:
    assert not compares("unordered", b"[1000000000,2]", b"[2,1000000001]", 1e-6)
    assert compares("unordered", b"[1000000000,2]", b"[2,1000000001.0]", 1e-6)
    # As they are sorted, two whole numbers that differ would be a pair.
    assert compares("unordered", b"[1000000000,1000000001.0]", b"[1000000001,1000000002.0]", 1e-6)


@given(
    st.lists(st.tuples(st.integers(0, 1), st.floats(0, 1), st.sampled_from([-0.1, 0.0, 0.05])), max_size=5), st.data()
)
def test_pairs_are_found_where_there_are_any(drawn: list[tuple[int, float, float]], data: st.DataObject) -> None:
    right = [[kind, number] for kind, number, _ in drawn]
    got = data.draw(st.permutations([[kind, number + moved] for kind, number, moved in drawn]))
    for ours, theirs in ((right, got), ([number for _, number in right], [number for _, number in got])):
        is_right = any(
            all(same_value(encoded(one), encoded(other), 0.06) for one, other in zip(ours, each, strict=True))
            for each in itertools.permutations(theirs)
        )
        assert compares("unordered", encoded(ours), encoded(theirs), 0.06) == is_right


@pytest.mark.parametrize("checker", ["unordered", "any-of"])
def test_the_work_of_comparing_is_bounded_whatever_is_returned(checker: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(checking, "same_tree", lambda *trees: bool(asked.append(trees)))
    right = encoded([{"s": [f"k{n}" for n in range(200)]}] * 100)
    large = {"s": [f"k{n}" for n in range(10_000)]}
    assert not compares(checker, right, encoded([large] * 100 if checker == "unordered" else large), 1e-6)
    assert asked == []


def test_where_any_of_several_is_right_an_exception_of_the_reference_is_the_only_answer(sandbox: Sandbox) -> None:
    reference = "def f(x):\n    if x < 0:\n        raise ValueError\n    return [x, -x]\n"
    one = problem("any-of", reference, raises=("ValueError",))
    suite = "assert f(-1) == {'raises': 'ValueError'}\nassert f(-2) == 'raises'\nassert f(3) == -3"
    score = played(one, "def f(x):\n    if x < 0:\n        raise ValueError\n    return x\n", suite, sandbox)
    assert statuses(score) == [Status.KEPT, Status.WRONG_EXPECTED, Status.KEPT]
    assert verdicts(score) == [Verdict.PASS] * 3
    forged = played(one, "def f(x):\n    return 'raises' if x < 0 else x\n", suite, sandbox)
    assert verdicts(forged) == [Verdict.FAIL, Verdict.FAIL, Verdict.PASS]


def test_programs_are_compared_by_lines_and_numbers_in_them_within_the_tolerance(sandbox: Sandbox) -> None:
    fields: dict[str, Any] = {"kind": "program", "reference_solution": "n = int(input())\nprint('at', n / 3, n)\n"}
    one = Problem("p", "Q", "run", tolerance=1e-6, **fields)
    for printed, verdict in (
        ("'at', round(n / 3, 8), n", Verdict.PASS),
        ("'at', n // 3, n", Verdict.FAIL),
        ("'by', n / 3, n", Verdict.FAIL),
        ("'at', n / 3, n + 1e-9", Verdict.PASS),
        ("'at', n / 3", Verdict.FAIL),
    ):
        score = played(one, f"n = int(input())\nprint({printed})\n", "assert run('1000') == ''", sandbox)
        assert verdicts(score) == [verdict], printed
    big = dataclasses.replace(one, reference_solution="print(10 ** 9)\n")
    assert verdicts(played(big, "print(10 ** 9 + 1)\n", "assert run('') == ''", sandbox)) == [Verdict.FAIL]
    with pytest.raises(ProblemFormatError, match=r"checker must be empty, tokens, decimals or a program"):
        dataclasses.replace(one, checker="close")


PRINTED = [
    ("1.3333333333333333", "1.333333", "tokens", 0.0, True),  # a millionth, where nothing is said
    ("1.3333333333333333", "1.33", "tokens", 0.0, False),
    ("1000000.5", "1000000", "tokens", 0.0, True),
    ("0.0000001", "0", "tokens", 0.0, True),
    ("1.5", "1.51", "tokens", 1e-2, True),
    ("1.3333333333333333", "1.333333", "tokens", 1e-9, False),  # what is said counts
    ("1 2\n3\n", "1\r\n2   3", "tokens", 0.0, True),
    ("yes\n", "  yes  \n\n", "tokens", 0.0, True),
    ("YES", "yes", "tokens", 0.0, False),
    ("5", "5.0", "tokens", 0.0, True),
    ("1000000000", "1000000001", "tokens", 1e-3, False),  # whole numbers are exact
    ("0010", "10", "tokens", 0.0, False),
    ("1 2", "1 2 3", "tokens", 0.0, False),
    ("1 2", "2 1", "tokens", 0.0, False),
    ("", " \n", "tokens", 0.0, True),
    ("nan", "nan", "tokens", 0.0, True),
    ("inf", "1e999", "tokens", 0.0, False),
    ("1.0 2.50\n", "1 2.5", "decimals", 0.0, True),
    ("1e3", "1000", "decimals", 0.0, True),
    ("0.1", "0.10000000000000001", "decimals", 0.0, False),
    ("0.1", "0.10000000000000001", "decimals", 1e-3, False),  # exactly, whatever is said
    ("1.3333333333333333", "1.333333", "decimals", 0.0, False),
    ("a 1.0", "a 1", "decimals", 0.0, False),
    ("1\n2", "1 2", "decimals", 0.0, False),
    ("\n a\r\nb \n", "a\nb", "decimals", 0.0, True),
    ("YES", "Yes", "decimals", 0.0, False),
    ("1e999999999999999999999", "1", "decimals", 0.0, False),
    ("sNaN", "1", "decimals", 0.0, False),
]


@pytest.mark.parametrize(("right", "got", "checker", "tolerance", "expected"), PRINTED)
def test_what_programs_print_is_compared_as_contests_do(
    right: str, got: str, checker: str, tolerance: float, expected: bool, sandbox: Sandbox
) -> None:
    one = Problem("p", "Q", "run", f"print({right!r})\n", kind="program", checker=checker, tolerance=tolerance)
    (grade,) = Arena(sandbox).grade(one, [f"print({got!r})\n"], [TestCase("run('')", repr(right))])
    assert grade.verdicts == (Verdict.PASS if expected else Verdict.FAIL,)


def test_functions_from_text_to_text_are_compared_so_and_other_values_by_equality() -> None:
    for checker in ("tokens", "decimals"):
        assert compares(checker, b'"1.0\\n"', b'" 1.00"', 1e-6)
        assert compares(checker, b"[1]", b"[1.0]", 0.0)
        assert not compares(checker, b'"1"', b"1", 1e-6)


@pytest.mark.parametrize(
    "body",
    ["raise KeyError", "return 1", "return 'True'", "return [True]", "import os; os._exit(0)", "while True: pass"],
)
def test_only_true_accepts(body: str, sandbox: Sandbox) -> None:
    checker = f"def check(arguments, returned, reference):\n    {body}\n"
    one = problem(checker, "def f(n):\n    return n\n", time_limit_s=0.1)
    score = played(one, "def f(n):\n    return n\n", "assert f(1) == 1", sandbox)
    assert statuses(score) == [Status.WRONG_EXPECTED]
    assert verdicts(score) == [Verdict.FAIL]


def test_one_value_that_hangs_a_checker_is_refused_alone(sandbox: Sandbox) -> None:
    checker = "def check(arguments, returned, reference):\n    while returned == 7: pass\n    return True\n"
    one = problem(checker, "def f(n):\n    return n\n", time_limit_s=0.2)
    suite = "\n".join(f"assert f({n}) == {n}" for n in (1, 7, 8))
    score = played(one, "def f(n):\n    return n\n", suite, sandbox)
    assert statuses(score) == [Status.KEPT, Status.WRONG_EXPECTED, Status.KEPT]
    assert verdicts(score) == [Verdict.PASS, Verdict.FAIL, Verdict.PASS]


class Watched:
    """A sandbox that notes what it is asked, run by run."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self.runs: list[list[Job]] = []
        self.version = sandbox.version

    def run(self, jobs: Sequence[Job]) -> list[JobResult]:
        self.runs.append(list(jobs))
        return self._sandbox.run(jobs)

    def close(self) -> None:
        pass


def is_check(job: Job) -> bool:
    return isinstance(job, CallsJob) and job.is_checker


def test_checkers_run_when_all_candidates_have_ended_and_in_zygotes_of_their_own(sandbox: Sandbox) -> None:
    watched = Watched(sandbox)
    codes = tuple(f"def f(n):\n    return [{k}, n // {k}]\n" for k in (1, 2, 3))
    suites = tuple((f"assert f({6 * k}) == [2, {3 * k}]",) for k in (1, 2, 3))
    Arena(watched).play([Match(PAIR, codes, suites)], update_book=False)
    checks = [number for number, jobs in enumerate(watched.runs) if any(map(is_check, jobs))]
    runs_of_candidates = [
        number
        for number, jobs in enumerate(watched.runs)
        if any(isinstance(job, CallsJob) and job.source in codes for job in jobs)
    ]
    assert max(runs_of_candidates) < min(checks)
    assert all(all(map(is_check, watched.runs[number])) for number in checks)
    jobs = [job for jobs in watched.runs for job in jobs]
    of_checks = {zygote_kind(job) for job in jobs if is_check(job)}
    assert of_checks.isdisjoint({zygote_kind(job) for job in jobs if not is_check(job)})


def test_what_candidates_are_asked_does_not_depend_on_the_checker(sandbox: Sandbox) -> None:
    asked = []
    for checker in (ANY_PAIR, "def check(arguments, returned, reference):\n    return False\n", ""):
        watched = Watched(sandbox)
        one = problem(checker, "def f(n):\n    return [1, n]\n")
        code = "def f(n):\n    return [n, 1]\n"
        Arena(watched).play([Match(one, (code,), (("assert f(6) == [2, 3]\nassert f(3) == 1",),))], update_book=False)
        asked.append([job for jobs in watched.runs for job in jobs if isinstance(job, CallsJob) and job.source == code])
    assert asked[0] == asked[1] == asked[2]
    assert len(asked[0]) == 1


def test_arguments_come_in_the_order_of_the_parameters(sandbox: Sandbox) -> None:
    checker = "def check(arguments, returned, reference):\n    return arguments == [1, 2]\n"
    one = problem(checker, "def f(a, b):\n    return 0\n")
    suite = "assert f(1, 2) == 5\nassert f(b=2, a=1) == 5\nassert f(2, 1) == 5"
    score = played(one, "def f(a, b):\n    return 0\n", suite, sandbox)
    assert statuses(score) == [Status.KEPT, Status.DUPLICATE, Status.WRONG_EXPECTED]


def test_golden_tests_and_replays_are_judged_by_the_checker(sandbox: Sandbox) -> None:
    arena = Arena(sandbox)
    (right, wrong) = arena.grade(
        PAIR, ["def f(n):\n    return [2, 3]\n", "def f(n):\n    return 6\n"], PAIR.golden_tests
    )
    assert (right.verdicts, wrong.verdicts) == ((Verdict.PASS,), (Verdict.FAIL,))
    suite = "assert f(6) == [2, 3]"
    arena.play([Match(PAIR, ("def f(n):\n    return [5, 5]\n",), ((suite,),))])
    (score,) = arena.play([Match(PAIR, ("def f(n):\n    return [3, n // 3]\n",), (("",),))])
    assert [replay.verdict for replay in score.suites[0][0].duel.replays] == [Verdict.PASS]


def test_the_check_of_a_problem_asks_its_checker(sandbox: Sandbox) -> None:
    refuses = dataclasses.replace(
        PAIR, checker="def check(a, b, c):\n    return False\n", golden_tests=(TestCase("f(6)", "[2, 3]"),)
    )
    good, bad = check_problems([PAIR, refuses], sandbox)
    assert good.serves("golden")
    assert not bad.is_usable
    assert Problem.from_json(PAIR.to_json()) == PAIR
    assert json.loads(PAIR.to_json())["checker"] == ANY_PAIR


@pytest.mark.parametrize("checker", ["sorted", "def check(a, b):\n    return True\n", "def check(", 7])
def test_a_checker_is_known_or_a_program(checker: Any) -> None:
    with pytest.raises(ProblemFormatError, match=r"checker must be unordered, close, .* or a program with check"):
        problem(checker, "def f():\n    return 1\n")


def test_answers_are_remembered(sandbox: Sandbox) -> None:
    watched = Watched(sandbox)
    judge = Judge(watched)
    for _ in range(2):
        assert judge.is_right(PAIR, b"[[6],[]]", b"[2,3]", b"[1,6]", 0.0)
    assert len(watched.runs) == 1


class Struck:
    """A sandbox in which something from outside ends the first job that `is_struck`."""

    def __init__(self, sandbox: Sandbox, is_struck: Callable[[Job], bool]) -> None:
        self._sandbox, self._is_struck, self.version = sandbox, is_struck, sandbox.version
        self.strikes = 0

    def run(self, jobs: Sequence[Job]) -> list[JobResult]:
        results = self._sandbox.run(jobs)
        for place, job in enumerate(jobs):
            if not self.strikes and self._is_struck(job):
                self.strikes += 1
                ended = tuple(Outcome(OutcomeKind.CRASH) for _ in results[place].outcomes)
                results[place] = JobResult(ended)
        return results

    def close(self) -> None:
        pass


def test_what_a_crash_came_to_is_not_remembered(sandbox: Sandbox) -> None:
    struck = Struck(sandbox, is_check)
    judge = Judge(struck)
    asked = [judge.is_right(PAIR, b"[[6],[]]", b"[2,3]", b"[1,6]", 0.0) for _ in range(2)]
    assert (asked, struck.strikes) == ([False, True], 1)
    struck = Struck(sandbox, lambda job: True)
    judge = Judge(struck)
    values = [judge.reference_values([(PAIR, [b"[[6],[]]"])])[0][0] for _ in range(2)]
    assert ([value.failure for value in values], struck.strikes) == (["crash", ""], 1)


def test_a_value_that_is_right_and_not_the_references_is_shown(sandbox: Sandbox) -> None:
    one = problem("unordered", "def f(n):\n    return [1, n]\n")
    (same, other) = (
        played(one, f"def f(n):\n    return {value}\n", "assert f(2) == [1, 2]", sandbox)
        for value in ("[1, n]", "[n, 1]")
    )
    assert verdicts(same) == verdicts(other) == [Verdict.PASS]
    assert [score.suites[0][0].duel.tests[0].returned for score in (same, other)] == ["", "[2, 1]"]


def test_printed_infinities_are_near_nothing() -> None:
    assert same_output(b'"1e400"', b'"1e400"', 1e-6)
    assert not same_output(b'"1e400"', b'"9e999"', 1e-6)
    assert not same_output(b'"1.5"', b'"1.5x"', 1e-6)


def test_a_relation_is_no_test_where_a_checker_decides(sandbox: Sandbox) -> None:
    """`f(6)[0] == 1` holds of the reference's value and not of [2, 3], which is as right."""
    suite = "assert f(6)[0] == 1\nassert f(6) == [3, 2]"
    arena = Arena(sandbox, RewardConfig(fidelity="wide"))
    (score,) = arena.play([Match(PAIR, ("def f(n):\n    return [n, 1]\n",), ((suite,),))], update_book=False)
    assert statuses(score) == [Status.REJECTED, Status.KEPT]
    assert score.suites[0][0].duel.tests[0].reason == "with_checker"
