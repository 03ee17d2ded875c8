"""One entry from its recipe to its file, and the same measure again: `codea1 bench run` and `check`. Needs torch.

A run that was stopped goes on where it was. Does not promise that a check on another processor finds the same numbers:
it says whether they lie within the file's intervals.
"""

from __future__ import annotations

import dataclasses
import os
import resource
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from codea1_env.arena.arena import Arena
from codea1_env.bench.entry import Entry, cpu_s, prepared, train
from codea1_env.bench.files import BenchFile, Cell, write_bench
from codea1_env.bench.track import PUBLIC, Track, track_of
from codea1_env.configuration.arguments import read_configuration, read_record
from codea1_env.configuration.model_sections import PretrainedModel
from codea1_env.configuration.presets import Preset
from codea1_env.errors import Codea1Error, ConfigurationError
from codea1_env.judging.version import VERSION, require_current
from codea1_env.language_models.directories import default_cache
from codea1_env.records.addresses import CONFIG_FILE
from codea1_env.records.metrics_file import read_metrics
from codea1_env.sandbox import open_sandbox
from codea1_env.training.models.base import base_model
from codea1_env.training.models.chat import Prompter, chat_of
from codea1_env.training.models.sampling import load_model
from codea1_env.training.process import prepare_process
from codea1_env.training.run.gauge import Gauge
from codea1_env.training.run.provenance import changed, this_start, weights_hash

Say = Callable[[str], object]


def run_entry(entry: Entry, track: Track, file: Path, *, seed: int, model: Path | None, say: Say) -> None:
    """Train, measure and write `file`; the run's directory is beside it, without the suffix."""
    began, own = time.monotonic(), cpu_s(resource.RUSAGE_SELF)
    run = file.with_suffix("")
    is_new = not run.exists()
    preset = _with_model(prepared(entry, track, run), track, model)
    if entry.recipe is None:
        model_place = base_of(preset)
        base, weights = weights_hash(model_place), {"coder": model_place, "tester": model_place}
    else:
        say(f"training, with its output in {run.with_suffix('.log')}")
    of_recipe = train(entry, run, seed=seed, model=model)
    if entry.recipe is not None:
        base, weights = str(read_record(run / CONFIG_FILE).get("base", "")), weights_of(run)
        if not weights:
            raise Codea1Error(f"a recipe must leave the weights of a seat in {run}/SEAT/final, got none")
    cells = measured(track, preset, weights, PUBLIC, lambda what: say(f"measured: {what}"))
    used = _spent(run)
    if is_new:  # of all of it
        used |= {"seconds": time.monotonic() - began, "cpu_s": of_recipe + cpu_s(resource.RUSAGE_SELF) - own}
    about = {
        "name": entry.name,
        "who": entry.who,
        "what": entry.what,
        "track": {"budget": track.budget, "family": track.family, "questions": PUBLIC, "digest": track.digest()},
        "seed": seed,
        "parts": {"changes": _without_folders(entry.changes), "code": entry.own_code(preset)},
        "allowed": dataclasses.asdict(track.allowed),
        "used": {name: round(value, 1) for name, value in used.items()},
        "start": this_start("local", 0, datetime.now(UTC).isoformat(timespec="seconds"), {}),
        "judge": VERSION,
        "base": base,
        "weights": digests_of(weights),
    }
    write_bench(file, about, cells)


def check(found: BenchFile, run: Path, *, model: Path | None, questions: int, say: Say) -> list[str]:
    """What does not hold of a file, measured again from the weights in `run`; empty where all does. `questions`: the
    seed of the held-out questions; of another seed than the file's, the cells are told and not compared."""
    record = found.record
    track = track_of(record["track"]["budget"], record["track"]["family"])
    wrong = [] if found.is_whole else ["the digest is not that of the file: something in it was changed"]
    if record["track"]["digest"] != track.digest(record["track"]["questions"]):
        wrong.append("the track is not the one of this version: other questions, measures or limits")
    require_current(record["judge"], track.family, f"{found.path} and its check")
    is_base = set(record["parts"].get("code", {})) == set()
    if is_base:
        preset = _with_model(track.preset(), track, model)
        weights = dict.fromkeys(record["weights"], base_of(preset))
    else:
        if not (run / CONFIG_FILE).is_file():
            raise ConfigurationError(
                f"--run must be the directory of the entry's run, got {run} (no {CONFIG_FILE} in it)"
            )
        preset, weights = _with_model(read_configuration(run / CONFIG_FILE)[0], track, model), weights_of(run)
        track.require_kept(preset)
    now = digests_of(weights)
    for seat in sorted(now.keys() | record["weights"].keys()):
        if now.get(seat) != record["weights"].get(seat):
            was, got = (str(each.get(seat, "none"))[:12] for each in (record["weights"], now))
            wrong.append(f"the weights of the {seat} must have the digest {was}, got {got}")
    start = this_start("local", 0, "", {})
    elsewhere = changed(record["start"], start) + _other_versions(record["start"], start)
    for line in elsewhere:
        say(f"not as it was: {line}")
    cells = measured(track, preset, weights, questions, lambda what: say(f"measured: {what}"))
    if questions != record["track"]["questions"]:
        for cell in cells:
            say(f"{cell.title} {cell.interval:.3f} on the questions of seed {questions}")
        return wrong
    return wrong + _compared(found.cells, cells, exactly=not elsewhere)


