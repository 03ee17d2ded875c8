"""Players: the contract that all share, and what each script promises."""

import ast
import dataclasses
import random
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given, strategies as st

from codea1_env.errors import ConfigurationError
from codea1_env.players import (
    CoderRequest,
    FuzzTester,
    GoldenTester,
    MutantCoder,
    OracleCoder,
    Player,
    RandomTester,
    RecordedPlayer,
    Request,
    Sampling,
    TesterRequest,
)
from codea1_env.players.perturb import boundary, changed_call, perturbed
from codea1_env.problems import Problem, TestCase, bundled_problems
from codea1_env.reading.responses import read_case, read_program, read_suite

PROBLEMS = bundled_problems()
BARE = Problem("bare/one", "Return x.", "f", "def f(x):\n    return x\n")
CODERS: list[Player] = [OracleCoder(), MutantCoder()]
TESTERS: list[Player] = [GoldenTester(), RandomTester(), RandomTester(tests=3), FuzzTester()]
CODER_REQUESTS: list[Request] = [CoderRequest(problem) for problem in (*PROBLEMS, BARE)]
TESTER_REQUESTS: list[Request] = [TesterRequest(problem, "def f(): ...") for problem in (*PROBLEMS, BARE)]
SEATS = [(player, CODER_REQUESTS) for player in CODERS] + [(player, TESTER_REQUESTS) for player in TESTERS]


def text(player: Player, request: Request, seed: int = 0) -> str:
    return player.respond([request], seed=seed)[0][0].text


@pytest.mark.parametrize(("player", "requests"), SEATS, ids=lambda value: getattr(value, "name", ""))
class TestEveryScriptedPlayer:
    def test_gives_n_responses_to_each_request_under_its_own_name(
        self, player: Player, requests: list[Request]
    ) -> None:
        answers = player.respond(requests, n=3)
        assert len(answers) == len(requests)
        assert all(len(group) == 3 for group in answers)
        assert {(r.player, r.version, r.truncated) for group in answers for r in group} == {
            (player.name, player.version, False)
        }

    def test_repeats_itself_for_a_seed(self, player: Player, requests: list[Request]) -> None:
        assert player.respond(requests, n=2, seed=5) == player.respond(requests, n=2, seed=5)

    def test_answers_the_same_alone_as_in_a_batch(self, player: Player, requests: list[Request]) -> None:
        batch = player.respond(requests, n=2, seed=5)
        assert [player.respond([request], n=2, seed=5)[0] for request in requests[::-1]] == batch[::-1]

    def test_refuses_the_other_seats_requests_and_no_samples(self, player: Player, requests: list[Request]) -> None:
        wrong = TESTER_REQUESTS if requests is CODER_REQUESTS else CODER_REQUESTS
        with pytest.raises(ConfigurationError, match=r"this player must get a \w+Request, got a \w+Request"):
            player.respond(wrong[:1])
        with pytest.raises(ConfigurationError, match="n must be at least 1, got 0"):
            player.respond(requests, n=0)


@pytest.mark.parametrize("player", [MutantCoder(), RandomTester(), FuzzTester()], ids=lambda player: player.name)
def test_players_that_draw_differ_between_seeds_and_between_samples(player: Player) -> None:
    requests = CODER_REQUESTS if isinstance(player, MutantCoder) else TESTER_REQUESTS
    assert player.respond(requests, seed=1) != player.respond(requests, seed=2)
    assert any(one != other for one, other in player.respond(requests, n=2))


def test_drawing_does_not_depend_on_the_hash_seed() -> None:
    code = (
        "from codea1_env.players import *; from codea1_env.problems import bundled_problems as b; import hashlib;"
        "import dataclasses;"
        "t = [TesterRequest(p, '') for p in b()];"
        "r = [player.respond(t, n=2, seed=3) for player in (RandomTester(), FuzzTester())];"
        "bare = [CoderRequest(dataclasses.replace(p, mutants=())) for p in b()];"
        "c = MutantCoder().respond([*map(CoderRequest, b()), *bare], n=2, seed=3);"
        "print(hashlib.sha256(repr((r, c)).encode('utf-8', 'surrogatepass')).hexdigest())"
    )
    printed = {
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, capture_output=True, check=True, text=True
        ).stdout
        for seed in ("0", "1")
    }
    assert len(printed) == 1
    assert len(printed.pop().strip()) == 64


