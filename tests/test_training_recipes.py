"""The recipes and the example in this process, with their command lines. (As users start one: test_own_algorithm.)"""

import contextlib
import dataclasses
import io
import json
import re
import shutil
import sysconfig
import threading
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from huggingface_hub.errors import LocalEntryNotFoundError
from training_runs import PACKED, ROOT, SEATS, TINY, logged_names, play_duel, records, run_here, tiny

from codea1_env import bundled_problems, read_problems, write_problems
from codea1_env.configuration.arguments import read_configuration
from codea1_env.configuration.presets import load_preset
from codea1_env.configuration.run_sections import ProblemFiles


@pytest.fixture
def here(bases: Path, monkeypatch: Any, capsys: Any) -> Callable[..., str]:
    return partial(run_here, cache=bases, patch=monkeypatch, capsys=capsys)


@pytest.fixture(scope="module")
def finished(bases: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    output, printed = tmp_path_factory.mktemp("runs") / "smoke", io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(printed):
        argv = ("agents/train_grpo.py", "--preset", "smoke", "--output", str(output))
        run_here(*argv, cache=bases, patch=patch, draws=True)
    return output, printed.getvalue()


def measured(output: Path) -> set[str]:
    """The seats of which there is a measure."""
    return {seat for kind, seat, _ in logged_names(output) if kind == "evaluation"}


def test_the_main_recipe_leaves_all_that_it_promises(finished: tuple[Path, str]) -> None:
    output, printed = finished
    assert "held-out problems: every measure is 0 before and after training" in printed
    assert measured(output) == {"coder", "tester"}
    finals = [f"{seat}/final/{name}" for seat in SEATS for name in ("model.safetensors", "tokenizer.json")]
    for name in ("config.yaml", "metrics.jsonl", "book.jsonl", "summary.json", *finals):
        assert (output / name).is_file()
    for seat in SEATS:
        card = (output / seat / "final" / "README.md").read_text()
        assert f"# The {seat} of a run of Code-A1" in card
        assert not (output / seat / "README.md").exists(), "TRL's, of a model that it does not know"
    assert (output / "curves.png").read_bytes().startswith(b"\x89PNG")
    assert list((output / "tensorboard").glob("events*"))
    parts = ("seconds_generating", "seconds_waiting", "seconds_learning")
    both = zip(records(output, "seat", "coder"), records(output, "seat", "tester"), strict=True)
    for coder, tester in both:  # they add up to the round
        assert min(seat[part] for seat in (coder, tester) for part in parts) >= 0
        assert sum(coder[part] for part in parts) == pytest.approx(sum(tester[part] for part in parts))
    rows = json.loads((output / "summary.json").read_text())["rows"]
    assert all(row["low"] <= row["trained"] - row["base"] + 1e-9 for row in rows)


def test_a_finished_run_is_carried_further_and_the_example_plays_it(finished: Any, here: Any, monkeypatch: Any) -> None:
    threads, start, output = list[str](), threading.Thread.start, finished[0]

    def noted(thread: threading.Thread) -> None:
        library = sysconfig.get_path("stdlib")
        files = [frame.filename for frame in reversed(traceback.extract_stack()[:-1])]
        threads.append(next(file for file in files if "site-packages" in file or not file.startswith(library)))
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", noted)
    here("agents/train_grpo.py", "--resume", str(output), "--rounds", "3")
    assert threads, "those of libraries, such as tensorboard's; none is ours, and nobody is told of a run"
    assert [file for file in threads if "site-packages" not in file or "_telemetry" in file] == []
    assert [line["round"] for line in records(output, "round")] == [1, 2, 3]
    assert str(output / "gone") in here("examples/play_checkpoint.py", str(output / "gone"), status=2)
    printed = here("examples/play_checkpoint.py", str(output))
    assert all(name in printed for name in ("coder's reward", "hidden tests passed"))


def test_a_recipe_of_ones_own_says_whose_roles_it_has_and_goes_on_as_itself(here: Any, tmp_path: Path) -> None:
    """The golden tests' under another name."""
    text, mine, output = (ROOT / "baselines/golden_tests.py").read_text(), tmp_path / "mine.py", tmp_path / "run"
    for roles in ('recipe="mine"', 'recipe="mine", like="own"', 'recipe=""', 'recipe="Golden"'):
        mine.write_text(text.replace('recipe="golden"', roles))
        said = here(str(mine), "--output", str(output), status=2)
        assert said.startswith("mine.py: a recipe must be one of code_a1, frozen, self-play, golden, ")
        assert "parse_arguments(__doc__, recipe=" in said
        assert not output.exists()
    mine.write_text(text.replace('recipe="golden"', 'recipe="mine", like="golden"'))
    assert "the coder learns from golden tests" in here(str(mine), "--preset", "smoke", "--dry-run")
    printed = here(str(mine), "--preset", "smoke", "--rounds", "1", "--output", str(output))
    assert ("tester" in printed, measured(output)) == (False, {"coder"})
    assert [path.parts[-3] for path in output.glob("*/final/model.safetensors")] == ["coder"]
    assert not [*output.glob("tester"), *output.glob("duels/*.jsonl")]
    for more in ([], ["--dry-run"]):
        said = here("baselines/golden_tests.py", "--resume", str(output), *more, status=2)
        assert "--resume must be the directory of a run of this recipe, golden, got" in said
    here(str(mine), "--resume", str(output), "--rounds", "2")
    assert [line["round"] for line in records(output, "round")] == [1, 2]


def test_a_recipe_of_ones_own_trains_the_tester_alone(here: Any, tmp_path: Path) -> None:
    """A seat that takes no step is named; a frozen coder is measured as the base."""
    text, mine, output = (ROOT / "agents/train_grpo.py").read_text(), tmp_path / "mine.py", tmp_path / "run"
    changes = {
        "parse_arguments(__doc__)": 'parse_arguments(__doc__, recipe="mine", like="code_a1")',
        "zip((coder, *testers), score.batches, strict=True)": "zip(testers, score.batches[1:], strict=True)",
        'trains=("coder", "tester"), measures={"coder": "coder", ': 'trains=("tester",), measures={',
        'run.policy("coder"), run': 'run.frozen("coder", run.base), run',
    }
    for number, (was, now) in enumerate(changes.items(), start=1):
        assert was in text
        text = text.replace(was, now)
        mine.write_text(text)
        if number == 2:
            said = here(str(mine), "--preset", "smoke", "--rounds", "1", "--output", str(tmp_path / "no"), status=2)
            assert "coder must take 1 steps in each of 1 rounds, got another number; to let a seat rest, set " in said
    here(str(mine), "--preset", "smoke", "--rounds", "1", "--output", str(output))
    assert [path.parts[-3] for path in output.glob("*/final/model.safetensors")] == ["tester"]


@pytest.mark.slow
@pytest.mark.longest
def test_the_mini_preset_improves_both_seats(here: Callable[..., str], tmp_path: Path) -> None:
    """Half of its rounds reach its goal: +0.15 hidden pass rate, clear of zero, and more tests that are valid."""
    here("agents/train_grpo.py", "--output", str(tmp_path / "mini"), "--rounds", "50")
    rows = {row["name"]: row for row in json.loads((tmp_path / "mini" / "summary.json").read_text())["rows"]}
    hidden, valid = rows["coder: hidden pass rate"], rows["tester: valid tests"]
    assert hidden["trained"] - hidden["base"] >= 0.15
    assert valid["trained"] > valid["base"]
    assert min(hidden["low"], valid["low"]) > 0


def pretrained_config(directory: Path, model: Path) -> Path:
    """A preset with a saved model in the place of a pretrained one, and problems from files, one of them too long."""
    problems = bundled_problems()
    too_long = dataclasses.replace(problems[0], problem_id="too long", question="word " * 3000)
    write_problems(directory / "train.jsonl", [too_long, *problems[:6]])
    unbroken = [dataclasses.replace(problem, mutants=()) for problem in problems[6:9]]
    write_problems(directory / "held_out.jsonl", unbroken)
    sizes = shutil.copytree(model, directory / "model") / "config.json"
    sizes.write_text(json.dumps(json.loads(sizes.read_text()) | {"max_position_embeddings": 4096}))
    config = directory / "mine.yaml"
    config.write_text(
        f"extends: smoke\nname: files\nrounds: 2\nsave_rounds: 2\n"
        f"model: {{pretrained: {directory}/model, context: 4096}}\n"
        f"problems: {{file: {directory}/train.jsonl, held_out_file: {directory}/held_out.jsonl}}\n"
        "round: {coder_prompt_tokens: 2000, tester_prompt_tokens: 2000, updates: 2}\n"
        "grpo: {mask_truncated_completions: true}\n"
        "memory: {coder_rows_per_device: 1, tester_rows_per_device: 1}\n"
        "evaluation: {every_rounds: 1, problems: 2, tokens: 8, temperature: 0.7, top_p: 0.95}\n"
    )
    return config


def test_a_pretrained_model_and_problem_files_go_through_the_same_recipe(base: Path, here: Any, tmp_path: Path) -> None:
    config, output = pretrained_config(tmp_path, base), tmp_path / "run"
    here("agents/train_grpo.py", "--config", str(config), "--output", str(output))
    # What so small a model scores differs between processors and may be 0: this asks what was measured, not how much.
    assert measured(output) == {"coder"}, "there is no mutant to measure a tester on"
    assert read_configuration(output / "config.yaml")[0] == load_preset(None, config)
    assert [line["not_attacked"] for line in records(output, "round")] == [0, 0]
    for seat in SEATS:
        rounds = records(output, "seat", seat)
        assert [line["round"] for line in rounds] == [1, 2]
        assert all(0 <= line["truncated"] <= 1 for line in rounds)
        assert (output / seat / "final" / "model.safetensors").is_file()


def test_what_cannot_be_reached_or_read_ends_a_run_in_one_line_and_before_it_has_a_directory(
    base: Path, tmp_path: Path, here: Callable[..., str], monkeypatch: Any
) -> None:
    def snapshot_download(*_: object, **__: object) -> str:
        raise LocalEntryNotFoundError("No network.\nTry again.\n\nOr not.")

    config, model, at = pretrained_config(tmp_path, base), tmp_path / "model", "codea1_env.training.models.base"
    train = partial(here, "agents/train_grpo.py", "--output", str(tmp_path / "run"), "--config", str(config), status=2)
    (fits,) = read_problems(tmp_path / "held_out.jsonl")[:1]
    for role, changed in (("coder", {"question": "word " * 4000}), ("tester", {"mutants": (f"#{'x' * 20000}\n",)})):
        write_problems(tmp_path / "held_out.jsonl", [fits, dataclasses.replace(fits, problem_id="long", **changed)])
        must = "prompt and answer of a held-out question must fit into the 4096 positions of the model, got"
        assert re.search(rf"{must} \d+ \+ 8 tokens of the {role} for 'long'; leave it out, or lower", train())
    kept = config.read_text()
    for target in ("nosuch", "q_proj, nosuch"):
        config.write_text(f"{kept}lora: {{rank: 2, target: '{target}'}}\n")
        assert train().endswith("lora.target must be all-linear or names of layers of the model, got 'nosuch'")
        config.write_text(f"extends: smoke\nlora: {{rank: 2, target: '{target}'}}\n")
        assert "lora.target must be all-linear or among q_proj, " in train()
    config.write_text(kept)
    sizes = json.loads((model / "config.json").read_text())
    sizes |= {"num_hidden_layers": sizes["num_hidden_layers"] + 1, "layer_types": None}
    for file, text in (("config.json", json.dumps(sizes)), ("tokenizer.json", "{")):
        (model / file).write_text(text)
        said = train()
        assert said.startswith("train_grpo.py: --model must have ")
        assert str(model) in said
    reach = "train_grpo.py: --model must be a directory or a model within reach on the hub, got "
    assert train("--model", "no/such/model/at all").startswith(reach)
    with monkeypatch.context() as patch:
        patch.setattr(f"{at}.snapshot_download", snapshot_download)
        assert train("--model", "no/model") == f"{reach}'no/model': No network. Try again. Or not."
        (tmp_path / "snapshot").mkdir()
        patch.setattr(f"{at}.snapshot_download", lambda *_, **__: tmp_path / "snapshot")
        assert "--model must hold a config.json, got none in" in train("--model", "no/model")
    (tmp_path / "bad.jsonl").write_text("{}\n")
    files = ProblemFiles(file=str(tmp_path / "bad.jsonl"), held_out_limit=1)
    config.write_text(yaml.safe_dump(dataclasses.replace(TINY, problems=files).to_dict()))
    assert "bad.jsonl:1: the fields must include" in train()
    assert not (tmp_path / "run").exists()


def test_a_run_whose_tokens_are_spent_is_saved_there_and_goes_on_with_more(here: Any, tmp_path: Path) -> None:
    output, config = tmp_path / "run", tmp_path / "config.yaml"
    config.write_text("{extends: smoke, rounds: 3, save_rounds: 3, budget_tokens: 1, evaluation: {every_rounds: 0}}")
    here("baselines/golden_tests.py", "--config", str(config), "--output", str(output))
    assert [record["round"] for record in records(output, "evaluation", "coder")] == [0, 1]
    assert json.loads((output / "summary.json").read_text())["rounds"] == 1
    assert "| rounds | 1 |" in (output / "coder" / "final" / "README.md").read_text()
    written = output / "config.yaml"
    written.write_text(written.read_text().replace("budget_tokens: 1\n", "budget_tokens: 0\n"))
    here("baselines/golden_tests.py", "--resume", str(output))
    assert [start["rounds_done"] for start in yaml.safe_load(written.read_text())["starts"]] == [0, 1]
    assert [record["round"] for record in records(output, "round")] == [1, 2, 3]
    assert json.loads((output / "summary.json").read_text())["rounds"] == 3


def test_what_past_opponents_sample_counts_as_spent(base: Path, tmp_path: Path) -> None:
    past = {"opponents": "uniform", "opponent_share": 1.0}
    preset = tiny(**PACKED, options=past, evaluation={"every_rounds": 0, "hidden_rounds": 0})
    play_duel(tmp_path / "whole", base, rounds=2, preset=preset)
    seats = sum(records(tmp_path / "whole", "seat", seat)[0]["tokens"] for seat in SEATS)
    play_duel(tmp_path / "spent", base, rounds=2, preset=tiny(preset, budget_tokens=int(seats) + 1))
    assert [len(records(tmp_path / name, "round")) for name in ("whole", "spent")] == [2, 1]
