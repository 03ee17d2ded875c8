"""The baselines in which one side does not learn by reinforcement: in this process, as their command lines run."""

import dataclasses
import functools
import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import training_runs as runs
import yaml
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, AutoTokenizer

from codea1_env import Arena, ConfigurationError, Match, MistakeBook, TestCase, read_problems
from codea1_env.configuration.presets import Preset
from codea1_env.problems.families.miniature import miniature_problems
from codea1_env.rewards.duel import Duel, JudgedTest, Status, Verdict
from codea1_env.training.loop import Recipe
from codea1_env.training.models.chat import chat_of, tokens_of
from codea1_env.training.policies import backend
from codea1_env.training.round import questions
from codea1_env.training.round.written_tests import Demonstrations, WrittenSuite, counting_tests, with_written_tests

ON_ONE_BASE = runs.tiny(**runs.PACKED, grpo={"beta": 0.0, "learning_rate": 1e-2})
with_both_trainers = pytest.mark.parametrize("preset", [runs.TINY, ON_ONE_BASE], ids=["trl", "packed"])


def trained(name: str, output: Path, *argv: str, resume: bool = False, preset: Preset = runs.TINY, **how: Any) -> Path:
    """Runs a baseline with that preset; returns its directory. `how`: as for `run_here`."""
    config = output.with_suffix(".yaml")
    if name != "base":  # what learns is looked at, not how it is measured
        preset = runs.tiny(preset, evaluation={"problems": 1, "samples": 1, "mutants": 1, "tokens": 8})
    config.write_text(yaml.safe_dump(preset.to_dict()))
    start = ["--resume", str(output)] if resume else ["--config", str(config), "--output", str(output)]
    runs.run_here(f"baselines/{name}.py", *start, *argv, **how)
    return output


@pytest.fixture
def run_recipe(bases: Path, tmp_path: Path, monkeypatch: Any, capsys: Any) -> Callable[..., Path]:
    """As `trained`, in a directory of that name."""
    how = {"cache": bases, "patch": monkeypatch, "capsys": capsys}
    return lambda name, directory, *argv, **more: trained(name, tmp_path / directory, *argv, **how, **more)


BASELINES = dict.fromkeys(("frozen_tester", "static_tests", "expert_iteration"), ("coder", 2))
BASELINES["sft"] = ("tester", 3)  # after which its loss is lower
Finished = Callable[[str, Preset], Path]
GRADED: dict[Path, Any] = {}
"""What the first round of a run of expert iteration came to."""


