"""What holds for the adapters without the libraries that they are for."""

import importlib
import sys

import pytest

from codea1_env import discrete
from codea1_env.adapters.torchrl import MasksOnly, torchrl_env
from codea1_env.envs.environment import parallel_env
from codea1_env.envs.episode import CODER, TESTER
from codea1_env.errors import ConfigurationError


def test_rllib_is_named_with_its_extra_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray.rllib.env.multi_agent_env", None)  # as if it were not installed
    monkeypatch.delitem(sys.modules, "codea1_env.adapters.rllib", raising=False)
    with pytest.raises(ImportError, match=r"RLlib needs .*pip install '\.\[rllib\]' in the clone \(got: "):
        importlib.import_module("codea1_env.adapters.rllib")


def test_torchrl_is_named_with_its_extra_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torchrl.envs", None)
    with pytest.raises(ImportError, match=r"TorchRL needs .*pip install '\.\[torchrl\]' in the clone \(got: "):
        torchrl_env(discrete.parallel_env())


def test_torchrl_is_not_given_the_text_game() -> None:
    with pytest.raises(ConfigurationError, match=r"the game must be discrete .*, got actions in FreeText\(100000\)"):
        torchrl_env(parallel_env())
    with pytest.raises(ConfigurationError, match=r"the game must be a parallel environment .*, got raw_env"):
        torchrl_env(discrete.raw_env())


@pytest.mark.parametrize("masks", ["infos", "observations"])
def test_only_masks_are_left_of_infos(masks: str) -> None:
    bare, full = MasksOnly(discrete.parallel_env(masks=masks)), discrete.parallel_env(masks=masks)
    _, infos = bare.reset(seed=1)
    _, expected = full.reset(seed=1)
    for pick in range(9):
        assert [set(infos[agent]) for agent in (CODER, TESTER)] == [{"action_mask"}] * 2
        assert all((infos[agent]["action_mask"] == expected[agent]["action_mask"]).all() for agent in infos)
        *_, infos = bare.step({CODER: 0, TESTER: pick})
        *_, expected = full.step({CODER: 0, TESTER: pick})
    assert bare.agents == []
    assert "score" in expected[CODER]
