"""The TRL adapter: the arena's rewards in TRL's form, and real trainers that take them."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import double_question
import pytest
from double_question import RIGHT, SQUARE, on_fire

from codea1_env.adapters.trl_rewards import CoderRewardFunction, TesterRewardFunction
from codea1_env.arena.arena import Arena
from codea1_env.errors import ConfigurationError, PlayerError
from codea1_env.players import GoldenTester, Response
from codea1_env.problems import Problem, TestCase
from codea1_env.rewards.code_a1 import RewardConfig
from codea1_env.sandbox import LocalSandbox

DOUBLE = replace(double_question.DOUBLE, golden_tests=(TestCase("double(2)", "4"), TestCase("double(3)", "6")))
NEGATE = Problem(
    "negate",
    "Write `negate(x)`.",
    "negate",
    reference_solution="def negate(x):\n    return -x\n",
    golden_tests=(TestCase("negate(2)", "-2"),),
)


@pytest.fixture
def arena() -> Iterator[Arena]:
    with Arena(LocalSandbox()) as made:
        yield made


def test_a_coder_is_paid_for_the_tests_it_passes_in_the_order_of_its_completions(arena: Arena) -> None:
    reward = CoderRewardFunction(arena, [DOUBLE, NEGATE], GoldenTester())
    metrics: dict[str, float] = {}
    completions = [SQUARE, "def negate(x):\n    return -x", [{"role": "assistant", "content": RIGHT}], "nonsense("]
    ids = ["double", "negate", "double", "double"]
    rewards = reward([""] * 4, completions, problem_id=ids, log_metric=metrics.__setitem__, trainer_state=None)
    assert rewards == [0.5, 1.0, 1.0, 0.0]
    assert metrics == {"executes": 0.75, "mistake_book": 1.0}
    # double(3) has failed for the square and is replayed now, (0 + 1/2) / 2; what does not execute says nothing.
    assert reward([""], [SQUARE], problem_id=["double"]) == [0.25]


def test_a_tester_is_paid_for_valid_tests_that_break_the_program_of_its_row(arena: Arena) -> None:
    reward = TesterRewardFunction(arena, [DOUBLE])
    suite = "assert double(3) == 6\nassert double(2) == 4"
    rewards = reward([""] * 2, [suite, suite], problem_id=["double"] * 2, program=[SQUARE, RIGHT])
    # R_val = 2/8 for both; one of the two kills the square: (2/8 + 1/8) / 2
    assert rewards == [3 / 16, 2 / 16]


def test_suites_against_one_program_are_one_visit_of_its_question(arena: Arena) -> None:
    arena.book.record("double", (), [TestCase("double(3)", "6")] * 3)
    TesterRewardFunction(arena, [DOUBLE])([""] * 3, ["assert True"] * 3, problem_id=["double"] * 3, program=[RIGHT] * 3)
    assert dict(arena.book.frequencies("double")) == {TestCase("double(3)", "6"): 2}


def test_copies_of_a_program_are_no_majority() -> None:
    with LocalSandbox() as sandbox:
        reward = TesterRewardFunction(Arena(sandbox, RewardConfig(oracle="majority")), [DOUBLE])
        given = {"problem_id": ["double"] * 2, "program": [SQUARE] * 2}
        assert reward([""] * 2, ["assert double(3) == 9"] * 2, **given) == [0.0, 0.0]


def test_a_failing_sandbox_is_no_reward(arena: Arena, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arena._sandbox, "run", on_fire)
    assert CoderRewardFunction(arena, [DOUBLE], GoldenTester())([""], [RIGHT], problem_id=["double"]) == [None]


class Short:
    """A player that does not answer as often as it is asked."""

    name, version = "short", "1"

    def respond(self, requests: Any, *_: Any, **__: Any) -> Any:
        return [[Response("assert double(2) == 4")] for _ in requests]


def test_a_player_that_answers_too_little_is_no_opponent(arena: Arena) -> None:
    with pytest.raises(PlayerError, match="'short' answers must be 2 Response objects with a text for each request"):
        CoderRewardFunction(arena, [DOUBLE], Short(), suites=2)([""], [RIGHT], problem_id=["double"])


@pytest.mark.parametrize("make", [lambda *given: CoderRewardFunction(*given, GoldenTester()), TesterRewardFunction])
def test_two_problems_of_one_id_are_refused(arena: Arena, make: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"must have distinct problem ids, .* more than once: \['double'\]"):
        make(arena, [DOUBLE, replace(DOUBLE, question="Another one.")])


def test_a_tester_attacks_the_program_that_is_scored() -> None:
    """The released code reads the first block."""
    seen = []

    class Watching(GoldenTester):
        def respond(self, requests: Any, *given: Any, **named: Any) -> Any:
            seen.extend(request.program for request in requests)
            return super().respond(requests, *given, **named)

    answer = f"One:\n```python\n{RIGHT}```\nAnother:\n```python\n{SQUARE}```"
    for fidelity, read in (("paper", RIGHT), ("strict", SQUARE)):
        with Arena(LocalSandbox(), RewardConfig(fidelity=fidelity)) as arena:
            CoderRewardFunction(arena, [DOUBLE], Watching())([""], [answer], problem_id=["double"])
        assert seen.pop().strip() == read.strip()


def test_missing_columns_and_unknown_problems_are_refused(arena: Arena) -> None:
    reward = CoderRewardFunction(arena, [DOUBLE], GoldenTester())
    with pytest.raises(ConfigurationError, match="must have a column problem_id, one for each completion, got none"):
        reward([""], [RIGHT])
    with pytest.raises(ConfigurationError, match="must be one of the reward function's problems, got 'nowhere'"):
        reward([""], [RIGHT], problem_id=["nowhere"])
    with pytest.raises(ConfigurationError, match="must have a column program"):
        TesterRewardFunction(arena, [DOUBLE])([""], [""], problem_id=["double"])


@pytest.mark.parametrize("seat", ["coder", "tester"])
def test_trls_trainer_takes_it(seat: str, arena: Arena, bases: Path, tmp_path: Path) -> None:
    pytest.importorskip("trl")
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer

    from codea1_env.configuration.presets import SMOKE
    from codea1_env.training.models.warm_start import base_model

    model = base_model(SMOKE, bases)
    reward = (
        CoderRewardFunction(arena, [DOUBLE], GoldenTester())
        if seat == "coder"
        else TesterRewardFunction(arena, [DOUBLE])
    )
    rows = {"prompt": [DOUBLE.question] * 4, "problem_id": ["double"] * 4, "program": [SQUARE] * 4}
    arguments = GRPOConfig(
        str(tmp_path / "out"),
        max_steps=2,
        per_device_train_batch_size=2,
        num_generations=2,
        max_completion_length=8,
        use_cpu=True,
        bf16=False,
        gradient_checkpointing=False,
        report_to=[],
        logging_steps=1,
        save_strategy="no",
        disable_tqdm=True,
    )
    trainer = GRPOTrainer(model=str(model), args=arguments, train_dataset=Dataset.from_dict(rows), reward_funcs=reward)
    trainer.train()
    logged = [record for record in trainer.state.log_history if f"rewards/{seat}_reward/mean" in record]
    assert len(logged) == 2
    assert ("executes" if seat == "coder" else "validity") in {key for record in logged for key in record}
