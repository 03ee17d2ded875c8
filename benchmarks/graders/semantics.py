"""Ways of grading that many projects have, in a few lines each: semantics.py NAME. Written from what they do, not
from their code.

`asserts`: program and asserts executed in the grader's own process. `script`: in one file, the exit code decides.
`pytest`: a
test file beside the program, pytest's exit code. `unittest`: its summary on standard error. `marker`: a word on
standard output. `values`: the program's values are printed by a driver and compared as text. `pool`: a pool of worker
processes that
execute program and test, as in self-play that proposes its own tasks. `released`: a test at a time, program, call and
value in one namespace, a mark on standard output.
"""

import json
import multiprocessing
import os
import subprocess
import sys
import tempfile

from lines import serve

MARK = "__PASS__"


def run(request, files, words, stdin=""):
    """What a process in a directory of its own with `files` came to; None after the time."""
    seconds = request["time_limit_s"] + 3  # an interpreter starts, and pytest, on a machine that may be busy
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            with open(os.path.join(folder, name), "w") as file:
                file.write(text)
        try:
            return subprocess.run(
                [sys.executable, *words], cwd=folder, capture_output=True, text=True, timeout=seconds, input=stdin
            )
        except (subprocess.TimeoutExpired, UnicodeDecodeError):
            return None


def asserts(request):
    try:
        exec("\n".join([request["program"], *request["tests"]]), {})
    except Exception:
        return False
    return True


def script(request):
    done = run(request, {"run.py": "\n".join([request["program"], *request["tests"]])}, ["run.py"])
    return done is not None and done.returncode == 0


def pytest(request):
    tests = "".join(f"def test_{n}():\n    {test}\n" for n, test in enumerate(request["tests"]))
    files = {"solution.py": request["program"], "test_solution.py": f"from solution import *\n{tests}"}
    done = run(request, files, ["-m", "pytest", "-q", "-p", "no:cacheprovider", "test_solution.py"])
    return done is not None and done.returncode == 0


def unittest(request):
    methods = "".join(f"    def test_{n}(self):\n        {test}\n" for n, test in enumerate(request["tests"]))
    head = f"import unittest\nfrom solution import {request['entry_point']}\nclass T(unittest.TestCase):\n"
    done = run(request, {"solution.py": request["program"], "test_solution.py": head + methods}, ["-m", "unittest"])
    return done is not None and done.stderr.strip().endswith("OK")


def marker(request):
    text = "\n".join([request["program"], *request["tests"], "print('All tests passed')"])
    done = run(request, {"run.py": text}, ["run.py"])
    return done is not None and "All tests passed" in done.stdout


def values(request):
    if not request["cases"]:
        return None
    driver = (
        "import json, sys\nfrom solution import *\n"
        f"for arguments in json.load(sys.stdin):\n    print(json.dumps({request['entry_point']}(*arguments)))\n"
    )
    given = json.dumps([case["arguments"] for case in request["cases"]])
    done = run(request, {"solution.py": request["program"], "driver.py": driver}, ["driver.py"], given)
    wanted = [json.dumps(case["expected"]) for case in request["cases"]]
    return done is not None and done.stdout.split("\n")[:-1] == wanted


def execute(text):
    try:
        exec(text, {})
    except Exception:
        return False
    return True


class Pool:
    workers = None

    def __call__(self, request):
        if Pool.workers is None:
            Pool.workers = multiprocessing.Pool(1)
        waiting = Pool.workers.apply_async(execute, ("\n".join([request["program"], *request["tests"]]),))
        try:
            return waiting.get(request["time_limit_s"] + 1)
        except multiprocessing.TimeoutError:
            Pool.workers.terminate()
            Pool.workers = None
            return False


def released(request):
    passed = []
    for case in request["cases"]:
        call = f"{request['entry_point']}({', '.join(map(repr, case['arguments']))})"
        text = (
            "import json, sys\ngiven = json.loads(sys.stdin.read())\nexpected = eval(given['value'])\n"
            f"exec(given['program'])\nif eval(given['call']) == expected:\n    print({MARK!r})\n"
        )
        given = json.dumps({"program": request["program"], "call": call, "value": repr(case["expected"])})
        done = run(request, {"run.py": text}, ["run.py"], given)
        passed.append(done is not None and MARK in done.stdout)
    return all(passed) if passed else None


GRADERS = {
    "asserts": asserts,
    "script": script,
    "pytest": pytest,
    "unittest": unittest,
    "marker": marker,
    "values": values,
    "pool": Pool(),
    "released": released,
}

if __name__ == "__main__":
    serve(GRADERS[sys.argv[1]])
