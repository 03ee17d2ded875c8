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
import contextlib
import copy
import dataclasses
import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from codea1_env.extras import for_script

with for_script("train,dev"):
    import numpy as np
    import psutil
    from datasets import Dataset
    from transformers import AutoTokenizer, TrainerCallback
    from transformers.trainer_callback import PrinterCallback
    from trl import GRPOTrainer

    from codea1_env.players.prompts import Messages
    from codea1_env.problems.families.miniature import miniature_problems
    from codea1_env.problems.problem import Problem
    from codea1_env.training.config.arguments import ENGINES, Arguments
    from codea1_env.training.config.presets import PRESETS, Preset
    from codea1_env.training.engine.local import prepare_process
    from codea1_env.training.engine.recipe import open_engine
    from codea1_env.training.grpo.seats import TesterTurn, coder_trainer, tester_trainer
    from codea1_env.training.models.chat import chat_of
    from codea1_env.training.models.sampling import load_model
    from codea1_env.training.models.warm_start import base_model, default_cache
    from codea1_env.training.round.rounds import attacks_of, schedule
    from codea1_env.training.run.callbacks import SeatHooks, SeatRun
    from codea1_env.training.run.run_dir import Run

SILENT = SeatHooks(log=lambda *_: None, evaluate=lambda *_: None, save=lambda *_: None, is_last=lambda _: False)

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


def cpu_s() -> float:
    """CPU seconds so far of this process and of all below it, ended ones too: other work disturbs these least."""
    total = time.process_time()
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            total += sum(process.cpu_times()[:4])
    return total


def duel(preset: Preset, base: Path, asked: Sequence[Problem], directory: Path, engine_name: str) -> tuple[Side, float]:
    """The duel, and the environment's share of its rounds."""
    arguments = Arguments(preset, directory, 0, resume=False, engine=engine_name)
    with Run(arguments, ("coder", "tester")) as run, open_engine(run, base, ()) as engine:
        meeting, watch = engine.exchange(), Stopwatch()

        def pay(round_index: int, problems: Sequence[Problem], responses: Sequence[str]) -> Any:
            return meeting.submit_codes(round_index, attacks_of(problems, responses))

        def attack(turn: TesterTurn) -> Any:
            programs = turn.programs(meeting)
            return turn.score(meeting, programs, turn.sample(programs))

        def coder(seat: SeatRun, hooks: SeatHooks) -> Any:
            trainer = coder_trainer(seat, hooks, pay, asked)
            trainer.add_callback(watch)
            return trainer

        engine.train(
            {
                "coder": coder,
                "tester": lambda seat, hooks: tester_trainer(seat, hooks, attack),
            }
        )
        records = [record for record in run.records() if record["round"] > 1]
    parts = ("generating", "waiting", "learning")
    seats = {seat: [r for r in records if r["seat"] == seat and r["kind"] == "seat"] for seat in ("coder", "tester")}
    seconds = [sum(record[f"seconds_{part}"] for part in parts) for record in seats["coder"]]
    generating = sum(record["seconds_generating"] for found in seats.values() for record in found)
    rows = {seat: rows_of(preset, seat) for seat in seats}
    tokens = sum(rows[seat] * float(np.mean([r["length"] for r in found])) for seat, found in seats.items())
    scoring = sum(record["seconds_scoring"] for record in records if record["kind"] == "round")
    return Side(seconds, generating / sum(seconds), tokens, watch.cpu[1:]), scoring / sum(seconds)


def alone(trainer: Any, seat: str, preset: Preset, prompts: Sequence[Any], base: Path) -> Side:
    """A stock trainer with the configuration of a seat's."""
    watch = Stopwatch()
    stock = GRPOTrainer(
        model=str(base),
        args=copy.copy(trainer.args),
        train_dataset=Dataset.from_dict({"prompt": list(prompts)}),
        processing_class=AutoTokenizer.from_pretrained(base),
        reward_funcs=watch.reward,
        callbacks=[watch],
    )
    stock.remove_callback(PrinterCallback)
    stock.train()
    rounds = np.array([watch.began, watch.sampled, watch.ended])[:, 1:]  # (times, rounds)
    lengths = [log["completions/mean_length"] for log in stock.state.log_history if "completions/mean_length" in log]
    seconds = rounds[2] - rounds[0]
    share = float((rounds[1] - rounds[0]).sum() / seconds.sum())
    return Side(seconds.tolist(), share, float(np.mean(lengths[1:])) * rows_of(preset, seat), watch.cpu[1:])


def rows_of(preset: Preset, seat: str) -> int:
    shape = preset.round
    programs = shape.questions * shape.programs
    return programs if seat == "coder" else programs * shape.suites


def repetition(
    preset: Preset, base: Path, asked: Sequence[Problem], shown: Sequence[Any], place: Path, engine: str
) -> dict[str, Any]:
    """Every side once."""
    together, environment = duel(preset, base, asked, place / "duel", engine)
    coder = coder_trainer(SeatRun(preset, base, place / "coder", 0), SILENT, lambda *_: [], asked)
    tester: Any = tester_trainer(SeatRun(preset, base, place / "tester", 1), SILENT, None)  # type: ignore[arg-type]
    coder_prompts = [chat_of(preset).coder(problem) for problem in asked]
    return {
        "duel": together,
        "coder alone": alone(coder, "coder", preset, coder_prompts, base),
        "tester alone": alone(tester, "tester", preset, shown, base),
        "environment": environment,
    }


def prompts_for_tester(preset: Preset, base: Path, asked: Sequence[Problem]) -> list[Messages]:
    """The messages with which a tester attacks the base's programs."""
    chat, shape = chat_of(preset), preset.round
    sampler = load_model(base, preset).as_trained(preset, "coder", seed=0)
    codes = sampler.responses([chat.coder(problem) for problem in asked], shape.programs)
    repeated = [problem for problem in asked for _ in range(shape.programs)]
    attacks = attacks_of(repeated, [code for group in codes for code in group])
    return [chat.tester(attack.problem, attack.program) for attack in attacks]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
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
    shown = prompts_for_tester(preset, base, asked)
    found = []
    for _ in range(given.repetitions):
        with tempfile.TemporaryDirectory() as place:
            found.append(repetition(preset, base, asked, shown, Path(place), given.engine))
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
