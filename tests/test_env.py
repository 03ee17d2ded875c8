"""The environments: what PettingZoo and Gymnasium demand, determinism, the Mistake Book, and that they add no scoring.

All play against the real arena and the real sandbox, with scripted players.
"""

import dataclasses
import functools
import inspect
import json
import os
import random
import re
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pettingzoo
import pytest
from double_question import DOUBLE, RIGHT, SQUARE, FailingSandbox
from gymnasium.wrappers import RecordVideo
from pettingzoo.test import save_obs_test
from pettingzoo.utils import aec_to_parallel

from codea1_env import discrete
from codea1_env.arena.arena import Arena
from codea1_env.arena.match import Match
from codea1_env.discrete.single_seat import DiscreteCoderEnv
from codea1_env.envs import rendering, testing
from codea1_env.envs.environment import env, parallel_env, raw_env
from codea1_env.envs.episode import CODER, RENDER_MODES, TESTER, plain_score
from codea1_env.envs.single_seat import CoderEnv, TesterEnv
from codea1_env.errors import Codea1Error, ConfigurationError, SandboxError
from codea1_env.mistake_book.book import MistakeBook
from codea1_env.players import FuzzTester, GoldenTester, MutantCoder, OracleCoder, Player, RandomTester
from codea1_env.problems import Problem, TestCase, bundled_problems, write_problems
from codea1_env.registration import CODER_ID, DUEL_ID, TESTER_ID, register
from codea1_env.rewards.code_a1 import RewardConfig
from codea1_env.sandbox import LocalSandbox

register()

WITHOUT = dataclasses.replace(DOUBLE, golden_tests=())
SUITE = "assert double(2) == 4\nassert double(3) == 6\nassert double(5) == 10\n"
FAILURES = {TestCase("double(3)", "6"): 1, TestCase("double(5)", "10"): 1}
BY_ID = {problem.problem_id: problem for problem in bundled_problems()}


def play(game: parallel_env, code: str, suite: str, **reset: Any) -> dict[str, float]:
    """One episode of a parallel environment; the rewards."""
    game.reset(**reset)
    game.step({CODER: code})
    return dict(game.step({TESTER: suite})[1])


def scripted_actions(problem: Problem, episode: int) -> tuple[str, str]:
    """Responses that make for kept, corrected and duplicate tests, right and wrong programs."""
    answers = testing.Answers()
    seen = {TESTER: {"code": ""}}, {CODER: {"problem_id": problem.problem_id}}
    code = answers.to(*seen, episode)[CODER]
    return code, answers.to({TESTER: {"code": code}}, seen[1], episode)[TESTER]


