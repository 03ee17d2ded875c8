"""Relational tests in the game: what they are worth, when they count, how they are kept, replayed and shown."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from codea1_env.arena.arena import Arena
from codea1_env.arena.diagnostics import diagnose
from codea1_env.arena.match import Match, MatchScore
from codea1_env.cli import main
from codea1_env.judging.expected_values import dual_values
from codea1_env.judging.judge import Expectation
from codea1_env.mistake_book.book import MistakeBook
from codea1_env.problems import bundled_problems
from codea1_env.problems.problem import Problem
from codea1_env.reading.responses import read_suite
from codea1_env.reading.test_case import TestCase
from codea1_env.records.recording import Recorder, read_recording, replay
from codea1_env.rewards.code_a1 import TESTER_REWARDS, RewardConfig
from codea1_env.rewards.duel import JudgedTest, Verdict
from codea1_env.sandbox import CallsJob, ExpressionsJob, Job, JobResult, LocalSandbox
from codea1_env.viewer.games import recorded_game, require_score

ORDER = Problem(
    "order",
    "The numbers in order.",
    "order",
    reference_solution="def order(x):\n    return sorted(x)\n",
    golden_tests=(TestCase("order([2, 1])", "[1, 2]"),),
    time_limit_s=0.3,
)
SAME = "def order(x):\n    return x\n"
EMPTY = "def order(x):\n    return []\n"
RIGHT = "def order(x):\n    return sorted(x)\n"
WIDE = RewardConfig(fidelity="wide")
P, F = Verdict.PASS, Verdict.FAIL


class Watching:
    """The real sandbox, and what it was asked."""

    def __init__(self, sandbox: LocalSandbox) -> None:
        self._sandbox, self.version = sandbox, sandbox.version
        self.jobs: list[Job] = []

    def run(self, jobs: Sequence[Job]) -> list[JobResult]:
        self.jobs += jobs
        return self._sandbox.run(jobs)

    def close(self) -> None:
        """Not ours to close."""


def play(
    sandbox: LocalSandbox | Watching, suite: str, *programs: str, problem: Problem = ORDER, config: RewardConfig = WIDE
) -> MatchScore:
    programs = programs or (SAME,)
    (score,) = Arena(sandbox, config).play([Match(problem, programs, ((suite,),) * len(programs))])
    return score


def judged(score: MatchScore, program: int = 0) -> tuple[JudgedTest, ...]:
    return score.suites[program][0].duel.tests


def statuses(score: MatchScore) -> list[str]:
    return [test.status.value for test in judged(score)]


SUITE = """
def test_order():
    result = order([3, 1, 2])
    assert len(result) == 3
    assert result[0] == 1
    assert result[0] == 2
    assert len(result) >= 0
    assert result == [1, 2]
    assert max(result) == 3
"""


def test_every_number_of_a_relational_suite(sandbox: LocalSandbox) -> None:
    """Valid: the first two, and the equality, which is corrected. Invalid: wrong relation, vacuous, wrong value, and
    the last, which the equality has made a duplicate. SAME fails `result[0] == 1` and the corrected equality."""
    score = play(sandbox, SUITE, SAME, EMPTY)
    assert statuses(score) == ["kept", "kept", "wrong_relation", "vacuous", "wrong_expected", "duplicate"]
    assert [test.verdict for test in judged(score)] == [P, F, None, None, F, None]
    assert [test.verdict for test in judged(score, 1)] == [F, F, None, None, F, None]
    terms = score.suites[0][0].terms
    assert terms is not None
    assert (terms.v, terms.invalid, terms.passed) == (3, 4, 1)
    assert terms.validity == min(3 / 8, 1 - 4 / 8)
    assert terms.f_new == 2 / 8
    assert terms.reward == 0.5 * 3 / 8 + 0.5 * 2 / 8
    assert score.codes[0].reward == 1 / 3


def test_a_judged_relation_shows_its_line_its_condition_and_what_came_back(sandbox: LocalSandbox) -> None:
    test = judged(play(sandbox, "def test():\n    r = order([2, 1])\n    assert r[0] == 1\n"))[0]
    assert (test.source, test.call, test.stated, test.expected) == (
        "assert r[0] == 1", "(order([2, 1])[0] == 1)", "True", "True",
    )  # fmt: skip
    assert test.returned == "[2, 1]"


def test_a_wrong_relation_is_not_corrected(sandbox: LocalSandbox) -> None:
    """Output correction puts the right value in a wrong one's place: a relation has no such value."""
    for config in (WIDE, RewardConfig(fidelity="wide", correct_outputs=False)):
        score = play(sandbox, "assert len(order([1])) == 2", config=config)
        assert statuses(score) == ["wrong_relation"]
        assert score.suites[0][0].terms is not None
        assert score.suites[0][0].terms.v == 0


