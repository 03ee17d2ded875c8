"""The tester's mistake book: which buggy programs come back, how an attack changes it, and what survives on disk."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from codea1_env.arena.match import CodeScore, MatchScore, SuiteScore
from codea1_env.arena.tester_book import Target, TesterBook
from codea1_env.errors import BookFormatError, ConfigurationError
from codea1_env.reading.responses import read_program
from codea1_env.reading.test_case import TestCase
from codea1_env.rewards.duel import Duel, JudgedReplay, JudgedTest, Status, Verdict

A, B, C = (f"def f(x):\n    return {i}\n" for i in range(3))


def misses(book: TesterBook, problem_id: str = "p") -> dict[str, int]:
    return {target.program: target.misses for target in book.targets(problem_id, 99)}


def test_a_killed_program_enters_with_the_suites_that_missed_it() -> None:
    book = TesterBook()
    book.record("p", A, kills=1, misses=3)
    assert book.targets("p", 8) == (Target("p", A, 3),)
    assert book.targets("q", 8) == ()


def test_what_nobody_has_seen_fail_what_every_suite_kills_and_what_is_too_long_does_not_enter() -> None:
    book = TesterBook()
    book.record("p", A, kills=0, misses=4)
    book.record("p", B, kills=4, misses=0)
    book.record("p", "x" * (1 << 17), kills=1, misses=1)
    assert misses(book) == {}
    book.record("p", A, kills=0, misses=4, is_buggy=True)
    assert misses(book) == {A: 4}


def test_kills_decrement_before_misses_increment_and_at_zero_a_target_leaves() -> None:
    book = TesterBook()
    book.record("p", A, kills=1, misses=3)  # 3
    book.record("p", A, kills=2, misses=2)  # 3 - 2 + 2
    assert misses(book) == {A: 3}
    book.record("p", A, kills=3, misses=1)  # 3 - 3 leaves, then 1
    assert misses(book) == {A: 1}
    book.record("p", A, kills=0, misses=4)  # known to be buggy: 1 + 4
    assert misses(book) == {A: 5}
    book.record("p", A, kills=8, misses=0)  # no debt
    assert misses(book) == {}
    book.record("p", A, kills=0, misses=2)  # and no longer known
    assert misses(book) == {}


def test_the_most_missed_come_first_and_equals_in_order_of_insertion() -> None:
    book = TesterBook()
    for program, count in ((A, 2), (B, 3), (C, 2)):
        book.record("p", program, kills=1, misses=count)
    assert [target.program for target in book.targets("p", 8)] == [B, A, C]
    assert [target.program for target in book.targets("p", 2)] == [B, A]
    assert book.targets("p", 0) == book.targets("p", -1) == ()


def test_a_full_book_drops_the_least_missed_older_ones_first() -> None:
    book = TesterBook(capacity=2)
    for program, count in ((A, 2), (B, 2), (C, 2)):
        book.record("p", program, kills=1, misses=count)
    assert misses(book) == {B: 2, C: 2}
    book.record("q", A, kills=1, misses=1)  # another question's room is its own
    assert (misses(book), misses(book, "q")) == ({B: 2, C: 2}, {A: 1})


@pytest.mark.parametrize("capacity", [0, -1, True, 2.0, "8"])
def test_a_capacity_that_is_no_number_of_programs_is_refused(capacity: object) -> None:
    with pytest.raises(ConfigurationError, match=r"capacity must be (an int of )?at least 1, got"):
        TesterBook(capacity)  # type: ignore[arg-type]


def suite(*verdicts: Verdict | None, reward: float | None = 0.5) -> SuiteScore:
    tests = tuple(JudgedTest("", Status.KEPT, "", "f(0)", "0", "0", verdict) for verdict in verdicts)
    return SuiteScore(reward, None, Duel("p", "", True, 0.0, tests, ()))


def test_a_match_is_recorded_program_by_program() -> None:
    passed, failed = suite(Verdict.PASS, None), suite(Verdict.PASS, Verdict.TIMEOUT)
    replays = tuple(JudgedReplay(TestCase("f(0)", "0"), verdict) for verdict in (Verdict.PASS, Verdict.FAIL))
    codes = (CodeScore(True, 0.5, A), CodeScore(True, 0.5, B), CodeScore(True, 0.5, C, replays))
    score = MatchScore("p", codes, ((failed, passed, passed), (passed, passed), (suite(Verdict.PASS), suite())))
    book = TesterBook()
    book.record_match(score)
    # A: one kill, two misses. B: never seen to fail. C: a replay failed, and both suites missed it.
    assert misses(book) == {A: 2, C: 2}


def test_what_has_no_score_or_does_not_execute_is_not_recorded() -> None:
    failed = suite(Verdict.FAIL)
    rows = ((failed, suite(reward=None)), (failed, suite()), (failed, suite()), ())
    executes = (True, None, False, True)
    codes = tuple(CodeScore(value, 0.5, program) for value, program in zip(executes, (A, B, C, A), strict=True))
    book = TesterBook()
    book.record_match(MatchScore("p", codes, rows))
    assert misses(book) == {}


@pytest.mark.parametrize(
    "program",
    [
        A,
        "",
        "def f(x):\n    '''\n```\nnot a fence\n````\n'''\n    return x\n",
        "def f(x):\n    '''\n```\nf(1)\n```\n'''\n    return 0",
        "x = '~~~'\n~~~\n",
        "```",
    ],
)
def test_a_target_can_be_played_as_a_response(program: str) -> None:
    target = Target("p", program, 1)
    assert read_program(target.response, "f").source == program


any_text = st.text(st.characters(), max_size=20) | st.text("\ud83d\ude00\udc00'\"\\\n\0`", max_size=8)


@settings(deadline=None)
@given(st.dictionaries(any_text, st.dictionaries(any_text, st.integers(1, 9), min_size=1, max_size=5), max_size=4))
def test_any_text_survives_saving_and_loading(
    tmp_path_factory: pytest.TempPathFactory, programs: dict[str, dict[str, int]]
) -> None:
    book = TesterBook()
    for problem_id, found in programs.items():
        for program, count in found.items():
            book.record(problem_id, program, kills=1, misses=count)
    path = tmp_path_factory.mktemp("book") / "tester_book.jsonl"
    book.save(path)
    loaded = TesterBook.load(path)
    assert all(loaded.targets(name, 9) == book.targets(name, 9) for name in programs)
    loaded.save(again := path.with_name("again.jsonl"))
    assert again.read_bytes() == path.read_bytes()  # the order of insertion is the same, too


def test_a_loaded_book_with_less_room_drops_at_the_next_attack(tmp_path: Path) -> None:
    book = TesterBook()
    for program, count in ((A, 3), (B, 2), (C, 1)):
        book.record("p", program, kills=1, misses=count)
    book.save(tmp_path / "book")
    small = TesterBook.load(tmp_path / "book", capacity=1)
    assert misses(small) == {A: 3, B: 2, C: 1}
    small.record("p", A, kills=0, misses=1)
    assert misses(small) == {A: 4}


HEADER = '{"schema": 1, "kind": "tester_book"}'


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([], "line 1: the header must be"),
        (['{"schema": 1, "kind": "mistake_book"}'], "line 1: the header must be"),
        ([HEADER, "{"], "line 2 must be JSON"),
        ([HEADER, '{"problem_id": "p"}'], "line 2: a question must be an object with exactly problem_id and programs"),
        ([HEADER, '{"problem_id": "p", "programs": []}'], "programs must be a non-empty list"),
        ([HEADER, '{"problem_id": "p", "programs": ["a"]}'], r"programs\[0\] must be \[program, misses\]"),
        ([HEADER, '{"problem_id": "p", "programs": [["a", 0]]}'], r"programs\[0\]\[1\] must be an integer of at least"),
        ([HEADER, '{"problem_id": "p", "programs": [["a", true]]}'], r"programs\[0\]\[1\] must be an integer"),
        ([HEADER, '{"problem_id": "p", "programs": [["a", 1], ["a", 1]]}'], r"programs\[1\] must occur once"),
        ([HEADER, *['{"problem_id": "p", "programs": [["a", 1]]}'] * 2], "line 3: problem_id must occur once"),
    ],
)
def test_a_malformed_file_is_refused_with_its_line(tmp_path: Path, lines: list[str], message: str) -> None:
    path = tmp_path / "book.jsonl"
    path.write_text("".join(line + "\n" for line in lines), "utf-8")
    with pytest.raises(BookFormatError, match=message):
        TesterBook.load(path)
