"""The discrete game: it pays what the text game pays for the same texts, and is what every library takes it for."""

import dataclasses
import hashlib
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pettingzoo
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from pettingzoo.test import api_test, parallel_api_test, parallel_seed_test, seed_test, state_test
from pettingzoo.test.render_test import render_test
from pettingzoo.utils import aec_to_parallel, turn_based_aec_to_parallel

from codea1_env import discrete
from codea1_env.arena.arena import Arena
from codea1_env.arena.match import Match
from codea1_env.discrete import PoolScorer, bundled_pools
from codea1_env.discrete.pool import Pool
from codea1_env.discrete.single_seat import DiscreteCoderEnv, DiscreteTesterEnv
from codea1_env.envs.episode import CODER, TESTER
from codea1_env.errors import ConfigurationError, FormatError
from codea1_env.problems import bundled_problems
from codea1_env.registration import DISCRETE_CODER_ID, DISCRETE_ID, DISCRETE_TESTER_ID
from codea1_env.rewards.code_a1 import RewardConfig
from codea1_env.rewards.duel import Status, Verdict
from codea1_env.sandbox import LocalSandbox

KEPT, WRONG, RAISES = Status.KEPT, Status.WRONG_EXPECTED, Status.RAISES
DOUBLE = Pool(
    problem_id="double",
    question="Write `double(x)`, which returns twice the integer x.",
    entry_point="double",
    programs=("def double(x):\n    return x + x\n", "def double(x):\n    return x * x\n", "def dou"),
    tests=("assert double(2) == 4", "assert double(3) == 6", "assert double(3) == 7", "assert double(None) == 0"),
    statuses=(KEPT, KEPT, WRONG, RAISES),
    calls=(0, 1, 1, 3),
    executes=(True, True, False),
    fails=((False,) * 4, (False, True, True, False), (True, True, True, False)),
)
TWO = RewardConfig(suite_size=2)
NOTHING = 4
BOTH_MASKS = pytest.mark.parametrize("masks", ["infos", "observations"])
# What PettingZoo says about any environment whose observations are dictionaries, as its own board games' are.
not_plain = pytest.mark.filterwarnings(
    "ignore:Observation is not a NumPy array:UserWarning",
    "ignore:Observation space for each agent probably should be:UserWarning",
)


def play(game: discrete.parallel_env, program: int, *tests: int, **reset: Any) -> tuple[Any, ...]:
    """A whole episode; what its last step gave."""
    game.reset(**reset)
    game.step({CODER: program})
    for test in tests:
        last = game.step({TESTER: test})
    return last


def trajectory(episodes: int = 30) -> str:
    """A digest of everything that a seeded run of all faces shows; the later resets are unseeded."""
    shown: list[Any] = []
    game, view = discrete.parallel_env(), DiscreteTesterEnv()
    generator = np.random.default_rng(3)
    for episode in range(episodes):
        seed = 15 if episode == 0 else None
        shown += [game.reset(seed=seed), view.reset(seed=seed)]
        while game.agents:
            action = int(generator.integers(game.action_space(CODER).n))
            shown += [game.step(dict.fromkeys(game.agents, action)), game.state()]
            if len(shown) % 3 == 0 and view._episode.turn is not None:
                shown.append(view.step(action))
    return hashlib.sha256(json.dumps(shown, default=lambda array: array.tolist()).encode()).hexdigest()


