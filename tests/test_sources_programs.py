"""Contest questions about whole programs that come in as such: read, checked, played in both seats, told from others.

Rows have the fields of the real sets and questions of our own.
"""

from __future__ import annotations

import base64
import dataclasses
import io
import json
import pickle
import zlib
from pathlib import Path
from typing import Any

import pytest

from codea1_env import parallel_env
from codea1_env.cli import main
from codea1_env.evaluation.kill_matrix import with_mutants
from codea1_env.players.prompts import DEFAULT, find_prompts
from codea1_env.problems import Problem, TestCase, read_problems
from codea1_env.problems.contamination import Contamination
from codea1_env.problems.sources import Draft, find_source
from codea1_env.sandbox import LocalSandbox

DESIGN = find_prompts(DEFAULT)

QUESTION = (
    "Read how many rooms there are, then the guests of each; print the fullest room's number, the first if several."
)
FULLEST = """import sys


def main():
    count, *guests = map(int, sys.stdin.read().split())
    if count == 0:
        print("none")
        sys.exit()
    print(1 + max(range(count), key=lambda room: guests[room]))


if __name__ == "__main__":
    main()
"""
LAST = FULLEST.replace("key=lambda room: guests[room]", "key=lambda room: (guests[room], room)")
INPUTS, OUTPUTS = ["3\n1 4 2\n", "0\n", "2\n0 0\n"], ["2\n", "none\n", "1 \n\n"]
TESTS = tuple(
    TestCase(f"program({given!r})", repr(value)) for given, value in zip(INPUTS, ("2", "none", "1"), strict=True)
)
APPS = {
    "problem_id": 4001,
    "question": QUESTION,
    "solutions": json.dumps(["print 'none'", FULLEST]),
    "input_output": json.dumps({"inputs": INPUTS, "outputs": OUTPUTS}),
    "difficulty": "introductory",
    "url": "https://example.org/rooms",
    "starter_code": "",
}
TACO = {
    "question": QUESTION,
    "solutions": json.dumps([FULLEST]),
    "input_output": json.dumps({"inputs": INPUTS, "outputs": OUTPUTS}),
    "difficulty": "EASY",
    "name": "rooms",
    "starter_code": "",
}
CODE_CONTESTS = {
    "name": "4001_A. Rooms",
    "description": QUESTION,
    "difficulty": 7,
    "solutions": {"language": [2, 3], "solution": ["int main() {}", FULLEST]},
    "public_tests": {"input": INPUTS[:1], "output": OUTPUTS[:1]},
    "private_tests": {"input": INPUTS[1:2], "output": OUTPUTS[1:2]},
    "generated_tests": {"input": INPUTS[2:], "output": OUTPUTS[2:]},
}
RECORDS = [{"input": given, "output": value, "testtype": "stdin"} for given, value in zip(INPUTS, OUTPUTS, strict=True)]
LIVE = {
    "question_title": "Rooms",
    "question_content": QUESTION,
    "question_id": "abc4001_a",
    "starter_code": "",
    "difficulty": "easy",
    "public_test_cases": json.dumps(RECORDS[:1]),
    "private_test_cases": base64.b64encode(zlib.compress(pickle.dumps(json.dumps(RECORDS[1:])))).decode(),
    "metadata": "{}",
}
ROWS = {"apps": APPS, "taco": TACO, "code_contests": CODE_CONTESTS, "livecodebench": LIVE}


def draft(source: str, row: dict[str, Any], *, as_programs: bool = True) -> Problem:
    found = find_source(source)
    (read,) = (dataclasses.replace(found, programs_as="program") if as_programs else found).drafts([row])
    assert isinstance(read, Draft), read
    return read.problem


def imported(source: str, row: dict[str, Any], folder: Path, *options: str) -> Path:
    rows, out = folder / "rows.jsonl", folder / "out.jsonl"
    rows.write_text(json.dumps(row) + "\n")
    assert main(["data", "import", source, str(rows), "--as-programs", "-o", str(out), *options]) == 0
    return out


@pytest.mark.parametrize("source", ROWS)
def test_a_contest_question_comes_in_as_the_program_that_it_asks_for(source: str, tmp_path: Path) -> None:
    (problem,) = read_problems(imported(source, ROWS[source], tmp_path))
    assert (problem.kind, problem.entry_point, problem.question) == ("program", "program", QUESTION)
    assert (problem.starter_code, problem.source) == ("", find_source(source).hub_id)
    assert (*problem.golden_tests, *problem.hidden_tests) == TESTS
    assert problem.reference_solution == (None if source == "livecodebench" else FULLEST)
    (line,) = (tmp_path / "out.jsonl.report.jsonl").read_text().splitlines()
    assert json.loads(line)["status"] == ("unchecked" if source == "livecodebench" else "all")


