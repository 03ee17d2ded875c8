"""Options and algorithm without a trainer: what is refused, whose turn it is."""

import dataclasses
from typing import Any

import pytest

from codea1_env.configuration.algorithm import Algorithm
from codea1_env.configuration.options import ACCESSES, OPPONENTS, SCHEDULES, SELECTIONS, Options
from codea1_env.configuration.presets import MINI, PRESETS, preset_from_dict
from codea1_env.errors import ConfigurationError
from codea1_env.rewards.code_a1 import RewardConfig


def test_the_presets_are_the_papers_method() -> None:
    for preset in PRESETS.values():
        assert (preset.options, preset.algorithm) == (Options(), Algorithm())


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"selection": "best"}, "selection must be one of spread, random, all, hardest, first, ahead, got 'best'"),
        ({"access": ["white-box"]}, r"access must be one of white-box, black-box, got \['white-box'\]"),
        ({"turn_rounds": 0}, r"turn_rounds must be a whole number in \[1, 1000000\], got 0"),
        ({"turn_rounds": True}, r"turn_rounds must be a whole number in \[1, 1000000\], got True"),
        ({"tester_book": 1.0}, r"tester_book must be a whole number in \[0, 64\], got 1.0"),
        ({"opponent_share": float("nan")}, r"opponent_share must be a number in \[1e-06, 1.0\], got nan"),
        ({"opponent_share": "half"}, r"opponent_share must be a number in \[1e-06, 1.0\], got 'half'"),
        ({"scale": "batch"}, "options: a key must be one of .* got 'scale'"),
        ({"selection": "all"}, r"attacked must be programs \(8\) with options.selection: all, got 1"),
        (
            {"selection": "all", "tester_book": 1},
            "selection: all must come with opponents: latest .* got 'latest' and 1",
        ),
        ({"selection": "ahead"}, "reward.coder_tests must be union with options.selection: ahead, .* got 'own'"),
        ({"selection": "all", "opponents": "uniform"}, "selection: all must come with .* got 'uniform' and 0"),
        ({"selections": "all"}, "options: a key must be one of .* got 'selections'"),
    ],
)
def test_what_cannot_be_is_refused_with_must_and_got(overrides: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        preset_from_dict({"options": overrides}, MINI)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"scale": None}, "scale must be one of group, batch, none, got None"),
        ({"advantage": "gae"}, "advantage must be one of grpo, question, rae or module:Name, got 'gae'"),
        ({"advantage": "a b:C"}, "advantage must be one of .* got 'a b:C'"),
        ({"loss_type": "ppo"}, "loss_type must be one of grpo, dr_grpo, dapo, .* or module:Name, got 'ppo'"),
        ({"rate": 0}, r"rate must be a number in \[1e-06, 1.0\], got 0"),
        ({"path": "here"}, "path must be a list of folders, got 'here'"),
        ({"advantage": "rae"}, "scale must be none or batch with advantage: rae, .* got 'group'"),
        ({"credit": "test", "advantage": "question"}, "credit: test must come with advantage: grpo .* got 'question'"),
        ({"estimator": "grpo"}, "algorithm: a key must be one of .* got 'estimator'"),
    ],
)
def test_an_algorithm_that_cannot_be_is_refused_with_must_and_got(overrides: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        preset_from_dict({"algorithm": overrides}, MINI)


def test_an_algorithm_survives_a_configuration_file() -> None:
    own = Algorithm(advantage="mine.own:Mine", loss_type="mine.own:loss", scale="none", path=("/a", "/b"))
    for algorithm in (own, Algorithm(advantage="rae", scale="batch", rate=0.05), Algorithm(credit="test")):
        preset = dataclasses.replace(MINI, algorithm=algorithm)
        assert preset_from_dict(preset.to_dict(), MINI) == preset


def test_what_a_strategy_or_another_reward_cannot_do_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"alternating must come with .* got deepspeed for the coder"):
        Options(schedule="alternating").check(8, 1, RewardConfig(), {"coder": "deepspeed", "tester": "ddp"})
    with pytest.raises(ConfigurationError, match=r"must be latest where a seat is sharded .* fsdp2 for the tester"):
        Options(opponents="uniform").check(8, 1, RewardConfig(), {"coder": "ddp", "tester": "fsdp2"})
    with pytest.raises(
        ConfigurationError, match=r"must be 0 unless reward.tester_reward is code-a1, .* got 3 with 'utrl'"
    ):
        preset_from_dict({"options": {"validity_first_rounds": 3}, "reward": {"tester_reward": "utrl"}}, MINI)
    with pytest.raises(ConfigurationError, match=r"oracle must be reference or golden with .* got 'majority'"):
        preset_from_dict({"options": {"tester_book": 1}, "reward": {"oracle": "majority"}}, MINI)
    Options(schedule="alternating", opponents="uniform").check(8, 1, RewardConfig(), {"coder": "ddp", "tester": "ddp"})


@pytest.mark.parametrize(
    ("name", "choices"),
    [("selection", SELECTIONS), ("access", ACCESSES), ("schedule", SCHEDULES), ("opponents", OPPONENTS)],
)
def test_every_choice_survives_a_configuration_file(name: str, choices: tuple[str, ...]) -> None:
    for choice in choices:
        preset = dataclasses.replace(
            MINI,
            round=dataclasses.replace(MINI.round, attacked=MINI.round.programs),
            reward=dataclasses.replace(MINI.reward, coder_tests="union"),
            options=dataclasses.replace(Options(), **{name: choice}),
        )
        assert preset_from_dict(preset.to_dict(), MINI) == preset


def test_seats_take_turns_of_the_given_length_and_the_coder_begins() -> None:
    options = Options(schedule="alternating", turn_rounds=2)
    assert [options.learns("coder", index) for index in range(6)] == [True, True, False, False, True, True]
    assert [options.learns("tester", index) for index in range(6)] == [False, False, True, True, False, False]
    assert all(Options().learns(seat, index) for seat in ("coder", "tester") for index in range(6))


def test_validity_comes_first_and_then_the_configured_weight() -> None:
    """Four rounds from 1 to 0.5: 1, 0.875, 0.75, 0.625, then 0.5 for good."""
    options = Options(validity_first_rounds=4)
    assert [options.alpha(0.5, index) for index in range(6)] == [1, 0.875, 0.75, 0.625, 0.5, 0.5]
    assert [Options().alpha(0.3, index) for index in range(2)] == [0.3, 0.3]


def test_a_share_of_past_answers_is_rounded_up() -> None:
    assert Options().past(8) == 0
    assert [Options(opponents="uniform", opponent_share=0.25).past(answers) for answers in (8, 4, 3)] == [2, 1, 1]
