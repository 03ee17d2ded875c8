"""NeMo Gym's server `code_gen`: the check that its workers run, without Ray around it. Python 3.13, pip install
nemo-gym."""

import importlib.util
import json
import os
import sys

from lines import all_true, by_lines, serve

found = importlib.util.find_spec("resources_servers")
sys.path.insert(0, os.path.join(next(iter(found.submodule_search_locations)), "code_gen"))
from lcb_integration.compute_code_generation_metrics import check_correctness  # noqa: E402


def handed(request):
    sample = {"input_output": json.dumps(by_lines(request))}
    return sample, request["program"], int(request["time_limit_s"]), len(request["cases"])


def passes(sample, program, timeout_s, count):
    return all_true(check_correctness(sample, program, timeout_s, debug=False)[0], count)


serve(handed, passes)
