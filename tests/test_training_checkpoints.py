"""Checkpoints: a half-written one is never taken, and none goes that another seat still needs. The run's directory."""

import dataclasses
import os
import re
import resource
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from safetensors.torch import save_file

from codea1_env import ConfigurationError, FormatError, bundled_problems, whole_files
from codea1_env.configuration.algorithm import Algorithm
from codea1_env.configuration.arguments import RecipeArguments, exit_status, parse_arguments
from codea1_env.configuration.model_sections import LoraPreset
from codea1_env.configuration.options import Options
from codea1_env.configuration.presets import SMOKE, Preset, preset_from_dict
from codea1_env.records.metrics_file import read_metrics
from codea1_env.training.run.checkpoints import UnusableCheckpoint, forget_old, latest_common, mark_complete, rounds_of
from codea1_env.training.run.provenance import code_revision, processor
from codea1_env.training.run.run_dir import Run
from codea1_env.whole_files import write_whole

SEATS, POLICIES = ("coder", "tester"), "mistake_book.policies"
TWO_UPDATES = preset_from_dict({"round": {"updates": 2}}, SMOKE)


def save(output: Path, rounds: int, *, complete: bool = True) -> Path:
    checkpoint = output / f"checkpoint-{2 * rounds}"  # two updates a round
    (checkpoint / "parts").mkdir(parents=True)
    (checkpoint / "model.safetensors").write_bytes(b"weights" * rounds)
    (checkpoint / "parts" / "0").write_bytes(b"part")
    if complete:
        mark_complete(checkpoint, rounds, "adamw")
    return checkpoint


def outputs(directory: Path) -> dict[str, Path]:
    return {seat: directory / seat for seat in SEATS}


def save_all(directory: Path, *rounds: int) -> None:
    for each in rounds:
        for output in outputs(directory).values():
            assert rounds_of(save(output, each)) == each


