"""What the tests of training share: a short duel of tiny models under either engine. Not a test module."""

import dataclasses
import json
import runpy
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import closing, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from safetensors.torch import load_file

from codea1_env import Arena, SandboxError, open_sandbox
from codea1_env.configuration.arguments import RecipeArguments
from codea1_env.configuration.model_sections import WarmStartPreset
from codea1_env.configuration.presets import SMOKE, Preset, preset_from_dict
from codea1_env.mistake_book.parts import FILE as BOOK
from codea1_env.problems.families.miniature import miniature_problems
from codea1_env.training.loop import Recipe
from codea1_env.training.policies.backend import open_backend
from codea1_env.training.policies.policy import Policy
from codea1_env.training.process import prepare_process
from codea1_env.training.recipe import open_arena
from codea1_env.training.round.rounds import Score
from codea1_env.training.run.run_dir import Run
from codea1_env.training.samples import Batch

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


PACKED: dict[str, Any] = {"trainer": "packed", "lora": {"rank": 4, "alpha": 8.0}}
"""What makes a preset one of the packed trainer."""


class NoSandbox:
    """Answers nothing, as when its machine is gone."""

    version = "none"

    def run(self, jobs: Any) -> Any:
        raise SandboxError("the sandbox must answer, got no answer")

    def close(self) -> None:
        pass


def run_here(script: str, *argv: str, cache: Path, patch: Any, capsys: Any = None, status: int = 0, draws=False) -> str:
    """What a recipe or an example prints that runs in this process, as its command line does, and ends with `status`;
    where that is not 0, its last error. `draws`: its curves, which take a third of a short run."""
    if not draws:
        patch.setattr("codea1_env.training.recipe.plot_curves", lambda records, file: None)
    patch.setenv("CODEA1_CACHE", str(cache))
    ended = status_of(script, argv, patch)
    out, err = capsys.readouterr() if capsys else ("", "")
    assert ended == status, err[-2000:]
    return str(err.splitlines()[-1] if status else out)


def status_of(script: str, argv: Sequence[str], patch: pytest.MonkeyPatch) -> Any:
    patch.setattr(sys, "argv", [script, *argv])
    try:
        runpy.run_path(str(ROOT / script), run_name="__main__")
    except SystemExit as stop:
        return stop.code or 0
    return 0


def recipes_here(patch: pytest.MonkeyPatch) -> None:
    """What is started as a recipe runs in this process, one after the other, and draws nothing."""
    process = subprocess.Popen

    class Here:
        def __init__(self, command: Sequence[str], stdout: Any) -> None:
            with pytest.MonkeyPatch.context() as own, redirect_stdout(stdout), redirect_stderr(stdout):
                own.setattr("codea1_env.training.recipe.plot_curves", lambda records, file: None)
                self.status = status_of(command[1], command[2:], own)

        def wait(self) -> int:
            return int(self.status)

    def started(command: Any, **how: Any) -> Any:
        is_recipe = command[0] == sys.executable and Path(command[1]).parent in (ROOT / "agents", ROOT / "baselines")
        return Here(command, how["stdout"]) if is_recipe else process(command, **how)

    patch.setattr(subprocess, "Popen", started)


def play_duel(
    directory: Path,
    base: Path,
    *,
    rounds: int,
    preset: Preset = TINY,
    resume: bool = False,
    engine: str = "local",
    address: str | None = None,
    seats: Sequence[str] = SEATS,
    arena_type: type[Arena] = Arena,
    make_sandbox: Callable[[], Any] = open_sandbox,
    on_score: Callable[[Recipe, int, Score], Score | None] = lambda *_: None,
    on_end: Callable[[int], None] = lambda _: None,
) -> bool:
    """The loop of agents/train_grpo.py; of baselines/self_play.py with a player, of golden_tests.py with a coder alone;
    without the evaluations before and after. True if it was interrupted. `on_score`: told of each round before it is
    learnt from; what it returns is learnt in its place. `on_end`: told of each round once it has ended."""
    prepare_process()
    preset, kind = dataclasses.replace(preset, rounds=rounds), {("player",): "self-play", ("coder",): "golden"}
    problems = miniature_problems("train", preset.problems.train, 0)
    held_out = miniature_problems("held_out", preset.problems.held_out, 0)
    recipe = kind.get(tuple(seats), "code_a1")
    arguments = RecipeArguments(preset, directory, 0, resume, engine, recipe=recipe, address=address)
    with (
        Run(arguments, preset.seats_of(seats), held_out) as opened,
        open_backend(opened, base) as backend,
        make_sandbox() as sandbox,
        open_arena(opened, len(problems))
        if preset.arenas > 1
        else arena_type(sandbox, preset.reward, opened.book(), on_failure="apart") as arena,
        closing(Recipe(opened, backend, arena, base, base, problems)) as run,
    ):
        coder = run.policy(seats[0])
        testers = [coder] if recipe == "self-play" else run.testers()
        for index in run.rounds():
            questions = run.choose(index)
            programs = run.read(questions, coder.sample(run.prompts.coder(questions), run.shape.programs))
            if recipe == "golden":
                score = run.grade(index, programs)
            else:
                shown = run.shown(index, programs)
                suites = [tester.sample(run.prompts.tester(shown), run.shape.suites) for tester in testers]
                score = run.play(index, programs, suites)
            score = on_score(run, index, score) or score
            if recipe == "self-play":
                learn(coder, [row for role in score.batches for row in role])
            else:
                for policy, batch in zip([coder, *testers], score.batches, strict=True):
                    learn(policy, batch)
            run.end(index)
            on_end(index)
    return run.interrupted


