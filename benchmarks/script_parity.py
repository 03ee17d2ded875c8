"""Do test scripts come to the same here as under BigCodeBench's own check? References, mutants of them and answers of a
model, one after another on both sides in turn, with the CPU time of each.

    python -m venv THEIRS && THEIRS/bin/pip install --no-deps bigcodebench, and what constraints-bigcodebench.txt names
    python benchmarks/script_parity.py run ROWS.jsonl.gz --theirs THEIRS/bin/python --answers ANSWERS.jsonl -o OUT.jsonl
    python benchmarks/script_parity.py table OUT.jsonl

The order is drawn by chance, so that a run which is stopped has a fair sample; the same command goes on. Their check
runs programs without a sandbox: --theirs is to begin with what puts a container around it.
"""

from __future__ import annotations

import argparse
import json
import random
import shlex
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from codea1_env import LocalSandbox, Problem, read_program
from codea1_env.judging.scripts import CALLS, judge_scripts
from codea1_env.problems.sources import find_source
from codea1_env.problems.sources.rows import local_rows
from codea1_env.reading.programs.mutants import mutants

SIDE = Path(__file__).parent / "graders" / "bigcodebench_scripts.py"
LIMIT_S = 30
"""CPU seconds here, seconds there."""


def items(options: argparse.Namespace) -> list[tuple[str, Problem, str]]:
    """(key, problem, program), in an order of chance."""
    drawn = random.Random(options.seed)
    problems = {
        draft.problem.problem_id: draft.problem
        for draft in find_source("bigcodebench").drafts(local_rows(options.rows))
    }
    found = []
    for name, problem in problems.items():
        reference = problem.reference_solution or ""
        found.append((f"reference {name}", problem, reference))
        changed = [each.source for each in mutants(reference)]
        for number, source in enumerate(drawn.sample(changed, min(options.mutants, len(changed)))):
            found.append((f"mutant {name} {number}", problem, source))
    drawn.shuffle(found)
    answers = []
    for line in options.answers.read_text().splitlines() if options.answers else ():
        record = json.loads(line)
        problem = problems[record["problem_id"]]
        program = read_program(record["codes"][0], problem.entry_point).source
        answers.append((f"answer {problem.problem_id}", problem, f"{problem.imports}\n{program}"))
    drawn.shuffle(answers)
    return interleaved(answers, found)


def interleaved(one: list[Any], other: list[Any]) -> list[Any]:
    """Two of one, then one of the other, as far as there are some."""
    mixed, following = [], iter(other)
    for number, each in enumerate(one):
        mixed.append(each)
        if number % 2:
            mixed += [item for item in [next(following, None)] if item]
    return [*mixed, *following]


def cpu_s(pid: str = "self") -> float:
    """Of a process, all that it started, and what these waited for."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        children = [
            child for task in Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text().split()
        ]
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return sum(map(int, fields[11:15])) / 100 + sum(map(cpu_s, children))


def run(options: argparse.Namespace) -> None:
    done = (
        {json.loads(line)["key"] for line in options.output.read_text().splitlines()}
        if options.output.exists()
        else set()
    )
    with LocalSandbox() as sandbox, open(options.output, "a") as out:
        command = [*shlex.split(options.theirs), str(SIDE), str(LIMIT_S)]
        side = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert side.stdin is not None
        assert side.stdout is not None
        for key, problem, program in items(options):
            if key in done:
                continue
            limited = replace(problem, time_limit_s=LIMIT_S / CALLS, memory_mb=8192)
            before = cpu_s() - cpu_s(str(side.pid))
            (verdict,) = judge_scripts(sandbox, [(limited, program)])
            ours_s = cpu_s() - cpu_s(str(side.pid)) - before
            print(json.dumps({"program": program, "script": problem.test_script}), file=side.stdin, flush=True)
            theirs = json.loads(side.stdout.readline())
            bad = {
                test.name.rpartition(".")[2]: f"{test.outcome} {test.why}"
                for test in verdict.tests
                if test.outcome != "passed"
            }
            record = {
                "key": key,
                "ours": verdict.passed,
                "said": verdict.told,
                "bad": bad,
                "cpu_s": ours_s,
                "theirs": theirs,
            }
            print(json.dumps(record), file=out, flush=True)
        side.stdin.close()
        side.wait()


def rows_of(file: Path) -> Iterator[dict[str, Any]]:
    for line in file.read_text().splitlines():
        yield json.loads(line)


def reason(row: dict[str, Any]) -> str:
    """Why a verdict may differ, by what either side said."""
    said = row["said"] + json.dumps(row["bad"]) + json.dumps(row["theirs"]["why"])
    if row["theirs"]["status"] == "timeout" or "timeout" in row["said"] or "Timed out" in said:
        return "time-out"
    return "other"


def table(options: argparse.Namespace) -> None:
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for row in rows_of(options.rows):
        kind, theirs = row["key"].partition(" ")[0], row["theirs"]["status"] == "pass"
        same = row["ours"] == theirs
        counts[kind]["programs"] += 1
        counts[kind]["pass on both"] += row["ours"] and theirs
        counts[kind]["differ"] += not same and reason(row) != "time-out"
        counts[kind]["time-outs that differ"] += not same and reason(row) == "time-out"
        if not same:
            print(
                row["key"],
                "ours" if row["ours"] else "theirs",
                "passes:",
                row["said"][:150],
                "|",
                str(row["theirs"])[:250],
            )
        for side, seconds in (("ours", row["cpu_s"]), ("theirs", row["theirs"]["cpu_s"])):
            counts[kind][f"CPU s, {side}"] += seconds  # type: ignore[assignment]
    for kind, found in counts.items():
        print(kind, {name: round(value, 1) for name, value in found.items()})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("run", "table"))
    parser.add_argument("rows", type=Path, help="BigCodeBench's rows; for `table`, what `run` wrote")
    parser.add_argument("--theirs", help="the command that runs a Python with bigcodebench")
    parser.add_argument("--answers", type=Path, help="a line for each task: problem_id, codes")
    parser.add_argument("--mutants", type=int, default=3, help="of each reference (default: 3)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("-o", "--output", type=Path, default=Path("parity.jsonl"))
    options = parser.parse_args()
    {"run": run, "table": table}[options.what](options)
    sys.exit(0)


if __name__ == "__main__":
    main()
