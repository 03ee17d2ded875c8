"""Both seats as TRL's environments: what a model is told and paid, and a real trainer whose model calls the tools."""

import dataclasses
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import double_question
import pytest
from double_question import RIGHT, SQUARE, on_fire

from codea1_env.adapters.seat_rewards import MOST_TOLD
from codea1_env.adapters.trl_environments import CoderSeat, TesterSeat
from codea1_env.arena.arena import Arena
from codea1_env.errors import ConfigurationError, PlayerUnavailable, SandboxUnsafe
from codea1_env.players import GoldenTester
from codea1_env.problems import TestCase
from codea1_env.sandbox import LocalSandbox

EXAMPLE = Path(__file__).parents[1] / "examples" / "trl_environment.py"
DOUBLE = dataclasses.replace(
    double_question.DOUBLE,
    reference_solution="def double(x):\n    return 2 * x  # the reference\n",
    golden_tests=(TestCase("double(2)", "4"), TestCase("double(3)", "6")),
    starter_code="def double(x):",
)


@pytest.fixture
def arena() -> Iterator[Arena]:
    with Arena(LocalSandbox()) as made:
        yield made


def coder(arena: Arena, tester: GoldenTester | None = None) -> CoderSeat:
    """Before its first program."""
    seat = CoderSeat(arena, [DOUBLE], tester or GoldenTester())
    seat.reset(problem_id="double")
    return seat


def test_a_coder_reads_what_failed_repairs_it_and_is_paid_for_the_last_program(arena: Arena) -> None:
    seat = CoderSeat(arena, [DOUBLE], GoldenTester(), attempts=2)
    asked = seat.reset(prompt="ignored", problem_id="double")
    assert DOUBLE.question in asked
    assert "def double(x):" in asked
    assert seat.get_reward() == 0.0
    told = seat.submit_program(SQUARE)
    assert told == "1 of 2 tests passed.\nassert double(3) == 6  # fail\nYou may hand in another one (1 left)."
    assert seat.get_reward() == 0.5
    # double(3) is in the Mistake Book now and comes back: three tests.
    assert seat.submit_program(RIGHT) == "3 of 3 tests passed.\nNo attempt is left."
    assert seat.get_reward() == 1.0
    assert "No attempt is left" in seat.submit_program(SQUARE)
    assert seat.get_reward() == 1.0


def test_a_tester_reads_what_its_tests_came_to_but_no_value_of_the_references(arena: Arena) -> None:
    seat = TesterSeat(arena, [DOUBLE])
    asked = seat.reset(problem_id="double", program=f"Here:\n```python\n{SQUARE}\n```")
    assert "return x * x" in asked
    assert "Here:" not in asked
    assert "the reference" not in asked
    told = seat.submit_tests("assert double(3) == 6\nassert double(5) == 11\nassert double == 1")
    assert told.splitlines() == [
        "assert double(3) == 6  # kept, the program: fail",
        "assert double(5) == 11  # wrong_expected, the program: fail",
        "assert double == 1  # rejected (wrapped_call)",
        "No attempt is left.",
    ]
    # Two calls that the reference answers and two invalid tests, of 8, and two failures: (min(2/8, 1 - 2/8) + 2/8) / 2
    assert seat.get_reward() == 1 / 4


def test_a_new_rollout_begins_with_nothing_of_the_last_one(arena: Arena) -> None:
    seat = coder(arena)
    seat.submit_program(RIGHT)
    seat.reset(problem_id="double")
    assert seat.get_reward() == 0.0
    assert "2 of 2" in seat.submit_program(RIGHT)


def test_the_seats_of_a_trainer_share_the_mistake_book(arena: Arena) -> None:
    first, second = coder(arena), coder(arena)
    first.submit_program(SQUARE)
    assert "3 of 3" in second.submit_program(RIGHT)


@pytest.mark.parametrize(
    "text", ["", "\0", "def double(", "```", "\ud800", "x" * 300_000, "def other(x):\n    return x"]
)
def test_whatever_a_model_hands_in_is_paid_nothing_and_told_why(text: str, arena: Arena) -> None:
    seat = coder(arena)
    assert "does not load, or does not define the function" in seat.submit_program(text)
    assert seat.get_reward() == 0.0


@pytest.mark.parametrize("argument", [None, 5, ["def"], {"a": 1}])
def test_an_argument_that_is_no_text_costs_no_attempt(argument: Any, arena: Arena) -> None:
    seat = coder(arena)
    assert f"must be a string, got {type(argument).__name__}" in seat.submit_program(argument)
    assert "2 of 2" in seat.submit_program(RIGHT)


def test_what_is_told_is_cut_at_the_end_of_a_line(arena: Arena) -> None:
    seat = TesterSeat(arena, [DOUBLE])
    seat.reset(problem_id="double", program=SQUARE)
    *told, dots, last = seat.submit_tests("\n".join(f"assert double({x}) == {2 * x}" for x in range(100))).split("\n")
    assert told[3] == "assert double(3) == 6  # kept, the program: fail"
    assert all(line.startswith("assert double(") and "  # " in line for line in told)
    assert MOST_TOLD - 60 < len("\n".join([*told, dots])) <= MOST_TOLD
    assert (dots, last) == ("...", "No attempt is left.")


def test_a_failing_sandbox_is_no_reward_and_no_fault_of_the_models(
    arena: Arena, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arena._sandbox, "run", on_fire)
    seat = coder(arena)
    assert "could not be judged" in seat.submit_program(RIGHT)
    assert seat.get_reward() is None


