"""Options, algorithm and placement without a trainer: what is refused, whose turn it is, what TRL is told."""

from pathlib import Path
from typing import Any

import pytest

from codea1_env import ConfigurationError, RewardConfig
from codea1_env.configuration.algorithm import Algorithm
from codea1_env.configuration.options import ACCESSES, OPPONENTS, SCHEDULES, SELECTIONS, Options
from codea1_env.configuration.placement import Placement, SeatPlacement, trainer_arguments
from codea1_env.configuration.presets import MINI, PRESETS, SMOKE, preset_from_dict


def test_the_presets_are_the_papers_method() -> None:
    for preset in PRESETS.values():
        assert (preset.options, preset.algorithm) == (Options(), Algorithm())


ALL = "selection: all must come with"
KEY = "a key must be one of .* got"


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ("options: {selection: best}", "selection must be one of spread, random, all, hardest, first, ahead, got"),
        ("options: {access: [white-box]}", r"access must be one of white-box, black-box, got \['white-box'\]"),
        ("options: {turn_rounds: 0}", r"turn_rounds must be a whole number in \[1, 1000000\], got 0"),
        ("options: {turn_rounds: true}", r"turn_rounds must be a whole number in \[1, 1000000\], got True"),
        ("options: {tester_book: 1.0}", r"tester_book must be a whole number in \[0, 64\], got 1.0"),
        ("options: {opponent_share: .nan}", r"opponent_share must be a number in \[1e-06, 1.0\], got nan"),
        ("options: {selection: all}", r"attacked must be programs \(8\) with options.selection: all, got 1"),
        ("options: {selection: all, tester_book: 1}", f"{ALL} opponents: latest .* got 'latest' and 1"),
        ("options: {selection: all, opponents: uniform}", f"{ALL} .* got 'uniform' and 0"),
        ("options: {selection: ahead}", "reward.coder_tests must be union with options.selection: ahead, .* got 'own'"),
        ("{options: {validity_first_rounds: 3}, reward: {tester_reward: utrl}}",
         "must be 0 unless reward.tester_reward is code-a1, .* got 3 with 'utrl'"),
        ("{options: {tester_book: 1}, reward: {oracle: majority}}", "oracle must be reference or golden .* 'majority'"),
        ("algorithm: {scale: null}", "scale must be one of group, batch, none, got None"),
        ("algorithm: {advantage: gae}", "advantage must be one of grpo, question, rae or module:Name, got 'gae'"),
        ("algorithm: {advantage: 'a b:C'}", "advantage must be one of .* got 'a b:C'"),
        ("algorithm: {loss_type: ppo}", "loss_type must be one of grpo, dr_grpo, dapo, .* or module:Name, got 'ppo'"),
        ("algorithm: {rate: 0}", r"rate must be a number in \[1e-06, 1.0\], got 0"),
        ("algorithm: {path: here}", "path must be a list of folders, got 'here'"),
        ("algorithm: {advantage: rae}", "scale must be none or batch with advantage: rae, .* got 'group'"),
        ("algorithm: {credit: test, advantage: question}", "test must come with advantage: grpo .* got 'question'"),
        ("algorithm: {estimator: grpo}", f"algorithm: {KEY} 'estimator'"),
        ("placement: {coder: {gpus: 1}}", "placement: coder: a key must be one of"),
        ("placement: {coder: {ranks: 5}}", r"coder.ranks \* updates must divide 64 .rows a round., got 5 \* 1"),
        ("placement: {coder: {gpus_per_node: 2, ranks: 2, strategy: fsdp2}}",
         "every_rounds must be 0 where a seat's model is sharded .coder: fsdp2., got 25"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_with_must_and_got(overrides: str, message: str) -> None:
    yaml = pytest.importorskip("yaml", reason="the extra `train` is not installed")
    with pytest.raises(ConfigurationError, match=message):
        preset_from_dict(yaml.safe_load(overrides), MINI)


def test_what_a_strategy_cannot_do_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"alternating must come with .* got deepspeed for the coder"):
        Options(schedule="alternating").check(8, 1, RewardConfig(), {"coder": "deepspeed", "tester": "ddp"})
    with pytest.raises(ConfigurationError, match=r"must be latest where a seat is sharded .* fsdp2 for the tester"):
        Options(opponents="uniform").check(8, 1, RewardConfig(), {"coder": "ddp", "tester": "fsdp2"})
    Options(schedule="alternating", opponents="uniform").check(8, 1, RewardConfig(), {"coder": "ddp", "tester": "ddp"})