DAMAGES: dict[str, Callable[[Path], Any]] = {
    "no marker": lambda path: (path / "complete.json").unlink(),
    "a marker without files": lambda path: (path / "complete.json").write_text('{"rounds": 2}'),
    "a marker of nothing": lambda path: (path / "complete.json").write_text('{"rounds": 2, "files": {}}'),
    "a marker that is a list": lambda path: (path / "complete.json").write_text("[]"),
    "a truncated file": lambda path: os.truncate(path / "model.safetensors", 3),
    "a changed file": lambda path: (path / "model.safetensors").write_bytes(b"WEIGHTSweights"),
    "a lost file": lambda path: (path / "parts" / "0").unlink(),
    "a lost directory": lambda path: shutil.rmtree(path / "parts"),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
@pytest.mark.parametrize("seat", SEATS)
def test_a_damaged_checkpoint_is_skipped(tmp_path: Path, seat: str, damage: Callable[[Path], Any], caplog: Any) -> None:
    save_all(tmp_path, 1, 2)
    assert latest_common(outputs(tmp_path)) == {name: tmp_path / name / "checkpoint-4" for name in SEATS}
    damage(tmp_path / seat / "checkpoint-4")
    with pytest.raises(UnusableCheckpoint):
        rounds_of(tmp_path / seat / "checkpoint-4")
    assert latest_common(outputs(tmp_path)) == {name: tmp_path / name / "checkpoint-2" for name in SEATS}
    assert f"{seat}/checkpoint-4" in caplog.text


def test_a_round_counts_when_all_seats_have_it(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for seat, rounds in (("coder", 1), ("tester", 2)):
        save(tmp_path / seat, rounds)
        assert latest_common(outputs(tmp_path)) == {}
    save(tmp_path / "coder", 2)
    assert latest_common(outputs(tmp_path))["coder"].name == "checkpoint-4"
    save_all(tmp_path / "other", 1, 2)
    save(tmp_path / "other" / "tester", 3)
    mark_complete(tmp_path / "other" / "tester" / "checkpoint-6", 2, "adamw")
    assert {path.name for path in latest_common(outputs(tmp_path / "other")).values()} == {"checkpoint-2"}
    assert "a checkpoint of round 2 is left out: all seats must have as many steps, got 4 and 6" in caplog.text


def a_run(directory: Path, *, resume: bool = False, seats: Any = SEATS, preset: Preset = TWO_UPDATES) -> Run:
    return Run(RecipeArguments(preset, directory, 7, resume), seats)


def is_refused(must: str, directory: Path, **how: Any) -> None:
    with pytest.raises(ConfigurationError, match=must):
        a_run(directory, **how)


EDITED: tuple[tuple[dict[str, Any], str], ...] = (
    ({"lora": LoraPreset(rank=8, alpha=8.0)}, "lora.rank of a resumed run must be 4, as in "),
    ({"lora": LoraPreset(rank=4, alpha=9.0)}, "lora.alpha of a resumed run must be 8, as in "),
    ({"round": SMOKE.round}, "round.updates of a resumed run must be 2, as in "),
    ({"algorithm": Algorithm(optimizer="torch.optim:SGD")}, "algorithm.optimizer of a resumed run must be adamw"),
    ({"trainer": "trl"}, "trainer of a resumed run must be packed, as in "),
    ({"options": Options(opponents="uniform")}, "options.opponents of a resumed run must be latest, as in "),
    ({"options": Options(tester_book=1)}, "options.tester_book of a resumed run must be 0, as in "),
)


def test_an_edited_configuration_is_held_against_checkpoints(tmp_path: Path) -> None:
    preset = dataclasses.replace(TWO_UPDATES, trainer="packed", lora=LoraPreset(rank=4, alpha=8.0), rounds=3)
    a_run(tmp_path, preset=preset).__exit__()
    for output in outputs(tmp_path).values():
        checkpoint = save(output, 2, complete=False)
        (checkpoint / "trainer.pt").touch()
        (checkpoint / "adapter_config.json").write_text('{"r": 4, "lora_alpha": 8.0}')
        mark_complete(checkpoint, 2, "adamw")
    with a_run(tmp_path, preset=preset, resume=True) as run:
        assert run.rounds_done == 2
    before = (tmp_path / "config.yaml").read_text()
    for edited, must in EDITED:
        is_refused(rf"\A{must}", tmp_path, preset=dataclasses.replace(preset, **edited), resume=True)
        assert (tmp_path / "config.yaml").read_text() == before
    for edited, _ in EDITED[5:]:  # of a recipe in which nobody plays the past
        a_run(tmp_path, preset=dataclasses.replace(preset, **edited), resume=True, seats=("tester",)).__exit__()


@pytest.mark.parametrize("keep", [1, 2])
def test_no_checkpoint_goes_before_the_last_rounds_of_all_seats_are_kept(tmp_path: Path, keep: int) -> None:
    coder, tester = outputs(tmp_path).values()
    for rounds in (1, 2, 3, 4):
        save(coder, rounds)
        forget_old(coder, (coder, tester), keep)
    assert len(list(coder.iterdir())) == 4, "the other seat has none of them yet"
    for rounds in (1, 2, 3):
        save(tester, rounds)
        for each in (tester, coder):
            forget_old(each, (coder, tester), keep)
            assert latest_common(outputs(tmp_path))[each.name].name == f"checkpoint-{2 * rounds}"
    assert sorted(path.name for path in tester.iterdir()) == [f"checkpoint-{2 * r}" for r in range(4 - keep, 4)]
    alone = tmp_path / "unfinished"  # do not count as kept, and go with their time
    for rounds in (1, 2, 3, 4):
        save(alone, rounds, complete=rounds in (2, 3))
    forget_old(alone, [alone], 2)
    assert sorted(path.name for path in alone.iterdir()) == ["checkpoint-4", "checkpoint-6", "checkpoint-8"]


def test_a_run_says_what_it_needs_to_be_read_years_later(tmp_path: Path) -> None:
    problems = bundled_problems()
    with a_run(tmp_path) as run:
        run.set_problems(problems[:3], problems[3:])
        assert [run.seat(seat, tmp_path).seed for seat in SEATS] == [14, 15], "no two seats of two runs draw alike"
    a_run(tmp_path, resume=True).__exit__()
    record = yaml.safe_load((tmp_path / "config.yaml").read_text())
    assert (record["seed"], record["preset"]) == (7, TWO_UPDATES.to_dict())
    assert len(record["data"]["train"]) == 64
    assert record["data"]["train"] != record["data"]["held_out"]
    assert len(record["starts"]) == 2
    running = {"torch": torch.backends.cpu.get_cpu_capability(), "threads": torch.get_num_threads()}
    for start in record["starts"]:
        assert (start["engine"], bool(start["platform"] and start["processor"]["model"])) == ("local", True)
        assert {"python", "torch", "transformers", "trl", "accelerate", "numpy", "codea1-env"} <= set(start["versions"])
        assert start["processor"].items() >= running.items()
    described = (tmp_path / "RUN.md").read_text()
    assert [path.name for path in tmp_path.iterdir() if path.name not in described] == ["RUN.md"]
    assert "told" not in processor({})
    assert processor({"ATEN_CPU_CAPABILITY": "avx2", "HOME": "/"})["told"] == {"ATEN_CPU_CAPABILITY": "avx2"}
    assert code_revision(tmp_path) == {}


def test_a_checkout_is_dirty_where_code_or_configuration_differs_and_not_by_what_commands_leave(tmp_path: Path) -> None:
    for folder in ("package/new", "ignored"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "package" / "module.py").write_text("x = 1\n")
    (tmp_path / ".gitignore").write_text("ignored/\n")
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(tmp_path)]
    for arguments in (["init"], ["add", "-A"], ["commit", "-m", "first"]):
        subprocess.run([*git, *arguments], check=True, capture_output=True)
    for path in ("games.jsonl", "page.html", "ignored/own.py"):
        (tmp_path / path).write_text("x = 2\n")
    found = code_revision(tmp_path / "package")
    assert (len(found["git"]), found["dirty"]) == (40, False)
    for path in ("mine.py", "package/new/own.py", "arms.yaml", "package/module.py"):  # the last one is tracked
        (tmp_path / path).write_text("x = 2\n")
        assert code_revision(tmp_path / "package")["dirty"], path
        (tmp_path / path).unlink()


def test_a_run_under_other_code_or_on_another_processor_says_so(tmp_path: Path, caplog: Any, monkeypatch: Any) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    for name, module, built_in in (("reward", "rewards.tester_rewards", "CodeA1"), ("policy", POLICIES, "Counting")):
        code = f"from codea1_env.{module} import {built_in}\nclass Mine({built_in}): pass\n"
        (tmp_path / f"mine_{name}.py").write_text(code)
    own = {"reward": {"tester_reward": "mine_reward:Mine"}, "book": {"policy": "mine_policy:Mine"}}
    preset, run = preset_from_dict(own, TWO_UPDATES), tmp_path / "run"
    a_run(run, preset=preset).__exit__()
    save_all(run, 1)
    a_run(run, preset=preset, resume=True).__exit__()
    assert "resumed under other conditions" not in caplog.text
    (tmp_path / "mine_reward.py").write_text((tmp_path / "mine_reward.py").read_text() + "# edited\n")
    a_run(run, preset=preset, resume=True).__exit__()
    assert "resumed under other conditions (the code of mine_reward:Mine " in caplog.text
    last = (record := yaml.safe_load((run / "config.yaml").read_text()))["starts"][-1]
    assert set(last["own_code"]) == {"mine_reward:Mine", "mine_policy:Mine"}
    here, threads = last["processor"]["instructions"], torch.get_num_threads()
    last["processor"] |= {"instructions": "sse2", "threads": 77}
    (run / "config.yaml").write_text(yaml.safe_dump(record))
    a_run(run, preset=preset, resume=True).__exit__()
    assert f"(processor: instructions sse2, now {here}; processor: threads 77, now {threads})" in caplog.text
    assert len(yaml.safe_load((run / "config.yaml").read_text())["starts"]) == 4


def test_a_resumed_run_refuses_other_problems_and_another_base(tmp_path: Path) -> None:
    problems = bundled_problems()
    for base, weights in (("one", b"1"), ("copy", b"1"), ("other", b"2")):
        (tmp_path / base).mkdir()
        (tmp_path / base / "model.safetensors").write_bytes(weights)
    for base in ("one", "copy"):
        with a_run(tmp_path / "run", resume=base == "copy") as run:
            run.set_problems(problems[:3], problems[3:])
            run.set_base(tmp_path / base)
            save_all(tmp_path / "run", *([1] if base == "one" else []))
    with a_run(tmp_path / "run", resume=True) as run:
        with pytest.raises(ConfigurationError, match="the problems of a resumed run must be those it had"):
            run.set_problems(problems[:2], problems[3:])
        assert len(yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())["base"]) == 64
        with pytest.raises(ConfigurationError, match=r"base model .* must be the one it had, .* got .*other"):
            run.set_base(tmp_path / "other")