class TestRewardsAreTheTextGames:
    @pytest.mark.parametrize("config", [RewardConfig(), RewardConfig(0.25, 3, correct_outputs=False)])
    def test_any_choice_is_paid_as_its_texts_are_in_the_arena(
        self, config: RewardConfig, sandbox: LocalSandbox
    ) -> None:
        generator = np.random.default_rng(7)
        problems = {problem.problem_id: problem for problem in bundled_problems()}
        matches, expected = [], []
        for pool in bundled_pools():
            program = int(generator.integers(len(pool.programs) + 1))
            size = int(generator.integers(config.suite_size + 1))
            suite = generator.integers(len(pool.tests), size=size).tolist()  # with repeats
            picked = program if program < len(pool.programs) else None
            text = pool.programs[program] if picked is not None else ""
            response = "\n".join(pool.tests[place] for place in suite)
            matches.append(Match(problems[pool.problem_id], (text,), ((response,),)))
            expected.append(PoolScorer(pool, config).score(picked, suite))
        scores = Arena(sandbox, config).play(matches, update_book=False)
        seen = set()
        for score, paid in zip(scores, expected, strict=True):
            assert score.codes[0].reward == paid.coder
            assert score.suites[0][0].terms == paid.terms
            tests = score.suites[0][0].duel.tests
            assert [test.status for test in tests] == [test.status for test in paid.tests]
            passed = [test.verdict is Verdict.PASS for test in tests]
            assert passed == [test.verdict is Verdict.PASS for test in paid.tests]
            seen |= {(test.status, test.verdict is Verdict.PASS) for test in tests}
        assert len(seen) >= 5  # statuses and verdicts of many kinds were met

    def test_the_environment_pays_by_hand_computed_numbers(self) -> None:
        game = discrete.parallel_env([DOUBLE], rewards=TWO)
        # x * x passes double(2), fails double(3): R_C = 1/2; R_T = 1/2 (2/2) + 1/2 (1/2)
        assert play(game, 1, 0, 1)[1] == {CODER: 0.5, TESTER: 0.75}
        # double(3) == 7 counts, corrected, as valid and as invalid: R_T = 1/2 min(2/2, 1 - 1/2) + 1/2 (1/2)
        assert play(game, 1, 0, 2)[1] == {CODER: 0.5, TESTER: 0.5}
        # the same call again is a duplicate: v = 1, invalid = 1, one kill: R_T = 1/2 (1/2) + 1/2 (1/2)
        assert play(game, 1, 1, 2)[1] == {CODER: 0.0, TESTER: 0.5}
        # what does not execute earns nothing for anybody
        assert play(game, 2, 0, 1)[1] == {CODER: 0.0, TESTER: 0.0}
        # nothing picked: one test only; R_T = 1/2 (1/2)
        assert play(game, 0, NOTHING, 0)[1] == {CODER: 1.0, TESTER: 0.25}
        assert play(game, NOTHING, 0, 1)[1] == {CODER: 0.0, TESTER: 0.0}

    def test_rewards_come_at_the_end_and_once(self) -> None:
        game = discrete.parallel_env(rewards=RewardConfig(suite_size=3))
        game.reset(seed=1)
        steps = [game.step({CODER: 0, TESTER: test}) for test in (0, 0, 1, 2)]
        assert [sum(step[1].values()) > 0 for step in steps] == [False, False, False, True]
        assert [step[2][CODER] for step in steps] == [False, False, False, True]
        assert game.agents == []

    def test_what_both_faces_and_the_views_pay_agrees(self) -> None:
        parallel, turns = discrete.parallel_env(), discrete.env()
        tests = list(range(8))
        for seed in range(10):
            rewards = play(parallel, 1, *tests, seed=seed)[1]
            turns.reset(seed=seed)
            for action in [1, *tests]:
                turns.step(action)
            assert turns.rewards == rewards
            for seat, other, picks in ((CODER, TESTER, tests), (TESTER, CODER, [1])):
                make = DiscreteCoderEnv if seat == CODER else DiscreteTesterEnv
                view = make(opponent=lambda situation, generator, picks=picks: picks)
                view.reset(options={"problem_id": parallel._played.pool.problem_id})
                paid = [view.step(action)[1] for action in ([1] if seat == CODER else tests)]
                assert paid[-1] == rewards[seat], other

    @pytest.mark.parametrize(
        "other", [{"fidelity": "paper"}, {"tester_reward": "utrl"}, {"coder_tests": "union"}, {"oracle": "majority"}]
    )
    def test_rewards_that_need_more_than_a_pool_knows_are_refused(self, other: dict[str, Any]) -> None:
        with pytest.raises(ConfigurationError, match=f"{next(iter(other))} must be"):
            discrete.parallel_env(rewards=RewardConfig(**other))


