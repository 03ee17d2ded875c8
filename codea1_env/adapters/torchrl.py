"""The discrete game for TorchRL: its `PettingZooWrapper` around `codea1_env.discrete.parallel_env`.

    game = torchrl_env(discrete.parallel_env(), seed=0)
    game.rollout(9)["coder", "observation"]

Groups `coder` and `tester`, one seat each, with `action`, `observation`, `action_mask`, `reward`. Both act at every
step; the seat whose turn it is not has one action in its mask, so that nothing it does weighs in a gradient.

TorchRL turns every info into a tensor and wants the same ones at every step, so infos other than the masks are left
out: `MasksOnly` is a PettingZoo environment, for those who call TorchRL's wrapper with options of their own. Not for
the text game: a text is no tensor.
"""

from __future__ import annotations

import importlib
import warnings
from typing import Any

from gymnasium import spaces
from pettingzoo import ParallelEnv
from pettingzoo.utils import BaseParallelWrapper

from codea1_env.envs.faces import Begun, Stepped
from codea1_env.errors import ConfigurationError
from codea1_env.extras import extra


class MasksOnly(BaseParallelWrapper):  # type: ignore[misc]  # PettingZoo ships no types
    """Infos hold `action_mask`, where the environment puts it there, and nothing else."""

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> Begun:
        """As the environment's."""
        observations, infos = super().reset(seed=seed, options=options)
        return observations, _masks(infos)

    def step(self, actions: dict[str, Any]) -> Stepped:
        """As the environment's."""
        observations, rewards, terminations, truncations, infos = super().step(actions)
        return observations, rewards, terminations, truncations, _masks(infos)


def torchrl_env(game: ParallelEnv, seed: int | None = None) -> Any:
    """A `torchrl.envs.PettingZooWrapper` of the discrete game, or of a wrapped one. Actions are indices, not one-hot.

    Raises ImportError without TorchRL, ConfigurationError for a game whose actions are no indices.
    """
    if not isinstance(game, ParallelEnv):
        raise ConfigurationError(f"the game must be a parallel environment (PettingZoo's), got {type(game).__name__}")
    actions = [game.action_space(agent) for agent in game.possible_agents]
    if not all(isinstance(space, spaces.Discrete) for space in actions):
        raise ConfigurationError(
            f"the game must be discrete (codea1_env.discrete.parallel_env), got actions in {actions[0]}; texts are no "
            f"tensors: for the text game see docs/your-algorithm.md"
        )
    with extra("torchrl", "the adapter for TorchRL needs"):
        envs = importlib.import_module("torchrl.envs")
    with warnings.catch_warnings():  # of a PettingZoo other than the one that TorchRL's own tests use
        warnings.filterwarnings("ignore", message="PettingZoo in TorchRL", category=UserWarning)
        return envs.PettingZooWrapper(env=MasksOnly(game), categorical_actions=True, seed=seed)


def _masks(infos: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {
        agent: {name: value for name, value in info.items() if name == "action_mask"} for agent, info in infos.items()
    }
