"""Best responses against all suites there are; equilibria of a game with a known solution, and of the bundled ones."""

import itertools
from typing import Any

import numpy as np
import pytest

from codea1_env.discrete import bundled_pools
from codea1_env.discrete.best_responses import best_programs, best_suite
from codea1_env.discrete.pool import Pool
from codea1_env.discrete.solve import (
    all_suites,
    exploitability,
    payoffs,
    sequential_equilibrium,
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
        table = payoffs(PENNIES, all_suites(PENNIES, 1), RewardConfig(suite_size=1))
        assert table.coder.tolist() == [[1, 0], [0, 1]]
        assert table.tester.tolist() == [[0.5, 1], [1, 0.5]]
        assert table.suites == ((0,), (1,))

    def test_suites_that_are_too_many_or_too_long_are_refused(self) -> None:
        with pytest.raises(ConfigurationError, match="a suite must hold at most 1 tests, got 2"):
            payoffs(PENNIES, [(0, 1)], ONE)
        for suite in ((-1,), (2,)):
            with pytest.raises(ConfigurationError, match=r"a suite must hold indices in \[0, 1\]"):
                exploitability(PENNIES, [0.5, 0.5], {suite: 1.0}, ONE)
        many = PENNIES.select([0], [0])
        long = Pool(
            **{name: getattr(many, name) for name in ("problem_id", "question", "entry_point", "programs", "executes")},
            tests=tuple(f"assert f({i}) == 0" for i in range(40)),
            statuses=(Status.KEPT,) * 40,
            calls=tuple(range(40)),
            fails=((False,) * 40,),
        )
        with pytest.raises(ConfigurationError, match="at most 100000 suites"):
            all_suites(long, 8)


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
