"""Arms on questions with fine print: a real model in both seats beside its baselines, cell by cell.

    python experiments/fineprint.py run --model DIR -o OUT --cells base:0,code-a1:0,golden:0,frozen:0
    python experiments/fineprint.py table OUT

A cell is ARM:SEED, or ARM:SEED:ROUNDS for more or fewer rounds than the preset has. `run` trains each cell that has a
recipe, one after the other, and measures it; what stands in OUT is resumed or left as it is. A cell's file,
OUT/cells/NAME.json, has a number for each held-out question, so that intervals can be made of it; `table` prints them.
docs/fineprint.md says what came out.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import platform
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
PRESET = "0.5b-fineprint"
ARMS = HERE / "fineprint.yaml"
"""The preset, without the evaluations: every cell is measured when it is done."""
RECIPES = {
    "code-a1": "agents/train_grpo.py",
    "code-a1-paper": "agents/train_grpo.py",
    "golden": "baselines/golden_tests.py",
    "frozen": "baselines/frozen_tester.py",
    "self-play": "baselines/self_play.py",
}
CHANGES = {"code-a1-paper": HERE / "fineprint_paper.yaml"}
"""Arms with another configuration than the preset."""
QUESTIONS, WORDS, TARGETS, SUITES = 150, 60, 75, 4
"""Held-out questions of the family and of the second one, questions whose mutants a tester attacks, suites for each."""
TEMPERATURE, TOP_P, TOKENS = 0.7, 0.95, 160
"""Of every cell. The cap is above that of training, so that nobody is measured by it."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One arm with one seed."""

    arm: str
    seed: int
    rounds: int | None = None

    @classmethod
    def read(cls, told: str) -> Cell:
        arm, *numbers = told.split(":")
        if arm not in ("base", *RECIPES):
            raise SystemExit(f"arms must be among base, {', '.join(RECIPES)}, got {arm}")
        if not 1 <= len(numbers) <= 2 or not all(number.isdecimal() for number in numbers):
            raise SystemExit(f"cells must be ARM:SEED or ARM:SEED:ROUNDS, got {told}")
        return cls(arm, *map(int, numbers))

    @property
    def name(self) -> str:
        return f"{self.arm}-{self.seed}" + (f"-{self.rounds}" if self.rounds else "")

    def train(self, model: Path, directory: Path) -> None:
        """Run its recipe, or what is left of it. Raises CalledProcessError."""
        if (directory / "summary.json").exists():
            return
        command = [sys.executable, str(HERE.parent / RECIPES[self.arm])]
        if (directory / "config.yaml").exists():
            command += ["--resume", str(directory)]
        else:
            command += ["--config", str(CHANGES.get(self.arm, ARMS)), "--model", str(model), "--seed", str(self.seed)]
            command += ["--output", str(directory), "--report-to", "none"] + (
                ["--rounds", str(self.rounds)] if self.rounds else []
            )
        with directory.with_suffix(".log").open("a") as log:
            subprocess.run(command, stdout=log, stderr=subprocess.STDOUT, check=True)

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
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    actions = parser.add_subparsers(required=True)
    run = actions.add_parser("run", help="train and measure cells, one after the other")
    run.add_argument("--model", type=Path, required=True, help="the base, a directory in Hugging Face format")
    run.add_argument("--cells", required=True, help="ARM:SEED[:ROUNDS], divided by commas; base:0 is measured first")
    run.add_argument("--samples", type=int, default=8, help="programs for a question (default: 8)")
    run.add_argument("-o", "--output", metavar="OUT", type=Path, required=True, help="a directory")
    run.set_defaults(run=run_cells)
    table = actions.add_parser("table", help="what came out, with intervals over questions")
    table.add_argument("output", metavar="OUT", type=Path, help="a directory with cells/, or one of cells")
    table.set_defaults(run=lambda options: print(table_of(read_cells(options.output))))
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
        about = {"arm": cell.arm, "seed": cell.seed, "rounds": cell.rounds, "samples": options.samples}
        about |= {"processor": processor(), "summary": summary_of(directory)}
        file.write_text(json.dumps(about | record) + "\n")
        print(
            f"{cell.name}: {100 * np.mean(record['coder']['fineprint']['hidden']):.1f} % of programs are right",
            flush=True,
        )


