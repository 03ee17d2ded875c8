"""Conformance checks for anyone who wraps or subclasses the environments: plain functions, no test framework needed.

Each function takes functions that make fresh environments. If a check fails, it raises AssertionError, or whatever the
environment raised. The functions run PettingZoo's and Gymnasium's own tests and add what those leave out: whole
trajectories, rounds, conversions. They play real games in the sandbox that the environments are given.

Does not judge whether rewards are right: scoring is the arena's and has tests of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from pettingzoo.test import api_test, max_cycles_test, parallel_api_test, seed_test, state_test
from pettingzoo.test.render_test import render_test
from pettingzoo.utils import aec_to_parallel, parallel_to_aec, turn_based_aec_to_parallel

from codea1_env.envs.episode import CODER, TESTER
from codea1_env.players import CoderRequest, GoldenTester, MutantCoder, OracleCoder, RandomTester, TesterRequest
from codea1_env.problems import Problem, bundled_problems

Make = Callable[..., Any]
"""Makes a fresh environment from the keyword arguments that a check names; without any, with the defaults."""


def check_turns(make: Make, cycles: int = 20) -> None:
    """Run PettingZoo's `api_test` and `seed_test` on an AEC environment."""
    with _about_texts():
        api_test(make(), num_cycles=cycles)
    seed_test(make, num_cycles=5)


def check_parallel(make: Make, cycles: int = 20) -> None:
    """Run PettingZoo's `parallel_api_test` on a parallel environment, and check that equal seeds give equal
    trajectories."""
    with _about_texts():
        parallel_api_test(make(), num_cycles=cycles)
    one, other = trajectory(make()), trajectory(make())
    assert one == other, f"equal seeds must give equal trajectories, got {_difference(one, other)}"


def check_state(make_turns: Make, make_parallel: Make) -> None:
    """Run PettingZoo's `state_test` on `state` and `state_space` of both forms."""
    with _about_texts():
        state_test(make_turns(), make_parallel())


def check_renders(make: Make) -> None:
    """Check that every declared mode renders what PettingZoo's `render_test` asks. `make` gets `render_mode`."""
    render_test(make, {"html": lambda page: page.startswith("<!doctype html>")})


