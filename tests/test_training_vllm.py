"""A duel whose seats both sample with vLLM on a CPU. Optional: `make test-vllm` makes an environment that has vLLM."""

import importlib.util
import tempfile
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch
from training_runs import SEATS, play_duel, records, tiny, without_evaluations
from trl import GRPOConfig

from codea1_env.configuration.placement import SeatPlacement, trainer_arguments
from codea1_env.configuration.presets import Preset
from codea1_env.training.models.warm_start import base_model
from codea1_env.training.policies.trl_policy import TrlPolicy
from codea1_env.training.policies.vllm_colocated import before_building
from codea1_env.training.samples import SeatRun

HAS_VLLM = importlib.util.find_spec("vllm") is not None
ROUNDS = 4
# Rates at which four updates change the policy visibly.
PRESET = without_evaluations(placement={seat: {"vllm": "colocate"} for seat in SEATS}, grpo={"learning_rate": 2e-3})


@pytest.mark.skipif(HAS_VLLM, reason="vLLM is installed")
def test_a_seat_without_its_generator_says_how_to_get_it(tmp_path: Path) -> None:
    arguments = GRPOConfig(output_dir=str(tmp_path), **trainer_arguments(SeatPlacement(vllm="colocate")))
    with pytest.raises(ImportError, match=r"vllm: colocate needs vLLM; .*: docs/cluster\.md"):
        before_building(arguments)


needs_vllm = pytest.mark.skipif(not HAS_VLLM, reason="vLLM is not installed; `make test-vllm` has it")
ADAPTERS = tiny(PRESET, lora={"rank": 4, "alpha": 16}, grpo={"learning_rate": 1e-2})


@pytest.mark.vllm
@needs_vllm
@pytest.mark.parametrize("preset", [PRESET, ADAPTERS], ids=["weights", "adapters"])
def test_vllm_samples_from_the_weights_of_every_update(preset: Preset, tmp_path: Path) -> None:
    """What vLLM says of the tokens that it drew, and what the trained model says of them, is the same."""
    play_duel(tmp_path / "run", base_model(tiny(), tmp_path), rounds=ROUNDS, preset=preset)
    for seat in SEATS:
        logged = records(tmp_path / "run", "seat", seat)
        assert [record["round"] for record in logged] == list(range(1, ROUNDS + 1))
        assert logged[-1]["kl"] > 0.02, "the policy has hardly moved: stale weights would pass"
        for record in logged:
            assert record["sampling_gap"] < 0.01, record


def with_base(model: Any, generation: Any) -> None:
    """Write the base back, which the adapters are to be beside."""
    kept = {each: each.detach().clone() for name, each in model.named_parameters() if "lora_" in name}
    for parameter in kept:
        torch.nn.init.zeros_(parameter)
    type(generation).sync_weights(generation)
    for parameter, value in kept.items():
        parameter.data.copy_(value)


@pytest.mark.vllm
@needs_vllm
def test_vllm_says_the_same_with_adapters_as_with_merged_weights(tmp_path: Path, monkeypatch: Any) -> None:
    """TRL's own way beside ours, on the same vLLM: twice, for an adapter that stays from before would pass once."""
    (tmp_path / "folders").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "folders"))
    run = SeatRun(ADAPTERS, base_model(tiny(), tmp_path), tmp_path / "coder", 3)
    trainer = TrlPolicy(run)._trainer
    generation = trainer.vllm_generation
    generation.temperature, generation.max_completion_length, prompts = 0.0, 12, [[3, 4, 5], [6, 7]]
    trained = {name: each for name, each in trainer.model.named_parameters() if each.requires_grad}
    assert {"lora_" in name for name in trained} == {True}

    def said() -> tuple[list[list[int]], list[float]]:
        _, tokens, logprobs, _ = generation.generate(prompts, None, 1, nullcontext())
        return tokens, [one[0] for row in logprobs for one in row]

    found = []
    for scale in (0.1, 0.2):
        for parameter in trained.values():
            torch.nn.init.normal_(parameter, std=scale)
        generation.sync_weights()
        with_adapters = said()
        assert list((tmp_path / "folders").glob("codea1-adapters-*")) == []
        generation.llm.generate = type(generation.llm).generate.__get__(generation.llm)
        type(generation).sync_weights(generation)  # TRL's, which writes into the base
        merged = said()
        found.append(merged[0])
        assert with_adapters[0] == merged[0]
        assert with_adapters[1] == pytest.approx(merged[1], abs=1e-3)
        with_base(trainer.model, generation)
    assert found[0] != found[1], "the adapters say nothing: stale ones would pass"
