"""The Ray engine, when something fails: an end with a cause, and a run that goes on to the same bits."""

import dataclasses
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("trl", reason="the extra `train` is not installed")
pytest.importorskip("ray", reason="the extra `ray` is not installed")

import ray
from ray_training import TWICE, cluster, die, meet_in_round, needs_cluster, whole
from training_runs import SEATS, TINY, NoSandbox, assert_same_runs, play_duel

from codea1_env.errors import SeatFailed

__all__ = ["cluster", "whole"]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.longest,
    pytest.mark.filterwarnings("default::ResourceWarning", "ignore::DeprecationWarning:ray"),
]

ROOT = Path(__file__).parent.parent
UNMEASURED = dataclasses.replace(TINY, evaluation=dataclasses.replace(TINY.evaluation, every_rounds=0))


def score_in_round(number: int, what: Callable[[], None]) -> dict[str, Any]:
    def wrap(score: Any) -> Any:
        def wrapped(round_index: int, *rest: Any) -> Any:
            if round_index + 1 == number:
                what()
            return score(round_index, *rest)

        return wrapped

    return {"coder": wrap}


def divide() -> None:
    raise ZeroDivisionError("the coder's own\nand more")


def kill_the_arena(meeting: Any) -> None:
    os.kill(ray.get(meeting.actor.process.remote()), signal.SIGKILL)


def sleep_for_ever(_: Any) -> None:
    time.sleep(1e6)


@needs_cluster
def test_a_killed_seat_ends_the_run_which_is_resumed_to_the_same_bits(whole: Path, base: Path, tmp_path: Path) -> None:
    directory = tmp_path / "killed"
    with pytest.raises(SeatFailed, match="the tester is gone: ") as raised:
        play_duel(directory, base, rounds=3, preset=TWICE, engine="ray", wrappers=meet_in_round(3, die))
    assert_told_and_saved(raised.value, directory)
    assert not play_duel(directory, base, rounds=3, preset=TWICE, engine="ray", resume=True)
    assert_same_runs(whole, directory)


@needs_cluster
@pytest.mark.parametrize("engines", [("ray", "local"), ("local", "ray")], ids="-then-".join)
def test_a_run_is_resumed_under_the_other_engine_to_the_same_bits(
    whole: Path, base: Path, tmp_path: Path, engines: tuple[str, str]
) -> None:
    failure = SeatFailed if engines[0] == "ray" else ZeroDivisionError
    with pytest.raises(failure, match="the coder's own") as raised:
        play_duel(tmp_path, base, rounds=3, preset=TWICE, engine=engines[0], wrappers=score_in_round(3, divide))
    if engines[0] == "ray":
        assert str(raised.value).startswith("the coder failed: ZeroDivisionError: the coder's own and more")
        assert_told_and_saved(raised.value, tmp_path)
    assert not play_duel(tmp_path, base, rounds=3, preset=TWICE, engine=engines[1], resume=True)
    assert_same_runs(whole, tmp_path)


def assert_told_and_saved(failure: BaseException, directory: Path) -> None:
    """One line says the cause, here and in the run's folder; both seats have a whole checkpoint to go on from."""
    assert "\n" not in str(failure)
    assert (directory / "failure.txt").read_text().startswith(str(failure))
    for seat in SEATS:  # of the first round: at the second one's, a seat may have been cut off
        assert list((directory / seat).glob("checkpoint-*/complete.json"))


# A seat that raises, and one that is killed, are above.
FAILURES = {
    "the arena killed": (meet_in_round(3, kill_the_arena), "the arena is gone: "),
    "a raise while the peer hangs": (
        meet_in_round(3, sleep_for_ever) | score_in_round(3, divide),
        "the coder failed: ZeroDivisionError",
    ),
}


