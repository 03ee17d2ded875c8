"""`codea1 eval --against`: which wrong programs a tester exposes, by hand; who sees them; what counts as wrong."""

import dataclasses
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_openai import Json, Reply, completion, serving
from hypothesis import given, strategies as st

from codea1_env.cli import main
from codea1_env.errors import ConfigurationError, FormatError
from codea1_env.evaluation.evaluate import EvaluationPlan, evaluate, journal_header
from codea1_env.evaluation.journal import EvaluationJournal
from codea1_env.evaluation.rankings import fidelities, spearman
from codea1_env.evaluation.search_tester import SearchTester
from codea1_env.evaluation.wrong_programs import Examined, examine, read_programs
from codea1_env.judging.judge import Judge
from codea1_env.players import RecordedPlayer
from codea1_env.players.player import TesterRequest
from codea1_env.problems import Problem, TestCase, read_problems
from codea1_env.problems.jsonl import write_problems
from codea1_env.sandbox import LocalSandbox

RIGHT = "def f(x):\n    if x < 0:\n        return -x\n    return x"
SAME, NEGATED = "def f(x):\n    return x", "def f(x):\n    return -x"
HANGS = "def f(x):\n    while x < 0:\n        pass\n    return x"
HANGS_AND_FAILS = "def f(x):\n    while x < 0:\n        pass\n    return 3"
ABSOLUTE = Problem("absolute", "f(x): the absolute value.", "f", reference_solution=RIGHT, time_limit_s=0.5,
                   golden_tests=(TestCase("f(3)", "3"),),
                   hidden_tests=(TestCase("f(-1)", "1"), TestCase("f(0.5)", "0.5")))  # fmt: skip
DOUBLE = Problem("double", "g(x): twice x.", "g", reference_solution="def g(x):\n    return x * 2",
                 hidden_tests=(TestCase("g(3)", "6"),))  # fmt: skip
UNANSWERED = Problem("unanswered", "h(x)", "h", reference_solution="def h(x):\n    return x")
PROBLEMS = [ABSOLUTE, DOUBLE, UNANSWERED]
AGAINST = {"absolute": [RIGHT, SAME, f"```python\n{SAME}\n```", NEGATED], "double": ["def g(x):\n    return x + x"]}
SUITES = {
    ("absolute", SAME): [
        "assert f(3) == 3\nassert f(-1) == 2\nassert f(-2) == 2\nassert f(-3) == 3",
        "assert f(-4) == 4",
    ],
    ("absolute", NEGATED): ["assert f(5) == 6", ""],
    ("absolute", ""): ["assert f(5) == 5", "assert f(-5) == 5\nassert f(0) == 0"],
}


class Asked:
    """A recorded tester that remembers what it was shown."""

    name, version = "asked", "1"

    def __init__(self) -> None:
        self._player = RecordedPlayer({}, SUITES)
        self.programs: list[str] = []

    def respond(self, requests: Sequence[Any], *arguments: Any) -> Any:
        self.programs += [request.program for request in requests]
        return self._player.respond(requests, *arguments)


def evaluated(player: Asked, path: Path, access: Any = "white-box") -> dict[str, Any]:
    plan = EvaluationPlan("tester", samples=2, suite_size=3, access=access)
    journal = EvaluationJournal(path, journal_header(player, {"a": PROBLEMS}, plan, against=AGAINST))
    try:
        with LocalSandbox() as sandbox:
            return evaluate(player, {"a": PROBLEMS}, plan, sandbox, journal, against=AGAINST)
    finally:
        journal.close()


def means(report: dict[str, Any]) -> dict[str, float]:
    return {name: found["mean"] for name, found in report["sets"]["a"]["measures"].items()}


