"""EvalPlus: `evalplus.eval.untrusted_check`, the values compared in the program's own process. pip install evalplus."""

from evalplus.eval import PASS, untrusted_check
from lines import serve


def grade(request):
    cases = request["cases"]
    if not cases:
        return None
    status, _ = untrusted_check(
        "audit",
        request["program"],
        [case["arguments"] for case in cases],
        request["entry_point"],
        [case["expected"] for case in cases],
        0,
        [0.01] * len(cases),
        min_time_limit=request["time_limit_s"],
    )
    return status == PASS


serve(grade)
