"""What the tests of training share: a short duel of tiny models under either engine. Not a test module."""

from __future__ import annotations

import dataclasses
import json
import runpy
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file

from codea1_env.arena.arena import Arena
from codea1_env.errors import SandboxError
from codea1_env.problems.families.miniature import miniature_problems
from codea1_env.problems.problem import Problem
from codea1_env.sandbox import open_sandbox
from codea1_env.training.config.arguments import Arguments
from codea1_env.training.config.presets import SMOKE, Preset, WarmStartPreset
from codea1_env.training.engine.local import Build, LocalEngine, prepare_process
from codea1_env.training.grpo.seats import Score, TesterTurn, coder_trainer, tester_trainer
from codea1_env.training.grpo.self_play import self_play_trainer
from codea1_env.training.models.warm_start import base_model
from codea1_env.training.round.rounds import Rewards, RoundScore, attacks_of, schedule
from codea1_env.training.run.run_dir import BOOK, Run

ROOT = Path(__file__).parent.parent
SEATS = ("coder", "tester")

# Warm enough that programs load and asserts parse now and then: rewards differ, and both seats have a gradient.
TINY = dataclasses.replace(
    SMOKE,
    name="tiny",
    round=dataclasses.replace(SMOKE.round, programs=4, suites=4),
    grpo=SMOKE.grpo.changed(
        {"weight_decay": 0.0, "coder": {"max_completion_length": 48}, "tester": {"max_completion_length": 64}}
    ),
    model=dataclasses.replace(SMOKE.model, hidden=64, heads=2, feed_forward=64),
    warm_start=WarmStartPreset(steps=500, examples_per_step=16, problems=200),
)


class NoSandbox:
    """Answers nothing, as when its machine is gone."""

    version = "none"

    def run(self, jobs: Any) -> Any:
        raise SandboxError("the sandbox must answer, got no answer")

    def close(self) -> None:
        pass


def run_here(script: str, *argv: str, cache: Path, patch: Any, capsys: Any, status: int = 0) -> str:
    """Run a recipe or an example in this process, as its command line does: torch and TRL are loaded once for all.
    What it prints; it must end with `status`."""
    patch.setenv("CODEA1_CACHE", str(cache))
    patch.setattr("sys.argv", [script, *argv])
    try:
        runpy.run_path(str(ROOT / script), run_name="__main__")
        ended = 0
    except SystemExit as stop:
        ended = stop.code or 0
    shown = capsys.readouterr()
    assert ended == status, shown.err[-2000:]
    return str(shown.out)


def tiny_base(cache: Path, preset: Preset = TINY) -> Path:
    return base_model(preset, cache)


def play_duel(
    directory: Path,
    base: Path,
    *,
    rounds: int,
    preset: Preset = TINY,
    seed: int = 0,
    resume: bool = False,
    engine: str = "local",
    arena_type: type[Arena] = Arena,
    make_sandbox: Callable[[], Any] = open_sandbox,
    wrappers: Mapping[str, Callable[[Any], Any]] | None = None,
    delays: Mapping[str, float] | None = None,
    on_built: Callable[[str, Any], None] = lambda seat, trainer: None,
    order: Sequence[str] = ("coder", "tester"),
) -> bool:
    """The training part of agents/train_grpo.py. True if it was interrupted.

    `wrappers`: by seat, around the coder's reward and around the tester's meeting. `delays`: seconds that a seat holds
    everybody up before it starts. `on_built`: told each rank's trainer. `arena_type`: for the local engine.
    """
    prepare_process()
    preset = dataclasses.replace(preset, rounds=rounds)
    problems = miniature_problems("train", preset.problems.train, seed)
    held_out = miniature_problems("held_out", preset.problems.held_out, 0)
    asked = [problems[place] for place in schedule(len(problems), rounds, preset.round.questions, seed)]
    arguments = Arguments(preset, directory, seed, resume, engine)
    wrap = {"coder": unwrapped, "tester": unwrapped} | dict(wrappers or {})

    def delayed(seat: str, build: Build) -> Build:
        def build_later(seat_run: Any, hooks: Any) -> Any:
            time.sleep((delays or {}).get(seat, 0.0))
            trainer = build(seat_run, hooks)
            on_built(seat, trainer)
            return trainer

        return build_later

    with Run(arguments, seats=("coder", "tester")) as run, ExitStack() as stack:
        playing: Any
        if engine == "local":
            arena = arena_type(stack.enter_context(make_sandbox()), preset.reward, run.book())
            playing = LocalEngine(run, arena, base, held_out)
        else:
            from codea1_env.training.engine.ray_cluster import open_ray_engine

            ray_engine = open_ray_engine(run, base, held_out, make_sandbox=make_sandbox)
            playing = stack.enter_context(ray_engine)
        meeting = playing.exchange()
        builds: dict[str, Build] = {
            "coder": lambda seat, hooks: coder_trainer(seat, hooks, wrap["coder"](paid_at(meeting)), asked),
            "tester": lambda seat, hooks: tester_trainer(seat, hooks, attack_at(wrap["tester"](meeting))),
        }
        interrupted = playing.train({seat: delayed(seat, builds[seat]) for seat in order})
        playing.arena.book.save(directory / BOOK)
    return bool(interrupted)


