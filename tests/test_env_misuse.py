"""The environments in wrong and in rough hands: arguments, actions, orders of calls, copies, vectors, wrappers."""

import copy
import dataclasses
import pickle
import re
import subprocess
import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from double_question import DOUBLE, SQUARE
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import RecordEpisodeStatistics, TimeLimit
from pettingzoo.utils.wrappers import BaseParallelWrapper, MultiEpisodeEnv, MultiEpisodeParallelEnv

from codea1_env import discrete, vector_env
from codea1_env.arena.arena import Arena
from codea1_env.discrete.single_seat import DiscreteCoderEnv, DiscreteTesterEnv
from codea1_env.envs.environment import env, parallel_env, raw_env
from codea1_env.envs.episode import CODER, TESTER
from codea1_env.envs.single_seat import CoderEnv, TesterEnv
from codea1_env.errors import ConfigurationError, PlayerError, SandboxError
from codea1_env.mistake_book.book import MistakeBook
from codea1_env.players import GoldenTester, OracleCoder, Request, Response, Sampling
from codea1_env.problems import Problem, TestCase
from codea1_env.records.recording import Recorder
from codea1_env.registration import CODER_ID, DISCRETE_TESTER_ID
from codea1_env.rewards.code_a1 import RewardConfig
from codea1_env.sandbox import LocalSandbox

WITHOUT = dataclasses.replace(DOUBLE, golden_tests=())
SUITE = "assert double(2) == 4\nassert double(3) == 6\n"
PAID = {CODER: 1 / 2, TESTER: (2 / 8 + 1 / 8) / 2}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"problems": []}, "problems must hold at least one problem, got none"),
        ({"problems": [DOUBLE, DOUBLE]}, r"must have distinct problem ids, got these more than once: \['double'\]"),
        ({"problems": [Problem("x", "q", "f")]}, "must have a reference_solution.*got none for 'x'"),
        ({"problems": DOUBLE}, "problems must be None or a list of Problems, got Problem"),
        ({"problems": "double"}, "path of a problem file, got 'double', which cannot be read: No such file or direct"),
        ({"problems": b"double"}, "problems must be None or a list of Problems, got bytes"),
        ({"problems": [DOUBLE, "double"]}, "problems must be None or a list of Problems, got str in it"),
        ({"problems": np.array(DOUBLE)}, "problems must be None or a list of Problems, got ndarray"),
        ({"sandbox": "docker"}, "sandbox must be None or a sandbox, as .*, got 'docker'"),
        ({"sandbox": LocalSandbox}, "sandbox must be None or a sandbox"),
        ({"sandbox": subprocess}, "sandbox must be None or a sandbox"),
        ({"rewards": None}, "rewards must be a codea1_env.RewardConfig, got None"),
        ({"rewards": RewardConfig(oracle="majority")}, "rewards.oracle must be reference or golden where .*'majority'"),
        ({"problems": [WITHOUT], "rewards": RewardConfig(tester_reward="cure")}, "must have golden_tests .*'double'"),
        ({"problems": [WITHOUT], "rewards": RewardConfig(oracle="golden")}, "must have golden_tests .*'double'"),
        ({"book": "book.jsonl"}, "book must be None or a codea1_env.MistakeBook, got 'book.jsonl'"),
        ({"recorder": "games.jsonl"}, "recorder must be None or a codea1_env.records.recording.Recorder, got"),
        ({"max_text_length": 0}, "max_text_length must be at least 1, got 0"),
        ({"max_text_length": 1e6}, "max_text_length must be an int of at least 1, got 1000000.0"),
        ({"max_text_length": "long"}, "max_text_length must be an int of at least 1, got 'long'"),
        ({"max_text_length": 20}, "max_text_length must be at least .*, got 20"),
        ({"problems": [DOUBLE], "max_text_length": 20}, "max_text_length must be at least 53, .*'double', got 20"),
        *(({"render_mode": mode}, "render_mode must be None or one of") for mode in (["human"], np.array([1, 2]))),
        ({"render_mode": "video"}, "render_mode must be None or one of human, ansi, html, rgb_array, got 'video'"),
        *(({"rounds": n}, r"rounds must be a whole number in \[1, 1000\], got") for n in (0, -1, 1.0, True, 1001, "2")),
    ],
)
def test_an_argument_that_no_game_can_have_is_refused_when_it_is_made(arguments: dict[str, Any], message: str) -> None:
    for make in (parallel_env, raw_env, env, CoderEnv, TesterEnv):
        with pytest.raises(ConfigurationError, match=message):
            make(**arguments)


