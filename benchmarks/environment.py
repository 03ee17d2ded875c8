"""What the environment costs beside the programs that it runs: a step's overhead, and the import.

    python benchmarks/environment.py [step] [import] [--episodes 200] [--rounds 5]

step: a clock around every step, one around the arena in it and one around the sandbox in that; a step's overhead is
what is left without the sandbox, in CPU time of this thread, which other work on the machine does not stretch. The
parts are measured in the same steps, so none is a difference between runs.

import: a new interpreter that imports the package and makes an environment, beside one that imports PettingZoo and
Gymnasium only, in turns.
"""

import argparse
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence

import codea1_env.envs.episode
from codea1_env import Arena, LocalSandbox, bundled_problems, parallel_env
from codea1_env.players import CoderRequest, GoldenTester, MutantCoder, RandomTester, TesterRequest
from codea1_env.sandbox import Job, JobResult
from codea1_env.terminal import Parser

IMPORTS = {
    "python -c pass": "pass",
    "import gymnasium, pettingzoo": "import gymnasium, pettingzoo",
    "import codea1_env": "import codea1_env",
    "import, codea1_env.parallel_env()": "import codea1_env; codea1_env.parallel_env()",
    "import, gymnasium.make('codea1_env/Coder-v0')": "import codea1_env, gymnasium as g; g.make('codea1_env/Coder-v0')",
    "import, discrete.parallel_env()": "from codea1_env import discrete; discrete.parallel_env()",
}


class Stopwatch:
    """CPU and wall milliseconds spent in a function."""

    def __init__(self) -> None:
        self.cpu_ms = self.wall_ms = 0.0

    def around(self, function: Callable[..., object]) -> Callable[..., object]:
        def timed(*arguments: object, **options: object) -> object:
            began, began_cpu = time.perf_counter(), time.thread_time()
            try:
                return function(*arguments, **options)
            finally:
                self.cpu_ms += 1e3 * (time.thread_time() - began_cpu)
                self.wall_ms += 1e3 * (time.perf_counter() - began)

        return timed

    def reset(self) -> None:
        self.cpu_ms = self.wall_ms = 0.0


class TimedSandbox:
    """A sandbox with a stopwatch around `run`."""

    def __init__(self, sandbox: LocalSandbox, watch: Stopwatch) -> None:
        self._sandbox = sandbox
        self.version = sandbox.version
        self._run = watch.around(sandbox.run)

    def run(self, jobs: Sequence[Job]) -> list[JobResult]:
        return self._run(jobs)

    def close(self) -> None:
        self._sandbox.close()


def show(rows: Sequence[tuple[str, Sequence[float], str]], columns: str) -> None:
    """A table of medians, quartiles and a remark."""
    print(f"| {columns} |\n|---|---|---|---|")
    for name, values, remark in rows:
        low, _, high = statistics.quantiles(values, n=4)
        print(f"| {name} | {statistics.median(values):.3f} | {low:.3f} to {high:.3f} | {remark} |")
    print(flush=True)


def step(options: argparse.Namespace) -> None:
    first, second, in_arena, in_sandbox = (Stopwatch() for _ in range(4))

    class TimedArena(Arena):
        play = in_arena.around(Arena.play)

    codea1_env.envs.episode.Arena = TimedArena
    problems = bundled_problems()
    coder, tester, fuzz = MutantCoder(), GoldenTester(), RandomTester(tests=4)
    parts: dict[str, list[float]] = {name: [] for name in ("sandbox", "coder", "arena", "face", "own", "beyond")}
    with LocalSandbox() as sandbox:
        game = parallel_env(problems, sandbox=TimedSandbox(sandbox, in_sandbox))
        for episode in range(-len(problems), options.episodes):  # once around first: references are remembered
            problem = problems[episode % len(problems)]
            request = CoderRequest(problem, "")
            # A comment of its own, so that no run is remembered from another episode.
            code = f"{coder.respond([request], seed=episode)[0][0].text}\n# {episode}"
            asked = [TesterRequest(problem, code)]
            suite = "\n".join(player.respond(asked, seed=episode)[0][0].text for player in (tester, fuzz))
            game.reset(options={"problem_id": problem.problem_id})
            watches = first, second, in_arena, in_sandbox
            for watch in watches:
                watch.reset()
            first.around(game.step)({"coder_0": code, "tester_0": ""})
            second.around(game.step)({"coder_0": "", "tester_0": suite})
            if episode >= 0:
                parts["sandbox"].append(in_sandbox.wall_ms)
                parts["coder"].append(first.cpu_ms)
                parts["arena"].append(in_arena.cpu_ms - in_sandbox.cpu_ms)
                parts["face"].append(second.cpu_ms - in_arena.cpu_ms)
                parts["own"].append((first.cpu_ms + second.cpu_ms - in_arena.cpu_ms) / 2)
                parts["beyond"].append((first.cpu_ms + second.cpu_ms - in_sandbox.cpu_ms) / 2)
    codea1_env.envs.episode.Arena = Arena
    show(
        [
            ("the sandbox, in the tester's step (wall)", parts["sandbox"], "the tests' values, the program on them"),
            ("the coder's step", parts["coder"], "reads the response"),
            ("the tester's step: scoring", parts["arena"], "parsing, judging, rewards, book"),
            ("the tester's step: the environment", parts["face"], "observations, infos"),
            ("a step beyond sandbox and judge", parts["own"], "mean of both steps; goal 0.3"),
            ("a step beyond the sandbox", parts["beyond"], "mean of both steps, scoring in it"),
        ],
        f"ms, {options.episodes} episodes | median | quartiles | what",
    )


def imports(options: argparse.Namespace) -> None:
    cpu: dict[str, list[float]] = {name: [] for name in IMPORTS}
    wall: dict[str, list[float]] = {name: [] for name in IMPORTS}
    for number in range(-1, options.rounds):  # the first reads the files from the disk
        for name, program in IMPORTS.items():
            began, began_cpu = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run([sys.executable, "-c", program], check=True)
            ended_cpu = resource.getrusage(resource.RUSAGE_CHILDREN)
            if number >= 0:
                wall[name].append(time.perf_counter() - began)
                cpu[name].append(ended_cpu.ru_utime + ended_cpu.ru_stime - began_cpu.ru_utime - began_cpu.ru_stime)
    show(
        [(name, found, f"{statistics.median(wall[name]):.3f}") for name, found in cpu.items()],
        "CPU seconds | median | quartiles | wall",
    )


PARTS = {"step": step, "import": imports}


def main() -> None:
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    # A list as `choices` would be held against the empty default as well, before Python 3.12.
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)} (default: all)")
    parser.add_argument("--episodes", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5, help="at least 2, for quartiles (default: 5)")
    options = parser.parse_args()
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"PART must be among {', '.join(PARTS)}, got {', '.join(sorted(unknown))}")
    for part in options.parts or PARTS:
        PARTS[part](options)


if __name__ == "__main__":
    main()
