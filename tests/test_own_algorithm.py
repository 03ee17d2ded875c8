"""An algorithm of one's own, from a folder outside the clone: runs of it, resumed, its parts, an arm of the study."""

import dataclasses
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("trl", reason="the extra `train` is not installed")

import torch
import yaml
from command_lines import ended
from test_training_baselines import PACKED, with_both_trainers
from test_training_recipes import refused
from training_runs import ROOT, SEATS, TINY, last_checkpoint, run_here

from codea1_env.class_paths import state_text
from codea1_env.configuration.algorithm import Algorithm, digests
from codea1_env.configuration.presets import Preset, load_preset
from codea1_env.errors import ConfigurationError
from codea1_env.problems.families.miniature import miniature_problems
from codea1_env.training.round.questions import chooser_of

NAMES = {"advantage": "own_algorithm:Estimator", "loss_type": "own_algorithm:loss"}


@pytest.fixture(autouse=True)
def paths(monkeypatch: pytest.MonkeyPatch) -> None:
    """What one test makes importable, the next one does not find."""
    monkeypatch.setattr(sys, "path", list(sys.path))


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


def test_a_module_that_is_not_there_ends_the_recipe_in_one_line(folder: Path, capsys: Any) -> None:
    text = (folder / "own.yaml").read_text().replace("own_algorithm:", "own_gone:")  # which no other test has imported
    (folder / "own.yaml").write_text(text)
    last = ended(capsys, "--config", str(folder / "own.yaml"), "--output", str(folder / "run"))
    assert "algorithm must name a module that can be imported" in last
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


PARTS = """
import torch
from codea1_env.training import advantages
from codea1_env.training.round import questions

class Above(advantages.Estimator):
    def __init__(self, algorithm, bar):
        super().__init__(algorithm)
        self.bar, self.rounds = bar, 0

    def advantages(self, rewards, rows):
        self.rounds += 1
        return rewards - self.bar

    def state(self):
        return {"bar": self.bar, "rounds": self.rounds}

    def restore(self, state):
        self.rounds = state["rounds"]

class Scaled:
    def __init__(self, scale):
        self.scale = scale

    def __call__(self, batch):
        return -self.scale * (batch.advantages * batch.logps * batch.mask).sum() / batch.tokens

def scaled(batch, scale):
    return Scaled(scale)(batch)

class Backwards(questions.Chooser):
    def __init__(self, problems, seed, stride):
        super().__init__(problems, seed)
        self.stride, self.asked, self.passed = stride, 0, {}

    def choose(self, round_index, count):
        self.asked += count
        return [-self.stride * place % len(self.problems) for place in range(self.asked - count, self.asked)]

    def learn(self, passed):
        self.passed |= passed

    def state(self):
        return {"asked": self.asked, "passed": self.passed}

    def restore(self, state):
        self.asked, self.passed = state["asked"], state["passed"]
"""
ALL_OWN: dict[str, Any] = {
    "advantage": "own_parts:Above", "advantage_args": {"bar": 0.25},
    "loss_type": "own_parts:Scaled", "loss_args": {"scale": 0.5},
    "optimizer": "torch.optim:SGD", "optimizer_args": {"momentum": 0.9},
    "questions": "own_parts:Backwards", "questions_args": {"stride": 3},
}  # fmt: skip


@pytest.fixture
def train(bases: Path, tmp_path: Path, monkeypatch: Any, capsys: Any) -> Callable[..., Path]:
    """Runs the main recipe with a section `algorithm`, beside the modules that it names; returns its directory."""
    (tmp_path / "own_parts.py").write_text(PARTS)
    here = partial(run_here, "agents/train_grpo.py", cache=bases, patch=monkeypatch, capsys=capsys)

    def run(name: str, preset: Preset, rounds: int, resume: bool = False, status: int = 0, **algorithm: Any) -> Path:
        given = preset.to_dict()
        (tmp_path / "own.yaml").write_text(yaml.safe_dump(given | {"algorithm": given["algorithm"] | algorithm}))
        output = str(tmp_path / name)
        new = ["--config", str(tmp_path / "own.yaml"), "--output", output]
        here(*(["--resume", output] if resume else new), "--rounds", str(rounds), status=status)
        return tmp_path / name

    return run


def kept(run: Path) -> dict[str, bytes]:
    """The bits of all seats, and what the run remembers."""
    return {
        f"{seat} {file.name}": file.read_bytes()
        for seat in SEATS
        for folder in (run / seat / "final", last_checkpoint(run / seat))
        for pattern in ("*.safetensors", "*.pt", "advantage.json", "questions.json", "book.jsonl")
        for file in folder.glob(pattern)
    }


@with_both_trainers
def test_parts_of_ones_own_with_arguments_go_on_to_the_same_bits(preset: Preset, train: Callable[..., Path]) -> None:
    whole = train("whole", preset, 2, **ALL_OWN)
    train("parts", preset, 1, **ALL_OWN)
    parts = train("parts", preset, 2, resume=True)
    assert kept(parts) == kept(whole)
    assert yaml.safe_load((parts / "config.yaml").read_text())["starts"][1]["own_code"].keys() == {
        name for name in ALL_OWN.values() if isinstance(name, str)
    }
    for seat in SEATS:
        checkpoint = last_checkpoint(whole / seat)
        assert json.loads((checkpoint / "advantage.json").read_text()) == {"bar": 0.25, "rounds": 2}
        states = [torch.load(file, weights_only=True) for file in checkpoint.glob("*.pt")]
        (group,) = {
            group["momentum"] for state in states for group in state.get("optimizer", state).get("param_groups", ())
        }
        assert group == 0.9
    asked = json.loads((last_checkpoint(whole / "coder") / "questions.json").read_text())
    assert asked["asked"] == 2 * preset.round.questions
    assert 0 < len(asked["passed"]) <= asked["asked"]


