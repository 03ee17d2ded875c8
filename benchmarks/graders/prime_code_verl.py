"""verl's reward for code, of APPS' kind: `reward_score.prime_code`, call-based. pip install --no-deps verl; numpy.

The package around it needs far more than the reward does, so its folder is put on the path.
"""

import importlib.util
import os
import sys

from lines import all_true, by_lines, serve

found = importlib.util.find_spec("verl")
sys.path.insert(0, os.path.join(next(iter(found.submodule_search_locations)), "utils", "reward_score"))
from prime_code.utils import check_correctness  # noqa: E402


def handed(request):
    return by_lines(request), request["program"], int(request["time_limit_s"]), len(request["cases"])


def passes(in_outs, program, timeout_s, count):
    return all_true(check_correctness(in_outs, program, timeout=timeout_s, debug=False)[0], count)


serve(handed, passes)