@pytest.mark.parametrize("testers", [0, 101, 1.0, True, "2", None])
def test_the_number_of_testers_is_a_whole_number(testers: Any) -> None:
    for make in (env, parallel_env):
        with pytest.raises(ConfigurationError, match=r"testers must be a whole number in \[1, 100\], got "):
            make([DOUBLE], testers=testers)


def test_an_opponent_that_is_none_is_refused_when_the_view_is_made() -> None:
    for wrong in ("golden", "", OracleCoder, 5):
        with pytest.raises(
            ConfigurationError, match=r"opponent must be None, one of oracle, mutant, or a player .*, got"
        ):
            TesterEnv(opponent=wrong)
    with pytest.raises(ConfigurationError, match=r"None, one of golden, random, fuzz, or a player .*, got 'oracle'"):
        CoderEnv(opponent="oracle")
    with pytest.raises(ConfigurationError, match=r"opponent must be a policy .*, got 'uniform'"):
        DiscreteCoderEnv(opponent="uniform")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"pools": "all"}, "pools must be None or a list of Pools, got str"),
        ({"pools": [DOUBLE]}, "pools must be None or a list of Pools, got Problem in it"),
        ({"pools": []}, "at least one pool"),
        ({"pools": discrete.bundled_pools()[:1] * 2}, "distinct problem ids"),
        ({"rewards": 0.5}, "rewards must be a codea1_env.RewardConfig, got 0.5"),
        ({"masks": "nowhere"}, "masks must be"),
        ({"render_mode": "html"}, "render_mode must be"),
    ],
)
def test_the_discrete_game_refuses_arguments_of_another_kind(arguments: dict[str, Any], message: str) -> None:
    for make in (discrete.parallel_env, discrete.env, DiscreteCoderEnv):
        with pytest.raises(ConfigurationError, match=message):
            make(**arguments)


@pytest.mark.parametrize("make", [parallel_env, raw_env, CoderEnv, discrete.parallel_env, DiscreteCoderEnv])
def test_options_of_another_kind_are_refused_and_a_seed_must_be_a_whole_number(make: Callable[..., Any]) -> None:
    game = make()
    game.reset(seed=1)
    for options in ([1], 5, "problem_id"):
        with pytest.raises(ConfigurationError, match="options must be None or a dictionary, got"):
            game.reset(options=options)
    with pytest.raises(ConfigurationError, match=r"options must have no other names than .*problem_id, got 'foo'"):
        game.reset(options={"foo": 1})
    game.reset(options={"options": 1})  # as PettingZoo's own tests have it
    for problem_id in (["double"], None, 3, "nobody's"):
        with pytest.raises(ConfigurationError, match="must name a"):
            game.reset(options={"problem_id": problem_id})
    for seed in (-1, 1.0, "1"):
        with pytest.raises(gymnasium.error.Error, match="Seed must be"):
            game.reset(seed=seed)


@pytest.mark.parametrize(
    "make",
    [
        parallel_env,
        raw_env,
        CoderEnv,
        TesterEnv,
        discrete.parallel_env,
        discrete.raw_env,
        DiscreteCoderEnv,
        DiscreteTesterEnv,
    ],
)
def test_an_unknown_argument_names_the_class_that_was_asked_for(make: Callable[..., Any]) -> None:
    with pytest.raises(TypeError, match=rf"^{make.__name__}\.__init__\(\) got an unexpected keyword argument 'foo'"):
        make(foo=1)

    class Own(make):  # type: ignore[misc, valid-type]
        def __init__(self) -> None:
            super().__init__(render_mode="ansi")

    assert Own().render_mode == "ansi"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"book": {}}, "book must be None or a codea1_env.MistakeBook, got {}"),
        ({"config": {"alpha": 1}}, "config must be None or a codea1_env.RewardConfig, got {'alpha': 1}"),
        ({"sandbox": LocalSandbox}, "sandbox must be a sandbox, as codea1_env.open_sandbox makes it, got <class"),
        ({"sandbox": None}, "sandbox must be a sandbox, as codea1_env.open_sandbox makes it, got None"),
        ({"on_score": []}, "on_score must be None or callable, got []"),
    ],
)
def test_an_arena_refuses_arguments_of_another_kind(wrong: dict[str, Any], message: str, sandbox: LocalSandbox) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(message)):
        Arena(**({"sandbox": sandbox} | wrong))


