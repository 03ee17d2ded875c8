"""The benchmark: one entry from its command to the table, and what a check finds."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("trl", reason="the extra `train` is not installed")

import yaml
from fake_openai import wait_for
from training_runs import recipes_here

from codea1_env.bench import track as tracks
from codea1_env.bench.entry import RECIPES
from codea1_env.bench.files import Cell, digest_of, read_bench, write_bench
from codea1_env.bench.table import as_markdown, estimate, read_folders
from codea1_env.bench.track import LEVELS, PUBLIC, HeldOut, Track, track_of
from codea1_env.cli import main
from codea1_env.errors import ConfigurationError, FormatError
from codea1_env.judging import version
from codea1_env.judging.version import Move

ROOT = Path(__file__).parents[1]
SMALL = {
    "extends": "smoke",
    "rounds": 3,
    "budget_tokens": 1,
    "keep_duels": 0,
    "evaluation": {"every_rounds": 0, "hidden_rounds": 0, "problems": 2, "samples": 2},
    "grpo": {"max_completion_length": 8},
}
ESTIMATOR = """\
import torch
from codea1_env.training import advantages

class Signs(advantages.Estimator):
    def advantages(self, rewards, rows):
        return (rewards - rewards.nanmean()).sign().nan_to_num()
"""


@pytest.fixture(scope="module")
def entered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the base and an entry with a part of its own, on a track of random models."""
    folder = tmp_path_factory.mktemp("bench")
    with pytest.MonkeyPatch.context() as patch:
        on_small_track(folder, patch)
        recipes_here(patch)
        (folder / "mine.py").write_text(ESTIMATOR)
        arguments = ["--part", "advantage=mine:Signs", "--name", "signs", "--who", "me"]
        assert main(["bench", "run", "--budget", "tiny", *arguments, "-o", "out/signs.json"]) == 0
        assert main(["bench", "run", "base", "--budget", "tiny", "-o", "out/base.json"]) == 0
    return folder


