"""NeMo Gym's server `code_gen`: the check that its workers run, without Ray around it. Python 3.13, pip install
nemo-gym."""

import importlib.util
import json
import os
import sys

from lines import serve

found = importlib.util.find_spec("resources_servers")
sys.path.insert(0, os.path.join(next(iter(found.submodule_search_locations)), "code_gen"))
from lcb_integration.compute_code_generation_metrics import check_correctness  # noqa: E402


def grade(request):
    cases = request["cases"]
    if not cases:
        return None
    held = {
        "inputs": ["\n".join(json.dumps(each) for each in case["arguments"]) for case in cases],
        "outputs": [json.dumps(case["expected"]) for case in cases],
        "fn_name": request["entry_point"],
    }
    results, _ = check_correctness(
        {"input_output": json.dumps(held)}, request["program"], int(request["time_limit_s"]), debug=False
    )
    return len(results) == len(cases) and all(each is True for each in results)


serve(grade)
