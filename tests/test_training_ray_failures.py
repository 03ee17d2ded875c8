"""The Ray engine, when something fails: an end with a cause, and a run that goes on to the same bits."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("trl", reason="the extra `train` is not installed")
pytest.importorskip("ray", reason="the extra `ray` is not installed")

from ray_training import (
    TWICE,
    What,
    cluster,
    in_round,
    killed,
    learns_by,
    needs_cluster,
    whole,
)
from training_runs import ROOT, SEATS, NoSandbox, assert_same_runs, play_duel, records, without_evaluations

from codea1_env.configuration.placement import Placement, SeatPlacement
from codea1_env.errors import ConfigurationError, SandboxError, SeatFailed
from codea1_env.training.run import lock

__all__ = ["cluster", "whole"]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.longest,
    pytest.mark.filterwarnings("default::ResourceWarning", "ignore::DeprecationWarning:ray"),
]

RECIPE = str(ROOT / "agents" / "train_grpo.py")
UNMEASURED = without_evaluations()
TWO_RANKS = without_evaluations(placement=Placement(coder=SeatPlacement(ranks=2)))


def divide(_: Any) -> Any:
    raise ZeroDivisionError("the coder's own\nand more")


def divide_in_a_rank(batch: Any) -> Any:
    """The other one waits for it."""
    return divide(batch) if os.environ["RANK"] == "1" else (batch.logps * batch.mask).sum()


def sleep_for_ever(_: Any) -> Any:
    time.sleep(1e6)


def patient_for_a_second(run: Any, score: Any) -> None:
    for policy in run._policies.values():
        policy.metrics()  # all that it was asked before is done
        policy._ranks._patience_s = 1.0


def assert_told_and_saved(failure: BaseException, directory: Path) -> None:
    """One line says the cause, here and in the run's folder; both seats have a whole checkpoint to go on from."""
    assert "\n" not in str(failure)
    assert (directory / "failure.txt").read_text().startswith(str(failure))
    for seat in SEATS:  # of the first round: at the second one's, a seat may have been cut off
        assert list((directory / seat).glob("checkpoint-*/complete.json"))


@needs_cluster
def test_a_killed_seat_ends_the_run_which_is_resumed_to_the_same_bits(whole: Path, base: Path, tmp_path: Path) -> None:
    how: dict[str, Any] = {"rounds": 3, "preset": TWICE, "engine": "ray"}
    with pytest.raises(SeatFailed, match="the tester is gone: ") as raised:
        play_duel(tmp_path, base, **how, **in_round(3, killed("tester")))
    assert_told_and_saved(raised.value, tmp_path)
    assert not play_duel(tmp_path, base, **how, resume=True)
    assert_same_runs(whole, tmp_path)


@needs_cluster
@pytest.mark.parametrize("engines", [("ray", "local"), ("local", "ray")], ids="-then-".join)
def test_a_run_is_resumed_under_the_other_engine_to_the_same_bits(
    whole: Path, base: Path, tmp_path: Path, engines: tuple[str, str]
) -> None:
    failure = SeatFailed if engines[0] == "ray" else ZeroDivisionError
    how: dict[str, Any] = {"rounds": 3, "preset": TWICE}
    with pytest.raises(failure, match="the coder's own") as raised:
        play_duel(tmp_path, base, **how, engine=engines[0], **in_round(3, learns_by("coder", divide)))
    if engines[0] == "ray":
        assert str(raised.value).startswith("the coder failed: ZeroDivisionError: the coder's own and more")
        assert_told_and_saved(raised.value, tmp_path)
    assert not play_duel(tmp_path, base, **how, engine=engines[1], resume=True)
    assert_same_runs(whole, tmp_path)


# A seat that raises, and one that is killed, are above.
FAILURES: dict[str, tuple[tuple[What, ...], str, Any]] = {
    "a raise while the other seat hangs": (
        (learns_by("coder", sleep_for_ever), learns_by("tester", divide)),
        "the tester failed: ZeroDivisionError",
        UNMEASURED,
    ),
    "a hang": (
        (patient_for_a_second, learns_by("tester", sleep_for_ever)),
        "the tester must answer within 1 s, got nothing: it hangs",
        UNMEASURED,
    ),
    "a raise of one rank": (
        (learns_by("coder", divide_in_a_rank),),
        "the coder failed: ZeroDivisionError",
        TWO_RANKS,
    ),
    "a killed rank": ((killed("coder", 1),), "the coder is gone: ", TWO_RANKS),
}


