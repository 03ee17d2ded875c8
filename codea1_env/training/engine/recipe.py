"""What every recipe has around its loop: problems, base model, engine, both evaluations, clocks, the end.

    with recipe(arguments, trains=("coder", "tester"), measures={"coder": "coder", "tester": "tester"}) as run:
        ...
        run.train({"coder": coder, "tester": tester})
    print(run)

On the way in, the base is measured; on the way out, what was trained is, and base against trained is saved, and told by
the recipe as text.
Ctrl-C within the rounds ends the program with status 130 once all seats are saved. Does not know any method: that is
the recipe's.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codea1_env.arena.arena import Arena
from codea1_env.language_models.loading import load_tokenizer, load_weights
from codea1_env.problems.problem import Problem
from codea1_env.sandbox import open_sandbox
from codea1_env.starting import INTERRUPTED
from codea1_env.training.advantages import estimator_of
from codea1_env.training.config.arguments import Arguments
from codea1_env.training.config.batches import roles_of
from codea1_env.training.config.presets import Preset, PretrainedModel, ProblemFiles
from codea1_env.training.config.problem_sets import book_note, load_problem_sets, shared_note
from codea1_env.training.engine.local import Build, LocalEngine, prepare_process
from codea1_env.training.grpo.seats import require_schedules
from codea1_env.training.losses import own_loss
from codea1_env.training.models.base import base_model
from codea1_env.training.models.chat import fitting, questions_asked
from codea1_env.training.models.sampling import load_model
from codea1_env.training.models.shared_base import engine_of
from codea1_env.training.models.warm_start import default_cache
from codea1_env.training.run.results import as_record, as_table, by_clause, compare, cost, plot_curves
from codea1_env.training.run.run_dir import BOOK, CURVES, Run

if TYPE_CHECKING:
    from codea1_env.training.engine.ray_cluster import RayEngine

_log = logging.getLogger(__name__)


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
    outcome: list[str] = field(default_factory=list)
    """In lines; empty until the run has ended."""

    def __str__(self) -> str:
        return "\n".join(self.outcome)

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
        self.arena.book.save(self.directory / BOOK)
        if interrupted:
            saved = "both seats are" if len(seats) > 1 else f"the {next(iter(seats))} is"
            _log.warning("stopped; %s saved. To go on: --resume %s", saved, self.directory)
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
    # Code of one's own must load before the warm start.
    estimator_of(preset.algorithm), own_loss(preset.algorithm), engine_of(preset.algorithm)
    require_schedules(preset)
    # What cannot be used is refused before there is a directory of the run: the mended command finds none.
    pretrained = _pretrained(arguments)
    problems = load_problem_sets(preset, arguments.seed, golden_tests=golden_tests)
    with timed(seconds, "warm_start"):
        base = pretrained or base_model(preset, default_cache(dict(os.environ)))
        able = fitting(preset, problems.train, base)
        asked = questions_asked(preset, able, arguments.seed)
    run = Run(arguments, seats=trains)
    run.set_problems(problems.train, problems.held_out)
    run.set_base(base)
    if run.rounds_done:
        _log.warning("%s goes on after round %d of %d", run.directory, run.rounds_done, preset.rounds)
    notes = [book_note(preset, len(able)) if roles_of(arguments.recipe).has_book else ""]
    if isinstance(preset.problems, ProblemFiles):  # those of a family are drawn apart
        notes.append(shared_note(problems))
    for note in filter(None, notes):
        _log.warning("%s", note)
    with run, open_engine(run, base, problems.held_out) as engine:
        with timed(seconds, "evaluation_before"):
            before = engine.measure(base, base if "tester" in measures else None, rounds_done=0)
        opened = Recipe(preset, base, arguments.tester or base, able, asked, engine, run.directory, seconds)
        yield opened
        after = before
        finals = {role: run.directory / seat / "final" if seat else base for role, seat in measures.items()}
        if any(measures.values()):
            with timed(seconds, "evaluation_after"):
                after = engine.measure(finals["coder"], finals.get("tester"), preset.rounds)
        rows, spent = compare(before, after), cost(seconds, run.records(), run.rounds_done)
        plot_curves(run.records(), run.directory / CURVES)
        run.write_summary({"rounds": preset.rounds, **as_record(rows, spent)})  # last: the run is finished
    told = [as_table(rows), by_clause(run.records()), str(spent), f"everything is in {run.directory}"]
    opened.outcome.extend(filter(None, told))


def _pretrained(arguments: Arguments) -> Path | None:
    """Where a pretrained model is, once it is known that it can be used: TRL would fill in what its files lack with
    random numbers. None: the base is still to be made."""
    preset = arguments.preset
    if not isinstance(preset.model, PretrainedModel):
        return None
    base = base_model(preset, default_cache(dict(os.environ)))
    if preset.trainer == "packed":
        load_model(base, preset, what="--model")  # and kept
    else:  # the numbers are read where there is room for them
        load_weights(base, "--model", load_tokenizer(base, "--model"), device_map="meta")
    return base


@contextmanager
def timed(seconds: dict[str, float], part: str) -> Iterator[None]:
    """Note how long it took, by the clock."""
    start = time.perf_counter()
    yield
    seconds[part] = time.perf_counter() - start


@contextmanager
def open_engine(run: Run, base: Path, held_out: Sequence[Problem]) -> Iterator[LocalEngine | RayEngine]:
    """The engine of a run, with an arena that has the run's Mistake Book; its sandbox is closed at the end.

    `base`: the model that both seats start from. `held_out`: the problems that seats are measured on.
    """
    if run.engine == "ray":
        from codea1_env.training.engine.ray_cluster import open_ray_engine  # only now: it needs the extra `ray`

        with open_ray_engine(run, base, held_out) as engine:
            yield engine
        return
    with open_sandbox(workers=2) as sandbox:
        arena = Arena(sandbox, run.preset.reward, run.book(), on_failure="apart")
        yield LocalEngine(run, arena, base, held_out)