def test_what_two_suites_against_two_wrong_programs_expose_by_hand(tmp_path: Path) -> None:
    """Against `return x` the second right test exposes, in the other suite the first; `return -x` is given away by an
    input whose stated value is wrong, and an empty suite says nothing."""
    player = Asked()
    report = evaluated(player, tmp_path / "journal")
    assert player.programs == [SAME, NEGATED], "each different wrong program once"
    assert means(report) == {
        "exposed@1": pytest.approx(1 / 4),
        "exposed@k": pytest.approx(2 / 4),
        "inputs@1": pytest.approx(2 / 4),
        "inputs@k": pytest.approx(3 / 4),
        "right tests@k": pytest.approx((2 + 1 + 0 + 0) / 4 / 3),
        "attack rate": pytest.approx((1 + 1 + 0 + 0) / 4 / 3),
        # The question's tests rank right, same, negated 3, 2, 1. The first suite: 3, 1.5, 1.5, which makes
        # 1.5 / sqrt(1.5 * 2). The second: 2.5, 1, 2.5, which makes 0. The others rank all alike.
        "fidelity": pytest.approx((3**0.5 / 2 + 0 + 0 + 0) / 4),
    }
    found = report["sets"]["a"]
    assert {part: found[part] for part in ("problems", "wrong", "right", "timeouts", "unloadable")} == {
        "problems": 1, "wrong": 2, "right": 2, "timeouts": 0, "unloadable": 0,
    }  # fmt: skip
    assert found["left_out"] == {
        "double": "no program that was given is wrong",
        "unanswered": "no program for it was given",
    }


def test_a_black_box_tester_is_shown_no_program_and_its_suites_meet_all_of_them(tmp_path: Path) -> None:
    player = Asked()
    report = evaluated(player, tmp_path / "journal", "black-box")
    assert player.programs == [""]
    # f(5): `return -x` alone fails; f(-5): `return x` alone; f(0): neither.
    assert means(report) == {
        "exposed@1": pytest.approx(2 / 4),
        "exposed@k": pytest.approx(2 / 4),
        "inputs@1": pytest.approx(2 / 4),
        "inputs@k": pytest.approx(2 / 4),
        "right tests@k": pytest.approx((1 + 2) / 2 / 3),
        "attack rate": pytest.approx((1 + 1) / 4 / 3),
        "fidelity": pytest.approx((3**0.5 / 2 + 0) / 2),  # 2.5, 2.5, 1 and 2.5, 1, 2.5 beside 3, 2, 1
    }


@pytest.mark.parametrize("access", ["white-box", "black-box"])
def test_wherever_the_journal_was_cut_off_the_report_is_the_same(tmp_path: Path, access: str) -> None:
    whole = tmp_path / "whole"
    expected = evaluated(Asked(), whole, access)
    lines = whole.read_bytes().splitlines(keepends=True)
    assert len(lines) > 4
    for kept in range(len(lines)):
        cut = tmp_path / "cut"
        cut.write_bytes(b"".join(lines[:kept]))
        assert evaluated(Asked(), cut, access) == expected
        assert cut.read_bytes() == whole.read_bytes()


def test_only_a_program_that_loads_and_fails_by_more_than_time_is_wrong() -> None:
    texts = [RIGHT, SAME, HANGS, HANGS_AND_FAILS, "garbage (", "def other(x):\n    return x"]
    with LocalSandbox() as sandbox:
        ranked = zip(map(str.strip, texts), (1.0, 2 / 3, 2 / 3, 1 / 3, 0.0, 0.0), strict=True)
        assert examine(sandbox, ABSOLUTE, texts) == Examined((SAME, HANGS_AND_FAILS), 1, 1, 2, tuple(ranked))


@pytest.mark.parametrize(
    ("first", "second", "rho"),
    [
        ([1, 2, 3], [10, 20, 30], 1.0),
        ([1, 2, 3], [3, 2, 1], -1.0),
        ([1, 2, 3, 4], [1, 3, 2, 4], 0.8),  # 1 - 6 * 2 / (4 * 15)
        ([0.0, 0.0, 1.0, 1.0], [0.0, 1.0, 0.0, 1.0], 0.0),
        ([1, 1, 2, 3], [1, 2, 3, 4], 4.5 / (4.5 * 5) ** 0.5),  # ranks 1.5, 1.5, 3, 4 beside 1, 2, 3, 4
        ([2, 2, 2], [1, 2, 3], None),
        ([1, 2, 3], [0, 0, 0], None),
        ([1], [2], None),
        ([], [], None),
    ],
)
def test_spearmans_correlation_by_hand(first: list[float], second: list[float], rho: float | None) -> None:
    assert spearman(first, second) == (rho if rho is None else pytest.approx(rho))
    assert spearman(second, first) == (rho if rho is None else pytest.approx(rho))


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=12))
def test_spearmans_correlation_is_pearsons_of_the_places_and_heeds_order_alone(pairs: list[tuple[int, int]]) -> None:
    first, second = [float(a) for a, _ in pairs], [float(b) for _, b in pairs]
    rho = spearman(first, second)
    assert rho is None or -1 - 1e-9 <= rho <= 1 + 1e-9
    assert spearman([10 * a**3 - 7 for a in first], second) == (rho if rho is None else pytest.approx(rho))
    if rho is not None:
        places = [
            [sum(o < v for o in row) + (sum(o == v for o in row) + 1) / 2 for v in row] for row in (first, second)
        ]
        assert rho == pytest.approx(np.corrcoef(*places)[0, 1])
        assert spearman([-a for a in first], second) == pytest.approx(-rho)


