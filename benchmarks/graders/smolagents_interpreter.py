"""smolagents: `LocalPythonExecutor` runs program and tests; a pass is no exception. pip install smolagents.

It interprets the syntax tree, with its default list of imports and its own time limit.
"""

from lines import serve
from smolagents import LocalPythonExecutor


def handed(request):
    return "\n".join([request["program"], *request["tests"]]), int(request["time_limit_s"])


def passes(text, timeout_s):
    executor = LocalPythonExecutor([], timeout_seconds=timeout_s)
    executor.send_tools({})
    try:
        executor(text)
    except Exception:
        return False
    return True


serve(handed, passes)