def test_a_resumed_run_forgets_what_came_after_its_checkpoint(tmp_path: Path) -> None:
    with a_run(tmp_path) as run:
        for kind, rounds in (("evaluation", 0), ("round", 1), ("evaluation", 1), ("round", 2), ("evaluation", 2)):
            run.log(kind, rounds, {"value": 1.0})
        save_all(tmp_path, 1)
        save(tmp_path / "coder", 2)
    (tmp_path / "tester" / "checkpoint-4").write_text("no directory")
    (tmp_path / "coder" / "checkpoint-6" / "complete.json").mkdir(parents=True)
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write('{"kind": "seat", "rou')  # killed in the middle of a line
    (tmp_path / "duels").mkdir()
    for name in ("round-1.jsonl", "round-2.jsonl", "round-10.jsonl", "round-1.jsonl.partial", "notes.txt"):
        (tmp_path / "duels" / name).touch()
    for name in (".config.yaml.0123abcd.tmp", ".hidden_tests.json.0123abcd.tmp", ".mine.tmp"):
        (tmp_path / name).touch()
    with a_run(tmp_path, resume=True) as run:
        assert run.rounds_done == 1
        assert [(r["kind"], r["round"]) for r in run.records()] == [("evaluation", 0), ("round", 1), ("evaluation", 1)]
        assert not [*tmp_path.glob("*/checkpoint-[46]")]
        assert run.checkpoint("coder") == tmp_path / "coder" / "checkpoint-2"
        for kind in ("round", "evaluation"):
            run.log(kind, 2, {"value": 2.0})
        save_all(tmp_path, 2)
    assert sorted(file.name for file in (tmp_path / "duels").iterdir()) == ["notes.txt", "round-1.jsonl"]
    assert [path.name for path in tmp_path.glob(".*.tmp")] == [".mine.tmp"], "halves of files of a killed start"
    with a_run(tmp_path, resume=True) as run:
        last = [record["kind"] for record in run.records() if record["round"] == 2]
        assert last == ["round"], "the last evaluation of a finished run is made again"