def _other_versions(then: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Of what decides the tokens that are sampled, beside PyTorch."""
    known, today = (start.get("versions", {}) for start in (then, now))
    names = ("transformers", "tokenizers", "numpy")
    return [f"{n} {known.get(n)}, now {today.get(n)}" for n in names if known.get(n) != today.get(n)]


def _compared(then: Sequence[Cell], now: Sequence[Cell], *, exactly: bool) -> list[str]:
    """Which cells do not hold. `exactly`: on the same processor by the same versions every number repeats; else means
    must lie within the interval."""
    wrong = []
    known = {cell.title: cell for cell in now}
    for cell in then:
        again = known.pop(cell.title, None)
        if again is None or len(again.by_question) != len(cell.by_question):
            wrong.append(f"{cell.title} is not of this track")
        elif exactly and again.by_question != cell.by_question:
            wrong.append(f"{cell.title} must be {again.interval:.3f}, got {cell.interval:.3f}")
        elif not exactly and not cell.interval.low <= again.interval.mean <= cell.interval.high:
            wrong.append(f"{cell.title} must be about {again.interval:.3f}, got {cell.interval:.3f}")
    return wrong + [f"{title} is left out" for title in known]


def _with_model(preset: Preset, track: Track, model: Path | None) -> Preset:
    track.require_model(model)
    if model is None:
        return preset
    return dataclasses.replace(preset, model=PretrainedModel(str(model), context=preset.model.context))


def _spent(run: Path) -> dict[str, float]:
    """Of training, by the run's own account."""
    records = read_metrics(run)
    names = {"tokens": ("tokens",), "environment_s": ("seconds_scoring", "seconds_validating")}
    return {
        name: float(sum(record.get(each) or 0.0 for record in records for each in columns))
        for name, columns in names.items()
    }


def _without_folders(changes: Mapping[str, Any]) -> dict[str, Any]:
    """What a file says: where modules lay on somebody's machine is nobody's business."""
    return {
        name: {key: each for key, each in value.items() if key != "path"} if name == "algorithm" else value
        for name, value in changes.items()
    }


MEASURES = {"coder": ("hidden", "golden"), "tester": ("valid", "kills", "input_kills", "killed")}
"""By seat, what `held_out.py` measures that becomes a cell."""


def base_of(preset: Preset) -> Path:
    """The model that an entry begins with, built where there is none."""
    prepare_process(preset.threads)
    return base_model(preset, default_cache(dict(os.environ)))


def weights_of(run: Path) -> dict[str, Path]:
    """By seat, what a run has trained."""
    player = run / "player" / "final"
    places = {seat: player if player.is_dir() else run / seat / "final" for seat in MEASURES}
    return {seat: place for seat, place in places.items() if place.is_dir()}


def digests_of(weights: Mapping[str, Path]) -> dict[str, str]:
    """SHA-256 of the weights, by seat."""
    return {seat: weights_hash(place) for seat, place in weights.items()}


def measured(
    track: Track, preset: Preset, weights: Mapping[str, Path], seed: int, done: Callable[[str], object]
) -> list[Cell]:
    """`preset`: what the entry was trained by. `seed`: of the held-out questions. `done` is told of each set and
    seat."""
    prepare_process(preset.threads)
    models = {seat: load_model(place, preset) for seat, place in weights.items()}
    prompter = Prompter(chat_of(preset), next(iter(models.values())).tokenizer)
    cells: list[Cell] = []
    with open_sandbox(workers=1) as sandbox, Arena(sandbox, track.preset().reward) as arena:
        for held_out in track.sets:
            gauge = Gauge(arena, preset, held_out.draw(seed), prompter, lambda seat, _: models[seat])
            for seat in (seat for seat in held_out.seats if seat in models):
                result = gauge.of(seat, weights[seat])
                done(f"{held_out.name}, {seat}")
                for measure in MEASURES[seat]:
                    if values := getattr(result, measure):  # of questions without golden tests there are none
                        cells.append(Cell(held_out.name, seat, measure, tuple(round(each, 6) for each in values)))
    return cells
