"""The duel of a coder and a tester, as verifiers finds it by the name `codea1-duel`."""

from codea1_env.adapters.verifiers import DuelEnv, DuelTaskset, OneAnswer

__all__ = ["DuelEnv", "DuelTaskset", "OneAnswer"]
