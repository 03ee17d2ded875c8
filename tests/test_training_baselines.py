"""The baselines in which one side does not learn by reinforcement: in this process, as their command lines run."""

import dataclasses
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("trl", reason="the extra `train` is not installed")

import torch
import yaml
from safetensors.torch import load_file, save_file
from training_runs import TINY, last_checkpoint, records, run_here, same_weights, without_seconds
from transformers import AutoModelForCausalLM, AutoTokenizer, Trainer

from codea1_env.arena.arena import Arena
from codea1_env.arena.match import Match
from codea1_env.configuration.model_sections import LoraPreset
from codea1_env.configuration.options import Options
from codea1_env.configuration.placement import Placement, SeatPlacement
from codea1_env.configuration.presets import Preset
from codea1_env.configuration.run_sections import MemoryPreset
from codea1_env.errors import ConfigurationError
from codea1_env.mistake_book.book import MistakeBook
from codea1_env.problems.families.miniature import miniature_problems
from codea1_env.problems.jsonl import read_problems
from codea1_env.reading.test_case import TestCase
from codea1_env.rewards.duel import Duel, JudgedTest, Status, Verdict
from codea1_env.sandbox import open_sandbox
from codea1_env.training.loop import Recipe
from codea1_env.training.models.chat import chat_of, tokens_of
from codea1_env.training.policies import backend
from codea1_env.training.round.written_tests import Demonstrations, WrittenSuite, counting_tests, with_written_tests

PACKED = dataclasses.replace(
    TINY,
    trainer="packed",
    lora=LoraPreset(rank=4, alpha=8.0),
    grpo=TINY.grpo.changed({"beta": 0.0, "learning_rate": 1e-2}),
)
with_both_trainers = pytest.mark.parametrize("preset", [TINY, PACKED], ids=["trl", "packed"])


@pytest.fixture
def run_recipe(bases: Path, base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture):
    """Runs a baseline with the tiny preset; returns its directory. The status must be 0 unless another is named."""

    def run(
        name: str, directory: str, *argv: str, resume: bool = False, status: int = 0, preset: Preset = TINY
    ) -> Path:
        output, config = tmp_path / directory, tmp_path / "tiny.yaml"
        config.write_text(yaml.safe_dump(preset.to_dict()))
        start = ["--resume", str(output)] if resume else ["--config", str(config), "--output", str(output)]
        script = f"baselines/{name}.py"
        run_here(script, *start, *argv, cache=bases, patch=monkeypatch, capsys=capsys, status=status)
        return output

    return run


def final(run: Path, seat: str) -> bytes:
    (file,) = (run / seat / "final").glob("*.safetensors")
    return file.read_bytes()


def problems_of_a_run() -> dict[str, Any]:
    return {problem.problem_id: problem for problem in miniature_problems("train", TINY.problems.train, 0)}


def test_the_base_is_measured_in_both_seats_and_stays_as_it_is(run_recipe) -> None:
    rows = json.loads((run_recipe("base", "base") / "summary.json").read_text())["rows"]
    assert {row["name"].split(":")[0] for row in rows} == {"coder", "tester"}
    assert all(row["base"] == row["trained"] and row["low"] == row["high"] == 0 for row in rows)
    assert any(row["base"] > 0 for row in rows), "a base that can do nothing at all shows nothing here"


BASELINES = {
    "frozen_tester": "coder",
    "golden_tests": "coder",
    "static_tests": "coder",
    "expert_iteration": "coder",
    "sft": "tester",
}


@pytest.mark.parametrize("name", BASELINES)
@with_both_trainers
def test_one_seat_learns_and_an_interrupted_run_goes_on_as_if_nothing_had_happened(
    name: str, preset: Preset, run_recipe, base: Path
) -> None:
    seat, rounds = BASELINES[name], ("--rounds", "3", "--save-rounds", "1")
    whole = run_recipe(name, "whole", *rounds, preset=preset)
    parts = Path(shutil.copytree(whole, whole.parent / "parts"))
    for step in (3, 2):
        (parts / seat / f"checkpoint-{step}" / "complete.json").unlink()
    for gone in ("final", "checkpoint-3"):
        shutil.rmtree(parts / seat / gone)
    (parts / "summary.json").unlink()
    run_recipe(name, "parts", resume=True)
    assert final(parts, seat) == final(whole, seat)
    for kind in ("round", "seat"):
        who = seat if kind == "seat" else ""
        mine, others = (without_seconds(records(run, kind, who)) for run in (whole, parts))
        for line in (*mine, *others):
            line.pop("tokens_per_second", None)
        assert mine == others
        assert len(mine) == 3
    assert (parts / "book.jsonl").read_bytes() == (whole / "book.jsonl").read_bytes()
    assert sorted(each.name for each in whole.iterdir() if (each / "final").is_dir()) == [seat]
    starts = yaml.safe_load((parts / "config.yaml").read_text())["starts"]
    assert [start["rounds_done"] for start in starts] == [0, 1], "it goes on, and does not begin again"
    assert preset != TINY or not same_weights(whole / seat / "final", base)
    if name == "frozen_tester":
        assert len(MistakeBook.load(whole / "book.jsonl")) == records(whole, "round")[-1]["book"] > 0
        suites = {(record["valid_tests"], record["killing_tests"]) for record in records(whole, "round")}
        assert len(suites) > 1, "every round has suites of its own"