def test_every_choice_is_kept_by_a_configuration_file() -> None:
    choices = {"selection": SELECTIONS, "access": ACCESSES, "schedule": SCHEDULES, "opponents": OPPONENTS}
    given = [("options", {name: choice}) for name, among in choices.items() for choice in among]
    given += [("algorithm", {"credit": "test"}), ("algorithm", {"advantage": "rae", "scale": "batch", "rate": 0.05})]
    for section, values in given:
        preset = preset_from_dict({"round": {"attacked": 8}, "reward": {"coder_tests": "union"}, section: values}, MINI)
        assert preset.to_dict()[section].items() >= values.items()
        assert preset_from_dict(preset.to_dict(), MINI) == preset


def test_seats_take_turns_validity_comes_first_and_a_share_of_past_answers_is_rounded_up() -> None:
    """The coder begins. Four rounds from 1 to 0.5: 1, 0.875, 0.75, 0.625, then 0.5 for good."""
    options = Options(schedule="alternating", turn_rounds=2)
    assert [options.learns("coder", index) for index in range(6)] == [True, True, False, False, True, True]
    assert [options.learns("tester", index) for index in range(6)] == [False, False, True, True, False, False]
    assert all(Options().learns(seat, index) for seat in ("coder", "tester") for index in range(6))
    options = Options(validity_first_rounds=4)
    assert [options.alpha(0.5, index) for index in range(6)] == [1, 0.875, 0.75, 0.625, 0.5, 0.5]
    assert [Options().alpha(0.3, index) for index in range(2)] == [0.3, 0.3]
    assert Options().past(8) == 0
    assert [Options(opponents="uniform", opponent_share=0.25).past(answers) for answers in (8, 4, 3)] == [2, 1, 1]


@pytest.mark.parametrize(
    ("given", "must"),
    [
        ({"nodes": 0}, r"nodes must be a whole number in \[1, 1024\], got 0"),
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


def test_a_file_places_one_seat_and_leaves_the_other_and_comes_back_equal() -> None:
    preset = preset_from_dict({"placement": {"tester": {"nodes": 2, "ranks": 4}}}, MINI)
    assert preset.placement == Placement(tester=SeatPlacement(nodes=2, ranks=4))
    assert preset_from_dict(preset.to_dict(), SMOKE) == preset
    further = preset_from_dict({"placement": {"tester": {"ranks": 2}}}, preset)
    assert further.placement == Placement(tester=SeatPlacement(nodes=2, ranks=2))


def test_trl_is_told_the_device_the_sharding_and_the_generator(tmp_path: Path) -> None:
    trl = pytest.importorskip("trl", reason="the extra `train` is not installed")
    off = ("bf16", "gradient_checkpointing", "dataloader_pin_memory", "use_vllm")
    assert trainer_arguments(SeatPlacement()) == {"use_cpu": True, **dict.fromkeys(off, False)}
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
    told = trainer_arguments(SeatPlacement(gpus_per_node=1, strategy="deepspeed", vllm="server", vllm_server="h:8000"))
    assert told.pop("deepspeed")["zero_optimization"]["stage"] == 3  # whose library is not here
    assert (told["vllm_server_base_url"], told["vllm_group_port"]) == ("http://h:8000", 51216)
    config = trl.GRPOConfig(output_dir=str(tmp_path), **(told | {"use_cpu": True, "bf16": False}))
    assert config.vllm_mode == "server"
    assert trainer_arguments(SeatPlacement(ranks=2))["ddp_find_unused_parameters"] is False
