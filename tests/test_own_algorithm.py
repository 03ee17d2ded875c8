"""An algorithm of one's own, from a folder outside the clone. That it is resumed: test_training_resume.py."""

import dataclasses
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from command_lines import ended
from test_training_baselines import ON_ONE_BASE
from test_training_resume import PARTS
from training_runs import ROOT, TINY, play_duel, run_here, tiny

from codea1_env.class_paths import state_text
from codea1_env.configuration.algorithm import digests
from codea1_env.configuration.arguments import exit_status
from codea1_env.configuration.presets import load_preset
from codea1_env.errors import ConfigurationError
from codea1_env.language_models.rollouts import Completion, RolloutRequest, RolloutSampling, checked
from codea1_env.players.player import CoderRequest
from codea1_env.problems.families.miniature import miniature_problems
from codea1_env.training.models.sampling import as_trained, load_model
from codea1_env.training.models.shared_base import engine_of
from codea1_env.training.round.questions import chooser_of

NAMES = {"advantage": "own_algorithm:Estimator", "loss_type": "own_algorithm:loss"}


@pytest.fixture(autouse=True)
def folder(bases: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The example, copied as its first lines say."""
    monkeypatch.setenv("CODEA1_CACHE", str(bases))
    for name in ("own_algorithm.py", "own.yaml", "own_arms.yaml"):
        shutil.copy(ROOT / "examples" / name, tmp_path)
    return tmp_path


WITHOUT_OTHER_EXTRAS = """
import ast, importlib, runpy, sys
others = "peft gguf ray vllm docker wandb trackio moviepy tensorboard torch.utils.tensorboard"
sys.modules.update(dict.fromkeys(others.split()))  # an import of them fails
recipes, sys.argv = sys.argv[1].split(), sys.argv[2:]
for recipe in recipes:
    for node in ast.walk(ast.parse(open(recipe).read())):
        if isinstance(node, ast.ImportFrom):
            importlib.import_module(node.module)
runpy.run_path(sys.argv[0], run_name="__main__")
"""
RECIPES = [ROOT / "agents" / "train_grpo.py", *sorted((ROOT / "baselines").glob("*.py"))]


def run(folder: Path, *argv: str) -> None:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, *argv], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:] + done.stdout[-2000:]


@pytest.mark.longest
def test_it_trains_with_the_extra_train_alone(folder: Path, bases: Path, monkeypatch: Any, capsys: Any) -> None:
    """The README installs `.[train]`: all recipes can be imported, and one trains; here without TensorBoard, too."""
    options = "--config own.yaml --output run --rounds 1 --report-to none"
    run(folder, "-c", WITHOUT_OTHER_EXTRAS, " ".join(map(str, RECIPES)), str(RECIPES[0]), *options.split())
    record = yaml.safe_load((folder / "run" / "config.yaml").read_text())
    assert {name: record["preset"]["algorithm"][name] for name in NAMES} == NAMES
    assert record["starts"][0]["own_code"].keys() == set(NAMES.values())
    for seat in ("coder", "tester"):
        state = json.loads((folder / "run" / seat / "checkpoint-1" / "advantage.json").read_text())
        assert isinstance(state["mean"], float), "the estimator that ran is another one"
    # From anywhere: the run knows where its code is.
    argv = ("--resume", str(folder / "run"), "--rounds", "2")
    run_here("agents/train_grpo.py", *argv, cache=bases, patch=monkeypatch, capsys=capsys)
    assert (folder / "run" / "tester" / "checkpoint-2" / "advantage.json").is_file()


def test_it_is_an_arm_of_the_study_and_needs_nothing_private(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (ROOT / "examples" / "own_algorithm.py").read_text()
    imports = [line for line in text.splitlines() if line.startswith(("import ", "from "))]
    assert imports == ["import torch", "from codea1_env.training import advantages"]
    assert "._" not in text
    pytest.importorskip("scipy", reason="the extra `solve` is not installed")
    from study_arms import chosen_arms
    from study_cells import Cell

    monkeypatch.chdir(folder)
    monkeypatch.delitem(sys.modules, "own_algorithm", raising=False)  # of another folder
    arms = chosen_arms(["code_a1"], Path("own_arms.yaml"))
    assert [arm.name for arm in arms] == ["code_a1", "own", "dr_grpo", "rae"]
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
    run(folder, *command, *"--arms code_a1 --arm-file own_arms.yaml --config short.yaml --output out".split())
    cells = json.loads((folder / "out" / "results.json").read_text())["cells"]
    assert [cell["arm"] for cell in cells] == ["code_a1", "own", "dr_grpo", "rae"]


WRONG_PARTS = """
class Open(advantages.Estimator): pass
class Kept(Open):
    def advantages(self, rewards, rows): return rewards
    def state(self): return {"seen": {1}}
"""
ABOVE, BACKWARDS, SGD = ({"advantage": "own_refused:Above"}, {"questions": "own_refused:Backwards"},
                         {"optimizer": "torch.optim:SGD"})  # fmt: skip
REFUSED: list[tuple[dict[str, Any], str]] = [
    (ABOVE | {"advantage_args": {"bar": float("nan")}}, "advantage_args must be what JSON can hold, got"),
    (ABOVE, "algorithm.advantage_args must be what Above takes, got none: missing"),
    (ABOVE | {"advantage_args": {"bars": 1}}, "algorithm.advantage_args must be what Above"),
    ({"advantage": "own_gone:Estimator"}, "algorithm.advantage must name a module that can be imported"),
    ({"advantage": "own_refused:Gone"}, "advantage must name a subclass of Estimator, got"),
    ({"advantage": "own_refused:scaled"}, "advantage must name a subclass of Estimator, got"),
    ({"advantage": "own_refused:Open"}, "advantage must name a class that defines advantages, got"),
    ({"advantage": "own_refused:Kept"}, "advantage: Kept.state must return what JSON can hold, got {'seen': {1}}"),
    ({"loss_type": "own_refused:Scaled.scale"}, "loss_type must be one of"),
    ({"loss_type": "own_refused:__name__"}, "loss_type must name a function or a class of callables"),
    ({"loss_type": "own_refused:Scaled", "loss_args": {"by": 1}}, "algorithm.loss_args must be what Scaled takes"),
    ({"loss_type": "own_refused:scaled", "loss_args": {"by": 1}}, "algorithm.loss_args must be what scaled takes"),
    (SGD | {"optimizer_args": {"beta": 1}}, "algorithm.optimizer_args must be what SGD"),
    (SGD | {"optimizer_args": {"momentum": -1}}, "algorithm.optimizer_args must be what"),
    ({"optimizer": "torch.optim:LBFGS"}, "algorithm.optimizer must step by a dense gradient, without a closure, got"),
    ({"optimizer": "own_refused:Above"}, "algorithm.optimizer must name a subclass of Optimizer, got"),
    ({"optimizer": "sgd"}, "optimizer must be one of adamw or module:Name, got 'sgd'"),
    (BACKWARDS, "algorithm.questions_args must be what Backwards takes, got none: "),
    ({"questions": "own_refused:Above"}, "algorithm.questions must name a subclass of Chooser, got"),
    ({"questions_args": {"least": 1}}, "questions_args must come with questions of your own, module:Class, got"),
]


@pytest.mark.parametrize("preset", [TINY, ON_ONE_BASE], ids=["trl", "packed"])
def test_what_a_part_does_not_take_is_refused_in_one_line_before_there_is_a_run(
    preset: Any, bases: Path, tmp_path: Path, monkeypatch: Any, capsys: Any
) -> None:
    (tmp_path / "own_refused.py").write_text(PARTS + WRONG_PARTS)
    argv = ["--config", str(tmp_path / "own.yaml"), "--output", str(tmp_path / "run")]
    for algorithm, must in REFUSED:
        given = preset.to_dict()
        (tmp_path / "own.yaml").write_text(yaml.safe_dump(given | {"algorithm": given["algorithm"] | algorithm}))
        said = run_here("agents/train_grpo.py", *argv, cache=bases, patch=monkeypatch, capsys=capsys, status=2)
        assert must in said
        assert not (tmp_path / "run").exists()
    (tmp_path / "own.yaml").write_text("extends: smoke\nalgorithm: {advantage: 'own_gone:Estimator'}\n")
    assert str(tmp_path) in ended(capsys, *argv), "where it was looked for"


def test_the_example_of_a_chooser_asks_for_what_has_failed_the_longest() -> None:
    section = load_preset("smoke", ROOT / "examples" / "own_questions.yaml").algorithm
    section, problems = dataclasses.replace(section, path=(str(ROOT / "examples"),)), miniature_problems("train", 5, 0)
    names, chooser = [problem.problem_id for problem in problems], chooser_of(section, problems, 0)
    assert chooser.choose(0, 2) == [0, 1]
    chooser.learn({names[0]: 0.9, names[1]: 0.4})
    assert chooser.choose(1, 3) == [1, 2, 3], "the one that failed, then new ones"
    chooser.learn({names[1]: 0.0, names[2]: 0.0, names[3]: 1.0})
    again = chooser_of(section, problems, 0)
    again.restore(json.loads(state_text(chooser, "algorithm.questions")))
    assert again.choose(2, 5) == chooser.choose(2, 5) == [1, 2, 4, 0, 3]


WHOLE = Completion((1, 2), (-0.5, 1e-6), "end")
ENGINES = """
import torch
from codea1_env.language_models.rollouts import Completion, RolloutEngine
class Engine(RolloutEngine):
    def __init__(self, model, adapters): self.model = model
    def sample(self, requests, sampling):
        return [[Completion((1,), (0.5,), "end")] * request.samples for request in requests]
class Open(RolloutEngine):
    def __init__(self, model, adapters): pass
class Failing(Engine):
    def sample(self, requests, sampling): return requests[0].no_such_thing
class Ending(Engine):
    def sample(self, requests, sampling): raise SystemExit(0)
WEIGHT = torch.ones((), requires_grad=True)
def elsewhere(batch): return (WEIGHT * batch.advantages).sum()
class Odd(Engine):
    def __init__(self, model, adapters, more): pass
"""


def wrong(tokens: Any = (1, 2), log_probs: Any = (-0.5, -0.5), finish: Any = "end") -> list[list[Any]]:
    return [[WHOLE, Completion(tokens, log_probs, finish)]]


@pytest.mark.parametrize(
    ("found", "must"),
    [
        (None, "return a list for each of 1 requests, got None"),
        ([], "return a list for each of 1 requests, got []"),
        ([[WHOLE]], "return 2 Completions for a request of as many samples, got [Completion("),
        ([[WHOLE, (1, 2)]], "return 2 Completions for a request of as many samples"),
        (wrong(tokens=()), "return 1 to 4 tokens an answer, ints in [0, 9), got ()"),
        (wrong(tokens=(1,) * 5), "return 1 to 4 tokens an answer"),
        (wrong(tokens=(1, 9)), "ints in [0, 9), got (1, 9)"),
        (wrong(tokens=(1, 2.0)), "ints in [0, 9), got (1, 2.0)"),
        (wrong(log_probs=(-1.0,)), "return a log-probability for each of an answer's 2 tokens, finite and at most 0"),
        (wrong(log_probs=(-1.0, float("-inf"))), "finite and at most 0, got (-1.0, -inf)"),
        (wrong(log_probs=(-1.0, 0.01)), "finite and at most 0, got (-1.0, 0.01)"),
        (wrong(log_probs=np.zeros(2)), "finite and at most 0, got array([0., 0.])"),
        (wrong(finish="eos"), "say of an answer one of end, stop, length, got 'eos'"),
    ],
)
def test_what_no_engine_may_return_is_refused(found: Any, must: str) -> None:
    requests, sampling = [RolloutRequest((1,), 2, (0,))], RolloutSampling(max_tokens=4)
    assert checked([[WHOLE, WHOLE]], requests, sampling, 9, "mine") == [[WHOLE, WHOLE]]
    with pytest.raises(ConfigurationError, match=rf"\Amine must .*{re.escape(must)}"):
        checked(found, requests, sampling, 9, "mine")


def test_what_an_own_engine_or_loss_must_not_do_is_told(base: Path, tmp_path: Path, monkeypatch, capsys: Any) -> None:
    (tmp_path / "own_engine.py").write_text(ENGINES)
    monkeypatch.syspath_prepend(str(tmp_path))

    def own(**names: str) -> Any:
        return tiny(ON_ONE_BASE, algorithm={field: f"own_engine:{name}" for field, name in names.items()})

    preset, (problem,) = own(rollouts="Engine"), miniature_problems("held_out", 1, 0)
    sampler = load_model(base, preset).sampler(as_trained(preset, "coder", 0))
    says = r"algorithm.rollouts: Engine.sample must return a log-probability for each of an answer's 1 tokens"

    def play(name: str, preset: Any) -> int:
        return int(play_duel(tmp_path / name, base, rounds=1, preset=preset))

    for must, call in (
        (says, lambda: play("run", preset)),
        (says, lambda: sampler.coder([CoderRequest(problem)], 2)),
        (r"must name a subclass of RolloutEngine, got", lambda: engine_of(own(rollouts="elsewhere").algorithm)),
        (r"must name a class that defines sample, got", lambda: engine_of(own(rollouts="Open").algorithm)),
        (r"two arguments, .*own_engine:Odd': missing .*'more'", lambda: engine_of(own(rollouts="Odd").algorithm)),
        (r"gradient to batch.logps, got one that does not depend", lambda: play("loss", own(loss_type="elsewhere"))),
    ):
        with pytest.raises(ConfigurationError, match=must):
            call()
    monkeypatch.setattr("sys.argv", ["agents/train_grpo.py"])
    for name, raised, line in (
        ("Failing", "Attr", "requests[0].no_such_thing"),
        ("Ending", "SystemExit: 0", "raise SystemExit(0)"),
    ):
        assert exit_status(lambda: play(name, own(rollouts=name))) == 1  # noqa: B023  # called at once
        said = capsys.readouterr().err.splitlines()
        assert said[-1].startswith(f"train_grpo.py: own_engine:{name}.sample, which is not codea1's, raised {raised}")
        assert any(told.endswith(line) for told in said)