@needs_cluster
@pytest.mark.parametrize(("what", "cause", "preset"), FAILURES.values(), ids=FAILURES)
def test_a_failure_ends_the_run_with_its_cause_and_a_checkpoint(
    base: Path, tmp_path: Path, what: tuple[What, ...], cause: str, preset: Any
) -> None:
    with pytest.raises(SeatFailed, match=cause) as raised:
        play_duel(tmp_path, base, rounds=3, preset=preset, engine="ray", **in_round(3, *what))
    assert_told_and_saved(raised.value, tmp_path)
    assert not play_duel(tmp_path, base, rounds=3, preset=preset, engine="ray", resume=True)


@needs_cluster
def test_a_lost_sandbox_ends_the_run(base: Path, tmp_path: Path) -> None:
    with pytest.raises(SandboxError, match=r"^the sandbox must answer, got no answer$"):
        play_duel(tmp_path, base, rounds=3, preset=UNMEASURED, engine="ray", make_sandbox=lambda: closing(NoSandbox()))


@needs_cluster
def test_actors_hold_the_lock_of_their_run_until_they_have_ended(base: Path, tmp_path: Path, monkeypatch: Any) -> None:
    tried = []

    def go_on_without_the_first_process(run: Any, score: Any) -> None:
        run._run._lock.release()  # as when it is killed
        monkeypatch.setattr(lock, "WAIT_S", 0.5)
        with pytest.raises(ConfigurationError, match="must not be in use by another"):
            lock.RunLock(tmp_path, alone=True)
        monkeypatch.undo()
        tried.append(run)

    assert not play_duel(
        tmp_path, base, rounds=1, preset=UNMEASURED, engine="ray", **in_round(1, go_on_without_the_first_process)
    )
    assert tried
    lock.RunLock(tmp_path, alone=True).release()


@pytest.fixture
def begun(bases: Path, tmp_path: Path, monkeypatch: Any) -> Callable[[], tuple[Any, list[Any]]]:
    """Starts agents/train_grpo.py as a user does, many short rounds in `run`: the process, and all that it has started
    once each seat has learnt from a round."""
    psutil = pytest.importorskip("psutil")
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setenv("CODEA1_CACHE", str(bases))

    def begin() -> tuple[Any, list[Any]]:
        options = ["--preset", "smoke", "--engine", "ray", "--rounds", "2000", "--output", str(tmp_path / "run")]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        process = psutil.Popen([sys.executable, RECIPE, *options], start_new_session=True, **pipes)
        metrics = tmp_path / "run" / "metrics.jsonl"
        while process.poll() is None and not (
            metrics.exists() and all(records(tmp_path / "run", "seat", seat) for seat in SEATS)
        ):
            time.sleep(0.05)
        return process, process.children(recursive=True)

    return begin


def ended(process: Any, family: list[Any]) -> tuple[int, str]:
    """Status and errors; nothing that it started is left."""
    import psutil

    _, errors = process.communicate(timeout=240)
    assert not psutil.wait_procs(family, timeout=60)[1]
    return process.returncode, errors


def test_ctrl_c_finishes_the_round_leaves_nothing_running_and_the_run_goes_on(begun: Any, tmp_path: Path) -> None:
    process, family = begun()
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to everything that was started
    status, errors = ended(process, family)
    assert status == 130, errors[-2000:]
    assert "stopped; all seats are saved" in errors
    run = tmp_path / "run"
    steps = [{int(path.name.split("-")[1]) for path in (run / seat).glob("checkpoint-*")} for seat in SEATS]
    assert steps[0] == steps[1]
    done = max(steps[0])
    assert [line["round"] for line in records(run, "round")] == list(range(1, done + 1))
    command = [sys.executable, RECIPE, "--resume", str(run), "--rounds", str(done + 1)]
    subprocess.run(command, check=True, capture_output=True)
    assert [line["round"] for line in records(run, "round")] == list(range(1, done + 2))


def test_a_killed_actor_ends_the_recipe_with_one_line_and_the_status_1(begun: Any) -> None:
    process, family = begun()
    next(each for each in family if "SeatActor" in each.cmdline()[0]).kill()
    status, errors = ended(process, family)
    assert status == 1
    assert "Traceback" not in errors
    assert re.match(r"train_grpo\.py: the (coder|tester) is gone: ", errors.splitlines()[-1])
