"""From verdicts to the rewards of both seats: plain arithmetic on the results of a suite on a program.

`code_a1.py` has the paper's formulas, `tester_rewards.py` and `coder_rewards.py` what a suite and a program are paid by
this and other methods. Runs nothing.
"""