def test_a_frozen_tester_that_was_replaced_does_not_go_on(run_recipe, base: Path, tmp_path: Path) -> None:
    tester = tmp_path / "tester"
    shutil.copytree(base, tester)
    run_recipe("frozen_tester", "run", "--rounds", "1", "--tester", str(tester))
    weights = load_file(tester / "model.safetensors")
    save_file({name: weight + 1 for name, weight in weights.items()}, tester / "model.safetensors", {"format": "pt"})
    run_recipe("frozen_tester", "run", "--rounds", "2", resume=True, status=2)
    shutil.copy(base / "model.safetensors", tester)
    run_recipe("frozen_tester", "run", "--rounds", "2", resume=True)


@pytest.mark.parametrize("name", ["golden_tests", "frozen_tester", "static_tests"])
@pytest.mark.parametrize("option", [{"schedule": "alternating"}, {"opponents": "uniform"}, {"tester_book": 2}])
def test_options_about_two_sides_that_learn_are_refused_where_one_does(
    name: str, option: dict[str, Any], run_recipe
) -> None:
    preset = dataclasses.replace(TINY, options=dataclasses.replace(TINY.options, **option))
    assert not run_recipe(name, "run", preset=preset, status=2).exists()


def test_a_frozen_tester_writes_suites_against_the_selected_programs_alone(run_recipe) -> None:
    """2 questions, 4 programs each, suites against one of them."""
    reward = dataclasses.replace(TINY.reward, coder_tests="union")
    ahead = dataclasses.replace(TINY, options=Options(selection="ahead"), reward=reward, keep_duels=2)
    run = run_recipe("frozen_tester", "ahead", "--rounds", "1", preset=ahead)
    kept = [json.loads(line) for line in (run / "duels" / "round-1.jsonl").read_text().splitlines()]
    games = [line["match"] for line in kept if "match" in line]
    assert [sorted(map(len, game["suites"])) for game in games] == [[0, 0, 0, TINY.round.suites]] * 2
    assert [record["not_attacked"] for record in records(run, "round")] == [0]


def test_supervised_learning_takes_what_the_arena_validated(run_recipe) -> None:
    run = run_recipe("sft", "run")
    rows = [json.loads(line) for line in (run / "tester" / "suites.jsonl").read_text().splitlines()]
    matches = [Match(problems_of_a_run()[row["problem_id"]], (row["program"],), ((row["suite"],),)) for row in rows]
    with open_sandbox() as sandbox:
        scores = Arena(sandbox, TINY.reward).play(matches)
    statuses = {test.status for score in scores for test in score.suites[0][0].duel.tests}
    assert statuses == {Status.KEPT}