def check_rounds(make_turns: Make, make_parallel: Make) -> None:
    """Check with PettingZoo's `max_cycles_test` that `rounds` bounds the episode. Both makers get `rounds`.

    In turns a cycle is a round; in parallel it is a step, of which a round has two.
    """
    makers = {
        "env": lambda max_cycles: make_turns(rounds=max_cycles),
        "parallel_env": lambda max_cycles: make_parallel(rounds=max_cycles // 2),
    }
    max_cycles_test(SimpleNamespace(**makers))


def check_conversion(make_turns: Make, make_parallel: Make, problems: Sequence[Problem] | None = None) -> None:
    """Check that PettingZoo's conversions show what the native environments show.

    The AEC environment converted to parallel is compared step by step. The parallel environment converted to AEC and
    back is compared by whole trajectories. The parallel environment converted to AEC must pass `api_test`.
    """
    with _about_texts():
        api_test(parallel_to_aec(make_parallel()), num_cycles=10)
    there_and_back = trajectory(aec_to_parallel(parallel_to_aec(make_parallel())), 3, problems)
    unconverted = trajectory(make_parallel(), 3, problems)
    difference = _difference(there_and_back, unconverted)
    assert there_and_back == unconverted, f"conversions must change nothing, got {difference}"
    converted, native = turn_based_aec_to_parallel(make_turns()), make_parallel()
    answers = Answers(problems)
    for episode in range(5):
        seed = 15 if episode == 0 else None
        observations, infos = native.reset(seed=seed)
        assert converted.reset(seed=seed) == (observations, infos)
        over = False
        while not over:
            actions = answers.to(observations, infos, episode)
            theirs, ours = converted.step(actions), native.step(actions)
            # The conversion speaks only of the agent whose turn it is, until the end.
            for their, our in zip(theirs[:4], ours[:4], strict=True):
                assert their
                assert their == {agent: our[agent] for agent in their}, f"{their} must agree with {our}"
            for agent, info in theirs[4].items():  # to which the conversion adds a key of its own
                assert {**info, "active_agent": 0} == {**ours[4][agent], "active_agent": 0}
            observations, infos, over = ours[0], ours[4], ours[2][CODER]
    converted.close()
    native.close()


def check_view(make: Make) -> None:
    """Run Gymnasium's `check_env` on a single-seat view, and play vectors of it in this process and in others."""
    view = make()
    check_env(view.unwrapped)
    view.close()
    mode = AutoresetMode.SAME_STEP  # the default would ignore every second action of one-step episodes
    for vector in (
        SyncVectorEnv([make] * 2, autoreset_mode=mode),
        AsyncVectorEnv([make] * 2, shared_memory=False, autoreset_mode=mode),
    ):
        vector.reset(seed=0)
        _, rewards, terminated, truncated, _ = vector.step(("", "assert True"))
        assert rewards.shape == (2,)
        assert terminated.all()
        assert not truncated.any()
        vector.close()


def check_hash_seeds(source: str, seeds: Sequence[str] = ("0", "1", "12345")) -> None:
    """Check that a trajectory is the same in other processes under other hash seeds.

    `source` is an expression that makes a parallel environment, with its imports before it, as for `python -c`:
    `"from codea1_env import parallel_env; made = parallel_env()"`; the environment's name must be `made`.
    """
    program = f"{source}\nfrom codea1_env.envs.testing import trajectory\nprint(trajectory(made))"
    shown = {
        seed: subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in seeds
    }
    first = shown[seeds[0]]
    for seed, other in shown.items():
        assert other == first, f"PYTHONHASHSEED {seed} must change nothing, got {_difference(first, other)}"


def trajectory(game: Any, episodes: int = 6, problems: Sequence[Problem] | None = None) -> str:
    """Everything that a seeded run of several episodes shows, as JSON. Later resets are unseeded. The environment is
    closed."""
    answers, shown = Answers(problems), []
    for episode in range(episodes):
        observations, infos = game.reset(seed=15 if episode == 0 else None)
        shown.append([observations, infos])
        over = False
        while not over:
            step = game.step(answers.to(observations, infos, episode))
            shown.append(list(step))
            observations, infos, over = step[0], step[4], step[2][CODER]
    book = game.unwrapped.book if hasattr(game, "unwrapped") else game.book
    shown.append([[q, [[str(case), n] for case, n in book.frequencies(q).items()]] for q in book.questions()])
    game.close()
    return json.dumps(shown, allow_nan=False)


class Answers:
    """Scripted responses that give right and wrong programs, and kept, corrected and duplicate tests."""

    def __init__(self, problems: Sequence[Problem] | None = None) -> None:
        """`problems`: those of the environment; None: the bundled ones."""
        self._problems = {problem.problem_id: problem for problem in problems or bundled_problems()}

    def to(
        self, observations: Mapping[str, Mapping[str, Any]], infos: Mapping[str, Mapping[str, Any]], episode: int
    ) -> dict[str, str]:
        """An action for each agent. The environment ignores that of the agent whose turn it is not."""
        problem = self._problems[infos[CODER]["problem_id"]]
        program = observations[TESTER]["code"]
        coder = OracleCoder() if episode % 3 == 2 else MutantCoder()
        code = coder.respond([CoderRequest(problem, program)], seed=episode)[0][0].text
        request = [TesterRequest(problem, program)]
        golden = GoldenTester().respond(request)[0][0].text
        suite = f"{golden}\n{golden}\n{RandomTester(tests=4).respond(request, seed=episode)[0][0].text}"
        return {CODER: code, TESTER: suite}


@contextmanager
def _about_texts() -> Iterator[None]:
    """PettingZoo warns of spaces that are no arrays; these are texts on purpose."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield


def _difference(one: str, other: str) -> str:
    place = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return f"{one[max(place - 60, 0) : place + 60]!r} and {other[max(place - 60, 0) : place + 60]!r}"