@pytest.fixture(scope="module")
def finished(bases: Path, base: Path, tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """Runs of a few rounds, each made when it is first asked for."""

    @functools.cache
    def run(name: str, trainer: str) -> Path:
        output = tmp_path_factory.mktemp(name) / "run"
        preset = ON_ONE_BASE if trainer == "packed" else runs.TINY
        preset = runs.tiny(preset, rounds=BASELINES[name][1], save_rounds=1, evaluation={"every_rounds": 0})
        own = ["--tester", str(base)] if name == "static_tests" else []
        with pytest.MonkeyPatch.context() as patch:
            graded = paid(patch, 1.0, 0.9) if name == "expert_iteration" else []
            trained(name, output, *own, preset=preset, cache=bases, patch=patch)
        GRADED[output] = graded[0] if graded else None
        return output

    return lambda name, preset: run(name, preset.trainer)


def problems_of_a_run() -> dict[str, Any]:
    return {problem.problem_id: problem for problem in miniature_problems("train", runs.TINY.problems.train, 0)}


def test_the_base_is_measured_in_both_seats_and_stays_as_it_is(run_recipe) -> None:
    rows = json.loads((run_recipe("base", "base") / "summary.json").read_text())["rows"]
    assert {row["name"].split(":")[0] for row in rows} == {"coder", "tester"}
    assert all(row["base"] == row["trained"] and row["low"] == row["high"] == 0 for row in rows)
    assert any(row["base"] > 0 for row in rows), "a base that can do nothing at all shows nothing here"


@pytest.mark.parametrize(
    ("name", "preset"),
    # What learns from golden tests is what learns from written ones. By the other trainer: test_training_resume.py.
    [*((name, runs.TINY) for name in BASELINES), ("sft", ON_ONE_BASE)],
    ids=lambda given: getattr(given, "trainer", given),
)
def test_one_seat_learns_and_an_interrupted_run_goes_on_as_if_nothing_had_happened(
    name: str, preset: Preset, finished: Finished, run_recipe, base: Path, tmp_path: Path, monkeypatch: Any
) -> None:
    (seat, rounds), whole, parts = BASELINES[name], finished(name, preset), tmp_path / "parts"
    runs.lose_the_last_round(whole, parts)
    if name == "expert_iteration":
        paid(monkeypatch, 1.0, 0.9)
    run_recipe(name, "parts", resume=True)
    runs.assert_same_runs(whole, parts)
    assert [len(runs.records(whole, kind, who)) for kind, who in (("round", ""), ("seat", seat))] == [rounds] * 2
    assert sorted(each.parent.name for each in whole.glob("*/final")) == [seat]
    starts = yaml.safe_load((parts / "config.yaml").read_text())["starts"]
    assert [start["rounds_done"] for start in starts] == [0, rounds - 1], "it goes on, and does not begin again"
    assert preset != runs.TINY or not runs.same_weights(whole / seat / "final", base)
    if name == "frozen_tester":
        assert len(MistakeBook.load(whole / "book.jsonl")) == runs.records(whole, "round")[-1]["book"] > 0
        suites = {(record["valid_tests"], record["killing_tests"]) for record in runs.records(whole, "round")}
        assert len(suites) > 1, "every round has suites of its own"


def test_a_frozen_tester_that_was_replaced_does_not_go_on(run_recipe, base: Path, tmp_path: Path) -> None:
    tester = shutil.copytree(base, tmp_path / "tester")
    run_recipe("frozen_tester", "run", "--rounds", "1", "--tester", str(tester))
    weights = load_file(tester / "model.safetensors")
    save_file({name: weight + 1 for name, weight in weights.items()}, tester / "model.safetensors", {"format": "pt"})
    run_recipe("frozen_tester", "run", "--rounds", "2", resume=True, status=2)
    shutil.copy(base / "model.safetensors", tester)
    run_recipe("frozen_tester", "run", "--rounds", "2", resume=True)


@pytest.mark.parametrize("name", ["golden_tests", "frozen_tester", "static_tests"])
def test_options_about_two_learning_sides_and_no_tester_are_refused(name: str, run_recipe, tmp_path: Path) -> None:
    for option in ({"schedule": "alternating"}, {"opponents": "uniform"}, {"tester_book": 2}):
        assert not run_recipe(name, "run", preset=runs.tiny(options=option), status=2).exists()
    if name == "frozen_tester":
        assert not run_recipe(name, "none", "--tester", str(tmp_path), status=2).exists()


@with_both_trainers
def test_supervised_learning_takes_what_the_arena_validated(preset: Preset, finished, base: Path, sandbox) -> None:
    """The loss of the first round, before anything is learnt, is the mean over tokens by transformers."""
    run = finished("sft", preset)
    suites = [json.loads(line) for line in (run / "tester" / "suites.jsonl").read_text().splitlines()]
    own = problems_of_a_run()
    matches = [Match(own[row["problem_id"]], (row["program"],), ((row["suite"],),)) for row in suites]
    scores = Arena(sandbox, runs.TINY.reward).play(matches)
    assert {test.status for score in scores for test in score.suites[0][0].duel.tests} == {Status.KEPT}
    tokenizer, asked = AutoTokenizer.from_pretrained(base), []
    for place in range(preset.round.questions * preset.round.attacked * preset.round.suites):
        suite = suites[place % len(suites)]
        messages = chat_of(runs.TINY).tester(own[suite["problem_id"]], suite["program"])
        answer = tokenizer(suite["suite"], add_special_tokens=False)["input_ids"]
        asked.append((tokens_of(tokenizer, messages), [*answer, tokenizer.eos_token_id]))
    losses = [record["loss"] for record in runs.records(run, "seat", "tester")]
    assert losses[0] == pytest.approx(loss_by_transformers(base, asked), rel=1e-4)
    learnt = losses[-1] if preset is ON_ONE_BASE else loss_by_transformers(run / "tester" / "final", asked)
    assert learnt < losses[0]


def paid(patch: pytest.MonkeyPatch, *rewards: float) -> list[Any]:
    """Pay programs in turn, whatever they pass; what was graded."""
    graded, grade = list[Any](), Recipe.grade

    def pay(*given: Any) -> Any:
        score = grade(*given)
        rows = [dataclasses.replace(row, reward=rewards[i % len(rewards)]) for i, row in enumerate(score.batches[0])]
        graded.append(dataclasses.replace(score, batches=(rows,)))
        return graded[-1]

    patch.setattr(Recipe, "grade", pay)
    return graded


@with_both_trainers
def test_expert_iteration_learns_from_what_passes_all_tests(preset: Preset, finished: Finished, base: Path) -> None:
    run = finished("expert_iteration", preset)
    passed = [(row.sample.prompt, row.sample.tokens) for row in GRADED[run].batches[0][::2]]
    assert runs.records(run, "seat", "coder")[0]["loss"] == pytest.approx(loss_by_transformers(base, passed), rel=1e-4)


@with_both_trainers
def test_expert_iteration_rests_where_nothing_passes(preset: Preset, run_recipe, base: Path, monkeypatch: Any) -> None:
    paid(monkeypatch, 0.9)
    final = run_recipe("expert_iteration", "run", "--rounds", "1", preset=preset) / "coder" / "final"
    added = [tensor for name, tensor in runs.weights(final).items() if "lora_A" not in name]  # 0, as it began
    assert not any(tensor.any() for tensor in added) if preset is ON_ONE_BASE else runs.same_weights(final, base)


def loss_by_transformers(base: Path, asked: Sequence[tuple[Sequence[int], Sequence[int]]]) -> float:
    """Mean over the answers' tokens, each with its prompt alone."""
    model, total, tokens = AutoModelForCausalLM.from_pretrained(base), 0.0, 0
    for prompt, answer in asked:
        labels = torch.tensor([[-100] * len(prompt) + list(answer)])
        with torch.no_grad():
            loss = model(input_ids=torch.tensor([[*prompt, *answer]]), labels=labels).loss
        total, tokens = total + float(loss) * len(answer), tokens + len(answer)
    return total / tokens


def test_supervised_learning_has_adapters_passes_and_optimizer_as_the_configuration_says(run_recipe) -> None:
    optimizer = {"adam_beta2": 0.5, "adam_epsilon": 1e-3}
    preset = runs.tiny(lora=runs.PACKED["lora"], memory={"tester_rows_per_device": 1}, grpo=optimizer)
    checkpoint = runs.last_checkpoint(run_recipe("sft", "adapters", "--rounds", "1", preset=preset) / "tester")
    assert all("lora_" in name for name in runs.weights(checkpoint))
    (group, *_) = runs.param_groups(checkpoint)
    assert (group["betas"][1], group["eps"]) == (0.5, 1e-3)
    arguments = torch.load(checkpoint / "training_args.bin", weights_only=False)
    rows = preset.round.questions * preset.round.attacked * preset.round.suites // preset.round.updates
    assert (arguments.per_device_train_batch_size, arguments.gradient_accumulation_steps) == (1, rows)


class Onwards(questions.Shuffled):
    """Goes on from where it was, whatever the round."""

    rounds = 0

    def choose(self, round_index: int, count: int) -> list[int]:
        self.rounds += 1
        return super().choose(self.rounds - 1, count)

    def state(self) -> dict[str, Any]:
        return {"rounds": self.rounds}

    def restore(self, state: Any) -> None:
        self.rounds = state["rounds"]


def test_a_resumed_run_of_sft_learns_from_the_same_suites_whatever_chooses_the_questions(run_recipe, monkeypatch: Any):
    monkeypatch.setitem(questions.BUILT_IN, "shuffled", Onwards)
    preset = runs.tiny(rounds=2, save_rounds=1, evaluation={"every_rounds": 0}, problems={"train": 8})
    run = run_recipe("sft", "run", preset=preset)
    suites = (run / "tester" / "suites.jsonl").read_text()
    shutil.rmtree(run / "tester" / "final")
    (run / "summary.json").unlink()
    run_recipe("sft", "run", resume=True)
    assert (run / "tester" / "suites.jsonl").read_text() == suites != ""


def test_a_tokenizer_without_an_end_is_refused(tmp_path: Path) -> None:
    prompts: Any = SimpleNamespace(chat=chat_of(runs.TINY), tokenizer=SimpleNamespace(eos_token_id=None))
    with pytest.raises(ConfigurationError, match="its tokenizer must have an eos_token, got none"):
        Demonstrations([], prompts, tmp_path)


@pytest.mark.parametrize("name", ["sft", "static_tests"])
def test_a_tester_that_no_program_can_be_put_to_ends_the_run_in_one_line(name: str, run_recipe) -> None:
    run_recipe(name, "run", preset=runs.tiny(round={"tester_prompt_tokens": 1}), status=2)


def test_models_beside_the_policies_are_where_their_seat_is(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend, "load_model", lambda directory, preset, device: device)
    on_gpu = runs.tiny(placement={"tester": {"gpus_per_node": 1}})
    for preset, device in ((runs.TINY, "cpu"), (on_gpu, "cuda")):
        assert backend.LocalBackend(preset, base).model("tester", base) == device


def test_static_supervision_pays_for_the_tests_that_a_tester_wrote(finished: Finished, base: Path) -> None:
    output, own = finished("static_tests", runs.TINY), problems_of_a_run()
    assert yaml.safe_load((output / "config.yaml").read_text())["tester"] == str(base)
    written = read_problems(output / "coder" / "golden_tests.jsonl")
    assert any(problem.golden_tests for problem in written)
    for problem in written:
        assert dataclasses.replace(own[problem.problem_id], golden_tests=problem.golden_tests) == problem


def test_what_ran_on_the_program_counts_with_the_value_that_was_used() -> None:
    kept = JudgedTest("assert f(1) == 1", Status.KEPT, "", "f(1)", "1", "1", Verdict.PASS)
    corrected = JudgedTest("assert f(2) == 9", Status.WRONG_EXPECTED, "", "f(2)", "9", "4", Verdict.FAIL)
    uncorrected = dataclasses.replace(corrected, verdict=None)
    raises = JudgedTest("assert f(0) == 1", Status.RAISES, "", "f(0)", "1", None, None)
    duel = Duel("p", "", True, 0.0, (kept, raises, corrected), ())
    assert counting_tests(duel) == (TestCase("f(1)", "1"), TestCase("f(2)", "4"))
    assert counting_tests(dataclasses.replace(duel, tests=(kept, uncorrected))) == (TestCase("f(1)", "1"),)


def test_golden_tests_are_each_written_test_once_and_none_of_the_problems_own() -> None:
    one, other = miniature_problems("train", 2, 0)
    name = one.entry_point
    first, second = TestCase(f"{name}([1])", "1"), TestCase(f"{name}([])", "0")
    unreadable = TestCase(f"{name}(open('x'))", "0")
    written = [WrittenSuite(one, "", (first, second)), WrittenSuite(one, "", (second, unreadable, first))]
    changed = with_written_tests([one, other], written)
    assert [problem.golden_tests for problem in changed] == [(first, second), ()]