@pytest.fixture
def out(entered: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy that a test may spoil."""
    shutil.copytree(entered, tmp_path, dirs_exist_ok=True)
    on_small_track(tmp_path, monkeypatch)
    return tmp_path / "out"


def on_small_track(folder: Path, patch: pytest.MonkeyPatch) -> None:
    patch.chdir(folder)
    (folder / "out").mkdir(exist_ok=True)
    file = folder / "small.yaml"
    file.write_text(yaml.safe_dump(SMALL))
    patch.setattr(Track, "file", property(lambda self: file))
    patch.setitem(tracks.SETS, "bands", (HeldOut("few", "miniature", 6),))  # type: ignore[arg-type]
    patch.setenv("CODEA1_CACHE", str(folder / "cache"))


def changed(file: Path, change: Any) -> None:
    """The file with a change, and a digest that knows of it."""
    record = json.loads(file.read_text())
    change(record)
    record["digest"] = digest_of(record)
    file.write_text(json.dumps(record))


def test_an_entry_says_who_what_parts_budget_versions_judge_and_cells(out: Path) -> None:
    record = json.loads((out / "signs.json").read_text())
    assert (record["name"], record["who"], record["seed"]) == ("signs", "me", 0)
    assert record["parts"]["changes"] == {"algorithm": {"advantage": "mine:Signs"}}
    assert set(record["parts"]["code"]) == {"recipe", "mine:Signs"}
    assert record["judge"] == version.VERSION
    assert {"python", "torch"} <= set(record["start"]["versions"])
    assert record["start"]["processor"]["model"]
    assert set(record["weights"]) == {"coder", "tester"}
    assert record["used"]["tokens"] > 0
    rounds = [json.loads(line) for line in (out / "signs" / "metrics.jsonl").read_text().splitlines()]
    spent = [each.get(name) or 0.0 for each in rounds for name in ("seconds_scoring", "seconds_validating")]
    assert record["used"]["environment_s"] == round(sum(spent), 1)
    assert {(cell["seat"], cell["measure"]) for cell in record["cells"]} >= {("coder", "hidden"), ("tester", "kills")}
    assert str(out) not in (out / "signs.json").read_text()


def test_a_check_finds_a_changed_cell_and_changed_weights(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = out / "signs.json"
    assert main(["bench", "check", str(file)]) == 0
    assert capsys.readouterr().out == f"{file}: holds\n"

    def better(record: dict[str, Any]) -> None:
        cell = record["cells"][0]
        cell["by_question"] = [1.0] * len(cell["by_question"])
        cell |= {"mean": 1.0, "low": 1.0, "high": 1.0}

    shutil.copy(file, out / "kept.json")
    changed(file, better)
    assert main(["bench", "check", str(file)]) == 1
    assert "few, coder: hidden must be" in capsys.readouterr().out
    shutil.copy(out / "kept.json", file)
    weights = out / "signs" / "coder" / "final" / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-2] ^= 1
    weights.write_bytes(content)
    assert main(["bench", "check", str(file)]) == 1
    assert "the weights of the coder must have the digest" in capsys.readouterr().out
    file.write_text(file.read_text().replace('"who": "me"', '"who": "you"'))
    main(["bench", "check", str(file)])
    assert "the digest is not that of the file" in capsys.readouterr().out


def test_a_check_on_other_questions_tells_the_cells(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "check", str(out / "base.json"), "--questions", "7"]) == 0
    assert "few, coder: hidden 0.000 [0.000, 0.000] on the questions of seed 7" in capsys.readouterr().err


def test_a_program_that_is_no_recipe_is_named(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (out / "idle.py").touch()
    assert main(["bench", "run", str(out / "idle.py"), "--budget", "tiny", "-o", str(out / "idle.json")]) == 1
    said = capsys.readouterr().err
    assert f"idle.py must be a recipe (docs/your-algorithm.md) and leave a run, got none in {out / 'idle'}" in said


def test_a_recipe_ends_with_a_command_that_is_killed(tmp_path: Path) -> None:
    (tmp_path / "sleeps.py").write_text("import os, time; print(os.getpid(), flush=True); time.sleep(600)")
    code = (
        "from pathlib import Path; from codea1_env.bench.entry import run_recipe; "
        "run_recipe(Path('sleeps.py'), Path('run'), config=Path('none'), seed=0, model=None)"
    )
    log = tmp_path / "run.log"
    with subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path) as command:
        assert wait_for(lambda: log.is_file() and log.read_text().endswith("\n"), 60)
        recipe = int(log.read_text())
        assert is_running(recipe)
        command.kill()
    assert wait_for(lambda: not is_running(recipe), 60)


def is_running(process: int) -> bool:
    """Whether it is there and no zombie, which has no command line."""
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes() != b""
    except OSError:
        return False


def test_the_same_command_goes_on_and_another_entry_is_refused(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = json.loads((out / "signs.json").read_text())
    parts = ["--part", "advantage=mine:Signs", "--name", "signs"]
    again = ["bench", "run", "--budget", "tiny", *parts, "-o", str(out / "signs.json")]
    assert main(again) == 2  # its modules lie in another folder than when it began
    assert "-o must be new or of the same entry" in capsys.readouterr().err
    assert json.loads((out / "signs.json").read_text()) == before


def test_a_track_has_the_same_questions_for_all_and_another_seed_has_others() -> None:
    for budget, families in tracks.BUDGETS.items():
        for family in families:
            track = track_of(budget, family)
            preset = track.preset()
            track.require_kept(preset)
            digest = track.digest()
            assert digest != track.digest(PUBLIC + 1)
            for held_out in track.sets:
                public, hidden = (held_out.draw(seed) for seed in (PUBLIC, 12345))
                assert len({problem.question for problem in (*public, *hidden)}) > 1.3 * len(public)
                trained = {p.question for p in tracks.FAMILIES[held_out.family].draw("train", 40, 0, 0.0)}
                assert not trained & {problem.question for problem in (*public, *hidden)}
    assert digest == Track(budget, family).digest()
    assert track_of("tiny", None).family == "bands"
    with pytest.raises(ConfigurationError, match="--family must be one of fineprint with --budget small"):
        track_of("small", "bands")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"problems": {"train": 300}}, "problems of an entry"),
        ({"warm_start": {"steps": 9000}}, "warm_start of an entry"),
        ({"evaluation": {"temperature": 0.0}}, "evaluation of an entry"),
        ({"model": {"hidden": 256}}, "model of an entry"),
        ({"reward": {"suite_size": 3}}, "reward.suite_size of an entry"),
        ({"extends": "mini"}, "--config must be a mapping without `extends`"),
    ],
)
def test_what_is_fixed_is_refused_before_anything_runs(
    change: dict[str, Any], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "mine.yaml"
    config.write_text(yaml.safe_dump(change))
    arguments = ["--config", str(config), "-o", str(tmp_path / "mine.json")]
    assert main(["bench", "run", "--budget", "tiny", *arguments]) == 2
    assert told in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["mine.yaml"]
    assert yaml.safe_load(config.read_text()) == change


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["nobody"], "ENTRY must be one of base, golden,"),
        ([str(ROOT / "README.md")], "or a recipe, FILE.py, got "),
        (["--part", "alpha=1"], "--part must be PART=module:Class"),
        (["base", "--part", "advantage=a:B"], "base must come without --config and --part"),
        (["--seed", "-1"], "--seed must be in"),
        (["-o", "x.txt"], "-o must be a file that ends in .json"),
        (["--model", "nowhere"], "--model must be left out for the family bands, got nowhere"),
        (["--family", "fineprint"], "--family must be one of bands, miniature"),
        (["--model", "."], "--model must be left out for the family bands, got ."),
    ],
)
def test_wrong_arguments_end_with_one_line(
    arguments: list[str], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["bench", "run", "--budget", "tiny", *arguments]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert told in line
    assert not any(tmp_path.iterdir())


def about(name: str, seed: int, **more: Any) -> dict[str, Any]:
    track = {"budget": "tiny", "family": "bands", "questions": 0, "digest": "d"}
    record = {"name": name, "who": "", "what": "", "track": track, "seed": seed, "parts": {}, "start": {}}
    used, allowed = {"tokens": 10.0, "environment_s": 5.0}, {"tokens": 20, "environment_s": 9.0}
    return record | {"used": used, "allowed": allowed, "judge": 1, "base": "b", "weights": {}} | more


def written(folder: Path, name: str, seed: int, share: float, **more: Any) -> None:
    values = tuple(float(place < share * 40) for place in range(40))
    write_bench(folder / f"{name}-{seed}.json", about(name, seed, **more), [Cell("bands", "coder", "hidden", values)])


def test_the_table_says_one_seed_and_too_few_and_over_the_budget(tmp_path: Path) -> None:
    written(tmp_path, "base", 0, 0.25)
    written(tmp_path, "one", 0, 0.5)
    for seed, share in enumerate((0.5, 0.75)):
        written(tmp_path, "two", seed, share)
    for seed, share in enumerate((0.5, 0.6, 0.7)):
        written(tmp_path, "three", seed, share, used={"tokens": 10.0, "environment_s": 10.0})
    (tmp_path / "mine").mkdir()
    (tmp_path / "one-0.json").rename(tmp_path / "mine" / "one-0.json")
    (section,) = read_folders(tmp_path, tmp_path / "mine")
    with pytest.raises(ConfigurationError, match=f"one file a seed, got {tmp_path}/base-0.json and {tmp_path}/base-0"):
        read_folders(tmp_path, tmp_path)
    table = as_markdown(section)
    assert "| | base | one, one seed | three, 3 seeds | two, 2 seeds |" in table
    assert "| 62.5 (too few) |" in table
    # Student's t of 50, 60 and 70 with 2 degrees of freedom: 60 +- 4.303 * 10 / sqrt(3)
    assert "| 60.0 [35.2, 84.8] |" in table
    assert "| +25.0 [" in table
    assert "One seed: the interval is over questions." in table
    assert "Too few: with fewer than 3 seeds" in table
    assert "three, seed 0: over the budget, 10 of 9 s of the environment" in table


def test_files_that_do_not_compare_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path, "one", 0, 0.5)
    other = about("two", 0)["track"] | {"digest": "e"}
    written(tmp_path, "two", 0, 0.5, track=other)
    with pytest.raises(ConfigurationError, match="files of tiny, bands must be of one track"):
        read_folders(tmp_path)
    (tmp_path / "two-0.json").unlink()
    monkeypatch.setattr(version, "MOVES", (Move(2, frozenset({"bands"}), "something"),))
    monkeypatch.setattr(version, "VERSION", 2)
    written(tmp_path, "two", 0, 0.5, judge=2)
    with pytest.raises(ConfigurationError, match="must be of one judge"):
        read_folders(tmp_path)
    with pytest.raises(ConfigurationError, match="got none in"):
        read_folders(tmp_path / "nothing")


def test_a_cell_whose_interval_is_another_is_refused(tmp_path: Path) -> None:
    written(tmp_path, "one", 0, 0.5)
    file = tmp_path / "one-0.json"
    for change, told in (
        (lambda record: record["cells"][0].update(mean=0.9), "mean must be that of by_question"),
        (lambda record: record["cells"][0].update(by_question=[2.0]), "a cell must have"),
        (lambda record: record.pop("weights"), "weights must be of type dict"),
        (lambda record: record["used"].update(tokens=None), "used must be numbers by name"),
        (lambda record: record.update(allowed=[]), "allowed must be of type dict"),
        (lambda record: record["parts"].update(code=[]), "parts.code must be a file and its digest by name"),
        (lambda record: record["cells"].append(record["cells"][0]), "cells must be one of each set"),
        (lambda record: record.update(codea1_bench=2), "codea1_bench must be 1"),
        (lambda record: record.pop("codea1_bench"), "must be a file that `codea1 bench run` wrote, got "),
    ):
        text = file.read_text()
        changed(file, change)
        with pytest.raises(FormatError, match=told):
            read_bench(file)
        file.write_text(text)
    record = json.loads(file.read_text())
    del record["judge"]  # as before there was a number
    file.write_text(json.dumps(record | {"digest": digest_of(record)}))
    assert (read_bench(file).record["judge"], read_bench(file).is_whole) == (1, True)


def test_files_of_one_track_have_as_many_questions_a_cell(tmp_path: Path) -> None:
    for seed, count in enumerate((40, 39)):
        cells = [Cell("bands", "coder", "hidden", (1.0,) * count)]
        write_bench(tmp_path / f"{seed}.json", about("mine", seed), cells)
    with pytest.raises(ConfigurationError, match="must have as many questions a cell"):
        read_folders(tmp_path)


def test_no_round_begins_behind_the_tokens(out: Path) -> None:
    records = [json.loads(line) for line in (out / "signs" / "metrics.jsonl").read_text().splitlines()]
    sampled = [record["tokens"] for record in records if record["kind"] == "seat"]
    assert {record["round"] for record in records if record["kind"] == "round"} == {1}
    # 2 questions, 2 programs each, and 2 suites against each program, of at most 8 tokens
    assert 0 < sum(sampled) <= (4 + 8) * 8
    assert json.loads((out / "signs.json").read_text())["used"]["tokens"] == sum(sampled)


def test_an_interval_is_over_questions_with_one_seed() -> None:
    import numpy as np

    one = np.array([[0.0, 1.0] * 20])
    found = estimate(one)
    assert found is not None
    assert found.low < found.mean == 50.0 < found.high
    assert estimate(np.repeat(one, 2, axis=0)) is None


def test_the_page_shows_what_the_committed_entries_say_and_is_short() -> None:
    page = (ROOT / "docs" / "bench.md").read_text(encoding="utf-8")
    rules = re.sub(r"<!-- (\w+): begin -->.*?<!-- \1: end -->\n\n?", "", page, flags=re.DOTALL)
    assert len(rules.splitlines()) <= 50
    small, tiny = sorted(read_folders(ROOT / "experiments/results/bench"), key=lambda section: section.track)
    assert {column.name for column in tiny.columns} == set(RECIPES)
    assert all(file.is_whole and file.record["start"]["processor"]["model"] for c in tiny.columns for file in c.files)
    table = as_markdown(tiny).split("\n\n")[1]
    assert f"<!-- bench: begin -->\n{table}\n<!-- bench: end -->" in page
    for section, track in ((tiny, track_of("tiny", "bands")), (small, track_of("small", "fineprint"))):
        assert {file.record["track"]["digest"] for c in section.columns for file in c.files} == {track.digest()}
    *others, last = (f"`{column.name}`" for column in small.columns)
    names = f"{', '.join(others)} and {last}"
    assert f"On `small` there are {names} so far" in page
    hidden = [
        row.split(" | ") for row in as_markdown(small).splitlines() if "fine print, coder: passes all hidden" in row
    ]
    base = " | ".join(cells[1] for cells in hidden[: len(LEVELS)])
    assert f"| 0.5B, 160 programs a column | {base} |" in page
