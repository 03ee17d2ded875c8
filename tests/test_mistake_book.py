"""The Mistake Book: what it replays, how a visit changes it, and that no text and no crash can spoil it."""

from __future__ import annotations

import copy
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings, strategies as st

from codea1_env.errors import BookFormatError, ConfigurationError
from codea1_env.judging.version import VERSION
from codea1_env.mistake_book.book import MistakeBook
from codea1_env.reading.grammar import read_case
from codea1_env.reading.test_case import TestCase

A, B, C, D = (TestCase(f"f({i})", str(i)) for i in range(4))


def book_of(*failures: TestCase, problem_id: str = "p") -> MistakeBook:
    book = MistakeBook()
    book.record(problem_id, [], failures)
    return book


def test_an_empty_book_replays_nothing() -> None:
    book = MistakeBook()
    assert (book.replay("p", 8), book.frequencies("p"), book.questions(), len(book)) == ((), {}, (), 0)


def test_replay_takes_the_most_frequent_tests_first() -> None:
    book = book_of(A, B, B, C, C, C)
    assert book.replay("p", 8) == (C, B, A)
    assert book.replay("p", 2) == (C, B)
    assert book.replay("p", 0) == ()
    assert book.replay("another", 8) == ()


def test_equally_frequent_tests_are_replayed_in_order_of_insertion() -> None:
    assert book_of(C, A, B, D, D).replay("p", 4) == (D, C, A, B)


def test_a_test_that_left_the_book_comes_back_as_the_youngest() -> None:
    book = book_of(A, B)
    book.record("p", [A], [])
    book.record("p", [], [A])
    assert book.replay("p", 8) == (B, A)


def test_each_pass_decrements_by_one_and_a_test_at_zero_is_dropped() -> None:
    book = book_of(A, A, A, B)
    book.record("p", [A, A, B], [])
    assert book.frequencies("p") == {A: 1}
    book.record("p", [A], [])
    assert (book.frequencies("p"), book.questions(), len(book)) == ({}, (), 0)


def test_questions_do_not_touch_each_other() -> None:
    book = book_of(A, problem_id="p")
    book.record("q", [], [A, A])
    book.record("p", [A], [])
    book.record("another", [A], [])
    assert (book.frequencies("p"), book.frequencies("q"), len(book), book.questions()) == ({}, {A: 2}, 1, ("q",))


@pytest.mark.parametrize("copied", [MistakeBook.copy, copy.copy])
def test_a_copy_changes_on_its_own(copied: Callable[[MistakeBook], MistakeBook]) -> None:
    book = book_of(A)
    other = copied(book)
    other.record("p", [A], [B])
    frequencies = book.frequencies("p")
    frequencies[C] = 1
    assert (book.frequencies("p"), other.frequencies("p")) == ({A: 1}, {B: 1})


@pytest.mark.parametrize("is_loaded", [True, False])
def test_a_copy_keeps_what_a_save_of_the_other_replaces(tmp_path: Path, is_loaded: bool) -> None:
    book = MistakeBook(parts=2)
    for number in range(8):
        book.record(f"p{number}", [], [A])
    book.save(tmp_path / "book")
    before = MistakeBook.load(tmp_path / "book") if is_loaded else book
    after = before.copy()
    after.record("p1", [], [B])
    after.save(tmp_path / "book")
    before.save(tmp_path / "other")
    assert [each.frequencies("p1") for each in (before, after)] == [{A: 1}, {A: 1, B: 1}]
    assert [MistakeBook.load(tmp_path / name) for name in ("other", "book")] == [before, after]
    assert pickle.loads(pickle.dumps(book)) == book


def test_a_book_is_not_loaded_with_another_configuration_nor_in_no_parts(tmp_path: Path) -> None:
    book_of(A).save(tmp_path / "book.jsonl")
    with pytest.raises(ConfigurationError, match=r"config must be a codea1_env\.BookConfig, got {'capacity': 3}"):
        MistakeBook.load(tmp_path / "book.jsonl", {"capacity": 3})  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="parts must be a whole number from 1 to 65536, got 0"):
        MistakeBook.load(tmp_path / "book.jsonl", parts=0)


