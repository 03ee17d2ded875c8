"""Where seats live: what is refused before anything starts, and that a file says what the dataclass holds."""

from pathlib import Path
from typing import Any

import pytest

from codea1_env.configuration.placement import Placement, SeatPlacement, trainer_arguments
from codea1_env.configuration.presets import MINI, SMOKE, preset_from_dict
from codea1_env.errors import ConfigurationError


@pytest.mark.parametrize(
    ("given", "must"),
    [
        ({"nodes": 0}, r"nodes must be a whole number in \[1, 1024\], got 0"),
        ({"ranks": True}, "ranks must be a whole number"),
        ({"gpus_per_node": 2}, "ranks must be one per GPU, 1 nodes . 2 = 2, got 1"),
        ({"nodes": 2, "ranks": 3}, r"ranks must be a multiple of nodes \(2\), got 3"),
        ({"strategy": "zero"}, "strategy must be one of ddp, fsdp2, deepspeed, got 'zero'"),
        ({"strategy": "fsdp2"}, "strategy must be ddp on the CPU"),
        ({"vllm": "on"}, "vllm must be one of off, colocate, server"),
        ({"tensor_parallel": 2}, "tensor_parallel must be 1 where vLLM is not colocated"),
        ({"ranks": 4, "vllm": "colocate", "tensor_parallel": 3}, r"must divide the ranks of a node \(4\), got 3"),
        ({"vllm": "server", "vllm_server": "a:1"}, "gpus_per_node must be at least 1 for vllm: server"),
        ({"gpus_per_node": 1, "vllm": "server"}, "vllm_server must be HOST:PORT for vllm: server"),
        ({"gpus_per_node": 1, "vllm": "server", "vllm_server": "host"}, "vllm_server must be HOST:PORT, got 'host'"),
        ({"vllm_server": "a:1"}, "and empty otherwise, got 'a:1' for vllm: off"),
        ({"vllm_memory": float("nan")}, "vllm_memory must be a number"),
        ({"memory_gb": -1}, "memory_gb must be a number"),
    ],
)
def test_an_impossible_seat_is_refused_with_must_and_got(given: dict[str, Any], must: str) -> None:
    with pytest.raises(ConfigurationError, match=must):
        SeatPlacement(**given)


def test_two_seats_do_not_share_a_server() -> None:
    seat = SeatPlacement(gpus_per_node=1, vllm="server", vllm_server="host:8000")
    with pytest.raises(ConfigurationError, match="a vllm_server and a vllm_group_port of its own"):
        Placement(seat, seat)


def test_a_file_places_one_seat_and_leaves_the_other_and_comes_back_equal() -> None:
    preset = preset_from_dict({"placement": {"tester": {"nodes": 2, "ranks": 4}}}, MINI)
    assert preset.placement == Placement(tester=SeatPlacement(nodes=2, ranks=4))
    assert preset_from_dict(preset.to_dict(), SMOKE) == preset
    further = preset_from_dict({"placement": {"tester": {"ranks": 2}}}, preset)
    assert further.placement == Placement(tester=SeatPlacement(nodes=2, ranks=2))


@pytest.mark.parametrize(
    ("overrides", "must"),
    [
        ({"placement": {"coder": {"gpus": 1}}}, "placement: coder: a key must be one of"),
        ({"placement": {"coder": 2}}, "placement: coder must be a mapping"),
        (
            {"placement": {"coder": {"ranks": 5}}},
            r"placement.coder.ranks \* updates must divide 64 .rows a round., got 5 \* 1",
        ),
        ({"placement": {"tester": {"ranks": 64}}}, r"placement.tester.ranks \* updates must divide 32"),
        (
            {"placement": {"coder": {"gpus_per_node": 2, "ranks": 2, "strategy": "fsdp2"}}},
            "every_rounds must be 0 where a seat's model is sharded .coder: fsdp2., got 25",
        ),
    ],
)
def test_a_preset_refuses_a_placement_that_its_round_does_not_fit(overrides: dict[str, Any], must: str) -> None:
    with pytest.raises(ConfigurationError, match=must):
        preset_from_dict(overrides, MINI)


def test_trl_is_told_the_device_the_sharding_and_the_generator(tmp_path: Path) -> None:
    trl = pytest.importorskip("trl", reason="the extra `train` is not installed")
    plain = trainer_arguments(SeatPlacement())
    assert plain == {
        "use_cpu": True,
        "bf16": False,
        "gradient_checkpointing": False,
        "dataloader_pin_memory": False,
        "use_vllm": False,
    }
    sharded = SeatPlacement(
        nodes=2, gpus_per_node=4, ranks=8, strategy="fsdp2", vllm="colocate", tensor_parallel=2, vllm_memory=0.4
    )
    told = trainer_arguments(sharded)
    assert (told["use_cpu"], told["bf16"], told["fsdp"], told["fsdp_config"]["version"]) == (False, True, True, 2)
    assert told["vllm_enable_sleep_mode"] is True
    assert (told["vllm_mode"], told["vllm_tensor_parallel_size"]) == ("colocate", 2)
    # The pinned TRL knows every name and takes the sharding as meant; this machine has no GPU.
    config = trl.GRPOConfig(output_dir=str(tmp_path), **(told | {"use_cpu": True, "bf16": False}))
    assert config.fsdp_plugin_args["fsdp_version"] == 2
    assert config.fsdp_plugin_args["activation_checkpointing"] is True

    served = SeatPlacement(gpus_per_node=1, strategy="deepspeed", vllm="server", vllm_server="h:8000")
    told = trainer_arguments(served)
    assert told["deepspeed"]["zero_optimization"]["stage"] == 3
    assert (told["vllm_server_base_url"], told["vllm_group_port"]) == ("http://h:8000", 51216)
    without_library = {name: value for name, value in told.items() if name != "deepspeed"}
    config = trl.GRPOConfig(output_dir=str(tmp_path), **(without_library | {"use_cpu": True, "bf16": False}))
    assert config.vllm_mode == "server"
    assert trainer_arguments(SeatPlacement(ranks=2))["ddp_find_unused_parameters"] is False
