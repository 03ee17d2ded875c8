"""Best responses against all suites there are; equilibria of games with known solutions, and of the bundled ones."""

import itertools
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from codea1_env.discrete import bundled_pools
from codea1_env.discrete.best_responses import best_programs, best_suite
from codea1_env.discrete.pool import Pool
from codea1_env.discrete.solve import (
    exploitability,
    nash,
    payoffs,
    sequential_equilibrium,
    simultaneous_equilibrium,
)
from codea1_env.errors import ConfigurationError
from codea1_env.rewards.code_a1 import RewardConfig
from codea1_env.rewards.duel import Status

ONE = RewardConfig(alpha=0.0, suite_size=1)
# Two programs, each failing the one test that the other passes: matching pennies where one test is picked.
PENNIES = Pool(
    problem_id="pennies",
    question="",
    entry_point="f",
    programs=("def f(x): return 0", "def f(x): return 1"),
    tests=("assert f(0) == 0", "assert f(1) == 1"),
    statuses=(Status.KEPT, Status.KEPT),
    calls=(0, 1),
    executes=(True, True),
    fails=((False, True), (True, False)),
)


def cases(count: int) -> Any:
    """Random small pools, reward parameters and coders' mixes."""
    generator = np.random.default_rng(11)
    for _ in range(count):
        pool = bundled_pools()[generator.integers(64)]
        tests = generator.choice(len(pool.tests), int(generator.integers(1, 6)), replace=False).tolist()
        programs = generator.choice(len(pool.programs), int(generator.integers(1, 4)), replace=False).tolist()
        config = RewardConfig(
            float(generator.choice([0, 0.25, 0.5, 1])),
            int(generator.integers(1, 5)),
            correct_outputs=bool(tests[0] % 2),
        )
        yield pool.select(programs, tests), config, generator.dirichlet(np.ones(len(programs))).tolist()


class TestBestResponses:
    def test_no_suite_in_any_order_earns_the_tester_more_nor_as_much_and_costs_the_coder_more(self) -> None:
        for pool, config, mix in cases(60):
            sizes = range(min(config.suite_size, len(pool.tests)) + 1)
            suites = [suite for size in sizes for suite in itertools.permutations(range(len(pool.tests)), size)]
            table = payoffs(pool, suites, config)
            earned, cost = mix @ table.tester, mix @ table.coder
            reply = payoffs(pool, [best_suite(pool, mix, config)], config)
            assert (mix @ reply.tester)[0] == pytest.approx(earned.max())
            assert (mix @ reply.coder)[0] == pytest.approx(cost[earned > earned.max() - 1e-9].min())

    def test_the_best_programs_are_those_of_the_payoffs(self) -> None:
        for pool, config, _ in cases(20):
            suites = [(0,), tuple(range(len(pool.tests)))[: config.suite_size]]
            expected = payoffs(pool, suites, config).coder @ [0.5, 0.5]
            tester = dict.fromkeys(suites, 0.5) if suites[0] != suites[1] else {suites[0]: 1.0}
            assert best_programs(pool, tester, config) == tuple(np.flatnonzero(expected > expected.max() - 1e-9))

    @pytest.mark.parametrize("mix", [[1.0], [0.5, 0.6], [-1.0, 2.0], [float("nan"), 1.0], []])
    def test_what_is_no_distribution_is_refused(self, mix: list[float]) -> None:
        with pytest.raises(ConfigurationError, match="2 probabilities that sum to 1"):
            best_suite(PENNIES, mix, ONE)
        with pytest.raises(ConfigurationError, match="probabilities that sum to 1"):
            exploitability(PENNIES, [1.0, 0.0], {(0,): 0.5}, ONE)


class TestPayoffs:
    def test_they_are_the_rewards(self) -> None:
        table = payoffs(PENNIES, [(0,), (1,)], RewardConfig(suite_size=1))
        assert table.coder.tolist() == [[1, 0], [0, 1]]
        assert table.tester.tolist() == [[0.5, 1], [1, 0.5]]

    def test_suites_that_are_too_long_or_hold_no_index_are_refused(self) -> None:
        with pytest.raises(ConfigurationError, match="a suite must hold at most 1 tests, got 2"):
            payoffs(PENNIES, [(0, 1)], ONE)
        for suite in ((-1,), (2,)):
            with pytest.raises(ConfigurationError, match=r"a suite must hold indices in \[0, 1\]"):
                exploitability(PENNIES, [0.5, 0.5], {suite: 1.0}, ONE)


class TestSequentialGame:
    def test_the_coder_takes_the_program_that_its_best_attack_hurts_least(self) -> None:
        found = sequential_equilibrium(PENNIES, ONE)
        assert found.replies == ((1,), (0,))
        assert found.coder_rewards == (0, 0)
        assert found.tester_rewards == (1, 1)
        # at K = 2 and alpha 1/2 both tests are picked: R_C = 1/2, R_T = 1/2 + 1/2 (1/2)
        found = sequential_equilibrium(PENNIES, RewardConfig(suite_size=2))
        assert found.coder_rewards == (0.5, 0.5)
        assert found.tester_rewards == (0.75, 0.75)

    def test_nobody_gains_by_anything_else_in_any_bundled_question(self) -> None:
        config = RewardConfig()
        for pool in bundled_pools():
            found = sequential_equilibrium(pool, config)
            assert found.coder_rewards[found.program] == max(found.coder_rewards)
            coder = [float(program == found.program) for program in range(len(pool.programs))]
            assert exploitability(pool, coder, [{reply: 1.0} for reply in found.replies], config) <= 1e-9

    def test_what_can_be_gained_is_said(self) -> None:
        # The tester misses both programs' bugs (R_T = 0, could be 1); the coder has all there is already.
        assert exploitability(PENNIES, [0.5, 0.5], [{(0,): 1.0}, {(1,): 1.0}], ONE) == 1
        # Against a tester that misses the first program's bug only, the coder of the second loses 1.
        assert exploitability(PENNIES, [0.0, 1.0], [{(0,): 1.0}, {(0,): 1.0}], ONE) == 1
        with pytest.raises(ConfigurationError, match="2 mixes, one per program, got 1"):
            exploitability(PENNIES, [0.5, 0.5], [{(0,): 1.0}], ONE)