def test_books_that_replay_differently_are_not_equal() -> None:
    assert book_of(A, B) == book_of(A, B)
    assert book_of(A, B) != book_of(B, A)
    assert book_of(A) != book_of(A, A)
    assert book_of(A) != book_of(A, problem_id="q")
    assert book_of(A) != "a book"


cases = st.sampled_from("abcde")
visits = st.lists(st.tuples(st.lists(cases, max_size=6), st.lists(cases, max_size=6)), max_size=8)


@settings(deadline=None)
@given(visits)
# Of two failures eight passes leave no debt; then passes come before failures: 1 - 2 is 0, plus 2.
@example([([], ["a", "a"]), (["a"] * 8, ["a"]), (["a", "a"], ["a", "a"])])
def test_frequencies_follow_the_definition(history: list[tuple[list[str], list[str]]]) -> None:
    book, expected = MistakeBook(), dict.fromkeys([TestCase(name, "0") for name in "abcde"], 0)
    for visit in history:
        passes, failures = ([TestCase(name, "0") for name in names] for names in visit)
        book.record("p", passes, failures)
        for case in expected:
            expected[case] = max(expected[case] - passes.count(case), 0) + failures.count(case)
    assert book.frequencies("p") == {case: count for case, count in expected.items() if count}
    replayed = book.replay("p", 3)
    assert len(replayed) == min(3, len(book))
    rest = [expected[case] for case in book.frequencies("p") if case not in replayed]
    assert all(expected[case] >= count for case in replayed for count in rest)


any_text = st.text(st.characters(), max_size=20) | st.text("\ud83d\ude00\udc00'\"\\\n\0\u2028", max_size=8)
any_case = st.builds(TestCase, any_text, any_text)


@settings(deadline=None)
@given(st.dictionaries(any_text, st.lists(any_case, min_size=1, max_size=6), max_size=4))
def test_any_text_survives_saving_and_loading(tmp_path_factory: pytest.TempPathFactory, failures: dict) -> None:
    book = MistakeBook()
    for problem_id, found in failures.items():
        book.record(problem_id, [], found)
    path = tmp_path_factory.mktemp("book") / "book.jsonl"
    book.save(path)
    assert MistakeBook.load(path) == book
    assert [MistakeBook.load(path).replay(name, 8) for name in failures] == [book.replay(name, 8) for name in failures]


# Stored as `repr(text)[1:-1]` and never unescaped, each of these broke every later rollout of its question.
POISON = [
    TestCase("""f('it\\'s "quoted"')""", """'both \\' and "'"""),
    TestCase("f('two\\nlines')", "'\\r\\n\\\\n'"),
    TestCase("f(float('nan'))", "float('nan')"),
    TestCase("f('''a\nb''')", '"""c\nd"""'),
]


@pytest.mark.parametrize("case", POISON)
def test_a_stored_test_with_quotes_newlines_or_nan_is_replayed_as_it_was_written(
    tmp_path: Path, case: TestCase
) -> None:
    book_of(case, A).save(tmp_path / "book.jsonl")
    replayed = MistakeBook.load(tmp_path / "book.jsonl").replay("p", 8)
    assert replayed == (case, A)
    reread = read_case(replayed[0], "f")
    assert reread.reason == ""
    assert reread == read_case(case, "f")
    assert reread.arguments is not None
    assert reread.value is not None


def test_a_stored_value_that_is_no_expression_is_one_rejected_test_and_spoils_no_other(tmp_path: Path) -> None:
    poison = TestCase("f(1)", "defaultdict(<class 'int'>, {1: 2})")
    book_of(poison, A).save(tmp_path / "book.jsonl")
    reasons = [read_case(case, "f").reason for case in MistakeBook.load(tmp_path / "book.jsonl").replay("p", 8)]
    assert reasons == ["syntax", ""]


