"""The command `codea1 bench`: run an entry of the benchmark, check its file, and set entries beside each other.

Exit codes: 0 done, 1 a check found something or a run failed, 2 wrong arguments.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from codea1_env.bench.entry import DEFAULT, RECIPES, entry_of
from codea1_env.bench.files import read_bench
from codea1_env.bench.table import as_markdown, draw, read_folders
from codea1_env.bench.track import BUDGETS, SETS, track_of
from codea1_env.checks import require, require_whole
from codea1_env.cli.common import add_actions, add_command, claim, require_place, say
from codea1_env.terminal import Parser

MOST_SEED = 2**31 - 1
RUN_EXAMPLES = """\
examples:
  codea1 bench run --budget tiny                       # Code-A1, in minutes of one core
  codea1 bench run golden --budget tiny --seed 1 -o runs/bench/golden-1.json
  codea1 bench run --budget tiny --part advantage=mine:Best --who "A. Name"
  codea1 bench run mine.py --budget small --model DIRECTORY

It runs in a clone, with the extra `train`. After an interruption the same command continues.
"""
CHECK_EXAMPLES = """\
examples:
  codea1 bench check runs/bench/code-a1-tiny-bands-0.json
  codea1 bench check mine.json --questions 20261127      # on the questions of a release
"""
TABLE_EXAMPLES = """\
examples:
  codea1 bench table experiments/results/bench
  codea1 bench table experiments/results/bench runs/bench --picture bench.png
"""


def add_bench(parser: Parser) -> None:
    actions = add_actions(parser)
    about = "Train an entry on a track, and measure both seats on its held-out questions. The run is saved beside it."
    run = add_command(actions, "run", summary="train and measure one entry", description=about, examples=RUN_EXAMPLES)
    run.set_defaults(run=_run)
    run.add_argument("entry", metavar="ENTRY", nargs="?", default=DEFAULT, help=f"one of {', '.join(RECIPES)}, or "
                     f"your own recipe, FILE.py (default: {DEFAULT})")  # fmt: skip
    run.add_argument("--budget", choices=BUDGETS, required=True, help="limit of training, in tokens and seconds of "
                     "the environment (docs/bench.md)")  # fmt: skip
    run.add_argument("--family", choices=SETS, help="the family of questions (default: the budget's first)")
    run.add_argument("--config", metavar="FILE.yaml", type=Path, help="what the entry changes in the track's "
                     "configuration, e.g. `reward: {alpha: 0.5}` (default: nothing)")  # fmt: skip
    run.add_argument("--part", metavar="PART=module:Class", action="append", default=[], help="your own part, e.g. "
                     "advantage=mine:Best; may be given several times")  # fmt: skip
    run.add_argument("--seed", type=int, default=0, help=f"seed of the run, 0 to {MOST_SEED} (default: 0)")
    run.add_argument("--name", help="name of the entry in tables (default: ENTRY, or what it changes)")
    run.add_argument("--who", default="", help="author of the entry (default: none)")
    run.add_argument("--what", default="", help="description in one line (default: ENTRY's)")
    _add_model(run)
    run.add_argument("-o", "--output", metavar="FILE.json", type=Path, help="the file to write (default: "
                     "runs/bench/NAME-BUDGET-FAMILY-SEED.json)")  # fmt: skip
    about = "Measure an entry again from its weights, and list the cells that do not hold."
    check = add_command(actions, "check", summary="measure an entry again", description=about, examples=CHECK_EXAMPLES)
    check.set_defaults(run=_check)
    check.add_argument("file", metavar="FILE.json", type=Path, help="an entry, written by `codea1 bench run`")
    check.add_argument("--run", dest="directory", metavar="DIR", type=Path, help="directory of the run with the "
                       "weights (default: FILE without .json)")  # fmt: skip
    check.add_argument("--questions", metavar="SEED", type=int, help="measure on the held-out questions of this seed, "
                       "and print the cells (default: those of the file)")  # fmt: skip
    _add_model(check)
    about = "Compare all entries of folders in Markdown tables, one for each track."
    table = add_command(actions, "table", summary="compare entries", description=about, examples=TABLE_EXAMPLES)
    table.set_defaults(run=_table)
    table.add_argument("folders", metavar="FOLDER", nargs="+", type=Path, help="a folder with files of `codea1 bench "
                       "run`")  # fmt: skip
    table.add_argument("--picture", metavar="FILE", type=Path, help="plot both seats as .png or .svg; a second track "
                       "goes into FILE-2 (default: none)")  # fmt: skip


def _add_model(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", metavar="DIR", type=Path, help="base model in Hugging Face format, for the family "
                        "fineprint; the other families build theirs")  # fmt: skip


def _run(options: argparse.Namespace) -> int:
    require(0 <= options.seed <= MOST_SEED, "--seed", f"be in [0, {MOST_SEED}]", options.seed)
    track = track_of(options.budget, options.family)
    entry = entry_of(options.entry, config=options.config, parts=options.part, name=options.name, who=options.who,
                     what=options.what)  # fmt: skip
    named = Path("runs/bench") / f"{entry.name}-{track.budget}-{track.family}-{options.seed}.json"
    file: Path = options.output or named
    require(file.suffix == ".json", "-o", "be a file that ends in .json", file)
    track.require_model(options.model)
    file.parent.mkdir(parents=True, exist_ok=True)
    require_place("-o", file)
    from codea1_env.bench.run import run_entry  # torch: a wrong argument must not wait for it

    with claim(("-o", file)):
        run_entry(entry, track, file, seed=options.seed, model=options.model, say=say)
    print(f"wrote {file}")
    return 0


def _check(options: argparse.Namespace) -> int:
    found = read_bench(options.file)
    _require_model(options.model)
    questions = found.record["track"]["questions"] if options.questions is None else options.questions
    require_whole("--questions", questions, 0)
    from codea1_env.bench.run import check

    run = options.directory or options.file.with_suffix("")
    wrong = check(found, run, model=options.model, questions=questions, say=say)
    for line in wrong:
        print(line)
    print(f"{options.file}: {'does not hold' if wrong else 'holds'}")
    return 1 if wrong else 0


def _table(options: argparse.Namespace) -> int:
    for folder in options.folders:
        require(folder.is_dir(), "FOLDER", "be a folder", folder)
    if options.picture is not None:
        require_place("--picture", options.picture)
        require(options.picture.suffix in (".png", ".svg"), "--picture", "end in .png or .svg", options.picture)
    sections = read_folders(*options.folders)
    for number, section in enumerate(sections, 1):
        if options.picture is not None:
            name = options.picture.stem + (f"-{number}" if number > 1 else "")
            draw(section, options.picture.with_name(name + options.picture.suffix))
    print("\n\n".join(map(as_markdown, sections)))
    return 0


def _require_model(model: Path | None) -> None:
    require(model is None or model.is_dir(), "--model", "be a directory", model)
