"""Runs on questions with fine print: the preset with a tiny model, the same bits again, and its arms' cells."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("trl", reason="the extra `train` is not installed")

import fineprint
import fineprint_table
import yaml
from training_runs import TINY, records, run_here, without_seconds

from codea1_env.configuration.model_sections import WarmStartPreset
from codea1_env.configuration.presets import load_preset
from codea1_env.evaluation.metrics import Interval
from codea1_env.training.models.warm_start import base_model

FEW = {
    "extends": "0.5b-fineprint",
    "rounds": 2,
    "save_rounds": 1,
    "problems": {"train": 4, "held_out": 3},
    "round": {"questions": 2, "programs": 2, "suites": 2, "tester_prompt_tokens": 1500, "coder_prompt_tokens": 500},
    "model": {"context": 2048},
    "lora": {"rank": 2},
    "grpo": {"coder": {"max_completion_length": 12}, "tester": {"max_completion_length": 12}},
    "evaluation": {"every_rounds": 1, "problems": 3, "samples": 1},
    "memory": {"bfloat16": False},
}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model from nothing that has places for the preset's prompts, whose letters are many tokens here."""
    shape = dataclasses.replace(TINY.model, hidden=32, heads=1, context=2048)
    preset = dataclasses.replace(TINY, model=shape, warm_start=WarmStartPreset(steps=0, problems=50))
    return base_model(preset, tmp_path_factory.mktemp("cache"))


@pytest.fixture
def few(tmp_path: Path) -> Path:
    file = tmp_path / "few.yaml"
    file.write_text(yaml.safe_dump(FEW))
    return file


def run(recipe: str, few: Path, model: Path, directory: Path, monkeypatch, capsys) -> str:  # type: ignore[no-untyped-def]
    argv = ["--config", str(few), "--model", str(model), "--output", str(directory), "--report-to", "none"]
    return run_here(recipe, *argv, cache=directory.parent / "cache", patch=monkeypatch, capsys=capsys)


def test_the_preset_comes_to_the_same_bits_again_and_shows_clauses(few, model, tmp_path, monkeypatch, capsys) -> None:  # type: ignore[no-untyped-def]
    shown = run("agents/train_grpo.py", few, model, tmp_path / "one", monkeypatch, capsys)
    run("agents/train_grpo.py", few, model, tmp_path / "other", monkeypatch, capsys)
    for seat in ("coder", "tester"):
        files = [tmp_path / name / seat / "final" / "adapter_model.safetensors" for name in ("one", "other")]
        assert files[0].read_bytes() == files[1].read_bytes()
    assert without_seconds(records(tmp_path / "one", "round")) == without_seconds(records(tmp_path / "other", "round"))
    for heading in ("coder, by clause", "tester, by clause"):
        (line,) = [line for line in shown.splitlines() if line.startswith(heading)]
        assert line.split()[3:] == ["round", "0", "round", "1", "round", "2"]
    assert "  empty " in shown
    evaluations = records(tmp_path / "one", "evaluation", "coder")
    assert [record["round"] for record in evaluations] == [0, 1, 2]
    assert all({"clause_empty", "clause_plain"} <= set(record) for record in evaluations)


@pytest.mark.parametrize("recipe", ["golden_tests", "frozen_tester", "self_play"])
def test_the_preset_is_the_baselines_too(recipe, few, model, tmp_path, monkeypatch, capsys) -> None:  # type: ignore[no-untyped-def]
    shown = run(f"baselines/{recipe}.py", few, model, tmp_path / "run", monkeypatch, capsys)
    assert "coder, by clause" in shown
    assert ("tester, by clause" in shown) == (recipe == "self_play")
    rows = json.loads((tmp_path / "run" / "summary.json").read_text())["rows"]
    roles = {"coder", "tester"} if recipe == "self_play" else {"coder"}
    assert {row["name"].split(":")[0] for row in rows} == roles, "what is measured before and after"


