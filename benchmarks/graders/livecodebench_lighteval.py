"""LiveCodeBench's checker as LightEval has it: `codegen_metrics.check_correctness`, call-based. pip install
lighteval."""

import json

from lighteval.tasks.tasks.lcb.codegen_metrics import check_correctness
from lines import serve


def grade(request):
    cases = request["cases"]
    if not cases:
        return None
    held = {
        "inputs": ["\n".join(json.dumps(each) for each in case["arguments"]) for case in cases],
        "outputs": [json.dumps(case["expected"]) for case in cases],
        "fn_name": request["entry_point"],
    }
    results = check_correctness({"input_output": json.dumps(held)}, request["program"], int(request["time_limit_s"]))
    return len(results) == len(cases) and all(each is True for each in results)


serve(grade)
