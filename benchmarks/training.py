"""What co-evolution costs: a round of the duel beside two rounds of single-seat GRPO with the same rows and lengths.

    python benchmarks/training.py
    python benchmarks/training.py --engine ray     the duel with processes, and so a core, of its own for each seat

Three sides, interleaved, each with trainers of its own: the duel, both seats and the real arena as in
agents/train_grpo.py; a stock `trl.GRPOTrainer` on the coder's prompts; another on the tester's prompts, with programs
that the base sampled beforehand. The two have a reward that takes no time. Learning rates are 0, so that every side
samples from the base model, and the tester learns from all suites, as a stock trainer does. A round is timed from its
first to its last optimizer step; the first of every repetition is left out. Ratios are medians over repetitions.

With a device for each seat the goal is another: (1 + g) / 2 of the two alone, g being generation's share of them.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from codea1_env.extras import for_script
from codea1_env.terminal import Parser

with for_script("train,dev"):
    import numpy as np
    from clocks import cpu_s
    from datasets import Dataset
    from transformers import AutoTokenizer, TrainerCallback
    from transformers.trainer_callback import PrinterCallback
    from trl import GRPOTrainer

    from codea1_env.configuration.arguments import ENGINES, RecipeArguments
    from codea1_env.configuration.batches import seat_rows
    from codea1_env.configuration.placement import SEATS
    from codea1_env.configuration.presets import PRESETS, Preset
    from codea1_env.language_models.directories import default_cache
    from codea1_env.players.player import CoderRequest
    from codea1_env.players.templates import Messages
    from codea1_env.problems.families.miniature import miniature_problems
    from codea1_env.problems.problem import Problem
    from codea1_env.reading.responses import read_program
    from codea1_env.training.loop import Recipe
    from codea1_env.training.models.chat import chat_of
    from codea1_env.training.models.sampling import as_trained, load_model
    from codea1_env.training.models.warm_start import base_model
    from codea1_env.training.policies.arguments import grpo_arguments
    from codea1_env.training.policies.backend import open_backend
    from codea1_env.training.process import prepare_process
    from codea1_env.training.recipe import open_arena
    from codea1_env.training.round.questions import schedule
    from codea1_env.training.run.run_dir import Run
    from codea1_env.training.samples import SeatRun

NAMES = ("duel", "coder alone", "tester alone")


@dataclasses.dataclass(frozen=True, slots=True)
class Side:
    """One side of one repetition, round by round, the first left out."""

    seconds: list[float]
    """Of a round."""
    generating: float
    """Share of the seconds."""
    tokens: float
    """Sampled a round."""
    cpu_s: list[float]
    """Of a round: of this process and the sandbox. Empty where seats have processes of their own."""


class Stopwatch(TrainerCallback):  # type: ignore[misc]  # the base class has no types
    """Times the rounds of a stock trainer, and the part of each that comes before its reward."""

    def __init__(self) -> None:
        self.began: list[float] = []
        self.sampled: list[float] = []
        self.ended: list[float] = []
        self.cpu: list[float] = []

    def reward(self, completions: Sequence[Any], **_: Any) -> list[float]:
        """No two of a group alike, in no time."""
        self.sampled.append(time.perf_counter())
        return [float(place % 5) for place in range(len(completions))]

    def on_step_begin(self, *_: Any, **__: Any) -> None:
        self.began.append(time.perf_counter())
        self._cpu_before = cpu_s()

    def on_step_end(self, *_: Any, **__: Any) -> None:
        self.ended.append(time.perf_counter())
        self.cpu.append(cpu_s() - self._cpu_before)


def duel(preset: Preset, base: Path, problems: Sequence[Problem], directory: Path, engine: str) -> tuple[Side, float]:
    """The duel, and the environment's share of its rounds."""
    arguments, cpu = RecipeArguments(preset, directory, 0, resume=False, engine=engine), list[float]()
    with Run(arguments, SEATS) as run, open_backend(run, base) as backend, open_arena(run, len(problems)) as arena:
        duel = Recipe(run, backend, arena, base, base, problems)
        seats = [duel.policy(seat) for seat in SEATS]
        for index in duel.rounds():
            before = cpu_s()
            questions = duel.choose(index)
            programs = duel.read(questions, seats[0].sample(duel.prompts.coder(questions), duel.shape.programs))
            shown = duel.shown(index, programs)
            score = duel.play(index, programs, [seats[1].sample(duel.prompts.tester(shown), duel.shape.suites)])
            for policy, batch in zip(seats, score.batches, strict=True):
                for update in policy.updates(batch, policy.advantages(batch)):
                    policy.backward(update)
                    policy.step()
            cpu.append(cpu_s() - before)
            duel.end(index)
        duel.close()
        records = [record for record in run.records() if record["round"] > 1]
    parts = ("generating", "waiting", "learning")
    logged = {seat: [r for r in records if r["seat"] == seat and r["kind"] == "seat"] for seat in SEATS}
    seconds = [sum(record[f"seconds_{part}"] for part in parts) for record in logged["coder"]]
    generating = sum(record["seconds_generating"] for found in logged.values() for record in found)
    rows = {seat: seat_rows(preset, seat).sampled for seat in SEATS}
    tokens = sum(rows[seat] * float(np.mean([r["length"] for r in found])) for seat, found in logged.items())
    scoring = sum(record["seconds_scoring"] for record in records if record["kind"] == "round")
    measured = [] if engine == "ray" else cpu[1:]
    return Side(seconds, generating / sum(seconds), tokens, measured), scoring / sum(seconds)


