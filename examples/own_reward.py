"""A tester reward of your own: the share of the question's wrong programs that a suite catches, if it spares the right.

    codea1 score recorded.jsonl -o scored.jsonl --tester-reward own_reward:Reward      # from this folder

A program is right here if it passes the question's golden tests. A suite that fails a right program with a test as it
was written earns `accusing`, which is nothing unless `tester_reward_args: {accusing: -0.5}` says otherwise.
"""

import dataclasses

from codea1_env import Duel, Group, RewardConfig, SuiteTerms, TesterReward


class Reward(TesterReward):
    runs_union = True  # every suite runs on all programs of its question,
    runs_stated = True  # with the values that its tests state, too,
    runs_golden = True  # and so do the question's golden tests

    def __init__(self, config: RewardConfig, accusing: float = 0.0) -> None:
        super().__init__(config)
        self.accusing = accusing

    def suite(self, duel: Duel, terms: SuiteTerms, group: Group) -> SuiteTerms:
        size = self.config.suite_size
        catches = [not all(passes[:size]) for passes in group.as_written]
        on_right = [caught for caught, right in zip(catches, group.right, strict=True) if right]
        on_wrong = [caught for caught, right in zip(catches, group.right, strict=True) if not right]
        reward = self.accusing if any(on_right) else sum(on_wrong) / max(len(on_wrong), 1)
        return dataclasses.replace(terms, adversarial=reward, reward=reward)
