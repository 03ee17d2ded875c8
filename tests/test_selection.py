"""A coder's best of n, chosen by a tester's suites: what counts, how ties end, and that nothing right is asked."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from codea1_env.cli import main
from codea1_env.evaluation.evaluate import EvaluationPlan, evaluate, journal_header
from codea1_env.evaluation.journal import EvaluationJournal
from codea1_env.evaluation.rankings import choose, different_programs
from codea1_env.judging.judge import Judge
from codea1_env.players.player import CoderRequest, Request, Response, TesterRequest
from codea1_env.problems import Problem, TestCase
from codea1_env.problems.jsonl import write_problems

RIGHT = "def f(x):\n    return abs(x)"
SAME = "def f(x):\n    return x"
NEGATED = "def f(x):\n    return -x"
BROKEN = "def f(x) return x"
ABSOLUTE = Problem("absolute", "Distance from zero.", "f", RIGHT, (TestCase("f(-3)", "3"),), (TestCase("f(2)", "2"),))


def chosen(sandbox: Any, programs: Sequence[str], suites: Sequence[str], size: int = 8) -> Any:
    (choice,) = choose(Judge(sandbox), [(ABSOLUTE, programs, suites)], size)
    return choice


def test_the_program_that_passes_most_tests_is_chosen(sandbox: Any) -> None:
    suites = ["assert f(-1) == 1\nassert f(1) == 1", "assert f(5) == 5"]
    choice = chosen(sandbox, [SAME, NEGATED, RIGHT], suites)
    assert choice.votes == (2, 1, 3)
    assert (choice.chosen, choice.tests) == (2, 3)


def test_what_a_test_states_is_taken_as_it_stands_and_a_wrong_tester_chooses_wrongly(sandbox: Any) -> None:
    choice = chosen(sandbox, [RIGHT, NEGATED], ["assert f(3) == -3\nassert f(2) == -2\nassert f(1) == 1"])
    assert choice.votes == (1, 2)
    assert choice.chosen == 1, "a reference that corrected it would have chosen the other"


def test_a_test_that_is_written_twice_has_two_votes(sandbox: Any) -> None:
    suites = ["assert f(3) == -3", "assert f(3) == -3", "assert f(3) == 3"]
    choice = chosen(sandbox, [RIGHT, NEGATED], suites)
    assert choice.votes == (1, 2)
    assert choice.tests == 3


def test_only_the_first_k_tests_of_a_suite_count(sandbox: Any) -> None:
    suite = "assert f(3) == 3\nassert f(3) == -3\nassert f(4) == -4"
    assert chosen(sandbox, [NEGATED, RIGHT], [suite], size=1).votes == (0, 1)
    assert chosen(sandbox, [NEGATED, RIGHT], [suite], size=3).votes == (2, 1)


def test_ties_end_with_the_first_program_that_loads(sandbox: Any) -> None:
    assert chosen(sandbox, [BROKEN, SAME, RIGHT], ["assert f(1) == 1"]).chosen == 1
    nothing = chosen(sandbox, [BROKEN, NEGATED, RIGHT], ["no tests at all", ""])
    assert (nothing.chosen, nothing.majority, nothing.tests, nothing.votes) == (1, 1, 0, (0, 0, 0))
    assert chosen(sandbox, [BROKEN, "("], ["assert f(1) == 1"]).chosen == 0


def test_programs_that_raise_on_every_call_are_no_majority(sandbox: Any) -> None:
    crashes = ["def f(x):\n    raise ValueError", "def f(x):\n    return nothing"]
    choice = chosen(sandbox, [*crashes, RIGHT], ["assert f(3) == 3", "assert f(-2) == 2"])
    assert (choice.votes, choice.chosen, choice.majority) == ((0, 0, 2), 2, 2)
    assert chosen(sandbox, [BROKEN, *crashes], ["assert f(3) == 3"]).majority == 1, "there is no other that loads"


def test_a_majority_is_of_what_programs_return_whatever_the_tests_state(sandbox: Any) -> None:
    choice = chosen(sandbox, [NEGATED, RIGHT, SAME, RIGHT], ["assert f(-2) == 99\nassert f(2) == 99"])
    assert choice.votes == (0, 0, 0, 0)
    assert (choice.chosen, choice.majority) == (0, 1)


def test_what_no_grammar_accepts_is_no_vote(sandbox: Any) -> None:
    suites = ["import os\nassert f(os.getpid()) == 1\nassert f(1, y=2) == 3\nassert True"]
    assert chosen(sandbox, [RIGHT, SAME], suites).votes == (0, 0)


def test_a_relation_is_a_vote_in_wide_reading(sandbox: Any) -> None:
    suite = "def test_f():\n    assert f(-3) > 0\n    assert f(2) > 0"
    (choice,) = choose(Judge(sandbox), [(ABSOLUTE, [NEGATED, SAME, RIGHT], [suite])], 8, "wide")
    assert (choice.votes, choice.chosen) == ((1, 1, 2), 2)


def test_programs_that_are_the_same_are_attacked_once() -> None:
    texts = [f"```python\n{RIGHT}\n```", RIGHT, SAME, f"Here:\n```python\n{RIGHT}\n```"]
    assert [text.strip() for text in different_programs(ABSOLUTE, texts)] == [RIGHT, SAME]


class Scripted:
    """Both seats: the programs of its script, and one suite against whatever it is shown."""

    name, version = "scripted", "1"

    def __init__(self, programs: Sequence[str] = (), suite: str = "assert f(-1) == 1") -> None:
        self._programs, self._suite = programs, suite
        self.shown: list[str] = []

    def respond(self, requests: Sequence[Request], n: int = 1, *_: Any) -> list[list[Response]]:
        for request in requests:
            assert isinstance(request, CoderRequest | TesterRequest)
            if isinstance(request, TesterRequest):
                self.shown.append(request.program.strip())
        return [
            [Response(self._suite if isinstance(request, TesterRequest) else self._programs[k]) for k in range(n)]
            for request in requests
        ]


SETS = {"a": [ABSOLUTE], "b": [Problem("other", "Q", "f", RIGHT, (TestCase("f(-3)", "3"),))]}


def report(path: Path, sandbox: Any, tester: Scripted, coder: Scripted | None = None) -> dict[str, Any]:
    coder = coder or Scripted([SAME, NEGATED, RIGHT, RIGHT])
    plan = EvaluationPlan("coder", samples=4)
    journal = EvaluationJournal(path, journal_header(coder, SETS, plan, None, tester))
    try:
        return evaluate(coder, SETS, plan, sandbox, journal, select_by=tester, batch=1)
    finally:
        journal.close()


def test_the_report_has_the_choice_beside_the_mean_of_the_same_samples(tmp_path: Path, sandbox: Any) -> None:
    tester = Scripted()
    found = report(tmp_path / "journal", sandbox, tester)
    assert tester.shown == [SAME, NEGATED, RIGHT] * 2, "the same program is not attacked twice"
    assert found["select_by"] == "scripted"
    measures = {name: each and each["mean"] for name, each in found["sets"]["a"]["measures"].items()}
    # f(-3) == 3 and f(2) == 2: only RIGHT. Of the votes on f(-1) == 1, NEGATED's is the first of the highest.
    assert measures["avg@4"] == 0.5
    assert (measures["chosen"], measures["majority"], measures["best"]) == (0.0, 0.0, 1.0)
    assert measures["chosen - mean"] == -0.5
    better = report(tmp_path / "better", sandbox, Scripted(suite="assert f(-1) == 1\nassert f(4) == 4"))
    measures = {name: each and each["mean"] for name, each in better["sets"]["a"]["measures"].items()}
    assert (measures["chosen"], measures["majority"], measures["chosen - mean"]) == (1.0, 1.0, 0.5)
    assert (better["sets"]["a"]["suites"], better["sets"]["a"]["tests_a_question"]) == (3, 6.0)
    assert measures["random one"] in (0.0, 1.0)


def test_wherever_the_journal_was_cut_off_the_choice_is_the_same_and_no_suite_is_asked_for_twice(
    tmp_path: Path, sandbox: Any
) -> None:
    whole = tmp_path / "whole"
    expected = report(whole, sandbox, Scripted())
    content = whole.read_bytes()
    lines = content.splitlines(keepends=True)
    assert len(lines) == 1 + 2 * 3
    for kept in range(len(lines)):
        cut = tmp_path / "cut"
        cut.write_bytes(b"".join(lines[:kept]) + lines[kept][:20])
        tester = Scripted()
        assert report(cut, sandbox, tester) == expected
        assert cut.read_bytes() == content
        assert len(tester.shown) == 6 - 3 * sum(b'"kind":"suites"' in line for line in lines[:kept])


def test_whatever_line_of_the_journal_is_lost_what_it_said_is_done_again(tmp_path: Path, sandbox: Any) -> None:
    whole = tmp_path / "whole"
    expected = report(whole, sandbox, Scripted())
    lines = whole.read_bytes().splitlines(keepends=True)
    for lost in range(1, len(lines)):
        without = tmp_path / f"without-{lost}"
        without.write_bytes(b"".join(lines[:lost] + lines[lost + 1 :]))
        assert report(without, sandbox, Scripted()) == expected


def test_programs_are_chosen_for_a_question_that_its_test_script_alone_judges(tmp_path: Path, sandbox: Any) -> None:
    script = "from unittest import TestCase\nclass T(TestCase):\n    def test_it(self):\n        assert f(-1) == 1\n"
    sets = {"a": [replace(ABSOLUTE, test_script=script), Problem("bare", "Q", "f", RIGHT, (), test_script=script)]}
    coder, tester, plan = Scripted([SAME, RIGHT]), Scripted(), EvaluationPlan("coder", samples=2, judge="scripts")
    with EvaluationJournal(tmp_path / "journal", journal_header(coder, sets, plan, None, tester)) as journal:
        found = evaluate(coder, sets, plan, sandbox, journal, select_by=tester)
    measures = {name: each and each["mean"] for name, each in found["sets"]["a"]["measures"].items()}
    assert (found["sets"]["a"]["problems"], measures["chosen"], measures["avg@2"]) == (2, 1.0, 0.5)


def test_the_command_writes_it_into_the_table(tmp_path: Path, capsys: Any) -> None:
    problems = tmp_path / "mine.jsonl"
    write_problems(problems, [ABSOLUTE])
    command = ["eval", "--player", "mutant", "--select-by", "golden", "--problems", str(problems)]
    assert main([*command, "--n", "4", "-o", str(tmp_path / "out")]) == 0
    table = (tmp_path / "out" / "table.md").read_text()
    assert table.splitlines()[0].startswith("mutant-coder as coder, chosen by golden-tester: n = 4")
    assert "| chosen | majority | random one | best | chosen - mean |" in table
    assert json.loads((tmp_path / "out" / "results.json").read_text())["select_by"] == "golden-tester"
    assert main([*command, "--n", "4", "-o", str(tmp_path / "out")]) == 0, "done already"
    without = [part for part in command if part not in ("--select-by", "golden")]
    assert main([*without, "--n", "4", "-o", str(tmp_path / "out")]) == 2, "another evaluation"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--select-by", "golden", "--n", "1"], "--select-by must come with --seat coder and --n of at least 2"),
        (["--select-by", "oracle"], "a player in the tester's seat must be one of golden"),
        (["--select-by", "golden", "--seat", "tester"], "--select-by must come with --seat coder"),
    ],
)
def test_a_tester_that_cannot_choose_is_refused(
    arguments: list[str], message: str, tmp_path: Path, capsys: Any
) -> None:
    player = "golden" if "--seat" in arguments else "oracle"
    assert main(["eval", "--player", player, "--problems", "bundled", "-o", str(tmp_path / "o"), *arguments]) == 2
    assert message in capsys.readouterr().err


def test_the_record_of_real_pairs_is_of_choices_by_votes() -> None:
    record = json.loads((Path(__file__).parents[1] / "experiments" / "results" / "pairing.json").read_text())
    for pair in record["pairs"]:
        for score in pair["scores"]:
            assert max(score["votes"]) <= score["tests"]
            assert score["votes"][score["chosen"]] == max(score["votes"])
