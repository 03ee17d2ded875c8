"""The discrete game under RLlib as it is: its checks, its accounting of turns and rewards, and PPO in both seats."""

import re
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from codea1_env import discrete
from codea1_env.envs.episode import CODER, TESTER
from codea1_env.errors import ConfigurationError
from codea1_env.rewards.code_a1 import RewardConfig

pytest.importorskip("ray.rllib", reason="RLlib has a test environment of its own: make test-adapter-rllib")
pytest.importorskip("torch")

from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.rl_module import MultiRLModuleSpec, RLModuleSpec
from ray.rllib.env.multi_agent_episode import MultiAgentEpisode
from ray.rllib.examples.rl_modules.classes.action_masking_rlm import ActionMaskingTorchRLModule
from ray.rllib.utils.pre_checks.env import check_multiagent_environments

from codea1_env.adapters.rllib import DiscreteMultiAgentEnv

pytestmark = pytest.mark.rllib

EXAMPLE = Path(__file__).parents[1] / "examples" / "rllib_discrete.py"
POOLS = discrete.bundled_pools()[:4]
TWO = RewardConfig(suite_size=2)
SEATS = (CODER, TESTER)


@pytest.fixture(scope="module", autouse=True)
def _cluster() -> Iterator[None]:
    import ray
    from ray_clusters import start_cluster

    start_cluster(num_cpus=2)
    yield
    ray.shutdown()


class Strict(DiscreteMultiAgentEnv):
    """Refuses what the mask leaves out."""

    def step(self, action_dict: Any) -> Any:
        (agent,) = action_dict
        assert self._episode.mask(agent)[action_dict[agent]] == 1, f"{agent} must keep to its mask"
        return super().step(action_dict)


def config(env: type) -> Any:
    """PPO in both seats with RLlib's own masking; small."""
    masked = {seat: RLModuleSpec(module_class=ActionMaskingTorchRLModule) for seat in SEATS}
    return (
        PPOConfig()
        .environment(env, env_config={"pools": POOLS, "rewards": TWO}, disable_env_checking=env is Strict)
        .multi_agent(policies=set(SEATS), policy_mapping_fn=lambda seat, *_, **__: seat)
        .rl_module(rl_module_spec=MultiRLModuleSpec(rl_module_specs=masked))
        .env_runners(num_env_runners=0)
        .training(train_batch_size_per_learner=60, minibatch_size=30, num_epochs=2)
        .debugging(seed=0)
    )


@pytest.mark.parametrize("masks", ["observations", "infos"])
@pytest.mark.parametrize("simultaneous", [False, True])
def test_rllibs_check_finds_nothing_wrong(masks: str, simultaneous: bool) -> None:
    game = DiscreteMultiAgentEnv({"pools": POOLS, "masks": masks, "simultaneous": simultaneous})
    check_multiagent_environments(game)
    for agent in SEATS:
        assert game.get_action_space(agent) == discrete.parallel_env(POOLS).action_space(agent)
    for seed in range(3):
        seen, _ = game.reset(seed=seed)
        over = False
        while not over:
            assert all(game.get_observation_space(agent).contains(each) for agent, each in seen.items())
            seen, _, terminated, truncated, _ = game.step(dict.fromkeys(seen, 0))
            over = terminated["__all__"]
            assert not truncated["__all__"]


def test_only_the_seat_whose_turn_it_is_sees_and_at_the_end_both() -> None:
    game = DiscreteMultiAgentEnv({"pools": POOLS, "rewards": TWO})
    seen, infos = game.reset(seed=0)
    assert (set(seen), set(infos)) == ({CODER}, {CODER})
    seen, rewards, terminated, _, infos = game.step({CODER: 0})
    assert (set(seen), rewards, terminated, set(infos)) == ({TESTER}, {CODER: 0.0}, {"__all__": False}, {TESTER})
    seen, rewards, terminated, _, _ = game.step({TESTER: 0})
    assert (set(seen), rewards, terminated) == ({TESTER}, {TESTER: 0.0}, {"__all__": False})
    seen, rewards, terminated, _, infos = game.step({TESTER: 1})
    assert (set(seen), set(rewards), terminated, set(infos)) == (set(SEATS), set(SEATS), {"__all__": True}, set(SEATS))


