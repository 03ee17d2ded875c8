"""Oracles without a reference: what they decide, by hand, how wrong they were, and that nobody can forge them."""

from __future__ import annotations

import ast
import dataclasses
import json

import pytest
from hypothesis import assume, given, settings, strategies as st
from test_equality import has_nan
from test_values import plain

import codea1_env
from codea1_env.arena.arena import Arena
from codea1_env.arena.match import Match, MatchScore
from codea1_env.errors import ConfigurationError
from codea1_env.judging.expected_values import (
    NO_VALUE,
    OracleError,
    dual_values,
    golden_values,
    majority_values,
    oracle_error,
)
from codea1_env.judging.judge import Expectation
from codea1_env.judging.oracle import ReferenceValue, is_plain
from codea1_env.problems.problem import Problem
from codea1_env.reading.literals import literal_tree, tree_source
from codea1_env.reading.test_case import TestCase
from codea1_env.rewards.code_a1 import RewardConfig
from codea1_env.rewards.duel import Status
from codea1_env.sandbox import LocalSandbox
from codea1_env.sandbox.inside.values import encode
from codea1_env.training.round.metrics import round_metrics

PROBLEM = Problem(
    "double",
    "Twice x.",
    "double",
    reference_solution="def double(x):\n    return 2 * x\n",
    golden_tests=(TestCase("double(1)", "2"), TestCase("double(3)", "6"), TestCase("double(5)", "11")),
    time_limit_s=0.5,
)
RIGHT = "def double(x):\n    return x + x\n"
ALSO = "def double(x):\n    return 2 * x\n"
SQUARE = "def double(x):\n    return x * x\n"
BROKEN = "def double(x):\n    return x +\n"


def value(text: str) -> ReferenceValue:
    return ReferenceValue(text.encode())


def votes(*texts: str | None) -> ReferenceValue:
    (elected,) = majority_values(1, [[None if text is None else text.encode()] for text in texts])
    return elected


# By hand


def test_the_majority_needs_two_votes_and_more_than_anything_else() -> None:
    assert votes("4", "4", "9") == value("4")
    assert votes("4", "9", "9", "4", "9") == value("9")
    assert votes("4", "9") == votes("4", "4", "9", "9") == NO_VALUE  # ties
    assert votes("4") == votes() == votes("1", "2", "3") == NO_VALUE  # one solution is no majority
    assert votes("1", "2", "3", "3") == value("3")


def test_solutions_without_a_value_vote_together_for_there_being_none() -> None:
    assert votes(None, None, None, "4", "4") == NO_VALUE
    assert votes(None, None, "4", "4") == NO_VALUE
    assert votes(None, "4", "4") == value("4")


def test_equal_values_vote_together_however_they_are_written() -> None:
    assert votes("1", "true", "1.0", "2", "2") == value("1")
    assert votes('{"s":[1,2]}', '{"s":[2,1]}', "3") == value('{"s":[1,2]}')
    assert votes('{"t":[1]}', "[1]") == NO_VALUE  # a tuple is no list


def test_golden_tests_know_their_own_calls_only() -> None:
    calls = [b"[[1],[]]", b"[[2],[]]", b"[[3],[]]"]
    golden = [
        Expectation(b"[[1],[]]", b"2"), Expectation(b"[[3],[]]", b"6"), Expectation(b"[[1],[]]", b"2.0"),
    ]  # fmt: skip
    assert golden_values(calls, golden) == [value("2"), NO_VALUE, value("6")]
    contradicting = [*golden, Expectation(b"[[3],[]]", b"7"), Expectation(b"[[3],[]]", b"6")]
    assert golden_values(calls, contradicting) == [value("2"), NO_VALUE, NO_VALUE]
    assert golden_values(calls, []) == [NO_VALUE] * 3


def asked(**tests: str) -> list[Expectation]:
    return [Expectation(f"[[{call[1:]}],[]]".encode(), stated.encode()) for call, stated in tests.items()]


