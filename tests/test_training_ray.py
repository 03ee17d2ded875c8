"""The Ray engine: the same bits as in one process, and an end with a cause, ready to be resumed, whatever fails."""

import dataclasses
import hashlib
import json
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

pytest.importorskip("trl", reason="the extra `train` is not installed")
pytest.importorskip("ray", reason="the extra `ray` is not installed")

import ray
import training_runs
from ray_clusters import start_cluster
from training_runs import SEATS, TINY, assert_same_runs, play_duel, same_weights
from transformers import TrainerCallback

from codea1_env.errors import SandboxError, SeatFailed
from codea1_env.training.config.algorithm import Algorithm
from codea1_env.training.config.options import Options
from codea1_env.training.config.placement import Placement, SeatPlacement
from codea1_env.training.engine.ray_actors import RankPlace
from codea1_env.training.engine.ray_cluster import rank_environments
from codea1_env.training.run.run_dir import BOOK

pytestmark = pytest.mark.filterwarnings("default::ResourceWarning", "ignore::DeprecationWarning:ray")

ROOT = Path(__file__).parent.parent
TWICE = dataclasses.replace(TINY, round=dataclasses.replace(TINY.round, updates=2))
UNMEASURED = dataclasses.replace(TINY, evaluation=dataclasses.replace(TINY.evaluation, every_rounds=0))


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    """One for all: the engine stays with the cluster that its process has joined."""
    for module in (training_runs, sys.modules[__name__]):
        ray.cloudpickle.register_pickle_by_value(module)  # the actors cannot import tests
    start_cluster(num_cpus=4)
    yield
    ray.shutdown()


needs_cluster = pytest.mark.usefixtures("cluster")


