"""LiveCodeBench's checker as SkyRL Gym rewards by it: `skyrl_gym.envs.lcb`, call-based. pip install skyrl-gym pandas.

The reward's own limit is 6 s a test; the audit gives it the stated one through the function below it.
"""

import json

from lines import cases_of, serve
from skyrl_gym.envs.lcb.livecodebench import lcb_check_correctness


def handed(request):
    tests = [
        {
            "input": "\n".join(json.dumps(each) for each in case["arguments"]),
            "output": json.dumps(case["expected"]),
            "testtype": "functional",
            "metadata": {"func_name": request["entry_point"]},
        }
        for case in cases_of(request)
    ]
    return tests, request["program"], int(request["time_limit_s"])


def passes(tests, program, timeout_s):
    return bool(lcb_check_correctness(tests, program, timeout=timeout_s))


serve(handed, passes)