def test_a_run_that_lost_its_checkpoints_is_refused_and_one_without_begins_again(tmp_path: Path, caplog: Any) -> None:
    with a_run(tmp_path) as run:
        run.log("round", 1, {"value": 1.0})  # a checkpoint follows it, and may not have been reached
        save(tmp_path / "coder", 1)
    with a_run(tmp_path, resume=True) as run:
        assert run.records() == []
        assert "has no checkpoint yet, so the run begins again with its first round" in caplog.text
        for rounds in (1, 2):
            run.log("round", rounds, {"value": 1.0})
    must = "must find a whole checkpoint of the same round in coder and tester, got none in .*"
    is_refused(f"{must}, of which 2 rounds", tmp_path, resume=True)
    assert len((tmp_path / "metrics.jsonl").read_text().splitlines()) == 2, "the record stays as it was"
    (tmp_path / "metrics.jsonl").unlink()
    (tmp_path / "tester" / "final").mkdir(parents=True)
    is_refused(must, tmp_path, resume=True)
    (tmp_path / "tester" / "final").rmdir()
    save_all(tmp_path, 1)
    a_run(tmp_path, resume=True).__exit__()
    shutil.rmtree(tmp_path / "tester")
    is_refused(must, tmp_path, resume=True)


FULL = ("a run must have room for its files, got ", "; make room and --resume it, or name another --output\n")
UNWRITABLE = ("a run's directory must be one that can be written, got ", "; name another --output\n")
NO_ROOM: dict[str, tuple[Callable[[Path], Any], tuple[str, str]]] = {
    "no such folder": (lambda path: a_run(Path("/proc/codea1")), UNWRITABLE),
    "a file for a folder": (lambda path: a_run(Path(__file__) / "run"), UNWRITABLE),
    "a link to itself": (lambda path: (path / "link").symlink_to("link") or a_run(path / "link"), UNWRITABLE),
    "a folder for a text": (
        lambda path: path.read_text(),
        ("/", " must be accessible, got: Is a directory; check its path and permissions\n"),
    ),
    "text": (lambda path: write_whole(path / "text", " " * (1 << 18)), FULL),
    "torch": (lambda path: torch.save(torch.zeros(1 << 16), path / "saved.pt"), FULL),
    "torch's end": (lambda path: torch.save(torch.zeros((1 << 14) - 200), path / "saved.pt"), FULL),
    "safetensors": (lambda path: save_file({"weight": torch.zeros(1 << 16)}, path / "model.safetensors"), FULL),
}