def test_the_file_is_json_lines_under_a_header(tmp_path: Path) -> None:
    book_of(A, A, B).save(tmp_path / "book.jsonl")
    header, question = (tmp_path / "book.jsonl").read_text("ascii").splitlines()
    assert json.loads(header) == {"schema": 1, "kind": "mistake_book", "judge": VERSION}
    assert json.loads(question) == {"problem_id": "p", "tests": [["f(0)", "0", 2], ["f(1)", "1", 1]]}


def test_a_saved_book_replaces_the_old_file_and_leaves_no_other(tmp_path: Path) -> None:
    path = tmp_path / "book.jsonl"
    book_of(A).save(path)
    book_of(B).save(str(path))
    assert MistakeBook.load(path) == book_of(B)
    assert os.listdir(tmp_path) == ["book.jsonl"]


# Saves a book of some 100 kB where a file may have 8 kB: as a full disk does, or, with the signal's own action, as a
# power cut does, it ends the write in its middle.
SAVE_TOO_MUCH = """
import resource, signal, sys
from codea1_env.mistake_book.book import MistakeBook
from codea1_env.problems.problem import TestCase
book = MistakeBook()
book.record("p", [], [TestCase(f"f({i})", "'some value'") for i in range(5000)])
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))
if sys.argv[2] == "crash":
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
try:
    book.save(sys.argv[1])
except OSError as error:
    print(type(error).__name__)
"""


@pytest.mark.parametrize("how", ["full", "crash"])
def test_a_full_disk_or_a_crash_in_the_middle_of_a_write_leaves_the_old_file(tmp_path: Path, how: str) -> None:
    path = tmp_path / "book.jsonl"
    book_of(A).save(path)
    command = [sys.executable, "-c", SAVE_TOO_MUCH, str(path), how]
    root = Path(__file__).resolve().parent.parent
    found = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=60)
    if how == "full":
        assert (found.returncode, found.stdout.strip()) == (0, "OSError"), found.stderr
        assert os.listdir(tmp_path) == ["book.jsonl"]
    else:
        assert found.returncode < 0, found.stderr  # killed by the signal
        assert len(os.listdir(tmp_path)) == 2  # the write had begun
    assert MistakeBook.load(path) == book_of(A)
    book_of(B).save(path)
    assert MistakeBook.load(path) == book_of(B)


def test_a_directory_that_does_not_exist_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        book_of(A).save(tmp_path / "missing" / "book.jsonl")
    with pytest.raises(FileNotFoundError):
        MistakeBook.load(tmp_path / "missing.jsonl")


