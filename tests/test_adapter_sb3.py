"""The discrete game under SuperSuit and Stable-Baselines3 as they are: spaces, vectors, masks, and PPO that learns."""

import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

from codea1_env import discrete
from codea1_env.registration import DISCRETE_CODER_ID, DISCRETE_TESTER_ID

# Each test imports them: collecting, which all processes do, would otherwise take a second longer in every one.
missing = [name for name in ("supersuit", "stable_baselines3") if find_spec(name) is None]
EXAMPLE = Path(__file__).parents[1] / "examples" / "sb3_discrete_coder.py"
# Older Stable-Baselines3 and SuperSuit use what newer libraries beneath them deprecate: not ours to mend.
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning"),
    pytest.mark.skipif(bool(missing), reason="SuperSuit and Stable-Baselines3 come with the extra `sb3`"),
]


@pytest.fixture(autouse=True)
def _one_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    import torch

    monkeypatch.setenv("SB3_LOGDIR", str(tmp_path))  # or it leaves a folder of logs for each learner
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def ppo(games: Any, **options: Any) -> Any:
    from stable_baselines3 import PPO

    return PPO("MlpPolicy", games, n_steps=18, batch_size=18, device="cpu", **options)


def test_stable_baselines3_finds_nothing_wrong_with_the_views() -> None:
    from stable_baselines3.common.env_checker import check_env

    for env_id in (DISCRETE_CODER_ID, DISCRETE_TESTER_ID):
        check_env(gymnasium.make(env_id).unwrapped)


def test_supersuits_vector_of_both_seats_shows_what_the_game_shows() -> None:
    import supersuit

    vector = supersuit.pettingzoo_env_to_vec_env_v1(discrete.parallel_env())
    assert vector.num_envs == 2  # a slot for each seat
    seen, _ = vector.reset(seed=4)
    alone = discrete.parallel_env()
    expected, _ = alone.reset(seed=4)
    assert (seen == np.stack(list(expected.values()))).all()
    for action in range(9):  # with the last step the vector begins the next game
        _, rewards, terminated, _, _ = vector.step(np.array([action, action]))
        paid = alone.step({"coder_0": action, "tester_0": action})[1]
        assert rewards.tolist() == pytest.approx(list(paid.values()))
    assert terminated.all()
    assert rewards.any()


def test_one_network_can_train_in_both_seats() -> None:
    import supersuit

    vector = supersuit.pettingzoo_env_to_vec_env_v1(discrete.parallel_env())
    games = supersuit.concat_vec_envs_v1(vector, 2, num_cpus=0, base_class="stable_baselines3")
    learner = ppo(games)  # not seeded: SuperSuit's vector has no `seed`
    learner.learn(72)
    assert learner.num_timesteps == 72


def test_the_views_train_as_they_are_made() -> None:
    for env_id in (DISCRETE_CODER_ID, DISCRETE_TESTER_ID):
        learner = ppo(gymnasium.make(env_id), seed=0)
        learner.learn(36)
        assert learner.num_timesteps == 36


def test_masked_ppo_finds_the_masks() -> None:
    contrib = pytest.importorskip("sb3_contrib", reason="MaskablePPO comes with sb3-contrib")
    game = gymnasium.make(DISCRETE_TESTER_ID)
    learner = contrib.MaskablePPO("MlpPolicy", game, n_steps=18, batch_size=18, device="cpu", seed=0)
    learner.learn(36)
    seen, info = game.reset(seed=0)
    for _ in range(8):
        action, _ = learner.predict(seen, action_masks=game.unwrapped.action_masks())
        assert info["action_mask"][action] == 1
        seen, _, _, _, info = game.step(action)


def test_the_example_is_short() -> None:
    assert len(EXAMPLE.read_text().splitlines()) <= 32


@pytest.mark.slow
def test_ppo_learns_the_coders_seat_against_the_attacking_tester(capsys: pytest.CaptureFixture[str]) -> None:
    import runpy

    runpy.run_path(str(EXAMPLE), run_name="__main__")
    before, after = map(float, re.findall(r"\b[01]\.\d\d\b", capsys.readouterr().out))
    # A random pick earns 0.3 or so; the reference, the best there is, 1.
    assert before < 0.6
    assert after > 0.9