@pytest.mark.parametrize("what", NO_ROOM)
def test_a_run_whose_files_cannot_be_used_ends_in_one_line(
    what: str, tmp_path: Path, monkeypatch: Any, capsys: Any
) -> None:
    monkeypatch.setattr("sys.argv", ["agents/train_grpo.py"])
    write, (begins, ends) = NO_ROOM[what]
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, before[1]))  # no more fits in a file
    try:
        assert exit_status(lambda: int(bool(write(tmp_path)))) == 1
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    said = capsys.readouterr().err
    assert said.startswith(f"train_grpo.py: {begins}")
    assert said.endswith(ends)
    assert len(said.splitlines()) == 1


def test_a_second_new_run_in_a_directory_leaves_the_first_ones_results(tmp_path: Path, monkeypatch: Any) -> None:
    """Both were given it while it was empty: while the first one runs, and when it has ended."""
    monkeypatch.setattr(whole_files, "WAIT_S", 0.2)
    with a_run(tmp_path) as first:
        first.log("round", 1, {"score": 0.5})
        is_refused("the run must not be in use by another process", tmp_path)
    before = everything(tmp_path)
    is_refused(r"must be a new or empty directory, got .*; to go on with it", tmp_path)
    assert everything(tmp_path) == before


def everything(directory: Path) -> dict[Path, bytes]:
    """What is in a run's directory, but for its lock."""
    files = [path for path in directory.rglob("*") if path.is_file() and path.name != "lock"]
    return {path: path.read_bytes() for path in files}