@pytest.mark.parametrize("actions", [None, 5, CODER, [CODER], {1: "", "b": ""}, {}, {TESTER: SUITE}])
def test_what_is_no_dictionary_of_actions_is_refused_and_the_episode_stands(
    actions: Any, sandbox: LocalSandbox
) -> None:
    games: list[tuple[Any, Any]] = [(parallel_env([DOUBLE], sandbox=sandbox), SQUARE), (discrete.parallel_env(), 0)]
    for game, action in games:
        game.reset(seed=0)
        with pytest.raises(ConfigurationError, match="actions must hold the action of coder_0 now, got"):
            game.step(actions)
        assert game.agents == [CODER, TESTER]
        game.step({CODER: action})


@pytest.mark.parametrize("name", ["testr_0", "coder", 0, None])
def test_an_action_of_an_agent_that_is_not_there_is_refused_and_the_episode_stands(
    name: Any, sandbox: LocalSandbox
) -> None:
    makers: list[tuple[Any, Any]] = [
        (parallel_env([DOUBLE], sandbox=sandbox), SQUARE),
        (vector_env(1, [DOUBLE], sandbox=sandbox), [SQUARE]),
        (discrete.parallel_env(), 0),
    ]
    for game, action in makers:
        game.reset(seed=0)
        with pytest.raises(ConfigurationError, match=f"actions must be of coder_0, tester_0, got one of {name}"):
            game.step({CODER: action, name: action})
        game.step({CODER: action})


@pytest.mark.parametrize("response", [None, b"assert True", bytearray(), 5, ["x"], np.array("x"), {"text": ""}])
def test_a_response_that_is_no_text_is_refused_by_every_face_and_the_episode_stands(
    response: Any, sandbox: LocalSandbox
) -> None:
    message = "a response must be a string, got"
    for turns in (raw_env([DOUBLE], sandbox=sandbox), env([DOUBLE], sandbox=sandbox)):
        turns.reset()
        with pytest.raises(ConfigurationError, match=message):
            turns.step(response)
        turns.step(SQUARE)
        with pytest.raises(ConfigurationError, match=message):
            turns.step(response)
        turns.step(SUITE)
        assert turns.rewards == PAID
    parallel = parallel_env([DOUBLE], sandbox=sandbox)
    parallel.reset()
    with pytest.raises(ConfigurationError, match=message):
        parallel.step({CODER: response})
    parallel.step({CODER: SQUARE})
    view = TesterEnv([DOUBLE], opponent=OracleCoder(), sandbox=sandbox)
    view.reset()
    with pytest.raises(ConfigurationError, match=message):
        view.step(response)
    assert view.step(SUITE)[1] == 1 / 8  # two valid tests, none that breaks the oracle


@pytest.mark.parametrize("make", [raw_env, discrete.raw_env])
def test_a_turn_outside_an_episode_is_refused(make: Callable[..., Any]) -> None:
    game = make()
    with pytest.raises(gymnasium.error.ResetNeeded, match="got a step outside of one"):
        game.step("")
    game.reset(seed=0)
    while game.agents:
        response = 0 if make is discrete.raw_env else ""
        game.step(None if game.terminations[game.agent_selection] else response)
    for action in (None, "", 0):
        with pytest.raises(gymnasium.error.ResetNeeded, match="got a step outside of one"):
            game.step(action)
    game.reset()
    assert game.agents == [CODER, TESTER]
    game.close()


class FallsOver:
    """A player that has no answer the first time."""

    def __init__(self) -> None:
        self._answers = GoldenTester()
        self.falls = True

    def respond(
        self, requests: Sequence[Request], n: int = 1, sampling: Sampling | None = None, seed: int = 0
    ) -> list[list[Response]]:
        if self.falls:
            self.falls = False
            raise SandboxError("no answer")
        return self._answers.respond(requests, n, seed=seed)


