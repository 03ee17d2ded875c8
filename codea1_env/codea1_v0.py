"""The text game in the form of PettingZoo's own environments: `from codea1_env import codea1_v0`, `codea1_v0.env()`."""

from codea1_env.envs.environment import env, parallel_env, raw_env

__all__ = ["env", "parallel_env", "raw_env"]
