"""The final measure of an entry: both seats on the track's held-out questions, from weights on disk. Needs torch.

The same for `bench run` and `bench check`: on one kind of processor, with the same versions, it repeats bit by bit.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from codea1_env.arena.arena import Arena
from codea1_env.bench.files import Cell
from codea1_env.bench.track import Track
from codea1_env.configuration.presets import Preset
from codea1_env.language_models.directories import default_cache
from codea1_env.sandbox import open_sandbox
from codea1_env.training.models.base import base_model
from codea1_env.training.models.chat import Prompter, chat_of
from codea1_env.training.models.sampling import load_model
from codea1_env.training.process import prepare_process
from codea1_env.training.run.gauge import Gauge
from codea1_env.training.run.provenance import weights_hash

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
