"""Both seats as environments of SkyRL Gym, with rounds of repair. Importing this registers them.

    codea1-coder     by golden tests; with `tester_url` in the environment's configuration, under that tester's suites
    codea1-tester    against the program in the row's `extra_info.program`

A row's `reward_spec.ground_truth` is the problem, a line of a file of problems; `max_turns` (1) is how many answers a
trajectory may have. The last one is paid. Raises where infrastructure fails: there is no reward then.
"""

from typing import Any

from codea1_env.adapters.seat_rewards import shared
from codea1_env.extras import extra

with extra("skyrl", "the adapter for SkyRL Gym needs"):
    from skyrl_gym.envs.base_text_env import BaseTextEnv, BaseTextEnvStepOutput
    from skyrl_gym.envs.registration import register


class SeatEnv(BaseTextEnv):  # type: ignore[misc]  # SkyRL Gym ships no types
    """A trajectory. `env_config`: what `seat_rewards.shared` takes; `extras`: the row, without its prompt."""

    def __init__(self, env_config: Any = None, extras: Any = None, seat: str = "coder") -> None:
        super().__init__()
        self._rewards, self._seat, self._row = shared(**(env_config or {})), seat, extras or {}
        self.max_turns = int(self._row.get("max_turns", 1))

    def step(self, action: str) -> BaseTextEnvStepOutput:
        """Judges an answer. Returns the reward of the last one, and feedback before another one."""
        problem, program = self._row["reward_spec"]["ground_truth"], (self._row.get("extra_info") or {}).get("program")
        earned = self._rewards.now(self._rewards.of_row(problem, action, program, self._seat))
        self.turns += 1
        done = self.turns >= self.max_turns or earned.reward >= 1
        messages = [] if done else [{"role": "user", "content": f"{earned.told}\nAnswer again, in full."}]
        paid, measures = earned.reward if done else 0.0, dict(earned.measures)
        return BaseTextEnvStepOutput(observations=messages, reward=paid, done=done, metadata=measures)


for _seat in ("coder", "tester"):
    register(id=f"codea1-{_seat}", entry_point=f"{__name__}:SeatEnv", kwargs={"seat": _seat})