@pytest.mark.parametrize("method", TESTER_REWARDS)
@pytest.mark.parametrize(
    "vacuous",
    ["assert len(order([2, {}])) >= 0", "assert order([2, {}]) == order([2, {}])", "assert order([2, {}]) != [2, {}]",
     "assert isinstance(order([2, {}]), list)", "assert order([2, {}]) is not None",
     "assert order([2, {}]) != [] or True"],
)  # fmt: skip
def test_what_says_nothing_is_worth_as_much_as_no_test(sandbox: LocalSandbox, method: str, vacuous: str) -> None:
    """Against programs that are right, that are wrong in the very way that is named, and that raise."""
    config = RewardConfig(fidelity="wide", tester_reward=method)
    programs = (RIGHT, SAME, "def order(x):\n    return x[10]\n")
    said = "\n".join(vacuous.replace("{}", str(number)) for number in range(-3, 1))
    none = "\n".join(["assert True"] * 4)
    found = play(sandbox, said, *programs, config=config)
    assert set(statuses(found)) == {"vacuous"}
    assert {test.verdict for test in judged(found)} == {None}
    rejected = play(sandbox, none, *programs, config=config)
    assert [row[0].reward for row in found.suites] == [row[0].reward for row in rejected.suites]
    assert [code.reward for code in found.codes] == [code.reward for code in rejected.codes]
    assert diagnose([found], config).vacuous_tests == 1


def test_a_relation_about_a_call_whose_value_is_stated_is_a_duplicate(sandbox: LocalSandbox) -> None:
    suite = "assert order([2, 1]) == [1, 2]\nassert len(order([2, 1])) == 2\nassert len(order(x=[2, 1])) == 2\n"
    assert statuses(play(sandbox, suite)) == ["kept", "duplicate", "duplicate"]


def test_a_relation_that_adds_nothing_to_earlier_ones_is_a_duplicate(sandbox: LocalSandbox) -> None:
    suite = (
        "assert len(order([3, 1])) == 2\nassert len(order([3, 1])) == 2\nassert 2 == len(order([3, 1]))\n"
        "assert 1 < len(order([3, 1])) < 3\nassert order([3, 1])[0] == 1\nassert len(order([1, 3])) == 2\n"
    )
    assert statuses(play(sandbox, suite)) == ["kept", "duplicate", "duplicate", "duplicate", "kept", "kept"]


def test_an_equality_after_relations_is_judged_as_ever(sandbox: LocalSandbox) -> None:
    suite = "assert len(order([3, 1])) == 2\nassert order([3, 1]) == [1, 3]\nassert order([3, 1]) == [1, 3]\n"
    assert statuses(play(sandbox, suite)) == ["kept", "kept", "duplicate"]


def test_what_comes_after_the_first_k_tests_is_surplus(sandbox: LocalSandbox) -> None:
    suite = "for n in range(12):\n    assert len(order([n, 0])) == 2\n"
    assert statuses(play(sandbox, suite)) == ["kept"] * 8 + ["surplus"] * 4


def test_values_of_mutants_decide_what_says_something(sandbox: LocalSandbox) -> None:
    """A relation about None has no other values of its type."""
    reference = "def find(x):\n    return None\n"
    bare = Problem("find", "?", "find", reference_solution=reference, time_limit_s=0.3)
    told = Problem("find", "?", "find", reference_solution=reference, mutants=("def find(x):\n    return 5\n",))
    wrong = "def find(x):\n    return 7\n"
    assert statuses(play(sandbox, "assert not find(1)", wrong, problem=bare)) == ["vacuous"]
    score = play(sandbox, "assert not find(1)", wrong, problem=told)
    assert [(test.status.value, test.verdict) for test in judged(score)] == [("kept", F)]