def alone(run: SeatRun, prompts: Sequence[Any]) -> Side:
    """A stock trainer with the configuration of a seat's."""
    watch, rows = Stopwatch(), seat_rows(run.preset, run.seat)
    arguments = grpo_arguments(run, rows)
    arguments.logging_steps = 1
    stock = GRPOTrainer(
        model=str(run.base),
        args=arguments,
        train_dataset=Dataset.from_dict({"prompt": list(prompts)}),
        processing_class=AutoTokenizer.from_pretrained(run.base),
        reward_funcs=watch.reward,
        callbacks=[watch],
    )
    stock.remove_callback(PrinterCallback)
    stock.train()
    rounds = np.array([watch.began, watch.sampled, watch.ended])[:, 1:]  # (times, rounds)
    lengths = [log["completions/mean_length"] for log in stock.state.log_history if "completions/mean_length" in log]
    seconds = rounds[2] - rounds[0]
    share = float((rounds[1] - rounds[0]).sum() / seconds.sum())
    return Side(seconds.tolist(), share, float(np.mean(lengths[1:])) * rows.sampled, watch.cpu[1:])


def prompts_of(preset: Preset, base: Path, asked: Sequence[Problem]) -> dict[str, list[Messages]]:
    """The messages of each seat: the tester attacks the base's programs."""
    chat, requests = chat_of(preset), [CoderRequest(problem) for problem in asked]
    programs = load_model(base, preset).sampler(as_trained(preset, "coder", 0)).coder(requests, preset.round.programs)
    return {
        "coder": [chat.coder(problem) for problem in asked],
        "tester": [
            chat.tester(problem, read_program(text, problem.entry_point).source)
            for problem, group in zip(asked, programs, strict=True)
            for text in group
        ],
    }


def main() -> None:
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", choices=("mini", "smoke"), default="mini")
    parser.add_argument("--engine", choices=ENGINES, default="local", help="of the duel. Default: local")
    parser.add_argument("--questions", type=int, default=4, help="a round. Default: 4")
    parser.add_argument("--rounds", type=int, default=6, help="of a repetition, at least 2. Default: 6")
    parser.add_argument("--repetitions", type=int, default=5, help="of every side. Default: 5")
    given = parser.parse_args()
    prepare_process()
    preset = PRESETS[given.preset]
    base = base_model(preset, default_cache(dict(os.environ)))
    shape = dataclasses.replace(preset.round, questions=given.questions, attacked=preset.round.programs, updates=1)
    preset = dataclasses.replace(
        preset,
        rounds=given.rounds,
        save_rounds=given.rounds,
        round=shape,
        grpo=preset.grpo.changed({"learning_rate": 0.0}),
        evaluation=dataclasses.replace(preset.evaluation, every_rounds=0),
    )
    problems = miniature_problems("train", preset.problems.train, 0)
    asked = [problems[place] for place in schedule(len(problems), preset.rounds, shape.questions, 0)]
    prompts = prompts_of(preset, base, asked)
    found = []
    for _ in range(given.repetitions):
        with tempfile.TemporaryDirectory() as place:
            together, environment = duel(preset, base, problems, Path(place) / "duel", given.engine)
            found.append({"duel": together, "environment": environment})
            for number, seat in enumerate(SEATS):
                run = SeatRun(preset, base, Path(place) / seat, seed=number)
                found[-1][f"{seat} alone"] = alone(run, prompts[seat])
    report(found)


def report(found: Sequence[dict[str, Any]]) -> None:
    print(
        "| side | seconds a round | CPU seconds | generation's share | tokens sampled a round |\n|---|---|---|---|---|"
    )
    for name in NAMES:
        sides = [each[name] for each in found]
        seconds = spread([second for side in sides for second in side.seconds], ".2f")
        share, tokens = (np.median([getattr(side, key) for side in sides]) for key in ("generating", "tokens"))
        cpu = [second for side in sides for second in side.cpu_s]
        print(f"| {name} | {seconds} | {spread(cpu, '.2f') if cpu else '-'} | {share:.0%} | {tokens:.0f} |")
    ratios, bounds = [], []
    for each in found:
        alone_s = {name: np.array(each[name].seconds) for name in ("coder alone", "tester alone")}
        both = sum(float(np.median(seconds)) for seconds in alone_s.values())
        ratios.append(float(np.median(each["duel"].seconds)) / both)
        generation = sum(float(np.median(seconds)) * each[name].generating for name, seconds in alone_s.items()) / both
        bounds.append((1 + generation) / 2)
    cpu = {name: np.median([s for each in found for s in each[name].cpu_s] or [np.nan]) for name in NAMES}
    fast = {name: np.quantile([s for each in found for s in each[name].seconds], 0.1) for name in NAMES}
    print(f"\nduel / (coder alone + tester alone): {spread(ratios, '.3f')}, {len(found)} repetitions")
    print(f"the same of CPU seconds: {cpu['duel'] / (cpu[NAMES[1]] + cpu[NAMES[2]]):.3f}")
    print(f"the same of each side's fastest tenth of rounds: {fast['duel'] / (fast[NAMES[1]] + fast[NAMES[2]]):.3f}")
    print(f"the environment's share of the duel: {spread([each['environment'] for each in found], '.1%')}")
    print(f"(1 + g) / 2, the bound with a device for each seat: {spread(bounds, '.3f')}")


def spread(values: Sequence[float], form: str) -> str:
    """Median and quartiles."""
    low, middle, high = np.quantile(values, [0.25, 0.5, 0.75])
    return f"{middle:{form}} ({low:{form}} to {high:{form}})"


if __name__ == "__main__":
    main()