def measured(cell: Cell, models: dict[str, Path], options: argparse.Namespace) -> dict[str, Any]:
    """Both seats on held-out questions; plain data, with a number for each question."""
    # Only now: these imports load torch, and a wrong argument must not wait for them.
    from codea1_env.arena.arena import Arena
    from codea1_env.problems.families.fineprint import fineprint_problems, fineprint_words_problems
    from codea1_env.sandbox import open_sandbox
    from codea1_env.training.config.presets import load_preset
    from codea1_env.training.engine.local import prepare_process
    from codea1_env.training.models.chat import chat_of
    from codea1_env.training.models.sampling import load_model
    from codea1_env.training.run.held_out import evaluate_coder, evaluate_tester

    prepare_process(1)
    preset = load_preset(PRESET)
    sampling = {"tokens": TOKENS, "temperature": TEMPERATURE, "top_p": TOP_P, "seed": 0}

    def sampler(seat: str) -> Any:
        return load_model(models[seat], preset).sampler(preset, chat=chat_of(preset), **sampling)

    questions = {"fineprint": fineprint_problems("held_out", QUESTIONS, 0)}
    questions["fineprint_words"] = fineprint_words_problems("held_out", WORDS, 0)
    told: dict[str, Any] = {"coder": {}, "tester": {}}
    with open_sandbox(workers=1) as sandbox, Arena(sandbox, preset.reward) as arena:
        coder = Kept(sampler("coder").coder)
        for family, problems in questions.items():
            told["coder"][family] = plain(evaluate_coder(arena, problems, coder, options.samples))
        if "tester" in models:
            tester = sampler("tester").tester
            targets = {"mutants": questions["fineprint"][:TARGETS]}
            targets["base_programs"] = base_programs(cell, arena, questions["fineprint"], coder, options)
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
    if isinstance(value, dict):
        return {name: rounded(each) for name, each in sorted(value.items())}
    return [round(each, 4) for each in value]


def processor() -> str:
    """What the figures were made on."""
    told = Path("/proc/cpuinfo").read_text()
    flags = next((line for line in told.splitlines() if line.startswith("flags")), "").split()
    name = next(
        (line.split(":")[1].strip() for line in told.splitlines() if line.startswith("model name")), platform.machine()
    )
    return f"{name}, {', '.join(flag for flag in ('avx512_bf16', 'amx_bf16') if flag in flags) or 'no bfloat16'}"


def summary_of(directory: Path) -> dict[str, Any]:
    """What the run cost: its seconds by part."""
    file = directory / "summary.json"
    return {"seconds": json.loads(file.read_text())["cost"]["seconds"]} if file.exists() else {}


def read_cells(directory: Path) -> dict[str, dict[str, Any]]:
    cells = directory / "cells" if (directory / "cells").is_dir() else directory
    found = {file.stem: json.loads(file.read_text()) for file in sorted(cells.glob("*.json"))}
    if not found:
        raise SystemExit(f"OUT must hold cells, got none in {directory}")
    return found


MEASURES = {
    "coder": {
        "all hidden tests": ("coder", "fineprint", "hidden"),
        "golden tests": ("coder", "fineprint", "golden"),
        "on words": ("coder", "fineprint_words", "hidden"),
    },
    "tester": {
        "right tests": ("tester", "mutants", "valid"),
        "right and break a mutant": ("tester", "mutants", "kills"),
        "break it, values corrected": ("tester", "mutants", "input_kills"),
        "right and break a base program": ("tester", "base_programs", "kills"),
    },
}


def values_of(cell: dict[str, Any], path: Sequence[str]) -> np.ndarray | None:
    """One number a question, in percent; None: not measured."""
    for name in path:
        cell = cell.get(name) or {}
    return 100 * np.array(cell, dtype=float) if isinstance(cell, list) else None


def pooled(cells: Sequence[dict[str, Any]], path: Sequence[str]) -> np.ndarray | None:
    """(seeds, questions)"""
    rows = [row for cell in cells if (row := values_of(cell, path)) is not None]
    return np.stack(rows) if rows else None


def interval(rows: np.ndarray, base: np.ndarray | None = None) -> tuple[float, float, float]:
    """Mean over seeds and questions and its 95 % bootstrap interval, which draws questions, and seeds where there are
    several; of the difference from `base`, (1, questions), where there is one."""
    rng = np.random.default_rng(0)
    table = rows if base is None else rows - base.mean(axis=0)
    means = []
    for _ in range(2000):
        seeds = rng.integers(len(table), size=len(table))
        questions = rng.integers(table.shape[1], size=table.shape[1])
        means.append(table[seeds][:, questions].mean())
    low, high = np.percentile(means, [2.5, 97.5])
    return float(table.mean()), float(low), float(high)


def table_of(cells: dict[str, dict[str, Any]]) -> str:
    """Arms beside each other: means over seeds, and by how much they are above the base."""
    arms: dict[str, list[dict[str, Any]]] = {}
    for cell in cells.values():
        arms.setdefault(cell["arm"] + (f", {cell['rounds']} rounds" if cell["rounds"] else ""), []).append(cell)
    lines = []
    for seat, measures in MEASURES.items():
        lines += [f"| {seat} | " + " | ".join(f"{arm} ({len(of_arm)})" for arm, of_arm in arms.items()) + " |"]
        lines += ["|" + "---|" * (len(arms) + 1)]
        for title, path in measures.items():
            base = pooled(arms.get("base", []), path)
            shown = []
            for arm, of_arm in arms.items():
                rows = pooled(of_arm, path)
                if rows is None:
                    shown.append("")
                    continue
                mean, low, high = interval(rows)
                difference = ""
                if arm != "base" and base is not None:
                    more, least, most = interval(rows, base)
                    difference = f" ({more:+.1f} [{least:+.1f}, {most:+.1f}])"
                shown.append(f"{mean:.1f} [{low:.1f}, {high:.1f}]{difference}")
            lines.append(f"| {title} | " + " | ".join(shown) + " |")
        lines.append("")
    return "\n".join(lines).rstrip()


if __name__ == "__main__":
    main()