def test_a_question_whose_own_tests_rank_all_programs_alike_says_nothing_of_fidelity() -> None:
    alike, apart = [(RIGHT, 1.0), (f"{RIGHT}\n", 1.0)], [(RIGHT, 1.0), (SAME, 2 / 3), ("garbage (", 0.0)]
    with LocalSandbox() as sandbox:
        judge = Judge(sandbox)
        asked = [(ABSOLUTE, ["assert f(-1) == 1"], row) for row in (alike, apart, [])]
        tied = 1.5 / (1.5 * 2) ** 0.5  # the suite ranks 3, 1.5, 1.5
        assert fidelities(judge, asked, 3) == [[], [pytest.approx(tied)], []]


def test_a_journal_from_before_programs_were_ranked_is_refused(tmp_path: Path) -> None:
    header = journal_header(Asked(), {"a": PROBLEMS}, EvaluationPlan("tester"), against=AGAINST)
    before = EvaluationJournal(tmp_path / "journal", {key: each for key, each in header.items() if key != "ranked"})
    before.append({"kind": "programs", "set": "a", "problem_id": "absolute", "wrong": [SAME]})
    before.close()
    with pytest.raises(ConfigurationError, match="ranked"):
        EvaluationJournal(tmp_path / "journal", header)


def test_programs_come_from_lines_of_codes_the_journal_of_an_evaluation_or_a_problem_file(tmp_path: Path) -> None:
    path = tmp_path / "programs.jsonl"
    lines: list[Any] = [
        {"problem_id": "a", "codes": ["one"], "suites": [[]]},
        {"kind": "plan", "seat": "coder"},
        {"kind": "answers", "set": "s", "problem_id": "a", "texts": ["two"], "truncated": 0},
        {"kind": "score", "set": "s", "problem_id": "a", "passed": [False]},
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert read_programs(path) == {"a": ["one", "two"]}
    write_problems(path, [dataclasses.replace(ABSOLUTE, mutants=(SAME, NEGATED)), DOUBLE])
    assert read_programs(path) == {"absolute": [SAME, NEGATED], "double": []}
    bare = {"problem_id": "bare", "question": "Q", "entry_point": "f"}
    path.write_text(json.dumps(bare) + "\n\n" + json.dumps(lines[0]) + "\n")
    assert read_programs(path) == {"bare": [], "a": ["one"]}, "without the field, and with a blank line"
    path.write_text('{"kind":"plan","seat":"tester"}\n')
    with pytest.raises(FormatError, match="must be the journal of a coder, got the one of a tester"):
        read_programs(path)
    for bad in (
        '{"problem_id": "a"}',
        '{"problem_id": "a", "codes": "def f(x): return x"}',
        "[]",
        '{"codes": [], "problem_id": 1}',
        "x",
    ):
        path.write_text(bad + "\n")
        with pytest.raises(FormatError, match=r"line 1, must be a JSON object with a problem_id and codes.*; got '"):
            read_programs(path)
    path.write_text('{"problem_id": "a", "codes": ["one", 1]}\n')
    with pytest.raises(FormatError, match=r"line 1: codes\[1\] must be a text or .* got 1; give"):
        read_programs(path)


def test_the_search_finds_what_tells_mutants_apart_and_states_what_the_program_returns() -> None:
    program = "def f(x):\n    if x > 41:\n        return 0\n    return x"
    problem = Problem("p", "f(x)", "f", reference_solution=RIGHT, golden_tests=(TestCase("f(3)", "3"),),
                      hidden_tests=(TestCase("f(123456)", "123456"),))  # fmt: skip
    with LocalSandbox() as sandbox:
        tester = SearchTester(sandbox, 4)
        ((one, other),) = tester.respond([TesterRequest(problem, program)], n=2, seed=1)
        assert tester.respond([TesterRequest(problem, program)], n=2, seed=1)[0] == [one, other]
        assert tester.respond([TesterRequest(problem, "def f(:")])[0][0].text == ""
    namespace: dict[str, Any] = {}
    exec(program, namespace)
    tests = [line for line in one.text.splitlines() if line.startswith("assert")]
    assert len(tests) == 4
    assert one.text != other.text
    for test in tests:
        exec(test, namespace)  # holds of the program itself
    asked = [int(test.split("(")[1].split(")")[0]) for test in tests if test.split("(")[1][0] in "-0123456789"]
    assert any(x > 41 for x in asked), "the branch that no golden call reaches"
    assert "123456" not in one.text, "hidden tests are not read"


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, ...]:
    write_problems(tmp_path / "questions.jsonl", PROBLEMS)
    lines = [json.dumps({"problem_id": name, "codes": codes}) + "\n" for name, codes in AGAINST.items()]
    (tmp_path / "programs.jsonl").write_text("".join(lines))
    return "--problems", str(tmp_path / "questions.jsonl"), "--against", str(tmp_path / "programs.jsonl")


