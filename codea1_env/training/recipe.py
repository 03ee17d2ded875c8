"""What every recipe has around its loop: problems, base model, policies, arena, both evaluations, clocks, the end.

    with recipe(arguments, trains=("coder", "tester"), measures={"coder": "coder", "tester": "tester"}) as run:
        coder, tester = run.policy("coder"), run.policy("tester")
        for round in run.rounds():
            ...
            run.end(round, score)
    print(run)

On the way in, the base is measured; on the way out, what was trained is, and base against trained is saved, and told by
the recipe as text. Ctrl-C within the rounds lets the round finish, saves all seats, and ends the program with status
130.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from codea1_env.arena.arena import Arena
from codea1_env.arena.sharded import ShardedArena
from codea1_env.configuration.arguments import RecipeArguments
from codea1_env.configuration.batches import roles_of
from codea1_env.configuration.model_sections import LoraPreset, PretrainedModel, shape_of
from codea1_env.configuration.problem_sets import book_note, load_problem_sets, shared_note
from codea1_env.configuration.run_sections import ProblemFiles
from codea1_env.errors import ConfigurationError
from codea1_env.judging.scripts import UNSEALED_REWARDS
from codea1_env.language_models.directories import default_cache
from codea1_env.language_models.loading import load_tokenizer, load_weights
from codea1_env.mistake_book.parts import parts_for
from codea1_env.sandbox import open_sandbox
from codea1_env.starting import INTERRUPTED
from codea1_env.training.advantages import estimator_of
from codea1_env.training.loop import Recipe
from codea1_env.training.losses import own_loss
from codea1_env.training.models.base import base_model
from codea1_env.training.models.chat import fitting, require_room
from codea1_env.training.models.sampling import load_model
from codea1_env.training.models.shared_base import engine_of
from codea1_env.training.policies.arguments import require_schedules
from codea1_env.training.policies.backend import open_backend
from codea1_env.training.policies.optimizers import require_optimizer
from codea1_env.training.process import prepare_process
from codea1_env.training.round.questions import chooser_of
from codea1_env.training.run.model_card import write_cards
from codea1_env.training.run.results import as_record, as_table, by_clause, compare, cost, plot_curves
from codea1_env.training.run.run_dir import CURVES, Run

_log = logging.getLogger(__name__)


@contextmanager
def recipe(
    arguments: RecipeArguments,
    *,
    trains: Sequence[str],
    measures: Mapping[str, str | None],
    golden_tests: bool = False,
) -> Iterator[Recipe]:
    """Open a run. `trains`: its seats. `measures`: by role, the seat whose model plays it in the end; None: the base.

    `golden_tests`: training problems must have some, as for recipes that are like one which needs them (`Roles`).
    """
    prepare_process(arguments.preset.threads)
    preset, seconds, roles = arguments.preset, dict[str, float](), roles_of(arguments.recipe)
    # Code of one's own must load before the warm start.
    estimator_of(preset.algorithm), own_loss(preset.algorithm), engine_of(preset.algorithm)
    require_schedules(preset)
    require_optimizer(preset.algorithm)
    # What cannot be used is refused before there is a directory of the run: the mended command finds none.
    pretrained = _pretrained(arguments)
    problems = load_problem_sets(preset, arguments.seed, golden_tests=golden_tests or roles.needs_golden)
    with timed(seconds, "warm_start"):
        base = pretrained or base_model(preset, default_cache(dict(os.environ)))
        able = fitting(preset, problems.train, base)
        require_room(preset, problems.held_out, measures, base)
        chooser_of(preset.algorithm, able, arguments.seed)
    run = Run(arguments, seats=preset.seats_of(trains), held_out=problems.held_out)
    run.set_problems(problems.train, problems.held_out)
    run.set_base(base)
    if run.rounds_done:
        _log.warning("%s goes on after round %d of %d", run.directory, run.rounds_done, preset.rounds)
    notes = [book_note(preset, len(able)) if roles.has_book else ""]
    if isinstance(preset.problems, ProblemFiles):  # those of a family are drawn apart
        notes.append(shared_note(problems))
    for note in filter(None, notes):
        _log.warning("%s", note)
    with run, open_backend(run, base) as backend, open_arena(run, len(able)) as arena:
        opened = Recipe(run, backend, arena, base, arguments.tester or base, able)
        opened.seconds.update(seconds)
        try:
            yield from _measured(opened, run, measures)
        finally:
            opened.close()


def _measured(opened: Recipe, run: Run, measures: Mapping[str, str | None]) -> Iterator[Recipe]:
    """The run between its two evaluations, and its end."""
    preset, base = opened.preset, opened.base
    with timed(opened.seconds, "evaluation_before"):
        before = opened.measure(base, base if "tester" in measures else None, rounds_done=0)
    yield opened
    if opened.interrupted:
        opened.close()  # ends the bar's line
        saved = "all seats are" if len(run.seats) > 1 else f"the {run.seats[0]} is"
        _log.warning("stopped; %s saved. To go on: --resume %s", saved, run.place)
        raise SystemExit(INTERRUPTED)
    after = before
    finals = {role: run.directory / seat / "final" if seat else base for role, seat in measures.items()}
    if any(measures.values()):
        with timed(opened.seconds, "evaluation_after"):
            after = opened.measure(finals.get("coder", base), finals.get("tester"), opened.rounds_done)
    rows, spent = compare(before, after), cost(opened.seconds, run.records(), run.rounds_done)
    plot_curves(run.records(), run.directory / CURVES)
    done = {**run.configuration, "preset": {**run.configuration["preset"], "rounds": opened.rounds_done}}
    write_cards(run.directory, done, run.seats, rows)
    trust = {"trust": UNSEALED_REWARDS} if preset.reward.allow_unsealed else {}
    run.write_summary({"rounds": opened.rounds_done, **as_record(rows, spent), **trust})  # last: the run is finished
    told = [as_table(rows), *trust.values(), by_clause(run.records()), str(spent), f"everything is in {run.place}"]
    opened.outcome.extend(filter(None, told))


def _pretrained(arguments: RecipeArguments) -> Path | None:
    """Where a pretrained model is, once it is known that it can be used: TRL would fill in what its files lack with
    random numbers. None: the base is still to be made."""
    preset = arguments.preset
    if not isinstance(preset.model, PretrainedModel):
        shape_of(preset.model).adapter_parameters(preset.lora)  # refuses layers that it does not have
        return None
    base = base_model(preset, default_cache(dict(os.environ)))
    if preset.trainer == "packed":
        load_model(base, preset, what="--model")  # and kept
    else:  # the numbers are read where there is room for them
        model = load_weights(base, "--model", load_tokenizer(base, "--model"), device_map="meta")
        _require_layers(preset.lora, [f".{name}" for name, _ in model.named_modules()])
    return base


def _require_layers(lora: LoraPreset, names: Sequence[str]) -> None:
    """peft ends with a traceback where none of the targets is there, and says nothing where some are not."""
    for target in (each.strip() for each in lora.target.split(",") if lora.rank):
        if target != "all-linear" and not any(name.endswith(f".{target}") for name in names):
            raise ConfigurationError(f"lora.target must be all-linear or names of layers of the model, got {target!r}")


@contextmanager
def timed(seconds: dict[str, float], part: str) -> Iterator[None]:
    """Note how long it took, by the clock."""
    start = time.perf_counter()
    yield
    seconds[part] = time.perf_counter() - start


@contextmanager
def open_arena(run: Run, questions: int) -> Iterator[Arena]:
    """The arena of a run with its Mistake Book, of so many questions at most; its processes are gone at the end."""
    reward, book = run.preset.reward, run.book(parts_for(questions))
    if run.preset.arenas == 1:
        arena = Arena(open_sandbox(workers=2), reward, book, on_failure="apart")
    else:
        arena = ShardedArena(
            run.preset.arenas,
            reward,
            book,
            sandbox="ray" if run.engine == "ray" else "local",
            address=run.ray_address,
            on_failure="apart",
        )
    with arena:
        yield arena