class TestConformance:
    @not_plain
    @BOTH_MASKS
    def test_pettingzoos_tests_pass(self, masks: Any) -> None:
        api_test(discrete.env(masks=masks), num_cycles=100)
        api_test(discrete.raw_env(masks=masks), num_cycles=50)
        parallel_api_test(discrete.parallel_env(masks=masks), num_cycles=100)
        seed_test(lambda: discrete.env(masks=masks), num_cycles=50)
        parallel_seed_test(lambda: discrete.parallel_env(masks=masks), num_cycles=50)

    def test_state_and_rendering_pass_pettingzoos_tests(self, capsys: pytest.CaptureFixture[str]) -> None:
        state_test(discrete.env(), discrete.parallel_env())
        render_test(lambda render_mode: discrete.env(render_mode=render_mode))
        assert "TESTS" in capsys.readouterr().out

    def test_a_game_for_humans_prints_at_every_reset_and_step_unasked(self, capsys: pytest.CaptureFixture[str]) -> None:
        for make, first, others in (
            (discrete.parallel_env, {CODER: 1}, {TESTER: 0}),
            (discrete.raw_env, 1, 0),
            (DiscreteTesterEnv, 0, 1),
        ):
            game = make([DOUBLE], rewards=TWO, render_mode="human")
            game.reset(seed=0)
            assert DOUBLE.question in capsys.readouterr().out
            for action in (first, others):
                game.step(action)
                assert "TESTS" in capsys.readouterr().out

    def test_the_turns_converted_are_a_parallel_environment(self) -> None:
        parallel_api_test(turn_based_aec_to_parallel(discrete.env()), num_cycles=30)
        with pytest.raises(AssertionError):
            aec_to_parallel(discrete.env())

    @BOTH_MASKS
    @pytest.mark.parametrize("env_id", [DISCRETE_CODER_ID, DISCRETE_TESTER_ID])
    def test_the_views_pass_gymnasiums_test(self, env_id: str, masks: Any) -> None:
        check_env(gymnasium.make(env_id, masks=masks).unwrapped)

    def test_vectors_of_the_views_play_in_this_process_and_in_others(self) -> None:
        for vector in (
            SyncVectorEnv([DiscreteTesterEnv] * 3, autoreset_mode=AutoresetMode.SAME_STEP),
            AsyncVectorEnv([DiscreteTesterEnv] * 3, autoreset_mode=AutoresetMode.SAME_STEP),  # shared memory
        ):
            observations, infos = vector.reset(seed=5)
            assert infos["action_mask"].shape == (3, 17)
            assert vector.observation_space.contains(observations)
            for test in range(8):
                _, rewards, terminated, _, _ = vector.step(np.full(3, test))
            assert terminated.all()
            assert (rewards > 0).all()
            vector.close()

    def test_both_registries_make_it(self) -> None:
        assert pettingzoo.make("parallel", DISCRETE_ID).metadata["name"] == "codea1_discrete_v0"
        assert pettingzoo.make("aec", DISCRETE_ID, render_mode="ansi").render_mode == "ansi"
        assert isinstance(gymnasium.make(DISCRETE_CODER_ID).unwrapped, DiscreteCoderEnv)
        assert isinstance(gymnasium.make(DISCRETE_TESTER_ID).unwrapped, DiscreteTesterEnv)

    def test_equal_seeds_give_equal_whole_trajectories_in_every_process(self) -> None:
        code = "from tests.test_discrete import trajectory; print(trajectory())"
        shown = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": "1"},  # that of this process is another, with luck near certainty
            check=True,
            capture_output=True,
            text=True,
            cwd=Path(__file__).parents[1],
        ).stdout
        assert shown.strip() == trajectory() == trajectory()

    def test_it_can_be_pickled_in_the_middle_of_an_episode(self) -> None:
        game = discrete.parallel_env()
        game.reset(seed=2)
        game.step({CODER: 1})
        copy = pickle.loads(pickle.dumps(game))
        for test in range(8):
            ours, theirs = game.step({TESTER: test}), copy.step({TESTER: test})
        assert ours[1:4] == theirs[1:4]
        assert (ours[0][CODER] == theirs[0][CODER]).all()


