"""A tester reward of your own: the share of the question's wrong programs that a suite catches, if it spares the right.

    codea1 score recorded.jsonl -o scored.jsonl --tester-reward own_reward:Reward      # from this folder

A program is right here if it passes the question's golden tests. A suite that fails a right program with a test as it
was written earns nothing: to accuse the innocent is worse than to be silent.
"""

import dataclasses

from codea1_env import Duel, Group, SuiteTerms, TesterReward


class Reward(TesterReward):
    runs_union = True  # every suite runs on all programs of its question,
    runs_stated = True  # with the values that its tests state, too,
    runs_golden = True  # and so do the question's golden tests

    def suite(self, duel: Duel, terms: SuiteTerms, group: Group) -> SuiteTerms:
        size = self.config.suite_size
        catches = [not all(passes[:size]) for passes in group.as_written]
        on_right = [caught for caught, right in zip(catches, group.right, strict=True) if right]
        on_wrong = [caught for caught, right in zip(catches, group.right, strict=True) if not right]
        reward = 0.0 if any(on_right) or not on_wrong else sum(on_wrong) / len(on_wrong)
        return dataclasses.replace(terms, adversarial=reward, reward=reward)
