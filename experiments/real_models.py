"""Co-training of a real model beside its baselines: the arms, run side by side, and measured once each.

    python experiments/real_models.py train --model DIR --problems chosen.jsonl --held-out aside.jsonl -o OUT
    python experiments/real_models.py measure --model DIR --problems humanevalplus.jsonl --functions ult.jsonl -o OUT

`train` starts each arm and seed as a program of its own, some at a time; what stands in OUT goes on where it was. Every
arm has the configuration of real_models.yaml; `--rounds` and `--set KEY=VALUE` change it for all of them. `measure`
asks base and arms the same questions (`codea1 eval`): programs for the questions of `--problems`, suites for the
functions of `--functions`. real_compare.py reads what came out, and docs/results.md says it.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Self

import yaml

from codea1_env.terminal import Parser

HERE = Path(__file__).resolve().parent
RECIPES = {
    "code-a1": "agents/train_grpo.py",
    "golden": "baselines/golden_tests.py",
    "derived": "baselines/golden_tests.py",
    "frozen": "baselines/frozen_tester.py",
    "self-play": "baselines/self_play.py",
}
SEATS = {
    "code-a1": {"coder": "coder", "tester": "tester"},
    "golden": {"coder": "coder"},
    "derived": {"coder": "coder"},
    "frozen": {"coder": "coder"},
    "self-play": {"coder": "player", "tester": "player"},
}
"""Which model of an arm answers in which seat."""


@dataclass(frozen=True)
class Cell:
    """One arm with one seed: ARM:SEED, or ARM:SEED:ROUNDS for another number of rounds than the others have."""

    arms: ClassVar[tuple[str, ...]] = tuple(RECIPES)
    arm: str
    seed: int
    rounds: int | None = None

    @classmethod
    def read(cls, told: str) -> Self:
        arm, *numbers = told.split(":")
        if arm not in cls.arms:
            raise SystemExit(f"arms must be among {', '.join(cls.arms)}, got {arm}")
        if not 1 <= len(numbers) <= 2 or not all(number.isdecimal() for number in numbers):
            raise SystemExit(f"cells must be ARM:SEED or ARM:SEED:ROUNDS, got {told}")
        return cls(arm, *map(int, numbers))

    @property
    def run(self) -> str:
        """Name of its directory."""
        return f"{self.arm}-seed{self.seed}"

    @property
    def name(self) -> str:
        return self.run + (f"-{self.rounds}" if self.rounds else "")


def main() -> None:
    options = arguments()
    options.output.mkdir(parents=True, exist_ok=True)
    run_all(list(options.commands(options)), options.output, options.at_once)


def arguments() -> argparse.Namespace:
    parser = Parser(description=(__doc__ or "").split("\n")[0])
    actions = parser.add_subparsers(required=True)
    train = actions.add_parser("train", help="run arms")
    train.add_argument("--held-out", type=Path, required=True, help="problems that runs are measured on meanwhile")
    train.add_argument("--derived", type=Path, help="of the arm `derived`: the questions with more golden tests")
    train.add_argument("--rounds", type=int, help="of every arm (default: the configuration's)")
    train.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="e.g. grpo.learning_rate=1e-4")
    train.set_defaults(commands=trainings)
    measure = actions.add_parser("measure", help="ask base and arms the same questions")
    measure.add_argument("--functions", type=Path, help="problems for testers (default: testers are not measured)")
    measure.add_argument("--n", type=int, default=16, help="answers of a coder to a question (default: 16)")
    measure.add_argument("--suites", type=int, default=8, help="suites of a tester for a function (default: 8)")
    measure.add_argument("--batch", type=int, default=8, help="questions at a time (default: 8)")
    measure.set_defaults(commands=measurements)
    for action in (train, measure):
        action.add_argument("--model", type=Path, required=True, help="the base, a directory in Hugging Face format")
        action.add_argument("--problems", type=Path, required=True, help="problems for coders")
        action.add_argument(
            "--cells",
            default="code-a1:0,golden:0,code-a1:1,golden:1,frozen:0,self-play:0",
            help="ARM:SEED, divided by commas, or ARM:SEED:ROUNDS for other rounds (default: %(default)s)",
        )
        action.add_argument("--at-once", type=int, default=1, help="programs at a time (default: 1)")
        action.add_argument("-o", "--output", type=Path, required=True, help="a directory")
    return parser.parse_args()


def trainings(options: argparse.Namespace) -> Iterator[tuple[str, list[str]]]:
    """A run for each cell; one that stands there is resumed."""
    cells = [Cell.read(told) for told in options.cells.split(",")]
    if options.derived is None and any(cell.arm == "derived" for cell in cells):
        raise SystemExit("the arm derived must come with --derived FILE, got none; real_questions.py makes one")
    configuration = options.output / "arms.yaml"
    told = yaml.safe_dump(configured(options), sort_keys=False)
    if configuration.exists() and configuration.read_text() != told:
        raise SystemExit(f"error: {configuration} must be what the options give, got other settings of the runs beside "
                         "it; choose another -o")  # fmt: skip
    require_same_files(options)
    configuration.write_text(told)
    for cell in cells:
        directory, rounds = options.output / cell.run, cell.rounds or options.rounds
        argv = [sys.executable, str(HERE.parent / RECIPES[cell.arm])]
        if (directory / "config.yaml").is_file():
            yield cell.name, [*argv, "--resume", str(directory)] + (["--rounds", str(rounds)] if rounds else [])
            continue
        problems = options.derived if cell.arm == "derived" else options.problems
        argv += ["--config", str(configuration), "--model", str(options.model), "--problems", str(problems)]
        argv += ["--seed", str(cell.seed), "--output", str(directory), "--report-to", "none"]
        yield cell.name, argv + (["--rounds", str(rounds)] if rounds else [])


def require_same_files(options: argparse.Namespace) -> None:
    """A run that stands there goes on with what it began with: arms beside it must be asked the same."""
    told = {name: getattr(options, name) for name in ("model", "problems", "derived")}
    asked = {name: str(value) for name, value in told.items() if value is not None}
    known = options.output / "asked.yaml"
    before = yaml.safe_load(known.read_text()) if known.exists() else {}
    for name in sorted(asked.keys() & before.keys()):
        if asked[name] != before[name]:
            raise SystemExit(f"error: --{name} must be {before[name]}, as of the runs in {options.output}, got "
                             f"{asked[name]}; choose another -o")  # fmt: skip
    known.write_text(yaml.safe_dump(before | asked))


def configured(options: argparse.Namespace) -> dict[str, object]:
    """What the arms run on."""
    found = yaml.safe_load((HERE / "real_models.yaml").read_text())
    found["problems"] = {"held_out_file": str(options.held_out.resolve()), "held_out_limit": 0}
    for told in options.set:
        path, _, value = told.partition("=")
        *sections, key = path.split(".")
        place = found
        for section in sections:
            place = place.setdefault(section, {})
        place[key] = yaml.safe_load(value)
    return found


def measurements(options: argparse.Namespace) -> Iterator[tuple[str, list[str]]]:
    """An evaluation for base and each cell, in the seats that it has."""
    players = [("base", {"coder": options.model, "tester": options.model})]
    for cell in map(Cell.read, options.cells.split(",")):
        places = {seat: model_of(options.output / cell.run / who, cell.rounds) for seat, who in SEATS[cell.arm].items()}
        if lacking := [seat for seat, place in places.items() if place is None]:
            raise SystemExit(f"error: {cell.name} must have a model of its {' and '.join(lacking)} in "
                             f"{options.output / cell.run}, got none; leave it out, or name the rounds of a checkpoint"
                             )  # fmt: skip
        players.append((cell.name, {seat: place for seat, place in places.items() if place is not None}))
    for name, seats in players:
        for seat, place in seats.items():
            problems = options.problems if seat == "coder" else options.functions
            if problems is not None:
                # fmt: off
                yield f"eval-{seat}-{name}", [
                    sys.executable, "-c", "import sys; from codea1_env.cli import main; sys.exit(main())", "eval",
                    "--player", f"hf:{place}", "--seat", seat, "--problems", str(problems),
                    "--n", str(options.n if seat == "coder" else options.suites),
                    "--prompts", "example", "--stop-at-fence", "--max-tokens", "512", "--batch", str(options.batch),
                    "--workers", "2", "-o", str(options.output / f"eval-{seat}-{name}"),
                ]
                # fmt: on


def model_of(seat: Path, rounds: int | None) -> Path | None:
    """The checkpoint after so many rounds; without, the trained model or the newest checkpoint of a run cut off."""
    if rounds is None and (seat / "final").is_dir():
        return seat / "final"
    saved = [place for place in seat.glob("checkpoint-*") if (place / "complete.json").is_file()]
    by_rounds = {int(place.name.rpartition("-")[2]): place for place in saved}
    return by_rounds.get(rounds if rounds is not None else max(by_rounds, default=0))


def run_all(commands: Iterable[tuple[str, list[str]]], logs: Path, at_once: int) -> None:
    """Each in a process of its own, which writes to NAME.log. Raises SystemExit at the end where one failed."""
    with ThreadPoolExecutor(at_once) as pool:
        ended = list(pool.map(lambda command: run(*command, logs), commands))
    failed = [name for name, status in ended if status]
    if failed:
        raise SystemExit(f"these failed, see their logs in {logs}: {', '.join(failed)}")


def run(name: str, argv: Sequence[str], logs: Path) -> tuple[str, int]:
    started = time.monotonic()
    with (logs / f"{name}.log").open("a") as log:
        status = subprocess.run(argv, stdout=log, stderr=subprocess.STDOUT, check=False).returncode
    print(f"{name}: status {status} after {time.monotonic() - started:.0f} s", flush=True)
    return name, status


if __name__ == "__main__":
    main()
