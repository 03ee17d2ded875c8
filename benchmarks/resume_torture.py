"""Kills a training run with SIGKILL at random moments, resumes it, and compares it with one that nobody disturbed.

    python benchmarks/resume_torture.py                               3 kills, the local engine
    python benchmarks/resume_torture.py --engine ray --kills 10 --updates 2 --other-engine local

Compared bit for bit: final weights of both seats, optimizers, schedules and generators of the last checkpoints, the
Mistake Book, and all metrics but for times. A kill hits wherever it comes, in checkpoints being written, too. With
--other-engine the resumed run changes its engine every time. Exits with 1 where anything differs.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from codea1_env.records.metrics_file import read_metrics
from codea1_env.terminal import Parser

ROOT = Path(__file__).parents[1]
SEATS = ("coder", "tester")
CONFIGURATION = """\
name: torture
save_rounds: 1
round: {programs: 4, suites: 4, updates: %d}
grpo: {coder: {max_completion_length: 48}, tester: {max_completion_length: 64}}
model: {hidden: 64, heads: 2, feed_forward: 64}
warm_start: {steps: 500, examples_per_step: 16, problems: 200}
evaluation: {every_rounds: 2}
"""
"""Tiny, yet programs load and tests parse now and then: both seats have a gradient and the book fills."""


def main() -> int:
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", default="local", help="local or ray")
    parser.add_argument("--other-engine", help="the engine of every second start; default: the same")
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--updates", type=int, default=1, help="optimizer steps a round")
    parser.add_argument("--seed", type=int, default=0, help="of the moments")
    parser.add_argument("--output", type=Path, required=True, help="a new directory for both runs")
    given = parser.parse_args()
    given.output.mkdir(parents=True)
    config = given.output / "torture.yaml"
    config.write_text(CONFIGURATION % given.updates)

    fresh = ["--preset", "smoke", "--config", str(config), "--rounds", str(given.rounds), "--engine", given.engine]
    whole, torn = given.output / "whole", given.output / "torn"
    start = time.monotonic()
    finish([*fresh, "--output", str(whole)], given.output / "whole.log")
    a_round = min(seconds_of_rounds(whole), default=1.0)
    print(f"undisturbed: {time.monotonic() - start:.0f} s, {a_round:.2f} s a round", flush=True)

    rng = random.Random(given.seed)
    options = [*fresh, "--output", str(torn)]
    engines = (given.engine, given.other_engine or given.engine)
    for number in range(given.kills):
        kill_one(options, torn, given.output / "torn.log", rng.uniform(0, 4 * a_round))
        unfinished = sum(not (path / "complete.json").exists() for path in torn.glob("*/checkpoint-*"))
        print(
            f"kill {number + 1}: {rounds_logged(torn)} rounds logged, {unfinished} checkpoints half-written", flush=True
        )
        options = ["--resume", str(torn), "--engine", engines[(number + 1) % 2]]
    finish(options, given.output / "torn.log")

    differing = differences(whole, torn)
    print("differs: " + ", ".join(differing) if differing else "the same, bit for bit")
    return 1 if differing else 0


def begin(options: list[str], log: Path) -> subprocess.Popen[bytes]:
    environment = os.environ | {"CODEA1_CACHE": os.environ.get("CODEA1_CACHE", str(log.parent / "cache"))}
    with log.open("ab") as file:
        command = [sys.executable, "agents/train_grpo.py", *options]
        return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=file, stderr=file)


def finish(options: list[str], log: Path) -> None:
    status = begin(options, log).wait()
    if status:
        raise SystemExit(f"the run must end with 0, got {status}; see {log}")


def kill_one(options: list[str], directory: Path, log: Path, after_s: float) -> None:
    """SIGKILL `after_s` seconds after the run has logged its next round, unless it ends before."""
    before = log.stat().st_size if log.exists() else 0
    process = begin(options, log)
    done = None
    while process.poll() is None:
        if done is None and has_started(log, before):
            done = rounds_logged(directory)
        elif done is not None and rounds_logged(directory) > done:
            break
        time.sleep(0.01)
    time.sleep(after_s)
    if process.poll():
        raise SystemExit(f"the run must be there to be killed, it ended with {process.returncode}; see {log}")
    process.send_signal(signal.SIGKILL)
    process.wait()


def has_started(log: Path, before: int) -> bool:
    """The progress bar is there: what is logged from now on is this start's."""
    with log.open("rb") as file:
        file.seek(before)
        return b"rounds:" in file.read()


def rounds_logged(directory: Path) -> int:
    return max((record["round"] for record in read_metrics(directory) if record["kind"] == "round"), default=0)


def seconds_of_rounds(directory: Path) -> list[float]:
    names = ("seconds_generating", "seconds_learning")
    return [sum(r[name] for name in names) * 2 for r in read_metrics(directory) if r["kind"] == "seat"]


def differences(one: Path, other: Path) -> list[str]:
    """Names of what is not the same in two runs."""
    found = []
    for seat in SEATS:
        last = max(int(path.name.split("-")[1]) for path in (one / seat).glob("checkpoint-*"))
        names = [f"checkpoint-{last}/{name}" for name in ("optimizer.pt", "scheduler.pt", "rng_state.pth")]
        names += [f"checkpoint-{last}/model.safetensors", "final/model.safetensors"]
        found += [f"{seat}/{name}" for name in names if not same_bytes(one / seat / name, other / seat / name)]
    if not same_bytes(one / "book.jsonl", other / "book.jsonl"):
        found.append("book.jsonl")
    if timeless(one) != timeless(other):
        found.append("metrics.jsonl")
    return found


def same_bytes(one: Path, other: Path) -> bool:
    return other.is_file() and one.read_bytes() == other.read_bytes()


def timeless(directory: Path) -> list[str]:
    """Records without times, in an order that does not depend on which seat was first."""
    kept = [{k: v for k, v in r.items() if not k.startswith("seconds")} for r in read_metrics(directory)]
    return sorted(json.dumps(record, sort_keys=True) for record in kept)


if __name__ == "__main__":
    raise SystemExit(main())