@with_both_trainers
@pytest.mark.parametrize("loss", ["own_parts:Scaled", "own_parts:scaled"])
def test_arguments_of_a_loss_reach_it(loss: str, preset: Preset, train: Callable[..., Path]) -> None:
    """Times 0, and by an optimizer without decay, nothing is learnt."""
    changes = {"loss_type": loss, "optimizer": "torch.optim:SGD"}
    still, moved = (
        train(str(scale), preset, 1, loss_args={"scale": scale}, **changes) / "coder" / "final" for scale in (0.0, 1.0)
    )
    began = train("again", preset, 1, loss_args={"scale": -0.0}, **changes) / "coder" / "final"
    bits = [next(folder.glob("*.safetensors")).read_bytes() for folder in (still, moved, began)]
    assert bits[0] == bits[2] != bits[1]


@with_both_trainers
def test_a_curriculum_by_pass_rate_goes_on_to_the_same_bits(preset: Preset, train: Callable[..., Path]) -> None:
    whole = train("whole", preset, 3, questions="pass_rate")
    train("parts", preset, 1, questions="pass_rate")
    assert kept(train("parts", preset, 3, resume=True)) == kept(whole)
    passed = json.loads((last_checkpoint(whole / "coder") / "questions.json").read_text())["passed"]
    assert passed
    assert all(0 <= rate <= 1 for rate in passed.values())
    assert kept(train("other", preset, 3)) != kept(whole)


@pytest.mark.parametrize(
    ("algorithm", "must"),
    [
        ({"advantage": "own_parts:Above"}, "algorithm.advantage_args must be what Above takes, got none: missing"),
        (
            {"advantage": "own_parts:Above", "advantage_args": {"bars": 1}},
            "algorithm.advantage_args must be what Above",
        ),
        ({"loss_type": "own_parts:Scaled", "loss_args": {"by": 1}}, "algorithm.loss_args must be what Scaled takes"),
        ({"loss_type": "own_parts:scaled", "loss_args": {"by": 1}}, "algorithm.loss_args must be what scaled takes"),
        ({"loss_type": "own_parts:scaled"}, "algorithm.loss_args must be what scaled takes, got none: missing"),
        ({"optimizer": "torch.optim:SGD", "optimizer_args": {"beta": 1}}, "algorithm.optimizer_args must be what SGD"),
        ({"optimizer": "torch.optim:SGD", "optimizer_args": {"momentum": -1}}, "algorithm.optimizer_args must be what"),
        ({"optimizer": "own_parts:Above"}, "algorithm.optimizer must name a subclass of Optimizer, got"),
        ({"questions": "own_parts:Backwards"}, "algorithm.questions_args must be what Backwards takes, got none: "),
        ({"questions": "own_parts:Above"}, "algorithm.questions must name a subclass of Chooser, got"),
        ({"questions_args": {"least": 1}}, "questions_args must come with questions of your own, module:Class, got"),
        ({"optimizer": "sgd"}, "optimizer must be one of adamw or module:Name, got 'sgd'"),
    ],
)
@pytest.mark.parametrize("trainer", ["trl", "packed"])
def test_what_a_part_does_not_take_is_refused_in_one_line_before_there_is_a_run(
    algorithm: dict[str, Any], must: str, trainer: str, bases: Path, tmp_path: Path, monkeypatch: Any, capsys: Any
) -> None:
    monkeypatch.setenv("CODEA1_CACHE", str(bases))
    (tmp_path / "own_parts.py").write_text(PARTS)
    given = (PACKED if trainer == "packed" else TINY).to_dict()
    (tmp_path / "own.yaml").write_text(yaml.safe_dump(given | {"algorithm": given["algorithm"] | algorithm}))
    argv = ["--config", str(tmp_path / "own.yaml"), "--output", str(tmp_path / "run")]
    assert must in refused("agents/train_grpo.py", *argv, patch=monkeypatch, capsys=capsys)
    assert not (tmp_path / "run").exists()


def test_the_example_of_a_chooser_asks_for_what_has_failed_the_longest() -> None:
    section = load_preset("smoke", ROOT / "examples" / "own_questions.yaml").algorithm
    problems = miniature_problems("train", 5, 0)
    names = [problem.problem_id for problem in problems]
    chooser = chooser_of(dataclasses.replace(section, path=(str(ROOT / "examples"),)), problems, 0)
    assert chooser.choose(0, 2) == [0, 1]
    chooser.learn({names[0]: 0.9, names[1]: 0.4})
    assert chooser.choose(1, 3) == [1, 2, 3], "the one that failed, then new ones"
    chooser.learn({names[1]: 0.0, names[2]: 0.0, names[3]: 1.0})
    again = chooser_of(dataclasses.replace(section, path=(str(ROOT / "examples"),)), problems, 0)
    again.restore(json.loads(state_text(chooser, "algorithm.questions")))
    assert again.choose(2, 5) == chooser.choose(2, 5) == [1, 2, 4, 0, 3]


@pytest.mark.parametrize("value", [float("nan"), {1, 2}, object()])
def test_arguments_that_no_record_can_hold_are_refused_when_they_are_given(value: object) -> None:
    with pytest.raises(ConfigurationError, match="advantage_args must be what JSON can hold, got"):
        Algorithm(advantage="own_parts:Above", advantage_args={"bar": value})