def test_drawing_takes_any_text_in_a_request() -> None:
    problem = Problem("odd \ud800", "q", "f", "r", mutants=("a", "b"), golden_tests=(TestCase("f(1)", "1"),))
    assert text(MutantCoder(), CoderRequest(problem))
    assert text(RandomTester(), TesterRequest(problem, "\udfff\x00"))


def test_the_oracle_answers_with_the_reference() -> None:
    fences = 'FORM = """\n```\n{}\n```\n"""\n\ndef f(x):\n    return FORM.format(x)'
    for problem in (*PROBLEMS, Problem("markdown", "Put x into a block.", "f", fences)):
        read = read_program(text(OracleCoder(), CoderRequest(problem)), problem.entry_point)
        assert read.source.strip() == (problem.reference_solution or "").strip()
    with pytest.raises(ConfigurationError, match="'x' must have a reference_solution"):
        OracleCoder().respond([CoderRequest(Problem("x", "q", "f"))])


def test_the_mutant_coder_answers_with_a_mutant_and_in_the_end_with_each() -> None:
    for problem in PROBLEMS[:10]:
        (answers,) = MutantCoder().respond([CoderRequest(problem)], n=64)
        read = {read_program(answer.text, problem.entry_point).source.strip() for answer in answers}
        assert read == {mutant.strip() for mutant in problem.mutants}


def test_without_mutants_the_mutant_coder_changes_the_reference_and_in_many_ways() -> None:
    problem = dataclasses.replace(PROBLEMS[0], mutants=())
    (answers,) = MutantCoder().respond([CoderRequest(problem)], n=40)
    read = {read_program(answer.text, problem.entry_point).source for answer in answers}
    assert len(read) > 5
    assert ast.unparse(ast.parse(problem.reference_solution or "")) not in {source.strip() for source in read}


def test_a_reference_with_nothing_to_change_is_made_to_return_none() -> None:
    source = read_program(text(MutantCoder(), CoderRequest(BARE)), "f").source
    namespace: dict[str, Any] = {}
    exec(source, namespace)  # two lines of our own
    assert namespace["f"](7) is None


def test_the_golden_tester_writes_the_golden_tests() -> None:
    for problem in PROBLEMS:
        suite = read_suite(text(GoldenTester(), TesterRequest(problem, "")), problem.entry_point)
        assert [TestCase(str(test.call), str(test.stated)) for test in suite.tests] == list(problem.golden_tests)


def test_the_random_tester_writes_acceptable_tests_and_most_calls_are_new() -> None:
    calls = new = 0
    for problem in PROBLEMS:
        suite = read_suite(text(RandomTester(), TesterRequest(problem, "")), problem.entry_point)
        assert [test.reason for test in suite.tests] == [""] * 8
        golden = {case.call for case in problem.golden_tests}
        calls += len(suite.tests)
        new += sum(test.call not in golden for test in suite.tests)
    assert new / calls > 0.8


def test_the_random_tester_writes_as_many_tests_as_asked_and_none_without_golden_tests() -> None:
    problem = PROBLEMS[0]
    assert len(read_suite(text(RandomTester(tests=3), TesterRequest(problem, "")), problem.entry_point).tests) == 3
    assert read_suite(text(RandomTester(), TesterRequest(BARE, "")), "f").tests == ()
    with pytest.raises(ConfigurationError, match="tests must be at least 1, got 0"):
        RandomTester(tests=0)


