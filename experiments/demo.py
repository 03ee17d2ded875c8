"""A run that shows both seats learn: golden tests and Code-A1 side by side, from one base, on two cores.

    python experiments/demo.py --seed 0          # what `make demo` runs, in runs/demo-seed0

Builds the base model; trains the coder on golden tests, and both seats by Code-A1, at the same time and on one core
each; ends with a table, a picture and a page of the same questions before and after. A second call goes on where the
first one was stopped. Does not promise the same numbers on another processor.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from codea1_env.checks import require
from codea1_env.cli import main as codea1
from codea1_env.closing import end_with
from codea1_env.extras import for_script
from codea1_env.terminal import Parser
from codea1_env.yaml_files import read_yaml

with for_script("train"):
    import matplotlib.figure

    from codea1_env.arena.arena import Arena
    from codea1_env.arena.match import Match
    from codea1_env.configuration.arguments import exit_status
    from codea1_env.configuration.presets import Preset, load_preset
    from codea1_env.configuration.problem_sets import load_problem_sets
    from codea1_env.language_models.directories import default_cache
    from codea1_env.players.player import CoderRequest, TesterRequest
    from codea1_env.records.duel_sample import DuelSample
    from codea1_env.records.metrics_file import read_metrics
    from codea1_env.sandbox import open_sandbox
    from codea1_env.terminal import markdown_table
    from codea1_env.training.models.sampling import as_trained, load_model
    from codea1_env.training.models.warm_start import base_model
    from codea1_env.training.process import prepare_process
    from codea1_env.training.run.held_out import paired_interval

ROOT = Path(__file__).resolve().parents[1]
RECIPES = {"golden": "baselines/golden_tests.py", "code_a1": "agents/train_grpo.py"}
ROWS = {
    "coder: hidden pass rate": "coder: programs that pass all hidden tests",
    "coder: golden pass rate": "coder: programs that pass the golden tests",
    "tester: valid tests that kill": "tester: right tests that break a program, of those asked for",
    "tester: inputs that kill": "tester: inputs that break a program, of those asked for",
}
"""Rows of a run's summary.json, and what the table calls them."""
CURVES = {
    "coder": {"hidden_pass_rate": "all hidden tests", "golden_pass_rate": "golden tests"},
    "tester": {"input_kill_rate": "inputs that break a program", "kill_rate": "right tests that break a program"},
}
"""By seat, measures of the evaluations during a run, and what the picture calls them."""
QUESTIONS, SUITES = 8, 2
"""Held-out questions on the page, the first ones, and suites of each tester against each program."""