@needs_cluster
@pytest.mark.parametrize(("wrappers", "cause"), FAILURES.values(), ids=FAILURES)
def test_a_failure_ends_the_run_with_its_cause_and_a_checkpoint(
    base: Path, tmp_path: Path, wrappers: dict[str, Any], cause: str
) -> None:
    with pytest.raises(SeatFailed, match=cause) as raised:
        play_duel(tmp_path, base, rounds=3, preset=UNMEASURED, engine="ray", wrappers=wrappers)
    assert_told_and_saved(raised.value, tmp_path)
    assert not play_duel(tmp_path, base, rounds=3, preset=UNMEASURED, resume=True)


@needs_cluster
def test_a_lost_sandbox_ends_the_run(base: Path, tmp_path: Path) -> None:
    with pytest.raises(SeatFailed, match="the arena failed: SandboxError: round 1 must be scored, got no score"):
        play_duel(tmp_path, base, rounds=3, preset=UNMEASURED, engine="ray", make_sandbox=NoSandbox)


class Recipe:
    """agents/train_grpo.py as a user runs it, many short rounds, with all processes that it starts."""

    def __init__(self, directory: Path, bases: Path) -> None:
        psutil = pytest.importorskip("psutil")
        self.output = directory / "run"
        self.environment = {name: value for name, value in os.environ.items() if name != "RAY_ADDRESS"}
        self.environment["CODEA1_CACHE"] = str(bases)
        options = ["--preset", "smoke", "--engine", "ray", "--rounds", "2000", "--output", str(self.output)]
        self.process = psutil.Popen(
            [sys.executable, "agents/train_grpo.py", *options],
            cwd=ROOT,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def family_in_training(self) -> list[Any]:
        """Its descendants, once each seat has learnt from a round."""
        while self.process.poll() is None and {r["seat"] for r in lines(self.output) if r["kind"] == "seat"} != set(
            SEATS
        ):
            time.sleep(0.05)
        return list(self.process.children(recursive=True))

    def end(self, family: list[Any]) -> tuple[int, str, str]:
        """Status and outputs; nothing that it started is left."""
        out, errors = self.process.communicate(timeout=240)
        import psutil

        assert not psutil.wait_procs(family, timeout=60)[1]
        return self.process.returncode, out.decode(), errors.decode()

    def rounds(self) -> set[int]:
        return {r["round"] for r in lines(self.output) if r["kind"] == "round"}

    def resume(self, rounds: int) -> None:
        options = ["--resume", str(self.output), "--rounds", str(rounds)]
        command = [sys.executable, "agents/train_grpo.py", *options]
        subprocess.run(command, cwd=ROOT, env=self.environment, check=True, capture_output=True)


def test_ctrl_c_finishes_the_round_leaves_nothing_running_and_the_run_goes_on(bases: Path, tmp_path: Path) -> None:
    recipe = Recipe(tmp_path, bases)
    family = recipe.family_in_training()
    os.killpg(recipe.process.pid, signal.SIGINT)  # as a terminal does: to everything that was started
    status, _, errors = recipe.end(family)
    assert status == 130, errors[-2000:]
    assert "stopped; both seats are saved" in errors
    steps = [{int(path.name.split("-")[1]) for path in (recipe.output / seat).glob("checkpoint-*")} for seat in SEATS]
    assert steps[0] == steps[1]
    done = max(steps[0])
    assert recipe.rounds() == set(range(1, done + 1))
    recipe.resume(done + 1)
    assert recipe.rounds() == set(range(1, done + 2))


def test_a_killed_actor_ends_the_recipe_with_one_line_and_the_status_1(bases: Path, tmp_path: Path) -> None:
    recipe = Recipe(tmp_path, bases)
    family = recipe.family_in_training()
    victim = next(process for process in family if "SeatActor" in process.cmdline()[0])
    victim.kill()
    status, _, errors = recipe.end(family)
    assert status == 1
    assert "Traceback" not in errors
    assert re.match(r"train_grpo\.py: the (coder|tester) is gone: ", errors.splitlines()[-1])


def lines(output: Path) -> list[dict[str, Any]]:
    file = output / "metrics.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