def test_the_fuzz_tester_writes_acceptable_tests_of_different_calls() -> None:
    new = 0
    for problem in PROBLEMS:
        suite = read_suite(text(FuzzTester(), TesterRequest(problem, "")), problem.entry_point)
        assert [test.reason for test in suite.tests] == [""] * 8
        calls = {str(test.call) for test in suite.tests}
        assert len(calls) == 8
        new += len(calls - {case.call for case in problem.golden_tests})
    assert new / (8 * len(PROBLEMS)) > 0.9


def test_the_fuzz_tester_states_what_a_golden_test_states_for_it_can_know_no_better() -> None:
    for problem in PROBLEMS:
        suite = read_suite(text(FuzzTester(), TesterRequest(problem, "")), problem.entry_point)
        stated = {ast.unparse(ast.parse(case.expected)) for case in problem.golden_tests}
        assert {ast.unparse(ast.parse(str(test.stated))) for test in suite.tests} <= stated


def test_the_fuzz_tester_writes_fewer_tests_where_there_are_no_more_and_none_without_golden_tests() -> None:
    flag = Problem("p", "q", "f", golden_tests=(TestCase("f(True)", "1"),))
    assert len(read_suite(text(FuzzTester(), TesterRequest(flag, "")), "f").tests) == 2
    nothing = Problem("p", "q", "f", golden_tests=(TestCase("f()", "1"),))
    assert len(read_suite(text(FuzzTester(), TesterRequest(nothing, "")), "f").tests) == 1
    assert read_suite(text(FuzzTester(), TesterRequest(BARE, "")), "f").tests == ()
    with pytest.raises(ConfigurationError, match="tests must be at least 1, got 0"):
        FuzzTester(tests=0)


@pytest.mark.parametrize("call", ["f(", "x = 1", "f(1); f(2)", "", "f", "\ud800"])
@pytest.mark.parametrize("tester", [RandomTester(), FuzzTester()], ids=lambda player: player.name)
def test_a_golden_call_that_is_none_is_repeated_as_it_is(tester: Player, call: str) -> None:
    problem = Problem("p", "q", "f", golden_tests=(TestCase(call, "1"),))
    assert f"assert {call} == 1" in text(tester, TesterRequest(problem, ""), seed=3)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(VALUES, st.integers(0, 99))
def test_perturbing_keeps_a_literal_a_literal_of_its_type(value: Any, seed: int) -> None:
    node = ast.parse(repr(value), mode="eval").body
    before = ast.dump(node)
    changed = ast.literal_eval(ast.unparse(perturbed(node, random.Random(seed))))
    assert type(changed) is type(value)
    assert not isinstance(value, tuple) or len(changed) == len(value)
    assert ast.dump(node) == before


@pytest.mark.parametrize(
    "source", ["3", "-2", "1.5", "'ab'", "b'ab'", "[1, 2]", "(1, 2)", "{1, 2}", "{'a': 1}", "True"]
)
def test_perturbing_mostly_changes_the_value(source: str) -> None:
    node = ast.parse(source, mode="eval").body
    results = [ast.unparse(perturbed(node, random.Random(seed))) for seed in range(50)]
    assert sum(result != ast.unparse(node) for result in results) > 25