class TestSpacesAndMasks:
    def test_shapes_are_the_same_for_every_question_and_both_agents(self) -> None:
        small = dataclasses.replace(DOUBLE.select([0], [1]), problem_id="small")
        game = discrete.parallel_env([DOUBLE, small], rewards=TWO)
        assert game.action_space(CODER) == game.action_space(TESTER) == gymnasium.spaces.Discrete(5)
        # 2 questions, 3 programs, 4 tests, the tester's turn, its progress, the observer's turn
        assert game.observation_space(CODER) == game.observation_space(TESTER)
        assert game.observation_space(CODER).shape == (12,)
        for problem_id in ("double", "small"):
            observations, infos = game.reset(options={"problem_id": problem_id, "options": 1})
            assert infos[CODER]["problem_id"] == problem_id
            assert game.observation_space(CODER).contains(observations[CODER])

    def test_an_observation_says_what_the_module_says(self) -> None:
        game = discrete.parallel_env([DOUBLE], rewards=TWO)
        seen, _ = game.reset()
        assert seen[CODER].tolist() == [1, *(0, 0, 0), *(0, 0, 0, 0), *(0, 0), 1]
        assert seen[TESTER].tolist() == [1, *(0, 0, 0), *(0, 0, 0, 0), *(0, 0), 0]
        seen = game.step({CODER: 1})[0]
        assert seen[TESTER].tolist() == [1, *(0, 1, 0), *(0, 0, 0, 0), *(1, 0), 1]
        seen = game.step({TESTER: 2})[0]
        assert seen[TESTER].tolist() == [1, *(0, 1, 0), *(0, 0, 1, 0), *(1, 0.5), 1]
        assert game.state().tolist() == seen[TESTER].tolist()[:-1]

    def test_the_tester_of_the_simultaneous_game_does_not_see_the_program(self) -> None:
        game = discrete.parallel_env([DOUBLE], rewards=TWO, simultaneous=True)
        game.reset()
        seen = [game.step({CODER: 1})[0], game.step({TESTER: 0})[0]]
        for observations in seen:
            assert observations[TESTER][1:4].tolist() == [0, 0, 0]
            assert observations[CODER][1:4].tolist() == [0, 1, 0]
        asked = []
        view = DiscreteCoderEnv([DOUBLE], simultaneous=True, opponent=lambda s, _: asked.append(s.program) or [])
        view.reset()
        view.step(1)
        assert asked == [None]

    def test_masks_leave_out_repeats_what_is_not_there_and_who_is_not_asked(self) -> None:
        game = discrete.parallel_env([DOUBLE, dataclasses.replace(DOUBLE.select([0], [0, 1]), problem_id="small")])
        _, infos = game.reset(options={"problem_id": "small"})
        assert infos[CODER]["action_mask"].tolist() == [1, 0, 0, 0, 0]
        assert infos[TESTER]["action_mask"].tolist() == [0, 0, 0, 0, 1]
        assert infos[CODER]["action_mask"].dtype == np.int8
        infos = game.step({CODER: 0})[4]
        assert infos[CODER]["action_mask"].tolist() == [0, 0, 0, 0, 1]
        assert infos[TESTER]["action_mask"].tolist() == [1, 1, 0, 0, 1]
        assert game.step({TESTER: 1})[4][TESTER]["action_mask"].tolist() == [1, 0, 0, 0, 1]
        assert game.step({TESTER: 0})[4][TESTER]["action_mask"].tolist() == [0, 0, 0, 0, 1]

    def test_masks_are_the_same_wherever_they_are(self) -> None:
        game = discrete.parallel_env(masks="observations")
        observations, infos = game.reset(seed=0)
        for agent in (CODER, TESTER):
            assert (observations[agent]["action_mask"] == infos[agent]["action_mask"]).all()
        view = DiscreteTesterEnv()
        _, info = view.reset(seed=0)
        assert view.action_masks().dtype == bool
        assert (view.action_masks() == info["action_mask"]).all()

    def test_what_is_given_out_is_new_every_time(self) -> None:
        game = discrete.parallel_env()
        first, infos = game.reset(seed=0)
        first[CODER][:] = 9
        infos[CODER]["action_mask"][:] = 9
        again = game.step({CODER: 0})
        assert again[0][CODER].max() == 1
        assert again[4][CODER]["action_mask"].max() == 1

    @pytest.mark.parametrize("action", [-1, 5, 1.0, "0", None, [0], np.array([0, 1])])
    def test_what_is_no_action_is_refused_and_changes_nothing(self, action: Any) -> None:
        game = discrete.parallel_env([DOUBLE], rewards=TWO)
        game.reset()
        with pytest.raises(ConfigurationError, match="an action must be"):
            game.step({CODER: action})
        with pytest.raises(ConfigurationError, match="must hold the action of coder_0"):
            game.step({TESTER: 0})
        assert play(game, np.int64(1), np.array(0), np.int32(1))[1] == {CODER: 0.5, TESTER: 0.75}

    @pytest.mark.parametrize("program", [-1, 3])
    def test_a_program_that_is_not_there_has_no_score(self, program: int) -> None:
        with pytest.raises(ConfigurationError, match=r"a program must be None or an index in \[0, 2\]"):
            PoolScorer(DOUBLE, TWO).score(program, [0])


