"""Both seats as environments of SkyRL Gym, with rounds of repair. Importing this registers them.

    codea1-coder     by golden tests; with `tester_url` in the environment's configuration, under that tester's suites
    codea1-tester    against the program in the row's `extra_info.program`

A row's `reward_spec.ground_truth` is the problem, a line of a file of problems; `max_turns` (1) is how many answers a
trajectory may have. The last one is paid. Raises where infrastructure fails: there is no reward then.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from codea1_env.adapters.feedback import cut
from codea1_env.adapters.seat_rewards import shared
from codea1_env.extras import extra

with extra("skyrl", "the adapter for SkyRL Gym needs"):
    from skyrl_gym.envs.base_text_env import BaseTextEnv, BaseTextEnvStepOutput
    from skyrl_gym.envs.registration import register, registry

_FEEDBACK_CHARACTERS = 2_000


class SeatEnv(BaseTextEnv):  # type: ignore[misc]  # SkyRL Gym ships no types
    """One seat's trajectory."""

    def __init__(self, env_config: Any = None, extras: Mapping[str, Any] | None = None, seat: str = "coder") -> None:
        """`env_config`: what `seat_rewards.shared` takes. `extras`: the row, without its prompt."""
        super().__init__()
        row, options = dict(extras or {}), dict(env_config or {})
        self._rewards, self._seat, self._is_attacked = shared(**options), seat, bool(options.get("tester_url"))
        self._problem = row["reward_spec"]["ground_truth"]
        self._program = row.get("extra_info", {}).get("program") if seat == "tester" else None
        self.max_turns = int(row.get("max_turns", 1))

    def step(self, action: str) -> BaseTextEnvStepOutput:
        """Judges an answer. Returns the reward of the last one, and feedback before another one."""
        if self._seat == "tester":
            judged = self._rewards.kills(self._problem, self._program, action)
        else:
            judged = (self._rewards.attacked if self._is_attacked else self._rewards.golden)(self._problem, action)
        earned = self._rewards.now(judged)
        self.turns += 1
        done = self.turns >= self.max_turns or earned.reward >= 1
        told = f"{cut(earned.told, _FEEDBACK_CHARACTERS)}\nAnswer again, in full."
        messages = [] if done else [{"role": "user", "content": told}]
        reward = earned.reward if done else 0.0
        return BaseTextEnvStepOutput(observations=messages, reward=reward, done=done, metadata=dict(earned.measures))


for _seat in ("coder", "tester"):
    if f"codea1-{_seat}" not in registry:
        register(id=f"codea1-{_seat}", entry_point=f"{__name__}:SeatEnv", kwargs={"seat": _seat})
