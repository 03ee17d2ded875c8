"""How many verdicts a CPU-second buys, which look sends programs alone, and what an overloaded machine changes.

    python benchmarks/score_rate.py IN.jsonl [--lines 77] [--workers 1] [--stress 0]

A verdict is one test that ran on one program; runs of the reference are not counted. A call that several suites of one
program share is run once and counted for each suite; the number of distinct (program, call) pairs is printed beside.
CPU seconds are those of this process and all its children, by the kernel's account; the start of interpreter and
sandbox is measured apart. With --stress B the same lines are scored again beside B busy loops, and verdicts compared. A
table says how many distinct programs each look sends alone, and what their calls cost then.
"""

import argparse
import itertools
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from codea1_env.judging.schedule import calls_job
from codea1_env.problems.problem import Problem
from codea1_env.reading.responses import read_program, read_suite
from codea1_env.sandbox import LocalSandbox, local, tasks
from codea1_env.sandbox.inside.looks import alone_because
from codea1_env.sandbox.protocol import CallsJob
from codea1_env.sandbox.zygotes import CandidateRecord
from codea1_env.terminal import Parser

COMMAND = [sys.executable, "-m", "codea1_env.cli", "score"]


START = json.dumps(
    {
        "problem_id": "start",
        "question": "",
        "entry_point": "f",
        "reference_solution": "def f(x):\n    return x\n",
        "codes": ["```python\ndef f(x):\n    return x\n```"],
        "suites": [["assert f(1) == 1"]],
    }
)
"""A line with next to no work."""


def cpu_s() -> float:
    """CPU seconds of all children that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def timed_score(source: Path, target: Path, workers: int) -> tuple[float, float]:
    """(wall, CPU) seconds of one `codea1 score`."""
    cpu, wall = cpu_s(), time.monotonic()
    subprocess.run(
        [*COMMAND, str(source), "-o", str(target), "--workers", str(workers)], check=True, stderr=subprocess.DEVNULL
    )
    return time.monotonic() - wall, cpu_s() - cpu


def verdicts(path: Path) -> list[tuple[str, str]]:
    """(distinct pair, verdict) of every test that ran."""
    found = []
    for number, line in enumerate(path.open()):
        for place, row in enumerate(json.loads(line)["suites"]):
            for test in itertools.chain.from_iterable(suite["tests"] for suite in row):
                if test["verdict"] is not None:
                    found.append((f"{number} {place} {test['call']}", test["verdict"]))
    return found


def jobs(lines: list[str]) -> Iterator[CallsJob]:
    """Every distinct program with all distinct calls of its suites that can be read."""
    for line in lines:
        record = json.loads(line)
        problem = Problem("looks", "", record["entry_point"], time_limit_s=0.2)
        for code, suites in dict(zip(record["codes"], record["suites"], strict=True)).items():
            tests = [test for suite in suites for test in read_suite(suite, problem.entry_point).tests]
            calls = tuple(dict.fromkeys(test.arguments for test in tests if test.arguments))
            yield calls_job(problem, read_program(code, problem.entry_point).source, calls)


def print_looks(lines: list[str]) -> None:
    """A table in Markdown: by what the looks came to, programs, calls and the CPU time of their processes."""
    found: dict[str, list[float]] = {}
    ended: list[tuple[bool, int]] = []
    absorb = local.absorb

    def noted(task: tasks.Task, records: list[CandidateRecord], cpu_ns: int, *rest: Any) -> None:
        absorb(task, records, cpu_ns, *rest)
        ended.append((task.is_alone, cpu_ns))

    local.absorb = noted
    with LocalSandbox() as sandbox:
        for job in jobs(lines):
            ended.clear()
            (result,) = sandbox.run([job])
            alone, spent_ns = zip(*ended, strict=True)
            name = "none, or one call, or does not load"
            if any(alone):
                name = "text: a far word" if alone_because(job.source) else "state, a mark, or an unknown name"
            row = found.setdefault(name, [0, 0, 0.0])
            for place, added in enumerate((1, len(result.outcomes), sum(spent_ns) / 1e9)):
                row[place] += added
    local.absorb = absorb
    print("| look that sends them alone | programs | calls | CPU s | ms a call |\n|---|---|---|---|---|")
    for name, (programs, calls, spent_s) in sorted(found.items()):
        print(f"| {name} | {programs} | {calls} | {spent_s:.1f} | {1000 * spent_s / max(calls, 1):.2f} |")


def main() -> None:
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("input", type=Path)
    parser.add_argument("--lines", type=int, default=1_000_000, help="first lines of the input to use (default: all)")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument(
        "--stress", type=int, default=0, metavar="B", help="busy loops beside a second run (default: 0)"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        source, first, second = (Path(folder) / name for name in ("in", "first", "second"))
        lines = list(itertools.islice(options.input.open(), options.lines))
        source.write_text(START)
        start_wall, start_cpu = timed_score(source, first, options.workers)
        source.write_text("".join(lines))
        wall, cpu = timed_score(source, first, options.workers)
        calm = verdicts(first)
        print(f"start-up: {start_wall:.2f} s wall, {start_cpu:.2f} s CPU")
        pairs = len({pair for pair, _ in calm})
        print(f"{len(lines)} lines, {len(calm)} verdicts on {pairs} distinct (program, call) pairs")
        rate = len(calm) / max(cpu - start_cpu, 1e-9)
        print(f"{wall:.1f} s wall, {cpu:.1f} s CPU; {rate:.0f} verdicts per CPU-second, start-up apart")
        counts = {verdict: sum(v == verdict for _, v in calm) for verdict in sorted({v for _, v in calm})}
        print("verdicts: " + ", ".join(f"{count} {verdict}" for verdict, count in counts.items()))
        print_looks(lines)
        if options.stress:
            loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(options.stress)]
            try:
                timed_score(source, second, options.workers)
            finally:
                for loop in loops:
                    loop.kill()
                    loop.wait()
            stressed = verdicts(second)
            differing = sum(one != other for one, other in zip(calm, stressed, strict=True))
            same = first.read_bytes() == second.read_bytes()
            print(f"beside {options.stress} busy loops: {differing} of {len(calm)} verdicts differ; same bytes: {same}")


if __name__ == "__main__":
    main()
