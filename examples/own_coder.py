"""A coder reward of your own: all or nothing, as in most training on fixed tests.

    codea1 score recorded.jsonl -o scored.jsonl --coder-reward own_coder:AllOrNothing      # from this folder

In a run's YAML: `reward: {coder_reward: "own_coder:AllOrNothing", coder_reward_args: {nothing: -1.0}}`.
"""

from codea1_env import CoderReward, ProgramResult, RewardConfig, Verdict


class AllOrNothing(CoderReward):
    def __init__(self, config: RewardConfig, nothing: float = 0.0) -> None:
        super().__init__(config)
        self.nothing = nothing

    def program(self, result: ProgramResult) -> float:
        verdicts = [verdict for suite in result.suites for verdict in suite]
        return 1.0 if verdicts and all(verdict is Verdict.PASS for verdict in verdicts) else self.nothing