def test_strict_reading_asks_no_mutant(sandbox: LocalSandbox) -> None:
    mutant = "def order(x):\n    return [None]\n"
    told = Problem("order", "?", "order", reference_solution=RIGHT, mutants=(mutant,), time_limit_s=0.3)
    for fidelity, count in (("strict", 0), ("wide", 1)):
        watching = Watching(sandbox)
        play(watching, SUITE, problem=told, config=RewardConfig(fidelity=fidelity))  # type: ignore[arg-type]
        play(watching, "assert order([1]) == [1]", problem=told, config=RewardConfig(fidelity=fidelity))  # type: ignore[arg-type]
        asked = [job for job in watching.jobs if isinstance(job, CallsJob) and job.source == mutant]
        assert len(asked) == count


def test_what_runs_follows_from_calls_and_not_from_what_is_claimed_of_them(sandbox: LocalSandbox) -> None:
    asked = []
    for claim in ("len({}) == 2", "len({}) == 3", "{} != 1", "{}[0] == 1", "{} == [5]"):
        watching = Watching(sandbox)
        suite = "\n".join(f"assert {claim.format(f'order([{n}, 1])')}" for n in range(4))
        play(watching, suite, SAME, RIGHT)
        asked.append([job for job in watching.jobs if not isinstance(job, ExpressionsJob)])  # no program runs in these
    assert asked[0]
    assert all(jobs == asked[0] for jobs in asked)


def test_nothing_that_a_candidate_makes_but_plain_data_is_related(sandbox: LocalSandbox) -> None:
    liars = (
        "class L:\n    def __len__(self): return 2\n    def __getitem__(self, i): return 1\n"
        "    def __bool__(self): return True\n    def __eq__(self, other): return True\n"
        "def order(x):\n    return L()\n",
        "class L(list):\n    def __len__(self): return 2\n    def __getitem__(self, i): return 1\n"
        "    def __iter__(self): return iter([1, 2])\n    def __eq__(self, other): return True\n"
        "def order(x):\n    return L([9])\n",
    )
    suite = "assert len(order([2, 1])) == 2\nassert order([2, 1])[0] == 1\nassert sorted(order([1, 2])) == [1, 2]\n"
    score = play(sandbox, suite, *liars)
    for place in range(len(liars)):
        assert [test.verdict for test in judged(score, place)] == [F, F, F]


def test_a_booked_relation_is_replayed_as_it_was_judged(sandbox: LocalSandbox, tmp_path: Path) -> None:
    arena = Arena(sandbox, WIDE)
    suite = "assert order([2, 1])[0] == 1\nassert abs(order([3.5, 1])[0] - 1) < 1e-6\nassert order([5, 4]) == [4, 5]\n"
    arena.play([Match(ORDER, (SAME,), ((suite,),))])
    cases = [
        TestCase("(order([2, 1])[0] == 1)", "True"),
        TestCase("(abs(order([3.5, 1])[0] - 1) < 1e-06)", "True"),
        TestCase("order([5, 4])", "[4, 5]"),
    ]
    assert list(arena.book.frequencies("order")) == cases
    arena.book.save(tmp_path / "book")
    again = Arena(sandbox, WIDE, MistakeBook.load(tmp_path / "book"))
    (score,) = again.play([Match(ORDER, (SAME, RIGHT), (("",), ("",)))])
    verdicts = [[replayed.verdict for replayed in row[0].duel.replays] for row in score.suites]
    assert verdicts == [[F, F, F], [P, P, P]]
    strict = Arena(sandbox, RewardConfig(), MistakeBook.load(tmp_path / "book"))
    (score,) = strict.play([Match(ORDER, (SAME,), (("",),))])
    assert [replayed.case for replayed in score.suites[0][0].duel.replays] == cases[2:]


@pytest.mark.parametrize(
    ("kind", "right", "alike", "wrong", "test"),
    [
        ("program", "print(int(input()) ** 2)", "print(int(input()) ** 2, end='')", "print(1)",
         "order('7').endswith('9\\n')"),
        ("function", "def order(x):\n    return x + .2", "def order(x):\n    return .3", "def order(x):\n    return x",
         "str(order(.1)) == '0.30000000000000004'"),
    ],
)  # fmt: skip
def test_a_booked_claim_fails_no_program_that_its_problem_takes_for_right(
    sandbox: LocalSandbox, kind: str, right: str, alike: str, wrong: str, test: str
) -> None:
    problem = Problem("order", "?", "order", reference_solution=right, kind=kind, tolerance=1e-6)
    arena = Arena(sandbox, WIDE)
    arena.play([Match(problem, (wrong,), ((f"assert {test}",),))])
    assert len(arena.book) == 1
    (score,) = arena.play([Match(problem, (right, alike, wrong), (("",),) * 3)])
    assert [[replay.verdict for replay in code.replays] for code in score.codes] == [[P], [P], [F]]


