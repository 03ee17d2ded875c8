"""Training and the study end well, as test_long_runs.py has it for the other commands."""

import json
import os
import resource
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any
from unittest.mock import DEFAULT, Mock

import pytest

pytest.importorskip("scipy", reason="the extra `solve` is not installed")
import study_cells
from test_study import fake_arms, recipe, run

from codea1_env.configuration.arguments import parse_arguments
from codea1_env.errors import SandboxError
from codea1_env.sandbox import LocalSandbox
from codea1_env.training.run.run_dir import Run

ROOT = Path(__file__).parents[1]

__all__ = ["recipe"]

TRAIN = [sys.executable, "agents/train_grpo.py"]
SEATS = ("coder", "tester")


def test_a_start_that_was_killed_before_it_wrote_anything_is_no_obstacle(tmp_path: Path) -> None:
    for left in ((), (".config.yaml.0123abcd.tmp",)):
        output = tmp_path / str(len(left))
        output.mkdir()
        for name in ("lock", *left):
            (output / name).touch()
        with Run(parse_arguments("", argv := ["--preset", "smoke", "--output", str(output)]), SEATS):
            assert (output / "config.yaml").is_file()
        with pytest.raises(SystemExit):
            parse_arguments("", argv)


def test_a_finished_run_says_so_and_loads_nothing_and_a_summary_of_fewer_rounds_is_no_end(tmp_path: Path) -> None:
    with Run(parse_arguments("", ["--preset", "smoke", "--output", str(tmp_path)]), SEATS) as begun:
        begun.write_summary({"rounds": 2, "rows": []})
    code = (
        "import sys\nfrom codea1_env.configuration.arguments import parse_arguments\ntry:\n"
        f"    parse_arguments('', ['--resume', {str(tmp_path)!r}])\n"
        "except SystemExit as end:\n    sys.exit(end.code or 10 * ('torch' in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert f"{tmp_path} is finished: all 2 rounds are done and measured" in done.stderr
    assert parse_arguments("", ["--resume", str(tmp_path), "--rounds", "3"]).preset.rounds == 3
    for summary in ('{"rounds": 1}', "{}", "[]", "no JSON", '{"rounds": '):
        (tmp_path / "summary.json").write_text(summary)
        assert parse_arguments("", ["--resume", str(tmp_path)]).resume


STAGES = ("config.yaml", "metrics.jsonl", "coder/checkpoint-1", "coder/checkpoint-1/complete.json", "tester/final")


@pytest.mark.slow
@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("how", ["SIGKILL", "SIGINT", "full"])
def test_a_training_run_that_ends_at_any_stage_goes_on(how: str, stage: str, bases: Path, tmp_path: Path) -> None:
    output, own = tmp_path / "run", os.environ | {"CODEA1_CACHE": str(bases)}
    options: dict[str, Any] = {"cwd": ROOT, "env": own, "stderr": subprocess.PIPE, "text": True}
    command = [*TRAIN, "--preset", "smoke", "--output", str(output), "--rounds", "3"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, **options)
    while process.poll() is None and not (output / stage).exists():
        time.sleep(0.002)
    if how == "full":
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (0, 0))
    else:
        process.send_signal(getattr(signal, how))
    _, errors = process.communicate(timeout=600)
    assert process.returncode in {"SIGKILL": (-9,), "SIGINT": (130, 0), "full": (1, 0)}[how], errors
    assert "Traceback" not in errors
    done = subprocess.run([*TRAIN, "--resume", str(output)], stdout=subprocess.PIPE, **options, timeout=600)
    assert done.returncode == 0, done.stderr
    assert json.loads((output / "summary.json").read_text())["rounds"] == 3
    rounds = [json.loads(line) for line in (output / "metrics.jsonl").read_text().splitlines()]
    assert [record["round"] for record in rounds if record["kind"] == "round"] == [1, 2, 3]
    known = ("goes on after round", "begins again with its first round", "is finished: all 3 rounds")
    assert sum(words in done.stderr for words in known) == 1, done.stderr
    assert "missing keys" not in done.stderr


STUDY = """
    import sys, pathlib
    sys.path[:0] = [{root!r} + "/tests", {root!r} + "/experiments"]
    from test_study import fake_arms
    from study_cells import plan, run_cells
    cells = plan(["smoke"], fake_arms({recipe!r}, endless=99, good=40), [0], {{}})
    run_cells(cells, pathlib.Path({output!r}), jobs=1, budget_s=600.0, show=lambda done, running: None)
"""


def test_a_study_that_is_killed_leaves_no_run_behind(recipe: str, tmp_path: Path) -> None:
    psutil = pytest.importorskip("psutil")
    code = textwrap.dedent(STUDY.format(root=str(ROOT), recipe=recipe, output=str(tmp_path / "out")))
    study = psutil.Popen([sys.executable, "-c", code])
    while not (cells := study.children()) and study.poll() is None:
        time.sleep(0.05)
    study.kill()
    study.wait()
    _, alive = psutil.wait_procs(cells, timeout=20)
    assert alive == []


def test_a_study_begins_no_further_cell_where_nothing_runs(recipe: str, tmp_path: Path, monkeypatch: Any) -> None:
    cells = study_cells.plan(["smoke"], fake_arms(recipe, bad=13, good=40, other=41), [0], {})
    gone = SandboxError("the sandbox must be there, got none")
    with monkeypatch.context() as patch:
        patch.setattr(LocalSandbox, "run", Mock(side_effect=gone))
        ended = run(cells, tmp_path / "out", jobs=1)
    assert ended.stopped == str(gone)
    assert list(ended.failures) == ["smoke/bad/seed0"]
    assert ended.left == ("smoke/good/seed0", "smoke/other/seed0")
    assert run(cells, tmp_path / "out") == study_cells.Ended({}, (), False), "the same command goes on"
    one_bad = study_cells.plan(["smoke"], fake_arms(recipe, worse=13, good=40), [1], {})
    assert list(run(one_bad, tmp_path / "out", jobs=1).failures) == ["smoke/worse/seed1"], "the others were run"


@pytest.mark.parametrize("nth", [1, 2, 3, 4])
def test_a_study_without_room_for_a_file_ends_with_one_error_and_goes_on(
    nth: int, recipe: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each cell writes its configuration and its results; what a run has done is not done again."""
    cells = study_cells.plan(["smoke"], fake_arms(recipe, one=40, two=41), [0], {})
    effects = [DEFAULT] * (nth - 1) + [OSError(28, "No space left on device")] * 9
    with monkeypatch.context() as patch:
        patch.setattr(study_cells, "write_whole", Mock(wraps=study_cells.write_whole, side_effect=effects))
        ended = run(cells, tmp_path / "out", jobs=1)
    assert "No space left on device" in ended.stopped
    assert not ended.failures
    assert set(ended.left) == {cell.name for cell in cells[(nth - 1) // 2 :]}
    assert run(cells, tmp_path / "out") == study_cells.Ended({}, (), False)


def test_a_damaged_result_of_a_cell_is_made_again(recipe: str, tmp_path: Path) -> None:
    cells = study_cells.plan(["smoke"], fake_arms(recipe, one=40), [0], {})
    run(cells, tmp_path / "out")
    result = tmp_path / "out/cells" / cells[0].name / "cell.json"
    before = json.loads(result.read_text())
    for damage in ("", "{", "[]", "{}", "\0\0\0"):
        result.write_text(damage)
        assert run(cells, tmp_path / "out") == study_cells.Ended({}, (), False)
        assert json.loads(result.read_text())["measures"] == before["measures"]
