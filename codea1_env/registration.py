"""Makes the environments known by name to Gymnasium and, where it has a registry, to PettingZoo.

Does not import the environments: the registries hold paths and import them when one is made.
"""

from __future__ import annotations

import gymnasium
import pettingzoo

DUEL_ID = "codea1_env/Duel-v0"
CODER_ID = "codea1_env/Coder-v0"
TESTER_ID = "codea1_env/Tester-v0"
DISCRETE_ID = "codea1_env/Discrete-v0"
DISCRETE_CODER_ID = "codea1_env/DiscreteCoder-v0"
DISCRETE_TESTER_ID = "codea1_env/DiscreteTester-v0"


def register() -> None:
    """Register everything that is not registered yet."""
    for env_id, entry_point in (
        (CODER_ID, "codea1_env.envs.single_seat:CoderEnv"),
        (TESTER_ID, "codea1_env.envs.single_seat:TesterEnv"),
        (DISCRETE_CODER_ID, "codea1_env.discrete.single_seat:DiscreteCoderEnv"),
        (DISCRETE_TESTER_ID, "codea1_env.discrete.single_seat:DiscreteTesterEnv"),
    ):
        if env_id not in gymnasium.registry:
            gymnasium.register(env_id, entry_point=entry_point)
    if not hasattr(pettingzoo, "register"):  # before PettingZoo 1.27
        return
    for env_id, module in ((DUEL_ID, "codea1_env.envs.environment"), (DISCRETE_ID, "codea1_env.discrete.environment")):
        if env_id not in pettingzoo.aec_registry:
            pettingzoo.register("aec", env_id, f"{module}:env")
        if env_id not in pettingzoo.parallel_registry:
            pettingzoo.register("parallel", env_id, f"{module}:parallel_env")
