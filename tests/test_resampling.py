"""Groups that teach nothing are sampled again up to a bound: which are replaced, by hand, and under both trainers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("trl", reason="the extra `train` is not installed")

from training_runs import PACKED, play_duel, records, tiny, without_evaluations

from codea1_env.configuration.algorithm import Algorithm
from codea1_env.configuration.presets import Preset
from codea1_env.errors import ConfigurationError, SandboxError
from codea1_env.training.loop import Recipe
from codea1_env.training.round.resampling import silent_questions, with_groups
from codea1_env.training.round.rounds import ReadProgram, Score
from codea1_env.training.samples import Row, RowLabel, Sample

QUIET = without_evaluations(round={"questions": 4, "programs": 2, "suites": 2}, algorithm={"resample": 2})
ON_ONE_BASE = tiny(QUIET, **PACKED, grpo={"beta": 0.0})


def rows(group: str, question: str, *rewards: float | None, learns: bool = True) -> list[Row]:
    seat = group.split()[0]
    return [
        Row(Sample((0,), (place,), "t"), reward, RowLabel(group, question, seat), learns)
        for place, reward in enumerate(rewards)
    ]


def rewards_of(batch: Sequence[Row]) -> list[float | None]:
    return [row.reward for row in batch]


def test_a_silent_group_gives_its_place_to_one_of_its_question_and_seat_that_teaches() -> None:
    coder = [*rows("coder a", "a", 1, 1), *rows("coder b", "b", 0, 1), *rows("coder c", "c", 0, 0)]
    tester = [*rows("tester 0", "a", 0.1, 0.2), *rows("tester 3", "b", 0.5, 0.5), *rows("tester 4", "c", 0, 0)]
    score = Score((coder, tester), {"coder_reward": 0.5, "seconds_scoring": 1.0})
    assert silent_questions(score.batches) == ["a", "c", "b"]
    again = Score(
        (
            [*rows("coder a", "a", 0, 1), *rows("coder c", "c", 0, 0), *rows("coder b", "b", 1, 0)],
            [*rows("tester 0", "a", 0, 9), *rows("tester 3", "c", 0.1, 0.3), *rows("tester 4", "b", 0.5, 0.5)],
        ),
        {"coder_reward": 0.9, "seconds_scoring": 2.0},
    )
    merged = with_groups(score, again, 1)
    # The coder's a is replaced; its b taught, and c is silent again. The tester's c is replaced; a taught, b is silent.
    assert rewards_of(merged.batches[0]) == [0, 1, 0, 1, 0, 0]
    assert rewards_of(merged.batches[1]) == [0.1, 0.2, 0.5, 0.5, 0.1, 0.3]
    assert merged.metrics == {"coder_reward": 0.5, "seconds_scoring": 3.0, "sampled_again": 3.0, "groups_replaced": 2.0}
    groups = [{row.label.group for row in merged.batches[1][place : place + 2]} for place in (0, 2, 4)]
    assert [len(each) for each in groups] == [1, 1, 1]
    assert len(set.union(*groups)) == 3, "tester 3 is b's in the round and c's among those that were sampled again"
    assert silent_questions(merged.batches) == ["c", "b"]


@pytest.mark.parametrize(
    "batch",
    [
        rows("coder a", "a", None, None),  # infrastructure failed: to sample again would help nobody
        rows("coder a", "a", 1, 1, learns=False),
        rows("coder a", "a", 0, 1),
        [],
    ],
    ids=["no score", "not its turn", "teaches", "empty"],
)
def test_what_teaches_has_no_score_or_does_not_learn_is_not_sampled_again(batch: list[Row]) -> None:
    assert silent_questions([batch]) == []


def test_beside_a_tester_that_does_not_learn_no_question_is_sampled_again_for_its_groups() -> None:
    score = Score((rows("coder a", "a", 0, 1), rows("tester 0", "a", 1, 1)), {})
    asked: Any = [SimpleNamespace(problem=SimpleNamespace(problem_id="a"))]
    run: Any = SimpleNamespace(preset=QUIET, _frozen={"tester": None})
    assert Recipe._sampled_again(run, score, asked, lambda programs: score) is score


def test_a_group_of_another_size_replaces_nothing() -> None:
    score = Score((rows("coder a", "a", 1, 1),), {})
    assert with_groups(score, Score((rows("coder a", "a", 0, 1, 1),), {}), 1).batches == score.batches


@pytest.mark.parametrize(("alike", "attempts"), [(True, 2), (False, 0)], ids=["silent", "teaches"])
@pytest.mark.parametrize("preset", [QUIET, ON_ONE_BASE], ids=["trl", "packed"])
def test_both_trainers_sample_silent_groups_again_up_to_the_bound_and_learn_from_as_many_rows(
    preset: Preset, alike: bool, attempts: int, base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[int, frozenset[str]]] = []

    def graded(arena: object, programs: Sequence[ReadProgram], rules: object, round_index: int) -> Score:
        asked.append((len(programs), frozenset(str(each.sample.tokens) for each in programs if each.sample)))
        paid = [1.0 if alike else float(place % 2) for place, _ in enumerate(programs)]
        labels = [RowLabel(f"coder {p.problem.problem_id}", p.problem.problem_id, "coder") for p in programs]
        batch = [Row(p.sample, r, x) for p, r, x in zip(programs, paid, labels, strict=True) if p.sample]
        return Score((batch,), {"coder_reward": 0.5})

    monkeypatch.setattr("codea1_env.training.loop.grade_round", graded)
    scores = list[Score]()

    def keep(run: Recipe, index: int, score: Score) -> None:
        scores.append(score)

    play_duel(tmp_path, base, rounds=1, preset=preset, seats=("coder",), on_score=keep)
    assert [count for count, _ in asked] == [8] * (1 + attempts)
    assert len({texts for _, texts in asked}) == len(asked), "each attempt draws other tokens"
    assert len(scores[0].batches[0]) == 8
    (logged,) = records(tmp_path, "round")
    assert logged.get("sampled_again", 0) == 4 * attempts


@pytest.mark.parametrize("fails", [True, False])
def test_silent_groups_are_played_again_with_new_suites_and_a_sandbox_that_fails_meanwhile_leaves_the_round_as_it_was(
    fails: bool, base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(self: Recipe, index: int, programs: Sequence[ReadProgram]) -> Score:
        raise SandboxError("gone")

    if fails:
        monkeypatch.setattr(Recipe, "_play_again", failing)
    scores = list[Score]()
    play_duel(tmp_path, base, rounds=1, preset=QUIET, on_score=lambda run, index, score: scores.append(score))
    assert [len(batch) for batch in scores[0].batches] == [8, 8]
    assert scores[0].metrics.get("sampled_again", 0) >= (0 if fails else 1), "tiny models write what earns the same"
    assert fails == ("sampled_again" not in scores[0].metrics)


def test_where_it_cannot_help_it_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="resample must be 0 with advantage: question"):
        Algorithm(advantage="question", resample=1)
    several = {"gpus_per_node": 2, "ranks": 2}
    with pytest.raises(ConfigurationError, match="resample must be 0 where a seat has several ranks"):
        tiny(QUIET, placement={"coder": several, "tester": several})