def test_dual_agreement_weighs_solutions_by_the_tests_that_they_share() -> None:
    # Tests f(1)=2, f(2)=4, f(3)=9. Solutions 0 and 1 pass the first two (2 * 2 = 4), solution 2 the last (1), 3 none.
    suites = [asked(x1="2", x2="4"), asked(x3="9", x1="2")]
    answers = [
        [[b"2", b"4"], [b"2", b"4"], [b"1", b"5"], [None, None]],
        [[b"6", b"2"], [b"6", b"2"], [b"9", b"1"], [b"7", b"7"]],
    ]
    assert dual_values(suites, answers) == [[value("2"), value("4")], [value("6"), value("2")]]
    # A third passes all three alone: 3 < 4. A second of its kind: 6.
    clever = [[*answers[0], [b"2", b"4"]], [*answers[1], [b"9", b"2"]]]
    assert dual_values(suites, clever)[1][0] == value("6")
    two = [[*clever[0], [b"2", b"4"]], [*clever[1], [b"9", b"2"]]]
    assert dual_values(suites, two)[1][0] == value("9")


def test_dual_agreement_has_no_values_where_sets_tie_or_nobody_passes_a_test() -> None:
    suites = [asked(x1="2", x2="4")]
    assert dual_values(suites, [[[b"2", b"0"], [b"0", b"4"]]]) == [[NO_VALUE, NO_VALUE]]
    assert dual_values(suites, [[[b"7", b"7"], [b"7", b"7"]]]) == [[NO_VALUE, NO_VALUE]]
    assert dual_values(suites, [[]]) == [[NO_VALUE, NO_VALUE]]
    assert dual_values([], []) == []


def test_dual_agreement_has_no_value_where_its_members_differ() -> None:
    suites = [asked(x1="2", x2="9")]
    assert dual_values(suites, [[[b"2", b"4"], [b"2", b"5"]]]) == [[value("2"), NO_VALUE]]


def test_the_error_counts_wrong_and_missing_values() -> None:
    raises = ReferenceValue(b"", "ValueError")
    values = [value("2"), value("3"), NO_VALUE, value("5"), NO_VALUE, value("1.0")]
    truth = [value("2"), value("4"), value("6"), raises, raises, value("1")]
    error = oracle_error(values, truth)
    assert error == OracleError(asked=6, wrong=2, missing=1)
    assert error.share == 0.5
    assert oracle_error([], []).share == 0.0


any_value = st.sampled_from([b"1", b"1.0", b"true", b"2", b'"a"', b"[1]", b'{"t":[1]}', b'{"f":"nan"}', None])


@settings(deadline=None)
@given(st.lists(st.lists(any_value, min_size=2, max_size=2), max_size=7), st.randoms(use_true_random=False))
def test_the_order_of_solutions_decides_nothing(answers: list, random: object) -> None:
    shuffled = list(answers)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    for values, others in (
        (majority_values(2, answers), majority_values(2, shuffled)),
        (dual_values([asked(x1="1", x2="2")], [answers])[0], dual_values([asked(x1="1", x2="2")], [shuffled])[0]),
    ):
        assert oracle_error(values, others).share == 0


# What has a vote

MALFORMED = [
    b'{"t":{"d":[]}}', b'{"s":{"d":[]}}', b'{"z":{"d":[]}}', b'{"d":[{"t":1,"d":2}]}', b'{"d":{"ab":1}}',
    b'{"d":["ab"]}', b'{"d":[[1]]}', b'[{"s":"ab"}]', b'{"t":"ab"}', b'{"s":[1,1.0]}',
    b'{"z":[{"z":[1,true]}]}', b'{"d":[[1,2],[1,3]]}', b'{"d":[[[1],2]]}',
    b'{"s":[{"t":[{"s":[]}]}]}', b'{"z":[{"z":[[1]]}]}', b'{"s":[{"o":[]}]}', b'{"s":[{ "o":1}]}',
    b'{"c":["a","b"]}', b'{"c":[1,2]}', b'{"c":[1.0]}', b'{"c":[NaN,1.0]}', b'{"c":[{"c":[1.0,1.0]},1.0]}', b'{"f":3}',
    b'{"f":"1"}', b'{"f":["nan"]}', b'{"i":5}', b'{"i":"g"}', b'{"b":"4 1"}', b'{"b":"41 42"}', b'{"b":"AA"}',
    b'{"b":5}', b"[NaN]", b"1e999", b"{}", b'{"t":[],"d":[]}', b'{"":[]}', b'\xef\xbb\xbf1', b"1\0",
    b"[" * 101 + b"]" * 101,
    b'{"t":[' * 300 + b"1" + b"]}" * 300, b"[" * 330 + b"]" * 330, b"[" * 480 + b"]" * 480,
    b'{"z":[' * 101 + b"1" + b"]}" * 101, b'{"d":[[1,' * 101 + b"1" + b"]]}" * 101,
]  # fmt: skip