@given(VALUES, st.integers(0, 99))
def test_a_boundary_value_is_of_the_type_that_it_stands_for(value: Any, seed: int) -> None:
    node = ast.parse(repr(value), mode="eval").body
    before = ast.dump(node)
    found = eval(ast.unparse(boundary(node, random.Random(seed))), {"float": float})
    assert type(found) is type(value)
    assert not isinstance(value, tuple) or list(map(type, found)) == list(map(type, value))
    assert not isinstance(value, list) or {type(each) for each in found} <= {type(each) for each in value}
    assert ast.dump(node) == before


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ("7", {"0", "-1", str(2**63)}),
        ("7.5", {"0.0", "-0.0", "float('inf')"}),
        ("'word'", {"''", "'é'", "'\\x00'"}),
        ("[3]", {"[]", "[0, 0]", "[0]", "[3, 0]", "[" + ", ".join(["3"] * 50) + "]"}),
        ("[[3]]", {"[]", "[[]]", "[[0]]"}),
        ("{3}", {"set()", "{0}"}),
        ("{'a': 3}", {"{}", "{'a': 0}", "{'': 0}"}),
        ("(3, 'a')", {"(0, '')"}),
        ("b'a'", {"b''", "b'\\xff'"}),
        ("True", {"True", "False"}),
        ("None", {"None"}),
        ("f(x)", {"f(x)"}),
        ("{**d}", {"{**d}"}),
    ],
)
def test_the_boundary_values_of_a_type_come_up(source: str, wanted: set[str]) -> None:
    node = ast.parse(source, mode="eval").body
    assert wanted <= {ast.unparse(boundary(node, random.Random(seed))) for seed in range(2000)}


@pytest.mark.parametrize("seed", range(20))
def test_perturbing_what_is_not_finite_gives_a_test_that_is_read(seed: int) -> None:
    call = changed_call("f(1e999, [-1e999, 1.7e308])", perturbed, random.Random(seed))
    assert read_case(TestCase(call, "None"), "f").reason == ""


def test_perturbing_leaves_alone_what_is_no_literal() -> None:
    for source in ("f(x)", "x", "1 + y", "set()", "{**d}"):
        assert ast.unparse(perturbed(ast.parse(source, mode="eval").body, random.Random(0))) == source


RECORD = {
    "problem_id": "p",
    "entry_point": "f",
    "codes": ["```python\ndef f(): return 1\n```", "def f(): return 2"],
    "suites": [["assert f() == 1", "assert f() == 2"], ["assert f() == 3"]],
}


def test_a_recorded_player_repeats_the_record_in_order() -> None:
    player = RecordedPlayer.from_records([RECORD], version="7")
    problem = Problem("p", "q", "f")
    codes = player.respond([CoderRequest(problem)], n=2, seed=9)[0]
    assert [code.text for code in codes] == RECORD["codes"]
    assert {(code.player, code.version) for code in codes} == {("recorded", "7")}
    programs = [read_program(code.text, "f").source for code in codes]
    suites = player.respond([TesterRequest(problem, program) for program in programs])
    assert [group[0].text for group in suites] == ["assert f() == 1", "assert f() == 3"]


def test_a_recorded_player_refuses_what_was_not_recorded_often_enough() -> None:
    player = RecordedPlayer.from_records([RECORD])
    problem = Problem("p", "q", "f")
    with pytest.raises(ConfigurationError, match="must hold at least 3 codes of 'p', got 2"):
        player.respond([CoderRequest(problem)], n=3)
    with pytest.raises(ConfigurationError, match="must hold at least 1 suites against this program of 'p', got 0"):
        player.respond([TesterRequest(problem, "def f(): return 9")])
    with pytest.raises(ConfigurationError, match="must hold at least 1 codes of 'other', got 0"):
        player.respond([CoderRequest(Problem("other", "q", "f"))])
    with pytest.raises(ConfigurationError, match="n must be at least 1, got 0"):
        player.respond([CoderRequest(problem)], n=0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"temperature": -1.0}, r"temperature must be in \[0, 100\], got -1.0"),
        ({"top_p": 0.0}, r"top_p must be in \(0, 1\], got 0.0"),
        ({"top_p": float("nan")}, r"top_p must be in \(0, 1\], got nan"),
        ({"max_tokens": 0}, "max_tokens must be at least 1, got 0"),
        ({"max_tokens": 2.5}, "max_tokens must be an int of at least 1, got 2.5"),
        ({"max_tokens": float("inf")}, "max_tokens must be an int of at least 1, got inf"),
        *(({name: wrong}, f"{name} must be in") for name in ("temperature", "top_p") for wrong in ("1", [1], None)),
    ],
)
def test_sampling_refuses_what_is_out_of_range(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        Sampling(**arguments)