@with_both_trainers
def test_supervised_learning_begins_at_the_loss_of_the_base(preset: Preset, run_recipe, base: Path) -> None:
    """The loss of the first round, before anything is learnt, is the mean over tokens by transformers."""
    run = run_recipe("sft", "run", "--rounds", "3", preset=preset)
    suites = [json.loads(line) for line in (run / "tester" / "suites.jsonl").read_text().splitlines()]
    count = preset.round.questions * preset.round.attacked * preset.round.suites
    tokenizer, asked = AutoTokenizer.from_pretrained(base), []
    for place in range(count):
        suite = suites[place % len(suites)]
        messages = chat_of(TINY).tester(problems_of_a_run()[suite["problem_id"]], suite["program"])
        answer = tokenizer(suite["suite"], add_special_tokens=False)["input_ids"]
        asked.append((tokens_of(tokenizer, messages), [*answer, tokenizer.eos_token_id]))
    losses = [record["loss"] for record in records(run, "seat", "tester")]
    assert losses[0] == pytest.approx(loss_by_transformers(base, asked), rel=1e-4)
    learnt = losses[-1] if preset is PACKED else loss_by_transformers(run / "tester" / "final", asked)
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
def test_expert_iteration_learns_from_the_programs_that_pass_all_tests(
    preset: Preset, run_recipe, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graded = paid(monkeypatch, 1.0, 0.9)
    run = run_recipe("expert_iteration", "run", "--rounds", "1", preset=preset)
    passed = [(row.sample.prompt, row.sample.tokens) for row in graded[0].batches[0][::2]]
    (line,) = records(run, "seat", "coder")
    assert line["loss"] == pytest.approx(loss_by_transformers(base, passed), rel=1e-4)


@with_both_trainers
def test_expert_iteration_rests_where_no_program_passes(
    preset: Preset, run_recipe, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paid(monkeypatch, 0.9)
    (file,) = (run_recipe("expert_iteration", "run", preset=preset) / "coder" / "final").glob("*.safetensors")
    started = load_file(base / "model.safetensors")
    for name, tensor in load_file(file).items():  # what an adapter adds is 0, as it began
        assert torch.equal(tensor, started[name]) if preset is TINY else "lora_A" in name or not tensor.any()


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
    preset = dataclasses.replace(
        TINY,
        lora=LoraPreset(rank=4, alpha=8.0),
        memory=MemoryPreset(tester_rows_per_device=1),
        grpo=TINY.grpo.changed({"adam_beta2": 0.5, "adam_epsilon": 1e-3}),
    )
    checkpoint = last_checkpoint(run_recipe("sft", "adapters", "--rounds", "1", preset=preset) / "tester")
    assert all("lora_" in name for name in load_file(checkpoint / "adapter_model.safetensors"))
    (group, *_) = torch.load(checkpoint / "optimizer.pt")["param_groups"]
    assert (group["betas"][1], group["eps"]) == (0.5, 1e-3)
    arguments = torch.load(checkpoint / "training_args.bin", weights_only=False)
    rows = preset.round.questions * preset.round.attacked * preset.round.suites // preset.round.updates
    assert (arguments.per_device_train_batch_size, arguments.gradient_accumulation_steps) == (1, rows)


def test_supervised_learning_does_not_take_a_step_that_makes_the_weights_useless(
    run_recipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: Any, model: Any, grad_norm: Any = None) -> Any:
        return torch.tensor(float("nan"))

    monkeypatch.setattr(Trainer, "_get_grad_norm", broken)
    directory = run_recipe("sft", "nan", "--rounds", "1", status=1)
    assert not list((directory / "tester").glob("checkpoint-*")), "none was kept"


def test_a_tokenizer_without_an_end_is_refused(tmp_path: Path) -> None:
    prompts: Any = SimpleNamespace(chat=chat_of(TINY), tokenizer=SimpleNamespace(eos_token_id=None))
    with pytest.raises(ConfigurationError, match="its tokenizer must have an eos_token, got none"):
        Demonstrations([], prompts, tmp_path)


def test_models_beside_the_policies_are_where_the_seats_placement_says(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backend, "load_model", lambda directory, preset, device: device)
    on_gpu = dataclasses.replace(TINY, placement=Placement(tester=SeatPlacement(gpus_per_node=1)))
    for preset, device in ((TINY, "cpu"), (on_gpu, "cuda")):
        assert backend.LocalBackend(preset, base).model("tester", base) == device


def test_static_supervision_pays_for_the_tests_that_a_tester_wrote_and_for_no_others(run_recipe, base: Path) -> None:
    output = run_recipe("static_tests", "static", "--tester", str(base))
    assert yaml.safe_load((output / "config.yaml").read_text())["tester"] == str(base)
    written = read_problems(output / "coder" / "golden_tests.jsonl")
    own = problems_of_a_run()
    assert sum(len(problem.golden_tests) for problem in written) > 0
    with open_sandbox() as sandbox:
        arena = Arena(sandbox)
        for problem in written:
            assert len(set(problem.golden_tests)) == len(problem.golden_tests)
            assert dataclasses.replace(problem, golden_tests=()) == dataclasses.replace(
                own[problem.problem_id], golden_tests=()
            )
            (grade,) = arena.grade(problem, [problem.reference_solution or ""], problem.golden_tests)
            assert all(verdict is Verdict.PASS for verdict in grade.verdicts)
    run_recipe("static_tests", "static", "--rounds", "3", resume=True)
    assert len(records(output, "round")) == 3


def test_a_tester_that_is_no_model_is_refused_before_anything_is_built(run_recipe, tmp_path: Path) -> None:
    output = run_recipe("frozen_tester", "none", "--tester", str(tmp_path), status=2)
    assert not output.exists()


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
