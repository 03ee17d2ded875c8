"""What every recipe has around its loop: problems, base model, engine, both evaluations, clocks, the end.

    with recipe(arguments, trains=("coder", "tester"), measures={"coder": "coder", "tester": "tester"}) as run:
        ...
        run.train({"coder": coder, "tester": tester})

On the way in, the base is measured; on the way out, what was trained is, and base against trained is printed and saved.
Ctrl-C within the rounds ends the program with status 130 once all seats are saved. Does not know any method: that is
the recipe's.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from codea1_env.arena.arena import Arena
from codea1_env.problems.problem import Problem
from codea1_env.training.advantages import estimator_of
from codea1_env.training.config.arguments import Arguments
from codea1_env.training.config.presets import Preset
from codea1_env.training.config.problem_sets import load_problem_sets
from codea1_env.training.engine.choice import open_engine, prepare_process
from codea1_env.training.engine.local import Build
from codea1_env.training.losses import own_loss
from codea1_env.training.models.base import base_model
from codea1_env.training.models.chat import fitting, questions_asked
from codea1_env.training.models.warm_start import default_cache
from codea1_env.training.run.results import as_record, as_table, compare, cost, plot_curves
from codea1_env.training.run.run_dir import CURVES, Run

INTERRUPTED = 130


@dataclass(frozen=True, slots=True)
class Recipe:
    """What the loop of a recipe works with. Under the engine ray, arena, meeting and log are handles that travel."""

    preset: Preset
    base: Path
    """The one model that every seat starts from."""
    tester: Path
    """The model of a tester that does not learn: `--tester`, else the base."""
    problems: Sequence[Problem]
    """Training problems that can be asked."""
    asked: Sequence[Problem]
    """Those of all rounds in order, `questions` a round."""
    engine: Any
    directory: Path
    seconds: dict[str, float] = field(default_factory=dict)
    """By part of the run."""

    @property
    def arena(self) -> Arena:
        """Where programs and suites are scored."""
        arena: Arena = self.engine.arena
        return arena

    @property
    def log(self) -> Any:
        """Takes a round's metrics."""
        return self.engine.log_round

    def meeting(self) -> Any:
        """Where the two seats of a duel meet once a round."""
        return self.engine.exchange()

    def train(self, seats: Mapping[str, Build]) -> None:
        """Run all rounds. What `seats` hold must be able to travel: bind what they need, not the recipe."""
        with timed(self.seconds, "training"):
            interrupted = self.engine.train(seats)
        self.engine.save_book()
        if interrupted:
            saved = "both seats are" if len(seats) > 1 else f"the {next(iter(seats))} is"
            print(f"stopped; {saved} saved. To go on: --resume {self.directory}")
            raise SystemExit(INTERRUPTED)


@contextmanager
def recipe(
    arguments: Arguments,
    *,
    trains: Sequence[str],
    measures: Mapping[str, str | None],
    golden_tests: bool = False,
) -> Iterator[Recipe]:
    """Open a run. `trains`: its seats. `measures`: by role, the seat whose model plays it in the end; None: the base.

    `golden_tests`: training problems must have some.
    """
    prepare_process(arguments.preset.threads)
    preset, seconds = arguments.preset, dict[str, float]()
    estimator_of(preset.algorithm), own_loss(preset.algorithm)  # code of one's own must load before the warm start
    run = Run(arguments, seats=trains)
    problems = load_problem_sets(preset, arguments.seed, golden_tests=golden_tests)
    run.set_problems(problems.train, problems.held_out)
    with timed(seconds, "warm_start"):
        base = base_model(preset, default_cache(dict(os.environ)))
        able = fitting(preset, problems.train, base)
        asked = questions_asked(preset, able, arguments.seed)
    with run, open_engine(run, base, problems.held_out) as engine:
        with timed(seconds, "evaluation_before"):
            before = engine.measure(base, base if "tester" in measures else None, rounds_done=0)
        yield Recipe(preset, base, arguments.tester or base, able, asked, engine, run.directory, seconds)
        after = before
        finals = {role: run.directory / seat / "final" if seat else base for role, seat in measures.items()}
        if any(measures.values()):
            with timed(seconds, "evaluation_after"):
                after = engine.measure(finals["coder"], finals.get("tester"), preset.rounds)
        rows, spent = compare(before, after), cost(seconds, run.records())
        run.write_summary(as_record(rows, spent))
        plot_curves(run.records(), run.directory / CURVES)
    print(as_table(rows), spent, f"everything is in {run.directory}", sep="\n")


@contextmanager
def timed(seconds: dict[str, float], part: str) -> Iterator[None]:
    """Note how long it took, by the clock."""
    start = time.perf_counter()
    yield
    seconds[part] = time.perf_counter() - start
