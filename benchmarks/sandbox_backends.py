"""What a backend costs beside the local one with one worker: the same work on each, all warm, taking turns.

    python benchmarks/sandbox_backends.py [--sides local-2 ray docker] [--rounds 15] [--problems 16]

`jobs` is the sandbox alone: 8 programs of 64 calls each per problem. `duels` is the arena with the judge: every problem
once, 8 programs with 4 suites of 8 asserts against each, nothing remembered but the reference's values. A figure is the
median over rounds of (side / local with one worker), beside the quartiles. Wall times need idle cores: local-2 (two
workers) two of them, the others one and a half. CPU is that of this process and everything below it, engine and Ray
included. Starting is apart. Every side must give the same answers. Needs the extras of the sides, and `dev` (psutil).
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

from codea1_env.extras import for_script
from codea1_env.terminal import Parser

with for_script("dev"):
    import psutil

    from codea1_env import Arena, Match, bundled_problems
    from codea1_env.problems import Problem
    from codea1_env.reading.grammar import read_case
    from codea1_env.sandbox import CallsJob, Sandbox, open_sandbox

PROGRAMS, SUITES, ASSERTS, CALLS = 8, 4, 8, 64
BASE = "local"
SIDES: dict[str, tuple[str, int]] = {
    BASE: ("local", 1),
    "local-2": ("local", 2),
    "ray": ("ray", 1),
    "docker": ("docker", 1),
}


@dataclass(frozen=True, slots=True)
class Cost:
    """What one batch cost, in seconds."""

    wall_s: float
    cpu_s: float


def cpu_s() -> float:
    """CPU seconds so far of this process, of an engine here with its containers, and of all below, ended ones too."""
    engines = ("dockerd", "containerd", "containerd-shim")  # a container's parent is its shim, which is nobody's child
    roots = [psutil.Process(), *(p for p in psutil.process_iter(["name"]) if p.info["name"].startswith(engines))]
    seen: dict[int, psutil.Process] = {}
    for root in roots:
        with contextlib.suppress(psutil.NoSuchProcess):
            seen |= {process.pid: process for process in [root, *root.children(recursive=True)]}
    total = 0.0
    for process in seen.values():
        with contextlib.suppress(psutil.NoSuchProcess):
            total += sum(process.cpu_times()[:4])
    return total


def programs(problem: Problem, salt: int) -> list[str]:
    """Eight programs, right and wrong, different in every round: nothing can be remembered."""
    sources = itertools.islice(itertools.cycle([str(problem.reference_solution), *problem.mutants]), PROGRAMS)
    return [f"{source}\n# {salt}.{number}" for number, source in enumerate(sources)]


def jobs_of(problem: Problem, salt: int) -> list[CallsJob]:
    read = [read_case(case, problem.entry_point).arguments for case in problem.golden_tests]
    calls = tuple(itertools.islice(itertools.cycle(arguments for arguments in read if arguments), CALLS))
    return [CallsJob(source, problem.entry_point, calls) for source in programs(problem, salt)]


def match_of(problem: Problem, salt: int) -> Match:
    tests = itertools.cycle(str(case) for case in problem.golden_tests)
    suites = tuple("\n".join(itertools.islice(tests, ASSERTS)) for _ in range(SUITES))
    return Match(problem, tuple(programs(problem, salt)), (suites,) * PROGRAMS)


def timed(action: Callable[[], object]) -> tuple[object, Cost]:
    cpu, wall = cpu_s(), time.monotonic()
    answer = action()
    return answer, Cost(time.monotonic() - wall, cpu_s() - cpu)


def one_round(
    arenas: dict[str, tuple[Arena, Sandbox]], problems: list[Problem], salt: int
) -> dict[tuple[str, str], Cost]:
    """{(work, side): cost}. Raises SystemExit where two sides disagree."""
    jobs = [job for problem in problems for job in jobs_of(problem, salt)]
    matches = [match_of(problem, salt) for problem in problems]
    names = list(arenas)
    turn = salt % len(names)
    costs: dict[tuple[str, str], Cost] = {}
    for work in ("jobs", "duels"):
        answers = []
        for name in [*names[turn:], *names[:turn]]:
            arena, sandbox = arenas[name]
            answer, costs[work, name] = timed(
                (lambda: sandbox.run(jobs)) if work == "jobs" else (lambda: arena.play(matches, update_book=False))  # noqa: B023
            )
            answers.append(answer)
        if any(answer != answers[0] for answer in answers):
            raise SystemExit(f"all sides must give the same answers, they do not ({work}, round {salt})")
    return costs


def main() -> None:
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sides", nargs="+", choices=[name for name in SIDES if name != BASE], default=["local-2"])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--problems", type=int, default=16)
    options = parser.parse_args()
    problems = list(bundled_problems()[: options.problems])
    with contextlib.ExitStack() as stack:
        arenas: dict[str, tuple[Arena, Sandbox]] = {}
        for name in [BASE, *options.sides]:
            backend, workers = SIDES[name]
            sandbox = open_sandbox(backend, workers)
            arenas[name] = stack.enter_context(Arena(sandbox)), sandbox
            _, start = timed(lambda: sandbox.run(jobs_of(problems[0], -1)))  # noqa: B023
            print(f"{name}: first jobs, with the start, {start.wall_s:.2f} s", flush=True)
        one_round(arenas, problems, 0)  # fills the cache of reference values, and starts every worker
        costs = [one_round(arenas, problems, salt) for salt in range(1, options.rounds + 1)]
    print(f"\n{options.rounds} rounds of {len(problems)} problems x {PROGRAMS} programs\n")
    print("| work | side | wall ms per program | wall / local | CPU ms per program | CPU / local |")
    print("|---|---|---|---|---|---|")
    for work, name in costs[0]:
        mine, base = ([each[work, side] for each in costs] for side in (name, BASE))
        cells = []
        for clock in ("wall_s", "cpu_s"):
            times = [getattr(cost, clock) for cost in mine]
            ratios = [t / getattr(other, clock) for t, other in zip(times, base, strict=True)]
            low, middle, high = statistics.quantiles(ratios, n=4)
            cells.append(f"{1000 * statistics.median(times) / (len(problems) * PROGRAMS):.2f}")
            cells.append(f"{middle:.3f} ({low:.3f} to {high:.3f})")
        print(f"| {work} | {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