def test_a_missing_guarantee_or_opponent_reaches_the_trainer(arena: Arena, monkeypatch: pytest.MonkeyPatch) -> None:
    def unsafe(*_: Any) -> Any:
        raise SandboxUnsafe("seccomp is missing")

    class Gone(GoldenTester):
        def respond(self, *_: Any, **__: Any) -> Any:
            raise PlayerUnavailable("no server")

    seat = coder(arena, Gone())
    for asked in (lambda: seat.submit_program(RIGHT), seat.get_reward):
        with pytest.raises(PlayerUnavailable):
            asked()
    monkeypatch.setattr(arena._sandbox, "run", unsafe)
    seat = coder(arena)
    for asked in (lambda: seat.submit_program(RIGHT), seat.get_reward):
        with pytest.raises(SandboxUnsafe):
            asked()


def test_rows_and_arguments_out_of_range_are_refused(arena: Arena) -> None:
    with pytest.raises(ConfigurationError, match="must have a column problem_id that names known problems, got None"):
        CoderSeat(arena, [DOUBLE], GoldenTester()).reset(prompt="")
    with pytest.raises(ConfigurationError, match="got 'triple'"):
        TesterSeat(arena, [DOUBLE]).reset(problem_id="triple", program="")
    with pytest.raises(ConfigurationError, match=r"the column program of the data set must be a text or .*, got None"):
        TesterSeat(arena, [DOUBLE]).reset(problem_id="double")
    with pytest.raises(ConfigurationError, match="reset must be called before a tool"):
        CoderSeat(arena, [DOUBLE], GoldenTester()).submit_program(RIGHT)
    for attempts in (0, True, 1.5):
        with pytest.raises(ConfigurationError, match=r"attempts must be (an int of )?at least 1"):
            TesterSeat(arena, [DOUBLE], attempts=attempts)  # type: ignore[arg-type]


# From here on with TRL itself.


def settings(folder: Path, **options: Any) -> Any:
    from trl import GRPOConfig

    return GRPOConfig(
        str(folder),
        **{"max_steps": 12, "per_device_train_batch_size": 8, "num_generations": 8, **options},
        use_cpu=True,
        bf16=False,
        gradient_checkpointing=False,
        learning_rate=0.02,
        lr_scheduler_type="constant",
        report_to=[],
        logging_steps=1,
        save_strategy="no",
        disable_tqdm=True,
    )


@pytest.fixture
def _trainer(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No warning that this part of TRL is experimental; one thread, for more only wait for each other."""
    pytest.importorskip("trl", reason="TRL comes with the extra `train`")
    from tiny_chat_model import one_thread

    monkeypatch.setenv("TRL_EXPERIMENTAL_SILENCE", "1")
    with one_thread():
        yield


@pytest.mark.slow
@pytest.mark.usefixtures("_trainer")
def test_grpo_learns_to_hand_in_the_program_that_passes(arena: Arena, tmp_path: Path) -> None:
    import tiny_tool_model
    from datasets import Dataset
    from trl import GRPOTrainer

    right, wrong = (tiny_tool_model.call("submit_program", program=text) for text in (RIGHT, SQUARE))
    model = tiny_tool_model.save(tmp_path / "model", {right: 0.4, wrong: 0.5, "": 0.1})
    rows = Dataset.from_list([{"prompt": [{"role": "user", "content": "Task: "}], "problem_id": "double"}] * 8)
    made: list[CoderSeat] = []

    def seat() -> CoderSeat:
        made.append(CoderSeat(arena, [DOUBLE], GoldenTester(), attempts=2))
        return made[-1]

    trainer = GRPOTrainer(
        str(model),
        args=settings(tmp_path / "out", max_completion_length=160, max_tool_calling_iterations=2),
        train_dataset=rows,
        environment_factory=seat,
    )
    trainer.train()
    history = [row for row in trainer.state.log_history if "rewards/CoderSeat/mean" in row]
    assert len(history) == 12
    assert len(made) == 8  # one for each rollout, used again
    assert history[0]["tools/call_frequency"] > 0
    assert all(row["tools/failure_frequency"] == 0 for row in history)
    earned = [row["rewards/CoderSeat/mean"] for row in history]
    assert earned[0] < 0.9
    assert sum(earned[-3:]) / 3 > earned[0] + 0.1


@pytest.mark.usefixtures("_trainer")
def test_trl_trains_the_testers_seat(arena: Arena, tmp_path: Path) -> None:
    import tiny_tool_model
    from datasets import Dataset
    from trl import GRPOTrainer

    calls = {tiny_tool_model.call("submit_tests", tests=text): 0.5 for text in ("assert double(3) == 6", "assert 1")}
    model = tiny_tool_model.save(tmp_path / "model", calls)
    prompt = [{"role": "user", "content": ""}]
    rows = Dataset.from_list([{"prompt": prompt, "problem_id": "double", "program": SQUARE}] * 8)
    trainer = GRPOTrainer(
        str(model),
        args=settings(tmp_path / "out", max_steps=1, max_completion_length=96, max_tool_calling_iterations=1),
        train_dataset=rows,
        environment_factory=lambda: TesterSeat(arena, [DOUBLE]),
    )
    trainer.train()
    (row,) = [row for row in trainer.state.log_history if "rewards/TesterSeat/mean" in row]
    # One valid test that kills: (1/8 + 1/8) / 2; a suite without a test: 0.
    assert 0 < row["rewards/TesterSeat/mean"] < 1 / 8


@pytest.mark.usefixtures("_trainer")
def test_the_example_is_short_and_trains(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(EXAMPLE.read_text().splitlines()) <= 32
    import tiny_tool_model

    call = tiny_tool_model.call("submit_program", program="def squeeze_spaces(text):\n    return text")
    model = tiny_tool_model.save(tmp_path / "model", {call: 1.0})
    runpy.run_path(str(EXAMPLE))["main"](str(model), str(tmp_path / "out"), 1, 64)
    assert "rewards/CoderSeat/mean" in capsys.readouterr().out
