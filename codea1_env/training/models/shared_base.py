"""The one frozen base of a process, which all seats sample from and learn beside, each with an adapter of its own.

A base is loaded when it is first asked for and stays, on the GPU where there is one. The loop asks one
seat after the other: no lock is needed.
"""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from codea1_env.class_paths import load_class
from codea1_env.configuration.algorithm import Algorithm
from codea1_env.configuration.presets import Preset
from codea1_env.errors import ConfigurationError
from codea1_env.extras import extra
from codea1_env.language_models.continuous import ContinuousEngine
from codea1_env.language_models.directories import BASE, default_cache, is_place
from codea1_env.language_models.loading import LanguageModel, base_and_digest, load, require_digest
from codea1_env.language_models.lora import CONFIG, Adapter
from codea1_env.language_models.over_generate import GenerateEngine
from codea1_env.language_models.rollouts import Completion, RolloutEngine, RolloutRequest, RolloutSampling, checked
from codea1_env.training.models.base import base_model

with extra("train", "training needs"):
    import torch


ENGINES = {"continuous": ContinuousEngine, "generate": GenerateEngine}
"""What samples, by the names in `algorithm.rollouts`."""


@dataclass(frozen=True, slots=True)
class SharedBase:
    """A base with everything that is beside it at present."""

    model: LanguageModel
    engine: RolloutEngine
    adapters: dict[str, Adapter] = field(default_factory=dict)
    """By name; a seat's is the name of its directory. The engine samples with these."""

    def sample(self, requests: Sequence[RolloutRequest], sampling: RolloutSampling) -> list[list[Completion]]:
        """By the engine. Raises ConfigurationError where one's own returns anything else."""
        name = f"algorithm.rollouts: {type(self.engine).__name__}.sample"
        found = self.engine.sample(requests, sampling)
        return checked(found, requests, sampling, self.model.base.shape.vocabulary, name)


MakeEngine = Callable[[LanguageModel, dict[str, Adapter]], RolloutEngine]
_kept: dict[tuple[Path, str, MakeEngine], SharedBase] = {}
"""By place, numbers and engine; one at most."""


@dataclass(frozen=True, slots=True)
class SeatModel:
    """A base with one adapter: what a seat's trainer has in the place of a model of transformers."""

    shared: SharedBase
    adapter: str
    """Empty: the base alone."""

    def parameters(self) -> Iterator[Any]:
        """What is trained."""
        yield from self.shared.adapters[self.adapter].parameters

    def save_pretrained(self, directory: str | Path) -> None:
        """The adapter, if there is one, and which base it lies beside."""
        base, directory = self.shared.model, Path(directory)
        directory.mkdir(parents=True, exist_ok=True)
        place = str(Path(base.source).resolve())  # whoever loads it may stand in another directory
        if self.adapter:
            self.shared.adapters[self.adapter].save(directory, place)
        record = {"base": place, "digest": base.digest}
        (directory / BASE).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def shared_base(source: Path, preset: Preset) -> SharedBase:
    """The base in `source`, in the numbers that the preset computes in. The last one is kept."""
    dtype, engine = _computed(preset)
    if (source.resolve(), dtype, engine) not in _kept:
        _kept.clear()
        model = load(source, dtype=dtype, device="cuda" if torch.cuda.is_available() else "cpu", what="--model")
        adapters: dict[str, Adapter] = {}
        _kept[source.resolve(), dtype, engine] = SharedBase(model, engine(model, adapters), adapters)
    return _kept[source.resolve(), dtype, engine]


def _computed(preset: Preset) -> tuple[str, MakeEngine]:
    return "bfloat16" if preset.memory.bfloat16 else "float32", engine_of(preset.algorithm)


def engine_of(algorithm: Algorithm) -> MakeEngine:
    """What makes the engine that the configuration names. Raises ConfigurationError where it cannot be one."""
    name = algorithm.rollouts
    kind: Any = ENGINES.get(name) or load_class(name, RolloutEngine, "algorithm.rollouts", algorithm.path)
    try:
        inspect.signature(kind).bind("model", "adapters")
    except TypeError as error:
        raise ConfigurationError(
            "algorithm.rollouts must name a class that is made from two arguments, a LanguageModel and the adapters by "
            f"name, got {name!r}: {error}"
        ) from None
    made: MakeEngine = kind
    return made


def seat_model(directory: Path, preset: Preset) -> SeatModel:
    """A base's directory, or a saved `SeatModel`: beside the base that is kept, if that has the weights that it learnt
    beside, wherever its own copy is. An adapter whose base is a repository lies beside the run's. Raises
    ConfigurationError for an adapter of another base."""
    if not (directory / BASE).is_file():
        return SeatModel(shared_base(directory, preset), "")
    base, digest = base_and_digest(directory)
    same = (kept for (_, *how), kept in _kept.items() if (*how,) == _computed(preset) and kept.model.digest == digest)
    if not (shared := next(same, None)):
        place = Path(base) if is_place(base) else base_model(preset, default_cache(dict(os.environ)))
        shared = shared_base(place, preset)
    require_digest(shared.model, directory)
    if not (directory / CONFIG).is_file():
        return SeatModel(shared, "")
    name = str(directory.resolve())
    shared.adapters[name] = Adapter.load(directory, shared.model.base.shape, shared.model.base.device)
    return SeatModel(shared, name)