HEADER = '{"schema": 1, "kind": "mistake_book"}'
GOOD = '{"problem_id": "p", "tests": [["f(0)", "0", 2]]}'


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([], "line 1: the header must be .*, got 'an empty file'"),
        ([GOOD], "line 1: the header must be"),
        (['{"schema": 2, "kind": "mistake_book"}'], "line 1: the header must be"),
        (['{"schema": true, "kind": "mistake_book"}'], "line 1: the header must be"),
        ([HEADER, GOOD[:-5]], "line 2 must be JSON, got"),
        ([HEADER, ""], "line 2 must be JSON, got"),
        ([HEADER, "\udcff\udcfe\udcff"], "line 2 must be JSON, got"),
        ([HEADER, "[" * 100_000], "line 2 must be JSON, got"),
        ([HEADER, "[]"], "line 2: a question must be an object with exactly problem_id and tests"),
        ([HEADER, '{"problem_id": "p"}'], "line 2: a question must be an object with exactly"),
        ([HEADER, '{"problem_id": "p", "tests": [], "x": 1}'], "line 2: a question must be an object with exactly"),
        ([HEADER, '{"problem_id": 3, "tests": []}'], "line 2: problem_id must be a string"),
        ([HEADER, '{"problem_id": {"utf8": "zz"}, "tests": []}'], "line 2: problem_id must be a string"),
        ([HEADER, '{"problem_id": {"utf8": "ff"}, "tests": []}'], "line 2: problem_id must be a string"),
        ([HEADER, GOOD, GOOD], "line 3: problem_id must occur once in the file, got 'p'"),
        ([HEADER, '{"problem_id": "p", "tests": []}'], "line 2: tests must be a non-empty list"),
        ([HEADER, '{"problem_id": "p", "tests": {"f(0)": 1}}'], "line 2: tests must be a non-empty list"),
        ([HEADER, '{"problem_id": "p", "tests": ["abc"]}'], r"tests\[0\] must be \[call, expected, frequency\]"),
        ([HEADER, '{"problem_id": "p", "tests": [["a", "b"]]}'], r"tests\[0\] must be \[call, expected, frequency\]"),
        ([HEADER, '{"problem_id": "p", "tests": [[1, "b", 1]]}'], r"tests\[0\]\[0\] must be a string"),
        ([HEADER, '{"problem_id": "p", "tests": [["a", null, 1]]}'], r"tests\[0\]\[1\] must be a string"),
        (
            [HEADER, '{"problem_id": "p", "tests": [["a", "b", 0]]}'],
            r"tests\[0\]\[2\] must be an integer of at least 1",
        ),
        ([HEADER, '{"problem_id": "p", "tests": [["a", "b", true]]}'], r"tests\[0\]\[2\] must be an integer"),
        ([HEADER, '{"problem_id": "p", "tests": [["a", "b", 1.0]]}'], r"tests\[0\]\[2\] must be an integer"),
        ([HEADER, '{"problem_id": "p", "tests": [["a", "b", NaN]]}'], r"tests\[0\]\[2\] must be an integer"),
        ([HEADER, '{"problem_id": "p", "tests": [["a", "b", 1, 0]]}'], r"\[3\] must be a number in \(0, 1\]"),
        ([HEADER, '{"problem_id": "p", "tests": [["a", "b", 1, true]]}'], r"\[3\] must be a number in \(0, 1\]"),
        ([HEADER, '{"problem_id": "p", "tests": [["a", "b", 1]], "visits": -1}'], "visits must be an integer"),
        ([HEADER, '{"problem_id": "p", "tests": [["a", "b", 1]], "seed": 1}'], "a question must be an object"),
        (
            [HEADER, '{"problem_id": "p", "tests": [["a", "b", 1], ["a", "b", 2]]}'],
            r"tests\[1\] must occur once in its question",
        ),
    ],
)
def test_a_malformed_file_is_refused_with_its_line_and_what_it_must_be(
    tmp_path: Path, lines: list[str], message: str
) -> None:
    path = tmp_path / "book.jsonl"
    path.write_text("".join(line + "\n" for line in lines), "utf-8", "surrogateescape")  # also bytes that are no text
    with pytest.raises(BookFormatError, match=message):
        MistakeBook.load(path)


def test_a_question_is_named_by_a_text() -> None:
    with pytest.raises(ConfigurationError, match="problem_id must be a string, got 5"):
        MistakeBook().record(5, (), [TestCase("f(1)", "1")])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "must"),
    [
        (((), None), "failures must be a list of TestCase objects, got None"),
        (("f(1)", ()), r"passes must be a list of TestCase objects, got 'f\(1\)'"),
        (((), ["assert f(1) == 1"]), r"failures must be a list of TestCase objects, got \('assert f\(1\) == 1',\)"),
        (((), [("f(1)", "1")]), "failures must be a list of TestCase objects"),
    ],
)
def test_a_visit_of_anything_but_tests_is_refused_and_changes_nothing(given: tuple[Any, Any], must: str) -> None:
    book = MistakeBook()
    with pytest.raises(ConfigurationError, match=must):
        book.record("p", *given)
    with pytest.raises(ConfigurationError, match="rated must be a list of RatedTest objects"):
        book.record("p", (), (), rated=[TestCase("f(1)", "1")])  # type: ignore[list-item]
    assert (len(book), book) == (0, MistakeBook())
