"""A rollout engine of one's own: what it returns is held against what it was asked for, in training and evaluation."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("trl", reason="the extra `train` is not installed")

import numpy as np
from test_training_baselines import PACKED
from training_runs import play_duel

from codea1_env.configuration.arguments import exit_status
from codea1_env.errors import ConfigurationError
from codea1_env.language_models.rollouts import Completion, RolloutRequest, RolloutSampling, checked
from codea1_env.players.player import CoderRequest
from codea1_env.problems.families.miniature import miniature_problems
from codea1_env.training.models.sampling import as_trained, load_model
from codea1_env.training.models.shared_base import engine_of

WHOLE = Completion((1, 2), (-0.5, 1e-6), "end")
OWN = """
import torch
from codea1_env.language_models.rollouts import Completion, RolloutEngine

class Engine(RolloutEngine):
    def __init__(self, model, adapters):
        self.model = model

    def sample(self, requests, sampling):
        return [[Completion((1,), (0.5,), "end")] * request.samples for request in requests]

class Open(RolloutEngine):
    def __init__(self, model, adapters):
        pass

class Failing(Engine):
    def sample(self, requests, sampling):
        return requests[0].no_such_thing

WEIGHT = torch.ones((), requires_grad=True)

def elsewhere(batch):
    return (WEIGHT * batch.advantages).sum()

class Odd(Engine):
    def __init__(self, model, adapters, more):
        pass
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
    with pytest.raises(ConfigurationError) as refused:
        checked(found, requests, sampling, 9, "mine")
    assert str(refused.value).startswith("mine must ")
    assert must in str(refused.value)


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    (tmp_path / "own_engine.py").write_text(OWN)
    monkeypatch.syspath_prepend(str(tmp_path))
    return lambda name: dataclasses.replace(PACKED.algorithm, rollouts=f"own_engine:{name}")


def test_training_and_evaluation_refuse_what_it_must_not_return(own: Any, base: Path, tmp_path: Path) -> None:
    preset = dataclasses.replace(PACKED, algorithm=own("Engine"))
    says = r"algorithm.rollouts: Engine.sample must return a log-probability for each of an answer's 1 tokens"
    with pytest.raises(ConfigurationError, match=says):
        play_duel(tmp_path / "run", base, rounds=1, preset=preset)
    (problem,) = miniature_problems("held_out", 1, 0)
    sampler = load_model(base, preset).sampler(as_trained(preset, "coder", 0))
    with pytest.raises(ConfigurationError, match=says):
        sampler.coder([CoderRequest(problem)], 2)


def test_one_that_cannot_be_made_is_refused_before_anything_is_loaded(own: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"algorithm.rollouts must name a class that defines sample, got"):
        engine_of(own("Open"))
    with pytest.raises(ConfigurationError, match=r"made from two arguments, .*got 'own_engine:Odd': missing .*'more'"):
        engine_of(own("Odd"))


def test_an_error_in_it_is_told_as_that_of_ones_own_code(
    own: Any, base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["agents/train_grpo.py"])
    preset = dataclasses.replace(PACKED, algorithm=own("Failing"))

    def main() -> int:
        return int(play_duel(tmp_path / "run", base, rounds=1, preset=preset))

    assert exit_status(main) == 1
    said = capsys.readouterr().err.splitlines()
    assert said[-1].startswith("train_grpo.py: own_engine:Failing, which is not codea1's, raised AttributeError: ")
    assert any(line.endswith("requests[0].no_such_thing") for line in said)


def test_a_loss_of_ones_own_that_does_not_look_at_the_model_is_refused(own: Any, base: Path, tmp_path: Path) -> None:
    loss = dataclasses.replace(PACKED.algorithm, loss_type="own_engine:elsewhere")
    with pytest.raises(ConfigurationError, match=r"with the gradient of batch.logps, got one that does not depend"):
        play_duel(tmp_path / "run", base, rounds=1, preset=dataclasses.replace(PACKED, algorithm=loss))
