"""From verdicts to the rewards of both seats: plain arithmetic on the results of a suite on a program.

`code_a1.py` has the paper's formulas, `tester_rewards.py` what other methods pay a suite. Runs nothing.
"""

from codea1_env.rewards.code_a1 import (
    TESTER_REWARDS,
    CoderTests,
    Group,
    OracleMode,
    ProgramResult,
    RewardConfig,
    TesterReward,
    coder_reward,
    is_valid,
    suite_terms,
)
from codea1_env.rewards.terms import SuiteTerms, effective_alpha

__all__ = [
    "TESTER_REWARDS",
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