class TestPolicies:
    def test_uniform_picks_differ_and_stay_in_the_pool(self) -> None:
        view = DiscreteCoderEnv()
        suites = set()
        for seed in range(20):
            view.reset(seed=seed)
            suite = view.step(0)[4]["score"]["suite"].tolist()
            assert len(set(suite)) == 8
            assert all(0 <= test < len(view._episode.pool.tests) for test in suite)
            suites.add(tuple(suite))
        assert len(suites) > 15

    def test_the_attacking_tester_earns_at_least_what_a_random_one_does(self) -> None:
        for program in range(3):
            earned = {}
            for opponent in (discrete.attacking, discrete.uniform):
                view = DiscreteCoderEnv(opponent=opponent)
                infos = []
                for seed in range(60):
                    view.reset(seed=seed)
                    infos.append(view.step(program)[4])
                earned[opponent] = [info["score"]["tester"] for info in infos]
            pairs = zip(earned[discrete.attacking], earned[discrete.uniform], strict=True)
            assert all(attacking >= random for attacking, random in pairs)
            assert earned[discrete.attacking] != earned[discrete.uniform]

    def test_a_policy_that_picks_too_much_is_refused(self) -> None:
        view = DiscreteTesterEnv(opponent=lambda situation, generator: [0, 1])
        with pytest.raises(ConfigurationError, match="at most 1 picks for coder_0, got 2"):
            view.reset(seed=0)