def test_what_was_meant_for_one_seat_is_never_taken_for_the_others(sandbox: LocalSandbox) -> None:
    view = CoderEnv([DOUBLE], opponent=FallsOver(), sandbox=sandbox)
    view.reset()
    with pytest.raises(SandboxError, match="no answer"):
        view.step(SQUARE)
    with pytest.raises(gymnasium.error.ResetNeeded, match="in which coder_0 is to act"):
        view.step(SUITE)  # it is the tester's turn: this would be its suite
    view.reset()
    assert view.step(SQUARE)[1] == 1.0  # the golden test does not see it


def through_pickle(game: Any) -> Any:
    return pickle.loads(pickle.dumps(game))


@pytest.mark.parametrize("copied", [copy.deepcopy, through_pickle])
class TestCopies:
    def test_a_copy_goes_on_where_the_game_stands_and_neither_touches_the_other(self, copied: Any) -> None:
        game = parallel_env([DOUBLE], book=MistakeBook())
        game.reset(seed=1)
        game.step({CODER: SQUARE})
        game.step({TESTER: SUITE})  # its sandbox runs now
        game.reset()
        game.step({CODER: SQUARE})
        twin = copied(game)
        theirs = twin.step({TESTER: SUITE})[1]
        assert len(twin.book) == len(game.book) == 1
        assert game.book.frequencies("double") == {TestCase("double(3)", "6"): 1}
        ours = game.step({TESTER: SUITE})[1]
        assert ours == theirs
        twin.close()
        game.reset(seed=1)
        game.step({CODER: SQUARE})
        assert game.step({TESTER: SUITE})[1] == PAID
        game.close()

    @pytest.mark.parametrize("make", [env, TesterEnv, discrete.env, discrete.parallel_env, DiscreteCoderEnv])
    def test_copies_draw_the_same_questions(self, copied: Any, make: Callable[..., Any]) -> None:
        def drawn(game: Any) -> list[str]:
            ids = []
            for _ in range(5):
                shown = game.reset()
                infos = game.infos if shown is None else shown[1]
                ids.append(infos[CODER]["problem_id"] if CODER in infos else infos["problem_id"])
            return ids

        game = make()
        game.reset(seed=3)
        twin = copied(game)
        ids = drawn(game)
        assert ids == drawn(twin)
        assert len(set(ids)) > 1


def test_a_deep_copy_shares_the_callers_sandbox_and_does_not_close_it(sandbox: LocalSandbox) -> None:
    game = parallel_env([DOUBLE], sandbox=sandbox)
    game.reset()
    game.step({CODER: SQUARE})
    twin = copy.deepcopy(game)
    assert twin.step({TESTER: SUITE})[1] == PAID
    twin.close()
    assert game.step({TESTER: SUITE})[1] == PAID


def test_a_deep_copy_shares_the_opponent() -> None:
    class Locked(GoldenTester):
        def __init__(self) -> None:
            self.lock = threading.Lock()

    view = CoderEnv([DOUBLE], opponent=Locked())
    view.reset(seed=1)
    twin = copy.deepcopy(view)
    twin.reset(seed=2)
    assert twin.step(SQUARE)[1] == view.step(SQUARE)[1]
    twin.close()
    view.close()


def test_a_deep_copy_of_what_gymnasium_made_shares_them_too(sandbox: LocalSandbox, tmp_path: Path) -> None:
    class Locked(GoldenTester):
        def __init__(self) -> None:
            self.lock = threading.Lock()

    with Recorder(tmp_path / "games.jsonl") as recorder:
        lent = {"opponent": Locked(), "sandbox": sandbox, "recorder": recorder}
        view = gymnasium.make("codea1_env/Coder-v0", problems=[DOUBLE], **lent)
        view.reset(seed=1)
        twin = copy.deepcopy(view)
        assert twin.step(SQUARE)[1] == view.step(SQUARE)[1]
        twin.close()
        view.reset(seed=1)
        assert view.step(SQUARE)[1] == 1.0


