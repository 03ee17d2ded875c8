"""What a Mistake Book may keep and replay instead of the released rule: every option by hand, state exact on disk."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from codea1_env.arena.arena import Arena
from codea1_env.arena.match import Match
from codea1_env.errors import BookFormatError, ConfigurationError
from codea1_env.judging.version import VERSION
from codea1_env.mistake_book.book import MistakeBook
from codea1_env.mistake_book.policies import BookConfig, RatedTest
from codea1_env.problems.problem import Problem
from codea1_env.reading.test_case import TestCase
from codea1_env.records.score_stream import ScoringPlan, numbered_lines, score_numbered
from codea1_env.sandbox import LocalSandbox

A, B, C, D = (TestCase(f"f({i})", str(i)) for i in range(4))
SKILL_BOOK = BookConfig(capacity=1000, retire=False, admission=0.3, replay="sampled")  # of the public write-up


def book_of(config: BookConfig, *failures: TestCase) -> MistakeBook:
    book = MistakeBook(config)
    book.record("p", [], failures)
    return book


def rated(**qualities: float) -> list[RatedTest]:
    return [RatedTest({"a": A, "b": B, "c": C, "d": D}[name], quality) for name, quality in qualities.items()]


# One option each


def test_a_full_question_drops_what_entered_first() -> None:
    book = book_of(BookConfig(capacity=2), A, A, A, B)
    book.record("p", [], [C])
    assert book.frequencies("p") == {B: 1, C: 1}
    book.record("q", [], [A])  # another question's room is its own
    assert len(book) == 3


def test_or_the_least_frequent_and_of_several_the_one_that_entered_first() -> None:
    book = book_of(BookConfig(capacity=2, eviction="least_frequent"), A, A, A, B)
    book.record("p", [], [C])  # B and C have 1 each
    assert book.frequencies("p") == {A: 3, C: 1}
    book.record("p", [], [C, C, B])  # C has 3, the new B 1: it goes at once
    assert book.frequencies("p") == {A: 3, C: 3}


def test_a_replayed_test_that_fails_increments_where_asked_and_after_the_passes() -> None:
    for counts, expected in ((False, {A: 1}), (True, {A: 4, B: 1})):
        book = book_of(BookConfig(failed_replays=counts), A, A)
        book.record("p", [A], [B] if counts else [], failed_replays=[A, A, A, C])
        assert book.frequencies("p") == expected
    gone = book_of(BookConfig(failed_replays=True), A)
    gone.record("p", [A], [], failed_replays=[A])  # eight solutions, one passes: the test has left before
    assert gone.frequencies("p") == {}


def test_without_retirement_passes_never_remove_a_test() -> None:
    book = book_of(BookConfig(retire=False), A, A, B)
    book.record("p", [A] * 8 + [B], [])
    assert book.frequencies("p") == {A: 1, B: 1}


def test_ageing_multiplies_at_every_visit_and_forgets_below_a_half() -> None:
    book = book_of(BookConfig(decay=0.5), A, A, A, A, B, B)
    book.record("p", [], [])
    assert book.frequencies("p") == {A: 2.0, B: 1.0}
    book.record("p", [], [C])
    assert book.frequencies("p") == {A: 1.0, B: 0.5, C: 1}  # age first: the new one is whole
    book.record("p", [], [])
    assert book.frequencies("p") == {A: 0.5, C: 0.5}
    book.record("q", [], [A])  # another question's visit does not age this one
    assert book.frequencies("p") == {A: 0.5, C: 0.5}
    book.record("p", [], [])
    assert book.questions() == ("q",)


def test_ageing_leaves_what_does_not_retire_to_age_alone() -> None:
    book = book_of(BookConfig(decay=0.75, retire=False), A)
    book.record("p", [A, A], [])
    assert book.frequencies("p") == {A: 0.75}


def test_admission_is_by_quality_above_the_threshold_and_not_by_failure() -> None:
    book = MistakeBook(BookConfig(admission=0.6))
    book.record("p", [], [D], rated=rated(a=1.0, b=0.6, c=0.61))
    assert book.frequencies("p") == {A: 1, C: 1}
    book.record("p", [], [], rated=rated(a=0.7))
    assert book.frequencies("p") == {A: 2, C: 1}
    assert MistakeBook(BookConfig(admission=0.6)).config.rates
    assert not MistakeBook().config.rates


def test_the_best_are_replayed_first_and_equals_in_order_of_insertion() -> None:
    book = MistakeBook(BookConfig(admission=0.0, replay="best"))
    book.record("p", [], [], rated=rated(a=0.6, b=1.0, c=0.6, d=1.0))
    assert book.replay("p", 9) == (B, D, A, C)
    book.record("p", [], [], rated=rated(a=1.0))  # a new opinion takes the place of the old
    assert book.replay("p", 3) == (A, B, D)
    assert book.replay("p", 0) == book.replay("p", -1) == ()


def test_draws_are_in_proportion_to_quality() -> None:
    counts: Counter[TestCase] = Counter()
    for seed in range(4000):
        book = MistakeBook(BookConfig(admission=0.0, replay="sampled", seed=seed))
        book.record("p", [], [], rated=rated(a=0.1, b=0.3, c=0.6))
        counts.update(book.replay("p", 1))
    # Four standard deviations of 4000 draws are at most 0.031.
    assert [counts[case] / 4000 for case in (A, B, C)] == pytest.approx([0.1, 0.3, 0.6], abs=0.032)


def test_a_draw_holds_no_test_twice_and_stays_until_the_next_visit() -> None:
    book = MistakeBook(BookConfig(replay="sampled"))
    tests = [TestCase(f"f({i})", "0") for i in range(30)]
    book.record("p", [], tests)
    first = book.replay("p", 8)
    assert len(set(first)) == 8
    assert book.replay("p", 8) == first
    assert set(book.replay("p", 99)) == set(tests)
    book.record("p", [], [])
    assert book.replay("p", 8) != first
    assert first != tuple(tests[:8])


def test_a_draw_depends_on_the_seed_and_the_question_and_on_nothing_else() -> None:
    def drawn(seed: int, problem_id: str) -> tuple[TestCase, ...]:
        book = MistakeBook(BookConfig(replay="sampled", seed=seed))
        book.record("other", [], [A])
        book.record(problem_id, [], [TestCase(f"f({i})", "0") for i in range(30)])
        return book.replay(problem_id, 4)

    assert drawn(0, "p") == drawn(0, "p")
    assert len({drawn(0, "p"), drawn(1, "p"), drawn(0, "q"), drawn(0, "\ud800")}) == 4


def test_the_skill_book() -> None:
    book = MistakeBook(SKILL_BOOK)
    book.record("p", [A] * 9, [], rated=rated(a=0.3, b=0.31))
    book.record("p", [B] * 9, [], rated=[])
    assert book.frequencies("p") == {B: 1}
    book.record("p", [], [], rated=[RatedTest(TestCase("f(0)", str(i)), 0.6) for i in range(1000)])
    assert (len(book), B in book.frequencies("p")) == (1000, False)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("capacity", -1), ("capacity", True), ("capacity", 2.0), ("eviction", "random"), ("failed_replays", 1),
        ("retire", "no"), ("decay", 0), ("decay", 1.01), ("decay", float("nan")), ("decay", True), ("admission", 1.0),
        ("admission", -0.1), ("admission", "0.3"), ("replay", "all"), ("replay", ["best"]), ("seed", -1),
    ],
)  # fmt: skip
def test_every_field_is_validated_by_name(name: str, value: object) -> None:
    with pytest.raises(ConfigurationError, match=f"{name} must be .*, got"):
        BookConfig(**{name: value})  # type: ignore[arg-type]


# State


any_config = st.builds(
    BookConfig,
    capacity=st.integers(0, 4),
    eviction=st.sampled_from(["fifo", "least_frequent"]),
    failed_replays=st.booleans(),
    retire=st.booleans(),
    decay=st.sampled_from([1.0, 0.9, 0.3]),
    admission=st.sampled_from([None, 0.0, 0.5]),
    replay=st.sampled_from(["frequent", "sampled", "best"]),
    seed=st.integers(0, 3),
)
cases = st.sampled_from([TestCase(f"f({i})", "\ud83d") for i in range(6)])
many = st.lists(cases, max_size=6)
visits = st.lists(
    st.tuples(
        st.sampled_from("pq"), many, many, many, st.lists(st.builds(RatedTest, cases, st.floats(0, 1)), max_size=6)
    ),
    max_size=8,
)


@settings(deadline=None, max_examples=60)
@given(any_config, visits, visits)
def test_a_saved_book_goes_on_exactly(
    tmp_path_factory: pytest.TempPathFactory, config: BookConfig, before: list, after: list
) -> None:
    path = tmp_path_factory.mktemp("book") / "book.jsonl"

    def visit(book: MistakeBook, history: list) -> None:
        for problem_id, passes, failures, failed, found in history:
            book.record(problem_id, passes, failures, failed_replays=failed, rated=found)

    book = MistakeBook(config)
    visit(book, before)
    book.save(path)
    loaded, copied = MistakeBook.load(path, config), book.copy()
    assert loaded == copied == book
    for other in (loaded, copied):
        visit(other, after)
    visit(book, after)
    assert loaded == copied == book
    for name in "pq":
        assert loaded.replay(name, 3) == book.replay(name, 3)
        assert config.capacity == 0 or len(book.frequencies(name)) <= config.capacity


def test_an_old_book_loads_under_every_rule_and_a_default_book_is_written_as_before(tmp_path: Path) -> None:
    path = tmp_path / "book.jsonl"
    text = '{"schema": 1, "kind": "mistake_book"}\n{"problem_id": "p", "tests": [["f(0)", "0", 2], ["f(1)", "1", 1]]}\n'
    path.write_text(text)
    for config in (SKILL_BOOK, BookConfig(decay=0.5), BookConfig(capacity=1)):
        assert MistakeBook.load(path, config).frequencies("p") == {A: 2, B: 1}
    assert set(MistakeBook.load(path, SKILL_BOOK).replay("p", 8)) == {A, B}
    with pytest.raises(ConfigurationError, match=r"config must be a codea1_env.BookConfig"):
        MistakeBook({"capacity": 3})  # type: ignore[arg-type]
    book = MistakeBook()
    book.record("p", [], [A, A, B], failed_replays=[A], rated=rated(a=0.5))
    book.save(path)
    assert path.read_text() == text.replace("}", f', "judge": {VERSION}}}', 1)


def test_books_of_different_rules_are_not_equal() -> None:
    assert book_of(BookConfig(), A) != book_of(BookConfig(capacity=9), A)
    one, other = MistakeBook(SKILL_BOOK), MistakeBook(SKILL_BOOK)
    one.record("p", [], [], rated=rated(a=0.6))
    other.record("p", [], [], rated=rated(a=1.0))
    assert one != other


def test_an_endless_number_is_refused_in_a_book_that_ages(tmp_path: Path) -> None:
    path = tmp_path / "book.jsonl"
    path.write_text('{"schema": 1, "kind": "mistake_book"}\n{"problem_id": "p", "tests": [["a", "b", Infinity]]}\n')
    with pytest.raises(BookFormatError, match=r"tests\[0\]\[2\] must be a number above 0"):
        MistakeBook.load(path, BookConfig(decay=0.5))


# Through the arena


PROBLEM = Problem("double", "Twice x.", "double", reference_solution="def double(x):\n    return 2 * x\n")
SQUARE = "def double(x):\n    return x * x\n"


def test_the_arena_reports_what_the_book_asks_for(sandbox: LocalSandbox) -> None:
    match = Match(PROBLEM, (SQUARE,), (("assert double(2) == 4\nassert double(3) == 1\nassert double(4, 5) == 1\n",),))
    two, three = TestCase("double(2)", "4"), TestCase("double(3)", "6")
    plain, counting, rating = (
        Arena(sandbox, book=MistakeBook(config))
        for config in (BookConfig(), BookConfig(failed_replays=True), BookConfig(admission=0.5, replay="best"))
    )
    for arena in (plain, counting, rating):
        arena.play([match])
        arena.play([match])
    assert plain.book.frequencies("double") == {three: 2}
    assert counting.book.frequencies("double") == {three: 3}
    # Passed: 0.6, failed: 1. The first visit admits both; at the second the replay of 2 passes and it comes again.
    assert rating.book.frequencies("double") == {three: 2, two: 1}
    assert rating.book.replay("double", 8) == (three, two)


def test_recorded_matches_follow_the_rule_of_the_book() -> None:
    line = json.dumps({
        "problem_id": "double", "question": "Twice x.", "entry_point": "double",
        "reference_solution": PROBLEM.reference_solution, "codes": [SQUARE],
        "suites": [["assert double(2) == 4\nassert double(3) == 6\n"]],
    }).encode()  # fmt: skip
    book = MistakeBook(BookConfig(admission=0.7, failed_replays=True))
    first, second = score_numbered(numbered_lines([line, line]), ScoringPlan(), book)
    assert b'"verdict":"fail"' in second.output
    assert first.output != second.output
    assert book.frequencies("double") == {TestCase("double(3)", "6"): 3}
