"""The matrix study's game is the library's: its tables pay what the library pays, its steps go up the gradient."""

import importlib
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from codea1_env import RewardConfig
from codea1_env.discrete import PoolScorer, bundled_pools

EXPERIMENTS = Path(__file__).parents[1] / "experiments"


@pytest.fixture(scope="module")
def parts() -> tuple:
    """The study's modules and a small source of questions, without a sandbox."""
    pools, learning = (importlib.import_module(f"matrix_{name}") for name in ("pools", "learning"))
    chosen = [pool for pool in bundled_pools() if pools.takes_part(pool)][:12]
    written = tuple(np.zeros((len(pool.programs), len(pool.tests)), bool) for pool in chosen)
    counted = pools.source_of(chosen, lambda kept: written)
    return pools, learning, pools.questions_of(counted, seed=3)


def test_a_suite_is_paid_what_the_discrete_game_pays(parts: tuple) -> None:
    _, learning, questions = parts
    generator = np.random.default_rng(0)
    chosen = np.arange(len(questions.ids))
    policies = learning.Policies.untrained(questions)
    programs = learning.program_draws(policies.program_logits(questions, chosen), generator)
    suites = learning.suite_draws(policies.test_logits(questions, chosen, programs), learning.M, generator)
    none = [[] for _ in chosen]
    paid = learning.pay(questions, learning.Arm("any", alpha=0.25), chosen, programs, suites, none)
    compared = 0
    for row, pool in enumerate(questions.pools):
        scorer = PoolScorer(pool, RewardConfig(alpha=0.25, suite_size=learning.K))
        for place, program in enumerate(programs[row].tolist()):
            for number, suite in enumerate(suites[row, place].tolist()):
                score = scorer.score(program, suite)
                assert paid.tester[row, place, number] == score.tester
                assert paid.shares[row, place, number] == score.coder
                compared += 1
    assert compared == 12 * learning.N * learning.M


def test_no_test_of_a_hidden_call_can_be_picked(parts: tuple) -> None:
    pools, _, questions = parts
    for name, pool, hidden in zip(questions.ids, questions.pools, questions.hidden_calls, strict=True):
        (whole,) = [each for each in bundled_pools() if each.problem_id == name]
        run = {call for call, is_run in zip(whole.calls, whole.is_run, strict=True) if is_run}
        played = {call for call, is_run in zip(pool.calls, pool.is_run, strict=True) if is_run}
        assert played < run
        assert hidden.sum() == len(run - played) == len(run) // 2
    assert questions.golden.sum(1).tolist() == [pools.GOLDEN] * len(questions.ids)


def test_suites_hold_different_tests_and_follow_the_policy(parts: tuple) -> None:
    _, learning, _ = parts
    logits = np.log(np.array([0.5, 0.3, 0.2, 1e-300]))
    drawn = learning.draws(np.repeat(logits[None], 20_000, axis=0), 3, np.random.default_rng(0))
    assert {len(set(row)) for row in drawn.tolist()} == {3}
    first, second = (np.mean(drawn[:, turn] == 0) for turn in (0, 1))
    assert first == pytest.approx(0.5, abs=0.02)
    # 0 comes second: 0.3 * 0.5 / 0.7 + 0.2 * 0.5 / 0.8
    assert second == pytest.approx(0.3393, abs=0.02)


def test_a_step_of_either_seat_goes_along_the_gradient_of_what_it_has_drawn(parts: tuple) -> None:
    """By finite differences of sum(advantage * log probability) / rows."""
    _, learning, questions = parts
    generator = np.random.default_rng(1)
    arm, chosen = learning.Arm("any", book=False), np.arange(3)
    policies = learning.Policies.untrained(questions)
    for array in (policies.coder, policies.tester, policies.attack):
        array += 0.3 * generator.normal(size=array.shape)
    game = learning.Game(questions, arm, chosen, 0, policies)
    logits = policies.program_logits(questions, chosen)
    programs = learning.program_draws(logits, generator)
    rewards = generator.random(programs.shape)
    advantages = game._advantages("coder", rewards, chosen)
    before = policies.coder.copy()

    def coder_value(theta: np.ndarray) -> float:
        policies.coder = theta
        shares = learning.softmax(policies.program_logits(questions, chosen))
        return float((advantages * np.log(np.take_along_axis(shares, programs, 1))).sum() / advantages.size)

    expected = numerical(coder_value, before)
    policies.coder = before.copy()
    game._teach_coder(chosen, programs, rewards, learning.softmax(logits))
    assert (policies.coder - before) / learning.CODER_RATE == pytest.approx(expected, abs=1e-6)

    test_logits = policies.test_logits(questions, chosen, programs)
    suites = learning.suite_draws(test_logits, learning.M, generator)
    earned = generator.random(suites.shape[:3])
    attacked = earned.std(2).argmax(1)
    advantages = game._advantages("tester", earned[np.arange(3), attacked], chosen)
    old = policies.attack.copy()

    def tester_value(attack: np.ndarray) -> float:
        policies.attack = attack
        rows = policies.test_logits(questions, chosen, programs)
        return sum(
            advantages[q, m] * log_probability(rows[q, attacked[q]], suites[q, attacked[q], m])
            for q in range(3)
            for m in range(learning.M)
        ) / (3 * learning.M)

    some = [(0, 0), (1, 5), (5, 2)]
    expected = [numerical_at(tester_value, old, place) for place in some]
    policies.attack = old.copy()
    game._teach_tester(chosen, programs, suites, earned, None, test_logits)
    step = (policies.attack - old) / learning.TESTER_RATE
    assert [step[place] for place in some] == pytest.approx(expected, abs=1e-6)


def log_probability(logits: np.ndarray, picks: np.ndarray) -> float:
    """Of picking these places in this order without replacement."""
    left, total = logits.copy(), 0.0
    for place in picks:
        total += left[place] - np.log(np.exp(left).sum())
        left[place] = -np.inf
    return total


def numerical_at(value, point: np.ndarray, place: tuple[int, ...]) -> float:
    step = np.zeros(point.shape)
    step[place] = 1e-5
    return (value(point + step) - value(point - step)) / 2e-5


def numerical(value, point: np.ndarray) -> list[float]:
    return [numerical_at(value, point, (place,)) for place in range(len(point))]


@pytest.mark.slow
def test_the_study_runs_on_the_bundled_pools_and_repeats_itself(tmp_path: Path) -> None:
    found = []
    for workers in ("1", "2"):
        output = tmp_path / workers
        options = ["--seeds", "2", "--rounds", "40", "--workers", workers, "--output", str(output)]
        command = [sys.executable, str(EXPERIMENTS / "matrix_study.py"), *options]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert "bundled" in done.stderr
        assert "| co-trained |" in (output / "table.md").read_text()
        assert [file.name for file in output.glob("*.png")] == ["matrix-ordering.png"]
        found.append(json.loads((output / "results.json").read_text())["seeds"])
    assert found[0] == found[1]
