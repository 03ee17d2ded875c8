"""OpenEnv: `PyExecutor`, which its coding environments run code by; a pass is exit code 0. pip install openenv
smolagents."""

from lines import serve
from openenv.core.tools.local_python_executor import PyExecutor


def handed(request):
    return ("\n".join([request["program"], *request["tests"]]),)


def passes(text):
    return PyExecutor().run(text).exit_code == 0


serve(handed, passes)
