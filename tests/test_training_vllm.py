"""A duel whose seats both sample with vLLM on a CPU.

Optional: `make test-vllm` makes an environment that has vLLM.
"""

import dataclasses
import importlib.util
from pathlib import Path

import pytest

pytest.importorskip("trl", reason="the extra `train` is not installed")

from training_runs import SEATS, TINY, play_duel, records, tiny_base
from trl import GRPOConfig

from codea1_env.configuration.placement import Placement, SeatPlacement, trainer_arguments
from codea1_env.training.policies.vllm_colocated import before_building

HAS_VLLM = importlib.util.find_spec("vllm") is not None
ROUNDS = 4
COLOCATED = SeatPlacement(vllm="colocate")
# Rates at which four updates change the policy visibly.
PRESET = dataclasses.replace(
    TINY,
    placement=Placement(COLOCATED, COLOCATED),
    grpo=TINY.grpo.changed({"learning_rate": 2e-3}),
    evaluation=dataclasses.replace(TINY.evaluation, every_rounds=0),
)


@pytest.mark.skipif(HAS_VLLM, reason="vLLM is installed")
def test_a_seat_without_its_generator_says_how_to_get_it(tmp_path: Path) -> None:
    arguments = GRPOConfig(output_dir=str(tmp_path), **trainer_arguments(COLOCATED))
    with pytest.raises(ImportError, match=r"vllm: colocate needs vLLM; .*: docs/cluster\.md"):
        before_building(arguments)


@pytest.mark.vllm
@pytest.mark.skipif(not HAS_VLLM, reason="vLLM is not installed; `make test-vllm` makes an environment with it")
def test_vllm_samples_from_the_weights_of_every_update(tmp_path: Path) -> None:
    """What vLLM says of the tokens that it drew, and what the trained model says of them, is the same."""
    play_duel(tmp_path / "run", tiny_base(tmp_path), rounds=ROUNDS, preset=PRESET)
    for seat in SEATS:
        logged = records(tmp_path / "run", "seat", seat)
        assert [record["round"] for record in logged] == list(range(1, ROUNDS + 1))
        assert logged[-1]["kl"] > 0.02, "the policy has hardly moved: stale weights would pass"
        for record in logged:
            assert record["sampling_gap"] < 0.01, record
