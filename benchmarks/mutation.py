"""What a mutant costs: CPU and wall time of kill matrices over the bundled problems, by the length of the function.

    python benchmarks/mutation.py [--problems FILE.jsonl] [--pool 64] [--workers 1]

Everything is counted: making the mutants, the pool of inputs, the reference's answers, the runs, the matrix.
"""

import argparse
import resource
import statistics
import time
from pathlib import Path

from codea1_env.judge import Judge
from codea1_env.mutation import POOL_SIZE, KillMatrices, KillMatrix
from codea1_env.problems import Problem, bundled_problems, read_problems
from codea1_env.sandbox import open_sandbox


def cpu_s() -> float:
    """Of this process and of those that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def lines_of(problem: Problem) -> int:
    return sum(bool(line.strip()) for line in (problem.reference_solution or "").splitlines())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", type=Path, help="a problem file (default: the bundled set)")
    parser.add_argument("--pool", type=int, default=POOL_SIZE, help=f"inputs in a pool (default: {POOL_SIZE})")
    parser.add_argument("--workers", type=int, default=1, help="processes of the sandbox (default: 1)")
    options = parser.parse_args()
    problems = [*(read_problems(options.problems) if options.problems else bundled_problems())]
    rows: list[tuple[int, float, KillMatrix]] = []
    began, began_cpu = time.perf_counter(), cpu_s()
    with open_sandbox("local", options.workers) as sandbox:
        matrices = KillMatrices(Judge(sandbox, execution_cache_mb=0), pool_size=options.pool)
        for problem in problems:
            start = time.perf_counter()
            (matrix,) = matrices.of([problem])
            rows.append((lines_of(problem), time.perf_counter() - start, matrix))
    wall, cpu = time.perf_counter() - began, cpu_s() - began_cpu
    print("| lines of the reference | functions | mutants | equivalent | unloadable | ms of wall a mutant | worst |")
    print("|---|---|---|---|---|---|---|")
    for low, high in ((1, 10), (11, 20), (21, 1000)):
        group = [row for row in rows if low <= row[0] <= high and row[2].made]
        if group:
            each = [1000 * seconds / matrix.made for _, seconds, matrix in group]
            made = sum(matrix.made for _, _, matrix in group)
            dropped = [sum(len(row) for row in rows) for rows in (
                [matrix.equivalent for _, _, matrix in group], [matrix.unloadable for _, _, matrix in group]
            )]  # fmt: skip
            name = f"{low} to {high}" if high < 1000 else f"{low} and more"
            print(f"| {name} | {len(group)} | {made} | {dropped[0]} | {dropped[1]} | {statistics.median(each):.1f} "
                  f"| {max(each):.1f} |")  # fmt: skip
    made = sum(matrix.made for _, _, matrix in rows)
    inputs = statistics.median(len(matrix.inputs) for _, _, matrix in rows)
    print(f"\n{made} mutants, a pool of {inputs:.0f} inputs in the median: {1000 * wall / made:.1f} ms of wall and "
          f"{1000 * cpu / made:.1f} ms of CPU each, start-up of the sandbox included")  # fmt: skip


if __name__ == "__main__":
    main()
