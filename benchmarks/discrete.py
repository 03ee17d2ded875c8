"""Steps per second of the discrete game on one core, by every face of it.

    python benchmarks/discrete.py [--steps 100000] [--rounds 5]

Actions are drawn beforehand; resets count as time, not as steps. A parallel step, a turn (AEC) and a step of a
single-seat view count as one each; a step of `DiscreteCoder-v0` is a whole episode, the opponent's K picks included.
The median over the rounds, with the least and the most.
"""

import argparse
import os
import statistics
import time
from collections.abc import Callable

import gymnasium
import numpy as np

from codea1_env import discrete
from codea1_env.terminal import Parser


def parallel(actions: list[int]) -> int:
    game = discrete.parallel_env()
    game.reset(seed=0)
    for action in actions:
        if game.step({"coder_0": action, "tester_0": action})[2]["coder_0"]:
            game.reset()
    return len(actions)


def turns(make: Callable[[], object], actions: list[int]) -> int:
    game = make()
    game.reset(seed=0)
    for action in actions:
        game.last()
        game.step(action)
        if game.terminations["coder_0"]:
            game.reset()
    return len(actions)


def view(env_id: str, actions: list[int], wrapped: bool) -> int:
    made = gymnasium.make(env_id)
    game = made if wrapped else made.unwrapped
    game.reset(seed=0)
    for action in actions:
        if game.step(action)[2]:
            game.reset()
    return len(actions)


def main() -> None:
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
    count = discrete.parallel_env().action_space("coder_0").n
    actions = np.random.default_rng(0).integers(count - 1, size=options.steps).tolist()
    faces = {
        "parallel_env": lambda: parallel(actions),
        "raw_env, last() and step()": lambda: turns(discrete.raw_env, actions),
        "env, last() and step()": lambda: turns(discrete.env, actions),
        "DiscreteTester-v0, unwrapped": lambda: view("codea1_env/DiscreteTester-v0", actions, wrapped=False),
        "DiscreteTester-v0, as made": lambda: view("codea1_env/DiscreteTester-v0", actions, wrapped=True),
        "DiscreteCoder-v0, unwrapped": lambda: view("codea1_env/DiscreteCoder-v0", actions[: len(actions) // 8], False),
    }
    rates: dict[str, list[float]] = {name: [] for name in faces}
    for _ in range(options.rounds):
        for name, play in faces.items():
            began = time.process_time()
            steps = play()
            rates[name].append(steps / (time.process_time() - began))
    print("| face | steps per CPU-second | least | most |\n|---|---|---|---|")
    for name, found in rates.items():
        print(f"| {name} | {statistics.median(found):,.0f} | {min(found):,.0f} | {max(found):,.0f} |")


if __name__ == "__main__":
    main()