class TestSimultaneousGame:
    def test_what_can_be_gained_is_said(self) -> None:
        half = {(0,): 0.5, (1,): 0.5}
        assert exploitability(PENNIES, [0.5, 0.5], half, ONE) == pytest.approx(0)
        # A coder known to pick the first program: the tester gains 1/2 by the test it fails.
        assert exploitability(PENNIES, [1.0, 0.0], half, ONE) == pytest.approx(0.5)
        # A tester known to pick the first test: the coder gains 1/2 by the program that passes it.
        assert exploitability(PENNIES, [0.5, 0.5], {(0,): 1.0}, ONE) == pytest.approx(0.5)

    def test_the_pennies_are_mixed_evenly(self) -> None:
        pytest.importorskip("scipy")
        found = simultaneous_equilibrium(PENNIES, ONE)
        assert found.coder == pytest.approx((0.5, 0.5))
        assert found.tester == pytest.approx({(0,): 0.5, (1,): 0.5})
        assert (found.coder_reward, found.tester_reward) == pytest.approx((0.5, 0.5))

    def test_nobody_gains_by_any_program_or_suite_in_bundled_questions(self) -> None:
        pytest.importorskip("scipy")
        for number, pool in enumerate(bundled_pools()[::2]):
            config = RewardConfig(alpha=(0.0, 0.25, 0.5)[number % 3], suite_size=(1, 2, 8)[number // 3 % 3])
            wrong = [place for place, row in enumerate(pool.kills) if row.any()]
            for game in (pool, pool.select(wrong, range(len(pool.tests)))):
                found = simultaneous_equilibrium(game, config)
                assert exploitability(game, found.coder, found.tester, config) <= 2e-6
                earned = payoffs(game, list(found.tester), config).tester @ list(found.tester.values())
                assert np.dot(found.coder, earned) == pytest.approx(found.tester_reward)


class TestMatrixGames:
    @pytest.fixture(autouse=True)
    def _needs_scipy(self) -> None:
        pytest.importorskip("scipy")

    def test_known_games_have_their_known_solutions(self) -> None:
        prisoners = nash([[3, 0], [5, 1]], [[3, 5], [0, 1]])
        assert (prisoners.rows.tolist(), prisoners.columns.tolist()) == ([0, 1], [0, 1])
        assert (prisoners.row_value, prisoners.column_value) == (1, 1)
        # Inspection: rows cheat or not, columns inspect or not; mixed, by indifference: 1/3 and 1/5.
        mixed = nash([[-4, 1], [0, 0]], [[1, -1], [-1, 0]])
        assert mixed.rows == pytest.approx([1 / 3, 2 / 3])
        assert mixed.columns == pytest.approx([1 / 5, 4 / 5])

    def test_of_several_equilibria_one_with_the_largest_sum_is_taken(self) -> None:
        found = nash([[1, 0], [0, 2]], [[1, 0], [0, 2]])
        assert found.row_value + found.column_value == pytest.approx(4)
        # Here rows are indifferent: the columns' mix that pays them most is asked for.
        found = nash([[0, 7]], [[1, 1]])
        assert found.row_value == pytest.approx(7)

    def test_rock_paper_scissors_is_mixed_evenly(self) -> None:
        rows = np.array([[0.0, -1.0, 1.0], [1.0, 0.0, -1.0], [-1.0, 1.0, 0.0]])
        found = nash(rows, -rows)
        assert found.rows == pytest.approx([1 / 3] * 3)
        assert found.columns == pytest.approx([1 / 3] * 3)
        assert found.row_value == pytest.approx(0)

    def test_random_games_leave_nothing_to_gain_whatever_their_units(self) -> None:
        generator = np.random.default_rng(2)
        for number in range(40):
            shape = generator.integers(1, 6, 2)
            unit = 10.0 ** generator.integers(-4, 5)
            rows = generator.random(shape) if number % 2 else generator.integers(0, 3, shape) / 2
            columns = generator.integers(0, 3, shape) / 2 if number % 3 else 1 - rows
            found = nash(unit * rows, columns - unit)
            best = (rows @ found.columns).max() + (found.rows @ columns).max()
            assert best - found.rows @ (rows + columns) @ found.columns <= 1e-6

    @pytest.mark.parametrize("matrix", [[], [[]], [1.0], [[float("nan")]], [[float("inf"), 1]]])
    def test_what_is_no_matrix_is_refused(self, matrix: Any) -> None:
        with pytest.raises(ConfigurationError, match="a matrix must be of finite numbers"):
            nash(matrix, matrix)
        with pytest.raises(ConfigurationError, match="both matrices must have one shape"):
            nash([[1.0]], [[1.0, 2.0]])


def test_without_scipy_the_error_names_the_extra_and_the_rest_works() -> None:
    code = (
        "import sys; sys.modules['scipy'] = None\n"
        "from codea1_env.discrete import bundled_pools, solve\n"
        "from codea1_env.rewards.code_a1 import RewardConfig\n"
        "solve.sequential_equilibrium(bundled_pools()[0], RewardConfig())\n"
        "try: solve.nash([[0.0]], [[0.0]])\n"
        "except ImportError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert "pip install '.[solve]'" in done.stdout