def test_no_warning_of_shared_words_comes_from_a_familys_own_split(
    few, model, tmp_path, monkeypatch, capsys, caplog
) -> None:  # type: ignore[no-untyped-def]
    """Files of the family, too: its questions share their wording by nature."""
    from codea1_env.cli import main

    for split, count in (("train", 20), ("held_out", 20)):
        argv = ["data", "family", "fineprint", "--split", split, "--count", str(count)]
        assert main([*argv, "-o", str(tmp_path / f"{split}.jsonl")]) == 0
    files = {"file": str(tmp_path / "train.jsonl"), "held_out_file": str(tmp_path / "held_out.jsonl"), "limit": 4}
    few.write_text(yaml.safe_dump({**FEW, "rounds": 1, "problems": {**files, "held_out_limit": 3}}))
    shown = run("baselines/golden_tests.py", few, model, tmp_path / "run", monkeypatch, capsys)
    assert "coder, by clause" in shown
    assert "shares" not in caplog.text


def test_the_preset_is_what_its_page_says() -> None:
    preset = load_preset("0.5b-fineprint")
    assert (preset.trainer, preset.threads, preset.problems.family) == ("packed", 1, "fineprint")
    assert preset.rounds * preset.round.questions >= 2 * preset.problems.train  # each question comes back
    assert preset.evaluation.problems == preset.problems.held_out  # the three evaluations compare


def cell(arm: str, seed: int, hidden: list[float], checkpoint: int = 0) -> dict[str, object]:
    coder = {"fineprint": {"hidden": hidden, "golden": hidden, "clauses": {"odd": hidden[:1]}}}
    point = {"checkpoint": checkpoint} if checkpoint else {"rounds": None}
    return {"arm": arm, "seed": seed, "samples": 4, "coder": coder, **point}


def test_intervals_are_over_seeds_and_questions() -> None:
    """By hand: two seeds, all right and all wrong, so that the mean of two drawn seeds is 0, 50 or 100. Below, the same
    seed and the same question are drawn twice in one of 16."""
    rows = np.array([[100.0, 100.0], [0.0, 0.0]])
    assert fineprint_table.interval(rows) == Interval(0.0, 50.0, 100.0)
    assert fineprint_table.interval(rows[:1], np.array([[50.0, 100.0]])) == Interval(0.0, 25.0, 50.0)
    cells = {"b": cell("golden", 0, [0.0, 0.0]), "c": cell("golden", 1, [0.0, 0.5]), "a": cell("base", 0, [0.0, 0.5])}
    cells |= {"d": cell("code-a1", 0, [1.0, 1.0]), "e": cell("code-a1", 0, [0.5, 1.0], checkpoint=8)}
    table = fineprint_table.arms_table(cells)
    assert table.splitlines()[0] == "| | base | golden tests, 2 seeds | Code-A1, 1 seed |"
    row = "| coder: passes all hidden tests | 25.0 [0.0, 50.0] | 12.5 [0.0, 50.0] | 100.0 [100.0, 100.0] |"
    assert row in table
    assert "| golden tests | +87.5 [+50.0, +100.0] | | |" in fineprint_table.pairs_table(cells)
    assert "| odd | 1 | 0 | 0 | 100 |" in fineprint_table.clauses_table(cells)
    assert "| Code-A1 | 75/75 |" in fineprint_table.curve_table(cells)


def test_cells_are_gathered_in_one_file_and_drawn(tmp_path: Path) -> None:
    cells = {"base-0": cell("base", 0, [0.0, 0.5]), "golden-0": cell("golden", 0, [0.0, 0.0])}
    (tmp_path / "cells").mkdir()
    for name, told in cells.items():
        (tmp_path / "cells" / f"{name}.json").write_text(json.dumps(told))
    assert fineprint_table.read_cells(tmp_path) == cells
    fineprint_table.draw(cells, tmp_path / "both.png")
    assert (tmp_path / "both.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(SystemExit, match="OUT must hold cells"):
        fineprint_table.read_cells(tmp_path / "cells")


def test_cells_are_named_by_arm_seed_and_rounds() -> None:
    assert fineprint.Cell.read("golden:1").name == "golden-1"
    assert fineprint.Cell.read("golden:1:60").name == "golden-1-60"
    for told in ("gold:1", "golden", "golden:x", "golden:1:2:3"):
        with pytest.raises(SystemExit, match="must be"):
            fineprint.Cell.read(told)


def test_a_cell_holds_plain_numbers_a_question() -> None:
    result = json.loads(json.dumps(fineprint.rounded({"b": (0.123456, 1.0), "a": ()})))
    assert result == {"a": [], "b": [0.1235, 1.0]}
