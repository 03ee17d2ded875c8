"""BigCodeBench: `bigcodebench.eval.untrusted_check`, the tests as a `TestCases` of unittest. pip install bigcodebench.

Its limit is at least 1 s more than it is given, for the whole suite and the import of matplotlib by each of its
processes; imported here first, that takes none of it.
"""

import bigcodebench.eval as bigcodebench
import matplotlib.pyplot  # noqa: F401
from lines import as_unittest, serve

bigcodebench.TIMEOUT_LIMIT = 0.0


def handed(request):
    return request["program"], as_unittest(request["tests"]), request["entry_point"], request["time_limit_s"]


def passes(program, tests, entry_point, time_limit_s):
    status, _ = bigcodebench.untrusted_check(
        program,
        tests,
        entry_point,
        max_as_limit=4096,
        max_data_limit=4096,
        max_stack_limit=10,
        min_time_limit=time_limit_s,
        gt_time_limit=time_limit_s,
    )
    return status == bigcodebench.PASS


serve(handed, passes)
