"""EvalPlus: `evalplus.eval.untrusted_check`, the values compared in the program's own process. pip install evalplus."""

from evalplus.eval import PASS, untrusted_check
from lines import cases_of, serve


def handed(request):
    inputs, expected = zip(*((case["arguments"], case["expected"]) for case in cases_of(request)), strict=True)
    return request["program"], request["entry_point"], list(inputs), list(expected), request["time_limit_s"]


def passes(program, entry_point, inputs, expected, time_limit_s):
    status, _ = untrusted_check(
        "audit", program, inputs, entry_point, expected, 0, [0.01] * len(inputs), min_time_limit=time_limit_s
    )
    return status == PASS


serve(handed, passes)
