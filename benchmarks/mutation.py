"""What a mutant costs: CPU and wall time of kill matrices over the bundled problems, by the length of the function.

    python benchmarks/mutation.py [--problems FILE.jsonl] [--pool 64] [--workers 1]

Everything is counted: making the mutants, the pool of inputs, the reference's answers, the runs, the matrix; for every
group of functions also the start and end of a sandbox of its own. The last column says what empty jobs cost beside the
same other work: a process each, nothing called.
"""

import argparse
import resource
import time
from pathlib import Path

from codea1_env.evaluation.kill_matrix import POOL_SIZE, KillMatrices
from codea1_env.judging.judge import Judge
from codea1_env.problems import Problem, bundled_problems, read_problems
from codea1_env.sandbox import open_sandbox
from codea1_env.sandbox.protocol import CallsJob
from codea1_env.terminal import Parser

GROUPS = ((1, 5), (6, 10), (11, 20), (21, 1000))


def cpu_s() -> float:
    """Of this process and of those that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def lines_of(problem: Problem) -> int:
    return sum(bool(line.strip()) for line in (problem.reference_solution or "").splitlines())


def main() -> None:
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", type=Path, help="a problem file (default: the bundled set)")
    parser.add_argument("--pool", type=int, default=POOL_SIZE, help=f"inputs in a pool (default: {POOL_SIZE})")
    parser.add_argument("--workers", type=int, default=1, help="processes of the sandbox (default: 1)")
    options = parser.parse_args()
    problems = read_problems(options.problems) if options.problems else bundled_problems()
    print("| lines | functions | mutants | equivalent | unloadable | ms of CPU a mutant | ms of wall | "
          "ms of CPU an empty job |")  # fmt: skip
    print("|---|---|---|---|---|---|---|---|")
    for low, high in GROUPS:
        group = [problem for problem in problems if low <= lines_of(problem) <= high]
        if not group:
            continue
        began, began_cpu = time.perf_counter(), cpu_s()
        with open_sandbox("local", options.workers) as sandbox:
            matrices = KillMatrices(Judge(sandbox, execution_cache_mb=0), pool_size=options.pool).of(group)
        wall, cpu = time.perf_counter() - began, cpu_s() - began_cpu
        made = sum(matrix.made for matrix in matrices)
        began_cpu = cpu_s()
        with open_sandbox("local", options.workers) as sandbox:
            sandbox.run([CallsJob("def f(): pass", "f", ())] * made)
        empty = cpu_s() - began_cpu
        equivalent = sum(len(matrix.equivalent) for matrix in matrices)
        unloadable = sum(len(matrix.unloadable) for matrix in matrices)
        name = f"{low} to {high}" if high < 1000 else f"{low} and more"
        print(f"| {name} | {len(group)} | {made} | {equivalent} | {unloadable} | {1000 * cpu / made:.1f} | "
              f"{1000 * wall / made:.1f} | {1000 * empty / made:.1f} |", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
