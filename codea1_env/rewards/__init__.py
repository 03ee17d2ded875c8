"""From verdicts to the rewards of both seats: plain arithmetic on the results of a suite on a program.

`code_a1.py` has the paper's formulas, `tester_rewards.py` and `coder_rewards.py` what a suite and a program are paid by
this and other methods. Runs nothing.
"""

from codea1_env.rewards.code_a1 import (
    CODER_REWARDS,
    TESTER_REWARDS,
    CoderTests,
    OracleMode,
    RewardConfig,
    coder_reward,
    is_valid,
    suite_terms,
)
from codea1_env.rewards.interfaces import Accept, CoderReward, Group, ProgramResult, TesterReward
from codea1_env.rewards.terms import SuiteTerms, effective_alpha

__all__ = [
    "CODER_REWARDS",
    "TESTER_REWARDS",
    "Accept",
    "CoderReward",
    "CoderTests",
    "Group",
    "OracleMode",
    "ProgramResult",
    "RewardConfig",
    "SuiteTerms",
    "TesterReward",
    "coder_reward",
    "effective_alpha",
    "is_valid",
    "suite_terms",
]
