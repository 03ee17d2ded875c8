"""The tracks of the benchmark: what is the same for every entry, and what an entry may spend.

A track is a budget and a family: a model to begin with, questions to train on, held-out questions of both seats. The
held-out questions have a seed: 0 in public, another one with each release. Does not promise that two machines give the
same numbers.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from codea1_env.checks import require
from codea1_env.configuration.presets import Preset, load_preset
from codea1_env.errors import ConfigurationError
from codea1_env.problems.families import FAMILIES
from codea1_env.problems.jsonl import problems_hash
from codea1_env.problems.problem import Problem

PUBLIC = 0
"""Seed of the held-out questions that everybody knows."""
FIXED = ("problems", "model", "warm_start", "evaluation", "prompts", "budget_tokens", "stop_at_fence", "stop_at_tests")
"""Sections of the configuration that an entry may not change; nor `reward.suite_size`, the K of the measures."""
BOTH = ("coder", "tester")


@dataclass(frozen=True, slots=True)
class HeldOut:
    """Questions that seats are measured on."""

    name: str
    family: str
    count: int
    seats: tuple[str, ...] = BOTH
    clauses: int = 0
    """Of fine print: how many each question has beside the empty list; 0: as the family draws them."""

    def draw(self, seed: int) -> tuple[Problem, ...]:
        """The questions; of another seed, others."""
        draw = FAMILIES[self.family].draw
        return draw("held_out", self.count, seed, 0.0, **({"lengths": (self.clauses,)} if self.clauses else {}))


@dataclass(frozen=True, slots=True)
class Budget:
    """What training may take."""

    tokens: int
    """Sampled, by all who answer, learnt from or not; 0: no limit. No round begins behind them."""
    environment_s: float
    """Seconds of the environment (parsing, sandbox, rewards), by the clock; 0: no limit. Who takes more is shown so.
    There is room for a machine that others use."""


LEVELS = tuple(HeldOut(f"{count} of fine print", "fineprint", 40, clauses=count) for count in (1, 2, 3))
SETS: Mapping[str, tuple[HeldOut, ...]] = {
    "bands": (HeldOut("bands", "bands", 150),),
    "miniature": (HeldOut("miniature", "miniature", 150),),
    "fineprint": (*LEVELS, HeldOut("words", "fineprint_words", 40, ("coder",))),
}
"""By family; each has a configuration of its name beside this file."""
BUDGETS: Mapping[str, Mapping[str, Budget]] = {
    "tiny": {"bands": Budget(300_000, 1800.0), "miniature": Budget(1_000_000, 1800.0)},
    "small": {"fineprint": Budget(120_000, 3600.0)},
    "open": dict.fromkeys(SETS, Budget(0, 0.0)),
}
"""By name and family; the first family is the one that is meant where none is named."""


@dataclass(frozen=True, slots=True)
class Track:
    """One budget on one family."""

    budget: str
    family: str

    @property
    def allowed(self) -> Budget:
        return BUDGETS[self.budget][self.family]

    @property
    def sets(self) -> tuple[HeldOut, ...]:
        return SETS[self.family]

    @property
    def file(self) -> Path:
        """Its configuration."""
        return Path(__file__).parent / f"{self.family}.yaml"

    @property
    def needs_model(self) -> bool:
        return self.family == "fineprint"

    def preset(self) -> Preset:
        """What an entry changes."""
        return load_preset(None, self.file)

    def require_model(self, model: Path | None) -> None:
        """Raise ConfigurationError unless this is the base that is asked for, or None where none is."""
        must = f"be {'a directory with the base' if self.needs_model else 'left out'} for the family {self.family}"
        is_right = model is not None and model.is_dir() if self.needs_model else model is None
        require(is_right, "--model", must, "none" if model is None else model)

    def require_kept(self, preset: Preset) -> None:
        """Raise ConfigurationError for an entry that changes what is the same for all."""
        ours = self.preset()
        for name in FIXED:
            if name != "budget_tokens" and (name != "model" or not self.needs_model):
                got, must = getattr(preset, name), getattr(ours, name)
                require(got == must, f"{name} of an entry", f"be the track's ({self.file.name})", got)
        size = preset.reward.suite_size
        require(size == ours.reward.suite_size, "reward.suite_size of an entry", f"be {ours.reward.suite_size}", size)

    def digest(self, seed: int = PUBLIC) -> str:
        """Of the questions, how they are measured, and the budget: equal where entries compare."""
        ours = self.preset().to_dict()
        kept = {name: ours[name] for name in FIXED if name in ours and not (name == "model" and self.needs_model)}
        parts = {
            "questions": {each.name: problems_hash(each.draw(seed)) for each in self.sets},
            "kept": kept,
            "suite_size": ours["reward"]["suite_size"],
            "allowed": [self.allowed.tokens, self.allowed.environment_s],
        }
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def track_of(budget: str, family: str | None) -> Track:
    """Raises ConfigurationError for one that there is not."""
    require(budget in BUDGETS, "--budget", f"be one of {', '.join(BUDGETS)}", budget)
    known = BUDGETS[budget]
    if family is not None and family not in known:
        raise ConfigurationError(f"--family must be one of {', '.join(known)} with --budget {budget}, got {family!r}")
    return Track(budget, family or next(iter(known)))
