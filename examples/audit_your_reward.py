"""Can your reward be fooled? A Python callable is audited in one line, here two that many projects have.

    python examples/audit_your_reward.py

In a test of your own: `codea1_env.testing.audit(my_reward, budget=40)`, which raises with the table below.
docs/sandbox.md says what closes each class.
"""

import subprocess
import sys

import codea1_env.testing


def in_process(program: str, tests: list[str]) -> bool:
    try:
        exec("\n".join([program, *tests]), {})
    except Exception:
        return False
    return True


def exit_code(program: str, tests: list[str]) -> bool:
    text = "\n".join([program, *tests])
    try:
        return subprocess.run([sys.executable, "-c", text], capture_output=True, timeout=2).returncode == 0
    except subprocess.TimeoutExpired:
        return False


for reward in (in_process, exit_code):
    try:
        codea1_env.testing.audit(reward, budget=11, wait_s=3)  # one attack of each class; without a budget, all
    except AssertionError as fooled:
        print(fooled, end="\n\n")
