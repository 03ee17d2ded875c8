"""The person's seat: what is shown, what is read, and how an answer ends."""

import io
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from codea1_env.errors import ConfigurationError, PlayerError
from codea1_env.players import CoderRequest, HumanPlayer, Player, TesterRequest
from codea1_env.problems import Problem

PROBLEM = Problem("p/one", "Return x squared.", "square", starter_code="def square(x):\n    ...")


def asked(typed: str, request: Any = None, n: int = 1) -> tuple[list[str], str]:
    """The answers that are read, and everything that is shown."""
    shown = io.StringIO()
    player: Player = HumanPlayer("ada", reader=io.StringIO(typed), writer=shown)
    (answers,) = player.respond([request or CoderRequest(PROBLEM)], n=n)
    assert {(answer.player, answer.truncated) for answer in answers} == {("ada", False)}
    return [answer.text for answer in answers], shown.getvalue()


def test_a_line_with_only_a_dot_ends_an_answer_and_the_next_one_begins_after_it() -> None:
    answers, shown = asked("def square(x):\n    return x * x\n.\n...\n.\r\n", n=2)
    assert answers == ["def square(x):\n    return x * x\n", "...\n"]
    assert "answer 1 of 2" in shown
    assert "answer 2 of 2" in shown


def test_the_end_of_the_input_ends_an_answer_too() -> None:
    assert asked("def square(x): ...")[0] == ["def square(x): ..."]


def test_a_dot_at_once_is_an_empty_answer_and_the_end_of_the_input_is_none() -> None:
    assert asked(".\n")[0] == [""]
    with pytest.raises(PlayerError, match=r"ada must answer .* got the end of the input"):
        asked("")
    with pytest.raises(PlayerError, match="got the end of the input"):
        asked("one\n.\n", n=2)


def test_the_coder_reads_the_question_the_starter_code_and_what_failed() -> None:
    shown = asked(".\n", CoderRequest(PROBLEM, "def square(x): return x", "assert square(2) == 4"))[1]
    for text in ("p/one", "Return x squared.", "def square(x):\n    ...", "return x\n", "assert square(2) == 4"):
        assert text in shown


def test_the_tester_reads_the_program_that_it_attacks() -> None:
    shown = asked(".\n", TesterRequest(PROBLEM, "def square(x): return 2 * x"))[1]
    assert "def square(x): return 2 * x" in shown
    assert "assert square(...) == value" in shown


def test_a_program_cannot_send_commands_to_the_terminal() -> None:
    shown = asked(".\n", TesterRequest(PROBLEM, "# \x1b[2J\x07\r \ud800 é"))[1]
    assert "\x1b" not in shown
    assert "\\x1b[2J\\x07\\r \\ud800 é" in shown


def test_text_that_the_terminal_cannot_show_is_spelt_out() -> None:
    raw = io.BytesIO()
    writer = io.TextIOWrapper(raw, "ascii")
    HumanPlayer(reader=io.StringIO(".\n"), writer=writer).respond([TesterRequest(PROBLEM, "# é")])
    assert b"\\xe9" in raw.getvalue()


def test_bytes_that_are_no_text_are_no_answer() -> None:
    player = HumanPlayer(reader=io.TextIOWrapper(io.BytesIO(b"\xff\n.\n"), "utf-8"), writer=io.StringIO())
    with pytest.raises(PlayerError, match="an answer must be text in utf-8"):
        player.respond([CoderRequest(PROBLEM)])


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="n must be at least 1, got 0"):
        HumanPlayer(reader=io.StringIO()).respond([CoderRequest(PROBLEM)], n=0)
    with pytest.raises(ConfigurationError, match="suite_size must be at least 1, got 0"):
        HumanPlayer(suite_size=0)


SCRIPT = """
from codea1_env.players import CoderRequest, HumanPlayer
from codea1_env.problems import Problem
for _ in range(2):
    print(HumanPlayer().respond([CoderRequest(Problem("p", "q", "f"))])[0][0].text.encode(), flush=True)
"""


def at_a_terminal() -> tuple[int, Any]:
    """The master's end of a terminal at which two answers are asked for, one after another."""
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT], stdin=slave, stdout=subprocess.PIPE, stderr=slave, start_new_session=True
    )
    os.close(slave)
    return master, process


def test_ctrl_d_at_a_terminal_ends_one_answer_and_not_the_next() -> None:
    master, process = at_a_terminal()
    os.write(master, b"first\n\x04second\n.\n")
    answers = process.stdout.read()
    os.close(master)
    assert process.wait() == 0
    process.stdout.close()
    assert answers == b"b'first\\n'\nb'second\\n'\n"


def test_ctrl_c_while_a_person_is_asked_interrupts() -> None:
    master, process = at_a_terminal()
    os.write(master, b"first\n.\n")
    assert process.stdout.readline() == b"b'first\\n'\n"  # the second question is asked next
    # A signal between Python's last look and the read would be seen after the next line.
    while Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] != "S":
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    assert process.wait() in (-signal.SIGINT, 130)
    process.stdout.close()
    os.close(master)