def test_it_plays_the_parallel_game_of_the_same_seed() -> None:
    game, parallel = DiscreteMultiAgentEnv(), discrete.parallel_env(masks="observations")
    for episode in range(5):
        seed = 4 if episode == 0 else None
        (seen, infos), (expected, _) = game.reset(seed=seed), parallel.reset(seed=seed)
        for pick in range(9):
            for agent, each in seen.items():
                assert (each["observations"] == expected[agent]["observation"]).all()
                assert (each["action_mask"] == expected[agent]["action_mask"]).all()
                assert each["action_mask"].dtype == np.float32
                assert infos[agent]["problem_id"] in {pool.problem_id for pool in discrete.bundled_pools()}
            expected, paid, *_ = parallel.step({CODER: pick % 3, TESTER: pick})
            seen, rewards, terminated, _, infos = game.step(
                {agent: pick % 3 if agent == CODER else pick for agent in seen}
            )
        assert terminated["__all__"]
        assert rewards == paid
        assert infos[CODER]["score"]["coder"] == paid[CODER]


def test_rllibs_episodes_credit_each_seats_picks_with_its_reward() -> None:
    game = DiscreteMultiAgentEnv({"pools": POOLS, "rewards": TWO})
    episode = MultiAgentEpisode(agent_to_module_mapping_fn=lambda seat, *_, **__: seat)
    seen, infos = game.reset(seed=1)
    episode.add_env_reset(observations=seen, infos=infos)
    while not episode.is_done:
        picks = dict.fromkeys(seen, 1)
        seen, rewards, terminated, truncated, infos = game.step(picks)
        episode.add_env_step(seen, picks, rewards, infos, terminateds=terminated, truncateds=truncated)
    coder, tester = (list(episode.agent_episodes[agent].get_rewards()) for agent in SEATS)
    assert coder == [rewards[CODER]]
    assert tester == [0.0, rewards[TESTER]]
    assert rewards[CODER] + rewards[TESTER] > 0


def test_the_text_games_options_and_wrong_values_are_refused() -> None:
    with pytest.raises(
        ConfigurationError, match=r"options of the discrete game, pools, .*, got problems, sandbox; RLlib needs arrays"
    ):
        DiscreteMultiAgentEnv({"problems": [], "sandbox": None})
    with pytest.raises(ConfigurationError, match="env_config must be a dictionary of options, got tuple"):
        DiscreteMultiAgentEnv(POOLS)
    for wrong in ({"masks": "nowhere"}, {"pools": []}, {"render_mode": "html"}):
        with pytest.raises(ConfigurationError, match=f"{next(iter(wrong))} must"):
            DiscreteMultiAgentEnv(wrong)
    game = DiscreteMultiAgentEnv({"pools": POOLS, "rewards": TWO, "render_mode": "ansi"})
    game.reset()
    for wrong in ({TESTER: 0}, {}, {CODER: "0"}, {CODER: 10**30}):
        with pytest.raises(ConfigurationError, match=r"must hold the action of coder_0|an action must be"):
            game.step(wrong)
    assert "turn: coder_0" in game.render()
    for picks in ({CODER: 0}, {TESTER: 0}, {TESTER: 0}):
        game.step(picks)
    with pytest.raises(Exception, match="an episode must be running"):
        game.step({TESTER: 0})


@pytest.mark.parametrize("runners", [0, 1])
def test_ppo_trains_both_seats_within_their_masks(runners: int) -> None:
    # In this process a game that is strict about masks; in others the game as it comes, after RLlib's checks of it.
    game = DiscreteMultiAgentEnv if runners else Strict
    algorithm = config(game).env_runners(num_env_runners=runners, num_envs_per_env_runner=2).build_algo()
    try:
        before = {seat: algorithm.get_module(seat).state_dict() for seat in SEATS}
        before = {seat: {name: value.clone() for name, value in state.items()} for seat, state in before.items()}
        results = [algorithm.train() for _ in range(3)]
        for seat in SEATS:
            assert results[-1]["learners"][seat]["num_module_steps_trained_lifetime"] > 0
            after = algorithm.get_module(seat).state_dict()
            assert any((after[name] != value).any() for name, value in before[seat].items())
        returns = results[-1]["env_runners"]["agent_episode_returns_mean"]
        assert all(0 <= returns[seat] <= 1 for seat in SEATS)
    finally:
        algorithm.stop()


def test_the_example_is_short() -> None:
    assert len(EXAMPLE.read_text().splitlines()) <= 32


def test_the_example_learns(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    shown = re.findall(r"coder ([01]\.\d\d), tester ([01]\.\d\d)", capsys.readouterr().out)
    assert len(shown) == 6
    (coder, tester), (coder_after, tester_after) = (map(float, shown[place]) for place in (0, -1))
    assert coder_after > coder + 0.08
    assert tester_after > tester - 0.1
