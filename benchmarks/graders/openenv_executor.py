"""OpenEnv: `PyExecutor`, which its coding environments run code by; a pass is exit code 0. pip install openenv
smolagents."""

from lines import serve
from openenv.core.tools.local_python_executor import PyExecutor


def grade(request):
    return PyExecutor().run("\n".join([request["program"], *request["tests"]])).exit_code == 0


serve(grade)
