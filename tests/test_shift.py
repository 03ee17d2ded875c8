"""The shift family and its game: bugs give way to each other as the strength says; the record has no pilots."""

import importlib
import json
import random
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from codea1_env.configuration.presets import load_preset
from codea1_env.problems.families.bands import OFF_BY_ONE, BandQuestion
from codea1_env.problems.families.shift import RULES, shift_problems, shift_questions, slipped, written
from codea1_env.training.models import corpora, warm_start

ROOT = Path(__file__).parents[1]

QUESTIONS = shift_questions("train", 40, seed=3)


def slips(reference: str, program: str) -> tuple[int, ...] | None:
    """At which places a program slips; None where it is not the reference with slips alone. Nothing is run."""
    lines, wanted = program.strip().splitlines(), reference.strip().splitlines()
    if len(lines) != len(wanted):
        return None
    places = []
    for place, (line, right) in enumerate(zip(lines, wanted, strict=True)):
        if line != right:
            comparison = right.split()[2] if right.startswith("    if x ") else ""
            if line != right.replace(f" {comparison} ", f" {OFF_BY_ONE.get(comparison)} ", 1):
                return None
            places.append(place - 1)
    return tuple(places)


@pytest.fixture(scope="module")
def parts() -> tuple[ModuleType, ModuleType]:
    return importlib.import_module("shift_game"), importlib.import_module("shift_report")


def test_a_mutant_slips_at_one_place_and_shows_at_that_threshold_alone() -> None:
    for problem, question in zip(shift_problems("train", 40, seed=3), QUESTIONS, strict=True):
        reference = problem.reference_solution or ""
        assert [slips(reference, mutant) for mutant in problem.mutants] == [(place,) for place in range(RULES)]
        assert slips(reference, reference) == ()
        right = question.table(question.rules)
        for place, threshold in enumerate(question.thresholds):
            wrong = question.table(slipped(question, (place,)))
            assert [x for x in range(100) if wrong[x] != right[x]] == [threshold]


@pytest.mark.parametrize(
    "change", [("return 1", "return 2"), ("if x", "if  x"), ("    return", "    pass\n    return")]
)
def test_a_program_that_is_wrong_in_another_way_is_no_slip(change: tuple[str, str]) -> None:
    reference = "def f(x):\n    if x <= 9: return 1\n    if x > 60: return 3\n    return 5\n"
    assert slips(reference, reference.replace("<= 9", "< 9")) == (0,)
    assert slips(reference, reference.replace(*change, 1)) is None


def drawn(question: BandQuestion, strength: float) -> list[tuple[int, ...] | None]:
    rng = random.Random(0)
    return [slips(question.reference, question.program(written(question, rng, 0.8, strength))) for _ in range(4_000)]


def test_at_strength_1_a_program_slips_once_at_most_and_at_0_rules_slip_independently() -> None:
    together, apart = drawn(QUESTIONS[0], 0.0), drawn(QUESTIONS[0], 1.0)
    assert max(len(found) for found in apart if found is not None) == 1
    for found, expected in ((apart, [0.8, 0.16, 0.032]), (together, [0.8, 0.8, 0.8])):
        shares = [sum(place in (each or ()) for each in found) / len(found) for place in range(RULES)]
        assert shares == pytest.approx(expected, abs=0.03)
        assert found.count(()) / len(found) == pytest.approx(0.008, abs=0.005)


def test_the_base_of_language_models_learns_from_programs_as_the_strength_says() -> None:
    shift = load_preset("shift")
    references = {question.question: question.reference for question in shift_questions("train", 4_000, 0)}
    most, hashes = [], set()
    for strength in (0.0, 1.0):
        preset = replace(shift, problems=replace(shift.problems, shift=strength))
        hashes.add(warm_start._content_hash(preset))
        found = [
            slips(references[question], each.answer)
            for each in corpora.examples(preset, 400)
            if (question := each.messages[-1]["content"]) in references and each.answer.startswith("def")
        ]
        assert len(found) > 100
        most.append(max(len(places or ()) for places in found))
    assert most == [RULES, 1]
    assert len(hashes) == 2, "each strength has a base of its own"