@pytest.mark.parametrize("encoded", MALFORMED, ids=lambda encoded: encoded[:24].decode("latin-1"))
def test_what_no_value_is_encoded_as_is_not_plain(encoded: bytes) -> None:
    assert not is_plain(encoded)


@given(plain)
def test_every_plain_value_is_and_can_be_written_down_and_read_again(value: object) -> None:
    encoded = encode(value)
    assume(not has_nan(value))  # of which Python lets two stand in a set
    assert is_plain(encoded)
    source = tree_source(json.loads(encoded))
    assert tree_source(literal_tree(ast.parse(source, mode="eval").body)) == source


@pytest.mark.parametrize("inner", [b"[]", b'{"t":[]}', b'{"s":[]}', b'{"z":[]}', b'{"d":[]}'])
def test_a_value_has_a_hundred_levels(inner: bytes) -> None:
    assert is_plain(b"[" * 99 + inner + b"]" * 99)
    assert not is_plain(b"[" * 100 + inner + b"]" * 100)


# Through the arena


SUITE = "assert double(1) == 2\nassert double(3) == 9\nassert double(5) == 10\nassert double('a', 2) == 3\n"
LONE = dataclasses.replace(PROBLEM, problem_id="lone", reference_solution=None)


def play(sandbox: LocalSandbox, oracle: str, *codes: str, problem: Problem = PROBLEM, suite: str = SUITE) -> MatchScore:
    config = RewardConfig(suite_size=4, oracle=oracle)  # type: ignore[arg-type]
    return Arena(sandbox, config).play([Match(problem, codes, ((suite,), *[()] * (len(codes) - 1)))])[0]


def outcome(score: MatchScore) -> list[tuple[str, str | None, str]]:
    return [(test.status.value, test.expected, test.reason) for test in score.suites[0][0].duel.tests]


NONE = ("raises", None, "no_value")


@pytest.mark.parametrize("problem", [PROBLEM, LONE])
def test_golden_tests_as_the_oracle(sandbox: LocalSandbox, problem: Problem) -> None:
    score = play(sandbox, "golden", SQUARE, RIGHT, problem=problem)
    # One of the golden tests is wrong: what it says counts.
    assert outcome(score) == [("kept", "2", ""), ("wrong_expected", "6", ""), ("wrong_expected", "11", ""), NONE]
    # By the reference: 2 and 6 are right, 11 is not 10, and the last raises there, too.
    assert score.oracle_error == (OracleError(4, 1, 0) if problem is PROBLEM else None)


@pytest.mark.parametrize("problem", [PROBLEM, LONE])
def test_the_majority_of_solutions_as_the_oracle(sandbox: LocalSandbox, problem: Problem) -> None:
    score = play(sandbox, "majority", SQUARE, RIGHT, BROKEN, ALSO, problem=problem)
    assert outcome(score) == [("kept", "2", ""), ("wrong_expected", "6", ""), ("kept", "10", ""), NONE]
    assert score.codes[0].reward == 0.0
    assert score.oracle_error == (OracleError(4, 0, 0) if problem is PROBLEM else None)
    wrong = play(sandbox, "majority", RIGHT, SQUARE, SQUARE, problem=problem)
    assert outcome(wrong)[1] == ("kept", "9", "")
    assert wrong.oracle_error == (OracleError(4, 3, 0) if problem is PROBLEM else None)
    tie = play(sandbox, "majority", RIGHT, SQUARE, problem=problem)
    assert outcome(tie) == [NONE] * 4
    assert tie.oracle_error == (OracleError(4, 0, 3) if problem is PROBLEM else None)
    assert (tie.suites[0][0].reward, tie.codes[0].reward) == (0.0, 0.0)


def test_dual_agreement_as_the_oracle(sandbox: LocalSandbox) -> None:
    # RIGHT and ALSO pass the first and third test (2 * 2), SQUARE twice the second (2 * 1).
    score = play(sandbox, "dual", SQUARE, SQUARE, RIGHT, ALSO, problem=LONE)
    assert outcome(score) == [("kept", "2", ""), ("wrong_expected", "6", ""), ("kept", "10", ""), NONE]