def test_a_question_about_a_function_is_the_same_either_way() -> None:
    solution = "class Solution:\n    def most(self, xs):\n        return max(xs)\n"
    cases = {"fn_name": "most", "inputs": [[[1, 2]]], "outputs": [[2]]}
    row = APPS | {"solutions": json.dumps([solution]), "input_output": json.dumps(cases)}
    assert draft("apps", row) == draft("apps", row, as_programs=False)
    assert draft("apps", row).kind == "function"


def test_a_script_that_fails_one_of_the_sets_tests_loses_it_and_the_report_says_which(tmp_path: Path) -> None:
    row = APPS | {"input_output": json.dumps({"inputs": INPUTS, "outputs": [*OUTPUTS[:2], "2\n"]})}
    (problem,) = read_problems(imported("apps", row, tmp_path))
    assert problem.golden_tests == TESTS[:2]
    record = json.loads((tmp_path / "out.jsonl.report.jsonl").read_text())
    assert (record["status"], record["failed"]) == ("some", [[r"assert program('2\n0 0\n') == '2'", "fail"]])


@pytest.mark.parametrize("source", ["mbpp", "condefects", "rows"])
def test_sets_without_the_choice_refuse_it(source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text("{}\n")
    assert main(["data", "import", source, str(rows), "--as-programs", "-o", str(tmp_path / "out.jsonl")]) == 2
    told = f"--as-programs must come with one of livecodebench, apps, taco, code_contests, got {source}"
    assert told in capsys.readouterr().err


# What an imported program is good for


def test_an_imported_program_is_checked_and_serves_both_seats(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = imported("apps", APPS, tmp_path)
    assert main(["data", "check", str(out)]) == 0
    told = capsys.readouterr().out
    assert told.startswith("apps/4001: coder (reference, golden, majority, dual), tester (reference, majority, dual)")
    assert "3 of 3 tests are right" in told
    live = imported("livecodebench", LIVE, tmp_path)
    assert main(["data", "check", str(live)]) == 0
    assert capsys.readouterr().out.startswith("abc4001_a: coder (golden, majority, dual), tester (majority, dual)")


def test_an_imported_program_is_played_at_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = imported("taco", TACO, tmp_path)
    capsys.readouterr()
    given = {"tester": "assert program('1\\n7\\n') == '1'\nassert program('1\\n8\\n') == 1\n", "coder": FULLEST}
    played = {}
    for seat, answer in given.items():
        monkeypatch.setattr("sys.stdin", io.StringIO(answer))
        assert main(["play", "--problems", str(out), "--seat", seat, "--seed", "1", "--json"]) == 0
        played[seat] = json.loads(capsys.readouterr().out)
    (suite,) = played["tester"]["suites"][0]
    assert [test["status"] for test in suite["tests"]] == ["kept", "wrong_expected"]
    assert [code["reward"] for code in played["coder"]["codes"]] == [1.0]


def test_an_imported_program_is_a_game_in_the_environment_and_its_bug_is_found() -> None:
    game = parallel_env([draft("apps", APPS)])
    game.reset(seed=0)
    game.step({"coder_0": LAST, "tester_0": ""})
    test = 'assert program("3\\n5 5 1\\n") == "1\\n"'
    _, rewards, *_ = game.step({"coder_0": "", "tester_0": test})
    game.close()
    assert rewards["coder_0"] == 0.0
    assert rewards["tester_0"] == 0.125  # of eight tests one: 0.5 * 1/8 for being valid, 0.5 * 1/8 for the kill


def test_players_of_an_imported_program_are_asked_for_a_script_and_for_texts() -> None:
    problem = draft("code_contests", CODE_CONTESTS)
    coder = DESIGN.for_coder(problem)[1]["content"]
    tester = DESIGN.for_tester(problem, LAST, suite_size=2)[1]["content"]
    assert "Write a whole program, a script" in coder
    assert "`assert program(...) == expected`" in tester
    assert "the whole standard input as a string" in tester
    for prompt in (coder, tester):
        assert QUESTION in prompt
        assert "solve" not in prompt


def test_mutants_of_an_imported_program_change_the_script_and_never_what_wraps_it(sandbox: LocalSandbox) -> None:
    script, function = (draft("apps", APPS, as_programs=each) for each in (True, False))
    mutants = with_mutants(sandbox, script, 4).mutants
    assert mutants
    assert all("def main()" in mutant and mutant != FULLEST for mutant in mutants)
    assert with_mutants(sandbox, function, 4) == function


def test_different_programs_share_nothing_and_the_same_program_is_known_in_either_form() -> None:
    other = APPS | {
        "problem_id": 4002,
        "question": "Print the sum of two numbers.",
        "solutions": json.dumps([FULLEST.replace("max(", "min(").replace('"none"', '"nobody"')]),
    }
    same = APPS | {"problem_id": 4003, "question": "A question in other words."}
    for known in (True, False):
        evaluation = Contamination([draft("apps", APPS, as_programs=known)])
        for asked in (True, False):
            assert evaluation.of(draft("apps", other, as_programs=asked)) == ""
            why = evaluation.of(draft("apps", same, as_programs=asked))
            assert why == "shares its reference with the evaluation problem apps/4001"
