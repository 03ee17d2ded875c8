"""`codea1 play`: a person's game is scored as a model's is, and a terminal is written to as it wants to be."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from codea1_env.arena.arena import Arena
from codea1_env.arena.match import Match
from codea1_env.cli import main
from codea1_env.problems import Problem, bundled_problems, write_problems
from codea1_env.reading.test_case import TestCase
from codea1_env.sandbox import open_sandbox
from codea1_env.terminal import Painter, Progress, printable

SQUARE = "def double(x):\n    return x * x\n"
PROBLEM = Problem(
    "double",
    "double(x): return twice x.",
    "double",
    reference_solution="def double(x):\n    return 2 * x\n",
    golden_tests=(TestCase("double(2)", "4"), TestCase("double(3)", "6")),
    mutants=(SQUARE,),
)
COMMAND = [sys.executable, "-m", "codea1_env.cli", "play"]


@pytest.fixture
def problems(tmp_path: Path) -> Path:
    write_problems(tmp_path / "problems.jsonl", [PROBLEM])
    return tmp_path / "problems.jsonl"


def played(answer: str, *arguments: str, monkeypatch: Any, capsys: Any) -> tuple[int, str, str]:
    monkeypatch.setattr("sys.stdin", io.StringIO(answer))
    status = main(["play", *arguments])
    shown = capsys.readouterr()
    return status, shown.out, shown.err


def test_a_tester_sees_every_verdict_and_both_rewards_by_hand(problems: Path, monkeypatch: Any, capsys: Any) -> None:
    """K = 4, alpha 1/2: double(2) valid, passed; double(3) valid, failed; double(5) states 11, right is 10, failed; one
    no test. v = 3, invalid = 2: R_val = min(3/4, 2/4) = 1/2; f_new 2/4; R_T = 1/4 + 1/4. R_C = 1 of 3."""
    answer = "assert double(2) == 4\nassert double(3) == 6\nassert double(5) == 11\nassert True\n.\n"
    status, out, err = played(
        answer, "--problems", str(problems), "--suite-size", "4", "--seed", "1", monkeypatch=monkeypatch, capsys=capsys
    )
    assert (status, err) == (0, ""), "who pipes an answer in is not asked"
    assert "valid, the program passes" in out
    assert out.count("the program FAILS (fail)") == 2
    assert "states a wrong value; right is 10, the program FAILS" in out
    assert "no test: not_a_comparison" in out
    assert "R_T, yours: 0.500 = 0.5 * 0.500 (valid) + 0.5 * 0.500 (breaking)" in out
    assert "R_C, the coder's: 0.333 = 1 of 3 valid tests passed" in out
    assert "--seat tester --problem double --seed 1" in out
    assert "\x1b" not in out, "plain where it is piped"


def test_a_closed_standard_input_has_no_answer(problems: Path, monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.setattr("sys.stdin", None)
    assert main(["play", "--problems", str(problems)]) == 1
    assert "must answer (a dot alone is an empty answer), got the end of the input" in capsys.readouterr().err


def test_what_is_no_assert_is_said_and_not_dropped_in_silence(problems: Path, monkeypatch: Any, capsys: Any) -> None:
    game = ("--problems", str(problems), "--seed", "1")
    for answer, told in (
        ("assert double(2) == 4\ndouble(3)\nprint(double(4))\n.\n", "not read as tests: statement (2)"),
        ("these are my tests, then\nassert double(2) == 4\n.\n", "not read as tests: prose (1)"),
        ("So assert double(2) == 4\n.\n", "not read as tests: prose with an assert in it (1)"),
        ("def test_it():\n    assert double(2) == 4\n.\n", "not read as tests: function (1)"),
    ):
        assert told in played(answer, *game, monkeypatch=monkeypatch, capsys=capsys)[1]
    quiet = played("assert double(2) == 4\n.\n", *game, monkeypatch=monkeypatch, capsys=capsys)[1]
    assert "not read" not in quiet


def test_a_coder_meets_a_scripted_tester(problems: Path, monkeypatch: Any, capsys: Any) -> None:
    arguments = ("--seat", "coder", "--problems", str(problems))
    status, out, _ = played(SQUARE + ".\n", *arguments, monkeypatch=monkeypatch, capsys=capsys)
    assert status == 0
    assert "your program passes" in out
    assert "your program FAILS" in out
    assert "R_C, yours: 0.500 = 1 of 2 valid tests passed" in out
    _, broken, _ = played("def double(x:\n.\n", *arguments, monkeypatch=monkeypatch, capsys=capsys)
    assert "your program does not load" in broken
    assert "R_T, the tester's: 0.000 = nothing, because the program does not load" in broken


def test_a_script_gets_what_score_would_write(problems: Path, monkeypatch: Any, capsys: Any) -> None:
    suite = "assert double(3) == 6\n"
    arguments = ("--problems", str(problems), "--json")
    status, out, _ = played(suite + ".\n", *arguments, monkeypatch=monkeypatch, capsys=capsys)
    record = json.loads(out)
    with open_sandbox() as sandbox:
        (score,) = Arena(sandbox).play([Match(PROBLEM, (SQUARE,), ((suite,),))])
    assert status == 0
    assert record["suites"][0][0]["reward"] == score.suites[0][0].reward
    assert record["codes"] == [{"executes": True, "reward": 0.0}]


def test_the_same_seed_is_the_same_game(monkeypatch: Any, capsys: Any) -> None:
    games = [played(".\n", "--seed", "5", "--json", monkeypatch=monkeypatch, capsys=capsys)[1] for _ in range(2)]
    assert games[0] == games[1]
    assert json.loads(games[0])["problem_id"] in {problem.problem_id for problem in bundled_problems()}


def test_the_same_game_again_is_the_whole_command(problems: Path, monkeypatch: Any, capsys: Any) -> None:
    arguments = ("--problems", str(problems), "--opponent", "oracle", "--seed", "5", "--alpha", "0.25")
    printed = played("assert True\n.\n", *arguments, monkeypatch=monkeypatch, capsys=capsys)[1]
    (again,) = [line.partition("again: codea1 play ")[2] for line in printed.splitlines() if "again:" in line]
    assert {"--problems", str(problems), "--opponent", "oracle", "--alpha", "0.25"} <= set(again.split())
    assert "--suite-size" not in again
    same = played("assert True\n.\n", *again.split(), monkeypatch=monkeypatch, capsys=capsys)[1]
    assert same.splitlines()[-1] == printed.splitlines()[-1]


@pytest.mark.parametrize(
    ("arguments", "must"),
    [
        (["--seed", "-1"], "--seed must be at least 0, got -1"),
        (["--opponent", "golden"], "--opponent must be mutant or oracle if you are the tester, got golden"),
        (["--problem", "none"], "--problem must be an id of the problems, such as double, got none"),
        (["--problems", "none.jsonl"], "--problems must be a file, got none.jsonl"),
        (["--alpha", "2"], "alpha must be in [0, 1], got 2.0"),
        (["--suite-size", "0"], "suite_size must be at least 1, got 0"),
    ],
)
def test_arguments_that_cannot_be_are_refused_before_anybody_is_asked(
    problems: Path, arguments: list[str], must: str, monkeypatch: Any, capsys: Any
) -> None:
    status, out, err = played("", "--problems", str(problems), *arguments, monkeypatch=monkeypatch, capsys=capsys)
    assert (status, out) == (2, "")
    assert must in err


def test_no_answer_is_no_game(problems: Path, monkeypatch: Any, capsys: Any) -> None:
    status, out, err = played("", "--problems", str(problems), monkeypatch=monkeypatch, capsys=capsys)
    assert (status, out) == (1, "")
    assert "must answer" in err


def at_a_terminal(problems: Path, **environment: str) -> tuple[int, subprocess.Popen[bytes]]:
    master, slave = pty.openpty()
    known = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "TERM")}
    process = subprocess.Popen(
        [*COMMAND, "--problems", str(problems), "--seed", "1"],
        stdin=slave, stdout=slave, stderr=slave, start_new_session=True, env=known | {"TERM": "xterm"} | environment,
    )  # fmt: skip
    os.close(slave)
    return master, process


def read_to_the_end(master: int) -> str:
    found = b""
    while True:
        try:
            part = os.read(master, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        found += part
    os.close(master)
    return found.decode()


@pytest.mark.parametrize(
    ("environment", "colours"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)]
)
def test_at_a_terminal_there_are_colours_unless_they_are_not_wanted(
    problems: Path, environment: dict[str, str], colours: bool
) -> None:
    master, process = at_a_terminal(problems, **environment)
    os.write(master, b"assert double(3) == 6\n.\n")
    shown = read_to_the_end(master)
    assert process.wait() == 0
    assert "The program to break:" in shown
    assert ("\x1b[" in shown) == colours
    assert "FAILS (fail)" in shown


def test_ctrl_c_at_a_terminal_is_one_line_and_130(problems: Path) -> None:
    master, process = at_a_terminal(problems)
    shown = b""
    while b"your answer" not in shown:
        shown += os.read(master, 65536)
    # It waits for the answer now: a signal between Python's last look and the read would be seen after the next line.
    while Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] != "S":
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    rest = read_to_the_end(master)
    assert process.wait() == 130
    assert rest.replace("\r", "").splitlines()[-1] == "codea1: interrupted"
    assert "Traceback" not in rest


class Terminal(io.StringIO):
    def __init__(self, is_terminal: bool = True) -> None:
        super().__init__()
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        return self._is_terminal


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_progress_shows_share_rate_and_time_left_after_two_seconds_and_wipes_itself() -> None:
    clock, stream = Clock(), Terminal()
    with Progress(stream, "games", 40, now=clock) as progress:
        for second in (1.0, 1.9):
            clock.now = second
            progress.advance(4)
        assert stream.getvalue() == "", "what is done soon needs none"
        clock.now = 4.0
        progress.note = "all well"
        progress.advance(2)
        assert "[######..................]  25 %  10 of 40 games  2.5/s  12 s left  all well" in stream.getvalue()
        progress.say("a line")
    assert stream.getvalue().endswith("\r\x1b[Ka line\n")


def test_progress_of_unknown_length_counts_and_off_a_terminal_there_is_none() -> None:
    clock, stream, pipe = Clock(), Terminal(), Terminal(False)
    with Progress(stream, "rows", now=clock) as progress, Progress(pipe, "rows", now=clock) as silent:
        clock.now = 125.0
        assert list(progress.over(iter("abc"))) == ["a", "b", "c"]
        silent.advance(3)
        silent.say("a message stays")
    assert "1 rows  0.0/s  2 min 05 s so far" in stream.getvalue()
    assert stream.getvalue().endswith("\r\x1b[K")
    assert pipe.getvalue() == "a message stays\n"


def test_paint_is_for_terminals_that_want_it() -> None:
    assert Painter(Terminal(), {})("x", "red", "bold") == "\x1b[31;1mx\x1b[0m"
    for stream, environment in ((Terminal(False), {}), (Terminal(), {"NO_COLOR": "1"}), (Terminal(), {"TERM": "dumb"})):
        assert Painter(stream, environment)("x", "red") == "x"
    assert Painter(Terminal(), {"NO_COLOR": ""})("x", "red") != "x", "an empty NO_COLOR says nothing"


def test_text_of_strangers_cannot_act_on_a_terminal() -> None:
    assert printable("a\x1b[31m\u202e\r\x07\nb\té") == "a\\x1b[31m\\u202e\\r\\x07\nb\té"
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", printable("".join(map(chr, range(0x3000)))))