def test_the_reference_is_never_asked_but_to_measure(sandbox: LocalSandbox) -> None:
    lying = dataclasses.replace(PROBLEM, reference_solution="def double(x):\n    return 'no'\n")
    broken = dataclasses.replace(PROBLEM, reference_solution="def double(x):\n    return x +\n")
    for oracle in ("golden", "majority", "dual"):
        honest, lied, lost = (
            play(sandbox, oracle, SQUARE, RIGHT, ALSO, problem=problem) for problem in (PROBLEM, lying, broken)
        )
        assert honest.codes == lied.codes == lost.codes
        assert honest.suites == lied.suites == lost.suites
        assert lied.oracle_error is not None
        assert lied.oracle_error.share > 0.5
        assert lost.oracle_error is None  # and no rewards are lost for it


@pytest.mark.parametrize("oracle", ["majority", "dual"])
@pytest.mark.parametrize("starter", ["def f(a, b):", ""])
def test_a_call_in_other_words_is_the_same_call_without_a_reference(
    sandbox: LocalSandbox, oracle: str, starter: str
) -> None:
    right = "def f(a, b):\n    return 2 * a + b\n"
    problem = Problem("sum", "?", "f", starter_code=starter)
    copies = "assert f(1, 2) == 4\nassert f(2, 1) == 5\nassert f(1, b=2) == 4\nassert f(b=2, a=1) == 4\n"
    others = "assert f(a=1, b=2) == 4\nassert f(a=2, b=1) == 5\nassert f(2, 2) == 6\n"
    for suite, statuses in ((copies, ["kept"] * 2 + ["duplicate"] * 2), (others, ["kept"] * 3)):
        score = play(sandbox, oracle, right, right, problem=problem, suite=suite)
        assert [str(test.status) for test in score.suites[0][0].duel.tests] == statuses


FORGERS = [
    "class Same:\n    def __eq__(self, other):\n        return True\n    def __hash__(self):\n        return 0\n"
    "def double(x):\n    return Same()\n",
    "import sys\ndef double(x):\n    print('4\\n[4]')\n    sys.stdout.write('{\"o\":1}')\n    raise SystemExit(0)\n",
    "def double(x):\n    return float('nan') if x == 1 else [double] * 3\n",
    "def double(x):\n    return 'x' * (1 << 17)\n",
    "import os\ndef double(x):\n    os._exit(0)\n",
]


@pytest.mark.parametrize("oracle", ["majority", "dual"])
def test_a_hostile_minority_forges_no_value(sandbox: LocalSandbox, oracle: str) -> None:
    """Five different ways of returning what is no plain data, or nothing, against six honest solutions."""
    honest = [RIGHT, ALSO, RIGHT, ALSO, RIGHT, ALSO]
    score = play(sandbox, oracle, *FORGERS, *honest, problem=LONE)
    assert outcome(score) == [("kept", "2", ""), ("wrong_expected", "6", ""), ("kept", "10", ""), NONE]
    assert [test.verdict.value != "pass" for test in score.suites[0][0].duel.tests if test.verdict] == [True] * 3


def test_objects_that_are_no_data_agree_on_nothing(sandbox: LocalSandbox) -> None:
    for forger in FORGERS:
        assert outcome(play(sandbox, "majority", *[forger] * 3, problem=LONE, suite="assert double(2) == 4")) == [NONE]


@pytest.mark.parametrize("oracle", ["majority", "dual"])
@pytest.mark.parametrize("forged", MALFORMED[:3] + MALFORMED[-3:], ids=lambda forged: forged[:12].decode())
def test_two_forgers_who_agree_have_no_vote_and_end_nothing(sandbox: LocalSandbox, oracle: str, forged: bytes) -> None:
    forger = (
        f"import sys\nsys.modules['values'].encode = lambda value, most: {forged!r}\ndef double(x):\n    return 1\n"
    )
    config = RewardConfig(oracle=oracle, fidelity="wide")  # type: ignore[arg-type]
    suites = (("assert len(double(1)) == 1",), (), ())
    (score,) = Arena(sandbox, config).play([Match(LONE, (forger, forger + "\n", RIGHT), suites)])
    assert [test.status for test in score.suites[0][0].duel.tests] == [Status.RAISES]
    assert [code.reward for code in score.codes[:2]] == [0.0, 0.0]