def paid_at(meeting: Any) -> Score:
    """The coder's round, as agents/train_grpo.py has it."""

    def pay(round_index: int, problems: Sequence[Problem], responses: Sequence[str]) -> Rewards:
        rewards: Rewards = meeting.submit_codes(round_index, attacks_of(problems, responses))
        return rewards

    return pay


def attack_at(meeting: Any) -> Callable[[TesterTurn], RoundScore]:
    """The tester's round, as agents/train_grpo.py has it."""

    def attack(turn: TesterTurn) -> RoundScore:
        programs = turn.programs(meeting)
        return turn.score(meeting, programs, turn.sample(programs))

    return attack


def play_alone(
    directory: Path, base: Path, *, rounds: int, preset: Preset = TINY, resume: bool = False, engine: str = "local"
) -> bool:
    """The training part of baselines/self_play.py. True if it was interrupted."""
    prepare_process()
    preset = dataclasses.replace(preset, rounds=rounds)
    problems = miniature_problems("train", preset.problems.train, 0)
    held_out = miniature_problems("held_out", preset.problems.held_out, 0)
    asked = [problems[place] for place in schedule(len(problems), rounds, preset.round.questions, 0)]
    with Run(Arguments(preset, directory, 0, resume, engine), seats=("player",)) as run, ExitStack() as stack:
        playing: Any
        if engine == "local":
            arena = Arena(stack.enter_context(open_sandbox()), preset.reward, run.book())
            playing = LocalEngine(run, arena, base, held_out)
        else:
            from codea1_env.training.engine.ray_cluster import open_ray_engine

            playing = stack.enter_context(open_ray_engine(run, base, held_out))
        table, log = playing.arena, playing.log_round
        interrupted = playing.train({"player": lambda seat, hooks: self_play_trainer(seat, hooks, table, log, asked)})
        playing.arena.book.save(directory / BOOK)
    return bool(interrupted)


def unwrapped(what: Any) -> Any:
    return what


def weights(directory: Path) -> dict[str, torch.Tensor]:
    return load_file(directory / "model.safetensors")


def same_weights(one: Path, other: Path) -> bool:
    """Bit for bit."""
    a, b = weights(one), weights(other)
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def records(directory: Path, kind: str, seat: str = "") -> list[dict[str, Any]]:
    lines = (directory / "metrics.jsonl").read_text().splitlines()
    found = [json.loads(line) for line in lines]
    return sorted((r for r in found if r["kind"] == kind and r["seat"] == seat), key=lambda r: r["round"])


def without_seconds(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: value for key, value in record.items() if not key.startswith("seconds")} for record in found]


def assert_same_runs(one: Path, other: Path) -> None:
    """Bit for bit: final weights, the last checkpoints' optimizers and generators, the book, metrics but for times."""
    for seat in SEATS:
        assert same_weights(one / seat / "final", other / seat / "final"), seat
        for kind in ("seat", "evaluation"):
            assert without_seconds(records(one, kind, seat)) == without_seconds(records(other, kind, seat))
        mine, others = last_checkpoint(one / seat), last_checkpoint(other / seat)
        assert mine.name == others.name
        for name in ("optimizer.pt", "scheduler.pt", *(path.name for path in mine.glob("rng_state*.pth"))):
            assert (mine / name).read_bytes() == (others / name).read_bytes(), f"{seat} {name}"
    assert without_seconds(records(one, "round")) == without_seconds(records(other, "round"))
    assert (one / BOOK).read_bytes() == (other / BOOK).read_bytes()
    assert logged_names(one) == logged_names(other)


def logged_names(directory: Path) -> set[tuple[str, str, str]]:
    """(kind, seat, name) of everything that a run logged, seconds included."""
    lines = [json.loads(line) for line in (directory / "metrics.jsonl").read_text().splitlines()]
    return {(line["kind"], line["seat"], name) for line in lines for name in line}


@dataclasses.dataclass(frozen=True)
class MetricRow:
    """One row of a table on the page of metrics."""

    kind: str
    seats: tuple[str, ...]
    name: str
    source: str


def metric_rows() -> list[MetricRow]:
    found, kind = [], ""
    for line in (ROOT / "docs" / "metrics.md").read_text().splitlines():
        kind = line.removeprefix("## kind: ") if line.startswith("## kind: ") else kind
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if cells[0].startswith("`") and len(cells) > 1:
            seats = {"round": ("",), "seat": ("coder", "tester", "player"), "evaluation": (cells[1],)}[kind]
            found.append(MetricRow(kind, seats, cells[0].strip("`"), cells[-1].split(",")[0].replace("`", "")))
    return found


def last_checkpoint(directory: Path) -> Path:
    return max(directory.glob("checkpoint-*"), key=lambda path: int(path.name.split("-")[1]))