def test_the_game_has_the_habits_and_the_failures_of_the_family(parts: tuple[ModuleType, ModuleType]) -> None:
    game, _ = parts
    questions = game.questions_of(QUESTIONS, False, 0)
    for strength in (0.0, 0.5, 1.0):
        habits = np.exp(game.habits_of(QUESTIONS, strength, 0))
        assert habits.sum(1) == pytest.approx(1.0, abs=1e-6)
        assert habits[:, 0] == pytest.approx(np.exp(game.habits_of(QUESTIONS, 0.0, 0))[:, 0]), "as often right"
    for program, places in enumerate(game.PROGRAMS):
        failed = questions.fails[:, program].any(0).reshape(2, -1)
        assert (failed == failed[0]).all(), "whatever value the test states"
        assert tuple(np.flatnonzero(failed[0])) == places
    assert not questions.fails[:, :, questions.golden[0]].any(), "golden tests see no slip"


def test_what_a_white_box_tester_sees_names_a_slip_only_where_it_reads(parts: tuple[ModuleType, ModuleType]) -> None:
    game, _ = parts
    plain, reads = (game.questions_of(QUESTIONS, each, 0).shapes for each in (False, True))
    assert (reads == game.SLIPS).all()
    of_right, of_wrong = ({tuple(row) for row in plain[:, place].astype(int).tolist()} for place in (0, 7))
    assert of_right & of_wrong, "what is right for one question is wrong for another"


def test_a_suite_of_one_test_is_paid_for_it(parts: tuple[ModuleType, ModuleType]) -> None:
    game, learning = parts[0], sys.modules["matrix_learning"]
    questions = game.questions_of(QUESTIONS[:2], False, 0)
    width = questions.tests.shape[1] // 2
    slip_at_2, chosen = game.PROGRAMS.index((1,)), np.array([0])
    suites = np.array([[[[1], [0], [width + 1], [5]]]])  # kills; misses; kills and states a wrong value; misses
    paid = learning.pay(questions, game.CODE_A1, chosen, np.array([[slip_at_2]]), suites, [[]])
    assert paid.shares[0, 0].tolist() == [0.0, 1.0, 0.0, 1.0]
    assert paid.valid[0, 0].tolist() == [1.0, 1.0, 0.0, 1.0]
    assert paid.tester[0, 0, 0] > paid.tester[0, 0, 2] > 0


def test_a_frozen_tester_plays_as_it_was_and_equal_seeds_give_equal_runs(
    parts: tuple[ModuleType, ModuleType], monkeypatch: pytest.MonkeyPatch
) -> None:
    game, _ = parts
    for name, value in (("ROUNDS", 4), ("EVERY", 2), ("EARLY", 2), ("TRAIN", 16), ("HELD_OUT", 8)):
        monkeypatch.setattr(game, name, value)
    setting = game.Setting(1.0)
    found = game.run_place(setting, 5, 6)
    assert {name: cell["looks"] for name, cell in game.run_place(setting, 5, 6).items()} == {
        name: cell["looks"] for name, cell in found.items()
    }
    kills = {name: [look["kills"] for look in cell["looks"]] for name, cell in found.items()}
    assert kills["frozen_trained"] == [kills["code_a1"][-1]] * 3
    assert kills["frozen_early"] == [kills["code_a1"][1]] * 3
    assert kills["frozen"] == [kills["code_a1"][0]] * 3
    faster = game.run_place(replace(setting, tester_rate=2.0), 5, 6, game.FEW)
    assert faster["code_a1"]["looks"][-1]["kills"] != kills["code_a1"][-1]


def test_the_record_has_every_setting_and_no_pilot(parts: tuple[ModuleType, ModuleType]) -> None:
    game, _ = parts
    cells = json.loads((ROOT / "experiments" / "results" / "shift-results.json").read_text())
    assert max(cell["base"] for cell in cells) < 1000, "pilots are not counted"
    assert {cell["setting"] for cell in cells} == {setting.name for setting in game.SETTINGS}
