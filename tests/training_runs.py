"""What the tests of training share: a short duel of tiny models under either engine. Not a test module."""

import dataclasses
import runpy
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import yaml
from safetensors.torch import load_file

from codea1_env import SandboxError
from codea1_env.configuration.arguments import RecipeArguments
from codea1_env.configuration.model_sections import WarmStartPreset
from codea1_env.configuration.presets import SMOKE, Preset, preset_from_dict
from codea1_env.mistake_book.parts import FILE as BOOK
from codea1_env.records.metrics_file import read_metrics
from codea1_env.training import recipe as around
from codea1_env.training.loop import Recipe
from codea1_env.training.policies.policy import Policy
from codea1_env.training.round.rounds import Score
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

    def started(command: Any, **how: Any) -> Any:
        if command[0] != sys.executable or Path(command[1]).parent not in (ROOT / "agents", ROOT / "baselines"):
            return process(command, **how)
        with pytest.MonkeyPatch.context() as own, redirect_stdout(how["stdout"]), redirect_stderr(how["stdout"]):
            own.setattr("codea1_env.training.recipe.plot_curves", lambda records, file: None)
            status = int(status_of(command[1], command[2:], own))
        return SimpleNamespace(wait=lambda: status)

    patch.setattr(subprocess, "Popen", started)


RECIPES = {"player": ("baselines/self_play.py", "self-play"), "coder": ("baselines/golden_tests.py", "golden")}
"""By the last of their seats."""


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
    on_score: Callable[[Recipe, int, Score], object] = lambda *_: None,
) -> bool:
    """Runs agents/train_grpo.py, or the recipe of a player or of a coder alone, without the evaluations before and
    after. True if it was interrupted. `on_score`: told of each round before it is learnt from."""
    script, recipe = RECIPES.get(seats[-1], ("agents/train_grpo.py", "code_a1"))
    preset = dataclasses.replace(preset, rounds=rounds, seats=tuple(seats) if len(seats) > 2 else SEATS)
    arguments = RecipeArguments(preset, directory, 0, resume, engine, recipe=recipe, address=address)
    interrupted, opened = list[bool](), around.open_sandbox

    def scored(run: Recipe, play: Callable[..., Score], index: int, *rest: Any) -> Score:
        score = play(index, *rest)
        on_score(run, index, score)
        return score

    def unmeasured(run: Recipe, *_: Any) -> Iterator[Recipe]:
        for name in ("play", "grade"):
            setattr(run, name, partial(scored, run, getattr(run, name)))
        yield run
        interrupted.append(run.interrupted)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("codea1_env.configuration.arguments.parse_arguments", lambda *_, **__: arguments)
        patch.setattr(around, "open_sandbox", lambda workers: opened(workers=1))  # which begins sooner
        patch.setattr(around, "base_model", lambda *_: base)
        patch.setattr(around, "_measured", unmeasured)
        runpy.run_path(str(ROOT / script))["main"]()
    return interrupted == [True]


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
            play_duel(parts, base, rounds=rounds, on_score=in_round(rounds, fail), **how)
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


def in_round(number: int, *what: Callable[[Any, Any], object]) -> Callable[[Recipe, int, Score], None]:
    """For `on_score`: what happens in a round, counted from 1, before it is learnt from: `what(run, score)`."""

    def on_score(run: Recipe, index: int, score: Score) -> None:
        for each in what if index + 1 == number else ():
            each(run, score)

    return on_score


def fail(run: Recipe, score: Score) -> None:
    raise ZeroDivisionError("the round's own")


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
    found = [record for record in read_metrics(directory) if (record["kind"], record["seat"]) == (kind, seat)]
    return sorted(found, key=lambda record: record["round"])


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
    of_all = {"kind", "seat", "round"}
    return {(line["kind"], line["seat"], name) for line in read_metrics(directory) for name in line.keys() - of_all}


def param_groups(checkpoint: Path) -> list[dict[str, Any]]:
    """Of the optimizer that either trainer saved."""
    states = [torch.load(file, weights_only=True) for file in checkpoint.glob("*.pt")]
    return [group for state in states for group in state.get("optimizer", state).get("param_groups", ())]


def last_checkpoint(directory: Path) -> Path:
    return max(directory.glob("checkpoint-*"), key=lambda path: int(path.name.split("-")[1]))