def test_a_model_behind_a_server_sees_the_wrong_program_or_the_question_only(
    tmp_path: Path, files: tuple[str, ...], capsys: Any
) -> None:
    def answer(request: Json, number: int) -> Reply:
        return Reply(body=completion(*["```python\nassert f(-1) == 1\n```"] * request["n"]))

    for access, is_shown in (("white-box", True), ("black-box", False)):
        with serving(answer) as server:
            command = ["eval", "--seat", "tester", "--player", f"openai:{server.url}#m", "--n", "1", *files]
            assert main([*command, "--access", access, "-o", str(tmp_path / access)]) == 0
            told = [asked["messages"][-1]["content"] for asked in server.asked]
        # Requests are under way at the same time: they come in any order.
        assert sorted(SAME in text for text in told) == ([False, True] if is_shown else [False])
        assert all(RIGHT not in text for text in told)
        report = json.loads((tmp_path / access / "results.json").read_text())
        assert report["sets"]["questions"]["measures"]["exposed@1"]["mean"] == 0.5
        assert f"against wrong programs, {access}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--seat", "coder", "--player", "oracle"), "--against must come with --seat tester"),
        (("--seat", "tester", "--player", "search", "--access", "black-box"), "must see the programs"),
    ],
)
def test_what_does_not_go_together_is_refused(
    files: tuple[str, ...], arguments: tuple[str, ...], message: str, tmp_path: Path, capsys: Any
) -> None:
    assert main(["eval", *arguments, *files, "-o", str(tmp_path / "out")]) == 2
    assert message in capsys.readouterr().err
    plain = ("--seat", "tester", "--player", "fuzz", "--access", "black-box", *files[:2])
    assert main(["eval", *plain, "-o", str(tmp_path / "out")]) == 2
    assert "--access black-box must come with --against" in capsys.readouterr().err


def test_the_draw_keeps_wrong_programs_and_gives_scripted_testers_calls_to_begin_with(tmp_path: Path) -> None:
    import wrong_programs

    bare = Problem("absolute", "f(x)", "f", reference_solution=RIGHT, hidden_tests=tuple(
        TestCase(f"f({x})", str(abs(x))) for x in range(-3, 300)
    ))  # fmt: skip
    write_problems(tmp_path / "all.jsonl", [bare])
    (tmp_path / "programs.jsonl").write_text(json.dumps({"problem_id": "absolute", "codes": [RIGHT, SAME, NEGATED]}))
    old = sys.argv
    sys.argv = ["wrong_programs.py", str(tmp_path / "programs.jsonl"), "--problems", str(tmp_path / "all.jsonl")]
    sys.argv += ["--each", "1", "-o", str(tmp_path / "out")]
    try:
        assert wrong_programs.main() == 0
    finally:
        sys.argv = old
    (drawn,) = read_programs(tmp_path / "out" / "programs.jsonl")["absolute"]
    assert drawn in (SAME, NEGATED)
    (problem,) = read_problems(tmp_path / "out" / "questions.jsonl")
    assert [test.call for test in problem.golden_tests] == ["f(-3)", "f(-2)", "f(-1)"]
    assert len(problem.hidden_tests) == 100