@pytest.fixture(scope="module")
def whole(base: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An uninterrupted run in one process: what every run here must come to."""
    directory = tmp_path_factory.mktemp("runs") / "local"
    assert not play_duel(directory, base, rounds=3, preset=TWICE)
    return directory


class InRound:
    """A seat's meeting that does `what(meeting)` before it takes the programs of a round, counted from 1."""

    def __init__(self, meeting: Any, number: int, what: Callable[[Any], None]) -> None:
        self._meeting, self._number, self._what = meeting, number, what

    def take_attacks(self, round_index: int) -> Any:
        if round_index + 1 == self._number:
            self._what(self._meeting)
        return self._meeting.take_attacks(round_index)

    def submit_suites(self, *arguments: Any) -> Any:
        return self._meeting.submit_suites(*arguments)


def meet_in_round(number: int, what: Callable[[Any], None]) -> dict[str, Any]:
    return {"tester": lambda meeting: InRound(meeting, number, what)}


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


def die(_: Any = None) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def kill_the_arena(meeting: Any) -> None:
    os.kill(ray.get(meeting.actor.process.remote()), signal.SIGKILL)


def sleep_for_ever(_: Any) -> None:
    time.sleep(1e6)


class NoSandbox:
    """Answers nothing, as when its machine is gone."""

    version = "none"

    def run(self, jobs: Any) -> Any:
        raise SandboxError("the sandbox must answer, got no answer")

    def close(self) -> None:
        pass


@needs_cluster
def test_both_engines_give_the_same_bits(whole: Path, base: Path, tmp_path: Path) -> None:
    assert not play_duel(tmp_path / "ray", base, rounds=3, preset=TWICE, engine="ray")
    assert_same_runs(whole, tmp_path / "ray")


@pytest.mark.slow
@needs_cluster
def test_a_killed_seat_ends_the_run_which_is_resumed_to_the_same_bits(whole: Path, base: Path, tmp_path: Path) -> None:
    directory = tmp_path / "killed"
    with pytest.raises(SeatFailed, match="the tester is gone: ") as raised:
        play_duel(directory, base, rounds=3, preset=TWICE, engine="ray", wrappers=meet_in_round(3, die))
    assert_told_and_saved(raised.value, directory)
    assert not play_duel(directory, base, rounds=3, preset=TWICE, engine="ray", resume=True)
    assert_same_runs(whole, directory)


@pytest.mark.slow
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


@pytest.mark.slow
@needs_cluster
@pytest.mark.parametrize(("wrappers", "cause"), FAILURES.values(), ids=FAILURES)
def test_a_failure_ends_the_run_with_its_cause_and_a_checkpoint(
    base: Path, tmp_path: Path, wrappers: dict[str, Any], cause: str
) -> None:
    with pytest.raises(SeatFailed, match=cause) as raised:
        play_duel(tmp_path, base, rounds=3, preset=UNMEASURED, engine="ray", wrappers=wrappers)
    assert_told_and_saved(raised.value, tmp_path)
    assert not play_duel(tmp_path, base, rounds=3, preset=UNMEASURED, resume=True)


@pytest.mark.slow
@needs_cluster
def test_a_lost_sandbox_ends_the_run(base: Path, tmp_path: Path) -> None:
    with pytest.raises(SeatFailed, match="the arena failed: SandboxError: round 1 must be scored, got no score"):
        play_duel(tmp_path, base, rounds=3, preset=UNMEASURED, engine="ray", make_sandbox=NoSandbox)


class NoteWeights(TrainerCallback):
    """Leaves a digest of a rank's weights when its training ends."""

    def __init__(self, directory: Path, seat: str) -> None:
        self._directory, self._seat = directory, seat

    def on_train_end(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
        digest = hashlib.sha256()
        for _, weight in sorted(rest["model"].state_dict().items()):
            digest.update(weight.numpy().tobytes())
        (self._directory / f"{self._seat}-{args.process_index}").write_text(digest.hexdigest())


PLACED = {seat: SeatPlacement(ranks=2) for seat in SEATS}


@pytest.mark.slow
@needs_cluster
def test_two_ranks_a_seat_hold_the_same_weights_and_resume_to_the_same_bits(base: Path, tmp_path: Path) -> None:
    preset = dataclasses.replace(TWICE, placement=Placement(**PLACED))

    def note_weights(seat: str, trainer: Any) -> None:
        trainer.add_callback(NoteWeights(tmp_path, seat))

    assert not play_duel(tmp_path / "whole", base, rounds=3, preset=preset, engine="ray", on_built=note_weights)
    for seat in SEATS:
        first, second = ((tmp_path / f"{seat}-{rank}").read_text() for rank in range(2))
        assert first == second
        assert not same_weights(tmp_path / "whole" / seat / "final", base)
    cut = meet_in_round(3, die)
    with pytest.raises(SeatFailed, match="the tester is gone"):
        play_duel(tmp_path / "resumed", base, rounds=3, preset=preset, engine="ray", wrappers=cut)
    assert not play_duel(tmp_path / "resumed", base, rounds=3, preset=preset, engine="ray", resume=True)
    assert_same_runs(tmp_path / "whole", tmp_path / "resumed")


def test_ranks_are_told_their_place_and_see_the_gpus_of_their_seat_on_their_machine() -> None:
    places = [
        RankPlace("first", 1, "10.0.0.1", 4001, ("2",)),
        RankPlace("first", 2, "10.0.0.1", 4002, ("3",)),
        RankPlace("second", 3, "10.0.0.2", 4003, ("0",)),
        RankPlace("second", 4, "10.0.0.2", 4004, ("1",)),
    ]
    found = rank_environments(places)
    assert [each["RANK"] for each in found] == ["0", "1", "2", "3"]
    assert [each["LOCAL_RANK"] for each in found] == ["0", "1", "0", "1"]
    assert {(each["WORLD_SIZE"], each["LOCAL_WORLD_SIZE"]) for each in found} == {("4", "2")}
    assert {(each["MASTER_ADDR"], each["MASTER_PORT"]) for each in found} == {("10.0.0.1", "4001")}
    assert [each["CUDA_VISIBLE_DEVICES"] for each in found] == ["2,3", "2,3", "0,1", "0,1"]
    assert rank_environments(places[:1]) == [{}]


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


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_killed_actor_ends_the_recipe_with_one_line_and_the_status_1(bases: Path, tmp_path: Path) -> None:
    recipe = Recipe(tmp_path, bases)
    family = recipe.family_in_training()
    victim = next(process for process in family if "SeatActor" in process.cmdline()[0])
    victim.kill()
    status, _, errors = recipe.end(family)
    assert status == 1
    assert "Traceback" not in errors
    assert re.match("error: the (coder|tester) is gone: ", errors.splitlines()[-1])


def lines(output: Path) -> list[dict[str, Any]]:
    file = output / "metrics.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


@pytest.mark.slow
@needs_cluster
def test_self_play_with_the_past_gives_the_same_bits_under_both_engines(base: Path, tmp_path: Path) -> None:
    options = Options(opponents="prioritised", opponent_every=1, tester_book=1)
    preset = dataclasses.replace(training_runs.TINY, options=options, algorithm=Algorithm(credit="test"))
    for engine in ("local", "ray"):
        assert not training_runs.play_alone(tmp_path / engine, base, rounds=2, preset=preset, engine=engine)
    one, other = tmp_path / "local", tmp_path / "ray"
    assert training_runs.same_weights(one / "player" / "final", other / "player" / "final")
    assert (one / BOOK).read_bytes() == (other / BOOK).read_bytes()
    for kind, seat in (("round", ""), ("seat", "player"), ("evaluation", "coder"), ("evaluation", "tester")):
        mine, others = (training_runs.records(run, kind, seat) for run in (one, other))
        assert training_runs.without_seconds(mine) == training_runs.without_seconds(others)


@pytest.mark.slow
@needs_cluster
def test_self_play_on_two_ranks_resumes_to_the_same_bits(base: Path, tmp_path: Path) -> None:
    algorithm = Algorithm(credit="test", zero_variance="drop")
    placement = Placement(coder=SeatPlacement(ranks=2))
    preset = dataclasses.replace(training_runs.TINY, placement=placement, algorithm=algorithm)

    def play(run: str, rounds: int, resume: bool = False) -> Path:
        directory = tmp_path / run
        assert not training_runs.play_alone(directory, base, rounds=rounds, preset=preset, engine="ray", resume=resume)
        return directory / "player" / "final"

    whole = play("whole", 2)
    assert not same_weights(whole, base)
    play("resumed", 1)
    assert same_weights(play("resumed", 2, resume=True), whole)


@pytest.mark.slow
@needs_cluster
def test_a_duel_with_options_gives_the_same_bits_under_both_engines(base: Path, tmp_path: Path) -> None:
    options = Options(opponents="uniform", opponent_every=1, tester_book=1, selection="random")
    preset = dataclasses.replace(training_runs.TINY, options=options, algorithm=Algorithm(advantage="question"))
    for engine in ("local", "ray"):
        assert not play_duel(tmp_path / engine, base, rounds=2, preset=preset, engine=engine)
    assert_same_runs(tmp_path / "local", tmp_path / "ray")
