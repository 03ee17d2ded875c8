"""An algorithm of one's own, from a folder outside the clone: a run of it, resumed, and an arm of the study."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("trl", reason="the extra `train` is not installed")

import yaml

from codea1_env.training.config.algorithm import digests

ROOT = Path(__file__).parents[1]
NAMES = {"advantage": "own_algorithm:Estimator", "loss_type": "own_algorithm:loss"}


@pytest.fixture
def folder(bases: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The example, copied as its first lines say."""
    monkeypatch.setenv("CODEA1_CACHE", str(bases))
    for name in ("own_algorithm.py", "own.yaml", "own_arms.yaml"):
        shutil.copy(ROOT / "examples" / name, tmp_path)
    return tmp_path


def run(folder: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.run([sys.executable, *argv], cwd=folder, env=environment, capture_output=True, text=True)


def test_the_example_needs_nothing_private() -> None:
    text = (ROOT / "examples" / "own_algorithm.py").read_text()
    imports = [line for line in text.splitlines() if line.startswith(("import ", "from "))]
    assert imports == ["import torch", "from codea1_env.training import advantages"]
    assert "._" not in text


@pytest.mark.longest
def test_it_trains_both_seats_from_a_folder_outside_the_clone_and_is_on_record(folder: Path) -> None:
    recipe = str(ROOT / "agents" / "train_grpo.py")
    done = run(folder, recipe, "--config", "own.yaml", "--output", "run", "--rounds", "1")
    assert done.returncode == 0, done.stderr[-2000:]
    record = yaml.safe_load((folder / "run" / "config.yaml").read_text())
    assert {name: record["preset"]["algorithm"][name] for name in NAMES} == NAMES
    assert record["starts"][0]["own_code"].keys() == set(NAMES.values())
    for seat in ("coder", "tester"):
        state = json.loads((folder / "run" / seat / "checkpoint-1" / "advantage.json").read_text())
        assert isinstance(state["mean"], float), "the estimator that ran is another one"
    # From anywhere: the run knows where its code is.
    done = run(folder / "run", recipe, "--resume", str(folder / "run"), "--rounds", "2")
    assert done.returncode == 0, done.stderr[-2000:]
    assert (folder / "run" / "tester" / "checkpoint-2" / "advantage.json").is_file()


def test_a_module_that_is_not_there_ends_the_recipe_in_one_line_before_anything_is_loaded(folder: Path) -> None:
    (folder / "own_algorithm.py").unlink()
    done = run(folder, str(ROOT / "agents" / "train_grpo.py"), "--config", "own.yaml")
    assert done.returncode == 2
    last = done.stderr.splitlines()[-1]
    assert last.startswith("train_grpo.py: algorithm must name a module that can be imported")
    assert str(folder) in last


def test_it_is_an_arm_of_the_study_that_changes_with_its_text(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("scipy", reason="the extra `solve` is not installed")
    sys.path.insert(0, str(ROOT / "experiments"))
    from study_arms import chosen_arms
    from study_cells import Cell

    monkeypatch.chdir(folder)
    arms = chosen_arms(["code_a1"], Path("own_arms.yaml"))
    assert [arm.name for arm in arms] == ["code_a1", "reinforce_pp", "dr_grpo", "rae"]
    own, dr_grpo = Cell("smoke", arms[1], 0), Cell("smoke", arms[2], 0)
    before, others = own.identity(), dr_grpo.identity()
    assert digests(own.resolved().algorithm)["own_algorithm:loss"]["file"] == str(folder / "own_algorithm.py")
    with (folder / "own_algorithm.py").open("a") as file:
        file.write("# changed\n")
    assert (own.identity() == before, dr_grpo.identity() == others) == (False, True)


@pytest.mark.slow
def test_the_study_compares_it_with_what_is_built_in(folder: Path) -> None:
    (folder / "short.yaml").write_text("rounds: 2\n")
    command = [str(ROOT / "experiments" / "study.py"), "--presets", "smoke", "--seeds", "1", "--jobs", "1"]
    command += ["--arms", "code_a1", "--arm-file", "own_arms.yaml", "--config", "short.yaml", "--output", "out"]
    done = run(folder, *command)
    assert done.returncode == 0, done.stderr[-2000:] + done.stdout[-2000:]
    cells = json.loads((folder / "out" / "results.json").read_text())["cells"]
    assert [cell["arm"] for cell in cells] == ["code_a1", "reinforce_pp", "dr_grpo", "rae"]
