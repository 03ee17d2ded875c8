"""What arenas in processes of their own gain on this machine: verdicts and CPU-seconds of one and of several.

    python benchmarks/arenas.py [--arenas 2] [--questions 48] [--rounds 3]

Each arena gets as many questions (weak scaling): bundled problems, of each its reference and mutants, with four suites
of eight tests against each; every program is another text, so no cache answers. The start of the processes is apart,
and so is a first round. CPU-seconds are those of the first process and of all that it started. `bound` is what the CPU
time alone would allow on as many idle cores: where other work runs beside it, only this says something. Several arenas
have a core each where there are as many.
"""

import argparse
import dataclasses
import itertools
import os
import random
import time
from collections.abc import Sequence

from codea1_env import Match, MatchScore, bundled_problems
from codea1_env.arena.sharded import ShardedArena
from codea1_env.extras import for_script

with for_script("dev"):
    from clocks import cpu_s

PROGRAMS, SUITES, TESTS = 8, 4, 8


def matches(count: int, round_index: int) -> list[Match]:
    """All different, and the same in every run."""
    rng = random.Random(round_index)
    problems = [problem for problem in bundled_problems() if len(problem.golden_tests) >= 2]
    found = []
    for number, problem in zip(range(count), itertools.cycle(problems), strict=False):
        named = dataclasses.replace(problem, problem_id=f"{problem.problem_id} {number} {round_index}")
        sources = [str(problem.reference_solution), *problem.mutants]
        codes = [f"{source}\n# {number} {round_index} {place}" for place, source in
                 zip(range(PROGRAMS), itertools.cycle(sources), strict=False)]  # fmt: skip
        tests = list(map(str, problem.golden_tests + problem.hidden_tests))
        rows = tuple(tuple("\n".join(rng.sample(tests, min(TESTS, len(tests)))) for _ in range(SUITES)) for _ in codes)
        found.append(Match(named, tuple(codes), rows))
    return found


def verdicts(scores: Sequence[MatchScore]) -> int:
    tests = (test for score in scores for row in score.suites for suite in row for test in suite.duel.tests)
    return sum(test.verdict is not None for test in tests)


def measured(arenas: int, questions: int, rounds: int) -> tuple[int, float, float, float]:
    """Verdicts; their seconds, of the clock and of CPUs; CPU-seconds of this process alone among them."""
    with ShardedArena(arenas) as arena:
        began = time.perf_counter()
        arena.start()
        print(f"{arenas} arenas started in {time.perf_counter() - began:.1f} s")
        arena.play(matches(arenas, rounds), update_book=False)
        batches = [matches(arenas * questions, index) for index in range(rounds)]
        cpu, own, began = cpu_s(), time.process_time(), time.perf_counter()
        count = sum(verdicts(arena.play(batch)) for batch in batches)
        return count, time.perf_counter() - began, cpu_s() - cpu, time.process_time() - own


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arenas", type=int, default=2)
    parser.add_argument("--questions", type=int, default=48, help="a round, for each arena (default: 48)")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    rates, costs = [], []
    for arenas in (1, options.arenas):
        count, wall, cpu, own = measured(arenas, options.questions, options.rounds)
        rates.append(count / wall)
        costs.append(cpu / count)
        print(
            f"{arenas} arenas: {count} verdicts in {wall:.1f} s, {count / wall:.0f} a second; {cpu:.1f} CPU-seconds, "
            f"{1e3 * cpu / count:.3f} ms a verdict, of which the first process {1e3 * own / count:.3f}"
        )
    bound = options.arenas * costs[0] / costs[1]
    where = f"{len(os.sched_getaffinity(0))} cores, load {os.getloadavg()[0]:.1f}"
    print(f"{options.arenas} arenas are {rates[1] / rates[0]:.2f} times one; bound {bound:.2f} ({where})")


if __name__ == "__main__":
    main()
