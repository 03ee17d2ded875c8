"""OpenRLHF's remote reward: `--reward.remote_url examples/openrlhf_reward.py --data.label_key problem`.

The column `problem` holds a line of a file of problems each. For the tester's seat, import `tester_by_kills` instead;
its column holds {"problem": ..., "program": ...}.
"""

from codea1_env.adapters.openrlhf import coder_by_golden_tests as reward_func

__all__ = ["reward_func"]
