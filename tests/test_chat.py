"""Requests as chat messages: both seats, and the repair of a program."""

from codea1_env.players import CoderRequest, TesterRequest
from codea1_env.players.chat import chat_messages
from codea1_env.players.prompts import DEFAULT, find_prompts
from codea1_env.problems import Problem

DESIGN = find_prompts(DEFAULT)

PROBLEM = Problem("p", "Square a number.", "square")


def test_first_requests_are_the_prompts_of_their_seats() -> None:
    assert chat_messages(CoderRequest(PROBLEM)) == DESIGN.for_coder(PROBLEM)
    assert chat_messages(TesterRequest(PROBLEM, "pass"), 3) == DESIGN.for_tester(PROBLEM, "pass", suite_size=3)


def test_a_repair_is_the_next_turn_and_shows_the_program_and_what_it_failed() -> None:
    request = CoderRequest(PROBLEM, "def square(x): return x", "assert square(2) == 4")
    first, second, mine, asked = chat_messages(request)
    assert [first, second] == DESIGN.for_coder(PROBLEM)
    assert (mine["role"], asked["role"]) == ("assistant", "user")
    assert "def square(x): return x" in mine["content"]
    assert "assert square(2) == 4" in asked["content"]


def test_a_program_cannot_end_the_block_that_it_is_shown_in() -> None:
    (*_, mine, _) = chat_messages(CoderRequest(PROBLEM, "# ```\ndef square(x): ...", "assert square(2) == '```'"))
    assert mine["content"].startswith("````python\n")


def test_a_repair_without_feedback_still_asks() -> None:
    assert "fails tests" in chat_messages(CoderRequest(PROBLEM, "def square(x): ...", " "))[-1]["content"]
