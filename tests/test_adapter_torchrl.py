"""The discrete game under TorchRL as it is: its checks, groups, masks, rewards, and seats that learn."""

import multiprocessing
import re
import runpy
from pathlib import Path
from typing import Any

import pytest

from codea1_env import discrete
from codea1_env.adapters.torchrl import MasksOnly, torchrl_env
from codea1_env.envs.episode import CODER, TESTER
from codea1_env.rewards.code_a1 import RewardConfig

# What TorchRL and its parts deprecate in one another, and that this PettingZoo is not the one of their own tests.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")

EXAMPLE = Path(__file__).parents[1] / "examples" / "torchrl_discrete.py"
POOLS = discrete.bundled_pools()[:4]
TWO = RewardConfig(suite_size=2)


@pytest.fixture(scope="module", autouse=True)
def _torchrl() -> None:
    """Loaded here, since it takes a second: whoever collects these tests need not run them. It sets "spawn" for the
    whole process; what other tests start is not its business."""
    pytest.importorskip("torchrl", reason="TorchRL comes with the extra `torchrl`")
    multiprocessing.set_start_method(None, force=True)


def game(**options: Any) -> Any:
    return torchrl_env(discrete.parallel_env(POOLS, rewards=TWO, **options), seed=0)


@pytest.mark.parametrize("masks", ["infos", "observations"])
@pytest.mark.parametrize("simultaneous", [False, True])
def test_torchrls_check_finds_nothing_wrong(masks: str, simultaneous: bool) -> None:
    from torchrl.envs.utils import check_env_specs

    check_env_specs(game(masks=masks, simultaneous=simultaneous))


def test_the_bare_game_takes_torchrls_other_groups() -> None:
    from torchrl.envs import MarlGroupMapType, PettingZooWrapper
    from torchrl.envs.utils import check_env_specs

    both = PettingZooWrapper(
        env=MasksOnly(discrete.parallel_env(POOLS, rewards=TWO)), group_map=MarlGroupMapType.ALL_IN_ONE_GROUP
    )
    check_env_specs(both)
    assert both.rollout(3)["agents", "observation"].shape[:2] == (3, 2)


def test_each_seat_is_a_group_of_its_own_with_masks_and_rewards() -> None:
    made = game()
    assert made.group_map == {"coder": [CODER], "tester": [TESTER]}
    alone = discrete.parallel_env(POOLS, rewards=TWO)
    for seed in range(5):
        made.set_seed(seed)  # which begins an episode; the rollout begins the next
        played = made.rollout(10)
        assert played.shape == (3,)  # a pick of the coder, two of the tester
        assert played["next", "done"].flatten().tolist() == [False, False, True]
        alone.reset(seed=seed)
        infos = alone.reset()[1]
        for step in played:
            picks = {agent: int(step[group, "action"][0]) for group, agent in (("coder", CODER), ("tester", TESTER))}
            for group, agent in (("coder", CODER), ("tester", TESTER)):
                assert step[group, "action_mask"][0].tolist() == infos[agent]["action_mask"].astype(bool).tolist()
                assert infos[agent]["action_mask"][picks[agent]] == 1  # TorchRL's own draws keep to the masks
            _, rewards, _, _, infos = alone.step(picks)
            assert step["next", "coder", "reward"].item() == pytest.approx(rewards[CODER])
            assert step["next", "tester", "reward"].item() == pytest.approx(rewards[TESTER])


def test_equal_seeds_give_equal_games() -> None:
    import torch

    played = []
    for _ in range(2):
        torch.manual_seed(5)
        played.append(game().rollout(30, break_when_any_done=False))
    assert (played[0] == played[1]).all()


def test_the_example_is_short() -> None:
    assert len(EXAMPLE.read_text().splitlines()) <= 32


@pytest.mark.slow
def test_both_seats_learn_in_the_example(capsys: pytest.CaptureFixture[str]) -> None:
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # for so small a network more threads only wait for each other
    try:
        runpy.run_path(str(EXAMPLE), run_name="__main__")
    finally:
        torch.set_num_threads(threads)
    shown = re.findall(r"coder ([01]\.\d\d), tester ([01]\.\d\d)", capsys.readouterr().out)
    (coder, tester), (coder_after, tester_after) = (map(float, shown[place]) for place in (0, -1))
    assert coder_after > coder + 0.1
    assert tester_after > tester + 0.1