@pytest.mark.parametrize("oracle", ["majority", "dual"])
def test_suites_without_a_test_take_nothing_from_the_others(sandbox: LocalSandbox, oracle: str) -> None:
    arena = Arena(sandbox, RewardConfig(suite_size=4, oracle=oracle))  # type: ignore[arg-type]
    suites = (("prose", SUITE, ""), ("assert double(4) > 3", SUITE), ())
    scores = arena.play([Match(PROBLEM, (SQUARE, RIGHT, ALSO), suites)] * 2)
    for score in scores:
        for suite in (score.suites[0][1], score.suites[1][1]):
            assert [test.expected for test in suite.duel.tests] == ["2", "6", "10", None]
        assert score.oracle_error == OracleError(8, 0, 0)


def test_a_question_without_solutions_or_suites_asks_nothing(sandbox: LocalSandbox) -> None:
    for oracle in ("majority", "dual", "golden"):
        arena = Arena(sandbox, RewardConfig(oracle=oracle))  # type: ignore[arg-type]
        empty, mute = arena.play([Match(PROBLEM, (), ()), Match(PROBLEM, (RIGHT,), ((),))])
        assert (empty.codes, empty.oracle_error, mute.codes[0].reward) == ((), OracleError(0, 0, 0), 0.0)


def test_a_match_for_measuring_is_scored_by_the_reference_whatever_the_arena_trains_by(sandbox: LocalSandbox) -> None:
    config = RewardConfig(suite_size=4, oracle="majority", tester_reward="skill", coder_tests="union")
    measured = Match(PROBLEM, (SQUARE,), ((SUITE,),), by_reference=True)
    played: list[RewardConfig] = []
    arena = Arena(sandbox, config, on_score=lambda matches, scores, by: played.append(by))
    (score,) = arena.play([measured], update_book=False)
    (plain,) = Arena(sandbox, RewardConfig(suite_size=4)).play([measured], update_book=False)
    assert score == plain
    assert outcome(score)[0] == ("kept", "2", "")
    assert played == [RewardConfig(suite_size=4)]
    with pytest.raises(ConfigurationError, match="by_reference must be the same for all matches of a batch, got both"):
        arena.play([measured, dataclasses.replace(measured, by_reference=False)])


def test_a_round_logs_the_error_of_its_oracle(sandbox: LocalSandbox) -> None:
    for oracle, expected in (("majority", {"oracle_error": 3 / 4}), ("reference", {})):
        config = RewardConfig(suite_size=4, oracle=oracle)  # type: ignore[arg-type]
        arena = Arena(sandbox, config)
        scores = arena.play([Match(PROBLEM, (SQUARE, RIGHT), ((SUITE,), ()))])
        found = round_metrics(scores, len(arena.book), [])
        assert {name: value for name, value in found.items() if name.startswith("oracle")} == expected


def test_a_value_that_the_problems_comparison_takes_for_right_is_no_error(sandbox: LocalSandbox) -> None:
    reference = "def double(x):\n    return [x, 2 * x]\n"
    problem = dataclasses.replace(
        PROBLEM, reference_solution=reference, checker="unordered", golden_tests=(TestCase("double(3)", "[6, 3]"),)
    )
    arena = Arena(sandbox, RewardConfig(suite_size=1, oracle="golden"))
    (score,) = arena.play([Match(problem, (reference,), (("assert double(3) == [6, 3]",),))])
    assert score.codes[0].reward == 1.0
    assert score.oracle_error == OracleError(1, 0, 0)


def test_golden_tests_must_be_there_to_be_the_oracle(sandbox: LocalSandbox) -> None:
    bare = dataclasses.replace(PROBLEM, golden_tests=())
    with pytest.raises(ConfigurationError, match=r"must have golden tests .* got none for 'double'"):
        play(sandbox, "golden", RIGHT, problem=bare)
    with pytest.raises(
        ConfigurationError, match="oracle must be 'reference', 'golden', 'majority' or 'dual', got 'llm'"
    ):
        RewardConfig(oracle="llm")  # type: ignore[arg-type]


def test_an_environment_plays_questions_without_a_reference_where_another_oracle_decides() -> None:
    env = codea1_env.parallel_env([LONE], rewards=RewardConfig(oracle="golden"))
    env.close()
    with pytest.raises(ConfigurationError, match="must have a reference_solution"):
        codea1_env.parallel_env([LONE])