class TestVectors:
    def test_infos_of_problems_with_and_without_a_reference_stand_side_by_side(self) -> None:
        """Only the first has an oracle's error."""
        alone = Problem("a", "", "double", golden_tests=DOUBLE.golden_tests)
        rewards = RewardConfig(oracle="golden")
        games = [partial(CoderEnv, [problem], opponent="golden", rewards=rewards) for problem in (DOUBLE, alone)]
        vector = SyncVectorEnv(games, autoreset_mode=AutoresetMode.SAME_STEP)
        vector.reset(seed=0)
        for _ in range(2):
            infos = vector.step((SQUARE, SQUARE))[4]
            assert infos["final_info"]["_score"].tolist() == [True, True]
        vector.close()

    def test_vectors_that_would_garble_texts_are_refused(self) -> None:
        with pytest.raises(ValueError, match="shared_memory=False"):
            AsyncVectorEnv([lambda: TesterEnv([DOUBLE])] * 2)
        with pytest.raises(ValueError, match="shared_memory=False"):
            gymnasium.make_vec(CODER_ID, num_envs=2, vectorization_mode="async")

    @pytest.mark.parametrize("asynchronous", [False, True])
    @pytest.mark.parametrize("mode", AutoresetMode)
    def test_every_mode_of_beginning_anew_pays_every_action_that_counts(
        self, mode: AutoresetMode, asynchronous: bool
    ) -> None:
        makers = [lambda: TesterEnv([DOUBLE], opponent=OracleCoder())] * 2
        vector: Any = (
            AsyncVectorEnv(makers, shared_memory=False, autoreset_mode=mode)
            if asynchronous
            else SyncVectorEnv(makers, autoreset_mode=mode)
        )
        vector.reset(seed=0)
        paid = []
        for step in range(3):
            if step and mode is AutoresetMode.DISABLED:
                vector.reset(options={"reset_mask": np.array([True, True])})
            observations, rewards, terminated, _, _ = vector.step((SUITE, "assert double(1) == 2"))
            paid.append(rewards.tolist())
            assert observations["question"] == (DOUBLE.question,) * 2
            assert terminated.all() or rewards.tolist() == [0, 0]
        vector.close()
        right = [2 / 16, 1 / 16]
        # Gymnasium's default spends every second step of one-step episodes on beginning anew.
        assert paid == ([right, [0, 0], right] if mode is AutoresetMode.NEXT_STEP else [right] * 3)

    def test_make_vec_makes_them(self) -> None:
        for env_id, options in ((CODER_ID, {"shared_memory": False}), (DISCRETE_TESTER_ID, {})):
            vector = gymnasium.make_vec(env_id, num_envs=2, vectorization_mode="async", vector_kwargs=options)
            seen, _ = vector.reset(seed=1)
            assert vector.observation_space.contains(seen)
            vector.close()


class TestWrappers:
    def test_gymnasiums_wrappers_count_and_cut(self, sandbox: LocalSandbox) -> None:
        view = RecordEpisodeStatistics(TesterEnv([DOUBLE], opponent=OracleCoder(), sandbox=sandbox))
        view.reset(seed=0)
        info = view.step(SUITE)[4]
        assert (info["episode"]["r"], info["episode"]["l"]) == (1 / 8, 1)
        cut = TimeLimit(TesterEnv([DOUBLE], opponent=OracleCoder(), sandbox=sandbox, rounds=3), 2)
        cut.reset(seed=0)
        assert [cut.step(SUITE)[1:4] for _ in range(2)] == [(1 / 8, False, False), (1 / 8, False, True)]
        with pytest.raises(gymnasium.error.ResetNeeded):
            gymnasium.make(CODER_ID).step("")

    def test_pettingzoos_wrappers_play_several_episodes(self, sandbox: LocalSandbox) -> None:
        parallel = MultiEpisodeParallelEnv(BaseParallelWrapper(parallel_env([DOUBLE], sandbox=sandbox)), num_episodes=2)
        parallel.reset(seed=1)
        steps = [parallel.step({CODER: SQUARE, TESTER: SUITE}) for _ in range(4)]
        assert [step[3][CODER] for step in steps] == [False, False, False, True]
        assert steps[1][1] == PAID
        turns = MultiEpisodeEnv(env([DOUBLE], sandbox=sandbox), num_episodes=2)
        turns.reset(seed=1)
        answers = {CODER: SQUARE, TESTER: SUITE}
        seen = []
        for agent in turns.agent_iter():
            _, _, terminated, truncated, _ = turns.last()
            seen.append(agent)
            turns.step(None if terminated or truncated else answers[agent])
        assert len(seen) == 8


def test_an_opponent_whose_answer_is_none_is_named() -> None:
    class Silent(OracleCoder):
        def respond(self, *_: Any, **__: Any) -> Any:
            return []

    with pytest.raises(PlayerError, match=r"what the player 'oracle-coder' answers must be 1 lists, .* got \[\]"):
        TesterEnv(opponent=Silent()).reset(seed=0)