def test_a_recorded_relational_game_is_replayed_and_shown(sandbox: LocalSandbox, tmp_path: Path) -> None:
    with Recorder(tmp_path / "games.jsonl") as recorder:
        arena = Arena(sandbox, WIDE, on_score=recorder.write)
        for _ in range(2):
            arena.play([Match(ORDER, (SAME, EMPTY), ((SUITE,), (SUITE,)))])
    lines = (tmp_path / "games.jsonl").read_bytes().splitlines()
    recorded = list(read_recording(lines))
    assert [each.recorded.replays != () for each in replay(recorded, sandbox)] == [False, True]
    assert all(each.is_same for each in replay(recorded, sandbox))
    assert recorded[0].score is not None
    require_score(recorded[0].score, codes=2)
    for score in (recorded[0].score, None):
        tests = recorded_game(recorded[0], "here", score)["programs"][0]["suites"][0]["tests"]
        assert tests[1][0] == "assert result[0] == 1"
        assert tests[1][3:5] == ["(order([3, 1, 2])[0] == 1)", "True"]


def test_consensus_counts_relations_that_solutions_satisfy() -> None:
    (first, second) = (test for test in read_suite("assert f(1) > 3\nassert f(2) > 3", "f", fidelity="wide").tests)
    assert first.arguments is not None
    assert second.arguments is not None
    suite = [
        Expectation(first.arguments, first.value or b"", relation=first.relation),
        Expectation(second.arguments, second.value or b"", relation=second.relation),
    ]
    answers = [[[b"5", b"6"], [b"5", b"6"], [b"1", b"2"]]]
    assert [value.value for value in dual_values([suite], answers)[0]] == [b"5", b"6"]


def test_plain_equalities_are_worth_the_same_in_both_readings(sandbox: LocalSandbox) -> None:
    problem = next(iter(bundled_problems()))
    asserts = [f"assert {case.call} == {case.expected}" for case in (*problem.golden_tests, *problem.hidden_tests)][:6]
    suite = "\n".join([*asserts, asserts[0], f"assert {problem.golden_tests[0].call} == 'wrong'"])
    programs = (problem.reference_solution or "", *problem.mutants[:2])
    found = [
        play(sandbox, suite, *programs, problem=problem, config=RewardConfig(fidelity=fidelity))  # type: ignore[arg-type]
        for fidelity in ("strict", "wide")
    ]
    assert found[0] == found[1]


def test_score_shows_what_became_of_each_and_what_was_not_read(tmp_path: Path) -> None:
    suite = (
        SUITE + "@pytest.mark.skip\ndef test_b():\n    assert order([1]) == [1]\nwith pytest.raises(E):\n    order(1)\n"
    )
    line = {
        "problem_id": "order", "question": "?", "entry_point": "order", "reference_solution": RIGHT, "codes": [SAME],
        "suites": [[suite]],
    }  # fmt: skip
    (tmp_path / "in.jsonl").write_text(json.dumps(line) + "\n")
    assert main(["score", str(tmp_path / "in.jsonl"), "-o", str(tmp_path / "out.jsonl"), "--fidelity", "wide"]) == 0
    (row,) = json.loads((tmp_path / "out.jsonl").read_text())["suites"]
    found = [(test["status"], test["reason"]) for test in row[0]["tests"]]
    assert found == [
        ("kept", ""), ("kept", ""), ("wrong_relation", ""), ("vacuous", ""), ("wrong_expected", ""), ("duplicate", ""),
        ("raises", "TypeError"),
    ]  # fmt: skip
    assert row[0]["ignored"] == {"decorated": 1}


