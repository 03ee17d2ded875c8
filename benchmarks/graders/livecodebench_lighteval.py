"""LiveCodeBench's checker as LightEval has it: `codegen_metrics.check_correctness`, call-based. pip install
lighteval."""

import json

from lighteval.tasks.tasks.lcb.codegen_metrics import check_correctness
from lines import all_true, by_lines, serve


def handed(request):
    sample = {"input_output": json.dumps(by_lines(request))}
    return sample, request["program"], int(request["time_limit_s"]), len(request["cases"])


def passes(sample, program, timeout_s, count):
    return all_true(check_correctness(sample, program, timeout_s), count)


serve(handed, passes)