def main() -> int:
    parser = Parser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seed", type=int, default=0, help="seed of both arms (default: 0)")
    parser.add_argument("--output", type=Path, help="a directory (default: runs/demo-seedSEED)")
    parser.add_argument("--config", type=Path, help="a YAML file with changes to the preset demo")
    options = parser.parse_args()
    require(0 <= options.seed < 2**31, "--seed", "be in [0, 2147483647]", options.seed)
    output = options.output or Path(f"runs/demo-seed{options.seed}")
    preset = load_preset("demo", options.config)
    output.mkdir(parents=True, exist_ok=True)
    prepare_process(preset.threads)

    base = base_model(preset, default_cache(dict(os.environ)))  # now, or both arms would build it
    print(f"{preset.rounds} rounds on golden tests and by Code-A1, whose progress this is:", flush=True)
    train(output, options)
    known = read_yaml(output / "code_a1" / "config.yaml", "the run")
    found = {"seed": known["seed"], "base": known["base"], "processor": known["starts"][-1]["processor"]}
    found |= compared(*(json.loads((output / arm / "summary.json").read_text())["rows"] for arm in RECIPES))
    (output / "demo.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    plot(output)
    play(preset, base, output / "code_a1", output / "before_and_after")

    print("\nShares; in brackets the change from the base, with its 95 % interval over problems:")
    print(f"\n{table_of(found)}\n\nBoth seats over the rounds: {output / 'demo.png'}")
    print("A page of questions before and after. Each has the base's program, then that of the trained coder;")
    print(f"under `round 0` the base tester attacks both, under `round {preset.rounds}` the trained one:", flush=True)
    return codea1(["view", str(output / "before_and_after"), "-o", str(output / "before_and_after.html")])


def train(output: Path, options: argparse.Namespace) -> None:
    """Run what is left of both recipes, at the same time."""
    running = {}
    for arm, recipe in RECIPES.items():
        run = output / arm
        if (run / "summary.json").exists():
            continue
        changes = ["--config", str(options.config)] if options.config else []
        new = ["--preset", "demo", *changes, "--seed", str(options.seed), "--output", str(run)]
        told = ["--resume", str(run)] if (run / "config.yaml").exists() else new
        with (output / f"{arm}.log").open("w") as log:
            running[arm] = subprocess.Popen(
                [sys.executable, str(ROOT / recipe), *told],
                stdout=log,
                stderr=None if arm == "code_a1" else log,
                env=os.environ | {"OMP_NUM_THREADS": "1"},
                preexec_fn=partial(end_with, os.getpid()),
            )
    try:
        failed = [arm for arm, process in running.items() if process.wait()]
    except KeyboardInterrupt:  # which the recipes have got, too: they save what they have
        for process in running.values():
            process.wait()
        raise
    if failed:
        log = output / f"{failed[0]}.log"
        raise SystemExit(f"{RECIPES[failed[0]]} has failed: see above or {log}; the same command goes on")


def compared(golden: list[Any], code_a1: list[Any]) -> dict[str, Any]:
    """Of two runs' rows: means, and differences with intervals of 95 % over the same held-out problems."""
    rows: dict[str, Any] = {}
    for name, title in ROWS.items():
        runs = {"base": code_a1, "golden": golden, "code_a1": code_a1}
        measured = {arm: row for arm, run in runs.items() for row in run if row["name"] == name}
        points = {
            arm: row["base_by_problem" if arm == "base" else "trained_by_problem"] for arm, row in measured.items()
        }
        rows[title] = {arm: sum(values) / len(values) for arm, values in points.items()}
        for before, after in (("base", "golden"), ("base", "code_a1"), ("golden", "code_a1")):
            if before in points and after in points:
                found = paired_interval(points[before], points[after])
                rows[title][f"{after} - {before}"] = [found.mean, found.low, found.high]
    return {"problems": len(code_a1[0]["base_by_problem"]), "rows": rows}


def table_of(found: Mapping[str, Any]) -> str:
    """In Markdown."""
    rows = []
    for title, row in found["rows"].items():
        told = {name: "{:+.3f} [{:+.3f}, {:+.3f}]".format(*row[name]) for name in row if " - " in name}
        arms = [f"{row[arm]:.3f} ({told[f'{arm} - base']})" if arm in row else "" for arm in RECIPES]
        rows.append([title, f"{row['base']:.3f}", *arms, told.get("code_a1 - golden", "")])
    head = ["base", "golden tests", "Code-A1", "Code-A1 minus golden tests"]
    return markdown_table([f"{found['problems']} held-out problems", *head], rows)


def plot(output: Path) -> None:
    """Draw demo.png: what the evaluations of both runs found, on the first held-out problems."""
    figure = matplotlib.figure.Figure(figsize=(11, 4.5), layout="constrained")
    for axis, (seat, measures) in zip(figure.subplots(1, 2), CURVES.items(), strict=True):
        for arm, line, name in (("code_a1", "o-", "Code-A1"), ("golden", "o--", "trained on golden tests")):
            records = read_metrics(output / arm)
            looks = [record for record in records if (record["kind"], record["seat"]) == ("evaluation", seat)]
            for colour, (measure, title) in enumerate(measures.items()):
                points = [(look["round"], look[measure]) for look in looks if measure in look]
                if points:
                    axis.plot(*zip(*points, strict=True), line, color=f"C{colour}", label=f"{title}, {name}")
        axis.set(title=f"{seat}, held-out problems", xlabel="rounds done", ylabel="share", ylim=(0, None))
        axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.15), ncols=2, fontsize="small")  # covers no point
    figure.savefig(output / "demo.png", dpi=110)


def play(preset: Preset, base: Path, run: Path, folder: Path) -> None:
    """Let the base and what was trained answer the same questions, and record it as rounds for the viewer."""
    problems = load_problem_sets(preset, 0).held_out[:QUESTIONS]
    how = {seat: as_trained(preset, seat, seed=0) for seat in ("coder", "tester")}
    coders = [load_model(model, preset).sampler(how["coder"]) for model in (base, run / "coder/final")]
    answers = [coder.coder([CoderRequest(problem) for problem in problems], 1) for coder in coders]
    programs = [(before[0], after[0]) for before, after in zip(*answers, strict=True)]
    attacked = [TesterRequest(problem, code) for problem, both in zip(problems, programs, strict=True) for code in both]
    folder.mkdir(exist_ok=True)
    with open_sandbox() as sandbox:
        arena = Arena(sandbox, preset.reward)
        for rounds, model in ((0, base), (preset.rounds, run / "tester/final")):
            suites = map(tuple, load_model(model, preset).sampler(how["tester"]).tester(attacked, SUITES))
            rows = zip(suites, suites, strict=True)  # two programs of a question are neighbours
            matches = [Match(*each) for each in zip(problems, programs, rows, strict=True)]
            scores = arena.play(matches, update_book=False)
            DuelSample(folder / "duels", QUESTIONS).keep(rounds - 1, matches, scores, arena.config)


if __name__ == "__main__":
    raise SystemExit(exit_status(main))
