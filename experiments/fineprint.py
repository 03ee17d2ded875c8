"""Arms on questions with fine print: a real model in both seats beside its baselines, cell by cell.

    python experiments/fineprint.py run --model DIR -o OUT --cells base:0,code-a1:0,golden:0,frozen:0
    python experiments/fineprint.py curve --model DIR -o OUT --cells code-a1:0,golden:0,frozen:0

A cell is ARM:SEED, or ARM:SEED:ROUNDS for more or fewer rounds than the preset has. `run` trains each cell that has a
recipe, one after the other, and measures it; what stands in OUT is resumed or left as it is. A cell's file,
OUT/cells/NAME.json, has a number for each held-out question, so that intervals can be made of it. `curve` measures the
coder at the checkpoints of cells, on fewer questions. fineprint_table.py shows what came out, and docs/results.md
says it.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import real_models

from codea1_env.bench.entry import RECIPES as OURS, run_recipe
from codea1_env.terminal import Parser

HERE = Path(__file__).resolve().parent
PRESET = "0.5b-fineprint"
ARMS = HERE / "fineprint.yaml"
"""The preset, without the evaluations: every cell is measured when it is done."""
RECIPES = {name: OURS[name][0] for name in ("code-a1", "golden", "frozen", "self-play")} | {
    "code-a1-paper": OURS["code-a1"][0]
}
CHANGES = {"code-a1-paper": HERE / "fineprint_paper.yaml"}
"""Arms with another configuration than the preset."""
QUESTIONS = {"fineprint": 150, "fineprint_words": 60}
"""Held-out questions of the family, and of the second one, on which nothing is trained or chosen."""
CURVE = {"fineprint": 60}
"""The same at a checkpoint."""
TARGETS, SUITES = 75, 4
"""Programs that a tester attacks, of each kind, and suites against each."""
TEMPERATURE, TOP_P, TOKENS = 0.7, 0.95, 160
"""Of every cell. The cap is above that of training, so that nobody is measured by it."""


class Cell(real_models.Cell):
    """One arm with one seed, or the base."""

    arms = ("base", *RECIPES)

    @property
    def name(self) -> str:
        return f"{self.arm}-{self.seed}" + (f"-{self.rounds}" if self.rounds else "")

    def train(self, model: Path, directory: Path) -> None:
        """Run its recipe, or what is left of it. Raises Codea1Error."""
        more = ["--rounds", str(self.rounds)] if self.rounds else []
        config = CHANGES.get(self.arm, ARMS)
        run_recipe(HERE.parent / RECIPES[self.arm], directory, config=config, seed=self.seed, model=model, more=more)

    def models(self, model: Path, directory: Path) -> dict[str, Path]:
        """By seat, what answers in it; the tester only where it is measured."""
        if self.arm == "base":
            return {"coder": model, "tester": model}
        if self.arm == "self-play":
            return {"coder": directory / "player/final", "tester": directory / "player/final"}
        trained = {"coder": directory / "coder/final"}
        return trained | ({"tester": directory / "tester/final"} if self.arm.startswith("code-a1") else {})


def main() -> None:
    options = arguments()
    options.run(options)


def arguments() -> argparse.Namespace:
    parser = Parser(description=(__doc__ or "").split("\n")[0])
    actions = parser.add_subparsers(required=True)
    run = actions.add_parser("run", help="train and measure cells, one after the other")
    run.set_defaults(run=run_cells)
    curve = actions.add_parser("curve", help="measure the coder at the checkpoints of cells")
    curve.set_defaults(run=measure_checkpoints)
    for action, samples in ((run, 8), (curve, 4)):
        action.add_argument("--model", type=Path, required=True, help="the base, a directory in Hugging Face format")
        action.add_argument("--cells", required=True, help="ARM:SEED[:ROUNDS], divided by commas; base:0 comes first")
        action.add_argument(
            "--samples", type=int, default=samples, help="programs for a question (default: %(default)s)"
        )
        action.add_argument("-o", "--output", metavar="OUT", type=Path, required=True, help="a directory")
    return parser.parse_args()


def run_cells(options: argparse.Namespace) -> None:
    (options.output / "cells").mkdir(parents=True, exist_ok=True)
    for cell in map(Cell.read, options.cells.split(",")):
        directory, file = options.output / cell.name, options.output / "cells" / f"{cell.name}.json"
        if file.exists() and json.loads(file.read_text())["samples"] >= options.samples:
            continue
        if cell.arm != "base":
            cell.train(options.model, directory)
        record = measured(cell, cell.models(options.model, directory), options)
        about = {"rounds": cell.rounds, "summary": summary_of(directory)}
        write_cell(cell, file, about | record, options)


def measure_checkpoints(options: argparse.Namespace) -> None:
    for cell in map(Cell.read, options.cells.split(",")):
        for checkpoint in sorted((options.output / cell.name / "coder").glob("checkpoint-*")):
            done = int(checkpoint.name.rpartition("-")[2])
            file = options.output / "cells" / f"{cell.name}-at-{done}.json"
            if not file.exists():
                record = measured(cell, {"coder": checkpoint}, options, questions=CURVE)
                write_cell(cell, file, {"checkpoint": done, **record}, options)


def write_cell(cell: Cell, file: Path, record: dict[str, Any], options: argparse.Namespace) -> None:
    from codea1_env.training.run.provenance import processor

    about = {"arm": cell.arm, "seed": cell.seed, "samples": options.samples, "processor": processor(os.environ)}
    file.write_text(json.dumps(about | record) + "\n")
    right = record["coder"]["fineprint"]["hidden"]
    print(f"{file.stem}: {100 * sum(right) / len(right):.1f} % of programs are right", flush=True)


def measured(
    cell: Cell, models: dict[str, Path], options: argparse.Namespace, questions: Mapping[str, int] = QUESTIONS
) -> dict[str, Any]:
    """The seats on held-out questions; plain data, with a number for each question."""
    # Only now: these imports load torch, and a wrong argument must not wait for them.
    from codea1_env.arena.arena import Arena
    from codea1_env.configuration.presets import load_preset
    from codea1_env.problems.families import FAMILIES
    from codea1_env.sandbox import open_sandbox
    from codea1_env.training.models.sampling import load_model
    from codea1_env.training.process import prepare_process
    from codea1_env.training.run.held_out import evaluate_coder, evaluate_tester
    from codea1_env.training.samples import SamplerSettings

    prepare_process(1)
    preset = load_preset(PRESET)
    how = SamplerSettings(TOKENS, TEMPERATURE, seed=0, top_p=TOP_P)

    def sampler(seat: str) -> Any:
        return load_model(models[seat], preset).sampler(how)

    asked = {family: FAMILIES[family].draw("held_out", count, 0, 0.0) for family, count in questions.items()}
    told: dict[str, Any] = {"coder": {}, "tester": {}}
    with open_sandbox(workers=1) as sandbox, Arena(sandbox, preset.reward) as arena:
        coder = Kept(sampler("coder").coder)
        for family, problems in asked.items():
            told["coder"][family] = plain(evaluate_coder(arena, problems, coder, options.samples))
        if "tester" in models:
            tester = sampler("tester").tester
            targets = {"mutants": asked["fineprint"][:TARGETS]}
            targets["base_programs"] = base_programs(cell, arena, asked["fineprint"], coder, options)
            for name, problems in targets.items():
                told["tester"][name] = plain(evaluate_tester(arena, problems, tester, SUITES, 1))
    return told


class Kept:
    """A source of programs that keeps the last ones of each question."""

    def __init__(self, sample: Any) -> None:
        self._sample, self.programs = sample, dict[str, list[str]]()

    def __call__(self, requests: Sequence[Any], samples: int) -> list[list[str]]:
        answers: list[list[str]] = self._sample(requests, samples)
        for request, texts in zip(requests, answers, strict=True):
            self.programs[request.problem.problem_id] = texts
        return answers


def base_programs(
    cell: Cell, arena: Any, problems: Sequence[Any], coder: Kept, options: argparse.Namespace
) -> list[Any]:
    """The questions that the base answered wrongly, with such an answer as their only mutant: one that passes the
    golden tests and fails a hidden one. They are found when the base is measured, and kept."""
    from codea1_env.problems.jsonl import read_problems, write_problems
    from codea1_env.reading.responses import read_program

    file = options.output / "base_programs.jsonl"
    if not file.exists():
        if cell.arm != "base":
            raise SystemExit(
                f"base:0 must be the first cell, since testers are measured on its programs, got {cell.arm}"
            )
        wrong = []
        for problem in problems:
            texts = coder.programs[problem.problem_id]
            tests = [problem.golden_tests, problem.hidden_tests]
            golden, hidden = arena.grade_many([(problem, tuple(texts), each) for each in tests])
            careless = [
                read_program(text, problem.entry_point).source
                for text, easy, hard in zip(texts, golden, hidden, strict=True)
                if easy.share == 1 and hard.executes and hard.share < 1
            ]
            wrong += [dataclasses.replace(problem, mutants=(careless[0],))] if careless else []
        write_problems(file, wrong)
    return list(read_problems(file))[:TARGETS]


def plain(result: Any) -> dict[str, Any]:
    """A result of held_out.py as JSON data, without the shares of single tests."""
    fields = {field.name: getattr(result, field.name) for field in dataclasses.fields(result)}
    fields.pop("tests", None)
    return {name: rounded(value) for name, value in fields.items()}


def rounded(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: rounded(each) for name, each in sorted(value.items())}
    return [round(each, 4) for each in value]


def summary_of(directory: Path) -> dict[str, Any]:
    """What the run cost: its seconds by part."""
    file = directory / "summary.json"
    return {"seconds": json.loads(file.read_text())["cost"]["seconds"]} if file.exists() else {}


if __name__ == "__main__":
    main()