class TestConformance:
    @pytest.mark.parametrize("rounds", [1, 3])
    def test_the_parallel_environment_passes_pettingzoos_test(self, rounds: int, sandbox: LocalSandbox) -> None:
        testing.check_parallel(lambda: parallel_env(sandbox=sandbox, rounds=rounds))

    @pytest.mark.parametrize("rounds", [1, 3])
    @pytest.mark.parametrize("make", [env, raw_env])
    def test_the_turn_based_environment_passes_pettingzoos_tests(
        self, make: Any, rounds: int, sandbox: LocalSandbox
    ) -> None:
        testing.check_turns(lambda: make(sandbox=sandbox, rounds=rounds))

    def test_every_declared_render_mode_renders(
        self, sandbox: LocalSandbox, capsys: pytest.CaptureFixture[str]
    ) -> None:
        testing.check_renders(lambda render_mode: env(render_mode=render_mode, sandbox=sandbox))
        assert "bundled/" in capsys.readouterr().out

    def test_the_state_passes_pettingzoos_test(self, sandbox: LocalSandbox) -> None:
        testing.check_state(lambda: env(sandbox=sandbox), lambda: parallel_env(sandbox=sandbox))

    def test_the_number_of_rounds_passes_pettingzoos_test(self, sandbox: LocalSandbox) -> None:
        testing.check_rounds(
            lambda rounds: env(sandbox=sandbox, rounds=rounds),
            lambda rounds: parallel_env(sandbox=sandbox, rounds=rounds),
        )

    @pytest.mark.parametrize("rounds", [1, 3])
    def test_pettingzoos_conversion_of_the_turns_agrees_with_the_parallel_environment(
        self, rounds: int, sandbox: LocalSandbox
    ) -> None:
        testing.check_conversion(
            lambda: env(sandbox=sandbox, rounds=rounds), lambda: parallel_env(sandbox=sandbox, rounds=rounds)
        )

    @pytest.mark.parametrize("env_id", [CODER_ID, TESTER_ID])
    def test_the_single_seat_views_pass_gymnasiums_tests(self, env_id: str) -> None:
        testing.check_view(functools.partial(gymnasium.make, f"codea1_env:{env_id}"))

    def test_vectors_find_the_views_where_processes_are_spawned(self) -> None:
        make = functools.partial(gymnasium.make, f"codea1_env:{CODER_ID}")
        vector = gymnasium.vector.AsyncVectorEnv([make] * 2, shared_memory=False, context="spawn")
        observations, _ = vector.reset(seed=1)
        assert all(observations["question"])
        vector.close()

    def test_observations_are_no_pictures_and_pettingzoos_test_of_saving_them_says_so(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.chdir(tmp_path)
        save_obs_test.test_save_obs(parallel_env([DOUBLE]))
        assert "did not save the observations" in capsys.readouterr().out
        assert list(tmp_path.iterdir()) == []

    def test_a_wrapper_that_draws_of_its_own_is_found_out(self, sandbox: LocalSandbox) -> None:
        class Noisy(parallel_env):
            def step(self, actions: Any) -> Any:
                observations, rewards, *rest = super().step(actions)
                return observations, {agent: value + random.random() for agent, value in rewards.items()}, *rest

        with pytest.raises(AssertionError, match="equal seeds must give equal trajectories"):
            testing.check_parallel(lambda: Noisy(sandbox=sandbox))

    def test_the_three_constructors_take_the_same_arguments(self) -> None:
        expected = inspect.signature(raw_env).parameters
        assert inspect.signature(env).parameters == expected
        assert inspect.signature(parallel_env).parameters == expected


class TestRegistration:
    def test_both_registries_make_the_environments(self) -> None:
        assert pettingzoo.make("parallel", DUEL_ID).metadata["name"] == "codea1_v0"
        assert pettingzoo.make("aec", DUEL_ID, render_mode="ansi").render_mode == "ansi"
        assert isinstance(gymnasium.make(CODER_ID).unwrapped, CoderEnv)
        assert isinstance(gymnasium.make(TESTER_ID).unwrapped, TesterEnv)

    def test_gymnasium_imports_the_package_itself_and_pettingzoo_has_its_usual_module(self) -> None:
        made = "gymnasium.make('codea1_env:codea1_env/Coder-v0').unwrapped.__class__.__name__"
        code = f"import gymnasium; print({made}); from codea1_env import codea1_v0; print(codea1_v0.parallel_env())"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
        assert done.stdout.split() == ["CoderEnv", "codea1_v0"]

    def test_registering_twice_changes_nothing_and_warns_of_nothing(self) -> None:
        before = (dict(gymnasium.registry), dict(pettingzoo.aec_registry), dict(pettingzoo.parallel_registry))
        register()
        after = (dict(gymnasium.registry), dict(pettingzoo.aec_registry), dict(pettingzoo.parallel_registry))
        assert before == after

    def test_registering_imports_neither_the_environments_nor_torch(self) -> None:
        code = (
            "import sys, codea1_env.registration as r; r.register();"
            "print([m for m in ('torch', 'codea1_env.envs.environment', 'codea1_env.arena') if m in sys.modules])"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
        assert done.stdout.strip() == "[]"


class TestDeterminism:
    def test_the_trajectory_shows_tests_of_every_status(self, sandbox: LocalSandbox) -> None:
        shown = testing.trajectory(parallel_env(sandbox=sandbox))
        statuses = {status for status in ("kept", "wrong_expected", "duplicate") if f'"status": "{status}"' in shown}
        assert statuses == {"kept", "wrong_expected", "duplicate"}  # or the checks above see too little

    def test_trajectories_do_not_depend_on_the_process_or_its_hash_seed(self) -> None:
        testing.check_hash_seeds("from codea1_env import parallel_env; made = parallel_env()", seeds=("0", "4242"))

    def test_a_trajectory_that_depends_on_the_hash_seed_is_told(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Whatever is printed: here the seed itself, for the sake of speed."""
        program = "import os; print(os.environ['PYTHONHASHSEED'], hash('text'))"
        run = subprocess.run
        monkeypatch.setattr(subprocess, "run", lambda command, **how: run([*command[:2], program], **how))
        with pytest.raises(AssertionError, match="PYTHONHASHSEED 4242 must change nothing"):
            testing.check_hash_seeds("made = None", seeds=("0", "4242"))

    def test_turns_and_views_repeat_in_other_processes_under_other_hash_seeds(self) -> None:
        program = Path(__file__).with_name("seeded_faces.py")
        shown = [
            subprocess.run(
                [sys.executable, str(program)],
                env={**os.environ, "PYTHONHASHSEED": hash_seed},
                check=True,
                capture_output=True,
                text=True,
            ).stdout
            for hash_seed in ("0", "4242")
        ]
        assert shown[0] == shown[1]
        assert shown[0].count('"kept"') > 10  # or there was little to differ in

    def test_seeds_choose_the_question_and_other_seeds_choose_others(self) -> None:
        game = parallel_env()
        drawn = [game.reset(seed=seed)[1][CODER]["problem_id"] for seed in range(20)]
        assert drawn == [game.reset(seed=seed)[1][CODER]["problem_id"] for seed in range(20)]
        assert len(set(drawn)) > 10

    def test_an_unseeded_reset_goes_on_with_the_generator(self) -> None:
        game, other = parallel_env(), parallel_env()
        game.reset(seed=1)
        other.reset(seed=1)
        drawn = [game.reset()[1][CODER]["problem_id"] for _ in range(20)]
        assert drawn == [other.reset()[1][CODER]["problem_id"] for _ in range(20)]
        assert len(set(drawn)) > 10


class TestEpisode:
    def test_the_coder_acts_first_and_the_tester_sees_its_program(self, sandbox: LocalSandbox) -> None:
        game = parallel_env([DOUBLE], sandbox=sandbox)
        observations, infos = game.reset()
        assert game.agents == [CODER, TESTER]
        assert [observations[agent]["active"] for agent in (CODER, TESTER)] == [1, 0]
        assert observations[TESTER] == {
            "question": DOUBLE.question,
            "entry_point": "double",
            "starter_code": "",
            "code": "",
            "feedback": "",
            "phase": "code",
            "active": 0,
            "round": 0,
        }
        assert "score" not in infos[CODER]

        text = f"Here it is:\n```python\n{RIGHT}```\nGood luck!"
        observations, rewards, terminations, truncations, infos = game.step({CODER: text, TESTER: SUITE})
        assert (observations[TESTER]["code"].strip(), observations[TESTER]["phase"]) == (RIGHT.strip(), "test")
        assert [observations[agent]["active"] for agent in (CODER, TESTER)] == [0, 1]
        assert rewards == {CODER: 0.0, TESTER: 0.0}
        assert terminations == truncations == {CODER: False, TESTER: False}
        assert game.agents == [CODER, TESTER]

        observations, rewards, terminations, truncations, infos = game.step({CODER: "ignored", TESTER: SUITE})
        assert observations[CODER]["phase"] == "over"
        # All three tests are kept and passed: R_C = 3/3; R_T = (3/8 validity + 0 kills) / 2.
        assert rewards == {CODER: 1.0, TESTER: 3 / 16}
        assert terminations == {CODER: True, TESTER: True}
        assert game.agents == []
        assert infos[CODER] == infos[TESTER]
        assert infos[CODER] is not infos[TESTER]

    def test_rewards_and_infos_are_the_arenas(self, sandbox: LocalSandbox) -> None:
        game = parallel_env(sandbox=sandbox, rewards=RewardConfig(alpha=0.25, suite_size=4))
        with_reward = 0
        for episode, problem in enumerate(bundled_problems()[:8]):
            code, suite = scripted_actions(problem, episode)
            game.reset(options={"problem_id": problem.problem_id, "book": MistakeBook()})
            game.step({CODER: code})
            _, rewards, _, _, infos = game.step({TESTER: suite})
            arena = Arena(sandbox, RewardConfig(alpha=0.25, suite_size=4))
            (score,) = arena.play([Match(problem, (code,), ((suite,),))])
            assert rewards == {CODER: score.codes[0].reward, TESTER: score.suites[0][0].reward}
            assert infos[TESTER] == {
                "problem_id": problem.problem_id,
                "difficulty": problem.difficulty,
                "score": plain_score(score),
            }
            with_reward += rewards[TESTER] > 0
        assert with_reward > 4

    def test_infos_are_plain_data_fit_for_json(self, sandbox: LocalSandbox) -> None:
        game = parallel_env([DOUBLE], sandbox=sandbox)
        game.reset()
        game.step({CODER: SQUARE})
        infos = game.step({TESTER: SUITE + "assert double(3) == 7\nassert True"})[4]
        assert json.loads(json.dumps(infos[CODER], allow_nan=False)) == infos[CODER]
        tests = infos[CODER]["score"]["suites"][0][0]["duel"]["tests"]
        shown = [(test["status"], test["verdict"]) for test in tests]
        assert shown == [
            ("kept", "pass"),
            ("kept", "fail"),
            ("kept", "fail"),
            ("duplicate", None),
            ("rejected", None),
        ]
        assert {type(test["status"]) for test in tests} == {str}

    def test_the_turn_based_environment_pays_both_agents_at_the_end(self, sandbox: LocalSandbox) -> None:
        game = env([DOUBLE], sandbox=sandbox)
        game.reset()
        seen = []
        for agent in game.agent_iter():
            observation, reward, terminated, truncated, _ = game.last()
            seen.append((agent, observation["phase"], reward, terminated, truncated))
            game.step(None if terminated else {CODER: SQUARE, TESTER: SUITE}[agent])
        # R_C = 1/3; R_T = (3/8 validity + 2/8 kills) / 2.
        assert seen == [
            (CODER, "code", 0.0, False, False),
            (TESTER, "test", 0.0, False, False),
            (CODER, "over", 1 / 3, True, False),
            (TESTER, "over", 5 / 16, True, False),
        ]
        assert game.agents == []

    def test_an_episode_cut_short_in_its_last_steps_leaves_nothing_behind(self, sandbox: LocalSandbox) -> None:
        game = env([DOUBLE], sandbox=sandbox)
        for _ in range(3):
            game.reset()
            game.step(RIGHT)
            game.step(SUITE)
            game.step(None)  # the coder leaves, the tester has not yet
        game.reset()
        assert (game.agent_selection, game.agents) == (CODER, [CODER, TESTER])
        game.step(RIGHT)
        assert game.agent_selection == TESTER

    def test_the_turns_cannot_be_made_simultaneous(self) -> None:
        with pytest.raises(AssertionError, match="not generally safe"):
            aec_to_parallel(env())


class TestActions:
    @pytest.mark.parametrize("response", ["", "\ud800", "\x00" * 50, "```", "é" * 50_000, "assert " * 5_000])
    def test_any_text_is_a_legal_response(self, response: str, sandbox: LocalSandbox) -> None:
        game = parallel_env([DOUBLE], sandbox=sandbox, render_mode="html")
        assert game.action_space(CODER).contains(response)
        rewards = play(game, response, response)
        assert rewards[CODER] == 0.0
        assert rewards[TESTER] <= 0.0
        assert game.observation_space(TESTER).contains(game.reset()[0][TESTER])
        game.render().encode()

    def test_a_response_is_cut_at_the_maximal_length(self, sandbox: LocalSandbox) -> None:
        length = len(DOUBLE.question)
        padding = "#" * (length - len(SUITE) - 1) + "\n"
        game = parallel_env([DOUBLE], sandbox=sandbox, max_text_length=length)
        inside = play(game, SQUARE, padding + SUITE, options={"book": MistakeBook()})
        assert inside == play(game, SQUARE, padding + SUITE + "assert double(7) == 14", options={"book": MistakeBook()})
        assert not game.action_space(TESTER).contains(padding + SUITE + " ")
        long = f"def double(x):\n    return '{'y' * length}'"
        game.reset()
        observation = game.step({CODER: long})[0][TESTER]
        assert game.observation_space(TESTER).contains(observation)
        assert len(observation["code"]) <= length

    def test_a_step_before_a_reset_or_after_the_end_is_refused(self, sandbox: LocalSandbox) -> None:
        game = parallel_env([DOUBLE], sandbox=sandbox)
        with pytest.raises(gymnasium.error.ResetNeeded):
            game.step({CODER: RIGHT})
        play(game, RIGHT, SUITE)
        with pytest.raises(gymnasium.error.ResetNeeded):
            game.step({CODER: RIGHT})


class TestBook:
    def test_failures_enter_the_book_and_are_replayed(self, sandbox: LocalSandbox) -> None:
        game = parallel_env([DOUBLE], sandbox=sandbox)
        play(game, SQUARE, SUITE)
        assert game.book.frequencies("double") == FAILURES
        game.reset()
        game.step({CODER: RIGHT})
        _, rewards, _, _, infos = game.step({TESTER: "assert double(1) == 2"})
        duel = infos[CODER]["score"]["suites"][0][0]["duel"]
        assert [replay["case"]["call"] for replay in duel["replays"]] == ["double(3)", "double(5)"]
        # f_hist = 0: R_T = (1/8 validity + (0 - 0 + 1) / 2) / 2; R_C = (1 + 1) / 2.
        assert rewards == {CODER: 1.0, TESTER: 5 / 16}
        assert game.book.frequencies("double") == {}

    def test_an_unseeded_reset_carries_the_book_on_and_a_seeded_one_restores_the_given(
        self, sandbox: LocalSandbox
    ) -> None:
        given = MistakeBook()
        given.record("double", (), [TestCase("double(4)", "8")])
        game = parallel_env([DOUBLE], sandbox=sandbox, book=given)
        first = play(game, SQUARE, SUITE, seed=1)
        grown = game.book
        assert grown != given
        game.reset()
        assert game.book == grown
        for options in (None, {"book": None}):
            game.reset(seed=2, options=options)
            assert game.book == given
            play(game, SQUARE, SUITE)
        assert play(game, SQUARE, SUITE, seed=1) == first
        assert game.book == grown
        assert list(given.frequencies("double")) == [TestCase("double(4)", "8")]  # the caller's book is the caller's

    def test_an_option_sets_the_book_even_with_a_seed(self, sandbox: LocalSandbox) -> None:
        game = parallel_env([DOUBLE], sandbox=sandbox)
        other = MistakeBook()
        other.record("double", (), [TestCase("double(4)", "8")])
        for seed in (None, 3):
            game.reset(seed=seed, options={"book": other})
            assert game.book == other
            game.step({CODER: SQUARE})
            game.step({TESTER: SUITE})
            assert game.book != other
        assert other.frequencies("double") == {TestCase("double(4)", "8"): 1}
        with pytest.raises(ConfigurationError, match=r"options\['book'\] must be a MistakeBook, got str"):
            game.reset(options={"book": "book.jsonl"})

    def test_the_exported_book_is_a_copy_and_outlives_a_closed_sandbox(self) -> None:
        game = parallel_env([DOUBLE])
        play(game, SQUARE, SUITE)
        game.book.record("double", (), [TestCase("double(9)", "18")])
        game.close()
        assert game.book.frequencies("double") == FAILURES

    def test_the_turn_based_and_single_seat_faces_have_a_book_too(self, sandbox: LocalSandbox) -> None:
        game = env([DOUBLE], sandbox=sandbox)
        game.reset()
        game.step(SQUARE)
        game.step(SUITE)
        assert game.book.frequencies("double") == FAILURES
        view = TesterEnv([DOUBLE], sandbox=sandbox)  # its opponent's program returns None
        view.reset(seed=1)
        view.step("assert double(3) == 6")
        assert view.book.frequencies("double") == {TestCase("double(3)", "6"): 1}
        view.reset()
        assert len(view.book) == 1
        view.reset(seed=1)
        assert len(view.book) == 0


@pytest.mark.parametrize("make", [parallel_env, env])
def test_failing_infrastructure_is_an_error_and_never_a_reward(make: Any, sandbox: LocalSandbox) -> None:
    failing = FailingSandbox(sandbox)
    game = make([DOUBLE], sandbox=failing)
    game.reset()
    parallel = make is parallel_env
    game.step({CODER: SQUARE} if parallel else SQUARE)
    suite = {TESTER: SUITE} if parallel else SUITE
    with pytest.raises(SandboxError, match="on fire"):
        game.step(suite)
    assert game.agents == [CODER, TESTER]
    assert len(game.book) == 0
    failing.fails = False
    result = game.step(suite)  # the same step again
    assert (result[1] if parallel else game.rewards) == {CODER: 1 / 3, TESTER: 5 / 16}


class TestRounds:
    def test_the_coder_reads_what_failed_and_repairs(self, sandbox: LocalSandbox) -> None:
        game = parallel_env([DOUBLE], sandbox=sandbox, rounds=2)
        game.reset()
        game.step({CODER: SQUARE})
        observations, rewards, terminations, _, infos = game.step({TESTER: SUITE})
        assert rewards == {CODER: 1 / 3, TESTER: 5 / 16}
        assert terminations == {CODER: False, TESTER: False}
        assert observations[CODER] | {"question": ""} == {
            "question": "",
            "entry_point": "double",
            "starter_code": "",
            "code": observations[CODER]["code"],
            "feedback": "assert double(3) == 6  # fail\nassert double(5) == 10  # fail\n",
            "phase": "code",
            "active": 1,
            "round": 1,
        }
        assert infos[CODER]["score"]["codes"][0]["reward"] == 1 / 3

        observations, rewards, _, _, infos = game.step({CODER: RIGHT})
        assert rewards == {CODER: 0.0, TESTER: 0.0}
        assert "score" not in infos[CODER]
        _, rewards, terminations, _, _ = game.step({TESTER: "assert double(1) == 2"})
        # The repaired program passes the new test and both replays: R_adv = (0 - 0 + 1) / 2, R_val = 1/8.
        assert rewards == {CODER: 1.0, TESTER: 0.5 * 1 / 8 + 0.5 * 1 / 2}
        assert (terminations, game.agents) == ({CODER: True, TESTER: True}, [])
        assert len(game.book) == 0  # one pass each, and what failed once has left

    def test_feedback_names_failed_replays_and_every_way_to_fail(self, sandbox: LocalSandbox) -> None:
        book = MistakeBook()
        book.record("double", [], [TestCase("double(9)", "18")])
        game = parallel_env([DOUBLE], sandbox=sandbox, rounds=2, book=book)
        game.reset()
        game.step({CODER: "def double(x):\n    return 4 if x == 2 else [][x]"})
        observations = game.step({TESTER: SUITE + "assert double(3) == 7"})[0]
        assert observations[CODER]["feedback"].splitlines() == [
            "assert double(3) == 6  # error",
            "assert double(5) == 10  # error",
            "assert double(9) == 18  # error",
        ]

    def test_turns_and_views_play_the_same_rounds(self, sandbox: LocalSandbox) -> None:
        turns = env([DOUBLE], sandbox=sandbox, rounds=2)
        turns.reset()
        for response in (SQUARE, SUITE, RIGHT, SUITE):
            turns.step(response)
        assert [turns.rewards[agent] for agent in (CODER, TESTER)] == [1.0, 7 / 16]
        coder = CoderEnv([DOUBLE], opponent=GoldenTester(), sandbox=sandbox, rounds=2)
        coder.reset(seed=0)
        steps = [coder.step(code) for code in ("def double(x): return 5", RIGHT)]
        assert [step[2] for step in steps] == [False, True]
        assert (steps[0][0]["feedback"], steps[1][1]) == ("assert double(2) == 4  # fail\n", 1.0)
        tester = TesterEnv([DOUBLE], opponent=OracleCoder(), sandbox=sandbox, rounds=2)
        tester.reset(seed=0)
        assert [tester.step(SUITE)[1:3] for _ in range(2)] == [(3 / 16, False), (3 / 16, True)]


class TestSingleSeat:
    def test_the_coders_view_is_one_step_against_a_frozen_tester(self, sandbox: LocalSandbox) -> None:
        view = CoderEnv([DOUBLE], opponent=GoldenTester(), sandbox=sandbox)
        observation, info = view.reset(seed=0)
        assert (observation["phase"], observation["active"], info) == (
            "code",
            1,
            {"problem_id": "double", "difficulty": ""},
        )
        _, reward, terminated, truncated, info = view.step("def double(x): return 4")
        assert (reward, terminated, truncated) == (1.0, True, False)  # the golden test does not see it
        assert info["score"]["suites"][0][0]["reward"] == 1 / 16

    def test_the_testers_view_shows_a_frozen_coders_program(self, sandbox: LocalSandbox) -> None:
        view = TesterEnv([DOUBLE], opponent=OracleCoder(), sandbox=sandbox)
        observation, _ = view.reset(seed=0)
        assert (observation["code"].strip(), observation["active"]) == (str(DOUBLE.reference_solution).strip(), 1)
        assert view.step(SUITE)[1] == 3 / 16

    def test_the_opponents_moves_repeat_with_the_seed_and_vary_without(self) -> None:
        view = TesterEnv()
        first = [view.reset(seed=3)[0]["code"], *(view.reset()[0]["code"] for _ in range(10))]
        assert first == [view.reset(seed=3)[0]["code"], *(view.reset()[0]["code"] for _ in range(10))]
        chosen = {view.reset(options={"problem_id": "bundled/run-lengths"})[0]["code"] for _ in range(30)}
        assert len(chosen) == len(BY_ID["bundled/run-lengths"].mutants)


class TestRendering:
    def test_what_players_wrote_is_escaped_in_html(self, sandbox: LocalSandbox) -> None:
        game = parallel_env([DOUBLE], sandbox=sandbox, render_mode="html")
        attack = "<script>alert(1)</script>"
        play(game, f"def double(x):\n    return '{attack}'", f"assert double('{attack}') == 1")
        page = game.render()
        assert attack not in page
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page

    def test_text_shows_question_program_tests_and_rewards_without_control_characters(
        self, sandbox: LocalSandbox
    ) -> None:
        game = parallel_env([DOUBLE], sandbox=sandbox, render_mode="ansi")
        game.reset()
        assert "PROGRAM" not in game.render()
        play(game, SQUARE + "# \x1b[2J", SUITE + "assert double(4) == 9")
        text = game.render()
        assert all(c.isprintable() or c == "\n" for c in text)
        for shown in (
            DOUBLE.question,
            "return x * x",
            r"# \x1b[2J",
            "wrong_expected",
            "[value used: 8]",
            "0.250",
        ):
            assert shown in text

    def test_a_game_for_humans_prints_at_every_reset_and_step_unasked(
        self, sandbox: LocalSandbox, capsys: pytest.CaptureFixture[str]
    ) -> None:
        def printed(call: Any, *arguments: Any) -> str:
            call(*arguments)
            return capsys.readouterr().out

        parallel = parallel_env([DOUBLE], sandbox=sandbox, render_mode="human")
        turns = env([DOUBLE], sandbox=sandbox, render_mode="human")
        for game, code, suite in ((parallel, {CODER: SQUARE}, {TESTER: SUITE}), (turns, SQUARE, SUITE)):
            assert DOUBLE.question in printed(game.reset)
            assert "return x * x" in printed(game.step, code)
            assert "coder's reward 0.333" in printed(game.step, suite)
        view = TesterEnv([DOUBLE], opponent=OracleCoder(), sandbox=sandbox, render_mode="human")
        assert "return 2 * x" in printed(view.reset)
        assert "coder's reward 1.000" in printed(view.step, SUITE)
        quiet = parallel_env([DOUBLE], sandbox=sandbox, render_mode="ansi")
        assert printed(quiet.reset) + printed(quiet.step, {CODER: SQUARE}) == ""

    def test_pictures_have_one_size_and_show_what_the_text_shows(self, sandbox: LocalSandbox) -> None:
        shown, drawn = (
            parallel_env([DOUBLE], sandbox=sandbox, render_mode=mode, book=MistakeBook())
            for mode in ("ansi", "rgb_array")
        )
        for game in (shown, drawn):
            game.reset(seed=0)
        before = drawn.render()
        for game in (shown, drawn):
            game.step({CODER: SQUARE})
            game.step({TESTER: SUITE})
        after = drawn.render()
        assert before.shape == after.shape == rendering.picture("x\n" * 1_000).shape
        assert after.dtype == np.uint8
        assert [side % 2 for side in after.shape[:2]] == [0, 0]  # video codecs refuse odd sides
        assert np.array_equal(after, rendering.picture(shown.render()))
        assert not np.array_equal(after, before)

    def test_a_picture_breaks_long_lines_leaves_out_the_middle_and_takes_any_text(self) -> None:
        lines = rendering.fitted("\n".join(map(str, range(200))))
        assert len(lines) == rendering.LINES
        assert (lines[0], lines[-1]) == ("0", "199")
        assert "... 151 lines are left out here ..." in lines
        assert rendering.fitted("a" * 250) == ["a" * 100, "a" * 100, "a" * 50]
        assert rendering.picture("\ud800 é 漢\t\x00").shape == rendering.picture("").shape

    def test_gymnasium_records_a_video_of_a_view(self, sandbox: LocalSandbox, tmp_path: Path) -> None:
        pytest.importorskip("moviepy", reason="the extra `video` is not installed")
        game = gymnasium.make(CODER_ID, problems=[DOUBLE], opponent="golden", sandbox=sandbox, render_mode="rgb_array")
        recorded = RecordVideo(game, str(tmp_path / "videos"), episode_trigger=lambda episode: True)
        recorded.reset(seed=0)
        recorded.step(SQUARE)
        recorded.close()
        assert [path.stat().st_size > 1_000 for path in (tmp_path / "videos").glob("*.mp4")] == [True]

    def test_without_pillow_pictures_are_refused_when_the_game_is_made(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "PIL", None)
        for make in (parallel_env, CoderEnv, discrete.parallel_env, DiscreteCoderEnv):
            with pytest.raises(ImportError, match=r"rgb_array\" needs the extra `video`: pip install '\.\[video\]'"):
                make(render_mode="rgb_array")

    def test_rendering_without_a_mode_warns_and_shows_nothing(self) -> None:
        game = parallel_env([DOUBLE])
        game.reset()
        with pytest.warns(UserWarning, match="render_mode"):
            assert game.render() is None


@pytest.mark.parametrize("opponent", [None, "golden", "random", "fuzz"])
def test_a_scripted_tester_needs_golden_tests(opponent: str | None) -> None:
    with pytest.raises(ConfigurationError, match=r"must have golden_tests for a scripted tester.*'double'"):
        CoderEnv([WITHOUT], opponent=opponent)
    CoderEnv([WITHOUT], opponent=GoldenTester())


def test_problems_may_be_the_path_of_a_problem_file(tmp_path: Path, sandbox: LocalSandbox) -> None:
    path = tmp_path / "own.jsonl"
    write_problems(path, [DOUBLE])
    for given in (path, str(path)):
        assert play(parallel_env(given, sandbox=sandbox), RIGHT, SUITE) == play(
            parallel_env([DOUBLE], sandbox=sandbox), RIGHT, SUITE
        )
    for make in (raw_env, env, CoderEnv, functools.partial(gymnasium.make, TESTER_ID)):
        game = make(problems=str(path))
        shown = game.reset()
        infos = game.infos[CODER] if shown is None else shown[1]
        assert infos["problem_id"] == "double"
        game.close()


def test_a_path_that_holds_no_problems_is_refused_with_the_reason(tmp_path: Path) -> None:
    empty, wrong = tmp_path / "empty.jsonl", tmp_path / "wrong.jsonl"
    empty.write_text("\n")
    wrong.write_text('{"problem_id": "x"}\n')
    for path, message in (
        (tmp_path / "nowhere.jsonl", "the path of a problem file, got .*nowhere.jsonl', which cannot be read: No such"),
        (tmp_path, "which cannot be read: Is a directory"),
        (empty, "a problem file must hold at least one problem, got none in .*empty.jsonl"),
        (wrong, "wrong.jsonl:1: "),
    ):
        for make in (parallel_env, CoderEnv):
            with pytest.raises(Codea1Error, match=message):
                make(path)


@pytest.mark.parametrize(
    ("make", "named", "player"),
    [
        (TesterEnv, "oracle", OracleCoder()),
        (TesterEnv, "mutant", MutantCoder()),
        (CoderEnv, "golden", GoldenTester()),
        (CoderEnv, "random", RandomTester()),
        (CoderEnv, "fuzz", FuzzTester()),
    ],
)
def test_an_opponent_that_is_named_plays_as_the_player_of_that_name(
    make: Any, named: str, player: Player, sandbox: LocalSandbox
) -> None:
    def shown(opponent: Any) -> list[Any]:
        view = make([DOUBLE], opponent=opponent, sandbox=sandbox)
        return [view.reset(seed=4), view.step(SQUARE if make is CoderEnv else SUITE)]

    assert shown(named) == shown(player)


def test_options_choose_the_question_and_that_of_pettingzoos_tests_is_let_through() -> None:
    game = parallel_env()
    for problem_id in list(BY_ID)[:3]:
        options = {"problem_id": problem_id, "options": 1}
        assert game.reset(seed=0, options=options)[1][CODER]["problem_id"] == problem_id
    with pytest.raises(ConfigurationError, match=r"options\['problem_id'\] must name a problem .*, got 'nowhere'"):
        game.reset(options={"problem_id": "nowhere"})


def test_a_given_sandbox_stays_open_and_an_own_one_is_stopped(sandbox: LocalSandbox) -> None:
    game = parallel_env([DOUBLE], sandbox=sandbox)
    play(game, RIGHT, SUITE)
    game.close()
    assert play(parallel_env([DOUBLE], sandbox=sandbox), RIGHT, SUITE)[CODER] == 1.0
    own = parallel_env([DOUBLE])
    play(own, RIGHT, SUITE)
    own.close()
    with warnings.catch_warnings():
        warnings.simplefilter("error", ResourceWarning)
        del own


class TestItsPage:
    """docs/environment.md, whose examples `test_docs.py` runs."""

    PAGE = (Path(__file__).parents[1] / "docs" / "environment.md").read_text()

    def test_its_tables_name_every_key_argument_opponent_and_render_mode(self) -> None:
        keys = re.findall(r"^\| `(\w+)` \| `(?:FreeText|Discrete)", self.PAGE, re.MULTILINE)
        assert set(keys) == set(parallel_env().observation_space(CODER).spaces)
        table = self.PAGE.split("| argument |")[1].split("\n\n")[0]
        assert re.findall(r"^\| `(\w+)`", table, re.MULTILINE) == [*inspect.signature(env).parameters, "opponent"]
        opponents = re.findall(r"^\| `codea1_env/(\w+)-v0` \| (.*) \|$", self.PAGE, re.MULTILINE)
        named = {view: set(re.findall(r"`(\w+)` ", names)) for view, names in opponents}
        assert named == {"Coder": set(CoderEnv.opponents), "Tester": set(TesterEnv.opponents)}
        (modes,) = re.findall(r"^\| Render modes \| (.*html.*) \|$", self.PAGE, re.MULTILINE)
        assert modes == ", ".join(f"`{mode}`" for mode in RENDER_MODES)

    def test_its_sizes_of_the_discrete_game_are_those_of_the_bundled_pools(self) -> None:
        game = discrete.parallel_env()
        assert f"`{game.action_space(CODER)}` for the bundled pools" in self.PAGE
        assert f"`{game.observation_space(CODER)}` for the bundled pools" in self.PAGE
