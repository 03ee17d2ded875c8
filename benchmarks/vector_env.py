"""How many duels a CPU-second buys in `vector_env(n)`, beside n environments that step one after the other.

    python benchmarks/vector_env.py [--envs 64] [--rounds 9]

All sides play the same responses of scripted players, in turns, round by round, and every reward is compared. CPU
seconds are those of this process and everything below it. The n environments have a sandbox each, as they have unless
told otherwise, or share one. Sandboxes start before the first round, which is not counted. No program is met twice.

Two ways to choose questions: every episode draws its own of the bundled ones; or groups of 8 episodes have one
question, as in GRPO. A process for each program is left in any batch, so the table says, too, how many processes a duel
has, what one of them takes at least (a program of one line with one call), and the gain beside these.
"""

import argparse
import itertools
import random
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial

from codea1_env import LocalSandbox, Problem, bundled_problems, parallel_env, vector_env
from codea1_env.extras import for_script
from codea1_env.players import CoderRequest, GoldenTester, MutantCoder, RandomTester, TesterRequest
from codea1_env.sandbox import CallsJob, Job, JobResult
from codea1_env.terminal import Parser

with for_script("dev"):
    from clocks import below_s

GROUPS = {"drawn for each episode": 1, "drawn for 8 episodes": 8}
Episode = tuple[str, str, str]
"""A question's id, a program and a suite."""


class Counted:
    """A sandbox that counts jobs: as long as none hangs, a job is a process."""

    def __init__(self, sandbox: LocalSandbox) -> None:
        self._sandbox = sandbox
        self.version = sandbox.version
        self.jobs = 0

    def run(self, jobs: Sequence[Job]) -> list[JobResult]:
        self.jobs += len(jobs)
        return self._sandbox.run(jobs)

    def close(self) -> None:
        self._sandbox.close()


def timed(action: Callable[[], list[float]]) -> tuple[list[float], float]:
    """What the action gives, and its CPU seconds, without those of looking at clocks."""
    below, own = below_s(), time.process_time()
    rewards = action()
    own = time.process_time() - own
    return rewards, own + below_s() - below


def episodes(problems: Sequence[Problem], count: int, group: int, salt: int) -> list[Episode]:
    """Programs that are mostly wrong, with a comment of their own, and about 12 tests for each."""
    draws = random.Random(salt)
    chosen = itertools.chain.from_iterable([draws.choice(problems)] * group for _ in range(-(-count // group)))
    played = []
    for place, problem in zip(range(count), chosen, strict=False):
        seed = salt * count + place
        code = f"{MutantCoder().respond([CoderRequest(problem)], seed=seed)[0][0].text}\n# {seed}"
        asked = [TesterRequest(problem, code)]
        suites = [player.respond(asked, seed=seed)[0][0].text for player in (GoldenTester(), RandomTester(tests=4))]
        played.append((problem.problem_id, code, "\n".join(suites)))
    return played


def one_by_one(games: Sequence[parallel_env], played: Sequence[Episode]) -> list[float]:
    rewards = []
    for game, (problem_id, code, suite) in zip(games, played, strict=True):
        game.reset(options={"problem_id": problem_id})
        game.step({"coder_0": code})
        rewards += game.step({"tester_0": suite})[1].values()
    return rewards


def together(games: vector_env, played: Sequence[Episode]) -> list[float]:
    ids, codes, suites = map(list, zip(*played, strict=True))
    games.reset(options={"problem_id": ids})
    games.step({"coder_0": codes})
    paid = games.step({"tester_0": suites})[1]
    return [float(reward) for pair in zip(*paid.values(), strict=True) for reward in pair]


def process_ms(sandbox: LocalSandbox) -> float:
    jobs = [CallsJob(f"def f(): return {number}", "f", (b"[[],[]]",)) for number in range(200)]
    sandbox.run(jobs[:1])
    _, spent = timed(lambda: [float(result.loaded) for result in sandbox.run(jobs)])
    return 1e3 * spent / len(jobs)


def compared(name: str, group: int, process: float, options: argparse.Namespace) -> None:
    """`process`: CPU seconds that one takes at least."""
    problems = bundled_problems()
    own, shared, batch = "a sandbox each", "one sandbox", f"vector_env({options.envs})"
    with ExitStack() as stack:
        sandboxes = [stack.enter_context(LocalSandbox()) for _ in range(options.envs + 2)]
        counted = {own: [Counted(each) for each in sandboxes[2:]], shared: [Counted(sandboxes[0])]}
        counted[batch] = [Counted(sandboxes[1])]
        singly = {
            own: [parallel_env(sandbox=sandbox) for sandbox in counted[own]],
            shared: [parallel_env(sandbox=counted[shared][0]) for _ in range(options.envs)],
        }
        many = vector_env(options.envs, sandbox=counted[batch][0])
        spent: dict[str, list[float]] = {own: [], shared: [], batch: []}
        for number in range(-1, options.rounds):  # the first starts what the others use
            played = episodes(problems, options.envs, group, number + 1)
            if number == 0:
                for sandbox in itertools.chain.from_iterable(counted.values()):
                    sandbox.jobs = 0
            paid = {}
            for side in spent:
                games = singly.get(side)
                action = partial(together, many, played) if games is None else partial(one_by_one, games, played)
                paid[side], seconds = timed(action)
                if number >= 0:
                    spent[side].append(seconds)
            if not paid[own] == paid[shared] == paid[batch]:
                raise SystemExit("the vector must pay what the environments pay, got other rewards")
        jobs = {side: sum(each.jobs for each in counted[side]) / options.rounds for side in spent}
        beside = {side: [seconds - jobs[side] * process for seconds in spent[side]] for side in spent}
        for side in spent:
            cost = statistics.median(spent[side]) / options.envs
            row = f"{1 / cost:.0f} | {1e3 * cost:.2f} | {jobs[side] / options.envs:.2f}"
            print(f"| {name} | {side} | {row} | {gain(spent, side, batch)} | {gain(beside, side, batch)} |", flush=True)


def gain(spent: Mapping[str, Sequence[float]], side: str, batch: str) -> str:
    """The median of how often the batch's seconds go into those of the side, with quartiles."""
    ratios = [alone / together for alone, together in zip(spent[side], spent[batch], strict=True)]
    low, middle, high = statistics.quantiles(ratios, n=4)
    return f"{middle:.2f} ({low:.2f} to {high:.2f})"


def main() -> None:
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--envs", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=9, help="at least 2, for quartiles (default: 9)")
    options = parser.parse_args()
    with LocalSandbox() as sandbox:
        process = process_ms(sandbox)
    print(f"a process takes at least {process:.2f} ms of CPU\n")
    print("| questions | side | duels per CPU-second | ms a duel | processes | gain | beside them (goal 1.8) |")
    print("|---|---|---|---|---|---|---|")
    for name, group in GROUPS.items():
        compared(name, group, process / 1e3, options)


if __name__ == "__main__":
    main()