def refused(directory: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """What `--resume` says, as a recipe does; nothing in the directory has changed."""
    (directory / "failure.txt").write_text("of the start before")
    before = everything(directory)
    capsys.readouterr()

    try:
        status: Any = exit_status(lambda: bool(Run(parse_arguments("", ["--resume", str(directory)]), SEATS)))
    except SystemExit as ended:
        status = ended.code
    assert status == 2
    assert everything(directory) == before
    return capsys.readouterr().err.splitlines()[-1]


NO_RECORDS = (
    b"nonsense", b"3", b"[]", b"{}", b"", b"\xff\0", b"[" * 100_000, b'{"kind": "round", "round": 1}',
    *(b'{"kind": "round", "seat": "", "round": %s}' % round for round in (b"null", b'"x"', b"1.5", b"true")),
    b'{"kind": "round", "seat": "", "round": 1, "seconds_scoring": "x"}',
)  # fmt: skip


def test_what_is_no_record_ends_a_resumed_run_by_name(tmp_path: Path, capsys: Any, caplog: Any) -> None:
    with a_run(tmp_path) as run:
        run.log("round", 1, {"value": float("nan"), "other": 1.5})
    save_all(tmp_path, 1)
    metrics = tmp_path / "metrics.jsonl"
    whole, must = metrics.read_bytes(), f"{metrics}:2 must be a record that the run wrote, got "
    for line in NO_RECORDS:
        metrics.write_bytes(whole + line + b"\n" + whole)
        with pytest.raises(FormatError, match=re.escape(must)):
            read_metrics(tmp_path)
    assert must in refused(tmp_path, capsys)
    metrics.write_bytes(whole + b"\xc3")  # killed in the middle of a line
    (tmp_path / "hidden_tests.json").write_text('{"1": {"a": 3}}')
    assert "hidden_tests.json must be the record of hidden tests that this run wrote" in refused(tmp_path, capsys)
    (tmp_path / "hidden_tests.json").unlink()
    with a_run(tmp_path, resume=True) as run:
        assert len(run.records()) == 1
    assert metrics.read_bytes() == whole
    assert "lacks rounds" not in caplog.text
    metrics.unlink()
    a_run(tmp_path, resume=True).__exit__()
    assert f"{metrics} lacks rounds 1 to 1" in caplog.text


PLACES = ("tester/final/model.safetensors", "coder/final/tokenizer.json", "book.jsonl", "curves.png", "summary.json")


@pytest.mark.parametrize("place", PLACES)
def test_a_folder_in_a_results_place_is_refused_before_a_resumed_run_plays(place: str, tmp_path: Path, capsys: Any):
    a_run(tmp_path).__exit__()
    save_all(tmp_path, 1)
    (tmp_path / place).mkdir(parents=True)
    (tmp_path / place / "mine").touch()
    must = f"{tmp_path / place} must be a file, or nothing yet, got a directory; move it away"
    assert refused(tmp_path, capsys).endswith(must)
    shutil.rmtree(tmp_path / place)
    shutil.rmtree(tmp_path / "coder" / "final", ignore_errors=True)
    (tmp_path / "coder" / "final").touch()
    must = f"{tmp_path / 'coder' / 'final'} must be a directory, or nothing yet, got a file; move it away"
    assert refused(tmp_path, capsys).endswith(must)


@pytest.mark.parametrize(
    ("edited", "must"),
    [
        ({"starts": None}, "config.yaml: starts must be a list of mappings, as the run wrote it, got None"),
        ({"starts": ["x"]}, "config.yaml: starts must be a list of mappings, as the run wrote it, got ['x']"),
        ({"starts": [{"versions": 7}]}, "config.yaml: starts must be a list of mappings, as the run wrote it, got [{"),
        ({"base": 7}, "config.yaml: base must be a text, as the run wrote it, got 7"),
        ({"data": [1]}, "config.yaml: data must be a mapping, as the run wrote it, got [1]"),
        (b"[1]", "config.yaml must be a mapping with `preset` and `seed`, got [1]"),
        (b"", "config.yaml must be a mapping with `preset` and `seed`, got None"),
        (b"\xff\0", "the run's configuration must be a readable YAML file, got "),
    ],
)
def test_what_is_no_configuration_ends_a_resumed_run(edited: Any, must: str, tmp_path: Path, capsys: Any) -> None:
    a_run(tmp_path).__exit__()
    save_all(tmp_path, 1)
    file, is_raw = tmp_path / "config.yaml", isinstance(edited, bytes)
    file.write_bytes(edited if is_raw else yaml.safe_dump(yaml.safe_load(file.read_text()) | edited).encode())
    assert must in refused(tmp_path, capsys)
    if is_raw:  # where nothing has looked at it before
        is_refused(re.escape(must), tmp_path, resume=True)


def test_the_engine_of_a_resumed_run_is_its_own_unless_another_is_asked_for(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="the extra `ray` is not installed")
    Run(RecipeArguments(SMOKE, tmp_path, 0, False, "ray"), SEATS).__exit__()
    assert parse_arguments("", ["--resume", str(tmp_path)]).engine == "ray"
    assert parse_arguments("", ["--resume", str(tmp_path), "--engine", "local"]).engine == "local"
