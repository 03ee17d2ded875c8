"""verl's reward for code, of APPS' kind: `reward_score.prime_code`, call-based. pip install --no-deps verl; numpy.

The package around it needs far more than the reward does, so its folder is put on the path.
"""

import importlib.util
import json
import os
import sys

from lines import serve

found = importlib.util.find_spec("verl")
sys.path.insert(0, os.path.join(next(iter(found.submodule_search_locations)), "utils", "reward_score"))
from prime_code.utils import check_correctness  # noqa: E402


def grade(request):
    cases = request["cases"]
    if not cases:
        return None
    held = {
        "inputs": ["\n".join(json.dumps(each) for each in case["arguments"]) for case in cases],
        "outputs": [json.dumps(case["expected"]) for case in cases],
        "fn_name": request["entry_point"],
    }
    results, _ = check_correctness(held, request["program"], timeout=int(request["time_limit_s"]), debug=False)
    return len(results) == len(cases) and all(each is True for each in results)


serve(grade)
