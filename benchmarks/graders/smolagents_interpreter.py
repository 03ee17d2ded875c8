"""smolagents: `LocalPythonExecutor` runs program and tests; a pass is no exception. pip install smolagents.

It interprets the syntax tree, with its default list of imports and its own time limit.
"""

from lines import serve
from smolagents import LocalPythonExecutor


def grade(request):
    executor = LocalPythonExecutor([], timeout_seconds=int(request["time_limit_s"]))
    executor.send_tools({})
    try:
        executor("\n".join([request["program"], *request["tests"]]))
    except Exception:
        return False
    return True


serve(grade)