def test_what_other_suites_ask_does_not_keep_mutants_from_answering(sandbox: LocalSandbox) -> None:
    """Two suites of calls on which every mutant hangs, and the reference: the third says nothing all the same."""

    def source(body: str) -> str:
        return f"def f(n):\n    while n < 0:\n        pass\n    return {body}\n"

    mutants = tuple(source(f"[n, n + 1, {last}]") for last in range(20, 36))
    problem = Problem("m", "?", "f", reference_solution=source("[n, n + 1, 7]"), mutants=mutants, time_limit_s=0.05)
    claims = "".join(f"assert len(f({n})) == 3\n" for n in range(1, 9))
    hangs = ["".join(f"assert len(f({-8 * k - n})) == 3\n" for n in range(1, 9)) for k in range(2)]
    for suites in ((claims,), (*hangs, claims)):
        (score,) = Arena(sandbox, WIDE).play([Match(problem, (source("[n, n + 1]"),), (suites,))])
        assert {test.status.value for test in score.suites[0][-1].duel.tests} == {"vacuous"}


def test_no_more_tests_of_several_calls_count_than_there_are_calls(sandbox: LocalSandbox) -> None:
    """What follows from values that are known is no new test."""
    double = Problem("double", "?", "double", reference_solution="def double(n):\n    return 2 * n\n")
    right, wrong = "def double(n):\n    return n * 2\n", "def double(n):\n    return n + 2\n"
    suites = {
        "assert double(1) == 2\nassert double(2) == 4\nassert double(1) + double(n=2) == 6": "kept kept duplicate",
        "assert double(1) + double(2) == 6\nassert double(1) == 2\nassert double(2) == 4": "duplicate kept kept",
        "assert double(1) + double(2) == 6\nassert double(2) + double(3) == 10\nassert double(1) + double(3) == 8":
            "kept kept duplicate",
        "assert double(1) == double(2) - 2": "kept",
        "assert double(1) * double(2) > 1": "vacuous",
        "assert double(0) + double(-0.0) == 0": "vacuous",
        "assert double(3) == 2 * double(3)": "wrong_relation",
        "assert [double(n) for n in range(3)] == [0, 2, 4]": "kept kept kept",
        "assert sum(double(n) for n in range(4)) == 12": "kept",
        "assert {n for n in (1, 2, 3) if double(n) > 3} == {2, 3}": "vacuous",
    }  # fmt: skip
    for suite, expected in suites.items():
        assert " ".join(statuses(play(sandbox, suite, right, problem=double))) == expected, suite
    score = play(sandbox, "assert sum(double(n) for n in range(4)) == 12", wrong, problem=double)
    assert [test.verdict for test in judged(score)] == [F]


@pytest.mark.parametrize(
    ("reference", "claim", "expected"),
    [
        ("return sorted(x)", "max({}, key=lambda v: -v) == 1", "vacuous"),
        ("return sorted(x)", "max({}) == 2", "kept"),
        ("return sorted(x)", "min({}) == 1", "kept"),
        ("return sorted(x)", "max({}) > 1", "vacuous"),
        ("return dict(enumerate(x))", "{}.get(1) == 1", "kept"),
        ("return dict(enumerate(x))", "{}.get(9) is None", "vacuous"),
        ("return sorted(x)", "{}.index(2) == 1", "kept"),
        ("return [v * v for v in x]", "sum({}, 1) == 6", "kept"),
        ("return (v for v in x)", "[v for v in {} if v > 1] == [2]", "kept"),
        ("return ' '.join(map(str, x))", "{}.split(' ')[0] == '2'", "kept"),
        ("return ' '.join(map(str, x))", "re.fullmatch(r'2 \\d', {})", "kept"),
        ("return ' '.join(map(str, x))", "{}.find('9') == -1", "vacuous"),
        ("return dict(enumerate(x))", "{}.get(0) == 2", "kept"),
        ("return sum(x) / 2", "f'{{{}:.1f}}' == '1.5'", "kept"),
        ("return sum(x) / 2", "'%.1f' % {} == '9.5'", "wrong_relation"),
        ("return open", "str({}) == 'x'", "raises"),
    ],
)
def test_what_is_more_than_a_relation_is_looked_at(
    sandbox: LocalSandbox, reference: str, claim: str, expected: str
) -> None:
    source = f"def order(x):\n    {reference}\n"
    problem = Problem("order", "?", "order", reference_solution=source)
    score = play(sandbox, f"assert {claim.format('order([2, 1])')}", source, "def order(x):\n    return None\n",
                 problem=problem)  # fmt: skip
    assert statuses(score) == [expected]
