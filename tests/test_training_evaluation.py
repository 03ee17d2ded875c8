"""Evaluation: scripted players with known results, and sampling that repeats."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from training_runs import tiny
from transformers import AutoTokenizer

from codea1_env import Arena, LocalSandbox, Problem, RewardConfig, TestCase
from codea1_env.players.player import CoderRequest
from codea1_env.problems.families.miniature import miniature_problems
from codea1_env.training.models.chat import Prompter, chat_of
from codea1_env.training.models.sampling import LoadedModel, Sampler
from codea1_env.training.models.tiny import build_model
from codea1_env.training.models.warm_start import base_model
from codea1_env.training.run.gauge import Gauge
from codea1_env.training.run.held_out import MeasuredSeats, evaluate_coder, evaluate_tester, paired_interval
from codea1_env.training.run.results import ResultRow, as_table, compare, cost
from codea1_env.training.samples import SamplerSettings

RIGHT = "def f(xs):\n    return len(xs)"
NO_EMPTY = "def f(xs):\n    return len(xs) or 1"
GOLDEN, HIDDEN = (TestCase("f([5])", "1"),), (TestCase("f([])", "0"), TestCase("f([5, 6])", "2"))
LENGTH = Problem("length", "Q", "f", RIGHT, golden_tests=GOLDEN, hidden_tests=HIDDEN, mutants=(NO_EMPTY,))
NO_MUTANT = dataclasses.replace(LENGTH, problem_id="no mutant", mutants=())


@pytest.fixture
def arena(sandbox: LocalSandbox) -> Arena:
    return Arena(sandbox, RewardConfig(suite_size=4))


def scripted(*responses: str):  # type: ignore[no-untyped-def]
    def sample(prompts: Sequence[tuple[str, ...]], samples: int) -> list[list[str]]:
        assert samples == len(responses)
        return [list(responses) for _ in prompts]

    return sample


def test_a_coder_is_measured_by_programs_that_pass_every_test(arena: Arena) -> None:
    sample = scripted(RIGHT, NO_EMPTY, "def f(xs):\n    return 7", "not python")
    result = evaluate_coder(arena, [LENGTH, NO_MUTANT], sample, samples=4)
    shares = (result.hidden, result.golden, result.executes)
    assert shares == ((1 / 4, 1 / 4), (2 / 4, 2 / 4), (3 / 4, 3 / 4))
    assert result.summary()["hidden_pass_rate"] == 1 / 4


def test_a_tester_is_measured_on_mutants_by_the_reference_whatever_it_was_trained_by(arena: Arena) -> None:
    """K = 4. One suite: valid and killing on [], valid on [1, 2, 3, 4], wrong on [9], a repeat. The other: nothing.
    One program has no majority, and the golden tests do not know these calls."""
    suite = "assert f([]) == 0\nassert f([1, 2, 3, 4]) == 4\nassert f([9]) == 5\nassert f([]) == 0"
    result = evaluate_tester(arena, [LENGTH, NO_MUTANT], scripted(suite, "?"), samples=2, mutants=3)
    expected = {"valid": 2 / 4 / 2, "kills": 1 / 4 / 2, "input_kills": 1 / 4 / 2, "all_valid": 0.0, "killed": 1 / 2}
    expected |= {"killed_by_any": 1.0, "empty_inputs": 2 / 4 / 2, "input_length": (0 + 4 + 1 + 0) / 4 / 2}
    assert {name: getattr(result, name) for name in expected} == {n: (pytest.approx(v),) for n, v in expected.items()}
    wrong = evaluate_tester(arena, [LENGTH], scripted("assert f([]) == 3"), samples=1, mutants=1)
    assert (wrong.kills, wrong.input_kills, wrong.killed) == ((0.0,), (1 / 4,), (0.0,)), "a killing input only"
    assert evaluate_tester(arena, [LENGTH], scripted("assert f([1]) == 1"), 1, 1).killed == (0.0,), "it is valid only"
    for oracle in ("golden", "majority", "dual"):
        arena.config = RewardConfig(suite_size=4, oracle=oracle, tester_reward="skill")
        assert evaluate_tester(arena, [LENGTH, NO_MUTANT], scripted(suite, "?"), samples=2, mutants=3) == result
    evaluate_coder(arena, [LENGTH], scripted(NO_EMPTY), samples=1)
    assert len(arena.book) == 0, "evaluation leaves the Mistake Book alone"


def test_the_paired_interval_is_about_differences_between_the_same_problems() -> None:
    rng = np.random.default_rng(0)
    hardness = rng.random(100)
    interval = paired_interval(tuple(hardness), tuple(hardness + 0.1))
    assert interval.low == pytest.approx(interval.high) == pytest.approx(0.1), "hardness cancels"
    noisy = paired_interval(tuple(hardness), tuple(hardness + rng.normal(0.1, 0.2, size=100)))
    assert noisy.low < noisy.mean < noisy.high
    assert 0.05 < noisy.high - noisy.low < 0.11, "about four standard errors of 0.02"


def test_the_final_table_shows_both_seats_and_does_not_compare_zeros(arena: Arena) -> None:
    def measured(program: str, suite: str) -> MeasuredSeats:
        coder = evaluate_coder(arena, [LENGTH], scripted(program), samples=1)
        return MeasuredSeats(coder, evaluate_tester(arena, [LENGTH], scripted(suite), samples=1, mutants=1))

    rows = {row.name: row for row in compare(measured(NO_EMPTY, "?"), measured(RIGHT, "assert f([]) == 0"))}
    assert (rows["coder: hidden pass rate"].base, rows["coder: hidden pass rate"].trained) == (0, 1)
    assert rows["tester: valid tests"].trained == 1 / 4
    assert "coder: hidden pass rate" in as_table(list(rows.values()))
    nothing = [ResultRow(name, 0.0, 0.0, 0.0, 0.0) for name in ("coder: executes", "tester: valid tests")]
    assert "every measure is 0 before and after training" in as_table(nothing)
    assert "0.000" not in as_table(nothing)
    some = as_table([*nothing, ResultRow("coder: golden pass rate", 0.0, 0.5, 0.25, 0.75)])
    assert "+0.500  [+0.250, +0.750]" in some
    assert some.splitlines()[-1] == "0 before and after training: coder: executes, tester: valid tests"


def test_samples_repeat_and_leave_the_global_stream_alone(tmp_path_factory: pytest.TempPathFactory) -> None:
    preset = tiny(warm_start={"steps": 0})
    tokenizer = AutoTokenizer.from_pretrained(base_model(preset, tmp_path_factory.mktemp("cache")))
    model = build_model(preset.model, tokenizer, seed=3).train()
    prompter, questions = Prompter(chat_of(preset), tokenizer), miniature_problems("held_out", 3, 0)

    def said(seed: int, temperature: float = 1.0, samples: int = 2) -> list[list[str]]:
        sampler = Sampler(LoadedModel(model, tokenizer, preset), prompter, SamplerSettings(8, temperature, seed))
        return sampler.coder([CoderRequest(problem) for problem in questions], samples)

    before = torch.get_rng_state()
    first = said(5)
    assert torch.equal(before, torch.get_rng_state())
    assert model.training, "as it was found"
    assert [len(responses) for responses in first] == [2, 2, 2]
    assert first == said(5) != said(6)
    model.generation_config.update(min_new_tokens=8, no_repeat_ngram_size=1, min_p=0.9, repetition_penalty=3.0)
    assert first == said(5), "what a model's authors recommend does not count"
    assert model.generation_config.min_p == 0.9, "as it was found"
    assert said(5, temperature=0.0, samples=1) == said(9, temperature=0.0, samples=1)


def test_problems_without_golden_tests_say_nothing_about_them(arena: Arena) -> None:
    unproven = dataclasses.replace(LENGTH, problem_id="no golden tests", golden_tests=())
    some, none = (evaluate_coder(arena, each, scripted(NO_EMPTY), 1) for each in ([unproven, LENGTH], [unproven]))
    assert some.golden == (1.0,), "only of the problem that has some"
    assert "golden_pass_rate" not in none.summary()
    assert "coder: golden pass rate" not in {row.name for row in compare(MeasuredSeats(none), MeasuredSeats(none))}


def seat(name: str, number: int, generating: float, waiting: float, learning: float) -> dict[str, Any]:
    parts = {"seconds_generating": generating, "seconds_waiting": waiting, "seconds_learning": learning}
    return {"kind": "seat", "seat": name, "round": number} | parts


PARTS = {"kind": "round", "seat": "", "seconds_parsing": 0.05, "seconds_judging": 0.12, "seconds_rewarding": 0.03}
EVALUATED = {"kind": "evaluation", "seat": "coder", "round": 0}


def test_shares_of_time_are_of_the_longest_seats_median_round_and_training_of_all_starts_of_a_run() -> None:
    """By hand: the coder's median round is 0.5 + 1.2 + 0.3 = 2 s, the tester's 0.8 + 0.6 + 0.4 = 1.8 s."""
    tester = [seat("tester", n, generating=0.8, waiting=0.6, learning=0.4) for n in (1, 2, 3)]
    coder = [seat("coder", n, generating=0.5, waiting=w, learning=0.3) for n, w in ((1, 1.2), (2, 1.1), (3, 9.0))]
    scored = [PARTS | {"round": n, "seconds_scoring": s} for n, s in ((1, 0.2), (2, 0.1), (3, 0.3))]
    spent = cost({"training": 10.0}, [*coder, *tester, *scored])
    assert spent.shares() == pytest.approx({"coder waiting": 0.6, "tester waiting": 1 / 3, "environment": 0.1})
    assert "a round of the coder: 2.00 s = generating 0.50 + waiting 1.20 + learning 0.30" in str(spent)
    part = "the environment's share of a round: 10.0% (0.200 s: parsing 0.050, judging 0.120, rewarding 0.030)"
    assert part in str(spent)
    # Two rounds were played before the last start, of 2 and 1.8 s for the slower seat; the third is timed.
    coder[1] = seat("coder", 2, generating=0.5, waiting=0.1, learning=0.3)
    records = [*coder, *tester, EVALUATED]
    assert cost({"training": 10.0}, records, 2).seconds == {"training": pytest.approx(13.8)}
    assert cost({"training": 10.0}, records).seconds == {"training": 10.0}
    without_rounds = cost({"evaluation": 1.0}, [EVALUATED])
    assert without_rounds.shares() == {}
    assert "round" not in str(without_rounds)


def test_a_saved_model_that_was_measured_does_not_stay_where_its_seat_trains(monkeypatch: pytest.MonkeyPatch) -> None:
    held = list[str]()

    def load(role: str, directory: Path) -> Any:
        held.append(role)
        return SimpleNamespace(let_go=lambda: held.remove(role))

    def measured(self: Gauge, role: str, model: object, problems: object) -> str:
        assert held == [role]
        return role

    monkeypatch.setattr(Gauge, "_measure", measured)
    nothing: Any = None
    found = Gauge(nothing, tiny(), (), nothing, load).measured(Path("a"), Path("b"))
    assert (found, held) == (MeasuredSeats("coder", "tester"), [])  # type: ignore[arg-type]
