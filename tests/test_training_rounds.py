"""What a round is: which questions, which attacked programs, which rewards, which of the past. No run is played."""

import dataclasses
import json
import math
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from codea1_env import Arena, ConfigurationError, LocalSandbox, MistakeBook, Problem, RewardConfig, TestCase
from codea1_env.configuration.algorithm import Algorithm
from codea1_env.configuration.arguments import RecipeArguments
from codea1_env.configuration.options import Options
from codea1_env.configuration.presets import SMOKE, preset_from_dict
from codea1_env.records.duel_sample import DuelSample
from codea1_env.records.recording import read_recording
from codea1_env.training.round import rounds as scoring
from codea1_env.training.round.past_opponents import RECORDS, PastOpponents
from codea1_env.training.round.questions import Chooser, PassRate, chooser_of, chosen, schedule
from codea1_env.training.round.rounds import PastPlay, Round, Score
from codea1_env.training.round.rules import RoundRules, select_attacked
from codea1_env.training.run.journal import RunJournal
from codea1_env.training.run.run_dir import Run
from codea1_env.training.samples import Sample, SeatRun

GOLDEN = (TestCase("double(2)", "4"), TestCase("double(3)", "6"))
DOUBLE = Problem("double", "Twice x.", "double", "def double(x):\n    return 2 * x\n", golden_tests=GOLDEN)
RIGHT = "def double(x):\n    return 2 * x"
SQUARE = "def double(x):\n    return x * x"
BROKEN = "def double(x:\n    return"
EDGE = "assert double(3) == 6"
"""Valid; SQUARE fails it."""
BLIND = "assert double(2) == 4"
"""Valid; SQUARE passes it."""
BOTH = f"{BLIND}\n{EDGE}"


@pytest.fixture
def arena(sandbox: LocalSandbox) -> Arena:
    return Arena(sandbox, RewardConfig(suite_size=2))


def said(texts: Sequence[str | None]) -> list[Sample]:
    return [Sample((0,), (0,), text) for text in texts]


