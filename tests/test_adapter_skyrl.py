"""Both seats as SkyRL Gym's own registry makes them."""

import importlib
from typing import Any

import pytest
import seat_contract as contract
from fake_openai import Reply, completion, serving

from codea1_env.errors import ConfigurationError, FormatError

gym = pytest.importorskip("skyrl_gym", reason="SkyRL Gym has an environment of its own: make test-adapters")
importlib.import_module("codea1_env.adapters.skyrl")
pytestmark = pytest.mark.skyrl
PROMPT = [{"role": "user", "content": contract.PROBLEM.question}]


def made(seat: str, max_turns: int = 1, config: Any = None, **extra_info: str) -> Any:
    row = {"reward_spec": {"ground_truth": contract.LINE}, "max_turns": max_turns, "extra_info": extra_info}
    env = gym.make(f"codea1-{seat}", env_config=config, extras=row)
    assert env.init(PROMPT) == (PROMPT, {})
    return env


def test_a_coders_answer_earns_what_the_arena_grades() -> None:
    steps = {name: made("coder").step(text) for name, text in contract.PROGRAMS.items()}
    assert {name: step["reward"] for name, step in steps.items()} == contract.golden_by_the_arena()
    assert all(step["done"] and step["observations"] == [] for step in steps.values())
    assert steps["wrong"]["metadata"] == {"executes": 1.0}


def test_a_coders_row_may_say_nothing_more() -> None:
    """Of a table with rows of both seats, the coder's have null."""
    row = {"reward_spec": {"ground_truth": contract.LINE}, "extra_info": None}
    env = gym.make("codea1-coder", extras=row)
    assert env.step(contract.PROGRAMS["right"])["reward"] == 1.0


def test_a_testers_answer_earns_what_the_arena_pays() -> None:
    steps = {name: made("tester", program=contract.WRONG).step(text) for name, text in contract.SUITES.items()}
    assert {name: step["reward"] for name, step in steps.items()} == contract.kills_by_the_arena()


def test_a_program_is_repaired_and_the_last_answer_is_paid() -> None:
    env = made("coder", max_turns=3)
    first = env.step(contract.PROGRAMS["wrong"])
    assert (first["reward"], first["done"]) == (0.0, False)
    (message,) = first["observations"]
    assert message == {"role": "user", "content": "4 of 8 tests passed.\nAnswer again, in full."}
    second = env.step(contract.PROGRAMS["right"])
    assert (second["reward"], second["done"], second["observations"]) == (1.0, True, [])
    spent = made("coder", max_turns=2)
    spent.step(contract.PROGRAMS["wrong"])
    assert spent.step(contract.PROGRAMS["late"])["reward"] == 7 / 8


def test_a_coder_under_attack_reads_the_tests_that_it_failed() -> None:
    with serving(lambda request, number: Reply(body=completion(contract.SUITES["right"]))) as tester:
        config = {"tester_url": tester.url, "tester_model": "some-model"}
        env = made("coder", 2, config)
        told = env.step(contract.PROGRAMS["wrong"])["observations"][0]["content"]
        assert told.splitlines()[:2] == ["1 of 3 tests passed.", "assert halve(3) == 3  # fail"]
        assert env.step(contract.PROGRAMS["right"])["reward"] == 1.0
        assert contract.WRONG.strip() in tester.asked[0]["messages"][1]["content"]


def test_a_wrong_row_or_option_is_an_error_and_no_reward() -> None:
    with pytest.raises(FormatError, match="program must"):
        made("tester").step("assert halve(1) == 1")
    with pytest.raises(ConfigurationError):
        made("coder", config={"workers": 0})
