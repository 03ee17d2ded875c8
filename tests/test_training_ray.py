"""The Ray engine: the bits of one process; when something fails, an end with a cause, and a run that goes on."""

import hashlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ray", reason="the extra `ray` is not installed")

import ray
import training_runs as runs
from ray_clusters import start_cluster
from test_training_baselines import trained
from test_training_resume import RUNS, made

from codea1_env import whole_files
from codea1_env.errors import ConfigurationError, SandboxError, SeatFailed
from codea1_env.training.policies.ray_seats import RankPlace
from codea1_env.training.policies.remote import rank_environments

warns = pytest.mark.filterwarnings("default::ResourceWarning", "ignore::DeprecationWarning:ray")
pytestmark = [pytest.mark.longest, warns]
needs_cluster = pytest.mark.usefixtures("cluster")
RECIPE = str(runs.ROOT / "agents" / "train_grpo.py")
UNMEASURED = runs.without_evaluations()
TWICE = runs.tiny(round={"updates": 2})
TWO_RANKS, SEATS = {"ranks": 2}, ("coder", "tester", "tester_1")
THREE = {"three, trl": {"seats": SEATS}, "three, packed": {"seats": SEATS, **runs.PACKED}}
What = Callable[[Any, Any], None]
"""What a test does once a round is scored: `what(run, score)`."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    """One for all: the engine stays with the cluster that its process has joined."""
    for module in (runs, sys.modules[__name__]):
        ray.cloudpickle.register_pickle_by_value(module)  # the actors cannot import tests
    start_cluster(num_cpus=4)
    yield
    ray.shutdown()


whole = runs.finished_run(rounds=2, preset=TWICE)
"""In one process: what every run here must come to."""


def killed(seat: str, rank: int = -1) -> What:
    """A process of a seat is gone."""
    return lambda run, score: run._policies[seat]._ranks.actors[rank].__ray_call__.remote(die)


def die(_: Any = None) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def learns_by(seat: str, loss: Callable[[Any], Any]) -> What:
    """A seat takes a gradient of another loss."""

    def what(run: Any, score: Any) -> None:
        policy, batch = run._policies[seat], score.batches[runs.SEATS.index(seat)]
        policy.backward(policy.updates(batch, policy.advantages(batch))[0], loss)

    return what


@pytest.mark.slow
@needs_cluster
@pytest.mark.parametrize("sections", (RUNS | THREE).values(), ids=RUNS | THREE)
def test_a_run_goes_on_under_ray_to_the_local_bits(sections: dict[str, Any], base: Path, tmp_path: Path) -> None:
    seats, preset = made(sections, tmp_path)
    runs.assert_resumes(base, tmp_path, rounds=2, preset=preset, seats=seats, engine="ray")
    finals = [next((tmp_path / "parts" / seat / "final").glob("*.safetensors")).read_bytes() for seat in seats]
    assert len(set(finals)) == len(seats), "every seat has learnt something of its own"


@pytest.mark.slow
@needs_cluster
@pytest.mark.parametrize("recipe", ["golden_tests", "frozen_tester", "static_tests", "sft", "expert_iteration"])
@pytest.mark.parametrize("changes", [{}, runs.PACKED], ids=["trl", "packed"])
def test_every_baseline_gives_the_same_bits_under_both_engines(
    recipe: str, changes: dict[str, Any], bases: Path, tmp_path: Path, monkeypatch: Any, capsys: Any
) -> None:
    how = {"preset": runs.tiny(rounds=2, **changes), "cache": bases, "patch": monkeypatch}
    for engine in ("local", "ray"):
        trained(recipe, tmp_path / engine, "--engine", engine, capsys=capsys, **how)
    runs.assert_same_runs(tmp_path / "local", tmp_path / "ray")


def weights_digest(actor: Any) -> str:
    weights = sorted(actor._policy._trainer.model.state_dict().items())
    return hashlib.sha256(b"".join(weight.numpy().tobytes() for _, weight in weights)).hexdigest()


BY_TEST = {"credit": "test", "zero_variance": "drop"}
ON_TWO_RANKS = [
    (runs.SEATS, runs.tiny(TWICE, placement={"coder": TWO_RANKS, "tester": TWO_RANKS})),
    (("player",), runs.without_evaluations(placement={"coder": TWO_RANKS}, algorithm=BY_TEST)),
]


@pytest.mark.cluster
@needs_cluster
@pytest.mark.parametrize(("seats", "preset"), ON_TWO_RANKS, ids=["duel", "alone"])
def test_two_ranks_hold_the_same_weights_and_resume_to_the_same_bits(seats, preset, base: Path, tmp_path: Path) -> None:
    noted = dict[str, list[str]]()

    def note_weights(run: Any, score: Any) -> None:
        for seat in seats:
            actors = run._policies[seat]._ranks.actors
            noted[seat] = ray.get([actor.__ray_call__.remote(weights_digest) for actor in actors])

    how: dict[str, Any] = {"rounds": 2, "preset": preset, "engine": "ray", "seats": seats}
    assert not runs.play_duel(tmp_path / "whole", base, **how, on_score=runs.in_round(2, note_weights))
    for seat in seats:
        first, second = noted[seat]
        assert first == second
        assert not runs.same_weights(tmp_path / "whole" / seat / "final", base)
    with pytest.raises(SeatFailed, match=f"the {seats[-1]} is gone"):
        runs.play_duel(tmp_path / "resumed", base, **how, on_score=runs.in_round(2, killed(seats[-1])))
    assert not runs.play_duel(tmp_path / "resumed", base, **how, resume=True)
    runs.assert_same_runs(tmp_path / "whole", tmp_path / "resumed")


def test_ranks_are_told_their_place_and_see_the_gpus_of_their_seat_on_their_machine() -> None:
    first = [RankPlace("first", 1, "10.0.0.1", 4001, ("2",)), RankPlace("first", 2, "10.0.0.1", 4002, ("3",))]
    second = [RankPlace("second", 3, "10.0.0.2", 4003, ("0",)), RankPlace("second", 4, "10.0.0.2", 4004, ("1",))]
    found = rank_environments([*first, *second])
    own = ("RANK", "LOCAL_RANK", "CUDA_VISIBLE_DEVICES")
    mine = [("0", "0", "2,3"), ("1", "1", "2,3"), ("2", "0", "0,1"), ("3", "1", "0,1")]
    assert [tuple(each[name] for name in own) for each in found] == mine
    shared = {"WORLD_SIZE": "4", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "10.0.0.1", "MASTER_PORT": "4001"}
    assert all(each.items() >= shared.items() for each in found)
    assert rank_environments(first[:1]) == [{}]


def divide(_: Any) -> Any:
    raise ZeroDivisionError("the round's own\nand more")


def divide_in_a_rank(batch: Any) -> Any:
    """The other one waits for it."""
    return divide(batch) if os.environ["RANK"] == "1" else (batch.logps * batch.mask).sum()


def sleep_for_ever(_: Any) -> Any:
    time.sleep(1e6)


def patient_for_a_second(run: Any, score: Any) -> None:
    for policy in run._policies.values():
        policy.metrics()  # all that it was asked before is done
        policy._ranks._patience_s = 1.0


RANKS = runs.without_evaluations(placement={"coder": TWO_RANKS})
FAILURES: dict[str, tuple[tuple[What, ...], str, Any, str]] = {
    "a killed seat": ((killed("tester"),), "the tester is gone: ", TWICE, "ray"),
    "a raise, then the other engine": (
        (learns_by("coder", divide),), "^the coder failed: ZeroDivisionError: the round.s own and", TWICE, "local"),
    "a raise while the other seat hangs": (
        (learns_by("coder", sleep_for_ever), learns_by("tester", divide)), "tester failed: Zero", UNMEASURED, "ray"),
    "a hang": (
        (patient_for_a_second, learns_by("tester", sleep_for_ever)),
        "the tester must answer within 1 s, got nothing: it hangs", UNMEASURED, "ray"),
    "a raise of one rank": ((learns_by("coder", divide_in_a_rank),), "the coder failed: ZeroDivision", RANKS, "ray"),
    "a killed rank": ((killed("coder", 1),), "the coder is gone: ", RANKS, "ray"),
}  # fmt: skip


@pytest.mark.slow
@needs_cluster
@pytest.mark.parametrize(("what", "cause", "preset", "then"), FAILURES.values(), ids=FAILURES)
def test_a_failure_ends_the_run_with_its_cause_and_a_checkpoint_to_go_on_from(
    what: tuple[What, ...], cause: str, preset: Any, then: str, whole: Path, base: Path, tmp_path: Path
) -> None:
    with pytest.raises(SeatFailed, match=cause) as raised:
        runs.play_duel(tmp_path, base, rounds=2, preset=preset, engine="ray", on_score=runs.in_round(2, *what))
    assert "\n" not in str(raised.value)
    assert (tmp_path / "failure.txt").read_text().startswith(str(raised.value))
    for seat in runs.SEATS:
        assert list((tmp_path / seat).glob("checkpoint-*/complete.json"))
    assert not runs.play_duel(tmp_path, base, rounds=2, preset=preset, engine=then, resume=True)
    if preset == TWICE:
        runs.assert_same_runs(whole, tmp_path)


@pytest.mark.slow
@needs_cluster
def test_a_local_run_goes_on_under_ray_and_a_lost_sandbox_ends_it(whole, base, tmp_path: Path, monkeypatch) -> None:
    with pytest.raises(ZeroDivisionError):
        runs.play_duel(tmp_path / "run", base, rounds=2, preset=TWICE, on_score=runs.in_round(2, runs.fail))
    assert not runs.play_duel(tmp_path / "run", base, rounds=2, preset=TWICE, engine="ray", resume=True)
    runs.assert_same_runs(whole, tmp_path / "run")
    monkeypatch.setattr("codea1_env.training.recipe.open_sandbox", lambda **_: runs.NoSandbox())
    with pytest.raises(SandboxError, match=r"^the sandbox must answer, got no answer$"):
        runs.play_duel(tmp_path / "lost", base, rounds=2, engine="ray", preset=UNMEASURED)


@pytest.mark.slow
@needs_cluster
def test_actors_hold_the_lock_of_their_run_until_they_have_ended(base: Path, tmp_path: Path, monkeypatch: Any) -> None:
    tried = []

    def go_on_without_the_first_process(run: Any, score: Any) -> None:
        run._run._lock.release()  # as when it is killed
        monkeypatch.setattr(whole_files, "WAIT_S", 0.5)
        with pytest.raises(ConfigurationError, match="must not be in use by another"):
            whole_files.RunLock(tmp_path, alone=True)
        monkeypatch.undo()
        tried.append(run)

    what = runs.in_round(1, go_on_without_the_first_process)
    assert not runs.play_duel(tmp_path, base, rounds=1, preset=UNMEASURED, engine="ray", on_score=what)
    assert tried
    whole_files.RunLock(tmp_path, alone=True).release()


@pytest.fixture
def begun(bases: Path, tmp_path: Path, monkeypatch: Any) -> tuple[Any, list[Any]]:
    """A run of many rounds, started as a user does: its process, and all that that has started in the first round."""
    psutil, run = pytest.importorskip("psutil"), tmp_path / "run"
    monkeypatch.setenv("RAY_ADDRESS", "local")
    monkeypatch.setenv("CODEA1_CACHE", str(bases))
    options = ["--preset", "smoke", "--engine", "ray", "--rounds", "2000", "--output", str(run)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = psutil.Popen([sys.executable, RECIPE, *options], start_new_session=True, **pipes)
    while process.poll() is None:
        if (run / "metrics.jsonl").exists() and all(runs.records(run, "seat", seat) for seat in runs.SEATS):
            break
        time.sleep(0.05)
    return process, process.children(recursive=True)


def ended(process: Any, family: list[Any]) -> tuple[int, str]:
    """Status and errors; nothing that it started is left."""
    import psutil

    _, errors = process.communicate(timeout=240)
    assert not psutil.wait_procs(family, timeout=60)[1]
    return process.returncode, errors


@pytest.mark.slow
def test_ctrl_c_finishes_the_round_leaves_nothing_running_and_the_run_goes_on(begun: Any, tmp_path: Path) -> None:
    process, family = begun
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to everything that was started
    status, errors = ended(process, family)
    assert status == 130, errors[-2000:]
    assert "stopped; all seats are saved" in errors
    run = tmp_path / "run"
    steps = [{int(path.name.split("-")[1]) for path in (run / seat).glob("checkpoint-*")} for seat in runs.SEATS]
    assert steps[0] == steps[1]
    done = max(steps[0])
    assert [line["round"] for line in runs.records(run, "round")] == list(range(1, done + 1))
    command = [sys.executable, RECIPE, "--resume", str(run), "--rounds", str(done + 1)]
    subprocess.run(command, check=True, capture_output=True)
    assert [line["round"] for line in runs.records(run, "round")] == list(range(1, done + 2))


@pytest.mark.slow
def test_a_killed_actor_ends_the_recipe_with_one_line_and_the_status_1(begun: Any) -> None:
    process, family = begun
    next(each for each in family if "SeatActor" in each.cmdline()[0]).kill()
    status, errors = ended(process, family)
    assert status == 1
    assert "Traceback" not in errors
    assert re.match(r"train_grpo\.py: the (coder|tester) is gone: ", errors.splitlines()[-1])