class TestPools:
    def test_there_is_one_for_every_bundled_problem_and_the_file_is_small(self) -> None:
        assert [pool.problem_id for pool in bundled_pools()] == [p.problem_id for p in bundled_problems()]
        assert sum(len(pool.to_json()) + 1 for pool in bundled_pools()) < 300 << 10
        for pool, problem in zip(bundled_pools(), bundled_problems(), strict=True):
            assert problem.reference_solution in pool.programs
            right = pool.programs.index(problem.reference_solution)
            assert not pool.kills[right].any()
            assert pool.kills.any(), "a tester must have something to find"
            assert pool.license == problem.license

    @pytest.mark.parametrize("pool", [DOUBLE, *bundled_pools()[:3]], ids=lambda pool: pool.problem_id)
    def test_the_json_form_round_trips_exactly(self, pool: Pool) -> None:
        again = Pool.from_json(pool.to_json())
        assert again == pool
        assert again.to_json() == pool.to_json()

    def test_a_selection_keeps_what_belongs_together(self) -> None:
        chosen = DOUBLE.select([1, 0], [2, 0])
        assert chosen.programs == (DOUBLE.programs[1], DOUBLE.programs[0])
        assert chosen.tests == (DOUBLE.tests[2], DOUBLE.tests[0])
        assert chosen.kills.tolist() == [[True, False], [False, False]]
        assert chosen.statuses == (WRONG, KEPT)

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"schema": 2}, "schema must be 1"),
            ({"problem_id": ""}, "problem_id must be a non-empty"),
            ({"problem_id": 3}, "problem_id must be a string"),
            ({"programs": []}, "programs must be a tuple of at least one"),
            ({"programs": ["x", "x", "y"]}, "programs must be distinct"),
            ({"programs": "abc"}, "programs must be a list"),
            ({"programs": ["a", "b", "\ud800"]}, "a program must be text"),
            ({"tests": [["assert f(1) == 1", "kept"]] * 4}, "tests must be a list of"),
            ({"tests": [[f"assert f({i}) ==\n1", "kept", i] for i in range(4)]}, "a test must be a printable line"),
            ({"tests": [[f"print({i})", "kept", i] for i in range(4)]}, "a test must be a printable line"),
            ({"tests": [[f"assert f({i}) == 1", "duplicate", i] for i in range(4)]}, "a test's status must be"),
            ({"tests": [[f"assert f({i}) == 1", "kept", "a"] for i in range(4)]}, "calls must be ints"),
            ({"executes": "11"}, "executes must be a tuple of 3"),
            ({"executes": [True] * 3}, "executes must be a string of 0 and 1"),
            ({"executes": "111", "fails": ["0000", "0110"]}, "fails must hold 3 rows"),
            ({"fails": ["0001", "0110", "1110"]}, "fails must be False for a test that is not run"),
            ({"fails": ["0000", "0110", "0110"]}, "fails must be True throughout"),
            ({"fails": ["0000", "0100", "1110"]}, "tests of one call must come to the same"),
        ],
    )
    def test_a_malformed_pool_is_refused_by_name(self, changes: dict[str, Any], message: str) -> None:
        record = json.loads(DOUBLE.to_json()) | changes
        with pytest.raises(FormatError, match=message):
            Pool.from_json(json.dumps(record))

    def test_a_status_is_no_text_for_scores_would_take_it_for_another_one(self) -> None:
        with pytest.raises(FormatError, match="statuses must be of"):
            dataclasses.replace(DOUBLE, statuses=tuple(map(str, DOUBLE.statuses)))

    @pytest.mark.parametrize("line", ["", "[]", "nonsense", "null", '{"schema": 1}', "[" * 100_000])
    def test_what_is_no_pool_is_refused(self, line: str) -> None:
        with pytest.raises(FormatError, match="must"):
            Pool.from_json(line)

    def test_files_hold_what_was_written_and_errors_name_the_line(self, tmp_path: Any) -> None:
        path = tmp_path / "pools.jsonl"
        discrete.write_pools(path, bundled_pools())
        assert discrete.read_pools(path) == bundled_pools()
        before = path.read_bytes()
        path.write_bytes(before + b"\n" + before)
        with pytest.raises(FormatError, match=r"pools\.jsonl:66: problem_id must be unique"):
            discrete.read_pools(path)
        path.write_bytes(before + b"{}\n")
        with pytest.raises(FormatError, match=r"pools\.jsonl:65: schema must be 1"):
            discrete.read_pools(path)

    def test_a_write_that_fails_leaves_the_old_file(self, tmp_path: Any) -> None:
        path = tmp_path / "pools.jsonl"
        discrete.write_pools(path, [DOUBLE])

        def failing() -> Iterator[Pool]:
            yield DOUBLE
            raise OSError("the disk is full")

        with pytest.raises(OSError, match="full"):
            discrete.write_pools(path, failing())
        assert discrete.read_pools(path) == (DOUBLE,)
        assert list(tmp_path.iterdir()) == [path]