def finished_run(**how: Any) -> Any:
    """A fixture of a module: the directory of a run that nobody disturbed."""

    @pytest.fixture(scope="module")
    def finished(base: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
        directory = tmp_path_factory.mktemp("runs") / "whole"
        assert not play_duel(directory, base, **how)
        return directory

    return finished


def assert_resumes(base: Path, directory: Path, *, rounds: int, engine: str = "local", arenas: int = 1, **how) -> Path:
    """A run that ended in its last round and goes on comes to the bits of one in this process that nobody disturbed:
    its directory. `engine`, `arenas`: of the former."""
    whole, parts = directory / "whole", directory / "parts"
    play_duel(whole, base, rounds=rounds, **how)
    if engine == "local" and arenas == 1:
        lose_the_last_round(whole, parts)
    else:
        how |= {"preset": dataclasses.replace(how.get("preset", TINY), arenas=arenas), "engine": engine}
        with pytest.raises(ZeroDivisionError, match="the round's own"):
            play_duel(parts, base, rounds=rounds, on_score=fail_in_round(rounds), **how)
    play_duel(parts, base, rounds=rounds, resume=True, **how)
    starts = yaml.safe_load((parts / "config.yaml").read_text())["starts"]
    assert [start["rounds_done"] for start in starts] == [0, rounds - 1], "it goes on, and does not begin again"
    assert_same_runs(whole, parts)
    return whole


def lose_the_last_round(whole: Path, parts: Path) -> None:
    """`parts` is what `whole` was when it was killed before the last round's checkpoints were whole."""
    shutil.copytree(whole, parts)
    for final in [*parts.glob("*/final")]:
        (last_checkpoint(final.parent) / "complete.json").unlink()
        shutil.rmtree(final)
    (parts / "summary.json").unlink(missing_ok=True)


def learn(policy: Policy, batch: Batch) -> None:
    for update in policy.updates(batch, policy.advantages(batch)):
        policy.backward(update)
        policy.step()


def fail_in_round(bad: int) -> Callable[[Recipe, int, Score], None]:
    """For `on_score`: round `bad`, counted from 1, fails before it is learnt from."""

    def fail(run: Recipe, index: int, score: Score) -> None:
        if index + 1 == bad:
            raise ZeroDivisionError("the round's own")

    return fail


def tiny(preset: Preset = TINY, /, **sections: Any) -> Preset:
    """The preset with what a configuration file would say of these sections."""
    return preset_from_dict(sections, preset)


def without_evaluations(**sections: Any) -> Preset:
    return tiny(evaluation={"every_rounds": 0}, **sections)


def weights(directory: Path) -> dict[str, torch.Tensor]:
    """Of a model, or of an adapter."""
    return load_file(next(directory.glob("*model.safetensors")))


def same_weights(one: Path, other: Path) -> bool:
    """Bit for bit."""
    a, b = weights(one), weights(other)
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def distance(one: Path, other: Path) -> float:
    """The largest difference of two weights."""
    a, b = weights(one), weights(other)
    return max(float((a[name] - b[name]).abs().max()) for name in a)


def records(directory: Path, kind: str, seat: str = "") -> list[dict[str, Any]]:
    lines = (directory / "metrics.jsonl").read_text().splitlines()
    found = [json.loads(line) for line in lines]
    return sorted((r for r in found if r["kind"] == kind and r["seat"] == seat), key=lambda r: r["round"])


def without_seconds(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without what the clock said."""
    of_clock = ("seconds", "per_second")
    return [{name: record[name] for name in record if not any(word in name for word in of_clock)} for record in found]


def assert_same_runs(one: Path, other: Path) -> None:
    """Bit for bit: final weights, everything in the last checkpoints, the book, metrics but for times."""
    seats = [path.parent.name for path in one.glob("*/final")]
    for seat in seats:
        assert same_weights(one / seat / "final", other / seat / "final"), seat
        mine, others = last_checkpoint(one / seat), last_checkpoint(other / seat)
        names = {path.name for path in mine.iterdir()}
        assert (mine.name, names) == (others.name, {path.name for path in others.iterdir()})
        for name in names - {"training_args.bin", "complete.json"}:  # which name the directory, and its digest
            assert (mine / name).read_bytes() == (others / name).read_bytes(), f"{seat} {name}"
    for kind, seat in (("round", ""), *((kind, seat) for kind in ("seat", "evaluation") for seat in (*SEATS, *seats))):
        assert without_seconds(records(one, kind, seat)) == without_seconds(records(other, kind, seat))
    assert (one / BOOK).read_bytes() == (other / BOOK).read_bytes()
    assert logged_names(one) == logged_names(other)


def logged_names(directory: Path) -> set[tuple[str, str, str]]:
    """(kind, seat, name) of every measure that a run logged, seconds included."""
    lines = [json.loads(line) for line in (directory / "metrics.jsonl").read_text().splitlines()]
    return {(line["kind"], line["seat"], name) for line in lines for name in line.keys() - {"kind", "seat", "round"}}


def last_checkpoint(directory: Path) -> Path:
    return max(directory.glob("checkpoint-*"), key=lambda path: int(path.name.split("-")[1]))