def written(arena: Arena, answers: Sequence[str], questions: int = 1) -> list[Any]:
    """The coder's answers to `questions` questions that ask the same."""
    asked, size = [dataclasses.replace(DOUBLE, problem_id=f"double {q}") for q in range(questions)], len(answers)
    groups = [said(answers[q * size // questions : (q + 1) * size // questions]) for q in range(questions)]
    return scoring.read_programs(arena, asked, groups)


def shaped(**values: int) -> Any:
    return dataclasses.replace(SMOKE.round, **{"questions": 1, "programs": 2, "suites": 2, "attacked": 1} | values)


def score_round(arena: Arena, answers: Any, suites: Any, *, questions: int = 1, play: Any = None, **how: Any) -> Score:
    """`suites`: against each answer, in order. `how`: of a Round, and how many of its programs are attacked."""
    shape = shaped(questions=questions, programs=len(answers) // questions, attacked=how.pop("attacked", 1))
    rows, programs = [said(row) for row in suites], written(arena, answers, questions)
    return Round(how.pop("index", 0), shape, programs, [rows], **how).score(arena, play)


def earned(score: Score) -> list[float | None]:
    """By the coder."""
    return [row.reward for row in score.batches[0]]


def learnt(score: Score) -> list[tuple[int, float | None]]:
    """By the tester: the place of the program, and what the suite earned."""
    return [(int(row.label.group.removeprefix("tester ")), row.reward) for row in score.batches[1]]


def test_a_round_without_a_program_that_fits_says_which_limit_to_raise(arena: Arena) -> None:
    must = r"round 3 must have a program that fits .* raise round.tester_prompt_t"
    for other in ([None, None], []):
        with pytest.raises(ConfigurationError, match=must):
            score_round(arena, [RIGHT, SQUARE], [[None, None], other], index=2)


@given(st.integers(1, 30), st.integers(1, 40), st.integers(1, 30), st.integers(0, 1000))
def test_a_schedule_asks_every_problem_once_before_twice(problems: int, rounds: int, questions: int, seed: int) -> None:
    questions = min(questions, problems)
    asked = schedule(problems, rounds, questions, seed)
    assert len(asked) == rounds * questions
    counts = [asked.count(problem) for problem in range(problems)]
    assert max(counts) - min(counts) <= 1
    for start in range(0, len(asked), questions):
        assert len(set(asked[start : start + questions])) == questions, "no problem twice in a round"
    assert schedule(problems, rounds + 5, questions, seed)[: len(asked)] == asked, "a longer run begins the same"
    passes = schedule(problems=12, rounds=9, questions=4, seed=1)
    assert passes[:12] != passes[12:24], "every pass has an order of its own"


NUMBERED = [dataclasses.replace(DOUBLE, problem_id=str(number)) for number in range(40)]


@pytest.mark.parametrize("places", [[0], [0, 0], [0, 3], [0, -1], [0, 1, 1], [0, 1.0], [0, True], None, "01"])
def test_a_chooser_chooses_as_many_different_problems_as_a_round_asks(places: object) -> None:
    own = type("Own", (Chooser,), {"choose": lambda self, index, count: places if index else [2, 0]})(NUMBERED[:3], 0)
    assert chosen(own, 0, 2) == [NUMBERED[2], NUMBERED[0]]
    with pytest.raises(ConfigurationError, match=r"Own.choose must return 2 different places in \[0, 3\), got "):
        chosen(own, 1, 2)


def test_a_curriculum_asks_what_is_passed_now_and_then_and_goes_on_from_its_state() -> None:
    chooser = chooser_of(Algorithm(questions="pass_rate"), NUMBERED, 3)
    chooser.learn({str(number): (0.0, 1.0, 0.5, 0.4)[number % 4] for number in range(40)})
    asked = [place for index in range(50) for place in chooser.choose(index, 4)]
    assert sum(place % 4 > 1 for place in asked) > 0.7 * len(asked), "those between always and never"
    assert {place % 4 for place in asked} == {0, 1, 2, 3}, "and none is forgotten"
    again = PassRate(NUMBERED, 3)
    again.restore(chooser.state())
    assert again.choose(50, 4) == chooser.choose(50, 4) != PassRate(NUMBERED, 4).choose(50, 4)
    again.restore(chooser_of(Algorithm(), NUMBERED, 3).state())  # of a run that was given another chooser in its midst
    assert again.choose(50, 4) == PassRate(NUMBERED, 3).choose(50, 4)


def test_a_round_pays_both_seats_and_trains_the_tester_on_the_widest_spread(arena: Arena) -> None:
    """By hand, K = 2, alpha = 1/2. BOTH holds two valid tests, one of which SQUARE fails; the other suite none at all.

    RIGHT: BOTH has R_val 1, f_new 0, so R_T 1/2; the other 0. SQUARE: R_val 1, f_new 1/2, so R_T 3/4; the other 0.
    The spread is larger for SQUARE. Coder: RIGHT passes 2 of 2 and the other counts 0, mean 1/2; SQUARE (1/2 + 0) / 2.
    """
    score = score_round(arena, [f"Here:\n```python\n{RIGHT}\n```", SQUARE], [[BOTH, "nothing to see"]] * 2)
    assert earned(score) == pytest.approx([0.5, 0.25])
    assert learnt(score) == [(1, pytest.approx(0.75)), (1, 0.0)]
    assert [row.sample.text for row in score.batches[1]] == [BOTH, "nothing to see"]
    assert score.metrics["valid_tests"] == pytest.approx(4 / 8)
    assert score.metrics["killing_tests"] == pytest.approx(1 / 8)
    assert score.metrics["book"] == len(arena.book) == 1
    again = score_round(arena, [RIGHT, SQUARE], [[BOTH, ""]] * 2).metrics
    assert (score.metrics["replayed"], again["replayed"]) == (0, 1)
    assert again["replays_failed"] == pytest.approx(1 / 2), "of the two programs"


def test_a_round_says_which_suites_could_not_be_read_and_why(arena: Arena) -> None:
    """Four suites: one with a test beside prose, one of prose, one of a function and prose, one rejected."""
    suites = [
        ["These two:\n```python\nassert double(2) == 4\n```", "Try 2, which is 4."],
        ["It is this one.\n\ndef test_it():\n    assert double(2) == 4\n", "assert len(double) > 1"],
    ]
    metrics = score_round(arena, [RIGHT, SQUARE], suites).metrics
    shares = {name: value for name, value in metrics.items() if name.startswith("unreadable")}
    reasons = {"unreadable_text": 2 / 4, "unreadable_function": 1 / 4, "unreadable_wrapped_call": 1 / 4}
    assert shares == {"unreadable": 3 / 4, **reasons}


def journal_says(directory: Path, capsys: Any, *lines: tuple[str, dict[str, float]]) -> str:
    """What a run shows of these rows, each of a round ("") or a seat."""
    with Run(RecipeArguments(SMOKE, directory / "run", 0, False), seats=("coder", "tester")) as run:
        journal, rounds = RunJournal(run), 0
        journal.doing("evaluating")
        for seat, values in lines:
            rounds += not seat
            journal.write("seat" if seat else "round", rounds, {"coder_reward": 0.0, **values}, seat)
        journal.close()
    told = capsys.readouterr()
    assert not told.out, "standard output is for what a run ends with"
    return str(told.err)


def test_a_run_shows_what_is_unreadable_what_has_no_purpose_and_its_speed(tmp_path: Path, capsys: Any) -> None:
    shown = "round 1: 75% of the tester's suites hold no readable test and earn nothing; they hold text"
    for share, is_said in ((0.75, True), (0.5, False)):
        row = {"unreadable": share, "unreadable_function": share / 3, "unreadable_text": share}
        told = journal_says(tmp_path / f"unreadable {share}", capsys, ("", row), ("", row))
        assert told.count(shown + " (75%), function (25%)") == is_said, "once, the commonest reason first"
        assert ("unreadable=0.75" in told) == is_said
    for shares, is_shown in (((0.0, 0.25), True), ((0.25, 0.0), False)):
        rows = [("", {"vacuous_tests": share, "constant_programs": 0.0}) for share in shares]
        last = journal_says(tmp_path / f"vacuous {is_shown}", capsys, *rows).rpartition("rounds:")[2]
        assert ("vacuous=0.25" in last, "constant" in last) == (is_shown, False)
    speeds = [(seat, {"tokens_per_second": speed}) for seat, speed in (("coder", 123.4), ("tester", 45.6))]
    told = journal_says(tmp_path / "speeds", capsys, ("", {}), *speeds)
    assert f"rounds (evaluating):   0%|          | 0/{SMOKE.rounds}" in told
    assert "R_C=0.00, coder tokens/s=123, tester tokens/s=46" in told


def test_selected_rows_come_in_groups_by_question_and_a_resting_seat_learns_from_none(arena: Arena) -> None:
    score = score_round(arena, [BROKEN, SQUARE, SQUARE, BROKEN], [[EDGE, ""]] * 4, questions=2)
    assert [place for place, _ in learnt(score)] == [1, 1, 2, 2]
    assert [row.label.question for row in score.batches[1]] == ["double 0", "double 0", "double 1", "double 1"]
    assert [row.label.group for row in score.batches[0]] == ["coder double 0"] * 2 + ["coder double 1"] * 2
    rules = RoundRules(Options(schedule="alternating"))
    for index, learning in enumerate((True, False)):
        coder, tester = score_round(arena, [RIGHT, SQUARE], [[EDGE, ""]] * 2, rules=rules, index=index).batches
        assert {row.learns for row in coder} == {learning}
        assert {row.learns for row in tester} == {not learning}


def test_the_golden_baseline_pays_the_share_of_golden_tests_passed(arena: Arena) -> None:
    score = scoring.grade_round(arena, written(arena, [RIGHT, SQUARE, BROKEN]), RoundRules(), 4)
    assert earned(score) == [1.0, 0.5, 0.0]
    assert score.metrics["coder_reward"] == pytest.approx(0.5)
    assert score.metrics["executes"] == pytest.approx(2 / 3)


PROGRAMS = [0.2, 0.9, None, 0.9]
LOADS = [False, True, True, True]
SUITES = [[0.0, 1.0], [0.5, 0.5], [None, 0.5], [0.4, 0.6]]


def test_programs_are_selected_as_asked_and_those_without_a_score_last() -> None:
    def selected(selection: Any, count: int, loads: Sequence[bool] = LOADS) -> list[int]:
        return RoundRules(Options(selection=selection)).select(0, "q", PROGRAMS, loads, SUITES, count)

    for selection in ("hardest", "first"):  # 0.9 twice, the earlier first; the first does not load
        assert [selected(selection, count) for count in (1, 2, 3, 4)] == [[1], [1, 3], [0, 1, 3], [0, 1, 2, 3]]
    assert selected("first", 1, [True] * 4) == [0]
    assert selected("all", 4) == [0, 1, 2, 3]
    assert selected("spread", 2) == [0, 3]
    assert select_attacked([[0.1, 0.3], [0.3, 0.1]], 1) == [0], "a tie: the earlier one"
    assert select_attacked([[0.0, None], [0.5, 0.5]], 1) == [1], "no score, no selection, while there is another"
    assert select_attacked([[0.0, None], [None, None]], 1) == [0]


def test_a_random_selection_repeats_with_its_seed_and_changes_with_round_and_question() -> None:
    def drawn(seed: int, question: str = "q") -> list[list[int]]:
        rules = RoundRules(Options(selection="random"), seed)
        return [rules.select(index, question, PROGRAMS, LOADS, SUITES, 1) for index in range(60)]

    assert drawn(3) == drawn(3)
    assert {tuple(chosen) for chosen in drawn(3)} == {(0,), (1,), (3,)}, "never one without a score, all the others"
    assert drawn(3) not in (drawn(3, "p"), drawn(4))


def test_tests_are_paid_one_by_one_and_stand_where_they_are_written(arena: Arena) -> None:
    """K = 2, alpha 1/2, against SQUARE: double(2) valid, passed: 1/2; double(3) valid, failed: 1; rejected: 0."""
    response = "```python\nassert double(2) == 4\nassert double(3) == 6\n```\nThese two."
    suites = [[response, "assert nothing"], ["", ""]]
    score = score_round(arena, [SQUARE, BROKEN], suites, rules=RoundRules(credit="test"))
    first, second = (row.label for row in score.batches[1])
    assert [response[start:end] for start, end in first.spans] == ["assert double(2) == 4", "assert double(3) == 6"]
    assert first.test_rewards == pytest.approx((0.5, 1.0))
    assert second.test_rewards == (0.0,)
    assert [row.label.spans for row in score_round(arena, [SQUARE, BROKEN], suites).batches[1]] == [(), ()]


def test_early_rounds_pay_the_tester_for_validity_first_and_say_so(arena: Arena, tmp_path: Path) -> None:
    """BOTH against SQUARE: R_val 1, f_new 1/2. alpha 1: R_T 1; alpha 3/4: 7/8; alpha 1/2: 3/4. The rest earns 0."""
    rules = RoundRules(Options(validity_first_rounds=2))
    for index, alpha, reward in ((0, 1, 1), (1, 3 / 4, 7 / 8), (2, 1 / 2, 3 / 4)):
        arena.book = MistakeBook()
        past = PastPlay(suites=((EDGE, EDGE),) * 2)  # an old tester's suites are in no number of the present one
        score = score_round(arena, [SQUARE, BROKEN], [[BOTH, ""]] * 2, rules=rules, index=index, past=past)
        assert learnt(score) == [(0, pytest.approx(reward)), (0, 0.0)]
        parts = {name: value for name, value in score.metrics.items() if name.startswith("paid_")}
        expected = {"paid_validity": alpha / 4, "paid_adversarial": (1 - alpha) / 2 / 4, "paid_penalty": 0}
        assert parts == pytest.approx(expected), "means over four suites, one of which earned anything"
        assert score.metrics["tester_reward"] == pytest.approx(reward / 4)
        arena.book = MistakeBook()
        play = partial(DuelSample(tmp_path, 1).play, arena, index)
        again = score_round(arena, [SQUARE, BROKEN], [[BOTH, ""]] * 2, rules=rules, index=index, play=play)
        assert learnt(again) == learnt(score)
        with (tmp_path / f"round-{index + 1}.jsonl").open("rb") as lines:
            (kept,) = read_recording(lines)
        assert kept.config.alpha == alpha, "what is kept to be looked at was paid like this"
        assert kept.rewards.suites[0] == (pytest.approx(reward), 0)


def test_a_program_that_was_not_put_to_the_tester_has_no_score_or_is_paid_by_its_questions(arena: Arena) -> None:
    """By hand: K = 2. SQUARE passes the test at 2 and fails that at 3; RIGHT could not be attacked. Where suites are
    written ahead, only the first was put to the tester."""
    suites = [[None, None], [BOTH] * 2]
    score = score_round(arena, [RIGHT, SQUARE], suites, attacked=2)
    assert earned(score) == [None, pytest.approx(0.5)]
    assert learnt(score) == [(0, None), (0, None), (1, pytest.approx(0.75)), (1, pytest.approx(0.75))]
    assert (score.metrics["not_attacked"], score.metrics["unscored"]) == (1, 0)
    assert score.metrics["coder_reward"] == pytest.approx(0.5), "the mean over what was attacked"
    assert {place for place, _ in learnt(score_round(arena, [RIGHT, SQUARE], suites))} == {1}, "no score comes last"
    arena.config, arena.book = RewardConfig(suite_size=2, coder_tests="union"), MistakeBook()
    ahead = RoundRules(Options(selection="ahead"))
    score = score_round(arena, [RIGHT, SQUARE, BROKEN], [[BOTH] * 2, [], []], rules=ahead)
    assert earned(score) == [1, pytest.approx(0.5), 0]
    assert [place for place, _ in learnt(score)] == [0, 0]
    assert score.metrics["not_attacked"] == 0
    assert score.metrics["coder_reward"] == pytest.approx(0.5), "the mean over all that were paid"


def test_the_first_different_programs_are_put_to_the_tester_and_stand_in_their_places(arena: Arena) -> None:
    rules = RoundRules(Options(selection="ahead"))
    assert rules.put_to_tester(["a", "a", "", "b", "c"], 2) == [0, 3]
    assert rules.put_to_tester(["a(", "", "b(", "a"], 2) == [0, 3], "what cannot be parsed fills up"
    assert rules.put_to_tester(["a(", "a", "a"], 2) == [1, 2], "equal ones come before what cannot be parsed"
    assert RoundRules().put_to_tester(["a", "a"], 1) == [0, 1]
    assert scoring.put_to_tester(written(arena, [RIGHT, RIGHT, SQUARE, RIGHT], 2), shaped(questions=2), rules) == [0, 2]
    assert scoring.in_places([[1], [2], [3]], [0, 2], 4) == [[1], (), [2], (), [3]]


def test_an_old_program_can_train_the_tester_and_leaves_no_trace_in_the_book(arena: Arena) -> None:
    """K = 1, alpha 1/2. Present: RIGHT twice, all suites earn 1/2. Old: SQUARE, EDGE earns 1, BLIND 1/2: it spreads."""
    arena.config = RewardConfig(suite_size=1)
    past = PastPlay(programs=tuple(written(arena, [SQUARE])), old_coders=1, against=(said([EDGE, BLIND]),))
    score = score_round(arena, [RIGHT] * 2, [[EDGE, BLIND]] * 2, past=past)
    assert learnt(score) == [(2, 1.0), (2, 0.5)]
    assert earned(score) == [1.0, 1.0]
    assert score.past_coder == score.metrics["past_coder_reward"] == pytest.approx(0.5), "it passes one suite of two"
    assert len(arena.book) == 0


def test_an_old_testers_suites_judge_the_present_programs_and_train_nobody_nor_enter_its_book(arena: Arena) -> None:
    """SQUARE passes BLIND and fails the old tester's EDGE: R_C 1/2. The present tester's one suite is its only row."""
    past = PastPlay(suites=((EDGE, EDGE), ()), programs=tuple(written(arena, [SQUARE])), against=(said([BLIND]),))
    score = score_round(arena, [SQUARE] * 2, [[BLIND]] * 2, rules=RoundRules(Options(tester_book=2)), past=past)
    assert [[len(row) for row in match.suites] for match in score.played] == [[1, 1], [1]]
    assert score.past_coder is None, "a target of the book is no old coder"
    arena.config, arena.book = RewardConfig(suite_size=1), MistakeBook()
    score = score_round(arena, [SQUARE, RIGHT], [[BLIND]] * 2, past=PastPlay(suites=((EDGE,), (EDGE,))))
    assert earned(score) == [0.5, 1.0]
    assert learnt(score) == [(0, 0.5)]
    assert score.past_tester == pytest.approx(0.5), "it caught one of the two programs"
    assert len(arena.book) == 1, "what the present program fails is remembered, whoever wrote it"


def test_each_of_two_testers_learns_from_its_own_suites(arena: Arena) -> None:
    """K = 2. The first writes EDGE, the second BOTH, against SQUARE: R_T 1/4 + 1/4, and 1/2 + 1/4."""
    suites = [[said([text, ""]), said(["", ""])] for text in (EDGE, BOTH)]
    testers = ("tester_0", "tester_1")
    score = Round(0, shaped(), written(arena, [SQUARE, RIGHT]), suites, testers=testers).score(arena)
    for batch, name, text, reward in zip(score.batches[1:], testers, (EDGE, BOTH), (0.5, 0.75), strict=True):
        rows = [(row.label.group, row.sample.text, row.reward) for row in batch]
        assert rows == [(f"{name} 0", text, pytest.approx(reward)), (f"{name} 0", "", 0.0)]


def test_a_group_of_the_metrics_is_one_testers(arena: Arena) -> None:
    """K = 2. Each says the same twice, so no group teaches, though one of the two testers earns more."""
    suites = [[said([text, text])] * 2 for text in (EDGE, "")]
    score = Round(0, shaped(), written(arena, [SQUARE, RIGHT]), suites, testers=("tester", "tester_1")).score(arena)
    assert score.metrics["tester_reward"] > 0
    assert score.metrics["tester_zero_groups"] == 1
    assert math.isnan(score.metrics["validity_signal"])


def opponents(directory: Path, ranks: int = 1, **options: Any) -> PastOpponents:
    nothing: Any = None  # neither arena nor model: nobody plays
    preset = preset_from_dict({"options": options, "placement": {"tester": {"ranks": ranks}}}, SMOKE)
    return PastOpponents(SeatRun(preset, directory, directory / "tester", 1), {}, nothing, nothing, nothing)


def test_only_snapshots_of_the_past_are_drawn_and_the_base_model_first(tmp_path: Path) -> None:
    uniform = opponents(tmp_path, opponents="uniform", opponent_every=2)
    assert [uniform.drawn("coder", index) for index in range(3)] == [0, 0, 0]
    for index in range(3, 200):
        assert uniform.drawn("coder", index) in range(0, index, 2)
    few = opponents(tmp_path, opponents="uniform", opponent_every=50)
    drawn = {seat: [few.drawn(seat, index) for index in range(101, 151)] for seat in ("coder", "tester")}
    assert set(drawn["coder"]) == {0, 50, 100}, "every snapshot has its chance"
    assert drawn["coder"] != drawn["tester"], "the seats are drawn apart"


def test_who_did_better_is_drawn_more_often_and_nobody_never(tmp_path: Path) -> None:
    """Snapshots 0, which did well, and 50, which lost always: weights 0.95 and 0.05."""
    past = opponents(tmp_path, opponents="prioritised", opponent_every=50)
    for index, reward in ((10, 0.9), (51, 0.0)):
        while past.drawn("coder", index) != (50 if index > 50 else 0):
            index += 1
        past.learn(index, Score((), {}, past_coder=reward))
    drawn = Counter(past.drawn("coder", 51 + index % 50) for index in range(50))
    alike = opponents(tmp_path, opponents="uniform", opponent_every=50)
    uniform = Counter(alike.drawn("coder", index) for index in range(51, 101))
    assert drawn[0] > 40 > uniform[0]
    assert drawn[0] + drawn[50] == 50


def test_how_a_snapshot_fared_is_a_running_mean(tmp_path: Path) -> None:
    """0.8 first, then 0.4: half of each, 0.6. A round without a score changes nothing."""
    past = opponents(tmp_path, opponents="prioritised")
    for reward in (0.8, 0.4, None):
        past.learn(0, Score((), {}, past_coder=reward))
    past.save(tmp_path)
    assert json.loads((tmp_path / RECORDS).read_text()) == {"coder": {"0": pytest.approx(0.6)}, "tester": {}}


def test_several_ranks_are_refused_where_the_past_plays(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"placement.tester.ranks must be 1 .* got 2"):
        opponents(tmp_path, tester_book=1, ranks=2)
