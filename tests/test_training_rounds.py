"""What a round is: the schedule of questions, the selection of attacked programs, the rewards of both seats."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codea1_env.arena.arena import Arena
from codea1_env.errors import ConfigurationError
from codea1_env.mistake_book.book import MistakeBook
from codea1_env.problems.problem import Problem
from codea1_env.reading.test_case import TestCase
from codea1_env.rewards.code_a1 import RewardConfig
from codea1_env.sandbox import open_sandbox
from codea1_env.training.config.arguments import Arguments
from codea1_env.training.config.options import Options
from codea1_env.training.config.presets import SMOKE
from codea1_env.training.round.exchange import Exchange, ExchangeClosed
from codea1_env.training.round.rounds import (
    SelectedSuite,
    attacks_of,
    golden_rewards,
    in_places,
    put_to_tester,
    schedule,
    score_round,
    scored_round,
)
from codea1_env.training.round.rules import RoundRules, select_attacked

DOUBLE = Problem(
    "double",
    "double(x): return twice x.",
    "double",
    reference_solution="def double(x):\n    return 2 * x\n",
    golden_tests=(TestCase("double(2)", "4"), TestCase("double(3)", "6")),
)
RIGHT = "def double(x):\n    return 2 * x"
SQUARE = "def double(x):\n    return x * x"
BROKEN = "def double(x:\n    return"


@pytest.fixture
def arena() -> Iterator[Arena]:
    with open_sandbox() as sandbox:
        yield Arena(sandbox, RewardConfig(suite_size=2))


def test_a_round_without_a_program_that_fits_says_which_limit_to_raise(arena: Arena) -> None:
    attacks = attacks_of([DOUBLE] * 2, [RIGHT, SQUARE])
    with pytest.raises(
        ConfigurationError, match=r"round 3 must have a program that fits .* raise round.tester_prompt_t"
    ):
        scored_round(
            arena, attacks, [[None, None], [None, None]], SMOKE.round, lambda *_: None,
            round_index=2, rules=RoundRules(Options().selection),
        )  # fmt: skip


@given(st.integers(1, 30), st.integers(1, 40), st.integers(1, 30), st.integers(0, 1000))
def test_a_schedule_asks_every_problem_once_before_any_twice(
    problems: int, rounds: int, questions: int, seed: int
) -> None:
    questions = min(questions, problems)
    asked = schedule(problems, rounds, questions, seed)
    assert len(asked) == rounds * questions
    counts = [asked.count(problem) for problem in range(problems)]
    assert max(counts) - min(counts) <= 1
    for start in range(0, len(asked), questions):
        assert len(set(asked[start : start + questions])) == questions, "no problem twice in a round"
    assert schedule(problems, rounds + 5, questions, seed)[: len(asked)] == asked, "a longer run begins the same"


def test_a_schedule_of_whole_passes_asks_all_problems_equally_often() -> None:
    asked = schedule(problems=12, rounds=9, questions=4, seed=1)
    assert sorted(asked[:12]) == sorted(asked[12:24]) == sorted(asked[24:]) == list(range(12))
    assert asked[:12] != asked[12:24]


@pytest.mark.parametrize(
    ("rewards", "count", "selected"),
    [
        ([[0.5, 0.5], [0.0, 1.0], [0.2, 0.4]], 1, [1]),
        ([[0.5, 0.5], [0.0, 1.0], [0.2, 0.4]], 2, [1, 2]),
        ([[0.1, 0.3], [0.3, 0.1]], 1, [0]),  # a tie: the earlier one
        ([[0.5, 0.5], [0.5, 0.5]], 1, [0]),
        ([[0.0, None], [0.5, 0.5]], 1, [1]),  # no score, no selection, while there is another
        ([[0.0, None], [None, None]], 1, [0]),
    ],
)
def test_the_programs_whose_suites_spread_most_are_selected(
    rewards: list[list[float | None]], count: int, selected: list[int]
) -> None:
    assert select_attacked(rewards, count) == selected


def test_a_round_pays_both_seats_and_trains_the_tester_on_the_widest_spread(arena: Arena) -> None:
    """By hand, K = 2, alpha = 1/2. Suite A holds two valid tests, one of which SQUARE fails; suite B none at all.

    RIGHT: A has R_val 1, f_new 0, so R_T 1/2; B has 0. SQUARE: A has R_val 1, f_new 1/2, so R_T 3/4; B has 0.
    The spread is larger for SQUARE. Coder: RIGHT passes 2 of 2 of A and B counts 0, mean 1/2; SQUARE (1/2 + 0) / 2.
    """
    suite_a = "assert double(2) == 4\nassert double(3) == 6"
    suite_b = "nothing to see"
    attacks = attacks_of([DOUBLE, DOUBLE], [f"Here:\n```python\n{RIGHT}\n```", SQUARE])
    assert attacks[0].program.strip() == RIGHT
    score = score_round(arena, attacks, [[suite_a, suite_b]] * 2, programs=2, attacked=1)
    assert score.coder == pytest.approx([0.5, 0.25])
    assert [(row.attack, row.suite) for row in score.tester] == [(1, 0), (1, 1)]
    assert [row.reward for row in score.tester] == pytest.approx([0.75, 0.0])
    assert score.metrics["valid_tests"] == pytest.approx(4 / 8)
    assert score.metrics["killing_tests"] == pytest.approx(1 / 8)
    assert score.metrics["book"] == len(arena.book) == 1


def test_the_book_is_replayed_in_the_next_round(arena: Arena) -> None:
    attacks = attacks_of([DOUBLE, DOUBLE], [SQUARE, RIGHT])
    suites = [["assert double(3) == 6", ""]] * 2
    first = score_round(arena, attacks, suites, programs=2, attacked=1)
    second = score_round(arena, attacks, suites, programs=2, attacked=1)
    assert first.metrics["replayed"] == 0
    assert second.metrics["replayed"] == 1
    assert second.metrics["replays_failed"] == pytest.approx(1 / 2)


def test_a_round_says_which_suites_could_not_be_read_and_why(arena: Arena) -> None:
    """Four suites: one with a test beside prose, one of prose, one of a function and prose, one rejected."""
    suites = [
        ["These two:\n```python\nassert double(2) == 4\n```", "Try 2, which is 4."],
        ["It is this one.\n\ndef test_it():\n    assert double(2) == 4\n", "assert len(double) > 1"],
    ]
    metrics = score_round(arena, attacks_of([DOUBLE] * 2, [RIGHT, SQUARE]), suites, programs=2, attacked=1).metrics
    assert {name: value for name, value in metrics.items() if name.startswith("unreadable")} == {
        "unreadable": 3 / 4,
        "unreadable_text": 2 / 4,
        "unreadable_function": 1 / 4,
        "unreadable_wrapped_call": 1 / 4,
    }


@pytest.mark.parametrize(("share", "is_said"), [(0.75, True), (0.5, False)])
def test_a_run_whose_suites_are_mostly_unreadable_says_so_with_the_reasons(
    share: float, is_said: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from codea1_env.training.run.journal import Journal
    from codea1_env.training.run.run_dir import Run

    reasons = {"unreadable_function": share / 3, "unreadable_text": share}
    with Run(Arguments(SMOKE, tmp_path / "run", 0, False, "local"), seats=("coder", "tester")) as run:
        journal = Journal(run)
        for rounds_done in (1, 2):
            journal.write("round", rounds_done, {"coder_reward": 0.0, "unreadable": share, **reasons})
        journal.close()
    said = capsys.readouterr()
    shown = "round 1: 75% of the tester's suites hold no test that can be read and earn nothing; what they hold is text"
    assert (said.out + said.err).count(shown + " (75%), function (25%)") == is_said, "once, the commonest reason first"
    assert ("unreadable=0.75" in said.err) == is_said


@pytest.mark.parametrize(("shares", "is_shown"), [((0.0, 0.25), True), ((0.25, 0.0), False)])
def test_what_may_be_earned_without_its_purpose_is_shown_while_there_is_any(
    shares: tuple[float, float], is_shown: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from codea1_env.training.run.journal import Journal
    from codea1_env.training.run.run_dir import Run

    with Run(Arguments(SMOKE, tmp_path / "run", 0, False, "local"), seats=("coder", "tester")) as run:
        journal = Journal(run)
        for rounds_done, share in enumerate(shares, 1):
            journal.write("round", rounds_done, {"vacuous_tests": share, "constant_programs": 0.0})
        journal.close()
    last = capsys.readouterr().err.rpartition("rounds:")[2]
    assert ("vacuous=0.25" in last) == is_shown
    assert "constant" not in last


def test_a_run_of_one_round_shows_the_tokens_a_second_of_both_seats(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from codea1_env.training.run.journal import Journal
    from codea1_env.training.run.run_dir import Run

    with Run(Arguments(SMOKE, tmp_path / "run", 0, False, "local"), seats=("coder", "tester")) as run:
        journal = Journal(run)
        journal.doing("evaluating")
        journal.write("round", 1, {"coder_reward": 0.0})
        for seat, speed in (("coder", 123.4), ("tester", 45.6)):
            journal.write("seat", 1, {"tokens_per_second": speed}, seat)
        journal.close()
    said = capsys.readouterr().err
    assert f"rounds (evaluating):   0%|          | 0/{SMOKE.rounds}" in said
    assert "R_C=0.00, coder tokens/s=123, tester tokens/s=46" in said


def test_selected_rows_come_in_groups_question_by_question(arena: Arena) -> None:
    attacks = attacks_of([DOUBLE] * 2 + [DOUBLE] * 2, [BROKEN, SQUARE, SQUARE, BROKEN])
    suites = [["assert double(3) == 6", ""]] * 4
    score = score_round(arena, attacks, suites, programs=2, attacked=1)
    assert [(row.attack, row.suite) for row in score.tester] == [(1, 0), (1, 1), (2, 0), (2, 1)]
    assert all(isinstance(row, SelectedSuite) and row.reward is not None for row in score.tester)


def test_the_golden_baseline_pays_the_share_of_golden_tests_passed(arena: Arena) -> None:
    logged: list[tuple[int, dict[str, float]]] = []
    score = golden_rewards(arena, lambda index, values: logged.append((index, dict(values))))
    assert score(4, [DOUBLE] * 3, [RIGHT, SQUARE, BROKEN]) == [1.0, 0.5, 0.0]
    assert logged[0][0] == 4
    assert logged[0][1]["coder_reward"] == pytest.approx(0.5)
    assert logged[0][1]["executes"] == pytest.approx(2 / 3)


PROGRAMS = [0.2, 0.9, None, 0.9]
LOADS = [False, True, True, True]
SUITES = [[0.0, 1.0], [0.5, 0.5], [None, 0.5], [0.4, 0.6]]


def test_the_hardest_programs_are_those_that_earn_most() -> None:
    """0.9 twice, the earlier first; one without a score last of all."""
    rules = RoundRules(Options(selection="hardest"))
    chosen = [rules.select(0, "q", PROGRAMS, LOADS, SUITES, count) for count in range(1, 5)]
    assert chosen == [[1], [1, 3], [0, 1, 3], [0, 1, 2, 3]]


def test_the_first_programs_are_those_that_load() -> None:
    """The first does not load, the third has no score."""
    rules = RoundRules(Options(selection="first"))
    chosen = [rules.select(0, "q", PROGRAMS, LOADS, SUITES, count) for count in range(1, 5)]
    assert chosen == [[1], [1, 3], [0, 1, 3], [0, 1, 2, 3]]
    assert rules.select(0, "q", PROGRAMS, [True] * 4, SUITES, 1) == [0]


def test_a_random_selection_repeats_with_its_seed_and_changes_with_round_and_question() -> None:
    rules = RoundRules(Options(selection="random"), seed=3)
    drawn = [rules.select(index, "q", PROGRAMS, LOADS, SUITES, 1) for index in range(60)]
    same, other = (RoundRules(Options(selection="random"), seed) for seed in (3, 4))
    assert drawn == [same.select(index, "q", PROGRAMS, LOADS, SUITES, 1) for index in range(60)]
    assert {tuple(chosen) for chosen in drawn} == {(0,), (1,), (3,)}, "never one without a score, all the others"
    assert drawn != [rules.select(index, "p", PROGRAMS, LOADS, SUITES, 1) for index in range(60)]
    assert drawn != [other.select(index, "q", PROGRAMS, LOADS, SUITES, 1) for index in range(60)]


def test_all_programs_and_the_widest_spread_are_selected_as_asked() -> None:
    assert RoundRules(Options(selection="all")).select(0, "q", PROGRAMS, LOADS, SUITES, 4) == [0, 1, 2, 3]
    assert RoundRules().select(0, "q", PROGRAMS, LOADS, SUITES, 2) == [0, 3]


def test_tests_are_paid_one_by_one_and_stand_where_they_are_written(arena: Arena) -> None:
    """K = 2, alpha 1/2, against SQUARE: double(2) valid, passed: 1/2; double(3) valid, failed: 1; rejected: 0."""
    response = "```python\nassert double(2) == 4\nassert double(3) == 6\n```\nThese two."
    rules = RoundRules(credit="test")
    attacks = attacks_of([DOUBLE], [SQUARE])
    score = score_round(arena, attacks, [[response, "assert nothing"]], programs=1, attacked=1, rules=rules)
    first, second = (row.label for row in score.tester)
    assert [response[start:end] for start, end in first.spans] == ["assert double(2) == 4", "assert double(3) == 6"]
    assert first.test_rewards == pytest.approx((0.5, 1.0))
    assert second.test_rewards == (0.0,)
    plain = score_round(arena, attacks, [[response, "assert nothing"]], programs=1, attacked=1)
    assert [row.label.spans for row in plain.tester] == [(), ()]


def test_early_rounds_pay_the_tester_for_validity_first(arena: Arena) -> None:
    """Suite A of the test above against SQUARE: R_val 1, f_new 1/2. alpha 1: R_T 1; alpha 3/4: 7/8; alpha 1/2: 3/4."""
    rules = RoundRules(Options(validity_first_rounds=2))
    attacks = attacks_of([DOUBLE, DOUBLE], [SQUARE, BROKEN])
    suites = [["assert double(2) == 4\nassert double(3) == 6", ""]] * 2
    found = []
    for index in range(3):
        arena.book = MistakeBook()
        score = score_round(arena, attacks, suites, programs=2, attacked=1, rules=rules, round_index=index)
        assert score.tester[0].attack == 0
        found.append(score.tester[0].reward)
    assert found == pytest.approx([1, 7 / 8, 3 / 4])


def test_a_seat_whose_peer_never_comes_gives_up(arena: Arena) -> None:
    meeting = Exchange(arena, SMOKE.round, lambda index, metrics: None, patience_s=0.05)
    with pytest.raises(ExchangeClosed, match=r"the other seat must come to round 1 within 0.05 s, got nothing"):
        meeting.take_attacks(0)


def test_a_program_that_could_not_be_put_to_the_tester_has_no_score_and_neither_have_its_suites(arena: Arena) -> None:
    """By hand: K = 2. SQUARE passes the test at 2 and fails that at 3; RIGHT was not attacked."""
    attacks = attacks_of([DOUBLE, DOUBLE], [RIGHT, SQUARE])
    suites = [[None, None], ["assert double(2) == 4\nassert double(3) == 6"] * 2]
    score = score_round(arena, attacks, suites, programs=2, attacked=2)
    assert score.coder == [None, pytest.approx(0.5)]
    assert [row.reward for row in score.tester] == [None, None, pytest.approx(0.75), pytest.approx(0.75)]
    assert score.metrics["not_attacked"] == 1
    assert score.metrics["unscored"] == 0
    assert score.metrics["coder_reward"] == pytest.approx(0.5), "the mean over what was attacked"
    (first,) = {row.attack for row in score_round(arena, attacks, suites, programs=2, attacked=1).tester}
    assert first == 1, "what has no score is selected last"
    nothing = score_round(arena, attacks, [[None, None]] * 2, programs=2, attacked=1)
    assert nothing.coder == [None, None]
    assert [row.reward for row in nothing.tester] == [None, None]


def test_a_program_without_suites_of_its_own_is_paid_by_its_questions(arena: Arena) -> None:
    """By hand: K = 2. SQUARE passes the test at 2 and fails that at 3. The first program alone was put to the tester,
    and in the second call its prompt was too long."""
    arena.config = RewardConfig(suite_size=2, coder_tests="union")
    rules = RoundRules(Options(selection="ahead"))
    attacks = attacks_of([DOUBLE, DOUBLE, DOUBLE], [RIGHT, SQUARE, BROKEN])
    suites = [["assert double(2) == 4\nassert double(3) == 6"] * 2, [], []]
    score = score_round(arena, attacks, suites, programs=3, attacked=1, rules=rules)
    assert score.coder == [1, pytest.approx(0.5), 0]
    assert [row.attack for row in score.tester] == [0, 0]
    assert score.metrics["not_attacked"] == 0
    assert score.metrics["coder_reward"] == pytest.approx(0.5), "the mean over all that were paid"
    nothing = score_round(arena, attacks, [[None, None], [], []], programs=3, attacked=1, rules=rules)
    assert nothing.coder == [None, None, None], "nothing was written that could pay them"
    assert [row.reward for row in nothing.tester] == [None, None]


def test_the_first_different_programs_are_put_to_the_tester_and_stand_in_their_places() -> None:
    rules = RoundRules(Options(selection="ahead"))
    assert rules.put_to_tester(["a", "a", "", "b", "c"], 2) == [0, 3]
    assert rules.put_to_tester(["a(", "", "b(", "a"], 2) == [0, 3], "what cannot be parsed fills up"
    assert rules.put_to_tester(["a(", "a", "a"], 2) == [1, 2], "equal ones come before what cannot be parsed"
    assert RoundRules().put_to_tester(["a", "a"], 1) == [0, 1]
    attacks = attacks_of([DOUBLE] * 4, [RIGHT, RIGHT, SQUARE, RIGHT])
    assert put_to_tester(attacks, 2, 1, rules) == [0, 2]
    assert in_places([[1], [2], [3]], [0, 2], 4) == [[1], [], [2], [], [3]]


def test_the_error_of_an_oracle_without_a_reference_is_logged(arena: Arena) -> None:
    """Two of three programs are wrong alike: their vote on double(3) is 9, and the reference says 6."""
    arena.config = RewardConfig(suite_size=2, oracle="majority")
    attacks = attacks_of([DOUBLE] * 3, [SQUARE, SQUARE, RIGHT])
    score = score_round(arena, attacks, [["assert double(3) == 9"]] * 3, programs=3, attacked=1)
    assert score.metrics["oracle_error"] == 1
    assert score.coder == [1, 1, 0]
